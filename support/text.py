"""Words and lists for messages, and cleaning of text."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any


def closest(name: str, valid: Iterable[str], cutoff: float = 0.5) -> str | None:
    """Return the valid name most similar to a wrong one; None if the similarity (0 to 1) is below `cutoff`."""
    close = difflib.get_close_matches(name, list(valid), n=1, cutoff=cutoff)
    return close[0] if close else None


MOST_NAMED = 5
"""Most names in an error."""


def nearest(name: str, valid: Iterable[str], listing: str = "") -> str:
    """Return the end of an error about an unknown name: the nearest valid names.

    Names the nearest one, then the five nearest, or `listing`, which says how to list all of them.
    """
    names = list(valid)
    rest = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    near = names if len(names) <= MOST_NAMED else difflib.get_close_matches(name.lower(), names, MOST_NAMED, 0)
    close = closest(name.lower(), names)
    suggestion = "" if close is None else f"did you mean {close!r}? "
    return suggestion + (listing or f"Valid: {', '.join(near)}{rest}")


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its type if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def shown(names: Sequence[str], count: int = 5) -> str:
    """Return the first few names and the number of the others."""
    listed = ", ".join(names[:count])
    return listed if len(names) <= count else f"{listed} and {len(names) - count} more"


def listed(names: Sequence[str], most: int = 6, last: str = "and") -> str:
    """Return names in words, "a, b and c"; if there are more than `most`, the first ones and the number of the
    others."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def counted(count: int, name: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


def with_article(noun: str) -> str:
    """Return a noun with "a" or "an", according to its first letter."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def plain(text: str) -> str:
    """Return text on one line, without characters that are invisible or move others, e.g. a change of direction."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


LONGEST_LINE = 500
"""Most characters of a line that is printed for an error or a warning."""


def printed(message: object) -> str:
    """Return a message that is safe to print, whatever it contains: each line `plain`, long texts without their
    middle."""
    half = LONGEST_LINE // 2 - 1
    lines = str(message).split("\n")
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:half]} … {line[-half:]}" for line in lines]
    return "\n".join(map(plain, [*lines[:20], "…"] if len(lines) > 40 else lines))


def parse_json(text: str) -> Any:
    """Return the value of a JSON text; half of a surrogate pair, which no file can contain, becomes U+FFFD.

    Raises:
        ValueError: the text is not JSON.
        RecursionError: the value is nested too deeply.
    """
    value = json.loads(text)
    if "\\u" not in text:
        return value
    return json.loads(re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", json.dumps(value, ensure_ascii=False)))


def shortened(text: str, limit: int) -> str:
    """Return untrusted text on one line, `plain`, cut to at most `limit` characters."""
    cleaned = plain(text[: 4 * limit])
    return cleaned if len(text) == len(cleaned) <= limit else f"{cleaned[: limit - 1]}…"


def number_text(value: float | None, digits: int = 3, *, missing: str = "–", minus: str = "-") -> str:
    """Return a number with a fixed number of decimals, never "-0"; `missing` for None."""
    if value is None:
        return missing
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.,") else text.replace("-", minus)
