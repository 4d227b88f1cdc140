"""Reading what strangers send: everything else than what `submit` writes is refused in one printable line."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import strategies as st
from submissions import (
    place,
    read_embeddings,
    read_samples,
    with_embeddings,
    with_json,
    with_sample_bytes,
    with_samples,
    written,
)

from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.submissions.layout import FILE_LIMITS, parse_path
from audio_compositionality.evaluator.submissions.outputs import MAX_HEADER, RawAnswers, RoundedEmbeddings
from audio_compositionality.evaluator.submissions.submission import parse_submission, read_submission

from ..damaged import changed, check_flips, damage, damages, explorer, places_of, values

NAMES = ("result.json", "samples.csv", "embeddings.safetensors")
ENTRY = "results/a/1/a_coat-0123456789abcdef"


def refused(files, message, name=None):
    with pytest.raises(ResultError, match=message) as caught:
        parse_submission(files, name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("path", "kind", "file"),
    [
        ("results/openai__whisper-base/main/a_coat-0123456789abcdef", "results", None),
        (f"{ENTRY}/embeddings.safetensors", "results", "embeddings.safetensors"),
        ("verified/a@layer=3+bfloat16/1/a_tre-0123456789abcdef/verification.json", "verified", "verification.json"),
        *((path, None, None) for path in (
            "", "README.md", ENTRY[:-1], ENTRY.upper(), ENTRY.replace("a_coat", "a-coat"), f"/{ENTRY}", f"{ENTRY}/",
            ENTRY.replace("/a/", "/../"), ENTRY.replace("/a/", "/.hidden/"), ENTRY.replace("/a/", "//"),
            f"{ENTRY}/../x.json", f"{ENTRY}/verification.json", f"{ENTRY}/result.json\n", f"{ENTRY}/embeddings.parquet",
            ENTRY.replace("results", "verified") + "/embeddings.safetensors", ENTRY.replace("/a/", "/<b>/"),
            ENTRY.replace("/a/", "/b\u0430se/"), ENTRY.replace("0", "\u0660"), ENTRY.replace("/a/", f"/{'a' * 302}/"),
        )),
    ],
)  # fmt: skip
def test_paths_of_the_repository_are_known_and_no_other_path_is(path, kind, file):
    parts = parse_path(path)
    assert (parts and parts.kind, parts and parts.file) == (kind, file)
    assert parts is None or path == "/".join(part for part in (parts.folder, parts.file) if part)


def test_a_submission_comes_back_as_it_was_made(made, answered, files, tmp_path):
    for submission in (*made.values(), answered["blind"]):
        folder = place(tmp_path, submission.files, submission.folder.split("/")[1], submission.result.task)
        again = read_submission(folder)
        assert (again.id, again.result, again.answers) == (submission.id, submission.result, submission.answers)
        assert again.samples.dumps() == submission.samples.dumps()
        if submission.embeddings is not None:
            assert (again.embeddings.restored() == submission.embeddings.restored()).all()
    del files["embeddings.safetensors"]
    assert parse_submission(files).embeddings is None


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_which_a_byte_has_changed_or_which_is_a_link_or_too_large_is_refused(made, tmp_path, name):
    submission = made["a_coat"]
    folder = place(tmp_path, submission.files)

    def read(content):
        (folder / name).write_bytes(content)
        read_submission(folder, submission.folder)

    check_flips(submission.files[name], read, most=60)
    os.truncate(folder / name, 2**40)
    with pytest.raises(ResultError, match=f"{name} has 1,099,511,627,776 bytes; at most"):
        read_submission(folder)
    refused({**submission.files, name: bytes(FILE_LIMITS[name] + 1)}, rf"{name} has [\d,]+ bytes; at most")
    (folder / name).rename(tmp_path / "secret")
    (folder / name).symlink_to(tmp_path / "secret")
    with pytest.raises(ResultError, match=f"{name} is a link"):
        read_submission(folder)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ResultError, match="is not a regular file"):
        read_submission(folder)


def test_other_places_and_other_files_are_refused(made, files, tmp_path):
    refused(files, "its content belongs to results/org__short/1/", f"results/openai__whisper-base/1/a_coat-{'0' * 16}")
    refused(files, "its place is .*0000, but its content", f"results/org__short/1/a_coat-{'0' * 16}")
    refused({**files, "x\n\x1b[31m.html": b""}, r"it holds 'x\\n\\x1b\[31m.html'; a folder holds result.json")
    refused({**files, "verification.json": b"{}"}, r"it holds 'verification\.json'")
    refused({"result.json": files["result.json"]}, r"it has no samples\.csv")
    refused({**files, "answers.jsonl": b"?"}, r"it holds embeddings\.safetensors and answers\.jsonl; a submission")
    link = tmp_path / "link"
    link.symlink_to(place(tmp_path, files))
    for folder in (link, tmp_path / "none"):
        with pytest.raises(ResultError, match="is not a folder"):
            read_submission(folder)


def in_days(days):
    return (datetime.now(UTC) + timedelta(days=days)).isoformat(timespec="seconds")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measures": {"a_coat": float("nan")}}, "has NaN"),
        ({"measures": {"a_coat": 10**400}}, "measures.a_coat"),
        ({"measures": {"a_coat": 0.123}, "intervals": {}}, "the mean of score is not the a_coat of the result"),
        ({"intervals": {"praise": [0, 1]}}, "an interval of praise, which is not one of its measures"),
        ({"skipped": [{"id": "a_coat-test-00000/A", "reason": "silent"}]}, "leaves out 1 clips"),
        ({"model": {"id": "a" + "/a" * 74}}, "as a part of a path it has 223 bytes; at most 200 are allowed"),
        ({"model": {"id": "../../etc"}}, r"model\.id is '\.\./\.\./etc'; in a submission it has"),
        ({"model": {"id": ".."}}, r"model\.id is '\.\.'"),
        ({"model": {"id": "org/short\u202e"}}, "cannot be printed"),
        ({"model": {"id": "whisper-b\u0430se"}}, r"model\.id is 'whisper-b"),
        ({"model": {"id": "a" * 151}}, r"model\.id is"),
        ({"model": {"revision": "/"}}, r"model\.revision is '/'"),
        ({"model": {"licence": "x" * 501}}, "at most 500 characters"),
        ({"model": {"output_dim": None}}, "they have 12 numbers each, the result says none"),
        ({"model": {"output_dim": 13}}, "they have 12 numbers each, the result says 13"),
        ({"versions": {"\u200b": "1"}}, "cannot be printed"),
        ({"dataset": "\ud800"}, "dataset is"),
        ({"date": "2026-02-30T00:00:00+00:00"}, "its date is 2026-02-30"),
        ({"date": in_days(1.1)}, "invalid or in the future"),
        ({"n": 11}, "12 samples, where the result says 11"),
        ({"samples_sha256": "0" * 64}, "SHA-256 differs"),
        ({"schema_version": 99}, "a result of schema version 99"),
        ({"task": "nobody_knows_it"}, r"result\.json: unknown task 'nobody_knows_it'"),
    ],
)
def test_a_hostile_result_is_refused(files, changes, message):
    refused(with_json(files, **changes), message)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"null", b"[" * 90_000, b"1" * 99_999, b'{"a": 1, "a": 1}'])
def test_what_is_no_json_of_a_result_is_refused(files, content):
    refused({**files, "result.json": content}, r"result\.json: ")


def test_a_clock_may_be_wrong_by_some_hours(files):
    assert parse_submission(with_json(files, date=(date := in_days(0.9)))).result.date == date


def test_samples_that_are_not_those_of_the_result_are_refused(files):
    scores, content = read_samples(files)["score"], files["samples.csv"]
    for change, message in (
        ({"score": scores - 0.1}, "the mean of score is not"),
        ({"score": scores + 2 * np.cos(np.pi * np.arange(12))}, "score is not within -1 to 1"),
        ({"score": np.where(np.arange(12) == 3, np.inf, scores)}, "not finite"),
        ({"score": ["one", *map(str, scores[1:])]}, "not a number"),
        ({"id": [*map(str, range(11)), "0"]}, "not unique"),
        ({"id": ["x" * 501, *map(str, range(11))]}, "too long"),
    ):
        refused(with_samples(files, **change), f"samples.csv: .*{message}")
    for other, message in (
        (b"", "the first is id"),
        (content[: content.rindex(b"\n", 0, -1) + 1], "it has 11 samples, where the result says 12"),
        (content + b"a,1\n", "line 14 of its samples has 2 values"),
        (content.replace(b"\n", b"\r\n"), "not as this project writes them"),
        (b"\xff" + content, "no CSV"),
        (b'id,score\n"' + b"a" * 200_000, "no CSV"),
    ):
        refused(with_sample_bytes(files, other), message)


def test_embeddings_of_another_form_are_refused(files, of_texts):
    plain, texts = read_embeddings(files), of_texts.files
    values, nan = plain["values"], plain["values"].copy()
    nan[5, 5] = np.nan
    for change, message in (
        ({"values": nan}, "not finite"),
        ({"values": values.astype(np.float32)}, "values, float32 of 2 dimensions; it must have"),
        ({"values": values.reshape(-1)}, "values, float16 of 1 dimension; it must have"),
        ({"values": values.view(np.uint16)}, "its tensors are"),
        ({"values": np.zeros((2, 8_193), np.float16)}, "8,193 numbers each; 1 to 8,192 are allowed"),
        ({"values": values[:0]}, "0 embeddings of 12 numbers"),
        ({"values": values[:, :11]}, "its offset has 12 numbers, not 11"),
        ({"offset": np.full(12, np.nan, np.float32)}, "not finite"),
        ({"scale": np.array([1.0])}, "its tensors are"),
        *(({"scale": np.array(scale)}, "its scale is .*, not 2") for scale in (3.0, 2.0**1000, 0.0, -2.0, np.nan)),
        ({"more": values}, "its tensors are .*more"),
        ({"texts": None}, "its tensors are"),
        ({"clips": plain["clips"][:31]}, "its clips has 31 numbers, not 32"),
        ({"text_offset": plain["offset"]}, "its text_offset has 12 numbers, not 0"),
        *(({"texts": np.array(texts)}, f"{texts} of them cannot be of texts") for texts in (48, -1)),
    ):
        refused(with_embeddings(files, **change), rf"embeddings\.safetensors: .*{message}")
    offset = read_embeddings(texts)["text_offset"]
    refused(with_embeddings(texts, text_offset=offset[:11]), "its text_offset has 11 numbers, not 12")
    refused(with_embeddings(texts, text_offset=np.full(12, np.inf, np.float32)), "not finite")


def test_a_header_that_says_something_else_than_the_file_is_refused(files):
    content = files["embeddings.safetensors"]
    end = 8 + int.from_bytes(content[:8], "little")
    header, body = content[8:end], content[end:]
    for before, after in (
        (b'"shape":[48,12]', b'"shape":[99,12]'),
        (b'"dtype":"F16"', b'"dtype":"F8_E8M0"'),
        (b'"data_offsets":[0,8]', b'"data_offsets":[8,16]'),
        (header, b"[" * 2_000),
        (header, header + b" " * MAX_HEADER),
    ):
        assert before in header
        other = header.replace(before, after, 1)
        with pytest.raises(ResultError):
            RoundedEmbeddings.loads(len(other).to_bytes(8, "little") + other + body)
    lengths = (length.to_bytes(8, "little") + content[8:] for length in (0, 7, 2**64 - 1))
    for other in (*lengths, b"", content[:-1], content + b"\0"):
        with pytest.raises(ResultError):
            RoundedEmbeddings.loads(other)


GOOD = '{"id": "q", "answer": "A"}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        (GOOD.rstrip(), "its last line is incomplete"),
        (GOOD + "\n", "line 2: not JSON"),
        (GOOD * 2, "it has 2 answers to q; each question has one"),
        (GOOD.replace('"A"', '"\N{EURO SIGN}"'), "byte 24 is not ASCII"),
        (GOOD.replace('"A"', "null"), "line 1: its answer is None; it must be a text"),
        (GOOD.replace('"A"', '"\\u001b[2J"'), r"line 1: its answer has the character U\+001B"),
        (GOOD.replace('"A"', '"\\ud800"'), r"U\+D800"),
        (GOOD.replace('"A"', f'"{"A" * 20_001}"'), "its answer has 20,001 characters; at most 20,000 are allowed"),
        (GOOD.replace('"q"', f'"{"q" * 301}"'), "its id has 301 characters"),
        (GOOD.replace('"q"', '""'), "line 1: its id is ''; it must have one or more printable characters"),
        (GOOD.replace('"q"', '"\\u202e"'), "it must have one or more printable characters"),
        (GOOD.replace("}", ', "score": 1}'), "it must be an object with id and answer, and nothing else"),
        (GOOD.replace('"id"', '"answer"'), "it has a name twice"),
        (GOOD.replace('"A"', '"\\u0041"'), "line 1: it is not written as `submit` writes it"),
        (GOOD.replace("\n", "\r\n"), "it is not written as"),
    ],
)
def test_hostile_answers_are_refused(content, message):
    with pytest.raises(ResultError, match=message):
        RawAnswers.loads(content.encode())


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [*NAMES, "answers.jsonl"])
def test_any_damage_of_a_file_is_refused_or_changes_nothing_that_is_read(made, answered, fuzz_cases, fuzz_rng, name):
    files = (answered["blind"] if name == "answers.jsonl" else made["a_coat"]).files
    explore = explorer(fuzz_cases, fuzz_rng, ResultError)

    def read(content):
        submission = parse_submission({**files, name: content})
        # Numbers in the middle of the embeddings, and texts of answers, may be any.
        assert name in ("embeddings.safetensors", "answers.jsonl") or content == files[name]
        assert submission.answers is None or submission.answers.dumps() == content

    explore(damages, lambda case: read(damage(files[name], *case)))
    if name == "result.json":
        facts = {key: value for key, value in json.loads(files[name]).items() if key != "digest"}
        places = st.tuples(st.sampled_from(places_of(facts)[1:]), values)
        explore(places, lambda case: parse_submission({**files, name: written(changed(facts, *case))}))
