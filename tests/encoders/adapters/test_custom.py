from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.signal import resample_poly

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.encoders.adapters.custom import (
    ModelCodeError,
    count_parameters,
    device_of,
    weights_digest,
    wrap,
)
from audio_compositionality.encoders.base import GivenClip, ModelError
from audio_compositionality.encoders.check import check_model
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.encoders.options import EncoderOptions

from ...clips import each
from .conftest import Write

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_encoder.py"

MINIMAL = """
import numpy as np

class Mine:
    sample_rate = 8_000

    def embed(self, waveforms, sample_rate):
        self.seen = waveforms, sample_rate
        return np.stack([waveforms.mean(axis=1), waveforms.std(axis=1), waveforms[:, 0]], axis=1)
"""


@pytest.fixture(autouse=True)
def path_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_the_example_gives_the_mean_of_frames_and_has_a_twin_without_further_code() -> None:
    encoder = load_model(f"{EXAMPLE}:my_encoder")
    card = encoder.card
    assert (card.id, card.sample_rate, card.output_dim, encoder.device) == ("Net", 16_000, 128, "cpu")
    assert card.revision.startswith(f"source-{hashlib.sha256(EXAMPLE.read_bytes()).hexdigest()[:16]}-weights-")
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 16_000)).astype(np.float32)
    with torch.inference_mode():
        expected = encoder.made.module(torch.from_numpy(clips)).mean(dim=1).numpy()
    embeddings = encoder.embed(clips, 16_000)
    np.testing.assert_allclose(embeddings, expected, atol=1e-6)
    twin = load_model(f"untrained:{EXAMPLE}:my_encoder")
    assert (twin.card.id, twin.card.parameters) == ("untrained:Net", card.parameters)
    assert np.abs(twin.embed(clips, 16_000) - embeddings).max() > 0.01


def test_clips_reach_the_class_at_its_own_rate(write: Write) -> None:
    encoder = load_model(write(MINIMAL))
    assert (encoder.card.id, encoder.card.output_dim) == ("Mine", 3)
    t = np.arange(32_000) / 32_000
    clips = np.stack([0.3 * np.sin(2 * np.pi * f * t) for f in (300, 1_000)])
    embeddings = encoder.embed(clips, 32_000)
    seen, rate = encoder.made.seen
    assert (seen.shape, seen.dtype, rate) == ((2, 8_000), np.float32, 8_000)
    expected = resample_poly(clips, 1, 4, axis=1)
    np.testing.assert_allclose(seen[:, 500:-500], expected[:, 500:-500], atol=2e-3)
    np.testing.assert_allclose(embeddings[:, 1], 0.3 / np.sqrt(2), rtol=1e-2)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, {"id": "Mine", "weights_sha256": None, "parameters": None, "paradigm": None, "licence": None}),
        (
            {"id": "my/model", "revision": "v7", "paradigm": "by hand", "licence": "MIT"},
            {"id": "my/model", "revision": "v7", "paradigm": "by hand", "licence": "MIT"},
        ),
        ({"__slots__": ("seen",)}, {"output_dim": 3, "weights_sha256": None}),
    ],
)
def test_what_a_class_says_of_itself_is_taken(write: Write, said: dict[str, Any], expected: dict[str, Any]) -> None:
    lines = "".join(f"\n    {name} = {value!r}" for name, value in said.items())
    card = load_model(write(MINIMAL.replace("sample_rate = 8_000", f"sample_rate = 8_000{lines}"))).card
    assert {name: getattr(card, name) for name in expected} == expected


def test_a_device_is_passed_on(write: Write) -> None:
    spec = write(MINIMAL + "\n    device = None\n\n    def to(self, device):\n        self.device = device\n")
    assert load_model(spec).device == "cpu"
    assert load_model(spec).made.device is None
    assert load_model(spec, device="cpu").made.device == torch.device("cpu")


STAGED = """
from audio_compositionality.encoders.base import ModelCard, StagedEncoder

class Mine(StagedEncoder):
    card = ModelCard("mine", "r", 16_000, 2)

    def _extract_features(self, clips):
        return clips

    def _run_model(self, features):
        return features[:, :2]
"""


def test_a_staged_encoder_is_used_as_it_is(write: Write) -> None:
    encoder = load_model(write(STAGED))
    assert type(encoder).__name__ == "Mine"
    np.testing.assert_array_equal(encoder.embed([[0.5, 0.25, 0.0]], 16_000), [[0.5, 0.25]])
    with pytest.raises(ValueError, match=r"mine\.py:Mine' has no card; a Model must set"):
        load_model(write(STAGED.replace("    card =", "    other =")))


def test_torch_tensors_and_weights(write: Write) -> None:
    text = """
import torch

class Net(torch.nn.Module):
    sample_rate = 8_000

    def __init__(self):
        super().__init__()
        torch.manual_seed({seed})
        self.layer = torch.nn.Linear(80, 5).to(torch.{dtype})

    def embed(self, waveforms, sample_rate):
        frames = torch.from_numpy(waveforms).unfold(1, 80, 80)
        return self.layer(frames.to(torch.{dtype})).mean(dim=1)
"""
    with torch.random.fork_rng():
        first = load_model(write(text.format(seed=0, dtype="float32"), "Net"), device="cpu")
        other = load_model(write(text.format(seed=0, dtype="bfloat16"), "Net"), device="cpu")
    clips = np.random.default_rng(0).normal(0, 0.1, (3, 8_000)).astype(np.float32)
    assert first.card.output_dim == 5
    weight, bias = (p.detach().numpy().astype(np.float64) for p in first.made.parameters())
    expected = (clips.reshape(3, 100, 80) @ weight.T + bias).mean(axis=1)
    np.testing.assert_allclose(first.embed(clips, 8_000), expected, atol=1e-6)
    # bfloat16 has 8 bits of mantissa.
    np.testing.assert_allclose(other.embed(clips, 8_000), expected, atol=2e-2)
    assert first.card.weights_sha256 == weights_digest(first.made)
    assert first.card.parameters == 80 * 5 + 5
    assert first.card.revision.endswith(f"-weights-{first.card.weights_sha256[:16]}")


def test_weights_are_counted_once_and_others_have_another_digest() -> None:
    class Holder:
        def __init__(self) -> None:
            self.name = "holder"
            self.first = torch.nn.Linear(3, 2)
            self.second = torch.nn.Sequential(self.first, torch.nn.BatchNorm1d(2))

    holder = Holder()
    # 3 × 2 + 2, and of the normalisation 2 + 2; its running statistics are no weights.
    assert count_parameters(holder) == count_parameters(holder.second) == 8 + 4
    assert count_parameters(torch.nn.ReLU()) is None
    before = weights_digest(holder)
    assert before == weights_digest(holder)
    with torch.no_grad():
        holder.first.bias[0] += 1e-6
    assert weights_digest(holder) != before
    assert weights_digest(object.__new__(Holder)) is None
    assert device_of(torch.nn.Linear(2, 2, device="meta")) == "meta"


def test_imports_of_files_beside_it_and_two_files_of_one_name_that_do_not_mix(write: Write, tmp_path: Path) -> None:
    (tmp_path / "beside_the_encoder.py").write_text("VALUE = 7.0\n")
    (tmp_path / "later_beside.py").write_text("VALUE = 9.0\n")
    text = """
import numpy as np
from beside_the_encoder import VALUE

class Mine:
    sample_rate = 8_000

    def embed(self, waveforms, sample_rate):
        import later_beside
        return np.full((len(waveforms), 2), [VALUE, later_beside.VALUE])
"""
    first = load_model(write(text))
    np.testing.assert_array_equal(first.embed(np.zeros((1, 80)), 8_000), [[7, 9]])
    assert sys.path[-1] == str(tmp_path)
    (tmp_path / "other").mkdir()
    second = load_model(write(MINIMAL.replace("8_000", "4_000"), file="other/mine.py"))
    changed = load_model(write(MINIMAL.replace("8_000", "6_000")))
    assert [e.card.sample_rate for e in (first, second, changed)] == [8_000, 4_000, 6_000]
    assert len({e.card.revision for e in (first, second, changed)}) == 3


UNPOOLED = """
import numpy as np

class Mine:
    sample_rate = 8_000

    def embed(self, waveforms, sample_rate):
        frames = waveforms.reshape(len(waveforms), -1, 100)
        return np.stack([frames.mean(axis=2), frames.std(axis=2)], axis=2)
"""
NO_FRAMES = r"\(1, 80, 2\), but must return \[1, dim\]; to average frames, .* pooling = \"mean\" in the class or in ac"
UNFILLED = "class A:\n    def __init__(self, path, *, size, rate=3): pass"
NO_ARRAY = "class A:\n    sample_rate = 8000\n    def embed(self, w, r): return [[1.0]]"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (MINIMAL, "Mina", r"'mine\.py' has no class 'Mina': did you mean 'Mine'"),
        ("x = 1", "x", "mine.py:x' is a int; it must be a class"),
        (UNFILLED, "A", "mine.py:A' needs the arguments path, size, but is called without any"),
        ("class A:\n    def embed(self, w, r): pass", "A", "mine.py:A' has no sample_rate"),
        ("class A:\n    sample_rate = 8000\n    embed = 3", "A", "embed is not a method"),
        (MINIMAL.replace("8_000", "'fast'"), "Mine", "sample_rate is 'fast', but must be a positive whole number"),
        (MINIMAL.replace("axis=1)\n", "axis=1)[0]\n"), "Mine", r"embed returned shape \(3,\) for one clip"),
        (UNPOOLED, "Mine", NO_FRAMES),
        (
            MINIMAL.replace("self.seen =", "waveforms.reshape(-1, 24_000); self.seen ="),
            "Mine",
            r"cannot reshape .*; embed was called with a second of noise, \[1, 8000\], to find .* set output_dim",
        ),
        (NO_ARRAY, "A", "mine.py:A' returned a list, but must return a NumPy array or a torch tensor"),
    ],
)
def test_a_class_that_is_no_encoder(text: str, name: str, message: str, write: Write) -> None:
    with pytest.raises(ValueError, match=message):
        load_model(write(text, name))


class Net(torch.nn.Module):
    """A bare module: two values of each frame of 100 samples, in training one of them dropped."""

    def __init__(self, size: int = 100) -> None:
        super().__init__()
        self.size, self.layer, self.dropout = size, torch.nn.Linear(size, 2), torch.nn.Dropout(0.5)

    def forward(self, waveforms: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.layer(waveforms.unflatten(1, (-1, self.size))))


def test_frames_are_averaged_where_the_class_or_the_wrapper_says_so(write: Write) -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (3, 1_600)).astype(np.float32)
    frames = noise.reshape(3, -1, 100)
    expected = np.stack([frames.mean(axis=2).mean(axis=1), frames.std(axis=2).mean(axis=1)], axis=1)
    pooled = load_model(write(UNPOOLED + '    pooling = "mean"\n'))
    assert pooled.embed(noise, 8_000) == pytest.approx(expected, abs=1e-6)
    net = Net()
    net.dropout.eval()
    net.layer.train()
    with torch.no_grad():
        expected = net.layer(torch.from_numpy(noise).unflatten(1, (-1, 100))).mean(dim=1).numpy()
    net.train()
    net.layer.eval()
    wrapped = load_model(wrap(net, sample_rate=8_000, pooling="mean"))
    assert (wrapped.card.id, wrapped.card.output_dim, wrapped.card.parameters) == ("Net", 2, 202)
    assert wrapped.embed(noise, 8_000) == pytest.approx(expected, abs=1e-6)
    # Each part is in the mode that it had.
    assert [part.training for part in net.modules()] == [True, False, True]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: wrap(Net, sample_rate=8_000), "wrap was given the class Net; it takes a torch.nn.Module"),
        (lambda: wrap(Net(), sample_rate=8_000, pooling="max"), "pooling is 'max'; it must be 'mean' for a module"),
        (lambda: wrap(Net(), sample_rate=0), "sample rate 0 must be a positive"),
        (lambda: wrap(torch.nn.LSTM(8_000, 2), sample_rate=8_000), "forward of LSTM returned a tuple, but must return"),
        (lambda: wrap(Net(), sample_rate=8_000), NO_FRAMES),
        (Net, r"'Net' has no sample_rate; .* a bare torch\.nn\.Module becomes an encoder with ac\.wrap\(module"),
        (lambda: Net, r"Net is a class; pass an object, such as Net\(\)"),
    ],
)
def test_an_object_that_is_no_encoder(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_model(make())
    with pytest.raises(ValueError, match="runs its own code: it takes no layer"):
        load_model(wrap(Net(), sample_rate=8_000, pooling="mean"), options=EncoderOptions(pooling="max"))


def test_objects_that_differ_have_other_revisions() -> None:
    def revision(net: Net, rate: int = 8_000) -> str:
        return load_model(wrap(net, sample_rate=rate, pooling="mean")).card.revision

    torch.manual_seed(0)
    net = Net()
    assert revision(net) == revision(net.eval())
    seen = {revision(net), revision(Net()), revision(Net(50)), revision(net, 16_000)}
    net.dropout.p = 0.1
    assert len({*seen, revision(net)}) == 5
    assert all(one.startswith("object-") for one in seen)


def test_a_function_of_a_file_returns_a_model_that_has_twins(write: Write) -> None:
    text = """
import torch
import audio_compositionality as ac

def make():
    torch.manual_seed(1)
    return ac.wrap(torch.nn.Linear(800, 3), sample_rate=800)
"""
    name = write(text, "make")
    model, again, twin = (load_model(one) for one in (name, name, f"untrained:{name}"))
    assert (model.card.id, twin.card.id) == ("Linear", "untrained:Linear")
    assert model.card == again.card
    assert model.card.revision.startswith("source-")
    noise = np.random.default_rng(0).normal(0, 0.1, (2, 800)).astype(np.float32)
    assert not np.allclose(model.embed(noise, 800), twin.embed(noise, 800))
    assert not has_twins(name)
    assert has_twins(name, loaded=[model])
    assert not has_twins(f"untrained:{name}", loaded=[twin])
    assert not has_twins(write(MINIMAL + "\ndef make(): return Mine()", "make"), loaded=[load_model(write(MINIMAL))])


def test_output_that_is_no_embedding(write: Write) -> None:
    text = MINIMAL.replace("    sample_rate = 8_000", "    sample_rate, output_dim = 8_000, 3")
    model = load_model(write(text.replace("return np.stack", "return np.zeros((1, 3)) if 1 else np.stack")))
    with pytest.raises(ValueError, match=r"'Mine' returned shape \(1, 3\), but must return \[2, 3\]"):
        model.embed(np.zeros((2, 80)), 8_000)
    empty = load_model(write(text.replace("8_000, 3", "8_000, 0").replace("axis=1)\n", "axis=1)[:, :0]\n")))
    with pytest.raises(ValueError, match=r"'Mine' returned shape \(2, 0\), but must return \[2, dim\]"):
        empty.embed(np.zeros((2, 80)), 8_000)


def test_names_and_options_that_a_file_does_not_have(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = write(MINIMAL)
    for missing in (spec.removesuffix(":Mine"), spec.removesuffix("Mine")):
        with pytest.raises(ValueError, match=r"names no class of the file; give mine\.py:ClassName"):
            load_model(missing)
    with pytest.raises(ValueError, match="runs its own code: it takes no layer"):
        load_model(spec, options=EncoderOptions(pooling="max"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    for name in ("no/such/file.py:Mine", "file.py:Mine", "file.py"):
        with pytest.raises(ValueError, match=f"'{name}': there is no file '{name.partition(':')[0]}'"):
            load_model(name)


def test_an_error_in_the_file_is_shown_with_where_it_came_from(write: Write) -> None:
    modules = set(sys.modules)
    for text, message in (
        ("\n1 / 0", r"'mine\.py': ZeroDivisionError in mine\.py, line 2: division by zero"),
        ("class Mine:\n    def __init__(self): {}['x']", r"mine\.py:Mine': KeyError in mine\.py, line 2: 'x'"),
        ("class class", r"SyntaxError in mine\.py, line 1"),
    ):
        with pytest.raises(ModelCodeError, match=message):
            load_model(write(text))
        assert "Mine" in text or set(sys.modules) == modules
    for text, message in (
        (ANSWERS.replace("return [", "return 1 / 0, ["), r"ZeroDivisionError in mine\.py, line 6"),
        (ANSWERS.replace("self, clips, prompts", "self, clips"), "TypeError in an unknown line"),
    ):
        with pytest.raises(ModelCodeError, match=message):
            load_model(write(text)).answer([], [])


def test_an_error_of_the_class_names_its_line_and_keeps_its_cause(write: Write) -> None:
    text = MINIMAL.replace("    sample_rate = 8_000", "    sample_rate, output_dim = 8_000, 3")
    encoder = load_model(write(text.replace("self.seen = waveforms, sample_rate", "np.zeros(3).reshape(5)")))
    with pytest.raises(ModelCodeError, match=r"ValueError in mine\.py, line 8: cannot reshape") as caught:
        encoder.embed(np.zeros((1, 80)), 8_000)
    assert isinstance(caught.value.__cause__, ValueError)
    encoder = load_model(write(text.replace("self.seen = waveforms, sample_rate", "raise MemoryError")))
    with pytest.raises(MemoryError):
        encoder.embed(np.zeros((1, 80)), 8_000)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path with an installed distribution that offers encoders."""
    info = tmp_path / "fake_encoders-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-encoders\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(
        "[audio_compositionality.encoders]\n"
        "fake-minimal = fake_encoders_module:Mine\n"
        "fake-made = fake_encoders_module:make\n"
        "fake-gone = fake_encoders_module:Gone\n"
        "fake-missing = no_such_module:Gone\n"
        "downsample = fake_encoders_module:Mine\n"
    )
    (tmp_path / "fake_encoders_module.py").write_text(MINIMAL + "\n\ndef make():\n    return Mine()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "fake_encoders_module", raising=False)
    return tmp_path


@pytest.mark.usefixtures("distribution")
def test_installed_encoders_are_listed_without_importing_them() -> None:
    infos = {info.name: info for info in list_models()}
    assert infos["fake-minimal"].description == "installed by fake-encoders 1.2"
    assert infos["fake-minimal"].output_dim is None
    assert infos["downsample"].output_dim == load_model("downsample").card.output_dim == 768
    assert len(infos) == len(list_models())
    assert "fake_encoders_module" not in sys.modules


@pytest.mark.usefixtures("distribution")
def test_an_installed_encoder_loads_by_its_name() -> None:
    for name in ("fake-minimal", "fake-made"):
        card = load_model(name).card
        assert (card.id, card.revision, card.output_dim) == ("Mine", "1.2", 3)
        assert not has_twins(name)
    for name, message in (
        ("fake-gone", r"'fake-gone' of fake-encoders 1\.2 is 'fake_encoders_module:Gone', which"),
        ("fake-missing", "cannot be imported: No module named 'no_such_module'"),
        ("fake-minimum", "unknown model 'fake-minimum'; did you mean 'fake-minimal'"),
    ):
        with pytest.raises(ValueError, match=message):
            load_model(name)


# Classes of users that answer


ANSWERS = """
class Mine:
    sample_rate, licence = 8_000, "MIT"

    def answer(self, clips, prompts):
        return [f"{len(clip.waveform)} {clip.sample_rate}" for clip in clips]
"""
LEARNS = "    def learn(self, rows, clips):\n        self.learnt = [len(clip.waveform) for clip in clips]\n"
SCORES = (
    "    def score_options(self, clips, prompts, options, by):\n"
    "        return [[-float(len(clip.waveform)), -1.0] for clip in clips]\n"
)
TOLD = "    def answer_from_labels(self, rows, prompts):\n        return list(rows)\n"


def test_a_class_that_answers_needs_no_card(write: Write) -> None:
    clip = Clip("a", np.zeros(32_000, np.float32), 16_000)
    model = load_model(write(ANSWERS))
    assert model.abilities == {"answer"}
    assert model.answer(each([clip]), ["?"]) == ["16000 8000"]
    card = model.card
    assert (card.id, card.sample_rate, card.output_dim, card.licence) == ("Mine", 8_000, None, "MIT")
    assert card.revision != load_model(write(ANSWERS + "# other")).card.revision
    with pytest.raises(ModelError, match="has no sample_rate; an audio language model needs sample_rate and answer"):
        load_model(write(ANSWERS.replace("sample_rate, licence = 8_000, ", "licence = ")))
    with pytest.raises(ModelError, match=r"sample_rate is 8000\.5, but must be a positive whole number"):
        load_model(write(ANSWERS.replace("8_000, ", "8_000.5, ")))


@pytest.mark.parametrize("told", [False, True])
def test_a_class_that_answers_can_do_as_a_model_what_it_can(write: Write, told: bool) -> None:
    clip = Clip("a", np.zeros(32_000, np.float32), 16_000)
    model = load_model(write(ANSWERS + LEARNS + SCORES + TOLD * told))
    assert model.abilities == ({"answer", "learn", "labels"} if told else {"answer", "learn", "score"})
    model.learn([{}], iter([clip]))
    assert model.made.learnt == [16_000]
    if not told:
        assert model.score_options(each([clip]), ["?"], [["x", "y"]], "letters") == [[-16_000, -1]]
        return
    told_clip = GivenClip(np.zeros(0, np.float32), 8_000, {"a": 1})
    assert model.answer([[told_clip]], ["?"]) == [{"a": 1}]
    with pytest.raises(ModelError, match="'Mine' reads no sound; each clip needs its labels"):
        model.answer(each([clip]), ["?"])


def test_a_class_that_embeds_and_answers_does_both(write: Write) -> None:
    embeds = "    def embed(self, waveforms, sample_rate):\n        return waveforms[:, :4]\n"
    model = load_model(write(ANSWERS + embeds + SCORES))
    assert model.abilities == {"audio", "answer", "score"}
    assert model.answer(each([Clip("a", np.zeros(32_000, np.float32), 16_000)]), ["?"]) == ["16000 8000"]
    assert model.embed(np.ones((2, 16_000), np.float32), 16_000).shape == (2, model.card.output_dim) == (2, 4)
    assert load_model(write(ANSWERS.replace("answer(", "reply(") + embeds)).abilities == {"audio"}


# A class of one's own with `embed_text`


TEXT_EXAMPLE = Path(__file__).parents[3] / "examples" / "words_and_bands.py"

CLASS = """
import numpy as np, torch
class Mine:
    sample_rate = 8_000
    def embed(self, waveforms, sample_rate):
        return waveforms[:, :3]
    def embed_text(self, texts):
        {body}
"""


def test_a_class_with_embed_text_is_an_audio_text_encoder(write: Write) -> None:
    body = "return torch.tensor([[len(text), 1.5, 2] for text in texts], dtype=torch.bfloat16)"
    model = load_model(write(CLASS.format(body=body)))
    assert model.abilities == {"audio", "text"}
    rows = model.embed_text(["dog", "a cat"])
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, [[3, 1.5, 2], [5, 1.5, 2]])
    assert load_model(write(CLASS.format(body="").partition("    def embed_text")[0])).abilities == {"audio"}


FRAMES = """
class Mine:
    sample_rate = 8_000
    def embed(self, waveforms, sample_rate):
        return waveforms[:, :3]
    def embed_frames(self, waveforms, sample_rate):
        return {frames}, 0.01
"""


def test_a_class_with_embed_frames_gives_frames_at_its_rate(write: Write) -> None:
    model = load_model(write(FRAMES.format(frames="waveforms.reshape(len(waveforms), -1, 80)")))
    assert model.abilities == {"audio", "frames"}
    frames, step = model.embed_frames(np.ones((2, 16_000), np.float32), 16_000)
    assert (frames.shape, frames.dtype, step) == ((2, 100, 80), np.float32, 0.01)
    with pytest.raises(ModelError, match=r"embed_frames returned shape \(2, 8000\) and 0.01 s per frame"):
        load_model(write(FRAMES.format(frames="waveforms"))).embed_frames(np.ones((2, 8_000), np.float32), 8_000)


def test_the_example_with_texts_is_short_and_passes_every_check() -> None:
    assert len(TEXT_EXAMPLE.read_text("utf-8").splitlines()) <= 30
    status = {check.name: check.status for check in check_model(f"{TEXT_EXAMPLE}:WordsAndBands")}
    assert "fail" not in status.values()
    assert status["texts"] == status["texts: batch"] == "pass"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return np.zeros((2, 4))", r"returned shape \(2, 4\) for texts, but must return \[2, 3\]: texts and clips"),
        ("return np.zeros((2, 3), int)", "returned int64 for texts, but must return floating"),
        ("return np.array([[0, 0, 0], [0, np.nan, 0]])", "returned values that are NaN or infinite for 'a cat'"),
        ("return [[0.0, 0, 0]] * 2", "returned a list, but must return a NumPy array or a torch tensor"),
        ("return {}[texts[0]]", r"KeyError in mine\.py, line 8: 'dog'"),
    ],
)
def test_what_is_no_embedding_of_texts_is_refused(body: str, message: str, write: Write) -> None:
    model = load_model(write(CLASS.format(body=body)))
    with pytest.raises((ModelError, ModelCodeError), match=message):
        model.embed_text(["dog", "a cat"])
