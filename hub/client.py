"""A client of the Hub whose calls are bounded, repeatable, and fail with clear errors."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationDelete,
    DiscussionComment,
    DryRunFileInfo,
    HfApi,
    constants,
    get_token,
)
from huggingface_hub.hf_api import RepoFile

from audio_compositionality.support.loopback import reach_loopback_hub
from audio_compositionality.support.retries import WAITS

from .calls import call, pause_or_raise, quiet_client
from .content import Changes, Comment, Commit, Content, PullRequest, Push, RemoteFile, size_of
from .errors import Action, HubError, ReplyError, Repository, is_repository_absent, status_of

MAX_CONFLICTS = 10
"""Most attempts at a commit when other commits come first."""

_Answer = TypeVar("_Answer")


class Hub:
    """The Hub at `HF_ENDPOINT`, used with a token. Every method raises `HubError`."""

    def __init__(self) -> None:
        """Make no call yet. The token is HF_TOKEN, or the one saved by `hf auth login`."""
        reach_loopback_hub()
        self._api = HfApi(endpoint=constants.ENDPOINT)

    def user(self) -> str:
        """Return the name of the user whose token is in use."""
        # Cached by the client: the Hub limits the rate of this call.
        return str(self._whoami(cache=True)["name"])

    def account(self) -> dict[str, Any] | None:
        """Return the answer of `whoami` about user, organisations and token; None if no token is set."""
        return None if get_token() is None else self._whoami(cache=False)

    def _whoami(self, *, cache: bool) -> dict[str, Any]:
        def facts() -> dict[str, Any]:
            answer: Any = self._api.whoami(cache=cache)
            if not isinstance(answer, dict) or "name" not in answer:
                raise ReplyError(f"no object with 'name', but {answer!r}")
            _text(answer["name"], "name")
            return answer

        return self._call(Action("look up the user of the token", reply="the name of a user"), facts)

    def has_organization(self, name: str) -> bool:
        """Return whether an organisation of this name exists."""
        action = Action(f"look up the organisation {name}", reply="an organisation")

        def there() -> bool:
            if not _text(self._api.get_organization_overview(name).name, "name"):
                raise ReplyError("an organisation without a name")
            return True

        try:
            return self._call(action, there)
        except HubError as error:
            if error.status == 404:
                return False
            raise

    def create(self, repository: Repository, *, private: bool = False, sdk: str = "gradio") -> None:
        """Create a repository unless it exists.

        Args:
            repository: the repository.
            private: whether a new repository is private; the visibility of an existing one is not changed.
            sdk: SDK of a new Space.
        """
        if self.exists(repository):
            return
        self._call(
            Action(f"create the {repository}", "write", repository, "the address of the new repository"),
            lambda: self._api.create_repo(
                repository.id,
                repo_type=repository.kind,
                private=private,
                exist_ok=True,
                space_sdk=sdk if repository.kind == "space" else None,
            ),
        )

    def exists(self, repository: Repository) -> bool:
        """Return whether the repository exists, as far as the token can see."""
        return self._head(repository, "main") is not None

    def head(self, repository: Repository, revision: str = "main") -> str:
        """Return the commit of a branch, tag or pull request (``refs/pr/1``)."""
        action = Action(f"read the {repository} at {revision}", repository=repository, reply="a commit")
        return self._call(action, lambda: _oid(self._info(repository, revision).sha))

    def is_private(self, repository: Repository) -> bool | None:
        """Return whether the repository is private; None if the token sees no such repository."""
        action = Action(f"look up the {repository}", repository=repository, reply="a repository")

        def private() -> bool:
            value = self._info(repository, "main").private
            if not isinstance(value, bool):
                raise ReplyError(f"its privacy is {value!r}")
            return value

        return self._if_there(lambda: self._call(action, private))

    def secret_names(self, space: Repository) -> set[str]:
        """Return the names of a Space's secrets; nobody can read back their values."""
        action = Action(f"list the secrets of the {space}", "write", space, "a list of secrets")
        return self._call(action, lambda: set(self._api.get_space_secrets(space.id)))

    def files(self, repository: Repository, revision: str = "main") -> dict[str, RemoteFile]:
        """Return all files at a revision, by path."""

        def files() -> dict[str, RemoteFile]:
            tree = self._api.list_repo_tree(repository.id, recursive=True, revision=revision, repo_type=repository.kind)
            present = {}
            for item in tree:
                if isinstance(item, RepoFile):
                    path, kind = _text(item.path, "path of a file"), "sha256" if item.lfs else "git"
                    if isinstance(item.size, bool) or not isinstance(item.size, int):
                        raise ReplyError(f"the size of a file is {item.size!r}")
                    digest = _text(item.lfs.sha256 if item.lfs else item.blob_id, "hash of a file")
                    present[path] = RemoteFile(path, item.size, f"{kind}:{digest}")
            if not present and self._info(repository, revision).siblings:
                # An empty object would otherwise be read as an empty list.
                raise ReplyError("an empty list of files, although there are some")
            return present

        action = Action(f"list the files of the {repository}", repository=repository, reply="a list of files")
        return self._call(action, files)

    def files_if_any(self, repository: Repository) -> dict[str, RemoteFile] | None:
        """Return all files of the branch main; None if the token sees no such repository."""
        head = self._head(repository, "main")
        return None if head is None else self.files(repository, head)

    def commits(self, repository: Repository, revision: str = "main") -> list[str]:
        """Return the commits of a revision, newest first."""

        def listed() -> list[str]:
            commits = self._api.list_repo_commits(repository.id, repo_type=repository.kind, revision=revision)
            if not commits:
                raise ReplyError("an empty list of commits, although there is always one")
            return [_oid(commit.commit_id) for commit in commits]

        action = Action(f"list the commits of the {repository}", repository=repository, reply="a list of commits")
        return self._call(action, listed)

    def download(self, repository: Repository, path: str, revision: str = "main", *, limit: int) -> Path:
        """Return the path of a file in the clients' cache, downloading it if needed.

        Args:
            repository: the repository.
            path: path of the file in the repository.
            revision: commit, branch, tag or pull request.
            limit: most bytes; a larger file is refused before it is downloaded.
        """
        action = Action(f"fetch {path!r} of the {repository}", repository=repository, reply="a file")
        if ".." in path.split("/"):
            raise HubError(f"could not {action.what}: a path must not leave the repository")
        fetch = partial(self._api.hf_hub_download, repository.id, path, repo_type=repository.kind)

        def fetched() -> Path:
            facts = fetch(revision=revision, dry_run=True)
            assert isinstance(facts, DryRunFileInfo)
            if facts.file_size is None or facts.file_size > limit:
                size = "an unknown size" if facts.file_size is None else f"{facts.file_size:,} bytes"
                raise HubError(f"could not {action.what}: it has {size}; the limit is {limit:,} bytes")
            # The branch may have moved since: download the commit whose size was checked.
            return Path(str(fetch(revision=facts.commit_hash)))

        return self._call(action, fetched)

    def changes(
        self,
        repository: Repository,
        files: Mapping[str, Content],
        *,
        delete: Iterable[str] = (),
        revision: str = "main",
    ) -> Changes:
        """Return the changes that a commit of these files would make; all files if the repository does not exist."""
        head = self._head(repository, revision)
        present = {} if head is None else self.files(repository, head)
        send, same = {}, []
        for path, content in files.items():
            if path in present and present[path].matches(content):
                same.append(path)
            else:
                send[path] = size_of(content)
        return Changes(send, tuple(same), tuple(path for path in delete if path in present))

    def commit(
        self,
        repository: Repository,
        files: Mapping[str, Content],
        message: str,
        *,
        description: str = "",
        delete: Iterable[str] = (),
        revision: str = "main",
        pull_request: bool = False,
    ) -> Commit:
        """Make a revision contain these files, in one commit of the differences; no commit if there are none.

        Large files are uploaded folder by folder before the commit; files that were uploaded before are not sent again.
        If an answer is lost or another commit comes first, the state is read again before the next attempt, so that no
        commit is made twice and files of other commits are not touched.

        Args:
            repository: the repository, which must exist.
            files: their content by path.
            message: one line; also the title of the pull request.
            description: text below the message.
            delete: paths that must not exist.
            revision: branch to commit to.
            pull_request: open a pull request instead, or update the user's open one with this title.
        """
        what = f"open a pull request on the {repository}" if pull_request else f"commit to the {repository}"
        action = Action(what, "discuss" if pull_request else "write", repository, "the new commit")
        gone = tuple(delete)
        tries = conflicts = 0
        first: Changes | None = None
        while True:
            request = self.own_request(repository, message) if pull_request else None
            target = request.revision if request else revision
            head = self.head(repository, target)
            changes = self.changes(repository, files, delete=gone, revision=head)
            first = first or changes
            if not changes:
                return _made(repository, head, first, request)
            create = pull_request and request is None
            folders: dict[str, list[CommitOperationAdd]] = {}
            for path, content in files.items():
                if path in changes.send:
                    addition = CommitOperationAdd(path, content if isinstance(content, bytes) else str(content))
                    folders.setdefault(path.rpartition("/")[0], []).append(addition)
            common: dict[str, Any] = {"repo_type": repository.kind, "revision": target, "create_pr": create}
            for group in folders.values():
                upload = partial(self._api.preupload_lfs_files, repository.id, group, free_memory=False, **common)
                self._call(action, upload)
            operations: list[Any] = [
                *chain.from_iterable(folders.values()),
                *map(CommitOperationDelete, changes.delete),
            ]
            # A commit may be repeated only after a look at the result of the previous attempt.
            try:
                with quiet_client():
                    info = self._api.create_commit(
                        repository.id,
                        operations,
                        commit_message=message,
                        commit_description=description,
                        parent_commit=None if create else head,
                        **common,
                    )
                    oid = _oid(info.oid)
                    number = _number(info.pr_num) if create and info.pr_num is not None else None
            except Exception as error:
                if status_of(error) == 412 and conflicts < MAX_CONFLICTS:
                    # Retry at once, then wait: a repository with many pushes needs time.
                    time.sleep(WAITS[min(conflicts, len(WAITS)) - 1] if conflicts else 0.0)
                    conflicts += 1
                else:
                    pause_or_raise(error, action, tries, self._api)
                    tries += 1
                continue
            if create and number is None:
                # Another commit gave main the same content meanwhile; the next round detects it.
                continue
            if number is not None:
                request = PullRequest(number, message, self.user())
            return _made(repository, oid, first, request)

    def push(
        self,
        repository: Repository,
        files: Mapping[str, Content],
        message: str,
        *,
        description: str = "",
        stale: re.Pattern[str] | None = None,
        private: bool = False,
        sdk: str = "gradio",
        pull_request: bool = False,
        dry_run: bool = False,
    ) -> Push:
        """Make the branch main contain these files, or open a pull request that does; see `commit`.

        Args:
            repository: created if it does not exist, see `create`.
            files: their content by path.
            message: one line.
            description: text below the message.
            stale: paths that match are deleted unless they are among the files; other paths are not touched.
            private: see `create`.
            sdk: see `create`.
            pull_request: see `commit`.
            dry_run: change nothing.
        """
        if not dry_run:
            self.create(repository, private=private, sdk=sdk)
        present = self.files_if_any(repository) or {} if stale else {}
        delete = [path for path in present if stale and stale.fullmatch(path) and path not in files]
        if dry_run:
            return Push(repository, self.changes(repository, files, delete=delete), None)
        commit = self.commit(
            repository, files, message, description=description, delete=delete, pull_request=pull_request
        )
        return Push(repository, commit.changes, commit)

    def pull_requests(self, repository: Repository, *, author: str | None = None) -> list[PullRequest]:
        """Return the open pull requests, oldest first."""
        what = f"list the pull requests of the {repository}"
        action = Action(what, repository=repository, reply="a list of pull requests")

        def listed() -> list[PullRequest]:
            discussions = self._api.get_repo_discussions(
                repository.id,
                author=author,
                discussion_type="pull_request",
                discussion_status="open",
                repo_type=repository.kind,
            )
            return [
                PullRequest(_number(item.num), _text(item.title, "title"), _text(item.author, "author"))
                for item in discussions
            ]

        return sorted(self._call(action, listed), key=lambda request: request.number)

    def own_request(self, repository: Repository, title: str) -> PullRequest | None:
        """Return the user's newest open pull request with this title."""
        requests = self.pull_requests(repository, author=self.user())
        return next((request for request in reversed(requests) if request.title == title), None)

    def comments(self, repository: Repository, number: int) -> list[Comment]:
        """Return the comments on a pull request, oldest first; its description is the first."""
        return self._details(repository, number)[1]

    def status(self, repository: Repository, number: int) -> str:
        """Return the status of a pull request: ``open``, ``closed``, ``merged`` or ``draft``."""
        return self._details(repository, number)[0]

    def comment(self, repository: Repository, number: int, text: str) -> None:
        """Comment on a pull request, unless this user has already posted the same comment there."""
        user = self.user()
        what = f"comment on pull request {number} of the {repository}"
        action = Action(what, "discuss", repository, "the comment")

        def say() -> None:
            said = {(comment.author, comment.text.strip()) for comment in self.comments(repository, number)}
            if (user, text.strip()) not in said:
                self._api.comment_discussion(repository.id, number, text, repo_type=repository.kind)

        self._call(action, say)

    def close(self, repository: Repository, number: int) -> None:
        """Close a pull request if it is open."""
        action = Action(f"close pull request {number} of the {repository}", "write", repository, "its new status")

        def shut() -> None:
            if self.status(repository, number) in ("open", "draft"):
                self._api.change_discussion_status(repository.id, number, "closed", repo_type=repository.kind)

        self._call(action, shut)

    def _call(self, action: Action, function: Callable[[], _Answer]) -> _Answer:
        return call(action, function, self._api)

    def _details(self, repository: Repository, number: int) -> tuple[str, list[Comment]]:
        """Return status and comments of a pull request."""

        def read() -> tuple[str, list[Comment]]:
            details = self._api.get_discussion_details(repository.id, number, repo_type=repository.kind)
            comments = [event for event in details.events if isinstance(event, DiscussionComment)]
            said = [Comment(_text(one.author, "author"), _text(one.content, "comment")) for one in comments]
            return _text(details.status, "status"), said

        what = f"read pull request {number} of the {repository}"
        return self._call(Action(what, repository=repository, reply="a pull request and its comments"), read)

    def _info(self, repository: Repository, revision: str) -> Any:
        return self._api.repo_info(repository.id, repo_type=repository.kind, revision=revision)

    def _head(self, repository: Repository, revision: str) -> str | None:
        """Return the commit of a revision; None if the token sees no such repository."""
        return self._if_there(lambda: self.head(repository, revision))

    def _if_there(self, asked: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer about a repository; None if the token sees no such repository."""
        try:
            return asked()
        except HubError as error:
            if error.status == 404 or is_repository_absent(error):
                return None
            raise


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ReplyError(f"the {name} is {value!r}, which is not a text")
    return value


def _number(value: Any) -> int:
    """Return the number of a pull request, which one of the client's calls gives as text, cut out of an address."""
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch("[0-9]{1,18}", str(value)):
        raise ReplyError(f"the number of the pull request is {value!r}")
    return int(value)


def _oid(value: Any) -> str:
    """Return the hash of a commit, checked."""
    if not isinstance(value, str) or not re.fullmatch("[0-9a-f]{40}|[0-9a-f]{64}", value):
        raise ReplyError(f"the commit is {value!r}, which is not a hash of one")
    return value


def _made(repository: Repository, oid: str, changes: Changes, request: PullRequest | None) -> Commit:
    if request is None:
        return Commit(oid, f"{repository.url}/commit/{oid}", changes, None)
    return Commit(oid, f"{repository.url}/discussions/{request.number}", changes, request.number)
