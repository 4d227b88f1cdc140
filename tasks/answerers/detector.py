"""A detector that answers: what it hears when, and the rules by which questions are made."""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent
from audio_compositionality.encoders.base import EventDict, FloatArray, ModelCard, ModelError, resample

from .base import SAMPLE_RATE, Chooser, letters
from .symbolic import RULES_VERSION, place_of_answer


class DetectorAnswerer(Chooser):
    """A detector of sounds that answers questions about when they are heard, by rules and without language.

    A subclass sets `labels` and `frame_rate` and implements `detect`; ``path/to/file.py:ClassName`` is then a model.
    Labels are compared with those of the questions as they are spoken: in small letters. What `detect` gives is
    smoothed by a median over `median_seconds`, and what exceeds `threshold` is heard.

    Its card says what the class says: `id` (default: its name), `revision` (default: the digest of its file and of the
    weights of its torch modules), `paradigm`, `licence`, `trained_on`.

    Attributes:
        labels: what can be heard.
        frame_rate: frames a second that `detect` gives; the first begins with the clip.
        sample_rate: Hz, to which clips are brought before.
        threshold: of what is heard, 0–1.
        median_seconds: see above; 0 takes the frames as they are.
        device: torch device that it computes on.
    """

    labels: Sequence[str]
    frame_rate: float
    sample_rate: int = SAMPLE_RATE
    threshold: float = 0.5
    median_seconds: float = 0.3

    @abstractmethod
    def detect(self, waveforms: FloatArray, rate: int) -> Any:
        """How likely each label is heard.

        Args:
            waveforms: float32 [n, samples] in [-1, 1].
            rate: their rate in Hz, which is `sample_rate`.

        Returns:
            [n, frames, labels], 0–1; a NumPy array or a torch tensor. A clip's values depend on that clip only.
        """

    @cached_property
    def card(self) -> ModelCard:  # type: ignore[override]
        """What it is.

        Raises:
            ModelError: the class lacks `labels` or `frame_rate`, or an attribute is not what it should be.
        """
        from audio_compositionality.encoders.adapters.custom import source_digest, stated_card

        self._check()
        card = stated_card(self, type(self).__name__, source_digest(Path(inspect.getfile(type(self)))))
        return replace(card, front_end_version=RULES_VERSION)

    def _check(self) -> None:
        """Refuse what the class does not say, or says wrong."""
        name, labels = type(self).__name__, getattr(self, "labels", None)
        if (
            isinstance(labels, str)
            or not isinstance(labels, Sequence)
            or not labels
            or not all(isinstance(label, str) for label in labels)
        ):
            raise ModelError(f"'{name}': labels is {labels!r}, but must list what can be heard, a text each")
        for attribute, least, most in (
            ("frame_rate", 1e-3, math.inf),
            ("threshold", 0, 1),
            ("median_seconds", 0, math.inf),
        ):
            value = getattr(self, attribute, None)
            if not isinstance(value, int | float) or not least <= value <= most:
                bounds = f"at least {least:g}" if math.isinf(most) else f"between {least:g} and {most:g}"
                raise ModelError(f"'{name}': {attribute} is {value!r}, but must be a number of {bounds}")

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`.

        Raises:
            ModelError: what `detect` gives is not what it should be.
        """
        heard = iter(self.events(self.single_clips(clips)))
        return letters(prompts, lambda asked, prompt: place_of_answer(asked, next(heard)))

    def events(self, clips: Sequence[Any]) -> list[Annotation]:
        """What is heard when in each clip.

        Raises:
            ModelError: see `answer`.
        """
        same: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, clip in enumerate(clips):
            same[len(clip.waveform), clip.sample_rate].append(place)
        heard: dict[int, Annotation] = {}
        for (length, rate), places in same.items():
            waveforms = np.stack([np.asarray(clips[place].waveform, np.float32) for place in places])
            for place, frames in zip(places, self._detected(resample(waveforms, rate, self.sample_rate)), strict=True):
                heard[place] = self._annotation(frames, length / rate)
        return [heard[place] for place in range(len(clips))]

    def detect_events(self, clips: Sequence[Any]) -> list[list[EventDict]]:
        """See `Model.detect_events`: as `events`, for a language model to read."""
        return [
            [{"onset": event.onset, "offset": event.offset, "label": event.label} for event in heard.events]
            for heard in self.events(clips)
        ]

    def _detected(self, waveforms: FloatArray) -> NDArray[np.floating]:
        from audio_compositionality.encoders.adapters.custom import to_array, user_code

        name = type(self).__name__
        with user_code(name):
            values = to_array(self.detect(waveforms, self.sample_rate), name)
        if values.ndim != 3 or (len(values), values.shape[2]) != (len(waveforms), len(self.labels)):
            raise ModelError(
                f"'{name}': detect returned shape {values.shape} of {len(waveforms)} clips; it must return "
                f"[{len(waveforms)}, frames, {len(self.labels)}]: a value for each of its labels"
            )
        if not (np.isfinite(values).all() and values.size and values.min() >= 0 and values.max() <= 1):
            raise ModelError(f"'{name}': detect returned values that are not between 0 and 1")
        expected = waveforms.shape[1] / self.sample_rate * self.frame_rate
        if abs(values.shape[1] - expected) > max(2.0, 0.05 * expected):
            raise ModelError(
                f"'{name}': detect returned {values.shape[1]} frames of {expected / self.frame_rate:.2f} s; at a "
                f"frame_rate of {self.frame_rate:g} these are about {expected:.0f}"
            )
        return values

    def _annotation(self, values: NDArray[np.floating], duration: float) -> Annotation:
        """What is heard when, from values [frames, labels] of a clip of so many seconds."""
        heard = smoothed(values, round(self.median_seconds * self.frame_rate)) > self.threshold
        events = [
            LabelledEvent(start / self.frame_rate, min(stop / self.frame_rate, duration), label)
            for label, mask in zip(self.labels, heard.T, strict=True)
            for start, stop in runs(mask)
            if start / self.frame_rate < duration
        ]
        return Annotation("clip", duration, tuple(sorted(events, key=lambda event: event.onset)), 0.0, "detected")


def smoothed(values: NDArray[np.floating], width: int) -> NDArray[np.floating]:
    """The median of each column of values [frames, labels] over so many frames, one more where that is even; the ends
    are repeated."""
    from scipy.ndimage import median_filter

    if width < 2:
        return values
    result: NDArray[np.floating] = median_filter(values, (width + 1 - width % 2, 1), mode="nearest")
    return result


def runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First frame, and the frame after the last, of each stretch of a mask [frames]."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]
