"""What the recipes know of sounds, whatever they are read or made from."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainSerializer, SkipValidation

from audio_compositionality.support.files import sha256_of

LONGEST_RECORDING = 30
"""Seconds of a recording that are read at most: as much as whole recordings with captions last, and more than twice the
longest clip of others, since a stretch by 2 reads that much."""


@dataclass(frozen=True)
class Sound:
    """What is said of one sound: an FM tone, a file, a row of a data set, a labelled stretch of a recording.

    Attributes:
        id: of its own among its `Sounds`: a path within the folder, a number within the data set.
        label: what it is a sound of; empty where nobody says.
        group: sounds of one group (a speaker, a session) are never on both sides of a fold; empty where it is a group
            of its own.
        sha256: hexadecimal, of its samples or of what decides them.
        number: its label as a number, where labels are numbers and not classes.
        condition: what it shares with sounds of other labels and what says nothing of its own: the voice that says a
            word, the pitch of an instrument; empty where there is none. See `related`.
        captions: what is said of it in sentences.
        labels: all labels, where there are several.
        words: what is said of it by attribute, such as ``{"pitch": "high", "rate": "slow"}``. A sound with one word
            changed is another entry of the same label.
        values: the same in numbers, where there are such: ``{"pitch": 75.0}``. A sound with one of them exchanged is
            another entry as well.
        loop: seconds of its samples, where these are one period of a sound that goes on: repeated as they are, without
            a crossfade; 0 where they are not.
        level: dB at which it is heard beside others; 0 where all are equally loud.
    """

    id: str
    label: str
    group: str
    sha256: str
    number: float | None = None
    condition: str = ""
    captions: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict, hash=False)
    values: Mapping[str, float] = field(default_factory=dict, hash=False)
    loop: float = 0.0
    level: float = 0.0

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Its labels, one or several; none where nobody says."""
        return self.labels or ((self.label,) if self.label else ())


def label_text(label: str) -> str:
    """A label in words: underscores are blanks, and blanks stand once."""
    return " ".join(unicodedata.normalize("NFC", label).replace("_", " ").split())


def related(condition: str, other: str) -> bool:
    """Whether two conditions have more in common than two drawn at random: ``flite/awb`` and ``flite/slt``, one engine.

    They are where the first parts of their paths are equal; those without ``/`` are related to themselves alone. Empty
    ones, of recordings without a condition, are related to none.
    """
    first = condition.partition("/")[0]
    return bool(first) and first == other.partition("/")[0]


_FURTHER = ("captions", "labels", "words", "values", "loop", "level")
"""Attributes of a sound that most lack."""


def fingerprint_of_entries(entries: Sequence[Sound]) -> str:
    """SHA-256 over what is said of recordings, in their order, but for their ids: names and places are no content."""
    content = [
        [
            entry.sha256,
            entry.label,
            entry.number,
            entry.group,
            entry.condition,
            # By their names: captions are no labels.
            *filter(None, [{name: value for name in _FURTHER if (value := getattr(entry, name))}]),
        ]
        for entry in entries
    ]
    return sha256_of(json.dumps(content, sort_keys=True).encode())


class Sounds(Protocol):
    """Sounds of one source: tones, a folder, a data set, stretches of recordings with strong labels.

    Attributes:
        source: what they were opened from, for messages; a folder, a Hub id.
        sample_rate: Hz, where all have one; None where they differ.
        entries: what is said of each, in a fixed order.
        fingerprint: names their samples, labels, groups, conditions and captions, whatever they are called and wherever
            they lie.
        suggested: settings that suit them, by names of settings of recipes, where nobody asks for others: ``domain``,
            ``classes`` …
    """

    @property
    def source(self) -> str: ...  # noqa: D102

    @property
    def sample_rate(self) -> int | None: ...  # noqa: D102

    @property
    def entries(self) -> Sequence[Sound]: ...  # noqa: D102

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    @property
    def suggested(self) -> Mapping[str, Any]: ...  # noqa: D102

    def waveform(self, index: int) -> tuple[NDArray[np.float64], int]:
        """Samples [samples] in [-1, 1], mono, of at most `LONGEST_RECORDING` seconds, and their rate in Hz."""
        ...


SoundsField = Annotated[
    Sounds | None, SkipValidation(), PlainSerializer(lambda sounds: None if sounds is None else sounds.fingerprint)
]
"""The type of a field of a `Spec` that takes a user's sounds: of its values, the fingerprint."""
