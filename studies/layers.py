"""Layers: the scores of every hidden layer of a model and of its untrained twin.

    python -m studies.layers --out results/downstream --figures docs/images

reads the files that `python -m studies.downstream` wrote to the folder, prints a table of docs/understand/layers.md as
Markdown, and with `--figures` draws one figure per model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from audio_compositionality.evaluator.figures.style import figure_style, figure_svg
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import Column, Table, rows_of, to_markdown

from .tables import number

SCORES = (
    *("A-COAT adjusted", "A-TRE centred (ridge)", "Instances: alone", "Instances: scene"),
    *("Informativeness", "Equivariance", "Invariance", "Disentanglement"),
)
"""The scores that are drawn, by their titles in `studies.downstream`."""

PLAIN = "log-mel-statistics"
"""The description whose score each panel shows for comparison."""

Layers = Mapping[int, Mapping[str, float]]
"""By layer, the scores of a model."""


def read_layers(folder: Path) -> dict[str, Layers]:
    """Return by model the scores of its layers, for models with several layers and for `PLAIN`."""
    models: dict[str, dict[int, Mapping[str, float]]] = {}
    for path in folder.glob("representations/*.json"):
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
        _, _, layer = found["representation"].partition("@")
        models.setdefault(found["model"], {})[int(layer or 0)] = found["scores"]
    return {name: layers for name, layers in models.items() if len(layers) > 1 or name == PLAIN}


def trained(models: Mapping[str, Layers]) -> list[str]:
    """Return the names of the models that have an untrained twin, in alphabetical order."""
    return sorted(name for name in models if f"untrained-{name}" in models)


def table_of(models: Mapping[str, Layers]) -> Table:
    """Return a row per model: in each score the layer 0, the middle and the output, each with the twin's."""
    rows = []
    for name in trained(models):
        last = max(models[name])
        cells = []
        for score in SCORES:
            own, twin = (models[who] for who in (name, f"untrained-{name}"))
            shown = [f"{number(own[layer][score])} ({number(twin[layer][score])})" for layer in (0, last // 2, last)]
            cells.append(", ".join(shown))
        rows.append([name, f"0, {last // 2}, {last}", *cells])
    columns = tuple(Column(heading, numeric=False) for heading in ("model", "layers", *SCORES))
    return Table("Scores of layers, with the untrained twin's in parentheses", columns, rows_of(rows))


def figure_of(name: str, models: Mapping[str, Layers]) -> Figure:
    """Return the scores of a model by layer, one panel per score, with its twin and `PLAIN` for comparison."""
    with figure_style():
        figure = Figure(figsize=(7.5, 4.0), layout="constrained")
        panels = figure.subplots(2, len(SCORES) // 2, sharex=True).ravel()
        for panel, score in zip(panels, SCORES, strict=True):
            for who, colour, label in ((name, "#2a788e", name), (f"untrained-{name}", "#c8652b", "untrained twin")):
                depths = sorted(models[who])
                values = [np.nan if (value := models[who][depth][score]) is None else value for depth in depths]
                panel.plot(depths, values, "o-", color=colour, markersize=3, linewidth=1.5, label=label)
            panel.axhline(models[PLAIN][0][score], color="#8a929c", linewidth=0.8, linestyle="--", label=PLAIN)
            panel.set_title(score, fontsize=9)
        for panel in panels[len(SCORES) // 2 :]:
            panel.set_xlabel("layer", fontsize=9)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


def main(typed: Sequence[str] | None = None) -> None:
    """Print the table, and draw the figures."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.layers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/downstream"), help="the folder of studies.downstream")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="draw layers-MODEL.svg for each model")
    options = parser.parse_args(typed)
    models = read_layers(options.out)
    if PLAIN not in models or not trained(models):
        parser.exit(
            1, f"error: {options.out} has no layers of a model with its twin and {PLAIN}: run studies.downstream\n"
        )
    print(to_markdown(table_of(models)))
    for name in trained(models) if options.figures else ():
        write_whole(options.figures / f"layers-{name}.svg", figure_svg(figure_of(name, models)))


if __name__ == "__main__":
    main()
