"""What servers want in a question, and what they answer in place of a text: fields and words of real ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from audio_compositionality.encoders.base import WITHOUT_TEXT, ModelError, given_questions
from audio_compositionality.encoders.language_models.endpoint import EndpointError
from audio_compositionality.encoders.loading.registry import load_model
from audio_compositionality.encoders.options import LanguageOptions
from audio_compositionality.support.retries import WAITS

from ...clips import each
from .endpoint_server import (
    LoopbackEndpoint,
    Request,
    Response,
    StillClock,
    clips_of,
    completion,
    logprobs,
    model_of,
    prompts_of,
    refusal,
)


def response(content: Any, status: int = 200) -> Response:
    return Response(status, json.dumps(content).encode())


def error_of(server: LoopbackEndpoint, **options: Any) -> EndpointError:
    """The error of one question."""
    with pytest.raises(EndpointError) as caught:
        model_of(server, **options).answer(each(clips_of(1)), ["a"])
    assert str(caught.value).startswith(f"'endpoint:tiny@{server.host}")
    return caught.value


# What servers want


LIMITS = {"max_tokens", "max_completion_tokens"}
OPENAI = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
WANTS: list[tuple[str, str, str, str | dict[str, str], Callable[[Request], bool]]] = [
    ("token_limit_name", "max_tokens", "max_completion_tokens", OPENAI, lambda asked: "max_tokens" not in asked.body),
    (
        *("token_limit_name", "max_completion_tokens", "max_tokens"),
        "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not ...'}]",
        lambda asked: "max_completion_tokens" not in asked.body,
    ),
    ("token_limit_name", "max_tokens", "none", "no max_tokens", lambda asked: not LIMITS & set(asked.body)),
    (
        *("temperature", "0", "none"),
        {"message": "Only the default (1) value is supported.", "param": "temperature"},
        lambda asked: "temperature" not in asked.body,
    ),
    (
        *("temperature", "0", "0.01", "Invalid params: temperature must be in range (0, +inf)"),
        lambda asked: asked.body["temperature"] == 0.01,
    ),
    (
        *("audio_form", "base64", "data_url", "<400> InvalidParameter: The provided URL does not appear to be valid."),
        lambda asked: data_of(asked, "input_audio", "data").startswith("data:audio/wav;base64,UklGR"),
    ),
    (
        *("audio_form", "base64", "audio_url", "Unknown part type: input_audio; expected audio_url"),
        lambda asked: data_of(asked, "audio_url", "url").startswith("data:audio/wav;base64,UklGR"),
    ),
    (
        *("audio_form", "data_url", "base64", "Incorrect padding"),
        lambda asked: data_of(asked, "input_audio", "data").startswith("UklGR"),
    ),
    (
        *("audio_form", "audio_url", "base64", "unsupported content[].type"),
        lambda asked: data_of(asked, "input_audio", "data").startswith("UklGR"),
    ),
]
"""Setting, value that a server refuses and value that it takes, its words or its error, and what it takes.

The words are those of OpenAI, vLLM, a made-up server, OpenAI, GigaChat, DashScope, vLLM (2) and llama.cpp.
"""


def data_of(request: Request, kind: str, name: str) -> str:
    """The sound of a question as text; empty where it is in a part of another kind."""
    part = request.content[0]
    return part[kind][name] if part["type"] == kind else ""


@pytest.mark.parametrize(("setting", "refused", "taken", "error", "wanted"), WANTS)
def test_an_error_names_the_setting_with_which_the_server_answers(
    server: LoopbackEndpoint, setting: str, refused: str, taken: str, error: Any, wanted: Callable[[Request], bool]
):
    no = refusal(400, error) if isinstance(error, str) else response({"error": error}, 400)
    server.respond = lambda request: completion("B") if wanted(request) else no
    assert f"--set {setting}=" in str(error_of(server, **LanguageOptions.read([f"{setting}={refused}"])))
    model = model_of(server, **LanguageOptions.read([f"{setting}={taken}"]))
    assert model.answer(each(clips_of(1)), ["a"]) == ["B"]


def test_settings_that_change_answers_are_in_the_id_and_stay(server: LoopbackEndpoint):
    for texts, suffix in (
        (["temperature=none"], "@tokens=1024+temperature=none"),
        (["temperature=0.5"], "@tokens=1024+temperature=0.5"),
        (["token_limit_name=none", "temperature=none"], "@tokens=none+temperature=none"),
        (["token_limit_name=max_completion_tokens", "audio_form=audio_url"], "@tokens=1024"),
    ):
        model = model_of(server, **LanguageOptions.read(texts))
        assert model.with_new_tokens(1024).card.id == f"endpoint:tiny@{server.host}{suffix}"
        assert model.with_new_tokens(1024).options.changed(max_new_tokens=16) == model.options


@pytest.mark.parametrize(
    ("status", "words", "advice"),
    [
        (
            400,
            "This model's maximum context length is 4096 tokens. However, you requested 7500 tokens in the messages",
            "give shorter clips, or another limit on tokens (--set max_new_tokens=...)",
        ),
        (
            400,
            "Could not finish the message because max_tokens or model output limit was reached.",
            "another limit on tokens (--set max_new_tokens=...)",
        ),
        (404, "No endpoints found that support input audio", "or a setup of the server, that takes sound"),
        (400, "Audio input modality is not enabled for models/some", "takes sound"),
        (400, "Invalid 'messages[1]'. Content blocks are expected to be either text or image_url type.", "audio_form="),
        (400, "This model only support stream mode, please enable the stream parameter", "only streams its answers"),
        # What passes by itself is no setting's fault, and neither is a wrong key.
        (429, "too many max_tokens a minute", "run the same command later"),
        (401, "this key has no temperature", "the environment variable"),
    ],
)
def test_words_of_servers_and_what_to_do(server: LoopbackEndpoint, status: int, words: str, advice: str):
    server.respond = lambda request: refusal(status, words)
    assert advice in str(error_of(server))


def test_a_server_that_wants_sound_is_not_told_the_events_as_text(server: LoopbackEndpoint):
    words = "This model requires that either input content or output modality contain audio."
    raw = json.dumps({"error": {"message": words, "param": "model", "code": "invalid_value"}})
    behind = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}}
    for refused in (refusal(400, words), response(behind, 400), response(behind)):
        server.respond = lambda request, refused=refused: (  # type: ignore[misc]
            refused if isinstance(request.content, str) else completion("B")
        )
        with pytest.raises(EndpointError) as caught:
            load_model(f"events-as-text:{server.name}")
        assert f"({words})" in str(caught.value)
        assert "leave out events-as-text: and detected-as-text:" in str(caught.value)


# Errors within a reply


def error_within(code: Any, message: str = "Provider returned error") -> dict[str, Any]:
    return {"error": {"message": message, "code": code}}


@pytest.mark.parametrize(
    "content",
    [
        *(error_within(code) for code in ("429", 529)),
        {"choices": [{"finish_reason": "error", "message": {"content": "B"}, **error_within(503)}]},
        {"object": "error", "message": "Provider returned error", "code": 502},
    ],
    ids=lambda content: json.dumps(content)[:50],
)
def test_an_error_in_a_reply_that_can_pass_is_tried_again(
    server: LoopbackEndpoint, clock: StillClock, content: dict[str, Any]
):
    server.faults = [response(content)] * 4
    assert model_of(server).answer(each(clips_of(1)), ["a"]) == ["re: a"]
    assert clock.waits == list(WAITS)
    server.faults = [response(content)] * 5
    error = error_of(server)
    assert f"answered with an error {error.status} (Provider returned error), after 5 tries; run the" in str(error)
    assert error.status in (429, 500, 502, 503, 529)


@pytest.mark.parametrize(
    ("content", "status", "advice"),
    [
        (error_within(400), 400, "read the server's message"),
        (error_within(401), 401, "the environment variable AUDIO_COMPOSITIONALITY_ENDPOINT_KEY"),
        (error_within(400, "temperature"), 400, "--set temperature=none"),
        (error_within(501), 501, "read the server's message"),
        (error_within("rate_limit"), None, "read the server's message"),
        ({"error": "the model has crashed"}, None, "read the server's message"),
        ({"error": {"code": 42900}}, None, "read the server's message"),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_another_error_in_a_reply_ends_it_at_once(
    server: LoopbackEndpoint, clock: StillClock, content: Any, status: int | None, advice: str
):
    server.respond = lambda request: response(content)
    error = error_of(server)
    assert "the server answered with an error" in str(error)
    assert advice in str(error)
    assert "URL" not in str(error)
    assert error.status == status
    assert (len(server.requests), clock.waits) == (1, [])


# Replies without a text

THOUGHT = "A bell is heard. The answer is B."
CALL = [{"id": "c", "type": "function", "function": {"name": "answer", "arguments": '{"letter": "B"}'}}]
HIDDEN = {"completion_tokens": 16, "completion_tokens_details": {"reasoning_tokens": 16}}
REPLIES: dict[str, tuple[Response, str, str | None]] = {
    "reasoning": (completion(None, message={"reasoning": THOUGHT}), "", "reasoning"),
    "reasoning_content": (completion("\n", message={"reasoning_content": THOUGHT}), "\n", "reasoning"),
    "hidden reasoning": (completion("", finish="length", usage=HIDDEN), "", "reasoning"),
    "parts": (completion([{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]), "", "reasoning"),
    "text of a thought": (completion([{"type": "reasoning", "text": "A"}, {"type": "text", "text": "B"}]), "B", None),
    "reasoning and answer": (completion("B", message={"reasoning": THOUGHT}, usage=HIDDEN), "B", None),
    "tool call": (completion(None, finish="tool_calls", message={"tool_calls": CALL}), "", "tool_calls"),
    "tool call after reasoning": (
        completion(None, message={"tool_calls": CALL, "reasoning": THOUGHT}),
        "",
        "tool_calls",
    ),
    "tool call and answer": (completion("B", message={"tool_calls": CALL}), "B", None),
    "transcript": (
        completion(None, message={"audio": {"id": "a", "transcript": "B.", "data": ""}}),
        "B.",
        "transcript",
    ),
    "transcript and answer": (completion("A", message={"audio": {"transcript": "B."}}), "A", None),
    "refusal": (completion(None, message={"refusal": "No.", "reasoning": THOUGHT}), "No.", None),
    "filtered": (completion(None, finish="content_filter: RECITATION", message={"reasoning": THOUGHT}), "", None),
    "nothing": (completion(None, message={"reasoning": "", "tool_calls": [], "audio": None}), "", None),
}


@pytest.mark.parametrize("name", REPLIES)
def test_what_comes_in_place_of_a_text_is_known(server: LoopbackEndpoint, name: str):
    reply, text, only = REPLIES[name]
    server.faults = [reply]
    ((_, (said, facts)),) = model_of(server).answers(given_questions(each(clips_of(1)), prompts_of(1)), size=1)
    assert (said, facts.get("only")) == (text, only)
    assert ("refused" in facts) == (name in ("refusal", "filtered"))
    assert only is None or only in WITHOUT_TEXT


def test_letters_are_not_scored_by_the_first_token_of_a_thought(server: LoopbackEndpoint):
    server.faults = [completion(None, message={"reasoning": "A"}, logprobs=logprobs(A=-0.1, B=-3.0))]
    with pytest.raises(ModelError, match=r"cannot score by letters: .* no final answer \(reasoning only\); score by"):
        model_of(server).score_options(each(clips_of(1)), ["a"], [["x", "y"]], "letters")
