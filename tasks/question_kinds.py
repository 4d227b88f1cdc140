"""The kinds of questions that PolyBench tells apart, and what of time each needs."""

from __future__ import annotations

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.texts.question_tasks import question_tasks
from audio_compositionality.dataset_builder.texts.questions import NO_TIME, ORDER, SIMULTANEITY, time_of

from .metric_files import describe_metric

METRIC = describe_metric("polybench")

TASKS = tuple(measure.name for measure in METRIC.measures if measure.null == f"chance_{measure.name}")
"""What questions are about, in the order of the paper, then with time; a sample's column ``task`` has the place."""

KINDS = {name: name.replace("_", "/") for name in TASKS}
"""The kind of question of each, as `questions` call it."""

_NEEDS = {NO_TIME: "no time", SIMULTANEITY: "what is heard at one moment", ORDER: "the order in time"}
"""What of time a kind of question needs, in words."""


def task_of(row: Row) -> str:
    """Which of `TASKS` a question is of: its variant, where that is one of its own."""
    name = f"{row['task']}_{row['variant']}"
    return name if name in TASKS else str(row["task"])


def kind_of_row(row: Row) -> str:
    """The kind of question of a row, in words; of another recipe's its task."""
    name = task_of(row)
    return KINDS.get(name, name)


def needs_of(task: str) -> str:
    """What of time a task needs, in words."""
    return _NEEDS[time_of(KINDS[task], question_tasks())]


def kind_with_needs(task: str) -> str:
    """The kind of question of a task, and what of time it needs, in words."""
    return f"{KINDS[task]} ({needs_of(task)})"
