"""Wording that errors share."""

from __future__ import annotations

from collections.abc import Sequence


def first_line(error: BaseException) -> str:
    """The first line of an error's message; the name of its type where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def shown(names: Sequence[str], count: int = 5) -> str:
    """The first few of some names, and how many more there are."""
    listed = ", ".join(names[:count])
    return listed if len(names) <= count else f"{listed} and {len(names) - count} more"


def weight_problems(missing: Sequence[str], reshaped: Sequence[str], unexpected: Sequence[str]) -> list[str]:
    """What is wrong with the names of some weights, a phrase each; empty where nothing is."""
    kinds = (("missing", missing), ("of another shape", reshaped), ("unexpected", unexpected))
    return [f"{len(names)} {what}: {shown(sorted(names))}" for what, names in kinds if names]
