"""What the page answers to a browser that sends what it likes."""

from types import SimpleNamespace

import gradio as gr
import pytest

from audio_compositionality.hub import Repository
from audio_compositionality.leaderboard.entries import Board, Rejected
from audio_compositionality.leaderboard.page import SOON, Chosen, Page
from audio_compositionality.leaderboard.plots import MOST, Drawing
from audio_compositionality.leaderboard.source import MAX_AGE, Source

GARBAGE = [None, 7, "x", [], [1, None], {"a": 1}, [["x"]], "\x00", "x" * 100_000]


class Plots:
    def __init__(self):
        self.drawn = []

    def draw(self, commit, entries, measure):
        self.drawn.append(([entry.id for entry in entries], measure))
        return Drawing(None, None, ())


@pytest.fixture
def entries(make_entry):
    return [make_entry(f"org/e{number:02}", number) for number in range(15)]


@pytest.fixture
def page(entries):
    source = Source(lambda: Board("c" * 40, tuple(entries), (Rejected("a\nb", "bad"),)))
    source.update()
    return Page(source, Plots(), Repository("dataset", "lab/results"), "lab", lambda: "no checks")


def clicked(*row):
    return SimpleNamespace(row_value=list(row))


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda value: ascii(value)[:12])
def test_garbage_is_answered(page, garbage):
    for place in range(9):
        values = ["a_coat", "ab" * 32, "", [], [], [], "A-COAT", False, []]
        values[place] = garbage
        chosen = Chosen.of(*values)
        assert len(page._refresh(chosen)) == 13
        page._filtered(chosen)
    page._toggled(garbage, SimpleNamespace(row_value=garbage))
    page._drawn(garbage, garbage)
    assert page._of_encoder(garbage)[0] == []
    assert page._of_entry(garbage)[0] == []


def test_a_row_is_picked_and_taken_out_again(page, entries):
    one, two = entries[:2]
    assert page._toggled([two.id], clicked("org/e00", 0.5, one.id)) == ([two.id, one.id], "org/e00")
    assert page._toggled([two.id, one.id], clicked("org/e00", 0.5, one.id))[0] == [two.id]
    many = [entry.id for entry in entries[1 : MOST + 1]]
    assert page._toggled(many, clicked(one.id))[0] == gr.skip()


def test_what_is_gone_is_not_drawn(page, entries, make_entry):
    page._drawn([entries[0].id, "a_coat-0000000000000000", entries[1].id], "centred")
    assert page._plots.drawn == [([entries[0].id, entries[1].id], "centred")]


def test_a_refresh_keeps_what_is_chosen_as_far_as_it_is_there(page, entries):
    chosen = Chosen.of("a_coat", "ab" * 32, "", [], ["gone"], [], "gone", False, [entries[3].id, "gone"])
    state, rejected, *_, picked = page._refresh(chosen)
    assert "15 entries (0 verified, 15 reported), 1 not shown" in state
    assert rejected == [["a b", "bad"]]
    assert picked["value"] == [entries[3].id]
    other = Chosen.of("a_tre", "ab" * 32, "", [], [], [], "A-TRE", False, [entries[3].id])
    assert page._refresh(other)[-1]["value"] == []


def test_before_the_first_reading_and_while_it_is_read_again_the_page_says_so_and_looks_again_soon(entries):
    source = Source(lambda: Board("c" * 40, tuple(entries), ()))
    page = Page(source, Plots(), Repository("dataset", "lab/results"), "lab", lambda: "no checks")
    chosen = Chosen.of("a_coat", "ab" * 32, "", [], [], [], "", False, [])

    def seen():
        state, _, _, timer, *_ = page._refresh(chosen)
        return state, timer.value

    assert seen() == ("Reading the results…", SOON)
    source.update()
    assert "15 entries" in seen()[0]
    assert "read again" not in seen()[0]
    assert seen()[1] == MAX_AGE
    source.expire()
    assert "15 entries" in seen()[0]
    assert seen()[0].endswith("It is being read again…")
    assert seen()[1] == SOON


def test_tasks_are_sorted_at_first_by_what_cannot_be_had_by_adding_a_constant(page, make_entry):
    raw = {"ridge_r2": 0.1, "a_tre_centred": 0.1}
    high = make_entry("org/high", 9, task="a_tre", controls=raw)
    good = make_entry("org/good", 1, task="a_tre", controls=raw | {"a_tre_centred": 0.4})
    page._source = Source(lambda: Board("c", (high, good), ()))
    page._source.update()
    *_, sort, table, _, _, _ = page._refresh(Chosen.of("a_tre", "ab" * 32, "", [], [], [], "", False, []))
    assert sort["value"] == "centred"
    assert [row[0] for row in table.value["data"]] == ["org/good", "org/high"]
    assert page._refresh(Chosen.of("a_coat", "", "", [], [], [], "", False, []))[8]["value"] == "A-COAT"


def test_files_for_download_do_not_pile_up(page):
    for number in range(70):
        page._files.write("a.csv", str(number))
    found = [path for path in page._files._written if path.exists()]
    assert len(found) == 50
    assert found[-1].read_text() == "69"
    assert sum(path.is_file() for path in found[0].parents[1].rglob("*")) == 50
