"""Recordings by name, and the data that are made of them."""

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.opening import open_data
from audio_compositionality.dataset_builder.recordings.captioned_timbres import captioned_timbres
from audio_compositionality.dataset_builder.recordings.opening import (
    offered,
    open_recordings,
    recorded,
    recorded_recipes,
)
from audio_compositionality.support.errors import InputError

from .made import made_recordings
from .sounds import RATE, noise, write_labelled


@pytest.fixture
def folder(tmp_path):
    return write_labelled(tmp_path / "sounds", 8)


def settings_of(data):
    return data.settings["transforms"]


def test_a_folder_and_a_data_set_are_told_apart(folder, without_torchcodec):
    recordings = open_recordings(folder, progress=False)
    assert recordings.source == str(folder)
    (folder / "metadata.csv").write_text("file_name,label\n" + "".join(f"dog/{n}.wav,x{n % 2}\n" for n in range(8)))
    listed = open_recordings(folder, label="label", progress=False)
    same = open_recordings(dataset=folder, label="label", split="train", progress=False)
    assert recordings.fingerprint != listed.fingerprint == same.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give recordings as a folder or as a data set: one of the two"),
        ({"folder": "x", "dataset": "lab/x"}, "one of the two"),
        ({"folder": "x", "split": "test"}, "split is of a data set"),
        ({"folder": "x", "strong_labels": "y", "label": "z"}, "label is not needed: the table of strong labels"),
        ({"dataset": "lab/x", "strong_labels": "y"}, "strong labels .* are of the files in a folder"),
        ({"folder": "x", "revision": "main"}, "revision is of a data set"),
    ],
)
def test_what_does_not_go_together_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        open_recordings(**options)


def test_the_data_are_those_of_the_recipe(folder, tmp_path):
    recordings = open_recordings(folder, progress=False)
    data = recorded(recordings, recipes=["transforms"], transforms=["gain", "noise"], bases=5)
    assert data.source == f"recordings of {folder}"
    configuration = data.configuration("transforms")
    assert len(configuration.rows) == 5 * 9 + 11
    assert {row["label"] for row in configuration.rows} == {"cat", "dog"}
    clips = {clip.id: clip.waveform for clip in configuration.clips()}
    row = next(row for row in configuration.rows if row["recording"].startswith("dog/"))
    seed = int(row["recording"][4])
    gain = 10 ** (-settings_of(data).headroom / 20)
    np.testing.assert_allclose(clips[f"{row['id']}/audio"], noise(seed=seed) * gain, atol=1e-4)
    built = open_data(build_dataset(data, tmp_path / "built", workers=4, progress=False)).configuration("transforms")
    assert built.fingerprint == configuration.fingerprint
    assert list(built.rows) == list(configuration.rows)
    assert all((clip.waveform == clips[clip.id]).all() for clip in built.clips())
    assert {clip.sample_rate for clip in built.clips()} == {RATE}
    with pytest.raises(DatasetError, match="is a data set that was built, which --data takes"):
        open_recordings(tmp_path / "built", progress=False)


def test_presets_have_their_sizes_and_transforms():
    recordings = made_recordings(rate=32_000)
    sizes = {}
    for preset in ("mini", "full", "paper-mini", "paper-full"):
        settings = settings_of(recorded(recordings, recipes=["transforms"], preset=preset))
        sizes[preset] = settings.bases, settings.untransformed, settings.transforms
    ours, papers = ("gain", "noise", "lowpass", "reverb"), ("noise", "pitch", "reverb", "stretch")
    assert sizes == {
        "mini": (48, 208, ours),
        "full": (400, 1_600, ours),
        "paper-mini": (48, 208, papers),
        "paper-full": (400, 1_600, papers),
    }


class TestRecipes:
    """Which of them recordings serve; those of one label serve `transforms` alone."""

    def test_that_cannot_be_served_are_left_out_and_a_warning_says_why(self):
        recordings = made_recordings(labels="a")
        with pytest.warns(UserWarning, match=r"a_coat_instances is left out: made up has 1 label.* need 12"):
            data = recorded(recordings, transforms=["gain"])
        assert data.recipes == ("transforms",)
        offer = offered(recordings, transforms=["gain"])
        assert offer.data.recipes == ("comp_a_order", "transforms")
        assert set(offer.left_out) == set(recorded_recipes()) - {"transforms"}

    def test_that_are_named_are_served_or_it_is_an_error(self):
        recordings = made_recordings(labels="a")
        with pytest.raises(DatasetError, match="made up has 1 label"):
            recorded(recordings, recipes=["transforms", "a_coat_instances"])
        offer = offered(recordings, recipes=["transforms", "a_coat_instances"], required=["transforms"])
        assert (offer.data.recipes, set(offer.left_out)) == (("transforms",), {"a_coat_instances"})
        with pytest.raises(DatasetError, match="made up can serve no recipe: a_coat_instances: made up has 1 label"):
            offered(recordings, recipes=["a_coat_instances"])
        with pytest.raises(InputError, match="the recipe 'a_coat' takes no recordings; did you mean 'a_coat_"):
            recorded(recordings, recipes=["a_coat"])

    def test_without_a_preset_are_left_out(self):
        offer = offered(made_recordings(), preset="paper-mini", transforms=["gain"])
        assert offer.data.recipes == ("comp_a_order", "transforms")
        assert offer.left_out["binding"] == "it has no preset 'paper-mini'"
        with pytest.raises(InputError, match=r"unknown preset .paper-mini.; .*mini, full"):
            recorded(made_recordings(), preset="paper-mini", recipes=["binding"])

    def test_have_the_settings_that_are_asked_for_else_those_that_suit_the_recordings(self):
        recordings = made_recordings(12, labels="abcdef")
        data = recorded(recordings, recipes=["a_coat_instances"], classes=2, context_sources=1, blocks=2)
        assert data.settings["a_coat_instances"].classes == 2
        suited = replace(recordings, suggested={"classes": 2, "context_sources": 1, "domain": "letters"})
        data = recorded(suited, recipes=["transforms", "a_coat_instances"], seed=3, classes=3)
        settings = data.settings["a_coat_instances"]
        assert (settings.classes, settings.context_sources, settings.domain) == (3, 1, "letters")
        assert {each.seed for each in data.settings.values()} == {3}
        assert {each.recordings for each in data.settings.values()} == {suited}

    def test_serve_timbres(self):
        served = recorded(captioned_timbres(), blocks=1, trials=1, quadruples=1, bases=5, items=2).recipes
        # No timbre says who makes a sound and how.
        assert set(served) == set(recorded_recipes()) - {"comp_a_attribute"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "ful"}, "unknown preset 'ful'; did you mean 'full'"),
        ({"transforms": ["nois"]}, "unknown transform 'nois'; did you mean 'noise'"),
        ({"base": 5}, "recordings have no setting 'base'; did you mean 'bases'"),
        ({"bases": 4}, "bases is 4; it must be from 5"),
    ],
)
def test_what_there_is_not_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        recorded(made_recordings(), recipes=["transforms"], **options)
