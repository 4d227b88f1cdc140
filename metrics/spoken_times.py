"""Read from a free-text answer when something begins and ends, by fixed rules in linear time.

An answer is split into words, numbers and marks. A *time* is

- a clock, ``0:01.2`` or ``00:01:02.5``;
- a number with a unit: milliseconds, seconds or minutes, in digits or in words (``one and a half seconds``), also of
  two units (``1 min 3.5 s``);
- a bare number, in seconds or in the unit of its partner, unless it counts or names something. These are not times: a
  whole number directly next to a word such as "two clarinets" or "track 2", a number that opens a line as in a list, a
  number glued to letters, and a number with %, # or a minus sign.

A comma between digits without a space is a decimal comma, as in ``1,2 to 3,4 s``, or separates thousands if
milliseconds are named, ``1,200 ms``. It separates two numbers if one has a decimal point, next to a further comma, and
between two brackets: ``1.2,3.4``, ``[1,3]``.

A time has the role *from* if the last role word before it is in `_FROM`, *until* if it is in `_UNTIL`, and *length* if
it is in `_LENGTH` or if "long" follows. Two successive times are a pair, read from left to right:

1. from and until, in either order, or two times with nothing but small words such as "to" or "and" between;
2. if there are none of these: a time and a length that follows with nothing but small words between;
3. if there are none of these either: two times with nothing but marks between, as in ``[1.2, 3.4]``.

The last pair of the first kind found counts. A pair that ends before it starts does not count: the answer is unread,
like an answer without a pair. If an answer names several sounds, the last is read.

>>> spoken_times("First there is a drum. The bell is heard from 1.2 to 3.4 s, so for 2.2 s.")
(1.2, 3.4)
>>> spoken_times("between two and two and a half seconds"), spoken_times('{"onset": 0.5, "offset": 1}')
((2.0, 2.5), (0.5, 1.0))
>>> spoken_times("I hear two clarinets."), spoken_times("from 3 to 1 s")
(None, None)
"""

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<clock>\d{1,3}(?::[0-5]?\d){1,2}(?:\.\d+|,\d{1,3}(?!\d))?(?![\d:]))"
    r"|(?P<number>\d+(?:\.\d+)?|(?<![\d.])\.\d+)"
    r"|(?P<word>[^\W\d_]+)|(?P<line>\n)|(?P<mark>[^\w\s]|_)"
)

_COMMA = re.compile(r"(?<![\d.,:])(?<![\[(](?=\d+,\d+[\])]))\d+,\d+(?!\d|[.:]\d|,\d)")
_THOUSANDS = re.compile(r"(?<![\d.,:])\d{1,3}(?:,\d{3})+(?!\d|[,:]\d)")
_MILLISECONDS = re.compile(r"(?<![a-z])m(?:s|illi)")

_PLAIN = str.maketrans({"½": ".5", "¼": ".25", "¾": ".75", **dict.fromkeys("‐‑‒–—―−", "-")})

LARGEST = 1e6
"""Largest time in seconds; a larger number is not a time."""

_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
}
"""Seconds of each unit."""

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_NUMBERS = {word: float(value) for value, word in enumerate(_ONES)}
_TENS = {word: 10.0 * value for value, word in enumerate(("twenty", "thirty", "forty", "fifty", "sixty"), 2)}
_PARTS = {"half": 0.5, "quarter": 0.25}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FROM = _words("from between starts start starting started begins begin beginning began onset onsets")
_UNTIL = _words(
    "until till til ends end ending ended stops stop stopping stopped finishes finish finishing offset offsets"
)
_LENGTH = _words("for lasts last lasting lasted duration length")
_SMALL = _words(
    "to through thru and continues continuing then is it its at the a an of about around roughly approximately approx "
    "circa ca near nearly exactly precisely just time times answer heard audible present mark"
)
_ROLES = {**dict.fromkeys(_FROM, "from"), **dict.fromkeys(_UNTIL, "until"), **dict.fromkeys(_LENGTH, "length")}
_NO_TIME, _HEAD = "number", "."
"""A number that is not a time and acts as a word between two others; and a number that opens a line."""

_BESIDE = _FROM | _UNTIL | _LENGTH | _SMALL | _words("or in on into when before after with while so by")
"""Words next to which a bare whole number may be a time."""


Tokens = Sequence[re.Match[str]]
"""Pieces of an answer; `lastgroup` is the kind of each."""


@dataclass
class _Time:
    """A time: its value in its unit (in seconds; None if not stated), the words since the time before, and its role."""

    value: float
    unit: float | None
    before: list[str]
    role: str = ""

    @property
    def words(self) -> set[str]:
        """Return the words since the time before it, without units."""
        return {word for word in self.before if word.isalpha() and word not in _UNITS}


def spoken_times(answer: str) -> tuple[float, float] | None:
    """Return when something begins and ends according to an answer, in seconds; None if it does not say; see the
    module."""
    times = _times(_tokens(answer))
    for kind in ("said", "length", "marks"):
        pairs = _pairs(times, kind)
        if pairs:
            first, last = pairs[-1]
            return (first, last) if first <= last else None
    return None


def _tokens(answer: str) -> Tokens:
    text = unicodedata.normalize("NFKC", answer.translate(_PLAIN)).translate(_PLAIN).casefold()
    # "1,200 ms" has a thousands separator, "1,2 s" a decimal comma.
    if _MILLISECONDS.search(text):
        text = _THOUSANDS.sub(lambda number: number[0].replace(",", ""), text)
    text = _COMMA.sub(lambda number: number[0].replace(",", "."), text)
    return list(_TOKEN.finditer(re.sub(r"-+", "-", text)))


def _times(tokens: Tokens) -> list[_Time]:
    """Return the times in order, with their roles."""
    times, place, before, default = list[_Time](), 0, list[str](), None
    while place < len(tokens):
        value, stop = _number_at(tokens, place)
        if value is None:
            before.append(tokens[place][0])
            # A unit without a number, as in "onset (ms): 1200", applies to the bare numbers after it.
            default = 0.001 if _UNITS.get(tokens[place][0]) == 0.001 else default
            place += 1
            continue
        unit, end = _unit_at(tokens, stop)
        unit = 1.0 if tokens[place].lastgroup == "clock" else unit
        last = times[-1] if times else None
        if value > LARGEST or not (tokens[place].lastgroup == "clock" or _is_time(tokens, place, stop, unit)):
            before.append(_HEAD if _opens_line(tokens, place, stop) else _NO_TIME)
        elif last and last.unit and unit and unit < last.unit and set(before) <= {",", "and"}:
            last.value, last.unit, before = last.value * last.unit + value * unit, 1.0, []
        else:
            said = [role for word in before if (role := _ROLES.get(word))]
            said += ["length"] if _text(tokens, end) == "long" else []
            times.append(_Time(value, unit or default, before, said[-1] if said else ""))
            before = []
        place = end
    return times


def _number_at(tokens: Tokens, place: int) -> tuple[float | None, int]:
    """Return the number that starts at an index, and the index after it; for a clock its seconds."""
    token, stop, value = tokens[place], place + 1, math.nan
    if token.lastgroup == "clock":
        parts = [float(part) for part in token[0].replace(",", ".").split(":")]
        return sum(part * 60**power for power, part in enumerate(reversed(parts))), stop
    if token.lastgroup == "number":
        value = float(token[0])
    elif token[0] in _NUMBERS or token[0] in _TENS:
        value = _NUMBERS.get(token[0], _TENS.get(token[0], 0.0))
        ones = stop + (_text(tokens, stop) == "-")
        if token[0] in _TENS and 1 <= _NUMBERS.get(_text(tokens, ones), 0) <= 9:
            value, stop = value + _NUMBERS[_text(tokens, ones)], ones + 1
        if _text(tokens, stop) == "point" and _text(tokens, stop + 1) in _NUMBERS:
            stop, digits = stop + 1, ""
            while _NUMBERS.get(_text(tokens, stop), 10.0) < 10 and len(digits) < 9:
                digits, stop = f"{digits}{_NUMBERS[_text(tokens, stop)]:.0f}", stop + 1
            value += float(f"0.{digits or 0}")
    elif token[0] in _PARTS:
        stop += _text(tokens, stop) == "a"
        return (_PARTS[token[0]], stop) if _text(tokens, stop) in _UNITS else (None, place)
    if math.isnan(value):
        return None, place
    if _text(tokens, stop) == "and" and _text(tokens, stop + 1) == "a" and _text(tokens, stop + 2) in _PARTS:
        value, stop = value + _PARTS[_text(tokens, stop + 2)], stop + 3
    return value, stop


def _text(tokens: Tokens, place: int) -> str:
    return tokens[place][0] if 0 <= place < len(tokens) else ""


def _unit_at(tokens: Tokens, stop: int) -> tuple[float | None, int]:
    """Return the unit after a number, possibly after a bracket or a hyphen, and the index after it."""
    at = stop + (_text(tokens, stop) in ("(", "[", "-"))
    unit = _UNITS.get(_text(tokens, at))
    return (None, stop) if unit is None else (unit, at + 1)


def _is_time(tokens: Tokens, place: int, stop: int, unit: float | None) -> bool:
    """Return whether a number with this unit is a time, judged by its neighbours; see the module."""
    first, last = tokens[place], tokens[stop - 1]
    before, after = (tokens[at] if 0 <= at < len(tokens) else None for at in (place - 1, stop))
    touching = before if before is not None and before.end() == first.start() else None
    if touching is not None and (touching.lastgroup == "word" or touching[0] in "_#"):
        return False
    if touching is not None and touching[0] == "-":
        # A hyphen after a time makes a range; any other is a minus or part of a name.
        earlier = tokens[place - 2] if place > 1 else None
        is_range = earlier is not None and (
            earlier.lastgroup in ("number", "clock") or earlier[0] in {*_UNITS, *_NUMBERS}
        )
        if not is_range:
            return False
    if unit is not None:
        return True
    if after is not None and (after[0] in "%_" or (after.lastgroup == "word" and after.start() == last.end())):
        return False
    if "." in first[0] or stop > place + 1:
        return True
    if _opens_line(tokens, place, stop) and stop + 1 < len(tokens):
        return False
    beside = [token[0] for token in (before, after) if token is not None and token.lastgroup == "word"]
    return all(word in _BESIDE or word in _UNITS for word in beside)


def _opens_line(tokens: Tokens, place: int, stop: int) -> bool:
    """Return whether a number opens a line as in a list, ``1.`` or ``2)``."""
    return (place == 0 or tokens[place - 1].lastgroup == "line") and _text(tokens, stop) in (".", ")", ":")


def _pairs(times: Sequence[_Time], kind: str) -> list[tuple[float, float]]:
    """Return pairs of successive times, in seconds, from left to right; no time is in two pairs.

    Args:
        times: times of an answer.
        kind: ``said``, ``length`` or ``marks``: the first, second and third kind of pair of the module.
    """
    if kind == "said":
        times = [time for time in times if time.role != "length"]
    pairs, place = list[tuple[float, float]](), 0
    while place + 1 < len(times):
        one, other = times[place : place + 2]
        if kind == "said":
            is_joined = other.words <= _SMALL | _UNTIL and bool(other.words or {"-", "~"} & set(other.before))
            paired = is_joined or {one.role, other.role} == {"from", "until"}
        elif kind == "length":
            paired = other.role == "length" != one.role and other.words <= _SMALL | _LENGTH
        else:
            paired = not other.words
        if paired:
            # A bare number has the unit of the other.
            first = one.value * (one.unit or other.unit or 1.0)
            last = other.value * (other.unit or one.unit or 1.0)
            if kind == "length":
                last += first
            pairs.append((last, first) if (one.role, other.role) == ("until", "from") else (first, last))
        place += 1 + paired
    return pairs
