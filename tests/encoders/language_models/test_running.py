"""Batches, memory, the check of batches, what is refused, and how a folder becomes a model."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.language_models import listing, transformers_model
from audio_compositionality.encoders.language_models.listing import FrontEnd, LanguageFamily, ModelInputs, families
from audio_compositionality.encoders.language_models.question_batches import (
    ChatQuestion,
    QuestionBatches,
    log_likelihoods,
)
from audio_compositionality.encoders.language_models.transformers_model import TransformersLanguageModel
from audio_compositionality.encoders.loading.registry import load_encoder, load_model
from audio_compositionality.encoders.options import EncoderOptions, LanguageOptions
from audio_compositionality.support.errors import InputError

from ...clips import each
from .conftest import Folder, Load
from .tiny import OPTIONS, PROMPTS, Sound, omni25_model, omni_tokenizer, sounds

FAST = "qwen2.5-omni"


class Echo(FrontEnd):
    """Gives the lengths of clips."""

    def encode(self, chats: Sequence[str], clips: Sequence[np.ndarray]) -> ModelInputs:
        return {"input_ids": torch.tensor([len(clip) for clip in clips])}

    def kind(self, samples: int) -> int:
        return samples if samples < 3 else 0


def questions(lengths: list[int]) -> list[ChatQuestion]:
    return [ChatQuestion("?", np.zeros(length, np.float32)) for length in lengths]


def test_batches_go_from_the_longest_to_the_shortest_and_come_back_in_order() -> None:
    seen = []

    def work(batch: Sequence[ChatQuestion], inputs: ModelInputs) -> list[int]:
        assert inputs["input_ids"].tolist() == [len(one.clip) for one in batch]
        seen.append(inputs["input_ids"].tolist())
        if 13 in seen[-1]:
            raise RuntimeError("shapes differ")
        return [10 * len(one.clip) for one in batch]

    lengths = [4, 9, 1, 7, 2, 8, 2, 5]
    told = dict(QuestionBatches(Echo(), "me", 3).run(questions(lengths), work))
    assert told == {place: 10 * length for place, length in enumerate(lengths)}
    assert seen == [[9, 8, 7], [5, 4], [2, 2], [1]]
    assert not list(QuestionBatches(Echo(), "me", 3).run([], work))
    with pytest.raises(RuntimeError, match="shapes differ"):
        list(QuestionBatches(Echo(), "me", 8).run(questions([13, 5]), work))


@pytest.mark.slow
def test_out_of_memory_halves_batches_and_the_size_stays() -> None:
    sizes = []

    def work(batch: Sequence[ChatQuestion], inputs: ModelInputs) -> list[int]:
        sizes.append(len(batch))
        if len(batch) > 3:
            raise torch.OutOfMemoryError("out of memory: so much")
        return inputs["input_ids"].tolist()

    batches = QuestionBatches(Echo(), "me", 8)
    lengths = list(range(30, 10, -1))
    with pytest.warns(UserWarning, match=r"out of memory; 'me' continues with batches of [24]") as warned:
        assert dict(batches.run(questions(lengths), work)) == dict(enumerate(lengths))
    assert len(warned) == 2
    assert sizes == [8, 4, *[2] * 10]
    assert batches.size == 2

    def too_much(batch: Sequence[ChatQuestion], inputs: ModelInputs) -> list[int]:
        raise MemoryError("no")

    message = "'me' runs out of memory with a single question"
    with pytest.warns(UserWarning, match="batches of 1"), pytest.raises(MemoryError, match=message):
        list(batches.run(questions(lengths), too_much))


def deaf_in_batches(model: Any) -> None:
    """Let a model mistake the first of several clips, as a wrong mask would."""
    encode = model.front_end.encode

    def damaged(chats: Sequence[str], clips: Sequence[np.ndarray]) -> ModelInputs:
        inputs: ModelInputs = encode(chats, clips)
        if len(chats) > 1:
            inputs["input_features"][-1] = inputs["input_features"][0].flip(-1)
        return inputs

    model.front_end.encode = damaged


def test_a_model_that_hears_otherwise_in_batches_goes_on_alone_and_says_so(load: Load) -> None:
    expected = load("qwen2-audio").answer(each(sounds()), PROMPTS)
    model = load("qwen2-audio")
    deaf_in_batches(model)
    with pytest.warns(UserWarning, match=r"'qwen2-audio' answers differently in a batch: .* one question at"):
        assert model.answer(each(sounds()), PROMPTS) == expected
    assert model.batch_size == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.answer(each(sounds()), PROMPTS) == expected


def broken(model: Any, least: int) -> None:
    """Let a model compute NaN for the first of so many clips or more, as float16 does of what is beyond its range."""

    def damage(module: Any, inputs: Any, output: Any) -> None:
        if len(output.logits) >= least:
            output.logits[0] = torch.nan

    model.model.register_forward_hook(damage)


def test_a_model_that_computes_nan_in_batches_goes_on_alone_and_one_that_always_does_is_refused(load: Load) -> None:
    expected = load(FAST).answer(each(sounds()), PROMPTS)
    model = load(FAST)
    broken(model, 2)
    with pytest.warns(UserWarning, match="answers differently in a batch: nan of the probability"):
        assert model.answer(each(sounds()), PROMPTS) == expected
    broken(model, 1)
    message = r"'qwen2\.5-omni' returned NaN in float32; try another precision"
    for by in ("letters", "options"):
        with pytest.raises(ModelError, match=message):
            model.score_options(each(sounds()[:1]), PROMPTS[:1], OPTIONS[:1], by)  # type: ignore[arg-type]
    model = load(FAST)
    broken(model, 1)
    with pytest.raises(ModelError, match=message):
        model.answer(each(sounds()), PROMPTS)


def test_a_cache_on_several_devices_is_chosen_from_by_numbers_on_the_cpu() -> None:
    class ChosenError(Exception):
        """The test is over."""

    class Cache:
        def batch_select_indices(self, rows: torch.Tensor) -> None:
            assert rows.device.type == "cpu"
            raise ChosenError

    def forward(inputs: ModelInputs, *, only_last: bool) -> Any:
        return SimpleNamespace(logits=torch.zeros(1, 1, 5), past_key_values=Cache())

    with pytest.raises(ChosenError):
        log_likelihoods(forward, {"attention_mask": torch.ones(1, 3, device="meta")}, [[[1, 2], [3]]], pad=0)


def test_batches_are_not_checked_where_there_are_none(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []
    monkeypatch.setattr(transformers_model, "difference_alone_and_together", lambda *_: checks.append(1) or 0.0)
    model = load(FAST)
    model.answer(each(sounds()[:1]), PROMPTS[:1])
    assert not checks
    model.answer(each(sounds()[:2]), PROMPTS[:2])
    model.score_options(each(sounds()), PROMPTS, OPTIONS)
    assert len(checks) == 1
    assert model.answer([], []) == []


TWO = OPTIONS[:2]


@pytest.mark.parametrize(
    ("prompts", "options", "by", "message"),
    [
        (PROMPTS[:2], TWO, "letters", "there are 2 prompts but 3 clips"),
        ([*PROMPTS[:2], " "], OPTIONS, "letters", "prompt 2 is ' '; it must be a text"),
        (PROMPTS, [*TWO, ["dog"]], "options", r"the options of prompt 2 are \['dog'\]; pass two"),
        (PROMPTS, [*TWO, ["dog", ""]], "options", "an option of prompt 2 is ''; it must be a text"),
        (PROMPTS, [*TWO, ["x"] * 27], "letters", "prompt 2 has 27 options, but there are 26 letters"),
        (PROMPTS, OPTIONS, "both", "by is 'both'; it must be 'letters' or 'options'"),
        (
            ["What is <|AUDIO|>?"] * 3,
            OPTIONS,
            "letters",
            r"the prompt 'What is <\|AUDIO\|>\?' holds <\|AUDIO\|>, the token",
        ),
    ],
)
def test_questions_that_are_none(prompts: Any, options: Any, by: Any, message: str, load: Load) -> None:
    with pytest.raises(InputError, match=message):
        load(FAST).score_options(each(sounds()), prompts, options, by)


@pytest.mark.slow
def test_a_template_that_begins_a_thought(load: Load) -> None:
    model, plain = load(FAST), load(FAST)
    template = model.front_end.tokenizer.chat_template
    model.front_end.tokenizer.chat_template = template.replace("assistant\n{%", "assistant\n<think>\n{%")
    assert model.front_end.chat("?") == plain.front_end.chat("?") + "<think>\n"
    answers = model.answer(each(sounds()), PROMPTS)
    assert all(answer.startswith("<think>\n") for answer in answers)
    # What the model itself writes behind the same chat.
    plain.front_end.chat = model.front_end.chat  # type: ignore[method-assign]
    plain.front_end.opening = lambda chat: ""  # type: ignore[method-assign]
    assert [f"<think>\n{answer}" for answer in plain.answer(each(sounds()), PROMPTS)] == answers
    with pytest.raises(ModelError, match="begins each answer with reasoning"):
        model.score_options(each(sounds()), PROMPTS, OPTIONS)


def test_letters_that_share_a_token_are_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(FAST)
    tokens = model.front_end.tokens
    monkeypatch.setattr(
        model.front_end, "tokens", lambda text: tokens(text.removesuffix("C") + "B" * text.endswith("C"))
    )
    with pytest.raises(ModelError, match=r"the answers B and C to 'qwen2\.5-omni' begin with the same token, 'B'"):
        model.score_options(each(sounds()), PROMPTS, OPTIONS, "letters")
    monkeypatch.setattr(model.front_end, "tokens", lambda text: tokens(text[::-1]))
    with pytest.raises(ModelError, match="the answer 'dog' has no tokens of its own behind"):
        model.score_options(each(sounds()), PROMPTS, OPTIONS, "options")


def test_options_of_encoders_are_refused(folder: Folder) -> None:
    for options in (EncoderOptions(layer=1), EncoderOptions(pooling="max"), EncoderOptions(compile=True)):
        with pytest.raises(ModelError, match=r"is an audio language model and takes no layer.*'tower:qwen2-audio'"):
            load_model(str(folder("qwen2-audio")), options=options)


def test_options_that_are_asked_for_are_those_of_the_model(folder: Folder) -> None:
    """The command line asks for any model so: of one that embeds the same precision, its default float32."""
    path, options = str(folder("qwen2-audio")), LanguageOptions(precision="bfloat16", batch_size=64)
    model = load_model(path, device="cpu", options=options)
    assert isinstance(model, TransformersLanguageModel)
    assert (model.batch_size, model.questions_per_call, model.options.precision) == (64, 512, "bfloat16")
    assert load_model(path, device="cpu", options=LanguageOptions()).batch_size == 4  # type: ignore[union-attr]
    for precision, expected in (("auto", "float32"), ("bfloat16", "bfloat16")):
        tower = load_encoder(path, device="cpu", options=LanguageOptions(precision=precision, batch_size=8))
        assert tower.card.options == EncoderOptions(precision=expected)


def test_where_an_encoder_is_wanted_it_is_the_audio_tower(folder: Folder) -> None:
    path = str(folder("audio-flamingo-3"))
    clips = np.stack([sounds((1.0,))[0].waveform])
    by_name, by_kind = load_model(f"tower:{path}", device="cpu"), load_encoder(path, device="cpu")
    assert by_name.card == by_kind.card
    assert by_kind.card.id == "tower:audio-flamingo-3"
    assert by_kind.embed(clips, 16_000).shape == (1, 32)
    assert load_encoder(f"untrained:tower:{path}", device="cpu").card.id == "untrained:tower:audio-flamingo-3"


def test_an_architecture_without_a_runner_lists_those_that_have_one(folder: Folder, tmp_path: Path) -> None:
    config = json.loads((folder("audio-flamingo-3") / "config.json").read_text())
    changed = {**config, "model_type": "glmasr", "architectures": ["GlmAsrForConditionalGeneration"]}
    changed["audio_config"] = {"model_type": "glmasr_encoder"}
    (tmp_path / "config.json").write_text(json.dumps(changed))
    with pytest.raises(ModelError, match=r"is a GlmAsrForConditionalGeneration, .*Qwen2AudioForConditionalGeneration"):
        load_model(str(tmp_path))


@pytest.mark.parametrize("architecture", sorted(listing.LEFT_OUT)[:1])
def test_architectures_that_are_left_out_say_why(architecture: str) -> None:
    config = SimpleNamespace(architectures=[architecture])
    assert listing.family_of(config) is None
    with pytest.raises(
        ModelError, match=rf"is a {architecture}, an unsupported architecture \(its? .*\); supported are"
    ):
        listing.check_architecture(config, "theirs")


def test_a_missing_package_is_named_with_what_installs_it(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    family = families()["Qwen-Omni"]
    needy = LanguageFamily(
        **{**vars(family), "packages": {"no_such_package": "audio-compositionality[voxtral]", "torch": "torch"}}
    )
    monkeypatch.setattr(listing._families, "_added", {needy.name: needy})
    with pytest.raises(
        ModelError, match=r"family Qwen-Omni need no_such_package, .*pip install 'audio-compositionality\[voxtral\]'"
    ):
        load_model(str(folder(FAST)))


@pytest.mark.parametrize(
    ("family", "file", "message"),
    [
        ("qwen2-audio", "model.safetensors", "holds no safetensors weights"),
        ("qwen2-audio", "processor_config.json", "has no chat template|cannot read the processor"),
        (FAST, "tokenizer.json", "has no tokenizer"),
        (FAST, "chat_template.jinja", "has no chat template"),
        (FAST, "preprocessor_config.json", "has no feature extractor"),
    ],
)
def test_files_that_are_missing(family: str, file: str, message: str, folder: Folder, tmp_path: Path) -> None:
    shutil.copytree(folder(family), tmp_path, dirs_exist_ok=True)
    names = {path.name for path in tmp_path.iterdir()}
    if file not in names:
        pytest.skip(f"this version of transformers writes no {file}: {sorted(names)}")
    (tmp_path / file).unlink()
    with pytest.raises(ModelError, match=message):
        load_model(str(tmp_path))


def test_the_thinker_is_taken_out_of_the_whole_model(folder: Folder, tmp_path: Path, load: Load) -> None:
    """Names of tensors and configuration as the published repository of Qwen2.5-Omni has them."""
    shutil.copytree(folder(FAST), tmp_path, dirs_exist_ok=True)
    config = json.loads((tmp_path / "config.json").read_text())
    whole = {"architectures": ["Qwen2_5OmniModel"], "model_type": "qwen2_5_omni", "thinker_config": config}
    (tmp_path / "config.json").write_text(json.dumps(whole))
    template = (tmp_path / "chat_template.jinja").read_text()
    (tmp_path / "chat_template.jinja").unlink()
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": template}))
    published = {}
    for name, value in omni25_model(omni_tokenizer()).state_dict().items():
        old = (
            name.replace("model.language_model.", "model.") if "language_model" in name else name.removeprefix("model.")
        )
        published[f"thinker.{old}"] = value.contiguous()
    published["talker.model.norm.weight"] = torch.ones(3)
    published["token2wav.conv.bias"] = torch.ones(3)
    save_file(published, tmp_path / "model.safetensors", {"format": "pt"})
    model = load_model(str(tmp_path), device="cpu")
    expected = load(FAST)
    assert isinstance(model, transformers_model.TransformersLanguageModel)
    assert model.answer(each(sounds()), PROMPTS) == expected.answer(each(sounds()), PROMPTS)
    assert model.card.parameters == expected.card.parameters


def test_a_clip_of_more_than_one_window(load: Load) -> None:
    """Audio Flamingo 3 hears 30 s at a time, and Qwen2.5-Omni as long as its limit."""
    long = Sound(np.tile(sounds((4.0,))[0].waveform, 10), 16_000)
    for family in ("audio-flamingo-3", FAST):
        model = load(family)
        together = model.answer(each([long, *sounds()[:1]]), PROMPTS[:2])
        assert model.answer(each([long]), PROMPTS[:1])[0] == together[0]
        ids = model.front_end.encode([model.front_end.chat("?")], [long.waveform])["input_ids"]
        placeholder = model.front_end.tokenizer.convert_tokens_to_ids(model.front_end.placeholder)
        assert int((ids == placeholder).sum()) == 1000
