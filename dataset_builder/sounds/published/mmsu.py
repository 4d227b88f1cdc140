"""MMSU: questions about spoken language, from phonetics to meaning (arXiv 2506.04779)."""

from __future__ import annotations

from .question_sets import QuestionSet, by_first_or_last_letter

READER = QuestionSet(
    name="mmsu",
    title="MMSU",
    url="https://github.com/dingdongwang/MMSU",
    licence="MIT according to its data card; none stated in the repository",
    version="commit 217d1d3f, February 2026",
    tables=("*.parquet", "*.jsonl"),
    columns={
        "options": tuple(f"choice_{letter}" for letter in "abcd"),
        "answer": ("answer_gt",),
        "kind": ("task_name",),
    },
    split="train",
    rule=by_first_or_last_letter,
    rule_source="mmsu_evaluation.py of the repository, which leaves answers without a letter out of its total",
)
