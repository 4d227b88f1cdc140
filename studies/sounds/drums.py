"""Drums and cymbals, each as it sounds in several drum kits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .collected import LEAST_LABELS, installing
from .maker import INSTALLED, MadeSound, Maker, data_folder, digest_of, read_sound, write_sounds

LONGEST = 3.0
"""Seconds: cymbals ring for up to 12, and a clip is shorter than that."""

_FOLDER = "hydrogen/data/drumkits"


@dataclass(frozen=True)
class Kit:
    """A drum kit.

    Attributes:
        condition: its maker and its name: kits of one maker are related.
        folder: folder of its files.
        suffix: suffix of its files.
        files: the file of each instrument, without the suffix; the loudest of several strengths.
    """

    condition: str
    folder: str
    suffix: str
    files: Mapping[str, list[str]]

    def recordings(self) -> dict[str, list[Path]]:
        """The existing files, by their instruments."""
        folder = data_folder(f"{_FOLDER}/{self.folder}")
        if folder is None:
            return {}
        paths = {label: [folder / f"{name}.{self.suffix}" for name in names] for label, names in self.files.items()}
        here = {label: [path for path in some if path.is_file()] for label, some in paths.items()}
        return {label: some for label, some in here.items() if some}


KITS = tuple(Kit(**kit) for kit in INSTALLED["kits"])
"""The kits with drums and cymbals."""


@dataclass(frozen=True, kw_only=True)
class Drums(Maker):
    """The instruments of `KITS` that two kits or more have."""

    def sources(self) -> dict[str, str]:
        """The kits (conditions), and the digests of their files; see `Maker.sources`."""
        return {
            condition: digest_of(path for paths in recordings.values() for path in paths)
            for condition, recordings in self._recordings().items()
        }

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``INSTRUMENT/MAKER/KIT/NAME.wav``; see `Maker.make`."""
        jobs = [partial(_sounds, condition, recordings) for condition, recordings in self._recordings().items()]
        write_sounds(jobs, folder, progress)

    def _recordings(self) -> dict[str, dict[str, list[Path]]]:
        recordings = {kit.condition: recorded for kit in KITS if (recorded := kit.recordings())}
        labels = {label for recorded in recordings.values() for label in recorded}
        if len(labels) < LEAST_LABELS:
            raise self.missing(f"{len(labels)} instruments are installed; at least {LEAST_LABELS} are needed")
        return recordings


def _sounds(condition: str, recordings: Mapping[str, list[Path]]) -> Iterator[MadeSound]:
    for label, paths in recordings.items():
        for path in paths:
            samples, rate = read_sound(path)
            yield MadeSound(label, condition, path.stem, samples[: round(LONGEST * rate)], rate)


DRUMS = Drums(
    name="drums",
    meaning=f"15 drums, cymbals and other percussion (label) of {len(KITS)} kits (condition: maker/kit)",
    needs=installing("hydrogen-drumkits"),
    licence=(
        "Recordings of others, which this project does not redistribute: hydrogen-drumkits, by kit GPL-2, GPL-2+, "
        "CC-BY-SA-3.0, CC-BY-3.0 or CC0"
    ),
)
