"""Results as tables in the terminal: each score with its spread, its interval and its controls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from audio_compositionality.encoders import EncoderInfo

from .result import Result

PIPED_WIDTH = 100
"""Columns of the output where it does not go to a terminal; in a terminal, 80 suffice."""

ENCODERS_WIDTH = 160
"""The same for the list of encoders, which has more words."""

Cell = Callable[[Result], str]


def _control(name: str) -> Cell:
    return lambda result: _number(result.controls.get(name))


_COLUMNS: Mapping[str, Sequence[tuple[str, Cell]]] = {
    "a_coat": (
        ("null", _control("null")),
        ("matched", _control("matched_null")),
        ("adjusted", _control("adjusted")),
        ("centred", _control("centred")),
        ("top-1", _control("top1")),
    ),
    "a_tre": (
        ("constant", _control("constant")),
        ("gain", _control("gain")),
        ("centred", _control("a_tre_centred")),
        (
            "ridge R²\n(null)",
            lambda result: (
                f"{_number(result.controls['ridge_r2'], 2)} ({_number(result.controls['ridge_r2_null'], 2)})"
            ),
        ),
        ("top-1", _control("top1")),
    ),
}

_TITLES = {"a_coat": "A-COAT", "a_tre": "A-TRE"}

_LEGENDS = {
    "a_coat": (
        "null: the same cosine between steps of different quadruples; matched: of those with the same |T| and nearly "
        "the same level; adjusted: (score - null) / (1 - null), by the matched null where there is one; centred: "
        "after the mean step is taken away; top-1: how often the own step is the nearest of all (chance {chance})."
    ),
    "a_tre": (
        "constant: the score of the mean training embedding for all scenes; gain: (score - constant) / (1 - constant); "
        "centred: the score of a second fit, to what differs from that mean; ridge R²: variance that attribute counts "
        "alone explain (null: metadata permuted among scenes of equal size); top-1: how often the own embedding is "
        "the nearest to the centred prediction (chance {chance}); †: the predictions hardly vary."
    ),
}


def print_results(results: Iterable[Result], console: Console | None = None) -> None:
    """Print one table a task and data set, one row an encoder, and below it what the columns mean."""
    console = console or Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.task, result.fingerprint), []).append(result)
    for (task, _), chosen in sorted(groups.items()):
        console.print(_table(task, chosen))
        chance = _number(chosen[0].controls.get("top1_chance"))
        console.print(_LEGENDS[task].format(chance=chance), style="dim", highlight=False)
        for result in chosen:
            for note in _notes(result):
                console.print(Text(f"{result.encoder_id}: {note}"), style="dim")
        console.print()
    if groups:
        console.print(
            "A high score alone is no evidence of learned composition: compare each encoder with its controls, with "
            "its untrained twin and with log-mel-statistics.",
            highlight=False,
        )


def _table(task: str, results: Sequence[Result]) -> Table:
    name = _TITLES[task]
    fewest, most = min(result.n for result in results), max(result.n for result in results)
    samples = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    title = Text(f"{name} on {results[0].dataset}, n = {samples}", style="bold")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("encoder", overflow="fold", vertical="bottom")
    for heading in (f"{name}\n± sd", "95 %\ninterval", *(heading for heading, _ in _COLUMNS[task])):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        collapsed = "†" if result.controls.get("collapsed") else ""
        table.add_row(
            Text(result.encoder_id),
            f"{_number(result.score)}±{_number(result.std)}{collapsed}",
            "-" if result.interval is None else "…".join(_number(bound, 2) for bound in result.interval),
            *(cell(result) for _, cell in _COLUMNS[task]),
        )
    return table


def _notes(result: Result) -> list[str]:
    """What has to be said of a result beside its numbers."""
    notes = []
    found = result.precision_deviation
    if found is not None:
        notes.append(
            f"computed in {result.options['precision']}; the embeddings of {found['clips']:.0f} clips are "
            f"{found['relative_mean']:.2%} (at most {found['relative_max']:.2%}) from those in float32, "
            f"{found['spread_ratio']:.2%} of what clips differ by"
        )
    if result.skipped:
        names = ", ".join(item["id"] for item in result.skipped[:3])
        more = f" and {len(result.skipped) - 3} more" if len(result.skipped) > 3 else ""
        notes.append(f"n = {result.n:,}, without the clips that could not be embedded: {names}{more}")
    return notes


def _number(value: float | None, digits: int = 3) -> str:
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


def print_encoders(infos: Iterable[EncoderInfo], console: Console | None = None) -> None:
    """Print what is known of the encoders that have a name, and how others are given."""
    console = console or Console(width=None if sys.stdout.isatty() else ENCODERS_WIDTH)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("dim", justify="right")
    table.add_column("rate\n(Hz)", justify="right")
    for heading in ("paradigm", "licence of\nthe weights", "weights from", "what it is"):
        table.add_column(heading, overflow="fold")
    for info in infos:
        dim = "?" if info.output_dim is None else str(info.output_dim)
        rate = "?" if info.sample_rate is None else f"{info.sample_rate:,}"
        words = (info.paradigm, info.licence, info.weights or "-", info.description)
        table.add_row(Text(info.name), dim, rate, *map(Text, words))
    console.print(table)
    console.print(
        "Also: NAME=PATH, its weights from a local file or folder; the Hub id or folder of any transformers audio "
        "model; path/to/file.py:ClassName, a class of your own; hear:MODULE, xares:FILE.py:CLASS, mteb:NAME, encoders "
        "of other suites; untrained:ID, the same architecture with fresh weights.",
        highlight=False,
    )
