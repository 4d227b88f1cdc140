"""Embeddings rounded to 16 bits: what a submission holds, so that its scores can be recomputed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from audio_compositionality.evaluator.results.result import ResultError, read_json
from audio_compositionality.support.text import shortened

MAX_DIM = 8_192
"""Longest embedding that can be submitted."""

MAX_HEADER = 2_000
"""Bytes of the header of the file, which is JSON: names, types and shapes of three tensors, and one digest."""

LARGEST_EXPONENT = 15
"""Values are scaled to less than 2^15: half of what float16 holds, so that none is rounded to infinity, and as far as
can be from 2^-14, below which float16 has fewer than 11 bits."""

EXPONENTS = range(-170, 120)
"""Of the scale: those that embeddings in float32 can have, from 2^-149 to 2^128, and a few more."""

_TYPES = {"values": "F16", "offset": "F32", "scale": "F64"}
_BYTES = {"F16": 2, "F32": 4, "F64": 8}


def clips_digest(ids: Sequence[str]) -> str:
    """SHA-256 of the ids of clips in their order, each with a line end."""
    return hashlib.sha256("".join(f"{id}\n" for id in ids).encode()).hexdigest()


@dataclass(frozen=True)
class RoundedEmbeddings:
    """Embeddings z = offset + scale · value.

    Cosines of differences are indifferent to both. Without them float16 would round away what tells clips apart where
    an encoder has a long mean in common, or overflow.

    Attributes:
        clips: `clips_digest` of the clips; their order is that of the data.
        values: float16 [clips, dim].
        offset: float32 [dim], the mean embedding.
        scale: a power of two.
    """

    clips: str
    values: NDArray[np.float16]
    offset: NDArray[np.float32]
    scale: float

    @classmethod
    def of(cls, ids: Sequence[str], embeddings: NDArray[np.floating]) -> RoundedEmbeddings:
        """Round finite embeddings [clips, dim]; each number is off by at most 2^-11 of itself, or 2^-39 of the largest,
        both measured from the mean."""
        exact = embeddings.astype(np.float64)
        offset = exact.mean(axis=0).astype(np.float32)
        exact -= offset
        largest = float(np.abs(exact).max(initial=0.0))
        scale = math.ldexp(1.0, math.frexp(largest)[1] - LARGEST_EXPONENT) if largest else 1.0
        return cls(clips_digest(ids), (exact / scale).astype(np.float16), offset, scale)

    def restored(self) -> NDArray[np.float64]:
        """The embeddings, [clips, dim]."""
        restored: NDArray[np.float64] = self.values.astype(np.float64) * self.scale + self.offset
        return restored

    def dumps(self) -> bytes:
        """As a file of safetensors: tensors ``values``, ``offset`` and ``scale`` (float64 []), and the digest of the
        clips as ``clips`` in its metadata. Its bytes depend on its content alone (and the version of safetensors)."""
        tensors = {
            "values": np.ascontiguousarray(self.values, "<f2"),
            "offset": np.ascontiguousarray(self.offset, "<f4"),
            "scale": np.array(self.scale, "<f8"),
        }
        return save(tensors, {"clips": self.clips})

    @classmethod
    def loads(cls, content: bytes) -> RoundedEmbeddings:
        """From a file that a stranger wrote: nothing is made of its tensors before its header was checked.

        Raises:
            ResultError: it is no such file: damaged, other names, types or shapes, values that are not finite, or a
                scale that is no power of two.
        """
        digest = _check_header(content)
        try:
            tensors = load(content)
        except SafetensorError as error:
            raise ResultError(f"it is no file of safetensors: {shortened(str(error), 200)}") from None
        values, offset, scale = tensors["values"], tensors["offset"], float(tensors["scale"])
        if not (np.isfinite(values).all() and np.isfinite(offset).all()):
            raise ResultError("its embeddings are not finite")
        if not (0 < scale < math.inf) or math.frexp(scale)[0] != 0.5 or math.frexp(scale)[1] - 1 not in EXPONENTS:
            raise ResultError(f"its scale is {scale!r}, not 2^{EXPONENTS.start} to 2^{EXPONENTS.stop - 1}")
        return cls(digest, values, offset, scale)


def _check_header(content: bytes) -> str:
    """The digest of the clips that a file states; ResultError if it could be anything else than `dumps` writes.

    A file is the length of its header in 8 bytes, the header in JSON, and the tensors (safetensors, "Format").
    """
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or length > min(MAX_HEADER, len(content) - 8):
        raise ResultError(f"its header has {length:,} bytes; at most {MAX_HEADER:,} can be, in a file of as many")
    header = read_json(content[8 : 8 + length])
    if not isinstance(header, dict) or set(header) != {"__metadata__", *_TYPES}:
        raise ResultError(f"its header does not name {', '.join(_TYPES)} and nothing else")
    shapes = {name: _shape_of(name, header[name]) for name in _TYPES}
    clips, dim = shapes["values"] if len(shapes["values"]) == 2 else (0, 0)
    if not (clips >= 1 and 1 <= dim <= MAX_DIM):
        raise ResultError(f"it has {clips:,} embeddings of {dim:,} numbers each; 1 to {MAX_DIM:,} can be")
    if shapes["offset"] != (dim,) or shapes["scale"] != ():
        raise ResultError(f"its offset has the shape {shapes['offset']}, its scale {shapes['scale']}, not ({dim},), ()")
    size = sum(math.prod(shape) * _BYTES[_TYPES[name]] for name, shape in shapes.items())
    if len(content) != 8 + length + size:
        raise ResultError(f"it has {len(content):,} bytes, where its header speaks of {8 + length + size:,}")
    metadata = header["__metadata__"]
    digest = metadata.get("clips") if isinstance(metadata, dict) and len(metadata) == 1 else None
    if not (isinstance(digest, str) and len(digest) == 64 and set(digest) <= set("0123456789abcdef")):
        raise ResultError("its metadata are not the SHA-256 of its clips and nothing else")
    return digest


def _shape_of(name: str, described: Any) -> tuple[int, ...]:
    """The shape of a tensor, from its description in the header."""
    if not isinstance(described, Mapping) or set(described) != {"dtype", "shape", "data_offsets"}:
        raise ResultError(f"its header does not describe {name} as safetensors does")
    shape = described["shape"]
    if described["dtype"] != _TYPES[name]:
        raise ResultError(f"{name} is of type {shortened(str(described['dtype']), 20)}, not {_TYPES[name]}")
    if not isinstance(shape, list) or len(shape) > 2 or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise ResultError(f"{name} has the shape {shortened(repr(shape), 60)}, which it cannot have")
    return tuple(shape)
