"""Words spoken by the installed voices of speech synthesisers, with the words or the voices as labels.

Each person's recordings are used once. If two programs have a voice made from one person's recordings (flite and
festival share kal's and slt's), only the first installed one in the table is used, because the conditions of two
programs must be unrelated.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from .maker import MadeSound, Maker, Samples, is_installed, output_of, read_sound, version_of, write_sounds


@dataclass(frozen=True)
class Voice:
    """A voice of a program.

    Attributes:
        engine: the program.
        name: name of the voice, in the condition ``ENGINE/NAME``.
        argument: its name in the program.
        speaker: the person from whose recordings it was made; otherwise the name of the voice.
    """

    engine: str
    name: str
    argument: str
    speaker: str

    @property
    def condition(self) -> str:
        """``ENGINE/NAME``."""
        return f"{self.engine}/{self.name}"


_ESPEAK_VARIANTS = {
    **{f"us-{variant}": f"en-us+{variant}" for variant in ("m1", "m3", "m7", "f1", "f4")},
    **{f"rp-{variant}": f"en-gb-x-rp+{variant}" for variant in ("m5", "f3", "klatt2")},
}
"""Two accents, pitches from low to high, and one variant whose sound source is another (Klatt's)."""

VOICES: tuple[Voice, ...] = (
    Voice("flite", "awb", "awb", "awb"),
    Voice("flite", "rms", "rms", "rms"),
    Voice("festival", "kal", "kal_diphone", "kal"),
    Voice("festival", "ked", "ked_diphone", "ked"),
    Voice("festival", "slt", "cmu_us_slt_arctic_hts", "slt"),
    Voice("flite", "slt", "slt", "slt"),
    Voice("flite", "kal", "kal16", "kal"),
    *(Voice("espeak-ng", name, argument, name) for name, argument in _ESPEAK_VARIANTS.items()),
)
"""All voices. Of each speaker, the first installed voice is used."""


def installed_voices() -> tuple[Voice, ...]:
    """Return the installed voices, each speaker once.

    Raises:
        SoundError: an installed program does not list its voices.
    """
    names = {engine: listed() for engine, (listed, _) in _ENGINES.items() if is_installed(engine)}
    voices: dict[str, Voice] = {}
    for voice in VOICES:
        if voice.argument in names.get(voice.engine, ()):
            voices.setdefault(voice.speaker, voice)
    return tuple(voices.values())


def speech(voice: Voice, words: Sequence[str]) -> Iterator[tuple[str, Samples, int]]:
    """Yield each word spoken by a voice, its samples [samples], and their rate in Hz.

    Args:
        voice: one that is installed.
        words: words of the letters a to z.

    Raises:
        SoundError: the program fails, or does not speak a word.
    """
    _, say = _ENGINES[voice.engine]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        say(voice, words, folder)
        for word in words:
            path = folder / f"{word}.wav"
            if not path.is_file():
                raise SoundError(f"{voice.engine} has not written {word!r} by the voice {voice.name}")
            yield word, *read_sound(path)


def _flite_voices() -> set[str]:
    # "Voices available: kal awb_time kal16 awb rms slt"
    return set(output_of("flite", ["-lv"]).partition(":")[2].split())


def _say_by_flite(voice: Voice, words: Sequence[str], folder: Path) -> None:
    for word in words:
        output_of("flite", ["-voice", voice.argument, "-t", word, "-o", folder / f"{word}.wav"])


def _espeak_voices() -> set[str]:
    # A version that lacks a variant, or does not apply it to an accent, gives two voices the same sound without an
    # error.
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "word.wav")
        voices: dict[bytes, str] = {}
        for argument in _ESPEAK_VARIANTS.values():
            try:
                output_of("espeak-ng", ["-v", argument, "-w", path, "word"])
            except SoundError:
                continue
            voices.setdefault(path.read_bytes(), argument)
    if not voices:
        raise SoundError("espeak-ng has none of the English voices " + ", ".join(_ESPEAK_VARIANTS.values()))
    return set(voices.values())


def _say_by_espeak(voice: Voice, words: Sequence[str], folder: Path) -> None:
    for word in words:
        output_of("espeak-ng", ["-v", voice.argument, "-w", folder / f"{word}.wav", word])


def _festival_voices() -> set[str]:
    return set(output_of("festival", ["-b", "(print (voice.list))"]).strip().strip("()").split())


def _say_by_festival(voice: Voice, words: Sequence[str], folder: Path) -> None:
    lines = [f"(voice_{voice.argument})"]
    for word in words:
        place = str(folder / f"{word}.wav").replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'(utt.save.wave (utt.synth (Utterance Text "{word}")) "{place}" \'riff)')
    script = folder / "words.scm"
    script.write_text("\n".join(lines) + "\n", "utf-8")
    output_of("festival", ["-b", script])


_Listing = Callable[[], set[str]]
_Saying = Callable[[Voice, Sequence[str], Path], None]

_ENGINES: Mapping[str, tuple[_Listing, _Saying]] = {
    "flite": (_flite_voices, _say_by_flite),
    "festival": (_festival_voices, _say_by_festival),
    "espeak-ng": (_espeak_voices, _say_by_espeak),
}
"""For each program, by name: the function that lists its voices, and the function that speaks words."""


WORDS = (
    *("almond", "balloon", "banana", "basket", "bicycle", "butterfly", "camel", "candle", "chimney", "compass"),
    *("curtain", "diamond", "dolphin", "elephant", "engine", "feather", "forest", "giraffe", "guitar", "hammer"),
    *("honey", "jacket", "kangaroo", "ladder", "lemon", "magnet", "monkey", "mountain", "mushroom", "needle"),
    *("octopus", "oxygen", "paper", "parachute", "pillow", "potato", "rabbit", "river", "shadow", "sugar"),
    *("thunder", "tiger", "umbrella", "volcano", "whistle", "window", "yellow", "zipper"),
)
"""Two or three syllables, stressed on the first, the second or the last; many first sounds and vowels. None sounds like
another, is spelt differently in Britain, or can be read in two ways."""

SPEECH_NEEDS = (
    "Speech by at least two synthesisers is needed: a map fitted to log-mel statistics scores as well as a speech "
    "model where one speaks alone. On Debian: apt-get install flite espeak-ng festival festvox-kallpc16k "
    "festvox-kdlpc16k festvox-us-slt-hts"
)

SPEECH_LICENCE = (
    "Made on this machine by programs under their licences (espeak-ng: GPL-3, flite and festival: like BSD and MIT); "
    "nothing of it is part of this project"
)


@dataclass(frozen=True, kw_only=True)
class SpokenWords(Maker):
    """`WORDS` by all voices of at least two synthesisers.

    Attributes:
        by_voice: the voices are the labels and the words the conditions; else the other way round.
    """

    by_voice: bool = False

    def sources(self) -> dict[str, str]:
        """The conditions ``ENGINE/VOICE``, and the versions of the programs; see `Maker.sources`."""
        voices = self._voices()
        versions = {engine: version_of(engine) for engine in dict.fromkeys(voice.engine for voice in voices)}
        return {voice.condition: versions[voice.engine] for voice in voices}

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``WORD/ENGINE/VOICE/WORD.wav``, or ``ENGINE-VOICE/WORD/WORD.wav``; see `Maker.make`."""
        write_sounds([partial(self._sounds, voice) for voice in self._voices()], folder, progress)

    def _voices(self) -> tuple[Voice, ...]:
        try:
            voices = installed_voices()
        except SoundError as error:
            raise self.missing(str(error)) from error
        engines = sorted({voice.engine for voice in voices})
        if len(engines) < 2:
            here = f"only {engines[0]} is" if engines else "no synthesiser is"
            silent = [name for name in ("festival",) if is_installed(name) and name not in engines]
            without = f" ({silent[0]} has no voice)" if silent else ""
            raise self.missing(f"{here} installed{without}")
        return voices

    def _sounds(self, voice: Voice) -> Iterator[MadeSound]:
        for word, samples, rate in speech(voice, WORDS):
            label, condition = word, voice.condition
            if self.by_voice:
                label, condition = voice.condition.replace("/", "-"), word
            yield MadeSound(label, condition, word, samples, rate)


WORDS_BY_VOICES = SpokenWords(
    name="words",
    meaning=(
        f"{len(WORDS)} English words of two or three syllables (label) by each voice of flite, festival and espeak-ng "
        "that is installed (condition: synthesiser/voice)"
    ),
    needs=SPEECH_NEEDS,
    licence=SPEECH_LICENCE,
)

VOICES_IN_WORDS = SpokenWords(
    name="voices",
    meaning=(
        "Voices of flite, festival and espeak-ng that are installed (label); each says "
        f"{len(WORDS)} English words (condition)"
    ),
    needs=SPEECH_NEEDS,
    licence=SPEECH_LICENCE,
    by_voice=True,
)
