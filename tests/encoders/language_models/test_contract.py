"""What every family does: it answers, greedily and alone as in a batch, and scores given answers."""

from __future__ import annotations

import json
import re
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import soxr
import torch

from audio_compositionality.encoders.base import ClipError, GivenQuestion
from audio_compositionality.encoders.language_models.transformers_model import TransformersLanguageModel
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import LanguageOptions

from ...clips import each
from .conftest import FIRST, Folder, Load
from .tiny import OPTIONS, PROMPTS, Sound, sounds

BY = ["letters", "options"]
ROUNDING = 2e-5


def scores_of(model: TransformersLanguageModel, by: str, rows: list[int] | None = None) -> list[float]:
    rows = [0, 1, 2] if rows is None else rows
    clips = sounds()
    scores = model.score_options(
        each([clips[row] for row in rows]),
        [PROMPTS[row] for row in rows],
        [OPTIONS[row] for row in rows],
        by,  # type: ignore[arg-type]
    )
    assert [len(one) for one in scores] == [len(OPTIONS[row]) for row in rows]
    return [value for one in scores for value in one]


def test_its_protocols_and_its_card(model: TransformersLanguageModel, family: str) -> None:
    assert "answer" in model.abilities
    assert "score" in model.abilities
    assert "audio" not in model.abilities
    card = model.card
    assert (card.id, card.sample_rate, card.output_dim) == (family, 16_000, None)
    assert (model.device, card.options.precision) == ("cpu", "float32")
    assert re.fullmatch(r"sha256-[0-9a-f]{64}", card.revision)
    assert len(card.weights_sha256 or "") == 64
    sight = re.compile("visual|vision")
    counted = sum(weight.numel() for name, weight in model.model.named_parameters() if not sight.search(name))
    assert card.parameters == counted > 50_000


def test_alone_as_in_a_batch_in_any_order_and_again(model: TransformersLanguageModel) -> None:
    clips = sounds()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        together = model.answer(each(clips), PROMPTS)
        assert model.answer(each(clips[::-1]), PROMPTS[::-1])[::-1] == together
        assert [
            model.answer(each([clip]), [prompt])[0] for clip, prompt in zip(clips, PROMPTS, strict=True)
        ] == together
        assert len(set(together)) == 3
        for by in BY:
            scores = scores_of(model, by)
            alone = [value for row in range(3) for value in scores_of(model, by, [row])]
            np.testing.assert_allclose(scores, alone, atol=ROUNDING, rtol=0)
            assert max(scores) < 0
    assert model.batch_size == 4


def test_a_clip_at_another_rate_is_resampled(model: TransformersLanguageModel) -> None:
    fast = sounds((1.0,), sample_rate=32_000)
    slow = [Sound(soxr.resample(fast[0].waveform, 32_000, 16_000, quality="HQ"), 16_000)]
    one, two = (model.score_options(each(given), PROMPTS[:1], OPTIONS[:1], "letters") for given in (fast, slow))
    assert one == two
    assert model.answer(each(fast), PROMPTS[:1]) == model.answer(each(slow), PROMPTS[:1])


def test_clips_too_long_too_short_and_not_finite(model: TransformersLanguageModel) -> None:
    limit = model.front_end.limit_seconds
    long = Sound(np.zeros(round((limit + 0.5) * 16_000), np.float32), 16_000)
    with pytest.raises(ClipError, match=rf"row 1: it lasts {limit + 0.5:g} s, but '.+' takes at most {limit:g} s"):
        model.answer(each([sounds()[0], long]), PROMPTS[:2])
    with pytest.raises(ClipError, match=r"row 0: it lasts 0\.05 s; at least 0\.1 s are needed"):
        model.answer(each([Sound(np.zeros(800, np.float32), 16_000)]), PROMPTS[:1])
    with pytest.raises(ClipError, match=r"row 1: the waveform holds nan at sample 7"):
        model.answer(each([sounds()[0], Sound(np.where(np.arange(8000) == 7, np.nan, 0.0), 16_000)]), PROMPTS[:2])
    assert len(model.answer(each([Sound(np.zeros(1600, np.float32), 16_000)]), PROMPTS[:1])) == 1


def test_what_generation_config_says_changes_nothing_but_the_end(load: Load, folder: Folder, tmp_path: Path) -> None:
    family = FIRST[0]
    model = load(family)
    expected = model.answer(each(sounds()), PROMPTS)
    copy = tmp_path / "copy"
    shutil.copytree(folder(family), copy)
    said = {"do_sample": True, "temperature": 3.0, "top_k": 5, "repetition_penalty": 1.9, "max_length": 3,
            "eos_token_id": model.front_end.tokenizer.eos_token_id}  # fmt: skip
    (copy / "generation_config.json").write_text(json.dumps(said))
    other = load_model(str(copy), device="cpu")
    assert isinstance(other, TransformersLanguageModel)
    assert other.answer(each(sounds()), PROMPTS) == expected
    assert other.card.revision != model.card.revision
    asked = model._chat_question(GivenQuestion(0, sounds()[:1], PROMPTS[0]), None)
    ((_, numbers),) = model._batches.run([asked], model._write)
    # A token that ends answers from now on.
    (copy / "generation_config.json").write_text(json.dumps({**said, "eos_token_id": [2, numbers[3]]}))
    short = load_model(str(copy), device="cpu")
    assert isinstance(short, TransformersLanguageModel)
    ending = numbers[: numbers.index(numbers[3]) + 1]
    assert short.answer(each(sounds()[:1]), PROMPTS[:1]) == [
        model.front_end.tokenizer.decode(ending, skip_special_tokens=True)
    ]


def test_more_tokens_are_another_id_of_the_same_weights(load: Load) -> None:
    family = FIRST[0]
    model = load(family)
    longer = model.with_new_tokens(40)
    assert (longer.card.id, longer.card.revision) == (f"{family}@tokens=40", model.card.revision)
    assert longer.model is model.model
    clips = sounds()
    pairs = list(zip(longer.answer(each(clips), PROMPTS), model.answer(each(clips), PROMPTS), strict=True))
    for long, short in pairs:
        # A character may be cut in its middle.
        assert long.startswith(short.rstrip("\N{REPLACEMENT CHARACTER}"))
    assert any(len(long) > len(short) for long, short in pairs)
    assert longer.with_new_tokens(16).card == model.card


def test_its_untrained_twin_has_other_weights_and_answers(
    folder: Folder, family: str, model: TransformersLanguageModel
) -> None:
    twin = load_model(f"untrained:{folder(family)}", device="cpu", seed=1)
    assert isinstance(twin, TransformersLanguageModel)
    assert (twin.card.id, twin.card.weights_sha256) == (f"untrained:{family}", None)
    assert twin.card.parameters == model.card.parameters
    assert twin.card.revision.startswith("seed-1-")
    differences = np.abs(np.subtract(scores_of(twin, "letters"), scores_of(model, "letters")))
    assert differences.max() > 0.1
    assert len(twin.answer(each(sounds()), PROMPTS)) == 3


def test_in_bfloat16_the_weights_are_and_the_id_says_so(folder: Folder, load: Load) -> None:
    family = FIRST[1]
    model = load(family)
    options = LanguageOptions(precision="bfloat16", batch_size=2)
    rounded = load_model(str(folder(family)), device="cpu", options=options)
    assert isinstance(rounded, TransformersLanguageModel)
    assert (rounded.card.id, rounded.card.options.precision) == (f"{family}@bfloat16", "bfloat16")
    assert rounded.model.dtype == torch.bfloat16
    np.testing.assert_allclose(scores_of(rounded, "letters"), scores_of(model, "letters"), atol=0.5)
