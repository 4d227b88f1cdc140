"""Quadruples of scenes, in which the same sources are added to two scenes (arXiv 2603.13685, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, WHOLE, DataColumn, Pcm16, Row
from ..scenes.selection import entropy_bins, quadruple_entropy, sample_quadruples, select_balanced
from ..scenes.sources import (
    ENTROPY,
    SOURCE_LABELS,
    SOURCES,
    Quadruple,
    SceneSpec,
    ToneBank,
    codes_of,
    draw_onsets,
    gains_of,
    labels_of,
    random_generator,
    sources_of,
)
from ..sounds.entries import Sounds
from ..sounds.tones import ATTRIBUTES
from .base import Drawn, Recipe

Level = Literal["shared", "clip"]

CLIPS = ("A", "B", "C", "D")

PARTS = ("A", "C", "T")

_CANDIDATES, _SELECTION, _ONSETS = 1, 2, 3
"""The random streams."""


class QuadrupleSpec(SceneSpec):
    """Everything that decides the quadruples and their samples. Defaults are the paper's sizes (the preset ``full``).

    Raises:
        InputError: see `SceneSpec`.
    """

    quadruple_candidates: int = Field(50_000, ge=1, description="Size of the pool (paper, section 4.1).")
    quadruples: int = Field(2_000, ge=1, description="Quadruples selected from the pool.")
    level: Level = Field(
        "shared",
        description=(
            "`shared`, one gain for the clips of a quadruple; `clip`, each clip has its own, the paper's literal text, "
            "which makes B louder or softer than A plus T."
        ),
    )

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.quadruples > self.quadruple_candidates:
            raise InputError(
                f"quadruples is {self.quadruples}; it must be from 1 to the quadruple_candidates, "
                f"{self.quadruple_candidates:,}"
            )
        return self


def draw_quadruples(spec: QuadrupleSpec) -> list[Quadruple]:
    """The quadruples of a spec: candidates, balanced selection, onsets; same spec, same quadruples."""
    candidates = sample_quadruples(
        random_generator(spec.seed, _CANDIDATES), spec.quadruple_candidates, spec.num_classes, spec.max_sources
    )
    rng = random_generator(spec.seed, _SELECTION)
    bins = entropy_bins(quadruple_entropy(candidates, spec.num_classes))
    selected = candidates[rng.permutation(select_balanced(bins, spec.quadruples, rng))]
    rng = random_generator(spec.seed, _ONSETS)
    quadruples = []
    for index, sets in enumerate(selected):
        a, c, t = (sources_of(codes, spec) for codes in sets)
        onsets = [draw_onsets(sources, spec, rng) for sources in (a, c, t)]
        quadruples.append(Quadruple(f"{RECIPE.name}-test-{index:05d}", a, c, t, *onsets))
    return quadruples


def _row(quadruple: Quadruple, spec: QuadrupleSpec) -> Row:
    q = quadruple
    parts = (("A", q.a, q.a_onsets), ("C", q.c, q.c_onsets), ("T", q.t, q.t_onsets))
    entropy = quadruple_entropy(codes_of([q.a, q.c, q.t], spec)[None], spec.num_classes)[0]
    return {
        "id": q.id,
        "metadata": {name: labels_of(sources, spec) for name, sources, _ in parts},
        "onsets": {name: list(onsets) for name, _, onsets in parts},
        "gains": {name: gains_of(sources, spec) for name, sources, _ in parts},
        "entropy": dict(zip(ATTRIBUTES, map(float, entropy), strict=True)),
    }


def _clips(bank: ToneBank, quadruple: Quadruple, level: Level) -> Sequence[Pcm16]:
    return tuple(bank.quadruple_clips(quadruple, shared_gain=level == "shared"))


class ToneQuadruples(Recipe[QuadrupleSpec]):
    """Quadruples of scenes; ``metadata`` is that of the authors' published data, which lack the optional columns."""

    name = "a_coat"

    @cached_property
    def presets(self) -> Mapping[str, QuadrupleSpec]:
        """Specs by the name of a preset; those of ``paper-`` follow the paper's text to the letter."""
        letter: dict[str, Any] = {"onset": "locked", "level": "clip"}
        return {
            "mini": QuadrupleSpec(quadruples=64),
            "full": QuadrupleSpec(),
            "paper-mini": QuadrupleSpec(quadruples=64, **letter),
            "paper-full": QuadrupleSpec(**letter),
        }

    def columns(self, spec: QuadrupleSpec) -> Sequence[DataColumn]:
        """Clips, their sources, and how these sound."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            *(DataColumn(name, AUDIO, _MEANINGS[name]) for name in CLIPS),
            DataColumn(
                "metadata",
                dict.fromkeys(PARTS, SOURCES),
                f"the sources of A, C and T, each with {SOURCE_LABELS}",
                least=1,
            ),
            DataColumn(
                "onsets",
                {part: [WHOLE] for part in PARTS},
                "first sample of each source; the same in A and B, in C and D, and for T in B and D",
                optional=True,
            ),
            DataColumn("gains", {part: [NUMBER] for part in PARTS}, "linear gain of each source", optional=True),
            DataColumn("entropy", ENTROPY, "per attribute: the normalised entropies H(A) + H(C) + H(T)", optional=True),
        )

    def draw(self, spec: QuadrupleSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The quadruples, with their clips A, B, C, D."""
        bank = ToneBank(spec)
        for quadruple in draw_quadruples(spec):
            yield Drawn(_row(quadruple, spec), partial(_clips, bank, quadruple, spec.level))


_MEANINGS = {
    "A": "a scene",
    "B": "A and T together",
    "C": "another scene",
    "D": "C and T together",
}

RECIPE = ToneQuadruples()
