import ast
import base64
import dataclasses
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from submissions import (
    ShortEncoder,
    embeddings_table,
    place,
    read_embeddings,
    sha256sum,
    with_embeddings,
    with_json,
    with_samples,
    with_table,
)

from audio_compositionality.dataset_builder import RenderedBenchmark, build_dataset, open_benchmark
from audio_compositionality.evaluator import ResultError, evaluate_encoder, load_result
from audio_compositionality.evaluator.submissions import parquet_child
from audio_compositionality.evaluator.submissions import parquet_reader
from audio_compositionality.evaluator.submissions.parquet_reader import ParquetReader
from audio_compositionality.evaluator.submissions.rounded import RoundedEmbeddings
from audio_compositionality.evaluator.submissions.submission import make_submission, open_data, read_submission
from audio_compositionality.evaluator.submissions.submission_files import LIMITS, parse_path, submission_id


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True, scope="module")
def few_steps():
    """How well A-TRE is fitted matters elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("audio_compositionality.tasks.scoring.FEW_STEPS", 10)
        yield


@pytest.fixture(scope="module")
def reader():
    with ParquetReader() as reader:
        yield reader


@pytest.fixture(scope="module")
def evaluated(small_benchmark, tmp_path_factory):
    """A folder with results of the short encoder and their embeddings."""
    folder = tmp_path_factory.mktemp("evaluated")
    evaluate_encoder(
        ShortEncoder(), small_benchmark, out=folder / "results", embeddings=folder / "embeddings", progress=False
    )
    return folder


def path_of(evaluated, task):
    return evaluated / "results" / "org__short" / "1" / f"{task}.json"


def make(evaluated, benchmark, task="a_coat", **changes):
    options = {"embeddings": evaluated / "embeddings", "progress": False, **changes}
    return make_submission(path_of(evaluated, task), benchmark, **options)


@pytest.fixture(scope="module")
def made(evaluated, small_benchmark):
    return {task: make(evaluated, small_benchmark, task) for task in ("a_coat", "a_tre")}


@pytest.fixture(scope="module")
def files(made):
    return dict(made["a_coat"].files)


def read(root, files, reader, encoder="org__short"):
    folder = place(root, files, encoder)
    return read_submission(folder, "/".join(folder.parts[-4:]), reader)


# ----- making


def test_the_id_is_made_of_what_sha256sum_prints(made, tmp_path):
    for submission in made.values():
        for name, content in submission.files.items():
            (tmp_path / name).write_bytes(content)
        printed = subprocess.run("sha256sum *", shell=True, cwd=tmp_path, capture_output=True, check=True).stdout
        assert printed.decode() == sha256sum(submission.files)
        whole = subprocess.run(["sha256sum"], input=printed, capture_output=True, check=True).stdout
        assert submission.id == submission_id(submission.files) == whole.decode()[:16]
        assert submission.folder == f"results/org__short/1/{submission.result.task}-{submission.id}"


def test_the_submitted_score_is_that_of_the_rounded_embeddings(made, small_benchmark):
    submission = made["a_coat"]
    ids, values, metadata = read_embeddings(submission.files)
    assert ids == [clip for batch in small_benchmark.batches("a_coat", 4) for clip in batch.ids]
    assert values.dtype == np.float16
    scale = 2.0 ** int(metadata[b"scale"].removeprefix(b"2^"))
    a, b, c, d = (values.astype(np.float64) * scale).reshape(-1, 4, 12).transpose(1, 0, 2)
    u, v = b - a, d - c
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    assert submission.result.score == pytest.approx(cosines.mean(), abs=1e-12)
    table = pq.read_table(io.BytesIO(submission.files["samples.parquet"]))
    assert table["score"].to_numpy() == pytest.approx(cosines, abs=1e-12)
    assert table["id"].to_pylist() == [row["id"] for row in small_benchmark.rows("a_coat")]
    assert submission.local.score != submission.result.score
    assert submission.local.score == pytest.approx(submission.result.score, abs=1e-4)


def test_the_same_result_gives_the_same_bytes(evaluated, small_benchmark, made):
    for task, submission in made.items():
        assert make(evaluated, small_benchmark, task).files == submission.files


def test_what_is_about_the_embedding_stays_and_what_is_stated_is_added(made, evaluated, small_benchmark):
    local, sent = made["a_tre"].local, made["a_tre"].result
    assert local == load_result(path_of(evaluated, "a_tre"))[0]
    for name in ("date", "versions", "seconds", "weights_sha256", "fingerprint", "settings", "paradigm", "licence"):
        assert getattr(local, name) == getattr(sent, name)
    assert (sent.paradigm, sent.licence) == ("made up", "apache-2.0")
    stated = make(evaluated, small_benchmark, paradigm="supervised", licence="mit").result
    assert (stated.paradigm, stated.licence) == ("supervised", "mit")


@pytest.mark.parametrize("mean", [0.0, 1e4, 1e-3])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_rounding_is_within_the_bounds_of_float16_about_the_mean(mean, size):
    z = (mean + np.random.default_rng(0).normal(size=(50, 7))) * size
    z = z.astype(np.float32)
    rounded = RoundedEmbeddings.of([str(place) for place in range(50)], z)
    apart = z.astype(np.float64) - z.astype(np.float64).mean(axis=0)
    # Unit roundoff of 11 bits is 2^-11; the subnormal step of numbers below 2^15 is 2^-24, half of it 2^-25 - 15 - 1.
    bound = np.maximum(np.abs(apart) * 2.0**-11, np.abs(apart).max() * 2.0**-39) + np.abs(z).max() * 2.0**-40
    assert (np.abs(rounded.restored() - z) <= bound).all()
    assert np.log2(rounded.scale) % 1 == 0
    assert np.isfinite(rounded.values).all()
    assert np.abs(rounded.values).max() >= 2**13


def test_embeddings_that_are_all_the_same_are_kept_exactly():
    z = np.full((3, 5), 0.1, np.float32)
    assert (RoundedEmbeddings.of("abc", z).restored() == z).all()


def test_without_embeddings_the_result_is_as_it_was(evaluated, small_benchmark):
    submission = make(evaluated, small_benchmark, with_embeddings=False, embeddings=evaluated / "nowhere")
    assert sorted(submission.files) == ["result.json", "samples.parquet"]
    assert dataclasses.replace(submission.result, dataset="small") == submission.local
    assert submission.embeddings is None


def test_folders_of_the_submitter_are_not_told(evaluated, small_config, tmp_path):
    folder = build_dataset(small_config, tmp_path / "home" / "somebody" / "data", progress=False)
    assert make(evaluated, open_benchmark(folder)).result.dataset == "data"


def test_what_cannot_be_submitted_says_what_to_do(evaluated, small_benchmark, tiny_config, tmp_path, monkeypatch):
    with pytest.raises(ResultError, match=r"--embeddings says in which folder.*evaluate --force"):
        make(evaluated, small_benchmark, embeddings=tmp_path)
    with pytest.raises(ResultError, match="give the data that it was computed from"):
        make(evaluated, RenderedBenchmark("tiny", tiny_config))
    local = {"embeddings": tmp_path / "z", "out": tmp_path / "one", "progress": False}
    evaluate_encoder(ShortEncoder(), small_benchmark, tasks=["a_tre"], seeds=1, **local)
    with pytest.raises(ResultError, match=r"settings are .*\[0\].*evaluate it again with --force --seeds 3"):
        make_submission(tmp_path / "one/org__short/1/a_tre.json", small_benchmark, embeddings=tmp_path / "z")
    monkeypatch.setattr("audio_compositionality.evaluator.submissions.submission.EMBEDDINGS_LIMIT", 1_151)
    with pytest.raises(ResultError, match=r"have 1,152 bytes.*without embeddings the result can be submitted"):
        make(evaluated, small_benchmark)


def test_skipped_clips_and_names_that_mislead_cannot_be_submitted(small_benchmark, tmp_path):
    class Failing(ShortEncoder):
        def embed(self, waveforms, sample_rate):
            found = super().embed(waveforms, sample_rate)
            found[np.isclose(found[:, 0], loudest)] = np.nan
            return found

    first = next(small_benchmark.batches("a_coat", 1))
    loudest = ShortEncoder().embed(first.waveforms, first.sample_rate)[0, 0]

    local = {"embeddings": tmp_path / "z", "tasks": ["a_coat"], "progress": False, "batch_size": 24}
    evaluate_encoder(Failing(), small_benchmark, out=tmp_path / "skipped", skip_invalid=True, **local)
    with pytest.raises(ResultError, match=r"leaves out .* clips, such as a_coat-test-00000/A"):
        make_submission(tmp_path / "skipped/org__short/1/a_coat.json", small_benchmark, embeddings=tmp_path / "z")
    named = ShortEncoder()
    named.id = "<b>org</b>"
    evaluate_encoder(named, small_benchmark, out=tmp_path / "named", **local)
    (path,) = (tmp_path / "named").rglob("a_coat.json")
    with pytest.raises(ResultError, match="encoder_id is '<b>org</b>'; in a submission it has"):
        make_submission(path, small_benchmark, embeddings=tmp_path / "z", progress=False)


def test_presets_are_known_by_their_fingerprint_and_other_data_have_to_be_named(small_config, tmp_path):
    for name in ("mini", "full"):
        assert open_data(open_benchmark(name).fingerprint).source == name
    with pytest.raises(ResultError, match=r"no preset.*--data says where"):
        open_data(small_config.fingerprint)
    folder = build_dataset(small_config, tmp_path / "data", progress=False)
    assert open_data(small_config.fingerprint, folder).fingerprint == small_config.fingerprint
    with pytest.raises(ResultError, match="which neither a preset"):
        open_data("0" * 64, folder)


# ----- paths


@pytest.mark.parametrize(
    ("path", "kind", "file"),
    [
        ("results/openai__whisper-base/main/a_coat-0123456789abcdef", "results", None),
        ("results/a/1/a_tre-0123456789abcdef/embeddings.parquet", "results", "embeddings.parquet"),
        ("verified/a@layer=3+bfloat16/1/a_tre-0123456789abcdef/verification.json", "verified", "verification.json"),
    ],
)
def test_paths_of_the_repository_are_known(path, kind, file):
    parts = parse_path(path)
    assert (parts.kind, parts.file) == (kind, file)
    assert path == "/".join(part for part in (parts.folder, parts.file) if part)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "README.md",
        "results/a/1/a_coat-0123456789abcde",
        "results/a/1/a_coat-0123456789ABCDEF",
        "results/a/1/a_cat-0123456789abcdef",
        "results/../1/a_coat-0123456789abcdef",
        "results/./1/a_coat-0123456789abcdef",
        "results/.hidden/1/a_coat-0123456789abcdef",
        "results/a/../../a_coat-0123456789abcdef",
        "/results/a/1/a_coat-0123456789abcdef",
        "results//1/a_coat-0123456789abcdef",
        "results/a/1/a_coat-0123456789abcdef/",
        "results/a/1/a_coat-0123456789abcdef/../x.json",
        "results/a/1/a_coat-0123456789abcdef/verification.json",
        "verified/a/1/a_coat-0123456789abcdef/embeddings.parquet",
        "results/a/1/a_coat-0123456789abcdef/result.json\n",
        "results/a\n/1/a_coat-0123456789abcdef",
        "results/a\\b/1/a_coat-0123456789abcdef",
        "results/<b>/1/a_coat-0123456789abcdef",
        "results/whisper-b\u0430se/1/a_coat-0123456789abcdef",
        "results/a/1/a_coat-\u0660123456789abcdef",
        f"results/{'a' * 302}/1/a_coat-0123456789abcdef",
    ],
)
def test_no_other_path_is(path):
    assert parse_path(path) is None


# ----- reading what strangers send


def test_a_submission_comes_back_as_it_was_made(made, tmp_path, reader):
    for task, submission in made.items():
        folder = place(tmp_path, submission.files, task=task)
        for found in (read_submission(folder, submission.folder, reader), read_submission(folder)):
            assert (found.id, found.result) == (submission.id, submission.result)
            assert found.samples.equals(submission.samples)
            assert found.embeddings.ids == submission.embeddings.ids
            assert (found.embeddings.restored() == submission.embeddings.restored()).all()


def test_a_submission_without_embeddings_is_read(files, tmp_path, reader):
    fewer = {name: content for name, content in files.items() if name != "embeddings.parquet"}
    assert read(tmp_path, fewer, reader).embeddings is None


def test_a_wrong_id_is_refused(files, tmp_path, reader):
    folder = place(tmp_path, files)
    other = folder.with_name("a_coat-0000000000000000")
    folder.rename(other)
    with pytest.raises(ResultError, match="its place is results/org__short/1/a_coat-0000000000000000, but its content"):
        read_submission(other, "/".join(other.parts[-4:]), reader)


def test_another_encoder_s_place_is_refused(files, tmp_path, reader):
    with pytest.raises(ResultError, match="its content belongs to results/org__short/1/"):
        read(tmp_path, files, reader, encoder="openai__whisper-base")


@pytest.mark.parametrize("name", ["result.json", "samples.parquet", "embeddings.parquet"])
def test_a_link_is_refused(files, tmp_path, reader, name):
    folder = place(tmp_path, files)
    secret = tmp_path / "secret"
    (folder / name).rename(secret)
    (folder / name).symlink_to(secret)
    with pytest.raises(ResultError, match=f"{name} is a link"):
        read_submission(folder, None, reader)


def test_a_linked_folder_is_refused(files, tmp_path, reader):
    link = tmp_path / "link"
    link.symlink_to(place(tmp_path, files))
    with pytest.raises(ResultError, match="is no folder"):
        read_submission(link, None, reader)


def test_a_pipe_in_the_place_of_a_file_does_not_hang(files, tmp_path, reader):
    folder = place(tmp_path, files)
    (folder / "result.json").unlink()
    os.mkfifo(folder / "result.json")
    with pytest.raises(ResultError, match="no regular file"):
        read_submission(folder, None, reader)


def test_extra_and_missing_files_are_refused(files, tmp_path, reader):
    with pytest.raises(ResultError, match=r"it holds 'x\\n\\x1b\[31m.html'; there can be result.json"):
        read(tmp_path / "a", {**files, "x\n\x1b[31m.html": b""}, reader)
    with pytest.raises(ResultError, match=r"it holds 'verification\.json'"):
        read(tmp_path / "b", {**files, "verification.json": b"{}"}, reader)
    with pytest.raises(ResultError, match=r"it has no samples\.parquet"):
        read(tmp_path / "c", {"result.json": files["result.json"]}, reader)
    with pytest.raises(ResultError, match="is no folder"):
        read_submission(tmp_path / "d", None, reader)


def in_days(days):
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")


def test_a_clock_may_be_wrong_by_some_hours(files, tmp_path, reader):
    date = in_days(0.9)
    assert read(tmp_path, with_json(files, date=date), reader).result.date == date


@pytest.mark.parametrize("name", LIMITS.keys() - {"verification.json"})
def test_a_file_larger_than_the_limit_is_refused_unread(files, tmp_path, reader, name):
    folder = place(tmp_path, files)
    os.truncate(folder / name, 2**40)
    with pytest.raises(ResultError, match=f"{name} has 1,099,511,627,776 bytes; at most"):
        read_submission(folder, None, reader)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"score": float("nan")}, "score is nan"),
        ({"score": float("inf")}, "score is inf"),
        ({"std": float("nan")}, "std is nan"),
        ({"std": 0.0}, "spread or the interval of the samples is not that"),
        ({"interval": [0.9, 0.91]}, "spread or the interval of the samples is not that"),
        ({"interval": None}, "spread or the interval of the samples is not that"),
        ({"controls": {"null": float("nan")}}, "controls is"),
        ({"skipped": [{"id": "a_coat-test-00000/A", "reason": "silent"}]}, "leaves out 1 clips"),
        ({"encoder_id": "../../etc"}, "encoder_id is '../../etc'; in a submission it has"),
        ({"encoder_id": ".."}, r"encoder_id is '\.\.'"),
        ({"encoder_id": "<script>alert(1)</script>"}, "encoder_id is '<script>alert"),
        ({"encoder_id": "org/short\u202e"}, "cannot be seen"),
        ({"encoder_id": "whisper-b\u0430se"}, "encoder_id is 'whisper-b"),
        ({"encoder_id": "a" * 151}, "encoder_id is"),
        ({"encoder_revision": "1\n"}, "cannot be seen"),
        ({"encoder_revision": "/"}, "encoder_revision is '/'"),
        ({"device": "cpu\x1b[31m"}, "cannot be seen"),
        ({"licence": "x" * 501}, "longer than 500"),
        ({"versions": {"\u200b": "1"}}, "cannot be seen"),
        ({"dataset": "\ud800"}, "dataset is"),
        ({"date": "9999-99-99T99:99:99+00:00"}, "its date is '9999-99-99T99:99:99"),
        ({"date": "2026-02-30T00:00:00+00:00"}, "its date is '2026-02-30"),
        ({"date": "２026-01-01T00:00:00+00:00"}, r"its date is '.uff12026"),
        ({"date": "2026-01-01T00000000+00:00"}, "its date is '2026-01-01T0000"),
        ({"date": in_days(1.1)}, "still to come"),
        ({"output_dim": 2**40}, "they have 12 numbers each, the result says 1,099,511,627,776"),
        ({"output_dim": 13}, "they have 12 numbers each, the result says 13"),
        ({"fingerprint": "0" * 64}, "result and samples are of different data"),
        ({"n": 11}, "12 samples of a result of 11"),
        ({"score": 0.123}, "mean of the samples' score is not that of the result"),
        ({"schema_version": 99}, "not a result of schema version"),
        ({"task": "a_tre", "settings": {"seeds": [0, 1, 2], "max_steps": 1}}, "its content belongs to .*/a_tre-"),
        ({"task": "a_tre", "settings": {"seeds": [0] * 9_999, "max_steps": 1}}, "seeds are .*0 to 2"),
        ({"task": "a_tre", "settings": {"seeds": [2**62], "max_steps": 1}}, "seeds are .*0 to 2"),
        ({"task": "a_tre", "settings": {"seeds": [False, True, 2], "max_steps": 1}}, "seeds are .*0 to 2"),
        ({"task": "a_tre", "settings": {}}, "seeds are None"),
    ],
)
def test_a_hostile_result_is_refused(files, tmp_path, reader, changes, message):
    with pytest.raises(ResultError, match=message) as caught:
        read(tmp_path, with_json(files, **changes), reader)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[" * 90_000,
        b'{"a":' * 15_000,
        b"1" * 99_999,
        b'{"schema_version": 4}',
        b"\x00" * 1_000,
    ],
)
def test_what_is_no_json_of_a_result_is_refused(files, tmp_path, reader, content):
    with pytest.raises(ResultError, match=r"result\.json: "):
        read(tmp_path, {**files, "result.json": content}, reader)


def test_samples_that_are_not_those_of_the_result_are_refused(files, tmp_path, reader):
    table = pq.read_table(io.BytesIO(files["samples.parquet"]))
    scores = table["score"].to_numpy().copy()
    for number, (change, message) in enumerate(
        [
            ({"score": scores + 0.1}, "mean of the samples' score"),
            ({"score": scores[::-1] * 3 - 2 * scores.mean()}, "spread or the interval|within -1"),
            ({"score": scores + 2 * np.cos(np.pi * np.arange(12))}, "score is not within -1…1"),
            ({"score": np.where(np.arange(12) == 3, np.nan, scores)}, "not finite"),
            ({"score": np.where(np.arange(12) == 3, np.inf, scores)}, "not finite"),
            ({"score": pa.array([None, *scores[1:]])}, "null"),
            ({"score": scores.astype(np.float32)}, "other types"),
            ({"id": [*map(str, range(11)), "0"]}, "not texts that differ"),
            ({"id": ["x" * 201] * 12}, "not texts of at most 200 bytes"),
        ]
    ):
        with pytest.raises(ResultError, match=message):
            read(tmp_path / str(number), with_samples(files, **change), reader)
    with pytest.raises(ResultError, match="11 samples of a result of 12"):
        read(tmp_path / "rows", with_table(files, "samples.parquet", table.slice(1)), reader)
    nested = pa.table({"id": ["a"], "score": [[1.0]]})
    with pytest.raises(ResultError, match="other types"):
        read(tmp_path / "nested", with_table(files, "samples.parquet", nested), reader)
    wide = pa.table({"id": ["a"], **{f"c{number}": [1.0] for number in range(5_000)}})
    with pytest.raises(ResultError, match="columns"):
        read(tmp_path / "wide", with_table(files, "samples.parquet", wide), reader)


def test_embeddings_of_another_form_are_refused(files, tmp_path, reader):
    ids, values, metadata = read_embeddings(files)
    offset, scale = metadata[b"offset"], metadata[b"scale"]
    spoilt = values.copy()
    spoilt[5, 5] = np.nan
    infinite = values.copy()
    infinite[0, 0] = np.inf
    for number, (change, message) in enumerate(
        [
            ({"values": spoilt}, "not finite"),
            ({"values": infinite}, "not finite"),
            ({"values": values.astype(np.float32)}, "other types"),
            ({"metadata": {"scale": scale}}, "not offset and scale"),
            ({"metadata": {"offset": offset, "scale": scale, "name": "x"}}, "not offset and scale"),
            ({"metadata": {"offset": "?", "scale": scale}}, "offset of the embeddings cannot be read"),
            ({"metadata": {"offset": offset[:16], "scale": scale}}, "offset has 3 numbers, the embeddings 12"),
            ({"metadata": {"offset": offset, "scale": "2^1000"}}, "scale of the embeddings is not 2"),
            ({"metadata": {"offset": offset, "scale": "nan"}}, "scale of the embeddings is not 2"),
            ({"metadata": {"offset": base64.b64encode(np.full(12, np.nan, "<f4")), "scale": scale}}, "not finite"),
            ({"use_dictionary": True}, "dictionaries"),
            ({"ids": ["x" * 201] * len(ids)}, "at most 200 bytes"),
            ({"values": np.zeros((len(ids), 8_193), np.float16)}, "8,193 numbers each; 1 to 8,192 can be"),
            ({"values": values[:, :11]}, "offset has 12 numbers, the embeddings 11"),
        ]
    ):
        with pytest.raises(ResultError, match=message):
            read(tmp_path / str(number), with_embeddings(files, **change), reader)
    more = embeddings_table(ids, values, metadata).append_column("more", pa.array(ids))
    with pytest.raises(ResultError, match="columns are"):
        read(tmp_path / "more", with_table(files, "embeddings.parquet", more, compression="none"), reader)
    lists = pa.table({"id": ids, "embedding": pa.array(values.astype(np.float32).tolist())})
    with pytest.raises(ResultError, match="other types"):
        read(tmp_path / "lists", with_table(files, "embeddings.parquet", lists, compression="none"), reader)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "zstd"])
def test_a_decompression_bomb_is_refused_from_its_footer(files, tmp_path, reader, codec):
    """300 MB of one letter."""
    metadata = read_embeddings(files)[2]
    part = embeddings_table(["a" * 100_000_000], np.zeros((1, 12), np.float16), metadata)
    stream = io.BytesIO()
    level = {"use_dictionary": False} | ({"compression_level": 1} if codec == "gzip" else {})
    with pq.ParquetWriter(stream, part.schema, compression=codec, write_statistics=False, **level) as writer:
        for _ in range(3):
            writer.write_table(part)
    bomb = stream.getvalue()
    assert len(bomb) < LIMITS["embeddings.parquet"]
    started = time.monotonic()
    with pytest.raises(ResultError, match="it is compressed"):
        read(tmp_path, {**files, "embeddings.parquet": bomb}, reader)
    assert time.monotonic() - started < 10
    assert peak_memory(reader) < 600_000_000


def peak_memory(reader):
    with open(f"/proc/{reader._child.pid}/status") as stream:
        return next(int(line.split()[1]) * 1_000 for line in stream if line.startswith("VmHWM"))


def test_bombs_of_runs_and_dictionaries_are_refused(files, tmp_path, reader):
    many = pa.table({"id": pa.DictionaryArray.from_arrays(np.zeros(3_000_000, np.int32), ["a"])})
    many = many.append_column("score", pa.array(np.zeros(3_000_000)))
    runs = with_table(files, "samples.parquet", many)
    assert len(runs["samples.parquet"]) < 100_000
    with pytest.raises(ResultError, match="3,000,000 rows; 1 to 100,000 can be"):
        read(tmp_path / "runs", runs, reader)
    # 90,000 times a text of 8 MB: 720 GB.
    long = pa.table({"id": pa.DictionaryArray.from_arrays(np.zeros(90_000, np.int32), ["a" * 8_000_000])})
    long = long.append_column("score", pa.array(np.zeros(90_000)))
    texts = with_table(files, "samples.parquet", long)
    assert len(texts["samples.parquet"]) < 1_000_000
    with pytest.raises(ResultError, match="at most 200 bytes"):
        read(tmp_path / "texts", texts, reader)
    assert peak_memory(reader) < 600_000_000
    with pytest.raises(ResultError, match="compressed by"):
        read(tmp_path / "codec", with_table(files, "samples.parquet", many.slice(0, 9), compression="zstd"), reader)


def test_a_page_that_claims_more_than_the_footer_meets_the_memory_limit(files):
    """A text of 150 MB in a file of 7 MB, the footer of which says 1 kB, and the head of its page 2 GB."""
    stream = io.BytesIO()
    table = pa.table({"id": pa.array(["a" * 150_000_000]), "score": [0.0]})
    pq.write_table(table, stream, use_dictionary=False, write_statistics=False)
    bomb = bytearray(stream.getvalue())
    assert len(bomb) < LIMITS["samples.parquet"]
    whole = pq.ParquetFile(io.BytesIO(bomb)).metadata.row_group(0).column(0).total_uncompressed_size
    for text in {varint(whole), varint(whole + 82)}:
        place = bomb.find(text, len(bomb) - 2_000)
        if place >= 0:
            bomb[place : place + 5] = varint(1_000, 5)
    head = next(size for size in range(10, 60) if varint(whole - size) in bomb[4:44])
    with ParquetReader() as reader:
        with pytest.raises(ResultError, match="at most 200 bytes"):
            reader.samples(bytes(bomb))
        place = bomb.index(varint(whole - head))
        bomb[place : place + 5] = varint(2**31 - 1)
        with pytest.raises(ResultError, match="more memory to read than any such file needs"):
            reader.samples(bytes(bomb))
        assert reader.samples(files["samples.parquet"]).num_rows == 12


def varint(value, length=0):
    """A number as Thrift's compact protocol writes it, zigzag, with leading zeros up to a length."""
    value *= 2
    parts = []
    while value or not parts or len(parts) < length:
        parts.append(value & 127)
        value >>= 7
    return bytes([part | 128 for part in parts[:-1]] + parts[-1:])


@pytest.mark.parametrize("name", ["samples.parquet", "embeddings.parquet"])
def test_truncated_and_corrupt_parquet_is_refused(files, tmp_path, reader, name):
    whole = files[name]
    for number, content in enumerate(
        [
            b"",
            b"PAR1",
            whole[:-1],
            whole[: len(whole) // 2],
            whole[4:],
            whole[:-8] + b"\xff\xff\xff\x7fPAR1",
            b"\x00" * 1_000,
            whole[:-4] + b"PARE",
            b"PAR1" * 1_000,
        ]
    ):
        with pytest.raises(ResultError, match=name):
            read(tmp_path / str(number), {**files, name: content}, reader)


# ----- the process that reads


def test_a_child_that_died_is_replaced_and_no_file_blamed_for_it(files):
    with ParquetReader() as reader:
        for number in (signal.SIGKILL, signal.SIGSEGV):
            assert reader.samples(files["samples.parquet"]).num_rows == 12
            os.kill(reader._child.pid, number)
        assert reader.samples(files["samples.parquet"]).num_rows == 12
        child = reader._child
    assert child.poll() is not None


def test_a_hang_ends_after_the_time_limit(files):
    with ParquetReader(timeout=5) as reader:
        assert reader.samples(files["samples.parquet"]).num_rows == 12
        os.kill(reader._child.pid, signal.SIGSTOP)
        with pytest.raises(ResultError, match="took longer than 5 s"):
            reader.samples(files["samples.parquet"])
        assert reader.samples(files["samples.parquet"]).num_rows == 12


def test_the_child_ends_with_its_parent():
    code = (
        "import sys; from audio_compositionality.evaluator.submissions.parquet_reader import ParquetReader\n"
        "reader = ParquetReader(); reader._start(); print(reader._child.pid, flush=True); import os; os._exit(1)"
    )
    pid = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).stdout)
    for _ in range(100):
        try:
            with open(f"/proc/{pid}/stat") as stream:
                if stream.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.1)
    pytest.fail("the child goes on")


def test_the_child_imports_nothing_of_the_project_and_knows_no_token(files, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with ParquetReader() as reader:
        reader.samples(files["samples.parquet"])
        with open(f"/proc/{reader._child.pid}/environ") as stream:
            assert "hf_secret" not in stream.read()
        open_files = {os.readlink(path) for path in os.scandir(f"/proc/{reader._child.pid}/fd")}
        assert all(name.startswith("pipe:") or name == "/dev/null" for name in open_files)
    script = f"runpy.run_path({parquet_child.__file__!r})"
    code = f"import sys, runpy; {script}; print({{name.split('.')[0] for name in sys.modules}})"
    printed = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True).stdout.decode()
    loaded = ast.literal_eval(printed)
    assert "pyarrow" in loaded
    assert not loaded & {"audio_compositionality", "torch", "scipy", "pandas"}


@pytest.mark.parametrize(
    "answer",
    [
        "b''",
        "b'-'",
        "b'+' + (2**63).to_bytes(8, 'little')",
        "b'+' + (5).to_bytes(8, 'little') + b'12345'",
        "b'?' + (3).to_bytes(8, 'little') + b'{}\\n'",
        "b'+' + (3).to_bytes(8, 'little') + b'{}\\n'",
        "b'+' + (len(x := b'{\"ids\": [\"a\"], \"dim\": 9999999}\\n')).to_bytes(8, 'little') + x",
        "b'+' + (len(x := b'{\"ids\": [\"a\"], \"dim\": 2}\\n123')).to_bytes(8, 'little') + x",
        "b'-' + (len(x := b'\\x1b[31m<b>\\xff\\n' * 999)).to_bytes(8, 'little') + x",
    ],
)
def test_what_a_taken_over_child_answers_is_checked(tmp_path, monkeypatch, answer):
    script = tmp_path / "child.py"
    script.write_text(
        "import sys\nout = sys.stdout.buffer\nout.write(b'!'); out.flush(); sys.stdin.buffer.read(10)\n"
        f"out.write({answer}); out.flush()\n"
    )
    monkeypatch.setattr(parquet_child, "__file__", str(script))
    for ask in ("embeddings", "samples"):
        with ParquetReader() as reader, pytest.raises(ResultError) as caught:
            getattr(reader, ask)(b"x")
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 400


def test_a_child_that_does_not_start_is_no_fault_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_child, "__file__", str(tmp_path / "nothing.py"))
    with ParquetReader() as reader, pytest.raises(OSError, match="does not start"):
        reader.samples(b"x")


def test_threads_share_a_reader(files, reader):
    found = []

    def work():
        found.extend(reader.embeddings(files["embeddings.parquet"]).values.shape for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(48, 12)] * 80


def test_messages_are_one_line_of_what_can_be_seen():
    assert parquet_reader.clean("a\n\x1b[31m\u202eb") == "a \ufffd[31m\ufffdb"
    assert len(parquet_reader.clean("x" * 10_000)) == parquet_reader.MAX_MESSAGE + 1


def test_the_result_in_a_submission_is_what_evaluate_writes(files):
    values = json.loads(files["result.json"])
    assert values["encoder_id"] == "org/short"
    assert values["schema_version"] == 4
