"""Twins as they are described, whatever they sound like: answers, wordings, what is dealt, what differs in a group."""

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest

from audio_compositionality.dataset_builder.sounds.annotations import Annotation, LabelledEvent
from audio_compositionality.dataset_builder.texts.counterparts import (
    ATOMIC,
    BLOCK,
    FIRST,
    LAST,
    LEVELS,
    OVERLAPPING,
    PAIRED,
    draw_groups,
    questions_of,
)
from audio_compositionality.dataset_builder.texts.question_controls import balance_of, require_balance
from audio_compositionality.dataset_builder.texts.question_tasks import (
    ATOM_KINDS,
    QuestionSettings,
    kind_named,
)
from audio_compositionality.dataset_builder.texts.questions import QuestionError, in_sentence
from audio_compositionality.support.errors import InputError

LABELS = ("Alarm", "bell", "cow", "dog", "engine", "flute", "goat", "horn")
SETS = 80
SIZES = {
    **{"counting/kinds": 4, "duration/total": 3, "concurrency/anchor": 2, "classification/overlap": 4},
    **{"detection/first": 4, "duration/longest": 3, "counting/together": 3},
}
LEVEL = {"duration/longest", "counting/together"}
"""Kinds whose tracks all have one level."""


def drawn(labels, split, sets, seed, block=BLOCK, kinds=OVERLAPPING):
    """All groups of a split."""
    every = draw_groups(kinds, labels, split, sets, seed, block=block)
    return tuple(group for groups in every for group in groups)


def annotated(group, early=lambda: 0):
    """What is heard if each sound ends so many steps before its span."""
    return [
        Annotation(
            clip.name,
            10.0,
            tuple(
                LabelledEvent(start / 100, (stop - early()) / 100, track.label)
                for track in clip.tracks
                for start, stop in track.spans
            ),
            0.0,
            "made",
            group=group.name,
        )
        for clip in group.clips
    ]


@pytest.fixture(scope="module")
def groups():
    return drawn(LABELS, "test", SETS, 0)


@pytest.fixture(scope="module")
def asked(groups):
    """All questions, and what is heard."""
    annotations = [annotated(group) for group in groups]
    questions = [questions_of(*pair) for pair in zip(groups, annotations, strict=True)]
    return [q for of_group in questions for q in of_group], [a for of_group in annotations for a in of_group]


@pytest.mark.parametrize("kinds", [OVERLAPPING, PAIRED, ATOMIC])
def test_further_sets_change_none_before_and_seeds_and_splits_do(kinds):
    first = drawn(LABELS, "test", 3, 0, kinds=kinds)
    fewer = drawn(LABELS, "test", 2, 0, kinds=kinds)
    assert first[: len(fewer)] == fewer
    assert len(first) == 1.5 * len(fewer)
    for split, seed in (("train", 0), ("test", 1)):
        other = drawn(LABELS, split, 3, seed, kinds=kinds)
        assert not {group.clips for group in other} & {group.clips for group in first}
    for labels in (LABELS[:4], (*LABELS, "Bell")):
        with pytest.raises(InputError, match="questions need 5 or more that read differently"):
            drawn(labels, "test", 1, 0, kinds=kinds)


@pytest.mark.parametrize("kinds", [OVERLAPPING, PAIRED, ATOMIC])
def test_what_is_heard_has_to_bear_out_the_answers(kinds):
    for group in drawn(LABELS, "test", 1, 0, kinds=kinds):
        annotations = annotated(group)
        assert len(questions_of(group, annotations)) == len(group.clips) * len(group.questions)
        labels = {label: LABELS[(place + 1) % len(LABELS)] for place, label in enumerate(LABELS)}
        moved = [replace(event, label=labels[event.label]) for event in annotations[0].events[:1]]
        events = annotations[1].events if kinds is ATOMIC else tuple(moved)
        with pytest.raises(QuestionError, match=f"{group.name}-1: the measured events do not confirm the answer"):
            questions_of(group, [replace(annotations[0], events=events), *annotations[1:]])


def test_clips_of_a_group_have_the_same_words_and_options_and_another_answer_each(asked):
    units = defaultdict(list)
    for question in asked[0]:
        units[question.unit].append(question)
    for questions in units.values():
        assert len({(q.question, q.options, q.template, q.anchor, q.group) for q in questions}) == 1
        assert sorted(q.answer for q in questions) == sorted(questions[0].options)
        assert len(set(questions[0].options)) == SIZES[questions[0].kind] == len(questions)
        assert len({q.recording for q in questions}) == len(questions)


def test_clips_of_a_group_differ_in_labels_alone(groups):
    for group in groups:
        tracks = [[(track.variant, track.level, track.spans) for track in clip.tracks] for clip in group.clips]
        if group.task == "detection":
            # Events of one length, two of which overlap in one of the four places.
            assert len({tuple((variant, level) for variant, level, _ in clip) for clip in tracks}) == 1
            assert len({stop - start for clip in tracks for *_, spans in clip for start, stop in spans}) == 1
            assert len({tuple(track.label for track in clip.tracks) for clip in group.clips}) == 1
            starts = [sorted(span for *_, spans in clip for span in spans) for clip in tracks]
            overlaps = [[one[1] > other[0] for one, other in pairwise(clip)] for clip in starts]
            assert sorted(clip.index(True) for clip in overlaps) == [0, 2, 4, 6]
            assert all(sum(clip) == 1 for clip in overlaps)
        else:
            assert all(clip == tracks[0] for clip in tracks)
            assert len({tuple(track.label for track in clip.tracks) for clip in group.clips}) == len(group.clips)


def test_yes_is_right_half_of_the_time_in_each_state(asked):
    questions = [question for question in asked[0] if question.task == "concurrency"]
    states = Counter(
        (q.answer, "overlap" if (q.answer == "Yes") == (q.polarity == "overlap") else "alone", q.group)
        for q in questions
    )
    assert set(states.values()) == {1}
    assert len(states) == len(questions) == 4 * SETS


@pytest.mark.slow
def test_text_alone_is_at_chance_and_answers_stand_at_each_place(asked):
    balances = balance_of(*asked)
    require_balance(balances)
    assert len(balances) == 7
    for balance in balances:
        assert balance.questions >= 240
        assert balance.blind == pytest.approx(balance.chance, abs=1e-9)
        assert balance.position_excess == 0
    present = {balance.kind: balance.present for balance in balances}
    assert present["classification/overlap"] == pytest.approx(1 / 3)
    assert present["duration/total"] == pytest.approx(1 / 3)
    assert present["detection/first"] == 1 / 4
    assert present["concurrency/anchor"] == 1 / 2
    # Who knows what is heard knows how much.
    assert present["counting/kinds"] == 1
    assert present["duration/longest"] == present["counting/together"] == pytest.approx(1 / 3)


def test_labels_wordings_and_dials_are_dealt_evenly(asked, groups):
    first = Counter((group.task, group.clips[0].tracks[0].label) for group in groups if group.task == "detection")
    assert set(first.values()) == {SETS // len(LABELS)}
    anchors = Counter((q.task, q.anchor) for q in asked[0] if q.anchor)
    assert len({count for (task, _), count in anchors.items() if task == "classification"}) == 1
    wordings = Counter((q.kind, q.template) for q in asked[0])
    for kind in SIZES:
        counts = [count for (of_kind, _), count in wordings.items() if of_kind == kind]
        assert len(counts) == 20
        assert max(counts) == min(counts)
    differences = {(group.kind, group.level_difference) for group in groups}
    assert differences == {(kind, level) for kind in SIZES for level in (LEVELS if kind not in LEVEL else (0.0,))}


def blocks_of(clip, block):
    """For each block of a clip how many voices each label has in it."""
    heard = [Counter() for _ in range(24)]
    first = min(start for track in clip.tracks for start, _ in track.spans)
    for track in clip.tracks:
        for start, stop in track.spans:
            for number in range(round((start - first) / block), round((stop - first) / block)):
                heard[number][track.label] += 1
    return heard


@pytest.mark.parametrize("block", [40.0, 39.48, 26.1])
def test_in_longest_every_label_is_heard_as_much_in_as_many_events_and_beside_others_as_often(block):
    """But for which label is which, clips of a group have the same blocks in another order alone."""
    shapes = set()
    for group in (g for g in drawn(LABELS, "test", 40, 1, block) if g.variant == "longest"):
        spans = [[(b - a) / block for a, b in track.spans] for track in group.clips[0].tracks]
        lengths = [sorted(map(round, of_track), reverse=True) for of_track in spans]
        assert np.abs(np.concatenate(spans) - np.concatenate([np.round(of) for of in spans])).max() < 2 / block
        assert len({(sum(of_track), len(of_track)) for of_track in lengths}) == 1
        assert min(map(min, lengths)) * block >= 50
        # Stretches of 250 ms in disorder leave nothing of events that are so much longer.
        assert min(of_track[0] for of_track in lengths) * block > 4 * 25
        longest, *others = (of_track[0] for of_track in lengths)
        assert longest >= max(others) + 3
        shapes.add(tuple(lengths[0]))
        heard = blocks_of(group.clips[0], block)
        pairs = Counter(frozenset(pair) for one in heard for pair in combinations(one, 2))
        labels = [track.label for track in group.clips[0].tracks]
        assert len({pairs[frozenset(pair)] for pair in combinations(labels, 2)}) == 1
        assert {level for clip in group.clips for level in {track.level for track in clip.tracks}} == {0}
        # Where in a clip blocks lie differs; what they are does not, once labels have changed places.
        for clip, answer in zip(group.clips, group.questions[0].answers, strict=True):
            assert in_sentence(clip.tracks[0].label) == answer
    assert len(shapes) >= 5


def test_in_together_every_label_is_heard_as_often_in_one_voice_and_in_two_whatever_the_answer(groups):
    for group in groups:
        if group.kind == "counting/together":
            voices = []
            for clip, answer in zip(group.clips, group.questions[0].answers, strict=True):
                times = defaultdict(Counter)
                for track in clip.tracks:
                    (span,) = track.spans
                    times[span][track.label] += 1
                assert max(map(len, times.values())) == int(answer)
                of_labels = defaultdict(list)
                for heard in times.values():
                    for label, count in heard.items():
                        of_labels[label].append(count)
                assert sorted(map(sorted, of_labels.values())) == [[1, 1, 2]] * 4
                voices.append({span: sum(heard.values()) for span, heard in times.items()})
            assert all(of_clip == voices[0] for of_clip in voices)
            assert sorted(voices[0].values()) == [2, 2, 2, 2, 4, 4]


@pytest.fixture(scope="module")
def pairs():
    return list(draw_groups(PAIRED, LABELS, "test", 60, 0, block=BLOCK))


class TestPaired:
    """Scenes together and pulled apart: the same sounds, questions and answers at other times."""

    def test_together_sounds_overlap_and_apart_a_quarter_of_a_second_lies_between_them_in_any_order(self, pairs):
        firsts = set()
        for pair in pairs:
            spans = [[[track.spans[0] for track in clip.tracks] for clip in group.clips] for group in pair]
            for of_group in spans:
                assert all(of_clip == of_group[0] for of_clip in of_group)
                assert all(FIRST <= start < stop <= LAST for start, stop in of_group[0])
            (together, *_), (apart, *_) = spans
            if pair[0].task == "counting":
                starts, stops = zip(*together, strict=True)
                assert min(stops) - max(starts) >= 100
                firsts.add(int(np.argmin([start for start, _ in apart])))
            else:
                longest, *shorter = together
                assert all(min(longest[1], stop) - max(longest[0], start) >= 100 for start, stop in shorter)
            for (start, stop), (other, end) in combinations(apart, 2):
                assert start - end >= 25 or other - stop >= 25
        assert firsts == {0, 1, 2, 3}


class TestAtoms:
    """Two clips with other answers, asked either way."""

    @pytest.mark.parametrize(
        ("task", "events", "said"),
        [
            ("presence", [(1.0, 1.1, "bell")], {("reed", "absent")}),
            ("presence", [(1.0, 1.3, "bell")], {("bell", "present"), ("reed", "absent")}),
            ("sequence", [(1.0, 2.0, "bell"), (1.3, 2.0, "reed")], set()),
            ("sequence", [(1.0, 2.0, "bell"), (1.5, 2.0, "reed")], {("bell", "before"), ("reed", "after")}),
            ("sequence", [(1.0, 2.0, "bell")], set()),
        ],
    )
    def test_what_is_said_is_certain(self, task, events, said):
        heard = Annotation("clip", 10.0, tuple(LabelledEvent(*event) for event in events), 0.0, "scenes")
        facts = kind_named(task, ATOM_KINDS).facts(heard, frozenset(("bell", "reed")), QuestionSettings())
        assert {(fact.anchor, fact.answer) for fact in facts} == said
