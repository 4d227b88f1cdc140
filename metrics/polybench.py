"""PolyBench: accuracy on multiple-choice questions about overlapping sounds, in seven tasks.

A model gets a clip and a question with 2 to 26 options, and answers in text. `match_answer` reads the text by fixed
rules: its last conclusion counts; a text that names no option is *unparsed*. An unparsed answer counts as wrong, is
reported, and is never replaced by a random option. Every share is reported with scores without listening: chance (1/k
for k options), the best constant text (`majority`) and the best constant position.

A *group* is a cluster of dependent questions: the questions of one recording, or the k counterparts of one scene, whose
answers differ only because labels changed places. Intervals resample groups; `groups_right` is the strict score, all
questions of a group.

>>> options = [["dog", "rain"], ["rain", "dog"], ["Yes", "No"], ["Yes", "No"]]
>>> tasks = ["duration", "duration", "concurrency", "concurrency"]
>>> texts = ["B. rain", "The rain, rather than the dog.", "Yes", "I'm sorry, I cannot hear the audio."]
>>> result = polybench(texts, ["rain", "dog", "Yes", "No"], options, tasks)
>>> result["accuracy"], result["chance"], result["unparsed"], result["refused"]
(0.5, 0.5, 1, 1)
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .answers import folded_words
from .arrays import Floats as Floats
from .evaluated import Fields, count, hidden, metric_class, share
from .questions import (
    ANSWER_MEASURES,
    GROUP_MEASURES,
    ORDER_MEASURES,
    TASKS,
    Intervals,
    Mask,
    Pairs,
    Questions,
    adjusted,
    group_numbers,
    groups_right,
    in_means,
    order_numbers,
    positions,
    read_questions,
    share_row,
    shared_numbers,
    shared_ratios,
    sums_at,
)
from .questions import RESAMPLES as RESAMPLES

_CITATION = """\
@misc{polybench_2026,
  title = {{PolyBench}},
  note = {Questions about polyphonic audio for audio language models. Data and code were not published},
  year = {2026},
  eprint = {2603.05128},
  archivePrefix = {arXiv}
}
"""


def polybench(
    predictions: Any = None,
    references: Any = None,
    options: Any = None,
    tasks: Any = None,
    *,
    ids: Any = None,
    groups: Any = None,
    polarity: Any = None,
    polyphony: Any = None,
    sources: Any = None,
    templates: Any = None,
    overlap: Any = None,
    parsed: bool = False,
    return_scores: bool = False,
) -> dict[str, Any]:
    """Return the share of n questions answered correctly, from m answers.

    - `predictions` [m]: the model's texts, read by `match_answer`; with `parsed` the positions of the options instead,
      from 0, as numbers or texts; -1, None or an empty text is an unparsed answer;
    - `references` [m]: the right answers, each exactly once among its options; `options` [m]: 2 to 26 texts each, in
      the order shown; `tasks` [m]: names of TASKS. Options of concurrency are Yes and No;
    - `ids` [m]: answers with the same id belong to one question whose options were shown in several orders. By default
      each answer has its own question. A question counts once, each of its R answers by 1/R; counts are of answers;
    - `groups` [m]: questions of one group are not independent; by default each question is its own;
    - `polarity` [m]: for concurrency the meaning of "Yes", one of POLARITIES; by default, and if empty, "overlap".
      Entries of other tasks are ignored;
    - `polyphony`, `sources`, `templates` [m]: texts or integers; `overlap` [m]: seconds, or None.

    Numbers over all questions:

    - `accuracy`: the mean over the tasks present, without replaced ones (REPLACED); `accuracy_micro`: the mean over all
      questions; `chance`, `majority`, `best_position`, `macro_f1`, `weighted_f1`: means over the same tasks as the
      accuracy, see below; `adjusted`: (accuracy - chance) / (1 - chance); `n` questions, `answers` m;
    - `unparsed`: answers that name no option, refusals included; `refused`: refusals; `accuracy_parsed`: share of
      correct answers among the parsed ones, None if there are none;
    - by task name its accuracy, and `chance_NAME`, `majority_NAME`, `macro_f1_NAME`, `groups_right_NAME` too;
    - `groups_right`: share of groups with every answer correct, `groups_right_chance`: the mean of Π 1/k over their
      answers, `groups`: their number; all over the tasks of the accuracy; None without groups;
    - with several orders, else None: `correctness`: share of correct answers, `consistency`: share of pairs of orders
      with the same option's text, `all_orders_right`: share of questions correct in every order; each is a mean over
      the questions with two orders or more. Sources: arXiv 2510.04584 for the first two. `consistency_chance` and
      `all_orders_right_chance`: their values for random options, 1/k and Π 1/k;
    - `position_distance`: ½ Σ |p − e|, with p the share of each position among the chosen options, and e the expected
      share without a habit: the mean of 1/k. None if nothing was parsed;
    - for concurrency, with "overlap" as the positive state whatever the polarity, counts of answers: `tp`, `fp`, `tn`,
      `fn`, `unparsed_overlap` and `unparsed_alone` (by the true state), six that add up to its answers. `sensitivity` =
      tp / (tp + fn + unparsed_overlap), `specificity` = tn / (tn + fp + unparsed_alone), `balanced_accuracy` their
      mean, None if a state does not occur; `f1` = 2 tp / (2 tp + fp + fn + unparsed_overlap); `mcc`: the correlation of
      states (R_K of Gorodkin 2004, with unparsed as a third state; Matthews' if nothing is), 0 if undefined;
      `yes_rate`: share of Yes among parsed answers. All None without the task.

    Tables:

    - `interval` of the accuracy, and `intervals` by name of accuracy_micro, the tasks and all other shares: 95 %,
      [low, high], by RESAMPLES draws of entire groups with replacement: the expanded percentile interval (Hesterberg
      2015), whose level corrects for few groups. If all groups are right, or all wrong, the bootstrap has no spread,
      and the free end is Wilson's; for a single group the interval is [0, 1];
    - `by_task`: for each task n, answers, accuracy, interval, adjusted; `chance`: mean of 1/k; `majority`: accuracy of
      the best constant text; `best_position`: accuracy of the best constant position; `macro_f1`, `weighted_f1` over
      the texts that are right answers (detection: over positions, since its texts all differ); an unparsed answer
      lowers recall but no class's precision; unparsed, refused, accuracy_parsed; groups, groups_right,
      groups_right_chance, interval_groups_right; correctness, consistency, all_orders_right; position,
      position_distance;
    - `position`: the share of each letter among the chosen options;
    - `by_polyphony`, `by_source`, `by_template`: for each value the fields of a task up to accuracy_parsed, except F1;
      majority and best_position are the best of each task. `by_overlap`: these fields for "0" and for quartiles "1" to
      "4" of longer overlaps, with `least` and `most` in s. Empty if not given.

    With return_scores, lists of n, in the order in which questions first occur: `scores`, weighted so that tasks count
    equally and the mean is the accuracy (0 for replaced tasks); `scores_correct`: share of its orders that are right.
    Lists of m: `choices`, positions, None where unparsed; `rules`, names of the rules that decided each answer.

    Raises ValueError when lengths differ or are 0; a text is not a string; a right answer is not exactly once among its
    options; options are fewer than 2 or more than 26; a task, or a polarity, is unknown; options of concurrency are not
    Yes and No; answers of one id disagree in the right answer, the set of options or any other property of the
    question; a position is not one of the options; overlap is not a number of seconds.

    >>> polybench([1, -1], ["b", "b"], [["a", "b"]] * 2, ["duration"] * 2, parsed=True)["accuracy"]
    0.5
    """
    given = {"predictions": predictions, "references": references, "options": options, "tasks": tasks}
    of_questions = {"groups": groups, "polarity": polarity, "polyphony": polyphony, "sources": sources}
    of_questions |= {"templates": templates, "overlap": overlap}
    a = read_questions(given, ids, of_questions, parsed)

    ranked = in_means(a.asked)
    of_means = np.any([a.asked[task] for task in ranked], axis=0)
    ones = {task: mask.astype(np.float64) for task, mask in a.asked.items()}
    ratios: dict[str, Pairs] = {
        "accuracy": [(a.correct * ones[task], ones[task]) for task in ranked],
        "accuracy_micro": [(a.correct, np.ones(a.n))],
        **{task: [(a.correct * mask, mask)] for task, mask in ones.items()},
        **shared_ratios(a, of_means),
    }
    if a.has_groups:
        ratios |= {f"groups_right_{task}": [groups_right(a, mask)] for task, mask in a.asked.items()}
    states, rates = _states(a)
    ratios |= rates
    draws, intervals = Intervals(a.group), dict[str, Any]()
    for name, pairs in ratios.items():
        draws.ask(pairs, intervals, name)
    table = dict[str, dict[str, Any]]()
    for task, mask in a.asked.items():
        # In place: the row is written to when the draws are done.
        row = table[task] = share_row(a, mask, draws)
        row |= _f1(a, mask)
        if a.has_groups:
            right, number = groups_right(a, mask)
            row |= group_numbers(a, mask) | {"groups_right": float(right.sum() / number.sum())}
            draws.ask([(right, number)], row, "interval_groups_right")
        row |= order_numbers(a, mask) | positions(a, mask[a.question])
    numbers = shared_numbers(a, of_means, ratios) | states
    for name in ("chance", "majority", "best_position", "macro_f1", "weighted_f1"):
        numbers[name] = float(np.mean([table[task][name] for task in ranked]))
    numbers["adjusted"] = adjusted(numbers["accuracy"], numbers["chance"])
    for task, row in table.items():
        numbers |= {f"{name}_{task}": row[name] for name in ("chance", "majority", "macro_f1")}
    result = {name: numbers.get(name) for name in MEASURES}
    result |= {"interval": None, "intervals": intervals, "by_task": table, "position": numbers["position"]}
    for name, key in (("by_polyphony", "polyphony"), ("by_source", "sources"), ("by_template", "templates")):
        labels = a.labels.get(key) or []
        # Sorted numbers, then sorted texts.
        values = sorted(set(labels), key=lambda entry: (isinstance(entry, str), entry))
        masks = {str(value): np.array([entry == value for entry in labels]) for value in values}
        result[name] = {value: share_row(a, mask, draws) for value, mask in masks.items()}
    result["by_overlap"] = _by_overlap(a, draws)
    draws.fill()
    result["interval"] = intervals.pop("accuracy")
    if return_scores:
        sizes = np.array([a.asked[task].sum() if task in a.asked else 1 for task in TASKS])
        weights = np.where(of_means, a.n / len(ranked) / sizes[a.task], 0)
        result |= {"scores": (a.correct * weights).tolist(), "scores_correct": a.correct.tolist()}
        result |= {"choices": a.choices, "rules": list(a.rules)}
    return result


Polybench = metric_class(
    polybench,
    {"predictions": "text", "references": "text", "options": "texts", "tasks": "text"},
    citation=_CITATION,
    whole=False,
)


# ----- scores
def _f1(a: Questions, mask: Mask) -> dict[str, float]:
    """Return the averaged F1 of each right answer's text as a class, or of its position."""
    rows = np.flatnonzero(mask[a.question])
    truth: list[Any] = [a.text[a.question[row]] for row in rows]
    taken: list[Any] = [a.text_taken[row] for row in rows]
    if TASKS[a.task[mask][0]] == "detection":
        truth, taken = a.place[rows].tolist(), [a.choices[row] for row in rows]
    codes = {label: code for code, label in enumerate(dict.fromkeys(truth))}
    true = np.array([codes[label] for label in truth])
    said = np.array([codes.get(label, len(codes)) for label in taken])
    weight, size = a.weight[rows], len(codes)
    support, predicted = (np.bincount(x, weight, minlength=size + 1)[:size] for x in (true, said))
    hits = np.bincount(true, weight * (true == said), minlength=size)
    scores = 2 * hits / (support + predicted)
    return {"macro_f1": float(scores.mean()), "weighted_f1": float(np.average(scores, weights=support))}


def _states(a: Questions) -> tuple[dict[str, Any], dict[str, Pairs]]:
    """Return counts of answers about concurrency by true and stated state, scores from them, and ratios.

    The ratios are the shares among these that have an interval.
    """
    rows = np.flatnonzero(a.task[a.question] == TASKS.index("concurrency"))
    if not len(rows):
        return {}, {}
    says_overlap = a.says_overlap[a.question[rows]]
    is_yes = np.array([folded_words(a.text[a.question[row]]) == ("yes",) for row in rows], bool)
    says_yes = np.array([folded_words(a.text_taken[row] or "") == ("yes",) for row in rows], bool)
    truth, said = (np.where(yes == says_overlap, 0, 1) for yes in (is_yes, says_yes))
    said[a.choice[rows] < 0] = 2
    # Rows: overlap, alone; columns: overlap, alone, unparsed.
    counts = np.bincount(truth * 3 + said, minlength=6).reshape(2, 3)
    (tp, fn, unparsed_overlap), (fp, tn, unparsed_alone) = counts.tolist()
    ratios: dict[str, Pairs] = {}
    for state, name in enumerate(("sensitivity", "specificity")):
        if (truth == state).any():
            places, is_true = a.question[rows], truth == state
            ratios[name] = [(sums_at(places, is_true & (said == state), a.n), sums_at(places, is_true, a.n))]
    if len(ratios) == 2:
        ratios["balanced_accuracy"] = [pair for pairs in ratios.values() for pair in pairs]
    # R_K, with unparsed as a third class.
    total, true, stated = counts.sum(), np.append(counts.sum(axis=1), 0), counts.sum(axis=0)
    spread = (total**2 - true @ true) * (total**2 - stated @ stated)
    f1 = 2 * tp + fp + fn + unparsed_overlap
    return {
        **{"tp": tp, "fp": fp, "tn": tn, "fn": fn},
        **{"unparsed_overlap": unparsed_overlap, "unparsed_alone": unparsed_alone},
        "f1": 2 * tp / f1 if f1 else 0.0,
        "mcc": float((np.trace(counts) * total - true @ stated) / math.sqrt(spread)) if spread > 0 else 0.0,
        "yes_rate": float(says_yes[said < 2].mean()) if (said < 2).any() else None,
    }, ratios


def _by_overlap(a: Questions, draws: Intervals) -> dict[str, Any]:
    """Return scores of questions without overlap, and of quartiles of the others by its length."""
    if a.overlap is None:
        return {}
    bins = np.where(a.overlap == 0, 0, -1)
    positive = a.overlap > 0
    if positive.any():
        edges = np.quantile(a.overlap[positive], [0.25, 0.5, 0.75])
        bins[positive] = 1 + np.searchsorted(edges, a.overlap[positive])
    table = {}
    for place in sorted(set(bins.tolist()) - {-1}):
        seconds = a.overlap[bins == place]
        table[str(place)] = share_row(a, bins == place, draws)
        table[str(place)] |= {"least": float(seconds.min()), "most": float(seconds.max())}
    return table


VERSION = 3
"""Increases with every change of code or constants that can change a number."""

_QUESTIONS = {
    "counting": "how many kinds of sound there are",
    "duration": "which sound is heard longest",
    "concurrency": "whether anything overlaps a sound",
    "classification": "what overlaps a sound",
    "detection": "when two sounds first overlap",
    "counting_together": "how many kinds of sound are heard at the same time, at most",
    "duration_longest": "which sound has the longest uninterrupted event",
}


def _task_measures(task: str, question: str) -> dict[str, Fields]:
    """Return the measures of one task: its accuracy and its references."""
    heading, of = (
        ("longest event", "the longest event") if task == "duration_longest" else (task.replace("_", " "),) * 2
    )
    constant = "accuracy of always giving the one text that is right most often"
    over = "; over positions" if task == "detection" else ""
    right = f"share of right answers to the question {question}"
    return {
        task: share(heading, right, null=f"chance_{task}"),
        f"chance_{task}": hidden(share(f"chance of {of}", f"accuracy of drawing an option, of {of}")),
        f"majority_{task}": hidden(share(f"best constant answer of {of}", f"{constant}, of {of}")),
        f"macro_f1_{task}": hidden(share(f"macro F1 of {of}", f"F1 of each right answer as a class, of {of}{over}")),
        f"groups_right_{task}": hidden(
            share(f"groups right, {of}", f"share of groups with every question of {of} answered correctly")
        ),
    }


MEASURES = {
    "accuracy": share(
        "PolyBench",
        "share of questions answered correctly, the mean over the tasks; if asked, counting together and the longest "
        "event replace counting and duration in it",
        null="chance",
        column="score",
        outside="questions of a task with fewer questions weigh more, so that tasks weigh the same",
    ),
    "accuracy_micro": share(
        "accuracy of all questions",
        "share of questions answered correctly, each counting equally",
        column="score_correct",
        shown=False,
    ),
    "adjusted": {
        "heading": "above chance",
        "meaning": "accuracy rescaled so that chance is 0 and all correct is 1: (accuracy − chance) / (1 − chance)",
        "range": (-25.0, 1.0),
        "shown": False,
    },
    "chance": share("chance", "accuracy of drawing an option: the mean of 1/k of k options, the mean over the tasks"),
    "majority": share(
        "best constant answer", "accuracy of always giving the one text that is right most often in a task", shown=False
    ),
    "best_position": share(
        "best constant position",
        "accuracy of always taking the position that is right most often in a task",
        shown=False,
    ),
    "macro_f1": share(
        "macro F1",
        "F1 of each right answer as a class, the mean over the answers of a task, then over the tasks; for detection, "
        "over positions",
        shown=False,
    ),
    "weighted_f1": share("weighted F1", "macro F1 with answers weighted by how often they are right", shown=False),
    "n": count("questions", "number of questions", 0.0),
    **ANSWER_MEASURES,
}
MEASURES |= {name: fields for task, words in _QUESTIONS.items() for name, fields in _task_measures(task, words).items()}
MEASURES |= {
    "groups_right": share(
        "groups right",
        "share of groups, such as the counterparts of a scene or a recording, with every question answered "
        "correctly; over the tasks of the accuracy",
        null="groups_right_chance",
    ),
    **GROUP_MEASURES,
    "correctness": share(
        "correctness",
        "share of orders of the options in which a question is answered correctly, the mean over the questions",
        shown=False,
    ),
    **ORDER_MEASURES,
    "tp": count("true overlaps", "number of answers about concurrency that say overlap when there is one", 0.0),
    "fp": count("false overlaps", "number of answers about concurrency that say overlap when there is none", 0.0),
    "tn": count("true alone", "number of answers about concurrency that say alone when nothing overlaps", 0.0),
    "fn": count("false alone", "number of answers about concurrency that say alone when something overlaps", 0.0),
    "unparsed_overlap": count(
        "unparsed when overlap is right",
        "number of answers about concurrency that say neither when something overlaps",
        0.0,
    ),
    "unparsed_alone": count(
        "unparsed when alone is right",
        "number of answers about concurrency that say neither when nothing overlaps",
        0.0,
    ),
    "sensitivity": share(
        "sensitivity", "share of answers about concurrency that are right when something overlaps", shown=False
    ),
    "specificity": share(
        "specificity", "share of answers about concurrency that are right when nothing overlaps", shown=False
    ),
    "balanced_accuracy": share(
        "balanced accuracy of concurrency", "mean of sensitivity and specificity: ½ without listening", shown=False
    ),
    "f1": share("F1 of overlap", "F1 of answers about concurrency, with overlap as the class", shown=False),
    "mcc": {
        "heading": "correlation of states",
        "meaning": "Matthews' correlation of answers about concurrency with the truth, with unparsed as a third state",
        "range": (-1.0, 1.0),
        "shown": False,
    },
    "yes_rate": share(
        "share of Yes", "share of Yes among the answers about concurrency that name an option", shown=False
    ),
}
"""Description of each number that `polybench` returns, by name, the score first."""


def embedding_match(
    texts: Sequence[str], options: Sequence[Sequence[str]], embed: Callable[[Sequence[str]], Floats]
) -> list[int]:
    """Return the position of the option that is most similar to each complete answer, by sentence embeddings.

    arXiv 2603.05128 matches this way, with NV-Embed-v2. It never abstains: a refusal, a lone letter or an empty text
    gets the nearest option too, and the first of equal ones. So it is not a score here, but can be reported with one:
    `polybench` with ``parsed=True`` takes the positions.

    Args:
        texts: m answers, unchanged.
        options: m lists of texts.
        embed: maps n different texts to vectors [n, d] of any length; cosines are compared, and a cosine with zeros is
            0.

    >>> def embed(texts):
    ...     return np.array([[text.count("dog"), text.count("rain")] for text in texts], float)
    >>> embedding_match(["The dog, by far.", "I hear rain"], [["rain", "dog"]] * 2, embed)
    [1, 0]
    """
    places = {text: place for place, text in enumerate(dict.fromkeys([*texts, *itertools.chain(*options)]))}
    vectors = np.asarray(embed(list(places)), np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(lengths > 0, lengths, 1)
    return [
        int(np.argmax(vectors[[places[option] for option in listed]] @ vectors[places[text]]))
        for text, listed in zip(texts, options, strict=True)
    ]
