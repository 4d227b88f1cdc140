"""Downloads of weights: facts about the files, their hashes, and a test whether a host can be reached."""

from __future__ import annotations

import hashlib
import socket
import sys
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from audio_compositionality.support.files import cache_folder, open_file, partial_path, remove_partial_files
from audio_compositionality.support.loopback import reach_loopback_hub
from audio_compositionality.support.text import first_line

from ..base import ModelError

CONNECT_SECONDS = 5
"""Seconds without an answer after which a host counts as unreachable."""

REPLY_SECONDS = 30
"""Seconds of silence allowed to a host that has answered."""

PIECE = 1 << 20
"""Number of bytes of a file that are held in memory at once."""


@dataclass(frozen=True)
class WeightsFile:
    """A file of weights and where to get it.

    Attributes:
        name: file name.
        source: an https address, or the id of a Hub repository that holds the file; empty if it can only be
            downloaded in a browser.
        size: approximate size in bytes.
        digest: hash of the file, ``md5:...`` or ``sha256:...``; None if unknown.
        page: web page to get a file without a source.
    """

    name: str
    source: str
    size: int
    digest: str | None = None
    page: str = ""

    def __str__(self) -> str:
        """Return the file's name and its site or repository."""
        place = self.source or self.page
        return f"{self.name}, {urlsplit(place).netloc or place}"

    @property
    def is_hub(self) -> bool:
        """Whether the file is in a repository of the Hugging Face Hub."""
        return bool(self.source) and "://" not in self.source

    def fetch(self, model: str) -> Path:
        """Return the local path of the file. It is downloaded if missing, with its size and a progress bar shown.

        Args:
            model: the model's name, for the message.

        Raises:
            ModelError: the download fails, or its hash is not the published one.
        """
        if not self.source:
            raise ModelError(
                f"'{model}' cannot be downloaded automatically: get {self.name} from {self.page} and pass "
                f"{model}=/path/to/{self.name}"
            )
        from huggingface_hub.errors import EntryNotFoundError

        path = cache_folder() / "weights" / self.name
        try:
            if not self.is_hub:
                if not path.exists() or (self.digest is not None and _digest_as(self.digest, path) != self.digest):
                    self._download(path)
                return path
            if self.digest is None:
                # Without a hash to check, prefer a file that cannot hold code, if the repository has both.
                # Without network, the other file may be in the cache.
                with suppress(EntryNotFoundError, HubUnreachableError):
                    return download_from_hub(self.source, "model.safetensors")
            path = download_from_hub(self.source, self.name)
            check_digest(path, self.digest)
            return path
        except Exception as error:
            raise ModelError(
                f"cannot download {self.name} from {self.source}: {first_line(error).rstrip('.')}. Without network, "
                f"get it elsewhere and pass {model}=/path/to/{self.name}"
            ) from error

    def _download(self, path: Path) -> None:
        """Download the file from its site; it is renamed to its final name once it is complete and its hash matches.

        Raises:
            httpx2.HTTPError: the download fails.
            ModelError: the hash differs.
        """
        import httpx2
        from tqdm.auto import tqdm

        check_reachable(self.source)
        print(f"downloading {self.name} ({self.size / 1e6:,.0f} MB) from {self.source}", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_partial_files(path.parent)
        partial = partial_path(path)
        # Without compression, so that the length stated by the host is the length of the file.
        plain = {"Accept-Encoding": "identity"}
        try:
            with httpx2.stream(
                "GET", self.source, headers=plain, follow_redirects=True, timeout=REPLY_SECONDS
            ) as reply:
                reply.raise_for_status()
                length = int(reply.headers.get("Content-Length", 0)) or None
                with partial.open("wb") as file, tqdm(total=length, unit="B", unit_scale=True) as bar:
                    for piece in reply.iter_bytes(PIECE):
                        file.write(piece)
                        bar.update(len(piece))
            actual = self.digest and _digest_as(self.digest, partial)
            if actual != self.digest:
                raise ModelError(f"the download has the hash {actual}, but the published file has {self.digest}")
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


class HubUnreachableError(ModelError):
    """The Hub does not answer, and its local cache does not hold the file."""


def download_from_hub(repository: str, name: str, revision: str | None = None) -> Path:
    """Return a file of a Hub repository; from the local cache if the Hub cannot be reached.

    Raises:
        HubUnreachableError: at once, without the client's retries.
        Exception: any other error of the client.
    """
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import LocalEntryNotFoundError

    if not reach_loopback_hub():
        try:
            return Path(hf_hub_download(repository, name, revision=revision))
        except LocalEntryNotFoundError as error:
            raise HubUnreachableError(f"HF_HUB_OFFLINE is set, and the cache does not have {name}") from error
    try:
        check_reachable(constants.ENDPOINT)
    except ModelError as error:
        cached = try_to_load_from_cache(repository, name, revision=revision)
        if not isinstance(cached, str):
            raise HubUnreachableError(str(error)) from error
        return Path(cached)
    return Path(hf_hub_download(repository, name, revision=revision))


def check_reachable(address: str) -> None:
    """Raise an error at once if there is no network.

    Raises:
        ModelError: no connection to the address's host can be opened. With a proxy, nothing is checked.
    """
    parts = urlsplit(address)
    if parts.hostname is None or parts.scheme in urllib.request.getproxies():
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise ModelError(f"{parts.hostname} cannot be reached ({first_line(error)})") from error


def check_digest(path: Path, digest: str | None) -> None:
    """Compare a file with its published hash, ``md5:...`` or ``sha256:...``.

    Raises:
        ModelError: they differ.
    """
    if digest is None:
        return
    algorithm, expected = digest.split(":")
    actual = _digest_as(digest, path).removeprefix(f"{algorithm}:")
    if actual != expected:
        raise ModelError(
            f"{path} has the {algorithm} {actual}, but the published file has {expected}: it is damaged or "
            "a different file. To run your own weights in this architecture, save them as .safetensors"
        )


def _digest_as(digest: str, path: Path) -> str:
    """Return the hash of a file in the form of `digest`, ``md5:...`` or ``sha256:...``."""
    algorithm = digest.partition(":")[0]
    with open_file(path) as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"
