"""A new metric is installed without an edit: its folder is data of the package of metrics."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from audio_compositionality.push_scripts.wheel import _copy_sources

ROOT = Path(__file__).parents[2]
FILES = {"README.md", "requirements.txt"}


@pytest.mark.slow
def test_a_metric_that_is_named_nowhere_is_in_the_wheel_whole(tmp_path: Path) -> None:
    sources, wheels = tmp_path / "sources", tmp_path / "wheels"
    _copy_sources(ROOT, sources)
    folder = sources / "metrics" / "new_metric"
    folder.mkdir()
    for name in ("new_metric.py", *FILES):
        (folder / name).touch()
    code = f"from setuptools.build_meta import build_wheel; build_wheel({str(wheels)!r})"
    built = subprocess.run([sys.executable, "-c", code], cwd=sources, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    metrics = [path.parent for path in (sources / "metrics").glob("*/*.py") if path.parent.name == path.stem]
    assert folder in metrics
    missing = {
        f"{metric.name}/{name}"
        for metric in metrics
        for name in (f"{metric.name}.py", *FILES)
        if f"audio_compositionality/metrics/{metric.name}/{name}" not in shipped
    }
    assert not missing
