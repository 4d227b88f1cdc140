"""Answers of a model to the prompts of a task: each prompt is put once, after training where the model learns.

Prompts go to the model in calls of several; each answer carries facts beside its text.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import PAUSE, Clip, Row
from audio_compositionality.encoders.base import LETTERS, By, ClipError, GivenClip, Model, ModelCard, ModelError
from audio_compositionality.support.progress import during
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.base import GENERATE, Scoring, TaskError

from .asked_clips import clips_about, learnt_about, longest_asked, other_clips
from .embeddings import batch_size_of, recorded_error
from .folds import FOLDS, CrossFitted
from .opened import OpenedTask
from .options import ITEMS_PER_SHARD, RunOptions
from .processes import Processes
from .store import Answer, AnswerShard, AnswerStore, answer_store, scoring_of, stage_of

OnAnswers = Callable[[Sequence[tuple[int, Answer]]], object]
"""Called with answers as soon as they arrive, each with the place of its question."""


@dataclass(frozen=True)
class Answers:
    """The answers of a model to questions.

    Attributes:
        answers: by place; without those that the model only reports as they arrive.
        errors: by place, the reason for a missing answer.
    """

    answers: Mapping[int, Answer]
    errors: Mapping[int, str]


@dataclass(frozen=True)
class Asked:
    """Questions to put to a model.

    Attributes:
        ids: of the clips of each question.
        rows: the row of each question.
        prompts: one per question.
        options: of each prompt, where likelihoods decide the answer; else empty.
        scoring: see `Inputs`.
    """

    ids: Sequence[tuple[str, ...]]
    rows: Sequence[Row]
    prompts: Sequence[str]
    options: Sequence[tuple[str, ...]]
    scoring: Scoring

    @property
    def by(self) -> By:
        """Whether likelihoods are of options or of letters, where likelihoods decide the answer."""
        return "options" if self.scoring == "options" else "letters"

    def of(self, places: Sequence[int]) -> Asked:
        """Some of the questions."""
        return Asked(
            [self.ids[place] for place in places],
            [self.rows[place] for place in places],
            [self.prompts[place] for place in places],
            [self.options[place] for place in places],
            self.scoring,
        )


def scoring_problem(model: Model, scoring: Scoring) -> str | None:
    """Why a model cannot answer under a scoring; None where it can."""
    if scoring == GENERATE or scoring in model.scorings:
        return None
    if model.scorings:
        valid = ", ".join((GENERATE, *model.scorings))
        return (
            f"{model.card.id!r} cannot be scored by {scoring}: it computes no such likelihoods; valid choices of "
            f"scoring are {valid}"
        )
    return (
        f"{model.card.id!r} computes no likelihoods of options (it lacks score_options), so it cannot be scored by "
        f"{scoring}: score its written answers (--set scoring={GENERATE})"
    )


def questions_per_call(model: Model, options: RunOptions) -> int:
    """Questions per call: the model's own number, where it forms batches of its own that do not exceed the requested
    number; else the requested number, or the batch size of clips.

    Raises:
        InputError: the requested number is less than 1 or more than 64.
    """
    size = batch_size_of(model, options)
    wanted, batch = model.questions_per_call, model.batch_size
    return wanted if wanted and batch and (options.batch_size is None or batch <= size) else size


def ask(
    model: Model,
    clips: Sequence[Clip],
    asked: Asked,
    size: int,
    skip_invalid: bool,
    on_answers: OnAnswers,
    on_done: Callable[[int], object],
    *,
    waits: bool = True,
) -> Answers:
    """The answers to questions about clips; none about unusable clips.

    Args:
        model: the model.
        clips: one per question.
        asked: the questions.
        size: questions per call.
        skip_invalid: go on without a clip that the model refuses.
        on_answers: called with answers before their call is complete, by models that report them early.
        on_done: called with a number of questions as soon as these are done, except questions that are only reported.
        waits: whether the model returns the answers; else it only reports them, see `Model.window`.

    Raises:
        ClipError: the model refuses a clip that may not be left out.
        ModelError: answers are no texts or numbers, or their number differs from that of the prompts.
    """
    errors = {place: clip.problem for place, clip in enumerate(clips) if clip.problem is not None}
    answers: dict[int, Answer] = {}
    usable = [place for place in range(len(clips)) if place not in errors]
    on_done(len(errors))
    for start in range(0, len(usable), size):
        batch = usable[start : start + size]
        on_done(len(batch) if waits else 0)
        while batch:
            part = asked.of(batch)
            places = list(batch)

            def tell(some: Sequence[tuple[int, Answer]], places: Sequence[int] = places) -> None:
                on_answers([(places[place], answer) for place, answer in some])

            try:
                with _listening(model, part, tell) as facts:
                    given = _answers(model, [clips[place] for place in batch], part, facts, waits)
            except ClipError as error:
                place = batch[error.row]
                if not skip_invalid:
                    raise ClipError(f"{error.reason}; --skip-invalid leaves it out", place, clips[place].id) from error
                errors[place] = error.reason
                on_done(0 if waits else 1)
                batch = [other for other in batch if other != place]
                continue
            if waits:
                answers |= zip(batch, given, strict=True)
            break
    return Answers(answers, errors)


@contextmanager
def _listening(model: Model, asked: Asked, on_answers: OnAnswers) -> Iterator[dict[int, Mapping[str, Any]]]:
    """While a model answers: passes on the answers that it reports; yields the facts beside them, by place."""
    facts = dict[int, Mapping[str, Any]]()

    def tell(told: Sequence[tuple[int, str | list[float], Mapping[str, Any]]]) -> None:
        answers: list[tuple[int, Answer]] = []
        for place, given, beside in told:
            facts[place] = dict(beside)
            answer = (
                (given, beside) if isinstance(given, str) else _likely(given, asked.options[place], model.card, beside)
            )
            answers.append((place, answer))
        on_answers(answers)

    model.on_answers = tell
    try:
        yield facts
    finally:
        model.on_answers = None


def checked_texts(given: Any, count: int, card: ModelCard) -> tuple[str, ...]:
    """The output of a model, checked to be one text per prompt.

    Raises:
        ModelError: it is not.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ModelError(f"'{card.id}' answered with a {type(given).__name__}; it must give a list of texts")
    if len(given) != count:
        raise ModelError(f"'{card.id}' gave {len(given)} answers to {count} prompts; it must give one to each")
    for answer in given:
        if not isinstance(answer, str):
            raise ModelError(f"'{card.id}' gave a {type(answer).__name__} as an answer; each must be a text (str)")
    return tuple(given)


def _answers(
    model: Model, clips: Sequence[Clip], asked: Asked, facts: Mapping[int, Mapping[str, Any]], waits: bool
) -> list[Answer]:
    """The answers of one call, with the facts that the model reported; empty where it only reports answers."""
    given: list[list[Any]] = [[clip] for clip in clips]
    if isinstance(model, CrossFitted):
        given = [[GivenClip(clip.waveform, clip.sample_rate, row)] for clip, row in zip(clips, asked.rows, strict=True)]
    if "labels" in model.abilities:
        nothing, rate = np.zeros(0, np.float32), model.card.sample_rate
        given = [[GivenClip(nothing, rate, row)] for row in asked.rows]
    if asked.scoring != GENERATE:
        problem = scoring_problem(model, asked.scoring)
        if problem is not None:
            raise TaskError(problem)
        scores = model.score_options(given, asked.prompts, asked.options, asked.by)
        return _likeliest(scores, asked.options, model.card, facts) if waits else []
    texts = model.answer(given, asked.prompts)
    return _with_facts(checked_texts(texts, len(asked.prompts), model.card), facts) if waits else []


def _with_facts(texts: Sequence[str], facts: Mapping[int, Mapping[str, Any]]) -> list[Answer]:
    return [(text, facts.get(place, {})) for place, text in enumerate(texts)]


def _likeliest(
    given: Any, options: Sequence[tuple[str, ...]], card: ModelCard, facts: Mapping[int, Mapping[str, Any]]
) -> list[Answer]:
    """The letter of the likeliest option of each prompt, see `_likely`.

    Raises:
        ModelError: the numbers are not one for each option of each prompt.
    """
    if not isinstance(given, Sequence) or len(given) != len(options):
        raise ModelError(f"'{card.id}' gave no list of scores for each of the {len(options)} prompts")
    rows = enumerate(zip(given, options, strict=True))
    return [_likely(row, texts, card, facts.get(place, {})) for place, (row, texts) in rows]


def _likely(given: Any, options: Sequence[str], card: ModelCard, beside: Mapping[str, Any]) -> Answer:
    """The letter of the likeliest option, the first of equals, with all log-likelihoods; no text where the model gives
    none.

    Raises:
        ModelError: the numbers are not one for each option.
    """
    scores = [float(score) for score in given]
    if len(scores) != len(options):
        raise ModelError(f"'{card.id}' gave {len(scores)} scores of {len(options)} options; it must give one of each")
    if any(score > 0 for score in scores):
        raise ModelError(f"'{card.id}' gave the log-likelihood {max(scores):g}; it must be 0 or less")
    told = [score for score in scores if not math.isnan(score)]
    letter = LETTERS[scores.index(max(told))] if told and max(told) > -math.inf else ""
    # JSON has no numbers that are not finite.
    return letter, {**beside, "log_likelihoods": [score if math.isfinite(score) else None for score in scores]}


TRAIN = "train"
"""The split that models learn from."""


@dataclass(frozen=True)
class Answered:
    """The answers of a model to a task.

    Attributes:
        opened: the task, without the rows of clips that could not be used.
        answers: to the prompts of its rows.
        skipped: by clip id, the reason why its questions have no answers.
        stage: see `stage_of`.
        cut: number of answers that reached the limit of tokens; None where the model states no reasons for ending.
        shortened: number of questions whose clips are longer than the model's input, which heard their beginning.
    """

    opened: OpenedTask
    answers: list[str]
    skipped: dict[str, str]
    stage: str
    cut: int | None
    shortened: int


def learning_problem(model: Model, opened: OpenedTask) -> str | None:
    """Why a model cannot learn a task; None where it can, or does not learn.

    It learns from the split ``train`` of the same configuration, whose fingerprint covers all splits: answers stored
    under it come after the same training. Where there is none, it learns from the other questions, see `CrossFitted`.
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
        "from those of the others: give more data, or leave the model out"
    )


def asking_problem(model: Model, opened: OpenedTask) -> str | None:
    """Why a model cannot answer the prompts of a task; None where it can, or does not answer at all."""
    if not opened.prompts or "answer" not in model.abilities:
        return learning_problem(model, opened)
    lacking = model.needs_columns - opened.rows[0].keys()
    if lacking:
        return (
            f"{model.card.id!r} needs questions with {listed(sorted(lacking))}, which those of {opened.task.info.name} "
            "do not have"
        )
    return scoring_problem(model, scoring_of(opened)) or learning_problem(model, opened)


def left_unasked(
    models: Sequence[Model],
    opened: Sequence[OpenedTask],
    leave_out: bool,
    apart: Collection[tuple[str, str]] = (),
) -> set[tuple[int, str]]:
    """The pairs (number of a model, name of a task) that are not run: those named, and those where the model cannot
    learn the task, or cannot answer in the requested way; warns of each of these.

    Args:
        models: the models.
        opened: the tasks.
        leave_out: whether a model may be left out of a task that it cannot answer.
        apart: pairs (id of a model, name of a task).

    Raises:
        TaskError: there are such pairs and they may not be left out, or no others are left.
    """
    problems: dict[tuple[int, str], str] = {}
    named: set[tuple[int, str]] = set()
    for (number, model), one in product(enumerate(models), opened):
        place = (number, one.task.info.name)
        if (model.card.id, one.task.info.name) in apart:
            named.add(place)
        elif (problem := asking_problem(model, one)) is not None:
            problems[place] = problem
    if problems and (not leave_out or len(problems) + len(named) == len(models) * len(opened)):
        raise TaskError(next(iter(problems.values())))
    for problem in problems.values():
        warnings.warn(f"left out: {problem}", stacklevel=3)
    return named | set(problems)


def compute_answers(
    model: Model, opened: OpenedTask, options: RunOptions, processes: Processes | None = None
) -> Answered | None:
    """The answers to the prompts of all rows, batch by batch; without the rows of invalid clips.

    Stored answers are not asked for again; a model that learns does so only if questions are left. Several
    processes each ask a share of the questions and wait for each other.

    Args:
        model: the model.
        opened: the task and its data.
        options: how models are run.
        processes: the processes that share the work; None for this one alone.

    Returns:
        the answers in the main process, None in others.

    Raises:
        ClipError: there are invalid clips that may not be left out.
        TaskError: the remaining rows cannot be scored, or the model has nothing to learn from.
        ModelError: answers are no texts, or their number differs from that of the prompts.
        StoreError: stored answers are damaged, or answers of another process are not visible.
        ProcessError: another process has failed.
    """
    processes = Processes() if processes is None else processes
    ids, rows = opened.asked_about, _prompted_rows(opened)
    store = answer_store(model.card, opened, options.store)
    calls = _calls(store, questions_per_call(model, options), processes)
    share = [shard for call in calls for shard in call]
    stage = stage_of(store, share, options.force)
    if stage != "read" and "learn" in model.abilities:
        model = _taught(model, opened, options)
    given = other_clips(opened) if model.asks_about_others else ids
    if options.force:
        for shard in share:
            store.discard(shard)
    if not options.skip_invalid:
        _refuse_recorded(store, given)
    asked = Asked(given, rows, opened.prompts, opened.options, scoring_of(opened))
    title = f"{model.card.id}, {store.key.recipe}"
    if processes.count > 1:
        title += f" (process 1 of {processes.count}, its share)"
    missing = [shard for shard in share if not store.has(shard)]
    unanswered = sum(len(store.items(shard)) - len(store.begun(shard)) for shard in missing)
    with during(title, "question", unanswered, shown=options.progress and processes.is_main) as advance:
        _fill(store, calls, model, asked, opened, options, advance)
    processes.wait()
    if not processes.is_main:
        return None
    store.check_complete()
    content = store.load()
    cut = _cut(model.card, content)
    skipped = {ids[place][0]: why for place, why in content.errors.items()}
    left = opened.without(list(skipped)) if skipped else opened
    kept = {row["id"] for row in left.rows}
    answers = [answer for answer, row in zip(content.answers, rows, strict=True) if row["id"] in kept]
    return Answered(left, answers, skipped, stage, cut, _shortened(model, left))


def _calls(store: AnswerStore, size: int, processes: Processes) -> list[range]:
    """The shards of this process, grouped so that each group's questions make a call.

    The groups do not depend on stored answers or on processes, as long as each process has some: within rounding, a
    model's output may depend on the rest of the batch.
    """
    together = -(-size // store.items_per_shard)
    together = min(together, -(-store.num_shards // processes.count)) or 1
    # A process with less memory might choose smaller calls, and so another share.
    together = int(processes.tell(str(together)))
    every = [range(start, min(start + together, store.num_shards)) for start in range(0, store.num_shards, together)]
    return [every[place] for place in processes.share_of(len(every))]


def _cut(card: ModelCard, content: AnswerShard) -> int | None:
    """Number of answers that reached the limit of tokens, and so may not state a choice, with a warning; None where no
    reason for ending is known."""
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
    """Number of questions about clips of which the model heard the beginning, with a warning."""
    limit = longest_asked(model, opened)
    if limit is None or "labels" in model.abilities:
        return 0
    asked = list({row["id"]: row for row in _prompted_rows(opened)}.values())
    seconds = {row["id"]: (row.get("duration") or 0) + PAUSE * (len(row.get("files", ("",))) - 1) for row in asked}
    longer = [id for id, lasts in seconds.items() if lasts > limit]
    if longer:
        worst = max(longer, key=seconds.__getitem__)
        warnings.warn(
            f"'{model.card.id}' hears {limit:g} s at most: of {len(longer):,} of {len(asked):,} questions it heard the "
            f"beginning alone, of {worst} {limit:g} s of {seconds[worst]:g} s",
            stacklevel=3,
        )
    return len(longer)


def _prompted_rows(opened: OpenedTask) -> list[Row]:
    """The row of each prompt."""
    return [row for row, one in zip(opened.rows, opened.inputs, strict=True) for _ in one.prompts]


def _refuse_recorded(store: AnswerStore, ids: Sequence[tuple[str, ...]]) -> None:
    """Raise the ClipError of the first clip whose finished shard has no answer about it."""
    for shard in filter(store.has, range(store.num_shards)):
        for place, why in store.read(shard).errors.items():
            raise recorded_error(why, store.folder, place, ids[store.items(shard).start + place][0])


class _Shards:
    """The shards in progress. Complete ones are written at the end of their call; in a window, see `Model.window`,
    as soon as the last answer has arrived, by any thread.
    """

    def __init__(self, store: AnswerStore, on_done: Callable[[int], object], in_window: bool) -> None:
        """`on_done` is called with a number of questions as soon as these are done."""
        self._store = store
        self._on_done = on_done
        self._in_window = in_window
        self._lock = threading.RLock()
        self._answers: dict[int, Answer] = {}
        self._errors: dict[int, str] = {}

    def done(self, count: int) -> None:
        """Count this many more questions as done."""
        with self._lock:
            self._on_done(count)

    def begin(self, shards: Sequence[int]) -> list[int]:
        """The places without an answer; answers of unfinished shards are taken over."""
        begun = {place: answer for shard in shards for place, answer in self._store.begun(shard).items()}
        with self._lock:
            self._answers |= begun
        return [place for shard in shards for place in self._store.items(shard) if place not in begun]

    def keep(self, answers: Sequence[tuple[int, Answer]]) -> None:
        """Keep answers, by their places, before the rest of their shards arrives."""
        of_shard: dict[int, list[tuple[int, Answer]]] = {}
        for place, answer in answers:
            of_shard.setdefault(place // self._store.items_per_shard, []).append((place, answer))
        with self._lock:
            for shard, some in of_shard.items():
                self._store.add(shard, some)
            if self._in_window:
                self._on_done(len(answers))
                self.finish(list(of_shard), dict(answers), {})

    def finish(self, shards: Sequence[int], answers: Mapping[int, Answer], errors: Mapping[int, str]) -> None:
        """Add answers and the reasons for missing ones, by their places; write the shards that are complete."""
        with self._lock:
            self._answers |= answers
            self._errors |= errors
            for shard in shards:
                self._write_whole(shard)

    def _write_whole(self, shard: int) -> None:
        items = self._store.items(shard)
        if self._store.has(shard) or not all(place in self._answers or place in self._errors for place in items):
            return
        given = [self._answers.pop(place, ("", {})) for place in items]
        facts = tuple(beside for _, beside in given)
        failed = {place - items.start: self._errors.pop(place) for place in items if place in self._errors}
        self._store.write(shard, AnswerShard(tuple(text for text, _ in given), failed, facts if any(facts) else ()))


def _fill(
    store: AnswerStore,
    calls: Sequence[Sequence[int]],
    model: Model,
    asked: Asked,
    opened: OpenedTask,
    options: RunOptions,
    on_done: Callable[[int], object],
) -> None:
    """Ask the missing questions, call by call. Answers reported before their call is complete are kept at once."""
    size = questions_per_call(model, options)
    with model.window(size) as window:
        kept = _Shards(store, on_done, window is not None)
        for call in calls:
            shards = [shard for shard in call if not store.has(shard)]
            places = kept.begin(shards)
            if window is not None:
                window.wait_for_room()
            given = _given(model, places, asked, opened, options, kept, waits=window is None) if places else _NONE
            answers = {places[number]: answer for number, answer in given.answers.items()}
            kept.finish(shards, answers, {places[number]: why for number, why in given.errors.items()})


_NONE = Answers({}, {})


def _given(
    model: Model,
    places: Sequence[int],
    asked: Asked,
    opened: OpenedTask,
    options: RunOptions,
    kept: _Shards,
    *,
    waits: bool,
) -> Answers:
    """The answers to the questions at some places, in one call or more; early reports are kept."""

    def keep(answers: Sequence[tuple[int, Answer]]) -> None:
        kept.keep([(places[number], answer) for number, answer in answers])

    part = asked.of(places)
    if "labels" in model.abilities:
        # The model has no audio input, so no clip is made for it.
        nothing = np.zeros(0, np.float32)
        clips = [Clip(about[0], nothing, model.card.sample_rate) for about in part.ids]
    else:
        clips = clips_about(opened, part.ids, options.skip_invalid, longest_asked(model, opened))
    return ask(
        model, clips, part, questions_per_call(model, options), options.skip_invalid, keep, kept.done, waits=waits
    )


def _train_rows(opened: OpenedTask) -> list[Row]:
    return [row for row in opened.configuration.rows if row["split"] == TRAIN]


def _taught(model: Model, opened: OpenedTask, options: RunOptions) -> Model:
    """The model after learning from the rows of the split for it, or, where there are none, from the other questions of
    each question; clips are read as it asks for them."""
    problem = learning_problem(model, opened)
    if problem:
        raise TaskError(problem)
    taught = _train_rows(opened)
    rows = taught or list(opened.samples.rows)
    about = learnt_about(opened, rows)
    crossed = None if taught else CrossFitted(model, opened.samples)

    def clips(places: Sequence[int], advance: Callable[[float], object]) -> Iterator[Clip]:
        for start in range(0, len(places), ITEMS_PER_SHARD):
            some = [about[place] for place in places[start : start + ITEMS_PER_SHARD]]
            for clip in clips_about(opened, some, options.skip_invalid):
                yield clip
                advance(1)

    count = len(about) * (1 if crossed is None else FOLDS - 1)
    with during(f"{model.card.id}, training clips", "clip", count, shown=options.progress) as advance:
        if crossed is None:
            model.learn(rows, clips(range(len(rows)), advance))
            return model
        crossed.learn_others(rows, lambda places: clips(places, advance))
    return crossed
