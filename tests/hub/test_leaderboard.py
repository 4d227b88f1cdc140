"""The board read from a Hub that fails, and a checker that outlives a restart."""

from __future__ import annotations

import pytest
from board_entries import SECRET, below, entry, folder, made_up, verification

from audio_compositionality.hub.client import Hub
from audio_compositionality.hub.names import results_of
from audio_compositionality.leaderboard.plots import Plots
from audio_compositionality.leaderboard.reading import BoardReader, BoardSource

from .faults import CutDownload, Drop, Fault, Status

RESULTS = "lab/audio-compositionality-results"


@pytest.fixture
def results(hub):
    results = hub.repositories.create("dataset", RESULTS)
    files = made_up("org/one", embeddings=b"of all clips")
    results.commit({**below(folder(files), files), **verification(files)})
    return results


@pytest.fixture
def source(results):
    return BoardSource(BoardReader(Hub(), results_of("lab"), SECRET))


FAULTS: dict[str, tuple[str, Fault]] = {
    "head refused": ("/revision/main", Status(503)),
    "head without an answer": ("/revision/main", Drop(acts=False)),
    "files refused": ("/tree/", Status(500)),
    "a file refused": ("/resolve/", Status(500)),
    "rate limit": ("/resolve/", Status(429, retry_after=1)),
}


@pytest.mark.usefixtures("waits")
@pytest.mark.parametrize("name", FAULTS)
def test_the_last_board_stays_until_the_hub_is_back(hub, results, source, name):
    assert len(source.update().board.entries) == 1
    results.commit(entry("org/two", 1))
    pattern, fault = FAULTS[name]
    order = hub.faults.order("GET", pattern, fault, times=None)
    reading = source.update()
    assert [entry.model for entry in reading.board.entries] == ["org/one"]
    assert reading.trouble is not None
    assert reading.since is not None
    assert order.fired
    order.times = 0
    reading = source.update()
    assert {entry.model for entry in reading.board.entries} == {"org/one", "org/two"}
    assert reading.trouble is None


@pytest.mark.usefixtures("waits")
def test_a_fault_that_passes_is_not_seen(hub, results, source):
    hub.faults.order("GET", "/tree/", Status(503))
    hub.faults.order("GET", "/resolve/.*json", CutDownload(10))
    reading = source.update()
    assert reading.trouble is None
    assert [entry.status for entry in reading.board.entries] == ["verified"]


def test_without_a_repository_it_says_so(hub):
    reading = BoardSource(BoardReader(Hub(), results_of("lab"), SECRET)).update()
    assert reading.board.entries == ()
    assert "does not exist" in str(reading.trouble)


def test_what_is_drawn_of_a_verified_entry_is_what_the_checker_computed(results, source, hub):
    def fetch(commit, entry):
        return Hub().download(results_of("lab"), entry.samples, commit, limit=10**6).read_bytes()

    board = source.update().board
    drawing = Plots(fetch).draw(board.commit, board.entries, "a_coat")
    assert drawing.boxes is not None
    fetched = [made.target for made in hub.made("GET", "samples")]
    assert fetched
    assert all("/verified/" in target for target in fetched)
