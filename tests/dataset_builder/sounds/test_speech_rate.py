"""Words a second of speech: from transcripts, from words with times, in data sets and in tables."""

from __future__ import annotations

import io

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile
from datasets import Audio, List, Value

from audio_compositionality.dataset_builder.recorded import recorded
from audio_compositionality.dataset_builder.sounds.folder import folder_recordings
from audio_compositionality.dataset_builder.sounds.hub import hub_recordings
from audio_compositionality.dataset_builder.sounds.labels import counted_labels
from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from .sounds import RATE, noise, write

TEXT = Value("string")
LIBRISPEECH = {"file": TEXT, "audio": Audio(sampling_rate=16_000), "text": TEXT, "speaker_id": Value("int64")}
LIBRISPEECH |= {"chapter_id": Value("int64"), "id": TEXT}
"""The columns of openslr/librispeech_asr."""

SPLITS = ("train.100", "validation", "test")
FILES = "".join(f"  - split: {split}\n    path: clean/{split}/*.parquet\n" for split in SPLITS)
CARD = f"---\nconfigs:\n- config_name: clean\n  data_files:\n{FILES}---\n"


def flac(seconds, seed):
    stream = io.BytesIO()
    soundfile.write(stream, noise(seconds, seed=seed), RATE, format="FLAC")
    return {"bytes": stream.getvalue(), "path": "x.flac"}


def utterance(speaker, number):
    """2 s, 2.5 s or 3 s of as many words as the number says, and one."""
    said = {"text": " ".join(["WORD"] * (number + 1)), "speaker_id": speaker, "chapter_id": 1}
    name = f"{speaker}-1-{number:04d}"
    return {**said, "audio": flac(2 + 0.5 * (number % 3), 100 * speaker + number), "file": f"{name}.flac", "id": name}


def save(folder, rows, features, split="test"):
    path = folder / "clean" / split / "0000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {name: [row[name] for row in rows] for name in features}
    pq.write_table(pa.Table.from_pydict(table, schema=datasets.Features(features).arrow_schema), path)


@pytest.fixture
def librispeech(tmp_path, without_torchcodec):
    """A miniature of LibriSpeech: three splits, speakers in one each."""
    for place, split in enumerate(SPLITS):
        rows = [utterance(10 * place + speaker, number) for speaker in range(3) for number in range(3)]
        save(tmp_path, rows, LIBRISPEECH, split=split)
    (tmp_path / "README.md").write_text(CARD)
    return tmp_path


def opened(folder, **options):
    return hub_recordings(folder, progress=False, **options)


def test_words_of_a_transcript_are_counted_over_the_whole_recording(librispeech):
    for label in ("words_per_second", "words_per_second=text"):
        entries = opened(librispeech, config="clean", split="test", label=label, group="speaker_id").entries
        assert sorted({entry.number for entry in entries}) == pytest.approx([1 / 2, 2 / 2.5, 3 / 3])
        assert {entry.label for entry in entries} == {"0.500", "0.800", "1.000"}
        assert {entry.group for entry in entries} == {"20", "21", "22"}
    # Splits of LibriSpeech have names with dots.
    split = "train.100[:6]+validation+test"
    assert len(opened(librispeech, config="clean", split=split, label="words_per_second").entries) == 6 + 9 + 9
    for options, message in (
        ({"split": "train.10"}, r"has no split 'train\.10'; did you mean 'train\.100'"),
        ({"label": "words_per_second=txt"}, "has no column 'txt'; did you mean 'text'"),
        ({"label": "words_per_secnd"}, "has no column 'words_per_secnd'"),
        ({"label": "words_per_second=speaker_id"}, "speaker_id of row 0 is neither a text nor words with times"),
    ):
        with pytest.raises(SoundError, match=message):
            opened(librispeech, **{"config": "clean", "split": "test", **options})


def test_the_labels_are_regressed_by_the_task_that_reads_them(tmp_path, without_torchcodec):
    from audio_compositionality.evaluator.run.evaluate import evaluate
    from audio_compositionality.evaluator.run.options import RunOptions

    rows = [{**utterance(speaker, 0), "text": "WORD " * (speaker + 1)} for speaker in range(18)]
    save(tmp_path / "set", rows, LIBRISPEECH)
    recordings = opened(tmp_path / "set", label="words_per_second", group="speaker_id")
    data = recorded(recordings, recipes=["transforms"], transforms=["noise"], bases=18, untransformed=1)
    assert {row["number"] for row in data.configuration("transforms").rows} == {n / 2 for n in range(1, 19)}
    options = RunOptions(store=tmp_path / "store", settings={"probes": ["ridge"]})
    (result,) = evaluate("log-mel-statistics", data, tasks=["transform_disentanglement"], options=options)
    # As classes, of which each is in one recording only, they would be refused.
    assert result.measures["label_under_noise_shift_before"] is not None


def test_words_with_times_are_counted_from_the_first_to_the_last(tmp_path, without_torchcodec):
    times = {"word": TEXT, "start": Value("float64"), "end": Value("float64")}
    words = [
        [("", 0.0, 0.5), ("a", 0.5, 0.7), ("b", 0.8, 1.0), ("<eps>", 1.0, 2.0)],
        [("a", 0.0, 0.25), ("b", 0.25, 0.5), ("c", 0.5, 1.0)],
        [("", 0.0, 2.0)],
    ]
    said = [[dict(zip(times, word, strict=True)) for word in of_row] for of_row in words]
    rows = [{"audio": flac(2, n), "words": of_row} for n, of_row in enumerate(said)]
    save(tmp_path, rows, {"audio": Audio(), "words": List(times)})
    recordings = opened(tmp_path, label="words_per_second", skip_invalid=True)
    assert sorted(entry.number for entry in recordings.entries) == pytest.approx([3.0, 4.0])
    assert [reason for _, reason in recordings.skipped] == ["has no words in words"]
    # They may be lists by name, too.
    lists = [{"word": ["a", "b"], "start": [0.0, 0.5], "end": [0.5, 1.0]}]
    assert list(counted_labels("set", "words", lists, lambda row: io.BytesIO()).numbers) == [2.0]


def test_a_table_of_a_folder_has_transcripts_too(tmp_path):
    lines = ["file_name,said"]
    for number in range(4):
        write(tmp_path / f"{number}.wav", seconds=2, seed=number)
        lines.append(f"{number}.wav,{'word ' * (number + 1)}")
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    recordings = folder_recordings(tmp_path, label="words_per_second=said", progress=False)
    assert sorted(entry.number for entry in recordings.entries) == [0.5, 1.0, 1.5, 2.0]
    with pytest.raises(SoundError, match=r"metadata\.csv has no column text, transcript"):
        folder_recordings(tmp_path, label="words_per_second", progress=False)


def test_a_column_of_that_name_is_taken_as_it_is(tmp_path, without_torchcodec):
    rows = [{"audio": flac(1, n), "text": "a b", "words_per_second": 0.5 + n} for n in range(3)]
    save(tmp_path, rows, {"audio": Audio(), "text": TEXT, "words_per_second": Value("float64")})
    recordings = opened(tmp_path, label="words_per_second")
    assert sorted(entry.number for entry in recordings.entries) == [0.5, 1.5, 2.5]
