"""Where files are kept that can be had or computed again."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "AUDIO_COMPOSITIONALITY_CACHE"


def cache_folder() -> Path:
    """The folder that `AUDIO_COMPOSITIONALITY_CACHE` names, else `audio-compositionality` in the user's cache.

    The user's cache is `$XDG_CACHE_HOME`, or `~/.cache` (XDG Base Directory Specification 0.8).
    """
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "audio-compositionality"
