"""Submissions of tasks that score answers: their raw texts stand beside the result, and every number is theirs."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from submissions import read_samples, with_json, with_samples

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.run.store import AnswerStore
from audio_compositionality.evaluator.submissions import making
from audio_compositionality.evaluator.submissions.copies import Earlier, duplicates_of
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.outputs import MAX_ANSWER, RawAnswers, question_ids
from audio_compositionality.evaluator.submissions.record import parse_verification
from audio_compositionality.evaluator.submissions.submission import (
    outputs_problem,
    parse_submission,
    read_submission,
    submission_problem,
)
from audio_compositionality.evaluator.submissions.verification import (
    verification_files,
    verification_table,
    verify,
    verify_local,
    verify_paths,
)
from audio_compositionality.tasks.registry import load_task

NAME = "answers.jsonl"
MODELS = ("blind", "oracle", "first")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with results of answerers, in ``results``, what they answered, in ``store``, and the ``data``."""
    folder = tmp_path_factory.mktemp("answered")
    data = rendered_preset("mini", recipes=["polybench"], train_sets=2, test_sets=2)
    build_dataset(data, folder / "data", recipes=["polybench"], workers=1, progress=False)
    options = RunOptions(out=folder / "results", store=folder / "store", device="cpu", progress=False)
    evaluate_models([load_model(name) for name in MODELS], data, [load_task("polybench")], options)
    return folder


def result_path(folder: Path, model: str) -> Path:
    (path,) = (folder / "results" / model).glob("*/polybench.json")
    return path


@pytest.fixture(scope="module")
def data():
    return rendered_preset("mini", recipes=["polybench"], train_sets=2, test_sets=2)


@pytest.fixture(scope="module")
def made(folder, data):
    how = {"store": folder / "store", "device": "cpu", "progress": False}
    return {name: make_submission(result_path(folder, name), data, **how) for name in MODELS}


@pytest.fixture(scope="module")
def verified(folder):
    return lambda files: verify(parse_submission(files), data=folder / "data", device="cpu")


def lines_of(files) -> list[dict[str, str]]:
    return [json.loads(line) for line in files[NAME].splitlines()]


def with_lines(files, lines) -> dict[str, bytes]:
    return {**files, NAME: "".join(json.dumps(line) + "\n" for line in lines).encode()}


# ----- making


@pytest.mark.parametrize("model", MODELS)
def test_answers_are_sent_word_for_word_and_verified(made, verified, model, data):
    submission = made[model]
    assert sorted(submission.files) == [NAME, "result.json", "samples.csv"]
    rows = [row["id"] for row in data.configuration("polybench").rows if row["split"] == "test"]
    assert [line["id"] for line in lines_of(submission.files)] == rows == list(submission.samples.ids)
    assert submission.result.score == submission.local.score
    verification = verified(submission.files)
    assert verification.verified, verification.problems
    assert verification.recomputed.measures == submission.result.measures
    assert verification.recomputed.intervals == submission.result.intervals
    assert all(difference.tolerance is not None for difference in verification.differences)
    table = verification_table(verification, "here")
    assert "verified: " in table.legend[-1]


def test_the_same_result_gives_the_same_bytes_and_no_model_is_run(made, folder, data, monkeypatch, tmp_path):
    def never(*_):
        raise AssertionError("the model was run")

    monkeypatch.setattr("audio_compositionality.tasks.answerers.text_only.Blind.answer", never)
    how = {"device": "cpu", "progress": False}
    again = make_submission(result_path(folder, "blind"), data, store=folder / "store", **how)
    assert (again.id, again.files) == (made["blind"].id, made["blind"].files)
    bare = make_submission(result_path(folder, "blind"), data, store=tmp_path, with_outputs=False, **how)
    assert sorted(bare.files) == ["result.json", "samples.csv"]


def test_a_local_result_is_verified_from_the_store_and_says_what_is_missing(folder, tmp_path):
    options = {"data": folder / "data", "store": folder / "store", "device": "cpu"}
    (outcome,) = verify_paths([result_path(folder, "blind")], **options)
    assert outcome.verified, outcome
    with pytest.raises(ResultError, match=r"lacks (\d) of \1 files of the answers of blind: --store says"):
        verify_local(result_path(folder, "blind"), **{**options, "store": tmp_path})


def test_what_a_submission_cannot_hold_is_replaced_or_refused(made, folder, data, monkeypatch):
    how = {"store": folder / "store", "device": "cpu", "progress": False}
    path, load = result_path(folder, "oracle"), AnswerStore.load
    answers = list(made["oracle"].answers.texts)

    def given(*texts):
        monkeypatch.setattr(AnswerStore, "load", lambda self: replace(load(self), answers=(*texts, *answers[1:])))
        return make_submission(path, data, **how)

    assert given("\x1b[2J\ud800\tno\n\N{EURO SIGN}").answers.texts[0] == "\ufffd[2J\ufffd\tno\n\N{EURO SIGN}"
    with pytest.raises(ResultError, match=r"has 20,001 characters, at most 20,000 can be .* without answers"):
        given("A" * (MAX_ANSWER + 1))
    monkeypatch.setattr(making, "FILE_LIMITS", {"answers.jsonl": 1_000})
    with pytest.raises(ResultError, match=r"its answers have 2,\d+ bytes, at most 1,000 can be submitted"):
        given(answers[0])


def test_each_question_has_its_answer_where_a_sample_is_made_of_two(tmp_path):
    data = rendered_preset("mini", recipes=["polybench_apart"], train_sets=0, test_sets=1)
    how = {"store": tmp_path / "store", "device": "cpu", "progress": False}
    task = load_task("polybench_apart")
    evaluate_models([load_model("oracle")], data, [task], RunOptions(out=tmp_path / "results", **how))
    (path,) = (tmp_path / "results").rglob("polybench_apart.json")
    submission = make_submission(path, data, **how)
    assert len(submission.answers.ids) == 2 * len(submission.samples.ids)
    assert submission_problem(parse_submission(submission.files), open_task(task, data)) is None
    assert submission.result.measures == submission.local.measures


def test_questions_asked_in_several_orders_are_named_one_by_one(data, folder, tmp_path):
    """A submission may have other settings than by default where its task says so, and is verified with them."""
    requested = {"orders": "cyclic", "scoring": "letters"}
    opened = open_task(load_task("polybench"), data, requested)
    tested = [row for row in data.configuration("polybench").rows if row["split"] == "test"]
    ids = question_ids(opened)
    assert ids[:2] == [f"{tested[0]['id']}?0", f"{tested[0]['id']}?1"]
    assert len(set(ids)) == len(ids) == len(opened.prompts) == sum(len(row["options"]) for row in tested)
    options = RunOptions(out=tmp_path, store=tmp_path, device="cpu", progress=False, settings=requested)
    evaluate_models([load_model("blind")], data, [load_task("polybench")], options)
    (path,) = tmp_path.rglob("polybench.json")
    submission = make_submission(path, data, store=tmp_path, device="cpu", progress=False)
    assert submission.answers.ids == tuple(ids)
    verification = verify(parse_submission(submission.files), data=folder / "data", device="cpu")
    assert verification.verified, verification.problems
    assert verification.recomputed.settings["orders"] == "cyclic"
    assert verify_local(path, data=folder / "data", store=tmp_path, device="cpu").verified
    for name, value, words in (
        ("orders", "cyclical", "its settings are not valid for polybench: .*orders is 'cyclical'"),
        ("prompt", ["direct"], "its setting prompt is .*which polybench does not take"),
        ("prompt", "reason", "its settings are not valid for polybench: .*the prompt 'reason'"),
    ):
        settings = {**submission.result.settings, name: value}
        files = with_json(submission.files, settings=settings)
        with pytest.raises(ResultError, match=words):
            verify(parse_submission(files), data=folder / "data", device="cpu")


# ----- what is not so


def false_claims(made, data):
    """Of each false claim its files, and a part of a problem."""
    first, blind = made["first"].files, made["blind"].files
    lines = lines_of(made["oracle"].files)
    lines[5]["answer"] = "B" if lines[5]["answer"] == "A" else "A"
    yield with_lines(made["oracle"].files, lines), "accuracy_micro is 1 in the claim and 0."
    # Another option of a wrong answer: the scores stay; which option was taken does not.
    lines, rows = lines_of(first), [row for row in data.configuration("polybench").rows if row["split"] == "test"]
    place, letter = next(
        (place, "ABCD"[number])
        for place, row in enumerate(rows)
        for number in range(1, len(row["options"]))
        if row["options"][0] != row["answer"] != row["options"][number]
    )
    lines[place]["answer"] = letter
    yield with_lines(first, lines), f"choice of {rows[place]['id']} is 0"
    choice = read_samples(blind)["choice"].copy()
    choice[3] += 1
    yield with_samples(blind, choice=choice), "choice of "
    measures = made["blind"].result.measures
    for name in ("macro_f1_counting", "without_listening", "refused"):
        yield with_json(blind, measures=measures | {name: (measures[name] or 0) + 1e-5}), name
    lines = lines_of(blind)
    id, count = lines[0]["id"], len(lines)
    yield with_lines(blind, lines[1:]), f"it has answers to {count - 1} questions, the data have {count}: none to {id}"
    more = with_lines(blind, [*lines, {"id": "other", "answer": "A"}])
    yield more, "it has an answer to other, which is not a question of the data"
    yield with_lines(blind, lines[::-1]), "its answers are in another order than the questions of the data"
    yield {name: content for name, content in blind.items() if name != NAME}, "it has no answers"


def test_false_claims_are_noticed(made, verified, data):
    for files, part in false_claims(made, data):
        problems = verified(files).problems
        assert any(part in problem for problem in problems), (part, problems)


def test_a_result_that_is_not_of_its_samples_and_outputs_of_two_kinds_are_refused(made, small_data):
    files = made["blind"].files
    measures, task = made["blind"].result.measures, read_samples(files)["task"].copy()
    task[[0, -1]] = task[[-1, 0]]
    for other, message in (
        (with_json(files, measures=measures | {"accuracy": measures["accuracy"] + 1e-5}), "the accuracy of the result"),
        (with_samples(files, task=task), r"samples\.csv: the mean of"),
        (
            {**files, "embeddings.safetensors": b"?"},
            r"it holds embeddings\.safetensors and answers\.jsonl; a submission",
        ),
    ):
        with pytest.raises(ResultError, match=message):
            parse_submission(other)
    problem = outputs_problem(parse_submission(files), open_task(load_task("a_coat"), small_data))
    assert problem == "a_coat scores embeddings, which stand in embeddings.safetensors; it has answers"


GOOD = '{"id": "q", "answer": "A"}\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        (GOOD.rstrip(), "its last line is incomplete"),
        (GOOD + "\n", "line 2: not JSON"),
        (GOOD * 2, "it has 2 answers to q; each question has one"),
        (GOOD.replace('"A"', '"\N{EURO SIGN}"'), "byte 24 is not ASCII"),
        (GOOD.replace('"A"', "NaN"), "line 1: not the JSON of this project: it has NaN"),
        (GOOD.replace('"A"', "1e999"), "line 1: its answer is inf; it must be a text"),
        (GOOD.replace('"A"', "null"), "line 1: its answer is None; it must be a text"),
        (GOOD.replace('"A"', '["A"]'), "line 1: its answer is .'A'.; it must be a text"),
        (GOOD.replace('"A"', '"\x00"'), "line 1: not JSON"),
        (GOOD.replace('"A"', '"\\u0000"'), r"line 1: its answer has the character U\+0000"),
        (GOOD.replace('"A"', '"\\u001b[2J"'), r"U\+001B"),
        (GOOD.replace('"A"', '"\\u009b"'), r"U\+009B"),
        (GOOD.replace('"A"', '"\\ud800"'), r"U\+D800"),
        (GOOD.replace('"A"', f'"{"A" * 20_001}"'), "its answer has 20,001 characters; at most 20,000 are allowed"),
        (GOOD.replace('"q"', f'"{"q" * 301}"'), "its id has 301 characters"),
        (GOOD.replace('"q"', '""'), "line 1: its id is ''; it must have one or more printable characters"),
        (GOOD.replace('"q"', '"a\\nb"'), "its id is 'a.+b'; it must have one or more printable"),
        (GOOD.replace('"q"', '"\\u202e"'), "it must have one or more printable characters"),
        (GOOD.replace("}", ', "score": 1}'), "it must be an object with id and answer, and nothing else"),
        ('{"id": "q"}\n', "it must be an object with id and answer"),
        (GOOD.replace('"id"', '"answer"'), "it has a name twice"),
        ('"q"\n', "it must be an object"),
        ("[" * 100_000 + "\n", "nested too deep|not JSON"),
        (GOOD.replace(": ", ":"), "line 1: it is not written as `submit` writes it"),
        (GOOD.replace('"A"', '"\\u0041"'), "it is not written as"),
        (GOOD.replace('"A"', '"\\uD83D\\uDE00"'), "it is not written as"),
        (GOOD.replace("\n", "\r\n"), "it is not written as"),
    ],
)
def test_hostile_files_say_what_is_wrong(content, message):
    with pytest.raises(ResultError, match=message):
        RawAnswers.loads(content.encode())


def test_any_text_of_a_model_is_read_as_it_was_sent():
    texts = ("A", "", "a\nb\tc\r\n", "\N{GRINNING FACE} \u202e\u2028 \ufffd", '"}\n{"', "<script>")
    answers = RawAnswers.of([str(place) for place in range(len(texts))], texts)
    assert RawAnswers.loads(answers.dumps()) == answers
    assert answers.texts == texts


def test_too_large_a_file_is_refused_before_it_is_read(made, tmp_path):
    for name, content in made["blind"].files.items():
        (tmp_path / name).write_bytes(content)
    os.truncate(tmp_path / NAME, 2**40)
    with pytest.raises(ResultError, match=r"answers\.jsonl has 1,099,511,627,776 bytes; at most 16,000,000 are"):
        read_submission(tmp_path)
    with pytest.raises(ResultError, match=r"answers\.jsonl has 16,000,001 bytes; at most 16,000,000 are allowed"):
        parse_submission({**made["blind"].files, NAME: b" " * 16_000_001})


# ----- the checker's record


def test_the_record_is_of_the_answers(made, verified):
    submission = parse_submission(made["blind"].files)
    verification = verified(submission.files)
    written = verification_files(verification)
    entry = parse_verification(written, None, submission)
    assert entry.record.sketch == verification.sketch
    assert (entry.record.sketch.clips, entry.record.sketch.shape) == (len(submission.answers.ids), None)
    assert set(entry.record.sketch.choices.taken) <= set("ABCD")
    other = replace(submission, answers=RawAnswers.of(submission.answers.ids, ["?"] * len(submission.answers.ids)))
    with pytest.raises(ResultError, match="its sketch is not that of the answers of the submission"):
        parse_verification(written, None, other)


def earlier_of(verification, name="results/there") -> Earlier:
    model = verification.result.model.model_copy(update={"id": "theirs"})
    return Earlier(name, "polybench", model, "2026-01-01T00:00:00+00:00", verification.sketch)


def test_the_same_answers_of_another_model_are_told(made, verified):
    found = {name: verified(made[name].files) for name in ("blind", "first")}
    earlier, model = [earlier_of(found["blind"])], found["blind"].result.model
    (duplicate,) = duplicates_of(found["blind"].sketch, model, earlier)
    assert str(duplicate).startswith("its answers are those of theirs, results/there of 2026")
    assert duplicates_of(found["first"].sketch, model, earlier) == []
    (own,) = duplicates_of(found["blind"].sketch, earlier[0].model, earlier)
    assert own.relation == "weights"


REWRITTEN = {
    "other case": str.lower,
    "blanks": lambda text: f" {text} \n",
    "stop": lambda text: f"{text}.",
    "blank behind": lambda text: f"{text} ",
    "phrase": lambda text: f"I think that it is {text}",
    "long phrase": lambda text: f"Having listened to the clip, my answer is: **{text}**",
    "brackets": lambda text: f"({text})",
}


@pytest.mark.parametrize("change", [*REWRITTEN, "text for letter"])
@pytest.mark.parametrize("model", ["oracle", "blind"])
def test_answers_that_are_written_otherwise_are_the_same(made, verified, data, model, change):
    """Whatever is around it, the choice counts: of an oracle too, whose copies were verified at 1.0."""
    lines = lines_of(made[model].files)
    rows = {row["id"]: row for row in data.configuration("polybench").rows}
    for line in lines:
        options = rows[line["id"]]["options"]
        is_letter = len(line["answer"]) == 1
        text = options["ABCD".index(line["answer"])] if is_letter and change == "text for letter" else line["answer"]
        line["answer"] = text if change == "text for letter" else REWRITTEN[change](text)
    assert lines != lines_of(made[model].files)
    # Unverified are those alone whose sentence is another choice: they do not stand on the board.
    verification = verified(with_lines(made[model].files, lines))
    assert verification.verified, verification.problems
    source = verified(made[model].files)
    (duplicate,) = duplicates_of(verification.sketch, verification.result.model, [earlier_of(source)])
    assert (duplicate.kind, duplicate.relation) == ("near", "other")
    assert str(duplicate).startswith("its answers choose nearly as those of theirs, results/there of 2026-01-01")


def test_constant_answers_are_nobodys(made, verified):
    found = verified(made["first"].files)
    assert set(found.sketch.choices.taken) == {"A"}
    assert duplicates_of(found.sketch, found.result.model, [earlier_of(found)]) == []
