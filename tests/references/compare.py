"""Compare every encoder with its reference implementation; print the table that stands in the README.

    python tests/references/compare.py

An encoder whose reference runs beside our versions is compared directly. For the others a script of this folder,
named like the encoder, was run in an environment of its own (see its first lines) and left the reference's embeddings
in a .safetensors file; here the same seeded weights, by the names of the official checkpoint, go through our loader.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from direct import DIRECT
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from seeded import FOLDER, seeded_clips, seeded_state, torchlibrosa_constants

from audio_compositionality.encoders.loading.registry import load_model


@dataclass(frozen=True)
class Comparison:
    """How far our embeddings of the seeded clips are from the reference's.

    Attributes:
        encoder: name.
        reference: what computed the reference.
        relative: largest |z - reference| / |reference| of a clip.
        spread: largest |z - reference| over the smallest distance between the reference's embeddings of two clips. An
            untrained network gives nearly the same vector for every clip; this one notices a front end that differs.
    """

    encoder: str
    reference: str
    relative: float
    spread: float


def compared(encoder: str, reference: str, ours: np.ndarray, theirs: np.ndarray) -> Comparison:
    """The comparison of embeddings [n, dim]."""
    assert ours.shape == theirs.shape, f"{encoder}: {ours.shape} against {theirs.shape}"
    error = np.linalg.norm(ours.astype(np.float64) - theirs, axis=1)
    between = [np.linalg.norm(a - b) for i, a in enumerate(theirs) for b in theirs[:i]]
    relative = float((error / np.linalg.norm(theirs, axis=1)).max())
    return Comparison(encoder, reference, relative, float(error.max() / min(between)))


def fixtures() -> list[str]:
    """Encoders whose reference's embeddings lie in this folder."""
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def fixture_state(encoder: str) -> dict[str, np.ndarray]:
    """The checkpoint that the reference was run with, by the official names."""
    about = _about(encoder)
    constants = torchlibrosa_constants(**about["constants"]) if about["constants"] else {}
    return {**seeded_state(about["shapes"]), **constants}


def compare_with_fixture(encoder: str, folder: Path, rows: Sequence[int] = (0, 1, 2, 3)) -> Comparison:
    """Load the seeded checkpoint, written to a folder, through `load_model`, and compare some of the clips."""
    about = _about(encoder)
    path = folder / f"{encoder}.safetensors"
    save_file(fixture_state(encoder), path)
    clips = seeded_clips(about["sample_rate"])[list(rows)]
    ours = load_model(f"{encoder}={path}", device="cpu").embed(clips, about["sample_rate"])
    path.unlink()
    theirs = load_file(FOLDER / f"{encoder}.safetensors")["embeddings"][list(rows)]
    return compared(encoder, about["reference"], ours, theirs)


def _about(encoder: str) -> dict:
    with safe_open(FOLDER / f"{encoder}.safetensors", "numpy") as file:
        return json.loads(file.metadata()["about"])


def compare_directly(encoder: str, folder: Path) -> Comparison:
    """Compare with a reference that runs beside our versions, with checkpoints in a temporary folder."""
    return compared(encoder, *DIRECT[encoder](folder))


def main() -> None:
    """Print the table."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print("| encoder | reference | relative error | error over spread |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [compare_directly(encoder, folder) for encoder in DIRECT]
        found += [compare_with_fixture(encoder, folder) for encoder in fixtures()]
    for one in sorted(found, key=lambda comparison: comparison.encoder):
        print(f"| {one.encoder} | {one.reference} | {one.relative:.1e} | {one.spread:.1e} |")


if __name__ == "__main__":
    main()
