"""A model that hears and answers behind any OpenAI-compatible server: vLLM, a Space, a vendor.

`load_endpoint("endpoint:MODEL@URL")` makes one. Its key, where the server wants one, is that of the environment
variable AUDIO_COMPOSITIONALITY_ENDPOINT_KEY (`names.KEY_VARIABLE`). It is read when questions are sent, kept in
no model, and masked in whatever the server says.
"""

from __future__ import annotations

import copy
import math
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import plain, shortened

from ..base import (
    LETTERS,
    By,
    ClipError,
    FloatArray,
    Model,
    ModelCard,
    ModelError,
    check_sample_rate,
    check_waveforms,
    resample,
)
from ..loading.names import KEY_VARIABLE, Address, parse_endpoint
from ..options import DEFAULT_OPTIONS, EncoderOptions
from ..texts import check_texts
from .endpoint_calls import Clock, EndpointError, Failure, Pace, failure_of, out_of_time, refusal_of
from .endpoint_http import RedirectError, Server, TooLargeError
from .endpoint_key import SERVER, masked_answer, read_key
from .endpoint_messages import Reply, SoundClip, letter_scores, question_of, reply_of
from .endpoint_settings import DEFAULT_SETTINGS, MOST_THREADS, EndpointSettings
from .endpoint_window import Window, open_window
from .options import LanguageOptions, language_options

UNKNOWN = "unknown"
"""The revision of a model of which the server says none."""

_HELLO = "Answer with the letter A."
"""What is asked about a second of silence, to learn what the server says that it runs."""


class EndpointModel(Model):
    """A model behind a server; it answers, also prompts without a clip, and scores letters.

    Attributes:
        card: its id is that of its address; the revision is the name that the server has for what it runs, where
            that is another than it was asked for, else ``unknown``.
        device: ``server``.
        settings: how the server is asked.
        scorings: a server tells no likelihoods of given texts.
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
            ModelError: on options that a server does not know of, or a key that is none.
        """
        asked = language_options(options, address.id)
        if asked.precision != LanguageOptions().precision or asked.spread:
            raise ModelError(f"'{address.id}' runs on a server, which knows of no precision and of no spreading")
        self.address = address
        self.settings = settings
        self.new_tokens, self.limit_seconds = asked.max_new_tokens, settings.limit_seconds
        self.batch_size = settings.concurrency
        # Several times those that are under way, so that outside of a `window` all but a few are, until the slowest
        # answer of a call has come.
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
        self._open: tuple[Server, Window] | None = None
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
    def window(self, most: int) -> Iterator[Window | None]:
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
        """Refuse so many further questions, where they are too many; nothing is sent.

        Raises:
            EndpointError: with those of before they are more than `EndpointSettings.max_questions`.
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

        Empty answers, refusals and answers that were cut come as they are; `on_answers` is told which they are.

        Raises:
            InputError: there are not as many prompts as clips, or an empty one.
            ClipError: a clip is no sound, or longer than the model takes.
            ModelError: a prompt is about several clips.
            EndpointError: more questions than allowed, or one that the server does not answer.
        """
        return [reply.text for reply in self.replies(clips, prompts)]

    def replies(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[Reply]:
        """As `answer`, with what the server says beside the text."""
        return self._ask(clips, prompts, lambda place, reply: (reply.text, reply.facts), max_tokens=self.new_tokens)

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """The log-likelihood of each option's letter as the first token of the answer; see `Model.score_options`.

        A letter with and without a space in front of it is one. Of a letter that is not among the likeliest tokens,
        which are all that a server tells of, it is an upper bound: the least of theirs, or what they leave over. All
        options of a question that the server marks as refused have NaN.

        Raises:
            ModelError: `by` is ``options``, or the server gives no log-probabilities.
            InputError, ClipError, EndpointError: see `answer`.
        """
        if by != "letters":
            raise ModelError(
                f"'{self.card.id}' cannot score by {by}: a server tells no likelihoods of given texts; by letters, or "
                "by what the model answers"
            )
        if len(options) != len(prompts):
            raise InputError(f"there are {len(options)} lists of options for {len(prompts)} prompts")
        for texts in options:
            if not 1 <= len(texts) <= len(LETTERS):
                raise InputError(f"the number of options is {len(texts)}; it must be 1 to {len(LETTERS)}")
        most, scores = self.settings.top_logprobs, dict[int, list[float]]()

        def scored(place: int, reply: Reply) -> tuple[list[float], dict[str, Any]]:
            scores[place], bounds = self._letter_scores(reply, len(options[place]))
            # One token was asked for, so that nothing was cut.
            facts = {name: value for name, value in reply.facts.items() if name in ("refused", "fingerprint")}
            return scores[place], {**facts, "unlisted": bounds} if bounds else facts

        replies = self._ask(clips, prompts, scored, max_tokens=1, logprobs=True, top_logprobs=most)
        return [scores[place] for place in range(len(replies))]

    def identify(self, *, hears: bool = True) -> None:
        """Ask the server one thing, about a second of silence, to learn what it runs; the card says it from then on.

        A wrong key, URL or name shows then, and not after the data are made. It does not count as a question.

        Args:
            hears: whether the model takes sound; else it is asked without.

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
                "(logprobs, top_logprobs); score by what the model answers"
            )
        return letter_scores(reply.first_tokens, count)

    def _ask(
        self,
        clips: Sequence[Sequence[Any]],
        prompts: Sequence[str],
        answer_of: Callable[[int, Reply], tuple[str | list[float], dict[str, Any]]],
        **parameters: Any,
    ) -> list[Reply]:
        """The replies to some questions, in order, none yet where a window is open; all is checked before one is sent.

        Each is told of as soon as it is there: `answer_of` says what the answer is, and what is known of
        it beside, by its place and the reply.
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
    def _opened(self, threads: int) -> Iterator[tuple[Server, Window]]:
        with closing(Server(self.address.url, self.settings.timeout)) as server, open_window(threads) as window:
            yield server, window

    def _put(
        self,
        server: Server,
        window: Window,
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
        # Made by the thread that sends it, so that no more sound is held as text than is under way.
        rate, left = self.settings.sample_rate, self.settings.deadline
        samples = None if clip is None else _at_rate(clip, rate)
        question = question_of(self.address.model, prompt, samples, rate, parameters)

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
        """One try. The client's error ends here: what is raised of a `Failure` has no request in its context."""
        try:
            reply = server.post(question, key, seconds)
            if reply.status // 100 != 2:
                return refusal_of(reply, key)
            return reply_of(reply.body, partial(masked_answer, key=key))
        except Exception as error:
            if isinstance(error, (RedirectError, TooLargeError)):
                # No server to get answers from: what is under way is not waited for.
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
    """The model that `endpoint:MODEL@URL` names; the server is asked what it runs, unless the settings say it.

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
