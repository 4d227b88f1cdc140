"""Predictive validity: does a score predict how well an embedding serves other tasks, on sounds that no score uses?

`DECLARED` fixes what is asked, before anything is measured: the scores, the tasks, and what counts as predicting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """A score that might predict: its title, the task of this package that computes it, and the measure."""

    title: str
    task: str
    measure: str


@dataclass(frozen=True)
class Declaration:
    """What is asked, fixed before the study is run.

    Attributes:
        scores: the scores. All sounds behind them are tones of our generator or spoken words.
        others: predictors that are not scores, by title: what they are.
        tasks: the downstream tasks, by title: what their number is. All of it on drums, creatures and instruments.
        control: title of the score that the partial correlation holds fixed.
        second_control: what a second partial correlation holds fixed; it does not decide.
        confidence: of the intervals, which resample models with all their layers.
        resamples: of the bootstrap.
        least_tasks: a score predicts beyond recognition if the interval of its partial correlation lies above 0 in at
            least this number of tasks. `control` itself is judged by its plain correlation.
    """

    scores: tuple[Score, ...]
    others: Mapping[str, str]
    tasks: Mapping[str, str]
    control: str
    second_control: str
    confidence: float = 0.95
    resamples: int = 4000
    least_tasks: int = 2


DECLARED = Declaration(
    scores=(
        Score("A-COAT", "a_coat", "a_coat"),
        Score("A-COAT adjusted", "a_coat", "adjusted"),
        Score("A-COAT top-1", "a_coat", "top1"),
        # The closed form of the centred score: 60 fits of the transformer would cost more than all the embeddings.
        Score("A-TRE centred (ridge)", "a_tre", "ridge_centred"),
        Score("Instances: alone", "a_coat_instances", "alone_top1"),
        Score("Instances: part", "a_coat_instances", "part_top1"),
        Score("Instances: scene", "a_coat_instances", "top1"),
        Score("Instances: kept", "a_coat_instances", "kept"),
        Score("Informativeness", "informativeness", "informativeness"),
        Score("Equivariance", "equivariance", "r_equivariance"),
        Score("Invariance", "invariance", "abx"),
        Score("Disentanglement", "disentanglement", "unseen"),
    ),
    others={
        "Closeness to log-mel": "Spearman's rho of the distances between the clips of A-COAT with those in log-mel "
        "statistics",
        "Parameters": "number of weights of the network, 0 without one",
    },
    tasks={
        "tagging": "mean average precision of the labels of mixtures of 1 to 4 recordings, by a linear probe",
        "counting": "Spearman's rho of the number of sources in these mixtures with the prediction of a linear probe",
        "few-shot": "accuracy of the nearest class mean for a recording under an interfering sound at 0 dB",
        "retrieval": "mean average precision of the mixtures that contain a recording, ranked by their cosine with it",
    },
    control="Instances: alone",
    second_control="accuracy of the nearest class mean for single downstream recordings, without interference",
)

TONES: Mapping[str, Any] = {
    "duration": 2,
    "rate_range": (1.0, 6.0),
    "quadruples": 32,
    "quadruple_candidates": 4_000,
    "scene_candidates": 8_000,
    "train_scenes": 112,
    "validation_scenes": 16,
    "test_scenes": 32,
    "stars": 1,
    "crossed_levels": (4, 3, 3, 3),
    "bases": 6,
    "untransformed": 4,
}
"""Settings of A-COAT, A-TRE and the axes, on tones."""

WORDS: Mapping[str, Any] = {"duration": 2, "blocks": 8, "classes": 6}
"""Settings of the instances, on words."""

CLASSES: Mapping[str, tuple[str, ...]] = {
    "drums": ("closed-hat", "crash", "kick", "open-hat", "ride", "snare"),
    "creatures": ("dwarf", "gryphon", "wolf", "zombie"),
    "instruments": ("clarinet", "grand-piano", "harp", "marimba", "trumpet", "violin"),
}
"""Downstream classes, by the name of their sounds; recordings of all other labels interfere."""

TRAIN, TEST = 4, 3
"""Recordings of a class; no kit or soundfont has recordings in both parts."""

MIXTURES: Mapping[str, int] = {"train": 144, "test": 96}
"""Mixtures, with as many of each number of sources from 1 to 4."""

SECONDS, RATE, SPREAD = 2.0, 32_000, 3.0
"""Length and rate of a downstream clip; SPREAD is the greatest deviation of a source's level in dB."""
