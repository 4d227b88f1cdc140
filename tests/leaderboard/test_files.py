"""The files that are the Space, and what installs the package in it."""

import importlib
import io
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from audio_compositionality.hub.names import leaderboard_of
from audio_compositionality.push_scripts import spaces as wheel
from audio_compositionality.push_scripts.spaces import leaderboard_files
from audio_compositionality.support.errors import InputError

SPACE = files("audio_compositionality.leaderboard")
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_its_card_says_how_it_is_run():
    _, head, text = SPACE.joinpath("README.md").read_text("utf-8").split("---\n", 2)
    card = yaml.safe_load(head)
    wanted = next(line for line in PROJECT["optional-dependencies"]["leaderboard"] if line.startswith("gradio"))
    assert (card["sdk"], card["app_file"]) == ("gradio", "app.py")
    assert tuple(map(int, card["sdk_version"].split("."))) >= tuple(map(int, wanted.partition(">=")[2].split(".")))
    assert "leaderboard" in card["tags"]
    assert len(card["short_description"]) <= 60  # more is refused
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {card["colorFrom"], card["colorTo"]} <= colours
    assert card["license"].lower() == PROJECT["license"].lower()
    assert re.search(r"only\s+the\s+submitter\s+states", text)


def test_an_installed_package_is_required_by_its_version(monkeypatch):
    text = SPACE.joinpath("app.py").read_text("utf-8")
    compile(text, "app.py", "exec")
    assert all(importlib.import_module(name) for name in re.findall(r"^from ([\w.]+) import", text, re.MULTILINE))
    monkeypatch.setattr(wheel, "source_tree", lambda: None)
    content = leaderboard_files("lab")
    assert set(content) == {"README.md", "app.py", "requirements.txt"}
    first, second = content["requirements.txt"].decode().splitlines()
    # Where the wheels of torch are that lack several gigabytes for GPUs, which the Space has none of.
    assert first == "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert second == f"audio-compositionality[leaderboard]=={version('audio-compositionality')}"


@pytest.mark.slow
def test_a_clone_is_built_and_its_line_installs_it(tmp_path, monkeypatch):
    # The tests may run on an installed package, from a clone.
    monkeypatch.setattr(wheel, "source_tree", lambda: ROOT)
    line, content = wheel.requirement(leaderboard_of("lab"), "leaderboard")
    name, built = next(iter(content.items()))
    with zipfile.ZipFile(io.BytesIO(built)) as archive:
        members = archive.namelist()
    # All that is tracked, and nothing that an earlier build or a test has left.
    folders = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"].values())
    here = {
        f"audio_compositionality/{path.relative_to(ROOT).as_posix()}".replace("/api/", "/")
        for folder in folders
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {member for member in members if member.endswith(".py")} == here
    (tmp_path / name).write_bytes(built)
    assert line.startswith(
        f"audio-compositionality[leaderboard] @ {leaderboard_of('lab').url}/resolve/main/{name}#sha256="
    )
    # Offline: the address of the Space is that of a folder, the digest stays.
    local = line.replace(f"{leaderboard_of('lab').url}/resolve/main", tmp_path.as_uri())
    (tmp_path / "requirements.txt").write_text(local)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    command = [*pip, str(tmp_path / "site"), "-r", str(tmp_path / "requirements.txt")]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / "site/audio_compositionality/leaderboard/space.py").is_file()


@pytest.mark.slow
def test_a_clone_that_cannot_be_built_says_so(tmp_path):
    wheel._copy_sources(ROOT, tmp_path / "clone")
    project = tmp_path / "clone" / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{PROJECT["version"]}"', 'version = "not one"'))
    with pytest.raises(InputError, match="cannot be built"):
        wheel.build_wheel(tmp_path / "clone")
