"""Rows of whole recordings: captions that are looked for, and labels with their prompts."""

import numpy as np
import soundfile

from audio_compositionality.dataset_builder.open_data import open_recordings
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.scenes.pool import whole_clip

from ..sounds.sounds import RATE, noise, write
from .recorded import described

RETRIEVAL, ZERO_SHOT = load_recipe("audio_text_retrieval"), load_recipe("zero_shot_audio")


def rows_of(recipe, sounds, **changes):
    return recipe.render(recipe.of_sounds(recipe.presets["full"], sounds, changes)).rows


def test_captions_are_looked_for_in_recordings_that_have_some():
    assert [(row["recording"], row["captions"]) for row in rows_of(RETRIEVAL, described())] == [
        ("0.wav", ["a dog", "barking"]),
        ("1.wav", ["rain falls"]),
        ("3.wav", ["it is windy"]),
    ]


def test_captions_of_tones_are_different_and_true_of_note_and_rate():
    rows = RETRIEVAL.render(RETRIEVAL.presets["mini"]).rows
    captions = [caption for row in rows for caption in row["captions"]]
    assert len(captions) == len(set(captions)) == 192
    for row in rows:
        note, rate = row["recording"].partition("/note")[2].split("-rate")
        words = row["captions"][0].split()
        assert (int(note) < 50, int(note) > 70) == ("low" in words, "high" in words)
        assert (float(rate) < 1.4, float(rate) > 2.4) == ("slow" in words, "fast" in words)


def test_labelled_recordings_have_all_their_labels_and_a_prompt_of_each_template():
    rows = rows_of(ZERO_SHOT, described())
    assert [(row["recording"], row["labels"]) for row in rows] == [
        ("0.wav", ["dog_bark"]),
        ("1.wav", ["Rain"]),
        ("2.wav", ["dog_bark", "Rain"]),
        ("4.wav", ["wind"]),
    ]
    assert rows[2]["prompts"] == [["This is a sound of dog bark"], ["This is a sound of rain"]]
    several = rows_of(ZERO_SHOT, described(), templates=("I hear {label}", "{label}!"))
    assert several[0]["prompts"] == [["I hear dog bark", "dog bark!"]]


def clips_of(folder):
    data = recorded(open_recordings(folder, progress=False), recipes=["zero_shot_audio"])
    configuration = data.configuration("zero_shot_audio")
    return dict(zip([row["recording"] for row in configuration.rows], configuration.clips(), strict=True))


def test_clips_are_the_files_bit_for_bit_and_the_middle_of_long_ones(tmp_path):
    long = noise(31, seed=2)
    for name, samples in (("a/1.wav", noise(0.5, seed=1)), ("b/2.wav", long), ("b/3.wav", noise(0.4, seed=3))):
        write(tmp_path / name, samples=samples)
    clips = clips_of(tmp_path)
    assert {clip.sample_rate for clip in clips.values()} == {RATE}
    as_stored, _ = soundfile.read(tmp_path / "a" / "1.wav", dtype="int16")
    np.testing.assert_array_equal(clips["a/1.wav"].waveform * 2**15, as_stored)
    assert len(clips["b/2.wav"].waveform) == 30 * RATE
    np.testing.assert_allclose(clips["b/2.wav"].waveform, long[RATE // 2 : -RATE // 2], atol=4e-5)


def test_clips_of_different_rates_are_brought_to_one(tmp_path):
    write(tmp_path / "a" / "1.wav", rate=8_000)
    write(tmp_path / "b" / "2.wav", rate=16_000)
    assert {(len(clip.waveform), clip.sample_rate) for clip in clips_of(tmp_path).values()} == {(48_000, 48_000)}


def test_clips_beyond_full_scale_are_lowered():
    loud = 2.0 * np.sin(np.arange(4_000) / 20)
    clip = whole_clip(loud, 4_000).astype(float)
    np.testing.assert_allclose(clip / 2**15, loud / np.abs(loud).max(), atol=4e-5)
    np.testing.assert_array_equal(whole_clip(loud / 4, 4_000), np.rint(loud / 4 * 2**15))
