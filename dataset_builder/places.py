"""Where stored data lie, a folder or a repository of the Hub, and which shards of which configuration are there."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import yaml

from audio_compositionality.hub.calls import call
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import Action, HubError, Repository, is_of_client
from audio_compositionality.support.text import first_line

from .data import DatasetError
from .manifest import CARD_NAME, MANIFEST_NAME, Manifest, Shard
from .parquet import open_parquet
from .recipes import list_recipes, load_recipe
from .sounds.published import CONFIGURATION, published_columns, published_with

_EXPECTED = "expected a folder written by `audio-compositionality build`, or a Hub id of such data"

_HEADER = re.compile(r"\A\ufeff?---\s*\n(.*?)^---\s*$", re.DOTALL | re.MULTILINE)
"""The YAML at the head of a card."""

Answer = TypeVar("Answer")


class StrangeDataError(DatasetError):
    """A data set that is none of this project's, and none of the authors'."""


@dataclass(frozen=True)
class StoredShard:
    """A shard of a configuration.

    Attributes:
        split: which it belongs to.
        name: its path below the root of the data.
        built: what the manifest says of it; None without a manifest.
    """

    split: str
    name: str
    built: Shard | None = None


@dataclass(frozen=True)
class StoredShards:
    """The shards of a configuration, split by split.

    Attributes:
        shards: in the order of its rows.
        fingerprint: of the manifest; None without one.
    """

    shards: tuple[StoredShard, ...]
    fingerprint: str | None = None


class Folder:
    """A folder of this machine.

    Attributes:
        source: its path.
        revision: None, where a `HubRepository` has its commit.
    """

    revision = None

    def __init__(self, source: str) -> None:
        self.source = source
        self._root = Path(source)

    def path(self, name: str) -> Path | None:
        """Where a file is; None where there is none of that name."""
        path = self._root / name
        return path if path.is_file() else None

    def names_of(self, files: list[str]) -> list[str]:
        """Names below the folder of files as `datasets` gives them; raises DatasetError for one outside."""
        # Not resolved: the files of a downloaded snapshot are links to elsewhere.
        names = [Path(os.path.relpath(os.path.abspath(file), os.path.abspath(self._root))).as_posix() for file in files]
        outside = next((name for name in names if name.startswith("../")), None)
        if outside is not None:
            raise DatasetError(f"{self.source} names a file outside of it, {outside}; {_EXPECTED}")
        return names

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer of `datasets`."""
        return question()

    def parquet_files(self) -> list[str]:
        """Names of all Parquet files that `datasets` could take for shards: one level down, none that is hidden."""
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
            DatasetError: there is no such data set, or the Hub cannot be reached.
        """
        self.source = source
        self._repository = Repository("dataset", source)
        self._asked = revision or "main"

    @cached_property
    def revision(self) -> str:
        """The commit."""
        try:
            # It tries again by itself.
            return Hub().head(self._repository, self._asked)
        except HubError as error:
            raise DatasetError(str(error)) from error

    def path(self, name: str) -> Path | None:
        """Where a file is after it was downloaded; None where there is none of that name."""
        import huggingface_hub

        revision = self.revision

        def downloaded() -> Path | None:
            try:
                path = huggingface_hub.hf_hub_download(self.source, name, repo_type="dataset", revision=revision)
            except huggingface_hub.errors.LocalEntryNotFoundError:
                # Not "there is none" but "it cannot be asked": without it the same data would get another fingerprint.
                raise
            except huggingface_hub.errors.EntryNotFoundError:
                return None
            return Path(path)

        try:
            return self.ask(downloaded)
        except huggingface_hub.errors.LocalEntryNotFoundError as error:
            raise DatasetError(f"{name} of {self.source} is not in the cache and the Hub cannot be reached") from error

    def names_of(self, files: list[str]) -> list[str]:
        """As `Folder.names_of`; `datasets` gives hf://datasets/ORG/NAME@COMMIT/PATH."""
        start = f"hf://datasets/{self.source}@{self.revision}/"
        outside = next((file for file in files if not file.startswith(start)), None)
        if outside is not None:
            raise DatasetError(f"{self.source} names a file outside of it, {outside}; {_EXPECTED}")
        return [file.removeprefix(start) for file in files]

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer of the Hub, asked again where that may help."""
        try:
            return call(Action(f"read the data set {self.source}", repository=self._repository), question)
        except HubError as error:
            raise DatasetError(str(error)) from error

    def size_of(self, names: Collection[str]) -> int:
        """Bytes of files below the root, as the Hub states them.

        Raises:
            DatasetError: the Hub cannot be reached.
        """
        try:
            files = Hub().files(self._repository, self.revision)
        except HubError as error:
            raise DatasetError(str(error)) from error
        return sum(files[name].size for name in names if name in files)

    def parquet_files(self) -> None:
        """Not looked for: only what the manifest names is read."""


Place = Folder | HubRepository


def place_of(source: str, revision: str | None) -> Place:
    """The folder of a name, else the repository."""
    return Folder(source) if Path(source).is_dir() else HubRepository(source, revision)


def find_shards(place: Place) -> dict[str, StoredShards]:
    """The shards of each configuration that is of a recipe; none where the manifest says that it is not built yet.

    Raises:
        DatasetError: nothing there is data of this project, or something is missing.
    """
    path = place.path(MANIFEST_NAME)
    manifest = None if path is None else Manifest.load(path)
    return _shards_by_card(place) if manifest is None else _shards_by_manifest(place, manifest)


def _shards_by_manifest(place: Place, manifest: Manifest) -> dict[str, StoredShards]:
    present = place.parquet_files()
    if present is not None:
        expected = manifest.shards
        missing = sorted(set(expected) - set(present))
        if missing:
            raise DatasetError(
                f"{place.source} lacks {len(missing)} of its {len(expected)} shards, such as {missing[0]}: the samples "
                "would not be those of the fingerprint; build or download it again"
            )
        finished = tuple(f"{name}/" for name, built in manifest.recipes.items() if built.shards)
        strange = next((name for name in present if name.startswith(finished) and name not in expected), None)
        if finished and strange is not None:
            raise DatasetError(f"{strange} is no shard of this data set: it is not in the manifest")
    return {
        name: StoredShards(
            tuple(StoredShard(shard.split, path, shard) for path, shard in built.shards.items()), built.fingerprint
        )
        for name, built in manifest.recipes.items()
    }


def _shards_by_card(place: Place) -> dict[str, StoredShards]:
    """As `datasets` takes the card or the names of files: configurations of recipes, or one of the authors' data."""
    check_card(place)
    files = _files_by_card(place)
    shards: dict[str, StoredShards] = {}
    for configuration in files:
        if configuration in list_recipes():
            splits = {split: split for split in load_recipe(configuration).splits}
            shards[configuration] = _in_order(place, configuration, files[configuration], splits)
    if not shards and list(files) == [CONFIGURATION]:
        columns = _columns(place, files[CONFIGURATION])
        published = published_with(columns)
        if published is None:
            raise StrangeDataError(
                f"{place.source} has the columns {', '.join(columns)} and no manifest; missing are those of the "
                f"authors' published data ({published_columns()}); {_EXPECTED}"
            )
        shards[published.recipe] = _in_order(place, published.recipe, files[CONFIGURATION], published.splits)
    if not shards:
        raise StrangeDataError(
            f"{place.source} has the configurations {', '.join(files)}, none of which is of a recipe "
            f"({', '.join(list_recipes())}); {_EXPECTED}"
        )
    return shards


def _in_order(place: Place, recipe: str, files: Mapping[str, list[str]], splits: Mapping[str, str]) -> StoredShards:
    """The shards of a recipe's splits, each of which the data may call something else."""
    if not set(splits.values()) <= set(files):
        raise DatasetError(
            f"{place.source}, {recipe}: the splits are {', '.join(files)}; needed are {', '.join(splits.values())}"
        )
    return StoredShards(tuple(StoredShard(split, name) for split in splits for name in files[splits[split]]))


def _files_by_card(place: Place) -> dict[str, dict[str, list[str]]]:
    """Configuration -> split -> names of its files."""
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
        # What `datasets` makes of a card that somebody else wrote can be any error: KeyError, TypeError, RuntimeError.
        if is_of_client(error):
            raise
        raise DatasetError(f"no data set in {place.source!r}: {first_line(error)}; {_EXPECTED}") from error
    names = [name for splits in files.values() for in_split in splits.values() for name in in_split]
    other = next((name for name in names if not name.endswith(".parquet")), None)
    if other is not None:
        raise StrangeDataError(f"{place.source} holds {Path(other).name}, which is not Parquet; {_EXPECTED}")
    if not names:
        raise DatasetError(f"{place.source} names no file; {_EXPECTED}")
    return files


def _columns(place: Place, files: Mapping[str, list[str]]) -> list[str]:
    """The columns of the first file that is there."""
    for name in (name for names in files.values() for name in names):
        path = place.path(name)
        if path is not None:
            return list(open_parquet(name, path).schema_arrow.names)
    raise DatasetError(f"{place.source} names no file that is there; {_EXPECTED}")


def check_card(place: Place) -> None:
    """Refuse a card that cannot be read, or that names a file elsewhere, before anybody asks for that file."""
    path = place.path(CARD_NAME)
    if path is None:
        return
    try:
        header = _HEADER.match(path.read_text("utf-8"))
        values = yaml.safe_load(header[1]) if header else None
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise DatasetError(
            f"no data set in {place.source!r}: {CARD_NAME} cannot be read: {first_line(error)}"
        ) from error
    for text in _texts(values.get("configs") if isinstance(values, dict) else None):
        if "://" in text or "::" in text:
            raise DatasetError(
                f"{CARD_NAME} of {place.source} names {text}; the files of a data set lie in the data set itself"
            )


def _texts(values: Any) -> Iterator[str]:
    if isinstance(values, str):
        yield values
    elif isinstance(values, dict):
        for value in values.values():
            yield from _texts(value)
    elif isinstance(values, list):
        for value in values:
            yield from _texts(value)
