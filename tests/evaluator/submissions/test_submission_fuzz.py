"""Submissions that are wrong in one way or another: each is taken or refused, and nothing else happens."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import strategies as st
from submissions import place, with_sample_bytes
from submissions import written as written_result

from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.submissions.layout import folder_of, parse_path
from audio_compositionality.evaluator.submissions.outputs import RawAnswers, RoundedEmbeddings
from audio_compositionality.evaluator.submissions.record import VerificationRecord, check, parse_verification
from audio_compositionality.evaluator.submissions.submission import parse_submission, read_submission
from audio_compositionality.evaluator.submissions.verification import verification_files, verify

from ..damaged import changed, damage, damages, explorer, places_of, scalars, values

pytestmark = pytest.mark.fuzz

SECRET = "fedcba9876543210" * 2


@pytest.fixture
def explore(fuzz_cases, fuzz_rng):
    return explorer(fuzz_cases, fuzz_rng, ResultError)


@pytest.fixture(scope="module")
def written(made, data):
    return verification_files(
        verify(made["a_coat"], data=data, device="cpu"), secret=SECRET, date=datetime(2026, 1, 2, tzinfo=UTC)
    )


def test_fields_of_a_result(explore, files):
    given_values = json.loads(files["result.json"])
    del given_values["digest"]

    def run(case):
        path, value = case
        parse_submission({**files, "result.json": written_result(changed(given_values, path, value))})

    explore(st.tuples(st.sampled_from(places_of(given_values)[1:]), values), run)


@pytest.mark.parametrize("name", ["result.json", "samples.csv", "embeddings.safetensors"])
def test_bytes_of_a_file(explore, files, name):
    def run(case):
        content = damage(files[name], *case)
        submission = parse_submission({**files, name: content})
        # Numbers in the middle of the embeddings may be any; of the others every byte counts.
        assert name == "embeddings.safetensors" or content == files[name]
        assert submission.result

    explore(damages, run)


def test_samples_of_a_result_that_speaks_of_them(explore, files):
    explore(damages, lambda case: parse_submission(with_sample_bytes(files, damage(files["samples.csv"], *case))))


def test_headers_of_embeddings(explore, files):
    content = files["embeddings.safetensors"]
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]

    def run(case):
        path, value = case
        text = json.dumps(changed(header, path, value)).encode()
        embeddings = RoundedEmbeddings.loads(len(text).to_bytes(8, "little") + text + body)
        assert embeddings.values.shape[1] == len(embeddings.offset)

    explore(st.tuples(st.sampled_from(places_of(header)), values), run)
    shapes = st.lists(st.integers(-2, 100) | st.sampled_from([2**31, 2**63, 2**64]), max_size=3)
    explore(st.tuples(st.sampled_from([(name, "shape") for name in ("values", "offset", "scale")]), shapes), run)
    explore(damages, lambda case: RoundedEmbeddings.loads(damage(content[: 8 + length], *case) + body))


def test_lines_of_answers(explore):
    good = RawAnswers(("q-1", "q-2", "q-3"), ("A", "B. \N{EURO SIGN}\n", ""))

    def read(content):
        answers = RawAnswers.loads(content)
        assert answers.dumps() == content
        answers.problem_of(good.ids)

    explore(damages, lambda case: read(damage(good.dumps(), *case)))
    lines = [{"id": id, "answer": text} for id, text in zip(good.ids, good.texts, strict=True)]

    def run(case):
        path, value = case
        read("".join(json.dumps(line) + "\n" for line in changed(lines, path, value)).encode())

    explore(st.tuples(st.sampled_from(places_of(lines)[1:]), values), run)


def test_answers_of_a_model_are_read_as_they_are_sent(explore):
    def run(texts):
        answers = RawAnswers.of([f"q-{place}" for place in range(len(texts))], texts)
        assert RawAnswers.loads(answers.dumps()) == answers
        assert RawAnswers.of(answers.ids, answers.texts) == answers

    explore(st.lists(scalars.filter(lambda value: isinstance(value, str)), min_size=1, max_size=5), run)


def test_values_of_a_record(explore, made, written):
    given_values = json.loads(written["verification.json"])

    def run(case):
        path, value = case
        text = (json.dumps(changed(given_values, path, value), indent=1) + "\n").encode()
        parse_verification({**written, "verification.json": text}, None, made["a_coat"])
        check(VerificationRecord.loads(text), SECRET)
        assert text == written["verification.json"]

    explore(st.tuples(st.sampled_from(places_of(given_values)), values), run)


def test_bytes_of_a_record(explore, made, written):
    def run(case):
        name, cut = case
        content = damage(written[name], *cut)
        record = parse_verification({**written, name: content}, None, made["a_coat"]).record
        # What nothing else knows of, such as the date, only the signature guards.
        check(record, SECRET)
        assert content == written[name]

    explore(st.tuples(st.sampled_from(sorted(written)), damages), run)


def test_paths(explore):
    parts = st.lists(
        st.text(max_size=20)
        | st.sampled_from(["results", "verified", "a", "..", ".", "", "a_coat-0123456789abcdef", "result.json"]),
        max_size=6,
    )

    def run(case):
        path = "/".join(case)
        known = parse_path(path)
        if known is not None:
            assert path in (known.folder, f"{known.folder}/{known.file}")
            assert ".." not in path.split("/")

    explore(parts, run)


def test_names_of_models(explore, made):
    def run(case):
        id, revision = case
        result = made["a_coat"].result
        model = result.model.model_copy(update={"id": id, "revision": revision})
        folder = folder_of(result.model_copy(update={"model": model}), "0" * 16)
        assert parse_path(folder) is not None
        assert folder.count("/") == 3

    explore(st.tuples(st.text(max_size=200) | scalars.map(str), st.text(max_size=20) | st.just("1")), run)


def test_names_of_files(explore, files, tmp_path):
    numbers = iter(range(10**9))

    def run(case):
        root = tmp_path / str(next(numbers))
        read_submission(place(root, {**files, case: b""}))
        assert case in files

    safe = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=20)
    explore(safe.filter(lambda name: name.strip(".") and len(name.encode()) < 100), run)
