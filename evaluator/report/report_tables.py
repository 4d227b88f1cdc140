"""The tables of a report: cells with what they are sorted by, from comparisons and their results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from audio_compositionality.evaluator.compare.comparison import Comparison, Diversity, Entry
from audio_compositionality.evaluator.figures.figures.figure_kinds import kind_of
from audio_compositionality.evaluator.figures.figures.figure_layout import short_label
from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.tasks.samples import TOTAL
from audio_compositionality.evaluator.compare.statistics import SIGNIFICANT, GroupMean, Interval, LineFit
from audio_compositionality.evaluator.compare.table import SAMPLES, TITLES

LONGEST_TEXT = 80
"""Characters shown of a name or a reason that somebody else has written."""

MOST_SKIPPED = 50
"""Skipped clips that are listed; of the others only the number is told."""

MOST_PAIRS = 500
"""Paired tests that are listed, those of 32 encoders; CSV and JSON have all."""

MISSING = "–"


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: what it shows.
        value: number that it is sorted by; None for words, and for a number that is missing.
        note: what is shown smaller below the text.
    """

    text: str
    value: float | None = None
    note: str = ""

    @property
    def key(self) -> str:
        """The value as JavaScript reads it; empty for None."""
        return "" if self.value is None else f"{self.value:.6g}".replace("inf", "Infinity")


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, whether it holds numbers, and whether the rows come in its order."""

    heading: str
    is_numeric: bool = True
    is_order: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table: its heading, what is said below that, and the other cells."""

    heading: str
    note: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table; the first column holds the rows' headings."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def shortened(text: str) -> str:
    """A stranger's text on one line, not longer than LONGEST_TEXT."""
    return short_label(text, LONGEST_TEXT)


def number_text(value: float | None, digits: int = 3) -> str:
    """A number with so many decimals, its minus as one is typeset; MISSING for None."""
    if value is None:
        return MISSING
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text.replace("-", "−")


def interval_text(interval: Interval | None, digits: int = 3) -> str:
    """An interval in brackets; nothing for None."""
    return "" if interval is None else f"[{number_text(interval[0], digits)}, {number_text(interval[1], digits)}]"


def number_cell(value: float | bool | None, digits: int = 3, note: str = "") -> Cell:
    """A cell with a number."""
    return Cell(number_text(value, digits), None if value is None else float(value), note)


# ----- Scores and controls


def score_table(comparison: Comparison) -> Table:
    """Scores, groups and controls, an encoder a row, the highest mean first."""
    headings, controls = _CONTROLS[comparison.task]
    name = TITLES[comparison.task]
    columns = (
        Column("encoder", is_numeric=False),
        Column(name, is_order=True),
        Column("groups", is_numeric=False),
        Column("centred"),
        Column("groups, centred", is_numeric=False),
        Column("sd"),
        *(Column(heading) for heading in headings),
        Column("n"),
        Column("dim"),
        Column("date", is_numeric=False),
    )
    rows = []
    for place, entry in enumerate(comparison.entries):
        result = entry.result
        centred = None if entry.centred is None else float(entry.centred.mean())
        cells = (
            number_cell(float(entry.score.mean()), note=interval_text(comparison.intervals[place])),
            Cell(comparison.letters[place]),
            number_cell(centred, note=interval_text(comparison.centred_intervals[place])),
            Cell(comparison.centred_letters[place] or MISSING),
            number_cell(float(entry.score.std(ddof=1)) if len(entry.score) > 1 else None),
            *controls(result),
            Cell(f"{len(entry.score):,}", len(entry.score)),
            Cell(str(result.output_dim), result.output_dim),
            Cell(result.date[:10]),
        )
        rows.append(Row(shortened(entry.label), kind_of(result.encoder_id).name, cells))
    encoders, samples = counted(len(rows), "encoder"), f"{len(comparison.ids):,} {SAMPLES[comparison.task]}"
    return Table(f"{name} of {encoders} on {samples}, the highest mean first", columns, tuple(rows))


def counted(count: int, name: str) -> str:
    """A number of things in words."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"


def _control(result: Result, name: str, digits: int = 3, null: str | None = None) -> Cell:
    by_chance = None if null is None else result.controls.get(null)
    note = "" if by_chance is None else f"null {number_text(by_chance, digits)}"
    return number_cell(result.controls.get(name), digits, note)


def _a_coat_controls(result: Result) -> tuple[Cell, ...]:
    return tuple(_control(result, name) for name in ("null", "matched_null", "adjusted", "top1", "mrr"))


def _a_tre_controls(result: Result) -> tuple[Cell, ...]:
    constant = _control(result, "constant")
    if result.controls.get("collapsed"):
        constant = Cell(constant.text, constant.value, "collapsed")
    return (
        _control(result, "seed_std", 4),
        constant,
        _control(result, "gain"),
        _control(result, "ridge_r2", 2, "ridge_r2_null"),
        _control(result, "ridge_centred", 2, "ridge_centred_null"),
        _control(result, "top1"),
        _control(result, "mrr"),
    )


_TOP_1 = "top\N{NON-BREAKING HYPHEN}1"

_CONTROLS: Mapping[str, tuple[tuple[str, ...], Callable[[Result], tuple[Cell, ...]]]] = {
    "a_coat": (("null", "matched null", "adjusted", _TOP_1, "MRR"), _a_coat_controls),
    "a_tre": (("seed sd", "constant", "gain", "ridge R²", "ridge centred", _TOP_1, "MRR"), _a_tre_controls),
}


def pair_table(comparison: Comparison, measure: str) -> Table | None:
    """The paired tests of every two encoders; None where there are none, or more than MOST_PAIRS."""
    tests = comparison.tests if measure == "score" else comparison.centred_tests
    if not 0 < len(tests) <= MOST_PAIRS:
        return None
    headings = ("difference", "t", "p", "p, corrected", "effect d_z")
    columns = (Column("encoders", is_numeric=False), *(Column(heading) for heading in headings))
    labels = comparison.labels
    rows = tuple(
        Row(
            f"{shortened(labels[test.first])} − {shortened(labels[test.second])}",
            "" if test.p_adjusted is None else "distinguishable" if test.significant else "not distinguishable",
            (
                number_cell(test.difference, note=interval_text(test.interval) or "too few samples"),
                _statistic_cell(test.t),
                _p_cell(test.p),
                _p_cell(test.p_adjusted),
                _statistic_cell(test.effect_size),
            ),
        )
        for test in tests
    )
    centred = ", centred" if measure == "centred" else ""
    caption = (
        f"{TITLES[comparison.task]}{centred}: paired differences, n = {tests[0].n:,}, {counted(len(tests), 'test')}"
    )
    return Table(caption, columns, rows)


def _statistic_cell(value: float | None) -> Cell:
    if value is None or math.isfinite(value):
        return number_cell(value, 2)
    return Cell("∞" if value > 0 else "−∞", value)


def _p_cell(value: float | None) -> Cell:
    return Cell("< 0.001", value) if value is not None and value < 0.001 else number_cell(value)


# ----- Diversity


_FIXED = {"a_coat": "the numbers of sources of A, C and T", "a_tre": "the number of sources"}


def slope_tables(known: Diversity, task: str) -> Iterator[Table]:
    """Slopes against the entropy of all attributes and of each, as it is and with the numbers of sources held fixed."""
    name, fixed = TITLES[task], _FIXED[task]
    attributes = tuple(dict.fromkeys(slope.attribute for slope in known.slopes))
    labels = tuple(dict.fromkeys(slope.label for slope in known.slopes))
    found = {(slope.label, slope.attribute): slope for slope in known.slopes}
    headings = ["all attributes" if attribute == TOTAL else attribute for attribute in attributes]
    columns = (Column("encoder", is_numeric=False), *(Column(shortened(heading)) for heading in headings))
    for what, within in ((f"Slope of {name} against diversity", False), (f"The same with {fixed} held fixed", True)):
        fits = [slope.fit_within if within else slope.fit for slope in known.slopes]
        sizes = sorted({fit.n for fit in fits if fit is not None})
        rows = []
        for label in labels:
            slopes = [found[label, attribute] for attribute in attributes]
            cells = (
                _slope_cell(s.fit_within, s.p_adjusted_within) if within else _slope_cell(s.fit, s.p_adjusted)
                for s in slopes
            )
            rows.append(Row(shortened(label), "", tuple(cells)))
        n = " to ".join(f"{size:,}" for size in dict.fromkeys((*sizes[:1], *sizes[-1:])))
        yield Table(f"{what}, n = {n}" if n else what, columns, tuple(rows))


def _slope_cell(fit: LineFit | None, p_adjusted: float | None) -> Cell:
    if fit is None or p_adjusted is None:
        return Cell(MISSING)
    mark = " *" if p_adjusted <= SIGNIFICANT else ""
    return Cell(number_text(fit.slope) + mark, fit.slope, interval_text(fit.slope_interval))


def group_tables(known: Diversity, task: str) -> Iterator[Table]:
    """Mean scores of groups of samples, a table a grouping."""
    for grouping, by_label in known.groups.items():
        groups = next(iter(by_label.values()))
        heading = Column("encoder", is_numeric=False)
        columns = (heading, *(Column(f"{shortened(group.label)} (n = {group.n:,})") for group in groups))
        rows = (Row(shortened(label), "", tuple(map(_group_cell, found))) for label, found in by_label.items())
        yield Table(f"{TITLES[task]} by {_GROUPINGS[grouping]}", columns, tuple(rows))


_GROUPINGS = {
    "|T|": "|T|, the number of sources that are added",
    "sources": "the number of sources",
    "A and C differ in": "the attributes whose classes differ between A and C",
}


def _group_cell(group: GroupMean) -> Cell:
    return number_cell(group.mean, note=interval_text(group.interval) or "too few")


# ----- What was run


def encoder_table(comparisons: Sequence[Comparison]) -> Table:
    """What was evaluated: each encoder once, or once for each way that it was run."""
    names = ("revision", "weights", "trained by", "licence", "parameters", "dim", "rate (Hz)", "layer")
    headings = (*names, "pooling", "precision", "front end")
    numeric = ("parameters", "dim", "rate (Hz)", "layer")
    columns = (Column("encoder", is_numeric=False), *(Column(name, name in numeric) for name in headings))
    rows: dict[tuple[str, ...], Row] = {}
    for entry in _entries(comparisons):
        result, options = entry.result, entry.result.options
        cells = (
            Cell(shortened(result.encoder_revision)),
            Cell(MISSING if result.weights_sha256 is None else f"SHA-256 {result.weights_sha256[:12]}…"),
            Cell(shortened(result.paradigm or MISSING)),
            Cell(shortened(result.licence or MISSING)),
            Cell(MISSING if result.parameters is None else f"{result.parameters:,}", result.parameters),
            Cell(str(result.output_dim), result.output_dim),
            Cell(f"{result.sample_rate:,}", result.sample_rate),
            Cell("output") if options["layer"] is None else Cell(str(options["layer"]), options["layer"]),
            Cell(shortened(options["pooling"] or "default")),
            Cell(shortened(options["precision"]) + (", compiled" if options["compile"] else "")),
            Cell(f"version {result.front_end_version}"),
        )
        row = Row(shortened(entry.label), "", cells)
        rows.setdefault((row.heading, *(cell.text for cell in cells)), row)
    return Table("The encoders", columns, tuple(rows.values()))


def run_table(comparisons: Sequence[Comparison]) -> Table:
    """How each result was computed."""
    columns = (
        Column("encoder", is_numeric=False),
        Column("task", is_numeric=False),
        Column("settings", is_numeric=False),
        Column("device", is_numeric=False),
        Column("embedding (s)"),
        Column("scoring (s)"),
        Column("date (UTC)", is_numeric=False),
    )
    rows = []
    for entry in _entries(comparisons):
        result = entry.result
        settings = "; ".join(f"{name} {_setting(value)}" for name, value in result.settings.items())
        steps = result.training.get("steps")
        cells = (
            Cell(TITLES[result.task]),
            Cell(shortened(settings) or MISSING, note=shortened(f"best steps {_setting(steps)}") if steps else ""),
            Cell(shortened(result.device)),
            number_cell(result.seconds.get("embed"), 1),
            number_cell(result.seconds.get("score"), 1),
            Cell(result.date[:16].replace("T", " ")),
        )
        rows.append(Row(shortened(entry.label), "", cells))
    return Table("The runs", columns, tuple(rows))


def _setting(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def version_table(comparisons: Sequence[Comparison]) -> Table:
    """Versions of what computed, a row for each combination of them."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for entry in _entries(comparisons):
        labels = found.setdefault(tuple(sorted(entry.result.versions.items())), [])
        if entry.label not in labels:
            labels.append(entry.label)
    names = sorted({name for versions in found for name, _ in versions})
    columns = (Column("results of", is_numeric=False), *(Column(shortened(name), is_numeric=False) for name in names))
    rows = []
    for versions, labels in found.items():
        known = dict(versions)
        cells = tuple(Cell(shortened(known.get(name, MISSING))) for name in names)
        rows.append(Row("all encoders" if len(found) == 1 else listed(labels), "", cells))
    return Table("Versions", columns, tuple(rows))


def skipped_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Clips that could not be embedded; None where there are none."""
    skipped = [(entry, clip["id"], clip["reason"]) for entry in _entries(comparisons) for clip in entry.result.skipped]
    if not skipped:
        return None
    names = ("encoder", "task", "clip", "reason")
    rows = tuple(
        Row(shortened(entry.label), "", (Cell(TITLES[entry.result.task]), Cell(shortened(id)), Cell(shortened(reason))))
        for entry, id, reason in skipped[:MOST_SKIPPED]
    )
    more = f", the first {MOST_SKIPPED} of {len(skipped):,}" if len(skipped) > MOST_SKIPPED else ""
    caption = f"Clips that could not be embedded{more}; their quadruple or scene is left out of everything"
    return Table(caption, tuple(Column(name, is_numeric=False) for name in names), rows)


def remarks(comparisons: Sequence[Comparison]) -> list[str]:
    """What has to be said of single results: a lower precision, steps of zero."""
    sentences = []
    for entry in _entries(comparisons):
        who = f"{shortened(entry.label)}, {TITLES[entry.result.task]}"
        degenerate = entry.result.controls.get("degenerate")
        if degenerate:
            sentences.append(f"{who}: {counted(int(degenerate), 'quadruple')} with a step of zero, which scores 0.")
        found = entry.result.precision_deviation
        if found is not None:
            sentences.append(
                f"{who}, computed in {shortened(entry.result.options['precision'])}: the embeddings of "
                f"{found['clips']:.0f} clips are {found['relative_mean']:.2%} (at most {found['relative_max']:.2%}) "
                f"from those in float32, {found['spread_ratio']:.2%} of what clips differ by."
            )
    return sentences


def listed(names: Sequence[str], most: int = 6) -> str:
    """Names in words: "a, b and c", of more than `most` the first and how many more."""
    shown = [shortened(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1]))) if shown else ""


def _entries(comparisons: Sequence[Comparison]) -> Iterator[Entry]:
    for comparison in comparisons:
        yield from comparison.entries
