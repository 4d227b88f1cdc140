"""Encoders: one protocol, one file a model family, and the embedding of a whole dataset."""

from .base import ClipError, Encoder, StagedEncoder
from .model_encoder import Hidden, ModelEncoder
from .options import EncoderOptions
from .pipeline import ClipBatch, embed_dataset
from .loading.registry import EncoderInfo, has_untrained_twin, list_encoders, load_encoder

__all__ = [
    "ClipBatch",
    "ClipError",
    "Encoder",
    "EncoderInfo",
    "EncoderOptions",
    "Hidden",
    "ModelEncoder",
    "StagedEncoder",
    "embed_dataset",
    "has_untrained_twin",
    "list_encoders",
    "load_encoder",
]
