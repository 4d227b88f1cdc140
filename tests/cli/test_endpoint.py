"""A model behind a server, alone and behind a detector: what is asked, what is refused before, what is kept, no key."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.base import ModelError
from audio_compositionality.encoders.loading.names import KEY_VARIABLE, check_name
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.evaluator.results.result import load_result

from ..dataset_builder.sounds.published.test_question_sets import mmau_pro
from ..encoders.language_models.endpoint_server import (
    Clock,
    LoopbackEndpoint,
    Request,
    StillClock,
    completion,
    refusal,
)

KEY = "sk-loopback-0123456789"
QUESTIONS = 25


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "questions"
    scenes = rendered_preset("mini", recipes=["polybench"], train_sets=1, test_sets=1)
    build_dataset(scenes, folder, workers=1, progress=False)
    return folder


@pytest.fixture
def server(monkeypatch) -> Iterator[LoopbackEndpoint]:
    """A server that wants the key and answers A, and a client whose waits take no time."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("audio_compositionality.encoders.language_models.endpoint.Clock", StillClock)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    server = LoopbackEndpoint(Clock())

    def respond(request: Request):
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return refusal(401, "who are you?")
        return completion("A", finish="length" if "Yes" in request.prompt else "stop")

    server.respond = respond
    yield server
    server.close()


@pytest.fixture
def evaluate(server, data, tmp_path):
    """Function of more arguments: the exit status of the command."""

    def command(*more: str, name: str = server.name) -> list[str]:
        places = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "store"), "--data", str(data)]
        return ["evaluate", name, "--tasks", "polybench", *places, *more]

    def run(*more: str, **model: str) -> int:
        return main(command(*more, **model))

    run.command = command
    return run


def questions(server: LoopbackEndpoint) -> list[Request]:
    """What was asked but for the first, which is about silence."""
    return [request for request in server.requests if not request.prompt.startswith("Answer with the letter A")]


def no_key_in(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes() or KEY in path.name]


def test_faults_are_passed_over_and_the_key_is_nowhere(server, evaluate, tmp_path, capfd, caplog):
    caplog.set_level("INFO")
    words = f"no, Bearer {KEY} is too fast"
    server.faults = [
        completion(),
        refusal(429, words, Retry_After="2"),
        refusal(500, words),
        refusal(503),
        completion(KEY),
    ]
    assert evaluate("--set", f"max_questions={QUESTIONS}") == 0
    assert len(questions(server)) == QUESTIONS + 3
    out, err = capfd.readouterr()
    assert KEY not in out + err + caplog.text
    no_key_in(tmp_path)
    (path,) = (tmp_path / "out").rglob("polybench.json")
    result = load_result(path)[0]
    assert (result.device, result.n, result.measures["unparsed"]) == ("server", QUESTIONS, 1)
    files = [json.loads(one.read_text()) for one in sorted((tmp_path / "store").rglob("0*.json"))]
    facts = [fact for one in files for fact in one["facts"]]
    assert len(facts) == QUESTIONS
    cut = sum(fact["finish_reason"] == "length" for fact in facts)
    assert {fact["tokens"] for fact in facts} == {1}
    assert 0 < cut < QUESTIONS
    assert result.cut_answers == cut
    assert f": {cut} of {QUESTIONS} answers were cut" in " ".join(err.split())

    # Nothing is asked again, and so nothing counts.
    assert evaluate("--set", "max_questions=0") == 0
    (tmp_path / "out").rename(tmp_path / "earlier")
    assert evaluate("--set", "max_questions=0") == 0
    assert len(questions(server)) == QUESTIONS + 3


def test_replies_without_a_text_are_counted_also_where_they_are_kept(server, evaluate, tmp_path, capsys):
    thought = completion(None, finish="length", message={"reasoning_content": "A bell? The answer is A."})
    call = completion(None, message={"tool_calls": [{"function": {"name": "answer", "arguments": "{}"}}]})
    spoken = completion(None, message={"audio": {"transcript": "A"}})
    server.faults = [completion(), thought, call, spoken, thought]
    warned = (
        "the server returned no final answer (reasoning only) to 2 of 25 questions, which count as wrong; raise the "
        "limit on tokens: --set max_new_tokens=4096",
        "the server returned a tool call without text to 1 of 25 questions, which count as wrong; set it up without",
        "the server returned speech without text to 1 of 25 questions; its transcript is the answer",
    )
    for place in ("first", "again"):
        with warnings.catch_warnings():
            # Else one process gives the same warning once.
            warnings.simplefilter("always")
            assert evaluate() == 0
        said = " ".join(capsys.readouterr().err.split())
        assert [said.count(words) for words in warned] == [1, 1, 1]
        (path,) = (tmp_path / "out").rglob("polybench.json")
        assert load_result(path)[0].measures["unparsed"] == 3
        (tmp_path / "out").rename(tmp_path / place)
    assert len(questions(server)) == QUESTIONS


def test_a_server_that_wants_sound_ends_the_control_without_it_in_one_line(server, evaluate, capsys):
    words = "This model requires that either input content or output modality contain audio."
    server.respond = lambda request: refusal(400, words) if isinstance(request.content, str) else completion("A")
    assert evaluate(name=f"events-as-text:{server.name}") == 2
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert f"answered 400 ({words}); this server wants sound in every question; leave out events-as-text:" in line


@pytest.mark.slow
def test_a_killed_command_asks_again_only_what_was_under_way(server, evaluate, tmp_path):
    """At most the eight questions that are under way at a time are lost."""
    answer = server.respond

    def slowly(request: Request):
        server.closing.wait(0.5)
        return answer(request)

    server.respond = slowly
    command = [sys.executable, "-m", "audio_compositionality", *evaluate.command()]
    process = subprocess.Popen(command, env={**os.environ, "HF_HUB_OFFLINE": "0"}, stderr=subprocess.PIPE)
    kept: list[Path] = []
    until = time.monotonic() + 120
    while not kept:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        kept = [path for path in (tmp_path / "store").rglob("*.begun") if path.stat().st_size]
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    server.respond = answer
    time.sleep(1)
    lines = [line for path in kept for line in path.read_bytes().split(b"\n") if line]
    before = len(questions(server))
    assert 1 <= len(lines) < QUESTIONS
    assert before - len(lines) <= 16
    assert evaluate("--set", f"max_questions={QUESTIONS - len(lines)}") == 0
    assert len(questions(server)) == before + QUESTIONS - len(lines)
    no_key_in(tmp_path)


# A language model that reads what a detector has heard

DETECTOR = """
import numpy as np
from audio_compositionality.tasks.answerers.detector import DetectorAnswerer

class Mine(DetectorAnswerer):
    labels, frame_rate = ("bell",), 10.0

    def detect(self, waveforms, rate):
        return np.ones((len(waveforms), round(10 * waveforms.shape[1] / rate), 1), np.float32)
"""


@pytest.fixture
def detector(tmp_path) -> str:
    Path(tmp_path, "mine.py").write_text(DETECTOR)
    return f"{tmp_path / 'mine.py'}:Mine"


def texts_of(server: LoopbackEndpoint) -> list[str]:
    """The questions, all of them without sound."""
    texts = [request.content for request in questions(server)]
    assert all(isinstance(text, str) for text in texts)
    return texts


@pytest.mark.slow
def test_the_built_in_detector_learns_and_a_server_reads(server, evaluate, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("audio_compositionality.tasks.answerers.detector.STEPS", 100)
    name = f"detected-as-text:cascade:{server.name}"
    assert evaluate("--set", "max_questions=18", name=name) == 2
    assert "would be asked 25 questions, but at most 18 are allowed" in " ".join(capsys.readouterr().err.split())
    assert questions(server) == []
    assert evaluate("--set", "max_questions=25", name=name) == 0
    asked = texts_of(server)
    assert len(asked) == QUESTIONS
    assert all(text.startswith(("These sounds were detected", "No sounds were detected")) for text in asked)
    assert any(" s: " in text for text in asked)
    assert all(text.endswith("\nAnswer with one letter only.") for text in asked)
    (path,) = (tmp_path / "out").rglob("polybench.json")
    result = load_result(path)[0]
    assert (result.model.id, result.device) == (f"detected-as-text:cascade:endpoint:tiny@{server.host}", "server")
    assert (result.n, result.measures["unparsed"]) == (QUESTIONS, 0)
    # What was answered is there, and asked no more.
    (tmp_path / "out").rename(tmp_path / "earlier")
    assert evaluate("--set", "max_questions=0", name=name) == 0
    assert len(questions(server)) == QUESTIONS


def test_a_detector_of_the_user_s_own(server, evaluate, detector, tmp_path):
    name = f"detected-as-text:{detector}:{server.name}"
    assert not has_twins(name)
    assert evaluate("--set", "prompt=reason", "--batch-size", "3", name=name) == 0
    assert len(questions(server)) == QUESTIONS
    assert all("\n0.00-10.00 s: bell\n" in text for text in texts_of(server))
    assert {request.body["max_tokens"] for request in server.requests[1:]} == {1024}
    assert server.most_at_once <= 3
    (path,) = (tmp_path / "out").rglob("polybench.json")
    assert load_result(path)[0].model.id == f"detected-as-text:Mine:endpoint:tiny@{server.host}@tokens=1024"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("detected-as-text:cascade", "expected detected-as-text:DETECTOR:MODEL"),
        ("detected-as-text:cascade:nothing-of-that-name", "unknown model"),
        ("detected-as-text:cascade:endpoint:tiny@https://me:geheim@host/v1", "without user, password"),
        ("without-audio:detected-as-text:cascade:endpoint:tiny@https://me:geheim@host/v1", "without user, password"),
    ],
)
def test_names_that_are_none_are_refused_before_anything_is_loaded_or_shown(name, words, capsys, tmp_path):
    with pytest.raises(ModelError, match=words):
        check_name(name)
    assert main(["run", name, "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert "geheim" not in captured.out + captured.err


def test_what_detects_or_reads_nothing_is_refused(detector):
    with pytest.raises(ModelError, match="'first' cannot detect events"):
        load_model("detected-as-text:first:first")
    for reader in ("cascade", "oracle", "downsample", f"detected-as-text:{detector}:first"):
        with pytest.raises(ModelError, match="cannot read detected events"):
            load_model(f"detected-as-text:{detector}:{reader}")


def test_questions_of_others_are_asked_with_all_their_clips_in_one_sound(server, tmp_path):
    (tmp_path / "copy").mkdir()
    mmau_pro(tmp_path / "copy")
    places = ["--out", str(tmp_path / "out"), "--cache", str(tmp_path / "store")]
    asked = ["evaluate", server.name, "--tasks", "audio_questions", "--data", f"mmau_pro:{tmp_path / 'copy'}", *places]
    assert main(asked) == 0
    (request,) = questions(server)
    assert request.prompt.splitlines()[:2] == ["Which?", "A. dog"]
    (path,) = (tmp_path / "out").rglob("audio_questions.json")
    result = load_result(path)[0]
    assert (result.n, result.measures["unparsed"], result.measures["accuracy"]) == (1, 0, 0)
    assert main(asked) == 0
    assert len(questions(server)) == 1
