"""Every call to the Hub: bounded retries, lost answers recognised, errors with their remedy.

The content of a data set, a result or a Space does not belong here.

Files go by HTTP and not by Xet, whose errors do not contain the Hub's answer, and so neither the reason nor the
right advice. `huggingface_hub` reads its settings when it is imported; this is set once, before that,
and never changed: threads that call the Hub at the same time see one setting. A user's HF_HUB_DISABLE_XET takes
precedence.
"""

import os
import sys

if "HF_HUB_DISABLE_XET" not in os.environ:
    # Child processes inherit it.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    if "huggingface_hub.constants" in sys.modules:
        sys.modules["huggingface_hub.constants"].HF_HUB_DISABLE_XET = True  # type: ignore[attr-defined]
