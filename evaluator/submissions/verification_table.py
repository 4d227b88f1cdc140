"""The verify command: which results there are in what was named, and what recomputing them found, as tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .parquet_reader import ParquetReader, clean
from .record import Difference
from audio_compositionality.evaluator.results.result import TASKS, ResultError
from .submission_files import RESULT, parse_path
from audio_compositionality.evaluator.compare.table import PIPED_WIDTH, TITLES, number
from .verification import Verification, verify_local, verify_submission

_LEGEND = """\
verified: recomputed from these embeddings, and equal to the claim within the tolerance. Tolerance: 1e-6 where nothing
is fitted; of A-TRE's scores the spread of the fits, which 1 % of honest claims exceed; - of a number that follows the
randomness of the fits and is only told. Of each column of samples the one farthest off is shown. That the embeddings
are those of the encoder that is named cannot be seen in them."""


def find_results(path: Path) -> list[Path]:
    """Folders of submissions, and JSON files of local results, at a path or below it.

    Raises:
        ResultError: there are none.
    """
    if path.name == RESULT and path.is_file():
        return [path.parent]
    if path.is_file():
        return [path]
    local = [f"{task}.json" for task in TASKS]
    found = []
    for folder, _, names in os.walk(path):
        if RESULT in names and "verification.json" not in names:
            found.append(Path(folder))
        found += [Path(folder) / name for name in local if name in names]
    if not found:
        raise ResultError(
            f"{path} holds no results: give the folder of a submission, its {RESULT}, or a file {' or '.join(local)} "
            "that `evaluate` has written"
        )
    return sorted(found)


def name_in_repository(folder: Path) -> str | None:
    """The path in the results repository that a folder's own path ends in; None where it ends in none."""
    name = "/".join(folder.absolute().parts[-4:])
    return name if parse_path(name) is not None else None


def verify_paths(
    paths: Sequence[Path], *, data: str | None = None, embeddings: Path | None = None, device: str | None = None
) -> int:
    """Verify results one after the other and print what was found.

    Returns:
        the exit status: 0 where all are verified, 1 where one is not, 2 where one cannot be read.
    """
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    found = dict.fromkeys(result for path in paths for result in find_results(path))
    status = 0
    with ParquetReader() as reader:
        for path in found:
            try:
                if path.is_dir():
                    name = name_in_repository(path)
                    verification = verify_submission(
                        path, name=name, data=data, device=device, progress=True, reader=reader
                    )
                else:
                    verification = verify_local(path, data=data, embeddings=embeddings, device=device, progress=True)
            except (OSError, ValueError) as error:
                print(f"error: {clean(path)}: {clean(error)}", file=sys.stderr)
                status = 2
                continue
            print_verification(verification, clean(path), console)
            status = status or int(not verification.verified)
    console.print(_LEGEND.replace("\n", " "), style="dim", highlight=False)
    return status


def print_verification(verification: Verification, where: str, console: Console) -> None:
    """Print the claimed and the recomputed numbers, and the verdict."""
    result = verification.result
    title = Text(f"{TITLES[result.task]} of {clean(result.encoder_id)}: {where}", style="bold")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("", overflow="fold")
    for heading in ("claimed", "recomputed", "difference", "tolerance"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for difference in verification.differences:
        table.add_row(*map(Text, _cells(difference)))
    if verification.differences:
        console.print(table)
    else:
        console.print(title)
    for problem in verification.problems:
        console.print(Text(clean(problem)))
    if verification.verified and verification.recomputed is not None:
        interval = verification.interval
        ends = "" if interval is None else f", 95 % interval {number(interval[0], 4)}…{number(interval[1], 4)}"
        console.print(Text(f"verified: {number(verification.recomputed.score, 6)}{ends}", style="bold green"))
    else:
        console.print(Text("not verified", style="bold red"))
    console.print()


def _cells(difference: Difference) -> tuple[str, ...]:
    claimed, recomputed = difference.claimed, difference.recomputed
    apart = "-" if claimed is None or recomputed is None else f"{abs(claimed - recomputed):.1e}"
    tolerance = "-" if difference.tolerance is None else f"{difference.tolerance:.1e}"
    verdict = "" if difference.holds else "differs"
    return difference.name, number(claimed, 6), number(recomputed, 6), apart, tolerance, verdict
