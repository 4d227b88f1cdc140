"""Encoder × data set × metrics → result file; the command line.

Names are imported when they are first used, so that the command line answers ``--help`` at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audio_compositionality.studies.coral import CoralCheck, coral_check
    from .run.embedding import embed_benchmark
    from .run.evaluation import evaluate_encoder
    from .report.report import write_report
    from .results.result import Result, ResultError, load_result, save_result
    from .compare.table import print_results

_MODULES = {
    "CoralCheck": "coral",
    "Result": "result",
    "ResultError": "result",
    "coral_check": "coral",
    "embed_benchmark": "embedding",
    "evaluate_encoder": "evaluation",
    "load_result": "result",
    "print_results": "table",
    "save_result": "result",
    "write_report": "report",
}

__all__ = [
    "CoralCheck",
    "Result",
    "ResultError",
    "coral_check",
    "embed_benchmark",
    "evaluate_encoder",
    "load_result",
    "print_results",
    "save_result",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_MODULES[name]}", __name__), name)
