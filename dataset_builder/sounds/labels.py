"""Labels, captions and speech rates of the rows of a data set or of a table."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from audio_compositionality.support.text import listed, nearest

from ..tables import first_heading, folded_heading, heading_of
from .entries import label_text, spoken
from .recordings import Candidate, SoundError, SoundFile, numbers_of, printable, read_header

if TYPE_CHECKING:
    import datasets


COLUMNS = ("label", "group", "condition", "captions", "separator", "hierarchy", "words")
"""Fields of a `DataSpec` that say what the columns of a table or data set contain."""

SUPPORT = 10
"""Fewest recordings of a label that reveal its place in the hierarchy; with fewer, labels can agree by chance."""


def split_labels(text: str, separator: str) -> tuple[str, ...]:
    """Return the labels in a text, without duplicates."""
    return tuple(dict.fromkeys(filter(None, (label.strip() for label in text.split(separator)))))


OF_LABELS = "labels"
"""The hierarchy derived from the labels of all recordings; see `counted_hierarchy`."""


def _key(label: str) -> str:
    """Return a label as hierarchies are compared; FSD50K has ``Wind_instrument_and_woodwind_instrument``."""
    return label_text(label).replace(", ", " and ").casefold()


def specific_labels(labels_of_each: Sequence[Sequence[str]], hierarchy: str | None = None) -> list[str | None]:
    """Return the most specific label of each recording that contains a single thing; None for the others.

    It is the recording's only label or, with a hierarchy, the label below all its other labels.

    If labels occur together, one is not necessarily more general than the other, so the hierarchy must be given.

    Args:
        labels_of_each: the labels of each recording.
        hierarchy: AudioSet's ontology, a file; or `OF_LABELS`.

    Raises:
        DatasetError: the file is not an ontology.
    """
    if hierarchy == OF_LABELS:
        return counted_hierarchy(labels_of_each)
    above: dict[str, set[str]] = {}
    if hierarchy is not None:
        from .formats.audioset_strong import labels_above

        every = labels_above(hierarchy)
        above = {_key(label): set(map(_key, uppers)) for label, uppers in every.items()}
    single: list[str | None] = []
    for labels in labels_of_each:
        keys = {label: _key(label) for label in labels}
        lowest = [label for label in keys if {*keys.values()} - {keys[label]} <= above.get(keys[label], set())]
        single.append(lowest[0] if len(lowest) == 1 else None)
    return single


def counted_hierarchy(labels_of_each: Sequence[Sequence[str]], support: int = SUPPORT) -> list[str | None]:
    """Return the result of `specific_labels` with the hierarchy derived from the labels themselves.

    If each recording also has the labels above its own (``Guitar,Plucked string instrument,Music``), a label is above
    another if every recording of the other has it. A recording is of a single thing if one of its labels is above none,
    and all its other labels are above that one.

    Args:
        labels_of_each: the labels of each recording.
        support: fewest recordings of a label; recordings of rarer labels are left out.
    """
    sets = [frozenset(labels) for labels in labels_of_each]
    counts: Counter[str] = Counter(label for labels in sets for label in labels)
    above: dict[str, frozenset[str]] = {}
    for labels in sets:
        for label in labels:
            above[label] = above.get(label, labels) & labels
    below: defaultdict[str, set[str]] = defaultdict(set)
    for label, labels in above.items():
        if counts[label] >= support:
            for upper in labels - {label}:
                below[upper].add(label)
    lowest = {label for label, count in counts.items() if count >= support and not below[label]}
    of_each = [(labels, sorted(labels & lowest)) for labels in sets]
    return [own[0] if len(own) == 1 and labels <= above[own[0]] else None for labels, own in of_each]


_CAPTIONS = re.compile(r"captions?(?:_?(\d+))?", re.ASCII)
"""Usual names of caption columns."""


@dataclass(frozen=True)
class Labels:
    """The labels of rows.

    Attributes:
        single: the only label of each row; None for a row that is left out; empty if several labels have no single one.
        numbers: the same as numbers, if they are numbers.
        several: all labels of each row; empty if rows have one each.
        left_out: the reason, by index of a row that is left out.
    """

    single: Sequence[str | None]
    numbers: Sequence[float] | None = None
    several: Sequence[tuple[str, ...]] = ()
    left_out: Mapping[int, str] = field(default_factory=dict)


def candidates_of(
    ids: Sequence[str],
    labels: Labels,
    sound: Callable[[int], SoundFile],
    *,
    groups: Sequence[str],
    conditions: Sequence[str],
    captions: Sequence[tuple[str, ...]],
    words: Sequence[Mapping[str, str]],
) -> tuple[list[Candidate], dict[str, str]]:
    """Return the rows of a table or a data set as recordings to read, and why the others are left out, by id.

    Args:
        ids: ids of the rows.
        labels: labels of the rows, with the rows that are left out.
        sound: returns the file of a row, or its content.
        groups, conditions, captions, words: as in `Candidate`, for each row.
    """
    candidates = [
        Candidate(
            ids[row],
            text,
            None if labels.numbers is None else labels.numbers[row],
            groups[row],
            conditions[row],
            partial(sound, row),
            captions[row],
            labels.several[row] if labels.several else (),
            words[row],
        )
        for row, text in enumerate(labels.single)
        if text is not None
    ]
    return candidates, {ids[row]: reason for row, reason in labels.left_out.items()}


def single_labels(texts: Sequence[str], without: Sequence[str] = ()) -> Labels:
    """Return the labels of rows with one label each; rows whose label is in `without` are left out."""
    left_out = {row: _no_class((text,)) for row, text in enumerate(texts) if text in without}
    return Labels(
        [None if row in left_out else text for row, text in enumerate(texts)], numbers_of(texts), (), left_out
    )


def several_labels(
    labels: Sequence[Sequence[str]], without: Sequence[str] = (), hierarchy: str | None = None
) -> Labels:
    """Return the labels of rows that have several each (see `specific_labels`); rows without any are left out."""
    kept = [tuple(dict.fromkeys(label for label in of_row if label and label not in without)) for of_row in labels]
    single = [one or "" if of_row else None for one, of_row in zip(specific_labels(kept, hierarchy), kept, strict=True)]
    left_out = {row: _no_class(labels[row]) for row, of_row in enumerate(kept) if not of_row}
    return Labels(single, None, kept, left_out)


def _no_class(labels: Sequence[str]) -> str:
    """Return the reason why a row with only these labels is left out."""
    names = [repr(label) for label in labels if label]
    return f"has the label {listed(names)}, which is not a class" if names else "has no label"


def labels_in(
    source: str,
    rows: datasets.Dataset,
    column: str,
    separator: str | None,
    without: Sequence[str],
    hierarchy: str | None = None,
) -> Labels:
    """Return the labels in a column of a data set: one per row, or several, separated or in lists."""
    if is_list(rows.features[column]):
        return several_labels(lists_in(source, rows, column), without, hierarchy)
    texts = texts_in(source, rows, column)
    if separator is not None:
        return several_labels([split_labels(text, separator) for text in texts], without, hierarchy)
    empty = next((index for index, text in enumerate(texts) if not text), None)
    if empty is not None:
        raise SoundError(f"{source}: row {empty} has no {column}; leave out rows without one")
    dtype = getattr(rows.features[column], "dtype", "")
    if not dtype.startswith(("float", "double")):
        return single_labels(texts, without)
    numbers = [float(text) for text in texts]
    wrong = next((index for index, number in enumerate(numbers) if not math.isfinite(number)), None)
    if wrong is not None:
        raise SoundError(f"{source}: {column} of row {wrong} is {numbers[wrong]}; leave out rows without one")
    return Labels(texts, numbers)


def captions_in(
    source: str, rows: datasets.Dataset, columns: Sequence[str], separator: str | None
) -> list[tuple[str, ...]]:
    """Return the captions in some columns of a data set: one text each, several with a separator, or lists."""
    captions: list[list[str]] = [[] for _ in range(len(rows))]
    for column in columns:
        if is_list(rows.features[column]):
            values = lists_in(source, rows, column)
        else:
            values = [split_captions(text, separator) for text in texts_in(source, rows, column)]
        for of_row, more in zip(captions, values, strict=True):
            of_row += more
    return [tuple(dict.fromkeys(filter(None, of_row))) for of_row in captions]


def heading_in(source: str, name: str, columns: Sequence[str]) -> str:
    """Return the column that matches a name; see `heading_of`."""
    found = heading_of(name, columns)
    if found is None:
        raise SoundError(f"{source} has no column {name!r}; {nearest(name, columns)}")
    return found


def uses_of(
    columns: Sequence[str],
    file: str,
    headings: Mapping[str, str | None],
    counted: str | None,
    captions: Iterable[str],
    attributes: Mapping[str, str],
) -> dict[str, str]:
    """Return the field that each column is used as; empty if it is not used. See `Account.columns`.

    Args:
        columns: columns of the table.
        file: the column with the sound.
        headings: the columns of label, group and condition.
        counted: the column in which words are counted.
        captions: the columns with captions.
        attributes: the attribute of each column with words.
    """
    used = {heading: name for name, heading in headings.items() if heading}
    used |= {counted or "": "words_per_second", file: "file"} | dict.fromkeys(captions, "captions")
    used |= {column: f"words of {attribute}" for column, attribute in attributes.items()}
    return {column: used.get(column, "") for column in columns}


def split_captions(text: str, separator: str | None) -> tuple[str, ...]:
    """Return the captions in a text; without a separator, the text itself."""
    parts = (text,) if separator is None else text.split(separator)
    return tuple(part.strip() for part in parts if part.strip())


def caption_columns(source: str, columns: Sequence[str], requested: Sequence[str] | None) -> tuple[str, ...]:
    """Return the columns with captions: the requested ones, or the usual names: ``captions``, ``caption``,
    ``caption_1`` …

    Raises:
        SoundError: a requested column does not exist.
    """
    if requested is not None:
        return tuple(heading_in(source, name, columns) for name in requested)
    matches = {name: match for name in columns if (match := _CAPTIONS.fullmatch(folded_heading(name)))}
    usual = first_heading(("captions", "caption"), matches)
    if usual is not None:
        return (usual,)
    return tuple(sorted(matches, key=lambda name: int(matches[name][1])))


WORD = "word:"
"""Default prefix of columns with a word each: ``word:pitch``, ``word:dynamics``."""


def word_columns(source: str, columns: Sequence[str], requested: Sequence[str] | None) -> dict[str, str]:
    """Return the attribute of each column with words: the requested columns, or those named ``word:ATTRIBUTE``.

    Args:
        source: name of the recordings, for messages.
        columns: columns of the data.
        requested: ``COLUMN``, which is also the name of its attribute, or ``COLUMN=ATTRIBUTE``.

    Raises:
        SoundError: a column does not exist, or two have the same attribute.
    """
    if requested is None:
        pairs = [(name, name[len(WORD) :].strip()) for name in columns if folded_heading(name).startswith(WORD)]
    else:
        parts = (text.partition("=") for text in requested)
        pairs = [(name.strip(), attribute.strip()) for name, _, attribute in parts]
    attributes: dict[str, str] = {}
    for name, attribute in pairs:
        name = heading_in(source, name, columns)
        attribute = attribute or name.removeprefix(WORD).strip()
        if not attribute or attribute in attributes.values():
            raise SoundError(
                f"{source}: the column {name!r} has the attribute {attribute!r}; it must "
                "be a name that no other column has"
            )
        attributes[name] = attribute
    return attributes


def words_by_row(rows: Sequence[Sequence[str]], attributes: Collection[str]) -> list[dict[str, str]]:
    """Return the words of each row by attribute, as they are spoken; empty fields give none."""
    return [
        {name: word for name, text in zip(attributes, row, strict=True) if (word := spoken(printable(text)))}
        for row in rows
    ]


def is_list(feature: object) -> bool:
    """Return whether a column contains lists."""
    import datasets

    return isinstance(feature, (datasets.List, datasets.LargeList))


def holds_texts(feature: object) -> bool:
    """Return whether a column contains texts, or lists of texts."""
    import datasets

    inner = getattr(feature, "feature", feature) if is_list(feature) else feature
    return isinstance(inner, datasets.Value) and "string" in inner.dtype


def holds_labels(feature: object) -> bool:
    """Return whether a column can contain labels: class names, texts or numbers, or lists of names or texts."""
    import datasets

    # Lists of numbers are measurements of one thing, neither labels nor captions.
    inner = getattr(feature, "feature", feature) if is_list(feature) else feature
    return isinstance(inner, datasets.ClassLabel) or isinstance(feature, datasets.Value) or holds_texts(feature)


def texts_in(source: str, rows: datasets.Dataset, column: str) -> list[str]:
    """Return a column as texts; null becomes an empty text.

    Raises:
        SoundError: it contains lists, or other values than classes, texts and numbers.
    """
    feature = rows.features[column]
    if is_list(feature):
        raise SoundError(f"{source}: {column} is not a column of classes, texts or numbers")
    return [_text(value) for value in _values(source, rows, column, feature)]


def lists_in(source: str, rows: datasets.Dataset, column: str) -> list[tuple[str, ...]]:
    """Return a column of lists of texts or classes as texts; an empty list for null.

    Raises:
        SoundError: the lists contain other values.
    """
    values = _values(source, rows, column, rows.features[column].feature)
    return [tuple(_text(value) for value in of_row or ()) for of_row in values]


def _text(value: object) -> str:
    return "" if value is None else printable(str(value).strip())


def _values(source: str, rows: datasets.Dataset, column: str, feature: Any) -> Sequence[Any]:
    """Return the values of a column, with class names instead of their numbers, also within lists."""
    import datasets

    if not holds_labels(rows.features[column]):
        raise SoundError(f"{source}: {column} is not a column of classes, texts or numbers")
    values: Sequence[Any] = rows.select_columns([column])[:][column]
    if isinstance(feature, datasets.Value):
        return values
    names: Sequence[str] = feature.names

    def named(value: object) -> object:
        if isinstance(value, list):
            return [named(one) for one in value]
        return names[value] if isinstance(value, int) and value >= 0 else None

    return [named(value) for value in values]


WORDS_PER_SECOND = "words_per_second"
"""The label that is computed instead of read: ``words_per_second`` alone, or ``words_per_second=COLUMN``."""

TRANSCRIPTS = ("text", "transcript", "transcription", "sentence", "words")
"""Default columns of transcripts."""

_SILENCES = ("", "<eps>", "sil", "sp")
"""Marks of aligners for silence."""


def counted_column(source: str, label: str | None, columns: Sequence[str]) -> str | None:
    """Return the column in which words are counted; None if the label is a column itself, or there is none.

    Args:
        source: name of the recordings, for messages.
        label: the requested label.
        columns: columns of the data.

    Raises:
        SoundError: there is no such column, or none with a usual name.
    """
    name, equals, column = (label or "").partition("=")
    if label in columns or name.strip() != WORDS_PER_SECOND:
        return None
    if equals:
        return heading_in(source, column.strip(), columns)
    usual = first_heading(TRANSCRIPTS, columns)
    if usual is None:
        raise SoundError(
            f"{source} has no column {', '.join(TRANSCRIPTS)} in which words can be counted; give one with "
            f"--set label={WORDS_PER_SECOND}=COLUMN, of {', '.join(columns)}"
        )
    return usual


def counted_labels(source: str, column: str, said: Sequence[Any], sound: Callable[[int], SoundFile]) -> Labels:
    """Return the words per second of each recording, as numbers.

    Args:
        source: name of the recordings, for messages.
        column: column of `said`, for messages.
        said: for each recording a transcript, whose words are counted over the seconds of the whole recording; or its
            words with times in seconds, ``[{"word", "start", "end"}, …]`` or lists by these names, from the first
            word's start to the last one's end. Recordings without words are left out.
        sound: returns the file of a recording, or its content.

    Raises:
        SoundError: a value is neither a text nor words with times.
    """
    numbers: list[float] = []
    left_out: dict[int, str] = {}
    for row, of_row in enumerate(said):
        seconds: float | None = None
        if of_row is None or isinstance(of_row, str):
            words = len((of_row or "").split())
            if words:
                # If the duration is unknown, reading the recording gives the reason.
                with suppress(SoundError):
                    header = read_header(sound(row))
                    seconds = header.frames / header.rate
        else:
            if isinstance(of_row, Mapping) and {"start", "end"} <= set(of_row):
                of_row = [dict(zip(of_row, values, strict=True)) for values in zip(*of_row.values(), strict=True)]
            each: list[Any] = of_row if isinstance(of_row, list) else [None]
            if not all(isinstance(word, Mapping) and {"start", "end"} <= set(word) for word in each):
                raise SoundError(
                    f"{source}: {column} of row {row} is neither a text nor words with times (start and end of each in "
                    "seconds)"
                )
            each = [word for word in each if str(word.get("word", "-") or "").strip().lower() not in _SILENCES]
            words = len(each)
            if words:
                seconds = float(max(word["end"] for word in each) - min(word["start"] for word in each))
        if not words:
            left_out[row] = f"has no words in {column}"
        elif seconds is not None and seconds <= 0:
            left_out[row] = f"has words that last {seconds:g} s in {column}"
        numbers.append(words / seconds if seconds and row not in left_out else 0.0)
    texts = [None if row in left_out else f"{number:.3f}" for row, number in enumerate(numbers)]
    return Labels(texts, numbers, (), left_out)
