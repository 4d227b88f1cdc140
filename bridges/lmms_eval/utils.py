"""What the YAML files of lmms-eval call: the sound and the scores of a question.

A doc states, as JSON under ``posed``, the arguments of `pose`; so any process of lmms-eval can open its task.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from audio_compositionality.support.errors import InputError

from ..questions import PosedTask, pose

ANSWERS_RIGHT = "answers_right"
"""The mean score of single answers: with options the share that is right. The other measures are the task's."""

Doc = Mapping[str, Any]


def _task(doc: Doc) -> PosedTask:
    return pose(**json.loads(doc["posed"]))


def doc_to_audio(doc: Doc) -> list[dict[str, Any]]:
    """The sound of a question: float32 [samples] in [-1, 1] and its rate in Hz."""
    posed = _task(doc)
    clip = posed.sound(posed.questions[doc["id"]])
    return [{"array": clip.waveform, "sampling_rate": clip.sample_rate}]


def process_results(doc: Doc, results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What each measure needs of an answer. A score is stated beside single answers alone: lmms-eval takes standard
    errors from it, and standard errors of the task's measures would differ.

    Raises:
        InputError: the first result is no text.
    """
    posed, answer = _task(doc), results[0] if isinstance(results, list | tuple) and results else None
    if not isinstance(answer, str):
        raise InputError(f"lmms-eval gives no text as the answer to {doc['id']}, but {type(answer).__name__}")
    item = {"id": doc["id"], "answer": answer, "posed": doc["posed"]}
    score = posed.questions[doc["id"]].score(answer)
    return {
        ANSWERS_RIGHT: {"id": doc["id"], "score": score, "group": doc["group"]},
        **{name: {**item, "measure": name} for name in posed.measures},
    }


def mean_score(items: Sequence[Mapping[str, Any]]) -> float:
    """The mean score of the answers."""
    return fmean(item["score"] for item in items)


def task_measure(items: Sequence[Mapping[str, Any]]) -> float:
    """A measure of the task, of all answers together; NaN where it is not defined."""
    answers = {item["id"]: item["answer"] for item in items}
    return _task(items[0]).scores(answers).get(items[0]["measure"], math.nan)
