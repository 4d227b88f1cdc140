"""Wording that errors share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DatasetError(ValueError):
    """Data that cannot be used as it is: says which file, row or value, what is wrong, and what is expected."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest valid one, and all of them."""
    names = list(valid)
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    suggestion = f"did you mean {close[0]!r}? " if close else ""
    return f"{suggestion}Valid: {', '.join(names)}"
