"""Order and attributes in captions: oracles, bags of words, rows that cannot be scored, what people are shown."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest

from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import load_task

from ..captioned import first_heard, first_named, meant, order_row, order_rows

NAMES = ("comp_a_order", "comp_a_attribute")


def scored(rows, clip, text, name="comp_a_order"):
    """The scores of a model that makes vectors of the clips and of the captions of a row."""
    task = load_task(name)
    outputs = Outputs(np.concatenate([clip(row) for row in rows]), np.concatenate([text(row) for row in rows]))
    return task.score(rows, outputs, task.settings(rows, {}), "cpu", False)


def test_who_knows_what_is_said_and_heard_has_everything():
    rows = order_rows()
    scores = scored(rows, first_heard, meant)
    values = scores.measures
    assert [values[name] for name in ("text", "audio", "group", "match")] == [1] * 4
    assert (values["n"], values["triplets_n"], values["ties"]) == (24, 6, 0)
    assert values["mixed_group"] == 1
    assert scores.ids == tuple(row["id"] for row in rows)
    assert {"score", "score_text", "score_audio", "score_match", "score_margin"} <= set(scores.columns)
    assert all(column.shape == (24,) for column in scores.columns.values())


def test_first_named_is_first_heard_is_right_of_forward_captions_and_wrong_of_the_others():
    for mention, expected in (("forward", 1), ("reverse", 0)):
        rows = [order_row(number, mention=mention) for number in range(8)]
        values = scored(rows, first_heard, first_named).measures
        assert (values["match"], values["group"]) == (expected, expected)


@pytest.mark.parametrize("name", NAMES)
class TestBothTasks:
    def test_a_model_is_given_the_clips_and_the_captions_in_their_order(self, name):
        inputs = load_task(name).inputs(order_row(0, captions=3), {})
        assert inputs.clips == ("audio/0", "audio/1", "audio/2")
        assert inputs.texts == ("bell, then bass", "bass, then bell", "bell with bass")

    def test_rows_that_cannot_be_scored_are_refused(self, name):
        task = load_task(name)
        with pytest.raises(TaskError, match=f"{name} has no items"):
            task.settings([], {})
        with pytest.raises(TaskError, match="item order-001 has 1 captions; 2 or 3 are needed"):
            task.settings([order_row(0), order_row(1, captions=2) | {"captions": ["a"]}], {})


def test_samples_are_clustered_by_their_sources_and_grouped_by_what_may_be_a_shortcut():
    rows = [order_row(0), order_row(1), order_row(0, id="again"), order_row(3, captions=3)]
    samples = load_task("comp_a_order").samples(rows)
    assert samples.clusters[0] == samples.clusters[2]
    assert len(set(samples.clusters)) == 3
    assert samples.groups["mention"] == ("forward", "reverse", "forward", "reverse")
    assert samples.groups["captions"] == ("2", "2", "2", "3")
    assert "origin" not in samples.groups
    np.testing.assert_allclose(samples.diversity["gap in s"], [0, 0.1, 0, 0.3])
    assert set(samples.diversity) == {"gap in s"}
    assert samples.texts[0] == {"audio/0": "bell, then bass", "audio/1": "bass, then bell"}
    first = samples.contents[0]["audio/1"]
    assert [(event["label"], event["start"], event["stop"]) for event in first] == [
        ("bass", "0.00", "5.00"),
        ("bell", "5.00", "10.00"),
    ]
    assert samples.at([3, 0]).texts == (samples.texts[3], samples.texts[0])


def test_published_items_of_which_nothing_more_is_known_are_scored_too():
    rows = [
        {"id": f"p{n}", "split": "test", "captions": row["captions"], "events": [[], []], "pair": f"p{n}"}
        for n, row in enumerate(order_rows(4, 0))
    ]
    samples = load_task("comp_a_order").samples(rows)
    assert "score_mixed_group" not in scored(order_rows(triplets=0), first_heard, meant).columns
    assert (samples.groups, samples.diversity, samples.contents) == ({}, {}, ({}, {}, {}, {}))
    noise = np.random.default_rng(0)
    assert scored(rows, lambda row: noise.normal(size=(2, 4)), lambda row: noise.normal(size=(2, 4))).ids[0] == "p0"


def test_the_figure_marks_chance_and_trivial():
    scores = scored(order_rows(), first_heard, first_named)
    (drawing,) = load_task("comp_a_order").drawings
    _, axes = plt.subplots()
    drawing.panel(axes, scores.columns, scores.measures)
    assert [patch.get_height() for patch in axes.patches] == [
        scores.measures[name] for name in ("text", "audio", "group", "match")
    ]
    heights = [line.get_segments()[0][0, 1] for line in axes.collections[1:]]
    chances, trivial_rows = heights[:4], heights[4:]
    assert chances == pytest.approx([1 / 4, 1 / 4, 1 / 6, 1 / 2])
    assert trivial_rows == pytest.approx([scores.measures[f"trivial_{name}"] for name in ("text", "audio", "group")])
    plt.close("all")
