"""Results read from files for a comparison, and the kinds of their models: trained, untrained, baselines, controls."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from audio_compositionality.encoders.base import kind_name
from audio_compositionality.encoders.controls import CONTROLS
from audio_compositionality.encoders.loading.listing import ModelListing, find_model, named_models
from audio_compositionality.encoders.loading.twins import TWINS
from audio_compositionality.evaluator.results.result import (
    Result,
    ResultError,
    SampleTable,
    ScoredModel,
    is_result_file,
    load_result,
    result_path,
    samples_path,
)
from audio_compositionality.support.text import counted, listed, shown
from audio_compositionality.tasks.base import Measure, Number, TaskInfo
from audio_compositionality.tasks.registry import task_names


def asked_of(info: TaskInfo) -> str:
    """The kind of model that a task needs, in words."""
    return kind_name(info.needs).replace("encoder", "encoders").replace("model", "models")


UNTRAINED_PARADIGM = "untrained"
BASELINE_PARADIGMS = ("baseline", "none")
"""First words of the field "paradigm" on cards of models that were not trained."""
CONTROL_PARADIGM = "control"
"""First word of that field on the card of a model under a control: its texts sorted, its clips reversed."""


class ModelKind(Enum):
    """The kind of evidence that a model's score can be; the value is its name for people."""

    TRAINED = "model"
    UNTRAINED = "untrained network"
    BASELINE = "baseline"
    CONTROL = "control"


def model_kind(model: ScoredModel) -> ModelKind:
    """Return the kind of a model, by its name or else by the training that its card states.

    The submitter of a third party's model states both, but a twin counts by its name alone.
    """
    prefix, colon, _ = model.id.partition(":")
    if colon and prefix in (*CONTROLS, *TWINS):
        return ModelKind.CONTROL if prefix in CONTROLS else ModelKind.UNTRAINED
    first = (model.paradigm or "").split(" ")[0]
    if first == UNTRAINED_PARADIGM:
        return ModelKind.UNTRAINED
    if first == CONTROL_PARADIGM:
        return ModelKind.CONTROL
    return ModelKind.BASELINE if first in BASELINE_PARADIGMS else ModelKind.TRAINED


Floats = NDArray[np.float64]

SHORT_REVISION = 8
"""Characters of a revision that are shown, where they suffice to distinguish two."""


@dataclass(frozen=True)
class ComparedResult:
    """One result of a comparison.

    Attributes:
        label: the model's id, with the beginning of its revision where two share it.
        result: the result.
        path: of its JSON file; of a result of this process, the one that it would have.
        samples: the columns of its samples.
    """

    label: str
    result: Result
    path: Path
    samples: SampleTable

    @property
    def kind(self) -> ModelKind:
        """The kind of its model."""
        return model_kind(self.result.model)

    @property
    def ids(self) -> tuple[str, ...]:
        """Row ids of the samples, [n]."""
        return self.samples.ids

    def at(self, ids: Sequence[str]) -> ComparedResult:
        """The result with these samples only, in this order."""
        if tuple(ids) == self.ids:
            return self
        places = {id: place for place, id in enumerate(self.ids)}
        index = [places[id] for id in ids]
        columns = {name: column[index] for name, column in self.samples.columns.items()}
        return replace(self, samples=SampleTable(tuple(ids), columns))

    def column(self, measure: Measure) -> Floats | None:
        """A measure of each sample, [n]; None where the result does not have it by sample."""
        return None if measure.column is None else self.samples.columns.get(measure.column)

    def scores(self, measure: Measure) -> Floats:
        """A measure of the samples that it is a mean over, [k]; k is 0 where the result does not have it by sample."""
        column = self.column(measure)
        return np.zeros(0) if column is None else column[measure.places(self.samples.columns)]

    def value(self, measure: Measure) -> float | bool | None:
        """A measure: the mean over these samples, or over those among them that define it, where it is a mean; else the
        number that the result states for all its own samples."""
        scores = self.scores(measure)
        return float(scores.mean()) if len(scores) else self.stated(measure)

    def stated(self, measure: Measure) -> float | bool | None:
        """A measure as the result states it, for all of its own samples."""
        return self.result.measures.get(measure.name)


GivenResults = str | Path | Result | Sequence[str | Path | Result]
"""One or several: folders that are searched for results, their JSON files, results that `evaluate` has returned."""


def load_results(paths: GivenResults) -> list[ComparedResult]:
    """Read results with the columns of their samples.

    Results of tasks that are not installed are left out with a warning, as well as results of earlier versions of a
    user's class, see `_newest_sources`.

    Args:
        paths: of the results, or the results.

    Raises:
        ResultError: a path does not exist or holds no result, a file is damaged, or two are of the same model,
            revision, task and data.
    """
    if isinstance(paths, str | Path | Result):
        paths = [paths]
    if not paths:
        raise ResultError("no results: give folders that hold them, or their JSON files")
    tasks = task_names()
    given = [path for path in paths if isinstance(path, Result)]
    places = [Path(path) for path in paths if not isinstance(path, Result)]
    files = dict.fromkeys(file.absolute() for path in places for file in _result_files(path, tasks))
    loaded = [(file, *load_result(file)) for file in files]
    for result in given:
        # The name that its file would have.
        path = result_path(Path(), result.model.id, result.model.revision, result.task)
        if result.samples is None:
            raise ResultError(f"the result {path} was read without its samples: give the folder that holds its file")
        loaded.append((path, result, result.samples))
    loaded = _newest_sources(loaded)
    revisions: dict[tuple[object, ...], set[str]] = {}
    for _, result, _ in loaded:
        revisions.setdefault((result.key, result.model.id), set()).add(result.model.revision)
    results: dict[tuple[object, ...], ComparedResult] = {}
    # Most results have the same samples: their ids, which take more memory than the scores, are kept once.
    every: dict[tuple[str, ...], tuple[str, ...]] = {}
    for file, result, samples in loaded:
        samples = SampleTable(every.setdefault(samples.ids, samples.ids), samples.columns)
        identity = (result.key, result.model.id, result.model.revision)
        if identity in results:
            raise ResultError(f"{file} and {results[identity].path} are results of the same model, revision and data")
        label, revision, length = result.model.id, result.model.revision, SHORT_REVISION
        of_model = revisions[identity[:2]]
        if len(of_model) > 1:
            # With enough characters of its own to distinguish it.
            while sum(other[:length] == revision[:length] for other in of_model) > 1:
                length += 1
            label = f"{label} ({revision[:length]})"
        results[identity] = ComparedResult(label, result, file, samples)
    return list(results.values())


_SOURCE = re.compile(r"source-([0-9a-f]{16})(-weights-[0-9a-f]{16})?$")
"""In the revision of a class in a file: the digest of the file, and the weights."""


def _newest_sources(loaded: list[tuple[Path, Result, SampleTable]]) -> list[tuple[Path, Result, SampleTable]]:
    """Return the results without earlier versions of a class in a file, or of their twins: one model is one row,
    however often its file was edited. Warns of what is left out. Other weights are another model."""
    versions: dict[tuple[str, str | None], dict[str, list[tuple[Path, Result, SampleTable]]]] = {}
    for one in loaded:
        if (source := _SOURCE.search(one[1].model.revision)) is not None:
            # Its twins and controls have the name of the class behind a colon.
            model = one[1].model.id.rpartition(":")[2], source[2]
            versions.setdefault(model, {}).setdefault(source[1], []).append(one)
    older: list[Path] = []
    for (name, _), by_source in versions.items():
        *earlier, newest = sorted(by_source.values(), key=lambda group: max(result.date for _, result, _ in group))
        if earlier:
            paths = [path for group in earlier for path, *_ in group]
            scored = {result.task for _, result, _ in newest}
            missing = sorted({result.task for group in earlier for _, result, _ in group} - scored)
            again = f"; score {shown(missing)} again with `evaluate FILE.py:CLASS --tasks {','.join(missing)}`"
            warnings.warn(
                f"{counted(len(paths), 'result')} of earlier versions of the file of {name} left out"
                f"{again if missing else ''}. To compare two versions of a class, give each another `id`",
                stacklevel=3,
            )
            older += paths
    return [one for one in loaded if one[0] not in older]


def _result_files(path: Path, tasks: Sequence[str]) -> list[Path]:
    """The result files at a path: JSON files named for a task; warns of others that have samples beside them."""
    if path.is_file():
        if not is_result_file(path, tasks) and samples_path(path).is_file():
            _pass_over([path])
            return []
        return [path]
    if not path.is_dir():
        raise ResultError(f"no results at {path}: there is no such file or folder")
    candidates = sorted(
        Path(folder) / name for folder, _, names in os.walk(path) for name in names if name.endswith(".json")
    )
    files = [file for file in candidates if is_result_file(file, tasks)]
    foreign = [file for file in candidates if file not in files and samples_path(file).is_file()]
    if foreign:
        _pass_over(foreign)
    elif not files:
        raise ResultError(
            f"{path} holds no results, which are files TASK.json with TASK.csv beside them: "
            "`audio-compositionality run` writes them"
        )
    return files


def _pass_over(files: Sequence[Path]) -> None:
    names = shown(sorted({file.stem for file in files}))
    warnings.warn(f"results of tasks that are not installed here are left out: {names}", stacklevel=3)


# ----- Facts about baselines that no score is needed for


FIXED_WITHIN = 0.01
"""A score this close to its value by construction is fixed by it. Where each clip has a level of its own, a mixture is
not the sum of its sources: a linear encoder then stays farther away (0.84 instead of 1), and its score is an ordinary
one."""


def baseline_listing(model: ScoredModel) -> ModelListing | None:
    """A baseline in the listing of models; None for other models and for baselines that are not listed."""
    return find_model(model.id) if model_kind(model) is ModelKind.BASELINE else None


def descriptions_in(results: Sequence[ComparedResult], info: TaskInfo) -> list[int]:
    """Places of the acoustic or text baselines of the task's inputs among the results, in the order of
    `descriptions_of`."""
    models = [result.result.model for result in results]
    ids = [None if baseline_listing(model) is None else model.id for model in models]
    return [k for name in descriptions_of(info) for k, id in enumerate(ids) if id == name]


def descriptions_of(info: TaskInfo) -> list[str]:
    """Names of all acoustic or text baselines of the task's inputs.

    They plainly do what a task scores: describe sound, or sound and texts, or answer.
    """
    needed = ("text" in info.needs, "answer" in info.needs)
    names = []
    for listing in named_models().values():
        is_meant = listing.name in info.described_by if info.described_by else listing.is_reference
        if is_meant and (listing.embeds_text, listing.answers) == needed:
            names.append(listing.name)
    return names


def description_names(info: TaskInfo) -> str:
    """Names of all acoustic or text baselines of the task's inputs, in words."""
    names = descriptions_of(info)
    return listed(names) if names else "a plain baseline"


def levels_in(results: Sequence[ComparedResult]) -> list[int]:
    """Places of the baselines whose only input is the level of a clip, by the listing of models."""
    listings = [baseline_listing(result.result.model) for result in results]
    return [k for k, listing in enumerate(listings) if listing is not None and listing.is_level]


def level_names() -> str:
    """Names of all baselines whose only input is the level of a clip, in words: one or another."""
    return " or ".join(listing.name for listing in named_models().values() if listing.is_level)


def fixed_by_construction(model: ScoredModel, value: Number, measure: Measure) -> str:
    """In words, why construction fixes a baseline's score, so that it is no target; empty where it does not."""
    listing = baseline_listing(model)
    if listing is None or not listing.is_linear or measure.linear is None or value is None:
        return ""
    return f"linear: {measure.linear:g} by construction" if abs(value - measure.linear) <= FIXED_WITHIN else ""
