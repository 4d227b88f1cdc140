"""The dataset card: README.md with the YAML that `datasets` and the Hub read, a Jinja template of each recipe in it."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from datasets import Features
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from audio_compositionality.support.text import listed

from .columns import column_table
from .manifest import BuiltRecipe, Manifest
from .parquet import audio_columns

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
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
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


_LICENCE = ("cc-by-4.0", "CC BY 4.0")
"""Of what is generated, as the Hub calls it and as it is written."""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def dataset_card(manifest: Manifest, features: Mapping[str, Features]) -> str:
    """The card of a built folder.

    Args:
        manifest: of the folder.
        features: the columns of each configuration that has been built; others do not appear on the card.
    """
    recipes = {name: built for name, built in manifest.recipes.items() if name in features}
    first = next(iter(recipes))
    rows = sum(shard.rows for built in recipes.values() for shard in built.shards.values())
    synthetic = all(built.synthetic for built in recipes.values())
    header = {
        **({"license": _LICENCE[0]} if synthetic else {}),
        "pretty_name": "Audio compositionality",
        "size_categories": [next((label for limit, label in _SIZES if rows < limit), "n>1M")],
        "task_categories": ["feature-extraction", "audio-classification"],
        "tags": ["audio", "benchmark", "compositionality", *(["synthetic"] if synthetic else []), "embeddings"],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == first else {}),
                "data_files": [{"split": split, "path": f"{name}/{split}-*.parquet"} for split in built.splits],
            }
            for name, built in recipes.items()
        ],
        "dataset_info": [_info(name, features[name], built) for name, built in recipes.items()],
    }
    columns = audio_columns(features[first])
    # A list may be empty.
    shown = next((column for column in columns if not column.is_list), columns[0])
    body = (
        templates(Path(__file__).parent)
        .get_template("card.md")
        .render(
            contents="\n".join(_contents(name, built) for name, built in recipes.items()),
            first=first,
            split=next(iter(recipes[first].splits)),
            casts="\n".join(
                f'rows = rows.cast_column("{column.name}", {"List(clip)" if column.is_list else "clip"})'
                for column in columns
            ),
            clip=f'rows[0]["{shown.name}"]{"[0]" if shown.is_list else ""}',
            imports="Audio, List, load_dataset" if any(column.is_list for column in columns) else "Audio, load_dataset",
            sections="\n\n".join(f"## `{name}`\n\n{built.description.strip()}" for name, built in recipes.items()),
            fingerprints="\n".join(
                f"| `{name}` | {built.version} | `{built.fingerprint}` |" for name, built in recipes.items()
            ),
            licence=_licence(recipes),
        )
    )
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n\n{body}"


def _contents(name: str, built: BuiltRecipe) -> str:
    sizes = ", ".join(
        f"{split} {sum(built.shards[shard].rows for shard in shards):,}" for split, shards in built.splits.items()
    )
    return f"| `{name}` | {sizes} | {built.audio_format.upper()} |"


def _licence(recipes: Mapping[str, BuiltRecipe]) -> str:
    """Recordings have the licence of those who made them, which is not known here."""
    ours = [f"`{name}`" for name, built in recipes.items() if built.synthetic]
    if len(ours) == len(recipes):
        return f"{_LICENCE[1]}."
    recorded = [f"`{name}`" for name, built in recipes.items() if not built.synthetic]
    text = f"{listed(recorded)}: that of the recordings, which this card does not know."
    return f"{listed(ours)}: {_LICENCE[1]}. {text}" if ours else text


def _info(name: str, features: Features, built: BuiltRecipe) -> dict[str, Any]:
    sizes = [
        {
            "name": split,
            "num_bytes": sum(built.shards[shard].bytes for shard in shards),
            "num_examples": sum(built.shards[shard].rows for shard in shards),
        }
        for split, shards in built.splits.items()
    ]
    total = sum(shard.bytes for shard in built.shards.values())
    return {
        "config_name": name,
        "features": features._to_yaml_list(),
        "splits": sizes,
        "download_size": total,
        "dataset_size": total,
    }
