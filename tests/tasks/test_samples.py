"""What is known of samples beside their scores."""

from __future__ import annotations

import math

import numpy as np
import pytest

from audio_compositionality.tasks.samples import describe_samples


def source(timbre, pitch="p0", rate="r0", amplitude="a0"):
    return {"timbre_label": timbre, "pitch_label": pitch, "rate_label": rate, "amplitude_label": amplitude}


def quadruple(name, a, c, t, **more):
    return {"id": name, "split": "test", "metadata": {"A": a, "C": c, "T": t}, **more}


QUADRUPLES = [
    quadruple("q0", [source("x")], [source("y")], [source("z"), source("x", "p1")]),
    quadruple("q1", [source("x"), source("y")], [source("y"), source("x")], [source("x", "p1"), source("z")]),
    quadruple("q2", [source("x", "p1")], [source("z", "p2"), source("z", "p3")], [source("z")]),
]


def test_quadruples_with_the_same_added_sources_are_a_cluster_in_any_order():
    samples = describe_samples("a_coat", QUADRUPLES)
    assert samples.ids == ("q0", "q1", "q2")
    assert samples.clusters.tolist() == [0, 0, 1]


def test_numbers_of_sources():
    counts = describe_samples("a_coat", QUADRUPLES).counts
    assert {name: values.tolist() for name, values in counts.items()} == {
        "A": [1, 2, 1],
        "C": [1, 2, 2],
        "T": [2, 2, 1],
        "sources": [4, 6, 4],
    }


def test_attributes_that_differ_between_a_and_c():
    differing = describe_samples("a_coat", QUADRUPLES).differing
    assert differing == ("timbre", "none", "timbre + pitch + rate + amplitude")


def test_entropy_worked_by_hand():
    # Three timbres: log 3 is the unit. Two sources that differ have entropy log 2 / log 3.
    entropy = describe_samples("a_coat", QUADRUPLES).entropy
    unit = math.log(2) / math.log(3)
    np.testing.assert_allclose(entropy["timbre"], [unit, 3 * unit, 0])
    np.testing.assert_allclose(entropy["rate"], [0, 0, 0])
    np.testing.assert_allclose(
        entropy["total"], sum(entropy[name] for name in ("timbre", "pitch", "rate", "amplitude"))
    )


@pytest.mark.parametrize("task", ["a_coat", "a_tre"])
def test_entropies_from_labels_are_those_that_the_rows_state(small_benchmark, task):
    # Of authors whose rows state none, they come from the labels.
    rows = small_benchmark.rows(task)
    stated = describe_samples(task, rows)
    computed = describe_samples(task, [{**row, "entropy": None} for row in rows])
    for name, values in stated.entropy.items():
        np.testing.assert_allclose(computed.entropy[name], values, atol=1e-12)


def test_scenes_are_those_of_the_test_split(small_benchmark):
    samples = describe_samples("a_tre", small_benchmark.rows("a_tre"))
    assert len(samples.ids) == 8
    assert all(id.startswith("a_tre-test-") for id in samples.ids)
    assert samples.clusters.tolist() == list(range(8))
    assert samples.differing == ()
    assert samples.counts["sources"].tolist() == [len(row["metadata"]) for row in samples.rows]


def test_some_of_the_samples():
    samples = describe_samples("a_coat", QUADRUPLES).at([2, 0])
    assert samples.ids == ("q2", "q0")
    assert samples.clusters.tolist() == [1, 0]
    assert samples.differing == ("timbre + pitch + rate + amplitude", "timbre")
    assert samples.counts["A"].tolist() == [1, 1]
