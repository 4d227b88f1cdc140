"""Tasks are found; each is described whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

from audio_compositionality.tasks.base import TaskError
from audio_compositionality.tasks.metric_files import describe_metric
from audio_compositionality.tasks.registry import (
    benchmark_info,
    default_tasks,
    list_benchmarks,
    list_tasks,
    load_benchmark,
    load_task,
    load_tasks,
)


def test_a_task_by_its_name_and_the_nearest_of_an_unknown_one():
    assert load_task("a_coat").info.title == "A-COAT"
    assert [task.info.name for task in load_tasks(["a_tre", "a_coat", "a_tre"])] == ["a_tre", "a_coat"]
    with pytest.raises(TaskError, match="unknown task 'a_cot'; did you mean 'a_coat'"):
        load_task("a_cot")


def test_every_benchmark_says_what_it_is_and_another_has_its_name():
    for name in list_benchmarks():
        info = benchmark_info(name)
        assert (info.name, info.question[-1:]) == (name, "?")
        assert info.title != name
    assert benchmark_info("toys").title == "toys"


def test_benchmarks_are_groups_of_tasks():
    for name, tasks in list_benchmarks().items():
        assert [task.info.name for task in load_benchmark(name)] == tasks
        assert set(benchmark_info(name).tasks) == set(tasks)
    with pytest.raises(TaskError, match="unknown benchmark 'coats'; did you mean 'coat'"):
        load_benchmark("coats")


def test_a_task_on_request_is_listed_last_and_left_out_where_it_is_not_named(toy_on_request):
    everything = ("toy_pairs", "a_coat", "a_tre", "nothing")
    assert "toy_pairs" in [task.info.name for task in list_tasks()]
    on_request = [task.info.on_request for task in list_tasks()]
    assert on_request == sorted(on_request)
    assert {task.info.name for task in default_tasks(everything)} == {"a_coat", "a_tre"}
    # Whoever brings data of it alone has asked for it.
    assert default_tasks(["toy_pairs"]) == [toy_on_request]
    assert [task.info.name for task in load_benchmark("toy")] == ["toy_pairs"]
    assert load_tasks(["toy_pairs"]) == [toy_on_request]


@pytest.mark.parametrize("task", list_tasks(), ids=lambda task: task.info.name)
def test_every_task_describes_its_numbers_whole(task):
    names = [measure.name for measure in task.info.measures]
    assert len(set(names)) == len(names)
    assert len({measure.heading for measure in task.info.measures}) == len(names)
    assert task.info.ranks_by in names
    for measure in task.info.measures:
        assert measure.meaning
        assert measure.null is None or measure.null in names
        assert measure.trivial is None or measure.trivial in names
        assert measure.spread is None or (measure.fitted and measure.spread in names)
        assert measure.range[0] < measure.range[1]
    assert task.info.score.column is not None
    for measure, chance in task.info.trusted.items():
        assert measure in names
        assert not isinstance(chance, str) or chance in names
    with pytest.raises(TaskError, match=r"needed|has no|need at least"):
        task.settings([], {})
    for text in (task.info.title, task.info.question, task.info.warning, task.info.samples, task.info.citation):
        assert text.strip()


def test_tasks_are_listed_without_the_libraries_that_compute():
    code = (
        "import sys\n"
        "from audio_compositionality.tasks.registry import list_tasks\n"
        "assert list_tasks()\n"
        "heavy = {'torch', 'transformers', 'datasets', 'evaluate', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_metric_that_does_not_describe_itself_is_refused(tmp_path):
    path = tmp_path / "loud.py"
    path.write_text("VERSION = 1\n_CITATION = ''\n")
    with pytest.raises(TaskError, match=r"loud\.py lacks MEASURES"):
        describe_metric(path)
    path.write_text("VERSION = 1\n_CITATION = ''\nMEASURES = {'loud': dict(heading='x')}\n")
    other = tmp_path / "other.py"
    other.write_text(path.read_text())
    with pytest.raises(TaskError, match=r"other\.py: MEASURES must be a literal"):
        describe_metric(other)
    later = tmp_path / "later.py"
    later.write_text("VERSION = 1\n_CITATION = ''\nMEASURES = {}\nMEASURES |= {'loud': {'heading': 'x'}}\n")
    with pytest.raises(TaskError, match=r"later\.py: MEASURES must be a literal"):
        describe_metric(later)


def test_a_metric_that_is_not_there_is_named_with_the_place_where_it_was_looked_for(tmp_path):
    with pytest.raises(TaskError, match=r"there is no metric 'nothing': no file .*metrics.nothing\.py"):
        describe_metric("nothing")
    with pytest.raises(TaskError, match="there is no metric 'gone'"):
        describe_metric(tmp_path / "gone.py")
