"""The loss of a stage of training: which of the losses, over the rows of all processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from audio_compositionality.support.errors import InputError

from .batch import scatter_rows
from .embedding import Embeddings
from .gathering import gather, gather_with_gradient, processes
from .losses import EVEN, Form, Weights, contrastive, hard_negative, modular

Kind: TypeAlias = Literal["contrastive", "hard", "modular"]
"""The kinds of stages."""

StageLoss: TypeAlias = Callable[[Embeddings], Tensor]
"""The loss of a batch, without dimensions: the mean over the rows of this process."""


MODULAR_WEIGHT = 0.5
"""What the loss of parts counts beside that with hard negatives: alone, any form of it undid the stage before."""


def stage_loss(
    kind: Kind, form: Form = "own", *, weights: Weights = EVEN, modular_weight: float = MODULAR_WEIGHT
) -> StageLoss:
    """The loss of a kind of stage, among the clips and captions of all processes.

    Rows whose `Embeddings.expressions` are equal are not held against each other. All processes call the loss at the
    same step, with as many rows each; negatives and positives stay where they are, and may differ in number.

    Args:
        kind: ``contrastive``; ``hard``: with hard negatives; ``modular``: with positives as well.
        form: of the modular loss. ``own`` is added to that with hard negatives; the others stand alone.
        weights: of text to audio and of audio to text, in all losses.
        modular_weight: what is added of the form ``own``.

    Raises:
        InputError: for a kind that there is not.
    """
    losses: dict[str, StageLoss] = {
        "contrastive": lambda embeddings: contrastive(**_among_all(embeddings, weights)),
        "hard": lambda embeddings: hard_negative(**_among_all(embeddings, weights), **_negatives(embeddings)),
        "modular": lambda embeddings: _modular(embeddings, form, weights, modular_weight),
    }
    if kind not in losses:
        raise InputError(f"no stage of kind {kind!r}; there are {', '.join(losses)}")
    return losses[kind]


def _modular(embeddings: Embeddings, form: Form, weights: Weights, modular_weight: float) -> Tensor:
    """The loss of stage 3."""
    common, negatives = _among_all(embeddings, weights), _negatives(embeddings)
    positives, positive_mask = scatter_rows(embeddings.positives, embeddings.positive_row, len(embeddings.audio))
    loss = modular(**common, **negatives, positives=positives, positive_mask=positive_mask, form=form)
    return hard_negative(**common, **negatives) + modular_weight * loss if form == "own" else loss


def _negatives(embeddings: Embeddings) -> dict[str, Any]:
    block, mask = scatter_rows(embeddings.negatives, embeddings.negative_row, len(embeddings.audio))
    return {"negatives": block, "negative_mask": mask}


def _among_all(embeddings: Embeddings, weights: Weights) -> dict[str, Any]:
    """The arguments that all losses have."""
    rank, _ = processes()
    dim = embeddings.audio.shape[1]
    # In one go: one message a step each way, and none that processes could send in different orders.
    pairs = gather_with_gradient(torch.cat([embeddings.audio, embeddings.captions], 1))
    return {
        "audio": embeddings.audio,
        "text": embeddings.captions,
        "scale": embeddings.scale,
        "all_audio": pairs[:, :dim],
        "all_text": pairs[:, dim:],
        "offset": rank * len(embeddings.audio),
        "same": embeddings.expressions[:, None] == gather(embeddings.expressions)[None],
        "weights": weights,
    }
