"""Learning where data have no split for it: each question is answered by a copy that learnt from other groups."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from audio_compositionality.encoders.base import AnswerStream, By, GivenQuestion, Model, ModelCard, Wrapper
from audio_compositionality.tasks.base import Samples

FOLDS = 5
"""Parts of the groups; each is answered by a copy that learnt from the other four."""


def folds_of_groups(clusters: Sequence[int], ids: Sequence[str]) -> list[int]:
    """Return the fold of each sample: groups are dealt to folds in the order of the SHA-256 of their smallest id.

    Args:
        clusters: number of the group of each sample.
        ids: of the samples.
    """
    first: dict[int, str] = {}
    for cluster, id in zip(clusters, ids, strict=True):
        first[cluster] = min(id, first.get(cluster, id))
    order = sorted(first, key=lambda cluster: hashlib.sha256(first[cluster].encode()).hexdigest())
    fold_of = {cluster: place % FOLDS for place, cluster in enumerate(order)}
    return [fold_of[cluster] for cluster in clusters]


class CrossFitted(Wrapper):
    """A model that learns, in one copy per fold: each copy answers the questions of its fold, and learns the others.

    Clips must have the row of their question (`GivenClip.row`).

    Attributes:
        copies: copies of the model, one per fold.
    """

    def __init__(self, model: Model, samples: Samples) -> None:
        """Wrap a model that is not trained yet."""
        super().__init__(model)
        self._fold = dict(zip(samples.ids, folds_of_groups(samples.clusters.tolist(), samples.ids), strict=True))
        self.copies = [copy.deepcopy(model) for _ in range(FOLDS)]

    def make_card(self) -> ModelCard:
        """Return the model's card."""
        return self.model.card

    @property
    def abilities(self) -> frozenset[str]:
        """Return the model's abilities."""
        return self.model.abilities

    def others(self, fold: int, rows: Sequence[Mapping[str, Any]]) -> list[int]:
        """Return the indices of the rows that the copy of a fold learns from: the rows of the other folds."""
        return [place for place, row in enumerate(rows) if self._fold[row["id"]] != fold]

    def answers(self, questions: Iterable[GivenQuestion], by: By | None = None, *, size: int) -> AnswerStream:
        """See `Model.answers`."""
        for _, together in groupby(questions, key=lambda question: question.index // size):
            of_fold: dict[int, list[GivenQuestion]] = {}
            for question in together:
                (row,) = self.rows_of([question.clips])
                of_fold.setdefault(self._fold[row["id"]], []).append(question)
            for fold in sorted(of_fold):
                yield from self.copies[fold].answers(of_fold[fold], by, size=size)
