"""Quadruples of scenes, in which the same sources are added to two scenes (arXiv 2603.13685, section 3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, WHOLE, DataColumn
from ..scenes.selection import entropy_bins, quadruple_entropy, sample_quadruples, select_balanced
from ..scenes.sources import (
    ENTROPY,
    SOURCE_LABELS,
    SOURCES,
    SceneSpec,
    ToneBank,
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

PARTS = ("A", "C", "T")

SCENES = ((0,), (0, 2), (1,), (1, 2))
"""Indices of the parts in A, B, C and D: B - A and D - C are the same samples, one step for a linear encoder."""

_CANDIDATES, _SELECTION, _ONSETS = 1, 2, 3
"""Random streams."""


class QuadrupleSpec(SceneSpec):
    """Everything that determines the quadruples and their samples. Defaults are the paper's sizes (the preset
    ``full``).

    Raises:
        InputError: see `SceneSpec`.
    """

    quadruple_candidates: int = Field(50_000, ge=1, description="Size of the pool (paper, section 4.1).")
    quadruples: int = Field(2_000, ge=1, description="Quadruples selected from the pool.")
    level: Level = Field(
        "shared",
        description=(
            "`shared`: one gain for all clips of a quadruple; `clip`: one gain per clip, as the paper literally says, "
            "which makes B louder or softer than A plus T."
        ),
    )

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.quadruples > self.quadruple_candidates:
            raise InputError(
                f"quadruples is {self.quadruples}; it must be at least 1 and at most quadruple_candidates, "
                f"{self.quadruple_candidates:,}"
            )
        return self


class ToneQuadruples(Recipe[QuadrupleSpec]):
    """Quadruples of scenes; ``metadata`` is as in the authors' published data, which lack the optional columns."""

    name = "a_coat"

    @cached_property
    def presets(self) -> Mapping[str, QuadrupleSpec]:
        """Return the settings of each preset, by name; the ``paper-`` presets follow the paper's text exactly."""
        letter: dict[str, Any] = {"onset": "locked", "level": "clip"}
        return {
            "mini": QuadrupleSpec(quadruples=64),
            "full": QuadrupleSpec(),
            "paper-mini": QuadrupleSpec(quadruples=64, **letter),
            "paper-full": QuadrupleSpec(**letter),
        }

    def columns(self, spec: QuadrupleSpec) -> Sequence[DataColumn]:
        """Return the columns: clips, their sources, and their onsets and gains."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("A", AUDIO, "a scene"),
            DataColumn("B", AUDIO, "A and T together"),
            DataColumn("C", AUDIO, "another scene"),
            DataColumn("D", AUDIO, "C and T together"),
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
            DataColumn(
                "entropy", ENTROPY, "per attribute: sum of the normalised entropies H(A) + H(C) + H(T)", optional=True
            ),
        )

    def draw(self, spec: QuadrupleSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Draw candidates, select a balanced set, and draw the onsets of its sources; with the clips A, B, C, D."""
        bank = ToneBank(spec)
        candidates = sample_quadruples(
            random_generator(spec.seed, _CANDIDATES), spec.quadruple_candidates, spec.num_classes, spec.max_sources
        )
        entropies = quadruple_entropy(candidates, spec.num_classes)
        rng = random_generator(spec.seed, _SELECTION)
        selected = rng.permutation(select_balanced(entropy_bins(entropies), spec.quadruples, rng))
        rng = random_generator(spec.seed, _ONSETS)
        for number, chosen in enumerate(selected):
            sources = {part: sources_of(codes, spec) for part, codes in zip(PARTS, candidates[chosen], strict=True)}
            onsets = {part: draw_onsets(of_part, spec, rng) for part, of_part in sources.items()}
            row = {
                "id": f"{self.name}-test-{number:05d}",
                "metadata": {part: labels_of(of_part, spec) for part, of_part in sources.items()},
                "onsets": {part: list(of_part) for part, of_part in onsets.items()},
                "gains": {part: gains_of(of_part, spec) for part, of_part in sources.items()},
                "entropy": dict(zip(ATTRIBUTES, entropies[chosen].tolist(), strict=True)),
            }
            layers = [(sources[part], onsets[part]) for part in PARTS]
            yield Drawn(row, partial(bank.clips, layers, SCENES, shared_gain=spec.level == "shared"))


RECIPE = ToneQuadruples()
