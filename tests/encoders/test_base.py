from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.encoders import base
from audio_compositionality.encoders.loading.registry import load_model


class Minimal(base.Model):
    """The least that is an encoder."""

    card = base.ModelCard("minimal", "v1", 16_000, 2)
    device = "cpu"

    def embed(self, waveforms, sample_rate):
        return np.zeros((len(waveforms), 2), np.float32)


class Fixed(base.StagedEncoder[np.ndarray]):
    """Returns what it was made with."""

    card = base.ModelCard("fixed", "v1", 16_000, 2)

    def __init__(self, output) -> None:
        self.output = np.asarray(output)

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        return self.output


class Speaker(base.Model):
    """Answers, and says with how many clips."""

    card = base.ModelCard("speaker", "v1", 16_000, None)

    def answer(self, clips, prompts):
        return [str(len(clip.waveform)) for clip in self.single_clips(clips)]


def test_a_model_can_do_what_its_class_has_methods_for() -> None:
    assert Minimal().abilities == {"audio"}
    assert Speaker().abilities == {"answer"}
    assert load_model("random").abilities == {"audio", "text", "answer", "score"}
    assert load_model("oracle").abilities == {"answer", "score", "labels"}
    assert load_model("cascade").abilities == {"answer", "score", "learn", "events"}
    assert load_model("log-mel-statistics").abilities == {"audio", "frames"}
    assert load_model("downsample").abilities == {"audio"}
    assert base.Model().abilities == frozenset()


def test_what_a_model_has_no_method_for_is_refused() -> None:
    model, clips = Minimal(), np.zeros((1, 8))
    for words, ask in (
        ("embed texts", lambda: model.embed_text(["a"])),
        ("embed frames", lambda: model.embed_frames(clips, 8)),
        ("answer questions", lambda: model.answer([], [])),
        ("score given answers", lambda: model.score_options([], [], [], "letters")),
        ("learn from questions", lambda: model.learn([], [])),
        ("detect events", lambda: model.detect_events([])),
        ("embed texts", lambda: model.require("text")),
    ):
        with pytest.raises(base.ModelError, match=f"'minimal' cannot {words}; it can embed clips$"):
            ask()
    for ask in (lambda: Speaker().embed(clips, 8), lambda: Speaker().forward((clips, 8))):
        with pytest.raises(base.ModelError, match=r"'speaker' cannot embed clips; it can answer questions$"):
            ask()
    with pytest.raises(base.ModelError, match="'minimal' has no limit on the tokens of an answer"):
        model.with_new_tokens(8)
    assert base.kind_name(base.TEXT_ENCODER) == "audio–text encoder"
    assert base.kind_name(frozenset({"audio", "answer"})) == "model that can embed clips and answer questions"
    model.card = base.ModelCard("minimal", "v1", 16_000, None)
    with pytest.raises(base.ModelError, match="the card of 'minimal' has no output_dim"):
        base.output_dim_of(model)


def test_a_prompt_has_a_list_of_clips_and_a_model_of_one_clip_refuses_two() -> None:
    clip = base.GivenClip(np.zeros(5, np.float32), 16_000)
    assert Speaker().answer([[clip], [clip]], ["a", "b"]) == ["5", "5"]
    for clips, words in (
        ([[clip], [clip, clip]], r"takes one clip per prompt, but prompt 1 has 2 clips"),
        ([[]], "'speaker' takes one clip per prompt, but prompt 0 has no clips"),
        ([clip], r"clips must be one list per prompt, \[\[clip\], …\]; the entry of prompt 0 is not a list"),
    ):
        with pytest.raises(base.ModelError, match=words):
            Speaker().answer(clips, ["a"] * len(clips))


def test_clips_become_float32_of_full_scale() -> None:
    for clips in (np.array([[-32_768, 16_384]], np.int16), np.array([[-1, 0.5]]), np.array([[-1, 0.5]], np.float16)):
        checked = base.check_waveforms(clips)
        assert checked.dtype == np.float32
        np.testing.assert_array_equal(checked, [[-1.0, 0.5]])


@pytest.mark.parametrize(
    ("waveforms", "message"),
    [
        (np.zeros(100), r"shape \(100,\), but must be \[n, samples\]; wrap a single clip"),
        (np.zeros((0, 100)), r"shape \(0, 100\); they must hold at least one clip"),
        (np.zeros((2, 0)), r"shape \(2, 0\); they must hold at least one clip and one sample"),
        (np.zeros((1, 5), np.int32), "are int32, but must be floating"),
    ],
)
def test_bad_waveforms_are_named(waveforms: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_model("random").embed(waveforms, 32_000)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_a_clip_that_is_not_finite_is_named(value: float) -> None:
    clips = np.zeros((4, 50), np.float32)
    clips[2, 7] = value
    with pytest.raises(base.ClipError, match=f"row 2: the waveform holds {value} at sample 7") as caught:
        load_model("random").embed(clips, 32_000)
    assert caught.value.row == 2


@pytest.mark.parametrize("rate", [0, 16_000.5, True])
def test_bad_sample_rate(rate: float) -> None:
    with pytest.raises(ValueError, match="positive whole number of Hz"):
        load_model("random").embed(np.zeros((1, 10)), rate)


@pytest.mark.parametrize(("source", "target"), [(44_100, 16_000), (8_000, 32_000)])
def test_resampling_a_tone_gives_the_tone_at_the_new_rate(source: int, target: int) -> None:
    def tone(rate: int) -> np.ndarray:
        t = np.arange(rate) / rate
        return (np.sin(2 * np.pi * 1000 * t) * np.hanning(rate)).astype(np.float32)[None]

    out = base.resample(tone(source), source, target)
    assert out.shape == (1, target)
    assert out.dtype == np.float32
    # The two Hann windows end one sample apart at their own rates: 1e-3 allows for that.
    np.testing.assert_allclose(out, tone(target), atol=1e-3)


def test_a_clip_shorter_than_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="1 samples at 32000 Hz are shorter than one sample at 100 Hz"):
        base.resample(np.zeros((1, 1), np.float32), 32_000, 100)


def test_outputs_are_checked() -> None:
    clips = np.zeros((2, 10))
    with pytest.raises(
        base.ClipError, match="row 1: encoder 'fixed' returned 1 of 2 values that are NaN or infinite"
    ) as caught:
        Fixed([[0.0, 1.0], [np.nan, 1.0]]).embed(clips, 16_000)
    assert caught.value.row == 1
    with pytest.raises(ValueError, match=r"'fixed' returned shape \(2, 3\), but must return \[n, 2\]"):
        Fixed(np.zeros((2, 3))).embed(clips, 16_000)
    with pytest.raises(ValueError, match="'fixed' returned int64, but must return floating"):
        Fixed([[1, 2], [3, 4]]).embed(clips, 16_000)
    assert Fixed([[1.0, 2.0]]).embed(clips, 16_000).dtype == np.float32
