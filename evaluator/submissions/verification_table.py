"""What `verify` shows: which results there are in what was named, and what recomputing them gave, as tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from audio_compositionality.evaluator.results.result import is_result_file
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import number_text, plain, shortened
from audio_compositionality.tasks.registry import list_tasks, load_task

from .differences import Difference
from .record import check, read_verification, secret_from_environment
from .submission import read_submission
from .submission_files import RESULT, VERIFICATION, parse_path
from .verification import Verification, verify_folder, verify_local

LEGEND = """\
verified: recomputed from these embeddings or answers, and equal to the claim within the tolerance. Tolerance: 1e-6
where nothing is fitted, a tenth of the width for the ends of intervals; of fitted scores the spread of the fits, which
1 % of honest claims exceed; – of a number that follows the randomness of the fits, or that no measure names, and is
only told. Of each column of samples the one farthest off is shown. That embeddings and answers are those of the model
that is named cannot be seen in them.""".replace("\n", " ")

_COLUMNS = (
    Column("number", numeric=False),
    Column("claimed", "what the result says", digits=6),
    Column("recomputed", "what was computed from what the model gave", digits=6),
    Column("difference", "how far the two are apart"),
    Column("tolerance", "how far they may be; – of what is only told"),
    Column("verdict", "whether it holds", numeric=False),
)


@dataclass(frozen=True)
class Outcome:
    """What verifying one result gave.

    Attributes:
        path: folder of a submission or of a record, or JSON file of a local result.
        table: claimed and recomputed numbers; None where it could not be read.
        verified: whether the claim holds.
        error: why it could not be read; None where it could.
    """

    path: Path
    table: Table | None = None
    verified: bool = False
    error: str | None = None


def find_results(path: Path) -> list[Path]:
    """Folders of submissions and of records, and JSON files of local results, at a path or below it.

    Raises:
        ResultError: there are none.
    """
    if path.name in (RESULT, VERIFICATION) and path.is_file():
        return [path.parent]
    if path.is_file():
        return [path]
    tasks = [task.info.name for task in list_tasks()]
    results = []
    for folder, _, names in os.walk(path):
        if RESULT in names or VERIFICATION in names:
            results.append(Path(folder))
        results += [Path(folder) / name for name in names if is_result_file(Path(name), tasks)]
    if not results:
        raise ResultError(
            f"{path} holds no results: give the folder of a submission, its {RESULT}, or a file "
            f"{' or '.join(f'{name}.json' for name in tasks)} that `evaluate` has written"
        )
    return sorted(results)


def name_in_repository(folder: Path) -> str | None:
    """The path in the results repository that a folder's own path ends in; None where it ends in none."""
    name = "/".join(folder.absolute().parts[-4:])
    return name if parse_path(name) is not None else None


def verify_paths(
    paths: Sequence[Path],
    *,
    data: str | Path | None = None,
    store: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Iterator[Outcome]:
    """Verify results one after the other. One that cannot be read is told and keeps no other from being verified.

    Args:
        paths: see `find_results`.
        data, store, device, progress: see `verify_local`.

    Raises:
        ResultError: a path holds no results.
        InputError: the secret in the environment is too short.
    """
    secret = secret_from_environment()
    results = [result for path in paths for result in find_results(path)]
    for path in dict.fromkeys(results):
        where = shortened(str(path), 300)
        try:
            if (path / VERIFICATION).exists():
                yield Outcome(path, _record_table(path, secret, where), True)
                continue
            if path.is_dir():
                name = name_in_repository(path)
                verification = verify_folder(path, name=name, data=data, device=device, progress=progress)
            else:
                verification = verify_local(path, data=data, store=store, device=device, progress=progress)
        except (OSError, AudioCompositionalityError) as error:
            yield Outcome(path, error=f"{where}: {shortened(str(error).removeprefix(f'{path}: '), 600)}")
            continue
        yield Outcome(path, verification_table(verification, where), verification.verified)


def verification_table(verification: Verification, where: str) -> Table:
    """The claimed and the recomputed numbers, and the verdict below them."""
    result = verification.result
    legend = [plain(problem) for problem in verification.problems]
    if verification.verified and verification.recomputed is not None:
        info = load_task(result.task).info
        value = verification.recomputed.measures[info.ranks_by]
        interval = verification.recomputed.intervals.get(info.ranks_by)
        number = number_text(None if value is None else float(value), 6)
        ends = "" if interval is None else f", 95 % interval {interval[0]:.4f} to {interval[1]:.4f}"
        legend.append(f"verified: {info.measure(info.ranks_by).heading} {number}{ends}")
    else:
        legend.append("not verified")
    rows = tuple(Row(_cells(difference)) for difference in verification.differences)
    return Table(_caption(result.task, result.model.id, where), _COLUMNS, rows, tuple(legend))


def _caption(task: str, model: str, where: str) -> str:
    return f"{load_task(task).info.title} of {shortened(model, 150)}: {where}"


def _cells(difference: Difference) -> tuple[Cell, ...]:
    claimed, recomputed, tolerance = difference.claimed, difference.recomputed, difference.tolerance
    apart = None if claimed is None or recomputed is None else abs(claimed - recomputed)
    verdict = "only told" if tolerance is None else "holds" if difference.holds else "differs"
    small = (Cell(x, None if x is None else f"{x:.1e}") for x in (apart, tolerance))
    numbers = (Cell(x, _count(x, claimed, recomputed)) for x in (claimed, recomputed))
    return Cell(difference.name), *numbers, *small, Cell(verdict)


def _count(value: float | None, *both: float | None) -> str | None:
    """How a whole number is shown where both are; None of any other, which has the column's digits."""
    whole = value is not None and all(x is not None and x == round(x) for x in both)
    return number_text(value, 0) if whole else None


def _record_table(folder: Path, secret: str | None, where: str) -> Table:
    """What a record says, compared with its submission.

    Raises:
        ResultError: there is no submission that it belongs to, or it contradicts it, or somebody else signed it.
    """
    name = name_in_repository(folder)
    if name is None:
        raise ResultError("it is a record outside a results repository: its submission cannot be found")
    submitted = name.replace("verified/", "results/", 1)
    try:
        submission = read_submission(folder.absolute().parents[3] / submitted, submitted)
    except ResultError as error:
        raise ResultError(f"its submission {submitted} cannot be used: {error}") from None
    entry = read_verification(folder, submission, name)
    checked = check(entry.record, secret)
    caption = f"Record of {_caption(entry.result.task, entry.result.model.id, where)}"
    columns = (Column("record", numeric=False), Column("content", numeric=False))
    facts = {
        "date": entry.record.date,
        "submitter": entry.record.submitter or "–",
        "signature": "the checker's" if checked else "not checked: that takes the checker's secret",
    }
    rows = tuple(Row((Cell(name), Cell(value))) for name, value in facts.items())
    verdict = "signed by the checker" if checked else "signature not checked"
    return Table(caption, columns, rows, (f"consistent with its submission; {verdict}",))
