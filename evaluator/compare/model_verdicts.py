"""The verdict on each model over all tasks, and the sentence over all models: computed here, printed everywhere.

The sentence about a model follows from the standing of each of its deciding tasks (`TaskVerdict`), by these rules:

1. Where most answers to a task name no option, with the sound or under every control without it, this comes first: such
   a score tells how a model writes, or that it knows its clips, and not what it hears.
2. A model with the same score as its twin in every sample is equal to it; of an untrained twin the question is whether
   these weights are trained, and it comes last.
3. Above all baselines of a task: "above" and the baselines.
4. Else the baselines that it is below, then those that it is not shown to be above, and the twin where it is missing;
   else the missing results with the way to get them.
5. Tasks of which the same is said stand together; tasks above all baselines come first.
6. A model that was trained on clips of this project's own generator is called so.

Models are ordered only where each is above every baseline, and only as far as a paired test distinguishes them: of a
tie it is said that the models cannot be told apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
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
from .statistics import SIGNIFICANT
from .tables import versioned_title
from .task_verdicts import (
    DESCRIPTION,
    LONGEST_NAME,
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
"""Most models that a sentence names of one kind; of more, their number."""

MOST_LINES = 4
"""Most baselines of a model in a terminal, and most sentences on the order of models."""

NOTHING_TO_JUDGE = (
    "There is nothing to judge: no result is of a trained model, which `audio-compositionality run MODEL` adds."
)
"""The sentence over results of baselines and untrained networks alone."""

OF_OUR_DATA = "trained on our generator"


@dataclass(frozen=True)
class BaselineLine:
    """The standing of a model against one baseline, over tasks.

    Attributes:
        name: of the baseline, see `VerdictRow`.
        words: the baseline, in words.
        standing: over the tasks.
        standings: of each task.
        text: the standing by task, with its figure or what is missing: "above by TASK +0.20 [0.15, 0.25]".
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
        beside: the other tasks, reported beside these.
    """

    label: str
    kind: str
    tasks: tuple[TaskVerdict, ...]
    beside: tuple[TaskVerdict, ...] = ()

    @property
    def standing(self) -> Standing:
        """Over the deciding tasks: above where it is above all baselines of each."""
        return worst([task.standing for task in self.tasks])

    @property
    def word(self) -> str:
        """The standing in a word; of tasks that ask about one ability, whether the model is shown to have it."""
        abilities = {task.info.ability for task in self.tasks}
        if len(abilities) > 1 or "" in abilities or self.standing is Standing.UNKNOWN:
            return self.standing.value
        (ability,) = abilities
        return f"{ability}s" if self.standing is Standing.ABOVE else f"not shown to {ability}"

    @property
    def lines(self) -> tuple[BaselineLine, ...]:
        """The baselines of the deciding tasks, those that every task has first."""
        by_name: dict[str, list[tuple[str, tuple[VerdictRow, ...]]]] = {}
        for title, task in zip(_titles(self.tasks), self.tasks, strict=True):
            for name, rows in task.baselines.items():
                by_name.setdefault(name, []).append((title, rows))
        lines = []
        for name, tasks in by_name.items():
            parts: dict[tuple[Standing, str], list[str]] = {}
            for title, rows in tasks:
                row = deciding_row(rows)
                missing = row.outcome if row.is_missing else ""
                figures = (row.difference_text, row.interval_text, row.corrected_text)
                said = parts.setdefault((baseline_standing(rows), missing), [])
                said.append(" ".join(filter(None, (title, *figures))))
            text = "; ".join(
                f"{standing.value} by {', '.join(said)}{f', {missing}' if missing else ''}"
                for (standing, missing), said in parts.items()
            )
            words = listed(list(dict.fromkeys(rows[0].words for _, rows in tasks)))
            standings = tuple(baseline_standing(rows) for _, rows in tasks)
            lines.append(BaselineLine(name, words, combined(standings), standings, text))
        return tuple(lines)

    @property
    def unread(self) -> tuple[str, ...]:
        """For each task with a majority of answers that name no option, refusals included: their share, in words."""
        return tuple(f"{task.unread} ({task.info.title})" for task in (*self.tasks, *self.beside) if task.unread)

    @property
    def sentence(self) -> str:
        """The verdict in words, after the name of the model and "is"; see the rules of this module."""
        number, every = len(self.tasks), (*self.tasks, *self.beside)
        titles = _titles(every)
        comparisons = [task.comparison for task in every if task.comparison is not None]
        if self.beside and len({one.data_name for one in comparisons}) > 1:
            # On which sounds is what the two sentences differ by.
            titles = [_title_on_data(one) for one in comparisons]
        models = {result.label: result.result.model for result in comparisons[0].results} if comparisons else {}
        is_ours = knows_generator(models[self.label].trained_on) if self.label in models else False
        sentence = f"{f'{OF_OUR_DATA}, and ' if is_ours else ''}{tasks_sentence(titles[:number], self.tasks)}"
        beside = f" Beside that, it is {tasks_sentence(titles[number:], self.beside)}" if self.beside else ""
        return f"{sentence}{beside}"


def knows_generator(trained_on: str | None) -> bool:
    """Whether a model was trained on rows of one of our own training recipes, as its result states."""
    if not trained_on:
        return False
    recipes = {name for name in list_recipes() if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", trained_on)}
    return bool(recipes) and any(task.info.training in recipes for task in list_tasks())


def tasks_sentence(titles: Sequence[str], tasks: Sequence[TaskVerdict]) -> str:
    """The standing of a model in several tasks, in one sentence, after the name of the model and "is"; see the rules of
    this module."""
    groups: dict[tuple[int, str, str], list[str]] = {}
    for title, task in zip(titles, tasks, strict=True):
        # A question comes last.
        rank = (
            -1
            if task.unread or task.refuses
            else len(Standing)
            if task.is_same_as_twin
            else list(Standing).index(task.standing)
        )
        groups.setdefault((rank, *_clause(task)), []).append(title)
    said = "; ".join(f"{before} by {listed(by)}{after}" for (_, before, after), by in sorted(groups.items()))
    return said if said.endswith("?") else f"{said}."


def _clause(task: TaskVerdict) -> tuple[str, str]:
    """The standing of a model in one task: the words before the task's title and those after it."""
    if task.unread:
        return "not to be judged", f", where most answers name no option ({task.unread})"
    if task.standing is Standing.UNKNOWN and task.refuses:
        return "not to be judged", ", which it refuses without the right sound; whether it reads the sound is not shown"
    baselines = task.baselines
    if task.is_same_as_twin:
        twin = baselines[TWIN][0].words
        so = "are these weights trained?" if "untrained" in twin else "nothing shows that it uses the sound"
        return f"equal to {twin}", f" in every sample: {so}"
    references: dict[Standing, list[str]] = {standing: [] for standing in Standing}
    for name, rows in baselines.items():
        standing = baseline_standing(rows)
        deciding = dict.fromkeys(row.reference for row in rows if row.decides and row.standing is standing)
        # Of several descriptions those with the standing of all.
        references[standing] += list(deciding) if deciding and name == DESCRIPTION else [rows[0].words]
    flags = f" ({'; '.join(task.flags)})" if task.flags else ""
    shown = f"shown to {task.info.ability}: " if task.info.ability else ""
    if task.standing is Standing.ABOVE:
        return f"{shown}above {listed(references[Standing.ABOVE])}", ""
    parts = [f"below {listed(references[Standing.BELOW])}"] if references[Standing.BELOW] else []
    if references[Standing.NOT_SHOWN]:
        parts.append(f"not shown to be above {' nor above '.join(references[Standing.NOT_SHOWN])}")
    if parts:
        twins = baselines.get(TWIN, ())
        parts += [f"not compared with {row.words}" for row in twins if row.is_missing]
        return f"{shown and f'not {shown}'}{listed(parts)}", flags
    unknown = [rows for rows in baselines.values() if baseline_standing(rows) is Standing.UNKNOWN]
    reasons = [row.outcome for rows in unknown for row in rows if row.is_missing]
    # Where results are missing, the rest is for later.
    reasons = reasons or [
        row.outcome for rows in unknown for row in rows if row.decides and row.standing is Standing.UNKNOWN
    ]
    reasons = list(dict.fromkeys(reasons))
    return ("not to be judged yet", f": {'; '.join(reasons)}{flags}") if reasons else ("not to be trusted", flags)


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
        """The conclusion by each kind of model, which is named where there are several."""
        judged = self.judged
        said = {kind: _sentence(models) for kind, models in judged.items()}
        return tuple(f"By the tasks of {kind}: {text}" if len(judged) > 1 else text for kind, text in said.items())

    def order(self, comparison: Comparison) -> tuple[str, ...]:
        """The order of the models of a comparison, as far as they can be told apart; see `leading_sentences`."""
        kind = asked_of(comparison.info)
        evident = [one.label for one in self.models if one.kind == kind and one.standing is Standing.ABOVE]
        return tuple(leading_sentences(comparison, evident))

    @property
    def orders(self) -> tuple[str, ...]:
        """The order of the models by each deciding task."""
        taken = [task.comparison for model in self.models for task in model.tasks]
        deciding = [one for one in self.comparisons if any(one is other for other in taken)]
        titled = zip(_titles(deciding), deciding, strict=True)
        return tuple(f"By {title}: {text}" for title, comparison in titled for text in self.order(comparison))

    def standing(self, label: str, comparison: Comparison) -> Standing | None:
        """The standing of a model in the task of a comparison; None where it is not judged."""
        tasks = (task for model in self.models if model.label == label for task in (*model.tasks, *model.beside))
        return next((task.standing for task in tasks if task.comparison is comparison), None)

    @property
    def text(self) -> str:
        """For a terminal: the sentences, and below them for each model its baselines, in at most five lines a model:
        of more, the worst ones and the rest in a word."""
        text = [*self.sentences, *self.orders[:MOST_LINES]]
        for model in self.models:
            if len(self.models) > 1:
                kind = f", by the tasks of {model.kind}" if len(self.judged) > 1 else ""
                text.append(f"{shortened(model.label, LONGEST_NAME)}{kind}: {model.word}")
            lines, rest = list(model.lines), list[BaselineLine]()
            if len(lines) > MOST_LINES:
                lines.sort(key=lambda line: WORST_FIRST.index(worst(line.standings)))
                lines, rest = lines[: MOST_LINES - 1], lines[MOST_LINES - 1 :]
            text += [f"  {line.words}: {line.text}" for line in lines]
            if rest:
                values = dict.fromkeys(standing.value for line in rest for standing in line.standings)
                text.append(f"  {len(rest)} other bars: {listed(list(values))}")
        return "\n".join(text)

    def records(self) -> list[dict[str, Any]]:
        """For programs: a record a model, task and baseline, with the figures behind it."""
        records = []
        for model in self.models:
            sentence = f"{model.label} is {model.sentence}"
            for task in (*model.tasks, *model.beside):
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
                        "bar": name,
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
    """The conclusion on all models of one kind."""
    if not models:
        return NOTHING_TO_JUDGE
    if len(models) == 1:
        return f"{shortened(models[0].label, LONGEST_NAME)} is {models[0].sentence}"
    named: dict[Standing, str] = {}
    for standing in Standing:
        labels = [shortened(model.label, LONGEST_NAME) for model in models if model.standing is standing]
        more = [f"{len(labels) - MOST_NAMED} more"] if len(labels) > MOST_NAMED else []
        named[standing] = listed([*labels[:MOST_NAMED], *more]) if labels else ""
    above = sum(model.standing is Standing.ABOVE for model in models)
    said = [f"{above or 'None'} of {len(models)} models {'is' if above < 2 else 'are'} above every bar"]
    said[0] += f": {named[Standing.ABOVE]}" if above else ""
    rest = {
        Standing.BELOW: "below one at least",
        Standing.NOT_SHOWN: "not shown to be above every bar",
        Standing.UNKNOWN: "not to be judged yet",
    }
    said += [f"{words}: {named[standing]}" for standing, words in rest.items() if named[standing]]
    order = "" if above == len(models) else " Among models that are not above every bar, order says nothing."
    return f"{'; '.join(said)}.{order}"


def verdicts_of(comparisons: Sequence[Comparison]) -> Verdicts:
    """The verdicts on all models that are neither baselines nor untrained, over all comparisons.

    Headline tasks on recordings decide, since no model was trained on the timbres of the presets; all tasks where
    there are none.
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
            beside = [task for task in tasks if not any(task is one for one in deciding)]
            models.append(ModelVerdict(label, kind, tuple(deciding or tasks), tuple(beside if deciding else ())))
    return Verdicts(tuple(comparisons), tuple(models))


def leading_sentences(comparison: Comparison, evident: Collection[str]) -> Iterator[str]:
    """The leading model by the measure that the task ranks by, and the models that it is distinguishable from.

    Args:
        comparison: with the models.
        evident: labels of the models whose scores are evidence of something learnt. The others are not ordered, since
            something that needs no learning explains their scores; of two trained models alone it is said where they
            are not distinguishable.
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
            yield f"{names[first]} and {names[rest[0]]} cannot be told apart, {row.figure}."
        return
    alike = [names[place] for place in rest if place not in above]
    if alike:
        yield f"{names[first]} cannot be told from {listed(alike)}."
    if above:
        more = f", and than {len(above) - 1} more" if len(above) > 1 else ""
        yield f"{names[first]} is higher than {names[above[0]]}, {rows[above[0]].figure}{more}."
