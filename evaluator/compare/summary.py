"""The tables of a first look over all tasks: the scores to trust, verdicts, layers of a model, models by size."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.results.result import data_digest
from audio_compositionality.support.table import Cell, Column, Row, Table

from .comparison import Comparison
from .loading import ComparedResult, ModelKind, asked_of
from .model_verdicts import Verdicts
from .rows import model_scores
from .tables import (
    MODEL,
    comparison_caption,
    kind_note,
    measure_column,
    nulls_legend,
    score_cells,
    score_columns,
    shared_legend,
    shared_nulls,
    stated_measures,
    training_note,
    versioned_title,
)
from .task_verdicts import TRIVIAL, Standing, baseline_words

MOST_COLUMNS = 5
"""Most columns of the table of the measures to trust."""


def short_table(comparison: Comparison) -> Table:
    """The measures to trust with intervals and groups, and the score that the task is named for with its null."""
    info = comparison.info
    stated = stated_measures((*info.recommended, info.score), [result.result.measures for result in comparison.results])
    grouped = {info.ranks_by} if info.ranks_by in comparison.views and len(comparison.results) > 1 else set()
    measures = list(dict.fromkeys(stated))[: MOST_COLUMNS - 1 - len(grouped)]
    rows = []
    scores = [model_scores(comparison, place, measures, grouped) for place in range(len(comparison.results))]
    shared = shared_nulls(scores, measures, info)
    for result, of_model in zip(comparison.results, scores, strict=True):
        notes = filter(None, (kind_note(result), training_note(result.result, info)))
        cells = score_cells(of_model, measures, info, grouped, shown_too=True, shared=shared)
        rows.append(Row((Cell(result.label, note="\n".join(notes)), *cells)))
    columns = (MODEL, *score_columns(measures, info, grouped))
    legend = [
        "Below a score: its 95 % interval.",
        *shared_legend({info.measure(name).heading: lines for name, lines in shared.items()}),
        *nulls_legend(measures, info, shown_too=True),
    ]
    return Table(comparison_caption(comparison), columns, tuple(rows), tuple(legend), f"{info.name}-short")


SIGNS = {Standing.ABOVE: "▲", Standing.BELOW: "▼", Standing.NOT_SHOWN: "○", Standing.UNKNOWN: "?"}
"""The sign of a standing, for readers who see no colour and for print."""


def summary_table(verdicts: Verdicts) -> Table:
    """All models by the measures to trust of all tasks, with their verdicts: the table for a paper, models first."""
    columns, by_label, legend = trusted_measures(verdicts.comparisons, order=True, verdicts=verdicts)
    judged = {kind: models for kind, models in verdicts.judged.items() if models}
    headings = [f"verdict, {kind}" if len(judged) > 1 else "verdict" for kind in judged]
    standings = [{model.label: model.standing.value for model in models} for models in judged.values()]
    kinds = {result.label: result.kind for one in verdicts.comparisons for result in one.results}
    order = sorted(by_label, key=lambda label: list(ModelKind).index(kinds[label]))
    rows = tuple(
        Row((Cell(label), *(Cell(of_kind.get(label)) for of_kind in standings), *by_label[label])) for label in order
    )
    signs = ", ".join(f"{sign} {standing.value}" for standing, sign in SIGNS.items())
    meaning = f"Verdicts, over all baselines of each deciding task and, by a sign, of one: {signs}."
    said = (meaning,) if judged else ()
    verdict_columns = [Column(heading, numeric=False) for heading in headings]
    return Table(
        "The scores to trust, of all tasks", (MODEL, *verdict_columns, *columns), rows, (*said, *legend), "summary"
    )


def trusted_measures(
    comparisons: Sequence[Comparison], *, order: bool = False, verdicts: Verdicts | None = None
) -> tuple[list[Column], dict[str, list[Cell]], tuple[str, ...]]:
    """The measures to trust of all tasks.

    Args:
        comparisons: of the tasks.
        order: whether the rows are sorted by the first column.
        verdicts: whose signs stand before the scores of the measures that tasks judge by; None for no signs.

    Returns:
        one column per measure, the cells of each model by its label, and the legend of the table.
    """
    titles = Counter(comparison.info.title for comparison in comparisons)
    columns: list[Column] = []
    by_label: dict[str, list[Cell]] = {label: [] for comparison in comparisons for label in comparison.labels}
    of_all: dict[str, Sequence[str]] = {}
    for comparison in comparisons:
        title = versioned_title(comparison.info, comparison.version)
        if titles[comparison.info.title] > 1:
            title += f" ({data_digest(comparison, comparisons)})"
        info, measures = comparison.info, comparison.info.recommended
        scores = [model_scores(comparison, place, measures) for place in range(len(comparison.labels))]
        shared = shared_nulls(scores, measures, info)
        for measure in measures:
            named_alike = comparison.info.title.startswith(measure.heading)
            heading = title if named_alike else f"{title}, {measure.heading}"
            columns.append(replace(measure_column(measure, order=order and not columns), heading=heading))
            if measure.name in shared:
                of_all[heading] = shared[measure.name]
        cells = {}
        for label, of_model in zip(comparison.labels, scores, strict=True):
            standing = None if verdicts is None else verdicts.standing(label, comparison)
            # Before the measure to trust that the task judges by, or the first.
            signed = info.judge if info.judge in measures else next(iter(measures), info.judge)
            signs = {} if standing is None else {signed.name: SIGNS[standing]}
            cells[label] = score_cells(of_model, measures, info, shown_too=True, shared=shared, signs=signs)
        for label, row in by_label.items():
            row += cells.get(label, [Cell(None)] * len(measures))
    nulls = [
        sentence
        for comparison in comparisons
        for sentence in nulls_legend(comparison.info.recommended, comparison.info, shown_too=True)
    ]
    return (
        columns,
        by_label,
        (
            "Behind a score: its 95 % interval, BCa bootstrap over independent samples.",
            *shared_legend(of_all),
            *dict.fromkeys(nulls),
        ),
    )


def verdict_tables(verdicts: Verdicts) -> list[Table]:
    """Verdicts on all models: a table for each kind of model that tasks need."""
    tables = []
    for kind, models in verdicts.judged.items():
        # The baselines that every task has, as the first task of this kind names them.
        info = next(one.info for one in verdicts.comparisons if asked_of(one.info) == kind)
        lines = {model.label: {line.name: line for line in model.lines} for model in models}
        words = {line.name: line.words for of_model in lines.values() for line in of_model.values()}
        names = list(words or baseline_words(info))
        words |= baseline_words(info)
        columns = (
            MODEL,
            Column("verdict", "above: above every baseline by every task", numeric=False),
            *(Column(f"above {words[name]}?", numeric=False) for name in names),
            Column("in words", numeric=False),
        )
        rows = []
        for model in models:
            shown = [lines[model.label].get(name) for name in names]
            cells = [Cell(None) if line is None else Cell(line.standing.value, note=line.text) for line in shown]
            rows.append(Row((Cell(model.label), Cell(model.standing.value), *cells, Cell(model.sentence))))
        note = (
            "Behind a standing: the difference and its 95 % interval; p of the paired test, adjusted over all pairs, "
            f"decides. Of {words[TRIVIAL]}, where no result is of it, the test is against a known level, corrected "
            "over all models."
        )
        which = f" Tasks for {kind}" if len(verdicts.judged) > 1 else ""
        title = f"Is each model above all baselines?{which}"
        tables.append(Table(title, columns, tuple(rows), (note,), "verdicts"))
    return tables


# ----- Series: layers of one model, models of several sizes


OUTPUT = "output"
"""Stands for the layer of a model's output."""


@dataclass(frozen=True)
class ModelLayer:
    """A result's model as one of several layers.

    Attributes:
        model: its id with its options, less the layer.
        revision: of the model.
        layer: None for the output.
    """

    model: str
    revision: str
    layer: int | None

    @classmethod
    def of(cls, result: ComparedResult) -> ModelLayer:
        """The model and layer of a result."""
        card = result.result.model
        options = EncoderOptions(**card.options.model_dump())
        name = card.id.removesuffix(options.suffix) + options.changed(layer=None).suffix
        return cls(name, card.revision, options.layer)


def layer_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Models with results of several layers, a row per layer; None if there are none.

    The columns are the measures to trust of all tasks.
    """
    layers = {result.label: ModelLayer.of(result) for comparison in comparisons for result in comparison.results}
    models: dict[tuple[str, str], list[str]] = defaultdict(list)
    for label, layer in layers.items():
        models[layer.model, layer.revision].append(label)
    several = {model: labels for model, labels in models.items() if len(labels) > 1}
    if not several:
        return None
    columns, cells, legend = trusted_measures(comparisons)
    names = [name for name, _ in several]
    rows = []
    for (name, revision), labels in several.items():
        shown = name if names.count(name) == 1 else f"{name} ({revision})"
        for label in sorted(labels, key=lambda label: _depth(layers[label])):
            number = layers[label].layer
            rows.append(Row((Cell(shown), Cell(number, OUTPUT if number is None else None), *cells[label])))
    headings = (
        MODEL,
        Column("layer", "0 is the input of the first block, N the output of block N", digits=None),
    )
    return Table("Layers", (*headings, *columns), tuple(rows), legend, "layers")


def _depth(layer: ModelLayer) -> tuple[bool, int]:
    return layer.layer is None, layer.layer or 0


def size_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Models by their number of parameters, the smallest first; None where all trained models have the same.

    A model with several layers is represented by its output, or its last layer. The columns are the measures to trust
    of all tasks.
    """
    models: dict[tuple[str, str], ComparedResult] = {}
    for result in (result for comparison in comparisons for result in comparison.results):
        if result.result.model.parameters is not None:
            layer = ModelLayer.of(result)
            other = models.get((layer.model, layer.revision))
            if other is None or _depth(layer) > _depth(ModelLayer.of(other)):
                models[layer.model, layer.revision] = result
    sized = sorted(models.values(), key=lambda result: (_size(result), result.kind is not ModelKind.TRAINED))
    if len({_size(result) for result in sized if result.kind is ModelKind.TRAINED}) < 2:
        return None
    columns, cells, legend = trusted_measures(comparisons)
    rows = tuple(Row((Cell(result.label), Cell(_size(result)), *cells[result.label])) for result in sized)
    headings = (
        MODEL,
        Column("parameters", "number of weights in the part of the model that runs", digits=None),
    )
    return Table("Models by size", (*headings, *columns), rows, legend, "sizes")


def _size(result: ComparedResult) -> int:
    return result.result.model.parameters or 0
