"""The table of what somebody printed of a task on other data, beside which nobody is compared."""

from __future__ import annotations

from audio_compositionality.support.table import Cell, Column, Row, Table
from audio_compositionality.tasks.base import TaskInfo


def printed_table(info: TaskInfo) -> Table | None:
    """The figures that a task knows to have been printed, a row a model; None where it knows of none."""
    printed = info.printed
    if printed is None:
        return None
    measures = [info.measure(name) for name in printed.measures]
    columns = (
        Column("model, as printed", numeric=False),
        *(Column(measure.heading, digits=measure.digits) for measure in measures),
    )
    rows = tuple(
        Row((Cell(model), *(Cell(values.get(measure.name)) for measure in measures)))
        for model, values in printed.figures.items()
    )
    legend = (printed.beside, *printed.remarks.values())
    return Table(f"Not comparable: {printed.source}", columns, rows, legend, f"{info.name}-printed")
