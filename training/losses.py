"""The losses of CompA-CLAP (arXiv 2310.08753) as pure functions of embeddings: contrastive, hard negatives, modular.

Shapes: a process has B rows, W·B over all W processes; each row is a clip, its caption, K hard negatives (texts that
are false of the clip) and P positives (texts that are true of it). Embeddings are of unit length and have D dimensions.
With ``s`` the scale (the inverse temperature), ``a_i`` a clip, ``t_i`` its caption, ``n_ik`` its negatives and ``p_ik``
its positives, every logit is ``s a·t``, in float32 or better, also under autocast: a logit is up to 100, and bfloat16
has three digits.

Values at masked positions of negatives or positives do not matter. A masked logit is replaced by one that adds nothing;
the authors' code multiplies it by −100,000, which is right only while all masked logits are positive.

A loss is the mean over the rows of this process. If processes have equally many rows, the mean of their gradients is
the gradient of one process that has all rows, provided that `all_audio` and `all_text` carry gradient
(`gather_with_gradient`). Negatives and positives are used by their own row alone, and are never gathered.
`Accelerator.gather` and `torch.distributed.all_gather` carry no gradient, and inserting a process's own rows again
omits their part in the losses of others: the gradient is then of another loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, get_args

import torch
from torch import Tensor, distributed

from audio_compositionality.support.errors import InputError

from .batches import scatter_rows
from .embedding import Embeddings
from .settings import KINDS, StageKind

ModularForm: TypeAlias = Literal["own", "paper", "release"]
"""The forms of the modular loss."""

Reduction: TypeAlias = Literal["mean", "none"]
"""Whether a loss is the mean over the rows, or one number per row."""

DirectionWeights: TypeAlias = tuple[float, float]
"""The weights of t→a and a→t, α1 and α2 of equations 4 and 6."""

EVEN: DirectionWeights = (1.0, 1.0)
"""The default weights: the paper states none; its authors' code has these."""


def contrastive(
    audio: Tensor,
    text: Tensor,
    scale: Tensor | float,
    *,
    all_audio: Tensor | None = None,
    all_text: Tensor | None = None,
    offset: int = 0,
    same: Tensor | None = None,
    weights: DirectionWeights = EVEN,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the symmetric contrastive loss of stage 1, as in CLIP (arXiv 2103.00020) and CLAP (arXiv 2206.04769).

    Row i: ½(t→a + a→t), with t→a = −s t_i·a_i + log Σ_j exp(s t_i·a_j) and a→t = −s a_i·t_i + log Σ_j exp(s a_i·t_j).

    Args:
        audio: [B, D], the clips of this process.
        text: [B, D], their captions.
        scale: s, above 0; a scalar tensor if it is trained.
        all_audio: [W·B, D], the clips of all processes; by default `audio`.
        all_text: [W·B, D], their captions; by default `text`.
        offset: where the rows of this process begin in those.
        same: bool [B, W·B], rows with the same meaning: their clips and captions are right too, and
            are left out of its sums. A row is never left out of its own sums.
        weights: weights of t→a and a→t, 0 or more: the loss is ½(α1 t→a + α2 a→t).
        reduction: ``mean`` for a scalar loss, ``none`` for [B].

    Returns:
        The loss, 0 or more; log(W·B) if all logits are equal.
    """
    batch = _Batch.of(audio, text, scale, all_audio, all_text, offset, same)
    to_text = torch.logsumexp(batch.to_text, 1) - batch.right
    return _reduced(batch.caption_to_clips(), to_text, weights, reduction)


def hard_negative(
    audio: Tensor,
    text: Tensor,
    scale: Tensor | float,
    negatives: Tensor,
    negative_mask: Tensor | None = None,
    *,
    all_audio: Tensor | None = None,
    all_text: Tensor | None = None,
    offset: int = 0,
    same: Tensor | None = None,
    weights: DirectionWeights = EVEN,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the contrastive loss with each clip's own hard negatives, of stage 2 (equations 4 and 5).

    Row i: ½(t→a + a→t), with t→a as in `contrastive` and a→t = −s a_i·t_i + log(Σ_j exp(s a_i·t_j) + Σ_k exp(s
    a_i·n_ik)). Hard negatives of other rows are not in the sum: they may be true of this clip.

    Args:
        audio: see `contrastive`, also for the arguments without a description here.
        text: see `contrastive`.
        scale: see `contrastive`.
        negatives: [B, K, D], texts that are false of each clip; K may differ between processes and may be 0.
        negative_mask: bool [B, K], which of them exist; by default all. A row without any has the contrastive loss.
        all_audio: see `contrastive`.
        all_text: see `contrastive`.
        offset: see `contrastive`.
        same: see `contrastive`. It does not apply to negatives.
        weights: see `contrastive`.
        reduction: see `contrastive`.

    Returns:
        The loss, 0 or more and at least `contrastive`.
    """
    batch = _Batch.of(audio, text, scale, all_audio, all_text, offset, same)
    to_text = batch.clip_to_texts(_wrong(audio, negatives, negative_mask, scale)) - batch.right
    return _reduced(batch.caption_to_clips(), to_text, weights, reduction)


def modular(
    audio: Tensor,
    text: Tensor,
    scale: Tensor | float,
    positives: Tensor,
    positive_mask: Tensor | None = None,
    negatives: Tensor | None = None,
    negative_mask: Tensor | None = None,
    *,
    form: ModularForm = "own",
    all_audio: Tensor | None = None,
    all_text: Tensor | None = None,
    offset: int = 0,
    same: Tensor | None = None,
    weights: DirectionWeights = EVEN,
    reduction: Reduction = "mean",
) -> Tensor:
    """Return the modular contrastive loss of stage 3 (equations 6 and 7): parts of a caption are positives as well.

    Row i is ½(α1 t→a + α2 a→t). A row without positives has its caption alone: every form then equals `hard_negative`.

    - ``own``: a→t is the mean over q of {t_i} and p_i of −s a_i·q + log(exp(s a_i·q) + Σ_{j≠i} exp(s a_i·t_j) + Σ_k
      exp(s a_i·n_ik)), so that right texts do not compete; t→a is as in `contrastive`, of whole captions, since a
      part may be true of other clips. Stage 3 adds half of it to `hard_negative`: alone, any form undid stage 2.
    - ``paper``: as printed, t→a = −mean_k s p_ik·a_i + log Σ_j exp(s t_i·a_j) and a→t = −mean_k s a_i·p_ik + log(Σ_j
      exp(s a_i·t_j) + Σ_k exp(s a_i·n_ik)). **Only the scale bounds it below**: positives are in no sum, so the loss
      falls to as little as −2s when they are nearer than the caption, and the caption is pushed away.
    - ``release``: as in the authors' code, a→t is the mean over q of {t_i} and p_i of the cross-entropy of q among
      all t_j, p_i and n_i, so that right texts of one clip compete and the loss cannot reach 0; t→a is the mean over
      the same q of −s q·a_i + log Σ_j exp(s q·a_j), so that **a part is pushed from other clips that it describes**.

    Args:
        audio: see `contrastive`, also for the arguments without a description here.
        text: see `contrastive`.
        scale: see `contrastive`.
        positives: [B, P, D], further texts that are true of each clip; P may differ between processes and
            may be 0.
        positive_mask: bool [B, P], which of them exist; by default all.
        negatives: [B, K, D], texts that are false of each clip; by default none.
        negative_mask: bool [B, K], which of them exist; by default all.
        form: form of the loss.
        all_audio: see `contrastive`.
        all_text: see `contrastive`.
        offset: see `contrastive`.
        same: see `contrastive`. It does not apply to positives and negatives.
        weights: see `contrastive`.
        reduction: see `contrastive`.

    Returns:
        The loss: 0 or more for ``own`` and ``release``, −2s or more for ``paper``.

    Raises:
        InputError: unknown form.
    """
    if form not in get_args(ModularForm):
        raise InputError(f"unknown form {form!r} of the modular loss; the forms are {', '.join(get_args(ModularForm))}")
    batch = _Batch.of(audio, text, scale, all_audio, all_text, offset, same)
    positives, mask = _texts(audio, positives, positive_mask)
    parts = _logits_of_texts(audio, positives, scale)
    wrong = _wrong(audio, negatives, negative_mask, scale)
    # A row's right texts [B, 1 + P], its caption first.
    right = torch.cat([batch.right[:, None], parts], 1)
    there = torch.nn.functional.pad(mask, (1, 0), value=True)
    if form == "paper":
        pulled = torch.where(mask.any(1), _mean(parts, mask), batch.right)
        to_audio, to_text = torch.logsumexp(batch.to_audio, 1) - pulled, batch.clip_to_texts(wrong) - pulled
    elif form == "release":
        texts = batch.clip_to_texts(torch.cat([_without(parts, ~mask), wrong], 1))
        to_clips = batch.scale * _products("ikd,jd->ikj", positives, batch.clips)
        if batch.left_out is not None:
            to_clips = _without(to_clips, batch.left_out[:, None].expand_as(to_clips))
        clips = torch.cat([torch.logsumexp(batch.to_audio, 1)[:, None], torch.logsumexp(to_clips, 2)], 1)
        to_audio, to_text = _mean(clips - right, there), _mean(texts[:, None] - right, there)
    else:
        captions = batch.to_text.scatter(1, batch.place, _nothing(batch.to_text))
        rest = torch.logsumexp(torch.cat([captions, wrong], 1), 1, keepdim=True)
        to_audio, to_text = batch.caption_to_clips(), _mean(torch.logaddexp(right, rest) - right, there)
    return _reduced(to_audio, to_text, weights, reduction)


@dataclass(frozen=True)
class _Batch:
    """Clips and captions compared.

    Attributes:
        clips: [W·B, D].
        scale: s.
        place: int64 [B, 1], columns of this process's rows.
        left_out: bool [B, W·B], columns that are left out of a row's sums; None for none.
        right: [B], s a_i·t_i.
        to_text: [B, W·B], s a_i·t_j, masked if left out.
        to_audio: [B, W·B], s t_i·a_j, masked if left out.
    """

    clips: Tensor
    scale: Tensor | float
    place: Tensor
    left_out: Tensor | None
    right: Tensor
    to_text: Tensor
    to_audio: Tensor

    @classmethod
    def of(
        cls,
        audio: Tensor,
        text: Tensor,
        scale: Tensor | float,
        all_audio: Tensor | None,
        all_text: Tensor | None,
        offset: int,
        same: Tensor | None,
    ) -> _Batch:
        clips, captions = audio if all_audio is None else all_audio, text if all_text is None else all_text
        place = (torch.arange(len(audio), device=audio.device) + offset)[:, None]
        left_out = None if same is None else same.scatter(1, place, False)
        to_text = scale * _products("id,jd->ij", audio, captions)
        to_audio = scale * _products("id,jd->ij", text, clips)
        right = to_text.gather(1, place)[:, 0]
        if left_out is not None:
            to_text, to_audio = _without(to_text, left_out), _without(to_audio, left_out)
        return cls(clips, scale, place, left_out, right, to_text, to_audio)

    def caption_to_clips(self) -> Tensor:
        """Return [B], t→a of whole captions."""
        return torch.logsumexp(self.to_audio, 1) - self.right

    def clip_to_texts(self, wrong: Tensor) -> Tensor:
        """Return [B], log(Σ_j exp(s a_i·t_j) + Σ_k exp(s a_i·n_ik)), from logits [B, K] of own negatives."""
        return torch.logsumexp(torch.cat([self.to_text, wrong], 1), 1)


def _texts(audio: Tensor, texts: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the texts of each row [B, K, D], zeros for missing ones, and their mask [B, K]."""
    if mask is None:
        return texts, torch.ones(texts.shape[:2], dtype=torch.bool, device=audio.device)
    # A term left out of a sum has no gradient, but 0 times a value that is not finite would have one.
    return torch.where(mask[..., None], texts, 0), mask


def _logits_of_texts(audio: Tensor, texts: Tensor, scale: Tensor | float) -> Tensor:
    """Return [B, K], s a_i·q_ik of texts [B, K, D]."""
    return scale * _products("id,ikd->ik", audio, texts)


def _wrong(audio: Tensor, negatives: Tensor | None, mask: Tensor | None, scale: Tensor | float) -> Tensor:
    """Return [B, K], logits of each row's own negatives, masked if missing."""
    if negatives is None:
        return _products("id,ikd->ik", audio, audio.new_empty((len(audio), 0, audio.shape[1])))
    negatives, mask = _texts(audio, negatives, mask)
    return _without(_logits_of_texts(audio, negatives, scale), ~mask)


def _products(equation: str, left: Tensor, right: Tensor) -> Tensor:
    """Return an einsum in float32 or better, also under autocast."""
    dtype = torch.promote_types(torch.promote_types(left.dtype, right.dtype), torch.float32)
    with torch.autocast(left.device.type, enabled=False):
        return torch.einsum(equation, left.to(dtype), right.to(dtype))


def _nothing(logits: Tensor) -> float:
    """Return a logit that adds nothing to a sum of exponentials. With −inf, an empty sum would have no gradient."""
    return torch.finfo(logits.dtype).min / 2


def _without(logits: Tensor, left_out: Tensor) -> Tensor:
    """Return logits, masked where they are left out of sums."""
    return logits.masked_fill(left_out, _nothing(logits))


def _mean(values: Tensor, mask: Tensor) -> Tensor:
    """Return [B], the mean over the unmasked values of [B, K]; 0 without any."""
    return torch.where(mask, values, 0).sum(1) / mask.sum(1).clamp(min=1)


def _reduced(to_audio: Tensor, to_text: Tensor, weights: DirectionWeights, reduction: Reduction) -> Tensor:
    """Return half the weighted sum of both directions: the mean over rows, or the rows [B]."""
    rows = (weights[0] * to_audio + weights[1] * to_text) / 2
    return rows.mean() if reduction == "mean" else rows


def processes() -> tuple[int, int]:
    """Return the number of this process, from 0, and the number of processes; (0, 1) if none were joined."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def gather_with_gradient(tensor: Tensor) -> Tensor:
    """Gather the rows of all processes, in the order of processes.

    Backward, each process receives for its own rows the sum of their gradients in all processes' losses. If the
    gradients of parameters are then averaged over processes, as DistributedDataParallel does, the result is the
    gradient of the mean of the losses.

    Args:
        tensor: [B, ...], of the same shape on all W processes, which must all call this.

    Returns:
        [W·B, ...]; `tensor` itself for a single process.
    """
    if processes()[1] == 1:
        return tensor
    return cast(Tensor, _Gathered.apply(tensor))  # type: ignore[no-untyped-call]


def gather(tensor: Tensor) -> Tensor:
    """Gather tensors without gradient, such as numbers of rows."""
    _, count = processes()
    if count == 1:
        return tensor
    parts = [torch.empty_like(tensor) for _ in range(count)]
    distributed.all_gather(parts, tensor.contiguous())
    return torch.cat(parts)


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        ctx.rows = len(tensor)
        return gather(tensor)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        summed = gradients[0].contiguous().clone()
        distributed.all_reduce(summed)
        rank, _ = processes()
        return summed[rank * ctx.rows : (rank + 1) * ctx.rows]


StageLoss: TypeAlias = Callable[[Embeddings], Tensor]
"""Returns the loss of a batch, a scalar: the mean over the rows of this process."""


MODULAR_WEIGHT = 0.5
"""Weight of the modular loss, added to the loss with hard negatives: alone, any form of it undid the stage before."""


def stage_loss(
    kind: StageKind,
    form: ModularForm = "own",
    *,
    weights: DirectionWeights = EVEN,
    modular_weight: float = MODULAR_WEIGHT,
) -> StageLoss:
    """Return the loss of a kind of stage, among the clips and captions of all processes.

    Rows whose `Embeddings.expressions` are equal are not negatives of each other. All processes call the loss at the
    same step, with equally many rows; negatives and positives are not gathered, and may differ in number.

    Args:
        kind: ``contrastive``; ``hard``: with hard negatives; ``modular``: with positives as well.
        form: form of the modular loss. ``own`` is added to the loss with hard negatives; the others are used alone.
        weights: weights of text to audio and of audio to text, in all losses.
        modular_weight: weight of the form ``own``.

    Raises:
        InputError: unknown kind.
    """
    if kind not in KINDS:
        raise InputError(f"unknown kind of stage {kind!r}; the kinds are {', '.join(KINDS)}")

    def loss(embeddings: Embeddings) -> Tensor:
        common, rows = _among_all(embeddings, weights), len(embeddings.audio)
        if kind == "contrastive":
            return contrastive(**common)
        negatives, negative_mask = scatter_rows(embeddings.negatives, embeddings.negative_row, rows)
        common |= {"negatives": negatives, "negative_mask": negative_mask}
        if kind == "hard":
            return hard_negative(**common)
        positives, positive_mask = scatter_rows(embeddings.positives, embeddings.positive_row, rows)
        of_parts = modular(**common, positives=positives, positive_mask=positive_mask, form=form)
        return hard_negative(**common) + modular_weight * of_parts if form == "own" else of_parts

    return loss


def _among_all(embeddings: Embeddings, weights: DirectionWeights) -> dict[str, Any]:
    """Return the arguments that all losses share."""
    rank, _ = processes()
    dim = embeddings.audio.shape[1]
    # Together: one message per step in each direction, so that processes cannot send several in different orders.
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
