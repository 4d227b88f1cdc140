"""What the paper of PolyBench prints: the numbers hold together, and stand beside answers without being compared."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from audio_compositionality.evaluator.compare.tables import printed_table
from audio_compositionality.tasks.polybench import PRINTED, TASKS
from audio_compositionality.tasks.registry import load_task


def test_they_are_marked_beside_bars_and_listed_as_not_comparable():
    info = load_task("polybench").info
    (drawing,) = load_task("polybench").drawings
    axes = Figure().subplots()
    measures = dict.fromkeys(TASKS, 0.5)
    drawing.panel(axes, {name: np.array([0.4, 0.6]) for name in TASKS}, measures)
    marks = [line for line in axes.lines if line.get_marker() == "_"]
    assert [tuple(line.get_ydata()) for line in marks] == [PRINTED.of_measure(task) for task in TASKS]
    assert "not comparable" in drawing.title
    table = printed_table(info)
    assert table is not None
    assert table.caption.startswith("Not comparable: PolyBench, arXiv 2603.05128")
    assert len(table.rows) == 5
    assert "other sounds and questions" in table.legend[0]


@pytest.mark.parametrize("name", ["comp_a_order", "comp_a_attribute"])
def test_people_and_models_are_marked_beside_the_scores_of_captions(name):
    info, (drawing,) = load_task(name).info, load_task(name).drawings
    assert info.printed.measures == ("text", "audio", "group")
    table = printed_table(info)
    assert [row.cells[0].value for row in table.rows][:2] == ["human", "MMT"]
    assert len(table.rows) == 9
    assert table.caption == "Not comparable: CompA, arXiv 2310.08753, Table 2"
    # Whoever has both captions and both clips right has each: group is not above either.
    for values in info.printed.figures.values():
        assert values["group"] <= min(values["text"], values["audio"])
    axes = Figure().subplots()
    columns = {column: np.array([0.0, 1.0]) for column in drawing.columns}
    drawing.panel(axes, columns, {})
    marks = [tuple(line.get_ydata()) for line in axes.lines if line.get_marker() == "_" and len(line.get_ydata()) == 9]
    assert marks == [info.printed.of_measure(one) for one in ("text", "audio", "group")]
    assert "not comparable" in drawing.title


@pytest.mark.parametrize(("name", "sets"), [("audio_text_retrieval", 2), ("zero_shot_audio", 3)])
def test_what_is_printed_of_a_data_set_names_it(name, sets):
    table = printed_table(load_task(name).info)
    named = [row.cells[0].value.rpartition(", ") for row in table.rows]
    assert len(table.rows) == 3 * sets
    assert len({data for _, _, data in named}) == sets
    assert {model for model, _, _ in named} == {"CLAP-LAION", "the paper's CLAP", "CompA-CLAP"}
    assert all(0 < cell.value < 1 for row in table.rows for cell in row.cells[1:])
