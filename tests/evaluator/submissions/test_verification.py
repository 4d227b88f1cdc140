"""Recomputing submissions, what the checker writes, and what `verify` shows."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from submissions import place, read_embeddings, read_samples, sha256sum, with_embeddings, with_json, with_samples

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.submissions.layout import folders_of, sha256_by_name
from audio_compositionality.evaluator.submissions.record import (
    VerificationRecord,
    check,
    parse_verification,
    read_signed_claim,
    secret_from_environment,
)
from audio_compositionality.evaluator.submissions.submission import parse_submission, read_listed_claim
from audio_compositionality.evaluator.submissions.verification import (
    find_results,
    verification_files,
    verification_folder,
    verify_folder,
    verify_local,
    verify_paths,
)
from audio_compositionality.hub.content import RemoteFile, digest_of
from audio_compositionality.support.errors import AudioCompositionalityError, InputError
from audio_compositionality.support.table import to_csv
from audio_compositionality.tasks.base import Inputs

from ..damaged import check_flips
from .conftest import lines_of, with_lines

SECRET = "0123456789abcdef" * 2
MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def verified(made, verify):
    return {task: verify(submission.files) for task, submission in made.items()}


def numbers(verification):
    return {difference.name: difference for difference in verification.differences}


def claiming(files, **measures):
    """The submission with other values of measures that are no means over samples."""
    return with_json(files, measures=json.loads(files["result.json"])["measures"] | measures)


def test_honest_submissions_are_verified(made, of_texts, answered, verified, verify):
    for submission in (*made.values(), of_texts, *answered.values()):
        verification = verify(submission.files)
        assert verification.verified, verification.problems
        assert verification.id == submission.id
        assert verification.digests == {k: hashlib.sha256(v).hexdigest() for k, v in submission.files.items()}
        if submission is not made["guess"]:
            assert verification.recomputed.measures == pytest.approx(submission.result.measures, abs=1e-12)
            assert verification.recomputed.intervals == submission.result.intervals
            assert verification.samples.ids == submission.samples.ids
    assert all(one.tolerance is not None for one in verification.differences)


def test_tolerances_follow_from_the_measures(made, verify, verified, guess, monkeypatch):
    tolerances = {name: difference.tolerance for name, difference in numbers(verified["guess"]).items()}
    by_hand = stats.t.ppf(0.995, 2) * guess.seed_std * np.sqrt(2 / 3)
    assert tolerances.pop("guess") == pytest.approx(by_hand)
    told = {name.split(" of ")[0] for name, tolerance in tolerances.items() if tolerance is None}
    assert told == {"seed_std", "luck", "score", "drawn", "lower end", "upper end"}
    low, high = verified["guess"].recomputed.intervals["exact"]
    for end in ("lower", "upper"):
        assert tolerances.pop(f"{end} end of the interval of exact") == pytest.approx(0.1 * (high - low))
    assert {tolerance for tolerance in tolerances.values() if tolerance is not None} == {1e-6}
    # A fitted score may be off by its spread and no further; one that is claimed does not count.
    files, result = made["guess"].files, made["guess"].result
    for shift, problems in ((0.5 * by_hand, 0), (1.5 * by_hand, 1)):
        scores = read_samples(files)["score"] - shift
        other = claiming(with_samples(files, score=scores), guess=float(scores.mean()), seed_std=1e9)
        ends = [end - shift for end in result.intervals["guess"]]
        assert len(verify(with_json(other, intervals={**result.intervals, "guess": ends})).problems) == problems
    monkeypatch.setattr(guess, "seed_std", 1e-9)
    assert numbers(verify(files))["guess"].tolerance == 1e-3


def test_what_was_computed_says_with_what_and_the_rest_is_the_claim_s(made, verify):
    stated = {"versions": {"numpy": "999"}, "seconds": {"embed": 1e9}, "model": {"paradigm": "magic"}}
    files = with_samples(made["a_coat"].files, ab_1=-read_samples(made["a_coat"].files)["ab_1"])
    verification = verify(with_json(files, **stated))
    assert verification.verified
    assert verification.recomputed.versions["numpy"] == np.__version__
    assert set(verification.recomputed.seconds) == {"score"}
    assert verification.recomputed.model.paradigm == "magic"
    # A column that no measure names is told, and no reason against it.
    (told,) = (difference for name, difference in numbers(verification).items() if name.startswith("ab_1"))
    assert told.claimed == -told.recomputed != 0


def false_claims(made, of_texts, answered, questions):
    """Of each false claim its files, and the beginning or a part of its first problem."""
    files, result, guessed = made["a_coat"].files, made["a_coat"].result, made["guess"].files
    table, tensors = read_samples(files), read_embeddings(files)
    scores, ids = table["score"], table["id"]
    columns, order = "the columns of its samples do not belong to its task", [1, 0, *range(2, 12)]

    def scored(values):
        return claiming(with_samples(files, score=values), a_coat=float(values.mean()))

    yield scored(np.clip(scores + 0.001, -1, 1)), "a_coat is"
    yield scored(np.clip(scores + 0.1, -1, 1)), "the interval of a_coat does not match its samples"
    yield with_samples(files, score=scores[order]), "score of a_coat-test-0000"
    yield with_samples(files, id=[ids[k] for k in order]), "its samples differ from the data, or are in another order"
    yield with_samples(files, cluster=[0.0] * 12), "the clusters of its samples do not match the data"
    yield with_json(files, intervals={}), "its intervals are not those that its task has"
    yield claiming(files, null=result.measures["null"] - 1e-5), "null is"
    yield claiming(files, null=None), "null is"
    yield claiming(files, top1=None), "the interval of top1 does not match"
    yield claiming(guessed, absent=0.0), "absent is"
    yield claiming(files, praise=1.0), "its measures are not those that its task has"
    yield with_samples(files, ab_1=None), columns
    yield with_samples(files, praise=np.ones(12)), columns
    random = np.random.default_rng(0).normal(size=(48, 12)).astype(np.float16)
    yield with_embeddings(files, values=random), "a_coat is"
    yield with_embeddings(files, values=tensors["values"] * 0, offset=tensors["offset"] * 0), ""
    yield {name: files[name] for name in ("result.json", "samples.csv")}, "it has no embeddings"
    yield with_embeddings(files, values=tensors["values"][4:]), "it has embeddings of 44 clips, the data have 48"
    yield (
        with_embeddings(files, clips=np.zeros(32, np.uint8)),
        "its embeddings are of other clips than the data's",
    )
    mini = open_data("mini").configuration("a_coat")
    yield with_json(files, fingerprint=mini.fingerprint), "its rows have the digest"
    of_mini = {"fingerprint": mini.fingerprint, "rows_digest": mini.rows_digest}
    yield with_json(files, **of_mini), "it has 12 samples, the data have 64"
    for seeds in ([0, 1], [False, True, 2], None):
        yield with_json(guessed, settings={"seeds": seeds, "share": 0.5}), "its settings are"
    yield with_json(guessed, task_version=9), "it is of version 9 of guess, this is version 1"
    turned = of_texts.embeddings.values.copy()
    turned[-1] *= -1
    for other, problem in (
        (replace(of_texts.embeddings, texts=3), "its embeddings are of other clips and texts than the data's"),
        (replace(of_texts.embeddings, values=of_texts.embeddings.values[:-1]), "it has embeddings of 24 clips and"),
        (replace(of_texts.embeddings, values=turned), "said is"),
    ):
        yield {**of_texts.files, "embeddings.safetensors": other.dumps()}, problem
    blind, lines = answered["blind"].files, lines_of(answered["blind"].files)
    right = lines_of(answered["oracle"].files)
    right[5]["answer"] = "B" if right[5]["answer"] == "A" else "A"
    yield with_lines(answered["oracle"].files, right), "accuracy_micro is 1 in the claim and 0."
    # Another option of a wrong answer: the scores stay; which option was taken does not.
    first = lines_of(answered["first"].files)
    rows = {row["id"]: row for row in questions.configuration("polybench").rows}
    number = next(k for k, line in enumerate(first) if rows[line["id"]]["answer"] in rows[line["id"]]["options"][2:])
    first[number]["answer"] = "B"
    yield with_lines(answered["first"].files, first), f"choice of {first[number]['id']} is 0"
    yield claiming(blind, refused=1), "refused is"
    yield with_lines(blind, lines[1:]), f"it has answers to {len(lines) - 1} questions, the data have {len(lines)}"
    more = [*lines, {"id": "other", "answer": "A"}]
    yield with_lines(blind, more), "it has an answer to other, which is not a question of the data"
    yield with_lines(blind, lines[::-1]), "its answers are in another order than the questions of the data"
    yield {name: content for name, content in blind.items() if name != "answers.jsonl"}, "it has no answers"


def test_every_false_claim_is_caught_and_says_why(made, of_texts, answered, questions, verify):
    for files, problem in false_claims(made, of_texts, answered, questions):
        verification = verify(files)
        assert not verification.verified, problem
        assert any(one.startswith(problem) for one in verification.problems), (problem, verification.problems)
        with pytest.raises(InputError, match="only a verified submission"):
            verification_files(verification)


def test_other_data_and_settings_are_refused(made, answered, verify, guess, monkeypatch):
    files, settings = made["a_coat"].files, answered["blind"].result.settings
    for other, message in (
        (with_json(files, fingerprint="0" * 64), "neither a preset"),
        (with_json(files, recipe="a_tre"), "its recipe is a_tre, where a_coat scores a_coat"),
        (with_json(answered["blind"].files, settings={**settings, "orders": "cyclical"}), "orders is 'cyclical'"),
        (with_json(answered["blind"].files, settings={**settings, "prompt": ["direct"]}), "its setting prompt is"),
    ):
        with pytest.raises(ResultError, match=message):
            verify(other)
    monkeypatch.setattr(guess, "needs", Inputs(clips=("A", "C"), prompts=("which?", "which?")))
    assert verify(made["guess"].files).problems == (
        "guess scores answers, which stand in answers.jsonl; it has embeddings",
    )
    # A bug of a task is no fault of a submission.
    monkeypatch.setattr(guess, "needs", Inputs(clips=("A", "C")))
    monkeypatch.setattr(guess, "score", lambda *_: {}["a bug"])
    with pytest.raises(KeyError):
        verify(made["guess"].files)


def test_arguments_outcome_and_error_of_a_check_can_be_sent_to_another_process(made, data, tmp_path):
    folder = place(tmp_path, made["a_coat"].files)
    broken = place(tmp_path / "broken", {**made["a_coat"].files, "result.json": b"{"})
    again = pickle.loads(pickle.dumps(verify_folder(folder, data=data, device="cpu")))
    assert again.verified
    assert verification_files(again, secret=SECRET, date=MOMENT)
    with pytest.raises(ResultError, match=r"result\.json: ") as error:
        verify_folder(broken)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


# ----- what the checker writes


@pytest.fixture(scope="module")
def written(verified):
    return verification_files(verified["a_coat"], secret=SECRET, submitter="eve", date=MOMENT)


def test_what_the_checker_writes_is_read_again_from_a_listing_too(made, verified, written, monkeypatch):
    submission, verification = made["a_coat"], verified["a_coat"]
    entry = submission.folder.removeprefix("results/")
    assert verification_folder(verification) == f"verified/{entry}"
    whole = parse_verification(written, f"verified/{entry}", submission)
    assert whole.result == verification.recomputed
    assert (whole.record.date, whole.record.submitter) == ("2026-01-02T03:04:05+00:00", "eve")
    assert whole.record.submission == sha256_by_name(submission.files)
    assert whole.record.id == hashlib.sha256(sha256sum(submission.files).encode()).hexdigest()[:16]
    held = {f"results/{entry}/{name}": content for name, content in submission.files.items()}
    held |= {f"verified/{entry}/{name}": content for name, content in written.items()}
    kinds = {path: "sha256" if path.endswith(".safetensors") else "git" for path in held}
    tree = {path: RemoteFile(path, len(held[path]), digest_of(held[path], kind)) for path, kind in kinds.items()}
    fetched = []

    def fetch(path, limit):
        fetched.append(path.rpartition("/")[2])
        return held[path]

    results, signed, foreign = folders_of(tree)
    assert (list(results), list(signed), foreign) == ([entry], [entry], [])
    claim = read_listed_claim(results[entry], fetch)
    assert claim == submission.claim
    read = read_signed_claim(signed[entry], fetch, claim, SECRET)
    assert (read.record, read.result) == (whole.record, whole.result)
    assert sorted(fetched) == ["result.json", "result.json", "verification.json"]
    for secret, message in ((SECRET[::-1], "its signature is not the checker's"), (None, "no secret is set here")):
        with pytest.raises(ResultError, match=message):
            read_signed_claim(signed[entry], fetch, claim, secret)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_SECRET", "swordfish")
    with pytest.raises(InputError, match="has 9 characters; it must have 32 or more") as caught:
        secret_from_environment()
    assert "swordfish" not in str(caught.value)


def test_only_the_secret_s_owner_signs(made, written):
    record = VerificationRecord.loads(written["verification.json"])
    assert check(record, SECRET)
    assert not check(record, None)
    with pytest.raises(ResultError, match="it has no signature"):
        check(record.model_copy(update={"signature": None}), SECRET)
    for changes in ({"submitter": "mallory"}, {"date": "2025-01-02T03:04:05+00:00"}, {"versions": {}}):
        with pytest.raises(ResultError, match="its signature is not the checker's"):
            check(record.model_copy(update=changes), SECRET)

    for name, content in written.items():

        def read(other, name=name):
            check(parse_verification({**written, name: other}, None, made["a_coat"]).record, SECRET)

        check_flips(content, read, most=60)


def record_of(written, submission, files=None, **changes):
    """What somebody without the secret writes for a submission: a record of files with right digests, unsigned."""
    files = submission.files if files is None else files
    files = {name: files[name] for name in ("result.json", "samples.csv")}
    values = json.loads(written["verification.json"])
    values |= {"submission": sha256_by_name(submission.files), "files": sha256_by_name(files)}
    return {**files, "verification.json": (json.dumps(values | changes, indent=1) + "\n").encode()}


def test_a_forged_record_of_another_score_contradicts_the_submission(made, answered, written, verify):
    submission = made["a_coat"]
    files = submission.files
    forged = [
        (record_of(written, submission, other), message)
        for other, message in (
            (claiming(files, null=0.0), "it verifies nothing, since null is"),
            (with_json(files, model={"id": "org/shirt"}), "not of the submission; different: model"),
            (with_json(files, intervals={}), "different: intervals"),
            (with_json(files, task_version=2), "different: task_version"),
            (with_samples(files, score=read_samples(files)["score"][::-1]), "it verifies nothing, since score of"),
        )
    ]
    other = written["result.json"].replace(b"org/short", b"org/shirt")
    forged.append(({**written, "result.json": other}, r"result\.json is not the file named in verification\.json"))
    forged.append(({k: v for k, v in written.items() if k != "samples.csv"}, r"it has no samples\.csv"))
    for record, message in forged:
        with pytest.raises(ResultError, match=message):
            parse_verification(record, None, submission)
    with pytest.raises(ResultError, match="its content belongs to verified/org__short/1/a_coat-"):
        parse_verification(written, "verified/org__other/1/a_coat-0123456789abcdef", submission)
    submission = parse_submission(answered["blind"].files)
    record = verification_files(verify(submission.files))
    assert parse_verification(record, None, submission).record.submission == sha256_by_name(submission.files)
    with pytest.raises(ResultError, match="it is the record of other files"):
        parse_verification(record, None, parse_submission(answered["first"].files))


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "0" * 16}, {"submission": {}}, {"files": {"result.json": "0", "samples.csv": "0"}},
        {"files": {"result.json": "0" * 64, "x": "0" * 64}}, {"sketch": None},
        {"versions": {"num\npy": "2"}}, {"date": "9999-99-99T99:99:99+00:00"}, {"submitter": ""},
        {"submitter": "x" * 101}, {"submitter": "e\u202eve"}, {"signature": "0"}, {"schema_version": 1},
        {"schema_version": True}, {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_record_that_is_wrong_is_refused(made, written, changes):
    values = json.loads(written["verification.json"])
    content = (json.dumps(values | changes, indent=1) + "\n").encode()
    with pytest.raises(ResultError, match=r"verification\.json") as caught:
        parse_verification({**written, "verification.json": content}, None, made["a_coat"])
    assert str(caught.value).isprintable()


def test_what_is_no_record_is_refused(written):
    compact = json.dumps(json.loads(written["verification.json"])).encode()
    for content in (compact, b"", b"null", b"\xff", b"[" * 90_000, b" " * 100_001):
        with pytest.raises(ResultError, match=r"verification\.json"):
            VerificationRecord.loads(content)


# ----- local results, and what the command shows


def outcomes(*paths, **options):
    return list(verify_paths([Path(path) for path in paths], device="cpu", **options))


def test_local_results_are_verified_from_the_store(evaluated, asked, data, tmp_path):
    for folder, where, count in ((evaluated, data, 3), (asked, asked / "data", 3)):
        told = outcomes(folder / "results", data=where, cache=folder / "store")
        assert [one.verified for one in told] == [True] * count, told
    path = evaluated / "results/org__short/1/a_coat.json"
    verification = verify_local(path, data=data, cache=evaluated / "store", device="cpu")
    for write, message in ((verification_files, "only a verified"), (verification_folder, "no place in the repo")):
        with pytest.raises(InputError, match=message):
            write(verification)
    with pytest.raises(ResultError, match=r"(\d) of \1 files of its embeddings are missing"):
        verify_local(path, data=data, cache=tmp_path)
    with pytest.raises(AudioCompositionalityError):
        verify_local(path, data=data, cache=evaluated / "store", device="warp")


def test_claimed_and_recomputed_stand_in_a_table_and_what_is_broken_stops_nothing(made, data, tmp_path):
    files = made["a_coat"].files
    scores = read_samples(files)["score"]
    false = place(tmp_path / "false", with_samples(files, score=scores[[1, 0, *range(2, 12)]]))
    broken = place(tmp_path / "broken", {**files, "result.json": b"\x1b[31m"})
    honest = place(tmp_path / "honest", files)
    for path in (honest, honest / "result.json", tmp_path / "honest"):
        (outcome,) = outcomes(path, data=data)
        assert outcome.table.caption.startswith("A-COAT of org/short: ")
        assert re.fullmatch(r"verified: A-COAT of org/short, .*, \d+ numbers recomputed \(.*\)", outcome.line)
        text = to_csv(outcome.table)
        assert all(word in text for word in ("tolerance", "holds", "only reported", repr(made["a_coat"].result.score)))
    told = outcomes(broken, false, honest, data=data)
    assert [(one.verified, one.error is None) for one in told] == [(False, False), (False, True), (True, True)]
    assert "result.json: not JSON" in told[0].error
    assert told[0].error.isprintable()
    assert "differs" in to_csv(told[1].table)
    assert told[1].table.legend[-1] == "not verified"
    assert "name the data with --data" in outcomes(honest)[0].error
    (moved,) = outcomes(place(tmp_path / "moved", files, encoder="openai__whisper-base"), data=data)
    assert "its content belongs to results/org__short/1/" in moved.error
    with pytest.raises(ResultError, match="holds no results: give the folder of a submission"):
        find_results(tmp_path / "none")


def test_records_of_a_clone_are_compared_with_their_submissions(made, verified, written, data, tmp_path, monkeypatch):
    submission = made["a_coat"]
    place(tmp_path, submission.files)
    folder = tmp_path / verification_folder(verified["a_coat"])

    def write(files):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)

    write(written)
    monkeypatch.delenv("AUDIO_COMPOSITIONALITY_SECRET", raising=False)
    entry, record = outcomes(tmp_path, data=data)
    assert entry.verified
    assert record.table.legend == ("consistent with its submission; signature not checked",)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_SECRET", SECRET)
    assert outcomes(folder)[0].table.legend == ("consistent with its submission; signed by the checker",)
    monkeypatch.setenv("AUDIO_COMPOSITIONALITY_SECRET", SECRET[::-1])
    assert outcomes(folder)[0].error.endswith("verification.json: its signature is not the checker's")
    write(record_of(written, submission, claiming(submission.files, null=0.0)))
    assert "it verifies nothing, since null is" in outcomes(folder)[0].error
    (tmp_path / submission.folder / "result.json").unlink()
    assert f"its submission {submission.folder} cannot be used: it has no result.json" in outcomes(folder)[0].error
    folder.rename(tmp_path / "record")
    assert "its submission cannot be found" in outcomes(tmp_path / "record")[0].error
