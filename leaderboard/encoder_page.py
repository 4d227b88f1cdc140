"""The page of an encoder: all its entries, every number of each, and what it was run with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from urllib.parse import quote

from huggingface_hub import constants

from audio_compositionality.dataset_builder import PRESETS, preset_config
from audio_compositionality.encoders.loading.registry import HUB_ID, UNTRAINED
from audio_compositionality.evaluator.compare.table import TITLES
from audio_compositionality.hub import Repository

from .entries import Board, Entry, Interval
from .table import NOT_KNOWN, notes, shortened

ENTRY_HEADINGS = (
    "task",
    "data",
    "status",
    "submitted by",
    "score",
    "95 % interval",
    "date",
    "revision",
    "notes",
    "in the table",
    "entry",
)

_MOST_WORDS = 400
"""Characters of what a result was run with."""


@cache
def presets() -> Mapping[str, str]:
    """Fingerprint of each preset -> its name."""
    return {preset_config(name).fingerprint: name for name in PRESETS}


def data_name(fingerprint: str) -> str:
    """A data set's name where it is a preset, else the beginning of its fingerprint."""
    return presets().get(fingerprint, f"data {fingerprint[:8]}")


def interval_text(interval: Interval | None, kind: str) -> str:
    """An interval with how it was computed."""
    return "–" if interval is None else f"{interval[0]:z.3f} to {interval[1]:z.3f} ({kind})"


def entry_rows(board: Board, encoder_id: str) -> list[list[str]]:
    """All entries of an encoder, a row of `ENTRY_HEADINGS` each."""
    return [
        [
            TITLES[entry.result.task],
            data_name(entry.result.fingerprint),
            entry.status,
            shortened(entry.submitter or NOT_KNOWN),
            f"{entry.result.score:z.3f}",
            interval_text(entry.interval, entry.interval_kind),
            entry.result.date[:10],
            shortened(entry.result.encoder_revision),
            ", ".join(notes(entry)),
            "yes" if entry.id in board.in_table else "no, it has others before it",
            entry.id,
        ]
        for entry in board.of_encoder(encoder_id)
    ]


def number_rows(entry: Entry) -> list[list[str]]:
    """Score and every control of an entry: name, what is shown, what was reported."""
    pairs: list[tuple[str, float | bool | None, float | bool | None]] = [
        ("score", entry.result.score, entry.reported.score),
        ("sd", entry.result.std, entry.reported.std),
    ]
    names = list(dict.fromkeys([*entry.result.controls, *entry.reported.controls]))
    pairs += [(name, entry.result.controls.get(name), entry.reported.controls.get(name)) for name in names]
    return [[shortened(name), _number(shown), _number(reported)] for name, shown, reported in pairs]


def origin_rows(entry: Entry) -> list[list[str]]:
    """What an entry states beside its numbers: name and value."""
    result = entry.result
    values = asdict(result)
    for name in ("score", "std", "interval", "controls", "skipped", "task"):
        del values[name]
    rows = [
        ["status", entry.status],
        ["verified on", entry.verified_on or "not verified"],
        ["submitted by", shortened(entry.submitter or NOT_KNOWN)],
        ["folder", entry.folder],
    ]
    rows += [[name, shortened(_text(value), _MOST_WORDS)] for name, value in values.items()]
    return [*rows, ["clips left out", _skipped(result.skipped)]]


def folder_url(repository: Repository, commit: str, entry: Entry) -> str:
    """Of the page of an entry's folder on the Hub."""
    return f"{repository.url}/tree/{quote(commit)}/{quote(entry.folder)}"


def model_url(entry: Entry) -> str | None:
    """Of the page of the model, where the encoder's id is one of a model on the Hub."""
    name = entry.result.encoder_id.removeprefix(UNTRAINED)
    return f"{constants.ENDPOINT}/{name}" if HUB_ID.fullmatch(name) else None


def query_of(encoder_id: str) -> str:
    """What follows the page's address to open it at an encoder."""
    return f"?encoder={quote(encoder_id, safe='')}"


def _number(value: object) -> str:
    return "–" if value is None else str(value) if isinstance(value, bool) else f"{value:z.6g}"


def _text(value: object) -> str:
    if value is None:
        return "not stated"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _skipped(skipped: Sequence[Mapping[str, str]]) -> str:
    def listed(items: Iterable[Mapping[str, str]]) -> str:
        return "; ".join(f"{shortened(item['id'])} ({shortened(item['reason'])})" for item in items)

    return "none" if not skipped else f"{len(skipped):,}: {listed(skipped[:5])}{'; …' if len(skipped) > 5 else ''}"
