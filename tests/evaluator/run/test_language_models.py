"""Tiny models that hear and answer, of random weights, through every way to ask: chance, resumed, in any batch."""

from __future__ import annotations

import json
import math
from collections import defaultdict

import numpy as np
import pytest

from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.answers import compute_answers
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.opened import open_task
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task

from ...clips import each
from ...encoders.language_models.tiny import SAVERS
from .asked import Cut

TASK = load_task("polybench")
OPTIONS = RunOptions(progress=False)
FAMILIES = ("qwen2-audio", "audio-flamingo-3", "qwen2.5-omni")

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def data():
    return Cut(1)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    for family in FAMILIES:
        SAVERS[family](root / family)
    return root


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, folders):
    return load_model(str(folders / request.param), device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["letters", "options", "generate"])
def test_random_weights_are_at_chance_and_killed_is_as_uninterrupted(model, data, how, tmp_path):
    settings = {"orders": "cyclic", "scoring": how}
    options = OPTIONS.changed(settings=settings, store=tmp_path / "store", out=tmp_path / "out")
    (result,) = evaluate_models([model], data, [TASK], options)
    measures = result.measures
    # Groups of up to four twins are drawn: the wider error is that of 5 groups, not of 25 questions.
    error = math.sqrt(measures["chance"] * (1 - measures["chance"]) / 5)
    assert abs(measures["accuracy"] - measures["chance"] * (how != "generate" or not measures["unparsed"])) <= 3 * error
    if how != "generate":
        assert (measures["unparsed"], measures["answers"]) == (0, 83)
    files = sorted((tmp_path / "store").rglob("0*.json"))
    assert len(files) == 6
    for path in files[1:4:2]:
        path.unlink()
    (again,) = evaluate_models([model], data, [TASK], options.changed(out=None))
    assert set(again.seconds) == {"embed_rest", "score"}
    assert (again.measures, again.samples_sha256) == (measures, result.samples_sha256)


@pytest.mark.slow
def test_the_letter_is_that_of_the_scores_that_the_model_gives_alone(model, data, tmp_path):
    opened = open_task(TASK, data, {"scoring": "letters", "orders": "cyclic"})
    options = OPTIONS.changed(store=tmp_path)
    answers = compute_answers(model, opened, options).answers
    facts = [one for path in sorted(tmp_path.rglob("0*.json")) for one in json.loads(path.read_text())["facts"]]
    clips = {clip.id: clip for clip in data.clips()}
    for place in (0, 20, 64):
        clip, prompt = clips[opened.clip_ids[place]], opened.prompts[place]
        (alone,) = model.score_options(each([clip]), [prompt], [opened.options[place]], "letters")
        np.testing.assert_allclose(facts[place]["log_likelihoods"], alone, atol=1e-4)
        assert answers[place] == "ABCD"[int(np.argmax(alone))]
    by_one = compute_answers(model, opened, OPTIONS.changed(batch_size=1)).answers
    assert sum(one != other for one, other in zip(answers, by_one, strict=True)) <= 1


def test_reasons_are_written_in_as_many_tokens_as_they_need(folders, data, monkeypatch):
    model = load_model(str(folders / "qwen2-audio"), device="cpu")
    lengths = defaultdict(list)
    kind = type(model)

    def answer(self, clips, prompts):
        lengths[self.new_tokens] += prompts
        return ["It is long. <answer>A</answer>"] * len(prompts)

    monkeypatch.setattr(kind, "answer", answer)
    (result,) = evaluate_models([model], data, [TASK], OPTIONS.changed(settings={"prompt": "reason"}))
    assert result.model.id == f"{model.card.id}@tokens=1024"
    assert set(lengths) == {1024}
    assert len(lengths[1024]) == result.measures["n"] == 25
    assert all(prompt.endswith("\nExplain, then <answer>letter</answer>.") for prompt in lengths[1024])
    assert result.measures["unparsed"] == 0
