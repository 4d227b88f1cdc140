"""Embeddings of sentences by encoders of sentence-transformers' kind: the mean over the tokens of the last layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from .loading.checkpoints import open_checkpoint

Floats = NDArray[np.float64]

BATCH = 32
"""Sentences embedded at once."""

LONGEST = 512
"""Tokens of a sentence that are read at most; fewer where the encoder knows fewer positions."""


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

        checkpoint = open_checkpoint(Path(source) if Path(source).is_dir() else source)
        self.revision = checkpoint.revision
        self._tokenizer = checkpoint.load_tokenizer(checkpoint.config.vocab_size)
        self._model = checkpoint.load_model(AutoModel).to(device)
        self._longest = min(getattr(checkpoint.config, "max_position_embeddings", LONGEST), LONGEST)
        self._device = device

    @torch.inference_mode()
    def __call__(self, sentences: Sequence[str]) -> Floats:
        """The embeddings of n sentences, [n, dimensions]: the mean over tokens that are no padding, of length 1."""
        vectors = []
        for start in range(0, len(sentences), BATCH):
            tokens = self._tokenizer(
                list(sentences[start : start + BATCH]),
                padding=True,
                truncation=True,
                max_length=self._longest,
                return_tensors="pt",
            ).to(self._device)
            states = self._model(**tokens).last_hidden_state
            weights = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
            means = (states * weights).sum(1) / weights.sum(1).clamp(min=1)
            vectors.append(torch.nn.functional.normalize(means, dim=1).cpu().numpy().astype(np.float64))
        return np.concatenate(vectors)
