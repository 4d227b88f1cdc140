import dataclasses
import errno
import fcntl
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
import soundfile

from audio_compositionality.dataset_builder import BenchmarkConfig, DatasetError, build_dataset, open_benchmark


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(scope="module")
def folder(small_config, tmp_path_factory):
    return build_dataset(small_config, tmp_path_factory.mktemp("built") / "data", progress=False)


def test_the_folder_loads_with_the_real_client(folder, small_config, tmp_path, monkeypatch):
    monkeypatch.chdir(folder.parent)
    quadruples = datasets.load_dataset("data", "a_coat", split="test", cache_dir=str(tmp_path))
    scenes = datasets.load_dataset("data", "a_tre", cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in scenes.items()} == small_config.split_sizes
    assert len(quadruples) == small_config.quadruples
    row = quadruples.cast_column("B", datasets.Audio(decode=False)).select_columns(["id", "B", "metadata"])[0]
    assert set(row["metadata"]) == {"A", "C", "T"}
    assert set(row["metadata"]["A"][0]) == {"timbre_label", "pitch_label", "rate_label", "amplitude_label"}
    assert row["B"]["bytes"][:4] == b"fLaC"
    # The default configuration is a_coat: a load without a name gives it.
    assert "A" in datasets.load_dataset("data", split="test", cache_dir=str(tmp_path)).column_names


def test_the_folder_streams(folder, small_benchmark):
    stream = datasets.load_dataset(str(folder), "a_tre", split="validation", streaming=True)
    rows = list(stream.cast_column("audio", datasets.Audio(decode=False)))
    assert [row["id"] for row in rows] == [scene.id for scene in small_benchmark.scenes if scene.split == "validation"]


def test_rendered_and_built_are_the_same_rows_and_samples(folder, small_benchmark):
    built = open_benchmark(str(folder))
    assert built.fingerprint == small_benchmark.fingerprint
    assert built.tasks == small_benchmark.tasks
    assert built.amplitude_gains == small_benchmark.amplitude_gains
    for task in built.tasks:
        assert built.rows(task) == small_benchmark.rows(task)
        assert built.num_clips(task) == small_benchmark.num_clips(task)
        pairs = zip(built.batches(task, 5), small_benchmark.batches(task, 5), strict=True)
        for one, other in pairs:
            assert one.ids == other.ids
            assert one.sample_rate == other.sample_rate == 32_000
            assert (one.waveforms == other.waveforms).all()


def test_the_card_says_what_is_there(folder, small_config):
    text = (folder / "README.md").read_text()
    card = datasets.load_dataset_builder(str(folder), "a_tre")
    assert card.info.splits["train"].num_examples == small_config.train_scenes
    assert "license: cc-by-4.0" in text
    assert small_config.fingerprint in text
    for labels in small_config.labels.values():
        assert all(f"| {label} |" in text for label in labels)
    assert "$" not in text.split("---", 2)[2]


def test_a_voice_name_cannot_break_the_card(small_config, tmp_path):
    names = ("A|B", "<script>", "`[x](y)`")
    voices = tuple(dataclasses.replace(v, name=name) for v, name in zip(small_config.voices, names, strict=True))
    config = dataclasses.replace(
        small_config, voices=voices, quadruples=2, train_scenes=2, validation_scenes=1, test_scenes=1
    )
    text = (build_dataset(config, tmp_path / "x", progress=False) / "README.md").read_text()
    assert "| A\\|B |" in text
    assert "<script>" not in text


@pytest.mark.parametrize("audio_format", ["flac", "wav"])
def test_the_bytes_do_not_depend_on_the_workers(tiny_config, tmp_path, audio_format):
    contents = [
        content(build_dataset(tiny_config, tmp_path / str(n), workers=n, audio_format=audio_format, progress=False))
        for n in (1, 3)
    ]
    assert contents[0] == contents[1]


def test_wav_and_flac_hold_the_same_samples(tiny_config, tmp_path):
    folders = {f: build_dataset(tiny_config, tmp_path / f, audio_format=f, progress=False) for f in ("flac", "wav")}
    batches = [list(open_benchmark(str(folder)).batches("a_tre", 4)) for folder in folders.values()]
    assert all((one.waveforms == other.waveforms).all() for one, other in zip(*batches, strict=True))
    table = pq.read_table(folders["wav"] / "a_tre" / "test-00000-of-00001.parquet", columns=["audio"])
    info = soundfile.info(io.BytesIO(table["audio"][0].as_py()["bytes"]))
    assert (info.format, info.subtype, info.samplerate, info.channels) == ("WAV", "PCM_16", 32_000, 1)


def test_a_finished_build_is_left_as_it_is(tiny_config, tmp_path):
    folder = build_dataset(tiny_config, tmp_path / "x", progress=False)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    build_dataset(tiny_config, folder, progress=False)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_a_damaged_shard_of_a_finished_build_is_written_again(tiny_config, tmp_path):
    folder = build_dataset(tiny_config, tmp_path / "x", progress=False)
    whole = content(folder)
    shard = folder / "a_tre" / "train-00000-of-00001.parquet"
    data = bytearray(shard.read_bytes())
    data[len(data) // 3] ^= 255
    shard.write_bytes(data)
    build_dataset(tiny_config, folder, progress=False)
    assert content(folder) == whole


KILLED_BUILD = """
import json, os, signal, sys
import pyarrow.parquet as pq
from audio_compositionality.dataset_builder import BenchmarkConfig, build_dataset

fields, kill_at, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
write, written = pq.ParquetWriter.write_table, []

def write_table(self, *arguments):
    write(self, *arguments)
    written.append(1)
    if len(written) == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

pq.ParquetWriter.write_table = write_table
build_dataset(BenchmarkConfig(**fields, voices=BenchmarkConfig().voices[:3]), folder, progress=False)
"""


@pytest.mark.parametrize("kill_at", [1, 2, 4])
def test_a_killed_build_is_finished_by_a_second_run(tiny_config, tmp_path, kill_at):
    """Killed without a chance to clean up, in each of three shards; the second run ends with the same bytes."""
    fields = {name: value for name, value in vars(tiny_config).items() if name in BenchmarkConfig.__dataclass_fields__}
    del fields["voices"]
    killed = tmp_path / "killed"
    process = subprocess.run(
        [sys.executable, "-c", KILLED_BUILD, json.dumps(fields), str(kill_at), str(killed)],
        check=False,
        capture_output=True,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    assert len(list(killed.rglob("*.partial"))) == 1
    with pytest.raises(DatasetError):
        list(open_benchmark(str(killed)).batches("a_coat", 4))
    build_dataset(tiny_config, killed, progress=False)
    whole = content(build_dataset(tiny_config, tmp_path / "whole", progress=False))
    assert content(killed) == whole


def test_a_folder_with_something_else_is_never_overwritten(tiny_config, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(DatasetError, match="is not empty and holds no data set of this project"):
        build_dataset(tiny_config, tmp_path, progress=False)
    assert (tmp_path / "README.md").read_text() == "mine"
    (tmp_path / "notes.txt").write_text("kept")
    build_dataset(tiny_config, tmp_path, force=True, progress=False)
    assert (tmp_path / "notes.txt").read_text() == "kept"
    assert open_benchmark(str(tmp_path)).fingerprint == tiny_config.fingerprint


def test_a_folder_with_another_data_set_is_never_overwritten(tiny_config, tmp_path):
    folder = build_dataset(tiny_config, tmp_path / "x", progress=False)
    before = content(folder)
    other = dataclasses.replace(tiny_config, seed=1)
    for config, audio_format in ((other, "flac"), (tiny_config, "wav")):
        with pytest.raises(DatasetError, match="holds another data set"):
            build_dataset(config, folder, audio_format=audio_format, progress=False)
    assert content(folder) == before
    build_dataset(other, folder, force=True, progress=False)
    assert open_benchmark(str(folder)).fingerprint == other.fingerprint


def test_a_file_in_the_place_of_the_folder_is_refused(tiny_config, tmp_path):
    (tmp_path / "x").write_text("")
    with pytest.raises(DatasetError, match="is a file"):
        build_dataset(tiny_config, tmp_path / "x", progress=False)


def test_a_full_disk_is_said_and_loses_nothing(tiny_config, tmp_path, monkeypatch):
    calls = []
    write = pq.ParquetWriter.write_table

    def fail(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, *arguments)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(DatasetError, match="is full; finished shards are kept"):
        build_dataset(tiny_config, tmp_path / "x", progress=False)
    assert (tmp_path / "x" / "a_coat" / "test-00000-of-00001.parquet").exists()
    monkeypatch.undo()
    build_dataset(tiny_config, tmp_path / "x", progress=False)
    assert content(tmp_path / "x") == content(build_dataset(tiny_config, tmp_path / "y", progress=False))


def test_a_second_build_at_the_same_time_is_refused(tiny_config, tmp_path):
    (tmp_path / "x").mkdir()
    descriptor = os.open(tmp_path / "x", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(DatasetError, match="another build is running"):
        build_dataset(tiny_config, tmp_path / "x", progress=False)
    os.close(descriptor)
    build_dataset(tiny_config, tmp_path / "x", progress=False)


def test_another_sample_rate_is_read_as_it_was_built(tiny_config, tmp_path):
    config = dataclasses.replace(tiny_config, sample_rate=44_100)
    built = open_benchmark(build_dataset(config, tmp_path / "x", progress=False))
    for one, other in zip(built.batches("a_tre", 4), open_benchmark(config).batches("a_tre", 4), strict=True):
        assert one.sample_rate == other.sample_rate == 44_100
        assert (one.waveforms == other.waveforms).all()


def test_bad_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="unknown preset 'ful'; did you mean 'full'"):
        build_dataset("ful", tmp_path / "x")
    with pytest.raises(ValueError, match="unknown audio format 'flak'; did you mean 'flac'"):
        build_dataset("mini", tmp_path / "x", audio_format="flak")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="workers is 0"):
        build_dataset("mini", tmp_path / "x", workers=0)
    assert not (tmp_path / "x").exists()
