"""Nothing but the sound gives answers away: exact numbers, controls that do not hear, and leaks that are named."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent
from audio_compositionality.dataset_builder.sounds.strong_labels import windows
from audio_compositionality.dataset_builder.texts.label_questions import draw_questions
from audio_compositionality.dataset_builder.texts.question_controls import (
    LeakError,
    balance_of,
    balance_table,
    present_share,
    require_balance,
)
from audio_compositionality.dataset_builder.texts.question_tasks import QuestionSettings
from audio_compositionality.dataset_builder.texts.questions import question_templates
from audio_compositionality.support.table import to_text

from .answer_check import check_questions
from .domestic import domestic, streets

ALL = QuestionSettings(
    ask=(
        "counting",
        "duration",
        "concurrency",
        "concurrency/clip",
        "classification",
        "detection",
        "detection/regions",
    )
)


@pytest.fixture(scope="module")
def sets():
    annotations = [*domestic(400), *windows(streets(16))]
    return annotations, draw_questions(annotations, ALL, seed=5)


def of_kind(questions, kind, source=""):
    return [question for question in questions if question.kind == kind and source in question.source]


def by(questions, *fields):
    groups = defaultdict(list)
    for question in questions:
        groups[tuple(getattr(question, field) for field in fields)].append(question)
    return groups


class TestExactNumbers:
    def test_a_unit_has_the_same_words_and_options_and_each_answer_once(self, sets):
        for questions in by(sets[1], "source", "kind", "unit").values():
            assert len({(q.question, q.anchor, q.polarity, frozenset(q.options)) for q in questions}) == 1
            assert sorted(question.answer for question in questions) == sorted(questions[0].options)
            assert sorted(q.options.index(q.answer) for q in questions) == list(range(len(questions)))

    def test_wordings_are_as_frequent(self, sets):
        for (_, task, variant, polarity), questions in by(sets[1], "source", "task", "variant", "polarity").items():
            units = {question.unit: question.template for question in questions}
            counts = Counter(units.values())
            names = [wording.name for wording in question_templates(task, variant) if wording.polarity == polarity]
            assert max(counts.values()) - min(counts[name] for name in names) <= 1

    def test_yes_is_right_half_the_time_whatever_is_heard(self, sets):
        for questions in by(of_kind(sets[1], "concurrency/anchor"), "source").values():
            cells = Counter((question.polarity, question.answer) for question in questions)
            assert cells["overlap", "Yes"] == cells["overlap", "No"]
            assert cells["alone", "Yes"] == cells["alone", "No"]
            assert abs(cells["overlap", "Yes"] - cells["alone", "Yes"]) <= 1

    def test_a_label_is_beside_the_answer_three_times_as_often_as_it_is_the_answer(self, sets):
        for questions in by(of_kind(sets[1], "classification/overlap"), "source", "anchor").values():
            options = Counter(option for question in questions for option in question.options)
            right = Counter(question.answer for question in questions)
            assert options == Counter({option: 4 * count for option, count in right.items()})

    def test_the_answer_of_detection_has_each_rank_as_often(self, sets):
        for questions in by(of_kind(sets[1], "detection/first"), "source").values():
            ranks = Counter(
                sorted(question.options, key=lambda text: float(text.split()[0])).index(question.answer)
                for question in questions
            )
            assert len(set(ranks.values())) == 1
            assert len(ranks) == 4

    def test_hard_negatives_come_first(self):
        def make(number, hard):
            events = [LabelledEvent(0, 2, "a")]
            if number < 3:
                events.append(LabelledEvent(0, 2, "b"))
            elif hard:
                events += [LabelledEvent(4, 7, "b"), LabelledEvent(5, 8, "c")]
            return Annotation(f"r{number}", 10.0, tuple(events), 0.0, "x")

        annotations = [make(number, hard=number >= 10) for number in range(13)]
        questions = [q for q in draw_questions(annotations, QuestionSettings(ask=("concurrency",))) if q.anchor == "a"]
        assert {q.recording for q in questions} == {"r0", "r1", "r2", "r10", "r11", "r12"}


class TestControls:
    @pytest.mark.slow
    def test_text_alone_is_at_chance_and_what_is_present_is_reported(self, sets):
        annotations, questions = sets
        check_questions(questions, annotations)
        balances = balance_of(questions, annotations)
        require_balance(balances)
        for balance in balances:
            assert balance.blind is None or balance.chance - 0.1 < balance.blind <= balance.limit, balance
            assert balance.position_excess == 0
        present = {(balance.source, balance.kind): balance.present for balance in balances}
        # Asked of recordings, this is a question of what is heard; the report has it beside the score.
        assert present["desed-like", "classification/overlap"] > 0.9
        assert present["desed-like", "detection/first"] == 0.25
        assert present["desed-like", "duration/total"] == 0.5
        text = to_text(balance_table(balances))
        assert "desed-like classification/overlap" in text
        assert "blind" in text
        assert "present" in text

    def test_present_by_hand(self):
        clip = Annotation("r", 10.0, (LabelledEvent(0, 3, "A"), LabelledEvent(1, 4, "b")), 0.0, "x")
        base = draw_questions(domestic(60), QuestionSettings(ask=("concurrency",)))[0]

        def asked(task, variant, options, answer):
            return replace(base, task=task, variant=variant, options=options, answer=answer)

        assert present_share(asked("classification", "overlap", ("a", "c", "d", "e"), "a"), clip) == 1.0
        assert present_share(asked("classification", "overlap", ("a", "b", "d", "e"), "a"), clip) == 0.5
        assert present_share(asked("counting", "kinds", ("1", "2"), "2"), clip) == 1.0
        assert present_share(asked("concurrency", "anchor", ("Yes", "No"), "No"), clip) == 0.5
        assert present_share(asked("detection", "first", ("x", "y", "z"), "x"), clip) == pytest.approx(1 / 3)


def leaking(questions, annotations):
    with pytest.raises(LeakError) as raised:
        require_balance(balance_of(questions, annotations))
    return str(raised.value)


class TestLeaks:
    """Each is one that was met on the way, made on purpose."""

    def test_a_window_of_counts_around_the_answer(self, sets):
        rng = np.random.default_rng(0)

        def around(question):
            first = max(1, int(question.answer) - 1)
            options = [str(count) for count in range(first, first + 4)]
            return replace(question, options=tuple(options[k] for k in rng.permutation(4)))

        questions = [around(q) for q in of_kind(sets[1], "counting/kinds") if q.source == "maestro-like"]
        message = leaking(questions, sets[0])
        assert "counting/kinds of maestro-like: a text-only classifier answers" in message
        assert "the answer's rank among the options by size reveals it" in message

    def test_times_with_decimals_beside_answers_on_a_grid(self, sets):
        rng = np.random.default_rng(0)

        def other(text):
            start = float(text.split()[0]) + float(rng.uniform(0.01, 0.09))
            return f"{start:.2f} to {start + 1:.2f} s"

        questions = [
            replace(q, options=tuple(text if text == q.answer else other(text) for text in q.options))
            for q in of_kind(sets[1], "detection/first", "desed")
        ]
        assert "the way in which the answer is written reveals it" in leaking(questions, sets[0])

    def test_an_anchor_that_nearly_always_overlaps(self, sets):
        questions = of_kind(sets[1], "concurrency/anchor")
        state = {("Yes", "overlap"): "overlap", ("No", "alone"): "overlap"}
        only = {"Frying": "overlap", "Speech": "alone"}
        biased = [q for q in questions if only.get(q.anchor) in {None, state.get((q.answer, q.polarity), "alone")}]
        assert "the sound in question reveals the answer" in leaking(biased, sets[0])

    def test_yes_more_often_than_no(self, sets):
        questions = [q for n, q in enumerate(of_kind(sets[1], "concurrency/anchor")) if q.answer == "Yes" or n % 3 == 0]
        assert "some options are right more often than others" in leaking(questions, sets[0])

    def test_a_wording_that_is_of_one_answer(self, sets):
        questions = [
            replace(q, template=f"duration-total-{1 + (q.answer == min(q.options)):02d}")
            for q in of_kind(sets[1], "duration/total", "desed")
        ]
        assert "the wording" in leaking(questions, sets[0])

    def test_an_answer_at_one_place(self, sets):
        questions = [
            replace(q, options=(q.answer, *(text for text in q.options if text != q.answer)))
            for q in of_kind(sets[1], "detection/first", "desed")
        ]
        message = leaking(questions, sets[0])
        assert "the answer's position reveals it" in message
        assert "the answer is in one position" in message
