"""Tasks that embed as tasks of mteb, models as models of mteb, and mteb's results as ours.

    import mteb
    from audio_compositionality.bridges.mteb import from_mteb, model, task

    result = mteb.evaluate(model("compa-clap-tiny"), task(NAME), cache=None)
    audio_compositionality.compare(from_mteb(result)).verdicts

A task scores a model of mteb as `evaluate` scores ``mteb:NAME``, so that the numbers are the same. The main score is
the measure that the task ranks by, on the split ``test``. Beside it stand the other measures; their ``intervals``; and
the ``controls``, the score of each baseline, and of the untrained twin of a model of ours that was given by name.

``python -m audio_compositionality.bridges.mteb OUT --path ORG/REPOSITORY --revision SHA`` writes what a pull request to
mteb asks for: metadata, descriptive statistics and results, a file each, by task.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.adapters.mteb import MtebModel, as_encoder, import_mteb
from audio_compositionality.encoders.base import ENCODER, TEXT_ENCODER, Model
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import Result, ResultError, check_samples, save_result
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import OpenedTask, open_task
from audio_compositionality.evaluator.run.options import ITEMS_PER_SHARD, RunOptions
from audio_compositionality.evaluator.run.outputs import can_do
from audio_compositionality.evaluator.run.planning import Named, planned
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.files import safe_file_name, sha256_of, write_whole
from audio_compositionality.support.text import first_line, nearest
from audio_compositionality.tasks.base import Task
from audio_compositionality.tasks.registry import list_tasks, load_benchmark, load_task

PATH, REVISION = "audio-compositionality", "main"
"""Repository of the data, and its revision, in metadata where none are given; nothing is read from it."""

KEPT = "audio_compositionality"
"""Key, in the scores of mteb, of our results as JSON text."""

model = MtebModel
"""``model(NAME)``: a model of ours for mteb; or ``model(OBJECT)``, see `load_model`."""


def task(name: str, data: str = "mini", *, path: str = PATH, revision: str = REVISION) -> Any:
    """A task for ``mteb.evaluate``.

    Args:
        name: of a task that embeds sound, or sound and text.
        data: anything that `open_data` takes: a preset, a built folder, a Hub id.
        path: repository of the data for mteb's metadata.
        revision: of this repository.

    Raises:
        InputError: the task asks questions.
        TaskError: there is no such task.
        DatasetError: the data cannot be opened, or lack the task's recipe.
        ModelError: mteb is not installed.
    """
    ours = load_task(name)
    if not _embeds(ours):
        embedding = [one.info.name for one in list_tasks() if _embeds(one)]
        raise InputError(f"{name!r} asks a language model, which mteb does not; {nearest(name, embedding)}")
    import_mteb()
    source = open_data(data)
    opened = open_task(ours, source)
    metadata = _metadata(opened, "" if data == "mini" else opened.configuration.fingerprint[:8], path, revision)
    return _task_class(metadata, ours.info.question)(opened, source)


def tasks(benchmark: str, data: str = "mini", *, path: str = PATH, revision: str = REVISION) -> list[Any]:
    """The tasks of a benchmark for ``mteb.evaluate``: those that embed, less those on request.

    Raises:
        TaskError: there is no such benchmark.
        InputError: all of its tasks ask questions.
    """
    embedding = [one for one in load_benchmark(benchmark) if _embeds(one)]
    if not embedding:
        raise InputError(f"all tasks of {benchmark!r} ask a language model, which mteb does not")
    return [task(one.info.name, data, path=path, revision=revision) for one in embedding]


def from_mteb(result: Any, out: Path | str | None = None) -> list[Result]:
    """Return our results in results of mteb, including results of controls, each once.

    Args:
        result: what ``mteb.evaluate`` returns, one of its task results, or the content of a file of mteb as a mapping.
        out: folder to write the results to, for `report` and ``submit``; None writes none.

    Raises:
        ResultError: a result of another task, or one that was changed.
    """
    results: dict[tuple[Any, ...], Result] = {}
    try:
        of_tasks = [result] if isinstance(result, Mapping) else getattr(result, "task_results", [result])
        splits = [
            split for one in of_tasks for split in (one["scores"] if isinstance(one, Mapping) else one.scores).values()
        ]
        for scores in (scores for split in splits for scores in split):
            if KEPT not in scores:
                raise ResultError(f"the scores of mteb lack {KEPT!r}: they are of a task of another source")
            for kept in json.loads(scores[KEPT]):
                read = Result.loads(kept["result"])
                read = read.with_samples(check_samples(read, kept["samples"].encode()))
                results.setdefault((read.model.id, read.model.revision, *read.key), read)
    except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, ResultError):
            raise
        raise ResultError(f"these are no results of mteb, or damaged: {first_line(error)}") from error
    for read in results.values():
        if out is not None and read.samples is not None:
            save_result(Path(out), read, read.samples)
    return list(results.values())


def _embeds(ours: Task) -> bool:
    return ours.info.needs in (ENCODER, TEXT_ENCODER)


def _metadata(opened: OpenedTask, other: str, path: str, revision: str) -> Any:
    """The metadata of a task.

    Args:
        opened: the task.
        other: what names other data than the usual: these are another task, also for mteb's cache.
        path: repository of the data.
        revision: of this repository.
    """
    from mteb.abstasks.task_metadata import TaskMetadata

    info = opened.task.info
    reads = "text" in info.needs
    return TaskMetadata(
        name="".join(part.capitalize() for part in info.name.split("_")) + "Compositionality" + other,
        description=info.question,
        reference="https://arxiv.org/abs/2603.13685",
        dataset={"path": path, "revision": revision},
        type="Compositionality",
        category="a2t" if reads else "a2a",
        modalities=["audio", "text"] if reads else ["audio"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"] if reads else ["zxx-Zxxx"],
        main_score=info.ranks_by,
        date=("2026-01-01", "2026-11-24"),
        domains=["AudioScene", "Constructed"],
        task_subtypes=[],
        license="cc-by-4.0",
        annotations_creators="algorithmic",
        dialect=[],
        sample_creation="created",
        bibtex_citation=info.citation,
        is_beta=False,
    )


def _task_class(metadata: Any, question: str) -> Any:
    """A class of its own for each task: mteb looks names up among the classes."""
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.abstask import AbsTask

    class Compositionality(AbsTask):  # type: ignore[misc, unused-ignore]
        """A task of ours; mteb gives it the model."""

        abstask_prompt = question

        def __init__(self, opened: OpenedTask, data: Data) -> None:
            super().__init__()
            self.opened, self.data = opened, data

        def load_data(self, num_proc: int | None = None, **_: Any) -> None:
            self.dataset = DatasetDict(test=Dataset.from_dict({"id": [str(row["id"]) for row in self.opened.rows]}))
            self.data_loaded = True

        def _evaluate_subset(self, model: Any, data_split: Any, *, encode_kwargs: Any, **_: Any) -> dict[str, Any]:
            size = int(encode_kwargs.get("batch_size") or ITEMS_PER_SHARD)
            return _scores(model, self.opened, self.data, min(size, ITEMS_PER_SHARD))

        def _calculate_descriptive_statistics_from_split(self, split: str, **_: Any) -> dict[str, Any]:
            return descriptive_statistics(self.opened)

        def _push_dataset_to_hub(self, repo_name: str, num_proc: int | None = None, **_: Any) -> None:
            raise NotImplementedError("`audio-compositionality push dataset` publishes the data")

    return type(metadata.name, (Compositionality,), {"metadata": metadata})


def _scores(given: Any, opened: OpenedTask, data: Data, batch_size: int) -> dict[str, Any]:
    """Return all measures with their intervals and facts, as mteb keeps them."""
    is_ours = isinstance(given, MtebModel) and given.max_seconds is None
    encoder = given.encoder if is_ours else as_encoder(given)
    options = RunOptions(batch_size=batch_size, progress=False)
    (result,) = evaluate_models([encoder], data, [opened.task], options)
    twins = _twins(given.name, encoder, opened.task, data, options) if is_ours and given.name else []
    beside = [*_baselines(opened, data), *twins]
    beside = [one for one in beside if one.model.id != result.model.id]
    kept = (result, *beside)
    tables = []
    for one in kept:
        assert one.samples is not None, "evaluate_models returns results with their samples"
        tables.append({"result": one.dumps(), "samples": one.samples.dumps()})
    return {
        **{name: value for name, value in result.measures.items() if value is not None},
        "intervals": {name: list(ends) for name, ends in result.intervals.items() if ends is not None},
        "controls": {one.model.id: one.measures[opened.task.info.ranks_by] for one in beside},
        "n": result.n,
        "task_version": result.task_version,
        "fingerprint": result.fingerprint,
        # As text, which mteb does not round.
        KEPT: json.dumps(tables),
    }


_SCORED_BASELINES: dict[tuple[Any, ...], list[Result]] = {}
"""Results of baselines by task, its version and data: a second model waits for none."""


def _baselines(opened: OpenedTask, data: Data) -> list[Result]:
    info = opened.task.info
    key = (info.name, info.version, opened.configuration.fingerprint, opened.configuration.rows_digest)
    if key not in _SCORED_BASELINES:
        plan = planned([], [opened.task], is_named=True, is_judged=True)
        models = [load_model(name) for name in plan.baselines if (name, info.name) not in plan.apart]
        _SCORED_BASELINES[key] = evaluate_models(
            models, data, [opened.task], RunOptions(progress=False), leave_out=True
        )
    return _SCORED_BASELINES[key]


def _twins(name: str, encoder: Model, ours: Task, data: Data, options: RunOptions) -> list[Result]:
    """The results of the twins of a model that has any, by the name that it was loaded by."""
    plan = planned([Named(name, (encoder,))], [ours], is_named=True, is_judged=False)
    twins = [load_model(twin) for twin in plan.controls.get(name, ())]
    return evaluate_models(twins, data, [ours], options) if twins else []


# ----- a contribution to mteb


CONTRIBUTED = ("random", "log-mel-statistics", "compa-clap-tiny")
"""The models whose results go with a contribution; the last is in the package."""


def descriptive_statistics(opened: OpenedTask) -> dict[str, Any]:
    """Numbers of rows, clips and texts as mteb states them: its ``AudioStatistics`` and ``TextStatistics``."""
    seconds, rates, digests = [], Counter[int](), set()
    for clip in opened.configuration.clips():
        seconds.append(len(clip.waveform) / clip.sample_rate)
        rates[clip.sample_rate] += 1
        digests.add(sha256_of(clip.waveform.tobytes()))
    statistics: dict[str, Any] = {
        "num_samples": len(opened.rows),
        "audio_statistics": {
            "total_duration_seconds": sum(seconds),
            "min_duration_seconds": min(seconds),
            "average_duration_seconds": sum(seconds) / len(seconds),
            "max_duration_seconds": max(seconds),
            "unique_audios": len(digests),
            "average_sampling_rate": sum(rate * count for rate, count in rates.items()) / len(seconds),
            "sampling_rates": dict(rates),
        },
    }
    texts = opened.texts
    if texts:
        lengths = [len(text) for text in texts]
        statistics["text_statistics"] = {
            "total_text_length": sum(lengths),
            "min_text_length": min(lengths),
            "average_text_length": sum(lengths) / len(lengths),
            "max_text_length": max(lengths),
            "unique_texts": len(set(texts)),
        }
    return statistics


def write_contribution(out: Path, given: Sequence[Any], models: Sequence[str] = CONTRIBUTED) -> list[Path]:
    """Write what a pull request to mteb asks for.

    Args:
        out: folder; for each task its ``metadata.json``, ``descriptive_stats.json`` and a result of each model that
            can do it.
        given: tasks, as `task` makes them.
        models: names of models.

    Raises:
        InputError: metadata that mteb does not count as filled.
    """
    import mteb

    written = []
    for one in given:
        if not one.metadata.is_filled():
            raise InputError(f"mteb asks for more metadata than {one.metadata.name} has")
        folder = out / one.metadata.name
        statistics = {"test": descriptive_statistics(one.opened)}
        for name, content in (
            ("metadata.json", one.metadata.model_dump(mode="json")),
            ("descriptive_stats.json", statistics),
        ):
            write_whole(folder / name, json.dumps(content, indent=1) + "\n")
            written.append(folder / name)
        for name in models:
            if can_do(one.opened.task, load_model(name)):
                result = mteb.evaluate(model(name), one, cache=None, show_progress_bar=False).task_results[0]
                written.append(folder / f"{safe_file_name(name)}.json")
                result.to_disk(written[-1])
    return written


def main(arguments: Sequence[str] | None = None) -> None:
    """Write a contribution, and print its files."""
    parser = argparse.ArgumentParser(
        prog="python -m audio_compositionality.bridges.mteb",
        description="Write what a pull request to mteb asks for: metadata, descriptive statistics, and results of "
        f"{', '.join(CONTRIBUTED)}.",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the files")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="default all that embed, less those on request")
    parser.add_argument("--data", default="mini", metavar="SPEC", help="the data to score; default mini")
    parser.add_argument("--path", required=True, metavar="ORG/REPOSITORY", help="of the same data on the Hub")
    parser.add_argument("--revision", required=True, metavar="SHA", help="of that repository: a commit")
    options = parser.parse_args(arguments)
    try:
        names = options.tasks or [one.info.name for one in list_tasks() if _embeds(one) and not one.info.on_request]
        given = [task(name, options.data, path=options.path, revision=options.revision) for name in names]
        for path in write_contribution(options.out, given):
            print(path)
    except AudioCompositionalityError as error:
        parser.exit(1, f"error: {error}\n")


if __name__ == "__main__":
    main()
