"""Twins of our own scenes: tones in place of what is described, their sound, and when they are heard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed

from ..data import DatasetError, Pcm16, Row, Waveform
from ..sounds.formats.base import Annotation, LabelledEvent
from ..sounds.intervals import STEPS
from ..sounds.tones import nouns, render_tone
from ..texts.questions.atoms import ATOMS, atoms_digest
from ..texts.questions.base import NO_TIME, ORDER, SIMULTANEITY, Question, question_tasks, time_of
from ..texts.questions.rows import row_of
from ..texts.questions.templates import spoken, templates_digest
from .arrangements import arrangement_of, atom_questions, draw_atoms, draw_pairs, gap_of, questions_of
from .rendering import SharedRendering
from .sources import SceneSettings, Source, random_generator
from .timeline import SourceEvent, event_samples
from .tone_bank import ToneBank, Tones
from .twins import BLOCK, EARLY_END, FEWEST_LABELS, KINDS, LEVELS, SECONDS, SPLITS, TwinClip, TwinGroup, draw_groups

SOURCE = "scenes"
"""Name of the data set in rows."""

CLIP_LEVEL = 0.05
"""Root mean square of every clip, -26 dB; full scale is 26 dB above it."""

HEADROOM = 0.99
"""Of full scale, what a peak may be."""

AUDIBLE = 10 ** (-30 / 20)
"""What is softer than this, beside the peak of its tone, is silence."""

_PITCHES = 73
"""The random stream."""


@dataclass(frozen=True, kw_only=True)
class TwinSettings(SceneSettings):
    """Everything that decides twins of scenes and their samples. Defaults are the sizes of the preset ``full``.

    Attributes:
        train_sets: sets of groups of the split ``train``; a set has 23 clips and 25 questions.
        test_sets: sets of groups of the split ``test``.

    Raises:
        InputError: see `SceneSettings`; clips of another length, a fastest rate that leaves silences, too few classes,
            or two timbres that are called alike.
    """

    train_sets: int = 30
    test_sets: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check("train_sets", self.train_sets, 0, 2_000)
        self._check("test_sets", self.test_sets, 1, 2_000)
        if self.duration != SECONDS:
            raise InputError(f"duration is {self.duration:g} s; the time lines of questions are of {SECONDS} s")
        self._check("num_classes (K)", self.num_classes, FEWEST_LABELS, 49)
        # A tone is held for half its period: what is silent in the other half is at most as long.
        longest = 2 * EARLY_END / STEPS
        if self.periods[-1] > longest * self.sample_rate:
            raise InputError(
                f"rate_range is {self.rate_range}, and its fastest class repeats every "
                f"{1 / self.rates[-1]:.3f} s; questions need one of {longest:g} s or less, so that no event falls apart"
            )
        names = [spoken(noun) for noun in nouns(self)]
        if len(set(names)) < len(names):
            raise InputError(f"two timbres are called alike: {listed(names)}; questions need a name for each")

    @property
    def rate(self) -> int:
        """The class of rate of all sources: the fastest."""
        return self.num_classes - 1

    @property
    def block(self) -> float:
        """Steps of as many whole tones as fit into `timed_twins.BLOCK`."""
        period = self.periods[self.rate] / self.sample_rate * STEPS
        return period * max(1, int(BLOCK / period))

    def values(self) -> dict[str, Any]:
        """The settings as JSON values, and what questions are worded by."""
        return {**super().values(), "labels": list(nouns(self)), "templates": templates_digest()}


@dataclass(frozen=True)
class TwinTones:
    """The tones of some settings at the fastest rate, all equally loud, and when their events are heard.

    Attributes:
        bank: tones of the fastest rate alone.
        decibels: for each timbre and pitch what brings its tone to a root mean square of 1.
    """

    bank: ToneBank
    decibels: Mapping[tuple[int, int], float]

    @classmethod
    def of(cls, settings: TwinSettings) -> TwinTones:
        """Render the tones.

        Raises:
            DatasetError: a voice is silent at one of the notes, or for too long within a tone.
        """
        rate, period = settings.rate, settings.periods[settings.rate]
        classes = [(timbre, pitch) for timbre in range(settings.num_classes) for pitch in range(settings.num_classes)]

        def tone_of(key: tuple[int, int]) -> Waveform:
            voice, note = settings.voices[key[0]], settings.pitches[key[1]]
            return render_tone(voice, note, period, settings.velocity, settings.sample_rate)

        with ThreadPoolExecutor() as pool:
            tones = dict(zip(classes, pool.map(tone_of, classes), strict=True))
        bank = ToneBank(settings, Tones({(*key, rate): tone for key, tone in tones.items()}))
        decibels = {
            # To a thousandth: so the last bits of a processor's sums are in no sample.
            key: round(-10 * float(np.log10(np.mean(np.square(tone, dtype=np.float64)))), 3)
            for key, tone in tones.items()
        }
        bank_of_settings = cls(bank, decibels)
        for timbre, pitch in classes:
            silence = bank_of_settings.longest_silence(timbre, pitch)
            if silence > EARLY_END / STEPS:
                raise DatasetError(
                    f"voice {settings.labels['timbre'][timbre]!r} is silent for {silence:.2f} s within a tone of "
                    f"{period / settings.sample_rate:.2f} s at MIDI note {settings.pitches[pitch]}; questions need "
                    f"voices that are heard again after {EARLY_END / STEPS:g} s: choose other voices, or a faster rate"
                )
        return bank_of_settings

    def event(self, timbre: int, pitch: int, length: int) -> Waveform:
        """An event of so many samples, float32 [length], with a root mean square of 1 in each whole tone."""
        settings = self.bank.settings
        amplitude = settings.num_classes - 1
        samples = event_samples(self.bank, Source(timbre, pitch, settings.num_classes - 1, amplitude), length)
        gain = 10 ** ((self.decibels[timbre, pitch] - settings.decibels[amplitude]) / 20)
        return samples * np.float32(gain)

    def audible(self, timbre: int, pitch: int, length: int) -> int:
        """Samples of an event of so many until the last that is not silence, see `AUDIBLE`."""
        period = self.bank.settings.periods[-1]
        # The whole tones before the last are like it.
        before = max(0, length // period - 1) * period
        return before + int(self._heard(self.event(timbre, pitch, length - before))[-1]) + 1

    def longest_silence(self, timbre: int, pitch: int) -> float:
        """Seconds of the longest silence between two tones, and before the first."""
        settings = self.bank.settings
        heard = self._heard(self.event(timbre, pitch, 2 * settings.periods[-1]))
        return int(np.diff(heard, prepend=-1).max() - 1) / settings.sample_rate

    @staticmethod
    def _heard(samples: Waveform) -> NDArray[np.intp]:
        """The samples of an event that are not silence."""
        magnitudes = np.abs(samples)
        return np.flatnonzero(magnitudes > AUDIBLE * magnitudes.max())


@dataclass(frozen=True)
class _Placed:
    """A question with its clip.

    Attributes:
        group: number of the group among all.
        clip: number of the clip in its group.
        row: without sound.
    """

    group: int
    clip: int
    row: Row


class TwinScenes(SharedRendering[TwinSettings]):
    """Questions about twins of our scenes and their sound; see `Rendering`."""

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What each timbre is called in questions."""
        return nouns(self.settings)

    @cached_property
    def tones(self) -> TwinTones:
        """What clips are mixed from."""
        return TwinTones.of(self.settings)

    @cached_property
    def groups(self) -> tuple[TwinGroup, ...]:
        """The groups of twins, split by split."""
        sets = (self.settings.train_sets, self.settings.test_sets)
        return tuple(
            group
            for split, count in zip(SPLITS, sets, strict=True)
            for group in draw_groups(self.labels, split, count, self.settings.seed, block=self.settings.block)
        )

    def annotation(self, group: TwinGroup, clip: TwinClip) -> Annotation:
        """What is heard in a clip: events begin with their spans and end where they are last audible."""
        rate = self.sample_rate
        events = []
        for event, _ in self.events(group, clip):
            end = event.start + self.tones.audible(event.source.timbre, event.source.pitch, event.length)
            label = self.labels[event.source.timbre]
            events.append(LabelledEvent(round(event.start / rate, 3), round(end / rate, 3), label))
        ordered = sorted(events, key=lambda event: (event.onset, event.offset, event.label))
        return Annotation(clip.name, self.settings.duration, tuple(ordered), 0.0, SOURCE, group=group.name)

    def events(self, group: TwinGroup, clip: TwinClip) -> Iterator[tuple[SourceEvent, float]]:
        """The events of a clip, and the level of each in decibels."""
        pitches = self._pitches(group)
        rate, amplitude = self.settings.rate, self.settings.num_classes - 1
        for track in clip.tracks:
            source = Source(self.labels.index(track.label), pitches[track.variant], rate, amplitude)
            for span in track.spans:
                start, stop = (round(step * self.sample_rate / STEPS) for step in span)
                yield SourceEvent(source, start, stop), track.level

    def _pitches(self, group: TwinGroup) -> Sequence[int]:
        """The pitch of each variant of a group; all different."""
        place = (SPLITS.index(group.split), group.place, group.number)
        rng = random_generator(self.settings.seed, _PITCHES, *place)
        order: list[int] = rng.permutation(self.settings.num_classes).tolist()
        return order

    def questions(self, group: TwinGroup, annotations: Sequence[Annotation]) -> tuple[Question, ...]:
        """The questions of a group, clip by clip; raises QuestionError where what is heard does not bear one out."""
        return questions_of(group, annotations)

    @cached_property
    def _placed(self) -> tuple[_Placed, ...]:
        placed = []
        for number, group in enumerate(self.groups):
            annotations = {clip.name: self.annotation(group, clip) for clip in group.clips}
            places = {clip.name: place for place, clip in enumerate(group.clips)}
            for question in self.questions(group, tuple(annotations.values())):
                annotation = annotations[question.recording]
                row = row_of(
                    question,
                    annotation,
                    group.split,
                    gap=gap_of(question, annotation),
                    level_difference=group.level_difference,
                )
                placed.append(_Placed(number, places[question.recording], row))
        return tuple(placed)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(placed.row for placed in self._placed)

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip of a row, int16 [samples]."""
        placed = self._placed[index]
        return (self.clip(self.groups[placed.group], placed.clip),)

    def clip(self, group: TwinGroup, place: int) -> Pcm16:
        """A clip of a group, int16 [samples]: its root mean square is `CLIP_LEVEL`.

        That of all clips of a group is lower where one of them would pass full scale.
        """
        mixed = self._mixed(group.clips[place], group)
        gain = 10 ** (round(20 * float(np.log10(self._level(group) / _root_mean_square(mixed))), 3) / 20)
        return np.asarray(np.rint(mixed * np.float32(gain * np.iinfo(np.int16).max)), np.int16)

    @cached_property
    def _levels(self) -> dict[str, float]:
        """The root mean square of the clips of each group that was asked for."""
        return {}

    def _level(self, group: TwinGroup) -> float:
        if group.name not in self._levels:
            mixed = [self._mixed(clip, group) for clip in group.clips]
            crest = max(float(np.abs(samples).max()) / _root_mean_square(samples) for samples in mixed)
            self._levels[group.name] = min(CLIP_LEVEL, HEADROOM / crest)
        return self._levels[group.name]

    def _mixed(self, clip: TwinClip, group: TwinGroup) -> Waveform:
        """The sum of a clip's events, float32 [samples], before any common gain."""
        mixed = np.zeros(self.settings.num_samples, np.float32)
        for event, level in self.events(group, clip):
            samples = self.tones.event(event.source.timbre, event.source.pitch, event.length)
            mixed[event.start : event.stop] += samples * np.float32(10 ** (level / 20))
        return mixed


def _root_mean_square(samples: Waveform) -> float:
    return float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))


def describe_scenes(settings: TwinSettings) -> str:
    """Markdown of the card: how the clips sound; without the columns."""
    levels = listed([f"{level:g}" for level in LEVELS])
    return f"""\
A clip is of our own scenes: {settings.duration:g} s, mono, {settings.sample_rate} Hz, 16-bit, all with one root mean
square ({20 * np.log10(CLIP_LEVEL):.0f} dB). Labels are the timbres: {", ".join(nouns(settings))}. A sound repeats one
note of an FM voice (nothing was recorded) every {1 / settings.rates[-1]:.3f} s, held for half of that, at one of
{settings.num_classes} pitches (MIDI {", ".join(map(str, settings.pitches))}). All notes have one root mean square;
some tracks of a group are softer than the rest by what is dealt to it: {levels} dB. Events end where they are last
heard at {20 * np.log10(AUDIBLE):.0f} dB of their peak; no silence within one is longer than {EARLY_END / STEPS:g} s."""


@dataclass(frozen=True, kw_only=True)
class ApartSettings(TwinSettings):
    """Everything that decides pairs of scenes and their samples; see `TwinSettings`.

    A set of groups is 14 clips with a question each: four about counting and three about duration, in either
    arrangement.
    """


class ApartScenes(TwinScenes):
    """Questions about scenes in two arrangements and their sound; see `Rendering`."""

    @cached_property
    def groups(self) -> tuple[TwinGroup, ...]:
        """The groups of twins, split by split; those of a pair follow each other."""
        sets = (self.settings.train_sets, self.settings.test_sets)
        return tuple(
            group
            for split, count in zip(SPLITS, sets, strict=True)
            for group in draw_pairs(self.labels, split, count, self.settings.seed)
        )

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio; with the arrangement, and what the same question has in both as its pair."""
        rows = []
        for placed in self._placed:
            arrangement, pair = arrangement_of(self.groups[placed.group])
            rows.append({**placed.row, "arrangement": arrangement, "pair": f"{pair}-{placed.clip + 1}"})
        return tuple(rows)


_PITCHES_ATOM_SCENES = 77
"""The random stream."""


@dataclass(frozen=True, kw_only=True)
class AtomSettings(TwinSettings):
    """Everything that decides scenes with atomic questions and their samples; see `TwinSettings`.

    A set of groups is four clips with two questions each: two about presence and two about a sequence.
    """

    def values(self) -> dict[str, Any]:
        """The settings as JSON values, and what questions are worded by."""
        return {**super().values(), "templates": atoms_digest()}


class AtomScenes(TwinScenes):
    """Atomic questions about scenes and their sound; see `Rendering`."""

    @cached_property
    def groups(self) -> tuple[TwinGroup, ...]:
        """The groups of twins, split by split."""
        sets = (self.settings.train_sets, self.settings.test_sets)
        return tuple(
            group
            for split, count in zip(SPLITS, sets, strict=True)
            for group in draw_atoms(self.labels, split, count, self.settings.seed)
        )

    def questions(self, group: TwinGroup, annotations: Sequence[Annotation]) -> tuple[Question, ...]:
        """See `atom_twins.atom_questions`."""
        return atom_questions(group, annotations)

    def _pitches(self, group: TwinGroup) -> Sequence[int]:
        place = (SPLITS.index(group.split), ATOMS.index(group.task), group.number)
        order: list[int] = (
            random_generator(self.settings.seed, _PITCHES_ATOM_SCENES, *place)
            .permutation(self.settings.num_classes)
            .tolist()
        )
        return order


CLIPS_OF_SET, QUESTIONS_OF_SET = 23, 25
"""Of the seven groups of a set."""

_NEEDS = {NO_TIME: "neither", SIMULTANEITY: "what sounds at one moment", ORDER: "the order in time"}
"""What a kind of question needs, in words; see `questions.base.NO_TIME`."""

CITATION = """\
```bibtex
@misc{polybench_2026,
  title         = {PolyBench: multiple-choice questions about polyphonic sound for audio language models},
  year          = {2026},
  eprint        = {2603.05128},
  archivePrefix = {arXiv}
}
```
"""
"""Of the paper that the questions are after."""

COLUMNS = """\
| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip |
| `question`, `options`, `answer` | what is asked, what is chosen from in this order, and what is right |
| `task`, `variant` | what it is about: `counting`, `duration`, `concurrency`, `classification`, `detection`, and how |
| `anchor` | the label that is asked about; empty where the whole clip is |
| `polarity` | of Yes and No, what Yes says: `overlap` or `alone`; else empty |
| `template` | name of the wording |
| `group` | what clips of one origin have in common: samples of one group are no independent ones |
| `unit` | questions with the same words and options that are balanced with each other |
| `recording`, `source` | the clip, and the data set that it is of |
| `start`, `duration`, `resolution` | seconds: where the clip begins, how long it is, how exact its labels are |
| `polyphony` | most labels that are heard at the same time |
| `overlap` | seconds in which two labels or more are heard |
| `gap` | seconds of silence between what is asked about and what is apart from it, where that is dealt; else missing |
| `level_difference` | dB between the loudest and the softest track, where that is exact; else missing |
| `events` | when which label is heard: `onset`, `offset` (seconds), `label` |"""
"""The columns of all questions."""


def _time_table() -> str:
    """A row for each kind of question of a set."""
    tasks = question_tasks()
    rows = [f"| `{kind}` | {_NEEDS[time_of(kind, tasks)]} |" for kind in KINDS]
    return "\n".join(["| kind of question | needs |", "|---|---|", *rows])


def describe_twins(train_sets: int, test_sets: int) -> str:
    """Markdown of what twins are.

    Args:
        train_sets, test_sets: sets of groups of the splits.
    """
    clips, questions = (
        [f"{count * sets:,}" for sets in (train_sets, test_sets)] for count in (CLIPS_OF_SET, QUESTIONS_OF_SET)
    )
    return f"""\
{questions[1]} multiple-choice questions about {clips[1]} clips in which sounds overlap, and {questions[0]} about
{clips[0]} to learn from, after *PolyBench* ([arXiv 2603.05128](https://arxiv.org/abs/2603.05128)). The paper's data are
unpublished; tasks and rules are its own made exact, clips and wordings are ours.

The clips are twins. A group has two to four, with one question and one list of options, and the answer is another in
each: the sounds are at the same places, and only which label is where differs (of detection, in which of four places
two sounds overlap). So text alone is at chance, and so is what is measured of the sound without telling labels apart.

What of time a question needs:

{_time_table()}

Where it is neither, what there is of each sound in the whole clip tells the answer, whenever that is heard: a forest on
mean and deviation of log-mel bands, learnt from the split train, is right far above chance in all clips of a group of
`duration`. These two kinds are the paper's own; `duration/longest` and `counting/together` ask the same with time.

A group of

- `counting` has four tracks that overlap, and 1, 2, 3 and 4 labels on them;
- `duration` has three tracks of lengths like 4 : 7 : 11, on which three labels take turns;
- `duration/longest` has three tracks of the same total length, level and number of events, of which any two are heard
  together equally long; one has a much longer event than the others, and three labels take turns on them;
- `counting/together` has four labels at six times, each at three of them: twice in one voice and once in two. Two,
  three or four of them are heard at once, at most; at each time as many voices sound in all clips;
- `concurrency` has three tracks, of which two overlap and one is alone: the label that is alone and one of the others
  change places. It has two questions, one about either, so that in each state Yes is right half of the time;
- `classification` has an anchor, a sound that overlaps it, one before, one after, and a label that is not heard: four
  labels take turns;
- `detection` has four places with two sounds each, which overlap in one and follow each other in the rest.

Two sounds overlap if both are heard for half a second, and are apart if 0.2 s lie between them; nothing is asked about
what is in between. Two algorithms that have nothing in common agree on every answer."""
