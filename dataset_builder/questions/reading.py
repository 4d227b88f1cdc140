"""What a question asks, from its words alone: the inverse of the wordings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from .templates import Template, all_templates

_GAP = "{a}"


class Asked(NamedTuple):
    """What a question asks.

    Attributes:
        task: such as ``counting``.
        variant: of the task, such as ``kinds``.
        anchor: the sound that is asked about, as it is spoken; empty where the whole clip is.
        polarity: of Yes and No, what Yes says: ``overlap`` or ``alone``; else empty.
    """

    task: str
    variant: str
    anchor: str
    polarity: str


class Wording(NamedTuple):
    """A question in its wording.

    Attributes:
        asked: what it asks.
        template: the wording.
    """

    asked: Asked
    template: Template


def read_question(question: str, options: Sequence[str] = ()) -> Asked | None:
    """What a question asks; None where it is in none of the wordings.

    >>> read_question("What overlaps with the brass section?")
    Asked(task='classification', variant='overlap', anchor='brass section', polarity='')

    Args:
        question: as it was asked.
        options: where there are any, and what is asked is answered by Yes or No, they have to be these two.
    """
    wording = read_wording(question, options)
    return None if wording is None else wording.asked


def read_wording(question: str, options: Sequence[str] = ()) -> Wording | None:
    """As `read_question`, with the wording.

    The words of a label may be read as those of a wording. Of several readings that with most words of the wording, so
    the shortest label, is taken.
    """
    readings = []
    for (task, variant), template, pattern in _patterns():
        match = pattern.fullmatch(question)
        if match is not None:
            anchor = match["a"] if _GAP in template.text else ""
            readings.append(Wording(Asked(task, variant, anchor, template.polarity), template))
    if not readings:
        return None
    best = min(readings, key=lambda reading: len(reading.asked.anchor))
    if best.asked.polarity and options and {option.casefold() for option in options} != {"yes", "no"}:
        return None
    return best


@cache
def _patterns() -> tuple[tuple[tuple[str, str], Template, re.Pattern[str]], ...]:
    """Each wording with the kind of question and a pattern of its text, in which a label is ``a``."""
    patterns = []
    for kind, wordings in all_templates().items():
        for template in wordings:
            first, *rest = map(re.escape, template.text.split(_GAP))
            # A label that is named twice is the same twice.
            pattern = r"(?P<a>\S(?:.*\S)?)".join([first, *rest[:1]]) + "".join(f"(?P=a){text}" for text in rest[1:])
            patterns.append((kind, template, re.compile(pattern)))
    return tuple(patterns)
