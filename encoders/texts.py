"""What goes into `embed_text` and comes out of it, and the words of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shortened

from .base import FloatArray, Model, ModelError, output_dim_of

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

_SHOWN = 60
"""Letters of a text that a message shows."""


def words_of(text: str) -> list[str]:
    """The words of a text in their order, in lower case, without punctuation; parts joined by ' or - are one word."""
    return _WORD.findall(text.casefold())


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    Raises:
        InputError: it is one text alone, there are none, or one is no text or has nothing in it but space.
    """
    if isinstance(texts, str):
        raise InputError(f"texts are the one text {quoted(texts)}; pass a list of texts")
    listed = list(texts)
    if not listed:
        raise InputError("there are no texts; there must be one at least")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"text {row} is {text!r}; it must be a str")
        if not text.strip():
            raise InputError(f"text {row} is empty")
    return listed


def check_text_embeddings(embeddings: NDArray[Any], encoder: Model, texts: Sequence[str]) -> FloatArray:
    """Embeddings of texts as float32 [n, output_dim], known to be finite.

    Args:
        embeddings: what a model returned.
        encoder: whose card the check uses.
        texts: what was embedded.

    Raises:
        ModelError: on another shape or type, or where a row is not finite.
    """
    array, dim = np.asarray(embeddings), output_dim_of(encoder)
    if array.shape != (len(texts), dim):
        raise ModelError(
            f"'{encoder.card.id}' returned shape {array.shape} for texts, but must return [{len(texts)}, {dim}]: texts "
            "and clips share a space"
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise ModelError(f"'{encoder.card.id}' returned {array.dtype} for texts, but must return floating embeddings")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ModelError(f"'{encoder.card.id}' returned values that are NaN or infinite for {quoted(texts[row])}")
    return array.astype(np.float32, copy=False)


def quoted(text: str) -> str:
    """A text for a message: its beginning, between quotation marks."""
    return f"'{shortened(text, _SHOWN)}'"
