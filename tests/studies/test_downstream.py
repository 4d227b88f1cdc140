"""Predictive validity: partial rank correlations, the bootstrap over models, the downstream tasks and the rule."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from audio_compositionality.tasks.registry import load_tasks
from studies import downstream

TASKS = tuple(downstream.DECLARED.tasks)
TITLES = (*(score.title for score in downstream.DECLARED.scores), *downstream.DECLARED.others)


def representations(count=24, layers=1, seed=0):
    """Representations of `count` models: A-COAT predicts every task beyond recognition, all else is noise."""
    rng = np.random.default_rng(seed)
    found = []
    for model in range(count):
        scores = dict(zip(TITLES, rng.normal(size=len(TITLES)).tolist(), strict=True))
        tasks = {task: 2 * scores["A-COAT"] + scores["Instances: alone"] + 0.1 * rng.normal() for task in TASKS}
        one = {"model": f"model-{model}", "architecture": f"architecture-{model // 2}", "scores": scores}
        found += [one | {"tasks": tasks | {"single": float(rng.normal())}, "seconds": 1.0}] * layers
    return found


def test_the_declaration_names_measures_that_there_are():
    for score in downstream.DECLARED.scores:
        assert score.measure in {measure.name for measure in load_tasks([score.task])[0].info.measures}
    assert downstream.DECLARED.control in TITLES
    assert (len(TASKS), downstream.DECLARED.least_tasks) == (4, 2)


def test_a_partial_rank_correlation_is_that_of_residuals():
    values = np.random.default_rng(1).normal(size=(30, 3)) @ np.array([[1, 0.5, 0.2], [0, 1, 0.7], [0, 0, 1]])
    values[:5, 0] = values[0, 0]  # ties
    matrix = downstream.rank_correlations(values)
    assert matrix[0, 1] == pytest.approx(stats.spearmanr(values[:, 0], values[:, 1]).statistic)
    ranks = stats.rankdata(values, axis=0)
    rest = [ranks[:, k] - np.polyval(np.polyfit(ranks[:, 2], ranks[:, k], 1), ranks[:, 2]) for k in (0, 1)]
    assert downstream.partial_correlation(matrix, 0, 1, 2) == pytest.approx(stats.pearsonr(*rest).statistic)
    assert np.isnan(downstream.partial_correlation(matrix, 0, 1, 1))


@pytest.fixture
def few(monkeypatch):
    """Few resamples, and no predictors but A-COAT, the kept share and the control."""
    some = [one for one in downstream.DECLARED.scores if one.title in ("A-COAT", "Instances: alone", "Instances: kept")]
    declared = downstream.replace(downstream.DECLARED, scores=tuple(some), others={}, resamples=200)
    monkeypatch.setattr(downstream, "DECLARED", declared)


def test_the_bootstrap_draws_models_with_all_their_rows(few):
    (rows,) = downstream.resampled_rows(["b", "a", "a", "c", "a"], 1, seed=3)
    drawn = np.random.default_rng(3).integers(3, size=3)
    assert rows.tolist() == [row for number in drawn for row in ([1, 2, 4], [0], [3])[number]]
    # Layers that repeat their model leave the interval as it is, and SciPy's bootstrap gives it too.
    single, layered = (downstream.predictions(representations(layers=count))[0] for count in (1, 3))
    assert (single.models, layered.models, layered.representations) == (24, 24, 72)
    for task in TASKS:
        for name in ("value", "low", "high"):
            assert getattr(layered.plain[task], name) == pytest.approx(getattr(single.plain[task], name))
    columns = [
        [one[kind][name] for one in representations()] for kind, name in (("scores", "A-COAT"), ("tasks", "tagging"))
    ]
    expected = stats.bootstrap(
        columns,
        lambda x, y: stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=200,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    assert (single.plain["tagging"].low, single.plain["tagging"].high) == pytest.approx(tuple(expected), abs=0.04)


def test_tasks_are_solved_by_an_embedding_of_the_sources_and_not_by_a_constant():
    rng = np.random.default_rng(0)
    classes = {"train": np.repeat(np.arange(4), 2), "test": np.repeat(np.arange(4), 2)}
    of_recording = np.eye(4)[classes["test"]]
    mixed = {part: np.array([rng.permutation(4) < 1 + n % 4 for n in range(40)]) for part in ("train", "test")}
    # The first recording of each class sounds in the first half of the test mixtures.
    contained = np.array([mixed["test"][:, k // 2] & ((np.arange(40) < 20) == (k % 2 == 0)) for k in range(8)])
    names = ("single train", "single test", "mixture train", "mixture test", "interfered")
    blocks = (of_recording, of_recording, mixed["train"], mixed["test"], of_recording)
    starts = np.cumsum([0, *map(len, blocks)])
    parts = {name: slice(a, b) for name, a, b in zip(names, starts, starts[1:], strict=False)}
    material = downstream.Material(np.zeros((0, 0), np.float32), parts, classes, mixed, contained)
    solved = downstream.score_downstream(np.vstack(blocks).astype(float), material)
    assert {name: solved[name] for name in ("tagging", "few-shot", "single")} == {
        "tagging": pytest.approx(1),
        "few-shot": 1,
        "single": 1,
    }
    assert solved["counting"] > 0.95
    constant = downstream.score_downstream(np.ones((starts[-1], 3)), material)
    assert constant["counting"] == 0
    assert constant["few-shot"] == constant["single"] == 0.25
    assert constant["tagging"] < 0.7
    assert constant["retrieval"] < solved["retrieval"]


def test_the_command_prints_what_predicts_and_draws_it(tmp_path, few, capsys):
    found = representations()
    for number, one in enumerate(found):
        one["scores"]["Instances: kept"] = 0.5 if number else None
    (tmp_path / "representations").mkdir()
    for number, one in enumerate(found):
        (tmp_path / "representations" / f"{number}.json").write_text(json.dumps(one))
    downstream.main(["--tables", "--out", str(tmp_path), "--figure", str(tmp_path / "figure.svg")])
    printed = capsys.readouterr().out
    rows = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")]
        for line in printed.splitlines()
        if "|" in line
    }
    assert rows["A-COAT"][-2] == "yes"
    assert rows["A-COAT"][-3].startswith("4, 4, 4, ")
    assert rows["Instances: kept"][-2] == "no"
    assert rows["Instances: kept"][2] == "23, 23"
    assert "24 representations of 24 models, 12 architectures" in printed
    assert "Instances: kept" in (tmp_path / "figure.svg").read_text()
    with pytest.raises(SystemExit):
        downstream.main(["--tables", "--out", str(tmp_path / "empty")])
