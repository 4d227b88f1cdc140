"""What the commands that score say while they work: what is coming, each result as it is ready, where everything is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from audio_compositionality.support.text import plain

if TYPE_CHECKING:
    from audio_compositionality.evaluator.results.result import Result
    from audio_compositionality.tasks.base import Task


def kept_outputs(tasks: Sequence[Task]) -> str:
    """What is kept of models that do some tasks: embeddings, answers, or both."""
    from audio_compositionality.encoders.base import LANGUAGE_MODEL

    answers = {task.info.needs == LANGUAGE_MODEL for task in tasks}
    return " and ".join(
        name for name, of_answers in (("embeddings", False), ("answers", True)) if of_answers in answers
    )


def result_line(result: Result) -> str:
    """A result in one line: model, task, the measure that it is ranked by with its interval, its score, and
    of which kinds of samples they are where not all are there."""
    from audio_compositionality.evaluator.compare.tables import kinds_there, score_words
    from audio_compositionality.tasks.registry import load_task

    info = load_task(result.task).info
    named = dict.fromkeys((info.ranks_by, info.score.name))
    numbers = []
    for measure in map(info.measure, named):
        words = score_words(result.measures[measure.name], result.intervals.get(measure.name), measure.digits)
        numbers.append(f"{measure.heading} {words}")
    there = kinds_there(result, info)
    return f"{plain(result.model.id)}, {info.title}: {', '.join(numbers)}{f' ({there})' if there else ''}"


def print_result(result: Result) -> None:
    """Print a result as soon as it is ready, also where the output goes to a file."""
    print(result_line(result), flush=True)


def print_end(results: Sequence[Result], out: Path, store: Path | None) -> None:
    """Print the tables of all results, and where everything is."""
    from audio_compositionality.evaluator.compare.tables import results_tables
    from audio_compositionality.support.table import print_table
    from audio_compositionality.tasks.registry import load_task

    for table in results_tables(results):
        print()
        print_table(table)
    kept = "" if store is None else f", {kept_outputs([load_task(result.task) for result in results])} in {store}"
    print(f"Result files are in {out}{kept}.")
