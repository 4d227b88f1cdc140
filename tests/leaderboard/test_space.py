"""The page and the Space that shows it."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import gradio as gr
import pytest

from audio_compositionality.evaluator.submissions.record import LEAST_SECRET, SECRET_VARIABLE
from audio_compositionality.hub.errors import Repository
from audio_compositionality.leaderboard.board import Board, Rejected
from audio_compositionality.leaderboard.callbacks import SOON, PageCallbacks, Selection
from audio_compositionality.leaderboard.plots import MOST_PLOTTED, EntryPlots
from audio_compositionality.leaderboard.reading import MAX_AGE, BoardSource
from audio_compositionality.leaderboard.space import page_blocks, signing_secret

RESULTS = Repository("dataset", "lab/results")
FILLED = ("state", "rejected", "checks", "timer", "models", "task", "data", "paradigms", "licences", "sort", "table")
FILLED += ("csv", "caption", "picked", "measure")


def choice(task="a_coat", data="", **changes):
    """What a browser sends."""
    values = {"search": "", "statuses": [], "paradigms": [], "licences": [], "sort": "", "ascending": False}
    values |= {"picked": [], "measure": "", "controls": True, "older": False} | changes
    return Selection.of(task, data, *values.values())


def refreshed(page, *arguments, **changes):
    """What the page answers, by name."""
    return dict(zip(FILLED, page.refreshed(choice(*arguments, **changes)), strict=True))


class Plots:
    def __init__(self):
        self.drawn = []

    def draw(self, commit, entries, measure):
        self.drawn.append(([entry.id for entry in entries], measure))
        return EntryPlots(None, None, ())


@pytest.fixture
def entries(make_entry):
    return [make_entry(f"org/e{number:02}", number) for number in range(15)]


def page_of(entries, *rejected, read=True):
    """The page of a board with these entries, before or after its first reading."""
    source = BoardSource(lambda: Board("c" * 40, tuple(entries), rejected))
    if read:
        source.update()
    return PageCallbacks(source, Plots(), RESULTS, "lab", lambda: "no checks")


@pytest.fixture
def page(entries):
    return page_of(entries, Rejected("a\nb", "bad"))


def clicked(*row):
    return SimpleNamespace(row_value=list(row))


@pytest.mark.parametrize("garbage", [None, 7, "x" * 100_000, [1, None], [["x"]]], ids=lambda value: ascii(value)[:12])
def test_garbage_is_answered(page, garbage):
    good = ("a_coat", f"{'ab' * 32}-1")
    for values in ((*good, *[garbage] * 10), [garbage] * 12):
        selection = Selection.of(*values)
        assert len(page.refreshed(selection)) == len(FILLED)
        page.filtered(selection)
    assert len(page.overview(garbage, garbage, garbage)) == 5
    page.toggled(garbage, SimpleNamespace(row_value=garbage))
    page.drawn(garbage, garbage)
    assert page.of_model(garbage)[0] == []
    assert page.of_entry(garbage)[0] == []


def test_the_page_is_made_of_its_components(page):
    assert page_blocks(page, RESULTS, "lab").fns


def test_a_row_is_picked_and_taken_out_again(page, entries):
    one, two = entries[:2]
    assert page.toggled([two.id], clicked("org/e00", 0.5, one.id)) == ([two.id, one.id], "org/e00")
    assert page.toggled([two.id, one.id], clicked("org/e00", 0.5, one.id))[0] == [two.id]
    many = [entry.id for entry in entries[1 : MOST_PLOTTED + 1]]
    assert page.toggled(many, clicked(one.id))[0] == gr.skip()


def test_a_measure_by_sample_is_drawn_of_what_is_there(page, entries, coat):
    page.drawn([entries[0].id, "a_coat-0000000000000000", entries[1].id], "centred")
    assert page._plots.drawn == [([entries[0].id, entries[1].id], "centred")]
    page.drawn([entries[0].id], "null")
    _, (_, measure) = page._plots.drawn
    assert coat.measure("null").column is None
    assert measure == coat.ranks_by or coat.measure(coat.ranks_by).column is None
    assert coat.measure(measure).column is not None


def test_a_refresh_keeps_what_is_chosen_as_far_as_it_is_there(page, entries):
    page_now = refreshed(page, paradigms=["gone"], sort="gone", picked=[entries[3].id, "gone"])
    assert "15 entries (0 verified, 15 reported), 1 rejected" in page_now["state"]
    assert page_now["rejected"] == [["a b", "bad"]]
    assert page_now["picked"]["value"] == [entries[3].id]
    assert page_now["sort"]["value"] == "adjusted"
    assert page_now["task"]["choices"] == [("A-COAT", "a_coat")]
    # A task without entries is not among the choices, nor is one that there is not.
    assert refreshed(page, "a_tre")["task"]["value"] == refreshed(page, "gone")["task"]["value"] == "a_coat"


def test_without_entries_all_tasks_can_be_looked_at():
    page_now = refreshed(page_of(()), "a_tre")
    assert {name for _, name in page_now["task"]["choices"]} >= {"a_coat", "a_tre"}
    assert page_now["task"]["value"] == "a_tre"
    assert page_now["table"].value["data"] == []


def test_an_empty_board_says_how_to_be_the_first(entries):
    empty, *_, table = page_of(()).overview("", "", True)
    assert empty.visible
    assert "audio-compositionality submit results --org lab" in empty.value
    assert not table.visible
    assert not page_of((), read=False).overview("", "", True)[0].visible, "it is not read yet"
    empty, *_, table = page_of(entries).overview("", "", True)
    assert (empty.visible, table.visible) == (False, True)


def test_twins_controls_and_baselines_are_left_out_on_request(entries, make_entry):
    page = page_of(
        (*entries, make_entry("untrained:org/e00", 20), make_entry("random", model={"paradigm": "baseline"}))
    )

    def shown(controls):
        cells = refreshed(page, controls=controls)["table"].value["data"]
        overview = page.overview("", "", controls)[4].value
        assert all(f">{row[0]}</a>" in overview for row in cells)
        return len(cells), overview.count("<a ")

    assert shown(True) == (17, 17)
    assert shown(False) == (15, 15)


def test_before_the_first_reading_and_while_it_is_read_again_the_page_says_so_and_looks_again_soon(entries):
    page = page_of(entries, read=False)
    source = page._source

    def seen():
        page_now = refreshed(page)
        return page_now["state"], page_now["timer"].value

    assert seen() == ("Reading the results…", SOON)
    source.update()
    assert "15 entries" in seen()[0]
    assert "read again" not in seen()[0]
    assert seen()[1] == MAX_AGE
    source.expire()
    assert "15 entries" in seen()[0]
    assert seen()[0].endswith("It is being read again…")
    assert seen()[1] == SOON


def test_tasks_are_sorted_at_first_by_what_they_rank_by(make_entry, tre):
    high = make_entry("org/high", 9, task="a_tre", measures={"a_tre_centred": 0.1})
    good = make_entry("org/good", 1, task="a_tre", measures={"a_tre_centred": 0.4})
    page_now = refreshed(page_of((high, good)), "a_tre")
    assert page_now["sort"]["value"] == tre.measure(tre.ranks_by).heading == "centred"
    assert [row[0] for row in page_now["table"].value["data"]] == ["org/good", "org/high"]
    assert tre.measure(page_now["measure"]["value"]).column is not None
    assert all(measure.meaning in page_now["caption"] for measure in tre.shown)


def test_an_older_version_is_a_table_of_its_own(entries, make_entry):
    older = make_entry("org/older", 0, task_version=99)
    page = page_of((older, *entries))
    label = "mini (data abababab), 12 quadruples"
    assert refreshed(page)["data"]["choices"] == [(label, str(entries[0].data))], "older ones are folded away"
    names, keys = zip(*refreshed(page, older=True)["data"]["choices"], strict=True)
    assert names == (label, "mini (data abababab), older: version 99 of the task, 12 quadruples")
    assert len(refreshed(page)["table"].value["data"]) == 15
    assert page.of_model("org/older")[0] == []
    assert [row[-1] for row in page.of_model("org/older")[5]] == [older.id]
    page_now = refreshed(page, data=keys[1], older=True)
    assert [row[0] for row in page_now["table"].value["data"]] == ["org/older"]
    assert "version 99 of the task" in " ".join(map(str, page_now["table"].value["data"][0]))


def test_the_page_of_a_model_has_an_address(page, entries):
    rows, address, opens, details, conclusion, older, _ = page.of_model("org/e03")
    assert [row[-1] for row in rows] == [entries[3].id]
    assert float(rows[0][1].replace("−", "-")) == pytest.approx(entries[3].result.measures["adjusted"], abs=6e-4)
    assert address.endswith("/spaces/lab/audio-compositionality-leaderboard?model=org%2Fe03")
    assert (opens.link, opens.visible) == ("?model=org%2Fe03", True)
    assert details["value"] == entries[3].id
    said = (
        "A-COAT on mini (data abababab): mixed results against energy alone; not compared with its untrained "
        "twin (to compare, score `untrained:org/e03`"
    )
    assert conclusion.startswith(f"org/e03 (reported): {said}")
    assert older == []
    numbers, origin, *_ = page.of_entry(entries[3].id)
    assert "A-COAT" in {row[0] for row in numbers}
    assert ["revision", "1"] in origin


def test_files_for_download_do_not_pile_up(page):
    for number in range(70):
        page._files.write("a.csv", str(number).encode())
    kept = [path for path in page._files._written if path.exists()]
    assert len(kept) == 50
    assert kept[-1].read_text() == "69"
    assert sum(path.is_file() for path in kept[0].parents[1].rglob("*")) == 50
    # One that another visitor may be reading is not written again.
    path = page._files.write("boxes.png", b"plot")
    written = path.stat().st_mtime_ns, path.stat().st_ino
    assert page._files.write("boxes.png", b"plot") == path
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == written


LONG = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("secret", "checks", "told"),
    [
        (LONG, True, []),
        (LONG[:-1], True, ["of 32 characters or more", f"{SECRET_VARIABLE} has 31 characters; it must have 32"]),
        ("", True, ["it checks nothing, and shows no entry as verified"]),
        (LONG, False, ["no token with write access"]),
        ("short", False, ["no token with write access", "has 5 characters"]),
    ],
)
def test_the_log_says_at_the_start_why_nothing_is_checked(secret, checks, told, monkeypatch, caplog):
    monkeypatch.setenv(SECRET_VARIABLE, secret)
    with caplog.at_level(logging.WARNING):
        found, problem = signing_secret(checks)
    assert found == (secret if len(secret) >= LEAST_SECRET else None)
    assert " ".join(record.getMessage() for record in caplog.records) == problem
    assert all(words in problem for words in told)
    assert bool(problem) == bool(told)
