"""Questions with options and their answers, read, checked and matched for `polybench` and `audio_questions`."""

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .answer_words import LETTERS, folded_words
from .answers import POLARITIES, Match, match_answer
from .arrays import Floats, Ints

TASKS = (
    *("counting", "duration", "concurrency", "classification", "detection"),
    *("counting_together", "duration_longest"),
)
"""The five tasks of the paper, in its order; then the two that replace two of them and need a sense of time."""

REPLACED = {"counting": "counting_together", "duration": "duration_longest"}
"""Tasks of the paper that statistics of a clip without time answer in part, each with its replacement in means over
tasks where it is asked."""

_LABELS = ("polyphony", "sources", "templates")


# ----- inputs
@dataclass(frozen=True)
class Questions:
    """n questions and m answers to them.

    Attributes:
        question: number of the question of each answer, [m].
        options: number of options of each, [m]; of a question it is the same in every order.
        place: position of the right option, [m]; choice: position of that taken, -1 where there is none, [m].
        text_taken: the text of that taken, None where there is none, [m].
        rules: the rule by which each was read, [m].
        weight: 1/R of a question with R answers, [m].
        task, group: numbers, [n], those of tasks in the order of `tasks`; has_groups: whether groups were given.
        tasks: names, of `polybench` TASKS.
        text: the right answers, [n]; says_overlap: whether "Yes" means overlap, [n].
        k: number of options, [n].
        labels: groupings of the scores, [n] by name.
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
    tasks: tuple[str, ...]
    text: tuple[str, ...]
    says_overlap: NDArray[np.bool_]
    k: Ints
    labels: Mapping[str, list[Any]]
    overlap: Floats | None

    @property
    def m(self) -> int:
        """Number of answers."""
        return len(self.question)

    @property
    def n(self) -> int:
        """Number of questions."""
        return len(self.task)

    @functools.cached_property
    def ranked(self) -> NDArray[np.bool_]:
        """Questions of the tasks in means over tasks, [n]."""
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
        means: Floats = sums_at(self.question, values, self.n) / self.orders
        return means


def read_questions(
    given: Mapping[str, Any], ids: Any, of_questions: Mapping[str, Any], parsed: bool, *, of_polybench: bool = True
) -> Questions:
    """The answers, or ValueError; `of_polybench` says whether ``tasks`` of TASKS are given, or ``kinds`` of any names,
    or none."""
    columns, names = read_columns(given, ids, of_questions, of_polybench)
    references, options, tasks = columns["references"], columns["options"], columns["tasks"]
    of_tasks = TASKS if of_polybench else tuple(sorted(set(tasks)))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    question = np.array([numbers[name] for name in names])
    first = np.unique(question, return_index=True)[1]
    _check_agreement(names, question, first, columns)
    polarity = columns.get("polarity", ["overlap" if of_polybench else ""] * len(names))
    choices, rules = _choices(columns["predictions"], options, polarity, parsed)
    taken = [texts[choice] if choice >= 0 else None for texts, choice in zip(options, choices, strict=True)]
    counts = np.bincount(question)
    groups, overlap = columns.get("groups"), columns.get("overlap")
    # By name, so that draws do not depend on the order of the rows.
    keys = groups or (names if ids is not None else None)
    return Questions(
        question=question,
        options=np.array([len(texts) for texts in options]),
        place=np.array([texts.index(text) for texts, text in zip(options, references, strict=True)]),
        choice=np.array(choices),
        text_taken=tuple(taken),
        rules=tuple(rules),
        weight=1 / counts[question],
        task=np.array([of_tasks.index(tasks[row]) for row in first]),
        group=np.unique([repr(keys[row]) for row in first], return_inverse=True)[1] if keys else np.arange(len(first)),
        has_groups=groups is not None,
        tasks=of_tasks,
        text=tuple(references[row] for row in first),
        says_overlap=np.array([polarity[row] == "overlap" for row in first]),
        k=np.array([len(options[row]) for row in first]),
        labels={name: [columns[name][row] for row in first] for name in _LABELS if name in columns},
        overlap=None if overlap is None else np.array([overlap[row] for row in first], np.float64),
    )


def read_columns(
    given: Mapping[str, Any], ids: Any, of_questions: Mapping[str, Any], of_polybench: bool
) -> tuple[dict[str, list[Any]], list[Any]]:
    """The inputs as checked lists of one length, and the name of each answer's question."""
    missing = [name for name, values in given.items() if values is None]
    if missing:
        rest = ", ".join(name for name in given if name not in missing) or "nothing"
        metric = "polybench" if of_polybench else "audio_questions"
        raise ValueError(f"{metric} got {rest} without {', '.join(missing)}.")
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
    if not of_polybench:
        columns["tasks"] = [str(entry) for entry in _names_of("kinds", columns.pop("kinds", ["all"] * len(names)))]
    for row, task in enumerate(columns["tasks"] if of_polybench else ()):
        if task not in TASKS:
            raise ValueError(f"tasks must be {', '.join(TASKS)}; row {row} has {task!r}.")
        if task == "concurrency" and sorted(map(folded_words, columns["options"][row])) != [("no",), ("yes",)]:
            raise ValueError(f"Options of concurrency are Yes and No; row {row} has {columns['options'][row]!r}.")
    return columns | _checked(extra, columns["tasks"]), names


def _choices(
    predictions: Sequence[Any], options: Sequence[list[str]], polarity: Sequence[str], parsed: bool
) -> tuple[list[int], list[str]]:
    """The position chosen by each answer, -1 for none, and the rule that decided."""
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
    """The properties of questions, each checked for its kind, or ValueError."""
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
    """Raise ValueError when answers of one id do not belong to one question."""
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


def in_means(tasks: Iterable[str]) -> list[str]:
    """The tasks that enter means over tasks: without those replaced by another of them."""
    asked = list(tasks)
    return [task for task in asked if REPLACED.get(task) not in asked]


def sums_at(places: Ints, values: Any, count: int = 0) -> Floats:
    """Sums of values by place."""
    return np.bincount(places, values, minlength=count).astype(np.float64)
