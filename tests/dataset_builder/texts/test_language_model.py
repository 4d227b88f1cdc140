"""A model of transformers: greedy, in batches, without code of its own; here one of random weights."""

import json
from collections import Counter

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from audio_compositionality.dataset_builder.texts.rewriting import LanguageModel, LanguageModelWriter, rewrite
from audio_compositionality.support.errors import InputError

from .scripted import save_tiny_gpt2
from .test_rewriting import TRAINING

CHAT = "{% for message in messages %}[{{ message.role }}]{{ message.content }}{% endfor %}[answer]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny_gpt2(tmp_path_factory.mktemp("gpt2") / "tiny")


def greedy(folder, prompt, count):
    """The most probable byte after the other, one at a time."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    tokens = tokenizer(prompt)["input_ids"]
    answer = []
    with torch.inference_mode():
        while len(answer) < count and answer[-1:] != [256]:
            answer.append(int(model(torch.tensor([tokens + answer])).logits[0, -1].argmax()))
    return tokenizer.decode(answer, skip_special_tokens=True)


def test_the_most_probable_token_is_taken_whatever_the_models_own_settings(folder):
    prompts = ["a bell", "Say something about an organ, please.", "x"]
    expected = [greedy(folder, prompt, 12) for prompt in prompts]
    for batch_size in (1, 2, 3):
        model = LanguageModel(folder, device="cpu", batch_size=batch_size, most_new_tokens=12)
        assert model.generate(prompts) == expected
    assert model.generate([]) == []


def test_a_random_model_writes_nothing_and_every_text_is_counted(folder):
    model = LanguageModel(folder, device="cpu", most_new_tokens=20)
    rows, report = rewrite([TRAINING, {**TRAINING, "id": "t-1"}], LanguageModelWriter(model))
    assert [{**row, "writer": None} for row in rows] == [{**TRAINING, "id": f"t-{n}", "writer": None} for n in range(2)]
    assert {row["writer"] for row in rows} == {"template"}
    assert (report.asked, report.taken, Counter(report.refused)) == (10, 0, Counter({"no JSON": 10}))


def test_a_chat_template_is_used(tmp_path):
    folder = save_tiny_gpt2(tmp_path / "chat", chat_template=CHAT)
    model = LanguageModel(folder, device="cpu", most_new_tokens=8)
    assert model.generate(["a bell"]) == [greedy(folder, "[user]a bell[answer]", 8)]


def test_a_folder_is_known_by_what_it_holds(folder, tmp_path):
    identity = LanguageModel(folder, device="cpu").identity
    assert identity["model"] == "tiny"
    assert str(folder.parent) not in json.dumps(dict(identity))
    copy = save_tiny_gpt2(tmp_path / "tiny")
    assert LanguageModel(copy, device="cpu").identity == identity
    other = save_tiny_gpt2(tmp_path / "other" / "tiny", chat_template=CHAT)
    assert LanguageModel(other, device="cpu").identity["revision"] != identity["revision"]
    assert LanguageModel(folder, device="cpu", batch_size=7).identity != identity


def test_a_prompt_that_is_too_long_is_an_error(tmp_path):
    folder = save_tiny_gpt2(tmp_path / "short", positions=64)
    model = LanguageModel(folder, device="cpu", most_new_tokens=32)
    assert len(model.generate(["x" * 32])) == 1
    with pytest.raises(InputError, match="reads 64 tokens; a prompt has 33 and its answer up to 32"):
        model.generate(["x" * 33])


def test_code_of_a_model_is_never_run(tmp_path):
    folder = save_tiny_gpt2(tmp_path / "code")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "of-its-own", "auto_map": {"AutoConfig": "code.C", "AutoModelForCausalLM": "code.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(InputError, match="cannot load the language model"):
        LanguageModel(folder, device="cpu")
    assert not (tmp_path / "ran").exists()


def test_pickles_are_not_read(tmp_path):
    folder = save_tiny_gpt2(tmp_path / "pickled")
    (folder / "model.safetensors").unlink()
    torch.save(AutoModelForCausalLM.from_config(_config(folder)).state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="weights in safetensors"):
        LanguageModel(folder, device="cpu")


def _config(folder):
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(folder)


@pytest.mark.parametrize("name", ["no/such-model", "./nowhere"])
def test_a_model_that_is_not_there_is_an_error(name):
    with pytest.raises(InputError, match="cannot load the language model"):
        LanguageModel(name, device="cpu")
