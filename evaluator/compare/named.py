"""All tables of comparisons by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.table import Table
from audio_compositionality.support.text import nearest

from .comparison import Comparison
from .conclusions import model_verdicts
from .group_tables import comparison_tables
from .series import layer_table, size_table
from .summary import short_table, summary_table, verdict_tables

SERIES: dict[str, tuple[Callable[[Sequence[Comparison]], Table | None], str]] = {
    "layers": (layer_table, "none of their models has several layers, which --layer 0,2,4 or --layer all gives"),
    "sizes": (size_table, "no two of their trained models differ in their number of parameters"),
}
"""Tables of series of results, and why there may be none."""


def named_tables(comparisons: Sequence[Comparison], name: str) -> list[Table]:
    """The tables of a name: one a comparison, or one of all.

    Raises:
        InputError: there is no such table; the error says which there are.
    """
    series = {series: make(comparisons) for series, (make, _) in SERIES.items()}
    if name in SERIES and series[name] is None:
        raise InputError(f"there is no table {name!r} of these results: {SERIES[name][1]}")
    tables = [summary_table(comparisons), *verdict_tables(comparisons, model_verdicts(comparisons))]
    tables += [table for table in series.values() if table is not None]
    for comparison in comparisons:
        tables += [short_table(comparison), *comparison_tables(comparison)]
    named = [table for table in tables if table.name == name]
    if not named:
        names = list(dict.fromkeys(table.name for table in tables))
        raise InputError(f"there is no table {name!r}; {nearest(name, names)}")
    return named
