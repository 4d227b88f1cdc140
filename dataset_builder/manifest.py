"""The manifest of a built folder: what each configuration was made from, and the digest of every shard."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from audio_compositionality.support.files import sha256_of, sha256_of_file

from .data import DatasetError, fingerprint_of

MANIFEST_NAME = "manifest.json"
CARD_NAME = "README.md"
SCHEMA_VERSION = 1

FINGERPRINT_KEY = b"audio_compositionality_fingerprint"
"""Name of the fingerprint in the metadata of a shard."""

RECIPE_NAME = re.compile(r"[A-Za-z0-9]\w*", re.ASCII)
"""What a recipe can be called: its name is that of a folder and of a configuration."""


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
            DatasetError: the file is another, or there is none.
        """
        if not path.is_file():
            raise DatasetError(
                f"{name} is not there: the samples would not be those of the fingerprint; build or download it again"
            )
        if path.stat().st_size != self.bytes or sha256_of_file(path) != self.sha256:
            raise DatasetError(
                f"{name} is not the shard that was built (SHA-256 differs from {MANIFEST_NAME}): the samples would not "
                "be those of the fingerprint; build or download it again"
            )


@dataclass(frozen=True)
class BuiltRecipe:
    """One configuration of a built folder.

    Attributes:
        version: of the recipe.
        settings: of the recipe, as JSON values.
        fingerprint: of the recipe's name, version and settings.
        rows_sha256: of the columns and of all rows without their audio: where it differs under one fingerprint, the
            code of the recipe has changed and its version has not.
        audio_format: ``flac`` or ``wav``.
        description: Markdown of the card.
        shards: by path below the folder; empty until the configuration has been built.
    """

    version: int
    settings: Mapping[str, Any]
    fingerprint: str
    rows_sha256: str
    audio_format: str
    description: str
    shards: Mapping[str, Shard]

    @property
    def synthetic(self) -> bool:
        """Whether its sound is ours, and not that of recordings that somebody brought."""
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
    """What a built folder holds.

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
        return json.dumps({**content, "sha256": _digest(content)}, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Manifest | None:
        """The manifest in a file; None where there is none.

        Raises:
            DatasetError: it is damaged, or of another version.
        """
        if not path.exists():
            return None
        try:
            content = json.loads(path.read_text("utf-8"))
            stated = content.pop("sha256")
            if content["schema_version"] != SCHEMA_VERSION:
                raise DatasetError(
                    f"{path.name} has schema version {content['schema_version']}; this version reads {SCHEMA_VERSION}"
                )
            if _digest(content) != stated:
                raise DatasetError(f"{path.name} is damaged or was edited: its SHA-256 is not the one that it states")
            return cls({name: _built_recipe(path.name, name, values) for name, values in content["recipes"].items()})
        except DatasetError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DatasetError(f"{path.name} is no manifest of a built data set: {error!r}") from error


def _built_recipe(file: str, name: str, values: Mapping[str, Any]) -> BuiltRecipe:
    shards = {path: Shard(**shard) for path, shard in values["shards"].items()}
    built = BuiltRecipe(**{**values, "shards": shards})
    if fingerprint_of(name, built.version, built.settings) != built.fingerprint:
        raise DatasetError(f"{file}: the fingerprint of {name} is not that of the settings beside it")
    for path, shard in shards.items():
        if not re.fullmatch(rf"{re.escape(name)}/{re.escape(shard.split)}-\d{{5}}-of-\d{{5}}\.parquet", path):
            raise DatasetError(f"{file} names {path!r}; a shard of {name} is {name}/{shard.split}-….parquet")
    if not RECIPE_NAME.fullmatch(name):
        raise DatasetError(f"{file} names a configuration {name!r}; a name has letters, digits and underscores")
    return built


def _digest(content: Mapping[str, Any]) -> str:
    return sha256_of(json.dumps(content, sort_keys=True).encode())
