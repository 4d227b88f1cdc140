"""Files and values that are wrong in one way or another, for tests that each is taken or refused, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from audio_compositionality.support.errors import AudioCompositionalityError

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=30),
    st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Lu", "Nd"]), max_size=20),
    st.sampled_from([0, -1, 1.0, 2**63, 10**400, 1e308, float("nan"), "", "..", "../../etc", "<script>", "=1+1"]),
    st.sampled_from(["\x1b[31m", "\u202e", "\ud800", "f" * 64, "F16", "F32"]),
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
)
chunks = st.binary(max_size=20) | st.sampled_from(
    [b"\n", b"\r\n", b'"', b",", b"{", b"}", b"[" * 3_000, b"\xff", b"NaN"]
)
damages = st.tuples(st.floats(0, 1), st.integers(0, 40), chunks)
"""Where in a file something is put, how much is taken out, and what is put there: see `damage`."""


def damage(content: bytes, start: float, length: int, chunk: bytes) -> bytes:
    first = int(start * len(content))
    return content[:first] + chunk + content[first + length :]


def places_of(inside: object, path: tuple = ()) -> list[tuple]:
    """The path of every value within JSON values."""
    items = inside.items() if isinstance(inside, dict) else enumerate(inside) if isinstance(inside, list) else ()
    return [path, *(place for key, value in items for place in places_of(value, (*path, key)))]


def changed(whole: Any, path: tuple, value: object) -> Any:
    """The same JSON values with another one at a place."""
    if not path:
        return value
    whole = copy.deepcopy(whole)
    inside = whole
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return whole


def explorer(cases: int, rng: np.random.Generator, refused: type[Exception], most: int = 1_500) -> Callable[..., None]:
    """`explore(strategy, run)`: run on new cases, each of which may end in one kind of error, and in nothing else.

    An error is one line of fewer than `most` characters.
    """

    def explore(strategy: st.SearchStrategy, run: Callable[[Any], object]) -> None:
        @seed(int(rng.integers(2**32)))
        @settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(strategy)
        def explored(case):
            told = None
            try:
                run(case)
            except refused as error:
                told = str(error)
            assert told is None or (told.isprintable() and 0 < len(told) < most)

        explored()

    return explore


def flipped(content: bytes, most: int | None = None) -> Iterator[bytes]:
    """A file with one bit changed: of the first byte the lowest, of the second the next one, …, or of `most` bytes."""
    for place in range(0, len(content), 1 if most is None else -(-len(content) // most) | 1):
        other = bytearray(content)
        other[place] ^= 1 << place % 8
        yield bytes(other)


def check_flips(content: bytes, read: Callable[[bytes], object], match: str = ".", most: int | None = None) -> None:
    """No byte of a file, or none of `most`, can change without an error of this project."""
    for other in flipped(content, most):
        with pytest.raises(AudioCompositionalityError, match=match) as caught:
            read(other)
        assert str(caught.value).isprintable()
