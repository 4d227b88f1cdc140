"""Comparisons by the benchmarks that their tasks belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audio_compositionality.encoders.loading.twins import UNTRAINED
from audio_compositionality.tasks.base import Number
from audio_compositionality.tasks.benchmarks.info import BenchmarkInfo, benchmark_info

from .baselines import baseline_listing
from .comparison import Comparison
from .kinds import ModelKind
from .loading import ComparedResult


@dataclass(frozen=True)
class BenchmarkModel:
    """A model with its results of all tasks of a benchmark.

    Attributes:
        label: of the model.
        results: by the name of the task.
    """

    label: str
    results: dict[str, ComparedResult]

    @property
    def first(self) -> ComparedResult:
        """One of its results: what they say of the model is the same in all."""
        return next(iter(self.results.values()))

    @property
    def is_reference(self) -> bool:
        """Whether it is a baseline that describes a sound plainly, or its level alone."""
        listing = baseline_listing(self.first)
        return listing is not None and (listing.is_reference or listing.is_level)

    def measures(self, task: Comparison) -> dict[str, Number]:
        """All measures of a task, as tables have them: means over the samples that all results have."""
        result = self.results[task.info.name]
        return {measure.name: result.value(measure) for measure in task.info.measures}


@dataclass(frozen=True)
class BenchmarkResults:
    """The comparisons of a benchmark's tasks on data of one source, such as a preset.

    Attributes:
        info: of the benchmark.
        dataset: where the data were opened from.
        comparisons: one a task.
    """

    info: BenchmarkInfo
    dataset: str
    comparisons: tuple[Comparison, ...]

    @property
    def models(self) -> list[BenchmarkModel]:
        """All models, in the order of the comparisons."""
        results: dict[str, dict[str, ComparedResult]] = {}
        for comparison in self.comparisons:
            for result in comparison.results:
                results.setdefault(result.label, {})[comparison.info.name] = result
        return [BenchmarkModel(label, by_task) for label, by_task in results.items()]


def by_benchmark(comparisons: Sequence[Comparison]) -> list[BenchmarkResults]:
    """Comparisons by benchmark and source of the data, in their order.

    Of several comparisons of one task on data of one name, that of the installed version counts, then that of more
    models.
    """
    groups: dict[tuple[str, str], dict[str, Comparison]] = {}
    for comparison in comparisons:
        tasks = groups.setdefault((comparison.info.benchmark, comparison.dataset), {})
        name = comparison.info.name
        tasks[name] = max(tasks.get(name, comparison), comparison, key=_weight)
    return [
        BenchmarkResults(benchmark_info(name), dataset, tuple(tasks.values()))
        for (name, dataset), tasks in groups.items()
    ]


def _weight(comparison: Comparison) -> tuple[bool, int]:
    return comparison.version == comparison.info.version, len(comparison.results)


def twin_places(models: Sequence[BenchmarkModel], place: int) -> tuple[int, ...]:
    """Places of the untrained twins of a model among all models."""
    twin = UNTRAINED + models[place].first.result.model.id
    return tuple(
        k
        for k, model in enumerate(models)
        if model.first.kind is ModelKind.UNTRAINED and model.first.result.model.id == twin
    )
