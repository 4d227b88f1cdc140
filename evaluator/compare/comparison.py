"""Several results of one task on the same data: aligned sample by sample, each measure with intervals and tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Configuration, Data, DatasetError, HeldData
from audio_compositionality.dataset_builder.open_data import reopened_data
from audio_compositionality.dataset_builder.rendered import is_preset, opened_preset
from audio_compositionality.evaluator.results.result import ResultError, data_digest
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.text import nearest, shortened
from audio_compositionality.tasks.base import Measure, Samples, Task, TaskInfo
from audio_compositionality.tasks.registry import load_task

from .loading import ComparedResult, GivenResults, ModelKind, load_results
from .statistics import Interval, PairedTests, compact_letters, compare_pairs, mean_intervals

MOST_UNREAD = 0.5
"""Share of answers without a choice above which a score measures the format of answers, not perception."""

Floats = NDArray[np.float64]


FULL_PRECISION = "float32"

LONGEST_DATA_NAME = 60
"""Characters of a data set's name beside the beginning of its fingerprint."""


def mostly_unread(info: TaskInfo, result: ComparedResult) -> str:
    """Return how many answers of a result name no option, in words, where most name none; otherwise nothing."""
    # The first share counts all answers that name no option, refusals among them.
    for name, total in () if info.profile is None else info.profile.shares[:1]:
        part, every = result.result.measures.get(name), result.result.measures.get(total)
        if part and every and part > every * MOST_UNREAD:
            return f"{part:,.0f} of {every:,.0f}"
    return ""


@dataclass(frozen=True)
class OpenedData:
    """The data of results, opened again for the facts about their samples.

    Attributes:
        configuration: the data; None where they cannot be opened.
        samples: facts about all samples of a task; None if the data cannot be opened.
        missing: why the data cannot be opened.
    """

    configuration: Configuration | None
    samples: Samples | None
    missing: str | None


@dataclass(frozen=True)
class View:
    """One measure of all results of a comparison, sample by sample.

    Attributes:
        measure: the measure.
        labels: of the results.
        values: of each sample, [n, results].
        clusters: [n], equal for samples that are not independent of each other.
    """

    measure: Measure
    labels: tuple[str, ...]
    values: Floats
    clusters: NDArray[np.int64]

    @cached_property
    def means(self) -> Floats:
        """[results]."""
        means: Floats = self.values.mean(axis=0)
        return means

    @cached_property
    def order(self) -> list[int]:
        """Places of the results, the highest mean first."""
        order: list[int] = np.argsort(-self.means, kind="stable").tolist()
        return order

    @cached_property
    def intervals(self) -> list[Interval | None]:
        """95 % BCa interval of each mean; None if there are too few samples."""
        return mean_intervals(self.values, self.clusters, bounds=self.measure.range)

    @cached_property
    def tests(self) -> PairedTests:
        """Paired tests of every two results."""
        return compare_pairs(self.values, self.clusters, bounds=self.measure.range)

    @cached_property
    def letters(self) -> list[str] | None:
        """The letters of each result; results that share one do not differ significantly. None if the alphabet does not
        suffice."""
        return compact_letters(self.means, self.tests)


@dataclass(frozen=True)
class Comparison:
    """Results of one version of a task on the same data.

    Attributes:
        task: the task as it is installed.
        version: of the task that made the results.
        fingerprint: of the data.
        rows_digest: of their rows.
        dataset: where they were opened from, as the results state it.
        results: the highest first, by the measure that the task ranks by; all with the same samples in the same order.
        configuration: the data, opened again; None where they cannot be.
        samples: facts about the samples; None where the data cannot be opened.
        missing: why `samples` is None.
        notes: warnings for the reader: results with other settings, samples left out.
        data_name: `dataset`, with `data_digest` where it stands for several data.
    """

    task: Task
    version: int
    fingerprint: str
    rows_digest: str
    dataset: str
    results: tuple[ComparedResult, ...]
    configuration: Configuration | None
    samples: Samples | None
    missing: str | None
    notes: tuple[str, ...]
    data_name: str = ""

    @property
    def info(self) -> TaskInfo:
        """The task's card."""
        return self.task.info

    @property
    def ids(self) -> tuple[str, ...]:
        """Row ids of the samples, [n]."""
        return self.results[0].ids

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the results."""
        return tuple(result.label for result in self.results)

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """[n], equal for samples that belong together; where the data cannot be opened, as the results state it: of
        several statements, the one of fewest clusters."""
        if self.samples is not None:
            return self.samples.clusters
        return min((result.samples.clusters for result in self.results), key=lambda one: len(np.unique(one)))

    @cached_property
    def views(self) -> Mapping[str, View]:
        """The measures that all results have by sample, by name; the one that the task ranks by is first."""
        measures = sorted(self.info.sampled, key=lambda measure: measure.name != self.info.ranks_by)
        columns = {
            measure.name: [self._answered(result, result.column(measure)) for result in self.results]
            for measure in measures
        }
        return {
            measure.name: View(measure, self.labels, np.stack([c for c in parts if c is not None], 1), self.clusters)
            for measure in measures
            if (parts := columns[measure.name]) and all(part is not None for part in parts)
        }

    def _answered(self, result: ComparedResult, column: Floats | None) -> Floats | None:
        """The column of a result; of a control in a task that asks about listening, the mean of the questions that it
        answers stands for those that it does not, where it answers most: a refusal is no wrong answer, since who
        refuses without the sound would gain by it."""
        choice = None if self.info.profile is None else result.samples.columns.get(self.info.profile.choices)
        if not self.info.ability or result.kind is not ModelKind.CONTROL or column is None or choice is None:
            return column
        answers = choice >= 0
        if len(choice) != len(column) or mostly_unread(self.info, result) or not answers.any():
            return column
        return np.where(answers, column, column[answers].mean())

    @property
    def recommended(self) -> tuple[View, ...]:
        """The views of the measures to trust, behind tables, tests and figures; all if there is none."""
        views = [self.views[measure.name] for measure in self.info.recommended if measure.name in self.views]
        return tuple(views or self.views.values())

    def interval(self, place: int, measure: Measure) -> Interval | None:
        """95 % interval of a measure of one result, by its place; None where the measure is not a mean over samples, or
        where too few samples have it."""
        view, result = self.views.get(measure.name), self.results[place]
        if view is not None:
            return view.intervals[place]
        column = result.column(measure)
        if measure.within is None or column is None:
            return None
        places = measure.places(result.samples.columns)
        if not len(places):
            return None
        return mean_intervals(column[places, None], self.clusters[places], bounds=measure.range)[0]

    @property
    def broken_down(self) -> tuple[View, ...]:
        """The views that are broken down by groups of samples and set against their diversity."""
        profile = self.info.profile
        view = None if profile is None else self.views.get(profile.measure)
        return self.recommended if view is None else (view,)

    def view(self, name: str) -> View:
        """A measure by sample, with its intervals and tests.

        Raises:
            ResultError: the task has no such measure by sample, or not all results have it.
        """
        if name in self.views:
            return self.views[name]
        names = [measure.name for measure in self.info.sampled]
        if name in names:
            raise ResultError(f"not all results of {self.info.name} have {self.info.measure(name).heading} by sample")
        raise ResultError(f"{self.info.name} has no measure {name!r} by sample; {nearest(name, names)}")


def compare_results(paths: GivenResults, *, data: str | Path | HeldData[Any] | None = None) -> list[Comparison]:
    """Compare results of the same version of a task on the same data.

    Args:
        paths: see `load_results`.
        data: where to open the data from, which hold clusters and facts about samples. By default the preset or the
            folder that the results state; a Hub id in a result is not followed.

    Returns:
        one comparison per task, version, fingerprint and digest of the rows.

    Raises:
        ResultError: see `load_results`; or results have no sample in common.
        DatasetError: `data` is given and cannot be opened, or is the data of none of the results.
    """
    groups: dict[tuple[str, int, str, str], list[ComparedResult]] = {}
    for result in load_results(paths):
        groups.setdefault(result.result.key, []).append(result)
    given = None if data is None else reopened_data(data)
    found = {key: "" if given is None else _configuration(given, load_task(key[0]), *key[2:]) for key in groups}
    if given is not None and all(isinstance(configuration, str) for configuration in found.values()):
        every = [result.result for results in groups.values() for result in results]
        theirs = ", ".join(sorted({f"{one.dataset} ({data_digest(one, every)})" for one in every}))
        raise DatasetError(
            f"{given.source} is not the data of these results, or has changed since they were made; theirs: {theirs}"
        )
    sources: dict[str, Data | str] = {}
    comparisons = []
    for key, results in sorted(groups.items()):
        task, opened = load_task(key[0]), found[key]
        for source in sorted({result.result.dataset for result in results}):
            if not isinstance(opened, str):
                break
            if source not in sources:
                sources[source] = _open_local(source)
            local = sources[source]
            opened = local if isinstance(local, str) else _configuration(local, task, *key[2:])
        comparisons.append(compare_loaded(results, describe_data(opened, task)))
    # Names of data are unique among the comparisons of one task and version.
    names = Counter((one.info.name, one.version, one.dataset) for one in comparisons)
    return [
        replace(one, data_name=f"{shortened(one.dataset, LONGEST_DATA_NAME)} (data {data_digest(one, comparisons)})")
        if names[one.info.name, one.version, one.dataset] > 1
        else one
        for one in comparisons
    ]


def describe_data(opened: Configuration | str, task: Task) -> OpenedData:
    """The facts that data hold about the samples of a task.

    Args:
        opened: the configuration that the task scores, or why there is none.
        task: the task.
    """
    if isinstance(opened, str):
        return OpenedData(None, None, opened)
    try:
        return OpenedData(opened, task.samples(tuple(opened.rows)), None)
    except (OSError, AudioCompositionalityError) as error:
        return OpenedData(None, None, f"the data {opened.source!r} cannot be read: {error}")


def compare_loaded(results: Sequence[ComparedResult], data: OpenedData) -> Comparison:
    """Compare results that are loaded, all of one version of a task on the same data.

    Args:
        results: one or more.
        data: the data of the results.

    Raises:
        ResultError: they have no sample in common, or one that the data do not have.
    """
    first = results[0].result
    task = load_task(first.task)
    common = set.intersection(*(set(result.ids) for result in results))
    if not common:
        raise ResultError(f"the results of {first.task} have no sample in common")
    ids = [id for id in results[0].ids if id in common]
    samples = data.samples
    if samples is not None:
        places = {id: place for place, id in enumerate(samples.ids)}
        unknown = [id for id in ids if id not in places]
        if unknown:
            raise ResultError(f"{results[0].path} has the sample {unknown[0]!r}, which the data do not have")
        samples = samples.at([places[id] for id in ids])
    measure, dataset = task.info.measure(task.info.ranks_by), min(result.result.dataset for result in results)
    ranked = [(result.value(measure), result) for result in (result.at(ids) for result in results)]
    # The highest first; those without the measure last.
    ranked.sort(key=lambda pair: (pair[0] is None, -(pair[0] or 0.0), pair[1].label))
    return Comparison(
        task=task,
        version=first.task_version,
        fingerprint=first.fingerprint,
        rows_digest=first.rows_digest,
        dataset=dataset,
        data_name=dataset,
        results=tuple(result for _, result in ranked),
        configuration=data.configuration,
        samples=samples,
        missing=data.missing,
        notes=tuple(_notes(results, task.info, len(ids))),
    )


def _configuration(data: Data, task: Task, fingerprint: str, rows_digest: str) -> Configuration | str:
    """The configuration that a task scores, or why its fingerprint or its rows differ."""
    try:
        configuration = data.configuration(task.info.recipe)
        if (configuration.fingerprint, configuration.rows_digest) == (fingerprint, rows_digest):
            return configuration
    except (OSError, AudioCompositionalityError) as error:
        return f"the data {data.source!r} cannot be read: {error}"
    return f"the data {data.source!r} have changed since the results were made: give the original data with --data"


def _open_local(source: str) -> Data | str:
    """A preset or a folder, opened; or why it is not."""
    from audio_compositionality.dataset_builder.recorded import RECORDINGS_OF
    from audio_compositionality.dataset_builder.stored import StoredData

    if source.startswith(RECORDINGS_OF):
        return f"{source} cannot be opened by name: build them into a folder and give it with --data"
    if not is_preset(source) and not Path(source).is_dir():
        return f"the data {source!r} are neither a preset nor a folder here: give their folder with --data"
    try:
        # A result may be a third party's, so what it states is opened as one of these or not at all.
        return opened_preset(source) if is_preset(source) else StoredData(source)
    except (OSError, AudioCompositionalityError) as error:
        return f"the data {source!r} cannot be opened: {error}"


def _notes(results: Sequence[ComparedResult], info: TaskInfo, n: int) -> Iterable[str]:
    """What makes results less comparable than they look."""
    version = results[0].result.task_version
    if version != info.version:
        yield (
            f"made by version {version} of {info.title}; its numbers are not comparable with numbers of the installed "
            f"version {info.version}"
        )
    for name in sorted({name for result in results for name in result.result.settings}):
        values: dict[str, list[str]] = {}
        for result in results:
            values.setdefault(str(result.result.settings.get(name)), []).append(result.label)
        if len(values) > 1:
            yield f"{name} differs: " + "; ".join(
                f"{value} ({', '.join(who)})" for value, who in sorted(values.items())
            )
    precision = {result.label: result.result.model.options.precision for result in results}
    if len(set(precision.values())) > 1:
        lower = ", ".join(f"{label} ({p})" for label, p in sorted(precision.items()) if p != FULL_PRECISION)
        yield f"precision differs: {lower}; the others in {FULL_PRECISION}"
    most = max(len(result.ids) for result in results)
    if most > n:
        yield f"compared on the {n:,} samples that all results have, of {most:,}"
