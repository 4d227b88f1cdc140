"""Labelled answers, and how well they are read: ``python tests/metrics/labelled_answers.py`` prints it by kind.

With ``--real ANSWERS.jsonl`` it prints how real answers are read, beside other readers; see docs/understand/answers.md.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from audio_compositionality.dataset_builder.sounds.published.question_sets import by_words
from audio_compositionality.metrics.answers import LETTERS, match_answer

SETS = ("kinds", "development", "held_out", "independent", "traps")
"""Files of answers; see `answers/README.md` for who wrote which, and when."""
ALL = "all"
"""Of all kinds together."""

_FOLDER = Path(__file__).parent / "answers"


@dataclass(frozen=True)
class LabelledAnswer:
    """An answer with the position of the option that it comes down to, None where it is not exactly one."""

    id: str
    kind: str
    options: tuple[str, ...]
    answer: str
    expected: int | None


@dataclass(frozen=True)
class Scores:
    """How answers are read.

    Attributes:
        answers: how many there are; parsed: of them those read as an option; true: those that come down to one;
            right: those read as that.
    """

    answers: int
    parsed: int
    true: int
    right: int

    @property
    def precision(self) -> float:
        """The share of right ones among those read as an option, 1 where none is."""
        return self.right / self.parsed if self.parsed else 1.0

    @property
    def recall(self) -> float:
        """The share of those read rightly among those that come down to an option, 1 where none does."""
        return self.right / self.true if self.true else 1.0


def labelled_answers(name: str) -> list[LabelledAnswer]:
    """One file; of the held-out half without what stands in the development half too."""
    rows = [json.loads(line) for line in (_FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines()]
    answers = [LabelledAnswer(**row | {"options": tuple(row["options"])}) for row in rows]
    if name != "held_out":
        return answers
    known = {(row.options, row.answer) for row in labelled_answers("development")}
    return [row for row in answers if (row.options, row.answer) not in known]


def scores_by_kind(rows: Sequence[LabelledAnswer]) -> dict[str, Scores]:
    """Scores of each kind, and of ALL."""
    kinds = [*dict.fromkeys(row.kind for row in rows), ALL]
    read = [(row, match_answer(row.answer, row.options).option) for row in rows]
    return {
        kind: Scores(
            answers=sum(kind in (row.kind, ALL) for row, _ in read),
            parsed=sum(kind in (row.kind, ALL) and option is not None for row, option in read),
            true=sum(kind in (row.kind, ALL) and row.expected is not None for row, _ in read),
            right=sum(kind in (row.kind, ALL) and None is not option == row.expected for row, option in read),
        )
        for kind in kinds
    }


def twelve_lines(text: str, options: Sequence[str]) -> int | None:
    """The least that a reader can be: exact text, a letter in front, "answer is", else the only option that occurs."""
    answer = re.sub(r"[*_`]", "", text).strip()
    letters = LETTERS[: len(options)]
    exact = [place for place, option in enumerate(options) if option.casefold() == answer.casefold().rstrip(".")]
    if len(exact) == 1:
        return exact[0]
    marked = re.match(rf"\W{{0,2}}([{letters}])(?:\W*$|[).:])", answer)
    for cue in re.finditer(rf"answer(?: is)?\W+([{letters}])\b", answer):
        marked = cue
    if marked:
        return letters.index(marked[1])
    named = [place for place, option in enumerate(options) if re.search(rf"\b{re.escape(option)}\b", answer, re.I)]
    return named[0] if len(named) == 1 else None


def lmms_eval(text: str, options: Sequence[str]) -> int | None:
    """The rule of lmms-eval 0.7's task of MMAU: "(A)", else " A ", else "A."; the last of several, by chance of none.

    It knows the letters A to D alone, and takes the last of several by where it stands between spaces.
    """
    answer = f" {text.strip(',.!?;:')} "
    letters = LETTERS[: min(len(options), 4)]
    for form in ("({})", " {} ", "{}."):
        named = [letter for letter in letters if form.format(letter) in answer]
        if named:
            return letters.index(max(named, key=lambda letter: answer.rfind(f" {letter} ")))
    return random.Random(text).randrange(len(letters))


def real_answers(path: Path) -> dict[str, list[tuple[dict[str, Any], dict[str, Any]]]]:
    """Labelled real answers by part, each with its label: those of a file that have one.

    Args:
        path: of lines of JSON with ``options``, ``output`` and ``reference``; see docs/understand/answers.md.
    """
    labels = [json.loads(line) for line in (_FOLDER / "real.jsonl").read_text("utf-8").splitlines()]
    known = {label["answer"] for label in labels}
    answers = {}
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            key = hashlib.sha256(json.dumps([row["options"], row["output"]]).encode()).hexdigest()[:16]
            if key in known:
                answers[key] = row
    missing = len(known - set(answers))
    print(f"{len(known) - missing} of {len(known)} labelled answers are in {path}")
    parts: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for label in labels:
        if label["answer"] in answers:
            parts.setdefault(label["part"], []).append((answers[label["answer"]], label))
    return parts


def _wilson(count: int, size: int) -> tuple[float, float]:
    return tuple(binomtest(count, size).proportion_ci(method="wilson")) if size else (0.0, 1.0)


def _share(count: int, size: int) -> str:
    low, high = _wilson(count, size)
    return f"{count}/{size} = {count / size:.3f} [{low:.3f}, {high:.3f}]" if size else "-"


def _print_real(path: Path) -> None:
    readers: dict[str, Callable[[str, Sequence[str]], int | None]] = {
        "ours": lambda text, options: match_answer(text, options).option,
        "twelve lines": twelve_lines,
        "lmms-eval": lmms_eval,
    }
    for part, rows in real_answers(path).items():
        print(f"\n{part}: {len(rows)} answers\n| reader | precision | recall | verdict |\n|:--|--:|--:|--:|")
        true = sum(label["expected"] is not None for _, label in rows)
        is_right = [
            None is not label["expected"] and row["options"][label["expected"]] == row["reference"]
            for row, label in rows
        ]
        for name, reader in readers.items():
            read = [(reader(row["output"], row["options"]), label["expected"]) for row, label in rows]
            right = sum(option is not None and option == expected for option, expected in read)
            said = [
                option is not None and row["options"][option] == row["reference"]
                for (option, _), (row, _) in zip(read, rows, strict=True)
            ]
            agree = sum(one == other for one, other in zip(said, is_right, strict=True))
            parsed = sum(option is not None for option, _ in read)
            print(f"| {name} | {_share(right, parsed)} | {_share(right, true)} | {_share(agree, len(rows))} |")
        said = [by_words(row["output"], row["options"], row["reference"]) for row, _ in rows]
        agree = sum(one == other for one, other in zip(said, is_right, strict=True))
        print(f"| MMAU's rule | - | - | {_share(agree, len(rows))} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--real"]:
        _print_real(Path(sys.argv[2]))
        sys.exit()
    for name in SETS:
        print(f"\n{name}\n{'kind':36}{'n':>5}  {'precision':>32}  {'recall':>32}")
        for kind, scores in scores_by_kind(labelled_answers(name)).items():
            shares = _share(scores.right, scores.parsed), _share(scores.right, scores.true)
            print(f"{kind:36}{scores.answers:5}  {shares[0]:>32}  {shares[1]:>32}")
