"""A submission: a third party's result, its samples and the model's outputs, and the rules for all of them.

It holds ``result.json``, ``samples.csv`` and, unless the result is to stay self-reported, ``embeddings.safetensors``
or ``answers.jsonl``, see `layout`. Any defect of these raises `ResultError`.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TypeVar

from audio_compositionality.dataset_builder.data import Data, DatasetError
from audio_compositionality.dataset_builder.rendered import is_preset
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.controls import CONTROLS
from audio_compositionality.encoders.loading.names import hub_id_of, is_public, parse_name
from audio_compositionality.encoders.loading.twins import TWINS
from audio_compositionality.encoders.options import DEFAULT_OPTIONS
from audio_compositionality.evaluator.results.result import (
    Result,
    ResultError,
    SampleTable,
    ScoredModel,
    check_samples,
)
from audio_compositionality.evaluator.results.strict import stated_text
from audio_compositionality.evaluator.run.opened import OpenedTask, open_task
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shortened
from audio_compositionality.tasks.base import Outputs, Scores, TaskError
from audio_compositionality.tasks.registry import load_task

from . import layout
from .differences import interval_tolerance, mean_problem
from .outputs import MAX_DIM, RawAnswers, RoundedEmbeddings, clips_digest, question_ids

Held = TypeVar("Held")


@dataclass(frozen=True)
class Claim:
    """A submission before its samples and outputs are read: all that a board lists.

    Attributes:
        result: the submitted result.
        digests: SHA-256 of the submission's files, by their names; for the samples it may be the digest that the
            result states.
    """

    result: Result
    digests: Mapping[str, str]

    @property
    def id(self) -> str:
        """See `id_of`."""
        return layout.id_of(self.digests)

    @property
    def folder(self) -> str:
        """Path of its folder in the results repository."""
        return layout.folder_of(self.result, self.id)


@dataclass(frozen=True)
class Submission:
    """The files of a submission, and their content.

    Attributes:
        files: content by name.
        result: the submitted result.
        samples: of the result.
        embeddings: None for a task that scores answers, and where the result is to stay self-reported.
        local: for a submission made here, the result before embeddings were rounded.
        answers: None for a task that scores embeddings, and where the result is to stay self-reported.
    """

    files: Mapping[str, bytes]
    result: Result
    samples: SampleTable
    embeddings: RoundedEmbeddings | None
    local: Result | None = None
    answers: RawAnswers | None = None

    @cached_property
    def claim(self) -> Claim:
        """The submission without samples and outputs."""
        return Claim(self.result, layout.sha256_by_name(self.files))

    @property
    def id(self) -> str:
        """See `id_of`."""
        return self.claim.id

    @property
    def folder(self) -> str:
        """Path of its folder in the results repository."""
        return self.claim.folder


def parse_submission(files: Mapping[str, bytes], name: str | None = None) -> Submission:
    """A submission from the content of its files.

    Args:
        files: content by name.
        name: path of its folder in the repository, which has to match its content; None where it has none.

    Raises:
        ResultError: it is no valid submission, or does not match its path.
    """
    layout.check_names(files, layout.FILES["results"], optional=layout.OUTPUTS)
    given = layout.outputs_in(files)
    result = read_claim(files[layout.RESULT], layout.sha256_by_name(files), name).result
    samples = read_scored_samples(files[layout.SAMPLES], result)
    embeddings, answers = None, None
    if given == layout.ANSWERS:
        answers = _named(layout.ANSWERS, files[layout.ANSWERS], RawAnswers.loads)
    if given == layout.EMBEDDINGS:
        embeddings = _named(layout.EMBEDDINGS, files[layout.EMBEDDINGS], RoundedEmbeddings.loads)
        dim = embeddings.values.shape[1]
        if dim != result.model.output_dim:
            claim = "none" if result.model.output_dim is None else f"{result.model.output_dim:,}"
            raise ResultError(f"{layout.EMBEDDINGS}: they have {dim:,} numbers each, the result says {claim}")
    return Submission(dict(files), result, samples, embeddings, answers=answers)


def read_submission(folder: Path, name: str | None = None) -> Submission:
    """Read a third party's submission.

    Args:
        folder: with its files and no others.
        name: see `parse_submission`.

    Raises:
        ResultError: it is no valid submission, or does not match its path.
    """
    return parse_submission(layout.read_files(folder, layout.FILES["results"]), name)


def read_claim(content: bytes, digests: Mapping[str, str], name: str | None = None) -> Claim:
    """The claim of a submission from its ``result.json`` alone.

    Args:
        content: of that file.
        digests: SHA-256 of the submission's other files, by their names; a missing digest of the samples is taken from
            the result.
        name: see `parse_submission`.

    Raises:
        ResultError: see `read_result`; or the content belongs to another path.
    """
    result = read_result(content)
    claim = Claim(
        result, {layout.SAMPLES: result.samples_sha256, **digests, **layout.sha256_by_name({layout.RESULT: content})}
    )
    layout.check_place(claim.folder, name)
    return claim


def read_listed_claim(folder: layout.EntryFolder, fetch: layout.Fetch) -> Claim:
    """The claim of a submission in a listing of the repository; samples and embeddings are not fetched.

    Raises:
        ResultError: it is no submission, does not match its folder, or is of an unknown task.
    """
    folder.check()
    outputs = folder.outputs
    digests = {} if outputs is None else {outputs: folder.digest(outputs, fetch)}
    claim = read_claim(folder.read(layout.RESULT, fetch), digests, folder.path)
    try:
        load_task(claim.result.task)
    except TaskError as error:
        raise ResultError(str(error)) from None
    return claim


def read_result(content: bytes) -> Result:
    """A third party's result: `Result.loads`, and the further rules for submissions.

    Raises:
        ResultError: too large, no result, clips left out, a model without a length of embeddings, or a date that is
            invalid or in the future.
    """
    result = _named(layout.RESULT, content, Result.loads)
    if result.skipped:
        raise ResultError(f"{layout.RESULT}: it leaves out {len(result.skipped)} clips; a submission needs all")
    # One day of tolerance for wrong clocks.
    if not is_date(result.date) or datetime.fromisoformat(result.date) > datetime.now(UTC) + timedelta(days=1):
        raise ResultError(f"{layout.RESULT}: its date is {result.date}, which is invalid or in the future")
    return result


def read_sample_table(content: bytes, result: Result) -> SampleTable:
    """The samples of a result, from a third party's file.

    Raises:
        ResultError: too large, damaged, or of another result.
    """
    return _named(layout.SAMPLES, content, lambda text: check_samples(result, text))


def read_scored_samples(content: bytes, result: Result) -> SampleTable:
    """The samples of a result, from a third party's file, whose means are its measures; of another version of its
    task these are not known.

    Raises:
        ResultError: see `read_sample_table`; or a mean is another, or the task unknown.
    """
    samples = read_sample_table(content, result)
    try:
        info = load_task(result.task).info
    except TaskError as error:
        raise ResultError(f"{layout.RESULT}: {error}") from None
    problem = mean_problem(info, result, samples) if info.version == result.task_version else None
    if problem is not None:
        raise ResultError(f"{layout.SAMPLES}: {problem}")
    return samples


def _named(name: str, content: bytes, read: Callable[[bytes], Held]) -> Held:
    """The content of a file; a `ResultError` about it begins with its name."""
    layout.check_size(name, len(content))
    try:
        return read(content)
    except ResultError as error:
        raise ResultError(f"{name}: {error}") from None


def is_date(text: str) -> bool:
    """Whether a text is a date and time in UTC as results write it, ``2026-01-31T23:59:59+00:00``."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds") == text
    except (ValueError, OverflowError):
        return False


def submission_problem(submission: Submission, opened: OpenedTask) -> str | None:
    """Why a submission cannot be verified for a task with its data; None where it can, or lacks the model's outputs."""
    return (
        policy_problem(submission.result, opened)
        or claim_problem(submission, opened)
        or outputs_problem(submission, opened)
    )


def policy_problem(result: Result, opened: OpenedTask) -> str | None:
    """Return why a result cannot be submitted or verified, for a task with its data; None if it can.

    A submission is of the current version of its task, has the default settings except `TaskInfo.choices`, and leaves
    nothing out.
    """
    info, again = opened.task.info, f"Score it again: {scoring_command(result, opened)}"
    if result.task_version != info.version:
        return f"it is of version {result.task_version} of {info.name}, this is version {info.version}. {again}"
    if (result.recipe, result.fingerprint) != (info.recipe, opened.configuration.fingerprint):
        return f"it is of the data {result.fingerprint[:12]}…, these are {opened.configuration.fingerprint[:12]}…"
    if result.rows_digest != opened.configuration.rows_digest:
        return (
            f"its rows have the digest {result.rows_digest[:12]}…, but the data with the same fingerprint now have "
            f"{opened.configuration.rows_digest[:12]}…. {again}"
        )
    if result.skipped:
        return f"it leaves out {len(result.skipped)} clips, such as {result.skipped[0].id}; a submission needs all"
    # As text: in Python, [False, True, 2] equals [0, 1, 2].
    given, needed = (
        {name: json.dumps(value, sort_keys=True) for name, value in one.settings.items()} for one in (result, opened)
    )
    if given != needed:
        texts = [
            ", ".join(f"{name} = {one[name]}" for name in sorted(one) if given.get(name) != needed.get(name))
            for one in (given, needed)
        ]
        has, needs = (shortened(text, 300) or "none" for text in texts)
        if given.get("seeds") == "[0]" != needed.get("seeds"):
            has += " (one fit, the default of `run`)"
            needs += " (the default of `evaluate`)"
        return f"its settings are {has}; a submission needs {needs}. {again}"
    if set(result.measures) != {measure.name for measure in info.measures}:
        return "its measures are not those that its task has"
    if result.n != len(opened.samples.ids):
        return f"it has {result.n:,} samples, the data have {len(opened.samples.ids):,}"
    if result.model.output_dim is not None and result.model.output_dim > MAX_DIM:
        return f"its embeddings have {result.model.output_dim:,} numbers; at most {MAX_DIM:,} can be submitted"
    return None


def name_to_score(model: ScoredModel) -> str:
    """Return the name by which `evaluate` loads a model; with a placeholder for a class in a file and for weights in a
    folder, whose paths no result states."""
    if "source-" not in model.revision:
        with suppress(ModelError):
            # Of a model of the Hub, a digest in place of a commit means local weights.
            is_local = model.revision.startswith("sha256-") and hub_id_of(parse_name(model.id).model) is not None
            if is_public(model.id) and not is_local:
                return model.id
    prefixes, rest = "", model.id
    while (front := rest.partition(":"))[0] in (*CONTROLS, *TWINS):
        prefixes, rest = f"{prefixes}{front[0]}:", front[2]
    return prefixes + (PLACEHOLDERS[0] if "source-" in model.revision else PLACEHOLDERS[1])


PLACEHOLDERS = ("FILE.py:CLASS", "MODEL")
"""In a command, the name of a class in a file, and of any other model whose name is unknown."""


def scoring_command(result: Result, opened: OpenedTask) -> str:
    """Return the command that replaces a result by one that can be submitted, in words: quoted, with the meaning of a
    placeholder."""
    configuration, info, model = opened.configuration, opened.task.info, result.model
    name = name_to_score(model)
    words = ["audio-compositionality", "evaluate", name, "--tasks", info.name]
    preset = preset_with(configuration.recipe, configuration.fingerprint)
    if preset != "mini":
        words += ["--data", "DATA"] if preset is None else ["--preset", preset]
    for setting, default in info.choices.items():
        if opened.settings[setting] != default:
            words += ["--set", f"{setting}={opened.settings[setting]}"]
    if model.options.layer is not None:
        words += ["--layer", str(model.options.layer)]
    for option in ("pooling", "precision"):
        if (value := getattr(model.options, option)) != getattr(DEFAULT_OPTIONS, option):
            words += ["--set", f"{option}={value}"]
    if (seed := re.match(r"seed-([1-9]\d*)", model.revision)) is not None:
        words += ["--set", f"twin_seeds={seed[1]}"]
    unknown = next((word for word in PLACEHOLDERS if name.endswith(word)), None)
    meaning = ""
    if unknown is not None:
        own = model.id[len(name) - len(unknown) :]
        meaning = f", where {unknown} is the name of {own} that you gave to `run`"
    return f"`{shlex.join([*words, '--force'])}`{meaning}"


def claim_problem(submission: Submission, opened: OpenedTask) -> str | None:
    """Why samples do not fit the data, or their intervals differ from the result's; None where they fit.

    Nothing is computed from embeddings or answers, so this also works for a submission without them.
    """
    from audio_compositionality.evaluator.run.evaluate import intervals_of

    result, samples = submission.result, submission.samples
    described = opened.samples
    if samples.ids != described.ids:
        return "its samples differ from the data, or are in another order"
    clusters = SampleTable.of(samples.ids, {}, described.clusters).clusters
    if samples.clusters.tolist() != clusters.tolist():
        return "the clusters of its samples do not match the data"
    intervals = intervals_of(opened.task, Scores(result.measures, samples.ids, samples.columns), described)
    if set(intervals) != set(result.intervals):
        return "its intervals are not those that its task has"
    for name, interval in intervals.items():
        claim, allowed = result.intervals[name], interval_tolerance(interval)
        if (claim is None) != (interval is None) or any(
            abs(a - b) > allowed for a, b in zip(claim or (), interval or (), strict=True)
        ):
            return f"the interval of {name} does not match its samples"
    return None


def outputs_problem(submission: Submission, opened: OpenedTask) -> str | None:
    """Why a model's outputs do not match a task's clips, texts or questions; None where they match, or
    are missing."""
    title, embeddings, answers = opened.task.info.name, submission.embeddings, submission.answers
    if opened.prompts:
        if embeddings is not None:
            return f"{title} scores answers, which stand in {layout.ANSWERS}; it has embeddings"
        return None if answers is None else answers.problem_of(question_ids(opened))
    if answers is not None:
        return f"{title} scores embeddings, which stand in {layout.EMBEDDINGS}; it has answers"
    if embeddings is None:
        return None
    count, ids = len(embeddings.values), opened.embedded_ids
    of_what = "clips and texts" if opened.texts else "clips"
    if count != len(ids):
        return f"it has embeddings of {count:,} {of_what}, the data have {len(ids):,}"
    if (embeddings.clips, embeddings.texts) != (clips_digest(ids), len(opened.unique_texts)):
        return f"its embeddings are of other {of_what} than the data's, or in another order"
    return None


def submitted_outputs(submission: Submission, opened: OpenedTask) -> Outputs | None:
    """A model's outputs, from which a task's scores are computed; None for a submission without them. `outputs_problem`
    is to be called first."""
    if submission.answers is not None:
        return Outputs(answers=submission.answers.texts)
    return None if submission.embeddings is None else opened.outputs(submission.embeddings.restored())


def open_with_choices(result: Result, data: Data) -> OpenedTask:
    """The task of a result with its data, and default settings except those that a submission may choose.

    Raises:
        ResultError: a chosen setting is not among these.
        TaskError: there is no such task, or the data cannot be scored.
    """
    task = load_task(result.task)
    requested = {name: result.settings[name] for name in task.info.choices if name in result.settings}
    for name, value in requested.items():
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ResultError(f"its setting {name} is {stated_text(value)}, which {task.info.name} does not take")
    try:
        return open_task(task, data, requested)
    except (InputError, TaskError) as error:
        if requested == dict(task.info.choices):
            raise
        raise ResultError(f"its settings are not valid for {task.info.name}: {shortened(str(error), 300)}") from None


def open_result_task(result: Result, source: str | Path | None = None) -> OpenedTask:
    """The task of a result with its data and settings; see `open_with_choices`.

    Args:
        result: states task and data.
        source: see `data_with`.

    Raises:
        ResultError: see `data_with` and `open_with_choices`.
        DatasetError: see `data_with`.
        TaskError: there is no such task, or the data cannot be scored.
    """
    task = load_task(result.task)
    if result.recipe != task.info.recipe:
        raise ResultError(f"its recipe is {result.recipe}, where {task.info.name} scores {task.info.recipe}")
    try:
        data = data_with(result.recipe, result.fingerprint, source)
    except ResultError as error:
        # A preset with changes is opened only on request: a third party's may be arbitrarily large.
        if source is None and " with " in result.dataset and is_preset(result.dataset):
            raise ResultError(f"{error}; the result says --data '{shortened(result.dataset, 100)}'") from None
        raise
    return open_with_choices(result, data)


def data_with(recipe: str, fingerprint: str, source: str | Path | None = None) -> Data:
    """The data whose configuration of a recipe has a fingerprint: a preset, or `source`.

    Args:
        recipe: name of the recipe.
        fingerprint: of its configuration.
        source: a folder or Hub id, where the data are no preset.

    Raises:
        ResultError: neither has this fingerprint.
        DatasetError: there is no such recipe, or `source` cannot be opened.
    """
    preset = preset_with(recipe, fingerprint)
    if preset is not None:
        return _opened_preset(preset)
    presets = ", ".join(_presets(recipe))
    claim = f"it is of data with the fingerprint {fingerprint[:12]}…"
    if source is None:
        raise ResultError(f"{claim}, which no preset has ({presets}): name the data with --data")
    from audio_compositionality.dataset_builder.open_data import reopened_data
    from audio_compositionality.dataset_builder.recorded import RECORDINGS_OF

    data, remedy = reopened_data(source), ""
    if data.source.startswith(RECORDINGS_OF):
        command = f"audio-compositionality data {shlex.quote(str(source))} --set NAME=VALUE --write data.yaml"
        remedy = f". If it was scored with --set, write the settings to a file, `{command}`, and give it as --data"
    try:
        other = data.configuration(recipe).fingerprint
    except DatasetError as error:
        raise DatasetError(f"{error}{remedy}") from error
    if other != fingerprint:
        raise ResultError(f"{claim}, which neither a preset ({presets}) nor {source} ({other[:12]}…) has{remedy}")
    return data


def preset_with(recipe: str, fingerprint: str) -> str | None:
    """The preset whose configuration of a recipe has a fingerprint; None where none has."""
    return next((name for name, digest in _presets(recipe).items() if digest == fingerprint), None)


@lru_cache(maxsize=100)
def _presets(recipe: str) -> dict[str, str]:
    from audio_compositionality.dataset_builder.data import recipe_fingerprint
    from audio_compositionality.dataset_builder.recipes import load_recipe

    made = load_recipe(recipe)
    return {
        name: recipe_fingerprint(made.name, made.version, settings.values()) for name, settings in made.presets.items()
    }


@lru_cache(maxsize=2)
def _opened_preset(name: str) -> Data:
    from audio_compositionality.dataset_builder.rendered import rendered_preset

    return rendered_preset(name)
