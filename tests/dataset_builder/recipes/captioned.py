"""Captions of one and two sources read back, by the templates' text alone."""

import re

from audio_compositionality.dataset_builder.scenes.captioned import Leaf
from audio_compositionality.dataset_builder.sounds.tones import ToneSpec
from audio_compositionality.dataset_builder.texts.captions import caption_templates

NOUNS = ToneSpec().nouns

WORDS = ("quiet", "loud", "slow", "steady", "fast", "low", "middle", "high")

_PHRASE = rf"an? ((?:(?:{'|'.join(WORDS)}) )*)({'|'.join(NOUNS)})"


def read(text):
    """The expression that a text says: a leaf, or two in one of the templates."""
    readings = [_leaf(re.fullmatch(_PHRASE, text).groups())] if re.fullmatch(_PHRASE, text) else []
    for meaning in ("sequence", "together"):
        for template in caption_templates()[meaning]:
            first, second = (re.escape(f"{{{name}}}") for name in ("first", "second"))
            pattern = re.escape(template.text)
            named = sorted(("first", "second"), key=template.text.index)
            match = re.fullmatch(pattern.replace(first, _PHRASE).replace(second, _PHRASE), text)
            if match:
                words = match.groups()
                parts = dict(zip(named, (_leaf(words[:2]), _leaf(words[2:])), strict=True))
                one, other = parts["first"], parts["second"]
                readings.append(one + other if meaning == "sequence" else one * other)
    (reading,) = readings
    return reading


def _leaf(groups):
    attributes, noun = groups
    return Leaf(noun, tuple(attributes.split()))


def classes_of(event):
    """The tone of an event: its timbre, MIDI note, repetitions a second and decibels."""
    noun, pitch, rate, level = event["entry"].split("/")
    return {
        "timbre": noun,
        "pitch": float(pitch.removeprefix("MIDI ")),
        "rate": float(rate.removesuffix(" Hz")),
        "amplitude": float(level.removesuffix(" dB")),
    }
