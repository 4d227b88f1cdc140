"""Errors of calls to the Hub: what failed, why, and what to do."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any, Literal

import httpx2
from huggingface_hub import constants, get_token
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalTokenNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    StrictDataclassError,
)

from audio_compositionality.support.errors import AudioCompositionalityError, causes_of
from audio_compositionality.support.retries import requested_wait

Kind = Literal["dataset", "space", "model"]

Right = Literal["read", "write", "discuss"]
"""The permission that a call needs: read; change or create a repository; open a pull request or comment on one."""

TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
"""HTTP statuses after which the same call may succeed: time-outs, rate limits, server errors (RFC 9110, RFC 6585)."""

_PERMISSIONS = {"read": "repo.content.read", "write": "repo.write", "discuss": "discussion.write"}
"""The permission that a fine-grained token needs, as `whoami` lists it."""

_MEMBER_RIGHTS = ("write", "admin")
"""Roles in an organisation that may change its repositories; ``contributor`` may change only its own."""


class HubError(AudioCompositionalityError):
    """A call to the Hub that failed for good; the message states the aim, the reason and the remedy.

    Attributes:
        status: HTTP status of the answer; None if there was no answer.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class UnreachableError(HubError):
    """A call to the Hub without an answer: the network or the Hub is down, or the clients are offline by a setting."""


class ReplyError(Exception):
    """An answer with a success status whose content is not a valid reply; the message states the content."""


@dataclass(frozen=True)
class Repository:
    """A repository on the Hub.

    Attributes:
        kind: ``dataset``, ``space`` or ``model``.
        id: ``NAMESPACE/NAME``.
    """

    kind: Kind
    id: str

    @property
    def namespace(self) -> str:
        """Return the user or organisation that owns the repository."""
        return self.id.split("/")[0]

    @property
    def url(self) -> str:
        """Return the address of its page."""
        prefix = "" if self.kind == "model" else f"{self.kind}s/"
        return f"{constants.ENDPOINT}/{prefix}{self.id}"

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class Action:
    """The purpose of a call.

    Attributes:
        what: completes "could not …".
        right: the permission that it needs.
        repository: its repository; None for a call about the user.
        reply: what the call asks for, in words.
    """

    what: str
    right: Right = "read"
    repository: Repository | None = None
    reply: str = "this"


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status in a client's error, or in an error that it wraps, as uploads and downloads do."""
    answer = _answer(error)
    return None if answer is None else int(answer.status_code)


def is_transient(error: BaseException) -> bool:
    """Return whether the same call may succeed later: the connection failed, or the Hub's answer says so."""
    status = status_of(error)
    if status is not None:
        return status in TRANSIENT
    if _has(error, OfflineModeIsEnabled):
        return False
    # An answer that is not JSON comes from a failing gateway: huggingface_hub parses it before it checks the status.
    return isinstance(error, JSONDecodeError) or any(
        isinstance(cause, (httpx2.TransportError, ConnectionError, TimeoutError)) for cause in causes_of(error)
    )


def is_repository_absent(error: BaseException) -> bool:
    """Return whether the Hub reports a missing repository, as far as the token can see.

    Without a token, the Hub answers 401 for both a missing and a private repository.
    """
    if _has(error, GatedRepoError) or not _has(error, RepositoryNotFoundError):
        return False
    answer = _answer(error)
    is_named = answer is not None and answer.headers.get("X-Error-Code") == "RepoNotFound"
    return status_of(error) != 401 or get_token() is None or is_named


def is_of_client(error: BaseException) -> bool:
    """Return whether an error comes from a client: an error status, a broken connection or invalid arguments."""
    kinds = (
        HfHubHTTPError,
        HFValidationError,
        LocalTokenNotFoundError,
        httpx2.HTTPError,
        ConnectionError,
        TimeoutError,
    )
    return isinstance(error, JSONDecodeError) or _has(error, *kinds)


def is_misread(error: BaseException) -> bool:
    """Return whether the client failed on the Hub's reply: status 200, but other JSON than it expects.

    The client then raises Python's own error for a missing key or a wrong type. Only the traceback shows that the
    mistake is not ours.
    """
    if isinstance(error, ReplyError):
        return True
    kinds = (LookupError, TypeError, AttributeError, ValueError, StrictDataclassError)
    # An OSError without a number comes from the client: missing headers, or more bytes than announced.
    is_kind = _has(error, *kinds) or (isinstance(error, OSError) and error.errno is None)
    frames = traceback.walk_tb(error.__traceback__)
    modules = {frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in frames}
    return is_kind and "huggingface_hub" in modules


def misread(error: BaseException, action: Action) -> HubError:
    """Return the error for an invalid reply."""
    stumbled = "" if isinstance(error, ReplyError) else f"{type(error).__name__}: "
    reason = f"{constants.ENDPOINT} answered a request for {action.reply}, but not as the Hub does"
    advice = "check HF_ENDPOINT, and whether a proxy answers instead of the Hub"
    return HubError(f"could not {action.what}: {reason} ({stumbled}{_first_line(error)}); {advice}")


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that the Hub asks to wait; see `requested_wait`."""
    answer = _answer(error)
    return None if answer is None else requested_wait(answer.headers)


def explain(error: BaseException, action: Action, user: dict[str, Any] | None) -> HubError:
    """Return our error for a client's error, with reason and remedy.

    Args:
        error: error of a client.
        action: the purpose of the call.
        user: the answer of `whoami` for the token in use; None if unknown.
    """
    status, has_token, kind = status_of(error), get_token() is not None, HubError
    later = "run the same command later: it goes on from there"
    make_token = f"make one at {constants.ENDPOINT}/settings/tokens, then set HF_TOKEN or run `hf auth login`"
    if status in TRANSIENT or status == 412:
        reason, advice = f"the Hub answered {status} to every attempt ({said(error)})", later
        if (wait := retry_after(error)) is not None:
            advice = f"it asks to wait {wait:.0f} s; {later}"
    elif _has(error, GatedRepoError) and action.repository is not None:
        reason, advice = f"it is gated ({said(error)})", f"ask for access at {action.repository.url}"
    elif _has(error, LocalTokenNotFoundError) or (status is not None and not has_token and action.right != "read"):
        reason, advice = "no token is set", make_token
    elif is_repository_absent(error):
        seen = f"the token of {user['name']} cannot see it" if user else "it is private and no token is set"
        reason, advice = f"the {action.repository} does not exist, or {seen}", "check the name and the token"
    elif status == 401 and not has_token:
        reason, advice = "no token is set", make_token
    elif status == 401 and user is None:
        reason = f"the Hub does not accept the token ({said(error)})"
        advice = f"it is wrong, expired or revoked: {make_token}"
    elif status in (401, 403):
        reason, advice = f"the Hub refuses it ({said(error)})", missing_right(action, user)
    elif status == 404:
        reason, advice = f"it does not exist ({said(error)})", "check the name"
    elif status is not None:
        reason, advice = f"the Hub answered {status} ({said(error)})", "this status is unexpected: read its text"
    elif _has(error, OfflineModeIsEnabled):
        reason, advice, kind = "the clients of the Hub are offline", "unset HF_HUB_OFFLINE", UnreachableError
    elif _has(error, HFValidationError):
        reason, advice = f"the Hub does not allow this name ({_first_line(error)})", "check the name"
    elif isinstance(error, JSONDecodeError):
        reason, advice = "the Hub's answer is not JSON", later
    else:
        reason = f"{constants.ENDPOINT} cannot be reached or broke the connection ({_first_line(error)})"
        advice, kind = "check the network; the same command goes on from there", UnreachableError
    return kind(f"could not {action.what}: {reason}; {advice}", status)


def missing_right(action: Action, user: dict[str, Any] | None) -> str:
    """Return the permission that the token lacks for an action, and how to get it.

    Args:
        action: the refused action.
        user: the answer of `whoami`; None if unknown.
    """
    lacking = user and (token_lacks(action, user) or member_lacks(action, user))
    token = f"the token of {user.get('name', '?')}" if user else "the token"
    return lacking or f"{token} must have the right to {_verb(action)}: see {constants.ENDPOINT}/settings/tokens"


def token_of(user: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of `whoami` about the token, including its role."""
    return _dict(_dict(user.get("auth")).get("accessToken"))


def token_lacks(action: Action, user: dict[str, Any]) -> str | None:
    """Return the permission that the token lacks, whatever its user may do, and how to get it; None if it has all.

    Args:
        action: the action that needs the permission.
        user: the answer of `whoami`.
    """
    settings = f"{constants.ENDPOINT}/settings/tokens"
    token, name = token_of(user), str(user.get("name", "?"))
    space = _namespace(action)
    if token.get("role") == "read" and action.right != "read":
        return (
            f"the token of {name} may only read, and this needs the right to {_verb(action)}: make one with the role "
            f"write at {settings}"
        )
    if token.get("role") == "fineGrained":
        needed, rights = _PERMISSIONS[action.right], _dict(token.get("fineGrained"))
        granted = [rights.get("global")]
        for scope in _dicts(rights.get("scoped")):
            if str(_dict(scope.get("entity")).get("name", "")).split("/")[0] == space:
                granted.append(scope.get("permissions"))
        if not any(needed in permissions for permissions in granted if isinstance(permissions, list)):
            return (
                f"the fine-grained token of {name} lacks the permission {needed} for {space}: add it at {settings}, "
                "or use a token with the role write"
            )
    return None


def member_lacks(action: Action, user: dict[str, Any]) -> str | None:
    """Return the role in the organisation that the user lacks, and how to get it; None if none is needed.

    Args:
        action: the action that needs the role.
        user: the answer of `whoami`.
    """
    name, space = str(user.get("name", "?")), _namespace(action)
    if action.right != "write" or space == name:
        return None
    roles = organizations_of(user)
    writable = ", ".join([name, *(org for org, role in roles.items() if role in _MEMBER_RIGHTS)])
    if space not in roles:
        return f"{name} is not a member of {space}: ask to become one, or give --org one of {writable}"
    if roles[space] not in _MEMBER_RIGHTS:
        return f"{name} is {roles[space]} in {space} and needs the role write there; --org can be {writable}"
    return None


def organizations_of(user: dict[str, Any]) -> dict[str, Any]:
    """Return the user's role in each of their organisations, from the answer of `whoami`."""
    return {str(org.get("name")): org.get("roleInOrg") for org in _dicts(user.get("orgs"))}


def _namespace(action: Action) -> str:
    return action.repository.namespace if action.repository else ""


def _verb(action: Action) -> str:
    verbs = {"read": "read", "write": f"write to {_namespace(action)}", "discuss": "open pull requests and comment"}
    return verbs[action.right]


def _dict(value: Any) -> dict[str, Any]:
    """Return a server's value if it is an object, else an empty one: explaining an error must not raise another."""
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _has(error: BaseException, *kinds: type[BaseException]) -> bool:
    return any(isinstance(cause, kinds) for cause in causes_of(error))


def _answer(error: BaseException) -> httpx2.Response | None:
    """Return the Hub's answer behind an error."""
    answers = (cause.response for cause in causes_of(error) if isinstance(cause, HfHubHTTPError))
    return next((answer for answer in answers if answer is not None), None)


def said(error: BaseException) -> str:
    """Return the Hub's own message on one line, or the client's message if the Hub gave none."""
    answer = next((cause for cause in causes_of(error) if isinstance(cause, HfHubHTTPError)), error)
    text = getattr(answer, "server_message", None) or str(answer)
    return _cut(text)


def _first_line(error: BaseException) -> str:
    *_, root = causes_of(error)
    return _cut(str(root) or type(root).__name__)


def _cut(text: str, length: int = 200) -> str:
    """Return one printable line: a server's text may contain control characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= length else f"{line[: length - 1]}…"
