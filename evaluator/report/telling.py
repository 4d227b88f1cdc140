"""Questions that reveal a model's behaviour: answered better without the sound, only in one order of the options, or
without naming an option."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from audio_compositionality.evaluator.compare.comparison import Comparison, View
from audio_compositionality.evaluator.compare.gain import SILENT
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.shapes.asking import CYCLIC

WRONG_WITH = "wrong with the sound and right without it"
ONE_ORDER = "right in one order of the options alone"
UNPARSED = "no option named"

MOST_TELLING = 3
"""Most questions for each kind of finding."""


def telling_questions(
    comparison: Comparison, view: View, results: Sequence[int]
) -> Iterator[tuple[str, int, int, str]]:
    """Yield finding, rank, index and explanation of the most revealing questions; none for a task without questions.

    Questions with the most findings, over models and controls, come first. Among equals, one question of each kind
    comes before the second of any kind.

    Args:
        comparison: with its data.
        view: the share of the orders of its options in which each question is answered correctly.
        results: indices of the results to look at.
    """
    samples, profile = comparison.samples, comparison.info.profile
    if samples is None or profile is None or not samples.asked:
        return
    if any(profile.choices not in result.samples.columns for result in comparison.results):
        return
    kinds = samples.groups.get(profile.heard_from, ("",) * len(comparison.ids))
    answers = np.array([one.options.index(one.answer) for one in samples.asked])
    sizes = np.array([len(one.options) for one in samples.asked])
    taken = [one.samples.columns[profile.choices] for one in comparison.results]
    places = {one.result.model.id: place for place, one in enumerate(comparison.results)}
    # Per finding and question: labels of the models, each with the controls that show the finding, or an empty text.
    findings: dict[str, list[dict[str, list[str]]]] = {
        name: [{} for _ in samples.asked] for name in (WRONG_WITH, ONE_ORDER, UNPARSED)
    }
    for place in results:
        result = comparison.results[place].result
        masks = [(UNPARSED, "", taken[place] < 0)]
        for prefix, words in SILENT.items():
            silent = places.get(prefix + result.model.id)
            if silent is not None:
                masks.append((WRONG_WITH, words, (taken[place] != answers) & (taken[silent] == answers)))
        if result.settings.get("orders") == CYCLIC:
            masks.append((ONE_ORDER, "", np.isclose(view.values[:, place] * sizes, 1)))
        for finding, words, mask in masks:
            for index in np.flatnonzero(mask).tolist():
                findings[finding][index].setdefault(comparison.labels[place], []).append(words)
    for finding, models in findings.items():
        seen: Counter[tuple[int, str]] = Counter()
        order = []
        for index, (of_question, kind) in enumerate(zip(models, kinds, strict=True)):
            strength = sum(map(len, of_question.values()))
            order.append((-strength, seen[strength, kind], index))
            seen[strength, kind] += 1
        for rank, (strength, _, index) in enumerate(sorted(order)[:MOST_TELLING], 1):
            if strength:
                # Such as "one (right on silence and noise) and other (right on noise)".
                named = models[index].items()
                models_in_words = [f"{label} (right on {listed(on)})" if any(on) else label for label, on in named]
                yield finding, rank, index, listed(models_in_words)
