"""Sounds by label and condition: which of them blocks have, and how a recording is placed in a clip."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.a_coat_instances import RECIPE, BlockSpec
from audio_compositionality.dataset_builder.scenes.pool import (
    HIGHEST,
    KNOTS,
    LOWEST,
    PAUSES,
    PlacedSounds,
    PlacedSpec,
    SoundPool,
    Use,
    equalise,
    evenly,
    lay_out,
    place_recording,
)
from audio_compositionality.dataset_builder.sounds.entries import related

from ..recipes.recorded import ENGINES, instances, labels_of, unconditioned


def drawn(recordings, **changes):
    """The rows of blocks, and the sounds by their names."""
    spec = BlockSpec(sounds=recordings, **{"blocks": 12, **changes})
    return [one.row for one in RECIPE.draw(spec, recordings)], {entry.id: entry for entry in recordings.entries}


def message(recordings, **changes):
    with pytest.raises(DatasetError) as error:
        drawn(recordings, **changes)
    return str(error.value)


def contexts(row):
    return [*row["context_a_instances"], *row["context_c_instances"]]


class TestBlocks:
    def test_sides_have_the_same_labels_under_unrelated_conditions_and_contexts_others(self):
        rows, entries = drawn(instances(14), blocks=40)
        for row in rows:
            assert not related(row["condition_b"], row["condition_d"])
            for side in "bd":
                of_side = [entries[name] for name in row[f"instances_{side}"]]
                assert {entry.condition for entry in of_side} == {row[f"condition_{side}"]}
                assert [entry.label for entry in of_side] == row["labels"]
            assert len(row["context_a"]) == len(row["context_c"]) == 2
            assert len({*row["labels"], *row["context_a"], *row["context_c"]}) == 12
        assert {entries[name].condition for row in rows for name in contexts(row)} == set(ENGINES)

    def test_everything_is_used_evenly(self):
        rows, entries = drawn(instances(15, each=2), blocks=45)
        # A label that is a class of a block is none of its contexts, whosever turn it is.
        for used, every, most in (
            (Counter(label for row in rows for label in row["labels"]), labels_of(15), 1),
            (Counter(entries[name].label for row in rows for name in contexts(row)), labels_of(15), 2),
            (Counter(row[f"condition_{side}"] for row in rows for side in "bd"), ENGINES, 1),
        ):
            assert set(used) == set(every)
            assert max(used.values()) - min(used.values()) <= most
        used = {name for row in rows for name in (*row["instances_b"], *row["instances_d"], *contexts(row))}
        assert used == set(entries)

    @pytest.mark.parametrize(
        "recordings",
        [
            unconditioned([5] * 12, [f"speaker {place % 5}" for place in range(60)]),
            unconditioned([2] * 12),
            instances(12, conditions=("near", "far"), each=4, group=lambda number: f"take {number}"),
        ],
        ids=["groups", "none", "groups that cross conditions"],
    )
    def test_no_group_is_on_both_sides(self, recordings):
        rows, entries = drawn(recordings, blocks=20)
        for row in rows:
            sides = [{entries[name].group or name for name in row[f"instances_{side}"]} for side in "bd"]
            assert not sides[0] & sides[1]
            assert (row["condition_b"] == "") == (recordings.entries[0].condition == "")


class TestErrors:
    def test_too_few_labels(self):
        assert message(instances(10)) == (
            "made up has 10 labels; 8 classes and 2 × 2 context sources require 12: --set classes=6"
        )
        assert message(instances(3)).endswith(
            "require 12; at least 4 are needed (--set classes=2 --set context_sources=1)"
        )

    def test_labels_with_one_recording(self):
        text = message(unconditioned([3] * 6 + [1] * 7))
        assert "8 classes need labels with two recordings each, of different groups; 6 of 13 have them" in text
        assert "'label 06', 'label 07'" in text
        assert text.endswith("have only one: --set classes=6")

    def test_conditions_that_share_too_few_labels(self):
        without = {(label, condition) for label in labels_of(12)[5:] for condition in ENGINES[2:]}
        assert message(instances(12, without=without)) == (
            "made up has no two unrelated conditions that share 8 labels; 'espeak/f1' and 'flite/awb' share "
            "the most labels, 5: --set classes=5"
        )

        text = message(instances(12, conditions=("espeak/f1", "espeak/m1")))
        assert "has 2 conditions, all related ('espeak/f1' and 'espeak/m1')" in text
        assert "; --set unrelated=false permits related ones" in text
        assert message(instances(12, conditions=("near",))) == "made up has one condition ('near'); two are needed"

    def test_groups_that_forbid_it(self):
        one_speaker = unconditioned([2] * 12, ["speaker"] * 24)
        assert "0 of 12 have them" in message(one_speaker)
        # Of three speakers who say one word with each of the others, two are on one side: one word has no two sides.
        pairs = [(f"{three}{n}", f"{three}{(n + 1) % 3}") for three in "abcd" for n in range(3)]
        triangles = unconditioned([2] * 12, [speaker for pair in pairs for speaker in pair])
        assert drawn(triangles, classes=6)[1]
        assert message(triangles, classes=9, context_sources=1) == (
            "made up: 9 classes need labels with two recordings each, of different groups; the groups of these "
            "recordings do not permit this: --set classes=8, or other groups"
        )


class TestPool:
    def test_the_best_pair_is_that_which_shares_most(self):
        rng = np.random.default_rng(3)
        conditions = [f"{kind}/{n}" for kind in "abc" for n in range(3)]
        cells = [(label, condition) for label in labels_of(12) for condition in conditions]
        without = {cell for cell in cells if rng.random() < 0.5}
        pool = SoundPool(instances(12, conditions=conditions, without=without))
        for unrelated in (True, False):
            counts = {
                pair: len(pool.by_condition[pair[0]].keys() & pool.by_condition[pair[1]].keys())
                for pair in combinations(pool.by_condition, 2)
                if not (unrelated and related(*pair))
            }
            best, pair = pool.best_pair(unrelated=unrelated)
            assert best == max(counts.values()) == counts[tuple(sorted(pair))]
            drawn_pairs = list(pool.pairs(4, Use(), rng, unrelated=unrelated))
            expected = {frozenset(pair) for pair, count in counts.items() if count >= 4}
            assert {frozenset(pair) for pair in drawn_pairs} == expected

    def test_what_was_drawn_least_comes_first(self):
        rng = np.random.default_rng(0)
        use = Counter({"a": 2, "b": 1})
        orders = {tuple(evenly("abcd", use, rng)) for _ in range(50)}
        assert orders == {("c", "d", "b", "a"), ("d", "c", "b", "a")}


RATE = 8_000


def noise(length, seed=0):
    return np.random.default_rng(seed).standard_normal(length)


class TestLayout:
    @pytest.mark.parametrize("length", [100, 2_500, 3_999, 4_001, 9_000])
    def test_the_loudest_part_is_always_heard_and_never_in_the_same_place(self, length):
        recording = 1e-3 * noise(length)
        recording[length // 3] = 5
        places = set()
        for seed in range(20):
            rng = np.random.default_rng(seed)
            clip = lay_out(recording, 4_000, int(RATE * rng.uniform(*PAUSES)), rng.random())
            assert len(clip) == 4_000
            assert clip.max() == 5
            places.add(int(clip.argmax()))
        assert len(places) > 15


class TestFilter:
    def test_its_gain_runs_smoothly_through_the_knots(self):
        gains = np.random.default_rng(1).normal(0, 4, KNOTS)
        pulse = np.zeros(32_000)
        pulse[16_000] = 1
        spectrum = 20 * np.log10(np.abs(np.fft.rfft(equalise(pulse, 16_000, gains))))
        frequencies = np.fft.rfftfreq(32_000, 1 / 16_000)
        knots = np.geomspace(LOWEST, HIGHEST, KNOTS)
        assert np.interp(knots, frequencies, spectrum) == pytest.approx(gains, abs=0.05)
        assert spectrum[frequencies < 40] == pytest.approx(gains[0], abs=0.1)
        within = frequencies > LOWEST
        assert spectrum[within].max() < gains.max() + 0.05
        assert spectrum[within].min() > gains.min() - 0.05
        # Half a cosine is steepest in its middle.
        steepest = np.pi / 2 * np.abs(np.diff(gains)).max() / np.log(knots[1] / knots[0])
        slopes = np.diff(spectrum[within]) / np.diff(np.log(frequencies[within]))
        assert np.abs(slopes).max() < 1.05 * steepest


class TestPlacing:
    def test_levels_are_one_whatever_the_recording(self):
        for length, rate, scale in ((1_000, 8_000, 1e-3), (44_100, 44_100, 0.9)):
            clip = place_recording(scale * noise(length), rate, 4_000, RATE, 4.0, np.random.default_rng(0))
            assert clip.shape == (4_000,)
            assert np.sqrt(np.mean(clip**2)) == pytest.approx(1, abs=1e-12)

    def test_a_lower_rate_is_resampled(self):
        times = np.arange(22_050) / 22_050
        clip = place_recording(np.sin(2 * np.pi * 440 * times), 22_050, 8_000, 8_000, 0.0, np.random.default_rng(0))
        assert np.abs(np.fft.rfft(clip)).argmax() == 440

    def test_silence_is_refused(self):
        for scale, heard in ((0, "no sound at all"), (1e-5, "100 dB below full scale")):
            with pytest.raises(DatasetError, match=rf"^is silent even at its loudest \({heard}\); leave it out"):
                place_recording(scale * noise(50_000), RATE, 4_000, RATE, 4.0, np.random.default_rng(0))

    def test_sources_have_one_level_together_and_must_not_cancel(self):
        sounds = unconditioned([1, 1])
        pool = PlacedSounds(PlacedSpec(sounds=sounds, sample_rate=RATE), sounds)
        clip = pool.together((0, 1), 3)
        assert np.sqrt(np.mean(clip**2)) == pytest.approx(1, abs=1e-12)
        pool.placed = lambda number, *place: (-1) ** number * clip
        with pytest.raises(DatasetError, match=r"made up: 0.wav, 1.wav cancel each other"):
            pool.together((0, 1), 3)
