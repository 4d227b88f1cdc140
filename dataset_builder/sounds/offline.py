"""The folder of sounds that are made of what is installed: once, then it is read like any other.

Beside the sounds stand their digests: where one was changed or is missing, all are made again, and a line says so.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

from audio_compositionality.support.cache import cache_folder
from audio_compositionality.support.checked_files import DamagedError, check_digests, write_digests
from audio_compositionality.support.files import partial_path, remove_partial_files, safe_file_name, sha256_of
from audio_compositionality.support.text import first_line

from .makers.base import Maker
from .sound_files import SoundError, sound_files

_DIGESTS = "digests.json"


def made_folder(maker: Maker, *, progress: bool = True) -> Path:
    """Where a maker's recordings lie: in the user's cache, made there first where they are not.

    They are made in a folder beside it that gets its name when all are written: a run that was stopped leaves nothing
    that looks finished. Another version of the maker, other installed sources, or another version of one of them (a
    newer flite) have another folder.

    Raises:
        RecordingError: too little is installed, or nothing was made.
    """
    sources = sha256_of(json.dumps(list(maker.sources().items())).encode())[:12]
    folder = cache_folder() / "recordings" / safe_file_name(f"{maker.name}-{maker.version}-{sources}")
    if folder.is_dir():
        try:
            check_digests(folder / _DIGESTS, sound_files(folder))
            return folder
        except (DamagedError, SoundError, OSError) as error:
            warnings.warn(f"{first_line(error)}; all sounds of {maker.name} are made again", stacklevel=2)
            shutil.rmtree(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_partial_files(folder.parent)
    partial = partial_path(folder)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        maker.make(partial, progress)
        write_digests(partial / _DIGESTS, sound_files(partial))
        try:
            partial.rename(folder)
        except OSError:
            # Another process was first; the same sources give the same bits.
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder
