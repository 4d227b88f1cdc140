"""Open a benchmark: rendered on the fly from a preset, or read from a built folder or the Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from .synthesis.config import PRESETS, BenchmarkConfig, preset_config
from .synthesis.draw import draw_quadruples, draw_scenes, quadruple_row, scene_row
from .messages import DatasetError, nearest
from .synthesis.scenes import Quadruple, Scene
from .synthesis.sound import Samples, ToneBank, Waveform, render_tone_bank, to_waveforms

AUDIO_COLUMNS: Mapping[str, tuple[str, ...]] = {"a_coat": ("A", "B", "C", "D"), "a_tre": ("audio",)}
"""The tasks, and the columns of a row that hold its clips."""


Clip = tuple[str, Waveform, str | None]
"""Id and samples, float32 [samples], of a clip, and why it cannot be used, where it cannot."""


@dataclass(frozen=True)
class ClipBatch:
    """Consecutive clips of a task.

    Attributes:
        ids: ``<row id>/<audio column>`` of each clip.
        waveforms: float32 [clips, samples] in [-1, 1].
        sample_rate: Hz.
        errors: by place in the batch, why a clip cannot be used; its samples are NaN. See `Benchmark.batches`.
    """

    ids: tuple[str, ...]
    waveforms: Waveform
    sample_rate: int
    errors: Mapping[int, str] = field(default_factory=dict)


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

    def batches(
        self, task: str, batch_size: int, rows: range | None = None, *, keep_invalid: bool = False
    ) -> Iterator[ClipBatch]:
        """The clips of a task, row by row, A, B, C, D within a quadruple; the last batch may be smaller.

        Args:
            task: one of `tasks`.
            batch_size: clips at a time.
            rows: only these rows, consecutive numbers counted from 0; by default all.
            keep_invalid: give a clip that cannot be used as NaN, with the reason in `ClipBatch.errors`, instead of
                raising an error.
        """
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

    def batches(
        self, task: str, batch_size: int, rows: range | None = None, *, keep_invalid: bool = False
    ) -> Iterator[ClipBatch]:
        """The clips of a task, rendered as they are asked for; none is invalid. See `Benchmark.batches`."""
        items: Sequence[Quadruple | Scene] = self.quadruples if check_task(task, self) == "a_coat" else self.scenes
        chosen = check_rows(rows, len(items))

        def clips() -> Iterator[Clip]:
            for index in chosen:
                for column, samples in zip(AUDIO_COLUMNS[task], self.clips(task, index), strict=True):
                    yield f"{items[index].id}/{column}", to_waveforms(samples), None

        yield from in_batches(clips(), batch_size, self.config.sample_rate)


def in_batches(clips: Iterator[Clip], batch_size: int, sample_rate: int) -> Iterator[ClipBatch]:
    """Group clips of equal length into batches."""
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; it must be 1 or more")
    while batch := list(islice(clips, batch_size)):
        ids, waveforms, errors = zip(*batch, strict=True)
        found = {place: error for place, error in enumerate(errors) if error is not None}
        yield ClipBatch(ids, np.stack(waveforms), sample_rate, found)


def check_rows(rows: range | None, count: int) -> range:
    """The rows that are asked for, of `count`; all for None.

    Raises:
        ValueError: if they are not consecutive, or there are no such rows.
    """
    if rows is None:
        return range(count)
    if rows.step != 1 or not 0 <= rows.start <= rows.stop <= count:
        raise ValueError(f"rows are {rows}; they must be consecutive and lie within range(0, {count})")
    return rows


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
