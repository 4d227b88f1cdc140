"""Words that synthesisers say: the list of them, and what `words` and `voices` have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..sound_files import SoundError
from .base import Maker
from .programs import is_installed, version_of
from .sounds import MadeSound, write_sounds
from .speech import Voice, installed_voices, speech

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
