"""When one of several sounds occurs: samples and scores of its interval, and a probe that finds it in frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.encoders.binned_frames import FRAME_BIN

from ..base import Floats, Outputs, PlainTask, Samples, Scores, TaskError, groups_of, scores_from

FEWEST_FOLDS = 3
"""Number of folds needed to train, to validate and to test."""

THRESHOLDS = np.linspace(0.05, 0.95, 19)
"""Thresholds subtracted from activities; one is chosen on validation clips."""


class MomentTask(PlainTask):
    """The task of one interval per row; see `Task`."""

    states_intervals = False  # texts, else numbers

    def stated(self, rows: Sequence[Row], outputs: Outputs) -> Any:
        """Return what the model states, texts or intervals [rows, 2]."""
        return list(outputs.answers)

    def score(
        self, rows: Sequence[Row], outputs: Outputs, settings: Mapping[str, Any], device: str, progress: bool
    ) -> Scores:
        """Score the intervals of all rows."""
        # Imported here, so that a task loads its metric only in the process that scores.
        from audio_compositionality.metrics.when import when

        columns = {name: [row[name] for row in rows] for name in ("onset", "offset", "duration")}
        spans = [[(event["onset"], event["offset"]) for event in row["events"]] for row in rows]
        said = self.stated(rows, outputs)
        values = when(said, **columns, spans=spans, parsed=self.states_intervals, return_scores=True)
        return scores_from(values, self.info, rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the rows; rows of a group have the same labels at the same times."""
        return Samples(
            rows=tuple(rows),
            clusters=groups_of(rows),
            clustered_by="the group: three clips of the same labels and times",
            groups={name: tuple(row[name] for row in rows) for name in ("label", "template")},
            contents=tuple(
                {
                    "audio": [
                        {
                            "sound": event["label"],
                            "from (s)": f"{event['onset']:.2f}",
                            "to (s)": f"{event['offset']:.2f}",
                            "asked": "yes" if event["label"] == row["label"] else "",
                        }
                        for event in row["events"]
                    ]
                }
                for row in rows
            ),
        )


class MomentFrameTask(MomentTask):
    """`MomentTask` for frames: a probe learns from other clips how each label sounds, and finds it."""

    states_intervals = True

    def settings(self, rows: Sequence[Row], requested: Mapping[str, Any]) -> dict[str, Any]:
        """Return no settings.

        Raises:
            TaskError: the clips have fewer than `FEWEST_FOLDS` folds.
        """
        folds = {row["fold"] for row in rows}
        if len(folds) < FEWEST_FOLDS:
            raise TaskError(
                f"{self.info.name} has clips of {len(folds)} folds; {FEWEST_FOLDS} are needed, to train, validate and "
                "test its probe"
            )
        return {}

    def stated(self, rows: Sequence[Row], outputs: Outputs) -> Any:
        """Return the intervals found by the probe, [rows, 2]."""
        bins = max(1, round(float(rows[0]["duration"]) / FRAME_BIN))
        return moments_in(outputs.clips.reshape(len(rows), bins, -1), rows)


def moments_in(frames: NDArray[np.floating], rows: Sequence[Row]) -> Floats:
    """Return the interval of each row's label in its clip, [rows, 2] in seconds, by a probe trained on other folds.

    Ridge regression predicts the activity of every label in a bin from the bin's frame; the interval is the run of bins
    with the largest sum of predicted activity of the label minus a threshold. Each fold is tested once; the penalty and
    the threshold are chosen on the next one.

    Args:
        frames: frames [rows, bins, dim].
        rows: with ``label``, ``events``, ``onset``, ``offset`` and ``fold``.
    """
    from audio_compositionality.metrics.probing import PENALTIES, Ridge
    from audio_compositionality.metrics.when import interval_overlaps

    count, bins, dim = frames.shape
    labels = sorted({event["label"] for row in rows for event in row["events"]})
    active = np.stack([moment_activities(row, labels, bins) for row in rows])
    asked = np.array([labels.index(row["label"]) for row in rows])
    truth = np.array([(row["onset"], row["offset"]) for row in rows])
    fold = groups_of(rows, "fold")
    result = np.empty((count, 2))
    folds = int(fold.max()) + 1

    def flat(values: NDArray[np.floating], places: NDArray[np.int64]) -> Floats:
        """Return the bins of some rows, one row of bins after the other."""
        return values[places].reshape(len(places) * bins, -1).astype(np.float64)

    for number in range(folds):
        tested, held = np.flatnonzero(fold == number), np.flatnonzero(fold == (number + 1) % folds)
        taught = np.setdiff1d(np.arange(count), np.concatenate([tested, held]))
        ridge = Ridge(flat(frames, taught), flat(active, taught), PENALTIES, dim)
        losses = ridge.losses(flat(frames, held), flat(active, held), [len(labels)])
        penalties = np.full(len(labels), PENALTIES[losses[:, 0].argmin()])
        of_held, of_tested = (
            ridge.predict(flat(frames, places), penalties).reshape(len(places), bins, -1)[
                np.arange(len(places)), :, asked[places]
            ]
            for places in (held, tested)
        )
        overlaps = [interval_overlaps(best_runs(of_held - one), truth[held]).mean() for one in THRESHOLDS]
        result[tested] = best_runs(of_tested - THRESHOLDS[int(np.argmax(overlaps))])
    return result


def moment_activities(row: Row, labels: Sequence[str], bins: int) -> Floats:
    """Return the share of each bin in which each label is heard, [bins, labels]."""
    edges = FRAME_BIN * np.arange(bins + 1)
    shares = np.zeros((bins, len(labels)))
    for event in row["events"]:
        shared = np.minimum(edges[1:], event["offset"]) - np.maximum(edges[:-1], event["onset"])
        shares[:, labels.index(event["label"])] += np.maximum(shared, 0.0) / FRAME_BIN
    return shares


def best_runs(values: Floats) -> Floats:
    """Return the run of bins with the largest sum in each row of values [n, bins], as [n, 2] in s; at least one bin.

    >>> best_runs(np.array([[-1.0, 2.0, -0.5, 1.0, -3.0]])).round(3).tolist()
    [[0.1, 0.4]]
    """
    sums = np.pad(np.cumsum(values, axis=1), ((0, 0), (1, 0)))
    least = np.minimum.accumulate(sums, axis=1)[:, :-1]
    stop = (sums[:, 1:] - least).argmax(axis=1) + 1
    before = np.where(np.arange(sums.shape[1]) < stop[:, None], sums, np.inf)
    return FRAME_BIN * np.stack([before.argmin(axis=1), stop], axis=1).astype(np.float64)
