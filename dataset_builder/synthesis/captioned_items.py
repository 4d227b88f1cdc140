"""Items of two or three clips with a caption each: as they are drawn, as rows, as sound."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeVar

from audio_compositionality.support.errors import InputError

from ..data import Pcm16, Row
from ..language.captions import Wording, caption
from ..language.expressions import Expression
from ..language.lexicon import attributes
from ..language.templates import Meaning, Template, templates
from .captioned import CaptionedSettings, Speaker, Split
from .description import describe_classes
from .rendering import SceneRendering
from .rows import LABELS
from .timeline import SourceEvent, event_clips

if TYPE_CHECKING:
    from datasets import Features

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
    from ..language.rows import item_features

    return item_features(sample_rate, LABELS)


def describe_words(settings: CaptionedSettings) -> str:
    """Markdown of the card: which sources the words of captions name."""
    from ..language.lexicon import words_of_classes

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
