"""A clip mixed from the bank, against encoding the same clip as FLAC, both on one core."""

from __future__ import annotations

import argparse
import io

from _measure import line, shortest

from audio_compositionality.dataset_builder.rendered import rendered_preset


def run(_: argparse.Namespace) -> None:
    import soundfile

    rendering = rendered_preset("mini", recipes=["a_tre"]).configuration("a_tre").rendering
    mixed = [rendering.clips(index)[0] for index in range(100)]

    def mix() -> None:
        for index in range(100):
            rendering.clips(index)

    def encode() -> None:
        for clip in mixed:
            soundfile.write(io.BytesIO(), clip, 32_000, format="FLAC", subtype="PCM_16")

    line("mix a clip", 10 * shortest(mix), "encode it as FLAC", 10 * shortest(encode), "ms")
