"""Names of users' classes: in a Python file, or an entry point of an installed package. Nothing is run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType

from ..base import ModelError

GROUP = "audio_compositionality.encoders"
"""Entry points of this group are classes of models: NAME = "module:Class"."""

SUFFIX = ".py"


def is_file_spec(spec: str) -> bool:
    """Whether a name stands for a class in a file."""
    return spec.endswith(SUFFIX) or spec.rpartition(":")[0].endswith(SUFFIX)


def split_file_spec(spec: str) -> tuple[Path, str]:
    """Path and class of ``path/to/file.py:ClassName``.

    Raises:
        ModelError: if there is no class, or no such file.
    """
    file, colon, attribute = spec.rpartition(":") if not spec.endswith(SUFFIX) else (spec, "", "")
    path = Path(file).expanduser()
    if not path.is_file():
        raise ModelError(f"'{spec}': there is no file '{file}'")
    if not colon or not attribute:
        raise ModelError(f"'{spec}' names no class of the file; give {path.name}:ClassName")
    return path, attribute


def installed_classes() -> Mapping[str, EntryPoint]:
    """The entry points of installed packages that are models, by name; none of them is imported."""
    return _installed_classes(tuple((place, _changed_at(place)) for place in sys.path))


@lru_cache(maxsize=1)
def _installed_classes(places: tuple[tuple[str, int], ...]) -> Mapping[str, EntryPoint]:
    """Read once for the places that packages lie in: the descriptions of all packages take 7 ms and more, and every
    model that is loaded is looked for among them."""
    return MappingProxyType({point.name: point for point in entry_points(group=GROUP)})


def _changed_at(place: str) -> int:
    """When packages were last added to a folder or taken out of it, in nanoseconds; 0 where there is no such folder."""
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


def describe_installed(point: EntryPoint) -> str:
    """Which distribution an entry point belongs to, and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"
