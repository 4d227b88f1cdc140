"""Where data files of Debian's packages lie, below the folders of XDG_DATA_DIRS (/usr/share), and what they hold."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from audio_compositionality.support.files import sha256_of, sha256_of_file

from ..sound_files import SoundError

_DEFAULT = "/usr/local/share:/usr/share"


def data_folders() -> tuple[Path, ...]:
    """The folders that hold programs' data, the first that is meant first; whoever may not install unpacks a package
    anywhere and names its ``usr/share`` in XDG_DATA_DIRS.
    """
    names = (os.environ.get("XDG_DATA_DIRS") or _DEFAULT).split(os.pathsep)
    return tuple(dict.fromkeys(Path(name) for name in names if Path(name).is_absolute()))


def digest_of(paths: Iterable[Path]) -> str:
    """SHA-256 over what some files hold, in their order.

    Raises:
        RecordingError: one cannot be read.
    """
    try:
        return sha256_of("\n".join(map(sha256_of_file, paths)).encode())
    except OSError as error:
        raise SoundError(f"{error.filename!r} cannot be read: {error.strerror}") from error


def data_folder(place: str) -> Path | None:
    """The first folder of a place below them that exists."""
    return next((folder / place for folder in data_folders() if (folder / place).is_dir()), None)
