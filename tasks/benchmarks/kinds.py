"""Further kinds of composition: negation, counting, times, composed retrieval, two clips."""

from __future__ import annotations

from .info import BenchmarkInfo

BENCHMARK = BenchmarkInfo(
    name="kinds",
    title="Further kinds of composition",
    question="Does a model hear what is not there, how often, when, what has changed, and in which of two clips?",
)
