import dataclasses
import hashlib
import io
import json
import math
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from scipy import stats
from submissions import (
    ShortEncoder,
    place,
    read_embeddings,
    sha256sum,
    with_embeddings,
    with_json,
    with_samples,
)

from audio_compositionality.dataset_builder import build_dataset, preset_config
from audio_compositionality.evaluator import ResultError, evaluate_encoder, load_result
from audio_compositionality.cli import command_line
from audio_compositionality.evaluator.submissions import verification
from audio_compositionality.evaluator.submissions.parquet_reader import ParquetReader
from audio_compositionality.evaluator.submissions.record import (Record, parse_verification, read_verification, verification_files, verification_folder)
from audio_compositionality.evaluator.results.result import mean_interval
from audio_compositionality.tasks.samples import describe_samples
from audio_compositionality.evaluator.compare.statistics import mean_intervals
from audio_compositionality.evaluator.submissions.submission import make_submission, open_data
from audio_compositionality.tasks.scoring import score_result
from audio_compositionality.evaluator.submissions.verification import verify_local, verify_submission


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
def data(small_config, tmp_path_factory):
    return str(build_dataset(small_config, tmp_path_factory.mktemp("built") / "data", progress=False))


@pytest.fixture(scope="module")
def evaluated(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluated")
    evaluate_encoder(ShortEncoder(), data, out=folder / "results", embeddings=folder / "embeddings", progress=False)
    return folder


def result_file(evaluated, task):
    return evaluated / "results" / "org__short" / "1" / f"{task}.json"


@pytest.fixture(scope="module")
def made(evaluated, data):
    def make(task):
        path = result_file(evaluated, task)
        benchmark = open_data(load_result(path)[0].fingerprint, data)
        return make_submission(path, benchmark, embeddings=evaluated / "embeddings", progress=False)

    return {task: make(task) for task in ("a_coat", "a_tre")}


@pytest.fixture(scope="module")
def verify(data, reader, tmp_path_factory):
    """`verify(files, task="a_coat")`: the verification of a submission that is in its place."""

    def verify(files, task="a_coat"):
        folder = place(tmp_path_factory.mktemp("submitted"), files, task=task)
        return verify_submission(folder, name="/".join(folder.parts[-4:]), data=data, reader=reader)

    return verify


@pytest.fixture(scope="module")
def verified(made, verify):
    return {task: verify(submission.files, task) for task, submission in made.items()}


def numbers(found):
    return {difference.name: difference for difference in found.differences}


# ----- what is true is verified


def test_an_honest_submission_is_verified(made, verified):
    for task, found in verified.items():
        assert found.verified
        assert found.problems == ()
        assert (found.task, found.id) == (task, made[task].id)
        assert found.recomputed.score == pytest.approx(made[task].result.score, abs=1e-12)
        assert found.samples.equals(made[task].samples)


def test_what_is_recomputed_is_a_coat_of_the_16_bit_embeddings_by_plain_numpy(made, verified):
    _, values, metadata = read_embeddings(made["a_coat"].files)
    scale = 2.0 ** int(metadata[b"scale"].removeprefix(b"2^"))
    a, b, c, d = (values.astype(np.float64) * scale).reshape(-1, 4, 12).transpose(1, 0, 2)
    u, v = b - a, d - c
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    found = verified["a_coat"]
    assert found.samples["score"].to_numpy() == pytest.approx(cosines, abs=1e-12)
    assert found.recomputed.score == pytest.approx(cosines.mean(), abs=1e-12)
    assert found.recomputed.std == pytest.approx(cosines.std(ddof=1), abs=1e-12)


def test_the_interval_is_of_clusters_of_the_same_added_sources(verified, small_benchmark):
    found = verified["a_coat"]
    clusters = describe_samples("a_coat", small_benchmark.rows("a_coat")).clusters
    (expected,) = mean_intervals(found.samples["score"].to_numpy()[:, None], clusters)
    assert found.interval == expected
    assert verified["a_tre"].interval is None  # 8 scenes


def test_the_tolerances_are_those_of_the_issue(verified):
    coat, tre = numbers(verified["a_coat"]), verified["a_tre"]
    steps = {name for name in coat if name.startswith(("ab_", "cd_"))}
    assert len(steps) == 4
    # Axes of steps that vary alike in two directions are any in their plane.
    assert {coat[name].tolerance for name in steps} == {None}
    assert {difference.tolerance for name, difference in coat.items() if name not in steps} == {1e-6}
    controls = tre.recomputed.controls
    # 99 % of the difference of two means of three: t with two degrees of freedom is 9.924843.
    for name, spread in (("score", "seed_std"), ("a_tre_centred", "a_tre_centred_seed_std")):
        expected = max(1e-3, 9.924843 * controls[spread] * math.sqrt(2 / 3))
        assert numbers(tre)[name].tolerance == pytest.approx(expected, rel=1e-6)
    free = {name for name, difference in numbers(tre).items() if difference.tolerance == 1e-6}
    ridge = {"ridge_r2", "ridge_r2_null", "ridge_centred", "ridge_centred_null"}
    assert free == {"constant", *ridge, "top1_chance", "mrr_chance"}


def test_of_two_honest_means_of_fits_one_in_a_hundred_is_farther_apart():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 100_000, 3))
    tolerance = stats.t.ppf(0.995, 2) * second.std(axis=1, ddof=1) * math.sqrt(2 / 3)
    farther = np.abs(first.mean(axis=1) - second.mean(axis=1)) > tolerance
    assert farther.mean() == pytest.approx(0.01, abs=0.002)


def test_a_score_of_other_fits_is_within_the_tolerance_and_a_better_one_is_not(made, verify, monkeypatch):
    def steady(*arguments):
        scored = score_result(*arguments)
        # Fits of ten steps spread more than any score could be off.
        return dataclasses.replace(scored, fields=scored.fields | {"controls": scored.fields["controls"] | spread})

    spread = {"seed_std": 0.002}
    monkeypatch.setattr(verification, "score_result", steady)
    files, result = made["a_tre"].files, made["a_tre"].result
    tolerance = 9.924843 * 0.002 * math.sqrt(2 / 3)
    for shift, good in ((-0.9 * tolerance, True), (-1.1 * tolerance, False)):
        scores = made["a_tre"].samples["score"].to_numpy() + shift
        changed = with_json(
            with_samples(files, score=scores), score=result.score + shift, interval=mean_interval(scores)
        )
        found = verify(changed, "a_tre")
        assert found.verified == good
        assert found.recomputed.score == pytest.approx(result.score, abs=1e-12)


def test_a_claimed_spread_of_fits_widens_no_tolerance(made, verified, verify):
    controls = {**made["a_tre"].result.controls, "seed_std": 10.0}
    found = verify(with_json(made["a_tre"].files, controls=controls), "a_tre")
    assert numbers(found)["score"].tolerance == numbers(verified["a_tre"])["score"].tolerance


# ----- what is false is not


def test_a_changed_score_is_found(made, verify):
    files, result = made["a_coat"].files, made["a_coat"].result
    scores = made["a_coat"].samples["score"].to_numpy() + 2e-6
    changed = with_json(with_samples(files, score=scores), score=result.score + 2e-6, interval=mean_interval(scores))
    found = verify(changed)
    assert not found.verified
    assert any(problem.startswith("score is") for problem in found.problems)


def test_changed_samples_with_the_same_mean_are_found(made, verify):
    result = made["a_coat"].result
    scores = made["a_coat"].samples["score"].to_numpy().copy()
    scores[[0, 1]] = scores[[1, 0]]
    found = verify(with_samples(made["a_coat"].files, score=scores))
    assert not found.verified
    assert found.recomputed.score == pytest.approx(result.score, abs=1e-12)
    assert [problem.split(" is ")[0] for problem in found.problems] in (
        ["score of a_coat-test-00000"],
        ["score of a_coat-test-00001"],
    )


def test_other_axes_of_the_steps_are_told_and_no_reason_against_it(made, verify):
    table = made["a_coat"].samples
    found = verify(with_samples(made["a_coat"].files, ab_1=-table["ab_1"].to_numpy()))
    assert found.verified
    assert found.samples.equals(table)
    (told,) = (difference for name, difference in numbers(found).items() if name.startswith("ab_1"))
    assert told.claimed == -told.recomputed != 0


def test_what_was_computed_says_with_what_and_the_rest_is_the_claim_s(made, verify):
    stated = {"versions": {"numpy": "999"}, "seconds": {"embed": 1e9}, "paradigm": "magic"}
    found = verify(with_json(made["a_coat"].files, **stated))
    assert found.verified
    assert found.recomputed.versions["numpy"] == np.__version__
    assert set(found.recomputed.seconds) == {"score"}
    assert 0 < found.recomputed.seconds["score"] < 600
    assert found.recomputed.paradigm == "magic"
    assert found.result.versions == {"numpy": "999"}


def test_changed_and_missing_controls_are_found(made, verify):
    controls = dict(made["a_coat"].result.controls)
    found = verify(with_json(made["a_coat"].files, controls={**controls, "null": controls["null"] - 1e-5}))
    assert [problem.split(" is ")[0] for problem in found.problems] == ["null"]
    found = verify(with_json(made["a_coat"].files, controls={**controls, "praise": 1.0}))
    assert found.problems == ("its controls are not those that its task has",)
    fewer = {name: value for name, value in controls.items() if name != "top1"}
    assert not verify(with_json(made["a_coat"].files, controls=fewer)).verified
    assert not verify(with_json(made["a_coat"].files, controls={**controls, "top1": None})).verified


def test_embeddings_of_another_encoder_are_found(made, verify):
    ids, values, _ = read_embeddings(made["a_coat"].files)
    other = np.random.default_rng(0).normal(size=values.shape).astype(np.float16)
    found = verify(with_embeddings(made["a_coat"].files, ids, other))
    assert not found.verified
    assert found.problems[0].startswith("score is")


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (slice(4, None), "embeddings of 44 clips, the data have 48"),
        (np.r_[0:48, 0], "embeddings of 49 clips, the data have 48"),
        (np.r_[1, 0, 2:48], "its embedding 0 is of the clip 'a_coat-test-00000/B'"),
        (np.r_[4:8, 0:4, 8:48], "its embedding 0 is of the clip 'a_coat-test-00001/A'"),
        (np.r_[0:47, 0], "its embedding 47 is of the clip 'a_coat-test-00000/A'"),
    ],
    ids=["fewer", "more", "permuted", "rows permuted", "duplicated"],
)
def test_rows_that_are_not_those_of_the_data_are_found(made, verify, order, message):
    ids, values, _ = read_embeddings(made["a_coat"].files)
    found = verify(with_embeddings(made["a_coat"].files, list(np.array(ids)[order]), values[order]))
    assert not found.verified
    assert found.recomputed is None
    assert message in found.problems[0]


def test_permuted_samples_are_found(made, verify):
    table = made["a_coat"].samples
    ids = table["id"].to_pylist()
    found = verify(with_samples(made["a_coat"].files, id=[ids[1], ids[0], *ids[2:]]))
    assert found.problems == ("its samples are not those of the data, in their order",)


def test_quadruples_that_are_left_out_are_found(made, verify):
    files = made["a_coat"].files
    table = made["a_coat"].samples.slice(0, 6)
    scores, centred = table["score"].to_numpy(), table["score_centred"].to_numpy()
    stream = io.BytesIO()
    pq.write_table(table, stream)
    ids, values, _ = read_embeddings(files)
    fewer = with_embeddings({**files, "samples.parquet": stream.getvalue()}, ids[:24], values[:24])
    fewer = with_json(
        fewer,
        n=6,
        score=scores.mean(),
        std=scores.std(ddof=1),
        interval=mean_interval(scores),
        controls={**made["a_coat"].result.controls, "centred": centred.mean()},
    )
    assert verify(fewer).problems == ("it has 6 samples, the data have 12",)


def test_the_fingerprint_of_other_data_is_found(made, verify, tmp_path):
    table = made["a_coat"].samples
    files = made["a_coat"].files
    mini = preset_config("mini").fingerprint
    for fingerprint, message in (("0" * 64, "neither a preset"), (mini, "12 samples, the data have 64")):
        stream = io.BytesIO()
        pq.write_table(table.replace_schema_metadata({"fingerprint": fingerprint}), stream)
        other = with_json({**files, "samples.parquet": stream.getvalue()}, fingerprint=fingerprint)
        if fingerprint == "0" * 64:
            with pytest.raises(ResultError, match=message):
                verify(other)
        else:
            assert message in verify(other).problems[0]


@pytest.mark.parametrize("steps", [9, 11, 10**12, -1, "10", True, None])
def test_other_settings_never_reach_a_fit(made, verify, monkeypatch, steps):
    monkeypatch.setattr(verification, "score_result", lambda *_: pytest.fail("it is fitted"))
    settings = {"seeds": [0, 1, 2], "max_steps": steps}
    found = verify(with_json(made["a_tre"].files, settings=settings), "a_tre")
    assert not found.verified
    assert "its settings are" in found.problems[0]
    found = verify(with_json(made["a_tre"].files, settings={**settings, "max_steps": 10, "layers": 9}), "a_tre")
    assert "its settings are" in found.problems[0]


def test_huge_dims_never_reach_a_fit(made, verify, monkeypatch):
    monkeypatch.setattr(verification, "score_result", lambda *_: pytest.fail("it is fitted"))
    values = np.zeros((56, 8_193), np.float16)
    huge = with_embeddings(made["a_tre"].files, values=values)
    with pytest.raises(ResultError, match="8,193 numbers each"):
        verify(with_json(huge, output_dim=8_193), "a_tre")


def test_a_submission_without_embeddings_stays_self_reported(made, verify):
    files = {name: content for name, content in made["a_coat"].files.items() if name != "embeddings.parquet"}
    found = verify(files)
    assert not found.verified
    assert found.problems == ("it has no embeddings",)
    with pytest.raises(ValueError, match="only a submission that was verified"):
        verification_files(found)


def test_embeddings_that_are_all_zero_are_scored_or_refused_and_nothing_else(made, verify):
    for task, submission in made.items():
        ids, values, _ = read_embeddings(submission.files)
        metadata = {"offset": "AAAA" * 16, "scale": "2^0"}
        assert not verify(with_embeddings(submission.files, ids, values * 0, metadata), task).verified


# ----- what the checker writes


@pytest.fixture(scope="module")
def written(verified):
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    return verification_files(verified["a_coat"], submitter="eve", date=moment)


def test_what_the_checker_writes_is_read_again(verified, written, tmp_path, reader):
    found = verified["a_coat"]
    folder = tmp_path / verification_folder(found)
    assert verification_folder(found) == f"verified/org__short/1/a_coat-{found.id}"
    folder.mkdir(parents=True)
    for name, content in written.items():
        (folder / name).write_bytes(content)
    entry = read_verification(folder, verification_folder(found), reader)
    assert entry.result == found.recomputed
    assert entry.samples.equals(found.samples)
    assert (entry.record.interval, entry.record.differences) == (found.interval, found.differences)
    assert entry.record.date == "2026-01-02T03:04:05+00:00"
    assert entry.record.submitter == "eve"
    assert Record.loads(verification_files(found)["verification.json"]).submitter is None
    assert {"numpy", "torch", "audio-compositionality"} <= set(entry.record.versions)
    assert read_verification(folder).record == entry.record


def test_the_record_proves_which_files_were_checked(made, written):
    values = json.loads(written["verification.json"])
    assert values["submission"] == {
        name: hashlib.sha256(content).hexdigest() for name, content in made["a_coat"].files.items()
    }
    assert values["id"] == hashlib.sha256(sha256sum(made["a_coat"].files).encode()).hexdigest()[:16]
    for name in ("result.json", "samples.parquet"):
        assert values["files"][name] == hashlib.sha256(written[name]).hexdigest()


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "0" * 16},
        {"id": 0},
        {"submission": {}},
        {"submission": {"result.json": "0" * 64, "samples.parquet": "0" * 64}},
        {"files": {"result.json": "0" * 64, "samples.parquet": "0" * 64}},
        {"files": {"result.json": "0", "samples.parquet": "0"}},
        {"fingerprint": "0" * 64},
        {"interval": [float("nan"), 1]},
        {"interval": [1, 0]},
        {"interval": [0, 10**400]},
        {"interval": "wide"},
        {"differences": []},
        {"differences": [{"name": "score", "claimed": 0.1, "recomputed": 0.2, "tolerance": 1e-6}]},
        {"differences": [{"name": "score", "claimed": float("nan"), "recomputed": 0.2, "tolerance": 1e-6}]},
        {"differences": [{"name": "score\x1b", "claimed": 0.2, "recomputed": 0.2, "tolerance": 1e-6}]},
        {"differences": [{"name": "score"}]},
        {"differences": [1]},
        {"versions": {"numpy": 2}},
        {"versions": {"num\npy": "2"}},
        {"date": "yesterday"},
        {"date": "9999-99-99T99:99:99+00:00"},
        {"submitter": ""},
        {"submitter": 1},
        {"submitter": "x" * 101},
        {"submitter": "e\u202eve"},
        {"schema_version": 2},
        {"more": 1},
    ],
    ids=str,
)
def test_a_record_that_is_wrong_is_refused(written, reader, changes):
    values = json.loads(written["verification.json"]) | changes
    with pytest.raises(ResultError, match=r"verification\.json") as caught:
        parse_verification({**written, "verification.json": json.dumps(values).encode()}, None, reader)
    assert str(caught.value).isprintable()


def test_what_is_no_record_is_refused(written, reader):
    values = json.loads(written["verification.json"])
    del values["submitter"]
    for content in (
        json.dumps(values).encode(),
        b"",
        b"[",
        b"null",
        b"\xff",
        b"[" * 900_000,
        b"9" * 10_000,
        b" " * 1_000_001,
    ):
        with pytest.raises(ResultError, match=r"verification\.json"):
            Record.loads(content)
    with pytest.raises(ResultError, match=r"it has no samples\.parquet"):
        parse_verification({name: written[name] for name in ("verification.json", "result.json")}, None, reader)
    with pytest.raises(ResultError, match="its content belongs to verified/org__short/1/a_coat-"):
        parse_verification(written, "verified/org__other/1/a_coat-0123456789abcdef", reader)


def test_another_result_beside_the_record_is_refused(made, written, reader):
    better = dict(written)
    better["result.json"] = written["result.json"].replace(b"org/short", b"org/shirt")
    with pytest.raises(ResultError, match=r"result\.json is another file than verification\.json speaks of"):
        parse_verification(better, None, reader)
    samples = with_samples(written, score=pa.array(made["a_coat"].samples["score"].to_numpy()[::-1]))
    with pytest.raises(ResultError, match=r"samples\.parquet is another file"):
        parse_verification(samples, None, reader)


# ----- local results and the command


def test_a_local_result_is_verified_from_the_store(evaluated, data):
    for task in ("a_coat", "a_tre"):
        found = verify_local(result_file(evaluated, task), data=data, embeddings=evaluated / "embeddings")
        assert found.verified
        assert found.id is None
        assert found.recomputed.score == pytest.approx(found.result.score, abs=1e-12)
        with pytest.raises(ValueError, match="only a submission"):
            verification_files(found)


def run(*arguments):
    return command_line.main(["verify", *map(str, arguments)])


def test_the_command_tells_claimed_and_recomputed_and_how_far_apart(made, evaluated, data, tmp_path, capsys):
    folder = place(tmp_path, made["a_coat"].files)
    for path in (folder, folder / "result.json", tmp_path):
        assert run(path, "--data", data) == 0
    out = capsys.readouterr().out
    score = f"{made['a_coat'].result.score:.6f}"
    assert out.count(f"verified: {score}") == 3
    for word in (
        "claimed",
        "recomputed",
        "difference",
        "tolerance",
        "A-COAT of org/short",
        "1.0e-06",
        "cannot be seen",
    ):
        assert word in out
    assert run(evaluated / "results", "--data", data, "--embeddings", evaluated / "embeddings") == 0
    out = capsys.readouterr().out
    assert "A-TRE of org/short" in out
    assert out.count("verified: 0.") == 2


def test_the_command_says_what_is_not_verified_and_goes_on_after_what_is_broken(made, data, tmp_path, capsys):
    scores = made["a_coat"].samples["score"].to_numpy().copy()
    scores[[0, 1]] = scores[[1, 0]]
    false = place(tmp_path / "false", with_samples(made["a_coat"].files, score=scores))
    assert run(false, "--data", data) == 1
    out = capsys.readouterr().out
    assert "not verified" in out
    assert "differs" in out
    broken = place(tmp_path / "broken", {**made["a_coat"].files, "result.json": b"\x1b[31m"})
    honest = place(tmp_path / "honest", made["a_coat"].files)
    assert run(broken, false, honest, "--data", data) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert "result.json: not JSON" in printed.err
    assert "\x1b" not in printed.err
    assert "verified: " in printed.out


def test_mistakes_are_told_in_one_line(made, tmp_path, capsys):
    assert run(tmp_path) == 2
    assert "holds no results: give the folder of a submission" in capsys.readouterr().err
    assert run(place(tmp_path, made["a_coat"].files)) == 2
    assert "--data says where they are" in capsys.readouterr().err


def test_a_moved_submission_is_not_taken_for_another_s(made, data, tmp_path, capsys):
    assert run(place(tmp_path, made["a_coat"].files, encoder="openai__whisper-base"), "--data", data) == 2
    assert "its content belongs to results/org__short/1/" in " ".join(capsys.readouterr().err.split())


def test_help_says_what_verified_means_and_what_not(capsys):
    with pytest.raises(SystemExit) as stop:
        run("--help")
    assert stop.value.code == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "the scores are those of these embeddings on these data" in out
    assert "What it cannot tell" in out


def test_a_verification_is_data_that_nothing_changes(verified):
    with pytest.raises(dataclasses.FrozenInstanceError):
        verified["a_coat"].problems = ()
