"""Where and how a torch model runs: the device, and float32 arithmetic that is float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .base import ModelError

if TYPE_CHECKING:
    import torch


def resolve_device(device: str | torch.device | None) -> torch.device:
    """The named device; by default the current CUDA device, where there is one, else the CPU.

    Raises:
        ModelError: if torch knows no such device or finds none.
    """
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        # With the number of a CUDA device: which one a bare "cuda" means may differ from thread to thread.
        return torch.empty(0, device=device).device
    except Exception as error:
        raise ModelError(f"cannot use device '{device}' ({error}); 'cpu' always works") from error


def double_precision_device(device: torch.device) -> torch.device:
    """Where to compute in float64 for a model on a device: there, but on the CPU for Metal, which has no float64."""
    import torch

    return torch.device("cpu") if device.type == "mps" else device


@contextmanager
def inference(device: str, precision: str = "float32") -> Iterator[None]:
    """No gradients; cuDNN neither rounds to TF32 nor picks algorithms by timing; autocast where it is asked for.

    Convolutions on CUDA otherwise use TF32 by default, whose 10-bit mantissa changes an embedding by about 1e-3.

    Args:
        device: where the model is.
        precision: ``float32``, or the type that autocast computes in: ``bfloat16`` or ``float16``.
    """
    import torch

    autocast = torch.autocast(
        torch.device(device).type,
        dtype=None if precision == "float32" else getattr(torch, precision),
        enabled=precision != "float32",
    )
    with (
        torch.inference_mode(),
        torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False),
        autocast,
    ):
        yield
