"""A model behind a server: what is sent, what comes back, and what goes wrong on the way."""

from __future__ import annotations

import json
import logging
import math
import re
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audio_compositionality.encoders.base import ClipError, GivenClip, ModelError, given_questions
from audio_compositionality.encoders.language_models.endpoint import (
    Clock,
    EndpointError,
    EndpointModel,
    load_endpoint,
)
from audio_compositionality.encoders.loading.names import KEY_VARIABLE, check_name, parse_endpoint
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import REASON_TOKENS, EncoderOptions, LanguageOptions
from audio_compositionality.support.errors import InputError
from audio_compositionality.support.retries import LONGEST_WAIT, WAITS

from ...clips import each
from .endpoint_server import (
    Clip,
    Cut,
    LoopbackEndpoint,
    Raw,
    Request,
    Response,
    StillClock,
    alone,
    clips_of,
    completion,
    head,
    logprobs,
    model_of,
    prompts_of,
    refusal,
)

KEY = "sk-9f/8e+7d'6c.5b-4a"
"""Looks different within a URL and, but for the quote, the same in JSON."""

RATE = 32_000


def shown(model: EndpointModel, error: BaseException | None = None) -> str:
    """Everything that somebody could print of a model and of an error, with the variables on the way to it."""
    texts = [repr(model), str(model), repr(model.card), repr(vars(model))]
    if error is not None:
        assert error.__traceback__ is not None
        # Without the test, which knows the key.
        inner = error.__traceback__.tb_next
        trace = traceback.TracebackException(type(error), error, inner, capture_locals=True)
        assert "endpoint.py" in "".join(trace.format())
        texts += [str(error), repr(error), repr(error.__context__), repr(error.__cause__), *trace.format()]
    return "\n".join(texts)


# What is sent


def test_the_sound_is_the_clip_to_16_bits_at_the_rate_of_the_card_and_stands_before_the_text(server: LoopbackEndpoint):
    clip = Clip(np.concatenate([np.linspace(-1, 1, 999), [1.0, -1.0, 0.5 / 32_768]]).astype(np.float32))
    model = model_of(server, concurrency=1)
    assert model.answer(each([clip]), ["How many?"]) == ["re: How many?"]
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert [part["type"] for part in request.content] == ["input_audio", "text"]
    assert request.content[0]["input_audio"]["format"] == "wav"
    samples, rate = request.sound()
    assert rate == model.card.sample_rate == RATE
    assert np.array_equal(samples, np.clip(np.rint(clip.waveform.astype(np.float64) * 32_768), -32_768, 32_767))
    said = {name: value for name, value in request.body.items() if name != "messages"}
    assert said == {"model": "tiny", "temperature": 0, "max_tokens": 16, "stream": False}
    model.answer(each([Clip(np.zeros(800, np.float32), 8_000)]), ["b"])
    assert [len(server.requests[-1].sound()[0]), server.requests[-1].sound()[1]] == [3_200, RATE]
    # One at a time, in order, and without sound the text alone.
    assert model.answer([], []) == []
    assert model.answer(*alone(["one", "two"])) == ["re: one", "re: two"]
    assert [request.content for request in server.requests[2:]] == ["one", "two"]
    assert server.most_at_once == 1


def test_answers_come_in_order_whatever_comes_first_and_so_many_are_asked_at_a_time(server: LoopbackEndpoint):
    together = threading.Barrier(4)

    def respond(request: Request) -> Response:
        # Only four at a time get past it: fewer would wait for ever.
        together.wait(20)
        number = int(request.prompt.split()[1])
        threading.Event().wait(0.002 * (12 - number))
        return completion(str(number))

    server.respond = respond
    model = model_of(server, concurrency=4)
    assert model.answer(each(clips_of(12)), prompts_of(12)) == [str(number) for number in range(12)]
    assert server.most_at_once == 4
    assert len(server.requests) == 12


def test_what_cannot_be_asked_is_refused_before_anything_is_sent(server: LoopbackEndpoint):
    model, two = model_of(server), each(clips_of(2))
    no_sound = each([Clip(np.array([0, np.nan], np.float32))])
    for error, match, ask in (
        (InputError, "1 prompts but 2 clips", lambda: model.answer(two, ["a"])),
        (InputError, "text 1 is empty", lambda: model.answer(two, ["a", " "])),
        (ClipError, "row 0: the waveform holds nan", lambda: model.answer(no_sound, ["a"])),
        (ModelError, "prompt 0 has 2 clips", lambda: model.answer([clips_of(2)], ["a"])),
        (ModelError, "cannot score by options: a", lambda: model.score_options(two, "ab", [["x", "y"]] * 2, "options")),
        (InputError, "2 prompts but 1 lists of options", lambda: model.score_options(two, "ab", [["x"]], "letters")),
    ):
        with pytest.raises(error, match=match):
            ask()
    assert not server.requests


# What comes back


def test_empty_answers_refusals_and_cut_ones_stay_as_they_are_and_are_counted(server: LoopbackEndpoint):
    server.faults = [
        completion(""),
        completion(None),
        completion(" \n"),
        completion(None, message={"refusal": "I cannot help with that."}),
        completion("The an", finish="length"),
        completion("", finish="content_filter"),
        completion([{"type": "text", "text": "B"}, {"type": "text", "text": "."}]),
        completion("half \ud83d a character"),
        completion(" (C) "),
    ]
    model = model_of(server, concurrency=1)
    replies = dict(model.answers(given_questions(each(clips_of(9)), prompts_of(9)), size=9))
    facts = {place: beside for place, (_, beside) in replies.items()}
    assert [replies[place][0] for place in range(9)] == [
        "", "", " \n", "I cannot help with that.", "The an", "", "B.",
        "half \N{REPLACEMENT CHARACTER} a character", " (C) ",
    ]  # fmt: skip
    assert sum("refused" in one for one in facts.values()) == 2
    assert [place for place, one in facts.items() if one["finish_reason"] == "length"] == [4]


def test_who_has_answered_is_known_and_a_change_is_told(server: LoopbackEndpoint):
    server.faults = [
        completion(model="tiny-2026-01", system_fingerprint="fp_1"),
        completion(model="tiny-2026-01", system_fingerprint="fp_2"),
    ]
    model = model_of(server, concurrency=1)
    told = dict(model.answers(given_questions(each(clips_of(2)), prompts_of(2)), size=9))
    assert [told[place][1]["fingerprint"] for place in range(2)] == ["fp_1", "fp_2"]
    server.faults = [completion(model="tiny-2026-02")]
    with pytest.warns(UserWarning, match="answers as tiny-2026-01 and as tiny-2026-02"):
        model.answer(each(clips_of(1)), ["a"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.answer(each(clips_of(1)), ["a"])


# What goes wrong


NO_COMPLETIONS = [
    b"<html>Welcome</html>", b"3", b"\xff\xfe", b"{}", b'{"choices": []}', b'{"choices": "A"}', b'{"choices": [1]}',
    b'{"choices": [{"index": 0}]}', b'{"choices": [{"message": "A"}]}',
    b"[" * 100_000, b'{"x":' * 900 + b"1" + b"}" * 900,
]  # fmt: skip
LISTED = b'[{"error": {"code": 400, "message": "Resource exhausted"}}]'
"""An error as Google's servers word it."""

NO_PLACES = ("http://[::1", "http://h:99999/", "http://a b/")
WORDS = "Sound is\n\x1b[31mnot " + "supported " * 99


@pytest.mark.parametrize(
    ("fault", "match"),
    [
        *((Response(body=body), r"answer is not a chat completion .*up to /v1") for body in NO_COMPLETIONS),
        (Response(body=b'{"error":' * 600 + b"1" + b"}" * 600), r"answered with an error \(1\); read the server's"),
        (Response(body=b"plain", headers={"Content-Encoding": "gzip"}), "completion .it cannot be decompressed"),
        *((refusal(status, WORDS), rf"answered {status} \(Sound is .*{advice}") for status, advice in (
            (400, "another model or shorter clips"),
            (401, f"set the environment variable {KEY_VARIABLE} to a key"),
            (404, "check the model's name and the URL"),
            (408, "read the server's message"),
            (413, "shorter clips"),
        )),
        (refusal(401, "missing key"), r"401 \(missing key\); set the environment variable"),
        # Pages of gateways are not shown.
        (Response(405, b"<html>Not allowed</html>", {"Content-Type": "text/html"}), "405; read the server's"),
        (Response(400, LISTED, {"Content-Type": "application/json"}), r"answered 400 \(Resource exhausted\)"),
        *((Response(400, b'{"error":' * deep + b"1" + b"}" * deep), "server answered 400") for deep in (950, 10**5)),
        (Raw([head(400, Content_Length="999"), b"no such sound"]), r"the server answered 400 \(no such sound\)"),
        (
            refusal(429, "quota of the day", Retry_After=str(int(LONGEST_WAIT) + 1)),
            r"answered 429 \(quota of the day\); it asks to wait 301 s; run the same",
        ),
        *((Response(307, b"", {"Location": place}), "the server") for place in NO_PLACES),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_what_is_no_answer_is_one_clear_error_at_once(
    server: LoopbackEndpoint, clock: StillClock, fault: Any, match: str, monkeypatch: pytest.MonkeyPatch
):
    if "environment" not in match:
        monkeypatch.setenv(KEY_VARIABLE, KEY)
    server.faults = [fault]
    with pytest.raises(EndpointError, match=match) as caught:
        model_of(server).answer(each(clips_of(1)), ["a"])
    said = str(caught.value)
    assert said.startswith(f"'endpoint:tiny@{server.host}'")
    assert said.isprintable()
    assert len(said) < 500
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert isinstance(caught.value, ModelError)
    if (status := re.search(r"answered (\d+)", match)) is not None:
        assert caught.value.status == int(status[1])
    assert (len(server.requests), clock.waits) == (1, [])


def test_a_server_that_is_not_there_and_one_that_must_not_be_asked(
    server: LoopbackEndpoint, monkeypatch: pytest.MonkeyPatch
):
    server.close()
    with pytest.raises(EndpointError, match=r"cannot be reached .*refused.*, after 5 tries; check the URL"):
        model_of(server).answer(each(clips_of(1)), ["a"])
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(EndpointError, match=r"HF_HUB_OFFLINE is set.*not on this machine.*; unset HF_HUB_OFFLINE"):
        load_model("endpoint:m@http://server.invalid:8000/v1").answer(each(clips_of(1)), ["a"])


def test_a_server_on_this_machine_is_asked_offline_and_past_proxies(
    server: LoopbackEndpoint, monkeypatch: pytest.MonkeyPatch
):
    """A proxy would take the question, and the key, to another machine."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    proxy = LoopbackEndpoint(StillClock())
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        for either in (name, name.lower()):
            monkeypatch.setenv(either, f"http://{proxy.host}")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name)
    try:
        assert model_of(server).answer(each(clips_of(1)), ["a"]) == ["re: a"]
    finally:
        proxy.close()
    assert (len(server.requests), proxy.requests) == (1, [])


@pytest.mark.parametrize(
    "fault",
    [refusal(429), refusal(500), refusal(504), Cut(), Cut(after=0)],
    ids=["429", "500", "504", "cut", "nothing"],
)
def test_what_can_pass_is_tried_again_after_the_same_waits(
    server: LoopbackEndpoint, clock: StillClock, fault: Response | Cut, caplog: pytest.LogCaptureFixture
):
    server.faults = [fault] * 4
    model = model_of(server)
    with caplog.at_level(logging.WARNING):
        assert model.answer(each(clips_of(1)), ["a"]) == ["re: a"]
    assert clock.waits == list(WAITS)
    assert len(server.requests) == 5
    assert len({json.dumps(request.body) for request in server.requests}) == 1
    assert "asked again after 1 s" in caplog.text or "all questions wait 1 s" in caplog.text
    server.faults = [fault] * 5
    with pytest.raises(EndpointError, match="after 5 tries"):
        model.answer(each(clips_of(1)), ["a"])
    assert len(server.requests) == 10


def test_a_server_that_asks_to_wait_is_left_alone_by_all(server: LoopbackEndpoint, clock: StillClock):
    def respond(request: Request) -> Response:
        if clock.now() < 40:
            return refusal(429, "slow down", Retry_After=str(int(40 - clock.now())))
        return completion(request.prompt)

    server.respond = respond
    model = model_of(server, concurrency=4)
    assert model.answer(each(clips_of(20)), prompts_of(20)) == prompts_of(20)
    early = [request.moment for request in server.requests if request.moment < 40]
    # Those that were under way when the first was refused.
    assert early == [0] * len(early)
    assert 1 <= len(early) <= 4
    # An answer of then may be read later, which is no sooner on this clock.
    assert set(clock.waits) == {40}


@pytest.mark.parametrize(("status", "tries"), [(429, 10), (500, 5)])
def test_rate_limits_while_others_are_answered_do_not_count(server: LoopbackEndpoint, status: int, tries: int):
    """A server that refuses one question and answers another after each refusal. Not for ever, though: it may be this
    question that it never answers. And an answer to another question says nothing about one over which it stumbles."""
    refused = threading.Semaphore(0)

    def respond(request: Request) -> Response:
        if request.prompt == "question 0":
            refused.release()
            # Until the other is answered.
            time.sleep(0.05)
            return refusal(status, "slow down")
        refused.acquire(timeout=1)
        return completion("A")

    server.respond = respond
    model = model_of(server, concurrency=2)
    with pytest.raises(EndpointError, match=f"slow down.*after {tries} tries"):
        model.answer(*alone(prompts_of(40)))


def test_an_error_wakes_those_who_wait(server: LoopbackEndpoint):
    """With the clock of the machine: a wait of minutes ends when there is nothing more to ask."""
    refused = threading.Event()

    def respond(request: Request) -> Response:
        if request.prompt == "question 0":
            refused.set()
            return refusal(500, "in a while", Retry_After="200")
        refused.wait(20)
        return refusal(400, "no")

    server.respond = respond
    model = model_of(server, concurrency=2, clock=Clock())
    with pytest.raises(EndpointError, match="answered 400"):
        model.answer(each(clips_of(2)), prompts_of(2))


# The key


def test_the_key_goes_to_the_server_and_nowhere_else(
    server: LoopbackEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
):
    """The server knows the key, and says it wherever it can."""
    from urllib.parse import quote

    monkeypatch.setenv(KEY_VARIABLE, f" {KEY}\n")
    quoted = f"Bearer {KEY}, {quote(KEY)}, {quote(KEY, safe='')}, {json.dumps(KEY)}"
    texts = []
    caplog.set_level(logging.DEBUG)
    model = model_of(server, concurrency=1)
    server.faults = [
        refusal(500, quoted),
        completion(quoted, model=quoted, system_fingerprint=KEY),
        completion(None, message={"refusal": quoted}),
        completion(None, message={"audio": {"transcript": quoted}}),
    ]
    with pytest.warns(UserWarning, match=r"answers as Bearer \*\*\*"):
        texts += model.answer(each(clips_of(3)), prompts_of(3))
    model.identify()
    assert set(texts) == {'Bearer ***, ***, ***, "***"'}
    faults: list[Response | Cut] = [refusal(status, f"Incorrect key provided: {quoted}") for status in (400, 401, 429)]
    faults += [Response(body=body.encode()) for body in (KEY, f'{{"error": "{quote(KEY)}"}}', f'{{"{KEY}": 1}}')]
    faults += [Response(403, quoted.encode()), refusal(400, "x" * 190 + KEY), Cut(reset=True)]
    behind = {"error": {"code": 400, "message": "Provider returned error", "metadata": {"raw": quoted}}}
    faults += [Response(body=json.dumps(behind).encode())]
    for fault in faults:
        server.respond = lambda request, fault=fault: fault  # type: ignore[misc]
        with pytest.raises(EndpointError) as caught:
            model.answer(each(clips_of(1)), ["a"])
        texts.append(shown(model, caught.value))
    assert "check the key in the environment variable" in texts[4]
    output = capfd.readouterr()
    everything = "\n".join([*texts, caplog.text, output.out, output.err])
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    for secret in (KEY, quote(KEY), quote(KEY, safe=""), KEY[:8], KEY[-8:]):
        assert secret not in everything


def test_neither_a_part_of_the_key_nor_the_sound_is_shown_of_what_a_server_echoes(
    server: LoopbackEndpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    server.faults = [refusal(401, f"wrong key {KEY[:11]}...{KEY[-9:]} with UklGR{'aB3+' * 50} as input")]
    with pytest.raises(EndpointError) as raised:
        model_of(server).answer(each(clips_of(1)), ["a"])
    assert "(wrong key ***...*** with … as input)" in str(raised.value)


def test_a_short_key_is_a_word_that_a_model_may_say(server: LoopbackEndpoint, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY_VARIABLE, "EMPTY")
    server.faults = [completion("The room is EMPTY."), refusal(400, "key EMPTY")]
    model = model_of(server)
    assert model.answer(each(clips_of(1)), ["a"]) == ["The room is EMPTY."]
    with pytest.raises(EndpointError, match=r"\(key \*\*\*\)"):
        model.answer(each(clips_of(1)), ["a"])


def test_no_other_key_of_the_user_is_sent(server: LoopbackEndpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for variable in ("HF_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.setenv(variable, "hf_secret_of_the_user")
    (tmp_path / "no-token").write_text("hf_secret_of_login")
    model_of(server).answer(each(clips_of(1)), ["a"])
    assert "authorization" not in server.requests[0].headers
    assert "secret" not in json.dumps(server.requests[0].headers)


@pytest.mark.parametrize("key", ["sk-secret\nX-Header: a", "sk secret", "sk-sécret"])
def test_a_key_that_is_none_is_not_shown(server: LoopbackEndpoint, monkeypatch: pytest.MonkeyPatch, key: str):
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(ModelError, match=f"{KEY_VARIABLE} holds a space, a line break") as caught:
        model_of(server)
    assert "cret" not in str(caught.value)


def test_a_key_that_everybody_on_the_way_can_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with pytest.warns(UserWarning, match=f"{KEY_VARIABLE} is sent to gpu.example:8000 unencrypted"):
        EndpointModel(parse_endpoint("endpoint:m@http://gpu.example:8000/v1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for url in ("https://gpu.example", "http://localhost:1", "http://127.0.0.1", "http://[::1]:1"):
            EndpointModel(parse_endpoint(f"endpoint:m@{url}"))
        monkeypatch.delenv(KEY_VARIABLE)
        EndpointModel(parse_endpoint("endpoint:m@http://gpu.example:8000/v1"))


# Names and cards


@pytest.mark.parametrize(
    ("name", "model", "url", "id"),
    [
        ("a/b@http://h", "a/b", "http://h", "a/b@h"),
        ("a@HTTPS://Host.Example:8443/v1/", "a", "https://host.example:8443/v1", "a@host.example:8443"),
        ("@cf/m:free@https://h/x@y/v1", "@cf/m:free", "https://h/x@y/v1", "@cf/m:free@h~314fdf61"),
        ("a@http://[::1]:80/v1", "a", "http://[::1]:80/v1", "a@[::1]:80"),
        ("m@https://h/hunter2/v1", "m", "https://h/hunter2/v1", "m@h~cd2c70a7"),
    ],
)
def test_a_name_says_model_and_server(name: str, model: str, url: str, id: str):
    """Of servers of one host the paths are told apart, and not shown."""
    address = parse_endpoint(f"endpoint:{name}")
    assert (address.model, address.url, address.id) == (model, url, f"endpoint:{id}")


NO_NAMES = {
    "must be endpoint:MODEL@URL": ("", "m", "@http://h", "m@user:hunter2@h", "m@http://a b"),
    "must begin with http:// or https://": ("m@ftp://user:hunter2@h", "m@file:///hunter2"),
    "without user, password": (
        *("m@https://user:hunter2@h/v1", "m@https://hunter2@h", "m@https://h/v1?key=hunter2", "m@https://h/v1#hunter2"),
        "m@https://h\\hunter2@g",
    ),
    "no valid host or port": (
        *("m@https://", "m@https://:80", "m@https://h:99999", "m@https://h:hunter2", "m@https://[::1"),
    ),
}


@pytest.mark.parametrize("match", NO_NAMES)
@pytest.mark.parametrize("prefix", ["", "untrained:", "noise-audio:", "tower:"])
def test_a_name_that_is_none_is_refused_without_its_password(prefix: str, match: str):
    for name in NO_NAMES[match]:
        for use in (check_name, load_model):
            with pytest.raises(ModelError, match=match) as caught:
                use(f"{prefix}endpoint:{name}")
            assert "hunter2" not in str(caught.value)


def test_loading_asks_the_server_what_it_runs(server: LoopbackEndpoint):
    server.respond = lambda request: completion(model="tiny-2026-01-31", system_fingerprint="fp_1")
    check_name(server.name)
    assert not server.requests
    model = load_model(server.name)
    assert isinstance(model, EndpointModel)
    assert model.abilities == {"answer", "score", "read"}
    (request,) = server.requests
    samples, rate = request.sound()
    assert (len(samples), rate, samples.any()) == (RATE, RATE, False)
    assert (model.card.id, model.card.revision) == (f"endpoint:tiny@{server.host}", "tiny-2026-01-31")
    assert (model.card.output_dim, model.card.weights_sha256, model.device) == (None, None, "server")
    for says in ("tiny", None, ""):
        server.respond = lambda request, says=says: completion(model=says)  # type: ignore[misc]
        assert load_endpoint(server.name, takes_audio=False).card.revision == "unknown"
        assert isinstance(server.requests[-1].content, str)


def test_a_language_model_that_is_told_the_events_need_not_take_sound(server: LoopbackEndpoint):
    def deaf(request: Request) -> Response:
        return completion("A") if isinstance(request.content, str) else refusal(400, "no audio can be given")

    server.respond = deaf
    with pytest.raises(EndpointError, match="no audio can be given"):
        load_model(server.name)
    model = load_model(f"events-as-text:{server.name}")
    assert "labels" in model.abilities
    events = [{"onset": 0.0, "offset": 1.0, "label": "bell"}]
    row = {"id": "a", "duration": 2.0, "events": events}
    assert model.answer([[GivenClip(np.zeros(0, np.float32), RATE, row)]], ["Which?"]) == ["A"]
    assert "0.00-1.00 s: bell" in server.requests[-1].content


def test_options(server: LoopbackEndpoint):
    model = load_endpoint(server.name, LanguageOptions(max_new_tokens=REASON_TOKENS, batch_size=3))
    assert model.card.id == f"endpoint:tiny@{server.host}@tokens=1024"
    assert (model.batch_size, model.questions_per_call) == (3, 24)
    model.answer(each(clips_of(1)), ["a"])
    assert {request.body["max_tokens"] for request in server.requests} == {1024}
    for options in (EncoderOptions(layer=1), LanguageOptions(precision="bfloat16"), LanguageOptions(spread=True)):
        with pytest.raises(ModelError, match="endpoint:tiny"):
            load_model(server.name, options=options)


# Letters


def scores_of(
    server: LoopbackEndpoint, *answers: Response, options: int = 3
) -> tuple[list[list[float]], dict[int, dict[str, Any]]]:
    server.faults = list(answers)
    model = model_of(server, concurrency=1)
    count = len(answers)
    asked = given_questions(each(clips_of(count)), prompts_of(count), [["x"] * options] * count)
    told = dict(sorted(model.answers(asked, "letters", size=8)))
    return [scores for scores, _ in told.values()], {place: dict(facts) for place, (_, facts) in told.items()}


def test_letters_are_scored_by_the_first_token(server: LoopbackEndpoint):
    tokens = {"B": math.log(0.5), " B": math.log(0.1), "A": math.log(0.2), "▁C": math.log(0.1), "b": math.log(0.05)}
    rows, facts = scores_of(
        server,
        completion("B", finish="length", logprobs=logprobs(**tokens)),
        # By rounding the two have more than 1.
        completion("A", logprobs=logprobs(**{"A": 0.0, " A": -17.0, "B": -18.0, "C": -20.0})),
        completion(None, message={"refusal": "no"}),
    )
    assert rows[0] == pytest.approx([math.log(0.2), math.log(0.6), math.log(0.1)], rel=1e-12)
    assert rows[1] == [0.0, -18.0, -20.0]
    assert np.isnan(rows[2]).all()
    assert facts == {0: {}, 1: {}, 2: {"refused": True}}
    request = server.requests[0]
    assert (request.body["logprobs"], request.body["top_logprobs"], request.body["max_tokens"]) == (True, 20, 1)
    assert request.content[0]["type"] == "input_audio"
    server.faults = [completion("A", logprobs=logprobs(A=0.0, B=-18.0))]
    assert model_of(server).score_options([[]], ["a"], [["x", "y"]], "letters") == [[0.0, -18.0]]
    assert server.requests[-1].content == "a"


def test_a_server_without_log_probabilities(server: LoopbackEndpoint):
    first = {"token": "A", "logprob": 0.0}
    for listed in (None, {"content": []}, {"content": [{**first, "top_logprobs": None}]}, {"tokens": ["A"]}):
        with pytest.raises(ModelError, match=r"cannot score by letters: the server returned no log-probabilities"):
            scores_of(server, completion("A", logprobs=listed))


def test_letters_that_are_not_listed_have_an_upper_bound(server: LoopbackEndpoint):
    rows, facts = scores_of(
        server,
        completion(logprobs=logprobs(A=math.log(0.9), The=math.log(0.05))),
        completion(logprobs=logprobs(A=math.log(0.6), The=math.log(0.1))),
        completion(logprobs=logprobs(A=0.0, B=-9999.0)),
    )
    assert rows[0] == pytest.approx([math.log(0.9), math.log(0.05), math.log(0.05)])
    assert rows[1] == pytest.approx([math.log(0.6), math.log(0.1), math.log(0.1)])
    assert rows[2] == [0.0, -9999.0, -9999.0]
    assert facts == {0: {"unlisted": 2}, 1: {"unlisted": 2}, 2: {"unlisted": 1}}


@pytest.mark.parametrize("value", ["1" + "0" * 400, "-1" + "0" * 400, '"-1"', "null"])
def test_log_probabilities_that_are_none_are_left_out(server: LoopbackEndpoint, value: str):
    other = json.dumps(logprobs(A=-0.1)["content"][0]["top_logprobs"])
    listed = f'{{"token": "B", "logprob": {value}}}, {other[1:-1]}'
    choice = f'{{"message": {{"content": "A"}}, "logprobs": {{"content": [{{"top_logprobs": [{listed}]}}]}}}}'
    server.faults = [Response(body=f'{{"choices": [{choice}]}}'.encode())]
    row = model_of(server).score_options(each(clips_of(1)), ["a"], [["x", "y"]], "letters")[0]
    # B has what A leaves over, at most.
    assert row == pytest.approx([-0.1, math.log(1 - math.exp(-0.1))])
