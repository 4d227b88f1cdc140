"""Stored answers scored anew: by the matcher of this project, by a benchmark's published rule, and as their log counts.

No model is run. Each answer is joined with its question, in the options as they were shown; where the three disagree,
the difference is listed by answer, with the rule of `match_answer` that decided. Of several columns of a table,
one that equals the right answers is never taken for the model's.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.sounds.published.question_sets import Rule
from audio_compositionality.dataset_builder.sounds.published.question_tables import (
    ANSWERS,
    folded,
    one_line,
    option_place,
    stated_place,
)
from audio_compositionality.metrics.answers import UNPARSED, match_answer
from audio_compositionality.support.table import Cell, Column, Table, rows_of
from audio_compositionality.support.table import Row as TableRow
from audio_compositionality.support.text import counted, listed, number_text, shortened, shown
from audio_compositionality.tasks.shapes.asking import CYCLIC, shown_orders

from .answer_logs import LOG, AnswerLog, LogError, StoredAnswer, texts_of
from .compare.statistics import Floats, compare_pairs, mean_intervals
from .compare.tables import interval_text

OURS = "matcher"

KEY_SHARE = 0.99
"""A column with a larger share of right answers is taken for the key: no model answers that well."""

NUMBERS = ("from-0", "from-1", "text")
"""What ``2`` is, of `question_tables.ANSWERS`: the number of an option, counted from 0 or from 1, or a text."""

_NUMBER = re.compile(r"-?\d{1,3}(\.0)?", re.ASCII)

_AUTHORS = {
    "model_output": "MMAU's evaluation.py since January 2025",
    "model_prediction": "MMAU's and MMAR's evaluation.py before, and DeSTA2.5's",
    "answer_prediction": "MMAR's code/evaluation.py",
}
"""Whose published scripts score a column."""


@dataclass(frozen=True)
class Rescored:
    """A log that was scored anew.

    Attributes:
        log: the log.
        answers: all of them, in its order.
        scorings: names of the scorings that there are, ours first.
        unanswered: ids of questions of the data without an answer that was scored.
        said: what was read as what, how many rows were used and dropped and why, and what is suspicious: three lines
            at most.
    """

    log: AnswerLog
    answers: tuple[StoredAnswer, ...]
    scorings: tuple[str, ...]
    unanswered: tuple[str, ...]
    said: tuple[str, ...]

    @property
    def scored(self) -> tuple[StoredAnswer, ...]:
        """The answers that have a score."""
        return tuple(answer for answer in self.answers if not answer.problem)

    @property
    def differences(self) -> tuple[StoredAnswer, ...]:
        """The answers on which two scorings disagree."""
        return tuple(answer for answer in self.scored if answer.differs)


# ----- the question of an answer


def _way_of(title: str, what: str, given: Sequence[tuple[str, Sequence[str]]], remedy: str) -> str:
    """What statements are where they can be, of `question_tables.ANSWERS`.

    Args:
        title: of the log.
        what: "answers" of a model, which the matcher may read, or "right answers".
        given: each with its options.
        remedy: what to do if it is unclear.

    Raises:
        LogError: most are numbers of unknown meaning.
    """
    stated = [(one_line(text), options) for text, options in given if text.strip() and options]
    numbers = [(text, options) for text, options in stated if _NUMBER.fullmatch(text)]
    if 2 * len(numbers) <= len(stated):
        # A letter that is the text of another option is a letter where all are letters, and some can be nothing else.
        texts, letters = ([stated_place(text, options, way) for text, options in stated] for way in ANSWERS[:2])
        return "letters" if None in texts and None not in letters else "text"
    # A negative number says that a program read no option.
    numbers = [pair for pair in numbers if not pair[0].startswith("-")]
    read = [stated_place(text, options, "text") for text, options in numbers]
    if what == "answers":
        read = [match_answer(text, options).option for text, options in numbers]
    ways = [way for way in NUMBERS[:2] if None not in [stated_place(text, options, way) for text, options in numbers]]
    none_read, all_read = not any(place is not None for place in read), None not in read
    if all_read or not (none_read or ways):
        return "text"
    if len(ways) == 1 and none_read:
        return ways[0]
    raise LogError(
        f"{title}: the {what} are numbers such as {numbers[0][0]}, of options counted from 0 or 1, or texts. {remedy}"
    )


def _joined(log: AnswerLog, rows: Sequence[Row] | None, in_order: bool, way: str) -> list[StoredAnswer]:
    """The answers with their questions in the data, or else in the log, without a text; or with what prevents that.

    Args:
        log: the answers.
        rows: the data.
        in_order: the answers are those to the questions in their order.
        way: what the right answers in the log are; see `option_place`.

    Raises:
        LogError: they are to be taken in order, and have ids, or are fewer or more than the questions.
    """
    by_id = {str(row["id"]): row for row in rows or ()}
    by_options: dict[frozenset[str], list[Row]] = {}
    for row in rows or ():
        by_options.setdefault(frozenset(map(folded, row["options"])), []).append(row)
    known = sum(answer.id in by_id for answer in log.answers)
    if in_order and rows is not None and (known or len(log.answers) != len(rows)):
        raise LogError(
            f"{log.title} has {counted(len(log.answers), 'answer')}, {known:,} with the id of a question, and the data "
            f"{counted(len(rows), 'question')}: --in-order takes one answer without an id for each"
        )
    joined = []
    for position, answer in enumerate(log.answers):
        number, options, problem, place = answer.number, answer.options, "", None
        id = answer.id or ("" if answer.place is None else f"question {answer.place}")
        question, group, found = answer.question, id or folded(answer.question), by_id.get(answer.id)
        base, mark, order = answer.id.rpartition("?")
        if rows is None:
            place = option_place(answer.reference, options, way)
            faults = {
                "the log shows no options; --data gives them": len(options) < 2,
                "the log has no right answer; --data gives it": not answer.reference,
                "two of its options are equal": len(set(map(folded, options))) < len(options),
                "the right answer of the log is none of its options": place is None,
            }
            problem = next((fault for fault, is_there in faults.items() if is_there), "")
        elif in_order:
            found = rows[position]
        elif found is None and mark and order.isdecimal() and base in by_id:
            found, number = by_id[base], order
            orders = shown_orders(found["options"], CYCLIC)
            options = options or (orders[int(order)] if int(order) < len(orders) else ())
        elif found is None:
            # The only question whose options and words were put to the model; of several the one at the log's place.
            there = [] if answer.place is None or answer.place < 0 else rows[answer.place : answer.place + 1]
            alike = by_options.get(frozenset(map(folded, options)), there)
            alike = [row for row in alike if folded(row["question"]) in folded(question)]
            alike = [row for row in alike if there and row is there[0]] if len(alike) > 1 else alike
            found = alike[0] if alike else None
            hint = "" if known or log.why == "format" else ", by id or words: give --in-order if they are in its order"
            problem = f"no question of the data{hint}"
        if found is not None:
            options, problem = tuple(options or found["options"]), ""
            place = stated_place(found["answer"], options, "text")
            if place is None or not set(map(folded, found["options"])) <= set(map(folded, options)):
                problem = "the log shows other options than the question of this id"
            else:
                id, question, group = str(found["id"]), found["question"], str(found.get("group") or found["id"])
        right = "" if problem or place is None else options[place]
        asked = replace(answer, id=id, number=number, question=question, options=options)
        joined.append(replace(asked, group=group, reference=right, problem=problem))
    return joined


def _states_right(answer: StoredAnswer, text: str, first: str = "text") -> bool:
    """Whether a text is the right answer letter for letter, or its letter or number; see `option_place`."""
    place = option_place(text, answer.options, first)
    return place is not None and answer.options[place] == answer.reference


def _column_of(log: AnswerLog, joined: Sequence[StoredAnswer]) -> str:
    """The heading of the model's answers.

    Raises:
        LogError: several columns of a table could hold them, or none: lists them.
    """
    columns = {name: [one.values[name] for one in joined] for name in joined[0].values}
    names, keys = [*columns], set()
    for name, values in columns.items():
        pairs = [(one, text) for one, value in zip(joined, values, strict=True) for text in texts_of(value)]
        right = [_states_right(one, text) for one, text in pairs if one.reference]
        if sum(right) > KEY_SHARE * len(right):
            keys.add(name)
    left = [name for name in names[: 1 if log.why == "only" else None] if name not in keys]
    # Columns that are equal are one. The only heading of answers is taken, and reported where it equals the key.
    left = [name for name in left if name == left[0] or columns[name] != columns[left[0]]]
    left = names if len(names) == 1 and log.why != "only" else left
    if log.why and len(left) == 1:
        return left[0]
    told = []
    for name, values in columns.items():
        example = next((text for value in values for text in texts_of(value) if text.strip()), "")
        more = "equals the right answers" if name in keys else f"such as {shortened(example, 40)!r}"
        scored = _AUTHORS.get(name.lower())
        told.append(f"{shortened(name, 40)} ({more}{f'; scored by {scored}' if scored else ''})")
    first = next((name for name in names if name not in keys), "COLUMN")
    raise LogError(
        f"{log.title}: cannot tell which column holds the model's answers; candidates: {listed(told, 10)}. Name it: "
        f"--answers {shlex.quote(shortened(first, 40))}"
    )


# ----- scores


def rescore(
    log: AnswerLog,
    rows: Sequence[Row] | None = None,
    rule: tuple[str, Rule] | None = None,
    *,
    in_order: bool = False,
    numbers: str | None = None,
) -> Rescored:
    """Score the answers of a log anew.

    Args:
        log: its answers.
        rows: questions with ``id``, ``question``, ``options`` and ``answer``; None for those in the log.
        rule: name of a benchmark, and its published rule.
        in_order: the answers, without ids, are those to the questions in their order.
        numbers: of NUMBERS, what an answer such as ``2`` is; by default told where it is certain.

    Returns:
        a score of each answer by the matcher, by the rule where one is given, and by the log where it states one.

    Raises:
        LogError: several columns could hold the model's answers, or none; or `in_order` or `numbers` has to be given.
    """
    rows = log.rows if log.rows is not None else rows
    questions = None if rows is None else [row for row in rows if row.get("split", "test") == "test"]
    references = [(answer.reference, answer.options) for answer in log.answers] if questions is None else []
    key_way = _way_of(log.title, "right answers", references, "Give the questions: --data")
    joined = _joined(log, questions, in_order, key_way)
    column = _column_of(log, joined)
    given = []
    for one in joined:
        texts = texts_of(one.values[column])
        one = replace(one, problem=one.problem or ("" if texts else "the model failed, by the log"))
        for number, text in enumerate(texts or [""]):
            several = f"{one.number}.{number}".strip(".") if len(texts) > 1 else one.number
            given.append(replace(one, text=text, number=several))
    texts_given = [(one.text, one.options) for one in given if not one.problem]
    way = numbers or _way_of(log.title, "answers", texts_given, f"Say which: --numbers {', '.join(NUMBERS)}")
    answers = []
    for one in given:
        if not one.problem:
            text = one.text
            if way in NUMBERS[:2] and _NUMBER.fullmatch(text.strip()):
                place = stated_place(text.strip(), one.options, way)
                text, how = ("", "no such letter") if place is None else (one.options[place], "option number")
            else:
                match = match_answer(text, one.options)
                place, how = match.option, match.rule
            taken = None if place is None else one.options[place]
            by = {OURS: float(taken == one.reference)}
            verdict = None if rule is None else rule[1](text, one.options, one.reference)
            if rule is not None and verdict is not None:
                by[rule[0]] = float(verdict)
            one = replace(one, taken=taken, how=how, by={**by, **one.by})
        answers.append(one)
    scored = [answer for answer in answers if not answer.problem]
    names = (OURS, *([rule[0]] if rule else []), LOG)
    scorings = tuple(name for name in names if any(name in answer.by for answer in scored))
    asked = [answer.id for answer in answers] if questions is None else [str(row["id"]) for row in questions]
    answered = {answer.id for answer in scored}
    unanswered = tuple(id for id in dict.fromkeys(asked) if id not in answered)
    # What was read as what, which answers were dropped, and whether they may be the key.
    fields = {"answers": column, **log.fields}
    for what, counting in (("right answers", key_way), ("answers", way)):
        if counting in NUMBERS[:2]:
            fields[what] += f", numbers of options {counting.replace('-', ' ')}"
    if questions is not None:
        has_options = any(answer.options for answer in log.answers)
        fields |= {"right answers": "the data"} | ({} if has_options else {"options": "the data"})
    told = "; ".join(f"{what} from {where}" for what, where in fields.items())
    used = [f"{len(scored):,} of {counted(len(answers), 'answer')} used"]
    for problem, count in Counter(answer.problem for answer in answers if answer.problem).items():
        ids = list(dict.fromkeys(answer.id for answer in answers if answer.problem == problem))
        used.append(f"{count:,}: {problem} ({shown([shortened(id, 60) for id in ids])})")
    said = [f"{log.title} is {log.format}: {told}.", f"{'; '.join(used)}."]
    equal = sum(_states_right(answer, answer.text, way) for answer in scored)
    if equal > KEY_SHARE * len(scored):
        said.append(
            f"SUSPICIOUS: {equal:,} of {counted(len(scored), 'answer')} are the right answer letter for letter. If "
            "they are the key and not a model's, --answers COLUMN names another column of a table."
        )
    return Rescored(log, tuple(answers), scorings, unanswered, tuple(said))


def _per_question(answers: Sequence[StoredAnswer], names: Sequence[str]) -> tuple[Floats, NDArray[np.int64]]:
    """The mean scores of each question, [n, scorings], of the answers that have all of them; and its group, [n]."""
    by_question: dict[str, list[StoredAnswer]] = {}
    for answer in answers:
        if all(name in answer.by for name in names):
            by_question.setdefault(answer.id, []).append(answer)
    means = [[np.mean([one.by[name] for one in given]) for name in names] for given in by_question.values()]
    groups = np.unique([given[0].group for given in by_question.values()], return_inverse=True)[1]
    return np.array(means, np.float64).reshape(-1, len(names)), groups.astype(np.int64)


# ----- tables

_NAMES = {OURS: "matcher of this project", LOG: "as the log counts"}


def tables_of(rescored: Rescored, most: int | None = 20) -> list[Table]:
    """The accuracies, the readings of the matcher, and the answers that are scored differently.

    Args:
        rescored: a log.
        most: number of these answers; None for all.
    """
    named = {name: _NAMES.get(name, f"rule of {name}") for name in rescored.scorings}
    rows = []
    for name in rescored.scorings:
        values, groups = _per_question(rescored.scored, [name])
        accuracy = Cell(float(values.mean()), note=interval_text(mean_intervals(values, groups, bounds=(0, 1))[0]))
        less, p = Cell(None), Cell(None)
        if name != OURS:
            both, groups = _per_question(rescored.scored, [OURS, name])
            test = compare_pairs(both, groups, bounds=(0, 1)).between(0, 1)
            less, p = Cell(test.difference, note=interval_text(test.interval)), Cell(test.p)
        rows.append(TableRow((Cell(named[name]), accuracy, Cell(len(values)), less, p)))
    columns = (
        Column("scoring", "how an answer is read and compared with the right one", numeric=False),
        Column("accuracy", "share of answers that are right, the mean over questions; 95 % interval"),
        Column("questions", "with an answer that this scoring scores", digits=None),
        Column("matcher less this", "difference on the same answers; 95 % interval"),
        Column("p", "paired t-test of the difference, clustered by group of questions"),
    )
    title = f"{rescored.log.title}: {counted(len(rescored.answers), 'answer')}"
    tables = [Table(title, columns, tuple(rows), _notes(rescored), name="accuracy")]
    if not rescored.scored:
        return tables
    rules = Counter(answer.how for answer in rescored.scored)
    read = []
    for how, count in sorted(rules.items(), key=lambda pair: (pair[0] in UNPARSED, -pair[1])):
        given = [answer for answer in rescored.scored if answer.how == how]
        right = [float(sum(answer.by.get(name, 0.0) for answer in given)) for name in named]
        label = f"unparsed: {how}" if how in UNPARSED else how
        read.append([label, count, *(int(n) if n.is_integer() else n for n in right), sum(a.differs for a in given)])
    readings = (
        Column("read by", "rule of the matcher that decided, see `match_answer`", numeric=False),
        Column("answers", digits=None),
        *(Column(f"right, {name}", words, digits=None) for name, words in named.items()),
        Column("differ", "answers on which two scorings disagree", digits=None),
    )
    title = "How the matcher reads the answers, and how many count as right"
    tables.append(Table(title, readings, rows_of(read), name="read"))
    differing = rescored.differences
    if not differing:
        return tables
    unlike = [
        [
            f"{answer.id} ({answer.number})" if answer.number else answer.id,
            shortened(answer.text, 60),
            answer.reference,
            f"none: {answer.how}" if answer.taken is None else f"{answer.taken} ({answer.how})",
            *(None if name not in answer.by else number_text(answer.by[name], 1) for name in named),
        ]
        for answer in differing[:most]
    ]
    heads = [Column(name, numeric=False) for name in ("question", "answer", "right answer", "read as")]
    heads += [Column(name, words, numeric=False) for name, words in named.items()]
    left = len(differing) - len(unlike)
    legend = (f"{left:,} more; --out FILE.csv has all answers.",) if left else ()
    title = f"{counted(len(differing), 'answer')} scored differently"
    return [*tables, Table(title, tuple(heads), rows_of(unlike), legend, name="differences")]


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


_COLUMNS = {
    "id": ("question", "its id"),
    "number": ("number", "of the answer among those to its question: an order of the options, an epoch"),
    "question": ("words", "of the question, or of the prompt"),
    "options": ("options", "in the order shown"),
    "reference": ("right answer", ""),
    "text": ("answer", "of the model, word for word but for line ends"),
    "taken": ("read as", "the option that the matcher reads; missing where it reads none"),
    "how": ("read by", "rule of the matcher that decided"),
}
"""Heading and meaning of the attributes of an answer in `every_answer`."""


def every_answer(logs: Sequence[Rescored]) -> Table:
    """All answers of logs, one a row, with all that is known of each."""
    names = tuple(dict.fromkeys(name for rescored in logs for name in rescored.scorings))
    rows = []
    for rescored in logs:
        for answer in rescored.answers:
            options = " | ".join(answer.options)
            known = [options if name == "options" else getattr(answer, name) for name in _COLUMNS]
            scores = [answer.by.get(name) for name in names]
            rows.append([rescored.log.title, *known, *scores, answer.differs, answer.problem])
    columns = (
        Column("log", "file, or model and task", numeric=False),
        *(Column(heading, meaning, numeric=False) for heading, meaning in _COLUMNS.values()),
        *(Column(name, f"score, {_NAMES.get(name, f'rule of {name}')}") for name in names),
        Column("differs", "whether two scorings disagree", numeric=False),
        Column("problem", "why the answer has no score; empty where it has", numeric=False),
    )
    return Table("Stored answers scored anew", columns, rows_of(rows), name="answers")
