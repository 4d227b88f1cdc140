"""What stored outputs were computed from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Literal

from audio_compositionality.encoders.base import ModelCard

Kind = Literal["clips", "texts", "answers"]

EMBEDDINGS_VERSION, ANSWERS_VERSION = 4, 3
"""Of the layouts of stores; one of them is a part of every key."""


@dataclass(frozen=True)
class StoreKey:
    """What outputs were computed from: equal keys mean equal outputs, up to rounding.

    Attributes:
        recipe: name of the configuration of the data.
        fingerprint: of the configuration; of texts the SHA-256 of them all.
        kind: ``clips``, ``texts`` or ``answers``.
        model_id, revision, weights_sha256, output_dim, front_end_version: see `ModelCard`.
        layer, pooling, precision: see `EncoderOptions`.
    """

    recipe: str
    fingerprint: str
    kind: Kind
    model_id: str
    revision: str
    weights_sha256: str | None
    output_dim: int | None
    layer: int | None
    pooling: str | None
    precision: str
    front_end_version: int

    @classmethod
    def of(cls, card: ModelCard, recipe: str, fingerprint: str, kind: Kind = "clips") -> StoreKey:
        """The key of a model's outputs."""
        return cls(
            recipe=recipe,
            fingerprint=fingerprint,
            kind=kind,
            model_id=card.id,
            revision=card.revision,
            weights_sha256=card.weights_sha256,
            output_dim=card.output_dim,
            layer=card.options.layer,
            pooling=card.options.pooling,
            precision=card.options.precision,
            front_end_version=card.front_end_version,
        )

    @property
    def schema_version(self) -> int:
        """Of the layout of the store."""
        return ANSWERS_VERSION if self.kind == "answers" else EMBEDDINGS_VERSION

    def dumps(self) -> str:
        """The key as JSON text."""
        return json.dumps({"schema_version": self.schema_version, **asdict(self)}, indent=1) + "\n"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the key as JSON with sorted names and no spaces, in hexadecimal."""
        values = {"schema_version": self.schema_version, **asdict(self)}
        return hashlib.sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
