"""Work that processes share, and that killed ones leave: in the end all is as one undisturbed process writes it."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from itertools import pairwise
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
from .in_processes import QUESTIONS, run
from .killed import CLIPS, TOLD
from .killed import QUESTIONS as KILLED_QUESTIONS

ROOT = Path(__file__).parents[3]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m"]


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """40 quadruples: three shards, of which one process gets two, the other one. Their files may be changed."""
    pools = {"num_classes": 3, "voices": default_voices()[:3], "quadruple_candidates": 500}
    rendered = rendered_preset("mini", recipes=["a_coat"], quadruples=40, **pools)
    folder = tmp_path_factory.mktemp("data") / "built"
    build_dataset(rendered, folder, audio_format="wav", progress=False)
    as_others_have_it(folder)
    return folder


def start(arguments: list[str], cache: Path, **variables: str) -> subprocess.Popen[str]:
    variables |= {"OMP_NUM_THREADS": "1", "AUDIO_COMPOSITIONALITY_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **variables, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
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


def without_launcher(arguments: list[str], cache: Path, count: int) -> list[subprocess.Popen[str]]:
    """Processes as a batch system starts them: nobody ends one when another fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [start(arguments, cache, RANK=str(rank), LOCAL_RANK=str(rank), **common) for rank in range(count)]


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def facts(result: Result) -> dict[str, object]:
    """Of a result all that is the same wherever it is computed."""
    return result.model_dump(exclude={"date", "seconds", "device"})


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_two_processes_write_what_one_writes_and_only_the_main_one_speaks(data, tmp_path, cache):
    """Embeddings, answers by both scorings, and from the command line two layers of a model, in its default store."""
    whisper = save_tiny_whisper(str(tmp_path / "whisper"), window_seconds=10)
    command = ["evaluate", whisper, "--layer", "0,2", "--data", str(data), "--device", "cpu", "--out"]
    together, alone = tmp_path / "together", tmp_path / "alone"
    together.mkdir()
    arguments = [str(data), str(together), *command, str(together / "layers")]
    status, out, err = finish(start([*TORCHRUN, "tests.evaluator.run.in_processes", *arguments], tmp_path / "cache"))
    assert status == 0, err
    texts, asked = run(str(data), alone)
    assert main([*command, str(alone / "layers"), "--cache", str(cache / "outputs")]) == 0

    returned = [json.loads((together / f"returned-{rank}.json").read_text()) for rank in range(2)]
    assert [one[:2] for one in returned] == [[2, 0], [2, 1]]
    assert returned[0][2] == returned[1][2]
    results = [[Result.loads(text) for text in every] for every in (returned[0][2], texts)]
    assert [facts(result) for result in results[0]] == [facts(result) for result in results[1]]
    assert [[result.device for result in every] for every in results] == [["cpu and 1 more"] * 3, ["cpu"] * 3]
    assert load_result(together / "network" / "v1" / "a_coat.json")[0] == results[0][0]

    # Each question is asked once, by one of the two; neither asks all.
    assert asked == dict.fromkeys(("generate", "letters"), QUESTIONS)
    for scoring in asked:
        shares = [one[3][scoring] for one in returned]
        assert (sum(shares), min(shares) > 0) == (QUESTIONS, True)
    for name, count in (("store", 4), ("generate/store", 4), ("letters/store", 4)):
        assert len(files(together / name)) == count
        assert files(together / name) == files(alone / name)

    # The command line, which ran last: its table once, its stores in the cache.
    stored = files(tmp_path / "cache" / "outputs")
    assert len(stored) == 8
    assert stored == files(cache / "outputs")
    assert out.count("whisper@layer=2,") == 1
    layers = [
        {path.parts[-3]: load_result(path)[0] for path in (one / "layers").rglob("*.json")} for one in (together, alone)
    ]
    assert list(map(len, layers)) == [2, 2]
    for name, result in layers[0].items():
        assert facts(result) == facts(layers[1][name])
        assert (result.device, layers[1][name].device) == ("cpu and 1 more", "cpu")


@pytest.mark.slow
def test_an_error_in_one_process_ends_all_and_a_single_one_goes_on_from_there(data, tmp_path, cache, capsys):
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
    options += ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "store")]
    failed = without_launcher(["-m", "audio_compositionality", *options], cache, 2)
    (status, out, err), (other_status, other_out, other_err) = map(finish, failed)
    name = table["id"][20].as_py()
    assert f": clip {name}/B is damaged and cannot be decoded" in other_err
    assert status == other_status == 2
    assert "another process has ended" in err
    assert out == other_out == ""
    assert not [*(tmp_path / "store").rglob("00001*")]
    assert not (tmp_path / "out").exists()

    assert main([*options, "--skip-invalid"]) == 0
    out = capsys.readouterr().out
    result, samples = load_result(tmp_path / "out" / "downsample" / "v1" / "a_coat.json")
    assert [clip.id for clip in result.skipped] == [f"{name}/B"]
    assert result.n == 39
    assert name not in samples.ids
    assert f"{name}/B" in " ".join(out.split())


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "most", "again"), [("embed", 0.03, 2 * 64), ("ask", 0.006, TOLD)])
def test_processes_killed_at_random_moments_lose_at_most_what_was_in_flight(kind, most, again, tmp_path):
    """Ten times a process is killed (SIGKILL) at work; a last one finishes. Of embeddings the shard that is on its way
    to the disk and one behind it may be computed again, of questions only those of the last batch asked again."""
    moments = random.Random(0)
    lifetimes = [moments.uniform(0, most) for _ in range(10)]
    arguments = ["-m", "tests.evaluator.run.killed", str(tmp_path), kind, json.dumps(lifetimes)]
    status, _, err = finish(start(arguments, tmp_path / "cache"))
    assert status == 0, err

    lives = [life.splitlines() for life in (tmp_path / "log").read_text().split("begins ")[1:]]
    assert len(lives) == 11
    batches = [[json.loads(line.removeprefix("batch ")) for line in life[1:]] for life in lives]
    assert all(batches)
    times = Counter(item for life in batches for batch in life for item in batch)
    count = CLIPS if kind == "embed" else KILLED_QUESTIONS
    assert len(times) == count
    # At the end 64 clips at most are embedded once more, in other company.
    assert sum(times.values()) - count <= 10 * again + (64 if kind == "embed" else 0)
    found = [{name for name in json.loads(life[0]) if not name.startswith(".")} for life in lives]
    begun = {name for names in found for name in names if name.endswith(".begun")}
    assert bool(begun) == (kind == "ask")
    for before, after in pairwise(found):
        assert before - begun <= after
    interrupted, whole = files(tmp_path / "killed"), files(tmp_path / "whole")
    assert len(whole) == 1 + (CLIPS // 64 if kind == "embed" else KILLED_QUESTIONS // 16)
    assert interrupted == whole


def test_one_process_is_the_main_one_and_waits_for_nobody(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    processes = join_processes()
    assert processes.is_main
    assert list(processes.stretch_of(3)) == [0, 1, 2]
    assert processes.device(None) is None
    assert processes.device("cuda") == "cuda"
    assert processes.from_main("x") == "x"
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
    assert list(processes.stretch_of(20)) == [12, 13, 14]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert processes.device(None) is None
