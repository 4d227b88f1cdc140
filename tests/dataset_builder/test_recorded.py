"""Recordings by name, and the data that are made of them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data, open_recordings
from audio_compositionality.dataset_builder.recorded import RECORDINGS, changeable, offered, recorded, recorded_recipes
from audio_compositionality.dataset_builder.scenes.effects import ParameterRange
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.dataset_builder.sounds.tones import default_timbres
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import check_values, read_values

from .sounds.made import made_recordings
from .sounds.sounds import RATE, noise, write, write_labelled


@pytest.fixture
def folder(tmp_path):
    return write_labelled(tmp_path / "sounds", 8)


def changes_from(texts, **of):
    """Changes that `recorded` takes, from texts as a user types them."""
    return read_values(texts, changeable(**of), RECORDINGS)


def settings_of(data):
    return data.settings["transforms"]


def test_a_folder_and_a_data_set_are_told_apart(folder, without_torchcodec):
    recordings = open_recordings(folder, progress=False)
    assert recordings.source == str(folder)
    with pytest.raises(InputError, match="label does not apply to strong labels, which describe"):
        open_recordings(folder, labels=["y"], label="z")
    (folder / "metadata.csv").write_text("file_name,label\n" + "".join(f"dog/{n}.wav,x{n % 2}\n" for n in range(8)))
    listed = open_recordings(folder, label="label", progress=False)
    same = open_recordings(f"dataset:{folder}", label="label", split="train", progress=False)
    assert recordings.fingerprint != listed.fingerprint == same.fingerprint


def test_the_data_are_those_of_the_recipe(folder, tmp_path):
    recordings = open_recordings(folder, progress=False)
    data = recorded(recordings, recipes=["transforms"], transforms=["gain", "noise"], bases=5)
    assert data.source == f"recordings of {folder}"
    configuration = data.configuration("transforms")
    assert len(configuration.rows) == 5 * 11 + 11
    assert {row["label"] for row in configuration.rows} == {"cat", "dog"}
    clips = {clip.id: clip.waveform for clip in configuration.clips()}
    assert {clip.sample_rate for clip in configuration.clips()} == {RATE}
    row = next(row for row in configuration.rows if row["recording"].startswith("dog/"))
    gain = 10 ** (-settings_of(data).headroom / 20)
    np.testing.assert_allclose(clips[f"{row['id']}/audio"], noise(seed=int(row["recording"][4])) * gain, atol=1e-4)
    built = open_data(build_dataset(data, tmp_path / "built", workers=4, progress=False)).configuration("transforms")
    assert (built.fingerprint, list(built.rows)) == (configuration.fingerprint, list(configuration.rows))
    assert all((clip.waveform == clips[clip.id]).all() for clip in built.clips())
    with pytest.raises(DatasetError, match="is a built data set, not recordings"):
        open_recordings(tmp_path / "built", progress=False)


class TestRecipes:
    """Which of them recordings serve; those of one label serve transforms and counting alone."""

    def test_that_cannot_be_served_are_left_out_with_a_warning_or_where_they_are_named_an_error(self):
        recordings = made_recordings(labels="a")
        with pytest.warns(UserWarning, match=r"a_coat_instances is left out: made up has 1 label.* require 12"):
            data = recorded(recordings, transforms=["gain"])
        assert data.recipes == ("count_instances", "count_instances_questions", "transforms")
        assert set(offered(recordings, transforms=["gain"]).left_out) == set(recorded_recipes()) - set(data.recipes)
        with pytest.raises(DatasetError, match="made up has 1 label"):
            recorded(recordings, recipes=["transforms", "a_coat_instances"])
        offer = offered(recordings, recipes=["transforms", "a_coat_instances"], required=["transforms"])
        assert (offer.data.recipes, set(offer.left_out)) == (("transforms",), {"a_coat_instances"})
        with pytest.raises(
            DatasetError, match="made up cannot be used for any recipe: a_coat_instances: made up has 1 label"
        ):
            offered(recordings, recipes=["a_coat_instances"])
        with pytest.raises(DatasetError, match="any recipe: two_clips, when: made up has 1 label; 3 are needed"):
            offered(recordings, recipes=["two_clips", "when"])
        with pytest.raises(InputError, match="the recipe 'a_coat' takes no recordings; did you mean 'a_coat_"):
            recorded(recordings, recipes=["a_coat"])

    def test_have_the_settings_that_are_asked_for_else_those_that_suit_the_recordings(self):
        recordings = made_recordings(12, labels="abcdef")
        data = recorded(recordings, recipes=["a_coat_instances"], classes=2, context_sources=1, blocks=2)
        assert data.settings["a_coat_instances"].classes == 2
        suited = replace(recordings, suggested={"classes": 2, "context_sources": 1, "domain": "letters"})
        data = recorded(suited, recipes=["transforms", "a_coat_instances"], seed=3, classes=3)
        settings = data.settings["a_coat_instances"]
        assert (settings.classes, settings.context_sources, settings.domain) == (3, 1, "letters")
        assert {each.seed for each in data.settings.values()} == {3}
        assert {each.sounds for each in data.settings.values()} == {suited}


class TestChanges:
    """Settings as a user writes them."""

    def test_are_read_by_the_type_of_the_setting_of_any_recipe(self):
        texts = ["classes=6", "snr_db = -3", "transforms=gain,noise"]
        assert changes_from(texts) == {"classes": 6, "snr_db": -3.0, "transforms": ("gain", "noise")}
        assert changes_from(["level_range=-6,0"], recipes=["a_coat_recordings"]) == {"level_range": (-6.0, 0.0)}
        for text, message in (("clases=6", "'clases'; did you mean 'classes'"), ("recordings=x", "'recordings'")):
            with pytest.raises(InputError, match=f"has no setting {message}"):
                changes_from([text])

    def test_every_setting_that_decides_something_can_be_made(self):
        for name, recipe in recorded_recipes().items():
            spec = recipe.of_sounds(recipe.presets["mini"], default_timbres(), {})
            fields = changeable(recipes=[name])
            deciding = set(type(spec).model_fields) & set(spec.values()) - set(getattr(spec, "of_tones", ()))
            # Templates of prompts are sentences, which can have commas: --prompts names a set or a file of them.
            assert deciding - {"sounds", "templates"} <= set(fields)
            check_values({setting: getattr(spec, setting) for setting in deciding & set(fields)}, fields, "it")

    def test_reach_scenes_of_recordings_in_which_those_of_tones_have_none(self):
        recordings = made_recordings(labels="ab")
        data = recorded(recordings, recipes=["comp_a_order"], items=2, **changes_from(["domain=birds", "triplets=1"]))
        settings = data.settings["comp_a_order"]
        assert (settings.domain, settings.triplets, settings.items) == ("birds", 1, 2)
        with pytest.raises(InputError, match="has no setting 'gaps'"):
            recorded(recordings, recipes=["comp_a_order"], gaps=(0.5,))

    def test_of_short_clips_ask_nothing_of_tones(self):
        # What has no text is changed from Python.
        changes = {**changes_from(["duration=0.5", "transforms=gain"]), "ranges": (("gain", ParameterRange(-6, 6)),)}
        data = recorded(made_recordings(), recipes=["transforms"], **changes)
        assert settings_of(data).ranges == changes["ranges"]
        assert {len(clip.waveform) for clip in data.configuration("transforms").clips(range(2))} == {8_000}
        with pytest.raises(InputError, match=r"the shortest event would last 0\.40 s; .*Make duration longer$"):
            recorded(made_recordings(), recipes=["comp_a_order"], duration=2)


class TestLabels:
    """Without classes there are no scenes, and it is said where classes come from."""

    def test_that_a_column_would_have(self, folder, without_torchcodec):
        (folder / "metadata.csv").write_text("file_name,animal\n" + "".join(f"dog/{n}.wav,dog\n" for n in range(8)))
        for recordings in (
            open_recordings(folder, progress=False),
            open_recordings(f"dataset:{folder}", split="train", progress=False),
        ):
            reason = offered(recordings, transforms=["gain"]).left_out["a_coat_instances"]
            assert re.fullmatch(
                r".* has no labels; scenes are .*; give a column .*--set label=COLUMN: .*animal", reason
            )

    def test_that_folders_would_be(self, folder):
        recordings = open_recordings(folder / "dog", progress=False)
        with pytest.raises(DatasetError, match=r"has no labels; .*; put them into folders LABEL/file\.wav, or write"):
            recorded(recordings, recipes=["binding"])
        with pytest.raises(
            DatasetError, match=r"has no labels; prompts are made from classes: .*; put them into folders"
        ):
            recorded(recordings, recipes=["zero_shot_audio"])

    def test_that_are_numbers_are_no_classes(self, folder):
        rows = [f"{kind}/{n}.{suffix},{n / 4}" for kind, suffix in (("dog", "wav"), ("cat", "flac")) for n in range(8)]
        (folder / "metadata.csv").write_text("\n".join(["file_name,label", *rows]) + "\n")
        left_out = dict(offered(open_recordings(folder, progress=False), transforms=["gain"]).left_out)
        assert "with captions" in left_out.pop("audio_text_retrieval")
        assert set(left_out) == set(recorded_recipes()) - {"transforms", "audio_text_retrieval"}
        for reason in left_out.values():
            assert "has numbers as labels, e.g. 0" in reason

    def test_that_are_several_each_are_for_those_whom_they_do_not_hinder(self, folder):
        lines = [f"{kind}/{n}.{suffix},dog;cat" for kind, suffix in (("dog", "wav"), ("cat", "flac")) for n in range(8)]
        (folder / "metadata.csv").write_text("\n".join(["file_name,label", *lines]) + "\n")
        recordings = open_recordings(folder, separator=";", progress=False)
        assert (len(recordings.entries), len(recordings.complete.entries), len(recordings.skipped)) == (0, 16, 16)
        assert recordings.complete.complete is recordings.complete
        offer = offered(recordings, transforms=["gain"])
        assert offer.data.recipes == ("zero_shot_audio",)
        reason = "has no labels; .*; each recording has several labels, and none of them is selected"
        assert re.search(reason, offer.left_out["binding"])


class TestSettingsOfAFolder:
    """``sounds.yaml``."""

    def test_are_those_of_recipes(self, folder):
        for number in range(20):
            write(folder / f"label {number % 5}" / f"{number}.wav", seed=200 + number)
        (folder / "sounds.yaml").write_text("domain: animals\nclasses: 2\n")
        recordings = open_recordings(folder, progress=False)
        assert recordings.suggested == {"domain": "animals", "classes": 2}
        data = recorded(recordings, recipes=["a_coat_instances"], context_sources=1, blocks=1)
        row = data.configuration("a_coat_instances").rows[0]
        assert (row["domain"], len(row["labels"])) == ("animals", 2)

    def test_that_are_none_are_refused(self, folder):
        for text, message in (
            ("domein: x", r"sounds\.yaml: settings: .* no setting 'domein'; did you mean 'domain'"),
            ("classes: two", r"sounds\.yaml: settings: classes is 'two'; it is a whole number"),
        ):
            (folder / "sounds.yaml").write_text(text)
            with pytest.raises(SoundError, match=message):
                open_recordings(folder, progress=False)
