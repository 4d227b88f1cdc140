"""Thousands of submissions that are wrong in one way or another: each is taken or refused, and nothing else happens."""

import io
import json
import os
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from submissions import embeddings_table

from audio_compositionality.evaluator import ResultError
from audio_compositionality.evaluator.submissions.parquet_reader import ParquetReader
from audio_compositionality.evaluator.submissions.record import Difference, Record, parse_verification
from audio_compositionality.evaluator.results.result import Result, mean_interval
from audio_compositionality.evaluator.submissions.rounded import RoundedEmbeddings
from audio_compositionality.evaluator.submissions.submission import parse_submission, read_submission
from audio_compositionality.evaluator.submissions.submission_files import folder_of, id_of, parse_path, submission_id

CASES = {"result": 1_500, "record": 500, "bytes": 1_300, "pages": 900, "names": 900, "paths": 1_000, "folders": 400}
assert sum(CASES.values()) >= 5_000

LONGEST = 20.0
"""Seconds for one case; the reader's own limit is below."""


@pytest.fixture(scope="module")
def reader():
    with ParquetReader(timeout=10) as reader:
        yield reader


def explore(name, strategy, check):
    """Run `check` on `CASES[name]` cases, always the same; each ends in True (taken), False or ResultError (refused).

    Returns how many were taken and how many refused.
    """
    seen = Counter()

    @settings(
        max_examples=CASES[name],
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def explored(case):
        started, told = time.monotonic(), ""
        try:
            taken = check(case)
        except ResultError as error:
            taken, told = False, str(error)
        assert told == "" or (told.isprintable() and len(told) < 1_500)
        assert time.monotonic() - started < LONGEST
        seen["taken" if taken else "refused"] += 1

    explored()
    assert seen.total() >= CASES[name]
    return seen


# ----- a good submission, made by hand


def parquet(table, **options):
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


SCORES = np.linspace(-0.5, 0.9, 6)
CENTRED = SCORES / 2
RESULT = Result(
    task="a_coat",
    score=float(SCORES.mean()),
    std=float(SCORES.std(ddof=1)),
    n=6,
    interval=mean_interval(SCORES),
    controls={"degenerate": 0, "null": 0.1, "matched_null": None, "centred": float(CENTRED.mean())},
    training={},
    settings={},
    encoder_id="org/model",
    encoder_revision="abc",
    weights_sha256="e" * 64,
    output_dim=4,
    sample_rate=16_000,
    parameters=1_000,
    paradigm="supervised",
    licence="mit",
    options={"layer": 3, "pooling": None, "precision": "bfloat16", "compile": False},
    front_end_version=1,
    precision_deviation={"relative_mean": 0.001, "relative_max": 0.002, "spread_ratio": 0.03, "clips": 16},
    skipped=[],
    dataset="mini",
    fingerprint="f" * 64,
    versions={"python": "3"},
    device="cpu",
    seconds={"embed": 1.0},
    date="2026-01-01T00:00:00+00:00",
)
COLUMNS = {"score": SCORES, "score_centred": CENTRED, **{name: SCORES for name in ("ab_1", "ab_2", "cd_1", "cd_2")}}
SAMPLES = pa.table({"id": list("abcdef"), **COLUMNS}).replace_schema_metadata({"fingerprint": RESULT.fingerprint})
ROUNDED = RoundedEmbeddings.of(
    [f"{row}/{column}" for row in "abcdef" for column in "ABCD"], np.random.default_rng(0).normal(size=(24, 4))
)
FILES = {
    "result.json": RESULT.dumps().encode(),
    "samples.parquet": parquet(SAMPLES),
    "embeddings.parquet": ROUNDED.dumps(),
}


def test_the_submission_that_the_cases_start_from_is_good(reader):
    assert parse_submission(FILES, folder_of(RESULT, submission_id(FILES)), reader).result == RESULT


# ----- strategies

names = st.text(st.sampled_from("abcXYZ019_.=@-"), min_size=1, max_size=20)
numbers = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 2**31, 2**63, -(2**63), 10**400, 1e308, float("nan"), float("inf"), -0.0, True]),
)
texts = st.one_of(
    names,
    st.text(max_size=30),
    st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Lu", "Nd"]), max_size=20),
    st.sampled_from(
        [
            "",
            "..",
            "../../../../etc/passwd",
            "a/../../b",
            "<script>alert(1)</script>",
            "[x](javascript:alert(1))",
            "\x1b[31m",
            "\u202egnp.exe",
            "\ud800",
            "=1+1",
            "a_tre",
            "f" * 64,
            "x" * 2_000,
            "CON",
            "~",
            "$(id)",
            "%2e%2e",
        ]
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts, names),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=12,
)


@st.composite
def mutated_json(draw, original):
    """JSON with some of its values, at any depth, changed, dropped or added."""
    value = json.loads(original)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        target = value
        while True:
            keys = list(target) if isinstance(target, dict) else list(range(len(target)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(target[key], (dict, list)) and target[key] and draw(st.booleans()):
                target = target[key]
                continue
            action = draw(st.sampled_from(["change", "change", "change", "drop", "add"]))
            if action == "change":
                target[key] = draw(values)
            elif action == "drop":
                del target[key]
            elif isinstance(target, dict):
                target[draw(texts)] = draw(values)
            else:
                target.append(draw(values))
            break
    return json.dumps(value).encode()


@st.composite
def mutated_bytes(draw, original, start=0, stop=None):
    """Bytes of which some, between two places, are changed, dropped, doubled or cut off."""
    content = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        # Of places in the range; it stays within the content, which may have become shorter.
        place = draw(st.integers(start, (len(original) if stop is None else stop) - 1)) % max(len(content), 1)
        action = draw(st.sampled_from(["set", "set", "set", "flip", "drop", "insert", "copy", "cut", "huge"]))
        if action == "set":
            content[place : place + 1] = bytes([draw(st.integers(0, 255))])
        elif action == "flip" and content:
            content[place] ^= 1 << draw(st.integers(0, 7))
        elif action == "drop":
            del content[place : place + draw(st.integers(1, 8))]
        elif action == "insert":
            content[place:place] = draw(st.binary(max_size=8))
        elif action == "copy":
            content[place:place] = content[place : place + draw(st.integers(1, 64))]
        elif action == "huge":
            # The largest number that fits into a variable-length integer of Thrift.
            content[place : place + 5] = b"\xff\xff\xff\xff\x0f"
        elif draw(st.booleans()):
            del content[place:]
    return bytes(content)


def of_files(*names):
    return st.sampled_from(names).flatmap(lambda name: st.tuples(st.just(name), mutated_bytes(FILES[name])))


# ----- the cases


def test_results_with_other_fields(reader):
    def check(content):
        files = {**FILES, "result.json": content}
        submission = parse_submission(files, None, reader)
        folder = submission.folder
        assert parse_path(folder).folder == folder
        assert folder.isascii()
        assert (submission.result.n, submission.result.output_dim) == (6, 4)
        assert submission.result.score == pytest.approx(SCORES.mean(), abs=1e-8)
        assert Result.loads(submission.result.dumps()) == submission.result
        return True

    free = ("encoder_id", "encoder_revision", "dataset", "device", "paradigm", "licence")
    stated = st.builds(
        lambda field, text: json.dumps(json.loads(FILES["result.json"]) | {field: text}).encode(),
        st.sampled_from(free),
        st.one_of(names, texts),
    )
    mutated = mutated_json(FILES["result.json"])
    seen = explore("result", st.one_of(mutated, mutated, stated), check)
    assert min(seen["taken"], seen["refused"]) > 20


def test_records_with_other_fields():
    digests = {"result.json": "a" * 64, "samples.parquet": "b" * 64, "embeddings.parquet": "c" * 64}
    record = Record(
        id=id_of(digests),
        fingerprint="f" * 64,
        submission=digests,
        files={name: digests[name] for name in ("result.json", "samples.parquet")},
        interval=(0.1, 0.2),
        differences=(Difference("score", 0.15, 0.15, 1e-6),),
        versions={"numpy": "2"},
        date="2026-01-01T00:00:00+00:00",
        submitter="eve",
    )

    def check(content):
        found = Record.loads(content)
        assert found.id == id_of(found.submission)
        assert Record.loads(found.dumps().encode()) == found
        return True

    assert check(record.dumps().encode())
    explore("record", mutated_json(record.dumps()), check)


def test_files_with_other_bytes(reader):
    def check(case):
        name, content = case
        submission = parse_submission({**FILES, name: content}, None, reader)
        assert submission.samples.num_rows == 6
        assert submission.embeddings.values.shape == (24, 4)
        assert np.isfinite(submission.embeddings.restored()).all()
        return True

    explore("bytes", of_files("result.json", "samples.parquet", "embeddings.parquet"), check)


SHAPES = [
    parquet(SAMPLES, compression="none", use_dictionary=True),
    parquet(SAMPLES, data_page_version="2.0"),
    parquet(SAMPLES, row_group_size=2, write_statistics=False),
    FILES["samples.parquet"],
    FILES["embeddings.parquet"],
    parquet(
        embeddings_table(list(ROUNDED.ids), ROUNDED.values, pq.read_schema(io.BytesIO(ROUNDED.dumps())).metadata),
        compression="none",
        use_dictionary=False,
        data_page_version="2.0",
        row_group_size=5,
    ),
]


def test_footers_and_heads_of_pages_with_other_bytes(reader):
    """Where Parquet says how much of what there is: its footer, and the first bytes of each chunk of a column."""

    def places(content):
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        metadata = pq.ParquetFile(io.BytesIO(content)).metadata
        chunks = [
            metadata.row_group(group).column(column)
            for group in range(metadata.num_row_groups)
            for column in range(metadata.num_columns)
        ]
        starts = [chunk.dictionary_page_offset or chunk.data_page_offset for chunk in chunks]
        return [(footer, len(content)), *((start, start + 40) for start in starts)]

    @st.composite
    def cases(draw):
        number = draw(st.integers(0, len(SHAPES) - 1))
        start, stop = draw(st.sampled_from(places(SHAPES[number])))
        return number, draw(mutated_bytes(SHAPES[number], start, stop))

    def check(case):
        number, content = case
        if number < 4:
            assert reader.samples(content).num_rows <= 100_000
        else:
            assert reader.embeddings(content).values.size <= len(content) / 2
        return True

    seen = explore("pages", cases(), check)
    assert seen["refused"] > 100


def test_names_of_encoders(tmp_path):
    """Whatever an encoder is called: its folder is in the folder of the results, or there is none."""

    def check(case):
        result = Result.loads(
            json.dumps(json.loads(RESULT.dumps()) | {"encoder_id": case[0], "encoder_revision": case[1]})
        )
        for kind in ("results", "verified"):
            folder = folder_of(result, "0123456789abcdef", kind)
            assert parse_path(folder) is not None
            inside = Path(os.path.normpath(tmp_path / folder)).relative_to(tmp_path).parts
            assert len(inside) == 4
            assert inside[0] == kind
        return True

    good = st.text(st.sampled_from("abcXYZ019_ .,:/+=@#()[]~-"), min_size=1, max_size=20)
    seen = explore("names", st.tuples(st.one_of(texts, good), st.one_of(texts, good)), check)
    assert min(seen["taken"], seen["refused"]) > 20


def test_paths(tmp_path):
    part = st.one_of(
        texts,
        st.sampled_from(["results", "verified", "a", "..", ".", "a_coat-0123456789abcdef", "result.json", "\\", "a\n"]),
    )
    likely = st.builds(
        lambda kind, encoder, revision, task, file: f"{kind}/{encoder}/{revision}/{task}-0123456789abcdef{file}",
        st.sampled_from(["results", "verified"]),
        st.one_of(names, names, texts),
        st.one_of(names, names, texts),
        st.sampled_from(["a_coat", "a_tre", "a_coat", "b"]),
        st.sampled_from(["", "", "/result.json", "/samples.parquet", "/../x", "/a.html", "\n"]),
    )

    def check(path):
        parts = parse_path(path)
        if parts is None:
            return False
        assert path == "/".join(filter(None, (parts.folder, parts.file)))
        inside = Path(os.path.normpath(tmp_path / path)).relative_to(tmp_path)
        assert str(inside) == path
        assert path.isascii()
        assert path.isprintable()
        return True

    seen = explore("paths", st.one_of(likely, st.lists(part, max_size=7).map("/".join)), check)
    assert min(seen["taken"], seen["refused"]) > 20


def test_folders_of_all_kinds_of_files(reader, tmp_path):
    """On the disk: links, folders, pipes and strange names. Nothing around the folder is read or changed."""
    inbox, around = tmp_path / "inbox", tmp_path / "around"
    inbox.mkdir()
    around.mkdir()
    for name, content in FILES.items():
        (around / name).write_bytes(content)

    def tree():
        found = [path for path in sorted(tmp_path.rglob("*")) if inbox not in path.parents]
        return [(str(path), path.lstat().st_mtime_ns, path.lstat().st_size) for path in found if path != inbox]

    before = tree()
    kinds = st.sampled_from(["file", "file", "file", "file", "file", "link", "folder", "pipe", "absent", "changed"])
    strange = st.one_of(st.none(), st.none(), texts.filter(lambda text: "/" not in text and "\0" not in text))
    count = iter(range(10**6))

    def check(case):
        chosen, extra = case
        folder = inbox / str(next(count))
        folder.mkdir()
        for (name, content), (kind, change) in zip(FILES.items(), chosen, strict=True):
            path = folder / name
            if kind == "file":
                path.write_bytes(content)
            elif kind == "link":
                path.symlink_to(around / name)
            elif kind == "folder":
                path.mkdir()
            elif kind == "pipe":
                os.mkfifo(path)
            elif kind == "changed":
                path.write_bytes(content[:change] + content[change + 1 :])
        if extra not in (None, "", ".", "..") and len(os.fsencode(extra.encode("utf-8", "replace"))) < 200:
            (folder / extra.encode("utf-8", "replace").decode()).write_bytes(b"x")
        written = sorted(os.listdir(folder))
        try:
            submission = read_submission(folder, None, reader)
        finally:
            assert sorted(os.listdir(folder)) == written
        assert set(submission.files) <= set(FILES)
        return True

    chosen = st.tuples(*[st.tuples(kinds, st.integers(0, 1_000)) for _ in FILES])
    seen = explore("folders", st.tuples(chosen, strange), check)
    assert tree() == before
    assert min(seen["taken"], seen["refused"]) > 20


def test_verifications_with_other_bytes_are_refused_by_their_hashes(reader):
    for name in ("result.json", "samples.parquet"):
        with pytest.raises(ResultError):
            parse_verification({**FILES, "verification.json": b"{}", name: b""}, None, reader)
