"""TREA: number, order and duration of the sounds of ESC-50, one after the other (arXiv 2505.13115)."""

from __future__ import annotations

from .question_sets import QuestionSet, by_first_letter
from .question_tables import Record


def _with_task(record: Record) -> Record:
    """Return a row with its task, the stem of its table; ids are numbers that restart in each table."""
    task = str(record["_table"]).removesuffix("_with_metadata")
    # Tables of the first version have audios/0.wav, tables of the second TREA_dataset/order/audios/0.wav.
    file = str(record["audio_path"]).rpartition("/")[2]
    return {**record, "id": f"{task}-{record['id']}", "task": task, "audio_path": f"{task}/audios/{file}"}


READER = QuestionSet(
    name="trea",
    title="TREA",
    url="https://github.com/iiscleap/Audio-LLM-benchmarking-uncertainty",
    licence="none stated in the repository; the sounds are from ESC-50 (CC BY-NC 3.0)",
    version="commit 73cb4b41, 2025",
    tables=("count.csv|order.csv|duration.csv",),
    columns={
        "options": tuple(f"option{letter}" for letter in "ABCD"),
        "answer": ("correct",),
        "audio": ("audio_path",),
    },
    answers="letters",
    rule=by_first_letter,
    rule_source="benchmarking_acc.py of the repository",
    known_faults=(
        "in `order`, right options are written as labels (crackling_fire), wrong ones as words (Sea waves): the right "
        "one is recognisable by its spelling; some questions repeat an option in the other spelling",
    ),
    converted=_with_task,
)
