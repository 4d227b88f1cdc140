"""Is what is true of a clip nearer to it than what is nearly true? Of captions, and of parts of three events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.scenes.captioned import leaves, parts
from audio_compositionality.dataset_builder.texts.caption_reading import UnreadableError, read, vocabulary_of
from audio_compositionality.dataset_builder.texts.captions import caption
from audio_compositionality.dataset_builder.texts.truth import SAME_WORDS, HeardEvent, draw_wording, is_true, negatives

NEAR = 1e-6
"""Cosines that differ by no more are a tie, which is wrong (as in the metric of captions of the same words)."""

LEAST_EVENTS = 3
"""Of a clip that has parts which are put together themselves."""

MOST_FALSE = 8
"""False texts beside one that is true."""

SAME, CAPTION, PART = "same_words", "caption", "part"


@dataclass(frozen=True)
class Trial:
    """A text that is true of a clip, and texts that are false of it.

    Attributes:
        what: of which kind: ``caption.KIND`` with the kind of the false texts, or ``part``.
        clip: number of the clip among those that are embedded.
        true: text.
        false: texts, one at least.
    """

    what: str
    clip: int
    true: str
    false: tuple[str, ...]


def caption_trials(row: Row, clip: int) -> Iterator[Trial]:
    """The first caption of a training row against its false texts: of each kind, and of all kinds of the same words."""
    by_kind: dict[str, list[str]] = {}
    for negative in row.get("negatives") or ():
        by_kind.setdefault(negative["kind"] or "", []).append(negative["text"])
    for kind, texts in by_kind.items():
        if kind:
            yield Trial(f"{CAPTION}.{kind}", clip, row["captions"][0], tuple(texts))
    same = [text for kind in (*SAME_WORDS, "") for text in by_kind.get(kind, ())]
    if same:
        yield Trial(f"{CAPTION}.{SAME}", clip, row["captions"][0], tuple(same))


def part_trials(row: Row, clip: int, rng: np.random.Generator) -> Iterator[Trial]:
    """Parts of two events or more of a training row of three or more, each against its own false variants.

    The row's first caption is read; a row that has no events, or whose caption is not certain, has no parts.

    Args:
        row: with ``captions`` and ``events``.
        clip: see `Trial`.
        rng: draws wordings, of those that training has.
    """
    events = [HeardEvent.of(event) for event in row.get("events") or ()]
    if len(events) < LEAST_EVENTS:
        return
    try:
        whole = read(row["captions"][0], vocabulary_of(events)).expression
    except UnreadableError:
        return
    for part in parts(whole):
        if len(leaves(part)) < 2 or not is_true(part, events):
            continue
        wording = draw_wording(part, rng, held_out=False)
        false = negatives(part, wording, events, rng, most=MOST_FALSE, held_out=False)
        if false:
            yield Trial(PART, clip, caption(part, wording), tuple(one.text for one in false))


def nearer(true: ArrayLike, false: ArrayLike, of_trial: ArrayLike) -> NDArray[np.float64]:
    """Whether the true text of each trial is nearer to its clip than every false one; a tie is wrong.

    Args:
        true: [n], the cosine of the true text of each trial with its clip.
        false: [m], those of false texts.
        of_trial: [m], the number of the trial of each; every trial has one at least.

    Returns:
        [n], 1 or 0.
    """
    cosines = np.asarray(true, np.float64)
    nearest = np.full(len(cosines), -np.inf)
    np.maximum.at(nearest, np.asarray(of_trial, np.int64), np.asarray(false, np.float64))
    return (cosines > nearest + NEAR).astype(np.float64)


def score_trials(
    trials: Sequence[Trial], clips: NDArray[np.floating], texts: dict[str, NDArray[np.floating]]
) -> dict[str, float]:
    """The share of trials whose true text is the nearest, by `Trial.what`.

    Args:
        trials: some.
        clips: [clips, dim], of any length but 0.
        texts: the embedding of each text, [dim].
    """
    if not trials:
        return {}
    of_trial = np.repeat(np.arange(len(trials)), [len(trial.false) for trial in trials])
    clip = np.array([trial.clip for trial in trials])
    unit = _unit(clips)
    true = (unit[clip] * _unit(np.stack([texts[trial.true] for trial in trials]))).sum(axis=1)
    false = _unit(np.stack([texts[text] for trial in trials for text in trial.false]))
    right = nearer(true, (unit[clip[of_trial]] * false).sum(axis=1), of_trial)
    kinds = np.array([trial.what for trial in trials])
    return {kind: float(right[kinds == kind].mean()) for kind in dict.fromkeys(kinds.tolist())}


def _unit(embeddings: NDArray[np.floating]) -> NDArray[np.float64]:
    values = np.asarray(embeddings, np.float64)
    unit: NDArray[np.float64] = values / np.maximum(np.linalg.norm(values, axis=1)[:, None], np.finfo(np.float64).tiny)
    return unit
