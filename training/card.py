"""The card of a trained model, README.md: what it is, how it was trained, what it scored, how it is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from audio_compositionality.support.text import number_text, plain

from .settings import ALIGN, CONTRASTIVE, FRESH, HARD, MODULAR, TrainingSettings

CARD = "README.md"

_MEANINGS = {
    CONTRASTIVE: "clips and captions of a batch are told apart",
    HARD: "and captions from texts of the same words that are false of their clip",
    MODULAR: "and what is true of a part of a clip is near it as well",
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
        f"- Begun with: {_begun(settings.init)}; trained weights: {settings.train}",
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
    """How it is trained again: by which command, or that no command says what it was trained on."""
    if arguments is None:
        return (
            "`settings.yaml` holds all settings. What it was trained on was opened by a program and given to "
            "`audio_compositionality.training.running.train_model` beside them."
        )
    command = " ".join(
        filter(None, ("audio-compositionality train --settings settings.yaml", plain(arguments), "--out DIR"))
    )
    if not arguments:
        return f"`settings.yaml` holds all settings: `{command}` trains it again."
    return (
        "`settings.yaml` holds all settings, but for what says which sounds were learnt from. With the same sounds and "
        f"the paths as they were, this trains it again:\n\n```sh\n{command}\n```\n"
    )


def _begun(init: str) -> str:
    if init.startswith(ALIGN):
        name = plain(init.removeprefix(ALIGN))
        return f"a fresh linear map of the frozen embeddings of {name}, and a fresh text tower"
    return f"{init}, small towers with fresh weights" if init in FRESH else plain(init)


def _opened(settings: TrainingSettings, is_clap: bool) -> str:
    """Who else opens it, or what has to be there to open it."""
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
    lines = ["| stage | steps | learning rate | last loss | what is learnt |", "|:--|--:|--:|--:|:--|"]
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
        f"\n## Scores on items of validation, at step {last['step']:,}\n\n| | |\n|:--|--:|\n"
        + "\n".join(lines)
        + "\n\n"
        f"{best_line}`evaluations.csv` has all.\n"
    )
