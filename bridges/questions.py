"""A task of questions, answered by an option or freely, as other suites put it: a prompt at a time, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from audio_compositionality.dataset_builder.data import Clip, Row
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.base import ClipError
from audio_compositionality.encoders.controls import CONTROLS, ControlKind
from audio_compositionality.encoders.options import DIRECT_TOKENS
from audio_compositionality.evaluator.run.answers import clips_about, other_clips
from audio_compositionality.evaluator.run.opened import OpenedTask, open_task
from audio_compositionality.metrics.answers import match_answer
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest
from audio_compositionality.tasks.base import Outputs, Task, TaskError
from audio_compositionality.tasks.registry import list_tasks, load_task
from audio_compositionality.tasks.shapes.asking import DIRECT, ONE_ORDER, FreeAnswerTask
from audio_compositionality.tasks.shapes.questions import QuestionTask, kind_of_row


@dataclass(frozen=True)
class PosedQuestion:
    """A question, in one order of its options where it has some, as it is put to a model.

    Attributes:
        id: the row's; where the row is put in several orders, with ``?`` and the number of the order, from 0.
        row: of the data.
        prompt: with the options, lettered.
        options: in the order of the prompt; none where answers are free.
        group: what the row shares its sounds with; scores within a group are not independent.
        about: ids of the clips that are heard.
        instead_of: ids of its own clips if others are played instead; else empty.
        free: the task that scores free answers; None if the question has options.
    """

    id: str
    row: Row
    prompt: str
    options: tuple[str, ...]
    group: str
    about: tuple[str, ...]
    instead_of: tuple[str, ...] = ()
    free: FreeAnswerTask | None = None

    @property
    def kind(self) -> str:
        """The kind of question; ``all`` where the data name none."""
        return kind_of_row(self.row)

    def option_of(self, answer: str) -> str | None:
        """The option that an answer names, by the rules of the metrics; None where it names none, or is free."""
        if self.free is not None:
            return None
        match = match_answer(answer, list(self.options))
        return None if match.option is None else self.options[match.option]

    @property
    def answer(self) -> str:
        """The right answer."""
        return str(self.row["answer"]) if self.free is None else self.free.answer_of(self.row)

    def score(self, answer: str) -> float:
        """The score of an answer: whether it names the right option, 1 or 0; of a free one, as its task scores it."""
        if self.free is not None:
            return self.free.score_of(self.row, answer)
        return float(self.option_of(answer) == self.row["answer"])


@dataclass(frozen=True)
class PosedTask:
    """A task with its data, as it is put to a model.

    Attributes:
        opened: the task.
        control: the change of the sound; None for the sound as it is.
        questions: by their ids, in the order of the data.
    """

    opened: OpenedTask
    control: ControlKind | None
    questions: Mapping[str, PosedQuestion]

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measures of `scores`, the one that the task ranks by first."""
        info = self.opened.task.info
        return tuple(dict.fromkeys(measure.name for measure in (info.measure(info.ranks_by), *info.shown)))

    @property
    def new_tokens(self) -> int:
        """Tokens that an answer may need."""
        return max(one.new_tokens or DIRECT_TOKENS for one in self.opened.inputs)

    def sound(self, question: PosedQuestion) -> Clip:
        """What is heard with a question, under the control; several clips are one behind the other.

        Raises:
            ClipError: a clip is unusable.
        """
        (clip,) = clips_about(
            self.opened,
            [question.about],
            keep_invalid=True,
            instead_of=[question.instead_of] if question.instead_of else (),
        )
        if clip.problem is not None:
            raise ClipError(clip.problem, 0, clip.id)
        change = self.control.clips if self.control else None
        return clip if change is None else replace(clip, waveform=change(clip.waveform[None], clip.sample_rate)[0])

    def scores(self, answers: Mapping[str, str]) -> dict[str, float]:
        """The task's own `measures` of answers, by the ids of their questions.

        A row counts where it is answered in all orders. Empty where the task cannot score these rows alone.
        """
        task = self.opened.task
        of_row: dict[str, list[str | None]] = {}
        for id, question in self.questions.items():
            of_row.setdefault(question.row["id"], []).append(answers.get(id))
        rows = [row for row in self.opened.rows if None not in of_row.get(row["id"], [None])]
        try:
            settings = task.settings(rows, self.opened.settings)
        except TaskError:
            return {}
        outputs = Outputs(answers=[str(answer) for row in rows for answer in of_row[row["id"]]])
        values = task.score(rows, outputs, settings, "cpu", False).measures
        return {name: float(value) for name in self.measures if (value := values[name]) is not None}


def tasks_of_questions() -> list[Task]:
    """Return all tasks of questions, including tasks of installed packages."""
    return [task for task in list_tasks() if isinstance(task, QuestionTask | FreeAnswerTask)]


@lru_cache(maxsize=8)
def pose(
    name: str, data: str = "mini", control: str = "", prompt: str = DIRECT, orders: int | str = ONE_ORDER
) -> PosedTask:
    """A task as it is put to models; it is opened once.

    Args:
        name: of the task.
        data: anything that `open_data` takes.
        control: a change of the sound, ``without-audio``; empty for none.
        prompt, orders: see `AskingSpec`.

    Raises:
        AudioCompositionalityError: there is no such task, control or setting, or the data cannot be asked about.
    """
    controls = {one.name: one for one in CONTROLS.values() if one.clips is not None or one.moves}
    kind = controls.get(control.removesuffix(":"))
    if control and kind is None:
        raise InputError(f"{control!r} is no control that changes sound; {nearest(control, list(controls))}")
    opened = open_task(load_task(name), open_data(data), {"prompt": prompt, "orders": orders})
    free = opened.task if isinstance(opened.task, FreeAnswerTask) else None
    is_moved = kind is not None and kind.moves
    about = iter(other_clips(opened) if is_moved else opened.asked_about)
    own = iter(opened.asked_about)
    questions: dict[str, PosedQuestion] = {}
    for row, one in zip(opened.rows, opened.inputs, strict=True):
        group = one.group or str(row["group"] or row["id"])
        for number, (text, options) in enumerate(
            zip(one.prompts, one.options or ((),) * len(one.prompts), strict=True)
        ):
            id = f"{row['id']}?{number}" if len(one.prompts) > 1 else str(row["id"])
            questions[id] = PosedQuestion(
                id, row, text, options, group, next(about), next(own) if is_moved else (), free
            )
    return PosedTask(opened, kind, questions)
