"""Folders of sounds made by programs and packages of this machine: ``python -m studies.sounds NAME --out FOLDER``.

Each file has makers of one kind. Their sounds are read like any folder of recordings and are not part of this project.
"""

from __future__ import annotations

from collections.abc import Mapping

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from .collected import CREATURE_CALLS, PROMPTS, SPOKEN, SPOKEN_GERMAN
from .drums import DRUMS
from .instruments import INSTRUMENTS
from .maker import Maker
from .speech import VOICES_IN_WORDS, WORDS_BY_VOICES

MAKERS: Mapping[str, Maker] = {
    maker.name: maker
    for maker in (
        WORDS_BY_VOICES,
        VOICES_IN_WORDS,
        INSTRUMENTS,
        DRUMS,
        CREATURE_CALLS,
        SPOKEN,
        SPOKEN_GERMAN,
        PROMPTS,
    )
}
"""All makers by their names."""


def load_maker(name: str) -> Maker:
    """Return the maker with a name.

    Raises:
        InputError: no maker has this name.
    """
    if name not in MAKERS:
        raise InputError(f"unknown sounds {name!r}; {nearest(name, MAKERS)}")
    return MAKERS[name]
