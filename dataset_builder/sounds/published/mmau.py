"""MMAU, test-mini: questions about sound, music and speech (arXiv 2410.19168)."""

from __future__ import annotations

import json

from .question_sets import QuestionSet, by_words
from .question_tables import Record


def _of_hub(record: Record) -> Record:
    """Return a row of the authors' Hub data set, whose further fields are JSON, with the keys of their JSON file."""
    if "instruction" not in record:
        return record
    more = json.loads(record.get("other_attributes") or "{}")
    return {**more, "question": record["instruction"], **{name: record[name] for name in ("choices", "answer")}} | {
        "audio_id": record["context"]
    }


READER = QuestionSet(
    name="mmau",
    title="MMAU test-mini",
    url="https://github.com/Sakshi113/MMAU",
    licence="Apache 2.0 (repository); the sounds have the terms of their sources",
    version="MMAU-v05.15.25",
    tables=("mmau-test-mini.json", "*.parquet"),
    columns={"options": ("choices",), "audio": ("audio_id",), "kind": ("task",)},
    split="test",
    rule=by_words,
    rule_source="evaluation.py of the repository, which scores model_output (model_prediction before 29 January 2025)",
    known_faults=(
        "27 of the 1,000 questions of test-mini v05.15.25 repeat an option, 16 of them the right one",
        "versions before v05.15.25 have answers that are no option (issue 12 of the repository); further wrong answers "
        "are reported there (issues 13 and 25)",
    ),
    converted=_of_hub,
)
