"""Markdown that says what the sources of scenes are."""

from __future__ import annotations

from .sources import SceneSettings

_ONSETS = {
    "random": "drawn uniformly within the first period",
    "locked": "always the first sample: a named variant that makes the waveform a function of the metadata",
}

CITATION = """\
```bibtex
@inproceedings{audio_compositionality_2026,
  author        = {Chen, Chuyang and Steers, Bea and McFee, Brian and Bello, Juan},
  title         = {Evaluating Compositional Structure in Audio Representations},
  booktitle     = {Proc. ICASSP},
  year          = {2026},
  eprint        = {2603.13685},
  archivePrefix = {arXiv}
}
```
"""
"""Of the paper that the scenes are after."""


def describe_classes(settings: SceneSettings) -> str:
    """The classes of each attribute as a table."""
    labels = zip(*settings.labels.values(), strict=True)
    classes = "\n".join(f"| {number} | {' | '.join(map(_cell, row))} |" for number, row in enumerate(labels))
    return f"""\
A source is one of {settings.num_classes} classes of each attribute; a scene has 1 to {settings.max_sources} different
sources.

| class | {" | ".join(settings.labels)} |
|---|---|---|---|---|
{classes}"""


def describe_sources(settings: SceneSettings) -> str:
    """The classes of each attribute as a table, and how a source sounds."""
    return f"""\
{describe_classes(settings)}

Its tone is one note of an FM voice (nothing was recorded), held for half the period 1/rate and cut with a short fade at
the period, repeated from the onset ({_ONSETS[settings.onset]}) to the end of the clip, scaled to unit peak times its
amplitude."""


def _cell(text: str) -> str:
    """A label as the text of a Markdown table's cell: voice names come from anybody's bank."""
    return "".join(f"\\{char}" if char in r"\`*_[]<>|&" else char for char in text)
