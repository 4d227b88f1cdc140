"""Recordings with labels, and prompts for each label: is the clip closest to the prompts of its own labels?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from ..data import TEXT, DataColumn, DatasetError, Row
from ..sounds.entries import Sounds
from ..sounds.splits import UnlabelledError
from ..texts.captions import check_templates, load_templates, prompts_of
from .base import Drawn, Recipe
from .whole_clips import WholeClipSpec, whole_columns, whole_rows


class ZeroShotSpec(WholeClipSpec):
    """Everything that determines the rows, their prompts and their samples.

    Raises:
        InputError: a value is out of range, or a template lacks ``{label}``.
    """

    templates: Annotated[tuple[Any, ...], AfterValidator(check_templates)] = Field(
        default_factory=load_templates, description="Prompt templates, each containing `{label}`."
    )


class LabelledClips(Recipe[ZeroShotSpec]):
    """The sounds that have labels, one per row.

    The classes are all labels that occur. A row lists only the prompts of its own labels: together, the rows have the
    prompts of all classes, however many rows and classes there are, and whichever rows are left out.
    """

    name = "zero_shot_audio"
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, ZeroShotSpec]:
        """Return the settings of each preset, by name, for tones of the project's own voices."""
        return {"mini": ZeroShotSpec(clips=200), "full": ZeroShotSpec()}

    def columns(self, spec: ZeroShotSpec) -> Sequence[DataColumn]:
        """Return the columns: a clip, its labels, and the prompts of each label."""
        prompts = "prompts of each of these labels; all rows together contain the prompts of all classes"
        return whole_columns(
            DataColumn("labels", [TEXT], "its classes, one or several", least=1),
            DataColumn("prompts", [[TEXT]], prompts, per="labels"),
        )

    def draw(self, spec: ZeroShotSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the sounds that have labels; rows of one class share the list of its prompts.

        Raises:
            UnlabelledError: no sound has a label.
            DatasetError: there are fewer than two classes.
        """
        if not any(entry.all_labels and entry.number is None for entry in sounds.entries):
            raise UnlabelledError(sounds, "prompts are made")
        prompts: dict[str, list[str]] = {}
        said: dict[int, Row] = {}
        for number, entry in enumerate(sounds.entries):
            labels = entry.all_labels
            if labels and entry.number is None:
                prompts |= {label: prompts_of(label, spec.templates) for label in labels if label not in prompts}
                said[number] = {"labels": list(labels), "prompts": [prompts[label] for label in labels]}
        drawn = list(whole_rows(self.name, spec, sounds, said, "labels that are names of classes"))
        classes = {label for one in drawn for label in one.row["labels"]}
        if len(classes) < 2:
            raise DatasetError(f"{sounds.source} has one class, {min(classes)!r}; at least 2 are needed")
        return iter(drawn)

    def check_row(self, row: Row) -> None:
        """Raise an error if a label of a row has no prompts."""
        super().check_row(row)
        if not all(row["prompts"]):
            raise DatasetError(f"row {row['id']}: prompts is {row['prompts']!r}; each label must have one or more")

    def card(self, spec: ZeroShotSpec) -> Mapping[str, Any]:
        """Return the numbers of rows and classes."""
        rows = self.render(spec).rows
        return {"rows": rows, "classes": {label for row in rows for label in row["labels"]}}


RECIPE = LabelledClips()
