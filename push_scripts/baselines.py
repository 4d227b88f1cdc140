"""The baselines' results on a leaderboard, so that none is empty: the missing ones, their scoring and submission."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.base import Model
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import ResultError, result_path
from audio_compositionality.evaluator.run.cache import cached_outputs_folder
from audio_compositionality.evaluator.run.evaluate import Report, differences, evaluate_models
from audio_compositionality.evaluator.run.opened import OpenedTask, open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.outputs import can_do
from audio_compositionality.evaluator.run.planning import planned
from audio_compositionality.evaluator.submissions.layout import FILE_LIMITS, MAX_ENTRIES, RESULT, folders_of
from audio_compositionality.evaluator.submissions.submission import read_result
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.errors import Repository
from audio_compositionality.hub.names import results_of
from audio_compositionality.support.files import read_file, safe_file_name
from audio_compositionality.tasks.base import Task
from audio_compositionality.tasks.registry import default_tasks

from .submit import Submitted, submit_results


@dataclass(frozen=True)
class MissingBaselines:
    """The baselines' results on a preset that a leaderboard lacks.

    Attributes:
        repository: of its results.
        preset: name of the preset.
        data: of the preset.
        tasks: the missing tasks, by the baseline; every baseline has at least one.
    """

    repository: Repository
    preset: str
    data: Data
    tasks: Mapping[Model, tuple[OpenedTask, ...]]

    def __bool__(self) -> bool:
        return bool(self.tasks)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of the embeddings of each result as they are sent, by the result's name."""
        return {
            f"{model.card.id}/{opened.task.info.name}": 2 * len(opened.clip_ids) * (model.card.output_dim or 0)
            for model, tasks in self.tasks.items()
            for opened in tasks
        }


def missing_baselines(
    org: str,
    preset: str,
    tasks: Sequence[Task] | None = None,
    *,
    hub: Hub | None = None,
    device: str | None = None,
) -> MissingBaselines:
    """Return the results of the tasks' baselines that a leaderboard lacks; nothing is scored.

    `run` scores the same baselines: the common ones, acoustic or text baselines of the inputs, and the controls that a
    task names and that are no twins.

    Args:
        org: organisation or user that the leaderboard belongs to.
        preset: name of the preset.
        tasks: by default all but those on request.
        hub: by default as the user of the saved token.
        device: torch device that the baselines are loaded for.

    Raises:
        InputError: an unknown preset.
        DatasetError: the preset has no data for a task.
        HubError: the Hub refuses, or cannot be reached.
    """
    repository = results_of(org)
    data = rendered_preset(preset)
    asked = default_tasks(data.recipes) if tasks is None else tasks
    plan = planned((), asked, is_named=True, is_judged=True)
    opened = [open_task(task, data) for task in asked]
    models = [load_model(name, device=device) for name in plan.baselines]
    hub = hub or Hub()
    # The models' results on the branch main; damaged ones count as missing.
    names = {safe_file_name(model.card.id) for model in models}
    present = []
    for folder in folders_of(hub.files_if_any(repository) or {})[0].values():
        if folder.encoder in names and RESULT in folder.files:
            path = folder.files[RESULT].path
            try:
                present.append(read_result(read_file(hub.download(repository, path, limit=FILE_LIMITS[RESULT]))))
            except ResultError:
                continue
    missing: dict[Model, tuple[OpenedTask, ...]] = {}
    for model in models:
        lacking = tuple(
            one
            for one in opened
            if can_do(one.task, model)
            and (model.card.id, one.task.info.name) not in plan.apart
            and all(result.task != one.task.info.name or differences(result, model.card, one) for result in present)
        )
        if lacking:
            missing[model] = lacking
    return MissingBaselines(repository, preset, data, missing)


def publish_baselines(
    org: str,
    missing: MissingBaselines,
    out: Path,
    *,
    hub: Hub | None = None,
    cache: Path | None = None,
    device: str | None = None,
    pull_request: bool = False,
    progress: bool = True,
    on_result: Report | None = None,
) -> list[Submitted]:
    """Score the results that a leaderboard lacks, and send them.

    Args:
        org: organisation or user that the leaderboard belongs to.
        missing: the missing results.
        out: folder of the results; existing ones are not computed again.
        hub: by default as the user of the saved token.
        cache: folder of cached embeddings; default `cached_outputs_folder`.
        device: torch device of fits.
        pull_request: see `submit_results`.
        progress: show progress bars.
        on_result: called with each result as soon as it is written.

    Returns:
        the submissions; several if there are more results than one submission takes.

    Raises:
        ResultError: the folder holds a result of a baseline for other data or settings.
        AudioCompositionalityError: the Hub refuses or cannot be reached, or the device is missing.
    """
    cache = cached_outputs_folder() if cache is None else cache
    options = RunOptions(device=device, out=out, cache=cache, progress=progress)
    paths = []
    for model, opened in missing.tasks.items():
        evaluate_models([model], missing.data, [one.task for one in opened], options, on_result=on_result)
        card = model.card
        paths += [result_path(out, card.id, card.revision, one.task.info.name) for one in opened]
    return [
        submit_results(
            paths[start : start + MAX_ENTRIES],
            org,
            hub=hub,
            cache=cache,
            device=device,
            pull_request=pull_request,
            progress=progress,
        )
        for start in range(0, len(paths), MAX_ENTRIES)
    ]
