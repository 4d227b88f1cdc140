"""Jinja templates of cards: one beside each recipe, in plain Markdown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from audio_compositionality.support.text import listed

from .columns import column_table

if TYPE_CHECKING:
    from .recipes.base import Recipe


def described(recipe: Recipe[Any], spec: Any) -> str:
    """The card's section of a recipe: its template, or the first line of its docstring and the table of its columns.

    Templates see ``spec``, ``columns`` (the table) and the values of `Recipe.card`. They may include others of the
    folder of our recipes, such as ``citation_coat.md``.

    Args:
        recipe: whose template lies beside its module as ``NAME.md``.
        spec: of its rows.
    """
    folder = Path(inspect.getfile(type(recipe))).parent
    columns = column_table(recipe.columns(spec))
    if not (folder / f"{recipe.name}.md").is_file():
        first = (inspect.getdoc(type(recipe)) or recipe.name).splitlines()[0]
        return f"{first}\n\n{columns}"
    template = templates(folder).get_template(f"{recipe.name}.md")
    return template.render({"spec": spec, "columns": columns, **recipe.card(spec)})


@cache
def templates(folder: Path) -> Environment:
    """The templates of a folder, and those of our recipes; a name that nobody gives a value is an error."""
    folders = [folder, Path(__file__).parent / "recipes"]
    environment = Environment(
        loader=FileSystemLoader(folders), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "commas": lambda number: f"{number:,}",
        "short": lambda number: f"{number:g}",
        "percent": lambda share: f"{share:.0%}",
        "listed": _listed,
        "cell": _cell,
    }
    return environment


def _listed(names: Iterable[Any], most: int = 6) -> str:
    return listed([str(name) for name in names], most)


def _cell(text: str) -> str:
    """A label as the text of a Markdown table's cell: names come from anybody's files."""
    return "".join(f"\\{char}" if char in r"\`*_[]<>|&" else char for char in text)
