"""Miniatures of published benchmarks in the schema of their repositories, and the rules of their authors."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.dataset_builder.sounds.published import reader_of
from audio_compositionality.support.errors import InputError

from .test_question_tables import table, tone

ITEM = {"question": "Which?", "choices": ["dog", "cat", "rain"], "answer": "cat"}


def mmau(folder):
    tone(folder / "test-mini-audios" / "3f.wav", 1)
    row = {"id": "3f", "audio_id": "./test-mini-audios/3f.wav", **ITEM, "dataset": "AudioSet", "task": "sound"}
    row |= {"split": "test-mini", "category": "Reasoning", "sub-category": "Acoustic", "difficulty": "medium"}
    (folder / "mmau-test-mini.json").write_text(json.dumps([row]))


def mmau_of_hub(folder):
    sound = {"bytes": tone(folder / "x.wav", 1).read_bytes(), "path": "3f.wav"}
    row = {"context": sound, "instruction": "Which?", "answer": "(B) cat"}
    row |= {"choices": ["(A) dog", "(B) cat", "(C) rain"]}
    row["other_attributes"] = json.dumps({"id": "3f", "task": "sound", "split": "test-mini"})
    pq.write_table(pa.Table.from_pylist([row]), folder / "test-00000.parquet")


def mmar(folder):
    tone(folder / "audio" / "q_0.wav", 1)
    row = {"id": "q_0", "audio_path": "./audio/q_0.wav", **ITEM, "modality": "sound", "category": "Signal Layer"}
    row |= {"sub-category": "Content Analysis", "language": None, "source": "youtube", "cue": ["x"], "rubric": []}
    (folder / "MMAR-meta.jsonl").write_text(json.dumps(row))


def mmau_pro(folder):
    for number in range(2):
        tone(folder / "data" / f"{number}.wav", number)
    row = {"id": "p1", "audio_path": ["data/1.wav", "data/0.wav"], **ITEM, "category": "sound", "kwargs": None}
    opened = row | {"id": "p2", "choices": None, "category": "open"}
    told = row | {"id": "p3", "choices": None, "category": "instruction following"}
    pq.write_table(pa.Table.from_pylist([row, opened, told]), folder / "test.parquet")


def mmsu(folder):
    sound = {"bytes": tone(folder / "x.wav", 1).read_bytes(), "path": "m1.wav"}
    row = {"id": "m1", "task_name": "sound", "audio": sound, "question": "Which?", "answer_gt": "cat"}
    row |= {"choice_a": "dog", "choice_b": "cat", "choice_c": "rain", "choice_d": None, "category": "Perception"}
    pq.write_table(pa.Table.from_pylist([row]), folder / "train-00000.parquet")


def trea(folder):
    letters = {"optionA": "dog", "optionB": "cat", "optionC": "rain", "optionD": "sea_waves", "correct": "B"}
    for task, path in (("count", "audios/7.wav"), ("order", "TREA_dataset/order/audios/7.wav")):
        tone(folder / task / "audios" / "7.wav", len(task) + len(path))
        table(folder / task / f"{task}.csv", [{"question": "Which?", "id": 7, "audio_path": path, **letters}])


def muchomusic(folder):
    options = {"correct_answer": "cat", "distractor_1_answer": "dog", "distractor_2_answer": "rain"}
    options |= {"distractor_3_answer": "sea", "question": "Which?", "genre": "rock", "music_knowledge": "['x']"}
    rows = [
        {"question_id": 1, "dataset": "sdd", "dataset_identifier": "415600.json", **options},
        {"question_id": 2, "dataset": "musiccaps", "dataset_identifier": "-0_a_30.json", **options},
    ]
    described = tone(folder / "sdd" / "audio" / "00" / "415600.2min.wav", 1)
    described.rename(described.with_suffix(".mp3"))
    tone(folder / "musiccaps" / "audio" / "[-0_a]-[30-40].wav", 2)
    table(folder / "muchomusic.csv", rows)


SETS = {
    "mmau": (mmau, ["3f"], "sound"),
    "mmau of the Hub": (mmau_of_hub, ["3f"], "sound"),
    "mmar": (mmar, ["q_0"], "sound"),
    "mmau_pro": (mmau_pro, ["p1"], "sound"),
    "mmsu": (mmsu, ["m1"], "sound"),
    "trea": (trea, ["count-7", "order-7"], "count"),
    "muchomusic": (muchomusic, ["1", "2"], "sdd"),
}


@pytest.mark.parametrize("name", SETS)
def test_a_miniature_of_its_schema_gives_questions(name, tmp_path):
    make, ids, kind = SETS[name]
    make(tmp_path)
    reader = name.partition(" ")[0]
    with pytest.warns(UserWarning, match="is licensed: "):
        data = open_data(f"{reader}:{tmp_path}")
    read = data.configuration("audio_questions")
    assert [row["id"] for row in read.rows] == ids
    assert {row["answer"] for row in read.rows} == {"cat"}
    assert read.rows[0]["kind"] == kind
    assert {"dog", "cat", "rain"} <= set(read.rows[0]["options"])
    for row in read.rows:
        load_recipe("audio_questions").check_row(row)
    assert len(list(read.clips())) == len(read.clip_ids) == (2 if name in ("mmau_pro", "trea", "muchomusic") else 1)
    if name == "mmau_pro":
        assert read.rows[0]["files"] == ["1.wav", "0.wav"]
        assert any("2 of 3 rows are open questions or about following" in note for note in data.notes)


def test_what_is_not_there_is_said(tmp_path):
    for source, options, error, message in (
        (f"mmar:{tmp_path}", {}, DatasetError, "contains nothing of MMAR; expected: MMAR-meta.jsonl"),
        (f"mmar:{tmp_path}/nowhere", {}, DatasetError, "neither a folder nor a file; give the published MMAR"),
        (f"compa:{tmp_path}", {"audio": str(tmp_path)}, InputError, "audio does not apply to the published CompA"),
    ):
        with pytest.raises(error, match=message):
            open_data(source, **options)


@pytest.mark.slow
def test_our_own_polybench_is_the_same_through_this_door(tmp_path):
    build_dataset(
        rendered_preset("mini", recipes=["polybench"], test_sets=1, train_sets=1, sample_rate=8_000),
        tmp_path,
        progress=False,
    )
    (ours,) = [open_data(tmp_path).configuration("polybench")]
    with pytest.warns(UserWarning, match="not published"):
        read = open_data(f"polybench_stored:{tmp_path}").configuration("audio_questions")
    tested = {row["id"]: row for row in ours.rows if row["split"] == "test"}
    assert [row["id"] for row in read.rows] == list(tested)
    for row in read.rows:
        mine = tested[row["id"]]
        assert all(row[name] == mine[name] for name in ("question", "options", "answer", "group", "events"))
        assert row["kind"] == mine["task"]
    clips = {clip.id.partition("/")[0]: clip for clip in ours.clips()}
    assert all((clip.waveform == clips[clip.id.partition("/")[0]].waveform).all() for clip in read.clips())


def test_rules_are_those_of_the_authors():
    for name, text, is_right in (
        ("mmau", "It is a cat.", True),
        ("mmau", "A dog, not a cat.", False),
        ("mmar", "", False),
        ("mmar", "B", False),
        ("mmsu", "B. cat", True),
        ("mmsu", "The answer is B.", True),
        ("mmsu", "cat", None),
        ("trea", "B) cat", True),
        ("trea", "(B) cat", False),
        ("muchomusic", "The correct answer is: (B)", True),
        ("muchomusic", "the cat", True),
        ("muchomusic", "A or B: cat", True),
        ("muchomusic", "dog or cat", False),
    ):
        assert reader_of(f"{name}:")[0].rule(text, ["dog", "cat", "rain"], "cat") is is_right
    # A letter is right where its option has the right text, which another may have too.
    assert all(reader_of(f"{name}:")[0].rule("B", ("cat", "cat"), "cat") for name in ("mmsu", "trea", "muchomusic"))
    for name in ("mmau", "mmar", "mmau_pro", "mmsu", "trea", "muchomusic", "polybench_stored"):
        reader, _ = reader_of(f"{name}:")
        assert reader.url.startswith("https://")
        assert all((reader.licence, reader.version, reader.rule_source))
