"""Controls: a model that is given something else than the task means it to have, so that what it needs shows.

A kind of control is a line of `CONTROLS`. Its name, with a colon, stands in front of the name of any model, a user's
class and twins among them: it changes what goes in, not the weights. A score that a control reaches as well says
nothing of what the control takes away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np

from ..base import FloatArray, GivenClip, ModelError, StagedEncoder, check_embeddings
from ..language_models.event_text import TEXT_VERSION, EventTextModel, TextModel, TextScorer, prompt_with_events
from ..protocols import (
    AudioEncoder,
    AudioLanguageModel,
    AudioTextEncoder,
    LabelReader,
    Learner,
    Model,
    ModelCard,
    OptionScorer,
)
from ..texts import check_texts, words_of
from .clip_changes import (
    PADDED_SECONDS,
    STRETCH,
    noise_clips,
    padded_clips,
    reversed_clips,
    shuffled_clips,
    silence_clips,
)

PLAIN_TEXT = "a sound"
"""What every text becomes for a model that is not to read any."""

EVENTS_AS_TEXT = "events-as-text"
"""The control of models that are told what is heard."""


@dataclass(frozen=True)
class ControlKind:
    """A way to change what a model is given.

    Attributes:
        name: what stands in front of the model's name, up to the colon.
        meaning: what is done, for lists and cards.
        clips: what is done to clips, float32 [n, samples], of a sample rate in Hz; None where they stay. Where one
            clip comes back, all are this one.
        texts: what is done to texts; None where they stay. Where one comes back, all are this one.
        moves: whether questions are asked about the clips of other questions; which, whoever asks them decides.
        tells: whether the model is told what is heard when, as text, and hears nothing.
    """

    name: str
    meaning: str
    clips: Callable[[FloatArray, int], FloatArray] | None = None
    texts: Callable[[list[str]], list[str]] | None = None
    moves: bool = False
    tells: bool = False

    @property
    def prefix(self) -> str:
        """What stands in front of the model's name."""
        return f"{self.name}:"


def _sorted_words(texts: list[str]) -> list[str]:
    # A text without a word, of signs alone, stays.
    return [" ".join(sorted(words_of(text))) or text for text in texts]


def _one_text(texts: list[str]) -> list[str]:
    return [PLAIN_TEXT]


CONTROLS = {
    kind.name: kind
    for kind in (
        ControlKind(
            "sorted-words",
            "the words of every text sorted, without case and punctuation, so that texts of the same words are one",
            texts=_sorted_words,
        ),
        ControlKind("reversed-audio", "every clip played backwards", clips=reversed_clips),
        ControlKind(
            "shuffled-audio",
            f"the stretches of {1000 * STRETCH:.0f} ms of every clip in disorder, so that what is in them stays and "
            "when it is heard does not",
            clips=shuffled_clips,
        ),
        ControlKind(
            "padded-audio",
            f"every clip followed by silence up to {PADDED_SECONDS} s, so that a model that repeats short ones hears "
            "each once",
            clips=padded_clips,
        ),
        ControlKind("without-audio", "silence for every clip", clips=silence_clips),
        ControlKind("noise-audio", "white noise of one level for every clip", clips=noise_clips),
        ControlKind(
            "other-audio",
            "every question asked about the clip of another group, so that its words and the sound have nothing to do "
            "with each other; of models that answer",
            moves=True,
        ),
        ControlKind(
            EVENTS_AS_TEXT,
            "every question asked about silence, with what is heard when, as it is known, in a list of text before it; "
            "of models that answer",
            tells=True,
        ),
        ControlKind("without-text", f"'{PLAIN_TEXT}' for every text", texts=_one_text),
    )
}
"""Every kind of control, by name."""


class Controlled:
    """A model that is given something else than it is asked about.

    Its card is the model's, but for the id, which has the control's name in front of it, and the paradigm.
    """

    card: ModelCard
    device: str

    def __init__(self, model: Model, kind: ControlKind) -> None:
        """Take a model that is loaded."""
        self._model: Any = model
        self._kind = kind
        self.card = replace(model.card, id=kind.prefix + model.card.id, paradigm=f"control ({kind.meaning})")
        self.device = model.device

    @property
    def inner(self) -> tuple[Model, ControlKind]:
        """The model, and what is done to what it is given."""
        return self._model, self._kind

    def _changed(self, clips: FloatArray, sample_rate: int) -> FloatArray:
        return clips if self._kind.clips is None else self._kind.clips(clips, sample_rate)


class ControlledEncoder(Controlled, StagedEncoder[Any]):
    """An audio encoder that is given other clips than it is asked about."""

    @property
    def clips_card(self) -> ModelCard:
        """The card under which its embeddings of clips are known: the model's, where they are given as they are."""
        if self._kind.clips is not None:
            return self.card
        card: ModelCard = self._model.clips_card if isinstance(self._model, ControlledEncoder) else self._model.card
        return card

    def _extract_features(self, clips: FloatArray) -> Any:
        changed = self._changed(clips, self.card.sample_rate)
        if isinstance(self._model, StagedEncoder):
            return self._model.prepare(changed, self.card.sample_rate), len(clips)
        return (changed, self.card.sample_rate), len(clips)

    def _run_model(self, features: Any) -> FloatArray:
        inputs, count = features
        if isinstance(self._model, StagedEncoder):
            embeddings = self._model.forward(inputs)
        else:
            embeddings = check_embeddings(self._model.embed(*inputs), self._model)
        return _as_many(embeddings, count)


class ControlledTextEncoder(ControlledEncoder):
    """An audio–text encoder that is given other clips or texts than it is asked about."""

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """As the model's, of the changed texts."""
        listed = check_texts(texts)
        changed = listed if self._kind.texts is None else self._kind.texts(listed)
        embeddings = cast(AudioTextEncoder, self._model).embed_text(changed)
        return _as_many(embeddings, len(listed))


class ControlledAnswerer(Controlled):
    """A model that answers, about other clips than it is asked about."""

    @property
    def moves(self) -> bool:
        """Whether whoever asks has to give it the clips of other questions."""
        inner = self._model
        return self._kind.moves or (isinstance(inner, ControlledAnswerer) and inner.moves)

    def answer(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        """As the model's, about the changed clips."""
        return cast(AudioLanguageModel, self._model).answer(self._given(clips), prompts)

    def _given(self, clips: Sequence[Any]) -> list[GivenClip]:
        return [GivenClip(self._changed(clip.waveform[None], clip.sample_rate)[0], clip.sample_rate) for clip in clips]


class ControlledScorer(ControlledAnswerer):
    """A model that scores options, about other clips than it is asked about."""

    def score_options(
        self,
        clips: Sequence[Any],
        prompts: Sequence[str],
        options: Sequence[Sequence[str]],
        by: Literal["letters", "options"],
    ) -> list[list[float]]:
        """As the model's, about the changed clips."""
        return cast(OptionScorer, self._model).score_options(self._given(clips), prompts, options, by)


class ControlledLearner(ControlledAnswerer):
    """A model that learns from clips as they are, and answers about others."""

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """As the model's."""
        cast(Learner, self._model).learn(rows, clips)


class ToldAnswerer(Controlled):
    """A model that answers, told as text what is heard in clips and when; a `LabelReader`.

    A model that answers texts alone is given the text alone, any other silence as long as the clip with it. What is
    right so and wrong with sound was not heard; what is wrong so was not understood.
    """

    def __init__(self, model: Model, kind: ControlKind) -> None:
        """Take a model that is loaded."""
        super().__init__(model, kind)
        self.card = replace(self.card, revision=f"{self.card.revision}+text-{TEXT_VERSION}")

    def answer(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        """It hears nothing.

        Raises:
            ModelError: always.
        """
        raise ModelError(f"'{self.card.id}' hears nothing: it answers from the labels of rows (answer_from_labels)")

    def answer_from_labels(self, rows: Sequence[Mapping[str, Any]], prompts: Sequence[str]) -> list[str]:
        """Answer one prompt about each row; see `LabelReader.answer_from_labels`.

        Raises:
            ModelError: a row does not say what is heard when, or what the model raises.
        """
        told = _told(rows, prompts)
        if isinstance(self._model, TextModel):
            return self._model.answer_texts(told)
        return cast(AudioLanguageModel, self._model).answer(self._silence(rows), told)

    def _silence(self, rows: Sequence[Mapping[str, Any]]) -> list[GivenClip]:
        """Silence as long as the clip of each row; that of one length is one array."""
        rate = self.card.sample_rate
        lengths = [round(float(row["duration"]) * rate) for row in rows]
        silence = {length: np.zeros(length, np.float32) for length in set(lengths)}
        return [GivenClip(silence[length], rate) for length in lengths]


class ToldScorer(ToldAnswerer):
    """A model that scores options, told as text what is heard in clips and when."""

    def score_options_from_labels(
        self,
        rows: Sequence[Mapping[str, Any]],
        prompts: Sequence[str],
        options: Sequence[Sequence[str]],
        by: Literal["letters", "options"],
    ) -> list[list[float]]:
        """The log-likelihood of each option; see `OptionScorer`, and `answer_from_labels` of what is told.

        Raises:
            ModelError: as `answer_from_labels`.
        """
        told = _told(rows, prompts)
        if isinstance(self._model, TextScorer):
            return self._model.score_texts(told, options, by)
        return cast(OptionScorer, self._model).score_options(self._silence(rows), told, options, by)


def _told(rows: Sequence[Mapping[str, Any]], prompts: Sequence[str]) -> list[str]:
    """Prompts, each after what is heard when.

    Raises:
        ModelError: a row does not say what is heard, or how long its clip is.
    """
    for row in rows:
        for column in ("events", "duration"):
            if row.get(column) is None:
                raise ModelError(
                    f"row {row.get('id')!r} has no {column}; to be told as text, what is heard has to be known"
                )
    return [prompt_with_events(row["events"], prompt) for row, prompt in zip(rows, prompts, strict=True)]


def _as_many(embeddings: FloatArray, count: int) -> FloatArray:
    """So many rows: where there is one, it stands for all, so that they are the same to the last bit."""
    return embeddings if len(embeddings) == count else np.repeat(embeddings, count, axis=0)


def control(model: Model, kind: ControlKind) -> Controlled:
    """A model under a control; it can do what the model can, as far as the control is of that.

    Raises:
        ModelError: there is nothing in it that the control is of.
    """
    name = f"'{kind.prefix}{model.card.id}': '{model.card.id}'"
    if isinstance(model, LabelReader):
        raise ModelError(f"{name} is told labels and hears nothing, so there is nothing to control")
    embeds, reads = isinstance(model, AudioEncoder), isinstance(model, AudioTextEncoder)
    answers = isinstance(model, AudioLanguageModel) and kind.texts is None
    if kind.texts is not None and not reads:
        raise ModelError(f"{name} embeds no text, so there is nothing to control")
    if kind.moves and not answers:
        raise ModelError(f"{name} answers no questions, so none can be asked about another clip")
    if kind.tells:
        return _told_answerer(model, kind, name)
    bases: list[type[Controlled]] = []
    if embeds and not kind.moves:
        bases.append(ControlledTextEncoder if reads else ControlledEncoder)
    if answers:
        parts: list[type[Controlled]] = [ControlledLearner] if isinstance(model, Learner) else []
        parts += [ControlledScorer] if isinstance(model, OptionScorer) else []
        bases += parts or [ControlledAnswerer]
    if not bases:
        raise ModelError(f"{name} neither embeds nor answers")
    made: type[Controlled] = bases[0] if len(bases) == 1 else type("ControlledModel", tuple(bases), {})
    return made(model, kind)


def can_control(model: Model, kind: ControlKind) -> bool:
    """Whether a control is of anything that a model can do; see `control`."""
    try:
        control(model, kind)
    except ModelError:
        return False
    return True


def _told_answerer(model: Model, kind: ControlKind, name: str) -> ToldAnswerer:
    """A model that is told what is heard.

    Raises:
        ModelError: it does not answer, has learnt from what it hears, or is given something else already.
    """
    if not isinstance(model, AudioLanguageModel):
        raise ModelError(f"{name} answers no questions, so it cannot be told what is heard")
    if isinstance(model, Learner):
        raise ModelError(
            f"{name} has learnt from questions without such a list, so it would not know what to do with it"
        )
    if isinstance(model, EventTextModel):
        raise ModelError(f"{name} is told what a detector has heard; ask for '{kind.prefix}' of its language model")
    if isinstance(model, Controlled):
        raise ModelError(f"{name} is a control of what is heard, and here nothing is")
    return (ToldScorer if isinstance(model, OptionScorer) else ToldAnswerer)(model, kind)


def split_control(name: str) -> tuple[ControlKind | None, str]:
    """The control that a name asks for, and the name of the model; None of a model as it is."""
    first, colon, rest = name.partition(":")
    kind = CONTROLS.get(first) if colon else None
    return (None, name) if kind is None else (kind, rest)
