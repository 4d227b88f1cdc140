"""Recordings with labels, and prompts that say of a clip that a label is heard: is the right one nearest?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..data import DatasetError, Row
from ..scenes.pool import UnlabelledError, why_no_classes
from ..scenes.recorded import check_lists, check_texts
from ..scenes.whole_clips import WholeClipRendering, WholeClipSettings, describe_whole_clips
from ..sounds.entries import Sound
from ..sounds.reading import with_all_labels
from ..texts.prompts import Templates, check_templates, load_templates, prompts_of

if TYPE_CHECKING:
    from datasets import Features

    from ..sounds.entries import Sounds


@dataclass(frozen=True, kw_only=True)
class ZeroShotSettings(WholeClipSettings):
    """Everything that decides the rows, their prompts and their samples.

    Attributes:
        templates: of prompts, each with ``{label}`` in it.

    Raises:
        InputError: see `WholeClipSettings`; also a template without ``{label}``.
    """

    templates: Templates = field(default_factory=load_templates)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "templates", check_templates(self.templates))


class RenderedLabels(WholeClipRendering[ZeroShotSettings]):
    """The recordings that have labels, one a row; see `Rendering`.

    The classes are the labels that occur, and a row lists the prompts of its own alone: those of all rows are those of
    all classes, however many rows and classes there are, and whatever rows are left out.
    """

    name = "zero_shot_audio"
    needed = "labels that are names of classes"

    def serves(self, entry: Sound) -> bool:
        """Whether it has a class, or several."""
        return bool(entry.all_labels) and entry.number is None

    def said_of(self, entry: Sound) -> Row:
        """Its labels and their prompts."""
        labels = entry.all_labels
        return {"labels": list(labels), "prompts": [self._prompts(label) for label in labels]}

    def _prompts(self, label: str) -> list[str]:
        if label not in self._by_label:
            self._by_label[label] = prompts_of(label, self.settings.templates)
        return self._by_label[label]

    @cached_property
    def _by_label(self) -> dict[str, list[str]]:
        return {}

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Rows without their audio; see `RenderedLabels`.

        Raises:
            UnlabelledError: no recording has a class.
            DatasetError: there are no two classes.
        """
        recordings = self.settings.sources
        if not any(map(self.serves, recordings.entries)):
            raise UnlabelledError(why_no_classes(recordings.source, recordings.entries, "prompts are made"))
        rows = super().rows
        classes = {label for row in rows for label in row["labels"]}
        if len(classes) < 2:
            raise DatasetError(f"{recordings.source} has one class, {min(classes)!r}; 2 are the least")
        return rows


class _Labels:
    """The recipe; see `Recipe`."""

    name = RenderedLabels.name
    version = 1
    splits = ("test",)
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, ZeroShotSettings]:
        """Settings by the name of a preset, of tones of the project's own voices."""
        return {"mini": ZeroShotSettings(clips=200), "full": ZeroShotSettings()}

    def of_recordings(
        self, settings: ZeroShotSettings, recordings: Sounds, requested: Mapping[str, Any]
    ) -> ZeroShotSettings:
        """Recordings in place of tones, those with several labels among them; see `RecordedRecipe`."""
        return replace(settings, **{**requested, "recordings": with_all_labels(recordings)})

    def features(self, settings: ZeroShotSettings) -> Features:
        """A clip, its labels, and the prompts of each of them."""
        from datasets import Audio, Features, List, Value

        text = Value("string")
        return Features(
            {
                "id": text,
                "audio": Audio(sampling_rate=settings.clip_rate),
                "labels": List(text),
                "prompts": List(List(text)),
                **dict.fromkeys(("recording", "group", "domain"), text),
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return ("audio",)

    def render(self, settings: ZeroShotSettings) -> RenderedLabels:
        """List the rows; nothing is written."""
        return RenderedLabels.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row without labels, or in which a label has no prompts."""
        check_lists(row, ("labels",), least=1)
        check_texts(row, ("recording", "group", "domain"))
        labels, prompts = row["labels"], row.get("prompts")
        if not isinstance(prompts, list) or len(prompts) != len(labels):
            raise DatasetError(
                f"row {row['id']}: prompts is {prompts!r}; it has a list for each of {len(labels)} labels"
            )
        for of_label in prompts:
            if not isinstance(of_label, list) or not of_label or not all(isinstance(one, str) for one in of_label):
                raise DatasetError(f"row {row['id']}: the prompts of a label are {of_label!r}; they are texts")

    def describe(self, settings: ZeroShotSettings) -> str:
        """Markdown of the card."""
        rows = self.render(settings).rows
        classes = {label for row in rows for label in row["labels"]}
        templates = ", ".join(f"“{template}”" for template in settings.templates)
        return f"""\
{len(rows):,} recordings of {len(classes):,} classes, and prompts for each class: is the prompt of what is heard nearer
to the clip than those of all other classes? The classes are the labels that occur.

{describe_whole_clips(settings)} Prompts: {templates}.

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip |
| `labels` | what is heard, one class or several |
| `prompts` | of each of these labels the prompts; those of all rows are those of all classes |
| `recording` | name of the recording |
| `group` | recordings of one group belong together; empty where it is its own |
| `domain` | what the recordings are |
"""


RECIPE = _Labels()
