"""PolyBench as this project stores it, read as questions of any table; the paper's own data are not published."""

from __future__ import annotations

from .question_sets import QuestionSet

READER = QuestionSet(
    name="polybench_stored",
    title="PolyBench (after arXiv 2603.05128), as this project builds it",
    url="https://arxiv.org/abs/2603.05128",
    licence="CC BY 4.0 of tones; of recordings, that of the recordings",
    version="recipe 3",
    tables=("polybench/test-*.parquet", "test-*.parquet"),
    columns={"audio": ("audio",), "kind": ("task",), "group": ("group",), "events": ("events",)},
    config="polybench",
    split="test",
    rule_source="the paper's matcher is a model",
    known_faults=("the paper's own questions are not published: these are built after its description",),
)
