"""Scores by how often what is heard was said in the captions of a training, which the user has (arXiv 2310.08753)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from audio_compositionality.tasks.shapes.pairs import frequency_groups

from .comparison import Comparison

GROUPING = "training captions that name the rarer sound"


def with_training_captions(comparison: Comparison, captions: Sequence[str]) -> Comparison:
    """A comparison whose samples are also told apart by how often the rarer one of their labels is in captions.

    Args:
        comparison: of a task; one whose samples have no labels gets a note that says so, and no groups.
        captions: of the training of its models.
    """
    samples = comparison.samples
    groups = () if samples is None else frequency_groups(samples.rows, captions)
    if samples is None or not groups:
        note = "no labels of its samples are known, so that nothing can be counted in training captions"
        return replace(comparison, notes=(*comparison.notes, note))
    return replace(comparison, samples=replace(samples, groups={**samples.groups, GROUPING: groups}))
