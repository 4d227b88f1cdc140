"""An audio language model behind any OpenAI-compatible server: vLLM, a Space, a vendor.

`load_endpoint("endpoint:MODEL@URL")` makes one. Its key, where the server wants one, is that of the environment
variable AUDIO_COMPOSITIONALITY_ENDPOINT_KEY (`names.KEY_VARIABLE`). It is read when questions are sent, kept in
no model, and masked in everything that the server says.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import copy
import io
import json
import logging
import math
import os
import ssl
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import httpx2
import numpy as np
import soundfile
from huggingface_hub import constants

from audio_compositionality.support.errors import InputError, causes_of
from audio_compositionality.support.loopback import is_loopback
from audio_compositionality.support.retries import LONGEST_WAIT, WAITS, requested_wait
from audio_compositionality.support.text import first_line, plain, shortened

from ..base import (
    INT16_SCALE,
    LETTERS,
    By,
    ClipError,
    FloatArray,
    GivenClip,
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
from .endpoint_settings import (
    DEFAULT_SETTINGS,
    MOST_THREADS,
    SERVER,
    EndpointSettings,
    answer_without_key,
    read_key,
    without_key,
)

MOST_BYTES = 1_000_000
"""Most bytes of a decompressed reply. An answer of 1,024 tokens with log-probabilities has a tenth of it."""

RETRIED = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same question may still be answered."""

TOO_MANY = 429

LONGEST_WORDS = 200
"""Most characters of a server's words in a message."""

TOP_LOGPROBS = 20
"""First tokens to request for scoring by letters: the most that OpenAI gives, and vLLM by default."""

UNKNOWN = "unknown"
"""The revision of a model where the server states none."""

_HELLO = "Answer with the letter A."
"""The question about a second of silence by which the server's model is identified."""

_SPACES = " \t\n\r▁Ġ"
"""Space, and its replacements in tokens of SentencePiece and of GPT-2."""

_log = logging.getLogger(__name__)


class EndpointError(ModelError):
    """A question that a server does not answer, or that is not sent; the message does not show the key.

    Attributes:
        status: HTTP status of the server's answer; None where there was none.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


# ----- Questions and replies


@dataclass(frozen=True)
class Reply:
    """A server's answer to one question.

    Attributes:
        text: the answer as it is; empty where there is none.
        facts: what the server says beside it, as JSON values; see `OnAnswer`.
        model: the model that the server states to run; None where it states none.
        first_tokens: natural log-probabilities of the likeliest first tokens, by token; empty where there are none.
    """

    text: str
    facts: Mapping[str, Any]
    model: str | None
    first_tokens: Mapping[str, float]


def wav_bytes(waveform: FloatArray, sample_rate: int) -> bytes:
    """A clip [samples] in [-1, 1] as a WAV file of one channel, 16 bits a sample, rounded to the nearest."""
    samples = np.clip(np.rint(waveform * INT16_SCALE), -INT16_SCALE, INT16_SCALE - 1).astype(np.int16)
    stream = io.BytesIO()
    soundfile.write(stream, samples, sample_rate, format="WAV", subtype="PCM_16")
    return stream.getvalue()


def content_of(prompt: str, waveform: FloatArray | None, sample_rate: int) -> str | list[dict[str, Any]]:
    """The content of a question: the sound before the text, or the text alone where there is no sound."""
    if waveform is None:
        return prompt
    data = base64.b64encode(wav_bytes(waveform, sample_rate)).decode("ascii")
    return [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}, {"type": "text", "text": prompt}]


def reply_of(content: Any, key: str | None) -> Reply | None:
    """The answer in the JSON of a chat completion, however much of it the server has left out; None in any other."""

    def text(value: Any) -> str | None:
        # JSON can have lone surrogates, which no file can.
        return answer_without_key(value.encode("utf-8", "replace").decode(), key) if isinstance(value, str) else None

    choice = _at(content, "choices", 0)
    message = _at(choice, "message")
    if not isinstance(message, dict):
        return None
    said, refusal = message.get("content"), text(message.get("refusal"))
    if isinstance(said, list):
        said = "".join(part for part in (_at(one, "text") for one in said) if isinstance(part, str))
    finish_reason, tokens = text(_at(choice, "finish_reason")), _at(content, "usage", "completion_tokens")
    facts = {
        "finish_reason": finish_reason,
        "tokens": tokens if type(tokens) is int else None,
        "refused": refusal is not None or finish_reason == "content_filter" or None,
        "fingerprint": text(_at(content, "system_fingerprint")),
    }
    return Reply(
        text(said) or refusal or "",
        {name: value for name, value in facts.items() if value is not None},
        text(_at(content, "model")),
        _first_tokens(_at(choice, "logprobs", "content", 0)),
    )


def _at(value: Any, *path: str | int) -> Any:
    """What stands at a path in JSON; None where there is nothing."""
    for key in path:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return value


def _first_tokens(first: Any) -> dict[str, float]:
    tokens: dict[str, float] = {}
    listed = _at(first, "top_logprobs")
    for entry in (first, *listed) if isinstance(listed, list) and listed else ():
        token, value = _at(entry, "token"), _at(entry, "logprob")
        # Of a whole number of hundreds of digits.
        with suppress(OverflowError):
            if isinstance(token, str) and isinstance(value, int | float) and not math.isnan(value):
                tokens[token] = min(float(value), 0.0)
    return tokens


def letter_scores(tokens: Mapping[str, float], count: int) -> tuple[list[float], int]:
    """The log-likelihoods of the first `count` letters as first tokens, whose likeliest are given with their natural
    log-probabilities, and how many of them are upper bounds."""
    listed = [
        [value for token, value in tokens.items() if token.strip(_SPACES) == letter] for letter in LETTERS[:count]
    ]
    left = 1.0 - math.fsum(map(math.exp, tokens.values()))
    bound = min([*tokens.values(), *([math.log(left)] if left > 0 else [])])
    # By rounding, the probabilities of a letter with and without a space may have a sum above 1.
    scores = [min(float(np.logaddexp.reduce(values)), 0.0) if values else bound for values in listed]
    return scores, sum(not values for values in listed)


# ----- What goes wrong


@dataclass(frozen=True)
class Failure:
    """The reason why a question has no answer, without the client's error, which holds the request and so the key.

    Attributes:
        reason, advice: in words, without the key: what is wrong, and what to do about it.
        status: HTTP status of the server's answer; None where there was none.
        is_transient: whether the same question may be answered later.
        requested_wait: seconds that the server asks to wait; None where it does not.
    """

    reason: str
    advice: str
    status: int | None = None
    is_transient: bool = False
    requested_wait: float | None = None


_UP_TO_V1 = "check that the URL is that of an OpenAI-compatible server, up to /v1"


def no_completion(what: str, key: str | None) -> Failure:
    """The failure of a reply that is no answer, but `what`."""
    what = shortened(without_key(what, key), LONGEST_WORDS)
    return Failure(f"the server's answer is not a chat completion ({what})", _UP_TO_V1)


def failure_of(error: Exception, key: str | None, settings: EndpointSettings) -> Failure:
    """The failure behind an error of the client."""
    if isinstance(error, TimeoutError):
        limit = f"{settings.deadline:g} s, the limit of a question with all its tries"
        advice = "see whether the server is overloaded, or allow more (--set deadline=...)"
        return Failure(f"there was no complete answer within {limit}", advice)
    if isinstance(error, httpx2.TimeoutException):
        reason = f"there was no answer within {settings.timeout:g} s"
        return Failure(reason, "see whether the server is overloaded", is_transient=True)
    why = shortened(without_key(_cause_of(tuple(causes_of(error))[-1]), key), LONGEST_WORDS)
    if isinstance(error, httpx2.DecodingError):
        return no_completion(f"it cannot be decompressed: {why}", key)
    if isinstance(error, httpx2.TransportError | ConnectionError):
        reason = f"the server cannot be reached or broke the connection ({why})"
        return Failure(reason, "check the URL, and whether the server runs", is_transient=True)
    return Failure(f"the question could not be sent ({why})", "check the URL")


def _cause_of(error: BaseException) -> str:
    """The first line of an error; of several, as of the addresses of one name, of the first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    # The words of asyncio, in place of the system's own reason.
    if isinstance(error, OSError) and error.errno is not None and "Connect call failed" in str(error):
        return os.strerror(error.errno)
    return first_line(error)


def refusal_of(response: httpx2.Response, body: bytes, key: str | None) -> Failure:
    """The failure of a reply with another status than one of success; it has the server's words, without the key."""
    status = response.status_code
    if response.is_redirect:
        reason = f"the server redirects ({status}), and nothing was sent to where"
        return Failure(reason, "give the URL of the server that answers, up to /v1", status)
    try:
        words = server_words(json.loads(body))
    except (ValueError, RecursionError):
        # Pages of gateways are not shown.
        words = "" if body.lstrip()[:1] in b"<[{" else body.decode("utf-8", "replace")
    # Cut only after masking: a part of the key could not be recognised.
    words = shortened(without_key(" ".join(words.split()), key), LONGEST_WORDS)
    if status in (401, 403):
        do = "set" if key is None else "check the key in"
        advice = f"{do} the environment variable {KEY_VARIABLE}" + (" to a key for it" if key is None else "")
    elif status == 404:
        advice = "check the model's name and the URL, which goes up to /v1"
    elif status in RETRIED:
        advice = "run the same command later: it goes on from there"
    else:
        advice = "see the server's message; another model or shorter clips may work"
    reason = f"the server answered {status}" + (f" ({words})" if words else "")
    return Failure(reason, advice, status, status in RETRIED, requested_wait(response.headers))


def server_words(content: Any) -> str:
    """The message within the JSON of an error: OpenAI's ``{"error": {"message"}}``, or one of the usual others."""
    while isinstance(content, list) and content:
        content = content[0]
    if isinstance(content, dict):
        for name in ("error", "message", "detail", "errors"):
            if content.get(name):
                return server_words(content[name])
    return str(content)


# ----- Questions under way


class Clock:
    """The time, for the waits between tries; in tests only these move it."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    async def wait_until(self, moment: float, stopped: asyncio.Event) -> None:
        """Wait for a moment, or until there is nothing more to wait for."""
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), max(0.0, moment - self.now()))


class Pace:
    """The time of the next question, common to all, so that a server that asks one to wait is left alone.

    Waits are not random: the same failures make the same waits.
    """

    def __init__(self, name: str, clock: Clock, most: int) -> None:
        """Take the model's name, for messages, the clock, and the most questions at a time."""
        self._name, self._clock = name, clock
        # Where a server admits one question at a time, each may be refused as often as there are others.
        self._most_tries = most * (len(WAITS) + 1)
        self._resume = clock.now()
        self._answered = 0

    async def call(self, ask: Callable[[], Awaitable[Reply | Failure]], stopped: asyncio.Event) -> Reply:
        """The server's answer; transient failures are retried, five tries in all.

        Tries after a rate limit are counted anew where another question was answered meanwhile: then the server works,
        and only others had its answers. That goes on for five tries for each question under way.

        Raises:
            EndpointError: the question failed for good.
            CancelledError: there is nothing more to ask.
        """
        tries, in_a_row, answered = 0, 0, self._answered
        while True:
            while self._resume > self._clock.now() and not stopped.is_set():
                await self._clock.wait_until(self._resume, stopped)
            if stopped.is_set():
                raise asyncio.CancelledError
            outcome = await ask()
            if isinstance(outcome, Reply):
                self._answered += 1
                return outcome
            tries += 1
            if outcome.status == TOO_MANY and self._answered != answered:
                in_a_row, answered = 0, self._answered
            wait = outcome.requested_wait or 0.0
            is_enough = in_a_row == len(WAITS) or tries == self._most_tries
            if is_enough or not outcome.is_transient or wait > LONGEST_WAIT:
                often = f", asked {tries} times" if tries > 1 else ""
                often += f"; it asks to wait {wait:.0f} s" if wait > LONGEST_WAIT else ""
                raise EndpointError(f"'{self._name}': {outcome.reason}{often}; {outcome.advice}", outcome.status)
            await self._wait(outcome, max(WAITS[in_a_row], wait), stopped)
            in_a_row += 1

    async def _wait(self, failure: Failure, seconds: float, stopped: asyncio.Event) -> None:
        moment = self._clock.now() + seconds
        is_for_all = failure.status == TOO_MANY or failure.requested_wait is not None
        if not is_for_all or self._resume <= self._clock.now():
            who = "all questions wait" if is_for_all else "asked again after"
            _log.warning("'%s': %s; %s %g s", self._name, failure.reason, who, seconds)
        if is_for_all:
            self._resume = max(self._resume, moment)
        else:
            await self._clock.wait_until(moment, stopped)


Question = Callable[["QuestionWindow"], Awaitable[Any]]


class QuestionWindow:
    """A window that moves over questions: so many are under way, and the next one is asked when any is answered.

    The event loop of one thread sends and receives everything. Only so does a question end at its deadline whatever it
    waits for, and only so do all end when nobody waits for them any more.
    """

    def __init__(self, most: int, **client: Any) -> None:
        """Take the most questions that are under way at a time, and options of the client."""
        self.client = httpx2.AsyncClient(**client)
        self.stopped = asyncio.Event()
        self._most, self._free = most, asyncio.Semaphore(most)
        self._futures: list[concurrent.futures.Future[Any]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="endpoint", daemon=True)
        self._thread.start()

    def put(self, questions: Sequence[Question]) -> list[concurrent.futures.Future[Any]]:
        """Accept questions, to be asked in order after earlier ones; returns a future answer for each."""
        new = [asyncio.run_coroutine_threadsafe(self._one(question), self._loop) for question in questions]
        self._futures += new
        return new

    async def _one(self, question: Question) -> Any:
        async with self._free:
            if self.stopped.is_set():
                raise asyncio.CancelledError
            try:
                return await question(self)
            except Exception:
                self.stopped.set()
                raise

    def wait_for_room(self) -> None:
        """Wait until more questions can be put before there is nothing to ask; raises as `wait`."""
        self.wait(2 * self._most)

    def wait(self, most: int = 0) -> None:
        """Wait until no more than so many questions are left, under way or not begun.

        Raises:
            Exception: that of the first question in order that failed. Questions under way at that time are waited for,
                and no further one is asked.
        """
        while True:
            left = [future for future in self._futures if not future.done()]
            if self.stopped.is_set() or len(left) <= most:
                break
            concurrent.futures.wait(left, return_when=concurrent.futures.FIRST_COMPLETED)
        if self.stopped.is_set():
            concurrent.futures.wait(self._futures)
            raise next(error for one in self._futures if not one.cancelled() and (error := one.exception()))

    def stop(self) -> None:
        """Ask no further question, and wait for those under way."""
        self._loop.call_soon_threadsafe(self.stopped.set)
        concurrent.futures.wait(self._futures)

    def close(self) -> None:
        """End all that is under way, and the connections."""

        async def end() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.client.aclose()

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def open_window(most: int, **client: Any) -> Iterator[QuestionWindow]:
    """A window until the end of the block, which waits for the remaining questions.

    Raises:
        Exception: see `QuestionWindow.wait`; as the block raises, after questions under way have been answered. A user
            who interrupts it waits for nothing.
    """
    window = QuestionWindow(most, **client)
    try:
        yield window
        window.wait()
    except Exception:
        window.stop()
        raise
    finally:
        window.close()


@cache
def _certificates() -> ssl.SSLContext:
    """The certificates, read once: that takes a good part of the time of a short exchange."""
    return httpx2.create_ssl_context()


def completions_url(url: str) -> str:
    """The URL for questions to a server: `/v1` is added to a URL that does not end in it, then `/chat/completions`."""
    suffix = "/chat/completions"
    return url if url.endswith(suffix) else f"{url.removesuffix('/v1')}/v1{suffix}"


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
            address, settings: of the server, and how it is asked.
            options: `LanguageOptions` with the most tokens of an answer, or the default ones.
            clock: for the waits between tries; None for that of the machine.

        Raises:
            ModelError: on options that a server does not have, or a malformed key.
        """
        asked = language_options(options, address.id)
        if asked.precision != LanguageOptions().precision or asked.spread:
            raise ModelError(f"'{address.id}' runs on a server, which knows of no precision and of no spreading")
        self.address, self.settings = address, settings
        self.new_tokens, self.limit_seconds = asked.max_new_tokens, settings.limit_seconds
        self.batch_size = settings.concurrency
        # Several times the number under way, so that outside of a `window` few connections idle while the slowest
        # answer of a call is awaited.
        self.questions_per_call = 8 * settings.concurrency
        self.card = ModelCard(
            id=address.id + asked.suffix,
            revision=UNKNOWN,
            sample_rate=settings.sample_rate,
            output_dim=None,
            paradigm="behind a server",
        )
        self._url = completions_url(address.url)
        self._is_here = is_loopback(httpx2.URL(self._url).host)
        self._pace = Pace(self.card.id, clock or Clock(), settings.concurrency)
        self._served: set[str] = set()
        self._open: QuestionWindow | None = None
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
        """The same model, asked for answers of so many tokens at most; its id says so.

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
        client = {
            "timeout": self.settings.timeout,
            "limits": httpx2.Limits(max_connections=None, max_keepalive_connections=None),
            "verify": _certificates(),
            # A proxy is another machine: what is meant for this one, and its key, would leave it.
            "trust_env": not self._is_here,
        }
        with open_window(min(most, self.settings.concurrency), **client) as window:
            self._open = window
            try:
                yield window
            finally:
                self._open = None
        names = sorted({shortened(plain(model), 80) for model in self._served})
        if len(names) > 1 and not self._has_warned:
            self._has_warned = True
            warnings.warn(f"the server of '{self.card.id}' answers as {' and as '.join(names)}", stacklevel=5)

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Answer prompts, each about a clip or, with an empty list, about none; see `Model.answer`.

        Empty answers, refusals and answers that were cut come as they are; the facts for `on_answers` mark them.

        Raises:
            InputError: there are not as many prompts as clips, or an empty one.
            ClipError: a clip is no sound, or longer than the model takes.
            ModelError: a prompt is about several clips.
            EndpointError: a question that the server does not answer.
        """
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

        def scored(place: int, reply: Reply) -> tuple[list[float], dict[str, Any]]:
            # One token was requested, so that nothing was cut.
            facts = {name: value for name, value in reply.facts.items() if name in ("refused", "fingerprint")}
            if "refused" in facts:
                return [math.nan] * len(options[place]), facts
            if not reply.first_tokens:
                raise ModelError(
                    f"'{self.card.id}' cannot score by letters: the server gives no log-probabilities of first tokens "
                    "(logprobs, top_logprobs); score by the model's answers"
                )
            scores, bounds = letter_scores(reply.first_tokens, len(options[place]))
            return scores, {**facts, "unlisted": bounds} if bounds else facts

        return self._ask(clips, prompts, scored, max_tokens=1, logprobs=True, top_logprobs=TOP_LOGPROBS)

    def identify(self, *, hears: bool = True) -> None:
        """Ask the server one question, about a second of silence or, where it does not hear, about none, to identify
        its model; the card then states it.

        So a wrong key, URL or name shows at once, and not after the data are made.
        """
        rate = self.settings.sample_rate
        silence = GivenClip(np.zeros(rate, np.float32), rate) if hears else None
        (named,) = self._send([silence], [_HELLO], lambda _, reply: reply.model, max_tokens=self.new_tokens)
        if named and named != self.address.model:
            self.card = replace(self.card, revision=shortened(named, 100))

    def _ask(
        self,
        clips: Sequence[Sequence[Any]],
        prompts: Sequence[str],
        answer_of: Callable[[int, Reply], tuple[Any, Mapping[str, Any]]],
        **parameters: Any,
    ) -> list[Any]:
        """The answers to some questions, in order; none yet where a window is open. All is checked before one is sent.

        Each is passed on as soon as it is finished: `answer_of` gives the answer and its facts, from its place and the
        reply.
        """
        listener = self.on_answers
        texts = check_texts(prompts) if len(prompts) else []
        if len(clips) != len(texts):
            raise InputError(f"there are {len(texts)} prompts about {len(clips)} clips; there must be as many")
        sounds = [self._checked(some, row) if len(some) else None for row, some in enumerate(clips)]

        def tell(place: int, reply: Reply) -> Any:
            answer, facts = answer_of(place, reply)
            if listener is not None:
                listener([(place, answer, facts)])
            return answer

        return self._send(sounds, texts, tell, **parameters)

    def _checked(self, clips: Sequence[Any], row: int) -> GivenClip:
        clip = self.single_clip(clips, row)
        rate = check_sample_rate(clip.sample_rate)
        try:
            samples = check_waveforms(np.asarray(clip.waveform)[None])[0]
        except ClipError as error:
            raise ClipError(error.reason, row) from None
        seconds, most = len(samples) / rate, self.settings.limit_seconds
        if most is not None and seconds > most:
            raise ClipError(
                f"it lasts {seconds:g} s, but '{self.card.id}' takes {most:g} s at most; cut it before", row
            )
        return GivenClip(samples, rate)

    def _send(
        self,
        clips: Sequence[GivenClip | None],
        prompts: Sequence[str],
        tell: Callable[[int, Reply], Any],
        **parameters: Any,
    ) -> list[Any]:
        key, content = read_key(), {"model": self.address.model, "temperature": 0, "stream": False, **parameters}
        questions = [
            partial(self._question, key, partial(tell, place), clip, prompt, content)
            for place, (clip, prompt) in enumerate(zip(clips, prompts, strict=True))
        ]
        if self._open is not None:
            self._open.put(questions)
            return []
        with self.window(self.settings.concurrency) as window:
            assert window is not None
            answers = window.put(questions)
        return [answer.result() for answer in answers]

    async def _question(
        self,
        key: str | None,
        tell: Callable[[Reply], Any],
        clip: GivenClip | None,
        prompt: str,
        content: Mapping[str, Any],
        window: QuestionWindow,
    ) -> Any:
        # Encoded when it is sent, so that only questions under way are held as text.
        rate, left = self.settings.sample_rate, self.settings.deadline
        samples = None if clip is None else resample(clip.waveform[None], clip.sample_rate, rate)[0]
        message = {"role": "user", "content": content_of(prompt, samples, rate)}
        body = json.dumps({**content, "messages": [message]}, allow_nan=False).encode()

        async def ask() -> Reply | Failure:
            nonlocal left
            begun = time.monotonic()
            outcome = await self._try(window.client, key, body, left)
            left -= time.monotonic() - begun
            is_over = left <= 0 and isinstance(outcome, Failure) and outcome.is_transient
            return failure_of(TimeoutError(), key, self.settings) if is_over else outcome

        reply = await self._pace.call(ask, window.stopped)
        if reply.model:
            self._served.add(reply.model)
        return tell(reply)

    async def _try(self, client: httpx2.AsyncClient, key: str | None, question: bytes, left: float) -> Reply | Failure:
        """One try. The client's error ends here: an error raised from a `Failure` has no request in its context."""
        if constants.is_offline_mode() and not self._is_here:
            reason = "HF_HUB_OFFLINE is set, and the server is not on this machine: no question is sent"
            return Failure(reason, "unset HF_HUB_OFFLINE")
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        body = bytearray()
        try:
            async with (
                asyncio.timeout(left),
                client.stream("POST", self._url, content=question, headers=headers) as response,
            ):
                try:
                    # A server may compress a gigabyte into a megabyte: the content is read in pieces.
                    async for part in response.aiter_bytes():
                        body += part
                        if len(body) > MOST_BYTES:
                            status = response.status_code
                            reason = f"the server answered {status} with more than {MOST_BYTES / 1e6:g} MB"
                            return Failure(f"{reason}, and no more of it was read", _UP_TO_V1, status)
                except httpx2.HTTPError:
                    # Of an error, what has come is told.
                    if response.is_success:
                        raise
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return failure_of(error, key, self.settings)
        if not response.is_success:
            return refusal_of(response, bytes(body), key)
        try:
            parsed = json.loads(body)
        except (ValueError, RecursionError) as error:
            return no_completion(first_line(error), key)
        return reply_of(parsed, key) or no_completion(server_words(parsed), key)


def load_endpoint(
    name: str,
    options: EncoderOptions = DEFAULT_OPTIONS,
    settings: EndpointSettings = DEFAULT_SETTINGS,
    *,
    hears: bool = True,
    clock: Clock | None = None,
) -> EndpointModel:
    """The model that `endpoint:MODEL@URL` names; the server is asked for its model.

    Args:
        name: see `parse_endpoint`.
        options: `LanguageOptions`: the most tokens of an answer, as `batch_size` the questions at a time, and the
            deadline.
        settings: how the server is asked.
        hears: whether it takes sound; False of a language model.

    Raises:
        ModelError: see `parse_endpoint` and `EndpointModel`; `EndpointError` where the server does not answer.
    """
    if isinstance(options, LanguageOptions) and options.batch_size is not None:
        settings = settings.changed(concurrency=min(options.batch_size, MOST_THREADS))
    if isinstance(options, LanguageOptions) and options.deadline is not None:
        settings = settings.changed(deadline=options.deadline)
    model = EndpointModel(parse_endpoint(name), options, settings, clock=clock)
    model.identify(hears=hears)
    return model
