"""The renderer: events can be heard when it says, are equally loud, and are the same samples in all clips of a row."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.scenes.mixing import PEAK, Event, EventSounds, exact_clips, mix
from audio_compositionality.dataset_builder.sounds.entries import Sound
from audio_compositionality.support.errors import InputError

RATE = 16_000
HOP = RATE // 100
SILENCE = -35.0


def noise(seconds, seed=0):
    return 0.1 * np.random.default_rng(seed).standard_normal(round(seconds * RATE))


def nothing(seconds):
    return np.zeros(round(seconds * RATE))


def sine(seconds):
    return np.sin(2 * np.pi * 440 * np.arange(round(seconds * RATE)) / RATE)


KINDS = {
    "steady": np.concatenate([nothing(0.3), noise(1.2), nothing(0.4)]),
    "struck": noise(1.0) * np.exp(-8 * np.arange(RATE) / RATE),
    "parted": np.concatenate([noise(0.4), nothing(0.6), noise(0.5, 1)]),
    "joined": np.concatenate([noise(0.4), nothing(0.15), noise(0.5, 1)]),
    "short": np.concatenate([nothing(1.0), noise(0.12)]),
    "long": noise(7.0),
    "sine": sine(0.8),
    "tone": np.concatenate([noise(0.2, 3), nothing(0.1953125)]),
}
"""Steady, struck, with a pause that parts it and one that does not, short, long, and a loop of 6,325 samples."""

NAMES = list(KINDS)


class Kinds:
    """They are sounds; the last is a loop."""

    source, sample_rate, fingerprint, suggested = "kinds", RATE, "kinds", {}

    def __init__(self, waveforms=None, **levels):
        self.waveforms = waveforms or KINDS
        self.entries = [
            Sound(name, name, name, name, loop=name == "tone", level=levels.get(name, 0.0)) for name in self.waveforms
        ]

    def waveform(self, index):
        return list(self.waveforms.values())[index], RATE


def opened(waveforms=None, **levels):
    return EventSounds(Kinds(waveforms, **levels), RATE, SILENCE, levels=True)


def event(name, frames=250, start=0, **values):
    return Event(NAMES.index(name), start * HOP, (start + frames) * HOP, **values)


def loud_samples(samples):
    """When something is heard, by the largest sample of windows of 20 ms: no frame, no power, no trimming of ours."""
    envelope = np.lib.stride_tricks.sliding_window_view(np.pad(np.abs(samples), HOP), 2 * HOP + 1).max(axis=1)
    return envelope >= envelope.max() * 10 ** (SILENCE / 20)


class TestLengths:
    def test_are_without_what_is_35_db_softer_at_both_ends(self):
        for decibels, frames in ((-30, 200), (-40, 100)):
            soft = noise(0.5, 1) * 10 ** (decibels / 20)
            sounds = opened({"one": np.concatenate([nothing(0.2), soft, noise(1.0), soft])})
            assert sounds.length(0) == frames * HOP

    def test_of_a_loop_there_are_none(self):
        assert opened().length(NAMES.index("tone")) is None
        assert opened().period(NAMES.index("tone")) == 6_325


class TestActivity:
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("frames", [37, 420])
    @pytest.mark.parametrize("skipped", [0, 31])
    def test_says_when_an_event_is_heard(self, name, frames, skipped):
        sounds, one = opened(), event(name, frames, 100, offset=skipped * HOP)
        samples = sounds.samples(one)
        assert samples.shape == (frames * HOP,)
        loud = loud_samples(samples)
        inside = np.zeros(frames * HOP, bool)
        for start, stop in sounds.activity([one]):
            inside[(start - 100) * HOP : (stop - 100) * HOP] = True
        # Heard within its events but for pauses, which part nothing; beyond them silent but for an edge of 30 ms.
        near = np.convolve(inside, np.ones(6 * HOP + 1), "same") > 0.5
        assert not np.any(loud & ~near)
        for start, stop in sounds.activity([one]):
            part = loud[(start - 100) * HOP : (stop - 100) * HOP]
            edges = np.flatnonzero(np.diff(np.concatenate(([1], part.astype(np.int8), [1]))))
            assert (np.diff(edges)[::2] <= 23 * HOP).all()

    def test_parts_what_has_a_silence_of_more_than_a_fifth_of_a_second(self):
        sounds = opened()
        once = {name: event(name, sounds.length(NAMES.index(name)) // HOP) for name in ("parted", "joined")}
        assert {name: len(sounds.activity([one])) for name, one in once.items()} == {"parted": 2, "joined": 1}

    def test_joins_a_short_sound_that_is_repeated(self):
        sounds, one = opened(), event("short", 300)
        assert not sounds.heard(one).all()
        ((start, stop),) = sounds.activity([one])
        assert start == 0
        assert stop > 270

    def test_is_of_several_events_and_whatever_part_of_a_frame_they_start_in(self):
        sounds = opened()
        late = Event(NAMES.index("steady"), 500 * HOP + 7, 600 * HOP)
        assert sounds.activity([event("steady", 100), event("sine", 80, 110), late]) == ((0, 190), (500, 600))

    def test_leaves_out_what_is_softer_than_what_is_behind(self):
        sounds, behind = opened(), 10 ** (-5 / 20)
        alone, masked, louder = (
            sounds.heard(event("struck", 100, gain=gain), of).sum() for gain, of in ((1, 0), (1, behind), (2, behind))
        )
        assert masked < louder < alone

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("skipped", [0, 17])
    def test_is_of_the_powers_that_the_samples_have(self, name, skipped):
        sounds, one = opened(), event(name, 200, offset=skipped * HOP)
        measured = np.square(sounds.samples(one)).reshape(-1, HOP).mean(axis=1)[1:-1]
        powers = sounds.powers(one)[1:-1]
        np.testing.assert_allclose(powers / powers.sum(), measured / measured.sum(), rtol=1e-4, atol=1e-9)


class TestSamples:
    @pytest.mark.parametrize("name", NAMES[:-1])
    def test_have_the_level_of_their_event_whatever_they_are_of(self, name):
        sounds, softer = opened(), opened(**{name: -10.0})
        for gain in (1.0, 0.5):
            for of, expected in ((sounds, gain), (softer, gain * 10**-0.5)):
                samples = of.samples(event(name, gain=gain))
                assert np.sqrt(np.mean(samples**2)) == pytest.approx(expected, rel=1e-5)

    @pytest.mark.parametrize("name", NAMES)
    def test_are_no_larger_than_is_foreseen(self, name):
        sounds = opened()
        for one in (event(name), event(name, gain=0.5, offset=20 * HOP), event(name, 3, gain=2.0)):
            assert np.abs(sounds.samples(one)).max() <= 1.5 * sounds.peak(one)

    def test_of_a_silent_sound_are_refused(self):
        with pytest.raises(DatasetError, match=r"kinds: recording 'one' is silent; leave it out"):
            opened({"one": nothing(1) + 0.1}).length(0)


class TestEvents:
    @pytest.mark.parametrize("span", [(-1, 3), (3, 3), (4, 3)])
    def test_end_after_they_begin(self, span):
        with pytest.raises(InputError, match=f"an event is from sample {span[0]} to {span[1]}; start must be less"):
            Event(0, *span)

    def test_are_no_longer_than_their_clip(self):
        with pytest.raises(InputError, match="an event ends at sample 80,001 of a clip that has 80,000"):
            mix([[Event(0, 1, 80_001)]], lambda event: np.ones(event.length), 80_000)

    def test_need_frames_of_whole_samples(self):
        with pytest.raises(InputError, match="sample_rate is 22,051; it must be a multiple of 100"):
            EventSounds(Kinds(), 22_051)


class TestMixing:
    def test_moves_events_whole(self):
        first, second = event("struck", 200, gain=0.5), event("steady", 280, 210)
        one, other = mix([(first, second), (second.moved(0), first.moved(290 * HOP))], opened().samples, 490 * HOP)
        assert {clip.dtype for clip in (one, other)} == {np.dtype(np.int16)}
        assert (one[: 200 * HOP] == other[290 * HOP :]).all()
        assert (one[210 * HOP :] == other[: 280 * HOP]).all()
        assert not one[200 * HOP : 210 * HOP].any()

    def test_makes_clips_that_differ_by_whole_events(self):
        events = [event(name, 100, 20 * place) for place, name in enumerate(NAMES[:5])]
        more = event("tone", 150, 10)
        every, with_it, alone, empty = mix([events, [*events, more], [more], []], opened().samples, 300 * HOP)
        assert (with_it - every == alone).all()
        assert alone.any()
        assert not empty.any()

    def test_has_one_gain_for_the_largest_sample_of_a_row(self):
        clips = mix([[event("long")], [event("long"), event("sine")], [event("short")]], opened().samples, 250 * HOP)
        assert max(np.abs(clip.astype(int)).max() for clip in clips) == pytest.approx(PEAK * 2**15, abs=1.5)

    def test_brings_the_loudest_clip_to_a_level_as_far_as_its_peak_allows(self):
        sounds = opened()
        row = [[event("steady", start=10), event("sine", 100)], [event("long", 100)]]
        first, second = mix(row, sounds.samples, 300 * HOP, level=0.05)
        assert np.sqrt(np.mean((first / 2**15) ** 2)) == pytest.approx(0.05, rel=1e-3)
        assert np.sqrt(np.mean((second / 2**15) ** 2)) < 0.04
        (loud,) = mix([[event("struck", 100)]], sounds.samples, 100 * HOP, level=0.9)
        assert np.abs(loud.astype(int)).max() == pytest.approx(PEAK * 2**15, abs=6)

    def test_lowers_clips_that_would_pass_the_peak_and_leaves_others_as_they_are(self):
        sounds = opened()
        (soft,) = mix([[event("sine", 100, gain=0.1)]], sounds.samples, 100 * HOP, most=1.0)
        np.testing.assert_allclose(soft / 2**15, sounds.samples(event("sine", 100, gain=0.1)), atol=1 / 2**15)
        (loud,) = mix([[event("sine", 100, gain=5.0)]], sounds.samples, 100 * HOP, most=1.0)
        assert np.abs(loud.astype(int)).max() == pytest.approx(PEAK * 2**15, abs=1.5)


class TestExactClips:
    def layers(self, count):
        return [noise(0.1, seed) for seed in range(count)]

    def test_differences_are_layers(self):
        layers = self.layers(4)
        a, ab, ac, b, c, d = exact_clips(layers, [(0,), (0, 1), (0, 2), (1,), (2,), (3,)])
        assert a.dtype == np.int16
        assert np.array_equal(ab - a, b)
        assert np.array_equal(ac - a, c)
        gain = b.astype(float) @ layers[1] / (layers[1] @ layers[1])
        assert np.abs(d - gain * layers[3]).max() < 0.6

    def test_the_largest_sample_of_all_is_the_peak(self):
        layers = [noise(0.1, 5), 0.1 * noise(0.1, 6)]
        clips = exact_clips(layers, [(0,), (1,), (0, 1)])
        largest = max(np.abs(clip.astype(int)).max() for clip in clips)
        assert largest == pytest.approx(PEAK * 2**15, abs=1.5)
        quiet = exact_clips([1e-6 * layer for layer in layers], [(0,), (1,), (0, 1)])
        assert all(np.array_equal(*pair) for pair in zip(clips, quiet, strict=True))
