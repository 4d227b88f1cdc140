"""CompA: which caption belongs to which clip, if the captions have the same words and the clips the same sounds?

An item has two or three captions and as many clips; caption j is true of clip j and false of the others. S[c, a] is the
cosine of caption c and clip a. `text`: every clip is nearest to its own caption; `audio`: every caption is nearest to
its own clip; `group`: both. `match`: the right assignment of captions to clips has the largest sum of S.

Chance is not the trivial baseline. If a model gives the captions of an item nearly the same embedding, and its clips
too, two opposite comparisons cannot both be won, and `text`, `audio` and `group` fall below chance although no
assignment is reversed. The trivial baseline measures this effect: it scores captions with the clips of other items. If
the captions have opposite embeddings, such as one number that is 1 or -1, the trivial baseline is above chance instead.
The baseline of a score is the larger of chance and trivial baseline. `match` needs no trivial baseline: without
knowledge it is at chance, whatever the towers. Nothing is trained. All in float64.

>>> rng = np.random.default_rng(0)
>>> audio, noise = rng.normal(size=(2, 400, 16))
>>> item = np.arange(400) // 2
>>> result = comp_a(audio, audio + 0.1 * noise, item)
>>> result["group"], result["chance_group"], result["match"], result["n"]
(1.0, 0.16666666666666666, 1.0, 200)
>>> words = np.repeat(rng.normal(size=(200, 16)), 2, axis=0)
>>> bag = comp_a(audio, words, item)
>>> bag["text"], bag["audio"], bag["group"], bag["match"], bag["text_pairwise"]
(0.0, 0.0, 0.0, 0.5, 0.5)
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import LARGEST, Floats, Ints
from .columns import result_of
from .evaluated import COMPA as _CITATION
from .evaluated import MOST, Fields, count, hidden, metric_class, share
from .similarity import NEAR, check_one_space, mean_interval, read_keys, unit_embeddings

CROSSED = 1000
"""The trivial baseline crosses every item with at most this many others, less one."""

CHANCE = {
    2: {"text": 1 / 4, "audio": 1 / 4, "group": 1 / 6, "match": 1 / 2},
    3: {"text": 1 / 27, "audio": 1 / 27, "group": 1 / 60, "match": 1 / 6},
}
"""Scores of independent similarities, by the number of captions: exact."""

_SHARES = ("group", "text", "audio", "match", "text_pairwise", "audio_pairwise")
_TRIVIAL_NAMES = ("group", "text", "audio")


def comp_a(
    audio: ArrayLike | None = None,
    text: ArrayLike | None = None,
    item: Any = None,
    *,
    similarity: ArrayLike | None = None,
    tags: Any = None,
    clusters: Any = None,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how often captions and clips of n items are assigned correctly, with chance and trivial baseline.

    - `audio`, `text` [m, dim]: embeddings of clips and captions, of any length; caption j is true of clip j. `item`
      [m]: the item of each row, a string or integer; an item has 2 or 3 consecutive rows;
    - `similarity` [n, k, k], k = 2 or 3, replaces these: S[i, c, a] of caption c and clip a of item i, by default their
      cosine; if k = 3 and an item has no third, its third row and column are NaN;
    - `tags` [n]: a text for each item in the order of the items, or a mapping of such lists by the name of a grouping;
      `clusters` [n], strings or integers: items of one cluster, such as those with the same two sources, are not
      independent; an empty text is a cluster of its own.

    "Greater" means greater by more than NEAR. Results are means over the items:

    - `text`: S[a, a] is greater than all S[c, a], for every clip a; `audio`: S[c, c] is greater than all S[c, a], for
      every caption c; `group`: both. A tie is wrong. Source: equations 1 to 3 of arXiv 2310.08753;
    - `match`: the right one of all k! assignments π of clips to captions has the largest Σ_c S[c, π(c)]; one of t
      assignments tied for the largest counts 1/t. So two equal captions are at chance;
    - `text_pairwise`, `audio_pairwise`: share of the k(k − 1) single comparisons that are right, ties half;
    - `margin`: the right sum minus the largest other sum;
    - `ties`: share of the single comparisons that are tied; `match_ties`: share of the items whose right assignment is
      tied for the best; `n` items.

    These are for pairs: the first two captions and clips of each item. `triplets_*` are for the items with a third,
    with all three; `mixed_*` for all items, with all captions of each. Both are None if no item has a third.

    - `chance_*`, also `triplets_chance_*` and `mixed_chance_*`: with independent similarities, exactly. For k = 2 text
      and audio 1/4, group 1/6, match 1/2; for k = 3 1/27, 1/60 and 1/6; pairwise 1/2;
    - `trivial_text`, `trivial_audio`, `trivial_group`, also `triplets_trivial_*`: the chance level for captions, and
      clips, that are as similar to each other as these: mean score of the captions of item i with the clips of item j,
      over all i ≠ j of different clusters and all k! orders of the clips of j. With more than CROSSED items, every item
      is crossed only with an evenly spaced part of them. None with `similarity`, or if no two items can be crossed. The
      trivial baseline of match is exactly its chance: one of the k! orders is the best, or t orders by 1/t each;
    - `intervals`: 95 % by the name of each share, [low, high]: Wilson's, with n items. With clusters, and for shares
      that are not binary, n is replaced by the effective number of items, p(1 − p) over the variance of the mean
      between clusters, and the normal quantile by Student's;
    - `by_tag`: for each tag n and the six shares for pairs; for a mapping, by the name of the grouping first. Empty
      without tags;
    - with return_scores, lists of n whose means are the results: `scores` of group, `scores_NAME` of text, audio,
      match, text_pairwise, audio_pairwise, margin, ties, match_ties, and of mixed_group and so on, None if there are no
      triplets.

    Raises ValueError if audio and text are not finite [m, dim] of one shape (the towers do not share a space), item is
    missing, an item does not have 2 or 3 consecutive rows; if similarity is given together with them, is not [n, 2, 2]
    or [n, 3, 3], or not finite; if tags or clusters do not have n entries.

    >>> comp_a(similarity=[[[0.3, 0.2], [0.1, 0.25]]])["group"]
    1.0
    """
    items = _items(audio, text, item, similarity)
    n = len(items.pairs)
    codes = None
    if clusters is not None:
        keys = read_keys("clusters", clusters)
        if len(keys) != n:
            raise ValueError(f"clusters must have one entry per item ({n}); got {len(keys)}.")
        # An empty text is a cluster of its own.
        named = [(place,) if key == "" else key for place, key in enumerate(keys)]
        numbers_of = {key: number for number, key in enumerate(dict.fromkeys(named))}
        codes = np.array([numbers_of[key] for key in named])
    columns, whole = _item_scores(items.pairs), _item_scores(items.triplets)
    mixed = {name: columns[name].copy() for name in _SHARES}
    for name in mixed:
        mixed[name][items.third] = whole[name]
    has_triplets = bool(items.third.any())
    share = float(items.third.mean())

    numbers: dict[str, Any] = {"n": n}
    numbers |= {f"chance_{name}": value for name, value in CHANCE[2].items()} | {"chance_pairwise": 0.5}
    numbers |= _trivial(items, codes, 2)
    samples = {name: (columns[name], codes) for name in _SHARES}
    if has_triplets:
        of_triplets = None if codes is None else codes[items.third]
        numbers |= {f"triplets_{name}": float(whole[name].mean()) for name in _SHARES}
        numbers |= {f"triplets_chance_{name}": value for name, value in CHANCE[3].items()}
        numbers |= _trivial(items, of_triplets, 3) | {"triplets_n": int(items.third.sum())}
        for name in CHANCE[2]:
            numbers[f"mixed_chance_{name}"] = (1 - share) * CHANCE[2][name] + share * CHANCE[3][name]
        samples |= {f"triplets_{name}": (whole[name], of_triplets) for name in _SHARES}
        samples |= {f"mixed_{name}": (mixed[name], codes) for name in _SHARES}
    if has_triplets:
        columns |= {f"mixed_{name}": column for name, column in mixed.items()}
    result = result_of(MEASURES, columns, numbers, return_scores)
    return result | {
        "intervals": {name: mean_interval(*sample) for name, sample in samples.items()},
        "by_tag": _by_tag(tags, columns, n),
    }


CompA = metric_class(
    comp_a,
    [{"audio": "numbers", "text": "numbers", "item": item} for item in ("text", "number")],
    citation=_CITATION,
    whole=False,
    instead=("similarity",),
)


# ----- inputs
@dataclass(frozen=True)
class _Items:
    """The items, without their names.

    Attributes:
        pairs: S of the first two captions and clips of each, [n, 2, 2].
        third: whether each has a third, [n].
        triplets: S of those that have, [t, 3, 3].
        text, audio: embeddings of length 1, [m, dim]; None where similarities are given.
        starts: the first row of each item, [n].
    """

    pairs: Floats
    third: NDArray[np.bool_]
    triplets: Floats
    text: Floats | None
    audio: Floats | None
    starts: Ints


def _items(audio: Any, text: Any, item: Any, similarity: Any) -> _Items:
    inputs = {"audio": audio, "text": text, "item": item}
    given = [name for name, x in inputs.items() if x is not None]
    if similarity is not None:
        if given:
            raise ValueError(f"similarity is given together with {', '.join(given)}. Give one or the other.")
        return _items_of_similarity(similarity)
    if len(given) < len(inputs):
        missing = ", ".join(name for name in inputs if name not in given)
        got = f"{', '.join(given)} without {missing}" if given else "nothing"
        raise ValueError(f"comp_a got {got}; it needs audio, text and item, or similarity.")
    names = read_keys("item", item)
    a, t = _embeddings_of_items("audio", audio, names), _embeddings_of_items("text", text, names)
    if not len(a) == len(t) == len(names):
        raise ValueError(f"audio has {len(a)} rows, text {len(t)} and item {len(names)}; the numbers must be equal.")
    check_one_space(a, t)
    starts, third = _item_places(names)
    rows = [begin[:, None] + np.arange(k) for k, begin in ((2, starts), (3, starts[third]))]
    pairs, triplets = (t[of_items] @ a[of_items].transpose(0, 2, 1) for of_items in rows)
    return _Items(pairs, third, triplets, t, a, starts)


def _embeddings_of_items(name: str, x: Any, items: list[Any]) -> Floats:
    """Return rows of length 1; the error for a value that is not finite names its item."""
    try:
        return unit_embeddings(name, x)
    except ValueError as error:
        row = re.search(r"the first is row (\d+) ", str(error))
        if row is None or int(row[1]) >= len(items):
            raise
        raise ValueError(f"{str(error).removesuffix('.')}, of item {items[int(row[1])]!r}.") from None


def _item_places(names: list[Any]) -> tuple[Ints, NDArray[np.bool_]]:
    """Return the first row of each item [n], and whether it has three rows [n]."""
    sizes: list[int] = []
    firsts: dict[Any, int] = {}
    start = 0
    for name, rows in itertools.groupby(names):
        size = len(list(rows))
        if name in firsts:
            raise ValueError(
                f"The rows of an item must be consecutive; item {name!r} begins at row {firsts[name]} and again at "
                f"{start}."
            )
        if size not in CHANCE:
            raise ValueError(f"An item needs 2 or 3 captions and clips; item {name!r} at row {start} has {size}.")
        firsts[name] = start
        sizes.append(size)
        start += size
    return np.array(list(firsts.values())), np.array(sizes) == 3


def _items_of_similarity(similarity: Any) -> _Items:
    if hasattr(similarity, "detach"):
        similarity = similarity.detach().cpu().double()
    try:
        raw = np.asarray(similarity)
    except ValueError as error:
        raise ValueError(f"similarity must be an array [n, k, k]: {error}") from None
    if raw.dtype.kind not in "fiu" or raw.ndim != 3 or raw.shape[1:] not in ((2, 2), (3, 3)) or not len(raw):
        raise ValueError(
            f"similarity must be numbers [n, 2, 2] or [n, 3, 3] with n ≥ 1; got {raw.dtype}, shape {raw.shape}."
        )
    s = raw.astype(np.float64)
    k = s.shape[1]
    bad = ~(np.abs(s) <= LARGEST)
    missing = np.isnan(s[:, 2:]).all(axis=(1, 2)) & np.isnan(s[:, :, 2:]).all(axis=(1, 2)) & (k == 3)
    bad[missing, 2:] = bad[missing, :, 2:] = False
    if bad.any():
        item, caption, clip = np.argwhere(bad)[0]
        raise ValueError(
            f"similarity must be finite; item {item} has {s[item, caption, clip]} at caption {caption}, clip {clip}. "
            "If an item has no third caption, set its third row and column to NaN."
        )
    third = ~missing & (k == 3)
    return _Items(s[:, :2, :2], third, s[third] if k == 3 else np.zeros((0, 3, 3)), None, None, np.arange(len(s)))


# ----- scores of items
def _item_scores(s: Floats) -> dict[str, Floats]:
    """Return every score of items with similarities [n, k, k], by name, [n] each."""
    k = s.shape[1]
    right = np.einsum("ikk->ik", s)
    elsewhere = ~np.eye(k, dtype=bool)
    # Margins of the right pair over another caption of the same clip, and over another clip of the same caption.
    steps = {"text": (right[:, None] - s)[:, elsewhere], "audio": (right[:, :, None] - s)[:, elsewhere]}
    columns = {name: (step > NEAR).all(axis=1).astype(np.float64) for name, step in steps.items()}
    for name, step in steps.items():
        columns[f"{name}_pairwise"] = np.where(step > NEAR, 1.0, np.where(step >= -NEAR, 0.5, 0.0)).mean(axis=1)
    sums = np.stack([s[:, range(k), order].sum(axis=1) for order in itertools.permutations(range(k))], axis=1)
    best = sums >= sums.max(axis=1, keepdims=True) - NEAR
    tied = best.sum(axis=1)
    return {
        "group": columns["text"] * columns["audio"],
        **columns,
        "match": best[:, 0] / tied,
        "margin": sums[:, 0] - sums[:, 1:].max(axis=1),
        "ties": (np.abs(np.concatenate(list(steps.values()), axis=1)) <= NEAR).mean(axis=1),
        "match_ties": (best[:, 0] & (tied > 1)).astype(np.float64),
    }


def _by_tag(tags: Any, columns: Mapping[str, Floats], n: int) -> dict[str, Any]:
    """Return the number of items and the shares for each tag."""
    if tags is None:
        return {}
    if isinstance(tags, Mapping):
        return {name: _by_tag(values, columns, n) for name, values in tags.items()}
    keys = read_keys("tags", tags)
    if len(keys) != n:
        raise ValueError(f"tags must have one entry per item ({n}); got {len(keys)}.")
    table: dict[str, Any] = {}
    for key in dict.fromkeys(keys):
        rows = np.array([entry == key for entry in keys])
        table[key] = {"n": int(rows.sum())} | {name: float(columns[name][rows].mean()) for name in _SHARES}
    return table


# ----- the trivial baseline
def _trivial(items: _Items, clusters: Ints | None, k: int) -> dict[str, float]:
    """Return mean scores of captions with k clips of other items, over all orders of the clips.

    The result is empty if there are none.
    """
    starts = items.starts if k == 2 else items.starts[items.third]
    if items.text is None or items.audio is None:
        return {}
    sums, count = np.zeros(len(_TRIVIAL_NAMES)), 0
    for rows, columns in _crossings(len(starts)):
        captions, clips = (starts[place][:, None] + np.arange(k) for place in (rows, columns))
        products = items.text[captions.ravel()] @ items.audio[clips.ravel()].T
        s = products.reshape(len(rows), k, len(columns), k).transpose(0, 2, 1, 3)
        usable = rows[:, None] != columns
        if clusters is not None:
            usable &= clusters[rows][:, None] != clusters[columns]
        sums += _orders_right(s[usable]).sum(axis=1)
        count += int(usable.sum())
    means = sums / (max(count, 1) * math.factorial(k))
    prefix = "" if k == 2 else "triplets_"
    return {f"{prefix}trivial_{name}": float(x) for name, x in zip(_TRIVIAL_NAMES, means, strict=True)} if count else {}


def _crossings(n: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield indices of items and of their partners: all with all, or each with an evenly spaced part of the others."""
    parts = -(-n // CROSSED)
    for part in range(parts):
        places = np.arange(part, n, parts)
        for start in range(0, len(places), 100):
            yield places[start : start + 100], places


def _orders_right(s: Floats) -> Floats:
    """Return in how many orders of the clips, 0 or 1, group, text and audio are right, [3, m], for S [m, k, k]."""
    k = s.shape[1]
    text, audio = np.ones(s.shape, bool), np.ones(s.shape, bool)
    for shift in range(1, k):
        text &= s > np.roll(s, shift, axis=1) + NEAR
        audio &= s > np.roll(s, shift, axis=2) + NEAR
    # A clip has at most one caption nearer than all others: it is right in the order that pairs it with this caption.
    one_each = [(text.sum(axis=2) == 1).all(axis=1), (audio.sum(axis=1) == 1).all(axis=1)]
    both = one_each[0] & one_each[1] & (text == audio).all(axis=(1, 2))
    return np.array([both, *one_each], np.float64)


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

_SCORED = {
    "group": "share of items where every clip has its own caption nearest and every caption its own clip",
    "text": "share of items where every clip has its own caption nearest",
    "audio": "share of items where every caption has its own clip nearest",
    "match": "share of items where the right assignment of captions to clips is the best; tied assignments share",
    "text_pairwise": "share of single comparisons of two captions with a clip that are right, ties half",
    "audio_pairwise": "share of single comparisons of two clips with a caption that are right, ties half",
}
"""Meanings of the scores, for pairs, triplets and both."""

_ALWAYS = ", and of any model without knowledge of the pairing"


def _scores(kind: str = "", of: str = "") -> dict[str, Fields]:
    """Return the scores of one kind of items with their references: a chance each, and a trivial baseline if any."""
    prefix, measures = f"{kind}_" if kind else "", {}
    for name, meaning in _SCORED.items():
        nulls = {"null": "chance_pairwise" if name.endswith("pairwise") else f"{prefix}chance_{name}"}
        if kind != "mixed" and name in _TRIVIAL_NAMES:
            nulls["trivial"] = f"{prefix}trivial_{name}"
        column = {} if kind == "triplets" else {"column": f"score_{prefix}{name}"}
        heading = f"{prefix}{name}".replace("_", " ")
        measures[f"{prefix}{name}"] = share(heading, meaning + of, **nulls, **column)
    return measures


def _chances(kind: str, meanings: Mapping[str, str]) -> dict[str, Fields]:
    prefix = f"{kind}_" if kind else ""
    return {
        f"{prefix}chance_{name}": hidden(share(f"chance of {prefix}{name}".replace("_", " "), meaning))
        for name, meaning in meanings.items()
    }


def _trivial_measures(kind: str, items: str) -> dict[str, Fields]:
    prefix = f"{kind}_" if kind else ""
    why = "in every order: the chance level for captions and clips this similar to each other"
    return {
        f"{prefix}trivial_{name}": hidden(
            share(
                f"trivial baseline of {prefix}{name}".replace("_", " "),
                f"{name} of captions with the clips of other {items}, {why}",
            )
        )
        for name in _TRIVIAL_NAMES
    }


def _measures() -> dict[str, Fields]:
    """Return the scores of pairs with their nulls, then the scores of triplets, then of both."""
    measures = _scores()
    measures["group"] |= {"heading": "CompA group", "column": "score"}
    measures["text_pairwise"]["shown"] = measures["audio_pairwise"]["shown"] = False
    measures["margin"] = {
        "heading": "margin",
        "meaning": "mean of the sum of the right similarities minus the sum of the best other assignment",
        "range": (-MOST, MOST),
        "column": "score_margin",
        "shown": False,
    }
    ties = "share of the single comparisons that are tied, which count as wrong in group, text and audio"
    measures["ties"] = share("ties", ties, column="score_ties")
    best = "share of items where the right assignment is tied for the best"
    measures["match_ties"] = hidden(share("match ties", best, column="score_match_ties"))
    measures["n"] = count("n", "number of items")
    exactly = {"group": "1/6", "text": "1/4", "audio": "1/4", "match": "1/2", "pairwise": "1/2"}
    named = {name: f"{name} of independent similarities" for name in exactly}
    named |= {"match": named["match"] + _ALWAYS, "pairwise": "pairwise scores of independent similarities"}
    measures |= _chances("", {name: f"{named[name]}: {chance}, exactly" for name, chance in exactly.items()})
    measures |= _trivial_measures("", "items")
    del measures["trivial_group"]["shown"]
    triplets = {"group": "1/60", "text": "1/27", "audio": "1/27", "match": "1/6"}
    likewise = {name: f"{name} of triplets with independent similarities: {x}, exactly" for name, x in triplets.items()}
    as_there_are = {name: f"{name} of independent similarities, pairs and triplets as there are" for name in triplets}
    measures |= {
        name: hidden(score) for name, score in _scores("triplets", ", of items with a third, all three").items()
    }
    measures |= _chances("triplets", likewise) | _trivial_measures("triplets", "triplets")
    measures["triplets_n"] = count("triplets", "number of items with a third")
    measures |= {name: hidden(score) for name, score in _scores("mixed", ", two or three as the item has").items()}
    return measures | _chances("mixed", as_there_are)


MEASURES = _measures()
"""Description of each number that `comp_a` returns, by name, the score first."""
