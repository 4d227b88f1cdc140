"""What is sent to a server of the OpenAI form and what comes back: sound as WAV, texts, first tokens."""

from __future__ import annotations

import base64
import io
import json
import math
import wave
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base import INT16_SCALE, LETTERS, FloatArray, ModelError
from .endpoint_calls import Failure, no_completion, words_in

_SPACES = " \t\n\r▁Ġ"
"""Space, and the signs that tokens of SentencePiece and of GPT-2 have in its place."""


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
    """What a server answered to one question.

    Attributes:
        text: the answer as it is; empty where there is none.
        finish_reason: why it ended, as the server says; None where it does not.
        is_refused: whether the server marks it as refused or filtered.
        model: what the server says it runs; None where it does not.
        fingerprint: its `system_fingerprint`; likewise.
        first_tokens: natural log-probabilities of the likeliest first tokens, by token; empty where there are none.
        tokens: how many the answer has, as the server counts; None where it does not say.
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
        """What is known beside the text, as JSON values; see `OnAnswer`."""
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
        waveform: [samples] in [-1, 1]; what is beyond full scale is clipped.
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


def question_of(
    model: str, prompt: str, waveform: FloatArray | None, sample_rate: int, parameters: Mapping[str, Any]
) -> bytes:
    """One question as JSON, to be answered by the likeliest tokens.

    Args:
        model: what the server calls it.
        prompt: the text.
        waveform: see `messages_of`.
        sample_rate: likewise.
        parameters: further ones of a chat completion, such as ``max_tokens``.
    """
    messages = messages_of(prompt, waveform, sample_rate)
    content = {"model": model, "messages": messages, "temperature": 0, "stream": False, **parameters}
    return json.dumps(content, allow_nan=False).encode()


def reply_of(body: bytes, masked: Callable[[str], str]) -> Reply | Failure:
    """What an answer says, whatever the server has left out.

    Args:
        body: of the server's reply.
        masked: takes the key out of a text.

    Raises:
        ValueError, RecursionError: it is no JSON, or nested too deep.
    """
    content = json.loads(body, parse_constant=_constant)
    if not isinstance(content, dict):
        return no_completion(masked(words_in(content)))
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        said = {name: value for name, value in content.items() if value is not None}
        return no_completion(masked(words_in(said)))
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
    # Rounded, the probabilities of a letter with and without a space may have a sum above 1.
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
    # JSON can have halves of characters, which no file can.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None


def _masked(value: str | None, masked: Callable[[str], str]) -> str | None:
    return None if value is None else masked(value)


def _constant(name: str) -> float:
    """Infinity, which is no JSON either, stands for the logarithm of 0 in what some servers say."""
    if name == "NaN":
        raise ModelError("it holds NaN, which is no number")
    return float(name)
