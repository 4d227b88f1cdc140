"""Publish a trained model on the Hub."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from audio_compositionality.encoders.families.aligned import MODEL_TYPE
from audio_compositionality.encoders.loading.names import is_public
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Changes, Commit, Content
from audio_compositionality.hub.errors import Repository
from audio_compositionality.hub.names import check_org
from audio_compositionality.support.text import first_line

from .errors import TrainingError
from .log import EVALUATIONS, STEPS
from .record import check_model, read_record

_NAME_LENGTH = 96

_NOT_SENT = (".", "slurm")


@dataclass(frozen=True)
class ModelPush:
    """What a push of a model does, or would do.

    Attributes:
        repository: on the Hub.
        changes: what is sent, and what is there already.
        commit: what it led to; None of a dry run.
    """

    repository: Repository
    changes: Changes
    commit: Commit | None


def model_repository(name: str) -> Repository:
    """The repository of a model.

    Args:
        name: ``ORG/NAME``.

    Raises:
        TrainingError: it is not of that form.
        HubError: ORG cannot be one.
    """
    org, slash, short = name.partition("/")
    allowed = all(char.isalnum() or char in "._-" for char in short) and short.isascii()
    if not slash or not short or not allowed or len(short) > _NAME_LENGTH or short.startswith((".", "-")):
        raise TrainingError(f"--push is {name!r}; it must be ORG/NAME, such as my-lab/clap-that-hears-order")
    check_org(org)
    return Repository("model", name)


def push_model(
    out: Path, name: str, *, hub: Hub | None = None, private: bool = False, dry_run: bool = False
) -> ModelPush:
    """Bring a repository to the content of the folder of a training that is finished, less its checkpoints.

    Args:
        out: the folder.
        name: ``ORG/NAME``.
        hub: by default as the user of the saved token.
        private: make a new repository private.
        dry_run: change nothing.

    Raises:
        TrainingError: the training is not finished, a file of its model is not what it wrote, the name cannot be one,
            or the model is aligned with an encoder that others do not have.
        HubError: the Hub refuses, or cannot be reached.
    """
    repository = model_repository(name)
    record = read_record(out)
    if record is None or not record.get("finished"):
        raise TrainingError(f"{out} holds no training that is finished")
    check_model(out, record)
    _check_config(out / "config.json")
    content = model_files(out)
    hub = hub or Hub()
    if dry_run:
        return ModelPush(repository, hub.changes(repository, content), None)
    hub.create(repository, private=private)
    commit = hub.commit(
        repository, content, f"Trained on {record['recipe'] or record['data']}, {record['steps']:,} steps"
    )
    return ModelPush(repository, commit.changes, commit)


def check_encoder(name: str) -> None:
    """Refuse to publish a model that names an encoder which others cannot load by that name.

    Args:
        name: as `load_model` takes it.

    Raises:
        TrainingError: it is neither a listed name nor a Hub id.
    """
    if not is_public(name):
        raise TrainingError(
            f"--push: the model would name {name!r} as its encoder, which others do not have; to be published, a model "
            "must be aligned with a listed name or a Hub id"
        )


def _check_config(path: Path) -> None:
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"cannot read {path}: {first_line(error)}") from error
    if isinstance(config, dict) and config.get("model_type") == MODEL_TYPE:
        check_encoder(str(config.get("encoder")))


def model_files(out: Path) -> dict[str, Content]:
    """What is published of a run: the model, its card, settings, record and tables."""
    paths = sorted(path for path in out.iterdir() if path.is_file() and not path.name.startswith(_NOT_SENT))
    suffixes = {".json", ".yaml", ".md", ".txt", ".safetensors", ".model"}
    return {path.name: path for path in paths if path.suffix in suffixes or path.name in (STEPS, EVALUATIONS)}
