"""Hooks of mkdocs: tables that stand in the code are made from it, so that no page says otherwise.

A line of a page with the name of one of `TABLES`, such as `<!-- tasks -->`, becomes the table; one with the place of a
class of settings, such as `<!-- settings training.settings.TrainingSettings -->`, that of all that can be set of it.
"""

from __future__ import annotations

import ast
import importlib
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

MOST_MEASURES = 40
"""Rows of a table that anybody would read."""


def tasks() -> str:
    """All tasks, and the question of each."""
    from audio_compositionality.tasks.registry import list_tasks

    rows = [
        (
            f"`{task.info.name}`",
            task.info.title,
            f"`{task.info.benchmark}`",
            "on request" if task.info.on_request else "by default",
            str(task.info.version),
            task.info.question,
        )
        for task in list_tasks()
    ]
    return markdown(("name", "title", "benchmark", "scored", "version", "question"), rows)


def question_sets() -> str:
    """The published benchmarks of questions that can be read, with terms, rules and known faults."""
    from audio_compositionality.dataset_builder.sounds.published import list_readers, reader_of
    from audio_compositionality.dataset_builder.sounds.published.question_sets import QuestionSet

    readers = (reader_of(f"{name}:") for name in list_readers())
    sets = [reader for reader, _ in filter(None, readers) if isinstance(reader, QuestionSet)]
    rows = [
        (
            f"`{one.name}:`",
            f"[{one.title}]({one.url}), {one.version}",
            one.licence,
            f"{'yes' if one.rule else 'no'}: {one.rule_source}",
            "; ".join(one.known_faults) or "–",
        )
        for one in sets
    ]
    return markdown(("name", "benchmark", "terms", "published rule", "known faults"), rows)


def measures() -> str:
    """What the numbers of each task are, a table a task; of a task with very many those that stand in tables."""
    from audio_compositionality.tasks.registry import list_tasks

    parts = []
    for task in list_tasks():
        many = len(task.info.measures) > MOST_MEASURES
        rows = [
            (f"`{measure.name}`", measure.heading, f"{measure.meaning}{null_of(measure.null)}")
            for measure in (task.info.shown if many else task.info.measures)
        ]
        rest = (
            f"\n\nResult files have all {len(task.info.measures)}, with the same names after each part's."
            if many
            else ""
        )
        parts.append(
            f"### {task.info.title}\n\n{task.info.question}\n\n{markdown(('key', 'heading', 'meaning'), rows)}{rest}"
        )
    return "\n\n".join(parts)


def null_of(name: str | None) -> str:
    """The end of a measure's meaning."""
    return f"; read it beside `{name}`" if name else ""


def recipes() -> str:
    """All recipes: what each is, by the first line of its module, and its rows by preset."""
    from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe

    rows = []
    for name in list_recipes():
        recipe = load_recipe(name)
        made = {preset: recipe.presets[preset] for preset in ("mini", "full") if preset in recipe.presets}
        counts = [f"{len(recipe.render(made[one]).rows):,}" if one in made else "–" for one in ("mini", "full")]
        summary = (sys.modules[type(recipe).__module__].__doc__ or "").partition("\n")[0]
        rows.append((f"`{name}`", str(recipe.version), ", ".join(recipe.splits), *counts, summary))
    return markdown(("name", "version", "splits", "rows in `mini`", "in `full`", "what it is"), rows)


def models() -> str:
    """The models that have a name."""
    from audio_compositionality.encoders.loading.names import list_models

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
    return markdown(("name", "dim", "rate (Hz)", "gives", "trained by", "licence of the weights", "what it is"), rows)


def commands() -> str:
    """The commands of the command line."""
    from audio_compositionality.cli.main import load_commands

    rows = [(f"`audio-compositionality {name}`", command.summary) for name, command in load_commands().items()]
    return markdown(("command", "what it does"), rows)


def settings(place: str) -> str:
    """The settings of a class, by its place in the package: default, rule and meaning of each."""
    from audio_compositionality.support.spec import Spec, settings_table

    module, _, name = place.rpartition(".")
    spec: type[Spec] = getattr(importlib.import_module(f"audio_compositionality.{module}"), name)
    rows = [tuple(str(cell.value) for cell in row.cells) for row in settings_table(spec.model_fields).rows]
    return markdown(("setting", "default", "what it may be", "what it is"), [(f"`{row[0]}`", *row[1:]) for row in rows])


def task_settings() -> str:
    """What can be set of tasks, and of which."""
    from audio_compositionality.support.spec import default_of, rule_of
    from audio_compositionality.tasks.registry import list_tasks

    of: dict[tuple[str, ...], list[str]] = {}
    for task in list_tasks():
        for name, field in task.spec.settable().items():
            row = (f"`{name}`", default_of(field), rule_of(field), field.description or "")
            of.setdefault(row, []).append(f"`{task.info.name}`")
    rows = [(row[0], ", ".join(tasks), *row[1:]) for row, tasks in of.items()]
    return markdown(("setting", "of", "default", "what it may be", "what it is"), rows)


def sound_settings() -> str:
    """What can be set of what is made of recordings: in which recipes, and the value of the preset `mini` in each."""
    from audio_compositionality.dataset_builder.recorded import changeable, recorded_recipes
    from audio_compositionality.dataset_builder.sounds.tones import default_timbres
    from audio_compositionality.support.spec import as_typed, rule_of

    recipes = {name: recipe for name, recipe in recorded_recipes().items() if "mini" in recipe.presets}
    specs = {name: one.of_sounds(one.presets["mini"], default_timbres(), {}) for name, one in recipes.items()}
    has = {name: changeable(recipes=[name]) for name in recipes}
    rows = []
    for name, field in changeable().items():
        values: dict[str, list[str]] = {}
        for recipe, spec in specs.items():
            if name in has[recipe]:
                values.setdefault(as_typed(getattr(spec, name)), []).append(f"`{recipe}`")
        said = [f"{value}: {'all' if len(of) == len(recipes) else ', '.join(of)}" for value, of in values.items()]
        rows.append((f"`{name}`", "; ".join(said), rule_of(field), field.description or ""))
    return markdown(("setting", "`mini`, on recordings", "what it may be", "what it is"), rows)


def folders() -> str:
    """What each folder holds: the first paragraph of its package's docstring."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    rows = []
    outside = [".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "studies").rglob("__init__.py")]
    for package in sorted([*setuptools["packages"], *(f"audio_compositionality.{name}" for name in outside)]):
        top, *inner = package.split(".")[1:] or ["api"]
        path = ROOT.joinpath(top, *inner, "__init__.py")
        if path.is_file():
            first = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0]
            rows.append((f"`{'/'.join((top, *inner))}/`", " ".join(first.split())))
    return markdown(("folder", "what belongs there"), rows)


def markdown(headings: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


TABLES: dict[str, Callable[[], str]] = {
    "tasks": tasks,
    "measures": measures,
    "question sets": question_sets,
    "recipes": recipes,
    "models": models,
    "task settings": task_settings,
    "sound settings": sound_settings,
    "commands": commands,
    "folders": folders,
}


def on_startup(**_: Any) -> None:
    """Lay the package out as it is installed, in `build/docs`: mkdocstrings reads the source in one folder."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    laid_out = ROOT / "build" / "docs"
    shutil.rmtree(laid_out, ignore_errors=True)
    for package, folder in sorted(setuptools["package-dir"].items()):
        target = laid_out.joinpath(*package.split("."))
        shutil.copytree(ROOT / folder, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def on_page_markdown(text: str, **_: Any) -> str:
    """Put the tables in their places."""
    pattern = rf"^<!-- ({'|'.join(TABLES)}) -->$"
    text = re.sub(pattern, lambda match: TABLES[match[1]](), text, flags=re.MULTILINE)
    return re.sub(r"^<!-- settings ([\w.]+) -->$", lambda match: settings(match[1]), text, flags=re.MULTILINE)
