"""Recordings with captions: is the clip of a caption retrieved among all, and the captions of a clip?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from ..data import TEXT, DataColumn, Row
from ..scenes.pool import WholeClipSpec, whole_clips, whole_columns, whole_rows
from ..sounds.entries import Sound, Sounds
from .base import Drawn, Recipe

_NEEDED = "captions (--set captions=COLUMN, or columns that are called caption)"


def _said_of(entry: Sound) -> Row | None:
    return {"captions": list(entry.captions)} if entry.captions else None


class CaptionedClips(Recipe[WholeClipSpec]):
    """The sounds that have captions, one a row."""

    name = "audio_text_retrieval"
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, WholeClipSpec]:
        """Specs by the name of a preset, of tones of the project's own voices."""
        return {"mini": WholeClipSpec(clips=200), "full": WholeClipSpec()}

    def columns(self, spec: WholeClipSpec) -> Sequence[DataColumn]:
        """A clip and its captions."""
        return whole_columns(DataColumn("captions", [TEXT], "its captions, one or several", least=1, filled=True))

    def draw(self, spec: WholeClipSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The sounds that have captions."""
        for number, row in whole_rows(self.name, spec, sounds, _said_of, _NEEDED):
            yield Drawn(row, partial(whole_clips, sounds, number, spec))

    def card(self, spec: WholeClipSpec) -> Mapping[str, Any]:
        """The number of rows."""
        return {"rows": self.render(spec).rows}


RECIPE = CaptionedClips()
