"""Stretches of recordings in which one label is heard alone, whatever the format of the labels."""

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.sounds.annotations import Annotation, AnnotationError, LabelledEvent
from audio_compositionality.dataset_builder.sounds.files import FoundFiles
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.dataset_builder.sounds.strong_labels import (
    durations_in,
    isolated,
    sound_paths,
    strong_recordings,
    windows,
)
from audio_compositionality.dataset_builder.texts.truth import is_true
from audio_compositionality.support.errors import InputError

from .formats.written import events_of
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


def opened(folder, path, **options):
    return strong_recordings(folder, path, progress=False, **options)


@pytest.mark.parametrize(
    ("format", "groups"),
    [("audioset-strong", ("video_1", "other")), ("table", ("video_1_30000", "other_2000"))],
)
def test_what_is_heard_alone_is_a_recording(folder, tmp_path, format, groups):
    video, other = groups
    recordings = opened(folder, table(tmp_path / "strong.tsv", HEADERS[format]))
    assert {entry.id: (entry.label, entry.group) for entry in recordings.entries} == {
        "a/Yvideo_1_30000.wav@0.500-3.000": ("Dog", video),
        "a/Yvideo_1_30000.wav@7.000-8.000": ("Cat", video),
        "a/Yvideo_1_30000.wav@7.950-9.000": ("Rain", video),
        "other_2000.flac@0.000-9.500": ("Dog", other),
    }
    assert recordings.skipped == (("gone_0", "is in the labels, but has no file in the folder"),)
    assert recordings.source == f"{folder} with {format} labels"
    index = next(n for n, entry in enumerate(recordings.entries) if entry.label == "Cat")
    waveform, rate = recordings.waveform(index)
    assert rate == RATE
    np.testing.assert_allclose(waveform, noise(10, seed=1)[7 * RATE : 8 * RATE], atol=4e-5)


def test_the_fingerprint_is_of_content(folder, tmp_path):
    first = opened(folder, table(tmp_path / "strong.tsv"))
    elsewhere = tmp_path / "elsewhere"
    for path in folder.rglob("*.*"):
        write(elsewhere / path.name.replace("Y", ""), samples=soundfile.read(path)[0])
    assert opened(elsewhere, table(tmp_path / "again.csv", separator=",")).fingerprint == first.fingerprint
    moved = [(of, start, 3.1 if stop == 3.0 else stop, label) for of, start, stop, label in EVENTS]
    assert opened(elsewhere, table(tmp_path / "moved.tsv", events=moved)).fingerprint != first.fingerprint
    # Of a lossy file, the digest is of its bytes and the place.
    write(tmp_path / "lossy" / "a.ogg", samples=noise(6, rate=16_000, seed=1), rate=16_000)
    path = table(tmp_path / "x.csv", HEADERS["table"], [("a.ogg", 0, 2, "Dog"), ("a.ogg", 3, 5, "Cat")])
    one, other = opened(tmp_path / "lossy", path), opened(tmp_path / "lossy", path)
    assert one.fingerprint == other.fingerprint
    assert len({entry.sha256 for entry in one.entries}) == 2
    assert len(one.waveform(0)[0]) == 2 * 16_000


def test_segments_may_be_called_by_their_video_and_share_its_group(tmp_path):
    sounds = tmp_path / "sounds"
    write(sounds / "Yvideo_1.wav", samples=noise(8, seed=1))
    write(sounds / "take_1.wav", samples=noise(8, seed=2))
    # The clip ends before the ten seconds of a segment; what is heard in it is there.
    path = table(tmp_path / "x.tsv", events=[("video_1_30000", 0, 5, "Dog"), ("take_1", 0, 5, "Dog")])
    assert {entry.group for entry in opened(sounds, path).entries} == {"video_1", "take"}
    # Of other formats a number at the end is part of a name.
    (sounds / "take_1.wav").rename(sounds / "take.wav")
    path = table(tmp_path / "x.csv", HEADERS["table"], [("take_1.wav", 0, 5, "Dog"), ("Yvideo_1.wav", 0, 5, "Dog")])
    assert opened(sounds, path).skipped == (("take_1", "is in the labels, but has no file in the folder"),)


def test_isolated_by_hand():
    def of(*events, resolution=0.0):
        annotation = Annotation("x", 20, tuple(LabelledEvent(*event) for event in events), resolution, "x")
        return [(event.label, event.onset, event.offset) for event in isolated(annotation)]

    # Sources of a label are one.
    assert of((0, 2, "a", "1"), (1, 3, "a", "2")) == [("a", 0, 3)]
    # What is heard perhaps is no sound, and disturbs.
    assert of((0, 2, "a", None, 0.9), (3, 5, "b", None, 0.5), (4, 8, "c", None, 0.9)) == [("a", 0, 2)]
    assert of((3, 5, "b", None, 0.5), (5, 8, "c", None, 0.9)) == [("c", 5, 8)]
    # Of inexact times, more silence is needed.
    events = (0, 4, "a"), (4, 8, "b"), (9.5, 12, "c")
    assert of(*events) == of(*events, resolution=0.1) == [("a", 0, 4), ("b", 4, 8), ("c", 9.5, 12)]
    assert of(*events, resolution=1.0) == [("c", 9.5, 12)]


def test_scenes_are_made_of_them(tmp_path):
    labels, events = ("Dog", "Rain", "Violin", "Bell", "Bird", "Car"), []
    for number in range(12):
        write(tmp_path / "sounds" / f"f{number}.wav", samples=noise(10, seed=number))
        events += [
            (f"f{number}.wav", 5 * half, 5 * half + 4, labels[(number + half) % len(labels)]) for half in range(2)
        ]
    path = table(tmp_path / "strong.csv", HEADERS["table"], events, ",")
    recordings = open_recordings(tmp_path / "sounds", labels=[str(path)], progress=False)
    assert len(recordings.entries) == 24
    rendering = recorded(recordings, recipes=["comp_a_order"], items=2).configuration("comp_a_order").rendering
    for scene, row in zip(rendering.scenes, rendering.rows, strict=True):
        for said, heard in zip(scene.said, row["events"], strict=True):
            assert is_true(said, heard)


def test_labels_that_cannot_be_used_are_told_or_left_out(folder, tmp_path):
    path = tmp_path / "strong.csv"
    for events, error, message in (
        (
            [("a/other_2000.flac", 0, 1, "Dog"), ("b/other_2000.flac", 0, 1, "Cat")],
            DatasetError,
            "'other_2000' is in the folder 'b' here and in 'a'",
        ),
        (
            [("none.wav", 0, 1, "Dog")],
            SoundError,
            "no stretch with exactly one label in any of 1 recordings; not in the folder are none",
        ),
        (
            [("Yvideo_1_30000.wav", 0, 4, "Dog"), ("other_2000", 0, 4, "Dog"), ("other_2000", 12, 14, "Cat")],
            SoundError,
            "'Cat' lasts until 14 s, after the end .*; --skip-invalid leaves them out",
        ),
    ):
        with pytest.raises(error, match=message):
            opened(folder, table(path, HEADERS["table"], events))
    recordings = opened(folder, path, skip_invalid=True)
    assert [entry.group for entry in recordings.entries] == ["Yvideo_1_30000"]
    assert [name for name, _ in recordings.skipped] == ["other_2000"]
    with pytest.raises(InputError, match="format applies to strong labels"):
        open_recordings(folder, format="desed")


def test_windows():
    events = (LabelledEvent(0, 3, "a"), LabelledEvent(24, 51, "b", "s", 0.8), LabelledEvent(60, 70, "a"))
    parts = windows([Annotation("r", 70, events, 1.0, "x")])
    assert [(part.key, part.duration, events_of(part)) for part in parts] == [
        (("r", 0.0), 25.0, [(0, 3, "a"), (24, 25.0, "b")]),
        (("r", 25.0), 25.0, [(0.0, 25.0, "b")]),
    ]
    assert (parts[1].events[0].source, parts[1].events[0].confidence) == ("s", 0.8)
    assert {part.split_group for part in parts} == {"r"}
    short = Annotation("r", 25.05, (LabelledEvent(0, 25.05, "a"),), 0.0, "x")
    assert windows([short]) == (short,)
    with pytest.raises(InputError, match="windows last 0 s"):
        windows([short], 0)


def test_files_are_found_by_stem_at_any_depth_and_all_that_is_wrong_is_one_error(tmp_path):
    annotations = [Annotation(name, 2.0, (LabelledEvent(0, 1, "a"),), 0.0, "x") for name in "abcde"]
    for number, name in enumerate(("a.flac", "b.flac", "c.flac", "d.flac", "Ye.wav")):
        write(tmp_path / "good" / str(number) / name, 1.95)
    names = {name: path.name for name, path in sound_paths(annotations, FoundFiles(tmp_path / "good")).items()}
    assert names == {**{name: f"{name}.flac" for name in "abcd"}, "e": "Ye.wav"}
    assert durations_in(FoundFiles(tmp_path / "good"))["a"] == pytest.approx(1.95)
    for name, seconds in {"a.wav": 2, "b.wav": 1.85, "c.wav": 0, "d.wav": 2, "x/d.flac": 2}.items():
        write(tmp_path / "bad" / name, seconds)
    with pytest.raises(AnnotationError) as raised:
        sound_paths(annotations, FoundFiles(tmp_path / "bad"))
    assert [line.strip() for line in str(raised.value).splitlines()[1:]] == [
        "b.wav: lasts 1.85 s, the labels of 'b' 2.00 s",
        "c.wav: is empty",
        "d.wav: is one of 2 files of 'd': d.wav, x/d.flac; keep one",
        f"{tmp_path / 'bad'}: has no sound of 1 of 5 recordings: e",
    ]
