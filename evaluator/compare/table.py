"""Results as tables in the terminal: each score with its spread, its interval and its controls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from audio_compositionality.encoders import EncoderInfo

from audio_compositionality.evaluator.results.result import Result

if TYPE_CHECKING:
    from audio_compositionality.studies.coral import Change, CoralCheck

PIPED_WIDTH = 100
"""Columns of the output where it does not go to a terminal; in a terminal, 80 suffice."""

ENCODERS_WIDTH = 160
"""The same for the list of encoders, which has more words."""

Cell = Callable[[Result], str]


def _control(name: str) -> Cell:
    return lambda result: number(result.controls.get(name))


_COLUMNS: Mapping[str, Sequence[tuple[str, Cell]]] = {
    "a_coat": (
        ("null", _control("null")),
        ("matched", _control("matched_null")),
        ("adjusted", _control("adjusted")),
        ("centred", _control("centred")),
        ("top-1", _control("top1")),
    ),
    "a_tre": (
        ("seed\nsd", lambda result: number(result.controls.get("seed_std"), 4)),
        ("con-\nstant", _control("constant")),
        ("gain", _control("gain")),
        ("centred", _control("a_tre_centred")),
        (
            "ridge R²\n(null)",
            lambda result: f"{number(result.controls['ridge_r2'], 2)}\n({number(result.controls['ridge_r2_null'], 2)})",
        ),
        ("top-1", _control("top1")),
    ),
}

TITLES = {"a_coat": "A-COAT", "a_tre": "A-TRE"}
"""The tasks as they are written for people."""

SAMPLES = {"a_coat": "quadruples", "a_tre": "test scenes"}
"""What a task's samples are."""

_LEGENDS = {
    "a_coat": (
        "null: the same cosine between steps of different quadruples; matched: of those with the same |T| and nearly "
        "the same level; adjusted: (score - null) / (1 - null), by the matched null where there is one; centred: "
        "after the mean step is taken away; top-1: how often the own step is the nearest of all (chance {chance})."
    ),
    "a_tre": (
        "± sd: over scenes; seed sd: of the means of several fits; constant: the score of the mean training embedding "
        "for all scenes; gain: (score - constant) / (1 - constant); centred: the score of a second fit, to what "
        "differs from that mean; ridge R²: variance that attribute counts alone explain (null: metadata permuted among "
        "scenes of equal size); top-1: how often the own embedding is the nearest to the centred prediction (chance "
        "{chance}); †: the predictions hardly vary."
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
        console.print(legend(chosen[0]), style="dim", highlight=False)
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
    name = TITLES[task]
    fewest, most = min(result.n for result in results), max(result.n for result in results)
    samples = f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"
    title = Text(f"{name} on {results[0].dataset}, n = {samples}", style="bold")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("\nencoder", overflow="fold")
    for heading in (f"{name}\n± sd", "95 %\ninterval", *(heading for heading, _ in _COLUMNS[task])):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        collapsed = "†" if result.controls.get("collapsed") else ""
        table.add_row(
            Text(result.encoder_id),
            f"{number(result.score)}{collapsed}\n±{number(result.std)}",
            "-" if result.interval is None else "…".join(number(bound, 2) for bound in result.interval),
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


def control_headings(task: str) -> list[str]:
    """Headings of the controls of a task, in one line each."""
    return [heading.replace("-\n", "").replace("\n", " ") for heading, _ in _COLUMNS[task]]


def control_cells(result: Result) -> list[str]:
    """The controls of a result as text, in the order of `control_headings`."""
    return [cell(result).replace("\n", " ") for _, cell in _COLUMNS[result.task]]


def legend(result: Result) -> str:
    """What the columns of a table of the result's task mean."""
    return _LEGENDS[result.task].format(chance=number(result.controls.get("top1_chance")))


def plain(text: str) -> str:
    """Text in one line, without characters that are not seen or that move others, such as a change of direction."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many decimals, without the sign of a rounded zero; "-" for None."""
    if value is None:
        return "-"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text


_CORAL_LEGEND = """\
before, after: adaptation of the synthetic embeddings to the mean and covariance of the recordings'. A difference near 0
speaks against an artefact of the synthetic clips' mean and covariance; nothing here says that natural sound would score
the same. 95 % interval: of the mean difference, paired over n quadruples or test scenes, BCa bootstrap, quadruples with
the same added sources T drawn together; "-" below 10 that are independent. The recordings are taken as given. A-TRE is
fitted anew after the adaptation, and the noise of the seeds is not in the interval. centred, top-1: as in the tables of
`evaluate`. distance: of the covariances of the clips that the adaptation was learnt from and of the recordings, 0 where
they are the same, 1 where they have no direction in common."""


def print_coral(check: CoralCheck, console: Console | None = None) -> None:
    """Print what adaptation to natural recordings changes, one row a measure, and below it what it means."""
    console = console or Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
    clips = f"{check.clips:,} clips of {check.files:,} recordings in {check.recordings}"
    caption = Text(f"CORAL: {check.encoder_id} on {check.dataset}, adapted to {clips}", style="bold")
    table = Table(title=caption, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("task", no_wrap=True)
    table.add_column("", no_wrap=True)
    for heading in ("before", "after", "difference", "95 % interval", "n", "clips"):
        table.add_column(heading, justify="right", no_wrap=True)
    for task in check.tasks:
        changes = {"score": task.score, "centred": task.centred, "top-1": task.top1, "distance": task.distance}
        counts = [(f"{task.n:,}", f"{task.clips:,}"), *[("", "")] * 3]
        titles = [TITLES[task.task], "", "", ""]
        for title, (name, change), count in zip(titles, changes.items(), counts, strict=True):
            table.add_row(title, name, *_change_cells(change), *count)
        table.add_section()
    console.print(table)
    console.print(_CORAL_LEGEND.replace("\n", " "), style="dim", highlight=False)
    if check.skipped:
        names = ", ".join(item["id"] for item in check.skipped[:3])
        more = f" and {len(check.skipped) - 3} more" if len(check.skipped) > 3 else ""
        console.print(Text(f"left out, since they cannot be read or embedded: {names}{more}"), style="dim")


def _change_cells(change: Change) -> tuple[str, ...]:
    interval = "-" if change.interval is None else "…".join(number(bound, 4) for bound in change.interval)
    return (number(change.before), number(change.after), number(change.difference, 4), interval)


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
