"""Data cards that somebody else wrote, of folders without a manifest: each is read, or refused in one sentence."""

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data

from .recipes.toy import as_others_have_it


@pytest.fixture
def folder(toys, tmp_path):
    """Toys as somebody may have pushed them: a card, no manifest."""
    path = build_dataset("tiny", tmp_path / "x", progress=False)
    as_others_have_it(path)
    return path


def test_a_configuration_is_known_by_its_name(toys, folder):
    data = open_data(folder)
    assert data.recipes == ("toys",)
    rendered = open_data("tiny").configuration("toys")
    assert list(data.configuration("toys").rows) == list(rendered.rows)
    assert list(data.configuration("toys").clip_ids) == list(rendered.clip_ids)
    assert data.configuration("toys").fingerprint != rendered.fingerprint


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("config_name: toys", "config_name: others", r"configurations others, none of which is of a recipe \(a_coat"),
        ("split: test", "split: proof", "the splits are train, proof; needed are train, test"),
    ],
)
def test_a_configuration_of_no_recipe_and_missing_splits_are_named(toys, folder, before, after, message):
    card = folder / "README.md"
    card.write_text(card.read_text().replace(before, after))
    with pytest.raises(DatasetError, match=message):
        open_data(f"built:{folder}")


@pytest.mark.parametrize(
    "card",
    [
        "---\nconfigs: [\n---\n",
        "---\nconfigs: 3\n---\n",
        "---\nconfigs:\n- 5\n---\n",
        "---\nconfigs:\n- config_name: toys\n  data_files: 7\n---\n",
        "---\nconfigs:\n- config_name: toys\n  data_files:\n  - split: [a]\n    path: {b: c}\n---\n",
        "---\nconfigs:\n- config_name: toys\n  data_files: nowhere/*\n---\n",
        "---\ndataset_info: 3\nconfigs:\n- config_name: toys\n  data_files: toys/*\n---\n",
        "---\n? [a]\n: b\n---\n",
        "---\n\t\n---\n",
        "---\n&a [*a]\n---\n",
    ],
)
def test_a_damaged_card_is_refused(toys, folder, card):
    (folder / "README.md").write_text(card)
    with pytest.raises(DatasetError, match=r"x'|x has|x names|x, toys"):
        open_data(f"built:{folder}")
    (folder / "README.md").write_bytes(b"---\n\xff\xfe\n---\n")
    with pytest.raises(DatasetError, match=r"README\.md cannot be read"):
        open_data(f"built:{folder}")


@pytest.mark.parametrize(
    "path", ["http://127.0.0.1:9/x.parquet", "https://example.org/x.parquet", "zip://x.parquet::a.zip", "s3://a/b"]
)
def test_a_file_elsewhere_is_refused_before_anybody_asks_for_it(toys, folder, path, monkeypatch):
    card = folder / "README.md"
    card.write_text(card.read_text().replace("toys/test-*.parquet", path))
    monkeypatch.setattr(datasets, "load_dataset_builder", None)
    with pytest.raises(DatasetError, match="the files of a data set lie in the data set itself"):
        open_data(f"built:{folder}")


def test_a_file_outside_of_the_folder_is_refused(toys, folder):
    (folder.parent / "y.parquet").write_bytes(next(folder.rglob("test-*.parquet")).read_bytes())
    card = folder / "README.md"
    card.write_text(card.read_text().replace("toys/test-*.parquet", "../y.parquet"))
    with pytest.raises(DatasetError):
        open_data(f"built:{folder}")
    card.write_text(card.read_text().replace("../y.parquet", str(folder.parent / "y.parquet")))
    with pytest.raises(DatasetError, match="names a file outside of it"):
        open_data(f"built:{folder}")


def test_a_folder_with_a_loading_script_of_its_own_name_is_refused(tmp_path):
    folder = tmp_path / "script"
    folder.mkdir()
    (folder / "script.py").write_text("raise SystemExit('it was run')\n")
    with pytest.raises(DatasetError, match="no data set in"):
        open_data(f"built:{folder}")


def test_columns_without_declared_audio_and_equal_ids_are_refused(toys, folder):
    shard = next((folder / "toys").glob("test-*.parquet"))
    table = pq.read_table(shard)
    pq.write_table(table.set_column(0, table.schema.field(0), pa.array(["a", "b", "a"])), shard)
    with pytest.raises(DatasetError, match="a row has the id 'a'; an id is a unique text"):
        _ = open_data(f"built:{folder}").configuration("toys").rows
    for shard in (folder / "toys").glob("*.parquet"):
        pq.write_table(pq.read_table(shard).replace_schema_metadata({}), shard)
    with pytest.raises(DatasetError, match="lacks the columns long, more, short of toys, declared as audio"):
        _ = open_data(f"built:{folder}").configuration("toys").clip_ids
