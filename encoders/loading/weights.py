"""Weights of models that transformers does not have, loaded with every key accounted for.

Published checkpoints of these encoders are mostly PyTorch files. They are read by torch's restricted unpickler, which
builds tensors and plain containers and calls nothing else, and only after their hash was found to be the published
one, where one is published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from audio_compositionality.support.files import open_file, sha256_of_file
from audio_compositionality.support.text import shown

from ..base import ModelError
from .twins import ModelSource, Twin

State = dict[str, torch.Tensor]
Module = TypeVar("Module", bound=torch.nn.Module)

PICKLES = (".pt", ".pth", ".bin", ".ckpt")


@dataclass(frozen=True)
class Weights(ModelSource):
    """The weights that a listed model is built with: a file, or fresh ones.

    Attributes:
        path: the file; None for fresh weights.
        folder: where the user's copy lies, and perhaps a tokenizer beside it; None where it was fetched.
        name, twin, paradigm, licence, trained_on: see `ModelSource`.
    """

    name: str
    path: Path | None
    twin: Twin | None = None
    paradigm: str | None = None
    licence: str | None = None
    folder: Path | None = None
    trained_on: str | None = None

    @cached_property
    def weights_sha256(self) -> str | None:
        """SHA-256 of the file; None of a twin's weights."""
        return None if self.path is None or self.twin is not None else sha256_of_file(self.path)

    @property
    def revision(self) -> str:
        """The exact revision: see `ModelCard`."""
        if self.path is None:
            return f"seed-{self.fresh_seed}"
        if self.twin is not None:
            return f"seed-{self.twin.seed}-{sha256_of_file(self.path)[:12]}"
        return f"sha256-{self.weights_sha256}"

    def build(
        self,
        make: Callable[[], Module],
        convert: Callable[[State], State] = dict,
        *,
        unused: Sequence[str] = (),
    ) -> Module:
        """The model, in evaluation mode.

        Args:
            make: builds the module with fresh weights, drawn from torch's generator on the CPU.
            convert: from the file's tensors to the module's, by name.
            unused: prefixes of converted names that the module does not have and need not have: heads.

        Raises:
            ModelError: if the file cannot be read, or its tensors are not those of the module: each is named.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.fresh_seed or 0)
            module = make().eval()
        if self.path is not None:
            load_exactly(module, convert(read_tensors(self.path)), self.path.name, unused)
            self.change(module)
        return module.requires_grad_(False)


def read_tensors(path: Path) -> State:
    """The tensors of a safetensors file or of a PyTorch file; of nested dictionaries, the one that holds tensors.

    Raises:
        ModelError: if it is neither, is damaged, or holds something other than tensors and plain containers.
    """
    try:
        open_file(path).close()
        if path.suffix == ".safetensors":
            return load_file(path)
        if path.suffix not in PICKLES:
            raise ModelError(f"it must be a .safetensors file or one of {', '.join(PICKLES)}")
        # Some training scripts stored the state of their sampler beside the weights: arrays of numbers.
        harmless: list[Any] = [np.ndarray, np.dtype]
        harmless += [getattr(np.dtypes, name) for name in dir(np.dtypes) if name.endswith("DType")]
        multiarray = np._core.multiarray  # type: ignore[attr-defined]
        for function in (multiarray._reconstruct, multiarray.scalar):
            # Files of before NumPy 2 have the second name.
            harmless += [function, (function, f"numpy.core.multiarray.{function.__name__}")]
        with torch.serialization.safe_globals(harmless):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, SafetensorError, ImportError) as error:
        raise ModelError(f"cannot read the weights in {path}: {error}") from error
    except Exception as error:
        # Refused by the restricted unpickler.
        raise ModelError(
            f"{path} holds something other than tensors, which could run code when read, and is refused: "
            f"{(str(error).splitlines() or [''])[0]}"
        ) from error
    tensors = _find_tensors(content)
    if tensors is None:
        raise ModelError(f"{path} holds no tensors by name")
    return tensors


def _find_tensors(content: Any) -> State | None:
    if not isinstance(content, Mapping):
        return None
    tensors = {key: value for key, value in content.items() if isinstance(key, str) and torch.is_tensor(value)}
    if tensors and len(tensors) == len(content):
        return tensors
    for key in ("model", "state_dict"):
        if (nested := _find_tensors(content.get(key))) is not None:
            return nested
    return None


def weight_problems(missing: Sequence[str], reshaped: Sequence[str], unexpected: Sequence[str]) -> list[str]:
    """The problems with the names of some weights, a phrase each; empty where there are none."""
    kinds = (("missing", missing), ("of another shape", reshaped), ("unexpected", unexpected))
    return [f"{len(names)} {what}: {shown(sorted(names))}" for what, names in kinds if names]


def load_exactly(module: torch.nn.Module, state: State, source: str, unused: Sequence[str] = ()) -> None:
    """Give a module its weights; nothing may be missing, of another shape or left over.

    Args:
        module: the module.
        state: tensors by the module's names.
        source: where they are from, for the message.
        unused: prefixes of names that may be left over.

    Raises:
        ModelError: otherwise, with the names.
    """
    expected = module.state_dict()
    reshaped = [
        f"{key} (stored {tuple(state[key].shape)}, model {tuple(expected[key].shape)})"
        for key in set(expected) & set(state)
        if state[key].shape != expected[key].shape
    ]
    left_over = [key for key in set(state) - set(expected) if not key.startswith(tuple(unused))]
    problems = weight_problems([key for key in expected if key not in state], reshaped, left_over)
    if problems:
        raise ModelError(f"the weights in {source} are not those of a {type(module).__name__}: {'; '.join(problems)}")
    module.load_state_dict({key: state[key] for key in expected})
