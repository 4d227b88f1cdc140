"""Twins of isolated sounds that a user brings: clips that differ in what sounds where, and questions about them.

What is heard is measured. Where it does not bear out the answers of a group, as with a sound that a pause parts in two,
other files are drawn, and then other labels and times.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, shown

from ..data import DatasetError, Pcm16, Row
from ..sounds.entries import Sounds
from ..sounds.formats.base import Annotation, LabelledEvent, label_text
from ..sounds.intervals import STEPS
from ..texts.questions.base import Question, QuestionError
from ..texts.questions.rows import row_of
from ..texts.questions.templates import templates_digest
from .arrangements import gap_of, questions_of
from .rendering import SharedRendering
from .scene_settings import check_setting, settings_of_recordings
from .soundscapes import (
    FULL_SCALE,
    SPLITS,
    Heard,
    Layer,
    SoundPool,
    activity_of,
    largest_sample,
    layer_mask,
    layer_samples,
    mixed,
    to_pcm,
)
from .sources import random_generator
from .twins import FEWEST_LABELS, KINDS, SECONDS, TwinClip, TwinGroup, draw_groups

_SOUNDS = 74
"""The random stream."""

_DRAWS = 8
"""Files and parts of them that are drawn for a group, until what is heard bears out its answers."""

_MOST_VARIANTS = 4
"""Tracks of a clip that can be of one label."""

_SPARE, _LEAST_SPARE = 10, 60
"""Groups of a kind that may fail: so many times those that do not, and so many more."""


@dataclass(frozen=True, kw_only=True)
class SoundscapeSettings:
    """What decides questions about isolated sounds.

    Attributes:
        recordings: with labels.
        seed: of every random choice, from 0 to 2^63 - 1.
        train_sets: sets of groups of the split ``train``; of 0, all recordings are for test.
        test_sets: sets of groups of the split ``test``; a set has 23 clips and 25 questions.
        sample_rate: Hz of the clips.
        silence: decibels below the loudest 10 ms of a sound; what is softer is cut off, and not heard.
        background: label of what is heard behind all clips, and not asked about; empty for none.
        background_snr: decibels by which the background is softer than the loudest sound of a clip.
        domain: what the recordings are, in a word.

    Raises:
        InputError: a value out of its range.
    """

    recordings: Sounds = field(repr=False)
    seed: int = 0
    train_sets: int = 30
    test_sets: int = 200
    sample_rate: int = 32_000
    silence: float = -35.0
    background: str = ""
    background_snr: float = 20.0
    domain: str = ""

    def __post_init__(self) -> None:
        self._check("seed", self.seed, 0, 2**63 - 1)
        self._check("train_sets", self.train_sets, 0, 2_000)
        self._check("test_sets", self.test_sets, 1, 2_000)
        self._check("sample_rate", self.sample_rate, 8_000, 192_000)
        self._check("silence", self.silence, -80, -10)
        self._check("background_snr", self.background_snr, 0, 60)
        if self.sample_rate % STEPS:
            raise InputError(f"sample_rate is {self.sample_rate:,}; it must be a multiple of {STEPS}, as 44,100 is")

    _check = staticmethod(check_setting)

    @property
    def domain_name(self) -> str:
        """The domain; where none is given, the last part of what the recordings were opened from."""
        return self.domain or PurePath(self.recordings.source).name or "recordings"

    def values(self) -> dict[str, Any]:
        """The settings as JSON values; of the recordings the fingerprint."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "recordings"}
        return {**values, "templates": templates_digest(), "recordings": self.recordings.fingerprint}

    @classmethod
    def of_recordings(cls, preset: Any, recordings: Sounds, requested: Mapping[str, Any]) -> SoundscapeSettings:
        """Settings as large as a preset; see `RecordedRecipe.of_recordings`.

        Args:
            preset: what both have is taken from it, but for the sound.
            recordings: what clips are made of.
            requested: changes by names of settings.

        Raises:
            InputError: no such setting, or a value out of its range.
        """
        return settings_of_recordings(cls, preset, recordings, requested, what="questions about recordings")


@dataclass(frozen=True)
class Soundscape:
    """A question and its clip.

    Attributes:
        question: that is asked.
        annotation: what is heard, as it was measured.
        group: of twins.
        layers: of the clip, the background last.
    """

    question: Question
    annotation: Annotation
    group: TwinGroup
    layers: tuple[Layer, ...]


class RenderedSoundscapes(SharedRendering[SoundscapeSettings]):
    """The questions of some settings and their sound; see `Rendering`."""

    @cached_property
    def pool(self) -> SoundPool:
        """The recordings by label."""
        settings = self.settings
        return SoundPool(
            settings.recordings,
            settings.sample_rate,
            settings.silence,
            splits=SPLITS if settings.train_sets else SPLITS[1:],
            background=label_text(settings.background),
        )

    @cached_property
    def soundscapes(self) -> tuple[Soundscape, ...]:
        """All questions with their clips, in the order of `rows`.

        Raises:
            DatasetError: there are too few labels, or too few of which something suits.
        """
        sets = {"train": self.settings.train_sets, "test": self.settings.test_sets}
        self.pool.check_enough(FEWEST_LABELS)
        return tuple(one for split in SPLITS if sets[split] for one in self._drawn(split, sets[split]))

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio."""
        return tuple(
            row_of(
                one.question,
                one.annotation,
                one.group.split,
                gap=gap_of(one.question, one.annotation),
                level_difference=one.group.level_difference,
            )
            for one in self.soundscapes
        )

    def clips(self, index: int) -> Sequence[Pcm16]:
        """The clip of a question, int16 [samples]."""
        rate = self.sample_rate
        layers = [
            (layer.start * (rate // STEPS), layer_samples(self.pool.samples(layer.number), heard, layer, rate))
            for layer, heard in self._heard(self.soundscapes[index].layers)
        ]
        return (to_pcm(mixed(layers, SECONDS * rate)),)

    def _heard(self, layers: Sequence[Layer]) -> list[tuple[Layer, Heard]]:
        return [(layer, self.pool.heard(layer.number)) for layer in layers]

    def _drawn(self, split: str, sets: int) -> Iterator[Soundscape]:
        """So many groups of each kind, the first that the sounds allow.

        Raises:
            DatasetError: they allow so few that it is of no use to go on.
        """
        counts, failures = Counter[str](), Counter[str]()
        most = _SPARE * sets + _LEAST_SPARE
        for group in draw_groups(list(self.pool.by_split[split]), split, sets + most, self.settings.seed):
            if counts[group.kind] == sets:
                if sum(counts.values()) == sets * len(KINDS):
                    return
                continue
            drawn = self._borne_out(group)
            if not isinstance(drawn, str):
                counts[group.kind] += 1
                yield from drawn
                continue
            failures[group.kind] += 1
            if failures[group.kind] == _SPARE * counts[group.kind] + _LEAST_SPARE:
                self._refuse(group, counts[group.kind], sets, drawn)

    def _refuse(self, group: TwinGroup, count: int, sets: int, reason: str) -> None:
        """Say that there are too few groups, and what of the sounds may be why."""
        parted = self.pool.parted(group.split)
        pauses = f"; silences of more than 0.2 s part all sounds of {shown(parted)}" if parted else ""
        fewer = f", or --set {group.split}_sets={count} for fewer questions" if count else ""
        raise DatasetError(
            f"{self.pool.source}: {count} of {sets} groups of {group.kind} can be made for {group.split}, the last one "
            f"not since {reason}{pauses}: give more labels, or files that sound without a pause{fewer}"
        )

    def _borne_out(self, group: TwinGroup) -> list[Soundscape] | str:
        """A group with sounds that bear out its answers; or why there are none."""
        related = self.pool.related({track.label for clip in group.clips for track in clip.tracks})
        if related:
            return f"{listed(sorted(related))} say more or less of one sound"
        reason = ""
        place = (SPLITS.index(group.split), group.place, group.number)
        for attempt in range(_DRAWS):
            try:
                return self._soundscapes(group, random_generator(self.settings.seed, _SOUNDS, *place, attempt))
            except QuestionError as error:
                reason = str(error)
        return reason

    def _soundscapes(self, group: TwinGroup, rng: np.random.Generator) -> list[Soundscape]:
        """A group with sounds that are drawn.

        Raises:
            QuestionError: they do not bear out its answers, or are too loud for a moment.
        """
        casting = _Casting(self.pool, group, rng)
        behind = self._background(group.split, rng)
        layers, annotations = {}, {}
        for clip in group.clips:
            by_label = casting.layers(clip)
            of_clip = [*(layer for of_label in by_label.values() for layer in of_label), *behind]
            loudest = largest_sample([(heard, layer) for layer, heard in self._heard(of_clip)], SECONDS * STEPS)
            if loudest > FULL_SCALE:
                raise QuestionError(f"{clip.name}: a moment is so much louder than the rest that it would be cut")
            layers[clip.name] = tuple(of_clip)
            annotations[clip.name] = self._annotation(clip, group, by_label)
        asked = questions_of(group, [annotations[clip.name] for clip in group.clips])
        return [Soundscape(one, annotations[one.recording], group, layers[one.recording]) for one in asked]

    def _background(self, split: str, rng: np.random.Generator) -> list[Layer]:
        numbers = self.pool.background(split)
        if not numbers:
            return []
        number = numbers[int(rng.integers(len(numbers)))]
        skipped = int(rng.integers(self.pool.heard(number).period))
        return [Layer(number, 0, SECONDS * STEPS, -self.settings.background_snr, skipped)]

    def _annotation(self, clip: TwinClip, group: TwinGroup, by_label: Mapping[str, Sequence[Layer]]) -> Annotation:
        settings = self.settings
        snr = settings.background_snr if settings.background else None
        events = [
            LabelledEvent(start / STEPS, stop / STEPS, label)
            for label, layers in by_label.items()
            for start, stop in activity_of(
                [(one.start, layer_mask(heard, one, settings.silence, snr)) for one, heard in self._heard(layers)]
            )
        ]
        events.sort(key=lambda event: (event.onset, event.offset, event.label))
        return Annotation(clip.name, float(SECONDS), tuple(events), 0.0, settings.domain_name, group=group.name)


class _Casting:
    """Which sounds a group has for its labels: one file for each variant of a label, as long as there are so many."""

    def __init__(self, pool: SoundPool, group: TwinGroup, rng: np.random.Generator) -> None:
        """Draw them.

        Args:
            pool: of all sounds.
            group: whose labels are heard.
            rng: of the group.
        """
        self._pool = pool
        spans: dict[str, list[int]] = defaultdict(list)
        for clip in group.clips:
            for track in clip.tracks:
                spans[track.label] += [stop - start for start, stop in track.spans]
        self._numbers = {label: pool.draw(group.split, label, _MOST_VARIANTS, rng) for label in sorted(spans)}
        # Of a sound that is longer than all that is heard of it, any part; and another one where a label has no further
        # file for a further track.
        self._parts: dict[tuple[str, int], list[int]] = {}
        for label, numbers in self._numbers.items():
            for number in numbers:
                first = _beginning(pool.heard(number), max(spans[label]), pool.silence, rng)
                rest = [_beginning(pool.heard(number), 0, pool.silence, rng) for _ in range(_MOST_VARIANTS - 1)]
                self._parts[label, number] = [first, *rest]

    def layers(self, clip: TwinClip) -> dict[str, list[Layer]]:
        """The layers of a clip, by label."""
        by_label: dict[str, list[Layer]] = defaultdict(list)
        heard_before: Counter[tuple[str, int]] = Counter()
        for track in clip.tracks:
            numbers = self._numbers[track.label]
            sound = track.label, numbers[track.variant % len(numbers)]
            skipped = self._parts[sound][heard_before[sound]]
            heard_before[sound] += 1
            by_label[track.label] += [Layer(sound[1], *span, track.level, skipped) for span in track.spans]
        return dict(by_label)


def _beginning(heard: Heard, needed: int, silence: float, rng: np.random.Generator) -> int:
    """A frame in which a sound is heard, and from which on it lasts as long as needed; the first where none does.

    Of 0, any: the sound is repeated.
    """
    share = rng.random()
    if needed and len(heard.powers) <= needed:
        return 0
    powers = heard.powers[: len(heard.powers) - needed] if needed else heard.powers[: heard.period]
    places = np.flatnonzero(powers >= heard.powers.max() * 10 ** (silence / 10))
    return int(places[int(share * len(places))])


def describe_soundscapes(settings: SoundscapeSettings) -> str:
    """Markdown of how clips of isolated sounds are made."""
    behind = (
        f" Behind all, {settings.background_snr:g} dB softer than the loudest, is {label_text(settings.background)!r}; "
        "what is softer than that counts as silent."
        if settings.background
        else ""
    )
    return f"""\
The sounds are recordings ({settings.domain_name}), each of one label. What is {-settings.silence:g} dB softer than the
loudest 10 ms of a recording is silence: it is cut off at both ends, and the rest is repeated until its place in a clip
is filled, with fades of 10 ms. In its place each has one root mean square, but for `level_difference`, and so has each
clip.{behind} `events` are measured: a silence within a recording of more than 0.2 s makes two events of it, and nothing
is asked that would have another answer then. Two labels of which one has all words of the other never meet. A clip
lasts {SECONDS} s, mono, {settings.sample_rate} Hz, 16-bit.

In `counting`, labels of fewer than four files sound the same each time, and a clip is less varied the fewer kinds of
sound it has: who hears that alone was right in .40 where each label has one file, in .29 where it has ten and more.

No file, and no group of recordings, is in both splits: of the files of a label two fifths are for test, and labels of a
single file are for training and for test in turn (seed {settings.seed})."""
