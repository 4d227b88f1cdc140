"""Parts of files by strong labels: what is heard alone, whatever the table calls its columns and files."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds.opening import open_recordings, recorded
from audio_compositionality.dataset_builder.sounds.sound_files import SoundError
from audio_compositionality.dataset_builder.sounds.strong_labels import read_strong_labels, strong_recordings
from audio_compositionality.dataset_builder.texts.truth import is_true

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
    ("other_2000", 0.0, 10.0, "Dog"),
)

HEADERS = {
    "audioset": ("segment_id", "start_time_seconds", "end_time_seconds", "label"),
    "release": ("filename", "onset", "offset", "event_label"),
    "plain": ("file", "start", "stop", "label"),
}


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "sounds" / "a" / "Yvideo_1.wav", samples=noise(10, seed=1))
    write(tmp_path / "sounds" / "other_2000.flac", samples=noise(10, seed=2))
    return tmp_path / "sounds"


def table(path, header=HEADERS["audioset"], events=EVENTS, separator="\t"):
    lines = [header, *events]
    path.write_text("\n".join(separator.join(map(str, line)) for line in lines) + "\n")
    return path


@pytest.mark.parametrize("kind", sorted(HEADERS))
@pytest.mark.parametrize("separator", ["\t", ","])
def test_what_is_heard_alone_is_a_recording(folder, tmp_path, kind, separator):
    path = table(tmp_path / "strong.tsv", HEADERS[kind], separator=separator)
    recordings = strong_recordings(folder, path, progress=False)
    said = {entry.id: (entry.label, entry.group) for entry in recordings.entries}
    assert said == {
        "a/Yvideo_1.wav@0.500-3.000": ("Dog", "a/Yvideo_1.wav"),
        "a/Yvideo_1.wav@7.000-8.000": ("Cat", "a/Yvideo_1.wav"),
        "a/Yvideo_1.wav@7.950-9.000": ("Rain", "a/Yvideo_1.wav"),
        "other_2000.flac@0.000-10.000": ("Dog", "other_2000.flac"),
    }
    assert recordings.skipped == (("gone_0", "is not in the folder"),)
    place = next(n for n, entry in enumerate(recordings.entries) if entry.label == "Cat")
    waveform, rate = recordings.waveform(place)
    assert rate == RATE
    np.testing.assert_allclose(waveform, noise(10, seed=1)[7 * RATE : 8 * RATE], atol=4e-5)


def test_ids_of_labels_are_named_by_a_table_beside(folder, tmp_path):
    path = table(tmp_path / "strong.tsv", events=[("other_2000", 0, 5, "/m/0bt9lr"), ("other_2000", 5, 9, "/m/x")])
    (tmp_path / "mid_to_display_name.tsv").write_text("/m/0bt9lr\tDog\n/m/06mb1\tRain\n")
    assert [event.label for event in read_strong_labels(path)] == ["Dog", "/m/x"]


def test_scenes_are_made_of_them(tmp_path):
    events = []
    for number in range(12):
        write(tmp_path / "sounds" / f"f{number}.wav", samples=noise(10, seed=number))
        label, other = ("Dog", "Rain", "Violin")[number % 3], ("Rain", "Violin", "Dog")[number % 3]
        events += [(f"f{number}.wav", 0, 4, label), (f"f{number}.wav", 5, 9, other)]
    path = table(tmp_path / "strong.csv", HEADERS["plain"], events, ",")
    recordings = open_recordings(tmp_path / "sounds", strong_labels=path, progress=False)
    assert len(recordings.entries) == 24
    data = recorded(recordings, recipes=["comp_a_order"], items=4)
    rendering = data.configuration("comp_a_order").rendering
    for item, row in zip(rendering.items, rendering.rows, strict=True):
        for clip, heard in zip(item.clips, row["events"], strict=True):
            assert is_true(clip.said, heard)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n1\t2\n", "is no table of strong labels: its columns have to be file, label"),
        ("", "is no table of strong labels"),
        ("file,label,start,stop\nx.wav,Dog,2,1\n", "row 2 is .*; it has a file, a label, and start < stop"),
        ("file,label,start,stop\nx.wav,Dog,0,1\nx.wav,,0,1\n", "row 3 is"),
        ("file,label,start,stop\nx.wav,Dog,a,1\n", "row 2 is"),
        ("file,label,start,stop\nnone.wav,Dog,0,1\n", "holds none of the 1 files .* called none.wav"),
    ],
)
def test_what_is_no_such_table_is_told(folder, tmp_path, text, message):
    path = tmp_path / "strong.csv"
    path.write_text(text)
    with pytest.raises(SoundError, match=message):
        strong_recordings(folder, path, progress=False)


def test_events_after_the_end_are_told_or_left_out(folder, tmp_path):
    path = table(tmp_path / "x.tsv", events=[("other_2000", 0, 4, "Dog"), ("other_2000", 12, 14, "Cat")])
    with pytest.raises(SoundError, match=r"ends at 10.00 s, before the event at 12.00 s"):
        strong_recordings(folder, path, progress=False)
    assert len(strong_recordings(folder, path, skip_invalid=True, progress=False).entries) == 1
    with pytest.raises(SoundError, match="cannot be read as a table"):
        strong_recordings(folder, tmp_path / "none.tsv", progress=False)
