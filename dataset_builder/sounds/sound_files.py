"""Sound files of strangers: which files of a folder they are, what they claim to hold, and their samples."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from audio_compositionality.support.files import sha256_of, sha256_of_file

from ..data import DatasetError

AUDIO_SUFFIXES = (
    *(".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3"),
    *(".aif", ".aiff", ".aifc", ".au", ".caf", ".rf64", ".w64"),
)
"""Files with other names are not looked at."""

FILE_COLUMNS = ("file_name", "file", "filename", "path", "audio")
"""Headings of the files in a table of recordings; the first of them that a table has."""

LONGEST_HOURS = 24
"""A file that claims to last longer is taken to be damaged."""

MOST_CHANNELS = 16
"""A file that claims to have more is taken to be damaged: their samples would fill the memory."""

_LOSSY = ("VORBIS", "OPUS", "MPEG")
"""Beginnings of the names of formats whose samples differ by rounding from one decoder to the next."""

SoundFile = Path | io.BytesIO
"""A file, or the content of one."""


class SoundError(DatasetError):
    """Recordings, or one of them, that cannot be used: says which, what is wrong, and what to do."""


@dataclass(frozen=True)
class Header:
    """What a file claims to hold.

    Attributes:
        rate: Hz.
        frames: samples of each channel.
        lossy: whether its samples are those of the file only up to rounding.
    """

    rate: int
    frames: int
    lossy: bool


def sound_files(folder: Path) -> list[Path]:
    """The sound files in a folder and the folders below it, in the order of their paths.

    Symbolic links, hidden files and whatever does not have a name of `AUDIO_SUFFIXES` are not looked at.

    Raises:
        SoundError: there is no such folder, or none in it.
    """
    check_folder(folder)
    paths = []
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            path = Path(root, name)
            if not name.startswith(".") and path.suffix.lower() in AUDIO_SUFFIXES and is_regular(path):
                paths.append(path)
    if not paths:
        raise SoundError(
            f"{str(folder)!r} holds no sound file; looked for are {', '.join(AUDIO_SUFFIXES)}, at any depth, symbolic "
            "links not followed"
        )
    return sorted(paths)


def check_folder(folder: Path) -> None:
    """Refuse what is no folder."""
    if not folder.is_dir():
        raise SoundError(f"{str(folder)!r} is not a folder; recordings are in one that holds sound files")


def is_regular(path: Path) -> bool:
    """Whether a path that exists is a file itself: a link leads elsewhere, and opening a pipe waits for ever."""
    return stat.S_ISREG(path.lstat().st_mode)


def printable(text: str) -> str:
    """Text that can be printed and stored; names of files may hold control characters and invalid UTF-8."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def read_header(file: SoundFile) -> Header:
    """What a file claims to hold.

    Raises:
        SoundError: it is no sound file, or claims what cannot be.
    """
    with _reasons("cannot be read"):
        info = soundfile.info(_opened(file))
    rate, frames, channels = int(info.samplerate), int(info.frames), int(info.channels)
    if rate < 1 or not 0 <= frames <= LONGEST_HOURS * 3_600 * rate:
        raise SoundError(f"claims {frames:,} samples at {rate:,} Hz, more than {LONGEST_HOURS} hours; is it damaged?")
    if channels > MOST_CHANNELS:
        raise SoundError(f"claims {channels:,} channels; {MOST_CHANNELS} are the most that are read")
    return Header(rate, frames, info.subtype.startswith(_LOSSY))


def read_samples(file: SoundFile, frames: int, start: int) -> NDArray[np.float32]:
    """So many samples [frames] of a file from `start` on, the mean of its channels.

    Raises:
        SoundError: they are not there, or are no numbers.
    """
    with _reasons("cannot be decoded"):
        samples, _ = soundfile.read(_opened(file), frames, start, dtype="float32", always_2d=True)
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
        samples: float32 [samples], the mean of the channels; float64 where no file was decoded.
        rate: Hz.
        sha256: what names them in fingerprints: of a lossy format, whose samples differ by rounding from one decoder to
            the next, the digest of the file and, of a part, its place; of any other that of the samples.
        sound: the digest of the samples as they are decoded here: two files of a lossy format can hold one sound.
    """

    samples: NDArray[np.float32] | NDArray[np.float64]
    rate: int
    sha256: str
    sound: str


def decoded(file: SoundFile, header: Header, start: int, frames: int, *, whole: bool) -> Decoded:
    """Samples of a file and their names.

    Args:
        file: the file, or its content.
        header: of it.
        start: first sample.
        frames: samples.
        whole: whether they stand for all of the file.

    Raises:
        SoundError: as `read_samples`.
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
    """Errors of libsndfile and the system as SoundErrors that say what could not be done."""
    try:
        yield
    except (soundfile.SoundFileError, OSError, RuntimeError) as error:
        # The text of libsndfile without the path, which the message begins with.
        reason = printable(str(getattr(error, "error_string", error))).strip(" .")
        raise SoundError(f"{what}: {reason}") from error


def _opened(file: SoundFile) -> bytes | io.BytesIO:
    if isinstance(file, Path):
        # In bytes: a name need not be valid UTF-8.
        return os.fsencode(file)
    file.seek(0)
    return file
