"""Imports that a command makes in its own way, because they take seconds."""

from __future__ import annotations

import sys


def import_evaluate() -> None:
    """Import `evaluate`, which metrics need, without the models of transformers, which only its evaluators need.

    That takes a third of the time, seconds on a busy machine. Only for a process that is ours: afterwards
    `evaluate.evaluator` does not work in it. Nothing is done where either is imported already.
    """
    if "evaluate" in sys.modules or "transformers" in sys.modules:
        return
    # Of its own, so that it sees what there is.
    import datasets  # noqa: F401

    sys.modules["transformers"] = None  # type: ignore[assignment]
    try:
        import evaluate  # noqa: F401
    finally:
        del sys.modules["transformers"]
