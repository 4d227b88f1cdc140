"""Copies: whether embeddings or answers repeat an earlier submission, detected from a few kilobytes, not the files.

A `Sketch` stands in the checker's record of each submission. It holds a digest of the values, independent of the file's
form, and the evidence for near-copies: the `Shape` of embeddings, or the `Choices` of answers.

**Answers.** The wording of an answer does not count: a letter, a text, another case or a phrase around it are one
choice. Answers are nearly the same in two ways:

- all choices are the same, for enough questions. Where all are right, this is no evidence beyond that accuracy; yet two
  perfect models are so rare that the maintainers decide. A model that always takes one position is exempt;
- the wrong choices agree more often than innocent causes explain. For a question that both answer wrongly, with wrong
  options p that they take with shares a_p and b_p, chance agreement is Σ a_p b_p: large for a
  position that both prefer, and 1 with two options. This is Cohen's kappa of wrong choices, (agreement − chance) /
  (1 − chance). Honest models err alike, since misleading questions mislead all: those of Kim et al. (arXiv 2506.07962)
  agree on 60 % of the questions that both have wrong, where 1/3 is chance with four options, a kappa of 0.4. The margin
  is wide: models up to `HONEST` count as different.

**Embeddings.** The distances between some fixed clips, the anchors, are compared by their ranks, which no monotone
change of a distance affects; for the rows as they are, for rows of length 1, and for rows of length 1 after centring.
Rows that agree least are left out first, so that single rows do not count. Embeddings are nearly the same in
three ways:

- the ranks are the same but for rounding: after a shift, a scale, a rotation, other signs, another order of the
  dimensions, rows made 1 long, or a few rows moved or exchanged;
- the ranks are alike, and their difference looks like noise. Where two honest models differ, the difference is a
  function of the sound, so neighbouring clips differ alike; noise is independent of the sound. For the pair of
  clips (i, j) with difference of ranks e_ij, and their nearest neighbours i' and j' in the earlier
  embeddings, the *structure* is the correlation of e_ij with e_i'j', over pairs without a clip in common;
- dimensions are the same, clip by clip in their ranks: where some were dropped, doubled, scaled or added.

`studies.copies` measures the margin that the limits leave to honest models.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictInt, StringConstraints, model_validator
from scipy import stats

from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.evaluator.results.result import SampleTable, ScoredModel
from audio_compositionality.evaluator.results.strict import Count, Positive, ResultError, Sha256, Strict
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.tasks.base import TaskInfo

from .outputs import RawAnswers, RoundedEmbeddings, clips_digest
from .submission import Submission

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NO_CHOICE = "-"
"""Stands for the choice of an answer that names no option."""


LEAST_SAME = 30
"""Fewest questions for equality of all choices to count."""

HONEST = 0.75
"""Kappa of wrong choices up to which models count as different."""

COPIED = 0.9
"""Kappa from which on they count as the same, where chance does not explain it."""

CHANCE_AGREEMENT = 1e-4
"""Probability of as much agreement under a kappa of `HONEST`, above which agreement proves nothing."""

Letters = Annotated[str, StringConstraints(strict=True, pattern="^[A-Z-]*$", max_length=20_000)]


class Choices(Strict):
    """The chosen options of all questions, a character each.

    Attributes:
        taken: letter of the chosen option; ``-`` for an answer that names none.
        right: letter of the right option.
        last: letter of the last option.
    """

    taken: Letters
    right: Letters
    last: Letters

    @model_validator(mode="after")
    def _check(self) -> Choices:
        if not len(self.taken) == len(self.right) == len(self.last):
            raise ResultError("its numbers of choices, right options and questions differ")
        if any(NO_CHOICE in letters for letters in (self.right, self.last)):
            raise ResultError("a question has no right option")
        if any(max(one) > last for *one, last in zip(self.taken, self.right, self.last, strict=True)):
            raise ResultError("an option comes after the last one")
        return self


def choices_of(samples: SampleTable, opened: OpenedTask) -> Choices | None:
    """The choices in the samples of a task; None where the samples do not state them, or options are too many.

    Args:
        samples: of scored answers.
        opened: the task with its data.
    """
    asked, taken = opened.samples.asked, taken_in(samples, opened.task.info)
    if taken is None or len(asked) != len(taken) or any(len(one.options) > len(LETTERS) for one in asked):
        return None
    right = "".join(LETTERS[one.options.index(one.answer)] for one in asked)
    return Choices(taken=taken, right=right, last="".join(LETTERS[len(one.options) - 1] for one in asked))


def taken_in(samples: SampleTable, info: TaskInfo) -> str | None:
    """The letters of the options chosen in the samples of a task; None where they state none."""
    column = None if info.profile is None else samples.columns.get(info.profile.choices)
    if column is None:
        return None
    return "".join(LETTERS[int(place)] if 0 <= place < len(LETTERS) else NO_CHOICE for place in column)


def are_nearly_same_choices(one: Choices, other: Choices) -> bool:
    """Whether answers to the same questions are nearly the same; see the module's docstring."""
    if (one.right, one.last) != (other.right, other.last):
        return False
    if one.taken == other.taken and len(one.taken) >= LEAST_SAME and not is_constant(one):
        return True
    kappa, probability = agreement_of_errors(one, other)
    return kappa >= COPIED and probability <= CHANCE_AGREEMENT


def is_constant(choices: Choices) -> bool:
    """Whether the choice is one position for all questions with the same number of options; this is no copy."""
    taken: dict[str, set[str]] = {}
    for letter, last in zip(choices.taken, choices.last, strict=True):
        taken.setdefault(last, set()).add(letter)
    return all(len(letters - {NO_CHOICE}) <= 1 for letters in taken.values())


def agreement_of_errors(one: Choices, other: Choices) -> tuple[float, float]:
    """Kappa of the choices that are wrong in both, and the probability of as much agreement under a kappa of `HONEST`.

    Questions with two options do not count, since both wrong choices are the same one. Without any others the kappa is
    0, and the probability 1.
    """
    first, second, right, last = (_positions(letters) for letters in (one.taken, other.taken, one.right, one.last))
    wrong = (first >= 0) & (second >= 0) & (first != right) & (second != right) & (last >= 2)
    if not wrong.any():
        return 0.0, 1.0
    chance = np.zeros(int(wrong.sum()))
    for count in np.unique(last[wrong]):
        places = last[wrong] == count
        habits, other_habits = (_habits(taken[wrong][places], int(count) + 1) for taken in (first, second))
        chance[places] = _chance(habits, other_habits, right[wrong][places])
    same = first[wrong] == second[wrong]
    expected = float(chance.mean())
    kappa = (float(same.mean()) - expected) / (1 - expected) if expected < 1 - 1e-9 else 0.0
    return kappa, _tail(chance + HONEST * (1 - chance), int(same.sum()))


def _positions(letters: str) -> Ints:
    """Places of options from 0; −1 for no choice."""
    return np.array([LETTERS.find(letter) for letter in letters], np.int64)


def _habits(taken: Ints, options: int) -> Floats:
    """Share of each position among the wrong answers, with one more answer spread over all, [options]."""
    counts = np.bincount(taken, minlength=options).astype(np.float64)
    return counts + 1 / options


def _chance(first: Floats, second: Floats, right: Ints) -> Floats:
    """Probability that two models with these shares choose the same wrong option, for each question."""
    allowed = np.ones((len(right), len(first)))
    allowed[np.arange(len(right)), right] = 0
    shares = [habits * allowed / (habits * allowed).sum(axis=1, keepdims=True) for habits in (first, second)]
    return np.asarray((shares[0] * shares[1]).sum(axis=1))


def _tail(probabilities: Floats, least: int) -> float:
    """Probability of at least so many among independent events: the Poisson binomial distribution, by
    convolution."""
    distribution = np.zeros(len(probabilities) + 1)
    distribution[0] = 1
    for probability in probabilities:
        distribution[1:] = distribution[1:] * (1 - probability) + distribution[:-1] * probability
        distribution[0] *= 1 - probability
    return float(min(1.0, distribution[least:].sum()))


ANCHORS = 96
"""Most clips that are compared: 4,560 distances."""

ANCHOR_BLOCK = 8
"""Consecutive anchors: neighbouring rows often have related clips, so that near ones are among the anchors."""

DIMENSIONS = 48
"""Most dimensions in a shape."""

KEPT = 0.75
"""Share of the anchors, those that agree best, that is compared in the end."""

SAME_RANKS = 0.005
"""Mean difference of ranks, 1 for independent embeddings, up to which they are the same but for rounding. The honest
models that come nearest are layers of untrained networks, which add next to nothing to each other."""

FAR = 0.8
"""Mean difference before rows are left out, from which on nothing else is compared."""

ALIKE_RANKS = 0.3
"""Mean difference up to which embeddings are tested for noise."""

STRUCTURE = 0.18
"""Largest structure of the difference between embeddings within `ALIKE_RANKS` that counts as noise."""

LEAST_ANCHORS = 64
"""Fewest anchors for a meaningful structure."""

SAME_DIMENSION = 0.999
"""Correlation of ranks from which on two dimensions are the same."""

LEAST_DIMENSIONS = 6
"""Fewest equal dimensions; for embeddings with fewer, half of them, and at least 3."""

LEAST_DISTANCE_SPREAD = 0.02
"""Standard deviation of distances, over their mean, below which they are uninformative: all clips equally far apart."""

Bytes = Annotated[str, StringConstraints(strict=True, pattern="^[A-Za-z0-9+/]*={0,2}$", max_length=50_000)]


class Shape(Strict):
    """The comparable form of the anchors' embeddings. Texts are bytes in Base64, numbers little-endian.

    Attributes:
        anchors: number of anchors n.
        distances: float32 [n (n − 1) / 2], of each pair, in units of their root mean square; row by row above the
            diagonal.
        lengths: float32 [2, n], of the rows as they are and after centring; in the same units.
        dimensions: uint8 [k, n], twice the rank from 0 of each anchor in dimensions that have enough different values.
            Their selection depends on their values, not on their place.
    """

    anchors: Annotated[StrictInt, Field(ge=0, le=ANCHORS)]
    distances: Bytes
    lengths: Bytes
    dimensions: Bytes

    @model_validator(mode="after")
    def _check(self) -> Shape:
        n = self.anchors
        try:
            distances, lengths = _numbers(self.distances), _numbers(self.lengths)
            ranks = _raw(self.dimensions)
        except ValueError:
            raise ResultError("it is not in Base64") from None
        if len(distances) != n * (n - 1) // 2 or len(lengths) != 2 * n or len(ranks) > DIMENSIONS * n:
            raise ResultError("its numbers of distances, lengths or ranks do not fit its anchors")
        if n and len(ranks) % n:
            raise ResultError("the ranks of a dimension do not fit the anchors")
        if not all(np.isfinite(numbers).all() and (numbers >= 0).all() for numbers in (distances, lengths)):
            raise ResultError("a distance or a length is negative or not finite")
        return self


def shape_of(embeddings: Floats, offset: Floats) -> Shape:
    """The shape of embeddings.

    Args:
        embeddings: [clips, dim], centred.
        offset: the mean, [dim].
    """
    centred = embeddings[anchors_of(len(embeddings))]
    distances = pair_distances(centred)
    unit = float(np.sqrt((distances**2).mean())) if len(distances) else 0.0
    lengths = np.stack([np.linalg.norm(centred + offset, axis=1), np.linalg.norm(centred, axis=1)])
    return Shape(
        anchors=len(centred),
        distances=_written(distances / (unit or 1.0)),
        lengths=_written(lengths / (unit or 1.0)),
        dimensions=base64.b64encode(_dimensions(centred).tobytes()).decode(),
    )


def anchors_of(clips: int) -> NDArray[np.int64]:
    """Places of the anchors: blocks at even distances, all clips where there are few."""
    if clips <= ANCHORS:
        return np.arange(clips)
    starts = np.linspace(0, clips - ANCHOR_BLOCK, ANCHORS // ANCHOR_BLOCK).round().astype(np.int64)
    return np.unique(starts[:, None] + np.arange(ANCHOR_BLOCK))


def pair_distances(rows: Floats) -> Floats:
    """Euclidean distances of each pair of rows, [n (n − 1) / 2]."""
    squares = (rows**2).sum(axis=1)
    pairs = np.triu_indices(len(rows), 1)
    inner = rows @ rows.T
    distances: Floats = np.sqrt(np.maximum(squares[pairs[0]] + squares[pairs[1]] - 2 * inner[pairs], 0))
    return distances


def _dimensions(rows: Floats) -> NDArray[np.uint8]:
    """Doubled ranks of dimensions, [k, n]: the dimensions whose highest and lowest anchors have the least hash."""
    if not len(rows):
        return np.zeros((0, 0), np.uint8)
    order = np.argsort(rows, axis=0, kind="stable")
    steps = np.diff(np.take_along_axis(rows, order, axis=0), axis=0) > 0
    varied = np.flatnonzero(1 + steps.sum(axis=0) >= max(8, 3 * len(rows) // 4))
    ranks = np.round(2 * (stats.rankdata(rows[:, varied], axis=0) - 1)).astype(np.uint8).T
    keys = {}
    for each, low, high in zip(ranks, order[:2, varied].T, order[-2:, varied].T, strict=True):
        # A change of sign exchanges the two ends.
        ends = sorted((sorted(low.tolist()), sorted(high.tolist())))
        keys[each.tobytes()] = hashlib.sha256(repr(ends).encode()).digest()
    written = sorted(keys, key=lambda each: (keys[each], each))[:DIMENSIONS]
    return np.frombuffer(b"".join(written), np.uint8).reshape(len(written), len(rows))


def are_nearly_same(new: Shape, earlier: Shape) -> bool:
    """Whether embeddings are nearly the same as earlier ones of the same clips, by their shapes; see the module's
    docstring."""
    if new.anchors != earlier.anchors:
        return False
    difference, structure = difference_of_ranks(new, earlier)
    is_noise = difference <= ALIKE_RANKS and new.anchors >= LEAST_ANCHORS and structure <= STRUCTURE
    return difference <= SAME_RANKS or is_noise or have_same_dimensions(new, earlier)


def have_same_dimensions(one: Shape, other: Shape) -> bool:
    """Whether enough of the dimensions in the shapes are the same."""
    fewest = min(len(_rank_vectors(shape)) for shape in (one, other))
    return same_dimensions(one, other) >= max(3, min(LEAST_DIMENSIONS, (fewest + 1) // 2))


def same_dimensions(one: Shape, other: Shape) -> int:
    """Number of dimensions of either shape that equal one of the other's, the smaller of the two numbers."""
    first, second = _rank_vectors(one), _rank_vectors(other)
    if not (len(first) and len(second)):
        return 0
    same = np.abs(first @ second.T) >= SAME_DIMENSION
    return int(min(same.any(axis=0).sum(), same.any(axis=1).sum()))


def difference_of_ranks(new: Shape, earlier: Shape) -> tuple[float, float]:
    """The distance between the ranks of distances, 1 for independent embeddings, and the structure of the difference.

    Both are of the two ways of measuring distances, among compatible ones, that agree best: a copy
    whose rows were made 1 long has as its distances those of the other's rows of length 1. Where the ranks are far
    apart, or distances are uninformative, the difference is 1 and the structure 0.
    """
    firsts, seconds = _ranked(new), _ranked(earlier)
    best: tuple[float, Floats, Floats] | None = None
    for first, second in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 0), (0, 2), (2, 0)):
        a, b = firsts[first], seconds[second]
        if a is None or b is None or _mean_difference(a, b) > FAR:
            continue
        kept = _best_rows(_matrix(a), _matrix(b))
        difference = _mean_difference(*kept)
        if best is None or difference < best[0]:
            best = (difference, *kept)
    return (1.0, 0.0) if best is None else (best[0], _structure(_matrix(best[1]), _matrix(best[2])))


@lru_cache(maxsize=500)
def _ranked(shape: Shape) -> tuple[Floats | None, ...]:
    """Ranks of the distances of rows as they are, of length 1, and of length 1 about their mean; None for uninformative
    distances."""
    distances = _numbers(shape.distances)
    lengths = _numbers(shape.lengths).reshape(2, shape.anchors)
    ways = [distances, *(_at_unit_length(distances, each) for each in lengths)]
    return tuple(_ranks(way) if _tells(way) else None for way in ways)


def _at_unit_length(distances: Floats, lengths: Floats) -> Floats:
    """Distances of the same rows, each scaled to length 1."""
    first, second = (lengths[places] for places in np.triu_indices(len(lengths), 1))
    product = first * second
    squares = (distances**2 - (first - second) ** 2) / np.where(product > 0, product, 1)
    return np.sqrt(np.maximum(squares, 0))


def _tells(distances: Floats) -> bool:
    return len(distances) > 5 and float(distances.std()) >= LEAST_DISTANCE_SPREAD * float(distances.mean()) > 0


def _ranks(values: Floats) -> Floats:
    """Ranks between 0 and 1. Differences below the resolution of float32 are ties."""
    ranks: Floats = stats.rankdata(np.round(values / np.median(values[values > 0]), 5))
    return (ranks - 0.5) / len(values)


def _matrix(pairs: Floats) -> Floats:
    n = round((1 + np.sqrt(1 + 8 * len(pairs))) / 2)
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = pairs
    return matrix + matrix.T


def _mean_difference(one: Floats, other: Floats) -> float:
    """Mean difference of ranks, in units of its value for independent ones, 1/3."""
    return 3 * float(np.abs(one - other).mean())


def _best_rows(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Ranks recomputed among the rows that agree best, of each pair; of matrices [n, n]."""
    agreement = np.argsort(np.abs(one - other).mean(axis=1), kind="stable")
    best = np.sort(agreement[: int(np.ceil(KEPT * len(one)))])
    pairs = np.triu_indices(len(best), 1)
    first, second = (_ranks(matrix[np.ix_(best, best)][pairs]) for matrix in (one, other))
    return first, second


def _structure(new: Floats, earlier: Floats) -> float:
    """Correlation of differences with those of the nearest other clips; see the module's docstring. Both [n, n]."""
    n = len(earlier)
    apart = ~np.eye(n, dtype=bool)
    difference = new - earlier
    # A difference common to all pairs of one clip is no structure: it may be one noisy row.
    for _ in range(6):
        difference = (difference - difference.sum(axis=0) / (n - 1)) * apart
        difference = (difference + difference.T) / 2
    # Neighbours by the earlier ones alone: clips that noise brought together have noise in common.
    nearest = np.argmin(earlier + 9 * np.eye(n), axis=1)
    of_nearest = difference[np.ix_(nearest, nearest)]
    with_itself = np.eye(n, dtype=np.int64)
    with_itself[np.arange(n), nearest] = 1
    without_common = with_itself @ with_itself.T == 0
    x, y = difference[without_common], of_nearest[without_common]
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / scale if scale > 0 else 0.0


@lru_cache(maxsize=500)
def _rank_vectors(shape: Shape) -> Floats:
    """The dimensions of a shape as vectors of length 1, whose products are correlations of ranks, [k, n]."""
    ranks = _raw(shape.dimensions).reshape(-1, max(1, shape.anchors)).astype(np.float64)
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1, keepdims=True)
    vectors: Floats = ranks / np.where(lengths > 0, lengths, 1)
    return vectors


def is_same_shape(one: Shape, other: Shape) -> bool:
    """Whether two shapes are of the same embeddings: equal up to the rounding of processors."""
    if (one.anchors, one.dimensions) != (other.anchors, other.dimensions):
        return False
    pairs = ((one.distances, other.distances), (one.lengths, other.lengths))
    return all(np.allclose(_numbers(a), _numbers(b), rtol=1e-4, atol=1e-4) for a, b in pairs)


def _written(numbers: Floats) -> str:
    return base64.b64encode(np.ascontiguousarray(numbers, "<f4").tobytes()).decode()


def _raw(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(base64.b64decode(text, validate=True), np.uint8)


def _numbers(text: str) -> Floats:
    numbers: Floats = _raw(text).view("<f4").astype(np.float64)
    return numbers


NUMBERS = 64
"""Number of quantiles in a sketch."""

SAME_RADII = 1e-3
"""Largest difference between equal sorted distances. It is tight: sorting brings differences together, and
rounding to 16 bits changes a distance by at most 5e-4 of itself."""

LEAST_RADII_SPREAD = 0.02
"""Standard deviation of distances below which they are uninformative: all clips equally far apart."""

Distances = Annotated[list[Positive], Field(max_length=NUMBERS)]


class Sketch(Strict):
    """The fingerprint by which embeddings or answers are recognised.

    Attributes:
        clips: number of clips and texts, or of answers.
        of: SHA-256 of the ids of the embedded clips and texts, or of the questions: only equal ones are compared.
        values: SHA-256 of the rounded values: equal where only offset, power of two or the file's form differ; for
            answers that of the ids and texts.
        radii: 64 quantiles of the distances of all clips from their mean, in units of their root mean square, rounded
            to 1e-5, independent of the order of clips. Empty for answers.
        shape: of the embeddings; None for answers.
        choices: of the answers; None for embeddings, and for a task whose samples state none.
    """

    clips: Count
    of: Sha256
    values: Sha256
    radii: Distances
    shape: Shape | None
    choices: Choices | None


def sketch_of(embeddings: RoundedEmbeddings) -> Sketch:
    """The sketch of the embeddings of a submission; all but `values` is of the clips, where there are any."""
    # Without the sign of zeros, which does not distinguish embeddings.
    values = np.ascontiguousarray(embeddings.values + np.float16(0), "<f2")
    digest = hashlib.sha256(f"{values.shape}".encode() + values.tobytes()).hexdigest()
    exact = values[: len(values) - embeddings.texts].astype(np.float64)
    mean = exact.mean(axis=0)
    exact -= mean
    distances = np.linalg.norm(exact, axis=1)
    unit = float(np.sqrt((distances**2).mean())) or 1.0
    radii = [round(float(x), 5) for x in np.quantile(distances, np.linspace(0, 1, NUMBERS)) / unit]
    shape = shape_of(exact, mean + embeddings.offset / embeddings.scale)
    return Sketch(clips=len(values), of=embeddings.clips, values=digest, radii=radii, shape=shape, choices=None)


def sketch_of_answers(answers: RawAnswers, choices: Choices | None) -> Sketch:
    """The sketch of the answers of a submission, with their choices."""
    digest = hashlib.sha256(answers.dumps()).hexdigest()
    of = clips_digest(answers.ids)
    return Sketch(clips=len(answers.ids), of=of, values=digest, radii=[], shape=None, choices=choices)


def sketch_of_submission(submission: Submission, samples: SampleTable, opened: OpenedTask) -> Sketch | None:
    """The sketch of the model's outputs; None for a submission without them.

    Args:
        submission: with embeddings or answers.
        samples: computed from these.
        opened: its task with the data.
    """
    if submission.answers is not None:
        return sketch_of_answers(submission.answers, choices_of(samples, opened))
    return None if submission.embeddings is None else sketch_of(submission.embeddings)


def sketch_problem(sketch: Sketch, submission: Submission, samples: SampleTable, info: TaskInfo) -> str | None:
    """Why a sketch cannot be that of a submission, as far as the submission tells without its data; None where it can.

    The right options are not checked, since this takes the data.
    """
    if submission.answers is not None:
        taken = None if sketch.choices is None else sketch.choices.taken
        expected = sketch_of_answers(submission.answers, sketch.choices)
        return (
            None if (sketch, taken) == (expected, taken_in(samples, info)) else "its sketch is not that of the answers"
        )
    if submission.embeddings is None or _agree(sketch, sketch_of(submission.embeddings)):
        return None
    return "its sketch is not that of the embeddings"


def _agree(one: Sketch, other: Sketch) -> bool:
    """Whether two sketches are of the same embeddings: equal up to the rounding of processors."""
    same = all(getattr(one, name) == getattr(other, name) for name in ("clips", "of", "values", "choices"))
    if not same or one.shape is None or other.shape is None or len(one.radii) != len(other.radii):
        return False
    return np.allclose(one.radii, other.radii, rtol=1e-6, atol=2e-5) and is_same_shape(one.shape, other.shape)


@dataclass(frozen=True)
class Earlier:
    """An earlier submission, for comparison with a new one.

    Attributes:
        name: of its folder, or its submitter's; for the maintainers.
        task: the scored task.
        model: the stated model.
        date: of the check, as in the checker's record, ISO 8601; it decides who came first.
        sketch: from the record.
    """

    name: str
    task: str
    model: ScoredModel
    date: str
    sketch: Sketch


@dataclass(frozen=True)
class Duplicate:
    """An earlier submission with the same, or nearly the same, embeddings or answers.

    Attributes:
        earlier: the submission.
        kind: ``exact``: the same values; ``near``: see the module's docstring;
            ``permuted``: the same distances from the mean, as after another order of the rows. Only the first is proof.
        relation: ``weights``, both state the same weights, so it is a reproduction; ``model``, another revision of
            the same model; ``other``, neither, so it may be a copy.
    """

    earlier: Earlier
    kind: Literal["exact", "near", "permuted"]
    relation: Literal["weights", "model", "other"]

    def __str__(self) -> str:
        alike = {
            "exact": "are those",
            "near": "are nearly those" if self.earlier.sketch.shape else "choose nearly as those",
            "permuted": "are, in another order, nearly those",
        }
        what = "embeddings" if self.earlier.sketch.shape else "answers"
        of = f"{self.earlier.model.id}, {self.earlier.name} of {self.earlier.date}"
        whose = ", which states the same weights" if self.relation == "weights" else ""
        return f"its {what} {alike[self.kind]} of {of}{whose}"


def duplicates_of(sketch: Sketch, model: ScoredModel, earlier: Iterable[Earlier]) -> list[Duplicate]:
    """The earlier submissions that embeddings or answers may be copied from, the first owner first.

    Args:
        sketch: of the new submission.
        model: the stated model.
        earlier: submissions; those for the same clips or questions are compared.
    """
    duplicates = []
    for other in earlier:
        kind = _kind(sketch, other.sketch)
        if kind is not None:
            duplicates.append(Duplicate(other, kind, relation_of(model, other.model)))
    order = ("exact", "near", "permuted")
    return sorted(duplicates, key=lambda duplicate: (order.index(duplicate.kind), duplicate.earlier.date))


def relation_of(one: ScoredModel, other: ScoredModel) -> Literal["weights", "model", "other"]:
    """The relation between the stated models of two submissions; see `Duplicate`. The same revision of a model, or the
    same digest, are the same weights."""
    same_digest = one.weights_sha256 is not None and one.weights_sha256 == other.weights_sha256
    if same_digest or (one.id, one.revision) == (other.id, other.revision):
        return "weights"
    return "model" if one.id == other.id else "other"


def may_be_copied(duplicates: Iterable[Duplicate]) -> bool:
    """Whether a maintainer has to decide on duplicates: the first of them is of another model.

    Weights whose submission came first may be submitted again, whatever copies of them exist.
    """
    first = min(duplicates, key=lambda duplicate: duplicate.earlier.date, default=None)
    return first is not None and first.relation == "other"


def _kind(one: Sketch, other: Sketch) -> Literal["exact", "near", "permuted"] | None:
    if one.choices is not None and is_constant(one.choices):
        return None
    if one.values == other.values:
        return "exact"
    if (one.clips, one.of) != (other.clips, other.of):
        return None
    if one.choices is not None and other.choices is not None and are_nearly_same_choices(one.choices, other.choices):
        return "near"
    if one.shape is not None and other.shape is not None and are_nearly_same(one.shape, other.shape):
        return "near"
    radii, other_radii = (np.array(distances, np.float64) for distances in (one.radii, other.radii))
    if _radii_tell(radii, other_radii) and np.abs(radii - other_radii).max() <= SAME_RADII:
        return "permuted"
    return None


def _radii_tell(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return len(one) == len(other) > 1 and min(one.std(), other.std()) >= LEAST_RADII_SPREAD
