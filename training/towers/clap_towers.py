"""The towers of a CLAP in transformers' format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from audio_compositionality.support.text import nearest

from ..batches import Tokens
from ..model import TowersFamily, TwoTowers
from ..settings import TINY_CLAP, TRAINED, TrainingError

if TYPE_CHECKING:
    from transformers import ClapFeatureExtractor, ClapModel

    from audio_compositionality.encoders.base import Model
    from audio_compositionality.encoders.loading.checkpoints import Checkpoint


PROJECTIONS = ("audio_projection.", "text_projection.")
SCALE, TEXT_SCALE = "logit_scale_a", "logit_scale_t"
"""The second scale of a CLAP of transformers. Only the first is trained, and both are stored with its value."""


class ClapTowers(TwoTowers):
    """The towers of a CLAP in transformers' format (Wu et al., 2023, arXiv 2211.06687)."""

    SCALE = SCALE

    def __init__(self, model: ClapModel, extractor: ClapFeatureExtractor, tokenizer: Any, *, fresh: bool) -> None:
        """Set the model; all of its weights but the second scale are trained unless `choose` is called.

        Args:
            model, extractor, tokenizer, fresh: see `TwoTowers`.
        """
        text: Any = model.config.text_config
        # Positions are counted from after the position of padding.
        positions = int(text.max_position_embeddings - text.pad_token_id - 1)
        super().__init__(model, tokenizer, positions, extractor=extractor, fresh=fresh)
        self.choose("all")

    def choose(self, trained: str) -> None:
        """Set which weights are trained.

        Args:
            trained: one of `TRAINED`.

        Raises:
            TrainingError: it is none of them.
        """
        if trained not in TRAINED:
            raise TrainingError(f"train is {trained!r}; {nearest(trained, TRAINED)}")
        prefixes: tuple[str, ...] = (*PROJECTIONS, SCALE)
        if trained == "all":
            prefixes = ("",)
        elif trained != "projection":
            config: Any = self.model.config
            audio, text = config.audio_config, config.text_config
            prefixes = (
                *prefixes,
                f"audio_model.audio_encoder.layers.{len(audio.depths) - 1}.",
                "audio_model.audio_encoder.norm.",
                f"text_model.encoder.layer.{text.num_hidden_layers - 1}.",
                "text_model.pooler.",
            )
        for name, weight in self.model.named_parameters():
            weight.requires_grad_(name.startswith(prefixes) and name != TEXT_SCALE)
        self.train(mode=False)

    def embed_audio(self, features: Tensor) -> Tensor:
        """Embed clips: [B, D], from their log-mel spectrograms [B, 1, frames, bands] in decibels."""
        is_longer = torch.zeros(len(features), 1, dtype=torch.bool)
        output = self.model.get_audio_features(features.float(), is_longer=is_longer)
        return nn.functional.normalize(output.pooler_output.float(), dim=-1)

    def embed_text(self, tokens: Tokens) -> Tensor:
        """Embed texts: [M, D]."""
        output = self.model.get_text_features(input_ids=tokens.ids, attention_mask=tokens.mask.long())
        return nn.functional.normalize(output.pooler_output.float(), dim=-1)

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Reduce the scale to `MAX_SCALE` if it is above, and copy it to the second one."""
        super().limit_scale()
        self.model.logit_scale_t.copy_(self.model.logit_scale_a)

    @torch.no_grad()
    def _measure(self, features: Tensor) -> None:
        """Set the running mean and variance of the bands, over clips and frames."""
        norm = self.model.audio_model.audio_encoder.batch_norm
        frames = features.double().flatten(0, -2)
        norm.running_mean.copy_(frames.mean(dim=0))
        norm.running_var.copy_(frames.var(dim=0, correction=0).clamp(min=1e-6))

    def open_encoder(self) -> Model:
        """See `TwoTowers`."""
        from audio_compositionality.encoders.families.clap import ClapEncoder
        from audio_compositionality.encoders.options import DEFAULT_OPTIONS

        return ClapEncoder(self.checkpoint(), self.device, DEFAULT_OPTIONS)


def fresh_clap_towers(seed: int = 0) -> ClapTowers:
    """Return the towers of the tiny CLAP with fresh weights of a seed, on the CPU."""
    from audio_compositionality.encoders.networks.small_networks import tiny_clap, tiny_extractor, tiny_tokenizer

    return ClapTowers(tiny_clap(seed), tiny_extractor(), tiny_tokenizer(), fresh=True)


def open_clap_towers(checkpoint: Checkpoint, fresh: bool) -> ClapTowers:
    """Return the towers of a checkpoint, on the CPU.

    Args:
        checkpoint: checkpoint of a CLAP.
        fresh: whether its weights are fresh.

    Raises:
        ModelError: its files cannot be downloaded or are incomplete.
    """
    from transformers import ClapFeatureExtractor, ClapModel

    from audio_compositionality.encoders.families.clap import COMPUTED

    def stored_name(stored: str) -> str | None:
        return None if stored.endswith(COMPUTED) else stored

    part = checkpoint.part(stored_name)
    model = part.load_part(ClapModel, checkpoint.config, COMPUTED)
    extractor = checkpoint.load_feature_extractor(ClapFeatureExtractor)
    tokenizer = checkpoint.load_tokenizer(int(checkpoint.config.text_config.vocab_size))
    return ClapTowers(model, extractor, tokenizer, fresh=fresh)


TOWERS = TowersFamily("clap", TINY_CLAP, fresh_clap_towers, open_clap_towers)
