"""Clips as models that answer are given them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def each(clips: Iterable[Any]) -> list[list[Any]]:
    """Clips for as many prompts, one each."""
    return [[clip] for clip in clips]
