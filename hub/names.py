"""Names of the project's repositories below an organisation or user."""

from __future__ import annotations

import re

from .errors import HubError, Repository


def dataset_of(org: str) -> Repository:
    """The data set, which `load_dataset("ORG/audio-compositionality", RECIPE)` reads."""
    return Repository("dataset", f"{check_org(org)}/audio-compositionality")


def metric_of(org: str, name: str) -> Repository:
    """The Space of a metric, which `evaluate.load("ORG/METRIC")` reads."""
    return Repository("space", f"{check_org(org)}/{name}")


def leaderboard_of(org: str) -> Repository:
    """The Space that shows the results."""
    return Repository("space", f"{check_org(org)}/audio-compositionality-leaderboard")


def results_of(org: str) -> Repository:
    """The data set repository that results are submitted to."""
    return Repository("dataset", f"{check_org(org)}/audio-compositionality-results")


def check_org(org: str) -> str:
    """The name of an organisation or user, if it is valid.

    Raises:
        HubError: it is not.
    """
    # As the Hub's clients check the id of a repository; this is its first part, and at most 42 characters.
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,40}[A-Za-z0-9])?", org) or "--" in org or ".." in org:
        raise HubError(
            f"--org is {org!r}; it is the name of an organisation or user on the Hub, such as my-lab, without a slash"
        )
    return org
