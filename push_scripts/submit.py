"""Results sent to a leaderboard, with samples and outputs of the model, and to the page of the model on the Hub."""

from __future__ import annotations

import hashlib
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.dataset_builder.manifest import MANIFEST_NAME, Manifest
from audio_compositionality.encoders.loading.listing import find_model
from audio_compositionality.encoders.loading.names import hub_id_of
from audio_compositionality.evaluator.compare.loading import (
    ComparedResult,
    ModelKind,
    load_results,
)
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.layout import MAX_ENTRIES, OUTPUTS, folders_of, outputs_in
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.submission import Submission, data_with, name_to_score
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Commit, RemoteFile, digest_of
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.hub.names import dataset_of, leaderboard_of, results_of
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.files import read_file
from audio_compositionality.support.text import listed, number_text, plain
from audio_compositionality.support.yaml_text import parse_yaml
from audio_compositionality.tasks.registry import list_tasks, load_task

from .dataset import MANIFEST_LIMIT, registered_tasks


@dataclass(frozen=True)
class Submitted:
    """The effect of a submission, or of a dry run.

    Attributes:
        repository: of the results.
        submissions: the submissions to send, one per result; empty where the user's pull request has them already.
        commit: the pull request, or the commit on main; None for a dry run, and where the pull request was there
            already.
        url: of the pull request, or of the commit; None for a dry run.
        models: the repositories of the models, each with its pull request; None for a dry run.
        dry_run: whether nothing was to be sent.
    """

    repository: Repository
    submissions: tuple[Submission, ...]
    commit: Commit | None
    url: str | None
    models: Mapping[Repository, Commit | None]
    dry_run: bool = False


def submit_results(
    paths: Sequence[str | Path],
    org: str,
    *,
    hub: Hub | None = None,
    data: str | None = None,
    cache: str | Path | None = None,
    with_outputs: bool = True,
    paradigm: str | None = None,
    licence: str | None = None,
    model_card: bool = False,
    device: str | None = None,
    pull_request: bool = True,
    dry_run: bool = False,
    progress: bool = True,
) -> Submitted:
    """Open a pull request with results on ``ORG/audio-compositionality-results``, or commit them to it.

    Embeddings are rounded to 16 bits and scored again: the submitted scores belong to the rounded embeddings. Answers
    are sent unchanged. A second call, after an interruption or a lost reply, continues the user's own pull request
    instead of opening another.

    Args:
        paths: folders of results, or their JSON files.
        org: organisation or user that the leaderboard belongs to.
        hub: by default as the user of the saved token.
        data: the data of the results, where they are no preset.
        cache: folder of cached embeddings and answers; default `cached_outputs_folder`.
        with_outputs: send embeddings or answers; without them a result cannot be verified, and stays self-reported.
        paradigm: how the model was trained, if the result does not state it.
        licence: of its weights, if the result does not state it.
        model_card: also open pull requests on the models' own repositories.
        device: torch device of fits.
        pull_request: False commits to the branch main, for users with the right: the leaderboard shows the results at
            once, as reported, and its checker verifies them there.
        dry_run: send nothing.
        progress: show progress bars.

    Raises:
        ResultError: a result cannot be submitted, or is on the leaderboard already.
        DatasetError: its data cannot be opened.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    repository = results_of(org)
    loaded = load_results(paths)
    if len(loaded) > MAX_ENTRIES:
        raise ResultError(f"{len(loaded)} results, but a pull request takes {MAX_ENTRIES} at most: split them")
    results = [one.result for one in loaded]
    models: dict[Repository, list[Result]] = {}
    revision = ""
    if model_card:
        # Before the fits, which take minutes.
        for result in results:
            models.setdefault(result_repository(result), []).append(result)
        revision = check_data(hub, org, results)
        for model in models:
            hub.head(model)
    present = hub.files_if_any(repository)
    if present is None and not dry_run:
        raise HubError(
            f"there is no {repository}: check --org; `audio-compositionality push leaderboard` creates one", 404
        )
    # Equal results with equal options have equal titles, by which the pull request is recognised.
    digests = sorted(hashlib.sha256(read_file(one.path)).hexdigest() for one in loaded)
    digest = hashlib.sha256(repr((digests, (with_outputs, paradigm, licence))).encode()).hexdigest()
    ids = sorted({result.model.id for result in results})
    names = ids[0] if len(ids) == 1 else f"{len(ids)} models"
    tasks = ", ".join(sorted({result.task for result in results}))
    title = f"Results of {names[:100]}: {tasks} ({digest[:12]})"
    opened = hub.own_request(repository, title) if pull_request and not dry_run else None
    if opened is not None:
        url = f"{repository.url}/discussions/{opened.number}"
        return Submitted(repository, (), None, url, _on_models(hub, org, models, revision))
    making = {
        "cache": cache,
        "with_outputs": with_outputs,
        "paradigm": paradigm,
        "licence": licence,
        "device": device,
        "progress": progress,
    }
    submissions = []
    for made in _made(loaded, data, making):
        if isinstance(made, AudioCompositionalityError):
            raise made
        submissions.append(made)
    _check_new(present or {}, submissions, pull_request)
    if dry_run:
        return Submitted(repository, tuple(submissions), None, None, dict.fromkeys(models), dry_run=True)
    files = {f"{made.folder}/{name}": content for made in submissions for name, content in made.files.items()}
    lines = [f"- `{made.folder}`: {made.result.score:.6f}" for made in submissions]
    description = "\n".join(["Submitted by `audio-compositionality`.", "", *lines])
    commit = hub.commit(repository, files, title, description=description, pull_request=pull_request)
    return Submitted(repository, tuple(submissions), commit, commit.url, _on_models(hub, org, models, revision))


def _made(
    loaded: Sequence[ComparedResult], data: str | None, making: Mapping[str, Any]
) -> Iterator[Submission | AudioCompositionalityError]:
    """Yield each result's submission, or the error that says why it cannot be submitted."""
    opened: dict[tuple[str, str], Data] = {}
    for one in loaded:
        key = (one.result.recipe, one.result.fingerprint)
        try:
            if key not in opened:
                opened[key] = data_with(*key, data)
            yield make_submission(one.path, opened[key], **making)
        except AudioCompositionalityError as error:
            yield error


def chosen_results(paths: Sequence[str | Path], models: Sequence[str] = ()) -> tuple[list[Path], list[str]]:
    """Return the files of the results to submit, and the names of the baselines that are left out.

    A leaderboard has its own results of the baselines and untrained networks that come with the package, so they are
    left out unless they are named.

    Args:
        paths: folders of results, or their JSON files.
        models: ids of the models whose results to submit; empty for all but these baselines.

    Raises:
        ResultError: no result is left, a model has none, or a file is damaged.
    """
    loaded = load_results(paths)
    ids = sorted({one.result.model.id for one in loaded})
    for model in models:
        if model not in ids:
            raise ResultError(f"no results of {model!r}; there are results of {listed(ids)}")
    of_package = (one for one in loaded if one.kind is not ModelKind.TRAINED and find_model(one.result.model.id))
    left_out = [] if models else sorted({one.result.model.id for one in of_package})
    if left_out == ids:
        raise ResultError(
            f"all results are of models of the package ({listed(ids)}), which need no submission; to submit one all "
            "the same, name one with --model"
        )
    chosen = models or [id for id in ids if id not in left_out]
    return [one.path for one in loaded if one.result.model.id in chosen], left_out


def submission_check(paths: Sequence[str | Path], *, data: str | None = None, **making: Any) -> tuple[list[str], bool]:
    """Return lines that state which results can be submitted, and whether all can.

    Each is made into a submission as `submit_results` does, without a network. Results of a task with the same outcome
    share a line.

    Args:
        paths: folders of results, or their JSON files.
        data: the data of the results, if they are not a preset.
        making: further arguments of `make_submission`.

    Raises:
        ResultError: there are no results, or one is damaged.
    """
    loaded = load_results(paths)
    scored = {(one.result.key, one.result.model.id) for one in loaded}
    models: dict[tuple[str, str], dict[str, str]] = {}
    count = 0
    for one, made in zip(loaded, _made(loaded, data, making), strict=True):
        info, model, outcome = load_task(one.result.task).info, one.result.model.id, "can be submitted"
        name = shlex.quote(name_to_score(one.result.model))
        if isinstance(made, AudioCompositionalityError):
            outcome = str(made).removeprefix(f"{one.path}: ").removeprefix(f"{model}: ")
            count += 1
            # Models of a line share one command.
            outcome = outcome.replace(f" evaluate {name} ", " evaluate MODELS ")
        twin = info.twin[0] + model
        if one.kind is ModelKind.TRAINED and (one.result.key, twin) not in scored:
            outcome += f"; no result of {twin}: without it the board shows no evidence of learning"
        models.setdefault((info.title, outcome), {})[one.label] = name
    lines = []
    for (title, outcome), names in models.items():
        command = f" evaluate {' '.join(dict.fromkeys(names.values()))} "
        lines.append(f"{title} of {plain(listed(list(names)))}: {outcome.replace(' evaluate MODELS ', command)}")
    return [*lines, f"{len(loaded) - count} of {len(loaded)} results can be submitted."], not count


def _check_new(present: Mapping[str, RemoteFile], submissions: Sequence[Submission], pull_request: bool) -> None:
    """Refuse a pull request with an entry that the leaderboard has; warn of embeddings or answers that it
    has from another model.

    A commit leaves existing entries out. Only equal files are noticed here; the checker of the leaderboard compares
    their content.
    """
    folders = list(folders_of(present)[0].values())
    for made in submissions:
        if pull_request and any(folder.path == made.folder for folder in folders):
            raise ResultError(f"the leaderboard already has this result: {made.folder}")
        given = outputs_in(made.files)
        if given is None:
            continue
        digests = {digest_of(made.files[given], kind) for kind in ("sha256", "git")}
        for folder in folders:
            stored = {folder.files[name].digest for name in OUTPUTS if name in folder.files}
            if stored & digests and folder.encoder != made.folder.split("/")[1]:
                warnings.warn(
                    f"{made.folder} has the same {given.partition('.')[0]} as {folder.path}, an entry of another "
                    "model: the maintainers decide",
                    stacklevel=3,
                )


def _on_models(
    hub: Hub, org: str, models: Mapping[Repository, Sequence[Result]], revision: str
) -> dict[Repository, Commit | None]:
    return {model: submit_model_results(hub, org, model, results, revision) for model, results in models.items()}


# ----- The page of a model: `.eval_results/*.yaml` (https://huggingface.co/docs/hub/eval-results)


EVAL_RESULTS_FOLDER = ".eval_results"

_LIMIT = 1_000_000
"""Most bytes of a file of results; an entry has about 400."""

_EXPLANATION = "Meaning and controls of the scores, and whether they were recomputed: {space}"


def result_repository(result: Result) -> Repository:
    """The Hub repository of a result's model.

    Raises:
        ResultError: it has none: a baseline, an untrained network, a user's class, weights from elsewhere.
    """
    id = hub_id_of(result.model.id)
    if id is None:
        raise ResultError(
            f"{result.model.id} has no model repository on the Hub; --model-card is for models that are loaded "
            "from one, such as whisper-base or ORG/NAME"
        )
    return Repository("model", id)


def check_data(hub: Hub, org: str, results: Sequence[Result]) -> str:
    """Return the commit of the data set on which results will be shown, if the results are of its data.

    Raises:
        ResultError: it has other data, or is no benchmark of the Hub for the task of a result; see `registered_tasks`.
        HubError: it does not exist.
    """
    repository = dataset_of(org)
    head = hub.head(repository)
    manifest = Manifest.load(hub.download(repository, MANIFEST_NAME, head, limit=MANIFEST_LIMIT))
    stored = {} if manifest is None else {name: recipe.fingerprint for name, recipe in manifest.recipes.items()}
    for result in results:
        if stored.get(result.recipe) != result.fingerprint:
            theirs = f"the data {stored[result.recipe][:12]}" if result.recipe in stored else "no such data"
            raise ResultError(
                f"the result of {result.model.id} is of the data {result.fingerprint[:12]}, and {repository.id} has "
                f"{theirs}: a model page shows only results on {repository.id}"
            )
        # It has data, so it has a manifest.
        assert manifest is not None
        framework, run = registered_tasks(manifest, [task.info for task in list_tasks()])
        if result.task not in [task.name for task in run]:
            raise ResultError(
                f"model pages show no {result.task} on {repository.id}: the Hub knows this data set as a benchmark of "
                f"{framework}, which does not run it; leave out --model-card, or the result"
            )
    return head


def submit_model_results(hub: Hub, org: str, model: Repository, results: Sequence[Result], revision: str) -> Commit:
    """Open a pull request on a model's repository with its results.

    Entries of the file for other data sets or tasks stay; those for the same are replaced, since there is one
    value for each.

    Args:
        hub: the client.
        org: the organisation of the data set.
        model: repository of the model.
        results: of that model, on that data set.
        revision: commit of the data set.
    """
    variants = {variant_of(result) for result in results}
    if len(variants) > 1:
        raise ResultError(f"{model.id} has results of {len(variants)} variants (layer, pooling, precision); submit one")
    variant = variants.pop()
    name = re.sub(r"[^a-z0-9]+", "_", f"audio_compositionality_{variant}".lower()).strip("_")
    path = f"{EVAL_RESULTS_FOLDER}/{name}.yaml"
    entries = model_entries(org, results, revision)
    subjects = [(entry["dataset"]["id"], entry["dataset"]["task_id"]) for entry in entries]
    title = f"Results on {dataset_of(org).id}"
    # The user's open pull request, if any, gets the additions.
    request = hub.own_request(model, title)
    branch = request.revision if request else "main"
    present: Any = None
    if path in hub.files(model, branch):
        try:
            present = parse_yaml(read_file(hub.download(model, path, branch, limit=_LIMIT)), path)
        except InputError as error:
            raise ResultError(f"{path} of {model.id} is not valid YAML: correct it there first") from error
    kept = []
    for entry in present if isinstance(present, list) else []:
        dataset = entry.get("dataset") if isinstance(entry, dict) else None
        if not isinstance(dataset, dict) or (dataset.get("id"), dataset.get("task_id")) not in subjects:
            kept.append(entry)
    text = yaml.safe_dump([*kept, *entries], sort_keys=False, allow_unicode=True)
    scores = ", ".join(f"{load_task(result.task).info.title} {number_text(result.score)}" for result in results)
    return hub.commit(
        model,
        {path: text.encode()},
        title,
        description=f"{scores}.\n\n{_EXPLANATION.format(space=leaderboard_of(org).url)}",
        pull_request=True,
    )


def model_entries(org: str, results: Sequence[Result], revision: str) -> list[dict[str, Any]]:
    """The entries of some results, in the Hub's format."""
    entries = [
        EvalResultEntry(
            dataset_id=dataset_of(org).id,
            task_id=result.task,
            value=round(result.score, 6),
            dataset_revision=revision,
            date=result.date,
            source_url=leaderboard_of(org).url,
            source_name="audio-compositionality leaderboard",
            source_org=org,
            notes=variant_of(result) or None,
        )
        for result in results
    ]
    return eval_result_entries_to_yaml(entries)


def variant_of(result: Result) -> str:
    """How a result departs from the model's defaults, such as "layer 3, max pooling"; empty where it does not."""
    options = result.model.options
    parts = [
        f"layer {options.layer}" if options.layer is not None else "",
        f"{options.pooling} pooling" if options.pooling is not None else "",
        options.precision if options.precision != "float32" else "",
    ]
    return ", ".join(part for part in parts if part)
