"""A result: one encoder, one task; its JSON file with a typed schema, and the scores of every sample beside it."""

from __future__ import annotations

import json
import math
import os
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy import stats

from audio_compositionality.encoders.store import EmbeddingKey, safe_file_name

SCHEMA_VERSION = 4

_ADDED = ("parameters", "paradigm", "licence")
"""What version 4 says beside version 3, of which it is not known: None there."""
TASKS = ("a_coat", "a_tre")

STEP_COLUMNS = ("ab_1", "ab_2", "cd_1", "cd_2")
"""Of the samples of ``a_coat``: the steps B − A and D − C on the first two principal axes of all steps, see
`step_plane`."""

MAX_JSON_BYTES = 16_000_000
"""A larger file is no result: they have a few kB, and about 100 bytes more for each clip that is left out."""

MAX_DEPTH = 4
"""Lists and mappings in each other in a field, at most; those that results have are 2 deep."""

_CENTRED_CONTROLS = {"a_coat": "centred", "a_tre": "a_tre_centred"}
"""The control that is the mean of the samples' ``score_centred``."""


class ResultError(ValueError):
    """A result file that cannot be used, or that would be replaced by another: says which, and what to do."""


@dataclass(frozen=True)
class Result:
    """What one task found for one encoder.

    Attributes:
        task: ``a_coat`` or ``a_tre``.
        score: mean over samples (quadruples, or test scenes) of the task's score.
        std: standard deviation over samples (of A-TRE: of their means over the seeds), n - 1 in the denominator.
        n: number of samples.
        interval: 95 % interval of the mean over samples, Student's t; None for a single sample.
        controls: the controls that the metric returns beside its score, by the metric's names; of ``a_coat`` also
            ``step_variance_1`` and ``step_variance_2``, see `StepPlane`. The spread of A-TRE over seeds is in
            ``seed_std`` and ``a_tre_centred_seed_std``.
        training: for each seed, the step at which the fit was best; empty where nothing is trained.
        settings: what the score depends on beside encoder and data: of ``a_tre`` the ``seeds`` and ``max_steps``.
        encoder_id, encoder_revision, weights_sha256, output_dim, sample_rate: what was evaluated.
        parameters: number of weights of the part of the model that is run; None where it is not known or none.
        paradigm: how the model was trained, in words; None where it is not known.
        licence: of the weights, as their publisher states it; None where it is not known.
        options: how it was run: ``layer``, ``pooling``, ``precision``, ``compile``, as `EncoderOptions` has them.
        front_end_version: see `StagedEncoder`.
        precision_deviation: how far the embeddings are from those in float32: ``relative_mean``, ``relative_max`` and
            ``spread_ratio`` as `ModelEncoder.precision_deviation` returns them, of ``clips`` clips; None in float32.
        skipped: ``id`` of each clip that could not be embedded, and the ``reason``; its quadruple or scene is left
            out of everything.
        dataset, fingerprint: the data: where they were opened from, and what they are.
        versions: of this package, Python and the libraries that compute.
        device: where the model ran.
        seconds: wall-clock time of each stage.
        date: UTC, ISO 8601.
    """

    task: str
    score: float
    std: float
    n: int
    interval: tuple[float, float] | None
    controls: Mapping[str, float | bool | None]
    training: Mapping[str, list[int]]
    settings: Mapping[str, Any]
    encoder_id: str
    encoder_revision: str
    weights_sha256: str | None
    output_dim: int
    sample_rate: int
    parameters: int | None
    paradigm: str | None
    licence: str | None
    options: Mapping[str, Any]
    front_end_version: int
    precision_deviation: Mapping[str, float] | None
    skipped: list[dict[str, str]]
    dataset: str
    fingerprint: str
    versions: Mapping[str, str]
    device: str
    seconds: Mapping[str, float]
    date: str

    def differences(self, key: EmbeddingKey, settings: Mapping[str, Any]) -> list[str]:
        """Names of what is other here than in the key of some embeddings and the settings of their score."""
        own = {**asdict(self), **self.options}
        wanted = {**asdict(key), "settings": dict(settings)}
        return sorted(name for name in wanted if own[name] != wanted[name])

    def dumps(self) -> str:
        """The result as JSON text."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1, allow_nan=False) + "\n"

    @classmethod
    def loads(cls, text: str) -> Result:
        """The result in JSON text, of this schema version or the one before.

        Raises:
            ResultError: not JSON, another schema version, a missing or unknown field, a value of the wrong type, text
                that UTF-8 cannot encode.
        """
        try:
            values = json.loads(text)
        except ValueError as error:
            raise ResultError(f"not JSON: {error}") from error
        except RecursionError as error:
            raise ResultError("not the JSON of a result: nested too deep") from error
        version = values.pop("schema_version", None) if isinstance(values, dict) else None
        if type(version) is int and 0 < version < SCHEMA_VERSION - 1:
            raise ResultError(
                f"a result of schema version {version}, which lacks what version {SCHEMA_VERSION} states: compute it "
                "again with --force"
            )
        if version not in (SCHEMA_VERSION - 1, SCHEMA_VERSION):
            raise ResultError(f"not a result of schema version {SCHEMA_VERSION - 1} or {SCHEMA_VERSION}")
        names = {field.name for field in fields(cls)} - set(() if version == SCHEMA_VERSION else _ADDED)
        if set(values) != names:
            wrong = sorted(names - set(values)) or sorted(set(values) - names)
            # What is unknown comes from the file: cut, and without control characters.
            listed = ", ".join(map(reprlib.repr, wrong))
            raise ResultError(f"the fields are not those of a result: {listed} missing or unknown")
        for name, value in values.items():
            _check_field(name, value)
        if values["interval"] is not None:
            values["interval"] = tuple(values["interval"])
        return cls(**dict.fromkeys(_ADDED) | values)


_COUNTS = ("n", "output_dim", "sample_rate", "front_end_version")
_MAPPINGS = ("controls", "training", "settings", "versions", "seconds")


def _check_field(name: str, value: Any) -> None:
    if name == "score":
        good = _is_number(value) and abs(value) <= 1 + 1e-9
    elif name == "std":
        good = _is_number(value) and value >= 0
    elif name in _COUNTS:
        good = isinstance(value, int) and not isinstance(value, bool) and value > 0
    elif name == "parameters":
        good = value is None or (type(value) is int and value > 0)
    elif name in ("paradigm", "licence"):
        good = value is None or (isinstance(value, str) and bool(value))
    elif name in _MAPPINGS:
        good = isinstance(value, dict)
        if good and name in _ITEMS:
            good = all(map(_ITEMS[name], value.values()))
    elif name == "interval":
        pair = isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))
        good = value is None or (pair and value[0] <= value[1])
    elif name == "fingerprint":
        good = _is_sha256(value)
    elif name == "weights_sha256":
        good = value is None or _is_sha256(value)
    elif name == "options":
        good = isinstance(value, dict) and set(value) == set(_OPTIONS) and all(_OPTIONS[k](v) for k, v in value.items())
    elif name == "precision_deviation":
        good = value is None or (
            isinstance(value, dict)
            and set(value) == set(_DEVIATION)
            and all(_is_number(item) and item >= 0 for item in value.values())
        )
    elif name == "skipped":
        good = isinstance(value, list) and all(map(_is_skipped, value))
    elif name == "date":
        good = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:]{8}\+00:00", value) is not None
    elif name == "task":
        good = value in TASKS
    else:
        good = isinstance(value, str) and bool(value)
    if not (good and _is_plain(value)):
        raise ResultError(f"{name} is {reprlib.repr(value)}, which is not of the field's type")


def _is_plain(value: Any, depth: int = MAX_DEPTH) -> bool:
    """Whether a value of JSON can be printed, stored and computed with: text without lone surrogates, integers of 64
    bits, finite numbers, not nested deeper than `depth`."""
    if isinstance(value, str):
        return re.search(r"[\ud800-\udfff]", value) is None
    if isinstance(value, (int, float)):
        return -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    return value is None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and _is_plain(value)


def _is_sha256(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_skipped(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"id", "reason"} and all(type(v) is str for v in value.values())


_DEVIATION = ("relative_mean", "relative_max", "spread_ratio", "clips")

_OPTIONS: Mapping[str, Callable[[Any], bool]] = {
    "layer": lambda value: value is None or type(value) is int,
    "pooling": lambda value: value is None or isinstance(value, str),
    "precision": lambda value: isinstance(value, str),
    "compile": lambda value: isinstance(value, bool),
}

_ITEMS: Mapping[str, Callable[[Any], bool]] = {
    "controls": lambda item: item is None or isinstance(item, bool) or _is_number(item),
    "training": lambda item: isinstance(item, list) and all(type(step) is int for step in item),
    "versions": lambda item: isinstance(item, str),
    "seconds": _is_number,
}


def mean_interval(scores: NDArray[np.float64]) -> tuple[float, float] | None:
    """95 % interval of the mean of scores [n] by Student's t with n - 1 degrees of freedom; None for n = 1."""
    if len(scores) < 2:
        return None
    mean = float(scores.mean())
    half = float(stats.t.ppf(0.975, len(scores) - 1) * stats.sem(scores))
    return mean - half, mean + half


def result_path(folder: Path, encoder_id: str, revision: str, task: str) -> Path:
    """``<folder>/<encoder id>/<revision>/<task>.json``, every part made safe as a file name, ``/`` as ``__``."""
    return folder / safe_file_name(encoder_id) / safe_file_name(revision) / f"{task}.json"


def sample_columns(result: Result) -> tuple[str, ...]:
    """The columns of the samples beside their ids: ``score``, ``score_centred`` unless the metric gives none (n = 1 of
    ``a_coat``), and of ``a_coat`` `STEP_COLUMNS`."""
    centred = () if result.controls.get(_CENTRED_CONTROLS[result.task]) is None else ("score_centred",)
    return ("score", *centred, *(STEP_COLUMNS if result.task == "a_coat" else ()))


def save_result(folder: Path, result: Result, ids: list[str], columns: Mapping[str, NDArray[np.float64]]) -> Path:
    """Write a result and, beside it in Parquet, its samples; each file appears only when whole.

    Args:
        folder: root of the results.
        result: the result.
        ids: row id of each sample.
        columns: those of `sample_columns`, each [n].

    Returns:
        path of the JSON file.
    """
    path = result_path(folder, result.encoder_id, result.encoder_revision, result.task)
    path.parent.mkdir(parents=True, exist_ok=True)
    table = samples_table(result, ids, columns)
    samples = path.with_suffix(".parquet")
    partial_samples, partial = partial_path(samples), partial_path(path)
    try:
        pq.write_table(table, partial_samples)
        partial.write_text(result.dumps(), "utf-8")
        # Both are on the disk. The old result goes first: a JSON file never stands beside the samples of another.
        path.unlink(missing_ok=True)
        partial_samples.replace(samples)
        partial.replace(path)
    finally:
        partial_samples.unlink(missing_ok=True)
        partial.unlink(missing_ok=True)
    return path


def samples_table(result: Result, ids: Sequence[str], columns: Mapping[str, NDArray[np.float64]]) -> pa.Table:
    """The samples of a result as its Parquet file holds them; arguments as `save_result`."""
    return pa.table({"id": ids, **columns}).replace_schema_metadata({"fingerprint": result.fingerprint})


def write_text(path: Path, text: str) -> None:
    """Write a text file, in a folder that is made where it is absent; the file appears only when whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_path(path)
    try:
        partial.write_text(text, "utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def partial_path(path: Path) -> Path:
    """Where a file is written before it gets its name: beside it, and no other process's."""
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def load_result(path: Path) -> tuple[Result, pa.Table]:
    """Read a result and its samples: a table of ``id`` (text) and `sample_columns` (float64).

    Raises:
        ResultError: a file is missing, no regular file, too large, damaged or in another's place, or the samples are
            not those that the result was computed from.
    """
    try:
        result = Result.loads(_read_json(path))
    except (ResultError, UnicodeDecodeError) as error:
        raise ResultError(f"{path}: {error}") from error
    except OSError as error:
        raise ResultError(f"{path}: it cannot be read: {error.strerror}") from error
    samples = _read_samples(path)
    expected = result_path(Path(), result.encoder_id, result.encoder_revision, result.task)
    if path.absolute().parts[-3:] != expected.parts:
        raise ResultError(
            f"{path}: it is the result of {reprlib.repr(result.encoder_id)}, {result.task}, in another's place; its "
            f"own is {reprlib.repr(str(expected))} in the folder of the results"
        )
    problem = problem_of_samples(samples, result)
    if problem is not None:
        raise ResultError(f"{path}: {problem}; compute it again with --force")
    return result, samples


def _read_json(path: Path) -> str:
    if not path.is_file():
        # A pipe or a device may never end.
        raise ResultError("there is no such file, or it is no regular one")
    with path.open("rb") as stream:
        content = stream.read(MAX_JSON_BYTES + 1)
    if len(content) > MAX_JSON_BYTES:
        raise ResultError(f"it is larger than {MAX_JSON_BYTES // 1_000_000} MB, which no result is")
    return content.decode("utf-8")


def _read_samples(path: Path) -> pa.Table:
    """The samples beside the JSON file of a result, whatever columns they have."""
    samples = path.with_suffix(".parquet")
    try:
        if not samples.is_file():
            raise ResultError(f"{samples.name} does not exist or is no regular file")
        with pq.ParquetFile(samples) as file:
            table = file.read()
        table.validate(full=True)
    except (ResultError, OSError, UnicodeDecodeError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise ResultError(f"{path}: its samples cannot be read: {reason}") from error
    return table


def problem_of_samples(samples: pa.Table, result: Result) -> str | None:
    """Why samples, a table as `load_result` returns, cannot be those of a result; None where they can."""
    if (samples.schema.metadata or {}).get(b"fingerprint") != result.fingerprint.encode():
        return "result and samples are of different data"
    wanted = ("id", *sample_columns(result))
    if sorted(samples.column_names) != sorted(wanted):
        return f"the samples have the columns {samples.column_names}; they should be {', '.join(wanted)}"
    if samples.num_rows != result.n:
        return f"there are {samples.num_rows} samples of a result of {result.n}"
    ids = samples["id"]
    if ids.type != pa.string() or ids.null_count or len(set(ids.to_pylist())) != result.n:
        return "the ids of the samples are not texts that differ"
    for name in wanted[1:]:
        column = samples[name]
        if column.type != pa.float64() or column.null_count or not np.isfinite(column.to_numpy()).all():
            return f"{name} of the samples is not finite numbers (float64)"
    for name, mean in (("score", result.score), ("score_centred", result.controls.get(_CENTRED_CONTROLS[result.task]))):
        if mean is not None and not abs(float(np.mean(samples[name].to_numpy())) - mean) <= 1e-9:
            return f"the mean of the samples' {name} is not that of the result"
    return None
