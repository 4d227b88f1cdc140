"""The text cascade, named ``detected-as-text:DETECTOR:MODEL``: a language model reads the events of a detector.

The package's own entry point in the group ``audio_compositionality.adapters`` points here, so that `encoders`, which
imports nothing from this package, finds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from audio_compositionality.encoders.base import Model, ModelError
from audio_compositionality.encoders.controls import DETECTED_AS_TEXT, EventTextModel
from audio_compositionality.encoders.loading.listing import Adapter
from audio_compositionality.encoders.loading.names import check_name, is_endpoint, split_detector
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import EncoderOptions

if TYPE_CHECKING:
    import torch

_FORM = (
    f"{DETECTED_AS_TEXT}:DETECTOR:MODEL, where DETECTOR is cascade or path/to/file.py:ClassName, a detector of your "
    "own, and MODEL a language model"
)


def check_cascade(spec: str) -> None:
    """Raise ModelError if a name has the wrong form.

    Nothing is loaded, and no message shows a text that may hold a password.

    Raises:
        ModelError: it does not have two parts, or one of them names no model.
    """
    for name in split_cascade(spec):
        check_name(name)


def split_cascade(spec: str) -> tuple[str, str]:
    """Return the names of the detector and of the language model in ``DETECTOR:MODEL``.

    Raises:
        ModelError: the name does not have two parts.
    """
    detector, model = split_detector(spec)
    if not model:
        raise ModelError(f"cannot parse the name of a language model that reads detected events; expected {_FORM}")
    return detector, model


def load_cascade(spec: str, device: torch.device | None, options: EncoderOptions) -> EventTextModel:
    """Load a detector and a language model by their names.

    Args:
        spec: ``DETECTOR:MODEL``.
        device: torch device of both; None for the default.
        options: options of the language model.

    Raises:
        ModelError: one of them cannot be loaded, the first detects no events, or the second cannot answer on its own.
    """
    name, reader_name = split_cascade(spec)
    detector = load_model(name, device=device)
    if "events" not in detector.abilities:
        raise ModelError(f"'{name}' cannot detect events: it has no detect_events. The form is {_FORM}")
    reader: Model
    if is_endpoint(reader_name):
        # Imported here, since the client takes a second.
        from audio_compositionality.encoders.language_models.endpoint import load_endpoint

        reader = load_endpoint(reader_name, options, takes_audio=False)
    else:
        reader = load_model(reader_name, device=device, options=options)
    able = reader.abilities
    if isinstance(reader, EventTextModel) or able & {"learn", "labels"} or "answer" not in able:
        raise ModelError(
            f"'{reader.card.id}' cannot read detected events: give a language model that can answer on its own"
        )
    return EventTextModel(detector, reader)


ADAPTER = Adapter(DETECTED_AS_TEXT, load_cascade, answers=True, check=check_cascade)
