"""Frames in bins of time, against means worked by hand and a model whose frames say when they are."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.encoders.base import Model, ModelCard, ModelError
from audio_compositionality.encoders.binned_frames import FRAME_BIN, BinnedFrames, binned
from audio_compositionality.encoders.controls import CONTROLS, Controlled

RATE = 1_000


class Clock(Model):
    """Its frame, every 20 ms, is the mean of the samples around it."""

    card = ModelCard("clock", "v1", RATE, 2)

    def embed_frames(self, waveforms, sample_rate):
        step = sample_rate // 50
        means = np.asarray(waveforms, np.float32).reshape(len(waveforms), -1, step).mean(axis=2)
        return np.stack([means, np.ones_like(means)], axis=2), 0.02


def test_a_bin_is_the_mean_of_its_frames_and_the_nearest_one_stands_for_one_without():
    frames = np.arange(15, dtype=np.float32)[None, :, None]
    # Frames of 40 ms have their middles at 20, 60 | 100, 140, 180 | 220 ms …: the third lies on the border.
    assert binned(frames, 0.04, 4)[0, :, 0].tolist() == [0.5, 3.0, 5.5, 8.0]
    frames = np.array([[[1.0], [2.0]]], np.float32)
    assert binned(frames, 0.5, 10)[0, :, 0].tolist() == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]


def test_an_embedding_is_the_bins_one_after_the_other():
    encoder = BinnedFrames(Clock(), 0.5)
    clip = np.repeat(np.arange(5) / 10, round(FRAME_BIN * RATE)).astype(np.float32)
    embedding = encoder.forward(encoder.prepare(np.stack([clip, clip[::-1]]), RATE))
    assert embedding.shape == (2, encoder.card.output_dim) == (2, 10)
    assert np.allclose(embedding[0].reshape(5, 2)[:, 0], np.arange(5) / 10)
    assert np.allclose(embedding[1].reshape(5, 2)[:, 0], np.arange(5)[::-1] / 10)
    assert encoder.card.revision != Clock.card.revision


def test_a_control_changes_the_frames():
    encoder = BinnedFrames(Controlled(Clock(), CONTROLS["reversed-audio"]), 0.5)
    clip = np.repeat(np.arange(5) / 10, 100).astype(np.float32)
    assert np.allclose(encoder.embed(clip[None], RATE).reshape(5, 2)[:, 0], np.arange(5)[::-1] / 10)


def test_frames_that_end_before_the_clip_are_refused():
    class Short(Clock):
        def embed_frames(self, waveforms, sample_rate):
            frames, step = super().embed_frames(waveforms, sample_rate)
            return frames[:, :10], step

    with pytest.raises(ModelError, match=r"'clock' returned 10 frames of 0.02 s for 0.5 s; they must reach its end"):
        BinnedFrames(Short(), 0.5).embed(np.ones((1, 500), np.float32), RATE)
