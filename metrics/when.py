"""When does a sound occur: how well do stated intervals agree with true ones, compared with baselines?

An answer is free text, read by the rules of `spoken_times`; an answer that has no two times, or ends before it starts,
is *unparsed* and scores 0. The score of an answer is the intersection of its interval with the true one over their
union.

It is reported with two baselines. The *prior* is the one interval that would be the best answer to every question,
chosen with knowledge of all true answers. The *label-blind* baseline knows when the sounds of a clip occur but not
which is which: for each clip it gives the interval that is best on average over all of its sounds.

>>> spans = [[[1, 3], [4, 6]]] * 2
>>> result = when(["It is heard from 1 to 3 s.", "No idea."], [1, 4], [3, 6], [8, 8], spans=spans)
>>> result["iou"], result["iou_label_blind"], result["unparsed"]
(0.5, 0.5, 1)
"""

from typing import Any

import numpy as np

from .arrays import Floats
from .evaluated import MOST, count, measure, metric_class, share
from .spoken_times import spoken_times

_CITATION = """\
@misc{when_2026,
  title = {{When does it occur: onset and offset of one sound among several, with a label-blind baseline}},
  year = {2026}
}
"""


HIT = 0.5
"""Smallest intersection over union that counts as a hit."""

SLACK = 1e-6
"""Seconds by which times may differ through rounding."""

GRID = 81
"""Number of times, evenly from 0 to the longest duration, first tried as ends of the best constant interval."""

ENDS = 1000
"""Limit on the true onsets, and offsets, tried as ends of the best constant; if there are more, evenly by rank."""


def when(
    predictions: Any = None,
    onset: Any = None,
    offset: Any = None,
    duration: Any = None,
    *,
    spans: Any = None,
    parsed: bool = False,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how well n intervals agree with the true ones.

    - `predictions` [n]: texts, see `spoken_times`; with `parsed` intervals [onset, offset] in seconds, None or NaN for
      none; `onset`, `offset` [n]: true times, 0 ≤ onset < offset ≤ `duration` [n]; times of predictions beyond the clip
      are clipped to its ends;
    - `spans` [n]: the intervals [[onset, offset], …] of all sounds of each clip.

    Numbers:

    - `iou`: the mean of intersection over union, 0 if nothing could be read; `hit`: share of answers with 1/2 or more;
    - `iou_prior`, `hit_prior`: the highest score of one interval for all answers, exact for clips of one duration:
      nothing is cut off at the end of a shorter clip. With more than `ENDS` different onsets or offsets, `iou_prior`
      searches only that many;
    - `iou_label_blind`, `hit_label_blind`: the mean over answers of the highest average score of one interval over all
      sounds of the clip; None without `spans`. If each of the sounds is asked about once with the same words, an answer
      from sound and words that does not bind labels to times cannot exceed it;
    - `onset_error`, `offset_error`: mean absolute errors in seconds of the answers that could be read, None without
      any; `onset_error_prior`, `offset_error_prior`: the errors of the best constant for the same answers, the median;
    - `unparsed`: answers that could not be read; `n`: answers;
    - with return_scores, lists of n: `scores` of iou, `scores_hit`, and `intervals`, None if nothing could be read.

    Raises ValueError if lengths differ or are 0, a prediction is not a text (with `parsed` not an interval), a time is
    not finite, or a true interval is empty or not inside its clip.

    >>> when([[1, 3]], [2], [4], [8], parsed=True)["iou"]
    0.3333333333333333
    """
    given = {"predictions": predictions, "onset": onset, "offset": offset, "duration": duration}
    missing = [name for name, values in given.items() if values is None]
    if missing:
        rest = ", ".join(name for name in given if name not in missing) or "nothing"
        raise ValueError(f"when got {rest} without {', '.join(missing)}.")
    truth, ends = _truth(onset, offset, duration)
    said = stated_intervals(predictions, ends, parsed)
    read = np.isfinite(said[:, 0])
    overlaps = interval_overlaps(said, truth)
    columns = {"iou": overlaps, "hit": (overlaps >= _LEAST).astype(np.float64)}
    prior = {"iou": best_constant(truth, float(ends.max()))[1], "hit": most_hits(truth)}
    every = [] if spans is None else _all_spans(spans, truth)
    blind = {"iou": [_most_overlap(one) for one in every], "hit": [most_hits(one) for one in every]}
    result: dict[str, Any] = dict.fromkeys(MEASURES)
    for name, column in columns.items():
        result |= {name: float(column.mean()), f"{name}_prior": prior[name]}
        result[f"{name}_label_blind"] = float(np.mean(blind[name])) if every else None
    for side, name in enumerate(("onset_error", "offset_error") if read.any() else ()):
        times = truth[read, side]
        result[name] = float(np.abs(said[read, side] - times).mean())
        result[f"{name}_prior"] = float(np.abs(times - np.median(times)).mean())
    result |= {"unparsed": int((~read).sum()), "n": len(truth)}
    if return_scores:
        result["scores"], result["scores_hit"] = (columns[name].tolist() for name in ("iou", "hit"))
        result["intervals"] = [row.tolist() if is_read else None for row, is_read in zip(said, read, strict=True)]
    return result


When = metric_class(
    when,
    [
        {"predictions": kind, "onset": "number", "offset": "number", "duration": "number"}
        for kind in ("text", "numbers")
    ],
    citation=_CITATION,
    whole=False,
)


def stated_intervals(predictions: Any, ends: Floats, parsed: bool = False) -> Floats:
    """Return the stated intervals [n, 2], NaN for none; times after the end of the clip are set to its end.

    Args:
        predictions: n texts, or intervals with `parsed`; see `when`.
        ends: durations of the n clips in seconds.
        parsed: whether predictions are intervals.

    Raises:
        ValueError: the number of predictions is not n, or one is not a text or an interval.
    """
    entries, n = predictions.tolist() if hasattr(predictions, "tolist") else list(predictions), len(ends)
    if isinstance(predictions, str) or len(entries) != n:
        raise ValueError(f"predictions must have {n} entries, one per onset; got {len(entries)}.")
    intervals = np.full((n, 2), np.nan)
    for row, entry in enumerate(entries):
        if not parsed and not isinstance(entry, str):
            raise ValueError(f"predictions must be texts, or intervals with parsed=True; row {row} has {entry!r}.")
        pair = entry if parsed else spoken_times(entry)
        if pair is None:
            continue
        if isinstance(pair, str) or np.shape(pair) != (2,):
            raise ValueError(f"With parsed=True a prediction must be [onset, offset] or None; row {row} has {entry!r}.")
        if 0 <= pair[0] <= pair[1]:
            intervals[row] = np.minimum(pair, ends[row])
    return intervals


def interval_overlaps(said: Floats, truth: Floats) -> Floats:
    """Return the intersection over union of intervals [..., 2] and true ones, with broadcastable shapes; 0 for NaN."""
    common = np.minimum(said[..., 1], truth[..., 1]) - np.maximum(said[..., 0], truth[..., 0])
    union = np.maximum(said[..., 1], truth[..., 1]) - np.minimum(said[..., 0], truth[..., 0])
    overlaps: Floats = np.nan_to_num(np.maximum(common, 0.0) / union)
    return overlaps


def best_constant(truth: Floats, longest: float) -> tuple[Floats, float]:
    """Return the interval [2] whose mean overlap with true ones [n, 2] is the largest, and that overlap.

    It begins at a true onset and ends at a true offset: elsewhere the mean is piecewise convex in either end. All
    intervals on a grid from 0 to the longest duration are tried first. An end that moves by d seconds changes the
    overlap with a true interval of length L by at most d / L, so that most pairs of onset and offset are worse than the
    best on the grid, and are skipped.
    """
    grid = np.linspace(0.0, longest, GRID)
    tried = np.stack([grid[ends] for ends in np.triu_indices(GRID, 1)], axis=1)
    means = np.zeros((GRID, GRID))
    means[np.triu_indices(GRID, 1)] = _mean_overlaps(tried, truth)
    # The distinct values, at most ENDS, evenly by rank.
    distinct = [np.unique(truth[:, side]) for side in (0, 1)]
    onsets, offsets = (
        one[np.linspace(0, len(one) - 1, min(len(one), ENDS)).round().astype(np.int64)] for one in distinct
    )
    nearest = [np.abs(times[:, None] - grid).argmin(axis=1) for times in (onsets, offsets)]
    moved = np.abs(onsets - grid[nearest[0]])[:, None] + np.abs(offsets - grid[nearest[1]])
    most = means[np.ix_(*nearest)] + moved * (1 / (truth[:, 1] - truth[:, 0])).mean()
    first, last = np.nonzero((most >= means.max()) & (onsets[:, None] < offsets))
    tried = np.concatenate(
        [np.stack([onsets[first], offsets[last]], axis=1), tried[[means[np.triu_indices(GRID, 1)].argmax()]]]
    )
    overlaps = _mean_overlaps(tried, truth)
    return tried[overlaps.argmax()], float(overlaps.max())


def most_hits(truth: Floats) -> float:
    """Return the largest share of true intervals [n, 2] that one interval hits, exactly.

    With h for HIT, an interval [a, b] hits [s, e] where h (e - s) ≤ b - a ≤ (e - s) / h, b + h a ≥ s + h e and a + h b
    ≤ e + h s. An interval that hits can be moved to the left until b + h a = s + h e for one true interval that it
    hits, and still hits the same. On each of these n lines, each true interval is hit on one stretch of a; one of the
    stretches begins where most overlap.
    """
    h = _LEAST
    onset, offset = truth.T
    length, level, bound = offset - onset, onset + h * offset, offset + h * onset
    most = 0
    for value in np.unique(level):
        here = level <= value
        begin = (value - length[here] / h) / (1 + h)
        end = np.minimum((value - h * length[here]) / (1 + h), (bound[here] - h * value) / (1 - h * h))
        begin, end = np.sort(begin[begin <= end]), np.sort(end[begin <= end])
        open_stretches = np.searchsorted(begin, begin, "right") - np.searchsorted(end, begin, "left")
        most = max(most, int(open_stretches.max(initial=0)))
    return most / len(truth)


_AT_ONCE = 20_000  # overlaps whose arrays fit a processor's cache
_LEAST = HIT - 1e-9  # allows for the rounding of times


def _most_overlap(spans: Floats) -> float:
    """Return the largest mean overlap of one interval with some [k, 2]; see `best_constant`."""
    ends = [(first, last) for first in spans[:, 0] for last in spans[:, 1] if first < last]
    return float(_mean_overlaps(np.array(ends), spans).max())


def _mean_overlaps(said: Floats, truth: Floats) -> Floats:
    """Return the mean overlap of each of m intervals [m, 2] with n true ones [n, 2], [m]."""
    blocks = np.array_split(said, 1 + len(said) * len(truth) // _AT_ONCE)
    return np.concatenate([interval_overlaps(block[:, None], truth).mean(axis=1) for block in blocks])


def _numbers(name: str, values: Any) -> Floats:
    """Return finite numbers [n], n at least 1, or raise ValueError."""
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers: {error}.") from None
    if column.ndim != 1 or not len(column):
        raise ValueError(f"{name} must be a list of at least one number; got shape {column.shape}.")
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        raise ValueError(f"{name} must be finite; row {bad[0]} has {column[bad[0]]}.")
    return column


def _truth(onset: Any, offset: Any, duration: Any) -> tuple[Floats, Floats]:
    """Return true intervals [n, 2] and durations [n], or raise ValueError."""
    columns = {name: _numbers(name, x) for name, x in (("onset", onset), ("offset", offset), ("duration", duration))}
    if len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise ValueError(f"Every input needs one entry per answer; got {lengths}.")
    first, last, end = columns.values()
    bad = np.flatnonzero(~((first >= 0) & (first < last) & (last <= end + SLACK)))
    if len(bad):
        row = bad[0]
        raise ValueError(
            f"A true interval must lie in its clip, 0 ≤ onset < offset ≤ duration; row {row} has {first[row]:g} to "
            f"{last[row]:g} s of {end[row]:g} s."
        )
    return np.stack([first, last], axis=1), end


def _all_spans(spans: Any, truth: Floats) -> list[Floats]:
    """Return the intervals of all sounds of each clip, [sounds, 2] each, or raise ValueError."""
    if len(spans) != len(truth):
        raise ValueError(f"spans must have one list per answer ({len(truth)}); got {len(spans)}.")
    arrays = [np.asarray(one, np.float64) for one in spans]
    for row, one in enumerate(arrays):
        if one.ndim != 2 or one.shape[1] != 2 or not np.isclose(one, truth[row], atol=SLACK).all(axis=1).any():
            raise ValueError(
                f"spans must be lists [[onset, offset], …] that include the true one; row {row} has {spans[row]!r}."
            )
    return arrays


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "iou": share(
        "overlap",
        "intersection over union of the stated interval and the true one, the mean over all answers; 0 for an answer "
        "that states no interval",
        null="iou_prior",
        trivial="iou_label_blind",
        column="score",
    ),
    "iou_prior": share(
        "best constant", "overlap of the best single interval for all answers, chosen with knowledge of the truth"
    ),
    "iou_label_blind": share(
        "label-blind",
        "highest overlap of an answer that knows when the sounds of a clip occur, but not which is which",
    ),
    "hit": share(
        "hits",
        "share of answers whose overlap is at least 1/2",
        null="hit_prior",
        trivial="hit_label_blind",
        column="score_hit",
    ),
    "hit_prior": share("hits of the best constant", "hits of the best single interval for all answers", shown=False),
    "hit_label_blind": share(
        "label-blind hits", "highest share of hits of an answer that does not know which sound is which", shown=False
    ),
    **{
        f"{end}_error{bar}": measure(
            f"error of the {end}{said}",
            f"mean absolute error of the {end} in seconds{of}",
            range=(0.0, MOST),
            shown=not bar,
            less_is_better=True,
            **({} if bar else {"null": f"{end}_error_prior"}),
        )
        for end in ("onset", "offset")
        for bar, said, of in (
            ("", " (s)", ", of the answers that state an interval"),
            ("_prior", " of the median (s)", ", of the best constant for the same answers"),
        )
    },
    "unparsed": count("unparsed", "number of answers that state no interval; they score 0", 0.0, shown=True),
    "n": count("answers", "number of answers"),
}
"""Description of each number that `when` returns, by name, the score first."""
