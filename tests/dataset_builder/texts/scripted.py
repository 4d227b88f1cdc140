"""A model that answers as it is told, and a small one with random weights."""

import json
from pathlib import Path


class Scripted:
    """Answers by what a function makes of a prompt; keeps what it was asked."""

    def __init__(self, answer=lambda prompt: "", revision="1"):
        self._answer = answer
        self.identity = {"model": "scripted", "revision": revision}
        self.asked = []

    def generate(self, prompts):
        self.asked.append(list(prompts))
        return [self._answer(prompt) for prompt in prompts]


def kind_of_prompt(prompt):
    """What a prompt asks for: paraphrase, description, negatives."""
    if "times at which they are heard" in prompt:
        return "description"
    return "negatives" if "are false of this recording" in prompt else "paraphrase"


def as_json(**values):
    return f"Of course.\n```json\n{json.dumps(values)}\n```"


def save_tiny_gpt2(folder: Path, *, chat_template=None, positions=4_096, vocabulary=256) -> Path:
    """A GPT-2 of random weights that reads bytes."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {letter: number for number, letter in enumerate(letters)} | {"<end>": 256}
    tokenizer = Tokenizer(models.BPE(words, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")
    fast.chat_template = chat_template
    fast.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = GPT2Config(
            vocab_size=vocabulary + 1, n_positions=positions, n_embd=16, n_layer=1, n_head=2, eos_token_id=256
        )
        model = GPT2LMHeadModel(config)
    # What such a model should not be asked with.
    model.generation_config.update(do_sample=True, temperature=3.0, repetition_penalty=5.0)
    model.save_pretrained(folder)
    return folder
