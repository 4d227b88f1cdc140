"""Sources and their scenes: classes by hand, and the sound of tones whose spectrum is known."""

from itertools import combinations

import numpy as np
import pytest
from scipy import fft

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.scenes.sources import SceneSpec, Source, ToneBank
from audio_compositionality.dataset_builder.sounds.dx7_voice import Operator, Voice
from audio_compositionality.support.errors import InputError


def test_classes_worked_by_hand():
    settings = SceneSpec()
    # 36..84 in eight bins of 6 semitones: centres 39, 45, …, 81.
    assert settings.pitches == (39, 45, 51, 57, 63, 69, 75, 81)
    # 0.2..3 Hz in eight equal ratios of 15^(1/8); the first centre lies half a ratio above 0.2.
    assert settings.rates[0] == pytest.approx(0.2 * 15 ** (1 / 16))
    assert settings.rates[7] == pytest.approx(3.0 / 15 ** (1 / 16))
    # -26..0 dB in eight bins of 3.25 dB.
    assert settings.decibels == pytest.approx([-24.375 + 3.25 * i for i in range(8)])
    assert settings.gains[7] == pytest.approx(10 ** (-1.625 / 20))
    assert settings.periods[0] == round(32_000 / settings.rates[0])


def test_labels_are_distinct_even_where_names_are_not():
    voices = tuple(sine(name, level) for level, name in enumerate(("BELL", "", "BELL", "A", "B", "C", "D", ""), 90))
    assert SceneSpec(voices=voices).labels["timbre"] == ("BELL #1", "#2", "BELL #3", "A", "B", "C", "D", "#8")
    assert all(len(set(labels)) == 8 for labels in SceneSpec().labels.values())


def sine(name: str, level: int) -> Voice:
    return Voice(name=name, operators=(Operator(output_level=level), *[Operator()] * 5))


def test_voices_that_sound_the_same_are_refused():
    voices = (*SceneSpec().voices[:6], sine("ONE", 99), sine("OTHER", 99))
    with pytest.raises(InputError, match=r"voices 7 \('ONE'\) and 8 \('OTHER'\) are the same sound"):
        SceneSpec(voices=voices)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_classes": 7}, "8 voices for K = 7"),
        ({"pitch_range": (60, 64)}, "8 classes of pitch are not distinct"),
        ({"pitch_range": (84, 36)}, "first must be less"),
        ({"pitch_range": (36, 140)}, "MIDI notes run"),
        ({"rate_range": (0, 3)}, "rates must be positive"),
        ({"duration": 4.0}, "duration is 4.0 s; the slowest class"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        SceneSpec(**changes)


@pytest.mark.parametrize("code", [-1, 81])
def test_a_code_out_of_range_is_refused(code):
    with pytest.raises(InputError, match=f"code is {code}"):
        Source.from_code(code, 3)


def test_a_class_out_of_range_is_refused():
    with pytest.raises(InputError, match="pitch is -1"):
        Source(0, -1, 0, 0)
    with pytest.raises(InputError, match="class of 3 or more"):
        Source(0, 3, 0, 0).code(3)


SINE = Voice(operators=(Operator(output_level=99), *[Operator()] * 5))
SINE_AND_TIMBRES = SceneSpec(voices=(SINE, *SceneSpec().voices[1:]))


@pytest.fixture(scope="module")
def bank():
    """The default bank with a pure sine as the first timbre, whose sound is known."""
    return ToneBank(SINE_AND_TIMBRES)


def clip_of(bank, *sources, onsets=None):
    return bank.clips([(sources, onsets or (0,) * len(sources))], [(0,)])[0].astype(int)


def test_there_are_512_tones_of_unit_peak_and_their_period(bank):
    assert len(bank.tones) == 512
    for (_, _, rate), tone in bank.tones.items():
        assert np.abs(tone).max() == 1
        assert len(tone) == bank.spec.periods[rate]
        assert np.abs(tone[-1]) < 0.02


def test_a_sine_source_has_its_pitch_rate_and_amplitude(bank):
    settings = bank.spec
    clip = clip_of(bank, Source(0, 5, 7, 3)) / 32_767
    assert clip.shape == (320_000,)
    assert np.abs(clip).max() == pytest.approx(10 ** (settings.decibels[3] / 20), abs=1e-4)
    period = settings.periods[7]
    held = clip[: period // 2 - 400]
    spectrum = np.abs(fft.rfft(held * np.hanning(len(held)), 2**20))
    assert spectrum.argmax() * 32_000 / 2**20 == pytest.approx(440 * 2 ** ((69 - 69) / 12), abs=0.5)
    assert (clip[period : 2 * period] == clip[:period]).all()
    # Key-up comes at half the period: the sine's immediate release leaves the second half silent.
    assert np.abs(clip[period // 2 + 200 : period]).max() == 0


def test_a_source_starts_at_its_onset_and_repeats_to_the_end(bank):
    source = Source(3, 4, 6, 7)
    locked = clip_of(bank, source)
    late = clip_of(bank, source, onsets=(10_000,))
    assert not late[:10_000].any()
    assert (late[10_000:] == locked[:-10_000]).all()


def test_a_scene_is_the_sum_of_its_sources(bank):
    sources = (Source(1, 2, 3, 1), Source(4, 0, 7, 0), Source(6, 6, 0, 2))
    together = clip_of(bank, *sources, onsets=(5, 700, 90))
    apart = sum(clip_of(bank, s, onsets=(o,)) for s, o in zip(sources, (5, 700, 90), strict=True))
    assert np.abs(together - apart).max() <= 2


A, C, T = LOUD = (
    ((Source(0, 1, 2, 7), Source(1, 1, 2, 7)), (0, 100)),
    ((Source(2, 4, 5, 7),), (7,)),
    ((Source(3, 3, 3, 7), Source(5, 5, 5, 7)), (40, 60)),
)
"""Layers of sources that pass full scale together."""

QUADRUPLE = ((0,), (0, 2), (1,), (1, 2))


def test_the_clips_of_a_quadruple_are_additive_under_one_gain(bank):
    a, b, c, d = (clip.astype(int) for clip in bank.clips(LOUD, QUADRUPLE))
    assert ((b - a) == (d - c)).all()
    # The largest peak is brought to full scale.
    assert max(np.abs(clip).max() for clip in (a, b, c, d)) == pytest.approx(32_766, abs=1)
    t = bank.mix(*T)
    gain = np.abs(b - a).max() / 32_766 / np.abs(t).max()
    assert 0.3 < gain < 0.9
    for clip, more, layer in ((a, b, A), (c, d, C)):
        expected = bank.mix(*layer) * gain * 32_766
        assert np.abs(clip - expected).max() <= 2
        assert np.abs(more - expected - t * gain * 32_766).max() <= 3


def test_without_a_shared_gain_each_clip_has_its_own(bank):
    a, b, _, _ = (clip.astype(int) for clip in bank.clips(LOUD, QUADRUPLE, shared_gain=False))
    assert np.abs(a).max() == np.abs(b).max() == 32_766


def test_equal_sound_is_rendered_once(bank):
    other = ToneBank(bank.spec.changed(seed=1, duration=11, amplitude_range=(-20, 0)))
    assert other.tones is bank.tones
    assert other.mix([Source(0, 0, 0, 0)], [0]).shape == (352_000,)
    assert ToneBank(bank.spec.changed(velocity=90)).tones is not bank.tones


def test_a_silent_voice_is_named():
    mute = Voice(name="MUTE", operators=(Operator(output_level=0), *[Operator()] * 5))
    with pytest.raises(DatasetError, match="voice 'MUTE' is silent at MIDI note 39"):
        _ = ToneBank(SceneSpec(voices=(mute, *SceneSpec().voices[1:]))).tones


@pytest.fixture(scope="module")
def default_bank():
    return ToneBank(SceneSpec())


class TestDefaultTimbres:
    @pytest.mark.slow
    def test_every_voice_is_in_tune(self, default_bank):
        """The strongest partial of the held part is the note's, or a low multiple of its half, within 20 cents."""
        for timbre in range(8):
            for pitch, note in enumerate(default_bank.spec.pitches):
                tone = default_bank.tones[timbre, pitch, 0]
                held = tone[1_600 : len(tone) // 2]
                spectrum = np.abs(fft.rfft(held * np.hanning(len(held)), 2**20))
                ratio = spectrum.argmax() * 32_000 / 2**20 / (440 * 2 ** ((note - 69) / 12))
                partial = round(2 * ratio) / 2
                name = default_bank.spec.voices[timbre].name
                assert 0.5 <= partial <= 16, (name, note, ratio)
                assert abs(1200 * np.log2(ratio / partial)) < 20, (name, note, ratio)

    @pytest.mark.slow
    def test_voices_are_distinct(self, default_bank):
        """Log-mel spectrograms of any two voices at one note and rate differ by more than 5 dB a cell."""
        import librosa

        for pitch in (0, 4, 7):
            spectra = []
            for timbre in range(8):
                tone = default_bank.tones[timbre, pitch, 7]
                tone = tone / np.sqrt((tone**2).mean())
                mel = librosa.feature.melspectrogram(y=tone, sr=32_000, n_fft=1024, hop_length=256, n_mels=96, fmin=30)
                spectra.append(librosa.power_to_db(mel, ref=1.0, amin=1e-9))
            for one, other in combinations(range(8), 2):
                trivial = max(spectra[one].max(), spectra[other].max()) - 60
                difference = np.maximum(spectra[one], trivial) - np.maximum(spectra[other], trivial)
                assert np.abs(difference).mean() > 5, (one, other, pitch)
