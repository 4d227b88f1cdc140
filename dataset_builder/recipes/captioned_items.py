"""What recipes with captions have in common: their settings, their columns, and the rendering of their scenes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError

from ..data import AUDIO, NUMBER, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes import captioned
from ..scenes.mixing import DrawnRendering, EventSounds, check_whole_steps
from ..scenes.sources import LONGEST_DURATION, random_generator
from ..sounds.entries import SoundsField, tables_digest, word_places, words_of_classes
from ..sounds.tones import ToneSpec, check_nouns, check_words
from ..texts.captions import (
    CaptionTemplate,
    CaptionWording,
    Meaning,
    Mention,
    caption,
    caption_templates,
    language_digest,
)
from ..texts.truth import HeardEvent
from .base import Recipe

_PARTS = 69
"""Random stream for excerpts of long sounds."""

ORIGINS = ("synthetic", "recordings", "published")
WRITERS = ("template", "language-model", "human")


class CaptionedSpec(ToneSpec):
    """The settings of captioned scenes: sounds and length of clips.

    Raises:
        InputError: a value is out of range, sounds would be too short, or tones share their words.
    """

    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of every random choice.")
    duration: float = Field(10.0, gt=0, le=LONGEST_DURATION, description="Seconds of a clip.")
    onset: Literal["random", "locked"] = Field(
        "random", description="Whether simultaneous sounds begin at random within half a second, or at once."
    )
    different_kinds: bool = Field(
        False, description="Whether labels in one clip must be different kinds of sounds, e.g. dogs and vehicles."
    )
    repeats: bool = Field(False, description="Whether scenes may be repeated once all are used.")
    domain: str = Field("", description="Domain of the sounds in one word, for the rows.")
    sounds: SoundsField = Field(None, repr=False, description="Sounds to use instead of tones.")

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        check_whole_steps(self.sample_rate)
        shortest = self.shortest_event / self.sample_rate
        if shortest < captioned.SHORTEST:
            shorter = ", or gaps shorter" if self.is_of_tones else ""
            raise InputError(
                f"the shortest event would last {shortest:.2f} s; events must last {captioned.SHORTEST:g} s or "
                "more. Make "
                f"duration longer{shorter}"
            )
        if not self.is_of_tones:
            return self
        check_nouns(self)
        check_words(self)
        for word, classes in words_of_classes("rate", self.num_classes).items():
            least = min(self.periods[rate] for rate in classes) / self.sample_rate + captioned.SECOND_TONE
            if least > shortest:
                raise InputError(
                    f"the shortest event lasts {shortest:.2f} s, but two tones of a {word!r} source last "
                    f"{least:.2f} s. "
                    "Make duration longer, or gaps shorter"
                )
        return self

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return round(self.duration * self.sample_rate)

    @property
    def shortest_event(self) -> int:
        """Return the number of samples of the shortest event, which its sound fills completely."""
        return self.num_samples - round(captioned.LATEST_START * self.sample_rate)

    def draw_late(self, count: int, rng: np.random.Generator) -> tuple[float, ...]:
        """Return when each of `count` simultaneous sounds begins, as a share of half a second."""
        late = rng.random(count)
        return (0.0,) * count if self.onset == "locked" else tuple(map(float, late))

    def values(self) -> dict[str, Any]:
        """Return the settings as JSON values, with the digests of the language and tables of captions."""
        return {**super().values(), "language": language_digest(), "tables": tables_digest()}


class SequenceSpec(CaptionedSpec):
    """The settings of captioned scenes with one sound after another."""

    gaps: tuple[float, ...] = Field(
        (0.0, 0.5, 1.0), description="Seconds of silence between two tones; one value is drawn for each clip or item."
    )

    of_tones: ClassVar[frozenset[str]] = ToneSpec.of_tones | {"gaps"}

    @model_validator(mode="before")
    @classmethod
    def _check_gaps(cls, values: Any) -> Any:
        gaps, duration = values.get("gaps", (0,)), values.get("duration", 10)
        if not isinstance(gaps, list | tuple) or not all(isinstance(one, int | float) for one in (*gaps, duration)):
            # Pydantic reports the rule.
            return values
        if not gaps or not all(0 <= gap < duration for gap in gaps):
            raise InputError(
                f"gaps is {gaps}; give one or more values in seconds, not negative and shorter than the clip"
            )
        return values

    @property
    def most_parts(self) -> int:
        """Return the largest number of parts of a sequence."""
        return 2

    @property
    def shortest_event(self) -> int:
        """Return the number of samples of the shortest event, which its sound fills completely."""
        longest_gap = math.ceil(max(self.gaps) * self.sample_rate)
        return min(
            int((self.num_samples - longest_gap * (count - 1)) * captioned.least_share(count))
            for count in range(2, self.most_parts + 1)
        )

    def draw_gap(self, rng: np.random.Generator) -> int:
        """Draw the number of samples of silence between two loops."""
        return round(float(rng.choice(self.gaps)) * self.sample_rate)


def draw_mentioned(attributes: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    """Draw the attributes that a caption mentions: one or two, or none if sounds have no attributes."""
    options = [some for count in (1, 2) for some in combinations(attributes, count)]
    return options[int(rng.integers(len(options)))] if options else ()


def draw_sounds(
    palette: captioned.Palette,
    split: str,
    names: Sequence[str],
    mentioned: Sequence[str],
    seconds: Sequence[float],
    rng: np.random.Generator,
) -> tuple[int, ...] | None:
    """Draw a sound with random words for each name, long enough to repeat in its time; None if a name has none."""
    sounds = []
    for name, of_sound in zip(names, seconds, strict=True):
        words = palette.draw_words(split, name, mentioned, rng)
        numbers = palette.numbers(split, name, words, of_sound)
        if not len(numbers):
            return None
        sounds.append(int(rng.choice(numbers)))
    return tuple(sounds)


def draw_named(
    palette: captioned.Palette, split: str, labels: Sequence[str], seconds: Sequence[float], rng: np.random.Generator
) -> tuple[tuple[int, ...], tuple[str, ...]] | None:
    """Draw a sound for each duration, and the attributes to mention; None if the same words would describe all.

    Mentioned attributes are drawn again in each attempt: for a single event, one choice leaves too few sounds.
    """
    names = palette.draw_meeting(len(seconds), labels, rng)
    mentioned = draw_mentioned(palette.attributes, rng)
    sounds = None if names is None else draw_sounds(palette, split, names, mentioned, seconds, rng)
    if sounds is None:
        return None
    words = [{one: palette.words(sound).get(one) for one in mentioned} for sound in sounds]
    if len(sounds) > 1 and mentioned and all(one == words[0] for one in words):
        return None
    return sounds, mentioned


def none_left(setting: str, value: int, number: int, spec: CaptionedSpec) -> InputError | DatasetError:
    """Return the error that sounds permit no more items or rows: few recordings, or unsuitable tone settings."""
    text = f"{setting} is {value:,}, but after {number:,} no sounds are left that were not used together before"
    if spec.is_of_tones:
        return InputError(f"{text}. Make {setting} at most {number:,}, or num_classes (now {spec.num_classes}) larger")
    fewer = f"Make {setting} at most {number:,}, or " if number else ""
    return DatasetError(f"{spec.heard.source}: {text}. {fewer}give more sounds of each label and word")


def templates_for(meaning: Meaning, split: str, mention: str = "") -> list[CaptionTemplate]:
    """Return the templates for a split: all for test items, else the training templates; only one mention if given."""
    return [
        template
        for template in caption_templates()[meaning]
        if mention in ("", template.mention) and (split == "test" or not template.held_out)
    ]


@dataclass(frozen=True)
class CaptionedScene:
    """A drawn row.

    Attributes:
        split: split of the row.
        number: index of the row in its split.
        clips: sounds of each clip.
        said: meaning of each caption.
        wordings: wordings of items' captions.
        gap: samples of silence between two loops.
        late: see `timed`.
        facts: further columns of the row, drawn together with it.
    """

    split: str
    number: int
    clips: tuple[captioned.TimedClip, ...]
    said: tuple[captioned.Expression, ...]
    wordings: tuple[CaptionWording, ...] = ()
    gap: int = 0
    late: tuple[float, ...] = ()
    facts: Mapping[str, Any] | None = None


AnySpec = TypeVar("AnySpec", bound=CaptionedSpec)


class CaptionedRecipe(Recipe[AnySpec]):
    """A recipe with captions; a subclass draws scenes and makes their rows. See `Recipe`.

    Attributes:
        by_noun: see `Palette`.
    """

    by_noun: ClassVar[bool] = False

    def scenes(self, spec: AnySpec, palette: captioned.Palette, split: str) -> Iterator[CaptionedScene]:
        """Yield the scenes of a split; if more are requested, the earlier ones stay the same."""
        raise NotImplementedError

    def row(self, scene: CaptionedScene, events: Sequence[Sequence[Row]], rendering: CaptionedRendering) -> Row:
        """Return the columns of a row, without id, split and events."""
        raise NotImplementedError

    def render(self, spec: AnySpec) -> CaptionedRendering:
        """Draw the rows without writing anything."""
        return CaptionedRendering.of_recipe(self, spec)

    def card(self, spec: AnySpec) -> Mapping[str, Any]:
        """Return the templates reserved for test, and the classes of each word."""
        held_out = [
            template.name for of_one in caption_templates().values() for template in of_one if template.held_out
        ]
        words = () if not spec.is_of_tones else tuple(
            (attribute, word, classes)
            for attribute in word_places()
            for word, classes in words_of_classes(attribute, spec.num_classes).items()
        )  # fmt: skip
        sound = {"shortest": captioned.SHORTEST, "silence": -captioned.SILENCE, "shares": captioned.SHARES}
        return {"held_out": held_out, "words": words, "classes": list(zip(*spec.labels.values(), strict=True)), **sound}


class LazyRows(Sequence[Row]):
    """Rows that are made when first accessed."""

    def __init__(self, count: int, row: Callable[[int], Row]) -> None:
        self._numbers, self._row = range(count), cache(row)

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        numbers = self._numbers[index]
        return [self._row(number) for number in numbers] if isinstance(numbers, range) else self._row(numbers)


class CaptionedRendering(DrawnRendering):
    """The rows of a recipe with captions and their sound, made on demand; see `Rendering`."""

    _recipe: CaptionedRecipe[Any]

    @cached_property
    def palette(self) -> captioned.Palette:
        """Return the sounds by their names and words."""
        return captioned.Palette(self.sounds, by_noun=self._recipe.by_noun, different_kinds=self.spec.different_kinds)

    @cached_property
    def events(self) -> EventSounds:
        """Return the sounds as events."""
        return EventSounds(self.sounds, self.sample_rate, captioned.SILENCE, levels=True)

    @cached_property
    def scenes(self) -> tuple[CaptionedScene, ...]:
        """Return the scenes, in the order of `rows`."""
        every = (self._recipe.scenes(self.spec, self.palette, split) for split in self._splits)
        return tuple(scene for of_split in every for scene in of_split)

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Return rows without audio, made when first accessed, since texts take longer than scenes."""
        return LazyRows(len(self.scenes), self._row)

    def plan(self, index: int) -> captioned.TimedRow:
        """Return the times of the sounds in a row's clips."""
        scene = self.scenes[index]
        rng = random_generator(self.spec.seed, _PARTS, list(captioned.SHARES).index(scene.split), scene.number)
        return captioned.timed(scene.clips, scene.gap, scene.late, self.events, rng)

    def _row(self, index: int) -> Row:
        scene, row = self.scenes[index], self.plan(index)
        events = []
        for clip in row.clips:
            times = [[sample / self.sample_rate for sample in row.heard(event)] for event in clip]
            events.append(
                [
                    {**self.palette.of_entry(event.entry), "start": start, "stop": stop}
                    for event, (start, stop) in zip(clip, times, strict=True)
                ]
            )
        infix = "" if self._splits == ("test",) else f"{scene.split}-"
        row_id = {"id": f"{self._recipe.name}-{infix}{scene.number:05d}", "split": scene.split}
        return {**row_id, **self._recipe.row(scene, events, self), **(scene.facts or {})}

    def clips(self, index: int) -> Sequence[Pcm16]:
        """Return the clips of a row, each int16 [samples], with a common gain."""
        return captioned.mixed(self.plan(index), self.events, self.spec.num_samples)


ITEM_COLUMNS = (
    DataColumn("id", TEXT, "name of the row"),
    DataColumn("audio", [AUDIO], "the clips", per="captions"),
    DataColumn(
        "captions",
        [TEXT],
        "one caption per clip: true of this clip and false of the others",
        least=2,
        filled=True,
    ),
    DataColumn("events", [[captioned.EVENT]], f"for each clip: {captioned.EVENTS_MEANING}", per="captions"),
    DataColumn("swapped", TEXT, "difference of the first two clips: `order`, or attributes joined by plus signs"),
    DataColumn(
        "mention",
        TEXT,
        "for order: whether the first sound is mentioned first (`forward`) or last (`reverse`); else empty",
        choices=get_args(Mention),
    ),
    DataColumn("template", TEXT, "name of the template of the first two captions"),
    DataColumn(
        "subset",
        TEXT,
        "`seen`: the two labels occur together in the training rows; `novel`: they never do; empty if they are "
        "of one kind",
        choices=(*captioned.SUBSETS, ""),
    ),
    DataColumn("pair", TEXT, "the two labels in any order; items with the same pair are not independent samples"),
    DataColumn("origin", TEXT, "`synthetic` (tones) or `recordings`", choices=ORIGINS),
    DataColumn("writer", TEXT, "writer of the captions: `template`", choices=WRITERS),
    DataColumn("domain", TEXT, "domain of the sounds"),
    DataColumn("gap", NUMBER, "silence between the two events in the first two clips, in seconds"),
    DataColumn("overlap", NUMBER, "overlap of the two events in the first two clips, in seconds"),
    DataColumn("distance", NUMBER, "distance of the exchanged values in classes; 0 if none are exchanged"),
)


class ItemRecipe(CaptionedRecipe[AnySpec]):
    """A recipe of items: two or three clips with one caption each, true of its own clip and false of the others."""

    def columns(self, spec: AnySpec) -> Sequence[DataColumn]:
        """Return the columns of items."""
        return ITEM_COLUMNS

    def row(self, scene: CaptionedScene, events: Sequence[Sequence[Row]], rendering: CaptionedRendering) -> Row:
        """Return the columns of an item."""
        spec = rendering.spec
        one, other = sorted(events[0], key=lambda event: float(event["start"]))
        between = round((other["start"] - min(one["stop"], other["stop"])) * spec.sample_rate) / spec.sample_rate
        return {
            "captions": [caption(*said) for said in zip(scene.said, scene.wordings, strict=True)],
            "events": [list(of_clip) for of_clip in events],
            "mention": scene.wordings[0].mention,
            "template": scene.wordings[0].name,
            "origin": ORIGINS[not spec.is_of_tones],
            "writer": WRITERS[0],
            "domain": spec.domain_name,
            "gap": max(between, 0.0),
            "overlap": abs(min(between, 0.0)),
            "distance": 0.0,
        }

    def render_validation(self, scenes: Any, items: int) -> CaptionedRendering:
        """Draw items of the validation split that sound like the given scenes; see `ValidatedRecipe`."""
        if not isinstance(scenes, CaptionedSpec):
            raise InputError(f"{self.name} makes no items like scenes of {type(scenes).__name__}")
        kind: Any = type(next(iter(self.presets.values())))
        shared = {name: getattr(scenes, name) for name in kind.model_fields if name in type(scenes).model_fields}
        suiting = {} if scenes.is_of_tones else self.suiting
        return CaptionedRendering.of_recipe(self, kind(**{**suiting, **shared, "items": items}), ("validation",))

    def check_row(self, row: Row) -> None:
        """Raise an error if a row lacks the captions, events, tags or values of an item.

        Raises:
            DatasetError: names the row and what is wrong.
        """
        super().check_row(row)
        captions = row["captions"]
        if len(captions) > 3 or len(set(captions)) < len(captions):
            raise DatasetError(
                f"row {row['id']}: captions are {captions!r}; an item must have two or three different ones"
            )
        for of_clip in row["events"]:
            check_events(row["id"], of_clip)


def check_events(row_id: str, events: Sequence[Row]) -> None:
    """Raise an error if an event does not begin before it ends.

    Raises:
        DatasetError: names the row and what is wrong.
    """
    for event in events:
        try:
            HeardEvent.of(event)
        except InputError as error:
            raise DatasetError(
                f"row {row_id}: an event is {event!r}; it must have a label, attributes, and start < stop in seconds"
            ) from error
