"""Data read from a built folder, the Hub or the authors' publications: Parquet shards with embedded audio."""

from __future__ import annotations

import hashlib
import io
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import soundfile
import soxr
from datasets import Features
from numpy.typing import NDArray

from audio_compositionality.hub.calls import call
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import Action, HubError, Repository, is_of_client
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import open_file, sha256_of_file
from audio_compositionality.support.text import first_line
from audio_compositionality.support.yaml_text import parse_yaml

from .data import Clip, DatasetError, HeldData, Row, Waveform, check_range
from .manifest import (
    CARD_NAME,
    FINGERPRINT_KEY,
    MANIFEST_NAME,
    AudioColumn,
    BuiltRecipe,
    Manifest,
    Shard,
    audio_columns,
    batches_of,
    naming,
    open_parquet,
    rows_of_groups,
)
from .recipes import list_recipes, load_recipe
from .sounds.published import CONFIGURATION, published_columns, published_with

_EXPECTED = "expected a folder written by `audio-compositionality build`, or a Hub id of such data"

_LARGEST_CARD = 2**24
"""Most bytes of a card."""
"""The YAML at the beginning of a card."""

Answer = TypeVar("Answer")


class UnrecognizedDataError(DatasetError):
    """A data set that comes neither from this project nor from the authors."""


class LocalFolder:
    """A folder on this machine.

    Attributes:
        source: its path.
        revision: None; a `HubRepository` has its commit here.
    """

    revision = None

    def __init__(self, source: str) -> None:
        self.source = source
        self._root = Path(source)

    def path(self, name: str) -> Path | None:
        """Return the path of a file; None if it does not exist."""
        path = self._root / name
        return path if path.is_file() else None

    def names_of(self, files: list[str]) -> list[str]:
        """Return names relative to the folder for file names from `datasets`; raise DatasetError for a file outside."""
        # Do not resolve links: the files of a downloaded snapshot are links to another folder.
        names = [Path(os.path.relpath(os.path.abspath(file), os.path.abspath(self._root))).as_posix() for file in files]
        outside = next((name for name in names if name.startswith("../")), None)
        if outside is not None:
            raise DatasetError(f"{self.source} names a file outside of it, {outside}; {_EXPECTED}")
        return names

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Return the result of a call."""
        return question()

    def parquet_files(self) -> list[str]:
        """Return names of all Parquet files that `datasets` could read as shards: one level down, not hidden."""
        paths = (path.relative_to(self._root) for path in self._root.glob("*/*.parquet"))
        return sorted(path.as_posix() for path in paths if not path.name.startswith("."))


class HubRepository:
    """A data set on the Hub at one commit.

    Attributes:
        source: its id.
    """

    def __init__(self, source: str, revision: str | None) -> None:
        """Ask for the commit.

        Raises:
            DatasetError: the data set does not exist, or the Hub cannot be reached.
        """
        self.source = source
        self._repository = Repository("dataset", source)
        self._asked = revision or "main"

    @cached_property
    def revision(self) -> str:
        """Return the commit."""
        try:
            # The client retries on its own.
            return Hub().head(self._repository, self._asked)
        except HubError as error:
            raise DatasetError(str(error)) from error

    def path(self, name: str) -> Path | None:
        """Return the path of a file after its download; None if it does not exist."""
        import huggingface_hub

        revision = self.revision

        def downloaded() -> Path | None:
            try:
                path = huggingface_hub.hf_hub_download(self.source, name, repo_type="dataset", revision=revision)
            except huggingface_hub.errors.LocalEntryNotFoundError:
                # A failed request does not mean that the file is missing: without the manifest, the same data would get
                # another fingerprint.
                raise
            except huggingface_hub.errors.EntryNotFoundError:
                return None
            return Path(path)

        try:
            return self.ask(downloaded)
        except huggingface_hub.errors.LocalEntryNotFoundError as error:
            raise DatasetError(f"{name} of {self.source} is not in the cache and the Hub cannot be reached") from error

    def names_of(self, files: list[str]) -> list[str]:
        """Return names as `LocalFolder.names_of`; `datasets` gives hf://datasets/ORG/NAME@COMMIT/PATH."""
        start = f"hf://datasets/{self.source}@{self.revision}/"
        outside = next((file for file in files if not file.startswith(start)), None)
        if outside is not None:
            raise DatasetError(f"{self.source} names a file outside of it, {outside}; {_EXPECTED}")
        return [file.removeprefix(start) for file in files]

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """Return the result of a call of the Hub, which is repeated if that can help."""
        try:
            return call(Action(f"read the data set {self.source}", repository=self._repository), question)
        except HubError as error:
            raise DatasetError(str(error)) from error

    def size_of(self, names: Collection[str]) -> int:
        """Return the total size of files in bytes, as reported by the Hub.

        Raises:
            DatasetError: the Hub cannot be reached.
        """
        try:
            files = Hub().files(self._repository, self.revision)
        except HubError as error:
            raise DatasetError(str(error)) from error
        return sum(files[name].size for name in names if name in files)

    def parquet_files(self) -> None:
        """Return None: only files in the manifest are read."""


Place = LocalFolder | HubRepository


def place_of(source: str, revision: str | None) -> Place:
    """Return the local folder of this name, or else the Hub repository."""
    return LocalFolder(source) if Path(source).is_dir() else HubRepository(source, revision)


def find_shards(place: Place) -> dict[str, tuple[BuiltRecipe | None, list[ShardReader]]]:
    """Return each known recipe's configuration: its entry in the manifest, or None without a manifest, and its shards.

    The shards are in the order of the rows; there are none if the manifest lists the recipe as not yet built.

    Raises:
        DatasetError: no data of this project were found, or some are missing.
    """
    path = place.path(MANIFEST_NAME)
    manifest = None if path is None else Manifest.load(path)
    if manifest is None:
        return {name: (None, readers) for name, readers in _shards_by_card(place).items()}
    present = place.parquet_files()
    if present is not None:
        expected = manifest.shards
        missing = sorted(set(expected) - set(present))
        if missing:
            raise DatasetError(
                f"{place.source} lacks {len(missing)} of its {len(expected)} shards, e.g. {missing[0]}, so the samples "
                "would not match the fingerprint. Build or download it again"
            )
        finished = tuple(f"{name}/" for name, built in manifest.recipes.items() if built.shards)
        strange = next((name for name in present if name.startswith(finished) and name not in expected), None)
        if finished and strange is not None:
            raise DatasetError(f"{strange} does not belong to this data set: it is not in the manifest")
    return {
        name: (built, [ShardReader(place, shard.split, path, shard) for path, shard in built.shards.items()])
        for name, built in manifest.recipes.items()
    }


def _shards_by_card(place: Place) -> dict[str, list[ShardReader]]:
    """Return the shards as `datasets` reads the card or the file names: configurations of recipes, or the authors'
    data."""
    check_card(place)
    files = _files_by_card(place)
    # Files by split, and the split's name in the data for each split of the recipe.
    found: dict[str, tuple[Mapping[str, list[str]], Mapping[str, str]]] = {
        name: (of_splits, {split: split for split in load_recipe(name).splits})
        for name, of_splits in files.items()
        if name in list_recipes()
    }
    if not found and list(files) == [CONFIGURATION]:
        names = [name for of_split in files[CONFIGURATION].values() for name in of_split]
        first = next(((name, path) for name in names if (path := place.path(name)) is not None), None)
        if first is None:
            raise DatasetError(f"{place.source} names no existing file; {_EXPECTED}")
        columns = list(open_parquet(*first).schema_arrow.names)
        published = published_with(columns)
        if published is None:
            raise UnrecognizedDataError(
                f"{place.source} has the columns {', '.join(columns)} and no manifest; it lacks the columns of the "
                f"authors' published data ({published_columns()}); {_EXPECTED}"
            )
        found[published.recipe] = (files[CONFIGURATION], published.splits)
    if not found:
        raise UnrecognizedDataError(
            f"{place.source} has the configurations {', '.join(files)}, but none has the name of a recipe "
            f"({', '.join(list_recipes())}); {_EXPECTED}"
        )
    for recipe, (of_splits, splits) in found.items():
        if not set(splits.values()) <= set(of_splits):
            raise DatasetError(
                f"{place.source}, {recipe}: the splits are {', '.join(of_splits)}; expected "
                f"{', '.join(splits.values())}"
            )
    return {
        recipe: [ShardReader(place, split, name) for split in splits for name in of_splits[splits[split]]]
        for recipe, (of_splits, splits) in found.items()
    }


def _files_by_card(place: Place) -> dict[str, dict[str, list[str]]]:
    """Return the names of files by configuration and split."""
    import datasets

    def asked() -> dict[str, dict[str, list[str]]]:
        files = {}
        for name in datasets.get_dataset_config_names(place.source, revision=place.revision):
            builder = datasets.load_dataset_builder(place.source, name, revision=place.revision)
            of_splits = builder.config.data_files or {}
            files[name] = {
                str(split): place.names_of([str(file) for file in in_split]) for split, in_split in of_splits.items()
            }
        return files

    try:
        files = place.ask(asked)
    except DatasetError:
        raise
    except Exception as error:
        # An untrusted card can make `datasets` raise any error: KeyError, TypeError, RuntimeError.
        if is_of_client(error):
            raise
        raise DatasetError(f"no data set in {place.source!r}: {first_line(error)}; {_EXPECTED}") from error
    names = [name for splits in files.values() for in_split in splits.values() for name in in_split]
    other = next((name for name in names if not name.endswith(".parquet")), None)
    if other is not None:
        raise UnrecognizedDataError(f"{place.source} contains {Path(other).name}, which is not Parquet; {_EXPECTED}")
    if not names:
        raise DatasetError(f"{place.source} names no file; {_EXPECTED}")
    return files


def check_card(place: Place) -> None:
    """Raise an error if a card cannot be read or names a file elsewhere, before that file is requested."""
    path = place.path(CARD_NAME)
    if path is None:
        return
    try:
        with open_file(path) as stream:
            content = stream.read(_LARGEST_CARD + 1)
        if len(content) > _LARGEST_CARD:
            raise InputError(f"it has more than {_LARGEST_CARD:,} bytes")
        # A header that is not closed by a line of dashes is no header, neither here nor for `datasets`.
        lines = content.decode("utf-8-sig").strip().splitlines()
        dashes = [number for number, line in enumerate(lines) if line.strip() == "---"]
        has_header = len(dashes) > 1 and dashes[0] == 0
        values = parse_yaml("\n".join(lines[1 : dashes[1]]), CARD_NAME) if has_header else None
    except (OSError, UnicodeDecodeError, InputError) as error:
        raise DatasetError(
            f"no data set in {place.source!r}: {CARD_NAME} cannot be read: {first_line(error)}"
        ) from error
    for text in _texts(values.get("configs") if isinstance(values, dict) else None):
        if "://" in text or "::" in text:
            raise DatasetError(f"{CARD_NAME} of {place.source} names {text}, outside of the data set")


def _texts(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict):
        for value in values.values():
            yield from _texts(value)
    elif isinstance(values, list):
        for value in values:
            yield from _texts(value)


ROWS_AT_A_TIME = 16


@dataclass(frozen=True)
class ShardReader:
    """A shard, downloaded and compared with the manifest on first use.

    A shard that was built here needs its manifest: without it, the same samples would get another fingerprint.

    Attributes:
        place: folder or repository of the shard.
        split: split of its rows.
        name: path in the data set.
        built: its entry in the manifest; None without a manifest.
    """

    place: Place
    split: str
    name: str
    built: Shard | None = None

    @cached_property
    def path(self) -> Path:
        """Return the path of the file, verified by the digest in the manifest.

        Raises:
            DatasetError: it differs, is missing, or was built here and the manifest is missing.
        """
        path = self.place.path(self.name)
        if path is None:
            raise DatasetError(f"{self.name} of {self.place.source} is missing; build or download it again")
        if self.built is not None:
            self.built.verify(self.name, path)
            return path
        metadata = naming(self.name, lambda: pq.read_metadata(path)).metadata or {}
        if FINGERPRINT_KEY in metadata:
            fingerprint = metadata[FINGERPRINT_KEY].decode("utf-8", "replace")
            raise DatasetError(
                f"{self.name} of {self.place.source} was built with the fingerprint {fingerprint[:12]}, but the "
                f"{MANIFEST_NAME} that describes all shards is missing. Build them again (--force), or download "
                "all files again"
            )
        return path

    def open(self) -> pq.ParquetFile:
        """Open the file; it is not kept open."""
        return open_parquet(self.name, self.path)

    @cached_property
    def features(self) -> Features:
        """Return the declared columns."""
        # Taken outside `naming`: a shard that differs from the manifest is not damaged Parquet.
        path = self.path
        features: Features = naming(self.name, lambda: Features.from_arrow_schema(pq.read_schema(path)))
        return features

    @cached_property
    def columns(self) -> tuple[AudioColumn, ...]:
        """Return the audio columns."""
        return audio_columns(self.features)

    @cached_property
    def groups(self) -> tuple[range, ...]:
        """Return the row numbers of each row group in the shard."""
        metadata = self.open().metadata
        sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        return tuple(range(stop - size, stop) for size, stop in zip(sizes, accumulate(sizes), strict=True))

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return self.groups[-1].stop if self.groups else 0

    def rows(self) -> list[Row]:
        """Return the rows without their audio."""
        audio = {column.name for column in self.columns}
        names = [name for name in self.features if name not in audio]
        if not names:
            return [{} for _ in range(self.num_rows)]
        return rows_of_groups(self.name, self.open(), range(len(self.groups)), names)

    def list_lengths(self, column: str) -> list[int]:
        """Return the number of clips of each row in a list column, without reading the clips."""

        file = self.open()
        leaves = [file.schema.column(number).path for number in range(len(file.schema))]
        inside = [leaf for leaf in leaves if leaf.startswith(f"{column}.")]
        leaf = next((leaf for leaf in inside if leaf.endswith(".path")), inside[0])
        lengths: list[int] = []
        for batch in batches_of(self.name, file, range(len(self.groups)), [leaf]):
            lengths += pc.fill_null(pc.list_value_length(batch[column]), 0).to_pylist()
        return lengths

    def encoded_rows(self, wanted: range, columns: Sequence[AudioColumn]) -> Iterator[tuple[int, Row]]:
        """Yield number and audio columns of some rows, reading only their row groups."""
        numbers = [number for number, group in enumerate(self.groups) if overlap(group, wanted)]
        if not numbers:
            return
        names = [column.name for column in columns]
        start = self.groups[numbers[0]].start
        for batch in batches_of(self.name, self.open(), numbers, names, ROWS_AT_A_TIME):
            if start >= wanted.stop:
                return
            kept = overlap(range(start, start + len(batch)), wanted)
            part = batch.slice(kept.start - start, len(kept))
            yield from zip(kept, naming(self.name, part.to_pylist), strict=True)
            start += len(batch)


def overlap(one: range, other: range) -> range:
    """Return the intersection of two ranges."""
    start = max(one.start, other.start)
    return range(start, max(start, min(one.stop, other.stop)))


LONGEST_CLIP = 600
"""Seconds; a file that declares more is not decoded."""


class _InvalidClipError(Exception):
    """The problem of a clip, as the end of a sentence that begins with its id.

    Attributes:
        length: number of samples of the clip, if known.
    """

    def __init__(self, text: str, length: int = 1) -> None:
        super().__init__(text)
        self.length = length


class StoredData(HeldData["StoredConfiguration"]):
    """Data stored as Parquet shards with embedded audio; see `Data`.

    If there is a manifest (`build_dataset` writes one), a shard must have the digest in it, so that the
    fingerprint always identifies the samples that are read.
    """

    def __init__(self, source: str, *, revision: str | None = None) -> None:
        """Find the shards; they are read on demand.

        Args:
            source: a folder or a Hub id.
            revision: branch, tag or commit of a Hub id.

        Raises:
            DatasetError: there is no data set, or it does not come from this project.
        """
        place = place_of(source, revision)
        found = find_shards(place).items()
        super().__init__(source, {name: StoredConfiguration(place, name, *shards) for name, shards in found})

    def configuration(self, recipe: str) -> StoredConfiguration:
        """Return the configuration of a recipe.

        Raises:
            DatasetError: there is none, or its build is not finished.
        """
        configuration = super().configuration(recipe)
        if not configuration.shards:
            raise DatasetError(f"{self.source} has no shard of {recipe}: its build was not finished; run it again")
        return configuration


class StoredConfiguration:
    """The data of one recipe, read shard by shard from where they are; see `Configuration`.

    Attributes:
        recipe: name of the recipe.
        source: what the data were opened from.
        shards: readers of the shards, in the order of the rows.
    """

    def __init__(self, place: Place, recipe: str, built: BuiltRecipe | None, shards: Sequence[ShardReader]) -> None:
        self.recipe = recipe
        self.source = place.source
        self.shards = tuple(shards)
        self._built = built
        self._recipe = load_recipe(recipe) if recipe in list_recipes() else None
        self._resampling_said = False

    @cached_property
    def fingerprint(self) -> str:
        """Return the manifest's fingerprint, or SHA-256 of the splits' names and shards' digests without a manifest."""
        if self._built is not None:
            return self._built.fingerprint
        digest = hashlib.sha256(f"{self.recipe}\n".encode())
        for reader in self.shards:
            digest.update(f"{reader.split} {sha256_of_file(reader.path)}\n".encode())
        return digest.hexdigest()

    @cached_property
    def rows_digest(self) -> str:
        """Return the manifest's digest, which equals the rendered rows' digest; without a manifest, the fingerprint."""
        return self.fingerprint if self._built is None else self._built.rows_digest

    @cached_property
    def columns(self) -> tuple[AudioColumn, ...]:
        """Return the audio columns, which all shards must declare equally.

        Raises:
            DatasetError: a shard declares other columns, or lacks one of the recipe's.
        """
        columns = self.shards[0].columns
        expected = {column.name for column in columns}
        if self._recipe is not None:
            settings = next(iter(self._recipe.presets.values()), None)
            if settings is not None:
                expected |= {column.name for column in audio_columns(self._recipe.features(settings))}
        for reader in self.shards:
            missing = expected - {column.name for column in reader.columns}
            if missing:
                raise DatasetError(
                    f"{reader.name} lacks the columns {', '.join(sorted(missing))} of {self.recipe}, which must be "
                    f"audio; it has {', '.join(reader.features)}"
                )
            if reader.columns != columns:
                raise DatasetError(f"{reader.name} declares other audio columns than {self.shards[0].name}")
        if not columns:
            raise DatasetError(f"{self.shards[0].name} declares no audio column")
        return columns

    @cached_property
    def rows(self) -> Sequence[Row]:
        """Return all rows without their audio; a row without an id is named by recipe, split and position."""
        _ = self.columns
        rows: list[Row] = []
        ids = set()
        first_of_split: dict[str, int] = {}
        for reader in self.shards:
            split = reader.split
            first = first_of_split.setdefault(split, len(rows))
            for record in reader.rows():
                row = {"id": f"{self.recipe}-{split}-{len(rows) - first:05d}", **record, "split": split}
                if not isinstance(row["id"], str) or row["id"] in ids:
                    raise DatasetError(f"{reader.name}: a row has the id {row['id']!r}; ids must be unique texts")
                ids.add(row["id"])
                try:
                    if self._recipe is not None:
                        self._recipe.check_row(row)
                except DatasetError as error:
                    raise DatasetError(f"{reader.name}: {error}") from error
                rows.append(row)
        return tuple(rows)

    @cached_property
    def _clip_names(self) -> tuple[tuple[str, ...], ...]:
        """Return the names of each row's clips.

        Raises:
            DatasetError: a row lacks a clip of its recipe, e.g. one in a list.
        """
        counts = []
        for column in self.columns:
            of_rows: list[int] = []
            for reader in self.shards:
                of_rows += reader.list_lengths(column.name) if column.is_list else [1] * reader.num_rows
            counts.append(of_rows)
        stored = tuple(
            tuple(name for column, count in zip(self.columns, row, strict=True) for name in column.clip_names(count))
            for row in zip(*counts, strict=True)
        )
        if self._recipe is not None:
            for row, names in zip(self.rows, stored, strict=True):
                missing = set(self._recipe.clip_names(row)).difference(names)
                if missing:
                    raise DatasetError(f"{self.source}: row {row['id']} lacks the clip {min(missing)!r}")
        return stored

    @cached_property
    def clip_ids(self) -> Sequence[str]:
        """Return the ids of all clips, row by row."""
        return tuple(
            f"{row['id']}/{name}" for row, names in zip(self.rows, self._clip_names, strict=True) for name in names
        )

    @cached_property
    def _first_clips(self) -> NDArray[np.int64]:
        """Return the number of each row's first clip, and the total number of clips at the end."""
        return np.cumsum([0, *map(len, self._clip_names)])

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Yield clips in the order of `clip_ids`, decoded on demand.

        See `Configuration.clips`. An unusable clip has the length that it should have, or one sample if that is
        unknown.

        Raises:
            DatasetError: a shard differs from the manifest or is damaged; or, without ``keep_invalid``, a clip cannot
                be decoded, or is empty, silent, not mono or not finite, or differs in length from the first clip
                although the recipe's clips have one length. The message names the clip and its shard.
        """
        wanted = check_range(wanted, len(self.clip_ids))
        length = self._common_length if wanted and self._recipe is not None and self._recipe.one_length else None
        for number, column, audio in self._encoded_clips(wanted):
            clip_id = self.clip_ids[number]
            rate = column.sample_rate or 0
            problem = None
            try:
                waveform, rate = self._decode(clip_id, audio, column.sample_rate)
                if length not in (None, len(waveform)):
                    raise _InvalidClipError(
                        f"has {len(waveform):,} samples, but the first has {length:,}; all clips of "
                        f"{self.recipe} must have the same length"
                    )
            except _InvalidClipError as error:
                if not keep_invalid:
                    raise DatasetError(f"{self._shard_of(number)}: clip {clip_id} {error}") from error
                waveform = np.full(error.length if length is None else length, np.nan, np.float32)
                problem = str(error)
            yield Clip(clip_id, waveform, rate or 1, problem)

    @cached_property
    def _common_length(self) -> int:
        """Return the number of samples of every clip, taken from the first one that can be decoded."""
        first_problem = None
        for number, column, audio in self._encoded_clips(range(len(self.clip_ids))):
            clip_id = self.clip_ids[number]
            try:
                return len(self._decode(clip_id, audio, column.sample_rate)[0])
            except _InvalidClipError as error:
                first_problem = first_problem or DatasetError(f"{self._shard_of(number)}: clip {clip_id} {error}")
        raise first_problem or DatasetError(f"{self.source} contains no clip of {self.recipe}")

    def _encoded_clips(self, wanted: range) -> Iterator[tuple[int, AudioColumn, Any]]:
        """Yield number, column and stored value of each clip."""
        if not wanted:
            return
        starts = self._first_clips
        rows = range(
            int(np.searchsorted(starts, wanted.start, "right")) - 1, int(np.searchsorted(starts, wanted.stop, "left"))
        )
        first_row = 0
        for reader in self.shards:
            here = overlap(range(first_row, first_row + reader.num_rows), rows)
            in_shard = range(here.start - first_row, here.stop - first_row)
            for row, record in reader.encoded_rows(in_shard, self.columns) if here else ():
                number = int(starts[first_row + row])
                for column in self.columns:
                    for audio in (record[column.name] or ()) if column.is_list else (record[column.name],):
                        if number in wanted:
                            yield number, column, audio
                        number += 1
            first_row += reader.num_rows

    def _shard_of(self, clip: int) -> str:
        """Return the name of a clip's shard, given the clip's number."""
        row = int(np.searchsorted(self._first_clips, clip, "right")) - 1
        ends = np.cumsum([reader.num_rows for reader in self.shards])
        return self.shards[int(np.searchsorted(ends, row, "right"))].name

    def _decode(self, clip_id: str, audio: Any, declared_rate: int | None) -> tuple[Waveform, int]:
        """Return samples and rate of an encoded clip, resampled to the declared rate of its column."""
        data = audio.get("bytes") if isinstance(audio, dict) else None
        if not data or not isinstance(data, bytes):
            raise _InvalidClipError("contains no audio; each clip must be an encoded file embedded in its row")
        try:
            info = soundfile.info(io.BytesIO(data))
            if info.frames > LONGEST_CLIP * info.samplerate:
                raise _InvalidClipError(f"declares {info.frames:,} samples; a clip may last at most {LONGEST_CLIP} s")
            samples, rate = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)
        except (soundfile.SoundFileError, RuntimeError) as error:
            raise _InvalidClipError(f"is damaged and cannot be decoded: {error}") from error
        length = len(samples) if declared_rate is None else round(len(samples) * declared_rate / rate)
        if samples.shape[1] != 1:
            raise _InvalidClipError(f"has {samples.shape[1]} channels; clips must be mono", length)
        waveform = samples[:, 0]
        if not len(waveform):
            raise _InvalidClipError("is empty; a clip must have at least one sample")
        if not np.isfinite(waveform).all():
            raise _InvalidClipError("has values that are not finite (NaN or infinity)", length)
        if not waveform.any():
            raise _InvalidClipError("is silent; a clip must contain sound", length)
        if declared_rate is None or rate == declared_rate:
            return np.asarray(waveform, np.float32), rate
        if not self._resampling_said:
            warnings.warn(
                f"{self.source}: clip {clip_id} is at {rate:,} Hz; clips with rates other than "
                f"{declared_rate:,} Hz are resampled (shown once)",
                stacklevel=2,
            )
            self._resampling_said = True
        return np.asarray(soxr.resample(waveform, rate, declared_rate), np.float32), declared_rate
