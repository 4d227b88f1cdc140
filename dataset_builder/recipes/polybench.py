"""Multiple-choice questions about sounds that overlap (after arXiv 2603.05128)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..data import Row
from ..scenes.soundscape_twins import RenderedSoundscapes, SoundscapeSettings, describe_soundscapes
from ..scenes.twin_scenes import CITATION, COLUMNS, TwinScenes, TwinSettings, describe_scenes, describe_twins
from ..scenes.twins import SPLITS
from ..texts.questions.annotated import AnnotatedQuestions, AnnotatedSettings, describe_annotated, settings_of_annotated
from ..texts.questions.rows import CLIP, check_question_row, question_features

if TYPE_CHECKING:
    from datasets import Features

    from ..sounds.annotated import AnnotatedRecordings
    from ..sounds.entries import Sounds

Settings = TwinSettings | SoundscapeSettings | AnnotatedSettings


class _Questions:
    """The recipe; see `Recipe`."""

    name = "polybench"
    version = 2
    splits = SPLITS
    # What is asked of recordings is asked of them as they are.
    one_length = False

    @cached_property
    def presets(self) -> Mapping[str, TwinSettings]:
        """Settings by the name of a preset."""
        return {"mini": TwinSettings(test_sets=12), "full": TwinSettings()}

    def of_recordings(self, settings: Settings, recordings: Sounds, requested: Mapping[str, Any]) -> SoundscapeSettings:
        """Twins of isolated sounds; see `RecordedRecipe`."""
        return SoundscapeSettings.of_recordings(settings, recordings, requested)

    def of_annotated(self, recordings: AnnotatedRecordings, requested: Mapping[str, Any]) -> AnnotatedSettings:
        """Questions about recordings with strong labels; see `AnnotatedRecipe`."""
        return settings_of_annotated(recordings, requested)

    def features(self, settings: Settings) -> Features:
        """See `rows.question_features`."""
        if isinstance(settings, AnnotatedSettings):
            return question_features(settings.recordings.sample_rate)
        return question_features(settings.sample_rate)

    def clip_names(self, row: Row) -> Sequence[str]:
        """The one clip, ``audio``."""
        return (CLIP,)

    def render(self, settings: Settings) -> TwinScenes | RenderedSoundscapes | AnnotatedQuestions:
        """Draw the rows; nothing is written."""
        if isinstance(settings, AnnotatedSettings):
            return AnnotatedQuestions.of(settings)
        if isinstance(settings, SoundscapeSettings):
            return RenderedSoundscapes.of(settings)
        return TwinScenes.of(settings)

    def check_row(self, row: Row) -> None:
        """Refuse a row that is no question."""
        check_question_row(row)

    def describe(self, settings: Settings) -> str:
        """Markdown of the card."""
        if isinstance(settings, AnnotatedSettings):
            return "\n\n".join((describe_annotated(settings), COLUMNS, CITATION))
        sizes = (settings.train_sets, settings.test_sets)
        sound = (
            describe_soundscapes(settings) if isinstance(settings, SoundscapeSettings) else describe_scenes(settings)
        )
        return "\n\n".join((describe_twins(*sizes), sound, COLUMNS, CITATION))


RECIPE = _Questions()
