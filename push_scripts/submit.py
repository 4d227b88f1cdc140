"""Submit results to a leaderboard, with samples and what the model gave: by a pull request, or to the branch main."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audio_compositionality.dataset_builder.data import Data
from audio_compositionality.evaluator.compare.loading import load_results
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.submission import Submission, data_with
from audio_compositionality.evaluator.submissions.submission_files import MAX_ENTRIES, OUTPUTS, RESULT, outputs_in
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Commit, RemoteFile, digest_of
from audio_compositionality.hub.errors import HubError, Repository
from audio_compositionality.hub.names import results_of

from .model_results import check_data, model_of, submit_model_results


@dataclass(frozen=True)
class Submitted:
    """What a submission led to, or would lead to.

    Attributes:
        repository: of the results.
        submissions: what is sent, one a result; empty where the user's pull request has them already.
        commit: the pull request, or that on main; None of a dry run, and where the pull request was there already.
        url: of the pull request, or of the commit; None of a dry run.
        models: the repositories of the models, each with its pull request; None of a dry run.
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
    store: str | Path | None = None,
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

    Embeddings are rounded to 16 bits and scored again: a submitted result is that of the submitted embeddings. Answers
    are sent as they were given. Called again after it was killed or has lost an answer, it finds its own pull request
    and opens no second one.

    Args:
        paths: folders of results, or their JSON files.
        org: organisation or user that the leaderboard belongs to.
        hub: by default as the user of the saved token.
        data: the data of the results, where they are no preset.
        store: folder of the stored embeddings and answers; by default that in the cache.
        with_outputs: without them, or without answers, a result cannot be verified, and stays self-reported.
        paradigm: how the model was trained, where the result does not say.
        licence: of its weights, likewise.
        model_card: also open pull requests on the models' own repositories.
        device: torch device of fits.
        pull_request: False commits to the branch main, for those who may: the leaderboard shows the results at once,
            as reported, and its checker verifies them there.
        dry_run: send nothing.
        progress: show bars.

    Raises:
        ResultError: a result cannot be submitted, or is on the leaderboard already.
        DatasetError: its data cannot be opened.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    repository = results_of(org)
    loaded = load_results(paths)
    if len(loaded) > MAX_ENTRIES:
        raise ResultError(f"{len(loaded)} results, and a pull request takes {MAX_ENTRIES}: submit them in parts")
    results = [one.result for one in loaded]
    # Asked before the fits, which take minutes.
    models, revision = _models(hub, org, results) if model_card else ({}, "")
    present = hub.files_if_any(repository)
    if present is None and not dry_run:
        raise HubError(
            f"there is no {repository}: check --org; `audio-compositionality push leaderboard` makes one", 404
        )
    title = _title([one.path for one in loaded], results, (with_outputs, paradigm, licence))
    opened = hub.own_request(repository, title) if pull_request and not dry_run else None
    if opened is not None:
        url = f"{repository.url}/discussions/{opened.number}"
        return Submitted(repository, (), None, url, _on_models(hub, org, models, revision))
    opened_data: dict[tuple[str, str], Data] = {}
    submissions = []
    for one in loaded:
        key = (one.result.recipe, one.result.fingerprint)
        if key not in opened_data:
            opened_data[key] = data_with(*key, data)
        submissions.append(
            make_submission(
                one.path,
                opened_data[key],
                store=None if store is None else Path(store),
                with_outputs=with_outputs,
                paradigm=paradigm,
                licence=licence,
                device=device,
                progress=progress,
            )
        )
    _check_new(present or {}, submissions, pull_request)
    if dry_run:
        return Submitted(repository, tuple(submissions), None, None, dict.fromkeys(models), dry_run=True)
    files = {f"{made.folder}/{name}": content for made in submissions for name, content in made.files.items()}
    commit = hub.commit(repository, files, title, description=_description(submissions), pull_request=pull_request)
    return Submitted(repository, tuple(submissions), commit, commit.url, _on_models(hub, org, models, revision))


def _models(hub: Hub, org: str, results: Sequence[Result]) -> tuple[dict[Repository, list[Result]], str]:
    """The results by the repository of their model, all of which exist, and the commit of the data set."""
    models: dict[Repository, list[Result]] = {}
    for result in results:
        models.setdefault(model_of(result), []).append(result)
    revision = check_data(hub, org, results)
    for model in models:
        hub.head(model)
    return models, revision


def _title(paths: Sequence[Path], results: Sequence[Result], options: tuple[object, ...]) -> str:
    """The title of the pull request. The same results with the same options have the same, by which it is found."""
    digests = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    digest = hashlib.sha256(repr((digests, options)).encode()).hexdigest()
    ids = sorted({result.model.id for result in results})
    names = ids[0] if len(ids) == 1 else f"{len(ids)} models"
    tasks = ", ".join(sorted({result.task for result in results}))
    return f"Results of {names[:100]}: {tasks} ({digest[:12]})"


def _description(submissions: Sequence[Submission]) -> str:
    lines = [f"- `{made.folder}`: {made.result.score:.6f}" for made in submissions]
    return "\n".join(["Submitted by `audio-compositionality`.", "", *lines])


def _check_new(present: Mapping[str, RemoteFile], submissions: Sequence[Submission], pull_request: bool) -> None:
    """Refuse a pull request with an entry that the leaderboard has; warn of embeddings or answers that it
    has of another model.

    A commit leaves out what is there. Only equal files are noticed here; the checker of the leaderboard compares what
    is in them.
    """
    stored = [file for path, file in present.items() if path.rpartition("/")[2] in OUTPUTS]
    for made in submissions:
        if pull_request and f"{made.folder}/{RESULT}" in present:
            raise ResultError(f"the leaderboard has this result already: {made.folder}")
        given = outputs_in(made.files)
        if given is None:
            continue
        digests = {digest_of(made.files[given], kind) for kind in ("sha256", "git")}
        for file in stored:
            folder, _, _ = file.path.rpartition("/")
            if file.digest in digests and folder.split("/")[1] != made.folder.split("/")[1]:
                warnings.warn(
                    f"{made.folder} has the same {given.partition('.')[0]} as {folder}, which is another model: "
                    "maintainers decide about it",
                    stacklevel=3,
                )


def _on_models(
    hub: Hub, org: str, models: Mapping[Repository, Sequence[Result]], revision: str
) -> dict[Repository, Commit | None]:
    return {model: submit_model_results(hub, org, model, results, revision) for model, results in models.items()}
