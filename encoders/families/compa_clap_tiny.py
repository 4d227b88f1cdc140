"""`compa-clap-tiny`: a small audio–text model in the package, trained on sounds of its generator.

`python -m studies.bundled_model` makes its folder from the one that `audio-compositionality train` writes. It shows the
verdict on a trained model, on a machine without network. It is not meant for other uses: it knows only the sounds of
the presets.
"""

from importlib.resources import files
from pathlib import Path

from ..loading.listing import ModelListing

NAME = "compa-clap-tiny"

FOLDER = Path(str(files(__package__.rpartition(".")[0]).joinpath("bundled", NAME)))
"""Its configuration, tokenizer, card and weights (safetensors, float16)."""

MODELS = (
    ModelListing(
        "compa-clap-tiny",
        128,
        16_000,
        "audio–text contrastive, then with hard negatives, on our generator",
        "Apache-2.0",
        "a small audio–text model in the package, trained on our generator (0.55 M)",
        FOLDER,
        embeds_text=True,
        trained_on="4,000 rows of comp_a_train, mini: clips and captions of this project's generator",
    ),
)
