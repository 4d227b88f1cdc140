"""The towers of a CLAP in transformers' format."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from audio_compositionality.support.text import nearest

from ..errors import TrainingError
from ..features import ClapFrontEnd, FrontEnd
from ..model import MAX_SCALE, TowersFamily, TwoTowers
from ..settings import TINY_CLAP, TRAINED
from ..texts import Tokeniser
from ..tokens import Tokens

if TYPE_CHECKING:
    from transformers import ClapFeatureExtractor, ClapModel

    from audio_compositionality.encoders.loading.checkpoints import Checkpoint
    from audio_compositionality.encoders.protocols import AudioTextEncoder

PROJECTIONS = ("audio_projection.", "text_projection.")
SCALE, TEXT_SCALE = "logit_scale_a", "logit_scale_t"
"""A CLAP of transformers has two scales. Here one is learnt, and both are stored with its value."""


class ClapTowers(TwoTowers):
    """The towers of a CLAP in transformers' format (Wu et al., 2023, arXiv 2211.06687)."""

    extractor: ClapFeatureExtractor

    def __init__(self, model: ClapModel, extractor: ClapFeatureExtractor, tokenizer: Any, *, fresh: bool) -> None:
        """Take a model; all of its weights but the second scale are trained until `choose` says otherwise.

        Args:
            model: with its weights.
            extractor: its front end.
            tokenizer: its tokenizer.
            fresh: whether nothing has been learnt yet.
        """
        super().__init__()
        self.model = model
        self.extractor = extractor
        self.tokenizer = tokenizer
        text: Any = model.config.text_config
        # Positions are counted from behind that of padding.
        self.tokeniser = Tokeniser(tokenizer, int(text.max_position_embeddings - text.pad_token_id - 1))
        self._fresh = fresh
        self.choose("all")

    @property
    def needs_norm(self) -> bool:
        """Whether the weights are fresh: the mean and the variance of its bands are then 0 and 1."""
        return self._fresh

    def choose(self, trained: str) -> None:
        """Set which weights are trained.

        Args:
            trained: one of `TRAINED`.

        Raises:
            TrainingError: it is none.
        """
        prefixes = self._prefixes(trained)
        for name, weight in self.model.named_parameters():
            weight.requires_grad_(name.startswith(prefixes) and name != TEXT_SCALE)
        self.train(mode=False)

    def _prefixes(self, trained: str) -> tuple[str, ...]:
        if trained not in TRAINED:
            raise TrainingError(f"train is {trained!r}; {nearest(trained, TRAINED)}")
        if trained == "all":
            return ("",)
        heads = (*PROJECTIONS, SCALE)
        if trained == "projection":
            return heads
        config: Any = self.model.config
        audio, text = config.audio_config, config.text_config
        return (
            *heads,
            f"audio_model.audio_encoder.layers.{len(audio.depths) - 1}.",
            "audio_model.audio_encoder.norm.",
            f"text_model.encoder.layer.{text.num_hidden_layers - 1}.",
            "text_model.pooler.",
        )

    def embed_audio(self, features: Tensor) -> Tensor:
        """Embed clips: [B, D], of their log-mel spectrograms [B, 1, frames, bands] in decibels."""
        is_longer = torch.zeros(len(features), 1, dtype=torch.bool)
        output = self.model.get_audio_features(features.float(), is_longer=is_longer)
        return nn.functional.normalize(output.pooler_output.float(), dim=-1)

    def embed_text(self, tokens: Tokens) -> Tensor:
        """Embed texts: [M, D]."""
        output = self.model.get_text_features(input_ids=tokens.ids, attention_mask=tokens.mask.long())
        return nn.functional.normalize(output.pooler_output.float(), dim=-1)

    def scale(self) -> Tensor:
        """What cosines are multiplied by; the exponential of one weight."""
        weight: Tensor = self.model.logit_scale_a
        return weight.exp()

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Bring the scale back to `MAX_SCALE`, and give the second one its value."""
        self.model.logit_scale_a.clamp_(max=float(torch.tensor(MAX_SCALE).log()))
        self.model.logit_scale_t.copy_(self.model.logit_scale_a)

    @torch.no_grad()
    def measure_norm(self, features: Iterable[Tensor]) -> None:
        """Set the running mean and variance of the bands to those of some clips, over clips and frames.

        Args:
            features: batches [n, 1, frames, bands].

        Raises:
            TrainingError: there are no clips.
        """
        norm = self.model.audio_model.audio_encoder.batch_norm
        count, total, squares = 0, torch.zeros(0), torch.zeros(0)
        for batch in features:
            frames = batch.double().flatten(0, -2).cpu()
            count += len(frames)
            total = frames.sum(dim=0) + (total if len(total) else 0)
            squares = frames.square().sum(dim=0) + (squares if len(squares) else 0)
        if not count:
            raise TrainingError("there are no clips to measure the norm of fresh weights on")
        mean = total / count
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.copy_(mean)
        norm.running_var.copy_((squares / count - mean.square()).clamp(min=1e-6))

    def open_front_end(self) -> FrontEnd:
        """The log-mel spectrogram, as evaluation computes it."""
        return ClapFrontEnd(self.extractor, "training")

    def save(self, folder: Path) -> None:
        """Write a folder that `ClapModel.from_pretrained` and `load_model` open, with front end and tokenizer."""
        from audio_compositionality.encoders.loading.checkpoints import quiet

        folder.mkdir(parents=True, exist_ok=True)
        with quiet(folder):
            for part in (self.model, self.extractor, self.tokenizer):
                part.save_pretrained(folder)

    def open_encoder(self) -> AudioTextEncoder:
        """The model as it is now, as an encoder."""
        from audio_compositionality.encoders.families.clap import ClapEncoder
        from audio_compositionality.encoders.loading.built import BuiltCheckpoint
        from audio_compositionality.encoders.options import DEFAULT_OPTIONS

        checkpoint = BuiltCheckpoint.of_model(
            self.model,
            self.extractor,
            self.tokenizer,
            name="training",
            revision="now",
            paradigm="audio–text contrastive",
            licence=None,
        )
        return ClapEncoder(checkpoint, self.device, DEFAULT_OPTIONS)


def fresh_clap_towers(seed: int = 0) -> ClapTowers:
    """Towers of the tiny CLAP with fresh weights of a seed, on the CPU."""
    from audio_compositionality.encoders.networks.tiny_clap import tiny_clap, tiny_extractor, tiny_tokenizer

    return ClapTowers(tiny_clap(seed), tiny_extractor(), tiny_tokenizer(), fresh=True)


def open_clap_towers(checkpoint: Checkpoint, fresh: bool) -> ClapTowers:
    """Towers of a checkpoint, on the CPU.

    Args:
        checkpoint: of a CLAP.
        fresh: whether its weights are fresh.

    Raises:
        ModelError: its files cannot be had or are incomplete.
    """
    from transformers import ClapFeatureExtractor, ClapModel

    from audio_compositionality.encoders.families.clap import COMPUTED
    from audio_compositionality.encoders.loading.partial import PartialCheckpoint

    def stored_name(stored: str) -> str | None:
        return None if stored.endswith(COMPUTED) else stored

    part = PartialCheckpoint.of(checkpoint, stored_name)
    model = part.load_part(ClapModel, checkpoint.config, COMPUTED)
    extractor = checkpoint.load_feature_extractor(ClapFeatureExtractor)
    tokenizer = checkpoint.load_tokenizer(int(checkpoint.config.text_config.vocab_size))
    return ClapTowers(model, extractor, tokenizer, fresh=fresh)


TOWERS = TowersFamily("clap", TINY_CLAP, fresh_clap_towers, open_clap_towers)
