"""Controls of models that answer: what they are given in place of their clips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.base import Model, ModelCard, ModelError
from audio_compositionality.encoders.controls import CONTROLS, NOISE_LEVEL, STRETCH, Controlled, shuffled_clips


class Listener(Model):
    """Keeps what it is given."""

    device, card = "cpu", ModelCard("listener", "v1", 8_000, None)

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def answer(self, clips: Any, prompts: Any) -> list[str]:
        self.heard += [clip for (clip,) in clips]
        return [f"{prompt}!" for prompt in prompts]


class Pupil(Listener):
    def learn(self, rows: Any, clips: Any) -> None:
        self.heard += clips


class Both(Listener):
    card = ModelCard("both", "v1", 8_000, 2)

    def embed(self, waveforms: Any, sample_rate: int) -> Any:
        return np.stack([waveforms[:, 0], waveforms[:, -1]], axis=1).astype(np.float32)


def noise(length: int, seed: int = 0, level: float = 0.3) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, length).astype(np.float32)


CLIPS = [Clip("a", noise(8_000), 8_000), Clip("b", noise(24_000, 1, 0.01), 16_000), Clip("c", noise(8_000), 8_000)]
PROMPTS = ["1", "2", "3"]


def given(kind: str) -> list[Any]:
    model = Listener()
    assert Controlled(model, CONTROLS[kind]).answer([[clip] for clip in CLIPS], PROMPTS) == ["1!", "2!", "3!"]
    assert [(len(clip.waveform), clip.sample_rate) for clip in model.heard] == [
        (len(clip.waveform), clip.sample_rate) for clip in (model.heard if kind == "padded-audio" else CLIPS)
    ]
    assert all(clip.waveform.dtype == np.float32 for clip in model.heard)
    return model.heard


def test_without_audio_is_silence_of_the_same_length() -> None:
    assert not any(clip.waveform.any() for clip in given("without-audio"))


def test_noise_has_one_level_is_white_and_depends_on_the_clip_alone() -> None:
    first, second, third = given("noise-audio")
    for clip in (first, second, third):
        assert np.sqrt(np.mean(clip.waveform**2)) == pytest.approx(NOISE_LEVEL, rel=0.03)
        power = np.abs(np.fft.rfft(clip.waveform)) ** 2
        assert power[: len(power) // 2].sum() / power.sum() == pytest.approx(0.5, abs=0.03)
        assert np.abs(clip.waveform).max() <= 1
    np.testing.assert_array_equal(first.waveform, third.waveform)
    assert abs(np.corrcoef(first.waveform, second.waveform[:8_000])[0, 1]) < 0.05
    assert abs(np.corrcoef(first.waveform, CLIPS[0].waveform)[0, 1]) < 0.05


def test_shuffled_audio_has_the_same_stretches_in_an_order_that_the_clip_alone_decides() -> None:
    for before, after in zip(CLIPS, given("shuffled-audio"), strict=True):
        length = round(STRETCH * before.sample_rate)
        whole = len(before.waveform) // length * length
        stretches = [clip.waveform[:whole].reshape(-1, length) for clip in (before, after)]
        places = [np.flatnonzero((stretches[0] == one).all(axis=1)).tolist() for one in stretches[1]]
        # As many as there are places for, none twice, and not as they were.
        assert all(places)
        assert sorted(place for of_one in places for place in of_one[:1]) == list(range(whole // length))
        assert [of_one[0] for of_one in places] != list(range(whole // length))
        np.testing.assert_array_equal(after.waveform[whole:], before.waveform[whole:])
    first, _, third = given("shuffled-audio")
    np.testing.assert_array_equal(first.waveform, third.waveform)


@pytest.mark.parametrize("samples", [0, 1, 100])
def test_a_clip_shorter_than_a_stretch_is_heard_as_it_is(samples: int) -> None:
    clip = np.linspace(-0.5, 0.5, samples, dtype=np.float32)
    np.testing.assert_array_equal(shuffled_clips(clip[None], 8_000)[0], clip)


def test_controls_of_clips_do_to_each_what_they_do_to_an_encoders() -> None:
    for before, after in zip(CLIPS, given("reversed-audio"), strict=True):
        np.testing.assert_array_equal(after.waveform, before.waveform[::-1])
    assert [len(clip.waveform) for clip in given("padded-audio")] == [80_000, 160_000, 80_000]


def test_other_audio_passes_on_what_it_is_given_and_says_so() -> None:
    for before, after in zip(CLIPS, given("other-audio"), strict=True):
        np.testing.assert_array_equal(after.waveform, before.waveform)
    moved: Any = Controlled(Listener(), CONTROLS["other-audio"])
    twice: Any = Controlled(moved, CONTROLS["reversed-audio"])
    assert moved.asks_about_others
    assert twice.asks_about_others
    assert twice.card.id == "reversed-audio:other-audio:listener"
    assert not Controlled(Listener(), CONTROLS["without-audio"]).asks_about_others


def test_a_pupil_learns_from_what_there_is() -> None:
    model = Pupil()
    controlled = Controlled(model, CONTROLS["without-audio"])
    assert "learn" in controlled.abilities
    controlled.learn([{}] * 3, iter(CLIPS))
    assert model.heard == CLIPS
    assert "learn" not in Controlled(Listener(), CONTROLS["without-audio"]).abilities


def test_what_embeds_and_answers_does_both_under_control() -> None:
    controlled = Controlled(Both(), CONTROLS["reversed-audio"])
    assert "audio" in controlled.abilities
    assert "answer" in controlled.abilities
    assert "text" not in controlled.abilities
    waveforms = np.stack([CLIPS[0].waveform, CLIPS[2].waveform])
    np.testing.assert_array_equal(controlled.embed(waveforms, 8_000), waveforms[:, [-1, 0]])
    assert "audio" not in Controlled(Both(), CONTROLS["other-audio"]).abilities


def test_cards_say_what_is_done() -> None:
    card = Controlled(Listener(), CONTROLS["noise-audio"]).card
    assert (card.id, card.paradigm) == ("noise-audio:listener", "control (white noise of one level for every clip)")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("sorted-words", "'sorted-words:listener': 'listener' embeds no text"), ("without-text", "embeds no text")],
)
def test_controls_of_texts_are_of_encoders(kind: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Controlled(Listener(), CONTROLS[kind])
