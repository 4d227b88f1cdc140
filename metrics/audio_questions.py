"""Audio questions: accuracy on multiple-choice questions about sounds from any benchmark.

A model gets one or several clips and a question with 2 to 26 options, and answers in text. `match_answer` reads the
answer by the fixed rules that `polybench` uses too. An answer that names no option is *unparsed*: it counts as wrong,
is reported, and is never replaced by a random option. Every share is reported with scores without listening.

>>> options = [["dog", "rain"], ["sad", "happy", "calm"], ["1", "2", "3", "4"]]
>>> result = audio_questions(["B. rain", "It sounds happy.", "I cannot hear it."], ["rain", "sad", "2"], options)
>>> result["accuracy"], result["chance"], result["unparsed"], result["refused"]
(0.3333333333333333, 0.3611111111111111, 1, 1)
"""

from typing import Any

import numpy as np

from .answers import LETTERS as LETTERS
from .answers import REFUSED as REFUSED
from .arrays import Floats as Floats
from .evaluated import count, metric_class, share
from .questions import (
    ANSWER_MEASURES,
    GROUP_MEASURES,
    ORDER_MEASURES,
    Intervals,
    Pairs,
    read_questions,
    share_row,
    shared_numbers,
    shared_ratios,
)

_CITATION = """\
@misc{audio_questions_2026,
  title = {{Audio questions, scored with controls without listening}},
  note = {Consistency over orders of options after arXiv 2510.04584},
  year = {2026}
}
"""


def audio_questions(
    predictions: Any = None,
    references: Any = None,
    options: Any = None,
    *,
    kinds: Any = None,
    ids: Any = None,
    groups: Any = None,
    parsed: bool = False,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return the share of n questions answered correctly, from m answers.

    - `predictions` [m]: the model's texts, read by `match_answer`; with `parsed` the positions of the options instead,
      from 0; -1, None or an empty text is an unparsed answer;
    - `references` [m]: the right answers, each exactly once among its options; `options` [m]: 2 to 26 texts each, in
      the order shown; `kinds` [m]: texts or integers, by default one kind for all;
    - `ids` [m]: answers with the same id belong to one question whose options were shown in several orders. By default
      each answer has its own question. A question counts once, each of its R answers by 1/R; counts are of answers;
    - `groups` [m]: questions of one group are not independent; by default each question is its own.

    Numbers:

    - `accuracy`: the mean over all questions; `chance`: the mean of 1/k for k options; `without_listening`: accuracy of
      the best strategy without listening per kind: draw an option, always give one text, or always take one position;
    - `accuracy_of_kinds`: the mean of the accuracies of the kinds; `n` questions, `answers` m, `unparsed` answers that
      name no option, `refused` among them; `accuracy_parsed`: share of correct answers among the parsed, or None;
    - `groups_right`: share of groups with every answer correct, `groups_right_chance`: the mean of Π 1/k over their
      answers, `groups`: their number; None without groups;
    - with several orders, else None: `consistency`: share of pairs of orders with the same option's text, and
      `all_orders_right`, with `consistency_chance` and `all_orders_right_chance` (arXiv 2510.04584);
    - `position_distance`: ½ Σ |p − e|, with p the share of each position among the chosen options and e the share
      without a habit, the mean of 1/k; None if nothing was parsed.

    Tables: `interval` of the accuracy and `intervals` by name of further shares, 95 %, [low, high], by resampling
    entire groups with replacement (expanded percentile, Hesterberg 2015; Wilson's if all are right or all are wrong);
    `by_kind`: for each kind n, answers, accuracy, interval, chance, majority, best_position, unparsed, refused,
    accuracy_parsed; `position`: the share of each letter among the chosen options.

    With return_scores, a list of n, in the order in which questions first occur: `scores`, the share of its orders that
    are right. Lists of m: `choices`, positions, None where unparsed; `rules`, names of the rules that decided each
    answer.

    Raises ValueError when lengths differ or are 0; a text is not a string; a right answer is not exactly once among its
    options; options are fewer than 2 or more than 26; answers of one id disagree in the right answer, the set of
    options, kind or group; a position is not one of the options.

    >>> audio_questions([1, -1], ["b", "b"], [["a", "b"]] * 2, parsed=True)["accuracy"]
    0.5
    """
    given = {"predictions": predictions, "references": references, "options": options}
    given |= {} if kinds is None else {"kinds": kinds}
    a = read_questions(given, ids, {"groups": groups}, parsed, of_polybench=False)
    everything, draws, intervals = np.ones(a.n, bool), Intervals(a.group), dict[str, Any]()
    ratios: dict[str, Pairs] = {"accuracy": [(a.correct, np.ones(a.n))]} | shared_ratios(a, everything)
    for name, pairs in ratios.items():
        draws.ask(pairs, intervals, name)
    table = {kind: share_row(a, mask, draws) for kind, mask in a.asked.items()}
    draws.fill()
    best = [max(part["chance"], part["majority"], part["best_position"]) for part in table.values()]
    numbers = shared_numbers(a, everything, ratios) | {
        "without_listening": float(np.average(best, weights=[part["n"] for part in table.values()])),
        "accuracy_of_kinds": float(np.mean([part["accuracy"] for part in table.values()])),
    }
    result = {name: numbers.get(name) for name in MEASURES}
    result |= {"interval": intervals.pop("accuracy"), "intervals": intervals, "by_kind": table}
    result["position"] = numbers["position"]
    if return_scores:
        result |= {"scores": a.correct.tolist(), "choices": a.choices, "rules": list(a.rules)}
    return result


AudioQuestions = metric_class(
    audio_questions,
    {"predictions": "text", "references": "text", "options": "texts"},
    citation=_CITATION,
    whole=False,
)

VERSION = 2
"""Increases with every change of code or constants that can change a number."""

MEASURES = {
    "accuracy": share("accuracy", "share of questions answered correctly", null="chance", column="score"),
    "chance": share("chance", "accuracy of drawing an option: the mean of 1/k of k options"),
    "without_listening": share(
        "best without listening",
        "accuracy of the best strategy without listening per kind: draw an option, always give one text or always "
        "take one position",
        shown=False,
    ),
    "accuracy_of_kinds": share(
        "mean of the kinds", "share of questions answered correctly, the mean over the kinds of question", shown=False
    ),
    "n": count("questions", "number of questions", 0.0),
    **ANSWER_MEASURES,
    "groups_right": share(
        "groups right",
        "share of groups, such as all questions about a clip, with every question answered correctly",
        null="groups_right_chance",
    ),
    **GROUP_MEASURES,
    **ORDER_MEASURES,
}
"""Description of each number that `audio_questions` returns, by name, the score first."""
