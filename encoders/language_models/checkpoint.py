"""A checkpoint of a model that answers: its weights in the precision that it runs in, its tokenizer, its templates."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from transformers import AutoProcessor, AutoTokenizer

from audio_compositionality.support.text import first_line

from ..base import ModelError
from ..loading.checkpoints import Checkpoint, quiet
from ..loading.tokenizers import TOKENIZER_FILES, VOCABULARIES

TEMPLATES = ("chat_template.jinja", "chat_template.json")
"""Files of which one may hold the chat template, the newer name first."""


@dataclass(frozen=True)
class LanguageCheckpoint(Checkpoint):
    """A checkpoint of a model that answers."""

    @classmethod
    def of(cls, checkpoint: Checkpoint, part: str | None = None) -> LanguageCheckpoint:
        """The same checkpoint; with the configuration of a part, an attribute of it, where one is named."""
        made = cls(**{field.name: getattr(checkpoint, field.name) for field in fields(Checkpoint)})
        inner = None if part is None else getattr(checkpoint.config, part, None)
        return made if inner is None else replace(made, config=inner)

    @property
    def settings(self) -> tuple[str, ...]:
        """See `Checkpoint`; tokens, template and what ends an answer decide as well."""
        return (*super().settings, *TOKENIZER_FILES, *TEMPLATES, "generation_config.json", "tekken.json")

    @cached_property
    def chat_template(self) -> str | None:
        """The chat template that stands in a file of its own; None where there is none.

        Raises:
            ModelError: the file cannot be had or read.
        """
        for name in TEMPLATES:
            path = self.find(name)
            if path is None:
                continue
            try:
                text = path.read_text("utf-8")
                template = text if path.suffix == ".jinja" else json.loads(text)["chat_template"]
            except (ValueError, KeyError, TypeError) as error:
                raise ModelError(f"cannot read {name}, the chat template of '{self.name}': {error!r}") from error
            return str(template)
        return None

    def load_processor(self) -> Any:
        """The checkpoint's processor: tokenizer, feature extractor and chat template in one.

        Raises:
            ModelError: there is none, or it cannot be read.
        """
        try:
            with quiet(self.source):
                return AutoProcessor.from_pretrained(  # type: ignore[no-untyped-call]
                    self.source, revision=self.commit, trust_remote_code=False
                )
        except Exception as error:
            raise ModelError(f"cannot read the processor of '{self.name}': {first_line(error)}") from error

    def load_chat_tokenizer(self) -> Any:
        """The checkpoint's tokenizer, with its chat template.

        Raises:
            ModelError: there is no tokenizer, it cannot be read, or there is no template.
        """
        if not any(self.find(name) is not None for name in VOCABULARIES):
            raise ModelError(f"'{self.name}' has no tokenizer: there must be tokenizer.json beside config.json")
        try:
            with quiet(self.source):
                tokenizer = AutoTokenizer.from_pretrained(self.source, revision=self.commit, trust_remote_code=False)
        except Exception as error:
            raise ModelError(f"cannot read the tokenizer of '{self.name}': {first_line(error)}") from error
        if self.chat_template is not None:
            tokenizer.chat_template = self.chat_template
        if tokenizer.chat_template is None:
            raise ModelError(
                f"'{self.name}' has no chat template, so it is not known how a question is put to it: there must be "
                f"{TEMPLATES[0]} beside config.json, or one in tokenizer_config.json"
            )
        return tokenizer

    def load_language_model(self, model_class: Any, precision: str, device: torch.device, spread: bool) -> Any:
        """The model in evaluation mode, its weights in a precision and on a device.

        Args:
            model_class: of transformers.
            precision: ``float32``, ``bfloat16`` or ``float16``.
            device: where it computes.
            spread: lay it over all devices that there are instead.

        Raises:
            ModelError: as `Checkpoint.load_model`.
        """
        dtype: torch.dtype = getattr(torch, precision)
        if self.twin is not None:
            # Fresh and permuted weights are made on the CPU; they are the same whatever the model runs on.
            return self.load_model(model_class).to(device=device, dtype=dtype).requires_grad_(False)
        device_map: Any = "auto" if spread else {"": device} if device.type != "cpu" else None
        return self.load_model(model_class, dtype=dtype, device_map=device_map).requires_grad_(False)
