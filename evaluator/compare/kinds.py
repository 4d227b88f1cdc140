"""Kinds of models that a reader must tell apart: trained ones, untrained networks, baselines."""

from __future__ import annotations

from enum import Enum

from audio_compositionality.evaluator.results.result import Model

UNTRAINED_PARADIGM = "untrained"
BASELINE_PARADIGMS = ("baseline", "none")
"""The first words that cards use for how a model was trained, where it was not."""


class ModelKind(Enum):
    """What a model's score can be evidence of; the value is its name for people."""

    TRAINED = "model"
    UNTRAINED = "untrained network"
    BASELINE = "baseline"


def kind_of(model: Model) -> ModelKind:
    """The kind of a model, from what its card says of its training."""
    first = (model.paradigm or "").split(" ")[0]
    if first == UNTRAINED_PARADIGM:
        return ModelKind.UNTRAINED
    return ModelKind.BASELINE if first in BASELINE_PARADIGMS else ModelKind.TRAINED
