"""The page of a model: all its entries, every number of each, and what it was run with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from huggingface_hub import constants

from audio_compositionality.encoders.loading.names import hub_id_of
from audio_compositionality.evaluator.results.result import Skipped
from audio_compositionality.evaluator.submissions.submission import preset_with
from audio_compositionality.hub.errors import Repository
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.registry import load_task

from .entries import Board, DataKey, Entry, is_older
from .table import LONGEST, NOT_KNOWN, interval_text, notes

ENTRY_HEADINGS = (
    "task",
    "score",
    "95 % interval",
    "data",
    "status",
    "submitted by",
    "date",
    "revision",
    "notes",
    "in the table",
    "entry",
)

NUMBER_HEADINGS = ("number", "shown", "as reported", "95 % interval", "what it is")

_MOST_WORDS = 400
"""Characters of what a result was run with."""


def data_name(task: str, data: DataKey) -> str:
    """What one of a task's tables is of: a preset's name, else the beginning of the fingerprint; an older version."""
    preset = preset_with(load_task(task).info.recipe, data.fingerprint)
    name = preset or f"data {data.fingerprint[:8]}"
    return f"{name}, older: version {data.version} of the task" if is_older(task, data) else name


def entry_rows(board: Board, model: str) -> list[list[str]]:
    """All entries of a model, a row of `ENTRY_HEADINGS` each."""
    return [_entry_row(board, entry) for entry in board.of_model(model)]


def _entry_row(board: Board, entry: Entry) -> list[str]:
    info = load_task(entry.result.task).info
    score, ends = info.score, entry.interval(info.score.name)
    return [
        info.title,
        _shown(entry.result.measures.get(score.name), score.digits),
        "–" if ends is None else interval_text(ends, score.digits),
        data_name(info.name, entry.data),
        entry.status,
        shortened(entry.submitter or NOT_KNOWN, LONGEST),
        entry.result.date[:10],
        shortened(entry.result.model.revision, LONGEST),
        ", ".join(notes(entry, info)),
        "yes" if entry.id in board.in_table else "no, it has others before it",
        entry.id,
    ]


def number_rows(entry: Entry) -> list[list[str]]:
    """Every measure of an entry, a row of `NUMBER_HEADINGS` each; those that its task does not know by their names."""
    info = load_task(entry.result.task).info
    described = {measure.name: measure for measure in info.measures}
    rows = []
    for name in dict.fromkeys([*described, *entry.result.measures, *entry.reported.measures]):
        ends, measure = entry.interval(name), described.get(name)
        rows.append(
            [
                shortened(name, LONGEST) if measure is None else measure.heading,
                _shown(entry.result.measures.get(name)),
                _shown(entry.reported.measures.get(name)),
                "–" if ends is None else interval_text(ends, 6),
                "" if measure is None else measure.meaning,
            ]
        )
    return rows


def origin_rows(entry: Entry) -> list[list[str]]:
    """What an entry states beside its numbers: name and value."""
    values = entry.result.model_dump(mode="json")
    for name in ("schema_version", "task", "measures", "intervals", "skipped"):
        del values[name]
    model = values.pop("model")
    rows = [
        ["status", entry.status],
        ["verified on", entry.verified_on or "not verified"],
        ["submitted by", shortened(entry.submitter or NOT_KNOWN, LONGEST)],
        ["reproduction of", shortened(entry.reproduces or "no other entry", LONGEST)],
        ["folder", entry.folder],
    ]
    rows += [[name, shortened(_text(value), _MOST_WORDS)] for name, value in {**model, **values}.items()]
    return [*rows, ["clips left out", _skipped(entry.result.skipped)]]


def folder_url(repository: Repository, commit: str, entry: Entry) -> str:
    """Of the page of an entry's folder on the Hub."""
    return f"{repository.url}/tree/{quote(commit)}/{quote(entry.folder)}"


def hub_url(entry: Entry) -> str | None:
    """Of the page of the model on the Hub, where its id stands for one."""
    name = hub_id_of(entry.model)
    return None if name is None else f"{constants.ENDPOINT}/{name}"


def query_of(model: str) -> str:
    """What follows the board's address to open it at a model."""
    return f"?model={quote(model, safe='')}"


def _shown(value: float | bool | None, digits: int = 6) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is not None and abs(value) >= 1e12:
        return f"{value:.6g}"
    return number_text(value, 0 if isinstance(value, int) else digits, minus="−")


def _text(value: object) -> str:
    if value is None:
        return "not stated"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _skipped(skipped: Sequence[Skipped]) -> str:
    def listed(items: Iterable[Skipped]) -> str:
        return "; ".join(f"{shortened(item.id, LONGEST)} ({shortened(item.reason, LONGEST)})" for item in items)

    return "none" if not skipped else f"{len(skipped):,}: {listed(skipped[:5])}{'; …' if len(skipped) > 5 else ''}"
