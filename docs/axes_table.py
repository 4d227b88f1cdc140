"""The table of axes.md, as Markdown, from a folder with results of the benchmark `axes`.

    audio-compositionality run whisper-tiny.en whisper-base --benchmark axes --set twin_seeds=0,1,2 --out results/axes
    python docs/axes_table.py results/axes

A trained model stands in bold where it is above each of its untrained twins, log-mel statistics, level-statistics and
rms, and the 95 % interval of each of these differences is above 0. Of several twins the lowest and the highest number
is given.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from audio_compositionality.evaluator.compare.comparison import Comparison, compare_results
from audio_compositionality.evaluator.compare.loading import ModelKind, baseline_listing
from audio_compositionality.evaluator.compare.statistics import compare_pairs
from audio_compositionality.evaluator.compare.verdicts import twins_of

SHOWN = (
    "log-mel-statistics",
    "level-statistics",
    "rms",
    "random",
)
"""Baselines with a column of their own."""

TRANSFORMS = ("gain", "noise", "lowpass", "reverb")

FACTORS = ("timbre", "pitch", "rate", "amplitude")

ROWS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    *((f"informativeness: {one}", "informativeness", (f"{one}_informativeness",)) for one in FACTORS),
    *((f"P gain: {one}", "equivariance", (f"{one}_p_gain",)) for one in FACTORS[1:]),
    *((f"R-equivariance: {one}", "equivariance", (f"{one}_r_equivariance",)) for one in FACTORS),
    (
        "R-equivariance to gain / noise / low-pass / reverberation",
        "transform_equivariance",
        tuple(f"{one}_r_equivariance" for one in TRANSFORMS),
    ),
    ("disentanglement, mean of 12 pairs, `unseen`", "disentanglement", ("unseen",)),
    *(
        (
            f"{one} from timbres never heard, `{one}_over_timbre_unseen`",
            "disentanglement",
            (f"{one}_over_timbre_unseen",),
        )
        for one in FACTORS[:0:-1]
    ),
    ("overlap of the directions of factors, `overlap` (less is better)", "disentanglement", ("overlap",)),
    *(
        (f"labels after {one}, R², `{one}_shift_after`", "transform_disentanglement", (f"{one}_shift_after",))
        for one in TRANSFORMS[1:]
    ),
    ("invariance and selectivity, ABX, mean of four transforms, `abx`", "invariance", ("abx",)),
    (
        "ABX under gain / noise / low-pass / reverberation, `noise_abx`",
        "invariance",
        tuple(f"{one}_abx" for one in TRANSFORMS),
    ),
    ("ABX at other onsets, `abx`", "onset_invariance", ("abx",)),
    (
        "plain invariance to gain / noise / low-pass / reverberation (ranks nothing)",
        "invariance",
        tuple(f"{one}_invariance" for one in TRANSFORMS),
    ),
    ("the own original among all, under noise, `noise_top1`", "invariance", ("noise_top1",)),
    (
        "**rate binding**: which of two sources is the faster, timbres never heard, `unseen_informativeness`",
        "rate_binding",
        ("unseen_informativeness",),
    ),
    ("the same, timbres heard with other notes, `seen_informativeness`", "rate_binding", ("seen_informativeness",)),
)
"""What a row is called, its task and its measures."""


def places(comparison: Comparison) -> dict[str, list[int]]:
    """Columns: each trained model, its twins, then the baselines that are shown; places of results by the heading."""
    columns = {}
    for place, result in enumerate(comparison.results):
        if result.kind is ModelKind.TRAINED:
            twins = twins_of(comparison, place)
            columns[result.label] = [place]
            if twins:
                many = "its twin" if len(twins) == 1 else f"its {len(twins)} twins"
                columns[f"{result.label}: {many}"] = twins
    names = [result.result.model.id for result in comparison.results]
    return columns | {name: [names.index(name)] for name in SHOWN if name in names}


def beaten(comparison: Comparison, place: int) -> list[int]:
    """Places of all that a trained model has to be above."""
    listings = [baseline_listing(result) for result in comparison.results]
    plain = [k for k, one in enumerate(listings) if one is not None and (one.is_level or one.is_reference)]
    return [*twins_of(comparison, place), *plain]


def differences(comparison: Comparison, name: str, place: int) -> dict[str, tuple[float, float, float]]:
    """A model less each that it has to be above: the mean and the 95 % interval, by label; empty without samples."""
    view = comparison.views.get(name)
    found: dict[str, tuple[float, float, float]] = {}
    for other in beaten(comparison, place) if view is not None else ():
        test = compare_pairs(np.stack([view.values[:, place], view.values[:, other]], axis=1), view.clusters)[0]
        sign = 1 if test.first == 0 else -1
        low, high = sorted(sign * end for end in test.interval or (np.nan, np.nan))
        found[comparison.labels[other]] = (sign * test.difference, low, high)
    return found


def number(value: float | bool | None) -> str:
    """Two decimals without the leading 0, as the table has them."""
    if value is None:
        return "–"
    rounded = round(float(value), 2) + 0.0  # no −0
    text = f"{rounded:.2f}".replace("-", "−")
    return text.replace("0.", ".", 1) if abs(rounded) < 1 else text


def cell(comparison: Comparison, measures: Sequence[str], column: list[int]) -> str:
    """The numbers of a column: of several results the lowest and the highest."""
    texts = []
    for name in measures:
        values = [comparison.results[place].value(comparison.info.measure(name)) for place in column]
        low, *_, high = sorted(2 * [float(one) for one in values if one is not None]) or (None, None)
        texts.append(number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}")
    text = " / ".join(texts)
    first = comparison.results[column[0]]
    if first.kind is ModelKind.TRAINED and len(measures) == 1:
        found = differences(comparison, measures[0], column[0])
        return f"**{text}**" if found and all(low > 0 for _, low, _ in found.values()) else text
    return text


def main() -> None:
    """Print the table, and the differences behind what is bold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="a folder with results")
    folder = parser.parse_args().results
    comparisons = {comparison.info.name: comparison for comparison in compare_results([folder])}
    # A model of which a task has no result has a column all the same.
    headings = list(max(map(places, comparisons.values()), key=len))
    print(f"| measure (its key in the result files) | {' | '.join(headings)} |\n|{'---|' * (len(headings) + 1)}")
    told = []
    for words, task, measures in ROWS:
        if task not in comparisons:
            continue
        comparison = comparisons[task]
        columns = places(comparison)
        cells = [cell(comparison, measures, columns[one]) if one in columns else "–" for one in headings]
        print(f"| {words} | {' | '.join(cells)} |")
        for place, result in enumerate(comparison.results):
            if result.kind is ModelKind.TRAINED and len(measures) == 1:
                parts = (
                    f"{label} {number(difference)} [{number(low)}, {number(high)}]"
                    for label, (difference, low, high) in differences(comparison, measures[0], place).items()
                )
                told.append(f"- {words}, {result.label} less: {'; '.join(parts)}")
    print("\n" + "\n".join(told))


if __name__ == "__main__":
    main()
