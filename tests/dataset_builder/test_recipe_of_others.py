"""A recipe that is not the project's goes through rendering, building, `datasets` and reading."""

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError, in_batches
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import preset_names, rendered_preset
from audio_compositionality.support.errors import InputError

from .recipes.toy import Toys, as_others_have_it, registered


@pytest.fixture
def folder(toys, tmp_path, monkeypatch):
    # Several shards, and row groups that end within a split.
    monkeypatch.setattr("audio_compositionality.dataset_builder.build.CLIPS_PER_SHARD", 24)
    monkeypatch.setattr("audio_compositionality.dataset_builder.build.ROWS_PER_GROUP", 3)
    return build_dataset("mini", tmp_path / "x", recipes=["toys"], progress=False)


def test_it_is_known_by_its_name_and_presets(toys):
    assert list_recipes()[-1] == "toys"
    assert load_recipe("toys") is toys
    assert preset_names()[-1] == "tiny"
    assert open_data("mini").recipes[-1] == "toys"
    assert open_data("tiny").recipes == ("toys",)
    with pytest.raises(InputError, match=r"recipe 'a_coat' has no preset 'tiny'"):
        rendered_preset("tiny", recipes=["a_coat"])


def test_built_and_rendered_are_the_same(toys, folder):
    built, rendered = (data.configuration("toys") for data in (open_data(folder), open_data("mini")))
    assert built.fingerprint == rendered.fingerprint
    assert list(built.rows) == list(rendered.rows)
    assert len(list((folder / "toys").glob("train-*.parquet"))) > 1
    ids = list(rendered.clip_ids)
    assert list(built.clip_ids) == ids
    expected = list(rendered.clips())
    # Clips of a row have lengths of their own, and are in no batch with others.
    assert expected[4].id == "toy-1/more/0"
    assert [len(clip.waveform) for clip in expected[:7]] == [100, 50, 101, 50, 30, 102, 50]
    assert (expected[4].waveform == np.arange(2, 32, dtype=np.float32) / 32_768).all()
    assert [len(batch.ids) for batch in list(in_batches(rendered.clips(), 4))[:4]] == [1, 1, 1, 1]
    for wanted in (None, range(0, 1), range(4, 6), range(7, 30), range(len(ids) - 1, len(ids)), range(3, 3)):
        clips = list(built.clips(wanted))
        places = range(len(ids)) if wanted is None else wanted
        assert [clip.id for clip in clips] == [ids[place] for place in places]
        for place, clip in zip(places, clips, strict=True):
            assert (clip.waveform == expected[place].waveform).all()
            assert clip.sample_rate == 8_000


def test_datasets_loads_it(toys, folder, tmp_path):
    rows = datasets.load_dataset(str(folder), "toys", split="train", cache_dir=str(tmp_path / "cache"))
    encoded = rows.cast_column("more", datasets.List(datasets.Audio(decode=False)))
    assert [len(clips) for clips in encoded["more"]] == [index % 3 for index in range(17)]
    assert rows["text"][:2] == ["toy 0", "toy 1"]
    card = (folder / "README.md").read_text()
    assert "20 toys for $5 at 8000 Hz." in card
    assert 'rows.cast_column("more", List(clip))' in card
    assert "from datasets import Audio, List, load_dataset" in card


def test_the_code_of_its_card_runs_as_written(toys, tmp_path, monkeypatch, without_torchcodec):
    card = build_dataset("tiny", tmp_path / "audio-compositionality", progress=False) / "README.md"
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(card.read_text("utf-8").partition("```python\n")[2].partition("```")[0], names)
    assert (names["waveform"] == next(iter(open_data("tiny").configuration("toys").clips())).waveform).all()


def test_it_is_added_to_a_folder_without_touching_the_others(toys, tiny_data, tmp_path):
    folder = build_dataset(tiny_data, tmp_path / "x", progress=False)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    build_dataset("mini", folder, recipes=["toys"], audio_format="wav", progress=False)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert open_data(folder).recipes == ("a_coat", "a_tre", "toys")
    assert open_data(folder).configuration("a_tre").fingerprint == tiny_data.configuration("a_tre").fingerprint
    assert datasets.get_dataset_config_names(str(folder)) == ["a_coat", "a_tre", "toys"]
    with registered(_Other()):
        with pytest.raises(DatasetError, match=r"holds another data set as toys"):
            build_dataset("mini", folder, recipes=["toys"], progress=False)
        build_dataset("mini", folder, recipes=["toys"], progress=False, force=True)
    assert {path: path.stat().st_mtime_ns for path in before} == before


class _Other(Toys):
    version = 4


def test_data_of_a_recipe_that_is_not_installed_are_read_by_their_features(tmp_path):
    with registered(Toys()):
        folder = build_dataset("tiny", tmp_path / "x", progress=False)
        expected = list(open_data("tiny").configuration("toys").clips())
    configuration = open_data(folder).configuration("toys")
    clips = list(configuration.clips())
    assert [clip.id for clip in clips] == [clip.id for clip in expected]
    assert all((clip.waveform == other.waveform).all() for clip, other in zip(clips, expected, strict=True))


def test_rows_are_checked_and_missing_columns_named(toys, folder):
    as_others_have_it(folder)
    shard = next((folder / "toys").glob("test-*.parquet"))
    table = pq.read_table(shard)
    column = table.schema.get_field_index("text")
    pq.write_table(table.set_column(column, table.schema.field(column), [["a", "b", "c"]]), shard)
    with pytest.raises(DatasetError, match="row toy-17: the text is 'a'; it begins with toy"):
        _ = open_data(folder).configuration("toys").rows
    for shard in (folder / "toys").glob("*.parquet"):
        pq.write_table(pq.read_table(shard).drop_columns(["short"]), shard)
    with pytest.raises(DatasetError, match="lacks the columns short of toys"):
        _ = open_data(folder).configuration("toys").clip_ids


def test_rows_out_of_order_are_refused(toys, tmp_path, monkeypatch):
    monkeypatch.setattr(Toys, "splits", ("test", "train"))
    with pytest.raises(DatasetError, match=r"rows of toys come split by split, in the order test, train"):
        build_dataset("mini", tmp_path / "x", recipes=["toys"], progress=False)
