"""Audio Spectrogram Transformers in transformers' format."""

from __future__ import annotations

import torch
from transformers import ASTFeatureExtractor, ASTModel

from audio_compositionality.encoders.base import FloatArray
from audio_compositionality.encoders.loading.checkpoints import Checkpoint, load_feature_extractor, load_model
from audio_compositionality.encoders.front_ends.kaldi import HOP, SAMPLE_RATE, LogMelWindow, WindowedFilterBank, check_length
from audio_compositionality.encoders.model_encoder import Hidden, ModelEncoder
from audio_compositionality.encoders.options import EncoderOptions


class SpectrogramTransformerEncoder(ModelEncoder[LogMelWindow]):
    """Audio Spectrogram Transformer (Gong et al., 2021, arXiv 2104.01778).

    The mean over the patches that begin within the clip, without the two class tokens, of which `cls` is the mean. Its
    window is fixed (1,024 frames of 10 ms); shorter clips are padded and longer ones are refused. The front end is
    that of `ASTFeatureExtractor`, without its loop over clips.
    """

    has_cls = True

    def __init__(self, checkpoint: Checkpoint, device: torch.device, options: EncoderOptions) -> None:
        extractor, config = load_feature_extractor(checkpoint), checkpoint.config
        if not isinstance(extractor, ASTFeatureExtractor):
            raise ValueError(
                f"'{checkpoint.id}' is a spectrogram transformer with a {type(extractor).__name__}; it needs an "
                "ASTFeatureExtractor"
            )
        if extractor.sampling_rate != SAMPLE_RATE:
            raise ValueError(
                f"the feature extractor of '{checkpoint.id}' works at {extractor.sampling_rate} Hz, but spectrogram "
                f"transformers are supported at {SAMPLE_RATE} Hz only"
            )
        if extractor.max_length != config.max_length or extractor.num_mel_bins != config.num_mel_bins:
            raise ValueError(
                f"the feature extractor of '{checkpoint.id}' makes {extractor.max_length} frames of "
                f"{extractor.num_mel_bins} mel bands, but the model takes {config.max_length} of "
                f"{config.num_mel_bins}"
            )
        super().__init__(
            checkpoint.encoder_id,
            sample_rate=SAMPLE_RATE,
            num_layers=int(config.num_hidden_layers),
            options=options,
            device=device,
        )
        self.output_dim = int(config.hidden_size)
        mean, std = (extractor.mean, extractor.std) if extractor.do_normalize else (0.0, 0.5)
        self._front_end = WindowedFilterBank(
            mels=extractor.num_mel_bins, frames=extractor.max_length, mean=mean, std=std
        ).to(device)
        self._stride = int(config.time_stride)
        self._bands = (config.num_mel_bins - config.patch_size) // config.frequency_stride + 1
        model = load_model(checkpoint, ASTModel)
        if options.layer is not None:
            # The first block is kept for its input.
            del model.layers[max(options.layer, 1) :]
        self._model = model.to(device)
        self.revision, self.weights_sha256 = checkpoint.revision, checkpoint.weights_sha256

    def _extract_features(self, clips: FloatArray) -> LogMelWindow:
        check_length(clips.shape[1], self.id, most=self._front_end.frames)
        window: LogMelWindow = self._front_end(torch.from_numpy(clips).to(self.device))
        return window

    def _encode(self, features: LogMelWindow) -> Hidden:
        layer = self.options.layer
        output = self._model(features.log_mel, output_hidden_states=layer is not None)
        hidden = output.last_hidden_state if layer is None else output.hidden_states[layer]
        # Class and distillation token come first, then all patches of the lowest band, and so on.
        patches = hidden[:, 2:].unflatten(1, (self._bands, -1)).mean(dim=1)
        sounding = -(-features.frames // self._stride)
        return Hidden(patches[:, :sounding], self._stride * HOP / SAMPLE_RATE, hidden[:, :2].mean(dim=1))
