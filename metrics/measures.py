"""Measures of metrics, made by code: fields by name, as the ``MEASURES`` of a module have them."""

from typing import Any

Fields = dict[str, Any]

MOST = 1e15
"""What stands for "no bound" in ranges."""


def measure(heading: str, meaning: str, **more: Any) -> Fields:
    """Return the fields of a measure from −1 to 1, such as a cosine, unless `more` has its range."""
    return {"heading": heading, "meaning": meaning, **more}


def ratio(heading: str, meaning: str, **more: Any) -> Fields:
    """Return the fields of a measure that is 1 at most and has no lower bound, such as R²."""
    return {"heading": heading, "meaning": meaning, "range": (-MOST, 1.0), **more}


def share(heading: str, meaning: str, **more: Any) -> Fields:
    """Return the fields of a measure from 0 to 1."""
    return {"heading": heading, "meaning": meaning, "range": (0.0, 1.0), **more}


def count(heading: str, meaning: str, least: float = 1.0, **more: Any) -> Fields:
    """Return the fields of a number of things, which is not shown unless `more` says so."""
    return {"heading": heading, "meaning": meaning, "range": (least, MOST), "digits": 0, "shown": False} | more


def hidden(fields: Fields) -> Fields:
    """Return the fields of a measure that tables leave out."""
    return {**fields, "shown": False}
