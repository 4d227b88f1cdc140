"""How an encoder is run: which layer, which pooling, which arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

POOLINGS = ("mean", "cls", "max")
PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class EncoderOptions:
    """How a model is run and its output becomes one vector a clip.

    Attributes:
        layer: which hidden layer, counted as transformers does: 0 is the input of the first block, k the output of
            block k. None is the model's output.
        pooling: ``mean`` or ``max`` over the frames of the clip, or ``cls``, the class token. None is the embedding
            that the model itself defines for a clip (PANNs, PaSST, CLAP), and the mean where it defines none.
        precision: ``float32``, or ``bfloat16`` or ``float16`` by autocast; pooling is always float32.
        compile: run the model through `torch.compile`. Embeddings change by rounding only.

    Raises:
        InputError: on a value that is none of these.
    """

    layer: int | None = None
    pooling: str | None = None
    precision: str = "float32"
    compile: bool = False

    def __post_init__(self) -> None:
        if self.layer is not None and (isinstance(self.layer, bool) or not isinstance(self.layer, int)):
            raise InputError(f"layer is {self.layer!r}; it must be a whole number, 0 for the input of the first block")
        if self.pooling is not None:
            _check_choice("pooling", self.pooling, POOLINGS)
        _check_choice("precision", self.precision, PRECISIONS)

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


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} is '{value}': {nearest(str(value), choices)}")


DEFAULT_OPTIONS = EncoderOptions()
