"""The full preset with `downsample` in a fresh process: clips, embeddings and A-COAT; the A-TRE fit separately."""

from __future__ import annotations

import argparse
import subprocess
import sys

from _measure import line

_FULL = """
import resource, time
from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.evaluator.run.evaluate import evaluate
from audio_compositionality.evaluator.run.options import RunOptions

started = time.perf_counter()
data, model = open_data("full"), load_model("downsample")
options = RunOptions(settings={"seeds": 1}, progress=False)
a_coat, = evaluate(model, data, tasks=["a_coat"], options=RunOptions(progress=False))
one = time.perf_counter() - started
a_tre, = evaluate(model, data, tasks=["a_tre"], options=options)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(one + a_tre.seconds["embed"], a_tre.seconds["score"], peak, a_coat.score, a_tre.score)
"""


def run(_: argparse.Namespace) -> None:
    output = subprocess.run([sys.executable, "-c", _FULL], check=True, capture_output=True, text=True).stdout
    clips_and_scores, fit, peak, a_coat, a_tre = map(float, output.split())
    line("full preset: clips, embeddings, A-COAT", clips_and_scores, "goal", 60)
    line("full preset: A-TRE fits and controls", fit, "clips, embeddings, A-COAT", clips_and_scores)
    line("full preset: peak memory", peak, "goal", 1.5, "GB")
    print(f"    downsample: A-COAT {a_coat:.6f}, A-TRE {a_tre:.3f}")
