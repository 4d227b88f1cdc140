"""What tasks read from the rows of clips and what transforms made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.bases import SAME
from audio_compositionality.dataset_builder.scenes.effects import list_transforms

from . import scenes
from .base import Samples, TaskError
from .parts import FOLDS

TRANSFORMS = tuple(list_transforms())

CAPTIONS = {"audio": "the clip that is transformed"}

WARNING = (
    "Which changes should matter depends on what a representation is for. Read it beside log-mel statistics and "
    "an untrained network: what they reach as well was not learnt."
)


def is_original(row: Row) -> bool:
    """Whether a row's clip is a base: nothing was done to it, and it is no candidate."""
    return not row["transform"] and not is_candidate(row)


def is_candidate(row: Row) -> bool:
    """Whether a row's clip is there to be compared with copies alone."""
    return bool(row["candidate"])


def without_candidates(rows: Sequence[Row]) -> list[Row]:
    """The bases and their copies."""
    return [row for row in rows if not is_candidate(row)]


def compared(rows: Sequence[Row]) -> list[Row]:
    """The rows of bases that are there with both candidates: one of the same content and one of another."""
    kinds = ("base", "same", "other")
    bases: dict[str, set[str]] = {kind: set() for kind in kinds}
    for row in rows:
        if not row["transform"]:
            bases["base" if is_original(row) else "same" if row["candidate"] == SAME else "other"].add(row["base"])
    return [row for row in rows if all(row["base"] in bases[kind] for kind in kinds)]


def candidate_places(rows: Sequence[Row]) -> tuple[list[int], list[int]]:
    """Places of the candidates of the same and of another content, each in the order of bases; of `compared` rows."""
    candidates = [(place, row["candidate"] == SAME) for place, row in enumerate(rows) if is_candidate(row)]
    return [place for place, is_same in candidates if is_same], [place for place, is_same in candidates if not is_same]


def copied_originals(rows: Sequence[Row]) -> list[Row]:
    """The originals that have copies, in the order of the rows."""
    copied = {row["base"] for row in rows if row["transform"]}
    return [row for row in rows if is_original(row) and row["base"] in copied]


def transforms_of(rows: Sequence[Row]) -> list[str]:
    """The transforms that there are copies by, in the order of `TRANSFORMS`; others come last."""
    names = {row["transform"] for row in rows} - {""}
    return [name for name in TRANSFORMS if name in names]


def orbit_places(rows: Sequence[Row], transform: str) -> list[int]:
    """Places of the originals that have a copy by a transform, and of these copies, in the order of the rows."""
    copied = {row["base"] for row in rows if row["transform"] == transform}
    return [
        place
        for place, row in enumerate(rows)
        if row["base"] in copied and (is_original(row) or row["transform"] == transform)
    ]


def bases_of(rows: Sequence[Row]) -> list[int]:
    """For each row of originals and copies the place of its original among the rows, −1 for an original."""
    places = {row["base"]: place for place, row in enumerate(rows) if is_original(row)}
    return [-1 if is_original(row) else places[row["base"]] for row in rows]


def parameters_of(rows: Sequence[Row]) -> list[float]:
    """Place of each copy's parameter in its range, from 0 to 1; NaN for an original."""
    return [float("nan") if is_original(row) else float(row["scaled"]) for row in rows]


def blocks_of(rows: Sequence[Row]) -> list[str]:
    """What is never both learnt from and tested: the group of a recording, else the original."""
    return [str(row.get("group") or row["base"]) for row in rows]


def folds_of(rows: Sequence[Row]) -> list[int]:
    """The fold of each row."""
    return [int(row["fold"]) for row in rows]


def check_orbits(rows: Sequence[Row], task: str) -> None:
    """Refuse rows with too few originals.

    Raises:
        TaskError: a transform has copies of fewer than 5 blocks or none has any, or a copy has no original.
    """
    originals = {row["base"] for row in rows if is_original(row)}
    orphans = [row["id"] for row in rows if row["base"] not in originals]
    if orphans:
        raise TaskError(f"{task} has the copy {orphans[0]} without its original")
    if not transforms_of(rows):
        raise TaskError(f"{task} has no copies by a transform; there are {', '.join(TRANSFORMS)}")
    for transform in transforms_of(rows):
        blocks = {block for row, block in zip(rows, blocks_of(rows), strict=True) if row["transform"] == transform}
        if len(blocks) < FOLDS:
            raise TaskError(
                f"{task} has copies by {transform} of {len(blocks)} clips or groups of them; it needs at least {FOLDS}"
            )


def original_samples(rows: Sequence[Row]) -> Samples:
    """The originals that have copies; those of one group are not independent."""
    originals = copied_originals(rows)
    groups: dict[str, tuple[str, ...]] = {}
    if any(row.get("label") for row in originals):
        groups["the label"] = tuple(str(row["label"]) for row in originals)
    else:
        groups["the number of sources"] = tuple(str(len(row["metadata"])) for row in originals)
    return Samples(
        rows=tuple(originals),
        clusters=scenes.numbered(blocks_of(originals)),
        clustered_by="the groups of recordings" if any(row.get("group") for row in originals) else "",
        groups=groups,
        contents=tuple({"audio": _content(row)} for row in originals),
    )


def _content(row: Row) -> list[Mapping[str, str]]:
    if row["metadata"]:
        return list(scenes.labels_for_people(row["metadata"]))
    return [{"label": str(row.get("label") or "")}]
