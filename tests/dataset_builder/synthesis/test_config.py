import dataclasses
import math

import numpy as np
import pytest

from audio_compositionality.dataset_builder import PRESETS, BenchmarkConfig, draw_quadruples, draw_scenes, preset_config
from audio_compositionality.dataset_builder.synthesis.draw import quadruple_row, scene_row
from audio_compositionality.dataset_builder.synthesis.dx7 import Operator, Voice
from audio_compositionality.dataset_builder.synthesis.scenes import ATTRIBUTES
from audio_compositionality.dataset_builder.synthesis.selection import NUM_BINS, entropy_bins


def test_the_presets_have_the_sizes_that_are_documented():
    full, mini = preset_config("full"), preset_config("mini")
    assert (full.quadruples, full.split_sizes) == (2_000, {"train": 8_000, "validation": 1_000, "test": 1_000})
    assert (mini.quadruples, mini.split_sizes) == (64, {"train": 512, "validation": 64, "test": 64})
    assert set(PRESETS) == {"mini", "full"}


def test_classes_worked_by_hand():
    config = BenchmarkConfig()
    # 36..84 in eight bins of 6 semitones: centres 39, 45, …, 81.
    assert config.pitches == (39, 45, 51, 57, 63, 69, 75, 81)
    # 0.2..3 Hz in eight equal ratios of 15^(1/8); the first centre lies half a ratio above 0.2.
    assert config.rates[0] == pytest.approx(0.2 * 15 ** (1 / 16))
    assert config.rates[7] == pytest.approx(3.0 / 15 ** (1 / 16))
    # -26..0 dB in eight bins of 3.25 dB.
    assert config.decibels == pytest.approx([-24.375 + 3.25 * i for i in range(8)])
    assert config.gains[7] == pytest.approx(10 ** (-1.625 / 20))
    assert config.periods[0] == round(32_000 / config.rates[0])


def test_pitch_classes_between_semitones_go_to_the_nearest():
    # 60..65 in four bins of 1.25: centres 60.625, 61.875, 63.125, 64.375.
    config = BenchmarkConfig(num_classes=4, pitch_range=(60, 65), voices=BenchmarkConfig().voices[:4])
    assert config.pitches == (61, 62, 63, 64)


def test_labels_are_distinct_even_where_names_are_not():
    voices = tuple(sine(name, level) for level, name in enumerate(("BELL", "", "BELL", "A", "B", "C", "D", ""), 90))
    assert BenchmarkConfig(voices=voices).labels["timbre"] == ("BELL #1", "#2", "BELL #3", "A", "B", "C", "D", "#8")
    assert all(len(set(labels)) == 8 for labels in BenchmarkConfig().labels.values())


def sine(name: str, level: int) -> Voice:
    return Voice(name=name, operators=(Operator(output_level=level), *[Operator()] * 5))


def test_voices_that_sound_the_same_are_refused():
    voices = (*BenchmarkConfig().voices[:6], sine("ONE", 99), sine("OTHER", 99))
    with pytest.raises(ValueError, match=r"voices 7 \('ONE'\) and 8 \('OTHER'\) are the same sound"):
        BenchmarkConfig(voices=voices)


def test_equal_values_of_other_types_are_the_same_configuration():
    assert (
        BenchmarkConfig(duration=10, seed=np.int64(3)).fingerprint == BenchmarkConfig(duration=10.0, seed=3).fingerprint
    )
    with pytest.raises(TypeError):
        BenchmarkConfig(seed=1.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"duration": float("nan")}, "duration is nan"),
        ({"duration": 1e9}, "a clip lasts 60 s at most"),
        ({"num_classes": 1}, r"num_classes \(K\) is 1"),
        ({"num_classes": 50}, r"num_classes \(K\) is 50"),
        ({"max_sources": 1}, r"max_sources \(N\) is 1"),
        ({"max_sources": 17}, r"max_sources \(N\) is 17"),
        ({"seed": -1}, "seed is -1"),
        ({"num_classes": 7}, "8 voices for K = 7"),
        ({"pitch_range": (60, 64)}, "8 classes of pitch are not distinct"),
        ({"pitch_range": (84, 36)}, "first must be less"),
        ({"pitch_range": (36, 140)}, "MIDI notes run"),
        ({"rate_range": (0, 3)}, "a rate is positive"),
        ({"duration": 4.0}, "duration is 4.0 s; the slowest class"),
        ({"velocity": 0}, "velocity is 0"),
        ({"sample_rate": 100}, "sample_rate is 100"),
        ({"onset": "later"}, "onset is 'later'; choose one of random, locked"),
        ({"level": "loud"}, "level is 'loud'; choose one of shared, clip"),
        ({"quadruples": 50_001}, "quadruples is 50001"),
        ({"test_scenes": 0}, "test_scenes is 0"),
    ],
)
def test_a_configuration_out_of_range_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        BenchmarkConfig(**changes)


def test_an_unknown_preset_names_the_nearest():
    with pytest.raises(ValueError, match="unknown preset 'minni'; did you mean 'mini'"):
        preset_config("minni")


def test_everything_that_changes_a_sample_changes_the_fingerprint():
    base = BenchmarkConfig()
    assert base.fingerprint == BenchmarkConfig().fingerprint
    changes = [
        {"seed": 1},
        {"onset": "locked"},
        {"level": "clip"},
        {"velocity": 99},
        {"voices": base.voices[::-1]},
        {"test_scenes": 999},
    ]
    prints = {dataclasses.replace(base, **change).fingerprint for change in changes}
    assert len(prints | {base.fingerprint}) == len(changes) + 1


@pytest.fixture(scope="module")
def scenes():
    return draw_scenes(BenchmarkConfig())


class TestFullScenes:
    def test_no_scene_is_in_two_splits_or_twice_in_one(self, scenes):
        assert len({scene.key for scene in scenes}) == len(scenes) == 10_000

    def test_splits_have_their_sizes_in_order(self, scenes):
        splits = [scene.split for scene in scenes]
        assert splits == ["train"] * 8_000 + ["validation"] * 1_000 + ["test"] * 1_000
        assert len({scene.id for scene in scenes}) == 10_000

    def test_entropies_are_near_uniform_in_every_split(self, scenes):
        config = BenchmarkConfig()
        for split, size in config.split_sizes.items():
            rows = [scene_row(scene, config) for scene in scenes if scene.split == split][:1_000]
            for attribute in ATTRIBUTES:
                # The attainable values 0, .27-.33, .50-.53 and .67 fall into four of five bins.
                values = [row["entropy"][attribute] for row in rows]
                shares = [
                    sum(low <= value < high for value in values) / len(rows)
                    for low, high in ((0, 0.1), (0.1, 0.4), (0.4, 0.6), (0.6, 0.7))
                ]
                tolerance = 0.01 if size <= 1_000 else 3 * math.sqrt(0.25 * 0.75 / 1_000)
                assert shares == pytest.approx([0.25] * 4, abs=tolerance)

    def test_onsets_lie_within_the_period_and_fill_it(self, scenes):
        periods = BenchmarkConfig().periods
        phases = [
            onset / periods[source.rate]
            for scene in scenes
            for source, onset in zip(scene.sources, scene.onsets, strict=True)
        ]
        assert 0 <= min(phases) < 0.001
        assert 0.999 < max(phases) < 1


def test_full_quadruples_are_balanced():
    config = BenchmarkConfig()
    rows = [quadruple_row(quadruple, config) for quadruple in draw_quadruples(config)]
    assert len(rows) == 2_000
    for attribute in ATTRIBUTES:
        values = [[row["entropy"][attribute]] for row in rows]
        counts = np.bincount(entropy_bins(np.array(values)).ravel(), minlength=NUM_BINS)
        assert counts == pytest.approx([400] * 5, abs=8)


def test_locked_onsets_are_zero():
    config = dataclasses.replace(preset_config("mini"), onset="locked")
    assert all(onset == 0 for scene in draw_scenes(config) for onset in scene.onsets)
