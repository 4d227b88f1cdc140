"""Fits: a scene's embedding rebuilt from the attributes of its sources, by a model fitted to other scenes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, field_validator, model_validator

from audio_compositionality.dataset_builder.data import Row, check_columns
from audio_compositionality.dataset_builder.scenes.sources import METADATA
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec, TypedAs
from audio_compositionality.support.text import nearest

from ..base import (
    Drawing,
    Number,
    Outputs,
    PlainTask,
    Samples,
    Scores,
    TaskError,
    TaskInfo,
    entropies,
    labels_for_people,
    settings_among,
    source_counts,
)
from ..metric_files import PartedMeasures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FULL_STEPS, FEW_STEPS, FEW_SCENES = 2_500, 600, 2_000
"""Training steps: 2,500 (20 epochs of the paper's 8,000 scenes in batches of 64, section 4.4); 600 with fewer than
2,000 training scenes, as in the preset mini, whose 512 scenes it passes 75 times."""

SEEDS = 3
"""Number of fits, with the seeds 0, 1 and 2, to separate their spread from the spread of the scenes."""

BATCH, EPOCHS = 64, 20
"""Training scenes per step, and epochs, if the paper is followed exactly (section 4.4)."""

POST_NORM: Literal["post-norm"] = "post-norm"
"""PyTorch's default ``torch.nn.TransformerEncoderLayer``; the paper names no other block. The metric calls it
``layer``, which on the command line is the layer of a model."""

WIDTH, DROPOUT = 2_048, 0.1
"""Width and dropout of that block: PyTorch's defaults."""

ATTRIBUTE_PAIRS = {f"{first}_{second}": (first, second) for first, second in combinations(ATTRIBUTES, 2)}
"""The attributes of each pair, by its name."""

COUNTS = ("n", "n_train")
"""Measures over all pairs together."""

Curve = Mapping[str, Sequence[float]]

FITS = ("", "_centred")
"""Suffixes of the lists' names: fits to the embeddings, and fits to the centred embeddings."""

CURVES = tuple(
    f"{name}{kind}" for kind in FITS for name in ("steps", "curve_steps", "curve_training", "curve_validation")
)
"""Lists of `Scores.training`: the chosen step of each seed, and the points of all seeds one after the other; a new
curve begins where the step does not increase."""

_DECIMALS = 5
"""Digits that suffice for a figure; a result with three seeds and 20 validations stays below 20 kB."""


def flat_curves(raw: Sequence[Mapping[str, Any]], centred: Sequence[Mapping[str, Any]]) -> dict[str, list[int | float]]:
    """Return the curves of all seeds as `CURVES`, without the chosen steps.

    Args:
        raw, centred: for each seed lists of equal length by the names ``steps``, ``training`` and ``validation``.
    """
    lists: dict[str, list[int | float]] = {}
    for kind, curves in zip(FITS, (raw, centred), strict=True):
        lists[f"curve_steps{kind}"] = [step for curve in curves for step in curve["steps"]]
        for name in ("training", "validation"):
            values = [round(value, _DECIMALS) for curve in curves for value in curve[name]]
            lists[f"curve_{name}{kind}"] = values
    return lists


def seed_curves(columns: Mapping[str, NDArray[np.float64]], kind: str) -> list[dict[str, NDArray[np.float64]]]:
    """Return the curves of each seed from `CURVES`: three lists of [points] each, and ``kept`` [1].

    The lists are ``steps``, ``training`` and ``validation``.

    Args:
        columns: `CURVES` as arrays.
        kind: one of `FITS`.
    """
    steps = columns[f"curve_steps{kind}"]
    if not len(steps):
        return []
    begins = np.flatnonzero(np.diff(steps) <= 0) + 1
    parts = {name: np.split(columns[f"curve_{name}{kind}"], begins) for name in ("steps", "training", "validation")}
    parts["kept"] = np.split(columns[f"steps{kind}"], len(parts["steps"]))
    return [dict(zip(parts, values, strict=True)) for values in zip(*parts.values(), strict=True)]


def draw_curves(axes: Axes, columns: Mapping[str, NDArray[np.float64]], measures: Mapping[str, Number]) -> None:
    """Draw the curves of one model's fits: training dashed, validation solid, a dot at the chosen step.

    Args:
        axes: an empty panel.
        columns: `CURVES`.
        measures: not used.
    """
    # Blue and orange of Okabe and Ito 2008, "Color universal design".
    for kind, colour, words in zip(FITS, ("#0072B2", "#E69F00"), ("raw", "centred"), strict=True):
        for seed, curve in enumerate(seed_curves(columns, kind)):
            style: dict[str, Any] = {"color": colour, "linewidth": 0.8, "markersize": 2}
            # A single point gives no line.
            marker = "." if len(curve["steps"]) == 1 else None
            names = (f"{words}, training", f"{words}, validation") if seed == 0 else (None, None)
            axes.plot(curve["steps"], curve["training"], "--", marker=marker, label=names[0], **style)
            axes.plot(curve["steps"], curve["validation"], "-", marker=marker, label=names[1], **style)
            kept = np.isin(curve["steps"], curve["kept"])
            axes.plot(curve["steps"][kept], curve["validation"][kept], "o", **style)
    axes.locator_params(axis="both", nbins=3)
    axes.margins(y=0.15)


TRAINING_CURVES = Drawing(
    name="training_curves",
    title=(
        "Mean cosine in training and validation over the steps of the fits; a dot marks the chosen step. "
        "The curves show underfitting or overfitting."
    ),
    alternative="Curves of training and validation over the steps of the fits, one panel per model.",
    columns=(),
    training=CURVES,
    panel=draw_curves,
    x="steps of the fit",
    y="mean cosine",
)


FITS_OF_SCENES: dict[str, Any] = {"benchmark": "coat", "recipe": "a_tre", "needs": ENCODER}
"""Facts of the tasks of fits to scenes; see `TaskInfo`."""


def _read_seeds(seeds: Any) -> Any:
    """Parse seeds from their number, or from a text, ``3`` or ``0, 2``."""
    if isinstance(seeds, str):
        parts = [int(part) if part.strip().isdecimal() else part for part in seeds.split(",")]
        seeds = parts[0] if len(parts) == 1 else parts
    if isinstance(seeds, int) and not isinstance(seeds, bool):
        seeds = range(seeds)
    is_list = isinstance(seeds, list | tuple | range) and len(seeds) == len(set(seeds)) > 0
    if not is_list or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise InputError(f"seeds is {seeds!r}; give the number of fits, or a list of different integers")
    return tuple(seeds)


class FitSpec(Spec):
    """The settings of the task; fields that are None follow from the block and the number of training scenes."""

    seeds: Annotated[
        tuple[int, ...] | None,
        BeforeValidator(lambda seeds: None if seeds is None else _read_seeds(seeds)),
        TypedAs("the number of fits, or their seeds separated by commas"),
    ] = Field(
        None, description=f"Seeds of the fits; by default the first {SEEDS}, with the block {POST_NORM} only the first."
    )
    max_steps: int | None = Field(
        None,
        ge=1,
        description=f"Training steps of a fit; by default {FULL_STEPS:,}, {FEW_STEPS} with fewer than "
        f"{FEW_SCENES:,} training scenes, and {EPOCHS} epochs with the block {POST_NORM}.",
    )
    block: Literal["pre-norm", "post-norm"] | None = Field(
        None,
        description=f"Transformer block; by default pre-norm. {POST_NORM} also sets the paper's other settings.",
    )
    width: int | None = Field(None, ge=1, description=f"Width of the block {POST_NORM}; by default {WIDTH:,}.")
    dropout: float | None = Field(
        None, ge=0, lt=1, description=f"Dropout of the block {POST_NORM}; by default {DROPOUT}."
    )
    validate_every: int | None = Field(
        None, ge=1, description=f"Steps between validations with the block {POST_NORM}; by default one epoch."
    )

    @model_validator(mode="after")
    def _of_the_block(self) -> FitSpec:
        given = [name for name in ("width", "dropout", "validate_every") if getattr(self, name) is not None]
        if given and self.block != POST_NORM:
            raise InputError(f"{given[0]} applies to the block {POST_NORM} only: set block={POST_NORM} too")
        return self

    def completed(self, training: int) -> dict[str, Any]:
        """Return all settings as JSON values, with the defaults for a number of training scenes."""
        defaults: dict[str, Any] = {
            "seeds": list(range(SEEDS)),
            "max_steps": FULL_STEPS if training >= FEW_SCENES else FEW_STEPS,
        }
        if self.block == POST_NORM:
            epoch = math.ceil(training / BATCH)
            torchs = {"block": POST_NORM, "width": WIDTH, "dropout": DROPOUT}
            defaults = {"seeds": [0], "max_steps": EPOCHS * epoch, "validate_every": epoch, **torchs}
        return defaults | {name: value for name, value in self.values().items() if value is not None}


class FitTask(PlainTask):
    """The task of a model that is fitted to training scenes and rebuilds test scenes; see `Task`."""

    spec: type[FitSpec] = FitSpec
    drawings: tuple[Drawing, ...] = (TRAINING_CURVES,)

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``seeds`` of the fits, a list or their number, and their ``max_steps``.

        If ``block`` is requested, the settings include it: ``pre-norm``, the metric's default, or ``post-norm``, which
        sets the rest of the paper's protocol as defaults: one seed, 20 epochs, ``validate_every`` epoch, ``width`` and
        ``dropout`` of PyTorch's layer.

        Raises:
            TaskError: a split has too few scenes, or a test scene has a label absent from the training scenes.
            InputError: a requested setting is invalid for `FitSpec`.
        """
        _check_rows(rows, self.info.name)
        return settings_among(self.spec, requested).completed(sum(row["split"] == "train" for row in rows))

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Fit to the training scenes and score the test scenes."""
        # The metric imports torch, which takes seconds: only the process that scores loads it.
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
        """Return the scenes of the split test, each its own cluster."""
        return _scene_samples(_test_rows(rows))


class HeldOutSpec(Spec):
    """The settings of the task."""

    pairs: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Pairs of attributes, such as timbre_pitch; by default all that vary, with the Transformer only "
        "the first of them.",
    )
    split_seed: int = Field(0, ge=0, description="Seed of the splits; the rows have a separate seed.")
    composition: Literal["pairs", "transformer"] = Field(
        "pairs",
        description="pairs is ridge regression on pairs of classes; transformer the paper's model, 16 fits per pair.",
    )
    max_steps: int | None = Field(
        None,
        ge=1,
        description=f"Training steps of a fit of the Transformer; by default {FULL_STEPS:,}, or {FEW_STEPS} with "
        f"fewer than {FEW_SCENES:,} scenes.",
    )

    @field_validator("pairs")
    @classmethod
    def _are_pairs(cls, pairs: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for pair in pairs or ():
            if pair not in ATTRIBUTE_PAIRS:
                raise InputError(f"unknown pair of attributes {pair!r}; {nearest(pair, list(ATTRIBUTE_PAIRS))}")
        if pairs is not None and len(set(pairs)) < len(pairs):
            raise InputError(
                f"pairs is {', '.join(pairs)}; it must list different ones of {', '.join(ATTRIBUTE_PAIRS)}"
            )
        return pairs


class HeldOutTask(PlainTask):
    """The task of models fitted without some combinations of two classes, which rebuild scenes with one; see `Task`.

    No measure is `fitted`, since ridge regression is exact. The Transformer is not, but its results have other settings
    than the defaults, so that they can be neither submitted nor verified.
    """

    spec: type[HeldOutSpec] = HeldOutSpec

    def __init__(self, info: TaskInfo, by_pair: PartedMeasures) -> None:
        """Store the facts and the measures.

        Args:
            info: facts of the task, with measures of all pairs, of each pair, and counts.
            by_pair: the measures of each of `ATTRIBUTE_PAIRS`, and means over them.
        """
        super().__init__(info)
        self._by_pair = by_pair

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ``pairs`` of attributes, the ``split_seed`` and the ``composition``.

        Pairs are named as in `ATTRIBUTE_PAIRS`. The composition is ``pairs``, ridge regression on pairs of classes, or
        ``transformer``, the paper's model, with 16 fits per pair. With the Transformer, ``pairs`` is the first pair
        alone by default, and ``max_steps`` is a setting too.

        Raises:
            DatasetError: a row lacks its sources.
            TaskError: there are too few scenes to keep all labels in training under every hold-out, or no two
                attributes have two labels each.
            InputError: a requested setting is invalid for `HeldOutSpec`.
        """
        for row in rows:
            check_columns(row, (METADATA,))
        asked = settings_among(self.spec, requested)
        is_fitted = asked.composition == "transformer"
        pairs = asked.pairs or varied_pairs(rows)[: 1 if is_fitted else None]
        settings: dict[str, Any] = {
            "pairs": list(pairs),
            "split_seed": asked.split_seed,
            "composition": asked.composition,
        }
        if is_fitted:
            settings["max_steps"] = asked.max_steps or (FULL_STEPS if len(rows) >= FEW_SCENES else FEW_STEPS)
        # The metric imports torch, which takes seconds; listing tasks must not load it.
        from audio_compositionality.metrics.a_tre_held_out import draw_splits

        labels = [_labels_of(pair) for pair in pairs]
        try:
            draw_splits([row["metadata"] for row in rows], labels, settings["split_seed"])
        except ValueError as error:
            raise TaskError(str(error).rstrip(".")) from error
        return settings

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Train on the scenes without the combinations of each set, and test the scenes with one."""
        from audio_compositionality.metrics.a_tre_held_out import a_tre_held_out

        result = a_tre_held_out(
            outputs.clips,
            [row["metadata"] for row in rows],
            **{
                **{name: value for name, value in settings.items() if name != "split_seed"},
                "seed": settings["split_seed"],
                "pairs": [_labels_of(pair) for pair in settings["pairs"]],
            },
            device=device,
            progress=progress,
            return_scores=True,
        )
        by_pair = dict(zip(settings["pairs"], result["by_pair"], strict=True))
        values = self._by_pair.values(by_pair)
        # Recompute the ratio of means, which is not the mean of ratios.
        values |= {name: result[name] for name in (*self._by_pair.averaged, *COUNTS)}
        columns = {"score": result["scores"], "score_held_out": result["scores_held_out"]}
        columns["score_random"] = result["scores_random"]
        for pair, numbers in by_pair.items():
            columns |= {f"{pair}_score": numbers["scores"], f"{pair}_score_held_out": numbers["scores_held_out"]}
        return Scores(
            values,
            tuple(row["id"] for row in rows),
            {name: np.asarray(scores, np.float64) for name, scores in columns.items()},
            {"steps": result["steps"]} if result["steps"] else {},
        )

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the scenes of all splits, each its own cluster; every scene is tested."""
        return _scene_samples(rows)


def _scene_samples(rows: Sequence[Row]) -> Samples:
    """Return scenes, each its own cluster."""
    sources = [row["metadata"] for row in rows]
    counts = source_counts(sources)
    return Samples(
        rows=tuple(rows),
        clusters=np.arange(len(rows)),
        diversity=entropies(rows, [sources]),
        diversity_name="H",
        held_fixed={"number of sources": counts},
        groups={"the number of sources": tuple(map(str, counts))},
        contents=tuple({"scene": labels_for_people(scene)} for scene in sources),
    )


def _test_rows(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["split"] == "test"]


def _check_rows(rows: Sequence[Row], task: str) -> None:
    """Raise TaskError for rows that the metric would reject after the embedding."""
    for split, needed in (("train", 2), ("validation", 1), ("test", 1)):
        count = sum(row["split"] == split for row in rows)
        if count < needed:
            raise TaskError(f"{task} has {count} scenes in the split {split}; at least {needed} are needed")
    trained = {label for row in rows if row["split"] == "train" for label in _labels(row)}
    for row in rows:
        unseen = sorted(_labels(row) - trained)
        if unseen:
            attribute, label = unseen[0]
            raise TaskError(
                f"row {row['id']} ({row['split']}) has {attribute} {label!r}, which is in no training scene, so it "
                "cannot be learned"
            )


def _labels(row: Row) -> set[tuple[str, str]]:
    return {item for source in row["metadata"] for item in source.items()}


def varied_pairs(rows: Sequence[Row]) -> list[str]:
    """Return the names of the pairs whose attributes both have at least two labels.

    Raises:
        TaskError: there is no such pair.
    """
    labels: dict[str, set[str]] = {name: set() for name in ATTRIBUTES}
    for row in rows:
        for source in row["metadata"]:
            for name, seen in labels.items():
                seen.add(source[f"{name}_label"])
    pairs = [pair for pair, names in ATTRIBUTE_PAIRS.items() if all(len(labels[name]) > 1 for name in names)]
    if not pairs:
        numbers = ", ".join(f"{len(seen)} of {name}" for name, seen in labels.items())
        raise TaskError(f"two attributes need at least two labels each, to be combined; the scenes have {numbers}")
    return pairs


def _labels_of(pair: str) -> tuple[str, str]:
    first, second = ATTRIBUTE_PAIRS[pair]
    return f"{first}_label", f"{second}_label"
