"""Making submissions of embeddings of clips and of texts, and of answers; no model is run."""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from submissions import ShortEncoder, read_embeddings, read_samples, sha256sum

from audio_compositionality.dataset_builder import recorded
from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.run.cache import AnswerCache
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions import making, outputs
from audio_compositionality.evaluator.submissions.layout import id_of, sha256_by_name
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.submission import (
    data_with,
    parse_submission,
    policy_problem,
    scoring_command,
)
from audio_compositionality.tasks.registry import load_task

from .conftest import Reader, lines_of


def test_the_id_is_made_of_what_sha256sum_prints(made, tmp_path):
    submission = made["guess"]
    for name, content in submission.files.items():
        (tmp_path / name).write_bytes(content)
    printed = subprocess.run("sha256sum *", shell=True, cwd=tmp_path, capture_output=True, check=True).stdout
    assert printed.decode() == sha256sum(submission.files)
    whole = subprocess.run(["sha256sum"], input=printed, capture_output=True, check=True).stdout
    assert submission.id == id_of(sha256_by_name(submission.files)) == whole.decode()[:16]
    assert submission.folder == f"results/org__short/1/guess-{submission.id}"


def test_the_submitted_score_is_that_of_the_rounded_embeddings(made, small_data):
    submission, configuration = made["a_coat"], small_data.configuration("a_coat")
    tensors = read_embeddings(submission.files)
    digest = tensors["clips"].tobytes().hex()
    assert digest == outputs.clips_digest(configuration.clip_ids)
    a, b, c, d = (tensors["values"].astype(np.float64) * tensors["scale"]).reshape(-1, 4, 12).transpose(1, 0, 2)
    u, v = b - a, d - c
    cosines = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    table = read_samples(submission.files)
    assert table["score"] == pytest.approx(cosines, abs=1e-12)
    assert table["id"] == [row["id"] for row in configuration.rows]
    assert submission.result.score == pytest.approx(cosines.mean(), abs=1e-12) != submission.local.score
    assert submission.local.score == pytest.approx(submission.result.score, abs=1e-4)


@pytest.mark.parametrize("mean", [0.0, 1e4])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_rounding_is_within_the_bounds_of_float16_about_the_mean(mean, size):
    z = ((mean + np.random.default_rng(0).normal(size=(50, 7))) * size).astype(np.float32)
    rounded = outputs.RoundedEmbeddings.of([str(place) for place in range(50)], z)
    apart = z.astype(np.float64) - z.astype(np.float64).mean(axis=0)
    # Unit roundoff of 11 bits is 2^-11; the subnormal step of numbers below 2^15 is 2^-24, half of it 2^-25 - 15 - 1.
    bound = np.maximum(np.abs(apart) * 2.0**-11, np.abs(apart).max() * 2.0**-39) + np.abs(z).max() * 2.0**-40
    assert (np.abs(rounded.restored() - z) <= bound).all()
    assert np.abs(rounded.values).max() >= 2**13
    again = outputs.RoundedEmbeddings.loads(rounded.dumps())
    assert (again.restored() == rounded.restored()).all()
    assert (again.clips, again.scale) == (rounded.clips, rounded.scale)


def test_texts_stand_behind_the_clips_rounded_about_their_own_mean(of_texts, small_data):
    rows, embeddings = small_data.configuration("a_coat").rows, of_texts.embeddings
    texts = Reader().embed_text(["one sound", *(f"{len(row['metadata']['A'])} sounds in {row['id']}" for row in rows)])
    assert (embeddings.texts, len(embeddings.values)) == (len(texts), len(rows) + len(texts))
    assert np.abs(embeddings.restored()[len(rows) :] - texts).max() < 0.01
    again = outputs.RoundedEmbeddings.loads(of_texts.files["embeddings.safetensors"])
    assert (again.restored() == embeddings.restored()).all()
    assert of_texts.local.score == pytest.approx(of_texts.result.score, abs=0.01)


def test_a_control_of_texts_takes_its_clips_from_the_cache_of_the_model(of_texts, small_data, tmp_path):
    how = {"cache": tmp_path / "z", "progress": False, "device": "cpu"}
    control = Controlled(Reader(), CONTROLS["sorted-words"])
    evaluate_models([control], small_data, [load_task("said")], RunOptions(out=tmp_path / "out", **how))
    (path,) = (tmp_path / "out").rglob("said.json")
    made, clips = make_submission(path, small_data, **how), -of_texts.embeddings.texts
    assert made.result.model.id == "sorted-words:org/reader"
    assert (made.embeddings.restored()[:clips] == of_texts.embeddings.restored()[:clips]).all()


def test_what_is_about_the_model_stays_and_what_is_stated_is_added(make, made, evaluated, data):
    local, sent = made["guess"].local, made["guess"].result
    assert local == load_result(evaluated / "results/org__short/1/guess.json")[0]
    for name in ("date", "versions", "seconds", "fingerprint", "rows_digest", "settings", "model", "device"):
        assert getattr(local, name) == getattr(sent, name)
    stated = make(paradigm="supervised", licence="mit").result.model
    assert (stated.paradigm, stated.licence) == ("supervised", "mit")
    with pytest.raises(ResultError, match="the paradigm is"):
        make(paradigm="super\nvised")
    assert make("a_coat").files == made["a_coat"].files
    # Folders of the submitter are not told.
    assert make(data=open_data(data)).result.dataset == "small"
    bare = make(with_outputs=False, cache=evaluated / "nowhere")
    assert sorted(bare.files) == ["result.json", "samples.csv"]
    assert (bare.result, bare.embeddings) == (bare.local, None)


def test_what_cannot_be_submitted_says_what_to_do(make, made, small_data, tiny_data, guess, tmp_path, monkeypatch):
    with pytest.raises(
        ResultError,
        match=r"(\d) of \1 files of its embeddings .*--cache.* --data DATA --force`",
    ):
        make(cache=tmp_path)
    with pytest.raises(ResultError, match="give the data it was computed from"):
        make(data=tiny_data)
    with monkeypatch.context() as patched:
        patched.setitem(vars(small_data.configuration("a_coat")), "rows_digest", "0" * 64)
        with pytest.raises(
            ResultError, match=r"its rows have the digest \w{12}…, .* now have 000000000000…. Score it again"
        ):
            make()
    monkeypatch.setattr(making, "FILE_LIMITS", {"embeddings.safetensors": 1_151})
    with pytest.raises(ResultError, match=r"have 1,152 bytes.*without embeddings the result can be submitted"):
        make()
    opened, result = open_task(guess, small_data), made["guess"].result
    other = result.model_copy(update={"settings": {"seeds": [False, True, 2], "share": 0.5}})
    command = "Score it again: `audio-compositionality evaluate org/short --tasks guess --data DATA --force`"
    has = "seeds = [false, true, 2]; a submission needs seeds = [0, 1, 2]"
    assert policy_problem(other, opened) == f"its settings are {has}. {command}"
    once = result.model_copy(update={"settings": {"seeds": [0], "share": 0.5}})
    needs = "a submission needs seeds = [0, 1, 2] (the default of `evaluate`)"
    has = f"seeds = [0] (one fit, the default of `run`); {needs}"
    assert policy_problem(once, opened) == f"its settings are {has}. {command}"
    monkeypatch.setattr(guess, "info", replace(guess.info, version=2))
    assert policy_problem(result, opened) == f"it is of version 1 of guess, this is version 2. {command}"


@pytest.mark.parametrize(
    ("id", "revision", "words"),
    [
        ("whisper-base", "1", "whisper-base --tasks guess --data DATA --force`"),
        ("untrained:whisper-base", "seed-0", "untrained:whisper-base --tasks guess --data DATA --force`"),
        ("untrained:whisper-base", "seed-12-0", "untrained:whisper-base .* --set twin_seeds=12 --force`"),
        ("whisper-base", "sha256-00", "MODEL .*`, where MODEL is the name"),
        ("compa-clap-tiny", "sha256-00", "compa-clap-tiny .* --force`$"),
        (
            "sorted-words:untrained:Mine",
            "seed-0-source-00",
            "sorted-words:untrained:FILE.py:CLASS .*`, where FILE.py:CLASS is the name of Mine ",
        ),
        ("reversed-audio:mine", "sha256-00", "reversed-audio:MODEL .*`, where MODEL is the name of mine that"),
    ],
)
def test_the_command_that_scores_again_has_the_name_of_the_model(made, small_data, guess, id, revision, words):
    opened, result = open_task(guess, small_data), made["guess"].result
    of_model = result.model_copy(update={"model": result.model.model_copy(update={"id": id, "revision": revision})})
    assert re.match(f"`audio-compositionality evaluate {words}", scoring_command(of_model, opened))
    options = result.model.options.model_copy(update={"layer": 3, "pooling": "max"})
    layered = result.model_copy(update={"model": result.model.model_copy(update={"options": options})})
    assert " --layer 3 --set pooling=max --force`" in scoring_command(layered, opened)


@pytest.mark.parametrize(
    ("id", "fails", "message"),
    [
        ("org/short", True, "leaves out .* clips, such as a_coat-test-00000/A"),
        ("<b>org</b>", False, r"model\.id is '<b>org</b>'; in a submission it has"),
        # Each slash becomes two characters.
        ("a" + "/a" * 74, False, "as a part of a path it has 223 bytes; at most 200 are allowed"),
    ],
)
def test_skipped_clips_and_names_that_mislead_cannot_be_submitted(small_data, tmp_path, id, fails, message):
    class Named(ShortEncoder):
        card = replace(ShortEncoder.card, id=id)

        def embed(self, waveforms, sample_rate):
            embeddings = super().embed(waveforms, sample_rate)
            embeddings[np.isclose(embeddings[:, 0], loudest)] = np.nan
            return embeddings

    first = next(small_data.configuration("a_coat").clips(range(1)))
    loudest = ShortEncoder().embed(first.waveform[None], first.sample_rate)[0, 0] if fails else np.inf
    how = {"cache": tmp_path / "z", "progress": False, "device": "cpu"}
    options = RunOptions(out=tmp_path / "out", skip_invalid=fails, **how)
    evaluate_models([Named()], small_data, [load_task("a_coat")], options)
    (path,) = (tmp_path / "out").rglob("a_coat.json")
    with pytest.raises(ResultError, match=message):
        make_submission(path, small_data, **how)


def test_presets_are_known_by_their_fingerprint_and_other_data_have_to_be_named(small_data, data):
    fingerprint = open_data("mini").configuration("a_coat").fingerprint
    assert data_with("a_coat", fingerprint).source == "mini"
    small = small_data.configuration("a_coat").fingerprint
    with pytest.raises(ResultError, match=r"no preset has.*name the data with --data"):
        data_with("a_coat", small)
    assert data_with("a_coat", small, data).configuration("a_coat").fingerprint == small
    with pytest.raises(ResultError, match="which neither a preset"):
        data_with("a_coat", "0" * 64, data)


def test_recordings_that_were_scored_with_settings_are_given_as_a_file_with_them(tmp_path, monkeypatch):
    # All recipes take minutes.
    recipes = {name: load_recipe(name) for name in ("a_coat_instances", "count_instances")}
    monkeypatch.setattr(recorded, "recorded_recipes", lambda: recipes)
    rng, folder = np.random.default_rng(0), tmp_path / "animals"
    for label in ("cat", "cow", "dog", "owl"):
        (folder / label).mkdir(parents=True)
        for number in range(4):
            soundfile.write(folder / label / f"{number}.wav", 0.1 * rng.normal(size=16_000), 16_000)
    remedy = r"\. If it was scored with --set, .* `audio-compositionality data .*animals --set NAME=VALUE --write data"
    with warnings.catch_warnings(action="error"):
        with pytest.raises(DatasetError, match=f"no data of 'a_coat_instances': .* 4 labels; .* 12: .*{remedy}"):
            data_with("a_coat_instances", "0" * 64, folder)
        with pytest.raises(ResultError, match=f"which neither a preset .* nor .* has{remedy}"):
            data_with("count_instances", "0" * 64, folder)
    path = folder.with_suffix(".yaml")
    path.write_text("data: animals\nsettings: {classes: 2, context_sources: 1}\n")
    with pytest.raises(ResultError, match="which neither a preset") as caught:
        data_with("a_coat_instances", "0" * 64, path)
    assert "no data of" not in str(caught.value)


# ----- answers


def test_answers_are_sent_word_for_word_and_no_model_is_run(answered, remake, questions, monkeypatch):
    monkeypatch.setattr("audio_compositionality.tasks.answerers.text_only.Blind.answer", None)
    submission = remake("blind")
    assert (submission.id, submission.files) == (answered["blind"].id, answered["blind"].files)
    rows = [row["id"] for row in questions.configuration("polybench").rows if row["split"] == "test"]
    assert [line["id"] for line in lines_of(submission.files)] == rows == list(submission.samples.ids)
    assert submission.result.score == submission.local.score
    assert sorted(remake("blind", with_outputs=False).files) == ["result.json", "samples.csv"]


def test_what_a_submission_cannot_hold_is_replaced_or_refused(answered, remake, monkeypatch):
    load, answers = AnswerCache.load, list(answered["oracle"].answers.texts)

    def given(text):
        monkeypatch.setattr(AnswerCache, "load", lambda self: replace(load(self), answers=(text, *answers[1:])))
        return remake("oracle")

    assert given("\x1b[2J\ud800\tno\n\N{EURO SIGN}").answers.texts[0] == "\ufffd[2J\ufffd\tno\n\N{EURO SIGN}"
    with pytest.raises(ResultError, match=r"has 20,001 characters, at most 20,000 can be .* without answers"):
        given("A" * (outputs.MAX_ANSWER + 1))
    monkeypatch.setattr(making, "FILE_LIMITS", {"answers.jsonl": 1_000})
    with pytest.raises(ResultError, match=r"its answers have 2,\d+ bytes, at most 1,000 can be submitted"):
        given(answers[0])


def test_questions_asked_several_times_are_named_one_by_one(questions, tmp_path):
    opened = open_task(load_task("polybench"), questions, {"orders": "cyclic", "scoring": "letters"})
    tested = [row for row in questions.configuration("polybench").rows if row["split"] == "test"]
    ids = outputs.question_ids(opened)
    assert ids[:2] == [f"{tested[0]['id']}?0", f"{tested[0]['id']}?1"]
    assert len(set(ids)) == len(ids) == len(opened.prompts) == sum(len(row["options"]) for row in tested)
    data = rendered_preset("mini", recipes=["polybench_apart"], train_sets=0, test_sets=1)
    how = {"cache": tmp_path / "store", "device": "cpu", "progress": False}
    evaluate_models([load_model("oracle")], data, [load_task("polybench_apart")], RunOptions(out=tmp_path / "o", **how))
    (path,) = (tmp_path / "o").rglob("polybench_apart.json")
    submission = make_submission(path, data, **how)
    assert len(submission.answers.ids) == 2 * len(submission.samples.ids)
    assert parse_submission(submission.files).result.measures == submission.local.measures


def test_any_text_of_a_model_is_read_as_it_was_sent():
    texts = ("A", "", "a\nb\tc\r\n", "\N{GRINNING FACE} \u202e\u2028 \ufffd", '"}\n{"', "<script>")
    answers = outputs.RawAnswers.of([str(place) for place in range(len(texts))], texts)
    assert outputs.RawAnswers.loads(answers.dumps()) == answers
    assert answers.texts == texts
    assert json.loads(answers.dumps().splitlines()[2])["answer"] == texts[2]
