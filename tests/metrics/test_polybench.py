"""PolyBench against scikit-learn, counts by hand and simulation, and the profiles of those who do not listen."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef, recall_score

from audio_compositionality.metrics.answers import LETTERS
from audio_compositionality.metrics.polybench import polybench
from audio_compositionality.metrics.questions import POLARITIES, REPLACED, TASKS

from .contract import MetricContract

TEXTS = {
    "counting": ["1", "2", "3", "4"],
    "duration": ["bell", "brass", "organ"],
    "concurrency": ["Yes", "No"],
    "classification": ["bell", "brass", "organ", "reed"],
    "detection": ["0.0–1.0 s", "2.0–3.0 s", "4.5–5.5 s", "7.0–8.0 s"],
    "counting_together": ["2", "3", "4"],
    "duration_longest": ["bell", "brass", "organ"],
}
Rows = dict[str, list[Any]]


def example() -> dict[str, Any]:
    """Return arguments of `polybench`: 28 questions in every rotation of their options, two in three right."""
    rng = np.random.default_rng(0)
    styles = ("{0}", "{0}. {1}", "({0})", "{1}", "The answer is {1}.", "I cannot determine this.")
    names = ("predictions", "references", "options", "tasks", "ids", "groups", "polarity", "polyphony", "overlap")
    rows: Rows = {name: [] for name in names}
    for number, (task, options) in itertools.product(range(4), TEXTS.items()):
        answer, is_alone = options[number % len(options)], bool(number & 2)
        for turn in range(len(options)):
            shown = options[turn:] + options[:turn]
            place = shown.index(answer) if rng.random() < 2 / 3 else int(rng.integers(len(shown)))
            style = styles[min(int(rng.integers(20)) // 4, 4) if rng.random() < 0.95 else 5]
            said, group = style.format(LETTERS[place], shown[place]), f"{task}, scene {number // 2}"
            known = (POLARITIES[is_alone], 2 + number % 2, 0.5 * number)
            for name, value in zip(names, (said, answer, shown, task, f"{task} {number}", group, *known), strict=True):
                rows[name].append(value)
    return rows


class TestContract(MetricContract):
    name = "polybench"
    embeddings = ()
    needed = ("predictions", "references", "options", "tasks")

    def test_positions_are_collected_as_texts(self, tmp_path: Path) -> None:
        metric, row = self.metric(tmp_path), {"references": ["b"], "options": [["a", "b"]], "tasks": ["duration"]}
        for position, accuracy in (("1", 1.0), ("0", 0.0), ("-1", 0.0), ("", 0.0)):
            metric.add_batch(predictions=[position], **row)
            assert metric.compute(parsed=True)["accuracy"] == accuracy


def twins(groups: int = 3) -> Rows:
    """Questions of groups of twins, in which every option is right as often, and at every position as often."""
    rows: Rows = {name: [] for name in ("references", "options", "tasks", "groups", "polarity")}
    for group, task in itertools.product(range(groups), TASKS):
        options = TEXTS[task]
        shown = options[group % len(options) :] + options[: group % len(options)]
        for place, polarity in itertools.product(range(len(options)), ("overlap", "alone")):
            if task == "concurrency" or polarity == "overlap":
                entries = (shown[place], shown, task, f"{task} {group}", polarity)
                for name, entry in zip(rows, entries, strict=True):
                    rows[name].append(entry)
    return rows


def answered(rows: Rows, rng: np.random.Generator, skill: float = 0.6, unparsed: float = 0.1) -> list[int]:
    """Positions taken by somebody who knows some; -1 is unparsed."""
    places = []
    for reference, options in zip(rows["references"], rows["options"], strict=True):
        draw = rng.random()
        right = options.index(reference) if draw < skill else int(rng.integers(len(options)))
        places.append(-1 if rng.random() < unparsed else right)
    return places


def cyclic(rows: Rows) -> Rows:
    """Every question under all turns of its options, with an id."""
    turned: Rows = {name: [] for name in (*rows, "ids")}
    for number in range(len(rows["tasks"])):
        options = rows["options"][number]
        for turn in range(len(options)):
            for name, entries in rows.items():
                turned[name].append(entries[number])
            turned["options"][-1] = options[turn:] + options[:turn]
            turned["ids"].append(f"question {number}")
    return turned


# ----- scikit-learn


@pytest.mark.parametrize("several_orders", [False, True])
def test_f1_is_that_of_scikit_learn(several_orders: bool) -> None:
    rows = twins(5)
    if several_orders:
        rows = cyclic(rows)
        # Not all orders of some questions, so that questions weigh otherwise than answers.
        kept = [row for row in range(len(rows["tasks"])) if row % 7]
        rows = {name: [entries[row] for row in kept] for name, entries in rows.items()}
    places = answered(rows, np.random.default_rng(0))
    result = polybench(places, **rows, parsed=True)
    counts = {name: rows["ids"].count(name) for name in rows.get("ids", [])}
    for task in TASKS:
        at = [row for row, name in enumerate(rows["tasks"]) if name == task]
        weight = [1 / counts[rows["ids"][row]] if several_orders else 1.0 for row in at]
        if task == "detection":
            truth = [str(rows["options"][row].index(rows["references"][row])) for row in at]
            said = [str(places[row]) for row in at]
        else:
            truth = [rows["references"][row] for row in at]
            said = [rows["options"][row][places[row]] if places[row] >= 0 else "unparsed" for row in at]
        for average in ("macro", "weighted"):
            expected = f1_score(
                truth, said, labels=sorted(set(truth)), average=average, sample_weight=weight, zero_division=0
            )
            assert result["by_task"][task][f"{average}_f1"] == pytest.approx(expected, abs=1e-12)
        assert 0.3 < result[f"macro_f1_{task}"] < 1
    assert result["macro_f1"] == pytest.approx(
        np.mean([result[f"macro_f1_{task}"] for task in TASKS if task not in REPLACED]), abs=1e-12
    )


@pytest.mark.parametrize("unparsed", [0.0, 0.2])
def test_states_of_concurrency_are_scored_as_by_scikit_learn(unparsed: float) -> None:
    rng, n = np.random.default_rng(1), 300
    polarity = rng.choice(["overlap", "alone"], n).tolist()
    truth = rng.choice(["overlap", "alone"], n, p=[0.3, 0.7]).tolist()
    said = [state if rng.random() < 0.7 else "overlap" for state in truth]
    said = ["unparsed" if rng.random() < unparsed else state for state in said]
    words = {(state, names): "Yes" if state == names else "No" for state in ("overlap", "alone") for names in
             ("overlap", "alone")}  # fmt: skip
    result = polybench(
        [words.get((state, names), "Hm") for state, names in zip(said, polarity, strict=True)],
        [words[pair] for pair in zip(truth, polarity, strict=True)],
        [["Yes", "No"]] * n,
        ["concurrency"] * n,
        polarity=polarity,
    )
    positive: dict[str, Any] = {"labels": ["overlap"], "average": "macro"}
    assert result["mcc"] == pytest.approx(matthews_corrcoef(truth, said), abs=1e-12)
    assert result["f1"] == pytest.approx(f1_score(truth, said, **positive), abs=1e-12)
    assert result["sensitivity"] == pytest.approx(recall_score(truth, said, **positive), abs=1e-12)
    if not unparsed:
        assert result["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(truth, said), abs=1e-12)
    pairs = list(zip(truth, said, strict=True))
    for name, pair in {
        "tp": ("overlap", "overlap"),
        "fn": ("overlap", "alone"),
        "fp": ("alone", "overlap"),
        "tn": ("alone", "alone"),
        "unparsed_overlap": ("overlap", "unparsed"),
        "unparsed_alone": ("alone", "unparsed"),
    }.items():
        assert result[name] == pairs.count(pair), name
    assert (result["unparsed"] > 0) == (unparsed > 0)


# ----- by hand


def test_counts_by_hand() -> None:
    result = polybench(
        ["B", "C. dog", "It is the rain.", "I'm sorry, I cannot listen.", "two", "Yes, it is."],
        ["rain", "dog", "dog", "cat", "2", "No"],
        [*[["cat", "rain", "dog"]] * 4, ["1", "2"], ["Yes", "No"]],
        [*["classification"] * 4, "counting", "concurrency"],
        groups=["a", "a", "b", "b", "c", "c"],
        polyphony=[2, 2, 3, 3, 3, 2],
        sources=["x", "x", "x", "y", "y", "y"],
        templates=[0, 1, 0, 1, 0, 0],
        overlap=[0, 1.0, 2.0, None, 3.0, 4.0],
        return_scores=True,
    )
    assert result["scores_correct"] == [1, 1, 0, 0, 1, 0]
    assert (result["classification"], result["counting"], result["concurrency"]) == (0.5, 1, 0)
    assert result["accuracy"] == result["accuracy_micro"] == pytest.approx(0.5)
    assert result["chance"] == pytest.approx((1 / 3 + 1 / 2 + 1 / 2) / 3)
    assert result["adjusted"] == pytest.approx((0.5 - 4 / 9) / (1 - 4 / 9))
    assert (result["n"], result["answers"], result["unparsed"], result["refused"]) == (6, 6, 1, 1)
    assert result["accuracy_parsed"] == pytest.approx(3 / 5)
    row = result["by_task"]["classification"]
    # Right are rain, dog, dog, cat; said were rain, dog, rain, nothing.
    assert row["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 0) / 3)
    assert row["weighted_f1"] == pytest.approx((2 / 3 + 2 * 2 / 3 + 0) / 4)
    # Dog is right twice, as is the third position.
    assert (row["majority"], row["best_position"], row["chance"]) == (0.5, 0.5, pytest.approx(1 / 3))
    assert (result["groups_right"], result["groups"]) == (pytest.approx(1 / 3), 3)
    assert result["groups_right_chance"] == pytest.approx((1 / 9 + 1 / 9 + 1 / 4) / 3)
    assert (row["groups_right"], row["groups"], row["groups_right_chance"]) == (0.5, 2, pytest.approx(1 / 9))
    assert result["groups_right_counting"] == 1
    assert (result["tp"], result["fp"], result["tn"], result["fn"]) == (0, 1, 0, 0)
    assert (result["sensitivity"], result["specificity"], result["balanced_accuracy"]) == (None, 0, None)
    assert {key: part["accuracy"] for key, part in result["by_polyphony"].items()} == pytest.approx(
        {"2": 2 / 3, "3": 1 / 3}
    )
    assert {key: part["n"] for key, part in result["by_source"].items()} == {"x": 3, "y": 3}
    assert {key: part["accuracy"] for key, part in result["by_template"].items()} == {"0": 0.5, "1": 0.5}
    # Of 1, 2, 3 and 4 s the quartiles lie at 1.75, 2.5 and 3.25 s.
    bins = {key: (part["least"], part["most"], part["n"]) for key, part in result["by_overlap"].items()}
    assert bins == {"0": (0, 0, 1), "1": (1, 1, 1), "2": (2, 2, 1), "3": (3, 3, 1), "4": (4, 4, 1)}
    assert result["position"] == {"A": 1 / 5, "B": 3 / 5, "C": 1 / 5}
    # Of these five three had 3 options and two had 2.
    expected = np.array([3 / 3 + 2 / 2, 3 / 3 + 2 / 2, 3 / 3]) / 5
    assert result["position_distance"] == pytest.approx(np.abs(np.array([1, 3, 1]) / 5 - expected).sum() / 2)
    assert result["correctness"] is result["consistency"] is result["all_orders_right"] is None
    assert result["rules"] == ["letter", "letter", "mention", "refusal", "text", "yes or no"]
    assert result["choices"] == [1, 2, 1, None, 1, 0]


def test_orders_by_hand() -> None:
    orders = [["bell", "organ", "reed"], ["organ", "reed", "bell"], ["reed", "bell", "organ"]]
    said = ["bell", "bell", "organ", "bell", "bell", "bell", "?", "?", "bell"]
    result = polybench(
        said, ["bell"] * 9, orders * 3, ["duration"] * 9, ids=[1, 1, 1, 2, 2, 2, 3, 3, 3], return_scores=True
    )
    assert result["correctness"] == result["accuracy"] == pytest.approx((2 / 3 + 1 + 1 / 3) / 3)
    # Pairs with the same text: one of three, all, none; that nothing was said twice is no agreement.
    assert result["consistency"] == pytest.approx((1 / 3 + 1 + 0) / 3)
    assert result["consistency_chance"] == pytest.approx(1 / 3)
    assert result["all_orders_right"] == pytest.approx(1 / 3)
    assert result["all_orders_right_chance"] == pytest.approx(1 / 27)
    assert (result["n"], result["answers"], result["unparsed"], result["refused"]) == (3, 9, 2, 0)
    assert result["scores_correct"] == pytest.approx([2 / 3, 1, 1 / 3])
    assert len(result["choices"]) == 9


def test_polarity_turns_what_yes_says() -> None:
    rows = {"references": ["Yes", "No"], "options": [["Yes", "No"], ["no", "yes"]], "tasks": ["concurrency"] * 2}
    rows["references"][1] = "no"
    usual = polybench(["Yes", "yes"], **rows)
    assert (usual["tp"], usual["fp"], usual["yes_rate"]) == (1, 1, 1)
    turned = polybench(["Yes", "yes"], **rows, polarity=["alone", "overlap"])
    assert (turned["tn"], turned["fp"], turned["tp"], turned["yes_rate"]) == (1, 1, 0, 1)
    assert polybench(["Yes", "yes"], **rows, polarity=["alone", "alone"])["fn"] == 1
    # A single name is what it is for both; of other tasks it is not looked at.
    other = {"references": ["a"], "options": [["a", "b"]], "tasks": ["duration"]}
    assert polybench(["a"], **other, polarity=["whatever"])["accuracy"] == 1


# ----- those who do not listen


def test_always_first() -> None:
    rows = cyclic(twins(4))
    result = polybench(["A"] * len(rows["tasks"]), **rows)
    assert (
        result["accuracy"] == result["chance"] == result["best_position"] == pytest.approx((2 / 4 + 2 / 3 + 1 / 2) / 5)
    )
    assert (result["consistency"], result["all_orders_right"], result["groups_right"]) == (0, 0, 0)
    assert result["position"] == {"A": 1, "B": 0, "C": 0, "D": 0}
    assert result["by_task"]["counting"]["position_distance"] == 0.75
    assert result["by_task"]["concurrency"]["position_distance"] == 0.5
    assert result["adjusted"] == pytest.approx(0, abs=1e-12)
    # Each question is right in one of its k orders: nothing is left to chance.
    assert result["by_task"]["duration"]["interval"] == pytest.approx([1 / 3, 1 / 3])


def test_always_refuse() -> None:
    rows = twins(4)
    n = len(rows["tasks"])
    result = polybench(["I'm sorry, but I can't listen to audio."] * n, **rows)
    assert (result["accuracy"], result["unparsed"], result["refused"]) == (0, n, n)
    assert result["accuracy_parsed"] is result["yes_rate"] is result["position_distance"] is None
    assert set(result["position"].values()) == {None}
    assert (result["unparsed_overlap"], result["unparsed_alone"], result["tp"], result["fn"]) == (8, 8, 0, 0)
    assert (result["sensitivity"], result["specificity"], result["mcc"], result["f1"]) == (0, 0, 0, 0)
    assert result["macro_f1"] == 0
    one = polybench([0, 1], ["a", "a"], [["a", "b"]] * 2, ["duration"] * 2, groups=["g", "g"], parsed=True)
    assert one["interval"] == [0, 1], "one group tells nothing"


# ----- intervals


def test_copies_of_questions_narrow_no_interval_where_groups_say_so() -> None:
    right = np.random.default_rng(5).random(60) < 0.6
    row = {"references": ["a"] * 540, "options": [["a", "b"]] * 540, "tasks": ["duration"] * 540, "parsed": True}
    copies = np.where(right, 0, 1).repeat(9)
    told = polybench(copies, **row, groups=np.arange(540) // 9)["interval"]
    untold = polybench(copies, **row)["interval"]
    assert untold[1] - untold[0] < 0.5 * (told[1] - told[0])
    half = 1.96 * math.sqrt(right.mean() * (1 - right.mean()) / 60)
    assert told == pytest.approx([right.mean() - half, right.mean() + half], abs=0.03)


# ----- what is refused

GOOD: dict[str, Any] = {
    "predictions": ["a", "b"],
    "references": ["a", "b"],
    "options": [["a", "b"], ["a", "b"]],
    "tasks": ["duration", "duration"],
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"predictions": ["a"]}, "one entry per answer.*predictions 1, references 2, options 2, tasks 2"),
        ({"options": None}, "polybench got predictions, references, tasks without options"),
        ({"references": ["a", "c"]}, r"in row 1 'c' is not in \['a', 'b'\]"),
        ({"options": [["a", "b"], ["b", "b", "a"]]}, r"in row 1 'b' is 2 times in \['b', 'b', 'a'\]"),
        ({"options": [["a", "b"], [*map(str, range(26)), "b"]]}, "2 to 26 options; row 1 has 27"),
        ({"references": ["a", 2]}, "references must be texts; row 1 has 2"),
        ({"tasks": ["duration", "durations"]}, "tasks must be counting, .*; row 1 has 'durations'"),
        (
            {"predictions": ["Yes"], "references": ["Yes"], "options": [["Yes", "No"]], "tasks": ["concurrency"]}
            | {"polarity": ["yes"]},
            "polarity must be overlap or alone; row 0 has 'yes'",
        ),
        ({"tasks": ["duration", "concurrency"]}, r"Options of concurrency must be Yes and No; row 1 has \['a', 'b'\]"),
        ({"predictions": [0, 2], "parsed": True}, "a prediction must be 0 to 1, or -1; row 1 has 2"),
        ({"groups": ["x", None]}, "groups must be texts or integers; row 1 has None"),
        (
            {"ids": ["x", "x"], "references": ["a", "a"], "options": [["a", "b"], ["a", "c"]]},
            "those to 'x' disagree in the set of options",
        ),
        ({"ids": ["x", "x"], "references": ["a", "a"], "groups": ["g", "h"]}, "disagree in groups"),
        ({"overlap": [1.0, -1.0]}, "overlap must be seconds, at least 0, or None; row 1 has -1.0"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        polybench(**GOOD | changes)


@pytest.mark.slow
@pytest.mark.parametrize("groups", [12])
def test_intervals_cover(groups: int) -> None:
    rng, hits, times = np.random.default_rng(6), 0, 150
    for _ in range(times):
        rates = rng.beta(3, 2, groups)
        right = rng.random((groups, 4)) < rates[:, None]
        n = right.size
        result = polybench(
            np.where(right.ravel(), 0, 1),
            ["a"] * n,
            [["a", "b"]] * n,
            ["duration"] * n,
            groups=np.arange(n) // 4,
            parsed=True,
        )
        low, high = result["interval"]
        assert low <= result["accuracy"] <= high
        hits += low <= 0.6 <= high
    # 95 % ± 3 standard errors of 150 trials, and a little for few groups.
    assert 0.88 < hits / times < 1
