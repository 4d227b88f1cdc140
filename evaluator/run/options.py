"""How models are run: the settings of an evaluation beside models, tasks and data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from audio_compositionality.support.spec import Spec

ITEMS_PER_SHARD = 64
"""Items of a file of the store; no batch is larger, since none crosses the end of a file."""


class RunOptions(Spec):
    """How models are run and scored."""

    batch_size: int | None = Field(
        None,
        ge=1,
        le=ITEMS_PER_SHARD,
        description="Clips embedded at a time; None for 4 on a CPU and 32 on a GPU. It is halved whenever memory does "
        "not suffice, and does not change scores beyond rounding.",
    )
    max_questions: int | None = Field(
        None,
        ge=0,
        description="Most questions to put to a model behind a server, where each costs: more are refused before the "
        "first one; those whose answers are in the store do not count. None for any number.",
    )
    device: str | None = Field(
        None,
        description="Torch device of models that are given by name, and of fits; None for CUDA where there is one, "
        "else the CPU. Of several processes each takes the GPU of its local rank.",
    )
    out: Path | None = Field(
        None,
        description="Folder for result files; None writes none. A task is written as soon as it is done, and one that "
        "is there already for the same data and settings is read instead of computed.",
    )
    store: Path | None = Field(
        None,
        description="Folder of the embeddings and answers that are kept; None keeps them in memory. What is there is "
        "not computed again, and a run that was stopped goes on from there.",
    )
    settings: Mapping[str, Any] = Field(
        {},
        description="Settings of tasks that are not to be the defaults, by name, as `max_steps`; see `Task.spec`.",
    )
    skip_invalid: bool = Field(
        False, description="Leave out clips that cannot be used, and with them their rows, instead of raising an error."
    )
    force: bool = Field(False, description="Compute and replace what is there.")
    progress: bool = Field(True, description="Show progress bars.")
