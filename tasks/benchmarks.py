"""Benchmarks: groups of tasks with one question."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BenchmarkInfo:
    """A benchmark.

    Attributes:
        name: as in `TaskInfo.benchmark` of its tasks.
        title: the name for people.
        question: what it asks of a model, one sentence.
    """

    name: str
    title: str
    question: str


_BENCHMARKS = (
    BenchmarkInfo("coat", "Composition of scenes", "Is the embedding of a scene made of those of its sources?"),
    BenchmarkInfo(
        "axes",
        "Four axes of a representation",
        "What does an embedding hold of a sound, how does it move with it, what leaves it where it is, and are "
        "factors kept apart?",
    ),
    BenchmarkInfo(
        "comp_a",
        "Order and attributes in captions",
        "Does an audio–text model hear who came first, and what belongs to whom?",
    ),
    BenchmarkInfo(
        "kinds",
        "Further kinds of composition",
        "Does a model hear what is not there, how often, when, what has changed, and in which of two clips?",
    ),
    BenchmarkInfo(
        "polybench",
        "Questions about overlapping sounds",
        "Does an audio language model hear what overlaps what, for how long and when, or does it answer from the words "
        "of the question?",
    ),
    BenchmarkInfo(
        "questions",
        "Questions of any benchmark",
        "Does an audio language model answer multiple-choice questions about sounds by listening, or without?",
    ),
    BenchmarkInfo(
        "polybench_apart",
        "What overlap costs",
        "Does an audio language model hear less of the same sounds where they overlap?",
    ),
    BenchmarkInfo(
        "polybench_atoms",
        "Atomic questions",
        "Does an audio language model hear that a sound is there, and which of two begins first?",
    ),
)


def benchmark_info(name: str) -> BenchmarkInfo:
    """The facts of a benchmark; for one of installed packages, its name alone."""
    return next((benchmark for benchmark in _BENCHMARKS if benchmark.name == name), BenchmarkInfo(name, name, ""))
