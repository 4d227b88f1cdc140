"""The board of results on this machine, as the Space would show them: all are reported, none is checked."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from audio_compositionality.evaluator.compare.loading import GivenResults, load_results
from audio_compositionality.evaluator.results.result import ResultError, samples_path
from audio_compositionality.support.files import read_file, safe_file_name
from audio_compositionality.tasks.registry import load_task

from .board import Board, Entry, Rejected, is_older, trimmed_samples
from .callbacks import PageCallbacks
from .plots import Plots
from .reading import BoardSource
from .space import page_blocks, show


def local_board(paths: GivenResults) -> Board:
    """Return the board of results: an entry each; samples that cannot be compared are listed as rejected.

    Args:
        paths: folders of results, or their JSON files.

    Raises:
        ResultError: see `load_results`.
    """
    entries, rejected = list[Entry](), list[Rejected]()
    for one in load_results(paths):
        result, digest = one.result, hashlib.sha256(one.result.dumps().encode()).hexdigest()
        place = f"{safe_file_name(result.model.id)}/{safe_file_name(result.model.revision)}/{result.task}-{digest[:16]}"
        entry = Entry(
            folder=f"results/{place}",
            result=result,
            reported=result,
            verified_on=None,
            samples=str(samples_path(one.path)),
            is_verifiable=False,
            submitter=None,
        )
        if not is_older(result.task, entry.data):
            try:
                samples = trimmed_samples(load_task(result.task).info, one.samples)
                entry = replace(entry, result=result.with_samples(samples))
            except ResultError as error:
                rejected.append(Rejected(str(one.path), f"there is no verdict: {error}"))
        entries.append(entry)
    commit = hashlib.sha256("".join(sorted(entry.folder for entry in entries)).encode()).hexdigest()
    return Board(commit, tuple(entries), tuple(rejected))


def launch_local(paths: GivenResults, **options: Any) -> None:
    """Show results in the browser until the process ends; new ones in the same folders appear with "Read again".

    Args:
        paths: folders of results, or their JSON files.
        options: of `gradio.Blocks.launch`.

    Raises:
        ResultError: see `load_results`.
    """
    local_board(paths)
    source = BoardSource(lambda: local_board(paths), min_age=1)
    source.start()
    plots = Plots(lambda _, entry: read_file(Path(entry.samples)))
    show(page_blocks(PageCallbacks(source, plots, None, "ORG", lambda: ""), None, "ORG"), **options)
