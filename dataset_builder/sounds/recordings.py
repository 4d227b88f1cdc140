"""Recordings as sounds: files are found, decoded, checked and described."""

from __future__ import annotations

import hashlib
import io
import math
import os
import re
import shutil
import stat
import subprocess
import warnings
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import soundfile
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.support.files import open_file, sha256_of, sha256_of_file
from audio_compositionality.support.text import shown

from ..account import Account, counts_of
from ..data import DatasetError
from ..tables import number_of
from .entries import LONGEST_RECORDING, LOUDNESS, Sound, Sounds, fingerprint_of_entries
from .splits import copies_of, sound_fault

AUDIO_SUFFIXES = (
    *(".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3"),
    *(".aif", ".aiff", ".aifc", ".au", ".caf", ".rf64", ".w64"),
)
"""Suffixes of sound files; other files are skipped."""

FOREIGN_SUFFIXES = (".m4a", ".mp4", ".aac", ".webm", ".amr", ".gsm", ".wma", ".3gp", ".mka")
"""Suffixes of files that libsndfile does not read, but FFmpeg does if it is installed."""

FILE_COLUMNS = ("file_name", "file", "filename", "path", "audio", "slice_file_name", "fname")
"""Headings of the file column in a table of recordings, in order of preference; two are UrbanSound8K's and FSD50K's."""


LONGEST_HOURS = 24
"""Hours; a file that declares more counts as damaged."""

MOST_CHANNELS = 16
"""A file that declares more channels counts as damaged: its samples would fill the memory."""

MOST_VALUES = 2**28
"""Samples in all channels that are decoded at a time, 1 GiB: a small file can contain any number of equal samples."""

_LOSSY = ("VORBIS", "OPUS", "MPEG")
"""Beginnings of the names of formats whose samples differ by rounding between decoders."""

_CLAIMED = re.compile(r"^ *(?:data|FORM|SSND|Data Size|riff|Riff size) *: (\d+) \(should be (\d+)\)", re.MULTILINE)
"""Lines of libsndfile's log with declared and actual numbers of bytes: WAV, AIFF, AU, W64, RF64."""

_SLACK = 8
"""Bytes by which a declared number is wrong if a program counted the header too."""

_UNKNOWN = 0x7FFFF000
"""Declared bytes from which on the length is unknown."""

_LARGEST_PAGE = 27 + 255 + 255 * 255
"""Bytes of a page in an Ogg file."""

SoundFile = Path | io.BytesIO
"""A file, or the content of one."""


class SoundError(DatasetError):
    """Unusable recordings; the message names them, the problem, and the remedy."""


@dataclass(frozen=True)
class Header:
    """What a file declares about its content.

    Attributes:
        rate: Hz.
        frames: samples of each channel.
        lossy: whether decoders agree on its samples only up to rounding.
    """

    rate: int
    frames: int
    lossy: bool


def is_regular(path: Path) -> bool:
    """Return whether an existing path is a regular file: a link leads elsewhere, and opening a pipe waits for ever."""
    return stat.S_ISREG(path.lstat().st_mode)


def printable(text: str) -> str:
    """Return text that can be printed and stored; file names may contain control characters and invalid UTF-8."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def read_header(file: SoundFile) -> Header:
    """Return what a file declares about its content.

    Raises:
        SoundError: it is not a sound file, or declares impossible values.
    """
    with _reasons("cannot be read"):
        info = soundfile.info(_opened(file))
        # The log is cut off after 2 KiB, which long tags can fill.
        is_cut = info.format == "OGG" and not _ends_with_last_page(file)
    for claim, there in _CLAIMED.findall(info.extra_info):
        # A program that writes into a pipe cannot know the length, and declares the largest possible value.
        if int(there) + _SLACK < int(claim) < _UNKNOWN:
            raise SoundError(
                f"is damaged: it ends after {int(there):,} of {int(claim):,} bytes, like an interrupted download"
            )
    if is_cut:
        raise SoundError("is damaged: it ends before its last page, like an interrupted download")
    rate, frames, channels = int(info.samplerate), int(info.frames), int(info.channels)
    if rate < 1 or not 0 <= frames <= LONGEST_HOURS * 3_600 * rate:
        raise SoundError(
            f"declares {frames:,} samples at {rate:,} Hz, more than {LONGEST_HOURS} hours; it may be damaged"
        )
    if channels > MOST_CHANNELS:
        raise SoundError(f"declares {channels:,} channels; the limit is {MOST_CHANNELS}")
    is_foreign = isinstance(file, Path) and file.suffix.lower() in FOREIGN_SUFFIXES
    return Header(rate, frames, is_foreign or info.subtype.startswith(_LOSSY))


def _ends_with_last_page(file: SoundFile) -> bool:
    """Return whether the last page of an Ogg file is complete, and marked as the last one."""
    with open_file(file) if isinstance(file, Path) else nullcontext(file) as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - _LARGEST_PAGE))
        tail = stream.read()
    page = tail[max(0, tail.rfind(b"OggS")) :]
    # Flags are at 5, the number of lacing values at 26; their sum is the number of bytes that follow.
    return len(page) > 26 and bool(page[5] & 4) and len(page) >= 27 + page[26] + sum(page[27 : 27 + page[26]])


def read_samples(file: SoundFile, frames: int, start: int) -> NDArray[np.float32]:
    """Return `frames` samples [frames] of a file from `start`, the mean of its channels.

    Raises:
        SoundError: they are missing, or are not numbers.
    """
    with _reasons("cannot be decoded"), soundfile.SoundFile(_opened(file)) as sound:
        if frames * sound.channels > MOST_VALUES:
            raise SoundError(
                f"has {frames:,} samples in {sound.channels} channels; at most {MOST_VALUES:,} are decoded at a time"
            )
        sound.seek(min(start, sound.frames))
        samples = sound.read(frames, "float32", always_2d=True)
    if len(samples) != frames:
        raise SoundError(f"ends after {len(samples):,} of {frames:,} samples; the file is damaged")
    if not np.isfinite(samples).all():
        raise SoundError("has values that are not finite (NaN or infinity)")
    waveform: NDArray[np.float32] = samples.mean(axis=1, dtype=np.float32)
    return waveform


@dataclass(frozen=True)
class Decoded:
    """Samples of a file, or of a part of one.

    Attributes:
        samples: float32 [samples], the mean of the channels.
        rate: Hz.
        sha256: its name in fingerprints: for a lossy format, whose samples differ by rounding between decoders, the
            digest of the file and, for a part, its position; for any other format, the digest of the samples.
        sound: digest of the samples as decoded here: two files in a lossy format can contain the same sound.
    """

    samples: NDArray[np.float32]
    rate: int
    sha256: str
    sound: str


def decoded(file: SoundFile, header: Header, start: int, frames: int, *, whole: bool) -> Decoded:
    """Return samples of a file and their digests.

    Args:
        file: the file or its content.
        header: its header.
        start: first sample.
        frames: samples.
        whole: whether the samples represent the whole file.

    Raises:
        SoundError: as for `read_samples`.
    """
    samples = read_samples(file, frames, start)
    sound = hashlib.sha256(b"%d " % header.rate + samples.astype("<f4").tobytes()).hexdigest()
    digest = sound
    if header.lossy:
        digest = sha256_of_file(file) if isinstance(file, Path) else sha256_of(file.getvalue())
        if not whole:
            digest = sha256_of(f"{digest} {start} {frames}".encode())
    return Decoded(samples, header.rate, digest, sound)


@contextmanager
def _reasons(what: str) -> Iterator[None]:
    """Raise errors of libsndfile and the system as SoundErrors that name the failed action."""
    try:
        yield
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        # The text of libsndfile without the path, with which the message begins.
        reason = printable(str(getattr(error, "error_string", error))).strip(" .")
        raise SoundError(f"{what}: {reason}") from error


def _opened(file: SoundFile) -> int | io.BytesIO:
    if isinstance(file, Path) and file.suffix.lower() in FOREIGN_SUFFIXES:
        return io.BytesIO(_transcoded(file))
    if isinstance(file, Path):
        # A separate descriptor, which libsndfile closes; a name need not be valid UTF-8.
        with open_file(file) as stream:
            return os.dup(stream.fileno())
    file.seek(0)
    return file


def _transcoded(path: Path) -> bytes:
    """Return the sound of a file that libsndfile cannot read, as WAV; FFmpeg may open no other file or network."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise SoundError(f"ends in {path.suffix.lower()}, which needs FFmpeg to be installed")
    open_file(path).close()
    # Playlists, which lead to other files, are not among the formats, whatever the file is called.
    allowed = ("-protocol_whitelist", "file,pipe", "-format_whitelist", _FORMATS)
    quiet: tuple[str | bytes, ...] = (program, "-nostdin", "-v", "error", "-xerror", *allowed)
    sound = ("-vn", "-map", "0:a:0", "-c:a", "pcm_f32le", "-fs", str(_LARGEST_SOUND), "-f", "wav", "pipe:1")
    command = [*quiet, "-i", os.fsencode(f"file:{path}"), *sound]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LONGEST_WAIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SoundError(f"cannot be decoded by FFmpeg: {type(error).__name__}") from error
    # For Matroska and WebM, FFmpeg plays what is left of a truncated file.
    if done.returncode or b"ended prematurely" in done.stderr:
        reason = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"])[0]
        # It is preceded by the part of FFmpeg and its address in memory.
        reason = re.sub(r"^\[[^]]*\] *", "", reason)
        raise SoundError(f"cannot be decoded by FFmpeg: {printable(reason)}")
    if len(done.stdout) >= _LARGEST_SOUND - 2**16:
        raise SoundError(f"has more than {_LARGEST_SOUND // 2**20} MiB of samples; convert it to WAV or FLAC")
    return done.stdout


_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,aac,matroska,webm,amr,gsm,asf,mp3,wav,flac,ogg"
"""FFmpeg's names of the formats that files with `FOREIGN_SUFFIXES` may have."""

_LARGEST_SOUND = 2**30
"""Most bytes of samples that FFmpeg may return."""

_LONGEST_WAIT = 300
"""Most seconds that FFmpeg may take for a file."""

Item = TypeVar("Item")
Answer = TypeVar("Answer")

RATES = (1_000, 400_000)
"""Lowest and highest rate in Hz."""

MOST_RECORDINGS = 100_000
"""Most recordings that are read: a part of a larger set is as informative."""

_SEVERAL = "contains several sounds, or unknown ones: left out unless a clip may have several labels"
"""Reason why a recording with several labels is skipped."""

_SHOWN = 3
"""Most recordings that an error names."""

_NUMBER = re.compile(r"\s*[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?\s*", re.ASCII)


_HEARD = -35.0
"""dB below the loudest 10 ms of a recording; softer frames do not count towards its level."""


@dataclass(frozen=True)
class Candidate:
    """A recording that is not read yet.

    Attributes:
        id: as `Sound.id`.
        label: its class, or its number in words.
        number: its label if labels are numbers.
        group: as `Sound.group`.
        condition: as `Sound.condition`.
        sound: returns the file or its content; raises SoundError if it must not be opened.
        captions: as `Sound.captions`.
        labels: as `Sound.labels`.
        words: as `Sound.words`.
        part: its first and last second in the file; None for the whole file.
    """

    id: str
    label: str
    number: float | None
    group: str
    condition: str
    sound: Callable[[], SoundFile]
    captions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    part: tuple[float, float] | None = None


@dataclass(frozen=True)
class Read:
    """Facts about a recording that was read: rate in Hz and both digests of `Decoded`; if its words describe loudness,
    the root mean square in dB of the audible 10 ms frames, else minus infinity."""

    rate: int
    digest: str
    sound: str
    level: float


Usable = tuple[Candidate, Read]
"""A usable recording, and the facts about it."""


class ReadRecordings:
    """Usable recordings; see `Sounds`.

    They are ordered by content, independent of the names and paths of files. Several copies of a recording with
    different captions become one recording with all captions.

    Attributes:
        source: what the data were opened from.
        entries: entries of the recordings, without those that have several labels and no most specific one.
        complete: the same recordings and those, for tasks that permit several labels.
        skipped: id of each recording that was left out, with the reason; also those that only `complete` has.
        suggested: settings of recipes that suit them.
        labelling: how to give labels if there are none, for messages.
        account: what was done with every file and row.
    """

    def __init__(
        self,
        source: str,
        candidates: Sequence[Candidate],
        *,
        suggested: Mapping[str, Any] | None = None,
        labelling: str = "",
        left_out: Mapping[str, str] | None = None,
        beside: Mapping[str, str] | None = None,
        columns: Mapping[str, str] | None = None,
        skip_invalid: bool = False,
        progress: bool = True,
    ) -> None:
        """Read all recordings, in several threads; samples are not kept.

        Args:
            source: what the data were opened from.
            candidates: all recordings to read.
            suggested: as `Sounds.suggested`.
            labelling: see above.
            left_out: id of each recording that is not a candidate, with the reason; `skipped` begins with these.
            beside: files that are not recordings, with the reason; see `Account`.
            columns: columns of the table; see `Account`.
            skip_invalid: leave out unusable recordings.
            progress: show a progress bar.

        Raises:
            SoundError: a recording is unusable and `skip_invalid` is false, or all are unusable.
        """
        if len(candidates) > MOST_RECORDINGS:
            raise SoundError(
                f"{source} has {len(candidates):,} recordings; the limit is {MOST_RECORDINGS:,}; give a part of them"
            )
        self.source = source
        self.suggested: Mapping[str, Any] = dict(suggested or {})
        self.labelling = labelling
        left_out = left_out or {}
        results = each_read(_examine, candidates, progress=progress)
        pairs = list(zip(candidates, results, strict=True))
        usable = [(candidate, read) for candidate, read in pairs if not isinstance(read, str)]
        problems = {candidate.id: why for candidate, why in pairs if isinstance(why, str)}
        usable.sort(key=lambda pair: (pair[1].digest, pair[0].label, pair[0].group, pair[0].condition, pair[0].id))
        usable = _merged(usable)
        problems |= duplicates(usable)
        self.skipped: tuple[tuple[str, str], ...] = (*left_out.items(), *problems.items())
        if problems and not skip_invalid:
            raise SoundError(f"{source}: {first_of(problems)}; --skip-invalid leaves them out")
        usable = _contrasted(source, [pair for pair in usable if pair[0].id not in problems])
        # Copies with other captions are also read, as one recording.
        kept = tuple(one.id for one, read in pairs if not isinstance(read, str) and one.id not in problems)
        classes = [] if any(one.number is not None for one, _ in usable) else [one for one, _ in usable]
        groups: dict[str, set[str]] = defaultdict(set)
        for one in classes:
            for label in one.labels or (one.label,):
                groups[label].add(one.group or one.id)
        self.account = Account(
            source,
            len(candidates) + len(left_out) + len(beside or {}),
            kept,
            {**left_out, **problems, **(beside or {})},
            counts_of(label for one in classes for label in one.labels or (one.label,)),
            counts_of(one.group for one, _ in usable),
            counts_of(one.condition for one, _ in usable),
            columns or {},
            one_group=tuple(sorted(label for label, of_label in groups.items() if label and len(of_label) == 1)),
        )
        if not usable:
            raise SoundError(f"{source} has no usable recording: {first_of(dict(self.skipped))}")
        self._hold(usable)
        self.complete = self
        several = {candidate.id for candidate, _ in usable if candidate.labels and not candidate.label}
        if several:
            self.complete = copy(self)
            self.complete.complete = self.complete
            self._hold([(candidate, read) for candidate, read in usable if candidate.id not in several])
            none_taken = [(candidate.id, _SEVERAL) for candidate in candidates if candidate.id in several]
            self.skipped = (*left_out.items(), *none_taken, *problems.items())
            if len(several) == len(usable):
                self.labelling = "each recording has several labels, and none of them is selected"

    def _hold(self, usable: Sequence[Usable]) -> None:
        """Set the attributes for usable recordings."""
        self._candidates = [candidate for candidate, _ in usable]
        # Levels are compared only within a label whose words also describe loudness: recordings of different labels
        # have different gains.
        loudest: dict[str, float] = defaultdict(lambda: -math.inf)
        for one, read in usable:
            if _says_loudness(one):
                loudest[one.label] = max(loudest[one.label], read.level)
        self.entries = tuple(
            Sound(
                id=one.id,
                label=one.label,
                group=one.group,
                sha256=read.digest,
                number=one.number,
                condition=one.condition,
                captions=one.captions,
                labels=one.labels,
                words=one.words,
                level=round(read.level - loudest[one.label], 1) if _says_loudness(one) else 0.0,
            )
            for one, read in usable
        )
        rates = {read.rate for _, read in usable}
        self.sample_rate = rates.pop() if len(rates) == 1 else None
        self.fingerprint = fingerprint_of_entries(self.entries)

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Return samples and rate of a recording; see `Sounds.waveform`.

        Raises:
            SoundError: the recording has changed.
        """
        entry = self.entries[index]
        try:
            read = _read(self._candidates[index])
        except SoundError as error:
            raise SoundError(f"{self.source}: recording {entry.id!r} {error}") from error
        if read.sha256 != entry.sha256:
            raise SoundError(f"{self.source}: recording {entry.id!r} has changed since it was opened; start again")
        return read.samples.astype(np.float64), read.rate


def with_all_labels(recordings: Sounds) -> Sounds:
    """Return the same recordings, including those that have several labels and no most specific one."""
    return recordings.complete if isinstance(recordings, ReadRecordings) else recordings


def numbers_of(labels: Sequence[str]) -> list[float] | None:
    """Return labels as numbers if all are numbers and one has a decimal point; whole numbers are class names."""
    if not labels or not all(_NUMBER.fullmatch(label) for label in labels):
        return None
    numbers = [*map(number_of, labels)]
    return (
        numbers
        if any(mark in label for label in labels for mark in ".,") and all(map(math.isfinite, numbers))
        else None
    )


def first_of(problems: Mapping[str, str]) -> str:
    """Return the first few unusable recordings, with reasons."""
    first = "; ".join(f"{id!r} {reason}" for id, reason in list(problems.items())[:_SHOWN])
    more = f"; and {len(problems) - _SHOWN:,} more" if len(problems) > _SHOWN else ""
    return f"{first}{more}"


def each_read(
    read: Callable[[Item], Answer], items: Sequence[Item], *, progress: bool, unit: str = "file"
) -> list[Answer]:
    """Return the result of reading each item, in several threads, with a progress bar."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        answers = pool.map(read, items)
        return list(tqdm(answers, "recordings", len(items), unit=unit, disable=None if progress else True))


def _says_loudness(candidate: Candidate) -> bool:
    return any(name in candidate.words for name in LOUDNESS)


def _examine(candidate: Candidate) -> Read | str:
    """Return the facts about a recording, or the reason why it is unusable."""
    try:
        read = _read(candidate)
    except SoundError as error:
        return str(error)
    level = -math.inf
    fault = sound_fault(read)
    if fault is None and _says_loudness(candidate):
        hop = max(1, read.rate // 100)
        frames = read.samples[: len(read.samples) // hop * hop].reshape(-1, hop).astype(np.float64)
        powers = np.mean(frames**2, axis=1)
        level = 10 * math.log10(float(powers[powers >= powers.max() * 10 ** (_HEARD / 10)].mean()))
    return fault or Read(read.rate, read.sha256, read.sound, level)


def _read(candidate: Candidate) -> Decoded:
    """Return the middle of a recording, at most `LONGEST_RECORDING` seconds."""
    file = candidate.sound()
    header = read_header(file)
    if not RATES[0] <= header.rate <= RATES[1]:
        raise SoundError(f"has a rate of {header.rate:,} Hz; it must be from {RATES[0]:,} to {RATES[1]:,}")
    start, stop = 0, header.frames
    if candidate.part is not None:
        start, stop = (round(seconds * header.rate) for seconds in candidate.part)
        if header.frames <= start:
            raise SoundError(f"ends at {header.frames / header.rate:.2f} s, before {candidate.part[0]:.2f} s")
        stop = min(stop, header.frames)
    frames = min(stop - start, LONGEST_RECORDING * header.rate)
    first = start + (stop - start - frames) // 2
    return decoded(file, header, first, frames, whole=candidate.part is None)


def _contrasted(source: str, usable: Sequence[Usable]) -> list[Usable]:
    """Remove the loudness words of labels that have only one such word, and return the recordings.

    A single word distinguishes no levels, and its sounds would be as loud as sounds without words.
    """
    said: dict[tuple[str, str], set[str]] = defaultdict(set)
    for candidate, _ in usable:
        for name in LOUDNESS:
            said[candidate.label, name].add(candidate.words.get(name, ""))
    alone = {key: words for key, of_key in said.items() if len(words := of_key - {""}) == 1}
    if alone:
        first = shown([f"{words.copy().pop()!r} of {label!r}" for (label, _), words in alone.items()], _SHOWN)
        warnings.warn(
            f"{source}: loudness words are ignored if their label has only one: {first}",
            stacklevel=2,
        )
    return [
        (replace(one, words={name: word for name, word in one.words.items() if (one.label, name) not in alone}), read)
        for one, read in usable
    ]


def _merged(usable: Sequence[Usable]) -> list[Usable]:
    """Merge copies of a recording that all have captions and differ in nothing else into one with all captions."""
    merged: dict[Hashable, Usable] = {}
    for one, read in usable:
        words, alone = tuple(sorted(one.words.items())), None if one.captions else one.id
        key = (read.digest, one.label, one.labels, words, one.group, one.condition, alone)
        first, of_first = merged.get(key, (one, read))
        merged[key] = replace(first, captions=tuple(dict.fromkeys((*first.captions, *one.captions)))), of_first
    return list(merged.values())


def duplicates(usable: Sequence[Usable]) -> dict[str, str]:
    """Return, with reasons, copies of another recording that contradict it or may be in another split."""
    problems = {}
    for pairs in copies_of(usable, lambda pair: pair[1].sound):
        copies = [candidate for candidate, _ in pairs]
        first = copies[0]
        for candidate in copies:
            called = (candidate.label, candidate.labels, candidate.words)
            others = [copy for copy in copies if (copy.label, copy.labels, copy.words) != called]
            # Two different numbers can be two ratings of one recording, which do not contradict each other.
            if others and candidate.number is None:
                # It is unknown which of them is right, so neither is kept.
                twin = others[0]
                name = ", ".join((twin.label or ", ".join(twin.labels), *twin.words.values()))
                reason = f"{twin.id!r}, which has the label {name!r}; leave both out"
            elif candidate is first:
                continue
            elif any(candidate.condition != copy.condition for copy in copies):
                reason = f"{first.id!r} under another condition; leave one out"
            elif not (candidate.group and candidate.group == first.group):
                reason = f"{first.id!r}; leave one out, or give both one group"
            else:
                continue
            problems[candidate.id] = f"is the same recording as {reason}"
    return problems
