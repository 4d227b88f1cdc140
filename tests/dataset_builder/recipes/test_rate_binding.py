"""The clips of rate binding: two sources exchange their rates, and nothing else that could tell changes."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes.rate_binding import RECIPE, RateBindingSpec
from audio_compositionality.dataset_builder.sounds.tones import LEAST_APART, PARTIALS, default_voices, steady_tone
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.tasks.base import Outputs
from audio_compositionality.tasks.registry import load_task

FEW = RateBindingSpec(sample_rate=16_000, duration=2, swells=(2, 4, 8), low_notes=(57,))


@pytest.fixture(scope="module")
def few():
    return RECIPE.render(FEW)


@pytest.fixture(scope="module")
def clips(few):
    return np.stack([few.clips(index)[0] for index in range(len(few.rows))])


def test_the_clips_of_a_pair_differ_in_who_has_which_rate(few):
    rows = few.rows
    assert len(rows) == 4 * 2 * 2 * 3 * 2
    assert len({row["id"] for row in rows}) == len(rows)
    for first, second in zip(rows[::2], rows[1::2], strict=True):
        assert (first["faster"], second["faster"]) == ("high", "low")
        assert first["rates"] == second["rates"][::-1]
        assert first["phases"] == second["phases"][::-1]
        assert all(first[name] == second[name] for name in ("group", "timbres", "notes"))
        assert first["rates"][0] < first["rates"][1]
    heard = {
        row["group"]: {timbre for other in rows if other["group"] == row["group"] for timbre in other["timbres"]}
        for row in rows
    }
    assert sum(map(len, heard.values())) == len(set().union(*heard.values())) == 8
    for row in rows:
        RECIPE.check_row(row)


def test_the_clips_of_a_pair_are_equally_loud_at_all_times(clips):
    samples = clips.astype(np.float64) / 32_768
    power = (samples**2).reshape(len(samples), 20, -1).mean(axis=2)
    level = 10 * np.log10(power)
    # Tenths of a second swing over 20 dB; those of a pair are alike at each moment.
    assert np.ptp(level, axis=1).mean() > 10
    assert np.abs(level[::2] - level[1::2]).max() < 1.5
    rms = np.sqrt((samples**2).mean(axis=1))
    np.testing.assert_allclose(rms[::2], rms[1::2], rtol=0.02)
    assert np.abs(samples).max() == pytest.approx(0.9, abs=1e-3)


@pytest.mark.parametrize("name", ["level-statistics", "rms"])
def test_who_hears_levels_alone_is_at_chance(few, clips, name):
    task = load_task("rate_binding")
    embeddings = load_model(name).embed(clips.astype(np.float32) / 32_768, FEW.sample_rate)
    scores = task.score(few.rows, Outputs(clips=embeddings), task.settings(few.rows, {}), "cpu", False)
    clusters = task.samples(few.rows).clusters
    for part in ("unseen", "seen"):
        column = scores.columns[f"{part}_score"]
        means = np.array([column[clusters == cluster].mean() for cluster in np.unique(clusters)])
        error = means.std(ddof=1) / np.sqrt(len(means))
        assert abs(scores.measures[f"{part}_informativeness"]) <= 3 * error + 1e-9
        assert scores.measures[f"{part}_chance"] == 0.5


def test_a_steady_tone_has_the_partials_of_its_voice_and_no_beats():
    for voice in default_voices():
        tone = steady_tone(voice, 57, 100, 16_000, np.random.default_rng(0))
        assert np.sqrt(np.mean(tone**2)) == pytest.approx(1)
        magnitude = np.abs(np.fft.rfft(tone))
        partials = np.flatnonzero(magnitude > 1e-6 * magnitude.max())
        assert 1 <= len(partials) <= PARTIALS
        assert len(partials) == 1 or np.diff(partials).min() >= LEAST_APART
        # Its key, or a voice's octave below.
        assert min(abs(partials[:, None] - np.array([110, 220])).min(axis=0)) <= 3
