"""Published multiple-choice benchmarks: what their files contain, and the rules by which their authors score."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...data import DatasetError
from ...rendered import HUB_ID
from .question_tables import ReadQuestions, Record, hub_records, read_records, valid_questions

Rule = Callable[[str, Sequence[str], str], bool | None]
"""Whether a model's answer is right by the authors' scoring: (text, options, right option); None if they leave it out
of their total."""


@dataclass(frozen=True)
class QuestionSet:
    """A reader of a question benchmark; see `Reader`.

    Attributes:
        name: the prefix in ``NAME:PATH``.
        title: the authors' name for it.
        url: address of its source.
        licence: licence as its authors state it.
        version: version of the schema that is read.
        tables: patterns of its tables in a folder, several separated by ``|``; the tables of the first matching entry
            are read.
        columns: headings of the fields of `question_tables.HEADINGS`; other fields have one of their usual headings.
        answers: how its answers are given, one of `question_tables.ANSWERS`.
        config, split: configuration and split of its Hub data set to read.
        rule: the authors' scoring; None if it needs a model, or none is published.
        rule_source: where the rule is published, or why there is none.
        known_faults: faults of its labels and schema, in sentences without a full stop.
        converted: turns a stored row into one with the headings of `columns`; None for a row that is not a
            multiple-choice question. Rows have the stem of their table under ``_table``.
        without: what the rows are that `converted` leaves out, in words.
    """

    name: str
    title: str
    url: str
    licence: str
    version: str
    tables: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]]
    rule_source: str
    answers: str = "text"
    config: str | None = None
    split: str | None = None
    rule: Rule | None = None
    known_faults: tuple[str, ...] = ()
    converted: Callable[[Record], Record | None] | None = None
    without: str = field(default="", kw_only=True)

    @property
    def meaning(self) -> str:
        """Its benchmark, for help texts."""
        tables = " or ".join(self.tables).replace("|", ", ")
        return f"the published {self.title}: a folder with {tables}, one of them, or a Hub id"

    def open(
        self,
        path: str,
        *,
        audio: str | None = None,
        split: str | None = None,
        revision: str | None = None,
        skip_invalid: bool = False,
        sounds: bool = True,
        progress: bool = False,
    ) -> ReadQuestions:
        """Open a user's copy.

        Args:
            path: a folder, a table, or a Hub id.
            audio: folder with the sound files; by default the table's folder.
            split: split of a Hub id.
            revision: revision of a Hub id.
            skip_invalid: leave out rows with a fault.
            sounds: whether files are checked; without them only the rows can be used.
            progress: show progress bars.

        Raises:
            DatasetError: nothing was found, or rows have faults; counts and names them.
        """
        source, place = f"{self.name}:{path}", Path(path)
        if place.exists():
            # The tables of the first matching entry.
            entries = ([path for one in entry.split("|") for path in place.rglob(one)] for entry in self.tables)
            tables = [place] if place.is_file() else sorted(next(filter(None, entries), []))
            if not tables:
                raise DatasetError(f"{source} contains nothing of {self.title}; expected: {' or '.join(self.tables)}")
            stored = [{**record, "_table": table.stem} for table in tables for record in read_records(table)]
        elif HUB_ID.fullmatch(path):
            stored = hub_records(
                path, split=split or self.split, config=self.config, revision=revision, progress=progress
            )
        else:
            raise DatasetError(f"{source} is neither a folder nor a file; give {self.meaning}")
        records = stored if self.converted is None else [row for row in map(self.converted, stored) if row is not None]
        if not records:
            raise DatasetError(f"{source} has no multiple-choice questions of {self.title}")
        notes = [f"{self.title} ({self.url}, {self.version}) is licensed: {self.licence}", *self.known_faults]
        if len(records) < len(stored):
            count = len(stored) - len(records)
            notes.append(f"{count:,} of {len(stored):,} rows are {self.without}; they are skipped")
        folder = Path(audio) if audio else place if place.is_dir() else place.parent
        return valid_questions(
            source,
            records,
            folder,
            self.columns,
            self.answers,
            skip_invalid=skip_invalid,
            sounds=sounds,
            notes=notes,
        )


def by_words(text: str, options: Sequence[str], answer: str) -> bool:
    """Return whether the text has all words of the right option, and no word of wrong options only (MMAU, MMAR).

    Sources: ``string_match`` in evaluation.py of github.com/Sakshi113/MMAU and of github.com/ddlBoJack/MMAR.
    """
    given, right = _words(text), _words(answer)
    wrong = {word for option in options if _words(option) != right for word in _words(option) - right}
    return bool(given) and right <= given and not given & wrong


def _words(text: str) -> set[str]:
    return set(re.findall(r"\b\w+\b", text.lower()))


def by_first_letter(text: str, options: Sequence[str], answer: str) -> bool:
    """Return whether the first character, one of A to D, is the letter of the right option (TREA).

    Source: benchmarking_acc.py of github.com/iiscleap/Audio-LLM-benchmarking-uncertainty.
    """
    return text[:1] in tuple("ABCD") and has_letter(options, answer, text[0])


def by_first_or_last_letter(text: str, options: Sequence[str], answer: str) -> bool | None:
    """Return whether the first character, or else the second last, as in ``The answer is A.``, is the right letter
    (MMSU).

    Source: mmsu_evaluation.py of github.com/dingdongwang/MMSU_Bench. The authors
    leave answers without a letter out of their total. An empty answer and ``None`` get the letter of the previous
    answer there; here, they are wrong.
    """
    written = text.strip().replace("\n", "")
    if written in ("", "None"):
        return False
    letters = [character for character in (written[:1], written[-2:-1]) if character and character in "ABCD"]
    return has_letter(options, answer, letters[0]) if letters else None


def by_one_letter_or_option(text: str, options: Sequence[str], answer: str) -> bool:
    """Return whether the only capital A to D in an answer, or else the first option that it contains, is right
    (MuChoMusic).

    Text before ``The correct answer is:`` does not count. Source: ``extract_responses`` in
    muchomusic_eval/scoring.py of github.com/mulab-mir/muchomusic.
    """
    written = text.split("The correct answer is:")[-1].strip()
    letters = set("ABCD") & set(written)
    if len(letters) == 1:
        return has_letter(options, answer, letters.pop())
    lower = written.lower().strip()
    return next((option for option in options if option.lower().strip() in lower), None) == answer


def has_letter(options: Sequence[str], answer: str, letter: str) -> bool:
    """Return whether a letter belongs to an option with the text of the right one."""
    return answer in options[string.ascii_uppercase.index(letter) :][:1]
