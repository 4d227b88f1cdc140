"""Perception Encoder Audio (Vyas et al., 2025, arXiv 2512.19687)."""

from __future__ import annotations

import re
from typing import Any

import torch
from transformers import PeAudioEncoder
from transformers.models.pe_audio.modeling_pe_audio import PeAudioContrastiveHead, PeAudioPreTrainedModel

from audio_compositionality.encoders.base import FloatArray
from audio_compositionality.encoders.loading.checkpoints import Checkpoint, load_feature_extractor, load_model
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.loading.partial import PartialCheckpoint

OF_AUDIO = re.compile(r"(?:audio_model\.|audio_video_encoder\.embedder\.)?(audio_(?:encoder|head)\..*)")
"""Names of the tensors of the audio tower, in PE-A-Frame and, with either prefix, in PE-AV."""


class AudioTower(PeAudioPreTrainedModel):  # type: ignore[no-untyped-call]
    """What a PE-Audio model has for sound: the encoder, and the projection to the space shared with text."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.audio_encoder = PeAudioEncoder(config.audio_config)
        self.audio_head = PeAudioContrastiveHead(config.audio_config.hidden_size, config.text_config.hidden_size)
        self.post_init()  # type: ignore[no-untyped-call]


class PerceptionEncoder(ModelEncoder[torch.Tensor]):
    """PE-Audio at 48 kHz, 40 ms a frame, with a class token.

    The embedding is the class token, projected to the space shared with text where the checkpoint has the projection
    (`pe_audio`, and the audio tower of `pe_audio_video`, of which only the files that hold it are read); with an option
    given, `cls`, mean and max are of the encoder's own output. PE-A-Frame models have no embedding of a clip: their
    output is a projected vector a frame, of which the mean is taken.

    Layers 0 to N - 1 are the blocks' states; layer N is the model's output, after its final norm and linear layer, as
    transformers' `hidden_states` have it. The last frame is completed by reflection, as the feature extractor does.
    """

    has_cls = True
    has_embedding = True

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        extractor, config = load_feature_extractor(checkpoint), checkpoint.config
        part = checkpoint
        if config.model_type == "pe_audio_encoder":
            audio = config
        else:
            part = PartialCheckpoint.of(checkpoint, audio_name)
            both = config if config.model_type == "pe_audio" else config.audio_config
            audio = both.audio_config
        self._hop = int(audio.dac_config.hop_length)
        if extractor.hop_length != self._hop:
            raise ValueError(
                f"the feature extractor of '{checkpoint.id}' makes frames of {extractor.hop_length} samples, but the "
                f"model of {self._hop}; they do not belong together"
            )
        super().__init__(
            checkpoint.encoder_id,
            sample_rate=int(extractor.sampling_rate),
            num_layers=int(audio.num_hidden_layers),
            options=options,
            device=device,
        )
        self._extractor = extractor
        self._head: Any = None
        if isinstance(part, PartialCheckpoint):
            tower = part.load(AudioTower, both)
            self._encoder, self._head = tower.audio_encoder.to(device), tower.audio_head.to(device)
        else:
            self._encoder = load_model(part, PeAudioEncoder).to(device)
        # transformers has no other way to tell the two kinds apart.
        self._projects_frames = "PeAudioFrameLevelModel" in (config.architectures or ()) and options.layer is None
        self.has_embedding = not self._projects_frames
        is_projected = self._head is not None and options.layer is None
        if is_projected and options.pooling != "cls" and (self._projects_frames or options.pooling is None):
            self.output_dim = int(both.text_config.hidden_size)
        else:
            self.output_dim = int(audio.hidden_size)
        self.revision, self.weights_sha256 = part.revision, part.weights_sha256

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        if clips.shape[1] < self._hop:
            raise ValueError(
                f"clips of {clips.shape[1]} samples at {self.sample_rate} Hz are shorter than one frame of '{self.id}' "
                f"({self._hop} samples)"
            )
        waveforms: torch.Tensor = self._extractor(list(clips), sampling_rate=self.sample_rate, return_tensors="pt")[
            "input_values"
        ]
        return waveforms

    def _encode(self, features: torch.Tensor) -> Hidden:
        layer = self.options.layer
        output = self._encoder(features.to(self.device), **({} if layer is None else {"output_hidden_states": [layer]}))
        seconds = self._hop / self.sample_rate
        if layer is not None and layer < self.num_layers:
            hidden = output.hidden_states[layer]
            return Hidden(hidden[:, 1:], seconds, hidden[:, 0])
        frames, token = output.last_hidden_state, output.pooler_output
        if self._head is None or layer is not None:
            return Hidden(frames, seconds, token, token)
        if self._projects_frames:
            return Hidden(self._head(frames), seconds, token)
        return Hidden(frames, seconds, token, self._head(token))


def audio_name(stored: str) -> str | None:
    """Name in `AudioTower` of a stored tensor, None for one of another modality."""
    found = OF_AUDIO.fullmatch(stored)
    return found and found[1]
