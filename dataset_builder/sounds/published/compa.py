"""The published CompA benchmark (arXiv 2310.08753), and a reader of captions in a file."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from audio_compositionality.support.text import first_line

from ...data import Data, DatasetError, HeldData, Row
from ...tables import TableError, folded_heading, read_text, table_of, text_of
from ..recordings import AUDIO_SUFFIXES, printable
from . import Container, FolderFiles, ParquetFiles, ReadClip, ReadConfiguration, ZippedFiles, table_text

_COLUMN = re.compile(r"captions?|caption_\d+")
"""Names of caption columns, in any case."""

LARGEST = 2**30
"""Most bytes of a file; the largest published caption tables have a tenth of this."""


def read_captions(path: str | Path) -> list[str]:
    """Return the captions in a file, in order, without empty ones.

    Args:
        path: path of a CSV or TSV with columns ``caption``, ``captions`` or ``caption_1``, ``caption_2`` …, or of any
            other text with one caption per line.

    Raises:
        DatasetError: it cannot be read, has no caption column, or no caption.
    """
    path = Path(path)
    text = read_text(path, otherwise="cp1252", largest=LARGEST)
    texts = text.splitlines()
    if path.suffix.lower() in (".csv", ".tsv"):
        table = table_of(text, path.name, ragged="cut")
        names = [name for name in table.headings if _COLUMN.fullmatch(folded_heading(name))]
        if not names:
            raise DatasetError(
                f"{path} has the columns {', '.join(table.headings)}; captions must be in caption, captions or "
                "caption_1, …"
                f"{table.one_column()}"
            )
        texts = [row[name] for row in table.records() for name in names]
    captions = [caption for one in texts if (caption := one.strip())]
    if not captions:
        raise DatasetError(f"{path} has no caption")
    return captions


ORDER, ATTRIBUTE = "comp_a_order", "comp_a_attribute"
"""The recipes of these rows."""

EXPECTED = {ORDER: (400, 100), ATTRIBUTE: (200, 0)}
"""Number of items in the published tables, and how many have a third clip."""

ROLES = ("pair", "reversed_pair", "triplet")
"""Prefixes of the clips' columns: ``pair_file``, ``pair_caption`` …"""

NONE = ("", "-", "nan")
"""Values for a missing third clip."""

_NEEDED = tuple(f"{role}_{part}" for role in ROLES[:2] for part in ("file", "caption"))

_COPY = ("file_name", "audio", "answer")
"""Columns of the Hub copy of the order items, one clip per row."""

_STEMS = ("", "_rev", "_trip")
"""Endings of the stems of an item's files in that copy."""

_HEAD = 2**16
"""Bytes of a table from which the benchmark is recognised by its first line."""

_HINT = "give its archives, as zip files or unpacked, one of its tables, or the Parquet copy of the order items"


@dataclass(frozen=True)
class _Clip:
    """A clip in a table.

    Attributes:
        caption: caption that is true of the clip.
        name: name of its file, as in the table.
        where: row and column, for messages.
    """

    caption: str
    name: str
    where: str


class _Reader:
    """The reader; see `Reader`."""

    name = "compa"
    meaning = (
        "the published CompA benchmark: a folder with its archives, packed or unpacked, a zip, a CSV or a Parquet file"
    )

    def open(self, path: str) -> Data:
        """Open a copy of the benchmark; see `Reader`.

        Args:
            path: a folder, which may contain one or both archives, packed or not; an archive; a table, with its sound
                files in the same folder or below; or the Parquet copy of the order items.

        Raises:
            DatasetError: nothing was found, or files are missing; lists all, each with table, row and column.
        """
        source, problems = f"{self.name}:{path}", list[str]()
        configurations: dict[str, ReadConfiguration] = {}
        skipped: list[str] = []
        for container, table in _tables(Path(path), source, skipped):
            of_table: list[str] = []
            if isinstance(container, ParquetFiles):
                recipe, items = ORDER, _items_of_copy(container, of_table)
            else:
                recipe, items = _items_of_table(container, table, of_table)
            if recipe not in configurations:
                configurations[recipe] = _configuration(recipe, source, container, table, items, of_table)
                problems += of_table
            elif isinstance(container, FolderFiles):
                problems.append(
                    f"{container.title}: {printable(table)} is a second table with the same items; keep one"
                )
            # Unpacked files are read instead of the archive next to them.
        if problems:
            count = f"{len(problems):,} problem{'s' if len(problems) > 1 else ''}"
            raise DatasetError("\n  ".join((f"{source}: {count}:", *problems)))
        if not configurations:
            unread = "".join(f"; {text}" for text in skipped)
            raise DatasetError(
                f"{source} has no table of the benchmark (columns {', '.join(_NEEDED)}); {_HINT}{unread}"
            )
        for text in skipped:
            warnings.warn(f"{source}: skipped: {text}", stacklevel=3)
        return HeldData(source, {name: configurations[name] for name in EXPECTED if name in configurations})


def _tables(path: Path, source: str, skipped: list[str]) -> Iterator[tuple[Container, str]]:
    """Yield the tables at a path, each with the container of its files; Parquet, which is both, has its own name.

    Unreadable files in a folder or archive may be unrelated to the benchmark; they are added to `skipped`.
    """
    if path.is_dir():
        folder = FolderFiles(path)
        yield from _tables_in(folder, skipped)
        for name in sorted(folder.names, key=lambda name: name.lower().endswith(".parquet")):
            try:
                if name.lower().endswith(".zip"):
                    yield from _tables_in(ZippedFiles(path / name), skipped)
                elif name.lower().endswith(".parquet"):
                    yield from _copies(path / name)
            except DatasetError as error:
                skipped.append(first_line(error))
    elif not path.is_file():
        raise DatasetError(f"{source} is neither a folder nor a file; {_HINT}")
    elif path.suffix.lower() == ".zip":
        yield from _tables_in(ZippedFiles(path), skipped)
    elif path.suffix.lower() == ".parquet":
        yield from _copies(path)
    elif path.suffix.lower() == ".csv":
        folder = FolderFiles(path.parent)
        if _is_table(folder, path.name):
            yield folder, path.name
    else:
        raise DatasetError(f"{source} is not a CSV, zip or Parquet file; {_HINT}")


def _tables_in(container: FolderFiles | ZippedFiles, skipped: list[str]) -> Iterator[tuple[Container, str]]:
    for name in container.names:
        try:
            is_table = name.lower().endswith(".csv") and _is_table(container, name)
        except DatasetError as error:
            skipped.append(f"{container.title}: {printable(name)} {first_line(error)}")
            continue
        if is_table:
            yield container, name


def _copies(path: Path) -> Iterator[tuple[Container, str]]:
    from ...manifest import open_parquet

    if set(_COPY) <= set(open_parquet(printable(str(path)), path).schema_arrow.names):
        yield ParquetFiles(path, name=_COPY[0], sound=_COPY[1]), path.name


def _is_table(container: FolderFiles | ZippedFiles, name: str) -> bool:
    """Return whether the first line of a CSV has the benchmark's columns; only that line is read."""
    try:
        head = text_of(container.head(name, _HEAD), name, otherwise="cp1252").partition("\n")[0]
        return set(_NEEDED) <= set(table_of(head, name, ragged="cut").headings)
    except TableError:
        return False


def _items_of_table(container: Container, table: str, problems: list[str]) -> tuple[str, list[list[_Clip]]]:
    """Return the recipe and the items of a table: the clips of each item, two or three."""
    try:
        rows = table_of(table_text(container, table), printable(PurePosixPath(table).name), ragged="cut")
    except TableError as error:
        raise DatasetError(f"{container.title}: {error}") from error
    columns = rows.headings
    file_columns = {role: (f"{role}_file.1", f"{role}_file") for role in ROLES}
    repeated = any(names[0] in columns for names in file_columns.values())
    recipe = ATTRIBUTE if repeated or "attribute" in PurePosixPath(table).name.lower() else ORDER
    items = []
    for line in rows.lines:
        values = dict(zip(columns, line.fields, strict=True))
        if all(value.lower() in NONE for value in values.values()):
            continue
        where = line.where
        item = []
        for role in ROLES:
            # The first column of the attribute table has video ids, the second the names of existing files.
            column = next((name for name in file_columns[role] if values.get(name, "").lower() not in NONE), None)
            caption = values.get(f"{role}_caption", "")
            has_caption = caption.lower() not in NONE
            if column is not None and has_caption:
                item.append(_Clip(caption, values[column], f"{where}, {column}"))
            elif column is not None or has_caption or role != ROLES[-1]:
                empty = f"{role}_caption" if column is not None else f"{role}_file"
                problems.append(f"{where}: {empty} is empty")
        items.append(item)
    return recipe, items


def _items_of_copy(copy: ParquetFiles, problems: list[str]) -> list[list[_Clip]]:
    """Return the items of the Parquet copy: the files of a stem X, X_rev and, if it exists, X_trip."""
    texts = dict(zip(copy.names, copy.texts(_COPY[2]), strict=True))
    names: dict[str, str] = {}
    for name in copy.names:
        first = names.setdefault(PurePosixPath(name).stem, name)
        if first != name:
            problems.append(
                f"{copy.title}: {printable(first)} and {printable(name)} belong to the same item by {_COPY[0]}; "
                "keep one"
            )
    items, used = [], set()
    for stem, name in names.items():
        if any(stem.endswith(ending) and stem.removesuffix(ending) in names for ending in _STEMS[1:]):
            continue
        members = [f"{stem}{ending}" for ending in _STEMS if f"{stem}{ending}" in names]
        if members[1:2] != [f"{stem}_rev"]:
            problems.append(f"{copy.title}: {printable(name)} has no reversed clip {printable(stem)}_rev in {_COPY[0]}")
        items.append([_Clip(texts[names[one]].strip(), names[one], f"{_COPY[0]} {names[one]!r}") for one in members])
        used.update(members)
    empty = [names[stem] for stem in used if not texts[names[stem]].strip()]
    for name in sorted(empty):
        problems.append(f"{copy.title}: {printable(name)} has no {_COPY[2]}")
    return items


def _configuration(
    recipe: str,
    source: str,
    container: Container,
    table: str,
    items: Sequence[Sequence[_Clip]],
    problems: list[str],
) -> ReadConfiguration:
    """Return the rows of some items with their files; missing files are added to the problems."""
    if not items:
        problems.append(f"{container.title}: {printable(table)} has no rows")
    by_name: dict[str, list[str]] = defaultdict(list)
    for name in container.names:
        path = PurePosixPath(name)
        if isinstance(container, ParquetFiles):
            by_name[name].append(name)
        elif path.suffix.lower() in AUDIO_SUFFIXES:
            by_name[path.name].append(name)
            by_name[path.stem].append(name)
    rows: list[Row] = []
    clips = []
    for number, item in enumerate(items):
        names = [_file_of(clip, container, table, by_name, problems) for clip in item]
        if len(item) > 1:
            # A clip and its reversed version cannot be distinguished if they share a file or a caption.
            (first, second), where = item[:2], printable(item[1].where)
            if names[0] is not None and names[0] == names[1]:
                problems.append(f"{where}: the file {printable(second.name)!r} is also used for {ROLES[0]}")
            if first.caption == second.caption:
                problems.append(f"{where}: the caption {printable(second.caption)!r} is also used for {ROLES[0]}")
        named = [(place, name) for place, name in enumerate(names) if name is not None]
        clips.append([ReadClip(f"audio/{place}", partial(container.file, name)) for place, name in named])
        id = f"{recipe}-{number:05d}"
        # Fields that the published data lack are empty or 0, and each item is its own pair.
        row: Row = {
            "id": id,
            "split": "test",
            "captions": [clip.caption for clip in item],
            "events": [[] for _ in item],
            "swapped": "order" if recipe == ORDER else "attribute",
            **dict.fromkeys(("mention", "template", "subset"), ""),
            "pair": id,
            "origin": "published",
            "writer": "human",
            **dict.fromkeys(("gap", "overlap", "distance"), 0.0),
            "domain": "environmental sounds",
            "files": [printable(PurePosixPath(clip.name).name) for clip in item],
        }
        rows.append(row)
    counts = (len(items), sum(len(item) == len(ROLES) for item in items))
    if items and counts != EXPECTED[recipe]:
        warnings.warn(
            f"{source}: {printable(PurePosixPath(table).name)} has {counts[0]:,} items, {counts[1]:,} of them with a "
            f"third clip; the published table has {EXPECTED[recipe][0]} and {EXPECTED[recipe][1]}. Scores are not "
            "comparable with published ones",
            stacklevel=4,
        )
    return ReadConfiguration(recipe, source, rows, clips)


def _file_of(
    clip: _Clip, container: Container, table: str, by_name: Mapping[str, list[str]], problems: list[str]
) -> str | None:
    """Return the file of a clip: below the folder of its table if possible, and the nearest of several.

    None if there is none, which is added to the problems.
    """
    # Also for Windows paths: only the file name in a table's path is used, its folders are ignored.
    wanted = clip.name if clip.name in by_name else clip.name.replace("\\", "/").rpartition("/")[2]
    names = by_name.get(wanted, [])
    below = [name for name in names if PurePosixPath(name).is_relative_to(PurePosixPath(table).parent)]
    depths = {name: len(PurePosixPath(name).parts) for name in below or names}
    nearest = sorted(depths, key=lambda name: (depths[name], name))
    if not nearest:
        problems.append(f"{printable(clip.where)}: no file {printable(clip.name)!r} in {container.title}")
        return None
    if len(nearest) > 1 and depths[nearest[0]] == depths[nearest[1]]:
        both = " and ".join(map(printable, nearest[:2]))
        problems.append(f"{printable(clip.where)}: {printable(clip.name)!r} is the name of {both}")
        return None
    return nearest[0]


READER = _Reader()
