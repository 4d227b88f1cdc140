"""The error of this room."""

from __future__ import annotations

from audio_compositionality.support.errors import AudioCompositionalityError


class TrainingError(AudioCompositionalityError):
    """A training that cannot be run, or cannot go on."""
