import os

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.data import in_batches
from audio_compositionality.dataset_builder.sounds.recordings import SoundError
from audio_compositionality.evaluator.coral import MAX_CLIPS, RecordedClips
from audio_compositionality.support.errors import InputError

RATE = 8_000


def noise(seconds, rate=RATE, channels=1, seed=0):
    return 0.1 * np.random.default_rng(seed).normal(size=(round(seconds * rate), channels))


def write(path, seconds=10.0, rate=RATE, channels=1, seed=0, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, noise(seconds, rate, channels, seed), rate, **options)
    return path


@pytest.fixture
def folder(tmp_path):
    """Ten files of one clip each."""
    for number in range(10):
        write(tmp_path / "sounds" / f"{number}.wav", seed=number)
    return tmp_path / "sounds"


def find(folder, **options):
    return RecordedClips(folder, progress=False, **options)


def embeddable(recordings, **options):
    return list(in_batches(recordings.clips(**options), 4))


def test_files_are_cut_into_whole_clips_and_a_short_one_is_a_clip(folder):
    write(folder / "a" / "long.flac", seconds=35)
    write(folder / "b" / "short.wav", seconds=1.5)
    write(folder / "b" / "blip.wav", seconds=0.9)
    recordings = find(folder)
    assert recordings.clip_ids == (
        "b/short.wav@0s",
        *(f"{number}.wav@0s" for number in range(10)),
        *(f"a/long.flac@{start}s" for start in (0, 10, 20)),
    )
    assert (recordings.files, recordings.available, recordings.too_short, recordings.skipped) == (12, 14, 1, [])
    batches = embeddable(recordings)
    assert [batch.waveforms.shape for batch in batches] == [
        (1, 12_000),
        (4, 80_000),
        (4, 80_000),
        (4, 80_000),
        (1, 80_000),
    ]
    assert tuple(id for batch in batches for id in batch.ids) == recordings.clip_ids
    long = noise(35)[:, 0]
    clips = np.concatenate([batch.waveforms for batch in batches[1:]])
    np.testing.assert_allclose(clips[-3:], long[:240_000].reshape(3, -1), atol=2e-5)


def test_channels_are_averaged_and_rates_are_kept(folder):
    write(folder / "stereo.wav", channels=2, rate=16_000)
    batch = embeddable(find(folder))[-1]
    assert (batch.ids, batch.sample_rate) == (("stereo.wav@0s",), 16_000)
    expected = noise(10, 16_000, 2).mean(axis=1)
    np.testing.assert_allclose(batch.waveforms[0], expected, atol=4e-5)


@pytest.mark.parametrize("suffix", ["flac", "ogg", "mp3", "aiff", "WAV"])
def test_other_formats_are_read(folder, suffix):
    write(folder / f"other.{suffix}", seconds=20, rate=32_000)
    batch = embeddable(find(folder))[-1]
    assert batch.ids == (f"other.{suffix}@0s", f"other.{suffix}@10s")
    assert np.isfinite(batch.waveforms).all()
    assert batch.waveforms.std() > 0.03


def test_a_part_of_the_clips_can_be_had(folder):
    recordings = find(folder)
    (part,) = embeddable(recordings, wanted=range(3, 6))
    assert part.ids == recordings.clip_ids[3:6]


def test_where_there_are_more_clips_some_are_drawn_and_always_the_same(folder):
    write(folder / "long.wav", seconds=400)
    recordings, again, most = find(folder, max_clips=20), find(folder, max_clips=20), find(folder)
    assert recordings.available == most.available == len(most.clip_ids) == 50 < MAX_CLIPS
    assert len(recordings.clip_ids) == 20
    assert recordings.clip_ids == again.clip_ids
    assert set(recordings.clip_ids) < set(most.clip_ids)
    assert recordings.fingerprint == again.fingerprint != most.fingerprint


def test_the_fingerprint_is_of_content_and_cut(folder):
    before = find(folder).fingerprint
    assert find(folder).fingerprint == before
    write(folder / "0.wav", seed=99)
    changed = find(folder).fingerprint
    write(folder / "new.wav")
    assert len({before, changed, find(folder).fingerprint}) == 3


class TestWhatIsNotASoundFile:
    def test_is_not_looked_at(self, folder, tmp_path):
        expected = find(folder)
        write(tmp_path / "elsewhere" / "outside.wav")
        (folder / "link.wav").symlink_to(tmp_path / "elsewhere" / "outside.wav")
        (folder / "linked").symlink_to(tmp_path / "elsewhere")
        (folder / "notes.txt").write_text("no sound")
        (folder / "._0.wav").write_bytes(b"\0\5\x16\7")
        write(folder / ".hidden" / "x.wav")
        (folder / "folder.wav").mkdir()
        os.mkfifo(folder / "pipe.wav")
        assert (find(folder).clip_ids, find(folder).fingerprint) == (expected.clip_ids, expected.fingerprint)

    @pytest.mark.parametrize("content", [b"this is a text", b"", b"RIFF\xff\xff\xff\xffWAVEfmt "])
    def test_under_the_name_of_one_is_an_error_that_names_it(self, folder, content):
        (folder / "a").mkdir()
        (folder / "a" / "b.wav").write_bytes(content)
        with pytest.raises(SoundError, match=r"^'a/b\.wav' cannot be read: .*; --skip-invalid leaves it out$"):
            find(folder)
        recordings = find(folder, skip_invalid=True)
        assert len(recordings.clip_ids) == 10
        ((skipped),) = recordings.skipped
        assert skipped["id"] == "a/b.wav"
        assert skipped["reason"].startswith("cannot be read: ")


class TestDamagedFiles:
    def check(self, folder, name, message):
        """An error that names the clip; or NaN and the reason in its place, the others as they are."""
        with pytest.raises(SoundError, match=f"^'{name}@0s' {message}.*; --skip-invalid leaves it out$"):
            embeddable(find(folder))
        clips = {
            id: row
            for b in embeddable(find(folder), keep_invalid=True)
            for id, row in zip(b.ids, b.waveforms, strict=True)
        }
        reasons = {
            b.ids[place]: why for b in embeddable(find(folder), keep_invalid=True) for place, why in b.errors.items()
        }
        assert list(reasons) == [f"{name}@0s"]
        assert np.isnan(clips[f"{name}@0s"]).all()
        assert sum(np.isfinite(clip).all() for clip in clips.values()) == 10

    def test_a_file_that_was_cut_off(self, folder):
        path = write(folder / "cut.flac")
        path.write_bytes(path.read_bytes()[:20_000])
        self.check(folder, "cut.flac", "cannot be decoded: ")

    def test_values_that_are_not_finite(self, folder):
        samples = noise(10)
        samples[5_000] = np.nan
        soundfile.write(folder / "nan.wav", samples, RATE, subtype="FLOAT")
        self.check(folder, "nan.wav", "has values that are not finite")

    def test_a_file_that_shrinks_after_it_was_found(self, folder):
        recordings = find(folder)
        write(folder / "3.wav", seconds=4)
        with pytest.raises(SoundError, match=r"'3\.wav@0s' ends after 32,000 of 80,000 samples"):
            embeddable(recordings)

    def test_a_file_that_claims_to_last_for_days(self, folder):
        """A header of FLAC (its published layout): 36 bits state the number of samples."""
        path = write(folder / "x.flac")
        content = bytearray(path.read_bytes())
        # After the marker and the block's header, 10 bytes of sizes, 20 bits of rate, 3 of channels, 5 of bits.
        content[21] |= 0x0F
        content[22:26] = b"\xff" * 4
        path.write_bytes(content)
        with pytest.raises(
            SoundError, match=r"'x\.flac' claims 68,719,476,735 samples at 8,000 Hz, more than 24 hours"
        ):
            find(folder)


class TestNames:
    def test_of_files_are_printable_whatever_they_hold(self, folder):
        os.rename(folder / "0.wav", os.fsencode(folder) + b"/\x1b[31m\n\xff.wav")
        recordings = find(folder)
        assert "\\x1b[31m\\n\\udcff.wav@0s" in recordings.clip_ids
        assert all(id.isprintable() for id in recordings.clip_ids)
        assert len([id for batch in embeddable(recordings) for id in batch.ids]) == 10

    def test_with_other_letters_stay(self, folder):
        (folder / "0.wav").rename(folder / "Möwe 海.wav")
        assert "Möwe 海.wav@0s" in find(folder).clip_ids


class TestFoldersOfNoUse:
    def test_without_a_sound_file(self, tmp_path):
        (tmp_path / "notes.txt").write_text("no sound")
        with pytest.raises(
            SoundError, match=r"holds no sound file; looked for are \.wav, \.flac, .*links not followed"
        ):
            find(tmp_path)

    def test_that_are_none(self, folder):
        with pytest.raises(SoundError, match=r"nowhere' is not a folder; recordings are in one"):
            find(folder / "nowhere")
        with pytest.raises(SoundError, match=r"0\.wav' is not a folder"):
            find(folder / "0.wav")

    def test_with_too_few_clips_say_why(self, folder):
        (folder / "0.wav").write_bytes(b"")
        write(folder / "1.wav", seconds=0.5)
        message = r"holds 8 clips .*files shorter than 1 s: 1, damaged ones: 1\); a covariance needs 10 or more"
        with pytest.raises(SoundError, match=message):
            find(folder, skip_invalid=True)

    def test_too_few_clips_cannot_be_asked_for(self, folder):
        with pytest.raises(InputError, match="max_clips is 9; it must be 10 or more"):
            find(folder, max_clips=9)
