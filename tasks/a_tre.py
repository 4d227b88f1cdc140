"""A-TRE: can a small model rebuild a scene's embedding from its attributes (arXiv 2603.13685, sections 3.3 and 4.4)?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec, TypedAs

from . import scenes
from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo, settings_among
from .metric_files import describe_metric
from .training_curves import CURVES, draw_curves, flat_curves

FULL_STEPS, FEW_STEPS, FEW_SCENES = 2_500, 600, 2_000
"""Training steps: 2,500 (20 epochs of the paper's 8,000 scenes in batches of 64, section 4.4); 600 where there are
fewer than 2,000 training scenes, as in the preset mini, whose 512 it passes 75 times."""

SEEDS = 3
"""Fits, from the seeds 0, 1 and 2, so that their spread can be told from that of the scenes."""

BATCH, EPOCHS = 64, 20
"""Training scenes of a step, and passes over them, where the paper is followed to the letter (section 4.4)."""

POST_NORM: Literal["post-norm"] = "post-norm"
"""The block of ``torch.nn.TransformerEncoderLayer`` as it comes; the paper names no other. The metric's argument is
``layer``, which of a model (``--layer``) is another thing."""

WIDTH, DROPOUT = 2_048, 0.1
"""Of that block: PyTorch's defaults."""

_METRIC = describe_metric("a_tre")


def _read_seeds(seeds: Any) -> Any:
    """Seeds from how many there are, or from a text, ``3`` or ``0, 2``."""
    if isinstance(seeds, str):
        parts = [int(part) if part.strip().isdecimal() else part for part in seeds.split(",")]
        seeds = parts[0] if len(parts) == 1 else parts
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        seeds = range(seeds)
    is_list = isinstance(seeds, list | tuple | range) and len(seeds) == len(set(seeds)) > 0
    if not is_list or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise InputError(f"seeds are {seeds!r}; give how many fits to make, or a list of different whole numbers")
    return tuple(seeds)


class ATreSpec(Spec):
    """What can be set of the task; what is none is decided by the block and the number of training scenes."""

    seeds: Annotated[
        tuple[int, ...] | None,
        BeforeValidator(lambda seeds: None if seeds is None else _read_seeds(seeds)),
        TypedAs("how many fits to make, or the seeds of them with commas between them"),
    ] = Field(None, description=f"Of the fits; none for the first {SEEDS}, of the block {POST_NORM} for the first.")
    max_steps: int | None = Field(
        None,
        ge=1,
        description=f"Training steps of a fit; none for {FULL_STEPS:,}, or {FEW_STEPS} where there are fewer than "
        f"{FEW_SCENES:,} training scenes, and for {EPOCHS} epochs with the block {POST_NORM}.",
    )
    block: Literal["pre-norm", "post-norm"] | None = Field(
        None,
        description=f"Transformer block; none for pre-norm. {POST_NORM} brings the rest of the paper's text with it.",
    )
    width: int | None = Field(None, ge=1, description=f"Of the block {POST_NORM}; none for {WIDTH:,}.")
    dropout: float | None = Field(None, ge=0, lt=1, description=f"Of the block {POST_NORM}; none for {DROPOUT}.")
    validate_every: int | None = Field(
        None, ge=1, description=f"Steps between validations with the block {POST_NORM}; none for an epoch."
    )

    @model_validator(mode="after")
    def _of_the_block(self) -> ATreSpec:
        given = [name for name in ("width", "dropout", "validate_every") if getattr(self, name) is not None]
        if given and self.block != POST_NORM:
            raise InputError(f"{given[0]} is of the block {POST_NORM}: give block={POST_NORM} too")
        return self

    def completed(self, training: int) -> dict[str, Any]:
        """All settings as JSON values, with the defaults for a number of training scenes."""
        defaults: dict[str, Any] = {
            "seeds": list(range(SEEDS)),
            "max_steps": FULL_STEPS if training >= FEW_SCENES else FEW_STEPS,
        }
        if self.block == POST_NORM:
            epoch = math.ceil(training / BATCH)
            torchs = {"block": POST_NORM, "width": WIDTH, "dropout": DROPOUT}
            defaults = {"seeds": [0], "max_steps": EPOCHS * epoch, "validate_every": epoch, **torchs}
        return defaults | {name: value for name, value in self.values().items() if value is not None}


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
        protocols={"paper": {"block": POST_NORM}},
    )
    spec = ATreSpec
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

        Where ``block`` is requested, the settings have it too: ``pre-norm``, which is that of the metric, or
        ``post-norm``, which brings the rest of the paper's text with it: one seed, 20 epochs, ``validate_every`` epoch,
        ``width`` and ``dropout`` of PyTorch's layer, all of which can be requested to be others.

        Raises:
            TaskError: a split has too few scenes, or a test scene has a label that no training scene has.
            InputError: a requested setting is not one of `ATreSpec`.
        """
        _check_rows(rows)
        return settings_among(self.spec, requested).completed(sum(row["split"] == "train" for row in rows))

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Fit on the training scenes, score the test scenes."""
        # Importing the metric imports torch, which takes seconds that only the process that scores has to spend.
        from audio_compositionality.metrics.a_tre import a_tre

        of_metric = {"layer" if name == "block" else name: value for name, value in settings.items()}
        gains = [row.get("gains") or [] for row in rows]
        values = a_tre(
            outputs.clips,
            [row["metadata"] for row in rows],
            [row["split"] for row in rows],
            gains=gains if all(gains) else None,
            **of_metric,
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
