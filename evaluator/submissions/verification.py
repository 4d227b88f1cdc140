"""Verified means recomputed: a result's scores are computed again from what a model gave, and compared with its claim.

That embeddings and answers are those of the model that is named, and not made up, say from the labels that they are
scored with, cannot be seen in them: it stays the word of whoever submits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from audio_compositionality.encoders.inference import resolve_device
from audio_compositionality.evaluator.results.result import Result, SampleTable, load_result
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.base import Outputs

from .copies import Sketch, sketch_of_submission
from .differences import Difference, differences_of, sample_differences, sample_problem
from .making import rescored
from .stored import stored_outputs
from .submission import (
    Submission,
    claim_problem,
    open_result_task,
    outputs_problem,
    policy_problem,
    read_submission,
    submitted_outputs,
)
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
        sketch: what the embeddings or answers are recognised by; None of a local result, and where nothing was
            computed.
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
    """Recompute the result of a submission from its embeddings or answers.

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
    problem = policy_problem(result, opened) or claim_problem(submission, opened) or outputs_problem(submission, opened)
    outputs = None if problem is not None else submitted_outputs(submission, opened)
    if outputs is None:
        lacking = f"it has no {'answers' if opened.prompts else 'embeddings'}"
        return Verification(submission.id, result, digests, problems=(problem or lacking,))
    verification = _compared(
        Verification(submission.id, result, digests), submission.samples, opened, outputs, device, progress
    )
    if verification.samples is None:
        return verification
    return replace(verification, sketch=sketch_of_submission(submission, verification.samples, opened))


def verify_local(
    path: Path,
    *,
    data: str | Path | None = None,
    store: str | Path | None = None,
    device: str | None = None,
    progress: bool = False,
) -> Verification:
    """Recompute a local result from the stored embeddings or answers.

    Args:
        path: JSON file of the result.
        data: see `verify_folder`.
        store: root of all stores; default `store_root`.
        device, progress: see `verify_folder`.

    Raises:
        ResultError: it is no result, its data are not known, or what the model gave is not in the store.
        StoreError: what is stored is damaged.
        AudioCompositionalityError: see `verify_folder`.
    """
    result, samples = load_result(path)
    opened = open_result_task(result, data)
    problem = policy_problem(result, opened)
    if problem is not None:
        return Verification(None, result, {}, problems=(problem,))
    outputs = stored_outputs(result, opened, store)
    return _compared(Verification(None, result, {}), samples, opened, outputs, device, progress)


def _compared(
    claim: Verification,
    samples: SampleTable,
    opened: OpenedTask,
    outputs: Outputs,
    device: str | None,
    progress: bool,
) -> Verification:
    """A claim with what was computed from what the model gave, and how far the two are apart."""
    result, info = claim.result, opened.task.info
    fit_device = str(resolve_device(device))
    try:
        recomputed, table = rescored(result, opened, outputs, fit_device, progress)
    except (FloatingPointError, ValueError) as error:
        return _with_problem(
            claim, f"its {'answers' if opened.prompts else 'embeddings'} cannot be scored: {shortened(str(error), 300)}"
        )
    problem = sample_problem(samples, table)
    if problem is not None:
        return _with_problem(claim, problem)
    differences = (*differences_of(info, result, recomputed), *sample_differences(info, samples, table))
    problems = tuple(str(difference) for difference in differences if not difference.holds)
    return Verification(claim.id, result, claim.digests, recomputed, table, differences, problems)


def _with_problem(claim: Verification, problem: str) -> Verification:
    return Verification(claim.id, claim.result, claim.digests, problems=(problem,))
