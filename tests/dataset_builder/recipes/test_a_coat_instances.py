"""Blocks of A-COAT across instances: what rows say, that differences are exact, levels, storage, what is refused."""

import dataclasses
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes.a_coat_instances import RECIPE, BlockSpec
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.sounds.tones import default_timbres

from .recorded import instances, level
from .toy import as_others_have_it

SMALL = BlockSpec(
    sounds=instances(7), blocks=3, classes=3, context_sources=2, duration=0.75, sample_rate=8_000, snr_db=-3
)


def clips_of(settings, index=0):
    """The clips of a block by the column that they are in."""
    rendering = RECIPE.render(settings)
    clips = {}
    for name, clip in zip(RECIPE.clip_names(rendering.rows[index]), rendering.clips(index), strict=True):
        clips.setdefault(name.partition("/")[0], []).append(clip)
    return {name: np.stack(of_name) for name, of_name in clips.items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The small settings as they are stored."""
    folder = tmp_path_factory.mktemp("built") / "data"
    return build_dataset(RenderedData("mine", {RECIPE.name: SMALL}), folder, progress=False)


class TestRows:
    def test_the_presets_are_of_our_timbres(self):
        sizes = {name: len(RECIPE.render(settings).rows) for name, settings in RECIPE.presets.items()}
        assert sizes == {"mini": 24, "full": 96}
        rows = RECIPE.render(RECIPE.presets["full"]).rows
        assert rows[7]["id"] == "a_coat_instances-00007"
        assert {(row["split"], row["domain"], len(row["labels"])) for row in rows} == {("test", "timbres", 6)}
        for row in rows:
            assert len({*row["labels"], *row["context_a"], *row["context_c"]}) == 8
            assert row["condition_b"] != row["condition_d"]
        for parts in (("labels",), ("context_a", "context_c")):
            used = Counter(label for row in rows for part in parts for label in row[part]).values()
            assert max(used) - min(used) <= 2

    def test_they_name_what_is_heard(self):
        row = RECIPE.render(SMALL).rows[1]
        assert list(row) == ["id", "split", *(name for name in RECIPE.features(SMALL) if name in row and name != "id")]
        for side in "bd":
            expected = [f"{label}/{row[f'condition_{side}']}/0.wav" for label in row["labels"]]
            assert row[f"instances_{side}"] == expected
        for part in "ac":
            names = row[f"context_{part}_instances"]
            assert [name.partition("/")[0] for name in names] == row[f"context_{part}"]
        assert (row["level_db"], row["eq_db"], row["domain"]) == (-3, 4, "recordings")
        named = RECIPE.render(SMALL.changed(domain="words")).rows[1]
        assert named == {**row, "domain": "words"}

    def test_recordings_have_more_classes_and_larger_contexts(self):
        assert RECIPE.takes_sounds
        recordings = instances(12)
        settings = RECIPE.of_sounds(RECIPE.presets["mini"], recordings, {"seed": 3})
        assert (settings.classes, settings.context_sources, settings.blocks, settings.seed) == (8, 2, 24, 3)
        assert settings.sounds is recordings
        assert RECIPE.of_sounds(settings, recordings, {"classes": 5}).classes == 5


class TestSound:
    @pytest.mark.parametrize("index", [0, 2])
    def test_differences_are_the_instances_alone(self, index):
        clips = clips_of(SMALL, index)
        assert {name: clip.shape for name, clip in clips.items()} == {
            **dict.fromkeys("AC", (1, 6_000)),
            **dict.fromkeys(("B", "D", "alone_b", "alone_d"), (3, 6_000)),
        }
        assert all(clip.dtype == np.int16 for clip in clips.values())
        wide = {name: clip.astype(int) for name, clip in clips.items()}
        assert np.array_equal(wide["B"] - wide["A"], wide["alone_b"])
        assert np.array_equal(wide["D"] - wide["C"], wide["alone_d"])
        assert not np.array_equal(wide["alone_b"], wide["alone_d"])
        largest = max(np.abs(clip).max() for clip in wide.values())
        assert largest == pytest.approx(0.98 * 2**15, abs=1.5)

    @pytest.mark.parametrize("snr", [-3, 0, 8])
    def test_levels_are_those_that_are_asked_for(self, snr):
        clips = clips_of(SMALL.changed(snr_db=snr))
        for context, alone in (("A", "alone_b"), ("C", "alone_d")):
            for clip in clips[alone]:
                assert level(clip) - level(clips[context]) == pytest.approx(snr, abs=0.01)

    def test_a_channel_of_its_own_for_each_source_and_none_without_decibels(self):
        plain, filtered = (clips_of(SMALL.changed(eq_db=eq)) for eq in (0, 6))
        ratios = [
            np.abs(np.fft.rfft(one))[100:2_000:50] / np.abs(np.fft.rfft(other))[100:2_000:50]
            for one, other in zip(filtered["alone_b"], plain["alone_b"], strict=True)
        ]
        assert np.std(20 * np.log10(ratios)) > 1

    def test_the_same_bits_twice_and_others_for_another_seed(self):
        first, second = clips_of(SMALL), clips_of(SMALL.changed(sounds=instances(7)))
        assert all(np.array_equal(first[name], second[name]) for name in first)
        other = clips_of(SMALL.changed(seed=1))
        assert not any(np.array_equal(first[name], other[name]) for name in first)

    def test_more_blocks_change_none(self):
        more = SMALL.changed(blocks=5)
        assert RECIPE.render(more).rows[:3] == RECIPE.render(SMALL).rows
        first, second = clips_of(SMALL, 2), clips_of(more, 2)
        assert all(np.array_equal(first[name], second[name]) for name in first)

    def test_recordings_are_brought_to_the_rate(self):
        clips = clips_of(SMALL.changed(sounds=instances(7, rate=22_050), sample_rate=16_000))
        assert clips["A"].shape == (1, 12_000)

    def test_a_silent_recording_is_named(self):
        recordings = dataclasses.replace(SMALL.sounds)
        object.__setattr__(recordings, "waveform", lambda index: (np.zeros(4_000), 8_000))
        rendering = RECIPE.render(SMALL.changed(sounds=recordings, seed=5))
        with pytest.raises(DatasetError, match=r"^made up: recording 'label \d\d/\w+/\w+/0\.wav' is silent where it"):
            rendering.clips(0)


class TestStored:
    def test_samples_and_rows_are_those_that_are_rendered(self, built):
        stored = open_data(str(built)).configuration(RECIPE.name)
        rendered = RenderedData("mine", {RECIPE.name: SMALL}).configuration(RECIPE.name)
        assert list(stored.rows) == [dict(row) for row in rendered.rows]
        assert stored.fingerprint == rendered.fingerprint
        assert stored.clip_ids == rendered.clip_ids
        assert len(stored.clip_ids) == 3 * (2 + 4 * 3)
        for one, other in zip(stored.clips(), rendered.clips(), strict=True):
            assert (one.id, one.sample_rate, one.problem) == (other.id, 8_000, None)
            assert np.array_equal(one.waveform, other.waveform)

    def test_datasets_reads_the_configuration(self, built):
        rows = load_dataset(str(built), RECIPE.name, split="test")
        assert rows.num_rows == 3
        assert list(rows.features) == list(RECIPE.features(SMALL))
        assert rows.features["B"].feature.sampling_rate == 8_000
        shard = next((built / RECIPE.name).glob("*.parquet"))
        table = pq.read_table(shard, columns=["D", "labels"]).to_pylist()
        assert [len(row["D"]) for row in table] == [3, 3, 3]

    def test_a_row_with_fewer_clips_than_classes_is_refused(self, built, tmp_path):
        shard = next((built / RECIPE.name).glob("*.parquet"))
        table = pq.read_table(shard)
        rows = table.to_pylist()
        rows[1]["D"] = rows[1]["D"][:2]
        (tmp_path / RECIPE.name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), tmp_path / RECIPE.name / shard.name)
        (tmp_path / "README.md").write_text((built / "README.md").read_text("utf-8"), "utf-8")
        as_others_have_it(tmp_path)
        configuration = open_data(str(tmp_path)).configuration(RECIPE.name)
        assert len(configuration.rows) == 3
        with pytest.raises(DatasetError, match="row a_coat_instances-00001 lacks the clip 'D/2'"):
            _ = configuration.clip_ids

    def test_the_card_says_what_it_is_and_claims_no_licence(self, built):
        card = (built / "README.md").read_text("utf-8")
        assert "3 blocks: two contexts A and C, and 3 classes" in card
        assert 'cast_column("B", List(clip))' in card
        assert "license" not in card
        own = RECIPE.describe(RECIPE.presets["mini"])
        assert "nothing was recorded" in own
        assert "A context has 1 source of labels" in own
        assert RECIPE.presets["mini"].values()["sounds"] is None

    def test_the_fingerprint_is_of_what_decides_samples(self):
        values = SMALL.values()
        assert values["sounds"] == SMALL.sounds.fingerprint
        assert values == SMALL.changed(sounds=dataclasses.replace(SMALL.sounds)).values()
        for changes in ({"snr_db": 0}, {"eq_db": 3}, {"unrelated": False}, {"sounds": instances(8)}):
            assert SMALL.changed(**changes).values() != values
        assert "tones" not in values
        assert RECIPE.presets["mini"].values()["tones"] == default_timbres().fingerprint


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"labels": None}, "labels is None; it is a list of 2 or more texts"),
            ({"labels": ["a"]}, r"labels is \['a'\]; it is a list of 2 or more texts"),
            ({"labels": ["a", "b", 3]}, "labels is .*; it is a list of 2 or more texts"),
            ({"labels": ["a", "b", "a"]}, "labels are .*; those of a block differ"),
            ({"instances_b": ["x"]}, "instances_b is .*; it has one for each of labels"),
            ({"instances_d": [None] * 3}, "instances_d is .*; it is a list of texts"),
            ({"instances_d": "abc"}, "instances_d is 'abc'; it is a list of texts"),
            ({"context_a": []}, "context_a is .*; it is a list of 1 or more texts"),
            ({"context_c_instances": []}, "context_c_instances is .*; it has one for each of context_c"),
            ({"condition_b": None}, "condition_b is None; it is a text"),
            ({"domain": 3}, "domain is 3; it is a text"),
            ({"level_db": "loud"}, "level_db is 'loud'; it is a number"),
        ],
    )
    def test_rows_of_others(self, changes, message):
        row = RECIPE.render(SMALL).rows[0]
        RECIPE.check_row(row)
        with pytest.raises(DatasetError, match=f"row {row['id']}: {message}"):
            RECIPE.check_row({**row, **changes})
