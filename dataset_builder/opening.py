"""Open data: rendered on the fly from a preset, or read from a built folder or the Hub."""

from __future__ import annotations

import re
from pathlib import Path

from audio_compositionality.support.text import nearest

from .data import Data, DatasetError
from .rendered import RenderedData, preset_names, rendered_preset

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
"""What an id of the Hub looks like."""


def open_data(source: str | Path | RenderedData, *, revision: str | None = None) -> Data:
    """Open data.

    Args:
        source: the name of a preset (``mini``, ``full``, and after the paper's letter ``paper-mini``, ``paper-full``),
            rendered on the fly with nothing on disk; a folder written by `build_dataset`; the Hub id of such a data
            set, or of the authors' published data; or data that are rendered already. A folder named like a preset is
            opened as ``./mini``.
        revision: branch, tag or commit of a Hub id.

    Raises:
        DatasetError: no such preset, folder or data set, or what is there is not data of any recipe.
    """
    if isinstance(source, RenderedData):
        return source
    name = str(source)
    presets = preset_names()
    if isinstance(source, str) and source in presets:
        return rendered_preset(source)
    if Path(name).is_dir() or HUB_ID.fullmatch(name):
        from .stored import StoredData

        return StoredData(name, revision=revision)
    raise DatasetError(
        f"no data {name!r}: not a preset, not a folder, not a Hub id (ORG/NAME); {nearest(name, presets)}"
    )
