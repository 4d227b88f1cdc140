"""Kinds of models that a reader must tell apart, such as trained ones and baselines, and what tasks ask of them."""

from __future__ import annotations

from enum import Enum

from audio_compositionality.encoders.base import kind_name
from audio_compositionality.evaluator.results.result import Model
from audio_compositionality.tasks.base import TaskInfo


def asked_of(info: TaskInfo) -> str:
    """What a task asks models to be, in words."""
    return kind_name(info.needs).replace("encoder", "encoders").replace("model", "models")


UNTRAINED_PARADIGM = "untrained"
BASELINE_PARADIGMS = ("baseline", "none")
"""The first words that cards use for how a model was trained, where it was not."""
CONTROL_PARADIGM = "control"
"""The first word that the card of a model says whose input is changed: its texts sorted, its clips reversed."""


class ModelKind(Enum):
    """What a model's score can be evidence of; the value is its name for people."""

    TRAINED = "model"
    UNTRAINED = "untrained network"
    BASELINE = "baseline"
    CONTROL = "control"


def kind_of(model: Model) -> ModelKind:
    """The kind of a model, from what its card says of its training."""
    first = (model.paradigm or "").split(" ")[0]
    if first == UNTRAINED_PARADIGM:
        return ModelKind.UNTRAINED
    if first == CONTROL_PARADIGM:
        return ModelKind.CONTROL
    return ModelKind.BASELINE if first in BASELINE_PARADIGMS else ModelKind.TRAINED
