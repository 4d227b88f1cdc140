"""The CORAL check as a table."""

from __future__ import annotations

from collections.abc import Sequence

from audio_compositionality.evaluator.compare.tables import interval_text
from audio_compositionality.support.table import MISSING, Cell, Column, Row, Table
from audio_compositionality.support.text import shown

from .coral import Change, CoralCheck, CoralTask

_COLUMNS = (
    Column("task", numeric=False),
    Column("measure", numeric=False),
    Column("before", "with the embeddings as they are"),
    Column("after", "with the embeddings adapted to the recordings"),
    Column("difference", "after - before", digits=4),
    Column("95 % interval", "of the mean difference, paired over samples, BCa bootstrap over clusters of samples"),
    Column("n", "samples", digits=None),
    Column("clips", "synthetic clips that the adaptation was learnt from", digits=None),
)

_LEGEND = (
    "before, after: adaptation of the synthetic embeddings to the mean and covariance of the recordings'. A difference "
    "near 0 speaks against an artefact of the synthetic clips' mean and covariance; nothing here says that natural "
    "sound would score the same.",
    f"95 % interval: of the mean difference, paired over n samples, BCa bootstrap; {MISSING} of a measure that is no "
    "mean over samples, and below 10 samples that are independent. The recordings are taken as given. What a task fits "
    "is fitted anew after the adaptation, and the noise of the fits is not in the interval.",
    "distance: of the covariances of the clips that the adaptation was learnt from and of the recordings, 0 where they "
    "are the same, 1 where they have no direction in common.",
)


def coral_table(check: CoralCheck) -> Table:
    """What adaptation to natural recordings changes, a row a measure, and below it what it means."""
    clips = f"{check.clips:,} clips of {check.files:,} recordings in {check.recordings}"
    legend = list(_LEGEND)
    if check.skipped:
        names = shown([item["id"] for item in check.skipped], 3)
        legend.append(f"Left out, since they cannot be read or embedded: {names}.")
    return Table(
        f"CORAL: {check.model.id} on {check.dataset}, adapted to {clips}",
        _COLUMNS,
        tuple(row for task in check.tasks for row in _rows(task)),
        tuple(legend),
    )


def _rows(task: CoralTask) -> Sequence[Row]:
    changes = {task.info.measure(name).heading: change for name, change in task.changes.items()}
    title = task.info.title
    return [_row(title, heading, change, task) for heading, change in {**changes, "distance": task.distance}.items()]


def _row(title: str, heading: str, change: Change, task: CoralTask) -> Row:
    interval = interval_text(change.interval, 4)
    return Row(
        (
            Cell(title),
            Cell(heading),
            Cell(change.before),
            Cell(change.after),
            Cell(change.difference),
            Cell(interval or None),
            Cell(task.n),
            Cell(task.clips),
        )
    )
