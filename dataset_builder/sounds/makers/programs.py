"""Programs of other people: run without a shell, with a limit of time; where they fail, in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from audio_compositionality.support.files import sha256_of_file

from ..sound_files import SoundError, printable

LIMIT = 600.0
"""Seconds that a program may take."""


def is_installed(program: str) -> bool:
    """Whether a program is on the path."""
    return shutil.which(program) is not None


def version_of(program: str) -> str:
    """What a program states as its version; the digest of its file where it states nothing.

    Raises:
        RecordingError: it is absent, or cannot be run.
    """
    path = _path_of(program)
    result = _run([path, "--version"], LIMIT)
    # Some end with a status that says failure, and some write to the standard error.
    stated = " ".join((result.stdout + b" " + result.stderr).decode("utf-8", "replace").split())
    return stated or sha256_of_file(Path(path))


def output_of(program: str, arguments: Sequence[str | Path], *, limit: float = LIMIT) -> str:
    """Run a program to its end; it reads nothing.

    Args:
        program: its name on the path.
        arguments: of it.
        limit: seconds; it is ended then.

    Returns:
        What it wrote to its standard output.

    Raises:
        RecordingError: it is absent, fails or takes longer; with the first line of what it complains of.
    """
    result = _run([_path_of(program), *map(str, arguments)], limit)
    if result.returncode:
        raise SoundError(f"{program} failed: {complaint(result.stderr) or f'exit status {result.returncode}'}")
    return result.stdout.decode("utf-8", "replace")


def _path_of(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise SoundError(f"the program {program} is not installed")
    return path


def _run(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[bytes]:
    program = Path(command[0]).name
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except subprocess.TimeoutExpired as error:
        raise SoundError(f"{program} was ended after {limit:g} s: it takes too long") from error
    except OSError as error:
        raise SoundError(f"{program} cannot be run: {error.strerror}") from error


def complaint(stderr: bytes) -> str:
    """The first line of a program's errors that says anything; a warning where there is nothing else."""
    lines = [line.strip() for line in stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "warning" not in line.lower()]
    return printable(next(iter(errors + lines), ""))[:200]
