"""The folder of sounds that are made of what is installed: made once, and never by halves.

Beside the sounds stand ``sounds.yaml``, which tells readers their domain, and ``digests.json``: what they were made of,
and the digest of every file.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from audio_compositionality.dataset_builder.sounds.folder import SETTINGS
from audio_compositionality.dataset_builder.sounds.recordings import SoundError, sound_files
from audio_compositionality.support.checked_files import DamagedError, digests_of, parsed_sealed_json, sealed_json
from audio_compositionality.support.files import partial_path, remove_partial_files, write_whole

from .maker import Maker

DIGESTS = "digests.json"


def make_folder(maker: Maker, folder: Path, *, progress: bool = True) -> bool:
    """Make a maker's sounds in a folder, which gets its name when all are written: a run that was stopped leaves
    nothing that looks finished.

    Sounds that are there, whole and of the same maker and sources (another version of flite is another source), stay.
    Where one was changed or is missing, or the sources are others, all are made again, and a warning says so.

    Args:
        maker: of the sounds.
        folder: that is not there, is empty, or holds sounds that were made before.
        progress: show a progress bar.

    Returns:
        Whether they were made; False where they were there.

    Raises:
        SoundError: too little is installed, nothing was made, or the folder holds something else, which stays.
    """
    made_of = {"maker": maker.name, "version": maker.version, "sources": dict(maker.sources())}
    if folder.is_dir() and any(folder.iterdir()):
        fault = _fault(folder, made_of)
        if fault is None:
            return False
        warnings.warn(f"{fault}; all sounds of {maker.name} are made again", stacklevel=2)
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_partial_files(folder.parent)
    partial = partial_path(folder)
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        maker.make(partial, progress)
        write_whole(partial / SETTINGS, _settings(maker))
        files = digests_of(partial, [partial / SETTINGS, *sound_files(partial)])
        write_whole(partial / DIGESTS, sealed_json({**made_of, "files": files}))
        if folder.is_dir() and any(folder.iterdir()) and _fault(folder, made_of) is not None:
            shutil.rmtree(folder)
        try:
            partial.rename(folder)
        except OSError:
            # Another process was first; the same sources give the same bits.
            if _fault(folder, made_of) is not None:
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return True


def _settings(maker: Maker) -> str:
    return f"# {maker.name}: {maker.meaning}.\n# {maker.licence}\n{yaml.safe_dump({'domain': maker.name})}"


def _fault(folder: Path, made_of: Mapping[str, Any]) -> str | None:
    """Why the sounds of a folder have to be made again; None where they are those that would be made.

    Raises:
        SoundError: there is something in the folder that was not made.
    """
    try:
        stated = parsed_sealed_json((folder / DIGESTS).read_bytes(), folder / DIGESTS)
    except (OSError, DamagedError) as error:
        raise SoundError(
            f"{str(folder)!r} holds something else, or its {DIGESTS} is damaged; give a folder that is not there"
        ) from error
    files = stated.pop("files")
    present = digests_of(folder, [path for path in folder.rglob("*") if path.is_file() and path.name != DIGESTS])
    added = sorted(present.keys() - files.keys())
    if added:
        raise SoundError(f"{str(folder / added[0])!r} was not made with the others; move it, or give another folder")
    changed = sorted(name for name in files if files[name] != present.get(name))
    if changed:
        what = "is damaged" if changed[0] in present else "is not there"
        return f"{folder / changed[0]} {what}"
    return None if stated == made_of else f"{folder} was made of other sources"
