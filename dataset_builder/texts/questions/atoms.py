"""Atomic questions: is a sound heard, and does one begin before another? What is asked of overlap is made of these.

They stand beside the tasks of this folder and not among them: they are no part of what `tasks.question_tasks` asks.
Either is answered by Yes or No, in both polarities.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from ...sounds.formats.base import Annotation
from .base import NO_TIME, ORDER, QuestionError
from .templates import Template, spoken

PRESENCE, SEQUENCE = "presence", "sequence"
ATOMS = (PRESENCE, SEQUENCE)

VARIANTS: Mapping[str, str] = {PRESENCE: "heard", SEQUENCE: "onsets"}
"""The one variant of each."""

TIME: Mapping[str, str] = {PRESENCE: NO_TIME, SEQUENCE: ORDER}
"""What of time each needs, see `base.NO_TIME`."""

PRESENT, ABSENT, BEFORE, AFTER = "present", "absent", "before", "after"

STATES: Mapping[str, tuple[str, str]] = {PRESENCE: (PRESENT, ABSENT), SEQUENCE: (BEFORE, AFTER)}
"""What can be true of each; a polarity is the one of which Yes is right."""

LEAST_EVENT = 0.25
"""Seconds for which a sound has to be heard that is said to be present."""

LEAST_STEP = 0.5
"""Seconds between two beginnings, at least, so that one is said to be before the other."""

_WORDINGS: Mapping[str, tuple[str, ...]] = {
    PRESENT: (
        "Can the {a} be heard?",
        "Is the {a} heard at any time?",
        "Is the {a} among the sounds of this recording?",
        "Does the recording contain the sound of the {a}?",
        "Is the {a} audible anywhere in the clip?",
        "Do you hear the {a}?",
    ),
    ABSENT: (
        "Is the {a} missing from this recording?",
        "Is the {a} never heard?",
        "Is the recording without the sound of the {a}?",
        "Is the {a} absent from the clip?",
        "Is the clip free of the {a}?",
        "Is it true that the {a} cannot be heard?",
    ),
    BEFORE: (
        "Does the {a} begin before the {b}?",
        "Does the {a} start earlier than the {b}?",
        "Does the {a} set in before the {b} does?",
        "Is the beginning of the {a} earlier than that of the {b}?",
        "Has the {a} already begun when the {b} begins?",
        "Of the {a} and the {b}, does the {a} begin first?",
    ),
    AFTER: (
        "Does the {a} begin after the {b}?",
        "Does the {a} start later than the {b}?",
        "Does the {a} set in after the {b} does?",
        "Is the beginning of the {a} later than that of the {b}?",
        "Has the {b} already begun when the {a} begins?",
        "Of the {a} and the {b}, does the {a} begin last?",
    ),
}
"""By polarity; ``{a}`` is the sound that is asked about, ``{b}`` the one that it is compared with."""


@cache
def atom_templates(task: str) -> tuple[Template, ...]:
    """The wordings of a task, of both polarities.

    Raises:
        InputError: there is no such task.
    """
    if task not in ATOMS:
        raise InputError(f"there is no atomic question {task!r}; {nearest(task, ATOMS)}")
    texts = [(polarity, text) for polarity in STATES[task] for text in _WORDINGS[polarity]]
    return tuple(
        Template(f"{task}-{VARIANTS[task]}-{number:02d}", text, polarity)
        for number, (polarity, text) in enumerate(texts, 1)
    )


def atom_text(template: Template, anchor: str, other: str = "") -> str:
    """A wording about one sound, or about two."""
    return template.text.format(a=spoken(anchor), b=spoken(other))


def atoms_digest() -> str:
    """SHA-256 of all wordings: they are part of the data, and so of their fingerprint."""
    return hashlib.sha256(json.dumps(dict(_WORDINGS)).encode()).hexdigest()


def state_of(task: str, annotation: Annotation, anchor: str, other: str = "") -> str:
    """What is true of a clip: one of `STATES`.

    Args:
        task: one of `ATOMS`.
        annotation: what is heard.
        anchor: the label that is asked about.
        other: of a sequence, the label that it is compared with.

    Raises:
        QuestionError: it is neither of the two for certain: a sound is too short, both begin at nearly one time, or
            one of them is not heard.
    """
    onsets = {label: min(e.onset for e in annotation.events if e.label == label) for label in annotation.labels}
    if task == PRESENCE:
        if anchor not in onsets:
            return ABSENT
        total = sum(event.offset - event.onset for event in annotation.events if event.label == anchor)
        if total < LEAST_EVENT:
            raise QuestionError(f"{annotation.recording}: {anchor!r} is heard for {total:.2f} s, too short to say")
        return PRESENT
    missing = [label for label in (anchor, other) if label not in onsets]
    if missing:
        raise QuestionError(
            f"{annotation.recording}: {missing[0]!r} is not heard, so it begins neither before nor after"
        )
    step = round(onsets[other] - onsets[anchor], 6)
    if abs(step) < LEAST_STEP:
        raise QuestionError(f"{annotation.recording}: {anchor!r} and {other!r} begin within {abs(step):.2f} s")
    return BEFORE if step > 0 else AFTER
