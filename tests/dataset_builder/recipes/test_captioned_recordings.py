"""Order, attributes and training rows of recordings: true of one clip, false of its twins, no file on two sides."""

import dataclasses
from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes.comp_a_attribute import RECIPE as ATTRIBUTE
from audio_compositionality.dataset_builder.recipes.comp_a_order import RECIPE as ORDER
from audio_compositionality.dataset_builder.recipes.comp_a_train import RECIPE as TRAIN
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.captioned import SHARES
from audio_compositionality.dataset_builder.sounds.entries import Sound, category_of, noun_of, spoken
from audio_compositionality.dataset_builder.sounds.splits import split_of_sounds
from audio_compositionality.dataset_builder.texts.caption_reading import read, vocabulary_of
from audio_compositionality.dataset_builder.texts.captions import bag_of_words
from audio_compositionality.dataset_builder.texts.truth import HeardEvent, is_false, is_true
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
    return recipe.of_sounds(recipe.presets["mini"], recordings() if source is None else source, small)


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
    return [event["entry"] for event in events]


class TestItems:
    @pytest.mark.parametrize("name", ["order", "attribute"])
    def test_each_caption_is_true_of_its_clip_and_false_of_the_twins(self, name, request):
        rendering = request.getfixturevalue(name)
        for scene, row in zip(rendering.scenes, rendering.rows, strict=True):
            for place, said in enumerate(scene.said):
                for other, events in enumerate(row["events"]):
                    assert is_true(said, events) == (place == other)
                    assert is_false(said, events) == (place != other)

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
            assert (frozenset(labels) in order.palette.novel) == (row["subset"] == "novel")
            assert len({category_of(label) for label in labels}) == 2

    def test_events_are_the_files_that_they_name(self, order):
        for row in order.rows:
            for event in (event for events in row["events"] for event in events):
                assert spoken(event["entry"].partition("/")[0]) == event["label"]

    def test_attributes_are_four_recordings_bound_otherwise(self, attribute):
        assert {row["swapped"] for row in attribute.rows} == {"action"}
        assert {row["pair"] for row in attribute.rows} == {"man | woman"}
        for row in attribute.rows:
            said = [{(event["label"], *event["attributes"]) for event in events} for events in row["events"]]
            assert sorted(map(sorted, said)) == [
                [("man", "singing"), ("woman", "speaking")],
                [("man", "speaking"), ("woman", "singing")],
            ]
            assert len({event["entry"] for events in row["events"] for event in events}) == 4
            assert len({event["stop"] for events in row["events"] for event in events}) == 1
        assert any("man speaking" in row["captions"][0] for row in attribute.rows)

    def test_more_items_change_none_of_those_before(self, order):
        more = ORDER.render(settings_of(ORDER, items=70)).rows
        assert list(more[:60]) == list(order.rows)
        assert list(ORDER.render(settings_of(ORDER, items=60, seed=1)).rows) != list(order.rows)


class TestSound:
    @pytest.mark.parametrize(("name", "recipe"), [("order", ORDER), ("attribute", ATTRIBUTE), ("train", TRAIN)])
    def test_is_heard_when_events_say_so(self, name, recipe, request):
        rendering = request.getfixturevalue(name)
        source = rendering.spec.sounds
        tones = {entry.id: 300 + 40 * (place + 1) for place, entry in enumerate(source.entries)}
        for index in range(8):
            row, clips = rendering.rows[index], rendering.clips(index)
            events = row["events"] if isinstance(row["events"][0], list) else [row["events"]]
            assert len(clips) == len(recipe.clip_names(row)) == len(events)
            for clip, of_clip in zip(clips, events, strict=True):
                assert (clip.dtype, len(clip)) == (np.int16, 10 * RATE)
                end = max(event["stop"] for event in of_clip)
                # Of the fade at its end, half counts as heard.
                assert not clip[round(end * RATE) + rendering.timed(index).fade // 2 + 2 :].any()
                for event in of_clip:
                    # The made recordings are tones, a frequency each.
                    for start, stop, is_heard in (
                        (event["start"] + 0.2, event["stop"] - 0.2, True),
                        (end + 0.5, 10, False),
                        (0, event["start"] - 0.5, False),
                        (event["stop"] + 0.5, end, False),
                    ):
                        part = clip[round(start * RATE) : round(stop * RATE)].astype(float)
                        if stop - start > 0.3 and tones[event["entry"]] < RATE / 2:
                            assert (_strength(part, tones[event["entry"]]) > 0.05) == is_heard

    def test_the_events_of_order_are_moved_whole(self, order):
        for index in range(8):
            clips, row = order.clips(index), order.timed(index)
            (first, second), (again, moved) = row.clips[:2]
            # Where one fades into the other, both are heard; the rest is the same samples.
            fade = row.fade
            assert fade == pytest.approx(0.1 * min(first.length, second.length), abs=1)
            for one, other in ((first, moved), (second, again)):
                assert (one.entry, one.length, one.offset) == (other.entry, other.length, other.offset)
                start, stop = one.start + fade, one.stop - fade
                shift = other.start - one.start
                assert (clips[0][start:stop] == clips[1][start + shift : stop + shift]).all()

    def test_sounds_are_as_loud_as_each_other(self, order):
        for index in range(8):
            row = order.timed(index)
            levels = [np.sqrt(np.mean(order.events.samples(event) ** 2)) for event in row.clips[0]]
            assert levels == pytest.approx([1, 1], rel=1e-4)

    @pytest.mark.parametrize(("recipe", "source"), [(ORDER, KINDS), (ATTRIBUTE, WHO), (TRAIN, KINDS)])
    def test_what_is_built_is_what_is_rendered(self, recipe, source, tmp_path):
        assert recipe.takes_sounds
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
    # What is repeated twice a second has lines 2 Hz apart.
    width = 2 + round(1.5 * len(part) / RATE)
    return spectrum[max(place - width, 0) : place + width + 1].max() / max(spectrum.max(), 1e-9)


class TestTraining:
    def test_texts_are_true_or_false_as_they_say(self, train):
        for index, row in enumerate(train.rows):
            TRAIN.check_row(row)
            assert row["captions"]
            assert is_true(train.scenes[index].said[0], row["events"])
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
            for event in map(HeardEvent.of, row["events"]):
                assert event.stop - event.start >= 1
                assert event.stop <= 10

    def test_never_has_labels_of_a_novel_pair_or_of_one_kind(self, train):
        for row in train.rows:
            labels = [event["label"] for event in row["events"]]
            assert not any(frozenset(pair) in train.palette.novel for pair in combinations(labels, 2))
            assert len({category_of(label) for label in labels}) == len(labels)

    def test_shares_no_file_with_the_items(self, train, order):
        files = {"test": {event["entry"] for row in order.rows for events in row["events"] for event in events}}
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
        splits = split_of_sounds(entries, SHARES)
        for group in {entry.group for entry in entries}:
            assert len({split for split, entry in zip(splits, entries, strict=True) if entry.group == group}) == 1
        for label in KINDS:
            assert {"train", "test"} <= {
                split for split, entry in zip(splits, entries, strict=True) if entry.label == label
            }

    def test_are_of_whole_speakers_who_say_several_words(self):
        entries = recordings(groups=lambda label, number: f"speaker {number}").entries
        sides = {(entry.group, split) for entry, split in zip(entries, split_of_sounds(entries, SHARES), strict=True)}
        assert len(sides) == 6
        assert {split for _, split in sides} == {"train", "validation", "test"}

    def test_depend_on_content_alone(self):
        entries = recordings().entries
        by_digest = dict(zip([entry.sha256 for entry in entries], split_of_sounds(entries, SHARES), strict=True))
        assert [by_digest[entry.sha256] for entry in entries[::-1]] == split_of_sounds(entries[::-1], SHARES)


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
        source = recordings(("dog", "rain"), each=4)
        silent = dataclasses.replace(source, entries=tuple(
            dataclasses.replace(entry, sha256=f"{2 * place:064x}") for place, entry in enumerate(source.entries)
        ))  # fmt: skip
        with pytest.raises(DatasetError, match=r"made up: recording .* is silent; leave it out"):
            _ = list(ORDER.render(settings_of(ORDER, Silent(silent))).rows)

    def test_values_out_of_range_and_no_such_words(self):
        with pytest.raises(InputError, match="there is no setting 'itemz'"):
            settings_of(ORDER, itemz=3)
        for name, value in (("gaps", (0.0,)), ("velocity", 90)):
            with pytest.raises(InputError, match=f"{name} applies to tones, which recordings replace here"):
                settings_of(ORDER, **{name: value})
        with pytest.raises(DatasetError, match="swapped has 'acton'; did you mean 'action'"):
            _ = ATTRIBUTE.render(settings_of(ATTRIBUTE, recordings(WHO), swapped=("acton",))).rows
        settings = settings_of(ORDER, dataclasses.replace(recordings(), suggested={"domain": "farm"}))
        assert settings.domain_name == "farm"
        assert settings.values()["sounds"] == recordings().fingerprint


@dataclasses.dataclass(frozen=True)
class Silent:
    """Other sounds without a sound."""

    of: MadeRecordings

    def __getattr__(self, name):
        return getattr(self.of, name)

    def waveform(self, index):
        samples, rate = self.of.waveform(index)
        return 0 * samples, rate


def with_words(words, each=6):
    """Recordings of labels whose table has words."""
    names = [(label, of_label, number) for label, of_label in words for number in range(each)]
    entries = tuple(
        Sound(f"{label} {'-'.join(said.values())} {number}", label, "", f"{place + 1:064x}", words=said)
        for place, (label, said, number) in enumerate(names)
    )
    lengths = (0.1, 0.5, 1.4, 4.0, 12.0)
    return MadeRecordings(entries, tuple(lengths[n % 5] for n in range(len(names))), (RATE,) * len(names))


PIANOS = [(label, {"dynamics": word}) for label in ("piano", "violin", "flute") for word in ("soft", "loud")]


class TestWordsOfATable:
    """A piano soft and loud, a violin soft and loud: another entry of the same label with one word changed."""

    @pytest.fixture
    def rows(self):
        return ATTRIBUTE.render(settings_of(ATTRIBUTE, with_words(PIANOS), items=24, different_kinds=False)).rows

    def test_are_exchanged(self, rows):
        for row in rows:
            ATTRIBUTE.check_row(row)
            assert row["swapped"] == "dynamics"
            said = [{event["label"]: event["attributes"] for event in events} for events in row["events"]]
            labels = row["pair"].split(" | ")
            assert [sorted(one) for one in said] == [labels] * 2
            one, other = labels
            assert said[0][one] == said[1][other] != said[0][other] == said[1][one]
            assert bag_of_words(row["captions"][0]) == bag_of_words(row["captions"][1])
        assert any("a soft piano" in row["captions"][0] for row in rows)
        # One of three pairs is held out from training.
        assert set(Counter(row["subset"] for row in rows).values()) == {12}
        assert len({row["pair"] for row in rows if row["subset"] == "novel"}) == 1

    def test_exclude_each_other_also_where_tones_have_one_of_them(self, rows):
        for row in rows:
            for place, text in enumerate(row["captions"]):
                for other, events in enumerate(row["events"]):
                    said = read(text, vocabulary_of(map(HeardEvent.of, events))).expression
                    assert is_true(said, events) == (place == other)
                    assert is_false(said, events) == (place != other)

    def test_are_said_in_order_and_in_training_and_pairs_are_held_out_there(self):
        source = with_words(PIANOS)
        order = ORDER.render(settings_of(ORDER, source, items=12, different_kinds=False)).rows
        assert all(event["attributes"] for row in order for events in row["events"] for event in events)
        assert any("a soft" in row["captions"][0] for row in order)
        settings = settings_of(TRAIN, source, train_rows=60, validation_rows=0, different_kinds=False)
        train = TRAIN.render(settings).rows
        novel = {row["pair"] for row in order if row["subset"] == "novel"}
        met = {" | ".join(sorted({event["label"] for event in row["events"]})) for row in train}
        assert novel
        assert not met & novel
        kinds = {negative["kind"] for row in train for negative in row["negatives"]}
        assert kinds >= {"order", "relation", "attribute"}

    def test_several_attributes_are_exchanged_one_by_one(self):
        words = [
            (label, {"dynamics": loud, "bow": bow})
            for label in ("violin", "cello")
            for loud in ("soft", "loud")
            for bow in ("plucked", "bowed")
        ]
        rows = ATTRIBUTE.render(settings_of(ATTRIBUTE, with_words(words), items=20, different_kinds=False)).rows
        assert Counter(row["swapped"] for row in rows) == {"dynamics": 10, "bow": 10}
        for row in rows:
            assert is_false(read(row["captions"][0], vocabulary_of(map(HeardEvent.of, row["events"][1]))).expression,
                            row["events"][1])  # fmt: skip
