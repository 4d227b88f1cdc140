"""Copies: whether embeddings or answers are those of an earlier submission, told from a few numbers, not the files.

A `Sketch` stands in the checker's record of each submission. It holds a digest of the values, which a file's form does
not change, and distances between clips, which a shift, a rotation, another order of dimensions, other signs and another
scale do not change either. Of answers it is the digest alone: different models give many the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from audio_compositionality.evaluator.results.strict import Count, Positive, Sha256, Strict

from .raw_answers import RawAnswers
from .rounded import RoundedEmbeddings

if TYPE_CHECKING:
    from .submission import Submission

NUMBERS = 64
"""Distances of either kind in a sketch: 128 numbers, 1 kB of JSON."""

NEAR = 0.25
"""Root mean square difference of the distances of pairs, in units of their standard deviation, up to which embeddings
are nearly the same. Of the kept scores' models, any two differ by more than 0.8; independent ones differ by sqrt(2)."""

SAME = 1e-3
"""Sorted distances that nowhere differ by more are the same. It is tighter: sorting brings what differs together, and
rounding to 16 bits changes a distance by at most 5e-4 of itself."""

LEAST_SPREAD = 0.02
"""Standard deviation of distances below which they tell nothing: clips are all equally far apart."""

Distances = Annotated[list[Positive], Field(max_length=NUMBERS)]


class Sketch(Strict):
    """What embeddings or answers are recognised by.

    Attributes:
        clips: number of clips, or of answers.
        values: SHA-256 of the rounded values: equal where only offset, power of two or the file's form differ; of
            answers that of the ids and texts.
        pairs: distance of each of up to 64 pairs of fixed clips, in units of the root mean square distance from the
            mean; rounded to 1e-5. Of answers there are none.
        radii: 64 quantiles of the distances of all clips from their mean, in the same units: the order of clips does
            not change them. Of answers there are none.
    """

    clips: Count
    values: Sha256
    pairs: Distances
    radii: Distances


def sketch_of(embeddings: RoundedEmbeddings) -> Sketch:
    """The sketch of the embeddings of a submission."""
    # Without the sign of zeros, which is nothing that tells embeddings apart.
    values = np.ascontiguousarray(embeddings.values + np.float16(0), "<f2")
    digest = hashlib.sha256(f"{values.shape}".encode() + values.tobytes()).hexdigest()
    exact = values.astype(np.float64)
    exact -= exact.mean(axis=0)
    distances = np.linalg.norm(exact, axis=1)
    unit = float(np.sqrt((distances**2).mean())) or 1.0
    fixed = np.linspace(0, len(exact) - 1, min(NUMBERS + 1, len(exact))).round().astype(np.int64)
    pairs = np.linalg.norm(np.diff(exact[fixed], axis=0), axis=1)
    radii = np.quantile(distances, np.linspace(0, 1, NUMBERS))
    return Sketch(clips=len(exact), values=digest, pairs=_written(pairs / unit), radii=_written(radii / unit))


def sketch_of_answers(answers: RawAnswers) -> Sketch:
    """The sketch of the answers of a submission."""
    return Sketch(clips=len(answers.ids), values=hashlib.sha256(answers.dumps()).hexdigest(), pairs=[], radii=[])


def sketch_of_submission(submission: Submission) -> Sketch | None:
    """The sketch of what a model gave; None of a submission without it."""
    if submission.answers is not None:
        return sketch_of_answers(submission.answers)
    return None if submission.embeddings is None else sketch_of(submission.embeddings)


def _written(distances: NDArray[np.float64]) -> list[float]:
    return [round(float(distance), 5) for distance in distances]


def is_same_sketch(one: Sketch, other: Sketch) -> bool:
    """Whether two sketches are of the same embeddings or answers: distances agree but for what processors round."""
    same = (one.clips, one.values) == (other.clips, other.values)
    pairs = ((one.pairs, other.pairs), (one.radii, other.radii))
    return same and all(len(a) == len(b) and np.allclose(a, b, rtol=1e-6, atol=2e-5) for a, b in pairs)


@dataclass(frozen=True)
class Earlier:
    """A submission that a new one is compared with.

    Attributes:
        name: of its folder, or who submitted it: what a maintainer is shown.
        model: id of the model that it names.
        date: of the check, as in the checker's record, ISO 8601: who came first is known by it.
        sketch: from the record.
    """

    name: str
    model: str
    date: str
    sketch: Sketch


@dataclass(frozen=True)
class Duplicate:
    """An earlier submission with the same answers, or with the same, or nearly the same, embeddings.

    Attributes:
        earlier: the submission.
        kind: ``exact``: the same values; ``near``: the same distances between the same clips, as after scaling, a
            shift, a rotation, other signs or a little noise; ``permuted``: the same distances from the mean, as after
            another order of the rows too. Only the first is proof.
    """

    earlier: Earlier
    kind: Literal["exact", "near", "permuted"]

    def __str__(self) -> str:
        alike = {
            "exact": f"its {'embeddings' if self.earlier.sketch.radii else 'answers'} are those",
            "near": "its embeddings are nearly those",
            "permuted": "its embeddings are, in another order, nearly those",
        }
        return f"{alike[self.kind]} of {self.earlier.model}, {self.earlier.name} of {self.earlier.date}"


def near_duplicates(sketch: Sketch, model: str, earlier: Iterable[Earlier]) -> list[Duplicate]:
    """The earlier submissions of other models that embeddings or answers may be copied from, the first owner first.

    Args:
        sketch: of the new submission.
        model: id that it names; the same model may be submitted again, and for other tasks.
        earlier: submissions for the same data.
    """
    duplicates = []
    for other in earlier:
        kind = _kind(sketch, other.sketch)
        if kind is not None and other.model != model:
            duplicates.append(Duplicate(other, kind))
    order = ("exact", "near", "permuted")
    return sorted(duplicates, key=lambda duplicate: (order.index(duplicate.kind), duplicate.earlier.date))


def _kind(one: Sketch, other: Sketch) -> Literal["exact", "near", "permuted"] | None:
    if one.values == other.values:
        return "exact"
    if one.clips != other.clips:
        return None
    pairs, other_pairs, radii, other_radii = (
        np.array(distances, np.float64) for distances in (one.pairs, other.pairs, one.radii, other.radii)
    )
    if _tells(pairs, other_pairs) and np.sqrt(((pairs - other_pairs) ** 2).mean()) <= NEAR * pairs.std():
        return "near"
    if _tells(radii, other_radii) and np.abs(radii - other_radii).max() <= SAME:
        return "permuted"
    return None


def _tells(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return len(one) == len(other) > 1 and min(one.std(), other.std()) >= LEAST_SPREAD
