"""Twins: which names ask for one, what is done to the weights, and what the card says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.checkpoints import open_checkpoint
from audio_compositionality.encoders.loading.registry import has_twins, load_encoder, load_layers
from audio_compositionality.encoders.loading.twins import TWINS, Twin, shuffle_matrices
from audio_compositionality.encoders.loading.weights import Weights
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.compare.loading import ModelKind, model_kind
from audio_compositionality.support.files import sha256_of_file

from ..contract import Saved

SHUFFLED = TWINS["shuffled"]

KEPT = {
    "whisper": {"embed_positions.weight"},
    "wavlm": {"encoder.layers.0.attention.rel_attn_embed.weight"},
    "w2v-bert": {f"encoder.layers.{k}.self_attn.distance_embedding.weight" for k in (0, 1)},
    "sew-d": {"encoder.encoder.rel_embeddings.weight"},
    "wav2vec2-conformer": {
        f"encoder.layers.{k}.self_attn.pos_bias_{table}" for k in (0, 1) for table in "uv"
    },
    "ast": {"embeddings.position_embeddings"},
    "clap": {
        f"audio_model.audio_encoder.layers.{k}.blocks.0.attention.self.relative_position_bias_table" for k in (0, 1)
    },
    "encodec": set(),
}  # fmt: skip
"""Parameters of tiny models that have two dimensions or more and are no matrices of weights."""


def run(encoder: Any) -> torch.nn.Module:
    """The module that an encoder runs."""
    module: torch.nn.Module = encoder._model if hasattr(encoder, "_model") else encoder._encoder
    return module


def dimensions(parameter: torch.Tensor) -> int:
    return sum(length > 1 for length in parameter.shape)


@pytest.mark.parametrize("family", sorted(KEPT))
def test_shuffled_has_the_values_of_each_matrix_in_another_order_and_all_else_as_it_was(
    family: str, saved: Saved
) -> None:
    folder = saved(family)
    model = load_encoder(str(folder), device="cpu")
    twin, again, other = (load_encoder(f"shuffled:{folder}", device="cpu", seed=seed) for seed in (0, 0, 1))
    stored, shuffled, same, another = (dict(run(encoder).named_parameters()) for encoder in (model, twin, again, other))
    assert list(stored) == list(shuffled)
    kept = set()
    for name, values in stored.items():
        assert torch.equal(same[name], shuffled[name])
        if torch.equal(shuffled[name], values):
            assert torch.equal(another[name], values)
            kept |= {name} if dimensions(values) > 1 else set()
        else:
            assert dimensions(values) > 1
            assert torch.equal(shuffled[name].flatten().sort().values, values.flatten().sort().values)
            assert not torch.equal(another[name], shuffled[name])
    assert kept == KEPT[family]
    buffers = dict(run(twin).named_buffers())
    assert all(torch.equal(buffers[name], values) for name, values in run(model).named_buffers())

    digest = model.card.revision.removeprefix("sha256-")[:12]
    assert [one.card.revision for one in (twin, other)] == [f"seed-{seed}-{digest}" for seed in (0, 1)]


def test_layers_of_a_shuffled_twin_share_its_weights(saved: Saved) -> None:
    name = f"shuffled:{saved('whisper')}"
    first, last = load_layers(name, [1, 2], device="cpu")
    alone = load_encoder(name, device="cpu", options=EncoderOptions(layer=1))
    assert [layer.card.id for layer in (first, last)] == ["shuffled:whisper@layer=1", "shuffled:whisper@layer=2"]
    clips = np.random.default_rng(0).normal(0, 0.1, (1, 16_000)).astype(np.float32)
    np.testing.assert_array_equal(first.embed(clips, 16_000), alone.embed(clips, 16_000))


def test_shuffled_weights_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    stored = {"weight": torch.arange(12.0).view(3, 4), "bias": torch.arange(3.0)}
    save_file(stored, path)
    weights = Weights("name", path, Twin(SHUFFLED, 5), "masked", "MIT")
    module = weights.build(lambda: torch.nn.Linear(4, 3))
    assert not torch.equal(module.weight, stored["weight"])
    assert torch.equal(module.weight.flatten().sort().values, stored["weight"].flatten())
    assert torch.equal(module.bias, stored["bias"])
    assert not module.weight.requires_grad
    assert (weights.id, weights.weights_sha256) == ("shuffled:name", None)
    assert weights.revision == f"seed-5-{sha256_of_file(path)[:12]}"


def test_what_has_twins_and_the_revision_of_one_of_the_hub(saved: Saved) -> None:
    assert not any(has_twins(f"{kind.prefix}whisper-base") for kind in TWINS.values())
    assert all(has_twins(name) for name in ("whisper-base", "whisper-base=x", "org/model", "./folder"))
    assert not any(has_twins(name) for name in ("hear:x", "mteb:a/b", "xares:x.py:C", "random"))
    checkpoint = open_checkpoint(saved("whisper"), twin=Twin(SHUFFLED, 3))
    assert checkpoint.fresh_seed is None
    of_hub = type(checkpoint)("org/name", "org/name", "0123456789abcdef", checkpoint.config, Twin(SHUFFLED, 3))
    assert of_hub.revision == "seed-3-0123456789ab"


def test_what_counts_as_a_matrix() -> None:
    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recurrent = torch.nn.LSTM(3, 4)
            self.convolution = torch.nn.utils.parametrizations.weight_norm(torch.nn.Conv1d(3, 4, 5))
            self.words = torch.nn.Embedding(7, 3)
            self.positions = torch.nn.Embedding(7, 3)
            self.linear_pos = torch.nn.Linear(3, 4)
            self.norm = torch.nn.LayerNorm((3, 4))
            self.pos_embed = torch.nn.Parameter(torch.ones(1, 5, 3))
            self.bias_u = torch.nn.Parameter(torch.ones(5, 3))
            self.mixing = torch.nn.Parameter(torch.ones(5, 3))
            self.cls_token = torch.nn.Parameter(torch.ones(1, 1, 3))

    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = Network()
        for parameter in network.parameters():
            torch.nn.init.normal_(parameter)
    before = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    shuffle_matrices(network, 0)
    changed = {name for name, parameter in network.named_parameters() if not torch.equal(parameter, before[name])}
    assert changed == {
        "recurrent.weight_ih_l0",
        "recurrent.weight_hh_l0",
        "convolution.parametrizations.weight.original1",
        "words.weight",
        "linear_pos.weight",
        "mixing",
    }


def test_what_is_drawn_for_a_matrix_depends_on_its_name_and_the_seed_only() -> None:
    def shuffled(names: tuple[str, ...], prefixes: tuple[str, ...] = ("",)) -> dict[str, list[float]]:
        module = torch.nn.ParameterDict({name: torch.nn.Parameter(torch.arange(24.0).view(4, 6)) for name in names})
        shuffle_matrices(module, 0, prefixes)
        return {name: parameter.flatten().tolist() for name, parameter in module.items()}

    state = torch.random.get_rng_state()
    both, one, first_only = shuffled(("a", "b")), shuffled(("b",)), shuffled(("a", "b"), ("a",))
    assert both["b"] == one["b"] != both["a"]
    assert first_only == {"a": both["a"], "b": list(map(float, range(24)))}
    assert torch.equal(torch.random.get_rng_state(), state)
    # The same with every version of torch that is supported, so that a revision names weights.
    assert both["a"][:6] == [0.0, 10.0, 5.0, 16.0, 23.0, 11.0]


def test_a_shuffled_twin_needs_the_stored_weights(saved: Saved, tmp_path: Path) -> None:
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((saved("whisper") / name).read_bytes())
    load_encoder(f"untrained:{tmp_path}", device="cpu")
    with pytest.raises(ModelError, match="holds no safetensors weights"):
        load_encoder(f"shuffled:{tmp_path}", device="cpu")


def test_no_twin_is_taken_for_a_trained_model_and_each_is_on_the_page(saved: Saved) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to/models.md").read_text("utf-8")
    for kind in TWINS.values():
        card = load_encoder(f"{kind.prefix}{saved('whisper')}", device="cpu").card
        assert model_kind(card) is ModelKind.UNTRAINED  # type: ignore[arg-type]
        assert f"`{kind.prefix}" in page
