"""Microsoft's CLAP of 2022 (Elizalde et al., 2022, arXiv 2206.04769): Cnn14 and a projection.

The published package (msclap) cuts 5 s out of a longer clip at random. Its model need not: Cnn14 takes the maximum and
the mean over time, of however many frames, and that is what is done here, so that a clip is embedded whole and always
the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..base import FloatArray
from ..loading.downloads import WeightsFile
from ..loading.listing import ModelListing
from ..loading.tokenizers import PublishedTokenizer, tokenise_with
from ..model_encoder import Hidden
from ..options import EncoderOptions
from ..text_towers import TextedEncoder, TextTower
from .ms_clap import PROJECTION, TEXT, repeated_up_to
from .panns import rename_block

if TYPE_CHECKING:
    import torch

    from ..loading.weights import State, Weights

TRAINED_SECONDS = 5
"""Length that clips had in training; a shorter one is repeated up to it (the package's load_audio_into_tensor)."""

BASE = "audio_encoder.base."
UNUSED = ("caption_encoder.", "logit_scale", "fc_audioset.")
"""What is no part of the audio encoder: the text encoder, which is built apart, the temperature of the contrastive loss
and the classifier of AudioSet."""

UNUSED_TEXT = ("base.pooler.", "base.embeddings.position_ids")
"""Of the text encoder: the pooling that the package leaves out, and a constant that transformers once stored."""

MAX_TOKENS = 100
"""Tokens of a text in training (the package's config_2022.yml)."""

TOKENIZER = PublishedTokenizer(
    "google-bert/bert-base-uncased", "BertTokenizer", "A dog barks!", (101, 1037, 3899, 11286, 2015, 999, 102)
)


@dataclass(frozen=True)
class MsClap2022Features:
    """Input of MS-CLAP 2022.

    Attributes:
        log_mel: float32 [n, frames, mels], in decibels.
        samples: length of the clips, before they were repeated.
    """

    log_mel: torch.Tensor
    samples: int


class MsClap2022Encoder(TextedEncoder[MsClap2022Features]):
    """MS-CLAP 2022: the projected embeddings, as the model's own `audio_encoder` and `caption_encoder` give them.

    A clip shorter than 5 s is repeated up to 5 s, as the package does; a longer one is embedded whole, in one pass.

    Layers are Cnn14's six convolutional blocks, averaged over frequency; layer 0 is the normalised log-mel
    spectrogram. A frame of block k lasts 2^k · 7.3 ms, of the last two 232 ms. Frames of repetitions are left out of
    them, not of the embedding.
    """

    has_embedding = True

    def __init__(self, weights: Weights, device: torch.device, options: EncoderOptions) -> None:
        from ..networks.ms_clap_2022 import EMBEDDING_DIM, SAMPLE_RATE, ProjectedCnn14
        from ..networks.panns import CHANNELS, dim_at

        self.check_options(weights.id, options, len(CHANNELS))
        self._weights = weights
        self._model = weights.build(ProjectedCnn14, convert_ms_clap_2022, unused=UNUSED).to(device)
        is_projected = options.layer is None and options.pooling is None
        dim = EMBEDDING_DIM if is_projected else dim_at(len(CHANNELS) if options.layer is None else options.layer)
        card = weights.card(sample_rate=SAMPLE_RATE, output_dim=dim, options=options, modules=[self._model])
        super().__init__(card, num_layers=len(CHANNELS), device=device)

    def _extract_features(self, clips: FloatArray) -> MsClap2022Features:
        waveforms = repeated_up_to(TRAINED_SECONDS * self.card.sample_rate, self._on_device(clips))
        return MsClap2022Features(self._model.log_mel(waveforms), clips.shape[1])

    def _load_text_tower(self) -> TextTower:
        from ..networks.ms_clap_text import BertText

        tokenizer = TOKENIZER.load(self._weights.folder, self._weights.name)
        network = self._weights.build(BertText, text_state, unused=UNUSED_TEXT).to(self.device)
        return TextTower(tokenise_with(tokenizer), network, MAX_TOKENS)

    def _dim_at(self, layer: int) -> int:
        from ..networks.panns import dim_at

        return dim_at(layer)

    def _encode_at(self, features: MsClap2022Features, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.torchlibrosa import HOP
        from ..networks.panns import HALVINGS

        rate = self.card.sample_rate
        is_repeated = features.samples < TRAINED_SECONDS * rate
        depths = [self.num_layers if layer is None else layer for layer in layers]
        states = []
        for layer, depth, frames in zip(layers, depths, self._model(features.log_mel, depths), strict=True):
            embedding = self._model.embed(frames) if layer is None else None
            hops = 2 ** min(depth, HALVINGS) * HOP
            sounding = -(-features.samples // hops) if is_repeated else None
            states.append(Hidden(frames[:, :sounding], hops / rate, embedding=embedding))
        return states


def text_state(state: State) -> State:
    """The tensors of the text encoder of the official checkpoint, by the names of `BertText`."""
    return {name.removeprefix(TEXT): tensor for name, tensor in state.items() if name.startswith(TEXT)}


def convert_ms_clap_2022(state: State) -> State:
    """The tensors of the official checkpoint by the names of `ProjectedCnn14`.

    Raises:
        ModelError: if the checkpoint's Fourier transform is not that of the front end.
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
        "ms-clap-2022",
        1024,
        44_100,
        "audio–text contrastive",
        # The Hub's card; the code's repository is under MIT.
        "MS-PL",
        "MS-CLAP 2022 (Cnn14), projected to the space of text; the whole clip",
        # No hash is on record; the size is that of the parameters.
        WeightsFile("CLAP_weights_2022.pth", "microsoft/msclap", 785_000_000),
        MsClap2022Encoder,
        embeds_text=True,
        # arXiv 2206.04769.
        trained_on="FSD50K, ClothoV2, AudioCaps, MACS; its Cnn14 on AudioSet before",
    ),
)
