"""Listings of the answerers by name, for `load_model` and the command `models`.

The package's own entry point in the group ``audio_compositionality.models`` points here, so that `encoders`, which
imports nothing from this package, finds them.
"""

from __future__ import annotations

from importlib import import_module

from audio_compositionality.encoders.base import Model
from audio_compositionality.encoders.loading.listing import ModelListing

from .chooser import SAMPLE_RATE


def _listing(
    name: str, place: str, description: str, *, kind: str = "baseline", is_reference: bool = False
) -> ModelListing:
    """Return the listing of the class at ``module:Class`` of this folder; for controls, see `card_of`."""
    module, _, attribute = place.partition(":")

    def make() -> Model:
        model: Model = getattr(import_module(f"{__package__}.{module}"), attribute)()
        return model

    return ModelListing(
        name,
        None,
        SAMPLE_RATE,
        f"none ({kind})",
        "Apache-2.0",
        description,
        make=make,
        is_reference=is_reference,
        embeds_sound=False,
        answers=True,
    )


MODELS = (
    _listing("first", "text_only:First", "questions: the first option, whatever is asked"),
    _listing("longest", "text_only:Longest", "questions: the option with most characters"),
    _listing(
        "majority",
        "text_only:Majority",
        "questions: the text that was right most often among those to learn from with the same options",
    ),
    _listing(
        "blind",
        "text_only:Blind",
        "questions: learns from their words alone which option is right",
        is_reference=True,
    ),
    _listing(
        "statistics",
        "sound_only:Statistics",
        "questions: learns the right option from nine statistics of the clip, without labels",
        is_reference=True,
    ),
    _listing(
        "time-blind",
        "sound_only:TimeBlind",
        "questions: learns from how much there is of each band, and not when, which option is right",
        is_reference=True,
    ),
    _listing(
        "order-blind",
        "sound_only:OrderBlind",
        "questions: learns from what there is at one moment, whenever that is, which option is right",
        is_reference=True,
    ),
    _listing(
        "spectrum-comparer",
        "sound_only:SpectrumComparer",
        "questions about two clips: whether the spectra of their sounds are the same, in which order, how many times",
    ),
    _listing("usual-times", "text_only:UsualTimes", "when: the interval that overlaps most with those to learn from"),
    _listing("present", "symbolic:Present", "questions: reads the labels without their times", kind="control"),
    _listing(
        "oracle",
        "symbolic:Oracle",
        "questions: reads the labels with their times; right wherever the labels are",
        kind="control",
    ),
    _listing(
        "cascade",
        "detector:Cascade",
        "questions: a small detector of sounds, trained on the split train of the same data, then rules",
        kind="control",
    ),
)
