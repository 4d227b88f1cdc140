"""Calls of creatures, from the game The Battle for Wesnoth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .collected import LEAST_LABELS, installing
from .maker import MadeSound, Maker, data_folders, digest_of, read_sound, write_sounds

CREATURES: Mapping[str, tuple[str, ...]] = {
    "bat": ("bat-hit-1", "bat-hit-2"),
    "boar": ("tusker-die", "tusker-hit"),
    "drake": ("drake-die", "drake-hit-1", "drake-hit-2", "drake-hit-3"),
    "dwarf": (
        *("dwarf-die-1", "dwarf-die-2", "dwarf-die-3", "dwarf-laugh"),
        *("dwarf-hit-1", "dwarf-hit-2", "dwarf-hit-3", "dwarf-hit-4"),
    ),
    "ghost": ("wail", "wail-sml"),
    "goblin": ("goblin-die-1", "goblin-die-2", "goblin-hit-1", "goblin-hit-2", "goblin-hit-3"),
    "gryphon": (
        *("gryphon-die-1", "gryphon-die-2", "gryphon-shriek-1", "gryphon-shriek-2"),
        *("gryphon-hit-1", "gryphon-hit-2", "gryphon-hit-3"),
    ),
    "horse": ("horse-die", "horse-hit-1", "horse-hit-3"),
    "lich": ("lich-die", "lich-hit-1", "lich-hit-2"),
    "man": ("human-die-1", "human-hit-1", "human-hit-2", "human-hit-3", "human-hit-5"),
    "naga": ("naga-die", "naga-hit-1", "naga-hit-2", "naga-hit-3"),
    "ogre": ("ogre-die-1", "ogre-die-2", "ogre-die-3", "ogre-hit-1", "ogre-hit-2", "ogre-hit-4"),
    "old-man": (
        *("human-old-die-1", "human-old-die-2", "human-old-die-3"),
        *("human-old-hit-1", "human-old-hit-2", "human-old-hit-3"),
    ),
    "orc": ("orc-die-2", "orc-die-3", "orc-hit-1", "orc-hit-2", "orc-hit-3", "orc-hit-4"),
    "skeleton": (
        *("skeleton-die-1", "skeleton-hit-2", "skeleton-hit-3"),
        *("skeleton-big-hit-1", "skeleton-big-hit-2", "skeleton-big-hit-3"),
    ),
    "small-orc": (
        *("orc-small-die-1", "orc-small-die-2", "orc-small-hit-1"),
        *("orc-small-hit-2", "orc-small-hit-3", "orc-small-hit-4"),
    ),
    "snake": ("hiss", "hiss-big", "hiss-die", "hiss-hit"),
    "troll": ("troll-die-1", "troll-hit-1"),
    "wolf": (
        *("wolf-die-1", "wolf-die-2", "wolf-die-3", "wolf-die-4", "wolf-hit-1", "wolf-hit-2"),
        *("wolf-hit-3", "wolf-hit-4", "wolf-growl-1", "wolf-growl-2", "wolf-growl-3", "wolf-growl-4"),
    ),
    "woman": (
        *("human-female-die-1", "human-female-die-2", "human-female-die-3"),
        *("human-female-hit-1", "human-female-hit-2", "human-female-hit-3"),
    ),
    "wose": ("wose-attack", "wose-die", "wose-hit"),
    "yeti": ("yeti-die", "yeti-hit"),
    "zombie": (
        *("zombie-attack", "zombie-hit-1", "zombie-hit-2", "zombie-hit-3"),
        *("zombie-hit-4", "zombie-hit-5", "zombie-hit-6"),
    ),
}
"""Files of each kind, without their suffixes.

Left out are what no throat has made (hooves, wings, weapons), kinds with one recording, and those that are another file
cut or coloured anew: each of two whose waveforms correlate by .5 or more at some delay, the second (both, where they
are of two kinds: ``ogre-hit-3`` is ``orc-die-1``).
"""

_FOLDER = "games/wesnoth/*/data/core/sounds"


@dataclass(frozen=True, kw_only=True)
class Creatures(Maker):
    """`CREATURES`, of which two recordings or more are installed."""

    def sources(self) -> dict[str, str]:
        """Files, as ``KIND/NAME``, and their digests; see `Maker.sources`."""
        recordings = self._recordings()
        return {f"{kind}/{path.stem}": digest_of([path]) for kind, paths in recordings.items() for path in paths}

    def make(self, folder: Path, progress: bool) -> None:
        """Write ``KIND/NAME.wav``; see `Maker.make`."""
        jobs = [partial(_sounds, kind, paths) for kind, paths in self._recordings().items()]
        write_sounds(jobs, folder, progress)

    def _recordings(self) -> dict[str, list[Path]]:
        folders = (path for folder in data_folders() for path in sorted(folder.glob(_FOLDER), reverse=True))
        sounds = {path.stem: path for folder in list(folders)[:1] for path in sorted(folder.iterdir())}
        recordings = {kind: [sounds[name] for name in names if name in sounds] for kind, names in CREATURES.items()}
        recordings = {kind: paths for kind, paths in recordings.items() if len(paths) > 1}
        if len(recordings) < LEAST_LABELS:
            raise self.missing(f"{len(recordings)} kinds of creatures are installed, of {LEAST_LABELS} at least")
        return recordings


def _sounds(kind: str, paths: Sequence[Path]) -> Iterator[MadeSound]:
    for path in paths:
        yield MadeSound(kind, "", path.stem, *read_sound(path))


CREATURE_CALLS = Creatures(
    name="creatures",
    meaning=f"Calls of {len(CREATURES)} creatures of a game (label), each recording a condition of its own",
    needs=installing("wesnoth-1.16-data") + ". Newer releases have wesnoth-1.18-data",
    licence="Recordings of others, which this project does not redistribute: The Battle for Wesnoth, GPL-2+",
)
