"""What a question asks, from its words alone: the inverse of the wordings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from .atoms import ATOMS, VARIANTS, atom_templates
from .templates import Template, all_templates

_GAP = re.compile(r"\{([ab])\}")


class Asked(NamedTuple):
    """What a question asks.

    Attributes:
        task: such as ``counting``; also one of `ATOMS`.
        variant: of the task, such as ``kinds``.
        anchor: the sound that is asked about, as it is spoken; empty where the whole clip is.
        polarity: of Yes and No, what Yes says: ``overlap`` or ``alone``, of atoms one of their states; else empty.
        compared: the sound that the anchor is compared with, as it is spoken; empty where it is with none.
    """

    task: str
    variant: str
    anchor: str
    polarity: str
    compared: str = ""


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
    Asked(task='classification', variant='overlap', anchor='brass section', polarity='', compared='')

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
            labels = match.groupdict(default="")
            asked = Asked(task, variant, labels.get("a", ""), template.polarity, labels.get("b", ""))
            readings.append(Wording(asked, template))
    if not readings:
        return None
    best = min(readings, key=lambda reading: len(reading.asked.anchor) + len(reading.asked.compared))
    if best.asked.polarity and options and {option.casefold() for option in options} != {"yes", "no"}:
        return None
    return best


@cache
def _patterns() -> tuple[tuple[tuple[str, str], Template, re.Pattern[str]], ...]:
    """Each wording with the kind of question and a pattern of its text, in which labels are ``a`` and ``b``."""
    atoms = {(task, VARIANTS[task]): atom_templates(task) for task in ATOMS}
    return tuple(
        (kind, template, re.compile(_pattern(template.text)))
        for kind, wordings in {**all_templates(), **atoms}.items()
        for template in wordings
    )


def _pattern(text: str) -> str:
    """A regular expression of a wording; a label that is named twice is the same twice."""
    # Texts and names of labels take turns.
    parts, named = _GAP.split(text), set()
    pattern = ""
    for place, part in enumerate(parts):
        if place % 2 == 0:
            pattern += re.escape(part)
        elif part in named:
            pattern += f"(?P={part})"
        else:
            named.add(part)
            pattern += rf"(?P<{part}>\S(?:.*\S)?)"
    return pattern
