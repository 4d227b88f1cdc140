"""Order, attributes and training rows of recordings: true of one clip, false of its twins, no file on two sides."""

import dataclasses
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.opening import open_data
from audio_compositionality.dataset_builder.recipes.base import RecordedRecipe
from audio_compositionality.dataset_builder.recipes.comp_a_attribute import RECIPE as ATTRIBUTE
from audio_compositionality.dataset_builder.recipes.comp_a_order import RECIPE as ORDER
from audio_compositionality.dataset_builder.recipes.comp_a_train import RECIPE as TRAIN
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.natural import is_novel, splits_of_files
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.texts.captions import bag_of_words
from audio_compositionality.dataset_builder.texts.prompts import category_of, noun_of, spoken
from audio_compositionality.dataset_builder.texts.truth import Event, is_false, is_true
from audio_compositionality.support.errors import InputError

from ..sounds.made import MadeRecordings

KINDS = ("dog_bark", "Rain", "church bells", "car horn", "violin", "cat", "rooster", "zebra")

WHO = ("man speaking", "man_singing", "woman speaking", "woman singing", "Rain")

RATE = 8_000


def recordings(labels=KINDS, each=6, groups=None, lengths=(0.5, 1.4, 4.0, 12.0)):
    names = [(label, number) for label in labels for number in range(each)]
    entries = tuple(
        Sound(f"{label}/{number}.wav", label, "" if groups is None else groups(label, number), f"{place + 1:064x}")
        for place, (label, number) in enumerate(names)
    )
    seconds = tuple(lengths[place % len(lengths)] for place in range(len(names)))
    return MadeRecordings(entries, seconds, (RATE,) * len(names))


def settings_of(recipe, source=None, **changes):
    small = {"sample_rate": RATE, **changes}
    return recipe.of_recordings(recipe.presets["mini"], recordings() if source is None else source, small)


def file_labels(names):
    return {name.partition("/")[0] for name in names}


@pytest.fixture(scope="module")
def order():
    return ORDER.render(settings_of(ORDER, items=60))


@pytest.fixture(scope="module")
def attribute():
    return ATTRIBUTE.render(settings_of(ATTRIBUTE, recordings(WHO), items=24))


@pytest.fixture(scope="module")
def train():
    return TRAIN.render(settings_of(TRAIN, train_rows=150, validation_rows=30))


def files_of(events):
    return [event["file"] for event in events]


class TestItems:
    @pytest.mark.parametrize("name", ["order", "attribute"])
    def test_each_caption_is_true_of_its_clip_and_false_of_the_twins(self, name, request):
        rendering = request.getfixturevalue(name)
        for item, row in zip(rendering.items, rendering.rows, strict=True):
            for place, clip in enumerate(item.clips):
                for other, events in enumerate(row["events"]):
                    assert is_true(clip.said, events) == (place == other)
                    assert is_false(clip.said, events) == (place != other)

    @pytest.mark.parametrize(("name", "recipe"), [("order", ORDER), ("attribute", ATTRIBUTE)])
    def test_twins_have_the_same_words(self, name, recipe, request):
        for row in request.getfixturevalue(name).rows:
            recipe.check_row(row)
            first, second = map(bag_of_words, row["captions"][:2])
            assert first == second
            assert (row["origin"], row["writer"], row["split"]) == ("recordings", "template", "test")

    def test_order_has_the_same_files_in_either_order_and_of_some_both_at_once(self, order):
        for row in order.rows:
            first, second, *third = map(files_of, row["events"])
            assert first == second[::-1]
            assert [sorted(files) for files in third] in ([], [sorted(first)])
        triplets = Counter((row["mention"], row["subset"]) for row in order.rows if len(row["captions"]) == 3)
        assert set(triplets.values()) == {3}
        assert len(triplets) == 4
        assert Counter(row["mention"] for row in order.rows) == {"forward": 30, "reverse": 30}
        assert Counter(row["subset"] for row in order.rows) == {"seen": 30, "novel": 30}
        for row in order.rows:
            labels = row["pair"].split(" | ")
            assert is_novel(*labels) == (row["subset"] == "novel")
            assert len({category_of(label) for label in labels}) == 2

    def test_events_are_the_files_that_they_name(self, order):
        for row in order.rows:
            for event in (event for events in row["events"] for event in events):
                assert spoken(event["file"].partition("/")[0]) == event["label"]

    def test_attributes_are_four_recordings_bound_otherwise(self, attribute):
        assert {row["swapped"] for row in attribute.rows} == {"attribute"}
        assert {row["pair"] for row in attribute.rows} == {"man | woman"}
        for row in attribute.rows:
            said = [{(event["label"], *event["attributes"]) for event in events} for events in row["events"]]
            assert sorted(map(sorted, said)) == [
                [("man", "singing"), ("woman", "speaking")],
                [("man", "speaking"), ("woman", "singing")],
            ]
            assert len({event["file"] for events in row["events"] for event in events}) == 4
            assert len({event["stop"] for events in row["events"] for event in events}) == 1
        assert any("man speaking" in row["captions"][0] for row in attribute.rows)

    def test_more_items_change_none_of_those_before(self, order):
        more = ORDER.render(settings_of(ORDER, items=70)).rows
        assert more[:60] == order.rows
        assert ORDER.render(settings_of(ORDER, items=60, seed=1)).rows != order.rows


class TestSound:
    @pytest.mark.parametrize(("name", "recipe"), [("order", ORDER), ("attribute", ATTRIBUTE), ("train", TRAIN)])
    def test_is_heard_when_events_say_so(self, name, recipe, request):
        rendering = request.getfixturevalue(name)
        source = rendering.settings.recordings
        tones = {entry.id: 300 + 40 * (place + 1) for place, entry in enumerate(source.entries)}
        for index in range(8):
            row, clips = rendering.rows[index], rendering.clips(index)
            events = row["events"] if isinstance(row["events"][0], list) else [row["events"]]
            assert len(clips) == len(recipe.clip_names(row)) == len(events)
            for clip, of_clip in zip(clips, events, strict=True):
                assert (clip.dtype, len(clip)) == (np.int16, 10 * RATE)
                end = max(event["stop"] for event in of_clip)
                assert not clip[round(end * RATE) + 2 :].any()
                for event in of_clip:
                    # The made recordings are tones, a frequency each.
                    for start, stop, is_heard in (
                        (event["start"] + 0.2, event["stop"] - 0.2, True),
                        (end + 0.1, 10, False),
                        (0, event["start"] - 0.5, False),
                        (event["stop"] + 0.5, end, False),
                    ):
                        part = clip[round(start * RATE) : round(stop * RATE)].astype(float)
                        if stop - start > 0.3 and tones[event["file"]] < RATE / 2:
                            assert (_strength(part, tones[event["file"]]) > 0.05) == is_heard

    @pytest.mark.parametrize("name", ["order", "attribute"])
    def test_the_clips_of_an_item_share_one_gain(self, name, request):
        rendering = request.getfixturevalue(name)
        for index in range(4):
            peaks = [np.abs(clip.astype(int)).max() for clip in rendering.clips(index)]
            assert max(peaks) == pytest.approx(0.98 * 2**15, abs=2)

    @pytest.mark.parametrize(("recipe", "source"), [(ORDER, KINDS), (ATTRIBUTE, WHO), (TRAIN, KINDS)])
    def test_what_is_built_is_what_is_rendered(self, recipe, source, tmp_path):
        assert isinstance(recipe, RecordedRecipe)
        sizes = {"train_rows": 3, "validation_rows": 2} if recipe is TRAIN else {"items": 4}
        rendered = RenderedData("mine", {recipe.name: settings_of(recipe, recordings(source), **sizes)})
        folder = build_dataset(rendered, tmp_path / "data", progress=False)
        stored, fresh = (data.configuration(recipe.name) for data in (open_data(str(folder)), rendered))
        assert list(stored.rows) == [dict(row) for row in fresh.rows]
        for one, other in zip(stored.clips(), fresh.clips(), strict=True):
            assert np.array_equal(one.waveform, other.waveform)


def _strength(part, frequency):
    """Share of the amplitude of the loudest frequency that a frequency has."""
    spectrum = np.abs(np.fft.rfft(part * np.hanning(len(part))))
    place = round(frequency * len(part) / RATE)
    return spectrum[max(place - 2, 0) : place + 3].max() / max(spectrum.max(), 1e-9)


class TestTraining:
    def test_texts_are_true_or_false_as_they_say(self, train):
        for index, row in enumerate(train.rows):
            TRAIN.check_row(row)
            assert row["captions"]
            assert is_true(train.scene(index).placed.expression, row["events"])
            texts = [*row["captions"], *row["parts"], *(negative["text"] for negative in row["negatives"])]
            assert len(set(texts)) == len(texts)
            words = bag_of_words(row["captions"][0])
            for negative in row["negatives"]:
                if negative["kind"] in ("order", "attribute"):
                    assert bag_of_words(negative["text"]) == words
        kinds = Counter(negative["kind"] for row in train.rows for negative in row["negatives"])
        assert set(kinds) == {"order", "attribute", "relation", "absent"}

    def test_has_trees_of_two_to_four_events_none_too_short(self, train):
        sizes = Counter(len(row["events"]) for row in train.rows)
        assert set(sizes) == {2, 3, 4}
        assert sizes[3] > sizes[2] > sizes[4]
        for row in train.rows:
            for event in map(Event.of, row["events"]):
                assert event.stop - event.start >= 1
                assert event.stop <= 10

    def test_never_has_labels_of_a_novel_pair_or_of_one_kind(self, train):
        for row in train.rows:
            labels = [event["label"] for event in row["events"]]
            assert not any(is_novel(*pair) for pair in combinations(labels, 2))
            assert len({category_of(label) for label in labels}) == len(labels)

    def test_shares_no_file_with_the_items(self, train, order):
        files = {"test": {event["file"] for row in order.rows for events in row["events"] for event in events}}
        for row in train.rows:
            files.setdefault(row["split"], set()).update(files_of(row["events"]))
        assert set(files) == {"train", "validation", "test"}
        for one, other in combinations(files, 2):
            assert files[one].isdisjoint(files[other])

    def test_rows_are_a_sequence(self, train):
        rows = train.rows
        assert len(rows) == 180
        assert rows[-1]["id"] == "comp_a_train-validation-00029"
        assert list(rows[148:152]) == [rows[place] for place in range(148, 152)]
        with pytest.raises(IndexError):
            rows[180]


class TestSplits:
    def test_are_of_whole_groups(self):
        entries = recordings(groups=lambda label, number: f"{label} {number // 2}").entries
        splits = splits_of_files(entries)
        for group in {entry.group for entry in entries}:
            assert len({split for split, entry in zip(splits, entries, strict=True) if entry.group == group}) == 1
        for label in KINDS:
            assert {"train", "test"} <= {
                split for split, entry in zip(splits, entries, strict=True) if entry.label == label
            }

    def test_are_of_whole_speakers_who_say_several_words(self):
        entries = recordings(groups=lambda label, number: f"speaker {number}").entries
        sides = {(entry.group, split) for entry, split in zip(entries, splits_of_files(entries), strict=True)}
        assert len(sides) == 6
        assert {split for _, split in sides} == {"train", "validation", "test"}

    def test_depend_on_content_alone(self):
        entries = recordings().entries
        by_digest = dict(zip([entry.sha256 for entry in entries], splits_of_files(entries), strict=True))
        assert [by_digest[entry.sha256] for entry in entries[::-1]] == splits_of_files(entries[::-1])


class TestLabels:
    def test_are_of_kinds(self):
        assert category_of("Dog_bark") == category_of("growling") == "dogs"
        assert category_of("catfish") == "catfish"
        assert category_of("Male speech, man speaking") == "human voice"

    def test_say_who_and_how(self):
        assert noun_of("Male speech, man speaking") == ("man", "speaking")
        assert noun_of("dog_barking") == ("dog", "barking")
        assert noun_of("rain") is noun_of("singing") is None


class TestRefused:
    def test_too_few_recordings_of_a_label(self):
        with pytest.raises(DatasetError, match="made up has 0 labels of two recordings or more"):
            _ = ORDER.render(settings_of(ORDER, recordings(each=1))).rows

    def test_labels_of_one_kind(self):
        source = recordings(("dog", "bark"))
        with pytest.raises(DatasetError, match="no two labels of different kinds of sounds"):
            _ = ORDER.render(settings_of(ORDER, source)).rows
        with pytest.raises(DatasetError, match="no two labels for training that can meet"):
            _ = TRAIN.render(settings_of(TRAIN, source)).rows

    def test_labels_that_do_not_say_who_and_how(self):
        for labels in (KINDS, WHO[:3]):
            with pytest.raises(DatasetError, match="two who make two sounds each, in all four combinations"):
                _ = ATTRIBUTE.render(settings_of(ATTRIBUTE, recordings(labels))).rows

    def test_silent_recordings(self):
        source = recordings(("dog", "rain"), each=4, lengths=(0.2,))
        with pytest.raises(DatasetError, match=r"no recording of '\w+' for test has 0.25 s between silences"):
            _ = ORDER.render(settings_of(ORDER, source)).rows

    def test_settings_of_tones_and_out_of_range(self):
        with pytest.raises(InputError, match="scenes of recordings have no setting 'gaps'"):
            settings_of(ORDER, gaps=(0.0,))
        with pytest.raises(InputError, match="items is 0; it must be from 1"):
            settings_of(ORDER, items=0)
        settings = settings_of(ORDER, dataclasses.replace(recordings(), suggested={"domain": "farm"}))
        assert settings.domain_name == "farm"
        assert settings.values()["recordings"] == recordings().fingerprint
