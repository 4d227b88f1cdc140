"""A-COAT and A-TRE: is what a model makes of a scene made of its parts (arXiv 2603.13685)?"""

from __future__ import annotations

from ..groups import BenchmarkInfo

BENCHMARK = BenchmarkInfo(
    name="coat",
    title="Composition of scenes",
    question="Is the embedding of a scene made of those of its sources?",
)
