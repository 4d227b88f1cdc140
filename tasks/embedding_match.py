"""Answers matched by sentence embeddings, as arXiv 2603.05128 matches them."""

from __future__ import annotations

from collections.abc import Sequence

from audio_compositionality.dataset_builder.data import Row


def embedding_accuracy(
    encoder: str, answers: Sequence[str], asked: Sequence[tuple[Row, Sequence[str]]], device: str
) -> float:
    """The accuracy of PolyBench, the mean over its tasks, where each answer is the option most similar to it.

    Args:
        encoder: see `SentenceEncoder`.
        answers: m texts.
        asked: the question of each, and its options as shown.
        device: torch device.

    Raises:
        ModelError: the encoder cannot be loaded.
    """
    # Both take seconds to import, which only who asks for this has to spend.
    from audio_compositionality.encoders.text_towers import SentenceEncoder
    from audio_compositionality.metrics.answers import embedding_match
    from audio_compositionality.metrics.polybench import polybench

    options = [list(listed) for _, listed in asked]
    taken = embedding_match(answers, options, SentenceEncoder(encoder, device))
    tasks = [row["task"] for row, _ in asked]
    references = [row["answer"] for row, _ in asked]
    values = polybench(taken, references, options, tasks, ids=[row["id"] for row, _ in asked], parsed=True)
    return float(values["accuracy"])
