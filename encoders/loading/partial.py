"""A part of a checkpoint's model: only the files that hold its weights are fetched, read and hashed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from transformers import initialization

from audio_compositionality.support.files import sha256_of_file
from audio_compositionality.support.text import first_line

from ..base import ModelError
from .checkpoints import Checkpoint, quiet
from .downloads import WeightsFile, check_digest
from .tokenizers import TOKENIZER_FILES
from .weights import State, load_exactly, read_tensors

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
        rename_text: likewise of a text tower, which is loaded apart and later; None where there is none. Of a folder
            its files, and those of the tokenizer, are in the revision too; of the Hub the commit names them, and they
            are fetched with the first text.
    """

    rename: Callable[[str], str | None] = str
    rename_text: Callable[[str], str | None] | None = None

    @classmethod
    def of(
        cls,
        checkpoint: Checkpoint,
        rename: Callable[[str], str | None],
        rename_text: Callable[[str], str | None] | None = None,
    ) -> PartialCheckpoint:
        """The part of a checkpoint whose tensors `rename` names; of a part another part."""
        if isinstance(checkpoint, PartialCheckpoint):
            return replace(checkpoint, rename=rename, rename_text=rename_text)
        base = {field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)}
        return cls(**base, rename=rename, rename_text=rename_text)

    @property
    def settings(self) -> tuple[str, ...]:
        """See `Checkpoint`; with a text tower also the files of the tokenizer."""
        return super().settings if self.rename_text is None else (*super().settings, *TOKENIZER_FILES)

    def load_part(self, model_class: Any, config: Any, computed: tuple[str, ...] = ()) -> Any:
        """The part in float32 and evaluation mode, with its stored weights or with those of its twin.

        Args:
            model_class: class of the part, from transformers.
            config: its configuration.
            computed: names of buffers that follow from the configuration, which need not be stored.

        Raises:
            ModelError: if the weights cannot be had or read, or are not exactly those of the part: each is named.
        """
        if self.fresh_seed is not None:
            return replace(self, config=config).load_model(model_class)
        try:
            with quiet(self.source), initialization.no_init_weights():
                module = model_class._from_config(config, dtype=torch.float32)
        except Exception as error:
            raise ModelError(f"the configuration of '{self.name}' describes no model: {first_line(error)}") from error
        for owner in module.modules():
            for buffer in {*computed} & {*dict(owner.named_buffers(recurse=False))}:
                owner.register_buffer(buffer, owner.get_buffer(buffer), persistent=False)
        load_exactly(module, self._read(), f"'{self.name}'")
        self.change(module)
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
                raise ModelError(f"cannot read the weights of '{self.name}' in {file}: {error}") from error
        return state

    def _is_used(self, name: str) -> bool:
        if self.rename(name) is not None:
            return True
        return self.commit is None and self.rename_text is not None and self.rename_text(name) is not None

    def _find_other(self) -> Path:
        """The PyTorch file of a repository of `PUBLISHED_PICKLES`, or of a folder with a copy of it."""
        for repository, published in PUBLISHED_PICKLES.items():
            if self.commit is not None and self.source != repository:
                continue
            path = self.find(published.name)
            if path is None or (self.commit is None and f"sha256:{sha256_of_file(path)}" != published.digest):
                continue
            check_digest(path, published.digest)
            return path
        return super()._find_other()
