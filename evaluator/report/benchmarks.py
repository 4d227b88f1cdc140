"""What a report tells of each benchmark, before its tasks: figures that show several of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from audio_compositionality.evaluator.compare.benchmarks import BenchmarkResults, by_benchmark
from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.figures.benchmarks import benchmark_figures
from audio_compositionality.evaluator.figures.catalogue import benchmark_prefix
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.registry import list_benchmarks

from .facts import LONGEST_TEXT
from .sections import Picture, drawn_pictures

MOST_NAMED = 3
"""Tasks of a benchmark that are named one by one where all of them have results."""


@dataclass(frozen=True)
class BenchmarkSection:
    """What the page tells of one benchmark.

    Attributes:
        name: of the section in the page's addresses.
        title: of the benchmark, and the data where there are several.
        question: what it asks.
        tasks: what there are results of, in words.
        pictures: its figures.
        undrawn: why figures are missing.
    """

    name: str
    title: str
    question: str
    tasks: str
    pictures: tuple[Picture, ...]
    undrawn: tuple[str, ...]


def benchmark_sections(comparisons: Sequence[Comparison], folder: Path | None) -> list[BenchmarkSection]:
    """The sections of the benchmarks that have figures of their own, which are also written to the folder."""
    benchmarks = by_benchmark(comparisons)
    return [
        _section(results, benchmarks, number, folder)
        for number, results in enumerate(benchmarks, 1)
        if results.info.drawings
    ]


def is_long(comparisons: Sequence[Comparison]) -> bool:
    """Whether comparisons are those of all tasks of one benchmark, each once, and are too many to name."""
    tasks = list_benchmarks().get(comparisons[0].info.benchmark, ())
    return len(tasks) > MOST_NAMED and sorted(comparison.info.name for comparison in comparisons) == sorted(tasks)


def _section(
    results: BenchmarkResults, benchmarks: Sequence[BenchmarkResults], number: int, folder: Path | None
) -> BenchmarkSection:
    info = results.info
    same = [other for other in benchmarks if other.info.name == info.name]
    titles = [comparison.info.title for comparison in results.comparisons]
    drawn = list(drawn_pictures(benchmark_figures(results), benchmark_prefix(results, benchmarks), folder))
    return BenchmarkSection(
        name=f"benchmark-{number}",
        title=f"{info.title} on {shortened(results.dataset, LONGEST_TEXT)}" if len(same) > 1 else info.title,
        question=info.question,
        tasks=f"all {len(results.comparisons)}" if is_long(results.comparisons) else ", ".join(titles),
        pictures=tuple(picture for picture in drawn if isinstance(picture, Picture)),
        undrawn=tuple(dict.fromkeys(picture for picture in drawn if isinstance(picture, str))),
    )
