"""Tables of multiple-choice questions about sounds: their columns, options, answers and clips, and all their faults.

A table is CSV, TSV, JSON, JSONL, Parquet, a folder of Parquet shards, or a Hub data set; each row is a question.
"""

from __future__ import annotations

import io
import re
import string
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path, PurePosixPath
from typing import Any

from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of, sha256_of_file
from audio_compositionality.support.text import counted, first_line, listed, nearest, parse_json, shown

from ...account import Account
from ...data import DatasetError, HeldData, Row
from ...rendered import HUB_ID
from ...tables import check_rows, heading_of, open_table, read_text, value_of
from ..files import FoundFiles
from ..recordings import SoundError, SoundFile, printable, read_header
from . import LARGEST_FILE, LARGEST_TABLE, LONGEST_CLIP, LONGEST_TOGETHER, ReadClip, ReadConfiguration

RECIPE = "audio_questions"

HEADINGS: Mapping[str, tuple[str, ...]] = {
    field: tuple(headings.split())
    for field, headings in {
        "id": "id question_id qid uid sample_id",
        "question": "question instruction prompt query",
        "options": "options choices candidates",
        "answer": "answer correct_answer answer_gt correct correct_option answer_index answer_idx label gold target "
        "ground_truth",
        "audio": "audio audio_path audio_paths audio_file file_name file filename path wav context audio_id clip",
        "kind": "kind category question_type type task_name task",
        "group": "group cluster",
        "events": "events",
    }.items()
}
"""Usual headings of each field, in order of preference, in any case of letters."""

_NEEDED = ("question", "options", "answer", "audio")

_NUMBERED = {
    "options": re.compile(r"(?:(?:option|choice)[ _-]?)?([a-z])|(?:option|choice)[ _-]?(\d+)"),
    "audio": re.compile(r"(?:audio|file|clip)(?:_path)?[ _-]?(\d+)()"),
}
"""Headings of one option, or of one clip, in lower case."""

ANSWERS = ("text", "letters", "from-0", "from-1")
"""Ways to give the right option."""

_LETTERED = re.compile(r"[(\[]?([a-z])[.:)\]]\s+(?=\S)", re.IGNORECASE)
_LETTER = re.compile(r"[(\[]?([a-z])[.:)\]]?", re.IGNORECASE)


FEWEST_OPTIONS, MOST_OPTIONS = 2, 26
"""Least and most options of a question; a letter names each in a prompt."""


_LOOKS_LETTERED = re.compile(r"\s*[(\[]?[A-Z][.:)\]](\s|$)")


def fault_of(question: str, options: Sequence[str], answer: str) -> str | None:
    """Return what is wrong with a question, its options and its answer; None if nothing is."""
    if not question.strip():
        return "the question is empty"
    if not FEWEST_OPTIONS <= len(options) <= MOST_OPTIONS:
        return f"it has {counted(len(options), 'option')}; a question must have {FEWEST_OPTIONS} to {MOST_OPTIONS}"
    if not all(option.strip() for option in options):
        return "an option is empty"
    if len({option.strip().casefold() for option in options}) < len(options):
        return "an option is repeated"
    if any(map(_LOOKS_LETTERED.match, options)):
        return "an option begins as if it were lettered, e.g. F. Scott"
    if answer not in options:
        return "the answer is not one of the options"
    if any("\n" in text for text in (question, *options)):
        return "the question or an option has several lines"
    return None


@dataclass(frozen=True)
class Embedded:
    """A clip stored in a row of a table.

    Attributes:
        name: name of its file, as in the table.
        read: returns its content; raises SoundError if there is none.
    """

    name: str
    read: Callable[[], SoundFile]


Record = dict[str, Any]
"""A row of a table by its headings; sound in the table is `Embedded`."""


class ReadQuestions(HeldData[ReadConfiguration]):
    """Questions that were read; see `Data`.

    Attributes:
        notes: facts about a published benchmark: sentences without a full stop.
        skipped: a sentence on the rows that were left out, if any.
        faults: why rows were left out, by id.
        digests: SHA-256 of the files of each row, in the order of the rows.
        account: account of the rows and columns.
    """

    def __init__(
        self,
        configuration: ReadConfiguration,
        notes: Sequence[str],
        skipped: Sequence[str],
        faults: Mapping[str, str],
        digests: Sequence[tuple[str, ...]],
        account: Account,
    ) -> None:
        super().__init__(configuration.source, {RECIPE: configuration})
        self.digests = tuple(digests)
        self.notes = tuple(notes)
        self.skipped = tuple(skipped)
        self.faults = dict(faults)
        self.account = account


def open_questions(
    source: str,
    *,
    audio: str | None = None,
    follow_links: bool = False,
    encoding: str | None = None,
    columns: Iterable[str] = (),
    answers: str | None = None,
    split: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    skip_invalid: bool = False,
    sounds: bool = True,
    progress: bool = False,
) -> ReadQuestions:
    """Open a table of questions.

    Args:
        source: a file, a folder of Parquet shards, or a Hub id.
        audio: folder with its sound files; by default the table's folder.
        follow_links: whether to follow links that lead out of that folder.
        encoding: encoding of its text, unless it is UTF-8.
        columns: ``FIELD=HEADING`` for `HEADINGS`, with ``+`` between several headings of options or clips.
        answers: one of `ANSWERS`; by default detected from the whole column.
        split, config, revision: for a Hub id.
        skip_invalid: leave out rows with a fault.
        sounds: whether files are checked; without them only the rows can be used.
        progress: show progress bars.

    Raises:
        InputError: `columns` or `answers` is invalid.
        DatasetError: the table cannot be read, or rows have faults; counts and names them.
    """
    said = headings_of(columns)
    if answers not in (None, *ANSWERS):
        raise InputError(f"answers is {answers!r}; {nearest(str(answers), ANSWERS)}")
    place = Path(source).expanduser()
    if place.exists():
        records = read_records(place, encoding)
    elif HUB_ID.fullmatch(source):
        records = hub_records(source, split=split, config=config, revision=revision, progress=progress)
    else:
        raise DatasetError(f"no table of questions found at {source!r}")
    folder = Path(audio).expanduser() if audio else place if place.is_dir() else place.parent
    read = valid_questions(
        source, records, folder, said, answers, skip_invalid=skip_invalid, sounds=sounds, follow_links=follow_links
    )
    if audio and sounds:
        every = FoundFiles(folder, follow_links=follow_links).sounds
        names = {name for row in read.configuration(RECIPE).rows for name in row["files"]}
        named = {*names, *(Path(name).stem for name in names)}
        unused = [path.name for path in every if not {path.name, path.stem} & named]
        if unused:
            count = f"{len(unused):,} of {len(every):,} sound files"
            read.notes += (f"{count} of {audio} are not used by any question: {printable(shown(unused))}",)
    return read


def headings_of(columns: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the headings given by a user, by field; raise InputError if they are not ``FIELD=HEADING``."""
    said: dict[str, tuple[str, ...]] = {}
    for pair in columns:
        field, equals, heading = (part.strip() for part in pair.partition("="))
        if field not in HEADINGS or not equals or not heading:
            raise InputError(f"columns has {pair!r}; give FIELD=HEADING with {nearest(field, HEADINGS)}")
        parts = tuple(part.strip() for part in heading.split("+"))
        if len(parts) > 1 and field not in _NUMBERED:
            raise InputError(f"columns has {pair!r}; only options and audio may be in several columns")
        said[field] = parts
    return said


def read_records(path: Path, encoding: str | None = None) -> list[Record]:
    """Return the rows of a table; `encoding` is the encoding of its text, see `tables.text_of`.

    Raises:
        DatasetError: it has another format, is damaged, too large, or has no rows.
    """
    suffix = path.suffix.lower()
    if path.is_dir() or suffix == ".parquet":
        shards = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
        records = [record for shard in shards for record in _ParquetTable(shard).records()]
    elif suffix in (".csv", ".tsv", ".json", ".jsonl"):
        if path.stat().st_size > LARGEST_TABLE:
            raise DatasetError(f"{path} has {path.stat().st_size:,} bytes; the limit is {LARGEST_TABLE:,}")
        rows: Any
        try:
            if suffix in (".csv", ".tsv"):
                rows = open_table(path, encoding=encoding, ragged="fill").records()
            elif suffix == ".jsonl":
                rows = [parse_json(line) for line in read_text(path, encoding).splitlines() if line.strip()]
            else:
                rows = parse_json(read_text(path, encoding))
                if isinstance(rows, dict):
                    rows = next((value for value in rows.values() if isinstance(value, list)), [])
            check_rows(len(rows), path.name)
            for number, row in enumerate(rows, 1):
                if not isinstance(row, dict):
                    raise DatasetError(f"entry {number} has other fields than the header")
            records = list(rows)
        except (OSError, ValueError, RecursionError, DatasetError) as error:
            raise DatasetError(f"{path} cannot be read as a table of questions: {first_line(error)}") from error
    else:
        raise DatasetError(f"{path} is not a table of questions; give CSV, TSV, JSON, JSONL or Parquet")
    if not records:
        raise DatasetError(f"{path} has no rows")
    return records


class _ParquetTable:
    """A Parquet table: its rows with their sound, which is read one row group at a time, on demand."""

    def __init__(self, path: Path) -> None:
        from ...manifest import open_parquet

        self._name = printable(str(path))
        self._table = open_parquet(self._name, path)
        self._read: tuple[int, list[Record]] = (-1, [])

    def _group(self, group: int) -> list[Record]:
        from ...manifest import rows_of_groups

        if self._read[0] != group:
            self._read = (group, rows_of_groups(self._name, self._table, [group]))
        return self._read[1]

    def records(self) -> Iterator[Record]:
        """Yield the rows in order; for sound, only the names are kept."""
        from ...manifest import LARGEST_GROUP

        size = 0
        for group in range(self._table.num_row_groups):
            for place, record in enumerate(list(self._group(group))):
                kept = {name: self._without_sound(value, group, place, name) for name, value in record.items()}
                size += sum(len(str(value)) for value in kept.values())
                if size > LARGEST_GROUP:
                    raise DatasetError(f"{self._name} has more than {LARGEST_GROUP:,} characters, too many for a table")
                yield kept

    def _without_sound(self, value: Any, group: int, place: int, column: str) -> Any:
        if _is_sound(value):
            return Embedded(value.get("path") or "", partial(self._content, group, place, column, None))
        if isinstance(value, list) and value and all(map(_is_sound, value)):
            return [
                Embedded(part.get("path") or "", partial(self._content, group, place, column, number))
                for number, part in enumerate(value)
            ]
        return value

    def _content(self, group: int, place: int, column: str, number: int | None) -> SoundFile:
        value = self._group(group)[place][column]
        content = (value if number is None else value[number])["bytes"]
        if len(content) > LARGEST_FILE:
            raise SoundError(f"has {len(content):,} bytes; the limit is {LARGEST_FILE:,}")
        return io.BytesIO(content)


def _is_sound(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("bytes"), bytes) and bool(value["bytes"])


def hub_records(
    source: str,
    *,
    split: str | None = None,
    config: str | None = None,
    revision: str | None = None,
    progress: bool = False,
) -> list[Record]:
    """Return the rows of a Hub data set; see `hub_rows`."""
    import datasets

    from ...stored import place_of
    from ..hub import RowFiles, hub_rows

    place = place_of(source, revision)
    rows = hub_rows(place, config, split, progress=progress)
    # A file that `datasets` did not write does not declare bytes and a path as sound.
    sounds = [
        name
        for name, feature in rows.features.items()
        if isinstance(feature, datasets.Audio) or (isinstance(feature, dict) and set(feature) == {"bytes", "path"})
    ]
    files = {name: RowFiles(place, rows, name) for name in sounds}
    records: list[Record] = rows.remove_columns(sounds).to_list()
    for number, record in enumerate(records):
        record |= {name: Embedded(f"{name}-{number:05d}", partial(of.file, number)) for name, of in files.items()}
    return records


def valid_questions(
    source: str,
    records: Sequence[Record],
    folder: Path,
    said: Mapping[str, Sequence[str]] = {},
    answers: str | None = None,
    *,
    skip_invalid: bool = False,
    sounds: bool = True,
    follow_links: bool = False,
    notes: Sequence[str] = (),
) -> ReadQuestions:
    """Return the questions in a table's rows; see `open_questions`.

    Raises:
        DatasetError: a column is missing, the form of the answers is unclear, or rows have faults.
    """
    headings = _headings(source, records, said)
    drafts = [_draft(number, record, headings) for number, record in enumerate(records)]
    way = answers or _way_of_answers(source, drafts)
    files = _Folder(folder, is_read=sounds, follow_links=follow_links)
    with ThreadPoolExecutor(4) as threads:
        # Sound in the table is read in its order, files in several threads.
        one_by_one = any(isinstance(clip, Embedded) for draft in drafts for clip in draft.audio)
        each = (map if one_by_one else threads.map)(files.sound, [clip for draft in drafts for clip in draft.audio])
        read = [[next(each) for _ in draft.audio] for draft in drafts]
    rows: list[Row] = []
    clips: list[list[ReadClip]] = []
    digests: list[tuple[str, ...]] = []
    faults: dict[str, str] = {}
    numbers = Counter(draft.id for draft in drafts)
    for draft, of_row in zip(drafts, read, strict=True):
        place = stated_place(draft.answer, draft.options, way)
        options = [option for option in draft.options if option]
        answer = "" if place is None else draft.options[place]
        fault = fault_of(draft.question, options, answer)
        if fault == "the answer is not one of the options":
            fault = f"{fault}: {draft.answer!r}"
        if fault is None and not of_row:
            fault = "no file is given"
        events: list[dict[str, Any]] | None = None
        try:
            if draft.events not in (None, ""):
                times = [(float(event["onset"]), float(event["offset"]), event["label"]) for event in draft.events]
                events = [{"onset": on, "offset": off, "label": one_line(label)} for on, off, label in times]
        except (TypeError, ValueError, KeyError):
            fault = fault or "events are not a list of onset, offset and label"
        fault = fault or next((sound.fault for sound in of_row if sound.fault), None)
        together = sum(sound.seconds for sound in of_row)
        if fault is None and together > LONGEST_TOGETHER:
            fault = f"its sounds are together longer than {LONGEST_TOGETHER:,} s: {together:,.0f} s"
        if numbers[draft.id] > 1:
            fault = "another row has the same id"
        if fault is not None:
            faults[draft.id if numbers[draft.id] == 1 else f"{draft.id} (row {draft.number + 1})"] = fault
            continue
        digests.append(tuple(sound.digest for sound in of_row))
        clips.append([ReadClip(f"audio/{place}", sound.open) for place, sound in enumerate(of_row)])
        row = {
            "id": draft.id,
            "split": "test",
            "question": draft.question,
            "options": options,
            "answer": answer,
            "kind": draft.kind,
            "group": draft.group or sha256_of("".join(digests[-1]).encode())[:16],
            "files": [sound.name for sound in of_row],
            "duration": round(together, 3),
            "events": events,
        }
        rows.append(row)
    # By kind: how many, and the first few rows.
    kinds: dict[str, list[str]] = defaultdict(list)
    for id, fault in faults.items():
        kind, colon, detail = fault.partition(":")
        kinds[kind].append(f"{printable(id)}{colon}{detail}")
    told = "; ".join(f"{len(ids):,}: {kind} ({shown(ids)})" for kind, ids in kinds.items())
    if faults and not (skip_invalid and rows):
        raise DatasetError(
            f"{source}: {len(faults):,} of {len(drafts):,} questions are invalid: {told}. "
            + ("No question is left" if skip_invalid else "Correct them, or leave them out with --skip-invalid")
        )
    left_out = [f"{len(faults):,} of {len(drafts):,} questions of {source} are left out: {told}"] if faults else []
    used = {heading: field for field, of_field in headings.items() for heading in of_field}
    columns = {name: used.get(name, "") for name in dict.fromkeys(name for record in records for name in record)}
    kept = tuple(str(row["id"]) for row in rows)
    account = Account(source, len(drafts), kept, faults, columns=columns, unit="questions")
    configuration = ReadConfiguration(RECIPE, source, rows, clips)
    return ReadQuestions(configuration, notes, left_out, faults, digests, account)


def _headings(source: str, records: Sequence[Record], said: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return the headings of each field in a table.

    Raises:
        DatasetError: a given heading or a needed field is missing.
    """
    names = list(dict.fromkeys(name for record in records for name in record))
    by_name = {name.strip().lower(): name for name in reversed(names)}
    of_fields: dict[str, tuple[str, ...]] = {}
    for field, headings in said.items():
        found = {heading: heading_of(heading, names) for heading in headings}
        unknown = next((heading for heading, name in found.items() if name is None), None)
        if unknown is not None:
            raise DatasetError(f"{source} has no column {unknown!r}; {nearest(unknown, names)}")
        of_fields[field] = tuple(filter(None, found.values()))
    for field, usual in HEADINGS.items():
        heading = next((by_name[one] for one in usual if one in by_name), None)
        if heading is not None:
            of_fields.setdefault(field, (heading,))
            continue
        numbered = numbered_headings(by_name, field)
        if numbered:
            of_fields.setdefault(field, tuple(by_name[one] for one in numbered))
    missing = [field for field in _NEEDED if field not in of_fields]
    if missing:
        raise DatasetError(
            f"{source} has no column of {listed(missing)}; its columns are {', '.join(names)}. Give one with "
            f"--set columns={missing[0]}=HEADING"
        )
    return of_fields


def numbered_headings(names: Iterable[str], field: str) -> list[str]:
    """Return headings of one option or clip each, with a letter or a number: A, B … or consecutive numbers.

    Args:
        names: headings, in lower case.
        field: e.g. ``options``.

    Returns:
        The field's headings in order; empty if the first is missing.
    """
    numbered: list[tuple[int, str]] = []
    for name in names:
        match = _NUMBERED[field].fullmatch(name) if field in _NUMBERED else None
        if match is not None:
            is_letter = (match[1] or "").isalpha()
            numbered.append((ord(match[1]) - 97 if is_letter else int(match[1] or match[2]), name))
    numbered.sort(key=lambda pair: pair[0])
    first = numbered[0][0] if numbered else 2
    return [name for step, (number, name) in enumerate(numbered) if first < 2 and number == first + step]


@dataclass(frozen=True)
class _Draft:
    """A row as it was read: its options may be empty, and its answer is not resolved."""

    number: int
    id: str
    question: str
    options: tuple[str, ...]
    answer: str
    audio: tuple[str | Embedded, ...]
    kind: str
    group: str
    events: Any


def _draft(number: int, record: Record, headings: Mapping[str, tuple[str, ...]]) -> _Draft:
    def text(field: str) -> str:
        return one_line(record.get(headings[field][0])) if field in headings else ""

    options = options_of(_several(record, headings["options"]))
    clips = tuple(clip for clip in _several(record, headings["audio"]) if clip)
    audio = tuple(clip if isinstance(clip, Embedded) else str(clip) for clip in clips)
    events = value_of(record.get(headings["events"][0])) if "events" in headings else None
    id = text("id") or f"question-{number:05d}"
    return _Draft(number, id, text("question"), options, text("answer"), audio, text("kind"), text("group"), events)


def folded(text: str) -> str:
    """Return a text for comparison: without case and last dot, in one Unicode form and kind of apostrophe."""
    text = unicodedata.normalize("NFC", text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    return " ".join(text.split()).casefold().removesuffix(".")


def one_line(value: Any) -> str:
    """Return a value as a text on one line; empty if there is none."""
    return "" if value is None or value != value else " ".join(str(value).split())


def _several(record: Record, headings: Sequence[str]) -> list[Any]:
    """Return the values of several columns, or in one: a list, its JSON text, or a text separated by lines, | or ;."""
    if len(headings) > 1:
        return [record.get(heading) for heading in headings]
    value = value_of(record.get(headings[0]))
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        return [value]
    return value.split(next((mark for mark in ("\n", "|", ";") if mark in value), "\n"))


def options_of(value: Any) -> tuple[str, ...]:
    """Return the options in a list, or in a list's text, without leading letters if all have theirs in order."""
    texts = list(map(one_line, _several({"": value}, [""])))
    while texts and not texts[-1]:
        texts.pop()
    lettered = lettered_options("\n".join(texts))
    return lettered if len(lettered) == len(texts) or (lettered and len(texts) == 1) else tuple(texts)


_LETTERED_LINE = re.compile(r"[-*(\[< ]*([A-Za-z])(?:[).:\]>*]+\s+|[)\]>]+)(\S.*)")
_FORMS = ("({}) ", "{}. ", "{}) ", "{}: ", "[{}] ", "<{}> ")
"""Leading letters of options that share a line."""


def lettered_options(prompt: str) -> tuple[str, ...]:
    """Return the options in a prompt: the last lines that begin with A, B and so on, or else options in shared lines.

    >>> lettered_options("What is heard? Answer A or B.\\nA) dog\\n\\nB) rain\\nAnswer:")
    ('dog', 'rain')
    >>> lettered_options("What is heard? Choices: (A) a dog (B) rain")
    ('a dog', 'rain')

    Args:
        prompt: its text.

    Returns:
        The texts after the letters; empty if there are no such lines, or they can be divided in two ways.
    """
    run: list[str] = []
    last: list[str] = []
    for line in filter(None, map(str.strip, prompt.splitlines())):
        match = _LETTERED_LINE.match(line)
        place = -1 if match is None else ord(match[1].lower()) - ord("a")
        run = [*run, match[2]] if match and place == len(run) else [match[2]] if match and place == 0 else []
        last = run if len(run) > 1 else last
    # A line like "A. dog B. rain" contains its own options.
    if last and not any(f" {form.format(letter)}" in last[0] for form in _FORMS for letter in "Bb"):
        return tuple(last)
    found = set()
    for form, letters in product(_FORMS, (string.ascii_uppercase, string.ascii_lowercase)):
        first = form.format(letters[0])
        if first not in prompt:
            continue
        for rest in re.split(rf"(?:^|(?<=[\s:])){re.escape(first)}", prompt)[1:]:
            texts: list[str] = []
            for letter in letters[1:]:
                mark = form.format(letter)
                if mark not in rest:
                    break
                parts = re.split(rf"(?<=\s){re.escape(mark)}", rest)
                if len(parts) == 1:
                    # Some programs join the options without a blank: "A. dogB. rain".
                    parts = rest.split(mark)
                texts.append(parts[0].strip() if len(parts) == 2 else "")
                rest = parts[1]
            texts.append(rest.partition("\n")[0].strip())
            if len({text[-1:] for text in texts[:-1]} | {",", ";"}) == 2:
                texts = [text.rstrip(",;") for text in texts]
            if len(texts) > 1 and all(texts):
                found.add(tuple(map(one_line, texts)))
    return found.pop() if len(found) == 1 else ()


def stated_place(answer: str, options: Sequence[str], way: str) -> int | None:
    """Return the index of the option that a one-line answer gives in one of the `ANSWERS`; None if it gives none."""
    count = len(options)
    if way == "text":
        bare = _LETTERED.sub("", answer, count=1)
        places = [place for place, option in enumerate(options) if option and option in (answer, bare)]
        forms = (folded(answer), folded(bare))
        alike = [place for place, option in enumerate(options) if option and folded(option) in forms]
        return next(iter(places or (alike if len(alike) == 1 else ())), None)
    if way == "letters":
        match = _LETTER.fullmatch(answer)
        place = ord(match[1].lower()) - 97 if match else -1
    else:
        place = int(float(answer)) - int(way[-1]) if re.fullmatch(r"\d{1,3}(\.0)?", answer, re.ASCII) else -1
    return place if 0 <= place < count and options[place] else None


def option_place(statement: str, options: Sequence[str], first: str = "text") -> int | None:
    """Return the index of an option given as its text, its letter, or its letter before its text, without guessing.

    Args:
        statement: e.g. a right answer in a log.
        options: options as presented, without letters.
        first: one of the `ANSWERS`: how the statement is read if possible.

    Returns:
        The index, from 0; None if it is not an option, or its letter and its text give different options.
    """
    text = one_line(statement)
    places = (stated_place(text, options, way) for way in (first, "text", "letters"))
    place = next((place for place in places if place is not None), None)
    lettered = _LETTERED.match(text)
    if place is None or not lettered or text == options[place]:
        return place
    return place if place == ord(lettered[1].lower()) - ord("a") else None


def _way_of_answers(source: str, drafts: Sequence[_Draft]) -> str:
    """Return the way that yields an option in the most rows.

    Raises:
        DatasetError: two ways do, and yield different options.
    """
    stated = {way: [stated_place(draft.answer, draft.options, way) for draft in drafts] for way in ANSWERS}
    counts = {way: sum(place is not None for place in places) for way, places in stated.items()}
    best = [way for way in ANSWERS if counts[way] == max(counts.values())]
    differing = next((way for way in best if stated[way] != stated[best[0]]), None)
    if differing is None or not max(counts.values()):
        return best[0]
    pairs = zip(drafts, stated[best[0]], stated[differing], strict=True)
    draft = next(draft for draft, one, other in pairs if one != other)
    raise DatasetError(
        f"{source}: the answers can be read as {' or as '.join(best)}, e.g. {draft.answer!r} of {draft.id} with the "
        f"options {', '.join(map(repr, draft.options))}. Choose one with e.g. --set answers={best[0]}"
    )


@dataclass(frozen=True)
class _Sound:
    """A clip that was checked: its name, digest and seconds, how to open it, and why it is unusable."""

    name: str
    digest: str
    seconds: float
    open: Callable[[], SoundFile]
    fault: str | None = None


class _Folder:
    """The sound files in a folder and below it; see `FoundFiles.named`."""

    def __init__(self, folder: Path, *, is_read: bool = True, follow_links: bool = False) -> None:
        self._folder, self._is_read, self._follow_links = folder, is_read, follow_links

    @cached_property
    def _found(self) -> FoundFiles:
        return FoundFiles(self._folder, follow_links=self._follow_links)

    def sound(self, clip: str | Embedded) -> _Sound:
        """Return a clip after checking it."""
        name = (
            printable(PurePosixPath((clip if isinstance(clip, str) else clip.name).replace("\\", "/")).name) or "clip"
        )
        if isinstance(clip, str) and not self._is_read:
            return _Sound(name, clip, 0.0, partial(_missing, clip))
        if isinstance(clip, str):
            try:
                path = self._found.named(clip)
            except SoundError as error:
                why = f"a file is missing: {printable(clip)} {error}"
                return _Sound(name, clip, 0.0, partial(_missing, clip), why)
            clip = Embedded(name, partial(Path, path))
        try:
            file = clip.read()
            header = read_header(file)
            digest = sha256_of_file(file) if isinstance(file, Path) else sha256_of(file.getvalue())
            fault = None if header.frames else "a sound is empty"
            if header.frames > LONGEST_CLIP * header.rate:
                fault = f"a sound is longer than {LONGEST_CLIP} s: {header.frames / header.rate:,.0f} s"
            return _Sound(name, digest, header.frames / header.rate, clip.read, fault)
        except (DatasetError, OSError) as error:
            return _Sound(name, name, 0.0, clip.read, f"a sound cannot be read: {name} {first_line(error)}")


def _missing(name: str) -> SoundFile:
    raise SoundError(f"is missing: {printable(name)}")
