"""Results as tables in the terminal: each score with its spread, its interval and its controls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .result import Result

_COLUMNS: dict[str, Sequence[tuple[str, str]]] = {
    "a_coat": (
        ("null", "null"),
        ("matched", "matched_null"),
        ("adjusted", "adjusted"),
        ("centred", "centred"),
        ("top-1", "top1"),
        ("chance", "top1_chance"),
    ),
    "a_tre": (
        ("constant", "constant"),
        ("gain", "gain"),
        ("centred", "a_tre_centred"),
        ("ridge R²", "ridge_r2"),
        ("(null)", "ridge_r2_null"),
        ("top-1", "top1"),
        ("chance", "top1_chance"),
        ("collapsed", "collapsed"),
    ),
}

_TITLES = {"a_coat": "A-COAT", "a_tre": "A-TRE"}

_LEGENDS = {
    "a_coat": (
        "null: the same cosine between steps of different quadruples; matched: those with the same |T| and nearly the "
        "same level; adjusted: (score - null) / (1 - null), by the matched null where there is one; centred: after "
        "the mean step is taken away; top-1: how often the own step is the nearest."
    ),
    "a_tre": (
        "constant: the score of the mean training embedding for all scenes; gain: (score - constant) / (1 - constant); "
        "centred: the score of a second fit to what differs from that mean; ridge R²: variance explained by attribute "
        "counts alone (null: metadata permuted among scenes of equal size); top-1: how often the own embedding is the "
        "nearest to the centred prediction; collapsed: the predictions hardly vary."
    ),
}


def print_results(results: Iterable[Result], console: Console | None = None) -> None:
    """Print one table a task, one row an encoder, and below it what the columns mean."""
    console = console or Console()
    results = list(results)
    for task, columns in _COLUMNS.items():
        chosen = [result for result in results if result.task == task]
        if not chosen:
            continue
        title = f"{_TITLES[task]}, {chosen[0].dataset}, n = {chosen[0].n:,}"
        table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
        table.caption = _LEGENDS[task]
        table.add_column("encoder", overflow="fold", no_wrap=False)
        for heading in (f"{_TITLES[task]} ± sd", "95 % interval", *(heading for heading, _ in columns)):
            table.add_column(heading, justify="right", no_wrap=True)
        for result in chosen:
            table.add_row(
                Text(result.encoder_id),
                f"{_number(result.score)} ± {_number(result.std)}",
                "-" if result.interval is None else " … ".join(map(_number, result.interval)),
                *(_cell(result.controls.get(name)) for _, name in columns),
            )
        console.print(table)
    if results:
        console.print(
            "A high score alone is no evidence of learned composition: compare each encoder with its controls, with "
            "its untrained twin and with log-mel-statistics.",
            style="italic",
        )


def _cell(value: float | bool | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _number(value)


def _number(value: float) -> str:
    text = f"{value:.3f}"
    return "0.000" if text == "-0.000" else text
