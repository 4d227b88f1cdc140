"""Sounds of an installed package are a stranger's: checked once, and each fault is one error that names them."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recorded import open_package_sounds
from audio_compositionality.dataset_builder.sounds.entries import Sound, fingerprint_of_entries
from audio_compositionality.dataset_builder.sounds.recordings import SoundError

from .sounds.made import made_recordings

TITLE = r"the sounds 'beeps' of an installed package"


class Stranger:
    """Made-up sounds of which something is another: an attribute, or the answer for the sound of a number."""

    def __init__(self, sounds=None, answers=None, **attributes):
        self._sounds, self._answers, self._attributes = sounds or made_recordings(), answers or {}, attributes
        self.asked = []

    def __getattr__(self, name):
        value = self._attributes[name] if name in self._attributes else getattr(self._sounds, name)
        if isinstance(value, Exception):
            raise value
        return value

    def waveform(self, index):
        self.asked.append(index)
        answer = self._answers.get(index)
        if isinstance(answer, Exception):
            raise answer
        return self._sounds.waveform(index) if answer is None else answer


def opened(sounds, **options):
    return open_package_sounds(SimpleNamespace(name="beeps", open=lambda: sounds), progress=False, **options)


def with_entry(number=0, **changes):
    sounds = made_recordings()
    entries = list(sounds.entries)
    entries[number] = dataclasses.replace(entries[number], **changes)
    return Stranger(dataclasses.replace(sounds, entries=tuple(entries)), {number: sounds.waveform(number)})


def test_as_they_should_be_are_as_they_are_stated_and_read_once():
    stranger = Stranger(fingerprint="v1")
    sounds = opened(stranger)
    assert sorted(stranger.asked) == list(range(12))
    assert sounds.entries == made_recordings().entries
    assert (sounds.source, sounds.sample_rate, sounds.suggested, sounds.skipped) == ("made up", 16_000, {}, ())
    assert sounds.fingerprint == fingerprint_of_entries(sounds.entries)
    samples, rate = sounds.waveform(3)
    np.testing.assert_array_equal(samples, made_recordings().waveform(3)[0])
    assert (samples.dtype, rate) == (np.float64, 16_000)
    assert opened(Stranger(made_recordings(2, rates=(8_000, 16_000)))).sample_rate is None


def test_of_a_wrong_type_are_refused():
    for attributes, message in (
        ({"source": None}, "source is of the type NoneType"),
        ({"sample_rate": "16 kHz"}, "sample_rate is of the type str"),
        ({"entries": 5}, "entries is of the type int"),
        ({"fingerprint": None}, "fingerprint is of the type NoneType"),
        ({"suggested": [1]}, "suggested is of the type list"),
        ({"entries": ValueError("no disc\nat all")}, "entries cannot be had: no disc$"),
        ({"entries": []}, "are 0; there are from 1 to 100,000"),
        ({"entries": ["a.wav"]}, "number 0 is no `Sound`: 'str' object has no attribute"),
    ):
        with pytest.raises(SoundError, match=rf"^{TITLE}:? {message}"):
            opened(Stranger(**attributes))


def test_that_are_nothing_like_sounds_are_refused():
    with pytest.raises(SoundError, match=rf"^{TITLE}: source cannot be had: .*no attribute 'source'"):
        opened(object())

    def refuse():
        raise DatasetError("beeps need a disc")

    with pytest.raises(DatasetError, match=r"^beeps need a disc$"):
        open_package_sounds(SimpleNamespace(name="beeps", open=refuse))
    with pytest.raises(SoundError, match=rf"^{TITLE}: what it opens cannot be had: division by zero"):
        open_package_sounds(SimpleNamespace(name="beeps", open=lambda: 1 / 0))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label": 5}, "number 0 is no `Sound`: label is of another type"),
        ({"labels": ["a", "b"]}, "number 0 is no `Sound`: labels"),
        ({"words": {"pitch": 3}}, r"number 0 is no `Sound`: words\.pitch"),
        ({"id": "1.wav"}, r"number 1 \('1\.wav'\): its id is that of another"),
        ({"id": ""}, r"number 0 \(''\): its id is empty"),
        ({"label": "a\x1b[2J"}, r"'a\\x1b\[2J' has characters that cannot be printed"),
        ({"sha256": "x"}, "its sha256 is 'x'; it has 64 hexadecimal digits"),
        ({"level": float("nan")}, "one of its numbers is not finite"),
        ({"values": {"pitch": float("inf")}}, "one of its numbers is not finite"),
        ({"level": 300.0}, "level 300 dB; not negative, and at most 100"),
        ({"loop": -1.0}, "loop is -1 s"),
        ({"words": {"dynamics": "Soft"}}, "the word 'Soft' is not in its spoken form, 'soft'"),
        ({"loop": 0.5}, r"'0\.wav' is a loop of 0\.5 s, and its samples last 1 s"),
        ({"sha256": f"{2:064x}"}, r"'1\.wav' has the sha256 of '0\.wav', and other samples"),
    ],
)
def test_of_which_something_wrong_is_said_are_refused(changes, message):
    with pytest.raises(SoundError, match=rf"^{TITLE}: .*{message}"):
        opened(with_entry(**changes))


TONE = made_recordings().waveform(1)[0]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (TONE, "cannot be had: too many values"),
        (ZeroDivisionError(), "cannot be had: ZeroDivisionError"),
        (SoundError("is lost"), "cannot be had: is lost"),
        ((TONE, 16_000.5), r"has a rate of 16000\.5 Hz; it must be a whole number from 1,000 to 400,000"),
        ((TONE, 10), "has a rate of 10 Hz"),
        ((TONE.tolist(), 16_000), "has no samples that are an array"),
        ((np.stack([TONE, TONE]), 16_000), "has no samples that are an array"),
        ((TONE[:0], 16_000), "has no samples that are an array"),
        ((np.where(TONE > 0.3, np.nan, TONE), 16_000), "has values that are not finite"),
        ((np.rint(TONE * 32_767), 16_000), r"has samples up to 10,\d+; they lie from -1 to 1"),
        ((np.resize(TONE, 31 * 16_000), 16_000), r"lasts 31\.0 s; the limit is 30 s"),
        ((TONE[:3_000], 16_000), r"lasts 0\.188 s; 0\.25 s are the least"),
        ((TONE * 1e-4, 16_000), r"is nearly silent in its middle"),
        (made_recordings().waveform(2), r"is the same recording as '2\.wav', which is called 'a'; leave both out"),
    ],
)
def test_that_sound_wrong_are_refused_or_left_out(answer, message):
    stranger = Stranger(answers={1: answer})
    with pytest.raises(SoundError, match=rf"^{TITLE}: .*'1\.wav' {message}.*; --skip-invalid leaves them out"):
        opened(stranger)
    sounds = opened(stranger, skip_invalid=True)
    left_out = dict(sounds.skipped)
    assert "1.wav" in left_out
    assert [entry.id for entry in sounds.entries] == [f"{n}.wav" for n in range(12) if f"{n}.wav" not in left_out]
    last = len(sounds.entries) - 1
    np.testing.assert_array_equal(sounds.waveform(last)[0], made_recordings().waveform(11)[0])
    assert sounds.fingerprint == fingerprint_of_entries(sounds.entries) != opened(Stranger()).fingerprint


def test_that_are_all_unusable_or_change_after_they_were_opened_are_an_error():
    silent = {number: (np.zeros(16_000), 16_000) for number in range(12)}
    with pytest.raises(SoundError, match=r"is nearly silent .*; and 9 more"):
        opened(Stranger(answers=silent), skip_invalid=True)
    stranger = Stranger()
    sounds = opened(stranger)
    for answer, message in (((TONE * 0.5, 16_000), "has changed since it was opened"), ((TONE, 0), "has a rate of 0")):
        stranger._answers[1] = answer
        with pytest.raises(SoundError, match=rf"^{TITLE}: '1\.wav' {message}"):
            sounds.waveform(1)
    assert len(sounds.waveform(0)[0]) == 16_000


def test_a_loop_can_be_short():
    period = np.sin(2 * np.pi * 200 * np.arange(800) / 16_000)
    entry = Sound("beep", "beep", "", f"{1:064x}", loop=0.05)
    stranger = Stranger(answers={0: (period.astype(np.float32), np.int64(16_000))}, entries=[entry])
    samples, rate = opened(stranger).waveform(0)
    assert (len(samples), samples.dtype, rate) == (800, np.float64, 16_000)
