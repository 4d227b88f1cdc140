"""Endpoints of a loopback Hub for owners: organisations, the secrets of a Space, visibility, deletion."""

from __future__ import annotations

from .wire import API, Call, HubError, Response, endpoint, reply

SPACE = API.replace("model|dataset|space", "space")


@endpoint("GET", "/api/organizations/(?P<name>[^/]+)/overview")
def organization(call: Call, name: str) -> Response:
    members = [user for user, roles in call.hub.accounts.organizations.items() if name in roles]
    if not members:
        raise HubError(404, "This organization does not exist")
    return reply({"name": name, "fullname": name, "avatarUrl": f"{call.hub.url}/{name}.png", "numUsers": len(members)})


@endpoint("GET", f"{SPACE}/secrets")
def secrets(call: Call, kind: str, name: str) -> Response:
    # Names alone: nobody reads a value back.
    return reply({key: {"key": key} for key in call.repository(kind, name, "write").secrets})


@endpoint("POST", f"{SPACE}/secrets")
def add_secret(call: Call, kind: str, name: str) -> Response:
    values = call.json()
    call.repository(kind, name, "write").secrets[values["key"]] = values["value"]
    return reply({})


@endpoint("PUT", f"{API}/settings")
def change_settings(call: Call, kind: str, name: str) -> Response:
    repository = call.repository(kind, name, "write")
    repository.private = call.json()["visibility"] == "private"
    return reply({"visibility": "private" if repository.private else "public"})


@endpoint("DELETE", "/api/repos/delete")
def delete(call: Call) -> Response:
    values = call.json()
    kind, name = values.get("type") or "model", f"{values['organization']}/{values['name']}"
    call.repository(kind, name, "write")
    del call.hub.repositories[kind, name]
    return Response(200, b"OK")
