"""Answers from events, by the rules by which questions are made.

Activities are those of intervals (`annotations.intervals`). The rules are those of the questions, extended to the cases
that these leave open: a question is asked only where the labels decide its answer beyond doubt, while a detector's
events may lie in between, and get the nearest option. So the answer is right wherever the events are, and never
missing.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from audio_compositionality.dataset_builder.sounds.annotations import (
    STEPS,
    Activity,
    Annotation,
    Rules,
    activities,
    intersection,
    longest,
    together,
    total,
    widened,
)
from audio_compositionality.dataset_builder.texts.question_tasks import BEFORE, PRESENCE, PRESENT
from audio_compositionality.dataset_builder.texts.questions import YES, QuestionMeaning, annotation_of, in_sentence

from .chooser import Chooser, Prompted, answerer_card, drawn, letters

RULES_VERSION = 2
"""It rises with any change of an answer."""

_OVERLAP = "overlap"
"""The polarity by which Yes means concurrency; otherwise it means the opposite."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def place_of_answer(asked: Prompted, annotation: Annotation) -> int | None:
    """The place of the right option given the events, or of the nearest; None where the question cannot be read.

    Args:
        asked: the question and its options.
        annotation: the events; labels are compared as they are spoken.
    """
    if asked.wording is None:
        return None
    rules = Rules.of(annotation)
    heard = {in_sentence(label): activity for label, activity in activities(annotation).items() if activity}
    what, options = asked.wording.asked, asked.options
    answer = _ANSWERS.get(asked.kind)
    return None if answer is None else answer(what, options, heard, rules)


Heard = Mapping[str, Activity]


def _plainly(heard: Heard, rules: Rules) -> dict[str, Activity]:
    """The sounds that last long enough to be asked about."""
    return {label: activity for label, activity in heard.items() if total(activity) >= rules.min_event}


def _least(rules: Rules) -> float:
    """Fewest shared steps that count as overlap: halfway between none and the overlap that questions require."""
    return rules.min_overlap / 2


def _count(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    return _nearest(options, len(_plainly(heard, rules)))


def _count_at_once(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    plainly = tuple(_plainly(heard, rules).values())
    lasting = [n for n in range(1, len(plainly) + 1) if longest(together(plainly, n)) >= _least(rules)]
    return _nearest(options, max(lasting, default=0))


def _longest_event(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    lengths = [longest(heard.get(option, ())) for option in options]
    return lengths.index(max(lengths))


def _longest(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    totals = [total(heard.get(option, ())) for option in options]
    return totals.index(max(totals))


def _state_of_anchor(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    anchor = heard.get(asked.anchor, ())
    rest = [activity for label, activity in _plainly(heard, rules).items() if label != asked.anchor]
    overlaps = any(longest(intersection(anchor, activity)) >= _least(rules) for activity in rest)
    return _yes_or_no(options, overlaps == (asked.polarity == _OVERLAP))


def _state_of_clip(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    pairs = combinations(_plainly(heard, rules).values(), 2)
    overlaps = any(longest(intersection(*pair)) >= _least(rules) for pair in pairs)
    return _yes_or_no(options, overlaps == (asked.polarity == _OVERLAP))


def _is_there(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    # Halfway between none and the least that questions are asked about.
    is_present = total(heard.get(asked.anchor, ())) >= rules.min_event / 2
    return _yes_or_no(options, is_present == (asked.polarity == PRESENT))


def _begins_first(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    """An absent sound counts as beginning after a present one."""
    onsets = [
        min((start for start, _ in heard.get(label, ())), default=math.inf) for label in (asked.anchor, asked.compared)
    ]
    return _yes_or_no(options, (onsets[0] < onsets[1]) == (asked.polarity == BEFORE))


def _yes_or_no(options: Sequence[str], says_yes: bool) -> int:
    return next(place for place, option in enumerate(options) if (option == YES) == says_yes)


def _partner(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    """The option that overlaps the anchor longest; where none does, the one nearest to it, then one that is present at
    all."""
    anchor = heard.get(asked.anchor, ())

    def nearness(option: str) -> tuple[int, int, int]:
        activity = heard.get(option, ())
        near = intersection(widened(anchor, STEPS), widened(activity, STEPS))
        return longest(intersection(anchor, activity)), total(near), total(activity)

    return max(range(len(options)), key=lambda place: nearness(options[place]))


def _first_window(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int | None:
    """The window in which the first overlap begins, or the one whose middle is nearest to that."""
    windows = [[float(number) * STEPS for number in _NUMBER.findall(option)] for option in options]
    if any(len(window) != 2 for window in windows):
        return None
    regions = [region for region in together(heard.values()) if region[1] - region[0] >= _least(rules)]
    if not regions:
        # Without an overlap, two sounds that come near are the best guess.
        regions = list(together([widened(activity, STEPS // 2) for activity in heard.values()])) or [(0, 0)]
    onset = regions[0][0]
    return min(range(len(windows)), key=lambda place: abs(onset - sum(windows[place]) / 2))


def _count_regions(asked: QuestionMeaning, options: Sequence[str], heard: Heard, rules: Rules) -> int:
    regions = [region for region in together(heard.values()) if region[1] - region[0] >= _least(rules)]
    return _nearest(options, len(regions))


def _nearest(options: Sequence[str], count: int) -> int:
    """The option whose number is nearest to a count."""
    numbers = [float(match[0]) if (match := _NUMBER.search(option)) else float("inf") for option in options]
    return min(range(len(options)), key=lambda place: (abs(numbers[place] - count), numbers[place]))


_ANSWERS = {
    "counting/kinds": _count,
    # Labels of rows do not tell sources of one kind apart.
    "counting/sources": _count,
    "counting/together": _count_at_once,
    "duration/total": _longest,
    "duration/longest": _longest_event,
    "concurrency/anchor": _state_of_anchor,
    "concurrency/clip": _state_of_clip,
    "classification/overlap": _partner,
    "detection/first": _first_window,
    "detection/regions": _count_regions,
    "presence/heard": _is_there,
    "sequence/onsets": _begins_first,
}


class _LabelReader(Chooser):
    """An answerer with labels: it reads the events of a row, and not its answer."""

    @property
    def abilities(self) -> frozenset[str]:
        """It reads labels in place of sound."""
        return super().abilities | {"labels"}

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`.

        Raises:
            ModelError: a clip has no row.
        """
        row_of = iter(self.rows_of(clips))
        return letters(prompts, lambda asked, prompt: self._place(asked, prompt, dict(next(row_of))))

    @abstractmethod
    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        """The place of the option that is taken."""


class Oracle(_LabelReader):
    """Knows the events; answers by the symbolic rules."""

    card = answerer_card("oracle", "reads the labels with their times", kind="control")

    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        return place_of_answer(asked, annotation_of(row))


class Present(_LabelReader):
    """Knows which sounds are present, and not when: draws from the options that this leaves.

    It knows the number of kinds, which bounds how many can sound at once, and whether a kind is present. An absent kind
    neither overlaps nor lasts. The only kind that is present overlaps nothing.
    """

    card = answerer_card("present", "reads the labels without their times", kind="control")

    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        if asked.wording is None:
            return None
        heard = {in_sentence(event["label"]) for event in row["events"]}
        possible = self._possible(asked, heard) or list(asked.options)
        return asked.options.index(possible[drawn(len(possible), prompt, row["id"])])

    @staticmethod
    def _possible(asked: Prompted, heard: set[str]) -> list[str]:
        assert asked.wording is not None
        what = asked.wording.asked
        if asked.kind == "counting/kinds":
            return [option for option in asked.options if option == str(len(heard))]
        if asked.kind == "counting/together":
            return [option for option in asked.options if option.isdecimal() and int(option) <= len(heard)]
        if what.task in {"duration", "classification"}:
            return [option for option in asked.options if option in heard]
        if what.task == PRESENCE:
            says_yes = (what.anchor in heard) == (what.polarity == PRESENT)
            return [option for option in asked.options if (option == YES) == says_yes]
        if what.task == "concurrency" and len(heard) < 2:
            return [option for option in asked.options if (option == YES) == (what.polarity == "alone")]
        return []
