"""Tasks of captions on the page: what decides, what is heard beside which text, which model is judged and which not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.evaluator.compare.benchmarks import by_benchmark
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.conclusions import judged_by_kind, model_verdicts
from audio_compositionality.evaluator.compare.kinds import ModelKind
from audio_compositionality.evaluator.compare.summary import verdict_tables
from audio_compositionality.evaluator.compare.verdicts import Answer, verdicts
from audio_compositionality.evaluator.figures.benchmarks import benchmark_figures
from audio_compositionality.evaluator.report.page import write_report

TASK, ITEMS = "comp_a_order", 60

PARADIGMS = {"bag-of-words": "none (baseline)", "sorted-words:one": "control (the words of every text sorted)"}


@pytest.fixture(scope="module")
def data():
    few = rendered_preset("mini", recipes=[TASK], items=ITEMS, sample_rate=16_000)
    return RenderedData("few", few.settings)


def won(share, seed):
    """Ones and zeros, so many of them ones."""
    ones = np.arange(ITEMS) < round(share * ITEMS)
    return np.random.default_rng(seed).permutation(ones).astype(np.float64)


@pytest.fixture
def results(write_results, data, tmp_path):
    """`results({name: (group, match), …})`: a folder with results of these shares."""

    def made(shares):
        for seed, (name, (group, match)) in enumerate(shares.items()):
            changes = {"columns": {"score": won(group, seed), "score_match": won(match, seed + 50)}}
            if name in PARADIGMS:
                changes["model"] = {"paradigm": PARADIGMS[name]}
            chances = {"chance_match": 0.5, "chance_group": 1 / 6}
            write_results(tmp_path, [name], data, tasks=[TASK], measures=chances, **changes)
        return tmp_path

    return made


def compared(folder, data):
    (comparison,) = compare_results([folder], data=data)
    return comparison


def test_match_decides_where_group_cannot_tell_little_from_nothing(results, data):
    folder = results({"one": (0.02, 0.95), "untrained:one": (0.0, 0.45), "bag-of-words": (0.0, 0.5)})
    (verdict,) = verdicts(compared(folder, data))
    assert [question.answer for question in verdict.questions] == [Answer.YES] * 3
    assert [question.words for question in verdict.questions] == ["its untrained twin", "bag-of-words", "chance"]
    assert "chance reaches 0.500" in verdict.questions[2].sentence
    (model,) = model_verdicts([compared(folder, data)])
    assert model.conclusion == (
        "Above all three: neither its untrained twin, nor bag-of-words, nor chance explains its scores."
    )


def test_who_knows_nothing_is_not_above_chance_however_high_its_group(results, data):
    folder = results({"one": (0.17, 0.5), "untrained:one": (0.0, 0.45), "bag-of-words": (0.0, 0.5)})
    (verdict,) = verdicts(compared(folder, data))
    assert verdict.questions[2].answer is not Answer.YES
    assert not verdict.is_evidence


def test_a_control_is_shown_and_not_judged(results, data):
    folder = results({"one": (0.5, 0.9), "sorted-words:one": (0.0, 0.5)})
    comparison = compared(folder, data)
    kinds = {result.label: result.kind for result in comparison.results}
    assert kinds == {"one": ModelKind.TRAINED, "sorted-words:one": ModelKind.CONTROL}
    assert [verdict.label for verdict in verdicts(comparison)] == ["one"]


def test_a_model_is_judged_apart_by_the_tasks_of_each_kind_of_model(results, write_results, data, tmp_path):
    folder = results({"one": (0.5, 0.9)})
    write_results(tmp_path / "coat", ["one", "log-mel-statistics"], tasks=["a_coat"])
    comparisons = compare_results([folder], data=None)
    groups = judged_by_kind(comparisons, model_verdicts(comparisons))
    assert {group.kind: group.words["floor"] for group in groups} == {
        "audio encoders": "energy alone",
        "audio–text encoders": "chance",
    }
    tables = verdict_tables(comparisons, model_verdicts(comparisons))
    assert [table.columns[3].heading for table in tables] == ["above energy alone?", "above chance?"]
    assert "By the tasks of audio–text encoders" in tables[1].caption


def test_the_page_shows_captions_beside_the_clips_and_says_nothing_of_energy(results, data, tmp_path):
    folder = results(
        {"one": (0.3, 0.9), "untrained:one": (0.0, 0.45), "bag-of-words": (0.0, 0.5), "sorted-words:one": (0.0, 0.5)}
    )
    page = write_report([folder], tmp_path / "page.html", data=data, progress=False).read_text()
    rows = {row["id"]: row for row in data.configuration(TASK).rows}
    heard = re.findall(r'<h4 id="comp_a_order-1-[a-z]+-\d">.*?</article>', page, re.DOTALL)
    assert len(heard) == 4
    for sample in heard:
        row = rows[re.search(r'class="id">([^<]+)<', sample)[1]]
        said = re.findall(r'class="said">“<bdi>([^<]+)</bdi>', sample)
        assert said == row["captions"]
        assert sample.count("<audio") == len(row["captions"])
        assert ": margin " in sample
    assert "energy alone" not in page
    assert "match_group" not in page
    assert "Group against match" in page


def test_the_figure_of_the_benchmark_is_drawn(results, data):
    folder = results({"one": (0.3, 0.9), "untrained:one": (0.0, 0.45), "sorted-words:one": (0.0, 0.5)})
    (benchmark,) = by_benchmark(compare_results([folder], data=data))
    (described,) = benchmark_figures(benchmark)
    (axes,) = described.draw().axes
    assert axes.get_title(loc="left") == "order"
    lines = [line for line in axes.lines if line.get_linestyle() == "--"]
    assert next(tuple(line.get_xdata()) for line in lines) == (0.5, 0.5)
