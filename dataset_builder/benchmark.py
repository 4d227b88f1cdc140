"""Open a benchmark: rendered on the fly from a preset, or read from a built folder or the Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .config import PRESETS, BenchmarkConfig, preset_config
from .draw import draw_quadruples, draw_scenes, quadruple_row, scene_row
from .messages import DatasetError, nearest
from .scenes import Quadruple, Scene
from .sound import Samples, ToneBank, Waveform, render_tone_bank, to_waveforms

AUDIO_COLUMNS: Mapping[str, tuple[str, ...]] = {"a_coat": ("A", "B", "C", "D"), "a_tre": ("audio",)}
"""The tasks, and the columns of a row that hold its clips."""


@dataclass(frozen=True)
class ClipBatch:
    """Consecutive clips of a task.

    Attributes:
        ids: ``<row id>/<audio column>`` of each clip.
        waveforms: float32 [clips, samples] in [-1, 1].
        sample_rate: Hz.
    """

    ids: tuple[str, ...]
    waveforms: Waveform
    sample_rate: int


class Benchmark(Protocol):
    """What is evaluated: rows with metadata and their clips, in a fixed order.

    Attributes:
        source: the preset, folder or Hub id that it was opened from.
        fingerprint: names the samples; equal fingerprints mean equal samples.
        tasks: those of ``a_coat`` and ``a_tre`` that it holds.
        amplitude_gains: linear gain of each amplitude label, where the labels' meaning is known.
    """

    source: str
    tasks: tuple[str, ...]

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    @property
    def amplitude_gains(self) -> Mapping[str, float] | None: ...  # noqa: D102

    def rows(self, task: str) -> list[dict[str, Any]]:
        """All rows of a task without their audio: id, split, metadata, and what else the data has."""
        ...

    def num_clips(self, task: str) -> int:
        """Clips of a task: four a quadruple, one a scene."""
        ...

    def batches(self, task: str, batch_size: int) -> Iterator[ClipBatch]:
        """All clips of a task, row by row, A, B, C, D within a quadruple; the last batch may be smaller."""
        ...


class RenderedBenchmark:
    """A benchmark rendered as it is read; nothing is written. Its samples are those of the built folder."""

    def __init__(self, source: str, config: BenchmarkConfig) -> None:
        self.source = source
        self.config = config
        self.fingerprint = config.fingerprint
        self.tasks = tuple(AUDIO_COLUMNS)
        self.amplitude_gains: Mapping[str, float] = dict(zip(config.labels["amplitude"], config.gains, strict=True))

    @cached_property
    def quadruples(self) -> list[Quadruple]:
        """The quadruples of a_coat."""
        return draw_quadruples(self.config)

    @cached_property
    def scenes(self) -> list[Scene]:
        """The scenes of a_tre, train, validation, test in this order."""
        return draw_scenes(self.config)

    @cached_property
    def tone_bank(self) -> ToneBank:
        """The tones that every clip is mixed from."""
        return render_tone_bank(self.config)

    def num_rows(self, task: str) -> int:
        """Quadruples of a_coat, scenes of a_tre."""
        return {"a_coat": self.config.quadruples, "a_tre": self.config.scenes}[check_task(task, self)]

    def num_clips(self, task: str) -> int:
        """Clips of a task: four a quadruple, one a scene."""
        return self.num_rows(task) * len(AUDIO_COLUMNS[task])

    def row(self, task: str, index: int) -> dict[str, Any]:
        """One row of a task without its audio."""
        if task == "a_coat":
            return {"split": "test", **quadruple_row(self.quadruples[index], self.config)}
        return {"split": self.scenes[index].split, **scene_row(self.scenes[index], self.config)}

    def rows(self, task: str) -> list[dict[str, Any]]:
        """All rows of a task without their audio."""
        return [self.row(task, index) for index in range(self.num_rows(task))]

    def clips(self, task: str, index: int) -> Samples:
        """The clips of one row, int16 [audio columns, samples]."""
        if task == "a_coat":
            return self.tone_bank.quadruple_clips(self.quadruples[index])
        return self.tone_bank.scene_clip(self.scenes[index])[None]

    def batches(self, task: str, batch_size: int) -> Iterator[ClipBatch]:
        """All clips of a task, rendered as they are asked for."""
        rows: Sequence[Quadruple | Scene] = self.quadruples if check_task(task, self) == "a_coat" else self.scenes

        def clips() -> Iterator[tuple[str, Waveform]]:
            for index, row in enumerate(rows):
                for column, samples in zip(AUDIO_COLUMNS[task], self.clips(task, index), strict=True):
                    yield f"{row.id}/{column}", to_waveforms(samples)

        yield from in_batches(clips(), batch_size, self.config.sample_rate)


def in_batches(clips: Iterator[tuple[str, Waveform]], batch_size: int, sample_rate: int) -> Iterator[ClipBatch]:
    """Group (id, float32 [samples]) pairs of equal length into batches."""
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be 1 or more")
    ids: list[str] = []
    waveforms: list[Waveform] = []
    for clip_id, waveform in clips:
        ids.append(clip_id)
        waveforms.append(waveform)
        if len(ids) == batch_size:
            yield ClipBatch(tuple(ids), np.stack(waveforms), sample_rate)
            ids, waveforms = [], []
    if ids:
        yield ClipBatch(tuple(ids), np.stack(waveforms), sample_rate)


def check_task(task: str, benchmark: Benchmark) -> str:
    """The task, if the benchmark holds it; else ValueError with the tasks that it holds."""
    if task not in benchmark.tasks:
        raise ValueError(f"unknown task {task!r} of {benchmark.source}; {nearest(task, benchmark.tasks)}")
    return task


def open_benchmark(source: str | Path | BenchmarkConfig, *, revision: str | None = None) -> Benchmark:
    """Open a benchmark for evaluation.

    Args:
        source: a preset (``mini``, ``full``) or a configuration, rendered on the fly with nothing on disk; a folder
            written by `build_dataset`; or the Hub id of such a data set or of the authors' published data
            (``chuyangchenn/a-coat-2k``, ``chuyangchenn/a-tre-10k``). A folder named like a preset is opened as
            ``./mini``.
        revision: branch, tag or commit of a Hub id.

    Raises:
        DatasetError: no such preset, folder or data set, or what is there is not this benchmark's data.
    """
    if isinstance(source, BenchmarkConfig):
        return RenderedBenchmark("custom configuration", source)
    name = str(source)
    if isinstance(source, str) and source in PRESETS:
        return RenderedBenchmark(source, preset_config(source))
    from .stored import StoredBenchmark

    if Path(name).is_dir() or re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", name):
        return StoredBenchmark(name, revision=revision)
    raise DatasetError(
        f"no data {name!r}: not a preset, not a folder, not a Hub id (ORG/NAME); {nearest(name, PRESETS)}"
    )
