"""The results of docs/results.md and their figure: models × tasks × kinds of sound, with verdicts.

    python -m studies.results --out results/all --weights whisper-tiny.en=FOLDER whisper-base=FOLDER

makes the missing sounds, scores the missing results and writes the tables between the marks of the page, and the figure
beside it. A run that was stopped is resumed by the same command. `--only tones` takes one kind of sound, `--tables`
scores nothing. `RUNS` is the declared choice: it was made for two cores and an evening. It asks for the packages with
weights that examples/README.md lists and for the programs that make the sounds (`python -m studies.sounds`).

On a machine with a GPU and the Hub, `--hub` adds the audio encoders of arXiv 2603.13685 and CLAPs (`OF_THE_HUB`).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from audio_compositionality.encoders.loading.names import list_models, parse_name
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.conclusions import Verdicts, verdicts_of
from audio_compositionality.evaluator.compare.verdicts import Standing
from audio_compositionality.evaluator.figures.style import figure_style, figure_svg
from audio_compositionality.evaluator.report.matrix import Matrix, MatrixCell, MatrixRow, matrix_of
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import Cell, Column, Row, Table, to_markdown
from audio_compositionality.tasks.registry import load_tasks

from .tables import EXAMPLES, ROOT, make

WHISPERS = ("whisper-tiny.en", "whisper-base")
BOXED = "compa-clap-tiny"
SPEECH = f"{EXAMPLES / 'speech_embedding.py'}:SpeechEmbedding"
SPEAKERS = f"{EXAMPLES / 'ge2e.py'}:GE2E"
CLASSES = f"{EXAMPLES / 'yamnet.py'}:YAMNet"
EFFECTS = f"{EXAMPLES / 'sound_effects.py'}:AiSfx"
SMALL = (WHISPERS[0], BOXED, SPEECH, SPEAKERS, CLASSES, EFFECTS)
ENCODERS = (*WHISPERS, *SMALL[1:])


@dataclass(frozen=True)
class Run:
    """One command `audio-compositionality run`.

    Attributes:
        sounds: ``tones``, or the name of a maker of `studies.sounds`.
        models: named models, which come with their twins and controls; without any, the baselines alone.
        tasks: scored tasks; empty for all that the sounds allow.
        draws: seeds of the data; the verdicts are those of the first.
    """

    sounds: str
    models: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    draws: tuple[int, ...] = (0,)


AXES = (
    "informativeness",
    "equivariance",
    "disentanglement",
    "transform_equivariance",
    "transform_disentanglement",
    "invariance",
    "onset_invariance",
    "rate_binding",
)
PARTS = ("a_coat_instances", "binding")
TEXTS = ("comp_a_order", "comp_a_attribute", "audio_text_retrieval", "zero_shot_audio")
DRAWS = (0, 1, 2)

RUNS = (
    Run("tones", ENCODERS, ("a_coat", "a_tre")),
    Run("tones", ENCODERS, PARTS, DRAWS),
    Run("tones", SMALL, ("a_tre_held_out", *AXES)),
    Run("tones", (BOXED,), TEXTS, DRAWS),
    Run("tones", (), ("polybench",)),
    Run("words", ENCODERS, PARTS, DRAWS),
    *(Run(name, SMALL, PARTS, DRAWS) for name in ("spoken", "prompts", "creatures", "instruments", "drums")),
    *(Run(name, (BOXED,), ("comp_a_order",)) for name in ("words", "creatures", "instruments", "drums")),
)
"""The declared choice: every model that can be had without the Hub, the larger Whisper on tones and words alone; three
draws where these cost no new fits."""

OF_THE_HUB = tuple(
    one.name
    for one in list_models()
    if one.source is not None
    and one.name != BOXED
    and (one.name == "whisper-large-v3" or not one.name.startswith("whisper-"))
)
"""The other pretrained models, of Whisper the largest."""

PAGE = ROOT / "docs" / "results.md"
FIGURE = ROOT / "docs" / "images" / "results.svg"
BEGIN, END = "<!-- tables: written by python -m studies.results -->", "<!-- end of tables -->"


def folder_of(out: Path, run: Run, draw: int) -> Path:
    """The folder of the results of a run on one draw: runs on the same sounds share it."""
    return out / run.sounds / f"draw-{draw}"


def command_of(run: Run, draw: int, out: Path, weights: Mapping[str, str]) -> list[str]:
    """The command line of a run on one draw."""
    models = [f"{name}={weights[name]}" if name in weights else name for name in run.models]
    made = [] if run.sounds == "tones" else ["--data", str(out / "sounds" / run.sounds)]
    tasks = ["--tasks", ",".join(run.tasks)] if run.tasks else []
    drawn = ["--set", f"seed={draw}"] if draw else []
    command = [sys.executable, "-m", "audio_compositionality", "run", *models]
    return [*command, *made, *tasks, *drawn, "--out", str(folder_of(out, run, draw))]


def score(runs: Sequence[Run], out: Path, weights: Mapping[str, str]) -> None:
    """Make the missing sounds and score the missing results; says what each command took."""
    every = [(run, draw) for run in runs for draw in run.draws]
    for number, (run, draw) in enumerate(every, 1):
        if run.sounds != "tones":
            make(run.sounds, out / "sounds" / run.sounds)
        started = time.monotonic()
        subprocess.run(command_of(run, draw, out, weights), check=True)
        minutes = (time.monotonic() - started) / 60
        print(f"{number} of {len(every)}: {run.sounds}, draw {draw}, {minutes:.1f} min", file=sys.stderr, flush=True)


def verdicts_in(folder: Path, data: Path | None) -> Verdicts:
    """The verdicts on the results of a folder."""
    return verdicts_of(compare_results([folder], data=data))


def table_of(sounds: str, matrix: Matrix) -> Table:
    """The matrix of a kind of sound as a table: a row a model or control, a column a task."""
    columns = (
        Column("model", numeric=False),
        *(Column(f"{title}: {measure}", numeric=False) for title, measure in matrix.tasks),
    )
    rows = [Row((_named(row), *map(_cell, row.cells))) for row in (*matrix.judged, *matrix.beside)]
    return Table(f"{sounds[:1].upper()}{sounds[1:]}", columns, tuple(rows))


def _named(row: MatrixRow) -> Cell:
    """The name of a model, of a class in a file without the folder; what is no model is called so."""
    return Cell(row.label.rpartition("/")[2], note="" if row.standing is not None else row.kind)


def _cell(cell: MatrixCell) -> Cell:
    return Cell(f"{cell.sign} {cell.text}".strip() or "–")


def table_of_draws(sounds: str, draws: Sequence[Verdicts]) -> Table | None:
    """The score of each draw and their standard deviation, by task and model; None of a single draw."""
    if len(draws) < 2:
        return None
    rows = []
    for comparison in draws[0].comparisons:
        name = comparison.info.ranks_by
        others = [one for draw in draws[1:] for one in draw.comparisons if one.info.name == comparison.info.name]
        for label in comparison.labels:
            scored = [
                float(one.views[name].means[one.labels.index(label)])
                for one in (comparison, *others)
                if name in one.views and label in one.labels
            ]
            if len(scored) < 2:
                continue
            texts = ", ".join(f"{value:.2f}" for value in scored)
            spread = float(np.std(scored, ddof=1))
            rows.append(Row((Cell(comparison.info.title), Cell(label), Cell(texts), Cell(spread))))
    columns = (
        Column("task", numeric=False),
        Column("model", numeric=False),
        Column("score of each draw", numeric=False),
        Column("SD", digits=3),
    )
    return Table(f"{sounds[:1].upper()}{sounds[1:]}, by draw", columns, tuple(rows)) if rows else None


COLOURS = {
    Standing.ABOVE: "#1b7837",
    Standing.BELOW: "#b35806",
    Standing.NOT_SHOWN: "#d9d9d9",
    Standing.UNKNOWN: "#ffffff",
}
"""Readable without red beside green; the signs say the same."""


def drawn(matrices: Mapping[str, Matrix]) -> Figure:
    """The judged models by tasks and kinds of sound: number and sign in each square, its colour the verdict."""
    tasks = [(sounds, n) for sounds, matrix in matrices.items() for n in range(len(matrix.tasks))]
    labels = list(dict.fromkeys(row.label for matrix in matrices.values() for row in matrix.judged))
    rows = {sounds: {row.label: row for row in matrix.judged} for sounds, matrix in matrices.items()}
    figure = Figure(figsize=(1.6 + 0.45 * len(labels), 1.4 + 0.2 * len(tasks)))
    axes = figure.subplots()
    for y, (sounds, n) in enumerate(tasks):
        for x, label in enumerate(labels):
            row = rows[sounds].get(label)
            cell = None if row is None else row.cells[n]
            if cell is None or cell.standing is None:
                continue
            colour = COLOURS[cell.standing]
            axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=colour, edgecolor="#bbbbbb", lw=0.4))
            is_dark = sum(to_rgb(colour)) < 1.5
            axes.text(
                x, y, f"{cell.sign} {cell.text}", ha="center", va="center", fontsize=6,
                color="white" if is_dark else "black",
            )  # fmt: skip
    axes.set_xlim(-0.5, len(labels) - 0.5)
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    names = [label.rpartition("/")[2].rpartition(":")[2] or label for label in labels]
    axes.set_xticks(range(len(labels)), names, rotation=40, ha="left", fontsize=7)
    axes.xaxis.tick_top()
    titles = [f"{matrices[sounds].tasks[n][0]}, {sounds}" for sounds, n in tasks]
    axes.set_yticks(range(len(tasks)), titles, fontsize=7)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return figure


def write_page(out: Path, sounds: Sequence[str], page: Path = PAGE, figure: Path = FIGURE) -> None:
    """Write the tables between the marks of the page, and the figure.

    Args:
        out: the folder of all results.
        sounds: kinds of sound with results there.
        page: Markdown with the marks.
        figure: an SVG file.
    """
    matrices, texts = {}, []
    for name in sounds:
        folders = sorted((out / name).glob("draw-*"))
        data = None if name == "tones" else out / "sounds" / name
        draws = [verdicts_in(folder, data) for folder in folders]
        titles = [comparison.info.title for comparison in draws[0].comparisons]
        matrices[name] = matrix_of(draws[0], titles)
        tables = [table_of(name, matrices[name]), table_of_draws(name, draws)]
        texts += [*(to_markdown(table) for table in tables if table is not None), *draws[0].sentences, ""]
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    write_whole(page, "\n".join([before + BEGIN, "", *texts, END + after]))
    with figure_style():
        write_whole(figure, figure_svg(drawn(matrices)))


def main(typed: Sequence[str] | None = None) -> None:
    """Score, and write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.results", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = list(dict.fromkeys(run.sounds for run in RUNS))
    parser.add_argument("--out", type=Path, default=Path("results/all"), help="a folder for sounds and results")
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="SOUNDS", help=", ".join(names))
    parser.add_argument("--weights", nargs="+", default=[], metavar="NAME=FOLDER", help="copies of Whisper")
    parser.add_argument("--hub", action="store_true", help="the models of the Hub too")
    parser.add_argument("--tables", action="store_true", help="score nothing; write what is there")
    arguments = parser.parse_args(typed)
    runs = [run for run in RUNS if run.sounds in arguments.only]
    if arguments.hub:
        runs = [replace(run, models=(*run.models, *_fitting(run))) for run in runs]
    if not arguments.tables:
        score(runs, arguments.out, dict(pair.split("=", 1) for pair in arguments.weights))
    write_page(arguments.out, [name for name in names if (arguments.out / name / "draw-0").is_dir()])


def _fitting(run: Run) -> tuple[str, ...]:
    """The models of the Hub that can do the tasks of a run."""
    tasks = load_tasks(run.tasks)
    return tuple(name for name in OF_THE_HUB if all(parse_name(name).listing.can_do(task.info.needs) for task in tasks))


if __name__ == "__main__":
    main()
