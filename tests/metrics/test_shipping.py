"""A new metric is installed without an edit: its module, and its card, which is data of the package of metrics."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from audio_compositionality.metrics import list_metrics
from audio_compositionality.push_scripts.spaces import _copy_sources

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_metric_that_is_named_nowhere_is_in_the_wheel_whole(tmp_path: Path) -> None:
    sources, wheels = tmp_path / "sources", tmp_path / "wheels"
    _copy_sources(ROOT, sources)
    for name in ("new_metric.py", "cards/new_metric.md"):
        (sources / "metrics" / name).touch()
    code = f"from setuptools.build_meta import build_wheel; build_wheel({str(wheels)!r})"
    built = subprocess.run([sys.executable, "-c", code], cwd=sources, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        shipped = set(archive.namelist())
    folder = sources / "metrics"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*") if path.suffix in (".py", ".md")}
    assert {f"cards/{name}.md" for name in list_metrics()} | {"new_metric.py", "cards/new_metric.md"} <= files
    assert not {name for name in files if f"audio_compositionality/metrics/{name}" not in shipped}
