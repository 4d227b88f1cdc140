"""Stored answers scored anew: by the matcher of this project, by a benchmark's published rule, and as their log counts.

No model is run. Each answer is joined with its question, in the options as they were shown; where the three disagree,
the difference is kept answer by answer, with the rule of `match_answer` that decided.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.metrics.answers import UNPARSED, match_answer
from audio_compositionality.support.table import Cell, Column, Table, rows_of
from audio_compositionality.support.table import Row as TableRow
from audio_compositionality.support.text import counted, number_text, shortened, shown
from audio_compositionality.tasks.shapes.asking import CYCLIC, shown_orders

from .answer_logs import AnswerLog, LoggedAnswer
from .compare.statistics import Floats, compare_pairs, mean_intervals
from .compare.tables import interval_text

Rule = Callable[[str, Sequence[str], str], bool]
"""A benchmark's published scoring: a text, the options as shown and the right one, to whether it counts as right."""

OURS, LOG = "matcher", "log"

FAILED = "the model failed, by the log"
"""Why an answer without a text has no score."""

LISTED = 20
"""Differences in the terminal; a file has all."""


@dataclass(frozen=True)
class ScoredAnswer:
    """An answer with its question and its scores.

    Attributes:
        id: of the question in the data, or else in the log.
        number: of the answer among those to its question; empty for one.
        text: the answer; empty where there is none.
        question: its words, where they are known.
        options: as they were shown.
        reference: the right one.
        group: of questions that are not independent.
        taken: the option that the matcher reads; None where the answer names none.
        how: the rule of `match_answer` that decided.
        scores: from 0 to 1, by the name of the scoring.
        problem: why the answer has no score; empty where it has.
    """

    id: str
    number: str
    text: str
    question: str = ""
    options: tuple[str, ...] = ()
    reference: str = ""
    group: str = ""
    taken: str | None = None
    how: str = ""
    scores: Mapping[str, float] | None = None
    problem: str = ""

    @property
    def by(self) -> Mapping[str, float]:
        """The scores; empty where there are none."""
        return self.scores or {}

    @property
    def differs(self) -> bool:
        """Whether two scorings disagree."""
        return len(set(self.by.values())) > 1


@dataclass(frozen=True)
class Rescored:
    """A log that was scored anew.

    Attributes:
        log: the log.
        answers: all of them, in its order.
        scorings: names of the scorings that there are, ours first.
        unanswered: ids of questions of the data without an answer that was scored.
    """

    log: AnswerLog
    answers: tuple[ScoredAnswer, ...]
    scorings: tuple[str, ...]
    unanswered: tuple[str, ...]

    @property
    def scored(self) -> tuple[ScoredAnswer, ...]:
        """The answers that have a score."""
        return tuple(answer for answer in self.answers if not answer.problem)

    @property
    def differences(self) -> tuple[ScoredAnswer, ...]:
        """The answers on which two scorings disagree."""
        return tuple(answer for answer in self.scored if answer.differs)


# ----- the question of an answer


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


class _Questions:
    """The questions of some data, by id and by their options."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self._by_id = {str(row["id"]): row for row in rows}
        self._by_options: dict[frozenset[str], list[Row]] = {}
        for row in rows:
            self._by_options.setdefault(frozenset(map(_folded, row["options"])), []).append(row)

    def joined(self, answer: LoggedAnswer) -> ScoredAnswer:
        """An answer with its question; with a problem where it has none here."""
        row, number, options = self._by_id.get(answer.id), answer.number, answer.options
        base, mark, order = answer.id.rpartition("?")
        if row is None and mark and order.isdecimal() and base in self._by_id:
            row, number = self._by_id[base], order
            orders = shown_orders(row["options"], CYCLIC)
            if not options and int(order) < len(orders):
                options = orders[int(order)]
        row = row or self._in_words(answer)
        if row is None:
            return _without(answer, "no question of the data")
        if options and not set(map(_folded, row["options"])) <= set(map(_folded, options)):
            return _without(answer, "the log shows other options than the question of this id")
        options = tuple(options or row["options"])
        reference = next(text for text in options if _folded(text) == _folded(row["answer"]))
        group = str(row.get("group") or row["id"])
        return ScoredAnswer(str(row["id"]), number, answer.text or "", row["question"], options, reference, group)

    def _in_words(self, answer: LoggedAnswer) -> Row | None:
        """The only question whose options and words were put to the model; of several the one at the log's place."""
        prompt = _folded(answer.prompt)
        there = None
        if answer.place is not None and 0 <= answer.place < len(self.rows):
            there = self.rows[answer.place]
        candidates = self._by_options.get(frozenset(map(_folded, answer.options)), [there] if there else [])
        candidates = [row for row in candidates if _folded(row["question"]) in prompt]
        if len(candidates) > 1:
            candidates = [row for row in candidates if row is there]
        return candidates[0] if candidates else None


def _without(answer: LoggedAnswer, problem: str) -> ScoredAnswer:
    id = answer.id or ("" if answer.place is None else f"question {answer.place}")
    return ScoredAnswer(id, answer.number, answer.text or "", answer.prompt, answer.options, problem=problem)


def _by_itself(answer: LoggedAnswer) -> ScoredAnswer:
    """An answer with its question as the log has it."""
    joined = _without(answer, "")
    place = option_place(answer.reference, answer.options)
    if len(answer.options) < 2:
        problem = "the log shows no options; --data gives them"
    elif not answer.reference:
        problem = "the log has no right answer; --data gives it"
    elif len(set(map(_folded, answer.options))) < len(answer.options):
        problem = "two of its options are equal"
    elif place is None:
        problem = "the right answer of the log is none of its options"
    else:
        return replace(joined, reference=answer.options[place], group=joined.id or _folded(answer.prompt))
    return replace(joined, problem=problem)


_LETTERED = re.compile(r"\(?([A-Za-z])[).:]\)?\s+(\S.*)", re.S)


def option_place(reference: str, options: Sequence[str]) -> int | None:
    """The place of a right answer that is stated as a text, a letter, or a letter before the text.

    None where it is none of the options, or its letter is one and its text another.
    """
    if not 2 <= len(options) <= 26:
        return None
    match = match_answer(reference, options)
    if match.rule in ("letter", "text"):
        return match.option
    lettered = _LETTERED.fullmatch(reference.strip())
    place = option_place(lettered[2], options) if lettered else None
    return place if lettered and place == ord(lettered[1].upper()) - ord("A") else None


# ----- scores


def rescore(log: AnswerLog, rows: Sequence[Row] | None = None, rule: tuple[str, Rule] | None = None) -> Rescored:
    """Score the answers of a log anew.

    Args:
        log: its answers.
        rows: questions with ``id``, ``question``, ``options`` and ``answer``; None for those in the log.
        rule: name of a benchmark, and its published rule.

    Returns:
        a score of each answer by the matcher, by the rule where one is given, and by the log where it states one.
    """
    rows = log.rows if log.rows is not None else rows
    questions = None if rows is None else _Questions([row for row in rows if row.get("split", "test") == "test"])
    answers = []
    for answer in log.answers:
        joined = _by_itself(answer) if questions is None else questions.joined(answer)
        if not joined.problem and answer.text is None:
            joined = replace(joined, problem=FAILED)
        if not joined.problem:
            joined = _scored(joined, answer, rule)
        answers.append(joined)
    names = (OURS, *([rule[0]] if rule else []), LOG)
    scorings = tuple(name for name in names if any(name in answer.by for answer in answers))
    scored = {answer.id for answer in answers if not answer.problem}
    ids = [str(row["id"]) for row in questions.rows] if questions else dict.fromkeys(answer.id for answer in answers)
    return Rescored(log, tuple(answers), scorings, tuple(id for id in ids if id not in scored))


def _scored(joined: ScoredAnswer, answer: LoggedAnswer, rule: tuple[str, Rule] | None) -> ScoredAnswer:
    options = joined.options
    match = match_answer(joined.text, options)
    taken = None if match.option is None else options[match.option]
    scores = {OURS: float(taken == joined.reference)}
    if rule is not None:
        scores[rule[0]] = float(rule[1](joined.text, options, joined.reference))
    if answer.stated is not None:
        scores[LOG] = answer.stated
    return replace(joined, taken=taken, how=match.rule, scores=scores)


def _per_question(answers: Sequence[ScoredAnswer], names: Sequence[str]) -> tuple[Floats, NDArray[np.int64]]:
    """The mean scores of each question, [n, scorings], of the answers that have all of them; and its group, [n]."""
    by_question: dict[str, list[ScoredAnswer]] = {}
    for answer in answers:
        if all(name in answer.by for name in names):
            by_question.setdefault(answer.id, []).append(answer)
    means = [[np.mean([one.by[name] for one in given]) for name in names] for given in by_question.values()]
    groups = np.unique([given[0].group for given in by_question.values()], return_inverse=True)[1]
    return np.array(means, np.float64).reshape(-1, len(names)), groups.astype(np.int64)


# ----- tables


def tables_of(rescored: Rescored, listed: int | None = LISTED) -> list[Table]:
    """The accuracies, the readings of the matcher, and the answers that are scored differently.

    Args:
        rescored: a log.
        listed: number of these answers; None for all.
    """
    tables = [_accuracies(rescored)]
    if rescored.scored:
        tables.append(_readings(rescored))
    return [*tables, _listing(rescored, listed)] if rescored.differences else tables


def _accuracies(rescored: Rescored) -> Table:
    rows = []
    for name in rescored.scorings:
        values, groups = _per_question(rescored.scored, [name])
        accuracy = Cell(float(values.mean()), note=interval_text(mean_intervals(values, groups, bounds=(0, 1))[0]))
        less, p = Cell(None), Cell(None)
        if name != OURS:
            both, groups = _per_question(rescored.scored, [OURS, name])
            test = compare_pairs(both, groups, bounds=(0, 1))[0]
            less, p = Cell(test.difference, note=interval_text(test.interval)), Cell(test.p)
        rows.append(TableRow((Cell(_NAMES.get(name, f"rule of {name}")), accuracy, Cell(len(values)), less, p)))
    columns = (
        Column("scoring", "how an answer is read and compared with the right one", numeric=False),
        Column("accuracy", "share of answers that are right, the mean over questions; 95 % interval"),
        Column("questions", "with an answer that this scoring scores", digits=None),
        Column("matcher less this", "difference on the same answers; 95 % interval"),
        Column("p", "paired t-test of the difference, clustered by group of questions"),
    )
    title = f"{rescored.log.title}: {rescored.log.format}, {counted(len(rescored.answers), 'answer')}"
    return Table(title, columns, tuple(rows), _notes(rescored), name="accuracy")


_NAMES = {OURS: "matcher of this project", LOG: "as the log counts"}


def _notes(rescored: Rescored) -> tuple[str, ...]:
    """What the accuracies leave out or cannot tell, in sentences."""
    scored, notes = rescored.scored, []
    questions = {answer.id for answer in scored}
    if len(scored) > len(questions):
        notes.append(
            f"{len(scored):,} answers to {counted(len(questions), 'question')}, in other orders of the options or "
            "asked again: a question's score is the mean over its answers."
        )
    if rescored.log.rows is not None:
        notes.append("Every question counts the same here; a task may weight kinds of questions alike instead.")
    for problem, count in Counter(answer.problem for answer in rescored.answers if answer.problem).items():
        ids = list(dict.fromkeys(answer.id for answer in rescored.answers if answer.problem == problem))
        notes.append(f"{counted(count, 'answer')} not scored, {problem}: {shown([shortened(id, 60) for id in ids])}.")
    if rescored.unanswered and scored:
        values = _per_question(scored, [OURS])[0]
        every = len(questions) + len(rescored.unanswered)
        notes.append(
            f"{counted(len(rescored.unanswered), 'question')} without a scored answer: "
            f"{shown([shortened(id, 60) for id in rescored.unanswered])}; with these as wrong, the accuracy by the "
            f"matcher is {number_text(float(values.sum()) / every)}."
        )
    empty = sum(not answer.text.strip() for answer in scored)
    if empty:
        notes.append(
            f"{counted(empty, 'empty answer')}: some programs write one where the model failed, and a log cannot tell."
        )
    for name in rescored.scorings[1:]:
        lucky = sum(answer.how in UNPARSED and answer.by.get(name, 0) > 0 for answer in scored)
        if lucky:
            drawn = "; some programs draw an option there" if name == LOG else ""
            notes.append(
                f"{counted(lucky, 'answer')} right {'in the log' if name == LOG else f'by the rule of {name}'} in "
                f"which the matcher reads no option{drawn}."
            )
    if scored:
        chance = float(np.mean([1 / len(answer.options) for answer in scored]))
        notes.append(f"Chance, the mean of 1 / number of options: {number_text(chance)}.")
    return tuple(notes)


def _readings(rescored: Rescored) -> Table:
    """The number of answers, and of right ones by each scoring, for each rule of the matcher."""
    rules = Counter(answer.how for answer in rescored.scored)
    rows = []
    for how, count in sorted(rules.items(), key=lambda pair: (pair[0] in UNPARSED, -pair[1])):
        given = [answer for answer in rescored.scored if answer.how == how]
        right = [float(sum(answer.by.get(name, 0.0) for answer in given)) for name in rescored.scorings]
        label = f"unparsed: {how}" if how in UNPARSED else how
        rows.append([label, count, *(int(n) if n.is_integer() else n for n in right), sum(a.differs for a in given)])
    columns = (
        Column("read by", "rule of the matcher that decided, see `match_answer`", numeric=False),
        Column("answers", digits=None),
        *(Column(f"right, {name}", _NAMES.get(name, f"rule of {name}"), digits=None) for name in rescored.scorings),
        Column("differ", "answers on which two scorings disagree", digits=None),
    )
    return Table("How the matcher reads the answers, and how many count as right", columns, rows_of(rows), name="read")


def _listing(rescored: Rescored, listed: int | None) -> Table:
    """The answers that are scored differently."""
    rows = [
        [
            f"{answer.id} ({answer.number})" if answer.number else answer.id,
            shortened(answer.text, 60),
            answer.reference,
            f"none: {answer.how}" if answer.taken is None else f"{answer.taken} ({answer.how})",
            *(None if name not in answer.by else number_text(answer.by[name], 1) for name in rescored.scorings),
        ]
        for answer in rescored.differences[:listed]
    ]
    columns = [Column(name, numeric=False) for name in ("question", "answer", "right answer", "read as")]
    columns += [Column(name, _NAMES.get(name, f"rule of {name}"), numeric=False) for name in rescored.scorings]
    left = len(rescored.differences) - len(rows)
    legend = (f"{left:,} more; --out FILE.csv has all answers.",) if left else ()
    title = f"{counted(len(rescored.differences), 'answer')} scored differently"
    return Table(title, tuple(columns), rows_of(rows), legend, name="differences")


def every_answer(logs: Sequence[Rescored]) -> Table:
    """All answers of logs, one a row, with all that is known of each."""
    names = tuple(dict.fromkeys(name for rescored in logs for name in rescored.scorings))
    rows = [
        [
            *(rescored.log.title, answer.id, answer.number, answer.question, " | ".join(answer.options)),
            *(answer.reference, answer.text, answer.taken, answer.how),
            *(answer.by.get(name) for name in names),
            *(answer.differs, answer.problem),
        ]
        for rescored in logs
        for answer in rescored.answers
    ]
    columns = (
        Column("log", "file, or model and task", numeric=False),
        Column("question", "its id", numeric=False),
        Column("number", "of the answer among those to its question: an order of the options, an epoch", numeric=False),
        Column("words", "of the question, or of the prompt", numeric=False),
        Column("options", "in the order shown", numeric=False),
        Column("right answer", numeric=False),
        Column("answer", "of the model, word for word but for line ends", numeric=False),
        Column("read as", "the option that the matcher reads; missing where it reads none", numeric=False),
        Column("read by", "rule of the matcher that decided", numeric=False),
        *(Column(name, f"score, {_NAMES.get(name, f'rule of {name}')}") for name in names),
        Column("differs", "whether two scorings disagree", numeric=False),
        Column("problem", "why the answer has no score; empty where it has", numeric=False),
    )
    return Table("Stored answers scored anew", columns, rows_of(rows), name="answers")
