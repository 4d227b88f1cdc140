"""Columns with words: what is said of a sound by attribute, and how loud those about loudness are."""

import numpy as np
import pytest
from datasets import Audio, Features, Value

from audio_compositionality.dataset_builder.recorded import open_recordings
from audio_compositionality.dataset_builder.sounds.folder import folder_recordings
from audio_compositionality.dataset_builder.sounds.labels import word_columns
from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from .sounds import noise, write
from .test_hub import save

PIANO = (("piano", "soft", -20.0), ("piano", "loud", 0.0), ("flute", "soft", -6.0), ("flute", "loud", -30.0))


def made(folder, heading="word:dynamics", rows=PIANO, extra=""):
    lines = [f"file_name,label,{heading}"]
    for number, (label, word, level) in enumerate(rows):
        name = f"{number}.wav"
        write(folder / name, samples=noise(1.0, seed=number) * 10 ** (level / 20), subtype="FLOAT")
        lines.append(f"{name},{label},{word}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n" + extra)
    return folder


def by_words(recordings):
    return {(entry.label, entry.words.get("dynamics")): entry for entry in recordings.entries}


def test_words_of_loudness_keep_the_level_beside_the_loudest_of_the_label(tmp_path):
    entries = by_words(folder_recordings(made(tmp_path), progress=False))
    assert {called: entry.level for called, entry in entries.items()} == {
        ("piano", "soft"): -20.0,
        ("piano", "loud"): 0.0,
        ("flute", "soft"): 0.0,
        ("flute", "loud"): -24.0,
    }


def test_silence_around_a_sound_does_not_count_for_its_level(tmp_path):
    made(tmp_path, rows=PIANO[:2])
    quiet = np.concatenate([np.zeros(8_000), noise(1.0, seed=0) * 0.1, np.zeros(16_000)])
    write(tmp_path / "0.wav", samples=quiet, subtype="FLOAT")
    assert by_words(folder_recordings(tmp_path, progress=False))["piano", "soft"].level == -20.0


def test_other_words_and_empty_fields_have_no_level(tmp_path):
    entries = folder_recordings(made(tmp_path, "word:pitch"), progress=False).entries
    assert {(entry.words["pitch"], entry.level) for entry in entries} == {("soft", 0.0), ("loud", 0.0)}
    rows = [*PIANO, ("bell", "", -3.0)]
    bell = by_words(folder_recordings(made(tmp_path, rows=rows), progress=False))["bell", None]
    assert (bell.words, bell.level) == ({}, 0.0)


def test_a_word_of_loudness_beside_none_is_left_out(tmp_path):
    rows = [("piano", "soft", -20.0), ("piano", "", 0.0), ("bell", "loud", 0.0), *PIANO[2:]]
    with pytest.warns(
        UserWarning, match=r"left out: '(soft|loud)' of '(piano|bell)', '(soft|loud)' of '(piano|bell)'$"
    ):
        entries = folder_recordings(made(tmp_path, rows=rows), progress=False).entries
    assert [(entry.words, entry.level) for entry in entries if entry.label != "flute"] == [({}, 0.0)] * 3
    assert sorted(entry.level for entry in entries if entry.label == "flute") == pytest.approx([-24, 0], abs=0.2)


@pytest.mark.parametrize(("heading", "words"), [("how", "how=dynamics"), ("dynamics", ["dynamics"])])
def test_other_columns_are_named(tmp_path, heading, words):
    plain = folder_recordings(made(tmp_path, heading), progress=False)
    named = open_recordings(tmp_path, words=words, progress=False)
    assert {entry.words["dynamics"] for entry in named.entries} == {"soft", "loud"}
    assert not any(entry.words for entry in plain.entries)
    assert plain.fingerprint != named.fingerprint
    assert named.fingerprint == folder_recordings(made(tmp_path / "by name"), progress=False).fingerprint


def test_a_data_set_has_them_too(tmp_path, without_torchcodec):
    folder = made(tmp_path / "folder")
    rows = {"animal": [label for label, _, _ in PIANO], "word:dynamics": [word for _, word, _ in PIANO]}
    features = Features({"audio": Audio(), "animal": Value("string"), "word:dynamics": Value("string")})
    embedded = [{"bytes": (folder / f"{n}.wav").read_bytes(), "path": None} for n in range(4)]
    save(tmp_path / "set", {**rows, "audio": embedded}, features, "train")
    read = open_recordings(dataset=tmp_path / "set", label="animal", progress=False)
    assert read.fingerprint == folder_recordings(folder, progress=False).fingerprint
    text = "title: x\ndataset: set\nsplit: train\nlabel: animal\ndomain: x\nlicence: x\nurl: x\ncitation: x\n"
    (tmp_path / "described.yaml").write_text(text + "words: ['word:dynamics=loudness']\n")
    described = open_recordings(dataset=tmp_path / "described.yaml", progress=False)
    assert {entry.words["loudness"] for entry in described.entries} == {"soft", "loud"}
    assert sorted(entry.level for entry in described.entries) == [-24.0, -20.0, 0.0, 0.0]


def test_one_sound_under_two_words_is_refused(tmp_path):
    made(tmp_path)
    write(tmp_path / "9.wav", samples=noise(1.0, seed=1), subtype="FLOAT")
    with (tmp_path / "metadata.csv").open("a") as stream:
        stream.write("9.wav,piano,soft\n")
    with pytest.raises(SoundError, match=r"is the same recording as '\d\.wav', which is called 'piano, (loud|soft)'"):
        folder_recordings(tmp_path, progress=False)


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        ("dynamic", "x has no column 'dynamic'; did you mean 'dynamics'"),
        ("dynamics=a,pitch=a", "the column 'pitch' is of the attribute 'a'; each column has its own"),
        ("word:", "the column 'word:' is of the attribute ''"),
    ],
)
def test_columns_that_are_none_are_refused(requested, message):
    with pytest.raises(SoundError, match=message):
        word_columns("x", ["dynamics", "pitch", "word:"], requested)
