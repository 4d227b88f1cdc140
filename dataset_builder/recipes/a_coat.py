"""Quadruples of scenes, in which the same sources are added to two scenes (arXiv 2603.13685, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ..data import DatasetError, Pcm16, Row
from ..scenes.description import CITATION, describe_sources
from ..scenes.entrofy import entropy_bins, quadruple_entropy, select_balanced
from ..scenes.rendering import SceneRendering
from ..scenes.sources import (
    Quadruple,
    SceneSettings,
    check_sources,
    codes_of,
    draw_onsets,
    entropy_column,
    gains_of,
    labels_of,
    random_generator,
    sample_quadruples,
    source_features,
    sources_of,
)

if TYPE_CHECKING:
    from datasets import Features

Level = Literal["shared", "clip"]

CLIPS = ("A", "B", "C", "D")

_CANDIDATES, _SELECTION, _ONSETS = 1, 2, 3
"""The random streams."""


@dataclass(frozen=True, kw_only=True)
class QuadrupleSettings(SceneSettings):
    """Everything that decides the quadruples and their samples. Defaults are the paper's sizes (the preset ``full``).

    Attributes:
        quadruple_candidates: size of the pool (paper, section 4.1).
        quadruples: how many are chosen of it.
        level: ``shared``, one gain for the clips of a quadruple; ``clip``, each clip has its own, the paper's literal
            text, which makes B louder or softer than A plus T.

    Raises:
        InputError: see `SceneSettings`.
    """

    quadruple_candidates: int = 50_000
    quadruples: int = 2_000
    level: Level = "shared"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("quadruples", self.quadruples, 1, self.quadruple_candidates)
        self._check_choice("level", Level)


class RenderedQuadruples(SceneRendering[QuadrupleSettings]):
    """The quadruples of some settings and their sound; see `Rendering`."""

    @cached_property
    def quadruples(self) -> tuple[Quadruple, ...]:
        """The quadruples, in the order of `rows`."""
        return tuple(draw_quadruples(self.settings))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(_row(quadruple, self.settings) for quadruple in self.quadruples)

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips A, B, C, D of a quadruple, each int16 [samples]."""
        shared = self.settings.level == "shared"
        return tuple(self.tone_bank.quadruple_clips(self.quadruples[index], shared_gain=shared))


def draw_quadruples(settings: QuadrupleSettings) -> list[Quadruple]:
    """The quadruples of some settings: candidates, balanced selection, onsets; same settings, same quadruples."""
    candidates = sample_quadruples(
        random_generator(settings.seed, _CANDIDATES),
        settings.quadruple_candidates,
        settings.num_classes,
        settings.max_sources,
    )
    rng = random_generator(settings.seed, _SELECTION)
    bins = entropy_bins(quadruple_entropy(candidates, settings.num_classes))
    selected = candidates[rng.permutation(select_balanced(bins, settings.quadruples, rng))]
    rng = random_generator(settings.seed, _ONSETS)
    quadruples = []
    for index, sets in enumerate(selected):
        a, c, t = (sources_of(codes, settings) for codes in sets)
        onsets = [draw_onsets(sources, settings, rng) for sources in (a, c, t)]
        quadruples.append(Quadruple(f"{RECIPE.name}-test-{index:05d}", a, c, t, *onsets))
    return quadruples


def _row(quadruple: Quadruple, settings: QuadrupleSettings) -> Row:
    q = quadruple
    parts = (("A", q.a, q.a_onsets), ("C", q.c, q.c_onsets), ("T", q.t, q.t_onsets))
    entropy = quadruple_entropy(codes_of([q.a, q.c, q.t], settings)[None], settings.num_classes)[0]
    return {
        "id": q.id,
        "split": "test",
        "metadata": {name: labels_of(sources, settings) for name, sources, _ in parts},
        "onsets": {name: list(onsets) for name, _, onsets in parts},
        "gains": {name: gains_of(sources, settings) for name, sources, _ in parts},
        "entropy": entropy_column(entropy),
    }


class _Quadruples:
    """The recipe; see `Recipe`."""

    name = "a_coat"
    version = 1
    splits = ("test",)
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, QuadrupleSettings]:
        """Settings by the name of a preset; those of ``paper-`` follow the paper's text to the letter."""
        letter: dict[str, Any] = {"onset": "locked", "level": "clip"}
        return {
            "mini": QuadrupleSettings(quadruples=64),
            "full": QuadrupleSettings(),
            "paper-mini": QuadrupleSettings(quadruples=64, **letter),
            "paper-full": QuadrupleSettings(**letter),
        }

    def features(self, settings: QuadrupleSettings) -> Features:
        """``metadata`` is that of the authors' published data; id, onsets (samples), gains and entropy are ours."""
        from datasets import Audio, Features, Value

        columns = source_features()
        return Features(
            {
                "id": Value("string"),
                **{name: Audio(sampling_rate=settings.sample_rate) for name in CLIPS},
                **{name: dict.fromkeys("ACT", columns[name]) for name in ("metadata", "onsets", "gains")},
                "entropy": columns["entropy"],
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """A, B, C, D."""
        return CLIPS

    def render(self, settings: QuadrupleSettings) -> RenderedQuadruples:
        """Draw the rows; nothing is written."""
        return RenderedQuadruples.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row without the sources of A, C and T."""
        metadata = row.get("metadata")
        if not isinstance(metadata, dict):
            raise DatasetError(f"row {row['id']}: metadata is {metadata!r}; it has the sources of A, C and T")
        for part in "ACT":
            check_sources(row["id"], metadata.get(part))

    def describe(self, settings: QuadrupleSettings) -> str:
        """Markdown of the card."""
        level = {
            "shared": (
                "The four clips of a quadruple share one gain, below 1 only where a peak would pass full scale, and "
                "B − A and D − C are the same samples."
            ),
            "clip": "Each clip has its own gain, below 1 only where its peak would pass full scale: a named variant.",
        }[settings.level]
        return f"""\
{settings.quadruples:,} quadruples A, B = A ∪ T, C, D = C ∪ T of sound scenes, after
*Evaluating Compositional Structure in Audio Representations*
([arXiv 2603.13685](https://arxiv.org/abs/2603.13685), ICASSP 2026): is adding the same sources to two scenes the same
step?

| column | content |
|---|---|
| `id` | name of the row |
| `A`, `B`, `C`, `D` | clips: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `metadata` | the sources of A, C and T, each with `timbre_label`, `pitch_label`, `rate_label`, `amplitude_label` |
| `onsets` | first sample of each source; the same in A and B, in C and D, and for T in B and D |
| `gains` | linear gain of each source |
| `entropy` | per attribute: the normalised entropies H(A) + H(C) + H(T) |

{describe_sources(settings)} {level}
{settings.quadruple_candidates:,} candidates were drawn (seed {settings.seed}), and those kept that make the entropies
of every attribute near uniform (Entrofy).

{CITATION}"""


RECIPE = _Quadruples()
