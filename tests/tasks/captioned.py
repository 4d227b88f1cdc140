"""Rows of the tasks of captions, as their recipes give them, and models of which the scores are known."""

from __future__ import annotations

from typing import Any

import numpy as np

TIMBRES = ("bell", "bass", "brass", "reed", "organ", "pad")


def order_row(number: int, *, captions: int = 2, mention: str = "", **changes: Any) -> dict[str, Any]:
    """An item of two timbres, one after the other; with a third caption both at once."""
    x, y = TIMBRES[number % 6], TIMBRES[(number + 1 + number // 6 % 5) % 6]
    mention = mention or ("forward", "reverse")[number % 2]
    texts = [f"{x}, then {y}", f"{y}, then {x}"]
    if mention == "reverse":
        texts = [f"{y} after {x}", f"{x} after {y}"]
    events = [
        [{"label": a, "start": 0.0, "stop": 5.0}, {"label": b, "start": 5.0, "stop": 10.0}] for a, b in ((x, y), (y, x))
    ]
    if captions == 3:
        texts.append(f"{x} with {y}")
        events.append([{"label": label, "start": 0.0, "stop": 10.0} for label in (x, y)])
    row = {
        "id": f"order-{number:03d}",
        "split": "test",
        "captions": texts,
        "events": events,
        "swapped": "order",
        "mention": mention,
        "template": mention,
        "subset": "novel" if number % 3 == 0 else "seen",
        "pair": " & ".join(sorted((x, y))),
        "origin": "synthetic",
        "writer": "template",
        "gap": 0.1 * (number % 4),
        "overlap": 0.0,
        "distance": 0.0,
    }
    return row | changes


def order_rows(count: int = 24, triplets: int = 6) -> list[dict[str, Any]]:
    """Items, some of which have a third caption."""
    return [order_row(number, captions=3 if number < triplets else 2) for number in range(count)]


def first_heard(row: dict[str, Any]) -> np.ndarray:
    """Of each clip of a row a vector of what is heard, and twice what is heard first: [clips, timbres]."""
    clips = np.zeros((len(row["events"]), len(TIMBRES)))
    for clip, events in zip(clips, row["events"], strict=True):
        for event in events:
            clip[TIMBRES.index(event["label"])] += 2 if event["start"] == 0 else 1
    return clips


def first_named(row: dict[str, Any]) -> np.ndarray:
    """Of each caption a vector of what is named, and twice what is named first: [captions, timbres]."""
    texts = np.zeros((len(row["captions"]), len(TIMBRES)))
    for text, caption in zip(texts, row["captions"], strict=True):
        names = [word.strip(",") for word in caption.split() if word.strip(",") in TIMBRES]
        for place, name in enumerate(names):
            text[TIMBRES.index(name)] += 2 - place
    return texts


def meant(row: dict[str, Any]) -> np.ndarray:
    """What captions mean: what sounds in the clips that they are true of."""
    return first_heard(row)
