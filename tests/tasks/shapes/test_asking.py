"""Prompts of questions: their words, that they are read back exactly, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audio_compositionality.encoders.base import LETTERS
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.shapes.asking import (
    PROMPTS,
    cyclic_orders,
    direct_prompt,
    question_prompt,
    read_prompt,
    shown_orders,
)

QUESTION = "Which of these overlaps in time with the organ?"


def test_the_words_of_a_prompt():
    assert {name: (style.version, style.reasons) for name, style in PROMPTS.items()} == {
        "direct": (1, False),
        "text": (1, False),
        "reason": (1, True),
    }
    assert direct_prompt(QUESTION, ["reed", "glass bell", "brass"]).split("\n") == [
        "Which of these overlaps in time with the organ?",
        "A. reed",
        "B. glass bell",
        "C. brass",
        "Answer with one letter only.",
    ]


def test_the_words_of_a_prompt_to_reason():
    prompt = question_prompt(QUESTION, ["reed", "brass"], "reason")
    assert prompt == f"{QUESTION}\nA. reed\nB. brass\nExplain, then <answer>letter</answer>."
    assert read_prompt(prompt) == (QUESTION, ["reed", "brass"])
    assert question_prompt(QUESTION, ["reed", "brass"], "direct") == direct_prompt(QUESTION, ["reed", "brass"])
    as_text = question_prompt(QUESTION, ["reed", "brass"], "text")
    assert as_text == f"{QUESTION}\nA. reed\nB. brass\nAnswer with the text of one option only, without its letter."
    assert read_prompt(as_text) == (QUESTION, ["reed", "brass"])
    with pytest.raises(InputError, match="unknown prompt 'raeson'; did you mean 'reason'"):
        question_prompt(QUESTION, ["reed", "brass"], "raeson")


def test_cyclic_orders_put_each_option_once_at_each_position():
    options = ["bell", "dog", "rain", "tv"]
    orders = cyclic_orders(options)
    assert orders[0] == tuple(options)
    for position in zip(*orders, strict=True):
        assert sorted(position) == options
    # Turned, not shuffled: whoever stands behind another one does so in all orders.
    following = {(order[k - 1], order[k]) for order in orders for k in range(4)}
    assert len(following) == 4
    assert (shown_orders(options, "cyclic"), shown_orders(options, 1)) == (orders, [tuple(options)])


AWKWARD = st.sampled_from(["A. What?", "Answer with one letter only.", "Answer", " with spaces ", "2.0–3.0 s", " A"])
TEXTS = AWKWARD | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(TEXTS, st.lists(TEXTS, max_size=30))
def test_a_prompt_is_read_back_exactly_or_refused(question, options):
    try:
        prompt = direct_prompt(question, options)
    except InputError:
        assert (
            not 2 <= len(options) <= 26
            or len(set(options)) < len(options)
            or any(not text.strip() or "\n" in text or not text.isprintable() for text in (question, *options))
            or any(option.lstrip()[:1] in "([" or option.lstrip()[0] in LETTERS for option in options)
        )
        return
    assert read_prompt(prompt) == (question, options)
    assert len(prompt.splitlines()) == len(options) + 2


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        ("What?", ["one"], "2 to 26 options, not 1"),
        ("What?\nA. dog", ["a", "b"], "one line"),
        ("What?", ["a\u2028b", "c"], "one line"),
        ("  ", ["b", "c"], "one line"),
        ("What?", ["(C) dog", "cat"], "a letter of its own"),
        ("What?", ["dog", "dog"], "equal"),
    ],
)
def test_what_could_be_misread_is_refused(question, options, message):
    with pytest.raises(InputError, match=message):
        direct_prompt(question, options)


@pytest.mark.parametrize(
    "prompt",
    [
        "What?\nA. dog\nB. cat",
        "What?\nA. dog\nC. cat\nAnswer with one letter only.",
        "What?\nA. dog\nB. dog\nAnswer with one letter only.",
        "What?\r\nA. dog\r\nB. cat\r\nAnswer with one letter only.",
    ],
)
def test_other_texts_are_no_prompts(prompt):
    with pytest.raises(InputError):
        read_prompt(prompt)
