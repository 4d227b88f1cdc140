"""PolyBench as stored by this project, read as questions in any table; the paper's own data are not published."""

from __future__ import annotations

from .question_sets import QuestionSet

READER = QuestionSet(
    name="polybench_stored",
    title="PolyBench (after arXiv 2603.05128), as this project builds it",
    url="https://arxiv.org/abs/2603.05128",
    licence="CC BY 4.0 for tones; for recordings, the licence of the recordings",
    version="recipe 3",
    tables=("polybench/test-*.parquet", "test-*.parquet"),
    columns={"audio": ("audio",), "kind": ("task",), "group": ("group",), "events": ("events",)},
    config="polybench",
    split="test",
    rule_source="the paper's matcher is a model",
    known_faults=("the paper's own questions are not published: these follow its description",),
)
