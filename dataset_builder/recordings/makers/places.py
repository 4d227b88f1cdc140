"""Where data files of Debian's packages lie: below the folders of XDG_DATA_DIRS, by default /usr/share."""

from __future__ import annotations

import os
from pathlib import Path

_DEFAULT = "/usr/local/share:/usr/share"


def data_folders() -> tuple[Path, ...]:
    """The folders that hold programs' data, the first that is meant first; whoever may not install unpacks a package
    anywhere and names its ``usr/share`` in XDG_DATA_DIRS.
    """
    names = (os.environ.get("XDG_DATA_DIRS") or _DEFAULT).split(os.pathsep)
    return tuple(dict.fromkeys(Path(name) for name in names if Path(name).is_absolute()))


def data_folder(place: str) -> Path | None:
    """The first folder of a place below them that exists."""
    return next((folder / place for folder in data_folders() if (folder / place).is_dir()), None)
