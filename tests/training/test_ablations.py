"""Ablations: which trainings, intervals over items and seeds, one table, nothing done twice."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.networks.small_networks import save_clap, tiny_clap
from audio_compositionality.support.checked_files import sealed_json
from audio_compositionality.support.files import sha256_of_file
from audio_compositionality.training.ablations import run_ablations, two_way, variants
from audio_compositionality.training.settings import TrainingError, TrainingSettings

STAGES = "contrastive:2,hard:3,modular:1"


def settings(stages=STAGES, **values):
    return TrainingSettings(stages=stages, data="scenes", **values)


def kinds(one):
    return [stage.kind for stage in one.stages]


class TestVariants:
    def test_each_stage_is_left_out_once_exchanged_with_the_next_and_has_fewer_parts(self):
        named = variants(settings())
        assert {name: kinds(one) for name, one in named.items() if one.positives == 7} == {
            "all": ["contrastive", "hard", "modular"],
            "without contrastive": ["hard", "modular"],
            "without hard": ["contrastive", "modular"],
            "without modular": ["contrastive", "hard"],
            "without hard and modular": ["contrastive"],
            "hard before contrastive before modular": ["hard", "contrastive", "modular"],
            "contrastive before modular before hard": ["contrastive", "modular", "hard"],
        }
        assert {name: one.positives for name, one in named.items() if one.positives < 7} == {
            "1 part": 1,
            "2 parts": 2,
            "4 parts": 4,
        }

    def test_what_would_be_the_same_is_done_once_and_a_single_stage_is_refused(self):
        two = ["all", "without contrastive", "without hard", "hard before contrastive"]
        assert list(variants(settings("contrastive:2,hard:3"))) == two
        with pytest.raises(TrainingError, match="the only stage is hard"):
            variants(settings("hard:3"))


class TestTwoWay:
    def test_of_one_seed_and_no_clusters_it_is_the_bootstrap_of_the_mean(self):
        rng = np.random.default_rng(0)
        scores = rng.normal(size=(200, 2, 1))
        both = two_way(scores, np.arange(200))
        np.testing.assert_allclose(both.means, scores.mean(axis=(0, 2)))
        low, high = both.intervals[0]
        half = 1.97 * scores[:, 0, 0].std(ddof=1) / np.sqrt(200)
        assert (high - low) / 2 == pytest.approx(half, rel=0.1)
        assert both.difference_intervals[0] == (0, 0)

    def test_differences_are_paired_by_item_and_by_seed(self):
        rng = np.random.default_rng(1)
        first = rng.normal(size=(100, 1, 4)) + rng.normal(size=(1, 1, 4))
        both = two_way(np.concatenate([first, first + 0.25], axis=1), np.arange(100))
        np.testing.assert_allclose(both.difference_intervals[1], 0.25)
        low, high = both.intervals[0]
        assert high - low > 0.5

    def test_seeds_that_differ_widen_the_interval(self):
        scores = np.zeros((50, 1, 3)) + np.array([0.2, 0.5, 0.8])
        low, high = two_way(scores, np.arange(50)).intervals[0]
        assert low < 0.35 < 0.65 < high

    def test_too_few_independent_items_have_none(self):
        both = two_way(np.zeros((40, 2, 1)), np.repeat(np.arange(4), 10))
        assert both.intervals == both.difference_intervals == (None, None)


@pytest.mark.slow
def test_one_table_and_nothing_is_done_twice(tmp_path):
    trained = []

    def train(one, folder):
        if not (folder / "training.json").is_file():
            trained.append(folder.name)
            folder.mkdir(parents=True)
            save_clap(tiny_clap(one.seed + one.steps), folder)
            files = {path.name: sha256_of_file(path) for path in sorted(folder.iterdir())}
            record = {"recipe": "comp_a_train", "trained_on": "rows", "settings": one.values(), "files": files}
            (folder / "training.json").write_bytes(sealed_json(record))

    def run(seeds=(0, 1)):
        data = rendered_preset("mini", recipes=["comp_a_order"], items=12, sample_rate=16_000, duration=10)
        return run_ablations(settings("contrastive:2,hard:3"), tmp_path, seeds, train=train, data=data)

    table = run()
    names = ["all", "without contrastive", "without hard", "hard before contrastive"]
    assert trained == [f"{name.replace(' ', '-')}-seed{seed}" for seed in (0, 1) for name in names]
    assert [row.cells[0].value for row in table.rows] == names * 2
    assert {row.cells[2].value for row in table.rows} == {"CompA group", "match"}
    assert all(row.cells[6].value == 0 for row in table.rows if row.cells[0].value == "all")
    assert [row.cells[-1].value for row in table.rows[:4]] == [5, 3, 2, 5]
    assert {(row.cells[10].value, row.cells[11].value) for row in table.rows} == {(2, 12)}
    text = (tmp_path / "ablations.csv").read_text("utf-8")
    assert text.splitlines()[0].startswith("training,task,measure,mean,low,high,difference")
    assert len(text.splitlines()) == 9
    assert "without hard" in (tmp_path / "ablations.md").read_text("utf-8")
    trained.clear()
    assert run() == table
    assert trained == []
    with pytest.raises(TrainingError, match="give one or more, all different"):
        run((0, 0))
