"""An audit finds leaks that were put into a made-up set, and none in a set without them."""

import random

from audio_compositionality.evaluator.run.item_audit import audit_tables, blind_answers, telling_words

SOUNDS = ["dog", "cat", "rain", "bell", "horn", "drum", "door", "wind"]


def made(kind, count, leak=None, seed=0):
    draw, rows = random.Random(f"{kind}-{seed}"), []
    for number in range(count):
        options = draw.sample(SOUNDS, 4)
        place = 0 if leak == "position" else draw.randrange(4)
        answer = options[place]
        if leak == "word":
            options = [option if option == answer else f"{option} only" for option in options]
        if leak == "length":
            answer = options[place] = f"{answer} that goes on for a very long time"
        rows.append(
            {"id": f"{kind}-{number}", "question": "Which sound is it?", "options": options, "answer": answer}
            | {"kind": kind, "group": f"{kind}-{number // 2}", "files": [f"{kind}-{number}.wav"], "duration": 1.5}
        )
    return rows


def values(table):
    return [[cell.value for cell in row.cells] for row in table.rows]


def test_a_kind_with_a_leak_is_told_from_one_without_with_its_words():
    kinds, *_ = audit_tables([*made("fair", 120), *made("leaky", 120, "word")])
    fair, leaky = values(kinds)
    assert (fair[:6], leaky[:4]) == (["fair", 120, 120, "4", 1.5, 0.25], ["leaky", 120, 120, "4"])
    assert (fair[7] > 0.05, fair[8]) == (True, "–")
    assert leaky[6] > 0.9
    assert leaky[7] < 1e-6
    assert telling_words(made("leaky", 120, "word"))[0] == leaky[8].partition(",")[0] == "only 0 / 120"
    assert telling_words(made("x", 40, "length"))[0].split()[-3:] == ["40", "/", "40"]


def test_a_few_questions_that_are_all_right_are_no_leak():
    rows = [row | {"options": ["yes", "no"], "answer": "yes"} for row in made("few", 4)]
    kinds, _, lengths, _ = audit_tables([*made("fair", 120), *rows])
    (_, few) = values(kinds)
    # Two groups of two: who draws for each group once is right everywhere with the probability 1/4.
    assert (few[0], few[6], few[8]) == ("few", 1.0, "–")
    assert few[7] >= 0.25
    assert values(lengths)[0][3] >= 1e-3


def test_blind_answers_no_question_whose_group_it_learnt():
    # Both questions of a group have the same words, which no other group has: only who learnt one knows the other.
    rows = []
    for number, row in enumerate(made("x", 60)):
        words = {sound: f"{sound}{number // 2}" for sound in SOUNDS}
        rows.append(row | {"options": [words[one] for one in SOUNDS[:4]], "answer": words[SOUNDS[number // 2 % 4]]})
    right = sum(answer == row["answer"] for answer, row in zip(blind_answers(rows), rows, strict=True))
    assert right < 30


def test_positions_and_lengths_are_tested():
    _, positions, lengths, _ = audit_tables(made("x", 80, "position"))
    assert values(positions)[0][:3] == [4, 80, "A 80, B 0, C 0, D 0"]
    assert values(positions)[0][3] < 1e-10
    _, positions, lengths, _ = audit_tables(made("x", 80, "length"))
    assert values(positions)[0][3] > 0.01
    longest, shortest = values(lengths)
    assert (longest[1], shortest[1]) == (1, 0)
    assert longest[3] < 1e-6 < shortest[3]


def test_duplicates_and_contradictions_are_named():
    rows = made("x", 4)
    rows += [dict(rows[0], id="again"), dict(rows[1], id="other", answer=rows[1]["options"][0])]
    rows[1]["answer"] = rows[1]["options"][1]
    rows[2]["files"], rows[3]["files"] = ["a.wav"], ["b.wav"]
    digests = (
        [(row["files"][0],) for row in rows[:2]] + [("same",), ("same",)] + [(row["files"][0],) for row in rows[4:]]
    )
    *_, repeats = audit_tables(rows, digests)
    assert values(repeats) == [
        ["the same question about the same clips", 1, "x-0, again"],
        ["the same, with another right answer: one of them is wrong", 1, "x-1, other"],
        ["a clip under several names", 1, "a.wav, b.wav"],
    ]
