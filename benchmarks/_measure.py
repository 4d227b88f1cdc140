"""How benchmarks time and print."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def shortest(run: Callable[[], Any], times: int = 3) -> float:
    """Seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def line(what: str, ours: float, peer: str, theirs: float, unit: str = "s") -> None:
    """Print ours beside a peer or a limit, and how much longer or larger that is."""
    print(f"{what:<44} {ours:9.3f} {unit:<8} {peer:<40} {theirs:9.3f} {unit:<8} ratio {theirs / ours:6.2f}", flush=True)
