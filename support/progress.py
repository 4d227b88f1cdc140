"""Bars of a part of the work: tqdm's in a terminal or a notebook; elsewhere a line a minute."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm

from .text import plain

LINE_SECONDS = 60.0
"""Seconds between two lines where there is no terminal."""


class _Lines:
    """The output of a bar as lines, not as one line that is written again."""

    def write(self, text: str) -> None:
        line = text.strip("\r\n \x1b[A")
        sys.stderr.write(f"{line}\n" if line else "")

    def flush(self) -> None:
        sys.stderr.flush()


def make_bar(name: str, unit: str, items: float, *, shown: bool, done: float = 0) -> Any:
    """A bar of tqdm over a part of the work: its name, what is counted, how many there are, and are done already."""
    how: dict[str, Any] = {}
    if not sys.stderr.isatty():
        how = {"file": _Lines(), "mininterval": LINE_SECONDS, "delay": LINE_SECONDS, "ncols": 100, "ascii": True}
    return tqdm(total=items, initial=done, desc=plain(name), unit=f" {unit}", leave=False, disable=not shown, **how)


@contextmanager
def during(name: str, unit: str, items: float, *, shown: bool) -> Iterator[Callable[[float], object]]:
    """A bar while a part is worked on; gives the function that counts items as done."""
    with make_bar(name, unit, items, shown=shown and items > 0) as bar:
        yield bar.update
