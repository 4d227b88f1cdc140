"""Tasks of the four axes, on embeddings that are made from what the rows say."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.scenes.bases import SAME
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import load_benchmark, load_task
from audio_compositionality.tasks.shapes.designs import FACTORS, is_crossed

from ..described import check_described

AXES = [task.info.name for task in load_benchmark("axes")]
PROBED = ["informativeness", "equivariance", "disentanglement", "transform_equivariance", "transform_disentanglement"]
DIM = 24
RIDGE = {"probes": ["ridge"]}
"""Settings for tests to which it does not matter which probe is fitted: the kernel's takes 30 times as long."""


@pytest.fixture(scope="module")
def rows():
    """A small configuration of each recipe, without sound."""
    factors = load_recipe("factors")
    transforms = load_recipe("transforms")
    few = factors.presets["mini"].changed(stars=10, crossed_levels=(4, 3, 3, 3))
    small = transforms.presets["mini"].changed(bases=60, untransformed=60, transforms=("gain", "noise"))
    binding = load_recipe("rate_binding")
    one_note = binding.presets["mini"].changed(low_notes=(57,))
    return {
        "factors": factors.render(few).rows,
        "transforms": transforms.render(small).rows,
        "rate_binding": binding.render(one_note).rows,
    }


def additive(rows, noise=0.0, seed=0):
    """Embeddings that are sums of one vector a level of each factor of the first source, and of one a parameter."""
    rng = np.random.default_rng(seed)
    if rows and "faster" in rows[0]:
        # Each source has a place of its own for its rate.
        z = np.log([row["rates"] for row in rows]) @ rng.normal(size=(2, DIM))
        return z + noise * rng.normal(size=(len(rows), DIM))
    lines = {factor: rng.normal(size=(8, DIM)) for factor in FACTORS}
    for factor in FACTORS[1:]:
        lines[factor] = np.arange(8)[:, None] * rng.normal(size=DIM)
    moves = {"gain": rng.normal(size=DIM), "noise": rng.normal(size=DIM)}
    backgrounds, others = {}, {}
    embeddings = []
    for row in rows:
        levels = row["levels"] or dict.fromkeys(FACTORS, 0)
        z = sum(lines[factor][levels[factor]] for factor in FACTORS)
        # What is behind a target, and what a base of several sources is, is the same in all clips of an orbit.
        name = row.get("block") or ("" if row["levels"] else row["base"])
        if name:
            z = z + backgrounds.setdefault(name, 3 * rng.normal(size=DIM))
        if row.get("transform"):
            z = z + row["scaled"] * moves[row["transform"]]
        if row.get("candidate") and not row["levels"]:
            # One of several sources differs in the other candidate.
            z = z + others.setdefault(row["candidate"], 0 if row["candidate"] == SAME else rng.normal(size=DIM))
        embeddings.append(z)
    return np.array(embeddings) + noise * rng.normal(size=(len(rows), DIM))


def outputs_of(task, rows, embeddings):
    return Outputs(clips=np.array([z for z, row in zip(embeddings, rows, strict=True) if task.inputs(row, {}).clips]))


def scored(name, rows, embeddings, **requested):
    task = load_task(name)
    rows = rows[task.info.recipe]
    settings = task.settings(rows, requested)
    return task, task.score(rows, outputs_of(task, rows, embeddings(rows)), settings, "cpu", False)


@pytest.mark.parametrize("name", AXES)
class TestEveryTask:
    @pytest.mark.parametrize("noise", [False, True])
    def test_gives_what_it_describes_and_noise_scores_nothing(self, name, noise, rows):
        def embeddings(rows):
            return np.random.default_rng(3).normal(size=(len(rows), DIM)) if noise else additive(rows, noise=1.0)

        task, scores = scored(name, rows, embeddings, **RIDGE)
        check_described(task, scores, rows[task.info.recipe])
        assert not noise or scores.measures[task.info.ranks_by] == pytest.approx(0, abs=0.2)
        assert {"level-statistics", "rms"} <= set(task.info.controls)

    def test_an_encoder_that_always_answers_the_same_scores_nothing(self, name, rows):
        task, scores = scored(name, rows, lambda rows: np.ones((len(rows), DIM)), **RIDGE)
        assert all(value is None or np.isfinite(value) for value in scores.measures.values())
        assert scores.measures[task.info.ranks_by] == pytest.approx(0, abs=0.05)

    def test_a_row_that_cannot_be_embedded_is_left_out(self, name, rows):
        task = load_task(name)
        given = list(rows[task.info.recipe])
        left_out = next(row["id"] for row in reversed(given) if task.inputs(row, {}).clips)
        kept = [row for row in given if row["id"] != left_out]
        settings = task.settings(kept, RIDGE)
        scores = task.score(kept, outputs_of(task, kept, additive(kept, noise=1.0)), settings, "cpu", False)
        assert scores.ids == task.samples(kept).ids


class TestAnAdditiveEncoder:
    """Theory: each factor moves an embedding by a step of its own, whatever else there is."""

    @pytest.mark.parametrize(
        ("name", "measures"),
        [
            ("informativeness", {"informativeness": 0.99}),
            # Of few stars, each before a background of its own, a probe learns less.
            ("equivariance", {"r_equivariance": 0.97, "p": 0.97, "in_scene_r_equivariance": 0.8, "in_scene_p": 0.8}),
            ("disentanglement", {"unseen": 0.94, "seen": 0.97}),
            ("transform_equivariance", {"r_equivariance": 0.9, "p_gain": 0.9}),
            ("rate_binding", {"unseen_informativeness": 0.99, "seen_informativeness": 0.99}),
        ],
    )
    def test_reaches_one(self, name, measures, rows):
        _, scores = scored(name, rows, additive, **RIDGE)
        for measure, least in measures.items():
            assert least <= scores.measures[measure] <= 1, measure
        assert name != "disentanglement" or scores.measures["main"] == pytest.approx(1, abs=1e-9)

    def test_that_ignores_onsets_is_invariant_to_them(self, rows):
        _, scores = scored("onset_invariance", rows, additive)
        assert scores.measures["invariance"] == pytest.approx(1, abs=1e-9)
        assert scores.measures["top1"] == scores.measures["abx"] == 1
        assert scores.measures["selectivity"] == 1e15

    def test_that_ignores_a_transform_is_invariant_to_it(self, rows):
        _, scores = scored("invariance", rows, lambda rows: additive([{**row, "transform": ""} for row in rows]))
        assert scores.measures["gain_invariance"] == scores.measures["noise_invariance"] == pytest.approx(1, abs=1e-9)
        assert scores.measures["gain_abx"] == scores.measures["noise_abx"] == 1
        assert scores.measures["reverb_invariance"] is scores.measures["reverb_abx"] is None

    def test_keeps_labels_under_what_it_ignores(self, rows):
        def deaf(rows):
            return additive([{**row, "transform": ""} for row in rows])

        _, scores = scored("transform_disentanglement", rows, deaf)
        for factor in FACTORS:
            assert scores.measures[f"{factor}_under_noise_shift_after"] == pytest.approx(
                scores.measures[f"{factor}_under_noise_shift_before"], abs=1e-9
            )
        assert scores.measures["amplitude_under_gain_shift_after"] is None
        assert scores.measures["noise_shift"] == pytest.approx(0, abs=1e-9)


class TestRateBinding:
    def test_who_hears_the_rates_but_not_whose_they_are_is_at_chance(self, rows):
        def heard(rows):
            return np.log([sorted(row["rates"]) for row in rows])

        _, scores = scored("rate_binding", rows, heard)
        for part in ("unseen", "seen"):
            assert scores.measures[f"{part}_informativeness"] == pytest.approx(0, abs=1e-9)

    def test_who_knows_timbres_by_heart_knows_nothing_of_those_never_heard(self):
        binding = load_recipe("rate_binding")

        def by_heart(rows):
            names = sorted({timbre for row in rows for timbre in row["timbres"]})
            lower = np.array([[row["timbres"][0] == name for name in names] for row in rows], float)
            return lower * np.array([[1 if row["faster"] == "low" else -1] for row in rows])

        _, scores = scored("rate_binding", {"rate_binding": binding.render(binding.presets["mini"]).rows}, by_heart)
        assert scores.measures["seen_informativeness"] > 0.9
        assert scores.measures["unseen_informativeness"] == pytest.approx(0, abs=1e-9)


class TestSettings:
    @pytest.mark.parametrize("name", PROBED)
    def test_probes_are_closed_forms_unless_asked_otherwise(self, name, rows):
        task = load_task(name)
        given = rows[task.info.recipe]
        assert task.settings(given, {})["probes"] == ["ridge", "kernel"]
        assert task.settings(given, {"probes": ["mlp"], "scaled": False, "seeds": [1]})["probes"] == ["mlp"]

    def test_rows_that_cannot_be_scored_are_refused(self, rows):
        changed, factors, bound = rows["transforms"], rows["factors"], rows["rate_binding"]
        rare = [{**row, "label": "rare" if row["base"] == "transforms-00000" else "common"} for row in changed]
        alike = [row for row in factors if not is_crossed(row) or row["levels"]["rate"] == 0]
        few = [row for row in changed if row["base"] <= "transforms-00003"]
        for name, given, message in (
            ("rate_binding", [row for row in bound if row["group"] < 2], "2 groups of timbres; at least 3 are needed"),
            ("invariance", [row for row in changed if row["id"] != changed[0]["id"]], "without its original"),
            ("invariance", few, "of 4 clips .* 5 are needed"),
            ("transform_disentanglement", [{**row, "levels": None} for row in changed], "no labelled clip"),
            ("transform_disentanglement", rare, "'rare' is in only one of 5 folds"),
            ("informativeness", alike, "1 levels of rate"),
        ):
            with pytest.raises(TaskError, match=message):
                load_task(name).settings(given, {})
