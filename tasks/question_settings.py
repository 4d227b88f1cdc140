"""Settings of tasks of questions: in which words, in which orders of the options, and how the answer is taken."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.spec import Spec

from .base import GENERATE, Scoring
from .question_prompts import DIRECT, ONE_ORDER, PROMPTS, TEXT, PromptStyle

SCORINGS: tuple[Scoring, ...] = get_args(Scoring)
"""How an answer is taken; the setting ``scoring``."""


class AskingSpec(Spec):
    """How questions are asked."""

    prompt: Literal["direct", "text", "reason"] = Field(
        DIRECT,
        description="direct asks for one letter only; text for the text of an option, the default of the scoring "
        "options; reason asks for an explanation first and the letter behind it, of up to 1,024 tokens.",
    )
    orders: Literal[1, "cyclic"] = Field(
        ONE_ORDER,
        description="1 shows the options as the data have them; cyclic asks each question once an order, its options "
        "turned until each has stood at each position, which tells a habit of letters from knowledge.",
    )
    scoring: Scoring = Field(
        GENERATE,
        description="generate reads what the model writes, as the paper does; letters takes the likeliest letter as "
        "its first token, options the likeliest text of an option: no answer is unreadable then.",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_options(cls, values: Any) -> Any:
        """Where the likelihood of an option's text is taken, that text is what is asked for."""
        return {"prompt": TEXT, **values} if values.get("scoring") == "options" else values

    @model_validator(mode="after")
    def _agree(self) -> AskingSpec:
        if self.style.reasons and self.scoring != GENERATE:
            raise InputError(
                f"the prompt {self.prompt!r} has a model write its reasons first, and the scoring {self.scoring!r} has "
                f"it write nothing: take the prompt {DIRECT!r}, or the scoring {GENERATE!r}"
            )
        if self.scoring not in self.style.scorings:
            other = next(name for name, one in PROMPTS.items() if self.scoring in one.scorings)
            raise InputError(
                f"the prompt {self.prompt!r} asks for another answer than the scoring {self.scoring!r} takes the "
                f"likelihood of: take the prompt {other!r}, or the scoring "
                f"{' or '.join(map(repr, self.style.scorings))}"
            )
        return self

    @property
    def style(self) -> PromptStyle:
        """The way to ask for an answer."""
        return PROMPTS[self.prompt]

    @property
    def stored(self) -> dict[str, Any]:
        """All that scores depend on, as JSON values, with the version of the prompt."""
        values = {name: value for name, value in self.values().items() if value is not None}
        return {"prompt": self.prompt, "prompt_version": self.style.version, **values}
