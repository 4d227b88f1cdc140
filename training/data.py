"""Training data: rows of texts that are true or false of clips, and the clips.

Rows come from a recipe or from the published training tables of CompA-CLAP (arXiv 2310.08753), in a user's copy,
with the sounds that they name; nothing of these is shipped. The tables have their authors' paths: a user's file is
matched with a path in a table by the end of its path.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from audio_compositionality.dataset_builder.data import Clip, Configuration, Data, DatasetError, Row
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import list_recipes, load_recipe
from audio_compositionality.dataset_builder.rendered import preset_names, rendered_preset
from audio_compositionality.dataset_builder.sounds.files import sound_files
from audio_compositionality.dataset_builder.sounds.published import ReadClip, ReadConfiguration
from audio_compositionality.dataset_builder.sounds.recordings import printable
from audio_compositionality.dataset_builder.tables import heading_of, open_table, value_of
from audio_compositionality.support.text import listed, shown

from .settings import TrainingError

TRAIN, VALIDATION = "train", "validation"

_TEXTS = ("captions", "parts", "negatives")
"""Columns that identify training rows."""


@dataclass(frozen=True)
class TrainingRow:
    """The texts about one clip.

    Attributes:
        id: unique id of the row.
        captions: captions of the full clip, all with the same meaning; at least one.
        parts: texts that are true of a part of it.
        negatives: texts that are false of it, each with its kind, which may be empty.
        expression: meaning of the captions; equal for rows with the same meaning.
        clip: number of the clip in `Configuration.clip_ids`.
    """

    id: str
    captions: tuple[str, ...]
    parts: tuple[str, ...]
    negatives: tuple[tuple[str, str], ...]
    expression: str
    clip: int

    @property
    def texts(self) -> tuple[str, ...]:
        """All texts."""
        return (*self.captions, *self.parts, *(text for text, _ in self.negatives))

    @property
    def says(self) -> int:
        """The expression as an integer of 64 bits, the same in every process."""
        digest = hashlib.blake2b(self.expression.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "little", signed=True)


@dataclass(frozen=True)
class TrainingData:
    """The rows of one split, and the clips of all splits.

    Attributes:
        configuration: the opened data with the clips; `embed_configuration` takes it, too.
        split: split of the rows.
        rows: the texts about the clips.
    """

    configuration: Configuration
    split: str
    rows: Sequence[TrainingRow]

    @property
    def source(self) -> str:
        """The source from which the data were opened."""
        return self.configuration.source

    @property
    def recipe(self) -> str:
        """The name of the recipe."""
        return self.configuration.recipe

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the clips of all splits: equal fingerprints mean equal samples."""
        return self.configuration.fingerprint

    @property
    def num_clips(self) -> int:
        """Number of clips of all splits."""
        return len(self.configuration.clip_ids)

    def clips(self, wanted: range | None = None) -> Iterator[Clip]:
        """Yield clips by their numbers, consecutive, each at its own rate; see `Configuration.clips`."""
        return self.configuration.clips(wanted)

    def take(self, count: int) -> TrainingData:
        """Return the first rows, with the same clips."""
        return replace(self, rows=self.rows[:count])


@dataclass(frozen=True)
class TrainingSplits:
    """The training split and the validation split.

    Attributes:
        train: the training split.
        validation: the validation split, never trained on; None if there are too few rows.
    """

    train: TrainingData
    validation: TrainingData | None


def training_recipes() -> tuple[str, ...]:
    """Return the names of the recipes for training: they have a training split and texts that are false."""
    names = []
    for name in list_recipes():
        recipe = load_recipe(name)
        preset = next(iter(recipe.presets.values()), None)
        if TRAIN in recipe.splits and preset is not None and set(_TEXTS) <= set(recipe.features(preset)):
            names.append(name)
    return tuple(names)


def open_training(
    source: str | Path | Data | TrainingSplits,
    *,
    preset: str = "mini",
    recipe: str | None = None,
    **changes: Any,
) -> TrainingSplits:
    """Open training data.

    Args:
        source: name of a recipe, rendered on the fly at the size of `preset`; a preset, such as ``full``; a folder
            that `build_dataset` wrote (``./full`` if it has a preset's name), or the Hub id of one; or opened data,
            such as those from `recorded`, or their splits, returned unchanged.
        preset: size of a recipe given by name.
        recipe: the recipe to take if the data have several for training.
        changes: changes to the recipe's settings, such as ``train_rows=1000``.

    Raises:
        TrainingError: the data have no training recipe, or several while `recipe` is not given, or changes are
            requested for data that are not rendered.
        InputError: an unknown preset or setting.
        DatasetError: see `open_data`.
    """
    if isinstance(source, TrainingSplits):
        return source
    data = open_source(source, preset, recipe, changes)
    recipes = training_recipes()
    names = [name for name in data.recipes if name in recipes] if recipe is None else [recipe]
    if len(names) != 1:
        has = "no training rows" if not names else f"{listed(names)}; name one of them"
        raise TrainingError(
            f"{data.source} has {has}; its recipes are {listed(data.recipes)}, and training recipes are "
            f"{listed(recipes)}"
        )
    return splits_of(data.configuration(names[0]))


def open_source(source: str | Path | Data, preset: str, recipe: str | None, changes: dict[str, Any]) -> Data:
    """Return the data of `open_training`, with all their recipes."""
    if isinstance(source, str) and source in list_recipes():
        return rendered_preset(preset, recipes=[source], **changes)
    if isinstance(source, str) and source in preset_names():
        return rendered_preset(source, recipes=training_recipes() if recipe is None else [recipe], **changes)
    if changes:
        raise TrainingError(f"{listed(list(changes))} cannot be changed: only rows rendered on the fly have settings")
    return open_data(source) if isinstance(source, (str, Path)) else source


def splits_of(configuration: Configuration) -> TrainingSplits:
    """Return the rows of opened data, by their splits; each has one clip.

    Raises:
        TrainingError: there are no training rows, or a row is invalid and is named.
    """
    numbers: dict[str, list[int]] = {}
    for number, clip_id in enumerate(configuration.clip_ids):
        # The name of a clip has no slash, unless it is part of a list.
        numbers.setdefault(clip_id.rpartition("/")[0], []).append(number)
    rows: dict[str, list[TrainingRow]] = {TRAIN: [], VALIDATION: []}
    for row in configuration.rows:
        clips = numbers.get(row["id"], [])
        if len(clips) != 1:
            raise TrainingError(f"{configuration.source}: row {row['id']} has {len(clips)} clips; it must have one")
        if row["split"] not in rows:
            continue
        try:
            captions, parts = tuple(row["captions"]), tuple(row["parts"])
            negatives = tuple((one["text"], one["kind"] or "") for one in row["negatives"])
        except (KeyError, TypeError) as error:
            raise TrainingError(
                f"row {row['id']} has no {listed(_TEXTS)}, which training rows need: {error}"
            ) from error
        if not captions:
            raise TrainingError(f"row {row['id']} has no caption")
        expression = row.get("expression") or plain_caption(captions[0])
        rows[row["split"]].append(TrainingRow(row["id"], captions, parts, negatives, expression, clips[0]))
    return _splits(configuration, rows)


def _splits(configuration: Configuration, rows: dict[str, list[TrainingRow]]) -> TrainingSplits:
    if not rows[TRAIN]:
        raise TrainingError(f"{configuration.source} has no row of the split {TRAIN!r}")
    train, validation = (TrainingData(configuration, split, tuple(rows[split])) for split in (TRAIN, VALIDATION))
    return TrainingSplits(train, validation if validation.rows else None)


def plain_caption(caption: str) -> str:
    """Return the meaning of a caption without an expression: its words, without case and punctuation."""
    return " ".join(caption.lower().rstrip(".!").split())


_TEST = "test"

_HELD_OUT = 20
"""If the tables have no validation split, one file in this many is held out."""


def published_training(
    tables: str | Path | Sequence[str | Path], sounds: str | Path, *, skip_missing: bool = False
) -> TrainingSplits:
    """Read the rows of published tables, whose negatives do not state their kind; rows of one file share its clip.

    All rows of a file are in one split: in none if a table has it in the test split, else in validation if a
    table has it there.

    Args:
        tables: tables of ``path, caption, dataset, split_name``; see `read_training_texts`.
        sounds: folder with the files, at any depth.
        skip_missing: leave out rows whose file is missing; a warning counts them.

    Raises:
        DatasetError: a table cannot be read, or files are missing; some are named.
        TrainingError: no row is left for training.
    """
    paths = [Path(table) for table in ([tables] if isinstance(tables, (str, Path)) else tables)]
    texts = [(f"{place}-{number:06d}", row) for place, table in enumerate(paths)
             for number, row in enumerate(read_training_texts(table))]  # fmt: skip
    source = ", ".join(printable(table.name) for table in paths)
    file_of = _files(Path(sounds), [row.path for _, row in texts], source, skip_missing)
    there = [(id, row) for id, row in texts if row.path in file_of]
    files = sorted({file_of[row.path] for _, row in there})
    split_of = _split_of_files(files, [(file_of[row.path], row.split) for _, row in there])
    clip_of = {file: clip for clip, file in enumerate(file for file in files if split_of[file] != _TEST)}
    says = _says([(file_of[row.path], row.captions) for _, row in there])
    rows: dict[str, list[TrainingRow]] = {TRAIN: [], VALIDATION: [], _TEST: []}
    for (id, row), said in zip(there, says, strict=True):
        file = file_of[row.path]
        negatives = tuple((text, "") for text in row.negatives)
        made = TrainingRow(id, row.captions, row.parts, negatives, said, clip_of.get(file, -1))
        rows[split_of[file]].append(made)
    if rows[_TEST]:
        warnings.warn(f"{source}: {len(rows[_TEST]):,} rows of the test split are left out", stacklevel=2)
    if not rows[TRAIN]:
        raise TrainingError(f"{source} has no training row")
    # The clips, one per file, in the order of their names.
    sound: Callable[[str], Path] = Path(sounds).joinpath
    described: list[Row] = [{"id": file, "split": split_of[file]} for file in clip_of]
    clips = [(ReadClip("audio", partial(sound, file)),) for file in clip_of]
    return _splits(ReadConfiguration("published training texts", source, described, clips), rows)


def _files(folder: Path, named: Iterable[str], source: str, skip_missing: bool) -> dict[str, str]:
    """Return the user's file for each path of the tables: the file of the same name or, of several, the one that has
    the most folders in common.

    Only files inside the folder can be taken, whatever a table contains.
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
            raise DatasetError(f"{text}; to leave out their rows, set skip_missing")
        warnings.warn(f"{text}; their rows are left out", stacklevel=3)
    return taken


def _agreeing(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal parts at the end of two paths."""
    count = 0
    for first, second in zip(reversed(one), reversed(other), strict=False):
        if first != second:
            break
        count += 1
    return count


def _split_of_files(files: Sequence[str], stated: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the split of each file, from the tables; a share is held out if no table has a validation split."""
    rank = {TRAIN: 0, VALIDATION: 1, _TEST: 2}
    split_of = dict.fromkeys(files, TRAIN)
    for file, name in stated:
        lower, split = name.strip().lower(), TRAIN
        if lower.startswith(("val", "dev")) and lower != "development":
            split = VALIDATION
        elif lower.startswith(("test", "eval")):
            # The test split of Clotho is its "evaluation".
            split = _TEST
        if rank[split] > rank[split_of[file]]:
            split_of[file] = split
    to_learn = [file for file in files if split_of[file] == TRAIN]
    if VALIDATION not in split_of.values() and len(to_learn) > 1:
        drawn = sorted(to_learn, key=lambda file: hashlib.sha256(file.encode("utf-8", "surrogateescape")).digest())
        split_of.update(dict.fromkeys(drawn[: max(len(drawn) // _HELD_OUT, 1)], VALIDATION))
    return split_of


def _says(rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the meaning of each row, equal for rows that share a file or a caption, also through other rows."""
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
    """The texts of a table's row about a clip.

    Attributes:
        path: path of the sound, as in the table.
        captions: captions of the full clip; one, or several if the table lists some.
        parts: captions of parts.
        negatives: texts that are false.
        dataset: data set of the clip.
        split: split of that data set.
    """

    path: str
    captions: tuple[str, ...]
    parts: tuple[str, ...]
    negatives: tuple[str, ...]
    dataset: str
    split: str


def read_training_texts(table: str | Path) -> Iterator[TrainingTexts]:
    """Yield the rows of a table: the caption, then its positives, then its negatives, separated by semicolons.

    Without columns that count positives and negatives, all texts but the first are negatives. A caption in the form of
    a list in brackets is read as a list; nothing in a table is ever run.

    Raises:
        DatasetError: it is no such table, or a row's number of texts differs from its counts; names the row.
    """
    table = Path(table)
    if not table.is_file():
        raise DatasetError(f"{printable(str(table))} is not a file")
    read = open_table(table, otherwise="cp1252", ragged="fill")
    columns = {name: read.column(name) for name in _COLUMNS}
    counts = {name: heading for name in _COUNTS if (heading := heading_of(name, read.headings)) is not None}
    counted = len(counts) == len(_COUNTS)
    for line, record in zip(read.lines, read.records(), strict=True):
        where = line.where
        row = {name: record[heading] for name, heading in (*columns.items(), *counts.items())}
        first, *texts = (one.strip() for one in (row["caption"] or "").split(_SEPARATOR))
        positives = 0
        if counted:
            positives, negatives = (_count(where, name, row[name]) for name in _COUNTS)
            if positives + negatives != len(texts):
                raise DatasetError(
                    f"{where}: {len(texts)} texts follow the caption, but the row counts {positives} positives and "
                    f"{negatives} negatives; does one contain a semicolon?"
                )
        if not first:
            raise DatasetError(f"{where}: the caption is empty")
        captions: tuple[str, ...] = (first,)
        values = value_of(first)
        # Several captions are a list in Python's notation.
        if isinstance(values, list) and values and all(isinstance(one, str) and one.strip() for one in values):
            captions = tuple(one.strip() for one in values)
        elif not isinstance(values, str):
            raise DatasetError(f"{where}: the caption is {first!r}; a list must hold texts")
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
    raise DatasetError(f"{where}: {name} is {value!r}; it must be a whole number")
