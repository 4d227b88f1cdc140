"""Users, organisations and tokens of a loopback Hub, and what a token may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from .storage import Repository
from .wire import HubError, missing_repository

Role = Literal["read", "write", "fineGrained"]
Right = Literal["read", "write", "discuss"]

_NEEDED = {"write": "repo.write", "discuss": "discussion.write"}


@dataclass(frozen=True)
class Token:
    """A user's access token."""

    value: str
    user: str
    role: Role
    permissions: frozenset[str] = frozenset()

    def grants(self, right: Right) -> bool:
        """Whether the token lets its user do what the user may."""
        if right == "read":
            return True
        return self.role == "write" or (self.role == "fineGrained" and _NEEDED[right] in self.permissions)


@dataclass
class Accounts:
    """Who is known to the Hub."""

    tokens: dict[str, Token] = field(default_factory=dict)
    # User -> organisation -> ``read``, ``write`` or ``admin``.
    organizations: dict[str, dict[str, str]] = field(default_factory=dict)

    def token(self, user: str, role: Role = "write", permissions: Iterable[str] = ()) -> str:
        """A new token of a user, who is made known by it."""
        given = frozenset(permissions)
        value = f"hf_{user}_{role}_{len(self.tokens)}"
        self.tokens[value] = Token(value, user, role, given)
        self.organizations.setdefault(user, {})
        return value

    def join(self, user: str, organization: str, role: str = "write") -> None:
        """Make a user a member of an organisation."""
        self.organizations.setdefault(user, {})[organization] = role

    def authenticate(self, authorization: str | None) -> Token | None:
        """The token of a request, None of an anonymous one."""
        if authorization is None:
            return None
        token = self.tokens.get(authorization.removeprefix("Bearer "))
        if token is None:
            raise HubError(401, "Invalid credentials in Authorization header")
        return token

    def owns(self, token: Token | None, namespace: str) -> bool:
        """Whether the user may write below a namespace, whatever the token grants."""
        if token is None:
            return False
        return namespace == token.user or self.organizations[token.user].get(namespace) in ("write", "admin")

    def sees(self, token: Token | None, repository: Repository) -> bool:
        """Whether the repository exists for the user."""
        if not repository.private:
            return True
        namespace = repository.name.split("/")[0]
        return token is not None and (namespace == token.user or namespace in self.organizations[token.user])

    def demand(self, token: Token | None, repository: Repository, right: Right, *, author: str | None = None) -> None:
        """Refuse what the token or its user may not do with a repository."""
        if not self.sees(token, repository):
            raise missing_repository(token)
        if right == "read":
            return
        if token is None:
            raise HubError(401, "Invalid username or password.", code="RepoNotFound")
        mine = author == token.user
        if right == "write" and not self.owns(token, repository.name.split("/")[0]) and not mine:
            raise HubError(403, "Forbidden: pass `create_pr=1` as a query parameter to create a Pull Request")
        if not token.grants("discuss" if mine else right):
            if token.role == "read":
                raise HubError(403, "Forbidden: this token is read-only; use one with the role `write`")
            raise HubError(403, f"Forbidden: this token lacks the permission `{_NEEDED[right]}`")

    def whoami(self, token: Token | None) -> dict[str, Any]:
        """The body of `/api/whoami-v2`."""
        if token is None:
            raise HubError(401, "Invalid username or password.")
        organizations = self.organizations[token.user]
        access: dict[str, Any] = {
            "displayName": token.value[3:],
            "role": token.role,
            "createdAt": "2026-01-01T00:00:00.000Z",
        }
        if token.role == "fineGrained":
            entities = [{"type": "user", "name": token.user}, *({"type": "org", "name": n} for n in organizations)]
            permissions = sorted(token.permissions)
            access["fineGrained"] = {
                "canReadGatedRepos": False,
                "global": [permission for permission in permissions if permission.startswith("discussion.")],
                "scoped": [{"entity": entity, "permissions": permissions} for entity in entities],
            }
        return {
            "type": "user",
            "id": f"{token.user}-id",
            "name": token.user,
            "fullname": token.user.title(),
            "isPro": False,
            "orgs": [
                {"type": "org", "name": name, "fullname": name, "roleInOrg": role}
                for name, role in organizations.items()
            ],
            "auth": {"type": "access_token", "accessToken": access},
        }
