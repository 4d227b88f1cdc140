"""Outputs of a model in a task: embeddings of clips and texts, answers to prompts; each computed once."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.encoders.base import ABILITIES, Model, kind_name
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed, with_article
from audio_compositionality.tasks.base import Outputs, Task, TaskError

from .answers import compute_answers
from .cache import CacheKey, EmbeddingCache, EmbeddingShard, stage_of
from .embeddings import embedder_of, fill_caches, fill_texts, open_cache, refuse_skipped, text_cache
from .opened import OpenedTask
from .options import RunOptions
from .processes import Processes


@dataclass(frozen=True)
class Filled:
    """Caches filled earlier in the same call.

    Attributes:
        caches: the caches with all clips.
        seconds: duration of a pass that filled several caches, for those whose results do not state it yet.
    """

    caches: dict[CacheKey, EmbeddingCache] = field(default_factory=dict)
    seconds: dict[CacheKey, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelOutputs:
    """The outputs of a model in a task.

    Attributes:
        opened: the task, without the rows of clips that could not be embedded.
        outputs: for its rows.
        skipped: why a clip could not be embedded, by clip id.
        stage: name of the timed stage, as results state it: ``embed`` if all outputs were computed, ``read`` if all
            came from the cache, ``embed_rest`` if some did, ``embed_layers`` if one pass gave several layers.
        seconds: duration of the stage.
        cut: see `Result.cut_answers`.
        cut_clips: see `Result.cut_clips`.
    """

    opened: OpenedTask
    outputs: Outputs
    skipped: dict[str, str]
    stage: str
    seconds: float
    cut: int | None = None
    cut_clips: int = 0


def check_model_kind(task: Task, model: Model) -> None:
    """Raise if a model lacks an ability that a task needs.

    Raises:
        TaskError: names the ability, and the command that lists models.
    """
    needs = task.info.needs
    if missing := [ability for word, ability in ABILITIES.items() if word in needs - model.abilities]:
        raise TaskError(
            f"'{model.card.id}' cannot {listed([verb for _, verb in missing])} (it has no "
            f"{' and no '.join(method for method, _ in missing)}), and the task {task.info.name} needs "
            f"{with_article(kind_name(needs))}"
        )
    if "text" in needs and not has_text_space(model):
        raise TaskError(
            f"'{model.card.id}' was loaded with a layer or a pooling, and {task.info.name} cannot score it: texts are "
            "embedded in the space of the model's own output. Leave out the layer and the pooling"
        )


def can_do(task: Task, model: Model) -> bool:
    """Whether a model has the abilities that a task needs."""
    try:
        check_model_kind(task, model)
    except TaskError:
        return False
    return True


def warn_of_left_out(models: Sequence[Model], tasks: Sequence[Task], source: str) -> None:
    """Warn of the tasks that models cannot do; for runs without named tasks.

    Args:
        models: the named models.
        tasks: all tasks that could be scored.
        source: of the data.

    Raises:
        InputError: a model can do none of them.
    """
    for model in models:
        lacking = [task.info.name for task in tasks if not can_do(task, model)]
        if lacking and len(lacking) == len(tasks):
            raise InputError(f"the data {source!r} have {', '.join(lacking)}; {model.card.id!r} can do none of them")
        if lacking:
            warnings.warn(f"{model.card.id!r} is left out of {', '.join(lacking)}, which it cannot do", stacklevel=3)


def has_text_space(model: Model) -> bool:
    """Whether clips are embedded at the model's own output, the space in which texts are embedded."""
    return model.card.options.layer is None and model.card.options.pooling is None


def compute_outputs(
    model: Model,
    opened: OpenedTask,
    options: RunOptions,
    processes: Processes,
    filled: Filled | None = None,
    layers: Sequence[Model] = (),
) -> ModelOutputs | None:
    """Return the outputs of a model in a task; cached ones are not computed again.

    Several processes share the embedding of clips and the questions; texts are embedded by the main process.

    Args:
        model: a model.
        opened: the task and its data.
        options: how models are run.
        processes: the processes that share the work.
        filled: caches filled earlier in the same call; the caches filled here are added.
        layers: models that are layers of the same one and will be scored: their embeddings are computed in the
            same pass.

    Returns:
        the outputs in the main process, None in others.

    Raises:
        ClipError: a clip cannot be embedded, and `options.skip_invalid` is not given.
        TaskError: too little is left without those clips, or a model that learns has nothing to learn from.
        ModelError: answers are not texts, or their number differs from the number of prompts.
        CacheError: cached outputs are damaged.
        ProcessError: another process has failed.
    """
    started = time.perf_counter()
    if opened.prompts and "answer" in model.abilities:
        answered = compute_answers(model, opened, options, processes)
        if answered is None:
            return None
        outputs, elapsed = Outputs(answers=answered.answers), time.perf_counter() - started
        return ModelOutputs(
            answered.opened, outputs, answered.skipped, answered.stage, elapsed, answered.cut, answered.shortened
        )
    texts, text_stage = None, ""
    if processes.is_main and opened.texts and "text" in model.abilities:
        # Texts first: one that is too long, or a missing tokenizer, should not cost an hour of clips.
        text_shards = text_cache(model.card, opened, options)
        text_stage = stage_of(text_shards, range(text_shards.num_shards), options.force)
        fill_texts(text_shards, model, opened, options)
        texts = dict(zip(opened.unique_texts, text_shards.load().embeddings, strict=True))
    cache, stage, seconds = None, "embed", None
    if opened.clip_ids and "audio" in model.abilities:
        embedder = embedder_of(model, opened)
        # Frames are wrapped layer by layer: no pass is shared.
        beside = [other for other in layers if "audio" in other.abilities and other is not model and embedder is model]
        filled = Filled() if filled is None else filled
        cache, stage, seconds = _filled_cache([embedder, *beside], opened, options, processes, filled)
    if not processes.is_main:
        return None
    skipped: dict[str, str] = {}
    clips = np.zeros((0, 0), np.float32)
    if cache is not None:
        opened, clips, skipped = embedded_rows(cache, cache.load(), opened, options.skip_invalid)
    if texts is not None and seconds is None:
        stage = text_stage if cache is None else stage if stage == text_stage else "embed_rest"
    seconds = time.perf_counter() - started if seconds is None else seconds
    said = np.stack([texts[text] for text in opened.texts]) if texts else np.zeros((0, 0), np.float32)
    return ModelOutputs(opened, Outputs(clips=clips, texts=said), skipped, stage, seconds)


def _filled_cache(
    models: Sequence[Model], opened: OpenedTask, options: RunOptions, processes: Processes, filled: Filled
) -> tuple[EmbeddingCache, str, float | None]:
    """Return the filled cache of the first of `models`, the stage (see `ModelOutputs`) and the seconds of a pass over
    several layers, else None.

    The caches of the other models, which are layers of the same one, are filled in the same pass. A cache that an
    earlier task of the same recipe has filled is reused.
    """
    caches = [open_cache(model, opened.configuration, options) for model in models]
    key = caches[0].key
    if key in filled.caches:
        seconds = filled.seconds.pop(key, None)
        return filled.caches[key], "read" if seconds is None else "embed_layers", seconds
    wanted = [place for place, cache in enumerate(caches) if cache.key not in filled.caches]
    caches, models = [caches[place] for place in wanted], [models[place] for place in wanted]
    share = processes.stretch_of(caches[0].num_shards)
    stages = [stage_of(cache, share, options.force) for cache in caches]
    started = time.perf_counter()
    fill_caches(caches, models, opened.configuration, options, processes)
    elapsed = time.perf_counter() - started
    in_pass = [cache.key for cache, stage in zip(caches, stages, strict=True) if stage != "read"]
    filled.caches.update({cache.key: cache for cache in caches})
    if len(in_pass) < 2 or key not in in_pass:
        return caches[0], stages[0], None
    filled.seconds.update(dict.fromkeys(in_pass[1:], elapsed))
    return caches[0], "embed_layers", elapsed


def embedded_rows(
    cache: EmbeddingCache, content: EmbeddingShard, opened: OpenedTask, skip_invalid: bool
) -> tuple[OpenedTask, NDArray[np.floating], dict[str, str]]:
    """Return a task without the rows of clips that have no embedding, the embeddings of its clips [clips, dim], and the
    reasons for the missing ones by clip id.

    Raises:
        ClipError: clips without an embedding exist and may not be left out.
        TaskError: the remaining rows cannot be scored.
    """
    needed = set(opened.clip_ids)
    skipped = {cache.ids[place]: why for place, why in content.errors.items() if cache.ids[place] in needed}
    if not skipped:
        return opened, opened.clip_outputs(content.embeddings), {}
    if not skip_invalid:
        refuse_skipped(cache, content)
    left = opened.without(list(skipped))
    return left, left.clip_outputs(content.embeddings), skipped
