"""What a number of a task has to be above: the larger of its null and of the floor that a model itself has."""

from __future__ import annotations

from collections.abc import Mapping

from .base import Measure, Number, TaskInfo


def nulls_of(measure: Measure, info: TaskInfo, values: Mapping[str, Number]) -> list[tuple[Measure, float]]:
    """The null and the floor of a measure with their values, the larger first: that is what it has to be above.

    A floor may be above the null as well as below: one-dimensional embeddings of either sign know nothing, and have a
    group of nearly one half, as their floor is, where independent similarities have 1/6.

    Args:
        measure: of the task.
        info: of the task.
        values: all measures of one result; what is not stated is left out.
    """
    named = [info.measure(name) for name in (measure.null, measure.floor) if name is not None]
    stated = [(null, float(value)) for null in named if (value := values.get(null.name)) is not None]
    return sorted(stated, key=lambda pair: -pair[1])


def least_of(measure: Measure, info: TaskInfo, values: Mapping[str, Number]) -> tuple[Measure, float] | None:
    """What a measure has to be above, and its value: the first of `nulls_of`; None where none is stated."""
    return next(iter(nulls_of(measure, info, values)), None)
