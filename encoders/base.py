"""The base class of all audio models, `Model`, and checks of the input and output of models.

The methods that a class overrides decide the abilities of its models (`Model.abilities`). Encoders work in two stages,
`prepare` (resampling and the front end) and `forward` (the model), so that a pipeline can overlap them.
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Generic, Literal, Self, TypeVar

import numpy as np
import soxr
from numpy.typing import ArrayLike, NDArray

from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.text import listed, shortened

from .options import AUTO, DEFAULT_OPTIONS, EncoderOptions, LanguageOptions

Features = TypeVar("Features")
FloatArray = NDArray[np.float32]

INT16_SCALE = 32_768
"""16-bit samples are divided by this, so that full scale is [-1, 1)."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters that name a question's options, in order."""

By = Literal["letters", "options"]
"""How an option is scored: ``letters``: the log-likelihood of its letter as the first token; ``options``: the mean
log-likelihood over the tokens of its text."""

EventDict = Mapping[str, Any]
"""A detected event: ``onset`` and ``offset`` in seconds from the start of the clip, and ``label``, a text."""

SERVER = "server"
"""The value of `Model.device` for a model on a server."""

ABILITIES = {
    "audio": ("embed", "embed clips"),
    "frames": ("embed_frames", "embed frames"),
    "text": ("embed_text", "embed texts"),
    "answer": ("answer", "answer questions"),
    "score": ("score_options", "score given answers"),
    "learn": ("learn", "learn from questions"),
    "events": ("detect_events", "detect events"),
    "labels": ("", "read labels instead of sound"),
    "read": ("", "answer without a clip"),
}
"""The abilities of models: name -> the method that implements it (empty if none) and a verb for messages."""

ENCODER = frozenset({"audio"})
TEXT_ENCODER = frozenset({"audio", "text"})
LANGUAGE_MODEL = frozenset({"answer"})
FRAME_ENCODER = frozenset({"audio", "frames"})
"""Names of the kinds of models that tasks need, by their abilities."""

_KINDS = {
    ENCODER: "audio encoder",
    TEXT_ENCODER: "audio–text encoder",
    LANGUAGE_MODEL: "audio language model",
    FRAME_ENCODER: "encoder with frame outputs",
}


def kind_name(needs: frozenset[str]) -> str:
    """Name the kind of model that has these abilities, for messages."""
    verbs = listed([verb for word, (_, verb) in ABILITIES.items() if word in needs])
    return _KINDS.get(needs, f"model that can {verbs}")


OBJECT = "object-"
"""First part of the revision of a model object (in a Python session) that has no `revision`."""


@dataclass(frozen=True)
class ModelCard:
    """The exact identity of a model and of the way it is run.

    Attributes:
        id: name of the model; its result files bear this name.
        revision: version of a baseline, commit of a Hub repository, or SHA-256 of the weights and settings of a folder;
            for a twin, its seed with the commit, weights or settings of the model.
        sample_rate: rate in Hz at which the model works. Clips at other rates are resampled to it.
        output_dim: length of an embedding; None if the model does not embed.
        weights_sha256: SHA-256 of the weights; None for a twin and for a model without weights.
        parameters: number of weights in the part of the model that is run; None if unknown or if it has none.
        paradigm: how the model was trained, in words; None if unknown.
        licence: licence of the weights as their publisher states it; None if unknown.
        trained_on: training data of the weights of both towers, in words; None if not stated.
        front_end_version: raised when a change to the front end changes embeddings, so that cached ones are not reused.
        options: layer, pooling and precision.
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

    @property
    def is_reusable(self) -> bool:
        """Whether an equal card implies an equal model, so that cached embeddings and results may be reused."""
        return not self.revision.startswith(OBJECT)


class ModelError(AudioCompositionalityError):
    """A model that cannot be loaded, or cannot be run as requested."""


class ClipError(AudioCompositionalityError):
    """One clip of a batch cannot be embedded.

    Attributes:
        reason: why it cannot.
        row: index of the clip in its batch, from 0.
    """

    def __init__(self, reason: str, row: int, clip: str | None = None) -> None:
        """Build the message, which names the clip by its id `clip` if given, else by its row."""
        super().__init__(f"row {row}: {reason}" if clip is None else f"clip '{clip}': {reason}")
        self.reason = reason
        self.row = row


@dataclass(frozen=True)
class GivenClip:
    """A clip as input of an audio language model.

    Attributes:
        waveform: float32 [samples] in [-1, 1]; empty for a model that reads labels.
        sample_rate: Hz.
        row: all columns of the recipe except the sound, for a model that reads labels; None for other models.
    """

    waveform: FloatArray
    sample_rate: int
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class GivenQuestion:
    """A prompt about clips, with an index that its answer repeats.

    Attributes:
        index: identifies the question; answers may arrive in any order.
        clips: as in `Model.answer`.
        prompt: the text.
        options: texts of the options if their likelihoods are wanted, else None.
    """

    index: int
    clips: Sequence[Any]
    prompt: str
    options: Sequence[str] = ()


def given_questions(
    clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]] | None = None
) -> list[GivenQuestion]:
    """Return the arguments of `Model.answer` or `Model.score_options` as questions, numbered from 0.

    Raises:
        InputError: the numbers of clips, prompts and options differ.
    """
    for what, given in (("clips", clips), ("lists of options", prompts if options is None else options)):
        if len(given) != len(prompts):
            raise InputError(f"there are {len(prompts)} prompts but {len(given)} {what}; the numbers must be equal")
    every = [()] * len(prompts) if options is None else options
    return [GivenQuestion(index, *one) for index, one in enumerate(zip(clips, prompts, every, strict=True))]


GivenAnswer = tuple["str | list[float]", Mapping[str, Any]]
"""An answer (its text, or the log-likelihoods of its options) and further facts, JSON values by name:
``finish_reason``, which is ``length`` for a truncated answer; ``tokens``, the number of generated tokens; and ``only``,
what a server returned instead of text, see `WITHOUT_TEXT`."""

WITHOUT_TEXT = {
    "reasoning": "the server returned no final answer (reasoning only) to {count} questions, which count as wrong; "
    "raise the limit on tokens: --set max_new_tokens=4096",
    "tool_calls": "the server returned a tool call without text to {count} questions, which count as wrong; set it up "
    "without tools",
    "transcript": "the server returned speech without text to {count} questions; its transcript is the answer",
}
"""Warnings about questions to which a server returned no text, by what it returned instead."""


AnswerStream = Generator[tuple[int, "GivenAnswer | ClipError"], None, None]
"""Answers as they arrive, each with the index of its question; or the reason why the model cannot take its clip."""


def in_order(answers: AnswerStream) -> list[Any]:
    """Collect the texts or log-likelihoods of answers to `given_questions`, in the order of the questions.

    Raises:
        ClipError: the model refuses a clip.
    """
    given: dict[int, Any] = {}
    for index, answer in answers:
        if isinstance(answer, ClipError):
            raise ClipError(answer.reason, index)
        given[index] = answer[0]
    return [given[index] for index in range(len(given))]


class Model:
    """An audio model. A subclass sets `card` and overrides the methods of its abilities; the other methods raise.

    Attributes:
        card: identity of the model.
        device: torch device that it computes on, such as ``cpu`` or ``cuda:0``.
        asks_about_others: whether the caller must pass, with each prompt, the clip of another prompt.
        batch_size: questions per batch, for a model that forms its own batches (for example of clips of similar
            length); None for other models.
        needs_columns: columns of questions that the model needs, such as ``options``.
        questions_per_call: number of questions that a model with its own batches expects in a call.
        limit_seconds: length of the longest clip that it accepts with a question; None if no limit is known.
        new_tokens: maximum number of tokens of an answer; None if the model has no such setting.
    """

    card: ModelCard
    device: str = "cpu"
    asks_about_others: bool = False
    needs_columns: frozenset[str] = frozenset()
    batch_size: int | None = None
    questions_per_call: int | None = None
    limit_seconds: float | None = None
    new_tokens: int | None = None

    @property
    def abilities(self) -> frozenset[str]:
        """Abilities of the model, keys of `ABILITIES`; by default those whose methods its class overrides.

        ``labels``: it answers from the rows of clips (`GivenClip.row`) instead of their sound. ``read``: it also
        answers prompts without a clip.
        """
        methods = ((word, method) for word, (method, _) in ABILITIES.items() if method)
        return frozenset(word for word, name in methods if getattr(type(self), name) is not getattr(Model, name))

    def require(self, ability: str) -> None:
        """Raise an error if the model lacks an ability.

        Raises:
            ModelError: names the model and its abilities.
        """
        if ability not in self.abilities:
            raise self.refusal(ability)

    def refusal(self, ability: str) -> ModelError:
        """Return the error about a missing ability."""
        able = [verb for word, (_, verb) in ABILITIES.items() if word in self.abilities]
        can = f"it can {listed(able)}" if able else "it has no abilities"
        return ModelError(f"'{self.card.id}' cannot {ABILITIES[ability][1]}; {can}")

    @property
    def clips_card(self) -> ModelCard:
        """Card under which its embeddings of clips are cached."""
        return self.card

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Any:
        """First stage of `embed`, which may run ahead of the second; by default the clips are passed on unchanged."""
        return waveforms, sample_rate

    def forward(self, features: Any) -> FloatArray:
        """Second stage of `embed`: return float32 [n, output_dim] from the output of `prepare`."""
        return check_embeddings(self.embed(*features), self)

    def embed(self, waveforms: ArrayLike, sample_rate: int) -> FloatArray:
        """Embed clips of equal length.

        Args:
            waveforms: [n, samples], floating point within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Returns:
            float32 [n, output_dim]; each row depends on its own clip only.
        """
        raise self.refusal("audio")

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[FloatArray, float]:
        """Embed every frame of clips; for the arguments see `embed`.

        Returns:
            float32 [n, frames, dim], and the distance between frames in seconds. Frame i describes the sound around
            (i + 1/2) times that distance.
        """
        raise self.refusal("frames")

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """Embed texts into the space of clips: float32 [n, output_dim]; each row depends on its own text only."""
        raise self.refusal("text")

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Answer prompts, each about its clips.

        Args:
            clips: for each prompt a list, currently of one clip: an object with ``waveform``, float32 [samples] in
                [-1, 1], and ``sample_rate`` in Hz; see `GivenClip`.
            prompts: one text per list of clips.

        Returns:
            one text per prompt; each depends on its own clips and prompt only.
        """
        raise self.refusal("answer")

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """Return the log-likelihood of each option as the answer to a prompt about its clips.

        Args:
            clips: as for `answer`.
            prompts: one text per list of clips.
            options: for each prompt two or more texts, in the order in which the prompt calls them A, B, C and so on.
            by: one of `scorings`; see `By`.

        Returns:
            for each prompt one natural logarithm per option, at most 0; each depends on its own clips, prompt and
            options only.
        """
        raise self.refusal("score")

    def answers(self, questions: Iterable[GivenQuestion], by: By | None = None, *, size: int) -> AnswerStream:
        """Answer questions, and yield each answer as soon as it is available, in any order.

        By default, questions are passed to `answer` or `score_options`, several per call. Only the indices of the
        questions decide which of them share a call, because an answer may depend, within rounding, on the other
        questions of its call.

        Args:
            questions: any number; they are read only when needed, possibly by another thread.
            by: see `score_options`; None for written answers.
            size: maximum number of questions per call.

        Yields:
            the index of a question and its answer, or the reason why the model cannot take its clip.

        Raises:
            ModelError: the model did not answer each question. Answers that had begun are yielded
                first.
        """
        for _, together in groupby(questions, key=lambda question: question.index // size):
            batch = list(together)
            while batch:
                clips, prompts = [one.clips for one in batch], [one.prompt for one in batch]
                try:
                    if by is None:
                        given: Any = self.answer(clips, prompts)
                    else:
                        given = self.score_options(clips, prompts, [one.options for one in batch], by)
                except ClipError as error:
                    yield batch.pop(error.row).index, error
                    continue
                self._check_given(given, len(prompts), by)
                yield from ((question.index, (answer, {})) for question, answer in zip(batch, given, strict=True))
                break

    def _check_given(self, given: Any, count: int, by: By | None) -> None:
        """Raise an error if the output of `answer` or `score_options` does not hold an answer to each prompt."""
        name = f"'{self.card.id}'"
        is_list = isinstance(given, Sequence) and not isinstance(given, str)
        if by is not None:
            if not is_list or len(given) != count:
                raise ModelError(f"{name} returned no list of scores for each of the {count} prompts")
            return
        if not is_list:
            raise ModelError(f"{name} returned a {type(given).__name__}; it must return a list of texts (str)")
        if len(given) != count:
            raise ModelError(f"{name} returned {len(given)} answers to {count} prompts; it must return one per prompt")
        for answer in given:
            if not isinstance(answer, str):
                raise ModelError(f"{name} returned a {type(answer).__name__} as an answer; each must be a text (str)")

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """Train the model from scratch on questions with their answers; equal input gives an equal model.

        Args:
            rows: rows of the split ``train`` without their sound; all columns of the recipe.
            clips: the clip of each row in order. They are read lazily, so that a text-only model reads none. Clips
                that cannot be used hold NaN.
        """
        raise self.refusal("learn")

    def detect_events(self, clips: Sequence[Any]) -> list[list[EventDict]]:
        """Detect the events of each clip, in any order; clips are objects as in `answer`."""
        raise self.refusal("events")

    @property
    def scorings(self) -> tuple[str, ...]:
        """Values of ``by`` that `score_options` accepts."""
        return ("letters", "options") if "score" in self.abilities else ()

    def with_new_tokens(self, count: int) -> Model:
        """Return this model with answers of at most `count` tokens; its id states the limit.

        Raises:
            ModelError: the model has no such setting.
        """
        raise ModelError(f"'{self.card.id}' has no limit on the tokens of an answer")

    def single_clips(self, clips: Sequence[Sequence[Any]]) -> list[Any]:
        """Return the clip of each prompt, for a model that takes one clip per prompt.

        Raises:
            ModelError: a prompt has no clip, or several.
        """
        return [self.single_clip(some, place) for place, some in enumerate(clips)]

    def single_clip(self, clips: Sequence[Any], place: int) -> Any:
        """Return the only clip of the prompt at index `place`; raises as `single_clips`."""
        if not isinstance(clips, Sequence):
            raise ModelError(
                f"clips must be one list per prompt, [[clip], …]; the entry of prompt {place} is not a list"
            )
        if len(clips) != 1:
            count = len(clips) or "no"
            raise ModelError(f"'{self.card.id}' takes one clip per prompt, but prompt {place} has {count} clips")
        return clips[0]

    def rows_of(self, clips: Sequence[Sequence[Any]]) -> list[Mapping[str, Any]]:
        """Return the row of each prompt's clip, for a model that reads labels.

        Raises:
            ModelError: a clip has no row.
        """
        rows = [getattr(clip, "row", None) for clip in self.single_clips(clips)]
        if any(row is None for row in rows):
            raise ModelError(f"'{self.card.id}' reads no sound; each clip needs its labels (GivenClip.row)")
        return [row for row in rows if row is not None]


class _Forwarded:
    """An attribute or method that a wrapper forwards to its model."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, wrapper: Wrapper | None, owner: type) -> Any:
        return self if wrapper is None else getattr(wrapper.model, self.name)

    def __set__(self, wrapper: Wrapper, value: Any) -> None:
        setattr(wrapper.model, self.name, value)


class Wrapper(Model, ABC):
    """A model around another one. Attributes that callers read are forwarded; a subclass states its abilities.

    Attributes:
        model: the wrapped model.
    """

    device: Any = _Forwarded()
    scorings: Any = _Forwarded()
    needs_columns: Any = _Forwarded()
    batch_size: Any = _Forwarded()
    questions_per_call: Any = _Forwarded()
    limit_seconds: Any = _Forwarded()
    new_tokens: Any = _Forwarded()

    def __init__(self, model: Model) -> None:
        """Wrap a model; `make_card` is called at once."""
        self.model = model
        self.card = self.make_card()

    @abstractmethod
    def make_card(self) -> ModelCard:
        """Make the card from the wrapped model's card."""

    def changed(self, questions: Iterable[GivenQuestion], size: int) -> Iterable[GivenQuestion]:
        """Yield the questions as the wrapped model receives them; at most `size` are read ahead."""
        return questions

    def answers(self, questions: Iterable[GivenQuestion], by: By | None = None, *, size: int) -> AnswerStream:
        """Yield the wrapped model's answers to the changed questions."""
        return self.model.answers(self.changed(questions, size), by, size=size)

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Return the wrapped model's answers to the changed questions; see `Model.answer`."""
        self.require("answer")
        return in_order(self.answers(given_questions(clips, prompts), size=len(prompts) or 1))

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """Return the wrapped model's scores for the changed questions; see `Model.score_options`."""
        self.require("score")
        return in_order(self.answers(given_questions(clips, prompts, options), by, size=len(prompts) or 1))

    def with_new_tokens(self, count: int) -> Self:
        """See `Model`."""
        other = copy.copy(self)
        other.model = self.model.with_new_tokens(count)
        other.card = other.make_card()
        return other


class StagedEncoder(Model, ABC, Generic[Features]):
    """An encoder in two stages. A subclass sets `card` and implements the two underscored methods."""

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Features:
        """Validate clips, resample them to the encoder's rate and compute the features of its model.

        Args:
            waveforms: [n, samples], floating point within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Raises:
            InputError: wrong shape, type or rate.
            ModelError: clips that the model cannot take.
            ClipError: one clip holds NaN or infinity; the error carries its row.
        """
        clips = resample(check_waveforms(waveforms), check_sample_rate(sample_rate), self.card.sample_rate)
        return self._extract_features(clips)

    def forward(self, features: Features) -> FloatArray:
        """Embed the output of `prepare`: float32 [n, output_dim].

        Raises:
            ClipError: an embedding is not finite.
            ModelError: the model returned a wrong shape.
        """
        return check_embeddings(self._run_model(features), self)

    def embed(self, waveforms: ArrayLike | Sequence[ArrayLike], sample_rate: int) -> FloatArray:
        """Embed clips: `forward(prepare(waveforms, sample_rate))`; see `Model.embed`.

        Clips of different lengths may be passed as a list of [samples] arrays. Clips of equal length are embedded
        together, so that no clip is padded to another's length.
        """
        if not isinstance(waveforms, (list, tuple)) or len({np.shape(clip) for clip in waveforms}) <= 1:
            return self.forward(self.prepare(np.asarray(waveforms), sample_rate))
        clips = [np.asarray(clip) for clip in waveforms]
        embeddings = np.empty((len(clips), output_dim_of(self)), np.float32)
        for shape in sorted({clip.shape for clip in clips}):
            rows = [row for row, clip in enumerate(clips) if clip.shape == shape]
            embeddings[rows] = self.forward(self.prepare([clips[row] for row in rows], sample_rate))
        return embeddings

    @abstractmethod
    def _extract_features(self, clips: FloatArray) -> Features:
        """Features of valid clips, float32 [n, samples] at the encoder's rate."""

    @abstractmethod
    def _run_model(self, features: Features) -> FloatArray:
        """Embeddings [n, output_dim] of features."""


class WaveformEncoder(StagedEncoder[FloatArray]):
    """An encoder whose features are the waveforms, float32 [n, samples] at its own rate."""

    def _extract_features(self, clips: FloatArray) -> FloatArray:
        return clips


def check_waveforms(waveforms: ArrayLike) -> FloatArray:
    """Validate clips and return them as float32 [n, samples] within [-1, 1].

    Floating-point input keeps its values; int16 is divided by 32,768.

    Raises:
        InputError: the array is not 2-D, is empty, or has another type.
        ClipError: a clip holds NaN or infinity.
    """
    array = np.asarray(waveforms)
    if array.ndim != 2:
        hint = "; wrap a single clip as waveform[None, :]" if array.ndim == 1 else ""
        raise InputError(f"waveforms have shape {array.shape}, but must be [n, samples]{hint}")
    if array.size == 0:
        raise InputError(f"waveforms have shape {array.shape}; they must hold at least one clip and one sample")
    if array.dtype == np.int16:
        return array.astype(np.float32) / np.float32(INT16_SCALE)
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"waveforms are {array.dtype}, but must be floating point within [-1, 1], or int16")
    clips: FloatArray = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(clips).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        sample = int(np.argmin(np.isfinite(clips[row])))
        value = array[row, sample]
        raise ClipError(f"the waveform holds {value} at sample {sample}; samples must be finite", row)
    return clips


def check_sample_rate(sample_rate: int) -> int:
    """Return the rate as an int.

    Raises:
        InputError: it is not a positive whole number of Hz.
    """
    if isinstance(sample_rate, bool) or int(sample_rate) != sample_rate or sample_rate <= 0:
        raise InputError(f"sample rate {sample_rate!r} must be a positive whole number of Hz")
    return int(sample_rate)


def resample(clips: FloatArray, source_rate: int, target_rate: int) -> FloatArray:
    """Resample clips [n, samples] from one rate (Hz) to another with soxr at its quality "HQ" (20 bits).

    Each clip is resampled alone, so that its samples do not depend on its batch. Clips are returned unchanged if the
    rates are equal.

    Raises:
        InputError: the clips are too short to leave one sample.
    """
    if source_rate == target_rate:
        return clips
    resampled: FloatArray = np.stack([soxr.resample(c, source_rate, target_rate, quality="HQ") for c in clips])
    if resampled.shape[1] == 0:
        raise InputError(
            f"clips of {clips.shape[1]} samples at {source_rate} Hz are shorter than one sample at {target_rate} Hz"
        )
    return resampled


def output_dim_of(encoder: Model) -> int:
    """Return the length of an encoder's embeddings.

    Raises:
        ModelError: its card states none.
    """
    if encoder.card.output_dim is None:
        raise ModelError(f"the card of '{encoder.card.id}' has no output_dim; the card of an encoder needs one")
    return encoder.card.output_dim


def check_embeddings(embeddings: NDArray[Any], encoder: Model, count: int | None = None) -> FloatArray:
    """Validate embeddings and return them as finite float32 [n, output_dim].

    Args:
        embeddings: output of a model.
        encoder: the model whose card states the expected length.
        count: number of clips, if the caller knows it.

    Raises:
        ModelError: another shape or type.
        ClipError: a row is not finite.
    """
    array, dim = np.asarray(embeddings), output_dim_of(encoder)
    rows = len(array) if count is None and array.ndim else count
    if array.shape != (rows, dim) or dim < 1:
        expected = f"[{'n' if count is None else count}, {dim if dim > 0 else 'dim'}]"
        raise ModelError(f"encoder '{encoder.card.id}' returned shape {array.shape}, but must return {expected}")
    if not np.issubdtype(array.dtype, np.floating):
        raise ModelError(
            f"encoder '{encoder.card.id}' returned {array.dtype}, but must return floating-point embeddings"
        )
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        bad = int((~np.isfinite(array[row])).sum())
        raise ClipError(
            f"encoder '{encoder.card.id}' returned {bad} of {dim} values that are NaN or infinite",
            row,
        )
    return array.astype(np.float32, copy=False)


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")

_SHOWN = 60
"""Longest quotation of a text in a message, in characters."""


def words_of(text: str) -> list[str]:
    """Return the words of a text in order, in lower case, without punctuation; ' and - do not split a word."""
    return _WORD.findall(text.casefold())


def check_texts(texts: Sequence[str]) -> list[str]:
    """Validate texts and return them as a list.

    Raises:
        InputError: a single text instead of a list, an empty list, or an entry that is blank or not a str.
    """
    if isinstance(texts, str):
        raise InputError(f"texts are the single text {quoted(texts)}; pass a list of texts")
    listed = list(texts)
    if not listed:
        raise InputError("there are no texts; pass at least one")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"text {row} is {text!r}; it must be a str")
        if not text.strip():
            raise InputError(f"text {row} is empty")
    return listed


def check_text_embeddings(embeddings: NDArray[Any], encoder: Model, texts: Sequence[str]) -> FloatArray:
    """Validate embeddings of texts and return them as finite float32 [n, output_dim].

    Args:
        embeddings: output of a model.
        encoder: the model whose card states the expected length.
        texts: the embedded texts.

    Raises:
        ModelError: another shape or type, or a row that is not finite.
    """
    array, dim = np.asarray(embeddings), output_dim_of(encoder)
    if array.shape != (len(texts), dim):
        raise ModelError(
            f"'{encoder.card.id}' returned shape {array.shape} for texts, but must return [{len(texts)}, {dim}]: texts "
            "and clips must share a space"
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise ModelError(
            f"'{encoder.card.id}' returned {array.dtype} for texts, but must return floating-point embeddings"
        )
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ModelError(f"'{encoder.card.id}' returned values that are NaN or infinite for {quoted(texts[row])}")
    return array.astype(np.float32, copy=False)


def quoted(text: str) -> str:
    """Quote the beginning of a text for a message."""
    return f"'{shortened(text, _SHOWN)}'"


def language_options(options: EncoderOptions, name: str) -> LanguageOptions:
    """Return the options of an audio language model, taken from the options of any model.

    The default precision of `EncoderOptions` becomes the device's own: only `LanguageOptions` can request float32.

    Raises:
        ModelError: the options hold a layer, a pooling or compilation.
    """
    if (options.layer, options.pooling, options.compile) != (
        DEFAULT_OPTIONS.layer,
        DEFAULT_OPTIONS.pooling,
        DEFAULT_OPTIONS.compile,
    ):
        raise ModelError(
            f"'{name}' is an audio language model and takes no layer, pooling or compilation; for its audio encoder, "
            f"pass 'tower:{name}'"
        )
    if isinstance(options, LanguageOptions):
        return options
    is_default = options.precision == DEFAULT_OPTIONS.precision
    return LanguageOptions(precision=AUTO if is_default else options.precision)
