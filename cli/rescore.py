"""`rescore`: score existing answers of any program again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import print_table, to_csv, to_json
from audio_compositionality.support.text import nearest

from . import arguments, data_options
from .arguments import Command, add_settings, data_groups, divided

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.data import Row
    from audio_compositionality.dataset_builder.sounds.published.question_sets import Rule

_DESCRIPTION = """\
Score existing answers again; no model is run. Each answer is scored by the matcher of this project, by a benchmark's
published rule, and as its log counts it. Every answer on which these disagree is listed. ANSWERS is

  a log of lmms-eval   *_samples_TASK.jsonl, of --log_samples
  a log of inspect_ai  .eval or .json
  a table              CSV, TSV, .xlsx, JSON or JSON Lines with an id and an answer, or response, prediction,
                       model_output ...: files that the scripts of MMAU, MMAR and MMSU score, logs of AudioBench,
                       tables of VLMEvalKit
  results              of this project: a folder, a JSON file, a submission

--data gives the questions, their options and right answers. A log that has these, lettered in its prompts, needs none.
The first lines state which columns were read, and how many answers were used. A column that equals the right answers is
never taken for the model's. The exit status is 1 if no answer could be scored.
"""

_EXAMPLES = """\
  audio-compositionality rescore answers.csv --data questions.csv
      a column id and a column answer
  audio-compositionality rescore 20261123_samples_mmar.jsonl --rule mmar --out differences.csv
      a log that shows options and right answers; with the rule of a benchmark
  audio-compositionality rescore logs/2026-11-23_mmau.eval --data mmau:MMAU
      the questions and the rule of the user's copy
  audio-compositionality rescore results
      the cached answers of all results of a folder
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("answers", nargs="+", type=Path, metavar="ANSWERS", help="logs, tables, or results; see above")
    parser.add_argument(
        "--data",
        metavar="SPEC",
        help="the questions: a table, NAME:PATH of a published benchmark, a built folder or preset; for results, as "
        "in `verify`",
    )
    parser.add_argument(
        "--rule",
        metavar="NAME",
        help="published rule of a benchmark; default: the rule of the data, if they are given as NAME:PATH",
    )
    parser.add_argument(
        "--answers",
        dest="column",
        metavar="COLUMN",
        help="column of a table with the model's answers; default: the only column with a usual heading of answers",
    )
    parser.add_argument(
        "--in-order", action="store_true", help="the answers have no ids, and are in the order of the questions"
    )
    parser.add_argument(
        "--numbers",
        choices=("from-0", "from-1", "text"),
        help="read answers such as 2 as numbers of options, counted from 0 or 1, or as texts; default: if certain",
    )
    add_settings(parser)
    data_options.add_skip_invalid(parser)
    arguments.add_cache(parser)
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="all answers with their scores, as FILE.csv or FILE.json"
    )


def run(options: argparse.Namespace) -> int:
    """Score the answers of all logs, print their tables, and write the answers."""
    for path in options.answers:
        if not path.exists():
            raise InputError(f"no answers at {path}: there is no such file or folder")
    arguments.check_output(options.cache, "--cache")
    if options.set and options.data is None:
        raise InputError("--set changes --data, which is missing; give --data, or leave out --set")
    if options.in_order and options.data is None:
        raise InputError("--in-order needs --data, whose order the answers have; give --data, or leave out --in-order")
    arguments.check_file(options.out)
    if options.out is not None and options.out.suffix not in (".csv", ".json"):
        raise InputError(f"--out is {str(options.out)!r}; it ends in .csv or .json")
    from audio_compositionality.evaluator.answer_logs import read_logs
    from audio_compositionality.evaluator.rescore import every_answer, rescore, tables_of

    rule = _rule(options)
    where = {"data": options.data, "cache": options.cache, "column": options.column}
    logs = [log for path in options.answers for log in read_logs(path, **where)]
    rows = None
    if options.data is not None and any(log.rows is None for log in logs):
        rows = _rows(options, [answer.id for log in logs for answer in log.answers])
    rescored = [rescore(log, rows, rule, in_order=options.in_order, numbers=options.numbers) for log in logs]
    for one in rescored:
        print(*one.said, "", sep="\n")
        for table in tables_of(one):
            print_table(table)
    if options.out is not None:
        table = every_answer(rescored)
        write_whole(options.out, to_csv(table) if options.out.suffix == ".csv" else to_json([table]))
        print(f"{options.out} is written.")
    return int(not any(one.scored for one in rescored))


def _rule(options: argparse.Namespace) -> tuple[str, Rule] | None:
    """Return the published rule, with the name of its benchmark; None if none is requested, or the data have none.

    Raises:
        InputError: there is no benchmark of that name, or it has no rule.
    """
    from audio_compositionality.dataset_builder.sounds.published import list_readers, reader_of

    readers = {name: pair[0] for name in list_readers() if (pair := reader_of(f"{name}:")) is not None}
    rules: dict[str, Rule] = {
        name: rule for name, reader in readers.items() if (rule := getattr(reader, "rule", None)) is not None
    }
    name = options.rule or (options.data or "").removeprefix("benchmark:").partition(":")[0]
    # Beside the rule, its source; or why there is none.
    source = getattr(readers.get(name), "rule_source", "")
    if source:
        data_options.note(f"the rule of {name}: {source}")
    if options.rule is not None and name not in rules:
        raise InputError(f"there is no published rule of {name!r}; {nearest(name, sorted(rules))}")
    return (name, rules[name]) if name in rules else None


def _rows(options: argparse.Namespace, ids: list[str]) -> list[Row]:
    """Return the questions of the data; of several configurations, of the one that has most of the ids."""
    from audio_compositionality.tasks.registry import list_tasks
    from audio_compositionality.tasks.shapes.questions import QuestionTask

    options.preset = None
    spec = data_options.data_spec(options)
    asked = {task.info.recipe for task in list_tasks() if isinstance(task, QuestionTask)}
    makes = data_options.possible_recipes(spec)
    recipes = None if makes is None else [recipe for recipe in makes if recipe in asked]
    _, changes = divided(options.set, data_groups(spec, recipes))
    data = data_options.open_with_notes(options, spec, changes, recipes, sounds=False).data
    held = [list(data.configuration(recipe).rows) for recipe in data.recipes if recipe in asked]
    if not held:
        raise InputError(f"{data.source} has no questions with options, but {', '.join(data.recipes)}")
    names = {id.rpartition("?")[0] or id for id in ids}
    return max(held, key=lambda rows: sum(str(row["id"]) in names for row in rows))


COMMAND = Command(
    summary="score existing answers again: by our matcher, by a benchmark's rule, and by the scores in their log",
    description=_DESCRIPTION,
    add_arguments=add_arguments,
    run=run,
    examples=_EXAMPLES,
    place=97,
)
