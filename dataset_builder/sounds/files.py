"""The files in a folder: sound that is read, and everything else with the reason why it is not."""

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
"""Files and folders that are looked at; links can lead to the same ones again and again."""


class FoundFiles:
    """The files in a folder and below it.

    Symbolic links are followed where they lead to a place in the folder, or with `follow_links` to any place.

    Attributes:
        folder: the folder.
        follow_links: see above.
    """

    def __init__(self, folder: str | Path, *, follow_links: bool = False) -> None:
        """Nothing is looked at as yet; SoundError: there is no such folder."""
        self.folder = Path(folder)
        check_folder(self.folder)
        self.follow_links = follow_links
        self._home = self.folder.resolve()

    @cached_property
    def _seen(self) -> tuple[list[Path], dict[str, str]]:
        """The sound files, and the reason against every other file; none is opened."""
        sounds: list[Path] = []
        left_out: dict[str, str] = {}
        # Folders that wait, each with the true places of those above it.
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
                        left_out[self.name(path)] = "is a link out of the folder; --set follow_links=true follows it"
                        continue
                    if true in above:
                        left_out[self.name(path)] = "is a link to a folder that it lies in"
                        continue
                mode = true.stat().st_mode if true.exists() else 0
                if stat.S_ISDIR(mode):
                    waiting.append((path, (*above, true)))
                elif not stat.S_ISREG(mode):
                    left_out[self.name(path)] = "is no regular file"
                elif path.suffix.lower() in read:
                    sounds.append(path)
                else:
                    left_out[self.name(path)] = _why_not_read(path)
        return sorted(sounds), left_out

    @property
    def sounds(self) -> list[Path]:
        """The sound files, in the order of their paths; SoundError: there are too many files."""
        return self._seen[0]

    @property
    def left_out(self) -> Mapping[str, str]:
        """Every other file, and every link that is not followed, by path below the folder, with the reason."""
        return self._seen[1]

    def _is_inside(self, true: Path) -> bool:
        return self.follow_links or true.is_relative_to(self._home)

    def name(self, path: Path) -> str:
        """A path below the folder, as it can be printed."""
        return printable(path.relative_to(self.folder).as_posix())

    @cached_property
    def by_name(self) -> Mapping[str, list[Path]]:
        """The sound files by their names, with and without ending."""
        by_name: dict[str, list[Path]] = defaultdict(list)
        for path in self.sounds:
            for name in {path.name, path.stem, path.name.strip()}:
                by_name[name].append(path)
        return by_name

    def named(self, name: str) -> Path:
        """The file that a table names: at its path below the folder, at an end of that path, or the only one so called
        in folders that the path does not contradict, with or without an ending or with that of another format.

        A table reaches no file outside the folder, by an absolute path, by ``..``, or by a link; links that lead out
        are followed where those of the folder are.

        Raises:
            SoundError: there is no such file, or there are several.
        """
        path = PurePosixPath(os.path.normpath(name.strip().replace("\\", "/")))
        out = path.is_absolute() or ".." in path.parts
        try:
            true = (self.folder / path).resolve()
            if out and true.is_relative_to(self._home) and true.is_file():
                return self.folder / true.relative_to(self._home)
            # What leads out of the folder is not followed; the rest may lie below it. A name can have a backslash.
            parts = [part for part in path.parts if part not in (".", "..", "/")]
            for below in (*([name] if "\\" in name else []), *("/".join(parts[start:]) for start in range(len(parts)))):
                there = self.folder / below
                if there.is_file() and self._is_inside(there.resolve()):
                    return there
        except (OSError, ValueError, RuntimeError) as error:
            raise SoundError(f"cannot be read: {first_line(error)}") from error
        # A set of .mp3 or .mp4 is often converted.
        is_sound = path.suffix.lower() in (*AUDIO_SUFFIXES, *FOREIGN_SUFFIXES)
        alike = self.by_name.get(path.name) or (self.by_name.get(path.stem, []) if is_sound else [])
        # train/1.wav is not test/1.wav. Folders of another machine, or of a video, say nothing.
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
            + ("; a table reaches files inside that folder alone: set it with --set audio=FOLDER" if out else "")
        )


def _ends_agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one of two paths of folders ends with the other; an empty one is the end of any."""
    count = min(len(one), len(other))
    return not count or tuple(one[-count:]) == tuple(other[-count:])


def read_suffixes() -> tuple[str, ...]:
    """Endings of the sound files that are read here."""
    return (*AUDIO_SUFFIXES, *(FOREIGN_SUFFIXES if shutil.which("ffmpeg") else ()))


def walked(folder: Path) -> Iterator[Path]:
    """All files in a folder and below it that are not hidden; links are followed, to each place once."""
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
    """Why a file that has none of `AUDIO_SUFFIXES` is not read."""
    suffix = printable(path.suffix.lower())
    if suffix in FOREIGN_SUFFIXES:
        return f"ends in {suffix}, which is read where FFmpeg is installed"
    return f"ends in {suffix}, which is no sound file that is read" if suffix else "has no ending"


def sound_files(folder: str | Path) -> list[Path]:
    """The sound files in a folder and below it, in the order of their paths; see `FoundFiles`.

    Raises:
        SoundError: there is no such folder, or no sound file in it.
    """
    found = FoundFiles(folder)
    check_sounds(found)
    return found.sounds


def check_sounds(found: FoundFiles) -> None:
    """Refuse a folder without sound files: names what it holds.

    Raises:
        SoundError: there is none.
    """
    if not found.sounds:
        held = "".join(f"; {name!r} {why}" for name, why in list(found.left_out.items())[:3])
        more = f"; and {len(found.left_out) - 3:,} more" if len(found.left_out) > 3 else ""
        raise SoundError(
            f"{str(found.folder)!r} holds no sound file; looked for are {', '.join(AUDIO_SUFFIXES)}, at any depth"
            f"{held}{more}"
        )


def check_folder(folder: Path) -> None:
    """Refuse a path that is not a folder."""
    if not folder.is_dir():
        raise SoundError(f"{str(folder)!r} is not a folder; recordings are in one that holds sound files")
