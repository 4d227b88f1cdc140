"""Parsing of a server's replies: answers, and errors with what to do about them.

Everything here is a function of a reply. The key is masked in all that is kept or shown.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from urllib.parse import quote

import httpx2
import numpy as np

from audio_compositionality.support.errors import causes_of
from audio_compositionality.support.retries import requested_wait
from audio_compositionality.support.text import first_line, parse_json, shortened

from .. import base
from ..loading.names import KEY_VARIABLE

RETRIED = frozenset({429, *range(500, 600)}) - {501, 505}
"""HTTP statuses, also within a reply, after which a retry may succeed: the rate limit and errors of the server, but not
its reply that it lacks a feature."""

TOO_MANY = 429

LONGEST_WORDS = 200
"""Longest quotation of a server's words in a message, in characters."""

_SPACES = " \t\n\r▁Ġ"
"""Space, and its replacements in tokens of SentencePiece and of GPT-2."""


# ----- A reply


def outcome_of(response: httpx2.Response, body: bytes, key: str | None) -> Reply | Failure:
    """Return the answer in a reply, or the reason why it has none.

    Args:
        response: the reply.
        body: its decompressed content.
        key: the key.
    """
    status = response.status_code
    if response.is_redirect:
        reason = f"the server redirects ({status}), which is not followed"
        return Failure(reason, "give the URL of the final server, up to /v1", status)
    try:
        content = parse_json(body.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        if response.is_success:
            return no_completion(first_line(error), key)
        # Pages of gateways are not shown.
        content = "" if body.lstrip()[:1] in b"<[{" else body.decode("utf-8", "replace")
    if not response.is_success:
        return refusal_of(status, content, response.headers, key)
    # OpenRouter reports errors after its status 200: in the reply, or in its choice.
    fault = _at(content, "error") or _at(content, "choices", 0, "error")
    if fault or _at(content, "object") == "error":
        code = _at(fault or content, "code")
        number = int(code) if isinstance(code, int | str) and re.fullmatch("[1-5][0-9]{2}", str(code)) else None
        return refusal_of(number, {"error": fault or content}, response.headers, key, is_within=True)
    return reply_of(content, key) or no_completion(server_words(content), key)


def _at(value: Any, *path: str | int) -> Any:
    """Return the value at a path in JSON; None if there is none."""
    for key in path:
        try:
            value = value[key]
        except (LookupError, TypeError):
            return None
    return value


# ----- The key


_SHORTEST_SECRET = 8
"""Length of the shortest key that is masked in a model's answers: shorter ones may be words, as vLLM's EMPTY."""


def without_key(text: str, key: str | None) -> str:
    """Remove the key, and parts of it, from a server's text, even if quoted as in URLs or in JSON."""
    if key is None:
        return text
    for form in sorted({key, quote(key), quote(key, safe=""), json.dumps(key)[1:-1]}, key=len, reverse=True):
        text = text.replace(form, "***")
    # Servers quote a part of a key that they refuse.
    parts = {key[start : start + _SHORTEST_SECRET] for start in range(len(key) - _SHORTEST_SECRET + 1)}
    starts = [start for start in range(len(text)) if text[start : start + _SHORTEST_SECRET] in parts]
    hidden = {start + place for start in starts for place in range(_SHORTEST_SECRET)}
    runs = groupby(range(len(text)), hidden.__contains__)
    return "".join("***" if is_hidden else "".join(text[place] for place in run) for is_hidden, run in runs)


def _told(words: str, key: str | None) -> str:
    """Prepare a server's words for display: without the key and the sound that they quote in base64, and shortened.

    They are shortened only after masking: a part of the key could not be recognised.
    """
    return shortened(re.sub(r"[\w+/=-]{64,}", "…", without_key(words, key)), LONGEST_WORDS)


# ----- Answers


@dataclass(frozen=True)
class Reply:
    """A server's answer to one question.

    Attributes:
        text: the unchanged answer; may be empty.
        facts: further statements of the server, as JSON values; see `GivenAnswer`.
        model: the model that the server states; None if it states none.
        first_tokens: natural log-probabilities of the likeliest first tokens, by token; may be empty.
    """

    text: str
    facts: Mapping[str, Any]
    model: str | None
    first_tokens: Mapping[str, float]


def reply_of(content: Any, key: str | None) -> Reply | None:
    """Return the answer in the JSON of a chat completion, even an incomplete one; None for any other JSON."""

    def text(value: Any) -> str | None:
        if not isinstance(value, str):
            return None
        return value if key is None or len(key) < _SHORTEST_SECRET else without_key(value, key)

    choice = _at(content, "choices", 0)
    message = _at(choice, "message")
    if not isinstance(message, dict):
        return None
    said, refusal = message.get("content"), text(message.get("refusal"))
    # vLLM renamed `reasoning_content`; for hidden reasoning, OpenAI states only the number of tokens.
    reasoning = message.get("reasoning") or message.get("reasoning_content")
    reasoning = reasoning or _at(content, "usage", "completion_tokens_details", "reasoning_tokens")
    if isinstance(said, list):
        parts = [_at(one, "text") for one in said if not re.match("think|reason", str(_at(one, "type")))]
        reasoning = reasoning or len(parts) < len(said)
        said = "".join(part for part in parts if isinstance(part, str))
    finish_reason, tokens = text(_at(choice, "finish_reason")), _at(content, "usage", "completion_tokens")
    # Gemini appends its reason: content_filter: RECITATION.
    is_refused = refusal is not None or (finish_reason or "").startswith("content_filter")
    said, only = text(said) or refusal or "", None
    if not said.strip() and not is_refused:
        transcript = text(_at(message, "audio", "transcript"))
        others = {"transcript": transcript, "tool_calls": message.get("tool_calls"), "reasoning": reasoning}
        only = next((name for name, value in others.items() if value), None)
        said = transcript or said
    facts = {
        "finish_reason": finish_reason,
        "tokens": tokens if type(tokens) is int else None,
        "refused": is_refused or None,
        "fingerprint": text(_at(content, "system_fingerprint")),
        "only": only,
    }
    first, first_tokens = _at(choice, "logprobs", "content", 0), dict[str, float]()
    likeliest = _at(first, "top_logprobs")
    for entry in (first, *likeliest) if isinstance(likeliest, list) and likeliest else ():
        token, value = _at(entry, "token"), _at(entry, "logprob")
        # An integer with hundreds of digits.
        with suppress(OverflowError):
            if isinstance(token, str) and isinstance(value, int | float) and not math.isnan(value):
                first_tokens[token] = min(float(value), 0.0)
    known = {name: value for name, value in facts.items() if value is not None}
    return Reply(said, known, text(_at(content, "model")), first_tokens)


def letter_scores(tokens: Mapping[str, float], count: int) -> tuple[list[float], int]:
    """Return the log-likelihoods of the first `count` letters as first tokens, and how many of them are upper bounds.
    `tokens` holds the natural log-probabilities of the likeliest tokens."""
    listed = [
        [value for token, value in tokens.items() if token.strip(_SPACES) == letter] for letter in base.LETTERS[:count]
    ]
    left = 1.0 - math.fsum(map(math.exp, tokens.values()))
    bound = min([*tokens.values(), *([math.log(left)] if left > 0 else [])])
    # By rounding, the probabilities of a letter with and without a space may have a sum above 1.
    scores = [min(float(np.logaddexp.reduce(values)), 0.0) if values else bound for values in listed]
    return scores, sum(not values for values in listed)


# ----- Failures


@dataclass(frozen=True)
class Failure:
    """The reason why a question has no answer, without the client's error, which holds the request and so the key.

    Attributes:
        reason, advice: what is wrong and what to do about it, in words, without the key.
        status: HTTP status of the server's answer, or the code of an error within it; None if there was none.
        is_transient: whether the same question may be answered later.
        requested_wait: seconds that the server asks to wait; None if it does not ask.
    """

    reason: str
    advice: str
    status: int | None = None
    is_transient: bool = False
    requested_wait: float | None = None


UP_TO_V1 = "check that the URL leads to an OpenAI-compatible server, up to /v1"


def no_completion(what: str, key: str | None) -> Failure:
    """Return the failure of a reply that is not an answer; `what` describes it."""
    what = _told(what, key)
    return Failure(f"the server's answer is not a chat completion ({what})", UP_TO_V1)


def failure_of(error: Exception, key: str | None) -> Failure:
    """Return the failure behind an error of the client."""
    cause = tuple(causes_of(error))[-1]
    # Of several errors, as for the addresses of one name, the first.
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    words = first_line(cause)
    if isinstance(cause, OSError) and cause.errno is not None and "Connect call failed" in str(cause):
        # The words of asyncio, instead of the system's own reason.
        words = os.strerror(cause.errno)
    why = _told(words, key)
    if isinstance(error, httpx2.DecodingError):
        return no_completion(f"it cannot be decompressed: {why}", key)
    if isinstance(error, httpx2.TransportError | ConnectionError):
        reason = f"the server cannot be reached or broke the connection ({why})"
        return Failure(reason, "check the URL, and whether the server runs", is_transient=True)
    return Failure(f"the question could not be sent ({why})", "check the URL")


REMEDIES = {
    # vLLM; OpenAI and Azure, where reasoning uses up the limit
    r"max_(completion_)?tokens.*(limit was reached|at least|too large|below)|context length": "give shorter clips, or "
    "another limit on tokens (--set max_new_tokens=...)",
    # OpenAI, Azure, Mistral, vLLM
    "max_(completion_)?tokens": "rename the limit: --set token_limit_name=max_completion_tokens, max_tokens or none",
    "temperature": "let the server choose (--set temperature=none), or give a temperature that it takes",
    # OpenAI's audio models, also behind OpenRouter
    "input content or output modality contain audio": "this server wants sound in every question; leave out "
    "events-as-text: and detected-as-text:, which send text only",
    # DashScope
    "only supports? stream": "the server only streams its answers, which is not supported; choose another model",
    # OpenRouter, llama.cpp, Gemini
    "support input audio|audio input": "choose a model, or a setup of the server, that takes sound",
    # vLLM, llama.cpp, OpenAI, DashScope
    r"input_audio|audio_url|part type|content(\[\]\.type| blocks)|base64|incorrect padding|provided url": "send sound "
    "in another form (--set audio_form=base64, data_url or audio_url), or choose a model that takes it",
}
"""Advice by words in a server's error, in any case; the first match counts."""


def refusal_of(
    status: int | None, content: Any, headers: Mapping[str, str], key: str | None, *, is_within: bool = False
) -> Failure:
    """Return the failure of a reply that is an error; it has the server's words, without the key.

    Args:
        status: status of the reply, or the code of the error within it; None if that has none.
        content: the reply, as JSON or as a text.
        headers: headers of the reply.
        key: the key.
        is_within: whether the error came as the content of a reply with a status of success.
    """
    words = " ".join(server_words(content).split())
    # The faulty parameter is in the message or next to it.
    param = _at(content, "error", "param")
    told = f"{words[:2000]} {param[:80] if isinstance(param, str) else ''}"
    remedy = next((REMEDIES[pattern] for pattern in REMEDIES if re.search(pattern, told, re.IGNORECASE)), None)
    if status in (401, 403):
        do = "set" if key is None else "check the key in"
        advice = f"{do} the environment variable {KEY_VARIABLE}" + (" to a key for it" if key is None else "")
    elif remedy is not None and status != TOO_MANY:
        advice = remedy
    elif status == 404:
        advice = "check the model's name" + ("" if is_within else " and the URL, which goes up to /v1")
    elif status in RETRIED:
        advice = "run the same command later; it resumes"
    else:
        advice = "read the server's message; try another model or shorter clips"
    reason = "the server answered" + (" with an error" if is_within else "") + (f" {status}" if status else "")
    reason += f" ({_told(words, key)})" if words else ""
    return Failure(reason, advice, status, status in RETRIED, requested_wait(headers))


def server_words(content: Any) -> str:
    """Return the message in the JSON of an error: OpenAI's ``{"error": {"message"}}``, or another usual form.

    OpenRouter's message says only that a provider failed; the provider's error is in its ``metadata``, as a text.
    """
    while True:
        raw = _at(content, "metadata", "raw")
        if isinstance(raw, str):
            content = raw
            with suppress(ValueError, RecursionError):
                content = parse_json(raw)
        if isinstance(content, list) and content:
            content = content[0]
            continue
        names = ("error", "message", "detail", "errors") if isinstance(content, dict) else ()
        name = next((name for name in names if content.get(name)), None)
        if name is None:
            with suppress(RecursionError):
                return str(content)
            return ""
        content = content[name]
