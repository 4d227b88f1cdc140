"""The metric of `tests/examples/toy_task`, which newcomers copy, keeps the contract."""

import doctest
from collections.abc import Mapping
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import evaluate
import numpy as np

from audio_compositionality.push_scripts.spaces import folder_files

from .contract import MetricContract

PATH = Path(__file__).parents[1] / "examples" / "toy_task" / "toy_pairs" / "toy_pairs.py"


def example() -> dict[str, Any]:
    """Return arguments of `toy_pairs`: octaves that are their tones with noise."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=(8, 4))
    return {"low": low.round(3), "high": (low + rng.normal(0, 0.5, (8, 4))).round(3)}


class TestContract(MetricContract):
    name = "toy_pairs"
    embeddings = ("low", "high")
    path = PATH

    @cached_property
    def module(self) -> ModuleType:
        spec = spec_from_file_location(self.name, self.path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_its_docstrings_have_examples(self) -> None:
        outcome = doctest.testmod(self.module)
        assert outcome.attempted > outcome.failed == 0

    @property
    def described(self) -> Path:
        return self.path

    def files(self) -> Mapping[str, bytes]:
        return folder_files(self.path.parent)

    def test_it_loads_by_its_folder(self, tmp_path: Path) -> None:
        """The names that are registered are those of the project's own metrics."""
        assert evaluate.load(str(self.path.parent), cache_dir=str(tmp_path)).compute(**self.example()) == self.compute()
