"""Configurations of networks of our own, which may be a stranger's: refused before what they describe is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from audio_compositionality.support.text import first_line, shortened

from ..base import ModelError
from .checkpoints import Checkpoint, quiet

MOST_WEIGHTS = 100_000_000
"""Of such a network, 0.4 GB; those that are trained here have a hundredth of it."""

_SHOWN = 40


def check_network(checkpoint: Checkpoint, network: Any, sizes: Sequence[str]) -> None:
    """Refuse a configuration of which no network can be built, or none of a size that there is.

    Args:
        checkpoint: with the configuration.
        network: class of the network, of transformers; one is built without memory for its weights.
        sizes: names of the configuration's sizes.

    Raises:
        ModelError: names the size, or says why there is no such network.
    """
    for name in sizes:
        check_whole(checkpoint, name, 1, MOST_WEIGHTS)
    try:
        with quiet(checkpoint.source), torch.device("meta"):
            weights = sum(weight.numel() for weight in network(checkpoint.config).parameters())
    except Exception as error:
        raise ModelError(f"the configuration of '{checkpoint.name}' describes no model: {first_line(error)}") from error
    if weights > MOST_WEIGHTS:
        raise ModelError(
            f"the configuration of '{checkpoint.name}' describes a {network.__name__} of {weights:,} weights; there "
            f"can be {MOST_WEIGHTS:,}"
        )


def check_whole(checkpoint: Checkpoint, name: str, least: int, most: int) -> None:
    """Refuse a value of a configuration that is no whole number, or none in a range.

    Raises:
        ModelError: it is not.
    """
    value = getattr(checkpoint.config, name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ModelError(
            f"the configuration of '{checkpoint.name}' has {name}: {shortened(repr(value), _SHOWN)}; it must be a "
            f"whole number from {least} to {most:,}"
        )
