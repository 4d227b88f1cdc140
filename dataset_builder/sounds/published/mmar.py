"""MMAR: questions that need several steps, about sound, music, speech and their mixes (arXiv 2505.13032)."""

from __future__ import annotations

from .question_sets import QuestionSet, by_words

READER = QuestionSet(
    name="mmar",
    title="MMAR",
    url="https://github.com/ddlBoJack/MMAR",
    licence="none stated in the repository; the sounds are from YouTube and Bilibili",
    version="commit 3bce090a, February 2026",
    tables=("MMAR-meta.jsonl", "MMAR-meta.json", "*.parquet"),
    columns={"options": ("choices",), "audio": ("audio_path",), "kind": ("modality",)},
    split="test",
    rule=by_words,
    rule_source="code/evaluation.py of the repository, which scores answer_prediction",
    known_faults=("4 of the 1,000 questions list an empty option, which is not presented",),
)
