"""Verified means recomputed: a result's scores are computed again from a model's outputs, and compared with its claim.

It proves that these embeddings or answers give these scores. It does not show who produced them: the named model,
another one, or somebody who made them up from the labels. Only the submitter states that.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from audio_compositionality.encoders.inference import device_name
from audio_compositionality.evaluator.results.result import Result, SampleTable, is_result_file, load_result
from audio_compositionality.evaluator.results.strict import ResultError, validated
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import number_text, plain, shortened
from audio_compositionality.tasks.base import Outputs
from audio_compositionality.tasks.registry import list_tasks, load_task

from .differences import Difference, differences_of, sample_differences, sample_problem
from .layout import FILES, RESULT, SAMPLES, VERIFICATION, folder_of, parse_path, read_files, sha256_by_name
from .making import rescored, stored_outputs
from .record import RECORD_SCHEMA_VERSION, VerificationRecord, check, parse_verification, secret_from_environment, sign
from .submission import (
    Submission,
    open_result_task,
    policy_problem,
    read_submission,
    submission_problem,
    submitted_outputs,
)


@dataclass(frozen=True)
class Verification:
    """The outcome of recomputing a result. Plain data: it can be sent from one process to another.

    Attributes:
        id: of the submission; None for a local result.
        result: the claim.
        digests: SHA-256 of the submission's files, by their names; empty for a local result.
        recomputed: the recomputed result; None where this failed. Its statements about model, data and date are
            the claim's.
        samples: its samples; None without a recomputed result.
        differences: the numbers of both.
        problems: why the claim does not hold, in words; empty where it does.
    """

    id: str | None
    result: Result
    digests: Mapping[str, str]
    recomputed: Result | None = None
    samples: SampleTable | None = None
    differences: tuple[Difference, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether the claim holds."""
        return self.recomputed is not None and not self.problems


def verify_folder(
    folder: Path,
    *,
    name: str | None = None,
    data: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute the result of a submission from its embeddings or answers.

    Arguments, result and errors can be sent to another process, so that a check can have a time limit.

    Args:
        folder: of the submission.
        name: path of the folder in the repository, which has to match its content.
        data: the data, a folder or Hub id, where they are no preset's.
        device: torch device of fits.
        progress: show progress bars of fits.

    Raises:
        ResultError: it is no valid submission, or its data are unknown.
        AudioCompositionalityError: the data cannot be opened, or an unknown task or device.
    """
    return verify(read_submission(folder, name), data=data, device=device, progress=progress)


def verify(
    submission: Submission, *, data: str | Path | None = None, device: str | None = None, progress: bool = False
) -> Verification:
    """`verify_folder` for a submission in memory."""
    result, digests = submission.result, sha256_by_name(submission.files)
    opened = open_result_task(result, data)
    problem = submission_problem(submission, opened)
    outputs = None if problem is not None else submitted_outputs(submission, opened)
    if outputs is None:
        lacking = f"it has no {'answers' if opened.prompts else 'embeddings'}"
        return Verification(submission.id, result, digests, problems=(problem or lacking,))
    claim = Verification(submission.id, result, digests)
    return _compared(claim, submission.samples, opened, outputs, device, progress)


def verify_local(
    path: Path,
    *,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute a local result from the stored embeddings or answers.

    Args:
        path: JSON file of the result.
        data: see `verify_folder`.
        cache: folder of cached embeddings and answers; default `cached_outputs_folder`.
        device, progress: see `verify_folder`.

    Raises:
        ResultError: it is not a result, its data are unknown, or the model's outputs are not in the cache.
        CacheError: stored outputs are damaged.
        AudioCompositionalityError: see `verify_folder`.
    """
    result, samples = load_result(path)
    opened = open_result_task(result, data)
    problem = policy_problem(result, opened)
    if problem is not None:
        return Verification(None, result, {}, problems=(problem,))
    outputs = stored_outputs(result, opened, cache)
    return _compared(Verification(None, result, {}), samples, opened, outputs, device, progress)


def _compared(
    claim: Verification,
    samples: SampleTable,
    opened: OpenedTask,
    outputs: Outputs,
    device: str | None,
    progress: bool,
) -> Verification:
    """A claim with its recomputation from the model's outputs, and the differences between the two."""
    result, info = claim.result, opened.task.info
    fit_device, given = device_name(device), "answers" if opened.prompts else "embeddings"
    try:
        recomputed, table = rescored(result, opened, outputs, fit_device, progress)
    except (FloatingPointError, ValueError) as error:
        return replace(claim, problems=(f"its {given} cannot be scored: {shortened(str(error), 300)}",))
    problem = sample_problem(samples, table)
    if problem is not None:
        return replace(claim, problems=(problem,))
    differences = (*differences_of(info, result, recomputed), *sample_differences(info, samples, table))
    problems = tuple(str(difference) for difference in differences if not difference.holds)
    return replace(claim, recomputed=recomputed, samples=table, differences=differences, problems=problems)


# ----- The files that the checker writes


def verification_files(
    verification: Verification,
    *,
    secret: str | None = None,
    submitter: str | None = None,
    date: datetime | None = None,
    reproduces: str | None = None,
) -> dict[str, bytes]:
    """The files of a verified submission, for `verification_folder`, by their names.

    Args:
        verification: of a submission.
        secret: for signing the record; without one it is unsigned, and no board shows it.
        submitter: the submitter's name on the Hub, where known.
        date: of the check; by default now.
        reproduces: folder of the entry that this one reproduces.

    Raises:
        InputError: nothing was verified, or no submission.
    """
    from audio_compositionality.evaluator.run.evaluate import library_versions

    recomputed, samples = verification.recomputed, verification.samples
    if not verification.verified or recomputed is None or samples is None or not verification.id:
        raise InputError("only a verified submission has a record")
    files = {RESULT: recomputed.dumps().encode(), SAMPLES: samples.dumps().encode()}
    values = {
        "schema_version": RECORD_SCHEMA_VERSION,
        "id": verification.id,
        "submission": dict(verification.digests),
        "files": sha256_by_name(files),
        "versions": library_versions(),
        "date": (date or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
        "submitter": submitter,
        "reproduces": reproduces,
        "signature": None,
    }
    record = validated(VerificationRecord, values)
    return {VERIFICATION: (sign(record, secret) if secret else record).dumps().encode(), **files}


def verification_folder(verification: Verification) -> str:
    """Path of the folder of a verified submission in the repository."""
    if verification.id is None:
        raise InputError("a local result has no place in the repository")
    return folder_of(verification.result, verification.id, "verified")


# ----- Results at a path, and the tables of their verification


LEGEND = """\
verified: recomputed from these embeddings or answers, and equal to the claim within the tolerance. Tolerance: 1e-6
where nothing is fitted; a tenth of the width for the ends of intervals; for fitted scores a bound from the spread of
the fits, which 1 % of honest claims exceed; – for numbers that vary with the fits or that no measure names: these are
only reported. Of each column of samples, the largest difference is shown. Whether embeddings and answers come from the
named model cannot be seen in them.""".replace("\n", " ")

_COLUMNS = (
    Column("number", numeric=False),
    Column("claimed", "in the result", digits=6),
    Column("recomputed", "from the model's outputs", digits=6),
    Column("difference", "absolute difference of the two"),
    Column("tolerance", "largest difference allowed; – for a number that is only reported"),
    Column("verdict", "whether the claim holds", numeric=False),
)


@dataclass(frozen=True)
class PathOutcome:
    """The outcome of verifying one result.

    Attributes:
        path: folder of a submission or of a record, or JSON file of a local result.
        line: the outcome in one line; empty where it is unreadable.
        table: claimed and recomputed numbers; None where it is unreadable.
        verified: whether the claim holds.
        error: why it is unreadable; None where it is not.
    """

    path: Path
    line: str = ""
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
    """The path in the results repository at the end of a folder's own path; None if there is none."""
    name = "/".join(folder.absolute().parts[-4:])
    return name if parse_path(name) is not None else None


def verify_paths(
    paths: Sequence[Path],
    *,
    data: str | Path | None = None,
    cache: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Iterator[PathOutcome]:
    """Verify results one after the other. An unreadable one is reported and does not stop the others.

    Args:
        paths: see `find_results`.
        data, cache, device, progress: see `verify_local`.

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
                table = _record_table(path, secret, where)
                yield PathOutcome(path, f"{table.caption}: {table.legend[-1]}", table, True)
                continue
            if path.is_dir():
                name = name_in_repository(path)
                verification = verify_folder(path, name=name, data=data, device=device, progress=progress)
            else:
                verification = verify_local(path, data=data, cache=cache, device=device, progress=progress)
        except (OSError, AudioCompositionalityError) as error:
            yield PathOutcome(path, error=f"{where}: {shortened(str(error).removeprefix(f'{path}: '), 600)}")
            continue
        yield _outcome(path, where, verification)


def _outcome(path: Path, where: str, verification: Verification) -> PathOutcome:
    """The claimed and the recomputed numbers, with the verdict as a legend; and in one line the score that the task
    ranks by, or the first reason why the claim does not hold."""
    result, recomputed = verification.result, verification.recomputed
    rows = []
    for difference in verification.differences:
        claimed, value, tolerance = difference.claimed, difference.recomputed, difference.tolerance
        apart = None if claimed is None or value is None else abs(claimed - value)
        # Two whole numbers are shown as such; others have the digits of the column.
        is_whole = all(number is not None and number == round(number) for number in (claimed, value))
        cells = (
            Cell(difference.name),
            *(Cell(number, number_text(number, 0) if is_whole else None) for number in (claimed, value)),
            *(Cell(number, None if number is None else f"{number:.1e}") for number in (apart, tolerance)),
            Cell("only reported" if tolerance is None else "holds" if difference.holds else "differs"),
        )
        rows.append(Row(cells))
    info = load_task(result.task).info
    name = f"{info.title} of {plain(shortened(result.model.id, 150))}"
    problems = [plain(problem) for problem in verification.problems]
    if recomputed is not None and not problems:
        score, heading = recomputed.measures[info.ranks_by], info.measure(info.ranks_by).heading
        number = number_text(None if score is None else float(score), 6)
        said = f"{heading} {number}{interval_phrase(recomputed.intervals.get(info.ranks_by))}"
        line = f"verified: {name}, {said}, {len(rows)} numbers recomputed ({where})"
        legend: tuple[str, ...] = (f"verified: {said}",)
    else:
        first, *more = problems or ["nothing could be recomputed"]
        further = f", and {len(more)} more" if more else ""
        line, legend = f"not verified: {name} ({where}): {first}{further}", (*problems, "not verified")
    table = Table(_caption(result, where), _COLUMNS, tuple(rows), legend)
    return PathOutcome(path, line, table, verification.verified)


def interval_phrase(interval: tuple[float, float] | None) -> str:
    """An interval after a number in a sentence; empty if there is none."""
    return "" if interval is None else f", 95 % interval {interval[0]:.4f} to {interval[1]:.4f}"


def _caption(result: Result, where: str) -> str:
    return f"{load_task(result.task).info.title} of {shortened(result.model.id, 150)}: {where}"


def _record_table(folder: Path, secret: str | None, where: str) -> Table:
    """A record's numbers, compared with its submission.

    Raises:
        ResultError: its submission is missing, the two contradict each other, or the signature is another's.
    """
    name = name_in_repository(folder)
    if name is None:
        raise ResultError("it is a record outside a results repository: its submission cannot be found")
    submitted = name.replace("verified/", "results/", 1)
    try:
        submission = read_submission(folder.absolute().parents[3] / submitted, submitted)
    except ResultError as error:
        raise ResultError(f"its submission {submitted} cannot be used: {error}") from None
    entry = parse_verification(read_files(folder, FILES["verified"]), name, submission)
    checked = check(entry.record, secret)
    caption = f"Record of {_caption(entry.result, where)}"
    columns = (Column("record", numeric=False), Column("content", numeric=False))
    facts = {
        "date": entry.record.date,
        "submitter": entry.record.submitter or "–",
        "signature": "the checker's" if checked else "not checked: that takes the checker's secret",
    }
    rows = tuple(Row((Cell(name), Cell(value))) for name, value in facts.items())
    verdict = "signed by the checker" if checked else "signature not checked"
    return Table(caption, columns, rows, (f"consistent with its submission; {verdict}",))
