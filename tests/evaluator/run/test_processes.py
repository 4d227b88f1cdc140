from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from tiny_whisper import save_tiny_whisper

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.evaluator.results.result import Result, load_result
from audio_compositionality.evaluator.run.processes import Processes, join_processes
from audio_compositionality.support.errors import InputError

from ...dataset_builder.recipes.toy import as_others_have_it

SCRIPT = Path(__file__).parent / "in_processes.py"
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
MODULE = ["-m", "audio_compositionality"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """40 quadruples: three shards, of which one process gets two, the other one. Their files may be changed."""
    pools = {"num_classes": 3, "voices": default_voices()[:3], "quadruple_candidates": 500}
    rendered = rendered_preset("mini", recipes=["a_coat"], quadruples=40, **pools)
    folder = tmp_path_factory.mktemp("data") / "built"
    build_dataset(rendered, folder, audio_format="wav", progress=False)
    as_others_have_it(folder)
    return folder


def start(command: list[str], cache: Path, **variables: str) -> subprocess.Popen[str]:
    variables |= {"OMP_NUM_THREADS": "1", "AUDIO_COMPOSITIONALITY_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, output and errors."""
    try:
        out, err = process.communicate(timeout=120)
    finally:
        # A launcher that is killed leaves its workers behind.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, out, err


def without_launcher(command: list[str], cache: Path, count: int) -> list[subprocess.Popen[str]]:
    """Processes as a batch system starts them: nobody ends one when another fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [start(command, cache, RANK=str(rank), LOCAL_RANK=str(rank), **common) for rank in range(count)]


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_two_processes_write_the_store_of_one_and_only_the_main_one_speaks(data, tmp_path, cache):
    status, out, err = finish(start([*TORCHRUN, str(SCRIPT), str(data), str(tmp_path)], cache))
    assert status == 0, err

    specification = importlib.util.spec_from_file_location("in_processes", SCRIPT)
    assert specification is not None
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    (alone,) = (Result.loads(text) for text in script.evaluate_network(str(data), tmp_path / "alone"))

    assert len(shards(tmp_path / "store")) == 4
    assert shards(tmp_path / "store") == shards(tmp_path / "alone" / "store")
    returned = [json.loads((tmp_path / f"returned-{rank}.json").read_text()) for rank in range(2)]
    assert [(count, rank) for count, rank, _ in returned] == [(2, 0), (2, 1)]
    assert returned[0][2] == returned[1][2]
    (together,) = (Result.loads(text) for text in returned[0][2])
    assert (together.measures, together.n) == (alone.measures, 40)
    assert together.device == "cpu and 1 more"
    assert load_result(tmp_path / "network" / "v1" / "a_coat.json")[0] == together

    # The command line, which ran second: its table once, its store in the cache.
    assert out.count("A-COAT on") == 1
    assert len(shards(cache / "outputs" / "downsample")) == 4
    assert load_result(tmp_path / "second" / "downsample" / "v1" / "a_coat.json")[0].n == 40


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_two_processes_write_the_stores_of_one_for_several_layers(data, tmp_path, cache):
    whisper = save_tiny_whisper(str(tmp_path / "whisper"), window_seconds=10)
    command = ["evaluate", whisper, "--layer", "0,2", "--data", str(data), "--device", "cpu"]

    def places(name: str) -> list[str]:
        return ["--out", str(tmp_path / name / "results"), "--store", str(tmp_path / name / "store")]

    status, out, err = finish(start([*TORCHRUN, *MODULE, *command, *places("together")], cache))
    assert status == 0, err
    assert main([*command, *places("alone")]) == 0

    stores = [tmp_path / name / "store" for name in ("together", "alone")]
    assert [sorted(path.name for path in store.iterdir()) for store in stores] == 2 * [
        ["whisper@layer=0", "whisper@layer=2"]
    ]
    for layer in ("whisper@layer=0", "whisper@layer=2"):
        together, alone = (shards(store / layer) for store in stores)
        assert len(together) == 4
        assert together == alone
    results = [
        {path.relative_to(tmp_path / name): load_result(path)[0] for path in (tmp_path / name).rglob("a_coat.json")}
        for name in ("together", "alone")
    ]
    assert results[0].keys() == results[1].keys()
    assert sorted(result.model.options.layer for result in results[0].values()) == [0, 2]
    for path, result in results[0].items():
        assert result.measures == results[1][path].measures
        assert (result.device, results[1][path].device) == ("cpu and 1 more", "cpu")
    assert out.count("whisper@layer=2,") == 1


@pytest.mark.slow
def test_an_error_in_one_process_ends_all_and_a_single_one_goes_on_from_there(data, tmp_path, cache):
    """The clip at fault is in the share of the second process. It says so, once; nothing else is scored or printed."""
    folder = tmp_path / "damaged"
    shutil.copytree(data, folder)
    (path,) = (folder / "a_coat").glob("*.parquet")
    table = pq.read_table(path)
    clips = table["B"].to_pylist()
    clips[20] = {"bytes": b"no audio", "path": None}
    damaged = table.set_column(table.column_names.index("B"), "B", pa.array(clips, table["B"].type))
    pq.write_table(damaged, path, row_group_size=16)

    options = ["evaluate", "downsample", "--data", str(folder)]
    options += ["--out", str(tmp_path / "out"), "--store", str(tmp_path / "store")]
    failed = without_launcher([sys.executable, *MODULE, *options], cache, 2)
    (status, out, err), (other_status, other_out, other_err) = map(finish, failed)
    name = table["id"][20].as_py()
    assert f": clip {name}/B cannot be decoded" in other_err
    assert status == other_status == 2
    assert "another process has ended" in err
    assert out == other_out == ""
    assert not any(file.startswith("00001") for file in shards(tmp_path / "store"))
    assert not (tmp_path / "out").exists()

    single = [
        sys.executable,
        "-m",
        "accelerate.commands.launch",
        "--cpu",
        "--num_processes",
        "1",
        "--num_machines",
        "1",
    ]
    single += ["--mixed_precision", "no", "--dynamo_backend", "no"]
    status, out, err = finish(start([*single, *MODULE, *options, "--skip-invalid"], cache))
    assert status == 0, err
    result, samples = load_result(tmp_path / "out" / "downsample" / "v1" / "a_coat.json")
    assert [clip.id for clip in result.skipped] == [f"{name}/B"]
    assert result.n == 39
    assert name not in samples.ids
    assert f"{name}/B" in " ".join(out.split())


def test_one_process_is_the_main_one_and_waits_for_nobody(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    processes = join_processes()
    assert processes.is_main
    assert list(processes.share_of(3)) == [0, 1, 2]
    assert processes.device(None) is None
    assert processes.device("cuda") == "cuda"
    assert processes.tell("x") == "x"
    processes.wait()
    with processes.one_first():
        pass


def test_a_launcher_that_says_too_little_is_refused(monkeypatch):
    monkeypatch.setattr("audio_compositionality.evaluator.run.processes._processes", None)
    for name in ("RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="WORLD_SIZE is 2, but RANK, MASTER_ADDR, MASTER_PORT is not set"):
        join_processes()


@pytest.mark.parametrize(("local_rank", "expected"), [(0, "cuda:0"), (1, "cuda:1"), (2, "cuda:0")])
def test_each_process_takes_the_gpu_of_its_rank_on_its_machine(monkeypatch, local_rank, expected):
    class State:
        process_index, num_processes, local_process_index = 5, 8, local_rank

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    processes = Processes(State())
    assert processes.device(None) == processes.device("cuda") == expected
    assert processes.device("cpu") == "cpu"
    assert processes.device("cuda:1") == "cuda:1"
    assert list(processes.share_of(20)) == [5, 13]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert processes.device(None) is None
