"""Ablations: the same training without a stage, in another order, or with fewer parts, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.base import Model
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.compare import statistics
from audio_compositionality.evaluator.results.result import load_result, result_path
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.support.files import write_together
from audio_compositionality.support.table import Cell, Column, Row, Table, to_csv, to_markdown
from audio_compositionality.tasks.base import Task
from audio_compositionality.tasks.registry import list_tasks

from .run_folder import read_record
from .settings import HARD, MODULAR, TrainingError, TrainingSettings

Train = Callable[[TrainingSettings, Path], object]
"""Trains by settings into a folder; a finished run is left unchanged."""

WHOLE = "all"
"""The name of the full training, with which others are compared."""

MOST_PARTS = (1, 2, 4)
"""Limits on the true parts of a row, used if the training has more."""

RESULTS = "results"
TABLE = "ablations"

Interval = tuple[float, float]


@dataclass(frozen=True)
class TwoWay:
    """Means of several trainings over items and seeds, see `two_way`.

    Attributes:
        means: [m].
        intervals: 95 % interval of each mean; None with too few independent items.
        differences: [m], from the first training.
        difference_intervals: 95 % interval of each difference; None with too few independent items.
    """

    means: NDArray[np.float64]
    intervals: tuple[Interval | None, ...]
    differences: NDArray[np.float64]
    difference_intervals: tuple[Interval | None, ...]


def variants(settings: TrainingSettings) -> dict[str, TrainingSettings]:
    """Return the trainings to compare, by name: the full one first, then the variants that its stages allow.

    Raises:
        TrainingError: there is only one stage, so that none can be left out.
    """
    stages = settings.stages
    if len(stages) < 2:
        raise TrainingError(f"the only stage is {stages[0].kind}; leaving one out needs two or more")
    named: dict[str, TrainingSettings] = {WHOLE: settings}
    for kind in dict.fromkeys(stage.kind for stage in stages):
        rest = tuple(stage for stage in stages if stage.kind != kind)
        if rest:
            named[f"without {kind}"] = settings.changed(stages=rest)
    if {HARD, MODULAR} <= {stage.kind for stage in stages}:
        rest = tuple(stage for stage in stages if stage.kind not in (HARD, MODULAR))
        if rest:
            named[f"without {HARD} and {MODULAR}"] = settings.changed(stages=rest)
    for place in range(len(stages) - 1):
        order = (*stages[:place], stages[place + 1], stages[place], *stages[place + 2 :])
        if [stage.kind for stage in order] != [stage.kind for stage in stages]:
            named[" before ".join(stage.kind for stage in order)] = settings.changed(stages=order)
    if any(stage.kind == MODULAR for stage in stages):
        for most in MOST_PARTS:
            if most < settings.positives:
                named[f"{most} {'part' if most == 1 else 'parts'}"] = settings.changed(positives=most)
    # Drop duplicates: two names may mean the same training, such as the only other stage left.
    unique: dict[str, TrainingSettings] = {}
    for name, one in named.items():
        if one not in unique.values():
            unique[name] = one
    return unique


def two_way(scores: ArrayLike, clusters: ArrayLike, *, seed: int = 0) -> TwoWay:
    """Return means over items and seeds, with bootstrap intervals over both, paired between trainings.

    Clusters of items are resampled with replacement, see `bootstrap_means`, and so are seeds in each draw. All
    trainings share the draws: they were scored on the same items and began with the same seeds. Ends are percentiles
    at `expanded_level`. One seed cannot show the spread over seeds; a few underestimate it.

    Args:
        scores: [n, m, s], of n items, m trainings, s seeds.
        clusters: [n], equal for items that are not independent.
        seed: seed of the draws.
    """
    values = np.asarray(scores, np.float64)
    items, trainings, seeds = values.shape
    means = values.mean(axis=(0, 2))
    number = len(np.unique(np.asarray(clusters)))
    if number < statistics.MIN_SAMPLES:
        nothing: tuple[Interval | None, ...] = (None,) * trainings
        return TwoWay(means, nothing, means - means[0], nothing)
    resampled = statistics.bootstrap_means(values.reshape(items, -1), clusters, seed=seed).resampled
    by_seed = resampled.reshape(-1, trainings, seeds)
    drawn = np.random.default_rng([seed, 1]).integers(0, seeds, (len(by_seed), 1, seeds))
    both = np.take_along_axis(by_seed, np.broadcast_to(drawn, by_seed.shape), axis=2).mean(axis=2)
    level = statistics.expanded_level(number, 1 - statistics.SIGNIFICANT)
    ends = [(1 - level) / 2, (1 + level) / 2]

    def intervals(columns: NDArray[np.float64]) -> tuple[Interval | None, ...]:
        low, high = np.quantile(columns, ends, axis=0)
        return tuple(zip(low.tolist(), high.tolist(), strict=True))

    return TwoWay(means, intervals(both), means - means[0], intervals(both - both[:, :1]))


def run_ablations(
    settings: TrainingSettings,
    out: Path,
    seeds: Sequence[int],
    *,
    train: Train | None = None,
    data: Data | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Table:
    """Train every variant with every seed, score all on the test items, and write one table.

    Finished trainings and scores in the folder are kept, so that a stopped run resumes.

    Args:
        settings: settings of the full training; their seed is not used.
        out: folder with a folder per run, ``results/``, ``ablations.csv`` and ``ablations.md``.
        seeds: different seeds.
        train: function that trains; by default `train_model`.
        data: data for the scores; by default the test items of size `mini` that match the training rows.
        device: torch device.
        progress: show progress bars.

    Returns:
        one row per variant, task and headline measure.

    Raises:
        TrainingError: no seeds, a repeated seed, a single stage, or rows that are no task's training split.
        AudioCompositionalityError: see `train_model`, `evaluate_models`.
    """
    if not seeds or len(set(seeds)) != len(seeds):
        raise TrainingError(f"seeds are {list(seeds)}; give one or more, all different")
    named = variants(settings)
    if train is None:
        from .running import train_model

        train = partial(train_model, device=device, progress=progress)
    folders: dict[str, list[Path]] = {}
    for seed in seeds:
        # Seed by seed, so that a stopped run has complete comparisons.
        for name, one in named.items():
            folder = Path(out) / f"{name.replace(' ', '-')}-seed{seed}"
            train(one.changed(seed=seed), folder)
            folders.setdefault(name, []).append(folder)
    recipe = (read_record(folders[WHOLE][0]) or {}).get("recipe")
    tasks = [task for task in list_tasks() if task.info.training and task.info.training == recipe]
    if not tasks:
        raise TrainingError(
            f"the training data, {recipe or 'rows without a recipe'}, are the training split of no task"
        )
    tested = rendered_preset("mini", recipes=[task.info.recipe for task in tasks]) if data is None else data
    tasks = [task for task in tasks if task.info.recipe in tested.recipes]
    models = {folder: load_model(str(folder), device=device) for of_name in folders.values() for folder in of_name}
    results = Path(out) / RESULTS
    evaluate_models(list(models.values()), tested, tasks, RunOptions(out=results, device=device, progress=progress))
    table = _table(named, folders, models, tasks, tested, results)
    write_together({Path(out) / f"{TABLE}.csv": to_csv(table), Path(out) / f"{TABLE}.md": to_markdown(table)})
    return table


def _table(
    named: Mapping[str, TrainingSettings],
    folders: Mapping[str, Sequence[Path]],
    models: Mapping[Path, Model],
    tasks: Sequence[Task],
    data: Data,
    results: Path,
) -> Table:
    rows = []
    for task in tasks:
        columns = {
            folder: load_result(result_path(results, model.card.id, model.card.revision, task.info.name))[1]
            for folder, model in models.items()
        }
        clusters = open_task(task, data).samples.clusters
        for measure in task.info.recommended:
            scores = np.stack(
                [
                    np.stack([columns[folder].columns[measure.column or ""] for folder in of_name], axis=1)
                    for of_name in folders.values()
                ],
                axis=1,
            )
            both = two_way(scores, clusters)
            by_seed = scores.mean(axis=0)
            spread = [float(one.std(ddof=1)) if len(one) > 1 else None for one in by_seed]
            for place, (name, one) in enumerate(named.items()):
                numbers = (
                    *(float(both.means[place]), *(both.intervals[place] or (None, None))),
                    *(float(both.differences[place]), *(both.difference_intervals[place] or (None, None))),
                    spread[place],
                    *(scores.shape[2], scores.shape[0], one.steps),
                )
                words = (name, task.info.title, measure.heading)
                rows.append(Row(tuple(map(Cell, (*words, *numbers)))))
    return Table("Stages left out, in another order, with fewer parts", _COLUMNS, tuple(rows), _LEGEND, TABLE)


_COLUMNS = (
    Column("training", numeric=False),
    Column("task", numeric=False),
    Column("measure", numeric=False),
    Column("mean", "mean over items and seeds"),
    Column("low", "lower end of its 95 % interval"),
    Column("high", "upper end"),
    Column("difference", f"from the training {WHOLE!r}"),
    Column("difference low", "lower end of its 95 % interval"),
    Column("difference high", "upper end"),
    Column("spread", "standard deviation over seeds"),
    Column("seeds", "trainings", digits=None),
    Column("items", "scored", digits=None),
    Column("steps", "steps of all stages together; a training without a stage is shorter", digits=None),
)

_LEGEND = (
    "Intervals: bootstrap over independent items and, in each draw, over seeds; differences are paired, item by item "
    "and seed by seed.",
    "One seed cannot show the spread over seeds; with fewer than five the intervals are too narrow.",
)
