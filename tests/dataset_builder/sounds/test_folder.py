"""Recordings in a folder: their labels, content and order, and what is refused."""

import os
import shutil
from collections import Counter

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.sounds import recordings as reading
from audio_compositionality.dataset_builder.sounds.recordings import SoundError, numbers_of

from .sounds import RATE, noise, write, write_labelled


@pytest.fixture
def folder(tmp_path):
    return write_labelled(tmp_path / "sounds", inside="inside")


def opened(folder, **options):
    return open_recordings(folder, progress=False, **options)


def table(folder, *lines, header="file_name,label,group"):
    (folder / "metadata.csv").write_text("\n".join((header, *lines)) + "\n", "utf-8")


class TestLabelsAsFolders:
    def test_are_those_below_the_folder_with_conditions_and_groups_in_them(self, folder):
        recordings = opened(folder)
        assert Counter(entry.label for entry in recordings.entries) == {"dog": 6, "cat": 6}
        assert {entry.number for entry in recordings.entries} == {None}
        assert {entry.id for entry in recordings.entries} >= {"dog/0.wav", "cat/inside/5.flac"}
        assert (recordings.source, recordings.sample_rate, recordings.skipped) == (str(folder), RATE, ())
        write(folder / "dog" / "flite" / "awb" / "7.wav", seed=7)
        said = {(e.label, e.condition, e.group) for e in opened(folder).entries}
        assert said == {("dog", "", ""), ("cat", "inside", "inside"), ("dog", "flite/awb", "flite/awb")}

    def test_are_none_where_all_files_lie_in_the_folder_and_asked_for_where_some_do(self, folder):
        assert {entry.label for entry in opened(folder / "dog").entries} == {""}
        with pytest.raises(SoundError, match=r"has no metadata\.csv, to which label, group, condition, captions"):
            opened(folder, group="speaker")
        write(folder / "x.wav", seed=50)
        with pytest.raises(SoundError, match=r"'x\.wav' and so on\) next to folders .* so their label is unknown"):
            opened(folder)


class TestSamples:
    def test_are_those_of_the_file_until_it_changes(self, folder):
        recordings = opened(folder)
        index = next(n for n, entry in enumerate(recordings.entries) if entry.id == "dog/3.wav")
        waveform, rate = recordings.waveform(index)
        assert (waveform.dtype, rate) == (np.float64, RATE)
        np.testing.assert_allclose(waveform, noise(seed=3), atol=4e-5)
        write(folder / "dog" / "3.wav", seed=80)
        with pytest.raises(SoundError, match=r"recording 'dog/3\.wav' has changed since it was opened"):
            recordings.waveform(index)
        (folder / "dog" / "3.wav").unlink()
        with pytest.raises(SoundError, match=r"recording 'dog/3\.wav' cannot be read"):
            recordings.waveform(index)

    def test_are_30_s_of_the_middle_at_most_and_the_mean_of_channels(self, tmp_path):
        samples = np.stack([noise(40, seed=60), noise(40, seed=61)], 1)
        write(tmp_path / "long.wav", samples=samples)
        write(tmp_path / "other.wav", rate=16_000, seed=70)
        recordings = opened(tmp_path)
        assert recordings.sample_rate is None
        index = next(n for n, entry in enumerate(recordings.entries) if entry.id == "long.wav")
        waveform, _ = recordings.waveform(index)
        np.testing.assert_allclose(waveform, samples[5 * RATE : 35 * RATE].mean(axis=1), atol=4e-5)


class TestFingerprint:
    def test_is_of_content_wherever_it_lies(self, folder, tmp_path):
        before = opened(folder)
        elsewhere = shutil.copytree(folder, tmp_path / "elsewhere")
        (elsewhere / "dog" / "0.wav").rename(elsewhere / "dog" / "z.wav")
        for path in (elsewhere / "cat" / "inside").glob("*.flac"):
            samples, rate = soundfile.read(path, dtype="int16")
            soundfile.write(path.with_suffix(".wav"), samples, rate)
            path.unlink()
        after = opened(elsewhere)
        assert after.fingerprint == before.fingerprint
        assert [(e.sha256, e.label) for e in after.entries] == [(e.sha256, e.label) for e in before.entries]

    def test_is_another_with_other_samples_labels_groups_or_conditions(self, folder):
        prints = {opened(folder).fingerprint}
        write(folder / "dog" / "0.wav", seed=90)
        prints.add(opened(folder).fingerprint)
        # Of a lossy file, it is of the bytes.
        for scale in (1, 1.001):
            write(folder / "dog" / "x.ogg", samples=noise(seed=95) * scale)
            prints.add(opened(folder).fingerprint)
        (folder / "dog").rename(folder / "wolf")
        prints.add(opened(folder).fingerprint)
        names = [p.relative_to(folder).as_posix() for p in folder.rglob("*.*")]
        for group, condition in (("", ""), ("x", ""), ("", "x")):
            lines = (f"{name},{name.split('/')[0]},{group},{condition}" for name in names)
            table(folder, *lines, header="file_name,label,group,condition")
            prints.add(opened(folder).fingerprint)
        assert len(prints) == 8


class TestTables:
    def test_name_files_labels_groups_and_conditions(self, folder):
        table(folder, *(f"dog/{n}.wav,{n}.5,s{n % 3},x" for n in range(6)), header="file_name,words,who,note")
        recordings = opened(folder, label="words", group="who", condition="note")
        assert sorted((e.id, e.number, e.label, e.group, e.condition) for e in recordings.entries) == [
            (f"dog/{n}.wav", n + 0.5, f"{n}.5", f"s{n % 3}", "x") for n in range(6)
        ]
        assert {(e.label, e.group, e.condition) for e in opened(folder).entries} == {("", "", "")}
        with pytest.raises(DatasetError, match=r"metadata\.csv has no column 'word'; did you mean 'words'"):
            opened(folder, label="word")

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("dog/0.wav,,x", r"metadata\.csv:2: the label of 'dog/0\.wav' is empty"),
            ("dog/0.wav,a,x\ndog/0.wav,b,x", r"metadata\.csv:3 names 'dog/0\.wav', as metadata\.csv:2 does"),
            ("dog/0.wav,a", r"metadata\.csv:2 has 2 fields, but the first line names 3 columns"),
            ("", r"no rows below its first line"),
            (
                "../outside.wav,a,x",
                r"'\.\./outside\.wav' is not in .*; a table can only name files in that folder: .*--set audio=F",
            ),
            ("link.wav,a,x", r"'link\.wav' is a link out of the folder; allow it with --set follow_links=true"),
            ('"dog/0.wav,a,x', "cannot be read as a row of a table: unexpected end of data"),
            ("\xff,a,x", r"is not UTF-8 text .line 2, byte 0xff.\. Give its encoding, e.g. --set encoding=cp1252"),
        ],
    )
    def test_that_cannot_be_used_are_refused(self, folder, tmp_path, text, message):
        write(tmp_path / "outside.wav")
        (folder / "link.wav").symlink_to(tmp_path / "outside.wav")
        (folder / "metadata.csv").write_text(f"file_name,label,group\n{text}\n", "latin-1")
        with pytest.raises(DatasetError, match=message):
            opened(folder)
        table(folder, "dog/0.wav,x", header="wav,label")
        with pytest.raises(DatasetError, match="has no column 'file_name'"):
            opened(folder)


class TestWhatCannotBeUsed:
    def test_is_refused_by_name_or_left_out_and_listed(self, folder):
        expected = opened(folder)
        (folder / "dog" / "text.wav").write_text("no sound")
        with pytest.raises(SoundError, match=r"sounds: 'dog/text\.wav' cannot be read: .*; --skip-invalid leaves"):
            opened(folder)
        samples = noise(seed=42)
        samples[7] = np.nan
        write(folder / "dog" / "short.wav", seconds=0.2, seed=40)
        write(folder / "dog" / "soft.wav", samples=noise(seed=41) * 1e-3)
        write(folder / "dog" / "silent.wav", samples=np.zeros(RATE))
        write(folder / "dog" / "nan.wav", samples=samples, subtype="FLOAT")
        write(folder / "dog" / "slow.wav", rate=500, seed=43)
        write(folder / "dog" / "many.wav", samples=np.stack([noise(seed=44)] * 17, 1))
        shutil.copy(folder / "dog" / "0.wav", folder / "dog" / "again.wav")
        with pytest.raises(SoundError, match=r"; and 5 more; --skip-invalid leaves them out"):
            opened(folder)
        recordings = opened(folder, skip_invalid=True)
        assert recordings.fingerprint == expected.fingerprint
        reasons = dict(recordings.skipped)
        assert len(reasons) == 8
        for name, reason in {
            "short": "lasts 0.200 s; the minimum is 0.25 s",
            "soft": "is nearly silent in its middle (-80 dB; the minimum is -60 dB relative to full scale)",
            "silent": "is nearly silent in its middle (no sound at all;",
            "text": "cannot be read: ",
            "nan": "has values that are not finite",
            "slow": "has a rate of 500 Hz",
            "many": "declares 17 channels",
            "again": "is the same recording as 'dog/0.wav'; leave one out, or give both",
        }.items():
            assert reasons[f"dog/{name}.wav"].startswith(reason)

    def test_is_not_everything_nor_nothing_nor_too_many(self, folder, tmp_path, monkeypatch):
        with pytest.raises(SoundError, match="nowhere' is not a folder"):
            opened(f"recordings:{tmp_path / 'nowhere'}")
        (tmp_path / "silent").mkdir()
        with pytest.raises(SoundError, match="contains no sound file"):
            opened(f"recordings:{tmp_path / 'silent'}")
        write(tmp_path / "silent" / "a" / "x.wav", samples=np.zeros(RATE))
        with pytest.raises(SoundError, match=r"has no usable recording: 'a/x\.wav' is nearly silent"):
            opened(tmp_path / "silent", skip_invalid=True)
        monkeypatch.setattr(reading, "MOST_RECORDINGS", 11)
        with pytest.raises(SoundError, match="has 12 recordings; the limit is 11"):
            opened(folder)

    def test_names_are_printable(self, folder):
        os.rename(folder / "dog" / "0.wav", os.fsencode(folder) + b"/dog/\x1b[31m\n\xff.wav")
        assert "dog/\\x1b[31m\\n\\udcff.wav" in {entry.id for entry in opened(folder).entries}


class TestCopies:
    @pytest.mark.parametrize(
        ("lines", "kept"),
        [
            # Of one group they are kept, and of one label or of several numbers.
            (("dog/0.wav,a,x", "dog/again.wav,a,x", "dog/1.wav,b,y"), 3),
            (("dog/0.wav,1.5,x", "dog/again.wav,2.5,x", "dog/1.wav,3.5,y"), 3),
            (("dog/0.wav,a,x", "dog/again.wav,b,x", "dog/1.wav,b,y"), 1),
            # Of three with two labels none is left.
            (("dog/0.wav,a,x", "dog/again.wav,a,x", "cat/again.wav,b,x", "dog/1.wav,b,y"), 1),
        ],
    )
    def test_have_one_label_each_in_a_group_too(self, folder, lines, kept):
        for copied in ("dog/again.wav", "cat/again.wav"):
            shutil.copy(folder / "dog" / "0.wav", folder / copied)
        table(folder, *lines)
        read = opened(folder, skip_invalid=True)
        assert (len(read.entries), len(read.skipped)) == (kept, len(lines) - kept)
        assert "dog/1.wav" in {entry.id for entry in read.entries}

    def test_are_not_two_things_whatever_their_conditions_and_groups(self, folder):
        shutil.copy(folder / "cat" / "inside" / "0.flac", folder / "dog" / "again.flac")
        shutil.copytree(folder / "dog", folder / "dog" / "barn", ignore=shutil.ignore_patterns("[!2]*"))
        # One sound in two files of a lossy format.
        for name in ("dog/bark.ogg", "cat/meow.ogg"):
            with soundfile.SoundFile(folder / name, "w", RATE, 1, format="OGG") as file:
                file.comment = name
                file.write(noise(seed=7))
        assert (folder / "dog" / "bark.ogg").read_bytes() != (folder / "cat" / "meow.ogg").read_bytes()
        # Nobody knows which of two labels is right.
        assert dict(opened(folder, skip_invalid=True).skipped) == {
            "cat/inside/0.flac": "is the same recording as 'dog/again.flac', which has the label 'dog'; leave both out",
            "dog/again.flac": "is the same recording as 'cat/inside/0.flac', which has the label 'cat'; leave both out",
            "cat/meow.ogg": "is the same recording as 'dog/bark.ogg', which has the label 'dog'; leave both out",
            "dog/bark.ogg": "is the same recording as 'cat/meow.ogg', which has the label 'cat'; leave both out",
            "dog/barn/2.wav": "is the same recording as 'dog/2.wav' under another condition; leave one out",
        }


def test_labels_are_numbers_where_one_has_a_decimal_point():
    assert numbers_of(["1.5", " -2 ", "3e1"]) == [1.5, -2.0, 30.0]
    for labels in (["0", "1", "2"], ["1.5", "dog"], ["1.5", "inf"], ["1_0.5"], ["9.9e999"], []):
        assert numbers_of(labels) is None
