"""`data`: the format in which data are read, the tasks that can score them, and their cost."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import Column, Table, print_table, rows_of
from audio_compositionality.support.text import listed

from . import arguments, data_options
from .arguments import Command, add_settings, data_groups, divided

if TYPE_CHECKING:
    from audio_compositionality.dataset_builder.account import Account
    from audio_compositionality.dataset_builder.data_spec import DataSpec, Reading

BASELINE = "log-mel-statistics"
"""The model for measuring time."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("data", metavar="SPEC", help="data, as for --data of other commands: docs/how-to/data.md")
    parser.add_argument(
        "--preset", metavar="NAME", help="size of the data made from your own sounds: mini (default) or full"
    )
    add_settings(parser)
    data_options.add_skip_invalid(parser)
    parser.add_argument("--json", action="store_true", help="print only JSON: what was read and what was left out")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write a commented data.yaml with every setting of these data"
    )


def run(options: argparse.Namespace) -> None:
    """Open the data and describe them; write a description file where one is requested."""
    from audio_compositionality.dataset_builder.open_data import settable
    from audio_compositionality.dataset_builder.sounds.published.question_tables import ReadQuestions
    from audio_compositionality.dataset_builder.texts.label_questions import NothingAskedError
    from audio_compositionality.tasks.registry import default_tasks, list_tasks, scored_recipes

    if options.write is not None and options.write.exists():
        raise InputError(f"{options.write} exists already; give another name")
    if options.write is not None and options.write.suffix not in (".yaml", ".yml"):
        raise InputError(f"--write is {str(options.write)!r}; the name of a description ends with .yaml")
    if options.write is not None and not options.write.parent.is_dir():
        raise InputError(f"--write is {str(options.write)!r}, and there is no folder {str(options.write.parent)!r}")
    spec = data_options.data_spec(options)
    reading = spec.reading
    if not options.json:
        print(f"{reading.source} is read as {reading.what}.", flush=True)
    possible = data_options.possible_recipes(spec)
    recipes = None if possible is None else [recipe for recipe in possible if recipe in scored_recipes()]
    _, changes = divided(options.set, data_groups(spec, recipes))
    if options.write is not None:
        _write(options.write, spec.changed(settings={**spec.settings, **changes}), reading.kind)
        if not options.json:
            print(f"{options.write} is written: --data {options.write} takes it.", flush=True)
    # Questions with a fault are what an audit is for: they are named, and the others are looked at.
    typed = options.skip_invalid
    options.skip_invalid = typed or reading.kind in ("questions", "benchmark")
    try:
        opened = data_options.open_with_notes(options, spec, changes, recipes)
    except NothingAskedError as error:
        helps = "; --set least_clips=N accepts N clips of a count, at least 1" if error.lacks_clips else ""
        if options.json:
            _print_json(reading, error.account, f"{error}{helps}")
            return
        names = [task.info.name for task in list_tasks() if recipes is None or task.info.recipe in recipes]
        _print_tasks([(name, None, None, None, f"{error}{helps}") for name in names])
        return
    if options.json:
        _print_json(reading, opened.account)
        return
    from audio_compositionality.evaluator.run.planning import cached_megabytes, cost_of, seconds_per_clip

    costs = {recipe: cost_of(opened.data.configuration(recipe)) for recipe in opened.data.recipes}
    rows: list[tuple[float | str | None, ...]] = []
    for task in list_tasks():
        cost, reason = costs.get(task.info.recipe), opened.left_out.get(task.info.recipe, "")
        if cost is not None:
            reason = data_options.why_not_scored(task, opened.data) or reason
        if reason:
            rows.append((task.info.name, None, None, None, reason))
        elif cost is not None:
            rows.append((task.info.name, cost.rows, cost.clips, cost.seconds / 60, "yes"))
    _print_tasks(rows)
    print()
    options.skip_invalid = typed
    if isinstance(opened.data, ReadQuestions):
        from audio_compositionality.evaluator.run.item_audit import audit_tables

        for table in audit_tables(opened.data.configuration(opened.data.recipes[0]).rows, opened.data.digests):
            print_table(table)
            print()
        options.skip_invalid = typed or bool(opened.data.faults)
    if not costs:
        return
    from audio_compositionality.encoders.base import ENCODER
    from audio_compositionality.encoders.loading.registry import load_encoder

    model = load_encoder(BASELINE)
    seconds = sum(
        seconds_per_clip(model, opened.data.configuration(recipe)) * cost.clips for recipe, cost in costs.items()
    )
    clips, minutes = sum(cost.clips for cost in costs.values()), sum(cost.seconds for cost in costs.values()) / 60
    print(
        f"In total {clips:,} clips, {minutes:,.0f} min of sound. {BASELINE} takes about {max(seconds, 1):,.0f} s "
        f"here, measured on a few clips, and {cached_megabytes(model, list(costs.values())):,.1f} MB of embeddings."
    )
    scored = {name for name, *_, answer in rows if answer == "yes"}
    for_encoders = [task.info.name for task in default_tasks(costs) if task.info.needs <= ENCODER]
    for_encoders = [name for name in for_encoders if name in scored]
    if 0 < len(for_encoders) < len(scored):
        print(
            f"For an audio encoder, `run` scores {listed(for_encoders)}. The others need a model that embeds texts, "
            "gives frames or answers questions."
        )
    print("The next command scores the baselines; add names of models after `run`.")
    if options.write is None:
        words = ["--data", options.data]
        if not changes.keys() <= data_groups(spec, data_options.wanted_recipes(spec, None))[-1].fields().keys():
            # Of tasks on request, which `run` scores only by name.
            infos = [one.info for one in list_tasks() if one.info.recipe in costs]
            having = [info.name for info in infos if changes.keys() & settable(spec, (info.recipe,)).keys()]
            words += ["--tasks", ",".join(having)]
        print(arguments.next_line(options, "run", *words))
    else:
        # Preset and settings stand in the file.
        print(arguments.next_line(options, "run", "--data", str(options.write), kept=("skip_invalid",)))


def _print_json(reading: Reading, account: Account | None, error: str = "") -> None:
    values = {"error": error} if error else {}
    values |= {} if account is None else account.values()
    print(json.dumps({"data": reading.source, "kind": reading.kind, **values}, ensure_ascii=False, indent=2))


def _print_tasks(rows: Sequence[Sequence[float | str | None]]) -> None:
    """Print a table of tasks: the rows, clips and minutes of their data, or why they cannot be scored."""
    columns = (
        Column("task", numeric=False),
        Column("rows", digits=None),
        Column("clips", digits=None),
        Column("minutes", "of sound", digits=1),
        Column("can be scored", "or why it cannot", numeric=False),
    )
    print_table(Table("Tasks by which these data can be scored", columns, rows_of(rows), (), "data"))


def _write(path: Path, spec: DataSpec, kind: str) -> None:
    """Write a commented description: the given fields, and the possible ones."""
    import yaml

    from audio_compositionality.dataset_builder.data_spec import FIELDS, PATHS, DataSpec, prefix_of
    from audio_compositionality.support.spec import default_of, rule_of

    def line(name: str, value: object) -> str:
        return yaml.safe_dump({name: value}, allow_unicode=True, width=1000, sort_keys=False).rstrip()

    values = spec.values()
    given = {name: _from(path, values[name]) if name in PATHS else values[name] for name in spec.given()}
    lines = ["# A description of data, for --data. Lines that begin with # are optional settings.", ""]
    # A path begins with a dot or a slash, so that it is not read as a name.
    prefix, source = prefix_of(spec.data)
    data, place = spec.data, Path(source).expanduser()
    if source and place.exists():
        seen = os.path.relpath(place, path.parent)
        data = f"{prefix}{seen}" if seen.startswith(".") else f"{prefix}.{os.sep}{seen}"
    lines += [line("data", data), ""]
    for name in FIELDS[kind]:
        field = DataSpec.model_fields[name]
        lines.append(f"# {field.description} ({rule_of(field)})")
        lines.append(line(name, given[name]) if name in given else f"# {name}: {default_of(field)}")
        lines.append("")
    lines.append("# Settings of the recipes, by name: --set help lists all.")
    settings = given.get("settings")
    lines += [line("settings", settings)] if settings else ["# settings:", "#   seed: 0"]
    write_whole(path, "\n".join(lines) + "\n")


def _from(file: Path, value: Any) -> Any:
    """An existing path, or each of a list, relative to the folder of a file; any other value unchanged."""
    if isinstance(value, list):
        return [_from(file, one) for one in value]
    if not isinstance(value, str) or not Path(value).exists():
        return value
    return os.path.relpath(value, file.parent)


COMMAND = Command(
    summary="inspect data: their format, the tasks that can score them, and the cost",
    description="Inspect data: their format, the tasks that can and cannot score them, and the cost.",
    add_arguments=add_arguments,
    run=run,
    examples="""\
  audio-compositionality data animals
      a folder of recordings, animals/dog/1.wav and so on, or with a metadata.csv
  audio-compositionality data validation.tsv --set audio=desed/audio --write desed.yaml
      strong labels and their sound; the file lists the optional settings
  audio-compositionality data questions.csv
      an audit of questions: which answers their texts give away, positions and lengths of right answers, duplicates
""",
    place=45,
)
