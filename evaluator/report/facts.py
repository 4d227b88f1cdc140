"""Tables about runs: models, settings, versions, clips that were left out."""

from __future__ import annotations

from collections.abc import Sequence

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.tables import MODEL, versioned_title
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import listed, shortened

MOST_SKIPPED = 50
"""Most skipped clips in the list; the caption states the number of all."""

LONGEST_TEXT = 80
"""Most characters of a third party's name or reason."""


def fact_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """Return all tables of this module that have rows."""
    tables = [model_table(comparisons), run_table(comparisons), version_table(comparisons), skipped_table(comparisons)]
    return [table for table in tables if table is not None]


def model_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table of the evaluated models, each once per combination of settings."""
    rows: dict[Row, None] = {}
    for result in (result for comparison in comparisons for result in comparison.results):
        model = result.result.model
        options, weights = model.options, model.weights_sha256
        cells = (
            Cell(result.label),
            Cell(model.revision),
            Cell(None if weights is None else f"SHA-256 {weights[:12]}…"),
            Cell(model.paradigm),
            Cell(model.licence),
            Cell(model.parameters),
            Cell(model.output_dim),
            Cell(model.sample_rate),
            Cell(options.layer, "output" if options.layer is None else None),
            Cell(options.pooling or "default"),
            Cell(options.precision + (", compiled" if options.compile else "")),
            Cell(f"version {model.front_end_version}"),
        )
        rows.setdefault(Row(cells))
    columns = (
        MODEL,
        *(Column(heading, numeric=False) for heading in ("revision", "weights", "trained by", "licence")),
        *(Column(heading, digits=None) for heading in ("parameters", "dim", "rate (Hz)", "layer")),
        *(Column(heading, numeric=False) for heading in ("pooling", "precision", "front end")),
    )
    return Table("The models", columns, tuple(rows))


def run_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table of how each result was computed."""
    columns = (
        Column("model", numeric=False),
        Column("task", numeric=False),
        Column("settings", numeric=False),
        Column("device", numeric=False),
        Column("embedding (s)", "time to compute the embeddings or to read them from the cache", digits=1),
        Column("scoring (s)", digits=1),
        Column("date (UTC)", numeric=False),
    )
    rows = []
    for comparison in comparisons:
        for compared in comparison.results:
            result = compared.result
            settings = "; ".join(f"{name} {_setting(value)}" for name, value in result.settings.items())
            # Longer lists are curves, for a figure.
            fitted = {name: value for name, value in result.training.items() if 0 < len(value) <= _LONGEST_NOTE}
            training = "\n".join(f"{name} {_setting(value)}" for name, value in fitted.items())
            # The time for embeddings, and whether they were computed in this run.
            stage = next((stage for stage in _EMBEDDED if stage in result.seconds), None)
            cells = (
                Cell(compared.label),
                Cell(versioned_title(comparison.info, comparison.version)),
                Cell(settings or None, note=training),
                Cell(result.device),
                Cell(None) if stage is None else Cell(result.seconds[stage], note=_EMBEDDED[stage]),
                Cell(result.seconds.get("score")),
                Cell(result.date[:16].replace("T", " ")),
            )
            rows.append(Row(cells))
    return Table("The runs", columns, tuple(rows))


_EMBEDDED = {
    "embed": "",
    "embed_rest": "some read from the cache",
    "read": "read from the cache",
    "embed_layers": "one pass for several layers",
}
"""Stages of a run that provide embeddings, and the words for each."""

_LONGEST_NOTE = 10
"""Most numbers of a list printed with the settings, such as the steps of several fits."""


def _setting(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def version_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table of library versions, a row per combination."""
    combinations: dict[tuple[tuple[str, str], ...], dict[str, None]] = {}
    for result in (result for comparison in comparisons for result in comparison.results):
        combinations.setdefault(tuple(sorted(result.result.versions.items())), {})[result.label] = None
    names = sorted({name for versions in combinations for name, _ in versions})
    rows = []
    for versions, labels in combinations.items():
        who = "all models" if len(combinations) == 1 else listed([shortened(label, 40) for label in labels])
        by_name = dict(versions)
        rows.append(Row((Cell(who), *(Cell(by_name.get(name)) for name in names))))
    headings = (shortened(name, LONGEST_TEXT) for name in ("results of", *names))
    return Table("Versions", tuple(Column(heading, numeric=False) for heading in headings), tuple(rows))


def skipped_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Return the table of clips that could not be embedded; None if there are none."""
    skipped = [
        (comparison.info.title, result.label, clip)
        for comparison in comparisons
        for result in comparison.results
        for clip in result.result.skipped
    ]
    if not skipped:
        return None
    columns = tuple(Column(name, numeric=False) for name in ("model", "task", "clip", "reason"))
    rows = tuple(
        Row((Cell(label), Cell(title), Cell(clip.id), Cell(shortened(clip.reason, LONGEST_TEXT))))
        for title, label, clip in skipped[:MOST_SKIPPED]
    )
    more = f", the first {MOST_SKIPPED} of {len(skipped):,}" if len(skipped) > MOST_SKIPPED else ""
    return Table(f"Clips that could not be embedded{more}; their samples are left out", columns, rows)
