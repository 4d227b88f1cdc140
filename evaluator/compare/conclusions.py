"""What the tasks together say of models, and which of those that their scores are evidence for is ahead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from audio_compositionality.dataset_builder.rendered import is_preset
from audio_compositionality.support.text import listed, shortened

from .comparison import Comparison, View
from .kinds import ModelKind, asked_of
from .statistics import SIGNIFICANT
from .verdicts import LONGEST_NAME, QUESTIONS, Answer, Verdict, combined, paired_check, question_words, verdicts

MOST = 0.5
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
    def questions(self) -> dict[str, Answer]:
        """For each of `QUESTIONS` its answer over the tasks that decide."""
        return {
            name: combined([task.verdict.questions[number].answer for task in self.tasks])
            for number, name in enumerate(QUESTIONS)
        }

    @property
    def below(self) -> dict[str, bool]:
        """For each of `QUESTIONS` whether a task that decides says that the model is surely below it."""
        return {
            name: any(task.verdict.questions[number].is_below for task in self.tasks)
            for number, name in enumerate(QUESTIONS)
        }

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
        by = listed([task.comparison.info.title for task in self.tasks])
        evident = [task.comparison.info.title for task in self.beside if task.verdict.is_evidence]
        rest = [task.comparison.info.title for task in self.beside if not task.verdict.is_evidence]
        said = [f"{listed(evident)} {'says' if len(evident) == 1 else 'say'} so too"] if evident else []
        if rest:
            said.append(f"by {listed(rest)} it is not shown to have learnt anything")
        return f"By {by}: {self._conclusion} Beside it: {'; '.join(said)}."

    @property
    def _conclusion(self) -> str:
        flags = list(dict.fromkeys(flag for task in self.tasks for flag in task.verdict.flags))
        if self.is_evidence and not flags:
            return f"Above all three: neither {', nor '.join(self.words.values())} explains its scores."
        answers = self.questions
        words = {question.name: question.words for task in self.tasks for question in task.verdict.questions}
        failed = [words[name] for name, answer in answers.items() if answer is Answer.NO]
        reasons = [f"it is not above {' nor above '.join(failed)}"] if failed else []
        if reasons or flags:
            return f"No evidence of learning in these scores: {'; '.join((*reasons, *flags))}."
        open_ = [words[name] for name, answer in answers.items() if answer is Answer.UNKNOWN]
        return f"Not shown to have learnt anything: whether it is above {' and above '.join(open_)} cannot be told."


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
    def below(self) -> int:
        """How many are surely below their untrained twin or what describes plainly."""
        return sum(model.below["twin"] or model.below["description"] for model in self.models)


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
        if part and every and part > every * MOST:
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
