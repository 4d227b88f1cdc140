"""Which rows are near each other, so that a batch can hold both (the release's second stage of arXiv 2310.08753)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from audio_compositionality.evaluator.run.processes import Processes
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.text import first_line

from .batches import Features, nearest_rows
from .checkpoints import FOLDER
from .data import TrainingData
from .errors import TrainingError
from .model import TwoTowers

_AT_ONCE = 32


def stage_neighbours(
    towers: TwoTowers,
    data: TrainingData,
    features: Features,
    count: int,
    out: Path,
    stage: int,
    processes: Processes,
    is_new: bool,
) -> NDArray[np.int64]:
    """The neighbours of every row in the embedding that the stage begins with.

    Args:
        towers: as they are at the beginning of the stage, where `is_new`.
        data: the rows.
        features: of their clips.
        count: neighbours of a row.
        out: folder of the run, which keeps them: when a run goes on in the stage, the embedding is another.
        stage: its number.
        processes: of which the main one computes.
        is_new: whether the stage begins.

    Returns:
        int64 [rows, count].

    Raises:
        TrainingError: what was kept cannot be read.
    """
    path = out / FOLDER / f"neighbours-{stage}.safetensors"
    if processes.is_main and (is_new or not path.exists()):
        rows = nearest_rows(embed_rows(towers, data, features), data.rows, count)
        write_whole(path, save({"neighbours": rows}))
    processes.wait()
    try:
        neighbours: NDArray[np.int64] = load_file(path)["neighbours"]
    except (OSError, SafetensorError, KeyError) as error:
        raise TrainingError(f"cannot read the neighbours of rows in {path}: {first_line(error)}") from error
    return neighbours


@torch.no_grad()
def embed_rows(towers: TwoTowers, data: TrainingData, features: Features) -> NDArray[np.floating[Any]]:
    """Embeddings [rows, D] of the clips of all rows."""
    clips = np.array([row.clip for row in data.rows], np.int64)
    parts = [
        towers.embed_audio(features.gather(clips[start : start + _AT_ONCE]).to(towers.device)).float().cpu().numpy()
        for start in range(0, len(clips), _AT_ONCE)
    ]
    return np.concatenate(parts)
