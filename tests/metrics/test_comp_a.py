"""CompA against plain loops over all assignments, simulation and SciPy, and what its definition implies."""

from __future__ import annotations

import itertools
import math
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import binomtest

from audio_compositionality.metrics import comp_a as module
from audio_compositionality.metrics.comp_a import comp_a

from .contract import MetricContract

NEAR = 1e-6
SHARES = ("group", "text", "audio", "match", "text_pairwise", "audio_pairwise")


def example() -> dict[str, Any]:
    """Return arguments of `comp_a`: a model that is right in most items, 16 pairs and 8 triplets in 6 dimensions."""
    rng = np.random.default_rng(0)
    item = np.repeat(np.arange(24), [3 if number % 3 == 0 else 2 for number in range(24)])
    scene, twin, unheard = rng.normal(size=(24, 6))[item], rng.normal(size=(len(item), 6)), rng.normal(size=(24, 6))
    audio = scene + 0.7 * twin
    text = scene + 0.7 * twin + 0.5 * unheard[item] + 0.7 * rng.normal(size=audio.shape)
    return {"audio": audio.round(3), "text": text.round(3), "item": [f"item {number}" for number in item]}


class TestContract(MetricContract):
    name = "comp_a"
    embeddings = ("audio", "text")
    needed = ("audio", "text", "item")
    at_constant: ClassVar = {"group": 0, "text_pairwise": 0.5, "ties": 1, "match_ties": 1, "trivial_group": 0}

    def test_order_of_samples_does_not_matter(self) -> None:
        example = self.example()
        items = sorted(set(example["item"]))
        rows = [[row for row, name in enumerate(example["item"]) if name == item] for item in items]
        place = np.concatenate([rows[item] for item in np.random.default_rng(1).permutation(len(items))])
        assert not np.array_equal(place, np.arange(len(place)))
        moved = {name: self.rows(values, place) for name, values in example.items()}
        assert self.numbers(**moved) == pytest.approx(self.numbers(), abs=1e-9)


def brute_force(s: np.ndarray) -> dict[str, float]:
    """Scores of one item by their definitions, with loops, s[c, a]."""
    k = len(s)
    text = all(s[a, a] - s[c, a] > NEAR for a in range(k) for c in range(k) if c != a)
    audio = all(s[c, c] - s[c, a] > NEAR for c in range(k) for a in range(k) if c != a)
    sums = {order: sum(s[c, order[c]] for c in range(k)) for order in itertools.permutations(range(k))}
    right = tuple(range(k))
    best = [order for order, total in sums.items() if total >= max(sums.values()) - NEAR]
    points = {"text": [], "audio": []}
    for one, other in itertools.permutations(range(k), 2):
        for side, step in (("text", s[one, one] - s[other, one]), ("audio", s[one, one] - s[one, other])):
            points[side].append(1.0 if step > NEAR else 0.5 if step >= -NEAR else 0.0)
    return {
        "text": float(text),
        "audio": float(audio),
        "group": float(text and audio),
        "match": 1 / len(best) if right in best else 0.0,
        "text_pairwise": sum(points["text"]) / len(points["text"]),
        "audio_pairwise": sum(points["audio"]) / len(points["audio"]),
        "margin": sums[right] - max(total for order, total in sums.items() if order != right),
        "ties": (points["text"] + points["audio"]).count(0.5) / (2 * k * (k - 1)),
        "match_ties": float(right in best and len(best) > 1),
    }


def column(result: dict[str, Any], name: str) -> list[float]:
    return result["scores" if name == "group" else f"scores_{name}"]


@pytest.mark.parametrize("levels", [None, 3])
def test_pairs_equal_brute_force(levels: int | None) -> None:
    rng = np.random.default_rng(0)
    # Of few levels, so that much is tied.
    s = rng.normal(size=(300, 2, 2)) if levels is None else rng.integers(levels, size=(300, 2, 2)) / levels
    result = comp_a(similarity=s, return_scores=True)
    expected = [brute_force(x) for x in s]
    for name in expected[0]:
        values = [scores[name] for scores in expected]
        assert column(result, name) == pytest.approx(values, abs=1e-12), name
        assert result[name] == pytest.approx(np.mean(values), abs=1e-12)
        assert levels is None or np.std(values) > 0, "the case is trivial"
    assert (result["ties"] > 0.2) == (levels is not None)
    assert result["triplets_group"] is result["mixed_group"] is result["scores_mixed_group"] is None


@pytest.mark.parametrize("levels", [None, 4])
def test_triplets_among_pairs_equal_brute_force(levels: int | None) -> None:
    rng = np.random.default_rng(1)
    s = rng.normal(size=(300, 3, 3)) if levels is None else rng.integers(levels, size=(300, 3, 3)) / levels
    s += 0.5 * np.eye(3)
    third = rng.random(300) < 0.4
    s[~third, 2] = s[~third, :, 2] = np.nan
    result = comp_a(similarity=s, return_scores=True)
    pairs, triplets = [brute_force(x[:2, :2]) for x in s], [brute_force(x) for x in s[third]]
    mixed = [brute_force(x if has else x[:2, :2]) for x, has in zip(s, third, strict=True)]
    for name in SHARES:
        assert column(result, name) == pytest.approx([scores[name] for scores in pairs], abs=1e-12)
        assert result[f"triplets_{name}"] == pytest.approx(np.mean([scores[name] for scores in triplets]))
        assert result[f"scores_mixed_{name}"] == pytest.approx([scores[name] for scores in mixed], abs=1e-12)
    assert (result["n"], result["triplets_n"]) == (300, third.sum())
    assert 0 < result["triplets_group"] < result["group"] < 1


def items(n: int, dim: int = 24, seed: int = 0, thirds: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Clips, captions and items of a model that knows something; the first items have a third."""
    rng = np.random.default_rng(seed)
    place = np.repeat(np.arange(n), [3] * thirds + [2] * (n - thirds))
    audio = rng.normal(size=(n, dim))[place] + rng.normal(size=(len(place), dim))
    return audio, audio + 2 * rng.normal(size=audio.shape), [f"item {number}" for number in place]


def test_embeddings_are_compared_by_scipy_s_cosine() -> None:
    audio, text, item = items(30, thirds=10)
    s = np.full((30, 3, 3), np.nan)
    for number in range(30):
        rows = [row for row, name in enumerate(item) if name == f"item {number}"]
        s[number, : len(rows), : len(rows)] = 1 - cdist(text[rows], audio[rows], "cosine")
    expected, result = comp_a(similarity=s, return_scores=True), comp_a(audio, text, item, return_scores=True)
    for name, value in result.items():
        if "trivial" in name:
            assert expected[name] is None
        elif name.startswith("scores"):
            np.testing.assert_allclose(value, expected[name], atol=1e-12)
        else:
            assert value == expected[name] or value == pytest.approx(expected[name], abs=1e-12), name
    assert 0 < result["group"] < 1


# ----- chance


def test_chance_of_300_pairs_and_100_triplets_is_the_mixture() -> None:
    s = np.random.default_rng(3).normal(size=(40_000, 3, 3))
    s[10_000:, 2] = s[10_000:, :, 2] = np.nan
    result = comp_a(similarity=s)
    chances = {name: result[f"mixed_chance_{name}"] for name in ("text", "audio", "group", "match")}
    assert chances == pytest.approx({"text": 0.1968, "audio": 0.1968, "group": 0.1292, "match": 0.4167}, abs=5e-5)
    for name, chance in chances.items():
        assert abs(result[f"mixed_{name}"] - chance) < 3 * math.sqrt(chance * (1 - chance) / len(s)), name


# ----- ties


def bag_of_words(n: int, dim: int, seed: int) -> np.ndarray:
    """Captions [2n, dim] whose words are summed in float32, in either order."""
    rng = np.random.default_rng(seed)
    words = rng.normal(size=(n, 7, dim)).astype(np.float32)
    orders = [words, words[:, ::-1]]
    sums = [np.add.accumulate(order, axis=1, dtype=np.float32)[:, -1] for order in orders]
    return np.stack(sums, axis=1).reshape(2 * n, dim)


def test_rounding_of_float32_breaks_no_tie() -> None:
    text = bag_of_words(200, 64, 4)
    assert (text[::2] != text[1::2]).any(axis=1).mean() > 0.9
    audio = np.random.default_rng(5).normal(size=text.shape).astype(np.float32)
    result = comp_a(audio, text, np.arange(400) // 2)
    assert [result[name] for name in ("text", "audio", "group")] == [0, 0, 0]
    assert [result[name] for name in ("match", "text_pairwise", "audio_pairwise")] == [0.5, 0.5, 0.5]
    assert (result["ties"], result["match_ties"]) == (0.5, 1)
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (text, audio)]
    s = np.einsum("ncd,nad->nca", *(x.reshape(200, 2, 64) for x in unit))
    naive = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
    assert naive.mean() > 0.01, "without the rule rounding would score"


def test_a_tie_is_a_millionth() -> None:
    for step, group, match in ((2e-6, 1, 1), (0.9e-6, 0, 1), (0.4e-6, 0, 0.5)):
        result = comp_a(similarity=[[[0.5, 0.5 - step], [0.5 - step, 0.5]]])
        assert (result["group"], result["match"]) == (group, match)


# ----- the trivial baseline


def loop_trivial(audio: np.ndarray, text: np.ndarray, item: list[str], clusters: list[Any], k: int) -> dict[str, float]:
    """Mean scores of captions with the clips of other clusters' items, in every order, with loops."""
    names = list(dict.fromkeys(item))
    rows = [[row for row, name in enumerate(item) if name == one] for one in names]
    scores = []
    for i, j in itertools.permutations([place for place in range(len(names)) if len(rows[place]) >= k], 2):
        if clusters[i] != clusters[j]:
            s = 1 - cdist(text[rows[i][:k]], audio[rows[j][:k]], "cosine")
            scores += [brute_force(s[:, list(order)]) for order in itertools.permutations(range(k))]
    return {name: float(np.mean([score[name] for score in scores])) for name in ("text", "audio", "group", "match")}


@pytest.mark.parametrize("clusters", [None, ["a", "b", "a", 7, "b", "a", 7, "c"], ["", "", "", "x", "x", "", "", ""]])
def test_trivial_equals_brute_force(clusters: list[Any] | None) -> None:
    audio, text, item = items(8, dim=5, thirds=5)
    result = comp_a(audio, text, item, clusters=clusters)
    assert comp_a(audio, text, item, clusters=[1] * 8)["trivial_group"] is None  # no other item
    alone = list(range(8)) if clusters is None else [name or place for place, name in enumerate(clusters)]
    for k, prefix in ((2, ""), (3, "triplets_")):
        expected = loop_trivial(audio, text, item, alone, k)
        assert expected.pop("match") == pytest.approx(1 / math.factorial(k), abs=1e-12), "that of match is its chance"
        assert {name: result[f"{prefix}trivial_{name}"] for name in expected} == pytest.approx(expected, abs=1e-12)
        assert expected["text"] > 0


def test_of_many_items_each_is_crossed_with_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    audio, text, item = items(90, thirds=45)
    whole = comp_a(audio, text, item)
    monkeypatch.setattr(module, "CROSSED", 30)
    part = comp_a(audio, text, item)
    for name in ("trivial_text", "trivial_audio", "trivial_group", "triplets_trivial_text"):
        assert part[name] != whole[name]
        assert part[name] == pytest.approx(whole[name], rel=0.15)
    thirds = [[row for row, name in enumerate(item) if int(name.split()[1]) % 3 == part] for part in range(3)]
    parts = [comp_a(audio[rows], text[rows], [item[row] for row in rows])["trivial_text"] for rows in thirds]
    assert part["trivial_text"] == pytest.approx(np.mean(parts), abs=1e-12)


# ----- intervals and tags


def test_intervals_are_wilson_s() -> None:
    audio, text, item = items(60)
    result = comp_a(audio, text, item)
    assert set(result["intervals"]) == set(SHARES)
    for name in ("group", "text", "audio", "match"):
        interval = binomtest(round(60 * result[name]), 60).proportion_ci(method="wilson")
        assert result["intervals"][name] == pytest.approx([interval.low, interval.high], abs=1e-12)
    all_right = comp_a(similarity=np.tile(np.eye(2), (30, 1, 1)))["intervals"]["group"]
    assert all_right == pytest.approx([binomtest(30, 30).proportion_ci(method="wilson").low, 1])


def test_copies_of_items_narrow_no_interval_where_clusters_say_so() -> None:
    s = np.random.default_rng(7).normal(size=(40, 2, 2)) + 0.5 * np.eye(2)
    single = comp_a(similarity=s)["intervals"]
    copies, names = s.repeat(9, axis=0), np.arange(360) // 9
    told, untold = (comp_a(similarity=copies, clusters=x)["intervals"] for x in (names, None))
    for name, (low, high) in single.items():
        width = high - low
        assert width <= told[name][1] - told[name][0] < 1.1 * width
        assert untold[name][1] - untold[name][0] < 0.5 * width


def test_tags_tell_items_apart() -> None:
    s = np.array([np.eye(2), 1 - np.eye(2), np.eye(2), np.full((2, 2), 0.5)])
    mention = ["forward", "reverse", "forward", "reverse"]
    table = comp_a(similarity=s, tags=mention)["by_tag"]
    assert table["forward"] == {"n": 2} | dict.fromkeys(SHARES, 1.0)
    assert (table["reverse"]["group"], table["reverse"]["match"], table["reverse"]["text_pairwise"]) == (0, 0.25, 0.25)
    tables = comp_a(similarity=s, tags={"mention": mention, "subset": ["seen"] * 4})["by_tag"]
    assert tables["mention"] == table
    assert tables["subset"]["seen"]["match"] == comp_a(similarity=s)["match"] == 0.625
    assert comp_a(similarity=s)["by_tag"] == {}


# ----- errors

NOTHING: dict[str, Any] = {"audio": None, "text": None, "item": None}
HALF_MISSING = np.ones((2, 3, 3))
HALF_MISSING[1, 2, 1] = np.nan


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"text": np.ones((6, 4))}, "audio has 3 dimensions and text 4: the towers do not share a space"),
        ({"item": ["a", "b", "b", "c", "c", "c"]}, "2 or 3 captions and clips; item 'a' at row 0 has 1"),
        ({"item": ["a", "a", "b", "b", "a", "a"]}, "item 'a' begins at row 0 and again at 4"),
        ({"text": [[1, 2, 3]] * 3 + [[1, np.nan, 0]] * 3}, "text must be finite .* row 3 with nan, of item 'b'"),
        ({"tags": {"subset": ["x"]}}, r"tags must have one entry per item \(3\); got 1"),
        ({"clusters": [1, 2, None]}, "clusters must be strings or integers; row 2 has None"),
        ({"item": None}, "comp_a got audio, text without item; it needs audio, text and item, or similarity"),
        ({"similarity": np.ones((3, 2, 2))}, "similarity is given together with audio, text, item"),
        (NOTHING, "comp_a got nothing"),
        (NOTHING | {"similarity": np.ones((3, 4, 4))}, r"\[n, 2, 2\] or \[n, 3, 3\].* shape \(3, 4, 4\)"),
        (
            NOTHING | {"similarity": HALF_MISSING},
            "item 1 has nan at caption 2, clip 1. If an item has no third caption, set",
        ),
        (NOTHING | {"similarity": np.full((2, 2, 2), np.nan)}, "item 0 has nan at caption 0, clip 0"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    inputs = {"audio": np.ones((6, 3)), "text": np.ones((6, 3)), "item": ["a", "a", "b", "b", "c", "c"]}
    with pytest.raises(ValueError, match=message):
        comp_a(**inputs | changes)


HALF_MISSING = np.ones((2, 3, 3))
HALF_MISSING[1, 2, 1] = np.nan
