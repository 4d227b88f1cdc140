"""Retrieval against plain loops over all orders, SciPy and scikit-learn, and hand-computed cases."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom, rankdata
from sklearn.metrics import average_precision_score, top_k_accuracy_score

from audio_compositionality.metrics.audio_text_retrieval import audio_text_retrieval

from .contract import MetricContract

NAMES = ("r1", "r5", "r10", "map10", "median_rank")


def example() -> dict[str, Any]:
    """Return arguments of `audio_text_retrieval`: a model that finds many of 30 captions of 12 clips, 6 dimensions."""
    rng = np.random.default_rng(0)
    clip = np.concatenate([np.arange(12), np.arange(12), np.arange(6)])
    audio = rng.normal(size=(12, 6))
    text = audio[clip] + 0.8 * rng.normal(size=(30, 6))
    return {"audio": audio.round(3), "text": text.round(3), "clip_of_text": clip}


class TestContract(MetricContract):
    name = "audio_text_retrieval"
    embeddings = ("text", "audio")
    needed = ("audio", "text", "clip_of_text")

    def test_order_of_samples_does_not_matter(self) -> None:
        example, rng = self.example(), np.random.default_rng(1)
        texts, clips = rng.permutation(30), rng.permutation(12)
        moved = {
            "audio": example["audio"][clips],
            "text": example["text"][texts],
            "clip_of_text": np.argsort(clips)[example["clip_of_text"]][texts],
        }
        assert self.numbers(**moved) == pytest.approx(self.numbers(), abs=1e-9)


def of_ranks(ranks: list[int]) -> list[float]:
    """R@1, R@5, R@10, average precision at 10 and rank of the best, of the ranks of all that is sought."""
    first = sorted(ranks)
    precision = sum(place / rank for place, rank in enumerate(first, 1) if rank <= 10) / min(10, len(first))
    return [*(float(first[0] <= k) for k in (1, 5, 10)), precision, first[0]]


def by_direction(result: dict[str, Any], direction: str) -> list[float]:
    return [result[f"{direction}_{name}"] for name in NAMES]


def summary(scores: list[list[float]]) -> list[float]:
    table = np.array(scores)
    return [*table[:, :4].mean(axis=0), float(np.median(table[:, 4]))]


def test_without_ties_ranks_are_scipy_s() -> None:
    rng = np.random.default_rng(0)
    clip = rng.permutation(np.concatenate([np.arange(40), rng.integers(40, size=80)]))
    s = rng.normal(size=(120, 40)) + 2 * np.eye(40)[clip]
    result = audio_text_retrieval(similarity=s, clip_of_text=clip)
    of_text = [of_ranks([int(rankdata(-row)[one])]) for row, one in zip(s, clip, strict=True)]
    of_clip = [of_ranks([int(rank) for rank in rankdata(-s[:, one])[clip == one]]) for one in range(40)]
    assert by_direction(result, "text_to_audio") == pytest.approx(summary(of_text), abs=1e-12)
    assert by_direction(result, "audio_to_text") == pytest.approx(summary(of_clip), abs=1e-12)
    few = [np.flatnonzero(clip == one)[:2] for one in range(4)]
    rows, owner = np.concatenate(few), np.repeat(np.arange(4), [len(one) for one in few])
    precision = np.mean([average_precision_score(owner == one, s[rows, one]) for one in range(4)])
    short = audio_text_retrieval(similarity=s[rows, :4], clip_of_text=owner)
    assert short["audio_to_text_map10"] == pytest.approx(precision)
    for k in (1, 5, 10):
        assert result[f"text_to_audio_r{k}"] == pytest.approx(top_k_accuracy_score(clip, s, k=k, labels=range(40)))
    assert 0.2 < result["audio_to_text_map10"] < 0.9


def expected_over_orders(values: np.ndarray, sought: np.ndarray) -> list[float]:
    """Mean scores over all orders of candidates in which values descend."""
    orders = [order for order in itertools.permutations(range(len(values)))
              if all(values[one] >= values[other] for one, other in itertools.pairwise(order))]  # fmt: skip
    ranks = [[place for place, one in enumerate(order, 1) if sought[one]] for order in orders]
    return list(np.mean([of_ranks(few) for few in ranks], axis=0))


def test_ties_are_expectations_over_all_orders() -> None:
    rng = np.random.default_rng(2)
    clip = np.array([0, 0, 1, 1, 1, 2, 2])
    s = rng.integers(3, size=(7, 3)) / 4
    assert len({tuple(column) for column in s.T}) == 3
    result = audio_text_retrieval(similarity=s, clip_of_text=clip)
    of_text = [expected_over_orders(row, np.arange(3) == one) for row, one in zip(s, clip, strict=True)]
    of_clip = [expected_over_orders(s[:, one], clip == one) for one in range(3)]
    assert by_direction(result, "text_to_audio") == pytest.approx(summary(of_text), abs=1e-12)
    assert by_direction(result, "audio_to_text") == pytest.approx(summary(of_clip), abs=1e-12)


@pytest.mark.parametrize("noise", [1e-7])
def test_a_constant_model_is_at_chance(noise: float) -> None:
    rng = np.random.default_rng(3)
    clip = np.repeat(np.arange(50), 5)
    audio, text = (1 + noise * rng.normal(size=(n, 16)) for n in (50, 250))
    result = audio_text_retrieval(audio.astype(np.float32), text.astype(np.float32), clip)
    for direction in ("text_to_audio", "audio_to_text"):
        assert by_direction(result, direction) == pytest.approx(by_direction(result, f"chance_{direction}"), abs=1e-12)
        assert result[f"{direction}_r1"] == pytest.approx(1 / 50, abs=1e-12)
    assert result["text_to_audio_median_rank"] == 25.5


def test_chance_is_that_of_drawing_without_looking() -> None:
    clip = np.array([0, 0, 0, 1, 2, 2] + [3] * 14)
    result = audio_text_retrieval(similarity=np.random.default_rng(4).normal(size=(20, 4)), clip_of_text=clip)
    counts = np.bincount(clip)
    for k in (1, 5, 10):
        assert result[f"chance_text_to_audio_r{k}"] == pytest.approx(min(k, 4) / 4)
        chance = np.mean([hypergeom(20, count, k).sf(0) for count in counts])
        assert result[f"chance_audio_to_text_r{k}"] == pytest.approx(chance)
    assert result["chance_text_to_audio_map10"] == pytest.approx(np.mean([1 / rank for rank in range(1, 5)]))
    firsts = [np.mean([few[0] + 1 for few in itertools.combinations(range(20), count)]) for count in (3, 1, 2)]
    # The first of 14 among 20 places has 6 others to be behind, each with a chance of 1/15.
    expected = np.median([*firsts, 1 + 6 / 15])
    assert result["chance_audio_to_text_median_rank"] == pytest.approx(expected)


# ----- what clips contribute


def test_captions_that_are_unequally_many_are_weighed_by_the_caption() -> None:
    rng = np.random.default_rng(7)
    clip = np.array([0] * 9 + [1] * 2 + [2])
    s = rng.normal(size=(12, 3))
    result = audio_text_retrieval(similarity=s, clip_of_text=clip, return_scores=True)
    of_text = (s.argmax(axis=1) == clip).astype(float)
    mean = of_text.mean()
    expected = [mean + 3 / 12 * (of_text[clip == one] - mean).sum() for one in range(3)]
    assert result["scores"] == pytest.approx(expected)
    even = audio_text_retrieval(similarity=s[:9], clip_of_text=np.arange(9) // 3, return_scores=True)
    right = (s[:9].argmax(axis=1) == np.arange(9) // 3).reshape(3, 3)
    assert even["scores"] == pytest.approx(right.mean(axis=1))


def test_copies_of_captions_narrow_no_interval() -> None:
    rng = np.random.default_rng(8)
    audio = rng.normal(size=(60, 6))
    text = audio + 1.5 * rng.normal(size=audio.shape)
    single = audio_text_retrieval(audio, text, np.arange(60))
    copied = audio_text_retrieval(audio, text.repeat(5, axis=0), np.arange(300) // 5)
    wilson = binomtest(round(60 * single["text_to_audio_r1"]), 60).proportion_ci(method="wilson")
    for result in (single, copied):
        assert result["intervals"]["text_to_audio_r1"] == pytest.approx([wilson.low, wilson.high], abs=1e-9)
    assert copied["audio_to_text_r5"] == pytest.approx(single["audio_to_text_r1"])
    assert set(single["intervals"]) == {f"{one}_{name}" for one in ("text_to_audio", "audio_to_text")
                                        for name in NAMES[:4]}  # fmt: skip


def test_values_that_are_close_one_after_the_other_are_not_all_tied() -> None:
    # 601 candidates, each .5e-6 below the one before: three at a time are within 1e-6 of their first.
    s = np.linspace(0.3e-3, 0, 601)[None].repeat(601, axis=0)
    result = audio_text_retrieval(similarity=s, clip_of_text=np.arange(601))
    # So ranks are off by 1 at most.
    assert result["text_to_audio_r1"] == pytest.approx(1 / 601)
    assert result["text_to_audio_r5"] == pytest.approx(5 / 601)
    assert result["text_to_audio_median_rank"] == pytest.approx(301, abs=1)


# ----- errors


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"audio": np.ones((2, 4))}, "audio has 4 dimensions and text 3: the towers do not share a space"),
        ({"clip_of_text": [0, 1, 2]}, "rows of the 2 clips, from 0 to 1; row 2 has 2"),
        ({"clip_of_text": [0, 1, 0.5]}, "clip_of_text must be strings or integers; row 2 has 0.5"),
        ({"clip_of_text": [1, 1, 1]}, "Every clip needs a text; 1 of 2 have none, the first is clip 0"),
        ({"text": None}, "got audio, clip_of_text without text"),
        ({"similarity": np.ones((3, 2))}, "similarity is given together with audio, text"),
        ({"audio": None, "text": None, "similarity": np.full((3, 2), np.nan)}, "similarity must be finite"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    inputs = {"audio": np.ones((2, 3)), "text": np.ones((3, 3)), "clip_of_text": [0, 1, 0]}
    with pytest.raises(ValueError, match=message):
        audio_text_retrieval(**inputs | changes)
