"""A folder of sound files as clips to embed: the natural side of the CORAL check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

from audio_compositionality.dataset_builder.data import Clip, Row, check_range
from audio_compositionality.dataset_builder.sounds.recordings import (
    SoundError,
    printable,
    read_header,
    read_samples,
    sound_files,
)
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of, sha256_of_file

CLIP_SECONDS = 10
"""Length of a clip, that of the benchmark's."""

SHORTEST_SECONDS = 1
"""A file shorter than a clip is one clip, unless it is shorter than this."""

MIN_CLIPS = 10
"""Fewest clips whose covariance is worth computing; far more are needed to know it well."""

MAX_CLIPS = 2_000
"""Clips drawn where there are more: more than most encoders have dimensions, and few enough that a collection of
recordings takes no longer to embed than the benchmark does at its full size."""

RECIPE = "recordings"
"""What stands for the recipe in the key of their embeddings."""


@dataclass(frozen=True)
class _Clip:
    """A part of a file: `frames` samples from `start` on, at `rate` Hz; `name` is the file's, fit to be printed."""

    path: Path
    name: str
    rate: int
    frames: int
    start: int

    @property
    def id(self) -> str:
        return f"{self.name}@{self.start / self.rate:g}s"


class Sounds:
    """Clips of the sound files in a folder and the folders below it; see `Configuration`.

    Files are cut into clips of 10 s from their beginning on, a rest is left out; a file that is shorter, but lasts 1 s
    or more, is one clip. Channels are averaged; the rate stays as it is. Clips are ordered by rate and length, so that
    clips that follow each other make batches, then by name. Symbolic links, hidden files and whatever does not have a
    name of a sound file's are not looked at.

    Attributes:
        recipe: `RECIPE`, which is no recipe of the data set.
        source: the folder, as given.
        clip_ids: ``<path below the folder>@<beginning>s`` of each clip.
        rows: one a clip, with its ``id`` and ``split``.
        files: number of the files that the clips are from.
        available: number of clips in the folder, of which `clip_ids` are those that were drawn.
        too_short: number of files that last less than 1 s.
        skipped: ``id`` (path below the folder) and ``reason`` of each file that cannot be read.
        fingerprint: SHA-256 over the clips and the content of their files.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        max_clips: int = MAX_CLIPS,
        skip_invalid: bool = False,
        progress: bool = True,
    ) -> None:
        """Find the clips of a folder.

        Args:
            folder: with sound files, at any depth.
            max_clips: most clips; where there are more, so many are drawn, each as likely as any other and always the
                same.
            skip_invalid: leave out files that cannot be read.
            progress: show progress bars.

        Raises:
            SoundError: the folder has no sound file or fewer than 10 clips, or a file cannot be read.
            InputError: `max_clips` is less than 10.
        """
        if max_clips < MIN_CLIPS:
            raise InputError(f"max_clips is {max_clips}; it must be {MIN_CLIPS} or more")
        self.recipe = RECIPE
        self.source = printable(str(folder))
        self.too_short = 0
        self.skipped: list[dict[str, str]] = []
        available: list[_Clip] = []
        for path in tqdm(sound_files(Path(folder)), desc="recordings", unit="file", disable=None if progress else True):
            name = printable(path.relative_to(folder).as_posix())
            try:
                clips = list(_clips_of_file(path, name))
            except SoundError as error:
                if not skip_invalid:
                    raise SoundError(f"{name!r} {error}; --skip-invalid leaves it out") from error
                self.skipped.append({"id": name, "reason": str(error)})
                continue
            self.too_short += not clips
            available += clips
        self.available = len(available)
        if self.available < MIN_CLIPS:
            raise SoundError(self._too_few())
        if self.available > max_clips:
            drawn = np.random.default_rng(0).choice(self.available, max_clips, replace=False)
            available = [available[number] for number in sorted(drawn.tolist())]
        self._clips = sorted(available, key=lambda clip: (clip.rate, clip.frames, clip.name, clip.start))
        self.clip_ids: Sequence[str] = tuple(clip.id for clip in self._clips)
        self.rows: Sequence[Row] = tuple({"id": id, "split": "test"} for id in self.clip_ids)
        paths = sorted({clip.path for clip in self._clips})
        self.files = len(paths)
        self.fingerprint = self._fingerprint(paths, progress)

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Clips in the order of `clip_ids`; see `Configuration.clips`.

        Raises:
            SoundError: a clip cannot be decoded, and ``keep_invalid`` is not given.
        """
        for place in check_range(wanted, len(self._clips)):
            clip = self._clips[place]
            try:
                yield Clip(clip.id, read_samples(clip.path, clip.frames, clip.start), clip.rate)
            except SoundError as error:
                if not keep_invalid:
                    raise SoundError(f"{clip.id!r} {error}; --skip-invalid leaves it out") from error
                yield Clip(clip.id, np.full(clip.frames, np.nan, np.float32), clip.rate, str(error))

    def _too_few(self) -> str:
        return (
            f"{self.source!r} holds {self.available} clips ({CLIP_SECONDS} s, or shorter files whole; files shorter "
            f"than {SHORTEST_SECONDS} s: {self.too_short}, damaged ones: {len(self.skipped)}); a covariance needs "
            f"{MIN_CLIPS} or more"
        )

    def _fingerprint(self, paths: Sequence[Path], progress: bool) -> str:
        hashed = tqdm(paths, desc="hashing", unit="file", disable=None if progress else True)
        content = {path: sha256_of_file(path) for path in hashed}
        lines = (f"{clip.id} {clip.rate} {clip.start} {clip.frames} {content[clip.path]}\n" for clip in self._clips)
        return sha256_of("".join(lines).encode())


def _clips_of_file(path: Path, name: str) -> Iterator[_Clip]:
    header = read_header(path)
    rate, frames = header.rate, header.frames
    length = CLIP_SECONDS * rate
    if frames >= length:
        for start in range(0, frames - length + 1, length):
            yield _Clip(path, name, rate, length, start)
    elif frames >= SHORTEST_SECONDS * rate:
        yield _Clip(path, name, rate, frames, 0)
