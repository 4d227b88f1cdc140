"""Questions that tell something about a model: those that it answers better without listening, in one order of the
options alone, or with nothing that names an option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.gain import SILENT
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.shapes.asking import CYCLIC

WRONG_WITH = "wrong with the sound and right without it"
ONE_ORDER = "right in one order of the options alone"
UNPARSED = "no option named"

MOST_TELLING = 3
"""Most questions of a kind of finding."""


def telling_questions(
    comparison: Comparison, view: View, results: Sequence[int]
) -> Iterator[tuple[str, int, int, str]]:
    """Finding, rank, place and an explanation of the questions that tell most; none of a task that asks none.

    Those come first about which most is to be told, in most models and controls; among equals, a question of each kind
    before the second of any.

    Args:
        comparison: with its data.
        view: the share of the orders of its options in which each question is answered rightly.
        results: places of the results that are looked at.
    """
    samples, profile = comparison.samples, comparison.info.profile
    if samples is None or profile is None or not samples.asked:
        return
    if any(profile.choices not in result.samples.columns for result in comparison.results):
        return
    kinds = samples.groups.get(profile.heard_from, ("",) * len(comparison.ids))
    for finding, models in _models_by_finding(comparison, view, results, profile.choices).items():
        seen: Counter[tuple[int, str]] = Counter()
        order = []
        for index, (of_question, kind) in enumerate(zip(models, kinds, strict=True)):
            strength = sum(map(len, of_question.values()))
            order.append((-strength, seen[strength, kind], index))
            seen[strength, kind] += 1
        for rank, (strength, _, index) in enumerate(sorted(order)[:MOST_TELLING], 1):
            if strength:
                yield finding, rank, index, _in_words(models[index])


Models = list[dict[str, tuple[str, ...]]]
"""For each question: the models of a finding by their labels, each with the controls that show it, or an empty
text."""


def _models_by_finding(comparison: Comparison, view: View, results: Sequence[int], choices: str) -> dict[str, Models]:
    assert comparison.samples is not None
    asked = comparison.samples.asked
    answers = np.array([one.options.index(one.answer) for one in asked])
    sizes = np.array([len(one.options) for one in asked])
    taken = {place: one.samples.columns[choices] for place, one in enumerate(comparison.results)}
    places = {one.result.model.id: place for place, one in enumerate(comparison.results)}
    findings: dict[str, Models] = {name: [{} for _ in asked] for name in (WRONG_WITH, ONE_ORDER, UNPARSED)}
    for place in results:
        label, result = comparison.labels[place], comparison.results[place].result
        is_wrong = taken[place] != answers
        unheard = {words: places.get(prefix + result.model.id) for prefix, words in SILENT.items()}
        right = {words: is_wrong & (taken[at] == answers) for words, at in unheard.items() if at is not None}
        _add(findings[WRONG_WITH], label, right)
        if result.settings.get("orders") == CYCLIC:
            _add(findings[ONE_ORDER], label, {"": np.isclose(view.values[:, place] * sizes, 1)})
        _add(findings[UNPARSED], label, {"": taken[place] < 0})
    return findings


def _add(models: Models, label: str, masks: Mapping[str, NDArray[np.bool_]]) -> None:
    for index, of_question in enumerate(models):
        if words := tuple(name for name, mask in masks.items() if mask[index]):
            of_question[label] = words


def _in_words(models: Mapping[str, tuple[str, ...]]) -> str:
    """Such as “one (right on silence and noise) and other (right on noise)”."""
    return listed([f"{label} (right on {listed(list(on))})" if any(on) else label for label, on in models.items()])
