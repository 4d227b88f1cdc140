"""Perception Encoder Audio (Vyas et al., 2025, arXiv 2512.19687)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base import FloatArray, ModelError
from ..model_encoder import Hidden, LayeredEncoder
from ..options import EncoderOptions
from ..text_towers import TextedEncoder, TextTower, longest_text

if TYPE_CHECKING:
    import torch

    from ..loading.checkpoints import Checkpoint

OF_AUDIO = re.compile(r"(?:audio_model\.|audio_video_encoder\.embedder\.)?(audio_(?:encoder|head)\..*)")
"""Names of the tensors of the audio tower, in PE-A-Frame and, with either prefix, in PE-AV."""

OF_TEXT = re.compile(r"(?:audio_model\.)?(text_audio_head\..*)|(?:audio_model\.|video_model\.)?(text_model\..*)")
"""Names of the text tower's tensors. The parts of PE-AV share its network, so they may store it under any name."""


class PerceptionEncoder(LayeredEncoder["torch.Tensor"]):
    """PE-Audio at 48 kHz, 40 ms a frame, with a class token.

    The embedding is the class token, projected to the space shared with text if the checkpoint has the projection
    (`pe_audio`, and the audio tower of `pe_audio_video`, whose other files are not read). If an option is given, `cls`,
    mean and max use the encoder's own output. PE-A-Frame models have no embedding of a clip: their
    output is one projected vector per frame, which is averaged.

    Layers 0 to N - 1 are the blocks' states; layer N is the model's output, after its final norm and linear layer, as
    in transformers' `hidden_states`. The last frame is completed by reflection, as the feature extractor does.
    """

    has_cls = True
    has_embedding = True

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        from transformers import PeAudioEncoder

        from ..networks.pe_audio import PeAudioTower

        extractor, config = checkpoint.load_feature_extractor(), checkpoint.config
        is_tower = config.model_type == "pe_audio_encoder"
        both = config.audio_config if config.model_type == "pe_audio_video" else config
        audio = config if is_tower else both.audio_config
        self._hop = int(audio.dac_config.hop_length)
        if extractor.hop_length != self._hop:
            raise ModelError(
                f"the feature extractor of '{checkpoint.name}' makes frames of {extractor.hop_length} samples, but the "
                f"model of {self._hop}; they do not match"
            )
        num_layers = int(audio.num_hidden_layers)
        self.check_options(checkpoint.id, options, num_layers)
        self._extractor = extractor
        self._checkpoint, self._projected_config = checkpoint, both
        self._head: Any = None
        if is_tower:
            self._encoder = checkpoint.load_model(PeAudioEncoder).to(device)
        else:
            part = checkpoint.part(pe_audio_name, pe_text_name)
            checkpoint, tower = part, part.load_part(PeAudioTower, both)
            self._encoder, self._head = tower.audio_encoder.to(device), tower.audio_head.to(device)
        # transformers has no other way to distinguish the two.
        self._projects_frames = "PeAudioFrameLevelModel" in (config.architectures or ())
        self.has_embedding = not self._projects_frames
        self._layer_dim = int(audio.hidden_size)
        is_projected = self._head is not None and options.layer is None
        if is_projected and options.pooling != "cls" and (self._projects_frames or options.pooling is None):
            dim = int(both.text_config.hidden_size)
        else:
            dim = self._layer_dim
        card = checkpoint.card(
            sample_rate=int(extractor.sampling_rate),
            output_dim=dim,
            options=options,
            modules=[module for module in (self._encoder, self._head) if module is not None],
        )
        super().__init__(card, num_layers=num_layers, device=device)

    def _extract_features(self, clips: FloatArray) -> torch.Tensor:
        self._refuse_short(clips.shape[1], self._hop)
        inputs = self._extractor(list(clips), sampling_rate=self.card.sample_rate, return_tensors="pt")
        waveforms: torch.Tensor = inputs["input_values"]
        return waveforms

    def _dim_at(self, layer: int) -> int:
        return self._layer_dim

    def _encode_at(self, features: torch.Tensor, layers: Sequence[int | None]) -> list[Hidden]:
        numbers = [layer for layer in layers if layer is not None]
        output = self._encoder(features.to(self.device), **({"output_hidden_states": numbers} if numbers else {}))
        seconds, states = self._hop / self.card.sample_rate, []
        for layer in layers:
            frames, token = output.last_hidden_state, output.pooler_output
            if layer is not None and layer < self.num_layers:
                hidden = output.hidden_states[layer]
                states.append(Hidden(hidden[:, 1:], seconds, hidden[:, 0]))
            elif self._head is None or layer is not None:
                states.append(Hidden(frames, seconds, token, token))
            elif self._projects_frames:
                states.append(Hidden(self._head(frames), seconds, token))
            else:
                states.append(Hidden(frames, seconds, token, self._head(token)))
        return states


class PerceptionTextEncoder(PerceptionEncoder, TextedEncoder["torch.Tensor"]):
    """PE-Audio with its text tower, ModernBERT, whose first token is projected to the space shared with sound.

    This is the embedding that `PeAudioModel` compares with sound, `text_audio_embeds` of its output. (Its method
    `get_text_audio_embeds` raises an error in transformers 5.23, which does not request hidden states.)
    """

    def _load_text_tower(self) -> TextTower:
        from ..networks.pe_audio import PeTextTower

        config = self._projected_config
        tokenizer = self._checkpoint.load_tokenizer(int(config.text_config.vocab_size))
        network = self._checkpoint.part(pe_text_name).load_part(PeTextTower, config).to(self.device)
        positions = int(config.text_config.max_position_embeddings)
        return TextTower(tokenizer, network, longest_text(tokenizer, positions))


def pe_text_name(stored: str) -> str | None:
    """Map the name of a stored tensor to `networks.pe_audio.PeTextTower`, None for a tensor of another part."""
    match = OF_TEXT.fullmatch(stored)
    return match and (match[1] or match[2])


def pe_audio_name(stored: str) -> str | None:
    """Map the name of a stored tensor to `PeAudioTower`, None for a tensor of another modality."""
    match = OF_AUDIO.fullmatch(stored)
    return match and match[1]


ARCHITECTURES = {
    "pe_audio": PerceptionTextEncoder,
    "pe_audio_encoder": PerceptionEncoder,
    "pe_audio_video": PerceptionTextEncoder,
}
