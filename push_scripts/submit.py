"""Submit results to a leaderboard: a pull request with the results, their samples and their embeddings."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from audio_compositionality.dataset_builder import Benchmark
from audio_compositionality.evaluator.compare.comparison import load_results
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.evaluator.submissions.submission import Submission, make_submission, open_data
from audio_compositionality.evaluator.submissions.submission_files import EMBEDDINGS, MAX_ENTRIES, RESULT
from audio_compositionality.hub import Commit, Hub, HubError, RemoteFile, Repository, digest_of
from audio_compositionality.hub.names import results_of

from .model_results import check_data, model_of, submit_model_results


@dataclass(frozen=True)
class Submitted:
    """What a submission led to, or would lead to.

    Attributes:
        repository: of the results.
        submissions: what is sent, one a result; empty where the user's pull request has them already.
        commit: the pull request; None of a dry run, and where it was there already.
        url: of the pull request; None of a dry run.
        models: the repositories of the models, each with its pull request; None of a dry run.
    """

    repository: Repository
    submissions: tuple[Submission, ...]
    commit: Commit | None
    url: str | None
    models: Mapping[Repository, Commit | None]


def submit_results(
    paths: Sequence[str | Path],
    org: str,
    *,
    hub: Hub | None = None,
    data: str | None = None,
    embeddings: str | Path | None = None,
    with_embeddings: bool = True,
    paradigm: str | None = None,
    licence: str | None = None,
    model_card: bool = False,
    device: str | None = None,
    dry_run: bool = False,
    progress: bool = True,
) -> Submitted:
    """Open a pull request with results on ``ORG/audio-compositionality-results``.

    Embeddings are rounded to 16 bits and scored again: a submitted result is that of the submitted embeddings. Called
    again after it was killed or has lost an answer, it finds its own pull request and opens no second one.

    Args:
        paths: folders of results, or their JSON files.
        org: organisation or user that the leaderboard belongs to.
        hub: by default as the user of the saved token.
        data: the data of the results, where they are no preset.
        embeddings: folder of the stored embeddings; by default that in the cache.
        with_embeddings: without them a result cannot be verified, and stays self-reported.
        paradigm: how the encoder was trained, where the result does not say.
        licence: of its weights, likewise.
        model_card: also open pull requests on the models' own repositories.
        device: of A-TRE's fits.
        dry_run: send nothing.
        progress: show bars.

    Raises:
        ResultError: a result cannot be submitted, or is on the leaderboard already.
        DatasetError: its data cannot be opened.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    repository = results_of(org)
    entries = load_results(paths)
    if len(entries) > MAX_ENTRIES:
        raise ResultError(f"{len(entries)} results, and a pull request takes {MAX_ENTRIES}: submit them in parts")
    results = [entry.result for entry in entries]
    # Found before the fits, which take minutes.
    models: dict[Repository, list[Result]] = {}
    revision = ""
    if model_card:
        for result in results:
            models.setdefault(model_of(result), []).append(result)
        revision = check_data(hub, org, results)
        for model in models:
            hub.head(model)
    there = hub.files_if_any(repository)
    if there is None and not dry_run:
        raise HubError(
            f"there is no {repository}: check --org; `audio-compositionality push leaderboard` makes one", 404
        )
    title = _title([entry.path for entry in entries], results, (with_embeddings, paradigm, licence))
    opened = None if dry_run else hub.own_request(repository, title)
    if opened is not None:
        url = f"{repository.url}/discussions/{opened.number}"
        return Submitted(repository, (), None, url, _on_models(hub, org, models, revision))
    benchmarks: dict[str, Benchmark] = {}
    submissions = []
    for entry in entries:
        fingerprint = entry.result.fingerprint
        if fingerprint not in benchmarks:
            benchmarks[fingerprint] = open_data(fingerprint, data)
        submissions.append(
            make_submission(
                entry.path,
                benchmarks[fingerprint],
                embeddings=embeddings,
                with_embeddings=with_embeddings,
                paradigm=paradigm,
                licence=licence,
                device=device,
                progress=progress,
            )
        )
    files = {f"{made.folder}/{name}": content for made in submissions for name, content in made.files.items()}
    _check_new(there or {}, submissions)
    if dry_run:
        return Submitted(repository, tuple(submissions), None, None, dict.fromkeys(models))
    commit = hub.commit(repository, files, title, description=_description(submissions), pull_request=True)
    return Submitted(repository, tuple(submissions), commit, commit.url, _on_models(hub, org, models, revision))


def _title(paths: Sequence[Path], results: Sequence[Result], options: tuple[object, ...]) -> str:
    """The title of the pull request. The same results with the same options have the same, by which it is found."""
    digests = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    digest = hashlib.sha256(repr((digests, options)).encode()).hexdigest()
    encoders = sorted({result.encoder_id for result in results})
    names = encoders[0] if len(encoders) == 1 else f"{len(encoders)} encoders"
    tasks = ", ".join(sorted({result.task for result in results}))
    return f"Results of {names[:100]}: {tasks} ({digest[:12]})"


def _description(submissions: Sequence[Submission]) -> str:
    lines = [f"- `{made.folder}`: {made.result.score:.6f}" for made in submissions]
    return "\n".join(["Submitted by `audio-compositionality submit`.", "", *lines])


def _check_new(there: Mapping[str, RemoteFile], submissions: Sequence[Submission]) -> None:
    """Refuse an entry that the leaderboard has, and warn of embeddings that it has of another encoder."""
    known = [file for path, file in there.items() if path.endswith(f"/{EMBEDDINGS}")]
    for made in submissions:
        if f"{made.folder}/{RESULT}" in there:
            raise ResultError(f"the leaderboard has this result already: {made.folder}")
        encoder = made.folder.split("/")[1]
        own = {digest_of(made.files[EMBEDDINGS], kind) for kind in ("sha256", "git")} if made.embeddings else set()
        for file in known:
            folder, _, _ = file.path.rpartition("/")
            if file.digest in own and folder.split("/")[1] != encoder:
                warnings.warn(
                    f"{made.folder} has the same embeddings as {folder}, which is another encoder: maintainers decide "
                    "about it",
                    stacklevel=3,
                )


def _on_models(
    hub: Hub, org: str, models: Mapping[Repository, Sequence[Result]], revision: str
) -> dict[Repository, Commit | None]:
    return {model: submit_model_results(hub, org, model, results, revision) for model, results in models.items()}
