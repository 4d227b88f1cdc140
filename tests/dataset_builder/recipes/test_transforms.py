"""The clips and copies of the presets, and which rows are refused."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import kstest

from audio_compositionality.dataset_builder.recipes.transforms import RECIPE
from audio_compositionality.dataset_builder.scenes.bases import DIFFERING
from audio_compositionality.dataset_builder.scenes.effects import load_transform

from .transformed import SMALL, by_id, level


def is_base(row):
    return not row["transform"] and not row["candidate"]


FOUR = ("gain", "noise", "lowpass", "reverb")


@pytest.fixture(scope="module")
def small():
    """Every clip of few short scenes by the id of its row."""
    return by_id(SMALL)


class TestRows:
    def test_a_base_comes_before_its_copies(self):
        rows = RECIPE.render(RECIPE.presets["mini"]).rows
        assert len({row["id"] for row in rows}) == 1_024
        assert [row["id"] for row in rows[19:25]] == [
            f"transforms-00001-{copy}" for copy in ("base", "gain-0", "gain-1", "gain-2", "gain-3", "noise-0")
        ]
        assert {row["split"] for row in rows} == {"test"}
        for place in range(0, 912, 19):
            base, *copies = rows[place : place + 17]
            assert (base["transform"], base["parameter"], base["scaled"], base["quarter"]) == ("", None, None, -1)
            assert [row["transform"] for row in copies] == [name for name in FOUR for _ in range(4)]
            for column in ("base", "fold", "metadata", "levels", "values"):
                assert all(row[column] == base[column] for row in copies)
            same, other = rows[place + 17 : place + 19]
            assert {row["candidate"] for row in (base, *copies)} == {""}
            assert (same["candidate"], other["candidate"]) == ("same", DIFFERING[place // 38 % 3])
            assert same["id"] == f"{base['base']}-same"
            assert all(row["base"] == base["base"] and row["fold"] == base["fold"] for row in (same, other))

    def test_half_of_the_bases_are_single_sources_whose_factors_are_known(self):
        settings = RECIPE.presets["mini"]
        bases = [row for row in RECIPE.render(settings).rows[:912] if is_base(row)]
        assert [len(row["metadata"]) == 1 for row in bases] == [True, False] * 24
        for row in bases[::2]:
            (labels,) = row["metadata"]
            assert labels["timbre_label"] == settings.labels["timbre"][row["levels"]["timbre"]]
            assert labels["pitch_label"] == f"MIDI {row['values']['pitch']:g}"
            assert labels["rate_label"] == f"{row['values']['rate']:.3f} Hz"
            assert labels["amplitude_label"] == f"{row['values']['amplitude']:.3f} dB"
        assert all(row["levels"] is row["values"] is None for row in bases[1::2])
        assert set(Counter(row["fold"] for row in bases).values()) == {8, 10}

    @pytest.mark.parametrize("preset", ["mini", "full"])
    def test_further_single_sources_come_after_them_without_copies(self, preset):
        settings = RECIPE.presets[preset]
        rows = RECIPE.render(settings).rows
        further = rows[-settings.untransformed :]
        assert further[0]["base"] == f"transforms-{settings.bases:05d}"
        assert all(row["id"] == f"{row['base']}-base" for row in further)
        assert {(row["transform"], row["quarter"]) for row in further} == {("", -1)}
        singles = [row for row in rows if row["levels"] and is_base(row)]
        assert len(singles) == settings.bases // 2 + settings.untransformed
        sources = [tuple(row["levels"].values()) for row in singles]
        assert len(set(sources)) == len(sources)
        for levels in zip(*sources, strict=True):
            assert set(Counter(levels).values()) == {len(sources) // 8}
        for some in (singles, further):
            sizes = Counter(row["fold"] for row in some).values()
            assert max(sizes) - min(sizes) <= 1

    def test_parameters_are_uniform_in_their_quarter_on_the_scale_of_the_range(self):
        rows = [row for row in RECIPE.render(RECIPE.presets["full"]).rows if row["transform"]]
        for name in FOUR:
            transform = load_transform(name)
            of_transform = [row for row in rows if row["transform"] == name]
            for quarter in range(4):
                scaled = np.array([row["scaled"] for row in of_transform if row["quarter"] == quarter])
                assert len(scaled) == 400
                assert kstest(4 * scaled - quarter, "uniform").pvalue > 1e-3
            parameters = np.array([row["parameter"] for row in of_transform])
            low, high = transform.low, transform.high
            if name == "lowpass":
                low, high, parameters = np.log(low), np.log(high), np.log(parameters)
            assert (parameters - low) / (high - low) == pytest.approx([row["scaled"] for row in of_transform])
            assert {row["unit"] for row in of_transform} == {transform.unit}

    def test_more_draws_a_quarter_keep_their_quarter(self):
        rows = RECIPE.render(SMALL.changed(per_quarter=3)).rows
        noises = [row for row in rows if row["transform"] == "noise"][:12]
        assert [row["quarter"] for row in noises] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
        assert [int(4 * row["scaled"]) for row in noises] == [row["quarter"] for row in noises]
        assert noises[-1]["id"] == "transforms-00000-noise-11"


class TestSound:
    def test_a_transform_changes_no_other(self, small):
        for transforms in (("reverb",), ("reverb", "noise", "gain")):
            rows = by_id(SMALL.changed(transforms=transforms))
            assert len(rows) == 10 * (3 + 4 * len(transforms))
            for name, (row, clip) in rows.items():
                assert row == small[name][0]
                assert (clip == small[name][1]).all()

    def test_further_clips_change_no_other_and_sound_like_bases(self, small):
        rows = by_id(SMALL.changed(untransformed=6))
        assert list(rows)[: len(small)] == list(small)
        assert all(rows[name][0] == row and (rows[name][1] == clip).all() for name, (row, clip) in small.items())
        rendering = RECIPE.render(SMALL.changed(untransformed=6))
        further = list(rows)[len(small) :]
        assert further == [f"transforms-{number:05d}-base" for number in range(10, 16)]
        for base, name in zip(list(rendering.spec.material.draw())[10:], further, strict=True):
            assert np.abs(rows[name][1] - base.sound() * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    def test_levels_are_those_of_the_base_but_after_gain_and_noise(self, small):
        for row, clip in small.values():
            if row["candidate"]:
                # Those of a loud base can be softer, where one of them would pass full scale.
                continue
            share = level(clip) / level(small[f"{row['base']}-base"][1])
            expected = {
                "gain": lambda parameter: 10 ** (parameter / 20),
                "noise": lambda parameter: np.sqrt(1 + 10 ** (-parameter / 10)),
            }.get(row["transform"], lambda parameter: 1)(row["parameter"])
            assert share == pytest.approx(expected, rel=0.02)

    def test_the_noise_of_a_clip_has_its_ratio(self, small):
        for row, clip in small.values():
            base = small[f"{row['base']}-base"][1].astype(float)
            # The softest have so little of the noise that rounding to 16 bits adds to it.
            if row["transform"] == "noise" and level(base) > 300:
                ratio = 20 * np.log10(level(base) / level(clip - base))
                assert ratio == pytest.approx(row["parameter"], abs=0.1)

    def test_the_level_of_a_base_is_that_of_its_source(self, small):
        for base in list(SMALL.material.draw())[::2]:
            clip = small[f"{base.name}-base"][1]
            assert np.abs(clip - base.sound() * 32_766 * 10 ** (-12 / 20)).max() <= 0.51

    @pytest.mark.slow
    def test_no_single_source_of_a_preset_is_lowered_further(self):
        # Those of full begin with those of mini; of the transforms, noise alone raises a peak by so much.
        rendering = RECIPE.render(RECIPE.presets["full"].changed(transforms=("noise",)))
        places = {row["base"]: place for place, row in enumerate(rendering.rows) if is_base(row)}
        for base in rendering.spec.material.draw():
            if base.candidates and base.said["levels"] and base.said["levels"]["amplitude"] >= 5:
                (clip,) = rendering.clips(places[base.name])
                assert np.abs(clip - base.sound() * 32_766 * 10 ** (-12 / 20)).max() <= 0.51


def test_the_card_says_what_the_presets_are():
    card = RECIPE.describe(RECIPE.presets["mini"])
    assert "48 sound scenes: by turns a single source, and 2 to 3 sources together." in card
    assert "112 further single sources come after them without copies" in card
    assert "| `lowpass` | 500 to 8,000 Hz, logarithmic |" in card
    assert "Copies by `lowpass` and `reverb` have the root mean square of their base." in card
    assert "| 7 | Breath Pad |" in card
