"""The checks of `embed_text`, for encoders that have it; `check` runs them after those of sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .base import output_dim_of
from .check_findings import DIFFERENT, REPEATED, Finding, Session
from .check_sounds import Array, distances, relative_difference
from .company import allowed_in_company
from .protocols import AudioTextEncoder

TEXTS = (
    "a dog barks",
    "a bell rings, and then a quiet crowd begins to cheer far away",
    "rain",
    "Two people talk while a car passes!",
)
"""Texts of different lengths, one with an exclamation mark: by its number, padding has been told from words."""

SWAPPED = ("a dog barks before a bell rings", "a bell rings before a dog barks")
"""Two texts of the same words."""


def embed_text(session: Session, texts: Sequence[str]) -> Array:
    """Embeddings of texts by the encoder under check."""
    encoder = session.encoder
    assert isinstance(encoder, AudioTextEncoder)
    return np.asarray(encoder.embed_text(list(texts)))


def check_text_embeds(session: Session) -> Finding:
    """Texts give finite embeddings of the length that clips have."""
    embeddings = embed_text(session, TEXTS)
    expected = (len(TEXTS), output_dim_of(session.encoder))
    if embeddings.shape != expected:
        return "fail", f"{embeddings.shape}, but must be {expected}"
    bad = int((~np.isfinite(embeddings)).sum())
    return ("fail", f"{bad} values are NaN or infinite") if bad else ("pass", f"{len(TEXTS)} texts, {expected}")


def check_text_dtype(session: Session) -> Finding:
    """Embeddings of texts are float32."""
    dtype = embed_text(session, TEXTS[:1]).dtype
    return "pass" if dtype == np.float32 else "fail", str(dtype)


def check_text_deterministic(session: Session) -> Finding:
    """The same texts give the same embeddings again."""
    first = embed_text(session, TEXTS)
    embed_text(session, TEXTS[::-1][:2])
    difference = relative_difference(embed_text(session, TEXTS), first)
    return "pass" if difference <= REPEATED else "fail", f"relative difference {difference:.1e}"


def check_text_batch(session: Session) -> Finding:
    """A text's embedding does not depend on the texts beside it, and row i is text i."""
    together = embed_text(session, TEXTS)
    alone = np.concatenate([embed_text(session, [text]) for text in TEXTS])
    difference = relative_difference(together, alone)
    if difference <= allowed_in_company(session.encoder.card.options.precision):
        return "pass", f"relative difference {difference:.1e} in a batch"
    places = distances(together, alone).argmin(axis=1).tolist()
    if places != list(range(len(TEXTS))):
        return "fail", f"in a batch, rows 0 to {len(TEXTS) - 1} are nearest to those of the texts {places}"
    return "fail", f"relative difference {difference:.1e} in a batch"


def check_text_sensitive(session: Session) -> Finding:
    """Different texts give different embeddings."""
    embeddings = embed_text(session, TEXTS)
    between = distances(embeddings, embeddings)[np.triu_indices(len(TEXTS), 1)]
    norm = float(np.linalg.norm(embeddings, axis=1).mean())
    smallest = float(between.min()) / norm if norm else 0.0
    text = f"embeddings of {len(TEXTS)} texts differ by {smallest:.1e} of their norm at least"
    return "pass" if smallest >= DIFFERENT else "fail", text


def check_text_order(session: Session) -> Finding:
    """Measure what another order of the same words changes."""
    swapped = embed_text(session, SWAPPED)
    embeddings = embed_text(session, TEXTS)
    between = distances(embeddings, embeddings)[np.triu_indices(len(TEXTS), 1)].mean()
    moved = float(distances(swapped[:1], swapped[1:])[0, 0] / between)
    text = f"the same words in another order move an embedding by {moved:.2g} of the distance between texts"
    return "warn" if moved < DIFFERENT else "info", text
