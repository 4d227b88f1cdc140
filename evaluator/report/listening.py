"""The samples of a report that can be listened to: the highest- and lowest-scoring, their clips and attributes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from audio_compositionality.dataset_builder import AUDIO_COLUMNS, Benchmark, DatasetError
from audio_compositionality.dataset_builder.synthesis.scenes import ATTRIBUTES

from audio_compositionality.evaluator.compare.comparison import Comparison
from .spectrogram import spectrogram_png

MOST_SAMPLES = 3
"""Samples shown at either end."""

LONGEST_PLAYED = 10.0
"""Seconds; the clips of the paper are not longer (section 4.1). Of a longer clip the beginning is played."""

PLAYBACK_GAIN = 10 ** (-4 / 20)
"""Of every clip alike. Encoding moves peaks: of 120 clips at full scale the highest came back at +3.6 dB."""

COMPRESSION = 0.7
"""libsndfile's scale, 0 to 1. At 0.7 a clip takes 55 kB on average, and 120 clips came back within 0.13 dB of their
level; at 0.9 they were up to 2 dB off. Constant and average bit rates lower the level by 0.45 dB."""

_MP3_RATES = (16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


@dataclass(frozen=True)
class Clip:
    """What is heard and seen of a clip.

    Attributes:
        name: its column in the data, ``A`` to ``D`` or ``audio``.
        audio: MP3; empty where the clip cannot be used.
        spectrogram: PNG; empty likewise.
        seconds: what of the clip `audio` holds.
        is_cut: whether that is less than the clip.
        problem: why the clip cannot be used, where it cannot.
    """

    name: str
    audio: bytes
    spectrogram: bytes
    seconds: float
    is_cut: bool
    problem: str | None


@dataclass(frozen=True)
class HeardSample:
    """A quadruple or a scene.

    Attributes:
        place: ``highest`` or ``lowest``.
        rank: 1 for the outermost.
        id: of its row.
        mean: score that it was chosen by.
        attributes: of each set of sources (``A``, ``C``, ``T``, or ``scene``), for each source its labels in the order
            of `ATTRIBUTES`.
        scores: of each entry, its label, score and centred score.
        clips: in the order of the data's columns.
    """

    place: str
    rank: int
    id: str
    mean: float
    attributes: Mapping[str, tuple[tuple[str, ...], ...]]
    scores: tuple[tuple[str, float, float | None], ...]
    clips: tuple[Clip, ...]


@dataclass(frozen=True)
class Waveform:
    """The beginning of a clip.

    Attributes:
        name: its column in the data.
        samples: [n], at most LONGEST_PLAYED.
        length: samples of the whole clip.
        sample_rate: Hz.
        problem: why the clip cannot be used, where it cannot.
    """

    name: str
    samples: NDArray[np.float32]
    length: int
    sample_rate: int
    problem: str | None


@dataclass(frozen=True)
class FoundSample:
    """A chosen sample of a comparison, with its clips as they are in the data. See `HeardSample`."""

    comparison: Comparison
    index: int
    place: str
    rank: int
    mean: float
    waveforms: tuple[Waveform, ...]


def chosen_samples(mean: NDArray[np.float64]) -> list[tuple[str, int, int]]:
    """Place, rank and index of the highest- and the lowest-scoring samples, by their scores [n].

    No sample is both; equal scores go by their order in the data.
    """
    order = np.argsort(-mean, kind="stable").tolist()
    highest = order[: min(MOST_SAMPLES, -(-len(order) // 2))]
    lowest = order[::-1][: min(MOST_SAMPLES, len(order) - len(highest))]
    places = (("highest", highest), ("lowest", lowest))
    return [(place, rank, index) for place, chosen in places for rank, index in enumerate(chosen, 1)]


def find_samples(comparison: Comparison, entries: Sequence[int], benchmark: Benchmark) -> list[FoundSample]:
    """The highest- and the lowest-scoring samples of a comparison with their clips.

    Args:
        comparison: of which.
        entries: places of the entries whose mean score decides.
        benchmark: its data.

    Raises:
        DatasetError: the data do not hold what the comparison has scores of, or are damaged.
    """
    task = comparison.task
    numbers = {row["id"]: number for number, row in enumerate(benchmark.rows(task))}
    mean = comparison.scores[:, list(entries)].mean(axis=1)
    found = []
    for place, rank, index in chosen_samples(mean):
        if comparison.ids[index] not in numbers:
            raise DatasetError(f"{benchmark.source} has no row {comparison.ids[index]!r} in {task}")
        waveforms = _waveforms(task, numbers[comparison.ids[index]], benchmark)
        found.append(FoundSample(comparison, index, place, rank, float(mean[index]), waveforms))
    return found


def hear_samples(found: Sequence[FoundSample], most_bytes: float) -> Iterator[HeardSample]:
    """Encode the clips of samples: together they take at most so many bytes, for which all are cut alike."""
    encoded = iter(_encode_all([waveform for sample in found for waveform in sample.waveforms], most_bytes))
    for sample in found:
        scores = [(entry.label, float(entry.score[sample.index]), entry.centred) for entry in sample.comparison.entries]
        yield HeardSample(
            place=sample.place,
            rank=sample.rank,
            id=sample.comparison.ids[sample.index],
            mean=sample.mean,
            attributes=_attributes(sample.comparison, sample.index),
            scores=tuple((a, b, None if c is None else float(c[sample.index])) for a, b, c in scores),
            clips=tuple(_clip(waveform, *next(encoded)) for waveform in sample.waveforms),
        )


def _waveforms(task: str, number: int, benchmark: Benchmark) -> tuple[Waveform, ...]:
    columns = AUDIO_COLUMNS[task]
    (batch,) = benchmark.batches(task, len(columns), range(number, number + 1), keep_invalid=True)
    most = round(LONGEST_PLAYED * batch.sample_rate)
    return tuple(
        Waveform(name, waveform[:most].copy(), len(waveform), batch.sample_rate, batch.errors.get(place))
        for place, (name, waveform) in enumerate(zip(columns, batch.waveforms, strict=True))
    )


def _encode_all(waveforms: Sequence[Waveform], most_bytes: float) -> list[tuple[bytes, float]]:
    """Each clip as MP3, and how many seconds that holds."""
    seconds = LONGEST_PLAYED
    while True:
        found = [_encode(waveform, seconds) for waveform in waveforms]
        total = sum(len(audio) for audio, _ in found)
        if total <= most_bytes:
            return found
        seconds *= 0.95 * most_bytes / total


def _encode(waveform: Waveform, seconds: float) -> tuple[bytes, float]:
    if waveform.problem is not None:
        return b"", 0.0
    samples = waveform.samples[: round(seconds * waveform.sample_rate)]
    return encode_mp3(samples, waveform.sample_rate), len(samples) / waveform.sample_rate


def encode_mp3(waveform: NDArray[np.float32], sample_rate: int) -> bytes:
    """A clip [samples] in -1…1 as MP3, which every browser plays, PLAYBACK_GAIN times as loud."""
    if sample_rate not in _MP3_RATES:
        waveform, sample_rate = soxr.resample(waveform, sample_rate, 32_000), 32_000
    file = io.BytesIO()
    soundfile.write(
        file,
        waveform * PLAYBACK_GAIN,
        sample_rate,
        format="MP3",
        subtype="MPEG_LAYER_III",
        bitrate_mode="VARIABLE",
        compression_level=COMPRESSION,
    )
    return file.getvalue()


def _clip(waveform: Waveform, audio: bytes, seconds: float) -> Clip:
    if waveform.problem is not None:
        return Clip(waveform.name, b"", b"", 0.0, False, waveform.problem)
    picture = spectrogram_png(waveform.samples, waveform.sample_rate)
    is_cut = round(seconds * waveform.sample_rate) < waveform.length
    return Clip(waveform.name, audio, picture, seconds, is_cut, None)


def _attributes(comparison: Comparison, index: int) -> dict[str, tuple[tuple[str, ...], ...]]:
    if comparison.samples is None:
        return {}
    metadata = comparison.samples.rows[index]["metadata"]
    sets = {name: metadata[name] for name in "ACT"} if comparison.task == "a_coat" else {"scene": metadata}
    return {
        name: tuple(tuple(str(source[f"{attribute}_label"]) for attribute in ATTRIBUTES) for source in sources)
        for name, sources in sets.items()
    }
