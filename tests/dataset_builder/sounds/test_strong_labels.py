"""Stretches of recordings in which one label is heard alone, whatever the format of the labels."""

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.sounds.annotations import Annotation, AnnotationError, LabelledEvent
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


@pytest.mark.parametrize(
    ("format", "groups"),
    [("audioset-strong", ("video_1", "other")), ("table", ("video_1_30000", "other_2000"))],
)
def test_what_is_heard_alone_is_a_recording(folder, tmp_path, format, groups):
    video, other = groups
    recordings = strong_recordings(folder, table(tmp_path / "strong.tsv", HEADERS[format]), progress=False)
    assert {entry.id: (entry.label, entry.group) for entry in recordings.entries} == {
        "a/Yvideo_1_30000.wav@0.500-3.000": ("Dog", video),
        "a/Yvideo_1_30000.wav@7.000-8.000": ("Cat", video),
        "a/Yvideo_1_30000.wav@7.950-9.000": ("Rain", video),
        "other_2000.flac@0.000-9.500": ("Dog", other),
    }
    assert recordings.skipped == (("gone_0", "is not in the folder"),)
    assert recordings.source == f"{folder} with {format} labels"
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


def test_tables_without_an_event_that_is_alone_are_told(folder, tmp_path):
    path = tmp_path / "strong.csv"
    for lines, message in (
        (
            ("a/other_2000.flac,Dog,0,1", "b/other_2000.flac,Cat,0,1"),
            "'other_2000' is in the folder 'b' here and in 'a'",
        ),
        (("none.wav,Dog,0,1",), "no label is present alone in any of 1 recordings; not in the folder are none"),
        (("other_2000.flac,Dog,0,1", "other_2000.flac,Cat,0,1"), "no label is present alone in any of 1 recordings"),
    ):
        path.write_text("\n".join(["file,label,start,stop", *lines]) + "\n")
        with pytest.raises(DatasetError, match=message):
            strong_recordings(folder, path, progress=False)
    with pytest.raises(InputError, match="format applies to strong labels"):
        open_recordings(folder, format="desed")


def test_events_after_the_end_are_told_or_left_out(folder, tmp_path):
    events = [("Yvideo_1_30000.wav", 0, 4, "Dog"), ("other_2000.flac", 0, 4, "Dog"), ("other_2000.flac", 12, 14, "Cat")]
    path = table(tmp_path / "x.csv", HEADERS["table"], events)
    with pytest.raises(SoundError, match=r"'Cat' lasts until 14 s, after the end .*; --skip-invalid leaves them out"):
        strong_recordings(folder, path, progress=False)
    recordings = strong_recordings(folder, path, skip_invalid=True, progress=False)
    assert [entry.group for entry in recordings.entries] == ["Yvideo_1_30000"]
    assert [name for name, _ in recordings.skipped] == ["other_2000"]


class TestWindows:
    def test_by_hand(self):
        events = (LabelledEvent(0, 3, "a"), LabelledEvent(24, 51, "b", "s", 0.8), LabelledEvent(60, 70, "a"))
        parts = windows([Annotation("r", 70, events, 1.0, "x")])
        assert [(part.key, part.duration, events_of(part)) for part in parts] == [
            (("r", 0.0), 25.0, [(0, 3, "a"), (24, 25.0, "b")]),
            (("r", 25.0), 25.0, [(0.0, 25.0, "b")]),
        ]
        assert (parts[1].events[0].source, parts[1].events[0].confidence) == ("s", 0.8)
        assert {part.split_group for part in parts} == {"r"}

    def test_what_is_short_stays_whole(self):
        short = Annotation("r", 25.05, (LabelledEvent(0, 25.05, "a"),), 0.0, "x")
        assert windows([short]) == (short,)
        with pytest.raises(InputError, match="windows last 0 s"):
            windows([short], 0)


class TestSounds:
    ANNOTATIONS = tuple(Annotation(name, 2.0, (LabelledEvent(0, 1, "a"),), 0.0, "x") for name in "abcde")

    def test_are_found_by_stem_at_any_depth(self, tmp_path):
        for number, name in enumerate("abcd"):
            write(tmp_path / str(number) / f"{name}.flac", 1.95)
        write(tmp_path / "Ye.wav", 3)
        names = {name: path.name for name, path in sound_paths(self.ANNOTATIONS, tmp_path).items()}
        assert names == {**{name: f"{name}.flac" for name in "abcd"}, "e": "Ye.wav"}
        assert durations_in(tmp_path)["a"] == pytest.approx(1.95)

    def test_all_that_is_wrong_is_one_error(self, tmp_path):
        for name, seconds in {"a.wav": 2, "b.wav": 1.85, "c.wav": 0, "d.wav": 2, "x/d.flac": 2}.items():
            write(tmp_path / name, seconds)
        with pytest.raises(AnnotationError) as raised:
            sound_paths(self.ANNOTATIONS, tmp_path)
        _, *lines = map(str.strip, str(raised.value).splitlines())
        assert len(lines) == 4
        assert "b.wav: lasts 1.85 s, the labels of 'b' 2.00 s" in lines
        assert "c.wav: is empty" in lines
        assert "d.wav: is one of 2 files of 'd': d.wav, x/d.flac; keep one" in lines
        assert lines[-1].endswith("has no sound of 1 of 5 recordings: e")
