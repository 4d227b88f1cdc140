"""Make the bundled model, `compa-clap-tiny`, from a folder that `audio-compositionality train` has written.

    audio-compositionality train --seed 0 --out trained
    python -m studies.bundled_model trained

The first command takes three minutes on one core. Weights become float16. `SPREAD` has the scores of three trainings
that differed only in the seed.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.families.compa_clap_tiny import FOLDER, MODELS, NAME
from audio_compositionality.encoders.loading.beside_weights import RECORD
from audio_compositionality.support.checked_files import digests_of, sealed_json
from audio_compositionality.support.errors import InputError

WEIGHTS = "model.safetensors"
CARD = "README.md"
KEPT = ("config.json", "preprocessor_config.json", "tokenizer.json", "tokenizer_config.json")
"""Files that are copied unchanged."""

SPREAD = (0.885, 0.890, 0.905)
"""Validation scores at the last step of trainings with the seeds 2, 0 and 1: the mean of the group scores of
`comp_a_order` and `comp_a_attribute` over 100 items each."""

MOST_BYTES = 1_500_000
"""Maximum size of the weights in bytes: every copy of the package contains them."""


def make_bundled_model(trained: Path, out: Path) -> None:
    """Write the folder of the bundled model.

    Args:
        trained: the best model of a training, ``OUT/best``.
        out: the folder to write, which may exist.

    Raises:
        InputError: a file is missing, or the weights are too large.
    """
    missing = [name for name in (WEIGHTS, CARD, *KEPT) if not (trained / name).is_file()]
    if missing:
        raise InputError(f"{trained} has no {', '.join(missing)}: give the folder OUT/best of a training")
    out.mkdir(parents=True, exist_ok=True)
    halves = {name: tensor.to(torch.float16) for name, tensor in load_file(trained / WEIGHTS).items()}
    save_file(halves, out / WEIGHTS, metadata={"format": "pt"})
    (out / WEIGHTS).chmod(0o644)
    size = (out / WEIGHTS).stat().st_size
    if size > MOST_BYTES:
        raise InputError(f"{out / WEIGHTS} has {size:,} bytes; at most {MOST_BYTES:,} are allowed")
    for name in KEPT:
        shutil.copyfile(trained / name, out / name)
    # With the digests of its files, so that a change in an installed package is noticed.
    files = digests_of(out, [out / name for name in (WEIGHTS, *KEPT)])
    (out / RECORD).write_bytes(sealed_json({"trained_on": MODELS[0].trained_on, "files": files}))
    (out / CARD).write_text(_card((trained / CARD).read_text("utf-8")), "utf-8")


def _card(text: str) -> str:
    """Return the card of a training with the bundled model's name and the commands that reproduce it."""
    lines = text.splitlines()
    old = next(line for line in lines if line.startswith("# ")).removeprefix("# ")
    lines = [line.replace(f"# {old}", f"# {NAME}") if line.startswith("# ") else line for line in lines]
    text = "\n".join(line for line in lines if not line.startswith(_OF_FILES)).replace(
        f'load_model("{old}")  # this folder, or the id on the Hub', f'load_model("{NAME}")'
    )
    text = text.replace(": `best/`.", ".")
    return f"""{text}
The weights are stored as float16 and computed with as float32. To make this folder again, in a clone:

```sh
audio-compositionality train --seed 0 --out trained
python -m studies.bundled_model trained
```
"""


_OF_FILES = ("`settings.yaml`", "`training.json`", "`evaluations.csv`")
"""Beginnings of lines about files of a training that are not in the package."""


def main() -> None:
    """Make the folder in the clone from the given training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trained", type=Path, help="the folder OUT of `audio-compositionality train`")
    options = parser.parse_args()
    make_bundled_model(options.trained / "best", FOLDER)
    print(f"{FOLDER} is written")


if __name__ == "__main__":
    main()
