"""Results and samples: as they were written, or refused by name."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest
from hypothesis import strategies as st

from audio_compositionality.encoders.base import ModelCard
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.results.result import (
    Result,
    SampleTable,
    ScoredModel,
    check_samples,
    is_result_file,
    load_result,
    result_path,
    samples_path,
    save_result,
)
from audio_compositionality.evaluator.results.strict import ResultError, read_strict_json
from audio_compositionality.support.files import sha256_of

from ..damaged import changed, check_flips, damage, damages, explorer, places_of, values

TABLE = SampleTable(
    tuple("abcd"),
    {"score": np.array([0.1, 0.2, 0.1 + 0.2, 0.6]), "x_1": np.array([1e-300, -1e300, 0.0, -1 / 3])},
)
CARD = ModelCard(
    "org/model",
    "abc",
    16_000,
    8,
    weights_sha256="e" * 64,
    parameters=20_590_592,
    paradigm="speech recognition",
    licence="Apache-2.0",
    trained_on="AudioCaps",
    options=EncoderOptions(layer=3, precision="bfloat16"),
)
VALUES = {
    "schema_version": 2,
    "task": "toy",
    "task_version": 2,
    "measures": {"toy": 0.1 + 0.2, "null": 1e-17, "matched": None, "n": 4, "collapsed": False},
    "intervals": {"toy": (0.1, 0.6), "null": None},
    "n": 4,
    "training": {"steps": [100, 250]},
    "settings": {"seeds": [0, 1], "rate": 0.5, "kind": "é", "on": True},
    "model": ScoredModel.of(CARD).model_dump(),
    "precision_deviation": {"relative_mean": 0.001, "relative_max": 0.002, "spread_ratio": 0.03, "clips": 16},
    "skipped": [{"id": "q9/A", "reason": "is silent\n"}],
    "cut_answers": 3,
    "cut_clips": 0,
    "recipe": "toy_clips",
    "fingerprint": "f" * 64,
    "rows_digest": "e" * 64,
    "dataset": "mini",
    "versions": {"python": "3"},
    "device": "cpu",
    "seconds": {"embed": 1.0},
    "date": "2026-01-01T00:00:00+00:00",
    "samples_sha256": sha256_of(TABLE.dumps().encode()),
}
RESULT = Result.model_validate(VALUES)


def written(values: object) -> str:
    """Values as a file of a result, with the digest that belongs to them."""
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return json.dumps({**values, "digest": digest} if isinstance(values, dict) else values, indent=1) + "\n"


# ----- as it was written


def test_a_result_comes_back_as_it_was(tmp_path):
    path = save_result(tmp_path, RESULT, TABLE)
    assert path == tmp_path / "org__model" / "abc" / "toy.json"
    assert samples_path(path) == tmp_path / "org__model" / "abc" / "toy.csv"
    result, samples = load_result(path)
    assert result == RESULT
    assert samples.ids == TABLE.ids
    for name, column in TABLE.columns.items():
        assert samples.columns[name].tobytes() == column.tobytes()
    assert [file.name for file in sorted(path.parent.iterdir())] == ["toy.csv", "toy.json"]
    assert [is_result_file(path.with_name(name), ["toy"]) for name in ("toy.json", "toy.csv", "key.json")] == [
        True, False, False,
    ]  # fmt: skip


def test_the_file_is_json_that_others_read(tmp_path):
    values = json.loads(RESULT.dumps())
    assert next(iter(values)) == "schema_version"
    assert values.pop("digest") == json.loads(written(values))["digest"]
    assert values == json.loads(json.dumps(VALUES))
    assert written(values) == RESULT.dumps()


def test_score_key_and_card_are_those_of_the_result():
    assert RESULT.score == 0.1 + 0.2
    assert np.isnan(RESULT.model_copy(update={"measures": {"toy": None}}).score)
    assert RESULT.key == ("toy", 2, "f" * 64, "e" * 64)
    assert RESULT.model.card() == CARD


@pytest.mark.parametrize("name", ["../../etc", "..", "/root", "a/../b", "a\\..\\b", "~", "a\nb", ".", ""])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    path = result_path(tmp_path, name, name, "toy")
    assert path.resolve().is_relative_to(tmp_path.resolve())
    assert len(path.relative_to(tmp_path).parts) == 3
    assert "\n" not in str(path)


# ----- refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": True}, "n is True"),
        ({"n": 2**60}, "n is 1152921504606846976"),
        ({"task": "../x"}, "task is"),
        ({"task_version": "1"}, "task_version is '1'"),
        ({"measures": {}}, "measures is"),
        ({"measures": {"toy": "high"}}, "measures.toy"),
        ({"measures": {"To y": 1.0}}, "measures.To y"),
        ({"intervals": {"toy": [0.6, 0.1]}}, "wrong order"),
        ({"intervals": {"toy": [0.6]}}, "intervals.toy"),
        ({"intervals": {"praise": [0, 1]}}, "an interval of praise"),
        ({"training": {"steps": [True]}}, "training.steps.0.float is True"),
        ({"settings": {"a": {"b": 1}}}, "settings.a"),
        ({"model": None}, "model is None"),
        ({"model": {**VALUES["model"], "id": ""}}, "model.id is ''"),
        ({"model": {**VALUES["model"], "more": 1}}, "model.more is 1"),
        ({"model": {**VALUES["model"], "options": {**VALUES["model"]["options"], "pooling": "max2"}}}, "pooling is"),
        ({"skipped": [{"id": "q"}]}, "skipped.0.reason"),
        ({"fingerprint": "F" * 64}, "fingerprint is"),
        ({"dataset": "mini\x1b[31m"}, "cannot be printed"),
        ({"dataset": "\ud800"}, "dataset is"),
        ({"versions": {"python": 3}}, "versions.python is 3"),
        ({"seconds": {"embed": -1.0}}, "seconds.embed"),
        ({"date": "2026-01-01T00:00:00+00:00\n"}, "date is"),
        ({"date": "２026-01-01T00:00:00+00:00"}, "date is"),
        ({"more": 1}, "more is 1"),
        ({"schema_version": 1}, "a result of schema version 1; this version reads 2: compute it again with --force"),
        ({"schema_version": 2.0}, "changed or damaged after it was written"),
    ],
    ids=str,
)
def test_a_wrong_value_is_refused_by_name(change, message):
    with pytest.raises(ResultError, match=message) as caught:
        Result.loads(written(json.loads(json.dumps(VALUES)) | change))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


def test_no_field_may_be_missing():
    for name in VALUES.keys() - {"schema_version"}:
        values = {key: value for key, value in json.loads(json.dumps(VALUES)).items() if key != name}
        with pytest.raises(ResultError, match=f"{name} is .*Field required"):
            Result.loads(written(values))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("null", "its JSON is not an object"),
        ("[" * 100_000, "nested too deep"),
        ('{"schema_version": 1, "schema_version": 1}', "it has a name twice"),
        ('{"schema_version": {"a": 1, "a": 2}}', "it has a name twice"),
        ('{"schema_version": NaN}', "it has NaN"),
        ('{"schema_version": 1e999}', "a result of schema version inf"),
        ('{"schema_version": 2}', "task is"),
    ],
)
def test_what_is_no_result_is_refused(text, message):
    with pytest.raises(ResultError, match=message):
        Result.loads(text)


def test_an_edited_file_is_refused():
    text = RESULT.dumps()
    for before, after in (
        ('"toy": 0.30000000000000004', '"toy": 0.4'),
        ("1e-17", "1E-17"),
        ('"\\u00e9"', '"\\u00E9"'),
        ('"n": 4', '"n":  4'),
        ('"id": "org/model"', '"id": "org/shirt"'),
    ):
        assert before in text
        with pytest.raises(ResultError, match="changed or damaged after it was written"):
            Result.loads(text.replace(before, after))
    with pytest.raises(ResultError, match="its digest does not match its content"):
        Result.loads(json.dumps(VALUES, indent=1) + "\n")


def test_files_that_cannot_be_read_are_named(tmp_path):
    path = save_result(tmp_path, RESULT, TABLE)
    moved = path.with_name("other.json")
    path.rename(moved)
    with pytest.raises(ResultError, match=r"other\.json: it is the result of 'org/model', toy, in another's place"):
        load_result(moved)
    with pytest.raises(ResultError, match=r"toy\.json: toy\.json is missing"):
        load_result(path)
    moved.rename(path)
    samples_path(path).unlink()
    with pytest.raises(ResultError, match=r"toy\.json: toy\.csv is missing"):
        load_result(path)
    os.mkfifo(samples_path(path))
    with pytest.raises(ResultError, match=r"toy\.csv is missing, or is not a regular file"):
        load_result(path)
    os.truncate(path, 2**40)
    with pytest.raises(ResultError, match=r"toy\.json has more than 16,000,000 bytes"):
        load_result(path)


# ----- samples


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first is id"),
        ("id,score,score\na,1,2\n", "the columns of its samples are"),
        ("id,Score\na,1\n", "the columns of its samples are"),
        ("id,score\na\n", "line 2 of its samples has 1 values, not 2"),
        ("id,score\na,0.1\na,0.2\n", "not unique"),
        ("id,score\n,0.1\n", "empty"),
        ("id,score\na\x1b,0.1\n", "not printable"),
        (f"id,score\n{'a' * 501},0.1\n", "too long"),
        ("id,score\na,high\n", "not a number"),
        ("id,score\na,nan\n", "not finite"),
        ("id,score\na,1e999\n", "not finite"),
        ("id,score\na,1_0.0\n", "not as this project writes them"),
        ("id,score\na,٣.٠\n", "not as this project writes them"),
        ("id,score\r\na,0.1\r\n", "not as this project writes them"),
        ('id,score\n"a",0.1\n', "not as this project writes them"),
        (b"id,score\n\xff,0.1\n", "no CSV"),
        (f"id,score\n{'a' * 200_000},0.1\n", "no CSV"),
    ],
)
def test_what_are_no_samples_is_refused(text, message):
    with pytest.raises(ResultError, match=message) as caught:
        SampleTable.loads(text)
    assert str(caught.value).isprintable()


def test_ids_with_commas_and_quotes_come_back():
    table = SampleTable(('a,"b"', "=cmd|' /C calc'!A0", "é"), {"score": np.array([1.0, 2.0, 3.0])})
    assert SampleTable.loads(table.dumps()).ids == table.ids
    assert SampleTable.loads(table.dumps().encode()).dumps() == table.dumps()


def test_ids_that_are_formulas_are_defused_in_the_file_and_come_back():
    table = SampleTable(("=cmd|' /C calc'!A0", "'=1", "'", "@a", "a"), {"score": np.arange(5.0)})
    written = table.dumps()
    assert [line[:2] for line in written.splitlines()[1:]] == ["'=", "''", "''", "'@", "a,"]
    assert SampleTable.loads(written).ids == table.ids


def test_a_table_states_the_clusters_of_its_samples_where_they_are_not_all_independent():
    alone = SampleTable.of(TABLE.ids, TABLE.columns, np.array([7, 3, 5, 4]))
    assert alone.dumps() == TABLE.dumps()
    assert alone.clusters.tolist() == [0, 1, 2, 3]
    together = SampleTable.loads(SampleTable.of(TABLE.ids, TABLE.columns, np.array([7, 3, 7, 4])).dumps())
    assert list(together.columns) == ["score", "x_1", "cluster"]
    assert together.clusters.tolist() == [2, 0, 2, 1]


def test_samples_of_another_number_or_another_result_are_refused():
    content = TABLE.dumps().encode()
    assert check_samples(RESULT, content).ids == TABLE.ids
    for n in (3, 5):
        with pytest.raises(ResultError, match=f"it has 4 samples, where the result says {n}"):
            check_samples(RESULT.model_copy(update={"n": n}), content)
    with pytest.raises(ResultError, match="their SHA-256 differs"):
        check_samples(RESULT, content.replace(b"0.2", b"0.3"))


# ----- whatever happens to a file


def test_a_result_and_its_samples_are_refused_by_name_where_a_byte_has_changed(tmp_path):
    path = save_result(tmp_path, RESULT, TABLE)
    check_flips(RESULT.dumps().encode(), Result.loads)
    check_flips(TABLE.dumps().encode(), lambda content: check_samples(RESULT, content))
    for file in (samples_path(path), path):
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(ResultError, match=str(path)):
            load_result(path)
        file.write_bytes(content)


@pytest.mark.fuzz
def test_any_value_at_any_place_is_taken_or_refused(fuzz_cases, fuzz_rng):
    given_values = json.loads(json.dumps(VALUES))

    def run(case):
        text = written(changed(given_values, *case))
        result = Result.loads(text)
        assert result.dumps() == text
        assert Result.loads(result.dumps()) == result
        assert result.model.card()

    explorer(fuzz_cases, fuzz_rng, ResultError, 600)(st.tuples(st.sampled_from(places_of(given_values)), values), run)


@pytest.mark.fuzz
@pytest.mark.parametrize("content", [RESULT.dumps().encode(), TABLE.dumps().encode()], ids=["result", "samples"])
@pytest.mark.parametrize(
    "read", [Result.loads, SampleTable.loads, read_strict_json, lambda content: check_samples(RESULT, content)]
)
def test_any_bytes_are_refused(fuzz_cases, fuzz_rng, content, read):
    def run(case):
        damaged = damage(content, *case)
        again = read(damaged)
        if isinstance(again, Result):
            assert damaged == content
        elif isinstance(again, SampleTable):
            assert again.dumps().encode() == damaged

    explorer(fuzz_cases // 8 + 1, fuzz_rng, ResultError, 600)(damages, run)
