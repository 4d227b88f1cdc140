"""Blocks of scenes: one of K classes is added to two contexts, by a different instance of it in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..data import DatasetError, Pcm16, Row
from ..scenes.blocks import Block, draw_blocks
from ..scenes.mixing import exact_clips
from ..scenes.recorded import (
    BlockSettings,
    RecordedRendering,
    check_lists,
    check_texts,
    describe_placing,
    describe_recordings,
)

if TYPE_CHECKING:
    from datasets import Features

    from ..sounds.entries import Sounds

_PLACES = 21
"""The random stream."""

_CONTEXT_A, _CONTEXT_C, _SIDE_B, _SIDE_D = range(4)
"""Places of a block's sources within it."""

LISTS = ("B", "D", "alone_b", "alone_d")
"""The columns with a clip of each class."""

SINGLES = ("A", "C")

_OF_CLASSES = ("instances_b", "instances_d")
_OF_CONTEXTS = ("context_a", "context_c", "context_a_instances", "context_c_instances")


class RenderedBlocks(RecordedRendering[BlockSettings]):
    """The blocks of some settings and their sound; see `Rendering`."""

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, in the order of `rows`."""
        return tuple(draw_blocks(self.pool, self.settings))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(self._row(block) for block in self.blocks)

    def _row(self, block: Block) -> Row:
        sides = block.sides
        return {
            "id": f"{RECIPE.name}-{block.number:05d}",
            "split": "test",
            "labels": list(sides.labels),
            "condition_b": sides.conditions[0],
            "condition_d": sides.conditions[1],
            "instances_b": self.ids(sides.first),
            "instances_d": self.ids(sides.second),
            "context_a": self.labels(block.context_a),
            "context_c": self.labels(block.context_c),
            "context_a_instances": self.ids(block.context_a),
            "context_c_instances": self.ids(block.context_c),
            "level_db": self.settings.snr_db,
            "eq_db": self.settings.eq_db,
            "domain": self.settings.domain_name,
        }

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips A, C, all B, all D, and the added sources alone: of those of B, then of those of D."""
        block = self.blocks[index]
        a = self.together(block.context_a, _PLACES, block.number, _CONTEXT_A)
        c = self.together(block.context_c, _PLACES, block.number, _CONTEXT_C)
        gain = 10 ** (self.settings.snr_db / 20)
        added = [
            gain * self.placed(number, _PLACES, block.number, side, k)
            for side, numbers in ((_SIDE_B, block.sides.first), (_SIDE_D, block.sides.second))
            for k, number in enumerate(numbers)
        ]
        places = range(2, 2 + len(added))
        of_b, of_d = places[: len(block.sides.labels)], places[len(block.sides.labels) :]
        scenes = [(0,), (1,), *((0, place) for place in of_b), *((1, place) for place in of_d)]
        return exact_clips([a, c, *added], [*scenes, *((place,) for place in places)])


class _Blocks:
    """The recipe; see `Recipe`."""

    name = "a_coat_instances"
    version = 1
    splits = ("test",)
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, BlockSettings]:
        """Settings by the name of a preset, of the timbres of the project's own voices."""
        of_timbres: dict[str, Any] = {"classes": 6, "context_sources": 1}
        return {"mini": BlockSettings(blocks=24, **of_timbres), "full": BlockSettings(blocks=96, **of_timbres)}

    def of_recordings(self, settings: BlockSettings, recordings: Sounds, requested: Mapping[str, Any]) -> BlockSettings:
        """Recordings in place of timbres, with more classes and larger contexts; see `RecordedRecipe`."""
        usual = BlockSettings()
        sizes = {"classes": usual.classes, "context_sources": usual.context_sources}
        return replace(settings, **{**sizes, **requested, "recordings": recordings})

    def features(self, settings: BlockSettings) -> Features:
        """The columns with sound are in the order of `clip_names`."""
        from datasets import Audio, Features, List, Value

        audio, text = Audio(sampling_rate=settings.sample_rate), Value("string")
        return Features(
            {
                "id": text,
                **dict.fromkeys(SINGLES, audio),
                **{name: List(audio) for name in LISTS},
                "labels": List(text),
                **dict.fromkeys(("condition_b", "condition_d"), text),
                **{name: List(text) for name in (*_OF_CLASSES, *_OF_CONTEXTS)},
                **dict.fromkeys(("level_db", "eq_db"), Value("float64")),
                "domain": text,
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """A, C, then B, D, alone_b and alone_d of each class."""
        return (*SINGLES, *(f"{name}/{k}" for name in LISTS for k in range(len(row["labels"]))))

    def render(self, settings: BlockSettings) -> RenderedBlocks:
        """Draw the rows; nothing is written."""
        return RenderedBlocks.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that does not say what its classes and contexts are."""
        name = row["id"]
        check_lists(row, ("labels",), least=2)
        if len(set(row["labels"])) < len(row["labels"]):
            raise DatasetError(f"row {name}: labels are {row['labels']!r}; those of a block differ")
        check_lists(row, _OF_CLASSES, count=len(row["labels"]))
        check_lists(row, ("context_a", "context_c"), least=1)
        for column in ("context_a", "context_c"):
            check_lists(row, (f"{column}_instances",), count=len(row[column]))
        check_texts(row, ("condition_b", "condition_d", "domain"))
        if not isinstance(row.get("level_db"), float):
            raise DatasetError(f"row {name}: level_db is {row.get('level_db')!r}; it is a number")

    def describe(self, settings: BlockSettings) -> str:
        """Markdown of the card."""
        k, sources = settings.classes, settings.context_sources
        related = "that are not related" if settings.unrelated else "that may be related"
        return f"""\
{settings.blocks:,} blocks: two contexts A and C, and {k} classes, each by two different instances: T under one
condition, T′ under another. B = A ∪ T and D = C ∪ T′ of each class. Does an embedding know which of the {k} was added,
whatever the instance and the context? After the quadruples of *Evaluating Compositional Structure in Audio
Representations* ([arXiv 2603.13685](https://arxiv.org/abs/2603.13685)), across instances.

{describe_recordings(settings)} A condition is what the {k} candidates of a side share and must not decide, such as the
voice that says words; the two of a block are different ones {related}. Where there are none, the two instances of a
class are of different groups. A context has {sources} {"source" if sources == 1 else "sources"} of labels that are in
no other part of the block. Labels, conditions and recordings are used as evenly as they can be (seed {settings.seed}).

| column | content |
|---|---|
| `id` | name of the row |
| `A`, `C` | the contexts: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `B`, `D` | for each class its context and the instance |
| `alone_b`, `alone_d` | for each class the instance alone, as it is in B and in D |
| `labels` | of the classes |
| `condition_b`, `condition_d` | of the instances of either side; empty where there are none |
| `instances_b`, `instances_d` | names of the recordings, class by class |
| `context_a`, `context_c` | labels of the sources of either context |
| `context_a_instances`, `context_c_instances` | names of these recordings |
| `level_db` | level of an instance over that of its context |
| `eq_db` | standard deviation of the filters at their knots |
| `domain` | what the recordings are |

{describe_placing(settings)} Contexts have that level as a whole, and instances are {settings.snr_db:g} dB over it. The
clips of a block share one gain; contexts and instances are rounded to 16 bits before they are added, so that B − A is
`alone_b`, and D − C is `alone_d`, sample by sample.
"""


RECIPE = _Blocks()
