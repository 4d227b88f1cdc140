"""Putting prompts to a model: so many in a call, each answer with what is known of it beside its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import Clip, Row
from audio_compositionality.encoders.base import LETTERS, By, ClipError, GivenClip, Model, ModelCard, ModelError
from audio_compositionality.tasks.base import GENERATE, Scoring, TaskError

from .answer_store import Answer
from .embed import batch_size_of
from .options import RunOptions

OnAnswers = Callable[[Sequence[tuple[int, Answer]]], object]
"""Called with answers as soon as they are there, each with the place of its question."""


@dataclass(frozen=True)
class Answers:
    """What a model answered to questions.

    Attributes:
        answers: by place; those that are only told of when they are there are not among them.
        errors: by place, why there is none.
    """

    answers: Mapping[int, Answer]
    errors: Mapping[int, str]


@dataclass(frozen=True)
class Asked:
    """Questions to be put.

    Attributes:
        ids: of the clips, one a question.
        rows: of each.
        prompts: as many.
        options: of each prompt, where answers are taken by likelihoods; else empty.
        scoring: see `Inputs`.
    """

    ids: Sequence[str]
    rows: Sequence[Row]
    prompts: Sequence[str]
    options: Sequence[tuple[str, ...]]
    scoring: Scoring

    @property
    def by(self) -> By:
        """What likelihoods are of, where answers are taken by them."""
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
    """Why a model's answers cannot be taken in a way; None where they can."""
    if scoring == GENERATE or scoring in model.scorings:
        return None
    if model.scorings:
        valid = ", ".join((GENERATE, *model.scorings))
        return (
            f"{model.card.id!r} cannot be scored by {scoring}, which takes likelihoods that it does not tell; valid "
            f"choices of scoring are {valid}"
        )
    return (
        f"{model.card.id!r} tells no likelihoods of given answers (score_options), so its answers cannot be scored by "
        f"{scoring}: score it by what it writes (--set scoring={GENERATE})"
    )


def questions_per_call(model: Model, options: RunOptions) -> int:
    """Questions that a model is given at a time: as many as it wants, where it forms batches of its own that are not
    larger than what is asked for; else as many as are asked for, or as clips are embedded.

    Raises:
        InputError: less than 1 is asked for, or more than 64.
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
    """The answers to questions about clips; none about clips that cannot be used.

    Args:
        model: to be asked.
        clips: one a question.
        asked: the questions.
        size: questions that the model is given at a time.
        skip_invalid: go on without a clip that the model refuses.
        on_answers: called with answers before all of a call are there, by models that tell of them.
        on_done: called with a number of questions as soon as so many are done, but for those that are only told of.
        waits: whether the model gives the answers; else it only tells of them, see `Model.window`.

    Raises:
        ClipError: the model refuses a clip, which is not to be left out.
        ModelError: answers are no texts or numbers, or not as many as prompts.
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
    """While a model is asked: what it tells of answers is passed on; what it says of them beside, by place."""
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
    """What a model gave, known to be a text for each prompt.

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
    """The answers to one call, with what the model has told beside; none where it only tells of them."""
    given: list[list[Any]] = [[clip] for clip in clips]
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
        ModelError: there is not a number for each option of each prompt.
    """
    if not isinstance(given, Sequence) or len(given) != len(options):
        raise ModelError(f"'{card.id}' gave no list of scores for each of {len(options)} prompts")
    rows = enumerate(zip(given, options, strict=True))
    return [_likely(row, texts, card, facts.get(place, {})) for place, (row, texts) in rows]


def _likely(given: Any, options: Sequence[str], card: ModelCard, beside: Mapping[str, Any]) -> Answer:
    """The letter of the likeliest option, of equals the first, beside all log-likelihoods; no text where the model
    tells none.

    Raises:
        ModelError: there is not a number for each option.
    """
    scores = [float(score) for score in given]
    if len(scores) != len(options):
        raise ModelError(f"'{card.id}' gave {len(scores)} scores of {len(options)} options; it must give one of each")
    if any(score > 0 for score in scores):
        raise ModelError(f"'{card.id}' gave the log-likelihood {max(scores):g}; none is above 0")
    told = [score for score in scores if not math.isnan(score)]
    letter = LETTERS[scores.index(max(told))] if told and max(told) > -math.inf else ""
    # JSON has no numbers that are not finite.
    return letter, {**beside, "log_likelihoods": [score if math.isfinite(score) else None for score in scores]}
