"""Any audio encoder aligned with text: its embeddings stay as they are, a linear map and a small text tower are learnt.

How much order and binding can be read from an embedding? What the map cannot find, the embedding has not, or not in a
form that is linear. A control is built in: statistics of a log-mel spectrogram over time cannot hold order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from audio_compositionality.encoders.families.aligned import AlignedEncoder, FrozenEncoder
from audio_compositionality.encoders.networks.aligned import AlignedConfig, AlignedModel, fresh_aligned
from audio_compositionality.encoders.networks.tiny_clap import tiny_tokenizer
from audio_compositionality.encoders.options import DEFAULT_OPTIONS, EncoderOptions
from audio_compositionality.encoders.protocols import ModelCard
from audio_compositionality.evaluator.run.embed import embed_configuration
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.store import store_root

from .batches import ArrayFeatures
from .data import TrainingData
from .errors import TrainingError
from .model import MAX_SCALE, TwoTowers
from .texts import Tokeniser
from .tokens import Tokens


class AlignedTowers(TwoTowers):
    """A linear map of frozen embeddings, and a text tower.

    Attributes:
        frozen: the encoder.
        network: what is trained.
    """

    def __init__(self, frozen: FrozenEncoder, network: AlignedModel, tokenizer: Any) -> None:
        """Take the parts; all weights of the network are trained."""
        super().__init__()
        self.frozen, self.network, self.tokenizer = frozen, network, tokenizer
        self.tokeniser = Tokeniser(tokenizer, network.config.max_tokens)
        self.train(mode=False)

    @property
    def needs_norm(self) -> bool:
        """Always: no embeddings have been measured where nothing was trained."""
        return True

    @property
    def embedding_dim(self) -> int:
        """D."""
        return int(self.network.config.projection_dim)

    def embed_audio(self, features: Tensor) -> Tensor:
        """Embed clips: [B, D], of the frozen embeddings [B, dim]."""
        return self.network.embed_audio(features)

    def embed_text(self, tokens: Tokens) -> Tensor:
        """Embed texts: [M, D]."""
        return self.network.embed_text(tokens.ids, tokens.mask)

    def scale(self) -> Tensor:
        """What cosines are multiplied by; the exponential of one weight."""
        return self.network.logit_scale.exp()

    @torch.no_grad()
    def limit_scale(self) -> None:
        """Bring the scale back to `MAX_SCALE`."""
        self.network.logit_scale.clamp_(max=float(torch.tensor(MAX_SCALE).log()))

    def measure_norm(self, features: Iterable[Tensor]) -> None:
        """Measure mean and deviation of each dimension of the embeddings on some clips.

        Raises:
            TrainingError: there are none.
        """
        batches = list(features)
        if not batches:
            raise TrainingError("there are no clips to measure the embeddings on")
        self.network.measure(torch.cat(batches).cpu())

    def save(self, folder: Path) -> None:
        """Write a folder that `load_model` opens; it names the encoder, whose weights are not in it."""
        from audio_compositionality.encoders.loading.checkpoints import quiet

        folder.mkdir(parents=True, exist_ok=True)
        with quiet(folder):
            self.network.save_pretrained(folder)
            self.tokenizer.save_pretrained(folder)

    def open_encoder(self) -> AlignedEncoder:
        """The model as it is now, with copies of the weights."""
        network = AlignedModel(self.network.config)
        network.load_state_dict(self.network.state_dict())
        network.requires_grad_(requires_grad=False)
        network.train(mode=False)
        of_frozen = self.frozen.model.card
        card = ModelCard("training", "now", of_frozen.sample_rate, self.embedding_dim, paradigm=self.frozen.described)
        torch.nn.Module.to(network, self.device)
        return AlignedEncoder.of_parts(card, self.frozen, network, self.tokenizer, str(self.device))


def open_aligned(
    encoder: str,
    *,
    seed: int = 0,
    options: EncoderOptions = DEFAULT_OPTIONS,
    device: str | torch.device | None = None,
    train: str = "all",
) -> AlignedTowers:
    """What an alignment begins with; the map and the text tower are on the CPU.

    Args:
        encoder: name of any encoder of sound, as `load_model` takes it; `untrained:NAME` is its untrained twin.
        seed: of the fresh weights, and of those of a twin.
        options: layer and pooling of the encoder.
        device: torch device of the encoder.
        train: which weights are trained: all, nothing else is there.

    Raises:
        TrainingError: other weights than all are asked for.
        ModelError: there is no such encoder, or it embeds no sound.
    """
    if train != "all":
        raise TrainingError(f"train is {train!r}; what is aligned has a map and a text tower, which are both trained")
    folder = Path(encoder).expanduser()
    # The folder that is written is opened from anywhere.
    name = str(folder.resolve()) if encoder and folder.is_dir() else encoder
    frozen = FrozenEncoder.load(name, seed=seed, options=options, device=device)
    tokenizer = tiny_tokenizer()
    config = AlignedConfig(
        vocab_size=len(tokenizer),
        encoder=name,
        encoder_revision=frozen.revision,
        encoder_seed=seed,
        layer=options.layer,
        pooling=options.pooling,
        input_dim=frozen.dim,
    )
    return AlignedTowers(frozen, fresh_aligned(config, seed), tokenizer)


def frozen_features(towers: AlignedTowers, data: TrainingData, *, progress: bool = False) -> ArrayFeatures:
    """The embeddings of all clips, through the store of embeddings of evaluation: each is computed once.

    Raises:
        AudioCompositionalityError: a clip cannot be read or embedded.
    """
    options = replace(RunOptions(progress=progress), store=store_root())
    store = embed_configuration(towers.frozen.model, data.configuration, options)
    return ArrayFeatures(store.load().embeddings)
