"""Every reader of texts of others takes a time that grows with their length and not with its square.

No time is compared with a number of seconds: a text of 1 MB takes at most a few times as long as one of 256 kB.
"""

import gc
import json
import time
import warnings
from contextlib import suppress

import pytest

from audio_compositionality.dataset_builder import tables
from audio_compositionality.dataset_builder.account import Account
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.sounds.published import question_tables
from audio_compositionality.dataset_builder.sounds.recordings import _NUMBER
from audio_compositionality.dataset_builder.stored import LocalFolder, check_card
from audio_compositionality.dataset_builder.texts.questions import read_wording
from audio_compositionality.evaluator.answer_logs import read_logs
from audio_compositionality.metrics.answers import match_answer
from audio_compositionality.metrics.spoken_times import spoken_times
from audio_compositionality.support.errors import AudioCompositionalityError
from audio_compositionality.support.text import plain, printed
from audio_compositionality.support.yaml_text import parse_yaml

UNITS = [
    *("a", "1", " ", "\n", "\t", ",", '"', "'a' ", "[", "[[1],", '{"a":', "&a ", "- ", "a: ", "---\n", "\\", "\u2028"),
    *("A. ", "(A) x (B) y ", "A. x\nB. y\n", "))))", "1:", "-1", "<think>", "not A. ", "\x1b[", "]", "from 1 to 2 "),
]
SHAPES = {repr(unit): lambda size, unit=unit: (unit * (size // len(unit) + 1))[:size] for unit in UNITS} | {
    "an option and blanks": lambda size: f"Which?\nA. dog{' ' * size}x\0\nB. cat",
    "a list without end": lambda size: "['" + "a" * size,
    "an array without end": lambda size: "array([" + "]" * size,
    "digits and a letter": lambda size: "1" * size + "x",
    "a card of line ends": lambda size: "---" + "\n" * size,
    "a table": lambda size: "a,b\n" + "1,2\n" * (size // 4),
    "many columns": lambda size: ",".join(f"h{number}" for number in range(size // 7)) + "\n1,2",
    "many keys": lambda size: "{" + ",".join(f'"k{number}":1' for number in range(size // 10)) + "}",
}

READERS = {
    "YAML": lambda text, path: parse_yaml(text, "a.yaml"),
    "card": lambda text, path: (
        (path / "README.md").write_text(f"---\n{text}"),
        check_card(LocalFolder(str(path))),
    ),
    "value of a cell": lambda text, path: tables.value_of(text),
    "time": lambda text, path: tables.time_of(text),
    "number": lambda text, path: _NUMBER.fullmatch(text),
    "table": lambda text, path: tables.table_of(text, "a.csv"),
    "table of blanks": lambda text, path: tables.lines_of(text, "a.txt", blanks=3),
    "lettered options": lambda text, path: question_tables.lettered_options(text),
    "stated option": lambda text, path: question_tables.option_place(text, ("a dog", "rain")),
    "wording": lambda text, path: read_wording(text),
    "answer": lambda text, path: match_answer(text, ("a dog", "rain")),
    "times in an answer": lambda text, path: spoken_times(text[: len(text) // 4]),
    "printed text": lambda text, path: (plain(text), printed(text)),
    "reason in an account": lambda text, path: Account("a", 1, (), {"b": text}).lines(),
    "log": lambda text, path: (
        (path / "log.jsonl").write_text(json.dumps({"id": 1, "response": text, "question": text}) + "\n"),
        read_logs(path / "log.jsonl"),
    ),
    "questions": lambda text, path: (
        (path / "table.csv").write_text(text),
        question_tables.read_records(path / "table.csv"),
    ),
}


def seconds_of(read, text, path):
    """Processor time, of which other programs take none, without the collection of what earlier tests left."""
    gc.disable()
    began = time.process_time()
    with warnings.catch_warnings(), suppress(AudioCompositionalityError, DatasetError):
        warnings.simplefilter("ignore")
        read(text, path)
    taken = time.process_time() - began
    gc.enable()
    return taken


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param((2**14, 2**16), id="64 kB", marks=pytest.mark.slow),
        pytest.param((2**16, 2**18, 2**20), id="1 MB", marks=pytest.mark.long),
    ],
)
def test_four_times_the_text_takes_no_sixteen_times_the_time(reader, sizes, tmp_path):
    for name, shape in SHAPES.items():
        before = None
        # Smaller sizes come first: the time of a text that is read in the square of its length would not end.
        for size in sizes:
            taken = seconds_of(READERS[reader], shape(size), tmp_path)
            # Below some milliseconds, what is measured is noise; once more before it counts.
            if before is not None and taken > 12 * max(before, 0.02):
                taken = min(taken, seconds_of(READERS[reader], shape(size), tmp_path))
                assert taken <= 12 * max(before, 0.02), f"{name}, {size:,} characters: {before:.3f} s, {taken:.3f} s"
            before = taken
