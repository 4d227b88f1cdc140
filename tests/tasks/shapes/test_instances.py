"""Tasks across instances, of binding and of quadruples of recordings: linear, constant and perfect encoders."""

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import to_waveform
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import load_task

from ..described import check_described

NAMES = ("a_coat_instances", "binding", "a_coat_recordings")

SHORT = {"duration": 0.5, "sample_rate": 8_000}

SMALL = {
    "a_coat_instances": {**SHORT, "blocks": 6, "classes": 4},
    "binding": {**SHORT, "trials": 12},
    "a_coat_recordings": {**SHORT, "quadruples": 12},
}


@pytest.fixture(scope="module")
def small():
    """A few rows of each recipe on our timbres, and the waveforms of their clips."""
    data = {}
    for name in NAMES:
        recipe = load_recipe(name)
        rendering = recipe.render(recipe.presets["mini"].changed(**SMALL[name]))
        clips = [clip for index in range(len(rendering.rows)) for clip in rendering.clips(index)]
        data[name] = (rendering.rows, to_waveform(np.stack(clips)))
    return data


def scored(name, small, embed):
    """The scores of an encoder that makes [clips, dim] of waveforms [clips, samples]."""
    task = load_task(name)
    rows, waveforms = small[name]
    settings = task.settings(rows, {})
    return task, task.score(rows, Outputs(clips=embed(waveforms)), settings, "cpu", False)


def downsample(waveforms):
    return waveforms[:, ::16].astype(np.float64)


def constant(waveforms):
    return np.full((len(waveforms), 8), 3.7)


def log_spectra(waveforms):
    return np.log(
        np.abs(np.fft.rfft(waveforms)).reshape(len(waveforms), -1)[:, :2000].reshape(len(waveforms), 50, -1).mean(2)
    )


@pytest.mark.parametrize("name", NAMES)
class TestEveryTask:
    def test_gives_what_it_describes(self, name, small):
        for embed in (constant, log_spectra):
            check_described(*scored(name, small, embed), small[name][0])
        samples = load_task(name).samples(small[name][0])
        assert len(samples.contents) == len(samples.clusters) == len(small[name][0])
        assert all(thing["label"] for one in samples.contents for things in one.values() for thing in things)

    def test_asks_for_all_clips(self, name, small):
        rows, waveforms = small[name]
        task, recipe = load_task(name), load_recipe(name)
        assert all(tuple(task.inputs(row, {}).clips) == tuple(recipe.clip_names(row)) for row in rows)
        columns = {clip.partition("/")[0] for row in rows for clip in task.inputs(row, {}).clips}
        assert columns <= set(task.info.captions)
        assert len(waveforms) == sum(len(task.inputs(row, {}).clips) for row in rows)


class TestAcrossInstances:
    def test_to_a_linear_encoder_alone_part_and_scene_are_one(self, small):
        _, scores = scored("a_coat_instances", small, downsample)
        for kind in ("top1", "pairwise"):
            alone, part, scene = (scores.measures[f"{where}{kind}"] for where in ("alone_", "part_", ""))
            assert part == pytest.approx(alone, abs=1e-6)
            assert scene == pytest.approx(alone, abs=1e-6)

    def test_blocks_of_different_sizes_are_refused(self, small):
        rows, _ = small["a_coat_instances"]
        shorter = {**rows[1], "labels": rows[1]["labels"][:3]}
        with pytest.raises(
            TaskError, match=r"same number of classes in each block; a_coat_instances-00000 has 4, .* has 3"
        ):
            load_task("a_coat_instances").settings([rows[0], shorter], {})


class TestBinding:
    def test_a_sum_of_parts_is_at_chance_and_who_binds_is_right(self, small):
        rows, _ = small["binding"]
        rng = np.random.default_rng(0)
        words, pairs = {}, {}

        def of(table, key):
            return table.setdefault(key, rng.normal(size=16))

        def scene(bound, *cells):
            return sum(of(words, c[0]) + of(words, c[1]) + (of(pairs, c) if bound else 0) for c in cells)

        def embed(bound):
            vectors = []
            for row in rows:
                (w, other), (u, v) = row["labels"], row["conditions"]
                x, y = scene(bound, (u, w), (v, other)), scene(bound, (u, other), (v, w))
                vectors += [x, y, x, y]
            return np.array(vectors)

        assert scored("binding", small, lambda _: embed(False))[1].measures["binding"] == 0.5
        assert scored("binding", small, lambda _: embed(True))[1].measures["binding"] == 1

    def test_other_conditions_are_scored_where_there_are_some(self, small):
        rows, _ = small["binding"]
        task = load_task("binding")
        across = [{**row, "conditions_across": ["a", "b"] if n % 2 else []} for n, row in enumerate(rows)]
        rng = np.random.default_rng(0)
        clips = []
        for row in across:
            scene, step = rng.normal(size=(2, 8))
            # X1, Y1; X2 and Y2 the wrong way round; X3 and Y3 the right one.
            signs = (1, -1, -1, 1, *((1, -1) if row["conditions_across"] else ()))
            clips += [scene + sign * step for sign in signs]
        scores = task.score(across, Outputs(clips=np.array(clips)), {}, "cpu", False)
        assert (scores.measures["binding"], scores.measures["across"]) == (0, 1)
        assert "score_across" not in scores.columns
        every = [row for row in across if row["conditions_across"]]
        wanted = np.concatenate(
            [np.full(len(task.inputs(row, {}).clips), bool(row["conditions_across"])) for row in across]
        )
        scores = task.score(every, Outputs(clips=np.array(clips)[wanted]), {}, "cpu", False)
        assert scores.measures["across"] == scores.columns["score_across"].mean() == 1


class TestQuadruplesOfRecordings:
    def test_to_a_linear_encoder_both_steps_are_one(self, small):
        _, scores = scored("a_coat_recordings", small, downsample)
        assert scores.measures["a_coat"] == pytest.approx(1, abs=1e-6)
        assert scores.measures["top1"] == 1
        assert scores.measures["matched_null"] is not None

    def test_quadruples_with_the_same_recordings_added_are_not_independent(self, small):
        rows, _ = small["a_coat_recordings"]
        task = load_task("a_coat_recordings")
        twice = [*rows, {**rows[0], "id": "again"}]
        clusters = task.samples(twice).clusters
        assert clusters[-1] == clusters[0]
        assert set(task.samples(rows).groups["the number of sources"]) <= set("3456")
        held = task.samples(rows).held_fixed["number of sources of T"]
        assert held.tolist() == [len(row["metadata"]["T"]) for row in rows]
