"""The project's errors, with one base class: any other error is a bug."""

from __future__ import annotations

from collections.abc import Iterator


class AudioCompositionalityError(ValueError):
    """A mistake in the input, the data or the environment; the message gives the value, the rule and a valid value.

    The command line prints the message only. Any other `ValueError` is a bug of the project and shows its traceback.
    """


class InputError(AudioCompositionalityError):
    """An unusable argument."""


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__ or cause.__context__
