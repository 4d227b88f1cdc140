"""Making a submission from a local result: it is scored on the embeddings or answers as they are sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.encoders.controls import clips_id
from audio_compositionality.encoders.inference import device_name
from audio_compositionality.evaluator.results.result import Result, ResultError, SampleTable, ScoredModel, load_result
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.base import Outputs
from audio_compositionality.tasks.registry import load_task

from .layout import ANSWERS, EMBEDDINGS, FILE_LIMITS, RESULT, SAMPLES, sha256_by_name
from .outputs import RawAnswers, RoundedEmbeddings, question_ids
from .submission import (
    Submission,
    open_with_choices,
    policy_problem,
    preset_with,
    read_claim,
    scoring_command,
    submitted_outputs,
)

if TYPE_CHECKING:
    from audio_compositionality.evaluator.run.cache import EmbeddingCache, ShardCache
    from audio_compositionality.evaluator.run.opened import OpenedTask


def make_submission(
    path: str | Path,
    data: Data,
    *,
    cache: str | Path | None = None,
    paradigm: str | None = None,
    licence: str | None = None,
    with_outputs: bool = True,
    device: str | None = None,
    progress: bool = True,
) -> Submission:
    """Make a submission of a local result; the model is not run.

    Its embeddings are taken from the cache and rounded to 16 bits, and the submitted scores belong to the rounded
    embeddings, so that a recomputation gives the same. Answers are sent as they are, see `RawAnswers.of`. The same
    result gives the same bytes: date and seconds of the evaluation stay.

    Args:
        path: JSON file of the result, as `evaluate_models` writes it.
        data: its data.
        cache: folder of cached embeddings and answers; default `cached_outputs_folder`.
        paradigm, licence: see `ModelCard`; by default as the result states.
        with_outputs: without outputs, or where the model has none, the result is submitted as it is, and stays
            self-reported.
        device: torch device of fits.
        progress: show bars of the fits.

    Raises:
        ResultError: the result cannot be submitted, or the model's outputs are not in the cache; states reason and
            remedy.
        CacheError: stored outputs are damaged.
        AudioCompositionalityError: the data cannot be used, or an unknown task or device.
    """
    local, samples = load_result(Path(path))
    task = load_task(local.task)
    configuration = data.configuration(task.info.recipe)
    if local.fingerprint != configuration.fingerprint:
        raise ResultError(
            f"the result is of data with the fingerprint {local.fingerprint[:12]}…, {data.source} has "
            f"{configuration.fingerprint[:12]}…: give the data it was computed from"
        )
    opened = open_with_choices(local, data)
    problem = policy_problem(local, opened)
    if problem is not None:
        raise ResultError(f"{path}: {problem}")
    # The submitter's statements are validated like all values; folders of the submitter's machine are not told.
    stated = {name: text for name, text in (("paradigm", paradigm), ("licence", licence)) if text is not None}
    for name, text in stated.items():
        if not (0 < len(text) <= 500 and text.isprintable()):
            raise ResultError(f"the {name} is {shortened(repr(text), 80)}; give 1 to 500 printable characters")
    source, preset = opened.configuration.source, preset_with(configuration.recipe, configuration.fingerprint)
    is_folder = Path(source).is_dir()
    dataset = preset or shortened(Path(source).resolve().name or "data" if is_folder else source, 200)
    model = ScoredModel.model_validate(local.model.model_dump() | stated)
    result = local.model_copy(update={"dataset": dataset, "model": model})
    submission = Submission({}, result, samples, None, local)
    if with_outputs:
        if not model.card().is_reusable:
            raise ResultError(
                f"{path}: its model was an object of a Python session, which nobody else can run: score it as "
                "path/to/file.py:NAME, or give the object a revision; without embeddings or answers the result can be "
                "submitted, and stays self-reported"
            )
        if opened.prompts:
            answers = RawAnswers.of(question_ids(opened), stored_answers(result, opened, cache))
            submission = replace(submission, files={ANSWERS: answers.dumps()}, answers=answers)
            _check_size(path, ANSWERS, len(submission.files[ANSWERS]))
        else:
            ids = opened.embedded_ids
            _check_size(path, EMBEDDINGS, len(ids) * (model.output_dim or 0) * 2)
            embeddings = stored_embeddings(result, opened, cache)
            rounded = RoundedEmbeddings.of(ids, embeddings, len(opened.unique_texts))
            submission = replace(submission, files={EMBEDDINGS: rounded.dumps()}, embeddings=rounded)
            _check_size(path, EMBEDDINGS, len(submission.files[EMBEDDINGS]))
        outputs = submitted_outputs(submission, opened)
        assert outputs is not None
        computed, samples = rescored(result, opened, outputs, device_name(device), progress)
        result = computed.model_copy(update={"versions": local.versions, "seconds": local.seconds})
    files = {**submission.files, RESULT: result.dumps().encode(), SAMPLES: samples.dumps().encode()}
    try:
        # The checks of third parties' submissions run here already.
        _ = read_claim(files[RESULT], sha256_by_name(files)).folder
    except ResultError as error:
        raise ResultError(f"{path}: {error}") from None
    return replace(submission, files=files, result=result, samples=samples)


def _check_size(path: str | Path, name: str, size: int) -> None:
    what, limit = name.partition(".")[0], FILE_LIMITS[name]
    if size > limit:
        raise ResultError(
            f"{path}: its {what} have {size:,} bytes{' in 16 bits' if name == EMBEDDINGS else ''}, at most {limit:,} "
            f"can be submitted; without {what} the result can be submitted, and stays self-reported"
        )


def rescored(
    result: Result, opened: OpenedTask, outputs: Outputs, device: str, progress: bool
) -> tuple[Result, SampleTable]:
    """A result recomputed from a model's outputs, and its samples.

    Statements about model, data and date are taken from `result`.

    Args:
        result: the result to recompute.
        opened: its task with the data.
        outputs: for its rows.
        device: torch device of fits.
        progress: show progress bars of fits.

    Raises:
        ValueError, FloatingPointError: outputs that cannot be scored.
    """
    from audio_compositionality.evaluator.run.evaluate import score_outputs

    ran_on = result.device.split(", fit on ")[0]
    computed, samples = score_outputs(
        opened, outputs, result.model.card(), ran_on=ran_on, fit_device=device, progress=progress, seconds={}
    )
    kept = ("precision_deviation", "skipped", "cut_answers", "cut_clips", "dataset", "date")
    return computed.model_copy(update={name: getattr(result, name) for name in kept}), samples


# ----- The outputs behind a local result: embeddings and answers in the caches; no model is run


def stored_embeddings(result: Result, opened: OpenedTask, root: str | Path | None = None) -> NDArray[np.floating]:
    """The embeddings behind a local result, [clips and different texts of the task, dim]; see
    `OpenedTask.embedded_ids`.

    Args:
        result: the result.
        opened: its task with the data.
        root: folder of the cache; default `cached_outputs_folder`.

    Raises:
        ResultError: they are missing, or some clips could not be embedded.
        CacheError: they are damaged, or of other clips.
    """
    from audio_compositionality.evaluator.run.cache import CacheKey, EmbeddingCache, cached_outputs_folder
    from audio_compositionality.evaluator.run.embeddings import text_cache
    from audio_compositionality.evaluator.run.options import RunOptions

    if "frames" in opened.task.info.needs:
        raise ResultError(
            f"{opened.task.info.name} is scored by frames, which are not submitted; without embeddings the result can "
            "be submitted, and stays self-reported"
        )
    configuration, card = opened.configuration, result.model.card()
    folder = cached_outputs_folder() if root is None else Path(root)
    parts: list[NDArray[np.floating]] = []
    if opened.clip_ids:
        of_clips = replace(card, id=clips_id(card.id))
        key = CacheKey.of(of_clips, configuration.recipe, configuration.fingerprint, configuration.rows_digest)
        cache = EmbeddingCache(folder, key, configuration.clip_ids)
        parts.append(opened.clip_outputs(_loaded(cache, result, opened)))
    if opened.texts:
        parts.append(_loaded(text_cache(card, opened, RunOptions(cache=folder)), result, opened))
    return np.concatenate(parts)


def stored_answers(result: Result, opened: OpenedTask, root: str | Path | None = None) -> list[str]:
    """The answers behind a local result, in the order of the prompts of the task.

    Args:
        result: the result.
        opened: its task with the data.
        root: folder of the cache; default `cached_outputs_folder`.

    Raises:
        ResultError: they are missing, or some questions could not be asked.
        CacheError: they are damaged, or answer other prompts.
    """
    from audio_compositionality.evaluator.run.cache import answer_cache, cached_outputs_folder

    cache = answer_cache(result.model.card(), opened, cached_outputs_folder() if root is None else Path(root))
    _check_whole(cache, "answers", result, opened)
    content = cache.load()
    if content.errors:
        raise ResultError(f"{len(content.errors)} clips have no answer, such as {cache.ids[min(content.errors)]}")
    return list(content.answers)


def stored_outputs(result: Result, opened: OpenedTask, root: str | Path | None = None) -> Outputs:
    """The outputs behind a local result: see `stored_answers` and `stored_embeddings`."""
    if opened.prompts:
        return Outputs(answers=stored_answers(result, opened, root))
    return opened.outputs(stored_embeddings(result, opened, root))


def _loaded(cache: EmbeddingCache, result: Result, opened: OpenedTask) -> NDArray[np.floating]:
    """Return all embeddings of a cache; raise ResultError if some are missing."""
    _check_whole(cache, "embeddings", result, opened)
    content = cache.load()
    if content.errors:
        raise ResultError(f"{len(content.errors)} clips have no embedding, such as {cache.ids[min(content.errors)]}")
    return content.embeddings


def _check_whole(cache: ShardCache[Any], what: str, result: Result, opened: OpenedTask) -> None:
    absent = sum(not cache.has(shard) for shard in range(cache.num_shards))
    if absent:
        assert cache.folder is not None
        raise ResultError(
            f"{result.model.id}: {absent} of {cache.num_shards} files of its {what} are missing from the cache "
            f"{cache.folder.parents[1]}. Give the right folder with --cache, or compute them again: "
            f"{scoring_command(result, opened)}"
        )
