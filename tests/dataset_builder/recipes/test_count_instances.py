"""Ladders: what is held tells nothing of the count and the rest does, measured on rendered clips."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import pearsonr

from audio_compositionality.dataset_builder.data import DatasetError
from audio_compositionality.dataset_builder.recipes.count_instances import HELD, RECIPE, CountSpec
from audio_compositionality.dataset_builder.recipes.count_instances_questions import RECIPE as QUESTIONS
from audio_compositionality.dataset_builder.scenes.mixing import EventSounds
from audio_compositionality.support.errors import InputError

from .recorded import instances, made, named

TELLING = {
    "energy": {"span", "activity"},
    "span": {"energy", "density", "activity"},
    "density": {"energy", "span", "activity"},
    "activity": {"density"},
}
"""What grows with the count where something is held."""


def measured(rendering) -> dict[str, dict[str, np.ndarray]]:
    """By what is held: counts of all clips from two on, and what is measured of them; energy in dB of its ladder."""
    columns = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(rendering.rows):
        clips = rendering.clips(place)
        energy = [10 * np.log10(np.square(clip, dtype=np.float64).sum()) for clip in clips]
        for count, level, events in zip(row["counts"], energy, row["events"], strict=True):
            if count > 1:
                span = events[-1]["start"] - events[0]["start"]
                facts = {"count": count, "energy": level - np.mean(energy), "span": span, "density": (count - 1) / span}
                facts["activity"] = sum(event["stop"] - event["start"] for event in events)
                for name, value in facts.items():
                    columns[row["held"]][name].append(value)
    return {held: {name: np.array(values) for name, values in of.items()} for held, of in columns.items()}


@pytest.mark.parametrize("sounds", [None, named(each=3)])
def test_what_is_held_tells_nothing_and_the_rest_does(sounds) -> None:
    changes = {} if sounds is None else {"sounds": sounds, "sample_rate": 8_000}
    facts = measured(RECIPE.render(CountSpec(ladders=160, seed=1, **changes)))
    for held, of_held in facts.items():
        for name in HELD:
            correlation = pearsonr(of_held["count"], of_held[name])
            if name in TELLING[held]:
                assert correlation.statistic > 0.9, (held, name)
            else:
                assert correlation.pvalue > 0.001, (held, name)
        # Of the energy of a ladder one mean is taken away: it is held within a range of 2 · 1.5 dB.
        ranges = {"energy": 3.0, "span": 1.25, "density": 1.25, "activity": 1.25}
        if held == "energy":
            assert np.ptp(of_held["energy"]) < 2 * ranges["energy"]
        elif sounds is None:
            assert of_held[held].max() <= 1.01 * ranges[held] * of_held[held].min()


def test_rows_are_ladders_of_one_sound_with_captions_of_their_counts() -> None:
    rows = RECIPE.render(CountSpec(ladders=64)).rows
    assert Counter(row["held"] for row in rows) == dict.fromkeys(HELD, 16)
    for row in rows:
        assert row["counts"] == ([1, 2, 3, 4, 5] if row["held"] == "energy" else [2, 3, 4, 5])
        assert [len(events) for events in row["events"]] == row["counts"]
        assert len({event["entry"] for events in row["events"] for event in events}) == 1
        for events in row["events"]:
            assert all(one["stop"] + 0.1 < other["start"] for one, other in pairwise(events))
            assert 0 <= events[0]["start"] < events[-1]["stop"] <= 4
    words = ("one time", "two times", "three times", "four times", "five times")
    assert rows[0]["captions"] == [f"{rows[0]['label']} heard {text}" for text in words]
    for held in HELD:
        assert set(Counter(row["label"] for row in rows if row["held"] == held).values()) == {2}


def test_an_event_is_no_longer_than_its_sound() -> None:
    short = made([(f"{label}.wav", label, "", {}) for label in ("dog", "cat")], lengths=(0.2, 2.0))
    rendering = RECIPE.render(CountSpec(ladders=8, sounds=short, sample_rate=8_000))
    sounds = EventSounds(short, 8_000)
    for row in rendering.rows:
        lengths = {round(event["stop"] - event["start"], 3) for events in row["events"] for event in events}
        longest = {"dog": min(sounds.length(0), sounds.period(0)) / 8_000, "cat": 0.36}[row["label"]]
        assert max(lengths) <= longest + 1e-9
        assert (len(lengths) == 1) == (row["held"] != "activity")


def test_what_cannot_be_counted_is_refused() -> None:
    clicks = made([("click.wav", "click", "", {}), ("dog.wav", "dog", "", {})], lengths=(0.03, 1.0))
    message = (
        r"the sound in 'click.wav' is 0\.\d\d s long \(recording: 0\.03 s; trimmed at -35 dB\); a sound to be "
        r"counted must last 0\.1 s or more"
    )
    with (
        pytest.warns(UserWarning, match=f"{message}; it is left out of count_instances"),
        pytest.raises(DatasetError, match=f"{message}; its label has no other sound; leave it out"),
    ):
        list(RECIPE.render(CountSpec(ladders=8, sounds=clicks, sample_rate=8_000)).rows)
    # One unusable file is left out, and the task is scored with the others.
    names = [("click.wav", "click", "", {}), ("clack.wav", "click", "", {}), ("dog.wav", "dog", "", {})]
    both = made(names, lengths=(0.03, 1.0, 1.0))
    with pytest.warns(UserWarning, match=f"{message}; it is left out of count_instances"):
        rows = list(RECIPE.render(CountSpec(ladders=8, sounds=both, sample_rate=8_000)).rows)
    assert {row["pair"] for row in rows} == {"clack.wav", "dog.wav"}
    with pytest.raises(InputError, match=r"duration is 2; 5 events of 0.36 s .* need at least 2.76"):
        CountSpec(duration=2)


def test_questions_are_about_the_clips_of_the_ladders_and_each_count_is_right_once() -> None:
    spec = CountSpec(ladders=8, sounds=instances(4), sample_rate=8_000)
    ladders, questions = RECIPE.render(spec), QUESTIONS.render(spec)
    places = {(row["group"], row["answer"]): place for place, row in enumerate(questions.rows)}
    assert len(places) == len(questions.rows)
    assert {int(row["id"].rpartition("-")[2]) - int(row["answer"]) for row in questions.rows} >= {-4, 0, 1}
    for number, row in enumerate(ladders.rows):
        for clip, count, events in zip(ladders.clips(number), row["counts"], row["events"], strict=True):
            place = places.pop((row["id"], str(count)))
            asked = questions.rows[place]
            assert asked["question"] == f"How many times is {row['label']} heard?"
            assert (asked["options"], asked["answer"]) == ([str(n) for n in row["counts"]], str(count))
            assert (asked["kind"], asked["group"]) == (row["held"], row["id"])
            assert [event["onset"] for event in asked["events"]] == [event["start"] for event in events]
            # Under the gain of the ladder, so that energy stays held.
            np.testing.assert_array_equal(questions.clips(place)[0], clip)
    assert not places
