"""Recomputing submissions, what the checker writes, and what `verify` shows."""

import base64
import hashlib
import json
import pickle
import re
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from submissions import (
    ShortEncoder,
    place,
    read_embeddings,
    read_samples,
    sha256sum,
    with_embeddings,
    with_json,
    with_samples,
)

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.layout import folders_of, sha256_by_name
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.record import (
    VerificationRecord,
    check,
    check_record,
    parse_verification,
    read_signed_claim,
    read_verification,
    secret_from_environment,
    sign,
)
from audio_compositionality.evaluator.submissions.submission import parse_submission, read_listed_claim
from audio_compositionality.evaluator.submissions.verification import (
    LEGEND,
    find_results,
    verification_files,
    verification_folder,
    verify_folder,
    verify_local,
    verify_paths,
)
from audio_compositionality.evaluator.submissions.verification import verify as verify_submission
from audio_compositionality.hub.content import RemoteFile, digest_of
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.table import to_csv
from audio_compositionality.tasks.base import Inputs
from audio_compositionality.tasks.registry import load_task

from ..damaged import check_flips

SECRET = "0123456789abcdef" * 2
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def verify(data):
    """`verify(files)`: of the files of a submission for the small data."""
    return lambda files: verify_submission(parse_submission(files), data=data, device="cpu")


@pytest.fixture(scope="module")
def verified(made, verify):
    return {task: verify(submission.files) for task, submission in made.items()}


def numbers(verification):
    return {difference.name: difference for difference in verification.differences}


def names(problems):
    return [problem.split(" is ")[0] for problem in problems]


# ----- honest claims


def test_an_honest_submission_is_verified(made, verified):
    for task, verification in verified.items():
        submission = made[task]
        assert verification.verified, verification.problems
        assert verification.id == submission.id
        assert verification.digests == {k: hashlib.sha256(v).hexdigest() for k, v in submission.files.items()}
        assert verification.recomputed.model == submission.result.model
        assert verification.sketch.clips == len(submission.embeddings.values)
    exact = verified["a_coat"]
    assert exact.recomputed.measures == pytest.approx(made["a_coat"].result.measures, abs=1e-12)
    assert exact.samples.ids == made["a_coat"].samples.ids
    assert exact.recomputed.intervals == made["a_coat"].result.intervals


def test_tolerances_follow_from_the_measures(made, verify, verified, guess, monkeypatch):
    tolerances = {name: difference.tolerance for name, difference in numbers(verified["guess"]).items()}
    by_hand = stats.t.ppf(0.995, 2) * guess.seed_std * np.sqrt(2 / 3)
    assert tolerances.pop("guess") == pytest.approx(by_hand)
    assert by_hand > 1e-3
    told = {name.split(" of ")[0] for name, tolerance in tolerances.items() if tolerance is None}
    assert told == {"seed_std", "luck", "score", "drawn", "lower end", "upper end"}
    kept = {name: tolerance for name, tolerance in tolerances.items() if tolerance is not None}
    interval = verified["guess"].recomputed.intervals["exact"]
    width = interval[1] - interval[0]
    assert kept.pop("lower end of the interval of exact") == pytest.approx(0.1 * width)
    assert kept.pop("upper end of the interval of exact") == pytest.approx(0.1 * width)
    assert {name.split(" of ")[0] for name in kept} == {"exact", "absent"}
    assert set(kept.values()) == {1e-6}
    # The spread of fits is allowed at least a thousandth, and one that is claimed does not count.
    claimed = claiming(made["guess"].files, "seed_std", 1e9)
    assert numbers(verify(claimed))["guess"].tolerance < 0.02
    monkeypatch.setattr(guess, "seed_std", 1e-9)
    assert numbers(verify(made["guess"].files))["guess"].tolerance == 1e-3


@pytest.mark.slow
def test_a_score_of_real_fits_is_verified(tiny_data, tmp_path, monkeypatch):
    kind = type(load_task("a_tre"))
    by_default = kind.settings
    monkeypatch.setattr(kind, "settings", lambda *args: by_default(*args[:2], {"max_steps": 20} | args[2]))
    local = {"store": tmp_path / "store", "device": "cpu", "progress": False}
    evaluate_models([ShortEncoder()], tiny_data, [load_task("a_tre")], RunOptions(out=tmp_path / "out", **local))
    (path,) = (tmp_path / "out").rglob("a_tre.json")
    submission = make_submission(path, tiny_data, **local)
    folder = build_dataset(tiny_data, tmp_path / "data", recipes=["a_tre"], workers=1, progress=False)
    verification = verify_submission(submission, data=folder, device="cpu")
    assert verification.verified, verification.problems
    assert verification.recomputed.score == pytest.approx(submission.result.score, abs=1e-3)


def test_what_was_computed_says_with_what_and_the_rest_is_the_claim_s(made, verify):
    stated = {"versions": {"numpy": "999"}, "seconds": {"embed": 1e9}, "model": {"paradigm": "magic"}}
    verification = verify(with_json(made["a_coat"].files, **stated))
    assert verification.verified
    assert verification.recomputed.versions["numpy"] == np.__version__
    assert set(verification.recomputed.seconds) == {"score"}
    assert 0 <= verification.recomputed.seconds["score"] < 600
    assert verification.recomputed.model.paradigm == "magic"
    assert verification.result.versions == {"numpy": "999"}


def test_columns_that_no_measure_names_are_told_and_no_reason_against_it(made, verify):
    table = read_samples(made["a_coat"].files)
    verification = verify(with_samples(made["a_coat"].files, ab_1=-table["ab_1"]))
    assert verification.verified
    assert verification.samples.dumps() == made["a_coat"].samples.dumps()
    (told,) = (difference for name, difference in numbers(verification).items() if name.startswith("ab_1"))
    assert told.claimed == -told.recomputed != 0


# ----- false claims


def claiming(files, name, value):
    """The submission with another value of a measure that is not a mean over samples."""
    return with_json(files, measures=json.loads(files["result.json"])["measures"] | {name: value})


def false_claims(made):
    """Of each false claim its name, its files, and the beginnings of the problems."""
    files, result, guessed = made["a_coat"].files, made["a_coat"].result, made["guess"].files
    table, (tensors, _) = read_samples(files), read_embeddings(files)
    scores, columns = table["score"], "the columns of its samples are not those of its task"
    other_clips = "its embeddings are of other clips than those of the data, or in another order"

    def scored(values):
        return claiming(with_samples(files, score=values), "a_coat", float(values.mean()))

    yield "slightly better", scored(np.clip(scores + 0.001, -1, 1)), ("a_coat is", ...)
    yield "better", scored(np.clip(scores + 0.1, -1, 1)), ("the interval of a_coat is not that of its samples",)
    assert scores[0] != scores[1]
    swapped = scores[[1, 0, *range(2, 12)]]
    yield "swapped samples", with_samples(files, score=swapped), ("score of a_coat-test-0000",)
    yield "a measure", claiming(files, "null", result.measures["null"] - 1e-5), ("null is",)
    yield "no number", claiming(files, "null", None), ("null is",)
    yield "no number of an interval", claiming(files, "top1", None), ("the interval of top1 is",)
    yield "a number where none is", claiming(guessed, "absent", 0.0), ("absent is",)
    yield "another measure", claiming(files, "praise", 1.0), ("its measures are not those that its task has",)
    fewer = {name: value for name, value in result.measures.items() if name != "null"}
    yield "fewer measures", with_json(files, measures=fewer), ("its measures are not those that its task has",)
    yield "fewer columns", with_samples(files, ab_1=None), (columns,)
    yield "more columns", with_samples(files, praise=np.ones(12)), (columns,)
    random = np.random.default_rng(0).normal(size=(48, 12)).astype(np.float16)
    yield "embeddings of another model", with_embeddings(files, values=random), ("a_coat is", ...)
    yield "no embeddings", {name: files[name] for name in ("result.json", "samples.csv")}, ("it has no embeddings",)
    few = with_embeddings(files, values=tensors["values"][4:])
    yield "fewer clips", few, ("it has embeddings of 44 clips, the data have 48",)
    yield "other clips", with_embeddings(files, clips="0" * 64), (other_clips,)
    order = [1, 0, *range(2, 12)]
    moved = with_samples(files, **{name: [values[k] for k in order] for name, values in table.items()})
    yield "another order", moved, ("its samples are not those of the data, in their order",)
    mini = with_json(files, fingerprint=open_data("mini").configuration("a_coat").fingerprint)
    yield "other data", mini, ("it has 12 samples, the data have 64",)
    for task, submission in made.items():
        count = len(read_embeddings(submission.files)[0]["values"])
        nothing = {"values": tensors["values"][:count] * 0, "offset": tensors["offset"] * 0}
        yield f"zeros of {task}", with_embeddings(submission.files, **nothing), ("", ...)
    for seeds in ([0, 1], [0, 1, 2, 3], [False, True, 2], "0", None, [2**52]):
        settings = {"seeds": seeds, "share": 0.5}
        yield f"seeds {seeds}", with_json(guessed, settings=settings), ("its settings are",)
    more = {"seeds": [0, 1, 2], "share": 0.5, "layers": 9}
    yield "more settings", with_json(guessed, settings=more), ("its settings are",)
    version = "it is of version 9 of guess, this is version 1: evaluate it again"
    yield "another version", with_json(guessed, task_version=9), (version,)


def test_every_false_claim_is_caught_and_says_why(made, verify, guess, monkeypatch):
    for name, files, expected in false_claims(made):
        if expected[0].startswith(("its settings", "it is of version")):
            # Nothing is fitted with settings of strangers.
            monkeypatch.setattr(guess, "score", lambda *_: pytest.fail("it is fitted"))
        verification = verify(files)
        problems = verification.problems
        assert not verification.verified, name
        assert len(problems) == len(expected) or ... in expected, (name, problems)
        assert all(map(str.startswith, problems, [one for one in expected if one is not ...])), (name, problems)
        with pytest.raises(InputError, match="only a verified submission"):
            verification_files(verification)


def test_a_score_that_is_not_that_of_its_samples_is_refused(made):
    with pytest.raises(ResultError, match="the mean of score is not"):
        parse_submission(claiming(made["a_coat"].files, "a_coat", 0.999))


def test_a_fitted_score_may_be_off_by_its_spread_and_no_further(made, verify):
    files = made["guess"].files
    result, scores = made["guess"].result, read_samples(made["guess"].files)["score"]
    tolerance = stats.t.ppf(0.995, 2) * 2e-3 * np.sqrt(2 / 3)
    for shift, expected in ((0.5 * tolerance, []), (1.5 * tolerance, ["guess"])):
        ends = [end - shift for end in result.intervals["guess"]]
        other = with_samples(files, score=scores - shift)
        other = claiming(other, "guess", float((scores - shift).mean()))
        other = with_json(other, intervals={**result.intervals, "guess": ends})
        assert names(verify(other).problems) == expected


def test_other_data_are_caught(made, verify):
    files = made["a_coat"].files
    with pytest.raises(ResultError, match="neither a preset"):
        verify(with_json(files, fingerprint="0" * 64))
    with pytest.raises(ResultError, match="its recipe is a_tre, where a_coat scores a_coat"):
        verify(with_json(files, recipe="a_tre"))


def test_a_task_of_answers_says_that_embeddings_do_not_suffice(made, verify, guess, monkeypatch):
    monkeypatch.setattr(guess, "needs", Inputs(clips=("A", "C"), prompts=("which?", "which?")))
    verification = verify(made["guess"].files)
    assert verification.problems == ("guess scores answers, which stand in answers.jsonl; it has embeddings",)


def test_arguments_outcome_and_error_of_a_check_can_be_sent_to_another_process(made, data, tmp_path):
    folder = place(tmp_path, made["a_coat"].files)
    broken = place(tmp_path / "broken", {**made["a_coat"].files, "result.json": b"{"})
    options = {"name": "/".join(folder.parts[-4:]), "data": data, "device": "cpu"}
    check_folder, folder, broken, options = pickle.loads(pickle.dumps((verify_folder, folder, broken, options)))
    verification = check_folder(folder, **options)
    again = pickle.loads(pickle.dumps(verification))
    assert again.verified
    assert again.id == made["a_coat"].id
    assert again.recomputed == verification.recomputed
    assert again.samples.dumps() == verification.samples.dumps()
    assert verification_files(again, secret=SECRET, date=MOMENT)
    with pytest.raises(FrozenInstanceError):
        again.problems = ()
    with pytest.raises(ResultError, match=r"result\.json: ") as error:
        check_folder(broken)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


# ----- what the checker writes


@pytest.fixture(scope="module")
def written(verified):
    return verification_files(verified["a_coat"], secret=SECRET, submitter="eve", date=MOMENT)


def test_what_the_checker_writes_is_read_again(made, verified, written, tmp_path):
    verification, submission = verified["a_coat"], made["a_coat"]
    name = verification_folder(verification)
    assert name == f"verified/org__short/1/a_coat-{verification.id}"
    folder = tmp_path / name
    folder.mkdir(parents=True)
    for file, content in written.items():
        (folder / file).write_bytes(content)
    entry = read_verification(folder, submission, name)
    assert entry.result == verification.recomputed
    assert entry.samples.dumps() == verification.samples.dumps()
    assert entry.record.sketch == verification.sketch
    assert entry.record.date == "2026-01-02T03:04:05+00:00"
    assert entry.record.submitter == "eve"
    assert {"numpy", "torch", "audio-compositionality"} <= set(entry.record.versions)
    assert check(entry.record, SECRET)
    assert VerificationRecord.loads(verification_files(verification)["verification.json"]).signature is None
    # It proves which files were checked.
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in submission.files.items()}
    assert entry.record.submission == digests
    assert entry.record.id == hashlib.sha256(sha256sum(submission.files).encode()).hexdigest()[:16]
    for file in ("result.json", "samples.csv"):
        assert entry.record.files[file] == hashlib.sha256(written[file]).hexdigest()


@pytest.mark.parametrize("name", ["verification.json", "result.json", "samples.csv"])
def test_a_record_of_which_a_byte_has_changed_is_refused(made, written, name):
    def read(content):
        check(parse_verification({**written, name: content}, None, made["a_coat"]).record, SECRET)

    check_flips(written[name], read, most=100)


def test_a_board_needs_no_samples(made, written):
    submission = made["a_coat"]
    record = VerificationRecord.loads(written["verification.json"])
    result = check_record(record, submission.claim, written["result.json"])
    assert result.score == pytest.approx(submission.result.score, abs=1e-12)
    with pytest.raises(ResultError, match="it is the record of other files"):
        check_record(record, made["guess"].claim, written["result.json"])


def test_a_listing_is_read_as_the_whole_folder_is(made, written):
    submission = made["a_coat"]
    entry = submission.folder.removeprefix("results/")
    held = {f"results/{entry}/{name}": content for name, content in submission.files.items()}
    held |= {f"verified/{entry}/{name}": content for name, content in written.items()}
    kinds = {path: "sha256" if path.endswith(".safetensors") else "git" for path in held}
    tree = {path: RemoteFile(path, len(held[path]), digest_of(held[path], kind)) for path, kind in kinds.items()}
    fetched = []

    def fetch(path, limit):
        fetched.append(path.rpartition("/")[2])
        assert len(held[path]) <= limit
        return held[path]

    results, verified, foreign = folders_of(tree)
    assert (list(results), list(verified), foreign) == ([entry], [entry], [])
    claim = read_listed_claim(results[entry], fetch)
    assert (claim, claim.folder, claim.id) == (submission.claim, submission.folder, submission.id)
    signed = read_signed_claim(verified[entry], fetch, claim, SECRET)
    whole = parse_verification(written, f"verified/{entry}", submission)
    assert (signed.record, signed.result) == (whole.record, whole.result)
    assert sorted(fetched) == ["result.json", "result.json", "verification.json"]
    with pytest.raises(ResultError, match="its signature is not the checker's"):
        read_signed_claim(verified[entry], fetch, claim, SECRET[::-1])
    with pytest.raises(ResultError, match="no secret is set here"):
        read_signed_claim(verified[entry], fetch, claim, None)


def test_only_the_secret_s_owner_signs(written):
    record = VerificationRecord.loads(written["verification.json"])
    assert check(record, SECRET) is True
    assert check(record, None) is False
    with pytest.raises(ResultError, match="its signature is not the checker's"):
        check(record, SECRET[::-1])
    with pytest.raises(ResultError, match="it has no signature"):
        check(record.model_copy(update={"signature": None}), SECRET)
    for changes in ({"submitter": "mallory"}, {"date": "2025-01-02T03:04:05+00:00"}, {"versions": {}}):
        with pytest.raises(ResultError, match="its signature is not the checker's"):
            check(record.model_copy(update=changes), SECRET)
    assert sign(record, SECRET) == record


def test_a_secret_that_can_be_guessed_is_refused(written, monkeypatch):
    monkeypatch.delenv("AUDIO_COMPOSITIONALITY_SECRET", raising=False)
    assert secret_from_environment() is None
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_SECRET", SECRET)
    assert secret_from_environment() == SECRET
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_SECRET", "swordfish")
    with pytest.raises(InputError, match="has 9 characters; it must have 32 or more") as caught:
        secret_from_environment()
    assert "swordfish" not in str(caught.value)


def record_of(written, submission, files=None, **changes):
    """What somebody without the secret writes for a submission: a record of files with right digests, unsigned."""
    files = submission.files if files is None else files
    files = {name: files[name] for name in ("result.json", "samples.csv")}
    values = json.loads(written["verification.json"])
    values |= {"submission": sha256_by_name(submission.files), "files": sha256_by_name(files)}
    return {**files, "verification.json": (json.dumps(values | changes, indent=1) + "\n").encode()}


def test_a_forged_record_of_another_score_contradicts_the_submission(made, written):
    submission = made["a_coat"]
    files, measures = submission.files, submission.result.measures
    scores = read_samples(files)["score"][::-1]
    for forged, message in (
        (with_json(files, measures={**measures, "null": 0.0}), "it verifies nothing, since null is"),
        (with_json(files, model={"id": "org/shirt"}), "not of the submission; different: model"),
        (with_json(files, intervals={}), "different: intervals"),
        (with_json(files, task_version=2), "different: task_version"),
        (with_samples(files, score=scores), "it verifies nothing, since score of"),
    ):
        with pytest.raises(ResultError, match=message):
            parse_verification(record_of(written, submission, forged), None, submission)
    for name, message in (
        ("result.json", r"result\.json is not the file named in verification\.json"),
        ("samples.csv", r"samples\.csv: its samples are not those that it was written with"),
    ):
        other = written[name].replace(b"org/short", b"org/shirt") if name == "result.json" else written[name][:-1]
        with pytest.raises(ResultError, match=message):
            parse_verification({**written, name: other}, None, submission)
    sketch = json.loads(written["verification.json"])["sketch"]
    shape = sketch["shape"]
    for change in (
        {"values": "0" * 64},
        {"of": "0" * 64},
        {"radii": sketch["radii"][1:]},
        {"clips": 49},
        {"shape": None},
        {"shape": shape | {"distances": base64.b64encode(bytes(len(base64.b64decode(shape["distances"])))).decode()}},
        {"choices": {"taken": "A", "right": "A", "last": "B"}},
    ):
        with pytest.raises(ResultError, match="its sketch is not that of the embeddings"):
            parse_verification(record_of(written, submission, sketch=sketch | change), None, submission)
    entry = parse_verification(record_of(written, submission), None, submission)
    with pytest.raises(ResultError, match="its signature is not the checker's"):
        check(entry.record, SECRET)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "0" * 16},
        {"id": 0},
        {"submission": {}},
        {"submission": {"result.json": "0" * 64, "samples.csv": "0" * 64}},
        {"files": {"result.json": "0" * 64, "samples.csv": "0" * 64}},
        {"files": {"result.json": "0", "samples.csv": "0"}},
        {"files": {"result.json": "0" * 64, "x": "0" * 64}},
        {"sketch": None},
        {"sketch": {"radii": [10**400]}},
        {"sketch": {"radii": [1.0] * 65}},
        {"sketch": {"shape": {"anchors": 2}}},
        {"sketch": {"shape": {"anchors": 10**9, "distances": "", "lengths": "", "dimensions": ""}}},
        {"sketch": {"shape": {"anchors": 2, "distances": "A", "lengths": "", "dimensions": ""}}},
        {"sketch": {"shape": {"anchors": 0, "distances": "AAAA", "lengths": "", "dimensions": ""}}},
        {"sketch": {"shape": {"anchors": 1, "distances": "", "lengths": "AACAfwAAgH8=", "dimensions": ""}}},
        {"sketch": {"shape": {"anchors": 2, "distances": "AAAAAA==", "lengths": 4 * "AAAA", "dimensions": "AAAA"}}},
        {"sketch": {"choices": {"taken": "A", "right": "", "last": ""}}},
        {"sketch": {"choices": {"taken": "A", "right": "-", "last": "B"}}},
        {"sketch": {"choices": {"taken": "C", "right": "A", "last": "B"}}},
        {"differences": []},
        {"versions": {"numpy": 2}},
        {"versions": {"num\npy": "2"}},
        {"date": "yesterday"},
        {"date": "9999-99-99T99:99:99+00:00"},
        {"submitter": ""},
        {"submitter": 1},
        {"submitter": "x" * 101},
        {"submitter": "e‮ve"},
        {"signature": "0"},
        {"signature": 1},
        {"schema_version": 1},
        {"schema_version": 3},
        {"schema_version": True},
        {"schema_version": 2.0},
        {"more": 1},
    ],
    ids=str,
)
def test_a_record_that_is_wrong_is_refused(made, written, changes):
    values = json.loads(written["verification.json"])
    if isinstance(changes.get("sketch"), dict):
        changes = {"sketch": values["sketch"] | changes["sketch"]}
    content = (json.dumps(values | changes, indent=1) + "\n").encode()
    with pytest.raises(ResultError, match=r"verification\.json") as caught:
        parse_verification({**written, "verification.json": content}, None, made["a_coat"])
    assert str(caught.value).isprintable()


def test_what_is_no_record_is_refused(made, written):
    values = json.loads(written["verification.json"])
    for content in (
        json.dumps({name: value for name, value in values.items() if name != "submitter"}).encode(),
        json.dumps(values).encode(),
        written["verification.json"].replace(b"eve", b"e\\u0076e"),
        b"",
        b"[",
        b"null",
        b"\xff",
        b"[" * 90_000,
        b"9" * 10_000,
        b" " * 100_001,
    ):
        with pytest.raises(ResultError, match=r"verification\.json"):
            VerificationRecord.loads(content)
    with pytest.raises(ResultError, match=r"it has no samples\.csv"):
        parse_verification({name: written[name] for name in ("verification.json", "result.json")}, None, made["a_coat"])
    with pytest.raises(ResultError, match="its content belongs to verified/org__short/1/a_coat-"):
        parse_verification(written, "verified/org__other/1/a_coat-0123456789abcdef", made["a_coat"])


# ----- local results, and what the command shows


def test_a_local_result_is_verified_from_the_store(evaluated, data):
    for task in ("a_coat", "guess"):
        path = evaluated / "results/org__short/1" / f"{task}.json"
        verification = verify_local(path, data=data, store=evaluated / "store", device="cpu")
        assert verification.verified, verification.problems
        assert verification.id is None
        with pytest.raises(InputError, match="only a verified submission"):
            verification_files(verification)
        with pytest.raises(InputError, match="no place in the repository"):
            verification_folder(verification)


@pytest.fixture
def clone(made, verified, written, tmp_path):
    """A clone of a results repository with one verified entry."""
    place(tmp_path, made["a_coat"].files)
    folder = tmp_path / verification_folder(verified["a_coat"])
    folder.mkdir(parents=True)
    for name, content in written.items():
        (folder / name).write_bytes(content)
    return tmp_path


def outcomes(*paths, **options):
    return list(verify_paths([Path(path) for path in paths], device="cpu", **options))


def test_claimed_and_recomputed_stand_in_a_table(made, evaluated, data, tmp_path):
    folder = place(tmp_path, made["a_coat"].files)
    for path in (folder, folder / "result.json", tmp_path):
        (outcome,) = outcomes(path, data=data)
        assert outcome.verified
        assert outcome.error is None
        assert outcome.table.caption.startswith("A-COAT of org/short: ")
        assert outcome.table.legend[-1].startswith("verified: ")
        assert re.fullmatch(r"verified: A-COAT of org/short, .*, \d+ numbers recomputed \(.*\)", outcome.line)
        text = to_csv(outcome.table)
        for word in ("claimed", "recomputed", "difference", "tolerance", "holds", "only reported"):
            assert word in text
        assert repr(made["a_coat"].result.score) in text
    assert [outcome.verified for outcome in outcomes(evaluated / "results", data=data, store=evaluated / "store")] == [
        True,
        True,
    ]
    assert "cannot be seen in them" in LEGEND


def test_what_is_not_verified_is_told_and_what_is_broken_keeps_nothing_from_being_verified(made, data, tmp_path):
    scores = read_samples(made["a_coat"].files)["score"].copy()
    scores[[0, 1]] = scores[[1, 0]]
    false = place(tmp_path / "false", with_samples(made["a_coat"].files, score=scores))
    broken = place(tmp_path / "broken", {**made["a_coat"].files, "result.json": b"\x1b[31m"})
    honest = place(tmp_path / "honest", made["a_coat"].files)
    told = outcomes(broken, false, honest, data=data)
    assert [(outcome.verified, outcome.error is None) for outcome in told] == [
        (False, False),
        (False, True),
        (True, True),
    ]
    assert told[0].table is None
    assert "result.json: not JSON" in told[0].error
    assert told[0].error.isprintable()
    assert "differs" in to_csv(told[1].table)
    assert told[1].table.legend[-1] == "not verified"


def test_records_of_a_clone_are_compared_with_their_submissions(clone, data, monkeypatch):
    monkeypatch.delenv("AUDIO_COMPOSITIONALITY_SECRET", raising=False)
    entry, record = outcomes(clone, data=data)
    assert entry.verified
    assert record.verified
    assert record.table.legend == ("consistent with its submission; signature not checked",)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_SECRET", SECRET)
    assert outcomes(clone / "verified")[0].table.legend == ("consistent with its submission; signed by the checker",)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_SECRET", SECRET[::-1])
    (forged_record,) = outcomes(clone / "verified")
    assert forged_record.error.endswith("verification.json: its signature is not the checker's")


def test_a_record_that_contradicts_its_submission_is_named(clone, made, verified, written):
    submission = made["a_coat"]
    measures = {**submission.result.measures, "null": 0.0}
    files = record_of(written, submission, with_json(submission.files, measures=measures))
    folder = clone / verification_folder(verified["a_coat"])
    for name, content in files.items():
        (folder / name).write_bytes(content)
    (outcome,) = outcomes(clone / "verified")
    assert "it verifies nothing, since null is" in outcome.error
    assert verified["a_coat"].id in outcome.error
    (clone / submission.folder / "result.json").unlink()
    assert f"its submission {submission.folder} cannot be used: it has no result.json" in outcomes(folder)[0].error
    outside = clone / "record"
    folder.rename(outside)
    assert "its submission cannot be found" in outcomes(outside)[0].error


def test_mistakes_are_told(made, data, tmp_path):
    with pytest.raises(ResultError, match="holds no results: give the folder of a submission"):
        find_results(tmp_path)
    (outcome,) = outcomes(place(tmp_path, made["a_coat"].files))
    assert "name the data with --data" in outcome.error
    (outcome,) = outcomes(place(tmp_path, made["a_coat"].files, encoder="openai__whisper-base"), data=data)
    assert "its content belongs to results/org__short/1/" in outcome.error


def test_a_bug_of_a_task_is_no_fault_of_a_submission(made, guess, data, monkeypatch):
    def broken(*_):
        raise KeyError("a bug")

    monkeypatch.setattr(guess, "score", broken)
    with pytest.raises(KeyError):
        verify_submission(parse_submission(made["guess"].files), data=data, device="cpu")
    with pytest.raises(AudioCompositionalityError):
        verify_submission(parse_submission(made["guess"].files), data=data, device="warp")
