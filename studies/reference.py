"""The reference pages of the documentation, written from the code: docs/reference/*.md.

    python -m studies.reference

Pages are committed, so that they can be read without a site. A test compares them with the code. The numbers of rows
of a recipe are kept from the page while its version stays; `--rows` counts all of them again, in about a minute.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from audio_compositionality.cli.arguments import data_fields, model_fields, run_fields
from audio_compositionality.cli.main import PROGRAM, argument_parser, load_commands
from audio_compositionality.cli.train import training_fields
from audio_compositionality.dataset_builder.data_spec import FIELDS, BuildSpec
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.recipes.base import Recipe
from audio_compositionality.dataset_builder.recorded import changeable, recorded_recipes
from audio_compositionality.dataset_builder.sounds.published import list_readers, reader_of
from audio_compositionality.dataset_builder.sounds.published.question_sets import QuestionSet
from audio_compositionality.dataset_builder.sounds.published.question_tables import HEADINGS
from audio_compositionality.dataset_builder.sounds.tones import default_timbres
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.layout import FILE_LIMITS, FILES
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.spec import as_typed, default_of, rule_of, settings_table
from audio_compositionality.tasks.registry import list_tasks
from audio_compositionality.training.log import EVALUATIONS, STEP_COLUMNS, STEPS
from audio_compositionality.training.run_folder import DataFacts, TrainingRecord
from audio_compositionality.training.settings import Stage

ROOT = Path(__file__).parents[1]
PACKAGE = "audio_compositionality"
FOLDER = ROOT / "docs" / "reference"
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]

MOST_MEASURES = 40
"""If a task has more measures than this, the page lists only the measures in its tables."""

PYTHON: Mapping[str, Sequence[str]] = {
    "Models": (
        "encoders.loading.registry.load_model",
        "encoders.adapters.custom.wrap",
        "encoders.loading.names.list_models",
        "encoders.options.EncoderOptions",
        "encoders.options.LanguageOptions",
        "encoders.adapters.custom.Embedder",
        "encoders.base.Model",
        "encoders.base.ModelCard",
        "encoders.base.GivenClip",
        "encoders.base.GivenQuestion",
        "encoders.base.ModelError",
        "encoders.base.ClipError",
        "encoders.loading.listing.ModelListing",
        "encoders.loading.listing.Adapter",
    ),
    "Data": (
        "dataset_builder.open_data.open_data",
        "dataset_builder.data_spec.DataSpec",
        "dataset_builder.data_spec.Reading",
        "dataset_builder.data_spec.recognised",
        "dataset_builder.data_spec.described",
        "dataset_builder.rendered.rendered_preset",
        "dataset_builder.build.build_dataset",
        "dataset_builder.open_data.open_recordings",
        "dataset_builder.recorded.recorded",
        "dataset_builder.data.Data",
        "dataset_builder.data.Configuration",
        "dataset_builder.data.Clip",
        "dataset_builder.data.ClipBatch",
        "dataset_builder.data.in_batches",
        "dataset_builder.data.DatasetError",
    ),
    "Sounds": ("dataset_builder.sounds.entries.Sound", "dataset_builder.sounds.entries.Sounds"),
    "Recipes": (
        "dataset_builder.recipes.list_recipes",
        "dataset_builder.recipes.load_recipe",
        "dataset_builder.recipes.register_recipe",
        "dataset_builder.recipes.base.Recipe",
        "dataset_builder.recipes.base.Drawn",
        "dataset_builder.data.DataColumn",
        "dataset_builder.data.Rendering",
        "support.spec.Spec",
    ),
    "Tasks": (
        "tasks.registry",
        "tasks.base.Task",
        "tasks.base.PlainTask",
        "tasks.base.TaskInfo",
        "tasks.base.Measure",
        "tasks.base.Inputs",
        "tasks.base.Outputs",
        "tasks.base.Scores",
        "tasks.base.Samples",
        "tasks.base.Drawing",
        "tasks.base.TaskError",
        "tasks.answerers.detector.DetectorAnswerer",
    ),
    "Evaluation": (
        "evaluator.run.evaluate.evaluate",
        "evaluator.run.evaluate.evaluate_models",
        "evaluator.run.options.RunOptions",
    ),
    "Training": (
        "training.settings.TrainingSettings",
        "training.settings.Stage",
        "training.running.train_model",
        "training.ablations.run_ablations",
        "training.towers.small_towers.open_aligned",
        "training.losses.contrastive",
        "training.losses.hard_negative",
        "training.losses.modular",
    ),
    "Results": (
        "evaluator.results.result.Result",
        "evaluator.results.result.SampleTable",
        "evaluator.results.result.load_result",
        "evaluator.results.result.save_result",
        "evaluator.results.strict.ResultError",
        "evaluator.compare.compared.compare",
        "evaluator.compare.compared.ComparedFrame",
        "evaluator.report.page.report",
        "evaluator.figures.summary.plot",
    ),
    "Verdicts": (
        "evaluator.compare.model_verdicts.Verdicts",
        "evaluator.compare.model_verdicts.ModelVerdict",
        "evaluator.compare.model_verdicts.BaselineLine",
        "evaluator.compare.model_verdicts.verdicts_of",
        "evaluator.compare.task_verdicts.Standing",
        "evaluator.compare.task_verdicts.VerdictRow",
        "evaluator.compare.task_verdicts.TaskVerdict",
        "evaluator.compare.task_verdicts.task_verdicts",
    ),
    "Metrics": ("metrics",),
    "Errors": ("support.errors",),
}
"""Documented names of the package by section; for a module, all its public functions and classes."""


# ----- Markdown


def page(title: str, first: str, *parts: str) -> str:
    """Return a page: its title, its purpose, and its parts."""
    note = "<!-- Written by `python -m studies.reference`: change the code, not this page. -->"
    return "\n\n".join([note, f"# {title}", first, *parts]) + "\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(
        "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in line) + " |" for line in lines
    )


def names(every: Iterable[str]) -> str:
    """Return names as code, separated by commas."""
    return ", ".join(f"`{name}`" for name in every)


def code(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.strip()}\n```"


def settings(fields: Mapping[str, Any]) -> str:
    """Return the table of settings: default, allowed values and meaning of each."""
    rows = [[str(cell.value) for cell in row.cells] for row in settings_table(fields).rows]
    return table(("setting", "default", "allowed values", "meaning"), [[f"`{name}`", *rest] for name, *rest in rows])


def prose(text: str) -> str:
    """Return a docstring or the description of a command in Markdown.

    Sections such as Args become lists, as do indented pairs of columns; ``code`` keeps its marks.
    """
    parts = []
    for block in re.split(r"\n{2,}", text.strip()):
        lines = block.splitlines()
        section = re.fullmatch(r"(\w+):", lines[0])
        if section and len(lines) > 1 and lines[1].startswith("    "):
            parts.append(f"**{section[1]}**")
            inner = [line[4:] for line in lines[1:]]
            is_list = section[1] in {"Args", "Attributes", "Raises"}
            parts.append(listing(inner, r"([\w*, ]+): +(.*)") if is_list else "\n".join(inner))
        elif lines[0].startswith("  "):
            parts.append(listing([line[2:] for line in lines], r"(\S.*?) {2,}(.*)"))
        else:
            parts.append(block)
    return "\n\n".join(parts)


def listing(lines: Sequence[str], pattern: str) -> str:
    """Return a list of terms with their texts; other lines continue the text before them."""
    items: list[str] = []
    for line in lines:
        match = re.fullmatch(pattern, line)
        if match:
            items.append(f"- `{match[1]}`: {match[2]}")
        elif items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line)
    return "\n".join(items)


# ----- pages


def commands_page() -> str:
    """Return the page of commands, with usage, options and examples."""
    commands = load_commands()
    parser = argument_parser(commands)
    parsers = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    overview = table(
        ("command", "what it does"), [(f"[`{name}`](#{name})", one.summary) for name, one in commands.items()]
    )
    sections = [part for name in commands for part in command_section(parsers[name], "##")]
    return page(
        "Commands",
        f"Every command of `{PROGRAM}`, its arguments and examples. `{PROGRAM} COMMAND --help` prints the same. "
        "Every command also takes `--traceback`, which shows the traceback of an error.",
        overview,
        *sections,
    )


def command_section(parser: argparse.ArgumentParser, mark: str) -> Iterator[str]:
    """Yield the parts of the page about a command and its subcommands."""
    yield f"{mark} {parser.prog.removeprefix(PROGRAM).strip()}"
    yield prose(parser.description or "")
    actions = [action for action in parser._actions if action.dest not in {"help", "traceback"}]
    inner = next((action for action in actions if isinstance(action, argparse._SubParsersAction)), None)
    arguments = [action for action in actions if action is not inner]
    needed = [usage_of(action) for action in arguments if action.required and action.option_strings]
    positional = [usage_of(action) for action in arguments if not action.option_strings]
    own = [str(inner.metavar)] if inner else []
    yield code("text", " ".join([parser.prog, *needed, "[OPTIONS]", *positional, *own]))
    rows = [(f"`{usage_of(action)}`", (action.help or "") % vars(action)) for action in arguments]
    if rows:
        yield table(("argument", "meaning"), rows)
    if parser.epilog:
        yield code("text", "\n".join(line[2:] for line in parser.epilog.splitlines()[1:]))
    for one in inner.choices.values() if inner else ():
        yield from command_section(one, f"{mark}#")


def usage_of(action: argparse.Action) -> str:
    """Return an argument as it is typed."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices and action.metavar is None:
        name = "|".join(map(str, action.choices))
    value = {0: "", "?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(action.nargs or "", name)
    value = "" if action.nargs == 0 else value
    return " ".join([*action.option_strings[:1], value]).strip()


def tasks_page() -> str:
    """Return the page of tasks and of published question sets."""
    rows = [
        (
            f"[`{task.info.name}`](measures.md#{task.info.name})",
            task.info.title,
            f"`{task.info.benchmark}`",
            "on request" if task.info.on_request else "by default",
            str(task.info.version),
            task.info.question,
        )
        for task in list_tasks()
    ]
    readers = (reader_of(f"{name}:") for name in list_readers())
    sets = [
        (
            f"`{one.name}:`",
            f"[{one.title}]({one.url}), {one.version}",
            one.licence,
            f"{'yes' if one.rule else 'no'}: {one.rule_source}",
            "; ".join(one.known_faults) or "–",
        )
        for one, _ in filter(None, readers)
        if isinstance(one, QuestionSet)
    ]
    return page(
        "Tasks",
        f"Every task of the suite. `{PROGRAM} run --tasks NAME` scores one of them, `--benchmark NAME` all of a "
        "benchmark. The [settings of tasks](settings.md#tasks) and their [measures](measures.md) have pages of their "
        "own.",
        table(("name", "title", "benchmark", "scored", "version", "question"), rows),
        "## Published question sets",
        "`--data NAME:PATH` reads the files of these benchmarks, which you download from their publishers.",
        table(("name", "benchmark", "licence", "published matching rule", "known faults"), sets),
    )


def measures_page() -> str:
    """Return the page of measures, with a section for each task."""
    parts = []
    for task in list_tasks():
        info = task.info
        many = len(info.measures) > MOST_MEASURES
        rows = [
            (
                f"`{measure.name}`",
                measure.heading,
                measure.meaning + (f"; compare it with `{measure.null}`" if measure.null else ""),
            )
            for measure in (info.shown if many else info.measures)
        ]
        parts += [f"## {info.name}", f"{info.title}. {info.question}", table(("key", "heading", "meaning"), rows)]
        if many:
            parts.append(f"Result files have all {len(info.measures)} measures; the others repeat these for each part.")
    return page(
        "Measures",
        "Every number of each task: its key in result files, its heading in tables, and its meaning. "
        "[Scores](../understand/scores.md) explains the ones to look at first.",
        *parts,
    )


def models_page() -> str:
    """Return the page of models that have a name."""
    rows = [
        (
            f"`{model.name}`",
            str(model.output_dim or "–"),
            f"{model.sample_rate:,}" if model.sample_rate else "–",
            model.gives,
            model.paradigm,
            model.licence,
            model.description,
        )
        for model in list_models()
    ]
    return page(
        "Models",
        f"Every model and baseline that has a name: `{PROGRAM} run NAME` scores it. "
        "[Models](../how-to/models.md) has the other forms of a model's name.",
        table(("name", "dim", "rate (Hz)", "gives", "training", "licence of the weights", "description"), rows),
    )


def recipes_page(count_all: bool = False) -> str:
    """Return the page of recipes: summary, version, rows by preset, and columns."""
    kept = {} if count_all else kept_rows()
    rows, columns = [], []
    for name in list_recipes():
        recipe = load_recipe(name)
        counts = kept.get((name, str(recipe.version))) or [count_rows(recipe, preset) for preset in ("mini", "full")]
        summary = (sys.modules[type(recipe).__module__].__doc__ or "").partition("\n")[0]
        rows.append((f"`{name}`", str(recipe.version), ", ".join(recipe.splits), *counts, summary))
        if recipe.presets:
            spec = recipe.presets["mini"]
            columns.append((f"`{name}`", names(column.name for column in recipe.columns(spec))))
    return page(
        "Recipes",
        "Every recipe: a configuration of the data set, made by one file of `dataset_builder/recipes/`. "
        f"`{PROGRAM} build` writes them to a folder; [settings](settings.md#recipes-on-tones) change their sizes.",
        table(("name", "version", "splits", "rows in `mini`", "in `full`", "description"), rows),
        "## Columns",
        "The card of a built folder describes each column.",
        table(("recipe", "columns"), columns),
    )


def kept_rows() -> dict[tuple[str, str], list[str]]:
    """Return the numbers of rows on the existing page, by recipe and version."""
    path = FOLDER / "recipes.md"
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    found = (re.match(r"\| `(\w+)` \| (\d+) \| [^|]* \| ([^|]+) \| ([^|]+) \|", line) for line in lines)
    return {(match[1], match[2]): [match[3], match[4]] for match in found if match}


def count_rows(recipe: Recipe[Any], preset: str) -> str:
    """Return the number of rows of a preset; a dash if the recipe lacks it."""
    return f"{len(recipe.render(recipe.presets[preset]).rows):,}" if preset in recipe.presets else "–"


def settings_page() -> str:
    """Return the page of all settings, by subject."""
    of_tasks: dict[tuple[str, ...], list[str]] = {}
    for task in list_tasks():
        for name, field in task.spec.settable().items():
            row = (f"`{name}`", default_of(field), rule_of(field), field.description or "")
            of_tasks.setdefault(row, []).append(task.info.name)
    return page(
        "Settings",
        "Every setting of `--set NAME=VALUE`, by subject. "
        f"`{PROGRAM} COMMAND --set help` prints the settings of a command.",
        "## Data",
        "Settings that say how data of your own are read: `--set` or a line of [data.yaml](file-formats.md#datayaml).",
        settings(data_fields()),
        "## Recipes on recordings",
        "Settings of scenes made from your recordings, with their values in the preset `mini`.",
        recipe_settings(on_recordings=True),
        "## Recipes on tones",
        "Settings of the presets `mini` and `full`, which use synthetic tones.",
        recipe_settings(on_recordings=False),
        "## Build",
        settings(BuildSpec.settable()),
        "## Models",
        settings(model_fields()),
        "## Run",
        settings(run_fields()),
        "In Python, `RunOptions` has the following ones:",
        settings(RunOptions.model_fields),
        "## Tasks",
        table(
            ("setting", "tasks", "default", "allowed values", "meaning"),
            [(row[0], names(every), *row[1:]) for row, every in of_tasks.items()],
        ),
        "## Training",
        settings(training_fields()),
        "A stage, in a file for `--settings`, has these:",
        settings(Stage.model_fields),
    )


def recipe_settings(on_recordings: bool) -> str:
    """Return the settings of recipes on recordings or on tones, with their values in presets."""
    recipes = recorded_recipes() if on_recordings else {name: load_recipe(name) for name in list_recipes()}
    presets = ("mini",) if on_recordings else ("mini", "full")
    values: dict[str, dict[str, dict[str, list[str]]]] = {}
    fields: dict[str, Any] = {}
    for recipe_name, recipe in recipes.items():
        for preset in presets:
            if preset not in recipe.presets:
                continue
            spec = recipe.presets[preset]
            if on_recordings:
                spec = recipe.of_sounds(spec, default_timbres(), {})
                settable = changeable(recipes=[recipe_name])
            else:
                settable = type(spec).settable()
            for name, field in settable.items():
                fields[name] = field
                of_value = values.setdefault(name, {}).setdefault(preset, {})
                of_value.setdefault(as_typed(getattr(spec, name)), []).append(recipe_name)
    rows = []
    for name, field in fields.items():
        cells = []
        for preset in presets:
            of_value = values[name].get(preset, {})
            single = len(of_value) == 1
            cells.append("; ".join(v if single else f"{v}: {names(every)}" for v, every in of_value.items()))
        if len(set(cells)) < len(cells):
            cells[1] = "same"
        rows.append((f"`{name}`", *cells, rule_of(field), field.description or ""))
    return table(("setting", *(f"`{preset}`" for preset in presets), "allowed values", "meaning"), rows)


def file_formats_page() -> str:
    """Return the page of the files that the suite reads and writes."""
    kinds = [(f"`{kind}`", names(fields) or "–") for kind, fields in FIELDS.items()]
    return page(
        "File formats",
        "The files that commands write and read: results, built folders, submissions, tables, `data.yaml`, trainings.",
        "## Results",
        "A result is `OUT/MODEL/TASK.json`, one model in one task. Its fields:",
        attributes("evaluator.results.result.Result"),
        "The field `model` is the card of the model:",
        attributes("encoders.base.ModelCard"),
        "The field `digest` is the SHA-256 of all others. The CSV file next to the JSON file has a row for each "
        "sample: its `id`, its scores, and `cluster` if samples depend on each other.",
        "## Built folders",
        f"`{PROGRAM} build OUT` writes `README.md` (the card), `manifest.json` and `RECIPE/SPLIT-*.parquet`. "
        "`datasets.load_dataset(OUT, RECIPE)` reads the folder. The manifest has these fields for each recipe:",
        attributes("dataset_builder.manifest.BuiltRecipe"),
        "[Recipes](recipes.md#columns) lists the columns.",
        "## data.yaml",
        f"A file for `--data`, which `{PROGRAM} data SPEC --write data.yaml` writes: `data:` names the data, further "
        "lines are [settings of data](settings.md#data), and `settings:` holds settings of recipes. Each kind of data "
        "has its own settings:",
        table(("kind", "settings"), kinds),
        "## Tables of questions",
        "CSV, TSV, JSON, JSON Lines or Parquet, with a question in each row. `question`, `options`, `answer` and "
        "`audio` are needed; each field is found by these headings:",
        table(("field", "headings"), [(f"`{field}`", names(every)) for field, every in HEADINGS.items()]),
        "## Tables of captions",
        "A CSV or TSV file with the column `caption`, `captions` or `caption_1`, `caption_2` …, or a text file with a "
        "caption in each line.",
        "## Submissions",
        documented(found("evaluator.submissions.layout")[1]),
        table(
            ("file", "folder", "most bytes"),
            [
                (f"`{name}`", names(f"{kind}/" for kind in FILES if name in FILES[kind]), f"{limit:,}")
                for name, limit in FILE_LIMITS.items()
            ],
        ),
        "## Training folders",
        f"`{PROGRAM} train --out OUT` writes the model of the last step in the format of transformers, `best/` with "
        "the model of the highest validation score, `settings.yaml`, `training.json`, two tables and a card. "
        f"`{STEPS}` has the columns {names(STEP_COLUMNS)}; `{EVALUATIONS}` has `step`, `stage`, `name` and `value`.",
        f"`training.json` has the keys {names(TrainingRecord({}, DataFacts('', None, '', 0, '')).values())}, and the "
        "outcome of a finished training.",
    )


def python_page() -> str:
    """Return the page of public names and documented names of modules, with signatures and docstrings."""
    text = (ROOT / "api" / "__init__.py").read_text("utf-8")
    modules = ast.literal_eval(text.partition("\n_MODULES = ")[2].partition("\n}")[0] + "}")
    public = [(f"[`ac.{name}`](#{name.lower()})", f"`{PACKAGE}.{module}.{name}`") for name, module in modules.items()]
    sections = []
    for subject, every in PYTHON.items():
        sections += [f"## {subject}", *(part for name in every for part in documented_parts(name))]
    return page(
        "Python API",
        "The public names of `import audio_compositionality as ac`, and the documented names of its modules.",
        table(("name", "defined as"), [*public, ("`ac.__version__`", "the version of the package")]),
        "Everything else is imported from the module that defines it, as the line below each heading shows.",
        *sections,
        "## Packages",
        table(("folder", "contents"), folders()),
    )


def folders() -> list[tuple[str, str]]:
    """Return the folders of the source, each with the first paragraph of its package's docstring."""
    rows = []
    outside = [".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "studies").rglob("__init__.py")]
    for package in sorted([*SETUPTOOLS["packages"], *(f"{PACKAGE}.{name}" for name in outside)]):
        top, *inner = package.split(".")[1:] or ["api"]
        text = (ROOT.joinpath(top, *inner, "__init__.py")).read_text("utf-8")
        rows.append((f"`{'/'.join((top, *inner))}/`", (ast.get_docstring(ast.parse(text)) or "").split("\n\n")[0]))
    return rows


# ----- the source


Documented = ast.FunctionDef | ast.ClassDef


def found(name: str) -> tuple[str, ast.Module | Documented]:
    """Return the source of the module that defines a name (its dotted path in the package), and the node of the
    name."""
    *folders, last = name.split(".")
    for path in (ROOT.joinpath(*folders, f"{last}.py"), ROOT.joinpath(*folders, last, "__init__.py")):
        if path.is_file():
            text = path.read_text("utf-8")
            return text, ast.parse(text)
    text, module = found(".".join(folders))
    return text, {node.name: node for node in public_nodes(module)}[last]


def public_nodes(parent: ast.AST) -> list[Documented]:
    """Return the documented public functions and classes of a module, or public methods of a class."""
    nodes = [node for node in ast.iter_child_nodes(parent) if isinstance(node, Documented)]
    return [node for node in nodes if not node.name.startswith("_") and ast.get_docstring(node)]


def documented(node: ast.Module | Documented) -> str:
    """Return the docstring of a module, function or class in Markdown."""
    return prose(ast.get_docstring(node) or "")


def attributes(name: str) -> str:
    """Return the list of attributes of a class, from its docstring."""
    return documented(found(name)[1]).partition("**Attributes**\n\n")[2].partition("\n\n")[0]


def documented_parts(name: str) -> Iterator[str]:
    """Yield headings, signatures and docstrings of a function, a class with its methods, or all names of a module."""
    text, node = found(name)
    for one in public_nodes(node) if isinstance(node, ast.Module) else [node]:
        yield f"### {one.name}"
        yield f"`from {PACKAGE}.{name.removesuffix(f'.{one.name}')} import {one.name}`"
        yield code("python", head(one, text))
        yield documented(one)
        for method in public_nodes(one) if isinstance(one, ast.ClassDef) else ():
            yield f"#### {one.name}.{method.name}"
            yield code("python", head(method, text))
            yield documented(method)


def head(node: Documented, text: str) -> str:
    """Return the lines of a function or class before its docstring, without comments, with dots for its body."""
    first = min(one.lineno for one in [node, *node.decorator_list])
    lines = (line.partition("  #")[0] for line in text.splitlines()[first - 1 : node.body[0].lineno - 1])
    return textwrap.dedent("\n".join(lines)) + " ..."


PAGES: Mapping[str, Callable[[], str]] = {
    "commands": commands_page,
    "tasks": tasks_page,
    "measures": measures_page,
    "models": models_page,
    "recipes": recipes_page,
    "settings": settings_page,
    "file-formats": file_formats_page,
    "python": python_page,
}
"""The pages, by the names of their files."""


def main(typed: Sequence[str] | None = None) -> None:
    """Write all pages."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.reference", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", action="store_true", help="count the rows of all recipes again")
    options = parser.parse_args(typed)
    for name, write in PAGES.items():
        write_whole(FOLDER / f"{name}.md", recipes_page(True) if name == "recipes" and options.rows else write())


if __name__ == "__main__":
    main()
