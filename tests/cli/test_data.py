"""`data SPEC`: what data are read as, what can be scored, what is left out and why, what it costs; and ``--write``."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from audio_compositionality.dataset_builder.data_spec import FIELDS, DataSpec, Reading, described, recognised
from audio_compositionality.dataset_builder.open_data import open_data, reading_of, recipes_for, settable
from audio_compositionality.dataset_builder.stored import UnrecognizedDataError
from audio_compositionality.tasks.registry import list_tasks

from ..dataset_builder.sounds.sounds import write_labelled
from ..dataset_builder.texts.labelled import write_domestic

FEW = ("--set", "transforms=gain", "--set", "bases=12")


@pytest.fixture
def animals(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_labelled(tmp_path / "animals", 8).relative_to(tmp_path)


def scored(printed):
    """The rows of the table by their tasks: what can be scored or why not, in one line."""
    body = printed.partition("can be scored")[2]
    names = [task.info.name for task in list_tasks()]
    rows, name = {}, None
    for line in body.splitlines():
        first, _, rest = line.strip().partition(" ")
        if first in names:
            name = first
            rows[name] = rest.strip()
        elif name is not None and line.startswith("   "):
            rows[name] += f" {line.strip()}"
        else:
            name = None
    return rows


def test_recordings_are_said_to_be_so_with_what_they_serve_and_cost(animals, run, capsys, next_of):
    assert run("data", animals, *FEW) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("animals is read as a folder of recordings.\n")
    rows = scored(captured.out)
    assert re.fullmatch(r"(\d+ +){2}\d+\.\d +yes", rows["invariance"])
    data = open_data(str(animals), recipes=["transforms"], transforms=("gain",), bases=12)
    assert rows["invariance"].split()[0] == str(len(data.configuration("transforms").rows))
    assert "labels" in rows["a_coat_instances"]
    assert "captions" in rows["audio_text_retrieval"]
    assert re.search(r"In total [\d,]+ clips, [\d,]+ min of sound\. log-mel-statistics takes about", captured.out)
    for_encoders = re.search(r"For an audio encoder, `run` scores ([\w, ]+)\.", captured.out.replace("\n", " "))
    assert "invariance" in for_encoders[1]
    assert "composed_retrieval" not in for_encoders[1]
    # What is named at the end is the same data, quoted.
    animals.rename("my animals")
    assert run("data", "my animals", *FEW, "--preset", "mini", "--skip-invalid") == 0
    assert next_of(capsys.readouterr().out) == (
        "run --data 'my animals' --preset mini --set transforms=gain --set bases=12 --skip-invalid"
    )


def test_a_folder_that_was_built(folder, run, capsys):
    assert run("data", folder) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{folder} is read as a built data set.")
    rows = scored(printed)
    assert rows["a_coat"].endswith(" yes")
    assert rows["a_tre"].endswith(" yes")


@pytest.mark.slow
def test_a_preset(run, capsys, next_of):
    sizes = {"quadruples": 6, "quadruple_candidates": 50, "scene_candidates": 200, "train_scenes": 20, "items": 12}
    sizes |= {"validation_scenes": 2, "test_scenes": 2, "bases": 12, "blocks": 4, "train_sets": 1, "test_sets": 1}
    sizes |= {"clips": 24, "ladders": 16, "groups": 5, "comparisons": 3}
    assert run("data", "mini", *(word for size in sizes.items() for word in ("--set", "{}={}".format(*size)))) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("mini is read as the preset mini.")
    assert {"a_coat", "a_tre", "polybench", "comp_a_order"} <= set(scored(printed))
    # Tasks on request are named where their settings are.
    named = next_of(printed)
    assert named.startswith("run --data mini --tasks ")
    assert "invariance," in named
    assert " --set bases=12 " in named


def test_what_is_left_out_of_recordings_is_told(animals, run, capsys):
    (animals / "dog" / "text.wav").write_text("no sound")
    assert run("data", animals, *FEW) == 2
    assert "'dog/text.wav' cannot be read" in capsys.readouterr().err
    assert run("data", animals, *FEW, "--skip-invalid") == 0
    printed, notes = capsys.readouterr()
    assert "left out 1: dog/text.wav cannot be read" in printed
    assert "dog/text.wav" not in notes


@pytest.mark.slow
def test_a_description_is_written_with_all_that_could_be_said_and_read_again(animals, run, capsys, tmp_path, next_of):
    assert run("data", animals, *FEW, "--write", tmp_path / "animals.yaml") == 0
    printed = capsys.readouterr().out
    assert f"{tmp_path / 'animals.yaml'} is written: --data {tmp_path / 'animals.yaml'} takes it." in printed
    assert next_of(printed) == f"run --data {tmp_path / 'animals.yaml'}"
    capsys.readouterr()
    text = (tmp_path / "animals.yaml").read_text()
    for name in FIELDS["recordings"]:
        assert re.search(rf"^# {name}: ", text, re.MULTILINE), name
    assert "data: ./animals\n" in text
    assert described("animals.yaml").data == "./animals"
    assert run("data", "animals.yaml", *FEW) == 0
    assert capsys.readouterr().out.startswith("./animals is read as a folder of recordings.\n")


def test_what_is_said_of_the_data_stands_in_the_description(run, tmp_path, monkeypatch, capsys):
    labels, audio = write_domestic(tmp_path / "desed")
    (tmp_path / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    said = ("--set", f"audio={audio}", "--set", "format=desed", "--set", "window=5")
    made = ("--set", "least_clips=1", "--set", "train=0")
    file = tmp_path / "notes" / "desed.yaml"
    assert run("data", labels, *said, *made, "--write", file) == 0
    # Paths are below the folder of the file, so that both can be moved together.
    assert "data: ../desed/" in file.read_text()
    monkeypatch.chdir("/")
    spec = described(file)
    assert recognised(spec.data).kind == "labels"
    # A value that is called as a folder is no path.
    assert (spec.format, spec.window) == ("desed", 5.0)
    # What is made of the data is said as well.
    assert spec.settings == {"least_clips": 1, "train": 0.0}
    first, second = (
        open_data(one, **more).configuration("polybench").fingerprint
        for one, more in (
            (file, {}),
            (str(labels), {"audio": str(audio), "format": "desed", "window": 5.0, "least_clips": 1, "train": 0.0}),
        )
    )
    assert first == second


def test_where_nothing_can_be_asked_the_row_says_why_and_what_helps(run, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    labels, audio = write_domestic(tmp_path / "desed")
    said = ("--set", f"audio={audio}", "--set", "least_clips=1000", "--set", "ask=counting/kinds")
    assert run("data", labels, *said) == 0
    row = scored(capsys.readouterr().out)["polybench"]
    assert "no questions are possible about the" in row
    assert "--set least_clips=" in row
    # To score them stays an error.
    assert run("evaluate", "random", "--data", labels, *said) == 2
    assert "no questions are possible" in capsys.readouterr().err


class TestIdsOfTheHub:
    """What lies there is known when it is opened; what is said of it tells before."""

    def test_columns_say_that_it_is_a_data_set_of_recordings(self):
        plain, said = DataSpec(data="lab/set"), DataSpec(data="lab/set", label="accent")
        assert reading_of(plain).kind == "hub"
        assert reading_of(said).kind == "dataset"
        assert recipes_for(plain) is None
        assert recipes_for(said) == recipes_for(DataSpec(data="dataset:x"))
        assert {"transforms", "classes", "seed"} <= set(settable(plain)) == set(settable(said))

    def test_recordings_are_scored_by_all_tasks_that_they_serve(self, animals, run, monkeypatch, capsys, tmp_path):
        def strange(*_, **__):
            raise UnrecognizedDataError("no data of ours")

        reading = Reading("dataset", str(animals), "a data set of the Hub with an audio column")
        monkeypatch.setattr("audio_compositionality.dataset_builder.stored.StoredData", strange)
        monkeypatch.setattr("audio_compositionality.dataset_builder.open_data._set_of_hub", lambda _: reading)
        words = ("evaluate", "log-mel-statistics", "--data", "lab/set", *FEW, "--out", tmp_path / "results")
        assert run(*words) == 0
        assert {path.stem for path in (tmp_path / "results").rglob("*.json")} >= {
            "invariance",
            "transform_equivariance",
        }
        notes = capsys.readouterr().err
        assert "note: audio_text_retrieval is left out: " in notes
        assert "a_coat is left out" not in notes
        assert run(*words, "--tasks", "a_coat") == 2
        assert "a_coat" in capsys.readouterr().err

    def test_rows_that_are_as_they_are_have_no_settings(self, folder, run, monkeypatch, capsys, tmp_path):
        stored = open_data(folder)
        monkeypatch.setattr("audio_compositionality.dataset_builder.stored.StoredData", lambda *_, **__: stored)
        words = ("evaluate", "random", "--data", "lab/built", "--tasks", "a_coat", "--out", tmp_path / "results")
        assert run(*words, "--set", "seed=7") == 2
        assert "'seed' cannot be set: lab/built is a data set that was built" in capsys.readouterr().err
        assert run(*words) == 0


def test_questions_are_audited_and_those_with_faults_named(tmp_path, monkeypatch, run, capsys):
    monkeypatch.chdir(tmp_path)
    rows = []
    for number in range(20):
        soundfile.write(f"{number}.wav", np.sin(np.arange(800) * (0.05 + 0.01 * number)), 8_000)
        answer = "AB"[number % 2] if number else "D"
        rows.append(f"{number}.wav,Which sound is it?,dog {number}|cat {number},{answer},q{number}")
    Path("questions.csv").write_text("\n".join(["audio,question,options,answer,id", *rows]))
    assert run("data", "questions.csv") == 0
    printed = capsys.readouterr()
    assert "20 found, 19 read, 1 left out.\n  left out 1: q0 the answer is not one of the options: 'D'\n" in printed.out
    assert printed.err == ""
    for title in ("Kinds of questions", "Positions of right answers", "Lengths of right answers", "Duplicates"):
        assert title in printed.out
    assert re.search(r" 2 +19 +A 9, B 10 ", printed.out)
    assert printed.out.strip().endswith("--data questions.csv --skip-invalid")
