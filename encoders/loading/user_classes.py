"""Names of users' classes: in a Python file, or an entry point of an installed package. Nothing is run."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

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


def installed_classes() -> dict[str, EntryPoint]:
    """The entry points of installed packages that are models, by name; none of them is imported."""
    return {point.name: point for point in entry_points(group=GROUP)}


def describe_installed(point: EntryPoint) -> str:
    """Which distribution an entry point belongs to, and its version."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else "an unknown distribution"
