"""The registry of tasks: one for each module of this folder, those of installed packages, those registered."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pydantic.fields import FieldInfo

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.text import nearest

from .base import Task, TaskError

_TASKS: Registry[Task] = Registry(
    __package__,
    "TASK",
    "audio_compositionality.tasks",
    lambda task: task.info.name,
    helpers=("base", "benchmarks", "metric_files", "registry"),
)


def register_task(task: Task) -> None:
    """Make a task known by its name in this process. An installed package names its tasks as entry points instead, in
    the group ``audio_compositionality.tasks``."""
    _TASKS.add(task)


def list_tasks() -> list[Task]:
    """All tasks, ordered by benchmark and name; those on request (`TaskInfo.on_request`) come last."""
    return sorted(_TASKS.all().values(), key=lambda task: (task.info.on_request, task.info.benchmark, task.info.name))


def task_names() -> tuple[str, ...]:
    """Names of all tasks; those of this folder are not imported."""
    return _TASKS.names()


def default_tasks(recipes: Collection[str]) -> list[Task]:
    """The tasks that are scored by default, where neither tasks nor a benchmark are named: the tasks of recipes, less
    those on request.

    Recipes that have only tasks on request are themselves the request.
    """
    tasks = [task for task in list_tasks() if task.info.recipe in recipes]
    return [task for task in tasks if not task.info.on_request] or tasks


def first_look() -> list[Task]:
    """The tasks of a run without arguments."""
    return [task for task in list_tasks() if task.info.is_first_look]


def scored_recipes() -> set[str]:
    """Names of the recipes that a task scores; the others are for training."""
    return {task.info.recipe for task in list_tasks()}


def load_task(name: str) -> Task:
    """The task of a name; of the tasks of this folder its module alone is imported.

    Raises:
        TaskError: there is none; says the nearest.
    """
    task = _TASKS.find(name)
    if task is None:
        raise TaskError(f"unknown task {name!r}; {nearest(name, sorted(_TASKS.names()))}")
    return task


def load_tasks(names: Iterable[str]) -> list[Task]:
    """Tasks by their names, each once."""
    return [load_task(name) for name in dict.fromkeys(names)]


def settings_of_tasks(tasks: Iterable[Task]) -> dict[str, FieldInfo]:
    """The fields of all settings of some tasks, by their names; see `Task.spec`."""
    fields: dict[str, FieldInfo] = {}
    for task in tasks:
        fields = {**task.spec.settable(), **fields}
    return fields


def list_benchmarks() -> dict[str, Sequence[str]]:
    """Names of the tasks of each benchmark."""
    groups: dict[str, list[str]] = {}
    for task in list_tasks():
        groups.setdefault(task.info.benchmark, []).append(task.info.name)
    return dict(groups)


def load_benchmark(name: str) -> list[Task]:
    """The tasks of a benchmark.

    Raises:
        TaskError: there is no such benchmark; says the nearest.
    """
    groups = list_benchmarks()
    if name not in groups:
        raise TaskError(f"unknown benchmark {name!r}; {nearest(name, groups)}")
    return load_tasks(groups[name])
