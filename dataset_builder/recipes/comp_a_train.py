"""Captioned scenes for training, with parts that are true of them and near texts that are false (arXiv 2310.08753)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ..data import Pcm16, Row
from ..scenes.captioned import (
    CITATION,
    SequenceSettings,
    Speaker,
    describe_words,
    draw_mentioned,
    draw_shares,
    draw_until,
    novel_pairs,
    split_of,
)
from ..scenes.natural_items import EVENT_TEXTS, NaturalTraining, NaturalTrainingSettings, describe_training
from ..scenes.rendering import SceneRendering
from ..scenes.scene_settings import settings_of_recordings
from ..scenes.sources import LABELS, LazyRows, Source, random_generator
from ..scenes.timeline import SourceEvent, event_clips
from ..texts.caption_rows import check_training_row, training_features
from ..texts.captions import templates
from ..texts.expressions import Expression, Leaf, Together, formula, leaves, replaced, time_line
from ..texts.truth import Event
from ..texts.variants import MOST_POSITIVES, negatives, true_parts, wholes

if TYPE_CHECKING:
    import numpy as np
    from datasets import Features

    from ..sounds.entries import Sounds

_SCENES, _TEXTS = 39, 40
"""The random streams."""

_SPLITS = ("train", "validation")

_X, _Y, _Z = (Leaf(name) for name in "xyz")

_SHAPES: Mapping[int, tuple[Expression, ...]] = {
    1: (_X,),
    2: (_X + _Y, _X * _Y),
    3: (_X + _Y + _Z, _X * _Y * _Z, (_X + _Y) * _Z, (_X * _Y) + _Z, _X + (_Y * _Z)),
}
"""The trees of so many events, each as often as the others."""

_CAPTIONS, _NEGATIVES, _ABSENT = 4, 8, 2
"""Most equivalent captions and negatives of a row, and how many labels are drawn for negatives with an absent one."""


@dataclass(frozen=True, kw_only=True)
class TrainingSettings(SequenceSettings):
    """Everything that decides the rows and their samples. Defaults are the sizes of the preset ``full``.

    Attributes:
        train_rows: rows of the split ``train``.
        validation_rows: rows of the split ``validation``.
        single: share of rows of one event.
        three: share of rows of three events; the others have two.
        max_sources: N, 3.

    Raises:
        InputError: see `SequenceSettings`.
    """

    train_rows: int = 20_000
    validation_rows: int = 1_000
    single: float = 0.1
    three: float = 0.2
    max_sources: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("train_rows", self.train_rows, 1, 1_000_000)
        self._check("validation_rows", self.validation_rows, 1, 100_000)
        for name in ("single", "three"):
            self._check(name, getattr(self, name), 0, 1)
        self._check("single + three", self.single + self.three, 0, 1)

    @property
    def most_parts(self) -> int:
        """Of a sequence."""
        return 3


@dataclass(frozen=True)
class TrainingScene:
    """A row as it is drawn.

    Attributes:
        split: train or validation.
        number: of the row in its split.
        expression: what is true of the clip.
        events: of the clip, in the order of the expression's leaves.
    """

    split: str
    number: int
    expression: Expression
    events: tuple[SourceEvent, ...]


class RenderedTraining(SceneRendering[TrainingSettings]):
    """The rows of some settings and their sound; see `Rendering`."""

    name = "comp_a_train"

    @cached_property
    def scenes(self) -> tuple[TrainingScene, ...]:
        """The scenes, in the order of `rows`."""
        counts = (self.settings.train_rows, self.settings.validation_rows)
        of_splits = zip(_SPLITS, counts, strict=True)
        return tuple(scene for split, count in of_splits for scene in draw_scenes(self.settings, split, count))

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Rows without their audio, each made when it is first asked for: their texts take longer than their scenes."""
        speaker = Speaker(self.settings)
        count = self.settings.train_rows + self.settings.validation_rows
        return LazyRows(count, lambda index: _row(self.scenes[index], speaker))

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip, int16 [samples]."""
        return event_clips(self.tone_bank, [self.scenes[index].events])


class RecordedTraining(NaturalTraining):
    """The rows of settings of recordings and their sound; see `Rendering`."""

    name = RenderedTraining.name


def draw_scenes(settings: TrainingSettings, split: str, count: int) -> Iterator[TrainingScene]:
    """So many scenes of a split, one after the other; further ones change none of those before.

    No two have the same sources in the same tree, none has timbres of a novel pair, and none is in another split.
    """
    speaker = Speaker(settings)
    novel = novel_pairs(settings.num_classes)
    drawn: set[tuple[Expression, tuple[Source, ...]]] = set()
    for number in range(count):
        rng = random_generator(settings.seed, _SCENES, _SPLITS.index(split), number)
        shape = _draw_shape(settings, rng)
        gap = settings.draw_gap(rng)
        spans = time_line(shape, (0, settings.num_samples), gap, partial(draw_shares, rng=rng))
        # What sounds with another begins a little after the start that it shares with it.
        starts = [speaker.draw_start(rng) if _is_overlay(shape) else 0 for _ in spans]
        lengths = [stop - start - late for (start, stop), late in zip(spans, starts, strict=True)]
        draw = partial(_draw_sources, lengths, novel, speaker, rng)
        serves = partial(_serves, shape=shape, drawn=drawn, split=split, settings=settings)
        mentioned, sources = draw_until(draw, serves, number, (f"{split}_rows", count), settings.num_classes)
        drawn.add((shape, sources))
        expression = replaced(shape, [speaker.leaf(source, mentioned) for source in sources])
        events = [
            SourceEvent(source, start + late, stop)
            for source, (start, stop), late in zip(sources, spans, starts, strict=True)
        ]
        yield TrainingScene(split, number, expression, tuple(events))


def _draw_sources(
    lengths: Sequence[int], novel: frozenset[tuple[int, int]], speaker: Speaker, rng: np.random.Generator
) -> tuple[tuple[str, ...], tuple[Source, ...]]:
    """Attributes to mention, and a source for each of so many samples; none where the same words would describe all.

    What is mentioned is drawn anew with each: of a single event, one choice of it leaves too few sources.
    """
    mentioned = draw_mentioned(rng)
    timbres = _draw_timbres(len(lengths), speaker.settings.num_classes, novel, rng)
    words = [speaker.draw_words(mentioned, rng) for _ in lengths]
    if len(words) > 1 and all(one == words[0] for one in words):
        return mentioned, ()
    return mentioned, tuple(speaker.draw_source(*one, rng) for one in zip(timbres, words, lengths, strict=True))


def _serves(
    drawing: tuple[tuple[str, ...], tuple[Source, ...]],
    shape: Expression,
    drawn: Set[tuple[Expression, tuple[Source, ...]]],
    split: str,
    settings: TrainingSettings,
) -> bool:
    _, sources = drawing
    return bool(sources) and (shape, sources) not in drawn and split_of(sources, settings.num_classes) == split


def _draw_shape(settings: TrainingSettings, rng: np.random.Generator) -> Expression:
    place = rng.random()
    size = 1 if place < settings.single else 3 if place < settings.single + settings.three else 2
    return _SHAPES[size][int(rng.integers(len(_SHAPES[size])))]


def _is_overlay(shape: Expression) -> bool:
    return isinstance(shape, Together) and all(isinstance(part, Leaf) for part in shape.operands)


def _draw_timbres(
    count: int, num_classes: int, novel: frozenset[tuple[int, int]], rng: np.random.Generator
) -> list[int]:
    """So many timbres of which no two are a novel pair."""
    while True:
        timbres: list[int] = rng.permutation(num_classes)[:count].tolist()
        if novel.isdisjoint(combinations(sorted(timbres), 2)):
            return timbres


def _row(scene: TrainingScene, speaker: Speaker) -> Row:
    settings = speaker.settings
    rng = random_generator(settings.seed, _TEXTS, _SPLITS.index(scene.split), scene.number)
    rows = [speaker.event(event) for event in scene.events]
    events = [Event.of(row) for row in rows]
    captions = wholes(scene.expression, rng, most=_CAPTIONS, held_out=False)
    heard = {leaf.label for leaf in leaves(scene.expression)}
    absent = rng.permutation([noun for noun in speaker.nouns if noun not in heard])[:_ABSENT].tolist()
    said, wording, _ = captions[0]
    false = negatives(said, wording, events, rng, most=_NEGATIVES, absent=absent, held_out=False)
    true = true_parts(scene.expression, events, rng, most=MOST_POSITIVES, held_out=False)
    return {
        "id": f"{RECIPE.name}-{scene.split}-{scene.number:05d}",
        "split": scene.split,
        "captions": [text for *_, text in captions],
        "parts": [text for _, text in true],
        "negatives": [{"text": negative.text, "kind": negative.kind} for negative in false],
        "events": rows,
        "expression": formula(scene.expression),
    }


class _Training:
    """The recipe; see `Recipe`."""

    name = RenderedTraining.name
    version = 1
    splits = _SPLITS
    one_length = True

    @cached_property
    def presets(self) -> Mapping[str, TrainingSettings]:
        """Settings by the name of a preset; those of ``paper-`` are the same, since the paper has no such clips."""
        mini, full = TrainingSettings(train_rows=4_000, validation_rows=200), TrainingSettings()
        return {"mini": mini, "full": full, "paper-mini": mini, "paper-full": full}

    def of_recordings(
        self, settings: TrainingSettings | NaturalTrainingSettings, recordings: Sounds, requested: Mapping[str, Any]
    ) -> NaturalTrainingSettings:
        """Scenes of recordings in place of tones; see `RecordedRecipe`."""
        return settings_of_recordings(
            NaturalTrainingSettings, settings, recordings, requested, what="scenes of recordings"
        )

    def features(self, settings: TrainingSettings | NaturalTrainingSettings) -> Features:
        """See `rows.training_features`; ``expression`` is equal for rows that say the same."""
        from datasets import Value

        if isinstance(settings, NaturalTrainingSettings):
            return training_features(settings.sample_rate, EVENT_TEXTS, {"expression": Value("string")})
        return training_features(settings.sample_rate, LABELS, {"expression": Value("string")})

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return ("audio",)

    def render(self, settings: TrainingSettings | NaturalTrainingSettings) -> RenderedTraining | RecordedTraining:
        """Draw the rows; nothing is written."""
        if isinstance(settings, NaturalTrainingSettings):
            return RecordedTraining.of(settings)
        return RenderedTraining.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row without captions, negatives that say their kind, and events."""
        check_training_row(row)

    def describe(self, settings: TrainingSettings | NaturalTrainingSettings) -> str:
        """Markdown of the card."""
        if isinstance(settings, NaturalTrainingSettings):
            return describe_training(settings)
        kept = [template.name for of_one in templates().values() for template in of_one if template.held_out]
        return f"""\
{settings.train_rows:,} captioned clips for training and {settings.validation_rows:,} for validation, after the
template-based creation of *CompA: Addressing the Gap in Compositional Reasoning in Audio-Language Models*
([arXiv 2310.08753](https://arxiv.org/abs/2310.08753), ICLR 2024): one event ({settings.single:.0%}), two, or three
({settings.three:.0%}), one after the other (`+` in `expression`) or at the same time (`*`). A program tests every text
against the events: captions and parts are true of the clip, negatives are false.

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit |
| `captions` | up to {_CAPTIONS} that say the same, of sequences half with the first heard named last |
| `parts` | captions of parts, up to {MOST_POSITIVES} |
| `negatives` | up to {_NEGATIVES} near the first caption, each with its `kind` |
| `events` | `label`, `attributes` (all words that are true of it), `start`, `stop` (seconds), classes |
| `expression` | what the captions say: equal for rows that say the same |

Negatives of the kinds `order` (parts of a sequence exchanged) and `attribute` (a word or a noun exchanged) have the
words of the caption; `relation` says one after the other for at the same time, or the reverse; `absent` names what is
not heard.

No scene is in two splits or in the test items, and {len(novel_pairs(settings.num_classes))} pairs of timbres never meet
here: the `novel` ones of the test items. Neither do the templates {", ".join(kept)} occur.

{describe_words(settings)}

{CITATION}"""


RECIPE = _Training()
