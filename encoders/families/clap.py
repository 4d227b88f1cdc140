"""CLAP in transformers' format (Wu et al., 2023, arXiv 2211.06687), whose audio encoder is HTSAT.

`tiny-clap` is a small one with fresh weights, which needs no download.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base import FloatArray, Model, ModelError, check_sample_rate, check_waveforms
from ..inference import double_precision_device, resolve_device
from ..loading.listing import ModelListing
from ..model_encoder import Hidden, with_states
from ..options import DEFAULT_OPTIONS, EncoderOptions
from ..text_towers import TextedEncoder, TextTower, longest_text

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike

    from ..loading.checkpoints import Checkpoint


PARTS = ("audio_model.", "audio_projection.")
"""Weights of a CLAP checkpoint that embed sound."""

TEXT_PARTS = ("text_model.", "text_projection.")
"""Weights of a CLAP checkpoint that embed text."""

COMPUTED = ("position_ids", "token_type_ids")
"""Buffers of the text tower that are computed from the configuration; not every checkpoint has them."""


@dataclass(frozen=True)
class ClapFeatures:
    """Input of a CLAP encoder.

    Attributes:
        log_mel: float32 [n · windows, frames of the window, mels], in decibels.
        samples: length of the clips before they were padded to the window; at most the window's length.
        windows: number of windows per clip.
    """

    log_mel: torch.Tensor
    samples: int
    windows: int


class ClapEncoder(TextedEncoder[ClapFeatures]):
    """CLAP: the projected embedding of sound or of text, of unit length.

    The window is 10 s. CLAP repeats a shorter clip, as in training, and would crop a longer one at random. Here, the
    embedding of a longer clip is the mean over the smallest number of windows that cover it, evenly spaced, again of
    unit length; its layers, frames and poolings are refused. Layers are HTSAT's stages; all but the last halve the
    number of frames and double their dimension. Frames cover the clip itself, without its repetitions.

    Texts are embedded as `ClapModel.get_text_features` does, with the tokenizer in the checkpoint.
    """

    has_embedding = True

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        from transformers import ClapAudioModelWithProjection, ClapFeatureExtractor

        from ..front_ends.clap import ClapLogMel
        from ..networks.htsat import layer_dims, segments_of_image

        extractor, config = checkpoint.load_feature_extractor(ClapFeatureExtractor), checkpoint.config
        audio = config.audio_config
        self.check_options(checkpoint.id, options, len(audio.depths))
        self._front_end_device = double_precision_device(device)
        self._log_mel = ClapLogMel(extractor, checkpoint.name).to(self._front_end_device)
        self._segments, self._dims = segments_of_image(audio), layer_dims(audio)
        longest = audio.spec_size * self._segments
        if extractor.feature_size != audio.num_mel_bins or self._log_mel.frames > longest:
            raise ModelError(
                f"the feature extractor of '{checkpoint.name}' makes {self._log_mel.frames} frames of "
                f"{extractor.feature_size} mel bands, but the model takes {longest} of {audio.num_mel_bins}"
            )
        self._checkpoint = checkpoint
        part = checkpoint.part(audio_name, text_name)
        self._model = part.load_part(ClapAudioModelWithProjection, audio).to(device)
        if options.layer is None and options.pooling is None:
            dim = int(config.projection_dim)
        else:
            dim = self._dims[-1 if options.layer is None else options.layer]
        rate = int(extractor.sampling_rate)
        card = part.card(sample_rate=rate, output_dim=dim, options=options, modules=[self._model])
        super().__init__(card, num_layers=len(audio.depths), device=device)

    def _extract_features(self, clips: FloatArray) -> ClapFeatures:
        import torch

        if self.card.options.layer is not None or self.card.options.pooling is not None:
            self._refuse_long(clips.shape[1], self._log_mel.window_samples)
        windows = windows_of(clips, self._log_mel.window_samples)
        log_mel = self._log_mel(torch.from_numpy(np.concatenate(windows)).to(self._front_end_device))
        return ClapFeatures(log_mel.to(self.device), windows.shape[2], windows.shape[1])

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[FloatArray, float]:
        """Embed frames, see `ModelEncoder.embed_frames`, of clips that are no longer than the window."""
        samples = check_waveforms(waveforms).shape[1] * self.card.sample_rate
        self._refuse_long(-(-samples // check_sample_rate(sample_rate)), self._log_mel.window_samples)
        return super().embed_frames(waveforms, sample_rate)

    def _load_text_tower(self) -> TextTower:
        import torch
        from transformers import ClapTextModelWithProjection

        config = self._checkpoint.config.text_config
        tokenizer = self._checkpoint.load_tokenizer(int(config.vocab_size))
        part = self._checkpoint.part(text_name)
        model = part.load_part(ClapTextModelWithProjection, config, COMPUTED).to(self.device)
        # Positions are counted from after the position of padding.
        positions = int(config.max_position_embeddings - config.pad_token_id - 1)

        def encode(tokens: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.normalize(model(input_ids=tokens).text_embeds.float(), dim=-1)

        return TextTower(tokenizer, encode, longest_text(tokenizer, positions))

    def _dim_at(self, layer: int) -> int:
        return self._dims[layer]

    def _encode_at(self, features: ClapFeatures, layers: Sequence[int | None]) -> list[Hidden]:
        import torch

        from ..networks.htsat import unfold_image

        log_mel, window = features.log_mel, self._log_mel.window_samples
        # No clip is longer than the window, so none takes the branch for feature fusion.
        is_longer = torch.zeros(len(log_mel), 1, dtype=torch.bool)
        output = self._model(log_mel[:, None], is_longer=is_longer, output_hidden_states=with_states(layers))
        states = []
        for layer in layers:
            if layer is None:
                frames = output.last_hidden_state.mean(dim=2).mT
                embedding = torch.nn.functional.normalize(output.audio_embeds.float(), dim=-1)
                embedding = mean_of_windows(embedding, features.windows)
            else:
                frames, embedding = unfold_image(output.hidden_states[layer], self._segments), None
            count = frames.shape[1]
            sounding = -(-count * features.samples // window)
            states.append(Hidden(frames[:, :sounding], window / self.card.sample_rate / count, embedding=embedding))
        return states


def windows_of(clips: FloatArray, longest: int) -> FloatArray:
    """Return clips [n, samples] as [n, windows, samples per window]: as few as cover the clip, evenly spaced."""
    samples = clips.shape[1]
    starts = np.linspace(0, max(samples - longest, 0), -(-samples // longest)).astype(int)
    return np.stack([clips[:, start : start + longest] for start in starts], axis=1)


def mean_of_windows(embeddings: torch.Tensor, windows: int) -> torch.Tensor:
    """Average embeddings [n · windows, dim] over the windows of each clip: [n, dim], of unit length."""
    import torch

    if windows == 1:
        return embeddings
    means = embeddings.reshape(-1, windows, embeddings.shape[1]).mean(dim=1)
    return torch.nn.functional.normalize(means, dim=-1)


def audio_name(stored: str) -> str | None:
    """Map the name of a stored tensor to the audio tower, None for a tensor of another part."""
    return stored if stored.startswith(PARTS) else None


def text_name(stored: str) -> str | None:
    """Map the name of a stored tensor to the text tower, None for a tensor of another part."""
    return stored if stored.startswith(TEXT_PARTS) and not stored.endswith(COMPUTED) else None


ARCHITECTURES = {"clap": ClapEncoder}

NAME = "tiny-clap"
PARADIGM = "untrained"
LICENCE = "Apache-2.0"


def make_tiny_clap() -> Model:
    """Return the untrained tiny CLAP on the CPU, which is fast enough; its weights are from `tiny_clap()`."""
    from ..loading.checkpoints import Checkpoint
    from ..networks.small_networks import tiny_clap, tiny_extractor, tiny_tokenizer

    built = (tiny_clap(), tiny_extractor(), tiny_tokenizer())
    checkpoint = Checkpoint(NAME, "", "v1", built[0].config, paradigm=PARADIGM, licence=LICENCE, built=built)
    return ClapEncoder(checkpoint, resolve_device("cpu"), DEFAULT_OPTIONS)


MODELS = (
    ModelListing(
        "laion-clap",
        512,
        48_000,
        "audio–text contrastive",
        "Apache-2.0",
        "LAION CLAP without fusion (630k-audioset-best), projected to the space of text (10-s window)",
        "laion/clap-htsat-unfused",
        embeds_text=True,
        # arXiv 2211.06687, section 2.2; for the choice of checkpoint see LAION-AI/CLAP, issues 123 and 142.
        trained_on="LAION-Audio-630K, AudioCaps, Clotho, AudioSet with captions made of its labels",
    ),
    ModelListing(
        NAME,
        128,
        16_000,
        PARADIGM,
        LICENCE,
        "CLAP with 0.9 M random weights of a fixed seed and a tokenizer of words; untrained, without downloads",
        make=make_tiny_clap,
        embeds_text=True,
    ),
)
