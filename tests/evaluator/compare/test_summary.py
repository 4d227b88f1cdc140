"""Tables of layers and of sizes, of any task, in all formats."""

from __future__ import annotations

import csv
import io
import json

import pytest

from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.formats import write_table
from audio_compositionality.evaluator.compare.summary import layer_table, size_table
from audio_compositionality.support.errors import InputError


def options(layer, pooling=None):
    return {"layer": layer, "pooling": pooling, "precision": "float32", "compile": False}


def write_layers(write_results, folder, name, layers, pooling="", **model):
    """Results of some layers of a model; None is its output."""
    for number, layer in enumerate(layers):
        parts = [f"layer={layer}"] * (layer is not None) + [f"pooling={pooling}"] * bool(pooling)
        write_results(
            folder / f"{name.replace(':', '_')}{layer}{pooling}",
            [name + ("@" if parts else "") + "+".join(parts)],
            tasks=["a_coat", "toy"],
            measures={"top1": 0.1 * number},
            without=["score_top1"],
            model={"options": options(layer, pooling or None), **model},
        )


@pytest.fixture(scope="module")
def layered(tmp_path_factory, write_results, registered_toy):
    """A model with its output and three layers, its twin with two, two poolings of a layer, and others."""
    folder = tmp_path_factory.mktemp("layers")
    write_layers(write_results, folder, "deep", [10, 2, None, 0], parameters=100)
    write_layers(write_results, folder, "untrained:deep", [2, 0], parameters=100)
    write_layers(write_results, folder, "deep", [1], pooling="max", parameters=100)
    write_layers(write_results, folder, "wide", [4], parameters=7_000_000)
    write_results(folder / "rest", ["random", "one"], tasks=["a_coat"])
    return compare_results([folder])


def test_layers_stand_below_each_other_with_the_measures_to_trust_of_all_tasks(layered):
    table = layer_table(layered)
    rows = [[cell.value for cell in row.cells] for row in table.rows]
    assert [row[:2] for row in rows] == [
        ["deep", 0], ["deep", 2], ["deep", 10], ["deep", None], ["untrained:deep", 0], ["untrained:deep", 2],
    ]  # fmt: skip
    assert [cell.text for row in table.rows for cell in row.cells[1:2]][3] == "output"
    trusted = [measure for comparison in layered for measure in comparison.info.recommended]
    assert len(table.columns) == 2 + len(trusted)
    # Layers 10, 2, output and 0 of the model were written in this order, with a top-1 that rises by 0.1.
    top1 = [column.heading for column in table.columns].index("A-COAT, top-1")
    assert [row[top1] for row in rows[:4]] == pytest.approx([0.3, 0.1, 0.0, 0.2])


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv", "json"])
def test_they_are_written_in_every_format(layered, form):
    text = write_table(layered, form, "layers")
    assert "deep" in text
    if form == "csv":
        header, *rows = csv.reader(io.StringIO(text))
        assert header[:2] == ["model", "layer"]
        assert [row[1] for row in rows] == ["0", "2", "10", "", "0", "2"]
    elif form == "json":
        (table,) = json.loads(text)
        assert [row["layer"] for row in table["rows"]] == [0, 2, 10, None, 0, 2]
    else:
        assert "output" in text


def test_sizes_are_sorted_with_the_output_or_the_last_layer_of_each_model(layered):
    table = size_table(layered)
    assert [[cell.value for cell in row.cells[:2]] for row in table.rows] == [
        ["deep", 100],
        ["deep@layer=1+pooling=max", 100],
        ["untrained:deep@layer=2", 100],
        ["one", 2_000_000],
        ["wide@layer=4", 7_000_000],
    ]
    assert "7,000,000" in write_table(layered, "markdown", "sizes")
    assert "random" not in write_table(layered, "csv", "sizes")


def test_models_of_several_revisions_are_told_apart(tmp_path, write_results):
    for revision in ("abc", "def"):
        for layer in (0, 1):
            model = {"options": options(layer), "revision": revision}
            write_results(tmp_path / f"{revision}{layer}", [f"deep@layer={layer}"], tasks=["a_coat"], model=model)
    rows = [[cell.value for cell in row.cells[:2]] for row in layer_table(compare_results([tmp_path])).rows]
    assert rows == [["deep (abc)", 0], ["deep (abc)", 1], ["deep (def)", 0], ["deep (def)", 1]]


def test_where_there_is_no_such_table_the_error_says_why(tmp_path, write_results):
    comparisons = compare_results([write_results(tmp_path, ["one"], tasks=["a_coat"])])
    assert layer_table(comparisons) is None
    assert size_table(comparisons) is None
    with pytest.raises(InputError, match=r"there is no table 'layers' .* --layer 0,2,4 or --layer all makes them"):
        write_table(comparisons, "text", "layers")
    with pytest.raises(InputError, match=r"there is no table 'sizes' of these results: no two trained models differ"):
        write_table(comparisons, "text", "sizes")
