"""Servers on this machine, which need no network, so huggingface_hub's offline mode need not forbid them."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2


def is_loopback(host: str | None) -> bool:
    """Return whether a host is this machine by its address: ``localhost``, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def reach_loopback_hub() -> bool:
    """Let huggingface_hub reach a Hub on this machine, given by ``HF_ENDPOINT``, under ``HF_HUB_OFFLINE``.

    Requests to any other host are still refused, also if that Hub redirects to one. No proxy is used. Xet is switched
    off, because its requests bypass huggingface_hub's client. In any other case, nothing changes.

    Returns:
        Whether the Hub may be called.
    """
    from urllib.parse import urlsplit

    from huggingface_hub import constants, set_client_factory
    from huggingface_hub.utils import _http

    if not constants.is_offline_mode():
        return True
    is_here = is_loopback(urlsplit(constants.ENDPOINT).hostname)
    if is_here:
        # A Hub names its own servers for Xet, which may be any host.
        constants.HF_HUB_DISABLE_XET = True
        if _http._GLOBAL_CLIENT_FACTORY is not _client:
            set_client_factory(_client)
    return is_here


def _client() -> httpx2.Client:
    """Return huggingface_hub's client, with a hook that permits this machine and refuses all other hosts offline.

    It ignores proxies of the environment: the hook does not see where a proxy sends a request.
    """
    import httpx2
    from huggingface_hub import constants
    from huggingface_hub.utils._http import default_client_factory

    with default_client_factory() as usual:
        hooks = usual.event_hooks
        client = httpx2.Client(
            event_hooks=hooks, follow_redirects=usual.follow_redirects, timeout=usual.timeout, trust_env=False
        )
    first, *rest = hooks["request"]

    def hook(request: httpx2.Request) -> None:
        if not (constants.is_offline_mode() and is_loopback(request.url.host)):
            first(request)

    client.event_hooks = {**hooks, "request": [hook, *rest]}
    return client
