import dataclasses
import errno
import io
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from audio_compositionality.evaluator import Result, ResultError, load_result, print_results, save_result
from audio_compositionality.evaluator.results.result import mean_interval, result_path, sample_columns

SCORES = np.array([0.1, 0.2, 0.3, 0.6])

RESULT = Result(
    task="a_coat",
    score=0.3,
    std=float(SCORES.std(ddof=1)),
    n=4,
    interval=(0.0, 0.6),
    controls={"null": 0.1, "matched_null": None, "centred": 0.2, "collapsed": False},
    training={},
    settings={},
    encoder_id="org/model",
    encoder_revision="abc",
    weights_sha256="e" * 64,
    output_dim=8,
    sample_rate=16_000,
    parameters=20_590_592,
    paradigm="speech recognition",
    licence="Apache-2.0",
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

COLUMNS = {
    "score": SCORES,
    "score_centred": SCORES - 0.1,
    **{name: np.arange(4.0) + place for place, name in enumerate(("ab_1", "ab_2", "cd_1", "cd_2"))},
}


def save(folder, result=RESULT, scores=SCORES):
    return save_result(folder, result, list("abcd"), {**COLUMNS, "score": scores})


def test_a_result_comes_back_as_it_was(tmp_path):
    path = save(tmp_path)
    assert path == tmp_path / "org__model" / "abc" / "a_coat.json"
    result, samples = load_result(path)
    assert result == RESULT
    assert samples["id"].to_pylist() == list("abcd")
    assert {name: samples[name].to_pylist() for name in COLUMNS} == {name: list(x) for name, x in COLUMNS.items()}


def test_the_columns_of_the_samples_follow_from_task_and_controls(tmp_path):
    steps = ("ab_1", "ab_2", "cd_1", "cd_2")
    assert sample_columns(RESULT) == ("score", "score_centred", *steps)
    alone = dataclasses.replace(RESULT, controls={"centred": None})
    assert sample_columns(alone) == ("score", *steps)
    a_tre = dataclasses.replace(RESULT, task="a_tre", controls={"a_tre_centred": 0.2})
    assert sample_columns(a_tre) == ("score", "score_centred")
    path = save_result(tmp_path, a_tre, list("abcd"), {"score": SCORES, "score_centred": SCORES - 0.1})
    assert load_result(path)[0] == a_tre


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
        ({"schema_version": 5}, "not a result of schema version 3 or 4"),
        ({"schema_version": "4"}, "not a result of schema version 3 or 4"),
        ({"schema_version": 1}, "a result of schema version 1, .* again with --force"),
        ({"schema_version": 2}, "a result of schema version 2, .* again with --force"),
        # A file of version 3 does not say what version 4 added.
        ({"schema_version": 3}, "'licence', 'paradigm', 'parameters' missing or unknown"),
        ({"parameters": 0}, "parameters is 0"),
        ({"parameters": -1}, "parameters is -1"),
        ({"parameters": True}, "parameters is True"),
        ({"parameters": 1e6}, "parameters is 1000000.0"),
        ({"parameters": "20 M"}, "parameters is '20 M'"),
        ({"parameters": 2**63}, "parameters is 9223372036854775808"),
        ({"paradigm": ""}, "paradigm is ''"),
        ({"paradigm": ["supervised"]}, "paradigm is"),
        ({"paradigm": "a\ud800"}, "paradigm is"),
        ({"licence": ""}, "licence is ''"),
        ({"licence": 7}, "licence is 7"),
        ({"licence": "\udfff"}, "licence is"),
        ({"weights_sha256": "abc"}, "weights_sha256 is 'abc'"),
        ({"options": {"layer": 3}}, "options is"),
        ({"options": {"layer": "3", "pooling": None, "precision": "float32", "compile": False}}, "options is"),
        ({"front_end_version": 0}, "front_end_version is 0"),
        ({"precision_deviation": {"relative_mean": 0.1}}, "precision_deviation is"),
        ({"precision_deviation": 0.1}, "precision_deviation is 0.1"),
        ({"skipped": [{"id": "q9/A"}]}, "skipped is"),
        ({"skipped": ["q9/A"]}, "skipped is"),
        ({"extra": 1}, "'extra' missing or unknown"),
        ({"ex\ntra\ud800": 1}, r"'ex\\ntra\\ud800' missing or unknown"),
        ({"schema_version": -1}, "not a result of schema version 3 or 4"),
        ({"std": 10**400}, r"std is 10+\.\.\.0+, which"),
        ({"score": -(10**400)}, "score is -10"),
        ({"n": 10**400}, "n is 10"),
        ({"n": 2**63}, "n is 9223372036854775808"),
        ({"interval": [0, 10**400]}, "interval is"),
        ({"controls": {"null": 10**400}}, "controls is"),
        ({"training": {"steps": [10**400]}}, "training is"),
        ({"settings": {"seeds": float("nan")}}, "settings is"),
        ({"settings": {"seeds": [[[[[0]]]]]}}, "settings is"),
        ({"encoder_id": "a\ud800"}, r"encoder_id is 'a\\ud800'"),
        ({"encoder_id": "x" * 1_000_000 + "\udfff"}, r"^encoder_id is .{,40}, which"),
        ({"dataset": "\udcff"}, r"dataset is '\\udcff'"),
        ({"versions": {"\ud800": "3"}}, "versions is"),
        ({"versions": {"python": "\ud800"}}, "versions is"),
        ({"controls": {"\ud800": 0.1}}, "controls is"),
        ({"settings": {"seeds": ["\ud800"]}}, "settings is"),
        ({"skipped": [{"id": "\ud800", "reason": "is silent"}]}, "skipped is"),
        (
            {"options": {"layer": None, "pooling": "\ud800", "precision": "float32", "compile": False}},
            "options is",
        ),
    ],
)
def test_a_damaged_result_is_refused(change, message):
    values = {**json.loads(RESULT.dumps()), **change}
    with pytest.raises(ResultError, match=message):
        Result.loads(json.dumps(values))


def test_a_result_of_the_schema_before_is_read():
    values = {**json.loads(RESULT.dumps()), "schema_version": 3}
    for name in ("parameters", "paradigm", "licence"):
        del values[name]
    expected = dataclasses.replace(RESULT, parameters=None, paradigm=None, licence=None)
    assert Result.loads(json.dumps(values)) == expected
    assert Result.loads(expected.dumps()) == expected
    with pytest.raises(ResultError, match="'licence', 'paradigm', 'parameters' missing or unknown"):
        Result.loads(json.dumps({**values, "schema_version": 4}))


def test_text_of_every_script_is_kept():
    result = dataclasses.replace(RESULT, encoder_id="Ω/模型 𝄞", settings={"seeds": [0, 1]})
    assert Result.loads(result.dumps()) == result


def nested(depth: int) -> str:
    return RESULT.dumps().replace('"settings": {}', f'"settings": {"[" * depth}{"]" * depth}')


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"schema_version": 4}', "[" * 100_000, nested(200), nested(100_000)]
)
def test_what_is_no_result_is_refused(text):
    with pytest.raises(ResultError):
        Result.loads(text)


def test_nan_is_neither_written_nor_read():
    with pytest.raises(ValueError, match="not JSON compliant"):
        dataclasses.replace(RESULT, score=float("nan")).dumps()
    with pytest.raises(ResultError, match="score is nan"):
        Result.loads(RESULT.dumps().replace('"score": 0.3', '"score": NaN'))


def put_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def put_device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


class TestFilesThatAreNoResult:
    @pytest.mark.parametrize("put", [put_pipe, put_device, put_folder, Path.unlink])
    def test_what_is_no_regular_file(self, tmp_path, put):
        path = save(tmp_path)
        put(path)
        message = refusal(path)
        assert message == f"{path}: there is no such file, or it is no regular one"

    @pytest.mark.parametrize("put", [put_pipe, put_device, put_folder, Path.unlink])
    def test_samples_that_are_no_regular_file(self, tmp_path, put):
        path = save(tmp_path)
        put(path.with_suffix(".parquet"))
        expected = "its samples cannot be read: a_coat.parquet does not exist or is no regular file"
        assert refusal(path) == f"{path}: {expected}"

    def test_links_to_files_are_followed(self, tmp_path):
        path = save(tmp_path)
        for file in (path, path.with_suffix(".parquet")):
            file.rename(tmp_path / file.name)
            file.symlink_to(tmp_path / file.name)
        assert load_result(path)[0] == RESULT

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (("[" * 100_000).encode(), "nested too deep"),
            (dataclasses.replace(RESULT, std=10**400).dumps().encode(), "std is 1000"),
            (dataclasses.replace(RESULT, dataset="\ud800").dumps().encode(), r"dataset is '\ud800'"),
            (b"\xff", "can't decode byte 0xff"),
        ],
    )
    def test_hostile_json(self, tmp_path, content, message):
        path = save(tmp_path)
        path.write_bytes(content)
        assert message in refusal(path)

    def test_a_file_of_more_than_16_mb(self, tmp_path):
        path = save(tmp_path)
        text = path.read_bytes()
        path.write_bytes(text + b" " * (16_000_000 - len(text)))
        assert load_result(path)[0] == RESULT
        path.write_bytes(text + b" " * (16_000_001 - len(text)))
        assert refusal(path) == f"{path}: it is larger than 16 MB, which no result is"

    def test_a_place_with_too_few_folders_above(self, tmp_path, monkeypatch):
        path = save(tmp_path)
        # A path without folders stands for one right below the root, where tests do not write.
        for file in (path, path.with_suffix(".parquet")):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        monkeypatch.chdir(tmp_path)
        message = refusal(Path("a_coat.json"))
        assert message == (
            "a_coat.json: it is the result of 'org/model', a_coat, in another's place; its own is "
            "'org__model/abc/a_coat.json' in the folder of the results"
        )
        monkeypatch.chdir(path.parent)
        assert load_result(Path("a_coat.json"))[0] == RESULT
        monkeypatch.setattr(Path, "absolute", lambda self: Path("/", self.name))
        assert "in another's place" in refusal(Path("a_coat.json"))

    def test_an_encoder_s_name_of_several_lines(self, tmp_path):
        path = save(tmp_path)
        path.write_text(dataclasses.replace(RESULT, encoder_id="a\nb").dumps())
        assert r"result of 'a\nb', a_coat, in another's place" in refusal(path)


def refusal(path: Path) -> str:
    with pytest.raises(ResultError) as caught:
        load_result(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message


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
        with pytest.raises(ResultError, match="there are 3 samples of a result of 4; compute it again with --force"):
            load_result(path)

    def test_other_scores(self, tmp_path):
        path = save(tmp_path, scores=SCORES + 0.01)
        with pytest.raises(ResultError, match="mean of the samples' score is not that"):
            load_result(path)

    def test_not_numbers(self, tmp_path):
        path = save(tmp_path, scores=np.array([0.3, np.nan, 0.3, 0.3]))
        with pytest.raises(ResultError, match="score of the samples is not finite numbers"):
            load_result(path)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"score_centred": COLUMNS["score"]}, "mean of the samples' score_centred is not that"),
            (
                {"score_centred": None},
                r"columns \['id', 'score', 'ab_1', 'ab_2', 'cd_1', 'cd_2'\]; they should be id, score, sc",
            ),
            ({"cd_2": None}, "they should be id, score, score_centred, ab_1, ab_2, cd_1, cd_2;"),
            ({"extra": COLUMNS["score"]}, r"'cd_2', 'extra'\]; they should be"),
            ({"ab_2": ["1", "2", "3", "4"]}, "ab_2 of the samples is not finite numbers"),
            ({"ab_1": [1, 2, 3, 4]}, "ab_1 of the samples is not finite numbers"),
            ({"cd_1": [1.0, 2.0, None, 4.0]}, "cd_1 of the samples is not finite numbers"),
            ({"cd_2": [1.0, 2.0, np.inf, 4.0]}, "cd_2 of the samples is not finite numbers"),
            ({"id": ["a", "b", "c", "c"]}, "ids of the samples are not texts that differ"),
            ({"id": ["a", "b", "c", None]}, "ids of the samples are not texts that differ"),
            ({"id": [1, 2, 3, 4]}, "ids of the samples are not texts that differ"),
            ({"id": pa.array([b"a", b"b", b"c", b"\xff"]).view(pa.string())}, "its samples cannot be read: .*UTF8"),
        ],
    )
    def test_columns_that_are_wrong(self, tmp_path, change, message):
        path = save(tmp_path)
        table = pq.read_table(path.with_suffix(".parquet"))
        columns = {name: table[name] for name in table.column_names} | change
        whole = {name: column for name, column in columns.items() if column is not None}
        pq.write_table(pa.table(whole, metadata=table.schema.metadata), path.with_suffix(".parquet"))
        with pytest.raises(ResultError, match=message):
            load_result(path)

    def test_twice_the_same_column(self, tmp_path):
        path = save(tmp_path)
        table = pq.read_table(path.with_suffix(".parquet"))
        pq.write_table(table.append_column("score", table["score"]), path.with_suffix(".parquet"))
        with pytest.raises(ResultError, match=r"'cd_2', 'score'\]; they should be"):
            load_result(path)

    def test_of_another_encoder(self, tmp_path):
        path = save(tmp_path)
        other = tmp_path / "other" / "abc" / path.name
        other.parent.parent.mkdir()
        path.parent.rename(other.parent)
        with pytest.raises(ResultError, match="result of 'org/model', a_coat, in another's place"):
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


def test_the_table_shows_the_spread_over_seeds_apart_from_that_over_scenes():
    controls = {"a_tre_centred": 0.2, "ridge_r2": 0.5, "ridge_r2_null": -0.1, "seed_std": 0.00123}
    several = dataclasses.replace(RESULT, task="a_tre", std=0.0456, controls=controls)
    one = dataclasses.replace(several, controls={**controls, "seed_std": None})
    assert "±0.046" in table(several)
    assert " 0.0012 " in table(several)
    assert "0.00…0.60 - - - 0.200 0.50" in table(one)


@pytest.mark.parametrize("width", [80, 100])
def test_no_number_of_the_table_is_cut(width):
    """Of the longest that can be: all negative, and the encoder's name as long as those of untrained twins."""
    controls = dict.fromkeys(("constant", "gain", "a_tre_centred", "ridge_r2", "ridge_r2_null", "top1"), -0.123)
    longest = dataclasses.replace(
        RESULT, task="a_tre", score=-0.123, std=0.123, interval=(-0.12, -0.11), encoder_id="untrained:" + "x" * 20
    )
    longest = dataclasses.replace(longest, controls={**controls, "seed_std": 0.1234, "collapsed": True})
    console = Console(width=width, record=True, file=io.StringIO())
    print_results([longest, RESULT], console)
    found = console.export_text()
    assert "…" not in found.replace("-0.12…-0.11", "").replace("0.00…0.60", "")
    for number in ("-0.123†", "±0.123", "-0.12…-0.11", "0.1234", "(-0.12)"):
        assert number in found


def test_the_table_says_which_clips_are_left_out():
    assert "org/model: n = 4, without the clips that could not be embedded: q9/A" in table(RESULT)
    many = [{"id": f"q{i}/A", "reason": "is silent"} for i in range(5)]
    assert "q0/A, q1/A, q2/A and 2 more" in table(dataclasses.replace(RESULT, skipped=many))
    whole = dataclasses.replace(RESULT, skipped=[], n=12)
    assert "without the clips" not in table(whole)
    assert "n = 4 to 12" in table(RESULT, whole)
