"""CLAP in transformers' format (Wu et al., 2023, arXiv 2211.06687)."""

from __future__ import annotations

import torch
from transformers import ClapModel

from .base import FloatArray
from .checkpoints import Checkpoint, load_feature_extractor, load_model
from .model_encoder import Hidden, ModelEncoder
from .options import EncoderOptions

Tensors = dict[str, torch.Tensor]


class ClapEncoder(ModelEncoder[Tensors]):
    """CLAP: the projected audio embedding, of unit length.

    The window is 10 s. CLAP repeats a shorter clip, as in training; it would crop a longer one at random, so that
    is refused.
    """

    has_embedding = True

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        self._extractor = load_feature_extractor(checkpoint)
        super().__init__(
            checkpoint.encoder_id,
            sample_rate=int(self._extractor.sampling_rate),
            num_layers=0,
            options=options,
            device=device,
        )
        model = load_model(checkpoint, ClapModel, ("audio_model.", "audio_projection."))
        del model.text_model, model.text_projection
        self._model = model.to(device)
        self.output_dim = int(checkpoint.config.projection_dim)
        self.revision, self.weights_sha256 = checkpoint.revision, checkpoint.weights_sha256

    def _extract_features(self, clips: FloatArray) -> Tensors:
        samples, longest = clips.shape[1], self._extractor.nb_max_samples
        if samples > longest:
            raise ValueError(
                f"clips last {samples / self.sample_rate:g} s, but '{self.id}' takes {longest / self.sample_rate:g} "
                "s at most and would crop the rest; cut them before"
            )
        features = dict(self._extractor(list(clips), sampling_rate=self.sample_rate, return_tensors="pt"))
        # With feature fusion the extractor marks one clip of a batch, at random, as longer than the window.
        return {**features, "is_longer": torch.zeros(len(clips), 1, dtype=torch.bool)}

    def _encode(self, features: Tensors) -> Hidden:
        on_device = {name: values.to(self.device) for name, values in features.items()}
        output = self._model.get_audio_features(**on_device)
        return Hidden(output.last_hidden_state.flatten(2).mT, 0.0, embedding=output.pooler_output)
