"""The models that hear: what each kind must do, and the card that says which model it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .options import DEFAULT_OPTIONS, EncoderOptions

Floats = NDArray[np.float32]

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the options of a question are called, in their order."""


@dataclass(frozen=True)
class ModelCard:
    """What exactly is run.

    Attributes:
        id: name of the model; result files are named by it.
        revision: a version for a baseline, the commit of a Hub repository or the SHA-256 of the weights and settings of
            a folder; of a twin its seed with what is known of the model: commit, weights, settings.
        sample_rate: rate in Hz that the model works at. Clips at any rate are resampled to it.
        output_dim: length of an embedding; None of a model that gives none.
        weights_sha256: SHA-256 of the weights; None where there are none, and of a twin.
        parameters: number of weights of the part of the model that is run; None where it is not known or none.
        paradigm: how the model was trained, in words; None where it is not known.
        licence: of the weights, as their publisher states it; None where it is not known.
        trained_on: data that the weights were trained on, both towers, in words; None where it is not stated.
        front_end_version: counted up when a change to the front end changes embeddings, so that stored ones are not
            taken for new ones.
        options: layer, pooling and precision that it is run with.
    """

    id: str
    revision: str
    sample_rate: int
    output_dim: int | None
    weights_sha256: str | None = None
    parameters: int | None = None
    paradigm: str | None = None
    licence: str | None = None
    trained_on: str | None = None
    front_end_version: int = 1
    options: EncoderOptions = field(default=DEFAULT_OPTIONS)


@runtime_checkable
class AudioEncoder(Protocol):
    """Anything that turns clips into one vector each.

    Attributes:
        card: what it is.
        device: torch device that it computes on, such as ``cpu`` or ``cuda:0``.
    """

    @property
    def card(self) -> ModelCard: ...  # noqa: D102

    @property
    def device(self) -> str: ...  # noqa: D102

    def embed(self, waveforms: ArrayLike, sample_rate: int) -> Floats:
        """Embed clips of equal length.

        Args:
            waveforms: [n, samples], floating within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Returns:
            float32 [n, output_dim]; a row depends on its own clip only.
        """
        ...


@runtime_checkable
class AudioTextEncoder(AudioEncoder, Protocol):
    """An audio encoder that also embeds text, into the same space."""

    def embed_text(self, texts: Sequence[str]) -> Floats:
        """Embed texts: float32 [n, output_dim]; a row depends on its own text only."""
        ...


@runtime_checkable
class AudioLanguageModel(Protocol):
    """A model that answers questions about clips, in words.

    Attributes:
        card: what it is.
        device: torch device that it computes on.
    """

    @property
    def card(self) -> ModelCard: ...  # noqa: D102

    @property
    def device(self) -> str: ...  # noqa: D102

    def answer(self, clips: Sequence[Any], prompts: Sequence[str]) -> list[str]:
        """Answer one prompt about each clip.

        Args:
            clips: each an object with ``waveform``, float32 [samples] in [-1, 1], and ``sample_rate`` in Hz.
            prompts: as many.

        Returns:
            a text each, as long as prompts; it depends on its own clip and prompt only.
        """
        ...


@runtime_checkable
class Learner(Protocol):
    """A model that answers, and learns from questions with their answers before it is asked."""

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """Learn from questions, and forget what was learnt before; the same again gives the same.

        Args:
            rows: of the split ``train``, without their sound; all columns of the recipe.
            clips: the clip of each row in order, as those of `AudioLanguageModel.answer`. They are read as they are
                asked for, so that a model of text alone asks for none. The samples of one that cannot be used are NaN.
        """
        ...


@runtime_checkable
class LabelReader(Protocol):
    """A model that answers from the labels of clips instead of their sound: what labels allow, not what is heard."""

    def answer_from_labels(self, rows: Sequence[Mapping[str, Any]], prompts: Sequence[str]) -> list[str]:
        """Answer one prompt about each row.

        Args:
            rows: without their sound; all columns of the recipe.
            prompts: as many.

        Returns:
            a text each, as long as prompts; it depends on its own row and prompt only.
        """
        ...


@runtime_checkable
class OptionScorer(Protocol):
    """A model that says how likely each of some given answers is."""

    def score_options(
        self,
        clips: Sequence[Any],
        prompts: Sequence[str],
        options: Sequence[Sequence[str]],
        by: Literal["letters", "options"],
    ) -> list[list[float]]:
        """The log-likelihood of each option as the answer to one prompt about each clip.

        Args:
            clips: as those of `AudioLanguageModel.answer`.
            prompts: as many.
            options: of each prompt two or more texts, in the order in which the prompt calls them A, B, C and so on.
            by: ``letters``: the log-likelihood of the first token of an option's letter, of all that the model may
                begin its answer with; ``options``: the mean log-likelihood of the tokens of its text.

        Returns:
            for each prompt a natural logarithm for each option, at most 0; they depend on its own clip, prompt and
            options only.
        """
        ...


@runtime_checkable
class LimitedScorer(Protocol):
    """A model that does not score options in all ways.

    Attributes:
        scorings: values of ``by`` of `OptionScorer.score_options` that it takes.
    """

    @property
    def scorings(self) -> tuple[str, ...]: ...  # noqa: D102


@runtime_checkable
class LabelScorer(Protocol):
    """A `LabelReader` that says how likely each of some given answers is."""

    def score_options_from_labels(
        self,
        rows: Sequence[Mapping[str, Any]],
        prompts: Sequence[str],
        options: Sequence[Sequence[str]],
        by: Literal["letters", "options"],
    ) -> list[list[float]]:
        """As `OptionScorer.score_options`, from rows as `LabelReader.answer_from_labels` is given them."""
        ...


OnAnswer = Callable[[Sequence[tuple[int, "str | list[float]", Mapping[str, Any]]]], object]
"""Called with answers that have come: of each the place of its question in the call, what it is, a text or the
log-likelihoods of options, and what is known of it beside, as JSON values by name: ``finish_reason``, which is
``length`` of an answer that was cut, and ``tokens``, how many were written."""


@runtime_checkable
class Teller(Protocol):
    """A model that tells of answers as soon as it has them, before the others of the same call.

    Attributes:
        on_answers: called with each answer of `AudioLanguageModel.answer` or `OptionScorer.score_options`, never by two
            threads at a time; None where nobody listens.
    """

    on_answers: OnAnswer | None


class Window(Protocol):
    """Questions of several calls that are under way together."""

    def wait_for_room(self) -> None:
        """Wait until the next call is wanted, so that there is always something to ask.

        Raises:
            Exception: a question has failed.
        """
        ...


@runtime_checkable
class Windowed(Protocol):
    """A `Teller` that takes further questions while earlier ones are under way: none waits for the slowest."""

    def window(self, most: int) -> AbstractContextManager[Window | None]:
        """While the block lasts, calls return an empty list as soon as their questions are checked and taken, and
        `Teller.on_answers`, as it is at the call, is called with each answer once it is there, by any thread.

        At the end of the block all answers are there. Where it fails, those that are under way are told of before.

        Args:
            most: questions that may be under way at a time.

        Returns:
            the window; None of a model that answers each call before the next.
        """
        ...


@runtime_checkable
class BatchFormer(Protocol):
    """A model that answers in batches of its own, such as of clips of similar length.

    Attributes:
        batch_size: how many questions a batch has.
        questions_per_call: how many questions it wants in a call.
    """

    @property
    def batch_size(self) -> int: ...  # noqa: D102

    @property
    def questions_per_call(self) -> int: ...  # noqa: D102


@runtime_checkable
class Writer(Protocol):
    """A model that answers in as many tokens as it is allowed.

    Attributes:
        new_tokens: how many an answer may have.
    """

    @property
    def new_tokens(self) -> int: ...  # noqa: D102

    def with_new_tokens(self, count: int) -> AudioLanguageModel:
        """The same model with answers of so many tokens; its id says so."""
        ...


@runtime_checkable
class LengthLimited(Protocol):
    """A model that refuses clips that are too long for it.

    Attributes:
        limit_seconds: of a clip that it takes; None where it knows of no limit.
    """

    @property
    def limit_seconds(self) -> float | None: ...  # noqa: D102


@runtime_checkable
class QuestionCounter(Protocol):
    """A model of which each question costs."""

    def check_questions(self, count: int) -> None:
        """Refuse so many further questions, where they are too many; nothing is asked."""
        ...


Model = AudioEncoder | AudioTextEncoder | AudioLanguageModel
