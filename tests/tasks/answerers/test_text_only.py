"""Answerers of text alone: by hand, at chance on balanced questions, above it where the text leaks."""

from __future__ import annotations

import numpy as np
import pytest

from audio_compositionality.encoders.base import ENCODER, LANGUAGE_MODEL
from audio_compositionality.encoders.loading.listing import named_models
from audio_compositionality.encoders.loading.names import check_name, list_models
from audio_compositionality.encoders.loading.registry import has_twins, load_model
from audio_compositionality.evaluator.compare.loading import ModelKind, model_kind
from audio_compositionality.evaluator.results.result import ScoredModel
from audio_compositionality.support.errors import InputError
from audio_compositionality.tasks.shapes.asking import direct_prompt

from ...clips import each
from .asked import SILENCE, Clip, asked, by_kind, prompts_of, right

NAMES = ("first", "longest", "majority", "blind", "statistics", "present", "oracle", "cascade")
LEARN = {"majority", "blind", "statistics", "cascade"}
TOLD = {"present", "oracle"}


class NoClips:
    """Clips that must not be asked for."""

    def __iter__(self):
        raise AssertionError("a model of text alone asks for clips")


def load(name):
    return load_model(name, device="cpu")


def taught(name, rows):
    model = load(name)
    model.learn(rows, NoClips())
    return model


def answers(model, rows):
    return model.answer(each([SILENCE] * len(rows)), prompts_of(rows))


@pytest.mark.parametrize("name", NAMES)
def test_each_is_listed_and_is_what_its_listing_says(name):
    check_name(name)
    listing = named_models()[name]
    model = load(name)
    assert "answer" in model.abilities
    assert "audio" not in model.abilities
    assert ("learn" in model.abilities, "labels" in model.abilities) == (name in LEARN, name in TOLD)
    assert (listing.gives, listing.sample_rate, listing.licence) == ("answers", 32_000, "Apache-2.0")
    assert listing.can_do(LANGUAGE_MODEL)
    assert not listing.can_do(ENCODER)
    assert not has_twins(name)
    card = model.card
    assert (card.id, card.output_dim, card.sample_rate, model.device) == (name, None, 32_000, "cpu")
    # What is told labels, or was made for the very data, is no bar for a model.
    is_control = name in TOLD or name == "cascade"
    assert model_kind(ScoredModel.of(card)) is (ModelKind.CONTROL if is_control else ModelKind.BASELINE)
    assert listing.is_reference == (name in ("blind", "statistics"))


def test_models_that_answer_are_known_before_they_are_loaded():
    assert {listing.name for listing in list_models() if listing.answers} == {
        *NAMES,
        "random",
        "time-blind",
        "order-blind",
        "spectrum-comparer",
        "usual-times",
    }


def test_first_and_longest():
    prompts = [direct_prompt("Which?", ["dog", "car horn", "rain bow"]), direct_prompt("Which?", ["Yes", "No"])]
    assert load("first").answer(each([SILENCE] * 2), prompts) == ["A", "A"]
    assert load("longest").answer(each([SILENCE] * 2), prompts) == ["B", "A"]


def test_a_prompt_without_options_is_an_error():
    for name in ("first", "longest", "majority", "blind"):
        with pytest.raises(InputError, match="expected a question with lettered options"):
            load(name).answer(each([SILENCE]), ["What do you hear?"])


def duration(answer, *rest):
    return {"question": "Which of these is heard longest in total?", "options": [*rest, answer], "answer": answer}


class TestMajority:
    rows = (
        *[duration("dog", "rain")] * 3,
        *[duration("rain", "dog")] * 4,
        *[duration("dog", "cat")] * 5,
        duration("cat", "dog"),
        *[duration("bell", "rain")] * 2,
    )

    @pytest.mark.parametrize(
        ("options", "answer"),
        [
            (["dog", "rain"], "B"),  # 4 of 7, whatever is right elsewhere
            (["cat", "dog"], "B"),  # 5 of 6
            (["cat", "rain", "bell"], "C"),  # a new set: bell 2 of 2, rain 4 of 9, cat 1 of 6
            (["owl", "rain"], "B"),  # the owl never was there
            (["owl", "crow"], "B"),  # neither was: all answers stood second
            (["owl", "crow", "jay"], "A"),  # nothing is known of three
        ],
    )
    def test_by_hand(self, options, answer):
        model = taught("majority", self.rows)
        assert answers(model, [{**duration("dog"), "options": options}]) == [answer]

    def test_kinds_are_told_apart_by_their_words(self):
        how_many = {"question": "How many kinds of sound does this recording contain?", "options": ["1", "2"]}
        how_often = {"question": "How many times do different sounds overlap?", "options": ["2", "1"]}
        model = taught("majority", [{**how_many, "answer": "1"}, {**how_often, "answer": "2"}])
        assert answers(model, [how_many, how_often]) == ["A", "A"]
        model.learn([duration("dog", "rain")], NoClips())  # what was learnt before is forgotten
        assert answers(model, [duration("rain", "dog")]) == ["A"]


@pytest.mark.slow
def test_balanced_questions_give_nothing_away():
    train, test = [[row for _, _, row in asked(350, seed)] for seed in (1, 2)]
    for name in ("majority", "blind"):
        shares = by_kind(test, answers(taught(name, train), test))
        assert len(shares) == 9
        for kind, (share, chance, error) in shares.items():
            assert share <= chance + 3.5 * error, (name, kind)


@pytest.mark.parametrize("leak", ["the TV is always right", "the answer is the longest", "Yes is right"])
def test_blind_learns_what_words_give_away(leak):
    rng = np.random.default_rng(0)
    labels = ["TV", "a", "bb", "ccc", "dddd", "eeeee"]
    rows = []
    for _ in range(400):
        options = rng.permutation(["TV", *rng.permutation(labels[1:])[:2]]).tolist()
        if leak == "the TV is always right":
            answer, question = "TV", "Which of these is heard longest in total?"
        elif leak == "the answer is the longest":
            answer, question = max(options, key=len), "Which of these overlaps in time with the dog?"
        else:
            options, answer = rng.permutation(["Yes", "No"]).tolist(), "Yes" if rng.random() < 0.9 else "No"
            question = "Do any two different sounds overlap?"
        rows.append({"question": question, "options": options, "answer": answer})
    train, test = rows[:200], rows[200:]
    share = right(test, answers(taught("blind", train), test)).mean()
    assert share > (0.8 if leak == "Yes is right" else 0.95)


def test_blind_answers_alike_alone_and_in_a_batch_and_knows_no_question_that_it_cannot_read():
    rows = [row for _, _, row in asked(300, 1)]
    model = taught("blind", rows)
    together = answers(model, rows[:50])
    assert together == [answers(model, [row])[0] for row in rows[:50]]
    strange = [{"question": f"What number {k} is this?", "options": ["1", "2", "3"]} for k in range(300)]
    given = answers(model, strange)
    assert {given.count(letter) // 50 for letter in "ABC"} <= {1, 2}


class TestRandom:
    def test_draws_by_prompt_and_clip(self):
        model = load("random")
        assert model.answer(each([SILENCE]), ["What do you hear? A. dog"]) == [""]
        prompts = [direct_prompt(f"Which {k}?", ["a dog", "a cat", "rain"]) for k in range(3000)]
        given = model.answer(each([SILENCE] * 3000), prompts)
        counts = np.array([given.count(letter) for letter in "ABC"])
        assert counts.sum() == 3000
        assert (abs(counts - 1000) < 4 * np.sqrt(3000 * 2 / 9)).all()
        assert model.answer(each([SILENCE] * 2), prompts[7:9]) == given[7:9]
        other = model.answer(each([Clip(np.ones(16))] * 3000), prompts)
        assert abs(np.mean(np.array(other) == given) - 1 / 3) < 0.05

    def test_a_control_of_it_embeds_and_answers(self):
        controlled = load("without-audio:random")
        assert "audio" in controlled.abilities
        assert "answer" in controlled.abilities
        prompts = [direct_prompt(f"Which {k}?", ["dog", "cat"]) for k in range(50)]
        noise = Clip(np.random.default_rng(0).normal(0, 0.1, 16))
        assert controlled.answer(each([noise] * 50), prompts) == load("random").answer(each([SILENCE] * 50), prompts)
