"""Wording and cleaning of text."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any


def closest(name: str, valid: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The valid name most similar to a wrong one; None where their similarity, from 0 to 1, is below `cutoff`."""
    close = difflib.get_close_matches(name, list(valid), n=1, cutoff=cutoff)
    return close[0] if close else None


MOST_NAMED = 5
"""Most names in an error."""


def nearest(name: str, valid: Iterable[str], listing: str = "") -> str:
    """The end of an error about an unknown name: the nearest valid one, and the five nearest, or `listing`: the way to
    list them."""
    names = list(valid)
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    near = names if len(names) <= MOST_NAMED else difflib.get_close_matches(name.lower(), names, MOST_NAMED, 0)
    close = closest(name.lower(), names)
    suggestion = "" if close is None else f"did you mean {close!r}? "
    return suggestion + (listing or f"Valid: {', '.join(near)}{rest}")


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the name of its type where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def shown(names: Sequence[str], count: int = 5) -> str:
    """The first few of some names, and the number of the others."""
    listed = ", ".join(names[:count])
    return listed if len(names) <= count else f"{listed} and {len(names) - count} more"


def listed(names: Sequence[str], most: int = 6, last: str = "and") -> str:
    """Names in words: "a, b and c"; of more than `most`, the first ones and the number of the others."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def counted(count: int, name: str) -> str:
    """A count with its noun."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


def with_article(noun: str) -> str:
    """A noun behind "a" or "an", by its first letter."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def plain(text: str) -> str:
    """Text on one line, without characters that are invisible or that move others, such as a change of direction."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


LONGEST_LINE = 500
"""Characters of a line that is printed for an error or a warning."""


def printed(message: object) -> str:
    """A message as it is printed, whatever texts of others are in it: each line `plain`, the middle of a long one left
    out."""
    half = LONGEST_LINE // 2 - 1
    lines = str(message).split("\n")
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:half]} … {line[-half:]}" for line in lines]
    return "\n".join(map(plain, [*lines[:20], "…"] if len(lines) > 40 else lines))


def parse_json(text: str) -> Any:
    """The value of a JSON text. A half of a surrogate pair, which no file can hold, becomes U+FFFD.

    Raises:
        ValueError: it is not JSON.
        RecursionError: it is nested too deep.
    """
    value = json.loads(text)
    if "\\u" not in text:
        return value
    return json.loads(re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", json.dumps(value, ensure_ascii=False)))


def shortened(text: str, limit: int) -> str:
    """A stranger's text on one line, `plain`, cut to at most `limit` characters."""
    cleaned = plain(text[: 4 * limit])
    return cleaned if len(text) == len(cleaned) <= limit else f"{cleaned[: limit - 1]}…"


def number_text(value: float | None, digits: int = 3, *, missing: str = "–", minus: str = "-") -> str:
    """A number with a fixed number of decimals, without the sign of a rounded zero; `missing` for None."""
    if value is None:
        return missing
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text.replace("-", minus)
