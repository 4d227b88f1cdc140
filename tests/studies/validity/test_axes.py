"""Constructed encoders for the four axes: their parts by hand, and what must hold on few clips."""

from dataclasses import replace

import numpy as np
import pytest

from studies.validity import axes_theory as theory
from studies.validity import simulation
from studies.validity.axes import expected_invariance
from studies.validity.axes_encoders import SMALL, AxesMaterial
from studies.validity.checks import thinned
from studies.validity.simulation import (
    AXIS_DIM,
    COPIES,
    LEVELS,
    simulate_copies,
    simulate_informativeness,
    simulate_invariance,
    simulate_levels,
)


@pytest.fixture(autouse=True, scope="module")
def _quick(one_thread):
    """Small fits are slower in several threads."""


@pytest.fixture(scope="module")
def data():
    return AxesMaterial(SMALL, 0)


class TestTheory:
    """All that must hold does, on few clips."""

    @pytest.mark.slow
    def test_sees_what_it_should(self, data):
        broken = AxesMaterial(SMALL, 0)
        clips = broken.clips["factors"]
        shuffled = np.random.default_rng(0).permutation(len(clips))
        broken.clips["factors"] = replace(clips, sources=clips.sources[shuffled])
        failures = {item.score for item in theory.perfect(broken) if not item.holds}
        assert {"Informativeness", "Equivariance", "Disentanglement"} <= failures

    def test_expected_invariance_is_one_without_noise_and_none_of_noise_alone(self, data):
        assert expected_invariance(data, 0.0) == 1
        assert expected_invariance(data, 1.0) == 0
        assert 0.3 < expected_invariance(data, 0.5) < 0.8


def test_levels_keep_both_ends():
    assert thinned((0.0, 0.1, 0.2, 0.3), 2) == (0.0, 0.2, 0.3)
    assert thinned((0.0, 0.1, 0.2), 1) == (0.0, 0.1, 0.2)


class TestCoverage:
    def test_simulated_copies_have_the_truth_that_they_claim(self):
        blocks = np.arange(20_000) % 5_000
        z, base = simulate_copies(blocks, 0.3, np.random.default_rng(0))
        copies = base >= 0
        moved = np.square(z[copies] - z[base[copies]]).sum(axis=1).mean()
        assert 1 - moved / (2 * AXIS_DIM) == pytest.approx(0.3, abs=0.03)
        assert copies.sum() == COPIES * len(blocks)

    def test_simulated_levels_have_the_share_that_they_claim(self):
        z, labels = simulate_levels(5_000, 0.3, np.random.default_rng(0))
        assert labels.reshape(-1, LEVELS).mean(axis=1) == pytest.approx(np.zeros(5_000), abs=1e-12)
        assert np.square(labels).mean() == pytest.approx(1)
        assert np.corrcoef(z[:, 0], labels)[0, 1] ** 2 == pytest.approx(0.3, abs=0.01)
        noise = z[:, 1].reshape(-1, LEVELS)
        assert np.corrcoef(noise[:, 0], noise[:, 1])[0, 1] == pytest.approx(0.5, abs=0.05)

    @pytest.mark.parametrize("simulate", [simulate_invariance, simulate_informativeness])
    def test_repeats_itself(self, simulate, monkeypatch):
        monkeypatch.setattr(simulation, "CONTEXTS", (32,))
        assert simulate(20, 1, False) == simulate(20, 1, False)
