"""The checks of `embed_text`: an encoder that is right passes, and each fault is told by its own check."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np
import pytest

from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.encoders.check import TEXTS, ModelCheck, check_model

DIM = 16


class Words(Model):
    """An encoder that is right: of a text the sum of a vector for each word and place, of a clip sums of samples."""

    card = ModelCard("words", "1", 8_000, DIM)
    device = "cpu"

    def embed(self, waveforms: np.ndarray, sample_rate: int) -> np.ndarray:
        clips = np.asarray(waveforms, np.float32)
        return np.stack([part.std(axis=1) for part in np.array_split(clips, DIM, axis=1)], axis=1)

    def vector(self, text: str) -> np.ndarray:
        seeds = [[zlib.crc32(word.encode()), place] for place, word in enumerate(text.split())]
        return sum(np.random.default_rng(seed).normal(size=DIM) for seed in seeds)

    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return np.stack([self.vector(text) for text in texts]).astype(np.float32)


class TakesTheLastPlaceOfThePadding(Words):
    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        longest = max(len(text.split()) for text in texts)
        return np.stack([self.vector(text + " pad" * (longest - len(text.split()))) for text in texts]).astype("f")


class SortsByLength(Words):
    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return super().embed_text(sorted(texts, key=len))


class DropsOut(Words):
    generator = np.random.default_rng(0)

    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return super().embed_text(texts) * (self.generator.random(DIM) > 0.5).astype("f")


class ReadsTheFirstToken(Words):
    def vector(self, text: str) -> np.ndarray:
        return super().vector("[CLS]")


class ReturnsDouble(Words):
    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return super().embed_text(texts).astype(np.float64)


class HasAnotherSpace(Words):
    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return super().embed_text(texts)[:, :8]


class ReturnsNaN(Words):
    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        return super().embed_text(texts) * np.float32("nan")


class IsABag(Words):
    def vector(self, text: str) -> np.ndarray:
        return super().vector(" ".join(sorted(text.split())))


class RaisesAnError(Words):
    def embed_text(self, texts: Sequence[str]) -> np.ndarray:
        raise KeyError("no tokenizer")


def results_of(encoder: Words) -> dict[str, ModelCheck]:
    return {check.name: check for check in check_model(encoder) if check.name.startswith("texts")}


def test_an_encoder_that_is_right_passes() -> None:
    results = results_of(Words())
    assert {name: check.status for name, check in results.items()} == {
        "texts": "pass",
        "texts: dtype": "pass",
        "texts: deterministic": "pass",
        "texts: batch": "pass",
        "texts: sensitive": "pass",
        "texts: order": "info",
    }
    assert results["texts"].value == "4 texts, (4, 16)"


@pytest.mark.parametrize(
    ("encoder", "check", "status", "value"),
    [
        (TakesTheLastPlaceOfThePadding, "batch", "fail", "relative difference|in a batch, rows"),
        (SortsByLength, "batch", "fail", r"in a batch, rows 0 to 3 are nearest to those of the texts \[2, 0, 3, 1\]"),
        (DropsOut, "deterministic", "fail", "relative difference"),
        (ReadsTheFirstToken, "sensitive", "fail", "differ by 0.0e[+]00 of their norm at least"),
        (ReturnsDouble, "dtype", "fail", "float64"),
        (HasAnotherSpace, "", "fail", r"\(4, 8\), but must be \(4, 16\)"),
        (ReturnsNaN, "", "fail", "64 values are NaN or infinite"),
        (IsABag, "order", "warn", "move an embedding by 0 of the distance"),
        (RaisesAnError, "", "fail", "KeyError: 'no tokenizer'"),
    ],
)
def test_each_fault_is_told(encoder: type[Words], check: str, status: str, value: str) -> None:
    results = results_of(encoder())
    name = f"texts: {check}" if check else "texts"
    faults = {one: result.status for one, result in results.items() if result.status in ("fail", "warn")}
    assert faults == {name: status}
    assert re.search(value, results[name].value)
    assert results[name].hint


def test_texts_of_checks_differ_in_length_and_have_a_mark() -> None:
    assert len({len(text.split()) for text in TEXTS}) == len(TEXTS)
    assert any("!" in text for text in TEXTS)


def test_an_encoder_of_sound_alone_has_no_checks_of_texts() -> None:
    class Plain(Model):
        card, device, embed = Words.card, "cpu", Words.embed

    assert not [check for check in check_model(Plain()) if check.name.startswith("texts")]
