"""Publish the Spaces: one a metric, and the leaderboard with the repository of its results."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template

from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Changes, Commit, Content
from audio_compositionality.hub.errors import Repository
from audio_compositionality.hub.names import dataset_of, leaderboard_of, metric_of, results_of
from audio_compositionality.metrics import list_metrics, metric_file
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.text import shown
from audio_compositionality.tasks.base import TaskInfo
from audio_compositionality.tasks.registry import list_tasks

from .wheel import DISTRIBUTION, requirement

APP = "app.py"
"""The page of a Space; all metrics have the same."""

REQUIREMENTS = "requirements.txt"

TORCH = "--extra-index-url https://download.pytorch.org/whl/cpu"
"""A Space has no GPU: PyTorch without CUDA is a tenth as large."""

EXTRA = "leaderboard"
"""Of the package's optional dependencies: what the leaderboard runs with."""

_PUSHED = "audio_compositionality"
"""Begins the names of files that only a push writes, so that one that is no longer needed may be deleted."""


@dataclass(frozen=True)
class SpacePush:
    """What a push of a repository does, or would do.

    Attributes:
        repository: that is brought to the content.
        changes: what is sent, and what is there already.
        commit: what it led to; None of a dry run.
    """

    repository: Repository
    changes: Changes
    commit: Commit | None


def push_metrics(
    org: str,
    *,
    folders: Sequence[str | Path] = (),
    hub: Hub | None = None,
    private: bool = False,
    pull_request: bool = False,
    dry_run: bool = False,
) -> list[SpacePush]:
    """Bring the Space ``ORG/NAME`` of each metric to the content of its folder.

    Args:
        org: organisation or user.
        folders: of metrics of others, each ``NAME`` with ``NAME.py`` in it; by default those of this package.
        hub: by default as the user of the saved token.
        private: make new repositories private.
        pull_request: open pull requests instead of committing to the branch main.
        dry_run: change nothing.

    Raises:
        InputError: a folder is none of a metric.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    metrics = [Path(folder).resolve() for folder in folders] or [metric_file(name).parent for name in list_metrics()]
    spaces = {metric_of(org, folder.name): metric_files(folder) for folder in metrics}
    return [
        _push(hub, repository, content, private=private, pull_request=pull_request, dry_run=dry_run)
        for repository, content in spaces.items()
    ]


def push_leaderboard(
    org: str, *, hub: Hub | None = None, private: bool = False, pull_request: bool = False, dry_run: bool = False
) -> list[SpacePush]:
    """Bring the leaderboard's Space to this version, and make the repository of results where there is none.

    Of the repository of results only its card is ever changed. Arguments as in `push_metrics`.

    Raises:
        InputError: the wheel that the Space runs cannot be built.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    contents: Mapping[Repository, Mapping[str, Content]] = {
        results_of(org): {"README.md": results_card(org).encode()},
        leaderboard_of(org): leaderboard_files(org),
    }
    return [
        _push(hub, repository, content, private=private, pull_request=pull_request, dry_run=dry_run)
        for repository, content in contents.items()
    ]


def metric_files(folder: Path) -> dict[str, bytes]:
    """The files of a metric's Space: those of its folder, and the page that all metrics share.

    Raises:
        InputError: the folder lacks one.
    """
    page = files("audio_compositionality.metrics").joinpath(APP).read_bytes()
    items = list(folder.iterdir()) if folder.is_dir() else []
    content = {
        item.name: item.read_bytes()
        for item in sorted(items, key=lambda item: item.name)
        if item.is_file() and item.name not in ("__init__.py", "py.typed") and not item.name.startswith(".")
    }
    lacking = [name for name in (f"{folder.name}.py", "README.md", REQUIREMENTS) if name not in content]
    if lacking:
        raise InputError(f"{folder} is no folder of a metric: it has no {shown(lacking)}")
    return {APP: page, **content}


def leaderboard_files(org: str) -> dict[str, bytes]:
    """The files of the leaderboard's Space: its page, and what installs the package that it runs.

    Raises:
        InputError: the wheel of the package cannot be built.
    """
    folder = files("audio_compositionality.leaderboard")
    line, wheels = requirement(leaderboard_of(org), EXTRA)
    return {
        "README.md": folder.joinpath("README.md").read_bytes(),
        APP: folder.joinpath(APP).read_bytes(),
        REQUIREMENTS: f"{TORCH}\n{line}\n".encode(),
        **wheels,
    }


def results_card(org: str) -> str:
    """The card of the repository of results."""
    template = Template(files(__package__).joinpath("results_card.md").read_text("utf-8"))
    dataset, space = dataset_of(org), leaderboard_of(org)
    return template.substitute(
        org=org,
        dataset=dataset.id,
        dataset_url=dataset.url,
        space=space.id,
        space_url=space.url,
        tasks=task_lines([task.info for task in list_tasks()]),
    )


def task_lines(tasks: Sequence[TaskInfo]) -> str:
    """A list in Markdown: what each task asks, and whether it is scored only where it is named."""
    return "\n".join(
        f"- **{task.title}** (`{task.name}`{', on request' if task.on_request else ''}): {task.question}"
        for task in tasks
    )


def _push(
    hub: Hub,
    repository: Repository,
    content: Mapping[str, Content],
    *,
    private: bool,
    pull_request: bool,
    dry_run: bool,
) -> SpacePush:
    if not dry_run:
        hub.create(repository, private=private)
    # Files that a newer version no longer has; nothing else in the repository is touched.
    present = hub.files_if_any(repository) or {}
    stale = [path for path in present if path.startswith(_PUSHED) and path not in content]
    if dry_run:
        return SpacePush(repository, hub.changes(repository, content, delete=stale), None)
    message = f"{DISTRIBUTION} {importlib.metadata.version(DISTRIBUTION)}"
    commit = hub.commit(repository, content, message, delete=stale, pull_request=pull_request)
    return SpacePush(repository, commit.changes, commit)
