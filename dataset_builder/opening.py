"""Open data: rendered on the fly from a preset, read from a built folder or the Hub, or from what others published."""

from __future__ import annotations

import os
import re
from pathlib import Path

from audio_compositionality.support.text import nearest

from .data import Data, DatasetError
from .rendered import RenderedData, is_preset, preset_names, reopened_preset

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
"""What an id of the Hub looks like."""


def open_data(source: str | Path | RenderedData, *, revision: str | None = None) -> Data:
    """Open data.

    Args:
        source: the name of a preset (``mini``, ``full``, and after the paper's letter ``paper-mini``, ``paper-full``),
            rendered on the fly with nothing on disk, or one with changes, ``mini with seed=7``; a folder written by
            `build_dataset`; the Hub id of such a data set, or of the authors' published data; or data that are rendered
            already. A folder named like a preset is opened as ``./mini``. Or ``NAME:PATH``, a benchmark that others
            published, as a user has it; see `readers`.
        revision: branch, tag or commit of a Hub id.

    Raises:
        DatasetError: no such preset, folder or data set, or what is there is not data of any recipe.
        InputError: a preset has no such setting, or not such a value.
    """
    if isinstance(source, RenderedData):
        return source
    from .sounds.published import list_readers, reader_of

    name = str(source)
    published = reader_of(name)
    if published is not None:
        reader, path = published
        if not path:
            raise DatasetError(f"{name!r} names no path; {reader.name}:PATH is {reader.meaning}")
        # A shell leaves what stands behind a colon as it is.
        return reader.open(os.path.expanduser(path))
    presets = preset_names()
    if isinstance(source, str) and is_preset(source):
        return reopened_preset(source)
    if Path(name).is_dir() or HUB_ID.fullmatch(name):
        from .stored import StoredData

        return StoredData(name, revision=revision)
    benchmarks = ", ".join(f"{reader}:PATH" for reader in list_readers())
    raise DatasetError(
        f"no data {name!r}: not a preset, not a folder, not a Hub id (ORG/NAME), not a benchmark that others published "
        f"({benchmarks}); {nearest(name, presets)}"
    )
