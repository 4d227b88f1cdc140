"""What the page answers to a browser that sends what it likes."""

from types import SimpleNamespace

import gradio as gr
import pytest

from audio_compositionality.hub import Repository
from audio_compositionality.leaderboard.entries import Board, Rejected
from audio_compositionality.leaderboard.page import Chosen, Page
from audio_compositionality.leaderboard.plots import MOST, Drawing
from audio_compositionality.leaderboard.source import Source

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
    source.reading()
    return Page(source, Plots(), Repository("dataset", "lab/results"), "lab", lambda: "no checks")


def clicked(*row):
    return SimpleNamespace(row_value=list(row))


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda value: ascii(value)[:12])
def test_garbage_is_answered(page, garbage):
    for place in range(9):
        values = ["a_coat", "ab" * 32, "", [], [], [], "A-COAT", False, []]
        values[place] = garbage
        chosen = Chosen.of(*values)
        assert len(page._refresh(page._source.last, chosen)) == 12
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
    state, rejected, *_, picked = page._refresh(page._source.last, chosen)
    assert "15 entries (0 verified, 15 reported), 1 not shown" in state
    assert rejected == [["a b", "bad"]]
    assert picked["value"] == [entries[3].id]
    other = Chosen.of("a_tre", "ab" * 32, "", [], [], [], "A-TRE", False, [entries[3].id])
    assert page._refresh(page._source.last, other)[-1]["value"] == []


def test_files_for_download_do_not_pile_up(page):
    for number in range(70):
        page._files.write("a.csv", str(number))
    found = [path for path in page._files._written if path.exists()]
    assert len(found) == 50
    assert found[-1].read_text() == "69"
    assert sum(path.is_file() for path in found[0].parents[1].rglob("*")) == 50
