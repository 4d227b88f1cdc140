"""Names of the project's repositories, given an organisation or user."""

from __future__ import annotations

import re

from .errors import HubError, Repository


def dataset_of(org: str) -> Repository:
    """Return the data set that `load_dataset("ORG/audio-compositionality", RECIPE)` reads."""
    return Repository("dataset", f"{check_org(org)}/audio-compositionality")


def metric_of(org: str, name: str) -> Repository:
    """Return the Space that `evaluate.load("ORG/METRIC")` reads."""
    return Repository("space", f"{check_org(org)}/{name}")


def leaderboard_of(org: str) -> Repository:
    """Return the leaderboard's Space."""
    return Repository("space", f"{check_org(org)}/audio-compositionality-leaderboard")


def results_of(org: str) -> Repository:
    """Return the data set repository to which results are submitted."""
    return Repository("dataset", f"{check_org(org)}/audio-compositionality-results")


def check_org(org: str) -> str:
    """Return the name of an organisation or user, checked.

    Raises:
        HubError: the name is not valid.
    """
    # The rule by which the Hub's clients check a repository's id; the name is its first part, at most 42 characters.
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,40}[A-Za-z0-9])?", org) or "--" in org or ".." in org:
        raise HubError(
            f"--org is {org!r}; give the name of an organisation or user on the Hub without a slash, e.g. my-lab"
        )
    return org
