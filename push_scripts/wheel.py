"""The package as a wheel, for Spaces that run it, and the line of requirements.txt that installs it there."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from audio_compositionality.hub.errors import Repository
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of

DISTRIBUTION = "audio-compositionality"

SETUPTOOLS = 77
"""The first version that reads our pyproject.toml; with an older one, or none, pip fetches one to build with."""

_EPOCH = "315532800"  # 1980-01-01, the first date that a zip file can have: equal sources give equal wheels


def source_tree() -> Path | None:
    """Root of the clone that the package runs from; None where it is installed without one."""
    root = Path(__file__).resolve().parents[1]
    project = root / "pyproject.toml"
    if not project.is_file() or _project(project).get("project", {}).get("name") != DISTRIBUTION:
        return None
    return root


def requirement(space: Repository, extra: str) -> tuple[str, dict[str, bytes]]:
    """The line that installs this version of the package in a Space, and the files that the Space must have for it.

    From a clone it is the wheel of that clone, in the Space's own repository. It is named by its address there, since
    a Space installs its requirements before it has its other files, and with its SHA-256, so that the Space is built
    anew whenever the wheel is another. An installed package has been released: the line names its version.

    Args:
        space: the Space's repository.
        extra: of the package's optional dependencies.

    Raises:
        InputError: the wheel cannot be built.
    """
    root = source_tree()
    if root is None:
        return f"{DISTRIBUTION}[{extra}]=={importlib.metadata.version(DISTRIBUTION)}", {}
    name, content = build_wheel(root)
    address = f"{space.url}/resolve/main/{name}#sha256={sha256_of(content)}"
    return f"{DISTRIBUTION}[{extra}] @ {address}", {name: content}


def build_wheel(root: Path) -> tuple[str, bytes]:
    """Name and content of the wheel of a source tree; the same bytes for the same sources.

    Raises:
        InputError: it cannot be built.
    """
    with tempfile.TemporaryDirectory(prefix=f"{DISTRIBUTION}-") as scratch:
        # A build leaves folders behind, and takes up what an earlier one has left.
        sources, wheels = Path(scratch, "sources"), Path(scratch, "wheels")
        _copy_sources(root, sources)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check"]
        if _has_setuptools():
            command.append("--no-build-isolation")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}
        finished = subprocess.run(
            [*command, "--wheel-dir", str(wheels), str(sources)], env=environment, capture_output=True, text=True
        )
        built = sorted(wheels.glob("*.whl")) if finished.returncode == 0 else []
        if len(built) != 1:
            lines = (finished.stderr or finished.stdout).strip().splitlines() or ["pip says nothing"]
            raise InputError(
                f"the wheel of {root} cannot be built: {lines[-1]}; `python -m pip install pip 'setuptools>="
                f"{SETUPTOOLS}'` installs what builds it"
            )
        return built[0].name, built[0].read_bytes()


def _copy_sources(root: Path, target: Path) -> None:
    """Copy what the wheel is made of: a clone may hold data and results of any size beside it."""
    target.mkdir()
    project = _project(root / "pyproject.toml")
    folders = project["tool"]["setuptools"]["package-dir"].values()
    for name in ("pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]):
        shutil.copyfile(root / name, target / name)
    unwanted = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    for name in {Path(folder).parts[0] for folder in folders}:
        shutil.copytree(root / name, target / name, ignore=unwanted)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _project(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def _has_setuptools() -> bool:
    try:
        return int(importlib.metadata.version("setuptools").split(".")[0]) >= SETUPTOOLS
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
