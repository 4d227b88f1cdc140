"""The board over all tasks: models by benchmarks, each cell a verdict and a number; and the conclusions on one model.

Every word of a verdict comes from `evaluator.compare`: the signs and words of a `Standing`, the sentence of
`tasks_sentence`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files

import jinja2

from audio_compositionality.evaluator.compare.loading import ModelKind, asked_of
from audio_compositionality.evaluator.compare.model_verdicts import (
    MOST_LINES,
    OF_OUR_DATA,
    knows_generator,
    tasks_sentence,
)
from audio_compositionality.evaluator.compare.summary import SIGNS
from audio_compositionality.evaluator.compare.task_verdicts import Standing, TaskVerdict
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.base import TaskInfo
from audio_compositionality.tasks.registry import benchmark_info, list_tasks

from .board import LAST_TIER, REPORTED, VERIFIED, Board, DataKey, Order, Shown, is_older
from .tables import LONGEST_SHOWN, NOT_STATED, data_name, interval_words, query_of

FACTS = ("verified", "paradigm", "parameters", "date", "submitter")
"""Headings of the facts about a model, behind its scores."""

ALL_BENCHMARKS = "all benchmarks"
"""The choice of a column a benchmark; else a column a task of one benchmark."""

Submitted = tuple[str, str]
"""A model's id and who sent it, see `Entry.sender`: no entry replaces another sender's entry."""


@dataclass(frozen=True)
class ShownTask:
    """A task with entries on the chosen data, in the installed version.

    Attributes:
        info: of the task.
        key: of its table.
        rows: of its table.
        order: see `Board.order`.
    """

    info: TaskInfo
    key: DataKey
    rows: tuple[Shown, ...]
    order: Order

    def of_model(self, model: Submitted) -> Shown | None:
        """The row that stands for a submitter's model: of several the verified one, then the newest, whatever their
        scores."""
        rows = [row for row in self.rows if _submitted(row) == model]
        return max(rows, key=lambda row: row.entry.precedence, default=None)


@dataclass(frozen=True)
class StandingColumn:
    """A column of the overview.

    Attributes:
        heading: the benchmark's title, or the task's.
        tasks: the first gives verdict and number; the cell counts the tasks in which the model is above all baselines.
    """

    heading: str
    tasks: tuple[ShownTask, ...]

    @property
    def lead(self) -> str:
        """The measure behind the number, and where the heading does not say it, its task."""
        info = self.tasks[0].info
        measure = info.measure(info.ranks_by).heading
        return ", ".join(dict.fromkeys(text for text in (info.title, measure) if text != self.heading))


@dataclass(frozen=True)
class StandingCell:
    """A model in a column.

    Attributes:
        number: the score by the measure that the first task is ranked by; a dash without an entry.
        interval: its 95 % interval in brackets; empty where the measure has none.
        standing: of the model in the first task; None where nothing is judged.
        several: if the model has entries of several tasks, in how many it is above all baselines, in words.
        twin: how the submitter adds the missing twin, in words; empty if it is there.
    """

    number: str
    interval: str = ""
    standing: Standing | None = None
    several: str = ""
    twin: str = ""


@dataclass(frozen=True)
class StandingRow:
    """A model in all columns.

    Attributes:
        model: its id.
        sender: of its entries, see `Entry.sender`.
        kind: of the model.
        is_ours: whether it was trained on our own generator, as its result states.
        learnt: in how many tasks it is above its twin.
        cells: one a column.
        facts: further cells, by the headings `FACTS`.
        rank: among the models that are above every baseline in the first column, shared by those that a paired test
            does not tell apart; 0 for others.
    """

    model: str
    sender: str
    kind: ModelKind
    is_ours: bool
    learnt: int
    cells: tuple[StandingCell, ...]
    facts: tuple[str, ...]
    rank: int = 0

    @property
    def said(self) -> str:
        """What else it is than a model of its own training."""
        return OF_OUR_DATA if self.is_ours else "" if self.kind is ModelKind.TRAINED else self.kind.value


def data_names(board: Board) -> list[str]:
    """Names of the data with entries of installed versions of tasks, those with most entries first."""
    counts: Counter[str] = Counter()
    for task, keys in board.data.items():
        for key in keys:
            if not is_older(task, key):
                counts[data_name(board, task, key)] += len(board.rows(task, key))
    return sorted(counts, key=lambda name: (-counts[name], name))


def benchmark_names(board: Board, data: str) -> list[str]:
    """Names of the benchmarks with entries on data."""
    return list(dict.fromkeys(task.info.benchmark for task in _tasks_on(board, data)))


def standing_columns(board: Board, data: str, benchmark: str) -> list[StandingColumn]:
    """The columns of the overview: a benchmark each, or a task each of one benchmark."""
    tasks = _tasks_on(board, data)
    if benchmark in {task.info.benchmark for task in tasks}:
        return [StandingColumn(task.info.title, (task,)) for task in tasks if task.info.benchmark == benchmark]
    groups: dict[str, list[ShownTask]] = {}
    for task in tasks:
        groups.setdefault(task.info.benchmark, []).append(task)
    return [StandingColumn(benchmark_info(name).title, tuple(of)) for name, of in groups.items()]


def _tasks_on(board: Board, data: str) -> list[ShownTask]:
    """The tasks with entries on data: of a first look first, then those not on request, then those with most rows."""
    shown = []
    for number, task in enumerate(list_tasks()):
        for key in board.data.get(task.info.name, ()):
            if data_name(board, task.info.name, key) == data and not is_older(task.info.name, key):
                rows = tuple(board.rows(task.info.name, key))
                one = ShownTask(task.info, key, rows, board.order(task.info.name, key))
                shown.append((not task.info.is_first_look, task.info.on_request, -len(rows), number, one))
    benchmarks = list(dict.fromkeys(task.info.benchmark for task in list_tasks()))
    shown.sort(key=lambda one: (benchmarks.index(one[4].info.benchmark), one[:4]))
    return [one for *_, one in shown]


def data_label(board: Board, data: str) -> str:
    """The name of data with the number of samples that its tasks score."""
    numbers = sorted({row.entry.result.n for task in _tasks_on(board, data) for row in task.rows})
    return f"{data}, {' to '.join(f'{n:,}' for n in dict.fromkeys((numbers[0], numbers[-1])))} samples"


def standing_rows(columns: Sequence[StandingColumn], *, controls: bool = True) -> list[StandingRow]:
    """The rows of the overview: models that are above their twin in a task first, then what they are judged beside.

    Among the former, the tier in the first column's task decides, see `Shown.tier`: no score in that task places a
    model that is not above its twin there above one that is. Models above every baseline there have ranks and the order
    of their scores; for the others the number of tasks comes before the score.

    Args:
        columns: of the overview.
        controls: also twins, controls and baselines.
    """
    groups: dict[Submitted, list[Shown]] = {}
    for one in (one for column in columns for task in column.tasks for one in task.rows):
        groups.setdefault(_submitted(one), []).append(one)
    order = list(ModelKind)
    keyed = []
    for model, rows in groups.items():
        kind = _kind(rows)
        if kind is not ModelKind.TRAINED and not controls:
            continue
        every = (task.of_model(model) for column in columns for task in column.tasks)
        shown = [row for row in every if row is not None]
        learnt = sum(row.is_learnt for row in shown)
        evident = sum(row.tier == 0 for row in shown)
        cells = []
        for column in columns:
            chosen = [task.of_model(model) for task in column.tasks]
            in_tasks = [row for row in chosen if row is not None and row.verdict is not None]
            above = sum(row.tier == 0 for row in in_tasks)
            row = column.tasks[0].of_model(model)
            several = f"{above} of {len(in_tasks)} above" if len(in_tasks) > 1 or (in_tasks and row is None) else ""
            value = None if row is None else row.entry.result.measures.get(column.tasks[0].info.ranks_by)
            number = (
                "–" if value is None else f"{value:.3g}" if abs(value) >= 1e12 else number_text(value, 3, minus="−")
            )
            standing, interval, twin = None, None, ""
            if row is not None:
                stated = row.entry.scores.get(column.tasks[0].info.ranks_by)
                interval = None if stated is None else stated.interval
                standing = None if row.verdict is None else row.verdict.standing
                if any(one.is_missing for one in row.twin):
                    name = shortened(column.tasks[0].info.twin[0] + model[0], LONGEST_SHOWN)
                    twin = f"no twin: submit {name}"
            bounds = "" if interval is None else f"[{interval_words(interval).replace(' to ', ', ')}]"
            cells.append(StandingCell(number, bounds, standing, several, twin))
        is_ours = any(knows_generator(row.entry.result.model.trained_on) for row in shown)
        lead = columns[0].tasks[0]
        first = lead.of_model(model)
        # Without an entry of the first task, nothing is shown there.
        tier = LAST_TIER if first is None else first.tier
        value = None if first is None else first.entry.result.measures.get(lead.info.ranks_by)
        score = float("-inf") if value is None else float(value)
        rank = 0
        if kind is ModelKind.TRAINED and first is not None and tier == 0:
            # One that was not compared takes the rank of the model before it.
            rank = lead.order.ranks.get(first.entry.id, 1)
        key = (order.index(kind), not learnt, tier, -score if rank else 0, -evident, -learnt, -score, model)
        newest = max(shown, key=lambda row: row.entry.precedence).entry
        verified = sum(row.entry.status == VERIFIED for row in shown)
        parameters = newest.result.model.parameters
        facts = (
            "✓ verified" if verified == len(shown) else f"{verified} of {len(shown)}" if verified else REPORTED,
            shortened(newest.result.model.paradigm or NOT_STATED, LONGEST_SHOWN),
            "–" if parameters is None else f"{parameters / 1e6:,.1f} M",
            newest.result.date[:10],
            shortened(newest.submitter or ("–" if newest.status == REPORTED else "maintainers"), LONGEST_SHOWN),
        )
        keyed.append((key, StandingRow(*model, kind, is_ours, learnt, tuple(cells), facts, rank)))
    placed: list[StandingRow] = []
    for _, unranked in sorted(keyed, key=lambda pair: pair[0]):
        before = placed[-1].rank if placed else 0
        placed.append(replace(unranked, rank=max(before, unranked.rank)) if unranked.rank else unranked)
    return placed


def _submitted(row: Shown) -> Submitted:
    return row.entry.model, row.entry.sender


def _kind(rows: Sequence[Shown]) -> ModelKind:
    """The kind of a sender's model: one to be judged if any of its cards says so."""
    kinds = {row.entry.kind for row in rows}
    return next(kind for kind in ModelKind if kind in kinds)


def standing_html(columns: Sequence[StandingColumn], rows: Sequence[StandingRow]) -> str:
    """Return the overview as a table in HTML, and below it the models that do not differ significantly; submitters'
    texts are escaped.

    Its sections are the models that are above their twin in a task at least, those without such evidence, and the
    twins, controls and baselines.
    """
    judged = [row for row in rows if row.kind is ModelKind.TRAINED]
    sections = (
        ("Above their twin in one task or more", [row for row in judged if row.learnt]),
        ("No evidence of learning yet", [row for row in judged if not row.learnt]),
        ("For comparison: twins, controls and baselines", [row for row in rows if row.kind is not ModelKind.TRAINED]),
    )
    leads = [column.tasks[0] for column in columns]
    orders = [f"{task.info.title}: {sentence}" for task in leads for sentence in task.order.sentences]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters.update(query=query_of, shortened=lambda text: shortened(text, LONGEST_SHOWN))
    template = environment.from_string(files(__package__).joinpath("standings.html").read_text("utf-8"))
    html = template.render(
        orders=" ".join(orders[:MOST_LINES]), columns=columns, sections=sections, signs=SIGNS, facts=FACTS
    )
    # Gradio's own templates would read braces, dollars and backticks.
    return "".join(_TEMPLATE_SIGNS.get(sign, sign) for sign in re.sub(r">\s+<", "><", html).strip())


_TEMPLATE_SIGNS = {sign: f"&#{ord(sign)};" for sign in "{}$`"}


# ----- Conclusions on one model


_BESIDE = {
    ModelKind.UNTRAINED: "an untrained network: models are judged beside it, and it is not judged itself",
    ModelKind.BASELINE: "a baseline: models are judged beside it, and it is not judged itself",
    ModelKind.CONTROL: "a model under a control: models are judged beside it, and it is not judged itself",
}


_DataRow = tuple[TaskInfo, DataKey, Shown]
"""A row with its task and data."""


def model_conclusion(board: Board, model: str) -> str:
    """Return the conclusions on a model from its rows of installed versions of tasks, in one paragraph of plain text,
    separately for each sender's rows; empty for an unknown model."""
    rows = [
        (task.info, key, row)
        for task in list_tasks()
        for key in board.data.get(task.info.name, ())
        for row in board.rows(task.info.name, key)
        if row.entry.model == model
    ]
    senders: dict[str, list[_DataRow]] = {}
    # Verified entries first.
    for one in sorted(rows, key=lambda one: (one[2].entry.verified_on is None, one[2].entry.sender)):
        senders.setdefault(one[2].entry.sender, []).append(one)
    return " ".join(_conclusion(board, model, sender, of) for sender, of in senders.items())


def _conclusion(board: Board, model: str, sender: str, rows: Sequence[_DataRow]) -> str:
    """What may be concluded of one sender's rows of a model."""
    name = f"{shortened(model, LONGEST_SHOWN)} ({shortened(sender, LONGEST_SHOWN)})"
    current = [one for one in rows if not is_older(one[0].name, one[1])]
    kind = _kind([row for *_, row in current or rows])
    if kind is not ModelKind.TRAINED:
        return f"{name} is {_BESIDE[kind]}."
    if not current:
        return f"{name} has no entry of an installed version of a task: nothing may be concluded."
    groups: dict[str, list[tuple[str, TaskVerdict]]] = {}
    counts = Counter((info.name, key) for info, key, row in current if row.verdict is not None)
    for info, key, row in current:
        if row.verdict is not None:
            # The title distinguishes rows of one task and data.
            entry = f" (entry {row.entry.id[-16:][:8]})" if counts[info.name, key] > 1 else ""
            title = f"{info.title} on {data_name(board, info.name, key)}{entry}"
            groups.setdefault(asked_of(info), []).append((title, row.verdict))
    is_ours = any(knows_generator(row.entry.result.model.trained_on) for *_, row in current)
    sentences = []
    for asked, of in groups.items():
        tasks = f", tasks for {asked}" if len(groups) > 1 else ""
        trained = f" ({OF_OUR_DATA})" if is_ours else ""
        sentences.append(f"{name}{trained}{tasks}: {tasks_sentence(of)}")
    return " ".join(sentences)
