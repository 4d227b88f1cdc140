"""A result: one model, one task; a JSON file with a typed schema, and the columns of its samples beside it as CSV."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, StrictBool, StrictInt, StringConstraints, model_validator

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.files import open_file, safe_file_name, sha256_of, write_together
from audio_compositionality.support.table import csv_text
from audio_compositionality.support.text import number_text, shortened
from audio_compositionality.tasks.base import Measure, TaskInfo
from audio_compositionality.tasks.registry import load_task

from . import strict
from .strict import ResultError as ResultError
from .strict import read_strict_json as read_json

BESIDE = "To compare scores with the untrained twin and baselines, use audio_compositionality.compare(results)."
"""The last line of a result."""

RESULT_SCHEMA_VERSION = 2
"""Version of the JSON file's schema. It rises with any change to the fields."""

MAX_JSON_BYTES = 16_000_000
"""A larger file is not a result: they have a few kB, and about 100 bytes more for each clip that is left out."""

MAX_CSV_BYTES = 64_000_000
"""Most bytes of a table of samples: six columns of 2,000 quadruples have 250 kB."""


class Options(strict.Strict):
    """The options of a run; see `EncoderOptions`."""

    layer: StrictInt | None
    pooling: strict.Text | None
    precision: strict.Text
    compile: StrictBool

    @model_validator(mode="after")
    def _check(self) -> Options:
        # Refuses options that no model can run with.
        EncoderOptions(**self.model_dump())
        return self


class ScoredModel(strict.Strict):
    """The card of the model; see `ModelCard`."""

    id: strict.Text
    revision: strict.Text
    sample_rate: strict.Count
    output_dim: strict.Count | None
    weights_sha256: strict.Sha256 | None
    parameters: strict.Count | None
    paradigm: strict.Text | None
    licence: strict.Text | None
    trained_on: strict.Text | None
    front_end_version: strict.Count
    options: Options

    @classmethod
    def of(cls, card: ModelCard) -> ScoredModel:
        """The part of a card that a result states."""
        return cls.model_validate({**asdict(card), "options": card.options.values()})

    def card(self) -> ModelCard:
        """The card behind it."""
        return ModelCard(**{**self.model_dump(), "options": EncoderOptions(**self.options.model_dump())})


class Deviation(strict.Strict):
    """How far embeddings are from those in float32; see `ModelEncoder.precision_deviation`."""

    relative_mean: strict.Positive
    relative_max: strict.Positive
    spread_ratio: strict.Positive
    clips: strict.Count


class Skipped(strict.Strict):
    """A clip that could not be embedded, and why; its row is left out of everything."""

    id: strict.Text
    reason: Annotated[str, StringConstraints(strict=True, max_length=2_000)]


class Result(strict.Strict):
    """The scores of one model in one task.

    Attributes:
        schema_version: of this file.
        task: name of the task.
        task_version: see `TaskInfo`; another version is another number.
        measures: every measure of the task, by its name; the first is the score. None where one is not defined.
        intervals: 95 % interval, BCa bootstrap over clusters of samples, of each measure that is a mean over samples;
            None if there are too few.
        n: number of samples.
        training: of the fits, a list of numbers by name, such as the best step of each seed.
        settings: everything that the score depends on beside model and data.
        model: card of the model.
        precision_deviation: how far embeddings are from those in float32; None in float32.
        skipped: clips that could not be embedded.
        cut_answers: number of answers that reached the limit of tokens, and so may not state a choice yet; None where
            the model does not say why answers ended, or gives none.
        cut_clips: number of questions about clips longer than the model's input, which got only their beginning.
        recipe: name of the configuration of the data.
        fingerprint: of that configuration.
        rows_digest: of its rows and what decides their sound; it differs where a recipe draws otherwise under an
            unchanged version.
        dataset: the source that it was opened from.
        versions: of this package, Python and the libraries that compute.
        device: of the model and of the fits.
        seconds: wall-clock time of each stage: ``embed``; ``read`` where all embeddings were stored already;
            ``embed_rest`` where some were; ``embed_layers`` where one pass gave the embeddings of several layers, whose
            results all state it; ``score``.
        date: UTC, ISO 8601.
        samples_sha256: SHA-256 of the CSV file of the samples.
    """

    schema_version: Literal[2] = 2
    task: strict.Name
    task_version: strict.Count
    measures: Annotated[dict[strict.Name, strict.StatedNumber], Field(min_length=1, max_length=200)]
    intervals: Annotated[dict[strict.Name, strict.StatedInterval | None], Field(max_length=200)]
    n: strict.Count
    training: Annotated[dict[strict.Name, list[strict.Finite]], Field(max_length=50)]
    settings: Annotated[dict[strict.Name, strict.Setting | list[strict.Setting]], Field(max_length=100)]
    model: ScoredModel
    precision_deviation: Deviation | None
    skipped: Annotated[list[Skipped], Field(max_length=100_000)]
    cut_answers: strict.NonNegativeCount | None
    cut_clips: strict.NonNegativeCount
    recipe: strict.Name
    fingerprint: strict.Sha256
    rows_digest: strict.Sha256
    dataset: strict.Text
    versions: Annotated[dict[strict.Text, strict.Text], Field(max_length=100)]
    device: strict.Text
    seconds: Annotated[dict[strict.Name, strict.Positive], Field(max_length=50)]
    date: strict.Date
    samples_sha256: strict.Sha256
    _samples: SampleTable | None = PrivateAttr(None)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Result) and self.model_dump() == other.model_dump()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        """Three lines: the subject, the scores to trust with their 95 % intervals, and how to judge them."""
        info = self._info
        scores = (
            f"{measure.heading} {value}{f' [{low}, {high}]' if low else ''}"
            for measure, value, low, high in self._shown(info.recommended)
        )
        return f"{self._title}\n{', '.join(scores)}\n{BESIDE}"

    def _repr_html_(self) -> str:
        """The table that a notebook shows: a row a measure, with its interval and its meaning."""
        rows = "".join(
            f'<tr><th style="text-align: left">{escape(measure.heading)}</th><td>{value}</td>'
            f'<td style="white-space: nowrap">{f"{low} to {high}" if low else ""}</td>'
            f'<td style="text-align: left">{escape(measure.meaning)}</td></tr>'
            for measure, value, low, high in self._shown(self._info.shown)
        )
        head = "<tr><th>measure</th><th>value</th><th>95 % interval</th><th>meaning</th></tr>"
        return f"<table><caption>{escape(self._title)}</caption>{head}{rows}</table><p>{escape(BESIDE)}</p>"

    @property
    def _info(self) -> TaskInfo:
        return load_task(self.task).info

    @property
    def _title(self) -> str:
        return f"{self._info.title} of {self.model.id} on {self.dataset}, n = {self.n:,}"

    def _shown(self, measures: Sequence[Measure]) -> Iterator[tuple[Measure, str, str, str]]:
        """Measures that the result states, with value and interval in words."""
        for measure in measures:
            value = self.measures.get(measure.name)
            if value is not None:
                ends = self.intervals.get(measure.name)
                low, high = ("", "") if ends is None else (_number(end, measure) for end in ends)
                yield measure, _number(value, measure), low, high

    @property
    def samples(self) -> SampleTable | None:
        """The columns of its samples, where `evaluate` has returned it, or `with_samples` was given them; None where it
        was read from a file, and in processes other than the main one."""
        return self._samples

    def with_samples(self, samples: SampleTable) -> Result:
        """The same result that holds its samples, so that it can be compared without a file."""
        copied = self.model_copy()
        copied._samples = samples
        return copied

    @model_validator(mode="after")
    def _check(self) -> Result:
        unmeasured = sorted(set(self.intervals) - set(self.measures))
        if unmeasured:
            raise ResultError(f"it has an interval of {unmeasured[0]}, which is not one of its measures")
        return self

    @property
    def score(self) -> float:
        """The first measure."""
        value = next(iter(self.measures.values()))
        return math.nan if value is None else float(value)

    @property
    def key(self) -> tuple[str, int, str, str]:
        """Task, its version, the fingerprint of the data and the digest of their rows: results in one table share
        these."""
        return self.task, self.task_version, self.fingerprint, self.rows_digest

    def dumps(self) -> str:
        """The result as JSON text, with a digest of everything else in it."""
        values = self.model_dump(mode="json")
        return json.dumps({**values, "digest": _digest(values)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def loads(cls, text: str | bytes) -> Result:
        """The result in JSON text.

        Raises:
            ResultError: not JSON, a name twice in it, another schema version, a missing or unknown field, a value of
                the wrong type or out of its range, or not byte for byte what was written.
        """
        values = read_json(text)
        if not isinstance(values, dict):
            raise ResultError("not a result: its JSON is not an object")
        version = values.get("schema_version")
        if version != RESULT_SCHEMA_VERSION:
            raise ResultError(
                f"a result of schema version {strict.stated_text(version)[:40]}; this version reads "
                f"{RESULT_SCHEMA_VERSION}: compute it again with --force"
            )
        digest = values.pop("digest", None)
        result = strict.validated(cls, values)
        if digest != _digest(result.model_dump(mode="json")):
            raise ResultError("its digest does not match its content: it was changed or damaged after it was written")
        # A last digit that changes no float, or an E for an e: a changed bit that leaves the content as it is.
        if result.dumps() != (text if isinstance(text, str) else text.decode()):
            raise ResultError("it is not as this project writes it: it was changed or damaged after it was written")
        return result


def _number(value: float, measure: Measure) -> str:
    return number_text(float(value), measure.digits, minus="−")


def _digest(values: Mapping[str, Any]) -> str:
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


class OfData(Protocol):
    """Whatever states its data: a configuration, a result, a comparison."""

    @property
    def fingerprint(self) -> str: ...  # noqa: D102

    @property
    def rows_digest(self) -> str: ...  # noqa: D102


def data_digest(one: OfData, others: Iterable[OfData]) -> str:
    """Return the first 8 digits of a fingerprint, and 8 of the rows' digest where others share it but not the rows."""
    same = [other for other in others if other.fingerprint == one.fingerprint]
    start = one.fingerprint[:8]
    return f"{start}-{one.rows_digest[:8]}" if any(other.rows_digest != one.rows_digest for other in same) else start


CLUSTER = "cluster"
"""The column with the number of each sample's cluster, in tables whose samples are not all independent: whoever cannot
open the data tests them as whoever can."""


@dataclass(frozen=True)
class SampleTable:
    """The columns of samples.

    Attributes:
        ids: row id of each sample, [n].
        columns: float64 [n] by name.
    """

    ids: tuple[str, ...]
    columns: Mapping[str, NDArray[np.float64]]

    @classmethod
    def of(cls, ids: Sequence[str], columns: Mapping[str, NDArray[np.float64]], clusters: NDArray[np.int64]) -> Self:
        """The table of scores: `columns`, and `CLUSTER` where a cluster holds several samples. `clusters`: [n]."""
        is_alone = len(np.unique(clusters)) == len(clusters)
        return cls(tuple(ids), dict(columns) if is_alone else {**columns, CLUSTER: clusters.astype(np.float64)})

    @property
    def clusters(self) -> NDArray[np.int64]:
        """[n], equal for samples that are not independent of each other, numbered from 0."""
        stated = self.columns.get(CLUSTER)
        return np.arange(len(self.ids)) if stated is None else np.unique(stated, return_inverse=True)[1]

    def dumps(self) -> str:
        """The table as CSV: a header, then a line a sample, numbers so that reading gives the same float64. An id that
        begins with an apostrophe gets another one, so that reading takes off what `csv_text` puts before a formula."""
        columns = [np.asarray(column, np.float64).tolist() for column in self.columns.values()]
        ids = [f"'{id}" if id.startswith("'") else id for id in self.ids]
        return csv_text([("id", *self.columns), *zip(ids, *columns, strict=True)])

    @classmethod
    def loads(cls, text: str | bytes) -> SampleTable:
        """The table in CSV text.

        Raises:
            ResultError: it is no such table.
        """
        try:
            decoded = text.decode("utf-8") if isinstance(text, bytes) else text
            rows = list(csv.reader(io.StringIO(decoded, newline=""), strict=True))
        except (ValueError, csv.Error) as error:
            raise ResultError(f"its samples are no CSV: {shortened(str(error), 200)}") from None
        header, lines = (rows[0], rows[1:]) if rows else ([], [])
        if header[:1] != ["id"] or len(set(header)) < len(header) or not all(map(_COLUMN.fullmatch, header)):
            raise ResultError(f"the columns of its samples are {shortened(', '.join(header), 200)}; the first is id")
        wrong = next((number for number, line in enumerate(lines, 2) if len(line) != len(header)), None)
        if wrong is not None:
            raise ResultError(f"line {wrong} of its samples has {len(lines[wrong - 2])} values, not {len(header)}")
        ids = tuple(line[0].removeprefix("'") for line in lines)
        if len(set(ids)) < len(ids) or not all(0 < len(id) <= strict.MAX_TEXT and id.isprintable() for id in ids):
            raise ResultError("the ids of its samples are empty, too long, not printable, or not unique")
        try:
            columns = {
                name: np.array([float(line[place]) for line in lines], np.float64)
                for place, name in enumerate(header[1:], 1)
            }
        except ValueError as error:
            raise ResultError(f"its samples have a value that is not a number: {shortened(str(error), 100)}") from None
        for name, column in columns.items():
            if not np.isfinite(column).all():
                raise ResultError(f"the column {name} of its samples has a value that is not finite")
        table = cls(ids, columns)
        # Numbers that Python reads and this project does not write: 1_0, a fullwidth digit, one digit too many.
        if table.dumps() != decoded:
            raise ResultError("its samples are not as this project writes them")
        return table


_COLUMN = re.compile(r"[a-z][a-z0-9_]{0,63}")


def check_samples(result: Result, content: bytes) -> SampleTable:
    """The samples of a result, from the bytes of their file.

    Raises:
        ResultError: the result was computed from other samples.
    """
    if sha256_of(content) != result.samples_sha256:
        raise ResultError("its samples changed after it was written (their SHA-256 differs)")
    table = SampleTable.loads(content)
    if len(table.ids) != result.n:
        raise ResultError(f"it has {len(table.ids):,} samples, where the result says {result.n:,}")
    return table


def result_path(folder: Path, model_id: str, revision: str, task: str) -> Path:
    """``<folder>/<model id>/<revision>/<task>.json``, every part made safe as a file name, ``/`` as ``__``."""
    return folder / safe_file_name(model_id) / safe_file_name(revision) / f"{task}.json"


def samples_path(path: Path) -> Path:
    """Where the samples of a result are, from the path of its JSON file."""
    return path.with_suffix(".csv")


def save_result(folder: Path, result: Result, samples: SampleTable) -> Path:
    """Write a result and its samples beside it; each file appears only when complete.

    Args:
        folder: root of the results.
        result: the result; its `samples_sha256` is the digest of the table's text.
        samples: its samples.

    Returns:
        path of the JSON file.
    """
    path = result_path(folder, result.model.id, result.model.revision, result.task)
    # A full disk leaves the old files; killed between the two, the result is refused beside the samples of another.
    write_together({samples_path(path): samples.dumps(), path: result.dumps()})
    return path


def load_result(path: Path) -> tuple[Result, SampleTable]:
    """Read a result and its samples.

    Raises:
        ResultError: a file is missing, no regular file, too large, damaged or in another's place, or the result was
            computed from other samples.
    """
    try:
        result = Result.loads(_read_file(path, MAX_JSON_BYTES))
        expected = result_path(Path(), result.model.id, result.model.revision, result.task)
        if path.absolute().parts[-3:] != expected.parts:
            raise ResultError(
                f"it is the result of '{result.model.id}', {result.task}, in another's place; it belongs to {expected} "
                "in the folder of the results"
            )
        return result, check_samples(result, _read_file(samples_path(path), MAX_CSV_BYTES))
    except ResultError as error:
        raise ResultError(f"{path}: {error}") from error


def _read_file(path: Path, limit: int) -> bytes:
    # A pipe or a device may never end.
    if not path.is_file():
        raise ResultError(f"{path.name} is missing, or is not a regular file")
    try:
        with open_file(path) as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise ResultError(f"{path.name} cannot be read: {error.strerror}") from error
    if len(content) > limit:
        raise ResultError(f"{path.name} has more than {limit:,} bytes; a result's has far fewer")
    return content


def is_result_file(path: Path, tasks: Sequence[str]) -> bool:
    """Whether a file is named as the result of one of the tasks."""
    return path.suffix == ".json" and path.stem in tasks
