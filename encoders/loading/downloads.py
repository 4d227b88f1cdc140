"""Downloads of weights: the facts of their files, their hashes, and the test whether a host can be reached at all."""

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
"""Seconds for a host to answer before it is taken to be out of reach."""

REPLY_SECONDS = 30
"""Seconds of silence allowed to a host that was reached."""

PIECE = 1 << 20
"""Bytes of a file that are held in memory at once."""


@dataclass(frozen=True)
class WeightsFile:
    """Where the weights of a model are.

    Attributes:
        name: file name.
        source: an https address, or the id of a Hub repository that holds the file; empty where only a person with a
            browser can get it.
        size: bytes, about.
        digest: hash of the file, ``md5:...`` or ``sha256:...``; None where none is on record.
        page: where a person gets a file without a source.
    """

    name: str
    source: str
    size: int
    digest: str | None = None
    page: str = ""

    def __str__(self) -> str:
        """The file's name and the site or repository that has it."""
        place = self.source or self.page
        return f"{self.name}, {urlsplit(place).netloc or place}"

    @property
    def is_hub(self) -> bool:
        """Whether the file is in a repository of the Hugging Face Hub."""
        return bool(self.source) and "://" not in self.source

    def fetch(self, model: str) -> Path:
        """Local path of the file, downloaded first where it is not there; its size and a progress bar are shown.

        Args:
            model: the model's name, for the message.

        Raises:
            ModelError: if it cannot be had, or has another hash than is on record.
        """
        if not self.source:
            raise ModelError(
                f"'{model}' cannot be fetched by a program: get {self.name} from {self.page} and pass "
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
                # A file that cannot be checked is better one that cannot hold code, where the repository has both.
                # Without network, the other may be in the cache.
                with suppress(EntryNotFoundError, HubUnreachableError):
                    return download_from_hub(self.source, "model.safetensors")
            path = download_from_hub(self.source, self.name)
            check_digest(path, self.digest)
            return path
        except Exception as error:
            raise ModelError(
                f"cannot get {self.name} from {self.source}: {first_line(error).rstrip('.')}. Without network, get it "
                f"elsewhere and pass {model}=/path/to/{self.name}"
            ) from error

    def _download(self, path: Path) -> None:
        """Fetch the file from its site; it gets its name when it is complete and has the hash on record.

        Raises:
            httpx2.HTTPError: it cannot be had.
            ModelError: it has another hash.
        """
        import httpx2
        from tqdm.auto import tqdm

        check_reachable(self.source)
        print(f"downloading {self.name} ({self.size / 1e6:,.0f} MB) from {self.source}", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_partial_files(path.parent)
        partial = partial_path(path)
        # Without compression, so that the length that the host states is that of the file.
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
    """The Hub does not answer, and its cache does not have the file."""


def download_from_hub(repository: str, name: str, revision: str | None = None) -> Path:
    """A file of a Hub repository; from the cache where the Hub cannot be reached.

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
    """Find out at once whether there is a network.

    Raises:
        ModelError: if no connection to the address's host can be opened. Nothing is tried where a proxy is set.
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
    """Compare a file with the hash on record, ``md5:...`` or ``sha256:...``.

    Raises:
        ModelError: if they differ.
    """
    if digest is None:
        return
    algorithm, expected = digest.split(":")
    actual = _digest_as(digest, path).removeprefix(f"{algorithm}:")
    if actual != expected:
        raise ModelError(
            f"{path} has the {algorithm} {actual}, but the published file has {expected}: it is damaged, or another. "
            "To run weights of your own in this architecture, save them as .safetensors"
        )


def _digest_as(digest: str, path: Path) -> str:
    """The hash of a file in the form of another, ``md5:...`` or ``sha256:...``."""
    algorithm = digest.partition(":")[0]
    with open_file(path) as stream:
        return f"{algorithm}:{hashlib.file_digest(stream, algorithm).hexdigest()}"
