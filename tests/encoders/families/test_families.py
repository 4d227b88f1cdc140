"""Every family of transformers' models: the contract of encoders, and frames, layers and poolings by hand."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from audio_compositionality.encoders.base import ClipError
from audio_compositionality.encoders.front_ends.whisper import WhisperLogMel
from audio_compositionality.encoders.loading.registry import load_encoder, load_model
from audio_compositionality.encoders.options import EncoderOptions
from audio_compositionality.support.files import sha256_of_file

from ..contract import About, ModelContract, Save, Saved, different_clips, encoder_name, loaded, relative_error

SPEECH = {
    "wav2vec2": (8, 89, 8, 89),
    "wav2vec2-masked": (8, 89, 8, 89),
    "wav2vec2-adapter": (32, 23, 8, 89),
    "hubert": (8, 89, 8, 89),
    "wavlm": (8, 89, 8, 89),
    "sew": (8, 88, 16, 44),
    "sew-d": (8, 88, 16, 44),
    "wav2vec2-conformer": (8, 89, 8, 89),
    "speech-to-text": (40, 18, 40, 18),
    "w2v-bert": (20, 34, 20, 34),
}
"""By family: milliseconds between frames and frames of sound in 0.71 s, of the output and of the layers.

Convolutions with kernels (10, 3, 3) and strides (8, 4, 4) make 1419, 355 and 89 of 11,360 samples; strides of adapters
45 and 23. SEW has half of them, rounded down. Kaldi's 69 windows of 25 ms are halved twice by speech-to-text (35, 18),
and taken by pairs by w2v-BERT, where an odd one is padded.
"""

HOPS = {"encodec": 160, "encodec-stereo": 160, "dac": 320, "mimi": 1920}
PE_AUDIO = ("pe-audio", "pe-audio-frames", "pe-audio-encoder")
QWEN = ("qwen2-audio", "qwen2-audio-encoder")
FAMILIES = [*SPEECH, "ast", "clap", "clap-fusion", "whisper", *HOPS, *PE_AUDIO, *QWEN, "audio-flamingo"]
ONE_OF_A_PATH = ("wav2vec2-masked", "whisper", "clap", "ast", "encodec", "mimi", "pe-audio", "qwen2-audio")
"""Families whose steps before and behind the model are each other code of ours."""
TOWERS = ("qwen2-audio", "audio-flamingo")
"""Of models that answer, which are loaded by another name."""
RATES = {"clap": 48_000, "clap-fusion": 48_000, "encodec": 24_000, "encodec-stereo": 48_000, "dac": 44_100,
         "mimi": 24_000, **dict.fromkeys(PE_AUDIO, 48_000)}  # fmt: skip
DIMS = {"wav2vec2-adapter": 24, "clap": 24, "clap-fusion": 24, "pe-audio": 24, "pe-audio-frames": 24, "encodec": 16,
        "encodec-stereo": 16, "dac": 64}  # fmt: skip


class TestFamilies(ModelContract):
    @pytest.fixture(params=ONE_OF_A_PATH)
    def about(self, request: pytest.FixtureRequest, saved: Saved) -> About:
        family = request.param
        return About(str(saved(family)), RATES.get(family, 16_000), DIMS.get(family, 32))

    def test_its_id_and_digest_are_those_of_the_folder(self, about: About) -> None:
        folder = Path(about.name)
        card = loaded(about.name).card
        assert card.id in (folder.name, f"tower:{folder.name}")
        assert card.weights_sha256 == sha256_of_file(folder / "model.safetensors")
        assert card.revision.startswith("sha256-")


@pytest.mark.parametrize("family", [*SPEECH, "dac", "pe-audio-encoder", "qwen2-audio-encoder", "audio-flamingo"])
def test_an_untrained_twin_needs_no_weights(family: str, saved: Saved, tmp_path: Path) -> None:
    for file in saved(family).glob("*.json"):
        shutil.copy(file, tmp_path)
    card = load_encoder(f"untrained:{tmp_path}").card
    assert card.id in (f"untrained:{tmp_path.name}", f"untrained:tower:{tmp_path.name}")


# Frames, layers and poolings


@dataclass(frozen=True)
class ByHand:
    """What transformers gives for clips where it is called as its documentation does.

    Attributes:
        frames: of sound alone [n, frames, dim].
        seconds: from one to the next.
        token: the class token [n, dim], for pooling cls.
        embedding: the model's own [n, dim], where it is not the mean over frames.
    """

    frames: torch.Tensor
    seconds: float
    token: torch.Tensor | None = None
    embedding: torch.Tensor | None = None


@cache
def theirs(name: str, folder: Path) -> Any:
    """A model as transformers loads it, once a process; tests must not change it."""
    return getattr(transformers, name).from_pretrained(folder).eval()


def extracted(folder: Path, clips: np.ndarray, rate: int, **settings: Any) -> dict[str, torch.Tensor]:
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    return extractor(list(clips), sampling_rate=rate, return_tensors="pt", **settings)


def at_layer(output: Any, layer: int | None) -> torch.Tensor:
    hidden: torch.Tensor = output.last_hidden_state if layer is None else output.hidden_states[layer]
    return hidden


def speech(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    model = theirs("AutoModel", folder)
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    output = model(**extracted(folder, clips, 16_000), output_hidden_states=True)
    assert len(output.hidden_states) == 3
    milliseconds, count = SPEECH[folder.name][:2] if layer is None else SPEECH[folder.name][2:]
    return ByHand(at_layer(output, layer)[:, :count], milliseconds / 1000)


def whisper(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    inputs = extracted(folder, clips, 16_000, return_attention_mask=True)
    model = theirs("WhisperModel", folder)
    output = model.encoder(inputs["input_features"], output_hidden_states=True)
    count = int(inputs["attention_mask"][0].sum() - 1) // 2 + 1
    return ByHand(at_layer(output, layer)[:, :count], 0.02)


def ast(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    """32 bands in patches of 16 every 8: 3 rows. 204 frames in patches of 16 every 12: 16 columns."""
    output = theirs("ASTModel", folder)(**extracted(folder, clips, 16_000), output_hidden_states=True)
    hidden = at_layer(output, layer)
    assert hidden.shape[1] == 2 + 3 * 16
    # A patch begins 12 frames of 10 ms a column into the spectrogram, whose frames last 25 ms.
    last = clips.shape[1] / 16_000 - 0.025 + 1e-9
    count = sum(column * 0.12 <= last for column in range(16))
    patches = hidden[:, 2:].unflatten(1, (3, 16))[:, :, :count]
    return ByHand(patches.mean(1), 0.12, hidden[:, :2].mean(1))


def clap(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    """201 frames of 16 bands are stretched to 256 and folded into 4 segments of 64 × 16, which patches of 4 × 4 cut
    into 4 × 4 rows and 16 columns; the two stages have 16 × 16 patches, then 8 × 8 twice."""
    model = theirs("ClapModel", folder)
    # No clip is longer than the window, so none takes the branch for feature fusion.
    output = model.audio_model(
        extracted(folder, clips, 48_000)["input_features"],
        is_longer=torch.zeros(len(clips), 1, dtype=torch.bool),
        output_hidden_states=True,
    )
    projected = None if layer is not None else model.audio_projection(output.pooler_output)
    image = at_layer(output, layer)
    if layer is None:
        assert image.shape[2:] == (2, 4 * 8)
        frames = image.mean(2).mT
    else:
        rows, columns = ((4, 16), (2, 8), (2, 8))[layer]
        assert image.shape[2:] == (4 * rows, columns)
        frames = image.unflatten(2, (4, rows)).mean(3).flatten(2).mT
    seconds = 2.0 / frames.shape[1]
    count = math.ceil(clips.shape[1] / 48_000 / seconds)
    if projected is not None:
        projected = projected / projected.norm(dim=1, keepdim=True)
    return ByHand(frames[:, :count], seconds, embedding=projected)


def codec(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    """The input of the quantiser, call by call, when transformers encodes: [n, dim, frames]."""
    model = transformers.AutoModel.from_pretrained(folder).eval()
    rate, hop = RATES[folder.name], HOPS[folder.name]
    if layer is not None:
        output = model.encoder(torch.from_numpy(clips)[:, None], output_hidden_states=True)
        return ByHand(output.hidden_states[layer], 0.04)
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folder)
    sounds = list(clips) if extractor.feature_size == 1 else [np.stack([clip, clip]) for clip in clips]
    inputs = dict(extractor(raw_audio=sounds, sampling_rate=rate, return_tensors="pt"))
    if folder.name == "dac":
        inputs.pop("padding_mask")
    seen: list[torch.Tensor] = []
    encode = model.quantizer.encode if hasattr(model.quantizer, "encode") else model.quantizer.forward

    def spy(latents: torch.Tensor, *arguments: object, **options: object) -> object:
        seen.append(latents)
        return encode(latents, *arguments, **options)

    setattr(model.quantizer, encode.__name__, spy)
    model.encode(**inputs)
    if folder.name != "encodec-stereo":
        assert [latents.shape[2] for latents in seen] == [math.ceil(clips.shape[1] / hop)]
        return ByHand(seen[0].mT, hop / rate)
    # Chunks of 12,000 samples every 11,880, 75 frames each, and behind the last whole one the overlap, wholly of
    # padding; the grid of frames takes each from the latest chunk.
    assert [chunk.shape for chunk in seen] == [(3, 16, 75)] * (len(seen) - 1) + [(3, 16, 1)]
    starts = range(0, clips.shape[1], hop)
    frames = [seen[start // 11_880][:, :, start % 11_880 // hop] for start in starts]
    return ByHand(torch.stack(frames, dim=1), hop / rate)


def pe_audio(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    name = {"pe-audio": "PeAudioModel", "pe-audio-frames": "PeAudioFrameLevelModel"}.get(folder.name, "PeAudioEncoder")
    model = theirs(name, folder)
    inputs = extracted(folder, clips, 48_000)
    output = getattr(model, "audio_encoder", model)(**inputs, output_hidden_states=True)
    if layer in (0, 1):
        state = output.hidden_states[layer]
        return ByHand(state[:, 1:], 0.04, state[:, 0])
    assert torch.equal(output.hidden_states[2], output.last_hidden_state)
    embedding = None if layer == 2 else output.pooler_output
    if layer is None and folder.name == "pe-audio":
        embedding = model.get_audio_embeds(**inputs)
    if layer is None and folder.name == "pe-audio-frames":
        return ByHand(model.get_audio_embeds(**inputs), 0.04, output.pooler_output)
    return ByHand(output.last_hidden_state, 0.04, output.pooler_output, embedding)


def qwen(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    """The tower in the full model, with the mask that this gives it."""
    whole = folder.parent / "qwen2-audio"
    model = transformers.Qwen2AudioForConditionalGeneration.from_pretrained(whole).eval()
    inputs = extracted(folder, clips, 16_000, return_attention_mask=True)
    tower = model.model.audio_tower
    if folder.name == "qwen2-audio-encoder":
        tower.load_state_dict(transformers.Qwen2AudioEncoder.from_pretrained(folder).state_dict())
    before, after = (int(n) for n in tower._get_feat_extract_output_lengths(inputs["attention_mask"][0].sum()))
    model.config.audio_token_id = 5  # one of the tiny vocabulary
    tokens = torch.full((len(clips), after + 1), model.config.audio_token_id)
    tokens[:, -1] = 6  # a single token would be taken for one that continues a text
    given: dict[str, torch.Tensor] = {}
    hook = tower.register_forward_pre_hook(lambda _, args, kwargs: given.update(kwargs), with_kwargs=True)
    model(
        input_ids=tokens,
        input_features=inputs["input_features"],
        attention_mask=torch.ones_like(tokens),
        feature_attention_mask=inputs["attention_mask"],
    )
    hook.remove()
    assert "attention_mask" in given
    output = tower(inputs["input_features"], **given, output_hidden_states=True)
    count, seconds = (before, 0.02) if layer in (0, 1) else (after, 0.04)
    return ByHand(at_layer(output, layer)[:, :count], seconds)


def flamingo(folder: Path, clips: np.ndarray, layer: int | None) -> ByHand:
    """As `AudioFlamingo3Processor` and the model call the tower: a frame is kept for every sound token."""
    model = theirs("AudioFlamingo3ForConditionalGeneration", folder)
    inputs = extracted(folder, clips, 16_000, return_attention_mask=True)
    tower, mask = model.model.audio_tower, inputs["attention_mask"]
    output = tower(inputs["input_features"], input_features_mask=mask, output_hidden_states=True)
    kept = int(tower._get_feat_extract_output_lengths(mask.sum(-1))[1][0])
    # The last hidden state is the output, with half as many frames as those before it.
    count, seconds = ((clips.shape[1] // 160 + 1) // 2, 0.02) if layer in (0, 1) else (kept, 0.04)
    return ByHand(at_layer(output, layer)[:, :count], seconds)


RUNS: dict[str, tuple[Callable[[Path, np.ndarray, int | None], ByHand], tuple[float, ...]]] = {
    **{family: (speech, (0.71,)) for family in SPEECH},
    "whisper": (whisper, (1.0, 0.01, 1.337)),
    "ast": (ast, (1.0, 0.13, 2.05)),
    "clap": (clap, (2.0, 0.6, 0.001)),
    "clap-fusion": (clap, (2.0,)),
    **{family: (codec, (0.4096,)) for family in ("encodec", "dac", "mimi")},
    "encodec-stereo": (codec, (0.7, 0.01)),
    **{family: (pe_audio, (0.3,)) for family in PE_AUDIO},
    **{family: (qwen, (0.71, 3.0)) for family in QWEN},
    "audio-flamingo": (flamingo, (0.71, 0.05, 1.03, 3.0)),
}
"""By family: what is called by hand, and lengths in seconds, at the first of which layers are looked at too."""

LAYERLESS = ("encodec", "encodec-stereo", "dac")
LAYERED = ("wav2vec2-adapter", "sew", "speech-to-text", "ast", "clap", "whisper", "mimi", "pe-audio", "qwen2-audio",
           "audio-flamingo")  # fmt: skip
"""Families whose layers have frames of their own, or are taken by code of ours that no other family has."""


def cases() -> list[Any]:
    """Of each family its lengths, and of some the first and last layer at the first length."""
    every: list[Any] = []
    for family, (_, lengths) in RUNS.items():
        every += [(family, seconds, None) for seconds in lengths]
        every += [(family, lengths[0], layer) for layer in (0, 2) if family in LAYERED]
    return every


@pytest.mark.slow
@pytest.mark.parametrize(("family", "seconds", "layer"), cases())
def test_frames_and_poolings_are_those_of_transformers(
    family: str, seconds: float, layer: int | None, saved: Saved
) -> None:
    rate = RATES.get(family, 16_000)
    clips = different_clips(rate, seconds)
    if family in QWEN:
        saved("qwen2-audio")  # the full model, which `qwen` loads
    with torch.no_grad():
        expected = RUNS[family][0](saved(family), clips, layer)
    name = encoder_name(family, saved(family))
    own = expected.frames.mean(1) if expected.embedding is None else expected.embedding
    encoder = loaded(name) if layer is None else load_model(name, options=EncoderOptions(layer=layer))
    frames, distance = encoder.embed_frames(clips, rate)
    assert frames.shape == expected.frames.shape
    assert distance == pytest.approx(expected.seconds, rel=1e-12)
    assert encoder.num_layers == (0 if family in LAYERLESS else 2)
    assert encoder.card.output_dim == own.shape[1]
    assert relative_error(frames, expected.frames.numpy()) < 1e-5
    assert relative_error(encoder.embed(clips, rate), own.numpy()) < 1e-5
    if layer == 0 or family not in ("wav2vec2", "clap", "ast", "pe-audio", "audio-flamingo"):
        return  # frames are pooled alike in all families and layers
    pooled = {"mean": expected.frames.mean(1), "max": expected.frames.amax(1), "cls": expected.token}
    if expected.embedding is None:
        # The embedding is the mean, as was seen.
        del pooled["mean"]
    for pooling, values in pooled.items():
        options = EncoderOptions(layer=layer, pooling=pooling)
        if values is None:
            with pytest.raises(ValueError, match=f"'.*{family}' has no class token, so pooling can be mean or max"):
                load_model(name, options=options)
            continue
        one = load_model(name, options=options)
        assert one.card.id == f"{'tower:' * (family in TOWERS)}{family}{options.suffix}"
        assert one.card.output_dim == values.shape[1]
        assert relative_error(one.embed(clips, rate), values.numpy()) < 1e-5


@pytest.mark.weights
def test_frames_of_real_weights(checkpoints: Path) -> None:
    folder, clips = checkpoints / "whisper-tiny.en", different_clips(16_000, 10.0)[:2]
    with torch.no_grad():
        expected = whisper(folder, clips, None).frames.mean(1).numpy()
    encoder = load_model(str(folder))
    assert encoder.prepare(clips, 16_000).frames == 500
    together = encoder.embed(clips, 16_000)
    assert relative_error(together, expected) < 1e-4
    assert relative_error(together[:1], encoder.embed(clips[:1], 16_000)) < 1e-4
    untrained = load_model(f"untrained:{folder}")
    assert untrained.card.id == f"untrained:{folder.name}"
    assert relative_error(untrained.embed(clips[:1], 16_000), together[:1]) > 0.1


@pytest.mark.parametrize("family", ["wav2vec2", "qwen2-audio", "dac"])
def test_layers_that_a_model_does_not_have(family: str, saved: Saved) -> None:
    message = rf"'.*{family}' has the layers 0 to 2, but layer 3 was requested"
    if family in LAYERLESS:
        message = f"'{family}' is a convolutional codec without layers.*leave the layer out"
    with pytest.raises(ValueError, match=message):
        load_model(encoder_name(family, saved(family)), options=EncoderOptions(layer=3))
    if family == "wav2vec2":
        # Blocks that a layer does not need are not run.
        encoders = [load_model(str(saved(family)), options=EncoderOptions(layer=layer)) for layer in (None, 2, 1, 0)]
        assert [len(encoder._model.encoder.layers) for encoder in encoders] == [2, 2, 2, 1]


# Lengths


@pytest.mark.parametrize(
    ("family", "samples", "message"),
    [
        ("wav2vec2", 40, "are shorter than one frame of 'wav2vec2'"),
        ("ast", 100, "are shorter than one frame of 'ast'"),
        ("speech-to-text", 100, "cannot take clips of 100 samples"),
        *((family, hop - 1, f"are shorter than one frame of '{family}'") for family, hop in HOPS.items()),
        ("pe-audio", 1919, r"are shorter than one frame .*\(1920 samples\)"),
        ("qwen2-audio", 320, "are shorter than one frame of 'tower:qwen2-audio'"),
        ("audio-flamingo", 320, "are shorter than one frame of 'tower:audio-flamingo'"),
    ],
)
def test_clips_shorter_than_a_frame_are_refused(family: str, samples: int, message: str, saved: Saved) -> None:
    encoder = load_model(encoder_name(family, saved(family)))
    rate = encoder.card.sample_rate
    noise = np.random.default_rng(0).normal(0, 0.1, (2, samples + 1))
    with pytest.raises(ValueError, match=message) as caught:
        encoder.embed(noise[:, 1:], rate)
    assert f"{samples} samples at {rate} Hz" in str(caught.value)
    if family in HOPS:
        assert encoder.embed_frames(noise, rate)[0].shape == (2, 1, encoder.card.output_dim)


@pytest.mark.parametrize(
    ("family", "seconds", "longest"),
    [("ast", 2.2, "2.06494 s"), *((family, 3.1, "3 s") for family in ("whisper", *TOWERS))],
)
def test_clips_longer_than_the_window_are_refused(family: str, seconds: float, longest: str, saved: Saved) -> None:
    encoder = load_model(encoder_name(family, saved(family)))
    with pytest.raises(ValueError, match=f"clips last {seconds} s, but '.*{family}' takes at most {longest}"):
        encoder.embed(different_clips(16_000, seconds), 16_000)


def test_a_clip_that_cannot_be_normalised_is_named(saved: Saved) -> None:
    """Speech-to-text divides by the deviation of each band over time."""
    encoder, clips = load_model(str(saved("speech-to-text"))), different_clips(16_000, 0.5)
    clips[1] = 0
    with pytest.raises(ClipError, match=r"row 1: .*'speech-to-text' cannot normalise a clip of 8000 samples") as caught:
        encoder.embed(clips, 16_000)
    assert caught.value.row == 1
    with pytest.raises(ClipError, match=r"row 0: .*a clip of 400 samples at 16000 Hz: .* there is only one"):
        encoder.embed(different_clips(16_000, 0.025), 16_000)


# Settings and weights


def changed_extractor(folder: Path, **settings: object) -> Path:
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("whisper", {"chunk_length": 30}, "makes 3000 frames, but the model takes 300"),
        ("whisper", {"feature_size": 80}, "makes 80 mel bands, but the model takes 16"),
        ("whisper", {"feature_extractor_type": "Wav2Vec2FeatureExtractor"}, "has a Wav2Vec2FeatureExtractor"),
        ("ast", {"sampling_rate": 32_000}, "at 32000 Hz, but spectrogram transformers are supported at 16000 Hz only"),
        ("ast", {"num_mel_bins": 64}, "makes 204 frames of 64 mel bands, but the model takes 204 of 32"),
        ("ast", {"feature_extractor_type": "WhisperFeatureExtractor"}, "it needs the class ASTFeatureExtractor"),
        ("clap", {"truncation": "middle"}, "has truncation 'middle', but must have one of fusion, rand_trunc"),
        ("clap", {"padding": "reflect"}, "has padding 'reflect', but must have one of repeatpad, repeat, pad"),
        ("clap", {"max_length_s": 3}, "makes 301 frames of 16 mel bands, but the model takes 256 of 16"),
        ("clap", {"feature_extractor_type": "WhisperFeatureExtractor"}, "has a WhisperFeatureExtractor"),
        ("dac", {"sampling_rate": 16_000}, "works at 16000 Hz, but the model at 44100 Hz"),
        ("pe-audio-encoder", {"hop_length": 960}, "makes frames of 960 samples, but the model of 1920"),
    ],
)
def test_a_front_end_that_does_not_fit_is_refused(
    family: str, settings: dict[str, object], message: str, save: Save, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"'changed'.*{message}"):
        load_model(str(changed_extractor(save(family, tmp_path / "changed"), **settings)))


@pytest.mark.parametrize("settings", [{"mean": -6.0, "std": 3.0, "do_normalize": True}, {"do_normalize": False}])
def test_the_normalisation_of_a_spectrogram_is_the_extractors(
    settings: dict[str, object], save: Save, tmp_path: Path
) -> None:
    folder, clips = save("ast", tmp_path / "ast"), different_clips(16_000, 1.0)
    before = load_model(str(folder)).embed(clips, 16_000)
    changed_extractor(folder, **settings)
    with torch.no_grad():
        expected = ast(folder, clips, None).frames.mean(1).numpy()
    assert relative_error(load_model(str(folder)).embed(clips, 16_000), expected) < 1e-5
    assert relative_error(before, expected) > 1e-3


@pytest.mark.parametrize(
    ("family", "stored"),
    [
        ("wav2vec2-masked", "wav2vec2.encoder.layers.0.attention.k_proj.weight"),
        # The file keeps the names of an older version, which transformers translates.
        ("ast", "audio_spectrogram_transformer.encoder.layer.1.layernorm_after.bias"),
        ("clap", "audio_projection.linear1.weight"),
    ],
)
def test_missing_reshaped_and_left_over_weights_are_named(family: str, stored: str, save: Save, tmp_path: Path) -> None:
    folder = save(family, tmp_path / "odd")
    weights = load_file(folder / "model.safetensors")
    end = r"\.".join(stored.split(".")[-2:])
    shape = weights[stored].shape[0]
    for changed, message in (
        ({k: w for k, w in weights.items() if k != stored}, rf"1 missing: \S*{end}\b"),
        ({**weights, stored: torch.zeros(7)}, rf"1 of another shape: \S*{end} \(stored \(7,\), model \({shape},"),
        ({**weights, f"{stored}_2": weights[stored].clone()}, rf"1 unexpected: \S*{end}_2"),
    ):
        save_file(changed, folder / "model.safetensors", {"format": "pt"})
        with pytest.raises(ValueError, match=message):
            load_model(encoder_name(family, folder))


@pytest.mark.parametrize(
    ("family", "kept"),
    [
        ("dac", ("encoder",)),
        ("mimi", ("encoder",)),
        ("whisper", ("encoder",)),
        ("pe-audio", ("audio_encoder", "audio_head")),
        ("audio-flamingo", ("audio_tower",)),
        ("clap", ("audio_model", "audio_projection")),
    ],
)
def test_only_the_part_that_embeds_is_kept_and_needed(
    family: str, kept: tuple[str, ...], save: Save, saved: Saved, tmp_path: Path
) -> None:
    encoder = load_model(encoder_name(family, saved(family)))
    whole = transformers.AutoModel.from_pretrained(saved(family))
    parts = [getattr(whole, part) for part in kept]
    assert encoder.card.parameters == sum(weight.numel() for part in parts for weight in part.parameters())
    assert encoder.card.parameters < sum(weight.numel() for weight in whole.parameters())
    folder = save(family, tmp_path / "part")
    weights = load_file(folder / "model.safetensors")
    begins = tuple(f"{front}{part}" for part in (*kept, "downsample") for front in ("", "model."))
    fewer = {name: weight for name, weight in weights.items() if name.startswith(begins)}
    assert len(fewer) < len(weights)
    save_file(fewer, folder / "model.safetensors", {"format": "pt"})
    clips, rate = different_clips(encoder.card.sample_rate, 0.5), encoder.card.sample_rate
    part = load_model(encoder_name(family, folder))
    np.testing.assert_array_equal(part.embed(clips, rate), encoder.embed(clips, rate))


@pytest.mark.parametrize("prefix", ["audio_model.", "audio_video_encoder.embedder."])
def test_the_audio_of_an_audio_visual_model(prefix: str, saved: Saved, save: Save, tmp_path: Path) -> None:
    """Two of its parts share the encoder, so that it may be stored under either name. Settings are as on the Hub."""
    folder = save("pe-audio", tmp_path / "av")
    config = json.loads((folder / "config.json").read_text())
    config = {"model_type": "pe_audio_video", "text_config": config["text_config"],
              "audio_video_config": {"audio_config": config["audio_config"]}}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    extractor = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"feature_extractor": extractor}))
    weights = load_file(folder / "model.safetensors")
    renamed = {(prefix if k.startswith("audio_encoder.") else "audio_model.") + k: w for k, w in weights.items()}
    renamed["video_model.video_encoder.norm.weight"] = torch.zeros(3)
    save_file(renamed, folder / "model.safetensors", {"format": "pt"})
    clips = different_clips(48_000, 0.3)
    expected = load_model(str(saved("pe-audio"))).embed(clips, 48_000)
    np.testing.assert_array_equal(load_model(str(folder)).embed(clips, 48_000), expected)


# Models that are no encoders

SMALL = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 32, "num_hidden_layers": 1}
INNER = {"hidden_size": 32, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "vocab_size": 9}  # fmt: skip
WAV = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}


@pytest.mark.parametrize(
    ("config", "settings", "extractor", "message"),
    [
        ("Bert", {}, None, r"'made' \(model type 'bert'\) has no feature extractor"),
        ("ViT", {}, '{"image_processor_type": "ViTImageProcessor"}', r"'made' \(model type 'vit'\)"),
        (None, {}, None, "cannot read the configuration of 'made'.*new-audio-model"),
        ("Voxtral", {}, "Whisper", r"type 'voxtral'\).* several parts \(audio_config, text_config\)"),
        ("UnivNet", {}, "UnivNet", "a UnivNetModel returns no last_hidden_state"),
        ("LasrEncoder", SMALL, "Lasr", "returns 22 frames for 98 steps of its input.* does not say how many of them"),
        ("SpeechT5", INNER, "SpeechT5", "cannot run on the output of its SpeechT5FeatureExtractor"),
        (
            "Speech2Text",
            {"encoder_layers": 1, "conv_channels": 16},
            "Whisper",
            "pads every clip to one length and returns",
        ),
        ("Wav2Vec2", WAV, "Whisper", "the model takes 'input_values', but its WhisperFeatureExtractor makes"),
    ],
)
def test_models_that_cannot_be_embedded_with_say_why_and_how_to_wrap_them(
    config: str | None, settings: dict[str, int], extractor: str | None, message: str, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    if config is None:
        (folder / "config.json").write_text('{"model_type": "new-audio-model"}')
    else:
        getattr(transformers, f"{config}Config")(**settings).save_pretrained(folder)
    if extractor is not None and extractor.startswith("{"):
        (folder / "preprocessor_config.json").write_text(extractor)
    elif extractor is not None:
        getattr(transformers, f"{extractor}FeatureExtractor")().save_pretrained(folder)
    with pytest.raises(ValueError, match=message) as caught:
        load_model(f"untrained:{folder}" if extractor is not None else str(folder))
    if config != "Wav2Vec2":
        assert "`embed(waveforms, sample_rate)`" in str(caught.value)
        assert "pass path/to/file.py:ClassName" in str(caught.value)


# The front end of Whisper


@pytest.mark.parametrize("samples", [1, 47_600])
def test_log_mel_is_that_of_transformers_to_the_bit(samples: int) -> None:
    extractor = transformers.WhisperFeatureExtractor(chunk_length=3)
    rng = np.random.default_rng(samples)
    clips = (rng.normal(size=(3, samples)) * [[0.3], [1e-3], [0.0]]).astype(np.float32)
    expected = extractor(list(clips), sampling_rate=16_000, return_tensors="pt").input_features
    # Equal on the machines it was tried on; another one may sum a shorter matrix in another order.
    torch.testing.assert_close(WhisperLogMel(extractor)(torch.from_numpy(clips)), expected, rtol=0, atol=1e-6)
