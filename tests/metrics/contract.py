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
from scipy.stats import ortho_group

from audio_compositionality.metrics import metric_file
from audio_compositionality.push_scripts.spaces import metric_files
from audio_compositionality.tasks.base import Measure
from audio_compositionality.tasks.metric_files import describe_metric, measures_from


def load_metric(metric: str | Path, cache: Path) -> Any:
    """A metric as `evaluate` makes it, by its name or its path."""
    return evaluate.load(str(metric_file(metric) if isinstance(metric, str) else metric), cache_dir=str(cache))


def example_of(metric: str) -> dict[str, Any]:
    """Arguments of a metric, as small as they show something: the `example` of its tests."""
    example: dict[str, Any] = import_module(f".test_{metric}", __package__).example()
    return example


class MetricContract:
    """Tests of a metric, from its example, its ``MEASURES`` and the features that it declares to `evaluate`.

    Attributes:
        name: of the metric.
        options: given with every call, such as a small number of steps.
        embeddings: arguments that are matrices of embeddings; the scores must not depend on their scale.
        drawn: numbers that depend on the order of samples, since they are means over random draws.
        needed: arguments that may be left out only where something else stands for them, such as similarities for
            embeddings.
        turns: whether a rotation of the embeddings leaves the numbers what they are.
        origin: numbers that a shift of the embeddings changes; None: all.
        quick: given beside the options where the way to compute is of no account.
        at_constant: numbers of embeddings that are all one vector.
    """

    name: str
    options: ClassVar[Mapping[str, Any]] = {}
    embeddings: ClassVar[Sequence[str]]
    drawn: ClassVar[Sequence[str]] = ()
    needed: ClassVar[Sequence[str]] = ()
    turns: ClassVar[bool] = True
    origin: ClassVar[Sequence[str] | None] = None
    quick: ClassVar[Mapping[str, Any]] = {}
    at_constant: ClassVar[Mapping[str, Any]] = {}

    _result: ClassVar[dict[str, Any]]

    def rows(self, values: Any, place: np.ndarray) -> Any:
        """Rows of an argument; by default of an array, a list, or a dictionary of these."""
        if isinstance(values, Mapping):
            return {name: self.rows(column, place) for name, column in values.items()}
        return values[place] if isinstance(values, np.ndarray) else [values[row] for row in place]

    def movable(self, example: Mapping[str, Any]) -> np.ndarray:
        """Numbers of the samples that may change places without a change of the numbers; by default all."""
        return np.arange(self.rows_of(example))

    def rows_of(self, example: Mapping[str, Any]) -> int:
        return len(example[(*self.embeddings, *self.needed)[0]])

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
        return example_of(self.name)

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
        assert {self.path.name, "README.md", "requirements.txt"} <= set(self.files())

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
            for other in (measure.null, measure.trivial, measure.spread):
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

    def test_its_docstrings_have_examples(self) -> None:
        """They are run with those of all modules."""
        assert any(tested.examples for tested in doctest.DocTestFinder().find(self.module))

    # ----- what the function returns

    def test_numbers_are_those_of_the_measures(self) -> None:
        assert list(self.numbers()) == list(self.measures)
        features = inspect.signature(self.function).parameters.values()
        optional = {name.name: name.default for name in features if name.default is not inspect.Parameter.empty}
        without = {name: optional[name] for name in self.example() if name in optional and name not in self.needed}
        assert list(self.numbers(**without)) == list(self.measures)

    def test_numbers_have_their_types_and_lie_in_their_ranges(self) -> None:
        self.check_ranges(self.numbers())

    def check_ranges(self, result: Mapping[str, Any]) -> None:
        for name, measure in self.measures.items():
            value, (lowest, highest) = result[name], measure.range
            assert value is None or type(value) in (float, int, bool), f"{name} is {value!r}"
            assert value is None or lowest - 1e-9 <= value <= highest + 1e-9, f"{name} is {value}"
            assert type(value) is not float or measure.digits > 0, f"{name} is {value}, shown without digits"

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
        place = np.arange(self.rows_of(example))
        movable = self.movable(example)
        place[movable] = np.random.default_rng(1).permutation(movable)
        moved = {name: self.rows(values, place) for name, values in example.items()}
        result = self.compute(**moved)
        for name, value in self.numbers().items():
            if name not in self.drawn:
                assert result[name] == pytest.approx(value, abs=1e-9), name
        # Draws do not depend on it either.
        for name, interval in self.computed().get("intervals", {}).items():
            assert result["intervals"][name] == pytest.approx(interval, abs=1e-9), name

    def test_scale_of_embeddings_does_not_matter(self) -> None:
        # By a power of two, so that nothing is rounded otherwise.
        scaled = {name: 2.0**-300 * self.example()[name] for name in self.embeddings}
        assert self.numbers(**scaled) == pytest.approx(self.numbers(), abs=1e-12)

    def check_equal(self, result: Mapping[str, Any], without: Sequence[str] = ()) -> None:
        for name, value in self.numbers().items():
            if name not in without:
                assert result[name] == pytest.approx(value, abs=1e-6), name

    def test_rotation_and_shift_of_embeddings_do_not_matter(self) -> None:
        example = {name: np.asarray(self.example()[name], dtype=float) for name in self.embeddings}
        if self.turns and example:
            rotation = ortho_group.rvs(next(iter(example.values())).shape[-1], random_state=5)
            self.check_equal(self.numbers(**{name: x @ rotation for name, x in example.items()}))
        if self.origin is not None:
            self.check_equal(self.numbers(**{name: x + 50 for name, x in example.items()}), self.origin)

    def test_embeddings_without_information_give_numbers_in_their_ranges(self) -> None:
        """Of one vector for all, with and without rounding, of two points, and of a single clip that stands apart."""
        rng = np.random.default_rng(6)
        shapes = {name: np.shape(self.example()[name]) for name in self.embeddings}
        vector = rng.normal(size=next(iter(shapes.values()), (1,))[-1]).astype(np.float32)
        kinds: dict[str, Callable[[tuple[int, ...]], np.ndarray]] = {
            "constant": lambda shape: np.broadcast_to(vector, shape),
            "zeros": np.zeros,
            "two points": lambda shape: np.broadcast_to(rng.integers(2, size=(*shape[:-1], 1)), shape) * 1e6,
            "one apart": lambda shape: np.eye(shape[0], 1).reshape(-1, *[1] * (len(shape) - 1)) * np.ones(shape),
        }
        for kind, make in kinds.items():
            given = {name: make(shape) for name, shape in shapes.items()}
            result = self.compute(**given, return_scores=True)
            assert json.dumps(result, allow_nan=False)
            self.check_ranges(result)
            for name, value in self.at_constant.items() if kind == "constant" else ():
                assert result[name] == (value if value is None else pytest.approx(value, abs=1e-12)), name

    def test_columns_of_another_length_are_refused_by_name(self) -> None:
        example = self.example()
        columns = {name: values for name, values in example.items() if name not in self.embeddings}
        rows = self.rows_of(example)
        for name, values in columns.items():
            if not isinstance(values, Mapping) and len(values) == rows:
                with pytest.raises(ValueError, match=rf"{name}\b.*\b{rows - 1}\b"):
                    self.compute(**{name: values[:-1]})

    def test_arrays_lists_and_tensors_of_any_precision_agree(self) -> None:
        narrow = {name: self.example()[name].astype(np.float32) for name in self.embeddings}
        expected = self.compute(**self.quick, **narrow)
        kinds: dict[str, Callable[[np.ndarray], Any]] = {
            "list": lambda x: x.tolist(),
            "tensor with gradient": lambda x: torch.tensor(x, requires_grad=True),
        }
        for kind, converted in kinds.items():
            assert self.compute(**self.quick, **{name: converted(x) for name, x in narrow.items()}) == expected, kind
        rounded = {name: torch.tensor(x, dtype=torch.bfloat16) for name, x in narrow.items()}
        as_floats = {name: x.float() for name, x in rounded.items()}
        assert self.compute(**self.quick, **rounded) == self.compute(**self.quick, **as_floats)

    def test_another_seed_gives_other_numbers(self) -> None:
        if "seed" in inspect.signature(self.function).parameters:
            assert self.numbers(seed=1) != self.numbers()

    def test_inputs_are_left_as_they_were(self) -> None:
        example = self.example()
        copies = {name: np.array(values, copy=True) for name, values in example.items() if name in self.embeddings}
        self.function(**example | dict(self.options))
        for name, values in copies.items():
            np.testing.assert_array_equal(example[name], values)

    def test_embeddings_that_are_none_are_refused_by_name(self) -> None:
        for name in self.embeddings:
            matrix = self.example()[name]
            bad, axes = matrix.copy(), r"\[n, dim\]" if matrix.ndim == 2 else r"\[n, K, dim\]"
            ragged: Any = [[1.0, 2.0], [1.0]] if matrix.ndim == 2 else [[[1.0], [2.0]], [[1.0]]]
            bad[3:, ..., 1] = np.nan
            cases = {
                "not finite": (bad, f"{name} must be finite.* the first is row 3 with nan"),
                "too large": (np.where(np.isnan(bad), 1e200, bad), f"{name} must be finite"),
                "a vector": (matrix[0], rf"{name} must be {axes}"),
                "no rows": (matrix[:0], rf"{name} must be {axes}.*shape \(0, "),
                "no columns": (matrix[..., :0], rf"{name} must be {axes}.*, 0\)"),
                "ragged": (ragged, f"{name} must be an array .* equal length"),
                "words": (np.full(matrix.shape, "x"), f"{name} must hold real numbers"),
                "complex": (matrix.astype(complex), f"{name} must hold real numbers"),
            }
            if len(self.embeddings) > 1:
                cases["a column less"] = (matrix[..., 1:], rf"\b{name}\b.* {matrix.shape[-1] - 1}\b")
            for value, message in cases.values():
                with pytest.raises(ValueError, match=message):
                    self.compute(**{name: value})
            with pytest.raises(ValueError, match=rf"\b{len(matrix) - 1}\b"):
                self.compute(**{name: matrix[:-1]})

    # ----- as a metric of `evaluate`

    def test_metric_collects_batches_and_rows(self, tmp_path: Path) -> None:
        metric, example = self.metric(tmp_path), self.example()
        features = {name: example[name] for name in self.features(metric)}
        rest = {name: values for name, values in example.items() if name not in features}
        n = self.rows_of(example)
        metric.add_batch(**{name: values[: n // 2] for name, values in features.items()})
        metric.add_batch(**{name: list(values[n // 2 : n - 3]) for name, values in features.items()})
        metric.add(**{name: values[n - 3] for name, values in features.items()})
        last = {name: values[n - 2 :] for name, values in features.items()}
        assert metric.compute(**last, **rest, **self.options) == self.computed()

    def test_metric_names_a_missing_argument(self, tmp_path: Path) -> None:
        metric, example = self.metric(tmp_path), self.example()
        missing = self.features(metric)[-1]
        given = {name: values for name, values in example.items() if name != missing}
        with pytest.raises(ValueError, match=f"without {missing}"):
            metric.compute(**given)
        with pytest.raises(ValueError, match="add"):
            self.metric(tmp_path).compute()


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
