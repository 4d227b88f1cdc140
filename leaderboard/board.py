"""The results repository as the leaderboard shows it: its entries, their tables, and the verdicts on them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path

from audio_compositionality.dataset_builder.rendered import is_preset, rendered_preset
from audio_compositionality.evaluator.compare.comparison import Comparison, OpenedData, compare_loaded, describe_data
from audio_compositionality.evaluator.compare.loading import (
    ComparedResult,
    ModelKind,
    descriptions_in,
    levels_in,
    model_kind,
)
from audio_compositionality.evaluator.compare.model_verdicts import leading_sentences
from audio_compositionality.evaluator.compare.rows import ScoresByMeasure, stated_scores
from audio_compositionality.evaluator.compare.statistics import UNBOUNDED, shared_ranks
from audio_compositionality.evaluator.compare.task_verdicts import (
    DESCRIPTION,
    TRIVIAL,
    TWIN,
    Standing,
    TaskVerdict,
    VerdictRow,
    baseline_standing,
    baseline_words,
    task_verdict,
    task_verdicts,
)
from audio_compositionality.evaluator.results.result import CLUSTER, Result, ResultError, SampleTable, data_digest
from audio_compositionality.evaluator.submissions.submission import preset_with
from audio_compositionality.support.files import packaged_yaml
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.base import ENERGY, TaskInfo
from audio_compositionality.tasks.registry import load_task

VERIFIED, REPORTED = "verified", "reported"
"""The statuses: recomputed from the submitted embeddings or answers by the checker, or the submitter's word."""

LAST_TIER = 2
"""The tier of rows that are not shown to be learnt, see `Shown.tier`."""


@dataclass(frozen=True, order=True)
class DataKey:
    """The data, with the digest of their rows, and the version of the task: entries in one table share all."""

    fingerprint: str
    version: int
    rows_digest: str

    def __str__(self) -> str:
        return f"{self.fingerprint}-{self.version}-{self.rows_digest}"


@dataclass(frozen=True)
class Entry:
    """One submitted result.

    Attributes:
        folder: in the results repository, ``results/<model>/<revision>/<task>-<id>``.
        result: the displayed result: for a verified entry the checker's, for others the reported one; with its samples,
            as far as verdicts depend on them, where they could be read.
        reported: the reported result.
        verified_on: date of the checker's recomputation, ISO 8601; None for a reported entry.
        samples: path in the repository of the samples of `result`.
        is_verifiable: whether the submission can be verified.
        submitter: by the record of the checker; None where unknown.
        reproduces: folder of the entry that this one reproduces, by the same record; None where it is no reproduction.
    """

    folder: str
    result: Result
    reported: Result
    verified_on: str | None
    samples: str
    is_verifiable: bool
    submitter: str | None
    reproduces: str | None = None

    @property
    def id(self) -> str:
        """``<task>-<id>``, unique, since it is a hash of the content."""
        return self.folder.rsplit("/", 1)[1]

    @property
    def model(self) -> str:
        """The id of the model."""
        return self.result.model.id

    @property
    def status(self) -> str:
        """``verified`` or ``reported``."""
        return REPORTED if self.verified_on is None else VERIFIED

    @property
    def sender(self) -> str:
        """The one whose word the entry is, in words: its submitter, else the maintainers, who alone add verified
        entries without one; of a reported entry nobody is known."""
        if self.submitter is not None:
            return f"by {self.submitter}"
        return REPORTED if self.verified_on is None else "by the maintainers"

    @property
    def kind(self) -> ModelKind:
        """The kind of its model."""
        return model_kind(self.result.model)

    @property
    def data(self) -> DataKey:
        """The data and version of its table."""
        return DataKey(self.result.fingerprint, self.result.task_version, self.result.rows_digest)

    @cached_property
    def scores(self) -> ScoresByMeasure:
        """The row of each measure of `result`, by the measure's name."""
        return stated_scores(self.result)

    @property
    def same(self) -> tuple[object, ...]:
        """Equal for entries that share a row of the table: task, version, data, model, revision, options, settings and
        submitter.

        So nobody's entry takes the place of another's.
        """
        model = self.result.model
        options, settings = model.options.model_dump_json(), json.dumps(self.result.settings, sort_keys=True)
        return (*self.result.key, model.id, model.revision, options, settings, self.submitter)

    @property
    def precedence(self) -> tuple[bool, str, str]:
        """Sort key among entries that are the `same`; the greatest is shown: verified before reported ones, whatever
        their stated dates; then the newer, by the checker's date for verified ones."""
        return (self.verified_on is not None, self.verified_on or self.result.date, self.id)


@dataclass(frozen=True)
class Shown:
    """A row of the table.

    Attributes:
        entry: the displayed one.
        count: number of entries that are the `same`, this one included.
        verdict: on its model, by the other rows of the table; None for what models are judged beside, and for an older
            version of the task, whose measures are not known here.
    """

    entry: Entry
    count: int
    verdict: TaskVerdict | None = None

    @cached_property
    def twin(self) -> tuple[VerdictRow, ...]:
        """The verdict's rows against the model's twin; empty where nothing is judged."""
        return () if self.verdict is None else self.verdict.baselines[TWIN]

    @property
    def is_learnt(self) -> bool:
        """Whether the model is shown to be above its twin."""
        return baseline_standing(self.twin) is Standing.ABOVE

    @cached_property
    def tier(self) -> int:
        """The row's tier, whatever its score: 0 above all baselines, 1 above its twin, 2 not shown to be learnt."""
        if not self.is_learnt:
            return LAST_TIER
        return 0 if self.verdict is not None and self.verdict.standing is Standing.ABOVE else 1


@dataclass(frozen=True)
class Rejected:
    """A file or folder of the repository that is not shown.

    Attributes:
        path: of the file or folder.
        reason: for not showing it.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Order:
    """The order of models, as far as a paired test tells them apart.

    Attributes:
        sentences: see `leading_sentences`.
        ranks: of the models that are above every baseline, see `shared_ranks`; without those that were not compared.
    """

    sentences: tuple[str, ...] = ()
    ranks: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Board:
    """The results repository at one commit.

    Attributes:
        commit: at which it was read.
        entries: all entries of installed tasks.
        rejected: the rest, with reasons.
    """

    commit: str
    entries: tuple[Entry, ...]
    rejected: tuple[Rejected, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Entry]:
        """The entries by their id."""
        return {entry.id: entry for entry in self.entries}

    @cached_property
    def data(self) -> Mapping[str, tuple[DataKey, ...]]:
        """The data of each task with entries: the installed version of the task first, then by number of entries."""
        counts: dict[str, Counter[DataKey]] = {}
        for entry in self.entries:
            counts.setdefault(entry.result.task, Counter())[entry.data] += 1
        return {
            task: tuple(sorted(count, key=lambda key: (is_older(task, key), -count[key], key)))
            for task, count in counts.items()
        }

    @cached_property
    def models(self) -> tuple[str, ...]:
        """The ids of all models."""
        return tuple(sorted({entry.model for entry in self.entries}, key=lambda id: (id.casefold(), id)))

    def rows(self, task: str, data: DataKey) -> list[Shown]:
        """The rows of a task's table on one data set: one of each set of equal entries.

        A table is judged when it is first asked for: all together would keep the first visitor waiting.
        """
        key = (task, data)
        if key not in self._judged:
            self._judged[key] = judged(self._tables.get(key, []))
        return self._judged[key]

    @cached_property
    def _judged(self) -> dict[tuple[str, DataKey], list[Shown]]:
        return {}

    @cached_property
    def _orders(self) -> dict[tuple[str, DataKey], Order]:
        return {}

    @cached_property
    def _tables(self) -> Mapping[tuple[str, DataKey], list[Shown]]:
        groups: dict[tuple[str, DataKey], list[Entry]] = {}
        for entry in self.entries:
            groups.setdefault((entry.result.task, entry.data), []).append(entry)
        return {key: newest(group) for key, group in groups.items()}

    def judge(self) -> None:
        """Judge all tables, before they are asked for."""
        for task, data in self._tables:
            self.order(task, data)

    def order(self, task: str, data: DataKey) -> Order:
        """The order of the models of a table that are above every baseline; its ranks are by the ids of entries."""
        if (task, data) not in self._orders:
            self._orders[task, data] = _order(self.rows(task, data))
        return self._orders[task, data]

    @cached_property
    def data_names(self) -> Mapping[tuple[str, DataKey], str]:
        """The name of the data of each table: a preset's, else as most of its entries state it, verified ones first;
        with `data_digest` where other data have this name."""
        names = {key: _data_name([row.entry for row in rows]) for key, rows in self._tables.items()}
        counts = Counter((task, key.version, name) for (task, key), name in names.items())
        return {
            (task, key): name
            if counts[task, key.version, name] == 1
            else f"{name} (data {data_digest(key, [other for of, other in names if of == task])})"
            for (task, key), name in names.items()
        }

    @cached_property
    def in_table(self) -> frozenset[str]:
        """The ids of the entries in the table."""
        return frozenset(row.entry.id for row in newest(self.entries))

    def of_model(self, model: str) -> list[Entry]:
        """All entries of a model by task and data, in order of precedence."""
        entries = [entry for entry in self.entries if entry.model == model]
        entries.sort(key=lambda entry: entry.precedence, reverse=True)
        return sorted(entries, key=lambda entry: entry.result.key)


def newest(entries: Iterable[Entry]) -> list[Shown]:
    """The entry with the highest precedence among those that are the same."""
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.same, []).append(entry)
    return [Shown(max(group, key=lambda entry: entry.precedence), len(group)) for group in groups.values()]


def judged(rows: Sequence[Shown]) -> list[Shown]:
    """The rows of one table with their verdicts; see `verdict_among`."""
    models = [row.entry for row in rows if row.entry.kind is ModelKind.TRAINED]
    if not models or is_older(models[0].result.task, models[0].data):
        return list(rows)
    info, facts = load_task(models[0].result.task).info, sample_facts(models[0].result)
    by_model: dict[str, list[Entry]] = {}
    for row in rows:
        by_model.setdefault(row.entry.model, []).append(row.entry)
    prefixes = [prefix for prefix in (info.twin[0], *info.optional_baselines) if prefix.endswith(":")]
    verdicts = {
        entry.id: verdict_among(info, entry.result, [one.result for one in _others(entry, by_model, prefixes)], facts)
        for entry in models
    }
    return [replace(row, verdict=verdicts.get(row.entry.id)) for row in rows]


def _order(rows: Sequence[Shown]) -> Order:
    """The order of the models of a table, see `order_among`."""
    models = [row for row in rows if row.verdict is not None]
    counts = Counter(row.entry.model for row in models)
    evident, results, ids = set(), {}, {}
    for entry, tier in ((row.entry, row.tier) for row in models):
        label = entry.model if counts[entry.model] == 1 else f"{entry.model} ({entry.id[-16:][:8]})"
        results[label], ids[label] = entry.result, entry.id
        evident |= set() if tier else {label}
    if not models:
        return Order()
    result = models[0].entry.result
    order = order_among(load_task(result.task).info, results, evident, sample_facts(result))
    return replace(order, ranks={ids[label]: rank for label, rank in order.ranks.items()})


def sample_facts(result: Result) -> OpenedData:
    """Return the facts about the samples of a result's data; only presets are opened for a third party's result."""
    preset = _preset_of(result)
    if preset is not None:
        return _facts(result.task, preset)
    data = f"{result.fingerprint[:8]} with the rows {result.rows_digest[:8]}"
    return describe_data(f"the data {data} are not a preset", load_task(result.task))


@lru_cache(maxsize=16)
def _facts(name: str, preset: str) -> OpenedData:
    task = load_task(name)
    return describe_data(rendered_preset(preset).configuration(task.info.recipe), task)


def _preset_of(result: Result) -> str | None:
    """Return the preset that a result was computed on, if it still has the same rows; else None."""
    recipe = load_task(result.task).info.recipe
    preset = preset_with(recipe, result.fingerprint) if result.recipe == recipe else None
    return preset if preset is not None and _rows_digest(preset, recipe) == result.rows_digest else None


@lru_cache(maxsize=100)
def _rows_digest(preset: str, recipe: str) -> str:
    """Return the digest of a preset's present rows: drawing the rows of all presets takes minutes."""
    configuration = rendered_preset(preset).configuration(recipe)
    known: Mapping[str, str] = packaged_yaml(__package__, "preset_rows.yaml")
    return known.get(configuration.fingerprint) or configuration.rows_digest


LONGEST_DATA = 60
"""Characters of a third party's name of data."""


def _data_name(entries: Sequence[Entry]) -> str:
    """The name of the data of some entries: see `Board.data_names`."""
    result = entries[0].result
    preset = _preset_of(result)
    if preset is not None:
        return preset
    stated = Counter(entry.result.dataset for entry in entries if entry.status == VERIFIED)
    stated = stated or Counter(entry.result.dataset for entry in entries)
    name = shortened(min(stated, key=lambda name: (-stated[name], name)), LONGEST_DATA)
    # Nobody's data pass for a preset.
    if not is_preset(name) or " with " in name:
        return name
    digest = result.fingerprint[:8]
    if preset_with(load_task(result.task).info.recipe, result.fingerprint) is not None:
        digest += f"-{result.rows_digest[:8]}"
    return f"{name} (data {digest})"


def _others(entry: Entry, by_model: Mapping[str, Sequence[Entry]], prefixes: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries that a model's entry is compared with.

    A verified model is compared with verified entries only: nobody knows who added a reported one, and nobody
    recomputed it. Twins and controls of the model count if its submitter or the maintainers added them; entries of
    others count only without these, so that nobody can lower another's entry with a made-up twin. Baselines count if
    the maintainers added them. For a reported model, reported entries count as well. All have the same settings.

    Args:
        entry: the model's.
        by_model: all entries of the table.
        prefixes: of the names of the model's twins and controls.
    """

    def counts(one: Entry) -> bool:
        return _settings(one) == _settings(entry) and (one.status == VERIFIED or entry.status == REPORTED)

    for prefix in prefixes:
        twins = [one for one in by_model.get(prefix + entry.model, ()) if counts(one)]
        # Among entries that count, one without a submitter is the maintainers', or reported beside a reported model.
        trusted = [one for one in twins if one.submitter in (None, entry.submitter)]
        yield from trusted or twins
    for entries in by_model.values():
        yield from (one for one in entries if one.kind is ModelKind.BASELINE and one.submitter is None and counts(one))


def _settings(entry: Entry) -> str:
    return json.dumps(entry.result.settings, sort_keys=True)


# ----- Verdicts, as in the terminal and in a report, on the results that a model is compared with


MOST_TESTED = 10_000
"""Most samples of a paired test: MMAU, the largest set of questions, has this many. The bootstrap then takes a second a
measure."""


def trimmed_samples(info: TaskInfo, samples: SampleTable) -> SampleTable:
    """Return the columns of an untrusted table that a verdict depends on.

    Raises:
        ResultError: they cannot be tested: too many samples, or numbers too large to be squared.
    """
    if len(samples.ids) > MOST_TESTED:
        raise ResultError(f"it has {len(samples.ids):,} samples; at most {MOST_TESTED:,} are tested")
    columns = {name: samples.columns[name] for name in (*_scores(info, samples), CLUSTER) if name in samples.columns}
    if any(abs(column).max() > UNBOUNDED for column in columns.values()):
        raise ResultError(f"it has scores beyond {UNBOUNDED:g}")
    return SampleTable(samples.ids, columns)


def verdict_among(info: TaskInfo, result: Result, others: Sequence[Result], data: OpenedData) -> TaskVerdict:
    """Return the verdict on a model from the results that it is compared with.

    It is the verdict of `task_verdicts` on these results alone, so that p values are adjusted over their pairs and not
    over all models of the board: anybody can add entries, and no entry may change the verdict on another's model. A
    result whose samples could not be read, or are of other data, is not compared: its standing is unknown.

    Args:
        info: of the task, in the version of the results.
        result: of a model that is neither a baseline nor untrained; with its samples, where they could be read.
        others: the results that count, of the same version of the task and data: of its twins, controls and
            baselines, with their samples, where they could be read.
        data: theirs, opened where they can be.
    """
    model, words = result.model.id, baseline_words(info) | dict(info.optional_baselines)
    paired = [one for one in others if _is_paired(info, result, one)]
    comparison = _comparison([(one.model.id, one) for one in (result, *paired)], data)
    unknown = partial(VerdictRow, model=model, task=info.name, standing=Standing.UNKNOWN)
    if comparison is None:
        outcome = "the samples of this entry cannot be read, or belong to other data"
        rows = [
            unknown(baseline=name, words=words[name], reference=words[name], outcome=outcome)
            for name in baseline_words(info)
        ]
        return task_verdict(info, _compared(model, result), rows)
    trained = [one.result for one in comparison.results if one.kind is ModelKind.TRAINED]
    verdicts = zip(trained, task_verdicts(comparison), strict=True)
    (verdict,) = (verdict for one, verdict in verdicts if one is result)
    rows = list(verdict.rows)
    for one in others:
        if any(one is other for other in paired):
            continue
        compared = [_compared(one.model.id, one)]
        is_of = {
            TWIN: one.model.id == info.twin[0] + model,
            DESCRIPTION: bool(descriptions_in(compared, info)),
            TRIVIAL: info.trivial == ENERGY and bool(levels_in(compared)),
            **{
                name: one.model.id == (name + model if name.endswith(":") else name) for name in info.optional_baselines
            },
        }
        for name in (name for name, is_baseline in is_of.items() if is_baseline):
            outcome = f"the samples of {one.model.id} cannot be read, or are others"
            rows = [row for row in rows if not (row.is_missing and row.baseline == name)]
            rows.append(unknown(baseline=name, words=words[name], reference=one.model.id, outcome=outcome))
    rows.sort(key=lambda row: list(words).index(row.baseline))
    # Without the comparison, which holds all scores.
    return replace(verdict, rows=tuple(rows), comparison=None)


def order_among(info: TaskInfo, results: Mapping[str, Result], evident: Collection[str], data: OpenedData) -> Order:
    """Return the order of models as far as a paired test distinguishes them, with ranks by label.

    Args:
        info: of the task, in the version of the results.
        results: of models that are neither baselines nor untrained, by the labels to name them by; results with other
            samples than the one with the highest score, or without samples, are left out.
        evident: labels of the models that are above every baseline: no others are put in order.
        data: of the results.
    """
    named = {label: one for label, one in results.items() if label in evident}
    every = list((named if len(named) > 1 else results).items())
    every.sort(key=lambda item: -float(item[1].measures.get(info.ranks_by) or 0.0))
    sampled = [(label, one) for label, one in every if one.samples is not None]
    paired = [(label, one) for label, one in sampled if _is_paired(info, sampled[0][1], one)]
    comparison = _comparison(paired, data) if len(paired) > 1 else None
    if comparison is None:
        return Order()
    view = comparison.views.get(info.ranks_by)
    ranks = {}
    if view is not None and len(named) > 1:
        ranks = dict(zip(comparison.labels, shared_ranks(view.means, view.tests), strict=True))
    return Order(tuple(leading_sentences(comparison, evident)), ranks)


def _is_paired(info: TaskInfo, one: Result, other: Result) -> bool:
    """Whether two results have scores of the same samples by the measures that a verdict depends on."""
    if one.samples is None or other.samples is None:
        return False
    has_same_scores = _scores(info, one.samples) == _scores(info, other.samples)
    return has_same_scores and set(one.samples.ids) == set(other.samples.ids)


def _scores(info: TaskInfo, samples: SampleTable) -> list[str]:
    """The columns behind the measures that a verdict depends on, as far as a table has them."""
    names = {measure.column for measure in (info.judge, *info.recommended)}
    return sorted(name for name in samples.columns if name in names)


def _comparison(results: Sequence[tuple[str, Result]], data: OpenedData) -> Comparison | None:
    """Return the comparison of results, with their labels; None if one has no samples, or samples of other data."""
    try:
        return compare_loaded([_compared(label, one) for label, one in results], data)
    except ResultError:
        return None


def _compared(label: str, result: Result) -> ComparedResult:
    return ComparedResult(label, result, Path(), result.samples or SampleTable((), {}))


def is_older(task: str, data: DataKey) -> bool:
    """Whether entries are of another version of their task than the installed one."""
    return data.version != load_task(task).info.version
