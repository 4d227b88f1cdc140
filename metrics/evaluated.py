"""Descriptions of metrics: the class for the `evaluate` library, measures, and papers as BibTeX."""

import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SCENE = ("timbre_label", "pitch_label", "rate_label", "amplitude_label")
"""Fields of a source of a scene."""


class Evaluated:
    """Base class of every metric, before `evaluate.Metric`, the only other base.

    Attributes:
        function: the function that computes the metric.
        columns: kinds of the features, or several alternatives; `evaluate` takes the first that fits. Strings stay
            strings even if they look like numbers. For the kinds see `feature_of`.
        whole: whether `compute` needs all features if it gets one.
        instead: further arguments that replace missing features.
        citation: BibTeX.
    """

    function: Callable[..., dict[str, Any]]
    columns: Sequence[Mapping[str, str]]
    whole: bool
    instead: Sequence[str]
    citation: str

    writer: Any
    num_process: int

    def _info(self) -> Any:
        import datasets
        import evaluate

        kinds = [
            datasets.Features({name: feature_of(kind) for name, kind in columns.items()}) for columns in self.columns
        ]
        function = type(self).function
        told = inspect.getdoc(sys.modules[function.__module__]) or ""
        papers = dict.fromkeys(re.findall(r"\d{4}\.\d{5}", self.citation + told + (function.__doc__ or "")))
        return evaluate.MetricInfo(
            description=told.partition("\n\n>>>")[0],
            citation=self.citation,
            inputs_description=inspect.getdoc(function),
            features=kinds if len(kinds) > 1 else kinds[0],
            reference_urls=[f"https://arxiv.org/abs/{paper}" for paper in papers],
        )

    def compute(self, **inputs: Any) -> dict[str, Any] | None:
        """Score the data given here, or the data collected by `add` and `add_batch`."""
        needed = [*self.columns[0], *self.instead]
        given = [name for name in needed if inputs.get(name) is not None]
        if self.whole and given and len(given) < len(needed):
            missing = ", ".join(name for name in needed if name not in given)
            wanted = f"{', '.join(needed[:-1])} and {needed[-1]}"
            raise ValueError(f"compute() got {', '.join(given)} without {missing}; it needs {wanted}.")
        if given and self.writer is None and self.num_process == 1:
            # Nothing was collected before, so an Arrow file would only cost time.
            return self._compute(**inputs)
        result: dict[str, Any] | None = super().compute(**inputs)  # type: ignore[misc]
        return result

    def _compute(self, **inputs: Any) -> dict[str, Any]:
        return type(self).function(**inputs)


def feature_of(kind: str) -> Any:
    """Return the feature of a column.

    "number", "integer" and "text" are single entries; "numbers", "texts" and "vectors" are lists of them; a "scene" is
    a list of sources, and "json" is anything.
    """
    import datasets

    text, number = datasets.Value("string"), datasets.Value("float64")
    kinds = {
        "number": number,
        "integer": datasets.Value("int64"),
        "text": text,
        "numbers": datasets.List(number),
        "texts": datasets.List(text),
        "vectors": datasets.List(datasets.List(number)),
        "scene": datasets.List(dict.fromkeys(SCENE, text)),
        "json": datasets.Json(),
    }
    return kinds[kind]


def metric_class(
    function: Callable[..., dict[str, Any]],
    columns: Mapping[str, str] | Sequence[Mapping[str, str]],
    *,
    citation: str,
    whole: bool = True,
    instead: Sequence[str] = (),
) -> Any:
    """Return the class of a metric, named after the function in camel case; arguments are attributes of `Evaluated`.

    Returns None if `evaluate` is not imported, which takes seconds and is the only user of the class. All other users
    of a metric call its function.
    """
    if "evaluate" not in sys.modules:
        return None
    import evaluate

    names = {
        "__module__": function.__module__,
        "__doc__": f"`{function.__name__}` as a metric of the `evaluate` library; it calls the function.",
        "function": staticmethod(function),
        "columns": [columns] if isinstance(columns, Mapping) else list(columns),
        "whole": whole,
        "instead": tuple(instead),
        "citation": citation,
    }
    return type(function.__name__.title().replace("_", ""), (Evaluated, evaluate.Metric), names)


# ----- measures: fields by name, as in the MEASURES of a module
Fields = dict[str, Any]

MOST = 1e15
"""The value for "no bound" in ranges."""


def measure(heading: str, meaning: str, **more: Any) -> Fields:
    """Return the fields of a measure from −1 to 1, such as a cosine, unless `more` has its range."""
    return {"heading": heading, "meaning": meaning, **more}


def ratio(heading: str, meaning: str, **more: Any) -> Fields:
    """Return the fields of a measure that is 1 at most and has no lower bound, such as R²."""
    return {"heading": heading, "meaning": meaning, "range": (-MOST, 1.0), **more}


def share(heading: str, meaning: str, **more: Any) -> Fields:
    """Return the fields of a measure from 0 to 1."""
    return {"heading": heading, "meaning": meaning, "range": (0.0, 1.0), **more}


def count(heading: str, meaning: str, least: float = 1.0, **more: Any) -> Fields:
    """Return the fields of a number of things, hidden in tables unless `more` says otherwise."""
    return {"heading": heading, "meaning": meaning, "range": (least, MOST), "digits": 0, "shown": False} | more


def hidden(fields: Fields) -> Fields:
    """Return fields with `shown` set to False, for measures that tables leave out."""
    return {**fields, "shown": False}


# ----- papers as BibTeX, each one literal: they are read without an import
COAT = """\
@misc{a_coat_a_tre_2026,
  author = {Chen, Chuyang and Steers, Bea and McFee, Brian and Bello, Juan},
  title = {Evaluating Compositional Structure in Audio Representations},
  year = {2026},
  eprint = {2603.13685},
  archivePrefix = {arXiv},
  note = {ICASSP 2026}
}
"""
"""arXiv 2603.13685: A-COAT and A-TRE."""

AXES = """\
@misc{representation_evaluation_2025,
  author = {Plachouras, Christos and Guinot, Julien and Fazekas, George and Quinton, Elio and Benetos, Emmanouil
            and Pauwels, Johan},
  title = {Towards a Unified Representation Evaluation Framework Beyond Downstream Tasks},
  year = {2025},
  eprint = {2505.06224},
  archivePrefix = {arXiv},
  note = {IJCNN 2025}
}
"""
"""arXiv 2505.06224: informativeness, equivariance, invariance and disentanglement."""

COMPA = """\
@inproceedings{compa_2024,
  author = {Ghosh, Sreyan and Seth, Ashish and Kumar, Sonal and Tyagi, Utkarsh and Evuru, Chandra Kiran and
            Ramaneswaran, S. and Sakshi, S. and Nieto, Oriol and Duraiswami, Ramani and Manocha, Dinesh},
  title = {{CompA}: Addressing the Gap in Compositional Reasoning in Audio-Language Models},
  booktitle = {International Conference on Learning Representations},
  year = {2024},
  eprint = {2310.08753},
  archivePrefix = {arXiv}
}
"""
"""arXiv 2310.08753: CompA."""
