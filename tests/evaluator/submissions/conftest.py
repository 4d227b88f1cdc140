"""Submissions of embeddings of clips (of a task without a fit, and of one whose fit gives other numbers each time), of
embeddings of clips and texts, and of answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from submissions import ShortEncoder

from audio_compositionality.dataset_builder import open_data
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.base import TEXT_ENCODER
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.evaluator.submissions.making import make_submission
from audio_compositionality.evaluator.submissions.submission import parse_submission
from audio_compositionality.evaluator.submissions.verification import verify as verify_submission
from audio_compositionality.tasks import registry
from audio_compositionality.tasks.base import Inputs, Measure, Scores, independent_samples

from ..run.toys import Task
from .guess import Guess

TASKS, ANSWERERS = ("a_coat", "guess"), ("blind", "oracle", "first")
QUIET = {"device": "cpu", "progress": False}


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


# Of a module, not of the session: the tests of other rooms are not to know the tasks.
@pytest.fixture(scope="module")
def guess() -> Iterator[Guess]:
    for task in (Guess(), said := Said()):
        registry.register_task(task)
    yield registry.load_task("guess")
    for name in ("guess", said.info.name):
        registry._TASKS._added.pop(name, None)


@pytest.fixture(scope="module")
def evaluated(small_data, guess, tmp_path_factory) -> Path:
    """A folder with results of the encoders, in ``results``, and what they were computed from, in ``store``."""
    folder = tmp_path_factory.mktemp("evaluated")
    options = RunOptions(out=folder / "results", cache=folder / "store", **QUIET)
    evaluate_models([ShortEncoder()], small_data, [registry.load_task(name) for name in TASKS], options)
    evaluate_models([Reader()], small_data, [registry.load_task("said")], options)
    return folder


@pytest.fixture(scope="module")
def data(small_data, tmp_path_factory) -> Path:
    """The data as a built folder."""
    folder = tmp_path_factory.mktemp("data") / "small"
    build_dataset(small_data, folder, recipes=["a_coat"], workers=1, progress=False)
    return folder


@pytest.fixture(scope="module")
def make(evaluated, small_data):
    """`make(task, data=small, **changes)`: a submission of a local result."""

    def make(task="a_coat", data=small_data, model="org__short", **changes):
        path = evaluated / "results" / model / "1" / f"{task}.json"
        return make_submission(path, data, **{"cache": evaluated / "store", **QUIET, **changes})

    return make


@pytest.fixture(scope="module")
def made(make):
    return {task: make(task) for task in TASKS}


@pytest.fixture
def files(made):
    return dict(made["a_coat"].files)


@pytest.fixture(scope="module")
def of_texts(make):
    return make("said", model="org__reader")


@pytest.fixture(scope="module")
def questions():
    return rendered_preset("mini", recipes=["polybench"], train_sets=2, test_sets=2)


@pytest.fixture(scope="module")
def asked(questions, tmp_path_factory) -> Path:
    """As `evaluated`, of answerers; and the questions as a built folder, ``data``."""
    folder = tmp_path_factory.mktemp("answered")
    build_dataset(questions, folder / "data", recipes=["polybench"], workers=1, progress=False)
    options = RunOptions(out=folder / "results", cache=folder / "store", **QUIET)
    evaluate_models([load_model(name) for name in ANSWERERS], questions, [registry.load_task("polybench")], options)
    return folder


@pytest.fixture(scope="module")
def remake(asked, questions):
    """`remake(model, **changes)`: a submission of an answerer's result."""

    def remake(model, **changes):
        (path,) = (asked / "results" / model).glob("*/polybench.json")
        return make_submission(path, questions, cache=asked / "store", **QUIET, **changes)

    return remake


@pytest.fixture(scope="module")
def answered(remake):
    return {name: remake(name) for name in ANSWERERS}


@pytest.fixture(scope="module")
def verify(data, asked):
    """`verify(files)`: of the files of a submission; the data are opened once."""

    def verify(files):
        submission = parse_submission(files)
        where = asked / "data" if submission.result.task == "polybench" else data
        return verify_submission(submission, data=where, device="cpu")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(open_data, "reopened_data", cache(open_data.reopened_data))
        yield verify


def lines_of(files) -> list[dict[str, str]]:
    return [json.loads(line) for line in files["answers.jsonl"].splitlines()]


def with_lines(files, lines) -> dict[str, bytes]:
    return {**files, "answers.jsonl": "".join(json.dumps(line) + "\n" for line in lines).encode()}
