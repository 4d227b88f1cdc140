"""Shared code of makers of sounds: third-party programs, installed data, files, and a folder that is made once."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import yaml
from numpy.typing import NDArray
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.sounds.files import sound_files
from audio_compositionality.dataset_builder.sounds.folder import SETTINGS
from audio_compositionality.dataset_builder.sounds.recordings import SoundError, printable
from audio_compositionality.support.files import sha256_of, sha256_of_file
from audio_compositionality.support.text import first_line


@dataclass(frozen=True, kw_only=True)
class Maker(ABC):
    """Writes sounds with labels and conditions into a folder, from installed sources; `MAKERS` has all makers.

    Attributes:
        name: letters, digits and hyphens; what ``python -m studies.sounds`` takes.
        meaning: the sounds, their labels and their conditions, in a sentence.
        needs: the packages to be installed, and how on Debian, in a sentence.
        licence: licence of the sounds, in a sentence; this project redistributes none of them.
        version: version of the code; raise it with any change that alters a file.
    """

    name: str
    meaning: str
    needs: str
    licence: str
    version: int = 1

    @abstractmethod
    def sources(self) -> Mapping[str, str]:
        """The installed sources of sounds, in a fixed order: voices, soundfonts, speakers.

        Each has an identity beyond its name: the version that its program states (see `version_of`), or the digest of
        its files (`digest_of`). Sounds made earlier from other sources are not used.

        Raises:
            SoundError: too little is installed; names the packages to install.
        """

    @abstractmethod
    def make(self, folder: Path, progress: bool) -> None:
        """Write ``LABEL/CONDITION/file.wav`` (16 bits, mono) into a folder, ``LABEL/file.wav`` without conditions.

        The same sources give the same bits. Conditions whose first part is equal (``flite/awb``, ``flite/rms``) are
        related.

        Args:
            folder: an empty one, or one that does not exist.
            progress: show a progress bar.

        Raises:
            SoundError: too little is installed, or a program fails.
        """

    def missing(self, reason: str) -> SoundError:
        """Return an error that says what is missing and what to install."""
        return SoundError(f"the sounds {self.name!r} cannot be made: {reason}. {self.needs}")


INSTALLED: Mapping[str, Any] = yaml.safe_load(Path(__file__).with_name("installed.yaml").read_text("utf-8"))
"""Which installed file is which sound: kits, creatures and programs of instruments."""

LIMIT = 600.0
"""Time limit of a program in seconds."""


def is_installed(program: str) -> bool:
    """Whether a program is on the path."""
    return shutil.which(program) is not None


def version_of(program: str) -> str:
    """Return the version that a program states; the digest of its file if it states none.

    Raises:
        SoundError: it is absent, or cannot be run.
    """
    path = _path_of(program)
    result = _run([path, "--version"], LIMIT)
    # Some end with a status of failure, and some write to the standard error.
    stated = " ".join((result.stdout + b" " + result.stderr).decode("utf-8", "replace").split())
    return stated or sha256_of_file(Path(path))


def output_of(program: str, arguments: Sequence[str | Path], *, limit: float = LIMIT) -> str:
    """Run a program to its end; it reads nothing.

    Args:
        program: its name on the path.
        arguments: its arguments.
        limit: seconds after which it is stopped.

    Returns:
        Its standard output.

    Raises:
        SoundError: it is absent, fails or takes longer; with the first line of its error message.
    """
    result = _run([_path_of(program), *map(str, arguments)], limit)
    if result.returncode:
        raise SoundError(f"{program} failed: {complaint(result.stderr) or f'exit status {result.returncode}'}")
    return result.stdout.decode("utf-8", "replace")


def _path_of(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SoundError(f"the program {program} is not installed")
    return path


def _run(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[bytes]:
    program = Path(command[0]).name
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise SoundError(f"{program} was stopped: it takes longer than {limit:g} s") from error
    except OSError as error:
        raise SoundError(f"{program} cannot be run: {error.strerror}") from error


def complaint(stderr: bytes) -> str:
    """Return the first informative line of a program's errors; a warning if there is nothing else."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "warning" not in line.lower()]
    return printable(next(iter(errors + lines), ""))[:200]


_DEFAULT = "/usr/local/share:/usr/share"


def data_folders() -> tuple[Path, ...]:
    """Return the folders of programs' data, in order of preference; without root access, unpack a package anywhere
    and add its ``usr/share`` to XDG_DATA_DIRS.
    """
    names = (os.environ.get("XDG_DATA_DIRS") or _DEFAULT).split(os.pathsep)
    return tuple(dict.fromkeys(Path(name) for name in names if Path(name).is_absolute()))


def digest_of(paths: Iterable[Path]) -> str:
    """Return the SHA-256 of the contents of files, in order.

    Raises:
        SoundError: one cannot be read.
    """
    try:
        return sha256_of("\n".join(map(sha256_of_file, paths)).encode())
    except OSError as error:
        raise SoundError(f"{error.filename!r} cannot be read: {error.strerror}") from error


def data_folder(place: str) -> Path | None:
    """Return the first folder with this path below `data_folders` that exists; None if there is none."""
    return next((folder / place for folder in data_folders() if (folder / place).is_dir()), None)


Samples = NDArray[np.float64]

PEAK = 0.9
"""Peak of every file, relative to full scale: programs and packages differ by 40 dB, and the reader refuses the
softest."""

FRAME = 0.02
"""Seconds of a frame; its level decides whether it counts as silent."""

EDGE = -33.0
"""dB below the loudest frame: softer frames at both ends are cut off, since programs add pauses and people's recordings
have noise 35 dB or more below the voice."""

MARGIN = 0.06
"""Seconds of these soft ends that are kept: the beginnings of f and h are soft."""

FADE = 0.005
"""Seconds of the fades at both ends: a cut through noise is heard as a click."""

SHORTEST = 0.3
"""Seconds: a shorter sound ends in silence, since the reader refuses less than a quarter of a second."""

_THREADS = 2


@dataclass(frozen=True)
class MadeSound:
    """A sound that will be a file.

    Attributes:
        label, condition, name: ``LABEL/CONDITION/NAME.wav``; an empty condition is no folder.
        samples: float64 [samples], mono.
        rate: Hz.
    """

    label: str
    condition: str
    name: str
    samples: Samples
    rate: int

    @property
    def place(self) -> str:
        """Path below the folder."""
        return "/".join(part for part in (self.label, self.condition, f"{self.name}.wav") if part)


Job = Callable[[], Iterable[MadeSound]]
"""A function that makes some sounds; several run at a time, in threads."""


def write_sounds(jobs: Sequence[Job], folder: Path, progress: bool) -> None:
    """Make all sounds and write them into a folder.

    Raises:
        SoundError: a sound cannot be made or is silent, or two have the same path.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        written = pool.map(partial(_write_all, folder), jobs)
        try:
            for _ in tqdm(written, "sounds", len(jobs), disable=None if progress else True):
                pass
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _write_all(folder: Path, job: Job) -> None:
    for sound in job():
        write_sound(sound, folder)


def write_sound(sound: MadeSound, folder: Path) -> None:
    """Write one sound.

    Raises:
        SoundError: it is silent, or exists already.
    """
    path = folder / sound.place
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.round(levelled(trimmed(sound)) * 32_767).astype("<i2")
    try:
        with path.open("xb") as stream:
            soundfile.write(stream, values, sound.rate, "PCM_16", format="WAV")
    except FileExistsError as error:
        raise SoundError(f"{str(folder)!r} holds {sound.place!r} already; make sounds in an empty folder") from error


def trimmed(sound: MadeSound) -> Samples:
    """Return a sound without silence at its ends, at least `SHORTEST` long.

    Raises:
        SoundError: it is silent, or has a value that is not a number.
    """
    peak = float(np.abs(sound.samples).max(initial=0.0))
    if not 0 < peak < math.inf:
        raise SoundError(f"{sound.place!r} is {'silent' if peak == 0 else 'no sound'}")
    size, margin = max(1, round(FRAME * sound.rate)), round(MARGIN * sound.rate)
    frames = np.pad(sound.samples, (0, -len(sound.samples) % size)).reshape(-1, size)
    power = np.mean(np.square(frames), axis=1)
    heard = np.flatnonzero(power >= power.max() * 10 ** (EDGE / 10))
    part = sound.samples[max(0, int(heard[0]) * size - margin) : (int(heard[-1]) + 1) * size + margin].copy()
    length = min(round(FADE * sound.rate), len(part) // 2)
    ramp = np.sin(np.linspace(0, math.pi / 2, length, endpoint=False)) ** 2
    part[:length] *= ramp
    part[len(part) - length :] *= ramp[::-1]
    return np.pad(part, (0, max(0, math.ceil(SHORTEST * sound.rate) - len(part))))


def levelled(samples: Samples) -> Samples:
    """Return a sound with its peak at `PEAK`."""
    return samples * (PEAK / float(np.abs(samples).max()))


def read_sound(path: Path) -> tuple[Samples, int]:
    """Return the samples of a file (the mean of its channels) and their rate.

    Raises:
        SoundError: it cannot be read.
    """
    try:
        samples, rate = soundfile.read(path, dtype="float64", always_2d=True)
    except (OSError, RuntimeError) as error:
        raise SoundError(f"{str(path)!r} cannot be read: {first_line(error)}") from error
    mean: Samples = samples.mean(axis=1)
    return mean, int(rate)


MADE = "made.json"


def make_folder(maker: Maker, folder: Path, *, progress: bool = True) -> bool:
    """Make a maker's sounds in a folder, which is renamed to its final name when all are written, so that an
    interrupted run leaves nothing that looks finished.

    Args:
        maker: the maker.
        folder: a folder that does not exist, is empty, or holds sounds that this function made from the same sources.
        progress: show a progress bar.

    Returns:
        Whether they were made; False if they existed.

    Raises:
        SoundError: too little is installed, nothing was made, or the folder holds something else, such as sounds of
            another version of flite; it is left alone.
    """
    made_of = {"maker": maker.name, "version": maker.version, "sources": dict(maker.sources())}
    if folder.is_dir() and any(folder.iterdir()):
        try:
            stated = json.loads((folder / MADE).read_text("utf-8"))
        except (OSError, ValueError):
            stated = None
        if stated == made_of:
            return False
        raise SoundError(
            f"{str(folder)!r} holds other files, or sounds made from other sources; remove it, or pass another folder"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as name:
        unfinished = Path(name, folder.name)
        unfinished.mkdir()
        maker.make(unfinished, progress)
        sound_files(unfinished)
        settings = f"# {maker.name}: {maker.meaning}.\n# {maker.licence}\n{yaml.safe_dump({'domain': maker.name})}"
        (unfinished / SETTINGS).write_text(settings, "utf-8")
        (unfinished / MADE).write_text(json.dumps(made_of), "utf-8")
        unfinished.replace(folder)
    return True
