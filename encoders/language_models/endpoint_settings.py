"""How a server is asked."""

from __future__ import annotations

from pydantic import Field

from audio_compositionality.support.spec import Spec

MOST_THREADS = 64
"""Questions at a time, each on a connection of its own."""


class EndpointSettings(Spec):
    """How a server is asked."""

    concurrency: int = Field(8, ge=1, le=MOST_THREADS, description="Questions that are under way at a time.")
    max_questions: int | None = Field(
        None,
        ge=0,
        description="Most questions that a model may be asked in all, tries not counted; None for any number. More are "
        "refused before one of them is sent.",
    )
    timeout: float = Field(
        300.0,
        gt=0,
        description="Seconds without a sign of the server after which a try is given up, if so many remain.",
    )
    deadline: float = Field(
        120.0,
        gt=0,
        description="Seconds that a question may take in all, its tries together, from the opening of a connection to "
        "the last byte of an answer. The waits between tries, which a server may ask for, do not count.",
    )
    sample_rate: int = Field(
        32_000, ge=1, description="Hz at which clips are sent; those of other rates are resampled."
    )
    limit_seconds: float | None = Field(
        None,
        gt=0,
        description="The longest clip that the model takes; longer ones are refused instead of cut in silence by the "
        "server. None where it is not known.",
    )
    top_logprobs: int = Field(
        20,
        ge=1,
        le=1_000,
        description="First tokens that the server is asked for where letters are scored; OpenAI gives 20 at most, and "
        "so does vLLM unless it is told otherwise.",
    )
    revision: str | None = Field(
        None, description="Version of the model, where who asks knows it: then the server is not asked for it."
    )


DEFAULT_SETTINGS = EndpointSettings()
