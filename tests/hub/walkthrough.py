"""From nothing to a verified entry, against a Hub on this machine: the blocks of docs/how-to/hub.md.

    python -m tests.hub.walkthrough

Each block is run as it stands on the page, by the one whom the comment above it names: the maintainer of an empty
organisation, a stranger, and a reader without a token, each with a folder, a cache and a login of their own. Before the
first block of the reader the leaderboard's Space is started as it was pushed, with the secrets that the page has set,
and it is left running to be looked at. Nothing outside of this machine is asked, and everything is in a temporary
folder.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .clients import process_environment
from .server import LoopbackHub

ORG = "my-lab"
SPACE = f"{ORG}/audio-compositionality-leaderboard"
PAGE = Path(__file__).parents[2] / "docs" / "how-to/hub.md"

OWNER = ("repo.content.read", "repo.write")
"""The rights of the maintainer's token, in the Hub's words; the page states all of these in those of its settings."""

SPACES = (*OWNER, "discussion.write")
"""The rights of the Space's token."""

STRANGERS = ("repo.content.read", "discussion.write")
"""The rights of a token that may open pull requests."""


@dataclass(frozen=True)
class Block:
    """A block of the page.

    Attributes:
        actor: ``maintainer``, ``stranger`` or ``reader``.
        language: ``sh`` or ``python``.
        code: its lines.
    """

    actor: str
    language: str
    code: str


def page_blocks() -> list[Block]:
    """The blocks of the page, in their order."""
    pattern = r"^(?:<!-- (maintainer|stranger|reader) -->\n)?```(\w*)\n(.*?)^```$"
    matches = re.findall(pattern, PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    blocks = [Block(*match) for match in matches]
    assert all(block.actor and block.language in ("sh", "python") for block in blocks), "a block that nobody runs"
    return blocks


class Walk:
    """The walk along the page, from an empty organisation on a Hub on."""

    def __init__(self, hub: LoopbackHub, folder: Path, limit: float) -> None:
        """Nothing is done yet.

        Args:
            hub: empty; the organisation is made on it.
            folder: for all that is written.
            limit: most seconds that a block takes.
        """
        self.hub = hub
        self.attempts = folder / "attempts.txt"
        self._folder = folder
        self._limit = limit
        self._spaces = ExitStack()
        hub.accounts.join("ada", ORG)
        self._typed = {  # at each actor's prompts, one after the other
            "maintainer": [hub.token("ada", "fineGrained", OWNER), hub.token("ada", "fineGrained", SPACES)],
            "stranger": [hub.token("eve", "fineGrained", STRANGERS)],
            "reader": [],
        }
        for actor in self._typed:
            (folder / actor).mkdir()

    def run(self, block: Block) -> str:
        """Run a block; gives what it printed. It ends at the first command that fails."""
        asks = len(re.findall(r"read -rsp|getpass\.getpass\(", block.code))
        answers, self._typed[block.actor] = self._typed[block.actor][:asks], self._typed[block.actor][asks:]
        assert len(answers) == asks, f"the {block.actor} is asked for a token more often than the page says"
        shells = {"sh": ["bash", "-euxo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
        finished = subprocess.run(
            [*shells[block.language], block.code],
            cwd=self._folder / block.actor,
            env=self._variables(block.actor),
            input="".join(f"{answer}\n" for answer in answers),
            stdout=subprocess.PIPE,
            text=True,
            timeout=self._limit,
            start_new_session=True,  # without a terminal, which `getpass` would ask instead
            check=False,
        )
        print(finished.stdout, flush=True)
        assert finished.returncode == 0, f"exit status {finished.returncode} of:\n{block.code}{finished.stdout}"
        return finished.stdout

    def start_space(self) -> str:
        """Start the leaderboard's Space as it was pushed, with its own secrets; gives its address."""
        pushed, space = self.hub.repositories["space", SPACE], self._folder / "space"
        for path, content in pushed.files().items():
            file = space / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        variables = {**self._variables("space"), "SPACE_ID": SPACE, **pushed.secrets}
        return self._spaces.enter_context(running_space(space, variables, self._folder / "space.log"))

    def close(self) -> None:
        """End the Space."""
        self._spaces.close()

    def _variables(self, who: str) -> dict[str, str]:
        """The environment of somebody who is on a machine for the first time, without a token."""
        return {
            **process_environment(self.hub.url, self._folder / f"{who}_home", self.attempts),
            "AUDIO_COMPOSITIONALITY_CACHE": str(self._folder / f"{who}_cache"),
            "GRADIO_ANALYTICS_ENABLED": "0",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }


def walked(walk: Walk, blocks: list[Block]) -> tuple[list[str], str]:
    """Run the blocks in their order; gives what each printed, and the address of the Space, which goes on running."""
    printed, url = [], ""
    for block in blocks:
        if block.actor == "reader" and not url:
            url = walk.start_space()
        printed.append(walk.run(block))
    return printed, url


@contextmanager
def running_space(folder: Path, variables: Mapping[str, str], output: Path) -> Iterator[str]:
    """A Space whose files are in a folder, started as Spaces start it; gives its address."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with output.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "app.py"],
            cwd=folder,
            env={**variables, "GRADIO_SERVER_PORT": str(port)},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        url = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + 180
            while True:
                try:
                    urllib.request.urlopen(url, timeout=10).close()
                    break
                except OSError:
                    running = process.poll() is None and time.monotonic() < deadline
                    assert running, output.read_text()
                    time.sleep(0.5)
            yield url
        finally:
            process.terminate()
            process.wait()


def main() -> None:
    """Run the walkthrough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory() as name, LoopbackHub() as hub, closing(Walk(hub, Path(name), 7200)) as walk:
        _, url = walked(walk, page_blocks())
        print(f"The leaderboard is at {url}. Press Enter to end.", flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
