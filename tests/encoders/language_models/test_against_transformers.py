"""Answers and likelihoods against transformers used as its documentation does, and against full logits by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
import transformers

from ...clips import each
from .conftest import FIRST, Folder, Load
from .tiny import OPTIONS, PROMPTS, sounds

RATE = 16_000


@cache
def processor_of(folder: Path) -> Any:
    return transformers.AutoProcessor.from_pretrained(folder)


@cache
def tokenizer_of(folder: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(folder)


def documented_inputs(family: str, folder: Path, row: int, tmp_path: Path, answer: str = "") -> dict[str, Any]:
    """What the model is called with for one prompt and what is said after it."""
    clip = sounds()[row].waveform
    if family == "qwen2-audio":
        # Documentation of Qwen2-Audio, "Audio analysis inference".
        processor = processor_of(folder)
        conversation = [
            {"role": "user", "content": [{"type": "audio", "audio_url": "x"}, {"type": "text", "text": PROMPTS[row]}]}
        ]
        text = processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        return dict(processor(text=text + answer, audio=[clip], sampling_rate=RATE, return_tensors="pt", padding=True))
    if family.endswith("flamingo-3") or family.startswith("music"):
        # Documentation of Audio Flamingo 3, "Audio + text instruction".
        path = tmp_path / "clip.wav"
        soundfile.write(path, clip, RATE, subtype="FLOAT")
        processor = processor_of(folder)
        conversation = [
            {"role": "user", "content": [{"type": "text", "text": PROMPTS[row]}, {"type": "audio", "path": str(path)}]}
        ]
        if answer:
            text = processor.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
            return dict(processor(text=[text + answer], audio=[clip], sampling_rate=RATE))
        return dict(
            processor.apply_chat_template(conversation, tokenize=True, add_generation_prompt=True, return_dict=True)
        )
    conversation = [{"role": "user", "content": [{"type": "audio"}, {"type": "text", "text": PROMPTS[row]}]}]
    if family == "voxtral":
        # Documentation of Voxtral, "audio + text instruction"; what is said is continued by mistral-common.
        path = tmp_path / "clip.wav"
        soundfile.write(path, clip, RATE, subtype="FLOAT")
        conversation[0]["content"][0]["path"] = str(path)  # type: ignore[index]
        processor = processor_of(folder)
        inputs = dict(processor.apply_chat_template(conversation))
        if answer:
            said = [*conversation, {"role": "assistant", "content": answer}]
            tokens = processor.tokenizer.apply_chat_template(said, continue_final_message=True)["input_ids"]
            inputs |= {"input_ids": torch.tensor([tokens]), "attention_mask": torch.ones(1, len(tokens), dtype=int)}
        return inputs
    tokenizer = tokenizer_of(folder)
    if family == "gemma-4":
        # As for Qwen-Omni, below.
        steps = object.__new__(transformers.Gemma4Processor)
        inputs = transformers.Gemma4AudioFeatureExtractor.from_pretrained(folder)([clip], return_tensors="pt")
        for name in ("audio", "boa", "eoa"):
            setattr(steps, f"{name}_token", getattr(tokenizer, f"{name}_token"))
        text = tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
        expanded = (text + answer).replace(tokenizer.audio_token, steps.replace_audio_token(inputs, 0))
        return {**tokenizer(expanded, return_tensors="pt"), **inputs}
    # The processor of Qwen-Omni cannot be made without torchvision: its own steps, without those for pictures.
    name = "Qwen2_5OmniProcessor" if family == "qwen2.5-omni" else "Qwen3OmniMoeProcessor"
    processor = object.__new__(getattr(transformers, name))
    processor.feature_extractor = transformers.WhisperFeatureExtractor.from_pretrained(folder)
    processor.tokenizer, processor.audio_token = tokenizer, tokenizer.audio_token
    kwargs = {**type(processor).audio_kwargs, "return_tensors": "pt"}
    if family == "qwen3-omni":
        kwargs["n_window"] = processor.n_window
    inputs, stand_in = processor._process_audio([clip], **kwargs)
    text = tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=False)
    expanded = (text + answer).replace(tokenizer.audio_token, stand_in[0])
    inputs.pop("num_audio_tokens")
    return {**tokenizer(expanded, return_tensors="pt"), **inputs}


@cache
def bare_model(kind: Any, folder: Path) -> Any:
    """A model as transformers loads it, once a process; tests must not change it."""
    return kind.from_pretrained(folder).eval()


@pytest.mark.parametrize("row", [0, 2])
def test_what_the_model_is_given(family: str, row: int, folder: Folder, load: Load, tmp_path: Path) -> None:
    expected = documented_inputs(family, folder(family), row, tmp_path)
    front_end = load(family).front_end
    actual = front_end.encode([front_end.chat(PROMPTS[row])], [sounds()[row].waveform])
    assert actual.keys() == {name for name in expected if name in actual} | actual.keys()
    assert actual["input_ids"].tolist() == expected["input_ids"].tolist()
    assert actual["attention_mask"].tolist() == expected["attention_mask"].tolist()
    heard, wanted = (one["input_features"] for one in (actual, expected))
    for name in ("input_features_mask", "feature_attention_mask"):
        if name in actual:
            frames = int(actual[name].sum())
            assert frames == int(expected[name].sum())
            # What lies behind the frames of the clip is not heard.
            axis = 1 if family == "gemma-4" else 2
            heard, wanted = heard.narrow(axis, 0, frames), wanted.narrow(axis, 0, frames)
    assert torch.equal(heard, wanted) or float((heard - wanted).abs().max()) < 1e-6


def test_answers_are_those_of_generate(family: str, folder: Folder, load: Load, tmp_path: Path) -> None:
    model = load(family)
    bare = bare_model(type(model.model), folder(family))
    tokenizer = tokenizer_of(folder(family))
    expected = []
    for row in range(3):
        inputs = documented_inputs(family, folder(family), row, tmp_path)
        with torch.no_grad():
            written = bare.generate(**inputs, max_new_tokens=16, do_sample=False)
        expected += tokenizer.batch_decode(
            written[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
    assert model.answer(each(sounds()), PROMPTS) == expected
    assert all(expected)


@pytest.mark.parametrize("by", ["letters", "options"])
def test_likelihoods_are_those_of_the_full_logits(
    family: str, by: str, folder: Folder, load: Load, tmp_path: Path
) -> None:
    if by == "letters" and family not in FIRST:
        return  # the same steps for all families; that options are continued is each family's own
    model = load(family)
    bare = bare_model(type(model.model), folder(family))
    scores = model.score_options(each(sounds()[:2]), PROMPTS[:2], OPTIONS[:2], by)  # type: ignore[arg-type]
    lengths = set()
    for row in range(2):
        start = documented_inputs(family, folder(family), row, tmp_path)["input_ids"].shape[1]
        for place, option in enumerate(OPTIONS[row]):
            said = "ABCD"[place] if by == "letters" else option
            inputs = documented_inputs(family, folder(family), row, tmp_path, said)
            with torch.no_grad():
                logits = bare(**inputs).logits[0].double()
            tokens = inputs["input_ids"][0, start:]
            values = [float(logits[start - 1 + k].log_softmax(-1)[token]) for k, token in enumerate(tokens)]
            lengths.add(len(values))
            expected = values[0] if by == "letters" else np.mean(values)
            assert scores[row][place] == pytest.approx(expected, abs=3e-5)
    assert lengths == {1} if by == "letters" else len(lengths) > 1
