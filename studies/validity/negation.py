"""Checks of negation and of pairs of clips: models with one ability each, compared with theory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import PAUSE, Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recipes.negation import WORDINGS
from audio_compositionality.dataset_builder.recipes.two_clips import DIFFERENCES, WHICH
from audio_compositionality.tasks.base import Outputs

from .checks import Chapter, Check, Part, chance_near, near, numbers, scored

NEGATION, NEGATION_QUESTIONS, TWO_CLIPS = "negation", "negation_questions", "two_clips"

Heard = Sequence[str]
"""Labels of a clip, in the order of time."""

_TRUTHS: Mapping[str, Callable[[Heard, str, str], bool]] = {
    "no": lambda heard, x, z: z in heard,
    "without": lambda heard, x, z: z in heard,
    "nothing else": lambda heard, x, z: set(heard) != {x},
    "nothing besides": lambda heard, x, z: set(heard) != {x},
    "not only": lambda heard, x, z: set(heard) == {x},
    "not just": lambda heard, x, z: set(heard) == {x},
    "times": lambda heard, x, z: list(heard).count(x) == 3,
    "than": lambda heard, x, z: list(heard).count(x) > list(heard).count(z),
    "not before": lambda heard, x, z: _first(heard, x) < _first(heard, z),
    "not after": lambda heard, x, z: _first(heard, x) < _first(heard, z),
}
"""Whether the affirming caption of each template is true; the denying one is true if it is false."""

Believer = Callable[[str, Heard], float]
"""A model: returns how much it believes a caption of a clip, from 0 to 1."""


def _first(heard: Heard, label: str) -> int:
    return list(heard).index(label) if label in heard else len(heard)


def said(caption: str) -> tuple[str, bool, str, str]:
    """Return the template of a caption, whether it is the denying one, and its labels x and z (empty if absent)."""
    for wording in dict.fromkeys(one for of_kind in WORDINGS.values() for both in of_kind for one in both):
        for denies, text in ((True, wording.denying), (False, wording.affirming)):
            match = re.fullmatch(text.replace("{x}", "(?P<x>.+)").replace("{z}", "(?P<z>.+)"), caption)
            # "only x" is no caption of a sound called "not only x" or "x and some z".
            if match and not any(f" {word} " in f" {' '.join(match.groups())} " for word in _WORDS):
                return wording.name, denies, match["x"], match.groupdict().get("z", "")
    raise AssertionError(f"no template reads {caption!r}")


_WORDS = ("and", "with", "without", "not", "nothing", "something", "heard", "before", "after", "than", "only", "just")


def believer(*, blind: bool = False, bag: bool = False, ear: Callable[[Heard], Heard] = tuple) -> Believer:
    """Return a model of captions and sounds from which some abilities are removed.

    Args:
        blind: it takes every caption for the affirming one.
        bag: it cannot tell the two labels of a caption apart.
        ear: returns the facts of a clip that reach the model.
    """

    def believes(caption: str, heard: Heard) -> float:
        template, denies, x, z = said(caption)
        ways = ((x, z), (z, x)) if bag and z else ((x, z),)
        share = float(np.mean([_TRUTHS[template](ear(heard), *way) for way in ways]))
        return 1 - share if denies and not blind else share

    return believes


def liking(caption: str, heard: Heard) -> float:
    """Prefer some clips for captions that deny, and the others for captions that affirm, whatever the clips hold."""
    liked = int.from_bytes(" ".join(heard).encode(), "big") % 997 / 997
    return liked if said(caption)[1] else 1 - liked


_LABELS: Callable[[Heard], Heard] = lambda heard: sorted(set(heard))  # noqa: E731
_COUNTS: Callable[[Heard], Heard] = sorted
_ONSETS: Callable[[Heard], Heard] = lambda heard: ["sound"] * len(heard)  # noqa: E731

BELIEVERS: Mapping[str, tuple[Believer, dict[str, float]]] = {
    "all facts of text and audio": (believer(), {"": 1, "negated": 1, "affirmed": 1, "groups": 1}),
    "ignores the negating word": (believer(blind=True), {"": 0.5, "negated": 0, "affirmed": 1, "groups": 0}),
    "labels without order or number": (
        believer(ear=_LABELS),
        {"absence": 1, "only": 1, "number": 0.5, "order": 0.5, "groups": 0.5},
    ),
    "onsets and energy": (believer(ear=_ONSETS), {"": 0.5, "negated": 0.5, "affirmed": 0.5, "groups": 0}),
    "prefers a word for some clips": (liking, {"": 0.5, "negated": 0.5, "affirmed": 0.5}),
}
"""Models, and what theory expects: of all kinds (""), or of single ones; of measures; of groups of questions."""

BAG = (believer(bag=True), {"absence": 1, "only": 1, "number": 0.75, "order": 0.5})
"""A bag of words, for captions alone: it cannot tell the two labels of a caption apart."""


def drawn(name: str, seed: int, **changes: Any) -> tuple[Row, ...]:
    """Return the rows of a recipe; no sound is rendered."""
    recipe = load_recipe(name)
    return tuple(recipe.render(recipe.presets["mini"].changed(seed=seed, **changes)).rows)


def sounds_of(events: Sequence[Mapping[str, Any]]) -> Heard:
    """Return the labels of a clip in the order of time."""
    return [event["label"] for event in sorted(events, key=lambda event: event.get("start", event.get("onset")))]


def caption_measures(rows: Sequence[Row], believes: Believer) -> dict[str, float]:
    """Return scores of embeddings: each clip of an item is an axis, and a caption has the model's belief in it for each
    clip."""
    texts = [[believes(one, sounds_of(clip)) for clip in row["events"]] for row in rows for one in row["captions"]]
    outputs = Outputs(clips=np.tile(np.eye(2), (len(rows), 1)), texts=np.array(texts))
    return numbers(scored(NEGATION, rows, outputs))


def answer_measures(task: str, rows: Sequence[Row], answers: Callable[[Row], str]) -> dict[str, float]:
    """Return the scores of answers to questions."""
    return numbers(scored(task, rows, Outputs(answers=[answers(row) for row in rows])))


def believed(believes: Believer, row: Row) -> str:
    """Return the option that the model believes more; the first one if it believes both equally."""
    options: list[str] = row["options"]
    return max(options, key=lambda option: believes(option, sounds_of(row["events"])))


def captions(items: int, seed: int) -> list[Check]:
    """Check each model on captions: theory gives every number exactly."""
    checks, rows = [], drawn(NEGATION, seed, items=items)
    for subject, (believes, expected) in {**BELIEVERS, "bag of words": BAG}.items():
        measures = caption_measures(rows, believes)
        for kind in WORDINGS:
            value = measures[f"match_{kind}"]
            checks.append(near(subject, f"match, {kind}", expected.get(kind, expected.get("", 0)), value))
        for name in ("negated", "affirmed"):
            if name in expected:
                checks.append(near(subject, name, expected[name], measures[name]))
    clips, texts = np.random.default_rng(seed).normal(size=(2, 2 * items, 64))
    measures = numbers(scored(NEGATION, rows, Outputs(clips=clips, texts=texts)))
    counts = {"match": items, "negated": 3 * items // 4, "affirmed": 3 * items // 4}
    return [*checks, *(chance_near("random", name, 0.5, measures[name], count) for name, count in counts.items())]


def questions(items: int, seed: int) -> list[Check]:
    """Check the same models on questions; among options that they believe equally, they take the first."""
    checks, rows = [], drawn(NEGATION_QUESTIONS, seed, items=items)
    for subject, (believes, expected) in BELIEVERS.items():
        measures = answer_measures(NEGATION_QUESTIONS, rows, partial(believed, believes))
        for kind in WORDINGS:
            value = measures[f"accuracy_{kind}"]
            checks.append(near(subject, f"accuracy, {kind}", expected.get(kind, expected.get("", 0)), value))
        if "groups" in expected:
            checks.append(near(subject, "groups right", expected["groups"], measures["groups_right"]))
    habits: Mapping[str, Callable[[Row], str]] = {
        "always the first option": lambda row: str(row["options"][0]),
        "always the option that denies": lambda row: max(row["options"], key=lambda one: said(one)[1]),
    }
    for subject, answers in habits.items():
        measures = answer_measures(NEGATION_QUESTIONS, rows, answers)
        checks.append(near(subject, "accuracy", 0.5, measures["accuracy"]))
        checks.append(near(subject, "groups right", 0, measures["groups_right"]))
    return checks


Two = tuple[Heard, Heard]


def two_of(row: Row) -> Two:
    """Return the labels of the two clips of a question."""
    late = row["duration"] / 2 + PAUSE
    first, second = ([one for one in row["events"] if (one["onset"] >= late) == is_late] for is_late in (False, True))
    return sounds_of(first), sounds_of(second)


def answered(row: Row, clips: Two) -> str:
    """Return the answer to a question, from the facts of its clips that are left."""
    first, second = clips
    asked = re.search(r"them is (.+?) heard(?: before (.+))?\?", row["question"])
    if asked is None:
        is_other = [set(first) != set(second), False, Counter(first) != Counter(second), True]
        is_other[1] = not is_other[0] and not is_other[2] and list(first) != list(second)
        return DIFFERENCES[is_other.index(True)]
    x, y = asked.groups()
    has = [x in clip if y is None else _first(clip, x) < _first(clip, y) for clip in clips]
    return WHICH[{(True, False): 0, (False, True): 1, (True, True): 2, (False, False): 3}[has[0], has[1]]]


def _left(ear: Callable[[Heard], Heard]) -> Callable[[Row], str]:
    return lambda row: answered(row, (ear(two_of(row)[0]), ear(two_of(row)[1])))


def _first_alone(row: Row) -> str:
    """Return the answer from the first clip alone."""
    first = two_of(row)[0]
    asked = answered(row, (first, []))
    return str(row["options"][0]) if asked in DIFFERENCES else WHICH[0 if asked == WHICH[0] else 1]


def _same_or_not(row: Row) -> str:
    first, second = two_of(row)
    is_which = WHICH[0] in row["options"]
    if first == second:
        return WHICH[2] if is_which else DIFFERENCES[3]
    return WHICH[0] if is_which else DIFFERENCES[0]


LISTENERS: Mapping[str, tuple[Callable[[Row], str], tuple[float, float, float, float]]] = {
    "all facts of both clips": (lambda row: answered(row, two_of(row)), (1, 1, 1, 1)),
    "always the first option": (lambda row: str(row["options"][0]), (0.25, 0.25, 0.25, 0)),
    "the first clip alone": (_first_alone, (0.5, 0.5, 0.25, 0)),
    "same or not": (_same_or_not, (0.5, 0.5, 0.5, 0)),
    "exchanges the clips": (lambda row: answered(row, two_of(row)[::-1]), (0.5, 0.5, 1, 1 / 3)),
    "labels and number without order": (_left(_COUNTS), (1, 0.25, 0.75, 1 / 3)),
    "labels alone": (_left(_LABELS), (1, 0.25, 0.5, 1 / 3)),
    "onsets and energy": (_left(_ONSETS), (0.25, 0.25, 0.25, 0)),
}
"""Models; accuracy in which has, which order and what differs, and groups right, by theory."""


def two_clips(groups: int, seed: int) -> list[Check]:
    """Check each model on questions about two clips: theory gives every number exactly."""
    checks, rows = [], drawn(TWO_CLIPS, seed, comparisons=groups)
    for subject, (answers, expected) in LISTENERS.items():
        measures = answer_measures(TWO_CLIPS, rows, answers)
        names = ("accuracy_which_has", "accuracy_which_order", "accuracy_what_differs", "groups_right")
        for name, value in zip(names, expected, strict=True):
            checks.append(near(subject, name.replace("_", " "), value, measures[name]))
    return checks


_part = Chapter("negation.yaml", "one word, two clips").part


def chapter(*, quick: bool, simulations: int, seed: int, progress: bool) -> tuple[Part, ...]:
    """Check the scores of negation and of two clips; see `dials.chapter`. Nothing is simulated."""
    items, groups = (80, 30) if quick else (400, 120)
    parts = [_part("chapter", level=2, items=items, questions=2 * items, groups=groups)]
    made = ((NEGATION, captions, items), (NEGATION_QUESTIONS, questions, items), (TWO_CLIPS, two_clips, groups))
    for key, check, count in tqdm(made, desc="negation, two clips", disable=not progress):
        parts.append(_part(key, check(count, seed)))
    return tuple(parts)
