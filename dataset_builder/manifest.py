"""The manifest of a built folder: what it was made from, and the hash of every shard."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .messages import DatasetError
from .synthesis.config import fingerprint_of

MANIFEST_NAME = "benchmark.json"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Shard:
    """A finished shard."""

    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a built folder holds.

    Attributes:
        fingerprint: of the configuration, the voices and the generator's version.
        configuration: the fields of BenchmarkConfig, and ``generator_version``.
        audio_format: ``flac`` or ``wav``.
        amplitude_gains: linear gain of each amplitude label.
        shards: by path below the folder; empty until the build has finished.
    """

    fingerprint: str
    configuration: dict[str, Any]
    audio_format: str
    amplitude_gains: Mapping[str, float]
    shards: Mapping[str, Shard]

    def dumps(self) -> str:
        """The manifest as JSON text."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1) + "\n"

    @classmethod
    def load(cls, path: Path) -> Manifest | None:
        """The manifest in a file; None where there is none. Raises DatasetError where it is damaged."""
        if not path.exists():
            return None
        try:
            values = json.loads(path.read_text("utf-8"))
            if values["schema_version"] != SCHEMA_VERSION:
                raise DatasetError(
                    f"{path.name} has schema version {values['schema_version']}; this version reads {SCHEMA_VERSION}"
                )
            configuration = dict(values["configuration"])
            if fingerprint_of(configuration) != values["fingerprint"]:
                raise DatasetError(f"{path.name}: the fingerprint is not that of the configuration beside it")
            return cls(
                fingerprint=str(values["fingerprint"]),
                configuration=configuration,
                audio_format=str(values["audio_format"]),
                amplitude_gains={str(key): float(value) for key, value in values["amplitude_gains"].items()},
                shards={
                    str(name): Shard(int(shard["rows"]), int(shard["bytes"]), str(shard["sha256"]))
                    for name, shard in values["shards"].items()
                },
            )
        except DatasetError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DatasetError(f"{path.name} is no manifest of a built data set: {error!r}") from error

    def verify(self, name: str, path: Path) -> None:
        """Raise DatasetError unless the file at ``path`` is the shard that was built under ``name``."""
        expected = self.shards.get(name)
        if expected is None:
            why = "the build has not finished; run it again" if not self.shards else "it is not in the manifest"
            raise DatasetError(f"{name} is no shard of this data set: {why}")
        if path.stat().st_size != expected.bytes or sha256_of(path) != expected.sha256:
            raise DatasetError(
                f"{name} is not the shard that was built (SHA-256 differs from {MANIFEST_NAME}): the samples would not "
                "be those of the fingerprint; build or download it again"
            )


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
