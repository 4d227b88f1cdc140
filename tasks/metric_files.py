"""Read the measures that a metric's module declares, and derive measures for several parts of a task.

Measures are read from the source file if possible, since the import may take seconds.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from audio_compositionality.metrics import evaluated

from .base import Measure, Number, TaskError

_CONSTANTS = frozenset(("VERSION", "MEASURES", "_CITATION"))


@dataclass(frozen=True)
class MetricDescription:
    """The constants that every metric module defines.

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
    """Return the description of a metric.

    Args:
        module: name of one of the project's metrics, or the path of a file.

    Raises:
        TaskError: there is no such file, or the module lacks one of the constants, or one is not a literal.
    """
    path = Path(evaluated.__file__).with_name(f"{module}.py") if isinstance(module, str) else module
    if not path.is_file():
        raise TaskError(f"there is no metric {path.stem!r}: no file {path}")
    tree = ast.parse(path.read_text("utf-8"))
    values = _assigned(tree)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for alias in node.names:
                if (name := alias.asname or alias.name) in _CONSTANTS:
                    sibling = path.with_name(f"{node.module}.py")
                    values[name] = _assigned(ast.parse(sibling.read_text("utf-8")))[alias.name]
    constants: dict[str, Any] = {}
    for name in _CONSTANTS & set(values):
        try:
            constants[name] = ast.literal_eval(values[name])
        except ValueError as error:
            if not isinstance(module, str):
                raise TaskError(
                    f"{path.name}: {name} must be a literal, so that it can be read without an import"
                ) from error
            try:
                # Fields by `measure`, `share` and so on: evaluated without loading the module, which may import torch.
                constants[name] = eval(compile(ast.Expression(values[name]), path.name, "eval"), vars(evaluated).copy())
            except (NameError, TypeError):
                # By other code: our modules of this kind need NumPy alone (tests/metrics/test_versions.py).
                constants[name] = getattr(import_module(f"audio_compositionality.metrics.{module}"), name)
    missing = _CONSTANTS - set(constants)
    if missing:
        raise TaskError(f"{path.name} lacks {', '.join(sorted(missing))}; a metric of a task must define them")
    return MetricDescription(constants["VERSION"], measures_from(constants["MEASURES"]), constants["_CITATION"])


def _assigned(tree: ast.Module) -> dict[str, Any]:
    """Return the values of a module's names; a name changed later gets the changing statement, not an expression."""
    values: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            values[node.target.id] = node
    return values


def measures_from(descriptions: Mapping[str, Mapping[str, Any]]) -> tuple[Measure, ...]:
    """Return measures from a metric's ``MEASURES``: fields of `Measure` by the measure's name."""
    return tuple(Measure(name=name, **fields) for name, fields in descriptions.items())


@dataclass(frozen=True)
class PartedMeasures:
    """Measures of a metric for each of several parts, and means of some of them over the parts.

    Attributes:
        measures: measures of the metric.
        parts: names of factors or transforms.
        noun: plural noun for the parts.
        averaged: names of the measures that have a mean, the score first; if empty, parts have no columns.
        of_parts: names of the measures that each part has.
        shown: names of the measures whose mean tables show; for single parts they show only the score.
        prefix: prefix of the names of means, if a task has the same measures for other parts too.
    """

    measures: Sequence[Measure]
    parts: Sequence[str]
    noun: str
    averaged: Sequence[str]
    of_parts: Sequence[str]
    shown: Collection[str] = ()
    prefix: str = ""

    @property
    def described(self) -> tuple[Measure, ...]:
        """Return the means, then ``<part>_<measure>``."""
        by_name = {measure.name: measure for measure in self.measures}
        described = []
        for measure in (by_name[name] for name in self.averaged):
            mean = replace(
                measure,
                name=f"{self.prefix}{measure.name}",
                heading=f"{self.prefix.replace('_', ' ')}{measure.heading}",
                meaning=f"{measure.meaning}; mean over the {self.noun} for which it can be computed",
                null=f"{self.prefix}{measure.null}" if measure.null in self.averaged else None,
                column=None if self.prefix else measure.column,
                spread=None,
                shown=measure.name in self.shown,
            )
            described.append(mean)
        for part in self.parts:
            said = part.replace("_", " ")
            for measure in (by_name[name] for name in self.of_parts):
                is_score = measure.name in self.averaged[:1]
                has_column = measure.column and self.averaged and not self.prefix
                of_part = replace(
                    measure,
                    name=f"{part}_{measure.name}",
                    heading=said if is_score and not self.prefix else f"{said} {measure.heading}",
                    meaning=f"{measure.meaning}; {said}",
                    null=f"{part}_{measure.null}" if measure.null in self.of_parts else None,
                    column=f"{part}_{measure.column}" if has_column else None,
                    spread=f"{part}_{measure.spread}" if measure.spread in self.of_parts else None,
                    shown=is_score and not self.prefix and bool(self.shown),
                )
                described.append(of_part)
        return tuple(described)

    def values(self, results: Mapping[str, Mapping[str, Any]]) -> dict[str, Number]:
        """Return the measures from the metric's results for each part.

        A measure that a part lacks is None; means are over the other parts. Results of unknown parts are ignored.
        """
        values: dict[str, Number] = {}
        for name in self.averaged:
            of_parts = [results.get(part, {}).get(name) for part in self.parts]
            stated = [value for value in of_parts if value is not None]
            values[f"{self.prefix}{name}"] = float(np.mean(stated)) if stated else None
        for part in self.parts:
            values |= {f"{part}_{name}": results.get(part, {}).get(name) for name in self.of_parts}
        return values
