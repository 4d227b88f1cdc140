"""The registry of tasks, in this folder, in installed packages and registered; and benchmarks, groups of tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from pydantic.fields import FieldInfo

from audio_compositionality.support.discovery import Registry
from audio_compositionality.support.text import nearest

from .base import Task, TaskError

_TASKS: Registry[Task] = Registry(
    __package__,
    "TASK",
    "audio_compositionality.tasks",
    lambda task: task.info.name,
    helpers=("base", "metric_files", "registry"),
)


@dataclass(frozen=True)
class BenchmarkInfo:
    """A benchmark: a group of tasks with one question.

    Attributes:
        name: as in `TaskInfo.benchmark` of its tasks.
        title: the name for people.
        question: the question that it asks about a model, one sentence.
        tasks: names of its tasks in this folder, so that no other task is imported for them; a task named by no
            benchmark is imported with each benchmark, to see whether it belongs to it.
    """

    name: str
    title: str
    question: str
    tasks: tuple[str, ...] = ()


_BENCHMARKS = (
    BenchmarkInfo(
        "coat",
        "Composition of scenes",
        "Is the embedding of a scene composed of its sources' embeddings?",
        ("a_coat", "a_tre", "a_coat_instances", "a_coat_recordings", "a_tre_held_out", "binding"),
    ),
    BenchmarkInfo(
        "axes",
        "Four axes of a representation",
        "What does an embedding represent of a sound, how does it change with it, what leaves it unchanged, and are "
        "factors kept apart?",
        (
            "disentanglement",
            "equivariance",
            "informativeness",
            "invariance",
            "onset_invariance",
            "rate_binding",
            "transform_disentanglement",
            "transform_equivariance",
        ),
    ),
    BenchmarkInfo(
        "comp_a",
        "Order and attributes in captions",
        "Does an audio–text model recognise which sound came first, and which attribute belongs to which sound?",
        ("audio_text_retrieval", "comp_a_attribute", "comp_a_order", "zero_shot_audio"),
    ),
    BenchmarkInfo(
        "extended",
        "Extended tasks",
        "Does a model recognise what is absent, how often, when, what has changed, and in which of two clips?",
        (
            "composed_retrieval",
            "count_instances_questions",
            "count_instances_text",
            "negation",
            "negation_questions",
            "two_clips",
            "when",
            "when_frames",
        ),
    ),
    BenchmarkInfo(
        "polybench",
        "Questions about overlapping sounds",
        "Does an audio language model recognise what overlaps what, for how long and when, or answer from the words "
        "of the question?",
        ("polybench",),
    ),
    BenchmarkInfo(
        "questions",
        "Questions from any benchmark",
        "Does an audio language model answer multiple-choice questions about sounds by listening, or without?",
        ("audio_questions",),
    ),
    BenchmarkInfo(
        "polybench_apart",
        "What overlap costs",
        "Does an audio language model recognise less of the same sounds if they overlap?",
        ("polybench_apart",),
    ),
    BenchmarkInfo(
        "polybench_atoms",
        "Atomic questions",
        "Does an audio language model recognise that a sound is present, and which of two begins first?",
        ("polybench_atoms",),
    ),
)


def register_task(task: Task) -> None:
    """Register a task by its name in this process.

    An installed package registers its tasks as entry points in the group ``audio_compositionality.tasks`` instead.
    """
    _TASKS.add(task)


def list_tasks() -> list[Task]:
    """Return all tasks, ordered by benchmark and name; tasks on request (`TaskInfo.on_request`) come last."""
    return _ordered(_TASKS.all().values())


def _ordered(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: (task.info.on_request, task.info.benchmark, task.info.name))


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks, without importing tasks of this folder."""
    return _TASKS.names()


def default_tasks(recipes: Collection[str]) -> list[Task]:
    """Return the tasks scored if neither tasks nor a benchmark are named: the tasks of recipes, except on request.

    Recipes that have only tasks on request count as the request.
    """
    tasks = [task for task in list_tasks() if task.info.recipe in recipes]
    return [task for task in tasks if not task.info.on_request] or tasks


def first_look() -> list[Task]:
    """Return the tasks of a run without arguments."""
    return [task for task in list_tasks() if task.info.is_first_look]


def scored_recipes() -> set[str]:
    """Return the names of the recipes that a task scores; the others are for training."""
    return {task.info.recipe for task in list_tasks()}


def load_task(name: str) -> Task:
    """Return the task with a name; among the tasks of this folder only its module is imported.

    Raises:
        TaskError: there is no such task; the message names the nearest.
    """
    task = _TASKS.find(name)
    if task is None:
        raise TaskError(f"unknown task {name!r}; {nearest(name, sorted(_TASKS.names()))}")
    return task


def load_tasks(names: Iterable[str]) -> list[Task]:
    """Return tasks by their names, each once."""
    return [load_task(name) for name in dict.fromkeys(names)]


def settings_of_tasks(tasks: Iterable[Task]) -> dict[str, FieldInfo]:
    """Return the fields of all settings of some tasks, by their names; see `Task.spec`."""
    fields: dict[str, FieldInfo] = {}
    for task in tasks:
        fields = {**task.spec.settable(), **fields}
    return fields


def list_benchmarks() -> dict[str, Sequence[str]]:
    """Return the names of the tasks of each benchmark."""
    groups: dict[str, list[str]] = {}
    for task in list_tasks():
        groups.setdefault(task.info.benchmark, []).append(task.info.name)
    return dict(groups)


def load_benchmark(name: str) -> list[Task]:
    """Return the tasks of a benchmark, in the order of `list_tasks`, without importing tasks of other benchmarks.

    Raises:
        TaskError: there is no such benchmark; the message names the nearest.
    """
    elsewhere = {task for benchmark in _BENCHMARKS if benchmark.name != name for task in benchmark.tasks}
    tasks = [load_task(one) for one in _TASKS.names() if one not in elsewhere]
    found = _ordered(task for task in tasks if task.info.benchmark == name)
    if not found:
        raise TaskError(f"unknown benchmark {name!r}; {nearest(name, list_benchmarks())}")
    return found


def benchmark_info(name: str) -> BenchmarkInfo:
    """Return the facts of a benchmark; for a benchmark of installed packages, its name alone."""
    return next((benchmark for benchmark in _BENCHMARKS if benchmark.name == name), BenchmarkInfo(name, name, ""))
