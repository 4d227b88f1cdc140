"""The first publication in its order, asked and not done: what each step would do, or what stands in its way.

docs/how-to/hub.md describes the steps.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from huggingface_hub import constants, get_token

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.evaluator.submissions.layout import RESULT, VERIFICATION, folders_of
from audio_compositionality.evaluator.submissions.record import SECRET_VARIABLE
from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Push
from audio_compositionality.hub.errors import (
    Action,
    HubError,
    Repository,
    UnreachableError,
    member_lacks,
    organizations_of,
    token_lacks,
    token_of,
)
from audio_compositionality.hub.names import dataset_of, leaderboard_of, metric_of, results_of
from audio_compositionality.metrics import list_metrics
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import counted, plain

from .baselines import missing_baselines
from .dataset import push_dataset
from .reports import size_text
from .spaces import push_leaderboard, push_metrics

State = Literal["done", "to do", "wrong"]

PRESET = "mini"
"""The preset that the baselines of the board are scored on."""

SECRETS = ("HF_TOKEN", SECRET_VARIABLE)
"""Names of the secrets that the leaderboard's Space needs."""


@dataclass(frozen=True)
class Step:
    """A step of the publication.

    Attributes:
        subject: of the step.
        state: whether it is done, would go, or would not go.
        text: what is there, what would be sent, or what is wrong.
        remedy: the command that does the step or puts it right, or a sentence; empty where it is done.
    """

    subject: str
    state: State
    text: str
    remedy: str = ""


class _OutOfReach(Hub):
    """The Hub without a network: no repository is known to be there."""

    def head(self, repository: Repository, revision: str = "main") -> str:
        raise HubError(f"the {repository} was not looked up at {revision}", 404)


def rehearse(folder: Path, org: str, *, hub: Hub | None = None) -> list[Step]:
    """The steps of a publication, in their order; nothing is sent.

    Without a network, the first step says so, and the others are as for an organisation without repositories.

    Args:
        folder: written by `build_dataset`.
        org: organisation or user.
        hub: by default as the user of the saved token.

    Raises:
        HubError: the Hub does not answer as it should, or ``org`` cannot be a name there.
    """
    data = dataset_of(org)
    hub = hub or Hub()
    action = Action(f"write to {org}", "write", data)
    metrics = [metric_of(org, name) for name in list_metrics()]
    results, space = results_of(org), leaderboard_of(org)
    account: dict[str, Any] | None = None
    private: dict[Repository, bool | None] = dict.fromkeys((data, *metrics, results, space))
    steps: list[Step] = []
    try:
        account = hub.account()
        private = {one: hub.is_private(one) for one in private}
    except UnreachableError as error:
        text = f"{error}. Nothing there was checked: the steps below are for a first publication"
        steps.append(Step("network", "to do", text, "connect to the network, and rehearse again"))
        hub = _OutOfReach()
    except HubError as error:
        if error.status != 401:
            raise
        # Every other question would be refused for the same reason.
        return [Step("token", "wrong", str(error), _LOG_IN)]
    command = f"audio-compositionality push {{}} --org {org}"
    to_board = command.format("leaderboard")
    lacks = account and token_lacks(action, account)
    source = "HF_TOKEN" if os.environ.get("HF_TOKEN") else "saved by hf auth login"
    if get_token() is None:
        text = f"no token is set; make one at {constants.ENDPOINT}/settings/tokens"
        steps.append(Step("token", "wrong", text, _LOG_IN))
    elif lacks:
        steps.append(Step("token", "wrong", plain(lacks), _LOG_IN))
    elif account is not None:
        role = token_of(account).get("role", "unknown")
        text = plain(f"of {account['name']}, role {role} ({source}); it may {action.what}")
        steps.append(Step("token", "done", text))
    else:
        steps.append(Step("token", "to do", f"one is there ({source}), not checked", _LOG_IN))
    if isinstance(hub, _OutOfReach):
        remedy = f"it has to exist: {constants.ENDPOINT}/organizations/new"
        steps.append(Step(f"organisation {org}", "to do", "not checked", remedy))
    else:
        steps.append(_organization(hub, org, account, action, private))
    place = shlex.quote(str(folder))
    try:
        push = push_dataset(folder, org, hub=hub, dry_run=True)
        step = _repository(push, private[data], command.format(f"dataset {place}"))
        prints = ", ".join(f"{name} {value[:12]}" for name, value in push.recipes.items())
        replaced = "; other data are there, and would be replaced" if push.replaced else ""
        steps.append(replace(step, text=f"{step.text}{replaced}; {folder} is whole: {prints}"))
    except DatasetError as error:
        steps.append(
            Step(str(data), "wrong", str(error), f"audio-compositionality build --preset {PRESET} --out {place}")
        )
    for one in push_metrics(org, hub=hub, dry_run=True):
        steps.append(_repository(one, private[one.repository], command.format("metrics")))
    try:
        pushes = push_leaderboard(org, hub=hub, dry_run=True)
        steps += [_repository(one, private[one.repository], to_board) for one in pushes]
    except InputError as error:
        steps.append(Step(str(space), "wrong", str(error), to_board))
    missing = missing_baselines(org, PRESET, hub=hub)
    if missing:
        sizes = missing.sizes
        text = f"to score and send: {counted(len(sizes), 'result')} on {PRESET}, {size_text(sum(sizes.values()))}"
        steps.append(Step("baselines", "to do", text, to_board))
    else:
        steps.append(Step("baselines", "done", f"on {PRESET}: all there"))
    steps.append(_secrets(hub, space, private[space] is not None))
    # Entries of the board with a record of the checker, whose signature is not checked.
    submitted, verified, _ = folders_of(hub.files_if_any(results) or {})
    entries = {key for key, of_entry in submitted.items() if RESULT in of_entry.files}
    records = {key for key, of_entry in verified.items() if VERIFICATION in of_entry.files}
    text = f"{len(entries & records)} of the {len(entries)} entries on the board"
    if entries and entries <= records:
        steps.append(Step("verified", "done", text))
    else:
        remedy = f"wait for the Space; hf spaces logs {space.id} prints what it does"
        steps.append(Step("verified", "to do", text, remedy))
    return steps


_LOG_IN = "hf auth login --token TOKEN, or set HF_TOKEN, which comes before it"


def _organization(
    hub: Hub, org: str, account: dict[str, Any] | None, action: Action, private: dict[Repository, bool | None]
) -> Step:
    """The organisation: whether it exists, the role of the user there, how many of the repositories it has."""
    there = sum(value is not None for value in private.values())
    has = f"it has {there} of the {len(private)} repositories" if there else "it has none of the repositories"
    if account is not None and account["name"] == org:
        return Step(f"user {org}", "done", f"the user's own name; {has}")
    roles = {} if account is None else organizations_of(account)
    if org not in roles and not hub.has_organization(org):
        text = f"there is no organisation {org}"
        remedy = f"make it at {constants.ENDPOINT}/organizations/new, or correct --org"
        return Step(f"organisation {org}", "wrong", text, remedy)
    lacks = None if account is None else member_lacks(action, account)
    if lacks:
        return Step(f"organisation {org}", "wrong", plain(lacks), "the members of the organisation give roles there")
    role = "" if account is None else plain(f"{account['name']} has the role {roles[org]}; ")
    return Step(f"organisation {org}", "done", f"{role}{has}")


def _repository(push: Push, private: bool | None, command: str) -> Step:
    """A repository compared with what it is to hold."""
    repository, changes = push.repository, push.changes
    send = f"{counted(len(changes.send), 'file')}, {size_text(sum(changes.send.values()))}"
    subject, same = str(repository), counted(len(changes.same), "file")
    if private:
        remedy = f"hf repos settings {repository.id} --type {repository.kind} --public"
        return Step(subject, "wrong", "it is private: nobody else sees it", remedy)
    if private is None:
        return Step(subject, "to do", f"new, {send}", command)
    if not changes:
        return Step(subject, "done", f"published, {same}")
    gone = f", {len(changes.delete)} to delete" if changes.delete else ""
    return Step(subject, "to do", f"it differs: {send} to send{gone}, {same} there already", command)


def _secrets(hub: Hub, space: Repository, exists: bool) -> Step:
    remedy = f"hf spaces secrets add {space.id} --secrets-file space.env"
    subject = "secrets of the Space"
    if not exists:
        return Step(subject, "to do", f"{' and '.join(SECRETS)}, once the Space is there", remedy)
    try:
        lacking = [name for name in SECRETS if name not in hub.secret_names(space)]
    except HubError as error:
        if error.status not in (401, 403):
            raise
        return Step(subject, "to do", f"this token may not ask for their names: {' and '.join(SECRETS)}", remedy)
    if lacking:
        return Step(subject, "to do", f"not set: {' and '.join(lacking)}", remedy)
    return Step(subject, "done", "both are set; their values nobody can read, so the next line tells whether they work")


def goes(steps: Sequence[Step]) -> bool:
    """Whether every step is done or would go."""
    return all(step.state != "wrong" for step in steps)


def rehearsal_lines(steps: Sequence[Step]) -> list[str]:
    """Lines about `rehearse`; a remedy stands below the last of the steps in a row that have it."""
    lines = []
    for step, following in zip_longest(steps, steps[1:]):
        lines.append(f"{step.state:<7}{step.subject}: {step.text}")
        if step.remedy and (following is None or following.remedy != step.remedy):
            lines.append(f"{'':<9}{step.remedy}")
    ahead = [step for state in ("wrong", "to do") for step in steps if step.state == state]
    return [*lines, "Nothing was sent.", f"Next: {ahead[0].remedy}" if ahead else "Everything is published."]
