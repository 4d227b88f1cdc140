"""Instruments of General MIDI, each in phrases by several soundfonts that are installed."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from .maker import (
    INSTALLED,
    MadeSound,
    Maker,
    data_folders,
    digest_of,
    is_installed,
    output_of,
    read_sound,
    version_of,
    write_sounds,
)

_TICKS = 480
"""Ticks of a quarter note, which lasts half a second by default."""

_TICKS_PER_SECOND = 2 * _TICKS


@dataclass(frozen=True)
class Note:
    """A note of a phrase.

    Attributes:
        start, duration: seconds from the beginning of the phrase.
        pitch: MIDI key number.
        velocity: 1 to 127.
    """

    start: float
    duration: float
    pitch: int
    velocity: int


@dataclass(frozen=True)
class Phrase:
    """Notes of one General MIDI program, 0 to 127."""

    program: int
    notes: Sequence[Note]


def midi_file(phrases: Sequence[Phrase], slot: float) -> bytes:
    """Return phrases as a MIDI file (format 0); each begins at a multiple of `slot` seconds.

    Half a second before the next phrase begins, all remaining notes are silenced.
    """
    events: list[tuple[int, bytes]] = []
    for place, phrase in enumerate(phrases):
        begin = place * slot
        # Before the first note, in the silence after the previous phrase.
        events.append((_tick(begin - 0.25), bytes([0xC0, phrase.program])))
        for note in phrase.notes:
            events.append((_tick(begin + note.start), bytes([0x90, note.pitch, note.velocity])))
            events.append((_tick(begin + note.start + note.duration), bytes([0x80, note.pitch, 0])))
        events.append((_tick(begin + slot - 0.5), bytes([0xB0, 120, 0])))
    # At the same moment, ends come before beginnings: else the end of a note would silence its repetition.
    events.sort(key=lambda event: (event[0], event[1][0] == 0x90))
    track, time = b"", 0
    for tick, message in [*events, (_tick(len(phrases) * slot), b"\xff\x2f\x00")]:
        track += _variable_length(tick - time) + message
        time = tick
    return b"MThd" + struct.pack(">IHHH", 6, 0, 1, _TICKS) + b"MTrk" + struct.pack(">I", len(track)) + track


def _tick(seconds: float) -> int:
    return max(0, round(seconds * _TICKS_PER_SECOND))


def _variable_length(number: int) -> bytes:
    """Return a number in groups of seven bits, the highest first; all but the last have the eighth bit set."""
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))


_FOLDERS = ("sounds/sf2", "sounds/sf3", "soundfonts", "sounds/soundfonts")
"""Folders with soundfonts, relative to the folders of programs' data."""

_PACKAGES = ("pretty_midi", "scamp", "tinysoundfont")
"""Python packages that contain soundfonts."""

_FAMILIES = {"fluidr3": "fluidr3", "musescore": "fluidr3", "sf_gmbank": "gmbank", "timgm6mb": "gmbank", "opl-3": "opl3"}
"""Families of fonts with common samples, by the beginning of the file's name, in small letters. MuseScore's was made
from FluidR3, and of 520 samples of TimGM6mb 159 are csound's, bit for bit."""


@dataclass(frozen=True)
class Soundfont:
    """A soundfont.

    Attributes:
        path: path of its file.
        family: family of fonts with common samples; by default its name.
    """

    path: Path
    family: str

    @property
    def condition(self) -> str:
        """``FAMILY/NAME``: fonts of one family are related."""
        return f"{self.family}/{self.path.stem}"


def installed_soundfonts(programs: set[int]) -> tuple[Soundfont, ...]:
    """Return the soundfonts that have all the General MIDI programs, in the order of their conditions."""
    fonts: dict[str, Soundfont] = {}
    for path in sorted({path.resolve() for path in _paths()}):
        font = Soundfont(path, _family(path.stem))
        if font.condition not in fonts and programs <= programs_of(path):
            fonts[font.condition] = font
    return tuple(fonts[condition] for condition in sorted(fonts))


def programs_of(path: Path) -> set[int]:
    """Return the programs of a soundfont (SF2 or SF3) in bank 0; none for another file.

    If a font lacks a program, fluidsynth would play another one instead.
    """
    try:
        table = _preset_headers(path)
    except (OSError, struct.error):
        return set()
    # Name (20 bytes), program, bank, and three numbers more; the last one ends the table.
    rows = [struct.unpack_from("<HH", table, offset + 20) for offset in range(0, len(table) - 38, 38)]
    return {program for program, bank in rows if bank == 0 and program < 128}


def _preset_headers(path: Path) -> bytes:
    """Return the chunk ``phdr``, in the list ``pdta`` of the RIFF file; nothing if the file has none."""
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


PROGRAMS: Mapping[str, tuple[int, int, int]] = {name: tuple(three) for name, three in INSTALLED["programs"].items()}
"""General MIDI program (from 0), lowest and highest pitch of each instrument."""

PHRASES = 3
"""Phrases of each instrument by each soundfont; no two soundfonts play the same ones."""

SLOT = 4.0
"""Seconds from one phrase to the next."""

LONGEST = 3.0
"""Seconds of a phrase with its decay."""

RATE = 32_000
"""Hz."""

_SEED = 20_241


@dataclass(frozen=True, kw_only=True)
class Instruments(Maker):
    """`PROGRAMS` by all soundfonts of at least two families."""

    def sources(self) -> dict[str, str]:
        """The conditions ``FAMILY/SOUNDFONT`` with their digests, and fluidsynth; see `Maker.sources`."""
        fonts = {font.condition: digest_of([font.path]) for font in self._fonts()}
        return {**fonts, "fluidsynth": version_of("fluidsynth")}

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``INSTRUMENT/FAMILY/SOUNDFONT/PHRASE.wav``; see `Maker.make`."""
        write_sounds([partial(phrase_sounds, font) for font in self._fonts()], folder, progress)

    def _fonts(self) -> tuple[Soundfont, ...]:
        if not is_installed("fluidsynth"):
            raise self.missing("fluidsynth is not installed")
        fonts = installed_soundfonts({program for program, _, _ in PROGRAMS.values()})
        families = {font.family for font in fonts}
        if len(families) < 2:
            here = f"only {', '.join(font.path.name for font in fonts)}" if fonts else "none"
            raise self.missing(f"soundfonts of two kinds are needed, but {here} is installed")
        return fonts


def phrases_of(condition: str) -> list[tuple[str, Phrase]]:
    """Return the phrases that a soundfont plays, `PHRASES` of each instrument in turn, with its name."""
    # Letters of the condition: the phrases of a soundfont do not depend on which others are installed.
    rng = np.random.default_rng([_SEED, *condition.encode()])
    return [(name, _phrase(rng, *PROGRAMS[name])) for name in PROGRAMS for _ in range(PHRASES)]


def _phrase(rng: np.random.Generator, program: int, low: int, high: int) -> Phrase:
    """Return a walk over notes with occasional leaps that lasts 1.6 to 2.4 s and stays between two pitches."""
    end, time = float(rng.uniform(1.6, 2.4)), 0.0
    pitch, notes = int(rng.integers(low, high + 1)), []
    while time < end - 0.1:
        length = min(float(rng.choice([0.16, 0.24, 0.32, 0.48, 0.64])), end - time)
        notes.append(Note(time, 0.9 * length, pitch, int(rng.integers(70, 115))))
        time += length
        step = int(rng.choice([-7, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 7]))
        pitch += step if low <= pitch + step <= high else -step
        pitch = min(max(pitch, low), high)
    return Phrase(program, notes)


def phrase_sounds(font: Soundfont) -> Iterator[MadeSound]:
    """Yield all phrases by one soundfont, which is loaded once: one long file is rendered and cut."""
    phrases = phrases_of(font.condition)
    with tempfile.TemporaryDirectory() as name:
        song, sound, settings = Path(name, "song.mid"), Path(name, "sound.wav"), Path(name, "settings")
        song.write_bytes(midi_file([phrase for _, phrase in phrases], SLOT))
        # An empty file of settings, instead of the user's own; neither reverberation nor chorus.
        settings.write_bytes(b"")
        options = ["-n", "-i", "-q", "-R", "0", "-C", "0", "-g", "0.4", "-r", RATE, "-f", settings]
        output_of("fluidsynth", [*map(str, options), "-T", "wav", "-O", "float", "-F", sound, font.path, song])
        samples, rate = read_sound(sound)
    if rate != RATE or len(samples) < (len(phrases) - 0.5) * SLOT * rate:
        raise SoundError(f"fluidsynth has not rendered all phrases by {font.path.name}")
    for place, (instrument, _) in enumerate(phrases):
        start = round(place * SLOT * rate)
        part = samples[start : start + round(LONGEST * rate)]
        yield MadeSound(instrument, font.condition, str(place % PHRASES + 1), part, rate)


INSTRUMENTS = Instruments(
    name="instruments",
    meaning=(
        f"{len(PROGRAMS)} instruments of General MIDI (label), {PHRASES} random phrases each by every soundfont that "
        "is installed (condition: family/soundfont)"
    ),
    needs=(
        "fluidsynth and soundfonts of two kinds at least are needed. On Debian: apt-get install fluidsynth "
        "fluid-soundfont-gm timgm6mb-soundfont opl3-soundfont csound-soundfont"
    ),
    licence=(
        "Made on this machine from soundfonts under their licences (FluidR3 MIT, TimGM6mb GPL-2, csound's bank "
        "LGPL-2.1+, OPL-3 CC-BY-SA-4.0); nothing of it is part of this project"
    ),
)
