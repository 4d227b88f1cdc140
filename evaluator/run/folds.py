"""Learning where data have no split for it: each question is answered by a copy that learnt from other groups."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from audio_compositionality.encoders.base import By, Model, ModelCard, Wrapper
from audio_compositionality.tasks.base import Samples

FOLDS = 5
"""Parts of the groups; each is answered by a copy that learnt from the other four."""


def folds_of_groups(clusters: Sequence[int], ids: Sequence[str]) -> list[int]:
    """The fold of each sample: groups are dealt to folds in the order of the SHA-256 of their first id.

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
    """A model that learns, as one copy for each fold; each answers the questions of its fold, which it has not learnt.

    Its clips have the row of their question (`GivenClip.row`).
    """

    def __init__(self, model: Model, samples: Samples) -> None:
        """Wrap a model that has learnt nothing yet."""
        super().__init__(model)
        self._fold = dict(zip(samples.ids, folds_of_groups(samples.clusters.tolist(), samples.ids), strict=True))
        self._copies = [copy.deepcopy(model) for _ in range(FOLDS)]

    def make_card(self) -> ModelCard:
        """The model's."""
        return self.model.card

    @property
    def abilities(self) -> frozenset[str]:
        """The model's."""
        return self.model.abilities

    def learn_others(self, rows: Sequence[Mapping[str, Any]], clips: Callable[[Sequence[int]], Iterable[Any]]) -> None:
        """Teach each copy the rows of the other folds.

        Args:
            rows: of the samples.
            clips: gives the clips of rows by their places, lazily.
        """
        for fold, one in enumerate(self._copies):
            kept = [place for place, row in enumerate(rows) if self._fold[row["id"]] != fold]
            one.learn([rows[place] for place in kept], clips(kept))

    def answer(self, clips: Sequence[Sequence[Any]], prompts: Sequence[str]) -> list[str]:
        """See `Model.answer`."""

        def ask(one: Model, places: list[int]) -> list[str]:
            return one.answer([clips[place] for place in places], [prompts[place] for place in places])

        return self._by_fold(clips, ask)

    def score_options(
        self, clips: Sequence[Sequence[Any]], prompts: Sequence[str], options: Sequence[Sequence[str]], by: By
    ) -> list[list[float]]:
        """See `Model.score_options`."""

        def ask(one: Model, places: list[int]) -> list[list[float]]:
            asked = [prompts[place] for place in places]
            return one.score_options([clips[place] for place in places], asked, [options[k] for k in places], by)

        return self._by_fold(clips, ask)

    def _by_fold(self, clips: Sequence[Sequence[Any]], ask: Callable[[Model, list[int]], Sequence[Any]]) -> list[Any]:
        folds = np.array([self._fold[row["id"]] for row in self.rows_of(clips)])
        answers: dict[int, Any] = {}
        for fold in np.unique(folds):
            places = np.flatnonzero(folds == fold).tolist()
            answers |= zip(places, ask(self._copies[fold], places), strict=True)
        return [answers[place] for place in range(len(clips))]
