"""Tones of the DX7 voices as recordings."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds import tones as timbres
from audio_compositionality.dataset_builder.sounds.entries import related
from audio_compositionality.dataset_builder.sounds.tones import (
    CONDITIONS,
    TimbreRecordings,
    default_timbres,
    default_voices,
    render_tone,
)


def index_of(recordings, id):
    return next(index for index, entry in enumerate(recordings.entries) if entry.id == id)


class TestEntries:
    def test_are_every_voice_under_every_condition(self):
        entries = default_timbres().entries
        labels = Counter(entry.label for entry in entries)
        assert labels == {voice.name: CONDITIONS for voice in default_voices()}
        assert len(labels) == 8
        assert (
            len({(entry.label, entry.condition) for entry in entries}) == len({e.id for e in entries}) == len(entries)
        )
        assert all(entry.group == entry.condition for entry in entries)

    def test_no_two_conditions_share_a_pitch_or_a_rate(self):
        conditions = sorted({entry.condition for entry in default_timbres().entries})
        assert not any(related(*pair) for pair in combinations(conditions, 2))
        notes, rates = zip(*(condition.split("-") for condition in conditions), strict=True)
        assert len(set(notes)) == len(set(rates)) == CONDITIONS == 24
        values = [
            (int(n.removeprefix("note")), float(r.removeprefix("rate"))) for n, r in zip(notes, rates, strict=True)
        ]
        assert abs(np.corrcoef(np.transpose(values))[0, 1]) < 0.05

    def test_have_digests_of_all_that_decides_their_samples(self, monkeypatch):
        before = TimbreRecordings()
        assert before.fingerprint == default_timbres().fingerprint
        assert len({entry.sha256 for entry in before.entries}) == len(before.entries)
        assert TimbreRecordings(default_voices()[:2]).entries == before.entries[: 2 * CONDITIONS]
        monkeypatch.setattr(timbres, "VERSION", 2)
        after = TimbreRecordings()
        assert after.fingerprint != before.fingerprint
        assert not {e.sha256 for e in after.entries} & {e.sha256 for e in before.entries}

    def test_are_there_before_anything_is_rendered(self, monkeypatch):
        monkeypatch.setattr("audio_compositionality.dataset_builder.sounds.dx7.engine.render", None)
        recordings = TimbreRecordings()
        assert recordings.source == "DX7 timbres"
        with pytest.raises(TypeError):
            recordings.waveform(0)


class TestSamples:
    def test_are_the_tone_of_the_voice_again_and_again(self):
        recordings = TimbreRecordings()
        index = index_of(recordings, "Brass/note37-rate0.80")
        waveform, rate = recordings.waveform(index)
        assert (waveform.dtype, waveform.shape, rate) == (np.float64, (40_000,), recordings.sample_rate)
        tone = render_tone(default_voices()[1], 37, 20_000, 100, 16_000)
        np.testing.assert_array_equal(waveform, np.tile(tone, 2) * 0.5)

    def test_are_the_same_every_time(self):
        recordings = TimbreRecordings()
        before, _ = recordings.waveform(5)
        before[:] = 0
        np.testing.assert_array_equal(recordings.waveform(5)[0], TimbreRecordings().waveform(5)[0])

    def test_are_heard(self):
        recordings = default_timbres()
        for index in range(0, len(recordings.entries), 5):
            waveform, _ = recordings.waveform(index)
            assert np.abs(waveform).max() == pytest.approx(0.5)
            assert np.sqrt(np.mean(waveform**2)) > 0.02
