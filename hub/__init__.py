"""Every call to the Hub: bounded retries, lost answers recognised, errors that say what to do."""

from .calls import call
from .client import Changes, Comment, Commit, Content, Hub, PullRequest, RemoteFile, digest_of
from .errors import Action, HubError, Kind, Repository, Right

__all__ = [
    "Action",
    "Changes",
    "Comment",
    "Commit",
    "Content",
    "Hub",
    "HubError",
    "Kind",
    "PullRequest",
    "RemoteFile",
    "Repository",
    "Right",
    "call",
    "digest_of",
]
