"""The board of results on this machine."""

from __future__ import annotations

import json

import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import ResultError
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.leaderboard import local
from audio_compositionality.leaderboard.callbacks import PageCallbacks
from audio_compositionality.tasks.registry import load_task


@pytest.mark.slow
def test_results_in_a_folder_are_a_board_without_links_to_the_hub(tmp_path, monkeypatch):
    options = RunOptions(out=tmp_path / "results", cache=tmp_path / "store", progress=False)
    models = [load_model(name, seed=0) for name in ("random", "log-mel-statistics")]
    evaluate_models(models, open_data("mini"), [load_task("a_coat")], options)
    shown = []
    monkeypatch.setattr(local, "show", lambda blocks, **options: shown.append(options))
    monkeypatch.setattr(local, "PageCallbacks", lambda *given: shown.append(given) or PageCallbacks(*given))
    local.launch_local([tmp_path / "results"], server_port=7860)
    (source, plots, *_), options = shown
    assert options == {"server_port": 7860}
    board = source.update().board
    source.stop()
    assert {(entry.model, entry.status) for entry in board.entries} == {
        ("random", "reported"),
        ("log-mel-statistics", "reported"),
    }
    assert not board.rejected
    page = PageCallbacks(*shown[0])
    assert ">log-mel-statistics</a>" in page.overview("", "", True)[4].value
    drawing = plots.draw(board.commit, board.entries, "adjusted")
    assert drawing.boxes
    assert not page.of_entry(board.entries[0].id)[2].visible

    # A damaged file is refused at once.
    (path,) = (tmp_path / "results").rglob("log-mel*/**/a_coat.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n": 0}))
    with pytest.raises(ResultError, match=r"a_coat\.json"):
        local.launch_local([tmp_path / "results"])
