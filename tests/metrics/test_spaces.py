"""The Spaces of the metrics: complete, described as they are, and used in a real browser."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import evaluate
import pytest
import yaml
from huggingface_hub import SpaceCard
from packaging.requirements import Requirement

from audio_compositionality import metrics
from audio_compositionality.metrics import list_metrics, metric_file
from audio_compositionality.push_scripts.spaces import metric_card, metric_files

from .contract import example_of

FOLDER = Path(metrics.__file__).parent
ROOT = Path(__file__).parents[2]
QUICK = {"max_steps": 2, "progress": False, "probes": ("ridge",)}

# https://huggingface.co/docs/hub/spaces-config-reference
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}


def constraints() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line)


def requirements(name: str) -> dict[str, Requirement]:
    lines = metric_files(name)["requirements.txt"].decode().splitlines()
    return {requirement.name: requirement for requirement in map(Requirement, lines)}


def card(name: str) -> tuple[dict[str, Any], str]:
    """The YAML of a card, and its text."""
    _, settings, text = metric_card(name).split("---\n", 2)
    return yaml.safe_load(settings), text


def module_of(name: str) -> Any:
    return importlib.import_module(f"audio_compositionality.metrics.{name}")


packages_distributions = cache(importlib.metadata.packages_distributions)


def imported(path: Path) -> set[str]:
    """Packages that a file imports, wherever in it, as they are called when installed; without Python's own."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        names |= {module.partition(".")[0] for module in modules}
    packages = packages_distributions()
    return {packages.get(name, [name])[0] for name in names - set(sys.stdlib_module_names)}


def score_of(name: str) -> dict[str, Any]:
    """What a metric's module says of its score, which a measure of another name than the metric's may be."""
    measures: dict[str, dict[str, Any]] = module_of(name).MEASURES
    return next(iter(measures.values()))


@pytest.mark.parametrize("name", list_metrics())
class TestFolder:
    def test_card_has_what_a_space_needs(self, name: str) -> None:
        settings, _ = card(name)
        assert settings["sdk"] == "static"
        assert settings["pinned"] is False
        assert settings["license"] == "apache-2.0"
        assert {"evaluate", "metric"} <= set(settings["tags"])
        assert {settings["colorFrom"], settings["colorTo"]} <= COLOURS
        assert settings["title"] == score_of(name)["heading"]
        assert settings["description"]
        assert len(settings["emoji"]) == 1
        SpaceCard(metric_card(name))
        assert "$" not in card(name)[1].replace("$\\", "")

    def test_card_describes_every_key_and_argument(self, name: str) -> None:
        _, text = card(name)
        inputs = text.split("### Inputs")[1].split("### Outputs")[0]
        outputs = text.split("### Outputs")[1].split("## Limitations")[0]

        def named(table: str) -> set[str]:
            rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
            return {key for row in rows for key in re.findall("`([a-z_0-9]+)`", row)}

        module = module_of(name)
        function = getattr(module, name)
        arguments = inspect.signature(function).parameters
        few = {key: value for key, value in QUICK.items() if key in arguments}
        result = function(**example_of(name), **few, return_scores=True)
        assert named(inputs) == set(arguments)
        assert named(outputs) == set(result)

    @pytest.mark.slow
    def test_card_s_example_runs(self, name: str, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
        _, text = card(name)
        *usage, cure = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        asked: list[tuple[str, dict[str, Any]]] = []
        metric = evaluate.load(str(metric_file(name)))

        def load(path: str, **options: Any) -> Any:
            asked.append((path, options))
            return metric

        monkeypatch.setattr("evaluate.load", load)
        exec(compile("".join(usage) + "import evaluate\n" + cure, "README.md", "exec"), {})
        assert [path for path, _ in asked] == [f"ORG/{name}"] * 2
        assert asked[1][1]["download_config"].force_download
        # What it prints stands beside it, about: print(…)  # 1 0.5
        stated = re.findall(r"print\(.*\)  # (.*)", "".join(usage) + cure)
        expected = [float(number) for line in stated for number in re.findall(r"[\d.]+", line)]
        assert list(map(float, capsys.readouterr().out.split())) == pytest.approx(expected, abs=0.1)

    @pytest.mark.slow
    def test_requirements_are_what_is_imported(self, name: str) -> None:
        found = set().union(*(imported(FOLDER / file) for file in metric_files(name) if file.endswith(".py")))
        assert found == set(requirements(name))
        versions = constraints()
        for package, requirement in requirements(name).items():
            assert requirement.specifier.contains(versions[package])
