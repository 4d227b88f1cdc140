"""Frame outputs of an encoder as one embedding per clip: means over consecutive bins of time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import FloatArray, Model, ModelCard, ModelError, Wrapper, check_waveforms

FRAME_BIN = 0.1
"""Length of a bin in seconds."""

VERSION = 1
"""Version of binned frames; raise it with any change that alters one."""


class BinnedFrames(Wrapper):
    """An encoder whose embedding of a clip is its frames averaged in bins of `FRAME_BIN`: float32 [bins × dim].

    All clips have one length. A bin holds the mean of the frames whose middles lie in it, or else the nearest frame.
    """

    def __init__(self, model: Model, seconds: float) -> None:
        """Wrap a model that embeds frames; a second of silence shows their length.

        Args:
            model: model with the ability ``frames``.
            seconds: length of every clip.

        Raises:
            ModelError: the model has no frame outputs.
        """
        model.require("frames")
        self.bins = max(1, round(seconds / FRAME_BIN))
        silence = np.zeros((1, model.card.sample_rate), np.float32)
        self._dim = model.embed_frames(silence, model.card.sample_rate)[0].shape[2]
        super().__init__(model)

    def make_card(self) -> ModelCard:
        """Make the card from the model's, with a revision of its own, so that frames are cached apart from
        embeddings."""
        card = self.model.card
        revision = f"{card.revision}+frames-{VERSION}-{FRAME_BIN:g}s"
        return replace(card, revision=revision, output_dim=self.bins * self._dim)

    def embed(self, waveforms: ArrayLike, sample_rate: int) -> FloatArray:
        """Return the binned frames of clips: float32 [n, bins × dim]; see `Model.embed`.

        Raises:
            ModelError: the frames end before the clip.
        """
        clips = check_waveforms(waveforms)
        frames, step = self.model.embed_frames(clips, sample_rate)
        seconds = clips.shape[1] / sample_rate
        if frames.shape[1] * step < seconds - max(step, FRAME_BIN):
            raise ModelError(
                f"'{self.model.card.id}' returned {frames.shape[1]} frames of {step:g} s for {seconds:g} s; they "
                "must reach its end"
            )
        return binned(frames, step, self.bins).reshape(len(clips), -1)


def binned(frames: NDArray[np.floating], step: float, bins: int) -> FloatArray:
    """Average frames in bins of `FRAME_BIN`: float32 [n, bins, dim].

    Args:
        frames: [n, frames, dim]; frame i describes the sound around (i + 1/2) · step seconds. Frames after the last bin
            are left out.
        step: seconds between frames.
        bins: number of bins.
    """
    count = frames.shape[1]
    middles = (np.arange(count) + 0.5) * step
    bin_of_frame = np.floor(middles / FRAME_BIN + 1e-9).astype(np.int64)
    result = np.empty((len(frames), bins, frames.shape[2]), np.float32)
    for place in range(bins):
        within = np.flatnonzero(bin_of_frame == place)
        if not len(within):
            within = np.array([np.abs(middles - (place + 0.5) * FRAME_BIN).argmin()])
        result[:, place] = frames[:, within].mean(axis=1)
    return result
