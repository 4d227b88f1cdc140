"""The tables of instances.md: sounds × encoders, by one command; what is embedded already is not embedded again.

    python docs/instances_table.py --out results/instances

scores three draws of blocks of each sounds: the ladder and the differences are of the first, the score of each draw
stands beside. It asks for the packages with weights that examples/README.md lists, for the programs that make the
sounds (data.md), and for Whisper from the Hub or, as `--weights whisper-tiny.en=FOLDER`, from a copy.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from audio_compositionality.evaluator.compare.comparison import Comparison, compare_results
from audio_compositionality.evaluator.compare.statistics import compare_pairs
from audio_compositionality.support.table import Cell, Column, Row, Table, to_markdown

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
CONTROLS = ("log-mel-statistics", "mfcc-statistics", "level-statistics", "downsample", "random")
WHISPER = ("whisper-tiny.en", "untrained:whisper-tiny.en", "shuffled:whisper-tiny.en")
BASE = ("whisper-base", "untrained:whisper-base")


def with_twin(file: str, name: str) -> tuple[str, str]:
    """A class of one of the examples, and its untrained twin."""
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
"""By sounds; `timbres` are the project's own, which need nothing."""

LADDER = ("alone_top1", "part_top1", "top1", "pairwise", "conflict", "step_adjusted", "fitted_part_top1", "fitted_top1")


def make(sounds: str, folder: Path) -> None:
    """Make sounds with the programs of this machine, where they are not made yet."""
    command = [sys.executable, "-m", "studies.sounds", sounds, "--out", str(folder.resolve())]
    subprocess.run(command, check=True, cwd=ROOT)


def evaluate(sounds: str, made: Path, draw: int, weights: dict[str, str], folder: Path) -> None:
    """Score the encoders of some sounds, and the controls, on the blocks of a draw."""
    names = [*ENCODERS[sounds], *CONTROLS]
    models = [f"{name}={weights[end]}" if (end := name.rpartition(":")[2]) in weights else name for name in names]
    recordings = [] if sounds == "timbres" else ["--data", str(made)]
    command = [sys.executable, "-m", "audio_compositionality", "evaluate", *models, "--tasks", "a_coat_instances"]
    # The first draw is that of the preset as it comes.
    drawn = ["--set", f"seed={draw}"] if draw else []
    subprocess.run([*command, *recordings, *drawn, "--out", str(folder)], check=True)


def table_of(sounds: str, draws: Sequence[Comparison]) -> Table:
    """The means over blocks of the ladder and the interval of the score, of the first draw; the score of every draw."""
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
        known = [mean for mean in means if mean is not None]
        cells.append(Cell(", ".join("–" if mean is None else f"{mean:.2f}" for mean in means)))
        cells.append(Cell(float(np.std(known, ddof=1)) if len(known) > 1 else None))
        rows.append(Row(tuple(cells)))
    headings = [Column(view.measure.heading, digits=2) for view in views]
    every = (Column(f"{comparison.info.score.heading} of each draw", numeric=False), Column("SD of draws", digits=3))
    columns = (Column("model", numeric=False), *headings, *every)
    return Table(f"{sounds}, {len(comparison.ids)} blocks a draw", columns, tuple(rows))


def mean_of(label: str, comparison: Comparison, score: str) -> float | None:
    """The score of a model in a draw; None where it is not among its results."""
    if label not in comparison.labels or score not in comparison.views:
        return None
    return float(comparison.views[score].means[comparison.labels.index(label)])


def plain(name: str) -> str:
    """A name of a class or of a model, in which `SpeechEmbedding` and `speech-embedding` are one."""
    return name.lower().replace("-", "")


def differences_of(sounds: str, comparison: Comparison) -> Table:
    """The first encoder of some sounds less every other model, and less what a map fitted with labels makes of it."""
    first = plain(Path(ENCODERS[sounds][0]).name.rpartition(":")[2])
    place = next((n for n, label in enumerate(comparison.labels) if plain(label) == first), 0)
    first = comparison.labels[place]
    rows = []
    for score in ("top1", "part_top1"):
        view, fitted = comparison.views[score], comparison.views[f"fitted_{score}"]
        against = [(label, view.values[:, n]) for n, label in enumerate(comparison.labels) if n != place]
        against += [(f"{label} + fitted map", fitted.values[:, n]) for n, label in enumerate(comparison.labels)]
        for label, values in against:
            pair = np.stack([view.values[:, place], values], axis=1)
            test = compare_pairs(pair, comparison.clusters)[0]
            sign = 1 if test.first == 0 else -1
            low, high = sorted(sign * end for end in test.interval or (np.nan, np.nan))
            rows.append(
                Row(
                    (
                        Cell(label),
                        Cell(view.measure.heading),
                        Cell(sign * test.difference, note=f"[{low:.2f}, {high:.2f}]"),
                        Cell(test.p, text="–" if test.p is None else f"{test.p:.1g}"),
                    )
                )
            )
    columns = (Column("less", numeric=False), Column("measure", numeric=False), Column("difference", digits=2))
    return Table(f"{sounds}: {first} less …, paired over blocks", (*columns, Column("p, not adjusted")), tuple(rows))


def main() -> None:
    """Score what has not been scored, then print all tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/instances"), help="a folder for the results")
    parser.add_argument("--sounds", nargs="+", choices=ENCODERS, default=list(ENCODERS), help="default all")
    parser.add_argument("--weights", nargs="+", default=[], metavar="NAME=FOLDER", help="copies of Whisper")
    parser.add_argument("--draws", nargs="+", type=int, default=[0, 1, 2], help="seeds of blocks; default 0 1 2")
    parser.add_argument("--tables", action="store_true", help="score nothing; tables of what is in the folder")
    arguments = parser.parse_args()
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


if __name__ == "__main__":
    main()
