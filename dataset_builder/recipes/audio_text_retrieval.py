"""Recordings with captions: is the clip of a caption found among all, and the captions of a clip?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..data import Row
from ..scenes.recorded import check_lists, check_texts
from ..scenes.whole_clips import WholeClipRendering, WholeClipSettings, describe_whole_clips
from ..sounds.entries import Sound
from ..sounds.reading import with_all_labels

if TYPE_CHECKING:
    from datasets import Features

    from ..sounds.entries import Sounds


class RenderedCaptions(WholeClipRendering[WholeClipSettings]):
    """The recordings that have captions, one a row; see `Rendering`."""

    name = "audio_text_retrieval"
    needed = "captions (--captions COLUMN, or columns that are called caption)"

    def serves(self, entry: Sound) -> bool:
        """Whether it has captions."""
        return bool(entry.captions)

    def said_of(self, entry: Sound) -> Row:
        """Its captions."""
        return {"captions": list(entry.captions)}


class _Captions:
    """The recipe; see `Recipe`."""

    name = RenderedCaptions.name
    version = 1
    splits = ("test",)
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, WholeClipSettings]:
        """Settings by the name of a preset, of tones of the project's own voices."""
        return {"mini": WholeClipSettings(clips=200), "full": WholeClipSettings()}

    def of_recordings(
        self, settings: WholeClipSettings, recordings: Sounds, requested: Mapping[str, Any]
    ) -> WholeClipSettings:
        """Recordings in place of tones; see `RecordedRecipe`."""
        return replace(settings, **{**requested, "recordings": with_all_labels(recordings)})

    def features(self, settings: WholeClipSettings) -> Features:
        """A clip and its captions."""
        from datasets import Audio, Features, List, Value

        text = Value("string")
        return Features(
            {
                "id": text,
                "audio": Audio(sampling_rate=settings.clip_rate),
                "captions": List(text),
                **dict.fromkeys(("recording", "group", "domain"), text),
            }
        )

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return ("audio",)

    def render(self, settings: WholeClipSettings) -> RenderedCaptions:
        """List the rows; nothing is written."""
        return RenderedCaptions.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row without captions."""
        check_lists(row, ("captions",), least=1)
        check_texts(row, ("recording", "group", "domain"))

    def describe(self, settings: WholeClipSettings) -> str:
        """Markdown of the card."""
        return f"""\
{len(self.render(settings).rows):,} recordings with captions: is the clip of a caption found among all clips, and are
the captions of a clip found among all captions?

{describe_whole_clips(settings)} A recording that its source has several times, each time with another caption, is one
row with all of them.

| column | content |
|---|---|
| `id` | name of the row |
| `audio` | the clip |
| `captions` | what is said of it, one text or several |
| `recording` | name of the recording |
| `group` | recordings of one group belong together; empty where it is its own |
| `domain` | what the recordings are |
"""


RECIPE = _Captions()
