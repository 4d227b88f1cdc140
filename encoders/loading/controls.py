"""Controls: a model that is given something else than the task means it to have, so that what it needs shows.

A kind of control is a line of `CONTROLS`. Its name, with a colon, stands in front of the name of any model, a user's
class and twins among them: it changes what goes in, not the weights. A score that a control reaches as well says
nothing of what the control takes away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import (
    By,
    FloatArray,
    GivenClip,
    Model,
    ModelCard,
    ModelError,
    StagedEncoder,
    Wrapper,
    check_sample_rate,
    check_waveforms,
    resample,
)
from ..language_models.event_text import TEXT_VERSION, EventTextModel, prompt_with_events, silence_of
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


class Controlled(Wrapper, StagedEncoder[Any]):
    """A model that is given something else than it is asked about.

    Its card is the model's, but for the id, which has the control's name in front of it, and the paradigm.

    Attributes:
        model: what stands under the control.
        kind: what is done to what it is given.
    """

    def __init__(self, model: Model, kind: ControlKind) -> None:
        """Take a model that is loaded.

        Raises:
            ModelError: there is nothing in it that the control is of.
        """
        self.kind = kind
        self._abilities = abilities_under(model, kind)
        super().__init__(model)

    def make_card(self) -> ModelCard:
        """The model's, which says what is done."""
        card, kind = self.model.card, self.kind
        revision = f"{card.revision}+text-{TEXT_VERSION}" if kind.tells else card.revision
        return replace(card, id=kind.prefix + card.id, revision=revision, paradigm=f"control ({kind.meaning})")

    @property
    def abilities(self) -> frozenset[str]:
        """Those of the model that the control is of."""
        return self._abilities

    @property
    def clips_card(self) -> ModelCard:
        """The model's, where clips are given as they are."""
        return self.card if self.kind.clips is not None else self.model.clips_card

    @property
    def asks_about_others(self) -> bool:  # type: ignore[override]
        """Whether whoever asks has to give it the clips of other questions."""
        return self.kind.moves or self.model.asks_about_others

    @property
    def limit_seconds(self) -> float | None:  # type: ignore[override]
        """The model's; none where it is given words alone."""
        return None if self._gives_words_alone else self.model.limit_seconds

    @property
    def _gives_words_alone(self) -> bool:
        return self.kind.tells and "read" in self.model.abilities

    def _extract_features(self, clips: FloatArray) -> Any:
        changed = self._changed(clips, self.card.sample_rate)
        return self.model.prepare(changed, self.card.sample_rate), len(clips)

    def _run_model(self, features: Any) -> FloatArray:
        inputs, count = features
        return _as_many(self.model.forward(inputs), count)

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Any:
        """As the model's, of the changed clips."""
        self.require("audio")
        return super().prepare(waveforms, sample_rate)

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[FloatArray, float]:
        """As the model's, of the changed clips."""
        self.require("frames")
        rate = self.card.sample_rate
        clips = resample(check_waveforms(waveforms), check_sample_rate(sample_rate), rate)
        frames, seconds = self.model.embed_frames(self._changed(clips, rate), rate)
        return _as_many(frames, len(clips)), seconds

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """As the model's, of the changed texts."""
        self.require("text")
        listed = check_texts(texts)
        changed = listed if self.kind.texts is None else self.kind.texts(listed)
        return _as_many(self.model.embed_text(changed), len(listed))

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """As the model's, about what it is given instead.

        Raises:
            ModelError: a row does not say what is heard when, or what the model raises.
        """
        self.require("answer")
        return self.model.answer(*self._asked(clips, prompts))

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """As the model's, about what it is given instead; raises as `answer`."""
        self.require("score")
        return self.model.score_options(*self._asked(clips, prompts), options, by)

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """As the model's, from clips as they are."""
        self.require("learn")
        self.model.learn(rows, clips)

    def _changed(self, clips: FloatArray, sample_rate: int) -> FloatArray:
        return clips if self.kind.clips is None else self.kind.clips(clips, sample_rate)

    def _asked(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]
    ) -> tuple[Sequence[Sequence[Any]], Sequence[str]]:
        """What the model is asked instead: about clips that are changed; or about silence as long as each, or nothing
        where it reads words alone, with what is heard when in front of the prompt."""
        if self.kind.tells:
            rows = self.rows_of(clips)
            told = _told(rows, prompts)
            if self._gives_words_alone:
                return [[] for _ in rows], told
            rate = self.card.sample_rate
            return silence_of([(round(float(row["duration"]) * rate), rate) for row in rows]), told
        changed = [
            [GivenClip(self._changed(clip.waveform[None], clip.sample_rate)[0], clip.sample_rate) for clip in some]
            for some in clips
        ]
        return changed, prompts


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


def abilities_under(model: Model, kind: ControlKind) -> frozenset[str]:
    """What a model can do under a control: what it can, as far as the control is of that.

    Raises:
        ModelError: there is nothing in it that the control is of.
    """
    name = f"'{kind.prefix}{model.card.id}': '{model.card.id}'"
    able = model.abilities
    if "labels" in able:
        raise ModelError(f"{name} is told labels and hears nothing, so there is nothing to control")
    if kind.texts is not None:
        if "text" not in able:
            raise ModelError(f"{name} embeds no text, so there is nothing to control")
        return able & {"audio", "text"}
    if kind.tells:
        _check_tellable(model, name)
        return able & {"answer", "score"} | {"labels"}
    if kind.moves and "answer" not in able:
        raise ModelError(f"{name} answers no questions, so none can be asked about another clip")
    left = able & ({"answer", "score", "learn"} if kind.moves else {*_EMBEDS, "answer", "score", "learn"})
    if not left:
        raise ModelError(f"{name} neither embeds nor answers")
    return left


_EMBEDS = {"audio", "frames", "text"}


def _check_tellable(model: Model, name: str) -> None:
    """Refuse a model that does not answer, has learnt from what it hears, or is given something else already.

    Raises:
        ModelError: it is one.
    """
    if "answer" not in model.abilities:
        raise ModelError(f"{name} answers no questions, so it cannot be told what is heard")
    if "learn" in model.abilities:
        raise ModelError(
            f"{name} has learnt from questions without such a list, so it would not know what to do with it"
        )
    if isinstance(model, EventTextModel):
        raise ModelError(f"{name} is told what a detector has heard; ask for '{EVENTS_AS_TEXT}:' of its language model")
    if isinstance(model, Controlled):
        raise ModelError(f"{name} is a control of what is heard, and here nothing is")


def can_control(model: Model, kind: ControlKind) -> bool:
    """Whether a control is of anything that a model can do; see `abilities_under`."""
    try:
        abilities_under(model, kind)
    except ModelError:
        return False
    return True
