"""Making submissions, and reading those of strangers."""

import json
import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from safetensors.numpy import load, save
from submissions import (
    ShortEncoder,
    place,
    read_embeddings,
    read_samples,
    sha256sum,
    with_embeddings,
    with_json,
    with_sample_bytes,
    with_samples,
)

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions import making
from audio_compositionality.evaluator.submissions.layout import FILE_LIMITS, id_of, parse_path, sha256_by_name
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.outputs import MAX_HEADER, RoundedEmbeddings, clips_digest
from audio_compositionality.evaluator.submissions.submission import (
    claim_problem,
    data_with,
    outputs_problem,
    parse_submission,
    policy_problem,
    read_submission,
)
from audio_compositionality.tasks.base import Inputs
from audio_compositionality.tasks.registry import load_task

from ..damaged import check_flips


def read(root, files, encoder="org__short", task="a_coat"):
    folder = place(root, files, encoder, task)
    return read_submission(folder, "/".join(folder.parts[-4:]))


# ----- making


def test_the_id_is_made_of_what_sha256sum_prints(made, tmp_path):
    for submission in made.values():
        for name, content in submission.files.items():
            (tmp_path / name).write_bytes(content)
        printed = subprocess.run("sha256sum *", shell=True, cwd=tmp_path, capture_output=True, check=True).stdout
        assert printed.decode() == sha256sum(submission.files)
        whole = subprocess.run(["sha256sum"], input=printed, capture_output=True, check=True).stdout
        assert submission.id == id_of(sha256_by_name(submission.files)) == whole.decode()[:16]
        assert submission.folder == f"results/org__short/1/{submission.result.task}-{submission.id}"


def test_the_submitted_score_is_that_of_the_rounded_embeddings(made, small_data):
    submission = made["a_coat"]
    tensors, digest = read_embeddings(submission.files)
    configuration = small_data.configuration("a_coat")
    assert digest == clips_digest(configuration.clip_ids)
    assert tensors["values"].dtype == np.float16
    a, b, c, d = (tensors["values"].astype(np.float64) * tensors["scale"]).reshape(-1, 4, 12).transpose(1, 0, 2)
    u, v = b - a, d - c
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    assert submission.result.score == pytest.approx(cosines.mean(), abs=1e-12)
    table = read_samples(submission.files)
    assert table["score"] == pytest.approx(cosines, abs=1e-12)
    assert table["id"] == [row["id"] for row in configuration.rows]
    assert submission.local.score != submission.result.score
    assert submission.local.score == pytest.approx(submission.result.score, abs=1e-4)


def test_what_is_about_the_model_stays_and_what_is_stated_is_added(make, made, evaluated):
    local, sent = made["guess"].local, made["guess"].result
    assert local == load_result(evaluated / "results/org__short/1/guess.json")[0]
    for name in ("date", "versions", "seconds", "fingerprint", "settings", "model", "device"):
        assert getattr(local, name) == getattr(sent, name)
    assert (sent.model.paradigm, sent.model.licence) == ("made up", "apache-2.0")
    stated = make(paradigm="supervised", licence="mit").result.model
    assert (stated.paradigm, stated.licence) == ("supervised", "mit")
    with pytest.raises(ResultError, match="the paradigm is"):
        make(paradigm="super\nvised")


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
    again = RoundedEmbeddings.loads(rounded.dumps())
    assert (again.restored() == rounded.restored()).all()
    assert (again.clips, again.scale) == (rounded.clips, rounded.scale)
    same = np.full((3, 5), 0.1 * size, np.float32)
    assert (RoundedEmbeddings.of("abc", same).restored() == same).all()


def test_the_same_result_gives_the_same_bytes_and_folders_of_the_submitter_are_not_told(make, made, evaluated, data):
    assert make("a_coat").files == made["a_coat"].files
    assert make(data=open_data(data)).result.dataset == "small"
    bare = make(with_outputs=False, store=evaluated / "nowhere")
    assert sorted(bare.files) == ["result.json", "samples.csv"]
    assert (bare.result, bare.embeddings) == (bare.local, None)


def test_what_cannot_be_submitted_says_what_to_do(make, evaluated, tiny_data, tmp_path, monkeypatch):
    with pytest.raises(ResultError, match=r"--store says in which folder.*evaluate --force"):
        make(store=tmp_path)
    with pytest.raises(ResultError, match="give the data it was computed from"):
        make(data=tiny_data)
    monkeypatch.setattr(making, "FILE_LIMITS", {"embeddings.safetensors": 1_151})
    with pytest.raises(ResultError, match=r"have 1,152 bytes.*without embeddings the result can be submitted"):
        make()


def test_a_result_of_other_settings_or_another_version_cannot_be_submitted(made, small_data, guess, monkeypatch):
    opened = open_task(guess, small_data)
    result = made["guess"].result
    assert policy_problem(result, opened) is None
    other = result.model_copy(update={"settings": {"seeds": [False, True, 2], "share": 0.5}})
    assert "its settings are" in policy_problem(other, opened)
    assert "evaluate it again with --force and these settings" in policy_problem(other, opened)
    monkeypatch.setattr(guess, "info", replace(guess.info, version=2))
    assert policy_problem(result, opened) == "it is of version 1 of guess, this is version 2: evaluate it again"


def test_embeddings_are_no_answers(made, make, guess, small_data, monkeypatch):
    monkeypatch.setattr(guess, "needs", Inputs(clips=("A",), prompts=("what?",)))
    with pytest.raises(ResultError, match=r"lacks (\d) of \1 files of the answers of org/short"):
        make("guess")
    problem = outputs_problem(parse_submission(made["guess"].files), open_task(guess, small_data))
    assert problem == "guess scores answers, which stand in answers.jsonl; it has embeddings"


def test_skipped_clips_and_names_that_mislead_cannot_be_submitted(small_data, tmp_path):
    class Failing(ShortEncoder):
        def embed(self, waveforms, sample_rate):
            embeddings = super().embed(waveforms, sample_rate)
            embeddings[np.isclose(embeddings[:, 0], loudest)] = np.nan
            return embeddings

    first = next(small_data.configuration("a_coat").clips(range(1)))
    loudest = ShortEncoder().embed(first.waveform[None], first.sample_rate)[0, 0]

    def submit(model, **options):
        local = {"store": tmp_path / "z", "progress": False, "device": "cpu"}
        evaluate_models(
            [model], small_data, [load_task("a_coat")], RunOptions(out=tmp_path / "out", **local, **options)
        )
        (path,) = (tmp_path / "out").rglob("a_coat.json")
        make_submission(path, small_data, **local)

    with pytest.raises(ResultError, match=r"leaves out .* clips, such as a_coat-test-00000/A"):
        submit(Failing(), skip_invalid=True)
    (tmp_path / "out").rename(tmp_path / "skipped")
    named = ShortEncoder()
    named.card = replace(ShortEncoder.card, id="<b>org</b>")
    with pytest.raises(ResultError, match=r"model\.id is '<b>org</b>'; in a submission it has"):
        submit(named)
    (tmp_path / "out").rename(tmp_path / "misleading")
    # Each slash becomes two characters.
    named.card = replace(ShortEncoder.card, id="a" + "/a" * 74)
    with pytest.raises(ResultError, match=r"as a part of a path it has 223 bytes; at most 200 are allowed"):
        submit(named)


def test_presets_are_known_by_their_fingerprint_and_other_data_have_to_be_named(small_data, data):
    for name in ("mini", "full"):
        fingerprint = open_data(name).configuration("a_coat").fingerprint
        assert data_with("a_coat", fingerprint).source == name
    small = small_data.configuration("a_coat").fingerprint
    with pytest.raises(ResultError, match=r"no preset has.*name the data with --data"):
        data_with("a_coat", small)
    assert data_with("a_coat", small, data).configuration("a_coat").fingerprint == small
    with pytest.raises(ResultError, match="which neither a preset"):
        data_with("a_coat", "0" * 64, data)


# ----- paths


@pytest.mark.parametrize(
    ("path", "kind", "file"),
    [
        ("results/openai__whisper-base/main/a_coat-0123456789abcdef", "results", None),
        ("results/a/1/any_task_2-0123456789abcdef/embeddings.safetensors", "results", "embeddings.safetensors"),
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
        "results/a/1/A_coat-0123456789abcdef",
        "results/a/1/a-coat-0123456789abcdef",
        f"results/a/1/{'a' * 65}-0123456789abcdef",
        "results/../1/a_coat-0123456789abcdef",
        "results/./1/a_coat-0123456789abcdef",
        "results/.hidden/1/a_coat-0123456789abcdef",
        "results/a/../../a_coat-0123456789abcdef",
        "/results/a/1/a_coat-0123456789abcdef",
        "results//1/a_coat-0123456789abcdef",
        "results/a/1/a_coat-0123456789abcdef/",
        "results/a/1/a_coat-0123456789abcdef/../x.json",
        "results/a/1/a_coat-0123456789abcdef/verification.json",
        "verified/a/1/a_coat-0123456789abcdef/embeddings.safetensors",
        "results/a/1/a_coat-0123456789abcdef/embeddings.parquet",
        "results/a/1/a_coat-0123456789abcdef/result.json\n",
        "results/a\n/1/a_coat-0123456789abcdef",
        "results/a\\b/1/a_coat-0123456789abcdef",
        "results/<b>/1/a_coat-0123456789abcdef",
        "results/whisper-bаse/1/a_coat-0123456789abcdef",
        "results/a/1/a_coat-٠123456789abcdef",
        f"results/{'a' * 302}/1/a_coat-0123456789abcdef",
    ],
)
def test_no_other_path_is(path):
    assert parse_path(path) is None


# ----- reading what strangers send


def test_a_submission_comes_back_as_it_was_made(made, files, tmp_path):
    for task, submission in made.items():
        folder = place(tmp_path, submission.files, task=task)
        for again in (read_submission(folder, submission.folder), read_submission(folder)):
            assert (again.id, again.result) == (submission.id, submission.result)
            assert again.samples.dumps() == submission.samples.dumps()
            assert again.embeddings.clips == submission.embeddings.clips
            assert (again.embeddings.restored() == submission.embeddings.restored()).all()
    del files["embeddings.safetensors"]
    assert read(tmp_path, files).embeddings is None


@pytest.mark.parametrize("name", ["result.json", "samples.csv", "embeddings.safetensors"])
def test_a_file_of_which_a_byte_has_changed_is_refused(made, tmp_path, name):
    submission = made["a_coat"]
    path = place(tmp_path, submission.files) / name

    def read_changed(content):
        path.write_bytes(content)
        read_submission(path.parent, submission.folder)

    check_flips(submission.files[name], read_changed, most=100)


def test_a_wrong_id_and_another_model_s_place_are_refused(files, tmp_path):
    with pytest.raises(ResultError, match="its content belongs to results/org__short/1/"):
        read(tmp_path, files, encoder="openai__whisper-base")
    folder = place(tmp_path, files)
    other = folder.with_name("a_coat-0000000000000000")
    folder.rename(other)
    with pytest.raises(ResultError, match="its place is results/org__short/1/a_coat-0000000000000000, but its content"):
        read_submission(other, "/".join(other.parts[-4:]))


@pytest.mark.parametrize("name", ["result.json", "samples.csv", "embeddings.safetensors"])
def test_a_link_is_refused(files, tmp_path, name):
    folder = place(tmp_path, files)
    secret = tmp_path / "secret"
    (folder / name).rename(secret)
    (folder / name).symlink_to(secret)
    with pytest.raises(ResultError, match=f"{name} is a link"):
        read_submission(folder)


def test_a_linked_folder_is_refused_and_a_pipe_in_the_place_of_a_file_does_not_hang(files, tmp_path):
    folder, link = place(tmp_path, files), tmp_path / "link"
    link.symlink_to(folder)
    with pytest.raises(ResultError, match="is not a folder"):
        read_submission(link)
    (folder / "result.json").unlink()
    os.mkfifo(folder / "result.json")
    with pytest.raises(ResultError, match="is not a regular file"):
        read_submission(folder)


def test_extra_and_missing_files_are_refused(files, tmp_path):
    with pytest.raises(ResultError, match=r"it holds 'x\\n\\x1b\[31m.html'; a folder holds result.json"):
        read(tmp_path / "a", {**files, "x\n\x1b[31m.html": b""})
    with pytest.raises(ResultError, match=r"it holds 'verification\.json'"):
        read(tmp_path / "b", {**files, "verification.json": b"{}"})
    with pytest.raises(ResultError, match=r"it has no samples\.csv"):
        read(tmp_path / "c", {"result.json": files["result.json"]})
    with pytest.raises(ResultError, match="is not a folder"):
        read_submission(tmp_path / "d")


@pytest.mark.parametrize("name", sorted(FILE_LIMITS.keys() - {"verification.json", "answers.jsonl"}))
def test_a_file_larger_than_the_limit_is_refused_unread(files, tmp_path, name):
    folder = place(tmp_path, files)
    os.truncate(folder / name, 2**40)
    with pytest.raises(ResultError, match=f"{name} has 1,099,511,627,776 bytes; at most"):
        read_submission(folder)
    with pytest.raises(ResultError, match=rf"{name} has [\d,]+ bytes; at most"):
        parse_submission({**files, name: bytes(FILE_LIMITS[name] + 1)})


def in_days(days):
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")


def test_a_clock_may_be_wrong_by_some_hours(files, tmp_path):
    date = in_days(0.9)
    assert read(tmp_path, with_json(files, date=date)).result.date == date


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measures": {"a_coat": float("nan")}}, "has NaN"),
        ({"measures": {"a_coat": float("inf")}}, "has Infinity"),
        ({"measures": {"a_coat": 10**400}}, "measures.a_coat"),
        ({"measures": {"a_coat": 0.123}, "intervals": {}}, "the mean of score is not the a_coat of the result"),
        ({"intervals": {"praise": [0, 1]}}, "an interval of praise, which is not one of its measures"),
        ({"skipped": [{"id": "a_coat-test-00000/A", "reason": "silent"}]}, "leaves out 1 clips"),
        ({"model": {"id": "a" + "/a" * 74}}, "as a part of a path it has 223 bytes; at most 200 are allowed"),
        ({"model": {"id": "../../etc"}}, r"model\.id is '\.\./\.\./etc'; in a submission it has"),
        ({"model": {"id": ".."}}, r"model\.id is '\.\.'"),
        ({"model": {"id": "<script>alert(1)</script>"}}, r"model\.id is '<script>alert"),
        ({"model": {"id": "org/short‮"}}, "cannot be printed"),
        ({"model": {"id": "whisper-bаse"}}, r"model\.id is 'whisper-b"),
        ({"model": {"id": "a" * 151}}, r"model\.id is"),
        ({"model": {"revision": "1\n"}}, "cannot be printed"),
        ({"model": {"revision": "/"}}, r"model\.revision is '/'"),
        ({"model": {"licence": "x" * 501}}, "at most 500 characters"),
        ({"model": {"output_dim": 2**40}}, "they have 12 numbers each, the result says 1,099,511,627,776"),
        ({"model": {"output_dim": None}}, "they have 12 numbers each, the result says none"),
        ({"model": {"output_dim": 13}}, "they have 12 numbers each, the result says 13"),
        ({"model": {"options": {"layer": 1, "pooling": "?", "precision": "float32", "compile": False}}}, "pooling is"),
        ({"device": "cpu\x1b[31m"}, "cannot be printed"),
        ({"versions": {"​": "1"}}, "cannot be printed"),
        ({"dataset": "\ud800"}, "dataset is"),
        ({"date": "9999-99-99T99:99:99+00:00"}, "its date is 9999-99-99T99:99:99"),
        ({"date": "2026-02-30T00:00:00+00:00"}, "its date is 2026-02-30"),
        ({"date": "２026-01-01T00:00:00+00:00"}, "date is"),
        ({"date": in_days(1.1)}, "invalid or in the future"),
        ({"n": 11}, "12 samples, where the result says 11"),
        ({"samples_sha256": "0" * 64}, "SHA-256 differs"),
        ({"schema_version": 99}, "a result of schema version 99"),
        ({"task": "guess"}, "the mean of score is not|its content belongs to .*/guess-"),
    ],
)
def test_a_hostile_result_is_refused(files, tmp_path, changes, message):
    with pytest.raises(ResultError, match=message) as caught:
        read(tmp_path, with_json(files, **changes))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700


def test_a_task_that_nobody_knows_is_refused(files):
    with pytest.raises(ResultError, match=r"result\.json: unknown task 'nobody_knows_it'"):
        parse_submission(with_json(files, task="nobody_knows_it"))


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
        b'{"schema_version": 1, "schema_version": 1}',
        b"\x00" * 1_000,
    ],
)
def test_what_is_no_json_of_a_result_is_refused(files, tmp_path, content):
    with pytest.raises(ResultError, match=r"result\.json: "):
        read(tmp_path, {**files, "result.json": content})


def test_samples_that_are_not_those_of_the_result_are_refused(files, tmp_path):
    scores = read_samples(files)["score"]
    for number, (change, message) in enumerate(
        [
            ({"score": scores - 0.1}, "the mean of score is not"),
            ({"score": scores + 2 * np.cos(np.pi * np.arange(12))}, "score is not within -1 to 1"),
            ({"score": np.where(np.arange(12) == 3, np.inf, scores)}, "not finite"),
            ({"score": ["one", *map(str, scores[1:])]}, "not a number"),
            ({"id": [*map(str, range(11)), "0"]}, "not unique"),
            ({"id": ["x" * 501, *map(str, range(11))]}, "too long"),
        ]
    ):
        with pytest.raises(ResultError, match=f"samples.csv: .*{message}"):
            read(tmp_path / str(number), with_samples(files, **change))
    lines = files["samples.csv"].splitlines(keepends=True)
    for number, (content, message) in enumerate(
        [
            (b"", "the first is id"),
            (b"".join(lines[:-1]), "it has 11 samples, where the result says 12"),
            (b"".join(lines) + b"a,1\n", "line 14 of its samples has 2 values"),
            (files["samples.csv"].replace(b"\n", b"\r\n"), "not as this project writes them"),
            (files["samples.csv"].replace(b",0.", b",00.", 1), "not as this project writes them"),
            (b"\xff" + files["samples.csv"], "no CSV"),
            (b'id,score\n"' + b"a" * 200_000, "no CSV"),
            (b"id," + b",".join(b"c%d" % k for k in range(5_000)) + b"\n", "0 samples, where"),
        ]
    ):
        with pytest.raises(ResultError, match=message):
            read(tmp_path / f"bytes{number}", with_sample_bytes(files, content))


def test_samples_of_other_rows_and_made_up_intervals_are_a_problem(made, small_data, files):
    opened = open_task(load_task("a_coat"), small_data)
    assert claim_problem(made["a_coat"], opened) is None
    ids = read_samples(files)["id"]
    other = parse_submission(with_samples(files, id=[ids[1], ids[0], *ids[2:]]))
    assert claim_problem(other, opened) == "its samples are not those of the data, in their order"
    intervals = json.loads(files["result.json"])["intervals"]
    for interval in ([0.9, 0.91], None):
        praised = parse_submission(with_json(files, intervals={**intervals, "a_coat": interval}))
        assert claim_problem(praised, opened) == "the interval of a_coat is not that of its samples"
    together = parse_submission(with_samples(files, cluster=[0.0] * len(ids)))
    assert claim_problem(together, opened) == "the clusters of its samples are not those of the data"
    fewer = parse_submission(with_json(files, intervals={}))
    assert claim_problem(fewer, opened) == "its intervals are not those that its task has"


def test_embeddings_of_another_form_are_refused(files, tmp_path):
    tensors, clips = read_embeddings(files)
    values = tensors["values"]
    spoilt, infinite = values.copy(), values.copy()
    spoilt[5, 5], infinite[0, 0] = np.nan, np.inf
    for number, (change, message) in enumerate(
        [
            ({"values": spoilt}, "not finite"),
            ({"values": infinite}, "not finite"),
            ({"values": values.astype(np.float32)}, "values is of type F32, not F16"),
            ({"values": values.reshape(-1)}, "0 embeddings of 0 numbers"),
            ({"values": values[None]}, "values has the shape"),
            ({"values": values[:0]}, "0 embeddings of 12 numbers"),
            ({"values": np.zeros((2, 8_193), np.float16)}, "8,193 numbers each; 1 to 8,192 are allowed"),
            ({"values": values[:, :11]}, r"its offset has the shape \(12,\)"),
            ({"offset": np.full(12, np.nan, np.float32)}, "not finite"),
            ({"scale": np.array([1.0])}, "its scale"),
            ({"scale": np.array(3.0)}, "its scale is 3.0, not 2"),
            ({"scale": np.array(2.0**1000)}, "not 2"),
            ({"scale": np.array(0.0)}, "not 2"),
            ({"scale": np.array(-2.0)}, "not 2"),
            ({"scale": np.array(np.nan)}, "not 2"),
            ({"more": values}, "does not name values, offset, scale and nothing else"),
            ({"clips": "?"}, "its metadata are not the SHA-256"),
            ({"clips": "0" * 63 + "\u0660"}, "its metadata are not the SHA-256"),
        ]
    ):
        with pytest.raises(ResultError, match=rf"embeddings\.safetensors: .*{message}"):
            read(tmp_path / str(number), with_embeddings(files, **change))
    for metadata in (None, {"clips": clips, "name": "x"}, {"clip": clips}):
        with pytest.raises(ResultError, match=r"header does not name|metadata are not"):
            RoundedEmbeddings.loads(bytes(save(tensors, metadata)))


@pytest.mark.parametrize("length", [0, 1, 7, MAX_HEADER + 1, 2**32, 2**64 - 1])
def test_the_length_of_the_header_is_not_believed(files, length):
    content = files["embeddings.safetensors"]
    with pytest.raises(ResultError):
        RoundedEmbeddings.loads(length.to_bytes(8, "little") + content[8:])


def test_a_header_that_says_something_else_than_the_file_is_refused(files):
    content = files["embeddings.safetensors"]
    length = int.from_bytes(content[:8], "little")
    header, body = content[8 : 8 + length], content[8 + length :]
    assert load(content)["values"].shape == (48, 12)
    for number, (before, after) in enumerate(
        [
            (b'"shape":[48,12]', b'"shape":[99,12]'),
            (b'"shape":[48,12]', b'"shape":[-8,12]'),
            (b'"shape":[48,12]', b'"shape":[1e1,2]'),
            (b'"shape":[48,12]', b'"shape":[true,9]'),
            (b'"dtype":"F16"', b'"dtype":"I16"'),
            (b'"dtype":"F16"', b'"dtype":["F16"]'),
            (b'"dtype":"F16"', b'"dtype":"F16","dtype":"F16"'),
            (b'"data_offsets":[0,8]', b'"data_offsets":[8,16]'),
            (b'"data_offsets":[0,8]', b'"data_offsets":[0,NaN]'),
            (b'"data_offsets":[0,8]', b'"data_offsets":"all of them"'),
            (header, b"[" * 2_000),
            (header, b"{}"),
            (header, b"null"),
            (header, b"\xff"),
        ]
    ):
        assert before in header, number
        other = header.replace(before, after, 1)
        with pytest.raises(ResultError):
            RoundedEmbeddings.loads(len(other).to_bytes(8, "little") + other + body)


@pytest.mark.parametrize("change", [lambda c: b"", lambda c: c[:-1], lambda c: c + b"\0", lambda c: c[: len(c) // 2]])
def test_truncated_and_longer_embeddings_are_refused(files, tmp_path, change):
    with pytest.raises(ResultError, match=r"embeddings\.safetensors"):
        read(tmp_path, {**files, "embeddings.safetensors": change(files["embeddings.safetensors"])})
