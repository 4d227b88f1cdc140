"""Tables of docs/understand/results-appendix.md, as Markdown.

    audio-compositionality run whisper-tiny.en whisper-base --benchmark axes --set twin_seeds=0,1,2 --out results/axes
    python -m studies.tables axes results/axes

prints the table of the four axes from a folder with results of the benchmark `axes`. A trained model is in bold if the
95 % interval of its difference from each of its untrained twins, log-mel and modulation statistics, level-statistics
and rms is above 0. For several twins, the lowest and the highest number is given.

    python -m studies.tables instances --out results/instances

scores encoders on sounds, and prints the tables across instances; cached embeddings are not computed again. It scores
three draws of blocks for each kind of sound: the ladder and the differences come from the first draw, and the last
columns show the score of each draw. It needs the packages with weights that examples/README.md lists, the programs that
make the sounds (docs/how-to/data.md), and Whisper from the Hub or, as `--weights whisper-tiny.en=FOLDER`, from a copy.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, compare_results
from audio_compositionality.evaluator.compare.loading import ModelKind, baseline_listing
from audio_compositionality.evaluator.compare.statistics import compare_pairs
from audio_compositionality.evaluator.compare.task_verdicts import twins_of
from audio_compositionality.support.table import Cell, Column, Row, Table, to_markdown

Floats = NDArray[np.float64]
Clusters = NDArray[np.int64]

SHOWN = ("log-mel-statistics", "modulation-statistics", "level-statistics", "rms", "random")
"""Baselines with a column of their own."""

ROWS: Sequence[Mapping[str, Any]] = yaml.safe_load(Path(__file__).with_name("axes_table.yaml").read_text("utf-8"))
"""Title, task and measures of each row."""


def places(comparison: Comparison) -> dict[str, list[int]]:
    """Return the columns (each trained model, its twins, then the shown baselines): indices of results by heading."""
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


def less(first: Floats, second: Floats, clusters: Clusters) -> tuple[float, float, float, float | None]:
    """Return the paired difference of scores: mean, ends of its 95 % interval (NaN without one), and p."""
    test = compare_pairs(np.stack([first, second], axis=1), clusters).between(0, 1)
    sign = 1 if test.first == 0 else -1
    low, high = sorted(sign * end for end in test.interval or (np.nan, np.nan))
    return sign * test.difference, low, high, test.p


def differences(comparison: Comparison, name: str, place: int) -> dict[str, tuple[float, float, float]]:
    """Return the difference of a trained model from each reference that it must exceed: mean and 95 % interval, by
    label; empty without samples."""
    view = comparison.views.get(name)
    if view is None:
        return {}
    listings = [baseline_listing(result.result.model) for result in comparison.results]
    plain = [k for k, one in enumerate(listings) if one is not None and (one.is_level or one.is_reference)]
    return {
        comparison.labels[k]: less(view.values[:, place], view.values[:, k], view.clusters)[:3]
        for k in (*twins_of(comparison, place), *plain)
    }


def number(value: float | bool | None) -> str:
    """Format a number with two decimals and without the leading 0, as in the table."""
    if value is None:
        return "–"
    rounded = round(float(value), 2) + 0.0  # no −0
    text = f"{rounded:.2f}".replace("-", "−")
    return text.replace("0.", ".", 1) if abs(rounded) < 1 else text


def cell(comparison: Comparison, measures: Sequence[str], column: list[int]) -> str:
    """Return the numbers of a column: for several results the lowest and the highest."""
    texts = []
    for name in measures:
        values = [comparison.results[place].value(comparison.info.measure(name)) for place in column]
        low, *_, high = sorted(2 * [float(one) for one in values if one is not None]) or (None, None)
        texts.append(number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}")
    text = " / ".join(texts)
    first = comparison.results[column[0]]
    if first.kind is ModelKind.TRAINED and len(measures) == 1:
        margins = differences(comparison, measures[0], column[0])
        return f"**{text}**" if margins and all(low > 0 for _, low, _ in margins.values()) else text
    return text


def print_axes(folder: Path) -> None:
    """Print the table of the four axes, and the differences behind its bold numbers."""
    comparisons = {comparison.info.name: comparison for comparison in compare_results([folder])}
    # A model without a result in a task still has a column.
    widest: dict[str, list[int]] = max(map(places, comparisons.values()), key=len)
    headings = list(widest)
    print(f"| measure (its key in the result files) | {' | '.join(headings)} |\n|{'---|' * (len(headings) + 1)}")
    told = []
    for row in ROWS:
        if row["task"] not in comparisons:
            continue
        comparison, words, measures = comparisons[row["task"]], row["title"], row["measures"]
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


ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
CONTROLS = (
    "log-mel-statistics",
    "modulation-statistics",
    "mfcc-statistics",
    "level-statistics",
    "downsample",
    "random",
)
WHISPER = ("whisper-tiny.en", "untrained:whisper-tiny.en", "shuffled:whisper-tiny.en")
BASE = ("whisper-base", "untrained:whisper-base")


def with_twin(file: str, name: str) -> tuple[str, str]:
    """Return a class of one of the examples, and its untrained twin."""
    return f"{EXAMPLES / file}:{name}", f"{EXAMPLES / file}:Untrained{name}"


SPEECH = with_twin("speech_embedding.py", "SpeechEmbedding")
SOUNDS = (*with_twin("sound_effects.py", "AiSfx"), *with_twin("yamnet.py", "YAMNet"))

ENCODERS = {
    "words": (*WHISPER, *BASE, *SPEECH),
    "spoken": (*WHISPER, *SPEECH),
    "voices": with_twin("ge2e.py", "GE2E"),
    "creatures": (*WHISPER, *SOUNDS),
    "instruments": (*WHISPER, *SOUNDS),
    "prompts": (*SPEECH, *WHISPER, *BASE),
    "drums": (*SOUNDS, *WHISPER),
    "timbres": WHISPER,
}
"""Encoders by sounds; `timbres` come from the project's generator and need no programs."""

LADDER = ("alone_top1", "part_top1", "top1", "pairwise", "conflict", "step_adjusted", "fitted_part_top1", "fitted_top1")


def make(sounds: str, folder: Path) -> None:
    """Make sounds with the programs of this machine, unless they exist."""
    command = [sys.executable, "-m", "studies.sounds", sounds, "--out", str(folder.resolve())]
    subprocess.run(command, check=True, cwd=ROOT)


def evaluate(sounds: str, made: Path, draw: int, weights: dict[str, str], folder: Path) -> None:
    """Score the encoders for some sounds, and the controls, on the blocks of a draw."""
    names = [*ENCODERS[sounds], *CONTROLS]
    models = [f"{name}={weights[end]}" if (end := name.rpartition(":")[2]) in weights else name for name in names]
    recordings = [] if sounds == "timbres" else ["--data", str(made)]
    command = [sys.executable, "-m", "audio_compositionality", "evaluate", *models, "--tasks", "a_coat_instances"]
    # The first draw is the preset's own.
    drawn = ["--set", f"seed={draw}"] if draw else []
    subprocess.run([*command, *recordings, *drawn, "--out", str(folder)], check=True)


def table_of(sounds: str, draws: Sequence[Comparison]) -> Table:
    """Return means over blocks and the interval of the score from the first draw, and the score of every draw."""
    comparison = draws[0]
    score = comparison.info.score.name
    views = [comparison.views[name] for name in LADDER if name in comparison.views]
    rows = []
    for place, label in enumerate(comparison.labels):
        cells = [Cell(label)]
        for view in views:
            interval = view.intervals[place] if view.measure.name == score else None
            note = "" if interval is None else f"[{interval[0]:.2f}, {interval[1]:.2f}]"
            cells.append(Cell(float(view.means[place]), note=note))
        means = [mean_of(label, one, score) for one in draws]
        scored = [mean for mean in means if mean is not None]
        cells.append(Cell(", ".join("–" if mean is None else f"{mean:.2f}" for mean in means)))
        cells.append(Cell(float(np.std(scored, ddof=1)) if len(scored) > 1 else None))
        rows.append(Row(tuple(cells)))
    headings = [Column(view.measure.heading, digits=2) for view in views]
    every = (Column(f"{comparison.info.score.heading} of each draw", numeric=False), Column("SD of draws", digits=3))
    columns = (Column("model", numeric=False), *headings, *every)
    return Table(f"{sounds}, {len(comparison.ids)} blocks a draw", columns, tuple(rows))


def mean_of(label: str, comparison: Comparison, score: str) -> float | None:
    """Return the score of a model in a draw; None if it has no result."""
    if label not in comparison.labels or score not in comparison.views:
        return None
    return float(comparison.views[score].means[comparison.labels.index(label)])


def plain(name: str) -> str:
    """Return a normalised name of a class or a model: `SpeechEmbedding` and `speech-embedding` are equal."""
    return name.lower().replace("-", "")


def differences_of(sounds: str, comparison: Comparison) -> Table:
    """Return differences of the first encoder from every other model, with and without a map fitted with labels."""
    first = plain(Path(ENCODERS[sounds][0]).name.rpartition(":")[2])
    place = next((n for n, label in enumerate(comparison.labels) if plain(label) == first), 0)
    first = comparison.labels[place]
    rows = []
    for score in ("top1", "part_top1"):
        view, fitted = comparison.views[score], comparison.views[f"fitted_{score}"]
        against = [(label, view.values[:, n]) for n, label in enumerate(comparison.labels) if n != place]
        against += [(f"{label} + fitted map", fitted.values[:, n]) for n, label in enumerate(comparison.labels)]
        for label, values in against:
            difference, low, high, p = less(view.values[:, place], values, comparison.clusters)
            between = Cell(difference, note=f"[{low:.2f}, {high:.2f}]")
            chance = Cell(p, text="–" if p is None else f"{p:.1g}")
            rows.append(Row((Cell(label), Cell(view.measure.heading), between, chance)))
    columns = (Column("less", numeric=False), Column("measure", numeric=False), Column("difference", digits=2))
    return Table(f"{sounds}: {first} less …, paired over blocks", (*columns, Column("p, not adjusted")), tuple(rows))


def print_instances(arguments: argparse.Namespace) -> None:
    """Score the missing results, then print the tables across instances."""
    weights = dict(pair.split("=", 1) for pair in arguments.weights)
    for sounds in arguments.sounds:
        folders = [arguments.out / sounds / f"draw-{draw}" for draw in arguments.draws]
        if not arguments.tables:
            made = arguments.out / "sounds" / sounds
            if sounds != "timbres":
                make(sounds, made)
            for draw, folder in zip(arguments.draws, folders, strict=True):
                evaluate(sounds, made, draw, weights, folder)
        comparisons = [comparison for folder in folders for comparison in compare_results([folder])]
        for table in (table_of(sounds, comparisons), differences_of(sounds, comparisons[0])):
            print(to_markdown(table))


def main(typed: Sequence[str] | None = None) -> None:
    """Print the tables of a page."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.tables", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    pages = parser.add_subparsers(dest="page", required=True)
    axes = pages.add_parser("axes", help="the table of the four axes")
    axes.add_argument("results", type=Path, help="a folder with results")
    instances = pages.add_parser("instances", help="the tables across instances")
    instances.add_argument("--out", type=Path, default=Path("results/instances"), help="a folder for the results")
    instances.add_argument("--sounds", nargs="+", choices=ENCODERS, default=list(ENCODERS), help="default all")
    instances.add_argument("--weights", nargs="+", default=[], metavar="NAME=FOLDER", help="copies of Whisper")
    instances.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2], help="seeds of blocks; default 0 1 2")
    instances.add_argument("--tables", action="store_true", help="score nothing; tables of what is in the folder")
    arguments = parser.parse_args(typed)
    if arguments.page == "axes":
        print_axes(arguments.results)
    else:
        print_instances(arguments)


if __name__ == "__main__":
    main()
