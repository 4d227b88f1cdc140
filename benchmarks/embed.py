"""Filling a cache, with rendering, front end and writing, against the model's forward on ready features."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from _measure import line, shortest

from audio_compositionality.dataset_builder.data import in_batches
from audio_compositionality.dataset_builder.rendered import rendered_preset


def run(options: argparse.Namespace) -> None:
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
    from audio_compositionality.evaluator.run.embeddings import embed_configuration
    from audio_compositionality.evaluator.run.options import RunOptions

    model: Any = load_model(name)
    configuration = rendered_preset("mini", recipes=["a_coat"], quadruples=16).configuration("a_coat")
    batches = list(in_batches(configuration.clips(), 4))
    ready = [model.prepare(batch.waveforms, batch.sample_rate) for batch in batches]

    def bare() -> None:
        for features in ready:
            model.forward(features)

    def whole() -> None:
        embed_configuration(model, configuration, RunOptions(cache=folder / "store", force=True, progress=False))

    bare()
    # Taken in turns, and the median of the ratios: a machine whose speed drifts slows both of a pair.
    pairs = sorted(((shortest(whole, 1), shortest(bare, 1)) for _ in range(3)), key=lambda pair: pair[1] / pair[0])
    ours, theirs = pairs[len(pairs) // 2]
    line(f"embed 64 clips, {Path(name).name}", ours, "forward on ready features", theirs)
    print("    ratios of the three pairs:", *(f"{bare_time / our_time:.2f}" for our_time, bare_time in pairs))
    render = shortest(lambda: list(configuration.clips()), 2) / 64
    prepare = shortest(lambda: [model.prepare(b.waveforms, b.sample_rate) for b in batches], 2) / 64
    print(
        f"    where it goes, a clip: rendering {1e3 * render:.1f} ms, front end {1e3 * prepare:.1f} ms (both in "
        f"parallel), model {1e3 * theirs / 64:.1f} ms, the rest {1e3 * (ours - theirs) / 64:.1f} ms"
    )
