"""What a maker is: it writes recordings with labels and conditions into a folder, of what is installed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..sound_files import SoundError


@dataclass(frozen=True, kw_only=True)
class Maker(ABC):
    """A maker: a module in this folder, or of an installed package, has one by the name ``MAKER``.

    Attributes:
        name: letters, digits and hyphens; what ``--recordings`` takes.
        meaning: what is heard, its labels and its conditions, in a sentence.
        needs: what must be installed, and how it is on Debian, in a sentence.
        licence: of what is made, in a sentence; nothing of it is redistributed by this project.
        version: of the code; it rises with any change that alters a file.
    """

    name: str
    meaning: str
    needs: str
    licence: str
    version: int = 1

    @abstractmethod
    def sources(self) -> Mapping[str, str]:
        """What is installed that sounds are made of, in a fixed order: voices, soundfonts, speakers.

        Each with what tells it from another of its name: the version that its program states (see
        `programs.version_of`), the digest of its files (`places.digest_of`). Other sources are other sounds: what was
        made before of others is not used.

        Raises:
            RecordingError: too little is installed; says what to install.
        """

    @abstractmethod
    def make(self, folder: Path, progress: bool) -> None:
        """Write ``LABEL/CONDITION/file.wav`` (16 bits, mono) into a folder, ``LABEL/file.wav`` without conditions.

        The same sources give the same bits. Conditions whose first part is equal (``flite/awb``, ``flite/rms``) are
        related.

        Args:
            folder: an empty one, or one that does not exist.
            progress: show a progress bar.

        Raises:
            RecordingError: too little is installed, or a program fails.
        """

    def missing(self, reason: str) -> SoundError:
        """The error of too little that is installed: what, and what to install."""
        return SoundError(f"the sounds {self.name!r} cannot be made: {reason}. {self.needs}")
