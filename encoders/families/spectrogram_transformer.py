"""Audio Spectrogram Transformers in transformers' format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..base import FloatArray, ModelError
from ..model_encoder import Hidden, LayeredEncoder, states_at, with_states
from ..options import EncoderOptions

if TYPE_CHECKING:
    import torch

    from ..front_ends.kaldi import LogMelWindow, WindowedFilterBank
    from ..loading.checkpoints import Checkpoint


class WindowEncoder(LayeredEncoder["LogMelWindow"]):
    """A vision transformer on the patches of a log-mel spectrogram in a window of fixed length.

    A frame is the mean over the patches of one moment that begin within the clip. Clips shorter
    than the window are padded, longer ones are refused.

    Attributes:
        class_tokens: number of tokens before the patches; `Hidden.cls` is their mean.
        has_moments_first: whether patches are grouped by moment, rather than by band.
    """

    has_cls = True
    class_tokens = 1
    has_moments_first = False
    _front_end: WindowedFilterBank
    _model: Any
    _stride: int
    _bands: int

    def _extract_features(self, clips: FloatArray) -> LogMelWindow:
        from ..front_ends.kaldi import shortest_clip

        self._refuse_short(clips.shape[1], shortest_clip())
        self._refuse_long(clips.shape[1], shortest_clip(self._front_end.frames + 1) - 1)
        window: LogMelWindow = self._front_end(self._on_device(clips))
        return window

    def _spectrogram(self, features: LogMelWindow) -> torch.Tensor:
        """Return the input of the model."""
        return features.log_mel

    def _encode_at(self, features: LogMelWindow, layers: Sequence[int | None]) -> list[Hidden]:
        from ..front_ends.kaldi import HOP

        output = self._model(self._spectrogram(features), output_hidden_states=with_states(layers))
        sounding, seconds = -(-features.frames // self._stride), self._stride * HOP / self.card.sample_rate
        grid, bands = ((-1, self._bands), 2) if self.has_moments_first else ((self._bands, -1), 1)
        states = []
        for hidden in states_at(output, layers):
            patches = hidden[:, self.class_tokens :].unflatten(1, grid).mean(dim=bands)
            cls = hidden[:, : self.class_tokens].mean(dim=1)
            states.append(Hidden(patches[:, :sounding], seconds, cls))
        return states


class SpectrogramTransformerEncoder(WindowEncoder):
    """Audio Spectrogram Transformer (Gong et al., 2021, arXiv 2104.01778).

    The mean over the patches that begin within the clip, without the two class tokens, whose mean is `cls`. Its
    window is fixed (1,024 frames of 10 ms); shorter clips are padded and longer ones are refused. The front end
    equals `ASTFeatureExtractor`, without its loop over clips.
    """

    class_tokens = 2

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        from transformers import ASTFeatureExtractor, ASTModel

        from ..front_ends.kaldi import SAMPLE_RATE, WindowedFilterBank

        extractor, config = checkpoint.load_feature_extractor(ASTFeatureExtractor), checkpoint.config
        if extractor.sampling_rate != SAMPLE_RATE:
            raise ModelError(
                f"the feature extractor of '{checkpoint.name}' works at {extractor.sampling_rate} Hz, but spectrogram "
                f"transformers are supported at {SAMPLE_RATE} Hz only"
            )
        if extractor.max_length != config.max_length or extractor.num_mel_bins != config.num_mel_bins:
            raise ModelError(
                f"the feature extractor of '{checkpoint.name}' makes {extractor.max_length} frames of "
                f"{extractor.num_mel_bins} mel bands, but the model takes {config.max_length} of "
                f"{config.num_mel_bins}"
            )
        num_layers = int(config.num_hidden_layers)
        self.check_options(checkpoint.id, options, num_layers)
        mean, std = (extractor.mean, extractor.std) if extractor.do_normalize else (0.0, 0.5)
        self._front_end = WindowedFilterBank(
            mels=extractor.num_mel_bins, frames=extractor.max_length, mean=mean, std=std
        ).to(device)
        self._stride = int(config.time_stride)
        self._bands = (config.num_mel_bins - config.patch_size) // config.frequency_stride + 1
        model = checkpoint.load_model(ASTModel)
        self._drop_later_blocks(model.layers, options.layer)
        self._model = model.to(device)
        card = checkpoint.card(
            sample_rate=SAMPLE_RATE, output_dim=int(config.hidden_size), options=options, modules=[self._model]
        )
        super().__init__(card, num_layers=num_layers, device=device)


ARCHITECTURES = {"audio-spectrogram-transformer": SpectrogramTransformerEncoder}
