"""Publish a built data set: check it against its manifest, and bring its repository to the same content."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.manifest import CARD_NAME, FINGERPRINT_KEY, MANIFEST_NAME, Manifest
from audio_compositionality.encoders.base import ENCODER, LANGUAGE_MODEL, TEXT_ENCODER
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Content, Push
from audio_compositionality.hub.names import dataset_of
from audio_compositionality.support.files import read_file
from audio_compositionality.support.progress import during
from audio_compositionality.tasks.base import TaskInfo
from audio_compositionality.tasks.registry import list_tasks

REGISTRATION = "eval.yaml"
"""Registers the data set as a benchmark of the Hub, with one task id per task that a framework of the Hub's runs."""

SCORED_SPLIT = "test"
"""The scored split of a task, where a recipe has it."""

MANIFEST_LIMIT = 10_000_000
"""Most bytes of a manifest; the manifest of the preset full has 12 kB."""

_SHARD = re.compile(r"[A-Za-z0-9]\w*/\w+-\d{5}-of-\d{5}\.parquet", re.ASCII)


@dataclass(frozen=True)
class DatasetPush(Push):
    """The effect of a push of a data set, or of a dry run; see `Push`.

    Attributes:
        recipes: fingerprint of each configuration, by the name of its recipe.
        replaced: fingerprints of the other data that the repository held, by recipe.
    """

    recipes: Mapping[str, str]
    replaced: Mapping[str, str]


def push_dataset(
    folder: str | Path,
    org: str,
    *,
    hub: Hub | None = None,
    private: bool = False,
    pull_request: bool = False,
    dry_run: bool = False,
) -> DatasetPush:
    """Bring ``ORG/audio-compositionality`` to the content of a built folder.

    Large files are uploaded configuration by configuration; then one commit holds all differences, so that a reader
    sees the old data or the new, never some of both. Files already there are not sent again, also after an interrupted
    push; where nothing differs there is no commit.

    Args:
        folder: written by `build_dataset`.
        org: organisation or user.
        hub: by default as the user of the saved token.
        private: make a new repository private.
        pull_request: open a pull request instead of committing to the branch main.
        dry_run: change nothing.

    Raises:
        DatasetError: the folder holds no finished data set, or its content does not match its fingerprint.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub, folder = hub or Hub(), Path(folder)
    repository = dataset_of(org)
    manifest = check_built_folder(folder)
    names = [*sorted(manifest.shards), CARD_NAME, MANIFEST_NAME]
    content: dict[str, Content] = {name: folder / name for name in names}
    registered = registration(manifest, [task.info for task in list_tasks()])
    if registered is not None:
        content[REGISTRATION] = registered.encode()
    fingerprints = {name: recipe.fingerprint for name, recipe in manifest.recipes.items()}
    replaced = {}
    if MANIFEST_NAME in (hub.files_if_any(repository) or {}):
        with suppress(DatasetError):
            other = Manifest.load(hub.download(repository, MANIFEST_NAME, limit=MANIFEST_LIMIT))
            stored = {} if other is None else {name: recipe.fingerprint for name, recipe in other.recipes.items()}
            replaced = {name: value for name, value in stored.items() if fingerprints.get(name) != value}
    push = hub.push(
        repository,
        content,
        f"Data {', '.join(f'{name} {value[:12]}' for name, value in fingerprints.items())}",
        description="\n".join(f"- `{name}`: fingerprint {value}" for name, value in fingerprints.items()),
        stale=_SHARD,
        private=private,
        pull_request=pull_request,
        dry_run=dry_run,
    )
    return DatasetPush(push.repository, push.changes, push.commit, fingerprints, replaced)


FRAMEWORKS: Mapping[str, Collection[frozenset[str]]] = {
    "mteb": (ENCODER, TEXT_ENCODER),
    "inspect-ai": (LANGUAGE_MODEL,),
}
"""The frameworks known to the Hub that run our tasks (`bridges/`), by what the tasks need of a model. The names are
from ``packages/tasks/src/eval.ts`` of huggingface.js."""


def registered_tasks(manifest: Manifest, tasks: Sequence[TaskInfo]) -> tuple[str, tuple[TaskInfo, ...]]:
    """The framework that runs most of the tasks of some data, and those that it runs; the Hub takes one for a data set.

    Args:
        manifest: of the data.
        tasks: tasks without a configuration in the data are left out.

    Returns:
        an empty name and no tasks where no framework known to the Hub runs any.
    """
    scored = [task for task in tasks if task.recipe in manifest.recipes]
    served = {name: tuple(task for task in scored if task.needs in needs) for name, needs in FRAMEWORKS.items()}
    name = max(served, key=lambda one: len(served[one]))
    return (name, served[name]) if served[name] else ("", ())


def registration(manifest: Manifest, tasks: Sequence[TaskInfo]) -> str | None:
    """The registration of data as a benchmark, YAML of their tasks; None where no framework of the Hub's runs one.

    Format: https://huggingface.co/docs/hub/eval-results.

    Args:
        manifest: of the data.
        tasks: see `registered_tasks`.
    """
    framework, run = registered_tasks(manifest, tasks)
    if not run:
        return None
    left = [task.title for task in tasks if task.recipe in manifest.recipes and task not in run]
    remark = [f"Not registered, since {framework} does not run them: {', '.join(left)}."] if left else []
    splits = {task.recipe: list(manifest.recipes[task.recipe].splits) for task in run}
    scored = {name: SCORED_SPLIT if SCORED_SPLIT in of_recipe else of_recipe[-1] for name, of_recipe in splits.items()}
    values = {
        "name": "audio-compositionality",
        "description": " ".join([*(f"{task.title}: {task.question}" for task in run), *remark]),
        "evaluation_framework": framework,
        "tasks": [{"id": task.name, "config": task.recipe, "split": scored[task.recipe]} for task in run],
    }
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)


def check_built_folder(folder: Path) -> Manifest:
    """The manifest of a built folder, whose shards match it, and whose card states the fingerprint.

    Raises:
        DatasetError: an unfinished build, a shard that was changed or belongs to other data, the card of other data.
    """
    if not folder.is_dir():
        raise DatasetError(f"{folder} is not a folder; `audio-compositionality build --out {folder}` writes one")
    manifest = Manifest.load(folder / MANIFEST_NAME)
    if manifest is None:
        raise DatasetError(
            f"{folder} holds no {MANIFEST_NAME}; give a folder that `audio-compositionality build` has written"
        )
    unfinished = [name for name, recipe in manifest.recipes.items() if not recipe.shards]
    if unfinished or not manifest.recipes:
        raise DatasetError(f"the build in {folder} has not finished: run it again, it goes on from there")
    with during("check", "shard", len(manifest.shards), shown=True) as done:
        for name, shard in sorted(manifest.shards.items()):
            path = folder / name
            if path.is_symlink():
                raise DatasetError(f"{path} is a link; a build writes regular files")
            shard.verify(name, path)
            try:
                metadata = pq.read_metadata(path)
            except (pa.ArrowException, OSError) as error:
                raise DatasetError(f"{name} cannot be read as Parquet: {error}") from error
            fingerprint = (metadata.metadata or {}).get(FINGERPRINT_KEY, b"").decode("utf-8", "replace")
            stated = next(recipe.fingerprint for recipe in manifest.recipes.values() if name in recipe.shards)
            if fingerprint != stated:
                raise DatasetError(
                    f"{name} was built for fingerprint {fingerprint[:12] or 'none'}, {MANIFEST_NAME} says "
                    f"{stated[:12]}: these are not the data of that fingerprint; build them again"
                )
            if metadata.num_rows != shard.rows:
                raise DatasetError(f"{name} has {metadata.num_rows} rows, {MANIFEST_NAME} says {shard.rows}")
            done(1)
    card = folder / CARD_NAME
    text = read_file(card).decode(errors="replace") if card.is_file() else ""
    for name, recipe in manifest.recipes.items():
        if recipe.fingerprint not in text:
            raise DatasetError(
                f"{card} is not the card of these data: it does not state {name}'s fingerprint "
                f"{recipe.fingerprint[:12]}; run the build again"
            )
    return manifest
