"""A model behind a server, by the command line: what is asked, what is refused before, what is kept, and no key."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

from audio_compositionality.cli.main import main
from audio_compositionality.dataset_builder.build import build_dataset
from audio_compositionality.dataset_builder.rendered import rendered_preset
from audio_compositionality.encoders.loading.names import KEY_VARIABLE
from audio_compositionality.evaluator.results.result import load_result

from ..encoders.language_models.endpoint_server import (
    Clock,
    LoopbackEndpoint,
    Raw,
    Request,
    Response,
    StillClock,
    completion,
    head,
    refusal,
)

KEY = "sk-loopback-0123456789"
QUESTIONS = 25


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "questions"
    scenes = rendered_preset("mini", recipes=["polybench"], train_sets=0, test_sets=1)
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

    def command(*more: str) -> list[str]:
        places = ["--out", str(tmp_path / "out"), "--store", str(tmp_path / "store"), "--data", str(data)]
        return ["evaluate", server.name, "--tasks", "polybench", *places, *more]

    def run(*more: str) -> int:
        return main(command(*more))

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


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--set", "max_questions=18"], "is to be asked 25 questions, and no more than 18 are allowed"),
        (["--set", "orders=cyclic", "--set", "max_questions=19"], "is to be asked 83 questions, and no more than 19"),
        (["--set", "scoring=options"], "valid choices of scoring are generate, letters"),
        (["--set", "scoring=letter"], "letters"),
    ],
)
def test_what_is_refused_is_so_before_the_first_question(server, evaluate, capsys, tmp_path, more, words):
    assert evaluate(*more) == 2
    said = capsys.readouterr().err
    assert words in " ".join(said.split())
    assert KEY not in said
    assert questions(server) == []
    assert not (tmp_path / "out").exists()


def test_a_wrong_key_is_said_without_showing_it(server, evaluate, capsys, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "sk-another-987654")
    assert evaluate() == 2
    said = capsys.readouterr().err
    assert "the server answered 401" in said
    assert "sk-another" not in said
    assert questions(server) == []


@pytest.mark.filterwarnings("ignore")
def test_what_came_before_a_server_went_down_is_not_asked_again(server, evaluate, capsys):
    answer = server.respond
    server.respond = lambda request: refusal(400, "gone") if len(questions(server)) > 11 else answer(request)
    assert evaluate() == 2
    assert "the server answered 400" in capsys.readouterr().err
    server.respond = answer
    before = len(questions(server))
    assert evaluate("--set", f"max_questions={QUESTIONS - 11}") == 0
    assert len(questions(server)) == before + QUESTIONS - 11


@pytest.fixture
def other(server) -> Iterator[LoopbackEndpoint]:
    """A second server, which would answer."""
    second = LoopbackEndpoint(Clock())
    yield second
    second.close()


FAULTS = {
    "redirect": ("the server redirects (307) from http://{host} to http://{other}, where nothing was sent", []),
    "large": ("the server answered 200 with more than 1 MB", []),
    "slow": ("there was no complete answer within 1.5 s", ["--set", "deadline=1.5"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_server_that_goes_too_far_ends_the_command_at_once(server, other, evaluate, capsys, tmp_path, name):
    """In the middle of a run; nothing is asked twice, nothing that came is lost, and nothing goes elsewhere."""
    answer = server.respond

    def dribble() -> Iterator[bytes]:
        yield head()
        for _ in range(600):
            server.closing.wait(0.1)
            yield b" "

    def respond(request: Request):
        if len(questions(server)) <= 11:
            return answer(request)
        if name == "redirect":
            return Response(307, b"", {"Location": f"{other.url}/chat/completions"})
        return Raw(dribble() if name == "slow" else chain([head()], repeat(b" " * 2**16, 9_000)))

    server.respond = respond
    words, more = FAULTS[name]
    assert evaluate(*more) == 2
    said = capsys.readouterr().err
    assert len([line for line in said.splitlines() if words.format(host=server.host, other=other.host) in line]) == 1
    assert "Traceback" not in said
    assert KEY not in said
    assert other.requests == []
    asked = [json.dumps(request.content) for request in questions(server)]
    assert len(asked) == len(set(asked)) < QUESTIONS
    server.respond = answer
    assert evaluate("--set", f"max_questions={QUESTIONS - 11}") == 0
    assert len(questions(server)) == len(asked) + QUESTIONS - 11
    assert other.requests == []
    no_key_in(tmp_path)


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf"])
def test_a_deadline_that_is_none(server, evaluate, capsys, seconds):
    assert evaluate("--set", f"deadline={seconds}") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"deadline is {seconds!r}; it is a number above 0" in said
    assert server.requests == []


@pytest.mark.parametrize("command", ["evaluate", "run"])
def test_the_deadline_is_among_the_settings(capsys, command):
    assert main([command, "first", "--set", "help"]) == 0
    printed = capsys.readouterr().out
    assert "deadline " in printed
    assert "Seconds that a question to a model behind a server may" in printed


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
