"""Single scenes in three splits, whose embeddings a small model predicts from attributes (arXiv 2603.13685)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Self

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, WHOLE, DataColumn
from ..scenes.selection import entropy_bins, sample_scenes, scene_entropy, select_balanced, split_balanced
from ..scenes.sources import (
    ENTROPY,
    METADATA,
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

SPLITS = ("train", "validation", "test")

_CANDIDATES, _SELECTION, _ONSETS = 4, 5, 6
"""Random streams."""


class SplitSceneSpec(SceneSpec):
    """Everything that determines the scenes and their samples. Defaults are the paper's sizes (the preset ``full``).

    Raises:
        InputError: see `SceneSpec`.
    """

    scene_candidates: int = Field(150_000, ge=3, description="Size of the pool (paper, section 4.1).")
    train_scenes: int = Field(8_000, ge=1, description="Scenes of the train split.")
    validation_scenes: int = Field(1_000, ge=1, description="Scenes of the validation split.")
    test_scenes: int = Field(1_000, ge=1, description="Scenes of the test split.")

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        if self.scenes > self.scene_candidates:
            raise InputError(
                f"train_scenes + validation_scenes + test_scenes is {self.scenes}; it must be at least 3 and at most "
                f"scene_candidates ({self.scene_candidates:,})"
            )
        return self

    @property
    def scenes(self) -> int:
        """Return the number of scenes in all splits."""
        return sum(self.split_sizes.values())

    @property
    def split_sizes(self) -> dict[str, int]:
        """Return the number of scenes in each split."""
        return {split: getattr(self, f"{split}_scenes") for split in SPLITS}


class SplitScenes(Recipe[SplitSceneSpec]):
    """Scenes in three splits; ``metadata`` is as in the authors' published data, which lack the optional columns."""

    name = "a_tre"
    splits = SPLITS

    @cached_property
    def presets(self) -> Mapping[str, SplitSceneSpec]:
        """Return the settings of each preset, by name; the ``paper-`` presets follow the paper's text exactly."""
        few: dict[str, Any] = {"train_scenes": 512, "validation_scenes": 64, "test_scenes": 64}
        return {
            "mini": SplitSceneSpec(**few),
            "full": SplitSceneSpec(),
            "paper-mini": SplitSceneSpec(**few, onset="locked"),
            "paper-full": SplitSceneSpec(onset="locked"),
        }

    def columns(self, spec: SplitSceneSpec) -> Sequence[DataColumn]:
        """Return the columns: a clip, its sources, and their onsets and gains."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("audio", AUDIO, "the clip"),
            METADATA,
            DataColumn("onsets", [WHOLE], "first sample of each source", optional=True),
            DataColumn("gains", [NUMBER], "linear gain of each source", optional=True),
            DataColumn("entropy", ENTROPY, "per attribute: normalised entropy of the scene", optional=True),
        )

    def draw(self, spec: SplitSceneSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Draw candidates, select a balanced set, and draw the onsets of its sources, split by split.

        No two scenes have the same set of sources.
        """
        bank = ToneBank(spec)
        candidates = sample_scenes(
            random_generator(spec.seed, _CANDIDATES), spec.scene_candidates, spec.num_classes, spec.max_sources
        )
        entropies = scene_entropy(candidates, spec.num_classes)
        bins = entropy_bins(entropies)
        rng = random_generator(spec.seed, _SELECTION)
        selected = select_balanced(bins, spec.scenes, rng)
        parts = split_balanced(bins[selected], list(spec.split_sizes.values()), rng)
        rng = random_generator(spec.seed, _ONSETS)
        for split, part in zip(SPLITS, parts, strict=True):
            for number, chosen in enumerate(selected[part]):
                sources = sources_of(candidates[chosen], spec)
                onsets = draw_onsets(sources, spec, rng)
                row = {
                    "id": f"{self.name}-{split}-{number:05d}",
                    "split": split,
                    "metadata": labels_of(sources, spec),
                    "onsets": list(onsets),
                    "gains": gains_of(sources, spec),
                    "entropy": dict(zip(ATTRIBUTES, entropies[chosen].tolist(), strict=True)),
                }
                yield Drawn(row, partial(bank.clips, [(sources, onsets)], [(0,)]))


RECIPE = SplitScenes()
