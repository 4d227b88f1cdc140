"""The results: models on tasks and sounds, each with its verdict, as tables of docs/understand/results-appendix.md.

    python -m studies.results --out results/study --weights whisper-tiny.en=FOLDER whisper-base=FOLDER

scores what is missing in the folder, run by run, and writes the tables between the marks of the page; the same command
resumes an interrupted study. It needs the packages with weights that examples/README.md lists, and the programs that
make the sounds (docs/how-to/data.md). A run without its packages or programs is left out, and the page names it.
`--page FILE` is another page, `--figure FILE.svg` draws the verdicts. `--hub` adds models of the Hub; `--only NAME`
scores single runs, `--tables` none; the tables are of all results in the folder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.model_verdicts import Verdicts, verdicts_of
from audio_compositionality.evaluator.compare.task_verdicts import Standing
from audio_compositionality.evaluator.figures.style import figure_style, figure_svg
from audio_compositionality.evaluator.report.matrix import Matrix, matrix_of
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import Column, Table, rows_of, to_markdown

from .tables import EXAMPLES, make

BEGIN, END = "<!-- tables: written by python -m studies.results -->", "<!-- end of tables -->"
"""Lines of the page, between which the tables are written."""

PAGE = Path(__file__).parents[1] / "docs" / "understand" / "results-appendix.md"

TONES = "tones"
"""Our own FM tones, which need no further program."""

BOX = "compa-clap-tiny"
WHISPERS = ("whisper-tiny.en", "whisper-base")
SPEECH = f"{EXAMPLES / 'speech_embedding.py'}:SpeechEmbedding"
SPEAKERS = f"{EXAMPLES / 'ge2e.py'}:GE2E"
SOUND = (f"{EXAMPLES / 'yamnet.py'}:YAMNet", f"{EXAMPLES / 'sound_effects.py'}:AiSfx")
MUSIC = tuple(
    f"{EXAMPLES / name}"
    for name in (
        "crepe.py:Crepe",
        "crepe.py:CrepeFull",
        "pesto.py:Pesto",
        "basic_pitch.py:BasicPitch",
        "musicnn.py:Musicnn",
        "musicnn.py:MusicnnMsd",
    )
)
"""Models of pitch and music."""
EVERY = (BOX, *WHISPERS, SPEECH, SPEAKERS, *SOUND, *MUSIC)
"""All encoders that need no Hub; `run` adds their untrained twins and the baselines."""

HUB = (
    *("laion-clap", "ms-clap-2022", "ms-clap-2023"),
    *("panns-cnn14", "passt-s", "whisper-large-v2", "af-whisper", "audiomae", "beats-iter3"),
)
"""Encoders whose weights are downloaded: audio–text models, then the other encoders of arXiv 2603.13685."""


@dataclass(frozen=True)
class Run:
    """Models scored in tasks on one kind of sound.

    Attributes:
        name: name of its folder, also used by `--only`.
        sounds: `TONES`, or the name of a maker of `studies.sounds`.
        tasks: their names.
        models: as `run` takes them; none for the baselines alone.
        draws: seeds of the data; the verdicts are of the first.
        settings: sizes other than in the preset mini.
    """

    name: str
    sounds: str
    tasks: tuple[str, ...]
    models: tuple[str, ...]
    draws: tuple[int, ...] = (0,)
    settings: Mapping[str, int] = field(default_factory=dict)

    def folders(self, out: Path) -> list[Path]:
        """Return the folder of each draw."""
        return [out / self.name / f"draw-{draw}" for draw in self.draws]


ACROSS = ("a_coat_instances", "binding")

KINDS_IN_FRAMES = ("when_frames",)
KINDS_IN_CAPTIONS = ("negation", "count_instances_text", "composed_retrieval")
KINDS_IN_QUESTIONS = ("negation_questions", "count_instances_questions", "two_clips")

RUNS = (
    Run("tones", TONES, ("a_coat",), EVERY, (0, 1, 2)),
    Run("tones-a-tre", TONES, ("a_tre",), EVERY),
    Run("captions", TONES, ("comp_a_order", "comp_a_attribute"), (BOX,), (0, 1, 2)),
    Run("words", "words", ACROSS, (BOX, WHISPERS[0], SPEECH)),
    Run("spoken", "spoken", ("a_coat_instances",), (WHISPERS[0], SPEECH)),
    Run("prompts", "prompts", ("a_coat_instances",), (WHISPERS[0], SPEECH)),
    Run("creatures", "creatures", ("a_coat_instances",), (WHISPERS[0], *SOUND)),
    Run("instruments", "instruments", ("a_coat_instances",), (WHISPERS[0], *SOUND)),
    Run("drums", "drums", ("a_coat_instances",), (WHISPERS[0], *SOUND)),
    Run("axes", TONES, ("disentanglement", "equivariance", "invariance"), (BOX, WHISPERS[0])),
    Run("questions", TONES, ("polybench",), ()),
    Run("kinds-frames-tones", TONES, KINDS_IN_FRAMES, WHISPERS),
    *(Run(f"kinds-frames-{sounds}", sounds, KINDS_IN_FRAMES, WHISPERS[:1]) for sounds in ("words", "prompts")),
    *(Run(f"kinds-captions-{sounds}", sounds, KINDS_IN_CAPTIONS, (BOX,)) for sounds in (TONES, "words", "prompts")),
    Run("kinds-questions", TONES, KINDS_IN_QUESTIONS, ()),
)
"""All runs, cheap and informative ones first."""


def chosen_runs(only: Sequence[str], with_hub: bool) -> tuple[Run, ...]:
    """Return the runs with the given names, all by default.

    Raises:
        InputError: no run has one of the names.
    """
    names = [run.name for run in RUNS]
    unknown = next((name for name in only if name not in names), None)
    if unknown is not None:
        raise InputError(f"there is no run {unknown!r}; there are {', '.join(names)}")
    taken = [run for run in RUNS if not only or run.name in only]
    if not with_hub:
        return tuple(taken)
    return tuple(replace(run, models=(*run.models, *HUB) if run.models else ()) for run in taken)


def command_of(run: Run, draw: int, folder: Path, made: Path, weights: Mapping[str, str]) -> list[str]:
    """Return the command that scores a draw of a run; existing results are not computed again."""
    models = [f"{name}={weights[name]}" if name in weights else name for name in run.models]
    return [
        *(sys.executable, "-m", "audio_compositionality", "run" if run.models else "evaluate"),
        *(models or ("random", "blind", "majority", "first", "statistics", "spectrum-comparer")),
        *("--tasks", ",".join(run.tasks), "--out", str(folder)),
        *([] if run.sounds == TONES else ["--data", str(made)]),
        *(["--set", f"seed={draw}"] if draw else []),
        *(word for name, value in run.settings.items() for word in ("--set", f"{name}={value}")),
    ]


def score(runs: Sequence[Run], out: Path, weights: Mapping[str, str]) -> dict[str, str]:
    """Score all runs, one after the other.

    Returns:
        for each run that failed, by name, its command that failed; a failure does not stop the other runs.
    """
    failed = {}
    for number, run in enumerate(runs, 1):
        started = time.monotonic()
        made = out / "sounds" / run.sounds
        try:
            if run.sounds != TONES:
                make(run.sounds, made)
            for draw, folder in zip(run.draws, run.folders(out), strict=True):
                subprocess.run(command_of(run, draw, folder, made, weights), check=True)
        except subprocess.CalledProcessError as error:
            failed[run.name] = f"`{' '.join(map(str, error.cmd[1:5]))} …` ended with {error.returncode}"
        minutes = (time.monotonic() - started) / 60
        print(f"{number} of {len(runs)}: {run.name}, {failed.get(run.name, f'{minutes:.1f} min')}", flush=True)
    return failed


# ----- the page


@dataclass(frozen=True)
class RunVerdicts:
    """A run that was scored.

    Attributes:
        run: the run.
        draws: the verdicts of each draw with results, in order.
    """

    run: Run
    draws: tuple[Verdicts, ...]

    @property
    def matrix(self) -> Matrix:
        """Return scores and standings of the first draw."""
        return matrix_of(self.draws[0])


def read(runs: Sequence[Run], out: Path) -> Iterator[RunVerdicts]:
    """Yield the runs that have results, with verdicts computed from them."""
    for run in runs:
        folders = [folder for folder in run.folders(out) if any(folder.rglob("*.json"))]
        if folders:
            yield RunVerdicts(run, tuple(verdicts_of(compare_results([folder])) for folder in folders))


def table_of(scored: RunVerdicts) -> Table:
    """Return one row per model: for each task the score and sign in the first draw and, if there are several, all
    draws."""
    first, *later = (matrix_of(verdicts) for verdicts in scored.draws)
    rows = []
    for row in first.rows:
        cells = [f"{cell.sign} {cell.text}".strip() or "–" for cell in row.cells]
        rest = []
        for place in range(len(first.tasks)) if later else ():
            texts = [one.cells[place].text for other in later for one in other.rows if one.label == row.label]
            rest.append(", ".join([row.cells[place].text, *texts]))
        rows.append([row.label, row.kind, *cells, *rest])
    headings = [title if measure == title else f"{title}, {measure}" for title, measure in first.tasks]
    every = [f"{heading}, every draw" for heading in headings] if later else []
    columns = [Column(name, numeric=False) for name in ("model", "what it is", *headings, *every)]
    sounds = scored.run.sounds
    heard = scored.draws[0].comparisons[0].data_name if sounds == TONES else f"sounds {sounds} of studies.sounds"
    return Table(f"{scored.run.name}, {heard}", tuple(columns), rows_of(rows))


def page_text(scored: Sequence[RunVerdicts], missing: Sequence[str], failed: Mapping[str, str]) -> str:
    """Return the tables, each below the sentences of its verdicts, and the names of what was not scored."""
    parts = []
    for one in scored:
        sentences = [*one.draws[0].sentences, *one.draws[0].orders]
        parts.append("\n\n".join([f"### {one.run.name}", " ".join(sentences), to_markdown(table_of(one)).strip()]))
    told = [f"{name} ({failed[name]})" if name in failed else name for name in missing]
    if told:
        parts.append(f"Not scored: {', '.join(told)}.")
    return "\n\n".join(parts) + "\n"


def write_tables(page: Path, text: str) -> None:
    """Write the tables between the marks of a page.

    Raises:
        InputError: the page lacks them.
    """
    before, begin, rest = page.read_text("utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise InputError(f"{page} has no lines {BEGIN!r} and {END!r}, between which the tables go")
    write_whole(page, f"{before}{BEGIN}\n\n{text}\n{END}{after}")


COLOURS = {
    Standing.ABOVE: ("#2a788e", "#ffffff"),
    Standing.BELOW: ("#f3b79b", "#5c1a00"),
    Standing.NOT_SHOWN: ("#e3e7ec", "#3c444e"),
    Standing.UNKNOWN: ("#ffffff", "#545d68"),
}
"""The colours of a cell and of its text, as in reports: from dark to light, so that they differ in grey."""


def figure_of(scored: Sequence[RunVerdicts]) -> Figure:
    """Draw sounds and tasks against the judged models; a cell has the score of the first draw, its sign and its
    colour."""
    rows = [(one.run.sounds, place, one.matrix) for one in scored for place in range(len(one.matrix.tasks))]
    rows = [row for row in rows if row[2].judged]
    labels = list(dict.fromkeys(row.label for _, _, matrix in rows for row in matrix.judged))
    with figure_style():
        figure = Figure(figsize=(2.0 + 0.7 * len(labels), 0.8 + 0.29 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        for y, (_, place, matrix) in enumerate(rows):
            for row in matrix.judged:
                cell, x = row.cells[place], labels.index(row.label)
                if cell.standing is None:
                    continue
                ground, ink = COLOURS[cell.standing]
                corner = x - 0.47, y - 0.45
                axes.add_patch(Rectangle(corner, 0.94, 0.9, facecolor=ground, edgecolor="#d3d9e0", linewidth=0.5))
                axes.text(x, y, f"{cell.sign} {cell.text}", color=ink, ha="center", va="center", fontsize=9)
        axes.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(rows) - 0.5, -0.5))
        axes.set_xticks(range(len(labels)), [_two_lines(label.rpartition(":")[2]) for label in labels], fontsize=9)
        heads = [f"{sounds}: {matrix.tasks[place][0]}" for sounds, place, matrix in rows]
        axes.set_yticks(range(len(rows)), heads, fontsize=9)
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.grid(visible=False)
        for side in axes.spines.values():
            side.set_visible(False)
    return figure


def _two_lines(label: str) -> str:
    """Break a label at its last hyphen, so that it does not overlap its neighbours."""
    start, hyphen, end = label.rpartition("-")
    return f"{start}{hyphen}\n{end}" if start else label


def main(typed: Sequence[str] | None = None) -> None:
    """Score what is missing, then print or write the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.results", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/study"), help="a folder for sounds and results")
    parser.add_argument("--weights", nargs="+", default=[], metavar="NAME=FOLDER", help="copies of Whisper")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help=f"runs: {', '.join(r.name for r in RUNS)}"
    )
    parser.add_argument("--hub", action="store_true", help=f"with {', '.join(HUB)} as well, for a machine with a GPU")
    parser.add_argument("--tables", action="store_true", help="score nothing; write the tables of the folder")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page with the marks; default: results-appendix.md")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="draw the verdicts")
    options = parser.parse_args(typed)
    try:
        runs = chosen_runs(options.only, options.hub)
        weights = dict(pair.split("=", 1) for pair in options.weights)
        failed = {} if options.tables else score(runs, options.out, weights)
        every = chosen_runs([], options.hub)
        scored = list(read(every, options.out))
        there = {one.run.name for one in scored}
        text = page_text(scored, [run.name for run in every if run.name not in there], failed)
        write_tables(options.page, text)
        if options.figure is not None:
            write_whole(options.figure, figure_svg(figure_of(scored)))
    except InputError as error:
        parser.exit(1, f"error: {error}\n")


if __name__ == "__main__":
    main()
