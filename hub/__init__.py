"""Every call to the Hub: bounded retries, lost answers recognised, errors that say what to do.

What a data set, a result or a Space consists of does not belong here.

Files go by HTTP and not by Xet, whose errors do not say what the Hub has answered, so that neither the reason nor the
right advice could be told. `huggingface_hub` reads its settings when it is imported; this is set once, before that,
and never changed: threads that talk to the Hub at the same time see one setting. Who sets HF_HUB_DISABLE_XET is obeyed.
"""

import os
import sys

if "HF_HUB_DISABLE_XET" not in os.environ:
    # The processes that this one starts inherit it.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    if "huggingface_hub.constants" in sys.modules:
        sys.modules["huggingface_hub.constants"].HF_HUB_DISABLE_XET = True  # type: ignore[attr-defined]
