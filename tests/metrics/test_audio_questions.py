"""The metric of questions of any benchmark: by hand, and beside `polybench` on the same questions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from audio_compositionality.metrics.answers import LETTERS
from audio_compositionality.metrics.audio_questions import audio_questions
from audio_compositionality.metrics.polybench import polybench

from .contract import MetricContract


def example() -> dict[str, Any]:
    """Return arguments of `audio_questions`: 16 questions in every rotation of their options, two in three right."""
    rng = np.random.default_rng(0)
    texts = {"source": ["bell", "brass", "organ"], "mood": ["sad", "happy", "calm", "tense"]}
    rows: dict[str, list[Any]] = {
        name: [] for name in ("predictions", "references", "options", "kinds", "ids", "groups")
    }
    for number in range(8):
        for kind, options in texts.items():
            answer = options[number % len(options)]
            for turn in range(len(options)):
                shown = options[turn:] + options[:turn]
                place = shown.index(answer) if rng.random() < 2 / 3 else int(rng.integers(len(shown)))
                said = f"{LETTERS[place]}. {shown[place]}" if rng.random() < 0.9 else "I cannot say."
                entries = (said, answer, shown, kind, f"{kind} {number}", f"clip {number}")
                for column, entry in zip(rows.values(), entries, strict=True):
                    column.append(entry)
    return rows


class TestContract(MetricContract):
    name = "audio_questions"
    embeddings = ()
    needed = ("predictions", "references", "options")


def test_numbers_by_hand() -> None:
    options = [["dog", "rain"], ["sad", "happy", "calm"], ["1", "2", "3", "4"], ["dog", "rain"]]
    answers = ["B. rain", "It sounds happy.", "I cannot hear it.", "The dog."]
    kinds, groups = ["source", "mood", "count", "source"], ["a", "a", "b", "b"]
    result = audio_questions(answers, ["rain", "sad", "2", "dog"], options, kinds=kinds, groups=groups)
    assert result["accuracy"] == 2 / 4
    assert result["accuracy_of_kinds"] == pytest.approx((1 + 0 + 0) / 3)
    assert result["chance"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 4 + 1 / 2) / 4)
    # One text, or one position, is right in half of the two questions on sources, and always in a single question.
    assert result["without_listening"] == pytest.approx((2 * 1 / 2 + 1 + 1) / 4)
    assert (result["unparsed"], result["refused"], result["accuracy_parsed"]) == (1, 1, 2 / 3)
    assert (result["groups"], result["groups_right"]) == (2, 0)
    assert result["groups_right_chance"] == pytest.approx((1 / 2 * 1 / 3 + 1 / 4 * 1 / 2) / 2)
    assert {kind: part["accuracy"] for kind, part in result["by_kind"].items()} == {"count": 0, "mood": 0, "source": 1}
    assert result["consistency"] is None


def test_orders_of_one_question_count_once_and_agree_with_polybench() -> None:
    given = example()
    kinds = given.pop("kinds")
    ours = audio_questions(**given, kinds=kinds, return_scores=True)
    tasks = [{"source": "counting", "mood": "duration"}[kind] for kind in kinds]
    theirs = polybench(**given, tasks=tasks, return_scores=True)
    assert ours["accuracy"] == theirs["accuracy_micro"] == np.mean(ours["scores"])
    assert ours["accuracy_of_kinds"] == theirs["accuracy"]
    assert ours["interval"] == theirs["intervals"]["accuracy_micro"]
    same = ("n", "answers", "unparsed", "refused", "groups_right", "groups_right_chance", "consistency")
    same += ("consistency_chance", "all_orders_right", "position_distance", "choices", "rules", "position")
    assert {name: ours[name] for name in same} == {name: theirs[name] for name in same}
    assert ours["scores"] == theirs["scores_correct"]


def test_refusals_say_which_metric() -> None:
    with pytest.raises(ValueError, match="audio_questions got references, options without predictions"):
        audio_questions(None, ["a"], [["a", "b"]])
    with pytest.raises(ValueError, match="The right answer must occur once among its options"):
        audio_questions(["a"], ["c"], [["a", "b"]])
