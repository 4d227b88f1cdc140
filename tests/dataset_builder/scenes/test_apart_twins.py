"""Scenes together and pulled apart: the same sounds, the same questions and answers, other times."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes import load_recipe
from audio_compositionality.dataset_builder.scenes.polyphony import PolyphonySpec
from audio_compositionality.dataset_builder.scenes.twins import ARRANGEMENTS, BLOCK, FIRST, LAST, PAIRED, draw_groups
from audio_compositionality.dataset_builder.texts.answer_check import check_questions
from audio_compositionality.dataset_builder.texts.question_controls import balance_of, require_balance
from audio_compositionality.dataset_builder.texts.questions import annotation_of, question_of
from audio_compositionality.support.errors import InputError

LABELS = ("bell", "reed", "organ", "brass", "pad", "bass")
SETS = 60
RECIPE = load_recipe("polybench_apart")
SMALL = PolyphonySpec(train_sets=1, test_sets=2, sample_rate=8_000)


@pytest.fixture(scope="module")
def pairs():
    return drawn(LABELS, "test", SETS, 0)


def drawn(labels, split, sets, seed):
    """All pairs of groups of a split."""
    return list(draw_groups(PAIRED, labels, split, sets, seed, block=BLOCK))


def spans_of(group, place=0):
    return [track.spans[0] for track in group.clips[place].tracks]


def test_a_pair_differs_in_when_sounds_begin_and_in_nothing_else(pairs):
    assert len(pairs) == 2 * SETS
    for together, apart in pairs:
        assert [group.arrangement for group in (together, apart)] == list(ARRANGEMENTS)
        assert together.pair == apart.pair
        assert together.questions == apart.questions
        assert (together.task, together.number, together.split) == (apart.task, apart.number, apart.split)
        for one, other in zip(together.clips, apart.clips, strict=True):
            assert one.name != other.name
            for track, moved in zip(one.tracks, other.tracks, strict=True):
                assert (track.label, track.variant, track.level) == (moved.label, moved.variant, moved.level)
                (start, stop), (moved_start, moved_stop) = track.spans[0], moved.spans[0]
                assert stop - start == moved_stop - moved_start


def test_twins_of_an_arrangement_have_their_sounds_at_the_same_places(pairs):
    for group in (group for pair in pairs for group in pair):
        assert len({tuple(spans_of(group, place)) for place in range(len(group.clips))}) == 1
        assert all(FIRST <= start < stop <= LAST for start, stop in spans_of(group))


def test_together_sounds_overlap_and_apart_a_quarter_of_a_second_lies_between_them(pairs):
    for together, apart in pairs:
        if together.task == "counting":
            starts, stops = zip(*spans_of(together), strict=True)
            assert min(stops) - max(starts) >= 100
        else:
            longest, *shorter = spans_of(together)
            assert all(min(longest[1], stop) - max(longest[0], start) >= 100 for start, stop in shorter)
        for (start, stop), (other, end) in combinations(spans_of(apart), 2):
            assert start - end >= 25 or other - stop >= 25


def test_sounds_come_in_any_order(pairs):
    firsts = {int(np.argmin([start for start, _ in spans_of(apart)])) for _, apart in pairs if apart.task == "counting"}
    assert firsts == {0, 1, 2, 3}


def test_further_sets_change_none_before_and_seeds_do():
    first = drawn(LABELS, "test", 3, 0)
    assert drawn(LABELS, "test", 2, 0) == first[:4]
    other = drawn(LABELS, "test", 3, 1)
    assert not {group.clips for pair in other for group in pair} & {group.clips for pair in first for group in pair}
    with pytest.raises(InputError, match="questions need 5 or more"):
        drawn(LABELS[:4], "test", 1, 0)


@pytest.mark.slow
def test_two_algorithms_agree_and_text_alone_is_at_chance():
    rows = RECIPE.render(RECIPE.presets["mini"]).rows
    assert [len([row for row in rows if row["split"] == split]) for split in ("train", "test")] == [420, 336]
    assert len({row["id"] for row in rows}) == len({row["recording"] for row in rows}) == len(rows)
    clips = {row["recording"]: annotation_of(row) for row in rows}
    assert check_questions([question_of(row) for row in rows], clips.values()) == len(rows)
    for split in ("train", "test"):
        for arrangement in ARRANGEMENTS:
            of_part = [row for row in rows if (row["split"], row["arrangement"]) == (split, arrangement)]
            require_balance(balance_of([question_of(row) for row in of_part], clips.values()))
            if arrangement == "apart":
                assert {(row["polyphony"], row["overlap"]) for row in of_part} == {(1, 0.0)}
    by_pair = {}
    for row in rows:
        RECIPE.check_row(row)
        by_pair.setdefault(row["pair"], {})[row["arrangement"]] = row
    assert all(set(both) == set(ARRANGEMENTS) for both in by_pair.values())
    same = ("question", "options", "answer", "task", "template", "split", "level_difference")
    for both in by_pair.values():
        together, apart = both["together"], both["apart"]
        assert all(together[column] == apart[column] for column in same)


def test_a_pair_has_the_same_samples_at_other_times():
    scenes = RECIPE.render(SMALL)
    pairs = {}
    for one in scenes.drawn:
        sounds = [(event.entry, event.length, event.gain, event.offset) for event in one.clips[0]]
        pairs.setdefault(one.row["pair"], []).append(sounds)
    assert len(pairs) == len(scenes.rows) / 2 == 21
    assert all(together == apart for together, apart in pairs.values())
    clips = [scenes.clips(index)[0] for index in range(len(scenes.rows))]
    assert {clip.shape for clip in clips} == {(80_000,)}
    levels = [np.sqrt(np.mean(np.square(clip / 32_767))) for clip in clips]
    assert max(levels) == pytest.approx(min(levels), rel=2e-3)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("arrangement", "mixed", "arrangement is 'mixed'; it is one of 'together', 'apart'"),
        ("pair", "", "pair is ''; it names what is asked"),
        ("task", "detection", "task is 'detection'; it is one of 'counting', 'duration'"),
    ],
)
def test_rows_that_are_no_pair_are_refused(column, value, words):
    row = RECIPE.render(SMALL).rows[0]
    with pytest.raises(DatasetError, match=f"row {row['id']}: {words}"):
        RECIPE.check_row({**row, column: value})


def test_the_card_says_what_there_is():
    text = RECIPE.describe(RECIPE.presets["mini"])
    assert "336 multiple-choice questions" in text
    assert "420 to learn from" in text
    for column in set(RECIPE.features(SMALL)):
        assert f"`{column}`" in text
