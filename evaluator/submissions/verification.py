"""Verified means recomputed: a result's scores are computed again from its embeddings, and compared with its claim.

That the embeddings are those of the encoder that is named, and not made up, say from the labels that they are scored
with, cannot be seen in them: it stays the word of whoever submits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import stats

from .parquet_reader import ParquetReader, clean
from .record import Difference
from audio_compositionality.evaluator.results.result import STEP_COLUMNS, Result, load_result, samples_table
from audio_compositionality.evaluator.compare.statistics import Interval, mean_intervals
from .submission import (SEEDS, Submission, clip_ids, device_text, fit_device_of, open_data, policy_problem, read_submission, stored_embeddings)
from .submission_files import digests_of
from audio_compositionality.tasks.scoring import Task, open_task, score_result

TOLERANCE = 1e-6
"""Of whatever is computed without a fit: other libraries and processors add in another order, which changes cosines by
about 1e-12; what is claimed is of the same rounded embeddings."""

LEAST_FIT_TOLERANCE = 1e-3
"""Of the score of fits, however little theirs spread: so far fits on other devices and versions may differ."""

FIT_CONFIDENCE = 0.99
"""Two means of k fits each differ by more than the tolerance in 1 % of the cases; see `_fit_tolerance`."""

_WITHOUT_FIT = frozenset(
    ("constant", "ridge_r2", "ridge_r2_null", "ridge_centred", "ridge_centred_null", "top1_chance", "mrr_chance")
)
"""Controls of A-TRE that no fit is behind."""


@dataclass(frozen=True)
class Verification:
    """What recomputing a result found.

    Attributes:
        id: of the submission; None of a local result.
        result: what is claimed.
        digests: SHA-256 of the submission's files, by their names; empty of a local result.
        recomputed: the result that was computed; None where it could not be. What it says of encoder, options and date
            is the claim's.
        samples: its samples, as `load_result` returns them; None likewise.
        differences: the numbers of both.
        problems: why the claim does not hold, in words; empty where it does.
        interval: 95 % interval of the recomputed score, BCa by clusters, see `mean_intervals`; None where there are too
            few clusters, or nothing was computed.
    """

    id: str | None
    result: Result
    digests: Mapping[str, str]
    recomputed: Result | None
    samples: pa.Table | None
    differences: tuple[Difference, ...]
    problems: tuple[str, ...]
    interval: Interval | None

    @property
    def task(self) -> str:
        """``a_coat`` or ``a_tre``."""
        return self.result.task

    @property
    def verified(self) -> bool:
        """Whether the claim holds."""
        return self.recomputed is not None and not self.problems


def verify_submission(
    folder: Path,
    *,
    name: str | None = None,
    data: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
    reader: ParquetReader | None = None,
) -> Verification:
    """Recompute the result of a submission from its embeddings.

    Args:
        folder: of the submission.
        name: path of the folder in the repository, which has to be that of its content.
        data: the data, a folder or Hub id, where they are no preset's.
        device: torch device of A-TRE's fits.
        progress: show bars of the fits.
        reader: of Parquet files; default, one for this call.

    Raises:
        ResultError: it is no valid submission, or its data are not known.
        DatasetError: the data cannot be opened.
        ValueError: an unknown device.
    """
    submission = read_submission(folder, name, reader)
    return verify(submission, data=data, device=device, progress=progress)


def verify(
    submission: Submission, *, data: str | Path | None = None, device: str | None = None, progress: bool = False
) -> Verification:
    """`verify_submission` of one that was read already."""
    task = _open_task(submission.result, data)
    problem = policy_problem(submission.result, task) or _problem_of_embeddings(submission, task)
    digests = digests_of(submission.files)
    if problem is not None or submission.embeddings is None:
        return _refused(submission.id, submission.result, digests, problem or "it has no embeddings")
    return _compared(
        submission.id,
        (submission.result, submission.samples),
        digests,
        task,
        submission.embeddings.restored(),
        fit_device_of(device),
        progress,
    )


def verify_local(
    path: Path,
    *,
    data: str | Path | None = None,
    embeddings: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute a local result from the stored embeddings.

    Args:
        path: JSON file of the result.
        data: see `verify_submission`.
        embeddings: root of the store; default `embedding_root`.
        device, progress: see `verify_submission`.

    Raises:
        ResultError: it is no result, its data are not known, or its embeddings are not in the store.
        StoreError: stored embeddings are damaged.
        DatasetError: the data cannot be opened.
        ValueError: an unknown device.
    """
    result, samples = load_result(path)
    task = _open_task(result, data)
    problem = policy_problem(result, task)
    if problem is not None:
        return _refused(None, result, {}, problem)
    exact = stored_embeddings(result, clip_ids(task), embeddings)
    return _compared(None, (result, samples), {}, task, exact, fit_device_of(device), progress)


def _open_task(result: Result, data: str | Path | None) -> Task:
    return open_task(result.task, open_data(result.fingerprint, data), SEEDS)


def _refused(id: str | None, result: Result, digests: Mapping[str, str], problem: str) -> Verification:
    return Verification(id, result, digests, None, None, (), (problem,), None)


def _problem_of_embeddings(submission: Submission, task: Task) -> str | None:
    """Why embeddings are not those of the clips of a task; None where they are, or there are none."""
    if submission.embeddings is None:
        return None
    found, wanted = submission.embeddings.ids, clip_ids(task)
    if len(found) != len(wanted):
        return f"it has embeddings of {len(found):,} clips, the data have {len(wanted):,}"
    other = next((place for place in range(len(wanted)) if found[place] != wanted[place]), None)
    if other is not None:
        return f"its embedding {other} is of the clip {clean(ascii(found[other]))}, where the data have {wanted[other]}"
    return None


def _compared(
    id: str | None,
    claim: tuple[Result, pa.Table],
    digests: Mapping[str, str],
    task: Task,
    embeddings: NDArray[np.floating],
    fit_device: str,
    progress: bool,
) -> Verification:
    from audio_compositionality.evaluator.run.evaluation import library_versions
    from audio_compositionality.tasks.samples import describe_samples

    result, samples = claim
    if samples["id"].to_pylist() != task.sample_ids:
        return _refused(id, result, digests, "its samples are not those of the data, in their order")
    started = time.perf_counter()
    try:
        scored = score_result(task, embeddings, fit_device, progress)
    except (FloatingPointError, ValueError) as error:
        return _refused(id, result, digests, f"its embeddings cannot be scored: {clean(error)}")
    # The rest is what the claim says of the encoder.
    recomputed = replace(
        result,
        **scored.fields,
        device=device_text(result, fit_device),
        versions=library_versions(),
        seconds={"score": time.perf_counter() - started},
    )
    table = samples_table(recomputed, task.sample_ids, scored.columns)
    differences = (*_differences(result, recomputed), *_sample_differences(result, samples, table))
    problems = [_told(difference) for difference in differences if not difference.holds]
    if set(result.controls) != set(recomputed.controls):
        problems.append("its controls are not those that its task has")
    clusters = describe_samples(task.name, task.rows).clusters
    interval = mean_intervals(scored.columns["score"][:, None], clusters)[0]
    return Verification(id, result, digests, recomputed, table, differences, tuple(problems), interval)


def _told(difference: Difference) -> str:
    claimed, recomputed = ("none" if x is None else f"{x:.9g}" for x in (difference.claimed, difference.recomputed))
    return f"{difference.name} is {claimed} in the claim and {recomputed} recomputed"


def _differences(claimed: Result, recomputed: Result) -> Iterator[Difference]:
    """Of the scores and the controls."""
    fitted = recomputed.task == "a_tre"
    score_tolerance = _fit_tolerance(recomputed, "seed_std") if fitted else TOLERANCE
    yield Difference("score", claimed.score, recomputed.score, score_tolerance)
    yield Difference("std", claimed.std, recomputed.std, None if fitted else TOLERANCE)
    for place, end in enumerate(("lower", "upper")):
        theirs, own = (None if one.interval is None else one.interval[place] for one in (claimed, recomputed))
        yield Difference(f"{end} end of the interval", theirs, own, None if fitted else TOLERANCE)
    for name, value in recomputed.controls.items():
        tolerance: float | None = TOLERANCE
        if fitted and name == "a_tre_centred":
            tolerance = _fit_tolerance(recomputed, "a_tre_centred_seed_std")
        elif fitted and name not in _WITHOUT_FIT:
            tolerance = None
        theirs, own = (None if x is None else float(x) for x in (claimed.controls.get(name), value))
        yield Difference(name, theirs, own, tolerance)


def _fit_tolerance(recomputed: Result, spread: str) -> float:
    """How far means of k fits may be apart, from the standard deviation s of the k that were computed here.

    The difference of two means of k has the standard deviation s sqrt(2 / k), estimated with k - 1 degrees of freedom.
    The claim's own spread is no part of it: it may be any number.
    """
    count = len(recomputed.settings["seeds"])
    seed_std = float(recomputed.controls[spread] or 0.0)
    quantile = float(stats.t.ppf((1 + FIT_CONFIDENCE) / 2, count - 1))
    return max(LEAST_FIT_TOLERANCE, quantile * seed_std * math.sqrt(2 / count))


def _sample_differences(result: Result, claimed: pa.Table, recomputed: pa.Table) -> Iterator[Difference]:
    """Of each column of samples the one that is farthest off.

    Those of A-TRE are only told: where an embedding has nothing to be learnt, other fits score other scenes high. So
    are the steps on their principal axes, which may be any where the variances along them nearly coincide.
    """
    for name in recomputed.column_names[1:]:
        if name not in claimed.column_names:
            continue
        theirs, own = (table[name].to_numpy() for table in (claimed, recomputed))
        worst = int(np.argmax(np.abs(theirs - own)))
        tolerance = None if result.task == "a_tre" or name in STEP_COLUMNS else TOLERANCE
        yield Difference(
            f"{name} of {recomputed['id'][worst].as_py()}", float(theirs[worst]), float(own[worst]), tolerance
        )
