"""X-ARES encoders as encoders of this package, and the reverse (Zhang et al., 2025, arXiv 2505.16369).

An encoder of X-ARES (package xares 0.1.3) is a torch module with `sampling_rate` (Hz), `output_dim` and
`hop_size_in_ms`, the distance between its frames; called with audio [n, samples] it returns frames [n, frames,
output_dim].
"""

from __future__ import annotations

from typing import Any

import torch

from ..base import FloatArray, ModelCard, ModelError, check_sample_rate
from ..inference import resolve_device
from ..loading.listing import Adapter
from ..loading.names import split_file
from ..loading.registry import load_encoder
from ..model_encoder import Hidden, ModelEncoder
from ..options import DEFAULT_OPTIONS, EncoderOptions
from . import custom
from .hear import embed_moments

PREFIX = "xares"

HOP_SECONDS = 0.5
"""Distance between frames for an encoder without frames: windows of one second that overlap by half."""


class XaresModelEncoder(ModelEncoder[FloatArray]):
    """An encoder of X-ARES, pooled as X-ARES pools clips: the mean over its frames."""

    def __init__(self, model: Any, *, name: str, source: str, options: EncoderOptions) -> None:
        """Read the model's attributes.

        Args:
            model: the encoder of X-ARES, a torch module on its device.
            name: name of the model.
            source: identity of its code, for the revision.
            options: pooling and arithmetic.

        Raises:
            ModelError: it is no torch module, or lacks an attribute; or a layer is requested.
        """
        self._model = custom.check_module(model, ("sampling_rate", "output_dim", "hop_size_in_ms"), name, "X-ARES")
        if options.layer is not None:
            raise ModelError(f"'{name}' is an X-ARES encoder, which returns one layer: it takes no --layer")
        self._model.eval()
        sha256 = custom.weights_digest(model)
        card = ModelCard(
            id=f"{PREFIX}:{name}{options.suffix}",
            revision=custom.source_revision(source, sha256),
            sample_rate=check_sample_rate(model.sampling_rate),
            output_dim=int(model.output_dim),
            weights_sha256=sha256,
            parameters=custom.count_parameters(model),
            options=options,
        )
        super().__init__(card, num_layers=0, device=torch.device(custom.device_of(model)))

    def _extract_features(self, clips: FloatArray) -> FloatArray:
        return clips

    def _encode(self, features: FloatArray) -> Hidden:
        with custom.user_code(self.card.id):
            frames = self._model(torch.from_numpy(features).to(self.device))
        shape = tuple(frames.shape) if isinstance(frames, torch.Tensor) else type(frames).__name__
        if not isinstance(frames, torch.Tensor) or frames.ndim != 3 or len(frames) != len(features):
            raise ModelError(f"'{self.card.id}' returned {shape}, but must return [{len(features)}, frames, dim]")
        return Hidden(frames, float(self._model.hop_size_in_ms) / 1000)


def load_xares_encoder(spec: str, device: torch.device | None, options: EncoderOptions) -> XaresModelEncoder:
    """Load the encoder of ``path/to/file.py:ClassName``, an X-ARES class that needs no arguments.

    Raises:
        ModelError: there is no such file or class, or it is no encoder of X-ARES.
    """
    path, attribute = split_file(spec)
    model = custom.call_without_arguments(custom.load_attribute(path, attribute), spec)
    if isinstance(model, torch.nn.Module):
        model = model.to(resolve_device(device))
    return XaresModelEncoder(model, name=attribute, source=custom.source_digest(path), options=options)


class XaresEncoder(torch.nn.Module):
    """An encoder of this package in the form of X-ARES.

    A file for X-ARES holds a subclass, and no other name that ends in "Encoder":

        from audio_compositionality.encoders.adapters import xares


        class WhisperBaseEncoder(xares.XaresEncoder):
            model_name = "whisper-base"

    X-ARES files embeddings and scores under the name of the class: give every encoder its own. The encoder stays on the
    device on which it was loaded, by default CUDA if available.

    Attributes:
        model_name: as for `load_model`; set by the subclass.
        options: layer and precision; may be set by the subclass.
        sampling_rate: rate in Hz of the audio.
        output_dim: length of a frame.
        hop_size_in_ms: distance between frames in milliseconds.
    """

    model_name: str = ""
    options: EncoderOptions = DEFAULT_OPTIONS

    def __init__(self) -> None:
        """Load the encoder and embed a few seconds of noise, to find the format of its frames.

        Raises:
            ModelError: the class names no model, or there is no such encoder.
        """
        super().__init__()
        if not self.model_name:
            raise ModelError(f"{type(self).__name__} names no model: set model_name, such as 'whisper-base'")
        self.encoder = load_encoder(self.model_name, options=self.options)
        self.sampling_rate = self.encoder.card.sample_rate
        noise = 0.1 * torch.randn(1, 3 * self.sampling_rate, generator=torch.Generator().manual_seed(0))
        frames, seconds = embed_moments(self.encoder, noise.numpy(), self.sampling_rate, HOP_SECONDS)
        self.output_dim = int(frames.shape[2])
        self.hop_size_in_ms = float(1000 * (seconds[1] - seconds[0]))

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        """Return frames, float32 [n, frames, output_dim], of audio [n, samples], or of one clip [samples] as [1,
        ...]."""
        clips = (audio if audio.ndim > 1 else audio[None]).float().cpu().numpy()
        frames, _ = embed_moments(self.encoder, clips, self.sampling_rate, HOP_SECONDS)
        return torch.from_numpy(frames).to(audio.device)


ADAPTER = Adapter(PREFIX, load_xares_encoder)
