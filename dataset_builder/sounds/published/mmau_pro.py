"""MMAU-Pro: questions about one or several clips of up to ten minutes (arXiv 2508.13992)."""

from __future__ import annotations

from .question_sets import QuestionSet
from .question_tables import Record

OPEN = ("open", "instruction following")
"""Categories that are scored by a judge or by a format, and have no options."""


def _closed(record: Record) -> Record | None:
    """Return a row unchanged, or None if it has fewer than two options, as the authors' scoring filters them."""
    is_closed = record["category"].lower() not in OPEN and len(record["choices"] or ()) > 1
    return record if is_closed else None


READER = QuestionSet(
    name="mmau_pro",
    title="MMAU-Pro",
    url="https://github.com/sonalkum/MMAUPro",
    licence="none stated in the repository; see the card of its data set",
    version="commit 960e93a4, September 2025",
    tables=("test.parquet", "*.parquet"),
    columns={"options": ("choices",), "audio": ("audio_path",), "kind": ("category",)},
    split="test",
    rule_source="the authors take the option that the embedding model NV-Embed-v2 puts nearest to the answer",
    converted=_closed,
    without="open questions or about following instructions",
)
