"""The base class of all audio models, `Model`, and the checks of a model's input and output.

The methods of a class decide the abilities of its models (`Model.abilities`). Encoders work in two stages, so that a
pipeline can overlap them: `prepare` (resampling and the front end) and `forward` (the model).
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
"""Names of a question's options, in their order."""

By = Literal["letters", "options"]
"""The tokens whose likelihood is taken: the first of an option's letter, among all with which an answer may begin; or
those of its text, in the mean."""

EventDict = Mapping[str, Any]
"""``onset`` and ``offset``, seconds from the start of the clip, and ``label``, a text; as in the column ``events``."""

SERVER = "server"
"""The device of a model that runs elsewhere."""

ABILITIES = {
    "audio": ("embed", "embed clips"),
    "frames": ("embed_frames", "embed frames"),
    "text": ("embed_text", "embed texts"),
    "answer": ("answer", "answer questions"),
    "score": ("score_options", "score given answers"),
    "learn": ("learn", "learn from questions"),
    "events": ("detect_events", "detect events"),
    "labels": ("", "read labels in place of sound"),
    "read": ("", "answer without a clip"),
}
"""The abilities of models: for each its method, where there is one, and the verb for messages."""

ENCODER = frozenset({"audio"})
TEXT_ENCODER = frozenset({"audio", "text"})
LANGUAGE_MODEL = frozenset({"answer"})
FRAME_ENCODER = frozenset({"audio", "frames"})
"""The kinds of models that tasks ask for, by the abilities that they need."""

_KINDS = {
    ENCODER: "audio encoder",
    TEXT_ENCODER: "audio–text encoder",
    LANGUAGE_MODEL: "audio language model",
    FRAME_ENCODER: "encoder that gives frames",
}


def kind_name(needs: frozenset[str]) -> str:
    """A kind of model in words, by the abilities that it needs."""
    verbs = listed([verb for word, (_, verb) in ABILITIES.items() if word in needs])
    return _KINDS.get(needs, f"model that can {verbs}")


OBJECT = "object-"
"""First part of the revision of a model that is an object of a Python session and states no revision."""


@dataclass(frozen=True)
class ModelCard:
    """The exact identity of a model as it is run.

    Attributes:
        id: name of the model; result files are named by it.
        revision: a version for a baseline, the commit of a Hub repository or the SHA-256 of the weights and settings of
            a folder; for a twin its seed with the facts of the model: commit, weights, settings.
        sample_rate: rate in Hz that the model works at. Clips at any rate are resampled to it.
        output_dim: length of an embedding; None for a model that gives none.
        weights_sha256: SHA-256 of the weights; None where there are none, and for a twin.
        parameters: number of weights of the part of the model that is run; None where it is not known or none.
        paradigm: how the model was trained, in words; None where it is not known.
        licence: of the weights, as their publisher states it; None where it is not known.
        trained_on: data that the weights were trained on, both towers, in words; None where it is not stated.
        front_end_version: raised when a change to the front end changes embeddings, so that stored ones are not reused.
        options: its layer, pooling and precision.
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
        """Whether an equal card means an equal model, so that stored embeddings and results may be reused."""
        return not self.revision.startswith(OBJECT)


class ModelError(AudioCompositionalityError):
    """A model that cannot be loaded, or cannot be run as requested."""


class ClipError(AudioCompositionalityError):
    """One clip of a batch cannot be embedded.

    Attributes:
        reason: why.
        row: place of the clip in its batch, counted from 0.
    """

    def __init__(self, reason: str, row: int, clip: str | None = None) -> None:
        """`clip` is the clip's id, which the message names where it is known, else the row."""
        super().__init__(f"row {row}: {reason}" if clip is None else f"clip '{clip}': {reason}")
        self.reason = reason
        self.row = row


@dataclass(frozen=True)
class GivenClip:
    """A clip as the input of a model that answers.

    Attributes:
        waveform: float32 [samples] in [-1, 1]; empty for a model that reads labels.
        sample_rate: Hz.
        row: all columns of the recipe, without the sound, for a model that reads labels; else None.
    """

    waveform: FloatArray
    sample_rate: int
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class GivenQuestion:
    """A prompt about clips, with a number that comes back with its answer.

    Attributes:
        index: the number.
        clips: as in `Model.answer`.
        prompt: the text.
        options: the texts of its options, where their likelihoods are wanted.
    """

    index: int
    clips: Sequence[Any]
    prompt: str
    options: Sequence[str] = ()


def given_questions(
    clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]] | None = None
) -> list[GivenQuestion]:
    """The arguments of `Model.answer` or `Model.score_options` as questions, numbered from 0.

    Raises:
        InputError: there are not as many clips, or options, as prompts.
    """
    for what, given in (("clips", clips), ("lists of options", prompts if options is None else options)):
        if len(given) != len(prompts):
            raise InputError(f"there are {len(prompts)} prompts for {len(given)} {what}; there must be as many")
    every = [()] * len(prompts) if options is None else options
    return [GivenQuestion(index, *one) for index, one in enumerate(zip(clips, prompts, every, strict=True))]


GivenAnswer = tuple["str | list[float]", Mapping[str, Any]]
"""An answer: its text or the log-likelihoods of its options; and further facts, as JSON values by name:
``finish_reason``, which is ``length`` for an answer that was cut, ``tokens``, the number written, and ``only``, what a
server returned instead of a text, see `WITHOUT_TEXT`."""

WITHOUT_TEXT = {
    "reasoning": "the server returned no final answer (reasoning only) to {count} questions, which count as wrong; "
    "raise the limit on tokens: --set max_new_tokens=4096",
    "tool_calls": "the server returned a tool call without text to {count} questions, which count as wrong; set it up "
    "without tools",
    "transcript": "the server returned speech without text to {count} questions; its transcript is the answer",
}
"""The warning about questions for which a server returned no text, by what it returned instead."""


AnswerStream = Generator[tuple[int, "GivenAnswer | ClipError"], None, None]
"""Answers as they come, each with the number of its question; or the reason why a model takes no such clip."""


def in_order(answers: AnswerStream) -> list[Any]:
    """The texts or log-likelihoods of answers to `given_questions`.

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
    """An audio model. Its methods refuse; a subclass sets `card` and overrides the methods of its abilities.

    Attributes:
        card: its identity.
        device: torch device that it computes on, such as ``cpu`` or ``cuda:0``.
        asks_about_others: whether it has to be given, for each prompt, the clip of another one.
        batch_size: questions a batch, for a model that forms its own batches, such as of clips of similar length; None
            for others.
        needs_columns: columns that questions must have for it, such as ``options``.
        questions_per_call: number of questions that such a model expects in a call.
        limit_seconds: the longest clip that it answers about; None where no limit is known.
        new_tokens: most tokens of an answer; None where the model has no such setting.
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
        """Its abilities, words of `ABILITIES`: by default those whose methods its class has.

        ``labels`` means that it answers from the rows of clips (`GivenClip.row`) instead of their sound, ``read`` that
        it also answers a prompt with no clip.
        """
        methods = ((word, method) for word, (method, _) in ABILITIES.items() if method)
        return frozenset(word for word, name in methods if getattr(type(self), name) is not getattr(Model, name))

    def require(self, ability: str) -> None:
        """Refuse a missing ability.

        Raises:
            ModelError: names the model and its abilities.
        """
        if ability not in self.abilities:
            raise self.refusal(ability)

    def refusal(self, ability: str) -> ModelError:
        """The error about a missing ability."""
        able = [verb for word, (_, verb) in ABILITIES.items() if word in self.abilities]
        can = f"it can {listed(able)}" if able else "there is nothing that it can do"
        return ModelError(f"'{self.card.id}' cannot {ABILITIES[ability][1]}; {can}")

    @property
    def clips_card(self) -> ModelCard:
        """The card under which its embeddings of clips are stored."""
        return self.card

    def prepare(self, waveforms: ArrayLike, sample_rate: int) -> Any:
        """The first stage of `embed`, which may run ahead of the second; by default nothing is done in it."""
        return waveforms, sample_rate

    def forward(self, features: Any) -> FloatArray:
        """The second stage of `embed`: float32 [n, output_dim] from the output of `prepare`."""
        return check_embeddings(self.embed(*features), self)

    def embed(self, waveforms: ArrayLike, sample_rate: int) -> FloatArray:
        """Embed clips of equal length.

        Args:
            waveforms: [n, samples], floating within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Returns:
            float32 [n, output_dim]; a row depends on its own clip only.
        """
        raise self.refusal("audio")

    def embed_frames(self, waveforms: ArrayLike, sample_rate: int) -> tuple[FloatArray, float]:
        """Embed every frame of clips; arguments as for `embed`.

        Returns:
            float32 [n, frames, dim], the distance between frames in seconds. Frame i is about the sound around
            (i + 1/2) times that distance.
        """
        raise self.refusal("frames")

    def embed_text(self, texts: Sequence[str]) -> FloatArray:
        """Embed texts into the space of clips: float32 [n, output_dim]; a row depends on its own text only."""
        raise self.refusal("text")

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Answer prompts, each about its clips.

        Args:
            clips: for each prompt a list, today of one clip: an object with ``waveform``, float32 [samples] in [-1, 1],
                and ``sample_rate`` in Hz; see `GivenClip`.
            prompts: as many.

        Returns:
            a text each, as long as prompts; it depends on its own clips and prompt only.
        """
        raise self.refusal("answer")

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """The log-likelihood of each option as the answer to one prompt about its clips.

        Args:
            clips: as for `answer`.
            prompts: as many.
            options: for each prompt two or more texts, in the order in which the prompt calls them A, B, C and so on.
            by: one of `scorings`; see `By`.

        Returns:
            for each prompt a natural logarithm for each option, at most 0; they depend on its own clips, prompt and
            options only.
        """
        raise self.refusal("score")

    def answers(self, questions: Iterable[GivenQuestion], by: By | None = None, *, size: int) -> AnswerStream:
        """Answer questions, and yield each answer as soon as it is there, in any order.

        By default questions are put by `answer` or `score_options` in calls of several. Which questions share a call
        depends on their numbers alone: within rounding, an answer may depend on the rest of the call.

        Args:
            questions: any number; they are read as they can be put, at times by another thread.
            by: see `score_options`; None for written answers.
            size: most questions at a time.

        Yields:
            the number of a question and its answer, or the reason why the model takes no such clip.

        Raises:
            ModelError: the model does not give an answer to each question. Answers that were under way are yielded
                before.
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
        """Refuse the output of `answer` or `score_options` that is not an answer to each of so many prompts."""
        name = f"'{self.card.id}'"
        is_list = isinstance(given, Sequence) and not isinstance(given, str)
        if by is not None:
            if not is_list or len(given) != count:
                raise ModelError(f"{name} gave no list of scores for each of the {count} prompts")
            return
        if not is_list:
            raise ModelError(f"{name} answered with a {type(given).__name__}; it must give a list of texts")
        if len(given) != count:
            raise ModelError(f"{name} gave {len(given)} answers to {count} prompts; it must give one to each")
        for answer in given:
            if not isinstance(answer, str):
                raise ModelError(f"{name} gave a {type(answer).__name__} as an answer; each must be a text (str)")

    def learn(self, rows: Sequence[Mapping[str, Any]], clips: Iterable[Any]) -> None:
        """Learn anew from questions with their answers; equal input gives an equal model.

        Args:
            rows: of the split ``train``, without their sound; all columns of the recipe.
            clips: the clip of each row in order. They are read lazily, so that a text-only model reads none. The
                samples of a clip that cannot be used are NaN.
        """
        raise self.refusal("learn")

    def detect_events(self, clips: Sequence[Any]) -> list[list[EventDict]]:
        """The events of each clip, in any order; clips are objects as in `answer`."""
        raise self.refusal("events")

    @property
    def scorings(self) -> tuple[str, ...]:
        """Values of ``by`` that `score_options` takes."""
        return ("letters", "options") if "score" in self.abilities else ()

    def with_new_tokens(self, count: int) -> Model:
        """The same model with answers of at most so many tokens; its id says so.

        Raises:
            ModelError: it has no such setting.
        """
        raise ModelError(f"'{self.card.id}' knows of no number of tokens")

    def single_clips(self, clips: Sequence[Sequence[Any]]) -> list[Any]:
        """The clip of each prompt, for a model that takes one.

        Raises:
            ModelError: a prompt is about none, or about several.
        """
        return [self.single_clip(some, place) for place, some in enumerate(clips)]

    def single_clip(self, clips: Sequence[Any], place: int) -> Any:
        """The only clip of the prompt at a place; raises as `single_clips`."""
        if not isinstance(clips, Sequence):
            raise ModelError(f"clips are a list for each prompt, [[clip], …], but that of prompt {place} is not a list")
        if len(clips) != 1:
            count = len(clips) or "no"
            raise ModelError(f"'{self.card.id}' takes one clip a prompt, but prompt {place} is about {count} clips")
        return clips[0]

    def rows_of(self, clips: Sequence[Sequence[Any]]) -> list[Mapping[str, Any]]:
        """The row of the clip of each prompt, for a model that reads labels.

        Raises:
            ModelError: a clip has none.
        """
        rows = [getattr(clip, "row", None) for clip in self.single_clips(clips)]
        if any(row is None for row in rows):
            raise ModelError(f"'{self.card.id}' takes no sound: it answers from the labels of rows (GivenClip.row)")
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
    """A model around another one, whose attributes for asking it forwards. A subclass states its abilities.

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
        """Take a model; `make_card` has to work by then."""
        self.model = model
        self.card = self.make_card()

    @abstractmethod
    def make_card(self) -> ModelCard:
        """The card, from the wrapped model's."""

    def changed(self, questions: Iterable[GivenQuestion], size: int) -> Iterable[GivenQuestion]:
        """The questions as they are put to the wrapped model; at most so many are read ahead."""
        return questions

    def answers(self, questions: Iterable[GivenQuestion], by: By | None = None, *, size: int) -> AnswerStream:
        """As the wrapped model's, to the changed questions."""
        return self.model.answers(self.changed(questions, size), by, size=size)

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """As the wrapped model's, to the changed questions; see `Model.answer`."""
        self.require("answer")
        return in_order(self.answers(given_questions(clips, prompts), size=len(prompts) or 1))

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """As the wrapped model's, to the changed questions; see `Model.score_options`."""
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
            waveforms: [n, samples], floating within [-1, 1], or int16.
            sample_rate: their rate in Hz.

        Raises:
            InputError: on a wrong shape, type or rate.
            ModelError: on clips that the model cannot take.
            ClipError: when one clip is to blame (NaN, infinity); it carries the row.
        """
        clips = resample(check_waveforms(waveforms), check_sample_rate(sample_rate), self.card.sample_rate)
        return self._extract_features(clips)

    def forward(self, features: Features) -> FloatArray:
        """Embed the output of `prepare`: float32 [n, output_dim].

        Raises:
            ClipError: when an embedding is not finite.
            ModelError: when the model returned another shape than it should.
        """
        return check_embeddings(self._run_model(features), self)

    def embed(self, waveforms: ArrayLike | Sequence[ArrayLike], sample_rate: int) -> FloatArray:
        """Embed clips: `forward(prepare(waveforms, sample_rate))`; see `Model.embed`.

        Clips of different lengths may be given as a list of [samples] arrays. Clips of one length are embedded
        together, so that none is padded to another's length.
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
        """Features of valid clips, float32 [n, samples] at the encoder's own rate."""

    @abstractmethod
    def _run_model(self, features: Features) -> FloatArray:
        """Embeddings [n, output_dim] of features."""


class WaveformEncoder(StagedEncoder[FloatArray]):
    """An encoder whose features are the waveforms themselves, float32 [n, samples] at its own rate."""

    def _extract_features(self, clips: FloatArray) -> FloatArray:
        return clips


def check_waveforms(waveforms: ArrayLike) -> FloatArray:
    """Validated clips as float32 [n, samples] within [-1, 1].

    Floating input is taken as it is, int16 is divided by 32,768.

    Raises:
        InputError: if the array is not 2-D, is empty, or is of another type.
        ClipError: if a clip holds NaN or infinity.
    """
    array = np.asarray(waveforms)
    if array.ndim != 2:
        hint = "; wrap a single clip as waveform[None, :]" if array.ndim == 1 else ""
        raise InputError(f"waveforms have shape {array.shape}, but must be [n, samples]{hint}")
    if array.size == 0:
        raise InputError(f"waveforms have shape {array.shape}, but must hold a clip and a sample at least")
    if array.dtype == np.int16:
        return array.astype(np.float32) / np.float32(INT16_SCALE)
    if not np.issubdtype(array.dtype, np.floating):
        raise InputError(f"waveforms are {array.dtype}, but must be floating within [-1, 1], or int16")
    clips: FloatArray = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(clips).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        sample = int(np.argmin(np.isfinite(clips[row])))
        value = array[row, sample]
        raise ClipError(f"the waveform holds {value} at sample {sample}; samples must be finite", row)
    return clips


def check_sample_rate(sample_rate: int) -> int:
    """The rate as an int.

    Raises:
        InputError: if it is no positive whole number of Hz.
    """
    if isinstance(sample_rate, bool) or int(sample_rate) != sample_rate or sample_rate <= 0:
        raise InputError(f"sample rate {sample_rate!r} must be a positive whole number of Hz")
    return int(sample_rate)


def resample(clips: FloatArray, source_rate: int, target_rate: int) -> FloatArray:
    """Clips [n, samples] resampled from one rate (Hz) to another by soxr at its quality "HQ" (20 bits).

    Each clip is resampled alone, so that its samples do not depend on its batch; between equal rates clips are
    returned as they are.

    Raises:
        InputError: if the clips are too short to leave one sample.
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
    """Length of the embeddings of an encoder.

    Raises:
        ModelError: if its card states none.
    """
    if encoder.card.output_dim is None:
        raise ModelError(f"the card of '{encoder.card.id}' states no output_dim; that of an encoder must")
    return encoder.card.output_dim


def check_embeddings(embeddings: NDArray[Any], encoder: Model, count: int | None = None) -> FloatArray:
    """Embeddings as float32 [n, output_dim], known to be finite.

    Args:
        embeddings: output of a model.
        encoder: whose card the check uses.
        count: number of clips, where the caller knows it.

    Raises:
        ModelError: on another shape or type.
        ClipError: if a row is not finite.
    """
    array, dim = np.asarray(embeddings), output_dim_of(encoder)
    rows = len(array) if count is None and array.ndim else count
    if array.shape != (rows, dim) or dim < 1:
        expected = f"[{'n' if count is None else count}, {dim if dim > 0 else 'dim'}]"
        raise ModelError(f"encoder '{encoder.card.id}' returned shape {array.shape}, but must return {expected}")
    if not np.issubdtype(array.dtype, np.floating):
        raise ModelError(f"encoder '{encoder.card.id}' returned {array.dtype}, but must return floating embeddings")
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
"""Most characters of a text in a message."""


def words_of(text: str) -> list[str]:
    """The words of a text in their order, in lower case, without punctuation; parts joined by ' or - are one word."""
    return _WORD.findall(text.casefold())


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list.

    Raises:
        InputError: it is a single text, there are none, or one is no text or blank.
    """
    if isinstance(texts, str):
        raise InputError(f"texts are the one text {quoted(texts)}; pass a list of texts")
    listed = list(texts)
    if not listed:
        raise InputError("there are no texts; there must be one at least")
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise InputError(f"text {row} is {text!r}; it must be a str")
        if not text.strip():
            raise InputError(f"text {row} is empty")
    return listed


def check_text_embeddings(embeddings: NDArray[Any], encoder: Model, texts: Sequence[str]) -> FloatArray:
    """Embeddings of texts as float32 [n, output_dim], known to be finite.

    Args:
        embeddings: output of a model.
        encoder: whose card the check uses.
        texts: the embedded texts.

    Raises:
        ModelError: on another shape or type, or where a row is not finite.
    """
    array, dim = np.asarray(embeddings), output_dim_of(encoder)
    if array.shape != (len(texts), dim):
        raise ModelError(
            f"'{encoder.card.id}' returned shape {array.shape} for texts, but must return [{len(texts)}, {dim}]: texts "
            "and clips share a space"
        )
    if not np.issubdtype(array.dtype, np.floating):
        raise ModelError(f"'{encoder.card.id}' returned {array.dtype} for texts, but must return floating embeddings")
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ModelError(f"'{encoder.card.id}' returned values that are NaN or infinite for {quoted(texts[row])}")
    return array.astype(np.float32, copy=False)


def quoted(text: str) -> str:
    """A text for a message: its beginning, between quotation marks."""
    return f"'{shortened(text, _SHOWN)}'"


def language_options(options: EncoderOptions, name: str) -> LanguageOptions:
    """Options of a model that answers, out of those of any model.

    The default precision of `EncoderOptions` becomes the device's own: only `LanguageOptions` can say float32.

    Raises:
        ModelError: a layer, a pooling or compilation is asked for.
    """
    if (options.layer, options.pooling, options.compile) != (
        DEFAULT_OPTIONS.layer,
        DEFAULT_OPTIONS.pooling,
        DEFAULT_OPTIONS.compile,
    ):
        raise ModelError(
            f"'{name}' answers in words, so it takes no layer, pooling or compilation; where its audio encoder is "
            f"meant, ask for 'tower:{name}'"
        )
    if isinstance(options, LanguageOptions):
        return options
    is_default = options.precision == DEFAULT_OPTIONS.precision
    return LanguageOptions(precision=AUTO if is_default else options.precision)
