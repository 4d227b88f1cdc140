"""The audible samples of a report: the highest- and lowest-scoring, with their clips and questions."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice

import matplotlib
import numpy as np
import soundfile
import soxr
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray
from PIL import Image
from scipy import signal

from audio_compositionality.dataset_builder.data import Clip, Configuration, DatasetError
from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.tables import measure_cell, measure_column
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.evaluator.run.cache import CacheError
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.evaluator.submissions.making import stored_answers
from audio_compositionality.support.table import Cell, Column, Row, Table

from .telling import telling_questions


@dataclass(frozen=True)
class HeardOption:
    """An option of a question.

    Attributes:
        letter: its letter.
        text: of the option.
        is_right: whether it is the answer.
        models: labels of the models that chose it.
    """

    letter: str
    text: str
    is_right: bool
    models: tuple[str, ...]


@dataclass(frozen=True)
class HeardQuestion:
    """A question with its options.

    Attributes:
        question: its text.
        options: in the order in which models received them.
        without_choice: labels of the models that chose no option, by the reason in words.
        written: the answers word for word by the model's label, one for each order of the options; for models whose
            answers are in this machine's cache.
    """

    question: str
    options: tuple[HeardOption, ...]
    without_choice: dict[str, tuple[str, ...]]
    written: dict[str, tuple[str, ...]] = field(default_factory=dict)


def heard_question(comparison: Comparison, index: int, written: Written | None = None) -> HeardQuestion | None:
    """Return the question about a sample, by its index; None for a task without questions."""
    samples, profile = comparison.samples, comparison.info.profile
    if samples is None or not samples.asked:
        return None
    asked = samples.asked[index]
    takers: dict[int, list[str]] = {}
    for result in comparison.results:
        column = result.samples.columns.get(profile.choices) if profile is not None else None
        if column is not None:
            takers.setdefault(int(column[index]), []).append(result.label)
    options = tuple(
        HeardOption(LETTERS[place], text, text == asked.answer, tuple(takers.get(place, ())))
        for place, text in enumerate(asked.options)
    )
    no_choice = {} if profile is None else profile.no_choice
    without_choice = {words: tuple(takers[number]) for number, words in no_choice.items() if number in takers}
    id = comparison.ids[index]
    answers = {label: of_model[id] for label, of_model in (written or {}).items() if id in of_model}
    return HeardQuestion(asked.question, options, without_choice, answers)


Written = dict[str, dict[str, tuple[str, ...]]]
"""The answers word for word, by the model's label and the row's id."""


def written_answers(comparison: Comparison) -> Written:
    """Return the written answers of all results whose answers are in this machine's cache."""
    configuration = comparison.configuration
    if configuration is None or comparison.samples is None or not comparison.samples.asked:
        return {}
    rows, task = tuple(configuration.rows), comparison.task
    opened: dict[str, OpenedTask] = {}
    written: Written = {}
    for one in comparison.results:
        settings = one.result.settings
        if (key := repr(settings)) not in opened:
            inputs = tuple(task.inputs(row, settings) for row in rows)
            opened[key] = OpenedTask(task, configuration, rows, inputs, settings)
        try:
            answers = iter(stored_answers(one.result, opened[key]))
        except (ResultError, CacheError):
            continue
        asked = zip(rows, opened[key].inputs, strict=True)
        written[one.label] = {row["id"]: tuple(islice(answers, len(inputs.prompts))) for row, inputs in asked}
    return written


Floats = NDArray[np.float64]

WIDTH, HEIGHT = 320, 120
"""Size of a spectrogram in pixels: columns of time over the full clip, rows of frequency."""

LOWEST, HIGHEST = 50.0, 16_000.0
"""Bottom and top edge in Hz. The lowest tone of the data is at 65 Hz, and its clips are sampled at 32 kHz."""

LOWEST_LEVEL = -80.0
"""Level in dB that is drawn darkest; 0 dB, a full-scale sine, is drawn brightest."""

SPECTROGRAM_COLOURS = "viridis"
"""A colour map of Matplotlib: its lightness rises evenly, also in red-green blindness."""

SPECTROGRAM_WINDOW = 0.1
"""Seconds of the Hann window, which resolves 20 Hz. The shortest tone of the data, repeated at 3 Hz, lasts 0.17 s."""

_LEVELS = 28  # of colour, 3 dB each: more enlarge the file without a visible difference


def spectrogram(waveform: ArrayLike, sample_rate: int) -> Floats:
    """Return the spectrogram of a clip on a logarithmic frequency axis, in dB relative to a full-scale sine.

    A pixel shows the largest level of the Fourier bins inside its row, or, if larger, the interpolated level at the
    row's centre, since the lowest rows are narrower than a bin. Above half the sample rate the level is LOWEST_LEVEL.

    Args:
        waveform: samples in -1…1, [samples], one or more.
        sample_rate: Hz, 2 · LOWEST or more.

    Returns:
        [HEIGHT, WIDTH], in LOWEST_LEVEL…0 dB. Row 0 ends at HIGHEST, the last begins at LOWEST, each is the same part
        of an octave; the columns are equal parts of the clip.
    """
    samples = np.asarray(waveform, np.float64)
    size = round(SPECTROGRAM_WINDOW * sample_rate)
    hop = max(1, max(size, len(samples)) // WIDTH)
    starts = hop * np.rint((np.arange(WIDTH) + 0.5) * len(samples) / WIDTH / hop).astype(np.int64)
    padded = np.pad(samples, (size // 2, size + hop))
    window = signal.get_window("hann", size)
    bins = 1 << (size - 1).bit_length()
    frames = sliding_window_view(padded, size)[starts] * (2 / window.sum() * window)
    spectrum = np.abs(np.fft.rfft(frames, bins))
    spectrum[:, [0, -1]] /= 2  # the bins at zero and at half the rate have no twin of negative frequency
    level = 20 * np.log10(np.clip(spectrum.T, 10 ** (LOWEST_LEVEL / 20), 1))
    frequencies = np.fft.rfftfreq(bins, 1 / sample_rate)
    edges = np.geomspace(LOWEST, HIGHEST, HEIGHT + 1)
    centres = np.sqrt(edges[:-1] * edges[1:])
    rows = np.stack([np.interp(centres, frequencies, column, right=LOWEST_LEVEL) for column in level.T], axis=1)
    first = np.searchsorted(frequencies, edges)
    filled = np.diff(first) > 0
    inside = np.maximum.reduceat(level[: first[-1]], first[:-1][filled], axis=0)
    rows[filled] = np.maximum(rows[filled], inside)
    return rows[::-1]


def spectrogram_png(waveform: ArrayLike, sample_rate: int) -> bytes:
    """Return `spectrogram` as a PNG of WIDTH × HEIGHT pixels, without axes.

    Levels are absolute, so that clips can be compared by eye.
    """
    levels = np.rint((1 - spectrogram(waveform, sample_rate) / LOWEST_LEVEL) * (_LEVELS - 1)).astype(np.uint8)
    image = Image.frombytes("P", (WIDTH, HEIGHT), levels.tobytes())
    colours = matplotlib.colormaps[SPECTROGRAM_COLOURS](np.linspace(0, 1, _LEVELS), bytes=True)
    image.putpalette(colours[:, :3].tobytes())
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


MOST_SAMPLES = 2
"""Most samples shown of the highest, and of the lowest scores."""

MOST_GROUPS = 12
"""Most groups whose highest and lowest samples are shown."""

MOST_CLIPS = 48
"""Most clips of a comparison on the page; their spectrograms alone take up to 1.5 MB."""

LONGEST_PLAYED = 10.0
"""Most seconds of a clip that are played, from its beginning."""

PLAYBACK_GAIN = 10 ** (-4 / 20)
"""The same gain for every clip, since encoding moves peaks: of 120 clips at full scale, the highest peak was +3.6
dB."""

COMPRESSION = 0.7
"""Compression on libsndfile's scale, 0 to 1. At 0.7 a clip takes 55 kB on average, and the decoded level of 120 clips
was within 0.13 dB of the original; at 0.9 it was up to 2 dB off. Constant and average bit rates lower it by 0.45 dB."""

THREADS = 2
"""Threads for encoding: the encoder releases the interpreter's lock."""

_MP3_RATES = (16_000, 22_050, 24_000, 32_000, 44_100, 48_000)


@dataclass(frozen=True)
class HeardClip:
    """A clip as sound and picture.

    Attributes:
        name: its name in its row.
        caption: its description for people; empty if the task has none.
        text: its text in the data, such as a caption; empty if it has none.
        audio: MP3; empty if the clip is unusable.
        spectrogram: PNG; empty if the clip is unusable.
        seconds: length of `audio`.
        is_cut: whether `audio` is shorter than the clip.
        problem: why the clip is unusable; None if it is usable.
    """

    name: str
    caption: str
    text: str
    audio: bytes
    spectrogram: bytes
    seconds: float
    is_cut: bool
    problem: str | None


@dataclass(frozen=True)
class HeardSample:
    """A sample on the page.

    Attributes:
        place: ``highest`` or ``lowest``, or a finding; see `telling_questions`.
        rank: from 1, the highest or lowest score first.
        id: of its row.
        measure: heading of the measure that selected it.
        mean: mean of that measure over the models that selected the sample.
        labels: names of the attributes in its contents, the columns of a table.
        contents: for each part of the sample, its items with their attributes.
        scores: a table of each model's measures of the sample.
        clips: in the order in which models receive them.
        group: the group that the sample belongs to; empty without groups.
        asked: the question about it, and each model's choice; None if there is none.
        why: the models and controls behind a finding, in words.
    """

    place: str
    rank: int
    id: str
    measure: str
    mean: float
    labels: tuple[str, ...]
    contents: Mapping[str, Sequence[Mapping[str, str]]]
    scores: Table
    clips: tuple[HeardClip, ...]
    group: str = ""
    asked: HeardQuestion | None = None
    why: str = ""


@dataclass(frozen=True)
class ChosenSample:
    """A selected sample of a comparison, with its clips from the data. See `HeardSample`."""

    comparison: Comparison
    view: View
    index: int
    place: str
    rank: int
    mean: float
    clips: tuple[Clip, ...]
    group: str = ""
    why: str = ""


def outermost(mean: NDArray[np.float64], most: int = MOST_SAMPLES) -> list[tuple[str, int, int]]:
    """Return place, rank and index of the `most` highest- and lowest-scoring samples, from their scores [n].

    No sample is both. Equal scores keep the order of the data.
    """
    order = np.argsort(-mean, kind="stable").tolist()
    highest = order[: min(most, -(-len(order) // 2))]
    lowest = order[::-1][: min(most, len(order) - len(highest))]
    places = (("highest", highest), ("lowest", lowest))
    return [(place, rank, index) for place, ranked in places for rank, index in enumerate(ranked, 1)]


def choose_samples(comparison: Comparison, view: View, results: Sequence[int]) -> list[ChosenSample]:
    """Return the highest- and lowest-scoring samples of a comparison with their clips, then the revealing questions.

    Samples beyond `MOST_CLIPS` clips in total are left out, except the first one. See `telling_questions`.

    Args:
        comparison: with its data.
        view: the measure that selects.
        results: indices of the results whose mean selects.

    Raises:
        DatasetError: the clips are missing from the data, or the data are damaged.
    """
    configuration = comparison.configuration
    if configuration is None:
        raise DatasetError(comparison.missing or "the data are not opened")
    places = {id: place for place, id in enumerate(configuration.clip_ids)}
    mean = view.values[:, list(results)].mean(axis=1)
    described, profile = comparison.samples, comparison.info.profile
    labels = None if described is None or profile is None else described.groups.get(profile.heard_from)
    outer = outermost(mean)
    if labels is not None:
        # For each of the first groups, the highest and the lowest sample; the rank is the number of the group.
        outer = []
        for number, group in enumerate(list(dict.fromkeys(labels))[:MOST_GROUPS], 1):
            members = np.flatnonzero(np.asarray(labels) == group)
            outer += [(place, number, int(members[k])) for place, _, k in outermost(mean[members], 1)]
    samples: list[ChosenSample] = []
    telling = telling_questions(comparison, view, results)
    for place, rank, index, why in (*((*entry, "") for entry in outer), *telling):
        clips = _clips(comparison, index, configuration, places)
        if not samples or sum(len(one.clips) for one in samples) + len(clips) <= MOST_CLIPS:
            group = labels[index] if labels else ""
            samples.append(ChosenSample(comparison, view, index, place, rank, float(mean[index]), clips, group, why))
    return samples


def _clips(
    comparison: Comparison, index: int, configuration: Configuration, places: Mapping[str, int]
) -> tuple[Clip, ...]:
    """Return the clips of a sample for the page, each once: the audible clips of its inputs, and derived ones."""
    assert comparison.samples is not None
    row = comparison.samples.rows[index]
    names = dict.fromkeys(comparison.task.inputs(row, comparison.results[0].result.settings).clips)
    ids = [f"{row['id']}/{name}" for name in names if name in (comparison.info.heard or names)]
    missing = [id for id in ids if id not in places]
    if missing:
        raise DatasetError(f"{configuration.source} has no clip {missing[0]!r}")
    numbers = [places[id] for id in ids]
    wanted = range(min(numbers), max(numbers) + 1) if numbers else range(0)
    clips = {}
    for clip in configuration.clips(wanted, keep_invalid=True):
        # Keep what can be played plus one sample, which marks a cut clip: many long clips would not fit into memory.
        most = round(LONGEST_PLAYED * clip.sample_rate) + 1
        is_long = len(clip.waveform) > most
        clips[clip.id] = replace(clip, waveform=clip.waveform[:most].copy()) if is_long else clip
    chosen = [clips[id] for id in ids]
    # Sums of clips of the row, see `TaskInfo.derived`.
    for name, terms in comparison.info.derived.items():
        parts = [clips[f"{row['id']}/{term.removeprefix('-')}"] for term in terms]
        problem = next((part.problem for part in parts if part.problem is not None), None)
        derived = replace(parts[0], id=f"{row['id']}/{name}", problem=problem)
        if problem is None:
            signs = [-1.0 if term.startswith("-") else 1.0 for term in terms]
            waveform = np.sum([sign * part.waveform for sign, part in zip(signs, parts, strict=True)], axis=0)
            derived = replace(derived, waveform=np.clip(waveform, -1, 1).astype(np.float32))
        chosen.append(derived)
    return tuple(chosen)


def hear_samples(samples: Sequence[ChosenSample], most_bytes: float) -> Iterator[HeardSample]:
    """Yield samples with their clips encoded; if these exceed `most_bytes` together, all are cut to the same length."""
    clips, seconds = [clip for sample in samples for clip in sample.clips], LONGEST_PLAYED
    while True:
        with ThreadPoolExecutor(THREADS) as threads:
            encoded = list(threads.map(partial(_encode, seconds=seconds), clips))
        total = sum(len(audio) for audio, _ in encoded)
        if total <= most_bytes:
            break
        seconds *= 0.95 * most_bytes / total
    played, written = iter(encoded), dict[int, Written]()
    for sample in samples:
        comparison, index = sample.comparison, sample.index
        row, facts = comparison.ids[index], comparison.samples
        if id(comparison) not in written:
            written[id(comparison)] = written_answers(comparison)
        contents = facts.contents[index] if facts is not None and facts.contents else {}
        texts = facts.texts[index] if facts is not None and facts.texts else {}
        heard = []
        for clip, (audio, length) in zip(sample.clips, played, strict=False):
            name, picture, is_cut = clip.id.removeprefix(f"{row}/"), b"", False
            caption = comparison.info.captions.get(name, comparison.info.captions.get(name.partition("/")[0], ""))
            if clip.problem is None:
                shown = clip.waveform[: round(LONGEST_PLAYED * clip.sample_rate)]
                picture = spectrogram_png(shown, clip.sample_rate)
                is_cut = round(length * clip.sample_rate) < len(clip.waveform)
            heard.append(HeardClip(name, caption, texts.get(name, ""), audio, picture, length, is_cut, clip.problem))
        views, selecting = list(comparison.recommended), comparison.views.get(comparison.info.heard_by)
        if selecting is not None and any(view.measure.outside for view in views):
            # A sample's value of a weighted measure is not a score of the sample: show the selecting measure instead.
            views = [view for view in views if not view.measure.outside and view.measure != selecting.measure]
            views.insert(0, selecting)
        columns = (Column("model", numeric=False), *(measure_column(view.measure) for view in views))
        rows = [
            Row((Cell(label), *(measure_cell(float(view.values[index, place])) for view in views)))
            for place, label in enumerate(comparison.labels)
        ]
        yield HeardSample(
            place=sample.place,
            rank=sample.rank,
            id=row,
            measure=sample.view.measure.heading,
            mean=sample.mean,
            labels=tuple(dict.fromkeys(label for things in contents.values() for thing in things for label in thing)),
            contents=contents,
            scores=Table(f"Scores of {row}", columns, tuple(rows)),
            clips=tuple(heard),
            group=sample.group,
            asked=heard_question(comparison, index, written[id(comparison)]),
            why=sample.why,
        )


def _encode(clip: Clip, seconds: float) -> tuple[bytes, float]:
    if clip.problem is not None:
        return b"", 0.0
    samples = clip.waveform[: round(seconds * clip.sample_rate)]
    return encode_mp3(samples, clip.sample_rate), len(samples) / clip.sample_rate


def encode_mp3(waveform: NDArray[np.float32], sample_rate: int) -> bytes:
    """Return a clip [samples] in -1…1 as MP3, which every browser plays, with the gain PLAYBACK_GAIN."""
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
