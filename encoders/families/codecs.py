"""Neural audio codecs of transformers: the continuous latents that are quantised, not the codes.

The embedding is the mean over a codec's frames, which are one hop apart.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..base import FloatArray, ModelError
from ..model_encoder import Hidden, LayeredEncoder, ModelEncoder
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch

    from ..loading.checkpoints import Checkpoint


class CodecEncoder(ModelEncoder["torch.Tensor"]):
    """A codec; its features are the waveforms [n, samples] on the device."""

    def __init__(
        self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions, *, num_layers: int = 0
    ) -> None:
        extractor, self._config = checkpoint.load_feature_extractor(), checkpoint.config
        if extractor.sampling_rate != self._config.sampling_rate:
            raise ModelError(
                f"the feature extractor of '{checkpoint.name}' works at {extractor.sampling_rate} Hz, but the model at "
                f"{self._config.sampling_rate} Hz; they do not match"
            )
        if options.layer is not None and num_layers == 0:
            raise ModelError(
                f"'{checkpoint.name}' is a convolutional codec without layers to choose from; its frames "
                f"are the latents before quantisation, so leave the layer out (it is {options.layer})"
            )
        self.check_options(checkpoint.id, options, num_layers)
        self._model = self._load_encoder(checkpoint).to(device)
        card = checkpoint.card(
            sample_rate=int(extractor.sampling_rate),
            output_dim=int(self._config.hidden_size),
            options=options,
            modules=[self._model],
        )
        super().__init__(card, num_layers=num_layers, device=device)

    @property
    @abstractmethod
    def _hop(self) -> int:
        """Samples between frames."""

    @abstractmethod
    def _load_encoder(self, checkpoint: Checkpoint) -> Any:
        """Load the part of the model before the quantiser."""

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        self._refuse_short(clips.shape[1], self._hop)
        return self._on_device(clips)


class ConvolutionalCodecEncoder(CodecEncoder):
    """A codec without layers of one kind to choose from.

    Attributes:
        model_class: class of transformers.
    """

    model_class: str

    @property
    def _hop(self) -> int:
        return int(self._config.hop_length)

    def _load_encoder(self, checkpoint: Checkpoint) -> Any:
        import transformers

        return checkpoint.load_model(getattr(transformers, self.model_class), parts=("encoder.",)).encoder

    @abstractmethod
    def _latents(self, clips: torch.Tensor) -> torch.Tensor:
        """Return latents [n, dim, frames] of clips [n, samples]; every frame begins within the clip."""

    def _encode(self, features: torch.Tensor) -> Hidden:
        return Hidden(self._latents(features).mT, self._hop / self.card.sample_rate)


class DacEncoder(ConvolutionalCodecEncoder):
    """Descript Audio Codec (Kumar et al., 2023, arXiv 2306.06546), at the rate of the checkpoint: 16, 24 or 44.1 kHz.

    The last frame is filled up with silence, as its feature extractor does.
    """

    model_class = "DacModel"

    def _latents(self, clips: torch.Tensor) -> torch.Tensor:
        latents: torch.Tensor = self._model(_pad_end(clips, -clips.shape[1] % self._hop)[:, None])
        return latents


class EncodecEncoder(ConvolutionalCodecEncoder):
    """EnCodec (Défossez et al., 2022, arXiv 2210.13438).

    The 24 kHz model encodes a clip at once. The 48 kHz model is stereo and gets the clip on both channels; it
    encodes chunks of 1 s, each divided by its root mean square, that overlap by 1 %. Frames are then taken on one grid:
    each from the last chunk that has begun when the frame begins.
    """

    model_class = "EncodecModel"

    def _latents(self, clips: torch.Tensor) -> torch.Tensor:
        import torch

        samples = clips.shape[1]
        length, stride = self._config.chunk_length, self._config.chunk_stride
        if length is None or stride is None:
            return self._encode_chunks(clips)
        count = -(-samples // stride)
        chunks = _pad_end(clips, (count - 1) * stride + length - samples).unfold(1, length, stride)
        latents = self._encode_chunks(chunks.flatten(0, 1))
        latents = latents.reshape(len(clips), count, *latents.shape[1:])
        moments = torch.arange(0, samples, self._hop, device=clips.device)
        chunk = moments // stride
        frames: torch.Tensor = latents[:, chunk, :, (moments - chunk * stride) // self._hop].permute(1, 2, 0)
        return frames

    def _encode_chunks(self, chunks: torch.Tensor) -> torch.Tensor:
        """Return latents [n, dim, frames] of waveforms [n, samples]."""
        if self._config.normalize:
            # As in the model, 1e-8 is added, so that silence is not divided by zero.
            chunks = chunks / (chunks.square().mean(dim=1, keepdim=True).sqrt() + 1e-8)
        latents: torch.Tensor = self._model(chunks[:, None].expand(-1, self._config.audio_channels, -1))
        return latents


class MimiEncoder(CodecEncoder, LayeredEncoder["torch.Tensor"]):
    """Mimi (Défossez et al., 2024, arXiv 2410.00037): convolutions, a transformer, and downsampling to 12.5 Hz.

    Layers belong to the transformer, at 25 Hz; the model's output is its last layer after downsampling.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        config = checkpoint.config
        self._layer_hop = math.prod(int(ratio) for ratio in config.upsampling_ratios)
        self._output_hop = round(config.sampling_rate / config.frame_rate)
        super().__init__(checkpoint, device, options, num_layers=int(config.num_hidden_layers))

    @property
    def _hop(self) -> int:
        return self._layer_hop if self.card.options.layer is not None else self._output_hop

    def _load_encoder(self, checkpoint: Checkpoint) -> Any:
        from transformers import MimiEncoderModel

        return replace(checkpoint, config=checkpoint.config.encoder_config).load_model(MimiEncoderModel)

    def _encode_at(self, features: torch.Tensor, layers: Sequence[int | None]) -> list[Hidden]:
        numbers = [layer for layer in layers if layer is not None]
        output = self._model(features[:, None], **({"output_hidden_states": numbers} if numbers else {}))
        rate = self.card.sample_rate
        return [
            Hidden(output.latents.mT, self._output_hop / rate)
            if layer is None
            else Hidden(output.hidden_states[layer], self._layer_hop / rate)
            for layer in layers
        ]


def _pad_end(clips: torch.Tensor, samples: int) -> torch.Tensor:
    import torch

    return torch.nn.functional.pad(clips, (0, samples))


ARCHITECTURES = {"dac": DacEncoder, "encodec": EncodecEncoder, "mimi": MimiEncoder}
