"""Models of transformers whose output is a sequence of frames: wav2vec 2.0, HuBERT, WavLM, w2v-BERT and similar ones.

They handle every architecture that no other family names, or explain why it is not supported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..base import ClipError, FloatArray, ModelError
from ..inference import inference
from ..model_encoder import Hidden, LayeredEncoder
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch

    from ..loading.checkpoints import Checkpoint

    Tensors = dict[str, torch.Tensor]

MANY_STEPS = 10_000_000
"""Input length from whose number of frames, plus those lost at the edges, the stride is computed."""


@dataclass(frozen=True)
class FrameFeatures:
    """Input of a model of frames.

    Attributes:
        inputs: what the model takes, by name; each has one row per clip.
        frames: number of frames of sound, without padding, at the requested layer.
    """

    inputs: Tensors
    frames: int


class FrameEncoder(LayeredEncoder[FrameFeatures]):
    """A model that returns one vector per frame; the embedding is the mean over the frames of sound.

    The feature extractor of the checkpoint sets the sample rate and the normalisation; if it pads, its attention mask
    separates sound from padding. Only the encoder of an encoder-decoder model is used.

    Layers are transformers' `hidden_states`; blocks that a layer does not need are not run. The last layer equals the
    model's output in speech-to-text (both are normalised), in data2vec-audio and w2v-BERT 2.0, and, without
    `do_stable_layer_norm`, in wav2vec 2.0, HuBERT, WavLM, UniSpeech and UniSpeech-SAT. With `do_stable_layer_norm`, and
    in Wav2Vec2-Conformer, only the output is normalised, not the last layer. The two also differ if the configuration
    adds an adapter (`add_adapter`), and in SEW and SEW-D, whose output is upsampled: their layers have `squeeze_factor`
    times fewer frames. These two fill up an odd number of frames with one of zeros, which is not pooled.
    """

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        import torch
        from transformers import AutoModel

        from ..loading.checkpoints import HOW_TO_WRAP

        self._config = checkpoint.config
        if self._config.sub_configs:
            # Checked before gigabytes of it are read.
            raise ModelError(
                f"'{checkpoint.name}' (model type '{self._config.model_type}') is not an audio encoder but a model of "
                f"several parts ({', '.join(sorted(self._config.sub_configs))}); {HOW_TO_WRAP}"
            )
        self._extractor = checkpoint.load_feature_extractor()
        # Blocks of the model or of the encoder of an encoder-decoder model.
        stated = getattr(self._config, "num_hidden_layers", 0)
        num_layers = int(getattr(self._config, "encoder_num_hidden_layers", stated))
        self.check_options(checkpoint.id, options, num_layers)
        model = checkpoint.load_model(AutoModel)
        if self._config.is_encoder_decoder:
            model = model.get_encoder()
        # The blocks of the model, if they are one list named ``layers``.
        lists = [module for name, module in model.named_modules() if name.rpartition(".")[2] == "layers"]
        blocks = [one for one in lists if isinstance(one, torch.nn.ModuleList) and len(one) == num_layers]
        if len(blocks) == 1:
            self._drop_later_blocks(blocks[0], options.layer)
        self._model = model.to(device)
        self._inputs = set(inspect.signature(model.forward).parameters)
        self._main_input: str = model.main_input_name
        self._lengths = _output_lengths(model, self._config, options.layer)
        rate = int(self._extractor.sampling_rate)
        card = checkpoint.card(sample_rate=rate, output_dim=None, options=options, modules=[self._model])
        super().__init__(card, num_layers=num_layers, device=device)
        self.card = replace(card, output_dim=self._probe())

    def _at(self, layer: int) -> Self:
        view = super()._at(layer)
        if self.card.options.layer is None:
            # Adapters and upsampling come between the layers and the output.
            view._lengths = _output_lengths(view._model, view._config, layer)
            view.card = replace(view.card, output_dim=view._probe())
        return view

    @classmethod
    def _needed_blocks(cls, layer: int) -> int:
        # One more block is kept than is needed: transformers replaces the last state by the normalised output.
        return layer + 1

    def _probe(self) -> int:
        """Run the model on a second of noise, to refuse models that cannot be pooled.

        Returns:
            the dimension of its frames.
        """
        noise = np.random.default_rng(0).normal(0, 0.1, (1, 2 * self.card.sample_rate)).astype(np.float32)
        inputs = self._run_extractor(noise[:, : self.card.sample_rate])
        steps, steps_of_two = self._sounding_steps(inputs), self._sounding_steps(self._run_extractor(noise))
        if steps == steps_of_two:
            raise self._unfit(
                f"its {type(self._extractor).__name__} pads every clip to one length and returns no attention mask, so "
                "padding cannot be left out"
            )
        try:
            with inference(self.device):
                (hidden,) = self._hidden_states(inputs, (self.card.options.layer,))
        except (RuntimeError, TypeError) as error:
            raise self._unfit(
                f"a {type(self._model).__name__} cannot run on the output of its {type(self._extractor).__name__}: "
                f"{error}"
            ) from error
        frames, dim = hidden.shape[1:]
        if self._lengths is None:
            if frames != inputs[self._main_input].shape[1]:
                raise self._unfit(
                    f"it returns {frames} frames for {inputs[self._main_input].shape[1]} steps of its input, and a "
                    f"{type(self._model).__name__} does not say how many of them are sound"
                )
            self._lengths = int
        stride = round(MANY_STEPS / self._lengths(MANY_STEPS))
        self._frame_seconds = stride / (steps_of_two - steps)
        return int(dim)

    def _run_extractor(self, clips: FloatArray) -> Tensors:
        try:
            features = dict(self._extractor(list(clips), sampling_rate=self.card.sample_rate, return_tensors="pt"))
        except Exception as error:
            raise ModelError(
                f"the {type(self._extractor).__name__} of '{self.card.id}' cannot take clips of {clips.shape[1]} "
                f"samples at {self.card.sample_rate} Hz: {error}"
            ) from error
        if self._main_input not in features:
            raise ModelError(
                f"'{self.card.id}': the model takes '{self._main_input}', but its {type(self._extractor).__name__} "
                f"makes {', '.join(sorted(features))}: they do not match, or the model takes no sound"
            )
        return {name: values for name, values in features.items() if name in self._inputs}

    def _sounding_steps(self, inputs: Tensors) -> int:
        """Return the steps of the model's input that are not padding: all clips of a batch have one length."""
        mask = inputs.get("attention_mask")
        return inputs[self._main_input].shape[1] if mask is None else int(mask[0].sum())

    def _extract_features(self, clips: FloatArray) -> FrameFeatures:
        inputs = self._run_extractor(clips)
        assert self._lengths is not None
        frames = self._lengths(self._sounding_steps(inputs))
        if frames < 1:
            self._refuse_short(clips.shape[1])
        import torch

        finite = torch.isfinite(inputs[self._main_input].flatten(1)).all(dim=1)
        if not finite.all():
            row = int(finite.int().argmin())
            raise ClipError(
                f"the {type(self._extractor).__name__} of '{self.card.id}' cannot normalise a clip of {clips.shape[1]} "
                f"samples at {self.card.sample_rate} Hz: its frames do not vary, or there is only one",
                row,
            )
        return FrameFeatures(inputs, frames)

    def _hidden_states(self, inputs: Tensors, layers: Sequence[int | None]) -> list[torch.Tensor]:
        """Return the output of the model at some layers: [n, frames, dim] each."""
        numbers = [layer for layer in layers if layer is not None]
        on_device = {name: values.to(self.device) for name, values in inputs.items()}
        output = self._model(**on_device, **({"output_hidden_states": numbers} if numbers else {}))
        states: list[torch.Tensor] = []
        for layer in layers:
            if layer is None:
                name, hidden = "last_hidden_state", getattr(output, "last_hidden_state", None)
            else:
                name, hidden = (
                    f"hidden_states[{layer}]",
                    (getattr(output, "hidden_states", None) or {layer: None})[layer],
                )
            if hidden is None or hidden.ndim != 3:
                given = f"no {name}" if hidden is None else f"a {name} of {tuple(hidden.shape)}"
                raise self._unfit(
                    f"a {type(self._model).__name__} returns {given}, but must return [clips, frames, dim]"
                )
            states.append(hidden)
        return states

    def _encode_at(self, features: FrameFeatures, layers: Sequence[int | None]) -> list[Hidden]:
        states = self._hidden_states(features.inputs, layers)
        return [Hidden(state[:, : features.frames], self._frame_seconds) for state in states]

    def _unfit(self, reason: str) -> ModelError:
        from ..loading.checkpoints import HOW_TO_WRAP

        return ModelError(f"'{self.card.id}' (model type '{self._config.model_type}'): {reason}; {HOW_TO_WRAP}")


def _output_lengths(model: Any, config: Any, layer: int | None) -> Callable[[int], int] | None:
    """Return a function from steps of input to a model's frames of sound; None if its class does not define it."""
    import torch

    of_model = getattr(model, "_get_feat_extract_output_lengths", None)
    if of_model is None:
        return None
    # Adapters shorten the model's output, not its layers.
    arguments = (
        {} if layer is None or "add_adapter" not in inspect.signature(of_model).parameters else {"add_adapter": False}
    )
    # SEW averages pairs of frames for its blocks, and replaces each by two at the end.
    squeeze = int(getattr(config, "squeeze_factor", 1))

    def lengths(steps: int) -> int:
        frames = int(of_model(torch.tensor(steps), **arguments)) // squeeze
        return frames if layer is not None else frames * squeeze

    return lengths


# `ANY_OTHER`; the file has to name it exactly.
ARCHITECTURES = {"*": FrameEncoder}
