"""The wheel: a new metric is installed without an edit, its module and its card; what is run in a clone is not."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from audio_compositionality.metrics import list_metrics
from audio_compositionality.push_scripts.spaces import _copy_sources

ROOT = Path(__file__).parents[2]
PACKAGE = "audio_compositionality"


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
    # Neither studies nor benchmarks, tests and pages of the documentation: they are run in a clone.
    assert {name.split("/")[0] for name in shipped} == {PACKAGE, f"{wheel.name.partition('-py3')[0]}.dist-info"}
    rooms = {name.split("/")[1] for name in shipped if name.startswith(f"{PACKAGE}/") and name.count("/") > 1}
    assert "metrics" in rooms
    assert not rooms & {"studies", "benchmarks", "tests", "docs", "examples"}
    folder = sources / "metrics"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*") if path.suffix in (".py", ".md")}
    assert {f"cards/{name}.md" for name in list_metrics()} | {"new_metric.py", "cards/new_metric.md"} <= files
    assert not {name for name in files if f"audio_compositionality/metrics/{name}" not in shipped}
