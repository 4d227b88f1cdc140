"""Results on the page of a model: `.eval_results/*.yaml` in the model's own repository, by pull request.

The format is that of https://huggingface.co/docs/hub/eval-results: entries, one value for each data set and task.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from audio_compositionality.dataset_builder.manifest import MANIFEST_NAME, Manifest
from audio_compositionality.encoders.loading.names import hub_id_of
from audio_compositionality.evaluator.results.result import Result, ResultError
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Commit
from audio_compositionality.hub.errors import Repository
from audio_compositionality.hub.names import dataset_of, leaderboard_of
from audio_compositionality.support.text import number_text
from audio_compositionality.tasks.registry import load_task

from .dataset import MANIFEST_LIMIT

FOLDER = ".eval_results"

_LIMIT = 1_000_000
"""Bytes of a file of results, at most; an entry has about 400."""

_EXPLANATION = "What the scores mean, the controls beside them, and whether they were recomputed: {space}"


def model_of(result: Result) -> Repository:
    """The Hub repository of the model that a result is of.

    Raises:
        ResultError: it has none: a baseline, an untrained network, a class of one's own, weights from elsewhere.
    """
    id = hub_id_of(result.model.id)
    if id is None:
        raise ResultError(
            f"{result.model.id} has no model repository on the Hub; --model-card is for models that are loaded "
            "from one, such as whisper-base or ORG/NAME"
        )
    return Repository("model", id)


def check_data(hub: Hub, org: str, results: Sequence[Result]) -> str:
    """The commit of the data set that results are to be shown on, if its data are theirs.

    Raises:
        ResultError: it has other data.
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
                f"{theirs}: the page of a model can only show results on {repository.id}"
            )
    return head


def submit_model_results(hub: Hub, org: str, model: Repository, results: Sequence[Result], revision: str) -> Commit:
    """Open a pull request on a model's repository with its results.

    Entries that the file has for other data sets or tasks stay; those of the same are replaced, since there is one
    value for each.

    Args:
        hub: as whom.
        org: below which the data set is.
        model: repository of the model.
        results: of that model, on that data set.
        revision: commit of the data set.
    """
    variants = {variant_of(result) for result in results}
    if len(variants) > 1:
        raise ResultError(f"{model.id} has results of {len(variants)} variants (layer, pooling, precision); submit one")
    variant = variants.pop()
    name = re.sub(r"[^a-z0-9]+", "_", f"audio_compositionality_{variant}".lower()).strip("_")
    path = f"{FOLDER}/{name}.yaml"
    entries = model_entries(org, results, revision)
    subjects = {(entry["dataset"]["id"], entry["dataset"]["task_id"]) for entry in entries}
    title = f"Results on {dataset_of(org).id}"
    # The user's open pull request, where there is one, is what is added to.
    request = hub.own_request(model, title)
    present = _present(hub, model, path, request.revision if request else "main")
    kept = [entry for entry in present if _subject(entry) not in subjects]
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
    """The entries of some results, as the Hub reads them."""
    space = leaderboard_of(org)
    entries = [
        EvalResultEntry(
            dataset_id=dataset_of(org).id,
            task_id=result.task,
            value=round(result.score, 6),
            dataset_revision=revision,
            date=result.date,
            source_url=space.url,
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


def _present(hub: Hub, model: Repository, path: str, revision: str) -> list[Any]:
    """The entries of the file that is there; none where it is no list."""
    if path not in hub.files(model, revision):
        return []
    try:
        values = yaml.safe_load(hub.download(model, path, revision, limit=_LIMIT).read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ResultError(f"{path} of {model.id} is no YAML that can be added to: mend it there first") from error
    return values if isinstance(values, list) else []


def _subject(entry: Any) -> tuple[Any, Any] | None:
    dataset = entry.get("dataset") if isinstance(entry, dict) else None
    return (dataset.get("id"), dataset.get("task_id")) if isinstance(dataset, dict) else None
