"""One folder of recordings, or one of recordings with strong labels, serves the recipes by one command each."""

import itertools

import numpy as np
import pytest

from audio_compositionality.dataset_builder.open_data import open_data, open_recordings
from audio_compositionality.evaluator.results.result import load_result

from ..dataset_builder.sounds.sounds import noise, write
from ..dataset_builder.texts.labelled import write_domestic

LABELS = ("dog", "rain", "violin", "bell", "bird", "car", "piano", "cough", "drum", "door", "horn", "wind")
RECIPES = "a_coat_instances,binding,polybench,comp_a_order"
SETTINGS = tuple(
    word
    for setting in ("classes=3", "blocks=8", "context_sources=1", "items=4", "train_sets=1", "test_sets=1")
    for word in ("--set", setting)
)
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
    for number in range(16):
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
    assert run("build", "--data", folder, *SETTINGS, "--recipes", RECIPES, "--out", tmp_path / "built") == 0
    check(open_data(tmp_path / "built"), set(LABELS))
    assert {
        label for row in open_data(tmp_path / "built").configuration("binding").rows for label in row["labels"]
    } <= {*LABELS}


def test_strong_labels_give_what_is_heard_alone(street):
    recordings = open_recordings(street / "audio", labels=[str(street / "street.csv")], progress=False)
    # The third label and the second time of the first are heard at once.
    assert len(recordings.entries) == 2 * 16
    assert {entry.label for entry in recordings.entries} == set(LABELS)
    for number, entry in enumerate(recordings.entries[:8]):
        waveform, rate = recordings.waveform(number)
        spectrum = np.abs(np.fft.rfft(waveform))
        loudest = np.argmax(spectrum) * rate / len(waveform)
        assert loudest == pytest.approx(200 + 90 * LABELS.index(entry.label), abs=2)


# Two people, each with what they have, reach their report by one command with at most three options


@pytest.fixture
def reported(run, tmp_path):
    """Runs a command with three options at most, and gives the results."""

    def command(*words):
        assert sum(str(word).startswith("--") for word in words) <= 2
        out = tmp_path / "results"
        assert run(*words, "--out", out) == 0
        assert (out / "report.html").is_file()
        return [load_result(path)[0] for path in sorted(out.rglob("*.json"))]

    return command


@pytest.mark.slow
def test_who_has_recordings_with_labels_and_captions_and_a_checkpoint_of_a_clap(reported, tmp_path):
    from audio_compositionality.encoders.networks.small_networks import save_clap, tiny_clap

    clap = tmp_path / "small-clap"
    save_clap(tiny_clap(), clap)
    lines = ["file_name,kind,caption"]
    for label, number in itertools.product(LABELS, range(2)):
        write(tmp_path / "animals" / f"{label} {number}.wav", samples=sound(label, number, 0.4), rate=RATE)
        lines.append(f"{label} {number}.wav,{label},a {label} is heard")
    (tmp_path / "animals" / "metadata.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "animals.yaml").write_text(
        "data: ./animals\nlabel: kind\ncaptions: caption\nsettings: {classes: 3, blocks: 8, context_sources: 1}\n"
    )
    wanted = ("a_coat_instances", "audio_text_retrieval")
    results = reported("run", clap, "--data", tmp_path / "animals.yaml", "--tasks", ",".join(wanted))
    assert {result.task for result in results} == set(wanted)
    models = {
        task: {result.model.id.replace(f"{tmp_path}/", "") for result in results if result.task == task}
        for task in wanted
    }
    both = {clap.name, f"untrained:{clap.name}"}
    assert models["a_coat_instances"] >= both | {f"shuffled:{clap.name}", "log-mel-statistics"}
    assert models["audio_text_retrieval"] >= both | {"bag-of-words", f"sorted-words:{clap.name}"}
    (log_mel,) = (one for one in results if (one.task, one.model.id) == (wanted[0], "log-mel-statistics"))
    assert log_mel.measures["top1"] > 1 / 3


@pytest.mark.slow
def test_who_has_strong_labels(reported, tmp_path, monkeypatch):
    # The cascade and the forests learn once for each of five folds; how well is not the point here.
    monkeypatch.setattr("audio_compositionality.tasks.answerers.detector.STEPS", 2)
    monkeypatch.setattr("audio_compositionality.tasks.answerers.sound_only.TREES", 2)
    labels, audio = write_domestic(tmp_path)
    # Of hundreds of recordings there are enough without such settings, and some to learn from.
    (tmp_path / "desed.yaml").write_text(
        f"data: {labels.name}\naudio: {audio.name}\nformat: desed\nsettings:\n  least_clips: 1\n  train: 0\n"
    )
    results = reported("run", "--data", tmp_path / "desed.yaml")
    assert {result.task for result in results} == {"polybench"}
    assert {"first", "oracle", "random"} <= {result.model.id for result in results}
