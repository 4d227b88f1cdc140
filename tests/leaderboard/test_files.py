"""The files that are the Space."""

import re
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import yaml

SPACE = files("audio_compositionality.leaderboard")
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_space_installs_what_the_project_needs():
    wanted = [name for name in PROJECT["dependencies"] if not name.startswith("gradio")]
    first, *rest = SPACE.joinpath("requirements.txt").read_text("utf-8").splitlines()
    assert rest == wanted
    # Where the wheels of torch are that lack several gigabytes for GPUs, which the Space has none of.
    assert first == "--extra-index-url https://download.pytorch.org/whl/cpu"


def test_its_card_says_how_it_is_run():
    _, head, text = SPACE.joinpath("README.md").read_text("utf-8").split("---\n", 2)
    card = yaml.safe_load(head)
    assert (card["sdk"], card["app_file"], card["sdk_version"]) == ("gradio", "app.py", version("gradio"))
    assert "leaderboard" in card["tags"]
    assert len(card["short_description"]) <= 60  # more is refused
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert {card["colorFrom"], card["colorTo"]} <= colours
    assert card["license"].lower() == PROJECT["license"].lower()
    assert re.search(r"submitter's\s+word", text)


def test_its_app_is_there():
    compile(SPACE.joinpath("app.py").read_text("utf-8"), "app.py", "exec")
