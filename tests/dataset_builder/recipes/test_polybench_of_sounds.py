"""The recipe polybench of isolated sounds: built is what is rendered, and a card says what it is."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes.polybench import RECIPE
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.scenes.polyphony import PolyphonySpec
from audio_compositionality.support.errors import InputError

from ..sounds.made import made_recordings

SMALL = {"train_sets": 1, "test_sets": 2, "sample_rate": 8_000}


def data_of(recordings=None, **changes):
    recordings = made_recordings(28, labels="abcdefg", rate=8_000) if recordings is None else recordings
    return recorded(recordings, recipes=["polybench"], **{**SMALL, **changes})


def test_takes_recordings():
    assert RECIPE.takes_sounds


def test_takes_sizes_from_a_preset_and_what_is_asked_for():
    recordings = made_recordings(labels="abcdef")
    mini, full = (RECIPE.of_sounds(RECIPE.presets[name], recordings, {"seed": 3}) for name in ("mini", "full"))
    assert isinstance(mini, PolyphonySpec)
    assert (mini.test_sets, full.test_sets, mini.seed) == (12, 200, 3)
    assert mini.train_sets == RECIPE.presets["mini"].train_sets
    with pytest.raises(InputError, match="there is no setting 'test_set'; did you mean 'test_sets'"):
        RECIPE.of_sounds(RECIPE.presets["mini"], recordings, {"test_set": 3})


@pytest.mark.slow
def test_builds_what_it_renders(tmp_path):
    rendered = data_of()
    folders = [build_dataset(rendered, tmp_path / f"{n}", workers=n, progress=False) for n in (1, 2)]
    one, two = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in folders
    )
    assert one == two
    stored, fresh = open_data(folders[0]).configuration("polybench"), rendered.configuration("polybench")
    assert stored.fingerprint == fresh.fingerprint
    assert len(fresh.rows) == 3 * RECIPE.questions_of_set
    assert len({row["recording"] for row in fresh.rows}) == 3 * RECIPE.clips_of_set
    assert [dict(row) for row in stored.rows] == [dict(row) for row in fresh.rows]
    for kept, made in zip(stored.clips(), fresh.clips(), strict=True):
        assert kept.id == made.id
        np.testing.assert_array_equal(kept.waveform, made.waveform)


def test_says_on_its_card_what_it_is():
    settings = data_of(domain="birds", background="a", background_snr=12.0).settings["polybench"]
    text = RECIPE.describe(settings)
    for words in ("50 multiple-choice questions", "(birds)", "12 dB softer than the loudest, is 'a'", "8000 Hz"):
        assert words in text
    assert "Behind all" not in RECIPE.describe(data_of().settings["polybench"])


def test_reads_no_more_recordings_than_are_heard(monkeypatch):
    recordings = made_recordings(280, labels="abcdefg", rate=8_000)
    read, waveform = set(), type(recordings).waveform
    monkeypatch.setattr(type(recordings), "waveform", lambda self, index: (read.add(index), waveform(self, index))[1])
    assert (
        len(data_of(recordings, train_sets=0, test_sets=1).configuration("polybench").rows) == RECIPE.questions_of_set
    )
    # Seven groups of at most five labels, of each of which four files are drawn.
    assert 0 < len(read) <= 7 * 5 * 4


def test_needs_labels():
    with pytest.raises(DatasetError, match="made up has 4 labels, 4 for train and 4 for test; questions need 5"):
        data_of(made_recordings(12, labels="abcd"))
