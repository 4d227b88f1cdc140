"""What a metric's module says of itself, read from its file where that can be: importing it may take seconds."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .base import Measure, TaskError

_METRICS = "audio_compositionality.metrics"

_CONSTANTS = frozenset(("VERSION", "MEASURES", "_CITATION"))


@dataclass(frozen=True)
class MetricDescription:
    """The constants that every metric module has.

    Attributes:
        version: its ``VERSION``.
        measures: its ``MEASURES``.
        citation: its ``_CITATION``, BibTeX.
    """

    version: int
    measures: tuple[Measure, ...]
    citation: str


@cache
def describe_metric(module: str | Path) -> MetricDescription:
    """The description of a metric.

    Args:
        module: name of one of the project's metrics, or the path of a file.

    Raises:
        TaskError: there is no such file; the module lacks one of the constants, or one is no literal.
    """
    path = _location(module) if isinstance(module, str) else module
    if not path.is_file():
        raise TaskError(f"there is no metric {path.stem!r}: no file {path}")
    values = _values(path)
    constants: dict[str, Any] = {}
    for name, value in values.items():
        try:
            constants[name] = ast.literal_eval(value)
        except ValueError as error:
            if not isinstance(module, str):
                raise TaskError(f"{path.name}: {name} must be a literal, so that it can be read") from error
            # Made by code: such a module of ours needs NumPy alone, as tests/metrics/test_versions.py has it.
            constants[name] = getattr(import_module(f"{_METRICS}.{module}"), name)
    missing = _CONSTANTS - set(constants)
    if missing:
        raise TaskError(f"{path.name} lacks {', '.join(sorted(missing))}, which a metric of a task has")
    return MetricDescription(constants["VERSION"], measures_from(constants["MEASURES"]), constants["_CITATION"])


def _values(path: Path) -> dict[str, ast.AST]:
    """The values of a module's constants, also of those that it takes from a sibling."""
    tree = ast.parse(path.read_text("utf-8"))
    values = _assigned(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                if (name := alias.asname or alias.name) in _CONSTANTS:
                    sibling = path.with_name(f"{node.module}.py")
                    values[name] = _assigned(ast.parse(sibling.read_text("utf-8")))[alias.name]
    return {name: value for name, value in values.items() if name in _CONSTANTS}


def _assigned(tree: ast.Module) -> dict[str, ast.AST]:
    """The values of a module's names; of one that is changed later the changing statement, which is no literal."""
    values: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            values[node.target.id] = node
    return values


def _location(name: str) -> Path:
    package = find_spec(_METRICS)
    if package is None or not package.submodule_search_locations:
        raise TaskError("the package has no folder of metrics: install it again")
    return Path(package.submodule_search_locations[0]) / f"{name}.py"


def measures_from(descriptions: Mapping[str, Mapping[str, Any]]) -> tuple[Measure, ...]:
    """Measures from a metric's ``MEASURES``: fields of `Measure` by the measure's name."""
    return tuple(Measure(name=name, **fields) for name, fields in descriptions.items())
