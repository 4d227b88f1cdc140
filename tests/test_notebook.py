"""The notebook of the quick start, run from top to bottom by Jupyter's own client, without network."""

from __future__ import annotations

import re
import tomllib
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "start" / "quickstart.ipynb"
MAX_BYTES = 12_000

PREPARATION = """
import socket

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.evaluator.report import sections


def refuse(*address, **options):
    raise OSError(f"no network in this test: {address}")


socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse

# As few rows as have intervals.
scenes = {"scene_candidates": 2_000, "train_scenes": 40, "validation_scenes": 8, "test_scenes": 12}
for name, sizes in {"a_coat": {"quadruple_candidates": 500, "quadruples": 12}, "a_tre": scenes}.items():
    recipe = load_recipe(name)
    recipe.__dict__["presets"] = {preset: spec.changed(**sizes) for preset, spec in recipe.presets.items()}
sections.described_figures = lambda comparison: ()
"""
"""No network, few rows, and a report without figures, which take most of its time."""


@pytest.fixture
def notebook() -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    return notebook


def installing(notebook: Any) -> Any:
    """The one cell that installs the package."""
    (cell,) = (cell for cell in notebook.cells if "install" in cell.metadata.get("tags", []))
    return cell


def outputs(notebook: Any, kind: str) -> list[str]:
    """What the cells show, of a MIME type."""
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.data[kind] for output in shown if kind in output.get("data", {})]


def test_it_is_stored_without_outputs(notebook: Any):
    assert not [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]
    assert NOTEBOOK.stat().st_size < MAX_BYTES


def test_it_installs_this_project_and_opens_in_colab(notebook: Any):
    source = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]
    assert installing(notebook).source == f'%pip install -q "git+{source}"'
    colab = source.replace("https://github.com", "https://colab.research.google.com/github")
    assert f"{colab}/blob/main/{NOTEBOOK.relative_to(ROOT).as_posix()}" in notebook.cells[0].source


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    # The package is installed where this test runs, and nothing after the installation may need the network.
    installing(notebook).source = PREPARATION
    (scoring,) = (cell for cell in notebook.cells if "RunOptions" in cell.source)
    scoring.source = scoring.source.replace('"seeds": [0]', '"seeds": [0], "max_steps": 10')
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    sounds = [html for html in outputs(notebook, "text/html") if "<audio" in html]
    tables = [html for html in outputs(notebook, "text/html") if "<table" in html or "<iframe" in html]
    assert len(sounds) == 4
    *by_task, result, report = tables
    assert len(by_task) == 2
    assert all("BandEnergies" in html and "compa-clap-tiny" in html for html in by_task)
    assert "A-COAT of compa-clap-tiny on mini" in result
    printed = "".join(output.text for cell in notebook.cells for output in cell.get("outputs", []) if "text" in output)
    assert "no significant difference from its untrained twin" in printed
    # The report is shown as the last output, in a frame of its own.
    page = unescape(re.fullmatch(r'<iframe [^<>]* srcdoc="([^"<>]*)"></iframe>', report)[1])
    assert page == (tmp_path / "report.html").read_text("utf-8")
    assert [output.data["text/html"] for output in notebook.cells[-1].outputs if "data" in output] == [report]
    assert len(outputs(notebook, "image/png")) == 1
    # Nothing warns but tqdm, where Jupyter has no widgets.
    assert not [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr" and "TqdmWarning" not in output.text
    ]
