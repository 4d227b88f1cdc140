"""Isolated sounds as layers: when they are heard is what can be measured of the layer, and all are equally loud."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.scenes.soundscapes import (
    CLIP_LEVEL,
    Layer,
    activity_of,
    at_rate,
    largest_sample,
    layer_level,
    layer_mask,
    layer_samples,
    measured,
    mixed,
)
from audio_compositionality.support.errors import InputError

RATE = 16_000
HOP = RATE // 100
SILENCE = -35.0


def noise(seconds, seed=0):
    return 0.1 * np.random.default_rng(seed).standard_normal(round(seconds * RATE))


def nothing(seconds):
    return np.zeros(round(seconds * RATE))


def sounds():
    """Each kind by name: steady, struck, with a pause that parts it and one that does not, short, soft at its end."""
    return {
        "steady": np.concatenate([nothing(0.3), noise(1.2), nothing(0.4)]),
        "struck": noise(1.0) * np.exp(-8 * np.arange(RATE) / RATE),
        "parted": np.concatenate([noise(0.4), nothing(0.6), noise(0.5, 1)]),
        "joined": np.concatenate([noise(0.4), nothing(0.15), noise(0.5, 1)]),
        "short": np.concatenate([nothing(1.0), noise(0.12)]),
        "long": noise(7.0),
        "sine": np.sin(2 * np.pi * 440 * np.arange(round(0.8 * RATE)) / RATE),
    }


def loud_frames(samples):
    """When something is heard, by the largest sample of windows of 20 ms: no frame, no power, no trimming of ours."""
    envelope = np.lib.stride_tricks.sliding_window_view(np.pad(np.abs(samples), HOP), 2 * HOP + 1).max(axis=1)
    return envelope >= envelope.max() * 10 ** (SILENCE / 20)


class TestMeasuring:
    def test_cuts_off_what_is_35_db_softer_at_both_ends(self):
        for decibels, is_heard in ((-30, True), (-40, False)):
            soft = noise(0.5, 1) * 10 ** (decibels / 20)
            heard = measured(np.concatenate([nothing(0.2), soft, noise(1.0), soft]), RATE, SILENCE)
            assert (heard.start == 20) == is_heard
            assert len(heard.powers) == (200 if is_heard else 100)

    def test_takes_a_constant_offset_for_silence(self):
        samples = np.concatenate([nothing(0.5), noise(1.0), nothing(0.5)]) + 0.2
        heard = measured(at_rate(samples, RATE, RATE), RATE, SILENCE)
        assert (heard.start, len(heard.powers)) == (50, 100)

    @pytest.mark.parametrize("name", sounds())
    @pytest.mark.parametrize("length", [37, 180, 420])
    @pytest.mark.parametrize("skipped", [0, 31])
    def test_says_when_a_track_is_heard(self, name, length, skipped):
        heard = measured(sounds()[name], RATE, SILENCE)
        layer = Layer(0, 100, 100 + length, skipped=skipped)
        ((first, mask),) = [(layer.start, layer_mask(heard, layer, SILENCE))]
        activity = activity_of([(first, mask)])
        samples = layer_samples(sounds()[name], heard, layer, RATE)
        assert samples.shape == (length * HOP,)
        loud = loud_frames(samples)
        inside = np.zeros(length * HOP, bool)
        for start, stop in activity:
            inside[(start - 100) * HOP : (stop - 100) * HOP] = True
        # Heard within its events but for pauses, which part nothing; beyond them silent but for an edge of 30 ms.
        near = np.convolve(inside, np.ones(6 * HOP + 1), "same") > 0.5
        assert not np.any(loud & ~near)
        for start, stop in activity:
            part = loud[(start - 100) * HOP : (stop - 100) * HOP]
            edges = np.flatnonzero(np.diff(np.concatenate(([1], part.astype(np.int8), [1]))))
            assert (np.diff(edges)[::2] <= 23 * HOP).all()

    def test_parts_what_has_a_silence_of_more_than_a_fifth_of_a_second(self):
        count = {}
        for name in ("parted", "joined"):
            heard = measured(sounds()[name], RATE, SILENCE)
            layer = Layer(0, 0, len(heard.powers))
            count[name] = len(activity_of([(0, layer_mask(heard, layer, SILENCE))]))
        assert count == {"parted": 2, "joined": 1}

    def test_joins_a_short_sound_that_is_repeated(self):
        heard = measured(sounds()["short"], RATE, SILENCE)
        mask = layer_mask(heard, Layer(0, 0, 300), SILENCE)
        assert not mask.all()
        ((start, stop),) = activity_of([(0, mask)])
        assert start == 0
        assert stop > 270

    def test_hears_nothing_that_is_softer_than_what_is_behind(self):
        heard = measured(sounds()["struck"], RATE, SILENCE)
        layer = Layer(0, 0, len(heard.powers))
        alone, masked, loud = (
            layer_mask(heard, one, SILENCE, snr).sum()
            for one, snr in ((layer, None), (layer, 5.0), (Layer(0, 0, len(heard.powers), level=6.0), 5.0))
        )
        assert masked < loud < alone


class TestTracks:
    @pytest.mark.parametrize("name", sounds())
    def test_have_one_level_whatever_they_are_of(self, name):
        heard = measured(sounds()[name], RATE, SILENCE)
        for level in (0.0, -6.0):
            samples = layer_samples(sounds()[name], heard, Layer(0, 0, 250, level), RATE)
            assert np.sqrt(np.mean(samples**2)) == pytest.approx(10 ** (level / 20), rel=1e-12)

    @pytest.mark.parametrize("name", sounds())
    def test_are_faded_at_both_ends(self, name):
        heard = measured(sounds()[name], RATE, SILENCE)
        samples = layer_samples(sounds()[name], heard, Layer(0, 0, 250), RATE)
        # The first and the last of 160 samples have a gain of less than 1e-4.
        assert np.abs(samples[[0, -1]]).max() <= 1e-3 * np.abs(samples).max()

    def test_repeat_a_steady_sound_without_a_dip(self):
        heard = measured(sounds()["steady"], RATE, SILENCE)
        samples = layer_samples(sounds()["steady"], heard, Layer(0, 0, 600), RATE)
        power = np.square(samples[HOP:-HOP]).reshape(-1, 2 * HOP).mean(axis=1)
        assert 10 * np.log10(power.min() / power.max()) > -4

    @pytest.mark.parametrize("name", sounds())
    def test_have_the_level_that_is_foreseen(self, name):
        """Of `layer_level`, which knows frames alone: what a clip peaks at is told before it is mixed."""
        samples, heard = sounds()[name], measured(sounds()[name], RATE, SILENCE)
        layer = Layer(0, 0, 250)
        before = layer_samples(samples, heard, layer, RATE)
        place = int(np.argmax(np.abs(before[: len(heard.powers) * HOP // 2])))
        scale = abs(before[place] / samples[heard.start * HOP + place])
        if place >= HOP:
            assert scale == pytest.approx(1 / layer_level(heard, layer), rel=0.05)

    @pytest.mark.parametrize("span", [(-1, 3), (3, 3), (4, 3)])
    def test_end_after_they_begin(self, span):
        with pytest.raises(InputError, match="a layer is from frame"):
            Layer(0, *span)


class TestClips:
    def test_have_one_level_and_no_sample_above_what_is_foreseen(self):
        heard = {name: measured(samples, RATE, SILENCE) for name, samples in sounds().items()}
        for names in (("steady",), ("struck", "parted"), ("short", "long", "sine", "joined")):
            layers = [Layer(0, 40 * place, 40 * place + 250) for place in range(len(names))]
            pairs = list(zip([heard[name] for name in names], layers, strict=True))
            layers = [
                (layer.start * HOP, layer_samples(sounds()[name], heard[name], layer, RATE))
                for name, layer in zip(names, layers, strict=True)
            ]
            clip = mixed(layers, 4 * RATE)
            assert np.sqrt(np.mean(clip**2)) == pytest.approx(CLIP_LEVEL, rel=1e-12)
            assert np.abs(clip).max() <= 1.1 * largest_sample(pairs, 400)
