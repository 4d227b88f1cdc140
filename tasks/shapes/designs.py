"""Designs: the varied factor or transform, the orbits that differ in it alone, and the folds of training and test.

A task that fits probes uses a design. A factor has levels, and each combination of all other factors, its context, is
an orbit; a transform has strengths, and a clip with its copies is an orbit.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.bases import DIFFERING, SAME
from audio_compositionality.dataset_builder.scenes.effects import list_transforms
from audio_compositionality.dataset_builder.scenes.sources import CROSSED
from audio_compositionality.dataset_builder.sounds.tones import ATTRIBUTES
from audio_compositionality.encoders.base import ENCODER

from ..base import Samples, TaskError, labels_for_people, numbered, source_counts

FOLDS = 5

FACTORS = ATTRIBUTES

IN_SCENES = tuple(f"{factor}_in_scene" for factor in FACTORS)
"""Names of the factors if they are varied within a scene."""

CLASSES = ("timbre",)
"""The factors whose levels have no order."""

TRANSFORMS = tuple(list_transforms())

UNSEEN, SEEN = "unseen", "seen"
"""Test timbres of two sources: absent from training, or present with other notes."""

_FEWEST_GROUPS = 3
"""Fewest groups of timbres."""

METERS = ("level-statistics", "rms")
"""Energy controls, which represent only the level of a clip: a score that they also have needs no more than that."""

PAPER = {"probes": ["slp", "mlp"], "scaled": False}
"""Settings that follow arXiv 2505.06224: both of its probes, on unscaled features and targets."""

FACTOR_WARNING = (
    "The sounds are synthetic, far from speech and from most recordings. Compare with log-mel statistics, levels "
    "alone and an untrained network: what these score too does not need training."
)

TRANSFORM_WARNING = (
    "Which changes should matter depends on the use of a representation. Compare it with log-mel statistics and "
    "an untrained network: what they score too does not need training."
)


_AXES: dict[str, Any] = {
    "benchmark": "axes",
    "needs": ENCODER,
    "on_request": True,
    "controls": METERS,
    "protocols": {"paper": PAPER},
}

OF_FACTORS: dict[str, Any] = _AXES | {"recipe": "factors", "samples": "clips", "captions": {"audio": "one source"}}
"""Facts of the tasks of factors; see `TaskInfo`."""

OF_TRANSFORMS: dict[str, Any] = _AXES | {
    "recipe": "transforms",
    "samples": "clips with copies",
    "captions": {"audio": "the transformed clip"},
}
"""Facts of the tasks of transforms."""


@dataclass(frozen=True)
class VariedClip:
    """A clip in which one factor or one transform is varied.

    Attributes:
        place: index among the embedded clips.
        orbit: equal for clips that differ in nothing else.
        level: level of the factor, or the transform's strength: a number, or the name of a class; NaN for an original,
            None if there is none.
        block: equal for clips that are never split between training and test; None if orbits are the blocks.
        fold: fold in which the clip is tested; −1 if nothing is fitted.
        sample: index of the clip's sample in `Design.scored`; −1 if clips are not samples.
        is_original: whether it is its orbit's untransformed clip.
        same, different: for an original, the indices among the embedded clips of a clip with its content and of one
            with other content; −1 if there are none.
    """

    place: int
    orbit: Hashable
    level: Any = None
    block: Hashable = None
    fold: int = -1
    sample: int = -1
    is_original: bool = False
    same: int = -1
    different: int = -1


class Design(ABC):
    """The varied clips in a recipe's rows."""

    @abstractmethod
    def is_given(self, row: Row) -> bool:
        """Return whether a row's clip is embedded."""

    @abstractmethod
    def check(self, rows: Sequence[Row], task: str) -> None:
        """Raise TaskError if the rows cannot be scored.

        Raises:
            TaskError: the rows are too few, or incomplete.
        """

    @abstractmethod
    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[VariedClip]]]:
        """Yield names of factors or transforms and their clips.

        Args:
            rows: rows of all embedded clips, which may be more than this design uses.
        """

    @abstractmethod
    def scored(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that are samples."""

    @abstractmethod
    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the facts of these samples."""


class FactorDesign(Design):
    """Single sources with all combinations of levels; an orbit differs in one factor, and a fold is a set of
    contexts."""

    def is_given(self, row: Row) -> bool:
        """Return whether a row is one of the single sources with all combinations."""
        return is_crossed(row)

    def check(self, rows: Sequence[Row], task: str) -> None:
        """Raise TaskError if the single sources cannot be scored.

        Raises:
            TaskError: a factor has one level, or too few contexts for separate training and test.
        """
        crossed = self.scored(rows)
        for factor in FACTORS:
            levels = {row["levels"][factor] for row in crossed}
            contexts = set(contexts_of(crossed, factor))
            if len(levels) < 2 or len(contexts) < FOLDS:
                raise TaskError(
                    f"{task} has {len(levels)} levels of {factor} in {len(contexts)} contexts; at least 2 levels in "
                    f"{FOLDS} contexts are needed"
                )

    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[VariedClip]]]:
        """Yield each factor, with all single sources."""
        places = [place for place, row in enumerate(rows) if is_crossed(row)]
        crossed = [rows[place] for place in places]
        for factor in FACTORS:
            yield factor, _in_orbits(places, contexts_of(crossed, factor), factor_levels(crossed, factor))

    def scored(self, rows: Sequence[Row]) -> list[Row]:
        """Return the single sources."""
        return [row for row in rows if is_crossed(row)]

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the single sources as samples; sources that differ in the timbre alone are not independent."""
        crossed = self.scored(rows)
        return Samples(
            rows=tuple(crossed),
            clusters=numbered(contexts_of(crossed, "timbre")),
            clustered_by="the combinations of pitch, rate and amplitude",
            groups={factor: tuple(str(row["metadata"][0][f"{factor}_label"]) for row in crossed) for factor in FACTORS},
            contents=tuple({"audio": labels_for_people(row["metadata"])} for row in crossed),
        )


class SceneFactorDesign(FactorDesign):
    """`FactorDesign` plus stars: a scene and clips that differ from it in one factor of one source.

    The samples are the single sources. A fold of stars is a set of scenes.
    """

    def is_given(self, row: Row) -> bool:
        """Return whether a row is a single source or part of a star, except a star's clip with other onsets."""
        return is_crossed(row) or row["factor"] in (*FACTORS, "")

    def check(self, rows: Sequence[Row], task: str) -> None:
        """Raise TaskError if the rows cannot be scored.

        Raises:
            TaskError: for the reasons of `FactorDesign`, or if there are fewer stars than folds.
        """
        super().check(rows, task)
        stars = {row["block"] for row in rows if not is_crossed(row)}
        if len(stars) < FOLDS:
            raise TaskError(f"{task} has {len(stars)} stars; at least {FOLDS} are needed")

    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[VariedClip]]]:
        """Yield each factor with all single sources, then as one of `IN_SCENES` with the scenes and their clips."""
        yield from super().parts(rows)
        for factor, name in zip(FACTORS, IN_SCENES, strict=True):
            places = [place for place, row in enumerate(rows) if not is_crossed(row) and row["factor"] in (factor, "")]
            members = [rows[place] for place in places]
            clips = _in_orbits(places, [row["block"] for row in members], factor_levels(members, factor))
            yield name, [replace(clip, sample=-1) for clip in clips]


class TwoSourceDesign(Design):
    """Two sources, one with the faster rate; a clip's context is the timbres and notes of both.

    Training has other timbres than the test (`UNSEEN`), or the same timbres with other notes (`SEEN`).
    """

    def is_given(self, row: Row) -> bool:
        """Return True: every clip is embedded."""
        return True

    def check(self, rows: Sequence[Row], task: str) -> None:
        """Raise TaskError if there are too few timbres.

        Raises:
            TaskError: there are too few groups of timbres for training, validation and test.
        """
        groups = len({row["group"] for row in rows})
        if groups < _FEWEST_GROUPS:
            raise TaskError(f"{task} has {groups} groups of timbres; at least {_FEWEST_GROUPS} are needed")

    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[VariedClip]]]:
        """Yield both ways to learn which source is faster, each with all clips."""
        contexts = [_timbres_and_notes(row) for row in rows]
        seen = _in_orbits(range(len(rows)), contexts, [row["faster"] for row in rows])
        yield UNSEEN, [replace(clip, fold=row["group"]) for clip, row in zip(seen, rows, strict=True)]
        yield SEEN, seen

    def scored(self, rows: Sequence[Row]) -> list[Row]:
        """Return all clips."""
        return list(rows)

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return all clips as samples; clips with the same timbres and notes are not independent."""
        return Samples(
            rows=tuple(rows),
            clusters=numbered([_timbres_and_notes(row) for row in rows]),
            clustered_by="the timbres and notes of both sources",
            groups={"faster": tuple(row["faster"] for row in rows)},
            contents=tuple(
                {
                    "audio": [
                        {"timbre": timbre, "pitch": f"MIDI {note}", "rate": f"{rate:g} Hz"}
                        for timbre, note, rate in zip(row["timbres"], row["notes"], row["rates"], strict=True)
                    ]
                }
                for row in rows
            ),
        )


class TransformDesign(Design):
    """Clips and their copies by transforms; the rows state the folds."""

    def is_given(self, row: Row) -> bool:
        """Return whether a row's clip is a base or a copy."""
        return not is_candidate(row)

    def check(self, rows: Sequence[Row], task: str) -> None:
        """See `check_orbits`."""
        check_orbits(rows, task)

    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[VariedClip]]]:
        """Yield each transform with its copies and their originals."""
        sample_of = {row["base"]: place for place, row in enumerate(self.scored(rows))}
        for transform in transforms_of(rows):
            copied = {row["base"] for row in rows if row["transform"] == transform}
            clips = []
            for place, row in enumerate(rows):
                first, base = is_original(row), row["base"]
                if base in copied and (first or row["transform"] == transform):
                    (level,), (block,) = parameters_of([row]), blocks_of([row])
                    clips.append(VariedClip(place, base, level, block, int(row["fold"]), sample_of[base], first))
            yield transform, clips

    def scored(self, rows: Sequence[Row]) -> list[Row]:
        """Return the originals that have copies, in the order of the rows."""
        copied = {row["base"] for row in rows if row["transform"]}
        return [row for row in rows if is_original(row) and row["base"] in copied]

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the originals that have copies as samples; originals of one group are not independent."""
        originals = self.scored(rows)
        groups: dict[str, tuple[str, ...]] = {}
        if any(row.get("label") for row in originals):
            groups["the label"] = tuple(str(row["label"]) for row in originals)
        else:
            groups["the number of sources"] = tuple(str(len(row["metadata"])) for row in originals)
        return Samples(
            rows=tuple(originals),
            clusters=numbered(blocks_of(originals)),
            clustered_by="the groups of recordings" if any(row.get("group") for row in originals) else "",
            groups=groups,
            contents=tuple(
                {
                    "audio": labels_for_people(row["metadata"])
                    if row["metadata"]
                    else [{"label": str(row.get("label") or "")}]
                }
                for row in originals
            ),
        )


class LabelledTransformDesign(TransformDesign):
    """`TransformDesign` for clips with known labels: labelled recordings, or scenes with levels of factors."""

    def is_given(self, row: Row) -> bool:
        """Return whether the label of a base or a copy is known."""
        return not is_candidate(row) and (bool(row.get("label")) or row.get("levels") is not None)

    def scored(self, rows: Sequence[Row]) -> list[Row]:
        """Return the originals that have copies and labels."""
        return super().scored([row for row in rows if self.is_given(row)])


class ComparedTransformDesign(TransformDesign):
    """`TransformDesign` for clips with two candidates each: one with the same content, and one with other content."""

    def is_given(self, row: Row) -> bool:
        """Return True: every clip is embedded."""
        return True

    def check(self, rows: Sequence[Row], task: str) -> None:
        """See `check_orbits`.

        Raises:
            TaskError: for the reasons of `check_orbits`, or if no clip has candidates to compare its copies with.
        """
        check_orbits(rows, task)
        if not compared(rows):
            raise TaskError(f"{task} has no candidate clips to compare copies with: build the data again")
        check_orbits(compared(rows), task)

    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[VariedClip]]]:
        """Yield each transform, with the originals, their copies and the candidates."""
        places, same, different = _candidate_places(rows)
        for transform, clips in super().parts([rows[place] for place in places]):
            yield (
                transform,
                [
                    replace(
                        clip,
                        place=places[clip.place],
                        same=same[clip.orbit] if clip.is_original else -1,
                        different=different[clip.orbit] if clip.is_original else -1,
                    )
                    for clip in clips
                ],
            )

    def scored(self, rows: Sequence[Row]) -> list[Row]:
        """Return the originals that have copies and candidates."""
        return super().scored(compared(rows))

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return these originals as samples, with the factor in which the candidate with other content differs."""
        samples = super().samples(rows)
        differs = {row["base"]: row["candidate"] for row in rows if is_candidate(row) and row["candidate"] != SAME}
        groups = {"what the other clip differs in": tuple(differs[row["base"]] for row in samples.rows)}
        return replace(samples, groups={**samples.groups, **groups})


class OnsetDesign(Design):
    """Scenes, each with a clip whose sources begin at other times and a clip that differs in one factor of one source.

    In the comparison the scene counts as the copy, and the clip with other onsets as its original.
    """

    def is_given(self, row: Row) -> bool:
        """Return whether a row's clip is a base or a candidate."""
        return is_original(row) or is_candidate(row)

    def check(self, rows: Sequence[Row], task: str) -> None:
        """Raise TaskError for recordings, and for too few scenes.

        Raises:
            TaskError: rows are recordings, or there are too few scenes.
        """
        if any(row["recording"] for row in rows):
            raise TaskError(f"{task} needs scenes; it has recordings, whose sounds cannot be moved in time")
        bases = self.scored(rows)
        if len(bases) < FOLDS:
            raise TaskError(
                f"{task} has {len(bases)} scenes with a clip with other onsets and one with another source; at least "
                f"{FOLDS} are needed"
            )

    def parts(self, rows: Sequence[Row]) -> Iterator[tuple[str, list[VariedClip]]]:
        """Yield one part, ``onsets``."""
        places, same, different = _candidate_places(rows)
        scenes = {rows[place]["base"]: place for place in places if is_original(rows[place])}
        originals = [
            VariedClip(same[base], base, sample=number, is_original=True, same=same[base], different=different[base])
            for number, base in enumerate(scenes)
        ]
        copies = [VariedClip(place, base, sample=number) for number, (base, place) in enumerate(scenes.items())]
        yield "onsets", [*originals, *copies]

    def scored(self, rows: Sequence[Row]) -> list[Row]:
        """Return the scenes that have both candidates, in the order of the rows."""
        return [row for row in compared([row for row in rows if self.is_given(row)]) if is_original(row)]

    def samples(self, rows: Sequence[Row]) -> Samples:
        """Return the scenes that have candidates as samples."""
        bases = self.scored(rows)
        differs = {row["base"]: row["candidate"] for row in rows if row["candidate"] in DIFFERING}
        return Samples(
            rows=tuple(bases),
            clusters=np.arange(len(bases)),
            groups={
                "the number of sources": tuple(map(str, source_counts([row["metadata"] for row in bases]))),
                "what the other clip differs in": tuple(differs[row["base"]] for row in bases),
            },
            contents=tuple({"audio": labels_for_people(row["metadata"])} for row in bases),
        )


def dealt_folds(groups: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return a fold for each row, equal within groups; groups take turns in the order of the digests of their names."""
    names = {group: repr(group) for group in dict.fromkeys(groups)}
    order = sorted(names, key=lambda group: hashlib.sha256(names[group].encode()).digest())
    folds = {group: place % FOLDS for place, group in enumerate(order)}
    return np.array([folds[group] for group in groups], np.int64)


def _in_orbits(places: Sequence[int], orbits: Sequence[Hashable], levels: Sequence[Any]) -> list[VariedClip]:
    """Return clips in orbits that are blocks and are assigned to folds in turn; each clip is a sample."""
    folds = dealt_folds(orbits).tolist()
    return [
        VariedClip(place, orbit, level, orbit, fold, sample)
        for sample, (place, orbit, level, fold) in enumerate(zip(places, orbits, levels, folds, strict=True))
    ]


def is_crossed(row: Row) -> bool:
    """Return whether a row is one of the single sources with all combinations."""
    return bool(row["kind"] == CROSSED)


def factor_levels(rows: Sequence[Row], factor: str) -> list[Any]:
    """Return the level of a factor in each row: a number if levels have an order, else the name of the class.

    Levels are evenly spaced, in semitones, in the logarithm of the rate and in dB, so their numbers represent them.
    """
    if factor in CLASSES:
        return [str(row["metadata"][0][f"{factor}_label"]) for row in rows]
    return [float(row["levels"][factor]) for row in rows]


def contexts_of(rows: Sequence[Row], factor: str) -> list[Hashable]:
    """Return the context of each row for a factor: the levels of all other factors."""
    return [tuple(row["levels"][other] for other in FACTORS if other != factor) for row in rows]


def is_original(row: Row) -> bool:
    """Return whether a row's clip is a base: neither transformed nor a candidate."""
    return not row["transform"] and not is_candidate(row)


def is_candidate(row: Row) -> bool:
    """Return whether a row's clip is a candidate that copies are compared with."""
    return bool(row["candidate"])


def compared(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of bases with both candidates: one with the same content and one with other content."""
    kinds = ("base", "same", "other")
    bases: dict[str, set[str]] = {kind: set() for kind in kinds}
    for row in rows:
        if not row["transform"]:
            bases["base" if is_original(row) else "same" if row["candidate"] == SAME else "other"].add(row["base"])
    return [row for row in rows if all(row["base"] in bases[kind] for kind in kinds)]


def _candidate_places(rows: Sequence[Row]) -> tuple[list[int], dict[Hashable, int], dict[Hashable, int]]:
    """Return indices of the `compared` rows, and of the candidates with the same and with other content, by base."""
    kept = {row["id"] for row in compared(rows)}
    places = [place for place, row in enumerate(rows) if row["id"] in kept]
    same, different = (
        {rows[n]["base"]: n for n in places if is_candidate(rows[n]) and (rows[n]["candidate"] == SAME) == is_same}
        for is_same in (True, False)
    )
    return places, same, different


def transforms_of(rows: Sequence[Row]) -> list[str]:
    """Return the transforms that have copies, in the order of `TRANSFORMS`; unlisted ones come last."""
    names = {row["transform"] for row in rows} - {""}
    return [name for name in TRANSFORMS if name in names]


def bases_of(rows: Sequence[Row]) -> list[int]:
    """Return, for each row of originals and copies, the index of its original among the rows, −1 for an original."""
    places = {row["base"]: place for place, row in enumerate(rows) if is_original(row)}
    return [-1 if is_original(row) else places[row["base"]] for row in rows]


def parameters_of(rows: Sequence[Row]) -> list[float]:
    """Return the relative position of each copy's parameter in its range, from 0 to 1; NaN for an original."""
    return [float("nan") if is_original(row) else float(row["scaled"]) for row in rows]


def blocks_of(rows: Sequence[Row]) -> list[str]:
    """Return the block of each row, never split between training and test: a recording's group, else the original."""
    return [str(row.get("group") or row["base"]) for row in rows]


def row_folds(rows: Sequence[Row]) -> NDArray[np.int64]:
    """Return the fold of each row."""
    return np.array([int(row["fold"]) for row in rows], np.int64)


def check_orbits(rows: Sequence[Row], task: str) -> None:
    """Raise TaskError if there are too few originals.

    Raises:
        TaskError: a transform has copies of fewer than 5 blocks, no transform has copies, or a copy has no original.
    """
    originals = {row["base"] for row in rows if is_original(row)}
    orphans = [row["id"] for row in rows if row["base"] not in originals]
    if orphans:
        raise TaskError(f"{task} has the copy {orphans[0]} without its original")
    if not transforms_of(rows):
        raise TaskError(f"{task} has no copies by a transform; transforms are {', '.join(TRANSFORMS)}")
    for transform in transforms_of(rows):
        blocks = {block for row, block in zip(rows, blocks_of(rows), strict=True) if row["transform"] == transform}
        if len(blocks) < FOLDS:
            raise TaskError(
                f"{task} has copies by {transform} of {len(blocks)} clips or groups of them; {FOLDS} are needed"
            )


def _timbres_and_notes(row: Row) -> Hashable:
    """Return the timbre and the note of both sources of a clip, without their rates."""
    return (*row["timbres"], *row["notes"])
