"""An audio language model on any OpenAI-compatible server: vLLM, a Space, a vendor.

`load_endpoint("endpoint:MODEL@URL")` makes one. If the server needs a key, set the environment
variable AUDIO_COMPOSITIONALITY_ENDPOINT_KEY (`names.KEY_VARIABLE`). It is read when questions are sent, kept in
no model, and masked in everything that the server returns.
"""

from __future__ import annotations

import asyncio
import base64
import copy
import io
import json
import logging
import math
import os
import queue
import re
import ssl
import threading
import time
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import httpx2
import numpy as np
import soundfile
from huggingface_hub import constants

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.loopback import is_loopback
from audio_compositionality.support.retries import LONGEST_WAIT, WAITS
from audio_compositionality.support.spec import as_typed
from audio_compositionality.support.text import plain, shortened

from .. import base
from ..loading.names import KEY_VARIABLE, Address, parse_endpoint
from ..options import DEFAULT_OPTIONS, EncoderOptions, LanguageOptions
from . import endpoint_replies as replies

SAMPLE_RATE = 32_000
"""Rate in Hz of the clips that are sent; clips at other rates are resampled."""

CONCURRENCY, MOST_AT_ONCE = 8, 64
"""Number of concurrent questions, each on its own connection: the default, and the maximum."""

DEADLINE = 120.0
"""Seconds allowed for a question with all retries, from opening a connection to the last byte of an answer, unless
`LanguageOptions.deadline` is set. Waits between tries, which a server may request, do not count."""

MOST_BYTES = 1_000_000
"""Maximum size of a decompressed reply in bytes. An answer of 1,024 tokens with log-probabilities has a tenth of it."""

TOP_LOGPROBS = 20
"""First tokens to request for scoring by letters: the maximum of OpenAI, and of vLLM by default."""

UNKNOWN = "unknown"
"""The revision of a model if the server states none."""

_HELLO = "Answer with the letter A."
"""The question about a second of silence that identifies the server's model."""

_log = logging.getLogger(__name__)


class EndpointError(base.ModelError):
    """An error for a question that a server does not answer or that cannot be sent; its message does not show the key.

    Attributes:
        status: HTTP status of the server's answer, or the code of an error within it; None if there was none.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


# ----- The key


class ServerKey(str):
    """A key that is hidden when an object that holds it is printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


def read_key() -> ServerKey | None:
    """Return the key from the environment; None if none is set.

    Raises:
        ModelError: it holds characters that no header can; the message does not show it.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not re.fullmatch(r"[!-~]*", key):
        raise base.ModelError(
            f"the environment variable {KEY_VARIABLE} holds a space, a line break or a non-ASCII character, which "
            "no key has; set it again"
        )
    return ServerKey(key) if key else None


# ----- Questions


def wav_bytes(waveform: base.FloatArray, sample_rate: int) -> bytes:
    """Return a clip [samples] in [-1, 1] as a WAV file of one channel, 16 bits per sample, rounded to the nearest."""
    scale = base.INT16_SCALE
    samples = np.clip(np.rint(waveform * scale), -scale, scale - 1).astype(np.int16)
    stream = io.BytesIO()
    soundfile.write(stream, samples, sample_rate, format="WAV", subtype="PCM_16")
    return stream.getvalue()


def content_of(prompt: str, waveform: base.FloatArray | None, form: str) -> str | list[dict[str, Any]]:
    """Return the content of a question: the sound before the text, or the text alone.

    Args:
        prompt: the text.
        waveform: [samples] at `SAMPLE_RATE`, in [-1, 1]; None for no sound.
        form: form of the sound, see `LanguageOptions.audio_form`.
    """
    if waveform is None:
        return prompt
    data = base64.b64encode(wav_bytes(waveform, SAMPLE_RATE)).decode("ascii")
    url = f"data:audio/wav;base64,{data}"
    forms: dict[str, dict[str, Any]] = {
        "base64": {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}},
        "data_url": {"type": "input_audio", "input_audio": {"data": url, "format": "wav"}},
        "audio_url": {"type": "audio_url", "audio_url": {"url": url}},
    }
    return [forms[form], {"type": "text", "text": prompt}]


# ----- Concurrent questions


class Clock:
    """The time, for the waits between tries; tests replace it."""

    def now(self) -> float:
        """Seconds since some moment."""
        return time.monotonic()

    async def wait_until(self, moment: float, stopped: asyncio.Event) -> None:
        """Wait for a moment, or until the questions end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), max(0.0, moment - self.now()))


@dataclass
class Pace:
    """State shared by all questions to a server, so that all of them respect a request to wait.

    Attributes:
        resume: time of the next question.
        answered: number of answers.
    """

    resume: float = 0.0
    answered: int = 0


@cache
def _certificates() -> ssl.SSLContext:
    """Read the certificates once: that takes a good part of the time of a short exchange."""
    return httpx2.create_ssl_context()


def completions_url(url: str) -> str:
    """Return the URL for questions to a server: `/v1` is added unless the URL ends in it, then `/chat/completions`."""
    suffix = "/chat/completions"
    return url if url.endswith(suffix) else f"{url.removesuffix('/v1')}/v1{suffix}"


def _id_of(address: Address, options: LanguageOptions) -> str:
    """Return the id of a model: the id of its address, and the options that change its answers."""
    parts = [options.suffix.removeprefix("@")] if options.suffix else []
    if options.token_limit_name is None:
        parts = ["tokens=none"]
    if options.temperature != 0:
        parts.append(f"temperature={as_typed(options.temperature)}")
    return address.id + (f"@{'+'.join(parts)}" if parts else "")


class EndpointModel(base.Model):
    """A model on a server. It answers prompts with or without a clip, and scores letters.

    Attributes:
        card: its id comes from its address; the revision is the server's name for the model if it differs from
            the requested name, else ``unknown``.
        device: ``server``.
        address: address of the server.
        options: options of the questions.
        deadline: seconds allowed for a question with all its tries.
        concurrency: number of concurrent questions.
        scorings: only letters, since a server returns no likelihoods of given texts.
    """

    device = base.SERVER
    scorings = ("letters",)

    def __init__(
        self, address: Address, options: EncoderOptions = DEFAULT_OPTIONS, *, clock: Clock | None = None
    ) -> None:
        """Set up the model; nothing is sent.

        Args:
            address: address of the server.
            options: `LanguageOptions` with the maximum number of tokens of an answer, the number of concurrent
                questions as `batch_size`, and the deadline; or the default options.
            clock: clock for the waits between tries; None for the machine's.

        Raises:
            ModelError: options that a server does not have, or a malformed key.
        """
        asked = base.language_options(options, address.id)
        if asked.precision != LanguageOptions().precision or asked.spread:
            raise base.ModelError(
                f"'{address.id}' runs on a server: it takes no precision and cannot be spread over GPUs"
            )
        self.address, self.options, self.new_tokens = address, asked, asked.max_new_tokens
        self.deadline = DEADLINE if asked.deadline is None else asked.deadline
        self.concurrency = min(asked.batch_size or CONCURRENCY, MOST_AT_ONCE)
        self.batch_size = self.concurrency
        # Several times the number of concurrent questions, so that clips are read for many questions at a time.
        self.questions_per_call = 8 * self.concurrency
        self.card = base.ModelCard(
            id=_id_of(address, asked),
            revision=UNKNOWN,
            sample_rate=SAMPLE_RATE,
            output_dim=None,
            paradigm="behind a server",
        )
        self._url = completions_url(address.url)
        self._is_here = is_loopback(httpx2.URL(self._url).host)
        self._clock, self._pace = clock or Clock(), Pace()
        self._served: set[str] = set()
        self._has_warned = False
        if read_key() is not None and address.is_open_to_listeners:
            warnings.warn(
                f"the key in {KEY_VARIABLE} is sent to {address.host} unencrypted: use https://", stacklevel=2
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.card.id!r})"

    @property
    def abilities(self) -> frozenset[str]:
        """Abilities; it also answers prompts without a clip."""
        return super().abilities | {"read"}

    def with_new_tokens(self, count: int) -> EndpointModel:
        """Return this model with answers of at most `count` tokens; its id states the limit.

        Raises:
            InputError: the count is not a whole number of 1 or more.
        """
        model = copy.copy(self)
        model.options, model.new_tokens = self.options.changed(max_new_tokens=count), count
        model.card = replace(self.card, id=_id_of(self.address, model.options))
        return model

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """Answer prompts, each about a clip or, with an empty list, without one; see `Model.answer`.

        Empty answers, refusals and truncated answers are returned unchanged; the facts of `answers` mark them.

        Raises:
            InputError: the numbers of prompts and clips differ, or a prompt is empty.
            ClipError: a clip is no sound.
            ModelError: a prompt is about several clips.
            EndpointError: a question that the server does not answer.
        """
        if len(prompts):
            base.check_texts(prompts)
        return base.in_order(self.answers(base.given_questions(clips, prompts), size=self.concurrency))

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: base.By
    ) -> list[list[float]]:
        """Return the log-likelihood of each option's letter as the first token of the answer; see
        `Model.score_options`.

        A letter with a space before it counts as the same letter. A server returns only the likeliest tokens: for a
        letter that is not among them, the value is an upper bound, the smaller of their lowest probability and the
        remaining probability. All options of a question that the server marks as refused have NaN.

        Raises:
            ModelError: `by` is ``options``, or the server returns no log-probabilities.
            InputError, ClipError, EndpointError: see `answer`.
        """
        return base.in_order(self.answers(base.given_questions(clips, prompts, options), by, size=self.concurrency))

    def answers(
        self, questions: Iterable[base.GivenQuestion], by: base.By | None = None, *, size: int
    ) -> base.AnswerStream:
        """Yield answers; see `Model.answers`. The next question is sent as soon as any is answered.

        After a failure no further question is sent; the answers under way are yielded, and then the error is raised. If
        the caller stops before the end, answers under way are dropped.

        Raises:
            ModelError: `by` is ``options``, or the server returns no log-probabilities.
            EndpointError: the first question in order that failed.
        """
        tokens, more = self.new_tokens, dict[str, Any]()
        if by == "letters":
            tokens, more = 1, {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        elif by is not None:
            raise base.ModelError(
                f"'{self.card.id}' cannot score by {by}: a server returns no likelihoods of given texts; score by "
                "letters, or by the model's answers"
            )
        for question, reply in self._replies(questions, tokens, more, min(size, self.concurrency)):
            if isinstance(reply, base.ClipError):
                yield question.index, reply
            elif by is None:
                yield question.index, (reply.text, reply.facts)
            else:
                count = len(question.options)
                if not 1 <= count <= len(base.LETTERS):
                    raise InputError(f"the number of options is {count}; it must be 1 to {len(base.LETTERS)}")
                # One token was requested, so that nothing was truncated.
                facts = {name: value for name, value in reply.facts.items() if name in ("refused", "fingerprint")}
                if "refused" in facts:
                    yield question.index, ([math.nan] * count, facts)
                    continue
                reasons = reply.facts.get("only") == "reasoning"
                if reasons or not reply.first_tokens:
                    why = "returned no log-probabilities of first tokens (logprobs, top_logprobs)"
                    why = "returned no final answer (reasoning only)" if reasons else why
                    raise base.ModelError(
                        f"'{self.card.id}' cannot score by letters: the server {why}; score by the model's answers"
                    )
                scores, bounds = replies.letter_scores(reply.first_tokens, count)
                yield question.index, (scores, {**facts, "unlisted": bounds} if bounds else facts)

    def identify(self, *, takes_audio: bool = True) -> None:
        """Identify the server's model by one question, about a second of silence or, if it takes no sound, without a
        clip; the card then states the model.

        A wrong key, URL or name is thus reported before any data are made.
        """
        clips = [base.GivenClip(np.zeros(SAMPLE_RATE, np.float32), SAMPLE_RATE)] if takes_audio else []
        for _, reply in self._replies([base.GivenQuestion(0, clips, _HELLO)], self.new_tokens, {}, 1):
            if isinstance(reply, replies.Reply) and reply.model and reply.model != self.address.model:
                self.card = replace(self.card, revision=shortened(reply.model, 100))

    def _replies(
        self, questions: Iterable[base.GivenQuestion], tokens: int | None, more: Mapping[str, Any], most: int
    ) -> Generator[tuple[base.GivenQuestion, replies.Reply | base.ClipError], None, None]:
        """Yield the server's replies to questions as they arrive, of at most `tokens` tokens each, with a limited
        number of concurrent questions; `more` are further fields of the questions.

        The event loop of one thread sends and receives everything, so that a question ends at its deadline whatever it
        waits for, and all questions end when the caller stops.
        """
        arrived: queue.SimpleQueue[tuple[base.GivenQuestion, replies.Reply | base.ClipError] | None] = (
            queue.SimpleQueue()
        )
        loop = asyncio.new_event_loop()
        fields: dict[str | None, Any] = {
            "model": self.address.model,
            "stream": False,
            "temperature": self.options.temperature,
            self.options.token_limit_name: tokens,
        }
        fixed = {name: value for name, value in fields.items() if name is not None and value is not None}
        asking = loop.create_task(self._ask_all(iter(questions), {**fixed, **more}, most, arrived))
        asking.add_done_callback(lambda _: arrived.put(None))

        def work() -> None:
            with suppress(Exception, asyncio.CancelledError):
                loop.run_until_complete(asking)
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

        thread = threading.Thread(target=work, name="endpoint", daemon=True)
        thread.start()
        try:
            while (one := arrived.get()) is not None:
                yield one
            asking.result()
        finally:
            # The loop may have ended in the meantime.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(asking.cancel)
            thread.join()
        names = sorted({shortened(plain(model), 80) for model in self._served})
        if len(names) > 1 and not self._has_warned:
            self._has_warned = True
            warnings.warn(f"the server of '{self.card.id}' answers as {' and as '.join(names)}", stacklevel=5)

    async def _ask_all(
        self,
        questions: Iterator[base.GivenQuestion],
        fixed: Mapping[str, Any],
        most: int,
        arrived: queue.SimpleQueue[tuple[base.GivenQuestion, replies.Reply | base.ClipError] | None],
    ) -> None:
        """Ask all questions in order; after a failure no further ones.

        Raises:
            Exception: the failure of the first question in order that failed, after the replies under way.
        """
        failed: dict[int, Exception] = {}
        stopped, free, room = asyncio.Event(), asyncio.Semaphore(most), asyncio.Semaphore(2 * most)
        key = read_key()
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        client = httpx2.AsyncClient(
            timeout=None,
            limits=limits,
            verify=_certificates(),
            # A proxy is another machine: questions for this machine, and its key, would leave it.
            trust_env=not self._is_here,
        )

        async def ask(number: int, question: base.GivenQuestion) -> None:
            try:
                async with free:
                    if not stopped.is_set():
                        reply = await self._reply(client, key, question, fixed, stopped, most)
                        if reply is not None:
                            arrived.put((question, reply))
            except Exception as error:
                failed[number] = error
                stopped.set()
            finally:
                room.release()

        async with client, asyncio.TaskGroup() as under_way:
            number = 0
            while not stopped.is_set():
                # Some wait to be sent, so that the next is ready when one is answered.
                await room.acquire()
                try:
                    # In another thread, since reading clips takes a while.
                    question = await asyncio.to_thread(next, questions, None)
                except Exception as error:
                    failed[number] = error
                    stopped.set()
                    break
                if question is None:
                    break
                under_way.create_task(ask(number, question))
                number += 1
        if failed:
            raise failed[min(failed)]

    async def _reply(
        self,
        client: httpx2.AsyncClient,
        key: str | None,
        question: base.GivenQuestion,
        fixed: Mapping[str, Any],
        stopped: asyncio.Event,
        most: int,
    ) -> replies.Reply | base.ClipError | None:
        """Return the server's reply; transient failures are retried, five tries in all. None if the questions have
        ended.

        After a rate limit, the count starts again if another question was answered in the meantime, because the server
        works but answered others first. In all, a question is tried at most five times the number of concurrent
        questions. Waits are not random: the same failures lead to the same waits.

        Raises:
            EndpointError: the question failed for good.
        """
        sound = None
        if len(question.clips):
            clip = self.single_clip(question.clips, question.index)
            rate = base.check_sample_rate(clip.sample_rate)
            try:
                samples = base.check_waveforms(np.asarray(clip.waveform)[None])
            except base.ClipError as error:
                return base.ClipError(error.reason, question.index)
            sound = base.resample(samples, rate, SAMPLE_RATE)[0]
        message = {"role": "user", "content": content_of(question.prompt, sound, self.options.audio_form)}
        body = json.dumps({**fixed, "messages": [message]}, allow_nan=False).encode()
        pace, clock, left = self._pace, self._clock, self.deadline
        tries, in_a_row, answered = 0, 0, pace.answered
        while True:
            while pace.resume > clock.now() and not stopped.is_set():
                await clock.wait_until(pace.resume, stopped)
            if stopped.is_set():
                return None
            begun = time.monotonic()
            outcome = await self._try(client, key, body, left)
            left -= time.monotonic() - begun
            if isinstance(outcome, replies.Reply):
                pace.answered += 1
                if outcome.model:
                    self._served.add(outcome.model)
                return outcome
            tries += 1
            if left <= 0 and outcome.is_transient:
                outcome = self._too_late()
            if outcome.status == replies.TOO_MANY and pace.answered != answered:
                in_a_row, answered = 0, pace.answered
            wait = outcome.requested_wait or 0.0
            # A server that admits one question at a time may refuse each as often as there are others.
            is_enough = in_a_row == len(WAITS) or tries == most * (len(WAITS) + 1)
            if is_enough or not outcome.is_transient or wait > LONGEST_WAIT:
                often = f", after {tries} tries" if tries > 1 else ""
                often += f"; it asks to wait {wait:.0f} s" if wait > LONGEST_WAIT else ""
                raise EndpointError(f"'{self.card.id}': {outcome.reason}{often}; {outcome.advice}", outcome.status)
            seconds = max(WAITS[in_a_row], wait)
            in_a_row += 1
            moment = clock.now() + seconds
            is_for_all = outcome.status == replies.TOO_MANY or outcome.requested_wait is not None
            if not is_for_all or pace.resume <= clock.now():
                who = "all questions wait" if is_for_all else "asked again after"
                _log.warning("'%s': %s; %s %g s", self.card.id, outcome.reason, who, seconds)
            if is_for_all:
                pace.resume = max(pace.resume, moment)
            else:
                await clock.wait_until(moment, stopped)

    def _too_late(self) -> replies.Failure:
        limit = f"{self.deadline:g} s, the limit of a question with all its tries"
        advice = "check whether the server is overloaded, or allow more time (--set deadline=...)"
        return replies.Failure(f"there was no complete answer within {limit}", advice)

    async def _try(
        self, client: httpx2.AsyncClient, key: str | None, question: bytes, left: float
    ) -> replies.Reply | replies.Failure:
        """Try once. The client's error is not passed on, since it holds the request and so the key; see `Failure`."""
        if constants.is_offline_mode() and not self._is_here:
            reason = "HF_HUB_OFFLINE is set, and the server is not on this machine: no question is sent"
            return replies.Failure(reason, "unset HF_HUB_OFFLINE")
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        body = bytearray()
        try:
            async with (
                asyncio.timeout(left),
                client.stream("POST", self._url, content=question, headers=headers) as response,
            ):
                try:
                    # A server may compress a gigabyte into a megabyte, so the content is read in pieces.
                    async for part in response.aiter_bytes():
                        body += part
                        if len(body) > MOST_BYTES:
                            status = response.status_code
                            reason = f"the server answered {status} with more than {MOST_BYTES / 1e6:g} MB"
                            return replies.Failure(f"{reason}; the rest was not read", replies.UP_TO_V1, status)
                except httpx2.HTTPError:
                    # After an error status, show what has arrived.
                    if response.is_success:
                        raise
        except TimeoutError:
            return self._too_late()
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            return replies.failure_of(error, key)
        return replies.outcome_of(response, bytes(body), key)


def load_endpoint(
    name: str, options: EncoderOptions = DEFAULT_OPTIONS, *, takes_audio: bool = True, clock: Clock | None = None
) -> EndpointModel:
    """Load the model that `endpoint:MODEL@URL` names; the server is asked for its model.

    Args:
        name: see `parse_endpoint`.
        options, clock: see `EndpointModel`.
        takes_audio: whether it takes sound; False for a text model.

    Raises:
        ModelError: see `parse_endpoint` and `EndpointModel`; `EndpointError` if the server does not answer.
    """
    model = EndpointModel(parse_endpoint(name), options, clock=clock)
    model.identify(takes_audio=takes_audio)
    return model
