"""Digests of the rows and samples of all recipes, beside their versions and fingerprints, in ``frozen.json``.

``python -m tests.dataset_builder.frozen RECIPE …`` writes the entries of some recipes anew: of a new one, or of one
whose version has risen. Without names it writes those of all.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from audio_compositionality.dataset_builder.data import recipe_fingerprint
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import rendered_preset

from .recipes.few import MEMBERS, opened

FILE = Path(__file__).with_suffix(".json")

COLUMNS = (
    *("id", "split", "metadata", "onsets", "transform", "fold", "labels", "instances", "instances_b"),
    *("captions", "parts", "negatives", "events", "question", "options", "answer", "change", "roles"),
)
"""The other columns follow from these; their last bits may be those of a processor."""


def recipes() -> list[str]:
    """Names of all recipes that draw rows."""
    return [name for name in list_recipes() if load_recipe(name).presets]


def stated(name: str) -> dict[str, Any]:
    """The version of a recipe, and the fingerprint of each of its presets; nothing is drawn."""
    recipe = load_recipe(name)
    presets = {
        preset: recipe_fingerprint(name, recipe.version, spec.values())[:40] for preset, spec in recipe.presets.items()
    }
    return {"version": recipe.version, "presets": presets}


def digest_of(configuration: Any, step: int = 64) -> str:
    """The digest of all rows of a configuration and of four clips in each `step`, 40 digits."""
    rows = [[row[column] for column in COLUMNS if column in row] for row in configuration.rows]
    digest = hashlib.sha256(json.dumps(rows).encode())
    ids = configuration.clip_ids
    for place in range(0, len(ids), step):
        for clip in configuration.clips(range(place, min(place + 4, len(ids)))):
            digest.update(f"{clip.id} {clip.sample_rate}".encode())
            digest.update(clip.waveform.tobytes())
    return digest.hexdigest()[:40]


def drawn(name: str) -> str:
    """The digest of the preset mini."""
    return digest_of(rendered_preset("mini", recipes=[name]).configuration(name))


def frozen() -> dict[str, Any]:
    """The entries of the file by the name of a recipe."""
    entries: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return entries


def main(names: list[str]) -> None:
    entries = frozen() if FILE.exists() else {}
    for name in names or recipes():
        few = {member: digest_of(opened(member), 16) for member in MEMBERS if member.partition(" of ")[0] == name}
        entries[name] = {**stated(name), "drawn": drawn(name), "few": few}
    kept = {name: entries[name] for name in sorted(entries) if name in recipes()}
    FILE.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
