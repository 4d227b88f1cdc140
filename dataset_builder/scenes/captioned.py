"""Scenes that are told by words: which sources serve, which pairs of timbres never meet in training, which split."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

import numpy as np

from audio_compositionality.support.errors import InputError

from ..data import Pcm16, Row
from ..texts.captions import Meaning, Template, Wording, caption, language_digest, templates
from ..texts.expressions import Expression, Leaf
from ..texts.lexicon import READING_ORDER, attributes, attributes_of, check_captioned, nouns, words_of_classes
from ..texts.truth import LEAST_SECONDS
from .rendering import SceneRendering
from .scene_settings import SceneSettings, describe_classes
from .sources import LABELS, Source, labels_of, random_generator
from .timeline import SourceEvent, event_clips

if TYPE_CHECKING:
    from datasets import Features


Split = Literal["train", "validation", "test"]

_TEST_SHARE, _VALIDATION_SHARE = 0.25, 0.05
"""Of all sets of sources."""

_NOVEL_SHARE = 6 / 28
"""Of the pairs of timbres."""

_NOVEL = 30
"""The random stream; the others of captioned scenes follow it."""

SECOND_TONE = 0.25
"""Seconds that are heard of an event's second tone, at least."""

_PAIR_SHARES, _MOST_RATIO = (0.4, 0.6), 1.15
"""Of the time of a sequence, the shares of two parts; and of more, the largest over the smallest."""

LATEST_START = 0.5
"""Seconds: sources that sound at the same time begin at different times up to this."""

Words = Mapping[str, str]
"""Words of a source, by attribute."""


@dataclass(frozen=True, kw_only=True)
class CaptionedSettings(SceneSettings):
    """What decides scenes that have captions: that of all scenes, the lexicon, the templates and the nouns.

    Attributes:
        max_sources: N, most sources of a clip.

    Raises:
        InputError: see `SceneSettings`; too few classes, or too narrow a range of pitch, to be told by words.
    """

    max_sources: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_captioned(self)
        for word, classes in words_of_classes("rate", self.num_classes).items():
            if not any(self.least_length(rate) <= self.shortest_event for rate in classes):
                least = min(map(self.least_length, classes)) / self.sample_rate
                raise InputError(
                    f"the shortest event lasts {self.shortest_event / self.sample_rate:.2f} s, and two tones of a "
                    f"{word!r} source {least:.2f} s: make duration longer, or gaps shorter"
                )

    @property
    def shortest_event(self) -> int:
        """Samples that every event has at least."""
        return self.num_samples - self.latest_start

    @property
    def latest_start(self) -> int:
        """Samples after which all that sounds at the same time has begun."""
        return round(LATEST_START * self.sample_rate)

    def least_length(self, rate: int) -> int:
        """Samples of an event in which a class of rate is heard twice."""
        return self.periods[rate] + round(SECOND_TONE * self.sample_rate)

    def values(self) -> dict[str, Any]:
        """The settings as JSON values, and what the captions are made from."""
        return {**super().values(), "language": language_digest(), "nouns": list(nouns(self))}


@dataclass(frozen=True, kw_only=True)
class SequenceSettings(CaptionedSettings):
    """What decides captioned scenes in which one comes after the other.

    Attributes:
        gaps: seconds of silence between two events; one of them is drawn a clip or item.

    Raises:
        InputError: see `CaptionedSettings`; events that are too short.
    """

    gaps: tuple[float, ...] = (0.0, 0.5, 1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gaps", tuple(map(float, self.gaps)))
        if not self.gaps or not all(0 <= gap < self.duration for gap in self.gaps):
            raise InputError(f"gaps are {self.gaps}; they are seconds, one or more, not negative and within the clip")
        super().__post_init__()
        if self.shortest_event < LEAST_SECONDS * self.sample_rate:
            raise InputError(
                f"the shortest event would last {self.shortest_event / self.sample_rate:.2f} s; events last "
                f"{LEAST_SECONDS:g} s or more: make duration longer, or gaps shorter"
            )

    @property
    def most_parts(self) -> int:
        """Of a sequence."""
        return 2

    @property
    def shortest_event(self) -> int:
        """Samples that every event has at least."""
        parts = range(2, self.most_parts + 1)
        longest_gap = math.ceil(max(self.gaps) * self.sample_rate)
        return min(int((self.num_samples - longest_gap * (count - 1)) * _least_share(count)) for count in parts)

    def draw_gap(self, rng: np.random.Generator) -> int:
        """Samples of silence between two events."""
        return round(float(rng.choice(self.gaps)) * self.sample_rate)

    def values(self) -> dict[str, Any]:
        """The settings as JSON values."""
        return {**super().values(), "gaps": list(self.gaps)}


def _least_share(count: int) -> float:
    return _PAIR_SHARES[0] if count == 2 else 1 / (1 + (count - 1) * _MOST_RATIO)


def draw_shares(count: int, rng: np.random.Generator) -> list[float]:
    """How parts of a sequence divide its time: two at 40 to 60 %, more nearly evenly."""
    if count == 2:
        cut = float(rng.uniform(*_PAIR_SHARES))
        return [cut, 1 - cut]
    return [float(share) for share in rng.uniform(1, _MOST_RATIO, count)]


def draw_mentioned(rng: np.random.Generator) -> tuple[str, ...]:
    """Which attributes of its sources a caption mentions: one or two."""
    every = attributes()
    options = [some for count in (1, 2) for some in combinations(every, count)]
    return options[int(rng.integers(len(options)))]


@cache
def novel_pairs(num_classes: int) -> frozenset[tuple[int, int]]:
    """The pairs of timbres that never meet in training: 6 of 28, among which each timbre is about equally often.

    They depend on the number of timbres alone: whatever seed a model was trained with, they are new to it.
    """
    pairs = list(combinations(range(num_classes), 2))
    count = max(1, round(len(pairs) * _NOVEL_SHARE))
    most = -(-2 * count // num_classes)
    rng = random_generator(0, _NOVEL, num_classes)
    while True:
        uses: Counter[int] = Counter()
        drawn: list[tuple[int, int]] = []
        for place in rng.permutation(len(pairs)):
            if len(drawn) < count and all(uses[timbre] < most for timbre in pairs[place]):
                drawn.append(pairs[place])
                uses.update(pairs[place])
        if len(drawn) == count and len(uses) == min(num_classes, 2 * count):
            return frozenset(drawn)


def pairs_of(subset: str, num_classes: int) -> tuple[tuple[int, int], ...]:
    """The pairs of timbres, each in increasing order: ``novel`` ones, or those that are ``seen`` in training."""
    novel = novel_pairs(num_classes)
    every = combinations(range(num_classes), 2)
    return tuple(pair for pair in every if (pair in novel) == (subset == "novel"))


def split_of(sources: Iterable[Source], num_classes: int) -> Split:
    """The split that a set of sources is in, whatever is drawn and by which seed: no scene is ever in two."""
    codes = sorted(source.code(num_classes) for source in sources)
    digest = hashlib.sha256(f"{num_classes} {codes}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < _TEST_SHARE:
        return "test"
    return "validation" if place < _TEST_SHARE + _VALIDATION_SHARE else "train"


@dataclass(frozen=True)
class Speaker:
    """Draws sources by words, and says what they are.

    Attributes:
        settings: of the scenes.
    """

    settings: CaptionedSettings

    @cached_property
    def nouns(self) -> tuple[str, ...]:
        """What each timbre is called."""
        return nouns(self.settings)

    def pair(self, timbres: Sequence[int]) -> str:
        """The name of an unordered pair of timbres."""
        return " | ".join(self.nouns[timbre] for timbre in sorted(timbres))

    def words(self, attribute: str) -> tuple[str, ...]:
        """The words of an attribute, from low to high."""
        return tuple(words_of_classes(attribute, self.settings.num_classes))

    def draw_words(self, mentioned: Iterable[str], rng: np.random.Generator) -> dict[str, str]:
        """A word of each attribute that is mentioned."""
        return {attribute: str(rng.choice(self.words(attribute))) for attribute in mentioned}

    def draw_source(self, timbre: int, words: Words, length: int, rng: np.random.Generator) -> Source:
        """A source of a timbre that the words are true of, and that is heard twice within a length.

        An attribute without a word is of any class; amplitude is of the upper half, so that nothing is masked that
        nobody calls quiet.

        Args:
            timbre: its class.
            words: by attribute.
            length: samples of its shortest event.
            rng: draws the classes.
        """
        count = self.settings.num_classes
        classes = {"pitch": range(count), "rate": range(count), "amplitude": range(count // 2, count)}
        drawn = {}
        for attribute, of_none in classes.items():
            options: Sequence[int] = of_none
            if attribute in words:
                options = words_of_classes(attribute, count)[words[attribute]]
            if attribute == "rate":
                options = [rate for rate in options if self.settings.least_length(rate) <= length]
            drawn[attribute] = int(rng.choice(options))
        return Source(timbre, **drawn)

    def leaf(self, source: Source, mentioned: Iterable[str]) -> Leaf:
        """What is said of a source: its noun, and its words of some attributes."""
        words = self.spoken(source)
        of_leaf = set(mentioned)
        return Leaf(self.nouns[source.timbre], tuple(words[one] for one in READING_ORDER if one in of_leaf))

    def spoken(self, source: Source) -> dict[str, str]:
        """The words of a source, by attribute."""
        count = self.settings.num_classes
        return {
            attribute: word
            for attribute in READING_ORDER
            for word, classes in words_of_classes(attribute, count).items()
            if getattr(source, attribute) in classes
        }

    def event(self, event: SourceEvent) -> dict[str, Any]:
        """An event as a row has it: label, words, seconds, and the labels of its classes."""
        rate = self.settings.sample_rate
        (labels,) = labels_of([event.source], self.settings)
        return {
            "label": self.nouns[event.source.timbre],
            "attributes": list(attributes_of(event.source, self.settings)),
            "start": event.start / rate,
            "stop": event.stop / rate,
            **labels,
        }

    def draw_start(self, rng: np.random.Generator) -> int:
        """When one of several that sound together begins; 0 where onsets are locked."""
        late = rng.random()
        return 0 if self.settings.onset == "locked" else int(late * self.settings.latest_start)


def dealt(options: Sequence[Any], number: int, seed: int, stream: int, *place: int) -> Any:
    """What is dealt to an item if each option is dealt once before one is dealt again, in an order that is drawn.

    Args:
        options: to deal.
        number: of the item, from 0.
        seed, stream, place: of the random numbers, see `random_generator`.
    """
    turn, position = divmod(number, len(options))
    return options[int(random_generator(seed, stream, *place, turn).permutation(len(options))[position])]


Settings = TypeVar("Settings", bound=CaptionedSettings)

Drawn = TypeVar("Drawn")

MOST_DRAWS = 20_000
"""Of the sources of an item; after as many that no item may have, there are none left, or hardly any."""

SUBSETS = ("seen", "novel")
"""By turns those of the items: pairs of timbres that meet in training, and others."""

CITATION = """\
```bibtex
@inproceedings{compa_2024,
  author        = {Ghosh, Sreyan and Seth, Ashish and Kumar, Sonal and Tyagi, Utkarsh and Evuru, Chandra Kiran and
                   Ramaneswaran, S. and Sakshi, S. and Nieto, Oriol and Duraiswami, Ramani and Manocha, Dinesh},
  title         = {CompA: Addressing the Gap in Compositional Reasoning in Audio-Language Models},
  booktitle     = {Proc. ICLR},
  year          = {2024},
  eprint        = {2310.08753},
  archivePrefix = {arXiv}
}
```
"""
"""Of the paper that the items are after."""


_STARTS = {"random": "at different times within half a second", "locked": "at once"}


@dataclass(frozen=True)
class CaptionedItem:
    """An item as it is drawn.

    Attributes:
        number: of the item.
        expressions: what each caption says.
        wordings: of each caption.
        clips: the events of each clip, of which the caption in its place is true, and of no other.
        swapped: what the first two clips differ in: ``order``, or attributes with a plus sign between them.
        gap: seconds between two events of the first two clips.
        overlap: seconds in which both are heard in these.
        distance: classes between the values that are exchanged, the largest of several attributes.
    """

    number: int
    expressions: tuple[Expression, ...]
    wordings: tuple[Wording, ...]
    clips: tuple[tuple[SourceEvent, ...], ...]
    swapped: str
    gap: float = 0.0
    overlap: float = 0.0
    distance: float = 0.0

    @property
    def captions(self) -> list[str]:
        """A caption of each clip."""
        return [caption(*said) for said in zip(self.expressions, self.wordings, strict=True)]


class RenderedItems(SceneRendering[Settings]):
    """Items and their sound, see `Rendering`; a subclass has a name and draws them.

    Attributes:
        split: of the items.
    """

    name = ""
    split: Split = "test"

    @classmethod
    def for_validation(cls, settings: Settings) -> Self:
        """Items to choose among models in training by: of the scenes, pairs of timbres and templates of that split."""
        rendering = cls(settings)
        rendering.split = "validation"
        return rendering

    @cached_property
    def speaker(self) -> Speaker:
        """Says what the sources are."""
        return Speaker(self.settings)

    @cached_property
    def items(self) -> tuple[CaptionedItem, ...]:
        """The items, in the order of `rows`."""
        return tuple(self.draw())

    @abstractmethod
    def draw(self) -> Iterator[CaptionedItem]:
        """The items of the settings, one after the other; further ones change none of those before."""

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(self._row(item) for item in self.items)

    def _row(self, item: CaptionedItem) -> Row:
        return {
            "id": f"{self.name}-{'' if self.split == 'test' else f'{self.split}-'}{item.number:05d}",
            "split": self.split,
            "captions": item.captions,
            "events": [[self.speaker.event(event) for event in events] for events in item.clips],
            "swapped": item.swapped,
            "mention": item.wordings[0].mention,
            "template": item.wordings[0].name,
            "subset": subset_of(item.number, self.split),
            "pair": self.speaker.pair([event.source.timbre for event in item.clips[0]]),
            "origin": "synthetic",
            "writer": "template",
            "domain": "tones",
            "gap": item.gap,
            "overlap": item.overlap,
            "distance": item.distance,
        }

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clips of an item, each int16 [samples], under one gain."""
        return event_clips(self.tone_bank, self.items[index].clips)


def subsets_of(split: Split) -> tuple[str, ...]:
    """The subsets that items of a split are of: what chooses among models in training has no pair that is novel."""
    return SUBSETS if split == "test" else SUBSETS[:1]


def subset_of(number: int, split: Split) -> str:
    """The subset of an item, by turns those of the split."""
    subsets = subsets_of(split)
    return subsets[number % len(subsets)]


def suiting(meaning: Meaning, split: Split, mention: str = "") -> list[Template]:
    """The templates of items of a split, in all but the test those of training rows; of a mention if given."""
    return [
        template
        for template in templates()[meaning]
        if mention in ("", template.mention) and (split == "test" or not template.held_out)
    ]


def draw_until(
    draw: Callable[[], Drawn], serves: Callable[[Drawn], bool], number: int, size: tuple[str, int], num_classes: int
) -> Drawn:
    """What is drawn first that serves as an item or a row.

    Args:
        draw: draws anew.
        serves: whether it does.
        number: of the item.
        size: the setting that says how many there are, its name and value, which the error names.
        num_classes: another that it names.

    Raises:
        InputError: after `MOST_DRAWS` there is none.
    """
    for _ in range(MOST_DRAWS):
        drawn = draw()
        if serves(drawn):
            return drawn
    name, wanted = size
    raise InputError(
        f"{name} is {wanted:,}, and after {number:,} no sources are left that differ from those of all "
        f"before: make {name} at most {number:,}, or num_classes, now {num_classes}, more"
    )


def scene_item_features(sample_rate: int) -> Features:
    """The columns of items of scenes: events have the labels of their classes beside their words."""
    from ..texts.caption_rows import item_features

    return item_features(sample_rate, LABELS)


def describe_words(settings: CaptionedSettings) -> str:
    """Markdown of the card: which sources the words of captions name."""
    from ..texts.lexicon import words_of_classes

    speaker = Speaker(settings)
    words = "\n".join(
        f"| {attribute} | {word} | {', '.join(map(str, classes))} |"
        for attribute in attributes()
        for word, classes in words_of_classes(attribute, settings.num_classes).items()
    )
    return f"""\
Captions call the classes of timbre, in the order of the table below:
{", ".join(speaker.nouns)}.
Words name classes with a gap between them; a class in a gap is never mentioned:

| attribute | word | classes |
|---|---|---|
{words}

{describe_classes(settings)}

Its tone is one note of an FM voice (nothing was recorded), held for half the period 1/rate and cut with a short fade at
the period, scaled to unit peak times its amplitude. An event begins with a tone and repeats it; where the event ends
the tone is cut with a half-cosine fade of 10 ms. Every source is heard at least twice, and what sounds at the same time
begins {_STARTS[settings.onset]}."""


ITEM_COLUMNS = """\
| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clips |
| `captions` | as many; each is true of the clip in its place and false of the others |
| `events` | of each clip: `label`, `attributes` (all words that are true of it), `start`, `stop` (seconds), classes |
| `swapped` | what the first two clips differ in |
| `mention` | of order, whether the first heard is named first (`forward`) or last (`reverse`); else empty |
| `template` | name of the template of the first two captions |
| `subset` | `seen`: the two timbres meet in the training rows; `novel`: they never do |
| `pair` | the two timbres, whichever is first: items of one pair are no independent samples |
| `origin`, `writer`, `domain` | `synthetic`, `template`, `tones` |
| `gap`, `overlap` | seconds of silence between the two events, and of both at once, in the first two clips |
| `distance` | classes between the exchanged values; 0 where none are |"""
