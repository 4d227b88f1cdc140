"""Models that embed text: text towers of audio encoders, loaded with the first text, and sentence encoders."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .base import Features, FloatArray, Model, ModelError, check_text_embeddings, check_texts, quoted
from .inference import inference
from .model_encoder import LayeredEncoder

if TYPE_CHECKING:
    import torch


TEXTS_PER_PASS = 64
"""Number of texts that a tower embeds at once."""


@dataclass(frozen=True)
class TextTower:
    """A tokenizer and its network.

    Attributes:
        tokenizer: tokenizer of transformers.
        encode: returns embeddings [n, output_dim] of tokens, int64 [n, tokens].
        max_tokens: maximum number of tokens of a text.
        suffix: appended to each text.
    """

    tokenizer: Any
    encode: Callable[[torch.Tensor], torch.Tensor]
    max_tokens: int
    suffix: str = ""


def tokens_of(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """Return the token ids of each text, with special tokens, without padding or truncation."""
    encoded = tokenizer(
        list(texts),
        add_special_tokens=True,
        padding=False,
        truncation=False,
        return_attention_mask=False,
        # The encoder refuses texts that are too long.
        verbose=False,
    )
    return [list(numbers) for numbers in encoded["input_ids"]]


def longest_text(tokenizer: Any, positions: int) -> int:
    """Return the maximum number of tokens of a text: the tokenizer's limit, but at most the network's positions."""
    return min(int(tokenizer.model_max_length), positions)


class TextedTower(Model, ABC):
    """A model that embeds texts by a text tower; a subclass loads it in `_load_text_tower`.

    Texts with equal numbers of tokens are embedded together and none is padded, so that a text's embedding does not
    depend on its batch.
    """

    _text_tower: TextTower | None = None

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """Embed texts into the space of the clips: float32 [n, output_dim]; a row depends on its own text only.

        Args:
            texts: texts in full; none is truncated.

        Raises:
            InputError: it is not a list of texts.
            ModelError: a layer or a pooling is requested, whose space has no texts; the tokenizer or the weights cannot
                be downloaded; or a text has more tokens than the model takes, with both numbers.
        """
        options = self.card.options
        if options.layer is not None or options.pooling is not None:
            raise ModelError(
                f"'{self.card.id}' embeds no text: texts share the space of the model's own output only; leave out "
                "layer and pooling"
            )
        import torch

        listed = check_texts(texts)
        if self._text_tower is None:
            self._text_tower = self._load_text_tower()
        tower = self._text_tower
        tokens = tokens_of(tower.tokenizer, [text + tower.suffix for text in listed])
        for text, numbers in zip(listed, tokens, strict=True):
            if not 0 < len(numbers) <= tower.max_tokens:
                raise ModelError(
                    f"the text {quoted(text)} has {len(numbers)} tokens, but '{self.card.id}' takes 1 to "
                    f"{tower.max_tokens}"
                )
        rows_by_length: dict[int, list[int]] = {}
        for row, numbers in enumerate(tokens):
            rows_by_length.setdefault(len(numbers), []).append(row)
        embeddings: list[FloatArray] = [np.empty(0, np.float32)] * len(listed)
        for _, same in sorted(rows_by_length.items()):
            for start in range(0, len(same), TEXTS_PER_PASS):
                rows = same[start : start + TEXTS_PER_PASS]
                batch = torch.tensor([tokens[row] for row in rows], device=self.device)
                with inference(self.device, self.card.options.precision):
                    values = tower.encode(batch).float().cpu().numpy()
                for row, value in zip(rows, values, strict=True):
                    embeddings[row] = value
        return check_text_embeddings(np.stack(embeddings), self, listed)

    @abstractmethod
    def _load_text_tower(self) -> TextTower:
        """Load the text tower on the device of the encoder."""


class TextedEncoder(TextedTower, LayeredEncoder[Features]):
    """An encoder with a text tower; a subclass loads it in `_load_text_tower`.

    The tokenizer and the weights of the tower are read with the first text; to embed sound, they are not needed.
    `card.parameters` counts the audio tower.
    """


Floats = NDArray[np.float64]

BATCH = 32
"""Number of sentences embedded at once."""

LONGEST = 512
"""Maximum number of tokens of a sentence; fewer if the encoder has fewer positions."""


class SentenceEncoder:
    """An encoder of sentences in transformers' format, in float32 and evaluation mode."""

    def __init__(self, source: str, device: str = "cpu") -> None:
        """Load the encoder.

        Args:
            source: a folder that holds config.json, safetensors weights and a tokenizer, or a Hub id, such as
                ``sentence-transformers/all-MiniLM-L6-v2``. Code that comes with a model is not run.
            device: torch device.

        Raises:
            ModelError: there is no such encoder, or it cannot be read.
        """
        from transformers import AutoModel

        from .loading.checkpoints import open_checkpoint

        checkpoint = open_checkpoint(Path(source) if Path(source).is_dir() else source)
        self.revision = checkpoint.revision
        self._tokenizer = checkpoint.load_tokenizer(checkpoint.config.vocab_size)
        self._model = checkpoint.load_model(AutoModel).to(device)
        self._longest = min(getattr(checkpoint.config, "max_position_embeddings", LONGEST), LONGEST)
        self._device = device

    def __call__(self, sentences: Sequence[str]) -> Floats:
        """Embed n sentences: [n, dimensions], the mean over tokens without padding, of length 1."""
        import torch

        vectors = []
        for start in range(0, len(sentences), BATCH):
            tokens = self._tokenizer(
                list(sentences[start : start + BATCH]),
                padding=True,
                truncation=True,
                max_length=self._longest,
                return_tensors="pt",
            ).to(self._device)
            with torch.inference_mode():
                states = self._model(**tokens).last_hidden_state
                weights = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
                means = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
                vectors.append(torch.nn.functional.normalize(means, dim=1).cpu().numpy().astype(np.float64))
        return np.concatenate(vectors)
