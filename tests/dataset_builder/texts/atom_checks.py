"""Whether answers to atomic questions are right, by another way than that by which they were made.

As in `answer_check`, a clip is looked at in frames of 10 ms, each with what is heard in its middle. What is asked is
read from the words of the question; nothing of `ATOM_KINDS` is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.texts.questions import in_sentence

_SAYS_NO = re.compile(r"\b(missing|never|without|absent|free of|cannot)\b")
_SECOND_FIRST = re.compile(r"\b(after|later|last)\b")


def check_atoms(rows: Iterable[Row]) -> int:
    """The number of questions, which are all right; or AssertionError."""
    faults = [(row["id"], fault_of_atom(row)) for row in rows]
    assert [fault for fault in faults if fault[1]] == []
    return len(faults)


def fault_of_atom(row: Row) -> str | None:
    """What is wrong with an atomic question; None where nothing is."""
    if sorted(row["options"]) != ["No", "Yes"]:
        return f"its options are {row['options']}; they are Yes and No"
    truth = _truth(row)
    if isinstance(truth, str):
        return truth
    right = "Yes" if truth else "No"
    return None if row["answer"] == right else f"the answer is {row['answer']!r}, right is {right!r}"


def _truth(row: Row) -> bool | str:
    """Whether what the question asks is so, or why that cannot be said."""
    text = row["question"].casefold()
    frames = {label: _frames(row, label) for label in dict.fromkeys(event["label"] for event in row["events"])}
    if row["task"] == "presence":
        if in_sentence(row["anchor"]).casefold() not in text:
            return f"it does not name {row['anchor']!r}"
        count = len(frames.get(row["anchor"], ()))
        if 0 < count < 24:
            return f"{row['anchor']!r} is heard for {count} frames only"
        return (count > 0) != bool(_SAYS_NO.search(text.replace(in_sentence(row["anchor"]).casefold(), "")))
    if row["task"] != "sequence":
        return f"nothing is known of questions {row['task']}"
    # Those two of the labels that the question names, in the order in which it does.
    places = {label: text.find(f"the {in_sentence(label).casefold()}") for label in frames}
    named = sorted((label for label in places if places[label] >= 0), key=lambda label: places[label])
    named = [
        label for label in named if not any(label != one and in_sentence(label) in in_sentence(one) for one in named)
    ]
    if len(named) != 2:
        return f"it names {len(named)} of the sounds that are heard; two are compared"
    first, second = named
    step = int(frames[second][0]) - int(frames[first][0])
    if abs(step) < 49:
        return f"{first!r} and {second!r} begin within {abs(step)} frames"
    return (step > 0) != bool(_SECOND_FIRST.search(text))


def _frames(row: Row, label: str) -> NDArray[np.intp]:
    """The frames in whose middle a label is heard."""
    middles = (np.arange(math.ceil(row["duration"] * 100) + 1) + 0.5) / 100
    heard = np.zeros(len(middles), bool)
    for event in row["events"]:
        if event["label"] == label:
            heard |= (middles >= event["onset"]) & (middles < event["offset"])
    return np.flatnonzero(heard)
