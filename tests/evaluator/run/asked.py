"""Scenes that tiny models hear the first seconds of, and a process that asks one about them.

python asked.py MODEL FOLDER SCORINGS [SECONDS]

For each of the scorings (letters,generate) it writes FOLDER/SCORING/store and FOLDER/SCORING/out; FOLDER/SCORING/log
has the number of questions of each batch, before which the process waits for SECONDS.
"""

import os
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

from audio_compositionality.dataset_builder.opening import RenderedData
from audio_compositionality.dataset_builder.scenes.polyphony import PolyphonySpec
from audio_compositionality.encoders.language_models.base import TransformersLanguageModel
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions
from audio_compositionality.tasks.registry import load_task

SECONDS = 4


class Cut:
    """Questions about scenes, of which the first seconds are heard: the tiny front ends take no more."""

    recipes, source = ("polybench",), "few"

    def __init__(self, sets: int) -> None:
        settings = PolyphonySpec(train_sets=0, test_sets=sets, sample_rate=8_000)
        self._whole = RenderedData("few", {"polybench": settings}).configuration("polybench")
        self.recipe, self.fingerprint = "polybench", self._whole.fingerprint
        self.rows, self.clip_ids = self._whole.rows, self._whole.clip_ids

    def configuration(self, recipe):
        return self

    def clips(self, wanted=None, *, keep_invalid=False):
        for clip in self._whole.clips(wanted, keep_invalid=keep_invalid):
            yield replace(clip, waveform=clip.waveform[: SECONDS * clip.sample_rate])


class Slow:
    """Work on batches, written down and late."""

    def __init__(self, work, log, seconds):
        self.work, self.log, self.seconds = work, log, seconds

    def __call__(self, batch, inputs):
        time.sleep(self.seconds)
        outcomes = self.work(batch, inputs)
        # In one write, so that no line is torn by the end of the process.
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{len(batch)}\n".encode())
        os.close(descriptor)
        return outcomes


def main() -> None:
    warnings.simplefilter("ignore")
    name, folder, scorings = sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(",")
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 0.0
    data, task = Cut(1), load_task("polybench")
    for scoring in scorings:
        ask(load_model(name, device="cpu"), data, task, folder / scoring, scoring, seconds)


def ask(model, data, task, folder: Path, scoring: str, seconds: float) -> None:
    assert isinstance(model, TransformersLanguageModel)
    folder.mkdir(parents=True, exist_ok=True)
    for method in ("_write", "_score"):
        setattr(model, method, Slow(getattr(model, method), folder / "log", seconds))
    settings = {"orders": "cyclic", "scoring": scoring}
    options = RunOptions(device="cpu", settings=settings, store=folder / "store", out=folder / "out", progress=False)
    evaluate_models([model], data, [task], options)


if __name__ == "__main__":
    main()
