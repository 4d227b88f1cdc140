"""The published training tables of CompA-CLAP (arXiv 2310.08753), from a user's copy, with the sounds that they name.

Nothing of them is shipped. The tables name files where their authors had them: a file of the user's is taken for one of
theirs by the end of its path.
"""

from __future__ import annotations

import ast
import csv
import hashlib
import io
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from audio_compositionality.dataset_builder.data import DatasetError, Row
from audio_compositionality.dataset_builder.sounds.published import ReadClip, ReadConfiguration, text_of
from audio_compositionality.dataset_builder.sounds.recordings import printable, sound_files
from audio_compositionality.support.text import shown

from .data import TRAIN, VALIDATION, TrainingData, TrainingRow, TrainingSplits, plain_caption
from .errors import TrainingError

_TEST = "test"

_HELD_OUT = 20
"""Where the tables have no split for validation, one file in so many is held out."""


def published_training(
    tables: str | Path | Sequence[str | Path], sounds: str | Path, *, skip_missing: bool = False
) -> TrainingSplits:
    """The rows of published tables, whose negatives do not say their kind; rows of one file share its clip.

    All rows of a file are in one split: in none, where a table has it among those to test with, else in validation,
    where a table has it there.

    Args:
        tables: of ``path, caption, dataset, split_name``; see `read_training_texts`.
        sounds: folder with the files, at any depth.
        skip_missing: leave out rows whose file is not there; a warning counts them.

    Raises:
        DatasetError: a table cannot be read, or files are missing: names some.
        TrainingError: no row is left to learn from.
    """
    paths = [Path(table) for table in ([tables] if isinstance(tables, (str, Path)) else tables)]
    texts = [(f"{place}-{number:06d}", row) for place, table in enumerate(paths)
             for number, row in enumerate(read_training_texts(table))]  # fmt: skip
    source = ", ".join(printable(table.name) for table in paths)
    file_of = _files(Path(sounds), [row.path for _, row in texts], source, skip_missing)
    there = [(id, row) for id, row in texts if row.path in file_of]
    files = sorted({file_of[row.path] for _, row in there})
    split_of = _splits(files, [(file_of[row.path], row.split) for _, row in there])
    clip_of = {file: clip for clip, file in enumerate(file for file in files if split_of[file] != _TEST)}
    says = _says([(file_of[row.path], row.captions) for _, row in there])
    rows: dict[str, list[TrainingRow]] = {TRAIN: [], VALIDATION: [], _TEST: []}
    for (id, row), said in zip(there, says, strict=True):
        file = file_of[row.path]
        rows[split_of[file]].append(_row(id, row, said, clip_of.get(file, -1)))
    if rows[_TEST]:
        warnings.warn(f"{source}: {len(rows[_TEST]):,} rows are to test with, and are not learnt from", stacklevel=2)
    if not rows[TRAIN]:
        raise TrainingError(f"{source} has no row to learn from")
    configuration = _configuration(source, Path(sounds), {file: split_of[file] for file in clip_of})
    train, validation = (TrainingData(configuration, split, tuple(rows[split])) for split in (TRAIN, VALIDATION))
    return TrainingSplits(train, validation if validation.rows else None)


def _row(id: str, row: TrainingTexts, says: str, clip: int) -> TrainingRow:
    return TrainingRow(id, row.captions, row.parts, tuple((text, "") for text in row.negatives), says, clip)


def _configuration(source: str, folder: Path, split_of: Mapping[str, str]) -> ReadConfiguration:
    """The clips, one a file, in the order of their names."""
    rows: list[Row] = [{"id": file, "split": split} for file, split in split_of.items()]
    sound: Callable[[str], Path] = folder.joinpath
    clips = [(ReadClip("audio", partial(sound, file)),) for file in split_of]
    return ReadConfiguration("published training texts", source, rows, clips)


def _files(folder: Path, named: Iterable[str], source: str, skip_missing: bool) -> dict[str, str]:
    """The user's file for each path of the tables: that of the same name, of several the one whose folders agree most.

    Only files that lie in the folder can be taken, whatever a table says.
    """
    by_name: dict[str, list[PurePosixPath]] = defaultdict(list)
    for path in sound_files(folder):
        relative = PurePosixPath(path.relative_to(folder).as_posix())
        by_name[relative.name].append(relative)
    taken: dict[str, str] = {}
    missing = []
    for name in dict.fromkeys(named):
        parts = PurePosixPath(name.replace("\\", "/")).parts
        alike = by_name.get(parts[-1], ()) if parts else ()
        ranked = sorted((_agreeing(parts, path.parts), path.as_posix()) for path in alike)
        if not ranked:
            missing.append(printable(name))
        elif len(ranked) > 1 and ranked[-1][0] == ranked[-2][0]:
            raise DatasetError(
                f"{source}: {printable(name)!r} may be {ranked[-2][1]} or {ranked[-1][1]} of {printable(str(folder))}"
            )
        else:
            taken[name] = ranked[-1][1]
    if missing:
        text = f"{source}: {len(missing):,} files are not in {printable(str(folder))}: {shown(missing)}"
        if not skip_missing:
            raise DatasetError(f"{text}; their rows can be left out (skip_missing)")
        warnings.warn(f"{text}; their rows are left out", stacklevel=3)
    return taken


def _agreeing(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts at the end of two paths are the same."""
    count = 0
    for first, second in zip(reversed(one), reversed(other), strict=False):
        if first != second:
            break
        count += 1
    return count


def _splits(files: Sequence[str], stated: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The split of each file, from what tables call it; a share is held out where none is for validation."""
    rank = {TRAIN: 0, VALIDATION: 1, _TEST: 2}
    split_of = dict.fromkeys(files, TRAIN)
    for file, name in stated:
        split = _split_named(name)
        if rank[split] > rank[split_of[file]]:
            split_of[file] = split
    to_learn = [file for file in files if split_of[file] == TRAIN]
    if VALIDATION not in split_of.values() and len(to_learn) > 1:
        drawn = sorted(to_learn, key=lambda file: hashlib.sha256(file.encode("utf-8", "surrogateescape")).digest())
        split_of.update(dict.fromkeys(drawn[: max(len(drawn) // _HELD_OUT, 1)], VALIDATION))
    return split_of


def _split_named(name: str) -> str:
    lower = name.strip().lower()
    if lower.startswith(("val", "dev")) and lower != "development":
        return VALIDATION
    # The test split of Clotho is its "evaluation".
    return _TEST if lower.startswith(("test", "eval")) else TRAIN


def _says(rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """For each row what it says: the same for rows of one file, for those with a caption in common, and so on."""
    leader: dict[str, str] = {}

    def root(name: str) -> str:
        while leader.setdefault(name, name) != name:
            leader[name] = name = leader[leader[name]]
        return name

    for file, captions in rows:
        for caption in captions:
            leader[root(f"caption {plain_caption(caption)}")] = root(f"file {file}")
    return [root(f"file {file}") for file, _ in rows]


_COLUMNS = ("path", "caption", "dataset", "split_name")

_COUNTS = ("num_of_pos", "num_of_neg")

_SEPARATOR = ";"


@dataclass(frozen=True)
class TrainingTexts:
    """What a row says of a clip.

    Attributes:
        path: of the sound, as the table has it.
        captions: of the whole clip; one, or several where the table lists some.
        parts: captions of parts.
        negatives: texts that are false.
        dataset: that the clip is of.
        split: of that data set.
    """

    path: str
    captions: tuple[str, ...]
    parts: tuple[str, ...]
    negatives: tuple[str, ...]
    dataset: str
    split: str


def read_training_texts(table: str | Path) -> Iterator[TrainingTexts]:
    """The rows of a table: the caption first, then its positives, then its negatives, with semicolons between them.

    Where no columns count positives and negatives, all but the first are negatives. A caption that is a list in
    brackets is read as one; nothing in a table is ever run.

    Raises:
        DatasetError: it is no such table, or a row has not as many texts as it counts: says which row.
    """
    table = Path(table)
    if not table.is_file():
        raise DatasetError(f"{printable(str(table))} is no file")
    lines = csv.DictReader(io.StringIO(text_of(table.read_bytes()), newline=""))
    columns = lines.fieldnames or ()
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise DatasetError(
            f"{printable(str(table))} has no column {missing[0]!r}; it has {', '.join(columns) or 'none'}"
        )
    counted = all(name in columns for name in _COUNTS)
    for number, row in enumerate(lines, 2):
        where = f"{printable(table.name)}, row {number}"
        first, *texts = (one.strip() for one in (row["caption"] or "").split(_SEPARATOR))
        positives = 0
        if counted:
            positives, negatives = (_count(where, name, row[name]) for name in _COUNTS)
            if positives + negatives != len(texts):
                raise DatasetError(
                    f"{where}: {len(texts)} texts behind the caption, and {positives} positives and {negatives} "
                    "negatives are counted; does one hold a semicolon?"
                )
        captions = _captions(where, first)
        yield TrainingTexts(
            row["path"] or "",
            captions,
            tuple(texts[:positives]),
            tuple(texts[positives:]),
            row["dataset"] or "",
            row["split_name"] or "",
        )


def _count(where: str, name: str, value: str | None) -> int:
    try:
        count = float(value or "")
        if count >= 0 and count.is_integer():
            return int(count)
    except ValueError:
        pass
    raise DatasetError(f"{where}: {name} is {value!r}; it is a whole number")


def _captions(where: str, text: str) -> tuple[str, ...]:
    """The caption, or those of a list that is written as in Python."""
    if not text:
        raise DatasetError(f"{where}: the caption is empty")
    if not text.startswith("["):
        return (text,)
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        # A sentence that begins with a bracket.
        return (text,)
    if not isinstance(values, list) or not values or not all(isinstance(one, str) and one.strip() for one in values):
        raise DatasetError(f"{where}: the caption is {text!r}; a list has texts")
    return tuple(one.strip() for one in values)
