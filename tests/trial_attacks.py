"""What `tests/trials.py` does beside damage: kills at random moments, bombs of some kilobytes, hostile hosts.

Each attack changes what a kind has written, and says how; reading must then give the same as before, or a refusal.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from audio_compositionality.support.errors import AudioCompositionalityError

LONGEST = 120
"""Seconds that a process may take, and that one may wait for another that was killed."""

# ----- Kills


def forked(work: Callable[[], Any], **variables: str) -> int:
    """The number of a process that does some work, quietly; its status is 0, 2 after one of our errors, else 1."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        signal.alarm(0)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        if "TRIALS_LOUD" not in os.environ:
            os.dup2(quiet, 2)
        os.environ.update(variables)
        work()
        status = 0
    except AudioCompositionalityError:
        status = 2
    except SystemExit as error:
        status = int(error.code or 0)
    finally:
        os._exit(status)


def ended(processes: Sequence[int], kill: Callable[[list[int]], list[int]] = lambda _: []) -> list[int]:
    """The statuses of processes after they have ended; `kill` names those to be killed now.

    Raises:
        TimeoutError: one has not ended after `LONGEST` seconds.
    """
    statuses, began = dict[int, int](), time.monotonic()
    while len(statuses) < len(processes):
        left = [process for process in processes if process not in statuses]
        for process in left:
            number, status = os.waitpid(process, os.WNOHANG)
            if number:
                statuses[process] = status
        for process in kill(left):
            if process not in statuses:
                os.kill(process, signal.SIGKILL)
        if time.monotonic() - began > LONGEST:
            for process in left:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
            raise TimeoutError(f"{len(left)} of {len(processes)} processes still ran")
        time.sleep(0.002)
    return [statuses[process] for process in processes]


def embed(folder: Path) -> None:
    """What each process does: it embeds its share of some clips; the main one scores."""
    from audio_compositionality.evaluator.run.evaluate import evaluate_models
    from audio_compositionality.evaluator.run.options import RunOptions
    from audio_compositionality.evaluator.run.processes import join_processes

    from .evaluator.run.toys import Captions, ManyTexts, TextEncoder

    class Slow(TextEncoder):
        def embed(self, waveforms: Any, sample_rate: int) -> Any:
            time.sleep(0.005)
            return super().embed(waveforms, sample_rate)

    (folder / f"joined-{join_processes().rank}").touch()
    options = RunOptions(out=folder / "out", cache=folder / "store", device="cpu", batch_size=4, progress=False)
    evaluate_models([Slow()], ManyTexts(300), [Captions()], options)


def _pair(folder: Path) -> list[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    common = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [forked(lambda: embed(folder), RANK=str(n), LOCAL_RANK=str(n), **common) for n in range(2)]


def two_processes(folder: Path) -> dict[str, str]:
    """The files that two processes leave, by the digests of what must be the same: all but dates and seconds."""
    statuses = ended(_pair(folder))
    assert statuses == [0, 0], f"two undisturbed processes end with {statuses}"
    return files_of(folder)


def files_of(folder: Path) -> dict[str, str]:
    """Digests of the files in a folder; of results, without what differs each time."""
    digests = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        if path.suffix == ".json" and b'"seconds"' in content:
            values = json.loads(content)
            content = json.dumps({name: values[name] for name in ("measures", "intervals", "samples_sha256")}).encode()
        digests[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    return digests


def kill_of_two(folder: Path, rng: np.random.Generator) -> str:
    """Two processes begin anew; one of them is killed, or both, and the other must end.

    The moment is after both have met: one that meets nobody waits for half an hour, and its launcher ends it.
    """
    shutil.rmtree(folder)
    folder.mkdir()
    moment, which = float(rng.uniform(0, 0.8)), int(rng.integers(3))
    pair, met = _pair(folder), list[float]()

    def kill(left: list[int]) -> list[int]:
        if not met and all((folder / f"joined-{rank}").exists() for rank in range(2)):
            met.append(time.monotonic())
        return pair[which : which + 1] or pair if met and time.monotonic() > met[0] + moment else []

    ended(pair, kill)
    return f"a kill of {('the first', 'the second', 'both')[which]}"


def _run(folder: Path) -> None:
    from audio_compositionality.cli.main import main

    sys.exit(main(["run", "downsample", "--data", str(folder / "data"), "--tasks", "a_coat", "--out",
                   str(folder / "out"), "--cache", str(folder / "store"), "--device", "cpu"]))  # fmt: skip


def write_run(folder: Path) -> None:
    """Data for `run`, small."""
    from audio_compositionality.dataset_builder.build import build_dataset
    from audio_compositionality.dataset_builder.rendered import rendered_preset

    data = rendered_preset("mini", recipes=["a_coat"], quadruples=16, quadruple_candidates=200)
    build_dataset(data, folder / "data", progress=False, workers=1)


def read_run(folder: Path) -> dict[str, str]:
    """The files that `run` leaves; of the report, that it is there, since it states dates."""
    statuses = ended([forked(lambda: _run(folder))])
    assert statuses == [0], f"run ends with {statuses}"
    digests = files_of(folder)
    assert digests.pop("out/report.html")
    return {name: digest for name, digest in digests.items() if not name.startswith("cache")}


def kill_of_run(folder: Path, rng: np.random.Generator) -> str:
    """`run` begins anew and is killed."""
    for name in ("out", "store"):
        shutil.rmtree(folder / name, ignore_errors=True)
    moment = time.monotonic() + float(rng.uniform(0, 8))
    ended([forked(lambda: _run(folder))], lambda left: left if time.monotonic() > moment else [])
    return "a kill"


# ----- Bombs


def _repeated(value: Any, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([value]))


def bomb_parquet(path: Path, rng: np.random.Generator) -> str:
    """A table with the same columns, of some kilobytes that hold gigabytes."""
    table = pq.read_table(path)
    names = table.schema.names
    texts = [name for name in names if pa.types.is_string(table.schema.field(name).type)]
    sounds = [name for name in names if pa.types.is_struct(table.schema.field(name).type)]
    way = ("a text", "a text of a kind", "every text", "a sound", "many groups", "many rows", "wide", "deep")
    way = way[int(rng.integers(len(way)))]
    size = int(2 ** rng.uniform(20, 25))
    count = int(1.2e10 / size) if way != "many rows" else int(3e6)
    first = table.slice(0, 1)

    def column(name: str) -> pa.Array:
        value = first[name][0].as_py()
        if name == texts[0] and way != "a sound":
            # Ids differ.
            return pa.array([f"{value}{number}" for number in range(count)])
        chosen = name in texts if way == "every text" else name == texts[-1]
        if chosen and way not in ("a sound", "many rows"):
            return _repeated("x" * size, count)
        if name in sounds and way == "a sound":
            return pa.StructArray.from_arrays([_repeated(bytes(size), count), _repeated("a.wav", count)],
                                              ["bytes", "path"])  # fmt: skip
        return pa.array([value] * count, first.schema.field(name).type)

    if way == "wide":
        made = first
        for number in range(500):
            made = made.append_column(f"c{number}", pa.array(["x"]))
    elif way == "deep":
        value: Any = "x"
        for _ in range(150):
            value = [value]
        made = first.set_column(names.index(texts[-1]), texts[-1], pa.array([value]))
    else:
        made = pa.table({name: column(name) for name in names})
    if way in ("wide", "deep"):
        # What says that bytes are sound.
        made = made.replace_schema_metadata(table.schema.metadata)
    elif way != "a text of a kind":
        metadata = table.schema.metadata or {}
        made = made.replace_schema_metadata({key: value for key, value in metadata.items() if key != b"ARROW:schema"})
    group = max(1, count // 200) if way == "many groups" else None
    pq.write_table(made, path, compression="zstd", store_schema=way == "a text of a kind", row_group_size=group)
    return f"{way}, {count:,} times {size:,} bytes, in {path.stat().st_size:,}"


def write_toys(folder: Path) -> None:
    """Built data that somebody else wrote, without a manifest."""
    from .dataset_builder.recipes.toy import as_others_have_it
    from .support.test_read_back import build_toys

    build_toys(folder)
    as_others_have_it(folder / "built")


def open_toys(folder: Path) -> str:
    """Their rows and clips."""
    from .support import test_read_back

    return test_read_back.open_toys(folder)


def write_copy(folder: Path) -> None:
    """A copy of CompA's order items as Parquet."""
    sound = {"bytes": b"RIFF" * 20, "path": "a.wav"}
    pq.write_table(pa.Table.from_pylist([{"id": f"{n}.wav", "audio": sound, "caption": "a dog"} for n in range(4)]),
                   folder / "a.parquet")  # fmt: skip


def read_copy(folder: Path) -> Any:
    """The names, texts and first file of the copy."""
    from audio_compositionality.dataset_builder.sounds.published import ParquetFiles

    copy = ParquetFiles(folder / "a.parquet", name="id", sound="audio")
    return copy.names, copy.texts("caption"), copy.file(copy.names[0]).getvalue()


def bomb_numpy(path: Path, rng: np.random.Generator) -> str:
    """A header that claims what is not there."""
    shape, kind = [((2**50,), "<f2"), ((2**31, 2**31), "|u1"), ((-1, 4), "<f2"), ((6, 2, 3), "|O"), ((10**30,), "<f2"),
                   ((6, 2, 3), "<f2"), ((2**62, 2**62), "<f8"), ((0,), "<f2")][int(rng.integers(8))]  # fmt: skip
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    claimed = [len(header), 2**32 - 1, 2**31][int(rng.integers(3))]
    path.write_bytes(b"\x93NUMPY\x02\x00" + claimed.to_bytes(4, "little") + header + bytes(36))
    return f"{kind} {shape}, a header of {claimed:,} bytes"


# ----- Hosts of bridges


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE: tuple[Any, ...] = (
    None, math.nan, math.inf, -1, 10**400, True, "", "x" * 3_000_000, "\ud800", "[" * 100_000, "NaN", "1e999",
    [], [[]], _nested(3_000), {}, {"result": None}, [None], [math.nan], b"\xff", 0.5, ["A", 1], [{"a": []}],
)  # fmt: skip


def hostile(rng: np.random.Generator) -> Any:
    """A value that no host should give."""
    return HOSTILE[int(rng.integers(len(HOSTILE)))]


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield above
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inside:
        yield from _places(part, (*above, name))


def changed(value: Any, rng: np.random.Generator) -> Any:
    """A JSON value in which one part, at any depth, is gone, doubled or hostile; texts of JSON are looked into."""
    places = list(_places(value))
    *above, last = places[int(rng.integers(len(places)))] or (None,)
    if last is None:
        return hostile(rng)
    part = value
    for name in above:
        part = part[name]
    way = int(rng.integers(4))
    if way == 0:
        del part[last]
    elif way == 1 and isinstance(part, list):
        part.append(part[last])
    elif isinstance(part[last], str) and way == 2 and part[last][:1] in ("{", "["):
        part[last] = json.dumps(changed(json.loads(part[last]), rng), default=str)
    else:
        part[last] = hostile(rng)
    return value


def write_of_mteb(folder: Path) -> None:
    """Results as a file of mteb holds them."""
    from audio_compositionality.bridges.mteb import KEPT

    sys.path.append(str(Path(__file__).parent / "references"))
    from .references.board_entries import made_up

    files = [made_up(name) for name in ("org/one", "untrained:org/one")]
    kept = [{"result": one["result.json"].decode(), "samples": one["samples.csv"].decode()} for one in files]
    content = {"scores": {"test": [{"main_score": 0.5, KEPT: json.dumps(kept)}]}, "task_name": "a"}
    (folder / "a.json").write_text(json.dumps(content))
    (folder / "seed").write_text("")


def seed_of(path: Path, rng: np.random.Generator) -> str:
    """What is hostile is made where it is read: not all of it can be written to a file."""
    seed = int(rng.integers(2**32))
    path.write_text(str(seed))
    return f"seed {seed}"


def _seed(folder: Path) -> np.random.Generator | None:
    text = (folder / "seed").read_text()
    return np.random.default_rng(int(text)) if text else None


def results_of_mteb(folder: Path) -> Any:
    """Our results in a file of mteb."""
    from audio_compositionality.bridges.mteb import KEPT, from_mteb

    content, rng = json.loads((folder / "a.json").read_text()), _seed(folder)
    if rng is not None:
        content = changed(content, rng)
        if rng.random() < 0.3 and isinstance(content, dict):
            content = SimpleNamespace(task_results=[SimpleNamespace(**content)])
    right = json.loads(json.loads((folder / "a.json").read_text())["scores"]["test"][0][KEPT])
    read = from_mteb(content, folder / "out")
    # One may be gone, but none is another.
    return all({"result": one.dumps(), "samples": one.samples and one.samples.dumps()} in right for one in read)


def write_seed(folder: Path) -> None:
    """No attack as yet."""
    (folder / "seed").write_text("")


def answers_of_lmms(folder: Path) -> Any:
    """Scores of answers that lmms-eval gives; one is hostile."""
    from audio_compositionality.bridges.lmms_eval import utils
    from audio_compositionality.bridges.questions import pose

    posed, rng = pose("polybench"), _seed(folder)
    items = []
    for number, (id, question) in enumerate(list(posed.questions.items())[:4]):
        doc = {"id": id, "group": "g", "posed": json.dumps({"name": "polybench"})}
        value = question.answer
        results = [value]
        if rng is not None and number == 2:
            results = hostile(rng) if rng.random() < 0.5 else [hostile(rng)]
        items.append(utils.process_results(doc, results)[utils.ANSWERS_RIGHT])
    return 0 <= utils.mean_score(items) <= 1


def embeddings_of_mteb(folder: Path) -> Any:
    """Embeddings of a model that mteb gives; one call returns what it must not."""
    from audio_compositionality.encoders.adapters import mteb

    rng = _seed(folder)

    class Given:
        calls = 0

        def encode(self, loader: Any, **_: Any) -> Any:
            (batch,) = loader
            right = np.stack([np.abs(one["array"][:800]).reshape(4, -1).mean(axis=1) for one in batch["audio"]])
            self.calls += 1
            if rng is None or self.calls != stop:
                return right
            wrong = [right[:-1], right[:, :-1], right * math.nan, right * math.inf, right[None], right.astype(object),
                     right.astype(str), [*right.tolist()[:-1], [1]], np.zeros((0, 4)), right * 1e39, right * 1j,
                     right > 9, np.full_like(right, 10**30, dtype=object), [right, right], hostile(rng),
                     iter(right), lambda: right, right.T]  # fmt: skip
            return wrong[int(rng.integers(len(wrong)))]

    stop = 0 if rng is None else int(rng.integers(1, 3))
    before, mteb._task_metadata = mteb._task_metadata, lambda: None
    try:
        clips = np.random.default_rng(0).normal(0, 0.1, (3, 32_000)).astype(np.float32)
        return np.asarray(mteb.MtebEncoder(Given(), "given", "1").embed(clips, 32_000)).tolist()
    finally:
        mteb._task_metadata = before
