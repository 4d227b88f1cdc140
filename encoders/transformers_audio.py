"""Audio models of transformers, from a Hub id or a local folder.

`FrameEncoder` takes any model whose output is a sequence of frames (wav2vec 2.0, HuBERT, WavLM, UniSpeech-SAT,
data2vec-audio, SEW, the encoder of a speech-to-text model, ...). A family that works otherwise has a class of its
own, listed in `FAMILIES`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import AutoModel

from .base import FloatArray
from .checkpoints import Checkpoint, load_feature_extractor, load_model
from .clap import ClapEncoder
from .inference import inference
from .model_encoder import Hidden, ModelEncoder
from .options import EncoderOptions
from .spectrogram_transformer import SpectrogramTransformerEncoder
from .whisper import WhisperEncoder

Tensors = dict[str, torch.Tensor]


class TransformersEncoder(ModelEncoder[Tensors]):
    """What the families share: a feature extractor, and a model of which they pool the output."""

    model_class: Any = AutoModel
    parts: tuple[str, ...] = ("",)

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        self._config = checkpoint.config
        self._extractor = load_feature_extractor(checkpoint)
        super().__init__(
            checkpoint.encoder_id,
            sample_rate=int(self._extractor.sampling_rate),
            num_layers=self._count_layers(),
            options=options,
            device=device,
        )
        self._model = self._used_part(load_model(checkpoint, self.model_class, self.parts)).to(device)
        self.revision, self.weights_sha256 = checkpoint.revision, checkpoint.weights_sha256

    def _count_layers(self) -> int:
        return int(getattr(self._config, "num_hidden_layers", 0))

    def _used_part(self, model: Any) -> Any:
        return model

    def _extract_features(self, clips: FloatArray) -> Tensors:
        try:
            return dict(self._extractor(list(clips), sampling_rate=self.sample_rate, return_tensors="pt"))
        except Exception as error:
            raise ValueError(
                f"the {type(self._extractor).__name__} of '{self.id}' cannot take clips of {clips.shape[1]} samples at "
                f"{self.sample_rate} Hz: {error}"
            ) from error

    def _hidden_states(self, features: Tensors) -> torch.Tensor:
        """Output of the model at the layer that is asked for."""
        layer = self.options.layer
        on_device = {name: values.to(self.device) for name, values in features.items()}
        output = self._model(**on_device, **({} if layer is None else {"output_hidden_states": True}))
        hidden: torch.Tensor | None = getattr(output, "last_hidden_state", None)
        if hidden is None or hidden.ndim != 3:
            found = "no last_hidden_state" if hidden is None else f"a last_hidden_state of {tuple(hidden.shape)}"
            raise ValueError(
                f"'{self.id}': a {type(self._model).__name__} returns {found}, where [clips, frames, dim] is needed; "
                f"this model family ('{self._config.model_type}') needs an encoder class of its own"
            )
        return hidden if layer is None else output.hidden_states[layer]

    def _refuse_longer(self, samples: int, longest: int) -> None:
        if samples > longest:
            raise ValueError(
                f"clips last {samples / self.sample_rate:g} s, but '{self.id}' takes {longest / self.sample_rate:g} "
                "s at most and would crop the rest; cut them before"
            )


class FrameEncoder(TransformersEncoder):
    """A model that returns one vector a frame; the mean over the frames that are sound is the embedding.

    Padding is told from sound by the feature extractor's attention mask, which must say so wherever the extractor
    pads. Of an encoder-decoder model the encoder is used.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        _refuse_several_modalities(checkpoint)
        super().__init__(checkpoint, device, options)
        self._inputs = set(inspect.signature(self._model.forward).parameters)
        self._main_input: str = self._model.main_input_name
        self._probe()

    def _used_part(self, model: Any) -> Any:
        return model.get_encoder() if self._config.is_encoder_decoder else model

    def _probe(self) -> None:
        """Run the model on a second of noise, to learn its output and to refuse what cannot be pooled."""
        noise = np.random.default_rng(0).normal(0, 0.1, (1, 2 * self.sample_rate)).astype(np.float32)
        one, two = (self._extract_features(noise[:, : n * self.sample_rate]) for n in (1, 2))
        if "attention_mask" not in one and one[self._main_input].shape == two[self._main_input].shape:
            raise ValueError(
                f"'{self.id}': its {type(self._extractor).__name__} pads every clip to one length and returns no "
                "attention mask, so frames of sound cannot be told from padding; this model family "
                f"('{self._config.model_type}') needs an encoder class of its own"
            )
        with inference(self.device):
            self.output_dim = int(self._encode(one).frames.shape[-1])

    def _extract_features(self, clips: FloatArray) -> Tensors:
        features = super()._extract_features(clips)
        if self._main_input not in features:
            raise ValueError(
                f"'{self.id}': the model takes '{self._main_input}', but its {type(self._extractor).__name__} makes "
                f"{', '.join(sorted(features))}: they do not belong together, or the model does not take sound"
            )
        length = features[self._main_input].shape[1]
        if self._output_lengths is not None and int(self._output_lengths(torch.tensor(length))) < 1:
            raise ValueError(
                f"clips of {clips.shape[1]} samples at {self.sample_rate} Hz are shorter than one frame of '{self.id}'"
            )
        return {name: values for name, values in features.items() if name in self._inputs}

    @property
    def _output_lengths(self) -> Callable[[torch.Tensor], torch.Tensor] | None:
        """Frames that the model returns for an input of given lengths, where its class says so."""
        return getattr(self._model, "_get_feat_extract_output_lengths", None)

    def _encode(self, features: Tensors) -> Hidden:
        hidden = self._hidden_states(features)
        mask = features.get("attention_mask")
        frames = hidden.shape[1]
        # All clips of a batch have one length, so what is padding in the first is padding in all.
        sounding = frames if mask is None else int(self._frame_mask(mask[:1], frames).sum())
        return Hidden(hidden[:, :sounding], 0.0)

    def _frame_mask(self, mask: torch.Tensor, frames: int) -> torch.Tensor:
        if mask.shape[1] == frames:
            return mask
        if self._output_lengths is None:
            raise ValueError(
                f"'{self.id}': the attention mask has {mask.shape[1]} steps and the output {frames} frames, and a "
                f"{type(self._model).__name__} does not say how the one becomes the other"
            )
        lengths = self._output_lengths(mask.sum(dim=1))
        sound: torch.Tensor = torch.arange(frames, device=mask.device)[None, :] < lengths[:, None]
        return sound


FAMILIES: dict[str, Callable[[Checkpoint, torch.device, EncoderOptions], ModelEncoder[Any]]] = {
    "whisper": WhisperEncoder,
    "audio-spectrogram-transformer": SpectrogramTransformerEncoder,
    "clap": ClapEncoder,
}
"""Model types that are not a sequence of frames; any other is taken by `FrameEncoder` or refused by it."""


def load_transformers_encoder(
    checkpoint: Checkpoint, device: torch.device, options: EncoderOptions
) -> ModelEncoder[Any]:
    """The encoder of the checkpoint's family.

    Raises:
        ValueError: if the model is none that can be embedded with, saying what is missing.
    """
    return FAMILIES.get(checkpoint.config.model_type, FrameEncoder)(checkpoint, device, options)


def _refuse_several_modalities(checkpoint: Checkpoint) -> None:
    others = [name for name in checkpoint.config.sub_configs if name.startswith(("text", "vision"))]
    if others:
        raise ValueError(
            f"'{checkpoint.id}' (model type '{checkpoint.config.model_type}') is not an audio encoder but a model of "
            f"several modalities ({', '.join(sorted(checkpoint.config.sub_configs))}); this family needs an encoder "
            "class of its own"
        )
