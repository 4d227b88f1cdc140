import dataclasses
import errno
import io
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from audio_compositionality.evaluator import Result, ResultError, load_result, print_results, save_result
from audio_compositionality.evaluator.result import mean_interval, result_path

SCORES = np.array([0.1, 0.2, 0.3, 0.6])

RESULT = Result(
    task="a_coat",
    score=0.3,
    std=float(SCORES.std(ddof=1)),
    n=4,
    interval=(0.0, 0.6),
    controls={"null": 0.1, "matched_null": None, "collapsed": False},
    training={},
    settings={},
    encoder_id="org/model",
    encoder_revision="abc",
    weights_sha256="e" * 64,
    output_dim=8,
    sample_rate=16_000,
    options={"layer": 3, "pooling": None, "precision": "bfloat16", "compile": False},
    front_end_version=1,
    precision_deviation={"relative_mean": 0.001, "relative_max": 0.002, "spread_ratio": 0.03, "clips": 16},
    skipped=[{"id": "q9/A", "reason": "is silent"}],
    dataset="mini",
    fingerprint="f" * 64,
    versions={"python": "3"},
    device="cpu",
    seconds={"embed": 1.0},
    date="2026-01-01T00:00:00+00:00",
)


def save(folder, result=RESULT, scores=SCORES):
    return save_result(folder, result, list("abcd"), {"score": scores})


def test_a_result_comes_back_as_it_was(tmp_path):
    path = save(tmp_path)
    assert path == tmp_path / "org__model" / "abc" / "a_coat.json"
    result, samples = load_result(path)
    assert result == RESULT
    assert samples["id"].to_pylist() == list("abcd")
    assert samples["score"].to_pylist() == SCORES.tolist()


def test_the_interval_worked_by_hand():
    # Mean 3, standard error sqrt(2.5 / 5), t(0.975; 4) = 2.776445.
    low, high = mean_interval(np.array([1.0, 2, 3, 4, 5]))
    assert (low, high) == pytest.approx((3 - 2.776445 * 0.5**0.5, 3 + 2.776445 * 0.5**0.5), abs=1e-6)
    assert mean_interval(np.array([1.0])) is None


@pytest.mark.parametrize("name", ["../../etc", "..", "/root", "a/../b", "a\\..\\b", "~", "a\nb", ".", ""])
def test_no_name_leads_out_of_the_folder(tmp_path, name):
    path = result_path(tmp_path, name, name, "a_tre")
    assert path.resolve().is_relative_to(tmp_path.resolve())
    assert len(path.relative_to(tmp_path).parts) == 3
    assert "\n" not in str(path)


def test_a_full_disk_leaves_the_old_result(tmp_path, monkeypatch):
    path = save(tmp_path)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, dataclasses.replace(RESULT, score=0.9))
    assert load_result(path)[0] == RESULT
    assert len(list(path.parent.iterdir())) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": "high"}, "score is 'high'"),
        ({"score": True}, "score is True"),
        ({"n": 0}, "n is 0"),
        ({"task": "a_cat"}, "task is 'a_cat'"),
        ({"interval": [1]}, r"interval is \[1\]"),
        ({"controls": {"null": "x"}}, "controls is"),
        ({"encoder_id": ""}, "encoder_id is ''"),
        ({"training": {"steps": "x"}}, "training is"),
        ({"versions": {"python": 3}}, "versions is"),
        ({"seconds": {"embed": True}}, "seconds is"),
        ({"interval": [0.6, 0.1]}, "interval is"),
        ({"std": -1}, "std is -1"),
        ({"score": 5}, "score is 5"),
        ({"fingerprint": "x"}, "fingerprint is 'x'"),
        ({"date": "yesterday"}, "date is 'yesterday'"),
        ({"schema_version": 3}, "not a result of schema version 2"),
        ({"schema_version": "2"}, "not a result of schema version 2"),
        ({"schema_version": 1}, "a result of schema version 1, .* again with --force"),
        ({"weights_sha256": "abc"}, "weights_sha256 is 'abc'"),
        ({"options": {"layer": 3}}, "options is"),
        ({"options": {"layer": "3", "pooling": None, "precision": "float32", "compile": False}}, "options is"),
        ({"front_end_version": 0}, "front_end_version is 0"),
        ({"precision_deviation": {"relative_mean": 0.1}}, "precision_deviation is"),
        ({"precision_deviation": 0.1}, "precision_deviation is 0.1"),
        ({"skipped": [{"id": "q9/A"}]}, "skipped is"),
        ({"skipped": ["q9/A"]}, "skipped is"),
        ({"extra": 1}, "extra missing or unknown"),
    ],
)
def test_a_damaged_result_is_refused(change, message):
    values = {**json.loads(RESULT.dumps()), **change}
    with pytest.raises(ResultError, match=message):
        Result.loads(json.dumps(values))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema_version": 2}'])
def test_what_is_no_result_is_refused(text):
    with pytest.raises(ResultError):
        Result.loads(text)


def test_nan_is_neither_written_nor_read():
    with pytest.raises(ValueError, match="not JSON compliant"):
        dataclasses.replace(RESULT, score=float("nan")).dumps()
    with pytest.raises(ResultError, match="score is nan"):
        Result.loads(RESULT.dumps().replace('"score": 0.3', '"score": NaN'))


class TestSamplesThatAreNotTheResults:
    def test_of_other_data(self, tmp_path):
        path = save(tmp_path)
        other = dataclasses.replace(RESULT, fingerprint="0" * 64)
        path.write_text(other.dumps())
        with pytest.raises(ResultError, match="of different data"):
            load_result(path)

    def test_fewer(self, tmp_path):
        path = save(tmp_path)
        table = pq.read_table(path.with_suffix(".parquet"))
        pq.write_table(table.slice(1), path.with_suffix(".parquet"))
        with pytest.raises(ResultError, match="not the 4 scores"):
            load_result(path)

    def test_other_scores(self, tmp_path):
        path = save(tmp_path, scores=SCORES + 0.01)
        with pytest.raises(ResultError, match="mean of the samples is not the score"):
            load_result(path)

    def test_not_numbers(self, tmp_path):
        path = save(tmp_path, scores=np.array([0.3, np.nan, 0.3, 0.3]))
        with pytest.raises(ResultError, match="mean of the samples"):
            load_result(path)

    def test_of_another_encoder(self, tmp_path):
        path = save(tmp_path)
        other = tmp_path / "other" / "abc" / path.name
        other.parent.parent.mkdir()
        path.parent.rename(other.parent)
        with pytest.raises(ResultError, match="result of org/model, a_coat, in another's place"):
            load_result(other)

    def test_none(self, tmp_path):
        path = save(tmp_path)
        Path(path.with_suffix(".parquet")).unlink()
        with pytest.raises(ResultError, match="cannot be read"):
            load_result(path)


def table(*results: Result) -> str:
    console = Console(width=100, record=True, file=io.StringIO())
    print_results(results, console)
    return " ".join(console.export_text().split())


def test_the_table_says_what_a_lower_precision_changes():
    found = table(RESULT)
    assert (
        "org/model: computed in bfloat16; the embeddings of 16 clips are 0.10% (at most 0.20%) from those in" in found
    )
    assert "3.00% of what clips differ by" in found
    exact = dataclasses.replace(RESULT, precision_deviation=None)
    assert "computed in" not in table(exact)


def test_the_table_says_which_clips_are_left_out():
    assert "org/model: n = 4, without the clips that could not be embedded: q9/A" in table(RESULT)
    many = [{"id": f"q{i}/A", "reason": "is silent"} for i in range(5)]
    assert "q0/A, q1/A, q2/A and 2 more" in table(dataclasses.replace(RESULT, skipped=many))
    whole = dataclasses.replace(RESULT, skipped=[], n=12)
    assert "without the clips" not in table(whole)
    assert "n = 4 to 12" in table(RESULT, whole)
