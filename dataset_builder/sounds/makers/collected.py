"""Recordings of people in Debian's packages: which file of which package is which word by which speaker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .base import Maker
from .places import data_folder, digest_of
from .sounds import MadeSound, read_sound, write_sounds

LEAST_LABELS = 12
"""Classes and contexts of a block."""


@dataclass(frozen=True)
class Speaker:
    """What one person has recorded.

    Attributes:
        name: the condition.
        package: of Debian.
        folder: below ``/usr/share``.
        files: label of each file, by its path in the folder.
    """

    name: str
    package: str
    folder: str
    files: Mapping[str, str]

    def recordings(self) -> dict[str, Path]:
        """The files that are there, by their labels."""
        folder = data_folder(self.folder)
        if folder is None:
            return {}
        return {label: folder / file for file, label in self.files.items() if (folder / file).is_file()}


@dataclass(frozen=True, kw_only=True)
class CollectedWords(Maker):
    """Words that two or more people have recorded.

    Attributes:
        speakers: of whom recordings can be installed.
    """

    speakers: tuple[Speaker, ...]

    def sources(self) -> dict[str, str]:
        """The speakers (conditions), and the digests of their files; see `Maker.sources`."""
        return {name: digest_of(paths.values()) for name, paths in self._shared().items()}

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``WORD/SPEAKER/WORD.wav``; see `Maker.make`."""
        jobs = [partial(_sounds, name, recordings) for name, recordings in self._shared().items()]
        write_sounds(jobs, folder, progress)

    def _shared(self) -> dict[str, dict[str, Path]]:
        """Recordings by speaker and label, of labels that two speakers have."""
        recordings = {speaker.name: speaker.recordings() for speaker in self.speakers}
        counts = Counter(label for labels in recordings.values() for label in labels)
        shared = {
            name: {label: path for label, path in labels.items() if counts[label] > 1}
            for name, labels in recordings.items()
        }
        labels = {label for paths in shared.values() for label in paths}
        if len(labels) < LEAST_LABELS:
            raise self.missing(f"{len(labels)} words by two or more speakers are installed, of {LEAST_LABELS} at least")
        return {name: paths for name, paths in shared.items() if paths}


def _sounds(speaker: str, recordings: Mapping[str, Path]) -> Iterator[MadeSound]:
    for label, path in recordings.items():
        yield MadeSound(label, speaker, label, *read_sound(path))


def installing(packages: str) -> str:
    """How packages of Debian are installed, or unpacked by whoever may not install."""
    return (
        f"On Debian: apt-get install --no-install-recommends {packages}; or, of the recordings alone, "
        f"`apt-get download {packages}`, `dpkg -x` of each into one folder, and its usr/share in XDG_DATA_DIRS"
    )


_SUITS = {"b": "bamboo", "c": "character", "s": "circle"}
_CALLS = {
    **{f"{letter}{number}.ogg": f"{suit}-{number}" for letter, suit in _SUITS.items() for number in range(1, 10)},
    **{"we.ogg": "east", "ws.ogg": "south", "ww.ogg": "west", "wn.ogg": "north"},
    **{"db.ogg": "blue-dragon", "dg.ogg": "green-dragon", "dr.ogg": "red-dragon"},
    **{f"{call}.ogg": call for call in ("chow", "pung", "kong", "mahjongg")},
    **{"nochoice.ogg": "no-choice", "originalcall.ogg": "original-call", "dangerousgame.ogg": "dangerous-game"},
    **{"violatesoriginalcall.ogg": "violates-original-call"},
}


def kajongg_speakers(folder: str, omitted: Collection[str] = ()) -> tuple[Speaker, ...]:
    """The four people who recorded the calls of the game kajongg in a language, without the `omitted` labels."""
    files = {file: label for file, label in _CALLS.items() if label not in omitted}
    return tuple(
        Speaker(f"kajongg-{name}", "kajongg", f"{folder}/{name}", files)
        for name in ("female1", "female2", "male1", "male2")
    )
