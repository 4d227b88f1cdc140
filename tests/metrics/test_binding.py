"""Binding against SciPy and plain loops, and the properties that its definition implies."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cosine

from audio_compositionality.metrics.binding import binding

from .contract import MetricContract


def example() -> dict[str, Any]:
    """Return arguments of `binding`: an encoder that recognises some bindings, in 40 trials of 8 dimensions."""
    rng = np.random.default_rng(0)
    same, bound = rng.normal(size=(2, 40, 8))
    weights = {"x1": 1, "y1": -1, "x2": 1, "y2": -1, "x3": 0.3, "y3": -0.3}
    return {name: (same + weight * bound + rng.normal(size=(40, 8))).round(3) for name, weight in weights.items()}


class TestContract(MetricContract):
    name = "binding"
    embeddings = ("x1", "y1", "x2", "y2", "x3", "y3")
    origin = ()
    at_constant: ClassVar = {"binding": 0.5, "across": 0.5, "cosine": 0, "across_cosine": 0}


def trials(n: int = 50, dim: int = 12, seed: int = 0) -> np.ndarray:
    """X1, Y1, X2, Y2, X3, Y3 of an encoder that partly tells bindings, [6, n, dim]."""
    rng = np.random.default_rng(seed)
    same, bound = rng.normal(size=(2, n, dim))
    signs = np.array([1, -1, 1, -1, 0.2, -0.2])[:, None, None]
    return same + 0.3 * signs * bound + rng.normal(size=(6, n, dim))


def test_scores_equal_scipy() -> None:
    z = trials()
    expected = {"cosine": [], "across_cosine": []}
    for x1, y1, x2, y2, x3, y3 in z.transpose(1, 0, 2):
        expected["cosine"].append(1 - cosine(x1 - y1, x2 - y2))
        expected["across_cosine"].append(1 - cosine(x1 - y1, x3 - y3))
    result = binding(*z, return_scores=True)
    for name, share in (("cosine", "binding"), ("across_cosine", "across")):
        np.testing.assert_allclose(result[f"scores_{name}"], expected[name], atol=1e-13)
        assert result[share] == np.mean([value > 0 for value in expected[name]])
        assert result[name] == pytest.approx(np.mean(expected[name]), abs=1e-13)
    assert 0.5 < result["across"] < result["binding"] < 1  # the case is neither chance nor trivial
    assert (result["n"], result["binding_chance"]) == (50, 0.5)


def test_without_other_conditions_across_is_none() -> None:
    z = trials()
    result = binding(*z[:4], return_scores=True)
    assert result["across"] is result["across_cosine"] is result["scores_across"] is None
    assert result["scores"] == binding(*z, return_scores=True)["scores"]
    assert "scores" not in binding(*z[:4])


def test_sum_of_words_and_voices_is_at_chance_exactly() -> None:
    rng = np.random.default_rng(2)
    word, other_word, voice, other_voice = rng.normal(size=(4, 30, 64))
    # The sums differ by their rounding alone, which must not count.
    x = (word + voice) + (other_word + other_voice)
    y = (word + other_voice) + (other_word + voice)
    channel = rng.normal(size=(30, 64))
    assert np.abs(x - y).max() > 0
    assert binding(x, y, x + channel, y + channel)["binding"] == 0.5


def test_refuses_one_of_a_pair() -> None:
    z = trials()
    for given_one, missing in (("x3", "y3"), ("y3", "x3")):
        with pytest.raises(ValueError, match=f"{given_one} is given without {missing}"):
            binding(*z[:4], **{given_one: z[4]})
