"""Putting prompts to a model: so many in a call, each answer with what is known of it beside its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from audio_compositionality.dataset_builder.data import Clip, Row
from audio_compositionality.encoders.base import ClipError, ModelError
from audio_compositionality.encoders.loading.under_controls import innermost
from audio_compositionality.encoders.protocols import (
    AudioLanguageModel,
    BatchFormer,
    LabelReader,
    LabelScorer,
    ModelCard,
    OptionScorer,
    Replier,
)
from audio_compositionality.tasks.base import GENERATE, Scoring, TaskError
from audio_compositionality.tasks.question_prompts import LETTERS

from .embed import batch_size_of
from .options import RunOptions
from .store import AnswerShard

Answer = tuple[str, Mapping[str, Any]]
"""The text of an answer, and what is known of it beside."""


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
    def by(self) -> Literal["letters", "options"]:
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


def scoring_problem(model: AudioLanguageModel, scoring: Scoring) -> str | None:
    """Why a model's answers cannot be taken in a way; None where they can."""
    scores = isinstance(model, LabelScorer) if isinstance(model, LabelReader) else isinstance(model, OptionScorer)
    if scoring == GENERATE or scores:
        return None
    return (
        f"{model.card.id!r} tells no likelihoods of given answers (score_options), so its answers cannot be scored by "
        f"{scoring}: score it by what it writes (--scoring {GENERATE})"
    )


def questions_per_call(model: AudioLanguageModel, options: RunOptions) -> int:
    """Questions that a model is given at a time: as many as are asked for, or else as it wants, where it forms batches
    of its own; else as clips are embedded.

    Raises:
        InputError: less than 1 is asked for, or more than 64.
    """
    former = innermost(model)
    if options.batch_size is None and isinstance(former, BatchFormer):
        return former.questions_per_call
    return batch_size_of(model, options)


def ask_of_labels(model: LabelReader, card: ModelCard, asked: Asked) -> AnswerShard:
    """The answers of a model that is told labels.

    Raises:
        ModelError: they are no texts or numbers, or not as many as prompts.
    """
    if asked.scoring != GENERATE and isinstance(model, LabelScorer):
        scores = model.score_options_from_labels(asked.rows, asked.prompts, asked.options, asked.by)
        return _shard(_likeliest(scores, asked.options, card), {})
    texts = checked_texts(model.answer_from_labels(asked.rows, asked.prompts), len(asked.prompts), card)
    return _shard([(text, {}) for text in texts], {})


def ask(
    model: AudioLanguageModel,
    clips: Sequence[Clip],
    asked: Asked,
    size: int,
    skip_invalid: bool,
    on_answers: Callable[[int], object],
) -> AnswerShard:
    """The answers to questions about clips; none about clips that cannot be used.

    Args:
        model: to be asked.
        clips: one a question.
        asked: the questions.
        size: questions that the model is given at a time.
        skip_invalid: go on without a clip that the model refuses.
        on_answers: called with a number of questions as soon as so many are done.

    Raises:
        ClipError: the model refuses a clip, which is not to be left out.
        ModelError: answers are no texts or numbers, or not as many as prompts.
    """
    errors = {place: clip.problem for place, clip in enumerate(clips) if clip.problem is not None}
    answers: list[Answer] = [("", {})] * len(clips)
    usable = [place for place in range(len(clips)) if place not in errors]
    on_answers(len(errors))
    for start in range(0, len(usable), size):
        batch = usable[start : start + size]
        on_answers(len(batch))
        while batch:
            try:
                given = _answers(model, [clips[place] for place in batch], asked.of(batch))
            except ClipError as error:
                place = batch[error.row]
                if not skip_invalid:
                    raise ClipError(f"{error.reason}; --skip-invalid leaves it out", place, clips[place].id) from error
                errors[place] = error.reason
                batch = [other for other in batch if other != place]
                continue
            for place, answer in zip(batch, given, strict=True):
                answers[place] = answer
            break
    return _shard(answers, errors)


def part_of(content: AnswerShard, start: int, stop: int) -> AnswerShard:
    """Some of the answers."""
    errors = {place - start: why for place, why in content.errors.items() if start <= place < stop}
    facts = content.facts[start:stop]
    return AnswerShard(content.answers[start:stop], errors, facts if any(facts) else ())


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


def _answers(model: AudioLanguageModel, clips: Sequence[Clip], asked: Asked) -> list[Answer]:
    """The answers to one call."""
    if asked.scoring != GENERATE:
        problem = scoring_problem(model, asked.scoring)
        if problem is not None or not isinstance(model, OptionScorer):
            raise TaskError(problem)
        return _likeliest(model.score_options(clips, asked.prompts, asked.options, asked.by), asked.options, model.card)
    if isinstance(model, Replier):
        replies = list(model.replies(clips, asked.prompts))
        texts = checked_texts([reply.text for reply in replies], len(asked.prompts), model.card)
        reasons = [reply.finish_reason for reply in replies]
        return [(text, {"finish_reason": why} if why else {}) for text, why in zip(texts, reasons, strict=True)]
    return [(text, {}) for text in checked_texts(model.answer(clips, asked.prompts), len(asked.prompts), model.card)]


def _likeliest(given: Any, options: Sequence[tuple[str, ...]], card: ModelCard) -> list[Answer]:
    """The letter of the likeliest option of each prompt, of equals the first, beside all log-likelihoods; no text where
    the model tells none.

    Raises:
        ModelError: there is not a number for each option of each prompt.
    """
    if not isinstance(given, Sequence) or len(given) != len(options):
        raise ModelError(f"'{card.id}' gave no list of scores for each of {len(options)} prompts")
    answers: list[Answer] = []
    for row, texts in zip(given, options, strict=True):
        scores = [float(score) for score in row]
        if len(scores) != len(texts):
            raise ModelError(f"'{card.id}' gave {len(scores)} scores of {len(texts)} options; it must give one of each")
        if any(score > 0 for score in scores):
            raise ModelError(f"'{card.id}' gave the log-likelihood {max(scores):g}; none is above 0")
        told = [score for score in scores if not math.isnan(score)]
        letter = LETTERS[scores.index(max(told))] if told and max(told) > -math.inf else ""
        # JSON has no numbers that are not finite.
        facts = [score if math.isfinite(score) else None for score in scores]
        answers.append((letter, {"log_likelihoods": facts}))
    return answers


def _shard(answers: Sequence[Answer], errors: Mapping[int, str]) -> AnswerShard:
    facts = tuple(facts for _, facts in answers)
    return AnswerShard(tuple(text for text, _ in answers), errors, facts if any(facts) else ())
