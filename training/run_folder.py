"""The folder of a training: its record, the card of its model, and its repository on the Hub."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.families.aligned import MODEL_TYPE
from audio_compositionality.encoders.loading.beside_weights import (
    RECORD,
    RECORD_VERSION,
    check_recorded_files,
    read_record_values,
)
from audio_compositionality.encoders.loading.names import is_public
from audio_compositionality.support.checked_files import DamagedError, sealed_json
from audio_compositionality.support.files import write_together
from audio_compositionality.support.spec import check_depth
from audio_compositionality.support.text import first_line, number_text, plain

from .log import EVALUATIONS, STEPS
from .settings import ALIGN, CONTRASTIVE, FRESH, HARD, MODULAR, TrainingError, TrainingSettings, setting_differences

if TYPE_CHECKING:
    from audio_compositionality.hub.client import Hub
    from audio_compositionality.hub.content import Changes, Commit, Content
    from audio_compositionality.hub.errors import Repository


SETTINGS = "settings.yaml"

_LIBRARIES = ("audio-compositionality", "accelerate", "numpy", "torch", "transformers")
_MAY_STAND = {".lock", "slurm.out"}


@dataclass(frozen=True)
class DataFacts:
    """The facts of training data.

    Attributes:
        source: of the rows, as their data state it.
        recipe: its name; None where the rows are of none.
        fingerprint: of the data.
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
        settings: as `TrainingSettings.values` has them.
        data: the training data.
        finished: whether all stages are done.
        outcome: results by name; empty before the end.
        files: SHA-256 of the files of the model beside the record, by their names.
    """

    settings: Mapping[str, Any]
    data: DataFacts
    finished: bool = False
    outcome: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        """The values, as JSON has them."""
        return {
            "version": RECORD_VERSION,
            "finished": self.finished,
            "recipe": self.data.recipe,
            "data": self.data.source,
            "fingerprint": self.data.fingerprint,
            "rows": self.data.rows,
            "trained_on": self.data.described,
            "settings": dict(self.settings),
            "libraries": _library_versions(),
            **self.outcome,
            "files": dict(self.files),
        }

    def to_json(self) -> bytes:
        """The file's text, with a digest of it."""
        return sealed_json(self.values())


def _library_versions() -> dict[str, str]:
    """Versions of this package, Python and the libraries that compute."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _LIBRARIES}}


def write_record(out: Path, record: TrainingRecord, settings: TrainingSettings) -> None:
    """Write both files."""
    write_together({out / SETTINGS: settings.to_yaml(), out / RECORD: record.to_json()})


def read_record(out: Path) -> dict[str, Any] | None:
    """The values of the record in a folder; None where there is none.

    Raises:
        TrainingError: it cannot be read, or is not as it was written.
        InputError: its settings have nested lists.
    """
    path = out / RECORD
    if not path.exists():
        return None
    try:
        values = read_record_values(path)
    except DamagedError as error:
        raise TrainingError(f"{error}; put a whole copy in its place, or give another --out") from error
    except (OSError, ValueError, RecursionError) as error:
        raise TrainingError(f"cannot read {path}: {first_line(error)}") from error
    settings = values.get("settings")
    if not isinstance(settings, dict) or (values.get("finished") and not isinstance(values.get("steps"), int)):
        raise TrainingError(f"{path} is not a record of a training")
    check_depth(settings, path)
    return dict(values)


def check_model_files(out: Path, values: Mapping[str, Any]) -> None:
    """Refuse files of a model that differ from those that the training wrote.

    Args:
        out: their folder.
        values: of its record.

    Raises:
        TrainingError: one was changed, or is missing.
    """
    try:
        check_recorded_files(values, lambda name: path if (path := out / name).is_file() else None, out)
    except ModelError as error:
        raise TrainingError(str(error)) from error


def check_out(out: Path, settings: TrainingSettings, data: DataFacts | None = None) -> dict[str, Any] | None:
    """Refuse a folder that holds anything but this training; returns its record, None for a new one.

    Args:
        out: the folder, which need not be there.
        settings: of the requested training.
        data: of the requested training; None where they are not open yet.

    Raises:
        TrainingError: a run with other settings or of other data, which are named, or files that no training wrote.
    """
    if out.exists() and not out.is_dir():
        raise TrainingError(f"{out} is a file; --out is a folder")
    values = read_record(out)
    if values is None:
        strange = sorted(path.name for path in out.iterdir() if path.name not in _MAY_STAND) if out.is_dir() else []
        strange = [name for name in strange if not name.endswith(".partial")]
        if strange:
            raise TrainingError(
                f"{out} holds {strange[0]}, but no training; give a folder that is new or empty as --out"
            )
        return None
    differing = setting_differences(values["settings"], settings.values())
    if data is not None and values.get("fingerprint") != data.fingerprint:
        stored = str(values.get("fingerprint"))[:12]
        differing.append(f"the data ({data.source}) have the fingerprint {data.fingerprint[:12]} where it was {stored}")
    if differing:
        raise TrainingError(
            f"{out} holds a training with other settings: {'; '.join(differing)}. Give those to go on with it, or "
            "another --out"
        )
    return values


CARD = "README.md"

_MEANINGS = {
    CONTRASTIVE: "clips and captions of a batch are contrasted",
    HARD: "as are captions and hard negatives of the same words",
    MODULAR: "and texts of parts of a clip are positives as well",
}

_TEMPLATE = """\
# {title}

An audio–text model: sound and text have embeddings in one space. It was trained to hear how the
parts of a sound are put together, what comes first and what belongs to what, after Ghosh et al. (2024), CompA
(arXiv 2310.08753), by [audio-compositionality]({home}).

```python
from audio_compositionality.encoders.loading.registry import load_model

model = load_model("{title}")  # this folder, or the id on the Hub
model.embed(waveforms, sample_rate)  # [clips, {dim}]
model.embed_text(["a low bell, then a high organ"])
```

{opened}

## Training

{facts}

{stages}

{again}
`training.json` has the fingerprint of the data, the losses and the versions of the libraries, `log.csv` every step.
{scores}
## Limits

What is trained on sounds that a program makes knows those sounds. Scores on test sets whose training split was
learnt from are not those of a model that has never met such clips; `audio-compositionality evaluate` says so.
"""

HOME = "https://github.com/audio-compositionality/audio-compositionality"


def model_card(title: str, settings: TrainingSettings, record: Mapping[str, Any], dim: int, *, is_clap: bool) -> str:
    """The card, Markdown below YAML.

    Args:
        title: the model's name.
        settings: of the training.
        record: the values of `training.json`.
        dim: length of an embedding.
        is_clap: whether it is a CLAP in transformers' format.
    """
    facts = [
        f"- Initial weights: {_begun(settings.init)}; trained weights: {settings.train}",
        f"- Data: {plain(str(record['trained_on']))}, fingerprint `{str(record['fingerprint'])[:12]}`",
        f"- Steps: {record['steps']:,} of {settings.batch_size * settings.accumulate} rows, seed {settings.seed}, "
        f"precision {record['precision']}, on {plain(str(record['device']))}",
    ]
    return _header(settings, is_clap) + _TEMPLATE.format(
        title=plain(title),
        home=HOME,
        dim=dim,
        facts="\n".join(facts),
        opened=_opened(settings, is_clap),
        stages=_stage_table(record["stages"]),
        again=_again(record.get("data_arguments", "")),
        scores=_scores(record),
    )


def _again(arguments: str | None) -> str:
    """How to train it again: the command, or the remark that no command names its data."""
    if arguments is None:
        return (
            "`settings.yaml` holds all settings. Its training data were opened by a program and given to "
            "`audio_compositionality.training.running.train_model` beside them."
        )
    command = " ".join(
        filter(None, ("audio-compositionality train --settings settings.yaml", plain(arguments), "--out DIR"))
    )
    if not arguments:
        return f"`settings.yaml` holds all settings: `{command}` trains it again."
    return (
        "`settings.yaml` holds all settings, except those that name the sounds. With the same sounds at the same "
        f"paths, this trains it again:\n\n```sh\n{command}\n```\n"
    )


def _begun(init: str) -> str:
    if init.startswith(ALIGN):
        name = plain(init.removeprefix(ALIGN))
        return f"a fresh linear map of the frozen embeddings of {name}, and a fresh text tower"
    return f"{init}, small towers with fresh weights" if init in FRESH else plain(init)


def _opened(settings: TrainingSettings, is_clap: bool) -> str:
    """Other programs that open it, or what has to be there to open it."""
    if is_clap:
        return "`transformers.ClapModel.from_pretrained` opens it as well."
    if not settings.init.startswith(ALIGN):
        return "Its networks are those of audio-compositionality, which is needed to open it."
    name = plain(settings.init.removeprefix(ALIGN))
    return (
        f"It names its encoder, `{name}`, and does not hold it: the same revision has to be there. Its control is what "
        f"`train --align untrained:{name}` makes of the untrained twin's embeddings, where the encoder has a twin; "
        "`untrained:` before this model's own name has fresh weights in the map and the text tower as well."
    )


def _header(settings: TrainingSettings, is_clap: bool) -> str:
    values: dict[str, Any] = {
        "library_name": "transformers" if is_clap else "audio-compositionality",
        "tags": ["audio", "audio-text", "clap", "audio-compositionality"],
    }
    if (
        not settings.init.startswith(ALIGN)
        and settings.init.count("/") == 1
        and not settings.init.startswith((".", "/", "~"))
    ):
        values["base_model"] = settings.init
    return f"---\n{yaml.safe_dump(values, sort_keys=False)}---\n\n"


def _stage_table(stages: Sequence[Mapping[str, Any]]) -> str:
    lines = ["| stage | steps | learning rate | last loss | objective |", "|:--|--:|--:|--:|:--|"]
    lines += [
        f"| {one['kind']} | {one['steps']:,} | {one['learning_rate']:g} | {number_text(one['loss'])} | "
        f"{_MEANINGS[one['kind']]} |"
        for one in stages
    ]
    return "\n".join(lines)


def _scores(record: Mapping[str, Any]) -> str:
    evaluations = record.get("evaluations") or []
    if not evaluations:
        return ""
    last, best = evaluations[-1], record.get("best")
    # Scores of groups of items are in the table of evaluations.
    shown = {name: value for name, value in last["scores"].items() if "=" not in name}
    lines = [f"| {plain(name)} | {number_text(value)} |" for name, value in shown.items()]
    best_line = ""
    if best:
        best_line = f"The highest score, {number_text(best['score'])}, was that of step {best['step']:,}: `best/`.\n"
    return (
        f"\n## Validation scores at step {last['step']:,}\n\n| | |\n|:--|--:|\n" + "\n".join(lines) + "\n\n"
        f"{best_line}`evaluations.csv` has all.\n"
    )


_NAME_LENGTH = 96

_NOT_SENT = (".", "slurm")


@dataclass(frozen=True)
class ModelPush:
    """The effect of a push of a model, done or planned.

    Attributes:
        repository: on the Hub.
        changes: files to send, and files that are there already.
        commit: the resulting commit; None for a dry run.
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
    from audio_compositionality.hub.errors import Repository
    from audio_compositionality.hub.names import check_org

    org, slash, short = name.partition("/")
    allowed = all(char.isalnum() or char in "._-" for char in short) and short.isascii()
    if not slash or not short or not allowed or len(short) > _NAME_LENGTH or short.startswith((".", "-")):
        raise TrainingError(f"--push is {name!r}; it must be ORG/NAME, such as my-lab/clap-that-hears-order")
    check_org(org)
    return Repository("model", name)


def push_model(
    out: Path, name: str, *, hub: Hub | None = None, private: bool = False, dry_run: bool = False
) -> ModelPush:
    """Bring a repository to the content of a finished training's folder, less its checkpoints.

    Args:
        out: the folder.
        name: ``ORG/NAME``.
        hub: by default as the user of the saved token.
        private: make a new repository private.
        dry_run: change nothing.

    Raises:
        TrainingError: the training is not finished, a file of its model is not as it was written, the name cannot be
            one, or the model is aligned with an encoder that others do not have.
        HubError: the Hub refuses, or cannot be reached.
    """
    from audio_compositionality.hub.client import Hub

    repository = model_repository(name)
    record = read_record(out)
    if record is None or not record.get("finished"):
        raise TrainingError(f"{out} holds no training that is finished")
    check_model_files(out, record)
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
    """The published files of a run: the model, its card, settings, record and tables."""
    paths = sorted(path for path in out.iterdir() if path.is_file() and not path.name.startswith(_NOT_SENT))
    suffixes = {".json", ".yaml", ".md", ".txt", ".safetensors", ".model"}
    return {path.name: path for path in paths if path.suffix in suffixes or path.name in (STEPS, EVALUATIONS)}
