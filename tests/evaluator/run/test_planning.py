"""Which models stand beside those that are named, by what they can do and what tasks want."""

import pytest

from audio_compositionality.encoders.controls import CONTROLS
from audio_compositionality.encoders.loading.names import list_models
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.loading.twins import TWINS
from audio_compositionality.evaluator.run.planning import Named, planned
from audio_compositionality.tasks.registry import list_tasks, load_task

OFFLINE = (
    *("random", "first", "longest", "majority", "blind"),
    *("statistics", "time-blind", "order-blind", "present", "oracle", "cascade"),
)


def beside(names, tasks, *, is_judged=True):
    """Names of the baselines, and of what stands beside each model, where the tasks are named."""
    plan = planned([Named(name) for name in names], tasks, is_named=True, is_judged=is_judged)
    assert plan.tasks == tuple(tasks)
    assert plan.names[: len(plan.baselines)] == plan.baselines
    return plan.baselines, dict(plan.controls)


def test_tasks_that_are_named_bring_their_controls():
    task = load_task("a_coat_instances")
    usual, twins = beside(["whisper-tiny.en"], [load_task("a_coat")], is_judged=False)
    assert twins == {"whisper-tiny.en": ("untrained:whisper-tiny.en",)}
    baselines, twins = beside(["whisper-tiny.en"], [task])
    assert baselines == (*usual, "mfcc-statistics", "level-statistics")
    assert twins == {"whisper-tiny.en": ("untrained:whisper-tiny.en", "shuffled:whisper-tiny.en")}
    models = {model.name for model in list_models()}
    for control in (control for task in list_tasks() for control in task.info.controls):
        assert control in models or control.removesuffix(":") in {*TWINS, *CONTROLS}, control


def test_beside_tasks_of_captions_stand_models_that_read():
    tasks = [load_task("comp_a_order"), load_task("comp_a_attribute")]
    assert beside([], tasks) == (("random", "bag-of-words", "tiny-clap"), {})
    _, controls = beside(["laion-clap", "sorted-words:laion-clap"], tasks)
    assert controls == {
        "laion-clap": ("untrained:laion-clap", "reversed-audio:laion-clap"),
        "sorted-words:laion-clap": (),
    }
    both, _ = beside([], [*tasks, load_task("a_coat")])
    assert {"log-mel-statistics", "downsample", "random", "bag-of-words", "tiny-clap"} <= set(both)


def test_beside_questions_stand_models_that_answer_and_no_others():
    task = load_task("polybench")
    assert beside([], [task]) == (OFFLINE, {})
    encoders, _ = beside([], [load_task("a_coat")])
    assert not set(encoders) & set(OFFLINE[1:])
    both, _ = beside([], [task, load_task("a_coat")])
    assert {"downsample", "log-mel-statistics", *OFFLINE} <= set(both)


@pytest.mark.parametrize(
    ("name", "prefixes"),
    [
        ("cascade", ["without-audio:", "shuffled-audio:"]),
        ("first", ["without-audio:", "shuffled-audio:", "events-as-text:"]),
        ("oracle", []),
        ("other-audio:first", []),
    ],
)
def test_who_learns_or_reads_labels_is_not_told_what_is_heard(name, prefixes):
    named = Named(name, (load_model(name),))
    every = ("without-audio:", "shuffled-audio:", "events-as-text:")
    assert [prefix for prefix in every if named.takes(prefix)] == prefixes


def test_a_plain_encoder_brings_no_one_who_answers():
    tasks = [load_task("a_coat"), load_task("polybench"), load_task("comp_a_order")]
    plan = planned([Named("whisper-tiny.en")], tasks, is_named=False, is_judged=True)
    assert [task.info.name for task in plan.tasks] == ["a_coat"]
    assert not set(plan.names) & set(OFFLINE[1:])
