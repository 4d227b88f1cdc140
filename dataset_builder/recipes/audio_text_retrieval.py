"""Recordings with captions: is the clip of a caption retrieved among all clips, and the captions of a clip?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..data import TEXT, DataColumn, Row
from ..sounds.entries import Sounds
from .base import Drawn, Recipe
from .whole_clips import WholeClipSpec, whole_columns, whole_rows

_NEEDED = "captions (--set captions=COLUMN, or columns named caption)"


class CaptionedClips(Recipe[WholeClipSpec]):
    """The sounds that have captions, one per row."""

    name = "audio_text_retrieval"
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, WholeClipSpec]:
        """Return the settings of each preset, by name, for tones of the project's own voices."""
        return {"mini": WholeClipSpec(clips=200), "full": WholeClipSpec()}

    def columns(self, spec: WholeClipSpec) -> Sequence[DataColumn]:
        """Return the columns: a clip and its captions."""
        return whole_columns(DataColumn("captions", [TEXT], "its captions, one or several", least=1, filled=True))

    def draw(self, spec: WholeClipSpec, sounds: Sounds) -> Iterator[Drawn]:
        """Yield the sounds that have captions."""
        said: dict[int, Row] = {
            number: {"captions": list(entry.captions)} for number, entry in enumerate(sounds.entries) if entry.captions
        }
        return whole_rows(self.name, spec, sounds, said, _NEEDED)

    def card(self, spec: WholeClipSpec) -> Mapping[str, Any]:
        """Return the number of rows."""
        return {"rows": self.render(spec).rows}


RECIPE = CaptionedClips()
