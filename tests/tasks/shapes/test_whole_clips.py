"""Retrieval and zero-shot classification: what is asked, who is right, and rows that cannot be scored."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.tasks.base import Outputs, TaskError
from audio_compositionality.tasks.registry import load_task

LABELS = ("bell", "bass", "reed", "pad", "organ", "brass")


def vector(text):
    """A fixed random vector of a text."""
    return np.random.default_rng(list(text.encode())).normal(size=16)


def captioned(count=12, captions=2):
    return [
        {
            "id": f"c{n}",
            "split": "test",
            "captions": [f"sound {n} said {k}" for k in range(captions + n % 2)],
            "group": f"voice {n // 2}",
        }
        for n in range(count)
    ]


def labelled(several=False, count=12):
    rows = []
    for n in range(count):
        labels = [LABELS[n % 6], *([LABELS[(n + 1) % 6]] if several else [])]
        prompts = [[f"a sound of {label}", f"{label} is heard"] for label in labels]
        rows.append({"id": f"c{n}", "split": "test", "labels": labels, "prompts": prompts, "group": ""})
    return rows


def scored(name, rows, clip, text):
    task = load_task(name)
    texts = [one for row in rows for one in task.inputs(row, {}).texts]
    outputs = Outputs(np.stack([clip(row) for row in rows]), np.stack([text(one) for one in texts]))
    return task.score(rows, outputs, task.settings(rows, {}), "cpu", False)


def test_who_knows_finds_all_and_who_takes_all_for_one_is_at_chance():
    rows = captioned()
    right = scored(
        "audio_text_retrieval", rows, lambda row: vector(row["id"][1:]), lambda text: vector(text.split()[1])
    ).measures
    assert [right[name] for name in ("text_to_audio_r1", "audio_to_text_r1", "audio_to_text_map10")] == [1, 1, 1]
    assert (right["n"], right["texts"]) == (12, 30)
    constant = scored("audio_text_retrieval", rows, lambda row: np.ones(4), lambda text: np.ones(4)).measures
    for name in ("text_to_audio_r1", "audio_to_text_r1", "text_to_audio_r10"):
        assert constant[name] == pytest.approx(constant[f"chance_{name}"])
    assert constant["text_to_audio_r1"] == pytest.approx(1 / 12)


@pytest.mark.parametrize("several", [False, True])
def test_who_knows_the_classes_has_all_of_them(several):
    rows = labelled(several)

    def clip(row):
        return sum(vector(label) for label in row["labels"])

    def text(prompt):
        return vector(next(label for label in LABELS if label in prompt))

    scores = scored("zero_shot_audio", rows, clip, text)
    assert scores.measures["top1"] == 1
    assert scores.measures["classes"] == 6
    assert (scores.measures["macro_recall"] is None) == several
    assert ("score_macro_recall" in scores.columns) == (not several)
    assert set(scores.measures) == {measure.name for measure in load_task("zero_shot_audio").info.measures}
    deaf = scored("zero_shot_audio", rows, lambda row: np.ones(16), lambda prompt: np.ones(16)).measures
    assert deaf["top1"] == pytest.approx(deaf["chance_top1"])


def test_a_model_is_given_each_clip_with_what_is_said_of_it():
    assert load_task("audio_text_retrieval").inputs(captioned()[1], {}).texts == tuple(captioned()[1]["captions"])
    inputs = load_task("zero_shot_audio").inputs(labelled(several=True)[0], {})
    assert (inputs.clips, inputs.texts[0], len(inputs.texts)) == (("audio",), "a sound of bell", 4)


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("audio_text_retrieval", captioned(1), "has 1 clips; at least 2 are needed"),
        ("audio_text_retrieval", [*captioned(2), {"id": "x", "captions": []}], "the clip x has no caption"),
        ("zero_shot_audio", [], "has 0 class; at least 2 are needed"),
        ("zero_shot_audio", labelled(count=1), "has 1 class alone, 'bell'; at least 2 are needed"),
    ],
)
def test_rows_that_cannot_be_scored_are_refused(name, rows, message):
    with pytest.raises(TaskError, match=message):
        load_task(name).settings(rows, {})


def test_clips_of_a_group_belong_together_and_what_is_said_of_them_stands_beside():
    samples = load_task("audio_text_retrieval").samples(captioned(4))
    assert samples.clusters.tolist() == [0, 0, 1, 1]
    assert samples.clustered_by == "the group of recordings"
    assert samples.texts[0] == {"audio": "sound 0 said 0 / sound 0 said 1"}
    alone = load_task("zero_shot_audio").samples(labelled())
    assert (len(set(alone.clusters)), alone.clustered_by) == (12, "")
    assert alone.texts[1] == {"audio": "bass"}
