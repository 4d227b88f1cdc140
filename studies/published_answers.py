"""Score published answers of audio language models again, for docs/understand/published-answers.md.

    python -m studies.published_answers FOLDER --out questions.csv

FOLDER has a clone of each repository. `published_answers.yaml` lists the files with their models and questions;
`--sources` reads another such list. A file that cannot be used is named with the reason. No model is run.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from audio_compositionality.dataset_builder.data import Row
from audio_compositionality.dataset_builder.sounds.published.mmar import READER as MMAR
from audio_compositionality.dataset_builder.sounds.published.mmau import READER as MMAU
from audio_compositionality.dataset_builder.sounds.published.question_sets import Rule, has_letter
from audio_compositionality.dataset_builder.sounds.published.question_tables import RECIPE, open_questions
from audio_compositionality.evaluator.answer_logs import LOG, StoredAnswer, read_logs
from audio_compositionality.evaluator.compare.statistics import compare_pairs, mean_intervals
from audio_compositionality.evaluator.compare.tables import interval_text
from audio_compositionality.evaluator.rescore import OURS, rescore
from audio_compositionality.evaluator.run.item_audit import blind_answers
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import Cell, Column, Table, print_table, rows_of, to_csv
from audio_compositionality.support.table import Row as TableRow
from audio_compositionality.support.text import shown

Floats = NDArray[np.float64]

SOURCES = Path(__file__).with_suffix(".yaml")

RULE = "rule"
"""Name of the scores by the benchmark's own rule."""

LEAST_LEARNT = 100
"""Minimum number of questions to train a text baseline."""


def by_first_capital(text: str, options: Sequence[str], answer: str) -> bool:
    """Return whether the first capital A to E is the right letter (SH-Bench).

    Text before the last "The answer is" and the like does not count. Source: ``extract_characters_regex`` in
    evaluate.py of github.com/Elocinacademia/SelectiveHearing-Bench, where two missing commas join two pairs of them.
    """
    starts = ["The best answer is", "The correct answer is", "The answer is", "The answer"]
    starts += ["The best option isThe correct option is", "Best answer:Best option:", "Answer:", "Option:"]
    for start in (*starts, "The correct answer", "The correct option"):
        text = text.split(start)[-1]
    letter = re.search("[ABCDE]", text)
    return letter is not None and has_letter(options, answer, letter[0])


RULES: Mapping[str, Rule | None] = {"mmau": MMAU.rule, "mmar": MMAR.rule, "sh-bench": by_first_capital}
"""Published scoring rules that need no model, by benchmark."""


@dataclass(frozen=True)
class Answered:
    """The answers of a model in one file.

    Attributes:
        model: its name.
        label: the name, with the condition.
        answers: the first answer to each question, by its id.
    """

    model: str
    label: str
    answers: Mapping[str, StoredAnswer]

    def scores(self, rows: Sequence[Row], name: str = OURS) -> Floats:
        """Return 1 for a right answer and 0 for a wrong one, for each question; NaN without a score."""
        found = [self.answers.get(str(row["id"])) for row in rows]
        return np.array([np.nan if one is None else one.by.get(name, np.nan) for one in found])


def read_set(folder: Path, stated: Mapping[str, Any]) -> tuple[list[Row], list[Answered], dict[str, str]]:
    """Return the questions of a set, the answers in its files, and the reason for each file that cannot be used.

    Args:
        folder: folder with the clones.
        stated: the set, as in `published_answers.yaml`.
    """
    where = folder / stated["questions"]
    try:
        settings = {"columns": stated.get("columns", ()), "answers": stated.get("answers")}
        questions = open_questions(str(where), **settings, skip_invalid=True, sounds=False)
    except AudioCompositionalityError as error:
        return [], [], {stated["questions"]: f"{error}"}
    rows = list(questions.configuration(RECIPE).rows)
    left_out = {}
    if questions.faults:
        id, fault = next(iter(questions.faults.items()))
        left_out[stated["questions"]] = f"{len(questions.faults):,} of its questions, such as {id}: {fault}"
    rule = RULES[stated["rule"]] if "rule" in stated else None
    files = []
    for file in stated["files"]:
        path = folder / file["path"]
        if not path.is_file():
            left_out[file["path"]] = "there is no such file"
            continue
        try:
            # The authors' rule scores what their script cut out of an answer, where the file has it.
            by_column = {
                column: rescore(read_logs(path, column=column)[0], rows, rule and (RULE, rule)).scored
                for column in dict.fromkeys((file.get("answers"), file.get("cut", file.get("answers"))))
            }
        except AudioCompositionalityError as error:
            left_out[file["path"]] = f"{error}"
            continue
        answers = {one.id: one for one in reversed(by_column[file.get("answers")])}
        ruled = {one.id: one for one in reversed(by_column[file.get("cut", file.get("answers"))])}
        for id, one in answers.items():
            by = {name: score for name, score in one.by.items() if name != RULE}
            by |= {RULE: ruled[id].by[RULE]} if id in ruled and RULE in ruled[id].by else {}
            answers[id] = replace(one, by=by)
        if not any(one.text.strip() for one in answers.values()):
            left_out[file["path"]] = "all answers are empty" if answers else "no answer belongs to a question"
            continue
        label = f"{file['model']}, {file['note']}" if "note" in file else file["model"]
        files.append(Answered(file["model"], label, answers))
    return rows, files, left_out


def homogeneity(first: Sequence[int], second: Sequence[int]) -> float:
    """Return the p value of Stuart and Maxwell's test that two paired classifications use each class equally often.

    Args:
        first, second: classes of the same items, [n].
    """
    table = np.zeros((max(*first, *second) + 1,) * 2)
    np.add.at(table, (np.asarray(first), np.asarray(second)), 1)
    difference = table.sum(axis=1) - table.sum(axis=0)
    spread = np.diag(table.sum(axis=1) + table.sum(axis=0)) - table - table.T
    rank = int(np.linalg.matrix_rank(spread))
    return float(stats.chi2.sf(difference @ np.linalg.pinv(spread) @ difference, rank)) if rank else 1.0


def kappa(first: Floats, second: Floats) -> float | None:
    """Return Cohen's kappa of two files' scores, over the questions that both have; None if all are equal."""
    both = ~np.isnan(first) & ~np.isnan(second)
    value = float(cohen_kappa_score(first[both], second[both], labels=[0, 1]))
    return None if np.isnan(value) else value


def accuracy_table(name: str, rows: Sequence[Row], files: Sequence[Answered], blind: Floats | None) -> Table:
    """Return the table of files: accuracy by each scoring, unparsed answers, and the letters that were chosen.

    Args:
        name: of the set.
        rows: its questions.
        files: answers to them.
        blind: score of the text baseline in each question; None if there is none.
    """
    groups = np.unique([str(row["group"]) for row in rows], return_inverse=True)[1]
    lines = []
    for file in files:
        ours, ruled, logged = (file.scores(rows, scoring) for scoring in (OURS, RULE, LOG))
        there = ~np.isnan(ours)
        interval = interval_text(mean_intervals(ours[there, None], groups[there], bounds=(0, 1))[0])
        other = next((scores for scores in (ruled, logged) if not np.isnan(scores).all()), None)
        less = Cell(None)
        if other is not None:
            both = there & ~np.isnan(other)
            test = compare_pairs(np.stack([ours, other], axis=1)[both], groups[both], bounds=(0, 1)).between(0, 1)
            less = Cell(test.difference, note=interval_text(test.interval))
        answers = list(file.answers.values())
        read = [(one.options.index(one.taken), one.options.index(one.reference)) for one in answers if one.taken]
        letters = [Counter(places) for places in zip(*read, strict=True)]
        shares = [" ".join(f"{100 * of[k] / len(read):.0f}" for k in range(max(letters[1]) + 1)) for of in letters]
        lines.append(
            TableRow(
                (
                    Cell(file.label),
                    Cell(int(there.sum())),
                    Cell(float(ours[there].mean()), note=interval),
                    Cell(None if np.isnan(ruled).all() else float(np.nanmean(ruled))),
                    Cell(None if np.isnan(logged).all() else float(np.nanmean(logged))),
                    less,
                    Cell(1 - len(read) / len(answers)),
                    Cell(shares[0], note=f"key {shares[1]}"),
                    Cell(homogeneity(*zip(*read, strict=True))),
                    Cell(None if blind is None else kappa(ours, blind)),
                )
            )
        )
    columns = (
        Column("model", numeric=False),
        Column("answers", digits=None),
        Column("matcher", "accuracy by our matcher; 95 % interval"),
        Column("own rule", "accuracy by the benchmark's published rule"),
        Column("log", "accuracy by the scores in the file"),
        Column("matcher less other", "difference from the own rule, or else from the log; 95 % interval"),
        Column("unparsed", "share of answers in which the matcher reads no option"),
        Column("letters, %", "how often A, B, ... was chosen, where an option was read, and is right there", False),
        Column("p letters", "that letters are chosen as often as they are right (Stuart and Maxwell's test)"),
        Column("κ with texts", "agreement in right and wrong with the text baseline"),
    )
    chance = float(np.mean([1 / len(row["options"]) for row in rows]))
    legend = [f"{len(rows):,} questions; chance is {chance:.3f}."]
    if blind is not None:
        interval = interval_text(mean_intervals(blind[:, None], groups, bounds=(0, 1))[0])
        legend.append(f"Learnt from the texts of other questions, five folds: {blind.mean():.3f} {interval}.")
    return Table(f"{name}: files", columns, tuple(lines), tuple(legend), "files")


def pairs_table(name: str, rows: Sequence[Row], files: Sequence[Answered]) -> Table:
    """Return the table of pairs of files: agreement in right and wrong, and in the option where both are wrong."""
    lines = []
    for first, second in combinations(files, 2):
        scores = np.stack([file.scores(rows) for file in (first, second)])
        both = ~np.isnan(scores).any(axis=0)
        wrong = []
        for row in rows:
            one, other = (file.answers.get(str(row["id"])) for file in (first, second))
            if one and other and one.taken and other.taken and not one.by[OURS] and not other.by[OURS]:
                wrong.append((one.taken == other.taken, 1 / (len(one.options) - 1)))
        same, chance = np.mean(wrong, axis=0).tolist() if wrong else (None, None)
        agree = float((scores[0, both] == scores[1, both]).mean())
        lines.append((first.label, second.label, int(both.sum()), agree, kappa(*scores), len(wrong), same, chance))
    columns = (
        Column("model", numeric=False),
        Column("and", numeric=False),
        Column("questions", digits=None),
        Column("agree", "both right or both wrong"),
        Column("κ", "the same beyond chance, given both accuracies (Cohen)"),
        Column("both wrong", "questions on which both name a wrong option", digits=None),
        Column("same option", "of these, with the same wrong option"),
        Column("chance", "of these, if wrong options were drawn"),
    )
    return Table(f"{name}: agreement", columns, rows_of(lines), (), "agreement")


def questions_table(name: str, rows: Sequence[Row], files: Sequence[Answered], blind: Floats | None) -> Table:
    """Return one row per question with an answer of every model; the first file of each model counts."""
    models = list({file.model: file for file in reversed(files)}.values())[::-1]
    scores = np.stack([file.scores(rows) for file in models])
    lines = []
    for k in np.flatnonzero(~np.isnan(scores).any(axis=0)).tolist():
        answers = [file.answers[str(rows[k]["id"])] for file in models]
        wrong = Counter(one.taken for one in answers if one.taken and not one.by[OURS]).most_common(1)
        option, count = wrong[0] if wrong else ("", 0)
        right, texts = int(scores[:, k].sum()), None if blind is None else bool(blind[k])
        lines.append(
            (name, rows[k]["id"], rows[k]["kind"], rows[k]["answer"], right, len(models), option, count, texts)
        )
    columns = (
        *(Column(heading, numeric=False) for heading in ("set", "question", "kind", "right answer")),
        Column("right", "models that are right", digits=None),
        Column("models", digits=None),
        Column("wrong option", "the wrong option that most models name", numeric=False),
        Column("named by", "models that name it", digits=None),
        Column("texts", "whether the text baseline is right", numeric=False),
    )
    return Table("Questions", columns, rows_of(lines), (), "questions")


def shared_table(name: str, rows: Sequence[Row], files: Sequence[Answered], questions: Table) -> Table:
    """Return how many questions all models answer right or wrong, and how many if their errors were independent."""
    cells = [[cell.value for cell in row.cells] for row in questions.rows]
    models = list({file.model: file for file in reversed(files)}.values())
    shares = [np.nanmean(file.scores([row for row in rows if str(row["id"]) in file.answers])) for file in models]
    number, total = len(models), len(cells)
    groups = {
        "right for all models": ([of for of in cells if of[4] == number], float(np.prod(shares))),
        "wrong for all models": ([of for of in cells if not of[4]], float(np.prod(1 - np.array(shares)))),
    }
    lines: list[tuple[str, int, float | None, float | None]] = []
    for what, (of, chance) in groups.items():
        texts = [bool(one[8]) for one in of if one[8] is not None]
        lines.append((what, len(of), total * chance, sum(texts) / len(texts) if texts else None))
    same = [of for of in cells if not of[4] and of[7] == number]
    if number > 2:
        lines.append(("wrong for all, with the same option", len(same), None, None))
    columns = (
        Column(f"{total:,} questions, {number} models", numeric=False),
        Column("questions", digits=None),
        Column("if independent", "expected if models erred independently, with these accuracies", digits=1),
        Column("texts", "share of them that the text baseline answers right"),
    )
    legend = (f"Perhaps a wrong key: {shown([str(one[1]) for one in same])}.",) if same and number > 2 else ()
    return Table(f"{name}: questions that all models answer alike", columns, rows_of(lines), legend, "shared")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables of all sets whose files the folder has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with the clones")
    parser.add_argument("--sources", type=Path, default=SOURCES, help="YAML list of files; default: the published ones")
    parser.add_argument("--out", type=Path, metavar="FILE.csv", help="table of all questions")
    options = parser.parse_args(arguments)
    sources = yaml.safe_load(options.sources.read_text("utf-8"))
    reasons = {one["path"]: one["reason"] for one in sources.get("left_out", ())}
    every = []
    for stated in sources["sets"]:
        rows, files, left_out = read_set(options.folder, stated)
        reasons |= left_out
        if not files:
            continue
        blind = None
        if len(rows) >= LEAST_LEARNT:
            taken = blind_answers(rows)
            blind = np.array([option == row["answer"] for option, row in zip(taken, rows, strict=True)], float)
        questions = questions_table(stated["name"], rows, files, blind)
        every.append(questions)
        print_table(accuracy_table(stated["name"], rows, files, blind))
        print_table(pairs_table(stated["name"], rows, files))
        print_table(shared_table(stated["name"], rows, files, questions))
    columns = (Column("file", numeric=False), Column("reason", numeric=False))
    print_table(Table("Left out", columns, rows_of(reasons.items()), (), "left out"))
    if options.out is not None and every:
        write_whole(options.out, to_csv(replace(every[0], rows=tuple(row for table in every for row in table.rows))))


if __name__ == "__main__":
    main()
