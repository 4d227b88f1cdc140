"""Faults that a test orders from a loopback Hub, each for the requests that it names."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Status:
    """An error status for an answer."""

    status: int
    retry_after: int | str | None = None  # seconds or a date
    message: str = "ordered by a test"
    code: str | None = None
    rate_limit: int | None = None  # seconds, with nothing remaining
    html: bool = False  # a page, as a gateway answers before the Hub
    acts: bool = False  # do what was asked first: a 500 after the commit was made


@dataclass(frozen=True)
class Drop:
    """The connection ends without an answer."""

    acts: bool  # do what was asked first: only the response is lost
    reset: bool = True  # as a crash does; else in order, as a server that shuts down


@dataclass(frozen=True)
class CutUpload:
    """The connection is reset while the body of the request is being sent, after this many bytes of it."""

    after: int


@dataclass(frozen=True)
class CutDownload:
    """The connection ends within the body of the response, after this many bytes of it; see `Drop` for ``reset``."""

    after: int
    reset: bool = False


@dataclass(frozen=True)
class Delay:
    """The Hub waits before it does what was asked; when it is closed meanwhile, it does not do it."""

    seconds: float


@dataclass(frozen=True)
class Meanwhile:
    """Something else happens first, such as somebody's commit between the clients' look at the head and their own."""

    action: Callable[[], object]


@dataclass(frozen=True)
class Reply:
    """The answer is another one, of a status that says that all is well; what was asked is not done."""

    body: bytes
    type: str = "application/json"


Fault = Reply | Status | Drop | CutUpload | CutDownload | Delay | Meanwhile

PASSING: dict[str, Fault] = {
    "429": Status(429, retry_after=7),
    "500": Status(500),
    "503": Status(503, retry_after=3),
    "dropped before": Drop(acts=False),
    "dropped after": Drop(acts=True),
    "ended before": Drop(acts=False, reset=False),
    "ended after": Drop(acts=True, reset=False),
    "500 after": Status(500, acts=True),
}
"""Faults after which the same request may succeed, before and after it has taken effect."""

FEW = ("429", "dropped before", "ended after")
"""Those that differ: an error, and both ways in which a connection ends."""

CHANGES = ("create", "upload", "verify", "commit", "comment", "close")
"""Steps that take effect on the Hub, so that a lost answer leaves open whether they have."""


def steps_of(kind: str, name: str) -> dict[str, tuple[str, str]]:
    """Method and pattern of the requests about a repository, by the names of their steps."""
    api, lfs = f"/api/{kind}s/{name}", f"{name}.git/info/lfs/objects"
    return {
        "info": ("GET", f"{api}/revision/main"),
        "create": ("POST", "/api/repos/create"),
        "tree": ("GET", f"{api}/tree/"),
        "whoami": ("GET", "/api/whoami-v2"),
        "discussions": ("GET", rf"{api}/discussions\?"),
        "details": ("GET", f"{api}/discussions/1"),
        "head": ("GET", f"{api}/revision/refs%2Fpr%2F1"),
        "commits": ("GET", f"{api}/commits/"),
        "look-up": ("HEAD", "/resolve/"),
        "download": ("GET", "/resolve/"),
        "preupload": ("POST", f"{api}/preupload/"),
        "batch": ("POST", f"{lfs}/batch"),
        "upload": ("PUT", "/lfs-storage/"),
        "verify": ("POST", f"{lfs}/verify"),
        "card": ("POST", "/api/validate-yaml"),
        "commit": ("POST", f"{api}/commit/"),
        "comment": ("POST", f"{api}/discussions/1/comment"),
        "close": ("POST", f"{api}/discussions/1/status"),
    }


@dataclass
class Order:
    """A fault and when it is due."""

    method: str
    pattern: re.Pattern[str]
    fault: Fault
    k: int = 1  # the first request that it happens to
    times: int | None = 1  # to how many from then on; None for all
    seen: int = 0
    fired: int = 0


@dataclass
class Faults:
    """The orders of a test."""

    orders: list[Order] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def order(self, method: str, pattern: str, fault: Fault, *, k: int = 1, times: int | None = 1) -> Order:
        """Have a fault happen to the k-th request, from now on, whose path matches; see `Order`."""
        made = Order(method, re.compile(pattern), fault, k, times)
        with self._lock:
            self.orders.append(made)
        return made

    def take(self, method: str, target: str) -> Fault | None:
        """The fault that is due for a request; of several, the one ordered first."""
        due = None
        with self._lock:
            for order in self.orders:
                if order.method != method or not order.pattern.search(target):
                    continue
                order.seen += 1
                late = order.times is not None and order.seen >= order.k + order.times
                if due is None and order.seen >= order.k and not late:
                    due = order
            if due is not None:
                due.fired += 1
        return due.fault if due else None

    def idle(self) -> list[Order]:
        """The orders that never came to pass."""
        with self._lock:
            return [order for order in self.orders if not order.fired]
