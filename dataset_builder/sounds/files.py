"""The files in a folder: sound files that are read, and all other files with the reason why they are not."""

from __future__ import annotations

import os
import shutil
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath

from audio_compositionality.support.text import first_line, shown

from .recordings import AUDIO_SUFFIXES, FOREIGN_SUFFIXES, SoundError, printable

MOST_FILES = 2_000_000
"""Most files and folders that are examined; links can lead to the same ones again and again."""


class FoundFiles:
    """The files in a folder and below it.

    Symbolic links are followed if they lead to a path in the folder, or with `follow_links` to any path.

    Attributes:
        folder: the folder.
        follow_links: see above.
    """

    def __init__(self, folder: str | Path, *, follow_links: bool = False) -> None:
        """Examine nothing yet; raise SoundError if the folder does not exist."""
        self.folder = Path(folder)
        check_folder(self.folder)
        self.follow_links = follow_links
        self._home = self.folder.resolve()

    @cached_property
    def _seen(self) -> tuple[list[Path], dict[str, str]]:
        """Return the sound files, and why each other file is not read, without opening any."""
        sounds: list[Path] = []
        left_out: dict[str, str] = {}
        # Folders still to examine, each with the real paths of those above it.
        waiting: list[tuple[Path, tuple[Path, ...]]] = [(self.folder, (self._home,))]
        seen = 0
        read = read_suffixes()
        while waiting:
            folder, above = waiting.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                left_out[self.name(folder)] = f"is a folder that cannot be read: {first_line(error)}"
                continue
            seen += len(entries)
            if seen > MOST_FILES:
                raise SoundError(f"{str(self.folder)!r} has more than {MOST_FILES:,} files; give a part of it")
            for entry in entries:
                path = folder / entry.name
                if entry.name.startswith("."):
                    left_out[self.name(path)] = f"is a hidden {'folder' if entry.is_dir() else 'file'}"
                    continue
                true = above[-1] / entry.name
                if entry.is_symlink():
                    try:
                        true = path.resolve(strict=True)
                    except (OSError, RuntimeError):
                        left_out[self.name(path)] = "is a link to nothing"
                        continue
                    if not self._is_inside(true):
                        left_out[self.name(path)] = "is a link out of the folder; allow it with --set follow_links=true"
                        continue
                    if true in above:
                        left_out[self.name(path)] = "is a link to a folder that contains it"
                        continue
                mode = true.stat().st_mode if true.exists() else 0
                if stat.S_ISDIR(mode):
                    waiting.append((path, (*above, true)))
                elif not stat.S_ISREG(mode):
                    left_out[self.name(path)] = "is not a regular file"
                elif path.suffix.lower() in read:
                    sounds.append(path)
                else:
                    left_out[self.name(path)] = _why_not_read(path)
        return sorted(sounds), left_out

    @property
    def sounds(self) -> list[Path]:
        """Return the sound files in the order of their paths; raise SoundError if there are too many files."""
        return self._seen[0]

    @property
    def left_out(self) -> Mapping[str, str]:
        """Return every other file, and every link that is not followed, by path in the folder, with the reason."""
        return self._seen[1]

    def _is_inside(self, true: Path) -> bool:
        return self.follow_links or true.is_relative_to(self._home)

    def name(self, path: Path) -> str:
        """Return a path in the folder in printable form."""
        return printable(path.relative_to(self.folder).as_posix())

    @cached_property
    def by_name(self) -> Mapping[str, list[Path]]:
        """Return the sound files by name, with and without suffix."""
        by_name: dict[str, list[Path]] = defaultdict(list)
        for path in self.sounds:
            for name in {path.name, path.stem, path.name.strip()}:
                by_name[name].append(path)
        return by_name

    def named(self, name: str) -> Path:
        """Return the file that a table names.

        It is at this path in the folder, or at an end of the path, or the only file of this name in folders that the
        path does not contradict, with or without suffix or with another format's suffix.

        A table cannot reach a file outside the folder by an absolute path, by ``..`` or by a link; links that lead out
        are followed if the folder's links are.

        Raises:
            SoundError: there is no such file, or there are several.
        """
        path = PurePosixPath(os.path.normpath(name.strip().replace("\\", "/")))
        out = path.is_absolute() or ".." in path.parts
        try:
            true = (self.folder / path).resolve()
            if out and true.is_relative_to(self._home) and true.is_file():
                return self.folder / true.relative_to(self._home)
            # Parts that lead out of the folder are not followed; the rest may be below it. A name can contain a
            # backslash.
            parts = [part for part in path.parts if part not in (".", "..", "/")]
            for below in (*([name] if "\\" in name else []), *("/".join(parts[start:]) for start in range(len(parts)))):
                there = self.folder / below
                if there.is_file() and self._is_inside(there.resolve()):
                    return there
        except (OSError, ValueError, RuntimeError) as error:
            raise SoundError(f"cannot be read: {first_line(error)}") from error
        # A set of .mp3 or .mp4 files is often converted.
        is_sound = path.suffix.lower() in (*AUDIO_SUFFIXES, *FOREIGN_SUFFIXES)
        alike = self.by_name.get(path.name) or (self.by_name.get(path.stem, []) if is_sound else [])
        # train/1.wav is not test/1.wav. Folders on another machine, or of a video, are irrelevant.
        if not path.is_absolute() and not parts[0].endswith(":"):
            alike = [
                one
                for one in alike
                if one.suffix != path.suffix or _ends_agree(one.relative_to(self.folder).parent.parts, parts[:-1])
            ]
        if len(alike) == 1:
            return alike[0]
        if alike:
            raise SoundError(f"is the name of {len(alike)} files: {shown([*map(self.name, alike)])}; give the path")
        if path.as_posix() in self.left_out:
            raise SoundError(self.left_out[path.as_posix()])
        raise SoundError(
            f"is not in {printable(str(self.folder))}"
            + ("; a table can only name files in that folder: give it with --set audio=FOLDER" if out else "")
        )


def _ends_agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether one of two folder paths ends with the other; an empty path is the end of any."""
    count = min(len(one), len(other))
    return not count or tuple(one[-count:]) == tuple(other[-count:])


def read_suffixes() -> tuple[str, ...]:
    """Return the suffixes of the sound files that can be read here."""
    return (*AUDIO_SUFFIXES, *(FOREIGN_SUFFIXES if shutil.which("ffmpeg") else ()))


def walked(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder and below it that are not hidden; links are followed, to each path once."""
    places: set[str] = set()
    for root, folders, names in os.walk(folder, followlinks=True):
        there = os.path.realpath(root)
        if there in places:
            folders.clear()
            continue
        places.add(there)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(root, name) for name in sorted(names) if not name.startswith("."))


def _why_not_read(path: Path) -> str:
    """Return why a file without one of `AUDIO_SUFFIXES` is not read."""
    suffix = printable(path.suffix.lower())
    if suffix in FOREIGN_SUFFIXES:
        return f"ends in {suffix}, which needs FFmpeg to be installed"
    return f"ends in {suffix}, which is not a supported sound file" if suffix else "has no suffix"


def sound_files(folder: str | Path) -> list[Path]:
    """Return the sound files in a folder and below it, in the order of their paths; see `FoundFiles`.

    Raises:
        SoundError: the folder does not exist, or has no sound file.
    """
    found = FoundFiles(folder)
    check_sounds(found)
    return found.sounds


def check_sounds(found: FoundFiles) -> None:
    """Raise an error if a folder has no sound files; names what it contains.

    Raises:
        SoundError: there is no sound file.
    """
    if not found.sounds:
        held = "".join(f"; {name!r} {why}" for name, why in list(found.left_out.items())[:3])
        more = f"; and {len(found.left_out) - 3:,} more" if len(found.left_out) > 3 else ""
        raise SoundError(
            f"{str(found.folder)!r} contains no sound file ({', '.join(AUDIO_SUFFIXES)}) at any depth{held}{more}"
        )


def check_folder(folder: Path) -> None:
    """Raise an error if a path is not a folder."""
    if not folder.is_dir():
        raise SoundError(f"{str(folder)!r} is not a folder; give a folder with sound files")
