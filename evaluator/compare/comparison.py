"""Several results on the same data: aligned sample by sample, with intervals, paired tests and fits to diversity."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from audio_compositionality.dataset_builder import PRESETS, Benchmark, DatasetError, open_benchmark

from audio_compositionality.evaluator.results.result import STEP_COLUMNS, TASKS, Result, ResultError, load_result
from audio_compositionality.tasks.samples import Samples, describe_samples
from .statistics import (GroupMean, Interval, LineFit, PairedTest, compact_letters, compare_pairs, fit_line, group_means, mean_intervals)

Floats = NDArray[np.float64]

MEASURES = ("score", "centred")
"""What is compared of each task: its score, and its score once what all embeddings share is taken away."""


@dataclass(frozen=True)
class Entry:
    """One result of a comparison.

    Attributes:
        label: the encoder's id, with the beginning of its revision where two share it.
        result: the result.
        path: of its JSON file.
        ids: row id of each sample, [n].
        score: of each sample, [n].
        centred: the same of the centred score; None where the result has none.
        steps: of a_coat, [n, 4]: coordinates of B - A and of D - C on the two main axes of all steps.
    """

    label: str
    result: Result
    path: Path
    ids: tuple[str, ...]
    score: Floats
    centred: Floats | None
    steps: Floats | None

    @classmethod
    def of(cls, label: str, result: Result, path: Path, samples: pa.Table) -> Entry:
        """A result with its samples, a table as `load_result` gives it."""
        columns = {name: samples[name].to_numpy() for name in samples.column_names if name != "id"}
        steps = np.stack([columns[n] for n in STEP_COLUMNS], 1) if set(STEP_COLUMNS) <= set(columns) else None
        ids = tuple(samples["id"].to_pylist())
        return cls(label, result, path, ids, columns["score"], columns.get("score_centred"), steps)

    def at(self, ids: Sequence[str]) -> Entry:
        """The entry with these samples only, in this order."""
        places = {id: place for place, id in enumerate(self.ids)}
        index = [places[id] for id in ids]
        centred = None if self.centred is None else self.centred[index]
        steps = None if self.steps is None else self.steps[index]
        return Entry(self.label, self.result, self.path, tuple(ids), self.score[index], centred, steps)


@dataclass(frozen=True)
class OpenedData:
    """The data of results, opened again to tell of their samples.

    Attributes:
        benchmark: the data; None where they cannot be opened.
        samples: what is known of all samples of a task; None likewise.
        missing: why.
    """

    benchmark: Benchmark | None
    samples: Samples | None
    missing: str | None


@dataclass(frozen=True)
class Comparison:
    """Results of one task on the same data.

    Attributes:
        task: ``a_coat`` or ``a_tre``.
        fingerprint: of the data.
        dataset: where they were opened from, as the results state it.
        entries: the highest mean first, all with the same samples in the same order.
        benchmark: the data, opened again; None where they cannot be.
        samples: what is known of the samples; None where the data cannot be opened.
        missing: why `samples` is None.
        notes: what a reader has to know: results with other settings, samples left out.
    """

    task: str
    fingerprint: str
    dataset: str
    entries: tuple[Entry, ...]
    benchmark: Benchmark | None
    samples: Samples | None
    missing: str | None
    notes: tuple[str, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        """Row ids of the samples, [n]."""
        return self.entries[0].ids

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the entries."""
        return tuple(entry.label for entry in self.entries)

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """[n], equal for samples that belong together; each its own where nothing is known of them."""
        return np.arange(len(self.ids)) if self.samples is None else self.samples.clusters

    @cached_property
    def scores(self) -> Floats:
        """[n, entries]."""
        return np.stack([entry.score for entry in self.entries], axis=1)

    @cached_property
    def centred(self) -> Floats | None:
        """Centred scores, [n, entries]; None unless all results have them."""
        columns = [entry.centred for entry in self.entries if entry.centred is not None]
        return np.stack(columns, axis=1) if len(columns) == len(self.entries) else None

    def values(self, measure: str) -> Floats | None:
        """`scores` or `centred`, by the name of the measure."""
        return self.scores if measure == "score" else self.centred

    @cached_property
    def intervals(self) -> list[Interval | None]:
        """95 % BCa interval of each mean score."""
        return mean_intervals(self.scores, self.clusters)

    @cached_property
    def centred_intervals(self) -> list[Interval | None]:
        """95 % BCa interval of each mean centred score."""
        none: list[Interval | None] = [None] * len(self.entries)
        return none if self.centred is None else mean_intervals(self.centred, self.clusters)

    @cached_property
    def tests(self) -> list[PairedTest]:
        """Paired tests of the scores of every two entries."""
        return compare_pairs(self.scores, self.clusters)

    @cached_property
    def centred_tests(self) -> list[PairedTest]:
        """Paired tests of the centred scores of every two entries."""
        return [] if self.centred is None else compare_pairs(self.centred, self.clusters)

    @cached_property
    def letters(self) -> list[str]:
        """For each entry; entries that share a letter are not distinguishable by their scores."""
        return compact_letters(self.scores.mean(axis=0), self.tests)

    @cached_property
    def centred_letters(self) -> list[str]:
        """For each entry; entries that share a letter are not distinguishable by their centred scores."""
        if self.centred is None:
            return [""] * len(self.entries)
        return compact_letters(self.centred.mean(axis=0), self.centred_tests)


@dataclass(frozen=True)
class Slope:
    """How a score changes with diversity.

    Attributes:
        label: of the entry.
        attribute: whose entropy it is, or ``total``.
        fit: on the entropy alone; None where there are too few samples or the entropy does not vary.
        fit_within: on the entropy with the numbers of sources held fixed.
        p_adjusted: of `fit`, corrected over all slopes of the comparison (Benjamini and Hochberg 1995).
        p_adjusted_within: of `fit_within`.
    """

    label: str
    attribute: str
    fit: LineFit | None
    fit_within: LineFit | None
    p_adjusted: float | None
    p_adjusted_within: float | None


@dataclass(frozen=True)
class Diversity:
    """Scores against what is known of the samples.

    Attributes:
        slopes: one an entry and attribute, ``total`` first.
        groups: by the name of a grouping (``|T|``, ``sources``, ``A and C differ in``), for each entry's label the mean
            scores of the groups.
    """

    slopes: tuple[Slope, ...]
    groups: Mapping[str, Mapping[str, tuple[GroupMean, ...]]]


def load_results(paths: Sequence[str | Path]) -> list[Entry]:
    """Read results with the scores of their samples.

    Args:
        paths: JSON files of results, or folders that are searched for them.

    Raises:
        ResultError: a path does not exist or holds no result, a file is damaged, or two are of the same encoder,
            revision, task and data.
    """
    if not paths:
        raise ResultError("no results: give folders that hold them, or their JSON files")
    files = dict.fromkeys(file.absolute() for path in paths for file in _result_files(Path(path)))
    loaded = [(file, *load_result(file)) for file in files]
    shared: dict[tuple[str, ...], set[str]] = {}
    for _, result, _ in loaded:
        revisions = shared.setdefault((result.task, result.fingerprint, result.encoder_id), set())
        revisions.add(result.encoder_revision)
    entries: dict[tuple[str, ...], Entry] = {}
    for file, result, table in loaded:
        key = (result.task, result.fingerprint, result.encoder_id, result.encoder_revision)
        if key in entries:
            raise ResultError(f"{file} and {entries[key].path} are results of the same encoder, revision and data")
        label = result.encoder_id if len(shared[key[:3]]) == 1 else _label(result, shared[key[:3]])
        entries[key] = Entry.of(label, result, file, table)
    return list(entries.values())


def compare_results(paths: Sequence[str | Path], *, data: str | None = None) -> list[Comparison]:
    """Compare results on the same data, task by task.

    Args:
        paths: see `load_results`.
        data: where to open the data from, which the added sources and the diversity of the samples are read from.
            By default the preset or the folder that the results state; a Hub id in a result is not followed.

    Returns:
        one a task and fingerprint, ``a_coat`` first.

    Raises:
        ResultError: see `load_results`; or results have no sample in common.
        DatasetError: `data` is given and cannot be opened, or is the data of none of the results.
    """
    grouped: dict[tuple[str, str], list[Entry]] = {}
    for entry in load_results(paths):
        grouped.setdefault((entry.result.task, entry.result.fingerprint), []).append(entry)
    benchmark = None if data is None else open_benchmark(data)
    if benchmark is not None and benchmark.fingerprint not in {fingerprint for _, fingerprint in grouped}:
        stated = sorted(
            {(entry.result.dataset, entry.result.fingerprint) for found in grouped.values() for entry in found}
        )
        theirs = ", ".join(f"{dataset} ({fingerprint[:8]})" for dataset, fingerprint in stated)
        raise DatasetError(f"{data} ({benchmark.fingerprint[:8]}) is not the data of these results; theirs: {theirs}")
    opened: dict[str, Benchmark | str] = {}
    comparisons = []
    for (task, fingerprint), entries in sorted(grouped.items(), key=lambda item: item[0]):
        if benchmark is not None and benchmark.fingerprint == fingerprint:
            opened[fingerprint] = benchmark
        elif fingerprint not in opened:
            opened[fingerprint] = _reopen(sorted({entry.result.dataset for entry in entries}), fingerprint)
        comparisons.append(compare_entries(entries, describe_data(opened[fingerprint], task)))
    return comparisons


def describe_data(opened: Benchmark | str, task: str) -> OpenedData:
    """What data tell of the samples of a task.

    Args:
        opened: the data, or why there are none.
        task: ``a_coat`` or ``a_tre``.
    """
    if isinstance(opened, str):
        return OpenedData(None, None, opened)
    try:
        return OpenedData(opened, describe_samples(task, opened.rows(task)), None)
    except (OSError, ValueError) as error:
        return OpenedData(None, None, f"the data {opened.source!r} cannot be read: {error}")


def compare_entries(entries: Sequence[Entry], data: OpenedData) -> Comparison:
    """Compare results that are loaded, all of one task on the same data.

    Args:
        entries: one or more.
        data: theirs.

    Raises:
        ResultError: they have no sample in common, or one that the data do not have.
    """
    common = set.intersection(*(set(entry.ids) for entry in entries))
    first = entries[0].result
    if not common:
        raise ResultError(f"the results of {first.task} have no sample in common")
    ids = [id for id in entries[0].ids if id in common]
    samples = data.samples
    if samples is not None:
        places = {id: place for place, id in enumerate(samples.ids)}
        unknown = [id for id in ids if id not in places]
        if unknown:
            raise ResultError(f"{entries[0].path} has the sample {unknown[0]!r}, which the data do not have")
        samples = samples.at([places[id] for id in ids])
    aligned = sorted((entry.at(ids) for entry in entries), key=lambda entry: (-float(entry.score.mean()), entry.label))
    return Comparison(
        task=first.task,
        fingerprint=first.fingerprint,
        dataset=min(entry.result.dataset for entry in entries),
        entries=tuple(aligned),
        benchmark=data.benchmark,
        samples=samples,
        missing=data.missing,
        notes=tuple(_notes(entries, len(ids))),
    )


def diversity(comparison: Comparison, measure: str = "score") -> Diversity | None:
    """Scores against diversity and numbers of sources; None where nothing is known of the samples.

    The entropy of a scene mostly tells how many sources it has: each slope is therefore also given with the numbers of
    sources held fixed, each number a category.

    Args:
        comparison: of whose entries.
        measure: ``score`` or ``centred``.
    """
    samples, values = comparison.samples, comparison.values(measure)
    if samples is None or values is None:
        return None
    fixed = _categories(
        [samples.counts[name] for name in (("A", "C", "T") if samples.task == "a_coat" else ("sources",))]
    )
    clusters = samples.clusters
    fits = [
        (entry.label, attribute, fit_line(x, y, clusters=clusters), fit_line(x, y, clusters=clusters, covariates=fixed))
        for entry, y in zip(comparison.entries, values.T, strict=True)
        for attribute, x in samples.entropy.items()
    ]
    plain, within = _corrected([fit for *_, fit, _ in fits]), _corrected([fit for *_, fit in fits])
    slopes = tuple(Slope(*item, p, q) for item, p, q in zip(fits, plain, within, strict=True))
    groupings: dict[str, Sequence[str]] = {"sources": [str(n) for n in samples.counts["sources"]]}
    if samples.task == "a_coat":
        groupings = {"|T|": [str(n) for n in samples.counts["T"]], **groupings, "A and C differ in": samples.differing}
    groups = {
        name: {
            label: tuple(sorted(found, key=_group_order))
            for label, found in zip(comparison.labels, group_means(values, labels, clusters), strict=True)
        }
        for name, labels in groupings.items()
    }
    return Diversity(slopes, groups)


def _label(result: Result, revisions: set[str]) -> str:
    """The encoder's id, and as much of its revision as tells it from the encoder's others."""
    own = result.encoder_revision
    length = 8
    while sum(revision[:length] == own[:length] for revision in revisions) > 1:
        length += 1
    return f"{result.encoder_id} ({own[:length]})"


def _result_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ResultError(f"no results at {path}: there is no such file or folder")
    found = sorted(
        Path(folder) / f"{task}.json" for folder, _, names in os.walk(path) for task in TASKS if f"{task}.json" in names
    )
    if not found:
        raise ResultError(
            f"{path} holds no results, files a_coat.json or a_tre.json: `audio-compositionality run` writes them"
        )
    return found


def _reopen(sources: Sequence[str], fingerprint: str) -> Benchmark | str:
    """The data with a fingerprint from the first of the places that has them, or why there is none."""
    reason = ""
    for source in sources:
        if source not in PRESETS and not Path(source).is_dir():
            reason = f"the data {source!r} are neither a preset nor a folder here: --data says where they are"
            continue
        try:
            benchmark = open_benchmark(source)
        except (OSError, ValueError) as error:
            reason = f"the data {source!r} cannot be opened: {error}"
            continue
        if benchmark.fingerprint == fingerprint:
            return benchmark
        reason = f"the data {source!r} are others now than those of the results: --data says where theirs are"
    return reason


def _notes(entries: Sequence[Entry], n: int) -> Iterable[str]:
    """What makes results less comparable than they look."""
    for name in sorted({name for entry in entries for name in entry.result.settings}):
        found: dict[str, list[str]] = {}
        for entry in entries:
            found.setdefault(str(entry.result.settings.get(name)), []).append(entry.label)
        if len(found) > 1:
            yield f"{name} differs: " + "; ".join(f"{value} ({', '.join(who)})" for value, who in sorted(found.items()))
    other = {entry.label: entry.result.options["precision"] for entry in entries}
    if len(set(other.values())) > 1:
        lower = ", ".join(
            f"{label} ({precision})" for label, precision in sorted(other.items()) if precision != "float32"
        )
        yield f"precision differs: {lower}; the others in float32"
    most = max(len(entry.ids) for entry in entries)
    if most > n:
        yield f"compared on the {n:,} samples that all results have, of {most:,}"


def _categories(columns: Sequence[NDArray[np.int64]]) -> Floats:
    """Indicators [n, k] of every value of every column but its first; [n, 0] where none varies."""
    parts = [column[:, None] == np.unique(column)[1:] for column in columns]
    return np.hstack(parts).astype(np.float64)


def _corrected(fits: Sequence[LineFit | None]) -> list[float | None]:
    known = [fit.p for fit in fits if fit is not None]
    adjusted = iter(stats.false_discovery_control(known).tolist() if known else [])
    return [None if fit is None else next(adjusted) for fit in fits]


def _group_order(group: GroupMean) -> tuple[float, str]:
    """Numbers by their size, words by their letters after them."""
    return (float(group.label) if group.label.isdigit() else math.inf, group.label)
