"""The tables of the page on instances come by one command."""

import pytest

from audio_compositionality.cli.main import main
from studies import tables


@pytest.mark.slow
def test_the_command_scores_and_prints_each_model_beside_the_first(tmp_path, monkeypatch, capsys):
    assert {name.rpartition(":")[2] for names in tables.ENCODERS.values() for name in names} >= {
        "whisper-base",
        "AiSfx",
    }
    assert tables.plain("SpeechEmbedding") == tables.plain("speech-embedding")
    monkeypatch.setattr(tables, "ENCODERS", {"timbres": ("log-mel-statistics",)})
    monkeypatch.setattr(tables, "CONTROLS", ("random",))

    def few(command, **_):
        typed = [str(word) for word in command]
        assert main([*typed[typed.index("evaluate") :], "--set", "blocks=12"]) == 0

    monkeypatch.setattr(tables.subprocess, "run", few)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_CACHE", str(tmp_path / "cache"))
    command = ["instances", "--out", str(tmp_path), "--draws", "0", "5"]
    for arguments in (command, [*command, "--tables"]):
        tables.main(arguments)
        rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if " | " in line]
        score = rows[0].index("A-COAT instances")
        scores = {row[0]: float(row[score].split()[0]) for row in rows[1:3]}
        assert scores["log-mel-statistics"] > 2 / 6 > scores["random"]
        for row in rows[1:3]:
            first, second = (float(part) for part in row[rows[0].index("A-COAT instances of each draw")].split(", "))
            assert first == pytest.approx(scores[row[0]], abs=0.006)
            assert first != second
            spread = float(row[rows[0].index("SD of draws")])
            assert spread == pytest.approx(abs(first - second) / 2**0.5, abs=0.009)
        (difference,) = [float(row[2].split()[0]) for row in rows if row[:2] == ["random", "A-COAT instances"]]
        assert difference == pytest.approx(scores["log-mel-statistics"] - scores["random"], abs=0.011)
