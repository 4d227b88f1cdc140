"""Microsoft's CLAP: of 2023 (Elizalde et al., 2023, arXiv 2309.05767), HTSAT and a projection; and of 2022 (Elizalde et
al., 2022, arXiv 2206.04769), Cnn14 and a projection.

The published package (msclap) cuts a random 7 s (the version of 2022, 5 s) out of a longer clip. The models do not need
this: in evaluation mode HTSAT is averaged over overlapping windows, and Cnn14 takes the maximum and the mean over time
of any number of frames. This is done here: a clip is embedded in full, and always in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base import FloatArray
from ..loading.beside_weights import PublishedTokenizer
from ..loading.downloads import WeightsFile
from ..loading.listing import ModelListing
from ..model_encoder import Hidden, with_states
from ..options import EncoderOptions
from ..text_towers import TextedEncoder, TextTower
from .panns import rename_block

if TYPE_CHECKING:
    import torch

    from ..loading.weights import State, Weights


TRAINED_SECONDS = 7
"""Length of clips in training; a shorter one is repeated up to it (the package's load_audio_into_tensor)."""

LONGEST_WINDOW = 1024
"""Number of frames that HTSAT takes at once."""

WINDOW = 689
WINDOW_HOP = 344
"""Frames of the windows over which a longer spectrogram is averaged, and between them (the package's htsat.py)."""

HTSAT = "audio_encoder.base.htsat."
PROJECTION = "audio_encoder.projection."
COMPUTED = ("relative_position_index", "attn_mask")
"""Buffers of the checkpoint that are computed from the architecture."""

UNUSED = ("caption_encoder.", "logit_scale", "head.", "tscam_conv.")
"""Weights outside the audio encoder: the text encoder, which is built separately, the temperature of the contrastive
loss and the classifier of AudioSet."""

TEXT = "caption_encoder."
TEXT_CONSTANTS = re.compile(r"base\.h\.\d+\.attn\.(?:masked_)?bias")
"""Constants of GPT-2 that older versions of transformers stored."""

END = " <|endoftext|>"
"""Suffix that the package appends to a text; its token is the embedding. (The package takes the token at the index
given by the count of tokens other than 0, its padding token. Since ``!`` is also token 0, the package embeds a text
with an exclamation mark at an earlier token, but this encoder at its end.)"""

MAX_TOKENS = 77
"""Tokens of a text in training, including the last one (the package's config_2023.yml)."""

TOKENIZER = PublishedTokenizer("openai-community/gpt2", "GPT2Tokenizer", "A dog barks!", (32, 3290, 2318, 591, 0))


@dataclass(frozen=True)
class MsClapFeatures:
    """Input of MS-CLAP.

    Attributes:
        log_mel: float32 [n, frames, mels], spectrograms in decibels; for 2023 [n, windows, frames, mels].
        samples: length of the clips before they were repeated.
    """

    log_mel: torch.Tensor
    samples: int


class _MsClapOfAnyYear(TextedEncoder[MsClapFeatures]):
    """An audio encoder whose layers have different dimensions, and its projection to the space of text."""

    has_embedding = True

    def __init__(
        self,
        weights: Weights,
        device: torch.device,
        options: EncoderOptions,
        *,
        make: Callable[[], torch.nn.Module],
        convert: Callable[[State], State],
        unused: Sequence[str],
        dims: Sequence[int],
    ) -> None:
        """Build the network.

        Args:
            weights, device, options: weights, device and options of the model.
            make, convert, unused: see `Weights.build`.
            dims: dimension of the frames at each layer, from 0.
        """
        from ..networks.htsat import EMBEDDING_DIM, SAMPLE_RATE

        self.check_options(weights.id, options, len(dims) - 1)
        self._weights, self._dims = weights, dims
        self._model: Any = weights.build(make, convert, unused=unused).to(device)
        is_projected = options.layer is None and options.pooling is None
        dim = EMBEDDING_DIM if is_projected else dims[-1 if options.layer is None else options.layer]
        card = weights.card(sample_rate=SAMPLE_RATE, output_dim=dim, options=options, modules=[self._model])
        super().__init__(card, num_layers=len(dims) - 1, device=device)

    def _dim_at(self, layer: int) -> int:
        return self._dims[layer]


class MsClapEncoder(_MsClapOfAnyYear):
    """MS-CLAP 2023: the projected embeddings, as the model's own `audio_encoder` and `caption_encoder` return them.

    A clip shorter than 7 s is repeated up to 7 s, as in training. One of more than 1,024 frames (7.4 s) is embedded in
    windows of 5 s that begin every 2.5 s; HTSAT's outputs are averaged over them before the projection. As in the
    model, the rest after the last full window is left out: 4 ms of 10 s, up to 2.5 s for other lengths.

    Layers are HTSAT's stages; all but the last halve the number of frames and double their dimension. Frames of
    overlapping windows for one moment are averaged; frames of repetitions are left out.
    """

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        from ..networks.htsat import MsClap, layer_dims, ms_clap_config

        dims = layer_dims(ms_clap_config())
        super().__init__(weights, device, options, make=MsClap, convert=convert_ms_clap, unused=UNUSED, dims=dims)

    def _extract_features(self, clips: FloatArray) -> MsClapFeatures:
        import torch

        samples = clips.shape[1]
        log_mel = self._model.log_mel(repeated_up_to(TRAINED_SECONDS * self.card.sample_rate, self._on_device(clips)))
        frames = log_mel.shape[1]
        if frames <= LONGEST_WINDOW:
            return MsClapFeatures(log_mel[:, None], samples)
        starts = range(0, frames - WINDOW - 1, WINDOW_HOP)
        return MsClapFeatures(torch.stack([log_mel[:, s : s + WINDOW] for s in starts], dim=1), samples)

    def _load_text_tower(self) -> TextTower:
        from ..networks.htsat import Gpt2Text

        tokenizer = TOKENIZER.load(self._weights.folder, self._weights.name)
        network = self._weights.build(Gpt2Text, text_state).to(self.device)
        return TextTower(tokenizer, network, MAX_TOKENS, END)

    def _encode_at(self, features: MsClapFeatures, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.torchlibrosa import HOP
        from ..networks.htsat import overlap_mean, segments_of_image, unfold_image

        rate = self.card.sample_rate
        clips, windows, frames, _ = features.log_mel.shape
        output = self._model.htsat(features.log_mel.flatten(0, 1)[:, None], output_hidden_states=with_states(layers))
        is_repeated = features.samples < TRAINED_SECONDS * rate
        states = []
        for layer in layers:
            embedding = None
            if layer is None:
                hidden = output.last_hidden_state.mean(dim=2).mT
                embedding = self._model.projection(output.pooler_output.unflatten(0, (clips, windows)).mean(dim=1))
            else:
                hidden = unfold_image(output.hidden_states[layer], segments_of_image(self._model.config))
            seconds = frames * HOP / rate / hidden.shape[1]
            whole = overlap_mean(hidden.unflatten(0, (clips, windows)))
            sounding = -(-features.samples // round(seconds * rate)) if is_repeated else None
            states.append(Hidden(whole[:, :sounding], seconds, embedding=embedding))
        return states


def text_state(state: State) -> State:
    """Rename the text encoder's tensors in the official checkpoint to `Gpt2Text` or `BertText`."""
    stored = {name.removeprefix(TEXT): tensor for name, tensor in state.items() if name.startswith(TEXT)}
    return {name: tensor for name, tensor in stored.items() if not TEXT_CONSTANTS.fullmatch(name)}


def repeated_up_to(samples: int, clips: torch.Tensor) -> torch.Tensor:
    """Repeat clips [n, any length] up to `samples`; longer ones are returned unchanged."""
    repetitions = -(-samples // clips.shape[1])
    return clips.repeat(1, repetitions)[:, :samples] if repetitions > 1 else clips


def convert_ms_clap(state: State) -> State:
    """Rename the tensors of the official checkpoint to `MsClap`.

    Raises:
        ModelError: the checkpoint's Fourier transform differs from the front end's.
    """
    from ..front_ends.torchlibrosa import convert_front_end

    converted: State = {}
    for stored, tensor in convert_front_end(state, HTSAT).items():
        name = stored.removeprefix(HTSAT)
        if stored.startswith(PROJECTION):
            converted["projection." + stored.removeprefix(PROJECTION)] = tensor
        elif name == stored or name.startswith(UNUSED):
            converted[name] = tensor
        elif not name.endswith(COMPUTED):
            for pattern, replacement in _RENAMED:
                name = re.sub(pattern, replacement, name)
            name = f"htsat.audio_encoder.{name}"
            if ".self.qkv." not in name:
                converted[name] = tensor
                continue
            for part, values in zip(("query", "key", "value"), tensor.chunk(3), strict=True):
                converted[name.replace("qkv", part)] = values
    return converted


_RENAMED = (
    (r"^bn0\.", "batch_norm."),
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
    (r"\.attn\.proj\.", ".attention.output.dense."),
    (r"\.attn\.", ".attention.self."),
)


TRAINED_SECONDS_2022 = 5
"""Length of clips in training; a shorter one is repeated up to it (the package's load_audio_into_tensor)."""

BASE = "audio_encoder.base."
UNUSED_2022 = ("caption_encoder.", "logit_scale", "fc_audioset.")
"""Weights outside the audio encoder: the text encoder, which is built separately, the temperature of the contrastive
loss and the classifier of AudioSet."""

UNUSED_TEXT = ("base.pooler.", "base.embeddings.position_ids")
"""Weights of the text encoder that are not used: the pooling, and a constant that transformers once stored."""

MAX_TOKENS_2022 = 100
"""Tokens of a text in training (the package's config_2022.yml)."""

TOKENIZER_2022 = PublishedTokenizer(
    "google-bert/bert-base-uncased", "BertTokenizer", "A dog barks!", (101, 1037, 3899, 11286, 2015, 999, 102)
)


class MsClap2022Encoder(_MsClapOfAnyYear):
    """MS-CLAP 2022: the projected embeddings, as the model's own `audio_encoder` and `caption_encoder` return them.

    A clip shorter than 5 s is repeated up to 5 s, as the package does; a longer one is embedded whole, in one pass.

    Layers are Cnn14's six convolutional blocks, averaged over frequency; layer 0 is the normalised log-mel
    spectrogram. A frame of block k lasts 2^k · 7.3 ms; in the last two blocks, 232 ms. The frames leave out
    repetitions; the embedding does not.
    """

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        from ..networks.cnn14 import CHANNELS, dim_at
        from ..networks.htsat import ProjectedCnn14

        super().__init__(
            weights,
            device,
            options,
            make=ProjectedCnn14,
            convert=convert_ms_clap_2022,
            unused=UNUSED_2022,
            dims=[dim_at(depth) for depth in range(len(CHANNELS) + 1)],
        )

    def _extract_features(self, clips: FloatArray) -> MsClapFeatures:
        waveforms = repeated_up_to(TRAINED_SECONDS_2022 * self.card.sample_rate, self._on_device(clips))
        return MsClapFeatures(self._model.log_mel(waveforms), clips.shape[1])

    def _load_text_tower(self) -> TextTower:
        from ..networks.htsat import BertText

        tokenizer = TOKENIZER_2022.load(self._weights.folder, self._weights.name)
        network = self._weights.build(BertText, text_state, unused=UNUSED_TEXT).to(self.device)
        return TextTower(tokenizer, network, MAX_TOKENS_2022)

    def _encode_at(self, features: MsClapFeatures, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.torchlibrosa import HOP
        from ..networks.cnn14 import HALVINGS

        rate = self.card.sample_rate
        is_repeated = features.samples < TRAINED_SECONDS_2022 * rate
        depths = [self.num_layers if layer is None else layer for layer in layers]
        states = []
        for layer, depth, frames in zip(layers, depths, self._model(features.log_mel, depths), strict=True):
            embedding = self._model.embed(frames) if layer is None else None
            hops = 2 ** min(depth, HALVINGS) * HOP
            sounding = -(-features.samples // hops) if is_repeated else None
            states.append(Hidden(frames[:, :sounding], hops / rate, embedding=embedding))
        return states


def convert_ms_clap_2022(state: State) -> State:
    """Rename the tensors of the official checkpoint to `ProjectedCnn14`.

    Raises:
        ModelError: the checkpoint's Fourier transform differs from the front end's.
    """
    from ..front_ends.torchlibrosa import convert_front_end

    converted: State = {}
    for name, tensor in convert_front_end(state, BASE).items():
        if name.startswith(PROJECTION):
            converted["projection." + name.removeprefix(PROJECTION)] = tensor
        else:
            converted[rename_block(name.removeprefix(BASE))] = tensor
    return converted


MODELS = (
    ModelListing(
        "ms-clap-2023",
        1024,
        44_100,
        "audio–text contrastive",
        # The Hub's card; the code's repository is under MIT.
        "MS-PL",
        "MS-CLAP 2023, projected to the space of text; the whole clip, in windows of 5 s",
        WeightsFile(
            "CLAP_weights_2023.pth",
            "microsoft/msclap",
            689_950_036,
            "sha256:2cef4016d47d00eb28d153d522f397222057f95000e9bad6b9583c631284a1e6",
        ),
        MsClapEncoder,
        embeds_text=True,
        # arXiv 2309.05767, section 3.
        trained_on="4.6 M pairs: WavCaps, AudioSet, FSD50K, Clotho, AudioCaps, MACS, WavText5K, SoundDescs, NSynth, "
        "FMA, MOSI, MELD, IEMOCAP, MOSEI, MSP-Podcast, CochlScene, LJ Speech, EPIC-Kitchens, Kinetics-700, "
        "findsounds.com",
    ),
    ModelListing(
        "ms-clap-2022",
        1024,
        44_100,
        "audio–text contrastive",
        # The Hub's card; the code's repository is under MIT.
        "MS-PL",
        "MS-CLAP 2022 (Cnn14), projected to the space of text; the whole clip",
        # No hash is published; the size is the size of the parameters.
        WeightsFile("CLAP_weights_2022.pth", "microsoft/msclap", 785_000_000),
        MsClap2022Encoder,
        embeds_text=True,
        # arXiv 2206.04769.
        trained_on="FSD50K, ClothoV2, AudioCaps, MACS; its Cnn14 on AudioSet before",
    ),
)
