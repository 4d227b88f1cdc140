"""Manifest and card of a built folder.

The manifest contains the settings of each configuration and the digest of every shard. The card is README.md: the YAML
that `datasets` and the Hub read, and a section from each recipe's Jinja template. The shards are Parquet files.
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
"""Key of the fingerprint in a shard's metadata."""

RECIPE_NAME = re.compile(r"[A-Za-z0-9]\w*", re.ASCII)
"""Valid names of recipes, which are also names of folders and configurations."""


@dataclass(frozen=True)
class Shard:
    """A finished shard."""

    split: str
    rows: int
    bytes: int
    sha256: str

    def verify(self, name: str, path: Path) -> None:
        """Raise an error if a file is not this shard.

        Raises:
            DatasetError: the file differs or is missing.
        """
        if not path.is_file():
            raise DatasetError(
                f"{name} is missing, so the samples would not match the fingerprint. Build or download it again"
            )
        if path.stat().st_size != self.bytes or sha256_of_file(path) != self.sha256:
            raise DatasetError(
                f"{name} differs from the shard that was built (SHA-256 not as in {MANIFEST_NAME}), so the "
                "samples would not "
                "match the fingerprint. Build or download it again"
            )


@dataclass(frozen=True)
class BuiltRecipe:
    """One configuration of a built folder.

    Attributes:
        version: version of the recipe.
        settings: settings of the recipe, as JSON values.
        fingerprint: fingerprint of the recipe's name, version and settings.
        rows_sha256: SHA-256 of the columns and of all rows without their audio. If it differs under one fingerprint,
            the recipe's code has changed without its version.
        rows_digest: see `Configuration.rows_digest`.
        audio_format: ``flac`` or ``wav``.
        description: Markdown for the card.
        shards: by path in the folder; empty until the configuration has been built.
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
        """Return whether its sound is synthesised here rather than taken from recordings."""
        return not self.settings.get("sounds")

    @property
    def splits(self) -> dict[str, list[str]]:
        """Return the names of each split's shards."""
        splits: dict[str, list[str]] = {}
        for name, shard in self.shards.items():
            splits.setdefault(shard.split, []).append(name)
        return splits


@dataclass(frozen=True)
class Manifest:
    """The content of a built folder.

    Attributes:
        recipes: by the name of the recipe, which is also the name of its configuration; the first is the default.
    """

    recipes: Mapping[str, BuiltRecipe]

    @property
    def shards(self) -> dict[str, Shard]:
        """Return the shards of all configurations, by path in the folder."""
        return {name: shard for recipe in self.recipes.values() for name, shard in recipe.shards.items()}

    def dumps(self) -> str:
        """Return the manifest as JSON text that contains its own digest."""
        content = {"schema_version": SCHEMA_VERSION, **asdict(self)}
        return json.dumps({**content, "sha256": sha256_of_json(content)}, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Manifest | None:
        """Return the manifest in a file; None if the file does not exist.

        Raises:
            DatasetError: it is damaged or has another version.
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
                    f"{path.name} is damaged or was edited: its SHA-256 does not match the one that it contains"
                )
            recipes = {}
            for name, values in content["recipes"].items():
                shards = {shard_path: Shard(**shard) for shard_path, shard in values["shards"].items()}
                built = recipes[name] = BuiltRecipe(**{**values, "shards": shards})
                if recipe_fingerprint(name, built.version, built.settings) != built.fingerprint:
                    raise DatasetError(f"{path.name}: the fingerprint of {name} does not match its settings")
                for shard_path, shard in shards.items():
                    form = rf"{re.escape(name)}/{re.escape(shard.split)}-\d{{5}}-of-\d{{5}}\.parquet"
                    if not re.fullmatch(form, shard_path):
                        raise DatasetError(
                            f"{path.name} names {shard_path!r}; shards of {name} are named "
                            f"{name}/{shard.split}-….parquet"
                        )
                if not RECIPE_NAME.fullmatch(name):
                    raise DatasetError(
                        f"{path.name} names a configuration {name!r}; names contain only letters, digits and "
                        "underscores"
                    )
            return cls(recipes)
        except DatasetError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DatasetError(f"{path.name} is not a manifest of a built data set: {error!r}") from error


@dataclass(frozen=True)
class AudioColumn:
    """A column with clips.

    Attributes:
        name: name of the column.
        is_list: whether a row has a list of clips, ``name/0``, ``name/1`` …, rather than one clip, ``name``.
        sample_rate: Hz; None if clips have different rates.
    """

    name: str
    is_list: bool
    sample_rate: int | None

    def clip_names(self, count: int) -> tuple[str, ...]:
        """Return the names of a row's clips in this column, given their number."""
        return tuple(f"{self.name}/{number}" for number in range(count)) if self.is_list else (self.name,)


def audio_columns(features: Features) -> tuple[AudioColumn, ...]:
    """Return the audio columns, in the order of the features."""
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
        DatasetError: the file is not Parquet.
    """
    import pyarrow.parquet as pq

    def opened() -> pq.ParquetFile:
        open_file(path).close()
        return pq.ParquetFile(path)

    table = naming(name, opened)
    check_rows(table.metadata.num_rows, name)
    return table


LARGEST_GROUP = 2**31
"""Most bytes of rows in memory at a time: a file of a few kilobytes can repeat one value any number of times."""


def batches_of(
    name: str, table: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str] | None = None, most: int = 256
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of row groups a few at a time, so few that each may contain the largest values of its columns.

    Args:
        name: name of the file, for messages.
        table: the file.
        groups: indices of row groups.
        columns: names of columns, or of parts of columns, e.g. ``audio.path``; by default all.
        most: most rows at a time.

    Raises:
        DatasetError: they are damaged, or declare too many values.
    """
    largest = 1
    for group in map(table.metadata.row_group, groups):
        of_group = 0
        for chunk in map(group.column, range(group.num_columns)):
            if columns is None or any(f"{chunk.path_in_schema}.".startswith(f"{column}.") for column in columns):
                # A file stores only the number of nulls in a list, so a small file can declare any number of values.
                values = 8 * chunk.num_values
                if values > LARGEST_GROUP:
                    raise DatasetError(f"{name} declares {chunk.num_values:,} values in {chunk.path_in_schema}")
                of_group += max(values, chunk.total_uncompressed_size)
        largest = max(largest, of_group)
    # As Python values, a batch may take four times as much; see `_python_size`.
    size = max(1, min(most, LARGEST_GROUP // 8 // largest))
    batches = naming(name, lambda: table.iter_batches(size, row_groups=list(groups), columns=columns))
    while (batch := naming(name, lambda: next(batches, None))) is not None:
        yield batch


def rows_of_groups(
    name: str, table: pq.ParquetFile, groups: Sequence[int], columns: Sequence[str] | None = None
) -> list[Row]:
    """Return the rows of row groups.

    Raises:
        DatasetError: as for `batches_of`, or they have more than `LARGEST_GROUP` bytes.
    """
    rows: list[Row] = []
    size = 0
    for batch in batches_of(name, table, groups, columns):
        size += sum(map(_python_size, batch.columns))
        if size > LARGEST_GROUP:
            raise DatasetError(f"{name} has more than {LARGEST_GROUP:,} bytes in rows that are read at once")
        rows += naming(name, batch.to_pylist)
    return rows


def _python_size(values: pa.Array) -> int:
    """Return about the most bytes that an Arrow array takes as Python values.

    A text with one wide character takes four bytes for each of its characters (PEP 393), and every use of a
    dictionary's value is a copy.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_struct(kind):
        return sum(map(_python_size, values.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return 8 * len(values) + _python_size(values.flatten())
    size, texts = int(values.nbytes), values
    if pa.types.is_dictionary(kind):
        texts, kind = values.dictionary, kind.value_type
        of_bytes = pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary
        if any(is_kind(kind) for is_kind in of_bytes):
            size = pc.sum(pc.binary_length(texts).take(values.indices)).as_py() or 0
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return 4 * size if is_text and pc.all(pc.string_is_ascii(texts)).as_py() is False else size


def naming(name: str, read: Callable[[], Answer]) -> Answer:
    """Return the result of a pyarrow function; pyarrow's own errors do not name the file.

    Raises:
        DatasetError: the file's data are damaged. Errors of `read` itself are raised unchanged.
    """
    import pyarrow as pa

    try:
        return read()
    except DatasetError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DatasetError(f"{name} is damaged and cannot be read as Parquet: {error}") from error


def card_section(recipe: Recipe[Any], spec: Any) -> str:
    """Return a recipe's section of the card: its template, or the first line of its docstring and a table of its
    columns.

    Templates can use ``spec``, ``columns`` (the table) and the values of `Recipe.card`. They can include other
    templates in the folder of our recipes, e.g. ``citation_coat.md``.

    Args:
        recipe: the recipe; its template is ``NAME.md`` next to its module.
        spec: settings of its rows.
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
    """Return the templates in a folder and our recipes' templates; an undefined value is an error."""
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
        # Names in the cells of a Markdown table come from third parties' files.
        "cell": lambda text: "".join(f"\\{char}" if char in r"\`*_[]<>|&" else char for char in text),
    }
    return environment


_LICENCE = ("cc-by-4.0", "CC BY 4.0")
"""Licence of generated data: its Hub id, and its name in a text."""

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def dataset_card(manifest: Manifest, features: Mapping[str, Features]) -> str:
    """Return the card of a built folder.

    Args:
        manifest: manifest of the folder.
        features: columns of each built configuration; other configurations are omitted from the card.
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
    # The authors of recordings decide on their licence.
    theirs = f"{listed(others)}: the licence of the recordings, which this package does not know."
    if not others:
        licence = f"{_LICENCE[1]}."
    elif ours:
        licence = f"{listed(ours)}: {_LICENCE[1]}. {theirs}"
    else:
        licence = theirs
    columns = audio_columns(features[first])
    # A row can have an empty list of clips.
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
