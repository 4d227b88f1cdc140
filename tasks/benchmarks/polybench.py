"""PolyBench: questions with options about sounds that overlap (arXiv 2603.05128)."""

from __future__ import annotations

from ..groups import BenchmarkInfo

BENCHMARK = BenchmarkInfo(
    name="polybench",
    title="Questions about overlapping sounds",
    question="Does an audio language model hear what overlaps what, for how long and when, or does it answer from the "
    "words of the question?",
)
