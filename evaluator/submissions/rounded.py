"""Embeddings rounded to 16 bits: what a submission holds, so that its scores can be recomputed."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

LARGEST_EXPONENT = 15
"""Values are scaled to less than 2^15: half of what float16 holds, so that none is rounded to infinity, and as far as
can be from 2^-14, below which float16 has fewer than 11 bits."""

EXPONENTS = range(-170, 120)
"""Of the scale: those that embeddings in float32 can have, from 2^-149 to 2^128, and a few more."""


@dataclass(frozen=True)
class RoundedEmbeddings:
    """Embeddings z = offset + scale · value.

    Both scores are indifferent to the scale, A-COAT to the offset too. Without them float16 would round away what tells
    clips apart where an encoder has a long mean in common, or overflow.

    Attributes:
        ids: ``<row id>/<audio column>`` of each clip.
        values: float16 [clips, dim].
        offset: float32 [dim], the mean embedding.
        scale: a power of two.
    """

    ids: tuple[str, ...]
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
        return cls(tuple(ids), (exact / scale).astype(np.float16), offset, scale)

    @classmethod
    def parse(cls, ids: Sequence[str], values: NDArray[np.float16], offset: str, scale: str) -> RoundedEmbeddings:
        """From a file's columns, and its metadata as text.

        Raises:
            ValueError: they do not fit each other, or are not finite.
        """
        try:
            mean = np.frombuffer(base64.b64decode(offset, validate=True), "<f4").astype(np.float32)
        except ValueError as error:
            raise ValueError(f"the offset of the embeddings cannot be read: {error}") from None
        if mean.shape != values.shape[1:]:
            raise ValueError(f"the offset has {len(mean)} numbers, the embeddings {values.shape[1]}")
        if not (np.isfinite(mean).all() and np.isfinite(values).all()):
            raise ValueError("the embeddings are not finite")
        if not re.fullmatch(r"2\^(0|-?[1-9]\d{0,2})", scale) or int(scale[2:]) not in EXPONENTS:
            raise ValueError(f"the scale of the embeddings is not 2^{EXPONENTS.start} to 2^{EXPONENTS.stop - 1}")
        return cls(tuple(ids), values, mean, math.ldexp(1.0, int(scale[2:])))

    def restored(self) -> NDArray[np.float64]:
        """The embeddings, [clips, dim]."""
        restored: NDArray[np.float64] = self.values.astype(np.float64) * self.scale + self.offset
        return restored

    def dumps(self) -> bytes:
        """As a Parquet file; its bytes depend on its content alone (and the version of pyarrow).

        Columns ``id`` and ``embedding``, uncompressed, without dictionaries, so that what is read is never larger than
        the file. The schema's metadata hold ``offset``, base64 of little-endian float32, and ``scale`` as "2^-7".
        """
        vector = pa.list_(pa.field("element", pa.float16(), nullable=False), self.values.shape[1])
        metadata = {
            "offset": base64.b64encode(self.offset.astype("<f4").tobytes()).decode("ascii"),
            "scale": f"2^{math.frexp(self.scale)[1] - 1}",
        }
        fields = [pa.field("id", pa.string(), nullable=False), pa.field("embedding", vector, nullable=False)]
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self.values.reshape(-1)), type=vector)
        table = pa.Table.from_arrays([pa.array(self.ids, pa.string()), vectors], schema=pa.schema(fields, metadata))
        stream = io.BytesIO()
        pq.write_table(table, stream, compression="none", use_dictionary=False, write_statistics=False)
        return stream.getvalue()
