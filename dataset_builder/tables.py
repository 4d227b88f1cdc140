"""Reading of tables: recordings, strong labels, durations, captions, questions and logs of answers.

A table is delimited text: a tab, comma, semicolon or |, detected from its first line. Its encoding is UTF-8, UTF-16, or
one that the user gives. Rows keep their line number for messages, so `csv` reads them rather than pandas, which drops
line numbers and silently fills or cuts rows with another number of fields. Nothing in a table is executed.
"""

from __future__ import annotations

import ast
import codecs
import csv
import io
import math
import os
import re
import string
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree import ElementTree

from audio_compositionality.support.files import open_file, read_file
from audio_compositionality.support.text import first_line, listed, nearest, parse_json, plain, shortened, shown

from .data import DatasetError

if TYPE_CHECKING:
    from .sounds.published import ZippedFiles

LARGEST = 256 * 2**20
"""Most bytes of a table."""

ROWS_VARIABLE, MOST_ROWS = "AUDIO_COMPOSITIONALITY_MOST_ROWS", 1_000_000
"""Most rows of a table, and the environment variable that changes this limit."""

DELIMITERS: Mapping[str, str] = {"\t": "tab", ";": "semicolon", "|": "|", ",": "comma"}
"""Delimiters, with their names."""

_HEAD = 2**16
"""Bytes of a file from which its columns are detected."""

_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of spreadsheet workbooks: .xlsx and .ods, and .xls."""

_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PRINTED = re.compile(rf"\[\s*(?:{_STRING})(?:\s+(?:{_STRING}))+\s*\]", re.DOTALL)
"""A list of texts as NumPy prints it, without commas; Python would join the texts."""
_ARRAY = re.compile(r"array\((\[.*\])(?:,\s*dtype=[\w<>.']+)?\s*\)", re.DOTALL)

_QUOTED = re.compile(r'"[^"]*"')
_REMARKS = re.compile(r"(?:#[ \t].*\r?\n)*#[ \t](.*\r?\n)(?!#[ \t])(.*)")
"""Comment lines at the beginning of a table; captures the last of them and the line below."""

_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:[.,]\d*)?)", re.ASCII)
"""A time in hours, minutes and seconds."""


class TableError(DatasetError):
    """A table that cannot be read; the message names the file, the line and the remedy."""


@dataclass(frozen=True)
class Line:
    """A row of a table.

    Attributes:
        where: file and line, for messages, e.g. ``labels.tsv:12``.
        fields: without surrounding blanks.
    """

    where: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class ReadTable:
    """A table whose first line names the columns.

    Attributes:
        name: name of the file, for messages.
        headings: names of the columns as written; a repeated name gets ``.1``, ``.2``, as in pandas.
        lines: the rows below, each with one field per column.
    """

    name: str
    headings: tuple[str, ...]
    lines: tuple[Line, ...]

    def records(self) -> list[dict[str, str]]:
        """Return the rows as dicts from heading to field."""
        return [dict(zip(self.headings, line.fields, strict=True)) for line in self.lines]

    def column(self, name: str) -> str:
        """Return the heading that matches a name; see `heading_of`.

        Raises:
            TableError: no heading matches.
        """
        found = heading_of(name, self.headings)
        if found is None:
            raise TableError(f"{self.name} has no column {name!r}; {nearest(name, self.headings)}{self.one_column()}")
        return found

    def one_column(self) -> str:
        """Return the end of an error about a missing column if the first line is a single column; else an empty
        text."""
        if len(self.headings) > 1:
            return ""
        return (
            f". Its first line, {shortened(self.headings[0], 60)!r}, is a single column: fields must be separated by "
            f"{listed([*DELIMITERS.values()])}"
        )


def read_content(path: Path, largest: int = LARGEST) -> bytes:
    """Return the bytes of a text file.

    Raises:
        TableError: it cannot be read, is larger than `largest` bytes, or is a workbook.
    """
    try:
        if path.stat().st_size > largest:
            raise TableError(f"{path.name} has more than {largest // 2**20} MiB, too many for a table")
        content = read_file(path)
    except OSError as error:
        raise TableError(f"{path.name} cannot be read: {first_line(error)}") from error
    if content.startswith(_WORKBOOKS) and path.suffix.lower() in (".xlsx", ".xls", ".ods", ".xlsm", ".csv", ".tsv"):
        raise TableError(
            f"{path.name} is a spreadsheet workbook. Export the sheet as CSV UTF-8 (in Excel: File, Save "
            "As, CSV UTF-8; in LibreOffice: File, Save As, Text CSV) and give that file"
        )
    return content


def check_rows(count: int, name: str) -> None:
    """Raise an error if a table has too many rows, which would cost hours and gigabytes before any output.

    Raises:
        TableError: names the limit and how to raise it.
    """
    stated = os.environ.get(ROWS_VARIABLE, "")
    most = int(stated) if re.fullmatch("[0-9]{1,12}", stated) else MOST_ROWS
    if count > most:
        raise TableError(f"{name} has {count:,} rows; the limit is {most:,}. Set {ROWS_VARIABLE} to raise it")


def text_of(content: bytes, name: str, encoding: str | None = None, otherwise: str | None = None) -> str:
    """Return the text of a file.

    Args:
        content: its bytes.
        name: name of the file, for messages.
        encoding: given by the user; by default UTF-8, or UTF-16 if a byte order mark or the zero bytes show it.
        otherwise: encoding to use, instead of an error, if the text is not UTF-8.

    Raises:
        TableError: the file has another encoding or is not text.
    """
    if encoding is None and (content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))):
        encoding = "utf-16"
    if encoding is None and len(content) > 8:
        # In UTF-16 without a byte order mark, every other byte of Western letters is zero.
        zeros = [content[first:_HEAD:2].count(0) for first in (0, 1)]
        if max(zeros) > len(content[:_HEAD]) // 5 and min(zeros) < max(zeros) / 10:
            encoding = "utf-16-be" if zeros[0] > zeros[1] else "utf-16-le"
    try:
        text = content.decode("utf-8-sig" if encoding is None else encoding)
    except UnicodeDecodeError as error:
        if encoding is None and otherwise is not None:
            return content.decode(otherwise, "replace")
        line = content[: error.start].count(b"\n") + 1
        raise TableError(
            f"{name} is not {encoding or 'UTF-8'} text (line {line:,}, byte {content[error.start]:#04x}). Give its "
            "encoding, e.g. --set encoding=cp1252 (Western), cp949 (Korean), gb18030, big5 or shift_jis"
        ) from error
    if "\0" in text:
        raise TableError(f"{name} cannot be read as text: it contains NUL characters")
    return text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")


def read_text(path: Path, encoding: str | None = None, otherwise: str | None = None, largest: int = LARGEST) -> str:
    """Return the text of a file; see `read_content` and `text_of`."""
    return text_of(read_content(path, largest), path.name, encoding, otherwise)


def read_lines(path: Path, encoding: str | None = None, *, blanks: int = 0) -> list[Line]:
    """Return the rows of a table whose first line need not name columns; see `lines_of`.

    Raises:
        TableError: the file cannot be read or is empty.
    """
    lines = lines_of(read_text(path, encoding), path.name, blanks=blanks)
    if not lines and not blanks:
        raise TableError(f"{path.name} is empty")
    return lines


def delimiter_of(text: str) -> str:
    """Return the delimiter of a table, from its first non-empty lines outside quotation marks.

    It is a tab if the first line has one; else a semicolon or | that several lines contain equally often; else the most
    frequent of semicolon, | and comma in the first line; a comma if it has none of them.
    """
    lines = [_QUOTED.sub("", line) for line in re.split(r"[\r\n]+", text[:_HEAD]) if line.strip()][:6]
    bare = lines[0] if lines else ""
    if "\t" in bare:
        return "\t"
    # The last line may be cut off. Text in a field can have any number of commas.
    for mark in ";|" if len(lines) > 2 else "":
        if bare.count(mark) and {line.count(mark) for line in lines[:-1]} == {bare.count(mark)}:
            return mark
    counts = {mark: bare.count(mark) for mark in DELIMITERS}
    # In 0,5;1,5;dog the commas are decimal commas.
    best = max(counts, key=lambda mark: counts[mark])
    return best if counts[best] else ","


def lines_of(text: str, name: str, *, blanks: int = 0, is_loose: bool = False) -> list[Line]:
    """Return the non-empty rows of a table in a text; the first may name the columns.

    Args:
        text: text of the table.
        name: name of its file, for messages.
        blanks: fields of a row that are separated by blanks if it has no tab; the last may contain blanks. 0: none.
        is_loose: whether stray quotation marks are accepted as text.

    Raises:
        TableError: quotation marks are not closed, or a field is too long.
    """
    if blanks:
        rows = [
            row.split("\t") if "\t" in row else re.split(r",?\s+", row.strip(), maxsplit=blanks - 1)
            for row in text.splitlines()
        ]
        return [Line(f"{name}:{number}", tuple(map(str.strip, row))) for number, row in enumerate(rows, 1) if any(row)]
    # Excel can name the delimiter on a separate line; AudioSet's tables begin with comments.
    stated, remarks = re.match(r"sep=([\t;|,])\r?\n", text), _REMARKS.match(text)
    start = stated.end() if stated else 0
    if remarks:
        # The last comment names the columns if it has as many fields as the line below.
        header, below = (_QUOTED.sub("", line) for line in remarks.groups())
        mark = delimiter_of(below)
        is_header = 0 < header.count(mark) == below.count(mark)
        # A line without a number or a file name names the columns itself.
        is_header = is_header and bool(re.search(r"[\d.]", below))
        start = remarks.start(1) if is_header else remarks.start(2)
    delimiter = stated[1] if stated else delimiter_of(text[start : start + _HEAD])

    def parsed(quoting: Literal[0, 3]) -> list[Line]:
        stream = io.StringIO(text[start:], newline="")
        reader = csv.reader(stream, delimiter=delimiter, quoting=quoting, strict=not is_loose, skipinitialspace=True)
        lines, before = [], text.count("\n", 0, start)
        number = before
        try:
            for row in reader:
                if any(field.strip() for field in row):
                    lines.append(Line(f"{name}:{number + 1}", tuple(map(str.strip, row))))
                number = before + reader.line_num
            check_rows(len(lines), name)
        except csv.Error as error:
            raise TableError(f"{name}:{number + 1} cannot be read as a row of a table: {error}") from error
        return lines

    if delimiter != "\t":
        return parsed(csv.QUOTE_MINIMAL)
    # Most tables with tabs have no quoting, so quotation marks belong to labels; spreadsheets and pandas quote.
    bare = parsed(csv.QUOTE_NONE)
    if not any(field.startswith('"') for line in bare for field in line.fields):
        return bare
    try:
        quoted = parsed(csv.QUOTE_MINIMAL)
    except TableError:
        return bare
    widths = {len(line.fields) for line in bare}
    return bare if len(quoted) < len(bare) and len(widths) == 1 else quoted


def table_of(text: str, name: str, *, ragged: Literal["refuse", "fill", "cut"] = "refuse") -> ReadTable:
    """Return the table in a text whose first line names the columns.

    Args:
        text: text of the table.
        name: name of its file, for messages.
        ragged: what to do with a row with too few fields ("fill": the last ones are empty) or too many ("cut": these
            are dropped); otherwise an error, unless the extra fields are empty.

    Raises:
        TableError: the table is empty, or a row has another number of fields.
    """
    lines = lines_of(text, name, is_loose=ragged == "cut")
    if not lines:
        raise TableError(f"{name} is empty; the first line of a table must name its columns")
    seen: Counter[str] = Counter()
    headings = []
    for number, heading in enumerate(lines[0].fields):
        heading = heading or f"Unnamed: {number}"
        headings.append(f"{heading}.{seen[heading]}" if seen[heading] else heading)
        seen[heading] += 1
    width = len(headings)
    rows = []
    for line in lines[1:]:
        fields = line.fields
        if (len(fields) < width and ragged == "refuse") or (ragged != "cut" and any(fields[width:])):
            raise TableError(
                f"{line.where} has {len(fields)} fields, but the first line names {width} columns: "
                f"{shown(headings)}. Put quotation marks around fields that contain the delimiter"
            )
        rows.append(Line(line.where, (*fields, *[""] * (width - len(fields)))[:width]))
    return ReadTable(name, tuple(headings), tuple(rows))


def open_table(
    path: Path,
    *,
    encoding: str | None = None,
    otherwise: str | None = None,
    ragged: Literal["refuse", "fill", "cut"] = "refuse",
    largest: int = LARGEST,
) -> ReadTable:
    """Return the table in a file; see `table_of` and `text_of`.

    Raises:
        TableError: the file cannot be read or is not a table.
    """
    return table_of(read_text(path, encoding, otherwise, largest), path.name, ragged=ragged)


def head_of(path: Path) -> list[Line]:
    """Return the first rows of a file in any encoding, to recognise its kind; empty if they cannot be read.

    Raises:
        OSError: the file cannot be read.
    """
    with open_file(path) as stream:
        content = stream.read(_HEAD)
    if content.startswith(_WORKBOOKS):
        read_content(path)
    whole = content[: content.rfind(b"\n") + 1] if len(content) == _HEAD else content
    try:
        return lines_of(text_of(whole, path.name, otherwise="latin-1"), path.name, is_loose=True)
    except TableError:
        return []


def heading_of(name: str, headings: Iterable[str]) -> str | None:
    """Return the heading that matches a name: the same, or one that differs only in case and surrounding blanks."""
    every = list(headings)
    if name in every:
        return name
    return next((heading for heading in every if folded_heading(heading) == folded_heading(name)), None)


def first_heading(names: Sequence[str], headings: Iterable[str]) -> str | None:
    """Return the heading that matches the first of several names that has a match."""
    every = list(headings)
    return next((found for name in names if (found := heading_of(name, every)) is not None), None)


def folded_heading(heading: str) -> str:
    """Return a heading for comparison: without surrounding blanks, in lower case."""
    return plain(heading).strip().casefold()


def number_of(text: str) -> float:
    """Return a number with a decimal point or comma; NaN for anything else."""
    try:
        return float(text.replace(",", ".") if text.count(",") == 1 and "." not in text else text)
    except ValueError:
        return math.nan


def time_of(text: str) -> float:
    """Return a time in seconds: a number (`number_of`), ``mm:ss`` or ``hh:mm:ss`` with decimals; NaN for anything else.

    >>> time_of("1,5"), time_of("1:02:03.5"), time_of("2:30")
    (1.5, 3723.5, 150.0)
    """
    clock = _CLOCK.fullmatch(text.strip())
    if clock is None:
        return number_of(text)
    hours, minutes, seconds = clock.groups()
    return int(hours or 0) * 3_600 + int(minutes) * 60 + number_of(seconds)


def value_of(value: Any) -> Any:
    """Return the list or structure in a text (JSON, or as Python, NumPy or pandas print it); other values unchanged.

    >>> value_of('["a", "b"]'), value_of("['a' 'b']"), value_of("[sic] rain")
    (['a', 'b'], ['a', 'b'], '[sic] rain')
    """
    if not isinstance(value, str):
        return value
    text = value.strip()
    array = _ARRAY.fullmatch(text)
    text = array[1] if array else text
    if text[:1] not in ("[", "{"):
        return value
    if _PRINTED.fullmatch(text):
        text = f"[{','.join(re.findall(_STRING, text, re.DOTALL))}]"
    with warnings.catch_warnings():
        # Python warns of words that are almost numbers, such as 2and; a text of the user is no code.
        warnings.simplefilter("ignore", SyntaxWarning)
        for read in (parse_json, ast.literal_eval):
            try:
                return read(text)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    return value


def workbook_rows(archive: ZippedFiles) -> list[dict[str, str]]:
    """Return the rows of a workbook's first sheet (Office Open XML), by the headings in its first row.

    Raises:
        DatasetError: it is damaged, or too large.
    """
    main = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    rows: list[dict[str, str]] = []
    try:
        # Texts shared by cells, if any, and the cells.
        names = [name for name in ("xl/sharedStrings.xml", "xl/worksheets/sheet1.xml") if name in archive.names]
        read = [archive.file(name).getvalue() for name in names]
        if any(b"<!DOCTYPE" in content for content in read):
            raise DatasetError("it contains entity declarations")
        trees = [ElementTree.fromstring(content) for content in read]
        items = [item for tree in trees for item in tree.iter(f"{main}si")]
        texts = ["".join(part.text or "" for part in item.iter(f"{main}t")) for item in items]
        for row in trees[-1].iter(f"{main}row"):
            cells = {}
            for cell in row.iter(f"{main}c"):
                text = "".join(part.text or "" for part in cell.iter() if part.tag in (f"{main}v", f"{main}t"))
                is_shared = cell.get("t") == "s"
                cells[cell.get("r", "").rstrip(string.digits)] = texts[int(text)] if is_shared else text
            rows.append(cells)
    except (ElementTree.ParseError, ValueError, IndexError) as error:
        raise DatasetError(f"it is not a readable workbook: {first_line(error)}") from error
    return [{name: row.get(column, "") for column, name in rows[0].items()} for row in rows[1:]]
