"""The tasks: each module of this folder that has one by the name ``TASK``."""

from __future__ import annotations

from audio_compositionality.support.discovery import Registry

from .base import QuestionTask

_registry: Registry[QuestionTask] = Registry(
    __package__ or "", "TASK", "audio_compositionality.questions", lambda task: task.name
)


def question_tasks() -> dict[str, QuestionTask]:
    """All tasks by name."""
    return _registry.all()
