"""Answers of an audio language model, sound to text, against the bare `generate` of transformers on ready inputs.

The models have random weights: the tiny one of the tests, dominated by its front end, and one of 18 million parameters,
small but not negligible. Both process windows of 30 s, as Qwen2-Audio does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _measure import line, shortest

CLIPS, BATCH = 16, 4

SIZES = {
    "tiny": ({"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48},
             {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
              "intermediate_size": 48}),
    "small": ({"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536},
              {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "num_key_value_heads": 2,
               "intermediate_size": 1024}),
}  # fmt: skip
"""Sizes of the audio encoder and of the text model."""


def run(options: argparse.Namespace) -> None:
    # The tests have the tokenizer, trained in place.
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "encoders" / "language_models"))
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            _save(size, Path(folder))
            _compare(size, folder)


def _save(size: str, folder: Path) -> None:
    import tiny
    import transformers

    names = dict(zip(("audio_bos_token", "audio_token", "audio_eos_token"), tiny.QWEN_AUDIO, strict=True))
    words = tiny.tokenizer(names)
    audio, text = SIZES[size]
    config = transformers.Qwen2AudioConfig(
        audio_config={**audio, "num_mel_bins": 128, "model_type": "qwen2_audio_encoder"},
        text_config={**tiny.text_config(words), **text, "model_type": "qwen2"},
        audio_token_index=words.audio_token_id,
    )
    tiny.strengthened(transformers.Qwen2AudioForConditionalGeneration(config)).save_pretrained(folder)
    transformers.Qwen2AudioProcessor(tiny.extractor(30), words).save_pretrained(folder)


def _compare(size: str, folder: str) -> None:
    import tiny
    import torch

    from audio_compositionality.encoders.loading.registry import load_model
    from audio_compositionality.encoders.options import LanguageOptions

    model: Any = load_model(folder, device="cpu", options=LanguageOptions(batch_size=BATCH))
    clips = tiny.sounds((10.0,) * CLIPS)
    prompts = [tiny.PROMPTS[0]] * CLIPS

    def prepare_all() -> list[Any]:
        return [
            model.front_end.encode(
                [model.front_end.chat(prompt) for prompt in prompts[start : start + BATCH]],
                [clip.waveform for clip in clips[start : start + BATCH]],
            )
            for start in range(0, CLIPS, BATCH)
        ]

    ready = prepare_all()
    given = [[clip] for clip in clips]
    written: list[str] = []

    def bare() -> None:
        written.clear()
        for inputs in ready:
            with torch.inference_mode():
                output = model.model.generate(**inputs, max_new_tokens=16, do_sample=False)
            new = output[:, inputs["input_ids"].shape[1] :]
            written.extend(model.front_end.tokenizer.batch_decode(new, skip_special_tokens=True))

    def whole() -> None:
        assert model.answer(given, prompts) == written

    bare()
    whole()  # with the check of batches
    # Taken in turns, and the median of the ratios: a machine whose speed drifts slows both of a pair.
    pairs = sorted(((shortest(whole, 1), shortest(bare, 1)) for _ in range(3)), key=lambda pair: pair[1] / pair[0])
    ours, theirs = pairs[len(pairs) // 2]
    line(f"{CLIPS} answers, {size}, {model.card.parameters / 1e6:.1f} M", ours, "generate on ready inputs", theirs)
    print("    ratios of the three pairs:", *(f"{bare_time / our_time:.2f}" for our_time, bare_time in pairs))
    # Hardly changed by other work of the machine, unlike the time by the clock.
    all_of_it, of_model, of_front_end = map(_processor_seconds, (whole, bare, prepare_all))
    rest = all_of_it - of_model - of_front_end
    print(
        f"    processor time {all_of_it:.2f} s: generate {of_model:.2f} s, front end {of_front_end:.2f} s, the rest "
        f"{rest:.2f} s ({100 * rest / all_of_it:.0f} %)"
    )
    options = [["dog", "rain", "car horn"]] * CLIPS
    for by in ("letters", "options"):
        seconds = shortest(lambda by=by: model.score_options(given, prompts, options, by), 2)  # type: ignore[misc]
        print(f"    likelihoods by {by}: {1e3 * seconds / CLIPS:.0f} ms a question")
    chat = model.front_end.chat(prompts[0])
    prepare = shortest(lambda: [model.front_end.encode([chat], [clips[0].waveform]) for _ in range(4)], 2) / 4
    print(f"    the front end takes {1e3 * prepare:.0f} ms per clip, in parallel with the model")


def _processor_seconds(run: Callable[[], Any]) -> float:
    """Return the shortest processor time of three runs, over all threads."""
    seconds = []
    for _ in range(3):
        started = time.process_time()
        run()
        seconds.append(time.process_time() - started)
    return min(seconds)
