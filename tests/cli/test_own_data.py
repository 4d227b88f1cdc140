"""One folder of recordings, or one of recordings with strong labels, serves the recipes by one command each."""

import csv
import itertools

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_data, open_recordings
from audio_compositionality.evaluator.results.result import load_result

from ..dataset_builder.sounds.sounds import noise, write
from ..dataset_builder.texts.labelled import write_domestic

LABELS = ("dog", "rain", "violin", "bell", "bird", "car", "piano", "cough", "drum", "door", "horn", "wind")
RECIPES = "a_coat_instances,binding,polybench,comp_a_order"
BLOCKS = ("--set", "classes=3", "--set", "blocks=8", "--set", "context_sources=1")
SETTINGS = (*BLOCKS, "--set", "items=4", "--set", "train_sets=1", "--set", "test_sets=1")
RATE = 16_000


def sound(label, number, seconds=1.2):
    """A tone of the label's own pitch in some noise."""
    times = np.arange(round(seconds * RATE)) / RATE
    tone = 0.2 * np.sin(2 * np.pi * (200 + 90 * LABELS.index(label)) * times)
    return tone + 0.2 * noise(seconds, RATE, seed=100 * LABELS.index(label) + number)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every label under every condition."""
    folder = tmp_path_factory.mktemp("folder")
    for label, condition in itertools.product(LABELS, ("ann", "bob", "eve", "joe")):
        number = "ann bob eve joe".index(condition)
        write(folder / label / condition / "0.wav", samples=sound(label, number), rate=RATE)
    return folder


@pytest.fixture(scope="module")
def street(tmp_path_factory):
    """Recordings of minutes with three labels each, one after the other or at once, and their table."""
    folder = tmp_path_factory.mktemp("street")
    lines = ["file,label,start,stop"]
    for number in range(48):
        first, second, third = (LABELS[(number + step) % len(LABELS)] for step in (0, 1, 5))
        samples = 0.01 * noise(9.0, RATE, seed=5_000 + number)
        for label, start in ((first, 1.0), (second, 4.0), (third, 6.5), (first, 7.0)):
            place = round(start * RATE)
            part = sound(label, number)
            samples[place : place + len(part)] += part
            lines.append(f"{number}.wav,{label},{start},{start + 1.2}")
        write(folder / "audio" / f"{number}.wav", samples=samples, rate=RATE)
    (folder / "street.csv").write_text("\n".join(lines) + "\n")
    return folder


def check(data, names):
    """The rows are of these labels, and what they say of their clips is true."""
    for row in data.configuration("a_coat_instances").rows:
        assert set(row["labels"]) | set(row["context_a"]) <= names
    for row in data.configuration("comp_a_order").rows:
        assert {event["label"] for clip in row["events"] for event in clip} <= names
        for caption, events in zip(row["captions"], row["events"], strict=True):
            for other, others in zip(row["captions"], row["events"], strict=True):
                assert (caption == other) == (events == others)
    splits = {row["split"] for row in data.configuration("polybench").rows}
    assert splits == {"train", "test"}
    assert len({row["task"] for row in data.configuration("polybench").rows}) == 5


@pytest.mark.slow
def test_one_folder_serves_instances_binding_twins_and_order(folder, run, tmp_path):
    words = ("--data", folder)
    assert run("build", *words, *SETTINGS, "--recipes", RECIPES, "--out", tmp_path / "built") == 0
    check(open_data(tmp_path / "built"), set(LABELS))
    assert {
        label for row in open_data(tmp_path / "built").configuration("binding").rows for label in row["labels"]
    } <= {*LABELS}
    tasks = ("--tasks", "a_coat_instances,binding")
    assert run("evaluate", "log-mel-statistics", *words, *BLOCKS, *tasks, "--out", tmp_path / "results") == 0
    results = {path.stem: load_result(path)[0] for path in (tmp_path / "results").rglob("*.json")}
    assert results["a_coat_instances"].measures["top1"] > 1 / 3
    assert set(results) == {"a_coat_instances", "binding"}


def test_strong_labels_give_what_is_heard_alone(street):
    recordings = open_recordings(street / "audio", labels=[str(street / "street.csv")], progress=False)
    # The third label and the second time of the first are heard at once.
    assert len(recordings.entries) == 2 * 48
    assert {entry.label for entry in recordings.entries} == set(LABELS)
    for number, entry in enumerate(recordings.entries[:8]):
        waveform, rate = recordings.waveform(number)
        spectrum = np.abs(np.fft.rfft(waveform))
        loudest = np.argmax(spectrum) * rate / len(waveform)
        assert loudest == pytest.approx(200 + 90 * LABELS.index(entry.label), abs=2)


# Four people, each with what they have, reach their report by one command with at most three options


@pytest.fixture
def clap_folder(tmp_path):
    """A small CLAP with random weights, as transformers saves it."""
    from audio_compositionality.encoders.networks.small_networks import save_clap, tiny_clap

    save_clap(tiny_clap(), tmp_path / "small-clap")
    return tmp_path / "small-clap"


@pytest.fixture
def reported(run, tmp_path):
    """Runs a command with three options at most, and gives the tasks that were scored and the models."""

    def command(*words):
        assert sum(str(word).startswith("--") for word in words) <= 2
        out = tmp_path / "results"
        assert run(*words, "--out", out) == 0
        assert (out / "report.html").is_file()
        results = [load_result(path)[0] for path in sorted(out.rglob("*.json"))]
        return {result.task for result in results}, {result.model.id for result in results}

    return command


@pytest.mark.slow
def test_who_has_a_folder_of_recordings(whisper, reported, tmp_path):
    for label, number in itertools.product(LABELS, range(3)):
        write(tmp_path / "animals" / label / f"{number}.wav", samples=sound(label, number, 0.4), rate=RATE)
    (tmp_path / "animals.yaml").write_text("data: ./animals\nsettings: {classes: 3, blocks: 8, context_sources: 1}\n")
    tasks, models = reported("run", whisper, "--data", tmp_path / "animals.yaml", "--tasks", "a_coat_instances")
    assert tasks == {"a_coat_instances"}
    names = {model.replace(f"{whisper.parent}/", "") for model in models}
    assert {f"untrained:{whisper.name}", f"shuffled:{whisper.name}", whisper.name, "log-mel-statistics"} <= names


@pytest.mark.slow
def test_who_has_strong_labels(reported, tmp_path, monkeypatch):
    # The cascade and the forests learn once for each of five folds; how well is not the point here.
    monkeypatch.setattr("audio_compositionality.tasks.answerers.detector.STEPS", 20)
    monkeypatch.setattr("audio_compositionality.tasks.answerers.sound_only.TREES", 10)
    labels, audio = write_domestic(tmp_path)
    # Of hundreds of recordings there are enough without such settings, and some to learn from.
    (tmp_path / "desed.yaml").write_text(
        f"data: {labels.name}\naudio: {audio.name}\nformat: desed\nsettings:\n  least_clips: 1\n  train: 0\n"
    )
    tasks, models = reported("run", "--data", tmp_path / "desed.yaml")
    assert tasks == {"polybench"}
    assert {"first", "oracle", "random"} <= models


@pytest.mark.slow
def test_who_has_a_table_of_captions(clap_folder, reported, tmp_path):
    with (tmp_path / "captions.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["file_name", "caption"])
        for number, label in enumerate(LABELS):
            write(tmp_path / "clips" / f"{number}.wav", samples=sound(label, number), rate=RATE)
            writer.writerow([f"{number}.wav", f"a {label} is heard"])
    tasks, models = reported(
        "run", clap_folder, "--data", tmp_path / "captions.csv", "--set", f"audio={tmp_path / 'clips'}"
    )
    assert "audio_text_retrieval" in tasks
    assert "bag-of-words" in models


@pytest.mark.slow
def test_who_has_a_checkpoint_of_a_clap(clap_folder, reported):
    tasks, models = reported("run", clap_folder, "--tasks", "comp_a_order", "--set", "items=4")
    assert tasks == {"comp_a_order"}
    assert sum("sorted-words:" in model for model in models) == 1
    assert sum(model.startswith("untrained:") for model in models) == 1
