"""Weights of encoders that transformers does not have: fetched, hash-checked, and loaded with every key accounted for.

Published checkpoints of these encoders are mostly PyTorch files. They are read by torch's restricted unpickler, which
builds tensors and plain containers and calls nothing else, and only after their hash was found to be the published
one, where one is published.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pooch
import torch
from huggingface_hub import hf_hub_download
from huggingface_hub.errors import EntryNotFoundError
from safetensors import SafetensorError
from safetensors.torch import load_file

from audio_compositionality.support.cache import cache_folder
from audio_compositionality.support.text import first_line, weight_problems

State = dict[str, torch.Tensor]
Module = TypeVar("Module", bound=torch.nn.Module)

PICKLES = (".pt", ".pth", ".bin", ".ckpt")


@dataclass(frozen=True)
class WeightsFile:
    """Where the official weights of an encoder are.

    Attributes:
        name: file name.
        source: an https address, or the id of a Hub repository that holds the file.
        size: bytes, about.
        digest: published hash, ``md5:...`` or ``sha256:...``; None where none is published.
    """

    name: str
    source: str
    size: int
    digest: str | None = None

    @property
    def is_hub(self) -> bool:
        """Whether the file is in a repository of the Hugging Face Hub."""
        return "://" not in self.source

    def fetch(self, encoder: str) -> Path:
        """Local path of the file, downloaded first where it is not there; its size and a progress bar are shown.

        Args:
            encoder: the encoder's name, for the message.

        Raises:
            ValueError: if it cannot be had, or what comes does not have the published hash.
        """
        try:
            if self.is_hub:
                return self._fetch_from_hub()
            folder = cache_folder() / "weights"
            if not (folder / self.name).exists():
                print(f"downloading {self.name} ({self.size / 1e6:,.0f} MB) from {self.source}", file=sys.stderr)
            # It would say the same again.
            pooch.get_logger().setLevel("WARNING")
            bar = pooch.HTTPDownloader(progressbar=True, timeout=30)
            return Path(pooch.retrieve(self.source, self.digest, fname=self.name, path=folder, downloader=bar))
        except Exception as error:
            reason = first_line(error)
            raise ValueError(
                f"cannot get {self.name} from {self.source}: {reason.rstrip('.')}. Without network, get it elsewhere "
                f"and pass --encoder {encoder}=/path/to/{self.name}"
            ) from error

    def _fetch_from_hub(self) -> Path:
        if self.digest is None:
            # A file that cannot be checked is better one that cannot hold code, where the repository has both.
            # Without network, the other may be in the cache.
            with suppress(EntryNotFoundError):
                return Path(hf_hub_download(self.source, "model.safetensors"))
        path = Path(hf_hub_download(self.source, self.name))
        check_digest(path, self.digest)
        return path


@dataclass(frozen=True)
class Weights:
    """The weights that a named encoder is built with: a file, or fresh ones.

    Attributes:
        name: registered name of the encoder.
        path: the file; None for fresh weights.
        seed: seed of fresh weights; None for a file.
    """

    name: str
    path: Path | None
    seed: int | None = None

    @property
    def encoder_id(self) -> str:
        """The id of an encoder made of them: that of an untrained one says so."""
        return self.name if self.seed is None else f"untrained:{self.name}"

    @cached_property
    def sha256(self) -> str | None:
        """SHA-256 of the file."""
        return None if self.path is None else file_digest(self.path)

    @property
    def revision(self) -> str:
        """What exactly is run: see `Encoder.revision`."""
        return f"seed-{self.seed}" if self.path is None else f"sha256-{self.sha256}"

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
            ValueError: if the file cannot be read, or its tensors are not those of the module: each is named.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0 if self.seed is None else self.seed)
            module = make().eval()
        if self.path is not None:
            load_exactly(module, convert(read_tensors(self.path)), self.path.name, unused)
        return module.requires_grad_(False)


def read_tensors(path: Path) -> State:
    """The tensors of a safetensors file or of a PyTorch file; of nested dictionaries, the one that holds tensors.

    Raises:
        ValueError: if it is neither, is damaged, or holds something other than tensors and plain containers.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        if path.suffix not in PICKLES:
            raise ValueError(f"it must be a .safetensors file or one of {', '.join(PICKLES)}")
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
        raise ValueError(f"cannot read the weights in {path}: {error}") from error
    except Exception as error:
        # What the restricted unpickler refuses.
        raise ValueError(
            f"{path} holds something other than tensors, which could run code when read, and is refused: "
            f"{(str(error).splitlines() or [''])[0]}"
        ) from error
    tensors = _find_tensors(content)
    if tensors is None:
        raise ValueError(f"{path} holds no tensors by name")
    return tensors


def _find_tensors(content: Any) -> State | None:
    if not isinstance(content, Mapping):
        return None
    tensors = {key: value for key, value in content.items() if isinstance(key, str) and torch.is_tensor(value)}
    if tensors and len(tensors) == len(content):
        return tensors
    for key in ("model", "state_dict"):
        if (found := _find_tensors(content.get(key))) is not None:
            return found
    return None


def load_exactly(module: torch.nn.Module, state: State, source: str, unused: Sequence[str] = ()) -> None:
    """Give a module its weights; nothing may be missing, of another shape or left over.

    Args:
        module: the module.
        state: tensors by the module's names.
        source: where they are from, for the message.
        unused: prefixes of names that may be left over.

    Raises:
        ValueError: otherwise, with the names.
    """
    own = module.state_dict()
    reshaped = [
        f"{key} (stored {tuple(state[key].shape)}, model {tuple(own[key].shape)})"
        for key in set(own) & set(state)
        if state[key].shape != own[key].shape
    ]
    left_over = [key for key in set(state) - set(own) if not key.startswith(tuple(unused))]
    problems = weight_problems([key for key in own if key not in state], reshaped, left_over)
    if problems:
        raise ValueError(f"the weights in {source} are not those of a {type(module).__name__}: {'; '.join(problems)}")
    module.load_state_dict({key: state[key] for key in own})


def file_digest(path: Path, algorithm: str = "sha256") -> str:
    """Hash of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def check_digest(path: Path, digest: str | None) -> None:
    """Compare a file with a published hash, ``md5:...`` or ``sha256:...``.

    Raises:
        ValueError: if they differ.
    """
    if digest is None:
        return
    algorithm, expected = digest.split(":")
    found = file_digest(path, algorithm)
    if found != expected:
        raise ValueError(
            f"{path} has the {algorithm} {found}, but the published file has {expected}: it is damaged, or another. "
            "To run weights of your own in this architecture, save them as .safetensors"
        )
