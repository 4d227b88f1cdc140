"""Rows by a model that answers as it is told: what is taken stands there, the rest is as it was, and all is counted."""

import re

import pytest

from audio_compositionality.dataset_builder.texts.caption_reading import Judge
from audio_compositionality.dataset_builder.texts.rewriting import (
    LanguageModelWriter,
    description_prompt,
    equivalent,
    rewrite,
)
from audio_compositionality.dataset_builder.texts.truth import HeardEvent

from .scripted import Scripted, as_json, kind_of_prompt

EVENTS = [
    {"label": "bell", "attributes": ["slow", "high"], "start": 0.0, "stop": 5.0},
    {"label": "organ", "attributes": ["low"], "start": 5.0, "stop": 10.0},
]

TRAINING = {
    "id": "t-0",
    "split": "train",
    "captions": ["a slow bell followed by a low organ", "a low organ after a slow bell"],
    "parts": ["a slow bell", "a low organ"],
    "negatives": [
        {"text": "a low organ followed by a slow bell", "kind": "order"},
        {"text": "a slow organ followed by a low bell", "kind": "attribute"},
        {"text": "a slow bell followed by a low reed", "kind": "absent"},
    ],
    "events": EVENTS,
    "expression": "slow bell + low organ",
}

ITEM = {
    "id": "i-0",
    "split": "test",
    "captions": ["a bell before an organ", "an organ before a bell", "a bell with an organ"],
    "events": [
        [{"label": "bell", "start": 0, "stop": 5}, {"label": "organ", "start": 5, "stop": 10}],
        [{"label": "organ", "start": 0, "stop": 5}, {"label": "bell", "start": 5, "stop": 10}],
        [{"label": "organ", "start": 0, "stop": 10}, {"label": "bell", "start": 0, "stop": 10}],
    ],
    "writer": "template",
    "template": "before",
    "mention": "forward",
}

GOOD = {
    "paraphrase": as_json(caption="A slow bell rings, and then a low organ is heard."),
    "description": as_json(caption="There is a low organ, preceded by the sound of a slow bell."),
    "negatives": as_json(
        negatives=[
            "a low organ, then a slow bell",
            "a slow bell while a low organ plays",
            "A low bell, then a slow organ",
        ]
    ),
}


def scripted(answers):
    return Scripted(lambda prompt: answers.get(kind_of_prompt(prompt), ""))


def caption_in(prompt):
    return re.search(r'^"(.*)"$', prompt, re.MULTILINE)[1]


def test_what_is_taken_stands_in_the_place_of_the_templates():
    (row,), report = rewrite([TRAINING], LanguageModelWriter(scripted(GOOD)))
    assert row["captions"] == [
        "a slow bell rings, and then a low organ is heard",
        "there is a low organ, preceded by the sound of a slow bell",
    ]
    assert row["negatives"] == [
        {"text": "a low organ, then a slow bell", "kind": "order"},
        {"text": "a low bell, then a slow organ", "kind": "attribute"},
        {"text": "a slow bell followed by a low reed", "kind": "absent"},
        {"text": "a slow bell while a low organ plays", "kind": "relation"},
    ]
    assert row["writer"] == "language-model"
    assert {name: row[name] for name in ("id", "split", "parts", "events", "expression")} == {
        name: TRAINING[name] for name in ("id", "split", "parts", "events", "expression")
    }
    assert (report.asked, report.taken, report.refused, report.left) == (5, 5, {}, 0)
    # Seven of eight and of eight words; six of nine and seven, twelve of sixteen, six of seven and eight.
    caption = 8
    shares = [2 * 6 / (7 + caption), 2 * 6 / (8 + caption), 2 * 6 / (7 + caption)]
    assert report.overlap == {"language-model": pytest.approx(sum(shares) / 3), "template": pytest.approx(14 / 16)}
    assert TRAINING["negatives"][0]["text"] == "a low organ followed by a slow bell"


def test_what_is_refused_leaves_the_row_as_it_is_and_is_counted():
    answers = {
        "paraphrase": "a slow bell, then a low organ",
        "description": as_json(caption="a low organ gloomily after a slow bell"),
        "negatives": as_json(negatives=["a slow bell before a low organ", "a low organ, then a slow bell" * 10]),
    }
    (row,), report = rewrite([TRAINING], LanguageModelWriter(scripted(answers)))
    assert row == {**TRAINING, "writer": "template"}
    assert report.refused == {"no JSON": 1, "undecided": 1, "wrong": 1, "too long": 1, "no text": 1}
    assert (report.asked, report.taken) == (5, 0)
    assert report.unlisted == {"gloomily": 1}
    assert report.overlap.keys() == {"template"}
    text = " ".join(report.sentences())
    assert "Of 5 texts asked of scripted, 0 are taken (0%)." in text
    assert "1 'undecided'" in text
    assert "gloomily" in text


def test_no_text_comes_twice_in_a_row():
    same = {
        **GOOD,
        "paraphrase": as_json(caption="a slow bell then a low organ"),
        "negatives": as_json(
            negatives=[
                "A low organ followed by a slow bell",
                "a low organ, then a slow bell",
                "a low organ then a slow bell.",
            ]
        ),
    }
    twice = {**TRAINING, "captions": ["a slow bell before a low organ", "a slow bell followed by a low organ", "x"]}
    twice["captions"][2] = "a slow bell and then a low organ"
    (row,), report = rewrite([twice], LanguageModelWriter(scripted(same)))
    assert row["captions"].count("a slow bell then a low organ") == 1
    assert [negative["text"] for negative in row["negatives"]].count("a low organ, then a slow bell") == 1
    assert report.refused == {"repeated": 3, "direction": 1}


def test_the_model_is_asked_for_the_direction_of_the_caption_and_for_no_words_that_are_kept_from_training():
    model = scripted(GOOD)
    rewrite([TRAINING], LanguageModelWriter(model))
    (prompts,) = model.asked
    forward, described, negatives = prompts
    assert kind_of_prompt(described) == "description"
    assert "- slow bell: 0.0 to 5.0 s\n- low organ: 5.0 to 10.0 s" in described
    assert "last first" in described
    assert "preceded by" in described
    assert "followed by" not in described
    assert "heard first before" in forward
    assert "Write 3 different captions" in negatives
    assert not any("amid" in prompt for prompt in prompts)
    assert caption_in(forward) == TRAINING["captions"][0]


def test_of_one_sound_no_negatives_are_asked():
    one = {**TRAINING, "captions": ["a slow bell"], "parts": [], "events": EVENTS[:1]}
    model = scripted({"paraphrase": as_json(caption="the sound of a slow bell")})
    (row,), report = rewrite([one], LanguageModelWriter(model))
    assert row["captions"] == ["the sound of a slow bell"]
    assert report.asked == len(model.asked[0]) == 1


def test_rows_that_cannot_be_read_are_left_and_counted():
    strange = {**TRAINING, "captions": ["somebody hits a bell, hard"]}
    model = scripted(GOOD)
    (row,), report = rewrite([strange], LanguageModelWriter(model))
    assert row == {**strange, "writer": "template"}
    assert (report.left, report.asked, model.asked) == (1, 0, [[]])
    assert "1 rows the captions cannot be read" in " ".join(report.sentences())


def by_caption(answers):
    return Scripted(lambda prompt: as_json(caption=answers[caption_in(prompt)]))


TWINS = {
    "a bell before an organ": "a bell, then an organ",
    "an organ before a bell": "an organ, then a bell",
    "a bell with an organ": "a bell and an organ at the same time",
}


class TestItems:
    def test_no_test_item_is_written_unless_it_is_asked_for(self):
        model = by_caption(TWINS)
        (row,), report = rewrite([ITEM], LanguageModelWriter(model))
        assert row == ITEM
        assert (report.asked, model.asked) == (0, [[]])

    def test_twins_are_taken_together(self):
        (row,), report = rewrite([ITEM], LanguageModelWriter(by_caption(TWINS), in_test=True))
        assert row["captions"] == list(TWINS.values())
        assert (row["writer"], row["template"], report.taken) == ("language-model", "language-model", 3)

    @pytest.mark.parametrize(
        ("text", "refused"),
        [
            ("a bell followed by an organ", {"twins": 2}),
            ("an organ, then a bell", {"wrong": 1, "twins": 1}),
            ("an organ after a bell", {"direction": 1, "twins": 1}),
            ("an organ", {"sounds": 1, "twins": 1}),
        ],
    )
    def test_or_not_at_all(self, text, refused):
        answers = TWINS | {"a bell before an organ": text}
        (row,), report = rewrite([ITEM], LanguageModelWriter(by_caption(answers), in_test=True))
        assert row["captions"] == [*ITEM["captions"][:2], TWINS["a bell with an organ"]]
        assert (row["writer"], row["template"]) == ("language-model", "before")
        assert report.refused == refused

    def test_a_caption_is_false_of_the_other_clips(self):
        """Here all might be true of the second clip, at least for some."""
        events = [*ITEM["events"]]
        events[1] = [{"label": "bell", "start": 0, "stop": 5}, {"label": "organ", "start": 4, "stop": 10}]
        item = {**ITEM, "events": events}
        (row,), report = rewrite([item], LanguageModelWriter(by_caption(TWINS), in_test=True))
        assert row == item
        assert report.refused == {"wrong": 3}

    def test_what_is_kept_from_training_may_stand_there(self):
        answers = {caption: text.replace("a bell, then", "first a bell, later") for caption, text in TWINS.items()}
        answers["an organ before a bell"] = "first an organ, later a bell"
        (row,), _ = rewrite([ITEM], LanguageModelWriter(by_caption(answers), in_test=True))
        assert row["captions"][0] == "first a bell, later an organ"


class TestOneClip:
    events = (HeardEvent("bell", 0, 5, ("slow", "high")), HeardEvent("organ", 5, 10, ("low",)))
    judge = Judge.of("a slow bell followed by a low organ", events)

    def test_its_sounds_are_asked_for_with_their_times(self):
        assert "- low organ: 5.0 to 10.0 s" in description_prompt(self.judge)

    def test_fewer_than_thirty_words(self):
        text = "a slow bell " + "is heard " * 11 + "then a low organ"
        for words, reason in ((text, None), ("the sound of " + text, "too long")):
            assert equivalent(as_json(caption=words), self.judge, most_words=29).reason == reason
