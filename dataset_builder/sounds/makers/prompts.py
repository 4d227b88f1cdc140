"""Italian, French and Spanish words that people have recorded, two people a language."""

from __future__ import annotations

from .collected import CollectedWords, Speaker, installing

_NUMBERS = (*range(21), *range(30, 100, 10))
_ITALIAN_NUMBERS = (*_NUMBERS, *(tens + unit for tens in range(20, 100, 10) for unit in (1, 8) if tens + unit != 21))
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
"""Names of files, without suffix, and the words in them; left out is what two people say in two ways."""


def _speaker(name: str, language: str, package: str, folder: str, suffix: str) -> Speaker:
    words = {f"digits/{file}.{suffix}": f"{language}-{word}" for file, word in _LANGUAGES[language].items()}
    return Speaker(name, package, f"asterisk/sounds/{folder}", words)


MAKER = CollectedWords(
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
