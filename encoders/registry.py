"""From a name to an encoder: registered names, Hub ids, local folders, and `untrained:` in front of either."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .baselines import Downsample, LogMelStatistics, RandomVector
from .inference import resolve_device

if TYPE_CHECKING:
    import torch

    from .base import StagedEncoder

UNTRAINED = "untrained:"
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True)
class EncoderInfo:
    """What is known of an encoder before it is loaded.

    Attributes:
        name: what `load_encoder` takes.
        family: "baseline", or the family of model.
        output_dim: length of an embedding.
        sample_rate: rate in Hz that it works at.
        description: one line.
    """

    name: str
    family: str
    output_dim: int
    sample_rate: int
    description: str


_BASELINES: dict[type[Downsample | RandomVector | LogMelStatistics], str] = {
    Downsample: "the waveform resampled to 768 values; linear, scores A-COAT 1 by construction",
    RandomVector: "768 normal variates seeded by the clip's content; knows nothing",
    LogMelStatistics: "mean and standard deviation over time of a 128-band log-mel spectrogram",
}

_WHISPER_DIMS = {
    "tiny": 384,
    "tiny.en": 384,
    "base": 512,
    "base.en": 512,
    "small": 768,
    "small.en": 768,
    "medium": 1024,
    "medium.en": 1024,
    "large-v2": 1280,
    "large-v3": 1280,
    "large-v3-turbo": 1280,
}


def list_encoders() -> list[EncoderInfo]:
    """The encoders that are known by name: the baselines, then pretrained models of the Hub.

    `load_encoder` takes others too: see there.
    """
    baselines = [
        EncoderInfo(c.id, "baseline", c.output_dim, c.sample_rate, description) for c, description in _BASELINES.items()
    ]
    whispers = [
        EncoderInfo(
            f"openai/whisper-{size}",
            "whisper",
            dim,
            16_000,
            f"encoder of Whisper {size}, mean over the clip's own frames (30-s window)",
        )
        for size, dim in _WHISPER_DIMS.items()
    ]
    return baselines + whispers


def load_encoder(
    id: str,
    *,
    device: str | torch.device | None = None,
    seed: int = 0,
) -> StagedEncoder[Any]:
    """Load an encoder.

    `id` is, in this order: a registered name (`list_encoders`); a local folder with config.json,
    preprocessor_config.json and safetensors weights; a Hub id (`org/name`). `untrained:` in front of a folder or a
    Hub id gives the same architecture with fresh weights, for which the folder needs no weights.

    Args:
        id: which encoder.
        device: torch device of the model; by default CUDA where there is one, else the CPU.
        seed: seed of the weights of an `untrained:` encoder; every other encoder is fixed and ignores it.

    Raises:
        ValueError: if there is no such encoder (with the nearest known name), its files cannot be had or are
            incomplete, or the model is of a kind that cannot be embedded with.
    """
    name = id.removeprefix(UNTRAINED)
    untrained = name != id
    for baseline in _BASELINES:
        if name == baseline.id:
            if untrained:
                raise ValueError(f"'{id}': '{name}' is a baseline without weights, there is nothing to untrain")
            return baseline()
    source = _locate(name)
    if source is None:
        raise ValueError(_unknown(id, name))
    return _load_pretrained(source, seed if untrained else None, resolve_device(device))


def _load_pretrained(source: Path | str, seed: int | None, device: torch.device) -> StagedEncoder[Any]:
    # A baseline need not wait for transformers to be imported.
    from .checkpoints import open_checkpoint
    from .transformers_audio import load_transformers_encoder
    from .whisper import WhisperEncoder

    checkpoint = open_checkpoint(source, seed)
    if checkpoint.config.model_type == "whisper":
        return WhisperEncoder(checkpoint, device)
    return load_transformers_encoder(checkpoint, device)


def _locate(name: str) -> Path | str | None:
    """The folder, or the Hub id, that a name stands for; None if it can be neither."""
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        if not (folder / "config.json").is_file():
            raise ValueError(
                f"folder '{name}' holds no config.json; pass a folder that a transformers model was saved to with "
                "save_pretrained()"
            )
        return folder
    if HUB_ID.fullmatch(name):
        return name
    if "/" in name:
        raise ValueError(f"there is no folder '{name}', and it is no Hub id (org/name) either")
    return None


def _unknown(id: str, name: str) -> str:
    known = [info.name for info in list_encoders()]
    by_short_name = {full.split("/")[-1]: full for full in known}
    candidates = [*known, *by_short_name]
    close = difflib.get_close_matches(name, candidates, n=3, cutoff=0.6)
    close = close or [c for c in candidates if name and c.startswith(name)][:3]
    suggestions = list(dict.fromkeys(by_short_name.get(match, match) for match in close))
    prefix = id[: len(id) - len(name)]
    if suggestions:
        quoted = " or ".join(f"'{prefix}{suggestion}'" for suggestion in suggestions)
        return f"unknown encoder '{id}'; did you mean {quoted}?"
    return (
        f"unknown encoder '{id}'; pass one of {', '.join(known)}, a Hub id (org/name), or an existing folder with "
        "config.json, preprocessor_config.json and safetensors weights"
    )
