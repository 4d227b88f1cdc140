"""Clips and copies of them after signal processing with one known parameter (after arXiv 2505.06224)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from ..data import AUDIO, NUMBER, TEXT, WHOLE, DataColumn, DatasetError, Rendering, Row
from ..scenes import bases
from ..scenes.effects import ParameterRange, Transform
from ..scenes.sources import LEVELS, SOURCE_LABELS, SOURCES, VALUES
from ..sounds.entries import Sounds
from ..sounds.splits import FOLDS
from .base import Drawn, Recipe


class Transforms(Recipe[bases.TransformSpec]):
    """Clips, their copies after transforms, and candidates for comparison."""

    name = "transforms"
    version = 2
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, bases.TransformSpec]:
        """Return the settings of each preset; ``paper-`` presets have the paper's ranges and transforms."""
        paper: dict[str, Any] = {"transforms": ("noise", "reverb"), "ranges": bases.PAPER_RANGES}
        mini: dict[str, Any] = {"bases": 48, "untransformed": 112}
        return {
            "mini": bases.TransformSpec(**mini),
            "full": bases.TransformSpec(),
            "paper-mini": bases.TransformSpec(**mini, **paper),
            "paper-full": bases.TransformSpec(**paper),
        }

    def of_sounds(self, spec: bases.TransformSpec, sounds: Sounds, requested: Mapping[str, Any]) -> bases.TransformSpec:
        """Return a spec with sounds instead of scenes, and with all transforms for which the preset has a range.

        The paper has four transforms; two of them can be applied to scenes.
        """
        usual = tuple(name for name, _ in spec.ranges) or spec.transforms
        return super().of_sounds(spec, sounds, {"transforms": usual, **requested})

    def columns(self, spec: bases.TransformSpec) -> Sequence[DataColumn]:
        """Return the columns: the transform and the clip of each copy; null if there is no transform."""
        return (
            DataColumn("id", TEXT, "name of the row"),
            DataColumn("audio", AUDIO, "the clip"),
            DataColumn("base", TEXT, "name of the clip that was transformed; its own name if it has no copies"),
            DataColumn("transform", TEXT, "name of the transform; empty for a base and for candidates"),
            DataColumn(
                "candidate",
                TEXT,
                f"empty for bases and copies; `{bases.SAME}`, or the attribute that differs from the base",
                choices=("", *bases.CANDIDATES),
            ),
            DataColumn("parameter", NUMBER, "value of the parameter; null for the base", optional=True),
            DataColumn("unit", TEXT, "unit of the parameter"),
            DataColumn(
                "scaled", NUMBER, "position of the parameter in its range, 0 to 1; null for the base", optional=True
            ),
            DataColumn(
                "quarter", WHOLE, "quarter of the range, 0 to 3; -1 for the base", choices=(-1, *range(bases.QUARTERS))
            ),
            DataColumn(
                "fold",
                WHOLE,
                f"0 to {FOLDS - 1}: a base and its copies are in the same fold, and so are the recordings of a group",
                choices=tuple(range(FOLDS)),
            ),
            DataColumn("recording", TEXT, "name of the recording; empty for scenes"),
            DataColumn("label", TEXT, "label of the recording"),
            DataColumn("number", NUMBER, "the label of the recording if labels are numbers, else null", optional=True),
            DataColumn("group", TEXT, "group of the recording"),
            DataColumn("metadata", SOURCES, f"the sources: {SOURCE_LABELS}; empty for recordings"),
            DataColumn("levels", LEVELS, "for a single source, class of each factor, from 0; else null", optional=True),
            DataColumn(
                "values",
                VALUES,
                "`pitch` as a MIDI note, `rate` in Hz, `amplitude` in dB, for a single source; else null",
                optional=True,
            ),
        )

    def render(self, spec: bases.TransformSpec) -> Rendering:
        """Draw the rows without writing anything.

        Raises:
            InputError: a transform needs a package that is not installed.
        """
        for transform, _ in spec.spans:
            transform.check_available()
        return super().render(spec)

    def draw(self, spec: bases.TransformSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield each base, its copies and its candidates, then the clips without copies."""
        recent = bases.RecentOrbits()
        for number, base in enumerate(bases.drawn_bases(spec)):
            original, *candidates = base.versions
            rows: list[tuple[str, Row, bases.Version]] = [("base", {}, original)]
            for copy in bases.draw_copies(base, spec):
                changes = {
                    "transform": copy.transform.name,
                    "parameter": copy.parameter,
                    "unit": copy.transform.unit,
                    "scaled": copy.scaled,
                    "quarter": copy.number // spec.per_quarter,
                }
                rows.append((f"{copy.transform.name}-{copy.number}", changes, original))
            rows += [(one.candidate, {"candidate": one.candidate}, one) for one in candidates]
            render = partial(bases.render_base, number, base, spec)
            for place, (what, changes, version) in enumerate(rows):
                row = {
                    "id": f"{base.name}-{what}",
                    "base": base.name,
                    "transform": "",
                    "candidate": "",
                    "parameter": None,
                    "unit": "",
                    "scaled": None,
                    "quarter": -1,
                    "fold": base.fold,
                    **changes,
                    **version.said,
                }
                yield Drawn(row, partial(recent.clip, number, place, render))

    def check_row(self, row: Row) -> None:
        """Raise an error if a row does not describe its clip and its transform."""
        super().check_row(row)
        name, copy = row["id"], bool(row["transform"])
        if copy and row["candidate"]:
            raise DatasetError(
                f"row {name}: candidate is {row['candidate']!r}; it must be empty if there is a transform"
            )
        for column in ("parameter", "scaled"):
            if (row.get(column) is not None) != copy:
                raise DatasetError(
                    f"row {name}: {column} is {row.get(column)!r}; it must be a number for a copy, and null for a base"
                )
        if (row["quarter"] >= 0) != copy:
            raise DatasetError(f"row {name}: quarter is {row['quarter']}; it must be 0 to 3, or -1 for a base")

    def card(self, spec: bases.TransformSpec) -> Mapping[str, Any]:
        """Return the transforms with their ranges."""
        spans = [(transform, _range_text(transform, span)) for transform, span in spec.spans]
        levelled = [f"`{transform.name}`" for transform, _ in spec.spans if transform.keeps_level]
        return {"spans": spans, "levelled": levelled, "draws": bases.QUARTERS * spec.per_quarter}


def _range_text(transform: Transform, span: ParameterRange) -> str:
    ends = " to ".join(f"{end:,.10g}".replace("-", "−") for end in (span.low, span.high))
    return f"{ends} {transform.unit}".strip() + (", logarithmic" if span.scale == "log" else "")


RECIPE = Transforms()
