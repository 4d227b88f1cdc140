"""How models are run: everything that an evaluation is told beside models, tasks and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RunOptions:
    """How models are run and scored.

    Attributes:
        batch_size: clips embedded at a time, 1 to 64; None for 4 on a CPU and 32 on a GPU. It is halved whenever memory
            does not suffice, and does not change scores beyond rounding.
        device: torch device of models that are given by name, and of fits; None for CUDA where there is one, else the
            CPU. Of several processes each takes the GPU of its local rank.
        out: folder for result files; None writes none. A task is written as soon as it is done, and one that is there
            already for the same data and settings is read instead of computed.
        store: folder of the embeddings and answers that are kept; None keeps them in memory. What is there is not
            computed again, and a run that was stopped goes on from there.
        settings: settings of tasks that are not to be the defaults, by name: ``seeds``, ``max_steps``.
        max_questions: most questions to put to a model behind a server, where each costs: more are refused before the
            first one; those whose answers are in the store do not count. None for any number.
        skip_invalid: leave out clips that cannot be used, and with them their rows, instead of raising an error.
        force: compute and replace what is there.
        progress: show progress bars.
    """

    batch_size: int | None = None
    device: str | None = None
    out: Path | None = None
    store: Path | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    max_questions: int | None = None
    skip_invalid: bool = False
    force: bool = False
    progress: bool = True
