"""Data that are not the project's: of a recipe of another package, and with a card that somebody else wrote."""

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError, in_batches
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import preset_names, rendered_preset
from audio_compositionality.support.errors import InputError

from .recipes.toy import Toys, as_others_have_it, registered


class _Other(Toys):
    version = 4


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


def test_it_is_added_to_a_folder_without_touching_the_others(toys, tiny_data, tmp_path):
    folder = build_dataset(tiny_data, tmp_path / "x", progress=False)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    build_dataset("mini", folder, recipes=["toys"], audio_format="wav", progress=False)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert open_data(folder).recipes == ("a_coat", "a_tre", "toys")
    assert open_data(folder).configuration("a_tre").fingerprint == tiny_data.configuration("a_tre").fingerprint
    assert datasets.get_dataset_config_names(str(folder)) == ["a_coat", "a_tre", "toys"]
    with registered(_Other()):
        with pytest.raises(DatasetError, match=r"contains different data under the name toys"):
            build_dataset("mini", folder, recipes=["toys"], progress=False)
        build_dataset("mini", folder, recipes=["toys"], progress=False, force=True)
    assert {path: path.stat().st_mtime_ns for path in before} == before


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
    with pytest.raises(DatasetError, match=r"rows of toys must be sorted by split in the order test, train"):
        build_dataset("mini", tmp_path / "x", recipes=["toys"], progress=False)


@pytest.fixture
def pushed(toys, tmp_path):
    """Toys as somebody may have pushed them: a card, no manifest."""
    path = build_dataset("tiny", tmp_path / "x", progress=False)
    as_others_have_it(path)
    return path


def test_a_configuration_is_known_by_its_name(toys, pushed):
    data = open_data(pushed)
    assert data.recipes == ("toys",)
    rendered = open_data("tiny").configuration("toys")
    assert list(data.configuration("toys").rows) == list(rendered.rows)
    assert list(data.configuration("toys").clip_ids) == list(rendered.clip_ids)
    assert data.configuration("toys").fingerprint != rendered.fingerprint


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            "config_name: toys",
            "config_name: others",
            r"configurations others, but none has the name of a recipe \(a_coat",
        ),
        ("split: test", "split: proof", "the splits are train, proof; expected train, test"),
    ],
)
def test_a_configuration_of_no_recipe_and_missing_splits_are_named(toys, pushed, before, after, message):
    card = pushed / "README.md"
    card.write_text(card.read_text().replace(before, after))
    with pytest.raises(DatasetError, match=message):
        open_data(f"built:{pushed}")


@pytest.mark.parametrize(
    "card",
    [
        "---\nconfigs: [\n---\n",
        "---\nconfigs:\n- config_name: toys\n  data_files:\n  - split: [a]\n    path: {b: c}\n---\n",
        "---\nconfigs:\n- config_name: toys\n  data_files: nowhere/*\n---\n",
        "---\n&a [*a]\n---\n",
    ],
)
def test_a_damaged_card_is_refused(toys, pushed, card):
    (pushed / "README.md").write_text(card)
    with pytest.raises(DatasetError, match=r"x'|x has|x names|x, toys"):
        open_data(f"built:{pushed}")
    (pushed / "README.md").write_bytes(b"---\n\xff\xfe\n---\n")
    with pytest.raises(DatasetError, match=r"README\.md cannot be read"):
        open_data(f"built:{pushed}")


@pytest.mark.parametrize("path", ["http://127.0.0.1:9/x.parquet", "x.parquet::a.zip"])
def test_a_file_elsewhere_is_refused_before_anybody_asks_for_it(toys, pushed, path, monkeypatch):
    card = pushed / "README.md"
    card.write_text(card.read_text().replace("toys/test-*.parquet", path))
    monkeypatch.setattr(datasets, "load_dataset_builder", None)
    with pytest.raises(DatasetError, match="outside of the data set"):
        open_data(f"built:{pushed}")


def test_a_file_outside_of_the_folder_is_refused(toys, pushed):
    (pushed.parent / "y.parquet").write_bytes(next(pushed.rglob("test-*.parquet")).read_bytes())
    card = pushed / "README.md"
    card.write_text(card.read_text().replace("toys/test-*.parquet", "../y.parquet"))
    with pytest.raises(DatasetError):
        open_data(f"built:{pushed}")
    card.write_text(card.read_text().replace("../y.parquet", str(pushed.parent / "y.parquet")))
    with pytest.raises(DatasetError, match="names a file outside of it"):
        open_data(f"built:{pushed}")


def test_a_folder_with_a_loading_script_of_its_own_name_is_refused(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "script.py").write_text("raise SystemExit('it was run')\n")
    with pytest.raises(DatasetError, match="no data set in"):
        open_data(f"built:{folder}")


def test_columns_without_declared_audio_and_equal_ids_are_refused(toys, pushed):
    shard = next((pushed / "toys").glob("test-*.parquet"))
    table = pq.read_table(shard)
    pq.write_table(table.set_column(0, table.schema.field(0), pa.array(["a", "b", "a"])), shard)
    with pytest.raises(DatasetError, match="a row has the id 'a'; ids must be unique texts"):
        _ = open_data(f"built:{pushed}").configuration("toys").rows
    for shard in (pushed / "toys").glob("*.parquet"):
        pq.write_table(pq.read_table(shard).replace_schema_metadata({}), shard)
    with pytest.raises(DatasetError, match="lacks the columns long, more, short of toys, which must be audio"):
        _ = open_data(f"built:{pushed}").configuration("toys").clip_ids
