"""Published checkpoints that our own code reads: every tensor has its place, and a wrong one is named.

Networks are of the full size and without memory; tensors are zeros but for what is looked at.
`tests/encoders/test_references.py` compares the whole models with the published packages.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from seeded import FOLDER, torchlibrosa_constants

from audio_compositionality.encoders.families import ms_clap
from audio_compositionality.encoders.families.audiomae import convert_audiomae, make_model
from audio_compositionality.encoders.families.beats import convert_beats
from audio_compositionality.encoders.families.panns import convert_cnn14
from audio_compositionality.encoders.families.passt import convert_passt
from audio_compositionality.encoders.loading.weights import load_exactly
from audio_compositionality.encoders.networks import beats_network, cnn14, htsat, passt_network

State = dict[str, torch.Tensor]

NETWORKS: Mapping[str, tuple[Callable[[], torch.nn.Module], Callable[[State], State], tuple[str, ...]]] = {
    "audiomae": (make_model, convert_audiomae, ()),
    "beats-iter3": (beats_network.Beats, convert_beats, ()),
    "ms-clap-2022": (htsat.ProjectedCnn14, ms_clap.convert_ms_clap_2022, tuple(ms_clap.UNUSED_2022)),
    "ms-clap-2023": (htsat.MsClap, ms_clap.convert_ms_clap, tuple(ms_clap.UNUSED)),
    "panns-cnn14": (cnn14.Cnn14, convert_cnn14, ("fc_audioset.",)),
    "passt-s": (passt_network.Passt, convert_passt, ("head.", "head_dist.")),
}
"""By model: its network, what translates the names of its checkpoint, and what of that may be left over."""

HTSAT = "audio_encoder.base.htsat."
BASE = "audio_encoder.base."
TABLE = "encoder.layers.{}.self_attn.relative_attention_bias.weight"
STFT = "spectrogram_extractor.stft.conv_{}.weight"
MEL = "logmel_extractor.melW"
IMAGINARY = HTSAT + STFT.format("imag")

BESIDE: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "ms-clap-2023": {
        HTSAT + "layers.0.blocks.0.attn.relative_position_index": (64, 64),
        HTSAT + "layers.0.blocks.1.attn_mask": (64, 64, 64),
        "caption_encoder.base.wte.weight": (2, 2),
        "caption_encoder.projection.linear1.weight": (2, 2),
        "logit_scale": (),
    },
    "ms-clap-2022": {
        "caption_encoder.base.embeddings.position_ids": (1, 512),
        "caption_encoder.projection.linear1.weight": (2, 2),
        "logit_scale": (),
    },
    # The table is stored with each block.
    "beats-iter3": {TABLE.format(block): (320, 12) for block in range(12)},
}
"""What the files hold beside the tensors with which the references were run."""


@pytest.fixture(scope="module")
def official() -> Callable[[str], State]:
    """Function of a model: its checkpoint by the official names."""
    made: dict[str, State] = {}

    def state(name: str) -> State:
        if name not in made:
            with safe_open(FOLDER / f"{name}.safetensors", "numpy") as file:
                about: dict[str, Any] = json.loads(file.metadata()["about"])
            shapes = {**about["shapes"], **BESIDE.get(name, {})}
            made[name] = {key: torch.zeros(()).expand(tuple(shape)) for key, shape in shapes.items()}
            if about["constants"]:
                constants = torchlibrosa_constants(**about["constants"])
                made[name] |= {key: torch.from_numpy(array) for key, array in constants.items()}
        return dict(made[name])

    return state


def load(name: str, state: State) -> torch.nn.Module:
    make, convert, unused = NETWORKS[name]
    with torch.device("meta"):
        network = make()
    load_exactly(network, convert(state), "file", unused)
    return network


@pytest.mark.filterwarnings("ignore:.*copying from a non-meta parameter")
@pytest.mark.parametrize("name", NETWORKS)
def test_every_tensor_of_a_checkpoint_has_its_place(name: str, official: Callable[[str], State]) -> None:
    count = sum(weight.numel() for weight in load(name, official(name)).parameters())
    if name == "panns-cnn14":
        # The paper counts 80,753,615 with the classifier.
        assert count == 80_753_615 - (2048 * 527 + 527)
    if name == "passt-s":
        # The official file has 344,665,734 bytes: these weights and the classifiers' in float32, and the names.
        classifiers = 2 * 768 + 2 * (768 * 527 + 527)
        assert 344_665_734 - 100_000 < 4 * (count + classifiers) < 344_665_734
    if name == "beats-iter3":
        assert len(official(name)) == 250


UNTAPERED = torch.from_numpy(
    np.real(np.exp(-2j * np.pi * np.outer(np.arange(513), np.arange(1024)) / 1024))[:, None].astype(np.float32)
)


@pytest.mark.parametrize(
    ("name", "key", "value", "message"),
    [
        # A checkpoint fine-tuned with average pooling normalises after the mean, by fc_norm.
        ("audiomae", "norm.bias", "fc_norm.bias", "1 missing: layernorm.bias; 1 unexpected: fc_norm.bias"),
        ("beats-iter3", TABLE.format(0), None, "1 missing: encoder.relative_attention_bias.weight$"),
        ("beats-iter3", TABLE.format(7), torch.ones(320, 12), r"layers\.7.*relative_attention_bias\.weight differs"),
        ("ms-clap-2023", HTSAT + "layers.1.blocks.0.attn.qkv.bias", None, r"3 missing: .*\.0\.attention\.self\.key"),
        ("ms-clap-2023", HTSAT + STFT.format("real"), None, r"conv_real\.weight' are missing"),
        ("ms-clap-2023", IMAGINARY, UNTAPERED, r"conv_imag\.weight' differ by .* was trained with another front end"),
        ("ms-clap-2023", IMAGINARY, torch.zeros(257, 1, 512), r"have the shape \(257, .* the shape \(513, 1, 1024\)"),
        ("ms-clap-2022", BASE + "fc1.bias", torch.zeros(7), r"fc1\.bias \(stored \(7,\), model \(2048,\)\)"),
        ("panns-cnn14", "conv_block7.conv1.weight", torch.zeros(1), r"1 unexpected: blocks\.6\.conv1\.weight"),
        ("panns-cnn14", STFT.format("real"), torch.full((513, 1, 1024), torch.nan), "differ by nan"),
        ("passt-s", "blocks.12.norm1.bias", torch.zeros(768), r"1 unexpected: blocks\.12\.norm1\.bias"),
        # As in the models for 20 s.
        ("passt-s", "time_new_pos_embed", torch.zeros(1, 768, 1, 199), r"time_new_pos_embed \(stored .*199\), model"),
    ],
)
def test_a_wrong_tensor_is_named(
    name: str, key: str, value: torch.Tensor | str | None, message: str, official: Callable[[str], State]
) -> None:
    """A tensor that is not there, renamed, another one, or one too many."""
    state = official(name)
    before = state.pop(key, None)
    if isinstance(value, str):
        assert before is not None
        state[value] = before
    elif value is not None:
        state[key] = value
    with pytest.raises(ValueError, match=message):
        load(name, state)


@pytest.mark.parametrize(("name", "prefix"), [("ms-clap-2023", HTSAT), ("panns-cnn14", "")])
def test_the_stored_mel_filters_are_taken(name: str, prefix: str, official: Callable[[str], State]) -> None:
    """Those that the packages build without a checkpoint may be for another rate."""
    state = official(name)
    state[prefix + MEL] = torch.rand_like(state[prefix + MEL])
    assert torch.equal(NETWORKS[name][1](state)["log_mel.filters"], state[prefix + MEL])
