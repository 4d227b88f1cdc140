"""What is known of scenes beside their scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audio_compositionality.tasks.registry import load_task


def source(timbre, pitch="p0", rate="r0", amplitude="a0"):
    return {"timbre_label": timbre, "pitch_label": pitch, "rate_label": rate, "amplitude_label": amplitude}


def quadruple(name, a, c, t, **more):
    return {"id": name, "split": "test", "metadata": {"A": a, "C": c, "T": t}, **more}


QUADRUPLES = [
    quadruple("q0", [source("x")], [source("y")], [source("z"), source("x", "p1")]),
    quadruple("q1", [source("x"), source("y")], [source("y"), source("x")], [source("x", "p1"), source("z")]),
    quadruple("q2", [source("x", "p1")], [source("z", "p2"), source("z", "p3")], [source("z")]),
]


@pytest.fixture
def samples():
    return load_task("a_coat").samples(QUADRUPLES)


def test_quadruples_with_the_same_added_sources_are_a_cluster_in_any_order(samples):
    assert samples.ids == ("q0", "q1", "q2")
    assert samples.clusters.tolist() == [0, 0, 1]
    assert samples.clustered_by == "the sets of added sources T"


def test_numbers_of_sources(samples):
    assert {name: values.tolist() for name, values in samples.held_fixed.items()} == {
        "number of sources of A": [1, 2, 1],
        "number of sources of C": [1, 2, 2],
        "number of sources of T": [2, 2, 1],
    }
    assert samples.groups["the number of sources"] == ("4", "6", "4")
    assert samples.groups["|T|, the number of sources that are added"] == ("2", "2", "1")


def test_attributes_that_differ_between_a_and_c(samples):
    differing = samples.groups["the attributes whose classes differ between A and C"]
    assert differing == ("timbre", "none", "timbre + pitch + rate + amplitude")


def test_entropy_worked_by_hand(samples):
    # Three timbres: log 3 is the unit. Two sources that differ have entropy log 2 / log 3.
    entropy = samples.diversity
    unit = math.log(2) / math.log(3)
    np.testing.assert_allclose(entropy["timbre"], [unit, 3 * unit, 0])
    np.testing.assert_allclose(entropy["rate"], [0, 0, 0])
    parts = [entropy[name] for name in ("timbre", "pitch", "rate", "amplitude")]
    assert next(iter(entropy)) == "total"
    np.testing.assert_allclose(entropy["total"], sum(parts))


@pytest.mark.parametrize("name", ["a_coat", "a_tre"])
def test_entropies_from_labels_are_those_that_the_rows_state(small_data, name):
    # Of authors whose rows state none, they come from the labels.
    task = load_task(name)
    rows = small_data.configuration(task.info.recipe).rows
    stated = task.samples(rows).diversity
    computed = task.samples([{**row, "entropy": None} for row in rows]).diversity
    for attribute, values in stated.items():
        np.testing.assert_allclose(computed[attribute], values, atol=1e-12)


def test_scenes_are_those_of_the_test_split(small_data):
    samples = load_task("a_tre").samples(small_data.configuration("a_tre").rows)
    assert len(samples.ids) == 8
    assert all(id.startswith("a_tre-test-") for id in samples.ids)
    assert samples.clusters.tolist() == list(range(8))
    assert samples.held_fixed["number of sources"].tolist() == [len(row["metadata"]) for row in samples.rows]
    assert [len(contents["scene"]) for contents in samples.contents] == [len(row["metadata"]) for row in samples.rows]
