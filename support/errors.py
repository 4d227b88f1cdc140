"""The errors of the project: one base class, so that any other error is known to be a bug."""

from __future__ import annotations

from collections.abc import Iterator


class AudioCompositionalityError(ValueError):
    """A mistake of the user, the data or the surroundings, in one sentence: the value, the rule, and a valid value.

    The command line prints its message. Every other `ValueError` is a mistake of the project and shows its traceback.
    """


class InputError(AudioCompositionalityError):
    """An unusable argument."""


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
