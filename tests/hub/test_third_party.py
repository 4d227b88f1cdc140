"""Three files of a third party make a task that goes all the way, without an edit of the product."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .clients import process_environment

TOY = Path(__file__).parents[1] / "examples" / "toy_task"

ENTRY_POINTS = """\
[audio_compositionality.recipes]
toy_pairs = toy_recipe:RECIPE

[audio_compositionality.tasks]
toy_pairs = toy_task:TASK
"""


def installed(folder: Path) -> str:
    """A path on which the toy is found as an installed package is, with its entry points."""
    metadata = folder / "toy_pairs-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-pairs\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    return os.pathsep.join((str(folder), str(TOY)))


@pytest.mark.slow
def test_a_task_of_a_third_party_goes_all_the_way(hub, tmp_path):
    packages, work = tmp_path / "packages", tmp_path / "work"
    packages.mkdir()
    work.mkdir()
    variables = process_environment(hub.url, tmp_path / "home", tmp_path / "attempts.txt", hub.token("ada"))
    variables["PYTHONPATH"] = os.pathsep.join((variables["PYTHONPATH"], installed(packages)))
    variables["AUDIO_COMPOSITIONALITY_CACHE"] = str(tmp_path / "cache")
    script = Path(__file__).with_name("third_party.py")
    answer = subprocess.run(
        [sys.executable, script, TOY],
        cwd=work,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout
    assert not (tmp_path / "attempts.txt").exists()
