"""The verdict on each model over all tasks, and the summary over all models: computed here, printed everywhere.

A model's outcome is its worst verdict among the deciding tasks. Each task has a phrase (`task_phrase`), by these rules:

1. If most answers name no option, with the sound or under every control without it, the task is not judged: its score
   reflects the output format, or knowledge of the clips.
2. A model with the same score as its twin in every sample is called identical to it.
3. Otherwise the phrase lists the baselines by outcome: better, no significant difference, worse, not compared.
4. A model that was trained on clips of this project's own generator is marked so.

Models are ranked only if each is above all baselines, and only as far as a paired test distinguishes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from audio_compositionality.dataset_builder.recipes import list_recipes
from audio_compositionality.dataset_builder.rendered import is_preset
from audio_compositionality.evaluator.results.result import data_digest
from audio_compositionality.support.text import listed, shortened
from audio_compositionality.tasks.registry import list_tasks

from .comparison import Comparison
from .loading import ModelKind, asked_of
from .statistics import MIN_SAMPLES, SIGNIFICANT
from .tables import versioned_title
from .task_verdicts import (
    DESCRIPTION,
    LEAST_DIFFERENCE,
    LONGEST_NAME,
    TOO_FEW,
    TWIN,
    WORST_FIRST,
    Standing,
    TaskVerdict,
    VerdictRow,
    baseline_standing,
    combined,
    deciding_row,
    paired_row,
    task_verdicts,
    worst,
)

MOST_NAMED = 3
"""Most models that a sentence names; a longer list is counted."""

MOST_LINES = 4
"""Most comparisons of a task in a terminal, and most sentences on the order of models."""

NOTHING_TO_JUDGE = (
    "No trained model was scored, so there is no verdict. `audio-compositionality run MODEL` scores a model."
)
"""The sentence over results of baselines and untrained networks alone."""

OF_OUR_DATA = "trained on data from our generator"

OUTCOMES = {
    Standing.ABOVE: "ABOVE ALL BASELINES",
    Standing.BELOW: "BELOW A BASELINE",
    Standing.NOT_SHOWN: "NOT SHOWN",
    Standing.UNKNOWN: "CANNOT TELL",
}
"""The outcome of a model over its deciding tasks, as the terminal prints it."""


@dataclass(frozen=True)
class BaselineLine:
    """The standing of a model against one baseline, over tasks.

    Attributes:
        name: of the baseline, see `VerdictRow`.
        words: the baseline, in words.
        standing: over the tasks.
        standings: of each task.
        text: the standing by task, with its figure or what is missing: "TASK: above, +0.200 (95% CI …)".
    """

    name: str
    words: str
    standing: Standing
    standings: tuple[Standing, ...]
    text: str


@dataclass(frozen=True)
class ModelVerdict:
    """The verdict on one model over all tasks of one kind of model.

    Attributes:
        label: the model's.
        kind: the kind of model that the tasks need, in words: a model that also embeds texts gets two verdicts.
        tasks: the deciding tasks: `TaskInfo.is_headline`, or all where none is.
        others: the other tasks, which are reported with them.
    """

    label: str
    kind: str
    tasks: tuple[TaskVerdict, ...]
    others: tuple[TaskVerdict, ...] = ()

    @property
    def standing(self) -> Standing:
        """Over the deciding tasks: above where it is above all baselines of each."""
        return worst([task.standing for task in self.tasks])

    @property
    def word(self) -> str:
        """The outcome, for people; if all tasks test one ability, whether the model is shown to have it."""
        abilities = {task.info.ability for task in self.tasks}
        if len(abilities) > 1 or "" in abilities or self.standing is Standing.UNKNOWN:
            return OUTCOMES[self.standing].lower()
        (ability,) = abilities
        return f"{ability}s" if self.standing is Standing.ABOVE else f"not shown to {ability}"

    @property
    def is_ours(self) -> bool:
        """Whether the model was trained on data from our generator, as its results state."""
        results = (one for task in self.tasks if task.comparison is not None for one in task.comparison.results)
        return any(one.label == self.label and knows_generator(one.result.model.trained_on) for one in results)

    @property
    def lines(self) -> tuple[BaselineLine, ...]:
        """The baselines of the deciding tasks, those that every task has first."""
        by_name: dict[str, list[tuple[str, tuple[VerdictRow, ...]]]] = {}
        for title, task in zip(_titles(self.tasks), self.tasks, strict=True):
            for name, rows in task.baselines.items():
                by_name.setdefault(name, []).append((title, rows))
        lines = []
        for name, tasks in by_name.items():
            text = "; ".join(f"{title}: {comparison_text(rows)}" for title, rows in tasks)
            words = listed(list(dict.fromkeys(rows[0].words for _, rows in tasks)))
            standings = tuple(baseline_standing(rows) for _, rows in tasks)
            lines.append(BaselineLine(name, words, combined(standings), standings, text))
        return tuple(lines)

    @property
    def unread(self) -> tuple[str, ...]:
        """For each task with a majority of answers that name no option, refusals included: their share, in words."""
        return tuple(f"{task.unread} ({task.info.title})" for task in (*self.tasks, *self.others) if task.unread)

    @property
    def titled(self) -> tuple[tuple[str, TaskVerdict], ...]:
        """The deciding tasks and the others, each with its title: with its data if the two differ in these."""
        every = (*self.tasks, *self.others)
        comparisons = [task.comparison for task in every if task.comparison is not None]
        titles = _titles(every)
        if self.others and len({one.data_name for one in comparisons}) > 1:
            titles = [_title_on_data(one) for one in comparisons]
        return tuple(zip(titles, every, strict=True))

    @property
    def sentence(self) -> str:
        """The phrases of all tasks in one paragraph, after the outcome."""
        return f"{self.word[:1].upper()}{self.word[1:]}. {tasks_sentence(self.titled)}"


def knows_generator(trained_on: str | None) -> bool:
    """Whether a model was trained on rows of one of our own training recipes, as its result states."""
    if not trained_on:
        return False
    recipes = {name for name in list_recipes() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", trained_on)}
    return bool(recipes) and any(task.info.training in recipes for task in list_tasks())


def tasks_sentence(titled: Sequence[tuple[str, TaskVerdict]]) -> str:
    """The phrases of several tasks in one paragraph; tasks with the same phrase share it."""
    groups: dict[str, list[str]] = {}
    for title, task in titled:
        groups.setdefault(task_phrase(task), []).append(title)
    return " ".join(f"{listed(titles)}: {phrase}." for phrase, titles in groups.items())


def task_phrase(task: TaskVerdict, told: Container[str] = ()) -> str:
    """How a model compares with the baselines of one task, in words; see the rules of this module.

    `told` are the ways to missing results that are left out, since they were printed before.
    """
    if task.unread:
        return f"not judged, since most answers name no option ({task.unread})"
    if task.standing is Standing.UNKNOWN and task.refuses:
        return "not judged, since the model refuses all clips without the right sound; listening is not shown"
    if task.is_same_as_twin:
        twin = task.baselines[TWIN][0].words
        doubt = (
            "its trained weights were not loaded, or this output uses none"
            if "untrained" in twin
            else "no evidence that it uses the sound"
        )
        return f"identical to {twin} on every sample: {doubt}"
    better, alike, barely, mixed, worse, unknown, few = (list[str]() for _ in range(7))
    for name, rows in task.baselines.items():
        by_reference: dict[str, list[VerdictRow]] = {}
        for row in rows:
            # A missing description is named in its outcome; several levels, or draws of a twin, are one baseline.
            key = row.outcome if row.is_missing else row.reference if name == DESCRIPTION else row.words
            by_reference.setdefault(key, []).append(row)
        for reference, of_reference in by_reference.items():
            if not any(row.decides for row in of_reference):
                continue
            standing, row = baseline_standing(of_reference), deciding_row(of_reference)
            if standing is Standing.ABOVE:
                better.append(reference)
            elif standing is Standing.BELOW:
                worse.append(reference)
            elif standing is Standing.UNKNOWN and row.outcome.startswith(TOO_FEW):
                few.append(reference)
            elif standing is Standing.UNKNOWN:
                unknown.append(row.outcome.removesuffix(f" ({row.way})") if row.way in told else row.outcome)
            elif row.p is None or row.p > SIGNIFICANT:
                alike.append(reference)
            else:
                (barely if (row.difference or 0) > 0 else mixed).append(reference)
    parts = [
        f"{words} {listed(references, last=last)}"
        for words, references, last in (
            ("better than", better, "and"),
            ("no significant difference from", alike, "or"),
            (f"better by less than {LEAST_DIFFERENCE:g} than", barely, "and"),
            ("mixed results against", mixed, "and"),
            ("worse than", worse, "and"),
        )
        if references
    ]
    if few:
        independent = "" if task.comparison is None else f"{len(set(task.comparison.clusters.tolist()))} independent, "
        parts.append(f"{TOO_FEW} to compare with {listed(few)}: {independent}a test needs {MIN_SAMPLES}")
    return "; ".join([*parts, *unknown, *task.flags])


def comparison_text(rows: Sequence[VerdictRow]) -> str:
    """The outcome against one baseline, with the difference behind it or what is missing."""
    standing, row = baseline_standing(rows), deciding_row(rows)
    return ", ".join(filter(None, (standing.value, row.outcome if row.is_missing else row.figure)))


def _title_on_data(one: Comparison) -> str:
    return f"{one.info.title} on {shortened(one.data_name, LONGEST_NAME)}"


def _titles(tasks: Sequence[TaskVerdict] | Sequence[Comparison]) -> list[str]:
    """Titles of tasks, with the name of the data where two are equal, and the full name where that is not enough."""
    of_tasks = [one.comparison if isinstance(one, TaskVerdict) else one for one in tasks]
    comparisons = [one for one in of_tasks if one is not None]
    forms = [
        (
            one.info.title,
            _title_on_data(one),
            f"{versioned_title(one.info, one.version)} on {one.data_name} (data {data_digest(one, comparisons)})",
        )
        for one in comparisons
    ]
    counts = Counter(text for of_task in forms for text in of_task)
    return [next((text for text in of_task if counts[text] == 1), of_task[-1]) for of_task in forms]


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all models of some comparisons: what terminal, report, tables and Python print.

    Attributes:
        comparisons: the comparisons, one a task and data.
        models: in order of first appearance; one each for the tasks of audio encoders, of audio–text encoders and so
            on.
    """

    comparisons: tuple[Comparison, ...]
    models: tuple[ModelVerdict, ...]

    @cached_property
    def judged(self) -> dict[str, tuple[ModelVerdict, ...]]:
        """The models by the kind of model that tasks need, in the order of the comparisons; kinds without a model only
        where none has one, and then the first."""
        kinds = list(dict.fromkeys(asked_of(comparison.info) for comparison in self.comparisons))
        by_kind = {kind: tuple(model for model in self.models if model.kind == kind) for kind in kinds}
        return {kind: models for kind, models in by_kind.items() if models} or dict.fromkeys(kinds[:1], ())

    @property
    def sentences(self) -> tuple[str, ...]:
        """The summary of each kind of model, which is named if there are several."""
        judged = self.judged
        texts = {kind: _sentence(models) for kind, models in judged.items()}
        return tuple(f"Tasks for {kind}: {text}" if len(judged) > 1 else text for kind, text in texts.items())

    def order(self, comparison: Comparison) -> tuple[str, ...]:
        """Return the order of the models of a comparison, as far as they differ; see `leading_sentences`."""
        kind = asked_of(comparison.info)
        evident = [one.label for one in self.models if one.kind == kind and one.standing is Standing.ABOVE]
        return tuple(leading_sentences(comparison, evident))

    @property
    def orders(self) -> tuple[str, ...]:
        """The order of the models by each deciding task."""
        taken = [task.comparison for model in self.models for task in model.tasks]
        deciding = [one for one in self.comparisons if any(one is other for other in taken)]
        titled = zip(_titles(deciding), deciding, strict=True)
        return tuple(f"{title}: {text}" for title, comparison in titled for text in self.order(comparison))

    def standing(self, label: str, comparison: Comparison) -> Standing | None:
        """The standing of a model in the task of a comparison; None where it is not judged."""
        tasks = (task for model in self.models if model.label == label for task in (*model.tasks, *model.others))
        return next((task.standing for task in tasks if task.comparison is comparison), None)

    @property
    def text(self) -> str:
        """The outcome of each model by each kind of task, and a line per task; for several models after a summary."""
        return self._text(with_differences=False)

    @property
    def details(self) -> str:
        """The text, and below each task the differences from its baselines, the worst first."""
        return self._text(with_differences=True)

    def _text(self, *, with_differences: bool) -> str:
        if not self.models:
            return "\n".join(self.sentences)
        by_label: dict[str, list[ModelVerdict]] = {}
        for model in self.models:
            by_label.setdefault(model.label, []).append(model)
        text = [*(self.sentences if len(by_label) > 1 else ()), *self.orders[:MOST_LINES]]
        for label, verdicts in by_label.items():
            ours = f" ({OF_OUR_DATA})" if verdicts[0].is_ours else ""
            text.append(f"{shortened(label, LONGEST_NAME)}{ours}")
            told = set[str]()
            for model in verdicts:
                text.append(f"  Tasks for {model.kind}: {model.word.upper()}")
                for place, (title, task) in enumerate(model.titled):
                    if place == len(model.tasks):
                        text.append("    Other tasks, which do not affect this outcome:")
                    text.append(f"    {title}: {task_phrase(task, told)}")
                    told.update(row.way for row in task.rows if row.is_missing)
                    compared = [rows for rows in task.baselines.values() if not deciding_row(rows).is_missing]
                    if not with_differences or task.unread or task.is_same_as_twin:
                        continue
                    compared.sort(key=lambda rows: WORST_FIRST.index(baseline_standing(rows)))
                    for rows in compared[:MOST_LINES]:
                        row = deciding_row(rows)
                        words = row.reference if row.baseline == DESCRIPTION else row.words
                        text.append(f"      vs. {words}: {comparison_text(rows)}")
                    if len(compared) > MOST_LINES:
                        others = dict.fromkeys(baseline_standing(rows).value for rows in compared[MOST_LINES:])
                        text.append(f"      vs. {len(compared) - MOST_LINES} other baselines: {listed(list(others))}")
        return "\n".join(text)

    def records(self) -> list[dict[str, Any]]:
        """For programs: a record a model, task and baseline, with the figures behind it."""
        records = []
        for model in self.models:
            sentence = f"{model.label}: {model.sentence}"
            for task in (*model.tasks, *model.others):
                for name, rows in task.baselines.items():
                    standing, row = baseline_standing(rows), deciding_row(rows)
                    record = {
                        "model": model.label,
                        "task": row.task,
                        "data": None if task.comparison is None else task.comparison.fingerprint,
                        "rows_digest": None if task.comparison is None else task.comparison.rows_digest,
                        "verdict": model.standing.value,
                        "sentence": sentence,
                        "task_verdict": task.standing.value,
                        "flags": list(task.flags),
                        "unread": task.unread,
                        "refuses": task.refuses,
                        "baseline": name,
                        "reference": row.words,
                        "standing": standing.value,
                        "is_above": standing.answer,
                        "difference": row.difference,
                        "low": row.low,
                        "high": row.high,
                        "p": row.p,
                        "missing": row.outcome if row.is_missing else "",
                    }
                    records.append(record)
        return records


def _sentence(models: Sequence[ModelVerdict]) -> str:
    """The summary of all models of one kind."""
    if not models:
        return NOTHING_TO_JUDGE
    if len(models) == 1:
        ours = f" ({OF_OUR_DATA})" if models[0].is_ours else ""
        return f"{shortened(models[0].label, LONGEST_NAME)}{ours}: {models[0].sentence}"
    named: dict[Standing, str] = {}
    for standing in Standing:
        labels = [shortened(model.label, LONGEST_NAME) for model in models if model.standing is standing]
        named[standing] = listed(labels, MOST_NAMED)
    above = sum(model.standing is Standing.ABOVE for model in models)
    parts = [f"{above} of {len(models)} models {'is' if above == 1 else 'are'} above all baselines"]
    parts[0] += f" ({named[Standing.ABOVE]})" if above else ""
    rest = {
        Standing.BELOW: "below at least one",
        Standing.NOT_SHOWN: "not shown to be above all",
        Standing.UNKNOWN: "cannot tell",
    }
    parts += [f"{words}: {named[standing]}" for standing, words in rest.items() if named[standing]]
    ranked = "" if above == len(models) else " Only models above all baselines are ranked."
    return f"{'; '.join(parts)}.{ranked}"


def verdicts_of(comparisons: Sequence[Comparison]) -> Verdicts:
    """The verdicts on all models that are neither baselines nor untrained, over all comparisons.

    If there are headline tasks on recordings, they decide, since no model was trained on the timbres of the presets;
    otherwise all tasks decide.
    """
    groups: dict[str, dict[str, list[TaskVerdict]]] = {}
    for comparison in comparisons:
        by_label = groups.setdefault(asked_of(comparison.info), {})
        if not any(result.kind is ModelKind.TRAINED for result in comparison.results):
            continue
        for verdict in task_verdicts(comparison):
            by_label.setdefault(verdict.label, []).append(verdict)
    models = []
    for kind, by_label in groups.items():
        for label, tasks in by_label.items():
            deciding = [
                task
                for task in tasks
                if task.info.is_headline and task.comparison is not None and not is_preset(task.comparison.dataset)
            ]
            others = [task for task in tasks if not any(task is one for one in deciding)]
            models.append(ModelVerdict(label, kind, tuple(deciding or tasks), tuple(others if deciding else ())))
    return Verdicts(tuple(comparisons), tuple(models))


def leading_sentences(comparison: Comparison, evident: Collection[str]) -> Iterator[str]:
    """Return sentences on the leading model by the task's ranking measure, and on the models that differ from it.

    Args:
        comparison: with the models.
        evident: labels of the models whose scores are evidence of something learnt. The others are not ordered, since
            something that needs no learning explains their scores. Only for two trained models the text states that
            they are not distinguishable.
    """
    view = comparison.views.get(comparison.info.ranks_by)
    if view is None:
        return
    names = [shortened(label, LONGEST_NAME) for label in comparison.labels]
    places = [place for place, label in enumerate(comparison.labels) if label in evident]
    is_ordered = len(places) > 1
    if not is_ordered:
        places = [place for place, result in enumerate(comparison.results) if result.kind is ModelKind.TRAINED]
        if len(places) != 2:
            return
    first, *rest = sorted(places, key=lambda place: -float(view.means[place])) if is_ordered else places
    rows = {place: paired_row(comparison, view, first, place, "", "", names[place]) for place in rest}
    above = [place for place, row in rows.items() if row.p is not None and row.p <= SIGNIFICANT]
    if not is_ordered:
        row = rows[rest[0]]
        if row.p is not None and not above:
            yield f"{names[first]} and {names[rest[0]]} do not differ significantly: {row.figure}."
        return
    alike = [names[place] for place in rest if place not in above]
    if alike:
        yield f"{names[first]} does not differ significantly from {listed(alike)}."
    if above:
        more = f", and is higher than {len(above) - 1} more" if len(above) > 1 else ""
        yield f"{names[first]} is higher than {names[above[0]]}: {rows[above[0]].figure}{more}."
