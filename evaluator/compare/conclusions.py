"""What the tasks together say of models, and which of those that their scores are evidence for is ahead."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from audio_compositionality.dataset_builder.rendered import is_preset
from audio_compositionality.support.text import listed, shortened

from .comparison import Comparison, View
from .loading import ModelKind, asked_of
from .statistics import SIGNIFICANT
from .tables import versioned_title
from .verdicts import (
    LONGEST_NAME,
    QUESTIONS,
    Verdict,
    VerdictAnswer,
    VerdictCheck,
    VerdictQuestion,
    combined,
    paired_check,
    question_words,
    verdicts,
)

MOST_UNREAD = 0.5
"""The share of answers without a choice above which a score says how a model writes, and not what it hears."""


@dataclass(frozen=True)
class TaskVerdict:
    """A verdict with the comparison that it is of."""

    comparison: Comparison
    verdict: Verdict


@dataclass(frozen=True)
class ModelVerdict:
    """What the tasks together say of one model.

    Attributes:
        label: of the model.
        tasks: those that decide: `TaskInfo.is_headline`, or all where there is none of these. All ask the same kind of
            model.
        beside: the others, which are told beside.
    """

    label: str
    tasks: tuple[TaskVerdict, ...]
    beside: tuple[TaskVerdict, ...] = ()

    @property
    def kind(self) -> str:
        """What the tasks ask the model to be, in words: one that embeds texts too is judged twice."""
        return asked_of(self.tasks[0].comparison.info)

    @property
    def words(self) -> dict[str, str]:
        """For each of `QUESTIONS` what the model has to be above, in words."""
        return question_words(self.tasks[0].comparison.info)

    @property
    def questions(self) -> dict[str, VerdictAnswer]:
        """For each of `QUESTIONS` its answer over the tasks that decide; `told` has that of each of them."""
        return {
            name: combined([task.verdict.questions[number].answer for task in self.tasks])
            for number, name in enumerate(QUESTIONS)
        }

    def told(self, name: str) -> tuple[Told, ...]:
        """What the tasks that decide say of one of `QUESTIONS`, those that say the same together."""
        number = QUESTIONS.index(name)
        said: dict[tuple[VerdictAnswer, bool], list[str]] = {}
        for title, task in zip(self.titles, self.tasks, strict=True):
            question = task.verdict.questions[number]
            said.setdefault((question.answer, question.is_below), []).append(title)
        return tuple(
            Told(listed(titles) if len(said) > 1 else "", answer, is_below)
            for (answer, is_below), titles in said.items()
        )

    def references(self, name: str) -> str:
        """What one of `QUESTIONS` compares with, in words: with what is there, or what is missing where nothing is."""
        questions = [task.verdict.questions[QUESTIONS.index(name)] for task in self.tasks]
        return listed(list(dict.fromkeys(one.words for one in questions if one.checks))) or questions[0].words

    @property
    def titles(self) -> tuple[str, ...]:
        """Of the tasks that decide, with their data where two have the same."""
        return _titles([task.comparison for task in self.tasks])

    @property
    def is_evidence(self) -> bool:
        """Whether no score that decides is explained by what needs no learning."""
        return all(task.verdict.is_evidence for task in self.tasks)

    @property
    def unread(self) -> tuple[str, ...]:
        """Tasks most of whose answers by the model name no option, be it that it refuses: how many do."""
        return tuple(filter(None, (_unread(task) for task in (*self.tasks, *self.beside))))

    @property
    def conclusion(self) -> str:
        """By the tasks that decide, one sentence; another one says what the others say. First, where it is so, that
        most answers cannot be read."""
        unread = f"Most answers name no option: {listed(self.unread)}. " if self.unread else ""
        return unread + self._of_all

    @property
    def _of_all(self) -> str:
        if not self.beside:
            return self._conclusion
        titles = _titles([task.comparison for task in (*self.tasks, *self.beside)])
        by, beside = titles[: len(self.tasks)], titles[len(self.tasks) :]
        evident = [title for title, task in zip(beside, self.beside, strict=True) if task.verdict.is_evidence]
        rest = [title for title in beside if title not in evident]
        said = []
        if evident and self.is_evidence:
            said.append(f"{listed(evident)} {'says' if len(evident) == 1 else 'say'} so too")
        elif evident:
            said.append(f"by {listed(evident)} it is above all three")
        if rest:
            said.append(f"by {listed(rest)} it is not shown to have learnt anything")
        return f"By {listed(by)}: {self._conclusion} Beside it: {'; '.join(said)}."

    @property
    def _conclusion(self) -> str:
        """One sentence where all tasks that decide say the same, else one for each group that does."""
        said: dict[tuple[str, str], list[str]] = {}
        for title, task in zip(self.titles, self.tasks, strict=True):
            said.setdefault((_kind(task.verdict), _found(task.verdict)), []).append(title)
        kinds = [kind for kind, _ in said]
        if len(said) == 1:
            return "".join(f"{kind}: {reason}." for kind, reason in said)
        if _ABOVE in kinds:
            parts = [
                f"By {listed(titles)}: {kind[0].lower()}{kind[1:]}: {reason}."
                for (kind, reason), titles in said.items()
            ]
            return " ".join(parts)
        lead = _NOTHING if _NOTHING in kinds else _OPEN
        return " ".join((f"{lead}.", *(f"By {listed(titles)}: {reason}." for (_, reason), titles in said.items())))


@dataclass(frozen=True)
class Told:
    """What some tasks say alike of a model and of one of `QUESTIONS`.

    Attributes:
        tasks: their titles, in words; empty where all say it.
        answer: of the question.
        is_below: whether the model is surely below what it has to be above.
    """

    tasks: str
    answer: VerdictAnswer
    is_below: bool

    @property
    def text(self) -> str:
        """In words: "no, below"; with the tasks behind it where not all say so."""
        return f"{self.answer.value}{', below' if self.is_below else ''}{f' ({self.tasks})' if self.tasks else ''}"


_ABOVE, _NOTHING, _OPEN = (
    "Above all three",
    "No evidence of learning in these scores",
    "Not shown to have learnt anything",
)


def _kind(verdict: Verdict) -> str:
    """How a conclusion begins."""
    if verdict.is_evidence:
        return _ABOVE
    return _NOTHING if verdict.flags or any(one.answer is VerdictAnswer.NO for one in verdict.questions) else _OPEN


def _found(verdict: Verdict) -> str:
    """What one task says of a model: what it is below, what it is not above, what cannot be told."""
    if verdict.is_evidence:
        return f"neither {', nor '.join(question.words for question in verdict.questions)} explains its scores"
    below = [name for question in verdict.questions for name in _references(question, is_below=True)]
    level = [name for question in verdict.questions for name in _references(question, is_below=False)]
    placed = [f"below {listed(below)}"] if below else []
    placed += [f"not above {' nor above '.join(level)}"] if level else []
    reasons = (*([f"it is {' and '.join(placed)}"] if placed else []), *verdict.flags)
    if reasons:
        return "; ".join(reasons)
    open_ = [question.words for question in verdict.questions if question.answer is VerdictAnswer.UNKNOWN]
    return f"whether it is above {' and above '.join(open_)} cannot be told"


def _references(question: VerdictQuestion, *, is_below: bool) -> list[str]:
    """What a model is surely below, by all that is compared, or otherwise not above, of what a question names."""
    checks: dict[str, list[VerdictCheck]] = {}
    for check in question.checks:
        if check.decides:
            checks.setdefault(_reference(question, check), []).append(check)
    failed = {name: alike for name, alike in checks.items() if any(check.answer is VerdictAnswer.NO for check in alike)}
    return [name for name, alike in failed.items() if all(check.is_lower for check in alike) == is_below]


def _reference(question: VerdictQuestion, check: VerdictCheck) -> str:
    return question.words if question.name == "floor" else check.reference


def _titles(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Titles of tasks, with the name of the data where two have the same, and with all of it where that does not do."""
    forms: tuple[Callable[[Comparison], str], ...] = (
        lambda one: one.info.title,
        lambda one: f"{one.info.title} on {shortened(one.data_name, LONGEST_NAME)}",
        lambda one: f"{versioned_title(one.info, one.version)} on {one.data_name} (data {one.fingerprint[:8]})",
    )
    counts = [Counter(map(form, comparisons)) for form in forms]
    return tuple(
        next((form(one) for form, count in zip(forms, counts, strict=True) if count[form(one)] == 1), forms[-1](one))
        for one in comparisons
    )


def model_verdicts(comparisons: Sequence[Comparison]) -> tuple[ModelVerdict, ...]:
    """The verdicts of all models over all comparisons, in the order in which models first stand in them; those by tasks
    of audio encoders, those by tasks of audio–text encoders and so on are apart."""
    groups: dict[str, dict[str, list[TaskVerdict]]] = {}
    for comparison in comparisons:
        by_label = groups.setdefault(asked_of(comparison.info), {})
        for verdict in verdicts(comparison):
            by_label.setdefault(verdict.label, []).append(TaskVerdict(comparison, verdict))
    return tuple(_of_tasks(label, tasks) for by_label in groups.values() for label, tasks in by_label.items())


@dataclass(frozen=True)
class Judged:
    """The verdicts by the tasks of one kind of model.

    Attributes:
        kind: of model, in words.
        words: what models have to be above, in words; see `QUESTIONS`.
        models: a verdict each; none where all results are of baselines and untrained networks.
    """

    kind: str
    words: dict[str, str]
    models: tuple[ModelVerdict, ...]

    @property
    def evident(self) -> list[str]:
        """Labels of the models whose scores are evidence of something learnt."""
        return [model.label for model in self.models if model.is_evidence]

    @property
    def unread(self) -> list[ModelVerdict]:
        """Models most of whose answers to the questions of a task name no option."""
        return [model for model in self.models if model.unread]

    @property
    def headline(self) -> str:
        """What the scores of all models are evidence of, in sentences: of those that are `evident`, whose names stand
        before it, what they are above; where there is none, that, and which are below what."""
        if self.evident:
            return self._of_evident
        tasks = list(dict.fromkeys(title for model in self.models for title in model.titles))
        partly = [(model, task) for model in self.models for task in zip(model.titles, model.tasks, strict=True)]
        ahead: dict[str, list[str]] = {}
        for model, (title, task) in partly:
            if task.verdict.is_evidence:
                ahead.setdefault(title, []).append(shortened(model.label, LONGEST_NAME))
        if len(self.models) > 1:
            by = f" by all of {listed(tasks)}" if ahead else ""
            said = f"None of the {len(self.models)} models is shown to be above what needs no learning{by}, "
            said += "so no order among them says that one is better."
        elif ahead:
            said = f"Not by all of {listed(tasks)} the one model here is shown to be above what needs no learning."
        else:
            said = "The score of the one model here is no evidence that it learnt anything."
        more = [f"By {title} alone {listed(names)} {_is(names)}." for title, names in ahead.items()]
        return " ".join((said, *more, *self._below))

    @property
    def _of_evident(self) -> str:
        models = [model for model in self.models if model.is_evidence]
        questions = [question for model in models for task in model.tasks for question in task.verdict.questions]
        words = list(dict.fromkeys(question.words for question in questions))
        if len(models) > 1:
            words = [word.replace("its untrained twin", "their untrained twins") for word in words]
        titles = {model.titles for model in models}
        by = f" by {listed(next(iter(titles)))}" if len(titles) == 1 and len(next(iter(titles))) > 1 else ""
        said = f"{_is(models)} above {listed(words)}{by}."
        rest = len(self.models) - len(models)
        if rest:
            more = "The other" if rest == 1 else "The others"
            said += f" {more} of {len(self.models)} models {'is' if rest == 1 else 'are'} not shown to be."
        return said

    @property
    def _below(self) -> list[str]:
        """Of the untrained twins and of what describes plainly: how many models are surely below, by which tasks."""
        counts: dict[str, Counter[str]] = {}
        for model in self.models:
            for title, task in zip(model.titles, model.tasks, strict=True):
                for question in task.verdict.questions[:2]:
                    for name in _references(question, is_below=True):
                        counts.setdefault(name, Counter())[title] += 1
        many = len({title for model in self.models for title in model.titles}) > 1
        if len(self.models) == 1:
            said = [f"below {name}{f' by {listed(list(tasks))}' if many else ''}" for name, tasks in counts.items()]
            return [f"It is significantly {', and '.join(said)}."] if said else []
        return [
            f"Significantly below {name}: "
            + ", ".join(f"{n} of {len(self.models)}{f' by {title}' if many else ''}" for title, n in tasks.items())
            + "."
            for name, tasks in counts.items()
        ]


def _is(members: Sequence[object]) -> str:
    return "is" if len(members) == 1 else "are"


def judged_by_kind(comparisons: Sequence[Comparison], judged: Sequence[ModelVerdict]) -> list[Judged]:
    """Verdicts by the kind of model that tasks ask for, in the order of the comparisons."""
    first: dict[str, Comparison] = {}
    for comparison in comparisons:
        first.setdefault(asked_of(comparison.info), comparison)
    return [
        Judged(kind, question_words(comparison.info), tuple(model for model in judged if model.kind == kind))
        for kind, comparison in first.items()
    ]


def _unread(task: TaskVerdict) -> str:
    """How many answers of a model name no option, where most do; else empty."""
    info = task.comparison.info
    measures = task.comparison.results[task.verdict.place].result.measures
    # The first share is of all that name none, refusals among them.
    for name, whole in () if info.profile is None else info.profile.shares[:1]:
        part, every = measures.get(name), measures.get(whole)
        if part and every and part > every * MOST_UNREAD:
            return f"{part:,.0f} of {every:,.0f} ({info.title})"
    return ""


def _of_tasks(label: str, tasks: Sequence[TaskVerdict]) -> ModelVerdict:
    headline = tuple(task for task in tasks if _decides(task.comparison))
    beside = tuple(task for task in tasks if not _decides(task.comparison))
    return ModelVerdict(label, headline, beside) if headline else ModelVerdict(label, beside)


def _decides(comparison: Comparison) -> bool:
    """Whether it is of a headline task on recordings: to our own timbres, which presets have, no model was trained."""
    return comparison.info.is_headline and not is_preset(comparison.dataset)


def leading_sentences(comparison: Comparison, evident: Collection[str]) -> Iterator[str]:
    """Which model is the highest by the measure that the task ranks by, and which it can be told from.

    Args:
        comparison: of whose models.
        evident: labels of the models whose scores are evidence of something learnt. No order is told of the others:
            what needs no learning explains theirs.
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
    """That two models, the only ones that were trained, cannot be told apart; nothing where they can be."""
    trained = [place for place, result in enumerate(comparison.results) if result.kind is ModelKind.TRAINED]
    if len(trained) == 2:
        names = [shortened(comparison.labels[place], LONGEST_NAME) for place in trained]
        check = paired_check(view, trained[0], trained[1], names[1])
        if check.p is not None and check.p > SIGNIFICANT:
            yield f"{names[0]} and {names[1]} cannot be told apart, {check.figure}."
