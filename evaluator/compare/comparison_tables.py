"""The tables of comparisons, as words; and their print in the terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .comparison import MEASURES, Comparison, Diversity, diversity
from audio_compositionality.tasks.samples import TOTAL
from .statistics import MIN_SAMPLES, GroupMean, Interval, LineFit
from .table import (PIPED_WIDTH, SAMPLES, TITLES, control_cells, control_headings, legend, number, plain)

MOST_PAIRS = 45
"""Tables for people list the tests of up to so many pairs, those of ten encoders; CSV and JSON have all."""

_NO_FIT = "-: too few independent samples for a fit, or an entropy that does not vary."

_DIVERSITY = {"a_coat": "H^quad", "a_tre": "H"}


@dataclass(frozen=True)
class Sheet:
    """A table of words: its title, headings, rows, and what has to be said below it."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def print_comparisons(comparisons: Sequence[Comparison], console: Console | None = None) -> None:
    """Print scores, paired tests and slopes against diversity of each comparison, and where the rest is to be had."""
    console = console or Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    for comparison in comparisons:
        for sheet in sheets(comparison, brief=True):
            table = Table(
                title=Text(plain(sheet.title), style="bold"),
                title_justify="left",
                box=box.SIMPLE_HEAD,
                padding=(0, 1, 0, 0),
                pad_edge=False,
            )
            for place, heading in enumerate(sheet.headings):
                table.add_column(
                    Text(heading), justify="right" if place else "left", overflow="fold", vertical="bottom"
                )
            for row in sheet.rows:
                table.add_row(*(Text(plain(cell)) for cell in row))
            console.print(table)
            for note in sheet.notes:
                console.print(Text(plain(note)), style="dim")
            console.print()
    console.print(
        "A high score alone is no evidence of learned composition. The controls, slopes by attribute and means by "
        "group are in the other formats (--format markdown, latex, csv, json) and in `audio-compositionality report`.",
        highlight=False,
    )


def sheets(comparison: Comparison, *, brief: bool = False) -> list[Sheet]:
    """The tables of a comparison; `brief` leaves out the controls and what depends on groups of samples."""
    found = [_scores(comparison)]
    if not brief:
        found.append(_controls(comparison))
    found += [_pairs(comparison, measure) for measure in MEASURES if comparison.values(measure) is not None]
    known = diversity(comparison)
    if known is not None:
        found.append(_slopes(comparison, known))
        if not brief:
            found += [_attribute_slopes(comparison, known), *_groups(comparison, known)]
    return found


def _scores(comparison: Comparison) -> Sheet:
    name = TITLES[comparison.task]
    rows = []
    for place, entry in enumerate(comparison.entries):
        centred = entry.centred
        rows.append(
            (
                entry.label,
                number(float(entry.score.mean())),
                _interval(comparison.intervals[place]),
                comparison.letters[place],
                *([number(entry.result.controls.get("seed_std"), 4)] if comparison.task == "a_tre" else []),
                number(None if centred is None else float(centred.mean())),
                _interval(comparison.centred_intervals[place]),
                comparison.centred_letters[place],
            )
        )
    drawn = "the sets of added sources T" if comparison.task == "a_coat" and comparison.samples is not None else ""
    notes = [
        f"Intervals: 95 %, BCa bootstrap of {drawn or SAMPLES[comparison.task]}. Groups: encoders that share a letter "
        "are not distinguishable (paired t-tests, false discovery rate 5 %); centred: after what all embeddings share "
        "is taken away."
    ]
    if comparison.task == "a_tre":
        notes.append(
            "Training scenes and fits are taken as given in intervals and tests; seed sd: of the means of several fits."
        )
    if comparison.intervals[0] is None:
        notes.append(_too_few(comparison))
    if comparison.missing is not None:
        notes.append(f"Samples are taken as independent, and nothing is told of diversity: {comparison.missing}")
    notes += comparison.notes
    spread = ("seed sd",) if comparison.task == "a_tre" else ()
    headings = ("encoder", name, "95 % interval", "groups", *spread, "centred", "95 % interval", "groups")
    return Sheet(_title(comparison, f"{name} on {comparison.dataset}"), headings, tuple(rows), tuple(notes))


def _controls(comparison: Comparison) -> Sheet:
    results = [entry.result for entry in comparison.entries]
    name = TITLES[comparison.task]
    rows = [
        (
            entry.label,
            number(entry.result.score),
            number(entry.result.std),
            *control_cells(entry.result),
            str(entry.result.n),
        )
        for entry in comparison.entries
    ]
    headings = ("encoder", name, "sd", *control_headings(comparison.task), "n")
    return Sheet(f"{name}: controls", headings, tuple(rows), (legend(results[0]),))


def _pairs(comparison: Comparison, measure: str) -> Sheet:
    tests = comparison.tests if measure == "score" else comparison.centred_tests
    name = TITLES[comparison.task] + (", centred" if measure == "centred" else "")
    title = _title(comparison, f"{name}: paired differences")
    headings = ("encoders", "difference", "95 % interval", "t", "p, corrected", "effect d_z")
    if not tests:
        return Sheet(title, headings, (), ("One encoder: there is nothing to compare it with.",))
    if len(tests) > MOST_PAIRS:
        return Sheet(title, headings, (), (f"{len(tests)} pairs: the formats csv and json list them.",))
    labels = comparison.labels
    rows = tuple(
        (
            f"{labels[test.first]} − {labels[test.second]}",
            number(test.difference),
            _interval(test.interval),
            _statistic(test.t),
            _p(test.p_adjusted),
            _statistic(test.effect_size),
        )
        for test in tests
    )
    pairs = "1 pair" if len(tests) == 1 else f"{len(tests)} pairs"
    note = f"p: two-sided, corrected over {pairs} (Benjamini and Hochberg)."
    return Sheet(title, headings, rows, (_too_few(comparison) if tests[0].p is None else note,))


def _slopes(comparison: Comparison, known: Diversity) -> Sheet:
    what = _DIVERSITY[comparison.task]
    rows = tuple(
        (slope.label, *_slope(slope.fit), _p(slope.p_adjusted), *_slope(slope.fit_within), _p(slope.p_adjusted_within))
        for slope in known.slopes
        if slope.attribute == TOTAL
    )
    fixed = "numbers of sources fixed"
    headings = ("encoder", "slope", "95 % interval", "p", f"slope, {fixed}", "95 % interval", "p")
    notes = [
        f"Slope: change of the score for a change of {what}, the entropy summed over attributes, by 1. It mostly "
        f"counts sources: hence also with the {fixed}. p: corrected over encoders and attributes."
    ]
    if any("-" in row for row in rows):
        notes.append(_NO_FIT)
    title = _title(comparison, f"{TITLES[comparison.task]} against diversity {what}")
    return Sheet(title, headings, rows, tuple(notes))


def _attribute_slopes(comparison: Comparison, known: Diversity) -> Sheet:
    attributes = [name for name in dict.fromkeys(slope.attribute for slope in known.slopes) if name != TOTAL]
    found = {(slope.label, slope.attribute): slope.fit_within for slope in known.slopes}
    rows = tuple(
        (label, *(" ".join(_slope(found[label, attribute])) for attribute in attributes)) for label in comparison.labels
    )
    title = _title(comparison, f"{TITLES[comparison.task]}: slopes by attribute, numbers of sources fixed")
    return Sheet(title, ("encoder", *attributes), rows, (_NO_FIT,) if any("- -" in row for row in rows) else ())


def _groups(comparison: Comparison, known: Diversity) -> Iterator[Sheet]:
    for grouping, found in known.groups.items():
        rows = tuple(
            (label, group.label, str(group.n), number(group.mean), _group_interval(group))
            for label, groups in found.items()
            for group in groups
        )
        headings = ("encoder", grouping, "n", "mean", "95 % interval")
        yield Sheet(f"{TITLES[comparison.task]} by {grouping}", headings, rows)


def _title(comparison: Comparison, text: str) -> str:
    return f"{text}, n = {len(comparison.ids):,}"


def _too_few(comparison: Comparison) -> str:
    independent = len(set(comparison.clusters.tolist()))
    return (
        f"n = {len(comparison.ids)}, {independent} of them independent: too few samples for an interval or a test, "
        f"which need {MIN_SAMPLES}."
    )


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{number(interval[0])}, {number(interval[1])}]"


def _group_interval(group: GroupMean) -> str:
    return "too few" if group.interval is None else _interval(group.interval)


def _slope(fit: LineFit | None) -> tuple[str, str]:
    return ("-", "-") if fit is None else (number(fit.slope), _interval(fit.slope_interval))


def _statistic(value: float | None) -> str:
    if value is None or math.isfinite(value):
        return number(value, 2)
    return "∞" if value > 0 else "-∞"


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "< 0.001" if value < 0.001 else number(value)
