"""Weights of models that transformers does not have, loaded with every key accounted for.

Published checkpoints of these encoders are mostly PyTorch files. They are read by torch's restricted unpickler, which
builds tensors and plain containers and calls nothing else. If a hash was published, it is checked first.
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
    """The weights from which a listed model is built: a file, or fresh ones.

    Attributes:
        path: the file; None for fresh weights.
        folder: folder of the user's copy, which may also hold a tokenizer; None if the file was downloaded.
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
        """SHA-256 of the file; None for a twin."""
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
        """Build the model in evaluation mode.

        Args:
            make: builds the module with fresh weights, drawn from torch's generator on the CPU.
            convert: converts the file's tensors to the module's, by name.
            unused: prefixes of converted names that the module need not have: heads.

        Raises:
            ModelError: the file cannot be read, or its tensors do not match the module; the message lists them.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.fresh_seed or 0)
            module = make().eval()
        if self.path is not None:
            load_exactly(module, convert(read_tensors(self.path)), self.path.name, unused)
            self.change(module)
        return module.requires_grad_(False)


def read_tensors(path: Path) -> State:
    """Read the tensors of a safetensors or PyTorch file; in nested dictionaries, those in the one that holds tensors.

    Raises:
        ModelError: it is neither, is damaged, or holds anything other than tensors and plain containers.
    """
    try:
        open_file(path).close()
        if path.suffix == ".safetensors":
            return load_file(path)
        if path.suffix not in PICKLES:
            raise ModelError(f"it must be a .safetensors file or one of {', '.join(PICKLES)}")
        # Some training scripts stored the state of their sampler with the weights: arrays of numbers.
        harmless: list[Any] = [np.ndarray, np.dtype]
        harmless += [getattr(np.dtypes, name) for name in dir(np.dtypes) if name.endswith("DType")]
        multiarray = np._core.multiarray  # type: ignore[attr-defined]
        for function in (multiarray._reconstruct, multiarray.scalar):
            # Files written before NumPy 2 have the second name.
            harmless += [function, (function, f"numpy.core.multiarray.{function.__name__}")]
        with torch.serialization.safe_globals(harmless):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, SafetensorError, ImportError) as error:
        raise ModelError(f"cannot read the weights in {path}: {error}") from error
    except Exception as error:
        # Refused by the restricted unpickler.
        raise ModelError(
            f"{path} holds something other than tensors, which could run code when read, so it was not loaded: "
            f"{(str(error).splitlines() or [''])[0]}"
        ) from error
    tensors = _find_tensors(content)
    if tensors is None:
        raise ModelError(f"{path} holds no named tensors")
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
    """Describe problems with the names or shapes of weights, one phrase each; empty if there are none."""
    kinds = (("missing", missing), ("of another shape", reshaped), ("unexpected", unexpected))
    return [f"{len(names)} {what}: {shown(sorted(names))}" for what, names in kinds if names]


def load_exactly(module: torch.nn.Module, state: State, source: str, unused: Sequence[str] = ()) -> None:
    """Load weights into a module; no weight may be missing, of another shape or left over.

    Args:
        module: the module.
        state: tensors by the module's names.
        source: where they are from, for the message.
        unused: prefixes of names that may be left over.

    Raises:
        ModelError: the weights do not match; the message lists the names.
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
        raise ModelError(f"the weights in {source} do not match a {type(module).__name__}: {'; '.join(problems)}")
    module.load_state_dict({key: state[key] for key in expected})
