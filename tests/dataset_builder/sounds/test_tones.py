"""Tones of FM voices as sounds: all of them, and a selection."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds import tones
from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice
from audio_compositionality.dataset_builder.sounds.entries import dimension_of, related, words_of_classes
from audio_compositionality.dataset_builder.sounds.tones import CONDITIONS, ToneSounds, ToneSpec, default_voices
from audio_compositionality.support.errors import InputError


class TestEntries:
    def test_are_every_voice_under_every_condition(self):
        entries = tones.default_timbres().entries
        labels = Counter(entry.label for entry in entries)
        assert labels == {voice.name: CONDITIONS for voice in default_voices()}
        assert (len(labels), len(entries)) == (8, 8 * CONDITIONS)
        assert len({(e.label, e.condition) for e in entries}) == len({e.id for e in entries}) == len(entries)
        assert all(entry.group == entry.condition for entry in entries)
        # No two conditions share a pitch or a rate.
        conditions = sorted({entry.condition for entry in entries})
        assert not any(related(*pair) for pair in combinations(conditions, 2))
        notes, rates = zip(*(condition.split("-") for condition in conditions), strict=True)
        assert len(set(notes)) == len(set(rates)) == CONDITIONS == 24
        values = [[int(note.removeprefix("note")) for note in notes], [float(r.removeprefix("rate")) for r in rates]]
        assert abs(np.corrcoef(values)[0, 1]) < 0.05

    def test_have_digests_of_all_that_decides_their_samples_before_any_is_rendered(self, monkeypatch):
        monkeypatch.setattr("audio_compositionality.dataset_builder.sounds.dx7_engine.render", None)
        before = tones.TimbreRecordings()
        assert before.source == "DX7 timbres"
        assert before.fingerprint == tones.default_timbres().fingerprint
        assert len({entry.sha256 for entry in before.entries}) == len(before.entries)
        assert tones.TimbreRecordings(default_voices()[:2]).entries == before.entries[: 2 * CONDITIONS]
        monkeypatch.setattr(tones, "VERSION", 2)
        after = tones.TimbreRecordings()
        assert after.fingerprint != before.fingerprint
        assert not {e.sha256 for e in after.entries} & {e.sha256 for e in before.entries}
        with pytest.raises(TypeError):
            after.waveform(0)


class TestSamples:
    def test_are_the_tone_of_the_voice_again_and_again_and_the_same_every_time(self):
        recordings = tones.TimbreRecordings()
        index = next(n for n, entry in enumerate(recordings.entries) if entry.id == "Brass/note37-rate0.80")
        waveform, rate = recordings.waveform(index)
        assert (waveform.dtype, waveform.shape, rate) == (np.float64, (40_000,), recordings.sample_rate)
        expected = np.tile(tones.render_tone(default_voices()[1], 37, 20_000, 100, 16_000), 2) * 0.5
        np.testing.assert_array_equal(waveform, expected)
        waveform[:] = 0
        np.testing.assert_array_equal(recordings.waveform(index)[0], expected)


def voices(count):
    return tuple(
        Voice(name=f"VOICE {place}", operators=(Operator(output_level=99, coarse=place % 31), *[Operator()] * 5))
        for place in range(1, count + 1)
    )


class TestAllTones:
    def test_are_every_timbre_pitch_rate_and_amplitude_with_the_words_that_are_true_of_them_or_a_selection(self):
        sounds = ToneSounds(ToneSpec())
        entries = sounds.entries
        assert len(entries) == len({entry.id for entry in entries}) == len({e.sha256 for e in entries}) == 4_096
        assert set(Counter(entry.label for entry in entries).values()) == {512}
        for entry, classes in zip(entries, sounds.classes, strict=True):
            assert entry.loop == pytest.approx(1 / entry.values["rate"], abs=1e-4)
            assert entry.values["pitch"] == sounds.spec.pitches[classes[1]]
            assert entry.label == sounds.spec.nouns[classes[0]]
            assert entry.level == sounds.spec.decibels[classes[3]]
            for attribute, number in zip(("pitch", "rate", "amplitude"), classes[1:], strict=True):
                named = [word for word, of_word in words_of_classes(attribute, 8).items() if number in of_word]
                assert [entry.words[attribute]] == named if named else attribute not in entry.words

        # A word is changed by another entry of the same label.
        exact = {(entry.label, *entry.words.items()) for entry in entries}
        low = [entry for entry in entries if entry.words.get("pitch") == "low"]
        assert all((entry.label, *{**entry.words, "pitch": "high"}.items()) in exact for entry in low)
        some = ToneSounds(ToneSpec(), rates=(7,), amplitudes=(6,))
        assert len(some.entries) == 64
        assert set(some.entries) < set(entries)
        assert some.fingerprint != sounds.fingerprint

    def test_are_one_period_at_full_scale_and_rendered_when_they_are_asked_for(self, monkeypatch):
        sounds = ToneSounds(ToneSpec())
        tone, rate = sounds.waveform(4_095)
        assert (tone.dtype, tone.shape, rate) == (np.float64, (sounds.spec.periods[7],), 32_000)
        np.testing.assert_array_equal(tone, tones.render_tone(default_voices()[7], 81, len(tone), 100, 32_000))
        monkeypatch.setattr("audio_compositionality.dataset_builder.sounds.dx7_engine.render", None)
        np.testing.assert_array_equal(sounds.waveform(4_088)[0], tone)
        with pytest.raises(TypeError):
            sounds.waveform(0)

    def test_timbres_have_nouns_and_those_of_a_users_bank_their_labels(self):
        assert ToneSpec().nouns == (
            "electric piano", "brass section", "bell", "plucked bass", "reed", "organ", "marimba", "pad"
        )  # fmt: skip
        mixed = ToneSpec(num_classes=6, voices=(*default_voices()[:3], *voices(3)))
        assert mixed.nouns == ("electric piano", "brass section", "bell", "VOICE 1", "VOICE 2", "VOICE 3")
        tones.check_words(mixed)
        alike = (replace(voices(1)[0], name="bell"), *default_voices()[1:])
        with pytest.raises(InputError, match="two timbres have the same name: bell, brass section, bell"):
            tones.check_nouns(ToneSpec(voices=alike))

    def test_too_few_classes_and_too_narrow_a_range_have_no_words(self):
        for changes, message in (
            ({"num_classes": 5, "voices": voices(5)}, "5 classes of pitch leave no gap"),
            ({"pitch_range": (48, 83)}, "35 semitones; captions need 36 or more"),
        ):
            spec = ToneSpec(**changes)
            with pytest.raises(InputError, match=message):
                tones.check_words(spec)
            assert not any(entry.words for entry in ToneSounds(spec, rates=(0,)).entries)


def test_words_name_the_documented_classes_with_one_of_no_word_between_any_two():
    assert words_of_classes("pitch", 8) == {"low": (0, 1), "middle": (3, 4), "high": (6, 7)}
    assert words_of_classes("rate", 8) == {"slow": (1, 2), "steady": (4,), "fast": (6, 7)}
    assert words_of_classes("amplitude", 8) == {"quiet": (1, 2), "loud": (6, 7)}
    assert [dimension_of(word) for word in ("high", "slow", "loud", "man")] == ["pitch", "rate", "amplitude", ""]
    for attribute, count in product(("pitch", "rate", "amplitude"), range(6, 25)):
        words = words_of_classes(attribute, count)
        assert all(words.values())
        assert all(max(first) + 1 < min(second) for first, second in pairwise(words.values()))
