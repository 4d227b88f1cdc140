"""Settings of tasks of questions: in which words, in which orders of the options, and how the answer is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import nearest

from .base import GENERATE, Scoring
from .question_prompts import DIRECT, ONE_ORDER, ORDERS, PROMPTS, TEXT, prompt_style

SCORINGS: tuple[str, ...] = get_args(Scoring)
"""How an answer is taken; the setting ``scoring``."""


DEFAULTS: Mapping[str, str | int] = {"prompt": DIRECT, "orders": ONE_ORDER, "scoring": GENERATE}
"""How questions are asked where nothing else is requested."""


def asking_settings(requested: Mapping[str, Any]) -> dict[str, Any]:
    """How questions are asked, as JSON values: ``prompt`` and its version, ``orders`` and ``scoring``.

    Args:
        requested: those that are not to be the defaults, which are ``direct``, 1 and ``generate``, and the prompt
            ``text`` where the scoring is ``options``; others may be among them.

    Raises:
        InputError: one is not among those that there are, or they contradict each other.
    """
    prompt, orders, scoring = (requested.get(name, value) for name, value in DEFAULTS.items())
    if scoring == "options" and "prompt" not in requested:
        prompt = TEXT
    style = prompt_style(prompt)
    if isinstance(orders, bool) or orders not in ORDERS:
        names = [str(one) for one in ORDERS]
        raise InputError(f"orders is {orders!r}; {nearest(str(orders), names)}")
    if scoring not in SCORINGS:
        raise InputError(f"the scoring {scoring!r} is not known; {nearest(str(scoring), SCORINGS)}")
    if style.reasons and scoring != GENERATE:
        raise InputError(
            f"the prompt {prompt!r} has a model write its reasons first, and the scoring {scoring!r} has it write "
            f"nothing: take the prompt {DIRECT!r}, or the scoring {GENERATE!r}"
        )
    if scoring not in style.scorings:
        other = next(name for name, one in PROMPTS.items() if scoring in one.scorings)
        raise InputError(
            f"the prompt {prompt!r} asks for another answer than the scoring {scoring!r} takes the likelihood of: take "
            f"the prompt {other!r}, or the scoring {' or '.join(map(repr, style.scorings))}"
        )
    return {"prompt": prompt, "prompt_version": style.version, "orders": orders, "scoring": scoring}
