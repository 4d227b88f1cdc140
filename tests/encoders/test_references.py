"""Every wrapper is its model: the embeddings of a reference implementation with the same weights."""

from pathlib import Path

import pytest
from compare import DIRECT, compare_directly, compare_with_fixture, fixtures


@pytest.mark.slow
@pytest.mark.parametrize("encoder", fixtures())
def test_same_embeddings_as_the_reference_had(encoder: str, tmp_path: Path) -> None:
    # Of four clips the sweep through all frequencies and the soft chord: whole networks take seconds for each.
    comparison = compare_with_fixture(encoder, tmp_path, rows=(1, 3))
    assert comparison.relative < 1e-4
    assert comparison.spread < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("encoder", list(DIRECT))
def test_same_embeddings_as_the_reference_beside_it(encoder: str, tmp_path: Path) -> None:
    comparison = compare_directly(encoder, tmp_path)
    assert comparison.relative < 1e-4
    assert comparison.spread < 1e-3
