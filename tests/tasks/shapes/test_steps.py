import numpy as np
import pytest

from audio_compositionality.tasks.shapes.steps import step_plane


def steps(n, dim):
    """Steps with a mean that is not zero, and variance that falls along random directions."""
    rng = np.random.default_rng(0)
    return (rng.normal(size=(2, n, dim)) * np.linspace(3, 1, dim)) @ rng.normal(size=(dim, dim)) + 5


@pytest.mark.parametrize(("n", "dim"), [(20, 7), (5, 30), (1, 3)])
def test_coordinates_and_shares_are_those_of_the_singular_value_decomposition(n, dim):
    ab, cd = steps(n, dim)
    found = step_plane(ab, cd)
    both = np.concatenate([ab, cd])
    _, values, axes = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)
    axes = axes[:2] * np.sign([axis[np.abs(axis).argmax()] for axis in axes[:2]])[:, None]
    expected = (both - both.mean(axis=0)) @ axes.T
    if n == 1:  # two points lie on one line
        expected[:, 1] = values[1] = 0
    np.testing.assert_allclose(np.concatenate([found.ab, found.cd]), expected, atol=1e-10)
    np.testing.assert_allclose(found.variance, values[:2] ** 2 / (values**2).sum(), atol=1e-12)


def test_steps_worked_by_hand():
    """Four steps about (10, 0): 4 apart along the first coordinate, 2 along the second; 16 + 16 of 40, and 4 + 4."""
    found = step_plane(np.array([[14.0, 0], [6, 0]]), np.array([[10.0, 2], [10, -2]]))
    np.testing.assert_allclose(found.ab, [[4, 0], [-4, 0]], atol=1e-12)
    np.testing.assert_allclose(found.cd, [[0, 2], [0, -2]], atol=1e-12)
    assert found.variance == pytest.approx((0.8, 0.2))


@pytest.mark.parametrize("value", [0.0, 0.1, -1e30])
def test_steps_that_are_all_the_same_have_no_variance(value):
    same = np.full((7, 3), value) * np.array([1, 3, 7])
    found = step_plane(same, same)
    assert found.variance == (0, 0)
    assert not found.ab.any()
    assert not found.cd.any()
