"""Binding against SciPy and plain loops, and the properties that its definition implies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cosine
from scipy.stats import ortho_group

from audio_compositionality.metrics.binding import binding

from .contract import MetricContract


class TestContract(MetricContract):
    name = "binding"
    embeddings = ("x1", "y1", "x2", "y2", "x3", "y3")


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


def test_a_trial_and_its_exchange_make_chance_exactly() -> None:
    z = trials()
    x1, y1, x2, y2, x3, y3 = z
    exchanged = binding(x1, y1, y2, x2, y3, x3)
    result = binding(*z)
    assert result["binding"] + exchanged["binding"] == pytest.approx(1, abs=1e-12)
    assert result["across"] + exchanged["across"] == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_encoder_is_at_chance_exactly(dtype: type) -> None:
    vector = np.random.default_rng(1).normal(size=16).astype(dtype)
    result = binding(*np.broadcast_to(vector, (6, 7, 16)))
    assert (result["binding"], result["across"], result["cosine"]) == (0.5, 0.5, 0.0)


def test_sum_of_words_and_voices_is_at_chance_exactly() -> None:
    rng = np.random.default_rng(2)
    word, other_word, voice, other_voice = rng.normal(size=(4, 30, 64))
    # The sums differ by their rounding alone, which must not count.
    x = (word + voice) + (other_word + other_voice)
    y = (word + other_voice) + (other_word + voice)
    channel = rng.normal(size=(30, 64))
    assert np.abs(x - y).max() > 0
    assert binding(x, y, x + channel, y + channel)["binding"] == 0.5


def test_oracle_scores_one() -> None:
    rng = np.random.default_rng(3)
    bound = np.eye(40)
    strong = 100 * rng.normal(size=(3, 40, 40))
    result = binding(strong[0] + bound, strong[0], strong[1] + bound, strong[1], strong[2] + bound, strong[2])
    assert result["binding"] == result["across"] == 1
    assert result["cosine"] == pytest.approx(1)


def test_random_encoders_are_near_chance() -> None:
    results = [binding(*np.random.default_rng(seed).normal(size=(6, 90, 32))) for seed in range(25)]
    for name, chance in (("binding", 0.5), ("across", 0.5), ("cosine", 0.0), ("across_cosine", 0.0)):
        assert abs(np.mean([result[name] for result in results]) - chance) < 0.03


def test_score_ignores_scale_rotation_and_translation() -> None:
    z = trials()
    rotation = ortho_group.rvs(12, random_state=4)
    expected = binding(*z)
    assert binding(*(1e-3 * z @ rotation + 1e3)) == pytest.approx(expected, abs=1e-9)
    assert binding(*(z + 1e8)) == pytest.approx(expected, abs=1e-6)
    assert binding(*(1e-200 * z)) == pytest.approx(expected, abs=1e-12)


@given(z=hnp.arrays(np.float64, (6, 3, 2), elements=st.floats(-1e6, 1e6)))
def test_any_finite_input_gives_scores_in_range(z: np.ndarray) -> None:
    result = binding(*z, return_scores=True)
    assert set(result["scores"]) | set(result["scores_across"]) <= {0.0, 0.5, 1.0}
    assert all(-1 <= value <= 1 for value in result["scores_cosine"])


@pytest.mark.parametrize(("given_one", "missing"), [("x3", "y3"), ("y3", "x3")])
def test_refuses_one_of_a_pair(given_one: str, missing: str) -> None:
    z = trials()
    with pytest.raises(ValueError, match=f"{given_one} is given without {missing}"):
        binding(*z[:4], **{given_one: z[4]})


def test_refuses_other_dimensions() -> None:
    z = trials()
    with pytest.raises(ValueError, match=r"one shape .* x3 \(50, 11\), y3 \(50, 12\)"):
        binding(*z[:4], z[4][:, 1:], z[5])
