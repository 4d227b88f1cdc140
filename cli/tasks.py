"""`tasks`: the benchmarks and tasks."""

from __future__ import annotations

import argparse

from audio_compositionality.support.table import Column, Table, print_table, rows_of

from .arguments import Command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""


def run(options: argparse.Namespace) -> None:
    """Print the benchmarks and the tasks, a table each."""
    from audio_compositionality.encoders.base import kind_name
    from audio_compositionality.tasks.registry import benchmark_info, list_benchmarks, list_tasks

    columns = (
        Column("task", numeric=False),
        Column("benchmark", numeric=False),
        Column("title", numeric=False),
        Column("version", "of the score; other versions are not comparable", digits=None),
        Column("of", "kind of model", numeric=False),
        Column("scored", "by default, or only on request: if --tasks or --benchmark names it", numeric=False),
        Column("question", numeric=False),
    )
    infos = [task.info for task in list_tasks()]
    rows = []
    for info in infos:
        words = (kind_name(info.needs), "on request" if info.on_request else "by default", info.question)
        rows.append((info.name, info.benchmark, info.title, info.version, *words))
    legend = (
        "--tasks takes names of tasks with commas between them, --benchmark all tasks of one benchmark. Without "
        "either, tasks on request are left out.",
        *(f"{info.title}: {info.warning}" for info in infos),
    )
    benchmarks = rows_of(
        (name, benchmark_info(name).title, len(tasks), benchmark_info(name).question)
        for name, tasks in list_benchmarks().items()
    )
    headings = (
        Column("benchmark", numeric=False),
        Column("title", numeric=False),
        Column("tasks", digits=None),
        Column("question", numeric=False),
    )
    # Wide enough to keep every name on one line.
    print_table(Table("Benchmarks", headings, benchmarks), width=160)
    print_table(Table("Tasks", columns, rows_of(rows), legend), width=160)


COMMAND = Command(
    summary="list the tasks and benchmarks",
    description="List the tasks, their benchmarks, and the caveats of each score.",
    add_arguments=add_arguments,
    run=run,
    place=17,
)
