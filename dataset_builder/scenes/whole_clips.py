"""Clips that are whole sounds as they are: as long, as loud and at the rate that they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from pydantic import Field

from ..columns import AUDIO, TEXT, Column
from ..data import DatasetError, Pcm16, Row
from ..sounds.entries import LONGEST_RECORDING, Sound, Sounds
from ..sounds.reading import with_all_labels
from ..sounds.splits import select_recordings
from ..sounds.tones import captioned_timbres
from .mixing import middle_of, resampled
from .pool import SoundsSpec
from .transforms import Samples

FEWEST = 2
"""Clips: with one there is nothing to tell apart."""


class WholeClipSpec(SoundsSpec):
    """Everything that decides rows of whole sounds and their samples."""

    clips: int = Field(
        100_000, ge=FEWEST, le=1_000_000, description="At most so many; where there are more sounds, they are drawn."
    )
    duration: float = Field(
        float(LONGEST_RECORDING),
        ge=0.25,
        le=LONGEST_RECORDING,
        description="Seconds of a clip at most: of longer sounds it is the middle.",
    )
    sample_rate: int = Field(
        48_000,
        ge=8_000,
        le=192_000,
        description="Hz to which sounds of different rates are brought; where all have one, they keep it.",
    )

    @property
    def tones(self) -> Sounds:
        """Timbres with captions."""
        return captioned_timbres()

    @property
    def heard(self) -> Sounds:
        """The sounds that clips are of, those with several labels among them."""
        return with_all_labels(super().heard)

    @property
    def clip_rate(self) -> int:
        """Hz of every clip."""
        return self.heard.sample_rate or self.sample_rate


def whole_columns(*said: Column) -> tuple[Column, ...]:
    """Those of a row of a whole sound, with what a recipe says of it."""
    return (
        Column("id", TEXT, "name of the row"),
        Column("audio", AUDIO, "the clip"),
        *said,
        Column("recording", TEXT, "name of the recording"),
        Column("group", TEXT, "recordings of one group belong together; empty where it is its own"),
        Column("domain", TEXT, "what the recordings are"),
    )


def whole_rows(
    name: str, spec: WholeClipSpec, sounds: Sounds, said_of: Callable[[Sound], Row | None], needed: str
) -> Iterator[tuple[int, Row]]:
    """The numbers of the sounds that are rows, and what the rows say.

    Args:
        name: of the recipe.
        spec: of the rows.
        sounds: that they are of.
        said_of: what a row says of its sound beside the common columns; None of one that cannot be a row.
        needed: what a sound has to have, for messages.

    Raises:
        DatasetError: too few can be rows.
    """
    said = {number: row for number, row in enumerate(map(said_of, sounds.entries)) if row is not None}
    if len(said) < FEWEST:
        raise DatasetError(f"{sounds.source} has {len(said)} recordings with {needed}; {FEWEST} are the least")
    usable = list(said)
    selected = select_recordings([sounds.entries[number] for number in usable], spec.clips, spec.seed)
    for place, number in enumerate(usable[one] for one in selected):
        entry = sounds.entries[number]
        of_entry = {"recording": entry.id, "group": entry.group, "domain": spec.domain_name}
        yield number, {"id": f"{name}-{place:05d}", **said[number], **of_entry}


def whole_clips(sounds: Sounds, number: int, spec: WholeClipSpec) -> Sequence[Pcm16]:
    """The clip of a sound, int16 [samples]."""
    waveform, rate = sounds.waveform(number)
    clip_rate = spec.clip_rate
    return (whole_clip(resampled(waveform, rate, clip_rate), round(spec.duration * clip_rate)),)


def whole_clip(samples: Samples, length: int) -> Pcm16:
    """Samples as they are, in 16 bits: the middle of more than `length`; lowered where they would pass full scale."""
    if len(samples) > length:
        samples = middle_of(samples, length)
    peak = max(1.0, float(np.abs(samples).max()))
    # What was 16-bit before is the same samples.
    return np.clip(np.rint(samples / peak * 2**15), -(2**15), 2**15 - 1).astype(np.int16)
