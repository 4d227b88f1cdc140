"""An audit of questions before a model is run: texts that give the answer away, and duplicates."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.support.table import Column, Table, rows_of
from audio_compositionality.support.text import shown
from audio_compositionality.tasks.answerers.text_only import Blind
from audio_compositionality.tasks.shapes.asking import direct_prompt

from ..compare.statistics import paired_t_test
from .folds import FOLDS, folds_of_groups

Floats = NDArray[np.float64]

SIGNIFICANT = 0.05
"""The adjusted p value below which the texts of a kind count as leaking the answer."""

_STRIKING = 3.0
"""Standard errors from chance above which a word marks options that are right too often or too rarely."""


def audit_tables(rows: Sequence[Row], digests: Sequence[Sequence[str]] = ()) -> list[Table]:
    """Return the tables of an audit: kinds of questions, positions and lengths of right answers, duplicates.

    Args:
        rows: questions, see the recipe's columns.
        digests: of the clips of each row; by default, clips are identified by their file names.
    """
    clips = [tuple(of_row) for of_row in (digests or [row["files"] for row in rows])]
    return [_kinds(rows, clips), _positions(rows), _lengths(rows), _repeats(rows, clips)]


def _kinds(rows: Sequence[Row], clips: Sequence[tuple[str, ...]]) -> Table:
    """Return the table of kinds: questions, clips, options, lengths, and the share that texts alone get right."""
    right = np.array([answer == row["answer"] for answer, row in zip(blind_answers(rows), rows, strict=True)], float)
    chance = np.array([1 / len(row["options"]) for row in rows])
    places: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        places[row["kind"]].append(place)
    tests = {kind: _above(right[of], chance[of], [rows[place]["group"] for place in of]) for kind, of in places.items()}
    corrected = dict(zip(tests, stats.false_discovery_control(list(tests.values())).tolist(), strict=True))
    lines = []
    for kind, of in places.items():
        options = [len(rows[place]["options"]) for place in of]
        seconds = [rows[place]["duration"] for place in of if rows[place]["duration"] is not None]
        leaks = corrected[kind] < SIGNIFICANT
        words = telling_words([rows[place] for place in of]) if leaks else []
        lines.append(
            (
                kind or "all",
                len(of),
                len({clips[place] for place in of}),
                f"{min(options)}–{max(options)}" if min(options) < max(options) else str(options[0]),
                float(np.median(seconds)) if seconds else None,
                float(chance[of].mean()),
                float(right[of].mean()),
                corrected[kind],
                shown(words, 6) if words else "no single word" if leaks else "–",
            )
        )
    columns = (
        Column("kind", numeric=False),
        Column("questions", digits=None),
        Column("clips", digits=None),
        Column("options", numeric=False),
        Column("seconds", "median of a question's clips", digits=1),
        Column("chance", "share right by random choice"),
        Column("blind", f"share right from texts alone, learned on other groups, {FOLDS} folds"),
        Column("p", "that blind is at chance, one-sided, by groups, adjusted over kinds (Benjamini and Hochberg)"),
        Column("telling words", "options with them are right too often or too rarely: right / all", numeric=False),
    )
    return Table("Kinds of questions, and what their texts give away", columns, rows_of(lines), (), "kinds")


def blind_answers(rows: Sequence[Row]) -> list[str]:
    """Return the option that `Blind` chooses for each question after learning from the rows of other groups."""
    numbers = {group: number for number, group in enumerate(dict.fromkeys(row["group"] for row in rows))}
    folds = np.array(folds_of_groups([numbers[row["group"]] for row in rows], [row["id"] for row in rows]))
    answers = [""] * len(rows)
    for fold in np.unique(folds):
        learnt = [rows[place] for place in np.flatnonzero(folds != fold).tolist()]
        asked = np.flatnonzero(folds == fold).tolist()
        model = Blind()
        model.learn(learnt, ())
        prompts = [direct_prompt(rows[place]["question"], rows[place]["options"]) for place in asked]
        for place, letter in zip(asked, model.answer([()] * len(prompts), prompts), strict=True):
            answers[place] = rows[place]["options"][ord(letter) - ord("A")]
    return answers


def _above(right: Floats, chance: Floats, groups: Sequence[str]) -> float:
    """Return the one-sided p value that answers are right no more often than chance, from paired differences by group.

    It is at least the probability that random choices are right in every group, counting each group's likeliest
    question alone. Without this bound, a few groups that are all right would have no variance, and p would be 0.
    """
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    difference = right - chance
    if len(numbers) < 2 or difference.mean() <= 0:
        return 1.0
    likeliest = np.zeros(len(numbers))
    np.maximum.at(likeliest, index := [numbers[group] for group in groups], chance)
    return max(paired_t_test(difference, index)[1] / 2, float(likeliest.prod()))


def telling_words(rows: Sequence[Row]) -> list[str]:
    """Return words and spellings whose options are right too often or too rarely, the most striking first.

    Each has two counts of questions: an option with the word is right / there is an option with the word (``all 0 /
    9``).
    """
    there, right = Counter[str](), Counter[str]()
    expected, variance = defaultdict[str, float](float), defaultdict[str, float](float)
    for row in rows:
        counts = Counter(mark for option in row["options"] for mark in _marks(option))
        of_answer = set(_marks(row["answer"]))
        for mark, count in counts.items():
            share = count / len(row["options"])
            if share < 1:
                there[mark] += 1
                right[mark] += mark in of_answer
                expected[mark] += share
                variance[mark] += share * (1 - share)
    scores = {mark: (right[mark] - expected[mark]) / math.sqrt(variance[mark]) for mark in there}
    striking = sorted(
        (mark for mark in scores if abs(scores[mark]) > _STRIKING), key=lambda mark: (-abs(scores[mark]), mark)
    )
    return [f"{mark} {right[mark]} / {there[mark]}" for mark in striking]


def _marks(option: str) -> Iterator[str]:
    """Yield the words of an option, each once, and remarks on its spelling."""
    yield from dict.fromkeys(re.findall(r"\w+", option.lower()))
    if option == option.lower() and any(map(str.isalpha, option)):
        yield "(lower case)"
    if "_" in option:
        yield "(underscore)"


def _positions(rows: Sequence[Row]) -> Table:
    """Return the table of positions: how often each is right, by number of options, with a test for uniformity."""
    places: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        places[len(row["options"])].append(row["options"].index(row["answer"]))
    lines = []
    for count in sorted(places):
        numbers = np.bincount(places[count], minlength=count)
        counts = ", ".join(f"{chr(ord('A') + place)} {number}" for place, number in enumerate(numbers))
        lines.append((count, len(places[count]), counts, float(stats.chisquare(numbers).pvalue)))
    columns = (
        Column("options", digits=None),
        Column("questions", digits=None),
        Column("right answers", "by position", numeric=False),
        Column("p", "that all positions are equally likely, chi-squared test"),
    )
    return Table("Positions of right answers", columns, rows_of(lines), (), "positions")


def _lengths(rows: Sequence[Row]) -> Table:
    """Return the table of lengths: how often the longest and the shortest option are right, and chance."""
    lines = []
    groups = [row["group"] for row in rows]
    for name, extreme in (("longest", max), ("shortest", min)):
        ends = [extreme(map(len, row["options"])) for row in rows]
        alike = [sum(len(option) == end for option in row["options"]) for row, end in zip(rows, ends, strict=True)]
        right = np.array([len(row["answer"]) == end for row, end in zip(rows, ends, strict=True)], float) / alike
        chance = np.array([1 / len(row["options"]) for row in rows])
        lines.append((name, float(right.mean()), float(chance.mean()), _above(right, chance, groups)))
    columns = (
        Column("option", "if several are equally long, one is chosen at random", numeric=False),
        Column("right", "share of questions"),
        Column("chance"),
        Column("p", "that it is right no more often than chance, one-sided, by groups"),
    )
    return Table("Lengths of right answers", columns, rows_of(lines), (), "lengths")


def _repeats(rows: Sequence[Row], clips: Sequence[tuple[str, ...]]) -> Table:
    """Return the table of duplicates: repeated clips and questions, and questions that contradict each other."""
    asked, answers = defaultdict(list), defaultdict(set)
    for row, of_row in zip(rows, clips, strict=True):
        key = (row["question"], frozenset(row["options"]), of_row)
        asked[key].append(row["id"])
        answers[key].add(row["answer"])
    again = [shown(ids, 2) for key, ids in asked.items() if len(ids) > 1 and len(answers[key]) == 1]
    other = [shown(ids, 2) for key, ids in asked.items() if len(answers[key]) > 1]
    names: dict[str, set[str]] = defaultdict(set)
    for row, of_row in zip(rows, clips, strict=True):
        for name, clip in zip(row["files"], of_row, strict=True):
            names[clip].add(name)
    copies = [shown(sorted(of_clip), 2) for of_clip in names.values() if len(of_clip) > 1]
    lines = [
        ("the same question about the same clips", len(again), shown(again, 3)),
        ("the same, with another right answer: one of them is wrong", len(other), shown(other, 3)),
        ("a clip under several names", len(copies), shown(copies, 3)),
    ]
    columns = (Column("what", numeric=False), Column("times", digits=None), Column("such as", numeric=False))
    return Table("Duplicates", columns, rows_of(lines), (), "duplicates")
