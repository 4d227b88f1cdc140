"""Recordings with strong labels, by all commands that take them."""

import json

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recorded import annotated_data
from audio_compositionality.dataset_builder.sounds.formats import list_formats
from audio_compositionality.dataset_builder.sounds.strong_labels import open_annotated
from audio_compositionality.dataset_builder.texts.question_tasks import question_tasks
from audio_compositionality.evaluator.results.result import load_result
from audio_compositionality.support.text import listed
from audio_compositionality.tasks.registry import load_task

from ..dataset_builder.texts.labelled import (
    DOMESTIC_QUESTIONS,
    DOMESTIC_ROWS,
    STREET_ROWS,
    write_audiotime,
    write_domestic,
    write_soft,
    write_streets,
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
    words = (
        "--data",
        labels,
        "--set",
        f"audio={audio}",
        "--set",
        f"negatives_labels={negatives}",
        "--set",
        f"negatives_audio={sound}",
    )
    assert run("build", *words, *FEW, "--set", "ask=concurrency", "--out", tmp_path / "mixed") == 0
    assert "recognising the data set solves these questions" in capsys.readouterr().err
    rows = open_data(tmp_path / "mixed").configuration("polybench").rows
    assert any(row["recording"].startswith("audiotime/") for row in rows)
    assert run("evaluate", "oracle", *words, *FEW, "--set", "ask=concurrency", "--out", tmp_path / "results") == 0
    (path,) = (tmp_path / "results").rglob("polybench.json")
    measures = load_result(path)[0].measures
    assert measures["sensitivity"] == measures["specificity"] == 1
    assert (measures["tp"], measures["tn"]) == (4, 4)
    assert error_of(run, capsys, "build", *words[:6], "--out", tmp_path / "x").endswith("give both or none")
    assert (
        "negatives_audio does not apply to 'mini', which is the preset mini; it applies to strong labels"
        in error_of(run, capsys, "build", "--set", f"negatives_audio={sound}")
    )


def test_build_says_what_cannot_be_asked(domestic, run, tmp_path, capsys):
    labels, audio = domestic
    assert (
        run("build", "--data", labels, "--set", f"audio={audio}", "--set", "train=0", "--out", tmp_path / "built") == 0
    )
    assert "note: no questions in the split test: counting/kinds needs two counts that 10" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("write", "details", "questions"),
    [
        (write_domestic, ("--set", "format=table", "--set", "columns"), 2),
        (write_domestic, ("--set", "ask=duration"), 2),
        (write_streets, ("--set", "ask=concurrency"), 2),
        (write_streets, ("--set", "ask=concurrency", "--set", "window=50", "--set", "resolution=0.5"), 0),
        (write_soft, ("--set", "ask=concurrency", "--set", "seed=3"), 2),
    ],
)
def test_what_readers_need_can_be_said(run, tmp_path, write, details, questions, capsys):
    labels, audio = write(tmp_path / "in")
    if "columns" in details:
        text = labels.read_text().replace("event_label", "class").replace("onset", "from")
        labels.write_text(text)
        columns = "columns=recording=filename,onset=from,offset=offset,label=class"
        durations = tmp_path / "in" / "validation_durations.tsv"
        details = (*details[:-1], columns, "--set", f"durations={durations}", "--set", "ask=duration")
    words = ("build", "--data", labels, "--set", f"audio={audio}", *details, *FEW, "--out", tmp_path / "built")
    if questions:
        assert run(*words) == 0
        assert len(open_data(tmp_path / "built").configuration("polybench").rows) == questions
    else:
        # In one window of the whole recording nobody is alone.
        assert "concurrency/anchor needs a label that plainly overlaps" in error_of(run, capsys, *words)


def test_several_files_of_labels(run, tmp_path, domestic):
    labels, audio = domestic
    header, *lines = labels.read_text().splitlines(keepends=True)
    parts = [labels.with_name(f"{name}.tsv") for name in ("one", "two")]
    for part, of_part in zip(parts, (lines[:8], lines[8:]), strict=True):
        part.write_text(header + "".join(of_part))
    words = (
        "--set",
        f"audio={audio}",
        "--set",
        "format=desed",
        "--set",
        f"durations={labels.with_name('validation_durations.tsv')}",
        *FEW,
    )
    assert run("build", "--data", labels, *words, "--out", tmp_path / "whole") == 0
    one, two = parts
    assert run("build", "--data", one, "--set", f"labels={two}", *words, "--out", tmp_path / "parts") == 0
    whole, of_parts = (open_data(tmp_path / name).configuration("polybench") for name in ("whole", "parts"))
    assert whole.fingerprint == of_parts.fingerprint


def test_embed_and_the_tasks_take_them(domestic, run, tmp_path, capsys):
    labels, audio = domestic
    words = ("--data", labels, "--set", f"audio={audio}", *FEW)
    assert run("embed", "level-statistics", *words, "--out", tmp_path / "embedded") == 0
    assert list((tmp_path / "embedded").rglob("*.safetensors"))
    message = error_of(run, capsys, "evaluate", "level-statistics", *words, "--tasks", "polybench")
    assert "is no audio language model, which the task polybench needs" in message
    message = error_of(run, capsys, "evaluate", "level-statistics", *words, "--tasks", "invariance")
    assert "the task 'invariance' cannot be scored on strong labels of recordings" in message


def test_who_is_told_the_labels_answers_all_that_is_asked(domestic, run, tmp_path):
    labels, audio = domestic
    words = ("--data", labels, "--set", f"audio={audio}", *FEW, "--tasks", "polybench", "--out", tmp_path / "results")
    assert run("evaluate", "oracle", *words) == 0
    (path,) = (tmp_path / "results").rglob("polybench.json")
    result, _ = load_result(path)
    assert result.measures["accuracy"] == 1.0
    assert result.dataset == f"recordings of {audio} with desed labels"


def line(*fields):
    return ("Y01.wav", *fields)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (line(5, 5, "Dog"), "validation.tsv:2: 'Dog' lasts from 5.0 to 5.0 s; expected is 0 ≤ onset < offset"),
        (line(1, 11, "Dog"), "validation.tsv:2: 'Dog' lasts until 11 s, after the end of the recording at 10 s"),
        (line("nan", 1, "Dog"), "validation.tsv:2: the onset is 'nan'; expected are seconds"),
    ],
)
def test_wrong_labels_are_told_with_file_and_line(run, tmp_path, capsys, row, message):
    labels, audio = write_domestic(tmp_path, [row, *DOMESTIC_ROWS])
    assert message in error_of(
        run, capsys, "build", "--data", labels, "--set", f"audio={audio}", "--set", "format=desed"
    )


def test_missing_sound_is_told(domestic, run, capsys):
    labels, audio = domestic
    (audio / "validation" / "Y05.wav").unlink()
    message = error_of(run, capsys, "build", "--data", labels, "--set", f"audio={audio}")
    assert "has no sound of 1 of 9 recordings: Y05" in message


WRONG = {
    "Y21": (("Y21.wav", 5, 5, "Dog"), "validation.tsv:2: 'Dog' lasts from 5.0 to 5.0 s"),
    "Y22": (
        ("Y22.wav", 1, 11, "Dog"),
        "validation.tsv:3: 'Dog' lasts until 11 s, after the end of the recording at",
    ),
    "Y23": (("Y23.wav", 1, 2, "Dog"), "has no sound of it"),
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
    message = capsys.readouterr() and run("build", *words, "--out", tmp_path / "refused")
    assert message == 2
    assert run("build", *words, "--skip-invalid", "--out", tmp_path / "built") == 0
    printed = capsys.readouterr().err
    assert "note: 4 recordings of " in printed
    assert " are left out: Y21 (validation.tsv:2:" in printed
    assert all(why in printed for _, why in WRONG.values())
    built = open_data(tmp_path / "built").configuration("polybench")
    clean = annotated_data(
        open_annotated(*write_domestic(tmp_path / "clean")), changes={"least_clips": 1, "train": 0.0}
    ).configuration("polybench")
    assert built.fingerprint == clean.fingerprint


def test_a_recording_of_which_one_row_is_wrong_is_left_out_whole(run, tmp_path, capsys):
    """Of what is heard in it, one thing is not known: no question about it could be trusted."""
    labels, audio = write_domestic(tmp_path / "in", [("Y01.wav", 5, 5, "Dog"), *DOMESTIC_ROWS])
    recordings = open_annotated(labels, audio, "desed", skip_invalid=True)
    assert list(recordings.left_out) == ["Y01"]
    assert "Y01" not in {annotation.recording for annotation in recordings.annotations}
    words = ("--data", labels, "--set", f"audio={audio}", "--set", "format=desed", *FEW)
    assert "--skip-invalid leaves out such recordings" in error_of(run, capsys, "build", *words)


def test_sound_that_cannot_be_used_is_left_out(tmp_path):
    labels, audio = write_domestic(tmp_path / "in")
    (audio / "validation" / "Y05.wav").unlink()
    (audio / "validation" / "Y03.wav").write_bytes(b"RIFF")
    recordings = open_annotated(labels, audio, skip_invalid=True)
    assert set(recordings.left_out) == {"Y03", "Y05"}
    assert len(recordings.sounds) == len(recordings.annotations) > 0


def test_where_all_is_left_out_that_is_an_error(run, tmp_path, capsys):
    labels, audio = write_domestic(tmp_path / "in", [("Y01.wav", 5, 5, "Dog")])
    words = ("--data", labels, "--set", f"audio={audio}", "--set", "format=desed", *FEW, "--skip-invalid")
    assert "no recording can be used: Y01 (validation.tsv:2" in error_of(run, capsys, "build", *words)


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
    assert printed.out.splitlines()[0].endswith(f" ({said})")
    assert f"oracle: its scores are {said}." in " ".join(printed.out.split())


def test_lengths_of_audiotime_are_refused_by_name(run, tmp_path, domestic, capsys):
    path = tmp_path / "duration_captions.json"
    path.write_text(json.dumps({"syn_1": {"event": {"dog": [1.5, 2.0]}, "caption": ""}}))
    message = error_of(run, capsys, "build", "--data", f"labels:{path}", "--set", f"audio={domestic[1]}")
    assert "the part 'duration' of AudioTime says how long each sound lasts" in message


def test_a_format_that_cannot_be_told(run, tmp_path, domestic, capsys):
    labels = tmp_path / "streets.tsv"
    labels.write_text("filename\tonset\toffset\tevent_label\n" + "\t".join(map(str, STREET_ROWS[0])) + "\n")
    capsys.readouterr()
    assert run("build", "--data", labels, "--set", f"audio={domestic[1]}") == 2
    printed = capsys.readouterr().err
    assert "streets.tsv does not say which format it is in; name one with --set format=NAME" in printed
    assert all(f" {name} (" in printed for name in list_formats())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "format=dessed"), "there is no format of labels 'dessed'; did you mean 'desed'"),
        (("--set", "ask=detectoin"), "there is no task 'detectoin'; did you mean 'detection'"),
        (("--set", "ask=detection/last"), "the task 'detection' has no variant 'last'"),
        (("--set", "ask=counting", "--set", "ask=duration"), "--set has ask twice; a setting has one value"),
        (("--set", "classes=6"), "no setting 'classes'"),
        (("--set", "train=2"), "train is '2'; it is a number from 0 to 0.9"),
        (("--set", "columns=onset"), "columns has 'onset'; it takes FIELD=HEADING"),
        (("--set", "columns=onset=a,onset=b"), "columns has 'onset' twice"),
        (("--set", "columns=onset=a", "--set", "format=desed"), "the columns of desed are fixed"),
        (("--set", "columns=onset=a"), "there is none for recording, label, offset (or length)"),
        (("--set", "format=table"), "the columns of the table have to be named"),
        (("--set", "durations=none.tsv"), "durations is 'none.tsv', and there is no such file"),
        (("--set", "names=none.json"), "names is 'none.json', and there is no such file"),
        (("--set", "resolution=-1"), "resolution is '-1'; it is a number from 0 below 60"),
        (("--set", "resolution=nan"), "resolution is 'nan'; it is a number from 0 below 60"),
        (("--set", "window=0"), "window is '0'; it is a number above 0"),
        (("--set", "label=class"), "which is strong labels of recordings; it applies to recordings, a table"),
        (("--set", "protocol=paper"), "there is no setting 'protocol'"),
        (("--set", "bank=a.syx"), "bank is about the timbres of presets; "),
        (("--recipe", "a_coat"), "the recipe 'a_coat' cannot be made of recordings with labels"),
    ],
)
def test_wrong_arguments_are_told_in_one_line(domestic, run, capsys, words, message):
    labels, audio = domestic
    assert message in error_of(run, capsys, "build", "--data", labels, "--set", f"audio={audio}", *words)


def test_labels_and_sound_belong_together(domestic, run, capsys):
    labels, audio = domestic
    assert "its sound is elsewhere: give the folder, --set audio=FOLDER" in error_of(
        run, capsys, "build", "--data", labels
    )
    assert "audio does not apply to 'mini', which is the preset mini; it applies to a table of recordings" in error_of(
        run, capsys, "build", "--set", f"audio={audio}"
    )
    message = error_of(run, capsys, "build", "--data", labels, "--set", f"audio={audio / 'none'}")
    assert "there is no such folder" in message
    message = error_of(run, capsys, "build", "--data", labels.with_name("none.tsv"), "--set", f"audio={audio}")
    assert "there is nothing at " in message


@pytest.mark.parametrize("command", ["build", "evaluate", "run", "embed"])
def test_the_list_of_settings_teaches(command, domestic, run, tmp_path, capsys):
    labels, _ = domestic
    models = () if command == "build" else ("first",)
    assert run(command, *models, "--data", labels, "--set", "help", "--out", tmp_path / "x") == 0
    text = " ".join(capsys.readouterr().out.replace("-\n", "-").split())
    for word in ("audio", "format", "development.csv", "onset=start", "task/variant"):
        assert word in text, word
    assert all(name in text for name in (*list_formats(), *question_tasks()))


def test_sound_is_that_of_the_files(run, tmp_path):
    labels, audio = write_soft(tmp_path / "in")
    words = ("--data", labels, "--set", f"audio={audio}", "--set", "ask=concurrency", *FEW)
    assert run("build", *words, "--out", tmp_path / "built", "--audio-format", "wav") == 0
    for clip in open_data(tmp_path / "built").configuration("polybench").clips():
        assert (len(clip.waveform), clip.sample_rate) == (12 * 8_000, 8_000)
        assert np.any(clip.waveform)
