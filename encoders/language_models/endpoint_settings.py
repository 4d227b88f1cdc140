"""How a server is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from audio_compositionality.support.errors import InputError

from ..base import check_sample_rate

MOST_THREADS = 64
"""Questions at a time, each on a connection of its own."""

DEADLINE = 120.0
"""Seconds that a question may take in all, unless more are allowed."""


def check_count(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Refuse what is no whole number within limits.

    Raises:
        InputError: it is none.
    """
    is_count = isinstance(value, int) and not isinstance(value, bool)
    if not is_count or value < least or (most is not None and value > most):
        end = f" to {most}" if most is not None else " or more"
        raise InputError(f"{name} is {value!r}; it must be a whole number of {least}{end}")


def check_seconds(name: str, value: float) -> None:
    """Refuse what is no time.

    Raises:
        InputError: it is not above 0, or has no end.
    """
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"{name} is {value!r}; it must be a number of seconds above 0")


@dataclass(frozen=True)
class EndpointSettings:
    """How a server is asked.

    Attributes:
        concurrency: questions that are under way at a time, 1 to 64.
        max_questions: the most questions that a model may be asked in all, tries not counted; None for any number. More
            are refused before one of them is sent.
        timeout: seconds without a sign of the server after which a try is given up, where so many are left.
        deadline: seconds that a question may take in all, its tries together, from the opening of a connection to the
            last byte of an answer. The waits between tries, which a server may ask for, do not count.
        sample_rate: rate in Hz at which clips are sent; those of other rates are resampled.
        limit_seconds: the longest clip that the model takes; longer ones are refused instead of cut in silence by the
            server. None where it is not known.
        top_logprobs: how many first tokens the server is asked for where letters are scored; OpenAI gives 20
            at most, and so does vLLM unless it is told otherwise.
        revision: the version of the model, where who asks knows it. Then the server is not asked for it.

    Raises:
        InputError: on a value that is none of these.
    """

    concurrency: int = 8
    max_questions: int | None = None
    timeout: float = 300.0
    deadline: float = DEADLINE
    sample_rate: int = 32_000
    limit_seconds: float | None = None
    top_logprobs: int = 20
    revision: str | None = None

    def __post_init__(self) -> None:
        check_sample_rate(self.sample_rate)
        check_count("concurrency", self.concurrency, 1, MOST_THREADS)
        check_count("top_logprobs", self.top_logprobs, 1, 1_000)
        if self.max_questions is not None:
            check_count("max_questions", self.max_questions, 0)
        for name in ("timeout", "deadline"):
            check_seconds(name, getattr(self, name))
        if self.limit_seconds is not None:
            check_seconds("limit_seconds", self.limit_seconds)


DEFAULT_SETTINGS = EndpointSettings()
