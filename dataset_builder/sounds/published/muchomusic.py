"""MuChoMusic: questions about music of MusicCaps and the Song Describer Dataset (arXiv 2408.01337)."""

from __future__ import annotations

from audio_compositionality.support.files import sha256_of

from .question_sets import QuestionSet, by_one_letter_or_option
from .question_tables import Record

_OPTIONS = ("correct_answer", "distractor_1_answer", "distractor_2_answer", "distractor_3_answer")


def _in_any_order(record: Record) -> Record:
    """Return a row with its options ordered by their hashes, since the right one is first in the table, and its file.

    The authors shuffle at random; files are ``415600.2min.mp3`` (sdd) and ``[ID]-[START-END].wav`` (musiccaps).
    """
    id = str(record["question_id"])
    name, _, start = str(record["dataset_identifier"]).removesuffix(".json").rpartition("_")
    is_described = record["dataset"] == "sdd"
    options = sorted((record[option] for option in _OPTIONS), key=lambda text: sha256_of(f"{id}\n{text}".encode()))
    file = f"{start}.2min.mp3" if is_described else f"[{name}]-[{start}-{int(float(start)) + 10}].wav"
    return {"id": id, "question": record["question"], "options": options, "answer": record["correct_answer"]} | {
        "audio": file,
        "kind": record["dataset"],
    }


READER = QuestionSet(
    name="muchomusic",
    title="MuChoMusic",
    url="https://doi.org/10.5281/zenodo.12709974",
    licence="CC BY-SA 4.0; the sounds have the terms of MusicCaps and the Song Describer Dataset",
    version="Zenodo record 12709974, 2024",
    tables=("muchomusic.csv",),
    columns={},
    rule=by_one_letter_or_option,
    rule_source="muchomusic_eval/scoring.py of github.com/mulab-mir/muchomusic",
    known_faults=(
        "the table does not order the options: we order them by their hashes, the authors shuffle at random",
    ),
    converted=_in_any_order,
)
