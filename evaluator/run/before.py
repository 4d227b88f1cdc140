"""Before the first question: models that may answer as long as tasks need, and how many questions there will be."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from audio_compositionality.encoders.language_models.endpoint_name import SERVER
from audio_compositionality.encoders.loading.under_controls import innermost, with_new_tokens
from audio_compositionality.encoders.protocols import AudioLanguageModel, Model, ModelCard, QuestionCounter
from audio_compositionality.support.errors import InputError

from .answer_store import answer_store
from .opened import OpenedTask
from .options import RunOptions
from .outputs import can_do


def with_long_answers(models: Sequence[Model], opened: Sequence[OpenedTask]) -> list[Model]:
    """Models whose answers may have as many tokens as the tasks need; those of which no task needs more as they are."""
    needed = max((one.new_tokens or 0 for task in opened for one in task.inputs), default=0)
    return [with_new_tokens(model, needed) for model in models]


def questions_left(card: ModelCard, opened: OpenedTask, options: RunOptions) -> int:
    """How many questions of a task a model has yet to be asked: those whose answers are not in the store."""
    store = answer_store(card, opened, options.store)
    if options.force:
        return len(store.ids)
    missing = (shard for shard in range(store.num_shards) if not store.has(shard))
    return sum(len(store.items(shard)) - len(store.begun(shard)) for shard in missing)


def check_questions(
    models: Sequence[Model],
    opened: Sequence[OpenedTask],
    done: Collection[tuple[int, str]],
    options: RunOptions,
) -> None:
    """Refuse to ask models more than is allowed, before the first question.

    Args:
        models: to be asked.
        opened: the tasks.
        done: models, by number, and tasks, by name, that are not going to be asked.
        options: with the most questions to a model behind a server.

    Raises:
        InputError: there are more, or a model itself refuses so many.
    """
    for number, model in enumerate(models):
        if not isinstance(model, AudioLanguageModel):
            continue
        possible = [one for one in opened if one.prompts and can_do(one.task, model)]
        asked = [one for one in possible if (number, one.task.info.name) not in done]
        count = sum(questions_left(model.card, one, options) for one in asked)
        most = options.max_questions
        if most is not None and model.device == SERVER and count > most:
            raise InputError(
                f"'{model.card.id}' is to be asked {count:,} questions, and no more than {most:,} are allowed "
                f"(--max-questions): allow {count:,}, show options in one order, or give data with fewer questions. "
                "None was asked"
            )
        inside = innermost(model)
        if count and isinstance(inside, QuestionCounter):
            inside.check_questions(count)
