"""What is known of baselines before they are scored: which describe a sound, which scores are fixed by construction."""

from __future__ import annotations

from audio_compositionality.encoders.loading.listing import ModelListing, named_models
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.base import Measure, TaskInfo

from .comparison import Comparison
from .kinds import ModelKind
from .loading import ComparedResult

FIXED_WITHIN = 0.01
"""A score this near to what construction gives is fixed by it. Where each clip has a level of its own, it is no sum
of sources: a linear encoder then stays farther away (0.84 instead of 1), and its score is one like any."""


def baseline_listing(result: ComparedResult) -> ModelListing | None:
    """What the listing of models says of a baseline; None of what is no baseline, or is not listed."""
    if result.kind is not ModelKind.BASELINE:
        return None
    return named_models().get(result.result.model.id)


def descriptions_in(comparison: Comparison) -> list[int]:
    """Places of the baselines that describe plainly what the task scores, as the listing of models says."""
    listings = map(baseline_listing, comparison.results)
    return [k for k, one in enumerate(listings) if one is not None and _describes(one, comparison.info)]


def _describes(listing: ModelListing, info: TaskInfo) -> bool:
    """Whether a baseline does plainly what a task scores: describe sound, or sound and texts, or answer."""
    can_do = (listing.embeds_text, listing.answers)
    return listing.is_reference and can_do == ("text" in info.needs, "answer" in info.needs)


def description_names(info: TaskInfo) -> str:
    """Names of all baselines that describe plainly what a task scores, in words."""
    names = [listing.name for listing in named_models().values() if _describes(listing, info)]
    return listed(names) if names else "a plain baseline"


def levels_in(comparison: Comparison) -> list[int]:
    """Places of the baselines that hear nothing but how loud a clip is, as the listing of models says."""
    listings = map(baseline_listing, comparison.results)
    return [k for k, listing in enumerate(listings) if listing is not None and listing.is_level]


def level_names() -> str:
    """Names of all baselines that hear nothing but how loud a clip is, in words: one of them or another."""
    return " or ".join(listing.name for listing in named_models().values() if listing.is_level)


def fixed_by_construction(result: ComparedResult, measure: Measure) -> str:
    """Why a score of a baseline is none to reach, in words: it has it by construction; empty where it has not."""
    listing, value = baseline_listing(result), result.value(measure)
    if listing is None or not listing.is_linear or measure.linear is None or value is None:
        return ""
    return f"linear: {measure.linear:g} by construction" if abs(value - measure.linear) <= FIXED_WITHIN else ""
