"""Which rows are near each other, so that a batch can hold both (the release's second stage of arXiv 2310.08753)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from audio_compositionality.evaluator.run.processes import Processes
from audio_compositionality.support.checked_files import DIGEST, NO_DIGEST, read_sealed, sealed
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
    processes: Processes,
    kept: NDArray[np.int64] | None,
) -> NDArray[np.int64]:
    """The neighbours of every row in the embedding that the stage begins with.

    Args:
        towers: as they are at the beginning of the stage, where nothing is kept.
        data: the rows.
        features: of their clips.
        count: neighbours of a row.
        out: folder of the run, through which the main process gives them to the others.
        processes: of which the main one computes.
        kept: where a run goes on in the stage, those of its checkpoint: the embedding is another now.

    Returns:
        int64 [rows, count].

    Raises:
        TrainingError: what the main process gave cannot be read.
    """
    if kept is not None:
        return kept
    path = out / FOLDER / "neighbours.safetensors"
    if processes.is_main:
        neighbours: NDArray[np.int64] = nearest_rows(embed_rows(towers, data, features), data.rows, count)
        if processes.count == 1:
            return neighbours
        stated = {"given": json.dumps({DIGEST: NO_DIGEST})}
        write_whole(path, sealed(save({"neighbours": neighbours}, stated)))
    processes.wait()
    try:
        neighbours = load(read_sealed(path))["neighbours"]
    except (OSError, ValueError, SafetensorError, KeyError) as error:
        raise TrainingError(
            f"cannot read the neighbours of rows that the main process gave: {first_line(error)}"
        ) from error
    processes.wait()
    if processes.is_main:
        path.unlink()
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
