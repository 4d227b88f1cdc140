"""The columns of items and of training rows that have captions, whatever their clips are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from ..data import DatasetError, Row
from .captions import Mention
from .truth import Event
from .variants import Kind

if TYPE_CHECKING:
    from datasets import Features


ORIGINS = ("synthetic", "recordings", "published")
WRITERS = ("template", "language-model", "human")
SUBSETS = ("seen", "novel", "")

DIALS = ("gap", "overlap", "distance")

TEXTS = ("swapped", "mention", "template", "subset", "pair", "origin", "writer", "domain")


def event_feature(texts: Sequence[str] = ()) -> dict[str, Any]:
    """What `datasets` calls the feature of an event, with further columns of text.

    ``label``, ``attributes`` (the words that are true of it), ``start`` and ``stop`` in seconds are all that
    `truth.Event.of` needs.
    """
    from datasets import List, Value

    text, number = Value("string"), Value("float64")
    words = {"label": text, "attributes": List(text)}
    return {**words, "start": number, "stop": number, **dict.fromkeys(texts, text)}


def item_features(
    sample_rate: int | None, texts: Sequence[str] = (), extra: Mapping[str, Any] | None = None
) -> Features:
    """The columns of an item: two or three clips, and a caption of each that is false of the others.

    Args:
        sample_rate: Hz; None where each clip has its own.
        texts: further columns of an event.
        extra: further columns of the item.
    """
    from datasets import Audio, Features, List, Value

    return Features(
        {
            "id": Value("string"),
            "audio": List(Audio(sampling_rate=sample_rate)),
            "captions": List(Value("string")),
            "events": List(List(event_feature(texts))),
            **dict.fromkeys(TEXTS, Value("string")),
            **dict.fromkeys(DIALS, Value("float64")),
            **(extra or {}),
        }
    )


def training_features(
    sample_rate: int | None, texts: Sequence[str] = (), extra: Mapping[str, Any] | None = None
) -> Features:
    """The columns of a training row: one clip, what is true of it, and what is false; arguments as `item_features`."""
    from datasets import Audio, Features, List, Value

    text = Value("string")
    return Features(
        {
            "id": text,
            "audio": Audio(sampling_rate=sample_rate),
            "captions": List(text),
            "parts": List(text),
            "negatives": List({"text": text, "kind": text}),
            "events": List(event_feature(texts)),
            **(extra or {}),
        }
    )


def clip_names(row: Row) -> tuple[str, ...]:
    """Names of an item's clips."""
    return tuple(f"audio/{place}" for place in range(len(row["captions"])))


def check_item(row: Row) -> None:
    """Refuse a row that is no item: captions, events, tags or dials are missing.

    Raises:
        DatasetError: names the row and what is wrong.
    """
    captions = _texts(row, "captions")
    if len(captions) not in (2, 3) or len(set(captions)) < len(captions):
        raise DatasetError(f"row {row['id']}: captions are {captions!r}; an item has two or three, all different")
    events = row.get("events")
    if not isinstance(events, list) or len(events) != len(captions):
        raise DatasetError(
            f"row {row['id']}: events are {events!r}; they are a list for each of the {len(captions)} clips"
        )
    for of_clip in events:
        check_events(row["id"], of_clip)
    for column, valid in (
        ("mention", get_args(Mention)),
        ("subset", SUBSETS),
        ("origin", ORIGINS),
        ("writer", WRITERS),
    ):
        if row.get(column) not in valid:
            raise DatasetError(f"row {row['id']}: {column} is {row.get(column)!r}; it is one of {_listed(valid)}")
    for column in TEXTS:
        if not isinstance(row.get(column), str):
            raise DatasetError(f"row {row['id']}: {column} is {row.get(column)!r}; it is a text")
    for column in DIALS:
        if not isinstance(row.get(column), float):
            raise DatasetError(f"row {row['id']}: {column} is {row.get(column)!r}; it is a number")


def check_training_row(row: Row) -> None:
    """Refuse a row without captions, or with negatives that do not say their kind; raises as `check_item`."""
    if not _texts(row, "captions"):
        raise DatasetError(f"row {row['id']}: there is no caption")
    _texts(row, "parts")
    negatives = row.get("negatives")
    for negative in negatives if isinstance(negatives, list) else [negatives]:
        kinds = get_args(Kind)
        if (
            not isinstance(negative, dict)
            or not isinstance(negative.get("text"), str)
            or negative.get("kind") not in kinds
        ):
            raise DatasetError(
                f"row {row['id']}: a negative is {negative!r}; it has a text and a kind: {_listed(kinds)}"
            )
    check_events(row["id"], row.get("events"))


def check_events(row_id: str, events: Any) -> None:
    """Refuse what is no list of events; raises as `check_item`."""
    if not isinstance(events, list):
        raise DatasetError(f"row {row_id}: the events of a clip are {events!r}; they are a list")
    for event in events:
        try:
            Event.of(event)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise DatasetError(
                f"row {row_id}: an event is {event!r}; it has a label, attributes, and start < stop in seconds"
            ) from error


def _texts(row: Row, column: str) -> list[str]:
    texts = row.get(column)
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise DatasetError(f"row {row['id']}: {column} are {texts!r}; they are a list of texts")
    return texts


def _listed(valid: Sequence[str]) -> str:
    return ", ".join(map(repr, valid))
