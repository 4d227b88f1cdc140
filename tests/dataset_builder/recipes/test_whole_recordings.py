"""Rows of whole recordings: captions that are looked for, and labels with their prompts."""

import dataclasses
import time

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes.audio_text_retrieval import RECIPE as RETRIEVAL
from audio_compositionality.dataset_builder.recipes.zero_shot_audio import RECIPE as ZERO_SHOT
from audio_compositionality.dataset_builder.recorded import open_recordings, recorded
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.scenes.pool import whole_clip
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.dataset_builder.sounds.tones import captioned_timbres
from audio_compositionality.support.errors import InputError

from ..sounds.made import MadeRecordings
from ..sounds.sounds import RATE, noise, write

LABELS = (("dog_bark",), ("Rain",), ("dog_bark", "Rain"), (), ("wind",))

CAPTIONS = (("a dog", "barking"), ("rain falls",), (), ("it is windy",), ())


def recordings(count=5, *, seconds=0.4, rate=8_000):
    entries = tuple(
        Sound(
            f"{n}.wav",
            LABELS[n % 5][0] if len(LABELS[n % 5]) == 1 else "",
            "",
            f"{n + 1:064x}",
            captions=CAPTIONS[n % 5],
            labels=LABELS[n % 5] if len(LABELS[n % 5]) > 1 else (),
        )
        for n in range(count)
    )
    return MadeRecordings(entries, (seconds,) * count, (rate,) * count)


def settings_of(recipe, source=None, **changes):
    return recipe.of_sounds(recipe.presets["full"], source or recordings(), changes)


class TestRetrieval:
    def test_has_a_row_for_each_recording_with_captions(self):
        assert RETRIEVAL.takes_sounds
        rows = RETRIEVAL.render(settings_of(RETRIEVAL)).rows
        assert [(row["recording"], row["captions"]) for row in rows] == [
            ("0.wav", ["a dog", "barking"]),
            ("1.wav", ["rain falls"]),
            ("3.wav", ["it is windy"]),
        ]
        for row in rows:
            RETRIEVAL.check_row(row)

    def test_needs_captions(self):
        bare = dataclasses.replace(recordings(), entries=recordings().entries[1:3])
        with pytest.raises(DatasetError, match=r"made up has 1 recordings with captions .*; 2 are the least"):
            _ = RETRIEVAL.render(settings_of(RETRIEVAL, bare)).rows
        with pytest.raises(DatasetError, match=r"captions is .*; it is a list of 1 or more texts"):
            RETRIEVAL.check_row({**RETRIEVAL.render(settings_of(RETRIEVAL)).rows[0], "captions": []})

    def test_is_of_tones_where_nobody_brings_recordings(self):
        rows = RETRIEVAL.render(RETRIEVAL.presets["mini"]).rows
        captions = [caption for row in rows for caption in row["captions"]]
        assert len(rows) == 64
        assert len(captions) == len(set(captions)) == 192
        # Each word is true of note and rate.
        for row in rows:
            note, rate = row["recording"].partition("/note")[2].split("-rate")
            words = row["captions"][0].split()
            assert (int(note) < 50, int(note) > 70) == ("low" in words, "high" in words)
            assert (float(rate) < 1.4, float(rate) > 2.4) == ("slow" in words, "fast" in words)


class TestZeroShot:
    def test_has_all_labels_of_each_recording_and_their_prompts(self):
        assert ZERO_SHOT.takes_sounds
        rows = ZERO_SHOT.render(settings_of(ZERO_SHOT)).rows
        assert [(row["recording"], row["labels"]) for row in rows] == [
            ("0.wav", ["dog_bark"]),
            ("1.wav", ["Rain"]),
            ("2.wav", ["dog_bark", "Rain"]),
            ("4.wav", ["wind"]),
        ]
        assert rows[2]["prompts"] == [["This is a sound of dog bark"], ["This is a sound of rain"]]
        templates = ("I hear {label}", "{label}!")
        settings = settings_of(ZERO_SHOT, templates=templates)
        assert ZERO_SHOT.render(settings).rows[0]["prompts"] == [["I hear dog bark", "dog bark!"]]
        assert settings.values() != settings_of(ZERO_SHOT).values()
        for row in rows:
            ZERO_SHOT.check_row(row)

    def test_needs_two_classes(self):
        source = recordings()
        for entries, message in (
            (source.entries[:1] * 2, "has one class, 'dog_bark'; 2 are the least"),
            (source.entries[3:4] * 2, "has no labels; prompts are made of classes"),
            ([dataclasses.replace(entry, number=1.5) for entry in source.entries], "has numbers as labels, such as"),
        ):
            settings = settings_of(ZERO_SHOT, dataclasses.replace(source, entries=tuple(entries)))
            with pytest.raises(DatasetError, match=message):
                _ = ZERO_SHOT.render(settings).rows

    @pytest.mark.parametrize("templates", [(), ("no slot",), ("{label} {label}",), (3,)])
    def test_needs_templates(self, templates):
        with pytest.raises(InputError, match="template"):
            settings_of(ZERO_SHOT, templates=templates)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"prompts": []}, r"prompts is \[\]; it has one for each of labels"),
            ({"prompts": [[]]}, r"prompts is \[\[\]\]; each label has one or more"),
            ({"labels": []}, "labels is .*; it is a list of 1 or more texts"),
            ({"domain": None}, "domain is None"),
        ],
    )
    def test_rows_of_others_are_refused(self, changes, message):
        row = ZERO_SHOT.render(settings_of(ZERO_SHOT)).rows[0]
        with pytest.raises(DatasetError, match=message):
            ZERO_SHOT.check_row({**row, **changes})

    def test_many_rows_of_many_classes_are_few_texts(self):
        count, classes = 5_000, 300
        entries = tuple(Sound(f"{n}.wav", f"class_{n % classes}", "", f"{n:064x}") for n in range(count))
        settings = settings_of(ZERO_SHOT, MadeRecordings(entries, (1.0,) * count, (8_000,) * count))
        started = time.process_time()
        rows = ZERO_SHOT.render(settings).rows
        texts = [text for row in rows for of_label in row["prompts"] for text in of_label]
        elapsed = time.process_time() - started
        assert (len(rows), len(texts), len(set(texts))) == (count, count, classes)
        # Rows of a class share the list of its prompts.
        assert len({id(row["prompts"][0]) for row in rows}) == classes
        assert elapsed < 1

    def test_is_of_tones_where_nobody_brings_recordings(self):
        rows = ZERO_SHOT.render(ZERO_SHOT.presets["mini"]).rows
        assert len(rows) == 192
        assert {row["labels"][0] for row in rows} == {entry.label for entry in captioned_timbres().entries}
        assert "This is a sound of electric piano" in {row["prompts"][0][0] for row in rows}


class TestClips:
    def test_are_the_files_bit_for_bit_and_the_middle_of_long_ones(self, tmp_path):
        short, long = noise(0.5, seed=1), noise(31, seed=2)
        for name, samples in (("a/1.wav", short), ("b/2.wav", long), ("b/3.wav", noise(0.4, seed=3))):
            write(tmp_path / name, samples=samples)
        opened = open_recordings(tmp_path, progress=False)
        configuration = recorded(opened, recipes=["zero_shot_audio"]).configuration("zero_shot_audio")
        by_name = dict(zip([row["recording"] for row in configuration.rows], configuration.clips(), strict=True))
        assert {clip.sample_rate for clip in by_name.values()} == {RATE}
        as_stored, _ = soundfile.read(tmp_path / "a" / "1.wav", dtype="int16")
        np.testing.assert_array_equal(by_name["a/1.wav"].waveform * 2**15, as_stored)
        assert len(by_name["b/2.wav"].waveform) == 30 * RATE
        np.testing.assert_allclose(by_name["b/2.wav"].waveform, long[RATE // 2 : -RATE // 2], atol=4e-5)

    def test_of_different_rates_are_brought_to_one(self, tmp_path):
        write(tmp_path / "a" / "1.wav", rate=8_000)
        write(tmp_path / "b" / "2.wav", rate=16_000)
        opened = open_recordings(tmp_path, progress=False)
        configuration = recorded(opened, recipes=["zero_shot_audio"]).configuration("zero_shot_audio")
        assert {(len(clip.waveform), clip.sample_rate) for clip in configuration.clips()} == {(48_000, 48_000)}

    def test_beyond_full_scale_are_lowered(self):
        loud = 2.0 * np.sin(np.arange(4_000) / 20)
        clip = whole_clip(loud, 4_000).astype(float)
        np.testing.assert_allclose(clip / 2**15, loud / np.abs(loud).max(), atol=4e-5)
        np.testing.assert_array_equal(whole_clip(loud / 4, 4_000), np.rint(loud / 4 * 2**15))

    @pytest.mark.parametrize("recipe", [RETRIEVAL, ZERO_SHOT])
    def test_that_are_built_are_those_that_are_rendered(self, recipe, tmp_path):
        rendered = RenderedData("mine", {recipe.name: settings_of(recipe)})
        folder = build_dataset(rendered, tmp_path / "data", progress=False)
        stored, fresh = (data.configuration(recipe.name) for data in (open_data(str(folder)), rendered))
        assert list(stored.rows) == [dict(row) for row in fresh.rows]
        for one, other in zip(stored.clips(), fresh.clips(), strict=True):
            assert np.array_equal(one.waveform, other.waveform)

    def test_are_as_many_as_are_asked_for(self):
        many = recordings(40)
        rows = ZERO_SHOT.render(settings_of(ZERO_SHOT, many, clips=6)).rows
        assert len(rows) == 6
        assert ZERO_SHOT.render(settings_of(ZERO_SHOT, many, clips=6, seed=1)).rows != rows
