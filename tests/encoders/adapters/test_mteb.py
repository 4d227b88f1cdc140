"""The encoder protocol of mteb; `tests/references/mteb_suite.py` runs the real package."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.signal import resample_poly

from audio_compositionality.encoders.adapters import mteb as adapter
from audio_compositionality.encoders.loading.registry import load_model

from ..contract import Saved, different_clips


def item(array: Any, rate: int) -> dict[str, Any]:
    return {"array": array, "sampling_rate": rate}


def test_clips_of_any_rate_and_length_keep_their_places() -> None:
    model = adapter.MtebModel("log-mel-statistics")
    noise, tone, quiet = different_clips(32_000, 1)
    short = tone[:20_000]
    slow = resample_poly(noise, 1, 2).astype(np.float32)
    batches = [
        {"audio": [item(noise, 32_000), item(slow, 16_000), item(short, 32_000)], "label": [0, 1, 2]},
        {"audio": [item(quiet.tolist(), 32_000)]},
    ]
    embeddings = model.encode(batches, task_metadata=None, hf_split="test", hf_subset="default", batch_size=3)
    encoder = load_model("log-mel-statistics")
    expected = [encoder.embed(clip[None], rate)[0] for clip, rate in
                ((noise, 32_000), (slow, 16_000), (short, 32_000), (quiet, 32_000))]  # fmt: skip
    np.testing.assert_array_equal(embeddings, np.stack(expected))


def test_channels_are_averaged_and_long_clips_cut_where_it_is_asked_for(saved: Saved) -> None:
    clip = np.random.default_rng(0).normal(0, 0.1, (2, 5 * 16_000)).astype(np.float32)
    batch = {"audio": [item(clip, 16_000)]}
    with pytest.raises(ValueError, match="last 5 s, but 'whisper' takes at most 3 s"):
        adapter.MtebModel(str(saved("whisper"))).encode([batch])
    embeddings = adapter.MtebModel(str(saved("whisper")), max_seconds=2).encode([batch])
    expected = load_model(str(saved("whisper"))).embed(clip.mean(axis=0, keepdims=True)[:, :32_000], 16_000)
    np.testing.assert_allclose(embeddings, expected, atol=1e-6)


def test_another_modality_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch holds text; this encoder needs 'audio'"):
        adapter.MtebModel("downsample").encode([{"text": ["a"]}])


def test_a_model_of_ours_that_reads_embeds_texts_and_says_so() -> None:
    model, encoder = adapter.MtebModel("compa-clap-tiny"), load_model("compa-clap-tiny")
    texts = ["a bell, then a drum", "a drum, then a bell"]
    embeddings = model.encode([{"text": texts[:1]}, {"text": texts[1:]}])
    np.testing.assert_allclose(embeddings, encoder.embed_text(texts), atol=1e-6)
    assert model.sampling_rate == encoder.card.sample_rate
    both = {"text": texts[:1], "audio": [item(np.zeros(16_000), 16_000)]}
    with pytest.raises(ValueError, match="a batch holds text, audio; this encoder needs 'audio' or 'text'"):
        model.encode([both])


def test_a_revision_is_checked() -> None:
    assert adapter.MtebModel("downsample", "v1").encoder.card.revision == "v1"
    with pytest.raises(ValueError, match="'downsample' has the revision v1, but v0 was requested"):
        adapter.MtebModel("downsample", "v0")


def test_an_object_is_a_model_of_mteb() -> None:
    class Levels:
        sample_rate = 16_000

        def embed(self, waveforms: Any, sample_rate: int) -> Any:
            return np.stack([waveforms.std(axis=1), np.abs(waveforms).max(axis=1)], axis=1)

    model = adapter.MtebModel(Levels())
    clips = np.stack(different_clips(16_000, 1))
    embeddings = model.encode([{"audio": [item(clip, 16_000) for clip in clips]}])
    np.testing.assert_allclose(embeddings, Levels().embed(clips, 16_000), atol=1e-6)
    assert (model.name, adapter.MtebModel("downsample").name) == (None, "downsample")


class Theirs:
    """A model of mteb: mean and root mean square of each clip."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)
        self.calls: list[Any] = []

    def encode(self, inputs: Any, *, task_metadata: Any, hf_split: str, hf_subset: str, **_: Any) -> Any:
        assert "audio" in inputs.dataset.features
        clips = [(np.asarray(row["array"]), row["sampling_rate"]) for batch in inputs for row in batch["audio"]]
        self.calls.append((task_metadata, [(len(clip), rate) for clip, rate in clips]))
        return torch.tensor([[clip.mean(), np.sqrt((clip**2).mean())] for clip, _ in clips])


def test_their_model_gets_clips_at_the_rate_that_it_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_task_metadata", lambda: "metadata")
    model = Theirs(sampling_rate=8_000)
    encoder = adapter.MtebEncoder(model, "their/model", "r")
    assert (encoder.card.id, encoder.card.sample_rate, encoder.card.output_dim) == ("mteb:their/model", 8_000, 2)
    clips = different_clips(16_000, 1)
    embeddings = encoder.embed(clips, 16_000)
    assert model.calls[-1] == ("metadata", [(8_000, 8_000)] * 3)
    expected = np.sqrt((resample_poly(clips, 1, 2, axis=1) ** 2).mean(axis=1))
    np.testing.assert_allclose(embeddings[:, 1], expected, rtol=0.02)
    assert adapter.MtebEncoder(Theirs(), "x", "r").card.sample_rate == 32_000


class Reads(Theirs):
    """As well: the number of letters of a text, and 1."""

    def encode(self, inputs: Any, **settings: Any) -> Any:
        if "text" not in inputs.dataset.features:
            return super().encode(inputs, **settings)
        return np.array([[len(text), 1.0] for batch in inputs for text in batch["text"]], np.float32)


def test_their_model_embeds_texts_where_its_metadata_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_task_metadata", lambda: None)
    monkeypatch.setattr(adapter, "version", lambda _: "2.26.0")
    meta = SimpleNamespace(name="their/model", revision="r", modalities=["audio", "text"])
    encoder = adapter.as_encoder(Reads(mteb_model_meta=meta))
    assert (encoder.card.id, encoder.card.revision) == ("mteb:their/model", "r-mteb-2.26.0")
    assert encoder.abilities >= {"audio", "text"}
    np.testing.assert_array_equal(encoder.embed_text(["a", "abc"]), [[1, 1], [3, 1]])
    meta.modalities = ["audio"]
    assert "text" not in adapter.as_encoder(Reads(mteb_model_meta=meta)).abilities
    meta.modalities = ["text"]
    with pytest.raises(ValueError, match="'mteb:their/model' takes text, but not audio"):
        adapter.as_encoder(Reads(mteb_model_meta=meta))


def test_output_of_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_task_metadata", lambda: None)
    monkeypatch.setattr(Theirs, "encode", lambda self, inputs, **_: np.zeros(3))
    with pytest.raises(ValueError, match=r"'mteb:x' returned shape \(3,\) for one clip"):
        adapter.MtebEncoder(Theirs(), "x", "r")


def test_without_mteb_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mteb", None)
    with pytest.raises(ValueError, match=r"models of mteb need the package mteb: pip install 'mteb\[audio\]>=2\.26'"):
        load_model("mteb:openai/whisper-tiny")
