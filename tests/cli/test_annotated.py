"""Recordings with strong labels, by all commands that take them."""

import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recorded import annotated_data
from audio_compositionality.dataset_builder.sounds.formats import FORMATS
from audio_compositionality.dataset_builder.sounds.strong_labels import open_annotated
from audio_compositionality.dataset_builder.texts.question_tasks import TASKS
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.registry import load_task

from ..dataset_builder.texts.labelled import (
    DOMESTIC_QUESTIONS,
    DOMESTIC_ROWS,
    write_audiotime,
    write_domestic,
)

FEW = ("--set", "least_clips=1", "--set", "train=0")
KINDS = load_task("polybench").info.profile.parts


@pytest.fixture
def domestic(tmp_path):
    return write_domestic(tmp_path / "in")


def error_of(run, capsys, *words):
    capsys.readouterr()
    assert run(*words) == 2
    *_, line = capsys.readouterr().err.strip().splitlines()
    return line


def test_build_writes_what_is_rendered_and_prints_the_balance(domestic, run, tmp_path, capsys):
    labels, audio = domestic
    words = ("--recipe", "polybench", "--data", labels, "--set", f"audio={audio}", "--set", "format=desed")
    assert run("build", *words, *FEW, "--out", tmp_path / "built") == 0
    printed = capsys.readouterr().out
    assert "Balance of the questions" in printed
    assert all(f"desed (test) {kind}" in printed for kind in DOMESTIC_QUESTIONS)
    built = open_data(tmp_path / "built").configuration("polybench")
    rendered = annotated_data(open_annotated(labels, audio), changes={"least_clips": 1, "train": 0.0})
    assert built.fingerprint == rendered.configuration("polybench").fingerprint
    assert list(built.rows) == list(rendered.configuration("polybench").rows)


def test_the_mixed_set_of_concurrency_is_asked_for_by_name_and_warned_of(domestic, run, tmp_path, capsys):
    labels, audio = domestic
    negatives, sound = write_audiotime(tmp_path / "audiotime")
    settings = (f"audio={audio}", f"negatives_labels={negatives}", f"negatives_audio={sound}")
    words = ("--data", labels, *(word for setting in settings for word in ("--set", setting)))
    assert run("build", *words, *FEW, "--set", "ask=concurrency", "--out", tmp_path / "mixed") == 0
    assert "recognising the data set solves them" in capsys.readouterr().err
    rows = open_data(tmp_path / "mixed").configuration("polybench").rows
    assert any(row["recording"].startswith("audiotime/") for row in rows)
    assert run("evaluate", "oracle", *words, *FEW, "--set", "ask=concurrency", "--out", tmp_path / "results") == 0
    (path,) = (tmp_path / "results").rglob("polybench.json")
    measures = load_result(path)[0].measures
    assert measures["sensitivity"] == measures["specificity"] == 1
    assert (measures["tp"], measures["tn"]) == (4, 4)


def test_embed_and_the_tasks_take_them(domestic, run, tmp_path, capsys):
    labels, audio = domestic
    words = ("--data", labels, "--set", f"audio={audio}", *FEW)
    assert run("embed", "level-statistics", *words, "--out", tmp_path / "embedded") == 0
    assert list((tmp_path / "embedded").rglob("*.safetensors"))
    message = error_of(run, capsys, "evaluate", "level-statistics", *words, "--tasks", "invariance")
    assert "the task 'invariance' cannot be scored on strong labels of recordings" in message


WRONG = {
    "Y21": (("Y21.wav", 5, 5, "Dog"), "validation.tsv:2: 'Dog' lasts from 5.0 to 5.0 s"),
    "Y22": (
        ("Y22.wav", 1, 11, "Dog"),
        "validation.tsv:3: 'Dog' lasts until 11 s, after the end of the recording at",
    ),
    "Y23": (("Y23.wav", 1, 2, "Dog"), "is in the labels, but has no file in the folder (and recording Y23)"),
    "Y24": (("Y24.wav", "x", 2, "Dog"), "validation.tsv:5: the onset is 'x'"),
}
"""Rows that are wrong, each of a recording of its own, with what is said of it."""


def write_wrong(folder):
    """The rows of the domestic recordings behind the wrong ones, of whose sound all but one have some."""
    labels, audio = write_domestic(folder, [row for row, _ in WRONG.values()] + list(DOMESTIC_ROWS))
    for name in WRONG:
        path = audio / "validation" / f"{name}.wav"
        if name == "Y23":
            path.unlink(missing_ok=True)
    return labels, audio


def test_what_is_wrong_in_labels_is_left_out_with_its_recording_and_told(run, tmp_path, capsys):
    labels, audio = write_wrong(tmp_path / "in")
    words = ("--data", labels, "--set", f"audio={audio}", "--set", "format=desed", *FEW)
    assert run("build", *words, "--out", tmp_path / "refused") == 2
    assert "--skip-invalid leaves out such recordings" in capsys.readouterr().err
    assert run("build", *words, "--skip-invalid", "--out", tmp_path / "built") == 0
    printed, notes = capsys.readouterr()
    assert "14 found, 9 read, 5 left out." in printed
    # The account is not repeated.
    assert "left out" not in notes
    assert [why for _, why in WRONG.values() if why not in printed] == []
    built = open_data(tmp_path / "built").configuration("polybench")
    clean = annotated_data(
        open_annotated(*write_domestic(tmp_path / "clean")), changes={"least_clips": 1, "train": 0.0}
    ).configuration("polybench")
    assert built.fingerprint == clean.fingerprint


def test_a_score_says_of_which_kinds_of_questions_it_is_and_why_others_are_missing(domestic, run, tmp_path, capsys):
    labels, audio = domestic
    words = ("--data", labels, "--set", f"audio={audio}", "--set", "train=0", "--tasks", "polybench")
    assert run("evaluate", "oracle", *words, "--out", tmp_path / "few") == 0
    printed = capsys.readouterr()
    reasons = [line for line in printed.err.splitlines() if line.startswith("note: no questions in the split test: ")]
    result, _ = load_result(next((tmp_path / "few").rglob("polybench.json")))
    missing = [name for name in KINDS if result.measures[name] is None]
    assert missing
    assert {reason.split(": ")[2].split("/")[0] for reason in reasons} >= set(missing)
    there = [name for name in KINDS if name not in missing]
    said = f"of {listed(there)} alone: no questions of {listed(missing)} are there"
    assert any(line.endswith(f" ({said})") for line in printed.out.splitlines())
    assert f"oracle: its scores are {said}." in " ".join(printed.out.split())


def test_the_list_of_settings_teaches(domestic, run, capsys):
    labels, _ = domestic
    assert run("build", "--data", labels, "--set", "help") == 0
    text = " ".join(capsys.readouterr().out.replace("-\n", "-").split())
    for word in ("audio", "format", "development.csv", "onset=start", "task/variant"):
        assert word in text, word
    assert all(name in text for name in (*FORMATS, *TASKS))
