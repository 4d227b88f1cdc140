"""What hears nothing of the content is at chance in what tasks of invariance rank by, on clips that are rendered."""

import hashlib

import numpy as np
import pytest
import soxr

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recipes.transforms import RECIPE
from audio_compositionality.dataset_builder.scenes.bases import TransformSpec
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import list_tasks, load_task

from ...dataset_builder.sounds.made import made_recordings

RATE = 32_000
TASKS = ("invariance", "onset_invariance")
NUISANCES = ("gain", "noise", "lowpass", "reverb")


@pytest.fixture(scope="module")
def scenes():
    """Rows and clips of 24 bases of one second."""
    return rendered(TransformSpec(bases=24, untransformed=0, duration=1, sample_rate=RATE, rate_range=(2, 6)))


@pytest.fixture(scope="module")
def recordings():
    """The same of 24 recordings of half a second."""
    made = made_recordings(24, seconds=0.5, groups=tuple("abcdefghijkl"))
    return rendered(TransformSpec(sounds=made, bases=24, untransformed=0))


def rendered(settings):
    rendering = load_recipe("transforms").render(settings)
    rows = list(rendering.rows)
    return rows, [rendering.clips(place)[0] for place in range(len(rows))]


def scored(name, data, encoder):
    """Measures, and the columns, of an encoder of waveforms in float32 and rows."""
    task, (rows, clips) = load_task(name), data
    task.settings(rows, {})
    heard = [place for place, row in enumerate(rows) if task.inputs(row, {}).clips]
    z = np.stack([encoder((clips[place] / 32_768).astype(np.float32), rows[place]) for place in heard])
    return task.score(rows, Outputs(clips=z.astype(np.float32)), {}, "cpu", False)


def rms(waveform, row, rate=RATE):
    heard = waveform if rate == RATE else soxr.resample(waveform, RATE, rate)
    return np.sqrt(np.mean(np.square(heard)))[None]


def hashed(waveform, row):
    digest = hashlib.sha256(waveform.tobytes()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(16)


def samples(waveform, row):
    return waveform


def labels(waveform, row):
    """The sources, by a random direction for each timbre, pitch and rate, times their amplitudes: nothing else."""
    total = np.zeros(32)
    for source in row["metadata"]:
        for factor in ("timbre", "pitch", "rate"):
            digest = hashlib.sha256(source[f"{factor}_label"].encode()).digest()
            total += np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(32)
    return total


@pytest.mark.parametrize("name", TASKS)
class TestCheats:
    def test_a_constant_is_exactly_at_chance(self, name, scenes):
        scores = scored(name, scenes, lambda waveform, row: np.full(4, 0.3))
        assert scores.measures[load_task(name).info.ranks_by] == 0

    @pytest.mark.parametrize(("rate", "scale"), [(RATE, np.log), (16_000, lambda x: x)])
    def test_the_level_is_exactly_at_chance_at_any_rate(self, name, rate, scale, scenes):
        scores = scored(name, scenes, lambda waveform, row: scale(rms(waveform, row, rate)))
        assert scores.measures[load_task(name).info.ranks_by] == 0
        # What is not ranked by: it is above every encoder.
        assert scores.measures["invariance" if name == "onset_invariance" else "reverb_invariance"] > 0.99

    @pytest.mark.slow
    @pytest.mark.parametrize("encoder", [hashed, samples])
    def test_a_hash_and_the_samples_are_within_three_standard_errors_of_it(self, name, encoder, scenes):
        scores = scored(name, scenes, encoder)
        ranked = load_task(name).info.ranks_by
        parts = (ranked,) if name == "onset_invariance" else (ranked, *(f"{part}_{ranked}" for part in NUISANCES))
        for part in parts:
            column = scores.columns[f"{part.removesuffix(ranked)}score_{ranked}"]
            error = column.std(ddof=1) / np.sqrt(len(column))
            assert abs(scores.measures[part]) <= 3 * error < 0.7, part

    def test_what_hears_sources_alone_is_best(self, name, scenes):
        scores = scored(name, scenes, labels)
        ranked = load_task(name).info.ranks_by
        assert scores.measures[ranked] == scores.measures["invariance"] == 1
        assert scores.measures["selectivity"] == 1e15
        if name == "invariance":
            assert [scores.measures[f"{part}_{ranked}"] for part in NUISANCES] == [1] * 4


class TestCandidates:
    def test_differ_in_one_factor_of_the_first_source(self, scenes):
        rows, _ = scenes
        bases = {row["base"]: row for row in rows if not row["candidate"] and not row["transform"]}
        factors = []
        for row in rows:
            if row["candidate"] == "same":
                assert row["metadata"] == bases[row["base"]]["metadata"]
                assert row["levels"] == bases[row["base"]]["levels"]
            elif row["candidate"]:
                first, own = row["metadata"][0], bases[row["base"]]["metadata"][0]
                assert {key for key in own if first[key] != own[key]} == {f"{row['candidate']}_label"}
                assert row["metadata"][1:] == bases[row["base"]]["metadata"][1:]
                factors.append(row["candidate"])
        assert {factor: factors.count(factor) for factor in set(factors)} == {"timbre": 8, "pitch": 8, "rate": 8}

    def test_correlations_with_the_samples_are_turned_round_for_half_of_the_bases(self, scenes):
        """Where nothing is moved in time, the samples of exactly half of the bases are nearer to the right clip."""
        locked = TransformSpec(
            bases=12, untransformed=0, duration=1, sample_rate=16_000, rate_range=(2, 6), onset="locked"
        )
        scores = scored("onset_invariance", rendered(locked), samples)
        assert sorted(scores.columns["score_abx"]) == [-1] * 6 + [1] * 6


class TestRecordings:
    """Their sounds cannot be moved in time: against samples stands polarity alone, and the other is another one."""

    def test_are_scored_and_cheats_are_at_chance(self, recordings):
        rows, _ = recordings
        others = [row for row in rows if row["candidate"] == "recording"]
        own = {row["base"]: row for row in rows if not row["candidate"] and not row["transform"]}
        assert len(others) == 24
        assert all(row["label"] != own[row["base"]]["label"] for row in others)
        for encoder in (lambda waveform, row: np.ones(3), rms):
            assert scored("invariance", recordings, encoder).measures["abx"] == 0
        noises = scored("invariance", recordings, samples).columns["gain_score_abx"]
        assert sorted(noises) == [-1] * 12 + [1] * 12
        assert abs(scored("invariance", recordings, hashed).measures["abx"]) < 0.3
        spectra = scored("invariance", recordings, lambda waveform, row: np.abs(np.fft.rfft(waveform))[:1000])
        assert spectra.measures["gain_abx"] == spectra.measures["lowpass_abx"] == 1

    def test_of_two_lengths_are_cut_to_the_shorter(self):
        made = made_recordings(10, seconds=1.0)
        made = type(made)(made.entries, tuple(0.4 + 0.05 * n for n in range(10)), made.rates)
        rendering = RECIPE.render(TransformSpec(sounds=made, bases=10, untransformed=0, transforms=("gain",)))
        lengths = [len(rendering.clips(place)[0]) for place in range(len(rendering.rows))]
        assert all(lengths[first + 5] == lengths[first + 6] <= lengths[first] for first in range(0, len(lengths), 7))
        assert any(lengths[first + 5] < lengths[first] for first in range(0, len(lengths), 7))

    def test_onsets_are_left_out_with_a_reason(self, recordings):
        with pytest.raises(TaskError, match="recordings, whose sounds cannot be moved in time"):
            load_task("onset_invariance").settings(recordings[0], {})

    def test_onsets_alone_pass_over_recordings_and_score_scenes(self, recordings):
        scenes = [{"recording": ""}, {"recording": ""}]
        assert {task.info.name for task in list_tasks() if task.info.passes_over(recordings[0])} == {"onset_invariance"}
        assert not any(task.info.passes_over(scenes) for task in list_tasks())
