"""Timing and printing of benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def shortest(run: Callable[[], Any], times: int = 3) -> float:
    """Return the seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def in_fresh_process(file: str, *arguments: str) -> dict[str, Any]:
    """Run a file of this folder in a fresh process on one core and return the JSON that it prints."""
    command = [sys.executable, file, *arguments]
    # `studies` is in the root of the clone.
    paths = os.pathsep.join(filter(None, (str(Path(file).resolve().parents[1]), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": paths}
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    content: dict[str, Any] = json.loads(printed)
    return content


def line(what: str, ours: float, peer: str, theirs: float, unit: str = "s") -> None:
    """Print our value, a peer's or a limit, and the ratio of the latter to ours."""
    print(f"{what:<44} {ours:9.3f} {unit:<8} {peer:<40} {theirs:9.3f} {unit:<8} ratio {theirs / ours:6.2f}", flush=True)
