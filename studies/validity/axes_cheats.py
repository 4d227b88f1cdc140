"""What hears nothing of the content, on clips that are rendered: at chance in what tasks of invariance rank by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.scenes.bases import TransformSpec
from audio_compositionality.tasks.base import Floats, Outputs, Scores
from audio_compositionality.tasks.registry import load_task

from .axes_data import UNPROBED, heading
from .axes_theory import half_width
from .families import Check, at_most, near

BASES = 48
"""As many as the preset mini has; of one second each, so that they are rendered in seconds."""

DIM = 32

Heard = Callable[[Floats, Row], Floats]
"""An embedding [dim] of a clip [samples] in -1...1, and of its row for the oracle."""


def cheats(seed: int) -> list[Check]:
    """Constant, level, hash, samples, and an oracle of the labels, in all that the tasks rank by."""
    rows, clips = _rendered(seed)
    encoders: dict[str, Heard] = {
        "constant": lambda clip, row: np.ones(2),
        "level": lambda clip, row: np.sqrt(np.mean(np.square(clip)))[None],
        "hash of the samples": lambda clip, row: _direction(clip.tobytes()),
        "samples": lambda clip, row: clip,
        "labels of the sources": _oracle,
    }
    checks = []
    for subject, heard in encoders.items():
        for name in UNPROBED:
            scores = _scored(name, rows, clips, heard)
            ranked = load_task(name).info.ranks_by
            expected = float(subject == "labels of the sources")
            spread = half_width(scores.columns[f"score_{ranked}"])
            value = scores.measures[ranked]
            assert value is not None
            checks.append(near(subject, heading(name, ranked), expected, float(value), max(spread, 1e-9)))
            if subject == "level":
                # What is there for contrast: that is why nothing is ranked by it.
                plain = scores.measures["invariance" if name == "onset_invariance" else "reverb_invariance"]
                assert plain is not None
                checks.append(
                    at_most(subject, f"{heading(name, 'invariance')}, plain", 0.5, float(plain), claimed=False)
                )
    return checks


def _rendered(seed: int) -> tuple[list[Row], list[Floats]]:
    settings = TransformSpec(seed=seed, bases=BASES, untransformed=0, duration=1, rate_range=(2, 6))
    rendering = load_recipe("transforms").render(settings)
    rows = list(rendering.rows)
    return rows, [rendering.clips(place)[0] / 32_768 for place in range(len(rows))]


def _scored(name: str, rows: list[Row], clips: list[Floats], heard: Heard) -> Scores:
    task = load_task(name)
    places = [place for place, row in enumerate(rows) if task.inputs(row, {}).clips]
    embeddings = np.stack([heard(clips[place], rows[place]) for place in places])
    return task.score(rows, Outputs(clips=embeddings), task.settings(rows, {}), "cpu", False)


def _direction(content: bytes) -> Floats:
    """A random vector for each content."""
    digest = hashlib.sha256(content).digest()
    direction: Floats = np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(DIM)
    return direction


def _oracle(clip: Floats, row: Row) -> Floats:
    """The sum of a random vector for each label of each source but its amplitude."""
    labels = [source[f"{factor}_label"] for source in row["metadata"] for factor in ("timbre", "pitch", "rate")]
    total: Floats = np.sum([_direction(label.encode()) for label in labels], axis=0)
    return total
