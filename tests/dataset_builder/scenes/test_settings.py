import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.sources import SceneSpec
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


def test_pitch_classes_between_semitones_go_to_the_nearest():
    # 60..65 in four bins of 1.25: centres 60.625, 61.875, 63.125, 64.375.
    settings = SceneSpec(num_classes=4, pitch_range=(60, 65), voices=SceneSpec().voices[:4])
    assert settings.pitches == (61, 62, 63, 64)


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


def test_equal_values_of_other_types_are_the_same_settings():
    assert SceneSpec(duration=10, seed=np.int64(3)).values() == SceneSpec(duration=10.0, seed=3).values()
    with pytest.raises(InputError, match=r"seed is 1\.5; it must be a whole number"):
        SceneSpec(seed=1.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_classes": 7}, "8 voices for K = 7"),
        ({"pitch_range": (60, 64)}, "8 classes of pitch are not distinct"),
        ({"pitch_range": (84, 36)}, "first must be less"),
        ({"pitch_range": (36, 140)}, "MIDI notes run"),
        ({"rate_range": (0, 3)}, "a rate is positive"),
        ({"duration": 4.0}, "duration is 4.0 s; the slowest class"),
    ],
)
def test_settings_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        SceneSpec(**changes)


def test_every_setting_is_among_the_values():
    values = SceneSpec().values()
    assert set(values) == set(SceneSpec.model_fields)
    assert values["rate_range"] == [0.2, 3.0]
    assert [Voice.from_vced(bytes.fromhex(voice)).operators for voice in values["voices"]] == [
        voice.operators for voice in SceneSpec().voices
    ]
