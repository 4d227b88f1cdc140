"""The board over all tasks: models by benchmarks, each cell a verdict and a number; and what may be said of one model.

Every word of a verdict is that of `evaluator.compare`: the signs and words of a `Standing`, the sentence of
`tasks_sentence`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

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
from audio_compositionality.tasks.benchmarks import benchmark_info
from audio_compositionality.tasks.registry import list_tasks

from .board import LAST_TIER, Board, DataKey, Shown, is_older
from .tables import LONGEST_SHOWN, NOT_LEARNT, data_name, query_of

ALL_BENCHMARKS = "all benchmarks"
"""The choice of a column a benchmark; else a column a task of one benchmark."""

MOST_DIGESTS = 3
"""Most digests of data in the small print: each recipe of a preset has one."""


Submitted = tuple[str, str]
"""A model's id and who sent it, see `Entry.sender`: nobody's entry stands for that of another."""


@dataclass(frozen=True)
class ShownTask:
    """A task with entries on the chosen data, in the installed version.

    Attributes:
        info: of the task.
        key: of its table.
        rows: of its table.
        orders: see `Board.orders`.
    """

    info: TaskInfo
    key: DataKey
    rows: tuple[Shown, ...]
    orders: tuple[str, ...]

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
        tasks: the first gives verdict and number; of all, the cell says in how many the model is above all bars.
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
        number: the score by the measure that the first task is ranked by; a dash where there is no entry.
        standing: of the model in the first task; None where nothing is judged.
        several: where the model has entries of several tasks, in how many it is above all baselines, in words.
    """

    number: str
    standing: Standing | None = None
    several: str = ""


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
    """

    model: str
    sender: str
    kind: ModelKind
    is_ours: bool
    learnt: int
    cells: tuple[StandingCell, ...]


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
                one = ShownTask(task.info, key, rows, board.orders[task.info.name, key])
                shown.append((not task.info.is_first_look, task.info.on_request, -len(rows), number, one))
    benchmarks = list(dict.fromkeys(task.info.benchmark for task in list_tasks()))
    shown.sort(key=lambda one: (benchmarks.index(one[4].info.benchmark), one[:4]))
    return [one for *_, one in shown]


def data_label(board: Board, data: str) -> str:
    """The name of data with the number of samples that its tasks score."""
    numbers = sorted({row.entry.result.n for task in _tasks_on(board, data) for row in task.rows})
    return f"{data}, {' to '.join(f'{n:,}' for n in dict.fromkeys((numbers[0], numbers[-1])))} samples"


def data_note(board: Board, data: str) -> str:
    """The small print below the name of data: that there are others, and the beginnings of the fingerprints."""
    digests = dict.fromkeys(task.key.fingerprint[:8] for task in _tasks_on(board, data))
    more = len(data_names(board)) - 1
    choice = f"{more} other data {'set' if more == 1 else 'sets'}: choose here. " if more else ""
    return f"{choice}Digest {', '.join(list(digests)[:MOST_DIGESTS])}"


def standing_rows(columns: Sequence[StandingColumn], *, beside: bool = True) -> list[StandingRow]:
    """The rows of the overview: models that are above their twin in a task first, then what they are judged beside.

    Among the former, the tier in the first column's task decides, see `Shown.tier`, then the number of tasks, then the
    score: no score in that task places a model that is not above its twin there above one that is.

    Args:
        columns: of the overview.
        beside: also twins, controls and baselines.
    """
    groups: dict[Submitted, list[Shown]] = {}
    for row in (row for column in columns for task in column.tasks for row in task.rows):
        groups.setdefault(_submitted(row), []).append(row)
    order = list(ModelKind)
    keyed = []
    for model, rows in groups.items():
        kind = _kind(rows)
        if kind is not ModelKind.TRAINED and not beside:
            continue
        every = (task.of_model(model) for column in columns for task in column.tasks)
        shown = [row for row in every if row is not None]
        learnt = sum(row.is_learnt for row in shown)
        evident = sum(row.tier == 0 for row in shown)
        cells = tuple(_cell(column, model) for column in columns)
        is_ours = any(knows_generator(row.entry.result.model.trained_on) for row in shown)
        lead = columns[0].tasks[0]
        first = lead.of_model(model)
        # Without an entry of the first task, nothing is shown there.
        tier = LAST_TIER if first is None else first.tier
        key = (order.index(kind), not learnt, tier, -evident, -learnt, -_score(lead, model), model)
        keyed.append((key, StandingRow(*model, kind, is_ours, learnt, cells)))
    return [row for _, row in sorted(keyed, key=lambda pair: pair[0])]


def _submitted(row: Shown) -> Submitted:
    return row.entry.model, row.entry.sender


def _kind(rows: Sequence[Shown]) -> ModelKind:
    """The kind of a sender's model: one to be judged if any of its cards says so."""
    kinds = {row.entry.kind for row in rows}
    return next(kind for kind in ModelKind if kind in kinds)


def _score(task: ShownTask, model: Submitted) -> float:
    row = task.of_model(model)
    value = None if row is None else row.entry.result.measures.get(task.info.ranks_by)
    return float("-inf") if value is None else float(value)


def _cell(column: StandingColumn, model: Submitted) -> StandingCell:
    first, row = column.tasks[0], column.tasks[0].of_model(model)
    judged = [other for task in column.tasks if (other := task.of_model(model)) and other.verdict is not None]
    above = sum(other.tier == 0 for other in judged)
    several = f"{above} of {len(judged)} above" if len(judged) > 1 or (judged and row is None) else ""
    if row is None:
        return StandingCell("–", None, several)
    measure = first.info.measure(first.info.ranks_by)
    value = row.entry.result.measures.get(measure.name)
    number = "–" if value is None else f"{value:.3g}" if abs(value) >= 1e12 else number_text(value, 3, minus="−")
    if row.verdict is None:
        return StandingCell(number, None, several)
    return StandingCell(number, row.verdict.standing, several)


def standing_html(columns: Sequence[StandingColumn], rows: Sequence[StandingRow]) -> str:
    """The overview as a table in HTML, and above it which models cannot be told apart; strangers' texts are escaped.

    Its sections are the models that are above their twin in a task at least, those that are not shown to be learnt, and
    what models are judged beside.
    """
    heads = [
        _element("th", _element("span", column.heading) + _element("small", column.lead), scope="col")
        for column in columns
    ]
    sections = (
        ("Above their twin in one task or more", [row for row in rows if row.kind is ModelKind.TRAINED and row.learnt]),
        (f"Models {NOT_LEARNT}", [row for row in rows if row.kind is ModelKind.TRAINED and not row.learnt]),
        ("What models are judged beside", [row for row in rows if row.kind is not ModelKind.TRAINED]),
    )
    body = Markup().join(_section(title, members, len(columns)) for title, members in sections if members)
    head = _element("thead", _element("tr", _element("th", "model", scope="col") + Markup().join(heads)))
    table = _element("table", head + body)
    leads = [column.tasks[0] for column in columns]
    orders = [f"By {task.info.title}: {sentence}" for task in leads for sentence in task.orders]
    said = _element("p", " ".join(orders[:MOST_LINES]), class_="orders") if orders else Markup()
    # Gradio's templates would read braces, dollars and backticks.
    html = str(
        said + _element("div", table, class_="standings", tabindex="0", role="region", aria_label="Models by benchmark")
    )
    return "".join(_TEMPLATE_SIGNS.get(sign, sign) for sign in html)


_TEMPLATE_SIGNS = {sign: f"&#{ord(sign)};" for sign in "{}$`"}


def _element(name: str, content: str | Markup, **attributes: str) -> Markup:
    """An element of HTML; content that is no markup, and attributes, are escaped."""
    said = (Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), text) for key, text in attributes.items())
    return Markup("<{}{}>{}</{}>").format(name, Markup().join(said), content, name)


def _section(title: str, rows: Sequence[StandingRow], columns: int) -> Markup:
    head = _element("tr", _element("th", title, colspan=str(columns + 1), scope="rowgroup", class_="section"))
    return _element("tbody", head + Markup().join(map(_line, rows)), class_="" if rows[0].learnt else "quiet")


def _line(row: StandingRow) -> Markup:
    link = _element("a", shortened(row.model, LONGEST_SHOWN), href=query_of(row.model))
    kind = OF_OUR_DATA if row.is_ours else "" if row.kind is ModelKind.TRAINED else row.kind.value
    said = ", ".join(filter(None, (kind, shortened(row.sender, LONGEST_SHOWN))))
    name = _element("th", _element("bdi", link) + _element("small", said), scope="row")
    cells = Markup().join(map(_cell_html, row.cells))
    return _element("tr", name + cells)


def _cell_html(cell: StandingCell) -> Markup:
    if cell.standing is None:
        return _element("td", cell.number + (_element("small", cell.several) if cell.several else Markup()))
    said = "; ".join(filter(None, (cell.standing.value, cell.several)))
    shown = _element("strong", f"{SIGNS[cell.standing]} {cell.number}") + _element("small", said)
    return _element("td", shown, class_=f"standing-{cell.standing.value.replace(' ', '-')}")


# ----- What may be said of one model


_BESIDE = {
    ModelKind.UNTRAINED: "an untrained network: models are judged beside it, and it is not judged itself",
    ModelKind.BASELINE: "a baseline: models are judged beside it, and it is not judged itself",
    ModelKind.CONTROL: "a model under a control: models are judged beside it, and it is not judged itself",
}


_DataRow = tuple[TaskInfo, DataKey, Shown]
"""A row with its task and data."""


def model_conclusion(board: Board, model: str) -> str:
    """What may be concluded of a model from its rows of installed versions of tasks, in one paragraph of plain text, of
    each sender's rows by themselves; empty for an unknown model."""
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
    for info, title, verdict in _judged_rows(board, current):
        groups.setdefault(asked_of(info), []).append((title, verdict))
    is_ours = any(knows_generator(row.entry.result.model.trained_on) for *_, row in current)
    sentences = []
    for asked, of in groups.items():
        titles, verdicts = zip(*of, strict=True)
        by = f"By the tasks of {asked}, " if len(groups) > 1 else ""
        trained = f"{OF_OUR_DATA}, and " if is_ours else ""
        sentences.append(f"{by}{name} is {trained}{tasks_sentence(titles, verdicts)}")
    return " ".join(sentences)


def _judged_rows(board: Board, rows: Sequence[_DataRow]) -> list[tuple[TaskInfo, str, TaskVerdict]]:
    """Task, title and verdict of each judged row; the title tells apart rows of one task and data."""
    judged = [(info, key, row, row.verdict) for info, key, row in rows if row.verdict is not None]
    counts = Counter((info.name, key) for info, key, _, _ in judged)
    titled = []
    for info, key, row, verdict in judged:
        entry = f" (entry {row.entry.id[-16:][:8]})" if counts[info.name, key] > 1 else ""
        titled.append((info, f"{info.title} on {data_name(board, info.name, key)}{entry}", verdict))
    return titled
