"""Trials of binding: the same recordings on both sides, bound otherwise, and other conditions where there are some."""

import dataclasses
from collections import Counter

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes.binding import RECIPE, BindingSpec
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.sounds.entries import related

from .recorded import ENGINES, instances, labels_of, unconditioned

SMALL = BindingSpec(sounds=instances(6), trials=6, duration=0.75, sample_rate=8_000)

MIXED = SMALL.changed(sounds=instances(4, conditions=("a/1", "a/2", "b/1", "b/2", "c")), trials=8)
"""Some trials have conditions related to both, others have not."""


def row_of(changes=(), settings=SMALL, index=0):
    return {**RECIPE.render(settings).rows[index], **dict(changes)}


class TestRows:
    def test_the_presets_are_of_our_timbres(self):
        sizes = {name: len(RECIPE.render(settings).rows) for name, settings in RECIPE.presets.items()}
        assert sizes == {"mini": 90, "full": 360}
        rows = RECIPE.render(RECIPE.presets["full"]).rows
        assert rows[89] == RECIPE.render(RECIPE.presets["mini"]).rows[89]
        assert {row["domain"] for row in rows} == {"timbres"}
        assert not any(row["conditions_across"] for row in rows)
        used = Counter(label for row in rows for label in row["labels"]).values()
        assert max(used) - min(used) <= 1

    def test_the_four_recordings_are_two_labels_under_two_conditions(self):
        for row in RECIPE.render(SMALL.changed(trials=30)).rows:
            w, other = row["labels"]
            for (u, v), names in (
                (row["conditions"], row["instances"]),
                (row["conditions_across"], row["instances_across"]),
            ):
                cells = ((w, u), (other, v), (other, u), (w, v))
                assert [name.rpartition("/")[0] for name in names] == ["/".join(cell) for cell in cells]
            (u, v), (one, two) = row["conditions"], row["conditions_across"]
            assert not related(u, v)
            assert related(u, one)
            assert related(v, two)
            assert len({u, v, one, two}) == 4

    def test_conditions_and_labels_are_used_evenly(self):
        rows = RECIPE.render(SMALL.changed(trials=30)).rows
        assert set(Counter(label for row in rows for label in row["labels"]).values()) == {10}
        assert set(Counter(c for row in rows for c in row["conditions"] + row["conditions_across"]).values()) == {30}

    def test_there_are_no_others_where_none_is_related_to_both(self):
        rows = RECIPE.render(MIXED).rows
        for row in rows:
            alone = "c" in row["conditions"]
            assert (row["conditions_across"] == []) == (row["instances_across"] == []) == alone
        assert 0 < sum("c" in row["conditions"] for row in rows) < 8

    def test_related_ones_serve_where_there_are_no_others(self):
        rows = RECIPE.render(SMALL.changed(sounds=instances(3, conditions=ENGINES[:2]))).rows
        assert all(sorted(row["conditions"]) == sorted(ENGINES[:2]) for row in rows)
        assert not any(row["conditions_across"] for row in rows)

    def test_no_group_is_in_both(self):
        recordings = SMALL.sounds
        entries = tuple(
            dataclasses.replace(entry, group=entry.condition.replace("flite/slt", "flite/awb"))
            for entry in recordings.entries
        )
        rows = RECIPE.render(SMALL.changed(sounds=dataclasses.replace(recordings, entries=entries))).rows
        assert not any(row["conditions_across"] for row in rows)

    def test_recordings_take_the_place_of_timbres(self):
        assert RECIPE.takes_sounds
        settings = RECIPE.of_sounds(RECIPE.presets["mini"], SMALL.sounds, {"trials": 4, "seed": 2})
        assert (settings.trials, settings.seed, settings.sounds) == (4, 2, SMALL.sounds)


class TestSound:
    def test_the_same_recordings_are_placed_and_filtered_anew(self):
        rendering = RECIPE.render(SMALL)
        clips = dict(zip(RECIPE.clip_names(rendering.rows[0]), rendering.clips(0), strict=True))
        assert list(clips) == ["X1", "Y1", "X2", "Y2", "X3/0", "Y3/0"]
        assert {(clip.dtype.name, len(clip)) for clip in clips.values()} == {("int16", 6_000)}
        assert len({clip.tobytes() for clip in clips.values()}) == 6
        peaks = [np.abs(clip.astype(int)).max() for clip in clips.values()]
        assert max(peaks) == pytest.approx(0.98 * 2**15, abs=2)
        # The tones of the two recordings that each scene has.
        places = {entry.id: place for place, entry in enumerate(SMALL.sounds.entries)}
        row = rendering.rows[0]
        tones = [300 + 40 * (places[name] + 1) for name in row["instances"]]
        for name, scene in (("X1", tones[:2]), ("Y1", tones[2:]), ("X2", tones[:2]), ("Y2", tones[2:])):
            spectrum = np.abs(np.fft.rfft(clips[name], 8_000))
            loud = [max(spectrum[tone - 8 : tone + 9]) for tone in tones]
            expected = [tone in scene for tone in tones]
            assert [one > 0.3 * max(loud) for one in loud] == expected, name

    def test_the_same_bits_twice_and_in_longer_data(self):
        longer = SMALL.changed(trials=9)
        assert RECIPE.render(longer).rows[:6] == RECIPE.render(SMALL).rows
        pairs = zip(RECIPE.render(SMALL).clips(5), RECIPE.render(longer).clips(5), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs)
        other = RECIPE.render(SMALL.changed(seed=1)).clips(5)
        assert not np.array_equal(other[0], RECIPE.render(SMALL).clips(5)[0])


@pytest.mark.parametrize("settings", [SMALL, MIXED])
def test_what_is_built_is_what_is_rendered(settings, tmp_path):
    rendered = RenderedData("mine", {RECIPE.name: settings})
    folder = build_dataset(rendered, tmp_path / "data", progress=False)
    stored, fresh = (data.configuration(RECIPE.name) for data in (open_data(str(folder)), rendered))
    assert list(stored.rows) == [dict(row) for row in fresh.rows]
    assert stored.clip_ids == fresh.clip_ids
    for one, other in zip(stored.clips(), fresh.clips(), strict=True):
        assert np.array_equal(one.waveform, other.waveform)
    assert f"{settings.trials} trials of scenes" in (folder / "README.md").read_text("utf-8")


class TestRefused:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"labels": ["a"]}, "labels is .*; it is a list of 2 texts"),
            ({"conditions": None}, "conditions is None; it is a list of 2 texts"),
            ({"conditions_across": None}, "conditions_across is None; it is a list of texts"),
            ({"conditions_across": ["a"]}, "conditions_across is .*; it has 2"),
            ({"instances_across": []}, r"instances_across is \[\]; it has 4"),
            ({"conditions_across": []}, "instances_across is .*; it has 0"),
            ({"instances": ["a"] * 3}, "instances is .*; it is a list of 4 texts"),
            ({"domain": None}, "domain is None; it is a text"),
        ],
    )
    def test_rows_of_others(self, changes, message):
        RECIPE.check_row(row_of())
        with pytest.raises(DatasetError, match=f"row binding-00000: {message}"):
            RECIPE.check_row(row_of(changes))

    @pytest.mark.parametrize(
        ("recordings", "message"),
        [
            (unconditioned([3] * 4), "made up has no conditions, and trials need two .*: LABEL/CONDITION/file"),
            (instances(4, conditions=("near",)), r"has one condition \('near'\); trials need two conditions"),
            (
                instances(2, without={(labels_of(2)[0], condition) for condition in ENGINES[1:]}),
                "of the same two labels; .* share most, 1",
            ),
        ],
    )
    def test_recordings_that_do_not_suffice(self, recordings, message):
        with pytest.raises(DatasetError, match=message):
            _ = RECIPE.render(SMALL.changed(sounds=recordings)).rows
