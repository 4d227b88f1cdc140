"""How an encoder is run: which layer, which pooling, which arithmetic."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from audio_compositionality.support.spec import Spec

Pooling = Literal["mean", "cls", "max"]
Precision = Literal["float32", "bfloat16", "float16"]


class EncoderOptions(Spec):
    """How a model is run and its output becomes one vector a clip."""

    layer: int | None = Field(
        None,
        ge=0,
        description="Hidden layer, counted as transformers does: 0 is the input of the first block, k the output of "
        "block k. None is the model's output.",
    )
    pooling: Pooling | None = Field(
        None,
        description="Mean or max over the frames of a clip, or the class token. None is the embedding that the model "
        "itself defines for a clip (PANNs, PaSST, CLAP), and the mean where it defines none.",
    )
    precision: Precision = Field(
        "float32", description="Of the arithmetic, less than float32 by autocast; pooling is always float32."
    )
    compile: bool = Field(False, description="Run it through `torch.compile`: embeddings change by rounding only.")

    @property
    def suffix(self) -> str:
        """What is appended to an encoder's id, so that no result of other options is taken for it."""
        parts = []
        if self.layer is not None:
            parts.append(f"layer={self.layer}")
        if self.pooling is not None:
            parts.append(f"pooling={self.pooling}")
        if self.precision != "float32":
            parts.append(self.precision)
        return f"@{'+'.join(parts)}" if parts else ""


DEFAULT_OPTIONS = EncoderOptions()
