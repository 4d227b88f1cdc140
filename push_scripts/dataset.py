"""Publish a built data set: check that it is what it says, and bring its repository to the same content."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from audio_compositionality.dataset_builder import DatasetError
from audio_compositionality.dataset_builder.build import FINGERPRINT_KEY
from audio_compositionality.dataset_builder.manifest import MANIFEST_NAME, Manifest
from audio_compositionality.hub import Changes, Commit, Content, Hub, Repository
from audio_compositionality.hub.names import dataset_of

CARD = "README.md"
REGISTRATION = "eval.yaml"
"""Registers the data set as a benchmark of the Hub, with one task id a metric."""

_SHARD = re.compile(r"(a_coat|a_tre)/[a-z]+-\d{5}-of-\d{5}\.parquet")

MANIFEST_LIMIT = 10_000_000
"""Bytes of a manifest, at most; that of the preset full has 12 kB."""


@dataclass(frozen=True)
class DatasetPush:
    """What a push of a data set does, or would do.

    Attributes:
        repository: id on the Hub.
        fingerprint: of the data.
        replaced: fingerprint of other data that the repository held; None where there were none.
        changes: what is sent, and what is there already.
        commit: what it led to; None of a dry run.
    """

    repository: str
    fingerprint: str
    replaced: str | None
    changes: Changes
    commit: Commit | None


def push_dataset(
    folder: str | Path,
    org: str,
    *,
    hub: Hub | None = None,
    private: bool = False,
    pull_request: bool = False,
    dry_run: bool = False,
    progress: bool = True,
) -> DatasetPush:
    """Bring ``ORG/audio-compositionality`` to the content of a built folder.

    Large files are uploaded configuration by configuration; then one commit has all that differs, so that a reader sees
    the old data or the new, never some of both. What is there already is not sent again, also after a push that was
    killed; where nothing differs there is no commit.

    Args:
        folder: written by `build_dataset`.
        org: organisation or user.
        hub: by default as the user of the saved token.
        private: make a new repository private.
        pull_request: open a pull request instead of committing to the branch main.
        dry_run: change nothing.
        progress: show a bar while the shards are checked.

    Raises:
        DatasetError: the folder holds no finished data set, or its content is not that of its fingerprint.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    repository = dataset_of(org)
    manifest = check_folder(Path(folder), progress=progress)
    content = dataset_files(Path(folder), manifest)
    if not dry_run:
        hub.create(repository, private=private)
    present = hub.files_if_any(repository) or {}
    replaced = _replaced(hub, repository, manifest) if MANIFEST_NAME in present else None
    stale = [name for name in present if _SHARD.fullmatch(name) and name not in content]
    if dry_run:
        changes = hub.changes(repository, content, delete=stale)
        return DatasetPush(repository.id, manifest.fingerprint, replaced, changes, None)
    commit = hub.commit(
        repository,
        content,
        f"Data {manifest.fingerprint[:12]}",
        description=f"Fingerprint {manifest.fingerprint}.",
        delete=stale,
        pull_request=pull_request,
    )
    return DatasetPush(repository.id, manifest.fingerprint, replaced, commit.changes, commit)


def dataset_files(folder: Path, manifest: Manifest) -> dict[str, Content]:
    """The files of a data set's repository by their paths there, those of a configuration after each other."""
    shards: Mapping[str, Content] = {name: folder / name for name in sorted(manifest.shards)}
    registration = files(__package__).joinpath(REGISTRATION).read_bytes()
    return {**shards, CARD: folder / CARD, MANIFEST_NAME: folder / MANIFEST_NAME, REGISTRATION: registration}


def check_folder(folder: Path, *, progress: bool = True) -> Manifest:
    """The manifest of a built folder, if its shards are what the manifest says, and its card states the fingerprint.

    Raises:
        DatasetError: an unfinished build, a shard that was changed or belongs to other data, the card of other data.
    """
    if not folder.is_dir():
        raise DatasetError(f"{folder} is no folder; `audio-compositionality build --out {folder}` writes one")
    manifest = Manifest.load(folder / MANIFEST_NAME)
    if manifest is None:
        raise DatasetError(
            f"{folder} holds no {MANIFEST_NAME}; give a folder that `audio-compositionality build` has written"
        )
    if not manifest.shards:
        raise DatasetError(f"the build in {folder} has not finished: run it again, it goes on from there")
    for name in tqdm(sorted(manifest.shards), desc="check", unit="shard", disable=not progress):
        _check_shard(folder, name, manifest)
    card = folder / CARD
    if not card.is_file() or f"`{manifest.fingerprint}`" not in card.read_text("utf-8"):
        raise DatasetError(f"{card} is not the card of fingerprint {manifest.fingerprint[:12]}: run the build again")
    return manifest


def _check_shard(folder: Path, name: str, manifest: Manifest) -> None:
    path = folder / name
    if not _SHARD.fullmatch(name):
        raise DatasetError(f"{MANIFEST_NAME} names {name!r}, which is no shard of a build")
    if not path.is_file() or path.is_symlink():
        raise DatasetError(f"{path} is missing or no regular file: run the build again")
    manifest.verify(name, path)
    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise DatasetError(f"{name} cannot be read as Parquet: {error}") from error
    fingerprint = (metadata.metadata or {}).get(FINGERPRINT_KEY, b"").decode("utf-8", "replace")
    if fingerprint != manifest.fingerprint:
        raise DatasetError(
            f"{name} was built for fingerprint {fingerprint[:12] or 'none'}, {MANIFEST_NAME} says "
            f"{manifest.fingerprint[:12]}: these are not the data of that fingerprint; build them again"
        )
    if metadata.num_rows != manifest.shards[name].rows:
        raise DatasetError(f"{name} has {metadata.num_rows} rows, {MANIFEST_NAME} says {manifest.shards[name].rows}")


def _replaced(hub: Hub, repository: Repository, manifest: Manifest) -> str | None:
    """The fingerprint of other data that the repository holds."""
    try:
        other = Manifest.load(hub.download(repository, MANIFEST_NAME, limit=MANIFEST_LIMIT))
    except DatasetError:
        return None
    return None if other is None or other.fingerprint == manifest.fingerprint else other.fingerprint
