"""The tables of results that belong to a series: layers of one model, models of several sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.table import Cell, Column, Row, Table

from .comparison import Comparison
from .kinds import ModelKind
from .loading import ComparedResult
from .summary import trusted_measures

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
