"""Tones of FM voices as sounds: every timbre, pitch, rate and amplitude, with words for them; and a selection.

A tone is one note of a voice, held for half of its repetition period and cut with a short fade at the period. Tones are
rendered on demand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import product
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, InstanceOf, PlainSerializer, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import packaged_yaml, sha256_of
from audio_compositionality.support.spec import Spec

from ..data import DatasetError, Waveform
from .dx7_voice import Operator, Voice
from .entries import READING_ORDER, Sound, Sounds, fingerprint_of_entries, spoken, word_places, words_of_classes


@cache
def default_voices() -> tuple[Voice, ...]:
    """Return the project's eight voices, in the order of their classes."""
    voices = []
    for entry in packaged_yaml(__package__, "timbres.yaml"):
        operators = []
        for fields in entry["operators"]:
            values: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()
            }
            operators.append(Operator(**values))
        shared = {name: entry[name] for name in ("name", "algorithm", "feedback")}
        voices.append(Voice(operators=tuple(operators), **shared))
    return tuple(voices)


@cache
def default_nouns() -> Mapping[str, str]:
    """Return nouns for the default voices, by their names."""
    return {entry["name"]: entry["noun"] for entry in packaged_yaml(__package__, "timbres.yaml")}


ATTRIBUTES = ("timbre", "pitch", "rate", "amplitude")
"""The attributes of a tone, in the order of the digits of its number among all."""

NARROWEST_PITCHES = 36
"""Semitones, three octaves: in a narrower range, low and high are a matter of taste."""


Voices = Annotated[
    tuple[InstanceOf[Voice], ...], PlainSerializer(lambda voices: [voice.to_vced().hex() for voice in voices])
]
"""Type of a field for voices; its value is the hexadecimal of their 155 bytes."""


class HeardSpec(Spec):
    """The settings of clips; the only place that decides between tones and a user's sounds.

    A subclass that accepts a user's sounds has the field ``sounds`` (`SoundsField`); a subclass whose rows give their
    domain has the field ``domain``.

    Attributes:
        of_tones: names of the fields that have no effect if a user's sounds are used instead of tones.

    Raises:
        InputError: a setting of tones is given together with other sounds.
    """

    of_tones: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="after")
    def _check_material(self) -> Self:
        for name in () if self.is_of_tones else sorted(self.of_tones):
            if getattr(self, name) != type(self).model_fields[name].get_default(call_default_factory=True):
                raise InputError(f"{name} applies to tones, which are replaced by recordings here; leave it out")
        return self

    @property
    def is_of_tones(self) -> bool:
        """Return whether clips are made of tones, so that the rules for tones apply."""
        return getattr(self, "sounds", None) is None

    @property
    def tones(self) -> Sounds:
        """Return the default sounds: all timbres with all conditions."""
        return default_timbres()

    @property
    def tones_named(self) -> Any:
        """Return the names of the tones, in addition to the fields that determine them."""
        return self.tones.fingerprint

    @property
    def heard(self) -> Sounds:
        """Return the sounds of the clips."""
        given: Sounds | None = getattr(self, "sounds", None)
        return self.tones if given is None else given

    @property
    def domain_name(self) -> str:
        """Return the domain of the sounds in one word: the setting, else the suggested domain, or ``recordings``."""
        return getattr(self, "domain", "") or str(self.heard.suggested.get("domain", "recordings"))

    def values(self) -> dict[str, Any]:
        """Return the values as JSON; for a user's sounds, their fingerprint instead of all values of tones."""
        values = super().values()
        if "sounds" not in values:
            return values
        if self.is_of_tones:
            return {**values, "tones": self.tones_named}
        kept = {name: value for name, value in values.items() if name not in self.of_tones}
        return {**kept, "sounds": self.heard.fingerprint}


class ToneSpec(HeardSpec):
    """The settings of tones: K classes of each attribute. Defaults are the paper's (arXiv 2603.13685) if it gives any.

    Raises:
        InputError: a value is out of range, or K classes are not distinct.
    """

    of_tones: ClassVar[frozenset[str]] = frozenset(
        {"num_classes", "pitch_range", "rate_range", "amplitude_range", "velocity", "voices"}
    )

    num_classes: int = Field(8, ge=2, le=49, description="K, classes of each attribute.")
    pitch_range: tuple[float, float] = Field(
        (36, 84), description="MIDI notes, divided into K linear bins; a class is the centre of a bin, to the semitone."
    )
    rate_range: tuple[float, float] = Field(
        (0.2, 3.0),
        description="Repetitions per second, divided into K logarithmic bins; a class is the centre of a bin.",
    )
    amplitude_range: tuple[float, float] = Field(
        (-26, 0), description="Decibels, divided into K linear bins; a class is the centre of a bin."
    )
    sample_rate: int = Field(32_000, ge=8_000, le=192_000, description="Sample rate of every clip in Hz.")
    velocity: int = Field(100, ge=1, le=127, description="MIDI velocity of every tone.")
    voices: Voices = Field(default_factory=default_voices, repr=False, description="K voices, the classes of timbre.")

    @model_validator(mode="after")
    def _check_tones(self) -> ToneSpec:
        for name in ("pitch_range", "rate_range", "amplitude_range"):
            low, high = getattr(self, name)
            if not low < high:
                raise InputError(f"{name} is ({low:g}, {high:g}); the first must be less than the second")
        if self.pitch_range[0] < 0 or self.pitch_range[1] > 127:
            raise InputError(f"pitch_range is {self.pitch_range}; MIDI notes run from 0 to 127")
        if self.rate_range[0] <= 0:
            raise InputError(f"rate_range is {self.rate_range}; rates must be positive")
        if len(self.voices) != self.num_classes:
            raise InputError(f"{len(self.voices)} voices for K = {self.num_classes} classes; give one voice per class")
        sounds = [replace(voice, name="") for voice in self.voices]
        for number, sound in enumerate(sounds):
            first = sounds.index(sound)
            if first < number:
                names = self.voices[first].name, self.voices[number].name
                raise InputError(
                    f"voices {first + 1} ({names[0]!r}) and {number + 1} ({names[1]!r}) are the same sound; each class "
                    "of timbre needs its own"
                )
        for attribute, labels in self.labels.items():
            if len(set(labels)) != len(labels):
                raise InputError(
                    f"{self.num_classes} classes of {attribute} are not distinct: {', '.join(labels)}; "
                    "use fewer classes or a wider range"
                )
        return self

    @property
    def tones(self) -> Sounds:
        """Return all tones."""
        return ToneSounds(self)

    @property
    def tones_named(self) -> Any:
        """Return the nouns of the timbres."""
        return list(self.nouns)

    @cached_property
    def pitches(self) -> tuple[int, ...]:
        """Return the MIDI note of each pitch class."""
        return tuple(int(np.floor(centre + 0.5)) for centre in self._centres(*self.pitch_range))

    @cached_property
    def rates(self) -> tuple[float, ...]:
        """Return the repetitions per second of each rate class."""
        low, high = np.log(self.rate_range)
        return tuple(float(np.exp(centre)) for centre in self._centres(low, high))

    @cached_property
    def decibels(self) -> tuple[float, ...]:
        """Return the gain in dB of each amplitude class."""
        return tuple(float(centre) for centre in self._centres(*self.amplitude_range))

    @cached_property
    def periods(self) -> tuple[int, ...]:
        """Return the samples between two onsets, for each rate class."""
        return tuple(round(self.sample_rate / rate) for rate in self.rates)

    @cached_property
    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """Return the label of each class of each attribute; see `timbre_labels`."""
        labels = (
            timbre_labels(self.voices),
            [f"MIDI {pitch}" for pitch in self.pitches],
            [f"{rate:.3f} Hz" for rate in self.rates],
            [f"{decibel:.3f} dB" for decibel in self.decibels],
        )
        return MappingProxyType(dict(zip(ATTRIBUTES, map(tuple, labels), strict=True)))

    @cached_property
    def nouns(self) -> tuple[str, ...]:
        """Return the name of each timbre class: a noun for a default voice, the label for a voice in a user's bank."""
        return tuple(default_nouns().get(label, label) for label in self.labels["timbre"])

    def tone(self, timbre: int, pitch: int, rate: int) -> Waveform:
        """Return one period of a tone by its classes, float32 [period] with a peak of 1.

        Raises:
            DatasetError: the voice makes no sound at the note.
        """
        voice, note, period = self.voices[timbre], self.pitches[pitch], self.periods[rate]
        try:
            return render_tone(voice, note, period, self.velocity, self.sample_rate)
        except DatasetError as error:
            span = f"MIDI {min(self.pitches)} to {max(self.pitches)}"
            raise DatasetError(f"{error}; choose voices that sound over {span}") from error

    def _centres(self, low: float, high: float) -> list[float]:
        width = (high - low) / self.num_classes
        return [low + (number + 0.5) * width for number in range(self.num_classes)]


def timbre_labels(voices: Sequence[Voice]) -> list[str]:
    """Return names of voices; an empty or repeated name gets the number of its class."""
    names = [voice.name for voice in voices]
    return [
        name if name and names.count(name) == 1 else f"{name} #{number}".strip() for number, name in enumerate(names, 1)
    ]


class ToneSounds:
    """The tones of a `ToneSpec`, one entry each: all, or selected classes; see `Sounds`.

    An entry's label is the noun of its timbre. Its waveform is one period, a loop, with a peak of 1; its level is the
    amplitude class in dB, and its values are its classes: MIDI note, repetitions per second, dB. It has a word for each
    attribute whose class is not in a gap between two words; no words if there are too few classes, or the pitch range
    is too narrow (`check_words`).

    Attributes:
        spec: settings of all classes.
    """

    source = "FM tones"
    suggested: Mapping[str, Any] = MappingProxyType({"domain": "tones"})

    def __init__(
        self, spec: ToneSpec, *, rates: Sequence[int] | None = None, amplitudes: Sequence[int] | None = None
    ) -> None:
        """Render nothing yet.

        Args:
            spec: settings of all classes.
            rates: indices of the kept rate classes; by default all.
            amplitudes: indices of the kept amplitude classes; by default all.
        """
        self.spec = spec
        self.sample_rate = spec.sample_rate
        every = range(spec.num_classes)
        kept = (every, every, every if rates is None else rates, every if amplitudes is None else amplitudes)
        self._kept = kept
        self._tones: dict[tuple[int, ...], Waveform] = {}

    @cached_property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """Return the class of each attribute of each tone."""
        return tuple(product(*self._kept))

    @cached_property
    def entries(self) -> tuple[Sound, ...]:
        """Return the entry of each tone; `classes` has its class of each attribute in `ATTRIBUTES`."""
        spec = self.spec
        try:
            check_words(spec)
        except InputError:
            words: dict[str, dict[int, str]] = {}
        else:
            words = {
                attribute: {
                    number: word
                    for word, classes in words_of_classes(attribute, spec.num_classes).items()
                    for number in classes
                }
                for attribute in READING_ORDER
            }
        voices = [voice.to_vced().hex() for voice in spec.voices]
        entries = []
        for classes in self.classes:
            timbre, pitch, rate, amplitude = classes
            level, period = spec.decibels[amplitude], spec.periods[rate]
            decided = [VERSION, voices[timbre], spec.pitches[pitch], period]
            decided += [spec.velocity, spec.sample_rate, level]
            of_entry = dict(zip(ATTRIBUTES, classes, strict=True))
            labels = [spec.labels[attribute][number] for attribute, number in of_entry.items()]
            name = "/".join((spec.nouns[timbre], *labels[1:]))
            own = {one: of_class[of_entry[one]] for one, of_class in words.items() if of_entry[one] in of_class}
            entries.append(
                Sound(
                    id=name,
                    label=spec.nouns[timbre],
                    # Independent of its voice, so that other voices with these names give the same splits.
                    group=name,
                    sha256=sha256_of(json.dumps(decided).encode()),
                    condition=f"{labels[1]}, {labels[2]}",
                    words=own,
                    values={"pitch": spec.pitches[pitch], "rate": spec.rates[rate], "amplitude": level},
                    loop=period / spec.sample_rate,
                    level=level,
                )
            )
        return tuple(entries)

    @cached_property
    def fingerprint(self) -> str:
        """Return the fingerprint; see `Sounds`."""
        return fingerprint_of_entries(self.entries)

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Return one period with a peak of 1, float64 [period], and its rate; see `Sounds.waveform`.

        Raises:
            DatasetError: the voice makes no sound at a note.
        """
        key = self.classes[index][:3]
        if key not in self._tones:
            self._tones[key] = self.spec.tone(*key)
        return self._tones[key].astype(np.float64), self.spec.sample_rate


def check_nouns(spec: ToneSpec) -> None:
    """Raise an error if two timbres share a name.

    Raises:
        InputError: names two of them.
    """
    if len(set(map(spoken, spec.nouns))) < len(spec.nouns):
        raise InputError(
            f"two timbres have the same name: {', '.join(spec.nouns)}; captions and questions need different names"
        )


def check_words(spec: ToneSpec) -> None:
    """Raise an error if words cannot distinguish the tones.

    Raises:
        InputError: there are too few classes, or the pitch range is too narrow.
    """
    for attribute in word_places():
        words_of_classes(attribute, spec.num_classes)
    low, high = spec.pitch_range
    if high - low < NARROWEST_PITCHES:
        raise InputError(
            f"pitch_range is ({low:g}, {high:g}), {high - low:g} semitones; captions need {NARROWEST_PITCHES} or more, "
            "so that low and high can be distinguished"
        )


VERSION = 1
"""Raised with any change of the code below that alters a sample; the digests of entries depend on it."""

CONDITIONS = 24
"""Number of conditions, all with different pitches and rates; neither reveals the voice."""

_LOWEST_NOTE, _NOTE_STEP = 37, 2
"""MIDI notes up to 83, the range of the scenes' pitch classes."""

_RATES = (0.8, 4.0)
"""First and last rate in repetitions per second: 2.5 s contain at least two whole tones."""

_RATE_STEP = 11
"""Steps from a condition's rate to the next one's: coprime to their number, so that all rates occur and a high pitch is
neither mostly slow nor mostly fast (the correlation is -.01)."""

SECONDS = 2.5
SAMPLE_RATE = 16_000
"""Hz: the rate of their clips, so that nothing is resampled and samples are the same on every platform."""

_VELOCITY = 100
_PEAK = 0.5


class TimbreRecordings:
    """Every voice with every condition, rendered on first use; see `Sounds`.

    The digest of an entry covers everything that determines its samples rather than the samples: the voice, its note,
    period and velocity, rate and length, and `VERSION`. So digests need no rendering.
    """

    source = "DX7 timbres"
    sample_rate = SAMPLE_RATE
    suggested: Mapping[str, Any] = MappingProxyType({"domain": "timbres", "classes": 6, "context_sources": 1})

    def __init__(self, voices: Sequence[Voice] | None = None, *, captioned: bool = False) -> None:
        """Render nothing yet.

        Args:
            voices: voices with different names, which are the labels; by default the project's eight.
            captioned: use their nouns as labels, and give captions to one tone of each voice for every combination of
                words for pitch and rate; no two captions are the same.
        """
        self._keys = [
            (voice, *note_and_period(number)) for voice in voices or default_voices() for number in range(CONDITIONS)
        ]
        self._tones: dict[int, Waveform] = {}
        entries, captioned_words = [], set[tuple[str, str, str]]()
        for voice, note, period in self._keys:
            condition = f"note{note}-rate{SAMPLE_RATE / period:.2f}"
            decided = [VERSION, voice.to_vced().hex(), note, period, _VELOCITY, SECONDS, SAMPLE_RATE, _PEAK]
            digest = sha256_of(json.dumps(decided).encode())
            entry = Sound(f"{voice.name}/{condition}", voice.name, condition, digest, condition=condition)
            if captioned:
                noun, hertz = default_nouns()[voice.name], SAMPLE_RATE / period
                pitch = next((word for word, (low, high) in _PITCHES.items() if low <= note <= high), "")
                rate = next((word for word, (low, high) in _CAPTIONED_RATES.items() if low <= hertz <= high), "")
                said = (noun, pitch, rate)
                captions = [wording.format(noun=noun, pitch=pitch, rate=rate) for wording in _WORDINGS]
                is_first = bool(pitch and rate) and said not in captioned_words
                captioned_words.add(said)
                entry = replace(entry, label=noun, captions=tuple(captions) if is_first else ())
            entries.append(entry)
        self.entries = tuple(entries)
        self.fingerprint = fingerprint_of_entries(self.entries)

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Return samples [40,000] with a peak of .5, and their rate; see `Sounds.waveform`.

        Raises:
            DatasetError: the voice makes no sound at a note.
        """
        if index not in self._tones:
            voice, note, period = self._keys[index]
            self._tones[index] = render_tone(voice, note, period, _VELOCITY, SAMPLE_RATE)
        length = round(SECONDS * SAMPLE_RATE)
        return np.resize(self._tones[index], length).astype(np.float64) * _PEAK, SAMPLE_RATE


def note_and_period(number: int) -> tuple[int, int]:
    """Return note and period in samples of a condition."""
    place = number * _RATE_STEP % CONDITIONS
    rate = _RATES[0] * (_RATES[1] / _RATES[0]) ** (place / (CONDITIONS - 1))
    return _LOWEST_NOTE + _NOTE_STEP * number, round(SAMPLE_RATE / rate)


@cache
def default_timbres() -> TimbreRecordings:
    """Return the timbres of the project's voices."""
    return TimbreRecordings()


_PITCHES: Mapping[str, tuple[int, int]] = MappingProxyType({"low": (37, 47), "middle": (55, 65), "high": (73, 83)})
"""MIDI notes of each word; the half octave between two words has none."""

_CAPTIONED_RATES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"slow": (0.8, 1.2), "steady": (1.55, 2.1), "fast": (2.7, 4.0)}
)
"""Repetitions per second of each word."""

_WORDINGS = ("a {rate} {pitch} {noun}", "{noun}, {pitch} and {rate}", "a {pitch} {noun} at a {rate} pace")


@cache
def captioned_timbres() -> TimbreRecordings:
    """Return the timbres of the project's voices, with captions."""
    return TimbreRecordings(captioned=True)


FADE_SECONDS = 0.005
"""Length of the half-cosine fade that ends a tone at its period: short compared with the shortest default period
(0.39 s), long enough to avoid a click."""


SILENT_PEAK = 1e-4
"""A tone whose peak is below -80 dB re one full-level carrier counts as silence: it is not scaled to unit peak."""


def render_tone(voice: Voice, note: int, period: int, velocity: int, sample_rate: int) -> Waveform:
    """Return one tone, float32 [period] with a peak of 1; the key is held for half of it.

    Args:
        voice: its timbre.
        note: MIDI note.
        period: samples.
        velocity: MIDI velocity.
        sample_rate: Hz.

    Raises:
        DatasetError: the voice makes no sound at the note.
    """
    # Importing loads the synthesiser; only code that needs sound should wait for it.
    from .dx7_engine import render

    seconds = period / sample_rate
    tone = render(voice, note, velocity, duration=seconds, key_up=seconds / 2, sample_rate=sample_rate)
    fade = min(round(FADE_SECONDS * sample_rate), period)
    tone[period - fade :] *= (0.5 + 0.5 * np.cos(np.pi * (np.arange(fade) + 1) / fade)).astype(np.float32)
    peak = np.abs(tone).max()
    if not peak > SILENT_PEAK:
        raise DatasetError(f"voice {voice.name!r} is silent at MIDI note {note} (peak {peak:.1e})")
    return np.asarray(tone / peak, np.float32)


PARTIALS = 24
"""Most partials that are kept."""


LEAST_APART = 60
"""Least Hz between two partials: closer ones would beat, and give the source its own slow rate."""


LOWEST = 30
"""Least Hz; lower maxima are not partials."""


def steady_tone(
    voice: Voice, note: int, velocity: int, sample_rate: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Return a second of a note with steady partials: float64 [sample_rate], with a root mean square of 1.

    The note is rendered for a second with the key held. From its spectrum (Hann window), the `PARTIALS` largest maxima
    that are at least `LEAST_APART` from each larger one are kept, and added with random phases. They are whole numbers
    of Hz, so that the second can be repeated.

    Args:
        voice: its timbre.
        note: MIDI note.
        velocity: MIDI velocity.
        sample_rate: Hz.
        rng: draws the phases.

    Raises:
        DatasetError: the voice makes no sound at the note.
    """
    from .dx7_engine import render

    tone = render(voice, note, velocity, duration=1, key_up=1, sample_rate=sample_rate).astype(np.float64)
    magnitude = np.abs(np.fft.rfft(tone * np.hanning(sample_rate)))
    is_maximum = (magnitude[1:-1] > magnitude[:-2]) & (magnitude[1:-1] >= magnitude[2:])
    maxima = np.flatnonzero(is_maximum) + 1
    kept: list[int] = []
    for hertz in maxima[np.argsort(-magnitude[maxima], kind="stable")]:
        if hertz >= LOWEST and len(kept) < PARTIALS and all(abs(hertz - other) >= LEAST_APART for other in kept):
            kept.append(int(hertz))
    if not kept or np.abs(tone).max() <= SILENT_PEAK:
        raise DatasetError(f"voice {voice.name!r} is silent at MIDI note {note}; choose one that sounds there")
    spectrum = np.zeros(len(magnitude), np.complex128)
    spectrum[kept] = magnitude[kept] * np.exp(2j * np.pi * rng.random(len(kept)))
    steady = np.fft.irfft(spectrum, sample_rate)
    level: NDArray[np.float64] = steady / np.sqrt(np.mean(steady**2))
    return level
