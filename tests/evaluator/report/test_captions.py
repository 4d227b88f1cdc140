"""Tasks of captions on the page: what decides, what is heard beside which text, which model is judged and which not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData, rendered_preset
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.model_verdicts import verdicts_of
from audio_compositionality.evaluator.compare.summary import short_table, verdict_tables
from audio_compositionality.evaluator.compare.tables import score_table
from audio_compositionality.evaluator.compare.task_verdicts import Standing, task_verdicts
from audio_compositionality.evaluator.report.overview import overviews
from audio_compositionality.evaluator.report.page import write_report
from audio_compositionality.tasks.base import Outputs
from audio_compositionality.tasks.registry import load_task

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
    (verdict,) = task_verdicts(compared(folder, data))
    assert verdict.standings == dict.fromkeys(("twin", "description", "trivial"), Standing.ABOVE)
    words = list(dict.fromkeys(row.words for row in verdict.rows))
    assert words == ["its untrained twin", "bag-of-words", "chance"]
    assert "chance is 0.500" in verdict.baselines["trivial"][0].sentence
    (model,) = verdicts_of([compared(folder, data)]).models
    assert model.sentence == (
        "Above all baselines. CompA order: better than its untrained twin, bag-of-words and chance."
    )
    # A guesser is not above chance, however high its group.
    folder = results({"one": (0.17, 0.5)})
    (verdict,) = task_verdicts(compared(folder, data))
    assert verdict.standings["trivial"] is not Standing.ABOVE


def test_a_control_is_shown_and_not_judged(results, data):
    folder = results({"one": (0.5, 0.9), "sorted-words:one": (0.0, 0.5)})
    comparison = compared(folder, data)
    kinds = {result.label: result.kind for result in comparison.results}
    assert kinds == {"one": ModelKind.TRAINED, "sorted-words:one": ModelKind.CONTROL}
    assert [verdict.label for verdict in task_verdicts(comparison)] == ["one"]


def test_a_model_is_judged_apart_by_the_tasks_of_each_kind_of_model(results, write_results, data, tmp_path):
    folder = results({"one": (0.5, 0.9)})
    write_results(tmp_path / "coat", ["one", "log-mel-statistics"], tasks=["a_coat"])
    comparisons = compare_results([folder], data=None)
    verdicts = verdicts_of(comparisons)
    assert list(verdicts.judged) == ["audio encoders", "audio–text encoders"]
    tables = verdict_tables(verdicts)
    assert [table.columns[4].heading for table in tables] == ["above energy alone?", "above chance?"]
    assert "Tasks for audio–text encoders" in tables[1].caption


@pytest.mark.slow
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
    assert "Printed elsewhere, on other sounds" in page
    assert "Not comparable: CompA, arXiv 2310.08753, Table 2" in page
    assert "CompA-CLAP without stage 3" in page


# ----- one-dimensional embeddings of either sign, which know nothing


def signs(seed, n):
    """Two numbers of opposite sign for each of n items, [2 n, 1]: which of both is the positive one is drawn."""
    first = np.random.default_rng(seed).choice([-1.0, 1.0], n)
    return np.stack([first, -first], 1).reshape(-1, 1)


@pytest.fixture
def guessed(write_results, data, tmp_path):
    """The comparison of a model of such embeddings, whose luck is in group and not in match, with its controls."""
    task = load_task(TASK)
    rows = [row | {"captions": row["captions"][:2]} for row in data.configuration(TASK).rows]
    text = signs(0, len(rows))
    # Signs of clips that are right of a few more items than not, as they are by chance in one draw of two.
    audio = next(
        clips
        for seed in range(1, 100)
        if (clips := signs(seed, len(rows))) is not None and 0.5 < (clips == text)[::2].mean() < 0.55
    )
    scores = task.score(rows, Outputs(audio, text), {}, "cpu", False)
    for name, columns, measures in (
        ("guess", scores.columns, scores.measures),
        ("untrained:guess", {"score": won(0, 1), "score_match": won(0.5, 2)}, {"trivial_group": 0.0}),
        ("bag-of-words", {"score": won(0, 1), "score_match": won(0.5, 3)}, {"trivial_group": 0.0}),
    ):
        model = {"model": {"paradigm": PARADIGMS[name]}} if name in PARADIGMS else {}
        stated = {"chance_match": 0.5, "chance_group": 1 / 6, **measures}
        write_results(tmp_path, [name], data, tasks=[TASK], measures=stated, columns=dict(columns), **model)
    return compared(tmp_path, data)


def test_signs_that_know_nothing_are_above_nothing(guessed):
    place = guessed.labels.index("guess")
    measures = guessed.results[place].result.measures
    assert measures["group"] > 2 / 6, "chance of group is 1/6, and they are far above it"
    assert measures["trivial_group"] > 0.4
    (verdict,) = task_verdicts(guessed)
    assert not [row.outcome for row in verdict.rows if row.standing is Standing.ABOVE]
    group = {row.baseline: row.outcome for row in verdict.rows if row.measure == "CompA group"}
    assert "but is not shown to be above its own trivial baseline of group" in group["twin"]
    assert "(the larger of chance and its trivial baseline is 0." in group["trivial"]


def test_their_group_stands_beside_its_trivial_and_not_beside_chance_alone(guessed):
    place = guessed.labels.index("guess")
    trivial = guessed.results[place].result.measures["trivial_group"]
    for table in (short_table(guessed), score_table(guessed)):
        column = [column.heading for column in table.columns].index("CompA group")
        note = table.rows[place].cells[column].note
        assert f"trivial baseline of group {trivial:.3f}" in note
        assert "chance" not in note.split("trivial baseline of group")[0]
        assert any("the larger if there are two" in sentence for sentence in table.legend)
    group = overviews(guessed)[0]
    assert group.chance is None
    (line,) = group.lines
    assert line.least_text == f"{trivial:.3f}"
    assert f"has to be above {trivial:.3f}" in group.alternative
