"""Results made up from random scores, for tests of what is done with results; and a task that nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.loading.names import split_twin
from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.evaluator.results.result import Result, SampleTable, save_result
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.spec import Spec
from audio_compositionality.tasks import registry
from audio_compositionality.tasks.base import Drawing, Inputs, Measure, Number, Samples, Scores, Task, TaskInfo

WriteResults = Callable[..., Path]

BASELINES = ("random", "downsample", "log-mel-statistics", "modulation-statistics", "level-statistics", "rms")


@cache
def _preset(name: str) -> Data:
    return open_data(name)


def made_up_scores(model: int, n: int) -> np.ndarray:
    """Scores [n] within (-1, 1) of the model with this number, alike between models; the later, the higher."""
    shared = np.random.default_rng(0).normal(size=n)
    noise = np.random.default_rng(model + 1).normal(size=n)
    return np.tanh(0.3 * shared + 0.3 * noise + 0.15 * model - 0.2)


def made_up_columns(task: Task, number: int, scores: np.ndarray) -> dict[str, np.ndarray]:
    """Columns of samples: of the first measure the scores, of others something lower, of drawings points."""
    sampled = [measure.column for measure in task.info.sampled]
    columns = {name: scores if not k else np.tanh(scores - 0.1 * k) for k, name in enumerate(sampled)}
    rng = np.random.default_rng(number)
    drawn = [name for drawing in task.drawings for name in drawing.columns if name not in columns]
    return columns | {name: rng.normal(size=len(scores)) for name in drawn}


def made_up_measures(task: Task, number: int, columns: Mapping[str, np.ndarray]) -> dict[str, Number]:
    """A value of every measure, within its range; the later the model, the higher."""
    n = len(next(iter(columns.values())))
    values: dict[str, Number] = {}
    for k, measure in enumerate(task.info.measures):
        low, high = max(measure.range[0], 0.0), min(measure.range[1], 1.0)
        if measure.column is not None:
            values[measure.name] = float(columns[measure.column].mean())
        elif measure.name == "n" or measure.name.endswith("chance"):
            values[measure.name] = n if measure.name == "n" else 1 / n
        elif measure.range == (0.0, 1.0) and measure.digits == 0:
            values[measure.name] = False
        elif measure.digits == 0:
            values[measure.name] = 0
        else:
            values[measure.name] = low + (high - low) * (0.1 + 0.02 * k + 0.01 * number) % 1
    return values


def made_up_result(
    data: Data, task: Task, model_id: str, number: int, changes: Mapping[str, Any]
) -> tuple[Result, SampleTable]:
    configuration = data.configuration(task.info.recipe)
    ids = task.samples(tuple(configuration.rows)).ids
    keep = changes.get("keep", slice(None))
    scores = changes.get("scores", made_up_scores(number, len(ids)))
    everything = made_up_columns(task, number, scores) | changes.get("columns", {})
    columns = {name: column[keep] for name, column in everything.items()}
    columns = {name: column for name, column in columns.items() if name not in changes.get("without", ())}
    table = SampleTable(tuple(np.asarray(ids)[keep].tolist()), columns)
    sampled = [measure for measure in task.info.sampled if measure.column in columns]
    values = np.stack([columns[measure.column] for measure in sampled if measure.column], axis=1)
    intervals = mean_intervals(values, np.arange(len(values)))
    twin, _ = split_twin(model_id)
    paradigm = twin.paradigm if twin is not None else "none" if model_id in BASELINES else "made up"
    model = {
        "id": model_id,
        "revision": "1",
        "sample_rate": 16_000,
        "output_dim": 8 * (number + 1),
        "weights_sha256": None,
        "parameters": None if model_id in BASELINES else 1_000_000 * (number + 1),
        "paradigm": paradigm,
        "licence": None,
        "trained_on": None,
        "front_end_version": 1,
        "options": {"layer": None, "pooling": None, "precision": "float32", "compile": False},
    }
    fields: dict[str, Any] = {
        "schema_version": 2,
        "task": task.info.name,
        "task_version": task.info.version,
        "measures": made_up_measures(task, number, {name: column[keep] for name, column in everything.items()}),
        "intervals": dict(zip((measure.name for measure in sampled), intervals, strict=True)),
        "n": len(table.ids),
        "training": {},
        "settings": {"seeds": [0, 1, 2]} if any(measure.fitted for measure in task.info.measures) else {},
        "model": model | changes.get("model", {}),
        "precision_deviation": None,
        "skipped": [],
        "cut_answers": None,
        "cut_clips": 0,
        "recipe": task.info.recipe,
        "fingerprint": configuration.fingerprint,
        "rows_digest": configuration.rows_digest,
        "dataset": data.source,
        "versions": {"python": "3.11"},
        "device": "cpu",
        "seconds": {"embed": 1.0},
        "date": "2026-01-01T00:00:00+00:00",
        "samples_sha256": sha256_of(table.dumps().encode()),
    }
    fields["measures"] |= changes.get("measures", {})
    names = Result.model_fields.keys() - {"measures", "model"}
    fields |= {name: value for name, value in changes.items() if name in names}
    return Result.model_validate(fields), table


@pytest.fixture(scope="session")
def write_results() -> WriteResults:
    """`write_results(folder, model_ids, data="mini", tasks=("a_coat", "a_tre"), **changes)` -> folder.

    A result of made-up scores for each model and task. `changes` replaces fields of `Result`, some of its
    ``measures``, some of the ``model``'s fields, the ``scores``, or some ``columns``; ``keep`` is a slice of the
    samples, ``without`` names columns to leave out.
    """

    def write(
        folder: Path,
        model_ids: Sequence[str],
        data: Data | str = "mini",
        tasks: Sequence[str] = ("a_coat", "a_tre"),
        **changes: Any,
    ) -> Path:
        opened = _preset(data) if isinstance(data, str) else data
        for name in tasks:
            for number, model_id in enumerate(model_ids):
                save_result(folder, *made_up_result(opened, registry.load_task(name), model_id, number, changes))
        return folder

    return write


class ToyTask:
    """A task of its own, over the scenes of another: three measures by sample, a flag, a drawing, groups."""

    info = TaskInfo(
        name="toy",
        version=1,
        title="Toy score",
        question="Is it a toy?",
        benchmark="toys",
        recipe="a_tre",
        needs=frozenset(),
        samples="toys",
        measures=(
            Measure("toy", "toy", "how much of a toy it is", column="score", range=(0.0, 1.0)),
            Measure("shine", "shine", "how it shines", digits=2, column="shine"),
            Measure("squeak", "squeak", "how it squeaks", column="squeak", null="silence"),
            Measure("silence", "silence", "squeak of no toy", shown=False),
            Measure("wheels", "wheels", "number of wheels", digits=0, range=(0.0, 1e15)),
            Measure("broken", "broken", "it is broken", digits=0, range=(0.0, 1.0), shown=False),
        ),
        ranks_by="squeak",
        warning="A toy is no instrument.",
        citation="@misc{toy, title = {Toys}}",
    )

    spec = Spec

    def inputs(self, row: Mapping[str, Any], settings: Mapping[str, Any]) -> Inputs:
        return Inputs(clips=("audio",))

    def settings(self, rows: Sequence[Any], requested: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def score(self, *_: Any) -> Scores:
        raise AssertionError("this task is never scored")

    def samples(self, rows: Sequence[Any]) -> Samples:
        tested = tuple(row for row in rows if row["split"] == "test")
        return Samples(
            rows=tested,
            clusters=np.arange(len(tested)),
            diversity={"colours": np.linspace(0, 1, len(tested))},
            diversity_name="colours",
            groups={"shelf": tuple("ab"[k % 2] for k in range(len(tested)))},
        )

    @staticmethod
    def panel(axes: Any, columns: Mapping[str, np.ndarray], measures: Mapping[str, Number]) -> None:
        axes.plot(columns["left"], columns["right"], ".", label="toys")

    drawings = (
        Drawing("shelf", "Toys on their shelf.", "A shelf, a panel a model.", ("left", "right"), panel.__func__),
    )


@pytest.fixture(scope="module")
def registered_toy() -> Iterator[Task]:
    """A task that was registered, which nothing in the project knows, nor other modules' tests."""
    task = ToyTask()
    registry.register_task(task)
    yield task
    del registry._TASKS._added[task.info.name]
