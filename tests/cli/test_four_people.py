"""Four people, each with what they have, reach their report by one command with at most three options."""

import csv
import itertools

import pytest

from audio_compositionality.evaluator.results.result import load_result

from ..dataset_builder.sounds.sounds import write
from ..dataset_builder.texts.labelled import write_domestic
from .test_one_folder import LABELS, RATE, sound

pytestmark = pytest.mark.slow


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


def test_who_has_a_folder_of_recordings(whisper, reported, tmp_path):
    for label, number in itertools.product(LABELS, range(3)):
        write(tmp_path / "animals" / label / f"{number}.wav", samples=sound(label, number, 0.4), rate=RATE)
    (tmp_path / "animals.yaml").write_text("data: ./animals\nsettings: {classes: 3, blocks: 8, context_sources: 1}\n")
    tasks, models = reported("run", whisper, "--data", tmp_path / "animals.yaml", "--tasks", "a_coat_instances")
    assert tasks == {"a_coat_instances"}
    names = {model.replace(f"{whisper.parent}/", "") for model in models}
    assert {f"untrained:{whisper.name}", f"shuffled:{whisper.name}", whisper.name, "log-mel-statistics"} <= names


def test_who_has_strong_labels(reported, tmp_path):
    labels, audio = write_domestic(tmp_path)
    # Of hundreds of recordings there are enough without such settings, and some to learn from.
    (tmp_path / "desed.yaml").write_text(
        f"data: {labels.name}\naudio: {audio.name}\nformat: desed\nsettings:\n  least_clips: 1\n  train: 0\n"
    )
    tasks, models = reported("run", "--data", tmp_path / "desed.yaml")
    assert tasks == {"polybench"}
    assert {"first", "oracle", "random"} <= models


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


def test_who_has_a_checkpoint_of_a_clap(clap_folder, reported):
    tasks, models = reported("run", clap_folder, "--tasks", "comp_a_order", "--set", "items=4")
    assert tasks == {"comp_a_order"}
    assert sum("sorted-words:" in model for model in models) == 1
    assert sum(model.startswith("untrained:") for model in models) == 1
