"""Counterparts from any sounds: a sound for each track of a group, and clips whose measured events confirm its answers.

If the measured events contradict the answers of a group, e.g. because a pause splits a sound in two, other sounds of
its labels are drawn, and then another group.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, nearest, shown

from ..data import DatasetError, Pcm16
from ..scenes.mixing import PEAK, Clip, DrawnRendering, Event, EventSounds, check_whole_steps, mix
from ..scenes.sources import random_generator
from ..sounds.annotations import STEPS, Activity, Annotation, LabelledEvent, intersection
from ..sounds.entries import Sounds, SoundsField, label_text
from ..sounds.splits import by_split_and_name, classified, split_of_sounds
from ..sounds.tones import ToneSounds, ToneSpec, check_nouns
from . import counterparts
from .questions import Question, QuestionError, check_labels, in_sentence, templates_digest

if TYPE_CHECKING:
    from ..recipes.base import Recipe

CLIP_LEVEL = 0.05
"""Root mean square of every clip, -26 dB."""

SHORTEST_SOUND = 0.1
"""Seconds between the silence at both ends of a recording; a shorter sound is not recognised by anybody."""

_SHARES: Mapping[str, float] = {"test": 0.4, "train": 0.6}
"""Shares of a label's files per split, or of the groups if groups have several labels."""

_SOUNDS = 77
"""Random stream."""

_DRAWS = 8
"""Draws of sounds and their excerpts for a group, until the measured events confirm its answers."""

_MOST_VARIANTS = 4
"""Most sounds of a label that a group can use."""

_SPARE, _LEAST_SPARE = 10, 60
"""Failing groups of a kind that are tolerated: a multiple of the successful ones, plus a constant."""


class PolyphonySpec(ToneSpec):
    """Everything that determines the counterparts and their samples, from tones or a user's sounds.

    Raises:
        InputError: see `ToneSpec`; or the fastest rate leaves silences, two timbres have one name, or a setting of
            tones is given together with other sounds.
    """

    sounds: SoundsField = Field(None, repr=False, description="Sounds with labels, used instead of tones.")
    seed: int = Field(0, ge=0, le=2**63 - 1, description="Seed of every random choice.")
    num_classes: int = Field(
        8, ge=counterparts.FEWEST_LABELS, le=49, description="K, classes of each attribute of tones."
    )
    train_sets: int = Field(
        30,
        ge=0,
        le=2_000,
        description="Sets of groups of the split `train`; with 0, all of a user's sounds are for test.",
    )
    test_sets: int = Field(200, ge=1, le=2_000, description="Sets of groups of the split `test`.")
    silence: float = Field(
        -35.0,
        ge=-80,
        le=-10,
        description="Decibels below the loudest 10 ms of a sound; anything softer counts as silence.",
    )
    background: str = Field(
        "", description="Label of the background of all clips, which no question is about; empty for none."
    )
    background_snr: float = Field(
        20.0, ge=0, le=60, description="Decibels by which the background is softer than the loudest sound of a clip."
    )
    domain: str = Field("", description="Domain of a user's sounds, in one word.")

    @model_validator(mode="after")
    def _check_sounds(self) -> PolyphonySpec:
        check_whole_steps(self.sample_rate)
        if not self.is_of_tones:
            return self
        # A tone is held for half its period, so silence lasts at most as long as the other half.
        longest = 2 * counterparts.EARLY_END / STEPS
        if self.periods[-1] > longest * self.sample_rate:
            raise InputError(
                f"rate_range is {self.rate_range}, so its fastest class repeats every "
                f"{1 / self.rates[-1]:.3f} s; questions need {longest:g} s or less, so that no event is split"
            )
        check_nouns(self)
        return self

    @property
    def num_samples(self) -> int:
        """Return the number of samples of a clip."""
        return counterparts.SECONDS * self.sample_rate

    @property
    def source_name(self) -> str:
        """Return the source of a clip for rows; for a user's sounds without a domain, what they were opened from."""
        return "scenes" if self.is_of_tones else self.domain or PurePath(self.heard.source).name or "recordings"

    @property
    def tones(self) -> Sounds:
        """Return every timbre at every pitch, at the fastest rate and the highest level."""
        last = (self.num_classes - 1,)
        return ToneSounds(self, rates=last, amplitudes=last)

    def values(self) -> dict[str, Any]:
        """Return the settings as JSON values, with the digest of the wordings of questions."""
        return {**super().values(), "templates": templates_digest()}

    def rendering(self, recipe: Recipe[Any]) -> DrawnRendering:
        """Return the questions and their sound."""
        return DrawnRendering.of_recipe(recipe, self)

    def card(self) -> dict[str, Any]:
        """Return the values of the card's template."""
        return {
            "about": "questions_of_counterparts.md",
            "levels": listed([f"{level:g}" for level in counterparts.LEVELS]),
            "clip_decibels": round(20 * np.log10(CLIP_LEVEL)),
            "longest_silence": counterparts.EARLY_END / STEPS,
            "background_text": label_text(self.background),
        }


class CounterpartPool:
    """Sounds with a single label.

    Attributes:
        source: what the data were opened from.
        events: the sounds as events.
        splits: names of the splits.
    """

    def __init__(self, sounds: Sounds, spec: PolyphonySpec) -> None:
        """Read nothing yet.

        Args:
            sounds: sounds with labels.
            spec: settings of the counterparts.
        """
        self.source = sounds.source
        self.events = EventSounds(sounds, spec.sample_rate, spec.silence)
        self.splits = counterparts.SPLITS if spec.train_sets else counterparts.SPLITS[1:]
        self._label_behind = label_text(spec.background)
        self._num_samples = spec.num_samples
        self._is_divided = not spec.is_of_tones and len(self.splits) > 1
        self._sounds, self._entries = sounds, sounds.entries

    @cached_property
    def by_split(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Return the indices of sounds by label, in each split; labels are in words, without underscores.

        Raises:
            UnlabelledError: no sound has a label.
            DatasetError: two labels read alike in a question.
        """
        return {
            split: {label: numbers for label, numbers in of_split.items() if label != self._label_behind}
            for split, of_split in self._every.items()
        }

    @cached_property
    def _every(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Return the indices of sounds by label in each split, including the background."""
        entries = self._entries
        usable = classified(self._sounds, "questions are asked")
        labels = [label_text(entries[number].label) for number in usable]
        try:
            check_labels([entries[number].label for number in usable], lambda label: in_sentence(label_text(label)))
        except QuestionError as error:
            raise DatasetError(f"{self.source}: {error}") from error
        if not self._is_divided:
            placed = [(split, *one) for split in self.splits for one in zip(labels, usable, strict=True)]
            return by_split_and_name(placed, self.splits)
        splits = split_of_sounds([entries[number] for number in usable], _SHARES)
        return by_split_and_name(zip(splits, labels, usable, strict=True), self.splits)

    def check_enough(self, count: int) -> None:
        """Raise an error if sounds have too few labels, or lack the background.

        Args:
            count: labels needed in each split.

        Raises:
            DatasetError: says what was found and what is needed.
        """
        behind = self._label_behind
        for split, of_split in self._every.items() if behind else ():
            every = sorted({label for labels in self._every.values() for label in labels})
            if behind not in every:
                raise DatasetError(
                    f"{self.source} has no label {behind!r} for the background; {nearest(behind, every)}"
                )
            if not of_split.get(behind):
                raise DatasetError(
                    f"{self.source} has no recording of the background {behind!r} for {split}. Give two files in "
                    "different "
                    "groups, one for each split, or set --set train_sets=0, which needs none for train"
                )
        if all(len(of_split) >= count for of_split in self.by_split.values()):
            return
        labels = sorted({label for of_split in self.by_split.values() for label in of_split})
        there_are = f"{len(labels)} label{'' if len(labels) == 1 else 's'}"
        if len(self.splits) == 1:
            raise DatasetError(f"{self.source} has {there_are}; questions need {count}: LABEL/file.wav")
        there = listed([f"{len(of_split)} for {split}" for split, of_split in self.by_split.items()])
        alone = [label for label in labels if not all(label in of_split for of_split in self.by_split.values())]
        raise DatasetError(
            f"{self.source} has {there_are}, {there}{f' ({shown(alone)} in one of them)' if alone else ''}; "
            f"questions need {count} for each split, and no file or group is in both: {count} labels with two "
            "files each are "
            f"enough, or {2 * count} labels with one; --set train_sets=0 needs none for train"
        )

    def background(self, split: str) -> tuple[int, ...]:
        """Return the indices of the background sounds of a split."""
        return self._every[split].get(self._label_behind, ())

    def draw(
        self, split: str, label: str, count: int, rng: np.random.Generator, condition: str | None = None
    ) -> list[int]:
        """Return the indices of up to `count` sounds of a label, or of its sounds with a condition, that are long
        enough; further sounds are not read.

        Raises:
            QuestionError: there is none.
        """
        least = round(SHORTEST_SOUND * self.events.sample_rate)
        numbers = [
            number
            for number in self.by_split[split][label]
            if condition is None or self._entries[number].condition == condition
        ]
        lengths = ((numbers[k], self.events.length(numbers[k])) for k in rng.permutation(len(numbers)))
        drawn = list(islice((number for number, length in lengths if length is None or length >= least), count))
        if not drawn:
            raise QuestionError(
                f"no recording of {label!r} for {split} has at least {SHORTEST_SOUND:g} s from its first to its "
                "last audible "
                "moment"
            )
        return drawn

    def shared_conditions(self, split: str, labels: Collection[str]) -> list[str]:
        """Return the conditions for which every given label has a sound."""
        conditions = [{self._entries[number].condition for number in self.by_split[split][label]} for label in labels]
        return sorted(set.intersection(*conditions) - {""})

    @staticmethod
    def related(labels: Collection[str]) -> set[str]:
        """Return labels that contain all words of another label, and the latter: ``dog barking`` and ``dog``."""
        words = {label: frozenset(in_sentence(label).casefold().split()) for label in labels}
        pairs = ((one, other) for one in labels for other in labels if one != other and words[one] <= words[other])
        return {label for pair in pairs for label in pair}

    def parted(self, split: str) -> list[str]:
        """Return the labels whose sounds are all split by a silence longer than `Rules.merge_gap`."""
        parted = []
        for label, numbers in self.by_split[split].items():
            lengths = {number: self.events.length(number) or self.events.period(number) for number in numbers}
            parts = [self.events.activity([Event(number, 0, length)]) for number, length in lengths.items()]
            if all(len(activity) > 1 for activity in parts):
                parted.append(label)
        return parted

    def mixed(self, clips: Sequence[Clip]) -> Sequence[Pcm16]:
        """Return clips, each int16 [samples], with a root mean square of `CLIP_LEVEL`."""
        return mix(clips, self.events.samples, self._num_samples, level=CLIP_LEVEL)

    @cached_property
    def block(self) -> float:
        """Return the steps of a block of events whose statistics must not reveal the answer: whole loops, if equally
        long.

        Raises:
            DatasetError: a loop is silent for so long that its event is split in two.
        """
        usable = {
            number for of_split in self.by_split.values() for of_label in of_split.values() for number in of_label
        }
        if not all(self._entries[number].loop for number in usable):
            return counterparts.BLOCK
        periods = {number: self.events.period(number) for number in sorted(usable)}
        for number, period in periods.items():
            # A loop may be silent for no longer than the time by which an event may end early.
            heard = np.flatnonzero(self.events.heard(Event(number, 0, 2 * period)))
            silent = int(np.diff(heard, prepend=-1).max()) - 1
            if silent > counterparts.EARLY_END:
                raise DatasetError(
                    f"{self.source}: {self._entries[number].id!r} is silent for {silent / STEPS:.2f} s within a tone "
                    f"of {period / self.events.sample_rate:.2f} s; questions need sounds that repeat within "
                    f"{counterparts.EARLY_END / STEPS:g} s; choose other voices, or a faster rate"
                )
        lengths = {period / self.events.sample_rate * STEPS for period in periods.values()}
        longest = max(lengths)
        return (
            longest * int(counterparts.BLOCK / longest)
            if len(lengths) == 1 and longest <= counterparts.BLOCK
            else counterparts.BLOCK
        )


class _Casting:
    """The sounds of the tracks of some groups: one for each variant of a label, as far as there are enough.

    If all labels have sounds with at least as many conditions as there are variants, a variant is a condition, e.g. a
    pitch, so that exchanging labels changes nothing else.
    """

    def __init__(
        self, pool: CounterpartPool, groups: Sequence[counterparts.CounterpartGroup], rng: np.random.Generator
    ) -> None:
        """Draw the sounds.

        Args:
            pool: all sounds.
            groups: groups with the same layout of tracks, at different times.
            rng: random generator of the groups.
        """
        self._hop = pool.events.sample_rate // STEPS
        spans: dict[str, int] = defaultdict(int)
        variants = set[int]()
        for track in (track for group in groups for clip in group.clips for track in clip.tracks):
            spans[track.label] = max(spans[track.label], *(stop - start for start, stop in track.spans))
            variants.add(track.variant)
        split = groups[0].split
        shared = pool.shared_conditions(split, spans)
        self._numbers: dict[str, list[int]]
        if len(shared) > max(variants):
            drawn = [shared[k] for k in rng.permutation(len(shared))[: max(variants) + 1]]
            self._numbers = {
                label: [*(pool.draw(split, label, 1, rng, condition)[0] for condition in drawn)]
                for label in sorted(spans)
            }
        else:
            self._numbers = {label: pool.draw(split, label, _MOST_VARIANTS, rng) for label in sorted(spans)}
        self._pool, self._spans = pool, spans
        self._shares = {
            number: rng.random(_MOST_VARIANTS) for of_label in self._numbers.values() for number in of_label
        }

    def events(self, clip: counterparts.CounterpartClip) -> dict[str, list[Event]]:
        """Return the events of a clip, by label."""
        by_label: dict[str, list[Event]] = defaultdict(list)
        heard: dict[int, list[tuple[Activity, int]]] = defaultdict(list)
        for track in clip.tracks:
            numbers = self._numbers[track.label]
            number = numbers[track.variant % len(numbers)]
            taken = {part for spans, part in heard[number] if intersection(spans, track.spans)}
            part = next(part for part in count() if part not in taken)
            heard[number].append((track.spans, part))
            # The sample of the sound at which the track begins, an audible one: a sound longer than its whole track
            # begins at a random position; if a label has no further sound for a simultaneous track, that track uses
            # another part of the same sound.
            events, needed = self._pool.events, self._spans[track.label] * self._hop
            length, offset = events.length(number), 0
            if part or (length is not None and length > needed):
                of_sound = Event(number, 0, events.period(number) if part else (length or 0) - needed)
                places = np.flatnonzero(events.heard(of_sound))
                offset = int(places[int(self._shares[number][part] * len(places))]) * self._hop
            gain = 10 ** (track.level / 20)
            by_label[track.label] += [
                Event(number, start * self._hop, stop * self._hop, gain, offset) for start, stop in track.spans
            ]
        return dict(by_label)


@dataclass(frozen=True)
class AskedClip:
    """A question and its clip.

    Attributes:
        question: question about the clip.
        annotation: the measured events of the clip.
        group: the group of counterparts.
        clip: events of the clip, the background last.
    """

    question: Question
    annotation: Annotation
    group: counterparts.CounterpartGroup
    clip: Clip


class Cast:
    """Groups of counterparts with sounds that confirm their answers."""

    def __init__(self, pool: CounterpartPool, spec: PolyphonySpec, kinds: Sequence[counterparts.Kind]) -> None:
        """Draw nothing yet.

        Args:
            pool: all sounds.
            spec: settings of the groups.
            kinds: kinds of groups; a set has one group of each.
        """
        self._pool, self._spec, self._kinds = pool, spec, kinds

    def asked(self, split: str, sets: int) -> Iterator[AskedClip]:
        """Yield the questions of `sets` groups of each kind; if more are requested, the earlier ones stay the same.

        Raises:
            DatasetError: the sounds permit so few groups that further draws are useless.
        """
        counts, failures = Counter[str](), Counter[str]()
        labels, most = list(self._pool.by_split[split]), _SPARE * sets + _LEAST_SPARE
        for groups in counterparts.draw_groups(
            self._kinds, labels, split, sets + most, self._spec.seed, block=self._pool.block
        ):
            kind = groups[0].kind
            if counts[kind] == sets:
                if sum(counts.values()) == sets * len(self._kinds):
                    return
                continue
            reason, cast = self._borne_out(groups)
            if cast:
                counts[kind] += 1
                yield from cast
                continue
            failures[kind] += 1
            if failures[kind] == _SPARE * counts[kind] + _LEAST_SPARE:
                parted, made = self._pool.parted(split), counts[kind]
                pauses = f"; silences of more than 0.2 s split all sounds of {shown(parted)}" if parted else ""
                fewer = f", or --set {split}_sets={made} to get fewer questions" if made else ""
                raise DatasetError(
                    f"{self._pool.source}: {made} of {sets} groups of {kind} can be made for {split}; the next "
                    "one failed "
                    f"because {reason}{pauses}. Give more labels, files without pauses{fewer}"
                )

    def _borne_out(self, groups: Sequence[counterparts.CounterpartGroup]) -> tuple[str, list[AskedClip]]:
        """Return the questions of groups with sounds that confirm the answers, or the reason why there are none."""
        first, reason = groups[0], ""
        related = self._pool.related({track.label for clip in first.clips for track in clip.tracks})
        if related:
            return f"{listed(sorted(related))} are more and less specific names of one sound", []
        place = (counterparts.SPLITS.index(first.split), first.place, first.number)
        numbers, hop = self._pool.background(first.split), self._spec.sample_rate // STEPS
        for attempt in range(_DRAWS):
            rng = random_generator(self._spec.seed, _SOUNDS, *place, attempt)
            try:
                casting, behind = _Casting(self._pool, groups, rng), list[Event]()
                if numbers:
                    number = numbers[int(rng.integers(len(numbers)))]
                    offset = int(rng.integers(self._pool.events.period(number) // hop)) * hop
                    gain = 10 ** (-self._spec.background_snr / 20)
                    behind.append(Event(number, 0, self._spec.num_samples, gain, offset))
                return "", [one for group in groups for one in self._asked(group, casting, behind)]
            except QuestionError as error:
                reason = str(error)
        return reason, []

    def _asked(
        self, group: counterparts.CounterpartGroup, casting: _Casting, behind: Sequence[Event]
    ) -> list[AskedClip]:
        """Return the questions of a group about its clips.

        Raises:
            QuestionError: the measured events contradict its answers, or a clip is too loud for a moment.
        """
        clips: dict[str, Clip] = {}
        annotations = {}
        hop, pool = self._spec.sample_rate // STEPS, self._pool
        softer = 10 ** (-self._spec.background_snr / 20) if self._spec.background else 0.0
        for clip in group.clips:
            by_label = casting.events(clip)
            heard = clips[clip.name] = [*(event for of_label in by_label.values() for event in of_label), *behind]
            # An upper bound of the samples, except for the correlation of the sounds.
            peaks, power = np.zeros(counterparts.SECONDS * STEPS), 0.0
            for event in heard:
                peaks[event.start // hop : event.stop // hop] += pool.events.peak(event)
                power += pool.events.loudness(event) ** 2 * event.length
            if peaks.max() * CLIP_LEVEL / np.sqrt(power / self._spec.num_samples) > PEAK:
                raise QuestionError(f"{clip.name}: one moment is so much louder than the rest that it would be clipped")
            measured = [
                LabelledEvent(start / STEPS, stop / STEPS, label)
                for label, of_label in by_label.items()
                for start, stop in pool.events.activity(of_label, softer)
            ]
            measured.sort(key=lambda event: (event.onset, event.offset, event.label))
            annotations[clip.name] = Annotation(
                clip.name, float(counterparts.SECONDS), tuple(measured), 0.0, self._spec.source_name, group=group.name
            )
        questions = counterparts.questions_of(group, list(annotations.values()))
        return [AskedClip(one, annotations[one.recording], group, clips[one.recording]) for one in questions]
