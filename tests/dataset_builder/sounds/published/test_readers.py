"""Readers are found by their names; another benchmark's is another file."""

import pytest

from audio_compositionality.dataset_builder.data import DatasetError, HeldData
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.sounds import published as readers
from audio_compositionality.dataset_builder.sounds.published import (
    ReadConfiguration,
    list_readers,
    reader_of,
    register_reader,
)


class Toy:
    name = "toy"
    meaning = "nothing"

    def open(self, path):
        return HeldData(f"toy:{path}", {"toys": ReadConfiguration("toys", "toy", [{"id": "a", "split": "test"}], [[]])})


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(readers._registry, "_added", {})
    register_reader(Toy())


def test_a_new_one_is_opened_by_its_name_and_a_path(toy, monkeypatch):
    assert list_readers()[-1] == "toy"
    data = open_data("toy:C:/x")
    assert (data.source, data.recipes) == ("toy:C:/x", ("toys",))
    assert len(data.configuration("toys").fingerprint) == 64
    with pytest.raises(DatasetError, match="has no data of 'toy'; did you mean 'toys'"):
        data.configuration("toy")
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("USERPROFILE", "/home/somebody")
    assert open_data("toy:~/x").source == "toy:/home/somebody/x"
    with pytest.raises(DatasetError, match="'toy:' names no path; toy:PATH is nothing"):
        open_data("toy:")


def test_what_names_none_is_told_which_there_are(tmp_path):
    assert reader_of("mini") is None
    assert reader_of("C:/x") is None
    for reader in list_readers():
        assert reader_of(f"{reader}:x")[0].meaning
    with pytest.raises(DatasetError, match=r"no data 'compas:x': .*compa:PATH"):
        open_data("compas:x")
