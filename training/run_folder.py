"""The folder of a training: its record, the card of its model, and its repository on the Hub."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import yaml

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.families.aligned import MODEL_TYPE
from audio_compositionality.encoders.loading import beside_weights
from audio_compositionality.encoders.loading.names import is_public
from audio_compositionality.support.checked_files import DamagedError, sealed_json
from audio_compositionality.support.files import read_file, write_together
from audio_compositionality.support.spec import check_depth
from audio_compositionality.support.text import first_line, number_text, plain

from .log import EVALUATIONS, STEPS
from .settings import ALIGN, CONTRASTIVE, FRESH, HARD, MODULAR, TrainingError, TrainingSettings, setting_differences

if TYPE_CHECKING:
    from audio_compositionality.hub.client import Hub
    from audio_compositionality.hub.content import Content, Push
    from audio_compositionality.hub.errors import Repository


SETTINGS = "settings.yaml"

_LIBRARIES = ("audio-compositionality", "accelerate", "numpy", "torch", "transformers")
_MAY_STAND = {".lock", "slurm.out"}


@dataclass(frozen=True)
class DataFacts:
    """Facts about training data.

    Attributes:
        source: source of the rows, as their data state it.
        recipe: name of the recipe; None for rows without one.
        fingerprint: fingerprint of the data.
        rows: number of rows of the training split.
        described: the data in a few words, for cards of models.
    """

    source: str
    recipe: str | None
    fingerprint: str
    rows: int
    described: str


@dataclass(frozen=True)
class TrainingRecord:
    """The content of `training.json`.

    Attributes:
        settings: as from `TrainingSettings.values`.
        data: the training data.
        finished: whether all stages are done.
        outcome: results by name; empty before the end.
        files: SHA-256 of the model's files next to the record, by their names.
    """

    settings: Mapping[str, Any]
    data: DataFacts
    finished: bool = False
    outcome: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """The values, in the form of JSON."""
        return {
            "version": beside_weights.RECORD_VERSION,
            "finished": self.finished,
            "recipe": self.data.recipe,
            "data": self.data.source,
            "fingerprint": self.data.fingerprint,
            "rows": self.data.rows,
            "trained_on": self.data.described,
            "settings": dict(self.settings),
            "libraries": {
                "python": platform.python_version(),
                **{name: importlib.metadata.version(name) for name in _LIBRARIES},
            },
            **self.outcome,
            "files": dict(self.files),
        }

    def to_json(self) -> bytes:
        """Return the text of the file, with its digest."""
        return sealed_json(self.values())


def write_record(out: Path, record: TrainingRecord, settings: TrainingSettings) -> None:
    """Write the record and the settings."""
    write_together({out / SETTINGS: settings.to_yaml(), out / beside_weights.RECORD: record.to_json()})


def read_record(out: Path) -> dict[str, Any] | None:
    """Return the values of the record in a folder; None if there is none.

    Raises:
        TrainingError: it cannot be read, or was changed after it was written.
        InputError: its settings have nested lists.
    """
    path = out / beside_weights.RECORD
    if not path.exists():
        return None
    try:
        values = beside_weights.read_record_values(path)
    except DamagedError as error:
        raise TrainingError(f"{error}; restore it from a copy, or pass another --out") from error
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"cannot read {path}: {first_line(error)}") from error
    settings = values.get("settings")
    if not isinstance(settings, dict) or (values.get("finished") and not isinstance(values.get("steps"), int)):
        raise TrainingError(f"{path} is not a record of a training")
    check_depth(settings, path)
    return dict(values)


def check_model_files(out: Path, values: Mapping[str, Any]) -> None:
    """Raise an error if files of a model differ from those that the training wrote.

    Args:
        out: their folder.
        values: values of its record.

    Raises:
        TrainingError: a file was changed or is missing.
    """
    try:
        beside_weights.check_recorded_files(values, lambda name: path if (path := out / name).is_file() else None, out)
    except ModelError as error:
        raise TrainingError(str(error)) from error


def check_out(out: Path, settings: TrainingSettings, data: DataFacts | None = None) -> dict[str, Any] | None:
    """Return the record of this training in a folder, None for a new folder; raise an error for any other content.

    Args:
        out: the folder, which need not exist.
        settings: settings of the requested training.
        data: data of the requested training; None if they are not open yet.

    Raises:
        TrainingError: a run with other settings or data, which are named, or files that no training wrote.
    """
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; --out must be a folder")
    values = read_record(out)
    if values is None:
        strange = sorted(path.name for path in out.iterdir() if path.name not in _MAY_STAND) if out.is_dir() else []
        strange = [name for name in strange if not name.endswith(".partial")]
        if strange:
            raise TrainingError(f"{out} holds {strange[0]}, but no training; pass a new or empty folder as --out")
        return None
    differing = setting_differences(values["settings"], settings.values())
    if data is not None and values.get("fingerprint") != data.fingerprint:
        stored = str(values.get("fingerprint"))[:12]
        differing.append(f"the data ({data.source}) have the fingerprint {data.fingerprint[:12]} instead of {stored}")
    if differing:
        raise TrainingError(
            f"{out} holds a training with other settings: {'; '.join(differing)}. Pass those to resume it, or "
            "another --out"
        )
    return values


CARD = "README.md"

_MEANINGS = {
    CONTRASTIVE: "contrasts clips with the captions of a batch",
    HARD: "also contrasts clips with hard negatives of the same words",
    MODULAR: "also takes texts about parts of a clip as positives",
}

HOME = "https://github.com/audio-compositionality/audio-compositionality"


def model_card(title: str, settings: TrainingSettings, record: Mapping[str, Any], dim: int, *, is_clap: bool) -> str:
    """Return the model card, Markdown with a YAML header.

    Args:
        title: the model's name.
        settings: settings of the training.
        record: the values of `training.json`.
        dim: length of an embedding.
        is_clap: whether it is a CLAP in transformers' format.
    """
    init = settings.init
    aligned = plain(init.removeprefix(ALIGN)) if init.startswith(ALIGN) else None
    begun = f"{init}, small towers with fresh weights" if init in FRESH else plain(init)
    opened = "Opening it needs audio-compositionality, which defines its networks."
    if is_clap:
        opened = "`transformers.ClapModel.from_pretrained` opens it as well."
    elif aligned is not None:
        begun = f"a fresh linear map of the frozen embeddings of {aligned}, and a fresh text tower"
        opened = (
            f"It names its encoder, `{aligned}`, and does not contain it; the same revision must be available. "
            f"Its control is made by `train --align untrained:{aligned}` from the untrained twin's embeddings, if the "
            "encoder has a twin; `untrained:` before this model's own name has fresh weights in the map and the "
            "text tower as well."
        )
    arguments = record.get("data_arguments", "")
    command = "audio-compositionality train --settings settings.yaml"
    if arguments is None:
        again = (
            "`settings.yaml` holds all settings. Its training data were opened by a program and passed to "
            "`audio_compositionality.training.running.train_model` with them."
        )
    elif arguments:
        again = (
            "`settings.yaml` holds all settings, except those that name the sounds. With the same sounds at the same "
            f"paths, this trains it again:\n\n```sh\n{command} {plain(arguments)} --out DIR\n```\n"
        )
    else:
        again = f"`settings.yaml` holds all settings: `{command} --out DIR` trains it again."
    scores = ""
    if record.get("evaluations"):
        last, best = record["evaluations"][-1], record.get("best")
        # Scores of groups of items are in the table of evaluations.
        shown = {name: value for name, value in last["scores"].items() if "=" not in name}
        lines = [f"| {plain(name)} | {number_text(value)} |" for name, value in shown.items()]
        scores = "\n".join(["", f"## Validation scores at step {last['step']:,}", "", "| | |", "|:--|--:|", *lines, ""])
        if best:
            score = number_text(best["score"])
            scores += f"\nThe highest score, {score}, was reached at step {best['step']:,}: `best/`."
        scores += "\n`evaluations.csv` has all.\n"
    stages = [
        f"| {one['kind']} | {one['steps']:,} | {one['learning_rate']:g} | {number_text(one['loss'])} | "
        f"{_MEANINGS[one['kind']]} |"
        for one in record["stages"]
    ]
    header: dict[str, Any] = {
        "library_name": "transformers" if is_clap else "audio-compositionality",
        "tags": ["audio", "audio-text", "clap", "audio-compositionality"],
    }
    if aligned is None and init.count("/") == 1 and not init.startswith((".", "/", "~")):
        header["base_model"] = init
    template = Template(files(__package__).joinpath("model_card.md").read_text("utf-8"))
    card = template.substitute(
        title=plain(title),
        home=HOME,
        dim=dim,
        opened=opened,
        begun=begun,
        train=settings.train,
        data=plain(str(record["trained_on"])),
        fingerprint=str(record["fingerprint"])[:12],
        steps=f"{record['steps']:,}",
        rows=settings.batch_size * settings.accumulate,
        seed=settings.seed,
        precision=record["precision"],
        device=plain(str(record["device"])),
        stages="\n".join(stages),
        again=again,
        scores=scores,
    )
    return f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n{card}"


_NAME_LENGTH = 96

_NOT_SENT = (".", "slurm")


def model_repository(name: str) -> Repository:
    """Return the repository of a model.

    Args:
        name: ``ORG/NAME``.

    Raises:
        TrainingError: it is not of that form.
        HubError: ORG is invalid.
    """
    from audio_compositionality.hub.errors import Repository
    from audio_compositionality.hub.names import check_org

    org, slash, short = name.partition("/")
    allowed = all(char.isalnum() or char in "._-" for char in short) and short.isascii()
    if not slash or not short or not allowed or len(short) > _NAME_LENGTH or short.startswith((".", "-")):
        raise TrainingError(f"--push is {name!r}; it must be ORG/NAME, such as my-lab/clap-with-order")
    check_org(org)
    return Repository("model", name)


def push_model(out: Path, name: str, *, hub: Hub | None = None, private: bool = False, dry_run: bool = False) -> Push:
    """Update a repository to the content of a finished training's folder, without its checkpoints.

    Args:
        out: the folder.
        name: ``ORG/NAME``.
        hub: connection to the Hub; by default as the user of the saved token.
        private: make a new repository private.
        dry_run: change nothing.

    Raises:
        TrainingError: the training is not finished, a file of its model was changed, the name is invalid,
            or the model is aligned with an encoder that others cannot load.
        HubError: the Hub refuses, or cannot be reached.
    """
    from audio_compositionality.hub.client import Hub

    repository = model_repository(name)
    record = read_record(out)
    if record is None or not record.get("finished"):
        raise TrainingError(f"{out} holds no finished training")
    check_model_files(out, record)
    path = out / "config.json"
    try:
        config = json.loads(read_file(path))
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"cannot read {path}: {first_line(error)}") from error
    if isinstance(config, dict) and config.get("model_type") == MODEL_TYPE:
        check_encoder(str(config.get("encoder")))
    message = f"Trained on {record['recipe'] or record['data']}, {record['steps']:,} steps"
    return (hub or Hub()).push(repository, model_files(out), message, private=private, dry_run=dry_run)


def check_encoder(name: str) -> None:
    """Raise an error for a model to be published that names an encoder which others cannot load.

    Args:
        name: as `load_model` takes it.

    Raises:
        TrainingError: it is neither a listed name nor a Hub id.
    """
    if not is_public(name):
        raise TrainingError(
            f"--push: the model would name {name!r} as its encoder, which others cannot load; to be published, a model "
            "must be aligned with a listed name or a Hub id"
        )


def model_files(out: Path) -> dict[str, Content]:
    """Return the published files of a run: the model, its card, settings, record and tables."""
    paths = sorted(path for path in out.iterdir() if path.is_file() and not path.name.startswith(_NOT_SENT))
    suffixes = {".json", ".yaml", ".md", ".txt", ".safetensors", ".model"}
    return {path.name: path for path in paths if path.suffix in suffixes or path.name in (STEPS, EVALUATIONS)}
