"""Making a submission of a local result: its embeddings are rounded, and what is submitted is the score of those."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.evaluator.results.result import Model, Result, ResultError, SampleTable, load_result
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.registry import load_task

from .rounded import RoundedEmbeddings
from .submission import Submission, outputs_problem, policy_problem, preset_with, read_result
from .submission_files import EMBEDDINGS, EMBEDDINGS_LIMIT, RESULT, SAMPLES, folder_of, submission_id

if TYPE_CHECKING:
    from audio_compositionality.evaluator.run.opened import OpenedTask
    from audio_compositionality.evaluator.run.store import EmbeddingStore


def make_submission(
    path: str | Path,
    data: Data,
    *,
    store: str | Path | None = None,
    paradigm: str | None = None,
    licence: str | None = None,
    with_embeddings: bool = True,
    device: str | None = None,
    progress: bool = True,
) -> Submission:
    """Make a submission of a local result.

    Its embeddings are taken from the store and rounded to 16 bits, and what is submitted is the score of the rounded
    ones, so that whoever recomputes it gets the same. The same result gives the same bytes: date and seconds stay
    those of the evaluation.

    Args:
        path: JSON file of the result, as `evaluate_models` writes it.
        data: its data.
        store: root of the `EmbeddingStore`; default `store_root`.
        paradigm, licence: see `ModelCard`; default, what the result says.
        with_embeddings: without them the result is submitted as it is, and stays self-reported.
        device: torch device of fits.
        progress: show bars of the fits.

    Raises:
        ResultError: the result cannot be submitted, or its embeddings are not in the store: says why, and what to do.
        StoreError: stored embeddings are damaged.
        AudioCompositionalityError: the data cannot be used, or an unknown task or device.
    """
    from audio_compositionality.evaluator.run.opened import open_task

    local, samples = load_result(Path(path))
    task = load_task(local.task)
    _check_data(local, data, task.info.recipe)
    opened = open_task(task, data)
    problem = policy_problem(local, opened) or (outputs_problem(opened) if with_embeddings else None)
    if problem is not None:
        raise ResultError(f"{path}: {problem}")
    result = _stated(local, _shown_source(opened), paradigm, licence)
    files: dict[str, bytes] = {}
    rounded: RoundedEmbeddings | None = None
    if with_embeddings:
        ids = opened.embedded_ids
        _check_size(path, len(ids) * (local.model.output_dim or 0) * 2)
        rounded = RoundedEmbeddings.of(ids, stored_embeddings(local, opened, store), len(opened.unique_texts))
        files[EMBEDDINGS] = rounded.dumps()
        _check_size(path, len(files[EMBEDDINGS]))
        computed, samples = rescored(result, opened, rounded.restored(), str(resolve_device(device)), progress)
        result = computed.model_copy(update={"versions": local.versions, "seconds": local.seconds})
    files |= {RESULT: result.dumps().encode(), SAMPLES: samples.dumps().encode()}
    try:
        # Whatever the checks of what strangers send would refuse is refused here already.
        read_result(files[RESULT])
        folder_of(result, submission_id(files))
    except ResultError as error:
        raise ResultError(f"{path}: {error}") from None
    return Submission(files, result, samples, rounded, local)


def _check_data(result: Result, data: Data, recipe: str) -> None:
    fingerprint = data.configuration(recipe).fingerprint
    if result.fingerprint != fingerprint:
        raise ResultError(
            f"the result is of data with the fingerprint {result.fingerprint[:12]}…, {data.source} has "
            f"{fingerprint[:12]}…: give the data that it was computed from"
        )


def _stated(local: Result, dataset: str, paradigm: str | None, licence: str | None) -> Result:
    """The result with what the submitter states about data and model; checked like every other value."""
    stated = {"paradigm": paradigm, "licence": licence}
    model = local.model.model_dump() | {name: text for name, text in stated.items() if text is not None}
    for name, text in stated.items():
        if text is not None and not (0 < len(text) <= 500 and text.isprintable()):
            raise ResultError(f"the {name} is {shortened(repr(text), 80)}; give 1 to 500 printable characters")
    return local.model_copy(update={"dataset": dataset, "model": Model.model_validate(model)})


def _check_size(path: str | Path, size: int) -> None:
    if size > EMBEDDINGS_LIMIT:
        raise ResultError(
            f"{path}: its embeddings have {size:,} bytes in 16 bits, at most {EMBEDDINGS_LIMIT:,} can be submitted; "
            "without embeddings the result can be submitted, and stays self-reported"
        )


def _shown_source(opened: OpenedTask) -> str:
    """Where the data are from, without the folders of somebody's machine."""
    configuration = opened.configuration
    preset = preset_with(configuration.recipe, configuration.fingerprint)
    if preset is not None:
        return preset
    source = configuration.source
    return shortened(Path(source).resolve().name or "data" if Path(source).is_dir() else source, 200)


def stored_embeddings(result: Result, opened: OpenedTask, root: str | Path | None = None) -> NDArray[np.floating]:
    """The embeddings that a local result was computed from, [clips and different texts of the task, dim]; see
    `OpenedTask.embedded_ids`.

    Args:
        result: the result.
        opened: its task with the data.
        root: of the store; default `store_root`.

    Raises:
        ResultError: they are not there, or some clips could not be embedded.
        StoreError: they are damaged, or of other clips.
    """
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.evaluator.run.store import EmbeddingStore, StoreKey, store_root
    from audio_compositionality.evaluator.run.texts import text_store

    configuration, card = opened.configuration, result.model.card()
    folder = store_root() if root is None else Path(root)
    parts: list[NDArray[np.floating]] = []
    if opened.clip_ids:
        key = StoreKey.of(card, configuration.recipe, configuration.fingerprint)
        store = EmbeddingStore(folder, key, configuration.clip_ids)
        parts.append(opened.clip_outputs(_loaded(store, result.model.id)))
    if opened.texts:
        parts.append(_loaded(text_store(card, opened, RunOptions(store=folder)), result.model.id))
    return np.concatenate(parts)


def _loaded(store: EmbeddingStore, model: str) -> NDArray[np.floating]:
    """All embeddings of a store; raises ResultError where some are missing."""
    absent = sum(not store.has(shard) for shard in range(store.num_shards))
    if absent:
        raise ResultError(
            f"{store.folder} lacks {absent} of {store.num_shards} files of the embeddings of {model}: "
            "--store says in which folder they are; where they are gone, `audio-compositionality evaluate --force` "
            "with the model and options of the result makes them again"
        )
    content = store.load()
    if content.errors:
        raise ResultError(f"{len(content.errors)} clips have no embedding, such as {store.ids[min(content.errors)]}")
    return content.embeddings


def rescored(
    result: Result, opened: OpenedTask, embeddings: NDArray[np.floating], device: str, progress: bool
) -> tuple[Result, SampleTable]:
    """A result computed again from embeddings [clips and different texts of the task, dim], and its samples.

    What it says of model, data and date is taken from `result`.

    Args:
        result: that is computed again.
        opened: its task with the data.
        embeddings: of the clips and texts of the task, see `OpenedTask.embedded_ids`.
        device: torch device of fits.
        progress: show bars of fits.

    Raises:
        ValueError, FloatingPointError: embeddings that cannot be scored.
    """
    from audio_compositionality.evaluator.run.evaluate import score_outputs

    ran_on = result.device.split(", fit on ")[0]
    outputs, card = opened.outputs(embeddings), result.model.card()
    computed, samples = score_outputs(
        opened, outputs, card, ran_on=ran_on, fit_device=device, progress=progress, seconds={}
    )
    kept = ("precision_deviation", "skipped", "dataset", "date")
    return computed.model_copy(update={name: getattr(result, name) for name in kept}), samples
