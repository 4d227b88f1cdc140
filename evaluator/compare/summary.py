"""The tables of a first look over all tasks: the scores to trust, verdicts, layers of a model, models by size."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.tasks.base import Measure

from .comparison import Comparison
from .conclusions import Judged, ModelVerdict, judged_by_kind
from .loading import ComparedResult, ModelKind, fixed_by_construction
from .tables import interval_text, measure_cell, measure_column, null_note, nulls_legend, training_note, versioned_title

MOST_COLUMNS = 5
"""Of the table of the scores to trust."""

_GROUPS = "models that share a letter are not distinguishable by the measure before it"


def short_table(comparison: Comparison) -> Table:
    """The measures to trust with intervals and groups, and the score that the task is named for with its null."""
    info = comparison.info
    columns = [Column("model", numeric=False)]
    measures = [measure for measure in (*info.recommended, info.score) if _is_stated(comparison, measure)]
    view = comparison.views.get(info.ranks_by)
    has_groups = view is not None and len(comparison.results) > 1
    measures = list(dict.fromkeys(measures))[: MOST_COLUMNS - 1 - has_groups]
    for measure in measures:
        columns.append(measure_column(measure, order=measure.name == info.ranks_by))
        if has_groups and measure.name == info.ranks_by:
            columns.append(Column("groups", _GROUPS, numeric=False))
    rows = []
    for place, result in enumerate(comparison.results):
        kind = "" if result.kind.value == "model" else result.kind.value
        cells = [Cell(result.label, note="\n".join(filter(None, (kind, training_note(result.result, info)))))]
        for measure in measures:
            cells.append(_cell(comparison, place, result, measure))
            if view is not None and has_groups and measure.name == info.ranks_by:
                cells.append(Cell(view.letters[place]))
        rows.append(Row(tuple(cells)))
    caption = f"{versioned_title(info, comparison.version)} on {comparison.data_name}, n = {len(comparison.ids):,}"
    legend = ("Below a score: its 95 % interval.", *nulls_legend(measures, info, shown_too=True))
    return Table(caption, tuple(columns), tuple(rows), legend, f"{info.name}-short")


def summary_table(comparisons: Sequence[Comparison]) -> Table:
    """All models beside each other by the measures to trust of all tasks: the table that a paper prints."""
    columns, by_label, legend = trusted_measures(comparisons, order=True)
    rows = tuple(Row((Cell(label), *cells)) for label, cells in by_label.items())
    return Table(
        "The scores to trust, of all tasks", (Column("model", numeric=False), *columns), rows, legend, "summary"
    )


def trusted_measures(
    comparisons: Sequence[Comparison], *, order: bool = False
) -> tuple[list[Column], dict[str, list[Cell]], tuple[str, ...]]:
    """The measures to trust of all tasks.

    Args:
        comparisons: of the tasks.
        order: whether the first of the columns is that by which the rows come.

    Returns:
        a column a measure, the cells of each model by its label, and what is said below a table of them.
    """
    titles = Counter(comparison.info.title for comparison in comparisons)
    columns: list[Column] = []
    by_label: dict[str, list[Cell]] = {label: [] for comparison in comparisons for label in comparison.labels}
    for comparison in comparisons:
        title = versioned_title(comparison.info, comparison.version)
        if titles[comparison.info.title] > 1:
            title += f" ({comparison.fingerprint[:8]})"
        for measure in comparison.info.recommended:
            named_alike = comparison.info.title.startswith(measure.heading)
            heading, meaning = title if named_alike else f"{title}, {measure.heading}", measure.meaning
            columns.append(Column(heading, meaning, digits=measure.digits or None, order=order and not columns))
            cells = {
                result.label: _cell(comparison, place, result, measure)
                for place, result in enumerate(comparison.results)
            }
            for label, row in by_label.items():
                row.append(cells.get(label, Cell(None)))
    nulls = [
        sentence
        for comparison in comparisons
        for sentence in nulls_legend(comparison.info.recommended, comparison.info, shown_too=True)
    ]
    return (
        columns,
        by_label,
        ("Behind a score: its 95 % interval, BCa bootstrap over independent samples.", *dict.fromkeys(nulls)),
    )


def verdict_tables(comparisons: Sequence[Comparison], judged: Sequence[ModelVerdict]) -> list[Table]:
    """Whether each model is above what needs no learning: a table for each kind of model that tasks ask for."""
    groups = judged_by_kind(comparisons, judged)
    with_models = [group for group in groups if group.models] or groups[:1]
    return [_verdict_table(group, with_models) for group in with_models]


def _verdict_table(judged: Judged, groups: Sequence[Judged]) -> Table:
    columns = (
        Column("model", numeric=False),
        *(Column(f"above {words}?", numeric=False) for words in judged.words.values()),
        Column("so", numeric=False),
    )
    rows = []
    for model in judged.models:
        cells = [Cell(model.label)]
        for number, name in enumerate(model.questions):
            figures = [
                f"{task.comparison.info.title}, {check.measure}: {check.figure}"
                for task in (*model.tasks, *model.beside)
                for check in task.verdict.questions[number].checks
                if check.figure
            ]
            cells.append(Cell("; ".join(told.text for told in model.told(name)), note="\n".join(figures)))
        rows.append(Row((*cells, Cell(model.conclusion))))
    note = (
        "Behind an answer: the difference, its 95 % interval, and p of the paired test, corrected over all pairs; of "
        f"{judged.words['floor']}, where no result is of it, p of the test against what it reaches, corrected over all "
        "models."
    )
    which = f" By the tasks of {judged.kind}" if len(groups) > 1 else ""
    return Table(f"Is each model above what needs no learning?{which}", columns, tuple(rows), (note,), "verdicts")


def _is_stated(comparison: Comparison, measure: Measure) -> bool:
    return any(result.result.measures.get(measure.name) is not None for result in comparison.results)


def _cell(comparison: Comparison, place: int, result: ComparedResult, measure: Measure) -> Cell:
    interval = comparison.interval(place, measure)
    null = null_note(measure, result.result.measures, comparison.info, shown_too=True)
    fixed = fixed_by_construction(result, measure)
    return measure_cell(
        result.value(measure), measure, "\n".join(filter(None, (interval_text(interval, measure.digits), null, fixed)))
    )


OUTPUT = "output"
"""What stands for the layer of a model's output."""


@dataclass(frozen=True)
class Layer:
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
    def of(cls, result: ComparedResult) -> Layer:
        """That of a result."""
        card = result.result.model
        options = EncoderOptions(**card.options.model_dump())
        name = card.id.removesuffix(options.suffix) + options.changed(layer=None).suffix
        return cls(name, card.revision, options.layer)


def layer_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Models of which there are several layers, a row a layer; None where there is none.

    The columns are the measures to trust of all tasks.
    """
    layers = {result.label: Layer.of(result) for comparison in comparisons for result in comparison.results}
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
        Column("model", numeric=False),
        Column("layer", "0 is the input of the first block, N the output of block N", digits=None),
    )
    return Table("Layers", (*headings, *columns), tuple(rows), legend, "layers")


def _depth(layer: Layer) -> tuple[bool, int]:
    return layer.layer is None, layer.layer or 0


def size_table(comparisons: Sequence[Comparison]) -> Table | None:
    """Models by their number of parameters, the smallest first; None where no two trained models differ in it.

    Of a model with several layers the output stands in it, or its last layer. The columns are the measures to trust of
    all tasks.
    """
    models: dict[tuple[str, str], ComparedResult] = {}
    for result in (result for comparison in comparisons for result in comparison.results):
        if result.result.model.parameters is not None:
            layer = Layer.of(result)
            other = models.get((layer.model, layer.revision))
            if other is None or _depth(layer) > _depth(Layer.of(other)):
                models[layer.model, layer.revision] = result
    sized = sorted(models.values(), key=lambda result: (_size(result), result.kind is not ModelKind.TRAINED))
    if len({_size(result) for result in sized if result.kind is ModelKind.TRAINED}) < 2:
        return None
    columns, cells, legend = trusted_measures(comparisons)
    rows = tuple(Row((Cell(result.label), Cell(_size(result)), *cells[result.label])) for result in sized)
    headings = (
        Column("model", numeric=False),
        Column("parameters", "number of weights of the part of the model that is run", digits=None),
    )
    return Table("Models by size", (*headings, *columns), rows, legend, "sizes")


def _size(result: ComparedResult) -> int:
    return result.result.model.parameters or 0
