"""Opened data of any recipe: configurations with rows, their clips and their columns."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.spec import fingerprint_of as digest_of
from audio_compositionality.support.text import nearest

if TYPE_CHECKING:
    from datasets import Features

    from audio_compositionality.support.table import Table

    from .account import Account


Waveform = NDArray[np.float32]
Pcm16 = NDArray[np.int16]
Row = dict[str, Any]


class DatasetError(AudioCompositionalityError):
    """Unusable data; the message names the file, row or value, the problem, and the rule.

    Attributes:
        account: the account of the data read before the error; None if nothing was read.
    """

    account: Account | None = None


@dataclass(frozen=True)
class Clip:
    """A clip.

    Attributes:
        id: ``<row id>/<name of the clip in its row>``.
        waveform: float32 [samples] in [-1, 1]; NaN if the clip is unusable.
        sample_rate: Hz.
        problem: why the clip is unusable; None if it is usable.
    """

    id: str
    waveform: Waveform
    sample_rate: int
    problem: str | None = None

    def _repr_html_(self) -> str:
        """Return a player as HTML, which a notebook shows; needs no decoder."""
        import soundfile

        name = html.escape(self.id)
        if self.problem is not None:
            return f"<p>{name}: {html.escape(self.problem)}</p>"
        file = io.BytesIO()
        soundfile.write(file, self.waveform, self.sample_rate, format="WAV", subtype="PCM_16")
        sound = base64.b64encode(file.getvalue()).decode()
        return f'<p>{name}<br><audio controls src="data:audio/wav;base64,{sound}"></audio></p>'


@dataclass(frozen=True)
class ClipBatch:
    """Consecutive clips of the same length and sample rate.

    Attributes:
        ids: ids of the clips.
        waveforms: float32 [clips, samples] in [-1, 1].
        sample_rate: Hz.
        errors: why a clip is unusable, by its index in the batch; the samples of such clips are NaN.
    """

    ids: tuple[str, ...]
    waveforms: Waveform
    sample_rate: int
    errors: Mapping[int, str] = field(default_factory=dict)


class Rendering(Protocol):
    """The rows of a configuration and their sound, rendered on demand.

    Attributes:
        sample_rate: Hz; the highest if rows have different rates.
    """

    sample_rate: int

    @property
    def rows(self) -> Sequence[Row]:
        """Return the rows, as `Configuration.rows`."""
        ...

    def clips(self, index: int) -> Sequence[Pcm16]:
        """Return the clips of a row, each int16 [samples], in the order of `Recipe.clip_names`."""
        ...

    def plan(self, index: int) -> Any:
        """Return what determines a row's sound in addition to its columns, e.g. its events; see `digest_of_rows`."""
        return None

    def rate(self, index: int) -> int:
        """Return the sample rate of a row's clips in Hz."""
        return self.sample_rate

    def reports(self) -> Sequence[Table]:
        """Return tables about the rows, shown when they are built."""
        return ()

    def notes(self) -> Sequence[str]:
        """Return notes on rows that could not be made, and why; sentences without a full stop."""
        return ()


class Configuration(Protocol):
    """The data of one recipe, in a fixed order.

    Attributes:
        recipe: name of the recipe.
        source: what the data were opened from: a preset, a folder, a Hub id.
        fingerprint: identifies the samples. Equal fingerprints mean equal samples, provided that a recipe's version is
            raised with every change of its rows.
        rows_digest: hexadecimal digest of the rows and of what determines their sound; see `digest_of_rows`. It differs
            if a recipe's code draws other rows under the same version.
        rows: all rows without their audio: ``id``, ``split``, and the recipe's other features.
        clip_ids: ids of all clips, row by row.
    """

    recipe: str
    source: str

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    @property
    def rows_digest(self) -> str: ...  # noqa: D102

    @property
    def rows(self) -> Sequence[Row]: ...  # noqa: D102

    @property
    def clip_ids(self) -> Sequence[str]: ...  # noqa: D102

    def clips(self, wanted: range | None = None, *, keep_invalid: bool = False) -> Iterator[Clip]:
        """Yield clips in the order of `clip_ids`.

        Args:
            wanted: consecutive indices into `clip_ids`; by default all.
            keep_invalid: yield an unusable clip with its `Clip.problem` instead of raising an error.

        Raises:
            DatasetError: a clip is unusable and ``keep_invalid`` is false.
        """
        ...


AnyConfiguration = TypeVar("AnyConfiguration", bound=Configuration)


class Data(Protocol):
    """Opened data.

    Attributes:
        source: what the data were opened from.
        recipes: names of the recipes of its configurations.
    """

    source: str

    @property
    def recipes(self) -> tuple[str, ...]: ...  # noqa: D102

    def configuration(self, recipe: str) -> Configuration:
        """Return the configuration of a recipe.

        Raises:
            DatasetError: the data have none; the message names the recipes that they have.
        """
        ...


class HeldData(Generic[AnyConfiguration]):
    """Data that consist of a fixed set of configurations; see `Data`."""

    def __init__(self, source: str, configurations: Mapping[str, AnyConfiguration]) -> None:
        """Store configurations by the name of their recipe."""
        self.source = source
        self._configurations = dict(configurations)
        self.left_out: Mapping[str, str] = {}
        """Why a recipe could not be made, by its name."""

    @property
    def recipes(self) -> tuple[str, ...]:
        """Return the names of the recipes."""
        return tuple(self._configurations)

    def configuration(self, recipe: str) -> AnyConfiguration:
        """Return the configuration of a recipe, or raise DatasetError if there is none."""
        if recipe not in self._configurations:
            reason = f": {self.left_out[recipe]}" if recipe in self.left_out else f"; {nearest(recipe, self.recipes)}"
            raise DatasetError(f"{self.source} has no data of {recipe!r}{reason}")
        return self._configurations[recipe]


def to_waveform(samples: Pcm16) -> Waveform:
    """Return 16-bit samples as float32 in [-1, 1): value / 32,768, as audio readers return them."""
    # One pass: whole blocks of clips are converted here.
    waveform: Waveform = np.multiply(samples, np.float32(1 / 32_768), dtype=np.float32)
    return waveform


def in_batches(clips: Iterable[Clip], batch_size: int) -> Iterator[ClipBatch]:
    """Group consecutive clips of the same length and sample rate into batches of at most `batch_size`.

    Raises:
        InputError: `batch_size` is less than 1.
    """
    if batch_size < 1:
        raise InputError(f"batch_size is {batch_size}; it must be 1 or more")
    batch: list[Clip] = []
    for clip in clips:
        if batch and (len(batch) == batch_size or _shape(clip) != _shape(batch[0])):
            yield _batch(batch)
            batch = []
        batch.append(clip)
    if batch:
        yield _batch(batch)


def _shape(clip: Clip) -> tuple[int, int]:
    return len(clip.waveform), clip.sample_rate


def _batch(clips: Sequence[Clip]) -> ClipBatch:
    errors = {place: clip.problem for place, clip in enumerate(clips) if clip.problem is not None}
    waveforms = np.stack([clip.waveform for clip in clips])
    return ClipBatch(tuple(clip.id for clip in clips), waveforms, clips[0].sample_rate, errors)


def check_range(wanted: range | None, count: int) -> range:
    """Return the requested indices below `count`; all for None.

    Raises:
        InputError: they are not consecutive, or are out of range.
    """
    if wanted is None:
        return range(count)
    if wanted.step != 1 or not 0 <= wanted.start <= wanted.stop <= count:
        raise InputError(f"clips are {wanted}; they must be consecutive and lie within range(0, {count})")
    return wanted


def recipe_fingerprint(recipe: str, version: int, values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a recipe's name, version and settings as JSON: equal fingerprints mean equal samples."""
    return digest_of(recipe=recipe, version=version, settings=values)


def digest_of_rows(rows: Iterable[Row], plans: Iterable[Any] = ()) -> str:
    """Return the SHA-256 of rows and of what determines their sound, in hexadecimal, independent of column order.

    Numbers are rounded to 9 digits, so that the last bits of a processor's sums do not change the digest.

    Args:
        rows: rows without their audio.
        plans: results of `Rendering.plan`: events and other dataclasses, sequences and mappings of texts and numbers,
            and partial functions, represented by their name and arguments. Arrays of more than 100 values are
            represented by shape, sum and first moment, any other object by its type only.
    """
    digest = hashlib.sha256()
    for part in (*rows, *plans):
        digest.update(json.dumps(_digestible(part), sort_keys=True).encode() + b"\n")
    return digest.hexdigest()


_WHOLE_ARRAY = 100
"""Most values of an array that are all included in a digest."""


def _digestible(value: Any) -> Any:
    """Return a value as JSON."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, list | tuple):
        return [_digestible(part) for part in value]
    if isinstance(value, Mapping):
        return {str(name): _digestible(part) for name, part in value.items()}
    if isinstance(value, np.ndarray) and value.size > _WHOLE_ARRAY:
        moments = [float(value.sum()), float(value.ravel() @ np.arange(1, value.size + 1))]
        return _digestible([value.shape, *moments])
    if isinstance(value, np.ndarray | np.generic):
        return _digestible(value.tolist())
    if isinstance(value, partial):
        return [value.func.__name__, _digestible(value.args), _digestible(value.keywords)]
    if is_dataclass(value):
        return _digestible(list(vars(value).values()))
    return type(value).__name__


PAUSE = 1.0
"""Seconds of silence between two clips of one question, which a model receives one after the other."""

TEXT, NUMBER, WHOLE, AUDIO = "string", "float64", "int32", "audio"
"""Kinds of values; a list of a kind is ``[kind]``, a structure ``{"name": kind}``."""

Kind = str | list[Any] | Mapping[str, Any]

_WORDS = {TEXT: ("a text", "texts"), NUMBER: ("a number", "numbers"), WHOLE: ("a whole number", "whole numbers")}


@dataclass(frozen=True)
class DataColumn:
    """A column of a data set.

    Attributes:
        name: its name.
        kind: `TEXT`, `NUMBER`, `WHOLE` or `AUDIO`; in brackets a list of these; a mapping of names for a structure.
        meaning: meaning of its values, for the card; Markdown.
        choices: all allowed texts or whole numbers; empty if any is allowed.
        optional: whether a value may be missing.
        least: least length of a list, or of each list in a structure.
        count: length of a list; 0 for any.
        filled: whether a list of texts must not contain empty ones.
        per: for a list, the name of another list column; this column has one value for each value of that column.
    """

    name: str
    kind: Kind
    meaning: str
    choices: tuple[Any, ...] = ()
    optional: bool = False
    least: int = 0
    count: int = 0
    filled: bool = False
    per: str = ""

    @property
    def is_audio(self) -> bool:
        """Return whether it contains sound."""
        return self.kind in (AUDIO, [AUDIO])

    def fault(self, value: Any) -> str | None:
        """Return the rule that a value breaks, or None."""
        if value is None and self.optional:
            return None
        if self.choices and not isinstance(self.kind, list):
            if isinstance(value, str | int) and value in self.choices:
                return None
            return f"it is one of {', '.join(map(repr, self.choices))}"
        if not _fits(value, self.kind) or not all(map(self._is_long_enough, _lists(value))):
            many = f"{self.count} " if self.count else f"{self.least} or more " if self.least else ""
            return f"it {'has' if isinstance(self.kind, Mapping) else 'is'} {_words(self.kind, many)}"
        if self.choices and not all(part in self.choices for part in value):
            return f"each is one of {', '.join(map(repr, self.choices))}"
        if self.filled and not all(value):
            return "none of them is empty"
        return None

    def _is_long_enough(self, values: Sequence[Any]) -> bool:
        return len(values) >= self.least and self.count in (0, len(values))


def features_of(columns: Sequence[DataColumn], sample_rate: int | None) -> Features:
    """Return the `datasets` features of columns; audio has a sample rate in Hz, or None if clips have their own."""
    from datasets import Audio, Features, List, Value

    def feature(kind: Kind) -> Any:
        if isinstance(kind, list):
            return List(feature(kind[0]))
        if isinstance(kind, Mapping):
            return {name: feature(of_name) for name, of_name in kind.items()}
        return Audio(sampling_rate=sample_rate) if kind == AUDIO else Value(kind)

    return Features({column.name: feature(column.kind) for column in columns})


def check_columns(row: Row, columns: Sequence[DataColumn]) -> None:
    """Raise an error if a stored row lacks a column without sound, or has an invalid value in one.

    Raises:
        DatasetError: names the row, the column, the value and the rule.
    """
    for column in columns:
        if column.is_audio:
            continue
        fault = column.fault(row.get(column.name))
        if fault is not None:
            raise DatasetError(f"row {row.get('id')}: {column.name} is {row.get(column.name)!r}; {fault}")
    for column in columns:
        if column.per and not column.is_audio and len(row[column.name]) != len(row[column.per]):
            raise DatasetError(
                f"row {row['id']}: {column.name} is {row[column.name]!r}; it must have one value for each of "
                f"{column.per}, "
                f"{row[column.per]!r}"
            )


def column_table(columns: Sequence[DataColumn]) -> str:
    """Return the columns as a Markdown table, for the card."""
    rows = "\n".join(f"| `{column.name}` | {column.meaning} |" for column in columns)
    return f"| column | content |\n|---|---|\n{rows}"


def _fits(value: Any, kind: Kind) -> bool:
    if isinstance(kind, list):
        return isinstance(value, list) and all(_fits(part, kind[0]) for part in value)
    if isinstance(kind, Mapping):
        return isinstance(value, dict) and all(_fits(value.get(name), of_name) for name, of_name in kind.items())
    if kind == TEXT:
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    return isinstance(value, int) if kind == WHOLE else isinstance(value, int | float) and math.isfinite(value)


def _lists(value: Any) -> list[list[Any]]:
    """Return the lists in a value: the value itself, or the lists of a structure."""
    parts = value.values() if isinstance(value, Mapping) else (value,)
    return [part for part in parts if isinstance(part, list)]


def _words(kind: Kind, many: str = "") -> str:
    if isinstance(kind, list):
        inner = kind[0]
        if isinstance(inner, Mapping):
            several = f"structures of {', '.join(inner)}"
        else:
            several = _WORDS[inner][1] if isinstance(inner, str) else "lists"
        return f"a list of {many}{several}"
    if isinstance(kind, Mapping):
        return ", ".join(f"{name} ({_words(of_name, many)})" for name, of_name in kind.items())
    return _WORDS[kind][0]
