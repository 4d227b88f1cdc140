"""Copies: whether embeddings or answers are those of an earlier submission, told from a few kilobytes, not the files.

A `Sketch` stands in the checker's record of each submission. It holds a digest of the values, which a file's form does
not change, and what near-copies are told by: of embeddings their `Shape`, of answers the `Choices` that they make.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from audio_compositionality.evaluator.results.result import Model, SampleTable
from audio_compositionality.evaluator.results.strict import Count, Positive, Sha256, Strict
from audio_compositionality.evaluator.run.opened import OpenedTask
from audio_compositionality.tasks.base import TaskInfo

from .choices import Choices, are_nearly_same_choices, choices_of, is_constant, taken_in
from .likeness import Shape, are_nearly_same, is_same_shape, shape_of
from .raw_answers import RawAnswers
from .rounded import RoundedEmbeddings, clips_digest
from .submission import Submission

NUMBERS = 64
"""Quantiles in a sketch."""

SAME_RADII = 1e-3
"""Sorted distances that nowhere differ by more are the same. It is tight: sorting brings what differs together, and
rounding to 16 bits changes a distance by at most 5e-4 of itself."""

LEAST_RADII_SPREAD = 0.02
"""Standard deviation of distances below which they tell nothing: clips are all equally far apart."""

Distances = Annotated[list[Positive], Field(max_length=NUMBERS)]


class Sketch(Strict):
    """What embeddings or answers are recognised by.

    Attributes:
        clips: number of clips and texts, or of answers.
        of: SHA-256 of the ids of what was embedded, or of the questions: others are not compared.
        values: SHA-256 of the rounded values: equal where only offset, power of two or the file's form differ; of
            answers that of the ids and texts.
        radii: 64 quantiles of the distances of all clips from their mean, in units of their root mean square, rounded
            to 1e-5: the order of clips does not change them. Of answers there are none.
        shape: of the embeddings; None of answers.
        choices: of the answers; None of embeddings, and of a task whose samples say none.
    """

    clips: Count
    of: Sha256
    values: Sha256
    radii: Distances
    shape: Shape | None
    choices: Choices | None


def sketch_of(embeddings: RoundedEmbeddings) -> Sketch:
    """The sketch of the embeddings of a submission; all but `values` is of the clips, where there are any."""
    # Without the sign of zeros, which is nothing that tells embeddings apart.
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
    """The sketch of the answers of a submission, with what they choose."""
    digest = hashlib.sha256(answers.dumps()).hexdigest()
    of = clips_digest(answers.ids)
    return Sketch(clips=len(answers.ids), of=of, values=digest, radii=[], shape=None, choices=choices)


def sketch_of_submission(submission: Submission, samples: SampleTable, opened: OpenedTask) -> Sketch | None:
    """The sketch of what a model gave; None of a submission without it.

    Args:
        submission: with embeddings or answers.
        samples: that were computed from these.
        opened: its task with the data.
    """
    if submission.answers is not None:
        return sketch_of_answers(submission.answers, choices_of(samples, opened))
    return None if submission.embeddings is None else sketch_of(submission.embeddings)


def sketch_problem(sketch: Sketch, submission: Submission, samples: SampleTable, info: TaskInfo) -> str | None:
    """Why a sketch is not that of a submission, without its data; None where it can be.

    Which options are right is not looked at: it takes the data.
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
    """Whether two sketches are of the same embeddings: they agree but for what processors round."""
    same = all(getattr(one, name) == getattr(other, name) for name in ("clips", "of", "values", "choices"))
    if not same or one.shape is None or other.shape is None or len(one.radii) != len(other.radii):
        return False
    return np.allclose(one.radii, other.radii, rtol=1e-6, atol=2e-5) and is_same_shape(one.shape, other.shape)


@dataclass(frozen=True)
class Earlier:
    """A submission that a new one is compared with.

    Attributes:
        name: of its folder, or who submitted it: what a maintainer is shown.
        task: whose scores it has.
        model: that it states.
        date: of the check, as in the checker's record, ISO 8601: who came first is known by it.
        sketch: from the record.
    """

    name: str
    task: str
    model: Model
    date: str
    sketch: Sketch


@dataclass(frozen=True)
class Duplicate:
    """An earlier submission with the same, or nearly the same, embeddings or answers.

    Attributes:
        earlier: the submission.
        kind: ``exact``: the same values; ``near``: of embeddings see `likeness`, of answers see `choices`;
            ``permuted``: the same distances from the mean, as after another order of the rows. Only the first is proof.
        relation: ``weights``, both state the same weights, so that it is a reproduction; ``model``, another revision of
            the same model; ``other``, neither, so that it may be a copy.
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


def duplicates_of(sketch: Sketch, model: Model, earlier: Iterable[Earlier]) -> list[Duplicate]:
    """The earlier submissions that embeddings or answers may be copied from, the first owner first.

    Args:
        sketch: of the new submission.
        model: that it states.
        earlier: submissions, of which those for the same clips or questions are compared.
    """
    duplicates = []
    for other in earlier:
        kind = _kind(sketch, other.sketch)
        if kind is not None:
            duplicates.append(Duplicate(other, kind, relation_of(model, other.model)))
    order = ("exact", "near", "permuted")
    return sorted(duplicates, key=lambda duplicate: (order.index(duplicate.kind), duplicate.earlier.date))


def relation_of(one: Model, other: Model) -> Literal["weights", "model", "other"]:
    """What two submissions state of each other's model; see `Duplicate`. The same revision of a model, or the same
    digest, are the same weights."""
    same_digest = one.weights_sha256 is not None and one.weights_sha256 == other.weights_sha256
    if same_digest or (one.id, one.revision) == (other.id, other.revision):
        return "weights"
    return "model" if one.id == other.id else "other"


def may_be_copied(duplicates: Iterable[Duplicate]) -> bool:
    """Whether somebody has to decide about what was found: the one that came first is of another model.

    Whose weights came first may be submitted again, whatever copies of them there are.
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
