"""A-TRE with held-out combinations: what of a scene is rebuilt where two classes meet that never met in training?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from audio_compositionality.dataset_builder.data import Row, check_columns
from audio_compositionality.dataset_builder.scenes.sources import METADATA
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES
from audio_compositionality.encoders.base import ENCODER
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec
from audio_compositionality.support.text import nearest

from . import scenes
from .a_tre import FEW_SCENES, FEW_STEPS, FULL_STEPS
from .base import Drawing, Inputs, Outputs, Samples, Scores, TaskError, TaskInfo, settings_among
from .metric_files import describe_metric
from .parts import PartedMeasures

PAIRS = {f"{first}_{second}": (first, second) for first, second in combinations(ATTRIBUTES, 2)}
"""The attributes of each pair, by its name."""

_METRIC = describe_metric("a_tre_held_out")
_COUNTS = ("n", "n_train")
_MEANS = tuple(measure.name for measure in _METRIC.measures if measure.name not in _COUNTS)

_PARTED = PartedMeasures(
    _METRIC.measures,
    tuple(PAIRS),
    "pairs of attributes",
    averaged=_MEANS,
    of_parts=("gap", "held_out", "kept", "gap_single", "interaction", "ridge_gap"),
    shown=("gap", "held_out", "random", "kept", "ridge_gap", "constant"),
)


class HeldOutSpec(Spec):
    """What can be set of the task."""

    pairs: tuple[str, ...] | None = Field(
        None,
        min_length=1,
        description="Pairs of attributes, such as timbre_pitch; none for all that vary, with the Transformer for the "
        "first of them.",
    )
    split_seed: int = Field(0, ge=0, description="Of the splits; the seed of the rows is another.")
    composition: Literal["pairs", "transformer"] = Field(
        "pairs", description="Ridge regression on pairs of classes, or the paper's model, with 16 fits a pair."
    )
    max_steps: int | None = Field(
        None,
        ge=1,
        description=f"Training steps of a fit of the Transformer; none for {FULL_STEPS:,}, or {FEW_STEPS} where there "
        f"are fewer than {FEW_SCENES:,} scenes.",
    )

    @field_validator("pairs")
    @classmethod
    def _are_pairs(cls, pairs: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for pair in pairs or ():
            if pair not in PAIRS:
                raise InputError(f"unknown pair of attributes {pair!r}; {nearest(pair, list(PAIRS))}")
        if pairs is not None and len(set(pairs)) < len(pairs):
            raise InputError(f"pairs is {', '.join(pairs)}; it lists different ones of {', '.join(PAIRS)}")
        return pairs


class ATreHeldOut:
    """The task; see `Task`."""

    info = TaskInfo(
        name="a_tre_held_out",
        version=_METRIC.version,
        title="A-TRE, held-out combinations",
        question="Can a scene be rebuilt from its attributes where two of them meet as they never did in training?",
        benchmark="coat",
        recipe="a_tre",
        needs=ENCODER,
        samples="scenes",
        # None says that it is `fitted`, since ridge regression is exact. Results of the Transformer, which is not, have
        # other settings than the default ones, so that they can be neither submitted nor verified.
        measures=(*_PARTED.described, *(measure for measure in _METRIC.measures if measure.name in _COUNTS)),
        ranks_by="held_out",
        trusted={"held_out": None},
        warning=(
            "A small gap alone is no merit: noise has none. Read it beside the score with combinations held out, and "
            "both beside log-mel-statistics and an untrained network, which add up what they hear untrained. "
            "Nearly all of the gap is of timbre and pitch, whose combinations do not sound like sums either."
        ),
        citation=_METRIC.citation,
        on_request=True,
    )
    spec = HeldOutSpec
    drawings: tuple[Drawing, ...] = ()

    def inputs(self, row: Row, settings: Mapping[str, Any]) -> Inputs:
        """The clip of a scene."""
        return Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """``pairs`` of attributes by the names of `PAIRS`, the ``split_seed``, and the ``composition``:
        ``pairs``, ridge regression on pairs of classes, or ``transformer``, the paper's model.

        With the Transformer, of which there are 16 fits a pair, ``pairs`` is the first pair alone by default, and there
        are ``max_steps``.

        Raises:
            DatasetError: a row lacks its sources.
            TaskError: the scenes are too few for their labels to stay in training whatever is held out, or no two
                attributes have two labels each.
            InputError: a requested setting is not one of `HeldOutSpec`.
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
        _check_splits(rows, settings)
        return settings

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Train on the scenes without the combinations of each set, and test those with one."""
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
        values = _PARTED.values(by_pair)
        # A share of means is no mean of shares.
        values |= {name: result[name] for name in (*_MEANS, *_COUNTS)}
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
        """The scenes of all splits, each its own: every one is tested."""
        sources = [row["metadata"] for row in rows]
        counts = scenes.counts(sources)
        return Samples(
            rows=tuple(rows),
            clusters=np.arange(len(rows)),
            diversity=scenes.entropies(rows, [sources]),
            diversity_name="H",
            held_fixed={"number of sources": counts},
            groups={"the number of sources": tuple(map(str, counts))},
            contents=tuple({"scene": scenes.labels_for_people(scene)} for scene in sources),
        )


def varied_pairs(rows: Sequence[Row]) -> list[str]:
    """Names of the pairs whose attributes both have two labels or more.

    Raises:
        TaskError: there is none.
    """
    labels: dict[str, set[str]] = {name: set() for name in ATTRIBUTES}
    for row in rows:
        for source in row["metadata"]:
            for name, seen in labels.items():
                seen.add(source[f"{name}_label"])
    pairs = [pair for pair, names in PAIRS.items() if all(len(labels[name]) > 1 for name in names)]
    if not pairs:
        numbers = ", ".join(f"{len(seen)} of {name}" for name, seen in labels.items())
        raise TaskError(f"combinations of two attributes need two labels of each; the scenes have {numbers}")
    return pairs


def _labels_of(pair: str) -> tuple[str, str]:
    first, second = PAIRS[pair]
    return f"{first}_label", f"{second}_label"


def _check_splits(rows: Sequence[Row], settings: Mapping[str, Any]) -> None:
    """Refuse scenes that cannot be split, before they are embedded."""
    # Importing the metric imports torch, which takes seconds that a mere listing of tasks need not spend.
    from audio_compositionality.metrics.a_tre_held_out import draw_splits

    pairs = [_labels_of(pair) for pair in settings["pairs"]]
    try:
        draw_splits([row["metadata"] for row in rows], pairs, settings["split_seed"])
    except ValueError as error:
        raise TaskError(str(error).rstrip(".")) from error


TASK = ATreHeldOut()
