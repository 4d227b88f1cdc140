"""Twins of users' classes: of torch modules, of those that hold one, of those that say how; and what is refused."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
import torch

from audio_compositionality.encoders.adapters.custom import ModelCodeError, weights_digest
from audio_compositionality.encoders.adapters.custom_loading import twin_problem
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.check import check_model
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.evaluator.compare.loading import ModelKind, model_kind
from audio_compositionality.evaluator.results.result import ScoredModel

from .conftest import Write

HEAD = """
import numpy as np
import torch
from torch import nn
"""

MODULE = (
    HEAD
    + """
class Mine(nn.Module):
    sample_rate, licence, trained_on, paradigm = 8_000, "MIT", "dogs", "self-supervised"

    def __init__(self):
        super().__init__()
        torch.manual_seed(99)
        self.layer = nn.Linear(80, 6)
        self.norm = nn.BatchNorm1d(6)
        self.attention = nn.MultiheadAttention(6, 2, batch_first=True)
        self.eval()

    def embed(self, waveforms, sample_rate):
        frames = self.layer(torch.from_numpy(waveforms).unfold(1, 80, 80))
        frames = self.norm(frames.mT).mT
        return (frames + self.attention(frames, frames, frames)[0]).mean(dim=1)
"""
)

HOLDER = (
    HEAD
    + """
class Mine:
    sample_rate, network = 8_000, "encoder"

    def __init__(self):
        self.encoder = nn.Linear(80, 6)
        with torch.no_grad():
            self.encoder.weight.copy_(torch.arange(480.0).view(6, 80))
            self.encoder.bias.fill_(1)

    def embed(self, waveforms, sample_rate):
        return self.encoder(torch.from_numpy(waveforms).unfold(1, 80, 80)).mean(dim=1)
"""
)

ONE = HOLDER.replace('sample_rate, network = 8_000, "encoder"', "sample_rate = 8_000").replace(
    "def __init__(self):", "def __init__(self):\n        self.window = nn.Identity()"
)
"""Holds one network and a module without weights, such as a spectrogram."""

TWO = ONE.replace("self.window = nn.Identity()", "self.head = nn.Linear(6, 2)")

SAYS = """
import numpy as np
import torch

class Mine:
    sample_rate = 8_000

    def __init__(self, weights=1.0):
        self.weights = np.full(3, weights)

    def embed(self, waveforms, sample_rate):
        return waveforms[:, :3] * self.weights

    def untrained(self):
        return Mine(float(torch.rand(())))
"""


def clips() -> np.ndarray:
    return np.random.default_rng(0).normal(0, 0.1, (3, 4_000)).astype(np.float32)


def network(model: Any) -> Any:
    return getattr(model.made, "encoder", model.made)


@pytest.mark.parametrize("text", [MODULE, HOLDER], ids=["a module", "holds one"])
def test_a_class_with_a_network_has_both_twins(write: Write, text: str) -> None:
    spec = write(text)
    assert has_twins(spec)
    assert has_twins(spec, "shuffled:")
    assert twin_problem(load_model(spec), "untrained:") is None
    model, fresh, other, again = (
        load_model(name, device="cpu", seed=seed)
        for name, seed in ((spec, 0), (f"untrained:{spec}", 0), (f"untrained:{spec}", 1), (f"untrained:{spec}", 0))
    )
    mine, fresh_values = model.embed(clips(), 8_000), fresh.embed(clips(), 8_000)
    np.testing.assert_array_equal(fresh_values, again.embed(clips(), 8_000))
    assert weights_digest(network(fresh)) == weights_digest(network(again))
    assert np.abs(fresh_values - mine).max() > 1e-3
    assert np.abs(fresh_values - other.embed(clips(), 8_000)).max() > 1e-3
    shuffled = load_model(f"shuffled:{spec}", device="cpu")
    for (name, of_model), (_, of_twin) in zip(
        network(model).named_parameters(), network(shuffled).named_parameters(), strict=True
    ):
        assert torch.equal(of_model, of_twin) == (of_model.ndim < 2), name
        assert torch.equal(of_model.flatten().sort()[0], of_twin.flatten().sort()[0])


def test_fresh_weights_are_those_that_torch_draws_and_its_random_numbers_stay(write: Write) -> None:
    states = []
    for name in (spec := write(HOLDER), f"untrained:{spec}", f"shuffled:{spec}"):
        torch.manual_seed(1)
        load_model(name, device="cpu")
        states.append(torch.random.get_rng_state())
    assert torch.equal(states[0], states[1])
    assert torch.equal(states[0], states[2])
    twin = load_model(f"untrained:{spec}", device="cpu", seed=5)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        linear = torch.nn.Linear(80, 6)
    assert weights_digest(network(twin)) == weights_digest(linear)


def test_what_cards_of_twins_say(write: Write) -> None:
    spec = write(MODULE)
    model = load_model(spec, device="cpu")
    for kind, licence in (("untrained", None), ("shuffled", "MIT")):
        card = load_model(f"{kind}:{spec}", device="cpu", seed=3).card
        assert (card.id, card.revision, card.licence) == (f"{kind}:Mine", f"seed-3-{model.card.revision}", licence)
        assert card.paradigm == {"untrained": "untrained", "shuffled": "untrained (weights shuffled)"}[kind]
        assert (card.weights_sha256, card.trained_on, card.output_dim) == (None, None, 6)
        assert card.parameters == model.card.parameters
        assert model_kind(ScoredModel.of(card)) is ModelKind.UNTRAINED


def test_a_class_that_says_how_has_an_untrained_twin_alone(write: Write) -> None:
    spec = write(SAYS)
    assert has_twins(spec)
    assert twin_problem(load_model(spec), "untrained:") is None
    assert twin_problem(load_model("random"), "untrained:") is None
    assert not has_twins(spec, "shuffled:")
    fresh, again, other = (load_model(f"untrained:{spec}", seed=seed) for seed in (0, 0, 1))
    assert fresh.card.id == "untrained:Mine"
    np.testing.assert_array_equal(fresh.embed(clips(), 8_000), again.embed(clips(), 8_000))
    assert np.abs(fresh.embed(clips(), 8_000) - other.embed(clips(), 8_000)).max() > 1e-3
    with pytest.raises(ModelError, match=r"cannot shuffle its weights: .* holds no torch module with w"):
        load_model(f"shuffled:{spec}")


@pytest.mark.parametrize(
    ("parameters", "drawn"),
    [
        ("self", "float(torch.rand(()))"),
        ("self", "np.random.normal() + __import__('random').random()"),
        ("self, *, seed=0", "np.random.default_rng(seed).normal()"),
    ],
)
def test_the_untrained_of_a_class_depends_on_the_seed_alone(write: Write, parameters: str, drawn: str) -> None:
    spec = f"untrained:{write(SAYS.replace('float(torch.rand(()))', drawn).replace('(self):', f'({parameters}):'))}"
    before = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    first, again, other = (load_model(spec, seed=seed).embed(clips(), 8_000) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before  # noqa: NPY002


def test_a_class_of_neither_has_none(write: Write) -> None:
    spec = write(SAYS.replace("def untrained", "def other"))
    assert not has_twins(spec)
    words = (
        r"'untrained:.*mine\.py:Mine': cannot give it fresh weights: '.*mine\.py:Mine' holds no torch "
        r"module with weights\. Name the attribute of the network in the class: network = \"net\", or write def "
        r"untrained\(self\), which returns the twin"
    )
    with pytest.raises(ModelError, match=words):
        load_model(f"untrained:{spec}")


def test_a_class_that_holds_one_network_has_twins_and_of_several_it_names_one(write: Write) -> None:
    spec = write(ONE)
    # The class declares nothing: only an object of it shows what it holds.
    assert not has_twins(spec)
    model = load_model(spec, device="cpu")
    assert has_twins(spec, "untrained:", [model])
    assert has_twins(spec, "shuffled:", [model])
    assert twin_problem(model, "untrained:") is None
    assert weights_digest(network(load_model(f"untrained:{spec}", device="cpu"))) != weights_digest(network(model))

    spec = write(TWO)
    assert has_twins(spec, "untrained:", [load_model(spec, device="cpu")])
    with pytest.raises(
        ModelError, match=r"holds torch modules in head, encoder\. Name .*: network = \"head\", or write def"
    ):
        load_model(f"untrained:{spec}", device="cpu")
    # A part of the network by another name is no second one; modules in a list are.
    spec = write(
        ONE.replace("self.window = nn.Identity()", "pass").replace(
            "with torch", "self.alias = self.encoder\n        with torch"
        )
    )
    assert load_model(f"untrained:{spec}", device="cpu").card.id == "untrained:Mine"
    spec = write(ONE.replace("self.window = nn.Identity()", "self.layers = [nn.Linear(2, 2)]"))
    with pytest.raises(ModelError, match=r"holds torch modules in layers, encoder"):
        load_model(f"untrained:{spec}", device="cpu")
    spec = write(HOLDER.replace("def __init__(self):", "def __init__(self):\n        self.head = nn.Linear(6, 2)"))
    assert load_model(f"untrained:{spec}", device="cpu").card.id == "untrained:Mine"


TOKEN = MODULE.replace("self.eval()", "self.token = nn.Parameter(torch.zeros(6)); self.eval()")


SAME = r"untrained\(\) returned the same weights; it must return the same architecture with untrained"


def says(returned: str) -> str:
    return SAYS.replace("Mine(float(torch.rand(())))", returned)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (says("Mine(1.0)"), ModelError, SAME),
        (says("None"), ModelError, r"untrained\(\) returned a NoneType, but must return the twin"),
        (MODULE + "    def untrained(self): return Mine()", ModelError, SAME),
        (SAYS.replace("float(torch.rand(()))", "1 / 0"), ModelCodeError, r"ZeroDivisionError in mine\.py, line 15"),
        (HOLDER.replace('"encoder"', '"encodr"'), ModelError, "network is 'encodr', and its attribute encodr is a"),
    ],
)
def test_what_makes_no_twin_is_refused(write: Write, text: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        load_model(f"untrained:{write(text)}", device="cpu")


def test_ways_to_say_how_a_twin_is_made(write: Write) -> None:
    changed = "    def untrained(self):\n        self.layer.reset_parameters()\n        return self\n"
    assert load_model(f"untrained:{write(MODULE + changed)}", device="cpu").card.id == "untrained:Mine"
    drawn = "    def reset_parameters(self):\n        nn.init.normal_(self.token)\n"
    token = load_model(f"untrained:{write(TOKEN + drawn)}", device="cpu").made.token  # type: ignore[attr-defined]
    assert float(token.detach().abs().sum()) > 0
    # Of a function that makes a model nothing is known before it is called.
    spec = write(HOLDER + "\n\ndef make():\n    return Mine()\n", "make")
    assert not has_twins(spec)
    assert load_model(f"untrained:{spec}").card.id == "untrained:Mine"
    assert not has_twins(write("1 / 0"))


NORMED = "self.layer = nn.utils.parametrizations.weight_norm(nn.Linear(80, 6))"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (TOKEN, "token"),
        (MODULE.replace("self.layer = nn.Linear(80, 6)", NORMED), r"layer\.parametrizations\.weight\.original0, layer"),
    ],
)
def test_weights_that_nothing_says_how_to_draw_are_named(write: Write, text: str, left: str) -> None:
    spec = write(text)
    words = rf"cannot draw fresh values for these weights: {left}.*\. Give their module reset_par"
    with pytest.raises(ModelError, match=words):
        load_model(f"untrained:{spec}", device="cpu")
    model = load_model(spec, device="cpu")
    assert re.search(words, twin_problem(model, "untrained:") or "")
    assert twin_problem(model, "shuffled:") is None
    assert load_model(f"shuffled:{spec}", device="cpu").card.id == "shuffled:Mine"
    (warned,) = (check for check in check_model(model) if check.name == "untrained twin")
    assert warned.status == "warn"
    assert re.search(words, warned.value)


def test_a_model_of_transformers_within_is_drawn_as_a_new_one_of_its_configuration(write: Write) -> None:
    text = (
        HEAD
        + """
from transformers import WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder

class Mine:
    sample_rate, network = 8_000, "encoder"

    def __init__(self):
        config = WhisperConfig(d_model=16, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=16,
                               num_mel_bins=8, max_source_positions=50, attn_implementation="eager")
        self.encoder = WhisperEncoder(config).eval()
        with torch.no_grad():
            for weight in self.encoder.parameters():
                weight.fill_(0.5)

    def embed(self, waveforms, sample_rate):
        mel = torch.from_numpy(waveforms[:, :800]).view(len(waveforms), 8, 100)
        return self.encoder(mel).last_hidden_state.mean(dim=1)
"""
    )
    twin = load_model(f"untrained:{write(text)}", device="cpu")
    weights = dict(network(twin).named_parameters())
    assert float(weights["layers.0.fc1.weight"].detach().std()) > 0.005
    assert float(weights["layers.0.fc1.bias"].detach().abs().sum()) == 0
