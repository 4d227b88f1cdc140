"""Formats are told from files that leave no doubt, and from no others."""

import json

import pytest

from audio_compositionality.dataset_builder.sounds.annotations import AnnotationError
from audio_compositionality.dataset_builder.sounds.formats import check_format, format_of, list_formats

STRONG = "filename\tonset\toffset\tevent_label\n"
CLIP = {"syn_1": {"event": {"dog": [[0.5, 1.25]]}, "caption": ""}}


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("a.tsv", STRONG + "a.wav\t0.5\t1\tDog\n", "desed"),
        ("a.csv", STRONG + "a.wav\t0\t1.5\tDog\nb.wav\t\t\t\n", "desed"),
        ("a.csv", STRONG + "a.wav\t0\t1\tcar\na.wav\t1\t2\tcar\n", "maestro"),
        ("a.csv", STRONG + "a.wav\t0\t2\tcar\n", None),
        ("a.tsv", STRONG + "a.wav\t0\t1\tcar\n", None),
        ("a.tsv", STRONG, None),
        ("a.tsv", STRONG.replace("\n", "\tconfidence\n") + "a-000-1000.wav\t0\t1\tcar\t0.4\n", "maestro-soft"),
        ("soft/a.txt", "0\t1\tcar\t0.4\n", "maestro-soft"),
        ("text/a.txt", "0\t1.5\tcar\n", "text"),
        ("text/a.txt", "car\t0\t1\n", None),
        ("a.tsv", "segment_id\tstart_time_seconds\tend_time_seconds\tlabel\nb_0\t0\t1\t/m/1\n", "audioset-strong"),
        ("a.tsv", "b_0\t0\t1\t/m/1\n", "audioset-strong"),
        ("a.tsv", "b_0\t0\t1\tcar\n", None),
        ("a.csv", "file,start,end,class\na.wav,0,1,car\n", None),
        ("a.json", json.dumps(CLIP), "audiotime"),
        ("a.json", "[1]", None),
        ("folder/a.jams", "{}", "jams"),
    ],
)
def test_formats(tmp_path, name, text, format):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    place = path.parent if "/" in name else path
    if format is not None:
        assert format_of(place) == format
        return
    with pytest.raises(AnnotationError, match=f"{path.name} does not say which format it is in; name one") as raised:
        format_of(place)
    assert all(f" {format} (" in str(raised.value) for format in list_formats())


@pytest.mark.parametrize("text", ["{", "[" * 100_000])
def test_what_is_no_json_is_said(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(AnnotationError, match=r"a.json is no JSON"):
        format_of(tmp_path / "a.json")


def test_a_file_alone_may_be_a_part_of_something_else(tmp_path):
    (tmp_path / "a.txt").write_text("0\t1.5\tcar\n")
    with pytest.raises(AnnotationError, match=r"a.txt does not say"):
        format_of(tmp_path / "a.txt")


def test_no_file_and_no_format(tmp_path):
    with pytest.raises(AnnotationError, match="is neither a file nor a folder"):
        format_of(tmp_path / "none")
    with pytest.raises(AnnotationError, match="holds no file"):
        format_of(tmp_path)
    with pytest.raises(AnnotationError, match="did you mean 'maestro'"):
        check_format("mestro")
