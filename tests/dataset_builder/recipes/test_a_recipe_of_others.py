"""A recipe that a stranger adds in one file serves tones and a folder, and is built, read, described and refused."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data, open_recordings
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.rendered import rendered_preset

from ..sounds.sounds import noise, write
from . import louder
from .toy import registered


@pytest.fixture(autouse=True)
def known():
    with registered(louder.RECIPE):
        yield


@pytest.fixture
def folder(tmp_path):
    for label in ("dog", "cat", "rain", "wind"):
        for number in range(2):
            samples = noise(0.4 + 0.3 * number, seed=10 * len(label) + ord(label[0]) + number)
            write(tmp_path / "mine" / label / f"{number}.wav", samples=samples * (1 + number))
    return tmp_path / "mine"


def levels_of(clip):
    """Root mean square of the three parts of a clip, without what is left over."""
    third = len(clip.waveform) // 3
    return np.sqrt(np.mean(np.square(clip.waveform[: 3 * third].astype(float).reshape(3, third)), axis=1))


def check_loudness(configuration):
    for row, clip in zip(configuration.rows, configuration.clips(), strict=True):
        levels = levels_of(clip)
        others = np.delete(levels, row["louder"])
        assert levels[row["louder"]] / others == pytest.approx([2, 2], rel=0.01)


def test_a_build_notices_that_its_code_has_changed_and_its_version_has_not(tmp_path, monkeypatch):
    data = rendered_preset("mini", recipes=["louder"], items=2)
    build_dataset(data, tmp_path / "built", progress=False)
    draw = louder.Louder.draw
    monkeypatch.setattr(louder.Louder, "draw", lambda *arguments: reversed(list(draw(*arguments))))
    again = rendered_preset("mini", recipes=["louder"], items=2)
    del data
    with pytest.raises(DatasetError, match=r"other rows or columns of louder .* Raise its version, or give --force"):
        build_dataset(again, tmp_path / "built", progress=False)
    folder = build_dataset(again, tmp_path / "built", force=True, progress=False)
    assert list(open_data(str(folder)).configuration("louder").rows) == list(again.configuration("louder").rows)


def test_of_tones_one_is_twice_as_loud():
    configuration = rendered_preset("mini", recipes=["louder"], items=6).configuration("louder")
    check_loudness(configuration)
    row = configuration.rows[0]
    assert list(row) == ["id", "split", "labels", "louder"]
    assert len(set(row["labels"])) == 3
    assert len({row["louder"] for row in configuration.rows}) > 1


def test_of_a_folder_one_is_twice_as_loud(folder):
    data = recorded(open_recordings(folder, progress=False), recipes=["louder"], items=5, duration=1.5)
    configuration = data.configuration("louder")
    check_loudness(configuration)
    assert {label for row in configuration.rows for label in row["labels"]} == {"dog", "cat", "rain", "wind"}
