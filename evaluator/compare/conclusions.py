"""Conclusions over all tasks: the models whose scores are evidence of something learnt, and which of them leads."""

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
"""Share of answers without a choice above which a score measures the format of answers, not perception."""


@dataclass(frozen=True)
class TaskVerdict:
    """A verdict with its comparison."""

    comparison: Comparison
    verdict: Verdict


@dataclass(frozen=True)
class ModelVerdict:
    """The verdict on one model over all tasks.

    Attributes:
        label: the model's.
        tasks: the deciding tasks: `TaskInfo.is_headline`, or all where none is. All need the same kind of model.
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
    def words(self) -> dict[str, str]:
        """The reference of each of `QUESTIONS`, in words."""
        return question_words(self.tasks[0].comparison.info)

    @property
    def questions(self) -> dict[str, VerdictAnswer]:
        """The answer to each of `QUESTIONS` over the deciding tasks; `told` has the answers by task."""
        return {
            name: combined([task.verdict.questions[number].answer for task in self.tasks])
            for number, name in enumerate(QUESTIONS)
        }

    def told(self, name: str) -> tuple[Told, ...]:
        """The answers of the deciding tasks to one of `QUESTIONS`; tasks with the same answer together."""
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
        """The references of one of `QUESTIONS`, in words: those present, or the missing ones where none is."""
        questions = [task.verdict.questions[QUESTIONS.index(name)] for task in self.tasks]
        return listed(list(dict.fromkeys(one.words for one in questions if one.checks))) or questions[0].words

    @property
    def titles(self) -> tuple[str, ...]:
        """Titles of the deciding tasks, with their data where two titles are equal."""
        return _titles([task.comparison for task in self.tasks])

    @property
    def is_evidence(self) -> bool:
        """Whether no score of a deciding task is explained by something that needs no learning."""
        return all(task.verdict.is_evidence for task in self.tasks)

    @property
    def unread(self) -> tuple[str, ...]:
        """For each task with a majority of answers that name no option, refusals included: their share, in words."""
        return tuple(filter(None, (_unread(task) for task in (*self.tasks, *self.beside))))

    @property
    def conclusion(self) -> str:
        """The conclusion of the deciding tasks in one sentence, and of the other tasks in another. Where most answers
        cannot be read, this comes first."""
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
        """One sentence where all deciding tasks agree, else one for each group that does."""
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
    """One answer to one of `QUESTIONS`, with the tasks that give it.

    Attributes:
        tasks: their titles, in words; empty where all tasks give it.
        answer: to the question.
        is_below: whether the model is surely below the reference.
    """

    tasks: str
    answer: VerdictAnswer
    is_below: bool

    @property
    def text(self) -> str:
        """In words: "no, below"; with the tasks behind it where they are not all."""
        return f"{self.answer.value}{', below' if self.is_below else ''}{f' ({self.tasks})' if self.tasks else ''}"


_ABOVE, _NOTHING, _OPEN = (
    "Above all three",
    "No evidence of learning in these scores",
    "Not shown to have learnt anything",
)


def _kind(verdict: Verdict) -> str:
    """The beginning of a conclusion."""
    if verdict.is_evidence:
        return _ABOVE
    return _NOTHING if verdict.flags or any(one.answer is VerdictAnswer.NO for one in verdict.questions) else _OPEN


def _found(verdict: Verdict) -> str:
    """One task's conclusion on a model: the references that it is below or not above, else the open ones."""
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
    """References of one question, in words: those that the model is surely below by every check, or else the others
    that it is not above."""
    checks: dict[str, list[VerdictCheck]] = {}
    for check in question.checks:
        if check.decides:
            checks.setdefault(_reference(question, check), []).append(check)
    failed = {name: alike for name, alike in checks.items() if any(check.answer is VerdictAnswer.NO for check in alike)}
    return [name for name, alike in failed.items() if all(check.is_lower for check in alike) == is_below]


def _reference(question: VerdictQuestion, check: VerdictCheck) -> str:
    return question.words if question.name == "floor" else check.reference


def _titles(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Titles of tasks, with the name of the data where two are equal, and the full name where that is not enough."""
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
    """The verdicts of all models over all comparisons, in order of first appearance; one each for the tasks of audio
    encoders, the tasks of audio–text encoders and so on."""
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
        words: the references, in words, by the names of `QUESTIONS`.
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
    def unread(self) -> list[ModelVerdict]:
        """Models most of whose answers to the prompts of a task name no option."""
        return [model for model in self.models if model.unread]

    @property
    def headline(self) -> str:
        """The conclusion on all models, in sentences: the references that the `evident` models, whose names stand
        before it, are above; where no model is `evident`, that, and the references that models are below."""
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
            said = "The score of the one model here is no evidence of learning."
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
        """Untrained twins and plain descriptions: how many models are surely below them, by which tasks."""
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
    # The first share counts all answers that name no option, refusals among them.
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
