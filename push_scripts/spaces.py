"""Publish the Spaces: one a metric, and the leaderboard with the repository of its results."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from string import Template

from huggingface_hub import constants

from audio_compositionality.hub import Changes, Commit, Content, Hub, Repository
from audio_compositionality.hub.names import leaderboard_of, metric_of, results_of
from audio_compositionality.metrics import METRICS

SPACE_FILES = ("README.md", "app.py", "requirements.txt")
"""What every Space has: card, page, and what the page needs."""

_PACKAGES = ("dataset_builder", "encoders", "evaluator", "hub", "leaderboard", "metrics")
"""The packages of this project that the leaderboard runs."""

_SUFFIXES = (".bib", ".css", ".html", ".js", ".md", ".mplstyle", ".py", ".txt", ".yaml")


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
    org: str, *, hub: Hub | None = None, private: bool = False, pull_request: bool = False, dry_run: bool = False
) -> list[SpacePush]:
    """Bring the Space ``ORG/<metric>`` of each metric to the content of its folder below ``metrics``.

    Args:
        org: organisation or user.
        hub: by default as the user of the saved token.
        private: make new repositories private.
        pull_request: open pull requests instead of committing to the branch main.
        dry_run: change nothing.

    Raises:
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    spaces = {metric_of(org, name): metric_files(name) for name in METRICS}
    return [
        _push(hub, repository, content, private=private, pull_request=pull_request, dry_run=dry_run)
        for repository, content in spaces.items()
    ]


def push_leaderboard(
    org: str, *, hub: Hub | None = None, private: bool = False, pull_request: bool = False, dry_run: bool = False
) -> list[SpacePush]:
    """Bring the leaderboard's Space to this version, and make the repository of results where there is none.

    Of the repository of results only its card is ever changed. Arguments and errors as in `push_metrics`.
    """
    hub = hub or Hub()
    results, space = results_of(org), leaderboard_of(org)
    card = Template(files(__package__).joinpath("results_card.md").read_text("utf-8"))
    text = card.substitute(
        org=org, dataset=f"{org}/audio-compositionality", space=space.id, results=results.id, hub=constants.ENDPOINT
    )
    contents: Mapping[Repository, Mapping[str, Content]] = {
        results: {"README.md": text.encode()},
        space: leaderboard_files(),
    }
    return [
        _push(hub, repository, content, private=private, pull_request=pull_request, dry_run=dry_run)
        for repository, content in contents.items()
    ]


def metric_files(name: str) -> dict[str, bytes]:
    """The files of a metric's Space: those of its folder, which the module does not leave."""
    folder = files("audio_compositionality.metrics").joinpath(name)
    return {file: folder.joinpath(file).read_bytes() for file in (*SPACE_FILES, f"{name}.py")}


def leaderboard_files() -> dict[str, bytes]:
    """The files of the leaderboard's Space: its page, and beside it the packages of this project that it runs."""
    found = {name: files("audio_compositionality.leaderboard").joinpath(name).read_bytes() for name in SPACE_FILES}
    for package in _PACKAGES:
        root = files(f"audio_compositionality.{package}")
        found |= {f"audio_compositionality/{package}/{path}": content for path, content in _below(root).items()}
    # What reads the version of the installed package finds it here.
    version = importlib.metadata.version("audio-compositionality")
    metadata = f"Metadata-Version: 2.1\nName: audio-compositionality\nVersion: {version}\n"
    return {**found, f"audio_compositionality-{version}.dist-info/METADATA": metadata.encode()}


def _below(folder: Traversable) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.is_dir():
            found |= {f"{item.name}/{path}": content for path, content in _below(item).items()}
        elif item.name.endswith(_SUFFIXES) or item.name == "py.typed":
            found[item.name] = item.read_bytes()
    return found


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
    # Files of the project's packages that a newer version no longer has; nothing else in the repository is touched.
    present = hub.files_if_any(repository) or {}
    stale = [path for path in present if path.startswith("audio_compositionality") and path not in content]
    if dry_run:
        return SpacePush(repository, hub.changes(repository, content, delete=stale), None)
    version = importlib.metadata.version("audio-compositionality")
    commit = hub.commit(
        repository, content, f"audio-compositionality {version}", delete=stale, pull_request=pull_request
    )
    return SpacePush(repository, commit.changes, commit)
