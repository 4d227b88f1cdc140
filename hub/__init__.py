"""Calls to the Hub, with bounded retries, recognition of lost answers, and errors that name a remedy.

The content of data sets, results and Spaces does not belong here.

Files are sent by HTTP rather than Xet: Xet's errors omit the Hub's answer, and with it the reason of a failure.
`huggingface_hub` reads its settings when it is imported, so this is set once, before the import, and never changed:
threads that call the Hub at the same time see the same setting. A user's HF_HUB_DISABLE_XET takes precedence.
"""

import os
import sys

if "HF_HUB_DISABLE_XET" not in os.environ:
    # Child processes inherit it.
    os.environ["HF_HUB_DISABLE_XET"] = "1"
    if "huggingface_hub.constants" in sys.modules:
        sys.modules["huggingface_hub.constants"].HF_HUB_DISABLE_XET = True  # type: ignore[attr-defined]
