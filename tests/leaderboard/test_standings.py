"""What leads on the board: only what is above its twin; the overview over all tasks, and what is said of one model."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path

import pytest

from audio_compositionality.evaluator.compare.loading import ModelKind
from audio_compositionality.evaluator.compare.task_verdicts import Standing
from audio_compositionality.leaderboard.board import Board, Rejected
from audio_compositionality.leaderboard.components import BOARD_CSS
from audio_compositionality.leaderboard.standings import (
    benchmark_names,
    data_names,
    model_conclusion,
    standing_columns,
    standing_html,
    standing_rows,
)
from audio_compositionality.leaderboard.tables import board_table, columns, notes, ordered, verdict_words
from audio_compositionality.support.table import cell_text
from audio_compositionality.tasks.registry import load_task

MAINTAINED = "2026-02-01T00:00:00+00:00"
DATA = "mini (data abababab)"  # they are not the preset's


def board_of(*entries):
    return Board("c", entries, tuple[Rejected, ...]())


def rows_of(*entries):
    board = board_of(*entries)
    return board.rows("a_coat", entries[0].data)


@pytest.fixture
def learnt(make_scored):
    """A model that is above its twin and above all other bars, with those."""
    return (
        make_scored("org/good", 0.4, 1, submitter="eve", verified_on=MAINTAINED),
        make_scored("untrained:org/good", 0.2, 2, submitter="eve", verified_on=MAINTAINED),
        *(
            make_scored(name, 0.1, seed, model={"paradigm": "baseline"}, verified_on=MAINTAINED)
            for name, seed in (("log-mel-statistics", 3), ("modulation-statistics", 60))
        ),
    )


def test_noise_never_leads_whatever_the_order_and_the_column(make_scored, learnt, coat):
    noise = [
        make_scored("org/noise", 0.925, 4, submitter="bob", verified_on=MAINTAINED),  # no twin
        make_scored("untrained:org/noise-2", 0.95, 5, submitter="bob", verified_on=MAINTAINED),
        make_scored("org/tie", 0.91, 6),
        make_scored("untrained:org/tie", 0.90, 7, model={"paradigm": "untrained"}),
        make_scored("org/worse", 0.8, 8),
        make_scored("untrained:org/worse", 0.9, 9),
    ]
    # Above its twin, but not above the baseline.
    plain = make_scored("org/plain", 0.11, 10), make_scored("untrained:org/plain", 0.02, 11)
    rows = rows_of(*noise, *learnt, *plain)
    for heading in ("adjusted", "model", "A-COAT", "verdict", "dim", "date"):
        for ascending in (False, True):
            shown = [row.entry.model for row in ordered(coat, rows, heading, ascending=ascending)]
            assert shown[:2] == ["org/good", "org/plain"], (heading, ascending)
    said = {row.entry.model: verdict_words(row) for row in rows}
    assert said["org/good"] == "▲ above"
    assert said["org/plain"] == "○ not shown"
    assert said["org/noise"] == "? cannot tell: no evidence of learning yet"
    assert said["org/tie"] == "○ no evidence of learning yet"
    assert said["org/worse"] == "▼ below: no evidence of learning yet"
    assert said["untrained:org/noise-2"] == said["log-mel-statistics"] == "not judged"
    # A network of random weights under an untrained name is none of the models, whatever its card says.
    kinds = {row.entry.model: row.entry.kind for row in rows}
    assert kinds["untrained:org/noise-2"] is ModelKind.UNTRAINED
    assert kinds["log-mel-statistics"] is ModelKind.BASELINE


def test_difference_and_kind_are_columns(learnt, coat):
    rows = ordered(coat, rows_of(*learnt), "adjusted")
    lines = [
        {c.heading: cell_text(cell, c) for cell, c in zip(row.cells, columns(coat), strict=True)}
        for row in board_table(coat, rows).rows
    ]
    assert lines[0]["above its twin by"].startswith("+0.200 (95% CI 0.173 to 0.225; adjusted p < ")
    assert [line["kind"] for line in lines] == ["model", "untrained network", "baseline", "baseline"]
    assert [line["above its twin by"] for line in lines[1:]] == ["–"] * 3


def test_nobody_puts_down_the_entry_of_another_with_a_twin_or_a_baseline(make_scored, learnt):
    def standing(*more):
        (row,) = (row for row in rows_of(*learnt, *more) if row.entry.model == "org/good")
        return row.verdict.standing

    def twin(**changes):
        return make_scored("untrained:org/good", 0.9, 12, **changes)

    def level(**changes):
        return make_scored("rms", 0.9, 13, model={"paradigm": "baseline"}, **changes)

    assert standing() is Standing.ABOVE
    for entry, expected in ((twin, Standing.NOT_SHOWN), (level, Standing.BELOW)):
        assert standing(entry(submitter="bob", verified_on=MAINTAINED)) is Standing.ABOVE
        # Reported: nobody knows by whom.
        assert standing(entry()) is Standing.ABOVE
        # Those of the maintainers count, who have no name here; with other settings nothing compares.
        assert standing(entry(verified_on=MAINTAINED)) is expected
        assert standing(entry(verified_on=MAINTAINED, settings={"other": 1})) is Standing.ABOVE
    # Pairs that tie.
    pairs = [make_scored(f"{of}org/{k}", 0.4, k) for k in range(40) for of in ("", "untrained:")]
    barely = [make_scored("org/bare", 0.36, 90, half=0.03), make_scored("untrained:org/bare", 0.3, 91, half=0.03)]
    bare, among = (
        next(row for row in rows_of(*learnt, *barely, *more) if row.entry.model == "org/bare") for more in ((), pairs)
    )
    assert bare.is_learnt
    assert bare.verdict == among.verdict


def test_the_twin_of_another_counts_where_there_is_none_else(make_scored, learnt):
    model, _, *plain = learnt
    twin = make_scored("untrained:org/good", 0.2, 12, submitter="bob", verified_on=MAINTAINED)
    (row,) = (row for row in rows_of(model, twin, *plain) if row.verdict)
    assert row.is_learnt


def test_a_reported_twin_lifts_no_verified_model(make_scored, learnt):
    noise = make_scored("org/noise", 0.925, 14, submitter="bob", verified_on=MAINTAINED)
    twin = make_scored("untrained:org/noise", 0.1, 15)
    said = {row.entry.model: verdict_words(row) for row in rows_of(*learnt, noise, twin)}
    assert said["org/noise"] == "? cannot tell: no evidence of learning yet"
    # A reported model is a word itself.
    noise = make_scored("org/noise", 0.925, 14)
    said = {row.entry.model: verdict_words(row) for row in rows_of(*learnt, noise, twin)}
    assert said["org/noise"] == "▲ above"


def test_an_older_version_has_no_verdict(make_scored):
    older = [make_scored(id, 0.4, number, task_version=99) for number, id in enumerate(("org/a", "untrained:org/a"))]
    rows = rows_of(*older)
    assert {verdict_words(row) for row in rows} == {"not judged"}
    assert data_names(board_of(*older)) == []
    assert model_conclusion(board_of(*older), "org/a").endswith("nothing may be concluded.")


@pytest.fixture
def several(make_scored, learnt):
    """Models in two benchmarks, one of them on request."""
    entries = list(learnt)
    entries.append(make_scored("org/noise", 0.925, 4, submitter="bob", verified_on=MAINTAINED))
    for number, (id, value) in enumerate({"org/good": 0.5, "untrained:org/good": 0.4, "org/other": 0.6}.items(), 20):
        for task in ("a_tre", "comp_a_order"):
            entries.append(make_scored(id, value, number, task=task, submitter="eve", verified_on=MAINTAINED))
    return board_of(*entries)


def test_the_overview_has_a_row_a_model_and_a_column_a_benchmark(several):
    assert data_names(several) == [DATA]
    assert benchmark_names(several, DATA) == ["coat", "comp_a"]
    shown = standing_columns(several, DATA, "all benchmarks")
    assert [(column.heading, column.lead) for column in shown] == [
        ("Composition of scenes", "A-COAT, adjusted"),
        ("Order and attributes in captions", "CompA order, CompA group"),
    ]
    rows = standing_rows(shown)
    assert [row.model for row in rows][:3] == ["org/good", "org/noise", "org/other"]
    assert [row.kind for row in rows[3:]] == [ModelKind.UNTRAINED, ModelKind.BASELINE, ModelKind.BASELINE]
    cell, noise = rows[0].cells[0], rows[1].cells[0]
    assert (cell.number, cell.standing, cell.several, cell.twin) == ("0.400", Standing.ABOVE, "1 of 2 above", "")
    assert cell.interval.startswith("[0.37")
    assert (noise.number, noise.standing, noise.several) == ("0.925", Standing.UNKNOWN, "")
    assert noise.twin == "no twin: submit untrained:org/noise"
    assert rows[0].facts == ("✓ verified", "not stated", "–", "2026-01-01", "eve")
    assert [row.model for row in standing_rows(shown, controls=False)] == ["org/good", "org/noise", "org/other"]
    assert [column.heading for column in standing_columns(several, DATA, "coat")] == ["A-COAT", "A-TRE"]


def test_the_overview_does_not_depend_on_the_order_of_entries(learnt, make_scored):
    entries = (*learnt[:2], make_scored("org/noise", 0.925, 4))
    orders = {
        tuple(row.model for row in standing_rows(standing_columns(board_of(*given), DATA, "")))
        for given in permutations(entries)
    }
    assert orders == {("org/good", "org/noise", "untrained:org/good")}


def test_models_that_cannot_be_told_apart_share_a_rank(learnt, make_scored):
    # Of org/good at 0.4, and in the order of their scores, whatever the number of further tasks.
    scores = {"org/best": 0.6, "org/alike": 0.405, "org/last": 0.3, "org/unproven": 0.9}
    entries = [
        make_scored(id, score, number, verified_on=MAINTAINED) for number, (id, score) in enumerate(scores.items(), 70)
    ]
    entries += [
        make_scored(f"untrained:{id}", 0.15, number, verified_on=MAINTAINED)
        for number, id in enumerate([*scores][:3], 80)
    ]
    for id, score in {"org/last": 0.5, "untrained:org/last": 0.2}.items():
        entries.append(make_scored(id, score, 90, task="a_tre", verified_on=MAINTAINED))
    shown = standing_columns(board_of(*learnt, *entries), DATA, "coat")
    rows = standing_rows(shown, controls=False)
    ranks = [("org/best", 1), ("org/alike", 2), ("org/good", 2), ("org/last", 4), ("org/unproven", 0)]
    assert [(row.model, row.rank) for row in rows] == ranks
    assert re.findall(r'<td class="rank">(.*?)</td>', standing_html(shown, rows)) == ["1", "2", "2", "4", "–"]


def test_no_score_leads_the_overview_without_a_twin_in_its_first_column(learnt, make_scored):
    noise = [
        make_scored("org/noise", 0.925, 40, submitter="bob", verified_on=MAINTAINED),  # no twin
        make_scored("org/noise", 0.9, 41, task="a_tre", submitter="bob", verified_on=MAINTAINED),
        make_scored("untrained:org/noise", 0.1, 42, task="a_tre", submitter="bob", verified_on=MAINTAINED),
        make_scored("org/noise", 0.9, 43, task="comp_a_order", submitter="bob", verified_on=MAINTAINED),
        make_scored("untrained:org/noise", 0.1, 44, task="comp_a_order", submitter="bob", verified_on=MAINTAINED),
    ]
    board = board_of(*noise, *learnt)
    for benchmark in ("all benchmarks", "coat"):
        rows = standing_rows(standing_columns(board, DATA, benchmark), controls=False)
        assert [row.model for row in rows] == ["org/good", "org/noise"]
        assert rows[1].learnt >= rows[0].learnt > 0


def test_a_model_of_two_cards_stands_in_the_overview_once(learnt, make_scored):
    other = make_scored(
        "org/good", 0.3, 50, task="a_tre", submitter="eve", verified_on=MAINTAINED, model={"paradigm": "baseline"}
    )
    for entries in ((*learnt, other), (other, *learnt)):
        board = board_of(*entries)
        shown = standing_columns(board, DATA, "")
        rows = standing_rows(shown)
        assert (rows[0].model, rows[0].kind) == ("org/good", ModelKind.TRAINED)
        assert standing_html(shown, rows).count('href="?model=org%2Fgood"') == 1
        assert model_conclusion(board, "org/good").startswith("org/good (by eve): A-COAT on ")


def test_a_reported_card_says_nothing_of_the_maintainers_entry(learnt, make_scored):
    """Nor does the card of any other sender, in the overview and in the conclusion."""
    own = make_scored("log-mel-statistics", 0.5, 51, task="a_tre")  # reported, as a model to be judged
    bob = make_scored(
        "org/good",
        0.3,
        52,
        submitter="bob",
        verified_on=MAINTAINED,
        model={"trained_on": "comp_a_train of the preset full"},
    )
    board = board_of(*learnt, own, bob)
    rows = standing_rows(standing_columns(board, DATA, ""))
    kinds = {(row.model, row.sender): (row.kind, row.is_ours) for row in rows}
    assert kinds["log-mel-statistics", "by the maintainers"] == (ModelKind.BASELINE, False)
    assert kinds["log-mel-statistics", "reported"] == (ModelKind.TRAINED, False)
    assert kinds["org/good", "by eve"] == (ModelKind.TRAINED, False)
    first, second = model_conclusion(board, "log-mel-statistics").split(" log-mel-statistics (reported): ")
    assert first.startswith("log-mel-statistics (by the maintainers) is a baseline: ")
    assert second.startswith("A-TRE on ")
    said = model_conclusion(board, "org/good")
    assert "org/good (by eve): A-COAT on " in said
    assert kinds["org/good", "by bob"] == (ModelKind.TRAINED, True)
    assert "org/good (by bob) (trained on data from our generator): " in said
    assert said.count("trained on data from our generator") == 1


def test_its_html_has_sections_signs_and_no_stranger_s_markup(several, make_scored):
    html = standing_html(shown := standing_columns(several, DATA, ""), standing_rows(shown))
    titles = re.findall(r'class="section">([^<]*)<', html)
    assert titles == [
        "Above their twin in one task or more",
        "No evidence of learning yet",
        "For comparison: twins, controls and baselines",
    ]
    assert re.search(
        r'<td class="rank">1</td>.*?<span class="badge standing-above">▲ above</span><strong>0\.400</strong>',
        html,
    )
    assert 'href="?model=org%2Fgood"' in html
    hostile = "a'\"&${alert(1)}{{7*7}}`"
    entry = make_scored("org/x", 0.4, submitter=hostile)
    shown = standing_columns(board_of(entry), DATA, "")
    html = standing_html(shown, standing_rows(shown))
    assert "a&#39;&#34;&amp;&#36;&#123;alert(1)&#125;&#123;&#123;7*7&#125;&#125;&#96;" in html
    assert not set("${`") & set(html)


def test_what_is_said_of_a_model_is_the_verdict_s_sentence(several):
    assert model_conclusion(several, "org/good").startswith(
        f"org/good (by eve), tasks for audio encoders: A-COAT on {DATA}: better than its untrained twin, "
        "log-mel-statistics, modulation-statistics and energy alone."
    )
    assert "org/good (by eve), tasks for audio–text encoders: " in model_conclusion(several, "org/good")
    assert "to compare, score `untrained:org/noise`" in model_conclusion(several, "org/noise")
    assert model_conclusion(several, "log-mel-statistics").startswith(
        "log-mel-statistics (by the maintainers) is a baseline: "
    )
    assert model_conclusion(several, "gone") == ""


def test_a_model_of_our_own_generator_is_called_so(learnt, make_scored):
    own = make_scored("org/ours", 0.4, 31, model={"trained_on": "comp_a_train of the preset full"})
    board = board_of(*learnt, own)
    html = standing_html(shown := standing_columns(board, DATA, ""), standing_rows(shown))
    assert html.count("trained on data from our generator") == 1
    assert model_conclusion(board, "org/ours").startswith(
        "org/ours (reported) (trained on data from our generator): A-COAT on "
    )
    assert "trained on data from our generator" in notes(own, load_task("a_coat").info)


def test_two_entries_of_a_model_are_told_apart(learnt, make_scored):
    other = make_scored("org/good", 0.3, 30, submitter="eve", verified_on=MAINTAINED, model={"revision": "2"})
    said = model_conclusion(board_of(*learnt, other), "org/good")
    assert said.count(f"A-COAT on {DATA} (entry ") == 2


def test_its_colours_are_those_of_the_report():
    report = Path(__file__).parents[2] / "evaluator" / "report" / "templates" / "report.css"
    for scheme in (r":root \{(.*?)\}", r"(?:\.dark|prefers-color-scheme: dark).*?\{(.*?)\}\s"):
        ours, theirs = (re.search(scheme, text, re.DOTALL).group(1) for text in (BOARD_CSS, report.read_text("utf-8")))
        colours, mine = (dict(re.findall(r"--([\w-]+): (#\w+)", text)) for text in (theirs, ours))
        assert {standing.value.replace(" ", "-") for standing in Standing} <= set(mine)
        assert mine.items() <= colours.items()
