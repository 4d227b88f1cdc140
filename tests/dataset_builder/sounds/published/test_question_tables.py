"""Tables of questions of any form: columns, options, answers and clips are found, and every fault is told."""

import contextlib
import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from datasets import Audio, Dataset

from audio_compositionality.dataset_builder import manifest, stored
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.sounds import recordings
from audio_compositionality.dataset_builder.sounds.published import ParquetFiles
from audio_compositionality.support.errors import InputError

RATE = 8_000
OPTIONS = (["dog", "cat", "rain"], ["1", "2"], ["yes", "no", "maybe", "never"])
ANSWERS = ("rain", "2", "yes")


def tone(path, number, seconds=0.5):
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(int(seconds * RATE)) / RATE
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * (200 + 40 * number) * time), RATE)
    return path


@pytest.fixture
def sounds(tmp_path):
    return [tone(tmp_path / "audio" / f"{number}.wav", number) for number in range(3)]


def table(path, rows):
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writeheader()
        writer.writerows(rows)
    return path


def records(answers=ANSWERS, **more):
    return [
        {"audio": f"audio/{number}.wav", "question": f"What is\nit, {number}?", "options": options, "answer": answer}
        | {name: values[number] for name, values in more.items()}
        for number, (options, answer) in enumerate(zip(OPTIONS, answers, strict=True))
    ]


def written(folder, form, rows):
    path = folder / f"questions.{form}"
    if form in ("csv", "tsv"):
        return table(path, [row | {"options": json.dumps(row["options"])} for row in rows])
    if form == "parquet":
        sound = [{"bytes": (folder / row["audio"]).read_bytes(), "path": row["audio"]} for row in rows]
        pq.write_table(pa.Table.from_pylist([row | {"audio": one} for row, one in zip(rows, sound, strict=True)]), path)
    else:
        path.write_text(json.dumps({"data": rows}) if form == "json" else "\n".join(map(json.dumps, rows)))
    return path


def opened(path, **given):
    return open_data(path, **given).configuration("audio_questions")


def test_all_sounds_of_a_question_have_a_limit_together(tmp_path):
    """A small file that is named many times would fill the memory: its samples are there once for each time."""
    soundfile.write(tmp_path / "long.flac", np.zeros(500 * RATE), RATE)
    row = {"question": "What?", "options": ["a", "b"], "answer": "a"}
    with pytest.raises(DatasetError, match=r"its sounds are together longer than 1,200 s \(question-00000: 1,500 s"):
        open_data(written(tmp_path, "jsonl", [row | {"audio": ["long.flac"] * 3}]))
    assert len(opened(written(tmp_path, "jsonl", [row | {"audio": ["long.flac"] * 2}])).rows) == 1


def test_parquet_of_equal_values_is_read_no_further_than_its_memory_goes(tmp_path, sounds, monkeypatch):
    """A dictionary of one long text makes any number of rows of some bytes each."""
    monkeypatch.setattr(manifest, "LARGEST_GROUP", 2**22)
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_000, np.int32)), ["x" * 2**14]).cast(pa.string())
    names = ["audio", "question", "options", "answer"]
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table([text] * 4, names), path)
    assert path.stat().st_size < 2**18
    with pytest.raises(DatasetError, match="has more than 4,194,304 bytes in rows that are read at once"):
        open_data(path)
    with pytest.raises(DatasetError, match="has more than 4,194,304 bytes in rows that are read at once"):
        ParquetFiles(path, name="audio", sound="question")
    # As many groups as one likes are within the limit, each by itself.
    pq.write_table(pa.table([text] * 4, names), path, row_group_size=10)
    with pytest.raises(DatasetError, match="has more than 4,194,304 characters"):
        open_data(path)
    # Nulls in a list take no room in the file at all.
    pq.write_table(pa.table({"options": pa.array([[None] * 2**20], pa.list_(pa.string()))}), path)
    with pytest.raises(DatasetError, match="declares 1,048,576 values in options"):
        manifest.rows_of_groups("bomb.parquet", pq.ParquetFile(path), [0])


def test_few_rows_of_parquet_are_decoded_at_a_time_where_a_value_is_large(tmp_path, monkeypatch):
    """One batch of 256 rows could hold 256 times the largest value."""
    monkeypatch.setattr(manifest, "LARGEST_GROUP", 2**22)
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(300, np.int32)), ["x" * 2**18])
    pq.write_table(pa.table({"question": text}), tmp_path / "a.parquet")
    table = pq.ParquetFile(tmp_path / "a.parquet")
    batch = next(manifest.batches_of("a.parquet", table, [0]))
    assert len(batch) * 2**18 <= 2**21
    with pytest.raises(DatasetError, match="more than 4,194,304 bytes"):
        manifest.rows_of_groups("a.parquet", table, [0])


def test_a_wide_character_makes_a_text_of_four_bytes_a_character(tmp_path, monkeypatch):
    """Python's own sizes are the truth; Arrow's are a quarter of them, or less where a dictionary has the text."""
    narrow, wide = "x" * 2**14, "x" * (2**14 - 1) + "\N{DOG FACE}"
    indices = pa.array([0, 1, None] * 20, pa.int32())
    for texts in ([narrow] * 2, [narrow, wide]):
        for values in (
            pa.array(texts * 20),
            pa.DictionaryArray.from_arrays(indices, texts),
            pa.array([{"a": texts}] * 20),
            pa.array([texts] * 20),
        ):
            lists = [value["a"] if isinstance(value, dict) else value for value in values.to_pylist()]
            flat = [text for value in lists for text in (value if isinstance(value, list) else [value]) if text]
            actual = sum(map(sys.getsizeof, flat))
            assert 0.95 * actual <= manifest._python_size(values) <= 2 * actual
    sounds = pa.DictionaryArray.from_arrays(indices, pa.array([b"x" * 2**14] * 2, pa.large_binary()))
    assert manifest._python_size(sounds) == 40 * 2**14
    monkeypatch.setattr(manifest, "LARGEST_GROUP", 2**22)
    for text, is_read in ((narrow, True), (wide, False)):
        pq.write_table(pa.table({"a": [text] * 100}), tmp_path / "a.parquet")
        with contextlib.nullcontext() if is_read else pytest.raises(DatasetError, match="more than 4,194,304 bytes"):
            manifest.rows_of_groups("a.parquet", pq.ParquetFile(tmp_path / "a.parquet"), [0])


def test_a_sound_of_many_equal_samples_is_not_decoded_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(recordings, "MOST_VALUES", 1_000)
    soundfile.write(tmp_path / "a.flac", np.zeros((600, 2)), RATE)
    with pytest.raises(recordings.SoundError, match="has 501 samples in 2 channels; at most 1,000 are decoded"):
        recordings.read_samples(tmp_path / "a.flac", 501, 0)
    assert len(recordings.read_samples(tmp_path / "a.flac", 500, 100)) == 500


@pytest.mark.parametrize("form", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_every_form_gives_the_same_rows_and_samples(tmp_path, sounds, form):
    read = opened(written(tmp_path, form, records()))
    assert [row["options"] for row in read.rows] == [list(options) for options in OPTIONS]
    assert [row["answer"] for row in read.rows] == list(ANSWERS)
    assert [row["question"] for row in read.rows] == [f"What is it, {number}?" for number in range(3)]
    assert [row["files"] for row in read.rows] == [[f"{number}.wav"] for number in range(3)]
    assert {row["duration"] for row in read.rows} == {0.5}
    assert len({row["group"] for row in read.rows}) == 3
    assert [len(clip.waveform) for clip in read.clips()] == [RATE // 2] * 3
    for row in read.rows:
        load_recipe("audio_questions").check_row(row)
    reference = opened(written(tmp_path, "jsonl", records()))
    assert (read.fingerprint, read.clip_ids) == (reference.fingerprint, reference.clip_ids)


def test_a_folder_of_shards_is_read_in_order(tmp_path, sounds):
    shards = tmp_path / "shards"
    shards.mkdir()
    for number in range(2):
        path = written(tmp_path, "parquet", [records()[number] | {"id": f"q{number}"}])
        path.rename(shards / f"test-{number}.parquet")
    assert [row["id"] for row in opened(shards).rows] == ["q0", "q1"]


@pytest.mark.parametrize(
    "answers",
    [("C", "B", "A"), ("(c)", "(b)", "(a)"), ("C. rain", "B. 2", "A. yes"), (2, 1, 0), (3, 2, 1), ("3", "2", "1")],
)
def test_answers_by_text_letter_or_number_from_0_or_1_are_told_from_all(tmp_path, sounds, answers):
    # From 0, the second one has no text of its own among its options but 1.
    read = opened(written(tmp_path, "jsonl", records(answers)))
    assert [row["answer"] for row in read.rows] == list(ANSWERS)


def test_answers_may_differ_from_an_option_in_case_dot_apostrophe_and_form_of_unicode(tmp_path, sounds):
    options = ["a child\N{RIGHT SINGLE QUOTATION MARK}s cry", "caf\u00e9", "Rain"]
    answers = ["A child's cry", "cafe\u0301", "rain."]
    rows = [{**record, "options": options, "answer": answers[n]} for n, record in enumerate(records())]
    assert [row["answer"] for row in opened(written(tmp_path, "jsonl", rows)).rows] == options


def test_a_spreadsheet_may_divide_by_semicolons_and_lead_back_into_its_folder(tmp_path, sounds):
    lines = [f"q{n};./audio/../audio/{n}.wav;What?;dog|rain, and wind;dog" for n in range(3)]
    (tmp_path / "q.csv").write_text("\n".join(["id;audio;question;options;answer", *lines]))
    rows = opened(tmp_path / "q.csv").rows
    assert [(row["files"], row["options"]) for row in rows] == [
        ([f"{n}.wav"], ["dog", "rain, and wind"]) for n in range(3)
    ]


def test_what_is_asked_of_the_user(tmp_path, sounds):
    path = written(tmp_path, "jsonl", records((1, 1, 1)))
    for options, error, message in (
        ({}, DatasetError, r"read as from-0 or as from-1, e.g. '1' of question-00000.*--set answers="),
        ({"answers": "letter"}, InputError, r"answers is 'letter'; did you mean 'letters'"),
        ({"columns": ("question=ask",)}, DatasetError, "has no column 'ask'"),
        ({"columns": ("questoin=question",)}, InputError, "did you mean 'question'"),
        ({"columns": ("question=a+b",)}, InputError, "only options and audio"),
    ):
        with pytest.raises(error, match=message):
            open_data(path, **options)
    assert opened(path, answers="from-0").rows[0]["answer"] == "cat"
    assert opened(path, answers="from-1").rows[0]["answer"] == "dog"
    path = table(tmp_path / "q.csv", [{"question": "?", "options": '["a", "b"]', "solution": "a", "sound": "0.wav"}])
    with pytest.raises(DatasetError, match=r"no column of answer and audio; its columns are .*--set columns=answer="):
        open_data(path)


def test_options_and_clips_of_several_columns_and_letters_in_front(tmp_path, sounds):
    rows = [
        {"Audio_1": "0.wav", "Audio_2": "1.wav", "Question": "Which?", "optionA": "(A) one", "optionB": "(B) two"}
        | {"optionC": "", "Correct": "B", "Category": "order", "uid": "x/1"}
    ]
    (row,) = opened(table(tmp_path / "q.csv", rows)).rows
    assert (row["options"], row["answer"], row["kind"], row["id"]) == (["one", "two"], "two", "order", "x/1")
    assert (row["files"], row["duration"]) == (["0.wav", "1.wav"], 1.0)
    said = [{"clip name": "2", "ask": "Which?", "l": "a", "r": "b", "right": "b"}]
    columns = ("audio=clip name", "question=ask", "options=l+r", "answer=right")
    place = f"questions:{table(tmp_path / 'said.csv', said)}"
    with pytest.warns(UserWarning, match=r"2 of 3 sound files of .*audio are not used by any question: 0\.wav, 1\.wav"):
        read = opened(place, columns=columns, audio=str(tmp_path / "audio"))
    assert (read.rows[0]["options"], read.rows[0]["files"]) == (["a", "b"], ["2"])
    assert len(list(read.clips())) == 1


def test_all_faults_are_told_at_once_and_left_out_by_choice_alone(tmp_path, sounds):
    (tmp_path / "audio" / "broken.wav").write_bytes(b"RIFF")
    soundfile.write(tmp_path / "audio" / "empty.wav", np.zeros(0), RATE)
    faulty = [
        ("audio/0.wav", ["a", "b"], "c", "not one of the options"),
        ("audio/0.wav", ["a", "A"], "a", "an option is repeated"),
        ("audio/0.wav", ["a"], "a", "it has 1 option"),
        ("audio/0.wav", ["a", "F. Scott"], "a", "begins as if it were lettered"),
        ("audio/9.wav", ["a", "b"], "a", "a file is missing"),
        ("../secret.wav", ["a", "b"], "a", "a file is missing"),
        ("audio/broken.wav", ["a", "b"], "a", "a sound cannot be read"),
        ("audio/empty.wav", ["a", "b"], "a", "a sound is empty"),
    ]
    rows = [{"id": "good", **records()[0]}, *({"id": "twice", **records()[0]} for _ in range(2))]
    rows += [
        {"id": f"f{number}", "audio": audio, "question": "What?", "options": options, "answer": answer}
        for number, (audio, options, answer, _) in enumerate(faulty)
    ]
    path = written(tmp_path, "jsonl", rows)
    with pytest.raises(DatasetError) as error:
        open_data(path)
    for part in ("10 of 11 questions", "2: another row has the same id", "2: a file is missing", "--skip-invalid"):
        assert part in str(error.value)
    assert all(fault in str(error.value) for *_, fault in faulty)
    with pytest.warns(UserWarning, match=r"10 of 11 questions .* left out: .*f0"):
        data = open_data(path, skip_invalid=True)
    assert [row["id"] for row in data.configuration("audio_questions").rows] == ["good"]
    assert len(data.faults) == 10


@pytest.mark.parametrize("is_declared", [True, False])
def test_a_data_set_of_the_hub_is_read_by_its_id(tmp_path, sounds, monkeypatch, is_declared):
    (tmp_path / "copy" / "data").mkdir(parents=True)
    shard = written(tmp_path, "parquet", records()).rename(tmp_path / "copy" / "data" / "test-00000-of-00001.parquet")
    if is_declared:
        Dataset.from_parquet(str(shard), cache_dir=str(tmp_path)).cast_column("audio", Audio(decode=False)).to_parquet(
            shard
        )
    monkeypatch.setattr(stored, "place_of", lambda source, revision: stored.LocalFolder(str(tmp_path / "copy")))
    read = opened("questions:someone/questions")
    assert [row["answer"] for row in read.rows] == list(ANSWERS)
    assert [len(clip.waveform) for clip in read.clips()] == [RATE // 2] * 3
