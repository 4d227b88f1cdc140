"""Wording and cleaning of text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def nearest(name: str, valid: Iterable[str]) -> str:
    """The end of an error about an unknown name: the nearest valid one, and all of them."""
    names = list(valid)
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    suggestion = f"did you mean {close[0]!r}? " if close else ""
    return f"{suggestion}Valid: {', '.join(names)}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the name of its type where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def shown(names: Sequence[str], count: int = 5) -> str:
    """The first few of some names, and how many more there are."""
    listed = ", ".join(names[:count])
    return listed if len(names) <= count else f"{listed} and {len(names) - count} more"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in words: "a, b and c"; of more than `most` the first, and how many more."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def plain(text: str) -> str:
    """Text in one line, without characters that are not seen or that move others, such as a change of direction."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def shortened(text: str, limit: int) -> str:
    """A stranger's text on one line, `plain`, cut to at most `limit` characters."""
    cleaned = plain(text[: 4 * limit])
    return cleaned if len(text) == len(cleaned) <= limit else f"{cleaned[: limit - 1]}…"


def number_text(value: float | None, digits: int = 3, *, missing: str = "–", minus: str = "-") -> str:
    """A number with so many decimals, without the sign of a rounded zero; `missing` for None."""
    if value is None:
        return missing
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text.replace("-", minus)
