"""Evaluation of models: each model's outputs on the data are scored by each task and written as a result."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.encoders.base import SERVER, Model, ModelCard
from audio_compositionality.encoders.inference import device_name
from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.evaluator.results.result import (
    Deviation,
    Result,
    ResultError,
    SampleTable,
    ScoredModel,
    Skipped,
    data_digest,
    load_result,
    result_path,
    save_result,
)
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import read_file, sha256_of
from audio_compositionality.support.text import listed, nearest, shortened
from audio_compositionality.tasks.base import Outputs, Samples, Scores, Task, TaskError
from audio_compositionality.tasks.registry import default_tasks, load_tasks, settings_of_tasks

from .answers import asking_problem
from .cache import answer_cache, cached_outputs_folder
from .embeddings import models_by_pass, precision_deviation
from .opened import OpenedTask, open_task
from .options import RunOptions
from .outputs import Filled, ModelOutputs, can_do, check_model_kind, compute_outputs, warn_of_left_out
from .processes import Processes, join_processes
from .shipped import shipped_result

_VERSIONS = ("audio-compositionality", "numpy", "torch", "transformers", "librosa", "soxr")

Report = Callable[[Result], None]


def evaluate(
    model: object,
    data: Data | Path | str = "mini",
    *,
    tasks: Sequence[str] | None = None,
    options: RunOptions | None = None,
) -> list[Result]:
    """Evaluate one model.

    Args:
        model: a model, or anything that `load_model` takes: a name, or an object with `sample_rate` and `embed`.
        data: opened data, or anything that `open_data` takes: a preset, a built folder, a Hub id.
        tasks: names of tasks; by default all that the data and the model allow, except those on request.
        options: run options.

    Returns:
        one result per task.

    Raises:
        AudioCompositionalityError: an unknown model, task, setting or device, unusable data, a clip that cannot be
            embedded, an existing result for other data or settings, or a failure of another process.
    """
    options = options or RunOptions()
    from audio_compositionality.encoders.adapters.custom import CustomModel
    from audio_compositionality.encoders.loading.registry import load_model

    if isinstance(model, CustomModel) and not model.card.is_reusable:
        # The object may have changed since it was loaded.
        model = model.made
    if not isinstance(model, Model):
        processes = join_processes()
        with processes.one_first():
            model = load_model(model, device=processes.device(options.device))
    if isinstance(data, (str, Path)):
        from audio_compositionality.dataset_builder.open_data import open_data

        data = open_data(data)
    named = None if tasks is None else load_tasks(tasks)
    return evaluate_models([model], data, named, options)


def evaluate_models(
    models: Sequence[Model],
    data: Data,
    tasks: Sequence[Task] | None,
    options: RunOptions,
    *,
    on_result: Report | None = None,
    leave_out: bool = False,
    apart: Collection[tuple[str, str]] = (),
    shipped: bool = False,
) -> list[Result]:
    """Evaluate several models; existing results for other data or settings are refused before the first model is run.

    If torchrun or ``accelerate launch`` starts several processes, each embeds its share of the clips, the main process
    scores, and all return the results. They share the embeddings through the folder `RunOptions.cache`, by default
    `cached_outputs_folder`, which must be on a file system that all of them share.

    Args:
        models: loaded models.
        data: opened data.
        tasks: by default, all tasks whose recipe the data contain, except those on request; each model is then scored
            in the tasks that it can do, and a warning names the others.
        options: run options.
        on_result: called in the main process with each result as soon as it is written; without `shipped`, also with
            existing results.
        leave_out: leave out named tasks that a model cannot do, instead of refusing the model.
        apart: pairs (id of a model, name of a task) to leave out.
        shipped: use the results of baselines that come with the package, without their outputs, if they match.

    Raises:
        AudioCompositionalityError: see `evaluate`.
    """
    processes = join_processes()
    fleeting = [model.card.id for model in models if not model.card.is_reusable]
    if fleeting and processes.count > 1:
        raise InputError(
            f"'{fleeting[0]}' is an object without a revision: its embeddings are not cached, so several processes "
            "cannot share them. Give it a revision, or name it as path/to/file.py:NAME"
        )
    if fleeting:
        if options.cache is not None:
            warnings.warn(
                f"'{fleeting[0]}' is an object without a revision: its embeddings are not cached, and existing results "
                "are computed again",
                stacklevel=3,
            )
        options = options.changed(cache=None, force=True)
    if options.cache is None and processes.count > 1:
        options = options.changed(cache=cached_outputs_folder())
    options = options.changed(progress=options.progress and processes.is_main)
    if tasks is None:
        # All that at least one model can do, except tasks that pass over these rows.
        possible = default_tasks(data.recipes)
        if not possible:
            raise InputError(f"the data {data.source!r} have no task")
        warn_of_left_out(models, possible, data.source)
        done = [task for task in possible if any(can_do(task, model) for model in models)]
        tasks = [task for task in done if not task.info.passes_over(data.configuration(task.info.recipe).rows)]
    elif not leave_out:
        for task, model in product(tasks, models):
            check_model_kind(task, model)
    valid = settings_of_tasks(tasks)
    for name in options.settings:
        if name not in valid:
            hint = f"the setting {name!r}; {nearest(name, sorted(valid))}" if valid else f"a setting, such as {name!r}"
            raise InputError(f"none of the tasks has {hint}")
    opened = [open_task(task, data, options.settings) for task in tasks]
    models = with_long_answers(models, opened)
    # A missing device is detected before anything is embedded.
    options = options.changed(device=device_name(processes.device(options.device)))
    unasked = left_unasked(models, opened, leave_out, apart)
    earlier = _earlier_results(models, opened, options, processes, unasked if shipped else None)
    if options.out is not None and processes.is_main:
        warn_of_other_data(options.out, opened)
    _check_questions(models, opened, {*earlier, *unasked}, options)
    scored: dict[tuple[int, str], Result] = {}
    numbers = {id(model): number for number, model in enumerate(models)}
    groups = models_by_pass(models)
    # All models are scored on one recipe before the next recipe begins.
    for recipe, group in product(dict.fromkeys(one.task.info.recipe for one in opened), groups):
        # Tasks of one recipe share the embeddings of its clips, and layers of one model a pass through it.
        filled = Filled()
        for model, one in product(group, [one for one in opened if one.task.info.recipe == recipe]):
            place = (numbers[id(model)], one.task.info.name)
            if not can_do(one.task, model) or place in unasked:
                continue
            result = earlier.get(place)
            if result is None:
                alike = [other.task.info.name for other in opened if other.task.info.recipe == recipe]
                layers = [m for m in group if any((numbers[id(m)], name) not in earlier for name in alike)]
                computed = compute_outputs(model, one, options, processes, filled, layers)
                if computed is None:
                    # Only the main process scores.
                    continue
                result, samples = _score(model, computed, options, processes)
                if options.out is not None:
                    save_result(options.out, result, samples)
                result = result.with_samples(samples)
            scored[place] = result
            if on_result is not None and processes.is_main and not (shipped and place in earlier):
                on_result(result)
    places = [(numbers[id(model)], one.task.info.name) for group in groups for model, one in product(group, opened)]
    results = [scored[place] for place in places if place in scored]
    texts = json.loads(processes.from_main(json.dumps([result.dumps() for result in results])))
    return results if processes.is_main else [Result.loads(text) for text in texts]


def left_unasked(
    models: Sequence[Model],
    opened: Sequence[OpenedTask],
    leave_out: bool,
    apart: Collection[tuple[str, str]] = (),
) -> set[tuple[int, str]]:
    """Return the pairs (index of a model, name of a task) that are not run.

    These are the pairs in `apart`, and, with a warning each, those whose model cannot learn the task or cannot answer
    in the requested way.

    Args:
        models: the models.
        opened: the tasks.
        leave_out: whether a model may be left out of a task that it cannot answer.
        apart: pairs (id of a model, name of a task).

    Raises:
        TaskError: a model cannot answer a task and may not be left out, or no pair is left.
    """
    problems: dict[tuple[int, str], str] = {}
    named: set[tuple[int, str]] = set()
    for (number, model), one in product(enumerate(models), opened):
        place = (number, one.task.info.name)
        if (model.card.id, one.task.info.name) in apart:
            named.add(place)
        elif one.prompts and (problem := asking_problem(model, one)) is not None:
            problems[place] = problem
    if problems and (not leave_out or len(problems) + len(named) == len(models) * len(opened)):
        raise TaskError(next(iter(problems.values())))
    for problem in problems.values():
        warnings.warn(f"left out: {problem}", stacklevel=3)
    return named | set(problems)


def with_long_answers(models: Sequence[Model], opened: Sequence[OpenedTask]) -> list[Model]:
    """Return the models with their limit of tokens raised to what the tasks need, if that is more."""
    needed = max((one.new_tokens or 0 for task in opened for one in task.inputs), default=0)
    return [
        model if model.new_tokens is None or model.new_tokens >= needed else model.with_new_tokens(needed)
        for model in models
    ]


def warn_of_other_data(out: Path, opened: Sequence[OpenedTask]) -> None:
    """Warn, once per task, that the folder contains results on other data: they stay, and are compared separately.

    Args:
        out: folder of results.
        opened: the tasks to be scored.
    """
    for one in opened:
        now = one.configuration
        others: list[Result] = []
        for path in sorted(out.glob(f"*/*/{one.task.info.name}.json")):
            try:
                result = Result.loads(read_file(path))
            except (OSError, ResultError):
                # A comparison of the results reports it.
                continue
            if (result.fingerprint, result.rows_digest) != (now.fingerprint, now.rows_digest):
                others.append(result)
        if others:
            theirs = Counter(f"{other.dataset} ({data_digest(other, [now])})" for other in others)
            source = f"{now.source} ({data_digest(now, others)})"
            there = listed([f"{count:,} on {name}" for name, count in theirs.items()])
            warnings.warn(
                f"{out} contains results of {one.task.info.title} on other data, {there}; this run is on {source}. "
                "Tables and the report list them separately, under the name of their data; to separate the files too, "
                "give another --out",
                stacklevel=3,
            )


def _check_questions(
    models: Sequence[Model], opened: Sequence[OpenedTask], done: Collection[tuple[int, str]], options: RunOptions
) -> None:
    """Raise before the first question if there are too many questions for a server, or clips too long for a model.

    Questions with cached answers do not count. A clip's length is known if its row states it.

    Args:
        models: the models.
        opened: the tasks.
        done: pairs (index of a model, name of a task) that will not be run.
        options: the limit of questions, and whether clips may be left out.

    Raises:
        InputError: there are more questions than allowed; or the longest clip exceeds a model's input, or, if clips
            may be left out, all clips do.
    """
    counts: list[tuple[Model, int]] = []
    for number, model in enumerate(models):
        total = 0
        for one in opened if "answer" in model.abilities else ():
            if not one.prompts or not can_do(one.task, model) or (number, one.task.info.name) in done:
                continue
            cached = answer_cache(model.card, one, options.cache)
            count = len(cached.ids)
            if not options.force:
                missing = [shard for shard in range(cached.num_shards) if not cached.has(shard)]
                count = sum(len(cached.items(shard)) - len(cached.begun(shard)) for shard in missing)
            if count and model.limit_seconds is not None:
                _check_length(model.card.id, model.limit_seconds, one, options.skip_invalid)
            total += count
        counts.append((model, total))
    for model, count in counts:
        most = options.max_questions
        if most is not None and model.device == SERVER and count > most:
            raise InputError(
                f"'{model.card.id}' would be asked {count:,} questions, but at most {most:,} are allowed (--set "
                f"max_questions=...): allow {count:,}, ask each in one order of its options, or give data with fewer "
                "questions. Nothing was asked"
            )


def _check_length(model: str, limit: float, opened: OpenedTask, skip_invalid: bool) -> None:
    """Raise if a task's clips are too long for a model.

    To confirm the length that the row states, the longest clip is read; if clips may be left out, the shortest.

    Raises:
        InputError: as `_check_questions`.
    """
    timed = [
        (float(row["duration"]), f"{row['id']}/{one.clips[0]}")
        for row, one in zip(opened.rows, opened.inputs, strict=True)
        if one.prompts and not one.cuts and row.get("duration") is not None
    ]
    stated, id = (min if skip_invalid else max)(timed, default=(0.0, ""))
    if stated <= limit:
        return
    place = list(opened.configuration.clip_ids).index(id)
    (clip,) = opened.configuration.clips(range(place, place + 1), keep_invalid=True)
    seconds = len(clip.waveform) / clip.sample_rate
    if clip.problem is None and seconds > limit:
        count = sum(duration > limit for duration, _ in timed)
        left = ", or leave them out (--skip-invalid)" if count < len(timed) else ""
        raise InputError(
            f"'{model}' takes {limit:g} s at most, and {count:,} of {len(timed):,} questions of "
            f"{opened.configuration.recipe} are about longer clips, such as '{id}' of {seconds:g} s: give shorter "
            f"ones{left}. Nothing was run"
        )


def _earlier_results(
    models: Sequence[Model],
    opened: Sequence[OpenedTask],
    options: RunOptions,
    processes: Processes,
    unasked: Collection[tuple[int, str]] | None,
) -> dict[tuple[int, str], Result]:
    """Return the existing results by (index of the model, name of the task); the main process reads them for all.

    Shipped results of baselines are written into the folder first, with a warning, for all pairs except `unasked`;
    for none if `unasked` is None.

    Raises:
        ResultError: the folder contains a model's result for other data or settings, or a damaged one.
    """
    earlier: dict[tuple[int, str], Result] = {}
    from_package: list[str] = []
    if options.out is not None and not options.force and processes.is_main:
        for number, model in enumerate(models):
            for one in opened:
                path = result_path(options.out, model.card.id, model.card.revision, one.task.info.name)
                if not path.exists():
                    with_package = None
                    if unasked is not None and (number, one.task.info.name) not in unasked:
                        with_package = shipped_result(model.card.id, model.card.revision, one.task.info.name)
                    if with_package is not None and not differences(with_package[0], model.card, one):
                        save_result(options.out, *with_package)
                        earlier[number, one.task.info.name] = with_package[0].with_samples(with_package[1])
                        from_package.append(model.card.id)
                    continue
                result, samples = load_result(path)
                if result.skipped and not options.skip_invalid:
                    raise ResultError(
                        f"{path} lacks {len(result.skipped)} clips that could not be embedded, such as "
                        f"{result.skipped[0].id}: --skip-invalid accepts this result, --force computes it again"
                    )
                if differing := differences(result, model.card, one):
                    raise ResultError(
                        f"{path} exists for other data, settings or weights (on {result.dataset}, now "
                        f"{one.configuration.source}; different: {', '.join(differing)}): give another --out, or "
                        "--force to replace it"
                    )
                earlier[number, one.task.info.name] = result.with_samples(samples)
    if from_package:
        warnings.warn(
            f"the results of {listed(list(dict.fromkeys(from_package)))} come with the package; to compute them, use "
            "--force",
            stacklevel=4,
        )
    rows = json.loads(processes.from_main(json.dumps([(*place, result.dumps()) for place, result in earlier.items()])))
    return earlier if processes.is_main else {(number, name): Result.loads(text) for number, name, text in rows}


def differences(result: Result, card: ModelCard, opened: OpenedTask) -> list[str]:
    """Return the names of the fields in which a result differs from a card, a task, its data and settings."""
    model = ScoredModel.of(card)
    wanted: dict[str, Any] = {
        "task_version": opened.task.info.version,
        "fingerprint": opened.configuration.fingerprint,
        "rows_digest": opened.configuration.rows_digest,
        "settings": json.loads(json.dumps(dict(opened.settings))),
    }
    other = [name for name, value in wanted.items() if getattr(result, name) != value]
    described = ("paradigm", "licence", "trained_on", "parameters")
    other += [
        name
        for name in ScoredModel.model_fields
        if name not in described and getattr(result.model, name) != getattr(model, name)
    ]
    return sorted(other)


def _score(
    model: Model, computed: ModelOutputs, options: RunOptions, processes: Processes
) -> tuple[Result, SampleTable]:
    """Return the result and samples of a model's outputs in a task; `options.device` is the device of fits."""
    left, skipped = computed.opened, computed.skipped
    deviation = None
    if "audio" in model.abilities and left.clip_ids:
        deviation = precision_deviation(model, left.configuration, list(skipped))
    more = processes.count - 1
    result, samples = score_outputs(
        left,
        computed.outputs,
        model.card,
        ran_on=model.device + (f" and {more} more" if more else ""),
        fit_device=str(options.device),
        progress=options.progress,
        seconds={computed.stage: computed.seconds},
    )
    stated = {
        "precision_deviation": None if deviation is None else Deviation.model_validate(deviation),
        "skipped": [Skipped(id=id, reason=reason[:2_000]) for id, reason in skipped.items()],
        "cut_answers": computed.cut,
        "cut_clips": computed.cut_clips,
    }
    return result.model_copy(update=stated), samples


def score_outputs(
    opened: OpenedTask,
    outputs: Outputs,
    card: ModelCard,
    *,
    ran_on: str,
    fit_device: str,
    progress: bool,
    seconds: Mapping[str, float],
) -> tuple[Result, SampleTable]:
    """Score the outputs of a model in a task.

    Args:
        opened: the task and its data.
        outputs: for its rows.
        card: of the model.
        ran_on: device of the model.
        fit_device: torch device of fits.
        progress: show a progress bar.
        seconds: wall-clock time of each earlier stage.

    Returns:
        the result and its samples.

    Raises:
        ValueError, FloatingPointError: outputs that cannot be scored.
    """
    started = time.perf_counter()
    scores = opened.score(outputs, fit_device, progress)
    seconds = {**seconds, "score": time.perf_counter() - started}
    device = ran_on
    if any(measure.fitted for measure in opened.task.info.measures):
        device += f", fit on {fit_device}"
    samples = SampleTable.of(scores.ids, scores.columns, opened.samples.clusters)
    return make_result(opened, scores, opened.samples, card, samples, device=device, seconds=seconds), samples


def make_result(
    opened: OpenedTask,
    scores: Scores,
    described: Samples,
    card: ModelCard,
    samples: SampleTable,
    *,
    device: str,
    seconds: Mapping[str, float],
) -> Result:
    """The result of scores.

    Args:
        opened: the task and its data.
        scores: of a model.
        described: facts about the samples.
        card: of the model.
        samples: the columns beside the result.
        device: where the model ran.
        seconds: wall-clock time of each stage.
    """
    info = opened.task.info
    return Result(
        task=info.name,
        task_version=info.version,
        measures=dict(scores.measures),
        intervals=intervals_of(opened.task, scores, described),
        n=len(scores.ids),
        training={name: list(values) for name, values in scores.training.items()},
        settings=json.loads(json.dumps(dict(opened.settings))),
        model=ScoredModel.of(card),
        precision_deviation=None,
        skipped=[],
        cut_answers=None,
        cut_clips=0,
        recipe=info.recipe,
        fingerprint=opened.configuration.fingerprint,
        rows_digest=opened.configuration.rows_digest,
        dataset=shortened(opened.configuration.source, 200),
        versions=library_versions(),
        device=device,
        seconds=dict(seconds),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        samples_sha256=sha256_of(samples.dumps().encode()),
    )


def intervals_of(task: Task, scores: Scores, described: Samples) -> dict[str, tuple[float, float] | None]:
    """Return the 95 % interval of each measure that is a mean over samples: BCa bootstrap over clusters.

    None for a measure with too few clusters.
    """
    intervals: dict[str, tuple[float, float] | None] = {}
    for measure in task.info.with_intervals:
        column = scores.columns.get(measure.column or "")
        intervals[measure.name] = None
        if column is not None and scores.measures.get(measure.name) is not None:
            places = measure.places(scores.columns)
            if len(places):
                clusters = described.clusters[places]
                intervals[measure.name] = mean_intervals(column[places, None], clusters, bounds=measure.range)[0]
    return intervals


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of this package, Python and the numerical libraries, as a result states them."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in _VERSIONS}}
