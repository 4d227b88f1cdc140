"""Stretches of recordings in which one label is heard alone, whatever the format of the labels."""

import json

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recorded import open_recordings, recorded
from audio_compositionality.dataset_builder.sounds.annotations import Annotation, AnnotationError, LabelledEvent
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.dataset_builder.sounds.strong_labels import isolated, strong_recordings
from audio_compositionality.dataset_builder.texts.truth import is_true
from audio_compositionality.support.errors import InputError

from .sounds import RATE, noise, write

EVENTS = (
    # Heard alone; the two of one label are one.
    ("video_1_30000", 0.5, 2.0, "Dog"),
    ("video_1_30000", 1.9, 3.0, "Dog"),
    # At the same time as each other.
    ("video_1_30000", 4.0, 6.0, "Rain"),
    ("video_1_30000", 5.0, 5.5, "Cat"),
    # For a moment only.
    ("video_1_30000", 7.0, 8.0, "Cat"),
    ("video_1_30000", 7.95, 9.0, "Rain"),
    # Too short; of a file that is not there.
    ("video_1_30000", 9.3, 9.4, "Dog"),
    ("gone_0", 0.0, 2.0, "Dog"),
    ("other_2000", 0.0, 9.5, "Dog"),
)

HEADERS = {
    "audioset-strong": ("segment_id", "start_time_seconds", "end_time_seconds", "label"),
    "desed": ("filename", "onset", "offset", "event_label"),
    "table": ("file", "start", "stop", "label"),
}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "sounds" / "a" / "Yvideo_1_30000.wav", samples=noise(10, seed=1))
    write(tmp_path / "sounds" / "other_2000.flac", samples=noise(10, seed=2))
    return tmp_path / "sounds"


def table(path, header=HEADERS["audioset-strong"], events=EVENTS, separator="\t"):
    lines = [header, *events]
    path.write_text("\n".join(separator.join(map(str, line)) for line in lines) + "\n")
    return path


def jams(folder, events=EVENTS):
    folder.mkdir()
    for name in {event[0] for event in events}:
        data = [
            {"time": start, "duration": stop - start, "value": label, "confidence": None}
            for of, start, stop, label in events
            if of == name
        ]
        content = {"file_metadata": {"duration": 10}, "annotations": [{"namespace": "tag_open", "data": data}]}
        (folder / f"{name}.jams").write_text(json.dumps(content))
    return folder


def texts(folder, events=EVENTS):
    folder.mkdir()
    for of, start, stop, label in events:
        with (folder / f"{of}.txt").open("a") as stream:
            stream.write(f"{start}\t{stop}\t{label}\n")
    return folder


def audiotime(path, events=EVENTS):
    clips = {}
    for of, start, stop, label in events:
        clips.setdefault(of, {"event": {}})["event"].setdefault(label, []).append([start, stop])
    path.write_text(json.dumps(clips))
    return path


WRITERS = {
    **{name: lambda folder, name=name: table(folder / "strong.tsv", HEADERS[name]) for name in HEADERS},
    "table, commas": lambda folder: table(folder / "strong.csv", HEADERS["table"], separator=","),
    "jams": lambda folder: jams(folder / "jams"),
    "text": lambda folder: texts(folder / "text"),
    "audiotime": lambda folder: audiotime(folder / "timestamp.json"),
}


@pytest.mark.parametrize("kind", sorted(WRITERS))
def test_what_is_heard_alone_is_a_recording_in_every_format(folder, tmp_path, kind):
    recordings = strong_recordings(folder, WRITERS[kind](tmp_path), progress=False)
    video, other = ("video_1", "other") if kind == "audioset-strong" else ("video_1_30000", "other_2000")
    assert {entry.id: (entry.label, entry.group) for entry in recordings.entries} == {
        "a/Yvideo_1_30000.wav@0.500-3.000": ("Dog", video),
        "a/Yvideo_1_30000.wav@7.000-8.000": ("Cat", video),
        "a/Yvideo_1_30000.wav@7.950-9.000": ("Rain", video),
        "other_2000.flac@0.000-9.500": ("Dog", other),
    }
    assert recordings.skipped == (("gone_0", "is not in the folder"),)
    assert recordings.source == f"{folder} with {kind.partition(',')[0]} labels"
    place = next(n for n, entry in enumerate(recordings.entries) if entry.label == "Cat")
    waveform, rate = recordings.waveform(place)
    assert rate == RATE
    np.testing.assert_allclose(waveform, noise(10, seed=1)[7 * RATE : 8 * RATE], atol=4e-5)


def test_the_fingerprint_is_of_content(folder, tmp_path):
    first = strong_recordings(folder, table(tmp_path / "strong.tsv"), progress=False)
    elsewhere = tmp_path / "elsewhere"
    for path in folder.rglob("*.*"):
        write(elsewhere / path.name.replace("Y", ""), samples=soundfile.read(path)[0])
    same = strong_recordings(elsewhere, table(tmp_path / "again.csv", separator=","), progress=False)
    assert same.fingerprint == first.fingerprint
    moved = [(of, start, 3.1 if stop == 3.0 else stop, label) for of, start, stop, label in EVENTS]
    other = strong_recordings(elsewhere, table(tmp_path / "moved.tsv", events=moved), progress=False)
    assert other.fingerprint != first.fingerprint


def test_of_a_lossy_file_the_digest_is_of_its_bytes_and_the_place(tmp_path):
    write(tmp_path / "sounds" / "a.ogg", samples=noise(6, rate=16_000, seed=1), rate=16_000)
    events = [("a.ogg", 0, 2, "Dog"), ("a.ogg", 3, 5, "Cat")]
    read = [
        strong_recordings(tmp_path / "sounds", table(tmp_path / "x.csv", HEADERS["table"], events), progress=False)
        for _ in range(2)
    ]
    assert read[0].fingerprint == read[1].fingerprint
    assert len({entry.sha256 for entry in read[0].entries}) == 2
    waveform, rate = read[0].waveform(0)
    assert len(waveform) == 2 * rate


def test_segments_may_be_called_by_their_video_and_share_its_group(tmp_path):
    write(tmp_path / "sounds" / "Yvideo_1.wav", samples=noise(8, seed=1))
    write(tmp_path / "sounds" / "take_1.wav", samples=noise(8, seed=2))
    # The clip ends before the ten seconds of a segment; what is heard in it is there.
    path = table(tmp_path / "x.tsv", events=[("video_1_30000", 0, 5, "Dog"), ("take_1", 0, 5, "Dog")])
    recordings = strong_recordings(tmp_path / "sounds", path, progress=False)
    assert {entry.group for entry in recordings.entries} == {"video_1", "take"}
    # Of other formats a number at the end is part of a name.
    (tmp_path / "sounds" / "take_1.wav").rename(tmp_path / "sounds" / "take.wav")
    plain = table(tmp_path / "x.csv", HEADERS["table"], [("take_1.wav", 0, 5, "Dog"), ("Yvideo_1.wav", 0, 5, "Dog")])
    assert strong_recordings(tmp_path / "sounds", plain, progress=False).skipped == (
        ("take_1", "is not in the folder"),
    )


def test_ids_of_labels_are_named_by_a_table_beside(folder, tmp_path):
    path = table(tmp_path / "strong.tsv", events=[("other_2000", 0, 5, "/m/0bt9lr"), ("other_2000", 5, 9, "/m/x")])
    (tmp_path / "mid_to_display_name.tsv").write_text("/m/0bt9lr\tDog\n/m/06mb1\tRain\n")
    with pytest.raises(AnnotationError, match="nothing says what /m/x is called"):
        strong_recordings(folder, path, progress=False)
    (tmp_path / "mid_to_display_name.tsv").write_text("/m/0bt9lr\tDog\n/m/x\tRain\n")
    assert {entry.label for entry in strong_recordings(folder, path, progress=False).entries} == {"Dog", "Rain"}


class TestIsolated:
    def of(self, *events, resolution=0.0):
        return [
            (event.label, event.onset, event.offset)
            for event in isolated(
                Annotation("x", 20, tuple(LabelledEvent(*event) for event in events), resolution, "x")
            )
        ]

    def test_sources_of_a_label_are_one(self):
        assert self.of((0, 2, "a", "1"), (1, 3, "a", "2")) == [("a", 0, 3)]

    def test_what_is_heard_perhaps_is_no_sound_and_disturbs(self):
        assert self.of((0, 2, "a", None, 0.9), (3, 5, "b", None, 0.5), (4, 8, "c", None, 0.9)) == [("a", 0, 2)]
        assert self.of((3, 5, "b", None, 0.5), (5, 8, "c", None, 0.9)) == [("c", 5, 8)]

    def test_of_inexact_times_more_silence_is_needed(self):
        events = (0, 4, "a"), (4, 8, "b"), (9.5, 12, "c")
        assert self.of(*events) == [("a", 0, 4), ("b", 4, 8), ("c", 9.5, 12)]
        assert self.of(*events, resolution=0.1) == self.of(*events)
        assert self.of(*events, resolution=1.0) == [("c", 9.5, 12)]


def made_street(tmp_path, files=24, labels=("Dog", "Rain", "Violin", "Bell", "Bird", "Car")):
    """Files with two labels each, one after the other, and their table."""
    events = []
    for number in range(files):
        write(tmp_path / "sounds" / f"f{number}.wav", samples=noise(10, seed=number))
        events += [
            (f"f{number}.wav", 0, 4, labels[number % len(labels)]),
            (f"f{number}.wav", 5, 9, labels[(number + 1) % len(labels)]),
        ]
    return tmp_path / "sounds", table(tmp_path / "strong.csv", HEADERS["table"], events, ",")


def test_scenes_are_made_of_them(tmp_path):
    folder, path = made_street(tmp_path)
    recordings = open_recordings(folder, strong_labels=path, progress=False)
    assert len(recordings.entries) == 48
    data = recorded(recordings, recipes=["comp_a_order"], items=4)
    rendering = data.configuration("comp_a_order").rendering
    for scene, row in zip(rendering.scenes, rendering.rows, strict=True):
        for said, heard in zip(scene.said, row["events"], strict=True):
            assert is_true(said, heard)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n1\t2\n", "does not say which format it is in; name one with --set format=NAME, of"),
        ("", "strong.csv is empty"),
        ("file,label,start,stop\nother_2000.flac,Dog,2,1\n", "from 2.0 to 1.0 s; expected is 0 ≤ onset < offset"),
        ("file,label,start,stop\nother_2000.flac,Dog,0,1\nother_2000.flac,,0,1\n", "strong.csv:3: .* has no label"),
        ("file,label,start,stop\nother_2000.flac,Dog,a,1\n", "strong.csv:2: the onset is 'a'; expected are seconds"),
        (
            "file,label,start,stop\na/other_2000.flac,Dog,0,1\nb/other_2000.flac,Cat,0,1\n",
            "'other_2000' is in the folder 'b' here and in 'a' before; give it another name",
        ),
        ("file,label,start,stop\nnone.wav,Dog,0,1\n", "in none of 1 recordings .* not in the folder are none"),
        (
            "file,label,start,stop\nother_2000.flac,Dog,0,1\nother_2000.flac,Cat,0,1\n",
            "in none of 1 recordings a label",
        ),
    ],
)
def test_what_is_no_such_table_is_told(folder, tmp_path, text, message):
    path = tmp_path / "strong.csv"
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        strong_recordings(folder, path, progress=False)


def test_events_after_the_end_are_told_or_left_out(folder, tmp_path):
    events = [("Yvideo_1_30000.wav", 0, 4, "Dog"), ("other_2000.flac", 0, 4, "Dog"), ("other_2000.flac", 12, 14, "Cat")]
    path = table(tmp_path / "x.csv", HEADERS["table"], events)
    with pytest.raises(
        SoundError, match=r"'Cat' is heard until 14 s, after the end .*; --skip-invalid leaves them out"
    ):
        strong_recordings(folder, path, progress=False)
    recordings = strong_recordings(folder, path, skip_invalid=True, progress=False)
    assert [entry.group for entry in recordings.entries] == ["Yvideo_1_30000"]
    assert [name for name, _ in recordings.skipped] == ["other_2000"]
    with pytest.raises(DatasetError, match="neither a file nor a folder"):
        strong_recordings(folder, tmp_path / "none.tsv", progress=False)


def test_a_format_is_of_strong_labels(folder, tmp_path):
    with pytest.raises(InputError, match="a format of labels is that of strong labels"):
        open_recordings(folder, format="desed")
    with pytest.raises(AnnotationError, match="there is no format of labels 'desd'; did you mean 'desed'"):
        open_recordings(folder, strong_labels=table(tmp_path / "x.tsv"), format="desd")
