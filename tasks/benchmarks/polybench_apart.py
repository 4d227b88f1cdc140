"""Overlapping sounds and the same sounds one after the other (after arXiv 2603.05128)."""

from __future__ import annotations

from ..groups import BenchmarkInfo

BENCHMARK = BenchmarkInfo(
    name="polybench_apart",
    title="What overlap costs",
    question="Does an audio language model hear less of the same sounds where they overlap?",
)
