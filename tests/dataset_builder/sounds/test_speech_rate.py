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

LIBRISPEECH = {
    "file": Value("string"),
    "audio": Audio(sampling_rate=16_000),
    "text": Value("string"),
    "speaker_id": Value("int64"),
    "chapter_id": Value("int64"),
    "id": Value("string"),
}
"""The columns of openslr/librispeech_asr."""

CARD = """\
---
configs:
- config_name: clean
  data_files:
  - split: train.100
    path: clean/train.100/*.parquet
  - split: validation
    path: clean/validation/*.parquet
  - split: test
    path: clean/test/*.parquet
---
"""


def flac(seconds, seed):
    stream = io.BytesIO()
    soundfile.write(stream, noise(seconds, seed=seed), RATE, format="FLAC")
    return stream.getvalue()


def utterance(split, speaker, number):
    seed = 100 * speaker + number
    name = f"{speaker}-1-{number:04d}"
    return {
        "file": f"{name}.flac",
        # 2 s, 2.5 s or 3 s of as many words as the number says, and one.
        "audio": {"bytes": flac(2 + 0.5 * (number % 3), seed), "path": f"{name}.flac"},
        "text": " ".join(["WORD"] * (number + 1)),
        "speaker_id": speaker,
        "chapter_id": 1,
        "id": name,
    }


def save(folder, rows, features, config="clean", split="test"):
    path = folder / config / split / "0000.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    table = {name: [row[name] for row in rows] for name in features}
    pq.write_table(pa.Table.from_pydict(table, schema=datasets.Features(features).arrow_schema), path)


@pytest.fixture
def librispeech(tmp_path, without_torchcodec):
    """A miniature of LibriSpeech: three splits, speakers in one each."""
    for place, split in enumerate(("train.100", "validation", "test")):
        rows = [utterance(split, 10 * place + speaker, number) for speaker in range(6) for number in range(3)]
        save(tmp_path, rows, LIBRISPEECH, split=split)
    (tmp_path / "README.md").write_text(CARD)
    return tmp_path


def opened(folder, **options):
    return hub_recordings(folder, progress=False, **{"config": "clean", "split": "test", **options})


@pytest.mark.parametrize("label", ["words_per_second", "words_per_second=text"])
def test_words_of_a_transcript_are_counted_over_the_whole_recording(librispeech, label):
    entries = opened(librispeech, label=label, group="speaker_id").entries
    assert sorted({entry.number for entry in entries}) == pytest.approx([1 / 2, 2 / 2.5, 3 / 3])
    assert {entry.label for entry in entries} == {"0.500", "0.800", "1.000"}
    assert {entry.group for entry in entries} == {str(speaker) for speaker in range(20, 26)}


def test_the_splits_of_librispeech_have_names_with_dots(librispeech):
    entries = opened(librispeech, split="train.100[:6]+validation+test", label="words_per_second").entries
    assert len(entries) == 6 + 18 + 18
    with pytest.raises(SoundError, match=r"has no split 'train\.10'; did you mean 'train\.100'"):
        opened(librispeech, split="train.10")


def test_the_labels_are_regressed_by_the_task_that_reads_them(tmp_path, without_torchcodec):
    from audio_compositionality.evaluator.run.evaluate import evaluate
    from audio_compositionality.evaluator.run.options import RunOptions

    rows = [{**utterance("test", speaker, 0), "text": "WORD " * (speaker + 1)} for speaker in range(18)]
    save(tmp_path / "set", rows, LIBRISPEECH)
    recordings = hub_recordings(tmp_path / "set", label="words_per_second", group="speaker_id", progress=False)
    data = recorded(recordings, recipes=["transforms"], transforms=["noise"], bases=18, untransformed=1)
    assert {row["number"] for row in data.configuration("transforms").rows} == {n / 2 for n in range(1, 19)}
    options = RunOptions(store=tmp_path / "store", settings={"probes": ["ridge"]})
    (result,) = evaluate("log-mel-statistics", data, tasks=["transform_disentanglement"], options=options)
    # As classes, of which each is in one recording only, they would be refused.
    assert result.measures["label_under_noise_shift_before"] is not None


def test_words_with_times_are_counted_from_the_first_to_the_last(tmp_path, without_torchcodec):
    times = {"word": Value("string"), "start": Value("float64"), "end": Value("float64")}
    words = [
        [("", 0.0, 0.5), ("a", 0.5, 0.7), ("b", 0.8, 1.0), ("<eps>", 1.0, 2.0)],
        [("a", 0.0, 0.25), ("b", 0.25, 0.5), ("c", 0.5, 1.0)],
        [("", 0.0, 2.0)],
    ]
    rows = [
        {
            "audio": {"bytes": flac(2, n), "path": "x.flac"},
            "words": [dict(zip(times, word, strict=True)) for word in of_row],
        }
        for n, of_row in enumerate(words)
    ]
    save(tmp_path, rows, {"audio": Audio(), "words": List(times)}, config="data")
    recordings = hub_recordings(tmp_path, label="words_per_second", progress=False, skip_invalid=True)
    assert sorted(entry.number for entry in recordings.entries) == pytest.approx([3.0, 4.0])
    assert [reason for _, reason in recordings.skipped] == ["has no words in words"]


def test_words_with_times_may_be_lists_by_name():
    said = [{"word": ["a", "b"], "start": [0.0, 0.5], "end": [0.5, 1.0]}]
    assert list(counted_labels("set", "words", said, lambda row: io.BytesIO()).numbers) == [2.0]


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


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("words_per_second=txt", "has no column 'txt'; did you mean 'text'"),
        ("words_per_secnd", "has no column 'words_per_secnd'"),
        ("words_per_second=speaker_id", "speaker_id of row 0 is neither a text nor words with times"),
    ],
)
def test_what_has_no_words_is_refused(librispeech, label, message):
    with pytest.raises(SoundError, match=message):
        opened(librispeech, label=label)


def test_a_column_of_that_name_is_taken_as_it_is(tmp_path, without_torchcodec):
    rows = [{"audio": {"bytes": flac(1, n), "path": "x"}, "text": "a b", "words_per_second": 0.5 + n} for n in range(3)]
    save(
        tmp_path, rows, {"audio": Audio(), "text": Value("string"), "words_per_second": Value("float64")}, config="data"
    )
    recordings = hub_recordings(tmp_path, label="words_per_second", progress=False)
    assert sorted(entry.number for entry in recordings.entries) == [0.5, 1.5, 2.5]
