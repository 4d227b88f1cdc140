"""`captions`: what captions are made of."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest


class Tagger:
    """Takes every word but "a" for a noun."""

    def tag(self, text):
        return [(word, "DT" if word == "a" else "NN") for word in text.replace(",", "").split()]


@pytest.fixture
def tagger(monkeypatch):
    module = ModuleType("textblob.en.taggers")
    module.PatternTagger = Tagger
    for name in ("textblob", "textblob.en"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "textblob.en.taggers", module)


def test_words_of_tables_are_counted(run, tagger, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_text("file,caption_1,caption_2\nx.wav,a bell,a bell rings\ny.wav,a dog,\n")
    (tmp_path / "two.txt").write_text("a horn\n\na horn\n")
    assert run("captions", "one.csv", "two.txt") == 0
    said = capsys.readouterr().out
    assert [line.split()[-6:] for line in said.splitlines() if "one.csv" in line or "two.txt" in line][:2] == [
        ["3", "3", "7", "4", "2.33", "1.33"],
        ["2", "1", "4", "2", "2.00", "1.00"],
    ]
    assert "determiners" in said
    assert "horn" in said


@pytest.mark.slow
def test_words_of_our_own_items_are_counted(run, tagger, capsys):
    few = ("items=12", "train_rows=12", "validation_rows=2", "clips=12")
    assert run("captions", "--preset", "mini", "--nouns", 1, *(word for one in few for word in ("--set", one))) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("comp_a_order", "comp_a_attribute", "comp_a_train", "audio_text_retrieval"))
