"""Where a model's answers to the prompts of a task are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from audio_compositionality.encoders.protocols import ModelCard
from audio_compositionality.tasks.base import GENERATE, Scoring

from .opened import OpenedTask, digest_of_texts
from .store import AnswerStore, StoreKey


def scoring_of(opened: OpenedTask) -> Scoring:
    """How the answers to a task's prompts are taken; it is the same of all prompts."""
    return next((one.scoring for one in opened.inputs if one.prompts), GENERATE)


def answer_store(card: ModelCard, opened: OpenedTask, root: str | Path | None) -> AnswerStore:
    """The store of a model's answers.

    Its key holds the words of all prompts, and so their version and the orders of the options, and how answers are
    taken.

    Args:
        card: of the model.
        opened: the task and its data.
        root: folder of all stores; None keeps the answers in memory.

    Raises:
        StoreError: the folder holds another key or a damaged one, or is a file.
    """
    scoring = scoring_of(opened)
    asked = [opened.configuration.fingerprint, *opened.prompts]
    if scoring != GENERATE:
        asked += [f"scoring by {scoring}", *(text for options in opened.options for text in options)]
    key = StoreKey.of(card, opened.configuration.recipe, digest_of_texts(asked), "answers")
    ids = [f"{id}?{number}" for number, id in enumerate(opened.clip_ids)]
    return AnswerStore(root, replace(key, output_dim=None), ids)
