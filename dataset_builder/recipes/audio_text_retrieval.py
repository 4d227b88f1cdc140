"""Recordings with captions: is the clip of a caption found among all, and the captions of a clip?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from ..columns import TEXT, Column
from ..data import Row
from ..scenes.whole_clips import WholeClipSpec, whole_clips, whole_columns, whole_rows
from ..sounds.entries import Sound, Sounds
from ..sounds.reading import with_all_labels
from .base import Drawn, Recipe

_NEEDED = "captions (--captions COLUMN, or columns that are called caption)"


def _said_of(entry: Sound) -> Row | None:
    return {"captions": list(entry.captions)} if entry.captions else None


class Captions(Recipe[WholeClipSpec]):
    """The sounds that have captions, one a row."""

    name = "audio_text_retrieval"
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, WholeClipSpec]:
        """Specs by the name of a preset, of tones of the project's own voices."""
        return {"mini": WholeClipSpec(clips=200), "full": WholeClipSpec()}

    def of_sounds(self, spec: WholeClipSpec, sounds: Sounds, requested: Mapping[str, Any]) -> WholeClipSpec:
        """A spec with a user's sounds in place of the tones, those with several labels among them."""
        return super().of_sounds(spec, with_all_labels(sounds), requested)

    def columns(self, spec: WholeClipSpec) -> Sequence[Column]:
        """A clip and its captions."""
        return whole_columns(
            Column("captions", [TEXT], "what is said of it, one text or several", least=1, filled=True)
        )

    def draw(self, spec: WholeClipSpec, sounds: Sounds) -> Iterator[Drawn]:
        """The sounds that have captions."""
        for number, row in whole_rows(self.name, spec, sounds, _said_of, _NEEDED):
            yield Drawn(row, partial(whole_clips, sounds, number, spec))

    def sample_rate(self, spec: WholeClipSpec) -> int:
        """That of the sounds, where all have one."""
        return spec.clip_rate

    def card(self, spec: WholeClipSpec) -> Mapping[str, Any]:
        """How many rows there are."""
        return {"rows": self.render(spec).rows}


RECIPE = Captions()
