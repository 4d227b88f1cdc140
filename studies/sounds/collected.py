"""Recordings of people in Debian's packages: the package, file, word and speaker of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from string import ascii_lowercase

from .maker import INSTALLED, MadeSound, Maker, data_folder, data_folders, digest_of, read_sound, write_sounds

LEAST_LABELS = 12
"""Classes and contexts of a block."""


@dataclass(frozen=True)
class Speaker:
    """The recordings of one person.

    Attributes:
        name: the condition.
        package: the Debian package.
        folder: below ``/usr/share``.
        files: label of each file, by its path in the folder.
    """

    name: str
    package: str
    folder: str
    files: Mapping[str, str]

    def recordings(self) -> dict[str, Path]:
        """The existing files, by their labels."""
        folder = data_folder(self.folder)
        if folder is None:
            return {}
        return {label: folder / file for file, label in self.files.items() if (folder / file).is_file()}


@dataclass(frozen=True, kw_only=True)
class CollectedWords(Maker):
    """Words that two or more people have recorded.

    Attributes:
        speakers: people whose recordings can be installed.
    """

    speakers: tuple[Speaker, ...]

    def sources(self) -> dict[str, str]:
        """The speakers (conditions), and the digests of their files; see `Maker.sources`."""
        return {name: digest_of(paths.values()) for name, paths in self._shared().items()}

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``WORD/SPEAKER/WORD.wav``; see `Maker.make`."""
        jobs = [partial(_sounds, name, recordings) for name, recordings in self._shared().items()]
        write_sounds(jobs, folder, progress)

    def _shared(self) -> dict[str, dict[str, Path]]:
        """Return the recordings by speaker and label, for labels that at least two speakers have."""
        recordings = {speaker.name: speaker.recordings() for speaker in self.speakers}
        counts = Counter(label for labels in recordings.values() for label in labels)
        shared = {
            name: {label: path for label, path in labels.items() if counts[label] > 1}
            for name, labels in recordings.items()
        }
        labels = {label for paths in shared.values() for label in paths}
        if len(labels) < LEAST_LABELS:
            raise self.missing(
                f"{len(labels)} words by two or more speakers are installed; at least {LEAST_LABELS} are needed"
            )
        return {name: paths for name, paths in shared.items() if paths}


def _sounds(speaker: str, recordings: Mapping[str, Path]) -> Iterator[MadeSound]:
    for label, path in recordings.items():
        yield MadeSound(label, speaker, label, *read_sound(path))


def installing(packages: str) -> str:
    """Explain how to install packages of Debian, or how to unpack them without root access."""
    return (
        f"On Debian: apt-get install --no-install-recommends {packages}; or, of the recordings alone, "
        f"`apt-get download {packages}`, `dpkg -x` of each into one folder, and its usr/share in XDG_DATA_DIRS"
    )


_SUITS = {"b": "bamboo", "c": "character", "s": "circle"}
_CALLS = {
    **{f"{letter}{number}.ogg": f"{suit}-{number}" for letter, suit in _SUITS.items() for number in range(1, 10)},
    **{"we.ogg": "east", "ws.ogg": "south", "ww.ogg": "west", "wn.ogg": "north"},
    **{"db.ogg": "blue-dragon", "dg.ogg": "green-dragon", "dr.ogg": "red-dragon"},
    **{f"{call}.ogg": call for call in ("chow", "pung", "kong", "mahjongg")},
    **{"nochoice.ogg": "no-choice", "originalcall.ogg": "original-call", "dangerousgame.ogg": "dangerous-game"},
    **{"violatesoriginalcall.ogg": "violates-original-call"},
}


def kajongg_speakers(folder: str, omitted: Collection[str] = ()) -> tuple[Speaker, ...]:
    """Return the four people who recorded the calls of the game kajongg in a language, without the `omitted` labels."""
    files = {file: label for file, label in _CALLS.items() if label not in omitted}
    return tuple(
        Speaker(f"kajongg-{name}", "kajongg", f"{folder}/{name}", files)
        for name in ("female1", "female2", "male1", "male2")
    )


_ENGLISH_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_TENS = {30: "thirty", 40: "forty", 50: "fifty"}
_ENGLISH = {**dict(enumerate(_ENGLISH_NUMBERS)), **_TENS}

_LETTERS = ascii_lowercase.replace("z", "")
"""Without z, which has two pronunciations."""

_SYLLABLES = tuple(
    ["car", "dog", "fix", "gas", "gem", "hot", "jet", "key", "me", "my", "no", "pet", "saw", "say", "sit", "sky"]
)

_ASTERISK = {
    **{f"digits/{number}.wav": name for number, name in _ENGLISH.items()},
    **{f"letters/{letter}.wav": f"letter-{letter}" for letter in _LETTERS},
}


def _klettres(folder: str, letters: str) -> Speaker:
    files = {f"alpha/{letter}.ogg": f"letter-{letter.lower()}" for letter in letters}
    syllables = {f"syllab/{word}.ogg": f"word-{word}" for word in _SYLLABLES}
    return Speaker(f"klettres-{folder}", "klettres-data", f"klettres/{folder}", files | syllables)


SPOKEN = CollectedWords(
    name="spoken",
    meaning=(
        "English words (label) by people (condition): calls of a mahjong game by four, numbers by three, letters by "
        "three, short words by two"
    ),
    needs=installing("kajongg klettres-data asterisk-core-sounds-en-wav saytime csmash-data")
    + ". kajongg alone has 42 words by four speakers",
    licence=(
        "Recordings of others, which this project does not redistribute: kajongg, klettres-data and csmash-data "
        "GPL-2+, saytime GPL (David C Dawson), asterisk-core-sounds-en CC-BY-SA-3.0 (Allison Smith)"
    ),
    speakers=(
        *kajongg_speakers("kajongg/voices"),
        Speaker("allison", "asterisk-core-sounds-en-wav", "asterisk/sounds/en_US_f_Allison", _ASTERISK),
        Speaker("dawson", "saytime", "saytime", {f"{number}.au": name for number, name in _ENGLISH.items()}),
        Speaker("csmash", "csmash-data", "games/csmash/wav", {f"{name}.wav": name for name in _ENGLISH.values()}),
        _klettres("en", _LETTERS.upper()),
        _klettres("en_GB", _LETTERS),
    ),
)


_SAID_IN_TWO_WAYS = ("east", "south", "west", "north", "blue-dragon")
"""Two say Ost and two Ostwind; one says weißer Drache where three say blauer."""

SPOKEN_GERMAN = CollectedWords(
    name="spoken-german",
    meaning="German calls of a mahjong game (label, named in English) by four people (condition)",
    needs=installing("kajongg"),
    licence="Recordings of others, which this project does not redistribute: kajongg GPL-2+ (Wolfgang Rohdewald)",
    speakers=kajongg_speakers("kajongg/voices/de", _SAID_IN_TWO_WAYS),
)


_NUMBERS = (*range(21), *range(30, 100, 10))
_ITALIAN_NUMBERS = (
    *_NUMBERS,
    *(tens + unit for tens in range(20, 100, 10) for unit in (1, 8) if tens + unit != 21),
)
_ORDINALS = range(1, 21)

_NAMES = {
    **{f"day-{number}": f"weekday-{number}" for number in range(7)},
    **{f"mon-{number}": f"month-{number + 1}" for number in range(12)},
    **{name: name for name in ("hundred", "thousand", "million", "minus", "dollars", "today", "tomorrow", "yesterday")},
}

_LANGUAGES = {
    "it": {
        **{str(number): f"number-{number}" for number in (*_ITALIAN_NUMBERS, 21)},
        **{f"h-{number}": f"ordinal-{number}" for number in (*_ORDINALS, *range(30, 100, 10))},
        **{f"h-{name}": f"ordinal-{name}" for name in ("hundred", "thousand", "million", "billion")},
        **{name: name for name in ("thousands", "euros", "hours", "minutes")},
        **_NAMES,
    },
    "fr": {
        **{str(number): f"number-{number}" for number in _NUMBERS},
        **{f"h-{number}": f"ordinal-{number}" for number in (*_ORDINALS, 30)},
        **_NAMES,
    },
    "es": {
        **{str(number): f"number-{number}" for number in (*_NUMBERS, *range(21, 30))},
        **{f"h-{number}": f"ordinal-{number}" for number in _ORDINALS},
        **_NAMES,
    },
}
"""Names of files, without suffix, and their words; words that two people say in two ways are left out."""


def _speaker(name: str, language: str, package: str, folder: str, suffix: str) -> Speaker:
    words = {f"digits/{file}.{suffix}": f"{language}-{word}" for file, word in _LANGUAGES[language].items()}
    return Speaker(name, package, f"asterisk/sounds/{folder}", words)


PROMPTS = CollectedWords(
    name="prompts",
    meaning=(
        "Italian, French and Spanish numbers, ordinals, days, months and a few more words (label) by two people a "
        "language (condition), 8 kHz"
    ),
    needs=installing(
        "asterisk-core-sounds-it-wav asterisk-prompt-it-menardi-wav asterisk-core-sounds-fr-wav "
        "asterisk-prompt-fr-armelle asterisk-core-sounds-es-wav asterisk-prompt-es-co"
    ),
    licence=(
        "Recordings of others, which this project does not redistribute: asterisk-core-sounds CC-BY-SA-3.0 (Allison "
        "Smith, June Wallack, Carlo Flora), asterisk-prompt-it-menardi CC-BY-SA-3.0 (Marco Menardi, Paola "
        "Dal Zot), asterisk-prompt-fr-armelle GPL-2+ and BSD (Armelle Desjardins), asterisk-prompt-es-co GPL-2 (July "
        "E. Jiménez)"
    ),
    speakers=(
        _speaker("carlo", "it", "asterisk-core-sounds-it-wav", "it_IT_m_Carlo", "wav"),
        _speaker("menardi", "it", "asterisk-prompt-it-menardi-wav", "it_IT_f_Menardi", "wav"),
        _speaker("june", "fr", "asterisk-core-sounds-fr-wav", "fr_CA_f_June", "wav"),
        _speaker("armelle", "fr", "asterisk-prompt-fr-armelle", "fr", "gsm"),
        _speaker("allison", "es", "asterisk-core-sounds-es-wav", "es_MX_f_Allison", "wav"),
        _speaker("colombia", "es", "asterisk-prompt-es-co", "es", "gsm"),
    ),
)


CREATURES: Mapping[str, list[str]] = INSTALLED["creatures"]
"""Files of each kind, without their suffixes."""

_FOLDER = "games/wesnoth/*/data/core/sounds"


@dataclass(frozen=True, kw_only=True)
class Creatures(Maker):
    """The kinds of `CREATURES` with two installed recordings or more."""

    def sources(self) -> dict[str, str]:
        """Files, as ``KIND/NAME``, and their digests; see `Maker.sources`."""
        recordings = self._recordings()
        return {f"{kind}/{path.stem}": digest_of([path]) for kind, paths in recordings.items() for path in paths}

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``KIND/NAME.wav``; see `Maker.make`."""
        jobs = [partial(_creature_sounds, kind, paths) for kind, paths in self._recordings().items()]
        write_sounds(jobs, folder, progress)

    def _recordings(self) -> dict[str, list[Path]]:
        folders = (path for folder in data_folders() for path in sorted(folder.glob(_FOLDER), reverse=True))
        sounds = {path.stem: path for folder in list(folders)[:1] for path in sorted(folder.iterdir())}
        recordings = {kind: [sounds[name] for name in names if name in sounds] for kind, names in CREATURES.items()}
        recordings = {kind: paths for kind, paths in recordings.items() if len(paths) > 1}
        if len(recordings) < LEAST_LABELS:
            raise self.missing(
                f"{len(recordings)} kinds of creatures are installed; at least {LEAST_LABELS} are needed"
            )
        return recordings


def _creature_sounds(kind: str, paths: Sequence[Path]) -> Iterator[MadeSound]:
    for path in paths:
        yield MadeSound(kind, "", path.stem, *read_sound(path))


CREATURE_CALLS = Creatures(
    name="creatures",
    meaning=f"Calls of {len(CREATURES)} creatures of a game (label), each recording a condition of its own",
    needs=installing("wesnoth-1.16-data") + ". Newer releases have wesnoth-1.18-data",
    licence="Recordings of others, which this project does not redistribute: The Battle for Wesnoth, GPL-2+",
)
