"""Comparisons as text for those who write papers: Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from audio_compositionality.dataset_builder.messages import nearest

from .comparison import MEASURES, Comparison, diversity
from .comparison_tables import Sheet, print_comparisons, sheets
from .statistics import Interval, LineFit, PairedTest
from .table import PIPED_WIDTH, plain

FORMATS = ("text", "markdown", "latex", "csv", "json")

CSV_COLUMNS = (
    "task",
    "fingerprint",
    "measure",
    "quantity",
    "encoder",
    "other",
    "n",
    "value",
    "low",
    "high",
    "p",
    "p_adjusted",
)


def check_format(format: str) -> None:
    """Refuse an unknown format with ValueError."""
    if format not in FORMATS:
        raise ValueError(f"unknown format {format!r}; {nearest(format, FORMATS)}")


def write_comparisons(comparisons: Sequence[Comparison], format: str) -> str:
    """Comparisons as text in one of `FORMATS`.

    ``text`` is what the terminal shows. ``csv`` is one tidy table, a row for each mean, control, difference, slope and
    group mean; ``json`` holds the same, nested, and also t, effect sizes, groups, intercepts and R². These two have
    full precision, the others three decimals. In ``json`` an infinite t or effect size is null, its p being 0.

    Raises:
        ValueError: unknown format.
    """
    check_format(format)
    if format == "json":
        return json.dumps([_as_json(comparison) for comparison in comparisons], indent=1, allow_nan=False) + "\n"
    if format == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(CSV_COLUMNS)
        for comparison in comparisons:
            writer.writerows(_csv_rows(comparison))
        return stream.getvalue()
    if format == "text":
        stream = io.StringIO()
        print_comparisons(comparisons, Console(width=PIPED_WIDTH, file=stream))
        return stream.getvalue()
    write = _markdown if format == "markdown" else _latex
    return "\n".join(write(sheet) for comparison in comparisons for sheet in sheets(comparison))


def _markdown(sheet: Sheet) -> str:
    def escaped(text: str) -> str:
        return re.sub(r"([\\`*_{}\[\]<>|#~$&!])", r"\\\1", plain(text))

    lines = [f"**{escaped(sheet.title)}**", ""]
    if sheet.rows:
        lines.append("| " + " | ".join(map(escaped, sheet.headings)) + " |")
        lines.append("|" + "|".join(["---", *["---:"] * (len(sheet.headings) - 1)]) + "|")
        lines += ["| " + " | ".join(map(escaped, row)) + " |" for row in sheet.rows]
        lines.append("")
    for note in sheet.notes:
        lines += [escaped(note), ""]
    return "\n".join(lines)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "∞": r"$\infty$",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "∪": r"$\cup$",
    "²": r"\textsuperscript{2}",
    "†": r"\textdagger{}",
    "±": r"\textpm{}",
} | {character: f"\\{character}" for character in "&%$#_{}"}


def _latex(sheet: Sheet) -> str:
    def escaped(text: str) -> str:
        words = "".join(_LATEX.get(character, character) for character in plain(text))
        return re.sub(r"(?<!\w)-(?=\d)", "$-$", words)

    notes = " ".join(map(escaped, sheet.notes))
    if not sheet.rows:
        return plain(f"% {sheet.title}: {' '.join(sheet.notes)}") + "\n"
    columns = "l" + "r" * (len(sheet.headings) - 1)
    # A row that begins with [ would be taken for an argument of the line break before it.
    body = ["{}" + " & ".join(map(escaped, row)) + r" \\" for row in sheet.rows]
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            r"\begin{table}",
            r"  \centering",
            f"  \\caption{{{escaped(sheet.title)}. {notes}}}",
            f"  \\begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            "    " + " & ".join(map(escaped, sheet.headings)) + r" \\",
            r"    \midrule",
            *(f"    {line}" for line in body),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


# ----- CSV and JSON


def _csv_rows(comparison: Comparison) -> Iterator[tuple[Any, ...]]:
    labels = comparison.labels
    n = len(comparison.ids)

    def row(
        measure: str,
        quantity: str,
        encoder: str,
        value: Any,
        *,
        other: str = "",
        size: int = n,
        interval: Interval | None = None,
        p: float | None = None,
        p_adjusted: float | None = None,
    ) -> tuple[Any, ...]:
        words = (comparison.task, comparison.fingerprint, measure, quantity, _cell(encoder), _cell(other))
        return (*words, size, value, *(interval or (None, None)), p, p_adjusted)

    for measure in MEASURES:
        values, known = comparison.values(measure), diversity(comparison, measure)
        if values is None:
            continue
        intervals = comparison.intervals if measure == "score" else comparison.centred_intervals
        for label, mean, interval in zip(labels, values.mean(axis=0).tolist(), intervals, strict=True):
            yield row(measure, "mean", label, mean, interval=interval)
        for test in comparison.tests if measure == "score" else comparison.centred_tests:
            yield row(
                measure,
                "difference",
                labels[test.first],
                test.difference,
                other=labels[test.second],
                interval=test.interval,
                p=test.p,
                p_adjusted=test.p_adjusted,
            )
        for slope in known.slopes if known is not None else ():
            fits = (("slope", slope.fit, slope.p_adjusted), ("slope within", slope.fit_within, slope.p_adjusted_within))
            for name, fit, p_adjusted in fits:
                if fit is not None:
                    yield row(
                        measure,
                        name,
                        slope.label,
                        fit.slope,
                        other=slope.attribute,
                        interval=fit.slope_interval,
                        p=fit.p,
                        p_adjusted=p_adjusted,
                    )
        for grouping, found in known.groups.items() if known is not None else ():
            for label, groups in found.items():
                for group in groups:
                    name = f"{grouping} = {group.label}"
                    yield row(
                        measure, "group mean", label, group.mean, other=name, size=group.n, interval=group.interval
                    )
    for entry in comparison.entries:
        for name, value in entry.result.controls.items():
            figure = None if value is None else float(value)
            yield row("score", "control", entry.label, figure, other=name, size=entry.result.n)


def _cell(text: str) -> str:
    """A word that a spreadsheet does not take for a formula."""
    word = plain(text)
    return f"'{word}" if word[:1] in ("=", "+", "-", "@") else word


def _as_json(comparison: Comparison) -> dict[str, Any]:
    found: dict[str, Any] = {
        "task": comparison.task,
        "dataset": comparison.dataset,
        "fingerprint": comparison.fingerprint,
        "n": len(comparison.ids),
        "notes": [*([comparison.missing] if comparison.missing else []), *comparison.notes],
        "encoders": [
            {
                "label": entry.label,
                "encoder_id": entry.result.encoder_id,
                "encoder_revision": entry.result.encoder_revision,
                "n": entry.result.n,
                "controls": dict(entry.result.controls),
            }
            for entry in comparison.entries
        ],
    }
    for measure in MEASURES:
        values, known = comparison.values(measure), diversity(comparison, measure)
        if values is None:
            continue
        scored = measure == "score"
        intervals = comparison.intervals if scored else comparison.centred_intervals
        letters = comparison.letters if scored else comparison.centred_letters
        tests = comparison.tests if scored else comparison.centred_tests
        rows = zip(comparison.labels, values.mean(axis=0).tolist(), intervals, letters, strict=True)
        found[measure] = {
            "means": [{"encoder": a, "mean": b, "interval": c, "groups": d} for a, b, c, d in rows],
            "tests": [_test_as_json(comparison, test) for test in tests],
            "slopes": [
                {
                    "encoder": slope.label,
                    "attribute": slope.attribute,
                    "plain": _fit_as_json(slope.fit, slope.p_adjusted),
                    "numbers_of_sources_fixed": _fit_as_json(slope.fit_within, slope.p_adjusted_within),
                }
                for slope in (known.slopes if known is not None else ())
            ],
            "groups": {
                grouping: {label: [asdict(group) for group in groups] for label, groups in by_label.items()}
                for grouping, by_label in (known.groups.items() if known is not None else ())
            },
        }
    return found


def _test_as_json(comparison: Comparison, test: PairedTest) -> dict[str, Any]:
    values = asdict(test) | {"first": comparison.labels[test.first], "second": comparison.labels[test.second]}
    infinite = [name for name in ("t", "effect_size") if values[name] is not None and math.isinf(values[name])]
    return values | dict.fromkeys(infinite, None)


def _fit_as_json(fit: LineFit | None, p_adjusted: float | None) -> dict[str, Any] | None:
    if fit is None:
        return None
    return {
        "n": fit.n,
        "slope": fit.slope,
        "interval": fit.slope_interval,
        "intercept": fit.intercept,
        "r2": fit.r2,
        "p": fit.p,
        "p_adjusted": p_adjusted,
    }
