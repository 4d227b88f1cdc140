"""The work of an evaluation before it begins, as parts of one bar: texts, clips, questions and scores that are left."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from audio_compositionality.dataset_builder.data import Clip, Configuration
from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.support.progress import Part

from .before import questions_left
from .embeddings import batch_size_of, embedder_of, models_by_pass, open_store, text_store
from .opened import OpenedTask
from .options import RunOptions
from .outputs import can_do
from .processes import Processes
from .store import EmbeddingStore, answer_store

WORTH_TIMING = 64
"""Clips that a model has to have left for a few to be embedded beforehand to see how long it takes."""

READ = 6
"""Clips that are rendered or read beforehand."""

TRIED_TEXTS = 8
"""Texts that are embedded beforehand."""

TIMINGS, TIMING_SECONDS = 10, 2.0
"""Most batches that are timed beforehand, and the seconds after which there are no more."""

FIT_STEP, FIT_DIM, FIT_GROWTH = 0.002, 80.0, 1.6
"""Seconds of a step of a fit of a small embedding, the size of one that takes twice as long, and the power of the size
with which the rest grows: 600 steps took 2.8 s at 128, 7.7 s at 256 and 51 s at 768 on one core. A fit that stops early
takes less."""


def score_part(card: ModelCard, opened: OpenedTask) -> tuple[Hashable, Part]:
    """The scoring of a model in a task as a part of the work, and its key."""
    info = opened.task.info
    key = ("score", card.id, card.revision, card.options.layer, card.options.pooling, info.name)
    if not any(measure.fitted for measure in info.measures):
        # Scores without a fit take no time beside the rest, until one of them shows how long it took.
        return key, Part(f"{card.id}, scores of {info.title}", "fit", 1, ("score", info.name), 1.0, 0.0)
    size = 1 + (float(card.output_dim or 1) / FIT_DIM) ** FIT_GROWTH
    steps, seeds = opened.settings.get("max_steps"), opened.settings.get("seeds")
    seconds = FIT_STEP * size * steps * len(seeds) if steps and seeds else None
    return key, Part(f"{card.id}, scores of {info.title}", "fit", 1, ("score", info.name), size, seconds)


def work_of(
    models: Sequence[Model],
    opened: Sequence[OpenedTask],
    done: Collection[tuple[int, str]],
    options: RunOptions,
    processes: Processes,
) -> dict[Hashable, Part]:
    """The work that is left, by the keys under which `support.progress.during` is called.

    Where a bar is shown and several models have many clips left, each embeds a few first: models differ a
    hundredfold.

    Args:
        models: the models.
        opened: the tasks.
        done: pairs (number of a model, name of a task) that will not be run.
        options: how models are run.
        processes: the processes that share the work.
    """
    numbers = {id(model): number for number, model in enumerate(models)}
    parts: dict[Hashable, Part] = {}
    embedded: list[tuple[list[Model], Configuration]] = []
    for group in models_by_pass(models):
        filled: dict[str, list[Model]] = {}
        for model in group:
            for one in opened:
                if not can_do(one.task, model) or (numbers[id(model)], one.task.info.name) in done:
                    continue
                key, part = score_part(model.card, one)
                parts[key] = part
                parts |= _asked_or_read(model, one, options)
                if not ("audio" in model.abilities and one.clip_ids) or _is_asked(model, one):
                    continue
                embedder = embedder_of(model, one)
                if embedder is not model:
                    embedded.append(([embedder], one.configuration))
                    continue
                recipe = one.configuration.recipe
                if recipe not in filled:
                    filled[recipe] = []
                    embedded.append((filled[recipe], one.configuration))
                if not any(other is model for other in filled[recipe]):
                    filled[recipe].append(model)
    return {**parts, **clips_of(embedded, options, processes)}


def clips_of(
    embedded: Sequence[tuple[Sequence[Model], Configuration]], options: RunOptions, processes: Processes
) -> dict[Hashable, Part]:
    """The clips that are left, as `work_of` has them.

    Args:
        embedded: pairs of a model, alone or as layers that take one pass, and a configuration.
        options, processes: see `work_of`.
    """
    parts: dict[Hashable, Part] = {}
    of_clips: dict[Hashable, tuple[Model, Configuration]] = {}
    for layers, configuration in embedded:
        stores = [open_store(layer, configuration, options) for layer in layers]
        model, store = layers[0], stores[0]
        left = _left_in(stores, processes.stretch_of(store.num_shards), options)
        parts[store.key] = Part(f"{model.card.id}, {configuration.recipe}", "clip", left, ("clips", model.card.id))
        of_clips[store.key] = (model, configuration)
    return {**parts, **_timed(parts, of_clips, options)}


def _is_asked(model: Model, opened: OpenedTask) -> bool:
    return bool(opened.prompts) and "answer" in model.abilities


def _asked_or_read(model: Model, opened: OpenedTask, options: RunOptions) -> dict[Hashable, Part]:
    """The questions or texts of a task that are left for a model."""
    name = f"{model.card.id}, {opened.configuration.recipe}"
    if _is_asked(model, opened):
        answers = answer_store(model.card, opened, options.store)
        left = questions_left(model.card, opened, options)
        return {answers.key: Part(name, "question", left, ("answers", model.card.id))}
    if not (opened.texts and "text" in model.abilities):
        return {}
    store = text_store(model.card, opened, options)
    left = _left_in([store], range(store.num_shards), options)
    seconds = _seconds_of_text(model, opened.unique_texts) if options.progress and left >= WORTH_TIMING else None
    return {store.key: Part(f"{name}, texts", "text", left, ("texts", model.card.id), seconds=seconds)}


def _seconds_of_text(model: Model, texts: Sequence[str]) -> float | None:
    """Seconds that a model takes for a text, in a small batch; None where it cannot tell."""
    some = list(texts[:TRIED_TEXTS])
    return _seconds_of(lambda count: model.embed_text(some[:count]), len(some))


def _left_in(stores: Sequence[EmbeddingStore], shards: Sequence[int], options: RunOptions) -> int:
    """Items of some shards that any of the stores of one pass lacks."""
    missing = [
        shard
        for shard in shards
        if options.force or not all(store.has(shard) or store.awaits_check(shard) for store in stores)
    ]
    return sum(len(stores[0].items(shard)) for shard in missing)


def _timed(
    parts: Mapping[Hashable, Part], of_clips: Mapping[Hashable, tuple[Model, Configuration]], options: RunOptions
) -> dict[Hashable, Part]:
    """The parts with clips, with their sizes in seconds of sound and, where that is worth it, seconds a clip."""
    left = {key: given for key, given in of_clips.items() if parts[key].items}
    if not options.progress or not left:
        return {}
    firsts = {configuration.recipe: _First.of(configuration) for _, configuration in left.values()}
    many = {id(model) for key, (model, _) in left.items() if parts[key].items >= WORTH_TIMING}
    rates: dict[tuple[int, float], float | None] = {}
    timed: dict[Hashable, Part] = {}
    for key, (model, configuration) in left.items():
        first = firsts[configuration.recipe]
        place = (id(model), first.length)
        if id(model) in many and len(many) > 1 and place not in rates:
            rates[place] = _seconds_of_clip(model, first.clip, batch_size_of(model, options))
        each = rates.get(place)
        seconds = None if each is None else first.seconds + each
        timed[key] = replace(parts[key], size=first.length, seconds=seconds)
    return {key: _sized(part, [one for one in timed.values() if one.kind == part.kind]) for key, part in timed.items()}


def _sized(part: Part, alike: Sequence[Part]) -> Part:
    """The part, whose size is its time where all of its kind are timed: a model that pads short clips to a window takes
    as long for them as for others."""
    return replace(part, size=part.seconds) if part.seconds and all(one.seconds for one in alike) else part


@dataclass(frozen=True)
class _First:
    """The first clip of a configuration.

    Attributes:
        clip: the clip.
        seconds: that each of the next ones took to be rendered or read.
        length: in seconds of sound.
    """

    clip: Clip
    seconds: float
    length: float

    @classmethod
    def of(cls, configuration: Configuration) -> _First:
        count = min(len(configuration.clip_ids), READ)
        clips = configuration.clips(range(count), keep_invalid=True)
        # The first one waits for what is made once.
        clip = next(clips)
        started = time.perf_counter()
        rest = sum(1 for _ in clips)
        seconds = (time.perf_counter() - started) / max(rest, 1)
        return cls(clip, seconds, max(len(clip.waveform) / clip.sample_rate, 0.01))


def _seconds_of_clip(model: Model, clip: Clip, batch_size: int) -> float | None:
    """Seconds that a model takes for a clip, in a batch as large as those to come; None where it cannot tell."""
    batch = np.repeat(np.asarray(clip.waveform)[None], batch_size, axis=0)
    return _seconds_of(lambda count: model.embed(batch[:count], clip.sample_rate), batch_size)


def _seconds_of(embed: Callable[[int], object], count: int) -> float | None:
    """Seconds that one of several items takes; None where it cannot be done.

    One is embedded first, to warm up. The first batch may still take ten times as long as the next, so that a short one
    is repeated and the shortest time counts.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            embed(1)
            times: list[float] = []
            while len(times) < TIMINGS and sum(times) < TIMING_SECONDS:
                started = time.perf_counter()
                embed(count)
                times.append(time.perf_counter() - started)
            return min(times) / count
    except Exception:
        # Whatever is wrong with the model or the items is raised where it counts.
        return None
