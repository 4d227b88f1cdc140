"""Sounds of installed packages: opened by their name, and checked once, since they are a stranger's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError, create_model

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import first_line

from ..data import DatasetError
from .checks import copies_of
from .entries import LONGEST_RECORDING, Sound, Sounds, fingerprint_of_entries
from .reading import MOST_RECORDINGS, RATES, Candidate, Read, duplicates, examined, first_of
from .sound_files import Decoded, SoundError, printable
from .words import spoken

Item = TypeVar("Item")

_LOUDEST = 2.0
"""Largest sample: float files pass full scale by a little, whole numbers in place of shares by far."""

_MOST_LEVEL = 100
"""Decibels."""

_STATED: Mapping[str, Any] = {
    "source": str,
    "sample_rate": int | None,
    "entries": Sequence,
    "fingerprint": str,
    "suggested": Mapping,
    "waveform": Callable,
}
"""Attributes of `Sounds` with their types."""

_KINDS: Mapping[str, Any] = get_type_hints(Sound)

_FIELDS: Mapping[str, Any] = {name: (kind, ...) for name, kind in _KINDS.items()}

_SAID = create_model("_SAID", **_FIELDS)
"""What is said of a sound, with the types of `Sound`."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


class SoundsOpener(Protocol):
    """Sounds of an installed package: an object of the entry points ``audio_compositionality.sounds``.

    Attributes:
        name: what ``--recordings`` and `open_recordings` take.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def open(self) -> Sounds:
        """The sounds, read or made.

        Raises:
            DatasetError: they cannot be had: says what is missing.
        """
        ...


_openers: Registry[SoundsOpener] = Registry(None, "SOUNDS", "audio_compositionality.sounds", lambda opener: opener.name)


class PackageSounds:
    """Sounds of an installed package, which are a stranger's: checked once, as those of a folder are; see `Sounds`.

    Their entries are as they are stated; the fingerprint is that of the entries, and the rate that of the samples.

    Attributes:
        source: as `Sounds.source`.
        sample_rate: as `Sounds.sample_rate`.
        entries: of those that can be used, in the order in which they are stated.
        fingerprint: as `Sounds.fingerprint`.
        suggested: as `Sounds.suggested`.
        skipped: id of each that was left out, and why.
    """

    def __init__(self, title: str, sounds: Any, *, skip_invalid: bool = False, progress: bool = True) -> None:
        """Read all once, in several threads; samples are not kept.

        Args:
            title: what they are called in messages.
            sounds: as an installed package gives them.
            skip_invalid: leave out sounds that cannot be used; what is said wrongly of any is an error nevertheless.
            progress: show a progress bar.

        Raises:
            SoundError: they are not as `Sounds` says, or one cannot be used: names them and it.
        """
        self._title, self._sounds = title, sounds
        stated = {name: _given(title, name, partial(getattr, sounds, name)) for name in _STATED}
        for name, value in stated.items():
            if not isinstance(value, _STATED[name]):
                raise SoundError(f"{title}: {name} is of the type {type(value).__name__}; see `Sounds`")
        self.source = printable(stated["source"])
        self.suggested: Mapping[str, Any] = dict(stated["suggested"])
        self._stated = _given(title, "entries", partial(_checked_entries, title, stated["entries"]))
        candidates = [
            Candidate(
                one.id, one.label, one.number, one.group, one.condition, partial(self._decoded, number),
                one.captions, one.labels, one.words, loop=one.loop,
            )
            for number, one in enumerate(self._stated)
        ]  # fmt: skip
        usable, problems = examined(candidates, progress=progress)
        read = {candidate.id: of_sound for candidate, of_sound in usable}
        problems |= duplicates(usable) | _same_names(self._stated, read)
        if problems and (not skip_invalid or len(problems) == len(candidates)):
            raise SoundError(f"{title}: {first_of(problems)}; --skip-invalid leaves them out, where others are left")
        self.skipped = tuple(problems.items())
        self._kept = [number for number, one in enumerate(self._stated) if one.id not in problems]
        self.entries = tuple(self._stated[number] for number in self._kept)
        self._digests = tuple(read[one.id].sound for one in self.entries)
        rates = {read[one.id].rate for one in self.entries}
        self.sample_rate = rates.pop() if len(rates) == 1 else None
        self.fingerprint = fingerprint_of_entries(self.entries)

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Samples and rate of a sound; see `Sounds.waveform`.

        Raises:
            SoundError: it is another than it was.
        """
        try:
            decoded = self._decoded(self._kept[index])
            if decoded.sound != self._digests[index]:
                raise SoundError("has changed since it was opened; start again")
        except SoundError as error:
            raise SoundError(f"{self._title}: {self.entries[index].id!r} {error}") from error
        return decoded.samples.astype(np.float64, copy=False), decoded.rate

    def _decoded(self, number: int) -> Decoded:
        """The samples of a sound, if they are as `Sounds.waveform` says; the end of a sentence that begins with it."""
        try:
            samples, rate = self._sounds.waveform(number)
        except Exception as error:
            raise SoundError(f"cannot be had: {first_line(error)}") from error
        if not (isinstance(rate, int | np.integer) and RATES[0] <= rate <= RATES[1]):
            raise SoundError(f"has a rate of {rate!r} Hz; it must be a whole number from {RATES[0]:,} to {RATES[1]:,}")
        if not (isinstance(samples, np.ndarray) and samples.ndim == 1 and samples.dtype.kind == "f" and len(samples)):
            raise SoundError("has no samples that are an array [samples] of float64, one or more")
        if not np.isfinite(samples).all():
            raise SoundError("has values that are not finite (NaN or infinity)")
        if len(samples) > LONGEST_RECORDING * rate:
            raise SoundError(f"lasts {len(samples) / rate:.1f} s; {LONGEST_RECORDING} s are the most")
        if (largest := float(np.abs(samples).max())) > _LOUDEST:
            raise SoundError(f"has samples up to {largest:,.0f}; they lie from -1 to 1")
        loop = self._stated[number].loop
        if loop and round(loop * rate) != len(samples):
            raise SoundError(f"is a loop of {loop:g} s, and its samples last {len(samples) / rate:g} s")
        samples = samples.astype(np.float64)
        digest = sha256_of(b"%d " % rate + samples.astype("<f8").tobytes())
        return Decoded(samples, int(rate), self._stated[number].sha256, digest)


def _checked_entries(title: str, stated: Sequence[Any]) -> tuple[Sound, ...]:
    """Entries that are as `Sound` says, copied, each with an id of its own.

    Raises:
        SoundError: one is not: says which.
    """
    if not 0 < len(stated) <= MOST_RECORDINGS:
        raise SoundError(f"{title} are {len(stated):,}; there are from 1 to {MOST_RECORDINGS:,}")
    entries: dict[str, Sound] = {}
    for number, one in enumerate(stated):
        try:
            said = _SAID.model_validate({name: getattr(one, name) for name in _KINDS}, strict=True)
            entry = Sound(**dict(said))
        except AttributeError as error:
            raise SoundError(f"{title}: number {number} is no `Sound`: {first_line(error)}") from error
        except ValidationError as error:
            wrong = ".".join(map(str, error.errors()[0]["loc"]))
            raise SoundError(f"{title}: number {number} is no `Sound`: {wrong} is of another type") from error
        fault = _fault_of_entry(entry)
        if fault is not None or entry.id in entries:
            raise SoundError(f"{title}: number {number} ({entry.id!r}): {fault or 'its id is that of another'}")
        entries[entry.id] = entry
    return tuple(entries.values())


def _fault_of_entry(entry: Sound) -> str | None:
    """What is wrong with what is said of a sound; None where nothing is."""
    texts = (entry.id, entry.label, entry.group, entry.condition, *entry.captions, *entry.labels, *entry.words.values())
    hidden = next((text for text in texts if printable(text) != text), None)
    if hidden is not None:
        return f"{hidden!r} has characters that cannot be printed"
    if not entry.id:
        return "its id is empty"
    if not _SHA256.fullmatch(entry.sha256):
        return f"its sha256 is {entry.sha256!r}; it has 64 hexadecimal digits"
    if not all(map(math.isfinite, (entry.number or 0.0, entry.loop, entry.level, *entry.values.values()))):
        return "a number that is said of it is not finite"
    if entry.loop < 0 or abs(entry.level) > _MOST_LEVEL:
        return (
            f"loop is {entry.loop:g} s and level {entry.level:g} dB; not negative, and at most {_MOST_LEVEL} either way"
        )
    unsaid = next((word for word in entry.words.values() if spoken(word) != word or not word), None)
    return None if unsaid is None else f"the word {unsaid!r} is not as it is said, {spoken(unsaid)!r}"


def _same_names(entries: Sequence[Sound], read: Mapping[str, Read]) -> dict[str, str]:
    """Sounds that have the sha256 of another, and other samples: who divides by it would take them for one."""
    problems = {}
    for first, *copies in copies_of((one for one in entries if one.id in read), lambda one: one.sha256):
        for other in copies:
            if read[other.id].sound != read[first.id].sound:
                problems[other.id] = f"has the sha256 of {first.id!r}, and other samples"
    return problems


def _given(title: str, what: str, get: Callable[[], Item]) -> Item:
    """What a package's code gives; whatever it raises is an error that names its sounds.

    Raises:
        DatasetError: as the code raises it, or with the first line of what it raises.
    """
    try:
        return get()
    except DatasetError:
        raise
    except Exception as error:
        raise SoundError(f"{title}: {what} cannot be had: {first_line(error)}") from error


def list_sounds() -> Mapping[str, SoundsOpener]:
    """Sounds of installed packages, and those that were registered, by their names."""
    return _openers.all()


def register_sounds(opener: SoundsOpener) -> None:
    """Make sounds known in this process by their name; they take the place of others of it."""
    _openers.add(opener)


def open_sounds(opener: SoundsOpener, *, skip_invalid: bool = False, progress: bool = True) -> PackageSounds:
    """The sounds of an installed package, checked; see `PackageSounds`.

    Raises:
        DatasetError: they cannot be had, or cannot be used: names them.
    """
    title = title_of(opener.name)
    return PackageSounds(
        title, _given(title, "what it opens", opener.open), skip_invalid=skip_invalid, progress=progress
    )


def title_of(name: str) -> str:
    """What sounds of an installed package are called in messages."""
    return f"the sounds {name!r} of an installed package"
