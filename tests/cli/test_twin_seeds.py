"""``twin_seeds``: several draws of a twin, each a model of its own, side by side."""

from __future__ import annotations

import pytest

from audio_compositionality.cli.scoring import ModelSettings
from audio_compositionality.encoders.loading.names import is_twin
from audio_compositionality.encoders.options import LanguageOptions
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.compare.verdicts import verdicts


@pytest.mark.slow
def test_each_draw_has_a_result_and_the_verdict_asks_for_all(whisper, folder, tmp_path, run, monkeypatch):
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    names = [whisper, f"untrained:{whisper}", f"reversed-audio:untrained:{whisper}", "log-mel-statistics"]
    command = ["evaluate", *names, "--set", "twin_seeds=0,1,2,1", "--data", folder, "--tasks", "a_coat"]
    assert run(*command, "--out", tmp_path / "results") == 0
    (comparison,) = compare_results([tmp_path / "results"])
    twin = f"untrained:{whisper.name}"
    labels = {label.partition(" (seed-")[0]: [] for label in comparison.labels}
    for label in comparison.labels:
        labels[label.partition(" (seed-")[0]].append(label)
    assert {name: len(of_name) for name, of_name in labels.items()} == {
        whisper.name: 1,
        twin: 3,
        f"reversed-audio:{twin}": 3,
        "log-mel-statistics": 1,
    }
    assert len(set(comparison.labels)) == 8
    scores = {result.label: result.result.measures["a_coat"] for result in comparison.results}
    assert len({scores[label] for label in labels[twin]}) == 3
    (verdict,) = verdicts(comparison)
    said = " ".join(check.words for check in verdict.questions[0].checks)
    assert all(label[:60] in said for label in labels[twin])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("a", "twin_seeds is 'a'; it is whole numbers with commas between them"),
        ("0,-1", "twin_seeds is 0, -1; it is whole numbers from 0 on"),
        ("1.5", "twin_seeds is '1.5'; it is whole numbers"),
        ("empty", "twin_seeds is empty; it is whole numbers from 0 on"),
    ],
)
def test_what_is_no_seed_is_refused(given, message, run, capsys):
    assert run("evaluate", "random", "--set", f"twin_seeds={given}") == 2
    assert message in capsys.readouterr().err


def test_only_names_of_twins_depend_on_the_seed():
    assert ModelSettings(None, LanguageOptions()).twin_seeds == (0,)
    assert is_twin("untrained:whisper-base")
    assert is_twin("reversed-audio:shuffled:whisper-base")
    assert not any(map(is_twin, ("whisper-base", "reversed-audio:whisper-base", "random", "mine.py:Mine")))
