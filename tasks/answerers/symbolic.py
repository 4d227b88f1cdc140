"""Answers from events, by the rules by which questions are made.

Activities come from `annotations.intervals`. The rules are the rules of the questions, extended to ambiguous cases: a
question is asked only if the labels decide its answer beyond doubt, while a detector's events may be in between, and
get the nearest option. So the answer is right if the events are right, and never missing.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from audio_compositionality.dataset_builder.sounds.annotations import (
    STEPS,
    Annotation,
    Rules,
    activities,
    intersection,
    longest,
    together,
    total,
    widened,
)
from audio_compositionality.dataset_builder.texts.question_controls import options_left
from audio_compositionality.dataset_builder.texts.question_tasks import BEFORE, PRESENT
from audio_compositionality.dataset_builder.texts.questions import OVERLAP, YES, annotation_of, in_sentence

from .chooser import Chooser, Prompted, answerer_card, drawn, letters, prompted

RULES_VERSION = 2
"""Increases with any change of an answer."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def place_of_answer(asked: Prompted, annotation: Annotation) -> int | None:
    """Return the index of the right option given the events, or of the nearest; None if the question cannot be parsed.

    Args:
        asked: the question and its options.
        annotation: the events; labels are compared in their spoken form.
    """
    if asked.wording is None:
        return None
    rules, (what, _) = Rules.of(annotation), asked.wording
    heard = {in_sentence(label): activity for label, activity in activities(annotation).items() if activity}
    # The sounds that are long enough for questions.
    plainly = {label: activity for label, activity in heard.items() if total(activity) >= rules.min_event}
    # Smallest number of shared steps that count as overlap: halfway between none and the overlap that questions
    # require.
    least = rules.min_overlap / 2
    anchor = heard.get(what.anchor, ())
    of_options = [heard.get(option, ()) for option in asked.options]
    regions = [region for region in together(heard.values()) if region[1] - region[0] >= least]
    match asked.kind:
        # Labels of rows do not distinguish sources of one kind.
        case "counting/kinds" | "counting/sources":
            return _nearest(asked.options, len(plainly))
        case "counting/together":
            counts = range(len(plainly), 0, -1)
            most = (count for count in counts if longest(together(plainly.values(), count)) >= least)
            return _nearest(asked.options, next(most, 0))
        case "detection/regions":
            return _nearest(asked.options, len(regions))
        case "duration/total" | "duration/longest":
            lengths = [(total if what.variant == "total" else longest)(activity) for activity in of_options]
            return lengths.index(max(lengths))
        case "concurrency/anchor":
            rest = [activity for label, activity in plainly.items() if label != what.anchor]
            overlaps = any(longest(intersection(anchor, activity)) >= least for activity in rest)
            return _yes_or_no(asked.options, overlaps == (what.polarity == OVERLAP))
        case "concurrency/clip":
            pairs = combinations(plainly.values(), 2)
            overlaps = any(longest(intersection(*pair)) >= least for pair in pairs)
            return _yes_or_no(asked.options, overlaps == (what.polarity == OVERLAP))
        case "presence/heard":
            # Halfway between none and the smallest overlap in questions.
            is_present = total(anchor) >= rules.min_event / 2
            return _yes_or_no(asked.options, is_present == (what.polarity == PRESENT))
        case "sequence/onsets":
            # An absent sound counts as beginning after a present one.
            first, second = (
                min((start for start, _ in activity), default=math.inf)
                for activity in (anchor, heard.get(what.compared, ()))
            )
            return _yes_or_no(asked.options, (first < second) == (what.polarity == BEFORE))
        case "classification/overlap":
            # The longest overlap with the anchor; without one the nearest sound, then any present sound.
            near = [total(intersection(widened(anchor, STEPS), widened(activity, STEPS))) for activity in of_options]
            shared = [longest(intersection(anchor, activity)) for activity in of_options]
            ranks = list(zip(shared, near, map(total, of_options), strict=True))
            return ranks.index(max(ranks))
        case "detection/first":
            windows = [[float(number) * STEPS for number in _NUMBER.findall(option)] for option in asked.options]
            if any(len(window) != 2 for window in windows):
                return None
            # Without an overlap, take where two sounds come close; choose the window whose middle is nearest to the
            # beginning of that stretch.
            close = together([widened(activity, STEPS // 2) for activity in heard.values()])
            onset = next(iter([*regions, *close]), (0, 0))[0]
            distances = [abs(onset - sum(window) / 2) for window in windows]
            return distances.index(min(distances))
    return None


def _yes_or_no(options: Sequence[str], says_yes: bool) -> int:
    return next(place for place, option in enumerate(options) if (option == YES) == says_yes)


def _nearest(options: Sequence[str], count: int) -> int:
    """Return the option whose number is nearest to a count."""
    numbers = [float(match[0]) if (match := _NUMBER.search(option)) else float("inf") for option in options]
    return min(range(len(options)), key=lambda place: (abs(numbers[place] - count), numbers[place]))


class _LabelReader(Chooser):
    """An answerer that reads the labeled events of a row, but not its answer."""

    @property
    def abilities(self) -> frozenset[str]:
        """Return that it reads labels instead of sound."""
        return super().abilities | {"labels"}

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`.

        Raises:
            ModelError: a clip has no row.
        """
        rows = self.rows_of(clips)
        return letters(
            self._place(prompted(prompt), prompt, dict(row)) for prompt, row in zip(prompts, rows, strict=True)
        )

    @abstractmethod
    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        """Return the index of the chosen option."""


class Oracle(_LabelReader):
    """Knows the events and answers by the symbolic rules."""

    card = answerer_card("oracle", "reads the labels with their times", kind="control")

    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        return place_of_answer(asked, annotation_of(row))


class Present(_LabelReader):
    """Knows which sounds are present, but not when: draws from the options that remain. See `options_left`."""

    card = answerer_card("present", "reads the labels without their times", kind="control")

    def _place(self, asked: Prompted, prompt: str, row: dict[str, Any]) -> int | None:
        if asked.wording is None:
            return None
        heard, (what, _) = {in_sentence(event["label"]) for event in row["events"]}, asked.wording
        left = options_left(asked.kind, asked.options, heard, what.anchor, what.polarity)
        possible = [option for option in asked.options if option in left] or list(asked.options)
        return asked.options.index(possible[drawn(len(possible), prompt, row["id"])])
