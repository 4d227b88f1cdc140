"""One folder of recordings, or one of recordings with strong labels, serves the recipes by one command each."""

import itertools

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_data
from audio_compositionality.dataset_builder.recorded import open_recordings
from audio_compositionality.evaluator.results.result import load_result

from ..dataset_builder.sounds.sounds import noise, write

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


@pytest.mark.slow
def test_strong_labels_serve_the_same_recipes(street, run, tmp_path):
    words = ("--data", street / "audio", "--set", f"labels={street / 'street.csv'}")
    recipes = RECIPES.replace("binding,", "")
    assert run("build", *words, *SETTINGS, "--recipes", recipes, "--out", tmp_path / "built") == 0
    check(open_data(tmp_path / "built"), set(LABELS))
    tasks = ("--tasks", "a_coat_instances")
    assert run("evaluate", "log-mel-statistics", *words, *BLOCKS, *tasks, "--out", tmp_path / "results") == 0
    (path,) = (tmp_path / "results").rglob("*.json")
    assert load_result(path)[0].measures["top1"] > 1 / 3


def test_strong_labels_give_what_is_heard_alone(street):
    recordings = open_recordings(street / "audio", strong_labels=street / "street.csv", progress=False)
    # The third label and the second time of the first are heard at once.
    assert len(recordings.entries) == 2 * 48
    assert {entry.label for entry in recordings.entries} == set(LABELS)
    for number, entry in enumerate(recordings.entries[:8]):
        waveform, rate = recordings.waveform(number)
        spectrum = np.abs(np.fft.rfft(waveform))
        loudest = np.argmax(spectrum) * rate / len(waveform)
        assert loudest == pytest.approx(200 + 90 * LABELS.index(entry.label), abs=2)
