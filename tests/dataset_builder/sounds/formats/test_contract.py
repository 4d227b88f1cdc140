"""Every format keeps one contract: events that are written are read, damaged ones refused with their place."""

import json
import re
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.annotations import AnnotationError
from audio_compositionality.dataset_builder.sounds.formats import FORMATS, format_of, read_annotations
from audio_compositionality.dataset_builder.sounds.formats.parsing import ReadOptions

from .written import SECONDS, STRONG, WHOLE_SECONDS, WRITERS, events_of, rows, write

each_format = pytest.mark.parametrize("name", WRITERS)


def written(name, folder, clips):
    """The path of labels in a format, and how long the recordings are."""
    return WRITERS[name](folder, clips), ReadOptions(durations=dict.fromkeys(clips, SECONDS))


@st.composite
def spans(draw):
    """Intervals of whole numbers that do not meet, of one label or several."""
    events = []
    for label in draw(st.sets(st.sampled_from(["Dog", "cat", "car horn"]), min_size=1)):
        borders = sorted(draw(st.sets(st.integers(0, 10), min_size=2, max_size=6)))
        events += [(*pair, label) for pair in zip(borders[::2], borders[1::2], strict=False)]
    return events


def test_every_format_is_written_here():
    assert sorted(WRITERS) == sorted(FORMATS)


@each_format
@settings(max_examples=15)
@given(spans(), spans())
def test_events_that_are_written_are_read(name, first, second):
    unit = 1 if name in WHOLE_SECONDS else 0.25
    clips = {
        clip: [(onset * unit, offset * unit, label) for onset, offset, label in events]
        for clip, events in (("b", first), ("a", second))
    }
    if name != "audioset-strong":
        clips["silent"] = []
    with tempfile.TemporaryDirectory() as folder:
        path, options = written(name, Path(folder), clips)
        annotations = read_annotations(path, name, options)
    assert [annotation.recording for annotation in annotations] == sorted(clips)
    for annotation in annotations:
        assert (annotation.duration, annotation.source_name) == (SECONDS, name)
        assert sorted(events_of(annotation)) == sorted(clips[annotation.recording])
        assert [event.onset for event in annotation.events] == sorted(event.onset for event in annotation.events)


WRONG = [
    ((3, 2, "Dog"), r"'Dog' lasts from 3\.0 to 2\.0 s; 0 ≤ onset < offset must hold"),
    (("x", 2, "Dog"), "'x'.*; expected: seconds"),
    ((1, "nan", "Dog"), "'nan'.*; expected: seconds"),
    ((1, 2, ""), r"the event from 1\.0 to 2\.0 s has no label"),
    ((1, 12, "Dog"), r"'Dog' lasts until 12 s, after the end of the recording at 10 s"),
]
"""Events that cannot be, and what is said of them."""

PLACES = {
    "audioset-strong": r"labels\.tsv:3",
    "audiotime": r"timestamp_captions\.json:1",
    "desed": r"labels\.tsv:3",
    "jams": r"two\.jams: tag_open 1",
    # Further seconds of the same event follow.
    "maestro": r"labels\.csv:\d+",
    "maestro-soft": r"two\.txt:\d+",
    "raven": r"two\.Table\.1\.selections\.txt:2",
    "table": r"labels\.csv:3",
    "text": r"two\.txt:1",
}


@each_format
def test_its_files_are_recognised(name, tmp_path):
    unit = 1 if name in WHOLE_SECONDS else 0.5
    assert format_of(WRITERS[name](tmp_path, {"a": [(unit, 3 * unit, "Dog")]})) == name


@each_format
@pytest.mark.parametrize(("event", "message"), WRONG)
def test_a_wrong_event_is_refused_with_its_place_or_its_recording_left_out(name, event, message, tmp_path):
    path, options = written(name, tmp_path, {"one": [(0, 1, "Cat")], "two": [event]})
    with pytest.raises(AnnotationError, match=f"{PLACES[name]}: .*{message}") as raised:
        read_annotations(path, name, options)
    assert "--skip-invalid leaves out such recordings" in str(raised.value)
    left_out = {}
    (kept,) = read_annotations(path, name, replace(options, left_out=left_out))
    assert (kept.recording, events_of(kept)) == ("one", [(0, 1, "Cat")])
    assert re.search(f"^{PLACES[name]}: .*{message}", left_out.pop("two"))
    assert left_out == {}


@each_format
def test_files_that_cannot_be_read_are_refused_by_name(name, tmp_path):
    path, options = written(name, tmp_path, {"one": [(0, 1, "Cat")], "two": [(0, 1, "cat")]})
    (tmp_path / "empty").mkdir()
    with pytest.raises(AnnotationError, match="the labels 'Cat' and 'cat' differ only in upper and lower case"):
        read_annotations(path, name, options)
    file = path if path.is_file() else sorted(path.iterdir())[0]
    file.write_bytes(b"\xff\xff")
    for place, message in (
        (
            path,
            rf"{file.name}.* is not UTF-8 text .line 1, byte 0xff.\. Give its encoding, e.g. --set encoding=cp1252",
        ),
        (tmp_path / "none", r"is not a file|is neither a file nor a folder"),
        (tmp_path / "empty", r"is not a file|contains no file that ends in"),
    ):
        with pytest.raises(DatasetError, match=message):
            read_annotations(place, name, options)


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.csv", rows(STRONG, ("a.wav", 0, 1.5, "Dog"), ("b.wav", "", "", "")), "desed"),
        ("a.csv", rows(STRONG, ("a.wav", 0, 2, "car")), None),
        ("a.tsv", rows(STRONG), None),
        ("a.tsv", rows((*STRONG, "confidence"), ("a-000-1000.wav", 0, 1, "car", 0.4)), "maestro-soft"),
        ("text/a.txt", "0\t1\t5\n", None),
        # Alone it could be a part of something else.
        ("a.txt", "0\t1.5\tcar\n", None),
        ("a.tsv", "b_0\t0\t1\t/m/1\n", "audioset-strong"),
        ("a.csv", "file,start,end,tier\na.wav,0,1,car\n", None),
        ("a.csv", "Start (s),End (s),Common name,File\n0,3,Wren,a.wav\n", "table"),
        ("text/a.lab", "0.5 1.5 car\n", "text"),
        # The second can be a length.
        ("text/a.csv", "0.5,1.5,car\n", None),
        ("a.json", json.dumps({"a": {"event": 1}}), None),
    ],
)
def test_files_that_leave_a_doubt_are_not_guessed(tmp_path, name, text, format):
    path = write(tmp_path, name, text)
    place = path.parent if "/" in name else path
    if format is not None:
        assert format_of(place) == format
        return
    with pytest.raises(AnnotationError, match=f"cannot tell the format of the strong labels in {path.name}") as raised:
        format_of(place)
    assert f"of {', '.join(FORMATS)} " in str(raised.value)
    first = text.partition("\n")[0].split("\t" if "\t" in text else ",")
    assert f"the first line is {', '.join(first)!r}" in str(raised.value)


def test_files_that_are_no_json_and_formats_that_are_none(tmp_path):
    path = write(tmp_path, "a.json", "[" * 100_000)
    for read in (format_of, lambda path: read_annotations(path, "audiotime")):
        with pytest.raises(AnnotationError, match=r"a.json is not JSON"):
            read(path)
    with pytest.raises(AnnotationError, match=r"^a\.jams: the file is not JSON"):
        read_annotations(path.rename(tmp_path / "a.jams"), "jams")
    with pytest.raises(AnnotationError, match="there is no label format 'dased'; did you mean 'desed'"):
        read_annotations("x", "dased")
