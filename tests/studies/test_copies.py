"""The study behind the limits of copies runs as its page says."""

import re
import sys

import pytest

from studies import copies


@pytest.mark.slow
def test_the_command_compares_embeds_and_manipulates(tmp_path, monkeypatch, capsys):
    models = ["log-mel-statistics", "level-statistics", "downsample"]
    few = ["--quadruples", "8", "--seeds", "1", "--store", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["copies", "embeddings", *few, *models])
    monkeypatch.setattr(copies, "MANIPULATIONS", (("rotation", 0.0), ("scale", 3.0), ("float16", 0.0)))
    copies.main()
    printed = capsys.readouterr().out
    assert "3 models and layers, 3 pairs" in printed
    assert "called copies: 0" in printed
    assert re.findall(r"(\d+) of (\d+) ", printed) == [("3", "3")] * 3


@pytest.mark.slow
def test_pairs_of_another_recipe(tmp_path, monkeypatch, capsys):
    models = ["level-statistics", "rms", "random"]
    monkeypatch.setattr(sys, "argv", ["copies", "pairs", "rate_binding", *models, "--store", str(tmp_path)])
    copies.main()
    printed = capsys.readouterr().out
    assert "3 models and layers, 3 pairs" in printed
    assert "called copies: 0" in printed


@pytest.mark.slow
def test_honest_answerers_are_no_copies_and_copies_are(capsys):
    copies.print_answers(24, 300, 1)
    printed = capsys.readouterr().out
    assert re.search(r"0 of 276 pairs are called copies", printed)
    assert re.search(r"0% of the answers drawn anew: 24 of 24 copies caught", printed)
