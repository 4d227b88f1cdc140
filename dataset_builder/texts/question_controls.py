"""Controls without audio: `blind` learns from text alone; `present` knows which labels are present, but not when.

If `blind` is above chance, the questions reveal their answers, and the part of the text that reveals them is named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from audio_compositionality.support.table import Cell, Column, Row, Table

from ..sounds.annotations import Annotation, readings
from .questions import ALONE, NO, YES, Question, QuestionError, in_sentence

FOLDS = 5

STANDARD_ERRORS = 3.0
"""Standard errors by which chance may be exceeded."""

LEAST_QUESTIONS = 20
"""Fewest questions with which a leak can be detected."""

Features = dict[str, float]

FAMILIES: Mapping[str, str] = {
    "option": "some options are right more often than others",
    "wording": "the wording reveals the answer",
    "anchor": "the sound in question reveals the answer",
    "rank": "the answer's rank among the options by size reveals it",
    "position": "the answer's position reveals it",
    "set": "the other options reveal the answer",
    "form": "the way in which the answer is written reveals it",
}
"""Parts of the text that can reveal the answer, with their wording in an error."""


class LeakError(QuestionError):
    """The text of questions reveals their answers."""


@dataclass(frozen=True)
class Balance:
    """Controls without audio, for the questions of one kind and data set.

    Attributes:
        source: name of the data set.
        kind: task and variant.
        questions: number of questions.
        chance: expected share of right answers when drawing from all options.
        standard_error: standard error of chance for this number of questions.
        blind: `blind_accuracy`; None if there are too few questions.
        present: expected share of right answers when drawing from the options that labels without times do not exclude.
        position_excess: number of answers in the most frequent position, minus the number in the rarest.
        leak: the part of the text that reveals the answers; empty if there is none.
    """

    source: str
    kind: str
    questions: int
    chance: float
    standard_error: float
    blind: float | None
    present: float
    position_excess: int
    leak: str = ""

    @property
    def limit(self) -> float:
        """Return the largest permitted accuracy of `blind`."""
        return self.chance + STANDARD_ERRORS * self.standard_error


def balance_of(questions: Iterable[Question], annotations: Iterable[Annotation]) -> tuple[Balance, ...]:
    """Return the balance of questions, by data set and kind.

    Args:
        questions: questions about any number of data sets.
        annotations: annotations of their recordings.
    """
    by_clip = {(annotation.source_name, *annotation.key): annotation for annotation in annotations}
    kinds: dict[tuple[str, str], list[Question]] = defaultdict(list)
    for question in questions:
        kinds[question.source, question.kind].append(question)
    balances = []
    for (source, kind), of_kind in sorted(kinds.items()):
        chances = np.array([1 / len(question.options) for question in of_kind])
        chance, error = float(chances.mean()), float(np.sqrt((chances * (1 - chances)).sum()) / len(chances))
        blind = blind_accuracy(of_kind) if len(of_kind) >= LEAST_QUESTIONS else None
        leak = ""
        if blind is not None and blind > chance + STANDARD_ERRORS * error:
            # The most revealing part of the text; several parts if they tie.
            alone = {family: blind_accuracy(of_kind, [family]) for family in FAMILIES}
            most = max(alone.values()) - 0.02
            if alone["option"] > most:
                # These also learn from each option, and so add nothing.
                alone = {family: share for family, share in alone.items() if family not in {"wording", "anchor", "set"}}
            leak = " and ".join(
                f"{FAMILIES[family]} ({family} alone {share:.3f})" for family, share in alone.items() if share > most
            )
        shares = [present_share(one, by_clip[one.source, one.recording, one.start]) for one in of_kind]
        present, places = sum(shares) / len(shares), defaultdict(list)
        for question in of_kind:
            places[len(question.options)].append(question.options.index(question.answer))
        excess = max(int(np.ptp(np.bincount(of, minlength=size))) for size, of in places.items())
        balances.append(Balance(source, kind, len(of_kind), chance, error, blind, present, excess, leak))
    return tuple(balances)


def require_balance(balances: Iterable[Balance]) -> None:
    """Raise an error if the text of questions reveals answers, or answers are not in each position equally often.

    Raises:
        LeakError: names the kinds, the accuracy, and the part of the text.
    """
    leaks = [
        f"{balance.kind} of {balance.source}: a text-only classifier answers {balance.blind:.3f} of "
        f"{balance.questions:,} "
        f"questions; chance is {balance.chance:.3f} and the limit {balance.limit:.3f}; {balance.leak}"
        for balance in balances
        if balance.leak
    ]
    leaks += [
        f"{balance.kind} of {balance.source}: the answer is in one position {balance.position_excess} times more "
        "often than in another"
        for balance in balances
        if balance.position_excess > 1
    ]
    if leaks:
        raise LeakError("the text of questions reveals answers: " + "; ".join(leaks))


def balance_table(balances: Sequence[Balance]) -> Table:
    """Return the balance report: one row for each data set and kind of question."""
    columns = (
        Column("questions about", "Data set, task and variant.", numeric=False),
        Column("n", "Questions.", digits=None),
        Column("chance", "Accuracy of a random choice among the options."),
        Column("blind", "Accuracy of a classifier fitted on the text of other questions."),
        Column("limit", f"Upper limit of blind: chance plus {STANDARD_ERRORS:g} standard errors."),
        Column("present", "Accuracy when the labels of a clip are known, but not their times."),
    )
    rows = []
    for one in balances:
        blind, limit = Cell(one.blind, note=one.leak), Cell(None if one.blind is None else one.limit)
        name = Cell(f"{one.source} {one.kind}")
        rows.append(Row((name, Cell(one.questions), Cell(one.chance), blind, limit, Cell(one.present))))
    legend = (
        ["If present is near 1, knowing which labels a clip has suffices; their times are not needed."] if rows else []
    )
    return Table("Balance of the questions", columns, tuple(rows), tuple(legend), "balance")


def options_left(
    kind: str, options: Sequence[str], heard: Collection[str], anchor: str = "", polarity: str = ""
) -> list[str]:
    """Return the options that may be right if these labels, as written in questions, are present at unknown times.

    The number of kinds is known, and is the largest possible polyphony. A sound that is the only kind overlaps nothing.
    An absent sound neither overlaps nor lasts. If this excludes no options, or all, return all.
    """
    task, left = kind.partition("/")[0], list(options)
    if kind == "counting/kinds":
        left = [option for option in options if option == str(len(heard))]
    elif kind == "counting/together":
        left = [option for option in options if option.isdecimal() and int(option) <= len(heard)]
    elif task in {"duration", "classification"}:
        left = [option for option in options if option in heard]
    elif task == "presence":
        left = [YES if (anchor in heard) == (polarity == "present") else NO]
    elif task == "concurrency" and len(heard) < 2:
        left = [YES if polarity == ALONE else NO]
    return left


def present_share(question: Question, annotation: Annotation) -> float:
    """Return the expected share of right answers from the plain reading's labels alone; see `options_left`."""
    plain, *_ = readings(annotation)
    heard = {in_sentence(label) for label in plain.labels}
    possible = options_left(question.kind, question.options, heard, question.anchor, question.polarity)
    return 1 / len(possible) if question.answer in possible else 0.0


def blind_accuracy(questions: Sequence[Question], families: Iterable[str] = FAMILIES) -> float:
    """Return the share of right answers of a logistic regression that learns from the text of other questions.

    For each option it learns from the features of the families whether the option is right; it answers with the most
    likely option, and draws among ties. It learns from four fifths and answers the remaining fifth. Folds divide
    recordings with their groups; or, if questions have them, units that are balanced with each other. The higher
    of the two accuracies is returned: a fold of recordings unbalances the rest in the opposite direction, which brings
    `blind` below chance and would hide a small leak.

    Args:
        questions: questions of one kind.
        families: of `FAMILIES`: the parts of the text from which it learns.
    """
    by = [[question.group for question in questions], [question.unit for question in questions]]
    return max(_cross_fitted(questions, tuple(families), members) for members in by if all(members))


def _cross_fitted(questions: Sequence[Question], families: tuple[str, ...], members: Sequence[str]) -> float:
    """Return the share of right answers if all questions of one member are in one fold."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    names = sorted(set(members))
    order = np.random.default_rng(0).permutation(len(names))
    fold_of = {names[k]: number % FOLDS for number, k in enumerate(order)}
    matrix = DictVectorizer().fit_transform(
        [
            features
            for one in questions
            for features in option_features(one.options, families, one.template, one.anchor, one.polarity)
        ]
    )
    target = np.array([option == question.answer for question in questions for option in question.options])
    owner = np.repeat(np.arange(len(questions)), [len(question.options) for question in questions])
    fold = np.array([fold_of[member] for member in members])[owner]
    right = 0.0
    for held_out in range(FOLDS):
        train, test = np.flatnonzero(fold != held_out), np.flatnonzero(fold == held_out)
        if len(test) and len(train):
            model = LogisticRegression(max_iter=200).fit(matrix[train], target[train])
            scores, starts = model.decision_function(matrix[test]), np.flatnonzero(np.diff(owner[test], prepend=-1))
            pairs = zip(np.split(scores, starts[1:]), np.split(target[test], starts[1:]), strict=True)
            for values, answers in pairs:
                # Differences below the precision of the fit do not count; ties count in proportion.
                best = np.round(values, 3) == np.round(values, 3).max()
                right += float(answers[best].mean())
    return right / len(questions)


_NUMBER = re.compile(r"\d+(?:\.(\d+))?")


def option_features(
    options: Sequence[str], families: Iterable[str], template: str = "", anchor: str = "", polarity: str = ""
) -> list[Features]:
    """Return the features of the text of each option of a question, by family and name.

    Args:
        options: options in order.
        families: of `FAMILIES`.
        template, anchor, polarity: as in `Question`.
    """
    size = len(options)
    numbers = [_NUMBER.search(option) for option in options]
    keys = [
        (number is None, float(number[0]) if number else 0.0, o) for number, o in zip(numbers, options, strict=True)
    ]
    features = []
    for place, option in enumerate(options):
        rest = sorted(other for other in options if other != option)
        # For each number its decimals, "whole" if they are 0.
        after_points = [match[1] or "" for match in _NUMBER.finditer(option)]
        decimals = [len(digits) if digits.strip("0") else "whole" for digits in after_points]
        of_family = {
            "option": [option],
            "wording": [f"{template} {option}", f"{polarity} {option}"],
            "anchor": [f"{anchor} {option}", f"{anchor} {polarity} {option}"],
            "rank": [f"{sorted(keys).index(keys[place])} of {size}"],
            "position": [f"{place} of {size}"],
            "set": [*(f"{option} {other}" for other in rest), f"{option} {rest}"],
            "form": [f"{len(option.split())} words, decimals {decimals}"],
        }
        features.append({f"{family}: {value}": 1.0 for family in families for value in of_family[family]})
    return features
