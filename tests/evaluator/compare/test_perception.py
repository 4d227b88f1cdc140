"""Answers right or wrong from the sound and from a list of its events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.encoders.base import LETTERS, Model, ModelCard
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.evaluator.compare import comparison as comparison_module
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.formats import comparison_tables
from audio_compositionality.evaluator.compare.perception import Crossed, cross, perception_table, told_twin
from audio_compositionality.evaluator.report.profiles import model_profiles
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.registry import load_task
from audio_compositionality.tasks.shapes.asking import read_prompt

from ...tasks.questions import knowing, twin_rows
from ..report.test_questions import RATE, Questions


class Habitual(Model):
    """Takes the first option where it hears; where it is told what is heard, it knows, but for what lasts longest."""

    device, card = "cpu", ModelCard("org/habitual", "1", RATE, None, paradigm="instruction tuning")

    def __init__(self, data):
        self._told = iter([row for row in data.rows if row["split"] == "test" for _ in row["options"]])

    def answer(self, clips, prompts):
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt):
        if not prompt.startswith("These sounds were detected"):
            return "A"
        row = next(self._told)
        options = read_prompt(prompt.partition("\n\n")[2])[1]
        return "A" if row["task"] == "duration" else LETTERS[list(options).index(row["answer"])]


class Listener(Model):
    """Hears nothing of what lasts longest, and cannot count what it is told; else it knows.

    It looks answers up, by the clip's name where it hears, and in order where it is told.
    """

    device, card = "cpu", ModelCard("org/listener", "1", RATE, None, paradigm="instruction tuning")

    def __init__(self, data):
        self._heard = {f"{row['id']}/audio": row for row in data.rows}
        self._told = iter([row for row in data.rows if row["split"] == "test"])

    def answer(self, clips, prompts):
        return [self._answer(clip, prompt) for (clip,), prompt in zip(clips, prompts, strict=True)]

    def _answer(self, clip, prompt):
        if prompt.startswith("These sounds were detected"):
            assert not clip.waveform.any()
            row, unknown = next(self._told), "counting"
        else:
            row, unknown = self._heard[clip.id], "duration"
        return "no idea" if row["task"] == unknown else knowing(row)


@pytest.fixture
def compared(tmp_path, monkeypatch):
    data = Questions(12)
    models = [Listener(data), Controlled(Listener(data), CONTROLS["events-as-text"])]
    evaluate_models(models, data, [load_task("polybench")], RunOptions(out=tmp_path, progress=False))
    monkeypatch.setattr(comparison_module, "reopened_data", lambda source: data)
    (comparison,) = compare_results([tmp_path], data="mini")
    return comparison


def test_counts_by_hand() -> None:
    crossed = cross([1, 1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1, 0])
    assert crossed == Crossed(both=2, only_told=3, only_heard=1, neither=1)
    assert (crossed.n, crossed.not_heard, crossed.not_understood) == (7, 3 / 7, 2 / 7)


@pytest.mark.parametrize(
    ("heard", "told", "words"),
    [
        ([], [], "one or more"),
        ([1], [1, 0], "equally many"),
        ([[1]], [[1]], "equally many"),
        ([1, 0.5], [1, 0], "0.5 is neither"),
    ],
)
def test_what_cannot_be_counted(heard, told, words) -> None:
    with pytest.raises(InputError, match=words):
        cross(heard, told)


def test_what_is_not_heard_and_what_is_not_understood(compared) -> None:
    place = compared.labels.index("org/listener")
    assert compared.labels[told_twin(compared, place)] == "events-as-text:org/listener"
    assert told_twin(compared, told_twin(compared, place)) is None
    table = perception_table(compared, place)
    n = {task: sum(row["task"] == task for row in twin_rows(12)) for task in ("counting", "duration")}
    total = len(twin_rows(12))
    rows = {row.cells[0].value: [cell.value for cell in row.cells[1:]] for row in table.rows}
    assert rows["counting"] == [n["counting"], 0, 0, n["counting"], 0, 0.0, 1.0]
    assert rows["duration"] == [n["duration"], 0, n["duration"], 0, 0, 1.0, 0.0]
    assert rows["all"][:5] == [total, total - sum(n.values()), n["duration"], n["counting"], 0]
    assert rows["all"][5:] == pytest.approx([n["duration"] / total, n["counting"] / total])
    assert np.isclose(sum(rows["detection"][1:5]), rows["detection"][0])


def test_under_cyclic_orders_right_is_right_in_every_order(tmp_path, monkeypatch):
    data = Questions(12)
    models = [Habitual(data), Controlled(Habitual(data), CONTROLS["events-as-text"])]
    settings = {"orders": "cyclic"}
    evaluate_models(models, data, [load_task("polybench")], RunOptions(out=tmp_path, progress=False, settings=settings))
    monkeypatch.setattr(comparison_module, "reopened_data", lambda source: data)
    (compared,) = compare_results([tmp_path], data="mini")
    table = perception_table(compared, compared.labels.index("org/habitual"))
    rows = {row.cells[0].value: [cell.value for cell in row.cells[1:]] for row in table.rows}
    n = {task: sum(row["task"] == task for row in twin_rows(12)) for task in ("counting", "duration")}
    assert rows["counting"] == [n["counting"], 0, n["counting"], 0, 0, 1.0, 0.0]
    assert rows["duration"] == [n["duration"], 0, 0, 0, n["duration"], 0.0, 1.0]
    assert "only if the answer is right in every order" in table.legend[-1]


@pytest.mark.parametrize("differs", ["settings", "revision"])
def test_results_asked_in_other_ways_or_of_another_version_are_not_crossed(tmp_path, monkeypatch, differs):
    data, task = Questions(12), [load_task("polybench")]
    heard, told = Listener(data), Listener(data) if differs == "revision" else Habitual(data)
    if differs == "revision":
        told.card = replace(told.card, revision="12")
    else:
        heard.card = told.card
    evaluate_models([heard], data, task, RunOptions(out=tmp_path, progress=False))
    settings = {"orders": "cyclic"} if differs == "settings" else {}
    options = RunOptions(out=tmp_path, progress=False, settings=settings)
    evaluate_models([Controlled(told, CONTROLS["events-as-text"])], data, task, options)
    monkeypatch.setattr(comparison_module, "reopened_data", lambda source: data)
    (compared,) = compare_results([tmp_path], data="mini")
    place = next(n for n, one in enumerate(compared.results) if one.result.model.id == heard.card.id)
    assert told_twin(compared, place) is None


def test_it_stands_among_the_tables_and_on_the_page_of_the_model(compared) -> None:
    (table,) = [one for one in comparison_tables(compared) if one.name == "polybench-perception"]
    assert [row.cells[0].value for row in table.rows] == ["org/listener"] * 6
    profiles = {profile.label: [one.name for one in profile.tallies] for profile in model_profiles(compared)}
    assert "polybench-perception" in profiles["org/listener"]
    assert "polybench-perception" not in profiles["events-as-text:org/listener"]
