"""Encoders of sound that also embed text: the text tower, which is loaded when the first text comes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .base import Features, FloatArray, Model, ModelError
from .inference import inference
from .layers import LayeredEncoder
from .texts import check_text_embeddings, check_texts, quoted

if TYPE_CHECKING:
    import torch

TEXTS_PER_PASS = 64
"""Texts that a tower embeds at once."""


@dataclass(frozen=True)
class TextTower:
    """A tokenizer and the network behind it.

    Attributes:
        tokenise: the numbers of the tokens of each of some texts, special tokens among them, nothing padded or cut.
        encode: embeddings [n, output_dim] of tokens, int64 [n, tokens].
        max_tokens: more tokens than this a text must not have.
    """

    tokenise: Callable[[list[str]], list[list[int]]]
    encode: Callable[[torch.Tensor], torch.Tensor]
    max_tokens: int


class TextedTower(Model, ABC):
    """What embeds texts, with a text tower; a subclass loads it in `_load_text_tower`.

    Texts of as many tokens are embedded together and none is padded, so that a text's embedding does not depend on the
    texts beside it.
    """

    _text_tower: TextTower | None = None

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """Embed texts into the space of the clips: float32 [n, output_dim]; a row depends on its own text only.

        Args:
            texts: whole; a text is never cut.

        Raises:
            InputError: on what is no list of texts.
            ModelError: a layer or a pooling is asked for, whose space has no texts; the tokenizer or the weights cannot
                be had; or a text has more tokens than the model takes, which names both numbers.
        """
        options = self.card.options
        if options.layer is not None or options.pooling is not None:
            raise ModelError(
                f"'{self.card.id}' embeds no text: texts are in the space of the model's own output, so only without "
                "layer and pooling"
            )
        listed = check_texts(texts)
        if self._text_tower is None:
            self._text_tower = self._load_text_tower()
        return check_text_embeddings(self._run_text(self._text_tower, listed), self, listed)

    @abstractmethod
    def _load_text_tower(self) -> TextTower:
        """The text tower, on the device of the encoder."""

    def _run_text(self, tower: TextTower, texts: list[str]) -> FloatArray:
        import torch

        tokens = tower.tokenise(texts)
        for text, numbers in zip(texts, tokens, strict=True):
            if not 0 < len(numbers) <= tower.max_tokens:
                raise ModelError(
                    f"the text {quoted(text)} has {len(numbers)} tokens, but '{self.card.id}' takes 1 to "
                    f"{tower.max_tokens}"
                )
        embeddings: FloatArray | None = None
        for rows in _of_one_length(tokens):
            batch = torch.tensor([tokens[row] for row in rows], device=self.device)
            with inference(self.device, self.card.options.precision):
                values = tower.encode(batch).float().cpu().numpy()
            if embeddings is None:
                embeddings = np.empty((len(texts), values.shape[1]), np.float32)
            embeddings[rows] = values
        assert embeddings is not None
        return embeddings


class TextedEncoder(TextedTower, LayeredEncoder[Features]):
    """An encoder with a text tower; a subclass loads it in `_load_text_tower`.

    Whoever embeds sound alone needs neither tokenizer nor weights of the tower: they are read with the first text.
    `card.parameters` counts the audio tower.
    """


def _of_one_length(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of texts that have as many tokens, no more than `TEXTS_PER_PASS` at a time."""
    lengths = [len(numbers) for numbers in tokens]
    for length in sorted(set(lengths)):
        places = [place for place, one in enumerate(lengths) if one == length]
        for start in range(0, len(places), TEXTS_PER_PASS):
            yield places[start : start + TEXTS_PER_PASS]
