"""The clips that questions are about: read, put one behind the other, cut to a model's input, or those of others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from audio_compositionality.dataset_builder.data import PAUSE, Clip, Row
from audio_compositionality.encoders.base import ClipError, Model, resample
from audio_compositionality.tasks.base import TaskError

from .blocks import clips_at
from .opened import OpenedTask


def clips_about(
    opened: OpenedTask, about: Sequence[tuple[str, ...]], keep_invalid: bool, longest: float | None = None
) -> list[Clip]:
    """The sound of questions; each clip is read once.

    Args:
        opened: the task and its data.
        about: ids of the clips of each question; of several, one sound is made, see `put_together`.
        keep_invalid: give an unusable clip, with its `Clip.problem`.
        longest: seconds after which a sound is cut; None for no limit.

    Raises:
        ClipError: one cannot be used, and ``keep_invalid`` is not given.
    """
    places = {id: place for place, id in enumerate(opened.configuration.clip_ids)}
    wanted = (places[id] for ids in about for id in ids)
    clips = {clip.id: clip for clip in clips_at(opened.configuration, wanted).values()}
    sounds = []
    for place, ids in enumerate(about):
        sound = put_together([clips[id] for id in ids])
        if sound.problem is not None and not keep_invalid:
            raise ClipError(f"{sound.problem}; --skip-invalid leaves it out", place, sound.id)
        sounds.append(sound if longest is None else _cut(sound, longest))
    return sounds


def put_together(clips: Sequence[Clip]) -> Clip:
    """One clip of several, one behind the other with `PAUSE` between, at the highest of their rates and under the id of
    the first; the unusable one where one is."""
    first, *rest = clips
    if not rest:
        return first
    for clip in clips:
        if clip.problem is not None:
            return clip
    rate = max(clip.sample_rate for clip in clips)
    pause = np.zeros(round(PAUSE * rate), np.float32)
    parts = [resample(clip.waveform[None], clip.sample_rate, rate)[0] for clip in clips]
    with_pauses = [part for one in parts for part in (one, pause)][:-1]
    return Clip(first.id, np.concatenate(with_pauses), rate)


def _cut(clip: Clip, longest: float) -> Clip:
    most = int(longest * clip.sample_rate)
    return clip if len(clip.waveform) <= most else replace(clip, waveform=clip.waveform[:most])


def longest_asked(model: Model, opened: OpenedTask) -> float | None:
    """Seconds to which a model's clips are cut; None where a task cuts none, or the model takes any."""
    return model.limit_seconds if any(one.cuts for one in opened.inputs) else None


def learnt_about(opened: OpenedTask, rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Ids of the clips of rows to learn from: those of the inputs, or of rows without an input, which no question is
    asked about, the first clip that inputs name.

    Raises:
        TaskError: a row has no such clip.
    """
    asked: dict[str, tuple[str, ...]] = {}
    prompted = (row["id"] for row, one in zip(opened.rows, opened.inputs, strict=True) for _ in one.prompts)
    for id, about in zip(prompted, opened.asked_about, strict=True):
        asked.setdefault(id, about)
    names = dict.fromkeys(name for one in opened.inputs for name in one.clips)
    there = set(opened.configuration.clip_ids)
    learnt = []
    for row in rows:
        first = next((id for name in names if (id := f"{row['id']}/{name}") in there), "")
        if not first:
            raise TaskError(f"row {row['id']} has no clip {' or '.join(names)} to learn from")
        learnt.append(asked.get(row["id"], (first,)))
    return learnt


def other_clips(opened: OpenedTask) -> list[tuple[str, ...]]:
    """For each prompt the clips of a question of another group, which replace its own.

    All questions form a circle in the order of the SHA-256 of the ids of their clips, which is independent of their
    texts and answers; each prompt is given the clips of the next one of another group. So they depend on the whole
    configuration, not on a batch. Groups are those of the inputs, else the clusters of the task's samples; a row
    without one is a group of its own.

    Raises:
        TaskError: all rows are of one group.
    """
    samples = opened.samples
    groups = {id: int(cluster) for id, cluster in zip(samples.ids, samples.clusters, strict=True)}
    prompted = ((row, one) for row, one in zip(opened.rows, opened.inputs, strict=True) for _ in one.prompts)
    group_of: Mapping[tuple[str, ...], object] = {
        about: one.group or groups.get(row["id"], row["id"])
        for about, (row, one) in zip(opened.asked_about, prompted, strict=True)
    }
    if len(set(group_of.values())) < 2:
        raise TaskError("all clips are of one group; this control needs clips of two or more")
    circle = sorted(group_of, key=lambda about: hashlib.sha256("+".join(about).encode()).hexdigest())
    other: dict[tuple[str, ...], tuple[str, ...]] = {}
    following = next(about for about in circle if group_of[about] != group_of[circle[-1]])
    for place in range(len(circle) - 1, -1, -1):
        about, after = circle[place], circle[(place + 1) % len(circle)]
        # The next one, or where that is of the same group, the one that it is given itself.
        following = after if group_of[after] != group_of[about] else following
        other[about] = following
    return [other[about] for about in opened.asked_about]
