"""From nothing to the leaderboard, against a Hub on this machine: the commands of docs/hub.md.

    python -m tests.hub.walkthrough

Build, push, evaluate, submit and verify are the page's own lines; then the leaderboard's Space is started as it was
pushed, verifies the baselines, checks the pull request, adds what it holds, and is left running to be looked at.
Nothing outside of this machine is asked, and everything is in a temporary folder.
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
from contextlib import closing, contextmanager
from pathlib import Path

from .clients import process_environment
from .server import LoopbackHub

ORG = "lab"
RESULTS = f"{ORG}/audio-compositionality-results"
SECRET = "the secret of this Space, for a walkthrough"
SPACE = f"{ORG}/audio-compositionality-leaderboard"
PAGE = Path(__file__).parents[2] / "docs" / "hub.md"


def page_commands() -> list[str]:
    """The lines of the page, for the organisation of this Hub."""
    block = re.search(r"<!-- hub commands -->\n```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert block is not None
    first, *others = block[1].splitlines()
    assert first == "ORG=my-lab"
    return [f"ORG={ORG}", *others]


def environment(hub: LoopbackHub, folder: Path) -> dict[str, str]:
    """The environment of a member of the organisation who is on this machine for the first time."""
    return {
        **process_environment(hub.url, folder / "home", folder / "attempts.txt", hub.token("ada")),
        "AUDIO_COMPOSITIONALITY_CACHE": str(folder / "cache"),
        "GRADIO_ANALYTICS_ENABLED": "0",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


def run(commands: list[str], folder: Path, variables: Mapping[str, str]) -> None:
    """Run commands in a folder, each shown before its output; the first that fails ends it."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["bash", "-euxo", "pipefail", "-c", "\n".join(commands)], cwd=folder, env=variables, check=True)


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


@contextmanager
def leaderboard(hub: LoopbackHub, folder: Path, variables: Mapping[str, str]) -> Iterator[str]:
    """The Space as it was pushed; gives its address."""
    space = folder / "space"
    for path, content in hub.repositories["space", SPACE].files().items():
        file = space / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    own = {"SPACE_ID": SPACE, "AUDIO_COMPOSITIONALITY_SECRET": SECRET}
    with running_space(space, {**variables, **own}, folder / "space.log") as url:
        yield url


def wait_until_verified(hub: LoopbackHub, entries: int, seconds: float) -> list[str]:
    """Wait until the Space has added so many entries with what it computed; gives their folders."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        files = hub.repositories["dataset", RESULTS].files()
        verified = sorted(path.rpartition("/")[0] for path in files if path.endswith("/verification.json"))
        if len(verified) >= entries:
            return verified
        time.sleep(0.5)
    raise AssertionError(f"{len(verified)} of {entries} entries are verified after {seconds:.0f} s")


def main() -> None:
    """Run the walkthrough."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with tempfile.TemporaryDirectory() as name, LoopbackHub() as hub:
        folder = Path(name)
        hub.accounts.join("ada", ORG)
        variables = environment(hub, folder)
        run(page_commands(), folder / "work", variables)
        with leaderboard(hub, folder, variables) as url:
            print("The leaderboard checks the baselines and the pull request.", flush=True)
            for path in wait_until_verified(hub, 8, 3600):
                print(path)
            print(f"The leaderboard is at {url}. Press Enter to end.", flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    main()
