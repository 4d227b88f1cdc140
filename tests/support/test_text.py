"""Texts of others, made safe to print and to write."""

import json

import pytest

from audio_compositionality.support.files import write_whole
from audio_compositionality.support.table import csv_text
from audio_compositionality.support.text import LONGEST_LINE, parse_json, printed


def test_a_message_has_nothing_that_moves_the_cursor_and_no_endless_line():
    assert printed("unknown model '\x1b[31mred\u202e\ud800'\nsee the list") == (
        "unknown model '\ufffd[31mred\ufffd\ufffd'\nsee the list"
    )
    long = printed(f"{'a' * 10**6}; give another")
    assert len(long) <= LONGEST_LINE + 1
    assert long.endswith("; give another")
    assert printed("x\n" * 10**6).count("\n") == 20


def test_half_of_a_surrogate_pair_in_json_can_be_written():
    assert parse_json('["\\ud800A", "\\ud83d\\ude00", "é"]') == ["\ufffdA", "😀", "é"]
    with pytest.raises(ValueError, match="Expecting value"):
        parse_json("nothing")


def test_a_text_that_is_no_utf_8_is_written_with_escapes(tmp_path):
    write_whole(tmp_path / "a.json", json.dumps({"a": "\ud800"}, ensure_ascii=False))
    assert json.loads((tmp_path / "a.json").read_bytes()) == {"a": "\ud800"}


def test_one_writer_of_csv_defuses_formulas():
    rows = [["a", "b"], ["=cmd|x", 1.5], [" +1", None], ["-", -2], ["a\x1b\nb", True], ['"q", r', float("inf")]]
    lines = ["a,b", "'=cmd|x,1.5", "' +1,", "'-,-2", "a\ufffd b,True", '"""q"", r",inf']
    assert csv_text(rows).split("\n") == [*lines, ""]
