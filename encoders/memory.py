"""What to do where memory does not suffice: to know it from other errors, and to give back what nobody holds."""

from __future__ import annotations


def is_out_of_memory(error: Exception) -> bool:
    """More than accelerate takes for it: also allocations outside of torch's own, and NumPy's."""
    import torch
    from accelerate.utils.memory import should_reduce_batch_size

    if isinstance(error, (MemoryError, torch.OutOfMemoryError)) or should_reduce_batch_size(error):
        return True
    signs = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in signs)


def free_memory() -> None:
    """Give back what nobody holds, on a GPU as well."""
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)
