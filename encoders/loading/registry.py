"""From a name to an encoder: registered names, files and installed packages, local folders, Hub ids."""

from __future__ import annotations

import difflib
import re
import warnings
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio_compositionality.encoders.families.baselines import Downsample, LogMelStatistics, RandomVector
from audio_compositionality.encoders.adapters.custom import (describe_installed, installed_encoders, is_file_spec, load_from_file, load_installed)
from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions
from .weights import PICKLES, Weights, WeightsFile, check_digest

if TYPE_CHECKING:
    import torch

    from audio_compositionality.encoders.base import StagedEncoder

UNTRAINED = "untrained:"
SUITES = {"hear:": "load_hear_encoder", "xares:": "load_xares_encoder", "mteb:": "load_mteb_encoder"}
"""Prefix of an encoder in the form of another suite, and the function of the module of that name that loads it."""

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True)
class EncoderInfo:
    """What is known of an encoder before it is loaded.

    Attributes:
        name: what `load_encoder` takes.
        output_dim: length of an embedding; None where only loading it would tell.
        sample_rate: rate in Hz that it works at; None likewise.
        paradigm: how it was trained.
        licence: of the weights, as their publisher states it.
        weights: where they come from: a Hub repository, or the file's name and the site; empty for none.
        description: one line.
    """

    name: str
    output_dim: int | None
    sample_rate: int | None
    paradigm: str
    licence: str
    weights: str
    description: str


@dataclass(frozen=True)
class _Named:
    """An encoder with a name: `source` is a Hub repository in transformers' format, or the weights for `loader`."""

    info: EncoderInfo
    source: str | WeightsFile
    loader: str = ""


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


@cache
def _named() -> dict[str, _Named]:
    entries = [*_official(), *_whispers()]
    return {entry.info.name: entry for entry in entries}


def _official() -> list[_Named]:
    return [
        _Named(
            EncoderInfo(
                "panns-cnn14",
                2048,
                32_000,
                "supervised",
                "CC-BY-4.0",
                "Cnn14_mAP=0.431.pth, Zenodo 3987831",
                "PANNs Cnn14, the embedding before its classifier",
            ),
            WeightsFile(
                "Cnn14_mAP=0.431.pth",
                "https://zenodo.org/records/3987831/files/Cnn14_mAP%3D0.431.pth?download=1",
                327_428_481,
                "md5:541141fa2ee191a88f24a3219fff024e",
            ),
            "panns:PannsEncoder",
        ),
        _Named(
            EncoderInfo(
                "passt-s",
                768,
                32_000,
                "supervised",
                "Apache-2.0",
                "passt-s-f128-p16-s10-ap.476-swa.pt, GitHub kkoutini/PaSST v0.0.1-audioset",
                "PaSST-S with structured patchout, mean of class and distillation token (10-s window)",
            ),
            WeightsFile(
                "passt-s-f128-p16-s10-ap.476-swa.pt",
                "https://github.com/kkoutini/PaSST/releases/download/v0.0.1-audioset/passt-s-f128-p16-s10-ap.476-swa.pt",
                344_665_734,
                # The release has no hash; this is what others who downloaded the file recorded.
                "sha256:302903fa8c4aee817b11dc982da0b29aaf8d11a3e722420476d0a12c9db70c2c",
            ),
            "passt:PasstEncoder",
        ),
        _Named(
            EncoderInfo(
                "laion-clap",
                512,
                48_000,
                "audio–text contrastive",
                "Apache-2.0",
                "laion/clap-htsat-unfused",
                "LAION CLAP without fusion (630k-audioset-best), projected to the space of text (10-s window)",
            ),
            "laion/clap-htsat-unfused",
        ),
        _Named(
            EncoderInfo(
                "ms-clap-2023",
                1024,
                44_100,
                "audio–text contrastive",
                # The Hub's card; the code's repository is under MIT.
                "MS-PL",
                "CLAP_weights_2023.pth, microsoft/msclap",
                "MS-CLAP 2023, projected to the space of text; the whole clip, in windows of 5 s",
            ),
            WeightsFile(
                "CLAP_weights_2023.pth",
                "microsoft/msclap",
                689_950_036,
                "sha256:2cef4016d47d00eb28d153d522f397222057f95000e9bad6b9583c631284a1e6",
            ),
            "ms_clap:MsClapEncoder",
        ),
        _Named(
            EncoderInfo(
                "af-whisper",
                1280,
                16_000,
                "audio–language",
                "NVIDIA OneWay Noncommercial License",
                "nvidia/audio-flamingo-3-hf",
                "AF-Whisper, the audio encoder of Audio Flamingo 3, mean over the clip's own frames (30-s window)",
            ),
            "nvidia/audio-flamingo-3-hf",
        ),
        _Named(
            EncoderInfo(
                "audiomae",
                768,
                16_000,
                "self-supervised",
                # That of the authors' repository; the card of this port of their weights says CC BY 4.0.
                "CC-BY-NC-4.0",
                "gaunernst/vit_base_patch16_1024_128.audiomae_as2m",
                "AudioMAE ViT-B/16, mean over the patches of the clip (10.2-s window)",
            ),
            WeightsFile("pytorch_model.bin", "gaunernst/vit_base_patch16_1024_128.audiomae_as2m", 343_000_000),
            "audiomae:AudioMaeEncoder",
        ),
        _Named(
            EncoderInfo(
                "beats-iter3",
                768,
                16_000,
                "self-supervised",
                "MIT",
                "BEATs_iter3_plus_AS2M.pt, lpepino/beats_ckpts",
                "BEATs iter3+ pretrained on AudioSet, mean over patches",
            ),
            WeightsFile(
                "BEATs_iter3_plus_AS2M.pt",
                # A copy, since the authors' OneDrive link asks for a browser; no hash is published, but those who
                # downloaded the file from there and from other copies recorded this one.
                "lpepino/beats_ckpts",
                361_499_833,
                "sha256:d43cbfad4d7b56381c061d7a24774f908d4d94c72961f6eb1d9090ff18cd8d34",
            ),
            "beats:BeatsEncoder",
        ),
    ]


def _whispers() -> list[_Named]:
    named = []
    for size, dim in _WHISPER_DIMS.items():
        # The Hub's cards: MIT for large-v3-turbo, Apache-2.0 for the others.
        licence = "MIT" if size == "large-v3-turbo" else "Apache-2.0"
        source = f"openai/whisper-{size}"
        description = "Whisper's encoder, mean over the clip's own frames (30-s window)"
        info = EncoderInfo(f"whisper-{size}", dim, 16_000, "speech recognition", licence, source, description)
        named.append(_Named(info, source))
    return named


def list_encoders() -> list[EncoderInfo]:
    """The encoders that are known by name: the baselines, pretrained models, and those of installed packages.

    `load_encoder` takes others too: see there.
    """
    baselines = [
        EncoderInfo(c.id, c.output_dim, c.sample_rate, c.paradigm, c.licence, "", description)
        for c, description in _BASELINES.items()
    ]
    known = baselines + [named.info for named in _named().values()]
    names = {info.name for info in known}
    installed = [
        EncoderInfo(name, None, None, "not stated", "not stated", "", f"installed by {describe_installed(point)}")
        for name, point in sorted(installed_encoders().items())
        if name not in names
    ]
    return known + installed


def has_untrained_twin(id: str) -> bool:
    """Whether `untrained:` may stand in front of an encoder's id: not of a baseline, nor of other people's code."""
    name = id.removeprefix(UNTRAINED)
    if name in {baseline.id for baseline in _BASELINES}:
        return False
    if name.partition("=")[0] in _named():
        return True
    return not (name.startswith(tuple(SUITES)) or is_file_spec(name) or name in installed_encoders())


def load_encoder(
    id: str,
    *,
    device: str | torch.device | None = None,
    options: EncoderOptions = DEFAULT_OPTIONS,
    seed: int = 0,
) -> StagedEncoder[Any]:
    """Load an encoder.

    `id` is, in this order:

    - a registered name (`list_encoders`), or `NAME=PATH` for its weights in a local file or folder;
    - `path/to/file.py:ClassName`: a class of one's own (`custom.Embedder` says what it needs), or the name of the
      entry point of an installed package in the group `audio_compositionality.encoders`; both run that code;
    - `hear:MODULE`, `hear:MODULE:WEIGHTS`, `xares:path/to/file.py:ClassName` or `mteb:NAME`: an encoder in the form
      of another suite, whose code is run too;
    - a local folder with config.json, preprocessor_config.json and safetensors weights;
    - a Hub id (`org/name`) of a transformers audio model.

    `untrained:` in front of any but a baseline or other people's code gives the same architecture with fresh weights,
    for which a folder needs no weights.

    Args:
        id: which encoder.
        device: torch device of the model; by default CUDA where there is one, else the CPU.
        options: layer, pooling, precision, compilation.
        seed: seed of the weights of an `untrained:` encoder; every other encoder is fixed and ignores it.

    Raises:
        ValueError: if there is no such encoder (with the nearest known name), its files cannot be had or are
            incomplete, the model is of a kind that cannot be embedded with, or cannot be run with the options.
    """
    name = id.removeprefix(UNTRAINED)
    untrained = name != id
    for baseline in _BASELINES:
        if name == baseline.id:
            if untrained:
                raise ValueError(f"'{id}': '{name}' is a baseline without weights, there is nothing to untrain")
            if options != DEFAULT_OPTIONS:
                raise ValueError(f"'{name}' is a baseline without a model: it takes no layer, pooling or precision")
            return baseline()
    chosen_seed = seed if untrained else None
    resolved = resolve_device(device)
    official, _, path = name.partition("=")
    if official in _named() and (path or name == official):
        if not path and Path(name, "config.json").is_file():
            warnings.warn(f"'{name}' is the registered encoder; the folder here is './{name}'", stacklevel=2)
        named = _named()[official]
        return _describe(_load_named(named, path, chosen_seed, resolved, options), named.info, untrained)
    if untrained and name and not has_untrained_twin(name):
        raise ValueError(f"'{id}': '{name}' is made by code of its own, so nothing here can give it fresh weights")
    foreign = _load_foreign(name, None if device is None else resolved, options)
    if foreign is not None:
        return foreign
    source = _locate(name)
    if source is None:
        raise ValueError(_unknown(id, name))
    info = next((named.info for named in _named().values() if named.source == source), None)
    return _describe(_load_transformers(source, None, chosen_seed, resolved, options), info, untrained)


def hub_id_of(id: str) -> str | None:
    """The Hub repository of the model that an encoder's id stands for; None where there is none."""
    named = _named().get(id)
    if named is not None:
        return named.source if isinstance(named.source, str) else None
    return id if HUB_ID.fullmatch(id) and not id.startswith(UNTRAINED) else None


def _describe(encoder: StagedEncoder[Any], info: EncoderInfo | None, untrained: bool) -> StagedEncoder[Any]:
    """The encoder, which now says how it was trained and the licence of its weights, as far as that is known."""
    if untrained:
        encoder.paradigm = "untrained"
    elif info is not None:
        encoder.paradigm, encoder.licence = info.paradigm, info.licence
    return encoder


def _load_foreign(name: str, device: torch.device | None, options: EncoderOptions) -> StagedEncoder[Any] | None:
    """An encoder that other people's code makes; None if the name does not stand for one."""
    for prefix, function in SUITES.items():
        if name.startswith(prefix):
            module = import_module(f".{prefix[:-1]}", __package__)
            encoder: StagedEncoder[Any] = getattr(module, function)(name.removeprefix(prefix), device, options)
            return encoder
    if is_file_spec(name):
        return load_from_file(name, device, options)
    point = installed_encoders().get(name)
    return None if point is None else load_installed(point, device, options)


def _load_named(
    named: _Named, path: str, seed: int | None, device: torch.device, options: EncoderOptions
) -> StagedEncoder[Any]:
    name = named.info.name
    local = Path(path).expanduser() if path else None
    if isinstance(named.source, str):
        if local is not None and not (local / "config.json").is_file():
            raise ValueError(f"'{name}={path}': it must be a folder with config.json and safetensors weights")
        return _load_transformers(local or named.source, name, seed, device, options)
    if seed is not None:
        local = None
    elif local is None:
        local = named.source.fetch(name)
    elif not local.is_file():
        raise ValueError(f"'{name}={path}': there is no such file; it must be {named.source.name} or safetensors")
    elif local.suffix in PICKLES:
        check_digest(local, named.source.digest)
    module, _, attribute = named.loader.partition(":")
    encoder: StagedEncoder[Any] = getattr(import_module(f".{module}", __package__), attribute)(
        Weights(name, local, seed), device, options
    )
    return encoder


def _load_transformers(
    source: Path | str, name: str | None, seed: int | None, device: torch.device, options: EncoderOptions
) -> StagedEncoder[Any]:
    # A baseline need not wait for transformers to be imported.
    from .checkpoints import open_checkpoint
    from audio_compositionality.encoders.families.transformers_audio import load_transformers_encoder

    return load_transformers_encoder(open_checkpoint(source, seed, name), device, options)


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
    close = difflib.get_close_matches(name.partition("=")[0], known, n=3, cutoff=0.6)
    close = close or [c for c in known if name and c.startswith(name)][:3]
    prefix = id[: len(id) - len(name)]
    if close:
        quoted = " or ".join(f"'{prefix}{suggestion}'" for suggestion in close)
        return f"unknown encoder '{id}'; did you mean {quoted}?"
    return (
        f"unknown encoder '{id}'; pass one of {', '.join(known)}, a Hub id (org/name), an existing folder with "
        "config.json, preprocessor_config.json and safetensors weights, or a class of your own as "
        "path/to/file.py:ClassName"
    )
