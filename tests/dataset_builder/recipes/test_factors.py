"""The clips of stars and of the crossed part: they differ in what the row says and in nothing else."""

from itertools import pairwise, product

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes.factors import RECIPE, FactorSpec
from audio_compositionality.dataset_builder.scenes.sources import FULL_SCALE, ToneBank, draw_crossed, draw_stars
from audio_compositionality.dataset_builder.sounds.tones import default_voices

FEW = {"num_classes": 3, "voices": default_voices()[:3], "stars": 9, "crossed_levels": (3, 2, 2, 2)}


def drawn_of(spec):
    """The clips of a spec as they are drawn, in the order of its rows."""
    return [*draw_stars(spec, spec.stars), *draw_crossed(spec, spec.crossed_classes)]


@pytest.fixture(scope="module")
def few():
    """Nine stars of 10 clips and 24 crossed clips."""
    return RECIPE.render(FactorSpec(**FEW))


@pytest.fixture(scope="module")
def stars(few):
    """The clips of each star: drawn, row and int32 samples by what the id says after the star's name."""
    every = {}
    for index, (drawn, row) in enumerate(zip(drawn_of(few.spec), few.rows, strict=True)):
        if row["kind"] == "star":
            version = row["id"].removeprefix(f"factors-{row['block']}-")
            every.setdefault(row["block"], {})[version] = (drawn, row, few.clips(index)[0].astype(np.int32))
    return every


def test_the_rows_of_a_star_differ_in_the_factor_alone(stars):
    for of_star in stars.values():
        base = of_star["base"][1]
        assert base["factor"] == ""
        for _, row, _ in of_star.values():
            others = set(base["levels"]) - {row["factor"]}
            for factor in others:
                assert row["levels"][factor] == base["levels"][factor]
                assert row["values"].get(factor) == base["values"].get(factor)
                assert row["metadata"][0][f"{factor}_label"] == base["metadata"][0][f"{factor}_label"]
            assert row["metadata"][1:] == base["metadata"][1:]
            assert row["gains"][1:] == base["gains"][1:]
            assert row["gain"] == base["gain"]
            assert (row["onsets"] == base["onsets"]) is (row["factor"] != "onset")


def test_what_is_behind_the_target_is_the_same_samples_in_every_clip_of_a_star(stars, few):
    bank = ToneBank(few.spec)
    behind = 0
    for of_star in stars.values():
        backgrounds = []
        for drawn, row, clip in of_star.values():
            if row["factor"] == "onset":
                continue
            onset = int(row["onsets"][0] * few.spec.periods[row["levels"]["rate"]])
            target = bank.mix(drawn.sources[:1], [onset]) * np.float32(row["gain"] * FULL_SCALE)
            backgrounds.append(clip - np.rint(target).astype(np.int32))
        assert all((background == backgrounds[0]).all() for background in backgrounds)
        assert backgrounds[0].any() == (len(row["metadata"]) > 1)
        behind += bool(backgrounds[0].any())
    assert 0 < behind < len(stars)


def test_a_star_has_one_gain_that_brings_its_loudest_clip_to_full_scale(stars):
    gains = set()
    for of_star in stars.values():
        (gain,) = {row["gain"] for _, row, _ in of_star.values()}
        peak = max(np.abs(clip).max() for *_, clip in of_star.values())
        assert peak <= FULL_SCALE + 1
        if gain < 1:
            assert peak >= FULL_SCALE - 1
        gains.add(gain < 1)
    assert gains == {True, False}


def test_the_crossed_part_is_every_combination_of_the_classes_that_are_kept(few):
    rows = [row for row in few.rows if row["kind"] == "crossed"]
    levels = [tuple(row["levels"].values()) for row in rows]
    assert levels == list(product((0, 1, 2), (0, 2), (0, 2), (0, 2)))
    assert [row["id"] for row in rows] == [f"factors-crossed-{number:05d}" for number in range(24)]
    assert {(row["block"], row["factor"], row["gain"], len(row["metadata"])) for row in rows} == {("", "", 1.0, 1)}
    assert len({row["onsets"][0] for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("count", "kept"),
    [(2, (0, 7)), (5, (0, 2, 4, 5, 7)), (49, tuple(range(8)))],
)
def test_classes_are_kept_as_evenly_as_they_can_be_with_both_ends(count, kept):
    classes = FactorSpec(crossed_levels=(count, 2, 2, 2)).crossed_classes
    assert classes == {"timbre": kept, "pitch": (0, 7), "rate": (0, 7), "amplitude": (0, 7)}
    steps = [second - first for first, second in pairwise(kept)]
    assert max(steps) - min(steps) <= 1


def test_another_seed_draws_everything_anew():
    """Also the crossed part, which has all combinations: their pitches, rates and amplitudes are others."""
    preset, fresh = (FactorSpec(**FEW, seed=seed) for seed in (0, 7))
    sources = [
        {tuple(source.values()) for row in RECIPE.render(settings).rows for source in row["metadata"]}
        for settings in (preset, fresh)
    ]
    assert not sources[0] & sources[1]
    assert {source[0] for source in sources[0]} == {source[0] for source in sources[1]}
    assert "moves" not in preset.values()
    assert fresh.values()["moves"] == list(fresh.moves)
    assert "The seed also moves the levels" in RECIPE.describe(fresh)


@pytest.mark.parametrize("seed", range(1, 4))
def test_levels_that_are_drawn_stay_in_their_bins_and_evenly_spaced(seed):
    preset, fresh = FactorSpec(), FactorSpec(seed=seed)
    spaces = {
        "pitches": (preset.pitch_range, lambda values: np.array(values, float)),
        "rates": (tuple(np.log(preset.rate_range)), np.log),
        "decibels": (preset.amplitude_range, np.array),
    }
    for name, ((low, high), of) in spaces.items():
        width = (high - low) / preset.num_classes
        places = of(getattr(fresh, name))
        moved = np.abs(places - of(getattr(preset, name))) / width
        assert np.all((moved >= 1 / 6 - 1e-9) & (moved <= 1 / 3 + 1e-9)), name
        assert ((places - low) // width == np.arange(preset.num_classes)).all()
        assert np.allclose(np.diff(places), np.diff(of(getattr(preset, name))))
    # Bins of less than three semitones leave the notes where they are, and distinct.
    assert FactorSpec(seed=seed, pitch_range=(36, 50)).pitches == FactorSpec(pitch_range=(36, 50)).pitches
