import io
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from board_entries import folder, made_up
from PIL import Image

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.figures.samples import diversity_panels, score_boxes
from audio_compositionality.evaluator.results.result import Result
from audio_compositionality.hub.errors import HubError
from audio_compositionality.leaderboard import plots as module
from audio_compositionality.leaderboard.board import Entry
from audio_compositionality.leaderboard.plots import MOST_PLOTTED, Plots, labels


@pytest.fixture(scope="module")
def mini():
    return open_data("mini").configuration("a_coat")


class Board:
    """Entries whose files are in a folder, and a Hub that gives them."""

    def __init__(self, root):
        self.root = root
        self.asked = []
        self.trouble = None

    def add(self, encoder, number=0, verified=False, **options):
        files = made_up(encoder, number, **options)
        path = self.root / f"{folder(files).replace('/', ' ')} {len(list(self.root.iterdir()))}"
        path.write_bytes(files["samples.csv"])
        result = Result.loads(files["result.json"])
        on = "2026-01-01T00:00:00+00:00" if verified else None
        return Entry(folder(files), result, result, on, str(path), False, None)

    def fetch(self, commit, entry):
        self.asked.append(entry.samples)
        if self.trouble:
            raise self.trouble
        return (self.root / entry.samples).read_bytes()


@pytest.fixture
def board(tmp_path):
    return Board(tmp_path)


@pytest.fixture
def plots(board):
    return Plots(lambda *given: board.fetch(*given))


@pytest.fixture
def drawn(monkeypatch):
    """What the figures are made of, in the order in which they are."""
    seen = []
    for name, function in (("score_boxes", score_boxes), ("diversity_panels", diversity_panels)):
        monkeypatch.setattr(
            module, name, lambda comparison, measure, f=function: seen.append(comparison) or f(comparison, measure)
        )
    return seen


@pytest.fixture(scope="module")
def of_mini(mini):
    """What makes an entry one of the preset mini."""
    ids = [row["id"] for row in mini.rows]
    return {"ids": ids, "fingerprint": mini.fingerprint, "rows_digest": mini.rows_digest}


def width(image):
    """Of a PNG file, in pixels."""
    with Image.open(io.BytesIO(image)) as opened:
        return opened.width


def test_both_plots_of_what_is_picked(board, plots, drawn, of_mini):
    entries = [board.add("org/one", 0, verified=True, **of_mini), board.add("org/two", 2, **of_mini)]
    drawing = plots.draw("c", entries, "a_coat")
    assert width(drawing.boxes) > 600
    assert width(drawing.diversity) > 600
    assert drawing.notes == ()
    comparison = drawn[0]
    assert comparison.labels == ("org/two (reported)", "org/one (verified)")
    assert comparison.samples is not None
    assert comparison.views["a_coat"].means[1] == pytest.approx(entries[0].result.score)


@pytest.mark.slow
def test_nothing_is_fetched_or_drawn_twice(board, plots, drawn, of_mini):
    one, two = board.add("org/one", 0, **of_mini), board.add("org/two", 2, **of_mini)
    first = plots.draw("c", [one, two], "a_coat")
    assert plots.draw("d", [two, one], "a_coat") is first
    plots.draw("c", [one], "a_coat")
    assert len(board.asked) == 2
    assert len(drawn) == 4
    assert plots.draw("c", [one, two], "centred") is not first


def test_a_slow_download_of_one_visitor_s_is_waited_for_by_nobody_else(board, plots, of_mini):
    slow, quick = board.add("org/slow", 0, **of_mini), board.add("org/quick", 2, **of_mini)
    begun, given = threading.Event(), threading.Event()
    fetch = board.fetch

    def waiting(commit, entry):
        if entry.samples == slow.samples:
            begun.set()
            assert given.wait(60)
        return fetch(commit, entry)

    board.fetch = waiting
    with ThreadPoolExecutor(1) as pool:
        drawn = pool.submit(plots.draw, "c", [slow], "a_coat")
        assert begun.wait(60)
        try:
            assert plots.draw("c", [quick], "a_coat").boxes is not None
            assert not drawn.done()
        finally:
            given.set()
        assert drawn.result(60).boxes is not None


def test_of_data_that_are_no_preset_there_is_no_diversity(board, plots):
    drawing = plots.draw("c", [board.add("org/one"), board.add("org/two", 1)], "a_coat")
    assert drawing.boxes is not None
    assert drawing.diversity is None
    assert "not a preset" in " ".join(drawing.notes)


def test_a_damaged_file_and_samples_of_other_data_are_left_out_and_fewer_are_told(board, plots, drawn, of_mini):
    good, bad = board.add("org/one", **of_mini), board.add("org/bad", 1, **of_mini)
    (board.root / bad.samples).write_bytes(b"id,score\ndamaged")
    other = board.add("org/other", 1, **{**of_mini, "ids": [f"x{k}" for k in range(64)]})
    notes = plots.draw("c", [bad, other, good], "a_coat").notes
    assert drawn[0].labels == ("org/one (reported)",)
    assert any("org/bad (reported)" in note for note in notes)
    assert any("samples that the data do not have" in note for note in notes)
    assert plots.draw("c", [bad], "a_coat").boxes is None
    few = board.add("org/few", 1, **{**of_mini, "ids": of_mini["ids"][:20]})
    assert any("compared on the 20 samples" in note for note in plots.draw("c", [good, few], "a_coat").notes)


def test_trouble_with_the_hub_passes(board, plots, of_mini):
    assert plots.draw("c", [], "a_coat").boxes is None
    # A label that Matplotlib took for mathematics would be an error, or show as something else.
    entry = board.add("a$\\frac{x}$", **of_mini)
    board.trouble = HubError("no answer")
    assert "no answer" in plots.draw("c", [entry], "a_coat").notes[0]
    board.trouble = None
    with Image.open(io.BytesIO(plots.draw("c", [entry], "a_coat").boxes)) as image:
        assert np.asarray(image).std() > 0


def test_no_more_than_fit(board, plots, drawn, of_mini):
    entries = [board.add(f"org/e{number}", number, **of_mini) for number in range(MOST_PLOTTED + 1)]
    assert plots.draw("c", entries, "a_coat").notes[0] == "Only the first 12 of 13 are drawn."
    assert len(drawn[0].results) == MOST_PLOTTED


def test_labels_tell_entries_and_statuses_apart():
    def entry(encoder, revision, id, status):
        result = SimpleNamespace(model=SimpleNamespace(revision=revision))
        return SimpleNamespace(model=encoder, result=result, id=f"a_coat-{id * 16}", status=status)

    labelled = labels(
        [
            entry("one", "abcdefghij", "1", "verified"),
            entry("two", "aaaaaaaaaa", "2", "reported"),
            entry("two", "bbbbbbbbbb", "3", "verified"),
            entry("six (verified)", "1", "4", "reported"),
            entry("ten", "1", "5", "reported"),
            entry("ten", "1", "6", "verified"),
        ]
    )
    assert labelled == [
        "one (verified)",
        "two (aaaaaaaa, reported)",
        "two (bbbbbbbb, verified)",
        "six (verified) (reported)",
        "ten (1, 55555555, reported)",
        "ten (1, 66666666, verified)",
    ]
    assert len(set(labelled)) == len(labelled)
