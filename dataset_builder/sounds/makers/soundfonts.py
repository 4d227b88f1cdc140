"""Soundfonts that are installed: where they lie, which programs they have, which are made of the same samples."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .places import data_folders

_FOLDERS = ("sounds/sf2", "sounds/sf3", "soundfonts", "sounds/soundfonts")
"""Below the folders of programs' data."""

_PACKAGES = ("pretty_midi", "scamp", "tinysoundfont")
"""Python packages that carry soundfonts."""

_FAMILIES = {"fluidr3": "fluidr3", "musescore": "fluidr3", "sf_gmbank": "gmbank", "timgm6mb": "gmbank", "opl-3": "opl3"}
"""Fonts of one family have samples in common; by the beginning of the name of the file, in small letters. MuseScore's
was made from FluidR3, and of 520 samples of TimGM6mb 159 are csound's, bit for bit."""


@dataclass(frozen=True)
class Soundfont:
    """A soundfont.

    Attributes:
        path: of its file.
        family: of fonts with common samples; by default its name.
    """

    path: Path
    family: str

    @property
    def condition(self) -> str:
        """``FAMILY/NAME``: fonts of one family are related."""
        return f"{self.family}/{self.path.stem}"


def installed_soundfonts(programs: set[int]) -> tuple[Soundfont, ...]:
    """The soundfonts that have all of some General MIDI programs, by the order of their conditions."""
    fonts: dict[str, Soundfont] = {}
    for path in sorted({path.resolve() for path in _paths()}):
        font = Soundfont(path, _family(path.stem))
        if font.condition not in fonts and programs <= programs_of(path):
            fonts[font.condition] = font
    return tuple(fonts[condition] for condition in sorted(fonts))


def programs_of(path: Path) -> set[int]:
    """The programs of a soundfont (SF2 or SF3) in bank 0; none where it is no soundfont.

    A program that a font lacks would sound as another one.
    """
    try:
        table = _preset_headers(path)
    except (OSError, struct.error):
        return set()
    # Name (20 bytes), program, bank, and three numbers more; the last one ends the table.
    rows = [struct.unpack_from("<HH", table, offset + 20) for offset in range(0, len(table) - 38, 38)]
    return {program for program, bank in rows if bank == 0 and program < 128}


def _preset_headers(path: Path) -> bytes:
    """The chunk ``phdr``, in the list ``pdta`` of the RIFF file; nothing where there is none."""
    with path.open("rb") as stream:
        kind, _, form = struct.unpack("<4sI4s", stream.read(12))
        if (kind, form) != (b"RIFF", b"sfbk"):
            return b""
        while len(header := stream.read(8)) == 8:
            name, size = struct.unpack("<4sI", header)
            if name == b"LIST" and stream.read(4) == b"pdta":
                continue
            if name == b"phdr":
                return stream.read(size)
            # Chunks have an even length; of another list four bytes are read already.
            stream.seek(size + size % 2 - (4 if name == b"LIST" else 0), 1)
    return b""


def _paths() -> Iterator[Path]:
    folders = [folder / place for folder in data_folders() for place in _FOLDERS]
    for name in _PACKAGES:
        spec = find_spec(name)
        folders += [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    for folder in folders:
        yield from (path for suffix in ("sf2", "sf3") for path in folder.rglob(f"*.{suffix}") if path.is_file())


def _family(stem: str) -> str:
    name = stem.lower()
    return next((family for start, family in _FAMILIES.items() if name.startswith(start)), name)
