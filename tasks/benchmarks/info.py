"""Benchmarks of several tasks, and the material of their figures; one with figures is a module beside this."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from audio_compositionality.support.discovery import Registry

from ..base import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class DrawnModel:
    """A model in a figure of a benchmark, with its measures in all tasks.

    Attributes:
        label: its name for people.
        kind: the kind of evidence that its scores are.
        measures: its measures by their names, by the name of the task; tasks without a result are left out.
        is_reference: whether it is a baseline of plain descriptors of a sound, or of its level alone.
        twins: places of its untrained twins among the drawn models.
        colour, marker: of its kind in all figures.
    """

    label: str
    kind: Literal["trained", "untrained", "baseline", "control"]
    measures: Mapping[str, Mapping[str, Number]]
    is_reference: bool = False
    twins: tuple[int, ...] = ()
    colour: str = "black"
    marker: str = "o"

    def value(self, task: str, measure: str) -> float | None:
        """A measure of a task; None where there is none."""
        value = self.measures.get(task, {}).get(measure)
        return None if value is None else float(value)


class Key(Protocol):
    """Numbers from 1 and the names that they stand for, at the foot of a figure."""

    @property
    def height(self) -> float:
        """Inches."""

    def draw(self, figure: Figure) -> None:
        """Write it."""


class Sheet(Protocol):
    """The sheet that a figure is drawn on: the sizes of paper, and how names are written. Lengths are in inches.

    Attributes:
        column, page: widths of a column and of a page of text; a figure has one of them.
        line: distance of two lines of the smallest text.
    """

    @property
    def column(self) -> float: ...  # noqa: D102

    @property
    def page(self) -> float: ...  # noqa: D102

    @property
    def line(self) -> float: ...  # noqa: D102

    def text_width(self, text: str) -> float:
        """The width of a line of the smallest text."""
        ...

    def title(self, axes: Axes, name: str, width: float) -> None:
        """Write a name above a panel, on at most two lines of this width."""
        ...

    def number(self, axes: Axes, x: Sequence[float], y: Sequence[float], numbers: Sequence[int]) -> None:
        """Write numbers near points, so that they cover no point and no other number; the axes have their limits."""
        ...

    def key(self, names: Sequence[str], width: float) -> Key:
        """A key of numbers from 1, for the foot of a figure of this width."""
        ...


@dataclass(frozen=True)
class BenchmarkDrawing:
    """A figure of a benchmark, of several of its tasks.

    Attributes:
        name: of its files.
        title: caption, what it shows and how it is read.
        alternative: what it shows, for people who cannot see it.
        draw: draws it from models; raises TaskError with the reason where these do not suffice.
        finding: the result for these models, in sentences behind the caption; empty for none.
    """

    name: str
    title: str
    alternative: str
    draw: Callable[[Sequence[DrawnModel], Sheet], Figure]
    finding: Callable[[Sequence[DrawnModel]], str] = lambda models: ""


@dataclass(frozen=True)
class BenchmarkInfo:
    """A benchmark: a module of this folder, or of an installed package, has one by the name ``BENCHMARK``.

    Attributes:
        name: as in `TaskInfo.benchmark` of its tasks.
        title: the name for people.
        question: what it asks of a model, one sentence.
        drawings: its figures, beside those of its tasks.
    """

    name: str
    title: str
    question: str
    drawings: tuple[BenchmarkDrawing, ...] = field(default=())


_PLAIN = (
    BenchmarkInfo("coat", "Composition of scenes", "Is the embedding of a scene made of those of its sources?"),
    BenchmarkInfo(
        "polybench",
        "Questions about overlapping sounds",
        "Does an audio language model hear what overlaps what, for how long and when, or does it answer from the words "
        "of the question?",
    ),
    BenchmarkInfo(
        "questions",
        "Questions of any benchmark",
        "Does an audio language model answer multiple-choice questions about sounds by listening, or without?",
    ),
    BenchmarkInfo(
        "polybench_apart",
        "What overlap costs",
        "Does an audio language model hear less of the same sounds where they overlap?",
    ),
    BenchmarkInfo(
        "polybench_atoms",
        "Atomic questions",
        "Does an audio language model hear that a sound is there, and which of two begins first?",
    ),
)
"""Benchmarks without a figure of their own (arXiv 2603.13685, and 2603.05128 with its additions)."""

_BENCHMARKS: Registry[BenchmarkInfo] = Registry(
    __package__,
    "BENCHMARK",
    "audio_compositionality.benchmarks",
    lambda benchmark: benchmark.name,
    listed=_PLAIN,
    helpers=("figures", "info"),
)


def register_benchmark(benchmark: BenchmarkInfo) -> None:
    """Make a benchmark known by its name in this process. An installed package names its own as entry points instead,
    in the group ``audio_compositionality.benchmarks``."""
    _BENCHMARKS.add(benchmark)


def benchmark_info(name: str) -> BenchmarkInfo:
    """The facts of a benchmark; for an unregistered one, its name alone."""
    return _BENCHMARKS.find(name) or BenchmarkInfo(name, name, "")
