"""Scenes in two arrangements: the same sounds together, and pulled apart, one after the other.

A pair of groups of twins (`twins`) has the same clips but for when sounds begin: the same labels, variants, levels and
lengths, one question with the same words and options, and the same answers. So what a model answers rightly of the one
and not of the other is what overlap itself costs it. Only what has one answer in both is asked: how many kinds of sound
there are, and which lasts longest.

The sounds are short enough to follow each other in a clip, so that none is cut and the clips have one length. What else
is different is silence: there is more of it where sounds are together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from .twin_groups import FIRST, LAST, PLACES, SHARED, Scene, Spans, TwinClip, TwinGroup, group_of, turns
from .twins import counted, longest_of, overlapping

TOGETHER, APART = "together", "apart"
ARRANGEMENTS = (TOGETHER, APART)

_PAIRS = 74
"""The random stream."""

_LEAST_GAP = 25
"""Steps between two sounds that follow each other, at least."""

Draw = Callable[[Sequence[str], np.random.Generator], tuple[Scene, list[Spans]]]


def draw_pairs(labels: Sequence[str], split: str, sets: int, seed: int) -> Iterator[TwinGroup]:
    """The groups of a split: in each set one pair of `ARRANGEMENTS` of each task, whose names end in these.

    Args:
        labels: that are heard; five or more.
        split: train or test.
        sets: how many.
        seed: of all choices.

    Raises:
        InputError: too few labels, or two that read alike.
    """
    kinds = {task: PLACES.index(f"{task} apart") for task in _TASKS}
    for turn in turns(kinds, labels, split, sets, seed, stream=_PAIRS):
        scene, apart = _TASKS[turn.kind](turn.labels, turn.rng)
        group = group_of(turn, scene)
        yield _arranged(group, TOGETHER, None)
        yield _arranged(group, APART, apart)


def arrangement_of(group: TwinGroup) -> tuple[str, str]:
    """The arrangement of a group, and the name of its pair."""
    pair, _, arrangement = group.name.rpartition("-")
    return arrangement, pair


def _arranged(group: TwinGroup, arrangement: str, spans: Sequence[Spans] | None) -> TwinGroup:
    """A group by another name, each track at other spans where such are given."""
    name = f"{group.name}-{arrangement}"
    clips = []
    for place, clip in enumerate(group.clips, 1):
        tracks = clip.tracks
        if spans is not None:
            tracks = tuple(replace(track, spans=moved) for track, moved in zip(tracks, spans, strict=True))
        clips.append(TwinClip(f"{name}-{place}", tracks))
    # Its pitches are drawn as those of the twins that are asked the same.
    return replace(group, name=name, clips=tuple(clips), place=PLACES.index(group.task))


def _one_after_the_other(lengths: Sequence[int], rng: np.random.Generator) -> list[Spans]:
    """The span of each sound, in a drawn order; what is left of the clip is dealt to the silences."""
    count = len(lengths)
    rest = LAST - FIRST - sum(lengths) - (count - 1) * _LEAST_GAP
    silences = rng.multinomial(rest, [1 / (count + 1)] * (count + 1))
    spans: dict[int, Spans] = {}
    step = FIRST
    for which, silence in zip(rng.permutation(count).tolist(), silences[:count].tolist(), strict=True):
        start = step + silence
        spans[which] = ((start, start + lengths[which]),)
        step = start + lengths[which] + _LEAST_GAP
    return [spans[which] for which in range(count)]


def _counting(labels: Sequence[str], rng: np.random.Generator) -> tuple[Scene, list[Spans]]:
    """Four sounds, and one to four labels on them; together, all are heard at once for a while."""
    lengths = [int(length) for length in rng.integers(170, 216, 4)]
    longest = max(lengths)
    shared = int(rng.integers(FIRST + longest - SHARED, LAST - longest))
    starts = [shared - int(rng.integers(0, length - SHARED + 1)) for length in lengths]
    spans = [((start, start + length),) for start, length in zip(starts, lengths, strict=True)]
    return counted(spans, labels, rng), _one_after_the_other(lengths, rng)


def _duration(labels: Sequence[str], rng: np.random.Generator) -> tuple[Scene, list[Spans]]:
    """Three sounds of very different lengths, on which labels take turns; together, the longest overlaps the others."""
    unit = int(rng.integers(36, 40))
    lengths = [share * unit + int(rng.integers(0, 9)) for share in (11, 7, 4)]
    spans = overlapping(lengths, int(rng.integers(FIRST, LAST - lengths[0])), rng)
    return longest_of(spans, labels, rng), _one_after_the_other(lengths, rng)


_TASKS: Mapping[str, Draw] = {"counting": _counting, "duration": _duration}
"""What draws a pair of a task; their numbers are those of the random stream, after those of `twins`."""

APART_TASKS = tuple(_TASKS)
"""Tasks whose questions have one answer in both arrangements."""
