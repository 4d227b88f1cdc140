"""The 512 tones: ours on all cores and on one, against dexed-py (one core) for the same notes."""

from __future__ import annotations

import argparse
import os

from _measure import line, shortest

from audio_compositionality.dataset_builder.scenes.sources import SceneSpec


def run(_: argparse.Namespace) -> None:
    import dexed

    from audio_compositionality.dataset_builder.scenes.sources import ToneBank
    from audio_compositionality.dataset_builder.sounds.dx7_engine import render

    settings = SceneSpec()
    _ = ToneBank(settings).tones
    notes = [
        (voice, pitch, period / settings.sample_rate)
        for voice in settings.voices
        for pitch in settings.pitches
        for period in settings.periods
    ]
    synthesizers = []
    for voice in settings.voices:
        synthesizer = dexed.DexedSynth(sample_rate=settings.sample_rate)
        synthesizer.load_patch(dexed.Patch.from_sysex(voice.to_vced()))
        synthesizers.append((voice, synthesizer))
    by_voice = dict(synthesizers)

    def with_dexed() -> None:
        for voice, pitch, seconds in notes:
            by_voice[voice].render(pitch, settings.velocity, seconds / 2, seconds)

    def on_one_core() -> None:
        for voice, pitch, seconds in notes:
            render(voice, pitch, settings.velocity, duration=seconds, key_up=seconds / 2)

    theirs = shortest(with_dexed)
    line("512 tones, one core", shortest(on_one_core), "dexed-py, one core", theirs)
    line(f"tone bank, {os.cpu_count()} cores", shortest(lambda: ToneBank(settings).tones), "dexed-py, one core", theirs)
