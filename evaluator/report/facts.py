"""The tables about runs: models, settings, versions, clips that were left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from audio_compositionality.evaluator.compare.comparison import Comparison
from audio_compositionality.evaluator.compare.loading import ComparedResult
from audio_compositionality.evaluator.compare.tables import MODEL, versioned_title
from audio_compositionality.evaluator.results.result import ScoredModel
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.support.text import listed, shortened

MOST_SKIPPED = 50
"""Most skipped clips in the list; the rest only as a number."""

LONGEST_TEXT = 80
"""Most characters of a stranger's name or reason."""


def fact_tables(comparisons: Sequence[Comparison]) -> list[Table]:
    """All tables of this module."""
    tables = [model_table(comparisons), run_table(comparisons), version_table(comparisons), skipped_table(comparisons)]
    return [table for table in tables if table is not None]


def _weights(model: ScoredModel) -> str | None:
    return None if model.weights_sha256 is None else f"SHA-256 {model.weights_sha256[:12]}…"


def _layer(model: ScoredModel) -> Cell:
    return Cell(model.options.layer, "output" if model.options.layer is None else None)


def _precision(model: ScoredModel) -> str:
    return model.options.precision + (", compiled" if model.options.compile else "")


_MODEL_COLUMNS: tuple[tuple[Column, Callable[[ScoredModel], Cell]], ...] = (
    (Column("revision", numeric=False), lambda model: Cell(model.revision)),
    (Column("weights", numeric=False), lambda model: Cell(_weights(model))),
    (Column("trained by", numeric=False), lambda model: Cell(model.paradigm)),
    (Column("licence", numeric=False), lambda model: Cell(model.licence)),
    (Column("parameters", digits=None), lambda model: Cell(model.parameters)),
    (Column("dim", digits=None), lambda model: Cell(model.output_dim)),
    (Column("rate (Hz)", digits=None), lambda model: Cell(model.sample_rate)),
    (Column("layer", digits=None), _layer),
    (Column("pooling", numeric=False), lambda model: Cell(model.options.pooling or "default")),
    (Column("precision", numeric=False), lambda model: Cell(_precision(model))),
    (Column("front end", numeric=False), lambda model: Cell(f"version {model.front_end_version}")),
)


def model_table(comparisons: Sequence[Comparison]) -> Table:
    """The evaluated models: each once, or once per combination of settings."""
    rows: dict[Row, None] = {}
    for result in _results(comparisons):
        rows.setdefault(Row((Cell(result.label), *(cell(result.result.model) for _, cell in _MODEL_COLUMNS))))
    return Table("The models", (MODEL, *(column for column, _ in _MODEL_COLUMNS)), tuple(rows))


def run_table(comparisons: Sequence[Comparison]) -> Table:
    """How each result was computed."""
    columns = (
        Column("model", numeric=False),
        Column("task", numeric=False),
        Column("settings", numeric=False),
        Column("device", numeric=False),
        Column("embedding (s)", "time to compute the embeddings or to read them from the store", digits=1),
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
            cells = (
                Cell(compared.label),
                Cell(versioned_title(comparison.info, comparison.version)),
                Cell(settings or None, note=training),
                Cell(result.device),
                _embedding_cell(result.seconds),
                Cell(result.seconds.get("score")),
                Cell(result.date[:16].replace("T", " ")),
            )
            rows.append(Row(cells))
    return Table("The runs", columns, tuple(rows))


_EMBEDDED = {
    "embed": "",
    "embed_rest": "some read from the store",
    "read": "read from the store",
    "embed_layers": "one pass for several layers",
}
"""Stages of a run that provide embeddings, and the words for each."""


def _embedding_cell(seconds: Mapping[str, float]) -> Cell:
    """The time for embeddings, and whether they were computed in this run."""
    stage = next((stage for stage in _EMBEDDED if stage in seconds), None)
    return Cell(None) if stage is None else Cell(seconds[stage], note=_EMBEDDED[stage])


_LONGEST_NOTE = 10
"""Most numbers of a list beside the settings: the steps of as many fits."""


def _setting(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def version_table(comparisons: Sequence[Comparison]) -> Table:
    """Versions of libraries, a row per combination."""
    combinations: dict[tuple[tuple[str, str], ...], dict[str, None]] = {}
    for result in _results(comparisons):
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
    """Clips that could not be embedded; None where there are none."""
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


def _results(comparisons: Sequence[Comparison]) -> Iterator[ComparedResult]:
    for comparison in comparisons:
        yield from comparison.results
