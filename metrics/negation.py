"""Negation: is a caption that denies something nearer to the clip that it describes?

An item has two captions that differ in one word, such as "dog and no bell" and "dog and some bell", and two clips;
caption j is true of clip j and false of the other. S[c, a] is the cosine of caption c and clip a. `match`: the right
assignment of captions to clips has the larger sum of S. A model that ignores the word has two equal captions and scores
exactly 1/2. `negated`: the caption that denies is nearer to the clip that it describes. A model that takes "no bell"
for a mention of the bell scores 0, below the 1/2 of a model without knowledge. Nothing is trained.

>>> said, heard = np.eye(3)[[1, 1]], np.eye(3)[[0, 1]]  # both captions name the bell, but only the second clip has one
>>> result = negation(heard, said, ["bell", "bell"], negated=[0])
>>> result["match"], result["negated"], result["affirmed"], result["chance"]
(0.5, 0.0, 1.0, 0.5)
"""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Floats, nearest_name, read_matrix
from .evaluated import count, metric_class, share
from .similarity import check_given, check_one_space, read_keys, unit_embeddings, won_shares

KINDS = ("absence", "only", "number", "order")
"""Kinds of items: a sound is absent, nothing else occurs, a sound occurs a number of times, one is not before
another."""


_CITATION = """\
@misc{reason_audio_2026,
  author = {Zhang, Honglei and Chen, Yuting and Hu, Chenpeng and Zhang, Siyue and Shi, Yilei},
  title = {{ReasonAudio}: A Benchmark for Evaluating Reasoning Beyond Matching in Text-Audio Retrieval},
  year = {2026},
  eprint = {2605.03361},
  archivePrefix = {arXiv}
}
"""


def negation(
    audio: ArrayLike | None = None,
    text: ArrayLike | None = None,
    item: Any = None,
    *,
    similarity: ArrayLike | None = None,
    negated: Any = None,
    kinds: Any = None,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return how often captions that differ in one word are assigned correctly to the clips of n items.

    - `audio`, `text` [2n, dim]: embeddings of clips and captions, of any length; caption j is true of clip j. `item`
      [2n]: the item of each row, a string or integer; its two rows are consecutive;
    - `similarity` [n, 2, 2] replaces these: S[i, c, a] of caption c and clip a of item i, by default their cosine;
    - `negated` [n]: the position of the caption that denies, 0 or 1; −1 if neither does, as for numbers;
    - `kinds` [n]: from `KINDS`.

    "Greater" means greater by more than NEAR; if neither is greater, 1/2 is counted.

    - `match`: share of items with S[0, 0] + S[1, 1] greater than S[0, 1] + S[1, 0]. Its `chance` is exactly 1/2, even
      for a model without knowledge that gives both captions, or both clips, nearly the same embedding: exchanging the
      clips flips the sign;
    - `negated`: the share of the captions c that deny with S[c, c] greater than S[c, 1 − c]: the caption is nearer to
      the clip that it describes. Its chance is 1/2 too; a model that ignores the denial scores 0;
    - `affirmed`: negated for the other caption of these items; both are None if no caption denies;
    - `match_absence`, `match_only`, `match_number`, `match_order`: match over the items of one kind, None without any;
    - `n`: number of items;
    - with return_scores, lists of n: `scores` of match, `scores_negated` and `scores_affirmed` (0, 1/2 or 1; None where
      no caption of the item denies).

    Raises ValueError if audio and text are not finite [2n, dim] of one shape (the towers do not share a space), item is
    missing, or an item does not have 2 consecutive rows; if similarity is given together with them or is not finite
    [n, 2, 2]; if negated or kinds do not have n entries, or hold other values.

    >>> negation(similarity=[[[0.3, 0.2], [0.2, 0.1]]])["match"]
    0.5
    """
    s = _of_items(audio, text, item) if similarity is None else _given(similarity, audio, text, item)
    n, rows = len(s), np.arange(len(s))
    match = won_shares(s[:, 0, 0] + s[:, 1, 1] - s[:, 0, 1] - s[:, 1, 0])
    places = np.array(_entries("negated", negated, n, (-1, 0, 1)) or [-1] * n)
    names = np.array(_entries("kinds", kinds, n, KINDS) or [""] * n)
    denies, one = places >= 0, np.maximum(places, 0)
    nearer = {
        name: won_shares(s[rows, place, place] - s[rows, place, 1 - place])
        for name, place in (("negated", one), ("affirmed", 1 - one))
    }
    columns = {name: (column, denies) for name, column in nearer.items()}
    columns |= {f"match_{kind}": (match, names == kind) for kind in KINDS}
    numbers: dict[str, Any] = {"match": float(match.mean()), "chance": 0.5, "n": n}
    numbers |= {name: float(column[some].mean()) for name, (column, some) in columns.items() if some.any()}
    result = {name: numbers.get(name) for name in MEASURES}
    if return_scores:
        result["scores"] = match.tolist()
        for name, column in nearer.items():
            result[f"scores_{name}"] = [
                value if here else None for value, here in zip(column.tolist(), denies, strict=True)
            ]
    return result


Negation = metric_class(
    negation,
    [{"audio": "numbers", "text": "numbers", "item": item} for item in ("text", "number")],
    citation=_CITATION,
    whole=False,
    instead=("similarity",),
)


def _of_items(audio: Any, text: Any, item: Any) -> Floats:
    """Return S of every item, [n, 2, 2], from embeddings, or raise ValueError."""
    check_given("negation", audio, text, None, item=item)
    a, t, keys = unit_embeddings("audio", audio), unit_embeddings("text", text), read_keys("item", item)
    if not len(a) == len(t) == len(keys):
        raise ValueError(f"audio has {len(a)} rows, text {len(t)} and item {len(keys)}; the numbers must be equal.")
    check_one_space(a, t)
    firsts, sizes = keys[::2], Counter(keys)
    for place, key in enumerate(firsts):
        if keys[2 * place : 2 * place + 2] != [key, key] or sizes[key] != 2:
            raise ValueError(f"An item needs 2 consecutive rows; item {key!r} at row {2 * place} does not have them.")
    products: Floats = t.reshape(len(firsts), 2, -1) @ a.reshape(len(firsts), 2, -1).transpose(0, 2, 1)
    return products


def _given(similarity: Any, audio: Any, text: Any, item: Any) -> Floats:
    """Return the given S, [n, 2, 2], or raise ValueError."""
    check_given("negation", audio, text, similarity)
    if item is not None:
        raise ValueError("similarity is given together with item. Give one or the other.")
    raw = np.asarray(similarity.detach().cpu().double() if hasattr(similarity, "detach") else similarity)
    if raw.shape[1:] != (2, 2) or not len(raw):
        raise ValueError(f"similarity must be [n, 2, 2] with n ≥ 1; got shape {raw.shape}.")
    return read_matrix("similarity", raw.reshape(len(raw), 4)).reshape(-1, 2, 2)


def _entries(name: str, x: Any, n: int, choices: tuple[Any, ...]) -> list[Any]:
    """Return the n entries of an input, each one of the choices; empty if it is not given. Raises ValueError."""
    if x is None:
        return []
    keys = read_keys(name, x)
    wrong = next((place for place, key in enumerate(keys) if key not in choices), None)
    if wrong is not None:
        nearest = nearest_name(str(keys[wrong]), [str(choice) for choice in choices])
        raise ValueError(
            f"{name} must be {', '.join(map(str, choices))}; item {wrong} has {keys[wrong]!r}. Did you mean {nearest}?"
        )
    if len(keys) != n:
        raise ValueError(f"{name} must have one entry per item ({n}); got {len(keys)}.")
    return keys


VERSION = 1
"""Increases with every change of code or constants that can change a number."""

_MATCH = "share of items where the right assignment of captions to clips is the better one, of "

MEASURES = {
    "match": share(
        "Negation",
        "share of items where the right assignment of captions to clips is the better one, ties half",
        null="chance",
        column="score",
    ),
    "negated": share(
        "negated",
        "share of captions that deny something that are nearer to the clip that they describe; below 1/2 the denial is "
        "ignored",
        null="chance",
    ),
    "affirmed": share(
        "affirmed",
        "share of their affirming counterparts that are nearer to the clip that they describe",
        null="chance",
    ),
    "match_absence": share("absence", _MATCH + "x and no z", null="chance"),
    "match_only": share("only", _MATCH + "x and nothing else", null="chance"),
    "match_number": share("number", _MATCH + "x two or three times, or more than y", null="chance"),
    "match_order": share("order", _MATCH + "x not before y", null="chance"),
    "chance": share("chance", "match, negated and affirmed without knowledge: exactly 1/2", shown=False),
    "n": count("n", "number of items"),
}
"""Description of each number that `negation` returns, by name, the score first."""
