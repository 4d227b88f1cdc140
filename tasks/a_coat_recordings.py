"""A-COAT on recordings: is adding the same recordings to two scenes the same step (after arXiv 2603.13685)?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from audio_compositionality.dataset_builder.data import Row

from . import scenes
from .a_coat import ACoat
from .base import Samples

_PARTS = ("A", "C", "T")

_SCORE = replace(ACoat.info.score, heading="A-COAT recordings")


class ACoatRecordings(ACoat):
    """The task; see `Task`. Its quadruples are scored as those of synthetic scenes are, by the same metric."""

    info = replace(
        ACoat.info,
        name="a_coat_recordings",
        title="A-COAT recordings",
        question="Is adding the same recordings to two different scenes the same step in the space of embeddings?",
        recipe="a_coat_recordings",
        measures=(_SCORE, *ACoat.info.measures[1:]),
        warning=(
            "A high score alone is no evidence of learned composition: an encoder that answers every added source with "
            "one step towards more energy scores high. T is the same samples in B and in D: neither adjusted nor top-1 "
            "asks for a class across instances. Read it beside an untrained network and log-mel-statistics: what they "
            "reach as well was not learnt."
        ),
        protocols={},
        on_request=True,
    )

    def samples(self, rows: Sequence[Row]) -> Samples:
        """All quadruples; those with the same added recordings T are not independent."""
        parts = {part: [row["metadata"][part] for row in rows] for part in _PARTS}
        counts = {part: scenes.counts(sources) for part, sources in parts.items()}
        total = counts["A"] + counts["C"] + counts["T"]
        return Samples(
            rows=tuple(rows),
            clusters=scenes.same_scenes(parts["T"]),
            clustered_by="the sets of added recordings T",
            # Recordings have no attributes whose entropy could be a diversity, but as in A-COAT the chance of who hears
            # nothing but numbers of sources rises with these.
            held_fixed={f"number of sources of {part}": count for part, count in counts.items()},
            groups={
                "|T|, the number of sources that are added": tuple(map(str, counts["T"])),
                "the number of sources": tuple(map(str, total)),
            },
            contents=tuple({part: list(row["metadata"][part]) for part in _PARTS} for row in rows),
        )


TASK = ACoatRecordings()
