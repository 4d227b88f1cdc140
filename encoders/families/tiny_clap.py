"""`tiny-clap`: a small CLAP with fresh weights, for which nothing has to be downloaded."""

from __future__ import annotations

from ..base import Model
from ..inference import resolve_device
from ..loading.listing import ModelListing
from ..options import DEFAULT_OPTIONS

NAME = "tiny-clap"
PARADIGM = "untrained"
LICENCE = "Apache-2.0"


def make_tiny_clap() -> Model:
    """The untrained tiny CLAP, on the CPU, which is fast enough for it; its weights are those of `tiny_clap()`."""
    from ..loading.checkpoints import BuiltCheckpoint
    from ..networks.small_networks import tiny_clap, tiny_extractor, tiny_tokenizer
    from .clap import ClapEncoder

    checkpoint = BuiltCheckpoint.of_model(
        tiny_clap(),
        tiny_extractor(),
        tiny_tokenizer(),
        name=NAME,
        revision="v1",
        paradigm=PARADIGM,
        licence=LICENCE,
    )
    return ClapEncoder(checkpoint, resolve_device("cpu"), DEFAULT_OPTIONS)


MODELS = (
    ModelListing(
        NAME,
        128,
        16_000,
        PARADIGM,
        LICENCE,
        "CLAP with 0.9 M fresh weights of a fixed seed and a tokenizer of words, of which nothing is downloaded; knows "
        "nothing",
        make=make_tiny_clap,
        embeds_text=True,
    ),
)
