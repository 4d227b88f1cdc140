"""A model of transformers that stands in memory, loaded as if it were a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from .partial import PartialCheckpoint
from .weights import State


@dataclass(frozen=True)
class BuiltCheckpoint(PartialCheckpoint):
    """A model with its front end and tokenizer, of which encoders take copies of the parts that they run.

    Attributes:
        model: of transformers.
        extractor: its feature extractor.
        tokenizer: its tokenizer.
        stated_revision: what its cards call it: see `ModelCard`.
    """

    model: Any = None
    extractor: Any = None
    tokenizer: Any = None
    stated_revision: str = ""

    @classmethod
    def of_model(
        cls, model: Any, extractor: Any, tokenizer: Any, *, name: str, revision: str, paradigm: str, licence: str | None
    ) -> BuiltCheckpoint:
        """A checkpoint of a model.

        Args:
            model, extractor, tokenizer: see the attributes.
            name, revision, paradigm, licence: for cards: see `ModelCard`.
        """
        return cls(
            name=name,
            source="",
            commit=None,
            config=model.config,
            paradigm=paradigm,
            licence=licence,
            model=model,
            extractor=extractor,
            tokenizer=tokenizer,
            stated_revision=revision,
        )

    @property
    def revision(self) -> str:
        """What the cards say."""
        return self.stated_revision

    @cached_property
    def weights_sha256(self) -> str | None:
        """None: there is no file."""
        return None

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """There are none."""
        return ()

    def load_feature_extractor(self, wanted: type | None = None) -> Any:
        """The feature extractor, as it is."""
        return self.extractor

    def load_tokenizer(self, vocabulary: int) -> Any:
        """The tokenizer, as it is."""
        return self.tokenizer

    def _read(self) -> State:
        stored = self.model.state_dict()
        return {new: tensor for name, tensor in stored.items() if (new := self.rename(name)) is not None}
