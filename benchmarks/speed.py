"""Speed and memory, each against a named peer or a bare limit, side by side in one run.

python benchmarks/speed.py                          all of them (about 10 minutes on 2 cores)
python benchmarks/speed.py tones entrofy            some of them
python benchmarks/speed.py embed --checkpoint ID    this model instead of Whisper tiny with random weights

Times are the shortest of a few runs after a warm-up, so that compilation and first touches are left out.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from audio_compositionality.dataset_builder.data import in_batches
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.dataset_builder.synthesis.scenes import sample_scenes
from audio_compositionality.dataset_builder.synthesis.selection import (
    entropy_bins,
    objective,
    scene_entropy,
    select_balanced,
    uniform_targets,
)
from audio_compositionality.dataset_builder.synthesis.settings import SceneSettings


def shortest(run: Callable[[], Any], times: int = 3) -> float:
    """Seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def line(what: str, ours: float, peer: str, theirs: float, unit: str = "s") -> None:
    print(f"{what:<44} {ours:9.3f} {unit:<8} {peer:<40} {theirs:9.3f} {unit:<8} ratio {theirs / ours:6.2f}", flush=True)


def tones(_: argparse.Namespace) -> None:
    """The 512 tones: ours on all cores and on one, against dexed-py (one core) for the same notes."""
    import dexed

    from audio_compositionality.dataset_builder.synthesis.dx7.engine import render
    from audio_compositionality.dataset_builder.synthesis.sound import render_tone_bank

    settings = SceneSettings()
    render_tone_bank(settings)
    notes = [
        (voice, pitch, period / settings.sample_rate)
        for voice in settings.voices
        for pitch in settings.pitches
        for period in settings.periods
    ]
    synthesizers = []
    for voice in settings.voices:
        synthesizer = dexed.DexedSynth(sample_rate=settings.sample_rate)
        synthesizer.load_patch(dexed.Patch.from_sysex(voice.to_vced()))
        synthesizers.append((voice, synthesizer))
    by_voice = dict(synthesizers)

    def with_dexed() -> None:
        for voice, pitch, seconds in notes:
            by_voice[voice].render(pitch, settings.velocity, seconds / 2, seconds)

    def on_one_core() -> None:
        for voice, pitch, seconds in notes:
            render(voice, pitch, settings.velocity, duration=seconds, key_up=seconds / 2)

    theirs = shortest(with_dexed)
    line("512 tones, one core", shortest(on_one_core), "dexed-py, one core", theirs)
    line(
        f"tone bank, {os.cpu_count()} cores", shortest(lambda: render_tone_bank(settings)), "dexed-py, one core", theirs
    )


def entrofy(_: argparse.Namespace) -> None:
    """Selection of 10,000 of 150,000: groups of equal bins, against a greedy step over every candidate."""
    bins = entropy_bins(scene_entropy(sample_scenes(np.random.default_rng(0), 150_000, 8, 4), 8))
    targets = uniform_targets(bins, 10_000)
    selections: dict[str, Any] = {}

    def grouped() -> None:
        selections["grouped"] = select_balanced(bins, 10_000, np.random.default_rng(0))

    def by_candidate() -> None:
        rng = np.random.default_rng(0)
        counts = [np.zeros(len(target), np.int64) for target in targets]
        left = np.zeros(len(bins))
        selected = []
        for _ in range(10_000):
            gains = left.copy()
            for column, target, count in zip(bins.T, targets, counts, strict=True):
                step = np.sqrt(np.minimum(target, count + 1)) - np.sqrt(np.minimum(target, count))
                gains += step[column]
            best = int(rng.choice(np.flatnonzero(gains >= gains.max() - 1e-12)))
            selected.append(best)
            left[best] = -np.inf
            for column, count in zip(bins.T, counts, strict=True):
                count[column[best]] += 1
        selections["by candidate"] = np.array(selected)

    ours = shortest(grouped)
    line("Entrofy 150,000 -> 10,000, grouped", ours, "greedy step over every candidate", shortest(by_candidate, 1))
    best = sum(float(np.sqrt(target).sum()) for target in targets)
    for name, selected in selections.items():
        print(f"    objective, {name}: {objective(bins[selected], targets):.4f} of at most {best:.4f}")


def clips(_: argparse.Namespace) -> None:
    """A clip mixed from the bank, against encoding the same clip as FLAC, both on one core."""
    import soundfile

    rendering = rendered_preset("mini", recipes=["a_tre"]).configuration("a_tre").rendering
    mixed = [rendering.clips(index)[0] for index in range(100)]

    def mix() -> None:
        for index in range(100):
            rendering.clips(index)

    def encode() -> None:
        for clip in mixed:
            soundfile.write(io.BytesIO(), clip, 32_000, format="FLAC", subtype="PCM_16")

    line("mix a clip", 10 * shortest(mix), "encode it as FLAC", 10 * shortest(encode), "ms")


def embed(options: argparse.Namespace) -> None:
    """A store filled, rendering, front end and writing included, against the model's forward on ready features."""
    for checkpoint in options.checkpoint or [None]:
        with tempfile.TemporaryDirectory() as folder:
            _embed(_untrained_tiny(Path(folder)) if checkpoint is None else checkpoint, Path(folder))


def _untrained_tiny(folder: Path) -> str:
    from transformers import WhisperConfig, WhisperFeatureExtractor

    heads = {"encoder_attention_heads": 6, "decoder_attention_heads": 6}
    sizes = {"encoder_layers": 4, "decoder_layers": 4, "encoder_ffn_dim": 1536, "decoder_ffn_dim": 1536}
    WhisperConfig(d_model=384, **heads, **sizes).save_pretrained(folder)
    WhisperFeatureExtractor().save_pretrained(folder)
    return f"untrained:{folder}"


def _embed(name: str, folder: Path) -> None:
    from audio_compositionality.encoders.loading.registry import load_model
    from audio_compositionality.evaluator.run.embed import embed_configuration
    from audio_compositionality.evaluator.run.options import RunOptions

    model: Any = load_model(name)
    configuration = rendered_preset("mini", recipes=["a_coat"], quadruples=16).configuration("a_coat")
    batches = list(in_batches(configuration.clips(), 4))
    ready = [model.prepare(batch.waveforms, batch.sample_rate) for batch in batches]

    def bare() -> None:
        for features in ready:
            model.forward(features)

    def whole() -> None:
        embed_configuration(model, configuration, RunOptions(store=folder / "store", force=True, progress=False))

    bare()
    # Taken in turns, and the median of the ratios: a machine whose speed drifts slows both of a pair.
    pairs = sorted(((shortest(whole, 1), shortest(bare, 1)) for _ in range(3)), key=lambda pair: pair[1] / pair[0])
    ours, theirs = pairs[len(pairs) // 2]
    line(f"embed 64 clips, {Path(name).name}", ours, "forward on ready features", theirs)
    print("    ratios of the three pairs:", *(f"{bare_time / our_time:.2f}" for our_time, bare_time in pairs))
    render = shortest(lambda: list(configuration.clips()), 2) / 64
    prepare = shortest(lambda: [model.prepare(b.waveforms, b.sample_rate) for b in batches], 2) / 64
    print(
        f"    where it goes, a clip: rendering {1e3 * render:.1f} ms, front end {1e3 * prepare:.1f} ms (both beside "
        f"the model), model {1e3 * theirs / 64:.1f} ms, the rest {1e3 * (ours - theirs) / 64:.1f} ms"
    )


def training(_: argparse.Namespace) -> None:
    """A-TRE's training step at D = 768, against a DataLoader loop over nn.TransformerEncoder of the same shape."""
    import torch
    from torch import nn

    from audio_compositionality.metrics.a_tre.a_tre import a_tre

    dim, scenes, steps = 768, 2_048, 125
    rows = rendered_preset("full", recipes=["a_tre"]).configuration("a_tre").rows[:scenes]
    metadata = [row["metadata"] for row in rows]
    labels = sorted({label for scene in metadata for source in scene for label in source.values()})
    number = {label: index for index, label in enumerate(labels)}
    embeddings = np.random.default_rng(0).normal(size=(scenes + 2, dim)).astype(np.float32)
    splits = ["train"] * scenes + ["validation", "test"]

    def ours() -> None:
        # Both fits, raw and centred: twice the steps.
        a_tre(embeddings, [*metadata, metadata[0], metadata[1]], splits, max_steps=steps, progress=False)

    def ridge_only() -> None:
        a_tre(embeddings, [*metadata, metadata[0], metadata[1]], splits, max_steps=1, progress=False)

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(len(labels) + 1, dim, padding_idx=len(labels))
            self.cls = nn.Parameter(torch.randn(dim) * 0.02)
            layer = nn.TransformerEncoderLayer(dim, 1, 4 * dim, dropout=0.0, norm_first=True, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            sources = self.table(tokens).sum(dim=2)
            x = torch.cat([self.cls.expand(len(tokens), 1, -1), sources], dim=1)
            padding = torch.cat([torch.zeros(len(tokens), 1, dtype=torch.bool), (tokens == len(labels)).all(2)], dim=1)
            return self.encoder(x, src_key_padding_mask=padding)[:, 0]

    tokens = torch.full((scenes, 4, 4), len(labels))
    for row, scene in enumerate(metadata):
        for place, source in enumerate(scene):
            tokens[row, place] = torch.tensor([number[label] for label in source.values()])
    data = torch.utils.data.TensorDataset(tokens, torch.from_numpy(embeddings[:scenes]))
    model = Plain()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=1e-4)

    def plain() -> None:
        done = 0
        while done < steps:
            for batch, target in torch.utils.data.DataLoader(data, batch_size=64, shuffle=True):
                loss = 1 - nn.functional.cosine_similarity(model(batch), target).mean()
                adam.zero_grad()
                loss.backward()
                adam.step()
                done += 1
                if done == steps:
                    return

    overhead = shortest(ridge_only, 2)
    step = (shortest(ours, 2) - overhead) / (2 * (steps - 1))
    theirs = shortest(plain, 2) / steps
    line(f"A-TRE, one training step, D = {dim}", 1e3 * step, "DataLoader, nn.TransformerEncoder", 1e3 * theirs, "ms")


_FULL = """
import resource, time
from audio_compositionality.dataset_builder.opening import open_data
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


def full(_: argparse.Namespace) -> None:
    """The full preset with `downsample` in a fresh process: clips, embeddings and A-COAT; the A-TRE fit apart."""
    output = subprocess.run([sys.executable, "-c", _FULL], check=True, capture_output=True, text=True).stdout
    clips_and_scores, fit, peak, a_coat, a_tre = map(float, output.split())
    line("full preset: clips, embeddings, A-COAT", clips_and_scores, "goal", 60)
    line("full preset: A-TRE fits and controls", fit, "clips, embeddings, A-COAT", clips_and_scores)
    line("full preset: peak memory", peak, "goal", 1.5, "GB")
    print(f"    downsample: A-COAT {a_coat:.6f}, A-TRE {a_tre:.3f}")


_REPORT = """
import resource, sys, time

started = time.perf_counter()
from audio_compositionality.evaluator.report.page import write_report

path = write_report([sys.argv[1]], sys.argv[2], progress=False)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(time.perf_counter() - started, peak, path.stat().st_size / 1e6)
"""


def report(_: argparse.Namespace) -> None:
    """The report of 30 models at full size, made in a fresh process on one core from made-up scores."""
    with tempfile.TemporaryDirectory() as folder:
        results, out = Path(folder) / "results", Path(folder) / "report.html"
        _make_up_results(results, 30)
        output = subprocess.run(
            [sys.executable, "-c", _REPORT, results, out],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
        ).stdout
    seconds, peak, size = map(float, output.split())
    line("report of 30 models, preset full", seconds, "goal", 30)
    line("report: peak memory", peak, "goal", 1, "GB")
    line("report: size of the page", size, "goal", 5, "MB")


def _make_up_results(folder: Path, models: int) -> None:
    from audio_compositionality.dataset_builder.opening import open_data
    from audio_compositionality.encoders.protocols import ModelCard
    from audio_compositionality.evaluator.results.result import SampleTable, save_result
    from audio_compositionality.evaluator.run.evaluate import make_result
    from audio_compositionality.evaluator.run.opened import open_task
    from audio_compositionality.tasks.base import Scores
    from audio_compositionality.tasks.registry import default_tasks

    data = open_data("full")
    for task in default_tasks(data.recipes):
        opened = open_task(task, data)
        described = opened.samples
        ids = described.ids
        drawn = {name for drawing in task.drawings for name in drawing.columns}
        for number in range(models):
            rng = np.random.default_rng(number)
            columns = {name: rng.normal(size=len(ids)) for name in sorted(drawn)}
            measures: dict[str, Any] = {m.name: 1 if m.digits == 0 else 0.3 for m in task.info.measures}
            for measure in task.info.sampled:
                if measure.column is not None:
                    columns[measure.column] = np.tanh(rng.normal(number / models, 0.4, len(ids)))
                    measures[measure.name] = float(columns[measure.column].mean())
            name = f"made-up/model-{number}"
            card = ModelCard(name if number % 5 else f"untrained:{name}", "1", sample_rate=16_000, output_dim=768)
            samples = SampleTable(ids, columns)
            scores = Scores(measures, ids, columns)
            result = make_result(opened, scores, described, card, samples, device="cpu", seconds={})
            save_result(folder, result, samples)


BENCHMARKS = (tones, entrofy, clips, embed, training, full, report)


def main() -> None:
    """Run the benchmarks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [benchmark.__name__ for benchmark in BENCHMARKS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(names)}; default all")
    parser.add_argument(
        "--checkpoint",
        action="append",
        metavar="ID",
        help="model for `embed`, such as a folder with Whisper's weights; may be given several times",
    )
    options = parser.parse_args()
    unknown = set(options.names) - set(names)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    for benchmark in BENCHMARKS:
        if not options.names or benchmark.__name__ in options.names:
            benchmark(options)
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


if __name__ == "__main__":
    main()
