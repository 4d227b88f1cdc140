"""Submissions of tasks that score texts too: their embeddings stand behind those of the clips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save
from submissions import ShortEncoder

from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.encoders.base import TEXT_ENCODER
from audio_compositionality.evaluator.results.strict import ResultError
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.outputs import RoundedEmbeddings
from audio_compositionality.evaluator.submissions.submission import parse_submission
from audio_compositionality.evaluator.submissions.verification import verification_files, verify, verify_local
from audio_compositionality.tasks import registry
from audio_compositionality.tasks.base import Inputs, Measure, Scores, independent_samples

from ..run.toys import Task

NAME = "embeddings.safetensors"


class Reader(ShortEncoder):
    """Embeds texts far from clips: rounded about one mean of both, nothing of them would be left."""

    card = replace(ShortEncoder.card, id="org/reader")

    def embed_text(self, texts):
        rng = [np.random.default_rng(list(text.encode())) for text in texts]
        return np.array([-50_000 + 0.3 * one.normal(size=12) for one in rng], np.float32)


class Said(Task):
    """Cosine of the first clip, less the mean of clips, with a text, less the mean of texts."""

    def __init__(self):
        measures = (Measure("said", "said", "mean cosine", column="score"),)
        super().__init__(name="said", recipe="a_coat", needs=TEXT_ENCODER, measures=measures, ranks_by="said")

    def inputs(self, row, settings):
        return Inputs(clips=("A",), texts=("one sound", f"{len(row['metadata']['A'])} sounds in {row['id']}"))

    def score(self, rows, outputs, settings, device, progress):
        clips, texts = (np.asarray(part, np.float64) for part in (outputs.clips, outputs.texts[1::2]))
        clips, texts = clips - clips.mean(axis=0), texts - texts.mean(axis=0)
        cosines = (clips * texts).sum(1) / np.linalg.norm(clips, axis=1) / np.linalg.norm(texts, axis=1)
        return Scores({"said": float(cosines.mean())}, tuple(row["id"] for row in rows), {"score": cosines})

    def samples(self, rows):
        return independent_samples(rows)


@pytest.fixture(scope="module")
def said():
    task = Said()
    registry.register_task(task)
    yield task
    registry._TASKS._added.pop("said")


@pytest.fixture(scope="module")
def folder(said, small_data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("said")
    options = RunOptions(out=folder / "results", store=folder / "store", device="cpu", progress=False)
    evaluate_models([Reader()], small_data, [said], options)
    build_dataset(small_data, folder / "data", recipes=["a_coat"], workers=1, progress=False)
    return folder


@pytest.fixture(scope="module")
def submission(folder, small_data):
    path = folder / "results" / "org__reader" / "1" / "said.json"
    return make_submission(path, small_data, store=folder / "store", device="cpu", progress=False)


def test_texts_stand_behind_the_clips_each_once_rounded_about_their_own_mean(submission, small_data):
    rows = small_data.configuration("a_coat").rows
    tensors = load(submission.files[NAME])
    assert tensors["values"].shape == (len(rows) + 1 + len(rows), 12)
    assert submission.embeddings.texts == len(rows) + 1
    texts = Reader().embed_text(["one sound", *(f"{len(row['metadata']['A'])} sounds in {row['id']}" for row in rows)])
    restored = submission.embeddings.restored()[len(rows) :]
    assert np.abs(restored - texts).max() < 0.01
    assert submission.local.score == pytest.approx(submission.result.score, abs=0.01)
    again = RoundedEmbeddings.loads(submission.files[NAME])
    assert (again.restored() == submission.embeddings.restored()).all()
    assert again.dumps() == submission.files[NAME]


def test_an_honest_submission_is_verified_and_a_changed_text_is_not(submission, folder):
    parsed = parse_submission(submission.files)
    verification = verify(parsed, data=folder / "data", device="cpu")
    assert verification.verified, verification.problems
    assert set(verification_files(verification)) == {"verification.json", "result.json", "samples.csv"}
    tensors = load(submission.files[NAME])
    tensors["values"] = tensors["values"].copy()
    tensors["values"][-1] *= -1
    changed = save(tensors, {"clips": f"{parsed.embeddings.clips} {parsed.embeddings.texts}"})
    lying = parse_submission({**submission.files, NAME: changed})
    problems = verify(lying, data=folder / "data", device="cpu").problems
    assert any(problem.startswith("said is") for problem in problems)


def test_other_texts_and_other_numbers_of_texts_are_refused(submission, folder):
    embeddings = submission.embeddings
    for other, message in (
        (replace(embeddings, clips="0" * 64), "its embeddings are of other clips and texts than those of the data"),
        (replace(embeddings, texts=3), "its embeddings are of other clips and texts than those of the data"),
        (
            replace(embeddings, values=embeddings.values[:-1]),
            "it has embeddings of 24 clips and texts, the data have 25",
        ),
    ):
        lying = parse_submission({**submission.files, NAME: other.dumps()})
        (problem,) = verify(lying, data=folder / "data", device="cpu").problems
        assert problem.startswith(message)


@pytest.mark.parametrize("stated", ["{} 25", "{} 0", "{} -1", "{}", "{} 1e3", "{}  5", "{} 5 5", "{} \u0665"])
def test_a_number_of_texts_that_cannot_be_is_refused(submission, stated):
    content = save(load(submission.files[NAME]), {"clips": stated.format(submission.embeddings.clips)})
    with pytest.raises(ResultError, match=r"its metadata are not the SHA-256|of which 25 cannot be of texts"):
        RoundedEmbeddings.loads(content)


@pytest.mark.parametrize(
    ("length", "message"), [(11, r"its text_offset has the shape \(11,\)"), (None, "its metadata are not the SHA-256")]
)
def test_an_offset_of_texts_without_texts_is_refused(submission, length, message):
    tensors = load(submission.files[NAME])
    offset = tensors.pop("text_offset")
    kept = tensors if length is None else tensors | {"text_offset": offset[:length]}
    with pytest.raises(ResultError, match=message):
        RoundedEmbeddings.loads(save(kept, {"clips": f"{submission.embeddings.clips} 13"}))


def test_a_local_result_is_verified_from_the_store_and_says_what_is_missing(folder):
    path = folder / "results" / "org__reader" / "1" / "said.json"
    options = {"data": folder / "data", "store": folder / "store", "device": "cpu"}
    assert verify_local(path, **options).verified
    (shard,) = (folder / "store").rglob("*-texts-*/*.safetensors")
    content = shard.read_bytes()
    shard.unlink()
    with pytest.raises(ResultError, match=r"-texts-.* lacks 1 of 1 files of the embeddings of org/reader"):
        verify_local(path, **options)
    shard.write_bytes(content)
