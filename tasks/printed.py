"""Figures that somebody printed of the same task on other data: reference marks, which no model is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml


@dataclass(frozen=True)
class Printed:
    """What was printed.

    Attributes:
        source: where.
        beside: why they are no more than reference marks; one sentence.
        remarks: on a measure, by its name; a sentence each.
        figures: by the name of a model as it was printed, and the name of a measure: its value here, not in percent.
    """

    source: str
    beside: str
    remarks: Mapping[str, str]
    figures: Mapping[str, Mapping[str, float]]

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures of which something is printed."""
        return tuple(dict.fromkeys(name for of_model in self.figures.values() for name in of_model))

    def of_measure(self, name: str) -> tuple[float, ...]:
        """What is printed of a measure, in the order of the models."""
        return tuple(of_model[name] for of_model in self.figures.values() if name in of_model)

    @property
    def sentence(self) -> str:
        """Where the figures are from, and what they are not, for captions and legends."""
        return " ".join((f"From {self.source}.", self.beside, *self.remarks.values()))


@cache
def printed_figures(name: str) -> Printed:
    """The figures of a file ``NAME_printed.yaml`` beside the tasks, which has them in percent."""
    content: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(f"{name}_printed.yaml").read_text("utf-8"))
    figures = {
        model: {measure: round(percent / 100, 6) for measure, percent in of_model.items()}
        for model, of_model in content["figures"].items()
    }
    return Printed(content["source"], content["beside"], content["remarks"], figures)
