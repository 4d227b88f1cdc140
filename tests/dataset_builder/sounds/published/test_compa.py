"""The published CompA benchmark: read as its authors ship it, with its traps; all that is missing is told at once."""

import shutil
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.sounds.published import LARGEST_FILE, compa

from . import published
from .published import (
    ORDER_COLUMNS,
    RATES,
    attribute_files,
    encoded,
    names_of_attribute,
    names_of_order,
    order_files,
    order_rows,
    table,
    waveform,
    write_copy,
    write_files,
    write_zip,
)

ORDER, ATTRIBUTE = "comp_a_order", "comp_a_attribute"


def opened(path):
    """The data at a path, of which the miniature is smaller than what was published."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return open_data(f"compa:{path}")


def problems_of(path):
    with pytest.raises(DatasetError) as raised:
        opened(path)
    return str(raised.value)


@pytest.fixture
def folder(tmp_path):
    write_files(tmp_path / "it", order_files())
    return write_files(tmp_path / "it", attribute_files())


def check_order(configuration, items=3):
    rows = configuration.rows
    assert [row["captions"] for row in rows] == [[text for text in row[1::2] if text[1:]] for row in order_rows(items)]
    names = [f"{row['id']}/audio/{place}" for row in rows for place in range(len(row["captions"]))]
    assert list(configuration.clip_ids) == names
    for number, clip in enumerate(configuration.clips()):
        assert (clip.id, clip.sample_rate) == (names[number], RATES[number % 3])
        np.testing.assert_allclose(clip.waveform, waveform(number).mean(axis=1), atol=4e-5)


def with_rows(rows, items=3, **more):
    """The order files with another table."""
    return order_files(items) | {"CompA_order_benchmark.csv": table(ORDER_COLUMNS, rows)} | more


class TestWhatIsRead:
    def test_rows_and_clips_of_a_folder(self, folder):
        # A table is known by its own name and not by that of its folder.
        files = {f"order and attribute/{path}": content for path, content in order_files().items()}
        assert opened(write_files(folder.parent / "other", files)).recipes == (ORDER,)
        data = opened(folder)
        assert (data.source, data.recipes) == (f"compa:{folder}", (ORDER, ATTRIBUTE))
        check_order(data.configuration(ORDER))
        attribute = data.configuration(ATTRIBUTE)
        assert [row["captions"] for row in attribute.rows] == [
            ["a baby 0 cries", "a man 0 cries"],
            ["a baby 1 cries", "a man 1 cries"],
        ]
        # Those of the second column of the name, and not the ids of videos.
        assert [name for row in attribute.rows for name in row["files"]] == names_of_attribute()
        for number, clip in enumerate(attribute.clips(range(1, 3)), 21):
            np.testing.assert_allclose(clip.waveform, waveform(number).mean(axis=1), atol=4e-5)

    def test_the_columns_of_the_recipes(self, folder):
        for recipe in (ORDER, ATTRIBUTE):
            for row in opened(folder).configuration(recipe).rows:
                assert (row["split"], row["origin"], row["writer"], row["pair"]) == (
                    "test",
                    "published",
                    "human",
                    row["id"],
                )
                assert row["events"] == [[] for _ in row["captions"]]
                assert row["swapped"] == recipe.rpartition("_")[2]
                if recipe in list_recipes():
                    load_recipe(recipe).check_row(row)
                    assert list(load_recipe(recipe).clip_names(row)) == [f"audio/{k}" for k in range(len(row["files"]))]

    def test_an_archive_is_what_was_in_it(self, tmp_path):
        packed = opened(write_zip(tmp_path / "it.zip", order_files())).configuration(ORDER)
        unpacked = opened(write_files(tmp_path / "it", order_files())).configuration(ORDER)
        assert packed.rows == unpacked.rows
        assert packed.fingerprint == unpacked.fingerprint
        for one, other in zip(packed.clips(), unpacked.clips(), strict=True):
            np.testing.assert_array_equal(one.waveform, other.waveform)

    def test_a_folder_with_both_archives_or_with_one_that_is_unpacked_too(self, tmp_path):
        write_zip(tmp_path / "CompA-order.zip", order_files())
        write_zip(tmp_path / "CompA-attribute.zip", attribute_files())
        assert opened(tmp_path).recipes == (ORDER, ATTRIBUTE)
        write_files(tmp_path, order_files())
        assert opened(tmp_path).recipes == (ORDER, ATTRIBUTE)

    def test_a_table_with_its_files_beside_it(self, folder):
        data = opened(folder / "CompA_order_benchmark.csv")
        assert data.recipes == (ORDER,)
        check_order(data.configuration(ORDER))
        shutil.copytree(folder / "CompA_order_files", folder / "beside")
        shutil.copy(folder / "CompA_order_benchmark.csv", folder / "beside" / "mine.csv")
        check_order(opened(folder / "beside" / "mine.csv").configuration(ORDER))

    def test_the_copy_of_the_hub(self, tmp_path):
        path = write_copy(tmp_path / "data" / "train-00000-of-00001.parquet")
        for place in (path, tmp_path):
            check_order(opened(place).configuration(ORDER))
        shuffled = write_copy(tmp_path / "other.parquet", names=[*reversed(names_of_order())])
        assert [len(row["captions"]) for row in opened(shuffled).configuration(ORDER).rows] == [2, 2, 3]

    def test_columns_that_pandas_has_renamed(self, tmp_path):
        files = attribute_files()
        path = "CompA Attribute/Compa-Attribute.csv"
        files[path] = files[path].replace(b",pair_file,reversed_pair_file", b",pair_file.1,reversed_pair_file.1", 1)
        assert b".1" in files[path]
        write_files(tmp_path, {name.replace("Attribute", "x"): content for name, content in files.items()})
        names = [name for row in opened(tmp_path).configuration(ATTRIBUTE).rows for name in row["files"]]
        assert names == names_of_attribute()

    def test_captions_of_a_spreadsheet_of_windows(self, tmp_path):
        rows = [(*row[:1], "a café then y", *row[2:]) for row in order_rows()]
        files = with_rows(rows)
        files["CompA_order_benchmark.csv"] = files["CompA_order_benchmark.csv"][3:].decode().encode("cp1252")
        assert opened(write_files(tmp_path, files)).configuration(ORDER).rows[0]["captions"][0] == "a café then y"

    def test_names_without_their_ending_and_with_folders_before_them(self, tmp_path):
        changes = {"X0.wav": "X0", "X1.wav": "somewhere/else/X1.wav", "X2.wav": "C:\\files\\X2.wav"}
        rows = [(changes[row[0]], *row[1:]) for row in order_rows()]
        check_order(opened(write_files(tmp_path, with_rows(rows))).configuration(ORDER))


def test_fingerprints_are_of_content_and_captions_wherever_they_lie(folder, tmp_path):
    before = opened(folder).configuration(ORDER).fingerprint
    moved = shutil.copytree(folder, tmp_path / "moved")
    (moved / "CompA_order_files").rename(moved / "sounds")
    assert opened(moved).configuration(ORDER).fingerprint == before
    (moved / "sounds" / "X1.wav").write_bytes(encoded(9))
    assert opened(moved).configuration(ORDER).fingerprint != before
    path = folder / "CompA_order_benchmark.csv"
    path.write_bytes(path.read_bytes().replace(b"x1 then", b"x1 and then"))
    assert opened(folder).configuration(ORDER).fingerprint != before


def test_counts_other_than_the_published_are_said(folder, monkeypatch):
    with pytest.warns(UserWarning, match="scores are not comparable") as raised:
        open_data(f"compa:{folder}")
    texts = [str(warning.message) for warning in raised]
    assert [text.partition(" has ")[2].partition(";")[0] for text in texts] == [
        "2 items, 0 of them with a third clip",
        "3 items, 1 of them with a third clip",
    ]
    assert "the published one has 400 and 100" in texts[1]
    monkeypatch.setattr(compa, "EXPECTED", {ORDER: (3, 1), ATTRIBUTE: (2, 0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_data(f"compa:{folder}")


class TestWhatIsWrong:
    def test_all_missing_files_are_told_at_once_with_row_and_column(self, folder):
        for name in ("CompA_order_files/X0_rev.wav", "CompA_order_files/X0_trip.wav", "CompA_order_files/X2.wav"):
            (folder / name).unlink()
        (folder / "CompA Attribute/CompA_attribute_files/A1_rev.wav").unlink()
        lines = problems_of(folder).splitlines()
        assert lines[0] == f"compa:{folder}: 4 things are wrong:"
        assert lines[1:] == [
            f"  Compa-Attribute.csv, row 3, reversed_pair_file.1: no file 'A1_rev.wav' in {folder}",
            f"  CompA_order_benchmark.csv, row 2, reversed_pair_file: no file 'X0_rev.wav' in {folder}",
            f"  CompA_order_benchmark.csv, row 2, triplet_file: no file 'X0_trip.wav' in {folder}",
            f"  CompA_order_benchmark.csv, row 4, pair_file: no file 'X2.wav' in {folder}",
        ]

    def test_captions_and_files_that_lack_the_other(self, tmp_path):
        rows = [list(row) for row in order_rows(4)]
        rows[0][1], rows[1][2], rows[2][5], rows[3][4] = "-", "", "x with y", "X0.wav"
        text = problems_of(write_files(tmp_path, with_rows(rows, 4)))
        for number, column in ((2, "pair_caption"), (3, "reversed_pair_file"), (4, "triplet_file")):
            assert f"row {number}: {column} is empty" in text
        assert "row 5: triplet_caption is empty" in text

    def test_files_of_one_name_and_two_tables(self, folder):
        (folder / "more").mkdir()
        shutil.copy(folder / "CompA_order_files" / "X1.wav", folder / "more")
        shutil.copy(folder / "CompA_order_benchmark.csv", folder / "mine.csv")
        text = problems_of(folder)
        assert "'X1.wav' is the name of CompA_order_files/X1.wav and more/X1.wav" in text
        assert "mine.csv is a second table of the same items" in text

    def test_a_clip_and_its_reversed_one_that_are_the_same(self, tmp_path):
        rows = [list(row) for row in order_rows()]
        rows[0][2], rows[1][3] = rows[0][0], rows[1][1]
        text = problems_of(write_files(tmp_path, with_rows(rows)))
        assert "2 things are wrong" in text
        assert "row 2, reversed_pair_file: the file 'X0.wav' is that of pair as well" in text
        assert f"row 3, reversed_pair_file: the caption {rows[1][1]!r} is that of pair as well" in text

    def test_tables_without_rows_and_copies_without_twins(self, tmp_path):
        assert "CompA_order_benchmark.csv has no rows" in problems_of(write_files(tmp_path / "it", with_rows([])))
        path = tmp_path / "x.parquet"
        assert "x.parquet has no rows" in problems_of(write_copy(path, names=[]))
        names = [name for name in names_of_order() if name != "X1_rev.wav"]
        assert "X1.wav has no twin X1_rev" in problems_of(write_copy(path, names=names))
        before = pq.read_table(write_copy(path))
        names = [name.replace("X1_rev.wav", "X0.flac") for name in before["file_name"].to_pylist()]
        pq.write_table(before.set_column(0, before.schema.field("file_name"), pa.array(names)), path)
        assert "X0.wav and X0.flac are of one item by file_name" in problems_of(path)

    def test_what_lies_beside_is_left_out(self, folder, monkeypatch):
        monkeypatch.setattr(compa, "EXPECTED", {ORDER: (3, 1), ATTRIBUTE: (2, 0)})
        (folder / "broken.zip").write_bytes(b"no such thing")
        (folder / "broken.parquet").write_bytes(b"no such thing")
        (folder / "empty.csv").write_bytes(b"")
        with (folder / "huge.csv").open("wb") as stream:
            stream.truncate(LARGEST_FILE + 1)
        with pytest.warns(UserWarning, match="left out: .*broken.* cannot be read") as raised:
            data = open_data(f"compa:{folder}")
        assert data.recipes == (ORDER, ATTRIBUTE)
        assert len(raised) == 2
        for name in ("empty.csv", "huge.csv"):
            assert "has no table of the benchmark" in problems_of(folder / name)

    @pytest.mark.parametrize(
        ("path", "message"),
        [
            ("nothing", "is neither a folder nor a file"),
            ("x.txt", "is not a CSV, zip or Parquet file"),
            ("x.zip", "cannot be read as a zip archive"),
            ("empty", "has no table of the benchmark"),
            ("y.parquet", "cannot be read as Parquet"),
        ],
    )
    def test_what_is_not_the_benchmark(self, tmp_path, path, message):
        for name in ("x.txt", "x.zip", "y.parquet"):
            (tmp_path / name).write_bytes(b"no such thing")
        (tmp_path / "empty").mkdir()
        with pytest.raises(DatasetError, match=message):
            open_data(f"compa:{tmp_path / path}")

    def test_sound_that_cannot_be_used_is_left_out_where_asked(self, folder):
        (folder / "CompA_order_files" / "X1.wav").write_bytes(b"no sound")
        configuration = opened(folder).configuration(ORDER)
        with pytest.raises(DatasetError, match="clip comp_a_order-00001/audio/0 cannot be read"):
            list(configuration.clips())
        clips = list(configuration.clips(keep_invalid=True))
        assert [clip.id for clip in clips if clip.problem] == ["comp_a_order-00001/audio/0"]

    @pytest.mark.parametrize(("scale", "length", "message"), [(0, 1, "is silent"), (1, 0, "is empty")])
    def test_sound_that_is_none(self, folder, monkeypatch, scale, length, message):
        before = published.waveform(0)
        monkeypatch.setattr(published, "waveform", lambda number: scale * before[: length * len(before)])
        (folder / "CompA_order_files" / "X0.wav").write_bytes(encoded(0))
        with pytest.raises(DatasetError, match=message):
            next(opened(folder).configuration(ORDER).clips())
