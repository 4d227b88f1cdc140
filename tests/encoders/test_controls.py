"""Controls: what a model is given under each, on any model, and what cards and errors say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio_compositionality.encoders.base import ClipError, Model, ModelCard, ModelError
from audio_compositionality.encoders.controls import CONTROLS, PLAIN_TEXT, Controlled
from audio_compositionality.encoders.loading.names import check_name, split_control
from audio_compositionality.encoders.loading.registry import has_twins, load_encoder, load_model
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.encoders.pipeline import embed_batches

Saved = Callable[[str], Path]

RATE = 32_000
TEXTS = [
    "A slow bell, then a fast organ.",
    "a fast organ then a slow bell",
    "First a dog, later a cat!",
    "first a cat; later a dog",
]

CLASS = """
import numpy as np
class Mine:
    sample_rate = 8_000
    def embed(self, waveforms, sample_rate):
        return np.stack([waveforms[:, 0], waveforms[:, -1]], axis=1)
    def embed_text(self, texts):
        return np.array([[len(text), ord(text[0])] for text in texts], float)
"""


def clips(count: int = 3, samples: int = 4_000) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, (count, samples)).astype(np.float32)


class PlainEncoder(Model):
    """An encoder without stages."""

    card = ModelCard("plain", "1", 8_000, 2, paradigm="by hand")
    device = "cpu"

    def embed(self, waveforms: Any, sample_rate: int) -> np.ndarray:
        assert sample_rate == 8_000
        return np.stack([waveforms[:, 0], waveforms[:, -1]], axis=1)


class Frames(PlainEncoder):
    """Has a frame of two samples every other sample."""

    def embed_frames(self, waveforms: Any, sample_rate: int) -> tuple[np.ndarray, float]:
        assert sample_rate == 8_000
        return np.asarray(waveforms, np.float32).reshape(len(waveforms), -1, 2), 2 / 8_000


def test_frames_are_those_of_the_changed_clips() -> None:
    model = Controlled(Frames(), CONTROLS["reversed-audio"])
    assert model.abilities == {"audio", "frames"}
    frames, seconds = model.embed_frames((clips() * 32_768).astype(np.int16), 8_000)
    np.testing.assert_allclose(frames.reshape(3, -1), clips()[:, ::-1], atol=1e-4)
    assert seconds == 2 / 8_000
    silent, _ = Controlled(Frames(), CONTROLS["without-audio"]).embed_frames(clips(), 8_000)
    assert silent.shape == (3, 2_000, 2)
    assert not silent.any()
    assert model.embed_frames(clips(), 16_000)[0].shape == (3, 1_000, 2)
    with pytest.raises(ModelError, match=r"'reversed-audio:plain' cannot embed frames; it can embed clips$"):
        Controlled(PlainEncoder(), CONTROLS["reversed-audio"]).embed_frames(clips(), 8_000)


def load(name: str) -> Any:
    return load_model(name, device="cpu")


@pytest.mark.parametrize("name", ["random", "log-mel-statistics", "bag-of-words"])
def test_reversed_audio_is_the_model_on_reversed_clips(name: str) -> None:
    controlled = load(f"reversed-audio:{name}")
    np.testing.assert_array_equal(controlled.embed(clips(), RATE), load(name).embed(clips()[:, ::-1], RATE))
    assert not np.array_equal(controlled.embed(clips(), RATE), load(name).embed(clips(), RATE))
    assert ("text" in controlled.abilities) == (name != "log-mel-statistics")
    if name != "log-mel-statistics":
        np.testing.assert_array_equal(controlled.embed_text(TEXTS), load(name).embed_text(TEXTS))


def test_texts_of_the_same_words_are_one_when_sorted() -> None:
    model, controlled = load("random"), load("sorted-words:random")
    first, second, third, fourth = controlled.embed_text(TEXTS)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(third, fourth)
    assert not np.allclose(first, third)
    np.testing.assert_array_equal(first, model.embed_text(["a a bell fast organ slow then"])[0])
    assert not np.allclose(*model.embed_text(TEXTS[:2]))
    np.testing.assert_array_equal(controlled.embed_text(["?!"]), model.embed_text(["?!"]))
    np.testing.assert_array_equal(controlled.embed(clips(), RATE), model.embed(clips(), RATE))


def test_without_audio_every_clip_is_silence_and_one_vector() -> None:
    controlled = load("without-audio:tiny-clap")
    rows = controlled.embed(clips(samples=160_000), 16_000)
    silence = load("tiny-clap").embed(np.zeros((1, 160_000), np.float32), 16_000)
    np.testing.assert_array_equal(rows, np.repeat(silence, 3, axis=0))
    np.testing.assert_array_equal(controlled.embed_text(TEXTS), load("tiny-clap").embed_text(TEXTS))


def test_a_model_that_repeats_short_clips_hears_padded_ones_once(saved: Saved) -> None:
    model, controlled = load(str(saved("clap"))), load(f"padded-audio:{saved('clap')}")
    rate = model.card.sample_rate
    short, whole = clips(2, 3 * rate), clips(2, 10 * rate)
    padded = np.pad(short, ((0, 0), (0, 7 * rate)))
    np.testing.assert_array_equal(controlled.embed(short, rate), model.embed(padded, rate))
    assert not np.allclose(controlled.embed(short, rate), model.embed(short, rate))
    np.testing.assert_array_equal(controlled.embed(whole, rate), model.embed(whole, rate))


def test_without_text_every_text_is_one() -> None:
    controlled = load("without-text:random")
    rows = controlled.embed_text(TEXTS)
    np.testing.assert_array_equal(rows, np.repeat(load("random").embed_text([PLAIN_TEXT]), 4, axis=0))


def test_cards_say_what_they_are() -> None:
    model = load("tiny-clap").card
    kinds = [kind for kind in CONTROLS.values() if not (kind.moves or kind.tells)]
    cards = [load(f"{kind.prefix}tiny-clap").card for kind in kinds]
    assert [card.id for card in cards] == [
        "sorted-words:tiny-clap",
        "reversed-audio:tiny-clap",
        "shuffled-audio:tiny-clap",
        "padded-audio:tiny-clap",
        "without-audio:tiny-clap",
        "noise-audio:tiny-clap",
        "without-text:tiny-clap",
    ]
    for card, kind in zip(cards, kinds, strict=True):
        assert card.paradigm == f"control ({kind.meaning})"
        assert (card.revision, card.parameters, card.sample_rate) == (model.revision, model.parameters, 16_000)
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")
    assert all(f"`{kind.prefix}" in page for kind in CONTROLS.values())


def test_a_class_of_ones_own_is_controlled(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CLASS)
    name = f"{tmp_path}/mine.py:Mine"
    samples = clips()
    plain = load(name).embed(samples, 8_000)
    np.testing.assert_array_equal(load(f"reversed-audio:{name}").embed(samples, 8_000), plain[:, ::-1])
    np.testing.assert_array_equal(load(f"sorted-words:{name}").embed_text(["Dog, a"]), [[5, ord("a")]])
    check_name(f"sorted-words:{name}")
    with pytest.raises(ModelError, match=r"'.*' is made by code of its own, so nothing here can give it fresh weights"):
        load(f"reversed-audio:untrained:{name}")


def test_a_twin_is_controlled_and_options_are_passed_on(saved: Saved) -> None:
    folder = saved("whisper")
    controlled = load_encoder(
        f"reversed-audio:untrained:{folder}", device="cpu", options=EncoderOptions(layer=1), seed=3
    )
    twin = load_encoder(f"untrained:{folder}", device="cpu", options=EncoderOptions(layer=1), seed=3)
    assert (controlled.card.id, controlled.card.revision) == (f"reversed-audio:{twin.card.id}", twin.card.revision)
    assert controlled.card.options == twin.card.options
    samples = clips(2, 16_000)
    np.testing.assert_array_equal(controlled.embed(samples, 16_000), twin.embed(samples[:, ::-1], 16_000))
    assert not has_twins(f"reversed-audio:{folder}")


def test_a_model_without_stages_is_controlled() -> None:
    reversed_clips = Controlled(PlainEncoder(), CONTROLS["reversed-audio"]).embed(clips(), 8_000)
    np.testing.assert_array_equal(reversed_clips, PlainEncoder().embed(clips()[:, ::-1], 8_000))
    silent = Controlled(PlainEncoder(), CONTROLS["without-audio"]).embed(clips(), 8_000)
    np.testing.assert_array_equal(silent, np.zeros((3, 2)))


def test_a_control_of_a_control(tmp_path: Path) -> None:
    both = load("sorted-words:reversed-audio:random")
    assert both.card.id == "sorted-words:reversed-audio:random"
    np.testing.assert_array_equal(both.embed(clips(), RATE), load("reversed-audio:random").embed(clips(), RATE))
    np.testing.assert_array_equal(both.embed_text(TEXTS), load("sorted-words:random").embed_text(TEXTS))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "sorted-words:downsample",
            "'sorted-words:downsample': 'downsample' embeds no text, so there is nothing to con",
        ),
        ("without-text:log-mel-statistics", "embeds no text"),
        ("untrained:sorted-words:laion-clap", "ask for a control of a twin, 'sorted-words:untrained:laion-clap'"),
        ("reversed-audio:wisper-base", "unknown model 'wisper-base'; did you mean 'whisper-base'"),
        ("sorted-words:untrained:shuffled:org/name", "is a twin of a twin"),
    ],
)
def test_what_cannot_be_controlled_is_refused(name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load(name)


def test_a_wrong_name_is_told_before_anything_is_loaded() -> None:
    check_name("without-text:reversed-audio:laion-clap")
    for name in ("sorted-words:nothing", "untrained:sorted-words:laion-clap"):
        with pytest.raises(ModelError):
            check_name(name)
    assert split_control("sorted-words") == (None, "sorted-words")
    assert split_control("a/b:sorted-words") == (None, "a/b:sorted-words")


def test_clips_that_cannot_be_used_are_told_as_of_the_model() -> None:
    broken = clips()
    broken[1, 7] = np.nan
    with pytest.raises(ClipError, match="row 1: the waveform holds nan at sample 7"):
        load("without-audio:random").embed(broken, RATE)


def test_a_control_is_embedded_in_stages_as_its_model() -> None:
    class Batch:
        ids, waveforms, sample_rate, errors = ["a", "b", "c"], clips(), RATE, {1: "a reason"}

    (batch,) = embed_batches(load("without-audio:random"), [Batch()], skip_invalid=True)
    assert np.isnan(batch.embeddings[1]).all()
    np.testing.assert_array_equal(batch.embeddings[0], batch.embeddings[2])
