"""A part of a checkpoint's model: only the files that hold its weights are fetched, read and hashed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
from safetensors import SafetensorError, safe_open
from transformers import initialization

from .checkpoints import Checkpoint, load_model, quiet, weight_files, weights_digest
from .weights import State, WeightsFile, check_digest, file_digest, load_exactly, read_tensors, shown

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

PUBLISHED_PICKLES = {
    "laion/clap-htsat-unfused": WeightsFile(
        "pytorch_model.bin",
        "laion/clap-htsat-unfused",
        614_525_833,
        "sha256:1cd3c601bc4afe0fa87be3de4c13dd2cfadd249fac1e29acf74a9b296c3219bb",
    ),
}
"""Repositories whose only weights are a PyTorch file. It is read, by torch's restricted unpickler, if it has the
published hash."""


@dataclass(frozen=True)
class PartialCheckpoint(Checkpoint):
    """A checkpoint of which a part is used.

    Attributes:
        rename: from the name of a stored tensor to its name in the part; None for a tensor of another part.
    """

    rename: Callable[[str], str | None] = str

    @classmethod
    def of(cls, checkpoint: Checkpoint, rename: Callable[[str], str | None]) -> PartialCheckpoint:
        """The part of a checkpoint."""
        return cls(checkpoint.id, checkpoint.source, checkpoint.commit, checkpoint.config, checkpoint.seed, rename)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The files that hold weights of the part, fetched from the Hub where they are not there yet.

        Raises:
            ValueError: if there are none, one is missing, cannot be had, or is a pickle of unknown content.
        """
        if (single := self._find(WEIGHTS)) is not None:
            return (single,)
        if (index := self._find(INDEX)) is not None:
            return tuple(self._find_shard(name) for name in self._shards(index))
        if (pickle := self._find_published()) is not None:
            return (pickle,)
        if self.commit is not None:
            raise ValueError(f"'{self.source}' on the Hugging Face Hub has no safetensors weights")
        names = [file.name for file in weight_files(Path(self.source))]
        raise ValueError(f"'{self.id}' holds {shown(names)}, but neither {WEIGHTS} nor {INDEX}")

    @cached_property
    def weights_sha256(self) -> str | None:
        """SHA-256 of `files`, of several that of their digests in the order of names; None of fresh weights."""
        return None if self.seed is not None else weights_digest(self.files)

    def load(self, model_class: Any, config: Any) -> Any:
        """The part in float32 and evaluation mode, with its stored weights or with fresh ones.

        Args:
            model_class: class of the part, from transformers.
            config: its configuration.

        Raises:
            ValueError: if the weights cannot be had or read, or are not exactly those of the part: each is named.
        """
        if self.seed is not None:
            return load_model(replace(self, config=config), model_class)
        with quiet(self.source), initialization.no_init_weights():
            module = model_class._from_config(config, dtype=torch.float32)
        load_exactly(module, self._read(), f"'{self.id}'")
        return module.eval().requires_grad_(False)

    def _read(self) -> State:
        """The tensors of the part, by its names, in the precision that they are stored in."""
        state: State = {}
        for file in self.files:
            if file.suffix != ".safetensors":
                stored = read_tensors(file)
                state |= {new: stored[name] for name in stored if (new := self.rename(name)) is not None}
                continue
            try:
                with safe_open(file, "pt") as tensors:
                    names = {name: self.rename(name) for name in tensors.keys()}  # noqa: SIM118 (no mapping)
                    state |= {new: tensors.get_tensor(name) for name, new in names.items() if new is not None}
            except (OSError, SafetensorError) as error:
                raise ValueError(f"cannot read the weights of '{self.id}' in {file}: {error}") from error
        return state

    def _shards(self, index: Path) -> list[str]:
        try:
            weight_map = json.loads(index.read_text())["weight_map"]
            names = sorted({file for name, file in weight_map.items() if self.rename(name) is not None})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"cannot read {index}, the index of the weights of '{self.id}': {error!r}") from error
        if not names:
            raise ValueError(f"{index} lists no weights of the part of '{self.id}' that embeds")
        return names

    def _find_shard(self, name: str) -> Path:
        path = self._find(name)
        if path is None:
            raise ValueError(f"'{self.id}' has no {name}, which holds weights of the part that embeds")
        return path

    def _find_published(self) -> Path | None:
        """The PyTorch file of a repository of `PUBLISHED_PICKLES`, or of a folder with a copy of it."""
        for repository, published in PUBLISHED_PICKLES.items():
            if self.commit is not None and self.source != repository:
                continue
            path = self._find(published.name)
            if path is None or (self.commit is None and f"sha256:{file_digest(path)}" != published.digest):
                continue
            check_digest(path, published.digest)
            return path
        return None

    def _find(self, name: str) -> Path | None:
        """Local path of a file of the checkpoint, None if it has no such file."""
        if self.commit is None:
            path = Path(self.source) / name
            return path if path.is_file() else None
        # A commit does not change, so what the cache knows of it needs no network.
        cached = try_to_load_from_cache(self.source, name, revision=self.commit)
        if cached is not None:
            return Path(cached) if isinstance(cached, str) else None
        try:
            return Path(hf_hub_download(self.source, name, revision=self.commit))
        except Exception as error:
            if isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
                return None
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ValueError(
                f"cannot get {name} of '{self.source}' from the Hugging Face Hub: {reason} Without network, pass a "
                "local folder that holds the configurations and the weights"
            ) from error
