"""The published CompA benchmark: read as its authors ship it, with its traps; all that is missing is told at once."""

import shutil
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
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
TABLE = "CompA_order_benchmark.csv"


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


def with_rows(rows, items=3):
    """The order files with another table."""
    return order_files(items) | {TABLE: table(ORDER_COLUMNS, rows)}


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
        for name in (ORDER, ATTRIBUTE):
            recipe = load_recipe(name)
            for row in data.configuration(name).rows:
                recipe.check_row(row)
                assert list(recipe.clip_names(row)) == [f"audio/{k}" for k in range(len(row["files"]))]
                assert (row["origin"], row["writer"], row["pair"]) == ("published", "human", row["id"])
                assert row["swapped"] == name.rpartition("_")[2]

    def test_an_archive_is_what_was_in_it(self, tmp_path):
        packed = opened(write_zip(tmp_path / "it.zip", order_files())).configuration(ORDER)
        unpacked = opened(write_files(tmp_path / "it", order_files())).configuration(ORDER)
        assert (packed.rows, packed.fingerprint) == (unpacked.rows, unpacked.fingerprint)
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

    def test_tables_that_other_programs_have_written(self, tmp_path):
        # Columns as pandas renames them.
        files, path = attribute_files(), "CompA Attribute/Compa-Attribute.csv"
        files[path] = files[path].replace(b",pair_file,reversed_pair_file", b",pair_file.1,reversed_pair_file.1", 1)
        assert b".1" in files[path]
        write_files(tmp_path / "a", {name.replace("Attribute", "x"): content for name, content in files.items()})
        rows = opened(tmp_path / "a").configuration(ATTRIBUTE).rows
        assert [name for row in rows for name in row["files"]] == names_of_attribute()
        # Text of a spreadsheet of Windows; names without their ending, and with folders before them.
        changes = {"X0.wav": "X0", "X1.wav": "somewhere/else/X1.wav", "X2.wav": "C:\\files\\X2.wav"}
        order = with_rows([(changes[row[0]], *row[1:]) for row in order_rows()])
        check_order(opened(write_files(tmp_path / "b", order)).configuration(ORDER))
        content = order[TABLE][3:].replace(b"x0 then", "caf\xe9 then".encode("cp1252"))
        write_files(tmp_path / "b", {TABLE: content})
        assert opened(tmp_path / "b").configuration(ORDER).rows[0]["captions"][0] == "caf\xe9 then y0"


def test_fingerprints_are_of_content_and_captions_wherever_they_lie(folder, tmp_path):
    before = opened(folder).configuration(ORDER).fingerprint
    moved = shutil.copytree(folder, tmp_path / "moved")
    (moved / "CompA_order_files").rename(moved / "sounds")
    assert opened(moved).configuration(ORDER).fingerprint == before
    (moved / "sounds" / "X1.wav").write_bytes(encoded(9))
    assert opened(moved).configuration(ORDER).fingerprint != before
    (folder / TABLE).write_bytes((folder / TABLE).read_bytes().replace(b"x1 then", b"x1 and then"))
    assert opened(folder).configuration(ORDER).fingerprint != before


def test_counts_other_than_the_published_are_said(folder, monkeypatch):
    with pytest.warns(UserWarning, match="Scores are not comparable") as raised:
        open_data(f"compa:{folder}")
    texts = [str(warning.message) for warning in raised]
    assert [text.partition(" has ")[2].partition(";")[0] for text in texts] == [
        "2 items, 0 of them with a third clip",
        "3 items, 1 of them with a third clip",
    ]
    assert "the published table has 400 and 100" in texts[1]
    monkeypatch.setattr(compa, "EXPECTED", {ORDER: (3, 1), ATTRIBUTE: (2, 0)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_data(f"compa:{folder}")
    # What lies beside is left out.
    for name, content in (("broken.zip", b"no such thing"), ("broken.parquet", b"no such thing"), ("empty.csv", b"")):
        (folder / name).write_bytes(content)
    with (folder / "huge.csv").open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)
    with pytest.warns(UserWarning, match="skipped: .*broken.* cannot be read") as raised:
        assert open_data(f"compa:{folder}").recipes == (ORDER, ATTRIBUTE)
    assert len(raised) == 2
    for name in ("empty.csv", "huge.csv"):
        assert "has no table of the benchmark" in problems_of(folder / name)


class TestWhatIsWrong:
    def test_all_missing_files_are_told_at_once_with_row_and_column(self, folder):
        for name in ("CompA_order_files/X0_rev.wav", "CompA_order_files/X0_trip.wav", "CompA_order_files/X2.wav"):
            (folder / name).unlink()
        (folder / "CompA Attribute/CompA_attribute_files/A1_rev.wav").unlink()
        assert problems_of(folder).splitlines() == [
            f"compa:{folder}: 4 problems:",
            f"  Compa-Attribute.csv:3, reversed_pair_file.1: no file 'A1_rev.wav' in {folder}",
            f"  {TABLE}:2, reversed_pair_file: no file 'X0_rev.wav' in {folder}",
            f"  {TABLE}:2, triplet_file: no file 'X0_trip.wav' in {folder}",
            f"  {TABLE}:4, pair_file: no file 'X2.wav' in {folder}",
        ]

    def test_files_of_one_name_and_two_tables(self, folder):
        (folder / "more").mkdir()
        shutil.copy(folder / "CompA_order_files" / "X1.wav", folder / "more")
        shutil.copy(folder / TABLE, folder / "mine.csv")
        text = problems_of(folder)
        assert "'X1.wav' is the name of CompA_order_files/X1.wav and more/X1.wav" in text
        assert "mine.csv is a second table with the same items" in text

    def test_captions_files_and_twins_that_cannot_be(self, tmp_path):
        rows = [list(row) for row in order_rows(6)]
        # Without the other of caption and file; a clip that is its own reversed one.
        rows[0][1], rows[1][2], rows[4][5], rows[5][4] = "-", "", "x with y", "X0.wav"
        rows[2][2], rows[3][3] = rows[2][0], rows[3][1]
        text = problems_of(write_files(tmp_path, with_rows(rows, 6)))
        for problem in (
            *(":2: pair_caption is empty", ":3: reversed_pair_file is empty", ":6: triplet_file is empty"),
            ":7: triplet_caption is empty",
            ":4, reversed_pair_file: the file 'X2.wav' is also used for pair",
            f":5, reversed_pair_file: the caption {rows[3][1]!r} is also used for pair",
        ):
            assert problem in text

    def test_tables_without_rows_and_copies_without_twins(self, tmp_path):
        assert f"{TABLE} has no rows" in problems_of(write_files(tmp_path / "it", with_rows([])))
        path = tmp_path / "x.parquet"
        assert "x.parquet has no rows" in problems_of(write_copy(path, names=[]))
        names = [name for name in names_of_order() if name != "X1_rev.wav"]
        assert "X1.wav has no reversed clip X1_rev" in problems_of(write_copy(path, names=names))
        before = pq.read_table(write_copy(path))
        names = [name.replace("X1_rev.wav", "X0.flac") for name in before["file_name"].to_pylist()]
        pq.write_table(before.set_column(0, before.schema.field("file_name"), pa.array(names)), path)
        assert "X0.wav and X0.flac belong to the same item by file_name" in problems_of(path)

    def test_what_is_not_the_benchmark(self, tmp_path):
        for name in ("x.txt", "x.zip", "y.parquet"):
            (tmp_path / name).write_bytes(b"no such thing")
        (tmp_path / "empty").mkdir()
        for path, message in (
            ("nothing", "is neither a folder nor a file"),
            ("x.txt", "is not a CSV, zip or Parquet file"),
            ("x.zip", "cannot be read as a zip archive"),
            ("empty", "has no table of the benchmark"),
            ("y.parquet", "cannot be read as Parquet"),
        ):
            assert message in problems_of(tmp_path / path)

    def test_sound_that_cannot_be_used_is_left_out_where_asked(self, folder, monkeypatch):
        before = published.waveform(0)
        for content, message in ((b"no sound", "cannot be read"), (0 * before, "is silent"), (before[:0], "is empty")):
            if not isinstance(content, bytes):
                monkeypatch.setattr(published, "waveform", lambda number, samples=content: samples)
                content = encoded(0)
            (folder / "CompA_order_files" / "X1.wav").write_bytes(content)
            configuration = opened(folder).configuration(ORDER)
            with pytest.raises(DatasetError, match=f"clip comp_a_order-00001/audio/0 {message}"):
                list(configuration.clips())
            clips = list(configuration.clips(keep_invalid=True))
            assert [clip.id for clip in clips if clip.problem] == ["comp_a_order-00001/audio/0"]


def test_captions_of_a_file(tmp_path):
    for name, text, expected in (
        ("x.csv", "n,Caption_1,caption_2\n1,a,b\n2,,c\n", ["a", "b", "c"]),
        ("x.tsv", "n\tcaptions\n1\ta, b\n", ["a, b"]),
        ("x.txt", "one\n\n two, three \n", ["one", "two, three"]),
    ):
        (tmp_path / name).write_text(text)
        assert compa.read_captions(tmp_path / name) == expected
    (tmp_path / "other.csv").write_text("n,text\n1,a\n")
    with pytest.raises(
        DatasetError, match="has the columns n, text; captions must be in caption, captions or caption_1"
    ):
        compa.read_captions(tmp_path / "other.csv")
