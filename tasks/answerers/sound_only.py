"""Answerers from statistics of the mixture, without labels and without times.

If labels alone decide which answer is right, as among counterparts, they are at chance. They reveal scenes whose
loudness or brightness gives answers away.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.recipes.two_clips import DIFFERENCES, WHICH
from audio_compositionality.dataset_builder.texts.question_controls import Features
from audio_compositionality.dataset_builder.texts.questions import YES
from audio_compositionality.encoders.base import FloatArray, resample

from .chooser import SAMPLE_RATE, Chooser, Prompted, answerer_card, asked_in, drawn, letters, prompted
from .text_only import Classifiers, fitted, likeliest, text_features

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier


STATISTICS = ("level", "crest", "centroid", "bandwidth", "rolloff", "flatness", "crossings", "deviation", "change")
"""Names of the statistics of a clip."""

_FRAME = 1024
_POWER_FLOOR = 1e-10
_FAMILIES = ("option", "wording", "anchor", "rank")
"""The text features that statistics are combined with; each has a coefficient."""


def clip_statistics(clip: FloatArray) -> NDArray[np.float64]:
    """Return nine statistics of a clip [samples] at `SAMPLE_RATE`, in the order of `STATISTICS`.

    Level and crest factor (dB); centroid, bandwidth, 85 % rolloff (kHz) and flatness (dB) of the mean power spectrum;
    sign changes per sample; and the standard deviation of the levels of 32-ms frames and the mean absolute difference
    between successive ones (dB).
    """
    samples = np.pad(clip.astype(np.float64), (0, max(0, 2 * _FRAME - len(clip))))
    frames = samples[: len(samples) // _FRAME * _FRAME].reshape(-1, _FRAME)
    spectrum = (np.abs(np.fft.rfft(frames * np.hanning(_FRAME), axis=1)) ** 2).mean(axis=0) + _POWER_FLOOR
    share, frequency = spectrum / spectrum.sum(), np.linspace(0, SAMPLE_RATE / 2000, len(spectrum))
    centroid = float(share @ frequency)
    power = np.mean(samples**2) + _POWER_FLOOR
    levels = 10 * np.log10(np.mean(frames**2, axis=1) + _POWER_FLOOR)
    return np.array(
        [
            10 * np.log10(power),
            10 * np.log10((np.max(samples**2) + _POWER_FLOOR) / power),
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
    """Nine statistics of the clip, and a logistic regression over the options per kind of question.

    Features of an option are its text, its rank, the anchor and the polarity, and the products of each with each
    statistic. For a kind of question absent from training it draws an option at random.
    """

    card = answerer_card("statistics", "nine statistics of the clip and logistic regression")

    def __init__(self) -> None:
        """Start untrained; `learn` trains."""
        self._models: Classifiers = {}
        self._mean = self._deviation = np.ones(len(STATISTICS))

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; clips that cannot be used are skipped."""
        pairs = [(row, _clip_values(clip)) for row, clip in zip(rows, clips, strict=True)]
        pairs = [(row, values) for row, values in pairs if np.isfinite(values).all()]
        table = np.array([values for _, values in pairs]).reshape(-1, len(STATISTICS))
        self._mean, self._deviation = table.mean(axis=0), table.std(axis=0) + 1e-6
        examples = []
        for row, values in pairs:
            asked = asked_in(row["question"], row["options"])
            examples.append((asked, self._features(asked, values), row["answer"]))
        self._models = fitted(examples, 500)

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        places = []
        for clip, prompt in zip(self.single_clips(clips), prompts, strict=True):
            asked = prompted(prompt)
            places.append(likeliest(self._models, asked, self._features(asked, _clip_values(clip)), prompt))
        return letters(places)

    def _features(self, asked: Prompted, values: NDArray[np.float64]) -> list[Features]:
        scaled = dict(zip(STATISTICS, (values - self._mean) / self._deviation, strict=True))
        features = []
        for of_option in text_features(asked, _FAMILIES):
            with_sound = {f"{name}, {statistic}": value for name in of_option for statistic, value in scaled.items()}
            features.append({**of_option, **with_sound})
        return features


class SpectrumComparer(Chooser):
    """Distinguishes the sounds of two clips by their mean spectra, without labels and without training.

    Stretches of sound before the longest pause belong to the first clip, later ones to the second. Two count as the
    same sound if the cosine of the roots of their mean power in 64 mel bands is above `alike`. So it says in what two
    clips differ, but for a sound named by its label only whether the clips are the same.
    """

    card = answerer_card("spectrum-comparer", "mean spectra of the stretches of sound of two clips")
    alike = 0.97

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`; an option is drawn for other kinds of question."""
        places = []
        for clip, prompt in zip(self.single_clips(clips), prompts, strict=True):
            one, other = self._heard(clip)
            places.append(self._place(prompted(prompt).options, one, other, prompt))
        return letters(places)

    def _heard(self, clip: Any) -> tuple[list[int], list[int]]:
        """Return the numbers of the sounds of both clips, in order of onset."""
        import librosa

        samples = resample(np.nan_to_num(np.asarray(clip.waveform, np.float32))[None], clip.sample_rate, SAMPLE_RATE)[0]
        stretches = librosa.effects.split(samples, top_db=35, frame_length=1600, hop_length=320)
        pauses = stretches[1:, 0] - stretches[:-1, 1]
        first = int(np.argmax(pauses)) + 1 if len(pauses) else len(stretches)
        known: list[NDArray[np.float64]] = []
        numbers = []
        for start, stop in stretches.tolist():
            root = np.sqrt(np.exp(band_levels(samples[start:stop])).mean(axis=0))
            root /= np.linalg.norm(root)
            same = [place for place, one in enumerate(known) if one @ root > self.alike]
            numbers.append(same[0] if same else len(known))
            known += [] if same else [root]
        return numbers[:first], numbers[first:]

    @staticmethod
    def _place(options: Sequence[str], one: list[int], other: list[int], prompt: str) -> int:
        if set(options) == set(DIFFERENCES):
            sounds, order, times, nothing = DIFFERENCES
            answer = (
                nothing
                if one == other
                else order
                if sorted(one) == sorted(other)
                else times
                if set(one) == set(other)
                else sounds
            )
            return options.index(answer)
        if set(options) == set(WHICH):
            return options.index(WHICH[2] if one == other else WHICH[0])
        return drawn(len(options), prompt)


def _clip_values(clip: Any) -> NDArray[np.float64]:
    waveform = np.asarray(clip.waveform, np.float32)
    if not np.isfinite(waveform).all():
        return np.full(len(STATISTICS), np.nan)
    return clip_statistics(resample(waveform[None], clip.sample_rate, SAMPLE_RATE)[0])


MELS = 64

FRAME, HOP = 2048, 640
"""Samples per frame (64 ms), and from one frame to the next (20 ms)."""

TREES, SEED = 300, 0

_POWER_FLOOR_TIME_BLIND = 1e-10
_JOINED = 4
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def band_statistics(clip: FloatArray) -> NDArray[np.float64]:
    """Return mean and standard deviation over time of each log-mel band of a clip at `SAMPLE_RATE`, [2 x MELS].

    See `band_levels`.
    """
    levels = band_levels(clip)
    return np.concatenate([levels.mean(axis=0), levels.std(axis=0)])


def moment_statistics(clip: FloatArray) -> NDArray[np.float64]:
    """Return `band_statistics` of a clip [samples] at `SAMPLE_RATE`, and the covariation of its bands within frames.

    The covariation is the covariances over time of means of `_JOINED` neighbouring bands, and the deciles of the
    logarithm of each frame's power.
    """
    levels = band_levels(clip)
    joined = levels.reshape(len(levels), -1, _JOINED).mean(axis=2)
    covariances = np.cov(joined, rowvar=False, bias=True)[np.triu_indices(joined.shape[1])]
    powers = np.log(np.exp(levels).sum(axis=1))
    return np.concatenate([band_statistics(clip), covariances, np.quantile(powers, np.linspace(0, 1, 11))])


def band_levels(clip: FloatArray) -> NDArray[np.float64]:
    """Return the log-mel bands of a clip [samples] at `SAMPLE_RATE`, [frames, MELS].

    Natural logarithms of the power of a Hann window, clipped at 100 dB below full scale, in Slaney's bands of equal
    peaks.
    """
    padded = np.pad(clip.astype(np.float64), (0, max(0, FRAME - len(clip))))
    frames = np.lib.stride_tricks.sliding_window_view(padded, FRAME)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(FRAME), axis=1)) ** 2
    return np.log(np.maximum(power @ _mel_filters(), _POWER_FLOOR_TIME_BLIND))


@lru_cache(maxsize=1)
def _mel_filters() -> NDArray[np.float64]:
    """Return the filters [bins, MELS], for power of full scale 1."""
    import librosa

    filters = librosa.filters.mel(sr=SAMPLE_RATE, n_fft=FRAME, n_mels=MELS, norm=None)
    return np.asarray(filters.T / (FRAME / 4) ** 2, np.float64)


class TimeBlind(Chooser):
    """Mean and deviation of log-mel bands, and a random forest per kind of question.

    A forest learns the answer from the statistics, the anchor and the polarity: the right text, or an interval's rank
    in time. It takes the option with most votes of its trees; among equal ones, or for a kind of question absent from
    training, it draws one at random. It learns from the split ``train`` alone; its seed is fixed.
    """

    card = answerer_card("time-blind", "mean and deviation over time of log-mel bands and a random forest")

    _statistics: Callable[[FloatArray], NDArray[np.float64]] = staticmethod(band_statistics)

    def __init__(self) -> None:
        """Start untrained; `learn` trains."""
        self._forests: dict[str, tuple[RandomForestClassifier, dict[str, int]]] = {}

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """See `Model.learn`; clips that cannot be used are skipped."""
        from sklearn.ensemble import RandomForestClassifier

        given: dict[str, list[tuple[Prompted, NDArray[np.float64], str]]] = defaultdict(list)
        for row, clip in zip(rows, clips, strict=True):
            asked, values = asked_in(row["question"], row["options"]), self._heard(clip)
            if asked.wording is not None and np.isfinite(values).all():
                given[asked.kind].append((asked, values, _names(asked)[asked.options.index(row["answer"])]))
        self._forests = {}
        for kind, examples in given.items():
            anchors = {_anchor(asked): 0 for asked, _, _ in examples}
            places = {anchor: place for place, anchor in enumerate(sorted(anchors))}
            table = np.array([_features(asked, values, places) for asked, values, _ in examples])
            forest = RandomForestClassifier(TREES, random_state=SEED, n_jobs=1)
            self._forests[kind] = forest.fit(table, [answer for *_, answer in examples]), places

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""
        single = self.single_clips(clips)
        given = [(prompted(prompt), self._heard(clip)) for clip, prompt in zip(single, prompts, strict=True)]
        votes: dict[int, dict[str, float]] = {}
        # Starting a forest is slow, so each predicts once.
        for kind, (forest, places) in self._forests.items():
            asked = [k for k, (one, values) in enumerate(given) if one.kind == kind and np.isfinite(values).all()]
            if asked:
                table = np.array([_features(*given[k], places) for k in asked])
                for k, shares in zip(asked, forest.predict_proba(table), strict=True):
                    votes[k] = dict(zip(forest.classes_, shares, strict=True))
        chosen = []
        for k, ((one, _), prompt) in enumerate(zip(given, prompts, strict=True)):
            scores = np.round([votes.get(k, {}).get(name, 0.0) for name in _names(one)], 9)
            best = np.flatnonzero(scores == scores.max())
            # Ties are broken by a draw that depends on the prompt.
            chosen.append(int(best[drawn(len(best), prompt)]))
        return letters(chosen)

    def _heard(self, clip: Any) -> NDArray[np.float64]:
        waveform = np.asarray(clip.waveform, np.float32)
        if not np.isfinite(waveform).all():
            return np.full(1, np.nan)
        return self._statistics(resample(waveform[None], clip.sample_rate, SAMPLE_RATE)[0])


class OrderBlind(TimeBlind):
    """`TimeBlind` with joint statistics of all bands of a frame: the sounds of one moment, whatever its time."""

    card = answerer_card("order-blind", "statistics of all log-mel bands of a frame together and a random forest")
    _statistics = staticmethod(moment_statistics)


def _names(asked: Prompted) -> list[str]:
    """Return the class of each option for the forest.

    It is its text, or for an interval, whose text rarely recurs, its rank in time.
    """
    if asked.kind != "detection/first":
        return list(asked.options)
    times = [float(match[0]) if (match := _NUMBER.search(option)) else 0.0 for option in asked.options]
    return [str(sorted(times).index(time)) for time in times]


def _anchor(asked: Prompted) -> str:
    return "" if asked.wording is None else asked.wording.asked.anchor


def _features(asked: Prompted, values: NDArray[np.float64], places: Mapping[str, int]) -> NDArray[np.float64]:
    """Return the statistics, the anchor, and the polarity of Yes."""
    which = np.zeros(len(places) + 1)
    which[places.get(_anchor(asked), len(places))] = 1
    says = asked.wording is not None and YES in asked.options and asked.wording.asked.polarity in _FIRST_STATES
    return np.concatenate([values, which, [says]])


_FIRST_STATES = ("overlap", "present", "before")
"""Polarities, one of each pair."""
