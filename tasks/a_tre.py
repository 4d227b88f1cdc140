"""A-TRE: can a small model rebuild a scene's embedding from its attributes (arXiv 2603.13685, sections 3.3 and 4.4)?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.text import nearest

from . import scenes
from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo
from .metric_files import describe_metric
from .training_curves import CURVES, draw_curves, flat_curves

FULL_STEPS, FEW_STEPS, FEW_SCENES = 2_500, 600, 2_000
"""Training steps: 2,500 (20 epochs of the paper's 8,000 scenes in batches of 64, section 4.4); 600 where there are
fewer than 2,000 training scenes, as in the preset mini, whose 512 it passes 75 times."""

SEEDS = 3
"""Fits, from the seeds 0, 1 and 2, so that their spread can be told from that of the scenes."""

BATCH, EPOCHS = 64, 20
"""Training scenes of a step, and passes over them, where the paper is followed to the letter (section 4.4)."""

POST_NORM = "post-norm"
"""The layer of ``torch.nn.TransformerEncoderLayer`` as it comes; the paper names no other."""

WIDTH, DROPOUT = 2_048, 0.1
"""Of that layer: PyTorch's defaults."""

_METRIC = describe_metric("a_tre")


class ATre:
    """The task; see `Task`."""

    info = TaskInfo(
        name="a_tre",
        version=_METRIC.version,
        title="A-TRE",
        question="Can a small model rebuild the embedding of a scene from the attributes of its sources?",
        benchmark="coat",
        recipe="a_tre",
        needs=ENCODER,
        samples="test scenes",
        measures=_METRIC.measures,
        ranks_by="a_tre_centred",
        trusted={"a_tre_centred": None, "top1": "top1_chance"},
        warning=(
            "Most of a raw score is what all embeddings share: a constant added to all of them brings it as near to 1 "
            "as one likes. Compare each encoder with its constant, and rank by the centred score, which loudness alone "
            "raises too: top-1 shows that. Read it beside an untrained network and log-mel-statistics: what they "
            "reach as well was not learnt."
        ),
        citation=_METRIC.citation,
        protocols={"paper": {"layer": POST_NORM}},
    )
    drawings: tuple[Drawing, ...] = (
        Drawing(
            name="training_curves",
            title=(
                "Mean cosine in training and validation over the steps of the fits, and the step that was kept, a dot: "
                "whether they fit too little or too much."
            ),
            alternative="Curves of training and validation over the steps of the fits, a panel a model.",
            columns=(),
            training=CURVES,
            panel=draw_curves,
            x="steps of the fit",
            y="mean cosine",
        ),
    )

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a scene."""
        return Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """``seeds`` of the fits, a list or how many, and their ``max_steps``.

        Where ``layer`` is requested, the settings have it too: ``pre-norm``, which is that of the metric, or
        ``post-norm``, which brings the rest of the paper's text with it: one seed, 20 epochs, ``validate_every`` epoch,
        ``width`` and ``dropout`` of PyTorch's layer, all of which can be requested to be others.

        Raises:
            TaskError: a split has too few scenes, a test scene has a label that no training scene has, or a requested
                setting is not a list of seeds, a number of steps, a layer and what it has.
        """
        _check_rows(rows)
        training = sum(row["split"] == "train" for row in rows)
        settings = {name: requested.get(name, default) for name, default in _defaults(training, requested).items()}
        _check_layer(settings)
        if _is_count(settings["seeds"]):
            settings["seeds"] = list(range(settings["seeds"]))
        seeds = settings["seeds"]
        if not isinstance(seeds, list) or not seeds or len(set(seeds)) < len(seeds) or not all(map(_is_count, seeds)):
            raise TaskError(f"seeds are {seeds!r}; give how many fits to make, or a list of different whole numbers")
        if not _is_count(settings["max_steps"]) or settings["max_steps"] < 1:
            raise TaskError(f"max_steps is {settings['max_steps']!r}; it must be a whole number from 1 on")
        return settings

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Fit on the training scenes, score the test scenes."""
        # Importing the metric imports torch, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.a_tre.a_tre import a_tre

        gains = [row.get("gains") or [] for row in rows]
        values = a_tre(
            outputs.clips,
            [row["metadata"] for row in rows],
            [row["split"] for row in rows],
            gains=gains if all(gains) else None,
            **settings,
            device=device,
            progress=progress,
            return_scores=True,
        )
        columns = {
            "score": np.asarray(values.pop("scores"), np.float64),
            "score_centred": np.asarray(values.pop("scores_centred"), np.float64),
            "score_top1": np.asarray(values.pop("scores_top1"), np.float64),
        }
        training = {name: values.pop(name) for name in ("steps", "steps_centred")}
        training |= flat_curves(values.pop("curves"), values.pop("curves_centred"))
        return Scores(values, tuple(row["id"] for row in _test_rows(rows)), columns, training)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """The scenes of the split test, each its own."""
        tested = _test_rows(rows)
        sources = [row["metadata"] for row in tested]
        counts = scenes.counts(sources)
        return Samples(
            rows=tuple(tested),
            clusters=np.arange(len(tested)),
            diversity=scenes.entropies(tested, [sources]),
            diversity_name="H",
            held_fixed={"number of sources": counts},
            groups={"the number of sources": tuple(map(str, counts))},
            contents=tuple({"scene": scenes.labels_for_people(scene)} for scene in sources),
        )


def _test_rows(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["split"] == "test"]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _defaults(training: int, requested: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for a number of training scenes, before what is requested of them."""
    steps = FULL_STEPS if training >= FEW_SCENES else FEW_STEPS
    ours: dict[str, Any] = {"seeds": list(range(SEEDS)), "max_steps": steps}
    if "layer" not in requested:
        return ours
    if requested["layer"] != POST_NORM:
        return {**ours, "layer": "pre-norm"}
    epoch = math.ceil(training / BATCH)
    torchs = {"layer": POST_NORM, "width": WIDTH, "dropout": DROPOUT}
    return {"seeds": [0], "max_steps": EPOCHS * epoch, "validate_every": epoch, **torchs}


def _check_layer(settings: Mapping[str, Any]) -> None:
    layer, layers = settings.get("layer", "pre-norm"), ("pre-norm", POST_NORM)
    if layer not in layers:
        raise TaskError(f"layer is {layer!r}; {nearest(str(layer), layers)}")
    for name in ("width", "validate_every"):
        if not _is_count(settings.get(name, 1)) or settings.get(name, 1) < 1:
            raise TaskError(f"{name} is {settings[name]!r}; it must be a whole number from 1 on")
    dropout = settings.get("dropout", 0.0)
    if type(dropout) not in (int, float) or not 0 <= dropout < 1:
        raise TaskError(f"dropout is {dropout!r}; it is a rate, at least 0 and less than 1")


def _check_rows(rows: Sequence[Row]) -> None:
    """Refuse what the metric would refuse after the embedding."""
    for split, needed in (("train", 2), ("validation", 1), ("test", 1)):
        count = sum(row["split"] == split for row in rows)
        if count < needed:
            raise TaskError(f"a_tre has {count} scenes in the split {split}; it needs at least {needed}")
    trained = {label for row in rows if row["split"] == "train" for label in _labels(row)}
    for row in rows:
        unseen = sorted(_labels(row) - trained)
        if unseen:
            attribute, label = unseen[0]
            raise TaskError(
                f"row {row['id']} ({row['split']}) has {attribute} {label!r}, which no training scene has: nothing can "
                "be learnt of it"
            )


def _labels(row: Row) -> set[tuple[str, str]]:
    return {item for source in row["metadata"] for item in source.items()}


TASK = ATre()
