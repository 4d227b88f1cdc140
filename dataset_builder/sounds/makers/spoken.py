"""English words that people have recorded."""

from __future__ import annotations

from string import ascii_lowercase

from .collected import CollectedWords, Speaker, installing, kajongg_speakers

_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_TENS = {30: "thirty", 40: "forty", 50: "fifty"}
_NAMES = {**dict(enumerate(_NUMBERS)), **_TENS}

_LETTERS = ascii_lowercase.replace("z", "")
"""Not z, which is said in two ways."""

_SYLLABLES = (
    "car",
    "dog",
    "fix",
    "gas",
    "gem",
    "hot",
    "jet",
    "key",
    "me",
    "my",
    "no",
    "pet",
    "saw",
    "say",
    "sit",
    "sky",
)

_ASTERISK = {
    **{f"digits/{number}.wav": name for number, name in _NAMES.items()},
    **{f"letters/{letter}.wav": f"letter-{letter}" for letter in _LETTERS},
}


def _klettres(folder: str, letters: str) -> Speaker:
    files = {f"alpha/{letter}.ogg": f"letter-{letter.lower()}" for letter in letters}
    syllables = {f"syllab/{word}.ogg": f"word-{word}" for word in _SYLLABLES}
    return Speaker(f"klettres-{folder}", "klettres-data", f"klettres/{folder}", files | syllables)


MAKER = CollectedWords(
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
        Speaker("dawson", "saytime", "saytime", {f"{number}.au": name for number, name in _NAMES.items()}),
        Speaker("csmash", "csmash-data", "games/csmash/wav", {f"{name}.wav": name for name in _NAMES.values()}),
        _klettres("en", _LETTERS.upper()),
        _klettres("en_GB", _LETTERS),
    ),
)
