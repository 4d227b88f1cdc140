"""What a run asks of a model behind a server: longer answers, and how many questions it wants in a call."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio_compositionality.encoders.base import ClipError, given_questions
from audio_compositionality.encoders.controls import CONTROLS, Controlled
from audio_compositionality.encoders.language_models.endpoint import EndpointError, EndpointModel
from audio_compositionality.encoders.loading.names import parse_endpoint
from audio_compositionality.encoders.options import LanguageOptions
from audio_compositionality.evaluator.run.evaluate import evaluate_models
from audio_compositionality.evaluator.run.options import RunOptions

from ...evaluator.run.toys import Orders, Questions
from .endpoint_server import (
    LoopbackEndpoint,
    Request,
    Response,
    alone,
    completion,
    logprobs,
    model_of,
    prompts_of,
    refusal,
)


def test_longer_answers_are_those_of_another_id_and_settings_stay():
    options = LanguageOptions(batch_size=3, deadline=5)
    model = EndpointModel(parse_endpoint("endpoint:m@http://127.0.0.1:9/v1"), options)
    longer = Controlled(model, CONTROLS["without-audio"]).with_new_tokens(1024)
    inside = longer.model
    assert isinstance(inside, EndpointModel)
    assert longer.card.id == "without-audio:endpoint:m@127.0.0.1:9@tokens=1024"
    assert (inside.new_tokens, inside.batch_size, inside.deadline) == (1024, 3, 5)
    assert (model.new_tokens, model.questions_per_call) == (16, 24)
    assert inside.with_new_tokens(16).card.id == model.card.id == "endpoint:m@127.0.0.1:9"


# A stream over all questions of a task


@pytest.fixture
def scored(server: LoopbackEndpoint) -> Callable[..., list[str]]:
    """Function of a model and a store: its answers to 200 questions, which are four calls."""

    def run(model: Any, store: Path | None = None, data: Questions | None = None, **options: Any) -> list[str]:
        task = Orders()
        how = RunOptions(progress=False, cache=store, **options)
        evaluate_models([model], data or Questions(asked=ASKED), [task], how)
        return task.answers

    return run


ASKED = 200


def number_of(request: Request) -> int:
    """Of the row that a question is about."""
    found = re.search(r"\br(\d+)\?", request.prompt)
    assert found is not None
    return int(found[1])


def texts_of(first: int, count: int = ASKED) -> list[str]:
    return [f"answer {number}" for number in range(first, first + count)]


FIRST_ASKED = next(int(row["id"][1:]) for row in Questions(asked=ASKED).rows if row["split"] == "test")


@pytest.mark.slow
@pytest.mark.parametrize("prefix", ["", "without-audio:", "events-as-text:"])
def test_slow_questions_keep_no_other_waiting(server: LoopbackEndpoint, scored, tmp_path: Path, prefix: str):
    """Seven of eight questions at the beginning are answered when all others are: each holds a slot, and no more."""
    slow = set(range(FIRST_ASKED, FIRST_ASKED + 7))
    others, all_slow, is_late = threading.Event(), threading.Event(), []
    begun: list[int] = []
    answered: list[int] = []

    def respond(request: Request) -> Response:
        number = number_of(request)
        if number in slow:
            with server.lock:
                begun.append(number)
                if len(begun) == len(slow):
                    all_slow.set()
            is_late.append(not others.wait(30))
        else:
            # Else all others could be answered on a busy machine before the last of the slow ones arrives.
            all_slow.wait(30)
            with server.lock:
                answered.append(number)
                if len(answered) == ASKED - len(slow):
                    others.set()
        return completion(f"answer {number}")

    server.respond = respond
    data = Questions(asked=ASKED)
    for row in data.rows:
        row |= {"events": [], "duration": 1.0}
    model: Any = model_of(server)
    if prefix:
        model = Controlled(model, CONTROLS[prefix[:-1]])
    assert scored(model, tmp_path, data) == texts_of(FIRST_ASKED)
    assert is_late == [False] * 7
    assert server.most_at_once == 8
    assert not [*tmp_path.rglob("*.begun")]


@pytest.mark.slow
def test_what_is_stored_does_not_depend_on_what_comes_first(server: LoopbackEndpoint, scored, tmp_path: Path):
    order = np.random.default_rng(0).permutation(ASKED)

    def respond(request: Request) -> Response:
        number = number_of(request)
        server.closing.wait(0.005 * order[number - FIRST_ASKED] / ASKED)
        finish = "length" if number % 5 == 0 else "stop"
        return completion(f"answer {number}", finish=finish, system_fingerprint=f"fp {number % 3}")

    server.respond = respond
    stored = []
    for concurrency in (1, 8):
        folder = tmp_path / str(concurrency)
        with pytest.warns(UserWarning, match="40 of 200 answers were cut"):
            assert scored(model_of(server, concurrency=concurrency), folder) == texts_of(FIRST_ASKED)
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        stored.append({str(path.relative_to(folder)): path.read_bytes() for path in files})
        assert server.most_at_once <= concurrency
    assert stored[0] == stored[1]
    assert len(stored[0]) == 1 + 13


@pytest.mark.slow
def test_likelihoods_come_through_a_narrower_window_as_well(server: LoopbackEndpoint, scored):
    def respond(request: Request) -> Response:
        of_a = -0.1 if number_of(request) % 2 else -3.0
        return completion("A", logprobs=logprobs(A=of_a, B=-1.0))

    server.respond = respond
    settings = {"scoring": "letters", "orders": 2}
    answers = scored(model_of(server), data=Questions(asked=40), settings=settings, batch_size=2)
    assert answers == [letter for number in range(FIRST_ASKED, FIRST_ASKED + 40) for letter in "BA"[number % 2] * 2]
    assert server.most_at_once <= 2


def test_no_answer_that_came_is_lost_by_an_error(server: LoopbackEndpoint, scored, tmp_path: Path):
    """Of one question in the middle, while the others are answered in any order."""

    def respond(request: Request) -> Response:
        number = number_of(request)
        server.closing.wait(0.001 * (number * 7 % 5))
        return refusal(400, "no such sound") if number == 103 else completion(f"answer {number}")

    server.respond = respond
    with pytest.raises(EndpointError, match="no such sound"):
        scored(model_of(server), tmp_path)
    asked = {number_of(request) for request in server.requests}
    assert len(asked) == len(server.requests) < ASKED
    server.requests.clear()
    server.respond = lambda request: completion(f"answer {number_of(request)}")
    assert scored(model_of(server), tmp_path) == texts_of(FIRST_ASKED)
    again = {number_of(request) for request in server.requests}
    assert again == {*range(FIRST_ASKED, FIRST_ASKED + ASKED)} - asked | {103}
    assert len(server.requests) == len(again)


def test_answers_are_kept_while_clips_are_read(server: LoopbackEndpoint, scored, tmp_path: Path):
    """Whatever ends the process then, what has come is there: the answers are kept by those who wait for them."""
    kept: list[Path] = []

    class Slow(Questions):
        def clips(self, wanted=None, *, keep_invalid=False):
            for clip in super().clips(wanted, keep_invalid=keep_invalid):
                deadline = time.monotonic() + 30
                # The first of the second shard; that of the first is whole meanwhile.
                while clip.id == f"r{FIRST_ASKED + 16}/audio" and not kept and time.monotonic() < deadline:
                    kept.extend(tmp_path.rglob("0*.json"))
                    time.sleep(0.01)
                yield clip

    server.respond = lambda request: completion(f"answer {number_of(request)}")
    assert scored(model_of(server), tmp_path, Slow(asked=20), batch_size=2) == texts_of(FIRST_ASKED, 20)
    assert len(kept) == 1


def test_clips_that_cannot_be_asked_about_are_left_out_and_no_answer_is_paid_for_twice(
    server: LoopbackEndpoint, scored, tmp_path: Path
):
    class Damaged(Questions):
        def clips(self, wanted=None, *, keep_invalid=False):
            for clip in super().clips(wanted, keep_invalid=keep_invalid):
                number = int(clip.id[1:].split("/")[0])
                nothing = np.full(8, np.nan, np.float32)
                yield replace(clip, waveform=nothing) if number % 50 == 0 else clip

    data = Damaged(asked=ASKED)
    data.damaged = f"r{FIRST_ASKED + 90}/audio"
    server.respond = lambda request: completion(f"answer {number_of(request)}")
    left = [n for n in range(FIRST_ASKED, FIRST_ASKED + ASKED) if n % 50 and n != FIRST_ASKED + 90]
    with pytest.raises(ClipError, match=r"clip 'r50/audio': the waveform holds nan .*--skip-invalid leaves it out"):
        scored(model_of(server), tmp_path, data)
    answers = scored(model_of(server), tmp_path, data, skip_invalid=True)
    assert answers == [f"answer {number}" for number in left]
    assert {number_of(request) for request in server.requests} == set(left)
    assert len(server.requests) == len(left)


def test_a_stream_that_nobody_reads_to_its_end_waits_for_nobody(server: LoopbackEndpoint):
    never = threading.Event()

    def respond(request: Request) -> Response:
        if request.prompt != "question 0":
            server.closing.wait(60)
            never.set()
        return completion("late")

    server.respond = respond
    model = model_of(server)
    stream = model.answers(given_questions(*alone(prompts_of(20))), size=8)
    assert next(stream)[0] == 0
    stream.close()
    assert not never.is_set()
    assert len(server.requests) <= 9
    server.closing.set()
    server.respond = lambda request: completion("soon")
    assert model.answer(*alone(["a"])) == ["soon"]


def test_the_first_error_in_order_is_that_of_a_stream_after_the_answers_under_way(server: LoopbackEndpoint):
    later = threading.Event()

    def respond(request: Request) -> Response:
        number = int(request.prompt.split()[1])
        if number == 2:
            assert later.wait(20)
            time.sleep(0.05)
        if number == 5:
            later.set()
        return refusal(400, f"of {number}") if number in (2, 5) else completion("A")

    server.respond = respond
    told: list[int] = []
    stream = model_of(server, concurrency=4).answers(given_questions(*alone(prompts_of(400))), size=8)
    with pytest.raises(EndpointError, match="of 2"):
        told.extend(index for index, _ in stream)
    assert {0, 1} <= set(told)
    assert len(told) == len(server.requests) - 2 < 390
