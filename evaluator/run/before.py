"""Checks before the first clip: token limits of answers, lengths of clips, numbers of questions, and results of other
data in the folder."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from audio_compositionality.encoders.base import Model, ModelCard
from audio_compositionality.encoders.language_models.endpoint_settings import SERVER
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import listed

from .opened import OpenedTask
from .options import RunOptions
from .outputs import can_do
from .store import answer_store


def with_long_answers(models: Sequence[Model], opened: Sequence[OpenedTask]) -> list[Model]:
    """Models with their limit of tokens raised to the need of the tasks; unchanged where no task needs more."""
    needed = max((one.new_tokens or 0 for task in opened for one in task.inputs), default=0)
    return [
        model if model.new_tokens is None or model.new_tokens >= needed else model.with_new_tokens(needed)
        for model in models
    ]


def warn_of_other_data(out: Path, opened: Sequence[OpenedTask]) -> None:
    """Warn, a line per task, of results of other data in the folder: they stay, and are not compared with the new ones.

    Args:
        out: folder of results.
        opened: the tasks to be scored.
    """
    for one in opened:
        theirs: Counter[str] = Counter()
        for path in sorted(out.glob(f"*/*/{one.task.info.name}.json")):
            try:
                result = Result.loads(path.read_bytes())
            except (OSError, ResultError):
                # A comparison of the results reports it.
                continue
            if result.fingerprint != one.configuration.fingerprint:
                theirs[f"{result.dataset} ({result.fingerprint[:8]})"] += 1
        if theirs:
            source = f"{one.configuration.source} ({one.configuration.fingerprint[:8]})"
            there = listed([f"{count:,} on {name}" for name, count in theirs.items()])
            warnings.warn(
                f"{out} holds results of {one.task.info.title} on other data, {there}; now on {source}. Tables and the "
                "report keep them apart, under the name of their data; another --out keeps the files apart",
                stacklevel=3,
            )


def questions_left(card: ModelCard, opened: OpenedTask, options: RunOptions) -> int:
    """How many questions of a task are left for a model: those without an answer in the store."""
    store = answer_store(card, opened, options.store)
    if options.force:
        return len(store.ids)
    missing = (shard for shard in range(store.num_shards) if not store.has(shard))
    return sum(len(store.items(shard)) - len(store.begun(shard)) for shard in missing)


def check_questions_asked(
    models: Sequence[Model],
    opened: Sequence[OpenedTask],
    done: Collection[tuple[int, str]],
    options: RunOptions,
) -> None:
    """Refuse more questions than allowed, before the first question.

    Args:
        models: the models.
        opened: the tasks.
        done: pairs (number of a model, name of a task) that will not be run.
        options: with the limit of questions to a model behind a server.

    Raises:
        InputError: there are more.
    """
    for model, asked in _to_be_asked(models, opened, done):
        count = sum(questions_left(model.card, one, options) for one in asked)
        most = options.max_questions
        if most is not None and model.device == SERVER and count > most:
            raise InputError(
                f"'{model.card.id}' is to be asked {count:,} questions, and no more than {most:,} are allowed (--set "
                f"max_questions=...): allow {count:,}, ask each in one order of its options, or give data with fewer "
                "questions. None was asked"
            )


def check_lengths(
    models: Sequence[Model],
    opened: Sequence[OpenedTask],
    done: Collection[tuple[int, str]],
    options: RunOptions,
) -> None:
    """Refuse clips that are longer than a model's input before anything is run, as far as rows state their length.

    Of the clips that are too long by their rows, the longest is read; where clips may be left out, the shortest of all.

    Args:
        models: the models.
        opened: the tasks.
        done: see `check_questions_asked`.
        options: whether clips may be left out.

    Raises:
        InputError: a model's input is shorter than the longest clip, or than all clips where some may be left out.
    """
    for model, asked in _to_be_asked(models, opened, done):
        limit = model.limit_seconds
        for one in asked:
            if limit is not None and questions_left(model.card, one, options):
                _check_length(model.card.id, limit, one, options.skip_invalid)


def _check_length(model: str, limit: float, opened: OpenedTask, skip_invalid: bool) -> None:
    """Refuse a task whose clips are too long for a model; arguments and errors as in `check_lengths`."""
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
            f"'{model}' hears {limit:g} s at most, and {count:,} of {len(timed):,} questions of "
            f"{opened.configuration.recipe} are about longer clips, such as '{id}' of {seconds:g} s: give shorter "
            f"ones{left}. Nothing was run"
        )


def _to_be_asked(
    models: Sequence[Model], opened: Sequence[OpenedTask], done: Collection[tuple[int, str]]
) -> Iterator[tuple[Model, list[OpenedTask]]]:
    """The models that answer, each with the tasks that it will be asked; arguments as in `check_questions_asked`."""
    for number, model in enumerate(models):
        if "answer" in model.abilities:
            possible = [one for one in opened if one.prompts and can_do(one.task, model)]
            yield model, [one for one in possible if (number, one.task.info.name) not in done]
