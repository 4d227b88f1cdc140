"""The losses against double loops, worked examples, their gradients, and what the wrong forms do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.training.losses import contrastive, hard_negative, modular, stage_loss

from . import by_hand
from .by_hand import Rows

Loss = Callable[..., torch.Tensor]


def run_contrastive(rows: Rows, **changes: object) -> torch.Tensor:
    arguments = {"same": rows.same, "reduction": "none"} | changes
    return contrastive(rows.audio, rows.text, rows.scale, **arguments)


def run_hard(rows: Rows, **changes: object) -> torch.Tensor:
    arguments = {"same": rows.same, "reduction": "none"} | changes
    return hard_negative(rows.audio, rows.text, rows.scale, rows.negatives, rows.negative_mask, **arguments)


def run_modular(form: str) -> Loss:
    def run(rows: Rows, **changes: object) -> torch.Tensor:
        arguments = {"same": rows.same, "reduction": "none", "form": form} | changes
        texts = (rows.positives, rows.positive_mask, rows.negatives, rows.negative_mask)
        return modular(rows.audio, rows.text, rows.scale, *texts, **arguments)

    return run


LOSSES: dict[str, tuple[Loss, Callable[[Rows], list[float]]]] = {
    "contrastive": (run_contrastive, by_hand.contrastive),
    "hard_negative": (run_hard, by_hand.hard_negative),
    "own": (run_modular("own"), by_hand.own),
    "paper": (run_modular("paper"), by_hand.paper),
    "release": (run_modular("release"), by_hand.release),
}
FORMS = ("own", "paper", "release")
EVERY = pytest.mark.parametrize(("loss", "reference"), LOSSES.values(), ids=LOSSES)


def unmasked(rows: Rows) -> Rows:
    there = {name: torch.ones_like(getattr(rows, name)) for name in ("negative_mask", "positive_mask")}
    return replace(rows, same=torch.zeros_like(rows.same), **there)


def none_masked(rows: Rows, name: str) -> Rows:
    return replace(rows, **{name: torch.zeros_like(getattr(rows, name))})


CHANGES: dict[str, Callable[[Rows], Rows]] = {
    "masked": lambda rows: rows,
    "all": unmasked,
    "logits below 0": by_hand.negative_logits,
    "no negatives": lambda rows: none_masked(rows, "negative_mask"),
    "no positives": lambda rows: none_masked(rows, "positive_mask"),
}


@EVERY
@pytest.mark.parametrize(("seed", "scale"), [(1, 14.3), (0, 100.0)])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_loss_is_a_double_loop(loss: Loss, reference: Callable, seed: int, scale: float, change: Callable):
    rows = change(by_hand.drawn(seed, scale=scale))
    assert loss(rows).tolist() == pytest.approx(reference(rows), rel=0, abs=1e-6)
    assert float(loss(rows, reduction="mean")) == pytest.approx(sum(reference(rows)) / len(rows.audio), abs=1e-6)


@EVERY
def test_the_halves_of_a_loss_have_weights(loss: Loss, reference: Callable):
    """Of half the sum of two directions: twice the one alone, and what the reference has where both count one."""
    rows = by_hand.drawn(1)
    to_audio, to_text = (loss(rows, weights=weights) for weights in ((1.0, 0.0), (0.0, 1.0)))
    assert (to_audio + to_text).tolist() == pytest.approx(reference(rows), rel=0, abs=1e-6)
    torch.testing.assert_close(loss(rows, weights=(0.5, 3.0)), 0.5 * to_audio + 3 * to_text)
    right = rows.scale * (rows.audio * rows.text).sum(1)
    if loss in (run_contrastive, run_hard, LOSSES["own"][0]):
        expected = [
            by_hand.log_sum(rows.text_to_clips(rows.caption(i), i)) - float(right[i]) for i in range(len(right))
        ]
        assert (2 * to_audio).tolist() == pytest.approx(expected, rel=0, abs=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_blocks_without_texts_are_as_those_that_are_masked(form: str):
    rows = by_hand.drawn()
    no_negatives, no_positives = (none_masked(rows, name) for name in ("negative_mask", "positive_mask"))
    empty = replace(rows, negatives=rows.negatives[:, :0], negative_mask=rows.negative_mask[:, :0])
    torch.testing.assert_close(run_hard(empty), run_contrastive(rows))
    texts = (rows.positives, rows.positive_mask)
    left_out = modular(rows.audio, rows.text, rows.scale, *texts, form=form, same=rows.same, reduction="none")
    torch.testing.assert_close(left_out, run_modular(form)(no_negatives))
    torch.testing.assert_close(run_modular(form)(empty), run_modular(form)(no_negatives))
    empty = replace(rows, positives=rows.positives[:, :0], positive_mask=rows.positive_mask[:, :0])
    torch.testing.assert_close(run_modular(form)(empty), run_hard(no_positives))


@EVERY
def test_what_is_masked_does_not_matter(loss: Loss, reference: Callable):
    rows = by_hand.drawn(2)
    spoilt = {}
    for kind in ("negatives", "positives"):
        values = getattr(rows, kind).clone()
        values[~getattr(rows, f"{kind[:-1]}_mask")] = torch.nan
        spoilt[kind] = values.requires_grad_()
    audio, text = rows.audio.clone().requires_grad_(), rows.text.clone().requires_grad_()
    other = replace(rows, audio=audio, text=text, **spoilt)
    assert torch.equal(loss(other), loss(rows))
    loss(other).sum().backward()
    for tensor in (audio, text, *spoilt.values()):
        assert tensor.grad is None or torch.isfinite(tensor.grad).all()


@EVERY
def test_one_row_that_nothing_is_held_against(loss: Loss, reference: Callable):
    """Its sums have its own term alone; of −inf they would have no gradient."""
    rows = by_hand.drawn(rows=3)
    alike = replace(rows, same=torch.ones(3, 3, dtype=torch.bool))
    alike = none_masked(none_masked(alike, "negative_mask"), "positive_mask")
    audio = alike.audio.float().requires_grad_()
    losses = loss(replace(alike, audio=audio, text=alike.text.float()))
    assert losses.tolist() == pytest.approx([0, 0, 0], abs=1e-6)
    losses.sum().backward()
    assert torch.isfinite(audio.grad).all()


@EVERY
def test_a_part_of_all_rows(loss: Loss, reference: Callable):
    """What a process computes of its own rows among all is what those rows have in one process."""
    rows = by_hand.drawn(5, rows=6)
    part = slice(2, 4)
    names = ("audio", "text", "negatives", "negative_mask", "positives", "positive_mask", "same")
    share = replace(rows, **{name: getattr(rows, name)[part] for name in names})
    ours = loss(share, all_audio=rows.audio, all_text=rows.text, offset=2)
    torch.testing.assert_close(ours, loss(rows)[part])


@EVERY
def test_gradients(loss: Loss, reference: Callable):
    rows = by_hand.drawn(6, rows=3, dim=3)
    names = ("audio", "text", "negatives", "positives")

    def of_tensors(scale: torch.Tensor, *tensors: torch.Tensor) -> torch.Tensor:
        return loss(replace(rows, scale=scale, **dict(zip(names, tensors, strict=True))), reduction="mean")

    leaves = [getattr(rows, name).clone().requires_grad_() for name in names]
    assert torch.autograd.gradcheck(of_tensors, (torch.tensor(14.3, dtype=torch.float64, requires_grad=True), *leaves))


# Worked by hand ------------------------------------------------------------------------------------------

ROOT = 1 / math.sqrt(2)
CLIPS = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
CAPTIONS = torch.tensor([[1.0, 0.0], [ROOT, ROOT]], dtype=torch.float64)
"""Cosines, captions by clips: 1, 0 and .7071, .7071."""


def test_two_rows_by_hand():
    """With s = 2, e² = 7.389056 and e^√2 = 4.113250.

    t→a: log(e² + e⁰) − 2 = .126928 and log(2 e^√2) − √2 = .693147;
    a→t: log(e² + e^√2) − 2 = .442547 and log(e⁰ + e^√2) − √2 = .217622.
    """
    first, second = (0.126928 + 0.442547) / 2, (0.693147 + 0.217622) / 2
    rows = contrastive(CLIPS, CAPTIONS, 2.0, reduction="none").tolist()
    assert rows == pytest.approx([first, second], abs=2e-6)
    assert float(contrastive(CLIPS, CAPTIONS, 2.0)) == pytest.approx((first + second) / 2, abs=2e-6)
    assert (first + second) / 2 != pytest.approx((0.126928 + 0.693147) / 2, abs=0.01)


def test_a_hard_negative_by_hand():
    """s = 2, the negative at right angles to clip 0: log(e² + e^√2 + e⁰) − 2 = .525913 in place of .442547."""
    negatives = torch.tensor([[[0.0, 1.0]], [[1.0, 0.0]]], dtype=torch.float64)
    rows = hard_negative(CLIPS, CAPTIONS, 2.0, negatives, torch.tensor([[True], [False]]), reduction="none")
    assert float(rows[0]) == pytest.approx((0.126928 + 0.525913) / 2, abs=2e-6)
    assert float(rows[1]) == pytest.approx((0.693147 + 0.217622) / 2, abs=2e-6)


def test_kinds_and_forms_that_there_are_not():
    with pytest.raises(
        AudioCompositionalityError, match="unknown kind of stage 'harder'; the kinds are contrastive, hard, mod"
    ):
        stage_loss("harder")
    with pytest.raises(AudioCompositionalityError, match=r"unknown form 'papre' .* own, paper, release"):
        run_modular("papre")(by_hand.drawn())


# Numbers ------------------------------------------------------------------------------------------


@EVERY
def test_logits_are_of_single_precision_under_autocast_and_of_half_precision(loss: Loss, reference: Callable):
    rows = by_hand.drawn(9, scale=100.0)
    names = ("audio", "text", "negatives", "positives")
    half = replace(rows, **{name: getattr(rows, name).half() for name in names})
    single = replace(rows, **{name: getattr(half, name).float() for name in names})
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(loss(single), loss(single).float())
        rounded = loss(single)
    assert loss(half).dtype == torch.float32
    assert torch.equal(loss(half), loss(single))
    assert torch.equal(rounded, loss(single))
