"""Tokenizers: from the files beside a checkpoint, or of a published language model whose vocabulary a model uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audio_compositionality.support.text import first_line

from ..base import ModelError
from .downloads import download_from_hub

VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "sentencepiece.bpe.model", "spiece.model")
"""Files of which a tokenizer has one. Without any, transformers makes one that knows no words, and says nothing."""

TOKENIZER_FILES = (
    *VOCABULARIES,
    "merges.txt",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
"""What decides which tokens a text has."""


@dataclass(frozen=True)
class PublishedTokenizer:
    """The tokenizer of a published language model, for a model whose file of weights holds none.

    Attributes:
        repository: of the Hub that has it.
        class_name: of transformers.
        probe: a text.
        tokens: the numbers of its tokens, by which another tokenizer is told from this one.
    """

    repository: str
    class_name: str
    probe: str
    tokens: tuple[int, ...]

    def load(self, folder: Path | None, model: str) -> Any:
        """The tokenizer, from the folder where it holds one, else from the Hub.

        Args:
            folder: where the weights are; None where they were fetched.
            model: the model's name, for messages.

        Raises:
            ModelError: it cannot be had or read, or is another.
        """
        import transformers

        place = folder if folder is not None and has_vocabulary(folder) else self._fetched(model)
        try:
            tokenizer = getattr(transformers, self.class_name).from_pretrained(place)
            tokens = tuple(tokenizer(self.probe)["input_ids"])
        except Exception as error:
            raise ModelError(f"cannot read the tokenizer in {place} for '{model}': {first_line(error)}") from error
        if tokens != self.tokens:
            raise ModelError(
                f"the tokenizer in {place} is not that of {self.repository}, whose words '{model}' was trained with: "
                f"'{self.probe}' has the tokens {list(tokens)}, but must have {list(self.tokens)}"
            )
        return tokenizer

    def _fetched(self, model: str) -> Path:
        try:
            return download_from_hub(self.repository, "tokenizer.json").parent
        except Exception as error:
            raise ModelError(
                f"'{model}' embeds text with the tokenizer of {self.repository}, which cannot be had: "
                f"{first_line(error).rstrip('.')}. Without network, put its tokenizer.json beside the file of weights "
                f"and pass {model}=/path/to/the file"
            ) from error


def has_vocabulary(folder: Path) -> bool:
    """Whether a folder holds a tokenizer."""
    return any((folder / name).is_file() for name in VOCABULARIES)


def tokenise_with(tokenizer: Any, suffix: str = "") -> Callable[[list[str]], list[list[int]]]:
    """The function of texts to the numbers of their tokens, special tokens among them, nothing padded or cut.

    Args:
        tokenizer: of transformers.
        suffix: appended to each text.
    """

    def tokenise(texts: list[str]) -> list[list[int]]:
        encoded = tokenizer(
            [text + suffix for text in texts],
            add_special_tokens=True,
            padding=False,
            truncation=False,
            return_attention_mask=False,
            # Of texts that are too long the encoder tells itself.
            verbose=False,
        )
        return [list(numbers) for numbers in encoded["input_ids"]]

    return tokenise


def longest_text(tokenizer: Any, positions: int) -> int:
    """Tokens that a text may have: what the tokenizer states, and no more than the network has positions for."""
    return min(int(tokenizer.model_max_length), positions)
