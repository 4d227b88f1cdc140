"""Answers of a model to the prompts of a task; a model that learns is trained first.

Answers come as a stream, see `Model.answers`, and each is cached as soon as it arrives. Clips are read as the model
takes the questions about them.
"""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from audio_compositionality.dataset_builder.data import PAUSE, Clip, Row
from audio_compositionality.encoders.base import (
    LETTERS,
    WITHOUT_TEXT,
    By,
    ClipError,
    GivenAnswer,
    GivenClip,
    GivenQuestion,
    Model,
    ModelCard,
    ModelError,
    resample,
)
from audio_compositionality.support.progress import during
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.base import GENERATE, Scoring, TaskError

from .cache import Answer, AnswerCache, AnswerShard, answer_cache, scoring_of, stage_of
from .embeddings import batch_size_of, clips_at, recorded_error
from .folds import FOLDS, CrossFitted
from .opened import OpenedTask
from .options import ITEMS_PER_SHARD, RunOptions
from .processes import Processes


def scoring_problem(model: Model, scoring: Scoring) -> str | None:
    """Return why a model cannot be scored in this way; None if it can."""
    if scoring == GENERATE or scoring in model.scorings:
        return None
    if model.scorings:
        valid = ", ".join((GENERATE, *model.scorings))
        return (
            f"{model.card.id!r} cannot be scored by {scoring}, since it does not compute these likelihoods; valid "
            f"choices of scoring are {valid}"
        )
    return (
        f"{model.card.id!r} computes no likelihoods of options (it lacks score_options), so it cannot be scored by "
        f"{scoring}: score its written answers (--set scoring={GENERATE})"
    )


def questions_per_call(model: Model, options: RunOptions) -> int:
    """Return the number of questions per call: the requested number, or by default the batch size of clips.

    A model that forms its own batches, none above that size, has its own number.

    Raises:
        InputError: the requested number is less than 1 or more than 64.
    """
    size = batch_size_of(model, options)
    wanted, batch = model.questions_per_call, model.batch_size
    return wanted if wanted and batch and (options.batch_size is None or batch <= size) else size


TRAIN = "train"
"""The split that models learn from."""


@dataclass(frozen=True)
class Answered:
    """The answers of a model to a task.

    Attributes:
        opened: the task, without the rows of clips that could not be used.
        answers: to the prompts of its rows.
        skipped: why questions about a clip have no answers, by clip id.
        stage: see `stage_of`.
        cut: number of answers that reached the limit of tokens; None if the model states no reason for ending.
        shortened: number of questions whose clips are longer than the model's input; it got their beginning only.
    """

    opened: OpenedTask
    answers: list[str]
    skipped: dict[str, str]
    stage: str
    cut: int | None
    shortened: int


def learning_problem(model: Model, opened: OpenedTask) -> str | None:
    """Return why a model cannot learn a task; None if it can, or if it does not learn.

    A model learns from the split ``train`` of the same configuration. The fingerprint covers all splits, so cached
    answers come from the same training. Without this split, it learns from the other questions, see `CrossFitted`.
    """
    if "learn" not in model.abilities or not opened.prompts or _train_rows(opened):
        return None
    groups = len(set(opened.samples.clusters.tolist()))
    if groups >= FOLDS:
        return None
    configuration = opened.configuration
    return (
        f"{model.card.id!r} learns from questions and their answers, but {configuration.source} has no row of "
        f"{configuration.recipe} in the split {TRAIN!r}, and questions of {groups} groups; {FOLDS} are needed to learn "
        "from the other groups: give more data, or leave the model out"
    )


def asking_problem(model: Model, opened: OpenedTask) -> str | None:
    """Return why a model cannot answer the prompts of a task; None if it can, or if it does not answer prompts."""
    if not opened.prompts or "answer" not in model.abilities:
        return learning_problem(model, opened)
    lacking = model.needs_columns - opened.rows[0].keys()
    if lacking:
        return (
            f"{model.card.id!r} needs questions with {listed(sorted(lacking))}, which the questions of "
            f"{opened.task.info.name} lack"
        )
    return scoring_problem(model, scoring_of(opened)) or learning_problem(model, opened)


def compute_answers(model: Model, opened: OpenedTask, options: RunOptions, processes: Processes) -> Answered | None:
    """Return the answers to all prompts, except prompts about invalid clips.

    Questions with cached answers are not asked again; a model that learns is trained only if questions are left.
    Several processes each ask a share of the questions and wait for each other.

    Args:
        model: the model.
        opened: the task and its data.
        options: how models are run.
        processes: the processes that share the work.

    Returns:
        the answers in the main process, None in others.

    Raises:
        ClipError: there are invalid clips that may not be left out.
        TaskError: the remaining rows cannot be scored, or the model has nothing to learn from.
        ModelError: answers are not texts, or their number differs from the number of prompts.
        CacheError: cached answers are damaged, or answers of another process are not visible.
        ProcessError: another process has failed.
    """
    ids, rows = opened.asked_about, _prompted_rows(opened)
    cache = answer_cache(model.card, opened, options.cache)
    # A process with less memory might choose smaller calls, and so another share.
    size = int(processes.from_main(str(questions_per_call(model, options))))
    # One process asks all questions of a call: the other questions in a call may change an answer within rounding.
    together = min(-(-size // cache.items_per_shard), -(-cache.num_shards // processes.count)) or 1
    share = [shard for shard in range(cache.num_shards) if shard // together % processes.count == processes.rank]
    stage = stage_of(cache, share, options.force)
    if stage != "read" and "learn" in model.abilities:
        model = _taught(model, opened, options)
    about = other_clips(opened) if model.asks_about_others else ids
    for shard in share if options.force else ():
        cache.discard(shard)
    if not options.skip_invalid:
        for shard in filter(cache.has, range(cache.num_shards)):
            for place, why in cache.read(shard).errors.items():
                raise recorded_error(why, cache.folder, place, about[cache.items(shard).start + place][0])
    title = f"{model.card.id}, {cache.key.recipe}"
    if processes.count > 1:
        title += f" (process 1 of {processes.count}, its share)"
    for shard in filter(cache.has, share):
        cache.forget_begun(shard)
    missing = [shard for shard in share if not cache.has(shard)]
    answers = {place: answer for shard in missing for place, answer in cache.begun(shard).items()}
    left = [place for shard in missing for place in cache.items(shard) if place not in answers]
    with during(title, "question", len(left), shown=options.progress and processes.is_main) as advance:
        scoring = scoring_of(opened)
        problem = scoring_problem(model, scoring)
        if problem is not None:
            raise TaskError(problem)
        errors: dict[int, str] = {}
        refused: list[ClipError] = []
        # As many clips are read at a time as fill whole shards: opening stored rows again takes longer.
        read = -(-size // cache.items_per_shard) * cache.items_per_shard
        questions = _questions(model, opened, about, left, read, options.skip_invalid, errors, refused)
        by: By | None = None if scoring == GENERATE else "options" if scoring == "options" else "letters"
        shards = dict.fromkeys(place // cache.items_per_shard for place in [*left, *answers])
        with closing(model.answers(questions, by, size=size)) as stream:
            for place, given in stream:
                advance(1)
                if isinstance(given, ClipError):
                    errors[place] = given.reason
                    if not options.skip_invalid:
                        why = f"{given.reason}; --skip-invalid leaves it out"
                        refused.append(ClipError(why, place, about[place][0]))
                    continue
                answers[place] = checked_answer(given, opened.options[place], model.card)
                shard = place // cache.items_per_shard
                if not _write_whole(cache, shard, answers, errors):
                    cache.add(shard, [(place, answers[place])])
        if refused:
            raise refused[0]
        for shard in shards:
            if not cache.has(shard):
                _write_whole(cache, shard, answers, errors)
    processes.wait()
    if not processes.is_main:
        return None
    cache.check_complete()
    content = cache.load()
    skipped = {ids[place][0]: why for place, why in content.errors.items()}
    scored = opened.without(list(skipped)) if skipped else opened
    kept = {row["id"] for row in scored.rows}
    texts = [answer for answer, row in zip(content.answers, rows, strict=True) if row["id"] in kept]
    return Answered(scored, texts, skipped, stage, _cut(model.card, content), _shortened(model, scored))


def _write_whole(cache: AnswerCache, shard: int, answers: Mapping[int, Answer], errors: Mapping[int, str]) -> bool:
    """Write a shard if each of its questions has an answer or a reason for a missing one; return whether it was
    written."""
    items = cache.items(shard)
    if not all(place in answers or place in errors for place in items):
        return False
    given = [answers.get(place, ("", {})) for place in items]
    facts = tuple(of_answer for _, of_answer in given)
    failed = {place - items.start: errors[place] for place in items if place in errors}
    cache.write(shard, AnswerShard(tuple(text for text, _ in given), failed, facts if any(facts) else ()))
    return True


def _questions(
    model: Model,
    opened: OpenedTask,
    about: Sequence[tuple[str, ...]],
    places: Sequence[int],
    size: int,
    skip_invalid: bool,
    errors: dict[int, str],
    refused: Sequence[ClipError],
) -> Iterator[GivenQuestion]:
    """Yield the questions at some positions; their clips are read one call at a time.

    The reasons for unusable clips, if these may be left out, are added to `errors`. After a refused clip, no further
    question is yielded.
    """
    rows, prompts, texts = _prompted_rows(opened), opened.prompts, opened.options
    nothing, rate = np.zeros(0, np.float32), model.card.sample_rate
    for _, together in groupby(places, key=lambda place: place // size):
        call = list(together)
        if "labels" in model.abilities:
            # The model has no audio input, so no clip is read for it.
            clips = [Clip("", nothing, rate)] * len(call)
        else:
            clips = clips_about(
                opened,
                [about[place] for place in call],
                skip_invalid,
                longest_asked(model, opened),
                [opened.asked_about[place] for place in call] if model.asks_about_others else (),
            )
        for place, clip in zip(call, clips, strict=True):
            if refused:
                return
            if clip.problem is not None:
                errors[place] = clip.problem
                continue
            given: Clip | GivenClip = clip
            if "labels" in model.abilities or isinstance(model, CrossFitted):
                given = GivenClip(clip.waveform, clip.sample_rate, rows[place])
            yield GivenQuestion(place, [given], prompts[place], texts[place])


def checked_answer(given: GivenAnswer, options: Sequence[str], card: ModelCard) -> Answer:
    """Return an answer as it is cached: its text and facts.

    From log-likelihoods, the text is the letter of the likeliest option (the first of equal ones), or empty if the
    model gives none; the facts contain all of them.

    Raises:
        ModelError: there is not one log-likelihood for each option.
    """
    answer, facts = given
    if isinstance(answer, str):
        return answer, facts
    scores = [float(score) for score in answer]
    if len(scores) != len(options):
        raise ModelError(f"'{card.id}' gave {len(scores)} scores for {len(options)} options; it must give one each")
    if any(score > 0 for score in scores):
        raise ModelError(f"'{card.id}' gave the log-likelihood {max(scores):g}; it must be 0 or less")
    known = [score for score in scores if not math.isnan(score)]
    letter = LETTERS[scores.index(max(known))] if known and max(known) > -math.inf else ""
    # JSON has no numbers that are not finite.
    return letter, {**facts, "log_likelihoods": [score if math.isfinite(score) else None for score in scores]}


def _cut(card: ModelCard, content: AnswerShard) -> int | None:
    """Return the number of answers that reached the limit of tokens, with a warning, since they may not state a choice.

    None if no reason for ending is known. A further warning counts a server's replies without a text.
    """
    only = [facts["only"] for facts in content.facts if "only" in facts]
    for name, words in WITHOUT_TEXT.items():
        if name in only:
            count = f"{only.count(name):,} of {len(content.answers):,}"
            warnings.warn(f"'{card.id}': {words.format(count=count)}", stacklevel=3)
    reasons = [facts["finish_reason"] for facts in content.facts if "finish_reason" in facts]
    cut = reasons.count("length")
    if cut:
        warnings.warn(
            f"'{card.id}': {cut:,} of {len(content.answers):,} answers were cut at the limit of tokens; those without "
            "a choice count as wrong",
            stacklevel=3,
        )
    return cut if reasons else None


def _shortened(model: Model, opened: OpenedTask) -> int:
    """Return the number of questions whose clips are longer than the model's input, with a warning."""
    limit = longest_asked(model, opened)
    if limit is None or "labels" in model.abilities:
        return 0
    asked = list({row["id"]: row for row in _prompted_rows(opened)}.values())
    seconds = {row["id"]: (row.get("duration") or 0) + PAUSE * (len(row.get("files", ("",))) - 1) for row in asked}
    longer = [id for id, lasts in seconds.items() if lasts > limit]
    if longer:
        worst = max(longer, key=seconds.__getitem__)
        warnings.warn(
            f"'{model.card.id}' takes {limit:g} s at most: for {len(longer):,} of {len(asked):,} questions it got only "
            f"the beginning of the sound, for {worst} {limit:g} s of {seconds[worst]:g} s",
            stacklevel=3,
        )
    return len(longer)


def _prompted_rows(opened: OpenedTask) -> list[Row]:
    """Return the row of each prompt."""
    return [row for row, one in zip(opened.rows, opened.inputs, strict=True) for _ in one.prompts]


def _train_rows(opened: OpenedTask) -> list[Row]:
    return [row for row in opened.configuration.rows if row["split"] == TRAIN]


def _taught(model: Model, opened: OpenedTask, options: RunOptions) -> Model:
    """Return the trained model: trained on the split ``train``, or without one on the other questions of each fold.

    Clips are read as the model asks for them.
    """
    problem = learning_problem(model, opened)
    if problem:
        raise TaskError(problem)
    taught = _train_rows(opened)
    rows = taught or list(opened.samples.rows)
    about = learnt_about(opened, rows)
    count = len(about) * (1 if taught else FOLDS - 1)
    with during(f"{model.card.id}, training clips", "clip", count, shown=options.progress) as advance:
        if taught:
            model.learn(rows, _clips_to_learn(opened, about, options.skip_invalid, advance))
            return model
        crossed = CrossFitted(model, opened.samples)
        for fold in range(FOLDS):
            others = crossed.others(fold, rows)
            learnt = [about[place] for place in others]
            clips = _clips_to_learn(opened, learnt, options.skip_invalid, advance)
            crossed.copies[fold].learn([rows[place] for place in others], clips)
    return crossed


def _clips_to_learn(
    opened: OpenedTask, about: Sequence[tuple[str, ...]], keep_invalid: bool, advance: Callable[[float], object]
) -> Iterator[Clip]:
    for start in range(0, len(about), ITEMS_PER_SHARD):
        for clip in clips_about(opened, about[start : start + ITEMS_PER_SHARD], keep_invalid):
            yield clip
            advance(1)


def clips_about(
    opened: OpenedTask,
    about: Sequence[tuple[str, ...]],
    keep_invalid: bool,
    longest: float | None = None,
    instead_of: Sequence[tuple[str, ...]] = (),
) -> list[Clip]:
    """Return the sound of each question; each clip is read once.

    Args:
        opened: the task and its data.
        about: ids of the clips of each question; several are joined to one sound, see `put_together`.
        keep_invalid: return an unusable clip, with its `Clip.problem`, instead of raising an error.
        longest: seconds after which a sound is cut; None for no limit.
        instead_of: for each question, ids of the clips that are replaced; the sound gets their rate, length and
            loudness (see `in_place_of`).

    Raises:
        ClipError: a clip cannot be used, and ``keep_invalid`` is not given.
    """
    places = {id: place for place, id in enumerate(opened.configuration.clip_ids)}
    wanted = (places[id] for ids in (*about, *instead_of) for id in ids)
    clips = {clip.id: clip for clip in clips_at(opened.configuration, wanted).values()}
    sounds = []
    for place, ids in enumerate(about):
        sound = put_together([clips[id] for id in ids])
        if instead_of:
            sound = in_place_of(put_together([clips[id] for id in instead_of[place]]), sound)
        if sound.problem is not None and not keep_invalid:
            raise ClipError(f"{sound.problem}; --skip-invalid leaves it out", place, sound.id)
        most = len(sound.waveform) if longest is None else int(longest * sound.sample_rate)
        sounds.append(sound if len(sound.waveform) <= most else replace(sound, waveform=sound.waveform[:most]))
    return sounds


def in_place_of(own: Clip, other: Clip) -> Clip:
    """Return `other` with the rate, length and loudness of `own`; if one of them is unusable, return that one.

    The sound is repeated or cut, then scaled to the root mean square of `own`, or less so that no sample exceeds full
    scale.
    """
    if own.problem is not None or other.problem is not None:
        return own if other.problem is None else other
    waveform = resample(other.waveform[None], other.sample_rate, own.sample_rate)[0]
    waveform = np.resize(waveform, len(own.waveform))
    wanted, loudness = (float(np.sqrt(np.mean(np.square(one, dtype=np.float64)))) for one in (own.waveform, waveform))
    scale = min(wanted / loudness, 1 / float(np.abs(waveform).max())) if loudness else 1.0
    return replace(other, waveform=(waveform * scale).astype(np.float32), sample_rate=own.sample_rate)


def put_together(clips: Sequence[Clip]) -> Clip:
    """Return several clips joined to one, with pauses of `PAUSE` seconds, or the first unusable one.

    It has the highest of their rates and the id of the first clip.
    """
    first, *rest = clips
    if not rest:
        return first
    for clip in clips:
        if clip.problem is not None:
            return clip
    rate = max(clip.sample_rate for clip in clips)
    pause = np.zeros(round(PAUSE * rate), np.float32)
    parts = [resample(clip.waveform[None], clip.sample_rate, rate)[0] for clip in clips]
    with_pauses = [part for one in parts for part in (one, pause)][:-1]
    return Clip(first.id, np.concatenate(with_pauses), rate)


def longest_asked(model: Model, opened: OpenedTask) -> float | None:
    """Return the seconds to which a model's clips are cut; None if the task cuts none or the model has no limit."""
    return model.limit_seconds if any(one.cuts for one in opened.inputs) else None


def learnt_about(opened: OpenedTask, rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Return the ids of the clips of each row to learn from.

    They are the clips of the row's question; for a row without a question, its first clip that other questions use.

    Raises:
        TaskError: a row has no such clip.
    """
    asked: dict[str, tuple[str, ...]] = {}
    prompted = (row["id"] for row, one in zip(opened.rows, opened.inputs, strict=True) for _ in one.prompts)
    for id, about in zip(prompted, opened.asked_about, strict=True):
        asked.setdefault(id, about)
    names = dict.fromkeys(name for one in opened.inputs for name in one.clips)
    there = set(opened.configuration.clip_ids)
    learnt = []
    for row in rows:
        first = next((id for name in names if (id := f"{row['id']}/{name}") in there), "")
        if not first:
            raise TaskError(f"row {row['id']} has no clip {' or '.join(names)} to learn from")
        learnt.append(asked.get(row["id"], (first,)))
    return learnt


def other_clips(opened: OpenedTask) -> list[tuple[str, ...]]:
    """Return for each prompt the clips of a question of another group, which replace its own.

    All questions form a circle in the order of the SHA-256 of their clips' ids, which is independent of their texts and
    answers. Each prompt gets the clips of the next question of another group. So the result depends on the whole
    configuration, not on a batch. Groups come from the inputs, else from the clusters of the task's samples; a row
    with neither is a group of its own.

    Raises:
        TaskError: all rows are of one group.
    """
    samples = opened.samples
    groups = {id: int(cluster) for id, cluster in zip(samples.ids, samples.clusters, strict=True)}
    prompted = ((row, one) for row, one in zip(opened.rows, opened.inputs, strict=True) for _ in one.prompts)
    group_of: Mapping[tuple[str, ...], object] = {
        about: one.group or groups.get(row["id"], row["id"])
        for about, (row, one) in zip(opened.asked_about, prompted, strict=True)
    }
    if len(set(group_of.values())) < 2:
        raise TaskError("all clips are of one group; this control needs clips of two or more")
    circle = sorted(group_of, key=lambda about: hashlib.sha256("+".join(about).encode()).hexdigest())
    other: dict[tuple[str, ...], tuple[str, ...]] = {}
    following = next(about for about in circle if group_of[about] != group_of[circle[-1]])
    for place in range(len(circle) - 1, -1, -1):
        about, after = circle[place], circle[(place + 1) % len(circle)]
        # The next question; if it is of the same group, the clips that it was given itself.
        following = after if group_of[after] != group_of[about] else following
        other[about] = following
    return [other[about] for about in opened.asked_about]
