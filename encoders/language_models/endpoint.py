"""An audio language model behind any OpenAI-compatible server: vLLM, a Space, a vendor.

`load_endpoint("endpoint:MODEL@URL")` makes one. Its key, where the server wants one, is that of the environment
variable AUDIO_COMPOSITIONALITY_ENDPOINT_KEY (`names.KEY_VARIABLE`). It is read when questions are sent, kept in
no model, and masked in everything that the server says.
"""

from __future__ import annotations

import base64
import copy
import io
import json
import math
import threading
import time
import warnings
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import plain, shortened

from ..base import (
    INT16_SCALE,
    LETTERS,
    By,
    ClipError,
    FloatArray,
    Model,
    ModelCard,
    ModelError,
    check_sample_rate,
    check_texts,
    check_waveforms,
    language_options,
    resample,
)
from ..loading.names import KEY_VARIABLE, Address, parse_endpoint
from ..options import DEFAULT_OPTIONS, EncoderOptions, LanguageOptions
from .endpoint_calls import (
    Clock,
    EndpointError,
    Failure,
    Pace,
    QuestionWindow,
    RedirectError,
    Server,
    TooLargeError,
    failure_of,
    no_completion,
    open_window,
    out_of_time,
    refusal_of,
    server_words,
)
from .endpoint_settings import DEFAULT_SETTINGS, MOST_THREADS, SERVER, EndpointSettings, answer_without_key, read_key

_SPACES = " \t\n\r▁Ġ"
"""Space, and its replacements in tokens of SentencePiece and of GPT-2."""


@dataclass(frozen=True)
class SoundClip:
    """A clip that has been checked.

    Attributes:
        waveform: float32 [samples] in [-1, 1].
        sample_rate: Hz.
    """

    waveform: FloatArray
    sample_rate: int


@dataclass(frozen=True)
class Reply:
    """A server's answer to one question.

    Attributes:
        text: the answer as it is; empty where there is none.
        finish_reason: why it ended, by the server's statement; None without one.
        is_refused: whether the server marks it as refused or filtered.
        model: the model that the server states to run; None where it states none.
        fingerprint: its `system_fingerprint`; likewise.
        first_tokens: natural log-probabilities of the likeliest first tokens, by token; empty where there are none.
        tokens: the server's count of the answer's tokens; None without one.
    """

    text: str
    finish_reason: str | None = None
    is_refused: bool = False
    model: str | None = None
    fingerprint: str | None = None
    first_tokens: Mapping[str, float] = field(default_factory=dict)
    tokens: int | None = None

    @property
    def facts(self) -> dict[str, Any]:
        """The facts beside the text, as JSON values; see `OnAnswer`."""
        facts = {
            "finish_reason": self.finish_reason,
            "tokens": self.tokens,
            "refused": self.is_refused or None,
            "fingerprint": self.fingerprint,
        }
        return {name: value for name, value in facts.items() if value is not None}


def wav_bytes(waveform: FloatArray, sample_rate: int) -> bytes:
    """A clip as a WAV file of one channel, 16 bits a sample, rounded to the nearest.

    Args:
        waveform: [samples] in [-1, 1]; samples beyond full scale are clipped.
        sample_rate: Hz.
    """
    samples = np.clip(np.rint(waveform * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype("<i2")
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    return stream.getvalue()


def messages_of(prompt: str, waveform: FloatArray | None, sample_rate: int) -> list[dict[str, Any]]:
    """The messages of one question: the sound before the text, or the text alone where there is no sound."""
    if waveform is None:
        return [{"role": "user", "content": prompt}]
    data = base64.b64encode(wav_bytes(waveform, sample_rate)).decode("ascii")
    sound = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    return [{"role": "user", "content": [sound, {"type": "text", "text": prompt}]}]


def question_json(
    model: str, prompt: str, waveform: FloatArray | None, sample_rate: int, parameters: Mapping[str, Any]
) -> bytes:
    """One question as JSON, to be answered by the likeliest tokens.

    Args:
        model: its name on the server.
        prompt: the text.
        waveform: see `messages_of`.
        sample_rate: likewise.
        parameters: further ones of a chat completion, such as ``max_tokens``.
    """
    messages = messages_of(prompt, waveform, sample_rate)
    content = {"model": model, "messages": messages, "temperature": 0, "stream": False, **parameters}
    return json.dumps(content, allow_nan=False).encode()


def reply_of(body: bytes, masked: Callable[[str], str]) -> Reply | Failure:
    """The content of an answer, however much of it the server has left out.

    Args:
        body: of the server's reply.
        masked: takes the key out of a text.

    Raises:
        ValueError, RecursionError: it is no JSON, or nested too deep.
    """
    content = json.loads(body, parse_constant=_constant)
    if not isinstance(content, dict):
        return no_completion(masked(server_words(content)))
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        said = {name: value for name, value in content.items() if value is not None}
        return no_completion(masked(server_words(said)))
    refusal = _text(message.get("refusal"))
    finish_reason = _masked(_text(choice.get("finish_reason")), masked)
    return Reply(
        text=masked(_text_of(message.get("content")) or refusal or ""),
        finish_reason=finish_reason,
        is_refused=refusal is not None or finish_reason == "content_filter",
        model=_masked(_text(content.get("model")), masked),
        fingerprint=_masked(_text(content.get("system_fingerprint")), masked),
        first_tokens=_first_tokens(choice.get("logprobs")),
        tokens=_count(content.get("usage")),
    )


def letter_scores(tokens: Mapping[str, float], count: int) -> tuple[list[float], int]:
    """The log-likelihoods of the first letters as first tokens, and how many of them are upper bounds.

    Args:
        tokens: natural log-probabilities of the likeliest tokens.
        count: number of letters, from A.
    """
    letters = LETTERS[:count]
    listed = {
        letter: [value for token, value in tokens.items() if token.strip(_SPACES) == letter] for letter in letters
    }
    left = 1.0 - math.fsum(math.exp(value) for value in tokens.values())
    least = min(tokens.values())
    bound = min(least, math.log(left)) if left > 0 else least
    # By rounding, the probabilities of a letter with and without a space may have a sum above 1.
    scores = [min(float(np.logaddexp.reduce(values)), 0.0) if values else bound for values in listed.values()]
    return scores, sum(not values for values in listed.values())


def _first_tokens(logprobs: Any) -> dict[str, float]:
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    listed = first.get("top_logprobs") if isinstance(first, dict) else None
    if not isinstance(first, dict) or not isinstance(listed, list) or not listed:
        return {}
    return {
        entry["token"]: value
        for entry in (first, *listed)
        if isinstance(entry, dict)
        and isinstance(entry.get("token"), str)
        and (value := _log_probability(entry.get("logprob"))) is not None
    }


def _log_probability(value: Any) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        # A whole number of hundreds of digits.
        return None
    return None if math.isnan(number) else min(number, 0.0)


def _count(usage: Any) -> int | None:
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _text_of(content: Any) -> str | None:
    """The text of a message, which some servers give in parts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return _text("".join(part for part in parts if isinstance(part, str)))
    return _text(content)


def _text(value: Any) -> str | None:
    # JSON can have lone surrogates, which no file can.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _masked(value: str | None, masked: Callable[[str], str]) -> str | None:
    return None if value is None else masked(value)


def _constant(name: str) -> float:
    """Infinity, which is not JSON either, is the logarithm of 0 in some servers' answers."""
    if name == "NaN":
        raise ModelError("it holds NaN, which is not a number")
    return float(name)


UNKNOWN = "unknown"
"""The revision of a model where the server states none."""

_HELLO = "Answer with the letter A."
"""The question about a second of silence by which the server's model is identified."""


class EndpointModel(Model):
    """A model behind a server; it answers, also prompts without a clip, and scores letters.

    Attributes:
        card: its id is that of its address; the revision is the server's name for the model, where that differs from
            the requested name, else ``unknown``.
        device: ``server``.
        settings: how the server is asked.
        scorings: letters alone, since a server gives no likelihoods of given texts.
    """

    device = SERVER
    scorings = ("letters",)

    def __init__(
        self,
        address: Address,
        options: EncoderOptions = DEFAULT_OPTIONS,
        settings: EndpointSettings = DEFAULT_SETTINGS,
        *,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is sent.

        Args:
            address: the model and the server.
            options: `LanguageOptions` with the most tokens of an answer, or the default ones.
            settings: how the server is asked.
            clock: for the waits between tries; None for that of the machine.

        Raises:
            ModelError: on options that a server does not have, or a malformed key.
        """
        asked = language_options(options, address.id)
        if asked.precision != LanguageOptions().precision or asked.spread:
            raise ModelError(f"'{address.id}' runs on a server, which knows of no precision and of no spreading")
        self.address = address
        self.settings = settings
        self.new_tokens, self.limit_seconds = asked.max_new_tokens, settings.limit_seconds
        self.batch_size = settings.concurrency
        # Several times the number under way, so that outside of a `window` few connections idle while the slowest
        # answer of a call is awaited.
        self.questions_per_call = 8 * settings.concurrency
        self.card = ModelCard(
            id=address.id + asked.suffix,
            revision=settings.revision or UNKNOWN,
            sample_rate=settings.sample_rate,
            output_dim=None,
            paradigm="behind a server",
        )
        self._pace = Pace(self.card.id, clock or Clock(), settings.concurrency)
        self._lock = threading.Lock()
        self._questions = 0
        self._served: set[str] = set()
        self._open: tuple[Server, QuestionWindow] | None = None
        self._has_warned = False
        if read_key() is not None and address.is_open_to_listeners:
            warnings.warn(f"the key in {KEY_VARIABLE} goes to {address.host} unencrypted: use https://", stacklevel=2)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.card.id!r})"

    @property
    def abilities(self) -> frozenset[str]:
        """It also answers prompts without a clip."""
        return super().abilities | {"read"}

    def with_new_tokens(self, count: int) -> EndpointModel:
        """The same model, asked for answers of so many tokens at most; its id says so. Questions are counted anew.

        Raises:
            InputError: the count is no whole number of 1 or more.
        """
        suffix = LanguageOptions(max_new_tokens=count).suffix
        model = copy.copy(self)
        model.new_tokens = count
        model.card = replace(self.card, id=self.address.id + suffix)
        return model

    @contextmanager
    def window(self, most: int) -> Iterator[QuestionWindow | None]:
        """See `Model.window`.

        Raises:
            ModelError: one is open already.
            EndpointError: the first question in order that failed.
        """
        if self._open is not None:
            raise ModelError(f"'{self.card.id}' is being asked already")
        with self._opened(min(most, self.settings.concurrency)) as (server, window):
            self._open = server, window
            try:
                yield window
            finally:
                self._open = None
        self._warn_of_changes()

    def check_questions(self, count: int) -> None:
        """Refuse so many further questions where they exceed the limit; nothing is sent.

        Raises:
            EndpointError: with earlier questions they are more than `EndpointSettings.max_questions`.
        """
        most = self.settings.max_questions
        if most is not None and self._questions + count > most:
            before = f" after {self._questions} others" if self._questions else ""
            raise EndpointError(
                f"'{self.card.id}' is to be asked {count} questions{before}, and no more than {most} are allowed: "
                "allow more, or ask about fewer rows"
            )

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Answer prompts, each about a clip or, with an empty list, about none; see `Model.answer`.

        Empty answers, refusals and answers that were cut come as they are; the facts for `on_answers` mark them.

        Raises:
            InputError: there are not as many prompts as clips, or an empty one.
            ClipError: a clip is no sound, or longer than the model takes.
            ModelError: a prompt is about several clips.
            EndpointError: more questions than allowed, or one that the server does not answer.
        """
        return [reply.text for reply in self.replies(clips, prompts)]

    def replies(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[Reply]:
        """As `answer`, with the server's facts beside the text."""
        return self._ask(clips, prompts, lambda place, reply: (reply.text, reply.facts), max_tokens=self.new_tokens)

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """The log-likelihood of each option's letter as the first token of the answer; see `Model.score_options`.

        A letter with and without a space in front of it is one. A server gives the likeliest tokens alone: for a letter
        that is not among them it is an upper bound, the least of theirs or the remaining probability. All options of a
        question that the server marks as refused have NaN.

        Raises:
            ModelError: `by` is ``options``, or the server gives no log-probabilities.
            InputError, ClipError, EndpointError: see `answer`.
        """
        if by != "letters":
            raise ModelError(
                f"'{self.card.id}' cannot score by {by}: a server gives no likelihoods of given texts; score by "
                "letters, or by the model's answers"
            )
        if len(options) != len(prompts):
            raise InputError(f"there are {len(options)} lists of options for {len(prompts)} prompts")
        for texts in options:
            if not 1 <= len(texts) <= len(LETTERS):
                raise InputError(f"the number of options is {len(texts)}; it must be 1 to {len(LETTERS)}")
        most, scores = self.settings.top_logprobs, dict[int, list[float]]()

        def scored(place: int, reply: Reply) -> tuple[list[float], dict[str, Any]]:
            scores[place], bounds = self._letter_scores(reply, len(options[place]))
            # One token was requested, so that nothing was cut.
            facts = {name: value for name, value in reply.facts.items() if name in ("refused", "fingerprint")}
            return scores[place], {**facts, "unlisted": bounds} if bounds else facts

        replies = self._ask(clips, prompts, scored, max_tokens=1, logprobs=True, top_logprobs=most)
        return [scores[place] for place in range(len(replies))]

    def identify(self, *, hears: bool = True) -> None:
        """Ask the server one question, about a second of silence, to identify its model; the card then states it.

        So a wrong key, URL or name shows at once, and not after the data are made. It does not count as a question.

        Args:
            hears: whether the model takes sound; else it is asked without a clip.

        Raises:
            EndpointError: the server does not answer.
        """
        silence = SoundClip(np.zeros(self.settings.sample_rate, np.float32), self.settings.sample_rate)
        reply = self._send([silence if hears else None], [_HELLO], max_tokens=self.new_tokens)[0]
        named = reply.model
        if self.settings.revision is None and named and named != self.address.model:
            self.card = replace(self.card, revision=shortened(named, 100))

    def _letter_scores(self, reply: Reply, count: int) -> tuple[list[float], int]:
        """The log-likelihoods of so many letters as a reply's first token, and how many of them are upper bounds."""
        if reply.is_refused:
            return [math.nan] * count, 0
        if not reply.first_tokens:
            raise ModelError(
                f"'{self.card.id}' cannot score by letters: the server gives no log-probabilities of first tokens "
                "(logprobs, top_logprobs); score by the model's answers"
            )
        return letter_scores(reply.first_tokens, count)

    def _ask(
        self,
        clips: Sequence[Sequence[Any]],
        prompts: Sequence[str],
        answer_of: Callable[[int, Reply], tuple[str | list[float], dict[str, Any]]],
        **parameters: Any,
    ) -> list[Reply]:
        """The replies to some questions, in order; none yet where a window is open. All is checked before one is sent.

        Each is passed on as soon as it is finished: `answer_of` gives the answer and its facts, from its place and the
        reply.
        """
        listener = self.on_answers
        texts = check_texts(prompts) if len(prompts) else []
        if len(clips) != len(texts):
            raise InputError(f"there are {len(texts)} prompts about {len(clips)} clips; there must be as many")
        sounds = [self._checked(some, row) if len(some) else None for row, some in enumerate(clips)]
        with self._lock:
            self.check_questions(len(texts))
            self._questions += len(texts)

        def tell(place: int, reply: Reply) -> None:
            answer = answer_of(place, reply)
            if listener is not None:
                listener([(place, *answer)])

        if self._open is not None:
            self._put(*self._open, sounds, texts, tell, parameters)
            return []
        return self._send(sounds, texts, tell, **parameters)

    def _checked(self, clips: Sequence[Any], row: int) -> SoundClip:
        clip = self.single_clip(clips, row)
        waveform, rate = np.asarray(clip.waveform), check_sample_rate(clip.sample_rate)
        try:
            samples = check_waveforms(waveform[None])
        except ClipError as error:
            raise ClipError(error.reason, row) from None
        seconds, most = samples.shape[1] / rate, self.settings.limit_seconds
        if most is not None and seconds > most:
            raise ClipError(
                f"it lasts {seconds:g} s, but '{self.card.id}' takes {most:g} s at most; cut it before", row
            )
        return SoundClip(samples[0], rate)

    def _send(
        self,
        clips: Sequence[SoundClip | None],
        prompts: Sequence[str],
        on_reply: Callable[[int, Reply], object] | None = None,
        **parameters: Any,
    ) -> list[Reply]:
        with self._opened(self.settings.concurrency) as (server, window):
            replies = self._put(server, window, clips, prompts, on_reply, parameters)
        self._warn_of_changes()
        return [reply.result() for reply in replies]

    @contextmanager
    def _opened(self, threads: int) -> Iterator[tuple[Server, QuestionWindow]]:
        with closing(Server(self.address.url, self.settings.timeout)) as server, open_window(threads) as window:
            yield server, window

    def _put(
        self,
        server: Server,
        window: QuestionWindow,
        clips: Sequence[SoundClip | None],
        prompts: Sequence[str],
        on_reply: Callable[[int, Reply], object] | None,
        parameters: Mapping[str, Any],
    ) -> list[Future[Reply]]:
        key = read_key()
        questions = [
            partial(self._question, server, key, clip, prompt, parameters)
            for clip, prompt in zip(clips, prompts, strict=True)
        ]
        return window.put(questions, on_reply)

    def _question(
        self,
        server: Server,
        key: str | None,
        clip: SoundClip | None,
        prompt: str,
        parameters: Mapping[str, Any],
        stopped: threading.Event,
    ) -> Reply:
        # Encoded by the thread that sends it, so that only questions under way are held as text.
        rate, left = self.settings.sample_rate, self.settings.deadline
        samples = None if clip is None else _at_rate(clip, rate)
        question = question_json(self.address.model, prompt, samples, rate, parameters)

        def ask() -> Reply | Failure:
            nonlocal left
            begun = time.monotonic()
            outcome = self._try(server, key, question, left)
            left -= time.monotonic() - begun
            is_over = left <= 0 and isinstance(outcome, Failure) and outcome.is_transient
            return out_of_time(self.settings.deadline) if is_over else outcome

        reply = self._pace.call(ask, stopped)
        if reply.model:
            with self._lock:
                self._served.add(reply.model)
        return reply

    def _try(self, server: Server, key: str | None, question: bytes, seconds: float) -> Reply | Failure:
        """One try. The client's error ends here: an error raised from a `Failure` has no request in its context."""
        try:
            reply = server.post(question, key, seconds)
            if reply.status // 100 != 2:
                return refusal_of(reply, key)
            return reply_of(reply.body, partial(answer_without_key, key=key))
        except Exception as error:
            if isinstance(error, (RedirectError, TooLargeError)):
                # There is no server to answer: questions under way are not waited for.
                server.abandon()
            failure = failure_of(error, key, self.address.model, self.settings)
            if failure is None:
                raise
            return failure

    def _warn_of_changes(self) -> None:
        names = sorted({shortened(plain(model), 80) for model in self._served})
        if len(names) > 1 and not self._has_warned:
            self._has_warned = True
            warnings.warn(f"the server of '{self.card.id}' answers as {' and as '.join(names)}", stacklevel=5)


def load_endpoint(
    name: str,
    options: EncoderOptions = DEFAULT_OPTIONS,
    settings: EndpointSettings = DEFAULT_SETTINGS,
    *,
    hears: bool = True,
    clock: Clock | None = None,
) -> EndpointModel:
    """The model that `endpoint:MODEL@URL` names; the server is asked for its model, unless the settings state it.

    Args:
        name: see `parse_endpoint`.
        options: `LanguageOptions`: the most tokens of an answer, as `batch_size` the questions at a time, and the
            deadline.
        settings: how the server is asked.
        hears: whether it takes sound; False of a language model.
        clock: see `EndpointModel`.

    Raises:
        ModelError: see `parse_endpoint` and `EndpointModel`; `EndpointError` where the server does not answer.
    """
    if isinstance(options, LanguageOptions) and options.batch_size is not None:
        settings = settings.changed(concurrency=min(options.batch_size, MOST_THREADS))
    if isinstance(options, LanguageOptions) and options.deadline is not None:
        settings = settings.changed(deadline=options.deadline)
    model = EndpointModel(parse_endpoint(name), options, settings, clock=clock)
    if settings.revision is None:
        model.identify(hears=hears)
    return model


def _at_rate(clip: SoundClip, rate: int) -> FloatArray:
    samples: FloatArray = resample(clip.waveform[None], clip.sample_rate, rate)[0]
    return samples
