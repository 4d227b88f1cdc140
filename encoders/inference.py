"""How a torch model runs: its device, exact float32 arithmetic, memory, and the tolerance for rounding."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .base import ModelError

if TYPE_CHECKING:
    import torch


def resolve_device(device: str | torch.device | None) -> torch.device:
    """Return the named device; by default the current CUDA device if available, else the CPU.

    Raises:
        ModelError: torch does not know or does not find the device.
    """
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        # With the number of a CUDA device: a bare "cuda" may mean different devices in different threads.
        return torch.empty(0, device=device).device
    except Exception as error:
        raise ModelError(f"cannot use device '{device}' ({error}); 'cpu' always works") from error


_ABSENT = re.compile(r"^(cuda|hip)\b[^=\n]*= None$", re.M)
"""Lines in torch's version file that show a build without CUDA, or without ROCm (AMD)."""


def device_name(device: str | None) -> str:
    """Return the name of the device that `resolve_device` returns; torch, whose import takes seconds, is imported only
    if the device may not be the CPU.

    Raises:
        ModelError: see `resolve_device`.
    """
    if "torch" not in sys.modules and (device == "cpu" or (device is None and _is_without_cuda())):
        return "cpu"
    return str(resolve_device(device))


def _is_without_cuda() -> bool:
    """Whether the installed torch was built without CUDA and ROCm."""
    torch = find_spec("torch")
    versions = Path(torch.origin).with_name("version.py") if torch is not None and torch.origin else None
    if versions is None or not versions.is_file():
        return False
    return len({match[1] for match in _ABSENT.finditer(versions.read_text("utf-8"))}) == 2


def double_precision_device(device: torch.device) -> torch.device:
    """Return the device for float64 computations of a model: its own device, or the CPU for Metal, which lacks
    float64."""
    import torch

    return torch.device("cpu") if device.type == "mps" else device


@contextmanager
def inference(device: str, precision: str = "float32") -> Iterator[None]:
    """Turn off gradients, TF32 and cuDNN's choice of algorithms by timing; autocast if requested.

    Convolutions on CUDA otherwise use TF32 by default, whose 10-bit mantissa changes an embedding by about 1e-3.

    Args:
        device: device of the model.
        precision: ``float32``, or the type for autocast: ``bfloat16`` or ``float16``.
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


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error means lack of memory: accelerate's test, extended to CUDA outside torch's allocator and
    NumPy."""
    import torch
    from accelerate.utils.memory import should_reduce_batch_size

    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or should_reduce_batch_size(error):
        return True
    signs = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)


def free_memory() -> None:
    """Release unreferenced memory, also on a GPU."""
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)


BATCHED = 1e-4
"""Largest relative difference caused by other clips in the batch: kernels for other batch sizes round differently."""


def allowed_in_company(precision: str) -> float:
    """Return the tolerated |a - b| / |b| of two embeddings of one clip or text in different batches.

    Args:
        precision: precision of the arithmetic, see `EncoderOptions`. 16-bit types keep 11 (float16) or 8 (bfloat16)
            significant bits, and round at every layer.
    """
    return {"float32": BATCHED, "float16": 0.02}.get(precision, 0.1)


def relative_difference(ours: NDArray[np.floating], reference: NDArray[np.floating]) -> float:
    """Return the largest |a - b| / |b| of corresponding rows [n, dim]; infinite if b is 0 and a is not."""
    difference = np.linalg.norm(np.asarray(ours, np.float64) - reference, axis=-1)
    norm = np.linalg.norm(np.asarray(reference, np.float64), axis=-1)
    ratio = np.divide(difference, norm, out=np.where(difference > 0, np.inf, 0.0), where=norm > 0)
    return float(ratio.max(initial=0.0))
