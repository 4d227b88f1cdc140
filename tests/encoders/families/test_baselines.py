from __future__ import annotations

from pathlib import Path

import librosa
import numpy as np
import pytest
import scipy.signal
import scipy.stats
import torch
import transformers

from audio_compositionality.encoders.base import ModelError, words_of
from audio_compositionality.encoders.families.baselines import fourier_resample, seeded_normals
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.networks.small_networks import (
    save_clap,
    shipped_words,
    tiny_clap,
    tiny_extractor,
    tiny_tokenizer,
)
from audio_compositionality.encoders.text_towers import TextedEncoder

RATE = 32_000


def sixteen_bit(shape: tuple[int, int], seed: int = 0) -> np.ndarray:
    """Noise on the 16-bit grid below a quarter of full scale, so that float32 sums of a few are exact."""
    return np.random.default_rng(seed).integers(-8000, 8000, shape).astype(np.float32) / 32_768


@pytest.mark.parametrize("samples", [100, 767, 768, 769, 32_000])
def test_fourier_resample_equals_scipy(samples: int) -> None:
    signals = np.random.default_rng(samples).normal(size=(2, samples))
    np.testing.assert_allclose(fourier_resample(signals, 768), scipy.signal.resample(signals, 768, axis=-1), atol=1e-12)
    with pytest.raises(ValueError, match="767 must be even"):
        fourier_resample(signals, 767)


def test_downsample_is_linear() -> None:
    encoder = load_model("downsample")
    x, y = sixteen_bit((2, 3 * RATE), 1), sixteen_bit((2, 3 * RATE), 2)
    whole = encoder.embed(x + 2 * y, RATE)
    np.testing.assert_allclose(
        whole, encoder.embed(x, RATE) + 2 * encoder.embed(y, RATE), atol=1e-6 * np.abs(whole).max()
    )


def test_random_depends_on_the_content_and_on_nothing_else() -> None:
    encoder = load_model("random")
    clips = sixteen_bit((4, 1000))
    vectors = encoder.embed(clips, RATE)
    np.testing.assert_array_equal(load_model("random").embed(clips[::-1], RATE)[::-1], vectors)
    as_int16 = (clips * 32_768).astype(np.int16)
    np.testing.assert_array_equal(encoder.embed(as_int16, RATE), vectors)

    other = clips[:1].copy()
    other[0, 500] += 1 / 32_768
    assert np.abs(np.corrcoef(encoder.embed(other, RATE)[0], vectors[0])[0, 1]) < 0.2
    longer = np.pad(clips[:1], ((0, 0), (0, 1)))
    assert not np.array_equal(encoder.embed(longer, RATE)[0], vectors[0])


def test_random_is_standard_normal() -> None:
    vectors = load_model("random").embed(sixteen_bit((200, 50)), RATE)
    assert scipy.stats.kstest(vectors.ravel(), "norm").pvalue > 1e-3
    norms = (vectors.astype(np.float64) ** 2).sum(axis=1)
    assert scipy.stats.kstest(norms, scipy.stats.chi2(768).cdf).pvalue > 1e-3
    # Independent clips: cosines of variance 1/768.
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(200, 1)]
    assert cosines.std() == pytest.approx(768**-0.5, rel=0.05)


@pytest.mark.slow
def test_log_mel_statistics_equal_librosa() -> None:
    t = np.arange(RATE) / RATE
    noise = sixteen_bit((1, RATE))[0]
    half_silent = (np.sin(2 * np.pi * 440 * t) + 0.05 * noise) * (t < 0.5)
    clips = np.stack([noise, half_silent]).astype(np.float32)
    embedding = load_model("log-mel-statistics").embed(clips, RATE)
    for clip, row in zip(clips, embedding, strict=True):
        mel = librosa.feature.melspectrogram(
            y=clip.astype(np.float64), sr=RATE, n_fft=1024, hop_length=512, n_mels=128, pad_mode="constant"
        )
        log_mel = np.log10(np.maximum(mel, 1e-10))
        np.testing.assert_allclose(row, [*log_mel.mean(axis=1), *log_mel.std(axis=1)], atol=1e-4)


def test_mfcc_statistics_equal_librosa() -> None:
    t = np.arange(RATE) / RATE
    noise = sixteen_bit((1, RATE))[0]
    half_silent = (np.sin(2 * np.pi * 440 * t) + 0.05 * noise) * (t < 0.5)
    glide = np.sin(2 * np.pi * (200 + 1500 * t) * t)
    clips = np.stack([noise, half_silent, glide]).astype(np.float32)
    embedding = load_model("mfcc-statistics").embed(clips, RATE)
    assert embedding.shape == (3, 60)
    for clip, row in zip(clips, embedding, strict=True):
        mfcc = librosa.feature.mfcc(y=clip.astype(np.float64), sr=RATE, n_fft=1024, hop_length=512)
        delta = librosa.feature.delta(mfcc, mode="nearest")
        for actual, expected in zip(row.reshape(3, 20), (mfcc.mean(1), mfcc.std(1), delta.std(1)), strict=True):
            assert np.abs(actual - expected).max() < 1e-5 * np.abs(expected).max()


def test_modulation_statistics_are_the_depth_of_each_rate_in_its_bands() -> None:
    """A sum of tones whose level rises and falls by `depth` decibels has depth / 2 at that rate, and 0 at others."""
    seconds, rate, depth = 4, 5.0, 6.0
    t = np.arange(seconds * RATE) / RATE
    tones = sum(np.sin(2 * np.pi * tone * t + tone) for tone in np.arange(100, 15_900, 31.25 * 3))
    clip = (0.01 * tones * 10 ** (depth * np.sin(2 * np.pi * rate * t) / 20)).astype(np.float32)
    row = load_model("modulation-statistics").embed(clip[None], RATE)[0]
    np.testing.assert_array_equal(row[:256], load_model("log-mel-statistics").embed(clip[None], RATE)[0])
    modulation = row[256:].reshape(16, 8)
    edges = 0.5 * 2 ** (0.75 * np.arange(9))
    place = int(np.searchsorted(edges, rate)) - 1
    # Frames at the ends, half of them zeros, and the window of a frame take some of it.
    np.testing.assert_allclose(modulation[2:, place], depth / 2, rtol=0.15)
    assert (modulation[2:].argmax(axis=1) == place).all()
    frames, distance = load_model("modulation-statistics").embed_frames(clip[None], RATE)
    assert (frames.shape[2], distance) == (24 + 24 + 78, 512 / RATE)
    # Away from the ends the first cepstrum is the mean level of the bands; then its slope, and its square.
    inner = frames[0, 40:-40]
    # A mean of nine frames passes this much of that rate.
    passed = np.sin(9 * np.pi * rate * 512 / RATE) / (9 * np.sin(np.pi * rate * 512 / RATE))
    np.testing.assert_allclose(np.ptp(inner[:, 0]), 2 * depth * passed, rtol=0.15)
    assert np.corrcoef(np.gradient(inner[:, 0]), inner[:, 24])[0, 1] > 0.99
    np.testing.assert_allclose(inner[:, 48], inner[:, 0] ** 2 / 10, rtol=1e-4, atol=1e-6)


def test_level_statistics_equal_librosa() -> None:
    t = np.arange(2 * RATE) / RATE
    clip = (0.5 * np.sin(2 * np.pi * 440 * t) * np.exp(-3 * t)).astype(np.float32)
    row = load_model("level-statistics").embed(clip[None], RATE)[0]
    rms = librosa.feature.rms(y=clip.astype(np.float64), frame_length=1024, hop_length=512)[0]
    levels = librosa.amplitude_to_db(rms, amin=1e-5, top_db=None)
    expected = [
        20 * np.log10(np.sqrt(np.mean(clip.astype(np.float64) ** 2))),
        20 * np.log10(np.abs(clip).max()),
        levels.mean(),
        levels.std(),
        *np.percentile(levels, [10, 50, 90]),
        np.abs(np.diff(levels)).mean(),
    ]
    np.testing.assert_allclose(row, expected, rtol=1e-5)
    # Level alone: a louder clip is the same one, higher up; what is not level does not count.
    louder = load_model("level-statistics").embed(2 * clip[None], RATE)[0]
    shift = 20 * np.log10(2) * np.array([1, 1, 1, 0, 1, 1, 1, 0])
    np.testing.assert_allclose(louder, row + shift, atol=1e-4)
    np.testing.assert_allclose(load_model("level-statistics").embed(-clip[None], RATE)[0], row)


@pytest.mark.parametrize("samples", [1, 5000])
def test_statistics_of_silence_and_of_short_clips_are_finite(samples: int) -> None:
    silence, click = np.zeros((2, samples), np.float32)
    click[0] = 1
    levels = load_model("level-statistics").embed(np.stack([silence, click]), RATE)
    np.testing.assert_allclose(levels[0], [-100, -100, -100, 0, -100, -100, -100, 0])
    assert levels[1, 1] == 0
    assert np.isfinite(levels).all()
    modulation = load_model("modulation-statistics").embed(np.stack([silence, click]), RATE)
    np.testing.assert_array_equal(modulation[0, 128:], 0)
    assert np.isfinite(modulation).all()
    cepstra = load_model("mfcc-statistics").embed(np.stack([silence, click]), RATE)
    np.testing.assert_allclose(cepstra[0], [-100 * np.sqrt(128)] + [0] * 59, atol=1e-4)
    assert np.isfinite(cepstra).all()


def test_the_root_mean_square_is_one_number_that_a_gain_multiplies() -> None:
    clips = sixteen_bit((3, RATE))
    embedding = load_model("rms").embed(clips, RATE)
    assert embedding.shape == (3, 1)
    np.testing.assert_allclose(embedding[:, 0], np.sqrt(np.mean(clips.astype(np.float64) ** 2, axis=1)), rtol=1e-6)
    np.testing.assert_allclose(load_model("rms").embed(-0.5 * clips, RATE), 0.5 * embedding, rtol=1e-6)
    assert load_model("rms").embed(np.zeros((1, 7), np.float32), RATE) == 0


# Texts


def test_words() -> None:
    words = ["a", "dog", "barks", "then", "a", "cat's", "meow", "first-class", "2nd"]
    assert words_of("A dog barks, then a cat's meow; FIRST-class 2nd!") == words
    assert words_of("— ... !?") == []


def test_a_text_is_the_sum_of_its_words() -> None:
    encoder = load_model("bag-of-words")
    dog, cat, both, twice = encoder.embed_text(["dog", "cat", "cat, DOG", "dog dog cat"])
    np.testing.assert_allclose(both, (dog + cat) / np.sqrt(2), atol=1e-6)
    np.testing.assert_allclose(twice, (2 * dog + cat) / np.sqrt(3), atol=1e-6)
    assert abs(np.corrcoef(dog, cat)[0, 1]) < 0.2
    np.testing.assert_array_equal(encoder.embed_text(["!?"]), np.zeros((1, 256)))


def test_a_clip_is_a_projection_of_its_log_mel_statistics() -> None:
    """Linear in them: distances are kept to about one part in sixteen, as by any random projection to 256."""
    statistics, projected = (
        load_model(name).embed(sixteen_bit((4, RATE)), RATE) for name in ("log-mel-statistics", "bag-of-words")
    )
    solution = np.linalg.lstsq(statistics.astype(float), projected.astype(float), rcond=None)[0]
    np.testing.assert_allclose(statistics @ solution, projected, atol=1e-4 * np.abs(projected).max())
    ratio = np.linalg.norm(projected, axis=1) / np.linalg.norm(statistics, axis=1)
    np.testing.assert_allclose(ratio, 1, atol=0.2)


def test_random_texts_are_independent_normals_by_their_content() -> None:
    encoder = load_model("random")
    texts = [f"text {number}" for number in range(100)]
    vectors = encoder.embed_text(texts)
    np.testing.assert_array_equal(load_model("random").embed_text(texts[::-1])[::-1], vectors)
    assert scipy.stats.kstest(vectors.ravel(), "norm").pvalue > 1e-3
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert (unit @ unit.T)[np.triu_indices(100, 1)].std() == pytest.approx(768**-0.5, rel=0.05)
    # Not the vector of a clip with the same bytes.
    assert abs(np.corrcoef(seeded_normals(b"text 0", 768), vectors[0])[0, 1]) < 0.2


# The tiny CLAP


TEXTS = ["a slow high bell followed by a fast low organ", "Zebra! an étude", "rain"]


def load(name: str) -> TextedEncoder:
    encoder = load_model(name, device="cpu")
    assert isinstance(encoder, TextedEncoder)
    return encoder


def test_what_is_saved_is_the_same_model_to_transformers_and_as_a_folder(tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    save_clap(tiny_clap(), tmp_path)
    assert torch.equal(torch.random.get_rng_state(), state)
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 80_000)).astype(np.float32)
    encoder, folder = load("tiny-clap"), load(str(tmp_path))
    np.testing.assert_array_equal(encoder.embed(clips, 16_000), folder.embed(clips, 16_000))
    np.testing.assert_array_equal(encoder.embed_text(TEXTS), folder.embed_text(TEXTS))
    model = transformers.ClapModel.from_pretrained(tmp_path).eval()
    tokens = transformers.AutoTokenizer.from_pretrained(tmp_path)(TEXTS, padding=True, return_tensors="pt")
    features = transformers.ClapFeatureExtractor.from_pretrained(tmp_path)(
        list(clips), sampling_rate=16_000, return_tensors="pt"
    )
    with torch.no_grad():
        texts = model.get_text_features(**tokens).pooler_output.numpy()
        sounds = model.get_audio_features(**features).pooler_output.numpy()
    np.testing.assert_allclose(encoder.embed_text(TEXTS), texts, atol=1e-6)
    np.testing.assert_allclose(encoder.embed(clips, 16_000), sounds, atol=1e-6)


def test_no_word_is_unknown() -> None:
    tokenizer = tiny_tokenizer()
    tokens = tokenizer.tokenize("Bells, then a zebra's 2nd étude - (quack)!")
    assert tokens[:9] == ["bells", ",", "then", "a", "z", "##e", "##b", "##r", "##a"]
    assert tokenizer.unk_token not in tokens
    assert tokenizer("a dog")["input_ids"][::3] == [0, 2]
    assert len(tokenizer) == tiny_clap().config.text_config.vocab_size
    assert tiny_tokenizer(["zebra", "étude"]).tokenize("zebra bell") == ["zebra", "b", "##e", "##l", "##l"]
    # YAML takes these for booleans where they stand alone.
    assert {"no", "on", "off"} <= set(shipped_words())
    encoder = load("tiny-clap")
    encoder.embed_text(["bell " * 75])
    with pytest.raises(ModelError, match="has 78 tokens, but 'tiny-clap' takes 1 to 77"):
        encoder.embed_text(["bell " * 76])


def test_a_shorter_clip_is_followed_by_silence_and_not_repeated() -> None:
    clip = np.random.default_rng(0).normal(0, 0.1, (1, 48_000)).astype(np.float32)
    encoder = load("tiny-clap")
    longer = np.pad(clip, ((0, 0), (0, 112_000)))
    np.testing.assert_array_equal(encoder.embed(clip, 16_000), encoder.embed(longer, 16_000))
    assert tiny_extractor().padding == "pad"
