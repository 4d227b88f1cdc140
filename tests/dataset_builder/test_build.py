import dataclasses
import errno
import hashlib
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
import soundfile

from audio_compositionality.dataset_builder import build
from audio_compositionality.dataset_builder.build import BEGUN_NAME, LOCK_NAME, build_dataset
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.manifest import MANIFEST_NAME, Manifest
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.files import locked

from .recipes.toy import Toys, registered


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != LOCK_NAME
    }


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


@pytest.fixture(scope="module")
def folder(small_data, tmp_path_factory):
    return build_dataset(small_data, tmp_path_factory.mktemp("built") / "data", progress=False)


def test_the_folder_loads_and_streams_with_the_real_client(folder, small_data, tmp_path, monkeypatch):
    monkeypatch.chdir(folder.parent)
    quadruples = datasets.load_dataset("data", "a_coat", split="test", cache_dir=str(tmp_path))
    scenes = datasets.load_dataset("data", "a_tre", cache_dir=str(tmp_path))
    assert {split: len(rows) for split, rows in scenes.items()} == small_data.settings["a_tre"].split_sizes
    assert len(quadruples) == small_data.settings["a_coat"].quadruples
    row = quadruples.cast_column("B", datasets.Audio(decode=False)).select_columns(["id", "B", "metadata"])[0]
    assert set(row["metadata"]) == {"A", "C", "T"}
    assert set(row["metadata"]["A"][0]) == {"timbre_label", "pitch_label", "rate_label", "amplitude_label"}
    assert row["B"]["bytes"][:4] == b"fLaC"
    # The default configuration is a_coat: a load without a name gives it.
    assert "A" in datasets.load_dataset("data", split="test", cache_dir=str(tmp_path)).column_names
    stream = datasets.load_dataset("data", "a_tre", split="validation", streaming=True)
    streamed = [row["id"] for row in stream.cast_column("audio", datasets.Audio(decode=False))]
    assert streamed == [row["id"] for row in small_data.configuration("a_tre").rows if row["split"] == "validation"]


def same_clips(one, other):
    return all(
        (a.id, a.sample_rate) == (b.id, b.sample_rate) and (a.waveform == b.waveform).all()
        for a, b in zip(one.clips(), other.clips(), strict=True)
    )


def test_the_manifest_says_what_each_configuration_was_made_from(folder, small_data):
    manifest = Manifest.load(folder / MANIFEST_NAME)
    assert tuple(manifest.recipes) == small_data.recipes
    for name, built in manifest.recipes.items():
        assert built.version == 1
        assert built.fingerprint == small_data.configuration(name).fingerprint
        assert built.settings == json.loads(json.dumps(small_data.settings[name].values()))
    assert set(manifest.shards) == {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")}
    assert sum(shard.rows for shard in manifest.recipes["a_tre"].shards.values()) == 56


def test_the_code_of_the_card_runs_as_written(tiny_data, tmp_path, monkeypatch, without_torchcodec):
    card = build_dataset(tiny_data, tmp_path / "audio-compositionality", progress=False) / "README.md"
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", card.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    names = {}
    exec(code, names)
    clip = next(iter(tiny_data.configuration("a_coat").clips()))
    assert names["sample_rate"] == clip.sample_rate
    assert (names["waveform"] == clip.waveform).all()


def test_the_card_says_what_is_there(folder, small_data):
    text = (folder / "README.md").read_text()
    card = datasets.load_dataset_builder(str(folder), "a_tre")
    assert card.info.splits["train"].num_examples == small_data.settings["a_tre"].train_scenes
    labels = [f"| {label} |" for labels in small_data.settings["a_tre"].labels.values() for label in labels]
    prints = [small_data.configuration(name).fingerprint for name in small_data.recipes]
    assert [part for part in ("license: cc-by-4.0", *labels, *prints) if part not in text] == []
    assert "$" not in text.split("---", 2)[2]


def changed(data, **changes):
    """The data with other settings of every recipe that has them."""
    settings = {
        name: before.changed(**{key: value for key, value in changes.items() if hasattr(before, key)})
        for name, before in data.settings.items()
    }
    return RenderedData("changed", settings)


def test_a_voice_name_cannot_break_the_card(tiny_data, tmp_path):
    names = ("A|B", "<script>", "`[x](y)`")
    voices = tiny_data.settings["a_coat"].voices
    voices = tuple(dataclasses.replace(voice, name=name) for voice, name in zip(voices, names, strict=True))
    text = (build_dataset(changed(tiny_data, voices=voices), tmp_path / "x", progress=False) / "README.md").read_text()
    assert "| A\\|B |" in text
    assert "<script>" not in text


def test_the_bytes_do_not_depend_on_the_workers_nor_the_samples_on_the_format(tiny_data, tmp_path):
    data = tiny_data.only(["a_tre"])
    for name, audio_format, workers in (("one", "flac", 1), ("three", "flac", 3), ("wav", "wav", 3)):
        build_dataset(data, tmp_path / name, workers=workers, audio_format=audio_format, progress=False)
    assert content(tmp_path / "one") == content(tmp_path / "three")
    assert same_clips(*(open_data(tmp_path / name).configuration("a_tre") for name in ("one", "wav")))
    table = pq.read_table(tmp_path / "wav" / "a_tre" / "test-00000-of-00001.parquet", columns=["audio"])
    info = soundfile.info(io.BytesIO(table["audio"][0].as_py()["bytes"]))
    assert (info.format, info.subtype, info.samplerate, info.channels) == ("WAV", "PCM_16", 32_000, 1)


def test_a_finished_build_is_left_as_it_is_but_for_a_damaged_shard(tiny_data, tmp_path):
    folder = build_dataset(tiny_data, tmp_path / "x", progress=False)
    whole, times = content(folder), {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    build_dataset(tiny_data, folder, progress=False)
    assert times == {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    flip(folder / "a_tre" / "train-00000-of-00001.parquet")
    with pytest.warns(
        UserWarning, match=r"a_tre/train-00000-of-00001\.parquet could not be verified .* and is written again"
    ):
        build_dataset(tiny_data, folder, progress=False)
    assert content(folder) == whole


@pytest.mark.parametrize("damaged", ["train-00000-of-00001.parquet", BEGUN_NAME])
def test_a_shard_that_was_damaged_after_a_build_was_killed_is_written_again(tmp_path, monkeypatch, damaged):
    def stop(folder, job, shard, *arguments):
        if shard.split == "test":
            raise KeyboardInterrupt
        return write_shard(folder, job, shard, *arguments)

    write_shard, folder = build._write_shard, tmp_path / "killed"
    with registered(Toys()):
        monkeypatch.setattr(build, "_write_shard", stop)
        with pytest.raises(KeyboardInterrupt):
            build_dataset("tiny", folder, progress=False)
        monkeypatch.setattr(build, "_write_shard", write_shard)
        flip(folder / "toys" / damaged)
        with pytest.warns(UserWarning, match=rf"{damaged} .* written again"):
            build_dataset("tiny", folder, progress=False)
        assert content(folder) == content(build_dataset("tiny", tmp_path / "whole", progress=False))


KILLED_BUILD = """
import os, signal, sys
import pyarrow.parquet as pq
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.dataset_builder.sounds.tones import default_voices

kill_at, folder = int(sys.argv[1]), sys.argv[2]
write, written = pq.ParquetWriter.write_table, []

def write_table(self, *arguments):
    write(self, *arguments)
    written.append(1)
    if len(written) == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)

pq.ParquetWriter.write_table = write_table
data = rendered_preset(
    "mini", recipes=["a_tre"], num_classes=3, voices=default_voices()[:3], scene_candidates=2_000, train_scenes=20,
    validation_scenes=2, test_scenes=2,
)
build_dataset(data, folder, progress=False)
"""


@pytest.mark.slow
def test_a_killed_build_is_finished_by_a_second_run(tiny_data, tmp_path):
    """Killed without a chance to clean up, in one of its shards; the second run ends with the same bytes."""
    killed, data = tmp_path / "killed", tiny_data.only(["a_tre"])
    # The third group of rows is that of the second shard.
    process = subprocess.run([sys.executable, "-c", KILLED_BUILD, "3", str(killed)], check=False, capture_output=True)
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
    assert len(list(killed.rglob("*.partial"))) == 1
    with pytest.raises(DatasetError):
        _ = open_data(killed).configuration("a_tre")
    build_dataset(data, killed, progress=False)
    assert content(killed) == content(build_dataset(data, tmp_path / "whole", progress=False))


def test_a_folder_with_something_else_is_never_overwritten(tiny_data, tmp_path):
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(DatasetError, match="is not empty and contains no data set of this project"):
        build_dataset(tiny_data, tmp_path, progress=False)
    assert (tmp_path / "README.md").read_text() == "mine"
    (tmp_path / "notes.txt").write_text("kept")
    build_dataset(tiny_data, tmp_path, force=True, progress=False)
    assert (tmp_path / "notes.txt").read_text() == "kept"
    assert open_data(tmp_path).recipes == tiny_data.recipes


def test_a_folder_with_another_data_set_is_never_overwritten(tiny_data, tmp_path):
    folder = build_dataset(tiny_data, tmp_path / "x", progress=False)
    before = content(folder)
    other = changed(tiny_data, seed=1)
    for data, audio_format in ((other, "flac"), (tiny_data, "wav")):
        with pytest.raises(DatasetError, match="contains different data under the name"):
            build_dataset(data, folder, audio_format=audio_format, progress=False)
    assert content(folder) == before
    build_dataset(other, folder, force=True, progress=False)
    assert open_data(folder).configuration("a_tre").fingerprint == other.configuration("a_tre").fingerprint


def test_a_full_disk_is_said_and_loses_nothing(tiny_data, tmp_path, monkeypatch):
    calls = []
    write = pq.ParquetWriter.write_table

    def fail(self, *arguments):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, *arguments)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(DatasetError, match="is full; finished shards are kept"):
        build_dataset(tiny_data, tmp_path / "x", progress=False)
    assert (tmp_path / "x" / "a_coat" / "test-00000-of-00001.parquet").exists()
    monkeypatch.undo()
    again = build_dataset(tiny_data, tmp_path / "x", progress=False)
    assert content(again) == content(build_dataset(tiny_data, tmp_path / "y", progress=False))


def test_a_second_build_at_the_same_time_is_refused(tiny_data, tmp_path):
    (tmp_path / "x").mkdir()
    with locked(tmp_path / "x" / LOCK_NAME) as held:
        assert held
        with pytest.raises(DatasetError, match="another build is running"):
            build_dataset(tiny_data, tmp_path / "x", progress=False)


def test_bad_arguments_are_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for preset, place, options, message in (
        ("ful", "x", {}, "unknown preset 'ful'; did you mean 'full'"),
        ("mini", "x", {"audio_format": "flak"}, "unknown audio format 'flak'; did you mean 'flac'"),
        ("mini", "x", {"workers": 0}, "workers is 0"),
        ("mini", "file", {}, "is a file"),
    ):
        with pytest.raises((InputError, DatasetError), match=message):
            build_dataset(preset, tmp_path / place, progress=False, **options)
    assert not (tmp_path / "x").exists()
