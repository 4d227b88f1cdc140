"""Questions: their rules by hand, the second algorithm on all of them, what is injected, wordings, splits."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent
from audio_compositionality.dataset_builder.sounds.strong_labels import windows
from audio_compositionality.dataset_builder.texts.label_questions import (
    draw_questions,
    facts_of,
    split_by_recording,
)
from audio_compositionality.dataset_builder.texts.question_tasks import KINDS as ALL_KINDS
from audio_compositionality.dataset_builder.texts.question_tasks import (
    QuestionSettings,
    kind_named,
    window_start,
    window_steps,
    window_text,
)
from audio_compositionality.dataset_builder.texts.questions import (
    NO,
    YES,
    Question,
    QuestionError,
    question_templates,
    template_of,
)
from audio_compositionality.support.errors import InputError

from .answer_check import answer_fault, check_questions
from .domestic import domestic, random_annotations, streets

KINDS = (
    *("counting/kinds", "counting/sources", "duration/total", "concurrency/anchor", "concurrency/clip"),
    *("classification/overlap", "detection/first", "detection/regions"),
)
ALL = QuestionSettings(ask=KINDS, least_clips=3)


def clip(*events, resolution=0.0, duration=10.0, name="r"):
    return Annotation(name, duration, tuple(LabelledEvent(*event) for event in events), resolution, "x")


def facts(annotation, kind, settings=ALL):
    return facts_of([annotation], kind_named(kind), settings)


def answers(annotation, kind):
    return sorted((fact.anchor, fact.answer) for fact in facts(annotation, kind))


def skeleton(annotation, kind, options, answer, anchor="", polarity=""):
    """A question that nobody generated."""
    task, _, variant = kind.partition("/")
    template = next(template for template in question_templates(task, variant) if template.polarity == polarity)
    return Question(
        f"{annotation.recording}:{kind}", task, variant, template.question(anchor), tuple(options), answer, anchor,
        template.name, annotation.recording, annotation.recording, polarity, annotation.start, annotation.source_name,
    )  # fmt: skip


class TestByHand:
    SCENE = clip((0, 4, "a"), (2, 6, "b"), (7, 9, "c"))

    def test_a_scene(self):
        assert answers(self.SCENE, "counting/kinds") == [("", "3")]
        assert answers(self.SCENE, "concurrency/anchor") == [("a", "overlap"), ("b", "overlap"), ("c", "alone")]
        assert answers(self.SCENE, "concurrency/clip") == [("", "overlap")]
        assert answers(self.SCENE, "classification/overlap") == [("a", "b"), ("b", "a")]
        # The window of 1 s in whose middle fifth 2.0 lies.
        assert answers(self.SCENE, "detection/first") == [("", "160")]
        assert answers(self.SCENE, "detection/regions") == [("", "1")]
        # Four seconds of a and of b are as long; both are twice as long as c.
        assert {(fact.answer, fact.options) for fact in facts(self.SCENE, "duration/total")} == {
            ("a", frozenset("ac")), ("b", frozenset("bc"))
        }  # fmt: skip

    def test_hard_negatives(self):
        alone = clip((0, 1, "a"), (2, 5, "b"), (3, 6, "c"))
        assert {fact.anchor: fact.hardness for fact in facts(alone, "concurrency/anchor")} == {"a": 2, "b": 0, "c": 0}
        assert [fact.hardness for fact in facts(clip((0, 1, "a"), (2, 3, "b")), "concurrency/anchor")] == [1, 1]
        assert [fact.hardness for fact in facts(clip((0, 1, "a")), "concurrency/anchor")] == [0]

    @pytest.mark.parametrize(
        ("duration", "resolution", "width"),
        [
            (9.95, 0, 100),
            (25, 1, 250),
            (10, 1, 200),
            (3, 0, 50),
            (10, 0.6, 150),
        ],
    )
    def test_windows_of_detection(self, duration, resolution, width):
        assert window_steps(duration, resolution) == width
        for onset in range(width, 5 * width, 7):
            start = window_start(onset, width)
            assert 0.4 * width <= onset - start < 0.6 * width
        assert window_start(10, width) == 0
        assert window_text(40, 100) == "0.4 to 1.4 s"

    def test_labels_that_are_related_never_meet(self):
        related = {"Speech": frozenset({"Male speech"}), "Male speech": frozenset({"Speech"})}
        settings = ALL.changed(related=related)
        both = clip((0, 4, "Speech"), (2, 6, "Male speech"), (2, 6, "Dog"))
        assert facts(both, "counting/kinds", settings) == []
        one = clip((0, 4, "Dog"), (2, 6, "Speech"))
        other = clip((0, 1, "Male speech"), (3, 4, "Cat"), name="s")
        every = facts_of([one, other], kind_named("classification"), settings)
        assert {fact.rivals for fact in every if fact.anchor == "Dog"} == {frozenset({"Cat"})}


def faultless(annotation, kind):
    """(anchor, answer) of all skeletons of a kind that the second algorithm lets pass."""
    labels, right = annotation.labels, set()
    if kind.startswith("counting") or kind.endswith("regions"):
        counts = [str(number) for number in range(1, 10)]
        tried = [(counts, count, "", "") for count in counts]
    elif kind == "duration/total":
        tried = [(pair, label, "", "") for pair in combinations(labels, 2) for label in pair]
    elif kind.startswith("concurrency"):
        anchors = labels if kind.endswith("anchor") else ("",)
        tried = [((YES, NO), answer, anchor, "overlap") for anchor in anchors for answer in (YES, NO)]
    else:
        width = window_steps(annotation.duration, annotation.resolution)
        texts = [
            window_text(start, width) for start in range(0, int(annotation.duration * 100) - width + 2, width // 5)
        ]
        tried = [((text, other), text, "", "") for text in texts for other in (texts[0], texts[-1]) if other != text]
    for options, answer, anchor, polarity in tried:
        if answer_fault(skeleton(annotation, kind, options, answer, anchor, polarity), annotation) is None:
            right.add((anchor, tuple(options) if kind == "duration/total" else (), answer))
    return right


def generated(annotation, kind):
    told = {"overlap": YES, "alone": NO}
    if kind == "detection/first":
        return {("", (), window_text(int(fact.answer), fact.width)) for fact in facts(annotation, kind)}
    return {
        (fact.anchor, tuple(sorted(fact.options)), told.get(fact.answer, fact.answer))
        for fact in facts(annotation, kind)
    }


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "classification/overlap"])
def test_what_can_be_asked_is_what_the_second_algorithm_lets_pass(kind):
    asked = 0
    for annotation in random_annotations(50, seed=7):
        passed = faultless(annotation, kind)
        if kind == "detection/first":
            # Tried with one other window only, which may be too near: whatever passes was asked.
            assert passed <= generated(annotation, kind), annotation
        else:
            assert passed == generated(annotation, kind), annotation
        asked += len(passed)
    assert asked


def test_wrong_options_can_all_be_absent_as_the_paper_s_are():
    scenes = domestic(200)
    kind = ("classification",)
    heard = {(one.recording, one.start): {label.lower() for label in one.labels} for one in scenes}
    asked = {
        is_absent: draw_questions(scenes, QuestionSettings(ask=kind, absent_options=is_absent))
        for is_absent in (False, True)
    }
    present = {
        is_absent: [
            len(heard[one.recording, one.start] & {option.lower() for option in one.options}) for one in questions
        ]
        for is_absent, questions in asked.items()
    }
    assert set(present[True]) == {1}
    assert max(present[False]) > 1


def test_classification_is_what_the_second_algorithm_lets_pass():
    for annotation in random_annotations(50, seed=8):
        made = {
            (fact.anchor, fact.answer, rival)
            for fact in facts(annotation, "classification/overlap")
            for rival in fact.rivals
        }
        tried = {
            (anchor, answer, rival)
            for anchor in annotation.labels
            for answer in annotation.labels
            for rival in annotation.labels
            if len({anchor, answer, rival}) == 3
            and answer_fault(
                skeleton(annotation, "classification/overlap", (answer, rival), answer, anchor), annotation
            )
            is None
        }
        assert tried == made, annotation


@pytest.fixture(scope="module")
def sets():
    """Annotations and all questions about them."""
    of = (random_annotations(150, seed=1), domestic(150), windows(streets(8)))
    annotations = [annotation for some in of for annotation in some]
    return annotations, draw_questions(annotations, ALL, seed=3)


class TestQuestions:
    def test_the_second_algorithm_agrees_on_all(self, sets):
        annotations, questions = sets
        assert {question.kind for question in questions} == set(KINDS)
        assert check_questions(questions, annotations) == len(questions) > 300

    def test_it_depends_on_labels_and_seed_alone(self, sets):
        annotations, questions = sets
        mixed = [annotations[k] for k in np.random.default_rng(0).permutation(len(annotations))]
        assert sorted(draw_questions(mixed, ALL, seed=3), key=repr) == sorted(questions, key=repr)
        assert draw_questions(annotations, ALL, seed=4) != questions
        # One kind of questions does not depend on what else is asked.
        alone = draw_questions(annotations, ALL.changed(ask=("duration",)), seed=3)
        assert alone == tuple(question for question in questions if question.task == "duration")

    def test_what_cannot_be_asked(self):
        scene = clip((0, 4, "a"), (2, 6, "b"))
        with pytest.raises(InputError, match="there is no task 'count'; did you mean 'counting'"):
            draw_questions([scene], QuestionSettings(ask=("count",)))
        with pytest.raises(InputError, match="has no variant 'kind'; did you mean 'kinds'"):
            draw_questions([scene], QuestionSettings(ask=("counting/kind",)))
        with pytest.raises(InputError, match="seed is -1"):
            draw_questions([scene], seed=-1)
        with pytest.raises(QuestionError, match="duplicate labels of r at 0 s"):
            draw_questions([scene, scene])
        with pytest.raises(QuestionError, match="the labels 'Aa' and 'aa' read alike"):
            draw_questions([clip((0, 1, "Aa")), clip((0, 1, "aa"), name="s")])
        with pytest.raises(QuestionError, match=r"the label .B\. dog. begins like a lettered option"):
            draw_questions([clip((0, 1, "B. dog"))])
        with pytest.raises(InputError, match="counts is"):
            QuestionSettings(counts=(1,))
        with pytest.raises(InputError, match="2 to 26"):
            QuestionSettings(counts=tuple(range(1, 28)))
        assert draw_questions([]) == ()


class TestWordings:
    @pytest.mark.parametrize("kind", ALL_KINDS)
    def test_twenty_of_each_kind(self, kind):
        task, _, variant = kind.partition("/")
        wordings = question_templates(task, variant)
        assert len(wordings) == len({wording.text.casefold() for wording in wordings}) == 20
        polarities = Counter(wording.polarity for wording in wordings)
        assert polarities == ({"overlap": 10, "alone": 10} if task == "concurrency" else {"": 20})
        with_anchor = kind in {"concurrency/anchor", "classification/overlap"}
        for wording in wordings:
            assert ("{a}" in wording.text) == with_anchor
            assert wording.text.endswith("?")
            assert template_of(wording.name) == wording

    def test_unknown(self):
        with pytest.raises(InputError, match="there are no questions 'counting/kind'"):
            question_templates("counting", "kind")


class TestSplits:
    def test_a_recording_is_on_one_side(self):
        annotations = [*windows(streets(21)), *domestic(200)]
        parts = split_by_recording(annotations, {"test": 0.7, "train": 0.3}, seed=1)
        assert Counter([a for part in parts.values() for a in part]) == Counter(annotations)
        groups = [{annotation.split_group for annotation in part} for part in parts.values()]
        assert not groups[0] & groups[1]
        assert (len(groups[0]), len(groups[1])) == (15 + 140, 6 + 60)
        assert split_by_recording(reversed(annotations), {"test": 0.7, "train": 0.3}, seed=1) == parts
        assert split_by_recording(annotations, {"test": 0.7, "train": 0.3}, seed=2) != parts
