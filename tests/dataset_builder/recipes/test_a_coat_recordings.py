"""Quadruples of scenes of recordings: exact steps, even labels and sizes, gains, storage, what is refused."""

from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes.a_coat_recordings import RECIPE, RecordedQuadrupleSpec
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.support.errors import InputError

from .recorded import instances, level, unconditioned

SMALL = RecordedQuadrupleSpec(sounds=unconditioned([2] * 7), quadruples=10, duration=0.75, sample_rate=8_000)


def parts(row):
    return {part: [source["label"] for source in row["metadata"][part]] for part in "ACT"}


class TestRows:
    def test_the_presets_are_of_our_timbres(self):
        sizes = {name: len(RECIPE.render(settings).rows) for name, settings in RECIPE.presets.items()}
        assert sizes == {"mini": 64, "full": 500}
        rows = RECIPE.render(RECIPE.presets["full"]).rows
        assert rows[63] == RECIPE.render(RECIPE.presets["mini"]).rows[63]
        assert rows[63]["id"] == "a_coat_recordings-00063"
        assert {row["domain"] for row in rows} == {"timbres"}

    def test_labels_and_sizes_are_even(self):
        rows = RECIPE.render(SMALL.changed(quadruples=64)).rows
        assert set(Counter(tuple(map(len, parts(row).values())) for row in rows).values()) == {8}
        for which, most in (("T", 1), ("AC", 3)):
            used = Counter(label for row in rows for part in which for label in parts(row)[part]).values()
            assert len(used) == 7
            assert max(used) - min(used) <= most

    def test_all_sources_of_a_quadruple_have_different_labels(self):
        for row in RECIPE.render(SMALL).rows:
            labels = [label for of_part in parts(row).values() for label in of_part]
            assert len(set(labels)) == len(labels)
            for part in "ACT":
                assert all(10 ** (-12 / 20) <= gain <= 1 for gain in row["gains"][part])
                assert len(row["gains"][part]) == len(parts(row)[part])

    def test_recordings_take_the_place_of_timbres(self):
        assert RECIPE.takes_sounds
        settings = RECIPE.of_sounds(RECIPE.presets["mini"], SMALL.sounds, {"part_sources": 1})
        assert (settings.quadruples, settings.part_sources, settings.sounds) == (64, 1, SMALL.sounds)

    def test_more_sources(self):
        settings = SMALL.changed(sounds=instances(12), part_sources=4, quadruples=64)
        sizes = Counter(len(sources) for row in RECIPE.render(settings).rows for sources in parts(row).values())
        assert sizes == dict.fromkeys(range(1, 5), 48)


class TestSound:
    def test_both_steps_are_the_same_samples(self):
        rendering = RECIPE.render(SMALL)
        for index in range(SMALL.quadruples):
            clips = rendering.clips(index)
            assert {clip.dtype.name for clip in clips} == {"int16"}
            a, b, c, d = (clip.astype(int) for clip in clips)
            assert np.array_equal(b - a, d - c)
            assert (b != a).any()
            assert max(np.abs(clip).max() for clip in (a, b, c, d)) == pytest.approx(0.98 * 2**15, abs=1.5)

    def test_levels_are_those_of_the_gains(self):
        settings = SMALL.changed(part_sources=1, level_range=(-20, 10))
        rendering = RECIPE.render(settings)
        for index, row in enumerate(rendering.rows[:4]):
            a, b, c, _ = (clip.astype(int) for clip in rendering.clips(index))
            levels = {part: 20 * np.log10(gains[0]) for part, gains in row["gains"].items()}
            assert level(a) - level(c) == pytest.approx(levels["A"] - levels["C"], abs=0.05)
            assert level(b - a) - level(c) == pytest.approx(levels["T"] - levels["C"], abs=0.05)

    def test_the_same_bits_twice_and_in_longer_data(self):
        longer = SMALL.changed(quadruples=12)
        assert RECIPE.render(longer).rows[:10] == RECIPE.render(SMALL).rows
        pairs = zip(RECIPE.render(SMALL).clips(9), RECIPE.render(longer).clips(9), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs)
        assert RECIPE.render(SMALL.changed(seed=1)).rows != RECIPE.render(SMALL).rows


def test_what_is_built_is_what_is_rendered(tmp_path):
    rendered = RenderedData("mine", {RECIPE.name: SMALL})
    folder = build_dataset(rendered, tmp_path / "data", progress=False)
    stored, fresh = (data.configuration(RECIPE.name) for data in (open_data(str(folder)), rendered))
    assert list(stored.rows) == [dict(row) for row in fresh.rows]
    for one, other in zip(stored.clips(), fresh.clips(), strict=True):
        assert one.id == other.id
        assert np.array_equal(one.waveform, other.waveform)
    assert "10 quadruples A, B = A ∪ T" in (folder / "README.md").read_text("utf-8")


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"metadata": None}, "metadata is None; it has A "),
            (
                {"metadata": {"A": [], "C": [], "T": []}},
                r"metadata is .*; it has A \(a list of 1 or more structures",
            ),
            (
                {"metadata": {"A": ["dog"]}},
                "metadata is .*; it has A .a list of 1 or more structures of label, instance",
            ),
            ({"metadata": {"A": [{"label": "dog", "instance": 1}]}}, "metadata is"),
            ({"gains": []}, r"gains is \[\]; it has A "),
            ({"gains": {part: [1.0] * 9 for part in "ACT"}}, "the gains of A are .*; each source has one, above 0"),
            ({"gains": {part: [0.0] for part in "ACT"}}, "the gains of A are"),
            ({"domain": None}, "domain is None"),
        ],
    )
    def test_rows_of_others(self, changes, message):
        row = next(row for row in RECIPE.render(SMALL).rows if len(row["metadata"]["A"]) == 1)
        RECIPE.check_row(row)
        with pytest.raises(DatasetError, match=f"row {row['id']}: {message}"):
            RECIPE.check_row({**row, **changes})

    @pytest.mark.parametrize(
        ("count", "message"),
        [
            (5, "made up has 5 labels; 2 sources in each of A, C and T need 6: --set part_sources=1"),
            (2, r"made up has 2 labels; .* need 6; 3 are the least \(--set part_sources=1\)"),
        ],
    )
    def test_too_few_labels(self, count, message):
        with pytest.raises(DatasetError, match=message):
            _ = RECIPE.render(SMALL.changed(sounds=unconditioned([1] * count))).rows

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"level_range": (3, 0)}, r"level_range is \(3, 0\); it goes up, within -40 to 40 dB"),
        ],
    )
    def test_settings_out_of_range(self, changes, message):
        with pytest.raises(InputError, match=message):
            SMALL.changed(**changes)
