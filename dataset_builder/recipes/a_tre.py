"""Single scenes in three splits, from whose attributes a small model rebuilds embeddings (arXiv 2603.13685)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..data import Pcm16, Row
from ..scenes.description import CITATION, describe_sources
from ..scenes.entrofy import entropy_bins, scene_entropy, select_balanced, split_balanced
from ..scenes.rendering import SceneRendering
from ..scenes.sources import (
    Scene,
    SceneSettings,
    check_sources,
    codes_of,
    draw_onsets,
    entropy_column,
    gains_of,
    labels_of,
    random_generator,
    sample_scenes,
    source_features,
    sources_of,
)

if TYPE_CHECKING:
    from datasets import Features

SPLITS = ("train", "validation", "test")

_CANDIDATES, _SELECTION, _ONSETS = 4, 5, 6
"""The random streams."""


@dataclass(frozen=True, kw_only=True)
class SplitSceneSettings(SceneSettings):
    """Everything that decides the scenes and their samples. Defaults are the paper's sizes (the preset ``full``).

    Attributes:
        scene_candidates: size of the pool (paper, section 4.1).
        train_scenes, validation_scenes, test_scenes: how many each split has.

    Raises:
        InputError: see `SceneSettings`.
    """

    scene_candidates: int = 150_000
    train_scenes: int = 8_000
    validation_scenes: int = 1_000
    test_scenes: int = 1_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for split in SPLITS:
            self._check(f"{split}_scenes", self.split_sizes[split], 1, self.scene_candidates)
        self._check("train_scenes + validation_scenes + test_scenes", self.scenes, 3, self.scene_candidates)

    @property
    def scenes(self) -> int:
        """Scenes of all splits together."""
        return sum(self.split_sizes.values())

    @property
    def split_sizes(self) -> dict[str, int]:
        """Scenes of each split."""
        return {split: getattr(self, f"{split}_scenes") for split in SPLITS}


class RenderedScenes(SceneRendering[SplitSceneSettings]):
    """The scenes of some settings and their sound; see `Rendering`."""

    @cached_property
    def scenes(self) -> tuple[Scene, ...]:
        """The scenes, in the order of `rows`."""
        return tuple(draw_scenes(self.settings))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio, split by split."""
        return tuple(_row(scene, self.settings) for scene in self.scenes)

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip of a scene, int16 [samples]."""
        return (self.tone_bank.scene_clip(self.scenes[index]),)


def draw_scenes(settings: SplitSceneSettings) -> list[Scene]:
    """The scenes of some settings, split by split; no set of sources occurs twice."""
    candidates = sample_scenes(
        random_generator(settings.seed, _CANDIDATES),
        settings.scene_candidates,
        settings.num_classes,
        settings.max_sources,
    )
    rng = random_generator(settings.seed, _SELECTION)
    bins = entropy_bins(scene_entropy(candidates, settings.num_classes))
    selected = select_balanced(bins, settings.scenes, rng)
    parts = split_balanced(bins[selected], list(settings.split_sizes.values()), rng)
    rng = random_generator(settings.seed, _ONSETS)
    scenes = []
    for split, part in zip(SPLITS, parts, strict=True):
        for index, codes in enumerate(candidates[selected[part]]):
            sources = sources_of(codes, settings)
            onsets = draw_onsets(sources, settings, rng)
            scenes.append(Scene(f"{RECIPE.name}-{split}-{index:05d}", split, sources, onsets))
    return scenes


def _row(scene: Scene, settings: SplitSceneSettings) -> Row:
    entropy = scene_entropy(codes_of([scene.sources], settings), settings.num_classes)[0]
    return {
        "id": scene.id,
        "split": scene.split,
        "metadata": labels_of(scene.sources, settings),
        "onsets": list(scene.onsets),
        "gains": gains_of(scene.sources, settings),
        "entropy": entropy_column(entropy),
    }


class _SplitScenes:
    """The recipe; see `Recipe`."""

    name = "a_tre"
    version = 1
    splits = SPLITS
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, SplitSceneSettings]:
        """Settings by the name of a preset; those of ``paper-`` follow the paper's text to the letter."""
        few: dict[str, Any] = {"train_scenes": 512, "validation_scenes": 64, "test_scenes": 64}
        return {
            "mini": SplitSceneSettings(**few),
            "full": SplitSceneSettings(),
            "paper-mini": SplitSceneSettings(**few, onset="locked"),
            "paper-full": SplitSceneSettings(onset="locked"),
        }

    def features(self, settings: SplitSceneSettings) -> Features:
        """``metadata`` is that of the authors' published data; id, onsets (samples), gains and entropy are ours."""
        from datasets import Audio, Features, Value

        audio = Audio(sampling_rate=settings.sample_rate)
        return Features({"id": Value("string"), "audio": audio, **source_features()})

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return ("audio",)

    def render(self, settings: SplitSceneSettings) -> RenderedScenes:
        """Draw the rows; nothing is written."""
        return RenderedScenes.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row without the sources of its scene."""
        check_sources(row["id"], row.get("metadata"))

    def describe(self, settings: SplitSceneSettings) -> str:
        """Markdown of the card."""
        sizes = " / ".join(f"{size:,}" for size in settings.split_sizes.values())
        return f"""\
{sizes} sound scenes (train / validation / test), after
*Evaluating Compositional Structure in Audio Representations*
([arXiv 2603.13685](https://arxiv.org/abs/2603.13685), ICASSP 2026): can a small model rebuild the embedding of a scene
from its attributes?

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `metadata` | the sources, each with `timbre_label`, `pitch_label`, `rate_label`, `amplitude_label` |
| `onsets` | first sample of each source |
| `gains` | linear gain of each source |
| `entropy` | per attribute: normalised entropy of the scene |

{describe_sources(settings)} A clip has a gain below 1 only where its peak would pass full scale.
{settings.scene_candidates:,} candidates were drawn (seed {settings.seed}), and those kept that make the entropies of
every attribute near uniform (Entrofy), with the same balance in each split. No scene is in two splits.

{CITATION}"""


RECIPE = _SplitScenes()
