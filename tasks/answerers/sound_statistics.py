"""Statistics of the whole sound, and what follows from them: an answerer that hears no labels and no times.

Where labels alone decide which answer is right, as among twins, it is at chance. It is the alarm for scenes whose
answers can be told from how loud or how bright they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.texts.question_controls import Features
from audio_compositionality.encoders.base import FloatArray, resample

from .base import SAMPLE_RATE, Chooser, Prompted, asked_in, card_of, drawn, letters
from .text_only import most_likely, text_features

if TYPE_CHECKING:
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

NAMES = ("level", "crest", "centroid", "bandwidth", "rolloff", "flatness", "crossings", "deviation", "change")
"""Of the statistics of a clip."""

_FRAME = 1024
_FLOOR = 1e-10
_FAMILIES = ("option", "wording", "anchor", "rank")
"""What of the text statistics are combined with: a coefficient each."""


def clip_statistics(clip: FloatArray) -> NDArray[np.float64]:
    """Nine statistics of a clip [samples] at `SAMPLE_RATE`, in the order of `NAMES`.

    Its level and crest factor (dB); of its mean power spectrum the centroid, bandwidth, 85 % rolloff (kHz) and flatness
    (dB); sign changes a sample; and of the levels of its frames of 32 ms the standard deviation and the mean absolute
    difference from one to the next (dB).
    """
    samples = np.pad(clip.astype(np.float64), (0, max(0, 2 * _FRAME - len(clip))))
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    spectrum = (np.abs(np.fft.rfft(frames * np.hanning(_FRAME), axis=1)) ** 2).mean(axis=0) + _FLOOR
    share, frequency = spectrum / spectrum.sum(), np.linspace(0, SAMPLE_RATE / 2000, len(spectrum))
    centroid = float(share @ frequency)
    power = np.mean(samples**2) + _FLOOR
    levels = 10 * np.log10(np.mean(frames**2, axis=1) + _FLOOR)
    return np.array(
        [
            10 * np.log10(power),
            10 * np.log10((np.max(samples**2) + _FLOOR) / power),
            centroid,
            np.sqrt(share @ (frequency - centroid) ** 2),
            frequency[np.searchsorted(np.cumsum(share), 0.85)],
            10 * np.log10(np.exp(np.log(spectrum).mean()) / spectrum.mean()),
            np.mean(np.diff(np.signbit(samples).astype(np.int8)) != 0),
            levels.std(),
            np.abs(np.diff(levels)).mean(),
        ]
    )


class Statistics(Chooser):
    """Nine statistics of the sound, and a logistic regression a kind of question over its options.

    Each option is described by its text, its rank, the anchor and the polarity, and by each of these with each
    statistic. Of a kind that it has not learnt it draws an option.
    """

    card = card_of("statistics", "nine statistics of the whole sound and logistic regression")

    def __init__(self) -> None:
        """It has yet to learn."""
        self._models: dict[str, tuple[DictVectorizer, LogisticRegression]] = {}
        self._mean = self._deviation = np.ones(len(NAMES))

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`."""
        from sklearn.feature_extraction import DictVectorizer
        from sklearn.linear_model import LogisticRegression

        pairs = [(row, _heard(clip)) for row, clip in zip(rows, clips, strict=True)]
        pairs = [(row, values) for row, values in pairs if np.isfinite(values).all()]
        table = np.array([values for _, values in pairs]).reshape(-1, len(NAMES))
        self._mean, self._deviation = table.mean(axis=0), table.std(axis=0) + 1e-6
        features: dict[str, list[Features]] = defaultdict(list)
        right: dict[str, list[bool]] = defaultdict(list)
        for row, values in pairs:
            asked = asked_in(row["question"], row["options"])
            features[asked.kind] += self._features(asked, values)
            right[asked.kind] += [option == row["answer"] for option in asked.options]
        self._models = {}
        for kind in features:
            vectorizer = DictVectorizer()
            matrix = vectorizer.fit_transform(features[kind])
            self._models[kind] = vectorizer, LogisticRegression(max_iter=500).fit(matrix, right[kind])

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        clip_of = iter(self.single_clips(clips))
        return letters(prompts, lambda asked, prompt: self._place(asked, prompt, next(clip_of)))

    def _place(self, asked: Prompted, prompt: str, clip: Any) -> int:
        if asked.kind not in self._models:
            # As `Blind`: below chance it would be no bar.
            return drawn(len(asked.options), prompt)
        vectorizer, model = self._models[asked.kind]
        return most_likely(model.decision_function(vectorizer.transform(self._features(asked, _heard(clip)))), prompt)

    def _features(self, asked: Prompted, values: NDArray[np.float64]) -> list[Features]:
        scaled = dict(zip(NAMES, (values - self._mean) / self._deviation, strict=True))
        features = []
        for of_option in text_features(asked, _FAMILIES):
            with_sound = {f"{name}, {statistic}": value for name in of_option for statistic, value in scaled.items()}
            features.append({**of_option, **with_sound})
        return features


def _heard(clip: Any) -> NDArray[np.float64]:
    waveform = np.asarray(clip.waveform, np.float32)
    if not np.isfinite(waveform).all():
        return np.full(len(NAMES), np.nan)
    return clip_statistics(resample(waveform[None], clip.sample_rate, SAMPLE_RATE)[0])
