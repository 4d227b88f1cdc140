"""Rows of all processes on each, with gradient.

`Accelerator.gather` and `torch.distributed.all_gather` carry none, and putting a process's own rows back leaves out
what they do in the losses of others: the gradient is then that of another loss.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, distributed


def processes() -> tuple[int, int]:
    """The number of this process, from 0, and how many there are; (0, 1) where none were joined."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return 0, 1
    return distributed.get_rank(), distributed.get_world_size()


def gather_with_gradient(tensor: Tensor) -> Tensor:
    """The rows of all processes, in the order of processes.

    Backward, each process receives for its own rows the sum of what all processes' losses say of them. Where every
    process then takes the mean of its parameters' gradients with the others, as DistributedDataParallel does, that is
    the gradient of the mean of the losses.

    Args:
        tensor: [B, ...], of the same shape on all W processes, each of which must call this.

    Returns:
        [W·B, ...]; `tensor` itself where there is one process.
    """
    if processes()[1] == 1:
        return tensor
    return cast(Tensor, _Gathered.apply(tensor))  # type: ignore[no-untyped-call]


def gather(tensor: Tensor) -> Tensor:
    """The same for what has no gradient, such as numbers of rows."""
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
