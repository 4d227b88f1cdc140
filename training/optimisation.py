"""One step of the optimizer: which weights decay, the learning rate of each step, gradients of several processes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .gathering import processes
from .model import TwoTowers
from .settings import Stage

MAX_GRADIENT = 1.0
"""Norm that the gradient of all weights together is cut to."""


BETAS = (0.9, 0.98)
"""Of AdamW (Radford et al., 2021, arXiv 2103.00020, table 18)."""

LAST_RATE = 0.1
"""The last learning rate of a stage, as a share of the highest."""


def make_optimizer(towers: TwoTowers, weight_decay: float) -> torch.optim.AdamW:
    """AdamW over the trained weights, in the order of their names in the model.

    Biases, the weights of norms and the scale, all of which have fewer than two dimensions, do not decay.
    """
    weights = [weight for _, weight in towers.named_trained()]
    groups = [
        {"params": [weight for weight in weights if weight.ndim > 1], "weight_decay": weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=0.0, betas=BETAS)


def learning_rate(stage: Stage, step: int) -> float:
    """The learning rate of a step of a stage, counted from 0: a line up, then half a cosine down to a tenth."""
    if step < stage.warm_up:
        return stage.learning_rate * (step + 1) / stage.warm_up
    share = (step - stage.warm_up) / max(stage.steps - stage.warm_up, 1)
    return stage.learning_rate * (LAST_RATE + (1 - LAST_RATE) * (1 + math.cos(math.pi * share)) / 2)


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all weights."""
    for group in optimizer.param_groups:
        group["lr"] = rate


@torch.no_grad()
def average_gradients(weights: Sequence[nn.Parameter]) -> None:
    """Give every process the mean of the gradients of all; nothing where there is one."""
    _, count = processes()
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    if count == 1 or not gradients:
        return
    # In one message: the order of sums is the same in every process, so that weights stay equal.
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    torch.distributed.all_reduce(flat)
    flat /= count
    start = 0
    for gradient in gradients:
        gradient.copy_(flat[start : start + gradient.numel()].view_as(gradient))
        start += gradient.numel()


def cut_gradients(weights: Sequence[nn.Parameter]) -> Tensor:
    """Cut the gradient of all weights to `MAX_GRADIENT`; returns its norm before, without dimensions."""
    return nn.utils.clip_grad_norm_([weight for weight in weights if weight.grad is not None], MAX_GRADIENT)
