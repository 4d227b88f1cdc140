"""Events: cut with a fade, moved whole, and exact to the sample."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.sources import SceneSpec, Source
from audio_compositionality.dataset_builder.scenes.timeline import SourceEvent, event_clips, event_samples
from audio_compositionality.dataset_builder.scenes.tone_bank import ToneBank, Tones
from audio_compositionality.support.errors import InputError

SETTINGS = SceneSpec(sample_rate=8_000)

LOUD, SOFT, LOW = Source(0, 1, 7, 7), Source(1, 5, 6, 0), Source(2, 0, 5, 7)


class Noise(Tones):
    """Tones of noise with a peak of 1, made as they are asked for."""

    def __missing__(self, key):
        tone = np.random.default_rng(key).uniform(-1, 1, SETTINGS.periods[key[2]]).astype(np.float32)
        self[key] = tone / np.abs(tone).max()
        return self[key]


@pytest.fixture
def bank():
    return ToneBank(SETTINGS, Noise())


def test_an_event_is_its_source_until_it_is_cut(bank):
    period, length = SETTINGS.periods[7], 20_000
    samples = event_samples(bank, LOUD, length)
    assert samples.dtype == np.float32
    whole = bank.mix([LOUD], [0])[:length]
    assert length % period
    assert (samples[:-80] == whole[:-80]).all()
    # Ten milliseconds of half a cosine, which ends at 0.
    gains = [(1 + np.cos(np.pi * step / 80)) / 2 for step in range(1, 81)]
    assert samples[-80:] == pytest.approx(whole[-80:] * gains, abs=1e-6)
    assert samples[-1] == pytest.approx(0, abs=1e-7)


def test_a_tone_that_ends_by_itself_is_not_cut(bank):
    period = SETTINGS.periods[7]
    assert (event_samples(bank, LOUD, 2 * period) == bank.mix([LOUD], [0])[: 2 * period]).all()


def test_events_are_moved_whole_under_one_gain(bank):
    first, second = SourceEvent(LOUD, 0, 30_000), SourceEvent(LOW, 34_000, 80_000)
    one, other = event_clips(bank, [(first, second), (second.moved(0), first.moved(50_000))])
    assert {clip.dtype for clip in (one, other)} == {np.dtype(np.int16)}
    assert (one[:30_000] == other[50_000:]).all()
    assert (one[34_000:] == other[:46_000]).all()
    assert not one[30_000:34_000].any()
    assert not other[46_000:50_000].any()
    # Nothing overlaps and nothing is above full scale: the level is that of the sources.
    assert np.abs(one.astype(int)).max() == pytest.approx(32_766 * SETTINGS.gains[7], abs=40)


def test_clips_of_an_item_differ_by_whole_events_and_none_is_clipped(bank):
    """Five loud events at once, several of one source, and a soft one that is alone: one gain for all."""
    events = [SourceEvent(Source(timbre, 3, 6, 7), 1_000 * timbre, 60_000) for timbre in range(4)]
    twice = SourceEvent(events[0].source, 61_000, 80_000)
    again = events[0].moved(20_000)
    clips = [events, [*events, again], [SourceEvent(SOFT, 0, 80_000)], [twice], []]
    every, more, soft, alone, empty = (clip.astype(np.int64) for clip in event_clips(bank, clips))
    alike = event_clips(bank, [[*events, again], [again]])
    assert np.abs(more).max() in range(32_760, 32_768)
    difference = more - every
    assert (difference == alike[1]).all()
    gain = np.abs(more).max() / np.abs(sum(_placed(bank, event) for event in [*events, again])).max()
    for clip, of_clip in ((soft, clips[2]), (alone, clips[3])):
        expected = gain * sum(_placed(bank, event) for event in of_clip)
        assert np.abs(clip - expected).max() <= 1
    assert not empty.any()


def _placed(bank, event):
    clip = np.zeros(SETTINGS.num_samples)
    clip[event.start : event.stop] = event_samples(bank, event.source, event.length)
    return clip


def test_what_has_no_place_in_a_clip_is_refused(bank):
    with pytest.raises(InputError, match="an event is from sample 5 to 5"):
        SourceEvent(LOUD, 5, 5)
    with pytest.raises(InputError, match="an event ends at sample 80,001 of a clip that has 80,000"):
        event_clips(bank, [[SourceEvent(LOUD, 1, 80_001)]])
