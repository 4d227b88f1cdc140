"""Tables as people bring them: every way to write one table is read as the same rows, and a fault is named."""

import io

import pandas
import pytest

from audio_compositionality.dataset_builder import tables
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.data_spec import DataSpec
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.sounds.formats import format_of, read_annotations
from audio_compositionality.dataset_builder.sounds.formats.parsing import ReadOptions
from audio_compositionality.dataset_builder.tables import Line, TableError, lines_of, open_table, table_of

from .sounds.sounds import write

ROWS = ("file_name,label,group", "dog/0.wav,dog,a", "cat/1.wav,cat,b")
PLAIN = "\n".join(ROWS)


@pytest.mark.parametrize(
    "content",
    [
        PLAIN.encode("utf-8-sig"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-16-be"),
        *(PLAIN.replace(",", mark).encode() for mark in "\t;|"),
        PLAIN.replace("\n", "\r\n").encode(),
        ("sep=;\r\n" + PLAIN.replace(",", ";")).encode(),
        # Excel: a blank row; quoted fields.
        b'file_name,label,group\ndog/0.wav,"dog","a"\n\n"cat/1.wav",cat,b,,\n',
        b'file_name\tlabel\tgroup\n"dog/0.wav"\tdog\ta\ncat/1.wav\t"cat"\tb\n',
    ],
)
def test_every_way_to_write_a_table_gives_its_rows(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    table = open_table(tmp_path / "t.csv")
    assert [table.headings, *(line.fields for line in table.lines)] == [tuple(row.split(",")) for row in ROWS]


def test_the_number_of_rows_has_a_limit_that_the_user_sets(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a\n" + "1\n" * 20)
    monkeypatch.setenv(tables.ROWS_VARIABLE, "20")
    with pytest.raises(TableError, match=f"21 rows; the limit is 20. Set {tables.ROWS_VARIABLE}"):
        open_table(tmp_path / "t.csv")
    monkeypatch.setenv(tables.ROWS_VARIABLE, "21")
    assert len(open_table(tmp_path / "t.csv").lines) == 20


def test_its_rows_are_those_of_pandas(tmp_path):
    text = 'a,a,"b, c",d\n1,"x ""y"" z","two\nlines",\n2,é,"3,5",ü\n'
    (tmp_path / "t.csv").write_text(text, "utf-8")
    expected = pandas.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    table = open_table(tmp_path / "t.csv")
    assert pandas.DataFrame(table.records()).equals(expected)
    # A row of two lines has the number of its first; a quotation mark in a table with tabs is part of a field.
    assert [line.where for line in table.lines] == ["t.csv:2", "t.csv:4"]
    (tmp_path / "t.tsv").write_text('a\tb\n"x\t1\ny"\t2\n')
    assert [line.fields for line in open_table(tmp_path / "t.tsv").lines] == [('"x', "1"), ('y"', "2")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "label\n개".encode("cp949"),
            r"t.csv is not UTF-8 text \(line 2, byte 0xb0\)\. .*--set encoding=cp1252 .*cp949",
        ),
        (b"PK\x03\x04 workbook", "t.csv is a spreadsheet workbook. Export the sheet as CSV UTF-8"),
        (b"a,b\n1,2,3\n", r"t.csv:2 has 3 fields, but the first line names 2 columns: a, b. Put quotation marks"),
        (b"a,b\n1\n", r"t.csv:2 has 1 fields"),
        (b'a,b\n1,2\n"1,2\n', r"t.csv:3 cannot be read as a row of a table: unexpected end of data"),
        (b"a,b\n\0,2\n", "contains NUL characters"),
        (b"\n\n", "t.csv is empty"),
    ],
)
def test_what_is_no_table_is_named_with_its_line_and_the_remedy(tmp_path, content, message, monkeypatch):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(TableError, match=message):
        open_table(tmp_path / "t.csv")
    monkeypatch.setattr(tables, "LARGEST", 1)
    with pytest.raises(TableError, match="more than 0 MiB"):
        open_table(tmp_path / "t.csv", largest=1)


def test_the_stated_encoding_is_used_and_one_that_is_none_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes("label\n개\n".encode("cp949"))
    assert open_table(tmp_path / "t.csv", encoding="cp949").records() == [{"label": "개"}]
    for name in ("cp9999", "hex"):
        with pytest.raises(DatasetError.__base__, match=f"encoding is '{name}'; give the name of an encoding"):
            DataSpec(data="x", encoding=name)


def test_columns_are_found_in_any_case_and_a_line_of_one_column_is_named(tmp_path):
    (tmp_path / "t.csv").write_text(" File , LABEL\na,b\n")
    assert (open_table(tmp_path / "t.csv").column("file"), open_table(tmp_path / "t.csv").column("label")) == (
        "File",
        "LABEL",
    )
    (tmp_path / "t.csv").write_text("file:label\na:b\n")
    message = (
        r"no column 'file'; .*'file:label', is a single column: fields must be separated by tab, semicolon, | and comma"
    )
    with pytest.raises(TableError, match=message):
        open_table(tmp_path / "t.csv").column("file")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("['a' 'b']", ["a", "b"]),
        ("['a'\n \"it's\"]", ["a", "it's"]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("[sic] a", "[sic] a"),
        ("[open('x', 'w')]", "[open('x', 'w')]"),
        ("[" * 100_000, "[" * 100_000),
        ("[1and 2]", "[1and 2]"),
    ],
)
def test_lists_as_programs_print_them_are_lists(text, value, recwarn):
    assert tables.value_of(text) == value
    assert not recwarn.list


def test_times_and_numbers_as_people_write_them():
    for text, seconds in (("0,5", 0.5), ("1.25", 1.25), ("0:01:02.5", 62.5), ("2:03", 123.0), ("01:00:00", 3600.0)):
        assert tables.time_of(text) == seconds
    for text in ("", "1:2:3:4", "a", "1,2,3", "1,234.5", "-1:00"):
        assert tables.time_of(text) != tables.time_of(text)


# ----- recordings


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(("dog/dog_0.wav", "dog/dog_1.wav", "cat/cat_0.wav", "cat/cat_1.wav")):
        write(tmp_path / "sounds" / name, seed=seed)
    return tmp_path / "sounds"


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("file_name,label,Group\ndog/dog_0.wav,dog,anna\ncat/cat_0.wav,cat,ben\n", {"anna", "ben"}),
        ("\ufefffile_name;label;group\ndog/dog_0.wav;dog;a\n;;\ncat\\cat_0.wav;cat;b\n", {"a", "b"}),
        # By the end of a path of another machine, and by the name alone.
        ("file_name,label,group\n/home/x/dog/dog_0.wav,dog,a\nC:\\data\\cat_0.wav,cat,b\n", {"a", "b"}),
        # Files that were converted.
        ("path,label,group\ndog_0.mp3,dog,a\nvideos/cat_0.mp4,cat,b\n", {"a", "b"}),
        ("FILE,Label,group\n./cat/../dog/dog_0.wav,dog,a\ncat_0,cat,b\n", {"a", "b"}),
    ],
)
def test_recordings_have_their_files_labels_and_groups_however_they_are_written(folder, text, groups):
    (folder / "metadata.csv").write_text(text, "utf-8")
    recordings = open_recordings(folder, progress=False)
    found = {(entry.id, entry.label) for entry in recordings.entries}
    assert found == {("dog/dog_0.wav", "dog"), ("cat/cat_0.wav", "cat")}
    assert {entry.group for entry in recordings.entries} == groups


def test_labels_in_another_encoding_under_other_headings_and_in_lists(folder):
    text = "Datei;Klasse;said\ndog/dog_0.wav;개;a dog\ncat/cat_0.wav;고양이;['a cat' 'a pet']\n"
    (folder / "t.csv").write_bytes(text.encode("cp949"))
    with pytest.raises(TableError, match="encoding"):
        open_recordings(folder / "t.csv", file="datei", label="klasse", audio=str(folder), progress=False)
    read = open_recordings(
        folder / "t.csv",
        file="datei",
        label="klasse",
        captions=("said",),
        encoding="cp949",
        audio=str(folder),
        progress=False,
    )
    assert {(entry.label, entry.captions) for entry in read.entries} == {
        ("개", ("a dog",)),
        ("고양이", ("a cat", "a pet")),
    }
    (folder / "metadata.csv").write_text("file_name,label\ndog/dog_0.wav,\"['a' 'b']\"\ncat/cat_0.wav,\"['b']\"\n")
    assert {entry.labels for entry in open_recordings(folder, progress=False).complete.entries} == {("a", "b"), ("b",)}
    regions = '[{""start"": 0.5, ""labels"": [""dog""]}]'
    (folder / "metadata.csv").write_text(f'file_name,label\ndog/dog_0.wav,"{regions}"\n')
    with pytest.raises(
        DatasetError, match=r"metadata.csv:2: the label of 'dog/dog_0.wav' is .*start.*; a label must be a text"
    ):
        open_recordings(folder, progress=False)


def test_a_table_of_unknown_columns_names_them_and_those_that_each_kind_needs(folder):
    (folder / "t.csv").write_text("foo,bar\n1,2\n")
    message = (
        r"cannot tell what '.*t\.csv' contains: none of the columns in its first line \(foo, bar\) is recognised. "
        r"Recordings need file_name.*, questions need question and options, strong labels need file, label, start and"
    )
    with pytest.raises(DatasetError, match=message):
        open_recordings(folder / "t.csv")
    (folder / "t.csv").write_text("file,start_time,end_time,wren\ndog/dog_0.wav,0.2,0.5,1\n")
    message = (
        r"its columns \(file, .*\) contain times, .*; table:.*t.csv reads its rows as whole recordings.*strong labels"
    )
    with pytest.raises(DatasetError, match=message):
        open_recordings(folder / "t.csv")


def test_remarks_above_a_table_are_passed_over_and_the_last_can_name_the_columns():
    remarks = "# Segments, made 2017\n# n=2, m=3\n# id, start, labels\n"
    assert lines_of(f'{remarks}-a, 3.0, "x,y"\n', "t") == [
        Line("t:3", ("id", "start", "labels")),
        Line("t:4", ("-a", "3.0", "x,y")),
    ]
    assert table_of("# a remark, or two\r\nid\tlabel\r\n1\tdog\r\n", "t").headings == ("id", "label")
    assert table_of("#,Name\nR1,dog\n", "t").headings == ("#", "Name")
    # A remark with a comma is no header above one.
    assert table_of("# Recorded by A, B\nfile_name,label\na.wav,dog\n", "t").headings == ("file_name", "label")


def test_the_delimiter_is_the_one_that_divides_every_line_alike():
    commas = "file;start;stop;label (a, b, c, d, or e)\nx.wav;0,5;1,5;Speech, female, adult, indoors\ny.wav;1;2;dog\n"
    assert [len(line.fields) for line in lines_of(commas, "t")] == [4, 4, 4]
    assert [len(line.fields) for line in lines_of("a|b|c, d, e, f\n1|2|x\n1|2|y, z\n", "t")] == [3, 3, 3]
    assert [len(line.fields) for line in lines_of("file,label\na.wav,dog;cat\nb.wav,dog;cat\n", "t")] == [2, 2, 2]


def test_a_file_of_another_folder_is_not_taken_for_the_one_named(folder):
    (folder / "metadata.csv").write_text("file_name,label\nnew/dog_0.wav,horse\n")
    with pytest.raises(DatasetError, match=r"'new/dog_0\.wav' is not in "):
        open_recordings(folder, progress=False)


def test_a_name_of_two_files_is_refused(folder):
    write(folder / "dog" / "cat_0.wav", seed=9)
    (folder / "metadata.csv").write_text("file_name,label\ncat_0.wav,cat\ndog_0.wav,dog\n")
    with pytest.raises(DatasetError, match=r"is the name of 2 files: cat/cat_0\.wav, dog/cat_0\.wav; give the path"):
        open_recordings(folder, progress=False)


# ----- strong labels


@pytest.mark.parametrize(
    "text",
    [
        "File,Start,Stop,Label\nrec1.wav,0.5,1.2,dog\nrec1.wav,1.0,2.0,cat\n",
        "file ;start ;stop ;label\nrec1.wav;0,5;1,2;dog\n;;;\nrec1.wav;1,0;2,0;cat\n",
        "file|start|stop|label\nx\\rec1.wav|0:00.5|00:00:01.2|dog\nx\\rec1.wav|0:01|0:02|cat\n",
    ],
)
def test_events_are_the_same_however_they_are_written(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert format_of(tmp_path / "t.csv") == "table"
    (annotation,) = read_annotations(tmp_path / "t.csv", "table", ReadOptions(durations={"rec1": 3.0}))
    assert [(e.onset, e.offset, e.label) for e in annotation.events] == [(0.5, 1.2, "dog"), (1.0, 2.0, "cat")]


@pytest.mark.parametrize("end", ["Table.1.selections.txt", "BirdNET.selection.table.txt"])
def test_raven_and_audacity_with_blanks_in_their_names(tmp_path, end):
    (tmp_path / "raven").mkdir()
    (tmp_path / "raven" / f"rec 1.{end}").write_text(
        "Selection\tView\tChannel\tBegin Time (s)\tEnd Time (s)\tLow Freq (Hz)\tHigh Freq (Hz)\tSpecies\n"
        "1\tSpectrogram 1\t1\t0.50\t1.25\t1800\t4200\trobin\n2\tSpectrogram 1\t1\t1.00\t2.10\t2500\t6000\twren\n"
    )
    (tmp_path / "audacity").mkdir()
    (tmp_path / "audacity" / "rec 1.txt").write_text(
        "0.500000\t1.250000\trobin\n\\\t1800.0\t4200.0\n1.000000\t2.100000\twren\n"
    )
    options = ReadOptions(sounds={"rec 1": 3.0})
    for name, format in (("raven", "raven"), ("audacity", "text")):
        assert format_of(tmp_path / name) == format
        (annotation,) = read_annotations(tmp_path / name, format, options)
        assert annotation.recording == "rec 1"
        assert [(e.onset, e.offset, e.label) for e in annotation.events] == [(0.5, 1.25, "robin"), (1.0, 2.1, "wren")]
    (tmp_path / "one.txt").write_text("Begin Time (s)\tEnd Time (s)\tBegin File\tSong\n0\t1\trec 1.wav\twren\n")
    with pytest.raises(DatasetError, match=r"one.txt has the columns .*Song, but none of .*--set columns=label=COLUMN"):
        read_annotations(tmp_path / "one.txt", "raven", options)
    # Two tables in one: each numbers its selections from 1.
    head = "Selection\tBegin Time (s)\tEnd Time (s)\tBegin File\tSpecies\n"
    both = "".join(
        f"{n}\t{n}\t{n + 0.5}\t{file}.wav\twren\n" for file, most in (("a", 2), ("b", 3)) for n in range(1, most + 1)
    )
    (tmp_path / "two.txt").write_text(head + both)
    read = read_annotations(tmp_path / "two.txt", "raven", ReadOptions(sounds={"a": 9.0, "b": 9.0}))
    assert {one.recording: len(one.events) for one in read} == {"a": 2, "b": 3}
    options = ReadOptions(sounds={"rec 1": 3.0}, columns={"label": "song"})
    assert read_annotations(tmp_path / "one.txt", "raven", options)[0].labels == ("wren",)
