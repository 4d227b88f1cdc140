"""Recordings of the user's own, by all commands that take them."""

import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.evaluator.compare.comparison import compare_results
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.tasks.registry import list_tasks

from ..dataset_builder.sounds.miniatures import write_miniature
from ..dataset_builder.sounds.sounds import write, write_labelled

LOG_MEL = "log-mel-statistics"

ON_TRANSFORMS = [
    task.info.name
    for task in list_tasks()
    # Sounds of recordings cannot be moved in time.
    if task.info.recipe == "transforms" and not task.info.needs_scenes
]


@pytest.fixture
def sounds(tmp_path):
    return write_labelled(tmp_path / "sounds", 8)


def evaluated(run, tmp_path, *words):
    """The results of `evaluate`, by task."""
    assert run("evaluate", LOG_MEL, *words, "--out", tmp_path / "results") == 0
    return {path.stem: load_result(path)[0] for path in (tmp_path / "results").rglob("*.json")}


@pytest.mark.slow
def test_captions_labels_and_prompts_are_built(tmp_path, run):
    lines = ["file_name,kind,said_1,said_2"]
    for number, kind in enumerate(("dog;rain", "rain", "wind", "dog")):
        write(tmp_path / "sounds" / f"{number}.wav", seed=number)
        lines.append(f"{number}.wav,{kind},a {number},b {number}")
    (tmp_path / "sounds" / "metadata.csv").write_text("\n".join(lines) + "\n")
    words = ("--data", tmp_path / "sounds", "--out", tmp_path / "built", "--set", "label=kind", "--set", "separator=;")
    assert run("build", *words, "--set", "captions=said_1,said_2", "--set", "prompts=plain") == 0
    data = open_data(tmp_path / "built")
    captions = {frozenset(row["captions"]) for row in data.configuration("audio_text_retrieval").rows}
    assert captions == {frozenset((f"a {number}", f"b {number}")) for number in range(4)}
    rows = data.configuration("zero_shot_audio").rows
    assert sorted(tuple(row["labels"]) for row in rows) == [("dog",), ("dog", "rain"), ("rain",), ("wind",)]
    assert {text for row in rows for of_label in row["prompts"] for text in of_label} == {"dog", "rain", "wind"}


@pytest.mark.slow
def test_what_is_built_of_recordings_opens_their_results_again(sounds, run, tmp_path, capsys):
    words = ("--data", sounds, "--set", "transforms=gain")
    evaluated(run, tmp_path, *words, "--tasks", "invariance")
    (unknown,) = compare_results([tmp_path / "results"])
    assert unknown.samples is None
    assert unknown.missing == (
        f"recordings of {sounds} cannot be opened by name: build them into a folder and give it with --data"
    )
    assert run("report", tmp_path / "results", "--out", tmp_path / "unknown.html") == 0
    capsys.readouterr()
    # Thousands of clips for training would be built as well.
    assert run("build", *words, "--recipes", "transforms", "--out", tmp_path / "built") == 0
    assert 'load_dataset("built", "transforms")' in capsys.readouterr().out
    data = open_data(tmp_path / "built")
    (opened,) = compare_results([tmp_path / "results"], data=tmp_path / "built")
    assert opened.fingerprint == data.configuration("transforms").fingerprint
    assert opened.samples is not None
    assert run("report", tmp_path / "results", "--data", tmp_path / "built", "--out", tmp_path / "known.html") == 0
    pages = [(tmp_path / f"{name}.html").read_text("utf-8") for name in ("unknown", "known")]
    assert ["<audio" in page for page in pages] == [False, True]
    evaluated(run, tmp_path, "--data", tmp_path / "built", "--tasks", "invariance")


def test_without_labels_the_tasks_that_need_none_are_left(sounds, run, tmp_path, capsys):
    results = evaluated(run, tmp_path, "--data", sounds / "dog", "--set", "transforms=gain")
    assert set(results) == set(ON_TRANSFORMS) - {"transform_disentanglement"}
    printed = capsys.readouterr().err
    assert "note: transform_disentanglement is left out: " in printed
    assert "onset_invariance" not in printed


@pytest.mark.slow
def test_a_fresh_draw_of_a_preset_is_data_of_its_own_and_is_found_again(run, tmp_path, capsys):
    few = ("--set", "quadruples=6", "--set", "quadruple_candidates=12")
    for out, words in (("zero", few), ("seven", (*few, "--set", "seed=7"))):
        assert run("evaluate", LOG_MEL, "--tasks", "a_coat", *words, "--out", tmp_path / out) == 0
    results = [load_result(next((tmp_path / out).rglob("a_coat.json")))[0] for out in ("zero", "seven")]
    assert results[0].fingerprint != results[1].fingerprint
    assert results[1].dataset == "mini with quadruples=6, quadruple_candidates=12, seed=7"
    capsys.readouterr()
    # The report opens the data of its results: it tells of their samples.
    assert run("report", tmp_path / "seven", "--out", tmp_path / "page.html") == 0
    page = (tmp_path / "page.html").read_text()
    assert "on the preset “mini with quadruples=6, quadruple_candidates=12, seed=7”" in page
    assert "are neither a preset nor a folder here" not in page
    assert open_data(results[1].dataset).configuration("a_coat").fingerprint == results[1].fingerprint


def test_what_has_no_labels_says_where_they_come_from(sounds, run, tmp_path, capsys):
    lines = [f"dog/{number}.wav,dog" for number in range(8)]
    (sounds / "metadata.csv").write_text("\n".join(["file_name,animal", *lines]) + "\n")
    words = ("build", "--data", sounds, "--set", "transforms=gain", "--out", tmp_path / "built")
    assert run(*words) == 0
    without_classes, without_captions, without_questions, without_prompts = capsys.readouterr().err.splitlines()
    assert without_classes == (
        "note: a_coat_instances, a_coat_recordings, binding, comp_a_attribute, comp_a_order, composed_retrieval and 6 "
        f"more are left out: {sounds} has no labels; scenes are mixed from classes: names or whole numbers; give "
        "a column of metadata.csv with --set label=COLUMN: animal"
    )
    assert without_captions.startswith("note: audio_text_retrieval is left out: ")
    assert without_questions.startswith(
        f"note: polybench, polybench_apart and polybench_atoms are left out: {sounds} has no labels; questions are"
    )
    assert "has no labels; prompts are made from classes: " in without_prompts
    assert without_prompts.endswith("; give a column of metadata.csv with --set label=COLUMN: animal")


class TestNames:
    """Data sets and sounds that need no path."""

    def test_of_a_data_set_show_its_terms(self, run, tmp_path, capsys, without_torchcodec):
        write_miniature("vocalsound", tmp_path / "copy")
        words = ("--data", f"vocalsound={tmp_path / 'copy'}", "--recipes", "a_coat_instances")
        assert run("build", *words, "--set", "classes=2", "--out", tmp_path / "built") == 0
        message = capsys.readouterr().err
        assert message.startswith(
            "note: VocalSound (https://github.com/YuanGongND/vocalsound) is licensed CC BY-SA 4.0; "
        )
        rows = open_data(tmp_path / "built").configuration("a_coat_instances").rows
        assert {(row["domain"], len(row["labels"]), len(row["context_a"])) for row in rows} == {("vocal sounds", 2, 1)}
        assert "license" not in (tmp_path / "built" / "README.md").read_text("utf-8")
