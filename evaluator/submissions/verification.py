"""Verified means recomputed: a result's scores are computed again from its embeddings, and compared with its claim.

That the embeddings are those of the model that is named, and not made up, say from the labels that they are scored
with, cannot be seen in them: it stays the word of whoever submits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.evaluator.results.result import Result, SampleTable, load_result
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.support.text import shortened

from .copies import Sketch, sketch_of
from .differences import Difference, differences_of, sample_differences, sample_problem
from .making import rescored, stored_embeddings
from .rounded import clips_digest
from .submission import Submission, claim_problem, open_result_task, outputs_problem, policy_problem, read_submission
from .submission_files import digests_of


@dataclass(frozen=True)
class Verification:
    """What recomputing a result gave. Plain data: it can be sent from one process to another.

    Attributes:
        id: of the submission; None of a local result.
        result: what is claimed.
        digests: SHA-256 of the submission's files, by their names; empty of a local result.
        recomputed: the result that was computed; None where it could not be. What it says of model, data and date is
            the claim's.
        samples: its samples; None likewise.
        differences: the numbers of both.
        problems: why the claim does not hold, in words; empty where it does.
        sketch: what the embeddings are recognised by; None of a local result, and where nothing was computed.
    """

    id: str | None
    result: Result
    digests: Mapping[str, str]
    recomputed: Result | None = None
    samples: SampleTable | None = None
    differences: tuple[Difference, ...] = ()
    problems: tuple[str, ...] = ()
    sketch: Sketch | None = None

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
    """Recompute the result of a submission from its embeddings.

    Arguments, result and errors can be sent to another process, so that a check can have a limit of time.

    Args:
        folder: of the submission.
        name: path of the folder in the repository, which has to be that of its content.
        data: the data, a folder or Hub id, where they are no preset's.
        device: torch device of fits.
        progress: show bars of the fits.

    Raises:
        ResultError: it is no valid submission, or its data are not known.
        AudioCompositionalityError: the data cannot be opened, or an unknown task or device.
    """
    return verify(read_submission(folder, name), data=data, device=device, progress=progress)


def verify(
    submission: Submission, *, data: str | Path | None = None, device: str | None = None, progress: bool = False
) -> Verification:
    """`verify_folder` of a submission that was read already."""
    result, digests = submission.result, digests_of(submission.files)
    opened = open_result_task(result, data)
    problem = (
        policy_problem(result, opened)
        or claim_problem(submission, opened)
        or _problem_of_embeddings(submission, opened)
    )
    if problem is not None or submission.embeddings is None:
        return Verification(submission.id, result, digests, problems=(problem or "it has no embeddings",))
    claim = Verification(submission.id, result, digests, sketch=sketch_of(submission.embeddings))
    return _compared(claim, submission.samples, opened, submission.embeddings.restored(), device, progress)


def verify_local(
    path: Path,
    *,
    data: str | Path | None = None,
    store: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute a local result from the stored embeddings.

    Args:
        path: JSON file of the result.
        data: see `verify_folder`.
        store: root of the `EmbeddingStore`; default `store_root`.
        device, progress: see `verify_folder`.

    Raises:
        ResultError: it is no result, its data are not known, or its embeddings are not in the store.
        StoreError: stored embeddings are damaged.
        AudioCompositionalityError: see `verify_folder`.
    """
    result, samples = load_result(path)
    opened = open_result_task(result, data)
    problem = policy_problem(result, opened) or outputs_problem(opened)
    if problem is not None:
        return Verification(None, result, {}, problems=(problem,))
    exact = stored_embeddings(result, opened, store)
    return _compared(Verification(None, result, {}), samples, opened, exact, device, progress)


def _problem_of_embeddings(submission: Submission, opened: OpenedTask) -> str | None:
    """Why embeddings are not those of the clips and texts of a task; None where they are, or there are none."""
    problem = outputs_problem(opened)
    if problem is not None or submission.embeddings is None:
        return problem
    count, ids = len(submission.embeddings.values), opened.embedded_ids
    of_what = "clips and texts" if opened.texts else "clips"
    if count != len(ids):
        return f"it has embeddings of {count:,} {of_what}, the data have {len(ids):,}"
    texts = len(opened.unique_texts)
    if (submission.embeddings.clips, submission.embeddings.texts) != (clips_digest(ids), texts):
        return f"its embeddings are of other {of_what} than those of the data, or in another order"
    return None


def _compared(
    claim: Verification,
    samples: SampleTable,
    opened: OpenedTask,
    embeddings: NDArray[np.floating],
    device: str | None,
    progress: bool,
) -> Verification:
    """A claim with what was computed from embeddings [clips and texts of the task, dim], and how far the two are
    apart."""
    result, info = claim.result, opened.task.info
    fit_device = str(resolve_device(device))
    try:
        recomputed, table = rescored(result, opened, embeddings, fit_device, progress)
    except (FloatingPointError, ValueError) as error:
        return _with_problem(claim, f"its embeddings cannot be scored: {shortened(str(error), 300)}")
    problem = sample_problem(samples, table)
    if problem is not None:
        return _with_problem(claim, problem)
    differences = (*differences_of(info, result, recomputed), *sample_differences(info, samples, table))
    problems = tuple(str(difference) for difference in differences if not difference.holds)
    return Verification(claim.id, result, claim.digests, recomputed, table, differences, problems, claim.sketch)


def _with_problem(claim: Verification, problem: str) -> Verification:
    return Verification(claim.id, claim.result, claim.digests, problems=(problem,))
