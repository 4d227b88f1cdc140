"""What every metric has to do. A new metric's tests begin with a subclass of `MetricContract` that names it."""

from __future__ import annotations

import copy
import doctest
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import evaluate
import numpy as np
import pytest
import torch

from audio_compositionality.metrics import metric_file, module_files
from audio_compositionality.push_scripts.spaces import metric_files
from audio_compositionality.tasks.base import Measure
from audio_compositionality.tasks.metric_files import describe_metric, measures_from

_LOADED = """
import doctest, json, os, sys
from audio_compositionality.metrics import register

name, module, options = sys.argv[1:]
paths = {path.stem: path for path in register()}
assert "evaluate" not in sys.modules
import evaluate

metric = evaluate.load(name)
assert sys.modules[type(metric).__module__].__file__ == str(paths[name])
examples = doctest.DocTestParser().get_doctest(metric.inputs_description, {}, name, None, None)
outcome = doctest.DocTestRunner().run(examples)
assert outcome.attempted > 3 and outcome.failed == 0, outcome
assert os.listdir() == []

results = []
for loaded in (metric, evaluate.load(module)):
    assert loaded.name == name
    results.append(loaded.compute(**sys.modules[type(loaded).__module__].example(), **json.loads(options)))
assert results[0] == results[1]
print(json.dumps(results[0], default=repr))
"""
"""Prints the result of the example, which is the same by name and by path."""


def load_metric(metric: str | Path, cache: Path) -> Any:
    """A metric as `evaluate` makes it, by its name or its path."""
    return evaluate.load(str(metric_file(metric) if isinstance(metric, str) else metric), cache_dir=str(cache))


class MetricContract:
    """Tests of a metric, from its ``example()``, its ``MEASURES`` and the features that it declares to `evaluate`.

    Attributes:
        name: of the metric.
        options: given with every call, such as a small number of steps.
        embeddings: arguments that are matrices of embeddings; the scores must not depend on their scale.
        drawn: numbers that depend on the order of samples, since they are means over random draws.
        needed: arguments that may be left out only where something else stands for them, such as similarities for
            embeddings.
    """

    name: str
    options: ClassVar[Mapping[str, Any]] = {}
    embeddings: ClassVar[Sequence[str]]
    drawn: ClassVar[Sequence[str]] = ()
    needed: ClassVar[Sequence[str]] = ()

    _result: ClassVar[dict[str, Any]]

    def rows(self, values: Any, place: np.ndarray) -> Any:
        """Rows of an argument; by default of an array, a list, or a dictionary of these."""
        if isinstance(values, Mapping):
            return {name: self.rows(column, place) for name, column in values.items()}
        return values[place] if isinstance(values, np.ndarray) else [values[row] for row in place]

    def movable(self, example: Mapping[str, Any]) -> np.ndarray:
        """Numbers of the samples that may change places without a change of the numbers; by default all."""
        return np.arange(len(example[self.embeddings[0]]))

    # ----- what the tests use

    @property
    def path(self) -> Path:
        """The metric's module; a metric of a third party says where it lies, and gives its `module`."""
        return metric_file(self.name)

    @cached_property
    def module(self) -> ModuleType:
        return import_module(f"audio_compositionality.metrics.{self.name}")

    @property
    def function(self) -> Callable[..., dict[str, Any]]:
        function: Callable[..., dict[str, Any]] = getattr(self.module, self.name)
        return function

    def example(self) -> dict[str, Any]:
        example: dict[str, Any] = self.module.example()
        return example

    def compute(self, **changes: Any) -> dict[str, Any]:
        return self.function(**self.example() | dict(self.options) | changes)

    def computed(self) -> dict[str, Any]:
        """The result of the example as it is, which tests compare with others: computed once for each class."""
        if "_result" not in vars(type(self)):
            type(self)._result = self.compute()
        return copy.deepcopy(type(self)._result)

    def numbers(self, **changes: Any) -> dict[str, Any]:
        """The numbers of a result, without its lists and tables."""
        result = self.compute(**changes) if changes else self.computed()
        return {name: value for name, value in result.items() if not isinstance(value, list | dict)}

    def metric(self, cache: Path) -> Any:
        """The metric as `evaluate` makes it."""
        return load_metric(self.path, cache)

    def features(self, metric: Any) -> list[str]:
        """Names of the metric's features, which may be of alternative kinds."""
        return list(metric.features[0] if isinstance(metric.features, list) else metric.features)

    @property
    def measures(self) -> dict[str, Measure]:
        return {measure.name: measure for measure in measures_from(self.module.MEASURES)}

    # ----- what the module says

    def files(self) -> Mapping[str, bytes]:
        """The files of the metric's Space."""
        return metric_files(self.name)

    def test_it_has_a_card_and_requirements(self) -> None:
        assert {self.path.name, "app.py", "README.md", "requirements.txt"} <= set(self.files())

    @property
    def described(self) -> str | Path:
        """By which the project describes the metric: a name of its own, or the path of a third party's module."""
        return self.name

    def test_its_description_is_that_of_its_module(self) -> None:
        description = describe_metric(self.described)
        assert description.version == self.module.VERSION >= 1
        assert description.measures == measures_from(self.module.MEASURES)

    def test_measures_name_each_other(self) -> None:
        for measure in self.measures.values():
            for other in (measure.null, measure.floor, measure.spread):
                assert other is None or other in self.measures, f"{measure.name} names {other}"
            assert measure.range[0] < measure.range[1]
            assert measure.spread is None or measure.fitted
        assert next(iter(self.measures.values())).column == "score", "the first measure is the score of the samples"
        headings = [measure.heading for measure in self.measures.values()]
        assert len(set(headings)) == len(headings)

    def test_meanings_are_one_plain_phrase(self) -> None:
        for measure in self.measures.values():
            assert measure.meaning
            assert not measure.meaning.endswith(".")
            assert "\n" not in measure.meaning
            assert "|" not in measure.meaning, "it would end a cell of Markdown"

    @property
    def modules(self) -> list[ModuleType]:
        """The metric's module and its siblings."""
        return [import_module(f"audio_compositionality.metrics.{name[:-3]}") for name in module_files(self.path)]

    def test_doctests(self) -> None:
        outcomes = [doctest.testmod(module) for module in self.modules]
        assert sum(outcome.attempted for outcome in outcomes) > 0
        assert sum(outcome.failed for outcome in outcomes) == 0

    # ----- what the function returns

    def test_numbers_are_those_of_the_measures(self) -> None:
        assert list(self.numbers()) == list(self.measures)
        features = inspect.signature(self.function).parameters.values()
        optional = {name.name: name.default for name in features if name.default is not inspect.Parameter.empty}
        without = {name: optional[name] for name in self.example() if name in optional and name not in self.needed}
        assert list(self.numbers(**without)) == list(self.measures)

    def test_numbers_have_their_types_and_lie_in_their_ranges(self) -> None:
        for name, value in self.numbers().items():
            lowest, highest = self.measures[name].range
            assert value is None or type(value) in (float, int, bool), f"{name} is {value!r}"
            assert value is None or lowest - 1e-9 <= value <= highest + 1e-9, f"{name} is {value}"
            assert type(value) is not float or self.measures[name].digits > 0, (
                f"{name} is {value}, shown without digits"
            )

    def test_sampled_measures_are_means_of_their_columns(self) -> None:
        result = self.compute(return_scores=True)
        for measure in self.measures.values():
            if not measure.column:
                continue
            key = measure.column.replace("score", "scores")
            assert key in result, f"return_scores gives no list {key!r} for the column {measure.column!r}"
            column = result[key]
            assert (column is None) == (result[measure.name] is None), f"{key} and {measure.name}"
            if column is not None:
                assert result[measure.name] == pytest.approx(np.mean(column), abs=1e-12)
        assert "scores" not in self.computed()

    def test_order_of_samples_does_not_matter(self) -> None:
        example = self.example()
        place = np.arange(len(example[self.embeddings[0]]))
        movable = self.movable(example)
        place[movable] = np.random.default_rng(1).permutation(movable)
        moved = {name: self.rows(values, place) for name, values in example.items()}
        expected, result = self.numbers(), self.numbers(**moved)
        for name, value in expected.items():
            if name not in self.drawn:
                assert result[name] == pytest.approx(value, abs=1e-9), name

    def test_scale_of_embeddings_does_not_matter(self) -> None:
        # By a power of two, so that nothing is rounded otherwise.
        scaled = {name: 1024 * self.example()[name] for name in self.embeddings}
        assert self.numbers(**scaled) == pytest.approx(self.numbers(), abs=1e-12)

    def test_arrays_lists_and_tensors_of_any_precision_agree(self) -> None:
        narrow = {name: self.example()[name].astype(np.float32) for name in self.embeddings}
        expected = self.compute(**narrow)
        kinds: dict[str, Callable[[np.ndarray], Any]] = {
            "float64": lambda x: x.astype(np.float64),
            "list": lambda x: x.tolist(),
            "tensor": torch.from_numpy,
            "tensor with gradient": lambda x: torch.tensor(x, requires_grad=True),
        }
        for kind, converted in kinds.items():
            assert self.compute(**{name: converted(x) for name, x in narrow.items()}) == expected, kind
        rounded = {name: torch.tensor(x, dtype=torch.bfloat16) for name, x in narrow.items()}
        assert self.compute(**rounded) == self.compute(**{name: x.float() for name, x in rounded.items()})

    def test_inputs_are_left_as_they_were(self) -> None:
        example = self.example()
        copies = {name: np.array(values, copy=True) for name, values in example.items() if name in self.embeddings}
        self.function(**example | dict(self.options))
        for name, values in copies.items():
            np.testing.assert_array_equal(example[name], values)

    def test_embeddings_that_are_none_are_refused_by_name(self) -> None:
        for name in self.embeddings:
            matrix = self.example()[name]
            bad = matrix.copy()
            bad[3:, 1] = np.nan
            cases = {
                "not finite": (bad, f"{name} must be finite.* the first is row 3 with nan"),
                "too large": (np.where(np.isnan(bad), 1e200, bad), f"{name} must be finite"),
                "a vector": (matrix[0], rf"{name} must be \[n, dim\]"),
                "no rows": (matrix[:0], rf"{name} must be \[n, dim\].*shape \(0, "),
                "no columns": (matrix[:, :0], rf"{name} must be \[n, dim\].*, 0\)"),
                "ragged": ([[1.0, 2.0], [1.0]], f"{name} must be an array .* equal length"),
                "words": ([["x", "y"]], f"{name} must hold real numbers"),
                "complex": (matrix.astype(complex), f"{name} must hold real numbers"),
            }
            for value, message in cases.values():
                with pytest.raises(ValueError, match=message):
                    self.compute(**{name: value})
            with pytest.raises(ValueError, match=rf"\b{len(matrix) - 1}\b"):
                self.compute(**{name: matrix[:-1]})

    # ----- as a metric of `evaluate`

    def test_metric_equals_the_function(self, tmp_path: Path) -> None:
        assert self.metric(tmp_path).compute(**self.example(), **self.options) == self.computed()

    def test_metric_collects_batches_and_rows(self, tmp_path: Path) -> None:
        metric, example = self.metric(tmp_path), self.example()
        features = {name: example[name] for name in self.features(metric)}
        rest = {name: values for name, values in example.items() if name not in features}
        n = len(example[self.embeddings[0]])
        metric.add_batch(**{name: values[: n // 2] for name, values in features.items()})
        metric.add_batch(**{name: list(values[n // 2 : n - 1]) for name, values in features.items()})
        metric.add(**{name: values[n - 1] for name, values in features.items()})
        assert metric.compute(**rest, **self.options) == self.computed()

    def test_metric_names_a_missing_argument(self, tmp_path: Path) -> None:
        metric, example = self.metric(tmp_path), self.example()
        missing = self.features(metric)[-1]
        given = {name: values for name, values in example.items() if name != missing}
        with pytest.raises(ValueError, match=f"without {missing}"):
            metric.compute(**given)

    def test_metric_without_any_data_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="add"):
            self.metric(tmp_path).compute()

    @pytest.mark.slow
    def test_it_loads_by_name_and_by_path(self, tmp_path: Path) -> None:
        """In a process of its own, offline, from an empty folder, after registration."""
        empty = tmp_path / "empty"
        empty.mkdir()
        options = json.dumps(dict(self.options))
        home = str(tmp_path / "hf")
        printed = run_python("-c", _LOADED, self.name, str(self.path), options, cwd=empty, HF_HOME=home)
        assert json.loads(printed.splitlines()[-1]) == json.loads(json.dumps(self.computed(), default=repr))
        for name, content in module_files(self.path).items():
            copies = list((tmp_path / "hf" / "modules").rglob(f"evaluate-metric--{self.name}/*/{name}"))
            assert [copy.read_bytes() for copy in copies] == [content]


def run_python(*arguments: str, cwd: Path, **environment: str) -> str:
    """What a fresh Python prints; offline, and without settings of the user's caches."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    offline = {"HF_EVALUATE_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=inherited | offline | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
