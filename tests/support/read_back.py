"""Which files are read back, found by looking; and what comes of a bit that has changed in one of them.

``python -m tests.support.read_back`` lists the kinds of files that a second run opens, of all scenes (`scenes`).
``--flips 1000`` then changes that many bits, each in a copy, and counts what comes of them:

  refused   an error of this project names the file, or the folder that it lies in
  anew      the same result, and a line that names the file: what it held was computed again
  same      the same result
  silent    another result, and no word of it
  crash     an error that is none of this project

Linux tells who opens what, whichever library does (inotify); elsewhere Python's own ``open`` tells (an audit hook).
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from audio_compositionality.support.errors import AudioCompositionalityError

from . import scenes
from .scenes import SCENES, Scene

OUTCOMES = ("refused", "anew", "same", "silent", "crash")

_CACHE = "AUDIO_COMPOSITIONALITY_CACHE"

_ACCESS, _CLOSE_NOWRITE = 0x1, 0x10  # of <sys/inotify.h>

_opened: list[set[str]] = []


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    if _opened and event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
        flags = arguments[2] if isinstance(arguments[2], int) else 0
        # What is only written is not read.
        if flags & (os.O_WRONLY | os.O_TRUNC) == 0:
            _opened[-1].add(os.path.abspath(os.fsdecode(arguments[0])))


_hooked: list[bool] = []


@contextmanager
def watched(folder: Path) -> Iterator[set[str]]:
    """The files below a folder that are opened for reading, by their absolute paths, once it is left."""
    if not _hooked:
        # A hook stays for as long as the process.
        sys.addaudithook(_hook)
        _hooked.append(True)
    found: set[str] = set()
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK) if hasattr(libc, "inotify_init1") else -1
    places = {}
    if descriptor >= 0:
        for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            number = libc.inotify_add_watch(descriptor, os.fsencode(path), _ACCESS | _CLOSE_NOWRITE)
            places[number] = path
    _opened.append(set())
    try:
        yield found
    finally:
        found |= _opened.pop()
        if descriptor >= 0:
            found |= {str(places[number] / name) for number, name in _events(descriptor)}
            os.close(descriptor)


def _events(descriptor: int) -> Iterator[tuple[int, str]]:
    """Number of the folder and name of each file that was read."""
    while True:
        try:
            content = os.read(descriptor, 2**20)
        except BlockingIOError:
            return
        place = 0
        while place < len(content):
            number, _, _, length = struct.unpack_from("iIII", content, place)
            name = content[place + 16 : place + 16 + length].rstrip(b"\0")
            place += 16 + length
            if name:
                yield number, os.fsdecode(name)


@dataclass(frozen=True)
class Kind:
    """Files that are read back in one scene and are alike.

    Attributes:
        scene: in which.
        name: their path, ``#`` for numbers and digests.
        files: paths below the scene's folder.
    """

    scene: Scene
    name: str
    files: tuple[str, ...]


@contextmanager
def cache_in(folder: Path) -> Iterator[None]:
    """The cache is in the folder of a scene."""
    before = os.environ.get(_CACHE)
    os.environ[_CACHE] = str(folder / "cache")
    try:
        yield
    finally:
        os.environ.pop(_CACHE)
        if before is not None:
            os.environ[_CACHE] = before


def write_all(root: Path, chosen: Sequence[Scene] = SCENES) -> dict[Callable[[Path], None], Path]:
    """What scenes write, once each, and where."""
    scenes._places["beside"] = root / "beside"
    folders: dict[Callable[[Path], None], Path] = {}
    for scene in chosen:
        if scene.write not in folders:
            folder = folders[scene.write] = root / scene.write.__name__
            folder.mkdir(parents=True)
            with cache_in(folder), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                scene.write(folder)
    return folders


@contextmanager
def copied(folder: Path, work: Path) -> Iterator[Path]:
    """A copy of a folder, always at the same place: some files say where others lie."""
    copy = work / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    with cache_in(copy):
        yield copy


def find_kinds(
    folders: Mapping[Callable[[Path], None], Path], work: Path, chosen: Sequence[Scene] = SCENES
) -> tuple[list[Kind], dict[str, str]]:
    """The kinds of files that scenes read back, and what each scene gives where nothing is damaged, by its name."""
    kinds, expected = [], {}
    for scene in chosen:
        with copied(folders[scene.write], work) as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = {str(path) for path in folder.rglob("*") if path.is_file() and path.stat().st_size}
            with watched(folder) as opened:
                expected[scene.name] = scene.read(folder)
        named = defaultdict(list)
        for path in sorted(there & opened):
            relative = Path(path).relative_to(work / "copy").as_posix()
            named[re.sub(r"[0-9a-f]{12,}|\d+", "#", relative)].append(relative)
        kinds += [Kind(scene, name, tuple(files)) for name, files in named.items()]
    return kinds, expected


def flip(path: Path, rng: np.random.Generator) -> str:
    """Change one bit of a file, any, or one of the exponent of a number; says which."""
    content = bytearray(path.read_bytes())
    if path.suffix in (".safetensors", ".bin") and rng.random() < 0.5:
        width = 2 if path.name == "values.bin" else 4
        start = 8 + int.from_bytes(content[:8], "little") if path.suffix == ".safetensors" else 0
        place, bit = start + width * int(rng.integers((len(content) - start) // width)) + width - 1, 6
    else:
        place, bit = int(rng.integers(len(content))), int(rng.integers(8))
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place:,} of {len(content):,}"


def outcome_of(scene: Scene, folder: Path, name: str, expected: str) -> tuple[str, str]:
    """What comes of reading where a file is damaged: one of `OUTCOMES`, and what was said."""
    words = {Path(name).name, Path(name).parent.name} - {""}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            given = scene.read(folder)
        except AudioCompositionalityError as error:
            said = str(error)
            return ("refused" if any(word in said for word in words) else "crash"), said
        except Exception as error:
            return "crash", repr(error)
    said = " | ".join(str(one.message) for one in caught)
    if given != expected:
        return "silent", said
    return ("anew" if any(word in said for word in words) else "same"), said


@dataclass(frozen=True)
class Flip:
    """A bit that was changed, and what came of it."""

    kind: Kind
    file: str
    where: str
    outcome: str
    said: str


def flips(
    folders: Mapping[Callable[[Path], None], Path],
    kinds: Sequence[Kind],
    expected: Mapping[str, str],
    work: Path,
    count: int,
    seed: int,
) -> Iterator[Flip]:
    """Bits changed one at a time, in all kinds in turns, at places that the seed decides."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        name = kind.files[int(rng.integers(len(kind.files)))]
        with copied(folders[kind.scene.write], work) as folder:
            where = flip(folder / name, rng)
            outcome, said = outcome_of(kind.scene, folder, name, expected[kind.scene.name])
        yield Flip(kind, name, where, outcome, said)


def main() -> None:
    """List the kinds, and flip."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=0, metavar="N", help="bits to change (0: list the kinds alone)")
    parser.add_argument("--seed", type=int, default=0, help="of the places")
    parser.add_argument("--scenes", default="", metavar="TEXT", help="those alone whose name has this text")
    parser.add_argument("--said", action="store_true", help="print what was said of each")
    options = parser.parse_args()
    chosen = [scene for scene in SCENES if options.scenes in scene.name]
    with tempfile.TemporaryDirectory() as root:
        folders = write_all(Path(root) / "written", chosen)
        kinds, expected = find_kinds(folders, Path(root), chosen)
        counts: dict[Kind, Counter[str]] = {kind: Counter() for kind in kinds}
        started = time.monotonic()
        for one in flips(folders, kinds, expected, Path(root), options.flips, options.seed):
            counts[one.kind][one.outcome] += 1
            if options.said or one.outcome in ("silent", "crash"):
                print(f"{one.outcome}: {one.kind.scene.name}, {one.file}, {one.where}: {one.said[:300]}", flush=True)
        print("| done twice | file that is read back | " + " | ".join(OUTCOMES) + " |")
        print("|---|---|" + "--:|" * len(OUTCOMES))
        for kind in kinds:
            numbers = " | ".join(str(counts[kind][name]) for name in OUTCOMES)
            print(f"| {kind.scene.name} | `{kind.name}` | {numbers} |")
        total = sum(counts.values(), Counter())
        print(f"{len(kinds)} kinds, {options.flips} flips in {time.monotonic() - started:.0f} s:", dict(total))


if __name__ == "__main__":
    main()
