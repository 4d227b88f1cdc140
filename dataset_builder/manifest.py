"""The manifest and the card of a built folder.

The manifest states the settings of each configuration and the digest of every shard; the card is README.md with the
YAML that `datasets` and the Hub read, with a Jinja template of each recipe; the shards are Parquet files.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from audio_compositionality.support.files import open_file, read_file, sha256_of_file, sha256_of_json
from audio_compositionality.support.text import listed

from .data import DatasetError, Row, column_table, recipe_fingerprint
from .tables import check_rows

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features
    from jinja2 import Environment

    from .recipes.base import Recipe


MANIFEST_NAME = "manifest.json"
CARD_NAME = "README.md"
SCHEMA_VERSION = 1

FINGERPRINT_KEY = b"audio_compositionality_fingerprint"
"""Name of the fingerprint in the metadata of a shard."""

RECIPE_NAME = re.compile(r"[A-Za-z0-9]\w*", re.ASCII)
"""The names that a recipe can have: also the name of a folder and of a configuration."""


@dataclass(frozen=True)
class Shard:
    """A finished shard."""

    split: str
    rows: int
    bytes: int
    sha256: str

    def verify(self, name: str, path: Path) -> None:
        """Refuse a file that is not this shard.

        Raises:
            DatasetError: the file differs, or there is none.
        """
        if not path.is_file():
            raise DatasetError(
                f"{name} is missing: the samples would not match the fingerprint; build or download it again"
            )
        if path.stat().st_size != self.bytes or sha256_of_file(path) != self.sha256:
            raise DatasetError(
                f"{name} is not the shard that was built (SHA-256 differs from {MANIFEST_NAME}): the samples would not "
                "match the fingerprint; build or download it again"
            )


@dataclass(frozen=True)
class BuiltRecipe:
    """One configuration of a built folder.

    Attributes:
        version: of the recipe.
        settings: of the recipe, as JSON values.
        fingerprint: of the recipe's name, version and settings.
        rows_sha256: of the columns and of all rows without their audio: where it differs under one fingerprint, the
            code of the recipe has changed without its version.
        rows_digest: see `Configuration.rows_digest`.
        audio_format: ``flac`` or ``wav``.
        description: Markdown of the card.
        shards: by path below the folder; empty until the configuration has been built.
    """

    version: int
    settings: Mapping[str, Any]
    fingerprint: str
    rows_sha256: str
    rows_digest: str
    audio_format: str
    description: str
    shards: Mapping[str, Shard]

    @property
    def synthetic(self) -> bool:
        """Whether its sound is generated here, and not that of a user's recordings."""
        return not self.settings.get("sounds")

    @property
    def splits(self) -> dict[str, list[str]]:
        """The shards of each split."""
        splits: dict[str, list[str]] = {}
        for name, shard in self.shards.items():
            splits.setdefault(shard.split, []).append(name)
        return splits


@dataclass(frozen=True)
class Manifest:
    """The content of a built folder.

    Attributes:
        recipes: by the name of the recipe, which is that of the configuration; the first is the default.
    """

    recipes: Mapping[str, BuiltRecipe]

    @property
    def shards(self) -> dict[str, Shard]:
        """The shards of all configurations, by path below the folder."""
        return {name: shard for recipe in self.recipes.values() for name, shard in recipe.shards.items()}

    def dumps(self) -> str:
        """The manifest as JSON text, which states its own digest."""
        content = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        return json.dumps({**content, "sha256": sha256_of_json(content)}, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Manifest | None:
        """The manifest of a file; None where there is no file.

        Raises:
            DatasetError: it is damaged, or of another version.
        """
        if not path.exists():
            return None
        try:
            content = json.loads(read_file(path))
            stated = content.pop("sha256")
            if content["schema_version"] != SCHEMA_VERSION:
                raise DatasetError(
                    f"{path.name} has schema version {content['schema_version']}; this version reads {SCHEMA_VERSION}"
                )
            if sha256_of_json(content) != stated:
                raise DatasetError(
                    f"{path.name} is damaged or was edited: its SHA-256 differs from the one that it states"
                )
            recipes = {}
            for name, values in content["recipes"].items():
                shards = {shard_path: Shard(**shard) for shard_path, shard in values["shards"].items()}
                built = recipes[name] = BuiltRecipe(**{**values, "shards": shards})
                if recipe_fingerprint(name, built.version, built.settings) != built.fingerprint:
                    raise DatasetError(f"{path.name}: the fingerprint of {name} is not that of the settings beside it")
                for shard_path, shard in shards.items():
                    form = rf"{re.escape(name)}/{re.escape(shard.split)}-\d{{5}}-of-\d{{5}}\.parquet"
                    if not re.fullmatch(form, shard_path):
                        raise DatasetError(
                            f"{path.name} names {shard_path!r}; a shard of {name} is {name}/{shard.split}-….parquet"
                        )
                if not RECIPE_NAME.fullmatch(name):
                    raise DatasetError(
                        f"{path.name} names a configuration {name!r}; a name has letters, digits and underscores"
                    )
            return cls(recipes)
        except DatasetError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DatasetError(f"{path.name} is not a manifest of a built data set: {error!r}") from error


@dataclass(frozen=True)
class AudioColumn:
    """A column of clips.

    Attributes:
        name: of the column.
        is_list: whether a row has a list of clips in it, ``name/0``, ``name/1`` …; else it has one clip, ``name``.
        sample_rate: Hz; None where each clip has its own.
    """

    name: str
    is_list: bool
    sample_rate: int | None

    def clip_names(self, count: int) -> tuple[str, ...]:
        """The names of a row's clips in this column, for a number of clips."""
        return tuple(f"{self.name}/{number}" for number in range(count)) if self.is_list else (self.name,)


def audio_columns(features: Features) -> tuple[AudioColumn, ...]:
    """The columns with sound, in the order of the features."""
    from datasets import Audio, LargeList, List

    columns = []
    for name, feature in features.items():
        is_list = isinstance(feature, (List, LargeList))
        audio = feature.feature if is_list else feature
        if isinstance(audio, Audio):
            columns.append(AudioColumn(name, is_list, audio.sampling_rate))
    return tuple(columns)


Answer = TypeVar("Answer")


def open_parquet(name: str, path: Path) -> pq.ParquetFile:
    """Open a Parquet file.

    Raises:
        DatasetError: it is not one.
    """
    import pyarrow.parquet as pq

    def opened() -> pq.ParquetFile:
        open_file(path).close()
        return pq.ParquetFile(path)

    table = naming(name, opened)
    check_rows(table.metadata.num_rows, name)
    return table


LARGEST_GROUP = 2**31
"""Bytes of rows that are held at a time: a file of some kilobytes can repeat one value any number of times."""


def batches_of(
    name: str, table: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str] | None = None, most: int = 256
) -> Iterator[pa.RecordBatch]:
    """The rows of row groups, a few at a time: so few that each may hold the largest values of its columns.

    Args:
        name: of the file, for messages.
        table: the file.
        groups: numbers of row groups.
        columns: names of columns, or of parts of them, ``audio.path``; by default all.
        most: rows at a time.

    Raises:
        DatasetError: they are damaged, or claim too many values.
    """
    largest = 1
    for group in map(table.metadata.row_group, groups):
        of_group = 0
        for chunk in map(group.column, range(group.num_columns)):
            if columns is None or any(f"{chunk.path_in_schema}.".startswith(f"{column}.") for column in columns):
                # Of nulls in lists, only their number is stored.
                values = 8 * chunk.num_values
                if values > LARGEST_GROUP:
                    raise DatasetError(f"{name} claims {chunk.num_values:,} values in {chunk.path_in_schema}")
                of_group += max(values, chunk.total_uncompressed_size)
        largest = max(largest, of_group)
    size = max(1, min(most, LARGEST_GROUP // 2 // largest))
    batches = naming(name, lambda: table.iter_batches(size, row_groups=list(groups), columns=columns))
    while (batch := naming(name, lambda: next(batches, None))) is not None:
        yield batch


def rows_of_groups(
    name: str, table: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str] | None = None
) -> list[Row]:
    """The rows of row groups.

    Raises:
        DatasetError: as `batches_of`, or they have more than `LARGEST_GROUP` bytes.
    """
    import pyarrow as pa

    rows: list[Row] = []
    size = 0
    for batch in batches_of(name, table, groups, columns):
        # As Python's values, each of a dictionary's is a copy.
        parts = [part.dictionary_decode() if pa.types.is_dictionary(part.type) else part for part in batch.columns]
        size += sum(part.nbytes for part in parts)
        if size > LARGEST_GROUP:
            raise DatasetError(f"{name} has more than {LARGEST_GROUP:,} bytes of rows that are read at a time")
        rows += naming(name, batch.to_pylist)
    return rows


def naming(name: str, read: Callable[[], Answer]) -> Answer:
    """The result of a function of pyarrow, whose errors do not name their file.

    Raises:
        DatasetError: the file's data are damaged; an error of `read` itself is raised unchanged.
    """
    import pyarrow as pa

    try:
        return read()
    except DatasetError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DatasetError(f"{name} cannot be read as Parquet, its data are damaged: {error}") from error


def card_section(recipe: Recipe[Any], spec: Any) -> str:
    """The card's section of a recipe: its template, or the first line of its docstring and the table of its columns.

    Templates have the values ``spec``, ``columns`` (the table) and those of `Recipe.card`. They may include other
    templates of our recipes' folder, such as ``citation_coat.md``.

    Args:
        recipe: whose template lies beside its module as ``NAME.md``.
        spec: of its rows.
    """
    folder = Path(inspect.getfile(type(recipe))).parent
    columns = column_table(recipe.columns(spec))
    if not (folder / f"{recipe.name}.md").is_file():
        first = (inspect.getdoc(type(recipe)) or recipe.name).splitlines()[0]
        return f"{first}\n\n{columns}"
    template = card_templates(folder).get_template(f"{recipe.name}.md")
    return template.render({"spec": spec, "columns": columns, **recipe.card(spec)})


@cache
def card_templates(folder: Path) -> Environment:
    """The templates of a folder, and those of our recipes; a name without a value is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

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
        "listed": lambda names: listed([str(name) for name in names]),
        # Names in the cells of a Markdown table come from a stranger's files.
        "cell": lambda text: "".join(f"\\{char}" if char in r"\`*_[]<>|&" else char for char in text),
    }
    return environment


_LICENCE = ("cc-by-4.0", "CC BY 4.0")
"""Licence of generated data: its name on the Hub, and in a text."""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def dataset_card(manifest: Manifest, features: Mapping[str, Features]) -> str:
    """The card of a built folder.

    Args:
        manifest: of the folder.
        features: the columns of each built configuration; others do not appear on the card.
    """
    import yaml

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
    contents = []
    for name, built in recipes.items():
        counts = {split: sum(built.shards[shard].rows for shard in shards) for split, shards in built.splits.items()}
        sizes = ", ".join(f"{split} {count:,}" for split, count in counts.items())
        contents.append(f"| `{name}` | {sizes} | {built.audio_format.upper()} |")
    ours = [f"`{name}`" for name, built in recipes.items() if built.synthetic]
    others = [f"`{name}`" for name, built in recipes.items() if not built.synthetic]
    # That of recordings is up to their authors.
    theirs = f"{listed(others)}: the licence of the recordings, which is unknown here."
    if not others:
        licence = f"{_LICENCE[1]}."
    elif ours:
        licence = f"{listed(ours)}: {_LICENCE[1]}. {theirs}"
    else:
        licence = theirs
    columns = audio_columns(features[first])
    # A list may be empty.
    shown = next((column for column in columns if not column.is_list), columns[0])
    body = (
        card_templates(Path(__file__).parent)
        .get_template("card.md")
        .render(
            contents="\n".join(contents),
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
            licence=licence,
        )
    )
    return f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n\n{body}"


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
