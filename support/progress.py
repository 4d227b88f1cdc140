"""Progress bars: tqdm's in a terminal or a notebook, one line a minute elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm

from .text import plain

LINE_SECONDS = 60.0
"""Seconds between two lines if there is no terminal."""


class _Lines:
    """A stream that writes a progress bar as separate lines instead of overwriting one line."""

    def write(self, text: str) -> None:
        line = text.strip("\r\n \x1b[A")
        sys.stderr.write(f"{line}\n" if line else "")

    def flush(self) -> None:
        sys.stderr.flush()


def make_bar(name: str, unit: str, items: float, *, shown: bool, done: float = 0) -> Any:
    """Return a tqdm progress bar.

    Args:
        name: what is being done.
        unit: what is counted.
        items: their number.
        shown: whether the bar is shown.
        done: items that are already done.
    """
    how: dict[str, Any] = {}
    if not sys.stderr.isatty():
        how = {"file": _Lines(), "mininterval": LINE_SECONDS, "delay": LINE_SECONDS, "ncols": 100, "ascii": True}
    return tqdm(total=items, initial=done, desc=plain(name), unit=f" {unit}", leave=False, disable=not shown, **how)


@contextmanager
def during(name: str, unit: str, items: float, *, shown: bool) -> Iterator[Callable[[float], object]]:
    """Show a progress bar during the block; yields the function that counts items as done."""
    with make_bar(name, unit, items, shown=shown and items > 0) as bar:
        yield bar.update
