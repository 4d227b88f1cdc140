"""The errors of the project: one base class, so that whatever else is raised is known to be a bug."""

from __future__ import annotations

from collections.abc import Iterator


class AudioCompositionalityError(ValueError):
    """What the user, the data or the surroundings got wrong, in one sentence: the value, the rule, what would be valid.

    The command line prints its message. Every other `ValueError` is a mistake of the project and shows its traceback.
    """


class InputError(AudioCompositionalityError):
    """An argument that cannot be used."""


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was raised from."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
