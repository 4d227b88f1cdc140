"""The embeddings of a batch, and the module that makes them, which several processes share.

Steps on batches whose embeddings fit into memory but whose activations do not (GradCache, arXiv 2101.06983): a
contrastive loss compares all rows of a batch, so that accumulating gradients over smaller batches changes the loss.
Here a batch is embedded in chunks without gradient; the loss of all embeddings gives the gradient of each embedding;
and each chunk is embedded again, with gradient, to pass that on to the weights. It costs one more forward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor, nn

from .batches import Batch, join_tokens

if TYPE_CHECKING:
    from .model import TwoTowers


@dataclass(frozen=True)
class Embeddings:
    """The embeddings of a batch, of unit length, from which losses are computed. Texts are lists, as in `Batch`.

    Attributes:
        audio: [B, D], the clips.
        captions: [B, D], their captions.
        negatives: [n, D], texts that are false of the clip of their row.
        negative_row: int64 [n], the row of each, ascending.
        positives: [m, D], texts that are true of the clip of their row.
        positive_row: int64 [m], the row of each, ascending.
        expressions: int64 [B], equal for rows with the same meaning.
        scale: factor of the cosines, a scalar.
    """

    audio: Tensor
    captions: Tensor
    negatives: Tensor
    negative_row: Tensor
    positives: Tensor
    positive_row: Tensor
    expressions: Tensor
    scale: Tensor


class BatchEmbedder(nn.Module):
    """A batch embedded by two towers in one call of `forward`.

    Wrappers of a model, such as DistributedDataParallel or `Accelerator.prepare`, only see its `forward`: wrap this
    module, not the towers.

    Args:
        towers: the towers.
    """

    def __init__(self, towers: TwoTowers) -> None:
        super().__init__()
        self.towers = towers

    def forward(self, batch: Batch) -> Embeddings:
        """Embed the clips, and all texts in one go."""
        texts = join_tokens([batch.captions, batch.negatives, batch.positives], self.towers.pad_token)
        counts = [len(batch.captions), len(batch.negatives), len(batch.positives)]
        captions, negatives, positives = torch.split(self.towers.embed_text(texts), counts)
        return Embeddings(
            audio=self.towers.embed_audio(batch.audio),
            captions=captions,
            negatives=negatives,
            negative_row=batch.negative_row,
            positives=positives,
            positive_row=batch.positive_row,
            expressions=batch.expressions,
            scale=self.towers.scale(),
        )


Embed: TypeAlias = Callable[[Batch], Embeddings]
"""An embedder of batches, such as a `BatchEmbedder`."""

_VARIABLES = ("audio", "captions", "negatives", "positives", "scale")
"""The fields of `Embeddings` that have a gradient."""


def cached_step(
    embed: Embed,
    batch: Batch,
    loss: Callable[[Embeddings], Tensor],
    chunk: int | None = None,
    *,
    backward: Callable[[Tensor], object] = torch.Tensor.backward,
) -> Tensor:
    """Add the gradient of a batch's loss to the weights' gradients.

    It equals the full batch's gradient up to rounding, if a row's embedding does not depend on the
    other rows of its batch: batch norm must be in evaluation mode. Dropout draws the same in both passes, and
    afterwards continues as if there had been no second pass. Precision is mixed as `embed` mixes it.

    Args:
        embed: embeds a batch. If it is wrapped for several processes, all must take equally many chunks.
        batch: the share of this process.
        loss: scalar function of the embeddings of `batch`.
        chunk: maximum number of rows whose activations are kept, with all their texts; by default all, in a plain step.
        backward: called once per chunk on a number whose gradient is the chunk's; it may scale it for float16, and
            divide it if gradients are accumulated.

    Returns:
        The loss, without gradient.
    """
    if chunk is None or chunk >= len(batch):
        value = loss(embed(batch))
        backward(value)
        return value.detach()
    chunks = chunks_of(batch, chunk)
    states, embeddings = [], []
    for part in chunks:
        states.append(_random_states(batch.audio.device))
        with torch.no_grad():
            embeddings.append(embed(part))
    # Weights that an autocast around this step has cast in the first pass have no gradient.
    torch.clear_autocast_cache()
    behind = _random_states(batch.audio.device)
    # The loss of all embeddings, and its gradient for each field that it depends on, in float32 or better.
    joined, leaves = _joined(embeddings), {}
    for name in _VARIABLES:
        values: Tensor = getattr(joined, name)
        leaves[name] = values.to(torch.promote_types(values.dtype, torch.float32)).requires_grad_()
    with torch.enable_grad():
        value = loss(replace(joined, **leaves))
    pairs = zip(leaves, torch.autograd.grad(value, list(leaves.values()), allow_unused=True), strict=True)
    gradients = {name: gradient for name, gradient in pairs if gradient is not None}
    starts = dict.fromkeys(leaves, 0)
    for index, part in enumerate(chunks):
        _restore(states[index], batch.audio.device)
        again = embed(part)
        # A number whose gradient for the weights is the chunk's contribution to the gradient of the loss.
        pulled = again.audio.new_zeros((), dtype=leaves["audio"].dtype)
        for name, gradient in gradients.items():
            values = getattr(again, name)
            if name != "scale":
                pulled = pulled + (values * gradient[starts[name] : starts[name] + len(values)]).sum()
                starts[name] += len(values)
            elif index == len(chunks) - 1:
                # One number for all, whose gradient the last chunk carries.
                pulled = pulled + values * gradient
        backward(pulled)
    _restore(behind, batch.audio.device)
    return value.detach()


def chunks_of(batch: Batch, rows: int) -> list[Batch]:
    """Split a batch into chunks of rows, with the texts of each; the last may be shorter.

    Args:
        batch: of B rows.
        rows: at least 1.
    """
    chunks = []
    for start in range(0, len(batch), rows):
        stop = min(start + rows, len(batch))
        negatives = _range_of(batch.negative_row, start, stop)
        positives = _range_of(batch.positive_row, start, stop)
        chunks.append(
            Batch(
                audio=batch.audio[start:stop],
                captions=batch.captions.take(slice(start, stop)),
                negatives=batch.negatives.take(negatives),
                negative_row=batch.negative_row[negatives] - start,
                positives=batch.positives.take(positives),
                positive_row=batch.positive_row[positives] - start,
                expressions=batch.expressions[start:stop],
                rows=batch.rows[start:stop],
            )
        )
    return chunks


def _range_of(row_of: Tensor, start: int, stop: int) -> slice:
    """Return the slice of an ascending list of rows that holds the rows from `start` to before `stop`."""
    first, behind = torch.searchsorted(row_of, torch.tensor([start, stop], device=row_of.device)).tolist()
    return slice(first, behind)


def _joined(chunks: Sequence[Embeddings]) -> Embeddings:
    """Return the embeddings of a batch from the embeddings of its chunks."""
    starts = [0, *accumulate(len(chunk.audio) for chunk in chunks)][:-1]
    lists = {
        name: torch.cat([getattr(chunk, name) for chunk in chunks])
        for name in ("audio", "captions", "negatives", "positives", "expressions")
    }
    rows = {
        name: torch.cat([getattr(chunk, name) + start for chunk, start in zip(chunks, starts, strict=True)])
        for name in ("negative_row", "positive_row")
    }
    return Embeddings(**lists, **rows, scale=chunks[-1].scale)


def _random_states(device: torch.device) -> list[Tensor]:
    """Return the states of torch's generators: the CPU's, and the device's if it differs."""
    states = [torch.get_rng_state()]
    return states if device.type == "cpu" else [*states, torch.get_device_module(device).get_rng_state()]


def _restore(states: Sequence[Tensor], device: torch.device) -> None:
    """Restore the states of generators."""
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1])
