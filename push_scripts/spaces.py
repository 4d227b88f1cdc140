"""Publish the Spaces: one per metric, and the leaderboard with the repository of its results."""

from __future__ import annotations

import ast
import html
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from huggingface_hub import RepoCard

from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.content import Content, Push
from audio_compositionality.hub.errors import Repository
from audio_compositionality.hub.names import dataset_of, leaderboard_of, metric_of, results_of
from audio_compositionality.metrics import list_metrics, metric_file, module_files
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import sha256_of
from audio_compositionality.support.text import shown
from audio_compositionality.tasks.metric_files import describe_metric
from audio_compositionality.tasks.registry import list_tasks

APP = "app.py"
"""The page of the leaderboard's Space."""

REQUIREMENTS = "requirements.txt"

TORCH = "--extra-index-url https://download.pytorch.org/whl/cpu"
"""A Space has no GPU: PyTorch without CUDA is a tenth of the size."""

EXTRA = "leaderboard"
"""The package's optional dependencies for the leaderboard."""

_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""Distribution names that differ from the module's name, by module."""

_PUSHED = re.compile("audio_compositionality.*")
"""Names of files that only a push writes: obsolete ones may be deleted."""


def push_metrics(
    org: str,
    *,
    folders: Sequence[str | Path] = (),
    hub: Hub | None = None,
    private: bool = False,
    pull_request: bool = False,
    dry_run: bool = False,
) -> list[Push]:
    """Update the Space ``ORG/NAME`` of each metric: its module with siblings, page, card and requirements.

    Args:
        org: organisation or user.
        folders: folders of other authors' metrics, each ``NAME`` with ``NAME.py``, ``README.md`` and
            ``requirements.txt``; by default the metrics of this package.
        hub: client of the Hub; by default of the user of the saved token.
        private: make new repositories private.
        pull_request: open pull requests instead of committing to the branch main.
        dry_run: change nothing.

    Raises:
        InputError: a folder holds no metric.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    contents = {folder.name: folder_files(folder) for folder in (Path(folder).resolve() for folder in folders)}
    pushes = []
    for name, content in (contents or {name: metric_files(name) for name in list_metrics()}).items():
        card = RepoCard(content["README.md"].decode(), ignore_metadata_errors=True)
        how = {"sdk": card.data.get("sdk", "static"), "private": private}
        pushes.append(_push(hub, metric_of(org, name), content, pull_request=pull_request, dry_run=dry_run, **how))
    return pushes


def push_leaderboard(
    org: str, *, hub: Hub | None = None, private: bool = False, pull_request: bool = False, dry_run: bool = False
) -> list[Push]:
    """Update the leaderboard's Space to this version, and create the repository of results if it is missing.

    In an existing repository of results, only the card is changed. Arguments as in `push_metrics`.

    Raises:
        InputError: the wheel for the Space cannot be built.
        HubError: the Hub refuses, or cannot be reached.
    """
    hub = hub or Hub()
    contents: Mapping[Repository, Mapping[str, Content]] = {
        results_of(org): {"README.md": results_card(org).encode()},
        leaderboard_of(org): leaderboard_files(org),
    }
    how = {"private": private, "pull_request": pull_request, "dry_run": dry_run}
    return [_push(hub, repository, content, **how) for repository, content in contents.items()]


def _push(hub: Hub, repository: Repository, content: Mapping[str, Content], **how: Any) -> Push:
    return hub.push(repository, content, f"{DISTRIBUTION} {version(DISTRIBUTION)}", stale=_PUSHED, **how)


def metric_files(name: str) -> dict[str, bytes]:
    """Return the files of the Space of a metric of this package.

    Raises:
        LookupError: there is no such metric.
    """
    modules = module_files(metric_file(name))
    return {
        **modules,
        "README.md": metric_card(name).encode(),
        "index.html": metric_page(name).encode(),
        REQUIREMENTS: metric_requirements(modules).encode(),
    }


def metric_page(name: str) -> str:
    """Return the page of a metric's Space as HTML: its module's docstring, and how to load it."""
    docstring = ast.get_docstring(ast.parse(metric_file(name).read_text("utf-8"))) or ""
    blocks = [("pre" if text.startswith(">>>") else "p", html.escape(text)) for text in docstring.split("\n\n")]
    template = Template(files(__package__).joinpath("metric_page.html").read_text("utf-8"))
    return template.substitute(
        title=html.escape(describe_metric(name).measures[0].heading),
        name=name,
        text="\n".join(f"<{tag}>{text}</{tag}>" for tag, text in blocks),
    )


def metric_card(name: str) -> str:
    """Return the card of a metric's Space: its text, the settings of the Space, a remedy and the citation."""
    text = files("audio_compositionality.metrics").joinpath(f"cards/{name}.md").read_text("utf-8")
    _, settings, body = text.split("---\n", 2)
    template = Template(files(__package__).joinpath("metric_card.md").read_text("utf-8"))
    metric = describe_metric(name)
    title = metric.measures[0].heading
    return template.substitute(
        title=title, settings=settings, text=body.lstrip("\n"), name=name, citation=metric.citation
    )


def metric_requirements(modules: Mapping[str, bytes]) -> str:
    """Return the text of ``requirements.txt``: what a Space's modules import, with this package's version bounds."""
    imported = set()
    for code in modules.values():
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                imported.add(node.module.partition(".")[0])
    packages = {_DISTRIBUTIONS.get(name, name) for name in imported - set(sys.stdlib_module_names)}
    lines = requires(DISTRIBUTION) or []
    bounds = {re.split(r"[^\w.-]", line, maxsplit=1)[0]: line for line in lines if ";" not in line}
    return "".join(f"{bounds[name]}\n" for name in sorted(packages))


def folder_files(folder: Path) -> dict[str, bytes]:
    """Return the files of the Space of another author's metric, from its folder.

    Raises:
        InputError: a file is missing from the folder.
    """
    items = list(folder.iterdir()) if folder.is_dir() else []
    content = {
        item.name: item.read_bytes()
        for item in sorted(items, key=lambda item: item.name)
        if item.is_file() and item.name not in ("__init__.py", "py.typed") and not item.name.startswith(".")
    }
    lacking = [name for name in (f"{folder.name}.py", "README.md", REQUIREMENTS) if name not in content]
    if lacking:
        raise InputError(f"{folder} is not the folder of a metric: it has no {shown(lacking)}")
    return content


def leaderboard_files(org: str) -> dict[str, bytes]:
    """Return the files of the leaderboard's Space: its page, and the requirements that install the package.

    Raises:
        InputError: the wheel of the package cannot be built.
    """
    folder = files("audio_compositionality.leaderboard")
    line, wheels = requirement(leaderboard_of(org), EXTRA)
    return {
        "README.md": folder.joinpath("README.md").read_bytes(),
        APP: folder.joinpath(APP).read_bytes(),
        REQUIREMENTS: f"{TORCH}\n{line}\n".encode(),
        **wheels,
    }


def results_card(org: str) -> str:
    """Return the card of the repository of results."""
    template = Template(files(__package__).joinpath("results_card.md").read_text("utf-8"))
    dataset, space = dataset_of(org), leaderboard_of(org)
    tasks = [
        f"- **{task.title}** (`{task.name}`{', on request' if task.on_request else ''}): {task.question}"
        for task in (one.info for one in list_tasks())
    ]
    return template.substitute(
        org=org,
        dataset=dataset.id,
        dataset_url=dataset.url,
        space=space.id,
        space_url=space.url,
        tasks="\n".join(tasks),
    )


# ----- The package as a wheel, for Spaces that run it


DISTRIBUTION = "audio-compositionality"

SETUPTOOLS = 77
"""The first version that reads our pyproject.toml; if an older one or none is installed, pip fetches one."""

_EPOCH = "315532800"  # 1980-01-01, the first date that a zip file can have: equal sources give equal wheels


def source_tree() -> Path | None:
    """Return the root of the clone that the package runs from; None for an installed package."""
    root = Path(__file__).resolve().parents[1]
    path = root / "pyproject.toml"
    project = tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
    return root if project.get("project", {}).get("name") == DISTRIBUTION else None


def requirement(space: Repository, extra: str) -> tuple[str, dict[str, bytes]]:
    """Return the line that installs this version of the package in a Space, and the files that the Space needs for it.

    From a clone, the file is a wheel of the clone in the Space's own repository. The line has the wheel's URL, since a
    Space installs its requirements before it has its other files, and its SHA-256, so that the Space is rebuilt when
    the wheel changes. For an installed package, which is a release, the line names its version.

    Args:
        space: the Space's repository.
        extra: name of the package's optional dependencies to install.

    Raises:
        InputError: the wheel cannot be built.
    """
    root = source_tree()
    if root is None:
        return f"{DISTRIBUTION}[{extra}]=={version(DISTRIBUTION)}", {}
    name, content = build_wheel(root)
    address = f"{space.url}/resolve/main/{name}#sha256={sha256_of(content)}"
    return f"{DISTRIBUTION}[{extra}] @ {address}", {name: content}


def build_wheel(root: Path) -> tuple[str, bytes]:
    """Return name and content of the wheel of a source tree; the same bytes for the same sources.

    Raises:
        InputError: it cannot be built.
    """
    with tempfile.TemporaryDirectory(prefix=f"{DISTRIBUTION}-") as scratch:
        # In a copy, since a build leaves folders behind that the next build would use.
        sources, wheels = Path(scratch, "sources"), Path(scratch, "wheels")
        _copy_sources(root, sources)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--disable-pip-version-check"]
        with suppress(PackageNotFoundError, ValueError):
            if int(version("setuptools").split(".")[0]) >= SETUPTOOLS:
                command.append("--no-build-isolation")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": _EPOCH}
        finished = subprocess.run(
            [*command, "--wheel-dir", str(wheels), str(sources)], env=environment, capture_output=True, text=True
        )
        built = sorted(wheels.glob("*.whl")) if finished.returncode == 0 else []
        if len(built) != 1:
            lines = (finished.stderr or finished.stdout).strip().splitlines() or ["pip printed no message"]
            raise InputError(
                f"the wheel of {root} cannot be built: {lines[-1]}; install the build tools: `python -m pip "
                f"install pip 'setuptools>={SETUPTOOLS}'`"
            )
        return built[0].name, built[0].read_bytes()


def _copy_sources(root: Path, target: Path) -> None:
    """Copy the sources of the wheel alone: a clone may also contain data and results of any size."""
    target.mkdir()
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    folders = project["tool"]["setuptools"]["package-dir"].values()
    for name in ("pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]):
        shutil.copyfile(root / name, target / name)
    unwanted = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")
    for name in {Path(folder).parts[0] for folder in folders}:
        shutil.copytree(root / name, target / name, ignore=unwanted)
    for path in target.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
