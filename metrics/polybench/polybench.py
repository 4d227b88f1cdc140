"""PolyBench: how well multiple-choice questions about sounds that overlap are answered, in seven tasks.

A model hears a clip and reads a question with 2 to 26 options; what it says is raw text. `match_answer` reads the text
by fixed rules: its last conclusion counts; a text that comes down to no option is *unparsed*. An unparsed answer is
wrong, is counted, and is never replaced by a draw. Every share stands beside what needs no ears: chance (1/k of k
options), the best constant text (`majority`) and the best constant position.

A *group* is what is not independent: the questions of one recording, or the k twins of one scene, whose answers differ
only because labels changed places. Intervals are drawn over groups; `groups_right` is the strict score, all of a group.

>>> options = [["dog", "rain"], ["rain", "dog"], ["Yes", "No"], ["Yes", "No"]]
>>> tasks = ["duration", "duration", "concurrency", "concurrency"]
>>> texts = ["B. rain", "The rain, rather than the dog.", "Yes", "I'm sorry, I cannot hear the audio."]
>>> result = polybench(texts, ["rain", "dog", "Yes", "No"], options, tasks)
>>> result["accuracy"], result["chance"], result["unparsed"], result["refused"]
(0.5, 0.5, 1, 1)
>>> match_answer("B. rain", ["rain", "dog"])
Match(option=None, rule='conflict')
"""

import dataclasses
import functools
import itertools
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import datasets
import evaluate
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TASKS = (
    *("counting", "duration", "concurrency", "classification", "detection"),
    *("counting_together", "duration_longest"),
)
"""The five tasks, in the order of the paper; then two that need the sense of time that two of these do without."""

REPLACED = {"counting": "counting_together", "duration": "duration_longest"}
"""Tasks of the paper that statistics of a clip without time answer in part, and what takes the place of each in means
over tasks where it is asked."""

POLARITIES = ("overlap", "alone")
"""What "Yes" says of a question of concurrency: that something overlaps the sound asked about, or that nothing does."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""What the options are called, in their order."""

REFUSED = ("refusal",)
UNPARSED = ("empty", "echo", "no such letter", "conflict", "none of them", "refusal", "several", "nothing")
"""Rules of `match_answer` after which an answer is unparsed; those of REFUSED are refusals."""

RESAMPLES = 2000
"""Draws of the bootstrap."""

_LABELS = ("polyphony", "sources", "templates")
_CERTAINTY = 1.959963984540054  # the .975 quantile of the normal distribution

_DESCRIPTION = """\
PolyBench measures how well multiple-choice questions about overlapping sounds are answered: counting, duration,
concurrency, classification and detection, how many sound at once and which has the longest event. It reads raw text by
fixed rules, counts what cannot be read and what is refused, and gives every share beside chance, the best constant
answer and an interval over recordings or twins.
"""

_CITATION = """\
@misc{polybench_2026,
  title = {{PolyBench}},
  note = {Questions about polyphonic audio for audio language models. Data and code were not published},
  year = {2026},
  eprint = {2603.05128},
  archivePrefix = {arXiv}
}
"""

_INPUTS = """
Args:
    predictions: m texts, the answers as the model gave them; with parsed=True positions of options, -1 for none.
    references: m texts, each one of its options: the right answers.
    options: m lists of 2 to 26 texts, in the order in which they were shown.
    tasks: m texts: counting, duration, concurrency, classification, detection, counting_together or duration_longest.
    ids: optional, m texts; answers of one id are to one question under several orders of its options.
    groups: optional, m texts, equal for questions that are not independent, such as those of one recording or twins.
    polarity: optional, m texts, of concurrency what "Yes" says: overlap (by default) or alone.
    polyphony, sources, templates: optional, m texts or integers that scores are also told apart by.
    overlap: optional, m numbers, seconds of overlap, that scores are also told apart by.
    parsed: whether predictions are positions.
    return_scores: also return lists of each question and of each answer.
Returns:
    a dictionary, described at `polybench` in the module: accuracy, chance, majority, by_task and so on.
Examples:
    >>> import evaluate
    >>> metric = evaluate.load("polybench")
    >>> options = [["dog", "rain"], ["Yes", "No"]]
    >>> texts, tasks = ["(B) rain", "No, it is heard alone."], ["duration", "concurrency"]
    >>> result = metric.compute(predictions=texts, references=["rain", "Yes"], options=options, tasks=tasks)
    >>> result["accuracy"], result["duration"], result["fn"], result["unparsed"]
    (0.5, 1.0, 1, 0)
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
    """Return how many of n questions are answered rightly, by m answers.

    - `predictions` [m]: the texts that a model gave, read by `match_answer`; with `parsed` the positions of the options
      instead, from 0, as numbers or texts, where -1, None or an empty text is an unparsed answer;
    - `references` [m]: the right answers, each exactly once among its options; `options` [m]: 2 to 26 texts each, in
      the order shown; `tasks` [m]: names of TASKS. Options of concurrency are Yes and No;
    - `ids` [m]: answers of one id are to one question whose options were shown in several orders. By default each
      answer is to a question of its own. A question counts once, each of its R answers by 1/R; counts are of answers;
    - `groups` [m]: questions that share one are not independent; by default each question is its own;
    - `polarity` [m]: of concurrency what "Yes" says, one of POLARITIES; by default, and where empty, "overlap". Entries
      of other tasks are not looked at;
    - `polyphony`, `sources`, `templates` [m]: texts or integers; `overlap` [m]: seconds, or None.

    Numbers, of all questions:

    - `accuracy`: the mean over the tasks that there are, without those whose place another takes (REPLACED);
      `accuracy_micro`: the mean over all questions; `chance`, `majority`, `best_position`, `macro_f1`, `weighted_f1`:
      means over the same tasks as the accuracy, see below; `adjusted`:
      (accuracy - chance) / (1 - chance); `n` questions, `answers` m;
    - `unparsed`: answers that name no option, refusals among them; `refused`: those that are refusals;
      `accuracy_parsed`: share of right ones among the others, None where there are none;
    - by name of a task its accuracy, and `chance_NAME`, `majority_NAME`, `macro_f1_NAME`, `groups_right_NAME` likewise;
    - `groups_right`: share of groups of which every answer is right, `groups_right_chance`: the mean of Π 1/k over
      their answers, `groups`: how many; all of the tasks that the accuracy is of; None without groups;
    - with several orders, else None: `correctness`: share of right answers, `consistency`: share of pairs of orders
      that got the same option's text, `all_orders_right`: of questions that are right in every order; each a mean over
      the questions with two orders or more. Sources: arXiv 2510.04584 for the first two. `consistency_chance` and
      `all_orders_right_chance`: of draws, 1/k and Π 1/k;
    - `position_distance`: ½ Σ |p − e|, p being the share of each position among the options taken, and e what it would
      be without a habit: the mean of 1/k. None where nothing was parsed;
    - of concurrency, with "overlap" as the positive state whatever the polarity, counts of answers: `tp`, `fp`, `tn`,
      `fn`, `unparsed_overlap` and `unparsed_alone` (the states that were right), six that add up to its answers.
      `sensitivity` = tp / (tp + fn + unparsed_overlap), `specificity` likewise, `balanced_accuracy` their mean, None
      where a state does not occur; `f1` = 2 tp / (2 tp + fp + fn + unparsed_overlap); `mcc`: the correlation of states
      (R_K of Gorodkin 2004, unparsed being a third; Matthews' where nothing is), 0 where it is not defined;
      `yes_rate`: share of Yes among parsed answers. All None without the task.

    Tables:

    - `interval` of the accuracy, and `intervals` by name of accuracy_micro, the tasks and what else is a share: 95 %,
      [low, high], by RESAMPLES draws of whole groups with replacement: the expanded percentile interval (Hesterberg
      2015), whose level makes up for few groups. Where all groups are right, or all wrong, draws tell nothing, and the
      end that is free is Wilson's; of a single group the interval is [0, 1];
    - `by_task`: of each task n, answers, accuracy, interval, adjusted; `chance`: mean of 1/k; `majority`: of always
      giving the one best text; `best_position`: of always taking the one best position; `macro_f1`, `weighted_f1` over
      the texts that are right answers (detection: over positions, since its texts all differ), where an unparsed answer
      lowers recall but no class's precision; unparsed, refused, accuracy_parsed; groups, groups_right,
      groups_right_chance, interval_groups_right; correctness, consistency, all_orders_right; position,
      position_distance;
    - `position`: the share of each letter among the options taken;
    - `by_polyphony`, `by_source`, `by_template`: of each value the same as of a task, up to accuracy_parsed, but for
      F1; majority and best_position are of the best of each task. `by_overlap`: likewise of "0" and of quartiles "1" to
      "4" of what is longer, with `least` and `most` in s. Empty where not given.

    With return_scores, lists of n, in the order in which questions are first met: `scores`, which weigh the questions
    so that tasks weigh the same, and whose mean is the accuracy (0 of a task whose place another takes);
    `scores_correct`: share of its orders that are right.
    Lists of m: `choices`, positions, None where unparsed; `rules`, names of the rules that decided.

    Raises ValueError when lengths differ or are 0; a text is none; an answer is not exactly once among its options;
    options are fewer than 2 or more than 26; a task, or a polarity, is unknown; options of concurrency are not Yes and
    No; answers of one id disagree in the right answer, the set of options or anything else that is of the question; a
    position is none of the options; overlap is no number of seconds.

    >>> polybench([1, -1], ["b", "b"], [["a", "b"]] * 2, ["duration"] * 2, parsed=True)["accuracy"]
    0.5
    """
    given = {"predictions": predictions, "references": references, "options": options, "tasks": tasks}
    of_questions = {"groups": groups, "polarity": polarity, "polyphony": polyphony, "sources": sources}
    of_questions |= {"templates": templates, "overlap": overlap}
    a = _questions(given, ids, of_questions, parsed)

    ratios, draws, intervals = _ratios(a), _Intervals(a.group), dict[str, Any]()
    for name, pairs in ratios.items():
        draws.ask(pairs, intervals, name)
    table = {task: _task_row(a, a.task == place, draws) for place, task in enumerate(TASKS) if (a.task == place).any()}
    numbers = _overall(a, table)
    numbers |= {name: _mean_of_ratios(pairs) for name, pairs in ratios.items()}
    numbers |= _states(a)
    result = {name: numbers.get(name) for name in MEASURES}
    result |= {"interval": None, "intervals": intervals, "by_task": table}
    result["position"] = _position(a, np.ones(a.m, bool))["position"]
    for name, key in (("by_polyphony", "polyphony"), ("by_source", "sources"), ("by_template", "templates")):
        result[name] = {str(value): _row(a, mask, draws) for value, mask in _values(a.labels.get(key))}
    result["by_overlap"] = _by_overlap(a, draws)
    draws.fill()
    result["interval"] = intervals.pop("accuracy")
    if return_scores:
        correct = a.per_question(a.right)
        counts = np.bincount(a.task[a.ranked], minlength=len(TASKS))
        weights = np.where(a.ranked, a.n / (counts > 0).sum() / np.maximum(counts, 1)[a.task], 0)
        result["scores"] = (correct * weights).tolist()
        result["scores_correct"] = correct.tolist()
        result["choices"] = [None if choice < 0 else int(choice) for choice in a.choice]
        result["rules"] = list(a.rules)
    return result


class Polybench(evaluate.Metric):  # type: ignore[misc]
    """PolyBench as a metric of the `evaluate` library; `polybench` in this module does the work."""

    def _info(self) -> Any:
        text = datasets.Value("string")
        features = {"predictions": text, "references": text, "options": datasets.Sequence(text), "tasks": text}
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_INPUTS,
            features=datasets.Features(features),
            homepage="https://arxiv.org/abs/2603.05128",
            reference_urls=["https://arxiv.org/abs/2603.05128", "https://arxiv.org/abs/2510.04584"],
        )

    def compute(self, **inputs: Any) -> dict[str, Any] | None:
        """Score the answers given here, or those collected by `add` and `add_batch`."""
        given = [name for name in ("predictions", "references", "options", "tasks") if inputs.get(name) is not None]
        if given and self.writer is None and self.num_process == 1:
            # Nothing was collected before, so the detour through an Arrow file would only cost time.
            return polybench(**inputs)
        result: dict[str, Any] | None = super().compute(**inputs)
        return result

    def _compute(self, **inputs: Any) -> dict[str, Any]:
        return polybench(**inputs)


# ----- what is given


@dataclass(frozen=True)
class _Questions:
    """n questions and m answers to them.

    Attributes:
        question: number of the question of each answer, [m].
        options: number of options of each, [m]; of a question it is the same in every order.
        place: position of the right option, [m]; choice: position of that taken, -1 where there is none, [m].
        text_taken: the text of that taken, None where there is none, [m].
        rules: how each was read, [m].
        weight: 1/R of a question with R answers, [m].
        task, group: numbers, [n]; has_groups: whether groups were given.
        text: the right answers, [n]; says_overlap: what "Yes" says, [n].
        k: number of options, [n].
        labels: what scores are told apart by, [n] by name.
        overlap: seconds, NaN where unknown, [n]; None where not given.
    """

    question: Ints
    options: Ints
    place: Ints
    choice: Ints
    text_taken: tuple[str | None, ...]
    rules: tuple[str, ...]
    weight: Floats
    task: Ints
    group: Ints
    has_groups: bool
    text: tuple[str, ...]
    says_overlap: NDArray[np.bool_]
    k: Ints
    labels: Mapping[str, list[Any]]
    overlap: Floats | None

    @property
    def m(self) -> int:
        return len(self.question)

    @property
    def n(self) -> int:
        return len(self.task)

    @functools.cached_property
    def ranked(self) -> NDArray[np.bool_]:
        """Questions of the tasks that means over tasks are of, [n]."""
        asked = in_means(task for place, task in enumerate(TASKS) if (self.task == place).any())
        return np.isin(self.task, [TASKS.index(task) for task in asked])

    @property
    def right(self) -> Floats:
        """Whether each answer is right, [m]."""
        right: Floats = (self.choice == self.place).astype(np.float64)
        return right

    @property
    def orders(self) -> Ints:
        """Number of answers of each question, [n]."""
        counts: Ints = np.bincount(self.question, minlength=self.n)
        return counts

    def per_question(self, values: Floats) -> Floats:
        """Means over the answers of each question, [m] to [n]."""
        means: Floats = _sums(self.question, values, self.n) / self.orders
        return means


def _questions(given: Mapping[str, Any], ids: Any, of_questions: Mapping[str, Any], parsed: bool) -> _Questions:
    """The answers, or ValueError."""
    columns, names = _columns(given, ids, of_questions)
    references, options, tasks = columns["references"], columns["options"], columns["tasks"]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    question = np.array([numbers[name] for name in names])
    first = np.unique(question, return_index=True)[1]
    _check_agreement(names, question, first, columns)
    polarity = columns.get("polarity", ["overlap"] * len(names))
    choices, rules = _choices(columns["predictions"], options, polarity, parsed)
    taken = [texts[choice] if choice >= 0 else None for texts, choice in zip(options, choices, strict=True)]
    counts = np.bincount(question)
    groups, overlap = columns.get("groups"), columns.get("overlap")
    # By name, so that draws do not depend on the order of the rows.
    keys = groups or (names if ids is not None else None)
    return _Questions(
        question=question,
        options=np.array([len(texts) for texts in options]),
        place=np.array([texts.index(text) for texts, text in zip(options, references, strict=True)]),
        choice=np.array(choices),
        text_taken=tuple(taken),
        rules=tuple(rules),
        weight=1 / counts[question],
        task=np.array([TASKS.index(tasks[row]) for row in first]),
        group=np.unique([repr(keys[row]) for row in first], return_inverse=True)[1] if keys else np.arange(len(first)),
        has_groups=groups is not None,
        text=tuple(references[row] for row in first),
        says_overlap=np.array([polarity[row] == "overlap" for row in first]),
        k=np.array([len(options[row]) for row in first]),
        labels={name: [columns[name][row] for row in first] for name in _LABELS if name in columns},
        overlap=None if overlap is None else np.array([overlap[row] for row in first], np.float64),
    )


def _columns(
    given: Mapping[str, Any], ids: Any, of_questions: Mapping[str, Any]
) -> tuple[dict[str, list[Any]], list[Any]]:
    """What is given as lists of one length, checked, and the name of the question of each answer."""
    missing = [name for name, values in given.items() if values is None]
    if missing:
        rest = ", ".join(name for name in given if name not in missing) or "nothing"
        raise ValueError(f"polybench got {rest} without {', '.join(missing)}.")
    columns = {name: _listed(name, values) for name, values in given.items()}
    extra = {name: _listed(name, values) for name, values in of_questions.items() if values is not None}
    names: list[Any] = [(row,) for row in range(len(columns["references"]))]
    if ids is not None:
        names = _names_of("ids", _listed("ids", ids))
    lengths = {name: len(values) for name, values in (columns | extra | {"ids": names}).items()}
    if len(set(lengths.values())) > 1 or not names:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"There must be one entry for each answer, and one answer at least; got {shown}.")
    references = columns["references"]
    columns["options"] = [_option_texts(row, entry, references[row]) for row, entry in enumerate(columns["options"])]
    for row, task in enumerate(columns["tasks"]):
        if task not in TASKS:
            raise ValueError(f"tasks must be {', '.join(TASKS)}; row {row} has {task!r}.")
        if task == "concurrency" and sorted(map(_folded, columns["options"][row])) != [("no",), ("yes",)]:
            raise ValueError(f"Options of concurrency are Yes and No; row {row} has {columns['options'][row]!r}.")
    return columns | _checked(extra, columns["tasks"]), names


def _choices(
    predictions: Sequence[Any], options: Sequence[list[str]], polarity: Sequence[str], parsed: bool
) -> tuple[list[int], list[str]]:
    """The position that each answer takes, -1 where it takes none, and the rule that decided."""
    rows = list(enumerate(zip(predictions, options, polarity, strict=True)))
    if parsed:
        choices = [_position_given(row, entry, texts) for row, (entry, texts, _) in rows]
        return choices, ["position" if choice >= 0 else "nothing" for choice in choices]
    matches = [_matched(row, entry, texts, says) for row, (entry, texts, says) in rows]
    return [-1 if match.option is None else match.option for match in matches], [match.rule for match in matches]


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise ValueError(f"{name} must be a list; got {values!r}.")
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    entries = values.tolist() if hasattr(values, "tolist") else values
    try:
        return list(entries)
    except TypeError:
        raise ValueError(f"{name} must be a list; got {values!r}.") from None


def _names_of(name: str, entries: Sequence[Any]) -> list[Any]:
    """Texts and whole numbers."""
    for row, entry in enumerate(entries):
        number = isinstance(entry, int | float) and not isinstance(entry, bool) and float(entry).is_integer()
        if not isinstance(entry, str) and not number:
            raise ValueError(f"{name} must be texts or integers; row {row} has {entry!r}.")
    return [entry if isinstance(entry, str) else int(entry) for entry in entries]


def _option_texts(row: int, entry: Any, reference: Any) -> list[str]:
    """The options of a row, or ValueError."""
    texts = entry.tolist() if hasattr(entry, "tolist") else entry
    if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"options must be a list of texts for each answer; row {row} has {entry!r}.")
    if not 2 <= len(texts) <= len(LETTERS):
        raise ValueError(f"A question has 2 to {len(LETTERS)} options; row {row} has {len(texts)}: {texts!r}.")
    if not isinstance(reference, str):
        raise ValueError(f"references must be texts; row {row} has {reference!r}.")
    count = list(texts).count(reference)
    if count != 1:
        times = "not" if count == 0 else f"{count} times"
        raise ValueError(
            f"The right answer is once among its options; in row {row} {reference!r} is {times} in {texts!r}."
        )
    return list(texts)


def _checked(extra: Mapping[str, list[Any]], tasks: Sequence[str]) -> dict[str, list[Any]]:
    """What is known of questions, each of its kind, or ValueError."""
    checked: dict[str, list[Any]] = {}
    for name, entries in extra.items():
        if name == "overlap":
            checked[name] = [_seconds(row, entry) for row, entry in enumerate(entries)]
        elif name == "polarity":
            checked[name] = [
                _polarity(row, entry) if task == "concurrency" else "overlap"
                for row, (entry, task) in enumerate(zip(entries, tasks, strict=True))
            ]
        else:
            checked[name] = _names_of(name, entries)
    return checked


def _seconds(row: int, entry: Any) -> float | None:
    if entry is None or (isinstance(entry, float) and math.isnan(entry)):
        return None
    number = isinstance(entry, int | float | np.number) and not isinstance(entry, bool)
    if not number or not 0 <= float(entry) < math.inf:
        raise ValueError(f"overlap must be seconds, at least 0, or None; row {row} has {entry!r}.")
    return float(entry)


def _polarity(row: int, entry: Any) -> str:
    if entry in (None, ""):
        return "overlap"
    if entry not in POLARITIES:
        raise ValueError(f"polarity must be {' or '.join(POLARITIES)}; row {row} has {entry!r}.")
    return str(entry)


def _check_agreement(names: Sequence[Any], question: Ints, first: Ints, columns: Mapping[str, Sequence[Any]]) -> None:
    """Raise ValueError when answers of one id are not to one question."""
    shared = {name: entries for name, entries in columns.items() if name != "predictions"}
    shared["options"] = [sorted(texts) for texts in columns["options"]]
    for row, place in enumerate(first[question]):
        for name, entries in shared.items():
            if entries[row] != entries[place]:
                what = "the set of options" if name == "options" else name
                raise ValueError(
                    f"Answers of one id are to one question; those of {names[row]!r} disagree in {what}: row {place} "
                    f"has {entries[place]!r}, row {row} {entries[row]!r}."
                )


def _position_given(row: int, entry: Any, options: Sequence[str]) -> int:
    if entry is None or entry == "":
        return -1
    try:
        position = int(entry)
        exact = not isinstance(entry, bool) and (isinstance(entry, str) or position == entry)
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact or not -1 <= position < len(options):
        raise ValueError(f"With parsed=True a prediction is 0 to {len(options) - 1}, or -1; row {row} has {entry!r}.")
    return position


def _matched(row: int, entry: Any, options: Sequence[str], polarity: str) -> "Match":
    if not isinstance(entry, str):
        raise ValueError(f"predictions must be texts, or positions with parsed=True; row {row} has {entry!r}.")
    return match_answer(entry, options, polarity)


# ----- scores


def _overall(a: _Questions, table: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Numbers of all tasks together that are no shares of their own."""
    everything = np.ones(a.n, bool)
    row = _row(a, everything)
    means = ("accuracy", "chance", "majority", "best_position", "macro_f1", "weighted_f1")
    ranked = in_means(table)
    numbers: dict[str, Any] = {name: float(np.mean([table[task][name] for task in ranked])) for name in means}
    numbers |= {name: row[name] for name in ("n", "answers", "unparsed", "refused", "accuracy_parsed")}
    numbers["adjusted"] = _adjusted(numbers["accuracy"], numbers["chance"])
    numbers |= {name: value for name, value in _orders(a, everything).items() if name.endswith("chance")}
    numbers["position_distance"] = _position(a, np.ones(a.m, bool))["position_distance"]
    if a.has_groups:
        numbers |= _groups(a, a.ranked)
    for task, part in table.items():
        numbers |= {f"{name}_{task}": part[name] for name in ("chance", "majority", "macro_f1")}
    return numbers


def in_means(tasks: Iterable[str]) -> list[str]:
    """Those of some tasks that means over tasks are of: without those whose place another of them takes."""
    asked = list(tasks)
    return [task for task in asked if REPLACED.get(task) not in asked]


def _row(a: _Questions, mask: NDArray[np.bool_], draws: "_Intervals | None" = None) -> dict[str, Any]:
    """Of some questions how many are right, and what they would be right by without listening."""
    rows = mask[a.question]
    correct, n = a.per_question(a.right), int(mask.sum())
    accuracy, chance = float(correct[mask].mean()), float((1 / a.k[mask]).mean())
    taken = rows & (a.choice >= 0)
    weight = float(a.weight[taken].sum())
    row = {
        "n": n,
        "answers": int(rows.sum()),
        "accuracy": accuracy,
        "interval": None,
        "adjusted": _adjusted(accuracy, chance),
        "chance": chance,
        "majority": _best_of_each_task(a, mask, _text_counts),
        "best_position": _best_of_each_task(a, mask, _place_counts),
        "unparsed": int(rows.sum() - taken.sum()),
        "refused": sum(a.rules[place] in REFUSED for place in np.flatnonzero(rows)),
        "accuracy_parsed": float((a.weight * a.right)[taken].sum()) / weight if weight else None,
    }
    if draws is not None:
        draws.ask([(correct * mask, mask.astype(np.float64))], row, "interval")
    return row


def _adjusted(accuracy: float, chance: float) -> float:
    return (accuracy - chance) / (1 - chance)


def _best_of_each_task(
    a: _Questions, mask: NDArray[np.bool_], counts: Callable[[_Questions, NDArray[np.bool_]], Floats]
) -> float:
    """Share of right answers of who always gives the same, in each task the best that there is."""
    parts = [mask & (a.task == task) for task in np.unique(a.task[mask])]
    return float(sum(counts(a, part).max() for part in parts) / mask.sum())


def _text_counts(a: _Questions, mask: NDArray[np.bool_]) -> Floats:
    texts = [a.text[place] for place in np.flatnonzero(mask)]
    return np.unique(texts, return_counts=True)[1].astype(np.float64)


def _place_counts(a: _Questions, mask: NDArray[np.bool_]) -> Floats:
    rows = mask[a.question]
    return _sums(a.place[rows], a.weight[rows])


def _sums(places: Ints, values: Any, count: int = 0) -> Floats:
    """Sums of values by place."""
    return np.bincount(places, values, minlength=count).astype(np.float64)


def _task_row(a: _Questions, mask: NDArray[np.bool_], draws: "_Intervals") -> dict[str, Any]:
    """All that there is of one task."""
    row = _row(a, mask, draws)
    row |= _f1(a, mask)
    if a.has_groups:
        right, count = _groups_right(a, mask)
        row |= _groups(a, mask) | {"groups_right": float(right.sum() / count.sum())}
        draws.ask([(right, count)], row, "interval_groups_right")
    # In place: the table is written to when the draws are done.
    row |= _orders(a, mask) | _position(a, mask[a.question])
    return row


def _f1(a: _Questions, mask: NDArray[np.bool_]) -> dict[str, float]:
    """F1 of each right answer's text as a class, or of its position, averaged."""
    rows = np.flatnonzero(mask[a.question])
    truth: list[Any]
    taken: list[Any]
    by_position = TASKS[a.task[mask][0]] == "detection"
    truth = [int(a.place[row]) if by_position else a.text[a.question[row]] for row in rows]
    taken = [(int(a.choice[row]) if by_position else a.text_taken[row]) if a.choice[row] >= 0 else None for row in rows]
    weight = a.weight[rows]
    codes = {label: code for code, label in enumerate(dict.fromkeys(truth))}
    true, said = (
        np.array([codes[label] for label in truth]),
        np.array([codes.get(label, len(codes)) for label in taken]),
    )
    support, predicted = (np.bincount(x, weight, minlength=len(codes) + 1)[: len(codes)] for x in (true, said))
    hits = np.bincount(true, weight * (true == said), minlength=len(codes))
    scores = 2 * hits / (support + predicted)
    return {"macro_f1": float(scores.mean()), "weighted_f1": float(np.average(scores, weights=support))}


def _groups_right(a: _Questions, mask: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Whether all of some questions of a group are right, at its first question, and 1 there, [n] each."""
    wrong = np.bincount(a.group[mask], a.per_question(a.right)[mask] < 1, minlength=a.group.max() + 1)
    first = np.flatnonzero(mask)[np.unique(a.group[mask], return_index=True)[1]]
    right, count = np.zeros(a.n), np.zeros(a.n)
    count[first] = 1
    right[first] = wrong[a.group[first]] == 0
    return right, count


def _groups(a: _Questions, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """Number of groups, and how many would be all right by drawing."""
    logarithms = np.bincount(a.group[mask], (a.orders * np.log(a.k))[mask], minlength=a.group.max() + 1)
    present = np.unique(a.group[mask])
    return {"groups": len(present), "groups_right_chance": float(np.exp(-logarithms[present]).mean())}


def _orders(a: _Questions, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """How questions with several orders are answered; nothing where there are none."""
    several = mask & (a.orders > 1)
    if not several.any():
        return {}
    orders, k = a.orders[several].astype(np.float64), a.k[several].astype(np.float64)
    parts = {name: float(values[several].mean()) for name, values in _order_scores(a).items()}
    return parts | {
        "consistency_chance": float((1 / k).mean()),
        "all_orders_right_chance": float(np.exp(-orders * np.log(k)).mean()),
    }


def _order_scores(a: _Questions) -> dict[str, Floats]:
    """Of each question, [n]; consistency is 0 where there is but one order."""
    correct = a.per_question(a.right)
    rows: list[list[int]] = [[] for _ in range(a.n)]
    for row, place in enumerate(a.question):
        rows[place].append(row)
    same = np.zeros(a.n)
    for place, answers in enumerate(rows):
        texts = [a.text_taken[row] for row in answers]
        pairs = list(itertools.combinations(texts, 2))
        same[place] = np.mean([one is not None and one == two for one, two in pairs]) if pairs else 0.0
    return {"correctness": correct, "consistency": same, "all_orders_right": (correct == 1).astype(np.float64)}


def _position(a: _Questions, rows: NDArray[np.bool_]) -> dict[str, Any]:
    """Share of each position among the options taken, and its distance from what it is without a habit."""
    taken = rows & (a.choice >= 0)
    weight, most = a.weight[taken], int(a.options[rows].max())
    if not len(weight):
        return {"position": {letter: None for letter in LETTERS[:most]}, "position_distance": None}
    shares = _sums(a.choice[taken], weight, most)
    by_size = np.bincount(a.options[taken], weight)
    expected = np.array([sum(part / k for k, part in enumerate(by_size) if k > place) for place in range(most)])
    shares /= shares.sum()
    distance = float(np.abs(shares - expected / expected.sum()).sum() / 2)
    return {
        "position": {letter: float(share) for letter, share in zip(LETTERS, shares, strict=False)},
        "position_distance": distance,
    }


def _states(a: _Questions) -> dict[str, Any]:
    """Counts of answers about concurrency by the states that are right and said, and what follows from them."""
    truth, said, says_yes = _true_and_said(a)
    if not len(truth):
        return {}
    # Rows: overlap, alone; columns: overlap, alone, unparsed.
    counts = np.bincount(truth * 3 + said, minlength=6).reshape(2, 3)
    (tp, fn, unparsed_overlap), (fp, tn, unparsed_alone) = counts.tolist()
    positives, negatives = counts.sum(axis=1).tolist()
    sensitivity = tp / positives if positives else None
    specificity = tn / negatives if negatives else None
    parsed = int((said < 2).sum())
    f1 = 2 * tp + fp + fn + unparsed_overlap
    return {
        **{"tp": tp, "fp": fp, "tn": tn, "fn": fn},
        **{"unparsed_overlap": unparsed_overlap, "unparsed_alone": unparsed_alone},
        **{"sensitivity": sensitivity, "specificity": specificity},
        "balanced_accuracy": None if sensitivity is None or specificity is None else (sensitivity + specificity) / 2,
        "f1": 2 * tp / f1 if f1 else 0.0,
        "mcc": _correlation(np.vstack([counts, np.zeros(3)])),
        "yes_rate": float(says_yes[said < 2].mean()) if parsed else None,
    }


def _true_and_said(a: _Questions) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Of answers about concurrency: the true state, that said (2: none), and whether Yes was said."""
    rows = np.flatnonzero(a.task[a.question] == TASKS.index("concurrency"))
    says_overlap = a.says_overlap[a.question[rows]]
    is_yes = np.array([_folded(a.text[a.question[row]]) == ("yes",) for row in rows], bool)
    says_yes = np.array([_folded(a.text_taken[row] or "") == ("yes",) for row in rows], bool)
    said = np.where(says_yes == says_overlap, 0, 1)
    said[a.choice[rows] < 0] = 2
    return np.where(is_yes == says_overlap, 0, 1), said, says_yes


def _correlation(counts: Floats) -> float:
    """R_K of a table of true and said classes; 0 where it is not defined."""
    total, true, said = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    covariance = np.trace(counts) * total - true @ said
    spread = (total**2 - true @ true) * (total**2 - said @ said)
    return float(covariance / math.sqrt(spread)) if spread > 0 else 0.0


def _values(labels: list[Any] | None) -> Iterator[tuple[Any, NDArray[np.bool_]]]:
    """Every value of a column, and which questions have it; numbers in their order, then texts."""
    for value in sorted(set(labels or []), key=lambda entry: (isinstance(entry, str), entry)):
        yield value, np.array([entry == value for entry in labels or []])


def _by_overlap(a: _Questions, draws: "_Intervals") -> dict[str, Any]:
    """Questions without overlap, and quartiles of the others by its length."""
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
        table[str(place)] = _row(a, bins == place, draws)
        table[str(place)] |= {"least": float(seconds.min()), "most": float(seconds.max())}
    return table


# ----- intervals

Pairs = Sequence[tuple[Floats, Floats]]
"""Of a mean of ratios Σ numerator / Σ denominator, these two, [n] each."""


def _ratios(a: _Questions) -> dict[str, Pairs]:
    """All shares that have an interval."""
    correct, ones = a.per_question(a.right), np.ones(a.n)
    of_task = {
        task: (a.task == place).astype(np.float64) for place, task in enumerate(TASKS) if (a.task == place).any()
    }
    ratios: dict[str, Pairs] = {"accuracy": [(correct * of_task[task], of_task[task]) for task in in_means(of_task)]}
    ratios["accuracy_micro"] = [(correct, ones)]
    ratios |= {task: [(correct * mask, mask)] for task, mask in of_task.items()}
    if a.has_groups:
        ratios["groups_right"] = [_groups_right(a, a.ranked)]
        ratios |= {f"groups_right_{task}": [_groups_right(a, mask > 0)] for task, mask in of_task.items()}
    if (a.orders > 1).any():
        several = (a.orders > 1).astype(np.float64)
        ratios |= {name: [(values * several, several)] for name, values in _order_scores(a).items()}
    truth, said, _ = _true_and_said(a)
    asked = np.flatnonzero(a.task[a.question] == TASKS.index("concurrency"))
    rates = {}
    for state, name in enumerate(("sensitivity", "specificity")):
        if (truth == state).any():
            places, is_true = a.question[asked], truth == state
            rates[name] = (_sums(places, is_true & (said == state), a.n), _sums(places, is_true, a.n))
    ratios |= {name: [pair] for name, pair in rates.items()}
    if len(rates) == 2:
        ratios["balanced_accuracy"] = list(rates.values())
    return ratios


def _mean_of_ratios(pairs: Pairs) -> float:
    return float(np.mean([numerator.sum() / denominator.sum() for numerator, denominator in pairs]))


class _Intervals:
    """95 % intervals of means of ratios, all by the same draws of whole groups."""

    def __init__(self, group: Ints) -> None:
        self._group = group
        self._asked: list[tuple[Pairs, dict[str, Any], str]] = []

    def ask(self, pairs: Pairs, table: dict[str, Any], key: str) -> None:
        """Have `fill` write the interval into a table."""
        table[key] = None
        self._asked.append((pairs, table, key))

    def fill(self) -> None:
        """Draw, and write every interval that was asked for."""
        columns = [column for pairs, _, _ in self._asked for pair in pairs for column in pair]
        sums = np.stack([_sums(self._group, column) for column in columns], axis=1)
        place, drawn = 0, _drawn_sums(sums)
        for pairs, table, key in self._asked:
            part = slice(place, place + 2 * len(pairs))
            place = part.stop
            table[key] = _share_interval(_mean_of_ratios(pairs), sums[:, part], drawn[:, part])


def _drawn_sums(sums: Floats) -> Floats:
    """Sums [RESAMPLES, columns] over as many groups as there are, drawn with replacement."""
    rng, count = np.random.default_rng(0), len(sums)
    # In blocks, so that memory does not grow with the number of groups.
    block = max(1, min(RESAMPLES, 2**22 // count))
    totals = []
    for start in range(0, RESAMPLES, block):
        size = min(block, RESAMPLES - start)
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        totals.append(np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count) @ sums)
    return np.concatenate(totals)


def _share_interval(value: float, sums: Floats, drawn: Floats) -> list[float]:
    """The interval of a value, from sums of numerators and denominators by turns: of groups, and of draws."""
    count = int((sums[:, 1::2] > 0).any(axis=1).sum())
    if count == 1:
        return [0.0, 1.0]
    if value in (0.0, 1.0):
        wide = _CERTAINTY**2 / (count + _CERTAINTY**2)
        return [0.0, wide] if value == 0 else [1 - wide, 1.0]
    present = drawn[:, 1::2] > 0
    parts = np.divide(drawn[:, 0::2], drawn[:, 1::2], out=np.zeros(present.shape), where=present)
    means = parts.sum(axis=1)[present.any(axis=1)] / present.sum(axis=1)[present.any(axis=1)]
    level = _expanded_level(count)
    low, high = np.quantile(means, [level, 1 - level])
    return [float(min(low, value)), float(max(high, value))]


def _expanded_level(count: int) -> float:
    """The lower tail of the percentile interval of `count` groups: Φ(−t √(G / (G − 1))), t Student's quantile."""
    z, df = _CERTAINTY, count - 1
    # Abramowitz and Stegun, 26.7.5; of 1 to 3 degrees of freedom the series is too short, by little that matters here.
    t = z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
    return 0.5 * math.erfc(t * math.sqrt(count / df) / math.sqrt(2))


# ----- matching an answer


@dataclass(frozen=True)
class Match:
    """What an answer was read as.

    Attributes:
        option: position of the option that it names; None where it is unparsed.
        rule: name of the rule that decided; where none names an option, one of UNPARSED.
    """

    option: int | None
    rule: str


def match_answer(text: str, options: Sequence[str], polarity: str = "overlap") -> Match:
    """Read an answer: its last conclusion counts, and two options in one conclusion are a conflict.

    1. What is read: what follows the end of the last thinking and the last ``<answer>``, and what the last
       ``\\boxed{}`` holds; of thinking that does not end nothing is. Of a text of more than READ_CHARACTERS, or
       READ_WORDS words, begin and end are read. Options that are repeated as a list ("A. dog B. rain") and questions
       are passed over: *echo* where nothing is left.
    2. What names an option is found: its letter, its text, "the second option", a number that counts sounds, two
       times, Yes or No. A letter beside a text ("B. dog", "the dog (B)") is one mention, of two options where they
       differ; what stands side by side ("A and C", "dog or rain") belongs together. A mention is *denied* by a word
       before it in its clause (not, neither, than, rather than, without), or by what is said of it ("is
       incorrect", "A) No").
    3. Sentence by sentence, conclusions are looked for: after "answer is", "choose" and so on, or with "is correct"
       (*answer is*); a letter alone on its line (*letter*), or in front of all (*letter first*); after "so",
       "therefore", "must be" and so on (*conclusion*); where letter after letter is gone through, the only one that is
       called right (*option by option*). A later one replaces an earlier one; what only explains replaces no answer.
       "Wait" and "actually" withdraw what was concluded before; without them, too, the later of two lines "Answer: …"
       counts. What only supposes ("if", "suppose", "let's say") concludes nothing.
    4. Where there is no conclusion: "none of the …" (*none of them*); an apology, or that nothing can be heard or told
       (*refusal*); else the only option that is mentioned and not denied (*mention*); of several the only one in a last
       sentence, or clause after "but", that compares them (*last sentence*); else *several*, or *nothing*. A text that
       breaks off in the middle of a phrase has no such mention.

    Unparsed are also *conflict*, and *no such letter*: a lone letter beyond the options. A short answer may name an
    option by its head noun ("brass" for "brass section"). "There is no other sound" and "only the bell is heard" mean
    No, "the sounds overlap" and "something else is heard" Yes; or the other way round where Yes says that the sound is
    alone. A guess counts: "I would say B, but I can't hear the audio" is B.

    Args:
        text: what the model said.
        options: 2 to 26 texts, in the order shown.
        polarity: what "Yes" says where the options are Yes and No: one of POLARITIES.

    >>> match_answer("<think>Rain, I guess.</think> It is the car horn.", ["car", "rain", "car horn"])
    Match(option=2, rule='mention')
    >>> match_answer("A. The dog stops early. So the answer is B, not A.", ["dog", "rain"])
    Match(option=1, rule='answer is')
    """
    form = _form(tuple(options))
    answer = _final_part(text)
    exact = _exact(answer, form)
    return exact or _Reading(answer, form, polarity == "alone").match()


@dataclass(frozen=True)
class _Form:
    """The options of a question, prepared for matching.

    Attributes:
        texts: as shown.
        folded: their words.
        phrases: a tree of the words of all options: by a word what may follow it, and by "" the options that end there.
        heads: words that only one option has, and may stand for it.
        yes_no: positions of Yes and No where these are the options.
        intervals: two numbers of each option, where all have two; else empty.
        counts: whether all are numbers.
    """

    texts: tuple[str, ...]
    folded: tuple[tuple[str, ...], ...]
    phrases: Mapping[str, Any]
    heads: Mapping[str, int]
    yes_no: Mapping[str, int]
    intervals: tuple[tuple[float, ...], ...]
    counts: bool

    def letter(self, letter: str) -> int | None:
        """Position of the option that a letter stands for."""
        place = LETTERS.find(letter.upper())
        return place if 0 <= place < len(self.texts) else None


@functools.lru_cache(maxsize=4096)
def _form(texts: tuple[str, ...]) -> _Form:
    folded = tuple(_folded(text) for text in texts)
    phrases: dict[str, Any] = {}
    for place, words in enumerate(folded):
        node = phrases
        for word in words:
            node = node.setdefault(_stem(word), {})
        if words:
            node[""] = node.get("", frozenset()) | {place}
    intervals = tuple(_digits(_plain(text)) for text in texts)
    return _Form(
        texts=texts,
        folded=folded,
        phrases=phrases,
        heads=_heads(folded),
        yes_no={words[0]: place for place, words in enumerate(folded)} if sorted(folded) == [("no",), ("yes",)] else {},
        intervals=intervals if all(len(numbers) == 2 for numbers in intervals) else (),
        counts=all(len(words) == 1 and _NUMBER.fullmatch(words[0]) for words in folded),
    )


_GENERAL = frozenset(
    [
        *("section", "sound", "sounds", "noise", "instrument", "instruments", "music", "small", "large", "male"),
        *("female", "other", "left", "right", "high", "low", "hand", "loud", "soft", "back", "front"),
    ]
)
"""Words that do not say by themselves which option is meant."""


def _heads(folded: Sequence[tuple[str, ...]]) -> dict[str, int]:
    """Words of options of several words that only one option has: nouns, not "electric", "plucked" or "running"."""
    having: dict[str, set[int]] = {}
    for place, words in enumerate(folded):
        for word in words:
            having.setdefault(_stem(word), set()).add(place)
    heads = {}
    for place, words in enumerate(folded):
        for position, word in enumerate(words):
            modifies = position + 1 < len(words) and word.endswith(("ic", "ed", "ing", "al", "en"))
            says = len(word) > 3 and word.isalpha() and not modifies and word not in _GENERAL
            if len(words) > 1 and says and having[_stem(word)] == {place}:
                heads[_stem(word)] = place
    return heads


def _exact(answer: str, form: _Form) -> Match | None:
    """A lone letter, an option's own text, or nothing: what needs no reading."""
    if not any(unicodedata.category(character)[0] in "LN" for character in answer):
        return Match(None, "empty")
    lone = _LONE_LETTER.fullmatch(answer)
    if lone is not None:
        option, texts = form.letter(lone[1]), [text.casefold() for text in form.texts]
        if lone[1].casefold() in texts and texts.index(lone[1].casefold()) != option:
            return Match(None, "conflict")
        return Match(option, "no such letter" if option is None else "letter")
    if form.texts.count(answer) == 1:
        return Match(form.texts.index(answer), "text")
    words = _folded(answer)
    return Match(form.folded.index(words), "text") if words and form.folded.count(words) == 1 else None


def embedding_match(
    texts: Sequence[str], options: Sequence[Sequence[str]], embed: Callable[[Sequence[str]], Floats]
) -> list[int]:
    """Return the position of the option that is most similar to each answer as a whole, by sentence embeddings.

    This is how arXiv 2603.05128 matches, by NV-Embed-v2. It never abstains: a refusal, a lone letter or an empty text
    is given an option too, whichever is nearest, of equal ones the first. So it is no score here, but may stand beside
    one: `polybench` with ``parsed=True`` takes the positions.

    Args:
        texts: m answers, as the model gave them.
        options: m lists of texts.
        embed: n different texts to vectors [n, d] of any length; cosines are compared, and that with zeros is 0.

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


# ----- matching: what is read, and its words

READ_CHARACTERS = (1000, 2000)
"""Of a longer answer so many characters at its begin and at its end are read: where conclusions stand."""

READ_WORDS = (300, 600)
"""Likewise of its words and marks."""

_SAME = str.maketrans("‘’‚‛′“”„‟«»″‐‑‒–—―−", '\'\'\'\'\'"""""""-------')
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060\ufeff]")
_SPECIAL = re.compile(r"<\|[^|<>]{0,40}\|>|</?s>|<(?:eos|bos|pad|end_of_turn)>|\[/?INST\]")
_LONE_LETTER = re.compile(r"[\W_]*([A-Za-z])[\W_]*")
_BOLD_LETTER = re.compile(r"(?<![\w*`])(\*{1,3}|__|`|\$) ?[(\[]?([A-Za-z])[)\]]? ?[.:]? ?\1(?![\w*`])")
_COMMAND = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox)\s{0,3}\{([^{}]*)\}")
_THOUGHT = r"(?:think|thinking|thought|reasoning)"
_THOUGHT_END = re.compile(rf"</ ?{_THOUGHT} ?>|\[/THINK\]", re.I)
_THOUGHT_START = re.compile(rf"< ?{_THOUGHT} ?>|\[THINK\]", re.I)
_ANSWER_START, _ANSWER_END = re.compile(r"< ?answer ?>", re.I), re.compile(r"< ?/ ?answer ?>", re.I)
_BESIDE = re.compile(r"[\s,/&]*(?:and|or)?[\s,/&]*", re.I)
_TAG = re.compile(r"</[A-Za-z]\w{0,20}>|<[A-Za-z]\w{1,20}/?>|<[a-z](?=>[^<]{0,40}</)>")
_PROMPT = re.compile(
    r"Answer with one letter only\.|Answer with the text of one option only, without its letter\.|"
    r"Explain, then letter\.|<\|?(?:assistant|im_start)\|?>",
    re.I,
)
"""The last lines of the prompts of this project: what follows is the answer."""

_NUMBER = re.compile(r"\d+(?::\d+)*(?:[.,]\d+)?")
_UNSPACED_RANGES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
"""Scripts that put no space between words, or join particles to them."""
_MARKS = "".join(chr(code) for code in range(0x300, 0x3000) if unicodedata.category(chr(code))[0] == "M")
_TOKEN = re.compile(
    rf"(?P<number>{_NUMBER.pattern})|(?P<unspaced>[{_UNSPACED_RANGES}][{_MARKS}]*)"
    rf"|(?P<word>[^\W\d_{_UNSPACED_RANGES}](?:[^\W\d_{_UNSPACED_RANGES}]|[{_MARKS}]|'(?=[^\W\d_]))*)"
    r"|(?P<line>\n)|(?P<mark>[^\s])"
)
_COUNTS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"),
)
_COUNT_OF = {word: str(count) for count, word in enumerate(_COUNTS)}


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, number, character of a script without spaces, end of a line or punctuation mark; the name of its group.

    Attributes:
        kind: which of these.
        raw, fold: as it is, and for comparison.
        start, end: its characters.
    """

    kind: str
    raw: str
    fold: str
    start: int
    end: int


def _plain(text: str) -> str:
    """A text without what does not matter to its meaning."""
    text = unicodedata.normalize("NFKC", _SPECIAL.sub(" ", text)).translate(_SAME)
    return _INVISIBLE.sub("", text).replace("\r\n", "\n").replace("\r", "\n").strip()


def _clipped(text: str) -> str:
    """The begin and the end of a text, where it is long: what is done with it takes bounded time."""
    return (
        text if len(text) <= sum(READ_CHARACTERS) else f"{text[: READ_CHARACTERS[0]]}\n…\n{text[-READ_CHARACTERS[1] :]}"
    )


def _final_part(text: str) -> str:
    """What a model gives as its answer."""
    text = _THOUGHT_START.split(_THOUGHT_END.split(_SPECIAL.sub(" ", text))[-1])[0]
    tagged = _ANSWER_START.split(text)
    if len(tagged) > 1:
        parts = [_ANSWER_END.split(tagged[-1])[0]]
        # "<answer>A</answer> or <answer>B</answer>" gives two.
        for before in tagged[-2:0:-1]:
            said = _ANSWER_END.split(before)
            if len(said) != 2 or len(said[1]) > 40 or not _BESIDE.fullmatch(said[1]):
                break
            parts.append(said[0])
        text = " or ".join(_clipped(part) for part in reversed(parts[:LONGEST]))
    boxed = list(re.finditer(r"\\f?boxed\s{0,3}\{", text))
    if boxed:
        text = _braced(text[boxed[-1].end() :])
    # Clipped before and after: a character may become many.
    text = _clipped(_plain(_clipped(_ANSWER_END.sub(" ", text))))
    text = _BOLD_LETTER.sub(r" (\2) ", _COMMAND.sub(r"\1", text))
    text = re.sub(r"[*`$#\\]|(?<!\w)_+|(?<!_)_+(?!\w)", "", _TAG.sub(" ", text)).strip()
    repeated = list(_PROMPT.finditer(text))
    return text[repeated[-1].end() :].strip() if repeated else text


LONGEST = 26
"""Most options, and most words of an option that are compared."""

SCANNED = 24
"""Most tokens that are looked at for how a sentence or clause goes on."""


def _braced(text: str) -> str:
    """What stands before the brace that closes one opened before the text."""
    depth = 1
    for place, character in enumerate(text):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0:
            return text[:place]
    return text


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        kind, raw = str(match.lastgroup), match[0]
        fold = raw.casefold() if kind == "word" else raw
        if kind == "word":
            fold = _COUNT_OF.get(fold, fold[:-2] if fold.endswith("'s") else fold)
        elif kind == "number":
            value = _value(raw)
            fold = raw if value is None else f"{value:.12g}"
        tokens.append(_Token(kind, raw, fold, match.start(), match.end()))
    return tokens


_CONTENT = frozenset(("word", "number", "unspaced"))
_ARTICLES = frozenset(("a", "an", "the"))


def _folded(text: str) -> tuple[str, ...]:
    """The words of a text for comparison: case, an article in front and how numbers are written do not matter."""
    words = [token.fold for token in _tokens(_plain(text)) if token.kind in _CONTENT]
    # "A." is a letter.
    has_article = len(words) > 1 and words[0] in _ARTICLES and re.match(r"[\W_]*(?:an?|the)\s+\w", text, re.I)
    return tuple(words[1:] if has_article else words)


def _stem(word: str) -> str:
    """A word without what makes it a plural or, where it is long, a form of a verb: "bells", "barking"."""
    if len(word) > 6 and word.endswith("ing"):
        return word[:-3]
    return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] != "s" else word


def _value(number: str) -> float | None:
    """A number in digits, of seconds or minutes:seconds; None where it is neither."""
    minutes, _, rest = number.rpartition(":")
    try:
        return 60 * float(minutes or 0) + float(rest.replace(",", "."))
    except ValueError:
        return None


def _digits(text: str) -> tuple[float, ...]:
    """The numbers in digits of a text."""
    values = [_value(number) for number in _NUMBER.findall(text)]
    return tuple(math.nan if value is None else value for value in values)


# ----- matching: words that say something of an option


def _set(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


_ENDS = frozenset(".!?;。…।")
_DELIMITERS = frozenset(".):]-,、}>\"'(/&|;!?=~…。」』】*")
_OPENING, _CLOSING = frozenset("([{<\"'「『【"), frozenset(")]}>\"'」』】")
_ALTERNATIVES = _set("and or nor und oder et ou y o e или и und/or 和 或 と か")
_JOINING = frozenset(",/&、|+") | _ALTERNATIVES | _ARTICLES | _set("possibly maybe perhaps both either also")
_FUNCTION = _set(
    "is was are were because since as and or nor but not isn't wasn't doesn't does in with would seems",
    "appears can can't",
    "cannot could should must may might has have had if which that would than rather over also so due given based for",
    "while whereas overlaps lasts sounds then however comes starts ends ist est es è é und et ou y o oder",
    "plays occurs too",
    "it remains fits matches wins goes correct right wrong incorrect false true only instead to at from",
    "by alone actually likely probably yes no",
)
"""What follows a letter that is no word: not "the C major chord"."""
_CHOICE = _set(
    "option options choice letter opción opcion opzione opção opcao variant вариант buchstabe lettre letra lettera"
)
_ANSWER = _set(
    "answer answers ans antwort lösung respuesta réponse resposta risposta ответ antwoord svar svaret odpowiedź cevap",
    "conclusion correction solution verdict jawaban đáp उत्तर",
)
_CORRECT = _set("correct right best final my appropriate suitable likely accurate true likeliest")
_COPULAS = _set("is was be are 're est es ist è é e är jest seems becomes remains adalah") | frozenset(
    ":=-—|>是为為は은는이が가"
)
_ACTIVE = _set(
    "choose chose select selected pick picked wähle elijo choisis scelgo escolho выбираю meant lean leaning prefer"
)
_UNSPACED_CUES = ("答案", "回答", "正解", "答え", "答えは", "正确答案", "정답", "답은", "选", "選", "应选", "故选")
_SO = _set("so therefore thus hence consequently accordingly overall total altogether leaves leaving donc daher")
_NOT_SO = _set("far that loud on much many as long quiet short called soft")
_REASONS = _set("because since as which while given due based where when although though whereas weil car porque")
_NEGATORS = _set(
    "not never neither nor without cannot except excluding unlike no than instead over eliminate exclude excluded rule",
    "eliminated against nicht kein keine pas non ni не isn't aren't wasn't weren't can't don't doesn't didn't won't",
    "couldn't wouldn't shouldn't hardly isnt dont none doubt doubtful unlikely implausible improbable",
)
_DENIALS = _set(
    "not isn't wasn't aren't weren't doesn't don't didn't cannot can't incorrect wrong false ruled excluded eliminated",
    "unlikely implausible improbable doubtful invalid absent out never silent inaudible no couldn't neither impossible",
) | frozenset("✗✘❌×❎")
_PRAISES = _set("correct right yes true best") | frozenset("✓✔✅☑")
_LINKS = _set(
    "is was are were does do did can could has have had seems sound sounds would be being option the answer to"
)
_FIRST_THOUGHT = _set("first initially thought originally seemed")
_SEEMING = _set("might may seem seems seemed appears appeared looks initially originally thought")
_CONTRAST = _set("but however yet although though aber mais pero")
_COMPARES = _set(
    "longest longer most overlap overlaps overlapping together simultaneously same dominates during only concurrently",
    "concurrent first leaves one simultaneous throughout while with more main",
)
_CUT = _set(
    "the a an and or of at about it is are was with to in from for so as but that which by on its this there than then",
    "since because while when if be has have option answer both between until i another need",
)
"""Words with which no sentence ends."""
_FILLERS = _set(
    "is it its it'd the a an this that there are answer sound sounds of means i would say hear most likely probably",
    "therefore thus clearly definitely simply just option choice letter be as 're correct",
)
_HEDGES = _set("may might could")
_QUESTION = _set("which what how is are does do did in while can whenever for when at from over")
_CORRECTING = (
    *(("wait",), ("actually",), ("hmm",), ("correction",), ("sorry",), ("apologies",), ("i", "meant"), ("no", "wait")),
    *(
        ("or", "rather"),
        ("on", "second", "thought"),
        ("let", "me", "reconsider"),
        ("let", "me", "check"),
        ("let", "me", "correct"),
    ),
    *(
        ("then", "again"),
        ("on", "reflection"),
        ("upon", "reflection"),
        ("scratch", "that"),
        ("i", "was", "wrong"),
        ("oops",),
        ("moment",),
        ("my", "mistake"),
    ),
)
_ORDINALS = {
    word: place
    for place, words in enumerate(
        (
            "first 1st erste ersten première premier primera primer prima primo primeira primeiro первый первая",
            "second 2nd zweite zweiten deuxième segunda segundo seconda secondo второй вторая",
            "third 3rd dritte dritten troisième tercera tercero terza terzo terceira terceiro третий третья",
            "fourth 4th vierte vierten quatrième cuarta cuarto quarta quarto четвёртый четвертый",
            "fifth 5th fünfte fünften cinquième quinta quinto пятый",
        )
    )
    for word in words.split()
} | dict.fromkeys(("last", "letzte", "letzten", "dernière", "dernier", "última", "último", "ultima"), -1)
_ORDERED = _CHOICE | _set(
    "answer alternative candidate interval item window opciones respuesta réponse antwort risposta"
)
_TONES = _set("note notes chord chords key keys pitch scale plan vitamin vitamins")
"""What letters name that are no options."""
_COUNTED = _set(
    "kind kinds type types sort sorts class classes category categories sound sounds source sources event events label",
    "labels noise noises altogether overall instruments instrument timbres timbre voices voice things audible heard",
    "sons son sonidos sonido tipos tipo suoni suono tipi klänge klang geräusche geräusch arten töne",
    "bruits sortes types",
    "sortes fontes sons quellen звука звуков звук видов вида источника geluiden ljud dźwięki ses",
)
_BETWEEN = _set(
    "different distinct separate unique main overlapping various individual simultaneous audible other",
    "total in can be are",
    "verschiedene verschieden unterschiedliche différents distincts diferentes distintos diversi diversos",
    "разных различных",
    "kinds of clear sound unlike single types seul seule",
)
_TOTAL = _set(
    "is are be equals hear heard exactly only just total count number about least most have has contains",
    "there makes so",
    "counted say think be were count identify sind gibt hay sono há есть a approximately around probably",
    "maybe possibly",
    "perhaps thus therefore wait actually meant rather not but",
)
_BEFORE_PRONOUN = _set("this that the no any each every which first second last other another some")
_UNITS = _set(
    "s sec secs second seconds ms hz khz db minute minutes min times bars beats octaves semitones percent"
) | {"%"}
_NUMBERS_ELSEWHERE = {
    word: count
    for count, words in enumerate(
        (
            "eins ein eine einer un qu'un una uno um uma один одна één en jeden bir 一 하나",
            "zwei deux dos due dois duas два две twee två dwa iki 二 两 兩 둘 두",
            "drei trois tres tre três три drie trzy üç 三 셋 세",
            "vier quatre cuatro quattro quatro четыре fyra cztery dört 四 넷 네",
            "fünf cinq cinco cinque пять vijf fem pięć beş 五 다섯",
            "sechs seis sei шесть zes sex sześć altı 六 여섯",
        ),
        1,
    )
    for word in words.split()
}
_COUNTERS = frozenset("个個種种类類つ개가지종")
_SAYS_YES = _set("yes yeah yep yup sí si sì oui ja да evet tak sim hai")
_SAYS_NO = _set("no nope nah nein non não nie нет nee nej hayır não")
_UNSPACED_YES_NO = (
    *(("不是", False), ("没有", False), ("沒有", False), ("不", False), ("否", False), ("いいえ", False)),
    *(
        ("아니", False),
        ("无", False),
        ("是", True),
        ("有", True),
        ("はい", True),
        ("네", True),
        ("예", True),
        ("对", True),
    ),
)
_AFTER_NO = _set(
    "it there the this that these those i you he she we they because since as at in only while during when nothing not",
)
_BEFORE_YES_NO = (
    _SO
    | _ANSWER
    | _COPULAS
    | _set(
        "course think say guess believe suppose afraid probably maybe actually wait hmm then be well",
        "definitely certainly likely perhaps clearly or and",
    )
)
_NO_SOUND = _set(
    "no nothing not never neither none without isn't aren't wasn't weren't doesn't don't didn't can't"
) | _set("cannot couldn't nobody nowhere nor")
_TOGETHER = _set("overlap overlaps overlapping overlapped simultaneous simultaneously concurrent concurrently")
_HEARD = _set("hear heard hearing audible present play plays playing sounds sounding perceive there exists")
_HEDGED = _set(
    "if whether may might maybe perhaps possibly possible unless except until then first initially later before after",
    "earlier afterwards would should unclear unsure uncertain unlikely doubt doubtful sometimes false once",
    "question task means check checks checking listen listened asked asks tell determine detect define",
)
"""Words of sentences that do not tell whether sounds overlap, or only when."""
_SURE = re.compile(
    r"\b(?:there (?:is |can be )?)?(?:no|without(?: a| any)?|beyond(?: a| any)?) (?:doubt|question)"
    r"(?: (?:about it|that))?\b"
    r"|\b(?:1 )?after (?:the other|another|each other)\b"
)
"""What takes nothing back: "no doubt", "one after the other"."""
_UNTRUE = re.compile(
    r"\b(?:not|isn't|hardly) (?:true|the case|correct|clear|certain|sure|obvious|evident)\b"
    r"|\b(?:untrue|incorrect|wrong)\b"
)
_CLAUSES = re.compile(r" ?[,;:] | (?:but|however|although|though|yet|because|since|and so|so|or) ")
_BESIDES = re.compile(r"^\W{0,3}(?:besides|apart from|aside from|in addition to|other than) ")
_NOT_ONLY = re.compile(r"\b(?:not|isn't) (?:only|just|the only|alone|on its own|by itself)\b|\bnever (?:\w+ )?alone\b")
_NOTHING_BUT = re.compile(r"\b(?:nothing|no sound|no other sound) (?:\w+ ){0,2}(?:but|other than|besides|apart from)\b")
_LONELY = re.compile(
    r"\b(?:is|are|was|heard|sounds|plays|rings|always|audible|present) (?:\w+ ){0,2}alone\b"
    r"|\b(?:on its own|by itself|in isolation)\b|\bthe only (?:\w+ )?(?:sound|source|thing|one|instrument|1)\b"
)
_ANOTHER = re.compile(
    r"\b(?:something|anything|nothing|things|sounds|sound|no one) else\b"
    r"|\b(?:other|another|additional|different|second) (?:\w+ )?"
    r"(?:sounds?|sources?|noises?|instruments?|events?|things?)\b"
)

_NONE = re.compile(
    r"\b(?:not|isn't)\s+(?:one\s+of|among)\s+(?:the|these)\s+(?:options|choices|answers)\b"
    r"|\bnone\s+of\s+(?:the(?!\s+others?\b)|these|them|those|above)\b|以上都不|都不是",
    re.I,
)
_ALL = re.compile(r"\ball\s+of\s+(?:the\s+above|the\s+options|them|these)\b", re.I)
_REFUSALS = re.compile(
    r"\b(?:i\s?(?:'m|am)|we(?:'re|\s+are))\s+(?:\w+\s+)?"
    r"(?:sorry|unable|not\s+able|not\s+(?:\w+\s+)?sure|unsure|uncertain|not\s+certain)\b"
    r"|^\W{0,9}(?:sorry|apologies)\b(?!\W{1,3}(?:i\s+meant|it|[a-z]\b))|\bi\s+apologi[sz]e\b"
    r"|\bas\s+an?\s+(?:[\w-]+\s+){0,2}(?:ai|model)\b"
    r"|\b(?:i|we)\s?"
    r"(?:cannot|can\s+not|can't|could\s+not|couldn't|am\s+not\s+able\s+to|do\s+not|don't|won't|will\s+not)\s+(?:\w+\s+)?"
    r"(?:determine|identify|tell|know|say|answer|assist|help|provide|process|access|analy[sz]e|play|perceive|listen|"
    r"have\s+(?:access|enough|sufficient|the\s+(?:ability|capability|audio)|any\s+(?:audio|information)|audio|information)|"
    r"(?:hear|see|find)\s+(?:(?:the|any|this|your|an|that)\s+)?(?:audio|recording|clip|file|attachment|it\b|sounds?\b(?!\s+other)))"
    r"|\bunable\s+to\s+(?:determine|identify|answer|hear|listen|process|access|tell|say|analy[sz]e|provide)\b"
    r"|\b(?:cannot|can't|can\s+not|could\s+not)\s+be\s+(?:determined|answered|identified|told)\b"
    r"|\b(?:impossible|not\s+possible)\s+to\s+(?:determine|tell|say|answer|identify|know)\b"
    r"|\b(?:difficult|hard)\s+to\s+(?:determine|tell|say|answer|identify|know)\b"
    r"|\b(?:insufficient|not\s+enough)\s+(?:information|context|data|detail)|\bno\s+answer\b"
    r"|\bno\s+(?:audio|sound\s+file|recording|clip)\s+(?:\w+\s+)?"
    r"(?:provided|attached|available|given|uploaded|input)\b"
    r"|\b(?:please|could\s+you)\s+(?:\w+\s+)?(?:provide|upload|share|attach|send|describe)\b|\bno\s+idea\b"
    r"|无法|抱歉|对不起|我不知道|不能(?:确定|回答|听|判断)|わかりません|分かりません|申し訳|すみません|죄송"
    r"|\bне\s+могу\b|\bизвините\b|\bне\s+знаю\b|\blo\s+siento\b|\bno\s+puedo\b|\bdésolée?\b"
    r"|\bje\s+ne\s+(?:peux|sais)\b|\btut\s+mir\s+leid\b"
    r"|\bkann\s+(?:\w+\s+)?(?:nicht|keine?n?)\s+(?:\w+\s+)?(?:beantworten|sagen|hören|bestimmen)\b",
    re.I,
)
_OFFERS = re.compile(
    r"^\W{0,9}(?:\w{1,9}\W{1,3}){1,4}(?:i|we)(?:\s?'(?:d|ll|m)|\s+(?:can|could|would|will|am))\s+"
    r"(?:(?:be\s+)?(?:\w+\s+)?to\s+|certainly\s+|gladly\s+)?(?:help|assist)\b"
    r"|^\W{0,9}yes\W{1,3}i\s+(?:do\s+)?(?:understand|see)\W{0,3}$"
    r"|\b(?:please|could\s+you|can\s+you)\s+(?:\w+\s+)?(?:provide|upload|share|attach|send)\s+"
    r"(?:(?:me|us)\s+)?(?:the|your|an?|that|this)?\s*(?:\w+\s+)?(?:audio|recording|clip|file|sound)\b",
    re.I,
)
"""A "Yes" to the request rather than to the question."""
_BUT = re.compile(r"\b(?:but|however|though|maybe|probably|perhaps(?!\s+you)|aber|mais|pero)\b|但", re.I)


# ----- matching: where options are mentioned


@dataclass(frozen=True, slots=True)
class _Mention:
    """Words that name an option.

    Attributes:
        start, end: its tokens.
        options: that it names: several where a letter and a text differ, or texts are the same but for small words.
        kind: letter, text (a letter may stand beside it), head, ordinal, count, number (that may be no count),
            interval, yes or no.
        led: whether a letter stands in front.
        denier: the word by which it is denied, empty where it is not.
        praised: whether it is called right.
        group: number of what stands side by side.
    """

    start: int
    end: int
    options: frozenset[int]
    kind: str
    led: bool = False
    denier: str = ""
    praised: bool = False
    group: int = -1


_Span = tuple[int, int]


class _Words:
    """The words of an answer, and what options they mention."""

    def __init__(self, text: str, form: _Form) -> None:
        self.text, self.form = text, form
        tokens = _tokens(text)
        if len(tokens) > sum(READ_WORDS):
            gap = _Token("line", "\n", "\n", tokens[READ_WORDS[0]].start, tokens[READ_WORDS[0]].start)
            tokens = [*tokens[: READ_WORDS[0]], gap, *tokens[-READ_WORDS[1] :]]
        self.tokens, self.count = tokens, len(tokens)
        self.content = [place for place, token in enumerate(self.tokens) if token.kind in _CONTENT]
        self.rank = {place: rank for rank, place in enumerate(self.content)}
        texts = self._texts()
        self.heads = self._heads(texts)
        named = [*texts, *self._letters(texts), *self._ordinals()]
        named += self._intervals() if self.form.intervals else []
        named += self._yes_no() if self.form.yes_no else []
        named += self._numbers() if self.form.counts else []
        self.single = self._without_inner(named)

    def fold(self, place: int) -> str:
        """The token at a place, empty beyond the ends."""
        return self.tokens[place].fold if 0 <= place < self.count else ""

    def kind(self, place: int) -> str:
        """The kind of the token at a place, empty beyond the ends."""
        return self.tokens[place].kind if 0 <= place < self.count else ""

    def next_words(self, place: int, count: int) -> list[str]:
        """The words from a token on, without punctuation."""
        while place < len(self.tokens) and place not in self.rank:
            place += 1
        rank = self.rank.get(place, len(self.content))
        return [self.tokens[position].fold for position in self.content[rank : rank + count]]

    def words_before(self, place: int, count: int) -> list[str]:
        """The words before a token, the nearest first."""
        place -= 1
        while place >= 0 and place not in self.rank:
            place -= 1
        rank = self.rank.get(place, -1)
        return [self.tokens[position].fold for position in reversed(self.content[max(rank + 1 - count, 0) : rank + 1])]

    def words_and_marks(self, start: int, end: int) -> list[str]:
        """All tokens from one up to another."""
        return [token.fold for token in self.tokens[start:end]]

    def words_of(self, start: int, end: int) -> list[str]:
        """The words among tokens."""
        return [token.fold for token in self.tokens[start:end] if token.kind in _CONTENT]

    def is_start(self, place: int) -> bool:
        """Whether a token is the first word of a line or sentence."""
        place -= 1
        while self.kind(place) == "mark" and self.fold(place) not in _ENDS:
            if self.fold(place) in ",:":
                return False
            place -= 1
        return place < 0 or self.kind(place) == "line" or self.fold(place) in _ENDS

    def _without_inner(self, mentions: Sequence[_Mention]) -> list[_Mention]:
        """In order, without mentions within others."""
        kept: list[_Mention] = []
        for mention in sorted(mentions, key=lambda mention: (mention.start, -mention.end)):
            if not kept or mention.start >= kept[-1].end:
                kept.append(mention)
        return kept

    def _texts(self) -> list[_Mention]:
        if self.form.counts or self.form.yes_no or self.form.intervals:
            return []
        stems = [_stem(self.tokens[place].fold) for place in self.content]
        joined = [*itertools.starmap(self._joined, itertools.pairwise(self.content)), False]
        mentions, rank = [], 0
        while rank < len(stems):
            # All options at once, word by word: texts that begin alike, again and again, take no longer.
            node, at, longest, options = self.form.phrases, rank, 0, frozenset[int]()
            while at < len(stems) and stems[at] in node and (at == rank or joined[at - 1]):
                node, at = node[stems[at]], at + 1
                if "" in node:
                    longest, options = at - rank, node[""]
            if longest:
                last = self.content[rank + longest - 1]
                mentions.append(_Mention(self.content[rank], last + 1, options, "text"))
            rank += max(longest, 1)
        return mentions

    def _joined(self, first: int, last: int) -> bool:
        """Whether nothing but a mark or two stands between two words."""
        end, start = self.tokens[first].end, self.tokens[last].start
        return start - end <= 3 and "\n" not in self.text[end:start]

    def _heads(self, texts: Sequence[_Mention]) -> list[_Mention]:
        taken = {place for mention in texts for place in range(mention.start, mention.end)}
        return [
            _Mention(place, place + 1, frozenset([self.form.heads[_stem(self.fold(place))]]), "head")
            for place in self.content
            if _stem(self.fold(place)) in self.form.heads and place not in taken
        ]

    def _letters(self, texts: Sequence[_Mention]) -> list[_Mention]:
        starts = {mention.start for mention in texts}
        mentions = []
        for place in self.content:
            token = self.tokens[place]
            option = self.form.letter(token.raw) if token.kind == "word" and len(token.raw) == 1 else None
            if option is not None and self._is_letter(place, starts):
                mentions.append(_Mention(place, place + 1, frozenset([option]), "letter", True))
        return mentions

    def _is_letter(self, place: int, starts: set[int]) -> bool:
        """Whether a single letter is the name of an option, and no word."""
        token, after = self.tokens[place], self.fold(place + 1)
        for beside in (place - 1, place + 1):
            if self.kind(beside) in ("word", "number"):
                other = self.tokens[beside]
                if token.start in (other.end, other.start - 1):
                    return False
        before = self.fold(place - 1)
        if before in _OPENING and after in _CLOSING:
            joined = self.kind(place - 2) == "word" and self.tokens[place - 2].end == self.tokens[place - 1].start
            return not joined or before != "("
        # An abbreviation: "A.M.", "e.g."
        follows_dot = after == "." and self.kind(place + 2) == "word" and len(self.tokens[place + 2].raw) == 1
        if follows_dot and self.tokens[place + 2].start == token.end + 1:
            return False
        if before == "/" and self.fold(place - 2) == "n":
            return False
        if self._names_a_tone(place):
            return False
        ends = self.kind(place + 1) in ("", "line", "mark", "unspaced")
        cued = before in _CHOICE or before in _ANSWER
        if token.raw.islower():
            labels = self.is_start(place) and after in (".", ")", ":") and self.kind(place - 1) in ("", "line")
            answers = (before in _COPULAS and not _ANSWER.isdisjoint(self.words_before(place, 4))) or cued
            return labels or (answers and (ends or (after in _FUNCTION and token.raw != "a")))
        if token.raw == "I":
            return after in (")", ".", ":") and before in (*_OPENING, "")
        if ends or cued:
            return True
        first = token.raw == "A" and self.is_start(place)
        if after in _FUNCTION:
            return not (
                first and after in ("in", "from", "so", "only", "likely", "true", "false", "right", "no", "over")
            )
        follows = place + 1 in starts or (self.kind(place + 1) == "number" and self.form.counts)
        follows |= bool(self.form.yes_no) and after in ("yes", "no")
        follows |= len(after) == 1 and self.tokens[place + 1].raw.isupper() and self.form.letter(after) is not None
        return follows and not first and (token.raw != "A" or before not in ("", "is", "hear", "heard", "was"))

    def _names_a_tone(self, place: int) -> bool:
        """Whether a letter is that of a note, a key or the like: "the note is a C", "in the key of D", "plan B"."""
        for at in range(place - 1, max(place - 5, -1), -1):
            if self.fold(at) in _TONES:
                return not (self.fold(at) == "note" and self.is_start(at))
            if self.fold(at) not in ("is", "was", "of", "a", "an", "the"):
                break
        return False

    def _ordinals(self) -> list[_Mention]:
        """ "The second option", "option 2", 第二个选项; of "the second one" only where little else is said."""
        mentions, size = [], len(self.form.texts)
        for rank, place in enumerate(self.content):
            word, next_place = self.fold(place), self.content[rank + 1] if rank + 1 < len(self.content) else -1
            follows = self.fold(next_place)
            position = _ORDINALS.get(word)
            if position is None and self.kind(place) == "number" and follows in ("st", "nd", "rd", "th"):
                value = _value(self.tokens[place].raw)
                position = int(value) - 1 if value is not None and 1 <= value <= size else None
                next_place = self.content[rank + 2] if rank + 2 < len(self.content) else -1
                follows = self.fold(next_place)
            if position is not None:
                short = follows == "1" and len(self.content) <= 8
                if (follows in _ORDERED or short) and position < size and self._adjoin(place, next_place):
                    mentions.append(_Mention(place, next_place + 1, frozenset([position % size]), "ordinal"))
            elif word in _CHOICE and not self.form.counts and follows:
                if follows in ("number", "no", "nr"):
                    next_place = self.content[rank + 2] if rank + 2 < len(self.content) else -1
                value = _value(self.tokens[next_place].fold) if self.fold(next_place).isdecimal() else None
                if value is not None and 1 <= value <= size and self._adjoin(place, next_place):
                    mentions.append(_Mention(place, next_place + 1, frozenset([int(value) - 1]), "ordinal"))
            elif word == "第" and follows in _NUMBERS_ELSEWHERE and rank + 2 < len(self.content):
                position = _NUMBERS_ELSEWHERE[follows] - 1
                named = "".join(self.fold(p) for p in self.content[rank + 2 : rank + 5])
                if position < size and re.match("[个個]?(?:选项|選項|选|答案|選択肢)", named):
                    mentions.append(_Mention(place, self.content[rank + 2], frozenset([position]), "ordinal"))
        return mentions

    def _adjoin(self, first: int, last: int) -> bool:
        """Whether nothing but words stands between two words."""
        return all(self.kind(place) in _CONTENT or self.fold(place) in "#(" for place in range(first, last))

    def _intervals(self) -> list[_Mention]:
        """Two numbers with "to" and units between."""
        between = (
            _UNITS
            | _set("to and until till through bis à a до 到 the second at t and - ~ , = から まで e and y 秒 의 ;")
            | {"-"}
        )
        mentions, numbers = [], [place for place in self.content if self.kind(place) == "number"]
        for first, last in itertools.pairwise(numbers):
            words = [self.fold(place) for place in range(first + 1, last)]
            if len(words) > 5 or not words or not between.issuperset(words) or "\n" in words:
                continue
            bracketed = self.fold(first - 1) in ("[", "(") and self.fold(last + 1) in ("]", ")")
            if words == [","] and not bracketed:
                continue
            pair = tuple(_value(self.tokens[place].raw) for place in (first, last))
            if pair in self.form.intervals:
                end = last + 1 + (self.fold(last + 1) in _UNITS)
                mentions.append(_Mention(first, end, frozenset([self.form.intervals.index(pair)]), "interval"))
        return mentions

    def _yes_no(self) -> list[_Mention]:
        mentions = []
        for rank, place in enumerate(self.content):
            token = self.tokens[place]
            if token.kind == "unspaced":
                if rank and not self.is_start(place):
                    continue
                ahead = "".join(self.fold(position) for position in self.content[rank : rank + 3])
                for said, is_yes in _UNSPACED_YES_NO:
                    if ahead.startswith(said):
                        mentions.append(self._said(place, is_yes))
                        break
                continue
            before, after = self.fold(place - 1), self.fold(place + 1)
            opens = self.is_start(place) or self._leads_to_yes_no(place)
            if not opens:
                continue
            if token.fold in _SAYS_YES and token.fold not in ("da", "si", "tak", "ja", "sim", "hai", "oui", "evet"):
                mentions.append(self._said(place, True))
            elif token.fold in _SAYS_YES | _SAYS_NO and (
                self.kind(place + 1) in ("", "line", "mark", "unspaced")
                or (after in _AFTER_NO | _ALTERNATIVES and before != ",")
            ):
                mentions.append(self._said(place, token.fold in _SAYS_YES))
            elif len(self.content) == 1 and token.fold in ("true", "false", "correct", "incorrect"):
                mentions.append(self._said(place, token.fold in ("true", "correct")))
        return mentions

    def _leads_to_yes_no(self, place: int) -> bool:
        """Whether the words before tell that yes, or no, is meant: "the answer is no", but not "there is no"."""
        before, *earlier = self.words_before(place, 5) or [""]
        if self.kind(place - 1) == "mark":
            return self.fold(place - 1) in (":", "=", ">", "|", ",", "(", '"', "-", "'", "{", "/", ";")
        if before in _ALTERNATIVES:
            return bool(earlier) and earlier[0] in _SAYS_YES | _SAYS_NO
        if before in _COPULAS:
            return before != "be" and not (_ANSWER | _CHOICE).isdisjoint(earlier)
        return before in _BEFORE_YES_NO

    def _said(self, place: int, is_yes: bool) -> _Mention:
        return _Mention(place, place + 1, frozenset([self.form.yes_no["yes" if is_yes else "no"]]), "yes or no")

    def _number(self, place: int) -> str:
        """A number as the options have it, empty where a word is none."""
        word = self.fold(place)
        if (
            word == "single"
            and self.fold(place - 1) == "a"
            and self.fold(place + 1) in ("kind", "type", "sort", "class")
        ):
            return "1"
        if word in _NUMBERS_ELSEWHERE:
            return str(_NUMBERS_ELSEWHERE[word])
        return word if _NUMBER.fullmatch(word) else ""

    def _numbers(self) -> list[_Mention]:
        """Numbers; those that say how many sounds there are, and are no time, level or pronoun, are counts."""
        numbers = [place for place in self.content if self._number(place)]
        small = _JOINING | _FILLERS | _COUNTED | _BETWEEN | _COUNTERS | _TOTAL | {"to", "both", "either"}
        only = all(place in numbers or self.fold(place) in small for place in self.content)
        only &= not any(self.fold(place + 1) in _UNITS for place in numbers)
        mentions, after, is_count = [], len(self.tokens), False
        for place in reversed(numbers):
            foreign = self.fold(place) in _NUMBERS_ELSEWHERE
            joins = after < len(self.tokens) and self.words_of(place + 1, after) in (
                ["or"],
                ["to"],
                ["and"],
                ["o"],
                ["ou"],
            )
            is_count = (
                self._is_count(place) or (only and (not foreign or len(self.content) <= 4)) or (is_count and joins)
            )
            options = frozenset(at for at, words in enumerate(self.form.folded) if words == (self._number(place),))
            if is_count or (options and not foreign):
                mentions.append(_Mention(place, place + 1, options, "count" if is_count else "number"))
            after = place
        return mentions[::-1]

    def _is_count(self, place: int) -> bool:
        before, raw = self.words_before(place, 1), self.tokens[place].raw.casefold()
        word_before = before[0] if before and self.kind(place - 1) in (*_CONTENT, "mark") else ""
        if raw == "one" and (word_before in _BEFORE_PRONOUN or self.fold(place + 1) == "of"):
            return False
        after = place + 1
        # "Three (3) sounds".
        if self.fold(after) == "(" and self._number(after + 1) == self._number(place) and self.fold(after + 2) == ")":
            after += 3
        if self.fold(after) in _UNITS:
            return False
        follows = self.next_words(after, 4) if self.kind(after) != "line" else []
        for word in follows:
            if word in _COUNTED or word in _COUNTERS:
                return True
            if word not in _BETWEEN or word == "total":
                if word == "total":
                    return True
                break
        opens = not word_before or self.fold(place - 1) in (":", "=", "(", '"') or self.is_start(place)
        ends = self.kind(after) in ("", "line") or (self.kind(after) == "mark" and self.fold(after) not in "(%/-'")
        if self.fold(after) == "." and self.is_start(place) and self.kind(after + 1) not in ("", "line"):
            # "1. Bell" is an item of a list.
            return False
        if self.fold(place - 1) == ",":
            return ends and word_before in ("no", "wait", "actually", "rather", "sorry")
        return ends and (word_before in _TOTAL or opens)


# ----- matching: mentions side by side, and what is said of them


class _Reading(_Words):
    """An answer, read sentence by sentence; see `match_answer`."""

    def __init__(self, text: str, form: _Form, is_alone: bool) -> None:
        super().__init__(text, form)
        self.is_alone, self.withdrawn = is_alone, 0
        self.within_single = {place for mention in self.single for place in range(mention.start, mention.end)}
        self.mentions = self._merged(self.single)
        self.sentences = self._sentences()
        self.mentions = self._judged(self._grouped(self.mentions))

    def match(self, spare: int = sum(READ_WORDS)) -> Match:
        """What the answer is read as; without lists of options so many words and marks are read anew at most."""
        echo = self._echo()
        if echo:
            if len(self.tokens) - sum(last - first for first, last in echo) > spare:
                # Each list that goes may leave another one: of a text made of them nothing else is to be expected.
                return Match(None, "echo")
            kept, end = [], 0
            for first, last in echo:
                kept.append(self.text[end : self.tokens[first].start])
                end = self.tokens[last - 1].end
            rest = "\n".join([*kept, self.text[end:]]).strip()
            left = _exact(rest, self.form)
            if left is not None:
                return Match(None, "echo") if left.rule == "empty" else left
            anew = _Reading(rest, self.form, self.is_alone)
            return anew.match(spare - len(anew.tokens))
        concluded = self._conclusion()
        if concluded is not None and concluded.rule == "yes or no" and _OFFERS.search(self.text):
            return Match(None, "refusal")
        return concluded or self._without_conclusion()

    def _merged(self, single: Sequence[_Mention]) -> list[_Mention]:
        """Letters and the texts beside them as one: first where they agree, then where they do not."""
        mentions = list(single)
        for agree in (True, False):
            merged: list[_Mention] = []
            for mention in mentions:
                both = self._pair(merged[-1], mention) if merged else False
                both = both and (agree or not self._goes_on_without(merged[-1], mention))
                if both and bool(merged[-1].options & mention.options) == agree:
                    before = merged.pop()
                    options = before.options & mention.options if agree else before.options | mention.options
                    mention = _Mention(before.start, mention.end, options, "text", before.led)
                merged.append(mention)
            mentions = merged
        return [mention for mention in mentions if mention.kind != "number"]

    def _pair(self, before: _Mention, after: _Mention) -> bool:
        """Whether a letter and a text stand beside each other as if they were one option."""
        between = self.tokens[before.end : after.start]
        if len(between) > 6 or any(token.kind == "line" for token in between):
            return False
        words = [token.fold for token in between]
        is_letter = [mention.kind in ("letter", "ordinal") for mention in (before, after)]
        if is_letter == [True, False] or (is_letter == [True, True] and before.kind != after.kind):
            if after.kind == "number" and any(word not in _DELIMITERS and word not in _OPENING for word in words):
                return False
            return all(
                word in _FILLERS or (word in _DELIMITERS and word not in "/&|;!?") or word in _OPENING for word in words
            )
        if is_letter == [False, True] and after.kind == "letter" and before.kind != "number":
            allowed = _set("option letter which is choice answer that") | frozenset("([-,\"'{:") | _CLOSING
            return bool(words) and allowed.issuperset(words) and not (words == [","] and self._is_label(after))
        return False

    def _goes_on_without(self, before: _Mention, after: _Mention) -> bool:
        """Whether the text after a letter begins a sentence that says of it that it is none: "C. The bell isn't"."""
        if before.kind != "letter" or after.kind != "text" or "." not in self.words_and_marks(before.end, after.start):
            return False
        # "C. The bell (B) is heard earlier": the text has a letter of its own, and more is said of it.
        last = self.tokens[after.end - 1]
        if after.end - after.start > 1 and len(last.raw) == 1 and self.form.letter(last.raw) is not None:
            return self.kind(after.end) == "mark" and self.kind(after.end + 1) in _CONTENT
        place = after.end
        while place < after.end + SCANNED and (self.fold(place) in _JOINING or place in self.within_single):
            place += 1
        if self.fold(place - 1) == ",":
            return False
        said = itertools.takewhile(lambda word: word not in _CLAUSE_MARKS, self.words_and_marks(place, place + 5))
        return not _DENIALS.isdisjoint(said)

    def _is_label(self, mention: _Mention) -> bool:
        return self.fold(mention.end) in (".", ":", ")") and self.kind(mention.end + 1) in _CONTENT

    def _sentences(self) -> list[_Span]:
        """Tokens of each, without marks alone; a full stop within a mention ends none."""
        within = {place for mention in self.mentions for place in range(mention.start, mention.end)}
        spans, start = [], 0
        for place, token in enumerate(self.tokens):
            if token.kind == "line" or (token.kind == "mark" and token.fold in _ENDS and place not in within):
                spans.append((start, place + 1))
                start = place + 1
        spans.append((start, len(self.tokens)))
        return [span for span in spans if any(token.kind in _CONTENT for token in self.tokens[span[0] : span[1]])]

    def _grouped(self, mentions: Sequence[_Mention]) -> list[_Mention]:
        """Mentions with the number of the group: of what stands side by side."""
        grouped: list[_Mention] = []
        for mention in mentions:
            group = len(grouped)
            if grouped:
                before = grouped[-1]
                between = self.tokens[before.end : mention.start]
                loose = _DELIMITERS | _OPENING if {before.kind, mention.kind} == {"letter"} else frozenset(")(\"'[]{}")
                lines = {before.kind, mention.kind} == {"letter"} or self._bulleted(between)
                if len(between) <= 8 and all(
                    token.fold in _JOINING
                    or token.fold in loose
                    or (lines and (token.fold in "\n-*|•." or token.kind == "number"))
                    for token in between
                ):
                    group = group if self._begins_anew(before, mention) else before.group
            grouped.append(dataclasses.replace(mention, group=group))
        return grouped

    def _begins_anew(self, before: _Mention, after: _Mention) -> bool:
        """Whether a letter after a letter opens a sentence of its own: "B. A is wrong", but not "B. C"."""
        between = self.words_and_marks(before.end, after.start)
        if before.kind == "letter" and after.kind == "text" and "." in between and "\n" not in between:
            # What is a text of the letter is one mention with it.
            return True
        if {before.kind, after.kind} != {"letter"} or not {".", ")", "\n"} & set(between) or "," in between:
            return False
        if not _ALTERNATIVES.isdisjoint(between) or self.fold(after.start - 1) in _OPENING:
            return False
        place = after.end
        while place < after.end + SCANNED and (self.fold(place) in _JOINING or place in self.within_single):
            place += 1
        return self.kind(place) in _CONTENT

    def _bulleted(self, between: Sequence[_Token]) -> bool:
        return bool(between) and all(token.fold in "\n-*•,." or token.kind == "number" for token in between)

    def _judged(self, mentions: Sequence[_Mention]) -> list[_Mention]:
        """Mentions with what denies or praises each."""
        judged: list[_Mention] = []
        starts = {mention.start for mention in mentions}
        for mention in mentions:
            denier = self._denier(mention)
            before = judged[-1] if judged else None
            if not denier and before is not None and before.denier and before.group == mention.group:
                between = self.words_of(before.end, mention.start)
                if not _ALTERNATIVES.isdisjoint(between) or before.denier in ("neither", "none", "without", "except"):
                    denier = before.denier
            said = self._said_of(mention, starts)
            if said is False:
                denier = denier or "wrong"
            praised = said is True and not denier
            # Most mentions are neither, and a copy takes time.
            judged.append(
                dataclasses.replace(mention, denier=denier, praised=praised) if denier or praised else mention
            )
            if said is not None:
                # "A, C and D are wrong": what is said of the last is said of all that stand beside it.
                for place in range(len(judged) - 2, -1, -1):
                    if judged[place].group != mention.group or judged[place].denier:
                        break
                    if any(token.kind == "line" for token in self.tokens[judged[place].end : judged[place + 1].start]):
                        break
                    joined = self.words_of(judged[place].end, judged[place + 1].start)
                    if self.fold(mention.end) in _SINGULAR and _ALTERNATIVES.isdisjoint(joined):
                        # "It is B, A is wrong."
                        break
                    judged[place] = dataclasses.replace(judged[place], denier="" if said else "wrong", praised=said)
        return judged

    @functools.cached_property
    def _supposed(self) -> set[int]:
        """Tokens of clauses that only suppose something: of "if A were louder, it would be B" all of them."""
        supposed: set[int] = set()
        for start, end in self.sentences:
            place = start
            while place < end:
                opens = self._supposes(place)
                if opens is not None:
                    clause = next((at for at in range(place, end) if self.fold(at) in opens), end)
                    supposed.update(range(place, clause))
                    place = clause
                place += 1
        return supposed

    def _supposes(self, place: int) -> frozenset[str] | None:
        """With what a clause ends that a word opens, where it only supposes something; else None."""
        word = self.fold(place)
        if word == "if" and place not in self._guessed:
            is_counterfactual = self.is_start(place) and place in self._would
            return frozenset(";") if is_counterfactual else frozenset(",;")
        if word not in _SUPPOSING and not (word == "say" and self.fold(place - 1) == "let"):
            return None
        opens = self.is_start(place) or self.fold(place - 1) in ("let", "us")
        return frozenset(";") if opens else None

    @functools.cached_property
    def _guessed(self) -> set[int]:
        """Tokens of sentences with a guess: "if I had to choose"."""
        return {
            place for span in self.sentences if not _GUESSING.isdisjoint(self.words_of(*span)) for place in range(*span)
        }

    @functools.cached_property
    def _would(self) -> set[int]:
        """Tokens of sentences that say what would be."""
        would = _set("would were could might it'd i'd we'd")
        return {
            place for span in self.sentences if not would.isdisjoint(self.words_of(*span)) for place in range(*span)
        }

    def _denier(self, mention: _Mention) -> str:
        """A word before a mention, in its clause, that denies it."""
        if mention.start in self._supposed:
            return "if"
        if mention.kind == "count" and self.words_before(mention.start, 2) == ["least", "at"]:
            return "least"
        place, seen = mention.start - 1, 0
        while place >= 0 and seen < 5:
            token = self.tokens[place]
            if token.fold == "but" and self.fold(place - 1) == "anything":
                return "anything" if _NEGATORS.isdisjoint(self.words_before(place - 1, 4)) else ""
            if token.kind == "line" or token.fold in _CLAUSE_MARKS or token.fold in _CLAUSE_WORDS:
                return ""
            if token.kind in _CONTENT:
                word, follows = token.fold, self.fold(place + 1)
                if word == "doubt" and self.fold(place - 1) in _DOUBTLESS:
                    return ""
                if seen and word in ("not", "isn't") and self._is_of_what_is_not(place, mention):
                    return ""
                if word in _NEGATORS and follows not in _NO_DENIAL:
                    adjacent = seen == 0 or (seen == 1 and follows in _ARTICLES)
                    # "A) No B) Yes" says no of A.
                    adjacent &= mention.kind != "letter" or self.fold(place - 1) not in (")", ":", "-", ".")
                    if word not in ("no", "over", "kein", "keine", "against", "ni", "ne", "non") or adjacent:
                        if word == "than" and self.fold(place - 1) == "other" and self.fold(place - 2) == "none":
                            return ""
                        if word != "instead" or follows == "of":
                            return word
                # 不是 and 没有.
                if (
                    token.kind == "unspaced"
                    and seen == 0
                    and self.fold(place - 1) + word in ("不是", "没有", "而非", "并非")
                ):
                    return word
                seen += 1
            place -= 1
        return ""

    def _is_of_what_is_not(self, place: int, mention: _Mention) -> bool:
        """Whether a "not" belongs to a clause before: "the sound that is not heard is the siren"."""
        relative = {"that", "which", "what"} & set(self.words_before(place, 2))
        return bool(relative) and self.fold_before(mention) in ("is", "was") and self.fold(place + 1) != "the"

    def _said_of(self, mention: _Mention, starts: set[int]) -> bool | None:
        """Whether a mention is called right, or wrong; None where neither."""
        place = mention.end
        labels = mention.kind == "letter" and (self.is_start(mention.start) or mention.led)
        for _ in range(4):
            mark = self.fold(place)
            if self.kind(place) != "mark":
                break
            if mark in _DENIALS or mark in _PRAISES:
                return mark in _PRAISES
            if not (
                mark in ")]:-\"'(|>" or (mark in ".?" and labels and self.is_start(mention.start)) or mark == "\ufe0f"
            ):
                return None
            place += 1
        marked = place > mention.end
        linked = 0
        while linked < 4 and self.kind(place) in _CONTENT and self.fold(place) in _LINKS | _ADVERBS:
            place += 1
            linked += 1
        word, follows = self.fold(place), self.fold(place + 1)
        if self.kind(place) == "mark" and word in _DENIALS | _PRAISES:
            return word in _PRAISES
        if word in _ARTICLES and follows in ("distractor", "distraction") and linked:
            return False
        another = place + 1 in starts or (follows in _ARTICLES and place + 2 in starts)
        if word in _DENIALS:
            if follows in ("only", "just", "merely") or (another and not linked and not marked):
                return None
            bare = self.kind(place + 1) in ("", "line", "mark")
            item = marked and not linked and not self.form.yes_no
            if word == "no" and not (item and (labels or bare)):
                return None
            return None if word == "not" and not linked and not marked else False
        if linked and self.fold(place - 1) == "answer":
            return True
        if word in _REMAINS and self.kind(place + 1) in ("", "line", "mark"):
            return True
        if word in _PRAISES and (linked or marked):
            bare = self.kind(place + 1) in ("", "line", "mark") or follows in _PRAISED_NOUNS or place + 1 in starts
            return True if bare else None
        return None

    def _echo(self) -> list[_Span]:
        """Tokens of lists of two options or more, each with its letter, which repeat the question."""
        chains: list[list[_Mention]] = []
        for mention in self.mentions:
            if mention.kind != "text" or not mention.led or len(mention.options) != 1:
                continue
            if chains:
                between = self.tokens[chains[-1][-1].end : mention.start]
                near = len(between) <= 6 and not (mention.praised or chains[-1][-1].praised)
                if near and all(token.fold in _LISTING or token.kind == "line" for token in between):
                    chains[-1].append(mention)
                    continue
            chains.append([mention])
        spans = []
        for chain in chains:
            if len(frozenset[int]().union(*(mention.options for mention in chain))) > 1:
                first = chain[0].start - (self.fold(chain[0].start - 1) in _OPENING)
                spans.append((first, chain[-1].end))
        return spans

    # ----- conclusions

    def _conclusion(self) -> Match | None:
        """The last conclusion."""
        current: _Verdict | None = None
        listed = self._listed()
        for number, span in enumerate(self.sentences):
            mentions = self._of(span)
            corrected = self._corrects(span)
            doubted = current if corrected is not None and self._only_doubts(corrected, span) else None
            if corrected is not None:
                current, self.withdrawn = None, corrected
            if not mentions or self._asks(span):
                continue
            verdict = self._verdict(number, span, mentions, listed, corrected)
            if verdict is None and current is not None:
                weighed = self._weighed(current, span, mentions)
                current = dataclasses.replace(current, options=current.options | weighed)
            if verdict is None:
                continue
            if doubted is not None:
                verdict = dataclasses.replace(verdict, options=verdict.options | doubted.options)
            if current is None or verdict.strength >= current.strength or (verdict.strength == 2 and verdict.is_plain):
                if current is not None and current.listed and verdict.listed and current.options != verdict.options:
                    verdict = dataclasses.replace(verdict, options=current.options | verdict.options)
                current = verdict
        if current is None:
            return None
        if current.strength == 2 and self._breaks_off():
            unfinished = current.place >= self.sentences[-1][0] and self.tokens[-1].fold in _CUT | {","}
            if unfinished and not current.is_plain:
                return None
            later = [mention for mention in self.mentions if mention.start > current.place and not mention.denier]
            if any(mention.options != current.options for mention in later):
                return None
        if len(current.options) != 1:
            return Match(None, "conflict" if current.options else "nothing")
        return Match(min(current.options), current.rule)

    def _of(self, span: _Span) -> list[_Mention]:
        return [mention for mention in self._by_sentence.get(span[0], ())]

    @functools.cached_property
    def _by_sentence(self) -> dict[int, list[_Mention]]:
        table: dict[int, list[_Mention]] = {}
        mentions, place = self.mentions, 0
        for start, end in self.sentences:
            while place < len(mentions) and mentions[place].start < end:
                table.setdefault(start, []).append(mentions[place])
                place += 1
        return table

    def _asks(self, span: _Span) -> bool:
        """Whether a sentence is a question, rather than a guess."""
        words = self.words_of(*span)
        return self.fold(span[1] - 1) == "?" and len(words) > 3 and words[0] in _QUESTION

    def _corrects(self, span: _Span) -> int | None:
        """From where on a sentence, or a clause of it, takes back what was said; None where none does."""
        corrected = None
        for place in range(*span):
            if self.kind(place) in _CONTENT and self.fold(place) in _CORRECTING_STARTS:
                clause = place == span[0] or self.kind(place - 1) in ("mark", "line")
                if clause or self.fold(place - 1) in ("but", "and", "so", "oh"):
                    words = tuple(self.next_words(place, 4))
                    if words[0] == "no" and self.fold(place + 1) in (",", ":") and place > 0 and not self.form.yes_no:
                        corrected = place + 1
                    for phrase in _CORRECTING:
                        if words[: len(phrase)] == phrase:
                            corrected = place + len(phrase)
        return corrected

    def _only_doubts(self, corrected: int, span: _Span) -> bool:
        """Whether a sentence weighs another option against what was said: "then again, it may be C"."""
        again = self.words_before(corrected, 2) == ["again", "then"]
        return again and not _HEDGES.isdisjoint(self.words_of(corrected, span[1]))

    def _weighed(self, current: "_Verdict", span: _Span, mentions: Sequence[_Mention]) -> frozenset[int]:
        """What is as possible as what was no more than possible: "it could be B. But it could be C"."""
        if self.fold(span[0]) not in _CONTRAST or _HEDGES.isdisjoint(self.words_before(current.place, 5)):
            return frozenset()
        weighed = [m for m in mentions if not m.denier and not _HEDGES.isdisjoint(self.words_before(m.start, 5))]
        return frozenset[int]().union(*(mention.options for mention in weighed))

    def _listed(self) -> bool:
        """Whether the options are gone through by their letters, rather than one being given and explained."""
        labels = [
            mentions[0]
            for span in self.sentences
            if (mentions := self._of(span)) and mentions[0].led and self.is_start(mentions[0].start)
        ]
        options = [mention.options for mention in labels if not (mention.kind == "letter" and self._is_alone(mention))]
        if len(set(options)) < 2:
            return False
        return options[0] == frozenset([0]) and options.count(options[0]) == 1

    def _is_alone(self, mention: _Mention) -> bool:
        """Whether a letter has its line for itself."""
        after = mention.end
        while self.kind(after) == "mark":
            after += 1
        return self.kind(after) in ("", "line") and self.is_start(mention.start)

    def _verdict(
        self, number: int, span: _Span, mentions: Sequence[_Mention], listed: bool, corrected: int | None
    ) -> "_Verdict | None":
        """What a sentence concludes."""
        if corrected is not None:
            mentions = [mention for mention in mentions if mention.start >= corrected]
            if not mentions:
                return None
        if self.fold(span[0]) == "if" and _GUESSING.isdisjoint(self.words_of(*span)):
            return None
        strong = self._answered(span)
        if strong is not None:
            return self._settled(strong, 3, "answer is")
        praised = [mention for mention in mentions if mention.praised]
        if praised:
            options = frozenset[int]().union(*(mention.options for mention in praised))
            return _Verdict(options, 3, "option by option" if listed else "answer is", praised[-1].start, False, True)
        first = mentions[0]
        words = self.words_of(*span)
        alone = not words_outside(words, self.words_of(first.start, first.end))
        if first.led and len(mentions) == 1 and alone and not first.denier and (first.kind == "letter" or not listed):
            return self._settled(first, 3, "letter" if first.kind == "letter" else "letter first")
        # "A is heard at the end" tells of A, and gives no answer.
        tells = first.kind == "letter" and self.kind(first.end) in _CONTENT and self.fold(first.end) not in _REASONS
        if first.led and not (listed or first.denier or tells) and self._is_first(number, span, first):
            return self._settled(first, 3, "letter first")
        if corrected is not None:
            after = [mention for mention in mentions if not mention.denier]
            named = frozenset[int]().union(*(mention.options for mention in after))
            if (
                after
                and len(named) == 1
                and (after[0].kind != "text" or self.fold_before(after[0]) in _COPULAS | {"it", "that"})
            ):
                return self._settled(after[0], 3, "conclusion")
        if any(mention.kind == "yes or no" for mention in mentions):
            said = [mention for mention in mentions if mention.kind == "yes or no"]
            strength = 3 if self._is_first(number, span, said[0]) else 2
            return _Verdict(
                frozenset[int]().union(*(m.options for m in said)), strength, "yes or no", said[0].start, True
            )
        return self._turned(number, span, mentions) or self._so(span, mentions)

    def _turned(self, number: int, span: _Span, mentions: Sequence[_Mention]) -> "_Verdict | None":
        """What it is after what it seemed: "it might be A, but it's really B"."""
        turn = next((place for place in range(*span) if self.fold(place) in _CONTRAST), None)
        if turn is None:
            return None
        begin = span[0] if turn > span[0] or number == 0 else self.sentences[number - 1][0]
        seemed = self.words_of(begin, turn)
        at_first = ("first", "guess") in itertools.pairwise(seemed) or ("at", "first") in itertools.pairwise(seemed)
        first = [mention for mention in mentions if mention.start < turn]
        if _SEEMING.isdisjoint(seemed) and not at_first:
            return None
        after = [mention for mention in mentions if mention.start > turn and not mention.denier]
        named = frozenset[int]().union(*(mention.options for mention in after))
        is_cued = bool(after) and self._is_told(turn, after[0])
        if len(named) != 1 or not is_cued or any(mention.group == after[0].group for mention in first):
            return None
        return _Verdict(named, 2, "conclusion", after[0].start, True)

    def _is_told(self, turn: int, mention: _Mention) -> bool:
        """Whether "it is" or the like stands right before a mention, rather than "it is louder than"."""
        told = [word for word in self.words_before(mention.start, 5) if word not in _ARTICLES and word not in _ADVERBS]
        told = [word for word in told if word not in ("really", "actually", "in", "option", "rather")]
        if not _HEDGES.isdisjoint(told):
            return False
        return mention.start - turn <= SCANNED and told[:1] in (["is"], ["was"], ["be"], ["it"])

    def fold_before(self, mention: _Mention) -> str:
        """The word before a mention, but for articles."""
        before = [word for word in self.words_before(mention.start, 3) if word not in _ARTICLES]
        return before[0] if before else ""

    def _is_first(self, number: int, span: _Span, mention: _Mention) -> bool:
        """Whether a mention stands in front of all that is said."""
        if any(not self._asks(earlier) for earlier in self.sentences[:number]):
            return False
        small = _CHOICE | _ARTICLES | _set("definitely certainly clearly")
        return all(word in small for word in self.words_of(span[0], mention.start))

    def _settled(self, mention: _Mention, strength: int, rule: str) -> "_Verdict":
        """A conclusion with all that stands beside its mention and is not denied."""
        is_plain = mention.kind != "text" or mention.led
        return _Verdict(self._by_group[mention.group], strength, rule, mention.start, is_plain)

    @functools.cached_property
    def _by_group(self) -> dict[int, frozenset[int]]:
        """The options that stand side by side and are not denied."""
        table: dict[int, frozenset[int]] = {}
        for mention in self.mentions:
            if not mention.denier:
                table[mention.group] = table.get(mention.group, frozenset()) | mention.options
        return table

    def _answered(self, span: _Span) -> _Mention | None:
        """The last mention in a sentence that follows "answer is", "I choose" and so on, and is not denied."""
        answered = None
        for place in range(*span):
            cue = self._cue_end(place)
            if cue is None:
                continue
            mention = self._first_from(cue[0], span, needs_copula=cue[1])
            if mention is not None and not mention.denier:
                answered = mention
        # "Answer", and what it is on the line above or below.
        return answered if answered is not None else self._answered_above(span)

    def _cue_end(self, place: int) -> tuple[int, bool] | None:
        """Where words end after which the answer follows, and whether "is" has to stand between."""
        if self.kind(place) not in _CONTENT:
            return None
        word, before = self.fold(place), self.fold(place - 1)
        if word in _ANSWER and before != "no":
            # Hindi has its copula at the end.
            return place + 1, word != "उत्तर"
        if word in _CHOICE or word in ("sound", "one", "1", "interval"):
            return (place + 1, True) if before in _CORRECT and before not in ("likely", "final", "my") else None
        if word in ("match", "fit", "guess"):
            return (place + 1, True) if before in ("best", "closest", "likeliest") else None
        if word in _ACTIVE:
            return place + 1, False
        if word in ("go", "going") and self.fold(place + 1) == "with":
            return place + 2, False
        if self.kind(place) == "unspaced":
            ahead = "".join(self.fold(position) for position in range(place, min(place + 4, len(self.tokens))))
            for cue in _UNSPACED_CUES:
                if ahead.startswith(cue):
                    return place + len(cue), False
        return None

    def _first_from(self, place: int, span: _Span, *, needs_copula: bool) -> _Mention | None:
        following = next((mention for mention in self._of(span) if mention.start >= place), None)
        if following is None:
            return None
        between = self.tokens[place : following.start]
        if len(between) > 25 or any(token.fold in _REASONS for token in between):
            return None
        words = [token.fold for token in between if token.kind in _CONTENT]
        if len(words) > 12 or (words and needs_copula and _COPULAS.isdisjoint(token.fold for token in between)):
            return None
        return following

    def _answered_above(self, span: _Span) -> _Mention | None:
        """The mention a sentence begins with, where the one before it is "answer", "the answer is" or the like."""
        number = self._number_of[span[0]]
        if number == 0:
            return None
        above, mentions = self.sentences[number - 1], self._of(span)
        words = self.words_of(*above)
        asked = self.fold(above[1] - 1) in ("?", "\n", ":") or self.fold(above[1] - 1) in _COPULAS
        if not words or len(words) > 8 or not asked or not mentions or mentions[0].denier:
            return None
        tail = [word for word in words[-3:] if word not in _COPULAS]
        if not tail or (tail[-1] not in _ANSWER and not (tail[-1] in _CHOICE and _CORRECT & set(words))):
            return None
        return mentions[0] if len(self.words_of(span[0], mentions[0].start)) <= 3 else None

    @functools.cached_property
    def _number_of(self) -> dict[int, int]:
        return {span[0]: number for number, span in enumerate(self.sentences)}

    def _so(self, span: _Span, mentions: Sequence[_Mention]) -> "_Verdict | None":
        """What follows "so", "therefore", "must be", "I think" and so on."""
        cue, last = None, max((mention.start for mention in mentions if not mention.denier), default=-1)
        for place in range(span[0], min(last, span[1])):
            if self.kind(place) in _CONTENT and self._leads(place, self.fold(place)):
                cue = place + 1
        if cue is None:
            return None
        named: list[_Mention] = []
        for mention in mentions:
            if mention.start < cue or mention.denier:
                continue
            if named and any(token.fold in _REASONS for token in self.tokens[named[-1].end : mention.start]):
                break
            named.append(mention)
        if not named:
            return None
        compares = not _COMPARES.isdisjoint(self.words_of(cue, span[1]))
        ends = self.kind(named[0].end) in ("", "line", "mark")
        if named[0].kind == "text" and not named[0].led and not compares and not ends:
            return None
        options = frozenset[int]().union(*(mention.options for mention in named))
        is_plain = named[0].kind != "text" or named[0].led
        return _Verdict(options, 2, "conclusion", named[0].start, is_plain)

    def _leads(self, place: int, word: str) -> bool:
        """Whether a word leads to a conclusion."""
        before, after = self.fold(place - 1), self.fold(place + 1)
        if word in ("total", "altogether", "overall"):
            return self.form.counts
        if word == "conclude":
            return before in ("i", "we", "can", "must", "would", "to", "'d") and "cannot" not in self.words_before(
                place, 3
            )
        if word == "conclusion":
            return before == "in"
        if word in _SO:
            return after not in _NOT_SO and not (
                word == "so" and before in ("think", "guess", "believe", "or", "and", "not")
            )
        if word in ("think", "believe", "guess", "suppose", "say", "bet"):
            return before in ("i", "would", "i'd", "we", "my", "still", "to", "'d")
        if word in ("likely", "probably"):
            return before in ("most", "more", ",")
        if word == "be":
            return before in ("must", "has", "to", "should")
        return False

    # ----- without a conclusion

    def _breaks_off(self) -> bool:
        """Whether the text stops in the middle of something."""
        if not self.content:
            return False
        last = self.tokens[-1]
        if last.kind == "mark":
            return last.fold in ",:;-("
        return last.fold in _CUT or len(self.content) > 25 or (len(self.sentences) > 1 and len(self.content) > 8)

    def _without_conclusion(self) -> Match:
        if _NONE.search(self.text):
            return Match(None, "none of them")
        if _ALL.search(self.text):
            return Match(None, "several")
        since = 0
        refusals = list(_REFUSALS.finditer(self.text))
        if refusals:
            turn = _BUT.search(self.text, refusals[-1].end())
            if turn is None:
                return Match(None, "refusal")
            since = turn.end()
        spoken = [
            mention
            for mention in self.mentions
            if self.tokens[mention.start].start >= since
            and mention.start >= self.withdrawn
            and not self._in_question(mention)
        ]
        affirmed = [mention for mention in spoken if not mention.denier and not self._only_at_first(mention)]
        named = frozenset[int]().union(*(mention.options for mention in affirmed))
        last = {option: mention.start for mention in affirmed for option in mention.options}
        denied = frozenset(
            option
            for mention in spoken
            if mention.denier and mention.denier not in _COMPARING
            for option in mention.options
            if last.get(option, -1) < mention.start
        )
        if len(named) > 1 and len(named - denied) == 1:
            named -= denied
            # Of a letter beside another option's text, "B. dog", one may be denied later.
            affirmed = [mention for mention in affirmed if mention.options <= named] or [
                mention for mention in affirmed if mention.options & named
            ]
        if len(named) == 1:
            told = affirmed[-1].end >= len(self.tokens) or not self._breaks_off()
            return Match(min(named), "mention") if told else Match(None, "nothing")
        if named:
            if any(len(mention.options) > 1 for mention in affirmed) and len(affirmed) == 1:
                return Match(None, "conflict")
            told_last = self._last_sentence(affirmed)
            told_last = self._most(affirmed) if told_last is None else told_last
            return Match(None, "several") if told_last is None else Match(told_last, "last sentence")
        return self._hinted()

    def _in_question(self, mention: _Mention) -> bool:
        return any(span[0] <= mention.start < span[1] and self._asks(span) for span in self._asking)

    @functools.cached_property
    def _asking(self) -> list[_Span]:
        return [span for span in self.sentences if self._asks(span)][:LONGEST]

    def _only_at_first(self, mention: _Mention) -> bool:
        """Whether a mention is what was thought first, before a "but"."""
        before = self.words_before(mention.start, 12)
        if _FIRST_THOUGHT.isdisjoint(before) or {"but", "however"} & set(before):
            return False
        at_first = ("first", "at") in itertools.pairwise(before)
        if not at_first and not {"thought", "seemed", "seems", "initially", "originally"} & set(before):
            return False
        return not _CONTRAST.isdisjoint(self.next_words(mention.end, 14))

    def _last_sentence(self, affirmed: Sequence[_Mention]) -> int | None:
        """The only option of a last sentence, or clause after "but", that compares."""
        if self._breaks_off():
            return None
        start, end = self.sentences[-1]
        turns = [
            place for place in range(start, end) if self.fold(place) in _CONTRAST and self.fold(place + 1) != "also"
        ]
        begin = turns[-1] if turns else start
        last = [mention for mention in affirmed if mention.start >= begin]
        if any(mention.start < begin and mention.group == last[0].group for mention in affirmed if last):
            return None
        named = frozenset[int]().union(*(mention.options for mention in last))
        words = self.words_of(begin, end)
        if begin == start and last and last[0].led and self.is_start(last[0].start) and self._listed():
            return None
        compares = not _COMPARES.isdisjoint(words) or "likely" in words
        compares |= len(words) <= 3 and not self.form.counts
        if last and "it" in words[:2]:
            # "It is the bell." as all that the sentence says.
            small = _CONTRAST | _ADVERBS | _ARTICLES | _set("it is was must be really actually that in")
            compares |= small.issuperset(self.words_of(begin, last[0].start)) and not self.words_of(last[-1].end, end)
        narrates = bool(words) and words[0] in (
            "if",
            "first",
            "then",
            "next",
            "at",
            "from",
            "second",
            "after",
            "afterwards",
        )
        return min(named) if len(named) == 1 and compares and not narrates else None

    def _most(self, affirmed: Sequence[_Mention]) -> int | None:
        """The only option of which it is said that it is the longest."""
        named: set[int] = set()
        for mention, after in itertools.zip_longest(affirmed, affirmed[1:]):
            end = len(self.tokens) if after is None else after.start
            if _MOST & set(self.words_of(mention.end, min(end, mention.end + 8))):
                named |= mention.options
        return min(named) if len(named) == 1 and not self._breaks_off() else None

    def _hinted(self) -> Match:
        """What a short answer hints at: by a head noun, two numbers, or by what it says of other sounds."""
        words = self.words_of(0, len(self.tokens))
        if self.form.yes_no:
            return self._stated()
        if self.form.intervals:
            if self.mentions or not _NEGATORS.isdisjoint(words):
                # "Not 2.5-5.0 s."
                return Match(None, "nothing")
            numbers = tuple(_value(self.tokens[place].raw) for place in self.content if self.kind(place) == "number")
            place = self.form.intervals.index(numbers) if numbers in self.form.intervals else None
            return Match(None, "nothing") if place is None else Match(place, "interval")
        if self.mentions or len(words) > 8 or (self._breaks_off() and len(words) > 4):
            return Match(None, "nothing")
        heads = [mention for mention in self.heads if not self._denier(mention)]
        named = frozenset[int]().union(*(mention.options for mention in heads))
        if not named or not _ALTERNATIVES.isdisjoint(words):
            return Match(None, "nothing")
        return Match(min(named), "mention") if len(named) == 1 else Match(None, "several")

    def _stated(self) -> Match:
        """Yes or No from what is said of other sounds, where all that is said agrees: as much is read of either."""
        if self._breaks_off():
            return Match(None, "nothing")
        stated = {alone for span in self.sentences if not self._asks(span) for alone in self._states_alone(span)}
        if len(stated) != 1:
            return Match(None, "several" if stated else "nothing")
        return Match(self.form.yes_no["yes" if stated == {self.is_alone} else "no"], "mention")

    def _states_alone(self, span: _Span) -> Iterator[bool]:
        """Of each clause that tells, whether nothing overlaps the sound."""
        words = _SURE.sub(" ", " ".join(token.fold for token in self.tokens[slice(*span)]))
        if not _HEDGED.isdisjoint(words.split()) or _UNTRUE.search(words):
            return
        if _NOTHING_BUT.search(words):
            yield True
            return
        besides = _BESIDES.search(words) is not None
        for clause in [words] if besides else _CLAUSES.split(words):
            alone = _says_alone(clause, besides=besides)
            if alone is not None:
                yield alone


def _says_alone(clause: str, *, besides: bool) -> bool | None:
    """Whether a clause says that nothing overlaps the sound; None where it tells neither."""
    words = clause.split()
    if not words or len(words) > SCANNED:
        return None
    if _NOT_ONLY.search(clause):
        return False
    lonely = _LONELY.search(clause)
    if lonely is not None:
        return _NO_SOUND.isdisjoint(clause[: lonely.start()].split())
    denials = sum(word in _NO_SOUND for word in words)
    if _TOGETHER.isdisjoint(words) and not besides and not (_ANOTHER.search(clause) and _is_heard(words)):
        only = "only" in words and not _HEARD.isdisjoint(words) and not denials and _ALTERNATIVES.isdisjoint(words)
        return True if only else None
    if besides and _HEARD.isdisjoint(words) and not denials:
        return None
    # "Not without another sound".
    return None if denials > 1 else denials == 1


def _is_heard(words: Sequence[str]) -> bool:
    """Whether something is said to be there."""
    return not _HEARD.isdisjoint(words) or bool({"no", "nothing", "with"} & set(words))


@dataclass(frozen=True, slots=True)
class _Verdict:
    """A conclusion.

    Attributes:
        options: that it names: one, or there is a conflict.
        strength: 3 of an answer that is given as such, 2 of what follows from what was said.
        rule: see `match_answer`.
        place: its first token.
        is_plain: whether it is a letter, a number or the like, which is said to answer, and not to explain.
        listed: whether it is one of those that are called right.
    """

    options: frozenset[int]
    strength: int
    rule: str
    place: int
    is_plain: bool
    listed: bool = False


_SINGULAR = _set("is was isn't wasn't does doesn't has")
_REMAINS = _set("remains remain fits matches wins")
_COMPARING = _set("than over rather instead unlike without against except if least")
_SUPPOSING = _set("suppose supposing assume assuming imagine")
_DOUBTLESS = _set("no without any little beyond")
_GUESSING = _set("had have must forced guess choose pick")
_NO_DENIAL = _set("only just merely sure certain entirely doubt question hesitation")
_MOST = _set("longest most dominates")
_CLAUSE_MARKS = frozenset(".!?;:,…。|")
_CLAUSE_WORDS = _set("but because and so however while since it's or")
_ADVERBS = _set(
    "also clearly definitely therefore thus probably certainly simply both all most very more the only likely"
)
_PRAISED_NOUNS = _set("answer option choice one 1 because since as and")
_LISTING = frozenset(".,;:)(][|/-*•&+\"'") | _ALTERNATIVES
_CORRECTING_STARTS = frozenset(phrase[0] for phrase in _CORRECTING) | {"no"}


def words_outside(words: Sequence[str], of_mention: Sequence[str]) -> bool:
    """Whether a sentence has words beside those of a mention."""
    return len(words) > len(of_mention) and not all(word in _CHOICE for word in words if word not in of_mention)


VERSION = 2
"""It rises with every change of code or constants that can change a number."""

# Read without importing the module, so it is one literal; 1e15 stands for "no bound".
MEASURES = {
    "accuracy": {
        "heading": "PolyBench",
        "meaning": "share of questions that are answered rightly, the mean over the tasks; counting together and the "
        "longest event stand in it for counting and duration where they are asked",
        "range": (0.0, 1.0),
        "null": "chance",
        "column": "score",
        "outside": "questions of a task that has fewer of them weigh more, so that tasks weigh the same",
    },
    "accuracy_micro": {
        "heading": "accuracy of all questions",
        "meaning": "share of questions that are answered rightly, each counting the same",
        "range": (0.0, 1.0),
        "column": "score_correct",
        "shown": False,
    },
    "adjusted": {
        "heading": "above chance",
        "meaning": "accuracy, 0 being chance and 1 everything right: (accuracy − chance) / (1 − chance)",
        "range": (-25.0, 1.0),
        "shown": False,
    },
    "chance": {
        "heading": "chance",
        "meaning": "accuracy of drawing an option: the mean of 1/k of k options, the mean over the tasks",
        "range": (0.0, 1.0),
    },
    "majority": {
        "heading": "best constant answer",
        "meaning": "accuracy of always giving the one text that is right most often in a task",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "best_position": {
        "heading": "best constant position",
        "meaning": "accuracy of always taking the position that is right most often in a task",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1": {
        "heading": "macro F1",
        "meaning": "F1 of each right answer as a class, the mean over the answers of a task, then over the tasks; of "
        "detection over positions",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "weighted_f1": {
        "heading": "weighted F1",
        "meaning": "the same, answers weighing as often as they are right",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "n": {
        "heading": "questions",
        "meaning": "number of questions",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "answers": {
        "heading": "answers",
        "meaning": "number of answers: a question has one in each order of its options",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "unparsed": {
        "heading": "unparsed",
        "meaning": "number of answers that name no option, refusals among them; they are wrong",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
    },
    "refused": {
        "heading": "refused",
        "meaning": "number of answers that are refusals",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "accuracy_parsed": {
        "heading": "accuracy of the parsed",
        "meaning": "share of right ones among the answers that name an option",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "counting": {
        "heading": "counting",
        "meaning": "share of right answers to the question how many kinds of sound there are",
        "range": (0.0, 1.0),
        "null": "chance_counting",
    },
    "chance_counting": {
        "heading": "chance of counting",
        "meaning": "accuracy of drawing an option, of counting",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "majority_counting": {
        "heading": "best constant answer of counting",
        "meaning": "accuracy of always giving the one text that is right most often, of counting",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1_counting": {
        "heading": "macro F1 of counting",
        "meaning": "F1 of each right answer as a class, of counting",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right_counting": {
        "heading": "groups right, counting",
        "meaning": "share of groups of which every question of counting is answered rightly",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "duration": {
        "heading": "duration",
        "meaning": "share of right answers to the question which sound is heard longest",
        "range": (0.0, 1.0),
        "null": "chance_duration",
    },
    "chance_duration": {
        "heading": "chance of duration",
        "meaning": "accuracy of drawing an option, of duration",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "majority_duration": {
        "heading": "best constant answer of duration",
        "meaning": "accuracy of always giving the one text that is right most often, of duration",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1_duration": {
        "heading": "macro F1 of duration",
        "meaning": "F1 of each right answer as a class, of duration",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right_duration": {
        "heading": "groups right, duration",
        "meaning": "share of groups of which every question of duration is answered rightly",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "concurrency": {
        "heading": "concurrency",
        "meaning": "share of right answers to the question whether anything overlaps a sound",
        "range": (0.0, 1.0),
        "null": "chance_concurrency",
    },
    "chance_concurrency": {
        "heading": "chance of concurrency",
        "meaning": "accuracy of drawing an option, of concurrency",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "majority_concurrency": {
        "heading": "best constant answer of concurrency",
        "meaning": "accuracy of always giving the one text that is right most often, of concurrency",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1_concurrency": {
        "heading": "macro F1 of concurrency",
        "meaning": "F1 of each right answer as a class, of concurrency",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right_concurrency": {
        "heading": "groups right, concurrency",
        "meaning": "share of groups of which every question of concurrency is answered rightly",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "classification": {
        "heading": "classification",
        "meaning": "share of right answers to the question what overlaps a sound",
        "range": (0.0, 1.0),
        "null": "chance_classification",
    },
    "chance_classification": {
        "heading": "chance of classification",
        "meaning": "accuracy of drawing an option, of classification",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "majority_classification": {
        "heading": "best constant answer of classification",
        "meaning": "accuracy of always giving the one text that is right most often, of classification",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1_classification": {
        "heading": "macro F1 of classification",
        "meaning": "F1 of each right answer as a class, of classification",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right_classification": {
        "heading": "groups right, classification",
        "meaning": "share of groups of which every question of classification is answered rightly",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "detection": {
        "heading": "detection",
        "meaning": "share of right answers to the question when two sounds first overlap",
        "range": (0.0, 1.0),
        "null": "chance_detection",
    },
    "chance_detection": {
        "heading": "chance of detection",
        "meaning": "accuracy of drawing an option, of detection",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "majority_detection": {
        "heading": "best constant answer of detection",
        "meaning": "accuracy of always giving the one text that is right most often, of detection",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1_detection": {
        "heading": "macro F1 of detection",
        "meaning": "F1 of each right answer as a class, of detection; over positions",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right_detection": {
        "heading": "groups right, detection",
        "meaning": "share of groups of which every question of detection is answered rightly",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "counting_together": {
        "heading": "counting together",
        "meaning": "share of right answers to the question how many kinds of sound are heard at the same time, at most",
        "range": (0.0, 1.0),
        "null": "chance_counting_together",
    },
    "chance_counting_together": {
        "heading": "chance of counting together",
        "meaning": "accuracy of drawing an option, of counting together",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "majority_counting_together": {
        "heading": "best constant answer of counting together",
        "meaning": "accuracy of always giving the one text that is right most often, of counting together",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1_counting_together": {
        "heading": "macro F1 of counting together",
        "meaning": "F1 of each right answer as a class, of counting together",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right_counting_together": {
        "heading": "groups right, counting together",
        "meaning": "share of groups of which every question of counting together is answered rightly",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "duration_longest": {
        "heading": "longest event",
        "meaning": "share of right answers to the question which sound has the longest uninterrupted event",
        "range": (0.0, 1.0),
        "null": "chance_duration_longest",
    },
    "chance_duration_longest": {
        "heading": "chance of the longest event",
        "meaning": "accuracy of drawing an option, of the longest event",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "majority_duration_longest": {
        "heading": "best constant answer of the longest event",
        "meaning": "accuracy of always giving the one text that is right most often, of the longest event",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "macro_f1_duration_longest": {
        "heading": "macro F1 of the longest event",
        "meaning": "F1 of each right answer as a class, of the longest event",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right_duration_longest": {
        "heading": "groups right, the longest event",
        "meaning": "share of groups of which every question of the longest event is answered rightly",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups_right": {
        "heading": "groups right",
        "meaning": "share of groups, such as the twins of a scene or a recording, of which every question is "
        "answered rightly; of the tasks that the accuracy is a mean over",
        "range": (0.0, 1.0),
        "null": "groups_right_chance",
    },
    "groups_right_chance": {
        "heading": "chance of groups right",
        "meaning": "groups right by drawing an option each time: the mean of the product of 1/k",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "groups": {
        "heading": "groups",
        "meaning": "number of groups that groups right is a share of",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "correctness": {
        "heading": "correctness",
        "meaning": "share of orders of the options in which a question is answered rightly, the mean over the "
        "questions",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "consistency": {
        "heading": "consistency",
        "meaning": "share of pairs of orders of a question that get the same answer, the mean over the questions",
        "range": (0.0, 1.0),
        "null": "consistency_chance",
        "shown": False,
    },
    "consistency_chance": {
        "heading": "chance of consistency",
        "meaning": "consistency of drawing an option",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "all_orders_right": {
        "heading": "right in all orders",
        "meaning": "share of questions that are answered rightly in every order of their options",
        "range": (0.0, 1.0),
        "null": "all_orders_right_chance",
        "shown": False,
    },
    "all_orders_right_chance": {
        "heading": "chance of right in all orders",
        "meaning": "right in all orders by drawing an option each time",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "position_distance": {
        "heading": "position habit",
        "meaning": "by how much the positions that are taken differ from taking each as often: 0 without a habit",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "tp": {
        "heading": "true overlaps",
        "meaning": "number of answers about concurrency that say overlap where there is one",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "fp": {
        "heading": "false overlaps",
        "meaning": "number of answers about concurrency that say overlap where there is none",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "tn": {
        "heading": "true alone",
        "meaning": "number of answers about concurrency that say alone where nothing overlaps",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "fn": {
        "heading": "false alone",
        "meaning": "number of answers about concurrency that say alone where something overlaps",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "unparsed_overlap": {
        "heading": "unparsed where overlap is right",
        "meaning": "number of answers about concurrency that say neither where something overlaps",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "unparsed_alone": {
        "heading": "unparsed where alone is right",
        "meaning": "number of answers about concurrency that say neither where nothing overlaps",
        "range": (0.0, 1000000000000000.0),
        "digits": 0,
        "shown": False,
    },
    "sensitivity": {
        "heading": "sensitivity",
        "meaning": "share of answers about concurrency that are right where something overlaps",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "specificity": {
        "heading": "specificity",
        "meaning": "share of answers about concurrency that are right where nothing overlaps",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "balanced_accuracy": {
        "heading": "balanced accuracy of concurrency",
        "meaning": "mean of sensitivity and specificity: ½ without listening",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "f1": {
        "heading": "F1 of overlap",
        "meaning": "F1 of answers about concurrency, overlap being the class",
        "range": (0.0, 1.0),
        "shown": False,
    },
    "mcc": {
        "heading": "correlation of states",
        "meaning": "Matthews' correlation of answers about concurrency with what is right, unparsed being a third "
        "state",
        "range": (-1.0, 1.0),
        "shown": False,
    },
    "yes_rate": {
        "heading": "share of Yes",
        "meaning": "share of Yes among the answers about concurrency that name an option",
        "range": (0.0, 1.0),
        "shown": False,
    },
}
"""What each number of `polybench` is: fields by name, the score first."""

PAGE = {
    "introduction": """\
# PolyBench: questions about sounds that overlap

How often are multiple-choice questions about a clip answered rightly: how many kinds of sound it has, which lasts
longest, whether something overlaps a sound, what, and when; how many kinds sound at once, and which has the longest
event? The score is the mean over the tasks, beside chance.

Paste what a model answered, a line for each answer, as it gave it, "B. rain" or "It is the rain."; and on the same
lines the right answer, the list of options in the order shown, and the task. An empty answer is written as "-".
""",
    "warning": """\
**An accuracy alone says little.** Compare it with `chance` and with `majority`, the best constant answer, and see
`unparsed`: what cannot be read counts as wrong, whatever the model meant.
""",
    "inputs": {
        "predictions": "Answers, as the model gave them",
        "references": "Right answers: the text of an option",
        "options": 'Options: a list a line, such as ["dog", "rain"]',
        "tasks": "Task: counting, duration, concurrency, classification, detection, counting_together or "
        "duration_longest",
        "ids": "Question: a word, the same for a question with several orders of its options",
        "groups": "Group: a word, the same for questions about one recording or one scene",
        "polarity": 'What "Yes" says: overlap or alone; looked at where the task is concurrency',
        "polyphony": "Most sounds at once: a number",
        "overlap": "Seconds of overlap: a number",
    },
    "kinds": {"ids": "words", "groups": "words", "polarity": "words"},
}
"""What the metric's page says; an input that is no feature of the metric is optional, of the kind said here."""


def example() -> dict[str, Any]:
    """Return arguments of `polybench`: 28 questions under every turn of their options, by who knows two in three."""
    rng = np.random.default_rng(0)
    texts = {
        "counting": ["1", "2", "3", "4"],
        "duration": ["bell", "brass", "organ"],
        "concurrency": ["Yes", "No"],
        "classification": ["bell", "brass", "organ", "reed"],
        "detection": ["0.0–1.0 s", "2.0–3.0 s", "4.5–5.5 s", "7.0–8.0 s"],
        "counting_together": ["2", "3", "4"],
        "duration_longest": ["bell", "brass", "organ"],
    }
    styles = ("{0}", "{0}. {1}", "({0})", "{1}", "The answer is {1}.", "I cannot determine this.")
    rows: dict[str, list[Any]] = {name: [] for name in PAGE["inputs"]}
    for number, (task, options) in itertools.product(range(4), texts.items()):
        answer, is_alone = options[number % len(options)], bool(number & 2)
        for turn in range(len(options)):
            shown = options[turn:] + options[:turn]
            place = shown.index(answer) if rng.random() < 2 / 3 else int(rng.integers(len(shown)))
            style = styles[min(int(rng.integers(20)) // 4, 4) if rng.random() < 0.95 else 5]
            rows["predictions"].append(style.format(LETTERS[place], shown[place]))
            rows["references"].append(answer)
            rows["options"].append(shown)
            rows["tasks"].append(task)
            rows["ids"].append(f"{task} {number}")
            rows["groups"].append(f"{task}, scene {number // 2}")
            rows["polarity"].append(POLARITIES[is_alone])
            rows["polyphony"].append(2 + number % 2)
            rows["overlap"].append(0.5 * number)
    return rows
