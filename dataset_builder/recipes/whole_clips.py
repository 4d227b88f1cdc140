"""Whole sounds as clips, each with its own length, level and rate: what their recipes have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from pydantic import Field

from ..data import AUDIO, TEXT, DataColumn, DatasetError, Pcm16, Row
from ..scenes.mixing import resampled
from ..scenes.pool import SoundsSpec, whole_clip
from ..sounds.entries import LONGEST_RECORDING, Sounds
from ..sounds.recordings import with_all_labels
from ..sounds.splits import select_recordings
from ..sounds.tones import captioned_timbres
from .base import Drawn

FEWEST = 2
"""Least number of clips: a single clip cannot be distinguished from others."""


class WholeClipSpec(SoundsSpec):
    """Everything that determines rows of whole sounds and their samples."""

    clips: int = Field(
        100_000, ge=FEWEST, le=1_000_000, description="Most clips; if there are more sounds, a random selection."
    )
    duration: float = Field(
        float(LONGEST_RECORDING),
        ge=0.25,
        le=LONGEST_RECORDING,
        description="Most seconds of a clip; longer sounds are cut to their middle.",
    )
    sample_rate: int = Field(
        48_000,
        ge=8_000,
        le=192_000,
        description="Sample rate in Hz for sounds with different rates; if all have the same rate, they keep it.",
    )

    @property
    def tones(self) -> Sounds:
        """Return timbres with captions."""
        return captioned_timbres()

    @property
    def heard(self) -> Sounds:
        """Return the sounds of the clips, including sounds with several labels."""
        return with_all_labels(super().heard)

    @property
    def clip_rate(self) -> int:
        """Return the sample rate of every clip in Hz."""
        return self.heard.sample_rate or self.sample_rate


def whole_columns(*said: DataColumn) -> tuple[DataColumn, ...]:
    """Return the columns of a row of a whole sound, with the recipe's own columns."""
    return (
        DataColumn("id", TEXT, "name of the row"),
        DataColumn("audio", AUDIO, "the clip"),
        *said,
        DataColumn("recording", TEXT, "name of the recording"),
        DataColumn("group", TEXT, "recordings of one group are not independent; empty if the recording has no group"),
        DataColumn("domain", TEXT, "domain of the recordings"),
    )


def whole_rows(name: str, spec: WholeClipSpec, sounds: Sounds, said: Mapping[int, Row], needed: str) -> Iterator[Drawn]:
    """Yield whole sounds as rows, each with its clip: as many as the spec asks for, drawn evenly over labels.

    Args:
        name: name of the recipe.
        spec: settings of the rows.
        sounds: all sounds.
        said: the recipe's own columns, by index of the sounds that can be rows.
        needed: the property that a sound needs, for messages.

    Raises:
        DatasetError: too few sounds can be rows.
    """
    if len(said) < FEWEST:
        raise DatasetError(f"{sounds.source} has {len(said)} recordings with {needed}; at least {FEWEST} are needed")
    usable = list(said)
    selected = select_recordings([sounds.entries[number] for number in usable], spec.clips, spec.seed)
    for place, number in enumerate(usable[one] for one in selected):
        entry = sounds.entries[number]
        of_entry = {"recording": entry.id, "group": entry.group, "domain": spec.domain_name}
        row = {"id": f"{name}-{place:05d}", **said[number], **of_entry}
        yield Drawn(row, partial(_whole_clips, sounds, number, spec))


def _whole_clips(sounds: Sounds, number: int, spec: WholeClipSpec) -> Sequence[Pcm16]:
    waveform, rate = sounds.waveform(number)
    clip_rate = spec.clip_rate
    return (whole_clip(resampled(waveform, rate, clip_rate), round(spec.duration * clip_rate)),)
