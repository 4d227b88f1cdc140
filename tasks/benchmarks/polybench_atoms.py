"""Atomic questions about overlapping sounds (beside arXiv 2603.05128)."""

from __future__ import annotations

from ..groups import BenchmarkInfo

BENCHMARK = BenchmarkInfo(
    name="polybench_atoms",
    title="Atomic questions",
    question="Does an audio language model hear that a sound is there, and which of two begins first?",
)
