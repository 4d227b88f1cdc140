"""Quadruples and blocks: steps are exact in samples, levels those of the gains, labels and sizes are used evenly."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recipes.a_coat_instances import BlockSpec
from audio_compositionality.dataset_builder.recipes.a_coat_recordings import RecordedQuadrupleSpec
from audio_compositionality.dataset_builder.rendered import RenderedData

from .recorded import RATE, instances, level, unconditioned
from .toy import as_others_have_it

SMALL = RecordedQuadrupleSpec(sounds=unconditioned([2] * 7), quadruples=10, duration=0.75, sample_rate=RATE)

BLOCKS = BlockSpec(
    sounds=instances(7), blocks=3, classes=3, context_sources=2, duration=0.75, sample_rate=RATE, snr_db=-3
)


def rendered(spec, name="a_coat_recordings"):
    return load_recipe(name).render(spec)


class TestTones:
    def test_the_level_is_that_of_a_quadruple_or_of_each_clip(self, small_data):
        spec = small_data.settings["a_coat"]
        shared, separate = (rendered(of, "a_coat") for of in (spec, spec.changed(level="clip")))
        assert shared.rows == separate.rows
        steps = [[one.clips(row) for row in range(len(one.rows))] for one in (shared, separate)]
        are_equal = [[np.array_equal(b - a, d - c) for a, b, c, d in of_level] for of_level in steps]
        assert all(are_equal[0])
        assert not all(are_equal[1])


def parts(row):
    return {part: [source["label"] for source in row["metadata"][part]] for part in "ACT"}


class TestSounds:
    def test_labels_and_sizes_are_even_and_labels_of_a_quadruple_differ(self):
        rows = rendered(SMALL.changed(quadruples=64)).rows
        assert set(Counter(tuple(map(len, parts(row).values())) for row in rows).values()) == {8}
        for which, most in (("T", 1), ("AC", 3)):
            used = Counter(label for row in rows for part in which for label in parts(row)[part]).values()
            assert len(used) == 7
            assert max(used) - min(used) <= most
        for row in rows:
            labels = [label for of_part in parts(row).values() for label in of_part]
            assert len(set(labels)) == len(labels)
            for part in "ACT":
                assert all(10 ** (-12 / 20) <= gain <= 1 for gain in row["gains"][part])
                assert len(row["gains"][part]) == len(parts(row)[part])

    def test_both_steps_are_the_same_samples(self):
        rendering = rendered(SMALL)
        for index in range(SMALL.quadruples):
            a, b, c, d = (clip.astype(int) for clip in rendering.clips(index))
            assert np.array_equal(b - a, d - c)
            assert (b != a).any()
            assert max(np.abs(clip).max() for clip in (a, b, c, d)) == pytest.approx(0.98 * 2**15, abs=1.5)

    def test_levels_are_those_of_the_gains(self):
        rendering = rendered(SMALL.changed(part_sources=1, level_range=(-20, 10)))
        for index, row in enumerate(rendering.rows[:4]):
            a, b, c, _ = (clip.astype(int) for clip in rendering.clips(index))
            levels = {part: 20 * np.log10(gains[0]) for part, gains in row["gains"].items()}
            assert level(a) - level(c) == pytest.approx(levels["A"] - levels["C"], abs=0.05)
            assert level(b - a) - level(c) == pytest.approx(levels["T"] - levels["C"], abs=0.05)


def block_clips(spec=BLOCKS, index=0):
    """The clips of a block by the column that they are in."""
    rendering, clips = rendered(spec, "a_coat_instances"), {}
    names = load_recipe("a_coat_instances").clip_names(rendering.rows[index])
    for name, clip in zip(names, rendering.clips(index), strict=True):
        clips.setdefault(name.partition("/")[0], []).append(clip)
    return {name: np.stack(of_name) for name, of_name in clips.items()}


class TestBlocks:
    def test_recordings_have_more_classes_and_larger_contexts_unless_another_number_is_set(self):
        recipe, sounds = load_recipe("a_coat_instances"), instances(12)
        spec = recipe.of_sounds(recipe.presets["mini"], sounds, {"seed": 3})
        assert (spec.classes, spec.context_sources, spec.blocks, spec.seed) == (8, 2, 24, 3)
        assert recipe.of_sounds(spec, sounds, {"classes": 5}).classes == 5

    @pytest.mark.parametrize("index", [2])
    def test_differences_are_the_instances_alone(self, index):
        clips = {name: clip.astype(int) for name, clip in block_clips(index=index).items()}
        assert {name: clip.shape for name, clip in clips.items()} == {
            **dict.fromkeys("AC", (1, 6_000)),
            **dict.fromkeys(("B", "D", "alone_b", "alone_d"), (3, 6_000)),
        }
        assert np.array_equal(clips["B"] - clips["A"], clips["alone_b"])
        assert np.array_equal(clips["D"] - clips["C"], clips["alone_d"])
        assert not np.array_equal(clips["alone_b"], clips["alone_d"])
        assert max(np.abs(clip).max() for clip in clips.values()) == pytest.approx(0.98 * 2**15, abs=1.5)

    @pytest.mark.parametrize("snr", [8])
    def test_levels_are_those_that_are_asked_for(self, snr):
        clips = block_clips(BLOCKS.changed(snr_db=snr))
        for context, alone in (("A", "alone_b"), ("C", "alone_d")):
            for clip in clips[alone]:
                assert level(clip) - level(clips[context]) == pytest.approx(snr, abs=0.01)

    def test_a_stored_row_with_fewer_clips_than_classes_is_refused(self, tmp_path):
        folder = build_dataset(RenderedData("mine", {"a_coat_instances": BLOCKS}), tmp_path / "data", progress=False)
        as_others_have_it(folder)
        shard = next((folder / "a_coat_instances").glob("*.parquet"))
        table = pq.read_table(shard)
        rows = table.to_pylist()
        assert [len(row["D"]) for row in rows] == [3, 3, 3]
        rows[1]["D"] = rows[1]["D"][:2]
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), shard)
        with pytest.raises(DatasetError, match="row a_coat_instances-00001 lacks the clip 'D/2'"):
            _ = open_data(str(folder)).configuration("a_coat_instances").clip_ids
