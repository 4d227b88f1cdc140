"""HEAR modules as encoders, and every encoder as a HEAR module (Turian et al., 2022, arXiv 2203.03022).

HEAR's common API is a module with

- ``load_model(model_file_path="")``, whose model has `sample_rate`, `scene_embedding_size` and
  `timestamp_embedding_size`;
- ``get_scene_embeddings(audio, model)``: [n, samples] -> [n, scene_embedding_size];
- ``get_timestamp_embeddings(audio, model)``: [n, timestamps, timestamp_embedding_size], and the times [n, timestamps]
  in milliseconds.

This module is one, too; its model path is the name of a model:

    hear-validator audio_compositionality.encoders.adapters.hear --model whisper-base
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import packages_distributions, version
from pathlib import Path
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray

from audio_compositionality.support.files import sha256_of_file

from .. import base
from ..inference import inference, resolve_device
from ..loading.listing import Adapter
from ..loading.registry import load_encoder
from ..options import DEFAULT_OPTIONS, EncoderOptions
from .custom import check_module, count_parameters, source_digest, source_revision, to_array, user_code, weights_digest

RATES = (16_000, 22_050, 44_100, 48_000)
"""Sample rates of the audio in HEAR."""

HOP_SECONDS = 0.05
"""Distance between timestamps, in ms, for an encoder without frames: the longest that HEAR suggests for timestamp
tasks."""

WINDOW_SECONDS = 1.0
"""Seconds that an encoder without frames embeds around a timestamp."""

WINDOWS_AT_A_TIME = 64

PREFIX = "hear"


class HearEncoder(base.WaveformEncoder):
    """A HEAR module run as an encoder: the embedding of a clip is its scene embedding."""

    def __init__(self, module: ModuleType, weights: Path | None, device: torch.device) -> None:
        """Load the module's model.

        Args:
            module: a HEAR module of PyTorch.
            weights: argument of its ``load_model``; None for none.
            device: device of the model.

        Raises:
            ModelError: the module lacks a function, or the model an attribute, or it is not a torch module.
        """
        for function in ("load_model", "get_scene_embeddings"):
            if not callable(getattr(module, function, None)):
                raise base.ModelError(f"'{module.__name__}' has no {function}(); it is not a HEAR module")
        self._name = f"{PREFIX}:{module.__name__}"
        with user_code(module.__name__):
            model = module.load_model() if weights is None else module.load_model(str(weights))
        self._model = check_module(model, ("sample_rate", "scene_embedding_size"), module.__name__, "HEAR")
        self._model.to(device).eval()
        self._module = module
        self.device = str(device)
        sha256 = weights_digest(model)
        if sha256 is None and weights is not None:
            sha256 = sha256_of_file(weights)
        # The version of the installed package that holds the module, else the digest of its file.
        distributions = packages_distributions().get(module.__name__.partition(".")[0])
        source = source_digest(Path(module.__file__)) if module.__file__ else "unknown"
        if distributions:
            source = version(distributions[0])
        self.card = base.ModelCard(
            id=self._name,
            revision=source_revision(source, sha256),
            sample_rate=base.check_sample_rate(self._model.sample_rate),
            output_dim=int(self._model.scene_embedding_size),
            weights_sha256=sha256,
            parameters=count_parameters(model),
        )

    def _run_model(self, features: base.FloatArray) -> base.FloatArray:
        with inference(self.device), user_code(self._name):
            audio = torch.from_numpy(features).to(self.device)
            output = self._module.get_scene_embeddings(audio, self._model)
        return base.check_embeddings(to_array(output, self._name), self, len(features))


def load_hear_encoder(spec: str, device: torch.device | None, options: EncoderOptions) -> HearEncoder:
    """Load the encoder of ``MODULE`` or ``MODULE:WEIGHTS``; MODULE must be importable, and WEIGHTS is a file.

    Raises:
        ModelError: there is no such module or file, it is no HEAR module, or options are not the defaults.
    """
    if options != DEFAULT_OPTIONS:
        raise base.ModelError(f"'{PREFIX}:{spec}' runs its module's code: it takes no layer, pooling or precision")
    name, _, path = spec.partition(":")
    weights = Path(path).expanduser() if path else None
    if weights is not None and not weights.is_file():
        raise base.ModelError(f"'{PREFIX}:{spec}': there is no file '{path}' for load_model()")
    try:
        module = import_module(name) if name else None
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise base.ModelError(f"'{PREFIX}:{spec}': '{name}' needs the package {error.name}; install it") from error
        module = None
    if module is None:
        raise base.ModelError(
            f"'{PREFIX}:{spec}': no module '{name}' can be imported; install the package (such as hearbaseline) or set "
            "PYTHONPATH"
        )
    return HearEncoder(module, weights, resolve_device(device))


class HearModel(torch.nn.Module):
    """An encoder as a model of HEAR.

    The encoder stays on the device on which it was loaded (by default CUDA if available), wherever HEAR moves
    the model.

    Attributes:
        encoder: the encoder.
        sample_rate: HEAR's lowest rate that is not below the encoder's; the encoder resamples.
        scene_embedding_size: length of the embedding of a clip.
        timestamp_embedding_size: length of the embedding of a timestamp.
    """

    def __init__(self, encoder: base.Model) -> None:
        super().__init__()
        self.encoder = encoder
        self.sample_rate = min((rate for rate in RATES if rate >= encoder.card.sample_rate), default=RATES[-1])
        self.scene_embedding_size = base.output_dim_of(encoder)
        noise = np.random.default_rng(0).normal(0, 0.1, (1, 2 * self.sample_rate)).astype(np.float32)
        self.timestamp_embedding_size = embed_moments(encoder, noise, self.sample_rate, HOP_SECONDS)[0].shape[2]


def load_model(model_file_path: str = "") -> HearModel:
    """Load an encoder as a model of HEAR.

    Args:
        model_file_path: a model's name, as `load_model` takes it.

    Raises:
        ModelError: it is empty, or there is no such encoder.
    """
    if not model_file_path:
        raise base.ModelError("pass a model's name as its path, such as --model whisper-base")
    return HearModel(load_encoder(model_file_path))


def get_scene_embeddings(audio: torch.Tensor, model: HearModel) -> torch.Tensor:
    """Embed clips.

    Args:
        audio: [n, samples] within [-1, 1], at `model.sample_rate`.
        model: result of `load_model`.

    Returns:
        float32 [n, scene_embedding_size], on the device of `audio`.
    """
    embeddings = model.encoder.embed(audio.cpu().numpy(), model.sample_rate)
    return torch.from_numpy(embeddings).to(audio.device)


def get_timestamp_embeddings(audio: torch.Tensor, model: HearModel) -> tuple[torch.Tensor, torch.Tensor]:
    """Embed moments: the encoder's frames; without frames, windows of a second.

    Args:
        audio: [n, samples] within [-1, 1], at `model.sample_rate`.
        model: result of `load_model`.

    Returns:
        float32 [n, timestamps, timestamp_embedding_size] and the times in milliseconds [n, timestamps], on the device
        of `audio`.
    """
    embeddings, seconds = embed_moments(model.encoder, audio.cpu().numpy(), model.sample_rate, HOP_SECONDS)
    times = torch.from_numpy((1000 * seconds).astype(np.float32)).expand(len(embeddings), -1)
    return torch.from_numpy(embeddings).to(audio.device), times.to(audio.device)


def embed_moments(
    encoder: base.Model, clips: base.FloatArray, sample_rate: int, hop_seconds: float
) -> tuple[base.FloatArray, NDArray[np.float64]]:
    """Embed regular moments of clips.

    These are the frames of an encoder that has them (`Model.embed_frames`). For other encoders, each moment is the
    embedding of the second around it, with silence beyond the ends of the clip.

    Args:
        encoder: any encoder.
        clips: [n, samples].
        sample_rate: their rate in Hz.
        hop_seconds: distance between moments for an encoder without frames.

    Returns:
        float32 [n, moments, dim], and the times of the moments in seconds, [moments].
    """
    if "frames" in encoder.abilities:
        frames, frame_seconds = encoder.embed_frames(clips, sample_rate)
        if frame_seconds > 0:
            return frames, _middles(frames.shape[1], frame_seconds)
    size = round(WINDOW_SECONDS * sample_rate)
    moments = max(1, int(clips.shape[1] / (hop_seconds * sample_rate)))
    seconds = _middles(moments, hop_seconds)
    # A window is centred on its moment. In a clip that is padded by half a window, it begins at the time of the moment.
    starts = np.rint(seconds * sample_rate).astype(np.int64)
    padded = np.pad(clips, ((0, 0), (size // 2, max(0, int(starts[-1]) + size - size // 2 - clips.shape[1]))))
    windows = np.lib.stride_tricks.sliding_window_view(padded, size, axis=1)
    rows, columns = np.repeat(np.arange(len(clips)), moments), np.tile(starts, len(clips))
    embedded = []
    for first in range(0, len(rows), WINDOWS_AT_A_TIME):
        chunk = slice(first, first + WINDOWS_AT_A_TIME)
        embedded.append(encoder.embed(windows[rows[chunk], columns[chunk]], sample_rate))
    embeddings: base.FloatArray = np.concatenate(embedded).reshape(len(clips), moments, -1)
    return embeddings, seconds


def _middles(count: int, distance: float) -> NDArray[np.float64]:
    return (np.arange(count, dtype=np.float64) + 0.5) * distance


ADAPTER = Adapter(PREFIX, load_hear_encoder)
