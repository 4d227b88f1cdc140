"""The verdict on each model over all tasks, and the sentence over all models: computed here, printed everywhere.

The sentence about a model follows from the standing of each of its deciding tasks (`TaskVerdict`), by these rules:

1. Where most answers to a task name no option, this comes first: such a score tells how a model writes.
2. A model with the same score as its twin in every sample is equal to it; of an untrained twin the question is whether
   these weights are trained, and it comes last.
3. Above all bars of a task: "above" and the bars.
4. Else the bars that it is below, then those that it is not shown to be above, and the twin where it is missing; else
   the missing results with the way to get them.
5. Tasks of which the same is said stand together; tasks above all bars come first.
6. A model that was trained on clips of this project's own generator is called so.

Models are ordered only where each is above every bar, and only as far as a paired test distinguishes them: of a tie it
is said that the models cannot be told apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from audio_compositionality.dataset_builder.rendered import is_preset
from audio_compositionality.support.text import listed, shortened
from audio_compositionality.tasks.registry import list_tasks

from .comparison import Comparison, View
from .loading import ModelKind, asked_of
from .statistics import SIGNIFICANT
from .tables import versioned_title
from .verdicts import (
    DESCRIPTION,
    LONGEST_NAME,
    TWIN,
    WORST_FIRST,
    Bar,
    BarVerdict,
    Standing,
    TaskVerdict,
    bar_words,
    combined,
    paired_check,
    task_verdicts,
    worst,
)

MOST_NAMED = 3
"""Most models that a sentence names of one kind; of more, their number."""

NOTHING_TO_JUDGE = (
    "There is nothing to judge: no result is of a trained model, which `audio-compositionality run MODEL` adds."
)
"""The sentence over results of baselines and untrained networks alone."""


@dataclass(frozen=True)
class BarLine:
    """The standing of a model against one bar, over tasks.

    Attributes:
        name: of the bar, see `Bar`.
        words: the bar, in words.
        bars: of each deciding task that has it, with the task's title.
    """

    name: str
    words: str
    bars: tuple[tuple[str, Bar], ...]

    @property
    def standing(self) -> Standing:
        """Over the tasks."""
        return combined([bar.standing for _, bar in self.bars])

    @property
    def text(self) -> str:
        """The standing by task, with its figure or what is missing: "above by TASK +0.20 [0.15, 0.25]"."""
        parts: dict[tuple[Standing, str], list[str]] = {}
        for title, bar in self.bars:
            check = bar.deciding
            figures = () if check is None else (check.difference_text, check.interval_text, check.corrected_text)
            parts.setdefault((bar.standing, bar.missing), []).append(" ".join(filter(None, (title, *figures))))
        return "; ".join(
            f"{standing.value} by {', '.join(said)}{f', {missing}' if missing else ''}"
            for (standing, missing), said in parts.items()
        )


@dataclass(frozen=True)
class ModelVerdict:
    """The verdict on one model over all tasks of one kind of model.

    Attributes:
        label: the model's.
        tasks: the deciding tasks: `TaskInfo.is_headline`, or all where none is.
        beside: the other tasks, reported beside these.
    """

    label: str
    tasks: tuple[TaskVerdict, ...]
    beside: tuple[TaskVerdict, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of model that the tasks need, in words: a model that also embeds texts gets two verdicts."""
        return asked_of(self.tasks[0].comparison.info)

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of the deciding tasks, with their data where two titles are equal."""
        return _titles([task.comparison for task in self.tasks])

    @property
    def standing(self) -> Standing:
        """Over the deciding tasks: above where it is above all bars of each."""
        return worst([task.standing for task in self.tasks])

    @property
    def word(self) -> str:
        """The standing in a word; of tasks that ask about one ability, whether the model is shown to have it."""
        abilities = {task.ability for task in self.tasks}
        if len(abilities) > 1 or "" in abilities or self.standing is Standing.UNKNOWN:
            return self.standing.value
        (ability,) = abilities
        return f"{ability}s" if self.is_evidence else f"not shown to {ability}"

    @property
    def is_evidence(self) -> bool:
        """Whether no score of a deciding task is explained by something that needs no learning."""
        return self.standing is Standing.ABOVE

    @property
    def lines(self) -> tuple[BarLine, ...]:
        """The bars of the deciding tasks, those that every task has first."""
        words: dict[str, dict[str, None]] = {}
        bars: dict[str, list[tuple[str, Bar]]] = {}
        for title, task in zip(self.titles, self.tasks, strict=True):
            for bar in task.bars:
                words.setdefault(bar.name, {})[bar.words] = None
                bars.setdefault(bar.name, []).append((title, bar))
        return tuple(BarLine(name, listed(list(words[name])), tuple(bars[name])) for name in bars)

    @property
    def unread(self) -> tuple[str, ...]:
        """For each task with a majority of answers that name no option, refusals included: their share, in words."""
        return tuple(
            f"{task.unread} ({task.comparison.info.title})" for task in (*self.tasks, *self.beside) if task.unread
        )

    @property
    def sentence(self) -> str:
        """The verdict in words, after the name of the model and "is"; see the rules of this module."""
        first = self.tasks[0]
        is_ours = knows_generator(first.comparison.results[first.place].result.model.trained_on)
        number, all_tasks = len(self.tasks), (*self.tasks, *self.beside)
        titles = _titles([task.comparison for task in all_tasks])
        if self.beside and len({task.comparison.data_name for task in all_tasks}) > 1:
            # On which sounds is what the two sentences differ by.
            titles = tuple(map(_title_on_data, (task.comparison for task in all_tasks)))
        sentence = f"{f'{OF_OUR_DATA}, and ' if is_ours else ''}{tasks_sentence(titles[:number], self.tasks)}"
        beside = f" Beside that, it is {tasks_sentence(titles[number:], self.beside)}" if self.beside else ""
        return f"{sentence}{beside}"


OF_OUR_DATA = "trained on our generator"


def knows_generator(trained_on: str | None) -> bool:
    """Whether a model was trained on rows of one of our own training recipes, as its result states."""
    if not trained_on:
        return False
    recipes = {task.info.training for task in list_tasks()} - {""}
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", trained_on) for name in recipes)


def tasks_sentence(titles: Sequence[str], tasks: Sequence[BarVerdict]) -> str:
    """The standing of a model in several tasks, in one sentence, after the name of the model and "is"; see the rules of
    this module."""
    groups: dict[tuple[int, str, str], list[str]] = {}
    for title, task in zip(titles, tasks, strict=True):
        # A question comes last.
        rank = -1 if task.unread else len(Standing) if task.is_same_as_twin else list(Standing).index(task.standing)
        groups.setdefault((rank, *_clause(task)), []).append(title)
    said = "; ".join(f"{before} by {listed(by)}{after}" for (_, before, after), by in sorted(groups.items()))
    return said if said.endswith("?") else f"{said}."


def _clause(task: BarVerdict) -> tuple[str, str]:
    """The standing of a model in one task: the words before the task's title and those after it."""
    flags = f" ({'; '.join(task.flags)})" if task.flags else ""
    if task.unread:
        return "not to be judged", f", where most answers name no option ({task.unread})"
    if task.is_same_as_twin:
        twin = task.bars[0].words
        so = "are these weights trained?" if "untrained" in twin else "nothing shows that it uses the sound"
        return f"equal to {twin}", f" in every sample: {so}"
    of = {standing: [_reference(bar) for bar in task.bars if bar.standing is standing] for standing in Standing}
    shown = f"shown to {task.ability}: " if task.ability else ""
    if task.standing is Standing.ABOVE:
        return f"{shown}above {listed(of[Standing.ABOVE])}", ""
    parts = [f"below {listed(of[Standing.BELOW])}"] if of[Standing.BELOW] else []
    if of[Standing.NOT_SHOWN]:
        parts.append(f"not shown to be above {' nor above '.join(of[Standing.NOT_SHOWN])}")
    if parts:
        parts += [f"not compared with {bar.words}" for bar in task.bars if bar.name == TWIN and bar.missing]
        return f"{shown and f'not {shown}'}{listed(parts)}", flags
    unknown = [bar for bar in task.bars if bar.standing is Standing.UNKNOWN]
    reasons = [bar.missing for bar in unknown if bar.missing]
    # Where results are missing, the rest is for later.
    reasons = reasons or [check.words for bar in unknown for check in bar.checks if check.decides]
    reasons = list(dict.fromkeys(reasons))
    return ("not to be judged yet", f": {'; '.join(reasons)}{flags}") if reasons else ("not to be trusted", flags)


def _reference(bar: Bar) -> str:
    """The side of a bar that decides, in words: of several descriptions those with the bar's standing."""
    names = [check.reference for check in bar.checks if check.decides and check.standing is bar.standing]
    return listed(list(dict.fromkeys(names))) if names and bar.name == DESCRIPTION else bar.words


def _title_on_data(one: Comparison) -> str:
    return f"{one.info.title} on {shortened(one.data_name, LONGEST_NAME)}"


def _titles(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Titles of tasks, with the name of the data where two are equal, and the full name where that is not enough."""
    forms: tuple[Callable[[Comparison], str], ...] = (
        lambda one: one.info.title,
        _title_on_data,
        lambda one: f"{versioned_title(one.info, one.version)} on {one.data_name} (data {one.fingerprint[:8]})",
    )
    counts = [Counter(map(form, comparisons)) for form in forms]
    return tuple(
        next((form(one) for form, count in zip(forms, counts, strict=True) if count[form(one)] == 1), forms[-1](one))
        for one in comparisons
    )


@dataclass(frozen=True)
class KindVerdicts:
    """The verdicts by the tasks of one kind of model.

    Attributes:
        kind: of model, in words.
        words: the bars that every task has, in words, by their names.
        models: a verdict each; empty where all results are of baselines and untrained networks.
    """

    kind: str
    words: dict[str, str]
    models: tuple[ModelVerdict, ...]

    @property
    def evident(self) -> list[str]:
        """Labels of the models whose scores are evidence of something learnt."""
        return [model.label for model in self.models if model.is_evidence]

    @property
    def sentence(self) -> str:
        """The conclusion on all models."""
        if not self.models:
            return NOTHING_TO_JUDGE
        if len(self.models) == 1:
            return f"{shortened(self.models[0].label, LONGEST_NAME)} is {self.models[0].sentence}"
        by = {standing: [m.label for m in self.models if m.standing is standing] for standing in Standing}
        above = by[Standing.ABOVE]
        number = str(len(above)) if above else "None"
        said = [f"{number} of {len(self.models)} models {_is(above)} above every bar"]
        said[0] += f": {_named(above)}" if above else ""
        for standing, words in _REST.items():
            if by[standing]:
                said.append(f"{words}: {_named(by[standing])}")
        order = (
            "" if len(above) == len(self.models) else " Among models that are not above every bar, order says nothing."
        )
        return f"{'; '.join(said)}.{order}"


_REST = {
    Standing.BELOW: "below one at least",
    Standing.NOT_SHOWN: "not shown to be above every bar",
    Standing.UNKNOWN: "not to be judged yet",
}
"""The words for the models of each standing but `Standing.ABOVE`."""


def _is(members: Sequence[object]) -> str:
    return "is" if len(members) < 2 else "are"


def _named(labels: Sequence[str]) -> str:
    """Names of models, the first `MOST_NAMED` of many."""
    names = [shortened(label, LONGEST_NAME) for label in labels]
    return listed(names if len(names) <= MOST_NAMED else [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED} more"])


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

    @property
    def kinds(self) -> tuple[KindVerdicts, ...]:
        """The verdicts by the kind of model that tasks need, in the order of the comparisons."""
        first: dict[str, Comparison] = {}
        for comparison in self.comparisons:
            first.setdefault(asked_of(comparison.info), comparison)
        return tuple(
            KindVerdicts(kind, bar_words(one.info), tuple(model for model in self.models if model.kind == kind))
            for kind, one in first.items()
        )

    @property
    def judged(self) -> tuple[KindVerdicts, ...]:
        """The kinds with models; one without where no result is of a trained model."""
        kinds = self.kinds
        return tuple(kind for kind in kinds if kind.models) or kinds[:1]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The conclusion by each kind of model, which is named where there are several."""
        judged = self.judged
        return tuple(
            f"By the tasks of {kind.kind}: {kind.sentence}" if len(judged) > 1 else kind.sentence for kind in judged
        )

    def order(self, comparison: Comparison) -> tuple[str, ...]:
        """The order of the models of a comparison, as far as they can be told apart; see `leading_sentences`."""
        (kind,) = (one for one in self.kinds if one.kind == asked_of(comparison.info))
        return tuple(leading_sentences(comparison, kind.evident))

    @property
    def orders(self) -> tuple[str, ...]:
        """The order of the models by each deciding task."""
        taken = [task.comparison for model in self.models for task in model.tasks]
        deciding = [one for one in self.comparisons if any(one is other for other in taken)]
        titles = _titles(deciding)
        return tuple(
            f"By {title}: {sentence}"
            for title, comparison in zip(titles, deciding, strict=True)
            for sentence in self.order(comparison)
        )

    def standing(self, label: str, comparison: Comparison) -> Standing | None:
        """The standing of a model in the task of a comparison; None where it is not judged."""
        tasks = (task for model in self.models if model.label == label for task in (*model.tasks, *model.beside))
        return next((task.standing for task in tasks if task.comparison is comparison), None)

    @property
    def text(self) -> str:
        """For a terminal: the sentences, and below them for each model its bars, in at most five lines a model."""
        lines = [*self.sentences, *self.orders[:MOST_LINES]]
        for model in self.models:
            if len(self.models) > 1:
                kind = f", by the tasks of {model.kind}" if len(self.judged) > 1 else ""
                lines.append(f"{shortened(model.label, LONGEST_NAME)}{kind}: {model.word}")
            lines += [f"  {line}" for line in _most(model.lines)]
        return "\n".join(lines)

    def records(self) -> list[dict[str, Any]]:
        """For programs: a record a model, deciding task and bar, with the figures behind it."""
        return [
            {
                "model": model.label,
                "task": task.comparison.info.name,
                "data": task.comparison.fingerprint,
                "verdict": model.standing.value,
                "sentence": sentence,
                "task_verdict": task.standing.value,
                "flags": list(task.flags),
                "unread": task.unread,
                "bar": bar.name,
                "reference": bar.words,
                "standing": bar.standing.value,
                "is_above": bar.standing.answer,
                "difference": None if check is None else check.difference,
                "low": None if check is None or check.interval is None else check.interval[0],
                "high": None if check is None or check.interval is None else check.interval[1],
                "p": None if check is None else check.p,
                "missing": bar.missing,
            }
            for model in self.models
            for sentence in [f"{model.label} is {model.sentence}"]
            for task in (*model.tasks, *model.beside)
            for bar in task.bars
            for check in [bar.deciding]
        ]


def _most(bars: Sequence[BarLine]) -> list[str]:
    """The bars of a model in at most `MOST_LINES` lines: of more, the worst ones and the rest in a word."""
    if len(bars) <= MOST_LINES:
        return [f"{bar.words}: {bar.text}" for bar in bars]
    by_standing = sorted(bars, key=lambda bar: WORST_FIRST.index(worst([one.standing for _, one in bar.bars])))
    first, rest = by_standing[: MOST_LINES - 1], by_standing[MOST_LINES - 1 :]
    values = dict.fromkeys(one.standing.value for bar in rest for _, one in bar.bars)
    return [*(f"{bar.words}: {bar.text}" for bar in first), f"{len(rest)} other bars: {listed(list(values))}"]


MOST_LINES = 4
"""Most bars of a model in a terminal, and most sentences on the order of models."""


def verdicts_of(comparisons: Sequence[Comparison]) -> Verdicts:
    """The verdicts on all models that are neither baselines nor untrained, over all comparisons."""
    groups: dict[str, dict[str, list[TaskVerdict]]] = {}
    for comparison in comparisons:
        by_label = groups.setdefault(asked_of(comparison.info), {})
        for verdict in task_verdicts(comparison):
            by_label.setdefault(verdict.label, []).append(verdict)
    models = tuple(_of_tasks(label, tasks) for by_label in groups.values() for label, tasks in by_label.items())
    return Verdicts(tuple(comparisons), models)


def _of_tasks(label: str, tasks: Sequence[TaskVerdict]) -> ModelVerdict:
    deciding = tuple(task for task in tasks if _decides(task.comparison))
    beside = tuple(task for task in tasks if not _decides(task.comparison))
    return ModelVerdict(label, deciding, beside) if deciding else ModelVerdict(label, beside)


def _decides(comparison: Comparison) -> bool:
    """Whether it is of a headline task on recordings: no model was trained on the timbres of the presets."""
    return comparison.info.is_headline and not is_preset(comparison.dataset)


def leading_sentences(comparison: Comparison, evident: Collection[str]) -> Iterator[str]:
    """The leading model by the measure that the task ranks by, and the models that it is distinguishable from.

    Args:
        comparison: with the models.
        evident: labels of the models whose scores are evidence of something learnt. The others are not ordered, since
            something that needs no learning explains their scores.
    """
    view = comparison.views.get(comparison.info.ranks_by)
    if view is None:
        return
    places = [place for place, label in enumerate(comparison.labels) if label in evident]
    if len(places) < 2:
        yield from _two_alike(comparison, view)
        return
    first, *rest = sorted(places, key=lambda place: -float(view.means[place]))
    names = {place: shortened(comparison.labels[place], LONGEST_NAME) for place in places}
    checks = {place: paired_check(view, first, place, names[place]) for place in rest}
    above = [place for place, check in checks.items() if check.p is not None and check.p <= SIGNIFICANT]
    alike = [names[place] for place in rest if place not in above]
    if alike:
        yield f"{names[first]} cannot be told from {listed(alike)}."
    if above:
        nearest = above[0]
        more = f", and than {len(above) - 1} more" if len(above) > 1 else ""
        yield f"{names[first]} is higher than {names[nearest]}, {checks[nearest].figure}{more}."


def _two_alike(comparison: Comparison, view: View) -> Iterator[str]:
    """That the only two trained models are not distinguishable; nothing where they are."""
    trained = [place for place, result in enumerate(comparison.results) if result.kind is ModelKind.TRAINED]
    if len(trained) == 2:
        names = [shortened(comparison.labels[place], LONGEST_NAME) for place in trained]
        check = paired_check(view, trained[0], trained[1], names[1])
        if check.p is not None and check.p > SIGNIFICANT:
            yield f"{names[0]} and {names[1]} cannot be told apart, {check.figure}."
