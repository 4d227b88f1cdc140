"""How models are run: the settings of an evaluation other than models, tasks and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from audio_compositionality.support.spec import Spec

ITEMS_PER_SHARD = 64
"""Items in one file of the cache, and so the largest batch: no batch crosses the end of a file."""


class RunOptions(Spec):
    """How models are run and scored."""

    batch_size: int | None = Field(
        None,
        ge=1,
        le=ITEMS_PER_SHARD,
        description="Clips embedded at a time; None for 4 on a CPU and 32 on a GPU. Halved whenever memory runs "
        "out; scores do not depend on it beyond rounding.",
    )
    max_questions: int | None = Field(
        None,
        ge=0,
        description="Most questions for a model behind a server, which may charge for each: a run that needs more is "
        "refused before the first question. Questions with cached answers do not count. None for no limit.",
    )
    device: str | None = Field(
        None,
        description="Torch device of fits and of models given by name; None for CUDA if available, else the CPU. "
        "With several processes, each takes the GPU of its local rank.",
    )
    out: Path | None = Field(
        None,
        description="Folder for result files; None writes none. Each result is written as soon as it is computed; an "
        "existing one for the same data and settings is read instead.",
    )
    cache: Path | None = Field(
        None,
        description="Folder of cached embeddings and answers; None keeps them in memory. An interrupted run continues "
        "from the cached ones.",
    )
    settings: Mapping[str, Any] = Field(
        {},
        description="Settings of tasks other than the defaults, by name, such as `max_steps`; see `Task.spec`.",
    )
    skip_invalid: bool = Field(
        False, description="Leave out unusable clips with their rows, instead of raising an error."
    )
    force: bool = Field(False, description="Compute existing outputs and results again, and replace them.")
    progress: bool = Field(True, description="Show progress bars.")
