"""A tiny model that hears and answers, of random weights, through every way to ask: chance, resumed, as asked alone."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import RenderedData
from audio_compositionality.dataset_builder.texts.polyphony import PolyphonySpec
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task

from ...clips import each
from ...encoders.language_models.tiny import SAVERS

pytestmark = pytest.mark.filterwarnings("ignore")

SECONDS = 4


class Cut:
    """Questions about scenes, of which the first seconds are heard: the tiny front ends take no more."""

    recipes, source = ("polybench",), "few"

    def __init__(self) -> None:
        settings = PolyphonySpec(train_sets=0, test_sets=1, sample_rate=8_000)
        self._whole = RenderedData("few", {"polybench": settings}).configuration("polybench")
        self.recipe, self.fingerprint = "polybench", self._whole.fingerprint
        self.rows_digest = self._whole.rows_digest
        self.rows, self.clip_ids = self._whole.rows, self._whole.clip_ids

    def configuration(self, recipe):
        return self

    def clips(self, wanted=None, *, keep_invalid=False):
        for clip in self._whole.clips(wanted, keep_invalid=keep_invalid):
            yield replace(clip, waveform=clip.waveform[: SECONDS * clip.sample_rate])


@pytest.fixture(scope="module")
def data():
    return Cut()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "qwen2.5-omni"
    SAVERS["qwen2.5-omni"](folder)
    return load_model(str(folder), device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["letters", "options", "generate"])
def test_random_weights_are_at_chance_and_killed_is_as_uninterrupted(model, data, how, tmp_path):
    task = load_task("polybench")
    settings = {"orders": "cyclic", "scoring": how}
    options = RunOptions(progress=False, settings=settings, cache=tmp_path / "store", out=tmp_path / "out")
    (result,) = evaluate_models([model], data, [task], options)
    measures = result.measures
    # Groups of up to four twins are drawn: the wider error is that of 5 groups, not of 25 questions.
    error = math.sqrt(measures["chance"] * (1 - measures["chance"]) / 5)
    assert abs(measures["accuracy"] - measures["chance"] * (how != "generate" or not measures["unparsed"])) <= 3 * error
    files = sorted((tmp_path / "store").rglob("0*.json"))
    assert len(files) == 6
    facts = [one for path in files for one in json.loads(path.read_text())["facts"]]
    if how == "generate":
        assert all({"finish_reason", "tokens"} == one.keys() for one in facts)
    else:
        assert (measures["unparsed"], measures["answers"]) == (0, 83)
        row = next(row for row in data.rows if row["split"] == "test")
        (clip,) = (clip for clip in data.clips() if clip.id.startswith(f"{row['id']}/"))
        prompt = task.inputs(row, task.settings(data.rows, settings)).prompts[0]
        (alone,) = model.score_options(each([clip]), [prompt], [tuple(row["options"])], how)
        np.testing.assert_allclose(facts[0]["log_likelihoods"], alone, atol=1e-4)
    for path in files[1:4:2]:
        path.unlink()
    (again,) = evaluate_models([model], data, [task], options.changed(out=None))
    assert set(again.seconds) == {"embed_rest", "score"}
    assert (again.measures, again.samples_sha256) == (measures, result.samples_sha256)
