"""A language model that reads what a detector has heard, by its name on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.names import check_name
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.evaluator.results.result import load_result

from ..encoders.language_models.endpoint_server import Clock, LoopbackEndpoint, completion

QUESTIONS = 25

DETECTOR = """
import numpy as np
from audio_compositionality.tasks.answerers.detector import DetectorAnswerer

class Mine(DetectorAnswerer):
    labels, frame_rate = ("bell",), 10.0

    def detect(self, waveforms, rate):
        return np.ones((len(waveforms), round(10 * waveforms.shape[1] / rate), 1), np.float32)
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "questions"
    scenes = rendered_preset("mini", recipes=["polybench"], train_sets=1, test_sets=1)
    build_dataset(scenes, folder, workers=1, progress=False)
    return folder


@pytest.fixture
def server(monkeypatch) -> Iterator[LoopbackEndpoint]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    server = LoopbackEndpoint(Clock())
    server.respond = lambda request: completion("A")
    yield server
    server.close()


@pytest.fixture
def detector(tmp_path) -> str:
    Path(tmp_path, "mine.py").write_text(DETECTOR)
    return f"{tmp_path / 'mine.py'}:Mine"


def evaluate(name: str, data: Path, folder: Path, *more: str, command: str = "evaluate") -> int:
    places = ["--out", str(folder / "out"), "--store", str(folder / "store"), "--data", str(data)]
    return main([command, name, "--tasks", "polybench", *places, *more])


def questions(server: LoopbackEndpoint) -> list[str]:
    """What was asked, all of it without sound; but for the first, which is no question."""
    texts = [request.content for request in server.requests]
    assert all(isinstance(text, str) for text in texts)
    return [text for text in texts if not text.startswith("Answer with the letter A")]


@pytest.mark.slow
def test_the_built_in_detector_learns_and_a_server_reads(server, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("audio_compositionality.tasks.answerers.detector.STEPS", 100)
    name = f"heard-as-text:cascade:{server.name}"
    assert evaluate(name, data, tmp_path, "--set", "max_questions=18") == 2
    assert "is to be asked 25 questions, and no more than 18 are allowed" in " ".join(capsys.readouterr().err.split())
    assert questions(server) == []
    assert evaluate(name, data, tmp_path, "--set", "max_questions=25") == 0
    asked = questions(server)
    assert len(asked) == QUESTIONS
    assert all(text.startswith(("These sounds were detected", "No sounds were detected")) for text in asked)
    assert any(" s: " in text for text in asked)
    assert all(text.endswith("\nAnswer with one letter only.") for text in asked)
    (path,) = (tmp_path / "out").rglob("polybench.json")
    result = load_result(path)[0]
    assert (result.model.id, result.device) == (f"heard-as-text:cascade:endpoint:tiny@{server.host}", "server")
    assert (result.n, result.measures["unparsed"]) == (QUESTIONS, 0)
    # What was answered is there, and asked no more.
    (tmp_path / "out").rename(tmp_path / "earlier")
    assert evaluate(name, data, tmp_path, "--set", "max_questions=0") == 0
    assert len(questions(server)) == QUESTIONS


def test_a_detector_of_the_user_s_own(server, data, detector, tmp_path):
    name = f"heard-as-text:{detector}:{server.name}"
    assert not has_twins(name)
    assert evaluate(name, data, tmp_path, "--set", "prompt=reason", "--batch-size", "3") == 0
    assert len(questions(server)) == QUESTIONS
    assert all("\n0.00-10.00 s: bell\n" in text for text in questions(server))
    assert {request.body["max_tokens"] for request in server.requests[1:]} == {1024}
    assert server.most_at_once <= 3
    (path,) = (tmp_path / "out").rglob("polybench.json")
    assert load_result(path)[0].model.id == f"heard-as-text:Mine:endpoint:tiny@{server.host}@tokens=1024"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("heard-as-text:cascade", "named heard-as-text:DETECTOR:MODEL"),
        ("heard-as-text:", "named heard-as-text:DETECTOR:MODEL"),
        ("heard-as-text:cascade:", "named heard-as-text:DETECTOR:MODEL"),
        ("heard-as-text:nowhere.py:Mine:cascade", "there is no file"),
        ("heard-as-text:cascade:nothing-of-that-name", "unknown model"),
        ("heard-as-text:cascade:endpoint:tiny@https://me:geheim@host/v1", "without user, password"),
        ("without-audio:heard-as-text:cascade:endpoint:tiny@https://me:geheim@host/v1", "without user, password"),
    ],
)
def test_names_that_are_none_are_refused_before_anything_is_loaded_or_shown(name, words, capsys, tmp_path):
    with pytest.raises(ModelError, match=words):
        check_name(name)
    assert main(["run", name, "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "geheim" not in captured.out + captured.err


def test_what_detects_or_reads_nothing_is_refused(detector):
    with pytest.raises(ModelError, match="'first' detects no events"):
        load_model("heard-as-text:first:first")
    for reader in ("cascade", "oracle", "downsample", f"heard-as-text:{detector}:first"):
        with pytest.raises(ModelError, match="cannot read detected events"):
            load_model(f"heard-as-text:{detector}:{reader}")
